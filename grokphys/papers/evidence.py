"""Estimates with confidence intervals from columns of the tables of a recipe, and parts of these tables.

Most estimates take columns of equal length n and a confidence level such as 0.95, and return an `Interval`.
The argument `groups`, an array (n,), names the independent unit of each row, such as the network of a circle:
rows of one group count together. By default each row is a separate unit.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from analysis.stats import intervals
from analysis.stats.intervals import Interval
from analysis.stats.intervals import difference as difference  # for recipes

Array = NDArray[np.float64]
Columns = Mapping[str, NDArray[Any]]
Tables = Mapping[str, Columns]
"""Tables by name; a table is a mapping of equally long columns of numbers, truth values or text."""
Measure = Callable[[Tables, float], Interval]
"""Function of the tables of a run and a confidence level that returns an estimate with its interval."""


def share(successes: Any, level: float, *, groups: Any = None) -> Interval:
    """Return the fraction of truth values that are true, with its confidence interval.

    Parameters
    ----------
    successes : array_like of bool, shape (n,)
        Truth values.
    level : float
        Confidence level, such as 0.95.
    groups : array_like, shape (n,), optional
        Independent unit of each row; by default each row is one.

    Returns
    -------
    Interval
        Wilson's interval, or that of `clustered_proportion` if there are groups; that of `equal` if all rows
        are true, or none is. Its count is the number of rows, or of groups.
    """
    hits = np.asarray(successes, np.float64)
    if groups is None:
        found = intervals.proportion(float(hits.sum()), len(hits), level)
    else:
        own = numbered(groups)
        found = intervals.clustered_proportion(np.bincount(own, hits), np.bincount(own), level)
        found = replace(found, count=len(np.unique(own)))
    return equal(found, level, 0.0, 1.0) if found.count > 1 and found.estimate in (0.0, 1.0) else found


def equal(found: Interval, level: float, least: float, most: float) -> Interval:
    """Return the mean of equal values with an interval for those that are only rare.

    At the confidence `level`, others can be a share of up to 1 - ((1 - level) / 2)^(1/n) of all units, if all
    n that were drawn, `found.count`, have the same value (Clopper and Pearson's bound). The interval extends
    as far as this share could move the mean, if each of these units had the smallest or the largest possible
    value, `least` or `most`. A side that is infinite leaves its end at the mean.
    """
    share = 1 - ((1 - level) / 2) ** (1 / found.count)
    sides = (side if np.isfinite(side) else found.estimate for side in (least, most))
    low, high = (found.estimate + share * (side - found.estimate) for side in sides)
    return replace(found, low=low, high=high)


def mean(values: Any, level: float, *, groups: Any = None) -> Interval:
    """Return the mean of values, with Student's confidence interval.

    Parameters
    ----------
    values : array_like, shape (n,)
        Numbers or truth values.
    level : float
        Confidence level, such as 0.95.
    groups : array_like, shape (n,), optional
        Independent unit of each row. If given, the result is the mean of the means of the groups.

    Returns
    -------
    Interval
        The mean, whose count is the number of values, or of groups if they are given. The bounds are NaN if
        this number is less than two.
    """
    array = np.asarray(values, np.float64)
    if groups is not None and len(array):
        own = numbered(groups)
        array = np.bincount(own, array) / np.bincount(own)
    return intervals.mean(array, level)


def correlation(x: Any, y: Any, level: float, *, groups: Any = None) -> Interval:
    """Return Pearson's correlation of two columns, with a `jackknife` interval on the scale of Fisher's z.

    Parameters
    ----------
    x, y : array_like, shape (n,)
        The columns.
    level : float
        Confidence level, such as 0.95.
    groups : array_like, shape (n,), optional
        Independent unit of each row; by default each row is one.

    Returns
    -------
    Interval
        The correlation; NaN for fewer than three rows, or if a column is constant.
    """
    return jackknife(fisher, x, y, level=level, groups=groups).map(np.tanh)


def fisher(x: Any, y: Any) -> float:
    """Return Fisher's z of Pearson's correlation; NaN for fewer than three rows or a constant column."""
    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if len(a) < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return np.nan
    return float(np.arctanh(np.clip(np.corrcoef(a, b)[0, 1], -1 + 1e-12, 1 - 1e-12)))


def rank_correlation(x: Any, y: Any, level: float, *, groups: Any = None) -> Interval:
    """Return Kendall's τ of two columns, with a `jackknife` interval.

    Parameters
    ----------
    x, y : array_like, shape (n,)
        The columns.
    level : float
        Confidence level, such as 0.95.
    groups : array_like, shape (n,), optional
        Independent unit of each row; by default each row is one.

    Returns
    -------
    Interval
        Kendall's τ, from -1 to 1: 1 if y increases with x throughout. It is NaN for fewer than two rows, or
        if a column is constant.
    """

    def tau(a: Any, b: Any) -> float:
        return float(stats.kendalltau(a, b).statistic) if len(a) > 1 else np.nan

    return jackknife(tau, x, y, level=level, groups=groups)


def jackknife(statistic: Callable[..., float], *columns: Any, level: float, groups: Any = None) -> Interval:
    """Return a smooth statistic of columns, with an interval from leaving out one group after the other.

    Parameters
    ----------
    statistic : callable
        Function of columns that returns a number.
    *columns : array_like, shape (n,)
        Arguments of the statistic.
    level : float
        Confidence level, such as 0.95.
    groups : array_like, shape (n,), optional
        Group of each row; by default each row is a separate group.

    Returns
    -------
    Interval
        The statistic of all rows, with the jackknife's standard error times Student's quantile for one degree
        of freedom fewer than groups. Its count is the number of groups. The bounds are NaN if there are fewer
        than three groups, or if the statistic of all rows, or of those without one group, is not finite.
    """
    arrays = [np.asarray(column) for column in columns]
    own = np.arange(len(arrays[0])) if groups is None else numbered(groups)
    count = int(own.max()) + 1 if len(own) else 0
    with np.errstate(all="ignore"):
        found = float(statistic(*arrays)) if count else np.nan
        if count < 3 or not np.isfinite(found):
            return Interval(found, np.nan, np.nan, count)
        left = np.array([float(statistic(*(a[own != k] for a in arrays))) for k in range(count)])
        half = float(stats.t.ppf((1 + level) / 2, count - 1)) * float(left.std()) * (count - 1) ** 0.5
    return Interval(found, found - half, found + half, count)


def paired_gap(
    statistic: Callable[..., Any], first: Any, second: Any, *columns: Any, level: float, groups: Any
) -> Interval:
    """Return a statistic of some rows minus that of others, if each group has rows of both kinds.

    Parameters
    ----------
    statistic : callable
        Function of columns that returns a number.
    *columns : array_like, shape (n,)
        Arguments of the statistic.
    first, second : array_like of bool, shape (n,)
        Which rows are of the first kind, and which of the second.
    level : float
        Confidence level, such as 0.95.
    groups : array_like, shape (n,)
        Group of each row, such as the initial weights that some networks share.

    Returns
    -------
    Interval
        The difference, with the interval of a `jackknife` that leaves out one group after the other.
    """

    def gap(a: Any, b: Any, *values: Any) -> float:
        return float(statistic(*(x[a] for x in values)) - statistic(*(x[b] for x in values)))

    return jackknife(gap, first, second, *columns, level=level, groups=groups)


def median(values: Any, level: float) -> Interval:
    """Return the median of independent values (n,), which may be infinite, with a distribution-free interval.

    The bounds are order statistics. They are NaN if there are too few values for an interval of this level,
    and the median is NaN if there are none.
    """
    ordered = np.sort(np.asarray(values, np.float64))
    count = len(ordered)
    if not count:
        return Interval(np.nan, np.nan, np.nan, 0)
    rank = int(stats.binom.ppf((1 - level) / 2, count, 0.5))
    if rank < 1:
        return Interval(float(np.median(ordered)), np.nan, np.nan, count)
    return Interval(float(np.median(ordered)), float(ordered[rank - 1]), float(ordered[count - rank]), count)


def above_median(values: Any, others: Any, level: float) -> Interval:
    """Return the share of independent values (n,) that exceed the median of others (m,), n + m counted.

    The level is divided between both errors, and the interval reaches from the lower limit of the share above
    the largest median that is possible to the upper limit of that above the smallest.
    """
    half = (1 + level) / 2
    usual = median(others, half)
    if not usual.count:
        return Interval(np.nan, np.nan, np.nan, len(values))
    most, least = np.nan_to_num(usual.high, nan=np.inf), np.nan_to_num(usual.low, nan=-np.inf)
    found = [share(np.asarray(values) > one, half) for one in (usual.estimate, most, least)]
    return Interval(found[0].estimate, found[1].low, found[2].high, len(values) + usual.count)


def crossing(x: Any, successes: Any, trials: Any, level: float) -> Interval:
    """Return the place at which a share of trials first reaches one half, by linear interpolation.

    Parameters
    ----------
    x : array_like, shape (n,)
        Places, in any order.
    successes, trials : array_like of int, shape (n,)
        Numbers of successes and of trials at each place.
    level : float
        Confidence level, such as 0.95.

    Returns
    -------
    Interval
        The bounds are the places at which Wilson's upper and lower limits of the share reach one half. A
        value is NaN if its curve never reaches one half, or does so at the first place already.
    """
    shares = [intervals.proportion(float(k), float(n), level) for k, n in zip(successes, trials, strict=True)]
    curves = zip(*((one.estimate, one.high, one.low) for one in shares), strict=True)
    estimate, low, high = (_passes(x, curve) for curve in curves)
    return Interval(estimate, low, high, int(np.sum(trials)))


def contrast(hits: Any, inside: Any, level: float) -> Interval:
    """Return the share of `hits` inside a part of a table minus their share outside, from -1 to 1.

    Both arguments are truth values (n,). The interval treats the two shares as independent.
    """
    hits, inside = np.asarray(hits, bool), np.asarray(inside, bool)
    return difference(share(hits[inside], level), share(hits[~inside], level))


def rarest(values: Sequence[Any], column: Any, level: float, *, groups: Any = None) -> Interval:
    """Return the share of the rarest of some values of a column, with the smallest of both bounds of each."""
    shares = [share(np.asarray(column) == value, level, groups=groups) for value in values]
    low, high = (min(getattr(part, side) for part in shares) for side in ("low", "high"))
    return Interval(min(part.estimate for part in shares), low, high, shares[0].count)


def _passes(x: Any, values: Any, half: float = 0.5) -> float:
    places, curve = np.asarray(x, np.float64), np.asarray(values, np.float64)
    places, curve = places[order := np.argsort(places, kind="stable")], curve[order]
    above = np.flatnonzero(curve >= half)
    if not len(above) or above[0] == 0:
        return float("nan")
    k = int(above[0])
    return float(np.interp(half, curve[k - 1 : k + 1], places[k - 1 : k + 1]))


def where(table: Any, **values: Any) -> dict[str, NDArray[Any]]:
    """Return the rows of a table in which every named column has the given value, as a dict of columns."""
    chosen = chosen_rows(table, values)
    return {column: np.asarray(rows)[chosen] for column, rows in table.items()}


def by_network(table: Any) -> list[dict[str, NDArray[Any]]]:
    """Return the rows of each network of a table, by the numbers in its column `network`."""
    return [where(table, network=network) for network in np.unique(table["network"])]


def chosen_rows(table: Any, values: Mapping[str, Any]) -> NDArray[np.bool_]:
    """Return which rows of a table have the given values in columns, bool (n,)."""
    chosen = np.ones(len(next(iter(table.values()))), bool)
    for column, value in values.items():
        chosen &= np.asarray(table[column]) == value
    return chosen


def joined(tables: Iterable[Mapping[str, Any]]) -> dict[str, NDArray[Any]]:
    """Return one table with the rows of several tables, one after the other, in the columns of the first."""
    parts = list(tables)
    return {name: np.concatenate([np.asarray(part[name]) for part in parts]) for name in parts[0]}


def table_of(index: Mapping[str, Any], **columns: Any) -> dict[str, NDArray[Any]]:
    """Return a table with a row for each combination of the values of some index columns.

    Parameters
    ----------
    index : mapping of str to sequence
        Values of each index column; those of the last one change fastest. A column whose name begins with an
        underscore is left out.
    **columns : array_like
        Further columns, whose shapes broadcast to the lengths of the index columns.
    """
    values = np.meshgrid(*map(np.asarray, index.values()), indexing="ij")
    every = dict(zip(index, values, strict=True)) | columns
    return {
        name: np.broadcast_to(value, values[0].shape).ravel()
        for name, value in every.items()
        if name[0] != "_"
    }


def columns_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, NDArray[Any]]:
    """Return rows, which have the same keys, as a table of columns."""
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def numbered(groups: Any) -> NDArray[np.intp]:
    """Return the group of each row (n,), numbered from 0."""
    return np.asarray(np.unique(np.asarray(groups), return_inverse=True)[1]).ravel()
