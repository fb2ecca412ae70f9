"""What a caller can attach to a long run: a callback for each frame, and a progress function."""

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
    """Check the hooks of a run before it begins.

    Parameters
    ----------
    callback : callable or None
        Function of (step, time, positions, observables), or None for no callback.
    progress : bool or callable
        Whether to show a progress bar, or a function of (done, total).

    Raises
    ------
    InputError
        If `callback` is neither None nor callable, or `progress` is neither a bool nor callable.
    """
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
    """Call a callback with one frame, and return whether the run is to continue.

    Parameters
    ----------
    callback : callable or None
        Function of (step, time, positions, observables), which ends the run by raising `StopIteration`.
        Without it every run continues.
    step : int
        Number of the step.
    time : float
        Time of the frame.
    positions : ndarray, shape (runs, tokens, dim)
        Positions, of which the callback receives a copy.
    observables : mapping of str to ndarray
        Observables by name, each (runs, ...); the callback receives a new dict of the same arrays.

    Returns
    -------
    bool
        False if the callback has raised `StopIteration`.
    """
    try:
        if callback is not None:
            callback(step, time, positions.copy(), {**observables})
    except StopIteration:
        return False
    return True


@contextlib.contextmanager
def shown(progress: Progress, total: int, done: int, desc: str) -> Iterator[Callable[[int], object]]:
    """Show progress while the context is open, and yield the function that updates it.

    Parameters
    ----------
    progress : bool or callable
        Whether to show a bar on stderr (True shows it only at a terminal), or a function that is called as
        ``progress(done, total)`` in place of the bar.
    total : int
        Number of steps of the run.
    done : int
        Number of steps that are done at the beginning, which is positive for a run that is resumed.
    desc : str
        Text in front of the bar.

    Yields
    ------
    callable
        A function to call with the number of steps that are done so far.
    """
    if callable(progress):
        yield lambda now: progress(now, total)
        return
    from tqdm import tqdm  # loaded here because reading a file does not need it

    with tqdm(total=total, initial=done, unit="step", desc=desc, disable=None if progress else True) as bar:
        yield lambda now: bar.update(now - bar.n)
