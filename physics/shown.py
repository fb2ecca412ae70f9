"""How results are shown: on one line, on one screen, as a table in a notebook, and as a data frame."""

import os
import re
from collections.abc import Mapping
from dataclasses import fields
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas

MOST_LINES, MOST_SIGNS, MOST_NUMBERS = 30, 88, 8
"""Lines of a result as text, signs in each of them, and numbers of an array that are all shown."""


def natural_order(name: str | os.PathLike[str]) -> list[str | int]:
    """Return a sort key by which numbers in names are compared as numbers: step_9 comes before step_10."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", os.fspath(name))]


class Shown:
    """Mixin of results, mostly dataclasses: `repr` shows them on one line, and `print` on one screen.

    Of a long array both give the type, the shape and the range; `to_dataframe` holds the numbers.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__repr__" not in vars(cls):
            cls.__repr__ = Shown.__repr__  # type: ignore[method-assign]  # not that of `dataclass`

    def _values(self) -> dict[str, Any]:
        """Return the fields by name."""
        if not hasattr(self, "__dataclass_fields__"):
            return vars(self)
        return {each.name: getattr(self, each.name) for each in fields(self) if each.repr}  # type: ignore[arg-type]

    def _shown(self) -> dict[str, str]:
        """Return what is shown, as a text for each name."""
        return {name: brief(value) for name, value in self._values().items()}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={text}' for name, text in self._shown().items())})"

    def __str__(self) -> str:
        rows = self._shown()
        width = max(map(len, rows), default=0)
        lines = [type(self).__name__, *(f"  {name:<{width}}  {text}" for name, text in rows.items())]
        return "\n".join(lines if len(lines) <= MOST_LINES else [*lines[: MOST_LINES - 1], "  …"])

    def _repr_html_(self) -> str:
        """Return what is shown as a table with a row for each name."""
        rows = "".join(f"<tr><th>{escape(n)}</th><td>{escape(t)}</td></tr>" for n, t in self._shown().items())
        return f"<table><caption>{type(self).__name__}</caption>{rows}</table>"

    def to_dataframe(self) -> "pandas.DataFrame":
        """Return the numbers as a table.

        Returns
        -------
        pandas.DataFrame
            The rows of the method `table` if the result has one. Otherwise a column for each number, the same
            in every row, and for each array that is as long as the first.
        """
        import pandas

        if hasattr(self, "table"):
            return pandas.DataFrame(self.table())
        columns = self._columns()
        length = next((len(value) for value in columns.values() if np.ndim(value)), 1)
        fits = {n: value for n, value in columns.items() if not np.ndim(value) or len(value) == length}
        return pandas.DataFrame(fits, index=range(length))

    def _columns(self) -> dict[str, Any]:
        """Return numbers, texts and arrays with one axis by name; arrays with two are one for each column."""
        columns: dict[str, Any] = {}
        for name, value in self._values().items():
            if isinstance(value, Shown):
                columns |= {f"{name}_{part}": each for part, each in value._columns().items()}
            elif isinstance(value, np.ndarray) and value.ndim == 2:
                columns |= {f"{name}_{k}": column for k, column in enumerate(value.T)}
            elif isinstance(value, float | int | str | np.generic) or np.ndim(value) == 1:
                columns[name] = value
        return columns


def brief(value: Any) -> str:
    """Return a value as text on one line of at most `MOST_SIGNS` signs."""
    if isinstance(value, np.ndarray) and value.size > MOST_NUMBERS:
        text = f"{value.dtype} {value.shape}"
        if value.dtype == bool:
            text = f"{value.sum()} of {value.size} true, {text}"
        elif value.dtype.kind in "iuf" and (finite := value[np.isfinite(value)]).size:
            text += f", {finite.min():.4g} to {finite.max():.4g}"
    elif isinstance(value, np.ndarray):
        text = np.array2string(value, precision=4, suppress_small=True)
    elif isinstance(value, Mapping):
        text = ", ".join(f"{name} {brief(each)}" for name, each in value.items())
    elif isinstance(value, list | tuple) and any(isinstance(each, Shown | np.ndarray) for each in value):
        text = f"{len(value)} × {type(value[0]).__name__}"
    else:
        text = f"{value:.4g}" if isinstance(value, float) else repr(value)
    text = " ".join(text.split())
    return text if len(text) <= MOST_SIGNS else f"{text[: MOST_SIGNS - 1]}…"
