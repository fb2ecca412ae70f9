"""The steps at which a run is recorded."""

import math
import re
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from physics.checks import whole_number
from physics.errors import InputError

FRAMES_A_DECADE = 20
LARGEST_DENSITY = 10**6
"""Largest number of frames in a decade of steps; the grid of all of them must fit into memory."""


def recording_steps(record: int | str | Sequence[int], steps: int) -> NDArray[np.int64]:
    """Return the steps at which a run of `steps` steps is recorded, in increasing order.

    Parameters
    ----------
    record : int, str or sequence of int
        A number k means step 0, every multiple of k, and the last step. ``"log"`` means step 0 and about 20
        steps per decade up to the last one, and ``"log:n"`` about n per decade. ``"1:1000,100"`` means every
        step up to 1000, then every hundredth from there, and the last one; several parts ``every:until`` may
        precede the final number. A sequence, or a string such as ``"0,10,100"``, means exactly these steps.
    steps : int
        The last step, at least 1.

    Returns
    -------
    ndarray of int64, shape (n,)
        Steps from 0 to `steps`, without repetition.

    Raises
    ------
    InputError
        If `steps` is not a whole number of at least 1, or `record` has none of these forms, lists a step
        beyond the last, or has parts of which one ends before the previous one.

    Examples
    --------
    >>> from nets.recording import recording_steps
    >>> recording_steps(25, 100).tolist(), recording_steps("1:4,50", 100).tolist()
    ([0, 25, 50, 75, 100], [0, 1, 2, 3, 4, 54, 100])
    """
    steps = whole_number("steps", steps, 1)
    if isinstance(record, str):
        logarithmic = re.fullmatch(r"log(?::(\d+))?", record)
        if logarithmic:
            density = _density(logarithmic[1])
            count = int(np.ceil(density * np.log10(steps))) + 1
            return np.unique(np.append(0, np.geomspace(1, steps, count).round().astype(np.int64)))
        if re.fullmatch(r"(\d+:\d+,)+\d+", record):
            return _head_and_tail(record, steps)
        if not re.fullmatch(r"\d+(,\d+)*", record):
            raise InputError(
                "record must be a number, 'log', 'log:n', 'every:until,every' or a list of steps, "
                f"got {record!r}"
            )
        numbers = [_number(item) for item in record.split(",")]
        record = numbers[0] if len(numbers) == 1 else numbers
    if isinstance(record, Sequence | np.ndarray):
        chosen = np.array([whole_number("record", step, 0) for step in record], np.int64)
        if not len(chosen) or chosen.max() > steps:
            raise InputError(
                f"record must name at least one step and none beyond {steps}, got {list(record)}"
            )
        return np.unique(chosen)
    every = whole_number("record", record, 1)
    return np.unique(np.append(np.arange(0, steps + 1, every), steps))


def described_record(record: int | str | Sequence[int]) -> int | str | list[int]:
    """Return `record`, which `recording_steps` or `due` has accepted, in a form that JSON can hold."""
    if isinstance(record, str):
        return record
    return [int(step) for step in record] if isinstance(record, Sequence | np.ndarray) else int(record)


def due(record: int | str | Sequence[int]) -> Callable[[int], bool]:
    """Return a function that decides for each step whether to record it, for loops of unknown length.

    `record` is as in `recording_steps`, and an `InputError` refuses any other form. The function does not
    know the last step, which its caller has to record in any case.
    """
    if isinstance(record, str) and (logarithmic := re.fullmatch(r"log(?::(\d+))?", record)):
        density = _density(logarithmic[1])

        def on_grid(step: int) -> bool:
            near = round(density * math.log10(step)) if step else 0
            return not step or any(round(10 ** (k / density)) == step for k in (near - 1, near, near + 1))

        return on_grid
    if isinstance(record, str) and re.fullmatch(r"(\d+:\d+,)+\d+", record):
        parts = [tuple(map(int, part.split(":"))) for part in record.split(",")[:-1]]
        begins, tail = [0, *(until for _, until in parts)], int(record.rpartition(",")[2])
        recording_steps(record, 1)  # this call refuses invalid values

        def in_parts(step: int) -> bool:
            for begin, (every, until) in zip(begins, parts, strict=False):
                if step < until:
                    return (step - begin) % every == 0
            return (step - begins[-1]) % tail == 0

        return in_parts
    if isinstance(record, Sequence | np.ndarray) and not (isinstance(record, str) and record.isdigit()):
        listed = record.split(",") if isinstance(record, str) else record
        last = max((int(step) for step in listed if str(step).isdigit()), default=1)
        return set(recording_steps(record, max(last, 1)).tolist()).__contains__
    every = whole_number("record", int(record) if isinstance(record, str) else record, 1)
    return lambda step: step % every == 0


def _density(digits: str | None) -> int:
    """Return the number of frames in a decade of steps: the n of ``"log:n"``, or the default of ``"log"``."""
    density = _number(digits or FRAMES_A_DECADE)
    if not 1 <= density <= LARGEST_DENSITY:
        raise InputError(
            f"record must ask for 1 to {LARGEST_DENSITY} frames in each decade, got 'log:{digits}'"
        )
    return density


def _number(digits: str | int) -> int:
    """Return the number that some digits denote.

    Only the first 30 are read, because Python refuses to convert thousands of digits; a number of 30 digits
    is already larger than any that is allowed.
    """
    return int(str(digits)[:30])


def _head_and_tail(record: str, steps: int) -> NDArray[np.int64]:
    """Return the steps of the parts ``every:until``, and of a final ``every`` for the rest."""
    *parts, tail = record.split(",")
    chosen, begin = [], 0
    for part in parts:
        every, until = (whole_number("record", _number(number), 1) for number in part.split(":"))
        if until < begin:
            raise InputError(f"record must list its parts EVERY:UNTIL in the order of UNTIL, got {record!r}")
        chosen.append(np.arange(begin, min(until, steps) + 1, every))
        begin = until
    chosen.append(np.arange(begin, steps + 1, whole_number("record", _number(tail), 1)))
    return np.unique(np.append(np.concatenate(chosen), steps)).astype(np.int64)
