"""The system `ParticleSystem`: particles that cluster and align (Musat §5-6)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Literal

import numba
import numpy as np
from numpy.typing import NDArray

from physics.checks import InputError, choice, distinct, ensemble, finite_array, number, whole_number
from physics.particles import convolution, lanes
from physics.particles import direct as kernels
from physics.particles.motion import Integrator, MovedByForces
from physics.particles.structures import circle_ratio, grid_imperfections
from physics.theory.operations import Operation, as_group, class_rule, tokens_of
from physics.values import Array, Integers, Mask, read_only

Observable = Literal["circle_ratio", "grid_imperfections", "mean_force", "potential"]

SOFT = 1e-3
"""Softening from which the repulsion within a class may be added and subtracted without loss of digits."""
LANES_BELOW = 300
"""Number of pair sums in the plane below which eight runs are computed at a time."""
BY_ROW, BY_ROW_ALWAYS = 1500, 20_000
"""Pair sums from which a run is spread over the cores if runs are few, and from which it always is."""
FAST_ABOVE = 31_375
"""Number of pair sums from which the fast sum may pay; its cost is then estimated for each state."""
LARGEST = 1e150
"""Largest softening, and largest size of a coordinate of `physics.forces`: larger squares could overflow."""
SHARPEST = 1e-10
"""Smallest tolerance of the fast sum."""


@dataclass(frozen=True, eq=False)
class ParticleSystem(MovedByForces):
    """Particles whose pair sums attract, repel and align (Musat, Section 5).

    Each particle stands for the embedding of a token in a network that learns addition modulo N, and a pair
    sum x_i + x_j for one of its inputs. The class of the pair is the correct answer, (i + j) mod N. Pair sums
    of one class attract each other and turn into one direction; those of different classes repel each other
    and turn apart. By default every axis is shifted to zero mean and scaled to unit variance after each step.

    Parameters
    ----------
    tokens : int, optional
        Number of particles N, at least 3. By default 17, or the order of the group if one is given.
    dim : int, default 2
        Dimension of the space, at least 1.
    attraction : float, default 1.0
        Constant g_a of the attraction between pair sums of the same class.
    repulsion : float, default 1.0
        Constant g_r of the repulsion between pair sums of different classes.
    alignment : float, default 1.0
        Constant f_a of the alignment, of pair sums of the same class and of different classes.
    softening : float, default 0.1
        Length ε, from 0 to 1e150, below which attraction and repulsion fade.
    pairs : array_like of int, shape (n, 2), optional
        Training set: only these pairs interact. By default all N(N+1)/2 pairs with i ≤ j do.
    modulus : int, optional
        Modulus of the classes, at least 2: the class of (i, j) is (i + j) mod `modulus`. By default N.
    group : FiniteGroup or array_like of int, shape (N, N), optional
        Commutative group, or its Cayley table, whose product i·j is the class of (i, j) instead.
    normalise : bool, default True
        Whether to shift and scale the particles after every step. Otherwise steps are plain Euler steps.
    integrator : {"euler", "adaptive"}, default "euler"
        "euler" takes the steps of the paper. "adaptive" follows the flow that they approximate, `velocity`,
        by a Runge-Kutta method of order 5; the step size is then only the unit of time.
    relative_tolerance : float, default 1e-4
        Largest estimated error of an adaptive step, relative to the largest coordinate of the run; from 1e-12
        to 0.1.

    Raises
    ------
    InputError
        If a value is out of its range, `tokens` is not the order of the group, or a modulus and a group are
        given. Also if a pair is repeated or names a missing token, or all classes are equal, or all differ.

    Notes
    -----
    With d = s' - s, the force of the pair sum s' on s is ``g_a w d / √(|d|² + ε²)`` if both are of one class,
    and ``-g_r w d / (|d|² + ε²)`` otherwise. If s·s' > 0, alignment adds ``± f_a w s'/|s'|``, with + within a
    class. The weight w of a kind of interaction is P/n, with P the number of pair sums and n that of ordered
    pairs of them of this kind. The force on s acts on both of its particles. The paper does not state the
    weights, the step size (0.02) and the softening; the values here reproduce its Table 2. The alignment
    jumps where s·s' changes sign, so adaptive steps are short there.

    Examples
    --------
    >>> import physics
    >>> runs = physics.simulate(physics.ParticleSystem(tokens=11, alignment=2.0), runs=20)
    >>> physics.is_circle(runs.final).shape  # whether each run has formed a circle
    (20,)
    """

    tokens: int = None  # type: ignore[assignment]  # __post_init__ sets the default
    dim: int = 2
    attraction: float = 1.0
    repulsion: float = 1.0
    alignment: float = 1.0
    softening: float = 0.1
    pairs: Any = None
    modulus: int | None = None
    group: Any = None
    normalise: bool = True
    integrator: Integrator = "euler"
    relative_tolerance: float = 1e-4

    default_step_size: ClassVar[float] = 0.02
    operation: ClassVar[Operation]  # __post_init__ sets these two; they are not fields
    mask: ClassVar[Mask]

    def __post_init__(self) -> None:
        group = None if self.group is None else as_group(self.group)
        tokens = tokens_of(self.tokens, group, 17, minimum=3)
        self._set(
            group=group,
            tokens=tokens,
            dim=whole_number("dim", self.dim, 1),
            **{name: number(name, getattr(self, name)) for name in ("attraction", "repulsion", "alignment")},
            softening=number("softening", self.softening, 0.0, LARGEST),
            operation=class_rule(tokens, self.modulus, group),
        )
        self._set(modulus=self.operation.modulus if self.modulus is not None else None)
        self._set(mask=self.operation.mask(self.pairs))
        if self.pairs is not None:
            self._set(pairs=read_only(self.operation.samples[self.mask]))
        super().__post_init__()
        self._count_kinds()

    @property
    def pair_count(self) -> int:
        """Number P of interacting pair sums."""
        return int(np.count_nonzero(self.mask))

    @property
    def weights(self) -> tuple[float, float]:
        """Weights P/n within a class and between classes: P pair sums, n ordered pairs of them of a kind."""
        same, diff = self._count_kinds()
        return self.pair_count / same, self.pair_count / diff

    def forces(self, positions: Any, *, method: str = "auto", tolerance: float | None = None) -> Array:
        """Return the force on every particle; `physics.forces` does the same and checks its arguments.

        Parameters
        ----------
        positions : array_like, shape (tokens, dim) or (runs, tokens, dim)
            Finite positions of one run or of several.
        method : {"auto", "direct", "fast"}, default "auto"
            How the repulsion is summed, as in `physics.forces`.
        tolerance : float, optional
            Largest error of the fast sum, relative to the largest force; by default 1e-6, or a hundredth of
            `relative_tolerance` if that is less.

        Returns
        -------
        ndarray of float64, shape of `positions`
            Forces, in units of position per time.

        Raises
        ------
        InputError
            If `positions` are not real numbers of that shape, or `method` is "fast" and the system is not
            planar or has no softening.

        Examples
        --------
        >>> import numpy as np, physics
        >>> pull = physics.ParticleSystem(tokens=3, dim=1, repulsion=0.0, alignment=0.0, softening=0.0)
        >>> pull.forces(np.array([[[-1.0], [0.0], [1.0]]])).ravel().tolist()
        [3.0, 0.0, -3.0]
        """
        given = ensemble("positions", positions, (self.tokens, self.dim))
        positions = np.require(given.reshape(-1, self.tokens, self.dim), None, "W")
        forces = np.empty_like(positions)
        if method == "direct" or (method == "auto" and not (self._may_be_fast and self.softening >= SOFT)):
            self._direct(positions, 0.0, 0, forces)
            return forces.reshape(given.shape)
        if self.dim != 2 or not self.softening > 0.0:
            got = f"dim = {self.dim} and softening = {self.softening:g}"
            raise InputError(f"method 'fast' needs dim = 2 and softening greater than 0, got {got}")
        if tolerance is None:
            tolerance = min(1e-6, max(SHARPEST, 0.01 * self.relative_tolerance))
        pairs = self.pair_count if method == "auto" else None
        for run, position in enumerate(positions):
            part, extent = slice(run, run + 1), 2.0 * np.ptp(position, axis=0)
            chosen = convolution.plan(extent, self.softening, tolerance, pairs)
            if chosen is None:
                self._direct(positions[part], 0.0, 0, forces[part])
            else:
                self._fast(positions[part], chosen, forces[part])
        return forces.reshape(given.shape)

    def advance(self, positions: Array, step_size: float, steps: int) -> None:
        """Move an ensemble in place by some steps, as `PairForces.advance` does.

        Large planar systems use the fast sum if it saves time, with errors up to 1e-6 of the largest force.

        Examples
        --------
        >>> import numpy as np, physics
        >>> system = physics.ParticleSystem(tokens=5)
        >>> positions = system.start(np.random.default_rng(0))[None]  # one run
        >>> system.advance(positions, step_size=0.02, steps=10)
        >>> bool(np.allclose(positions.mean(axis=1), 0.0)), bool(np.allclose(positions.std(axis=1), 1.0))
        (True, True)
        """
        moved = np.require(positions, np.float64, ["C", "W"])
        if self.integrator == "adaptive" or self._may_be_fast:
            super().advance(moved, step_size, steps)
        else:
            self._direct(moved, step_size, steps, np.empty_like(moved))
        if moved is not positions:
            positions[...] = moved

    @property
    def measures(self) -> dict[Observable, Callable[[Array], NDArray[Any]]]:
        """Quantities that `simulate` records on request: functions of positions (runs, tokens, dim), by name.

        "circle_ratio" and "grid_imperfections" (of all pairs, by the classes of this system) are functions of
        `physics`, and "mean_force" and "potential" are methods. Each returns one value for each run.
        """
        return {
            "circle_ratio": circle_ratio,
            "grid_imperfections": partial(grid_imperfections, modulus=self.modulus, group=self.group),
            "mean_force": self.mean_force,
            "potential": self.potential,
        }

    def potential(self, positions: Any) -> Array:
        """Return the potential energy, whose negative gradient is the force without alignment.

        It is ``g_a w_same Σ √(d² + ε²) - g_r w_diff Σ ½ log(d² + ε²)``, with the constants g of attraction
        and repulsion, the softening ε and the `weights` w. The sums run over pairs of pair sums of one class
        and of different classes, at the distance d. Alignment has no potential.

        Parameters
        ----------
        positions : array_like, shape (tokens, dim) or (runs, tokens, dim)
            Finite positions.

        Returns
        -------
        ndarray of float64, shape () or (runs,)
            Energy of each run, in units of squared position per time.

        Examples
        --------
        >>> import numpy as np, physics
        >>> pull = physics.ParticleSystem(tokens=3, dim=1, repulsion=0.0, alignment=0.0, softening=0.0)
        >>> pull.potential(np.array([[[-1.0], [0.0], [1.0]]])).tolist()
        [6.0]
        """
        law, given = self._law(), ensemble("positions", positions, (self.tokens, self.dim))
        energies = kernels.energies(given.reshape(-1, self.tokens, self.dim), self._layout, law)
        return energies.reshape(given.shape[:-2])[()]

    @property
    def _pair_sums(self) -> tuple[Integers, ...]:
        """Tokens i and j, and the class, of each of the P interacting pairs, (P,) each."""
        first, second = self.operation.samples[self.mask].T.astype(np.int64)
        return first, second, self.operation.label[self.mask].astype(np.int64)

    @cached_property
    def _classes(self) -> lanes.Classes:
        return lanes.class_layout(*self._pair_sums)

    @cached_property
    def _layout(self) -> kernels.Pairs:
        return kernels.pair_layout(*self._pair_sums)

    @property
    def _may_be_fast(self) -> bool:
        return self.dim == 2 and self.pair_count >= FAST_ABOVE

    def _count_kinds(self) -> tuple[int, int]:
        """Count the ordered pairs of pair sums of the same class, and those of different classes."""
        members = np.bincount(self.operation.label[self.mask]).astype(np.int64)
        same = int((members * (members - 1)).sum())
        diff = self.pair_count * (self.pair_count - 1) - same
        for count, kind in ((same, "the same class"), (diff, "different classes")):
            if not count:
                need = f"pairs must hold two pairs of {kind} for their interaction to have a weight"
                raise InputError(f"{need}, got none among {self.pair_count}")
        return same, diff

    def _law(self) -> kernels.Law:
        same, diff = self.weights
        turn_same, turn_diff = self.alignment * same, self.alignment * diff
        pull, push = self.attraction * same, self.repulsion * diff
        apart = self.dim != 2 or self.softening < SOFT
        return kernels.Law(pull, push, turn_same, turn_diff, self.softening**2, apart)

    def _direct(self, positions: Array, step_size: float, steps: int, forces: Array) -> None:
        law, P = self._law(), self.pair_count
        moves = kernels.Steps(float(step_size), steps, self.normalise)
        if self.dim == 2 and P < LANES_BELOW and not law.apart:
            lanes.advance(positions, forces, self._classes, law, moves)
            return
        by_run = P < BY_ROW or (P < BY_ROW_ALWAYS and len(positions) >= numba.get_num_threads())
        advance = kernels.advance_runs if by_run else kernels.advance_rows
        layout, calls = self._layout, kernels.calls_of(self._layout, law)
        advance(positions, forces, layout, law, moves, _tasks(P), calls)

    def _fast(self, positions: Array, chosen: convolution.Plan, forces: Array) -> None:
        layout, law = self._layout, self._law()._replace(apart=False)
        still, tasks = kernels.Steps(0.0, 0, False), _tasks(self.pair_count)
        calls = kernels.calls_of(layout, law)._replace(repel=0)
        kernels.advance_rows(positions, forces, layout, law, still, tasks, calls)
        for position, force in zip(positions, forces, strict=True):
            force += law.repulsion * convolution.on_particles(position, layout, self.softening, chosen)


def _tasks(pair_count: int) -> int:
    """Return the number of parts into which the work of a run with `pair_count` pair sums is cut."""
    return 1 if pair_count < BY_ROW else 4 if pair_count < 5000 else 16


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
    tolerance = number("tolerance", tolerance, SHARPEST if method == "fast" else 0.0, above=0.0)
    if not isinstance(system, ParticleSystem):
        raise InputError(f"system must be a ParticleSystem, got {type(system).__name__}")
    array = ensemble("positions", finite_array("positions", positions), (system.tokens, system.dim))
    size = np.abs(array).max(initial=0.0)
    if size > LARGEST:
        raise InputError(f"positions must be at most {LARGEST:g} in size, got {distinct(size, LARGEST)}")
    method = "direct" if tolerance < SHARPEST else method
    return system.forces(array, method=method, tolerance=min(tolerance, 1e-2))
