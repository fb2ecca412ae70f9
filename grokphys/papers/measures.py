"""Measures for rules: functions of tables and a confidence level that return an estimate with its interval.

Most functions here take the name of a `table` and what is measured of its rows: an expression of its columns,
such as ``"accuracy"`` or ``"step_II / step_I"``, or a function of the rows. ``by`` is such an expression for
the independent unit, if it is not the row, and ``among`` one for which rows count. Further keywords are
values that columns of the rows must have.

Examples
--------
>>> import numpy as np
>>> from grokphys.papers import measures
>>> tables = {"circles": {"network": np.array([0, 0, 1, 1]), "survived": np.array([1, 0, 1, 0], bool)}}
>>> measures.share("circles", "survived", by="network")(tables, 0.95).estimate
0.5
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from analysis.stats.intervals import Interval
from grokphys.papers import evidence
from grokphys.papers.evidence import Columns, Measure, Tables, by_network, where

Column = str | Callable[[Any], Any]
"""Expression of columns of a table and NumPy's ``np``, or function of its rows, that returns a column."""


def rows_of(tables: Tables, table: str, constants: Mapping[str, Any], among: Column = "") -> Columns:
    """Return the rows of a table in which columns have the given values, and that `among` chooses."""
    rows = where(tables[table], **constants)
    if not among:
        return rows
    chosen = np.asarray(column_of(rows, among), bool)
    return {name: values[chosen] for name, values in rows.items()}


def column_of(rows: Columns, column: Column) -> Any:
    """Return a column of rows, by an expression of columns or by a function of the rows."""
    return eval(column, {"np": np}, dict(rows)) if isinstance(column, str) else column(rows)


def _estimated(
    estimate: Callable[..., Interval], columns: tuple[Column, ...], table: str, by: Any, **which: Any
) -> Measure:
    def measure(tables: Tables, level: float) -> Interval:
        rows = rows_of(tables, table, which["constants"], which["among"])
        groups = column_of(rows, by) if by else None
        return estimate(*(column_of(rows, column) for column in columns), level, groups=groups)

    return measure


def share(table: str, hits: Column, *, by: Column = "", among: Column = "", **constants: Any) -> Measure:
    """Return a measure of the share of rows for which something is true, by `evidence.share`."""
    return _estimated(evidence.share, (hits,), table, by, among=among, constants=constants)


def mean(table: str, values: Column, *, by: Column = "", among: Column = "", **constants: Any) -> Measure:
    """Return a measure of the mean of a column, or of its means in the units, by `evidence.mean`."""
    return _estimated(evidence.mean, (values,), table, by, among=among, constants=constants)


def slope(
    table: str, x: Column, y: Column, *, by: Column = "", among: Column = "", **constants: Any
) -> Measure:
    """Return a measure of the slope of the least-squares line of y over x, by `evidence.slope`."""
    return _estimated(evidence.slope, (x, y), table, by, among=among, constants=constants)


def correlation(
    table: str, x: Column, y: Column, *, by: Column = "", among: Column = "", **constants: Any
) -> Measure:
    """Return a measure of Pearson's correlation of two columns, by `evidence.correlation`."""
    return _estimated(evidence.correlation, (x, y), table, by, among=among, constants=constants)


def rank_correlation(
    table: str, x: Column, y: Column, *, by: Column = "", among: Column = "", **constants: Any
) -> Measure:
    """Return a measure of Kendall's τ of two columns, by `evidence.rank_correlation`."""
    return _estimated(evidence.rank_correlation, (x, y), table, by, among=among, constants=constants)


def statistic(
    function: Callable[..., float],
    table: str,
    *columns: Column,
    by: Column = "",
    among: Column = "",
    **constants: Any,
) -> Measure:
    """Return a measure of a smooth function of columns, by `evidence.jackknife`."""

    def estimate(*arguments: Any, groups: Any) -> Interval:
        *values, level = arguments
        return evidence.jackknife(function, tuple(values), level, groups=groups)

    return _estimated(estimate, columns, table, by, among=among, constants=constants)


