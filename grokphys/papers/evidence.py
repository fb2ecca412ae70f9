"""Estimates with intervals from the tables of a recipe, by resampling independent units.

Each function takes columns and a confidence level. `groups` names the independent units: rows of one group,
such as the circles of one network, are drawn or left out together.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from analysis.stats import intervals
from analysis.stats.intervals import Interval
from analysis.stats.intervals import difference as difference  # for recipes

Array = NDArray[np.float64]


def exact(value: float) -> Interval:
    """Return a number that was computed rather than estimated; its interval is the number itself."""
    return Interval(float(value), float(value), float(value), 1)


def share(successes: Any, level: float, *, groups: Any = None) -> Interval:
    """Return the fraction of truth values (n,) that are true, with Wilson's interval.

    With groups, the interval is that of `clustered_proportion`. The count is the number of rows, or of
    groups.
    """
    hits = np.asarray(successes, np.float64)
    if groups is None:
        return intervals.proportion(float(hits.sum()), len(hits), level)
    own = _numbered(groups)
    found = intervals.clustered_proportion(np.bincount(own, hits), np.bincount(own), level)
    return replace(found, count=len(np.unique(own)))


def mean(values: Any, level: float, *, groups: Any = None) -> Interval:
    """Return the mean of values (n,), or of the means of groups, with Student's interval."""
    array = np.asarray(values, np.float64)
    if groups is not None and len(array):
        own = _numbered(groups)
        array = np.bincount(own, array) / np.bincount(own)
    return intervals.mean(array, level)


def slope(x: Any, y: Any, level: float, *, groups: Any = None) -> Interval:
    """Return the slope of the least-squares line through points (n,), with a jackknife interval."""
    return jackknife(_slope, (x, y), level, groups=groups)


def correlation(x: Any, y: Any, level: float, *, groups: Any = None) -> Interval:
    """Return Pearson's correlation of points (n,), with a jackknife interval on the scale of Fisher's z."""
    found = jackknife(lambda a, b: np.arctanh(_correlation(a, b)), (x, y), level, groups=groups)
    return found.map(np.tanh)


def rank_correlation(x: Any, y: Any, level: float, *, groups: Any = None) -> Interval:
    """Return Kendall's τ of points (n,), 1 if y increases with x, with a jackknife interval over groups."""

    def tau(a: Any, b: Any) -> float:
        return float(stats.kendalltau(a, b).statistic) if len(a) > 1 else np.nan

    return jackknife(tau, (x, y), level, groups=groups)


def jackknife(
    statistic: Callable[..., float], columns: tuple[Any, ...], level: float, *, groups: Any = None
) -> Interval:
    """Return a smooth statistic of columns, with an interval from leaving out one group after the other.

    Parameters
    ----------
    statistic : callable
        Function of the columns that returns a number.
    columns : tuple of array_like, shape (n,)
    level : float
    groups : array_like, shape (n,), optional
        Group of each row; by default each row is a separate group.

    Notes
    -----
    The result is Student's interval of the pseudo-values, with one degree of freedom fewer than groups. If
    the statistic cannot be computed, from all rows or without one group, there is no interval.
    """
    arrays = [np.asarray(column) for column in columns]
    own = np.arange(len(arrays[0])) if groups is None else _numbered(groups)
    count = int(own.max()) + 1 if len(own) else 0
    with np.errstate(all="ignore"):
        found = float(statistic(*arrays)) if count else np.nan
        if count < 3 or not np.isfinite(found):
            return Interval(found, np.nan, np.nan, count)
        left = np.array([float(statistic(*(a[own != k] for a in arrays))) for k in range(count)])
        half = float(stats.t.ppf((1 + level) / 2, count - 1)) * float(left.std()) * (count - 1) ** 0.5
    return Interval(found, found - half, found + half, count)


def shuffled(table: str, column: str, *, within: str = "") -> Callable[[Any, np.random.Generator], Any]:
    """Return a `chance` for rules, which permutes one column of a table among all rows or within groups."""

    def chance(tables: Any, generator: np.random.Generator) -> Any:
        rows = tables[table]
        values = np.array(rows[column])
        own = _numbered(rows[within]) if within else np.zeros(len(values), int)
        for k in range(int(own.max()) + 1 if len(own) else 0):
            here = np.flatnonzero(own == k)
            values[here] = values[generator.permutation(here)]
        return {**tables, table: {**rows, column: values}}

    return chance


def exchanged(table: str, first: str, second: str) -> Callable[[Any, np.random.Generator], Any]:
    """Return a `chance` for rules, which exchanges two columns of a table in about half of its rows."""

    def chance(tables: Any, generator: np.random.Generator) -> Any:
        rows = tables[table]
        a, b = rows[first], rows[second]
        swap = generator.random(len(a)) < 0.5
        own = {first: np.where(swap, b, a), second: np.where(swap, a, b)}
        return {**tables, table: {**rows, **own}}

    return chance


def where(table: Any, **values: Any) -> dict[str, NDArray[Any]]:
    """Return the rows of a table whose columns have these values."""
    chosen = np.ones(len(next(iter(table.values()))), bool)
    for column, value in values.items():
        chosen &= np.asarray(table[column]) == value
    return {column: np.asarray(rows)[chosen] for column, rows in table.items()}


def _numbered(groups: Any) -> NDArray[np.intp]:
    return np.asarray(np.unique(np.asarray(groups), return_inverse=True)[1]).ravel()


def _slope(x: Any, y: Any) -> float:
    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    spread = float(np.sum((a - a.mean()) ** 2))
    return float(np.sum((a - a.mean()) * b)) / spread if spread else np.nan


def _correlation(x: Any, y: Any) -> float:
    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if len(a) < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return np.nan
    return float(np.clip(np.corrcoef(a, b)[0, 1], -1 + 1e-12, 1 - 1e-12))
