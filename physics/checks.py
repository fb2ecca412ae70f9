"""Validation of arguments: convert each one once, or refuse it with a sentence that names it.

Kernels trust their arrays; every public function passes its arguments through these checks first.
"""

import math
import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from physics.errors import InputError

LARGEST = 2**53
"""Largest whole number that is accepted: floats hold all up to it, and no array has more items."""


def whole_number(name: str, value: Any, minimum: int) -> int:
    """Return `value` as an int from `minimum` to 2^53. Booleans and fractions are refused."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{name} must be a whole number of at least {minimum}, got {value!r}") from None
    if number < minimum:
        raise InputError(f"{name} must be at least {minimum}, got {number}")
    if number > LARGEST:
        raise InputError(f"{name} must be at most {LARGEST}, got {'more' if number > 10**30 else number}")
    return number


def number(name: str, value: Any, minimum: float = -math.inf, *, above: float = -math.inf) -> float:
    """Return `value` as a finite float that is at least `minimum` and greater than `above`."""
    allowed = "a finite number"
    if above > -math.inf:
        allowed += f" greater than {above:g}"
    elif minimum > -math.inf:
        allowed += f" of at least {minimum:g}"
    try:
        result = float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be {allowed}, got {value!r}") from None
    if not math.isfinite(result) or result < minimum or result <= above:
        raise InputError(f"{name} must be {allowed}, got {result:g}")
    return result


def flag(name: str, value: Any) -> bool:
    """Return `value` as a bool. Numbers and words are refused."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def choice(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """Return `value` if it is one of `allowed`."""
    if value not in allowed:
        raise InputError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
    return str(value)


def finite_array(name: str, value: Any) -> NDArray[np.float64]:
    """Return `value` as a C-contiguous float64 array; complex, non-numeric, NaN and infinity are refused."""
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


def point_sets(name: str, value: Any, *, minimum_tokens: int = 3) -> NDArray[np.float64]:
    """Return `value` as finite point sets (…, tokens, dim) with enough tokens and at least one axis."""
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
