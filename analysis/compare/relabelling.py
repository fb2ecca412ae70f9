"""Shapes modulo the symmetries of a problem: rotation, reflection, scaling, and relabeling of the tokens."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import orthogonal_procrustes

from physics.checks import point_sets, whole_number
from physics.errors import InputError
from physics.theory.groups import FiniteGroup, as_group
from physics.theory.operations import Operation

Array = NDArray[np.float64]
Permutations = NDArray[np.int64]
LARGEST = 2**20
"""Largest number of relabelings that are searched; a problem with more is refused."""
BLOCK = 2**23
"""Size of a block of overlaps."""


@dataclass(frozen=True, eq=False)
class Symmetry:
    """Relabelings of the tokens that do not change a problem.

    Attributes
    ----------
    name : str
        Name in tables.
    permutations : ndarray of int64, shape (n, tokens)
        Relabeling g sends token i to ``permutations[g, i]``; the identity is among them.
    affine : bool
        Whether all have the form i → u i + c (mod tokens), in the order of (u, c). A Fourier transform then
        gives the overlaps for all c at once.
    """

    name: str
    permutations: Permutations
    affine: bool = False

    @property
    def tokens(self) -> int:
        """Number of tokens."""
        return self.permutations.shape[1]

    def __len__(self) -> int:
        return len(self.permutations)

    def __and__(self, other: "Symmetry") -> "Symmetry":
        """Return the relabelings that both problems allow."""
        if len(self) == len(other) and np.array_equal(self.permutations, other.permutations):
            return self
        allowed = {tuple(row) for row in other.permutations.tolist()}
        kept = [row for row in self.permutations.tolist() if tuple(row) in allowed]
        return Symmetry(f"{self.name} and {other.name}", np.array(kept, np.int64))


def no_relabelling(tokens: int) -> Symmetry:
    """Return the symmetry that only allows rotations and reflections, and no relabeling.

    Parameters
    ----------
    tokens : int
        Number of tokens, at least 1.

    Returns
    -------
    Symmetry
        For the argument `symmetry` of `compare`.

    Raises
    ------
    InputError
        If `tokens` is not a whole number of at least 1.
    """
    return Symmetry("no relabelling", np.arange(whole_number("tokens", tokens, 1))[None])


def affine_maps(tokens: int) -> Symmetry:
    """Return the maps i → u i + c (mod tokens) with a unit u, which permute classes of modular sums.

    Parameters
    ----------
    tokens : int
        Number of tokens, at least 1, which is also the modulus.

    Returns
    -------
    Symmetry
        For the argument `symmetry` of `compare`. For a prime p it has p (p - 1) maps.

    Raises
    ------
    InputError
        If `tokens` is not a whole number of at least 1.
    """
    p = whole_number("tokens", tokens, 1)
    units = np.array([u for u in range(1, p + 1) if gcd(u, p) == 1])
    maps = (units[:, None, None] * np.arange(p) + np.arange(p)[:, None]) % p
    return Symmetry(f"i → u i + c (mod {p})", maps.reshape(-1, p), affine=True)


def symmetry_of(theory: Any, pairs: Any = None) -> Symmetry:
    """Return all relabelings of a problem that permute its classes.

    Parameters
    ----------
    theory : Operation, EffectiveTheory or FiniteGroup
        Problem. For a group the relabelings are the maps ``i → z α(i)`` with an automorphism α and z in the
        center, which are the bijections f with ``f(i)·f(j)`` a function of ``i·j``. Addition mod p is the
        cyclic group. Plain addition only allows the reversal ``i → p - 1 - i``.
    pairs : array_like of int, shape (n, 2), optional
        Training set, which relabelings must map onto itself.

    Returns
    -------
    Symmetry

    Raises
    ------
    InputError
        If `pairs` is not a training set, the problem has more than 2^20 relabelings, or its modulus is not
        the number of tokens.
    """
    operation = Operation(group=theory) if isinstance(theory, FiniteGroup) else theory
    operation = getattr(operation, "operation", operation)
    if not isinstance(operation, Operation):
        raise InputError(
            f"theory must be an Operation, EffectiveTheory or group, got {type(theory).__name__}"
        )
    p = operation.tokens
    if operation.group is not None:
        found = _group_maps(operation.group)
    elif operation.modulus == p:
        found = affine_maps(p)
    elif operation.modulus is None or operation.modulus >= 2 * p - 1:
        found = Symmetry("reversal", np.array([np.arange(p), np.arange(p)[::-1]]))
    else:
        raise InputError(
            f"theory must add modulo its {p} tokens, or not modulo, for its relabelings, got "
            f"{operation.modulus}"
        )
    return found if pairs is None else _stabiliser(found, operation, pairs)


def automorphisms(group: Any) -> Permutations:
    """Return all automorphisms of a finite group.

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
    """
    group = as_group(group)
    orders = _orders(group)
    generators = _generators(group)
    images = [np.flatnonzero(orders == orders[g]) for g in generators]
    candidates = int(np.prod([len(image) for image in images], dtype=object))
    if candidates > LARGEST:
        raise InputError(
            f"group must leave at most {LARGEST} images of its generators to try, got {candidates}"
        )
    found = [_extended(group, generators, choice) for choice in product(*images)]
    return np.array([one for one in found if one is not None], np.int64)


def procrustes_disparity(
    first: Any, second: Any, symmetry: Symmetry | None = None
) -> tuple[Array, NDArray[np.int64]]:
    """Return the Procrustes disparities of all pairs of shapes, minimized over relabelings of the tokens.

    Parameters
    ----------
    first : array_like, shape (m, N, D)
    second : array_like, shape (n, N, D')
        Shapes of the second ensemble. The smaller of the two dimensions is padded with zeros.
    symmetry : Symmetry, optional
        Relabelings to try; by default ``affine_maps(N)``, those of addition mod N.

    Returns
    -------
    disparity : ndarray of float64, shape (m, n)
        As `scipy.spatial.procrustes` defines it, of the best relabeling.
    relabelling : ndarray of int64, shape (m, n)
        Number g of the best relabeling: token i of the second shape corresponds to token ``permutations[g,
        i]`` of the first.

    Raises
    ------
    InputError
        If shapes do not agree, or the tokens of one coincide.

    Notes
    -----
    The overlaps ``Σ_i a[u i + c] b[i]`` for all c are a circular correlation, which is a product in Fourier
    space. The best rotation attains the sum of the singular values of an overlap. In the plane these have a
    closed form.
    """
    a, b = standard_pair(first, second)
    symmetry = affine_maps(a.shape[-2]) if symmetry is None else _fits(symmetry, a.shape[-2])
    disparity = np.empty((len(a), len(b)))
    relabelling = np.empty((len(a), len(b)), np.int64)
    rows = max(BLOCK // (len(b) * symmetry.tokens * a.shape[-1] ** 2), 1)
    for start in range(0, len(a), rows):
        part = slice(start, start + rows)
        disparity[part], relabelling[part] = best_relabelling(a[part, None, None], b[:, None], symmetry)
    return disparity, relabelling


def best_relabelling(a: Array, b: Array, symmetry: Symmetry) -> tuple[Array, NDArray[np.int64]]:
    """Return the one relabeling of all frames (…, frames, N, D) with the smallest mean disparity.

    `a` and `b` are as `standard_pair` returns them and broadcast against each other; frames that are NaN in
    either do not count. Returns that mean (…) and the number of the relabeling (…).
    """
    counts = np.asarray(np.isfinite(a).all(axis=(-2, -1)) & np.isfinite(b).all(axis=(-2, -1)))
    total = np.maximum(counts.sum(axis=-1), 1)[..., None]
    a, b = np.nan_to_num(a), np.nan_to_num(b)
    best: Any = None
    where: Any = None
    for numbers, overlap in _overlaps(a, b, symmetry):
        gain = (np.square(_nuclear(overlap)) * counts[..., None]).sum(axis=-2) / total
        at = gain.argmax(axis=-1)
        value = np.take_along_axis(gain, at[..., None], axis=-1)[..., 0]
        if best is None:
            best, where = value, numbers.start + at
        else:
            # If values are equal up to rounding, the first is taken, so that the identity is preferred.
            better = value > best + 1e-12
            best, where = np.where(better, value, best), np.where(better, numbers.start + at, where)
    return np.clip(1 - best, 0, 1), where


def disparity(a: Array, b: Array) -> Array:
    """Return the Procrustes disparity (…) of standard shapes (…, N, D) without relabeling; NaN stays NaN."""
    sound = np.isfinite(a).all(axis=(-2, -1)) & np.isfinite(b).all(axis=(-2, -1))
    overlap = np.swapaxes(np.nan_to_num(a), -1, -2) @ np.nan_to_num(b)
    return np.where(sound, np.clip(1 - _nuclear(overlap) ** 2, 0, 1), np.nan)


def aligned(shape: Any, target: Any, permutation: Any = None) -> Array:
    """Align `shape` (N, D) with `target` (N, D) by scaling, rotation, reflection and a permutation (N,).

    Both have the same dimension; the result has the place and the size of `target`.
    """
    a, b = point_sets("shape", shape), point_sets("target", target)
    a = a if permutation is None else a[np.asarray(permutation)]
    a, centre = a - a.mean(axis=0), b.mean(axis=0)
    rotation, size = orthogonal_procrustes(a, b - centre)
    return np.asarray(a @ rotation * (size / (a**2).sum()) + centre)


def standard_pair(first: Any, second: Any) -> tuple[Array, Array]:
    """Return shapes (…, N, D) centered, of unit norm, and padded with zeros to the same dimension."""
    names = ("first", "second")
    a, b = (point_sets(name, array) for name, array in zip(names, (first, second), strict=True))
    if a.shape[-2] != b.shape[-2]:
        raise InputError(
            f"first and second must have the same number of tokens, got {a.shape[-2]} and {b.shape[-2]}"
        )
    dim = max(a.shape[-1], b.shape[-1])
    flat = [
        name for name, array in zip(names, (a, b), strict=True) if not np.ptp(array, axis=-2).any(-1).all()
    ]
    if flat:
        raise InputError(f"{flat[0]} must not hold a shape whose tokens all coincide")
    return standard(a, dim), standard(b, dim)


def standard(shapes: Array, dim: int) -> Array:
    """Center, scale to unit Frobenius norm, and pad with zeros to `dim` axes; NaN if all tokens coincide."""
    array = shapes - shapes.mean(axis=-2, keepdims=True)
    norm = np.sqrt(np.sum(array**2, axis=(-2, -1), keepdims=True))
    array = array / np.where(norm > 0, norm, np.nan)
    return np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, dim - array.shape[-1])])


def _overlaps(a: Array, b: Array, symmetry: Symmetry) -> Iterator[tuple[slice, Array]]:
    """Yield (numbers of relabelings, their overlaps (…, n, D, D)) of shapes (…, N, D)."""
    p, size = symmetry.tokens, len(symmetry)
    if symmetry.affine:
        f = np.arange(p // 2 + 1)
        A, B = np.fft.rfft(a, axis=-2), np.fft.fft(b, axis=-2)
        for start in range(0, size, p):
            unit = (symmetry.permutations[start, 1 % p] - symmetry.permutations[start, 0]) % p
            spectrum = A[..., :, None] * B[..., unit * f % p, None, :].conj()
            yield slice(start, start + p), np.fft.irfft(spectrum, p, axis=-3)
        return
    each = int(np.prod(np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), dtype=np.int64)) * p * a.shape[-1]
    step = max(BLOCK // max(each, 1), 1)
    for start in range(0, size, step):
        numbers = slice(start, min(start + step, size))
        moved = a[..., symmetry.permutations[numbers], :]
        yield numbers, np.swapaxes(moved, -1, -2) @ b[..., None, :, :]


def _nuclear(overlap: Array) -> Array:
    """Return the sum of the singular values of matrices (…, D, D)."""
    dim = overlap.shape[-1]
    if dim == 1:
        return np.abs(overlap[..., 0, 0])
    if dim == 2:
        determinant = overlap[..., 0, 0] * overlap[..., 1, 1] - overlap[..., 0, 1] * overlap[..., 1, 0]
        return np.sqrt(np.square(overlap).sum(axis=(-2, -1)) + 2 * np.abs(determinant))
    return np.asarray(np.linalg.svd(overlap, compute_uv=False).sum(axis=-1))


def _fits(symmetry: Symmetry, tokens: int) -> Symmetry:
    if symmetry.tokens != tokens:
        raise InputError(f"symmetry must be one of {tokens} tokens, got one of {symmetry.tokens}")
    return symmetry


def _stabiliser(symmetry: Symmetry, operation: Operation, pairs: Any) -> Symmetry:
    mask = operation.mask(pairs)
    if mask.all():
        return symmetry
    place = np.zeros((operation.tokens, operation.tokens), bool)
    i, j = operation.samples[mask].T
    place[i, j] = True
    if operation.commutes:
        place |= place.T
    kept = [bool(place[g[i], g[j]].all()) for g in symmetry.permutations]
    return Symmetry(f"{symmetry.name} within the training set", symmetry.permutations[kept])


def _group_maps(group: FiniteGroup) -> Symmetry:
    p, elements = group.order, np.arange(group.order)
    if group.commutes and np.array_equal(group.table, (elements[:, None] + elements) % p):
        return affine_maps(p)
    centre = np.flatnonzero((group.table == group.table.T).all(axis=1))
    maps = automorphisms(group)
    if len(maps) * len(centre) > LARGEST:
        raise InputError(
            f"group must have at most {LARGEST} relabelings, got {len(maps)} automorphisms times "
            f"{len(centre)} elements of the center"
        )
    moved = group.table[centre[None, :, None], maps[:, None, :]].reshape(-1, p)
    first = np.lexsort(np.append(moved.T[::-1], [~(moved == elements).all(axis=1)], axis=0))
    return Symmetry(f"automorphisms of {group.name} and its centre", moved[first])


def _orders(group: FiniteGroup) -> NDArray[np.int64]:
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


def _extended(group: FiniteGroup, generators: list[int], images: tuple[Any, ...]) -> Permutations | None:
    """Extend the images of generators to an automorphism; return None if there is none."""
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
