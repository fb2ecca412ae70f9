"""Checks of arguments: each function converts a value, or refuses it and names the argument.

Public functions pass their arguments through these checks once, and kernels then trust their arrays. Every
function raises an `InputError` for a value that it refuses.
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
    """Return `value` as an int between `minimum` and 2^53; refuse booleans, fractions and floats.

    Parameters
    ----------
    name : str
        Name of the argument, for the message.
    value : object
        Value of the argument.
    minimum : int
        Smallest number that is allowed.

    Returns
    -------
    int
        The same number.

    Raises
    ------
    InputError
        If `value` is not an integer (of Python or NumPy), or is out of range.
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
    """Return `value` as the index of one of `count` items, which are counted from 0.

    Parameters
    ----------
    name : str
        Name of the argument, for the message.
    value : object
        Value of the argument.
    count : int
        Number of items.

    Returns
    -------
    int
        Index from 0 to ``count - 1``.

    Raises
    ------
    InputError
        If `value` is not a whole number, or is out of this range.
    """
    index = whole_number(name, value, 0)
    if index >= count:
        raise InputError(f"{name} must be at most {count - 1}, got {index}")
    return index


def number(name: str, value: Any, minimum: float = -math.inf, *, above: float = -math.inf) -> float:
    """Return `value` as a finite float that is at least `minimum` and greater than `above`.

    Parameters
    ----------
    name : str
        Name of the argument, for the message.
    value : object
        Value of the argument; anything that ``float`` accepts.
    minimum : float, default -math.inf
        Smallest number that is allowed.
    above : float, default -math.inf
        Bound that the number must exceed.

    Returns
    -------
    float
        The same number, finite and in its range.

    Raises
    ------
    InputError
        If `value` is not a number, is NaN or infinite, or is out of range.
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
    if not math.isfinite(result) or result < minimum or result <= above:
        raise InputError(f"{name} must be {allowed}, got {result:g}")
    return result


def flag(name: str, value: Any) -> bool:
    """Return a truth value as a bool, and refuse all others, so that "no" or 0 is not misread.

    Parameters
    ----------
    name : str
        Name of the argument, for the message.
    value : object
        Value of the argument.

    Returns
    -------
    bool
        The same truth value, as Python's own type.

    Raises
    ------
    InputError
        If `value` is not True or False (of Python or NumPy).
    """
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def choice(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """Return a string if it is one of those that are allowed.

    Parameters
    ----------
    name : str
        Name of the argument, for the message.
    value : object
        Value of the argument.
    allowed : tuple of str
        Strings that are allowed; the message lists them.

    Returns
    -------
    str
        The same string.

    Raises
    ------
    InputError
        If `value` is not among `allowed`.
    """
    if value not in allowed:
        raise InputError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
    return str(value)


def finite_array(name: str, value: Any) -> NDArray[np.float64]:
    """Return `value` as a C-contiguous array of float64; refuse complex numbers, text, NaN and infinity.

    Parameters
    ----------
    name : str
        Name of the argument, for the message.
    value : array_like
        Real numbers of any shape; booleans count as 0 and 1.

    Returns
    -------
    ndarray of float64, shape of `value`
        It shares memory with `value` if that already has this type and layout.

    Raises
    ------
    InputError
        If `value` is not an array of real numbers, or one of them is not finite.
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
    """Return `value` as an array of complex128; refuse text, booleans, NaN and infinity.

    Parameters
    ----------
    name : str
        Name of the argument, for the message.
    value : array_like
        Complex or real numbers of any shape.

    Returns
    -------
    ndarray of complex128, shape of `value`
        A new array, which shares no memory with `value`.

    Raises
    ------
    InputError
        If `value` is not an array of numbers, or one of them is not finite.
    """
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
    """Return `value` as finite point sets (..., tokens, dim) with enough tokens and at least one dimension.

    Parameters
    ----------
    name : str
        Name of the argument, for the message.
    value : array_like, shape (..., tokens, dim)
        One point set, or any number of them.
    minimum_tokens : int, default 3
        Smallest number of tokens that is allowed.

    Returns
    -------
    ndarray of float64, shape (..., tokens, dim)
        C-contiguous; it shares memory with `value` if that already has this type and layout.

    Raises
    ------
    InputError
        If `value` is not finite and real, has too few axes or tokens, or its last axis is empty.
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
