"""Estimates with confidence intervals from the tables of a recipe, and models of chance.

Most estimates take columns of equal length n and a confidence level such as 0.95, and return an `Interval`.
The argument `groups`, an array (n,), names the independent unit of each row, such as the network of a circle:
rows of one group count together. By default each row is a separate unit.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from analysis.stats import intervals
from analysis.stats.intervals import Interval
from analysis.stats.intervals import difference as difference  # for recipes

Array = NDArray[np.float64]


def exact(value: float) -> Interval:
    """Return the `Interval` of a number that is computed, not estimated: both its bounds are the number."""
    return Interval(float(value), float(value), float(value), 1)


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
        Wilson's interval, or that of `clustered_proportion` if there are groups. Its count is the number of
        rows, or of groups.
    """
    hits = np.asarray(successes, np.float64)
    if groups is None:
        return intervals.proportion(float(hits.sum()), len(hits), level)
    own = _numbered(groups)
    found = intervals.clustered_proportion(np.bincount(own, hits), np.bincount(own), level)
    return replace(found, count=len(np.unique(own)))


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
        own = _numbered(groups)
        array = np.bincount(own, array) / np.bincount(own)
    return intervals.mean(array, level)


def slope(x: Any, y: Any, level: float, *, groups: Any = None) -> Interval:
    """Return the slope of the least-squares line through points, with a `jackknife` interval.

    Parameters
    ----------
    x, y : array_like, shape (n,)
        Coordinates of the points.
    level : float
        Confidence level, such as 0.95.
    groups : array_like, shape (n,), optional
        Independent unit of each point; by default each point is one.

    Returns
    -------
    Interval
        The slope; NaN if there is no point or all x are equal.
    """
    return jackknife(_slope, (x, y), level, groups=groups)


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
    found = jackknife(lambda a, b: np.arctanh(_correlation(a, b)), (x, y), level, groups=groups)
    return found.map(np.tanh)


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

    return jackknife(tau, (x, y), level, groups=groups)


def jackknife(
    statistic: Callable[..., float], columns: tuple[Any, ...], level: float, *, groups: Any = None
) -> Interval:
    """Return a smooth statistic of columns, with an interval from leaving out one group after the other.

    Parameters
    ----------
    statistic : callable
        Function of columns that returns a number.
    columns : tuple of array_like, shape (n,) each
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
    own = np.arange(len(arrays[0])) if groups is None else _numbered(groups)
    count = int(own.max()) + 1 if len(own) else 0
    with np.errstate(all="ignore"):
        found = float(statistic(*arrays)) if count else np.nan
        if count < 3 or not np.isfinite(found):
            return Interval(found, np.nan, np.nan, count)
        left = np.array([float(statistic(*(a[own != k] for a in arrays))) for k in range(count)])
        half = float(stats.t.ppf((1 + level) / 2, count - 1)) * float(left.std()) * (count - 1) ** 0.5
    return Interval(found, found - half, found + half, count)


def paired_gap(
    statistic: Callable[..., Any],
    columns: tuple[Any, ...],
    first: Any,
    second: Any,
    level: float,
    *,
    groups: Any,
) -> Interval:
    """Return a statistic of some rows minus that of others, if each group has rows of both kinds.

    Parameters
    ----------
    statistic : callable
        Function of columns that returns a number.
    columns : tuple of array_like, shape (n,) each
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

    return jackknife(gap, (first, second, *columns), level, groups=groups)


@dataclass(frozen=True)
class Chance:
    """A model of chance for rules: a function of tables and a generator that returns data without the effect.

    Attributes
    ----------
    words : str
        What it does to the tables, for the page of rules.
    make : callable
        The function.
    """

    words: str
    make: Callable[[Any, np.random.Generator], Any]

    def __call__(self, tables: Any, generator: np.random.Generator) -> Any:
        """Return tables in which the statement is not true."""
        return self.make(tables, generator)


