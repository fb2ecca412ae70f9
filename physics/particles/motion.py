"""How points move by the forces on them: by Euler steps, or adaptively, the same bits in any ensemble."""

from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np

from physics.checks import choice, flag, number
from physics.errors import SimulationError
from physics.particles.direct import move
from physics.system import NormalStart
from physics.values import Array

Integrator = Literal["euler", "adaptive"]

MAX_STEPS = 20_000
"""Largest number of steps that one call tries for each run, accepted or rejected."""


class MovedByForces(NormalStart):
    """Base class of systems whose `forces` on positions are the velocities of their points."""

    forces: Callable[..., Array]
    normalise: bool
    integrator: Integrator
    relative_tolerance: float

    def __post_init__(self) -> None:
        choice("integrator", self.integrator, get_args(Integrator))
        tolerance = number("relative_tolerance", self.relative_tolerance, 1e-12, 0.1)
        self._set(normalise=flag("normalise", self.normalise), relative_tolerance=tolerance)

    def velocity(self, positions: Any) -> Array:
        """Return the time derivative of the positions in the continuous flow that the steps approximate.

        Without `normalise` it is the force F. With it, F loses its mean and its part along the centered
        positions on each axis, so that mean and variance are constant, as in the limit of small steps.

        Parameters
        ----------
        positions : array_like, shape (tokens, dim) or (runs, tokens, dim)
            Finite positions.

        Returns
        -------
        ndarray of float64, shape of `positions`
            Velocities, in units of position per time.

        Examples
        --------
        >>> import numpy as np, physics
        >>> system = physics.ParticleSystem(tokens=5)
        >>> velocity = system.velocity(system.start(np.random.default_rng(0))[None])
        >>> bool(np.allclose(velocity.mean(axis=1), 0.0))
        True
        """
        force = self.forces(positions)
        return tangent(np.asarray(positions, np.float64), force) if self.normalise else force

    def advance(self, positions: Array, step_size: float, steps: int) -> None:
        """Move an ensemble in place by some steps.

        Parameters
        ----------
        positions : ndarray of float64, shape (runs, tokens, dim)
            Positions, which are overwritten.
        step_size : float
            Length of a step, in units of time.
        steps : int
            Number of steps, at least 1.

        Raises
        ------
        SimulationError
            If the adaptive integrator needs too many steps for a run.

        Examples
        --------
        >>> import numpy as np, physics
        >>> pull = physics.PairForces(lambda r2: -1.0, tokens=2, dim=1)
        >>> positions = np.array([[[0.0], [4.0]]])
        >>> pull.advance(positions, step_size=0.25, steps=1)
        >>> positions.ravel().tolist()
        [1.0, 3.0]
        """
        if self.integrator == "adaptive":
            self._move(positions, np.zeros_like(positions), 0.0)
            integrate(self.velocity, positions, step_size * steps, self.relative_tolerance)
            self._move(positions, np.zeros_like(positions), 0.0)  # to end with exactly this mean and variance
            return
        with np.errstate(over="ignore", invalid="ignore"):  # `simulate` checks the result
            for _ in range(steps):
                self._move(positions, self.forces(positions), step_size)

    def _move(self, positions: Array, forces: Array, step_size: float) -> None:
        if not self.normalise:
            positions += step_size * forces
            return
        for position, force in zip(positions, forces, strict=True):
            move(position, force, step_size, True)

    def largest_step_size(self, positions: Array) -> float:
        """Return a step size that is safe at these positions; `simulate` suggests it after an overflow.

        An Euler step of this size changes no coordinate by more than a tenth of the largest one of its run.

        Parameters
        ----------
        positions : ndarray of float64, shape (runs, tokens, dim)
            Positions of all runs.

        Returns
        -------
        float
            Step size in units of time; 0 if a force is infinite or NaN, or all positions of a run are 0.

        Examples
        --------
        >>> import numpy as np, physics
        >>> pull = physics.ParticleSystem(tokens=3, dim=1, repulsion=0.0, alignment=0.0, softening=0.0)
        >>> positions = np.array([[[-1.0], [0.0], [1.0]]])  # the forces are 3, 0 and -3
        >>> round(pull.largest_step_size(positions), 4)
        0.0333
        """
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            sizes = _size(positions) / _size(self.forces(positions))
        return 0.1 * float(np.nan_to_num(sizes, nan=0.0, posinf=np.inf).min())

    def mean_force(self, positions: Array) -> Array:
        """Return the mean length of the forces on the points of each run, which is 0 in equilibrium.

        Parameters
        ----------
        positions : ndarray of float64, shape (runs, tokens, dim)
            Finite positions of all runs.

        Returns
        -------
        ndarray of float64, shape (runs,)
            Mean over the tokens, in units of position per time.

        Examples
        --------
        >>> import numpy as np, physics
        >>> pull = physics.ParticleSystem(tokens=3, dim=1, repulsion=0.0, alignment=0.0, softening=0.0)
        >>> pull.mean_force(np.array([[[-1.0], [0.0], [1.0]]])).tolist()  # of 3, 0 and 3
        [2.0]
        """
        return np.asarray(np.hypot.reduce(self.forces(positions), axis=-1).mean(axis=-1))[()]


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
    from scipy.integrate import RK45  # which loads slowly

    stages = [*(RK45.A[k, :k] for k in range(1, 6)), RK45.B]  # the last one is the solution
    active = np.arange(len(states))
    state, left = states.copy(), np.full(len(states), duration)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # overflow is detected below
        slope = velocity(state)
        step = 0.01 * _size(state) / _size(slope)
        step = np.where(step > 0.0, np.minimum(step, duration), duration)
        for _ in range(MAX_STEPS):
            step = np.minimum(step, left)
            slopes = [slope]
            for row in stages:
                moved = state + _along(step, row, slopes)
                slopes.append(velocity(moved))
            scale = relative_tolerance * np.maximum(_size(state), _size(moved))
            error = _size(_along(step, RK45.E, slopes))
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
    needs = f"run {active[0]} needs more than {MAX_STEPS} adaptive steps, the next of size {step[0]:.2g}"
    raise SimulationError(f"{needs}; a force may jump back and forth; raise relative_tolerance")


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


def _along(step: Array, weights: Array, slopes: list[Array]) -> Array:
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
