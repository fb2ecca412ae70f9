"""Models of tables in which a statement is false, for the rules of recipes.

A rule must fail on data in which its statement is false. Models of chance shuffle columns. Where shuffling
would change nothing, or would make the statement true, other models replace or draw columns.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from grokphys.papers.evidence import chosen_rows, numbered

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


def changed(words: str, table: str, change: Callable[[Any, np.random.Generator], Any]) -> Chance:
    """Return a model of data in which a table has other columns.

    Parameters
    ----------
    words : str
        What is changed, for the page of rules.
    table : str
        Name of the table.
    change : callable
        Function of the rows and a random generator that returns new columns by name; others stay.
    """
    return Chance(
        words, lambda tables, rng: {**tables, table: {**tables[table], **change(tables[table], rng)}}
    )


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

    def permuted(rows: Any, generator: np.random.Generator) -> Any:
        values = np.array(rows[column])
        groups = numbered(rows[within]) if within else np.zeros(len(values), int)
        mixed = chosen_rows(rows, chosen)
        for k in np.unique(groups):
            here = np.flatnonzero(mixed & (groups == k))
            values[here] = values[generator.permutation(here)]
        return {column: values}

    rows = "rows" if within or chosen else "all rows"
    of = [f"the same `{within}`"] * bool(within) + ([_said(chosen)] if chosen else [])
    words = f"`{column}` shuffled among {rows} of `{table}`" + (" with " + " and ".join(of) if of else "")
    return changed(words, table, permuted)


def exchanged(table: str, first: str, second: str) -> Chance:
    """Return a model of chance for rules that exchanges two columns.

    The columns `first` and `second` of a table are exchanged in each row with the probability 1/2.
    """

    def swapped(rows: Any, generator: np.random.Generator) -> Any:
        swap = generator.random(len(rows[first])) < 0.5
        a, b = (np.where(swap, *pair) for pair in ((rows[second], rows[first]), (rows[first], rows[second])))
        return {first: a, second: b}

    words = f"`{first}` and `{second}` exchanged in half of the rows of `{table}`, at random"
    return changed(words, table, swapped)


def pooled(column: str, first: tuple[str, dict[str, Any]], second: tuple[str, dict[str, Any]]) -> Chance:
    """Return a model of chance for rules that permutes a column among rows of two tables.

    `first` and `second` are each the name of a table, and the values by which its rows are chosen, as in
    `where`. The values of `column` in the rows of both are permuted together.
    """

    def chance(tables: Any, generator: np.random.Generator) -> Any:
        chosen = {name: chosen_rows(tables[name], values) for name, values in (first, second)}
        values = np.concatenate([np.asarray(tables[name][column])[rows] for name, rows in chosen.items()])
        mixed = np.split(generator.permutation(values), [chosen[first[0]].sum()])
        for (name, rows), part in zip(chosen.items(), mixed, strict=True):
            new = np.array(tables[name][column])
            new[rows] = part
            tables = {**tables, name: {**tables[name], column: new}}
        return tables

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

    def model(whole: Any, _: np.random.Generator) -> Any:
        stay = np.flatnonzero(~chosen_rows(whole, of))
        order = np.append(stay, np.flatnonzero(chosen_rows(whole, rows)))
        new = {name: np.asarray(values)[order] for name, values in whole.items()}
        for name, value in of.items():
            new[name][len(stay) :] = value
        return new

    both = {name: value for name, value in of.items() if rows.get(name) == value}
    new, old = (_said({name: side[name] for name in side if name not in both}) for side in (rows, of))
    words = f"rows of `{table}` with {new} in place of those with {old}"
    return changed(f"{words}, both with {_said(both)}" if both else words, table, model)


def replaced(table: str, **columns: str) -> Chance:
    """Return a model of data in which columns of a table are replaced by other columns.

    `columns` names for each column that is replaced the one in its place, as it is before any is replaced.
    """
    words = " and ".join(f"`{name}` replaced by `{other}`" for name, other in columns.items())
    new = lambda rows, _: {name: rows[other] for name, other in columns.items()}  # noqa: E731
    return changed(f"{words} in `{table}`", table, new)


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

    def model(rows: Any, generator: np.random.Generator) -> Any:
        count = len(next(iter(rows.values())))
        return {
            name: np.asarray(draw(rows, generator)) if callable(draw) else np.full(count, draw)
            for name, draw in columns.items()
        }

    return changed(words, table, model)


def rarest_absent(table: str, column: str) -> Chance:
    """Return a model of data without the rarest value of a column.

    In its place are values of other rows, which are drawn at random, so that frequent ones are drawn most
    often.
    """

    def common(rows: Any, generator: np.random.Generator) -> Any:
        names, kinds, counts = np.unique(rows[column], return_inverse=True, return_counts=True)
        rare = kinds == counts.argmin()
        values = names[kinds]
        values[rare] = generator.choice(values[~rare], rare.sum())
        return {column: values}

    return changed(f"the rarest `{column}` of `{table}` replaced by others, at random", table, common)


def _said(chosen: Mapping[str, Any]) -> str:
    return " and ".join(
        f"`{name}` = {value}" if isinstance(value, str) else f"`{name}` = {value:g}"
        for name, value in chosen.items()
    )
