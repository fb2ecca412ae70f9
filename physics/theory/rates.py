"""The quadratic form of the effective loss, and the grokking rates of many training sets at once."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from physics.blas import one_blas_thread
from physics.checks import finite_array, number
from physics.errors import InputError
from physics.theory import flow_kernels as kernels
from physics.theory.closure import nullities
from physics.theory.operations import Mask, Operation, operation_of

Array = NDArray[np.float64]
BATCH_BYTES = 2**26
"""Memory, in bytes, for the quadratic forms whose eigenvalues are computed at a time."""


@one_blas_thread
def grokking_rates(theory: Any, masks: Any) -> Array:
    """Return the grokking rates λ_3 of many training sets (Liu, Figure 5 a).

    The grokking rate is the third smallest eigenvalue of the Hessian of the effective loss. Its inverse is
    the time in which the representation of plain addition forms; see `EffectiveTheory.grokking_rate`.

    Parameters
    ----------
    theory : EffectiveTheory or Operation
        Operation that is learned, which must commute. The training set of a theory is ignored.
    masks : array_like of bool, shape (sets, samples)
        Training sets as masks over all samples of the operation, such as `random_training_sets` returns.

    Returns
    -------
    ndarray of float64, shape (sets,)
        Rates per unit of time, for embeddings of unit variance in one dimension. A rate is exactly 0 where
        the training set leaves more than two degrees of freedom, or there are only two tokens.

    Raises
    ------
    InputError
        If the operation does not commute, `masks` are not bool of this shape or mark no sample in a set, or
        `theory` is something else.

    Examples
    --------
    >>> import physics
    >>> theory = physics.EffectiveTheory(10)
    >>> rates = physics.grokking_rates(theory, physics.random_training_sets(theory, size=45, sets=20))
    >>> rates.shape, bool((rates >= 0).all())
    ((20,), True)
    """
    operation = operation_of(theory)
    marked = operation.masks(masks)
    if not operation.commutes:
        raise InputError(
            "theory must be of an operation that commutes to have a grokking rate, got the group "
            f"{operation.name}"
        )
    rates = np.zeros(len(marked))
    moving = (
        np.flatnonzero(nullities(operation, marked) < 3) if operation.tokens > 2 else np.empty(0, np.int64)
    )
    block = max(BATCH_BYTES // (8 * operation.tokens**2), 1)
    for begin in range(0, len(moving), block):
        chosen = moving[begin : begin + block]
        rates[chosen] = 2 / operation.tokens * np.linalg.eigvalsh(_forms(operation, marked[chosen]))[:, 2]
    return rates


def grokking_steps(self: Any, step_size: float = 1e-3) -> float:
    """Return n_h = 1/(λ_3 η), the number of steps in which the mode of the grokking rate λ_3 decays by e.

    Parameters
    ----------
    step_size : float, default 1e-3
        Learning rate η of the embedding, greater than 0.

    Returns
    -------
    float
        Number of steps; infinite if λ_3 = 0.

    Raises
    ------
    InputError
        If `step_size` is not greater than 0, or the group does not commute.

    Examples
    --------
    >>> import physics
    >>> round(physics.EffectiveTheory(10).grokking_steps(step_size=0.01))
    1167
    """
    step_size = number("step_size", step_size, above=0.0)
    return 1 / (self.grokking_rate * step_size) if self.grokking_rate else math.inf


def quadratic_form(operation: Operation, mask: Mask) -> Array:
    """Return the matrix Q of the loss ℓ_0 = tr(EᵀQE) of one training set, float64 (tokens, tokens).

    `mask` (samples,) marks the training set among the samples of `operation`. Q is zero if there is no
    parallelogram. The result has the bits of `_forms`, but needs no kernel and so no time for compilation.
    """
    (i, j), label = operation.samples[mask].T, operation.label[mask]
    sizes = np.bincount(label).astype(np.float64)
    u, Q = np.zeros((len(sizes), operation.tokens)), np.zeros((operation.tokens, operation.tokens))
    for end in (i, j):
        np.add.at(u, (label, end), 1.0)
        for other in (i, j):
            np.add.at(Q, (end, other), sizes[label])
    Q -= u.T @ u  # for a class of one sample, both terms cancel
    return np.asarray(Q / max((sizes * (sizes - 1)).sum() / 2, 1.0))


def _forms(operation: Operation, masks: Mask) -> Array:
    """Return Q of each training set, (sets, tokens, tokens); it is zero where there is no parallelogram."""
    Q = np.empty((len(masks), operation.tokens, operation.tokens))
    count = np.empty(len(masks), np.int64)
    kernels.quadratic_forms(masks, operation.samples, *operation.by_class, Q, count)
    return np.asarray(Q / np.maximum(count, 1)[:, None, None])


def sorted_samples(operation: Operation, mask: Mask) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the training samples of `mask` sorted by class, (n, 2), and where each class starts."""
    members, starts = operation.by_class
    trained = mask[members]
    counts = np.append(0, np.cumsum(trained))
    return operation.samples[members[trained]], counts[starts].astype(np.int32)


def checked_states(name: str, E: Any, tokens: int) -> tuple[Array, tuple[int, ...]]:
    """Return embeddings (..., tokens, dim) as (runs, tokens, dim), with their shape.

    An `InputError` refuses those that are not finite or are zero.
    """
    array = finite_array(name, E)
    if array.ndim < 2 or array.shape[-2] != tokens or array.shape[-1] < 1:
        raise InputError(f"{name} must have the shape (..., {tokens}, dim), got {array.shape}")
    states = array.reshape(-1, *array.shape[-2:])
    require_nonzero(name, states)
    return states, array.shape


def require_nonzero(name: str, states: Array) -> None:
    """Refuse states (runs, tokens, dim) of which one is zero everywhere."""
    if not states.any(axis=(1, 2)).all():
        raise InputError(f"{name} must not be zero everywhere, where the effective loss is undefined")


def checked_times(times: Any) -> Array:
    """Return finite times of at least 0 as float64 (n,)."""
    clock = finite_array("times", times)
    if clock.ndim != 1:
        raise InputError(f"times must have the shape (n,), got {clock.shape}")
    if (clock < 0).any():
        raise InputError(f"times must be at least 0, got {clock.min():g}")
    return clock


def require_sums(operation: Operation, parallelograms: int | None) -> None:
    """Refuse an operation that does not commute, and a training set without `parallelograms` if given."""
    if not operation.commutes:
        name = operation.name
        raise InputError(f"group must commute, because embeddings of a pair are added, got {name}")
    if parallelograms == 0:
        raise InputError(
            "pairs must permit at least 1 parallelogram for the effective loss to be defined, got none; "
            "every embedding is a ground state then, and the grokking rate is 0"
        )
