"""Estimates with their 95 % intervals, the one form in which this package states a result."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """An estimate, its 95 % interval, and how many values stand behind it.

    `estimate` is NaN, and the interval with it, where the values do not allow one.
    """

    estimate: float
    low: float
    high: float
    count: int

    def covers(self, value: float) -> bool:
        """Whether the interval holds `value`."""
        return self.low <= value <= self.high

    def map(self, function: Callable[[float], float]) -> "Interval":
        """Return the interval of an increasing function of the quantity, such as its exponential."""
        estimate, low, high = (float(function(value)) for value in (self.estimate, self.low, self.high))
        return Interval(estimate, low, high, self.count)

    def format(self, digits: int = 1, scale: float = 1.0) -> str:
        """Estimate and interval, as in ``13.0 [7.8, 21.0]``."""
        if not np.isfinite(self.estimate):
            return "-"
        estimate, low, high = (
            f"{scale * value:.{digits}f}" for value in (self.estimate, self.low, self.high)
        )
        return f"{estimate} [{low}, {high}]" if np.isfinite(self.low) else estimate


def proportion(successes: float, count: float) -> Interval:
    """Fraction of `count` trials that succeeded, with Wilson's score interval.

    Both may be effective numbers, of trials with weights.
    """
    if not count:
        return Interval(np.nan, np.nan, np.nan, 0)
    fraction, weight = successes / count, float(stats.norm.ppf((1 + CONFIDENCE) / 2)) ** 2 / count
    centre = (fraction + weight / 2) / (1 + weight)
    half = (weight * fraction * (1 - fraction) + weight**2 / 4) ** 0.5 / (1 + weight)
    low, high = max(centre - half, 0.0), min(centre + half, 1.0)
    return Interval(fraction, low if successes else 0.0, high if successes < count else 1.0, round(count))


def difference(first: Interval, second: Interval) -> Interval:
    """First minus second of two independent estimates, the interval from theirs (Newcombe 1998, Zou 2007)."""
    estimate = first.estimate - second.estimate
    low = math.hypot(first.estimate - first.low, second.high - second.estimate)
    high = math.hypot(first.high - first.estimate, second.estimate - second.low)
    return Interval(estimate, estimate - low, estimate + high, first.count + second.count)


def mean(values: Any) -> Interval:
    """Mean with Student's interval; without an interval for a single value."""
    array = np.asarray(values, np.float64)
    count = len(array)
    if not count:
        return Interval(np.nan, np.nan, np.nan, 0)
    centre = float(array.mean())
    if count == 1:
        return Interval(centre, np.nan, np.nan, 1)
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, count - 1)) * float(array.std(ddof=1)) / count**0.5
    return Interval(centre, centre - half, centre + half, count)


def holm(p_values: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Holm's adjusted p-values: of all that are below α, the chance of a single false one is at most α.

    Parameters
    ----------
    p_values : array_like, shape (n,)
        NaN is no test.

    Returns
    -------
    ndarray, shape (n,)
        NaN where there is no test.
    """
    given = np.asarray(p_values, np.float64)
    adjusted = np.full(given.shape, np.nan)
    order = np.argsort(given, kind="stable")[: np.isfinite(given).sum()]
    factors = np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(factors * given[order]), 1.0)
    return adjusted


def is_shown(adjusted_p_value: float, p_value: float) -> bool:
    """Whether a test rejects at 5 %: by Holm's p-value among several, by its own where it stands alone."""
    decisive = p_value if math.isnan(adjusted_p_value) else adjusted_p_value
    return decisive < 1 - CONFIDENCE


def correlation(x: Any, y: Any) -> Interval:
    """Pearson's correlation with Fisher's interval; NaN where a variable does not vary."""
    first, second = np.asarray(x, np.float64), np.asarray(y, np.float64)
    count = len(first)
    if count < 4 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return Interval(np.nan, np.nan, np.nan, count)
    result = stats.pearsonr(first, second)
    interval = result.confidence_interval(CONFIDENCE)
    return Interval(float(result.statistic), float(interval.low), float(interval.high), count)
