"""Parallelograms of training sets and of embeddings, quality and accuracy (Liu §3, Appendices D, E)."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import prange

from physics.blas import one_blas_thread
from physics.checks import InputError, finite_array, misfit, number, point_sets, regular_array
from physics.jit import kernel
from physics.theory.closure import Closures, closures
from physics.theory.operations import Operation, operation_of
from physics.trajectory import Trajectory
from physics.values import Array, Int32, Integers, Mask, in_range, read_only

if TYPE_CHECKING:
    from physics.theory.system import EffectiveTheory

BLOCK_BYTES = 2**26
"""Memory, in bytes, for the sums of a block of states; states are compared block by block."""


def count_parallelograms(theory: Any, mask: Mask | None = None) -> int:
    """Count the parallelograms P_0(D) that a training set D permits, without making their list (Liu, Eq. 1).

    A parallelogram is a pair of different training samples of the same class. `theory` has an operation and a
    training set; an `Operation` stands for its complete data set. `mask` (samples,) is a training set to use
    instead.
    """
    sizes = np.bincount(operation_of(theory).label[_mask(theory, mask)]).astype(np.int64)
    return int((sizes * (sizes - 1) // 2).sum())


def list_parallelograms(theory: Any, mask: Mask | None = None) -> Int32:
    """List the parallelograms P_0(D) that a training set D permits, int32 (n, 4) (Liu, Eq. 1).

    `theory` and `mask` are as in `count_parallelograms`. Rows (i, j, m, n) stand for samples (i, j) and (m,
    n) of the same class, in lexicographic order, with (i, j) before (m, n). Rows with a repeated symbol, such
    as (0, 2, 1, 1), are included.
    """
    operation = operation_of(theory)
    mask = _mask(theory, mask)
    return _list(operation.samples[mask], operation.label[mask])


def list_implied(theory: "EffectiveTheory") -> Int32:
    """List the parallelograms that the training set of a theory implies, as `list_parallelograms` does.

    Those that the training set permits are among them; see `physics.closures`.
    """
    found = closures(theory, _mask(theory, None)[None], groups=True)
    assert found.groups is not None
    return _list(operation_of(theory).samples, found.groups[0])


def representation_quality(E: Any, theory: Any, delta: float = 0.01) -> Array:
    """Return the representation quality index (RQI) of embeddings (Liu, Eq. 3).

    It is the fraction of all parallelograms of the operation that an embedding has: pairs of samples (i, j)
    and (m, n) of the same class with E_i + E_j = E_m + E_n up to a tolerance. A value near 1 means that the
    embedding has the structure which the operation needs, such as evenly spaced numbers for addition.

    Parameters
    ----------
    E : array_like, shape (..., tokens, dim), or Trajectory
        Embeddings of at least two tokens: one, an ensemble, or a trajectory (runs, frames, tokens, dim). They
        are first scaled to zero mean and unit variance on every axis. If the operation does not commute, E
        has the shape (..., tokens, d, d), with a matrix for each symbol, and is scaled to unit mean square
        over all entries. The axis `dim` of a `Trajectory` then holds the d² entries of each matrix, row by
        row.
    theory : EffectiveTheory or Operation
        Operation that is learned. The training set of a theory is ignored.
    delta : float, default 0.01
        Tolerance, greater than 0. For vectors it bounds the **distance** |E_i + E_j - E_m - E_n| (Definition
        1); for matrices it bounds the **squared** Frobenius norm of E_i E_j - E_m E_n (Appendix H.1). The
        published code for S_3 bounds the mean square by 0.5, which is ``delta=0.5 * d**2``.

    Returns
    -------
    ndarray of float64, shape (...)
        Values from 0 to 1; of the shape (runs, frames) for a trajectory.

    Raises
    ------
    InputError
        If `E` is complex, not finite, of another shape, without variance on an axis (or zero everywhere, for
        matrices), if `delta` is not greater than 0, or if the operation has no parallelogram at all.

    Examples
    --------
    >>> import physics
    >>> addition = physics.Operation(5)
    >>> float(physics.representation_quality([[0.0], [1.0], [2.0], [3.0], [4.0]], addition))
    1.0
    >>> round(float(physics.representation_quality([[0.0], [1.0], [2.0], [3.0], [5.0]], addition)), 2)
    0.43
    """
    operation = _with_parallelograms(theory)
    found, _ = _compare(E, operation, read_only(np.zeros(len(operation.samples), bool)), delta)
    return np.asarray(found / operation.parallelogram_count)


def augmented_training_set(E: Any, theory: "EffectiveTheory", delta: float = 0.01) -> Mask:
    """Mark the samples that a network can answer: training samples, and those that follow by a parallelogram.

    A sample (i, j) follows from a training sample (m, n) of the same class if E_i + E_j = E_m + E_n up to a
    tolerance. Both samples then give the decoder the same input (Liu, Eq. 12).

    Parameters
    ----------
    E : array_like, shape (..., tokens, dim), or Trajectory
        Embeddings, as in `representation_quality`.
    theory : EffectiveTheory
        Operation that is learned, and training set D.
    delta : float, default 0.01
        Tolerance of the parallelograms, as in `representation_quality`.

    Returns
    -------
    ndarray of bool, shape (..., samples)
        True for the samples, in the order of ``theory.operation.samples``, that are trained or follow.

    Raises
    ------
    InputError
        If `E` is complex, not finite, of another shape or without variance on an axis, or `delta` is not
        greater than 0.

    Examples
    --------
    >>> import physics
    >>> theory = physics.EffectiveTheory(3, pairs=[[0, 2]])
    >>> marked = physics.theory.augmented_training_set([[0.0], [1.0], [2.0]], theory)
    >>> theory.operation.samples[marked].tolist()
    [[0, 2], [1, 1]]
    """
    return _compare(E, operation_of(theory), _mask(theory, None), delta)[1]


def predicted_accuracy(E: Any, theory: "EffectiveTheory", delta: float = 0.01) -> Array:
    """Return the accuracy that an embedding allows on all samples, Acc-hat (Liu, Eq. 13).

    It predicts the accuracy of a network from its embedding alone. A network with this embedding that
    answers its training set also answers the other samples of `augmented_training_set`, because its decoder
    receives the same inputs.

    Parameters
    ----------
    E : array_like, shape (..., tokens, dim), or Trajectory
        Embeddings, as in `representation_quality`.
    theory : EffectiveTheory
        Operation that is learned, and training set.
    delta : float, default 0.01
        Tolerance of the parallelograms, as in `representation_quality`.

    Returns
    -------
    ndarray of float64, shape (...)
        Fraction of all samples, from 0 to 1, that are in the training set or follow from it by a
        parallelogram.

    Raises
    ------
    InputError
        If `E` is complex, not finite, of another shape or without variance on an axis, or `delta` is not
        greater than 0.

    Examples
    --------
    >>> import physics
    >>> theory = physics.EffectiveTheory(3, pairs=[[0, 1], [0, 2], [1, 2]])
    >>> round(float(physics.predicted_accuracy([[0.0], [1.0], [2.0]], theory)), 3)  # 4 of 6 samples
    0.667
    """
    return np.asarray(augmented_training_set(E, theory, delta).mean(axis=-1))


def ideal_accuracy(theory: "EffectiveTheory") -> float:
    """Return the accuracy Acc-bar of an ideal model (Liu, Eq. 17).

    The embedding of an ideal model has all parallelograms that its training set implies, and no others. An
    embedding that has others too, for example by chance, can exceed this accuracy.

    Parameters
    ----------
    theory : EffectiveTheory
        Operation that is learned, and training set.

    Returns
    -------
    float
        Fraction of all samples, from 0 to 1, that the training set implies.

    Raises
    ------
    InputError
        If `theory` is not an `EffectiveTheory` or an `Operation`.

    Examples
    --------
    >>> import physics
    >>> physics.ideal_accuracy(physics.EffectiveTheory(4, pairs=[[0, 2], [1, 1], [0, 3], [1, 2], [1, 3]]))
    0.6
    """
    return float(_closure(theory).accuracy[0])


def ideal_quality(theory: "EffectiveTheory") -> float:
    """Return the representation quality RQI-bar of an ideal model (Liu, Eq. 16).

    The embedding of an ideal model has all parallelograms that its training set implies, and no others. An
    embedding that has others too, for example by chance, can exceed this quality.

    Parameters
    ----------
    theory : EffectiveTheory
        Operation that is learned, and training set.

    Returns
    -------
    float
        Fraction of all parallelograms, from 0 to 1, that the training set implies.

    Raises
    ------
    InputError
        If `theory` is not an `EffectiveTheory` or an `Operation`, or its operation has no parallelogram at
        all, such as plain addition of two symbols.

    Examples
    --------
    >>> import physics
    >>> physics.theory.ideal_quality(physics.EffectiveTheory(4, pairs=[[0, 2], [1, 1], [0, 3], [1, 2]]))
    1.0
    """
    _with_parallelograms(theory)
    return float(_closure(theory).quality[0])


def _with_parallelograms(theory: Any) -> Operation:
    operation = operation_of(theory)
    if not operation.parallelogram_count:
        raise InputError(f"theory must have a parallelogram to have a quality, got {operation.name}")
    return operation


def _closure(theory: Any) -> Closures:
    found: Closures | None = getattr(theory, "closure", None)
    return closures(theory, _mask(theory, None)[None]) if found is None else found


def _mask(theory: Any, mask: Mask | None) -> Mask:
    operation = operation_of(theory)
    if mask is None:
        return operation.mask(None) if theory is operation else theory.mask
    return operation.masks(regular_array("mask", mask)[None])[0]


def _list(samples: Int32, label: Int32) -> Int32:
    """List the pairs of `samples` (n, 2) with the same `label` (n,), as rows of four symbols, int32."""
    members = np.argsort(label, kind="stable")
    classes = np.split(members, np.cumsum(np.bincount(label))[:-1])
    pairs = np.concatenate([one[np.stack(np.triu_indices(one.size, 1), axis=1)] for one in classes])
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    return np.ascontiguousarray(samples[pairs].reshape(-1, 4))


def _compare(E: Any, operation: Operation, mask: Mask, delta: float) -> tuple[Integers, Mask]:
    """Count the parallelograms of each state (...), and mark its augmented training set (..., samples)."""
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
        sums, here = np.ascontiguousarray(sums).reshape(len(part), len(mask), -1), slice(start, start + block)
        near_sums(sums, members, starts, mask, bound, found[here], augmented[here])
    return found.reshape(batch), augmented.reshape(*batch, len(mask))


def _normalised(E: Any, operation: Operation) -> tuple[Array, tuple[int, ...]]:
    """Scale states as the paper does; return them as (n, tokens, …), and the leading axes of the input."""
    matrices, recorded = not operation.commutes, isinstance(E, Trajectory)
    raw = E.positions if isinstance(E, Trajectory) else E
    array = finite_array("E", raw) if matrices else point_sets("E", raw, minimum_tokens=2)
    if matrices:
        side = math.isqrt(array.shape[-1]) if recorded else array.shape[-1]
        shape = (*array.shape[:-1], side, side) if recorded else array.shape
        if not array.size or array.size != math.prod(shape) or len(shape) < 3 or shape[-2] != side:
            need = "(..., tokens, d, d), or d² dimensions of a trajectory"
            raise misfit("E", array, f"hold a square matrix for each symbol of {operation.name}: {need}")
        array = array.reshape(shape)
    tail, axes = (3, (1, 2, 3)) if matrices else (2, 1)
    if array.shape[-tail] != operation.tokens:
        got = array.shape[-tail]
        raise InputError(f"E must hold {operation.tokens} tokens for {operation.name}, got {got}")
    batch = array.shape[:-tail]
    states = in_range(array.reshape(-1, *array.shape[-tail:]), axes)
    spread = np.abs(states).max(axis=axes) if matrices else np.ptp(states, axis=1)
    for state, axis in np.argwhere(spread.reshape(len(states), -1) == 0)[:1]:
        what = "only zeros" if matrices else f"zero variance on axis {axis}"
        at = tuple(map(int, np.unravel_index(state, batch))) if batch else ()
        need = "not be zero everywhere" if matrices else "vary on every axis to be scaled to unit variance"
        raise InputError(f"E must {need}, got {what}{f' in state {at}' if at else ''}")
    if not matrices:
        states = states - states.mean(axis=1, keepdims=True)
    return states / np.sqrt(np.mean(states**2, axis=axes, keepdims=True)), batch


@kernel(parallel=True)
def near_sums(
    sums: Array, members: Int32, starts: Int32, mask: Mask, bound: float, counts: Integers, augmented: Mask
) -> None:
    """Find the parallelograms of each state.

    `sums` (states, samples, components) are the sums or products of the samples, sorted by class: `members`
    (samples,) are the numbers of the samples in this order, and class c begins at ``starts[c]``. Two samples
    of a class whose squared distance is at most `bound` are a parallelogram. Their number is written to
    `counts` (states,). The samples that `mask` (samples,) marks as trained, and those that form a
    parallelogram with a trained one, are marked in `augmented` (states, samples). Both are in the original
    order of the samples.
    """
    _, count, components = sums.shape
    for s in prange(len(sums)):
        for a in range(count):
            augmented[s, a] = mask[a]
        total = 0
        for c in range(starts.size - 1):
            for k in range(starts[c], starts[c + 1]):
                trained = mask[members[k]]
                for later in range(k + 1, starts[c + 1]):
                    distance_squared = 0.0
                    for d in range(components):
                        difference = sums[s, k, d] - sums[s, later, d]
                        distance_squared += difference * difference
                    if distance_squared <= bound:
                        total += 1
                        if trained:
                            augmented[s, members[later]] = True
                        elif mask[members[later]]:
                            augmented[s, members[k]] = True
        counts[s] = total
