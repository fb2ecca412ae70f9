"""Checks of arguments: each function returns a value in one type, or refuses it and names the argument.

Public functions pass their arguments through these checks once, and kernels then trust their arrays. All
functions here raise an `InputError` for a value that they refuse; its message begins with `name`, the name of
the argument.
"""

import contextlib
import math
import operator
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from physics.errors import InputError
from physics.values import Array, Complex, Mask

LARGEST = 2**53
"""Largest whole number that is accepted: float64 represents all whole numbers up to it exactly."""


def whole_number(name: str, value: Any, minimum: int, maximum: int = LARGEST) -> int:
    """Return `value`, an integer of Python or NumPy, as an int; refuse all but those in the range.

    The range is from `minimum` to `maximum`, both included. Booleans and floats are refused, even if they
    are whole.
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        got = short_text(value)
        raise InputError(f"{name} must be a whole number of at least {minimum}, got {got}") from None
    if number < minimum:
        raise InputError(f"{name} must be at least {minimum}, got {short_text(number)}")
    if number > maximum:
        raise InputError(f"{name} must be at most {maximum}, got {short_text(number)}")
    return number


def number(
    name: str,
    value: Any,
    minimum: float = -math.inf,
    maximum: float = math.inf,
    *,
    above: float = -math.inf,
    below: float = math.inf,
) -> float:
    """Return `value`, anything that ``float`` accepts, as a finite float in a range.

    The number may equal `minimum` and `maximum`, but neither `above` nor `below`.
    """
    try:
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        got = short_text(value)
    else:
        if minimum <= result <= maximum and above < result < below:  # neither NaN nor infinity is
            return result
        got = distinct(result, minimum, maximum, above, below)
    words = {"greater than": above, "of at least": minimum, "less than": below, "at most": maximum}
    ends = " and ".join(f"{word} {end:g}" for word, end in words.items() if math.isfinite(end))
    raise InputError(f"{name} must be {f'a finite number {ends}'.rstrip()}, got {got}") from None


def distinct(value: float, *bounds: float) -> str:
    """Return a number in six digits, or in all of them if six would make it look like one of `bounds`.

    A message can thus say that 1.0000001 is more than 1.
    """
    short = f"{value:g}"
    alike = any(f"{bound:g}" == short for bound in bounds if bound != value)
    return repr(float(value)) if alike else short


def short_text(value: Any) -> str:
    """Return the ``repr`` of a value on one line of at most 80 characters, or a huge integer's length."""
    if isinstance(value, int) and abs(value) > 10**30:
        return f"a {'negative ' * (value < 0)}number of about {math.log10(abs(value)):.0f} digits"
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:79]}…"


