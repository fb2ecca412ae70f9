"""The motion of two ensembles: a common clock, and the distance of the shapes at corresponding times."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from analysis.compare.relabelling import Symmetry, best_relabelling, disparity, standard
from analysis.stats.effects import bootstrap
from analysis.stats.intervals import Interval, mean
from physics.errors import InputError

Array = NDArray[np.float64]
FRAMES, MANY_FRAMES = 16, 48
"""Numbers of frames that are compared, for point sets in many and in up to 2 dimensions."""
SCANNED = 12
"""Number of frames on which a time scaling is judged."""
SCALES = 1 / 8, 4
"""Smallest and largest time scaling that is tried, relative to the one with which both end together."""
FEW_FACTORS, FACTORS = 33, 65
"""Numbers of factors that are tried between these, and again around the best one."""
WINDOW, MOVES = 1.25, 8
"""Half width of the window around the best factor, and the number of times that it may move."""
PROGRESS_RESAMPLES = 500


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
        """Interpolate positions (runs, n, tokens, dim) at times (n,) or (runs, n); NaN outside the record."""
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
    """Distance of pairs of runs over time, at times that correspond to each other.

    Attributes
    ----------
    pairs : ndarray of int64, shape (n, 2)
        Run of the first ensemble and run of the second.
    paired : bool
        Whether the runs of a pair belong together. Otherwise the run of the first ensemble is the one whose
        final shape is nearest to that of the run of the second.
    relabelling : ndarray of int64, shape (n, tokens)
        Token i of the second is token ``relabelling[k, i]`` of the first, the same in all frames.
    alignment : str
        How times were matched: "scaling", "ends", "none", or the name of an observable.
    scale : Interval
        Factor τ: the time of the first ensemble that corresponds to one unit of time of the second.
    times : ndarray, shape (frames,)
        Times of the second ensemble, from its start.
    matched : ndarray, shape (n, frames)
        Time of the first ensemble that corresponds to each of them.
    error : ndarray, shape (n, frames)
        Procrustes disparity, or relative squared error of states. NaN if the first ensemble has no such time.
    chance : ndarray, shape (m, frames)
        Error that the same search gives by chance; NaN if the first ensemble has a single run. For paired
        runs, each run of the second ensemble is compared with the partner of another run. If partners were
        chosen because they end nearest, each run of the first ensemble is compared with the nearest other run
        of the first. Two ensembles with the same law are then as near to each other as to themselves.
    mean_error, chance_error : Interval
        Means over frames and then over pairs, without the start if the runs share it. If partners were
        chosen, `mean_error` leaves one run of the first ensemble out of the choice, so that both means are
        over equally many candidates.
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

    def at_edge(self, ratio: float) -> bool:
        """Return whether τ lies at an end of the search range, so that the true value may lie beyond.

        Parameters
        ----------
        ratio : float
            Center of the search range, on a logarithmic scale: the factor with which both end together.

        Returns
        -------
        bool
        """
        place = np.log(self.scale.estimate / ratio)
        return bool(place < np.log(SCALES[0]) + 0.05 or place > np.log(SCALES[1]) - 0.05)


