"""Times at which two ensembles have made equal progress, as measured by an observable."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from analysis.stats.effects import bootstrap
from analysis.stats.intervals import Interval, mean
from physics.errors import InputError

Array = NDArray[np.float64]
RESAMPLES = 500


def monotone(values: Array) -> Array:
    """Return the nearest monotone curve to values (frames,), in the sense of least squares.

    It rises if the last value is at least the first one, and falls otherwise.
    """
    rising = bool(values[-1] >= values[0])
    return np.asarray(isotonic_regression(values, increasing=rising).x)


def same_progress(first: Array, second: Array, first_times: Array, times: Array) -> Array:
    """Return the times at which the first curve has the values that the second has at `times`.

    Parameters
    ----------
    first : ndarray of float64, shape (m,)
        First curve, at `first_times`. Both curves are first made monotone.
    second : ndarray of float64, shape (n,)
        Second curve, at `times`.
    first_times, times : ndarray of float64, shapes (m,) and (n,)
        Increasing times of both curves.

    Returns
    -------
    ndarray of float64, shape (n,)
        Times of the first curve. While both curves stay at one level, equal fractions of their stays
        correspond. A time is NaN where the first curve never has the value, or the second one is not finite.
        All are NaN if a curve is constant or if one rises and the other falls. Frames of the first curve that
        are not finite are left out.
    """
    known, seen = np.isfinite(first), np.isfinite(second)
    if not (known.all() and seen.all()):
        matched = np.full(len(times), np.nan)
        if known.any() and seen.any():
            matched[seen] = same_progress(first[known], second[seen], first_times[known], times[seen])
        return matched
    a, b = monotone(first), monotone(second)
    if (a[-1] >= a[0]) != (b[-1] >= b[0]) or np.ptp(a) == 0 or np.ptp(b) == 0:
        return np.full(len(times), np.nan)
    if a[-1] < a[0]:
        a, b = -a, -b
    level, begin = np.unique(a, return_index=True)
    end = np.searchsorted(a, level, side="right") - 1
    enter, leave = first_times[begin], first_times[end]
    at = np.clip(np.searchsorted(level, b, side="right") - 1, 0, len(level) - 2)
    between = np.clip((b - level[at]) / (level[at + 1] - level[at]), 0, 1)
    stay, place = np.unique(b, return_inverse=True)
    since, until = (np.searchsorted(b, stay, side=side) for side in ("left", "right"))
    length = times[until - 1] - times[since]
    passed = np.divide(
        times - times[since][place], length[place], out=np.full(len(times), 0.5), where=length[place] > 0
    )
    below = enter[at] + np.where(between > 0, 1.0, passed) * (leave[at] - enter[at])
    above = enter[at + 1] + np.where(between < 1, 0.0, passed) * (leave[at + 1] - enter[at + 1])
    found = below + between * (above - below)
    slack = 1e-12 * max(abs(a[0]), abs(a[-1]))
    return np.where((b >= a[0] - slack) & (b <= a[-1] + slack), found, np.nan)


def by_progress(
    first: Array, second: Array, clock: Array, times: Array, paired: bool
) -> tuple[Array, Interval]:
    """Return times of the first ensemble at equal progress, and the mean time factor.

    Parameters
    ----------
    first, second : ndarray of float64, shapes (runs, m) and (runs, n)
        An observable of both ensembles, at `clock` and at `times`.
    clock, times : ndarray of float64, shapes (m,) and (n,)
        Increasing times of the frames of both ensembles.
    paired : bool
        Whether row k of one belongs to row k of the other; otherwise the means over the runs are matched.

    Returns
    -------
    matched : ndarray of float64, shape (runs, n) or (1, n)
        Time of the first ensemble for each of `times`, in one row for each pair if runs are paired.
    scale : Interval
        Geometric mean of the ratio of these times, first over second.

    Raises
    ------
    InputError
        If the observable takes no common values in the two ensembles.
    """
    if paired:
        matched = np.array([same_progress(a, b, clock, times) for a, b in zip(first, second, strict=True)])
        factors = _log_factor(matched, times)
        scale = mean(factors[np.isfinite(factors)]).map(math.exp)
    else:
        matched = same_progress(first.mean(axis=0), second.mean(axis=0), clock, times)[None]

        def factor(a: Array, b: Array) -> Array:
            means = zip(first[a.astype(int)].mean(axis=1), second[b.astype(int)].mean(axis=1), strict=True)
            return _log_factor(np.array([same_progress(x, y, clock, times) for x, y in means]), times)

        runs = np.arange(len(first)), np.arange(len(second))
        scale = bootstrap(runs, factor, resamples=RESAMPLES).map(math.exp)
    if not np.isfinite(matched).any():
        raise InputError(
            "align must name an observable that takes the same values in both ensembles, got one that does "
            "not"
        )
    return matched, scale


def frame_mean(errors: Array) -> Array:
    """Return the mean (...) of those errors (..., frames) that are finite; NaN if none is."""
    sound = np.isfinite(errors)
    count = sound.sum(axis=-1)
    total = np.where(sound, errors, 0).sum(axis=-1)
    return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)


def _log_factor(matched: Array, times: Array) -> Array:
    """Return the mean logarithm (n,) of the ratio of times (n, frames), where both are after the start."""
    sound = np.isfinite(matched) & (matched > 0) & (times > 0)
    logarithm = np.log(np.where(sound, matched, 1.0)) - np.log(np.where(times > 0, times, 1.0))
    return frame_mean(np.where(sound, logarithm, np.nan))
