"""Affine flows `dx/dt = A x + b`, and their exact solution (Ding, Eq. 4)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from physics.blas import one_blas_thread
from physics.checks import InputError, finite_array
from physics.system import NormalStart
from physics.values import Array, Integers, Shown, read_only

SMALLEST = -1000
"""Power of two that stands for the smallest rate; a generator of zero has none."""


@dataclass(frozen=True, eq=False)
class AffineFlow(Shown, NormalStart):
    """K components that obey the linear differential equation `dx/dt = A x + b`.

    The components may be the Fourier signals of an embedding (the norm of its Fourier transform at each
    frequency, to which Ding et al. fit this law), or the coordinates of points in a linear theory. In
    `simulate`, each component is a token.

    Parameters
    ----------
    A : array_like of float, shape (K, K)
        Generator, in units of 1/time. It may be singular.
    b : array_like of float, shape (K,) or (K, dim)
        Constant drift, in units of x per time. With a second axis there are `dim` independent systems with
        the same A, one for each column.

    Raises
    ------
    InputError
        If shapes do not agree, K or `dim` is 0, or a value is not a finite real number.

    Notes
    -----
    The solution comes from the matrix exponential ``exp(t [[A, b], [0, 0]])``, so it is exact except for
    rounding, even if A is singular. Components and b are first brought to like units, by powers of two, so
    that the result does not depend on the units of x. Ding et al. (Eq. 4) add 1e-8 I to A in order to invert
    it.

    Examples
    --------
    >>> import numpy as np, physics
    >>> flow = physics.AffineFlow([[-1.0, 0.0], [0.0, -2.0]], [1.0, 0.0])
    >>> flow.solve([0.0, 1.0], times=[0.0, np.log(2.0)]).round(6).tolist()
    [[0.0, 1.0], [0.5, 0.25]]
    """

    A: Any
    b: Any

    default_step_size: ClassVar[float] = 0.1

    def __post_init__(self) -> None:
        A, b = finite_array("A", self.A), finite_array("b", self.b)
        if A.ndim != 2 or A.shape[0] != A.shape[1] or not A.size:
            raise InputError(f"A must have the shape (K, K) with K of at least 1, got {A.shape}")
        if b.ndim not in (1, 2) or len(b) != len(A) or not b.size:
            raise InputError(f"b must have the shape ({len(A)},) or ({len(A)}, dim), got {b.shape}")
        self._set(A=read_only(A.copy()), b=read_only(b.copy()))

    @property
    def tokens(self) -> int:
        """Number of components K, each of which is a token of the trajectory."""
        return len(self.A)

    @property
    def dim(self) -> int:
        """Number of columns of b, each of which is an independent system with the same A."""
        return 1 if self.b.ndim == 1 else self.b.shape[1]

    @one_blas_thread
    def advance(self, positions: Array, step_size: float, steps: int) -> None:
        """Move an ensemble in place along the exact solution over the time ``steps * step_size``.

        Parameters
        ----------
        positions : ndarray of float64, shape (runs, tokens, dim)
            Values of the components, which are overwritten.
        step_size : float
            Length of a step, in units of time.
        steps : int
            Number of steps.

        Examples
        --------
        >>> import numpy as np, physics
        >>> values = np.array([[[1.0]]])  # one run of one component
        >>> physics.AffineFlow([[-1.0]], [0.0]).advance(values, step_size=np.log(2.0), steps=3)
        >>> values.round(6).item()
        0.125
        """
        with np.errstate(over="ignore", invalid="ignore"):  # `simulate` checks the result
            linear, shift = self._map(step_size * steps)
            positions[:] = linear @ positions + shift

    @one_blas_thread
    def solve(self, initial: Any, times: Any) -> Array:
        """Return the exact solution at any times, from one initial state.

        Parameters
        ----------
        initial : array_like of float, shape (K,) or (K, dim)
            State at time 0, of the same shape as `b`.
        times : array_like of float, shape (n,)
            Times, positive or negative, in any order.

        Returns
        -------
        ndarray of float64, shape (n, K) or (n, K, dim)
            State at each time; it is not finite where the solution overflows.

        Raises
        ------
        InputError
            If shapes do not agree or a value is not a finite real number.

        Examples
        --------
        >>> import physics
        >>> flow = physics.AffineFlow([[-1.0]], [1.0])  # dx/dt = 1 - x
        >>> flow.solve([0.0], times=[0.0, 1.0, 100.0])[:, 0].round(4).tolist()
        [0.0, 0.6321, 1.0]
        """
        state, clock = finite_array("initial", initial), finite_array("times", times)
        if state.shape != self.b.shape or clock.ndim != 1:
            got = f"{state.shape} and {clock.shape}"
            raise InputError(f"initial and times must have the shapes {self.b.shape} and (n,), got {got}")
        K, (units, drift_units, _) = self.tokens, self._in_units
        digits, exponents = np.frexp(state.reshape(K, -1))
        exponents = np.where(digits != 0.0, exponents - units[:, None], SMALLEST)
        top = exponents.max(axis=0)
        with np.errstate(over="ignore", invalid="ignore"):
            power = self._exponential(clock)
            moved = np.ldexp(power[:, :K, :K] @ np.ldexp(digits, exponents - top), units[:, None] + top)
            moved += np.ldexp(power[:, :K, K:], units[:, None] + drift_units)
        return np.asarray(moved.reshape(len(clock), *state.shape))

    @cached_property
    def _in_units(self) -> tuple[Integers, Integers, Array]:
        """Units of components and of the columns of b as powers of two, and ``[[A, b], [0, 0]]`` in them."""
        units, drift_units = like_units(self.A, self.b.reshape(self.tokens, -1))
        K = self.tokens
        matrix = np.zeros((K + self.dim, K + self.dim))
        matrix[:K, :K] = np.ldexp(self.A, units - units[:, None])
        matrix[:K, K:] = np.ldexp(self.b.reshape(K, -1), -units[:, None] - drift_units)
        return units, drift_units, matrix

    def _exponential(self, times: Array) -> Array:
        """Return the exponential of ``[[A, b], [0, 0]]`` at `times` (...,), in the units of `_in_units`."""
        from scipy.linalg import expm

        return np.asarray(expm(times[..., None, None] * self._in_units[2]))

    @cached_property
    def _map(self) -> Callable[[float], tuple[Array, Array]]:
        return lru_cache(maxsize=4)(self._propagator)

    def _propagator(self, time: float) -> tuple[Array, Array]:
        """Return the matrix (K, K) and the shift (K, dim) that advance a state of K components by `time`."""
        K, (units, drift_units, _) = self.tokens, self._in_units
        power = self._exponential(np.array(time))
        linear = np.ldexp(power[:K, :K], units[:, None] - units)
        return linear, np.ldexp(power[:K, K:], units[:, None] + drift_units)


def like_units(A: Array, b: Array) -> tuple[Integers, Integers]:
    """Return units in which no component and no drift of ``dx/dt = A x + b`` dwarfs the others.

    A matrix exponential loses digits if the norm of its argument is far above its spectral radius, which a
    mere change of units of one component, or of b, can cause.

    Parameters
    ----------
    A, b : ndarray of float64, shapes (K, K) and (K, dim)
        Finite generator and drifts.

    Returns
    -------
    units, drift_units : ndarray of int64, shapes (K,) and (dim,)
        Exponents of two: ``x = 2**units y`` obeys ``dy/dt = A' y + b'`` with ``A' = 2**-units A 2**units``
        and ``b' = 2**-units b``, and b' is largest, as A', after division by ``2**drift_units``.
    """
    units = np.zeros(len(A), np.int64)
    with np.errstate(divide="ignore"):
        sizes, drifts = np.log2(np.abs(A)), np.log2(np.abs(b))
        radius = max(float(np.log2(np.abs(np.linalg.eigvals(A)).max())), SMALLEST)
    np.fill_diagonal(across := sizes.copy(), -np.inf)
    for _ in range(100):  # Osborne's balancing, for which rows and columns below the radius are no matter
        before = units.copy()
        for i in range(len(A)):
            if radius == SMALLEST and not np.isfinite([across[i].max(), across[:, i].max()]).all():
                continue  # nothing but the other end of a nilpotent chain bounds this unit
            row = max((across[i] + units).max() - units[i], radius)
            column = max((across[:, i] - units).max() + units[i], radius)
            if abs(row - column) >= 4.0:
                units[i] += round((row - column) / 2.0)
        if (units == before).all():
            break
    norm = max(float((sizes + units - units[:, None]).max()), SMALLEST)
    excess = (drifts - units[:, None]).max(axis=0) - norm
    return units, np.ceil(np.where(np.isfinite(excess), excess, 0.0)).astype(np.int64)
