"""Two ensembles in motion: one clock for both, and how far apart the shapes are at equal stages."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from analysis.effects import bootstrap_mean
from analysis.relabelling import Symmetry, best_relabelling, disparity, standard
from analysis.statistics import Interval, mean
from physics.errors import InputError

Array = NDArray[np.float64]
Error = Callable[[Array, Array], Array]
FRAMES, MANY_FRAMES = 16, 48
"""Frames that are compared, of point sets in many and in up to 4 dimensions."""
FACTORS, MANY_FACTORS = 41, 97
"""Time scalings that are tried, between 1/8 and 4 times that which lets both end together."""


@dataclass(frozen=True, eq=False)
class Paths:
    """One ensemble in motion: positions (runs, frames, tokens, dim), and times (frames,) from 0 on."""

    positions: NDArray[Any]
    times: Array

    @property
    def duration(self) -> float:
        """Time of the last frame."""
        return float(self.times[-1])

    def at(self, times: Array) -> Array:
        """Positions (runs, n, tokens, dim) at times (n,) or (runs, n), between frames by straight lines.

        NaN outside of the times there are.
        """
        clock = np.broadcast_to(times, (len(self.positions), np.shape(times)[-1]))
        place = np.clip(np.searchsorted(self.times, clock, side="right") - 1, 0, len(self.times) - 2)
        runs = np.arange(len(self.positions))[:, None]
        gap = self.times[place + 1] - self.times[place]
        part = ((clock - self.times[place]) / gap)[..., None, None]
        before, after = self.positions[runs, place], self.positions[runs, place + 1]
        found = before + part * (after.astype(np.float64) - before)
        outside = ~((clock >= 0) & (clock <= self.duration * (1 + 1e-12)))
        found[outside] = np.nan
        return np.asarray(found)


@dataclass(frozen=True, eq=False)
class Motion:
    """How far apart pairs of runs are over time, once their clocks are aligned.

    Attributes
    ----------
    pairs : ndarray of int64, shape (n, 2)
        Run of the first and run of the second ensemble.
    paired : bool
        Whether they start from the same point set; else the run of the first is the one whose final shape is
        nearest to that of the run of the second.
    relabelling : ndarray of int64, shape (n, tokens)
        Token i of the second is token ``relabelling[k, i]`` of the first, the same in all frames.
    alignment : str
        "scaling", "none", or the observable whose progress aligns the clocks.
    scale : Interval
        τ: time of the first that passes in one unit of time of the second.
    times : ndarray, shape (frames,)
        Clock of the second ensemble, from its start.
    matched : ndarray, shape (n, frames)
        Time of the first that stands beside it.
    error : ndarray, shape (n, frames)
        Procrustes disparity, or relative squared error of states; NaN where the first has no such time.
    chance : ndarray, shape (n, frames)
        The same of the run of the second beside the partner of another; NaN for a single pair.
    mean_error, chance_error : Interval
        Means over frames, then over pairs; the start does not count where the runs share it.
    """

    pairs: NDArray[np.int64]
    paired: bool
    relabelling: NDArray[np.int64]
    alignment: str
    scale: Interval
    times: Array
    matched: Array
    error: Array
    chance: Array
    mean_error: Interval
    chance_error: Interval


def compare_motion(
    first: Paths,
    second: Paths,
    pairs: NDArray[np.int64],
    symmetry: Symmetry,
    *,
    paired: bool,
    align: str,
    progress: tuple[Array, Array] | None = None,
    states: bool = False,
) -> Motion:
    """Align the clocks of pairs of runs, and measure the error over time.

    Parameters
    ----------
    first, second : Paths
        Row k of each belongs to pair k.
    pairs, paired : ndarray of int64 (n, 2), bool
        What is kept of where they come from.
    symmetry : Symmetry
    align : str
        "scaling": one factor τ between the clocks, that with the least mean error; "none": the times as they
        are; else the name of what `progress` holds.
    progress : pair of ndarray, optional
        An observable of each, (n, frames of that ensemble): frames of equal progress stand side by side.
    states : bool, default False
        Compare coordinates as they are: no rotation, scaling or relabelling.
    """
    planar = max(first.positions.shape[-1], second.positions.shape[-1]) <= 4
    count = min(MANY_FRAMES if planar else FRAMES, len(second.times))
    chosen = np.unique(np.linspace(0, len(second.times) - 1, count).round().astype(int))
    times = second.times[chosen]
    dim = max(first.positions.shape[-1], second.positions.shape[-1])
    target = second.at(times)
    if not states:
        target = standard(target, dim)
    start = 1 if paired and len(times) > 1 else 0

    def shapes(matched: Array) -> Array:
        found = first.at(matched)
        return found if states else standard(found, dim)

    def error(a: Array, b: Array) -> Array:
        return relative_error(a, b) if states else disparity(a, b)

    matched = np.broadcast_to(times * _ratio(first, second), (len(pairs), len(times)))
    scale = Interval(1.0, np.nan, np.nan, len(pairs))
    if align == "none":
        matched = np.broadcast_to(times, matched.shape)
    elif progress is not None:
        matched = _equal_progress(progress, first.times, second.times)[:, chosen]
        scale = _mean_scale(matched, times)
    labels = best_relabelling(shapes(matched), target, symmetry)[1]
    if align == "scaling":
        for _ in range(3):
            moved = Paths(_relabelled(first.positions, symmetry.permutations[labels]), first.times)
            scale = _best_scale(moved, second, times[start:], target[:, start:], error, dim, states, planar)
            matched = np.broadcast_to(times * scale.estimate, matched.shape)
            before, labels = labels, best_relabelling(shapes(matched), target, symmetry)[1]
            if np.array_equal(before, labels):
                break
    found = shapes(matched)
    errors = error(_relabelled(found, symmetry.permutations[labels]), target)
    chance = np.full_like(errors, np.nan)
    if len(pairs) > 1:
        other = np.roll(found, 1, axis=0)
        strange = best_relabelling(other, target, symmetry)[1]
        chance = error(_relabelled(other, symmetry.permutations[strange]), target)
    return Motion(
        pairs,
        paired,
        symmetry.permutations[labels],
        align,
        scale,
        times,
        np.array(matched),
        errors,
        chance,
        _over_pairs(errors[:, start:]),
        _over_pairs(chance[:, start:]),
    )


def relative_error(a: Array, b: Array) -> Array:
    """Squared distance of states (…, N, D) over the variance of the second: 1 - R² across its components."""
    spread = np.sum((b - b.mean(axis=-2, keepdims=True)) ** 2, axis=(-2, -1))
    missed = np.sum((a - b) ** 2, axis=(-2, -1))
    return np.asarray(missed / np.where(spread > 0, spread, np.nan))


def monotone(values: Array) -> Array:
    """Progress (frames,) without setbacks: the nearest monotone curve, rising or falling as the ends say."""
    rising = bool(values[-1] >= values[0])
    return np.asarray(isotonic_regression(values, increasing=rising).x)


def same_progress(first: Array, second: Array, first_times: Array, times: Array) -> Array:
    """Times of the first at which its progress is what that of the second is at its frames (frames,).

    Where a level lasts, the part of the second's stay at it that has passed is taken of the first's stay. NaN
    where the first never is at such a level.
    """
    a, b = monotone(first), monotone(second)
    if (a[-1] >= a[0]) != (b[-1] >= b[0]) or np.ptp(a) == 0 or np.ptp(b) == 0:
        return np.full(len(times), np.nan)
    if a[-1] < a[0]:
        a, b = -a, -b
    level, begin = np.unique(a, return_index=True)
    end = np.searchsorted(a, level, side="right") - 1
    enter, leave = np.interp(b, level, first_times[begin]), np.interp(b, level, first_times[end])
    stay, place = np.unique(b, return_inverse=True)
    since, until = (np.searchsorted(b, stay, side=side) for side in ("left", "right"))
    length = times[until - 1] - times[since]
    passed = np.divide(
        times - times[since][place], length[place], out=np.full(len(times), 0.5), where=length[place] > 0
    )
    found = enter + passed * (leave - enter)
    slack = 1e-12 * max(abs(a[0]), abs(a[-1]))
    return np.where((b >= a[0] - slack) & (b <= a[-1] + slack), found, np.nan)


def _equal_progress(progress: tuple[Array, Array], clock: Array, times: Array) -> Array:
    """Times (n, frames) of the first at equal progress, for each pair."""
    matched = np.array([same_progress(a, b, clock, times) for a, b in zip(*progress, strict=True)])
    if not np.isfinite(matched).any():
        raise InputError("align must name an observable that passes the same values in both, got none such")
    return matched


def _mean_scale(matched: Array, times: Array) -> Interval:
    """Geometric mean over pairs of the slope of one clock against the other."""
    sound = np.isfinite(matched)
    top = np.where(sound, matched * times, 0).sum(axis=1)
    below = np.where(sound, times**2, 0).sum(axis=1)
    slopes = top[(top > 0) & (below > 0)] / below[(top > 0) & (below > 0)]
    return mean(np.log(slopes)).map(math.exp)


def _ratio(first: Paths, second: Paths) -> float:
    return first.duration / second.duration


def _relabelled(positions: NDArray[Any], permutations: NDArray[np.int64]) -> NDArray[Any]:
    """Positions (n, frames, tokens, dim) with the tokens of each run in the order of its permutation."""
    return np.take_along_axis(positions, permutations[:, None, :, None], axis=2)


def _best_scale(
    first: Paths,
    second: Paths,
    times: Array,
    target: Array,
    error: Error,
    dim: int,
    states: bool,
    planar: bool,
) -> Interval:
    """τ with the least error, means over frames and pairs, and its interval by drawing pairs again."""
    factors = np.geomspace(1 / 8, 4, MANY_FACTORS if planar else FACTORS)
    logarithms = np.log(_ratio(first, second) * factors)
    rows = []
    for tau in np.exp(logarithms):
        found = first.at(times * tau)
        rows.append(frame_mean(error(found if states else standard(found, dim), target)))
    errors = np.stack(rows, axis=1)
    errors = errors[np.isfinite(errors).all(axis=1)]
    if not len(errors):
        return Interval(np.nan, np.nan, np.nan, 0)

    def best(drawn: Array) -> Array:
        return _least(drawn.mean(axis=1), logarithms)

    return bootstrap_mean(errors, best).map(math.exp)


def _least(values: Array, places: Array) -> Array:
    """Where curves (n, places) on an even grid are least, by the parabola through the least value."""
    at = np.clip(values.argmin(axis=1), 1, values.shape[1] - 2)
    low, middle, high = (np.take_along_axis(values, (at + k)[:, None], axis=1)[:, 0] for k in (-1, 0, 1))
    bend = low - 2 * middle + high
    shift = np.divide(low - high, 2 * bend, out=np.zeros(len(at)), where=bend > 0)
    return np.asarray(places[at] + np.clip(shift, -1, 1) * (places[1] - places[0]))


def frame_mean(errors: Array) -> Array:
    """Mean over the frames (…, frames) that have a counterpart; NaN without one."""
    sound = np.isfinite(errors)
    count = sound.sum(axis=-1)
    total = np.where(sound, errors, 0).sum(axis=-1)
    return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)


def _over_pairs(errors: Array) -> Interval:
    values = frame_mean(errors)
    return mean(values[np.isfinite(values)])
