"""Distances between shapes that ignore rotation, reflection, scaling, and the labels of the tokens."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import gcd
from typing import Any

import numpy as np
from scipy.linalg import orthogonal_procrustes

from analysis.scaling import scaled
from physics.checks import InputError, point_sets, whole_number
from physics.theory.operations import FiniteGroup, Operation, as_group
from physics.values import Array, Integers, Shown

LARGEST = 2**20
"""Largest number of relabelings that are searched; a problem with more is refused."""


@dataclass(frozen=True, eq=False)
class Symmetry(Shown):
    """Relabelings of the tokens that do not change a problem, for the argument `symmetry` of `compare`.

    Attributes
    ----------
    name : str
        Name in tables.
    permutations : ndarray of int64, shape (n, tokens)
        Relabeling g sends token i to ``permutations[g, i]``; the identity is among the relabelings.
    affine : bool, default False
        Whether these are all maps i → u i + c (mod tokens) with a unit u, in the order of (u, c); see
        `affine_maps`. A Fourier transform then gives the overlaps of two shapes for all c at once.

    Examples
    --------
    >>> import analysis
    >>> first, second = analysis.comparison.affine_maps(5), analysis.comparison.no_relabelling(5)
    >>> both = first & second  # relabelings that both problems allow
    >>> len(both), both.permutations.tolist()
    (1, [[0, 1, 2, 3, 4]])
    """

    name: str
    permutations: Integers
    affine: bool = False

    @property
    def tokens(self) -> int:
        """Number of tokens that the relabelings permute."""
        return self.permutations.shape[1]

    def __len__(self) -> int:
        return len(self.permutations)

    def __and__(self, other: "Symmetry") -> "Symmetry":
        """Return the relabelings that both this problem and the problem of `other` allow."""
        if len(self) == len(other) and np.array_equal(self.permutations, other.permutations):
            return self
        allowed = {tuple(row) for row in other.permutations.tolist()}
        shared = [row for row in self.permutations.tolist() if tuple(row) in allowed]
        return Symmetry(f"{self.name} and {other.name}", np.array(shared, np.int64))


def no_relabelling(tokens: int) -> Symmetry:
    """Return the symmetry that only allows rotations and reflections, and no relabeling.

    Parameters
    ----------
    tokens : int
        Number of tokens, at least 1.

    Returns
    -------
    Symmetry
        The identity alone, for the argument `symmetry` of `compare`.

    Raises
    ------
    InputError
        If `tokens` is not a whole number of at least 1.

    Examples
    --------
    >>> import analysis
    >>> analysis.comparison.no_relabelling(3).permutations.tolist()
    [[0, 1, 2]]
    """
    return Symmetry("no relabeling", np.arange(whole_number("tokens", tokens, 1))[None])


def affine_maps(tokens: int) -> Symmetry:
    """Return the maps i → u i + c (mod tokens) with a unit u, which permute the classes of modular sums.

    A unit is a number from 1 to `tokens` that has no factor in common with `tokens`.

    Parameters
    ----------
    tokens : int
        Number of tokens, at least 1, which is also the modulus.

    Returns
    -------
    Symmetry
        All such maps, for the argument `symmetry` of `compare`. A prime number p of tokens has p (p - 1).

    Raises
    ------
    InputError
        If `tokens` is not a whole number of at least 1.

    Examples
    --------
    >>> import analysis
    >>> analysis.comparison.affine_maps(3).permutations.tolist()
    [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 2, 1], [1, 0, 2], [2, 1, 0]]
    """
    p = whole_number("tokens", tokens, 1)
    units = np.array([u for u in range(1, p + 1) if gcd(u, p) == 1])
    maps = (units[:, None, None] * np.arange(p) + np.arange(p)[:, None]) % p
    return Symmetry(f"i → u i + c (mod {p})", maps.reshape(-1, p), affine=True)


def symmetry_of(theory: Any, pairs: Any = None) -> Symmetry:
    """Return all relabelings of the tokens that permute the classes of a problem.

    Parameters
    ----------
    theory : Operation, EffectiveTheory or FiniteGroup
        Problem that is learned. For a group the relabelings are the maps ``i → z α(i)`` with an automorphism
        α and an element z of the center. They are the bijections f for which ``f(i)·f(j)`` is a function of
        ``i·j``. Addition modulo the number of tokens p is the cyclic group. Addition without a modulus, or
        with one that no sum reaches, only allows the reversal ``i → p - 1 - i`` and the identity.
    pairs : array_like of int, shape (n, 2), optional
        Training set, which relabelings must map onto itself; by default all pairs.

    Returns
    -------
    Symmetry
        The relabelings, for the argument `symmetry` of `compare`.

    Raises
    ------
    InputError
        If `theory` is of another type, `pairs` is not a training set, or the problem has more than 2^20
        relabelings. Also if it adds modulo a number that some sums reach, other than the number of tokens.

    Examples
    --------
    >>> import analysis, physics
    >>> plain = analysis.comparison.symmetry_of(physics.EffectiveTheory(4))
    >>> plain.name, plain.permutations.tolist()
    ('reversal', [[0, 1, 2, 3], [3, 2, 1, 0]])
    """
    operation = Operation(group=theory) if isinstance(theory, FiniteGroup) else theory
    operation = getattr(operation, "operation", operation)
    if not isinstance(operation, Operation):
        raise InputError(f"theory must be an Operation, a system or a group, got {type(theory).__name__}")
    p = operation.tokens
    if operation.group is not None:
        symmetry = _group_maps(operation.group)
    elif operation.modulus == p:
        symmetry = affine_maps(p)
    elif operation.modulus is None or operation.modulus >= 2 * p - 1:
        symmetry = Symmetry("reversal", np.array([np.arange(p), np.arange(p)[::-1]]))
    else:
        allowed = f"{p}, its number of tokens, or at least {2 * p - 1}, where no sum wraps around"
        raise InputError(f"the modulus of theory must be {allowed}, got {operation.modulus}")
    return symmetry if pairs is None else _stabiliser(symmetry, operation, pairs)


def automorphisms(group: Any) -> Integers:
    """Return all automorphisms of a finite group: the bijections that preserve its products.

    Parameters
    ----------
    group : FiniteGroup, or array_like of int, shape (order, order)
        The group, or its Cayley table.

    Returns
    -------
    ndarray of int64, shape (n, order)
        A row for each automorphism; entry g is the image of the element g.

    Raises
    ------
    InputError
        If there are more than 2^20 candidates for the images of a generating set, or the table is not that of
        a group.

    Examples
    --------
    >>> import analysis
    >>> analysis.comparison.automorphisms([[0, 1, 2], [1, 2, 0], [2, 0, 1]]).tolist()  # addition modulo 3
    [[0, 1, 2], [0, 2, 1]]
    """
    group = as_group(group)
    orders = _orders(group)
    generators = _generators(group)
    images = [np.flatnonzero(orders == orders[g]) for g in generators]
    candidates = int(np.prod([len(image) for image in images], dtype=object))
    if candidates > LARGEST:
        raise InputError(f"group must leave at most {LARGEST} images of generators, got {candidates}")
    maps = [_extended(group, generators, choice) for choice in product(*images)]
    return np.array([image for image in maps if image is not None], np.int64)


def _stabiliser(symmetry: Symmetry, operation: Operation, pairs: Any) -> Symmetry:
    """Return the relabelings of an operation that map the training set `pairs` (n, 2) onto itself."""
    mask = operation.mask(pairs)
    if mask.all():
        return symmetry
    place = np.zeros((operation.tokens, operation.tokens), bool)
    i, j = operation.samples[mask].T
    place[i, j] = True
    if operation.commutes:
        place |= place.T
    stable = [bool(place[g[i], g[j]].all()) for g in symmetry.permutations]
    return Symmetry(f"{symmetry.name} within the training set", symmetry.permutations[stable])


def _group_maps(group: FiniteGroup) -> Symmetry:
    """Return the relabelings i → z α(i) of a group; the identity comes first."""
    p, elements = group.order, np.arange(group.order)
    if group.commutes and np.array_equal(group.table, (elements[:, None] + elements) % p):
        return affine_maps(p)
    center = np.flatnonzero((group.table == group.table.T).all(axis=1))
    maps = automorphisms(group)
    if len(maps) * len(center) > LARGEST:
        got = f"{len(maps)} automorphisms times {len(center)} elements of the center"
        raise InputError(f"group must have at most {LARGEST} relabelings, got {got}")
    moved = group.table[center[None, :, None], maps[:, None, :]].reshape(-1, p)
    first = np.lexsort(np.append(moved.T[::-1], [~(moved == elements).all(axis=1)], axis=0))
    return Symmetry(f"automorphisms of {group.name} and its center", moved[first])


def _orders(group: FiniteGroup) -> Integers:
    """Return the order of each element."""
    orders = np.zeros(group.order, np.int64)
    power, n = np.arange(group.order), 1
    while not orders.all():
        orders[(power == group.identity) & (orders == 0)] = n
        power, n = group.table[power, np.arange(group.order)], n + 1
    return orders


def _generators(group: FiniteGroup) -> list[int]:
    """Return a small generating set, by repeatedly adding the missing element of the highest order."""
    orders = _orders(group)
    chosen: list[int] = []
    reached = np.zeros(group.order, bool)
    reached[group.identity] = True
    while not reached.all():
        chosen.append(int(np.argmax(np.where(reached, 0, orders))))
        reached[chosen[-1]] = True
        while not reached[products := group.table[np.ix_(reached, reached)]].all():
            reached[products] = True
    return chosen


def _extended(group: FiniteGroup, generators: list[int], images: tuple[Any, ...]) -> Integers | None:
    """Extend the images of generators to an automorphism (order,); return None if there is none."""
    image = np.full(group.order, -1)
    image[group.identity] = group.identity
    known = [group.identity]
    for element in known:
        for generator, target in zip(generators, images, strict=True):
            moved, expected = group.table[element, generator], group.table[image[element], target]
            if image[moved] < 0:
                image[moved] = expected
                known.append(moved)
            elif image[moved] != expected:
                return None
    bijective = len(np.unique(image)) == group.order
    return image if bijective and (image[group.table] == group.table[np.ix_(image, image)]).all() else None


BLOCK = 2**23
"""Largest number of values in a block of overlaps."""


def procrustes_disparity(first: Any, second: Any, symmetry: Symmetry | None = None) -> tuple[Array, Integers]:
    """Return the Procrustes disparity of all pairs of shapes, minimized over relabelings of the tokens.

    Two networks may learn the same structure with the tokens in other places. The disparity is the squared
    distance that remains after the best translation, scaling, rotation, reflection and relabeling.

    Parameters
    ----------
    first : array_like, shape (m, N, D)
        The m shapes of the first ensemble, each of N tokens in D dimensions.
    second : array_like, shape (n, N, D')
        The n shapes of the second ensemble. Shapes with fewer dimensions are padded with zeros.
    symmetry : Symmetry, optional
        Relabelings to try; by default ``affine_maps(N)``, those of addition modulo N.

    Returns
    -------
    disparity : ndarray of float64, shape (m, n)
        From 0 to 1, as `scipy.spatial.procrustes` defines it, for the best relabeling.
    relabelling : ndarray of int64, shape (m, n)
        Index g of the best relabeling: token i of the second shape corresponds to token ``permutations[g,
        i]`` of the first.

    Raises
    ------
    InputError
        If an ensemble has other axes, shapes or `symmetry` differ in the number of tokens, a value is not
        finite, or all tokens of a shape coincide.

    Notes
    -----
    For shapes a and b and the relabelings i → u i + c, the overlaps ``Σ_i a[u i + c] b[i]`` for all c are a
    circular correlation, which is a product in Fourier space. The best rotation attains the sum of the
    singular values of an overlap. In the plane these have a closed form.

    Examples
    --------
    >>> import analysis, numpy as np
    >>> shape = np.random.default_rng(0).normal(size=(7, 2))
    >>> moved = 2 * shape[3 * np.arange(7) % 7] + 1  # relabeled by i → 3 i, enlarged, and moved
    >>> analysis.comparison.procrustes_disparity([shape], [moved])[0].round(6).tolist()
    [[0.0]]
    """
    a, b = standard_pair(first, second)
    symmetry = affine_maps(a.shape[-2]) if symmetry is None else symmetry
    if symmetry.tokens != a.shape[-2]:
        raise InputError(f"symmetry must be one of {a.shape[-2]} tokens, got one of {symmetry.tokens}")
    disparity = np.empty((len(a), len(b)))
    relabelling = np.empty((len(a), len(b)), np.int64)
    rows = max(BLOCK // (max(len(b), 1) * symmetry.tokens * a.shape[-1] ** 2), 1)
    for start in range(0, len(a), rows):
        part = slice(start, start + rows)
        disparity[part], relabelling[part] = best_relabelling(a[part, None, None], b[:, None], symmetry)
    return disparity, relabelling


def best_relabelling(a: Array, b: Array, symmetry: Symmetry) -> tuple[Array, Integers]:
    """Return the one relabeling of all frames with the smallest mean disparity.

    Parameters
    ----------
    a, b : ndarray of float64, shape (..., frames, tokens, dim)
        Shapes as `standard_pair` returns them; leading axes broadcast. Frames that are NaN in either do not
        count.
    symmetry : Symmetry
        Relabelings to try.

    Returns
    -------
    disparity : ndarray of float64, shape (...)
        Smallest mean disparity over the frames that count, from 0 to 1.
    relabelling : ndarray of int64, shape (...)
        Index of the relabeling, the first of several that are equally good up to rounding.
    """
    best: Any = -1.0
    where: Any = 0
    for numbers, gain in _gains(a, b, symmetry):
        # If values are equal up to rounding, the first is taken, so that the identity is preferred.
        top = gain.max(axis=-1)
        better = top > best + 1e-12
        where = np.where(better, numbers.start + gain.argmax(axis=-1), where)
        best = np.where(better, top, best)
    return np.clip(1 - best, 0, 1), where


def relabelling_gains(a: Array, b: Array, symmetry: Symmetry) -> Array:
    """Return 1 minus the mean disparity over the frames of `a` and `b` for each relabeling, (..., n)."""
    return np.concatenate([gain for _, gain in _gains(a, b, symmetry)], axis=-1)


def _gains(a: Array, b: Array, symmetry: Symmetry) -> Iterator[tuple[slice, Array]]:
    """Yield `relabelling_gains` of n relabelings at a time, after the slice of their indices."""
    counts = np.asarray(np.isfinite(a).all(axis=(-2, -1)) & np.isfinite(b).all(axis=(-2, -1)))
    total = np.maximum(counts.sum(axis=-1), 1)[..., None]
    for numbers, overlap in _overlaps(np.nan_to_num(a), np.nan_to_num(b), symmetry):
        yield numbers, (np.square(_nuclear(overlap)) * counts[..., None]).sum(axis=-2) / total


def disparity(a: Array, b: Array) -> Array:
    """Return the Procrustes disparity (...) of shapes (..., tokens, dim), without relabeling.

    The shapes are centered and of unit norm, as `standard_pair` returns them.

    The disparity is from 0 to 1, and NaN where a shape holds NaN.
    """
    sound = np.isfinite(a).all(axis=(-2, -1)) & np.isfinite(b).all(axis=(-2, -1))
    overlap = np.swapaxes(np.nan_to_num(a), -1, -2) @ np.nan_to_num(b)
    return np.where(sound, np.clip(1 - _nuclear(overlap) ** 2, 0, 1), np.nan)


def aligned(shape: Any, target: Any, permutation: Any = None) -> Array:
    """Align one shape with another by translation, scaling, rotation, reflection and a permutation.

    Parameters
    ----------
    shape : array_like, shape (tokens, dim)
        Shape to move.
    target : array_like, shape (tokens, dim)
        Shape with equal numbers of tokens and of dimensions.
    permutation : array_like of int, shape (tokens,), optional
        Relabeling: row i of the result is made of row ``permutation[i]`` of `shape`.

    Returns
    -------
    ndarray of float64, shape (tokens, dim)
        The moved shape whose squared distance from `target` is smallest.

    Raises
    ------
    InputError
        If a shape is not a finite array (tokens, dim).
    """
    a, b = point_sets("shape", shape), point_sets("target", target)
    a = a if permutation is None else a[np.asarray(permutation)]
    a, center = scaled(a - a.mean(axis=0))[0], b.mean(axis=0)
    b, unit = scaled(b - center)
    rotation, size = orthogonal_procrustes(a, b)
    return np.asarray(np.ldexp(a @ rotation * (size / (a**2).sum()), unit) + center)


def standard_pair(first: Any, second: Any) -> tuple[Array, Array]:
    """Return two sets of shapes (n, tokens, dim), centered, of unit norm, and padded to the larger `dim`.

    An `InputError` refuses different numbers of tokens, a shape whose tokens all coincide, and other axes.
    """
    a, b = point_sets("first", first, ndim=3), point_sets("second", second, ndim=3)
    if a.shape[-2] != b.shape[-2]:
        raise InputError(f"first and second must have equally many tokens, got {a.shape[-2]}, {b.shape[-2]}")
    for name, shapes in (("first", a), ("second", b)):
        if not np.ptp(shapes, axis=-2).any(axis=-1).all():
            raise InputError(f"{name} must not hold a shape whose tokens all coincide")
    dim = max(a.shape[-1], b.shape[-1])
    return standard(a, dim), standard(b, dim)


def standard(shapes: Array, dim: int) -> Array:
    """Center shapes (..., tokens, axes), scale them to unit norm, and pad them with zeros to `dim` axes.

    Axes beyond the number of tokens are rotated away, for p tokens span at most p of them. A shape whose
    tokens all coincide becomes NaN.
    """
    array = scaled(shapes - shapes.mean(axis=-2, keepdims=True), (-2, -1))[0]
    norm = np.sqrt(np.sum(array**2, axis=(-2, -1), keepdims=True))
    array = array / np.where(norm > 0, norm, np.nan)
    tokens, dim = array.shape[-2], min(dim, array.shape[-2])
    if array.shape[-1] > tokens:
        bad = ~np.isfinite(array).all(axis=(-2, -1), keepdims=True)
        array = np.swapaxes(np.linalg.qr(np.swapaxes(np.where(bad, 0.0, array), -1, -2), mode="r"), -1, -2)
        array = np.where(bad, np.nan, array)
    return np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, dim - array.shape[-1])])


def _overlaps(a: Array, b: Array, symmetry: Symmetry) -> Iterator[tuple[slice, Array]]:
    """Yield n relabelings at a time, as a slice of their indices, with the overlaps (..., n, dim, dim).

    The overlap of two shapes `a` and `b` (..., tokens, dim) is the sum over the tokens of the products of
    their coordinates, after a relabeling of `a`.
    """
    p, size = symmetry.tokens, len(symmetry)
    if symmetry.affine:
        f = np.arange(p // 2 + 1)
        A, B = np.fft.rfft(a, axis=-2), np.fft.fft(b, axis=-2)
        for start in range(0, size, p):
            unit = (symmetry.permutations[start, 1 % p] - symmetry.permutations[start, 0]) % p
            spectrum = A[..., :, None] * B[..., unit * f % p, None, :].conj()
            yield slice(start, start + p), np.fft.irfft(spectrum, p, axis=-3)
        return
    values = int(np.prod(np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), dtype=np.int64)) * p * a.shape[-1]
    step = max(BLOCK // max(values, 1), 1)
    for start in range(0, size, step):
        numbers = slice(start, min(start + step, size))
        moved = a[..., symmetry.permutations[numbers], :]
        yield numbers, np.swapaxes(moved, -1, -2) @ b[..., None, :, :]


def _nuclear(overlap: Array) -> Array:
    """Return the sum (...) of the singular values of square matrices (..., dim, dim)."""
    dim = overlap.shape[-1]
    if dim == 1:
        return np.abs(overlap[..., 0, 0])
    if dim == 2:
        determinant = overlap[..., 0, 0] * overlap[..., 1, 1] - overlap[..., 0, 1] * overlap[..., 1, 0]
        return np.sqrt(np.square(overlap).sum(axis=(-2, -1)) + 2 * np.abs(determinant))
    return np.asarray(np.linalg.svd(overlap, compute_uv=False).sum(axis=-1))
