"""What a caller may attach to a long run: a callback for each frame, and a function that replaces the bar."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from physics.errors import InputError

Callback = Callable[[int, float, NDArray[Any], dict[str, NDArray[Any]]], object]
"""A function that is called as ``callback(step, time, positions, observables)``."""
Progress = bool | Callable[[int, int], object]
"""Whether to show a progress bar, or a function that is called as ``progress(done, total)``."""


def check_hooks(callback: Callback | None, progress: Progress) -> None:
    """Refuse a `callback` or a `progress` that cannot be called."""
    if callback is not None and not callable(callback):
        raise InputError(
            f"callback must be a function of (step, time, positions, observables), got {callback!r}"
        )
    if not callable(progress) and not isinstance(progress, bool | np.bool_):
        raise InputError(f"progress must be True, False or a function of (done, total), got {progress!r}")


def goes_on(
    callback: Callback | None,
    step: int,
    time: float,
    positions: NDArray[Any],
    observables: Mapping[str, NDArray[Any]],
) -> bool:
    """Call `callback` with a copy of a frame; return False if it raises `StopIteration` to end the run."""
    try:
        if callback is not None:
            callback(step, time, positions.copy(), {**observables})
    except StopIteration:
        return False
    return True


@contextlib.contextmanager
def shown(progress: Progress, total: int, done: int, desc: str) -> Iterator[Callable[[int], object]]:
    """Yield a function that reports how many of `total` steps are done, beginning with `done`."""
    if callable(progress):
        yield lambda now: progress(now, total)
        return
    from tqdm import tqdm  # reading a file does without it

    with tqdm(total=total, initial=done, unit="step", desc=desc, disable=None if progress else True) as bar:
        yield lambda now: bar.update(now - bar.n)
