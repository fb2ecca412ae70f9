"""The system `PairForces`: points that move by a pair force of your choice."""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Literal, get_args

import numba
import numpy as np
from numba import prange, types

from physics.checks import InputError, choice, ensemble, finite_array, whole_number
from physics.jit import kernel
from physics.particles.motion import Integrator, MovedByForces
from physics.particles.tabulated import PairKernels, Pairs, features
from physics.theory.operations import class_rule
from physics.values import Array, Integers, Shown, read_only

Sites = Literal["tokens", "pair sums"]


@dataclass(frozen=True, eq=False)
class PairForces(Shown, MovedByForces):
    """Points that move by your own force between every two of them.

    Point i at x_i moves by ``dx_i/dt = F_i = Σ_j f(|x_i - x_j|²) (x_i - x_j)``, where f is your function.
    The forces may also act between the sums of two points, with `on`, and along the other point, with
    `along`. Use this class to try a theory of how embeddings interact without writing a kernel.

    Parameters
    ----------
    function : callable or physics.particles.tabulated.PairKernels
        Function that returns the factor f for two points at the squared distance r2; a positive factor means
        repulsion. The call is ``function(r2, *parameters)``, and on pair sums ``function(r2, same_class,
        *parameters)`` with a bool `same_class`. The function may be compiled by `numba.njit` or be a plain
        function that Numba can compile. Several threads call it, for every two points at different places.
        Tables of kernels, such as those of a fitted `analysis.forces.ForceLaw`, need no function.
    tokens : int
        Number of points N, at least 2.
    dim : int
        Dimension D of the space, at least 1.
    on : {"tokens", "pair sums"}, default "tokens"
        Where the forces act: between tokens (the points), or between the sums s_ij = x_i + x_j of all pairs
        of tokens with i ≤ j. A force on s_ij acts on both x_i and x_j, and twice on x_i if i = j.
    parameters : sequence of float, default ()
        Finite constants that `function` is called with.
    along : callable, optional
        Function g of the cosine between two points, called as `function` is, with the cosine in place of r2:
        it adds the force ``Σ_j g x_j/|x_j|``, without points at the origin.
    pairs : array_like of int, shape (pairs, 2), optional
        On pair sums only: the pairs (i, j) of tokens whose sums interact, such as a training set; by default
        all.
    modulus : int, optional
        On pair sums only, at least 2: the class of (i, j) is (i + j) mod `modulus`, and N if neither
        `modulus` nor `group` is given. Two pair sums of equal class have ``same_class = True``.
    group : FiniteGroup or array_like of int, shape (N, N), optional
        On pair sums only: the class of (i, j) is the product i·j in this commutative group, or in the
        commutative group with this Cayley table.
    normalise : bool, default False
        Whether every axis is shifted to zero mean and scaled to unit variance after each step.
    integrator : {"euler", "adaptive"}, default "euler"
        "euler" takes plain Euler steps ``x + step_size · F``. "adaptive" follows the continuous flow by a
        Runge-Kutta method of order 5 that chooses its own steps; the step size is then only the unit of time.
    relative_tolerance : float, default 1e-6
        Largest estimated error of an adaptive step, relative to the largest coordinate of the run; from 1e-12
        to 0.1.

    Raises
    ------
    InputError
        If a value is out of its range, pairs, a modulus or a group are given on tokens, both a modulus and a
        group are given, or Numba cannot compile a function to return a real number for these arguments.

    Notes
    -----
    Two points at the same place, or closer than 1e-162, exert no force on each other. Every sum has a fixed
    order, so the result has the same bits for any number of threads. A trajectory file holds the name
    of `function`, and its source if Python knows it, but not the function itself.

    Examples
    --------
    >>> import physics
    >>> springs = physics.PairForces(lambda r2, strength: -strength, tokens=3, dim=2, parameters=[0.5])
    >>> springs.forces([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    array([[ 0.5,  1. ],
           [-1. ,  1. ],
           [ 0.5, -2. ]])
    """

    function: Callable[..., float] | PairKernels
    tokens: int
    dim: int
    on: Sites = "tokens"
    parameters: Any = ()
    along: Callable[..., float] | None = None
    pairs: Any = None
    modulus: int | None = None
    group: Any = None
    normalise: bool = False
    integrator: Integrator = "euler"
    relative_tolerance: float = 1e-6

    default_step_size: ClassVar[float] = 0.02

    def __post_init__(self) -> None:
        tokens = whole_number("tokens", self.tokens, 2)
        choice("on", self.on, get_args(Sites))
        modulus, group, pairs = self.modulus, self.group, self.pairs
        if self.on == "pair sums":
            operation = class_rule(tokens, modulus, group)
            modulus, group = modulus and operation.modulus, operation.group
            pairs = None if pairs is None else read_only(operation.samples[operation.mask(pairs)])
        elif any(each is not None for each in (modulus, group, pairs)):
            raise InputError("on must be 'pair sums' if pairs, modulus or group is given, got 'tokens'")
        self._set(
            tokens=tokens,
            dim=whole_number("dim", self.dim, 1),
            parameters=tuple(map(float, finite_array("parameters", self.parameters, ndim=1))),
            pairs=pairs,
            modulus=modulus,
            group=group,
        )
        super().__post_init__()
        if isinstance(self.function, PairKernels):
            if self.along is not None or self.parameters:
                raise InputError("along and parameters must be left out if function holds tables of kernels")
            return
        for name in ("function", "along") if self.along is not None else ("function",):
            _factor(getattr(self, name), self.on, len(self.parameters), name)

    def forces(self, positions: Any) -> Array:
        """Return the force on every point.

        Parameters
        ----------
        positions : array_like, shape (tokens, dim) or (runs, tokens, dim)
            Positions of one run or of several. Forces that depend on a position that is NaN are NaN.

        Returns
        -------
        ndarray of float64, shape of `positions`
            Force F on each token, which is its velocity.

        Raises
        ------
        InputError
            If `positions` are not real numbers of that shape.

        Examples
        --------
        >>> import physics
        >>> pull = physics.PairForces(lambda r2: -1.0, tokens=2, dim=1)
        >>> pull.forces([[0.0], [3.0]]).tolist()
        [[3.0], [-3.0]]
        """
        array = ensemble("positions", positions, (self.tokens, self.dim))
        states = np.ascontiguousarray(array.reshape(-1, self.tokens, self.dim))
        first, second, label = self._points
        if isinstance(self.function, PairKernels):
            pairs = Pairs(first[None], second[None], label[None], np.ones((1, 2)))
            constants = self.function.constants
            terms = np.empty((*states.shape, len(constants)))
            features(states, np.zeros(len(states), np.int64), pairs, self.function.tables, terms)
            return np.asarray(terms @ constants).reshape(array.shape)
        sum_forces = _sum_of_forces(self.function, self.along, self.on, len(self.parameters))
        sums = self.on == "pair sums"
        points = states[:, first] + (states[:, second] if sums else 0.0)
        forces = np.empty(points.shape)  # not of the order of `points`: one kernel to compile
        sum_forces(np.ascontiguousarray(points.swapaxes(1, 2)), label, self.parameters, forces)
        if sums:
            on_points, forces = forces.swapaxes(0, 1), np.zeros_like(states)
            for ends in (first, second):
                np.add.at(forces.swapaxes(0, 1), ends, on_points)
        return forces.reshape(array.shape)

    @property
    def measures(self) -> dict[str, Callable[[Array], Array]]:
        """Functions of positions that `simulate` applies on request, by name: only `mean_force`."""
        return {"mean_force": self.mean_force}

    @cached_property
    def _points(self) -> tuple[Integers, ...]:
        """Tokens i and j of each of the n sites, where j is -1 on tokens, and its class: int64 (n,) each."""
        if self.on == "tokens":
            tokens = np.arange(self.tokens)
            return tokens, np.full(self.tokens, -1), tokens
        operation = class_rule(self.tokens, self.modulus, self.group)
        chosen = operation.mask(self.pairs)
        first, second = np.ascontiguousarray(operation.samples[chosen].T, np.int64)
        return first, second, operation.label[chosen].astype(np.int64)


