"""Distances between shapes that ignore rotation, reflection, scaling, and the labels of the tokens."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import orthogonal_procrustes

from analysis.comparison.relabelling import Symmetry, affine_maps
from analysis.scaling import scaled
from physics.checks import point_sets
from physics.errors import InputError

Array = NDArray[np.float64]
BLOCK = 2**23
"""Largest number of values in a block of overlaps."""


def procrustes_disparity(
    first: Any, second: Any, symmetry: Symmetry | None = None
) -> tuple[Array, NDArray[np.int64]]:
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
    symmetry = affine_maps(a.shape[-2]) if symmetry is None else _fits(symmetry, a.shape[-2])
    disparity = np.empty((len(a), len(b)))
    relabelling = np.empty((len(a), len(b)), np.int64)
    rows = max(BLOCK // (max(len(b), 1) * symmetry.tokens * a.shape[-1] ** 2), 1)
    for start in range(0, len(a), rows):
        part = slice(start, start + rows)
        disparity[part], relabelling[part] = best_relabelling(a[part, None, None], b[:, None], symmetry)
    return disparity, relabelling


def best_relabelling(a: Array, b: Array, symmetry: Symmetry) -> tuple[Array, NDArray[np.int64]]:
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
    best: Any = None
    where: Any = None
    for numbers, gain in _gains(a, b, symmetry):
        at = gain.argmax(axis=-1)
        value = np.take_along_axis(gain, at[..., None], axis=-1)[..., 0]
        if best is None:
            best, where = value, numbers.start + at
        else:
            # If values are equal up to rounding, the first is taken, so that the identity is preferred.
            better = value > best + 1e-12
            best, where = np.where(better, value, best), np.where(better, numbers.start + at, where)
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
    names = ("first", "second")
    a, b = (point_sets(name, array, ndim=3) for name, array in zip(names, (first, second), strict=True))
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
    each = int(np.prod(np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), dtype=np.int64)) * p * a.shape[-1]
    step = max(BLOCK // max(each, 1), 1)
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


def _fits(symmetry: Symmetry, tokens: int) -> Symmetry:
    """Return a symmetry if it has the right number of tokens, or refuse it."""
    if symmetry.tokens != tokens:
        raise InputError(f"symmetry must be one of {tokens} tokens, got one of {symmetry.tokens}")
    return symmetry
