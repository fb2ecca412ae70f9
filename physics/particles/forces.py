"""`physics.forces`: the forces on particles, for scripts, with checked arguments."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from physics.checks import choice, number, point_sets
from physics.errors import InputError
from physics.particles.system import SHARPEST, ParticleSystem

Array = NDArray[np.float64]
LARGEST = 1e150
"""Largest coordinate whose squares and products do not overflow."""


def forces(positions: Any, system: ParticleSystem, *, method: str = "auto", tolerance: float = 1e-6) -> Array:
    """Return the force on every particle (Musat, equation of §6).

    Parameters
    ----------
    positions : array_like, shape (tokens, dim) or (runs, tokens, dim)
        Particle positions, finite.
    system : ParticleSystem
        System whose constants are used. `positions` must have its number of tokens and dimensions.
    method : {"auto", "direct", "fast"}, default "auto"
        "direct" sums over all pairs of pair sums. "fast" convolves on a grid if the system is planar and
        softened and a grid of less than 1 GB meets the tolerance, and is direct otherwise. "auto" chooses the
        one that is expected to be faster.
    tolerance : float, default 1e-6
        Largest error of the fast sum, relative to the largest force; from 1e-10 to 1e-2. The direct sum is
        exact to rounding.

    Returns
    -------
    ndarray of float64, the shape of `positions`

    Raises
    ------
    InputError
        If an argument has the wrong type or shape, or is out of its range.
    """
    choice("method", method, ("auto", "direct", "fast"))
    tolerance = number("tolerance", tolerance, above=0.0)
    if method == "fast" and tolerance < SHARPEST:
        raise InputError(f"tolerance must be at least {SHARPEST:g} for method 'fast', got {tolerance:g}")
    if not isinstance(system, ParticleSystem):
        raise InputError(f"system must be a ParticleSystem, got {type(system).__name__}")
    array = point_sets("positions", positions)
    expected = (system.tokens, system.dim)
    if array.ndim > 3 or array.shape[-2:] != expected:
        raise InputError(
            f"positions must have the shape {expected} or (runs, {expected[0]}, {expected[1]}), "
            f"got {array.shape}"
        )
    size = np.abs(array).max(initial=0.0)
    if size > LARGEST:
        raise InputError(f"positions must be at most {LARGEST:g} in size, got {size:g}")
    if tolerance < SHARPEST:
        method = "direct"
    result = system.forces(array.reshape(-1, *expected), method=method, tolerance=min(tolerance, 1e-2))
    return result.reshape(array.shape)
