"""Frozen dataclasses that hold arrays: equal, hashed, copied and pickled by their fields."""

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Value:
    """A base of frozen dataclasses with ``eq=False``, for which arrays are equal if all their entries are.

    Attributes that are derived from the fields are not copied; the constructor computes them again. The
    arrays of a copy are therefore read-only, like those of the original.
    """

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(
            np.array_equal(own, others) if np.ndarray in (type(own), type(others)) else own == others
            for own, others in zip(_compared(self), _compared(other), strict=True)
        )

    def __hash__(self) -> int:
        return hash((type(self), *map(_hashable, _compared(self))))

    def _set(self, **values: Any) -> None:
        """Set attributes of a frozen dataclass, from its ``__post_init__``."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (type(self), {field.name: getattr(self, field.name) for field in _fields(self)})


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view. Kernels are compiled separately for read-only and for writable arrays."""
    array = np.ascontiguousarray(array).view()
    array.setflags(write=False)
    return array


def _made(kind: type[Any], values: dict[str, Any]) -> Any:
    return kind(**values)


def _fields(value: Any) -> tuple[Any, ...]:
    return dataclasses.fields(value)


def _compared(value: Any) -> list[Any]:
    return [getattr(value, field.name) for field in _fields(value) if field.compare]


def _hashable(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    return value.shape, (value + 0).tobytes()  # -0.0 equals 0.0, and becomes it
