"""Models of tables in which a statement is false, for the rules of recipes.

A rule must fail on data in which its statement is false. Models of chance shuffle columns. Where shuffling
would change nothing, or would make the statement true, other models replace or draw columns.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grokphys.papers.evidence import chosen_rows, numbered, where

Draw = Callable[[Any, np.random.Generator], Any]
"""Function of the rows of a table and a random generator that returns a column."""


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
        own = numbered(rows[within]) if within else np.zeros(len(values), int)
        mixed = chosen_rows(rows, chosen)
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
        places = [
            (name, np.flatnonzero(chosen_rows(tables[name], chosen))) for name, chosen in (first, second)
        ]
        values = np.concatenate([np.asarray(tables[name][column])[rows] for name, rows in places])
        mixed = np.split(generator.permutation(values), [len(places[0][1])])
        found = dict(tables)
        for (name, rows), own in zip(places, mixed, strict=True):
            found[name] = {**found[name], column: np.array(found[name][column])}
            found[name][column][rows] = own
        return found

    return Chance(f"`{column}` shuffled among the two groups that are compared", chance)


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
