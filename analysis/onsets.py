"""When something sets in: times that may not have been reached, compared without pretending they were."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from analysis.effects import Z
from analysis.statistics import Interval, mean, proportion
from physics.errors import InputError

Array = NDArray[np.float64]
RATIOS = 120
"""Ratios that are tried for the interval."""


@dataclass(frozen=True, eq=False)
class Onsets:
    """Onset times of one ensemble, right-censored.

    Attributes
    ----------
    times : ndarray, shape (runs,)
        When it set in, or, where it did not, when the run was last looked at.
    reached : ndarray of bool, shape (runs,)
    """

    times: Array
    reached: NDArray[np.bool_]

    def scaled(self, factor: float) -> "Onsets":
        """Return the same onsets on another clock, all times multiplied by `factor`."""
        return Onsets(self.times * factor, self.reached)

    @property
    def fraction(self) -> Interval:
        """Part of the runs that reached it before they ended, with Wilson's interval."""
        return proportion(int(self.reached.sum()), len(self.reached))

    @property
    def median(self) -> Interval:
        """Kaplan-Meier median with the Brookmeyer-Crowley interval; infinite where half never reach it."""
        times, alive, low, high = self.curve()
        middle, early, late = (_first_below(times, values) for values in (alive, low, high))
        if len(self.times) < 2:
            early = late = math.nan
        return Interval(middle, early, late, len(self.times))

    def curve(self) -> tuple[Array, Array, Array, Array]:
        """Kaplan-Meier estimate: times, part of the runs that have not reached it, and its 95 % band.

        The band is Greenwood's on the scale of log(-log), NaN where it is not defined.
        """
        times = np.unique(self.times[self.reached])
        at_risk = (self.times >= times[:, None]).sum(axis=1)
        events = ((self.times == times[:, None]) & self.reached).sum(axis=1)
        alive = np.cumprod(1 - events / np.maximum(at_risk, 1))
        with np.errstate(divide="ignore", invalid="ignore"):
            greenwood = np.cumsum(events / (at_risk * (at_risk - events)))
            half = Z * np.sqrt(greenwood) / np.abs(np.log(alive))
            low, high = alive ** np.exp(half), alive ** np.exp(-half)
        inside = (alive > 0) & (alive < 1)
        low, high = np.where(inside, low, np.nan), np.where(inside, high, np.nan)
        start = np.array([0.0]), np.array([1.0])
        return (
            np.concatenate([start[0], times]),
            np.concatenate([start[1], alive]),
            np.concatenate([start[1], low]),
            np.concatenate([start[1], high]),
        )


@dataclass(frozen=True, eq=False)
class OnsetDifference:
    """When something sets in, in two ensembles.

    Attributes
    ----------
    name : str
    first, second : Onsets
    p_value : float
        Two-sided log-rank test that they set in at the same times; NaN without an onset.
    ratio : Interval
        How many times as long the second takes: the factor on the times of the first at which the log-rank
        statistic vanishes, and those at which it is not significant (Wei and Gail 1983). It uses runs that
        never reach it for what they say. A bound is infinite or 0 where the data do not limit it.
    paired_ratio : Interval
        Geometric mean of second over first, over the pairs of runs in which both set in; NaN if not paired.
    """

    name: str
    first: Onsets
    second: Onsets
    p_value: float
    ratio: Interval
    paired_ratio: Interval


def compare_onsets(
    name: str, first: Onsets, second: Onsets, *, pairs: Iterable[tuple[int, int]] = ()
) -> OnsetDifference:
    """Compare two ensembles of right-censored times; `pairs` are runs (i, j) that belong together."""
    statistic = log_rank(first, second)
    return OnsetDifference(
        name,
        first,
        second,
        float(2 * stats.norm.sf(abs(statistic))),
        onset_ratio(first, second),
        _paired_ratio(first, second, pairs),
    )