def shuffled(table: str, column: str, *, within: str = "", among: Mapping[str, Any] | None = None) -> Chance:
    """Return a model of chance for rules that permutes one column.

    Parameters
    ----------
    table, column : str
        Names of the table and of its column.
    within : str, default ""
        Name of a column; values are permuted only among rows in which it is equal. By default they are
        permuted among all rows.
    among : mapping, optional
        Values of columns by which rows are chosen, as in `where`. Other rows keep theirs.
    """
    chosen = dict(among or {})

    def chance(tables: Any, generator: np.random.Generator) -> Any:
        rows = tables[table]
        values = np.array(rows[column])
        own = _numbered(rows[within]) if within else np.zeros(len(values), int)
        mixed = _chosen(rows, chosen)
        for k in range(int(own.max()) + 1 if len(own) else 0):
            here = np.flatnonzero(mixed & (own == k))
            values[here] = values[generator.permutation(here)]
        return {**tables, table: {**rows, column: values}}

    rows = "rows" if within or chosen else "all rows"
    of = [f"the same `{within}`"] * bool(within) + [f"`{name}` = {value:g}" for name, value in chosen.items()]
    words = f"`{column}` shuffled among {rows} of `{table}`" + (" with " + " and ".join(of) if of else "")
    return Chance(words, chance)


def exchanged(table: str, first: str, second: str) -> Chance:
    """Return a model of chance for rules that exchanges two columns.

    The columns `first` and `second` of a table are exchanged in each row with the probability 1/2.
    """

    def chance(tables: Any, generator: np.random.Generator) -> Any:
        rows = tables[table]
        a, b = rows[first], rows[second]
        swap = generator.random(len(a)) < 0.5
        own = {first: np.where(swap, b, a), second: np.where(swap, a, b)}
        return {**tables, table: {**rows, **own}}

    return Chance(f"`{first}` and `{second}` exchanged in half of the rows of `{table}`, at random", chance)


def pooled(column: str, first: tuple[str, dict[str, Any]], second: tuple[str, dict[str, Any]]) -> Chance:
    """Return a model of chance for rules that permutes a column among rows of two tables.

    `first` and `second` are each the name of a table, and the values by which its rows are chosen, as in
    `where`. The values of `column` in the rows of both are permuted together.
    """

    def chance(tables: Any, generator: np.random.Generator) -> Any:
        places = [(name, np.flatnonzero(_chosen(tables[name], chosen))) for name, chosen in (first, second)]
        values = np.concatenate([np.asarray(tables[name][column])[rows] for name, rows in places])
        mixed = np.split(generator.permutation(values), [len(places[0][1])])
        found = dict(tables)
        for (name, rows), own in zip(places, mixed, strict=True):
            found[name] = {**found[name], column: np.array(found[name][column])}
            found[name][column][rows] = own
        return found

    return Chance(f"`{column}` shuffled among the two groups that are compared", chance)


def where(table: Any, **values: Any) -> dict[str, NDArray[Any]]:
    """Return the rows of a table in which every named column has the given value, as a dict of columns."""
    chosen = _chosen(table, values)
    return {column: np.asarray(rows)[chosen] for column, rows in table.items()}


def by_network(table: Any) -> list[dict[str, NDArray[Any]]]:
    """Return the rows of each network of a table, by the numbers in its column `network`."""
    return [where(table, network=network) for network in np.unique(table["network"])]


def _chosen(table: Any, values: Mapping[str, Any]) -> NDArray[np.bool_]:
    chosen = np.ones(len(next(iter(table.values()))), bool)
    for column, value in values.items():
        chosen &= np.asarray(table[column]) == value
    return chosen


def joined(tables: Iterable[Mapping[str, Any]]) -> dict[str, NDArray[Any]]:
    """Return one table with the rows of several tables, one after the other, in the columns of the first."""
    parts = list(tables)
    return {name: np.concatenate([np.asarray(part[name]) for part in parts]) for name in parts[0]}


def columns_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, NDArray[Any]]:
    """Return rows, which have the same keys, as a table of columns."""
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def _numbered(groups: Any) -> NDArray[np.intp]:
    return np.asarray(np.unique(np.asarray(groups), return_inverse=True)[1]).ravel()


def _slope(x: Any, y: Any) -> float:
    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if len(a) == 0 or np.ptp(a) == 0:  # the sum of squares of equal numbers may be of the size of rounding
        return np.nan
    return float(np.sum((a - a.mean()) * b) / np.sum((a - a.mean()) ** 2))


def _correlation(x: Any, y: Any) -> float:
    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if len(a) < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return np.nan
    return float(np.clip(np.corrcoef(a, b)[0, 1], -1 + 1e-12, 1 - 1e-12))
