"""The steps at which a run is recorded."""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from physics.checks import LARGEST, InputError, require_memory, whole_number
from physics.values import Integers

FRAMES_A_DECADE = 20
LARGEST_DENSITY = 10**6
"""Largest number of frames in a decade of steps; the grid of all of them must fit into memory."""


def recording_steps(record: int | str | Sequence[int], steps: int) -> Integers:
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
    >>> from physics.trajectory.schedule import recording_steps
    >>> recording_steps(25, 100).tolist(), recording_steps("1:4,50", 100).tolist()
    ([0, 25, 50, 75, 100], [0, 1, 2, 3, 4, 54, 100])
    """
    steps = whole_number("steps", steps, 1)
    density, listed, parts = _parsed(record)
    if density:
        count = int(np.ceil(density * np.log10(steps))) + 1
        return np.unique(np.append(0, np.geomspace(1, steps, count).round().astype(np.int64)))
    if listed:
        if max(listed) > steps:
            raise InputError(f"record must name no step beyond {steps}, got {max(listed)}")
        return np.unique(listed)
    ranges = [range(begin, min(until, steps) + 1, every) for begin, every, until in parts]
    count = sum(map(len, ranges))
    require_memory(f"steps of {count} frames", 32 * count, "record less often")
    return np.unique(np.concatenate([*(np.arange(r.start, r.stop, r.step) for r in ranges), [steps]]))


def due(record: int | str | Sequence[int]) -> Callable[[int], bool]:
    """Return a function that decides for each step whether to record it, for loops of unknown length.

    `record` is as in `recording_steps`, and an `InputError` refuses any other form. The function does not
    know the last step, which its caller has to record in any case.
    """
    density, listed, parts = _parsed(record)

    def is_due(step: int) -> bool:
        if density and step:
            near = round(density * math.log10(step))
            return any(round(10 ** (k / density)) == step for k in (near - 1, near, near + 1))
        for begin, every, until in parts:
            if step < until:
                return (step - begin) % every == 0
        return not step

    return set(listed).__contains__ if listed else is_due


def _parsed(record: Any) -> tuple[int, list[int], list[tuple[int, int, int]]]:
    """Return frames in a decade (0 if it is not "log"), a list of steps, and parts (begin, every, until)."""
    text, heads = record, []
    if isinstance(text, str):
        if logarithmic := re.fullmatch(r"log(?::(\d{1,9}))?", text):
            density = int(logarithmic[1] or FRAMES_A_DECADE)
            return whole_number("frames of record in each decade", density, 1, LARGEST_DENSITY), [], []
        *items, tail = text.split(",")
        if not re.fullmatch(r"(\d{1,18}:\d{1,18},)*\d{1,18}|(\d{1,18},)*\d{1,18}", text):
            need = "a number, 'log', 'log:n', 'every:until,every' or a list of steps"
            raise InputError(f"record must be {need}, got {text!r}")
        if items and ":" not in text:
            record = [int(step) for step in (*items, tail)]
        else:
            heads, record = [[int(number) for number in item.split(":")] for item in items], int(tail)
    if isinstance(record, Sequence | np.ndarray):
        steps = [whole_number("record", step, 0) for step in record]
        if not steps:
            raise InputError("record must name at least one step, got none")
        return 0, steps, []
    parts, begin = [], 0
    for every, until in [*heads, [record, LARGEST]]:
        if until < begin:
            raise InputError(f"record must list its parts EVERY:UNTIL in the order of UNTIL, got {text!r}")
        parts.append((begin, whole_number("record", every, 1), until))
        begin = until
    return 0, [], parts
