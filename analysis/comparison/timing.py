"""Onset times, compared as right-censored data because some runs may never reach a threshold."""

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from analysis.stats.effects import TAIL, Z
from analysis.stats.intervals import CONFIDENCE, Interval, difference, is_shown, mean, proportion
from physics.checks import InputError, finite_array, number, real_array, truth_array
from physics.values import Array, Mask, Shown, brief

RATIOS = 120
"""Number of ratios that are tried to find the estimate and the interval."""
ROUNDING = 1e-9
"""Rounding error that is allowed for when sums and products of fractions are compared with numbers."""


@dataclass(frozen=True, eq=False)
class Onsets(Shown):
    """Times at which the runs of one ensemble reach a threshold; some may never do so (right-censored).

    Attributes
    ----------
    times : ndarray of float64, shape (runs,)
        Time at which a run reached the threshold, or the last time of a run that did not.
    reached : ndarray of bool, shape (runs,)
        Whether each run reached the threshold.

    Raises
    ------
    InputError
        If a time is not a finite number of at least 0, or `reached` does not hold one truth value for each.

    Examples
    --------
    >>> import analysis, numpy as np
    >>> times, reached = np.array([3.0, 5.0, 9.0, 9.0]), np.array([True, True, True, False])
    >>> found = analysis.comparison.Onsets(times, reached)
    >>> found.fraction.estimate, found.median.estimate
    (0.75, 5.0)
    """

    times: Array
    reached: Mask

    def _shown(self) -> dict[str, str]:
        return {name: brief(getattr(self, name)) for name in ("fraction", "median", "times")}

    def __post_init__(self) -> None:
        times, reached = _times(self.times), truth_array("reached", self.reached, ndim=1)
        if times.shape != reached.shape:
            got = f"{times.shape} and {reached.shape}"
            raise InputError(f"times and reached must have one shape (runs,), got {got}")
        object.__setattr__(self, "times", times)
        object.__setattr__(self, "reached", reached)

    def scaled(self, factor: float) -> "Onsets":
        """Return the same onsets in another unit of time.

        Parameters
        ----------
        factor : float
            Factor by which all times are multiplied, greater than 0.

        Returns
        -------
        Onsets
            Onsets with the new times.

        Examples
        --------
        >>> import analysis
        >>> analysis.comparison.onsets([[0.1, 0.9]], [0, 10], 0.5).scaled(0.5).times.tolist()
        [5.0]
        """
        return Onsets(self.times * factor, self.reached)

    def after(self, least: float) -> "Onsets":
        """Return the same onsets with all earlier times raised to a bound.

        Parameters
        ----------
        least : float
            Smallest time in the result.

        Returns
        -------
        Onsets
            Onsets with the new times.
        """
        return Onsets(np.maximum(self.times, least), self.reached)

    @property
    def fraction(self) -> Interval:
        """Fraction of the runs that reached the threshold before they ended, with Wilson's 95 % interval."""
        return proportion(int(self.reached.sum()), len(self.reached))

    @property
    def median(self) -> Interval:
        """Kaplan-Meier median: the first time at which at least half of the runs have reached the threshold.

        The interval (Brookmeyer and Crowley) holds the times at which the band of `curve` contains one half.
        A bound is infinite if the data do not limit it, and so is the estimate if fewer than half reach the
        threshold. A single run has no interval.
        """
        times, *curves = self.curve()
        below = [times[values <= 0.5 + ROUNDING] for values in curves]
        middle, early, late = (float(part[0]) if len(part) else math.inf for part in below)
        if len(self.times) < 2:
            early = late = math.nan
        return Interval(middle, early, late, len(self.times))

    def curve(self) -> tuple[Array, Array, Array, Array]:
        """Return the fraction of the runs that have not reached the threshold yet, over time (Kaplan-Meier).

        Returns
        -------
        times : ndarray of float64, shape (n,)
            0, and then the times at which runs reached the threshold, in increasing order.
        fraction : ndarray of float64, shape (n,)
            Fraction of the runs still below the threshold after each time.
        low, high : ndarray of float64, shape (n,)
            95 % band of the fraction.

        Notes
        -----
        The band is Greenwood's on the scale of log(-log), which is undefined once all runs have reached the
        threshold. There the lower bound is 0. The upper bound is the smaller of the previous one and the
        exact bound for no survivor among the remaining runs.

        Examples
        --------
        >>> import analysis
        >>> found = analysis.comparison.onsets([[0, 1, 1], [0, 0, 1], [0, 0, 0]], [0, 10, 20], 1)
        >>> times, fraction, *_ = found.curve()
        >>> times.tolist(), fraction.round(2).tolist()
        ([0.0, 10.0, 20.0], [1.0, 0.67, 0.33])
        """
        data = stats.CensoredData(uncensored=self.times[self.reached], right=self.times[~self.reached])
        fraction: Any = stats.ecdf(data).sf
        with warnings.catch_warnings():  # the band is undefined once all runs have reached the threshold
            warnings.simplefilter("ignore", RuntimeWarning)
            band = fraction.confidence_interval(CONFIDENCE, method="log-log")
        times = np.unique(self.times[self.reached])
        curves = (fraction, band.low, band.high)
        alive, low, high = (np.append(1.0, curve.evaluate(times)).astype(float) for curve in curves)
        if alive[-1] == 0:
            left = int((self.times >= times[-1]).sum())
            low[-1], high[-1] = 0.0, min(high[-2], 1 - TAIL ** (1 / left))
        return np.append(0.0, times), alive, low, high


