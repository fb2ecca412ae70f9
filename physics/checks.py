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


def whole_number(name: str, value: Any, minimum: int, maximum: int = LARGEST) -> int:
    """Return `value` as an int from `minimum` to `maximum`; refuse booleans, fractions and floats.

    Parameters
    ----------
    name : str
        Name of the argument, for the message.
    value : object
        Value of the argument.
    minimum : int
        Smallest number that is allowed.
    maximum : int, default LARGEST
        Largest number that is allowed.

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
        raise InputError(
            f"{name} must be a whole number of at least {minimum}, got {short_text(value)}"
        ) from None
    if number < minimum:
        raise InputError(f"{name} must be at least {minimum}, got {short_text(number)}")
    if number > maximum:
        raise InputError(f"{name} must be at most {maximum}, got {short_text(number)}")
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
    return whole_number(name, value, 0, count - 1)


def number(
    name: str,
    value: Any,
    minimum: float = -math.inf,
    maximum: float = math.inf,
    *,
    above: float = -math.inf,
    below: float = math.inf,
) -> float:
    """Return `value` as a finite float in a range, of which each end may be allowed or excluded.

    Parameters
    ----------
    name : str
        Name of the argument, for the message.
    value : object
        Value of the argument; anything that ``float`` accepts.
    minimum, maximum : float, default -math.inf and math.inf
        Smallest and largest number that are allowed.
    above, below : float, default -math.inf and math.inf
        Bounds that are excluded: the number must be greater than `above` and less than `below`.

    Returns
    -------
    float
        The same number, finite and in its range.

    Raises
    ------
    InputError
        If `value` is not a number, is NaN or infinite, or is out of range.
    """
    if math.isfinite(minimum) and math.isfinite(maximum):
        ends = [f"from {minimum:g} to {maximum:g}"]
    else:
        words = {"greater than": above, "of at least": minimum, "less than": below, "at most": maximum}
        ends = [f"{word} {end:g}" for word, end in words.items() if math.isfinite(end)]
    allowed = " ".join(["a finite number", " and ".join(ends)]).rstrip()
    try:
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be {allowed}, got {short_text(value)}") from None
    if not (minimum <= result <= maximum and above < result < below):  # NaN and infinity are refused, too
        got = distinct(result, minimum, maximum, above, below)
        raise InputError(f"{name} must be {allowed}, got {got}")
    return result


def distinct(value: float, *bounds: float) -> str:
    """Return a number with six digits, or with all if six would make it look like one of its bounds.

    A message can thus say that 1.0000001 is more than 1.

    Parameters
    ----------
    value : float
        The number, which may be NaN or infinite.
    *bounds : float
        Numbers that the message compares with it.

    Returns
    -------
    str
        Text such as "0.1", "1e-12" or "nan".
    """
    short = f"{value:g}"
    alike = any(f"{bound:g}" == short for bound in bounds if bound != value)
    return repr(float(value)) if alike else short


def short_text(value: Any) -> str:
    """Return a value as a message repeats it: on one line, in at most 80 characters.

    Parameters
    ----------
    value : object
        Value of an argument.

    Returns
    -------
    str
        Its ``repr``, or for a very large whole number the number of its digits.
    """
    if isinstance(value, int) and abs(value) > 10**30:
        return f"a {'negative ' * (value < 0)}number of {math.floor(math.log10(abs(value))) + 1} digits"
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:79]}…"


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
        raise InputError(f"{name} must be True or False, got {short_text(value)}")
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
    if not isinstance(value, str) or value not in allowed:
        raise InputError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {short_text(value)}")
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
    return f"{type(value).__name__} {short_text(value)}"