def onsets(values: Any, times: Any, threshold: float, *, lasting: bool = False) -> Onsets:
    """When a quantity first is at or above a threshold.

    Parameters
    ----------
    values : array_like, shape (runs, frames)
        NaN is below every threshold.
    times : array_like, shape (frames,)
    threshold : float
    lasting : bool, default False
        Look for when it is at or above the threshold for good: in all frames from then on.

    Returns
    -------
    Onsets
        A run that does not reach it is censored at the last time.
    """
    array, clock = np.asarray(values, np.float64), np.asarray(times, np.float64)
    if array.ndim != 2 or clock.shape != array.shape[1:] or not array.size:
        raise InputError(
            f"values and times must have the shapes (runs, frames) and (frames,), got {array.shape} and "
            f"{clock.shape}"
        )
    above = array >= threshold
    if lasting:
        above = np.logical_and.accumulate(above[:, ::-1], axis=1)[:, ::-1]
    reached = np.asarray(above.any(axis=1))
    return Onsets(np.where(reached, clock[above.argmax(axis=1)], clock[-1]), reached)


def log_rank(first: Onsets, second: Onsets, scale: float = 1.0) -> float:
    """Log-rank statistic, standard normal where times are alike; positive where the first set in earlier.

    `scale` multiplies the times of the first. NaN where nothing has set in.
    """
    x, y = first.scaled(scale).times, second.times
    events = np.unique(np.concatenate([x[first.reached], y[second.reached]]))
    n1, n2 = ((values >= events[:, None]).sum(axis=1) for values in (x, y))
    d1 = ((x == events[:, None]) & first.reached).sum(axis=1)
    d = d1 + ((y == events[:, None]) & second.reached).sum(axis=1)
    n = n1 + n2
    variance = float(np.sum(d * n1 * n2 * (n - d) / np.maximum(n**2 * (n - 1), 1)))
    return float(np.sum(d1 - d * n1 / n)) / math.sqrt(variance) if variance > 0 else math.nan


def onset_ratio(first: Onsets, second: Onsets) -> Interval:
    """How many times as long the second takes, by inverting the log-rank test; see `OnsetDifference`."""
    count = len(first.times) + len(second.times)
    x, y = _positive(first), _positive(second)
    if not x.reached.any() or not y.reached.any():
        return Interval(np.nan, np.nan, np.nan, count)
    ratios = np.unique(y.times[None, y.reached] / x.times[x.reached, None])
    tried = np.unique(np.quantile(ratios, np.linspace(0, 1, RATIOS)))
    # Just above a ratio, so that equal times count as reached in turn and not together.
    tried = np.append(tried[0] * (1 - 1e-9), tried * (1 + 1e-9))
    z = np.array([log_rank(x, y, scale) for scale in tried])
    # The statistic falls from factor to factor: it is positive before the estimate and negative behind it.
    last = len(tried) - 1
    at = int(np.flatnonzero(z > 0)[-1]) if (z > 0).any() else 0
    estimate = float(np.sqrt(tried[at] * tried[min(at + 1, last)]))
    if min(len(x.times), len(y.times)) < 2:
        return Interval(estimate, np.nan, np.nan, count)
    too_low, too_high = np.flatnonzero(z > Z), np.flatnonzero(z < -Z)
    low = float(tried[min(too_low[-1] + 1, at)]) if len(too_low) else 0.0
    high = float(tried[max(too_high[0], at)]) if len(too_high) else math.inf
    return Interval(estimate, min(low, estimate), max(high, estimate), count)


def _positive(given: Onsets) -> Onsets:
    """An onset in the first frame counts as half of the earliest other time, so that ratios exist."""
    positive = given.times[given.times > 0]
    least = float(positive.min()) / 2 if len(positive) else 1.0
    return Onsets(np.maximum(given.times, least), given.reached)


def _paired_ratio(first: Onsets, second: Onsets, pairs: Iterable[tuple[int, int]]) -> Interval:
    both = [(i, j) for i, j in pairs if first.reached[i] and second.reached[j]]
    if not both:
        return Interval(np.nan, np.nan, np.nan, 0)
    i, j = np.array(both).T
    logarithm = mean(np.log(_positive(second).times[j] / _positive(first).times[i]))
    return logarithm.map(math.exp)


def _first_below(times: Array, values: Array) -> float:
    below = np.flatnonzero(values <= 0.5)
    return float(times[below[0]]) if len(below) else math.inf
