"""Base classes of values and results: how they are compared, copied and pickled, and how they are shown."""

import dataclasses
import os
import re
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]
Integers = NDArray[np.int64]
Int32 = NDArray[np.int32]
Mask = NDArray[np.bool_]
Arrays = Mapping[str, NDArray[Any]]


class Printed:
    """Mixin of what a notebook shows as `repr` does."""

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"


class Value(Printed):
    """Base class of frozen dataclasses with array fields; two objects are equal if all their fields are.

    Only objects of the same class are equal, NaN in an array equals NaN, and fields that are declared with
    ``compare=False`` do not count. The comparison that `dataclass` makes fails for arrays, whose ``==`` gives
    an array. Subclasses are therefore declared with ``eq=False`` and inherit the comparison and the hash of
    this class. Copies and unpickled objects are made by calling the constructor with the fields, which
    computes all derived attributes again.
    """

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(
            arrays_equal(own, others) if np.ndarray in (type(own), type(others)) else own == others
            for own, others in zip(_compared(self), _compared(other), strict=True)
        )

    def __hash__(self) -> int:
        return hash((type(self), *map(_hashable, _compared(self))))

    def _set(self, **values: Any) -> None:
        """Set attributes of a frozen dataclass while ``__post_init__`` checks and converts its fields."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (type(self), {each.name: getattr(self, each.name) for each in dataclasses.fields(self)})  # type: ignore[arg-type]


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a C-contiguous, read-only view of `array`, or of a copy if `array` is not contiguous.

    Arrays of systems are read-only so that a system cannot change. Numba compiles a kernel separately for
    read-only and for writable arrays, so the same argument of a kernel should not be sometimes one and
    sometimes the other.
    """
    array = np.ascontiguousarray(array).view()
    array.setflags(write=False)
    return array


def arrays_equal(first: Any, second: Any) -> bool:
    """Return whether two arrays have the same shape and equal elements, where NaN equals NaN."""
    numbers = all(np.asarray(array).dtype.kind in "fc" for array in (first, second))
    return bool(np.array_equal(first, second, equal_nan=numbers))


def in_range(array: Array, axis: int | tuple[int, ...]) -> Array:
    """Return `array` with its largest magnitude over each `axis` scaled to between 0.5 and 1.

    Sums of squares then neither overflow nor vanish, whatever the unit. The factors are powers of two, so
    that nothing is rounded except what is 1e-308 times the largest or less. Zeros stay zeros.
    """
    return powers_of_two(array, axis)[0]


def powers_of_two(array: Array, axis: int | tuple[int, ...] = (-2, -1)) -> tuple[Array, Int32]:
    """Return `array` as `in_range` does, and the exponents of the powers of two by which it was divided.

    The exponents have the dimensions of `array`, of length 1 along each `axis`.
    """
    _, exponent = np.frexp(np.abs(array).max(axis=axis, keepdims=True))
    return np.ldexp(array, -exponent), exponent


def _made(kind: type[Any], values: dict[str, Any]) -> Any:
    return kind(**values)


def _compared(value: Any) -> list[Any]:
    return [getattr(value, field.name) for field in dataclasses.fields(value) if field.compare]


def _hashable(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.kind in "fc":  # -0.0 equals 0.0, and any NaN equals any other
        value = np.where(np.isnan(value), np.nan, value + 0)
    return value.shape, value.tobytes()


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
        return {each.name: getattr(self, each.name) for each in dataclasses.fields(self) if each.repr}  # type: ignore[arg-type]

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


class Results(Shown, dict[str, Any]):
    """Results by name: a dictionary that `print` shows on one screen, a row for each name."""

    def _values(self) -> dict[str, Any]:
        return self


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