@lru_cache(maxsize=64)
def _factor(function: Any, on: Sites, constants: int, name: str = "function") -> Any:
    """Compile a function of the user as one of (r2, same_class, parameters), or raise an `InputError`."""
    plain = getattr(function, "py_func", function)
    called = "r2" if name == "function" else "cosine"
    called += ", same_class" * (on == "pair sums") + ", *parameters" * (constants > 0)
    what = f"{name} must be a Python function that Numba can compile, called as {name}({called})"
    if not inspect.isfunction(plain):
        raise InputError(f"{what}, got {type(function).__name__}")
    compiled = numba.njit(error_model="numpy")(plain)  # 1/0 is infinite
    if on == "tokens":
        factor = numba.njit(lambda r2, same_class, parameters: compiled(r2, *parameters))
    else:
        factor = numba.njit(lambda r2, same_class, parameters: compiled(r2, same_class, *parameters))
    try:
        factor.compile((types.float64, types.boolean, types.UniTuple(types.float64, constants)))
    except numba.errors.NumbaError as error:
        lines = [line.strip(" :") for line in str(error).splitlines()]
        reason = next((line for line in lines if line and not line.startswith("Failed in")), "")
        raise InputError(f"{what}; {plain.__name__} is not: {reason}") from error
    kind = factor.nopython_signatures[0].return_type
    if not isinstance(kind, types.Float | types.Integer):
        raise InputError(f"{name} must return a real number, but {plain.__name__} returns {kind}")
    return factor