@dataclass(frozen=True, eq=False)
class OnsetDifference(Shown):
    """Comparison of the times at which two ensembles reach a threshold, which `compare_onsets` returns.

    Attributes
    ----------
    name : str
        Name of the quantity that reaches the threshold.
    first, second : Onsets
        Onsets of both ensembles, in the same unit of time.
    p_value : float
        Two-sided p-value of the log-rank test that both ensembles reach the threshold at the same times; NaN
        if no run reaches it.
    ratio : Interval
        Ratio of the onset time of the second ensemble to the onset time of the first. Runs that do not reach
        the threshold before they end count as censored. All are NaN if fewer than half of the runs of an
        ensemble reach it: compare ``first.fraction`` and ``second.fraction`` then.
    paired_ratio : Interval
        Geometric mean of the ratio, second over first, over the pairs of runs that both reach the threshold;
        NaN if there are no such pairs.
    adjusted_p_value : float
        p-value after Holm's correction for all tests of a comparison; NaN outside of a comparison.

    Notes
    -----
    The estimate of `ratio` is the factor on the times of the first ensemble at which the log-rank statistic
    vanishes. Its interval holds the factors at which the statistic is not significant (Wei and Gail 1983). If
    the unit of time of the first ensemble was estimated, tests and intervals allow for its uncertainty: the
    standard error of the log-rank statistic then includes that of the unit.

    Examples
    --------
    >>> import analysis, numpy as np
    >>> times = np.arange(1.0, 21.0)
    >>> early, late = (analysis.comparison.Onsets(one, np.ones(20, bool)) for one in (times, 9 * times))
    >>> found = analysis.comparison.compare_onsets("loss", early, late)
    >>> round(found.ratio.estimate), found.differs
    (9, True)
    """

    name: str
    first: Onsets
    second: Onsets
    p_value: float
    ratio: Interval
    paired_ratio: Interval
    adjusted_p_value: float = math.nan

    @property
    def differs(self) -> bool:
        """Whether the two ensembles reach the threshold at significantly different times.

        The p-value must be below 0.05; in a comparison it is Holm's, and otherwise the p-value of the test.
        In addition, the interval of the ratio, if there is one, must not contain 1.
        """
        return is_shown(self.adjusted_p_value, self.p_value) and not self.ratio.covers(1.0)


