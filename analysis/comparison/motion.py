"""The motion of two ensembles: a common clock, and the distance of their shapes at corresponding times."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.comparison.relabelling import Symmetry, best_relabelling, disparity, relabelling_gains, standard
from analysis.stats.effects import bootstrap
from analysis.stats.intervals import Interval, mean
from physics.values import Array, Integers, Shown


def frame_mean(errors: Array) -> Array:
    """Return the mean (...) of those errors (..., frames) that are finite; NaN if none is."""
    sound = np.isfinite(errors)
    count = sound.sum(axis=-1)
    total = np.where(sound, errors, 0).sum(axis=-1)
    return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)


FRAMES, MANY_FRAMES = 16, 48
"""Largest numbers of frames that are compared, in more than 2 dimensions and in up to 2."""
SCANNED = 12
"""Number of frames from which the error of a time scaling is computed."""
SCALES = 1 / 8, 4
"""Smallest and largest time scaling that is tried, relative to the one with which both end together."""
FEW_FACTORS, FACTORS = 33, 65
"""Numbers of scalings that are tried in this range, in more than 2 dimensions and in up to 2."""
CANDIDATES, LOOKS = 8, 4
"""Number of relabelings of a pair that a long search goes on with, and of frames by which they are chosen."""
LONG = 200_000
"""Number of singular value decompositions beyond which a search over relabelings is long."""
WINDOW, MOVES = 1.25, 8
"""Half width of the window around the best scaling, as a factor; number of times that it may move."""


@dataclass(frozen=True, eq=False)
class Paths:
    """Positions of one ensemble over time.

    Attributes
    ----------
    positions : ndarray, shape (runs, frames, tokens, dim)
        Positions at each frame.
    times : ndarray of float64, shape (frames,)
        Times of the frames; the first one is 0.
    """

    positions: NDArray[Any]
    times: Array

    @property
    def duration(self) -> float:
        """Time of the last frame."""
        return float(self.times[-1])

    def at(self, times: Array) -> Array:
        """Return positions (runs, n, tokens, dim), as float64, that are interpolated between the frames.

        `times` are (n,) for all runs or (runs, n). Positions are NaN at times outside the record.
        """
        clock = np.broadcast_to(times, (len(self.positions), np.shape(times)[-1]))
        place = np.clip(np.searchsorted(self.times, clock, side="right") - 1, 0, len(self.times) - 2)
        runs = np.arange(len(self.positions))[:, None]
        gap = self.times[place + 1] - self.times[place]
        part = ((clock - self.times[place]) / gap)[..., None, None]
        before, after = self.positions[runs, place], self.positions[runs, place + 1]
        positions = before + part * (after.astype(np.float64) - before)
        outside = ~((clock >= 0) & (clock <= self.duration * (1 + 1e-12)))
        positions[outside] = np.nan
        return np.asarray(positions)


@dataclass(frozen=True, eq=False)
class Motion(Shown):
    """Distance between pairs of runs over time, at times that correspond; a part of `Comparison`.

    Attributes
    ----------
    pairs : ndarray of int64, shape (n, 2)
        Run of the first ensemble and run of the second.
    paired : bool
        Whether run k of the first ensemble is compared with run k of the second. Otherwise the run of the
        first is the one whose final shape is nearest to the final shape of the run of the second.
    relabelling : ndarray of int64, shape (n, tokens)
        Token i of the second is token ``relabelling[k, i]`` of the first, the same in all frames.
    alignment : str
        How times were matched: "scaling", "ends" or "none".
    scale : Interval
        Factor τ: the time of the first ensemble that corresponds to one unit of time of the second.
    times : ndarray of float64, shape (frames,)
        Times of the second ensemble, from its start.
    matched : ndarray of float64, shape (n, frames)
        Time of the first ensemble that corresponds to each of them.
    error : ndarray of float64, shape (n, frames)
        Procrustes disparity. NaN if the first ensemble has no such time.
    chance : ndarray of float64, shape (m, frames)
        Error that the same search gives by chance, for the n pairs of paired runs or for m runs of the first
        ensemble; NaN if the first ensemble has a single run.
    mean_error, chance_error : Interval
        Means of `error` and `chance` over frames and then over pairs, without the start if runs are paired.

    Notes
    -----
    How chance is measured depends on how pairs are made. For paired runs, each run of the second ensemble is
    compared with the partner of another run. Otherwise each run of the first ensemble is compared with the
    nearest other run of the first, so that two ensembles with the same law are as near to each other as to
    themselves. `mean_error` then leaves one run of the first ensemble out of the choice, so that both means
    are over equally many candidates.

    Examples
    --------
    >>> import analysis, numpy as np
    >>> motion = analysis.compare(*np.random.default_rng(0).normal(size=(2, 5, 3, 7, 2))).motion
    >>> motion.alignment, motion.error.shape
    ('ends', (5, 3))
    """

    pairs: Integers
    paired: bool
    relabelling: Integers
    alignment: str
    scale: Interval
    times: Array
    matched: Array
    error: Array
    chance: Array
    mean_error: Interval
    chance_error: Interval


@dataclass(frozen=True, eq=False)
class Chosen:
    """Partners whose final positions are nearest, and the same choice of partners within the first ensemble.

    Attributes
    ----------
    candidates : int
        Number of runs of the first ensemble among which the partners were chosen.
    next_best : Paths
        For each pair, the run of the first ensemble whose final positions are second nearest to those of the
        run of the second ensemble.
    runs, partners : Paths
        Runs of the first ensemble, and for each of them the nearest other run of the first.
    """

    candidates: int
    next_best: Paths
    runs: Paths
    partners: Paths


@dataclass(frozen=True, eq=False)
class PathPairs:
    """Runs of two ensembles, matched row by row, with the rule by which their frames are compared.

    Attributes
    ----------
    first, second : Paths
        Paths of both ensembles, of which row k are the runs of pair k.
    symmetry : Symmetry
        Relabelings of the tokens to search.
    candidates : ndarray of int64, shape (pairs, n), optional
        Relabelings to search for each pair, by default all.
    """

    first: Paths
    second: Paths
    symmetry: Symmetry
    candidates: Integers | None = None

    @property
    def runs(self) -> int:
        """Number of pairs."""
        return len(self.first.positions)

    @property
    def flat(self) -> bool:
        """Whether both ensembles have at most two dimensions, in which relabelings are found quickly."""
        return self._dim <= 2

    @property
    def _dim(self) -> int:
        return max(self.first.positions.shape[-1], self.second.positions.shape[-1])

    def mismatched(self) -> "PathPairs":
        """Return each run of the second ensemble with the partner of the previous one, a null model."""
        rolled = Paths(np.roll(self.first.positions, 1, axis=0), self.first.times)
        return replace(self, first=rolled, candidates=None)

    def frames(self, paths: Paths, times: Array) -> Array:
        """Return frames (n, frames, tokens, dim) of an ensemble, as standard shapes."""
        return standard(paths.at(times), self._dim)

    def errors(self, matched: Array, times: Array, target: Array | None = None) -> tuple[Integers, Array]:
        """Return the indices (n,) of the best relabelings over all frames, and the errors (n, frames).

        `target` are the frames of the second ensemble at `times`, if they are known already.
        """
        moved = self.frames(self.first, matched)
        target = self.frames(self.second, times) if target is None else target
        if self.candidates is None:
            labels = best_relabelling(moved, target, self.symmetry)[1]
        else:
            labels = np.empty(len(moved), np.int64)
            for k, numbers in enumerate(self.candidates):
                few = Symmetry(self.symmetry.name, self.symmetry.permutations[numbers])
                labels[k] = numbers[best_relabelling(moved[k], target[k], few)[1]]
        order = self.symmetry.permutations[labels][:, None, :, None]
        return labels, disparity(np.take_along_axis(moved, order, axis=2), target)

    def narrowed(self, times: Array) -> "PathPairs":
        """Return the same pairs with only a few relabelings of each, if a search over all would take long.

        They are those that fit best at a few times if both ensembles end together, and the identity.
        """
        if self.flat or self.runs * len(self.symmetry) * SCANNED * FEW_FACTORS < LONG:
            return self
        looks = times[_places(len(times), LOOKS)]
        clocks = np.tile(looks * (self.first.duration / self.second.duration), (self.runs, 1))
        moved, target = self.frames(self.first, clocks), self.frames(self.second, looks)
        candidates = np.zeros((self.runs, CANDIDATES), np.int64)
        for k in range(self.runs):
            gain = relabelling_gains(moved[k], target[k], self.symmetry)
            candidates[k, 1:] = np.argsort(-gain[1:], kind="stable")[: CANDIDATES - 1] + 1
        return replace(self, candidates=np.sort(candidates, axis=1))


def compare_motion(
    runs: PathPairs,
    pairs: Integers,
    paired: bool,
    align: str,
    chosen: Chosen | None = None,
) -> Motion:
    """Match the times of pairs of runs, and measure the distance of the pairs over time.

    `pairs` (n, 2) are the numbers of the runs, and `align` is "scaling", "ends" or "none". `chosen` tells how
    partners were chosen, if it was by their ends.
    """
    first, second = runs.first, runs.second
    times = second.times[_places(len(second.times), MANY_FRAMES if runs.flat else FRAMES)]
    runs = runs.narrowed(times)
    start = 1 if paired and len(times) > 1 else 0
    matched = np.broadcast_to(times, (len(pairs), len(times)))
    scale = Interval(1.0, np.nan, np.nan, len(pairs))
    if align == "scaling":
        scale = _best_scale(runs, times[start:])
        matched = matched * scale.estimate
    elif align == "ends":
        scale = Interval(first.duration / second.duration, np.nan, np.nan, len(pairs))
        matched = matched * scale.estimate
    labels, errors = runs.errors(matched, times)
    judged, chance = errors, np.full_like(errors, np.nan)
    if chosen is not None:
        runners_up = replace(runs, first=chosen.next_best, candidates=None).narrowed(times)
        judged = errors + (runners_up.errors(matched, times)[1] - errors) / chosen.candidates
        clock = np.tile(matched[:1], (len(chosen.runs.positions), 1))
        within = replace(runs, first=chosen.partners, second=chosen.runs, candidates=None)
        chance = within.narrowed(clock[0]).errors(clock, clock)[1]
    elif paired and len(pairs) > 1:
        mismatched, clocks = runs.mismatched().narrowed(times), matched
        if align == "scaling":
            clocks = np.tile(times * _best_scale(mismatched, times[start:]).estimate, (len(pairs), 1))
        chance = mismatched.errors(clocks, times)[1]
    relabelling, matched = runs.symmetry.permutations[labels], np.array(matched)
    each = [frame_mean(x[:, start:]) for x in (judged, chance)]
    means = [mean(values[np.isfinite(values)]) for values in each]
    return Motion(pairs, paired, relabelling, align, scale, times, matched, errors, chance, *means)


def _places(count: int, most: int) -> Integers:
    """Return up to `most` indices of `count` items, evenly spread over them, the ends included."""
    return np.unique(np.linspace(0, count - 1, min(most, count)).round().astype(np.int64))


def _best_scale(beside: PathPairs, times: Array) -> Interval:
    """Return the time factor with the least mean error, with an interval by resampling pairs.

    A first scan covers the whole range of factors. Where a factor leaves a frame without a counterpart, the
    frame counts with its mean error at the other factors, so that no factor gains by this. Next, a narrower
    window of factors, with only those frames that have a counterpart at all of them, moves until the best
    factor lies within it. If it never does, there is no interval.
    """
    ratio, count = beside.first.duration / beside.second.duration, FACTORS if beside.flat else FEW_FACTORS
    coarse = _scan(beside, times, np.log(ratio * np.geomspace(*SCALES, count)))
    center = coarse.estimate
    for _ in range(MOVES):
        window = np.log(center) + np.log(WINDOW) * np.linspace(-1, 1, count)
        covered = times[times * center * WINDOW <= beside.first.duration]
        if len(covered) < 2:
            break
        fine = _scan(beside, covered, window)
        low, high = np.exp(window[[1, -2]])
        if low < fine.estimate < high:
            lower = fine.low if fine.low > low else min(coarse.low, fine.low)
            upper = fine.high if fine.high < high else max(coarse.high, fine.high)
            return Interval(fine.estimate, lower, upper, fine.count)
        center = fine.estimate
    return Interval(coarse.estimate, np.nan, np.nan, coarse.count)


def _scan(beside: PathPairs, times: Array, logarithms: Array) -> Interval:
    """Return the time factor with the least mean error, with its interval by resampling pairs.

    The factors to try are given by their `logarithms` (n,). Both ensembles are compared at up to `SCANNED` of
    the `times` (frames,) of the second. The result is NaN if no pair can be compared at all factors.
    """
    times = times[_places(len(times), SCANNED)]
    target = beside.frames(beside.second, times)
    clocks = [np.tile(times * tau, (beside.runs, 1)) for tau in np.exp(logarithms)]
    errors = np.stack([beside.errors(clock, times, target)[1] for clock in clocks], axis=1)
    sound = np.asarray(np.isfinite(errors).any(axis=1)).all(axis=1)
    if not sound.any():
        return Interval(np.nan, np.nan, np.nan, 0)
    errors = errors[sound]
    errors = np.where(np.isfinite(errors), errors, np.nanmean(errors, axis=1, keepdims=True)).mean(axis=2)
    return bootstrap((errors,), lambda rows: _least(rows.mean(axis=1), logarithms)).map(math.exp)


def _least(values: Array, places: Array) -> Array:
    """Return the positions (n,) of the minima of curves (n, places) on an even grid, by fitting parabolas."""
    at = np.clip(values.argmin(axis=1), 1, values.shape[1] - 2)
    low, middle, high = (np.take_along_axis(values, (at + k)[:, None], axis=1)[:, 0] for k in (-1, 0, 1))
    bend = low - 2 * middle + high
    shift = np.divide(low - high, 2 * bend, out=np.zeros(len(at)), where=bend > 0)
    return np.asarray(places[at] + np.clip(shift, -1, 1) * (places[1] - places[0]))
