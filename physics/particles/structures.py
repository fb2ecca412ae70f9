"""Circles and grids: tests for the structures that embeddings form (Musat, Appendix A)."""

import math
from typing import Any

import numpy as np
from numba import prange

from physics.blas import one_blas_thread
from physics.checks import number, point_sets
from physics.jit import kernel
from physics.theory.operations import class_rule
from physics.values import Array, Int32, Integers, Mask, in_range, powers_of_two

OUT_OF_PLANE = 0.01
"""Largest fraction of the sum of squared distances from the origin that may lie outside the plane."""


def circle_ratio(E: Any) -> Array:
    """Return the ratio of the largest to the smallest distance of the tokens from the origin.

    It measures how far an embedding is from a circle around the origin; see `is_circle`.

    Parameters
    ----------
    E : array_like, shape (..., tokens, dim)
        Finite positions of at least 3 tokens, real numbers in any unit.

    Returns
    -------
    ndarray of float64, shape (...)
        Ratio of each point set, without a unit: 1 if all distances are equal, as on a circle around the
        origin, and infinite if a token lies at the origin. A single point set gives a NumPy number.

    Raises
    ------
    InputError
        If `E` has another shape, fewer than 3 tokens, or entries that are not finite real numbers.

    References
    ----------
    Musat, Appendix A, Algorithm 1.

    Examples
    --------
    >>> import physics
    >>> float(physics.circle_ratio([[1.0, 0.0], [0.0, 2.0], [-1.0, 0.0]]))
    2.0
    """
    scaled, exponents = powers_of_two(point_sets("E", E), -1)
    norms = np.linalg.norm(scaled, axis=-1)
    exponents = np.where(norms > 0, exponents[..., 0], -2000)
    norms = np.ldexp(norms, exponents - exponents.max(axis=-1, keepdims=True))
    smallest = norms.min(axis=-1)
    largest = norms.max(axis=-1)
    ratio = np.full(smallest.shape, np.inf)
    np.divide(largest, smallest, out=ratio, where=smallest > 0)
    return ratio[()]


def is_circle(E: Any, *, threshold: float = 1.2) -> Mask:
    """Return whether embeddings form a circle around the origin (Musat, Algorithm 1).

    An embedding in one or two dimensions is called a circle if its tokens have nearly the same distance from
    the origin. In more dimensions it must also lie close to a plane through the origin.

    Parameters
    ----------
    E : array_like, shape (..., tokens, dim)
        Finite positions of at least 3 tokens, real numbers in any unit.
    threshold : float, default 1.2
        Limit of `circle_ratio`, greater than 1; the ratio of a circle must be smaller.

    Returns
    -------
    ndarray of bool, shape (...)
        One answer for each point set. A single point set gives a NumPy bool.

    Raises
    ------
    InputError
        If `E` has another shape, fewer than 3 tokens, or entries that are not finite real numbers, or if
        `threshold` is not a finite number greater than 1.

    Notes
    -----
    The paper states the rule in two dimensions. In more dimensions, points on a sphere or on several circles
    have equal distances too, which is why the plane is tested. It is the plane through the origin that is
    closest to the points in the sense of least squares. At most 1 % of the sum of their squared distances
    from the origin may lie outside the plane.

    Examples
    --------
    >>> import numpy as np, physics
    >>> angle = 2 * np.pi * np.arange(17) / 17
    >>> circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    >>> bool(physics.is_circle(circle)), bool(physics.is_circle(circle + 0.2))
    (True, False)
    """
    limit = number("threshold", threshold, above=1.0)
    circle = np.asarray(circle_ratio(E) < limit)
    positions = point_sets("E", E)
    if positions.shape[-1] > 2:
        with one_blas_thread:
            squares = np.linalg.svd(in_range(positions[circle], (1, 2)), compute_uv=False) ** 2
        circle[circle] = squares[:, 2:].sum(axis=1) <= OUT_OF_PLANE * squares.sum(axis=1)
    return circle[()]


