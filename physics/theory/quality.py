"""Parallelograms of training sets and of embeddings, quality and accuracy (Liu §3, Appendices D, E)."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from physics.blas import one_blas_thread
from physics.checks import finite_array, number, point_sets
from physics.errors import InputError
from physics.lazy import LazyModule
from physics.theory.closure import Closures, closures
from physics.theory.operations import Mask, Operation, operation_of
from physics.trajectory import Trajectory
from physics.values import read_only

if TYPE_CHECKING:
    from physics.theory import parallelogram_kernels as kernels
    from physics.theory.system import EffectiveTheory
else:
    kernels = LazyModule("physics.theory.parallelogram_kernels")

BLOCK_BYTES = 2**26
"""Memory that the sums of a block of states may take; states are compared block by block."""


def count_parallelograms(theory: Any, mask: Mask | None = None) -> int:
    """Count the permissible parallelograms |P_0(D)| without making their list.

    Parameters
    ----------
    theory : EffectiveTheory or Operation
        An operation stands for its complete data set, so that the count is |P_0|.
    mask : ndarray of bool, shape (|D_0|,), optional
        Count those of this training set instead.

    Returns
    -------
    int
        Pairs of distinct training samples of the same class, each counted once (Eq. 1).
    """
    sizes = np.bincount(_label(theory, mask)).astype(np.int64)
    return int((sizes * (sizes - 1) // 2).sum())


def list_parallelograms(theory: Any, mask: Mask | None = None) -> NDArray[np.int32]:
    """List the permissible parallelograms P_0(D) (Eq. 1).

    Parameters
    ----------
    theory, mask
        As in `count_parallelograms`.

    Returns
    -------
    ndarray of int32, shape (|P_0(D)|, 4)
        Rows (i, j, m, n) with i∘j = m∘n, in lexicographic order, the sample (i, j) before (m, n); those with
        a repeated symbol, such as (0, 2, 1, 1), included.
    """
    operation = operation_of(theory)
    mask = _mask(theory, mask)
    return _list(operation.samples[mask], operation.label[mask])


def list_implied(theory: "EffectiveTheory") -> NDArray[np.int32]:
    """List the implied parallelograms P(D), (|P(D)|, 4); see `closures` for which closure that is."""
    found = closures(theory, _mask(theory, None)[None], groups=True)
    assert found.groups is not None
    return _list(operation_of(theory).samples, found.groups[0])


def representation_quality(E: Any, theory: Any, delta: float = 0.01) -> NDArray[np.float64]:
    """Return the representation quality index: the fraction of possible parallelograms that an embedding has.

    Parameters
    ----------
    E : array_like, shape (..., tokens, dim), or Trajectory
        Embeddings: one state, an ensemble, or a trajectory (runs, frames, tokens, dim). They are scaled to
        zero mean and unit variance on every axis. If the operation does not commute, E has the shape (...,
        tokens, d, d), with a matrix for each symbol, and is scaled to unit mean square over all entries. The
        axis `dim` of a `Trajectory` then holds the d² entries of each matrix, row by row.
    theory : EffectiveTheory or Operation
        Operation. The training set of a theory is ignored.
    delta : float, default 0.01
        Tolerance, greater than 0. For vectors it bounds the **distance** |E_i + E_j - E_m - E_n| (Definition
        1); for matrices the **squared** Frobenius norm of E_i E_j - E_m E_n (Appendix H.1). The published
        code for S_3 bounds the mean square by 0.5; that is ``delta=0.5 * d**2``.

    Returns
    -------
    ndarray of float64, shape (...)
        Values between 0 and 1, of shape (runs, frames) for a trajectory.

    Raises
    ------
    InputError
        If `E` is complex, not finite, of another shape or without variance on an axis, `delta` is not greater
        than 0, or the operation has no parallelogram at all.
    """
    operation = operation_of(theory)
    if not operation.parallelogram_count:
        raise InputError(
            f"theory must have a parallelogram for its quality to be defined, got {operation.name}"
        )
    found, _ = _compare(E, operation, read_only(np.zeros(len(operation.samples), bool)), delta)
    return np.asarray(found / operation.parallelogram_count)


def augmented_training_set(E: Any, theory: "EffectiveTheory", delta: float = 0.01) -> Mask:
    """Mark the training samples, and those that form a parallelogram of `E` with one of them (Eq. 12).

    Parameters
    ----------
    E, delta
        Embedding and tolerance, as in `representation_quality`.
    theory : EffectiveTheory
        Theory with the operation and the training set D.

    Returns
    -------
    ndarray of bool, shape (..., |D_0|)
        D-bar(D, P(R)), in the order of ``theory.operation.samples``.

    Raises
    ------
    InputError
        As in `representation_quality`.
    """
    return _compare(E, operation_of(theory), _mask(theory, None), delta)[1]


def predicted_accuracy(E: Any, theory: "EffectiveTheory", delta: float = 0.01) -> NDArray[np.float64]:
    """Return the accuracy that an embedding allows on the complete data set, Acc-hat (Eq. 13).

    Parameters
    ----------
    E : array_like
        Embeddings, as in `representation_quality`.
    theory : EffectiveTheory
        Operation and training set.
    delta : float, default 0.01
        Tolerance of the parallelograms, as in `representation_quality`.

    Returns
    -------
    ndarray of float64, shape (...)
        Fraction, from 0 to 1, of the samples that are trained or follow from trained ones by a parallelogram.

    Raises
    ------
    InputError
        As in `representation_quality`.
    """
    return np.asarray(augmented_training_set(E, theory, delta).mean(axis=-1))


def ideal_accuracy(theory: "EffectiveTheory") -> float:
    """Return the accuracy of an ideal model, Acc-bar (Eq. 17), an upper bound of the predicted accuracy.

    Parameters
    ----------
    theory : EffectiveTheory
        Operation and training set.

    Returns
    -------
    float
        Fraction, from 0 to 1, of all samples that the training set implies.
    """
    return float(_closure(theory).accuracy[0])


def ideal_quality(theory: "EffectiveTheory") -> float:
    """Return the representation quality of an ideal model, RQI-bar, which is an upper bound of RQI.

    Parameters
    ----------
    theory : EffectiveTheory
        Operation and training set.

    Returns
    -------
    float
        Fraction, from 0 to 1, of all parallelograms that the training set implies.

    Raises
    ------
    InputError
        If the operation has no parallelogram at all, such as plain addition of two symbols.

    References
    ----------
    Eq. 16 of Liu et al. 2022.
    """
    operation = operation_of(theory)
    if not operation.parallelogram_count:
        raise InputError(
            f"theory must have a parallelogram for its quality to be defined, got {operation.name}"
        )
    return float(_closure(theory).quality[0])


def _closure(theory: Any) -> Closures:
    found: Closures | None = getattr(theory, "closure", None)
    return closures(theory, _mask(theory, None)[None]) if found is None else found


def _mask(theory: Any, mask: Mask | None) -> Mask:
    operation = operation_of(theory)
    if mask is None:
        return operation.mask(None) if theory is operation else theory.mask
    return operation.masks(np.asarray(mask)[None])[0]


def _label(theory: Any, mask: Mask | None) -> NDArray[np.int32]:
    return operation_of(theory).label[_mask(theory, mask)]


def _list(samples: NDArray[np.int32], label: NDArray[np.int32]) -> NDArray[np.int32]:
    """Pairs of `samples` with the same `label`: counted in a first pass, filled in by a second."""
    members = np.argsort(label, kind="stable").astype(np.int32)
    ordered = label[members]
    place = np.empty(len(label), np.int32)
    place[members] = np.arange(len(label))
    ends = np.empty(len(label), np.int32)
    ends[members] = np.searchsorted(ordered, ordered, side="right")
    offsets = np.append(0, np.cumsum(ends.astype(np.int64) - place - 1))
    out = np.empty((offsets[-1], 4), np.int32)
    kernels.fill(read_only(samples), members, place, ends, offsets[:-1], out)
    return out


def _compare(E: Any, operation: Operation, mask: Mask, delta: float) -> tuple[NDArray[np.int64], Mask]:
    """Count parallelograms of each state (...), and mark its augmented training set (..., samples)."""
    delta = number("delta", delta, above=0.0)
    states, batch = _normalised(E, operation)
    members, starts = operation.by_class
    first, second = operation.samples[members].T
    found = np.empty(len(states), np.int64)
    augmented = np.empty((len(states), len(mask)), bool)
    components = int(np.prod(states.shape[2:]))
    block = max(BLOCK_BYTES // (8 * len(mask) * components), 1)
    for start in range(0, len(states), block):
        part = states[start : start + block]
        if operation.commutes:
            sums, bound = part[:, first] + part[:, second], delta**2
        else:
            with one_blas_thread:
                sums, bound = part[:, first] @ part[:, second], delta
        kernels.near_sums(
            np.ascontiguousarray(sums).reshape(len(part), len(mask), -1),
            members,
            starts,
            mask,
            bound,
            found[start : start + block],
            augmented[start : start + block],
        )
    return found.reshape(batch), augmented.reshape(*batch, len(mask))


def _normalised(E: Any, operation: Operation) -> tuple[NDArray[np.float64], tuple[int, ...]]:
    """Scale states as the paper does; return them as (n, tokens, …), with the leading axes of the input."""
    matrices = not operation.commutes
    raw = E.positions if isinstance(E, Trajectory) else E
    if matrices and isinstance(E, Trajectory):
        side = math.isqrt(E.dim)
        if side * side != E.dim:
            raise InputError(
                f"each row of E must hold a square matrix, so its length must be a square number; got {E.dim}"
            )
        raw = raw.reshape(*raw.shape[:-1], side, side)
    array = finite_array("E", raw) if matrices else point_sets("E", raw, minimum_tokens=2)
    tail = 3 if matrices else 2
    if matrices and (array.ndim < 3 or array.shape[-1] != array.shape[-2] or not array.size):
        raise InputError(
            f"E must hold a square matrix for each symbol of {operation.name}, in the shape "
            f"(..., tokens, d, d), got {array.shape}"
        )
    if array.shape[-tail] != operation.tokens:
        raise InputError(
            f"E must hold {operation.tokens} tokens for {operation.name}, got {array.shape[-tail]}"
        )
    batch = array.shape[:-tail]
    states = array.reshape(-1, *array.shape[-tail:])
    if matrices:
        scale = np.sqrt(np.mean(states**2, axis=(1, 2, 3), keepdims=True))
        if not scale.all():
            at = np.unravel_index(int(np.argmin(scale)), batch) if batch else ()
            raise InputError(f"E must not be zero everywhere{_where(at)}")
        return states / scale, batch
    flat = np.argwhere(np.ptp(states, axis=1) == 0)
    if len(flat):
        at = np.unravel_index(flat[0, 0], batch) if batch else ()
        raise InputError(
            f"E must vary on every axis to be scaled to unit variance, got zero variance on axis {flat[0, 1]}"
            f"{_where(at)}"
        )
    states = states - states.mean(axis=1, keepdims=True)
    return states / np.sqrt(np.mean(states**2, axis=1, keepdims=True)), batch


def _where(at: tuple[Any, ...]) -> str:
    return f" of state {tuple(int(k) for k in at)}" if at else ""
