"""The circles of a trajectory: the signals of its runs in a window of steps, and the circles that survive."""

from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.circles.classes import as_trajectory, require_cyclic, sound_runs
from analysis.circles.fourier import frequency_norms, trajectory_signals
from analysis.circles.survival import survives
from physics.checks import InputError, number, whole_number

if TYPE_CHECKING:
    import xarray


def circles_of(
    trajectory: Any,
    first: int = 0,
    last: int | None = None,
    *,
    factor: float = 2.0,
    threshold: float | None = None,
) -> "xarray.Dataset":
    """Return the Fourier signals of every run of a trajectory between two steps, and which circles survive.

    Parameters
    ----------
    trajectory : Trajectory, or array_like of shape (runs, frames, tokens, dim)
        Embeddings; see `fourier_signals`. The frames of an array are steps 0, 1, 2, ….
    first : int, default 0
        First step of the window.
    last : int, optional
        Last step of the window, included; by default the last step of the trajectory.
    factor : float, default 2.0
        A circle survives if its final signal exceeds `factor` times the mean over all frequencies.
    threshold : float, optional
        Signal above which a circle survives; `factor` is then not used. See `survives`.

    Returns
    -------
    xarray.Dataset
        "signals" (run, step, frequency) in the window, as `fourier_signals` returns them, and "survived"
        (run, frequency), whether each circle survives in the last frame of the trajectory. Runs that blew up,
        by the criterion of `structures`, and runs whose first or last frame is not finite are left out.

    Raises
    ------
    InputError
        If an end of the window is not a number, if it holds fewer than two frames, if an embedding from which
        signals are computed is not finite between its ends, if no run is left, or if the limit of survival is
        not greater than 0.

    Warns
    -----
    RuntimeWarning
        If runs blew up or are not finite, which it names.

    Examples
    --------
    >>> import analysis, physics
    >>> circles = analysis.circles_of(physics.example("ding"), 0, 1000)
    >>> circles.signals.shape, circles.frequency[circles.survived[0]].values.tolist()
    ((1, 1001, 29), [7, 8, 11, 13, 25])
    >>> circles.survived.sum("frequency").item()  # the number of circles
    5
    """
    trajectory = as_trajectory("trajectory", trajectory)
    require_cyclic(trajectory)
    sound = sound_runs(trajectory)
    signals = trajectory_signals(trajectory, sound)
    steps, since = signals.step.values, number("first", first)
    window = (steps >= since) & (steps <= (steps[-1] if last is None else number("last", last)))
    if np.count_nonzero(window) < 2:
        got = f"{np.count_nonzero(window)} of {len(steps)} from step {steps[0]} to {steps[-1]}"
        raise InputError(f"first and last must enclose at least 2 frames, got {got}")
    final = survives(frequency_norms(trajectory.final[sound]), factor=factor, threshold=threshold)
    data = signals[:, window].to_dataset(name="signals")
    return data.assign(survived=(("run", "frequency"), final))


def signal_gradient(signals: "xarray.DataArray", at: int = 4) -> "xarray.DataArray":
    """Return the change of signals per step, from the frame before a step to the frame at this step.

    Early in training it is the initial gradient, from which Ding et al. predict which circles survive.

    Parameters
    ----------
    signals : xarray.DataArray, (run, step, frequency)
        Signals, such as those of `circles_of`.
    at : int, default 4
        Step at which the interval ends, at least 1. If there is no frame at this step, the next frame is
        used; if that is the first frame, the second frame is used.

    Returns
    -------
    xarray.DataArray, (run, frequency)
        Change per step.

    Raises
    ------
    InputError
        If `at` is less than 1 or beyond the last step.

    Examples
    --------
    >>> import analysis, physics
    >>> circles = analysis.circles_of(physics.example("ding"), 0, 1000)
    >>> gradient = analysis.circles.signal_gradient(circles.signals)
    >>> bool(gradient.where(circles.survived).mean() > gradient.mean())
    True
    """
    steps = signals.step.values
    if whole_number("at", at, 1) > steps[-1]:
        raise InputError(f"at must be at most the last step, {steps[-1]}, got {at}")
    place = max(int(np.searchsorted(steps, at)), 1)
    change = signals[:, place].drop_vars(("step", "time")) - signals[:, place - 1]
    return change.drop_vars(("step", "time")) / (steps[place] - steps[place - 1])
