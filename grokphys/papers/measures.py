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
from functools import partial
from typing import Any

import numpy as np

from analysis.stats.intervals import Interval
from grokphys.papers import evidence
from grokphys.papers.evidence import Columns, Measure, Tables, by_network, where

Column = str | Callable[[Any], Any]
"""Expression of columns of a table and NumPy's ``np``, or function of its rows, that returns a column."""
Estimate = Callable[..., Interval]
"""Function of columns and a confidence level, as in `evidence`."""


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


def of_rows(
    estimate: Estimate, table: str, *columns: Column, by: Column = "", among: Column = "", **constants: Any
) -> Measure:
    """Return a measure of columns of the chosen rows, by a function of `evidence`; see the module's text."""

    def measure(tables: Tables, level: float) -> Interval:
        rows = rows_of(tables, table, constants, among)
        groups = {"groups": column_of(rows, by)} if by else {}
        return estimate(*(column_of(rows, column) for column in columns), level=level, **groups)

    return measure


share: Callable[..., Measure] = partial(of_rows, evidence.share)
"""Measure of the share of rows for which something is true."""
mean: Callable[..., Measure] = partial(of_rows, evidence.mean)
"""Measure of the mean of a column, or of its means in the units."""
median: Callable[..., Measure] = partial(of_rows, evidence.median)
"""Measure of the median of a column."""
correlation: Callable[..., Measure] = partial(of_rows, evidence.correlation)
"""Measure of Pearson's correlation of two columns."""
rank_correlation: Callable[..., Measure] = partial(of_rows, evidence.rank_correlation)
"""Measure of Kendall's τ of two columns."""
crossing: Callable[..., Measure] = partial(of_rows, evidence.crossing)
"""Measure of the place x at which successes reach one half of the trials, from three columns."""
contrast: Callable[..., Measure] = partial(of_rows, evidence.contrast)
"""Measure of the share of rows with the first column true inside a part (the second) minus that outside."""


def statistic(function: Callable[..., float], table: str, *columns: Column, **which: Any) -> Measure:
    """Return a measure of a smooth function of columns, by `evidence.jackknife`."""
    return of_rows(partial(evidence.jackknife, function), table, *columns, **which)


def paired_gap(
    function: Callable[..., Any], table: str, *columns: Column, first: Column, second: Column, **which: Any
) -> Measure:
    """Return a measure of a function of some rows minus that of others, by `evidence.paired_gap`."""
    return of_rows(partial(evidence.paired_gap, function), table, first, second, *columns, **which)


def rarest(table: str, column: Column, values: Any, *, by: Column = "") -> Measure:
    """Return a measure of the share of the rarest of some values of a column."""
    return of_rows(partial(evidence.rarest, values), table, column, by=by)


def of_networks(
    table: str, value: Callable[[Any], Any], estimate: Estimate = evidence.mean, **which: Any
) -> Measure:
    """Return a measure of the mean of a function of the rows of each network; None and NaN are left out.

    `estimate` is another function of the values and a confidence level, such as `evidence.share`.
    """

    def told(rows: Columns) -> list[Any]:
        values = map(value, by_network(rows))
        return [one for one in values if one is not None and one == one]

    return of_rows(estimate, table, told, **which)


def difference(first: Measure, second: Measure) -> Measure:
    """Return a measure of the first measure minus the second, which must be independent."""
    return lambda tables, level: evidence.difference(first(tables, level), second(tables, level))


def gap(table: str, column: Column, here: Column, there: Column, **constants: Any) -> Measure:
    """Return a measure of the share of rows with a true column among some rows minus that among others."""
    return difference(*(share(table, column, among=side, **constants) for side in (here, there)))


def mapped(measure: Measure, function: Callable[[float], float]) -> Measure:
    """Return a measure whose estimate and bounds are an increasing function of those of another."""
    return lambda tables, level: measure(tables, level).map(function)


def ratio(first: Measure, second: Measure) -> Measure:
    """Return a measure of exp(first - second): a ratio of geometric means, if both measure logarithms."""
    return mapped(difference(first, second), np.exp)
