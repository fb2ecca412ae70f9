"""A base class of frozen dataclasses with arrays: how they are compared, hashed, copied and pickled."""

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]
Integers = NDArray[np.int64]
Int32 = NDArray[np.int32]
Mask = NDArray[np.bool_]


class Value:
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
        return _made, (type(self), {field.name: getattr(self, field.name) for field in _fields(self)})


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


def _fields(value: Any) -> tuple[Any, ...]:
    return dataclasses.fields(value)


def _compared(value: Any) -> list[Any]:
    return [getattr(value, field.name) for field in _fields(value) if field.compare]


def _hashable(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.kind in "fc":  # -0.0 equals 0.0, and any NaN equals any other
        value = np.where(np.isnan(value), np.nan, value + 0)
    return value.shape, value.tobytes()
