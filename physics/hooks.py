"""What a caller can attach to a long run: a callback for each frame, and a progress function."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from physics.checks import short_text
from physics.errors import InputError
from physics.values import Arrays

Callback = Callable[[int, float, NDArray[Any], dict[str, NDArray[Any]]], object]
"""A function that is called as ``callback(step, time, positions, observables)``."""
Progress = bool | Callable[[int, int], object]
"""Whether to show a progress bar, or a function that is called as ``progress(done, total)``."""


def check_hooks(callback: Callback | None, progress: Progress) -> None:
    """Refuse hooks with an `InputError` before a run begins.

    `callback` must be None or callable, and `progress` a bool or callable.
    """
    if callback is not None and not callable(callback):
        raise InputError(f"callback must be a function of a frame or None, got {short_text(callback)}")
    if not callable(progress) and not isinstance(progress, bool | np.bool_):
        raise InputError(
            f"progress must be True, False or a function of (done, total), got {short_text(progress)}"
        )


def goes_on(
    callback: Callback | None, step: int, time: float, positions: NDArray[Any], observables: Arrays
) -> bool:
    """Call a callback with one frame, and return whether the run is to continue.

    The result is False if the callback raises `StopIteration`; without a callback it is True. The callback
    receives a copy of `positions` (runs, tokens, dim), and a new dict of the arrays in `observables`, (runs,
    ...) each.
    """
    try:
        if callback is not None:
            callback(step, time, positions.copy(), {**observables})
    except StopIteration:
        return False
    return True


@contextlib.contextmanager
def shown(progress: Progress, total: int, done: int, desc: str) -> Iterator[Callable[[int], object]]:
    """Show progress while the context is open, and yield a function of the number of steps done so far.

    If `progress` is True, a bar with the text `desc` is shown on stderr, but only at a terminal. If
    `progress` is a function, it is called as ``progress(done, total)`` instead. A resumed run begins at
    `done` of its `total` steps.
    """
    if callable(progress):
        yield lambda now: progress(now, total)
        return
    from tqdm import tqdm  # loaded here because reading a file does not need it

    hidden = None if progress and sys.stderr is not None else True
    with tqdm(total=total, initial=done, unit="step", desc=desc, disable=hidden) as bar:
        yield lambda now: bar.update(now - bar.n)