@dataclass(frozen=True, eq=False)
class Chosen:
    """The choice of partners whose ends are nearest, and the same choice within the first ensemble.

    Attributes
    ----------
    candidates : int
        Number of runs of the first ensemble among which the partners were chosen.
    next_best : Paths
        For each pair, the run of the first ensemble that ends second nearest.
    runs, partners : Paths
        Runs of the first ensemble, and for each the other run of the first that ends nearest to it.
    """

    candidates: int
    next_best: Paths
    runs: Paths
    partners: Paths


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
    chosen: Chosen | None = None,
) -> Motion:
    """Match the times of pairs of runs, and measure the error over time.

    Parameters
    ----------
    first, second : Paths
        Row k of each belongs to pair k.
    pairs, paired : ndarray of int64 (n, 2), bool
        Runs of the pairs, and whether they belong together, which the result keeps.
    symmetry : Symmetry
    align : str
        "scaling" takes the factor τ with the least mean error, "ends" the factor with which both end
        together, and "none" leaves times as they are. Any other word names the observable in `progress`.
    progress : pair of ndarray, optional
        An observable of each ensemble (runs, frames). Frames of equal progress are compared, pair by pair if
        runs are paired, and otherwise by the means over the runs.
    states : bool, default False
        Whether to compare coordinates without rotation, scaling or relabeling.
    chosen : Chosen, optional
        How partners were chosen, if it was by their ends. The level of chance is then measured by the same
        choice.
    """
    many = max(first.positions.shape[-1], second.positions.shape[-1]) <= 2
    count = min(MANY_FRAMES if many else FRAMES, len(second.times))
    frames = np.unique(np.linspace(0, len(second.times) - 1, count).round().astype(int))
    times = second.times[frames]
    beside = _Beside(first, second, symmetry, states)
    start = 1 if paired and len(times) > 1 else 0
    matched = np.broadcast_to(times, (len(pairs), len(times)))
    scale = Interval(1.0, np.nan, np.nan, len(pairs))
    if align == "scaling":
        factors = FACTORS if many else FEW_FACTORS
        scale = _best_scale(beside, times[start:], factors)
        matched = matched * scale.estimate
    elif align == "ends":
        matched = matched * (first.duration / second.duration)
        scale = Interval(first.duration / second.duration, np.nan, np.nan, len(pairs))
    elif progress is not None:
        matched, scale = _by_progress(*progress, first.times, second.times, paired)
        matched = matched[:, frames] if paired else np.tile(matched[:, frames], (len(pairs), 1))
    labels, errors = beside.errors(matched, times)
    judged, chance = errors, np.full_like(errors, np.nan)
    if chosen is not None:
        others = _Beside(chosen.next_best, second, symmetry, states).errors(matched, times)[1]
        judged = errors + (others - errors) / chosen.candidates
        clock = np.tile(matched[:1], (len(chosen.runs.positions), 1))
        chance = _Beside(chosen.partners, chosen.runs, symmetry, states).errors(clock, clock)[1]
    elif paired and len(pairs) > 1:
        strange, strangely = beside.strange(), np.roll(matched, 1, axis=0)
        if align == "scaling":
            strangely = np.tile(
                times * _best_scale(strange, times[start:], factors).estimate, (len(pairs), 1)
            )
        chance = strange.errors(strangely, times)[1]
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
        _over_pairs(judged[:, start:]),
        _over_pairs(chance[:, start:]),
    )


@dataclass(frozen=True, eq=False)
class _Beside:
    """Runs of two ensembles, matched row by row, and how their frames are compared."""

    first: Paths
    second: Paths
    symmetry: Symmetry
    states: bool

    @property
    def runs(self) -> int:
        """Number of pairs."""
        return len(self.first.positions)

    def strange(self) -> "_Beside":
        """Return each run of the second ensemble with the partner of the previous one."""
        rolled = Paths(np.roll(self.first.positions, 1, axis=0), self.first.times)
        return _Beside(rolled, self.second, self.symmetry, self.states)

    def frames(self, matched: Array, times: Array) -> tuple[Array, Array]:
        """Return frames (n, frames, tokens, dim) of both: standard shapes, or unchanged states."""
        found, target = self.first.at(matched), self.second.at(times)
        if self.states:
            return found, target
        dim = max(found.shape[-1], target.shape[-1])
        return standard(found, dim), standard(target, dim)

    def errors(self, matched: Array, times: Array) -> tuple[NDArray[np.int64], Array]:
        """Return the numbers (n,) of the best relabelings over all frames, and the errors (n, frames)."""
        found, target = self.frames(matched, times)
        if self.states:
            return np.zeros(len(found), np.int64), relative_error(found, target)
        labels = best_relabelling(found, target, self.symmetry)[1]
        return labels, disparity(_relabelled(found, self.symmetry.permutations[labels]), target)


def relative_error(a: Array, b: Array) -> Array:
    """Return the squared distance of states (…, N, D) over the variance of the second, which is 1 - R²."""
    spread = np.sum((b - b.mean(axis=-2, keepdims=True)) ** 2, axis=(-2, -1))
    missed = np.sum((a - b) ** 2, axis=(-2, -1))
    return np.asarray(missed / np.where(spread > 0, spread, np.nan))


def monotone(values: Array) -> Array:
    """Return the monotone curve (frames,) nearest to a progress, rising or falling according to its ends."""
    rising = bool(values[-1] >= values[0])
    return np.asarray(isotonic_regression(values, increasing=rising).x)


def same_progress(first: Array, second: Array, first_times: Array, times: Array) -> Array:
    """Return the times of the first at which its progress equals that of the second at its frames (frames,).

    While both stay at one level, equal fractions of their stays correspond. NaN where the first is never at
    the level.
    """
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


