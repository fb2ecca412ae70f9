"""Models of tables in which a statement is false, as `Statement.counter` needs them.

A rule must fail on data in which its statement is false. Where columns can be shuffled, the models of chance
in `grokphys.papers.evidence` make such data. The functions here make them where shuffling would change
nothing, or would make the statement true.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grokphys.papers.evidence import Chance, where

Draw = Callable[[Any, np.random.Generator], Any]
"""Function of the rows of a table and a random generator that returns a column."""


def instead(table: str, *, rows: Mapping[str, Any], of: Mapping[str, Any]) -> Chance:
    """Return a model of data in which some rows of a table take the place of others.

    Parameters
    ----------
    table : str
        Name of the table.
    rows : mapping of str to object
        Values of the columns by which the rows are chosen that take the place of others. They also stay where
        they are.
    of : mapping of str to object
        Values by which the rows are chosen that are left out. The rows in their place get these values.
    """

    def model(tables: Any, generator: np.random.Generator) -> Any:
        whole = tables[table]
        kept = np.setdiff1d(_places(whole, {}), _places(whole, of))
        order = np.append(kept, _places(whole, rows))
        found = {name: np.asarray(values)[order] for name, values in whole.items()}
        for name, value in of.items():
            found[name][len(kept) :] = value
        return {**tables, table: found}

    both = {name: value for name, value in of.items() if rows.get(name) == value}
    new, old = (_said({name: side[name] for name in side if name not in both}) for side in (rows, of))
    words = f"rows of `{table}` with {new} in place of those with {old}"
    return Chance(f"{words}, both with {_said(both)}" if both else words, model)


def replaced(table: str, **columns: str) -> Chance:
    """Return a model of data in which columns of a table are replaced by other columns.

    `columns` names for each column that is replaced the one in its place, as it is before any is replaced.
    """

    def model(tables: Any, generator: np.random.Generator) -> Any:
        rows = tables[table]
        return {**tables, table: {**rows, **{name: rows[other] for name, other in columns.items()}}}

    words = " and ".join(f"`{name}` replaced by `{other}`" for name, other in columns.items())
    return Chance(f"{words} in `{table}`", model)


def drawn(words: str, table: str, **columns: Draw | float) -> Chance:
    """Return a model of data in which columns of a table are drawn at random, or have one value.

    Parameters
    ----------
    words : str
        What the columns hold then, for the page of rules.
    table : str
        Name of the table.
    **columns : callable or float
        For each new column, its value, or a function of the rows and a random generator that returns it.
    """

    def model(tables: Any, generator: np.random.Generator) -> Any:
        rows = tables[table]
        count = len(next(iter(rows.values())))
        new = {
            name: np.asarray(draw(rows, generator)) if callable(draw) else np.full(count, draw)
            for name, draw in columns.items()
        }
        return {**tables, table: {**rows, **new}}

    return Chance(words, model)


def rarest_absent(table: str, column: str) -> Chance:
    """Return a model of data without the rarest value of a column.

    In its place are values of other rows, which are drawn at random, so that frequent ones are drawn most
    often.
    """

    def model(tables: Any, generator: np.random.Generator) -> Any:
        rows = tables[table]
        names, own, counts = np.unique(rows[column], return_inverse=True, return_counts=True)
        rare = own == counts.argmin()
        values = names[own]
        values[rare] = generator.choice(values[~rare], rare.sum())
        return {**tables, table: {**rows, column: values}}

    return Chance(f"the rarest `{column}` of `{table}` replaced by others, at random", model)


def _places(rows: Any, chosen: Mapping[str, Any]) -> NDArray[np.intp]:
    """Return the numbers of the rows of a table in which columns have the chosen values."""
    count = len(next(iter(rows.values())))
    return where({**rows, "": np.arange(count)}, **chosen)[""]


def _said(chosen: Mapping[str, Any]) -> str:
    return " and ".join(
        f"`{name}` = {value}" if isinstance(value, str) else f"`{name}` = {value:g}"
        for name, value in chosen.items()
    )