def median(table: str, values: Column, *, among: Column = "", **constants: Any) -> Measure:
    """Return a measure of the median of a column, by `evidence.median`."""
    return lambda tables, level: evidence.median(
        column_of(rows_of(tables, table, constants, among), values), level
    )


def crossing(table: str, x: Column, successes: Column, trials: Column, **constants: Any) -> Measure:
    """Return a measure of the place at which a share of trials reaches one half, by `evidence.crossing`."""

    def measure(tables: Tables, level: float) -> Interval:
        rows = rows_of(tables, table, constants)
        places, hits, counts = (column_of(rows, column) for column in (x, successes, trials))
        return evidence.crossing(places, hits, counts, level)

    return measure


def of_networks(
    table: str,
    value: Callable[[Any], Any],
    estimate: Callable[[Any, float], Interval] = evidence.mean,
    *,
    among: Column = "",
    **constants: Any,
) -> Measure:
    """Return a measure of the mean of a function of the rows of each network; None and NaN are left out.

    `estimate` is another function of the values and a confidence level, such as `evidence.share`.
    """

    def measure(tables: Tables, level: float) -> Interval:
        rows = rows_of(tables, table, constants, among)
        values = [value(own) for own in by_network(rows)]
        return estimate([one for one in values if one is not None and one == one], level)

    return measure


def exact(function: Callable[[Tables], Any]) -> Measure:
    """Return a measure of a number that is computed from the tables, and has no error."""
    return lambda tables, level: evidence.exact(function(tables))


def difference(first: Measure, second: Measure) -> Measure:
    """Return a measure of the first measure minus the second, which must be independent."""
    return lambda tables, level: evidence.difference(first(tables, level), second(tables, level))


def complement(measure: Measure) -> Measure:
    """Return a measure of 1 minus another."""

    def from_one(tables: Tables, level: float) -> Interval:
        part = measure(tables, level)
        return Interval(1 - part.estimate, 1 - part.high, 1 - part.low, part.count)

    return from_one


def mapped(measure: Measure, function: Callable[[float], float]) -> Measure:
    """Return a measure whose estimate and bounds are an increasing function of those of another."""
    return lambda tables, level: measure(tables, level).map(function)


def ratio(first: Measure, second: Measure) -> Measure:
    """Return a measure of exp(first - second): a ratio of geometric means, if both measure logarithms."""
    return mapped(difference(first, second), np.exp)


def share_of_networks(table: str, holds: Callable[[Any], Any], **constants: Any) -> Measure:
    """Return a measure of the share of networks whose rows meet a condition."""
    return of_networks(table, holds, evidence.share, **constants)


def paired_gap(
    statistic: Callable[..., Any],
    table: str,
    *columns: Column,
    first: Column,
    second: Column,
    by: Column,
    **constants: Any,
) -> Measure:
    """Return a measure of a statistic of some rows minus that of others, by `evidence.paired_gap`."""

    def measure(tables: Tables, level: float) -> Interval:
        rows = rows_of(tables, table, constants)
        values = tuple(column_of(rows, column) for column in columns)
        halves = column_of(rows, first), column_of(rows, second)
        return evidence.paired_gap(statistic, values, *halves, level, groups=column_of(rows, by))

    return measure


def contrast(table: str, hits: Column, inside: Column, **constants: Any) -> Measure:
    """Return a measure of the share of rows for which something is true inside a part minus that outside."""

    def measure(tables: Tables, level: float) -> Interval:
        rows = rows_of(tables, table, constants)
        return evidence.contrast(column_of(rows, hits), column_of(rows, inside), level)

    return measure


def rarest(table: str, column: Column, values: Any, *, by: Column = "") -> Measure:
    """Return a measure of the share of the rarest of some values of a column, by `evidence.smallest`."""

    def measure(tables: Tables, level: float) -> Interval:
        rows = rows_of(tables, table, {})
        found, groups = column_of(rows, column), column_of(rows, by) if by else None
        return evidence.smallest([evidence.share(found == value, level, groups=groups) for value in values])

    return measure
