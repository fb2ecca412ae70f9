"""An adaptive integrator for ensembles: each run takes its own steps, with the same bits in any ensemble."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from physics.checks import number
from physics.errors import SimulationError

Array = NDArray[np.float64]

MAX_STEPS = 20_000
"""Largest number of steps that one call tries for each run, accepted or rejected."""
STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
"""Coefficients of Dormand and Prince's stages; the last stage is the solution, and begins the next step."""
ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
"""Weights of the seven slopes in the estimated error of a step, in units of the step."""


def checked_tolerance(value: float) -> float:
    """Return `value` as a float if it is from 1e-12 to 0.1; messages call it ``relative_tolerance``."""
    return number("relative_tolerance", value, 1e-12, 0.1)


def integrate(
    velocity: Callable[[Array], Array], states: Array, duration: float, relative_tolerance: float
) -> None:
    """Move states in place along the solution of ``dx/dt = velocity(x)`` for the time `duration`.

    Parameters
    ----------
    velocity : callable
        Function of states (m, ...) of any m of the runs that returns dx/dt of the same shape. The result for
        one run must not depend on the other runs.
    states : ndarray of float64, shape (runs, ...)
        States at the beginning, which are overwritten by those at the end.
    duration : float
        Time to move, greater than 0, in the unit of time of `velocity`.
    relative_tolerance : float
        Largest estimated error of a step, relative to the largest absolute entry of the run's state.

    Raises
    ------
    SimulationError
        If a run needs more than `MAX_STEPS` steps, accepted or rejected.

    Notes
    -----
    The method is the pair of Dormand and Prince (1980), of order 5 with an error estimate of order 4, as in
    `scipy.integrate.RK45`. Each run chooses its own steps, so it has the same bits in any ensemble. A state
    that overflows, or needs steps below the resolution of floating-point numbers, becomes NaN and stops.
    """
    active = np.arange(len(states))
    state, left = states.copy(), np.full(len(states), duration)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # overflow is detected below
        slope = velocity(state)
        step = 0.01 * _size(state) / _size(slope)
        step = np.where(step > 0.0, np.minimum(step, duration), duration)
        for _ in range(MAX_STEPS):
            step = np.minimum(step, left)
            slopes = [slope]
            for row in STAGES:
                moved = state + _along(step, row, slopes)
                slopes.append(velocity(moved))
            scale = relative_tolerance * np.maximum(_size(state), _size(moved))
            error = _size(_along(step, ERROR, slopes))
            error = np.where(error > 0.0, error / scale, 0.0) + 0.0 * error  # NaN remains NaN
            accepted = error <= 1.0
            left = np.where(accepted, left - step, left)
            chosen = accepted.reshape(-1, *[1] * (state.ndim - 1))
            state, slope = np.where(chosen, moved, state), np.where(chosen, slopes[-1], slope)
            step = step * np.where(np.isfinite(error), np.clip(0.9 * error**-0.2, 0.2, 5.0), 0.2)
            lost = ~np.isfinite(_size(slope)) | ((left > 0.0) & (left + step == left))
            state[lost] = np.nan
            done = lost | (left <= 0.0)
            states[active[done]] = state[done]
            active = active[~done]
            state, slope, step, left = (values[~done] for values in (state, slope, step, left))
            if not active.size:
                return
    raise SimulationError(
        f"run {active[0]} needs more than {MAX_STEPS} adaptive steps, the next of size {step[0]:.2g}; "
        "a force that jumps back and forth can cause this; raise relative_tolerance"
    )


def tangent(positions: Array, force: Array) -> Array:
    """Return a force (..., tokens, dim) without its mean and its part along centered positions, axis by axis.

    This is the velocity at which mean and variance of each axis are constant.
    """
    force = force - force.mean(axis=-2, keepdims=True)
    centered = positions - np.mean(positions, axis=-2, keepdims=True)
    variance = (centered * centered).mean(axis=-2, keepdims=True)
    along = (centered * force).mean(axis=-2, keepdims=True)
    force -= centered * np.divide(along, variance, out=np.zeros_like(along), where=variance > 0.0)
    return force


def _along(step: Array, weights: tuple[float, ...], slopes: list[Array]) -> Array:
    """Return ``step · Σ weights · slopes``, added in a fixed order.

    `step` (runs,) holds the step size of each run. Each slope and the result have the shape (runs, ...).
    """
    total = weights[0] * slopes[0]
    for weight, slope in zip(weights[1:], slopes[1:], strict=True):
        if weight:
            total += weight * slope
    return np.asarray(step.reshape(-1, *[1] * (total.ndim - 1)) * total)


def _size(states: Array) -> Array:
    """Return the largest absolute entry of each state, (runs,), for states of the shape (runs, ...)."""
    return np.asarray(np.abs(states).reshape(len(states), -1).max(axis=1))