def grid_imperfections(
    E: Any, *, modulus: int | None = None, group: Any = None, pairs: Any = None
) -> Integers:
    """Count the pair sums whose nearest other pair sum has another class (Musat, Algorithm 2).

    The count measures how far an embedding is from a grid. Where the pair sums E_i + E_j of each class lie
    closer together than to those of other classes, a network can read the class off the position, and the
    count is 0.

    Parameters
    ----------
    E : array_like, shape (..., tokens, dim)
        Finite positions of at least 3 tokens, real numbers in any unit.
    modulus : int, optional
        The class of the pair (i, j) is (i + j) mod `modulus`, at least 2. By default it is the number of
        tokens.
    group : FiniteGroup or array_like of int, shape (tokens, tokens), optional
        Commutative group, or its Cayley table, whose product i·j is the class of (i, j) instead.
    pairs : array_like of int, shape (n, 2), optional
        Pairs whose sums are counted, such as a training set; by default all pairs with i ≤ j.

    Returns
    -------
    ndarray of int64, shape (...)
        Number of imperfections of each point set, from 0 to the number of pair sums, which is tokens (tokens
        + 1) / 2 if `pairs` is not given. A single point set gives a NumPy number.

    Raises
    ------
    InputError
        If `E` has another shape, fewer than 3 tokens, or entries that are not finite real numbers; if
        `modulus` is below 2, `group` is not a commutative group of this order, or both are given; and if
        `pairs` is empty, repeats a pair or names a missing token.

    Notes
    -----
    If two other pair sums are equally near, the one that comes first in the lexicographic order of pairs
    decides, as in the paper's algorithm. A single pair sum has no other one and counts as an imperfection.

    Examples
    --------
    Tokens at equal distances on a line: most pair sums coincide with others of their class, and only the two
    smallest and the two largest sums occur once.

    >>> import physics
    >>> int(physics.grid_imperfections([[0.0], [1.0], [2.0], [3.0], [4.0]]))
    4
    """
    positions = in_range(point_sets("E", E), (-2, -1))
    *batch, tokens, dim = positions.shape
    operation = class_rule(tokens, modulus, group)
    trained = operation.mask(pairs)
    first, second = np.ascontiguousarray(operation.samples[trained].T)
    runs = int(np.prod(batch, dtype=np.int64))
    imperfect = np.empty((runs, first.size), np.bool_)
    mark_imperfections(
        positions.reshape(runs, tokens, dim), first, second, operation.label[trained], imperfect
    )
    return imperfect.sum(axis=1).reshape(batch)[()]


@kernel()
def _nearest(place: int, order: Integers, along: Array, sums: Array) -> int:
    """Return the nearest pair sum to that at `place` of `order`, other than itself, or -1 without any other.

    `order` (pairs,) sorts the pair sums (pairs, dim) by `along` (pairs,), their coordinate on one axis. The
    search goes outward on this axis until everything beyond is farther. If rounded distances are equal, the
    first of the pair sums in pair order is returned.
    """
    a = order[place]
    nearest = math.inf
    found = -1
    for side in (-1, 1):
        at = place + side
        while 0 <= at < order.size:
            b = order[at]
            if abs(along[b] - along[a]) * (1.0 - 1e-12) > nearest:
                break
            squared = 0.0
            for k in range(sums.shape[1]):
                squared += (sums[a, k] - sums[b, k]) * (sums[a, k] - sums[b, k])
            distance = math.sqrt(squared)
            if distance < nearest or (distance == nearest and b < found):
                nearest = distance
                found = b
            at += side
    return found


@kernel(parallel=True)
def mark_imperfections(positions: Array, first: Int32, second: Int32, label: Int32, imperfect: Mask) -> None:
    """Mark in `imperfect` (runs, pairs) each pair sum whose nearest other pair sum has another class.

    `positions` (runs, tokens, dim) are the embeddings, `first` and `second` (pairs,) the two tokens of each
    pair sum, and `label` (pairs,) its class. A single pair sum has no other one and is marked. Pair sums are
    sorted along their widest axis, so that few of them are compared if they are spread out.
    """
    dim, pairs = positions.shape[2], label.size
    for run in prange(len(positions)):
        sums = np.empty((pairs, dim))
        widest, width = 0, -1.0
        for k in range(dim):
            least, largest = math.inf, -math.inf
            for a in range(pairs):
                at = positions[run, first[a], k] + positions[run, second[a], k]
                sums[a, k] = at
                least, largest = min(least, at), max(largest, at)
            if largest - least > width:
                widest, width = k, largest - least
        along = sums[:, widest].copy()
        order = np.argsort(along)
        for place in range(pairs):
            a = order[place]
            b = _nearest(place, order, along, sums)
            imperfect[run, a] = b < 0 or label[b] != label[a]