def _by_progress(
    first: Array, second: Array, clock: Array, times: Array, paired: bool
) -> tuple[Array, Interval]:
    """Return times of the first (pairs or 1, frames) at equal progress, and the mean time factor."""
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
        scale = bootstrap(runs, factor, resamples=PROGRESS_RESAMPLES).map(math.exp)
    if not np.isfinite(matched).any():
        raise InputError(
            "align must name an observable that takes the same values in both ensembles, got one that does "
            "not"
        )
    return matched, scale


def _log_factor(matched: Array, times: Array) -> Array:
    """Return the mean logarithm (n,) of the ratio of times (n, frames) where both are after the start."""
    sound = np.isfinite(matched) & (matched > 0) & (times > 0)
    logarithm = np.log(np.where(sound, matched, 1.0)) - np.log(np.where(times > 0, times, 1.0))
    return frame_mean(np.where(sound, logarithm, np.nan))


def _relabelled(positions: NDArray[Any], permutations: NDArray[np.int64]) -> NDArray[Any]:
    """Return positions (n, frames, tokens, dim) with the tokens of each run permuted."""
    return np.take_along_axis(positions, permutations[:, None, :, None], axis=2)


def _best_scale(beside: _Beside, times: Array, count: int) -> Interval:
    """Return the τ with the least mean error over frames and pairs, and its interval by resampling pairs.

    A first scan goes over all factors. A frame without a counterpart then counts with its mean over the other
    factors, so that leaving it out neither helps nor hurts. Next, a narrower window, with only those frames
    that always have a counterpart, moves until the best factor lies within it. Otherwise there is no
    interval.
    """
    ratio = beside.first.duration / beside.second.duration
    coarse = _scan(beside, _spread(times), np.log(ratio * np.geomspace(*SCALES, count)))
    centre = coarse.estimate
    for _ in range(MOVES):
        window = np.log(centre) + np.log(WINDOW) * np.linspace(-1, 1, count)
        covered = times[times * centre * WINDOW <= beside.first.duration]
        if len(covered) < 2:
            break
        fine = _scan(beside, _spread(covered), window)
        low, high = np.exp(window[[1, -2]])
        if low < fine.estimate < high:
            return Interval(
                fine.estimate,
                fine.low if fine.low > low else min(coarse.low, fine.low),
                fine.high if fine.high < high else max(coarse.high, fine.high),
                fine.count,
            )
        centre = fine.estimate
    return Interval(coarse.estimate, np.nan, np.nan, coarse.count)


def _spread(times: Array) -> Array:
    return times[np.unique(np.linspace(0, len(times) - 1, SCANNED).round().astype(int))]


def _scan(beside: _Beside, times: Array, logarithms: Array) -> Interval:
    """Return the best of some factors, given by their logarithms."""
    errors = np.stack(
        [beside.errors(np.tile(times * tau, (beside.runs, 1)), times)[1] for tau in np.exp(logarithms)],
        axis=1,
    )
    sound = np.asarray(np.isfinite(errors).any(axis=1)).all(axis=1)
    if not sound.any():
        return Interval(np.nan, np.nan, np.nan, 0)
    errors = errors[sound]
    errors = np.where(np.isfinite(errors), errors, np.nanmean(errors, axis=1, keepdims=True)).mean(axis=2)
    return bootstrap((errors,), lambda rows: _least(rows.mean(axis=1), logarithms)).map(math.exp)


def _least(values: Array, places: Array) -> Array:
    """Return where curves (n, places) on an even grid are smallest, by interpolating parabolas."""
    at = np.clip(values.argmin(axis=1), 1, values.shape[1] - 2)
    low, middle, high = (np.take_along_axis(values, (at + k)[:, None], axis=1)[:, 0] for k in (-1, 0, 1))
    bend = low - 2 * middle + high
    shift = np.divide(low - high, 2 * bend, out=np.zeros(len(at)), where=bend > 0)
    return np.asarray(places[at] + np.clip(shift, -1, 1) * (places[1] - places[0]))


def frame_mean(errors: Array) -> Array:
    """Return the mean over the frames (…, frames) that have a counterpart; NaN if none has."""
    sound = np.isfinite(errors)
    count = sound.sum(axis=-1)
    total = np.where(sound, errors, 0).sum(axis=-1)
    return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)


def _over_pairs(errors: Array) -> Interval:
    values = frame_mean(errors)
    return mean(values[np.isfinite(values)])
