"""Circles and grids: tests for the structures of an embedding (Musat, Appendix A)."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from physics.blas import one_blas_thread
from physics.checks import number, point_sets
from physics.lazy import LazyModule
from physics.theory.operations import class_rule

if TYPE_CHECKING:
    from physics.particles import structure_kernels as kernels
else:
    kernels = LazyModule("physics.particles.structure_kernels")

OUT_OF_PLANE = 0.01
"""Largest fraction of the sum of squared distances to the origin that a circle may have outside its plane."""


def circle_ratio(E: Any) -> NDArray[np.float64]:
    """Return the ratio of the largest to the smallest distance of the tokens from the origin.

    Parameters
    ----------
    E : array_like, shape (..., tokens, dim)
        Embeddings, finite.

    Returns
    -------
    ndarray of float64, shape (...)
        The ratio is 1 for a perfect circle around the origin, and infinite if a token lies at the origin.

    Raises
    ------
    InputError
        If `E` is not finite, or not of that shape.
    """
    norms = np.linalg.norm(point_sets("E", E), axis=-1)
    smallest = norms.min(axis=-1)
    largest = norms.max(axis=-1)
    ratio = np.full(smallest.shape, np.inf)
    np.divide(largest, smallest, out=ratio, where=smallest > 0)
    return ratio[()]


def is_circle(E: Any, *, threshold: float = 1.2) -> NDArray[np.bool_]:
    """Return whether embeddings form a circle around the origin (Musat, Algorithm 1).

    Parameters
    ----------
    E : array_like, shape (..., tokens, dim)
        Embeddings, finite.
    threshold : float, default 1.2
        Limit of `circle_ratio`: a circle has a smaller one.

    Returns
    -------
    ndarray of bool, shape (...)
        One answer for each point set, or a NumPy scalar for a single one.

    Raises
    ------
    InputError
        If `E` is not finite or not of that shape, or `threshold` is not greater than 1.

    Notes
    -----
    The paper states the rule in two dimensions, where the ratio is sufficient. In more dimensions, points on
    a sphere or on several circles have equal distances too, so a circle must also lie in a plane through the
    origin. The plane of the two leading principal directions of the points, which are not centered, must
    contain all but 1 % of the sum of their squared distances. Points may thus be off the plane by a tenth of
    their distance (root mean square), which is about as much as a ratio of 1.2 allows distances to vary.
    """
    limit = number("threshold", threshold, above=1.0)
    circle = np.asarray(circle_ratio(E) < limit)
    positions = point_sets("E", E)
    if positions.shape[-1] > 2:
        circle[circle] = _in_a_plane(positions[circle])
    return circle[()]


@one_blas_thread
def _in_a_plane(positions: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which nonzero point sets (sets, tokens, dim) lie in a plane through the origin."""
    scaled = positions / np.abs(positions).max(axis=(1, 2), keepdims=True)  # squares must not overflow
    squares = np.linalg.svd(scaled, compute_uv=False) ** 2
    return np.asarray(squares[:, 2:].sum(axis=1) <= OUT_OF_PLANE * squares.sum(axis=1))


def grid_imperfections(
    E: Any, *, modulus: int | None = None, group: Any = None, pairs: Any = None
) -> NDArray[np.int64]:
    """Count the pair sums whose nearest other pair sum has another class (Musat, Algorithm 2).

    Parameters
    ----------
    E : array_like, shape (..., tokens, dim)
        Embeddings, finite.
    modulus : int, optional
        The class of the pair (i, j) is (i + j) mod `modulus`; the number of tokens by default.
    group : FiniteGroup or array_like (tokens, tokens), optional
        Commutative group whose product i·j is the class of (i, j) instead.
    pairs : array_like of int, shape (n, 2), optional
        Training set whose pair sums are counted, by default all pairs.

    Returns
    -------
    ndarray of int64, shape (...)
        Number between 0, for a perfect grid, and the number of pair sums, which is tokens (tokens + 1) / 2
        for all pairs. If two neighbors are equally near, the first in the order of pairs counts.

    Raises
    ------
    InputError
        If `E` is not finite or not of that shape, `modulus` is below 2, `group` is not a commutative group,
        or `pairs` is not a training set.
    """
    positions = point_sets("E", E)
    *batch, tokens, dim = positions.shape
    operation = class_rule(tokens, modulus, group)
    trained = operation.mask(pairs)
    first, second = operation.samples[trained].T
    runs = int(np.prod(batch, dtype=np.int64))
    imperfect = np.empty((runs, first.size), np.bool_)
    kernels.grid_imperfections(
        positions.reshape(runs, tokens, dim), first, second, operation.label[trained], imperfect
    )
    return imperfect.sum(axis=1).reshape(batch)[()]
