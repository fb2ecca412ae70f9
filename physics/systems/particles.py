"""Particles that cluster and align: Musat §5-6, as a system to simulate."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from physics import convolution
from physics.checks import choice, number, point_sets, whole_number
from physics.errors import InputError
from physics.kernels import particles as kernels

SOFT = 1e-3
"""Softening from which the repulsion of same-class pairs may be added and taken off again."""
BY_ROW = 80
"""Tokens from which a single run is spread over the cores."""
TASKS = 16
"""Parts that the work of a run spread over the cores is cut into, whatever the number of cores."""
FAST_ABOVE = 250
"""Tokens from which the fast sum may pay; how much it costs then is estimated for each state:"""
CELL_COST, POINT_COST = 450.0, 4000.0
"""Time for a cell of the grid and for a point, in pairs of the direct sum (measured)."""
SHARPEST = 1e-10
"""Smallest tolerance of the fast sum."""


@lru_cache(maxsize=8)
def pair_layout(tokens: int) -> kernels.Pairs:
    """Lay out the pair sums by rank within their class, larger classes first, and list who meets whom."""
    first, second = np.triu_indices(tokens)
    label = (first + second) % tokens
    sizes = np.bincount(label)
    place = np.empty(sizes.size, np.int64)
    place[np.argsort(-sizes, kind="stable")] = np.arange(sizes.size)
    rank = np.empty_like(label)
    rank[np.argsort(label, kind="stable")] = np.arange(label.size) - np.repeat(
        np.cumsum(sizes) - sizes, sizes
    )
    slots = np.lexsort((place[label], rank))
    members = np.bincount(rank)
    layout = kernels.Pairs(first[slots], second[slots], label[slots], _meetings(members))
    for array in layout:
        array.setflags(write=False)
    return layout


def _meetings(members: NDArray[np.int64]) -> NDArray[np.int64]:
    """Streams (a, b, length) in which the slots of every rank meet those of every later one.

    `members` counts the classes that have a rank. Streams that continue each other are joined, and long ones
    cut to what the kernel takes at once.
    """
    starts = np.cumsum(members) - members
    m, n = np.triu_indices(members.size, 1)
    by_distance = np.lexsort((m, n - m))
    a, b, length = starts[m][by_distance], starts[n][by_distance], members[n][by_distance]
    follows = (a[1:] == a[:-1] + length[:-1]) & (b[1:] == b[:-1] + length[:-1])
    begins = np.flatnonzero(np.concatenate([[True], ~follows])[: a.size])
    a, b, length = a[begins], b[begins], np.add.reduceat(length, begins) if a.size else length
    parts = -(-length // kernels.STREAM)
    which = np.repeat(np.arange(a.size), parts)
    offset = (np.arange(which.size) - np.repeat(np.cumsum(parts) - parts, parts)) * kernels.STREAM
    return np.stack(
        [a[which] + offset, b[which] + offset, np.minimum(length[which] - offset, kernels.STREAM)], axis=1
    )


@dataclass(frozen=True)
class ParticleSystem:
    """N particles whose pair sums attract, repel and align.

    Pair sums of the same class (i + j) mod N attract each other, others repel; both feel or oppose the
    direction of every pair sum on their side of the origin. After each step the particles are shifted to
    zero mean and scaled to unit variance on every axis. The defaults are the paper's setting.

    Parameters
    ----------
    tokens : int, default 17
        Number of particles N, at least 3.
    dim : int, default 2
        Dimension D of the space, at least 1.
    attraction : float, default 1.0
        g_a, the constant pull within a class.
    repulsion : float, default 1.0
        g_r, the push across classes at unit distance.
    alignment : float, default 1.0
        f_a, the constant of the alignment force.
    softening : float, default 0.1
        Length ε in |d|² → |d|² + ε², in both clustering terms; 0 is allowed.

    Raises
    ------
    InputError
        If a value is out of its range.

    Notes
    -----
    The weights of the two kinds of interaction are P/n_same and P/n_diff, where P = N(N+1)/2 and n counts
    ordered pairs of pair sums, so that each kind contributes the same in total. The paper leaves weights,
    step and softening open; these values reproduce its Table 2.
    """

    tokens: int = 17
    dim: int = 2
    attraction: float = 1.0
    repulsion: float = 1.0
    alignment: float = 1.0
    softening: float = 0.1

    default_step_size: ClassVar[float] = 0.02

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", whole_number("tokens", self.tokens, 3))
        object.__setattr__(self, "dim", whole_number("dim", self.dim, 1))
        for name in ("attraction", "repulsion", "alignment"):
            object.__setattr__(self, name, number(name, getattr(self, name)))
        object.__setattr__(self, "softening", number("softening", self.softening, 0.0))

    @property
    def pairs(self) -> int:
        """Number P of pair sums."""
        return self.tokens * (self.tokens + 1) // 2

    @property
    def weights(self) -> tuple[float, float]:
        """P/n_same and P/n_diff."""
        members = np.bincount(pair_layout(self.tokens).label)
        same = int((members * (members - 1)).sum())
        return self.pairs / same, self.pairs / (self.pairs * (self.pairs - 1) - same)

    def start(self, generator: np.random.Generator) -> NDArray[np.float64]:
        """Draw a start (tokens, dim) from the standard normal distribution."""
        return generator.standard_normal((self.tokens, self.dim))

    def forces(
        self, positions: NDArray[np.float64], *, method: str = "auto", tolerance: float = 1e-6
    ) -> NDArray[np.float64]:
        """Return the forces on `positions` (runs, tokens, dim), which are trusted; see `physics.forces`."""
        forces = np.empty_like(positions)
        for run, chosen in _in_parts(positions, self, method, tolerance):
            if chosen is None:
                self._direct(positions[run], 0.0, 0, forces[run])
            else:
                self._fast(positions[run], chosen, forces[run])
        return forces

    def advance(self, positions: NDArray[np.float64], step_size: float, steps: int) -> None:
        """Move `positions` (runs, tokens, dim) in place by `steps` normalised Euler steps.

        Large systems in the plane take the fast sum where it pays, to 1e-6 of the largest force.
        """
        if self.dim != 2 or self.tokens < FAST_ABOVE:
            self._direct(positions, step_size, steps, np.empty_like(positions))
            return
        for _ in range(steps):
            forces = self.forces(positions)
            for position, force in zip(positions, forces, strict=True):
                kernels.move_and_normalise(position, force, step_size)

    def _law(self) -> kernels.Law:
        same, diff = self.weights
        return kernels.Law(
            self.attraction * same,
            self.repulsion * diff,
            self.alignment * same,
            self.alignment * diff,
            self.softening**2,
            self.dim != 2 or self.softening < SOFT,
        )

    def _direct(
        self,
        positions: NDArray[np.float64],
        step_size: float,
        steps: int,
        forces: NDArray[np.float64],
    ) -> None:
        layout = pair_layout(self.tokens)
        if self.tokens < BY_ROW:
            kernels.advance_runs(positions, layout, self._law(), step_size, steps, forces)
        else:
            kernels.advance_rows(positions, layout, self._law(), step_size, steps, forces, True, TASKS)

    def _fast(
        self, positions: NDArray[np.float64], chosen: convolution.Plan, forces: NDArray[np.float64]
    ) -> None:
        layout, law = pair_layout(self.tokens), self._law()._replace(apart=False)
        kernels.advance_rows(positions, layout, law, 0.0, 0, forces, False, TASKS)
        first, second = layout.first, layout.second
        for position, force in zip(positions, forces, strict=True):
            points = np.ascontiguousarray((position[first] + position[second]).T)
            push = convolution.repulsion(points, self.softening, chosen)
            for k in range(2):
                found = np.bincount(first, push[k], self.tokens) + np.bincount(second, push[k], self.tokens)
                force[:, k] += law.repulsion * found


def _in_parts(
    positions: NDArray[np.float64], system: ParticleSystem, method: str, tolerance: float
) -> list[tuple[slice, convolution.Plan | None]]:
    """Cut an ensemble into slices with the grid of their fast sum, or None for the direct sum."""
    if method == "direct" or (method == "auto" and (system.dim != 2 or system.tokens < FAST_ABOVE)):
        return [(slice(None), None)]
    if system.dim != 2 or not system.softening > 0.0:
        raise InputError(
            "method 'fast' needs dim = 2 and softening greater than 0, "
            f"got dim = {system.dim} and softening = {system.softening:g}"
        )
    parts: list[tuple[slice, convolution.Plan | None]] = []
    for run, position in enumerate(positions):
        chosen = convolution.plan(2.0 * np.ptp(position, axis=0), system.softening, tolerance)
        if chosen is not None and method == "auto":
            work = CELL_COST * chosen.cells + POINT_COST * system.pairs
            if work > system.pairs**2 / 2 or system.softening < SOFT:
                chosen = None
        parts.append((slice(run, run + 1), chosen))
    return parts


def forces(
    positions: Any, system: ParticleSystem, *, method: str = "auto", tolerance: float = 1e-6
) -> NDArray[np.float64]:
    """Force on every particle (Musat, equation of §6).

    Parameters
    ----------
    positions : array_like, shape (tokens, dim) or (runs, tokens, dim)
        Particle positions, finite.
    system : ParticleSystem
        The constants, and the number of tokens and dimensions that `positions` must have.
    method : {"auto", "direct", "fast"}, default "auto"
        "direct" sums over all pairs of pair sums; "fast" convolves on a grid, in the plane and with
        softening, wherever a grid of less than 1 GB honours the tolerance, and is direct elsewhere; "auto"
        takes it where it is expected to be faster.
    tolerance : float, default 1e-6
        Largest error of the fast sum, relative to the largest force; from 1e-10 to 1e-2. The direct sum is
        exact to rounding.

    Returns
    -------
    ndarray of float64, the shape of `positions`

    Raises
    ------
    InputError
        If an argument is not of that kind.
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
    if tolerance < SHARPEST:
        method = "direct"
    result = system.forces(array.reshape(-1, *expected), method=method, tolerance=min(tolerance, 1e-2))
    return result.reshape(array.shape)