@lru_cache(maxsize=64)
def _sum_of_forces(function: Any, along: Any, on: Sites, constants: int) -> Callable[..., None]:
    """Compile the sum of forces for the user's functions, and return it."""
    factor = _factor(function, on, constants)
    turned = along is not None
    by_angle = _factor(along, on, constants, "along") if turned else factor

    @kernel(parallel=True, rows=lambda points, *_: points.size * points.shape[2], least=50_000, cache=False)
    def sum_forces(points: Array, label: Integers, parameters: tuple[float, ...], out: Array) -> None:
        """Write the forces on points (runs, dim, n) of classes `label` to `out` (runs, n, dim)."""
        dim, count = points.shape[1:]
        for item in prange(len(points) * count):
            run, a = item // count, item % count
            square = np.zeros(count)
            for k in range(dim):
                x, others = points[run, k, a], points[run, k]
                for b in range(count):
                    square[b] += (x - others[b]) * (x - others[b])
            for b in range(count):
                if square[b] != 0.0:  # skips the point itself, and others at the same place
                    square[b] = factor(square[b], label[a] == label[b], parameters)
            for k in range(dim):
                x, others = points[run, k, a], points[run, k]
                total = 0.0
                for b in range(count):
                    total += square[b] * (x - others[b])
                out[run, a, k] = total
            for b in range(count if turned else 0):
                dot = norm_a = norm_b = 0.0
                for k in range(dim):
                    dot += points[run, k, a] * points[run, k, b]
                    norm_a += points[run, k, a] ** 2
                    norm_b += points[run, k, b] ** 2
                if b == a or norm_a == 0.0 or norm_b == 0.0:
                    continue
                cosine = min(1.0, max(-1.0, dot / math.sqrt(norm_a * norm_b)))
                pull = by_angle(cosine, label[a] == label[b], parameters) / math.sqrt(norm_b)
                for k in range(dim):
                    out[run, a, k] += pull * points[run, k, b]

    return sum_forces
