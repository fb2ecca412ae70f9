"""Checks of arguments: each function returns a value in one type, or refuses it and names the argument.

Public functions pass their arguments through these checks once, and kernels then trust their arrays. All
functions here raise an `InputError` for a value that they refuse; its message begins with `name`, the name of
the argument.
"""

import math
import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from physics.errors import InputError

LARGEST = 2**53
"""Largest whole number that is accepted: float64 represents all whole numbers up to it exactly."""


def whole_number(name: str, value: Any, minimum: int) -> int:
    """Return `value`, an integer of Python or NumPy, as an int; refuse all but those from `minimum` to 2^53.

    Booleans and floats are refused, even if they are whole.
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{name} must be a whole number of at least {minimum}, got {value!r}") from None
    if number < minimum:
        raise InputError(f"{name} must be at least {minimum}, got {number}")
    if number > LARGEST:
        got = f"a number of {math.floor(math.log10(number)) + 1} digits" if number > 10**30 else number
        raise InputError(f"{name} must be at most {LARGEST}, got {got}")
    return number


def place(name: str, value: Any, count: int) -> int:
    """Return `value` as an int if it is the index of one of `count` items, from 0 to ``count - 1``."""
    index = whole_number(name, value, 0)
    if index >= count:
        raise InputError(f"{name} must be at most {count - 1}, got {index}")
    return index


def number(name: str, value: Any, minimum: float = -math.inf, *, above: float = -math.inf) -> float:
    """Return `value` as a finite float of at least `minimum`, or greater than `above`.

    `value` may be anything that ``float`` accepts. A caller gives one of the two bounds, or none.
    """
    allowed = "a finite number"
    if above > -math.inf:
        allowed += f" greater than {above:g}"
    elif minimum > -math.inf:
        allowed += f" of at least {minimum:g}"
    try:
        result = float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be {allowed}, got {value!r}") from None
    except OverflowError:  # a whole number that is too large for a float
        result = math.inf
    if not math.isfinite(result) or result < minimum or result <= above:
        raise InputError(f"{name} must be {allowed}, got {written(result)}")
    return result


def written(value: float) -> str:
    """Return a float for a message: in six digits if they are exact, since a rounded one may be allowed."""
    short = f"{value:g}"
    return short if float(short) == value or math.isnan(value) else repr(value)


def flag(name: str, value: Any) -> bool:
    """Return `value`, a bool of Python or NumPy, as a bool; refuse all others, such as "no" or 0."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def choice(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """Return `value` if it is one of the strings `allowed`, which the message lists otherwise."""
    if value not in allowed:
        raise InputError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
    return str(value)


def finite_array(name: str, value: Any) -> NDArray[np.float64]:
    """Return `value` as a C-contiguous array of float64; refuse complex numbers, text, NaN and infinity.

    Booleans count as 0 and 1. The result shares memory with `value` if that already has this type and layout.
    """
    try:
        raw = np.asarray(value)
        if raw.dtype.kind not in "biuf":
            raise TypeError
        array = np.ascontiguousarray(raw, dtype=np.float64).reshape(raw.shape)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be an array of real numbers, got {_describe(value)}") from None
    bad = array.size - int(np.count_nonzero(np.isfinite(array)))
    if bad:
        raise InputError(f"{name} must be finite, got {bad} NaN or infinite among {array.size} values")
    return array


def complex_array(name: str, value: Any) -> NDArray[np.complex128]:
    """Return a copy of `value` as an array of complex128; refuse text, booleans, NaN and infinity."""
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "iufc":
            raise TypeError
        array = array.astype(np.complex128)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be an array of complex numbers, got {type(value).__name__}") from None
    if not np.isfinite(array).all():
        raise InputError(f"{name} must be finite, got NaN or infinite values")
    return array


def point_sets(name: str, value: Any, *, minimum_tokens: int = 3) -> NDArray[np.float64]:
    """Return `value` as finite point sets, C-contiguous and of float64, (..., tokens, dim).

    Fewer than two axes, fewer than `minimum_tokens` tokens, and a last axis of length 0 are refused. The
    result shares memory with `value` if that already has this type and layout.
    """
    array = finite_array(name, value)
    if array.ndim < 2:
        raise InputError(f"{name} must have the shape (..., tokens, dim), got {array.shape}")
    if array.shape[-2] < minimum_tokens:
        raise InputError(f"{name} must hold at least {minimum_tokens} tokens, got {array.shape[-2]}")
    if array.shape[-1] < 1:
        raise InputError(f"{name} must have at least 1 dimension, got {array.shape[-1]}")
    return array


def _describe(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}"
    return f"{type(value).__name__} {value!r}"[:80]