def compare_onsets(
    name: str,
    first: Onsets,
    second: Onsets,
    *,
    pairs: Iterable[tuple[int, int]] = (),
    clock: tuple[float, float] = (1.0, 1.0),
) -> OnsetDifference:
    """Compare the times at which two ensembles reach a threshold, which some runs may never reach.

    Parameters
    ----------
    name : str
        Name of the quantity, which the result keeps.
    first, second : Onsets
        Onsets of both ensembles, in the same unit of time.
    pairs : iterable of pair of int, optional
        Runs (i, j) that belong together, for `paired_ratio`.
    clock : pair of float, default (1.0, 1.0)
        95 % interval of the factor that converted the times of the first ensemble, relative to this factor,
        if it was estimated.

    Returns
    -------
    OnsetDifference
        Log-rank test, and the ratio of the onset times.

    Examples
    --------
    >>> import analysis, numpy as np
    >>> times = np.random.default_rng(0).uniform(1, 2, size=30)
    >>> early, late = (analysis.comparison.Onsets(times * factor, np.ones(30, bool)) for factor in (1.0, 3.0))
    >>> found = analysis.comparison.compare_onsets("quality", early, late)
    >>> round(found.ratio.estimate, 1), found.differs
    (3.0, True)
    """
    least = _half_of_the_least(first, second)
    statistic = _tested(first.after(least), second.after(least), 1.0, clock)
    p_value, ratio = float(2 * stats.norm.sf(abs(statistic))), onset_ratio(first, second, clock=clock)
    return OnsetDifference(name, first, second, p_value, ratio, _paired_ratio(first, second, pairs, clock))


def onsets(values: Any, times: Any, threshold: float, *, lasting: bool = False) -> Onsets:
    """Return when each run first reaches a threshold.

    Parameters
    ----------
    values : array_like, shape (runs, frames)
        Quantity over time. NaN is below every threshold.
    times : array_like, shape (frames,)
        Time of each frame, finite and at least 0, in any order.
    threshold : float
        Value that the quantity must reach or exceed.
    lasting : bool, default False
        Whether the value must stay at or above the threshold in all later frames.

    Returns
    -------
    Onsets
        Times of the first such frames. A run without one is censored at the last time.

    Raises
    ------
    InputError
        If shapes do not agree, a time is not finite or is negative, or there is no run or no frame.

    Examples
    --------
    >>> import analysis
    >>> found = analysis.comparison.onsets([[0.1, 0.5, 0.9], [0.1, 0.2, 0.3]], [0, 10, 20], 0.5)
    >>> found.times.tolist(), found.reached.tolist()
    ([10.0, 20.0], [True, False])
    """
    threshold = number("threshold", threshold)
    array, clock = real_array("values", values), _times(times)
    if array.ndim != 2 or clock.shape != array.shape[1:] or not array.size:
        got = f"{array.shape} and {clock.shape}"
        raise InputError(f"values and times must have the shapes (runs, n) and (n,), got {got}")
    order = np.argsort(clock, kind="stable")
    clock, above = clock[order], array[:, order] >= threshold
    if lasting:
        above = np.logical_and.accumulate(above[:, ::-1], axis=1)[:, ::-1]
    reached = np.asarray(above.any(axis=1))
    return Onsets(np.where(reached, clock[above.argmax(axis=1)], clock[-1]), reached)


def _times(times: Any) -> Array:
    """Return times (n,) as a checked array."""
    clock = finite_array("times", times, ndim=1)
    number("times", clock.min(initial=0.0), 0.0)
    return clock


def log_rank(first: Onsets, second: Onsets, scale: float = 1.0) -> float:
    """Return the log-rank statistic of two ensembles, which is positive if the first is earlier.

    The times of the first are multiplied by `scale`. The statistic is standard normal for equal
    distributions, and NaN if no onset occurred. It equals that of `scipy.stats.logrank` and takes a
    thirteenth of the time, which matters because a ratio needs hundreds of them.
    """
    x, y = first.times * scale, second.times
    events = np.unique(np.concatenate([x[first.reached], y[second.reached]]))
    n1, n2 = ((values >= events[:, None]).sum(axis=1) for values in (x, y))
    d1 = ((x == events[:, None]) & first.reached).sum(axis=1)
    d2 = ((y == events[:, None]) & second.reached).sum(axis=1)
    d, n = d1 + d2, n1 + n2
    variance = float(np.sum(d * n1 * n2 * (n - d) / np.maximum(n**2 * (n - 1), 1)))
    excess = float(np.sum((d1 * n2 - d2 * n1) / n))  # exactly the opposite for exchanged ensembles
    excess = excess if abs(excess) > ROUNDING else 0.0  # fractions that cancel leave a random sign
    return excess / math.sqrt(variance) if variance > 0 else math.nan