def flag(name: str, value: Any) -> bool:
    """Return `value`, a bool of Python or NumPy, as a bool; refuse all others, such as "no" or 0."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} must be True or False, got {short_text(value)}")
    return bool(value)


def choice(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """Return `value` if it is one of the strings `allowed`, which the message lists otherwise."""
    if not isinstance(value, str) or value not in allowed:
        raise InputError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {short_text(value)}")
    return str(value)


def mapping(name: str, value: Any) -> dict[Any, Any]:
    """Return `value`, a mapping such as a dict, as a dict; None is an empty one."""
    if value is not None and not isinstance(value, Mapping):
        raise InputError(f"{name} must be a mapping, such as a dict, got {short_text(value)}")
    return {} if value is None else dict(value)


def sequence(name: str, value: Any) -> list[Any]:
    """Return the items of `value`, a sequence, an array or anything else that has items."""
    try:
        return list(value)
    except TypeError:
        raise InputError(f"{name} must be a sequence, got {short_text(value)}") from None


def names_in(name: str, value: Any) -> tuple[Any, ...]:
    """Return `value`, a name or a sequence of names, as a tuple; the names themselves are not checked."""
    return (value,) if isinstance(value, str) else tuple(sequence(name, value))


def file_path(name: str, value: Any) -> Path:
    """Return `value`, the name of a file as text or as a path, as an absolute `pathlib.Path`.

    It then still names the same file if the program changes its directory during a run.
    """
    try:
        return Path(value).absolute()
    except (TypeError, FileNotFoundError):  # the present directory may have been removed
        raise InputError(f"{name} must be the name of a file, got {short_text(value)}") from None


def misfit(name: str, array: NDArray[Any], need: str) -> InputError:
    """Return the error that an array must be, hold or have something else, which `need` says."""
    return InputError(f"{name} must {need}, got {array.dtype} of shape {array.shape}")


def regular_array(name: str, value: Any) -> NDArray[Any]:
    """Return `value` as an array of any type; refuse rows of unequal lengths and masked entries."""
    parts = value if isinstance(value, list | tuple) else (value,)
    masked = sum(int(np.ma.count_masked(part)) for part in parts if isinstance(part, np.ma.MaskedArray))
    if masked:
        raise InputError(f"{name} must hold no masked entries, which would count, got {masked}; fill them")
    try:
        return np.asarray(value)
    except ValueError:
        raise InputError(f"{name} must have rows of equal lengths, got {short_text(value)}") from None


def real_array(name: str, value: Any, ndim: int | None = None) -> Array:
    """Return `value` as a C-contiguous array of float64 with `ndim` axes, by default any number.

    Complex numbers and text are refused. Booleans count as 0 and 1. The result shares memory with `value` if
    that already has this type and layout.
    """
    raw = regular_array(name, value)
    if raw.dtype.kind not in "biuf":
        raise misfit(name, raw, "be an array of real numbers")
    array = np.ascontiguousarray(raw, dtype=np.float64).reshape(raw.shape)
    _check_axes(name, array, ndim)
    return array


def truth_array(name: str, value: Any, ndim: int | None = None) -> Mask:
    """Return `value` as an array of booleans with `ndim` axes, by default any number.

    All else is refused, even 0 and 1; only an array without values may have another type.
    """
    array = regular_array(name, value)
    if array.dtype != np.bool_ and array.size:
        raise misfit(name, array, "be an array of booleans")
    _check_axes(name, array, ndim)
    return array.astype(bool, copy=False)


def finite_array(name: str, value: Any, ndim: int | None = None) -> Array:
    """Return `value` as from `real_array`, and refuse NaN and infinity as well."""
    array = real_array(name, value, ndim)
    bad = array.size - int(np.count_nonzero(np.isfinite(array)))
    if bad:
        raise InputError(f"{name} must be finite, got {bad} NaN or infinite among {array.size} values")
    return array


def increasing_array(name: str, value: Any) -> Array:
    """Return `value` as from `finite_array`, with one axis, and refuse numbers that do not increase."""
    array = finite_array(name, value, ndim=1)
    fallen = np.flatnonzero(array[1:] <= array[:-1])
    if len(fallen):
        low, high = array[fallen[0]], array[fallen[0] + 1]
        raise InputError(f"{name} must increase, got {distinct(low, high)} followed by {distinct(high, low)}")
    return array


def complex_array(name: str, value: Any) -> Complex:
    """Return a copy of `value` as an array of complex128; refuse text, booleans, NaN and infinity."""
    array = regular_array(name, value)
    if array.dtype.kind not in "iufc":
        raise misfit(name, array, "be an array of complex numbers")
    if not np.isfinite(array).all():
        raise InputError(f"{name} must be finite, got NaN or infinite values")
    return array.astype(np.complex128)


def point_sets(name: str, value: Any, *, minimum_tokens: int = 3, ndim: int | None = None) -> Array:
    """Return `value` as finite point sets, C-contiguous and of float64, (..., tokens, dim).

    Fewer than two axes, fewer than `minimum_tokens` tokens, a last axis of length 0, and another number of
    axes than `ndim`, if that is given, are refused. The result shares memory with `value` if that already has
    this type and layout.
    """
    array = finite_array(name, value)
    if array.ndim < 2 or array.shape[-1] < 1:
        raise misfit(name, array, "have the shape (..., tokens, dim), and at least 1 dimension")
    if array.shape[-2] < minimum_tokens:
        raise InputError(f"{name} must hold at least {minimum_tokens} tokens, got {array.shape[-2]}")
    _check_axes(name, array, ndim)
    return array


def one_embedding(name: str, value: Any) -> Array:
    """Return `value` as from `point_sets`, and refuse all but a single point set (tokens, dim).

    Of a trajectory with a single run this is its last frame.
    """
    return point_sets(name, value.final[0] if getattr(value, "runs", 0) == 1 else value, ndim=2)


def ensemble(name: str, value: Any, size: tuple[int, int]) -> Array:
    """Return `value` as real numbers of the shape (tokens, dim) or (runs, tokens, dim), C-contiguous float64.

    `size` is (tokens, dim). NaN and infinity are allowed.
    """
    array = real_array(name, value)
    if array.ndim not in (2, 3) or array.shape[-2:] != size:
        raise misfit(name, array, f"have the shape {size} or (runs, {size[0]}, {size[1]})")
    return array


def _check_axes(name: str, array: NDArray[Any], ndim: int | None) -> None:
    if ndim not in (None, array.ndim):
        axes = "1 axis" if ndim == 1 else f"{ndim} axes"
        raise InputError(f"{name} must have {axes}, got the shape {array.shape}")


def require_memory(what: str, needed: float, advice: str) -> None:
    """Refuse work that needs more bytes than this process may use, with an `InputError`.

    The message says `what` needs the memory, and gives the `advice`. Otherwise the operating system might end
    the process without a word. If the system does not report its memory, nothing is refused.
    """
    limits = {"this container or job may use": group_limit()}
    with contextlib.suppress(AttributeError, OSError, ValueError):
        limits["this machine has"] = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    whose = min(limits, key=lambda name: limits[name])
    if needed > limits[whose]:
        size, limit = needed / 2**30, limits[whose] / 2**30
        raise InputError(f"{what} need {size:.1f} GiB, more than the {limit:.1f} GiB that {whose}; {advice}")


def group_limit(root: Path = Path("/")) -> float:
    """Return the least memory limit in bytes of this process's control group and of those around it.

    Version 2 of Linux's control groups is read, below `root`; without any the limit is infinite.
    """
    limit = float("inf")
    with contextlib.suppress(OSError, StopIteration):
        lines = (root / "proc/self/cgroup").read_text().splitlines()
        path = next(line for line in lines if line.startswith("0::")).removeprefix("0::/")
        # A container may see its own group as the root, under which the host's path does not exist.
        inner = root / "sys/fs/cgroup" / path
        for folder in (inner, *inner.parents):
            with contextlib.suppress(OSError, ValueError):  # no such file, or the word "max"
                limit = min(limit, float((folder / "memory.max").read_text()))
    return limit
