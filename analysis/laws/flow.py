"""Affine laws: solution, rollout, conversion, and interactions of components.

Two kinds of law are distinguished: the **increment map** `x_{n+1} = x_n + A x_n + b`, and the **generator**
`dx/dt = A x + b`. The matrices of a generator and of its map agree only to first order in the step;
`to_increment` and `to_generator` convert one into the other.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from scipy.linalg import expm, logm
from scipy.linalg.lapack import dgebal

from physics.checks import InputError, finite_array, number, whole_number
from physics.flows import AffineFlow
from physics.values import Array


def affine_solution(A: Any, b: Any, x0: Any, times: Any) -> Array:
    """Solve the differential equation `dx/dt = A x + b` exactly, for any A, even a singular one.

    Parameters
    ----------
    A : array_like, shape (K, K)
        Matrix of the generator, per unit of time, for K components.
    b : array_like, shape (K,)
        Constant of the generator.
    x0 : array_like, shape (K,)
        State at time 0.
    times : array_like, shape (n,)
        Times at which the solution is wanted, in any order.

    Returns
    -------
    ndarray of float64, shape (n, K)
        States, from the exponential of the matrix ``[[A, b], [0, 0]]``. Eq. 4 of Ding et al. instead adds
        1e-8 to the diagonal of A and inverts the sum.

    Raises
    ------
    InputError
        If shapes do not agree or values are not finite.

    Examples
    --------
    >>> import analysis
    >>> analysis.affine_solution([[-1.0]], [1.0], [0.0], [0.0, 1.0])[:, 0].round(4).tolist()  # 1 - exp(-t)
    [0.0, 0.6321]
    """
    A, b = _affine(A, b)
    return AffineFlow(A, b).solve(_state(x0, b), finite_array("times", times).reshape(-1))


def affine_rollout(A: Any, b: Any, x0: Any, steps: int) -> Array:
    """Iterate the increment map `x_{n+1} = x_n + A x_n + b` from a state.

    Parameters
    ----------
    A : array_like, shape (K, K)
        Matrix of the map, per step, for K components.
    b : array_like, shape (K,)
        Constant of the map.
    x0 : array_like, shape (K,)
        First state.
    steps : int
        Number of steps, at least 0.

    Returns
    -------
    ndarray of float64, shape (steps + 1, K)
        The states, of which the first is `x0`; they may overflow to infinity.

    Raises
    ------
    InputError
        If shapes do not agree, a value is not finite, or `steps` is not a whole number of at least 0.

    Examples
    --------
    >>> import analysis
    >>> analysis.laws.affine_rollout([[-0.5]], [1.0], [0.0], 3)[:, 0].tolist()
    [0.0, 1.0, 1.5, 1.75]
    """
    A, b = _affine(A, b)
    steps = whole_number("steps", steps, 0)
    states = np.empty((steps + 1, len(b)))
    states[0] = _state(x0, b)
    with np.errstate(over="ignore", invalid="ignore"):
        for state, following in pairwise(states):
            np.dot(A, state, out=following)
            following += state
            following += b
    return states


def to_increment(A: Any, b: Any, step: float = 1.0) -> tuple[Array, Array]:
    """Convert a generator to the increment map over one time step.

    Parameters
    ----------
    A : array_like, shape (K, K)
        Matrix of the generator dx/dt = A x + b of K components.
    b : array_like, shape (K,)
        Constant of the generator.
    step : float, default 1.0
        Length of the time step, greater than 0.

    Returns
    -------
    A : ndarray of float64, shape (K, K)
        Matrix of the map x(t + step) = x(t) + A x(t) + b.
    b : ndarray of float64, shape (K,)
        Constant of the map.

    Raises
    ------
    InputError
        If shapes do not agree, a value is not finite, or `step` is not greater than 0.

    Examples
    --------
    >>> import analysis
    >>> A, b = analysis.to_increment([[-1.0]], [1.0])
    >>> A.round(4).tolist(), b.round(4).tolist()
    ([[-0.6321]], [0.6321])
    """
    A, b = _affine(A, b)
    mean = _mean_flow(A, number("step", step, above=0.0))
    return A @ mean, mean @ b


def to_generator(A: Any, b: Any, step: float = 1.0) -> tuple[Array, Array]:
    """Convert an increment map to the generator whose flow over one time step it is.

    Parameters
    ----------
    A : array_like, shape (K, K)
        Matrix of the map x(t + step) = x(t) + A x(t) + b of K components.
    b : array_like, shape (K,)
        Constant of the map.
    step : float, default 1.0
        Length of the time step, greater than 0.

    Returns
    -------
    A : ndarray of float64, shape (K, K)
        Matrix of the generator dx/dt = A x + b.
    b : ndarray of float64, shape (K,)
        Constant of the generator.

    Raises
    ------
    InputError
        If an argument is invalid, or there is no real generator because 1 + A has an eigenvalue that is zero,
        or real and negative.

    Notes
    -----
    Several generators may have the same increment map. The one with the slowest oscillations is returned,
    which is wrong for a flow that oscillates faster than half a turn per step.

    Examples
    --------
    >>> import analysis, numpy as np
    >>> A, b = analysis.to_generator([[np.exp(-1) - 1]], [1 - np.exp(-1)])
    >>> A.round(6).tolist(), b.round(6).tolist()
    ([[-1.0]], [1.0])
    """
    A, b = _affine(A, b)
    step = number("step", step, above=0.0)
    multiplier, unit = _balanced(np.eye(len(b)) + A)
    values = np.linalg.eigvals(multiplier)
    rounding = 1e-15 * len(b) * np.abs(values).max()
    blocked = values[(values.real <= rounding) & (np.abs(values.imag) <= rounding)]
    if len(blocked):
        got = ", ".join(f"{value:.3g}" for value in np.sort(blocked.real))
        got = f"1 + A with the eigenvalues {got}, which has no real logarithm"
        raise InputError(f"A must be the increment map of a flow, got {got}")
    # The logarithm has the rounding errors of 1 + A; the mean flow restores the digits of a slow law.
    mean = _mean_flow(np.real(logm(multiplier)) * unit[:, None] / unit / step, step)
    return np.linalg.solve(mean.T, A.T).T, np.linalg.solve(mean, b)


def interactions(A: Any) -> list[dict[str, Any]]:
    """List which components help or hinder each other, by the off-diagonal signs of A (Ding et al. §4.2).

    Parameters
    ----------
    A : array_like, shape (K, K)
        Matrix of a law of K components; A_ij is the effect of component j on the change of component i.

    Returns
    -------
    list of dict
        A row for each pair i < j in which one component acts on the other: ``first``, ``second``, the
        coefficients ``on_first`` (A_ij) and ``on_second`` (A_ji), and ``relation``. It is "collaboration" if
        no coefficient is negative, "competition" if none is positive, and "exploitation" if the signs differ.
        The strongest pair is first.

    Raises
    ------
    InputError
        If `A` is not a finite square matrix.

    Examples
    --------
    >>> import analysis
    >>> rows = analysis.laws.interactions([[0, -1], [-2, 0]])
    >>> [(row["first"], row["second"], row["relation"]) for row in rows]
    [(1, 2, 'competition')]
    """
    matrix = _square(A)
    rows = []
    for i, j in zip(*np.triu_indices(len(matrix), 1), strict=True):
        effects = [float(matrix[i, j]), float(matrix[j, i])]
        if any(effects):
            low, high = min(effects), max(effects)
            relation = "collaboration" if low >= 0 else "competition" if high <= 0 else "exploitation"
            pair = {"first": int(i) + 1, "second": int(j) + 1}
            rows.append(pair | {"on_first": effects[0], "on_second": effects[1], "relation": relation})
    return sorted(rows, key=lambda row: -max(abs(row["on_first"]), abs(row["on_second"])))


def _balanced(A: Array) -> tuple[Array, Array]:
    """Return a matrix in units of its components in which rows and columns are alike, and these units."""
    matrix, _, _, unit, _ = dgebal(A, scale=1, permute=0)
    return matrix, unit


def _mean_flow(A: Array, step: float) -> Array:
    """Return the integral of exp(A t) over a time step, whose product with A is the increment map."""
    size = len(A)
    matrix, unit = _balanced(A)
    twice = np.eye(2 * size, k=size)
    twice[:size, :size] = matrix
    return expm(step * twice)[:size, size:] * unit[:, None] / unit


def _square(A: Any) -> Array:
    """Return A as a checked square matrix."""
    matrix = finite_array("A", A)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise InputError(f"A must have the shape (K, K) with K at least 1, got {matrix.shape}")
    return matrix


def _affine(A: Any, b: Any) -> tuple[Array, Array]:
    """Return A and b as checked arrays, a square matrix and a vector with as many entries as it has rows."""
    A, b = _square(A), finite_array("b", b)
    if b.shape != A.shape[:1]:
        raise InputError(f"A and b must have the shapes (K, K) and (K,), got {A.shape} and {b.shape}")
    return A, b


def _state(x0: Any, b: Array) -> Array:
    """Return a state as a checked array with the shape of b."""
    state = finite_array("x0", x0)
    if state.shape != b.shape:
        raise InputError(f"x0 must have the shape {b.shape}, got {state.shape}")
    return state