def onset_ratio(first: Onsets, second: Onsets, *, clock: tuple[float, float] = (1.0, 1.0)) -> Interval:
    """Return the ratio of onset times, second over first, by inverting the log-rank test.

    The arguments are as in `compare_onsets`, and the result is `OnsetDifference.ratio`. It has no interval if
    an ensemble is a single run.
    """
    count = len(first.times) + len(second.times)
    least = _half_of_the_least(first, second)
    x, y = first.after(least), second.after(least)
    if min(each.reached.mean() for each in (x, y)) < 0.5:  # most may never reach it, however late
        return Interval(np.nan, np.nan, np.nan, count)
    breaks = np.unique(np.log(y.times[None, y.reached]) - np.log(x.times[x.reached, None]))
    breaks = np.unique(np.quantile(breaks, np.linspace(0, 1, RATIOS)))
    breaks = breaks[np.append(True, np.diff(breaks) > 1e-9)]
    # The statistic is constant between two breaks. A factor of 1 is tried by itself, so that the interval
    # excludes it if the test rejects. All is symmetric, so that the ratio of exchanged sides is the inverse.
    edges = np.array([-math.inf, *breaks, math.inf])
    if breaks[0] < 0 < breaks[-1]:
        edges = np.sort(np.append(edges[np.abs(edges) > 1e-9], [0.0, 0.0]))
    left, right = edges[:-1], edges[1:]
    middle = np.where(np.isinf(left), right - 1, np.where(np.isinf(right), left + 1, (left + right) / 2))
    z = np.array([_tested(x, y, math.exp(place), clock) for place in middle])
    # The statistic decreases with the factor: it is positive below the estimate and negative above it.
    positive, negative = right[z > 0], left[z < 0]
    ends = positive.max(initial=breaks[0]), negative.min(initial=breaks[-1])
    center = float(np.clip(ends, breaks[0], breaks[-1]).mean())
    if min(len(x.times), len(y.times)) < 2:
        return Interval(math.exp(center), np.nan, np.nan, count)
    low = float(right[z > Z].max(initial=-math.inf))
    high = float(left[z < -Z].min(initial=math.inf))
    return Interval(center, min(low, center), max(high, center), count).map(math.exp)


def _tested(first: Onsets, second: Onsets, scale: float, clock: tuple[float, float]) -> float:
    """Return the log-rank statistic, divided by its standard error if the clock of the first was estimated.

    The statistic decreases with the factor of this clock. Its values at both ends of the interval `clock` of
    the factor are therefore an interval of the statistic.
    """
    statistic = log_rank(first, second, scale)
    if clock[0] == clock[1]:
        return statistic
    early, late = (np.nan_to_num(log_rank(first, second, scale * factor)) for factor in clock)
    return statistic / math.hypot(1.0, float(early - late) / (2 * Z))


def _half_of_the_least(first: Onsets, second: Onsets) -> float:
    """Return half of the earliest positive time, which replaces onsets at time 0 in ratios."""
    times = np.concatenate([first.times, second.times])
    return float(times[times > 0].min()) / 2 if (times > 0).any() else 1.0


def _paired_ratio(
    first: Onsets, second: Onsets, pairs: Iterable[tuple[int, int]], clock: tuple[float, float]
) -> Interval:
    """Return the geometric mean of the ratio of onsets, second over first, over pairs of runs."""
    both = [(i, j) for i, j in pairs if first.reached[i] and second.reached[j]]
    if not both:
        return Interval(np.nan, np.nan, np.nan, 0)
    i, j = np.array(both).T
    least = _half_of_the_least(first, second)
    logarithm = mean(np.log(second.after(least).times[j] / first.after(least).times[i]))
    factor = Interval(0.0, math.log(clock[0]), math.log(clock[1]), 0)
    return difference(logarithm, factor).map(math.exp)
