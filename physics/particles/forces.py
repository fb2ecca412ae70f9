"""The function `physics.forces`: the forces on particles, for scripts, with checked arguments."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from physics.checks import choice, distinct, number, point_sets
from physics.errors import InputError
from physics.particles.system import LARGEST, SHARPEST, ParticleSystem

Array = NDArray[np.float64]


def forces(positions: Any, system: ParticleSystem, *, method: str = "auto", tolerance: float = 1e-6) -> Array:
    """Return the force on every particle, summed over all interactions of pair sums (Musat, §5-6).

    Two pair sums of the same class attract each other, and two of different classes repel each other.
    Alignment turns pair sums of one class into one direction, and those of different classes apart. The force
    on a particle is the sum of the forces on all pair sums that contain it.

    Parameters
    ----------
    positions : array_like, shape (tokens, dim) or (runs, tokens, dim)
        Positions of the particles of one run or of several: finite real numbers, at most 1e150 in size.
    system : ParticleSystem
        System with the constants of the force. It must have the numbers of tokens and dimensions of
        `positions`.
    method : {"auto", "direct", "fast"}, default "auto"
        How the repulsion is summed. "direct" adds all pairs of pair sums. "fast" uses a convolution on a
        grid; it needs a planar system with softening, and falls back to "direct" if no grid of up to about 1
        GB meets the tolerance. "auto" chooses the method that is expected to be faster.
    tolerance : float, default 1e-6
        Largest error of the fast sum, relative to the largest force; greater than 0. Values above 0.01 count
        as 0.01. Below 1e-10, "auto" uses the direct sum, which is exact except for rounding, and "fast" is
        refused.

    Returns
    -------
    ndarray of float64, shape of `positions`
        Forces F, so that a step of size η moves the particles by ηF.

    Raises
    ------
    InputError
        If an argument has a wrong type or shape or is out of its range, or if `method` is "fast" and the
        system is not planar or has no softening.

    Examples
    --------
    Three particles on a line that only attract each other through the sums of their positions:

    >>> import physics
    >>> system = physics.ParticleSystem(tokens=3, dim=1, repulsion=0.0, alignment=0.0, softening=0.0)
    >>> physics.forces([[-1.0], [0.0], [1.0]], system).ravel().tolist()
    [3.0, 0.0, -3.0]
    """
    choice("method", method, ("auto", "direct", "fast"))
    tolerance = number("tolerance", tolerance, above=0.0)
    if method == "fast":
        number("tolerance of method 'fast'", tolerance, SHARPEST)
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
        raise InputError(f"positions must be at most {LARGEST:g} in size, got {distinct(size, LARGEST)}")
    if tolerance < SHARPEST:
        method = "direct"
    result = system.forces(array.reshape(-1, *expected), method=method, tolerance=min(tolerance, 1e-2))
    return result.reshape(array.shape)
