"""The system `EffectiveTheory` (Liu §3, Appendices E, F), and the quality of representations (Appendix D)."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numba import prange

from physics.blas import one_blas_thread
from physics.checks import InputError, finite_array, misfit, number, point_sets, whole_number
from physics.jit import kernel
from physics.theory.closure import Closures, closures, least_nullity, nullities
from physics.theory.operations import Operation, operation_of, pairs_within
from physics.trajectory import Trajectory
from physics.values import Array, Int32, Integers, Mask, Value, in_range, powers_of_two, read_only

BLOCK_BYTES = 2**26
"""Memory, in bytes, for the sums of a block of states; states are compared block by block."""


def list_parallelograms(samples: Int32, label: Int32) -> Int32:
    """List the pairs of `samples` (n, 2) with the same `label` (n,), as rows of four symbols, int32.

    Rows (i, j, m, n) stand for samples (i, j) and (m, n), in lexicographic order, with (i, j) before (m, n).
    Rows with a repeated symbol, such as (0, 2, 1, 1), are included.
    """
    members = np.argsort(label, kind="stable")
    classes = np.split(members, np.cumsum(np.bincount(label))[:-1])
    pairs = np.concatenate([one[np.stack(np.triu_indices(one.size, 1), axis=1)] for one in classes])
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    return np.ascontiguousarray(samples[pairs].reshape(-1, 4))


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
    operation = operation_of(theory)
    mask = operation.mask(None) if theory is operation else theory.mask
    return _compare(E, operation, mask, delta)[1]


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
    operation = operation_of(theory)
    return closures(operation, operation.mask(None)[None]) if theory is operation else theory.closure


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
            sums, bound = part[:, first] + part[:, second], delta * delta
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


BATCH_BYTES = 2**26
"""Memory, in bytes, for the quadratic forms whose eigenvalues are computed at a time."""


@dataclass(frozen=True, eq=False)
class EffectiveTheory(Value):
    """The effective theory of Liu et al.: embeddings that move on their own, without a network (Eqs. 4, 5).

    The theory predicts how fast a representation forms. Two samples (i, j) and (m, n) of the training set D
    with the same result are a parallelogram, because a network that generalizes has E_i + E_j = E_m + E_n for
    its embeddings E. The embeddings descend the gradient of ℓ_eff = ℓ_0/Z_0, where ℓ_0 is the mean of |E_i +
    E_j - E_m - E_n|² over the parallelograms P_0(D) of the training set, and Z_0 = Σ|E_k|².

    Parameters
    ----------
    tokens : int, optional
        Number of symbols p, at least 2. By default 10, or the order of the group if one is given.
    dim : int, default 1
        Dimension of the embeddings, at least 1.
    pairs : array_like of int, shape (n, 2), optional
        Training set D, by default all samples. If it permits no parallelogram, nothing moves.
    modulus : int, optional
        Modulus, at least 2: learn (i + j) mod `modulus` instead of i + j.
    group : FiniteGroup or array_like of int, shape (p, p), optional
        Group, or its Cayley table, whose product is learned instead. If it does not commute, sums of vectors
        cannot represent it. Parallelograms, closure, quality and accuracy are then those of matrices
        (Appendix H), and all members that concern the loss or the flow raise an `InputError`.

    Raises
    ------
    InputError
        If a value is out of its range, or a pair is repeated or names a symbol that does not exist. Also if
        `group` is not a group, `tokens` is not its order, or a modulus and a group are given.

    Notes
    -----
    With the matrix Q of ℓ_0 = tr(EᵀQE), the gradient flow has the closed solution ``E(t) = √Z_0 G/‖G‖``, ``G
    = exp(-2Qt/Z_0) E(0)``. `simulate` uses it, so frames are exact at any distance in time. Z_0 is conserved.
    The sum C = Σ E_k obeys ``dC/dt = (2 ℓ_0/Z_0²) C``, a term that Eq. 27 of the paper omits.

    Examples
    --------
    >>> import physics
    >>> theory = physics.EffectiveTheory(10)
    >>> theory.parallelogram_count, theory.ground_state_dimension, round(theory.grokking_rate, 3)
    (70, 2, 0.086)
    >>> trajectory = physics.simulate(theory, steps=100, runs=3)
    >>> physics.representation_quality(trajectory, theory)[:, -1].tolist()
    [1.0, 1.0, 1.0]
    """

    tokens: int = None  # type: ignore[assignment]  # __post_init__ sets the default
    dim: int = 1
    pairs: Any = None
    modulus: int | None = None
    group: Any = None

    default_step_size: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        operation = Operation(self.tokens, self.modulus, self.group)
        mask = operation.mask(self.pairs)
        self._set(
            operation=operation,
            mask=mask,
            dim=whole_number("dim", self.dim, 1),
            pairs=None if self.pairs is None else read_only(operation.samples[mask]),
            **{name: getattr(operation, name) for name in ("tokens", "modulus", "group")},
        )

    operation: ClassVar[Operation]  # __post_init__ sets these two; they are not fields
    mask: ClassVar[Mask]

    @cached_property
    def parallelogram_count(self) -> int:
        """Number of parallelograms that the training set permits, |P_0(D)|."""
        return pairs_within(self.operation.label[self.mask])

    @cached_property
    def parallelograms(self) -> Int32:
        """Rows (i, j, m, n) of training samples (i, j) and (m, n) of the same result, int32 (n, 4)."""
        return list_parallelograms(self.operation.samples[self.mask], self.operation.label[self.mask])

    @cached_property
    def implied_parallelograms(self) -> Int32:
        """Rows (i, j, m, n) as of `parallelograms`, for all that follow from them (`physics.closures`)."""
        groups: Any = closures(self, self.mask[None], groups=True).groups
        return list_parallelograms(self.operation.samples, groups[0])

    @cached_property
    def closure(self) -> Closures:
        """What the training set implies: a `Closures` of a single set."""
        return closures(self, self.mask[None])

    @cached_property
    def ground_state_dimension(self) -> int:
        """Number n_0 of degrees of freedom of the embeddings without loss for dim = 1, exactly (Eq. 7)."""
        self._linear()
        if self.mask.all():
            return least_nullity(self.operation)  # known for most operations, without a kernel
        return int(nullities(self.operation, self.mask[None])[0])

    @one_blas_thread
    def loss(self, E: Any) -> Array:
        """Return the effective loss ℓ_0/Z_0 (Eq. 5).

        Parameters
        ----------
        E : array_like, shape (..., tokens, dim)
            Embeddings, of any dimension. None may be zero everywhere.

        Returns
        -------
        ndarray of float64, shape (...)
            Loss of each embedding.

        Raises
        ------
        InputError
            If `E` has another shape, an embedding is not finite or is zero, the group does not commute, or
            the training set permits no parallelogram.

        Examples
        --------
        >>> import physics
        >>> float(physics.EffectiveTheory(3).loss([[0.0], [1.0], [3.0]]))  # (0 + 3 - 1 - 1)²/(0² + 1² + 3²)
        0.1
        """
        states, shape = checked_states("E", E, self.tokens)
        return self._descend(states)[0].reshape(shape[:-2])

    @one_blas_thread
    def gradient(self, E: Any) -> Array:
        """Return the gradient of the effective loss ℓ_0/Z_0 with respect to the embeddings.

        Parameters
        ----------
        E : array_like, shape (..., tokens, dim)
            Embeddings, of any dimension. None may be zero everywhere.

        Returns
        -------
        ndarray of float64, shape (..., tokens, dim)

        Raises
        ------
        InputError
            As in `loss`.

        Examples
        --------
        >>> import physics
        >>> physics.EffectiveTheory(3).gradient([[0.0], [1.0], [2.0]]).ravel().tolist()  # no loss
        [0.0, 0.0, 0.0]
        """
        states, shape = checked_states("E", E, self.tokens)
        return self._descend(states)[1].reshape(shape)

    def hessian(self, norm: float | None = None) -> Array:
        """Return the Hessian H = (1/Z_0) ∂²ℓ_0/∂E_i∂E_j, which is the same for every axis (Eq. 8).

        Parameters
        ----------
        norm : float, optional
            Z_0, greater than 0; by default `tokens`, as for unit variance in one dimension.

        Returns
        -------
        ndarray of float64, shape (tokens, tokens)

        Raises
        ------
        InputError
            If `norm` is not greater than 0, or as in `loss`.

        Examples
        --------
        >>> import physics
        >>> physics.EffectiveTheory(3).hessian(norm=2.0).tolist()  # of ℓ_0 = (E_0 + E_2 - 2 E_1)²
        [[1.0, -2.0, 1.0], [-2.0, 4.0, -2.0], [1.0, -2.0, 1.0]]
        """
        self._linear(loss=True)
        norm = self.tokens if norm is None else number("norm", norm, above=0.0)
        return 2 / norm * self._quadratic_form

    @cached_property
    def spectrum(self) -> Array:
        """Eigenvalues of `hessian()`, float64 (tokens,), ascending; the first n_0 are exactly zero."""
        self._linear()
        return 2 / self.tokens * self._modes[0]

    @property
    def grokking_rate(self) -> float:
        """Grokking rate λ_3: the third smallest eigenvalue of `hessian()`, per unit of time.

        At this rate the slowest mode of plain addition decays, besides translation and scale. It is 0 if more
        than two degrees of freedom are left, or there are only two tokens.
        """
        return float(self.spectrum[2]) if self.tokens > 2 else 0.0

    def grokking_steps(self, step_size: float = 1e-3) -> float:
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

    @property
    def relaxation_rate(self) -> float:
        """Rate per unit of time of the slowest mode among those that decay if all samples are trained.

        For plain addition it is `grokking_rate`, since all samples leave two degrees of freedom. For addition
        modulo p they leave one, and it is the second eigenvalue. It is 0 if the training set leaves more.
        """
        free = least_nullity(self.operation)
        return float(self.spectrum[free]) if free < self.tokens else 0.0

    @property
    def ground_states(self) -> Array:
        """Orthonormal basis of the embeddings without loss for dim = 1, as columns: float64 (tokens, n_0)."""
        return self._modes[1][:, : self.ground_state_dimension].copy()

    def start(self, generator: np.random.Generator) -> Array:
        """Draw initial embeddings: standard normal, then scaled to zero mean and unit variance on every axis.

        Parameters
        ----------
        generator : numpy.random.Generator

        Returns
        -------
        ndarray of float64, shape (tokens, dim)

        Examples
        --------
        >>> import numpy as np, physics
        >>> physics.EffectiveTheory(4).start(np.random.default_rng(0)).std().round(9).item()
        1.0
        """
        E = generator.standard_normal((self.tokens, self.dim))
        E -= E.mean(axis=0)
        return E / np.sqrt(np.mean(E**2, axis=0))

    def advance(self, positions: Array, step_size: float, steps: int) -> None:
        """Move an ensemble in place along the closed solution over the time ``steps * step_size``.

        Parameters
        ----------
        positions : ndarray of float64, shape (runs, tokens, dim)
            Embeddings, which are overwritten.
        step_size : float
            Length of a step, in units of time.
        steps : int

        Raises
        ------
        InputError
            If the embedding of a run is zero everywhere, or the group does not commute.

        Examples
        --------
        >>> import numpy as np, physics
        >>> positions = np.array([[[0.0], [1.0], [3.0]]])  # one run
        >>> physics.EffectiveTheory(3).advance(positions, step_size=1.0, steps=10)
        >>> np.diff(positions.ravel()).round(3).tolist()  # evenly spaced
        [1.513, 1.513]
        """
        require_nonzero("initial", positions)
        positions[:] = self._flow(positions, np.array([step_size * steps]))[:, 0]

    def solve(self, initial: Any, times: Any) -> Array:
        """Return the closed solution of the flow at any times, from given embeddings.

        Parameters
        ----------
        initial : array_like, shape (..., tokens, dim)
            Embeddings at time 0. None may be zero everywhere.
        times : array_like, shape (n,)
            Times, at least 0, in any order.

        Returns
        -------
        ndarray of float64, shape (..., n, tokens, dim)

        Raises
        ------
        InputError
            If a shape is another one, a value is not finite or out of its range, or the group does not
            commute.

        Examples
        --------
        >>> import physics
        >>> theory = physics.EffectiveTheory(3)
        >>> theory.loss(theory.solve([[0.0], [1.0], [3.0]], times=[0.0, 10.0])).round(4).tolist()
        [0.1, 0.0]
        """
        states, shape = checked_states("initial", initial, self.tokens)
        clock = finite_array("times", times, ndim=1)
        number("times", clock.min(initial=0.0), 0.0)
        return self._flow(states, clock).reshape(*shape[:-2], len(clock), *shape[-2:])

    def observables(self, positions: Array) -> dict[str, Array]:
        """Measure the quantities that `simulate` records with every frame.

        Parameters
        ----------
        positions : ndarray of float64, shape (runs, tokens, dim)

        Returns
        -------
        dict of ndarray of float64
            "loss" = ℓ_0/Z_0 (runs,), NaN if there is no parallelogram; "Z_0" = Σ|E_k|² (runs,), which is
            conserved; and "C" = Σ E_k (runs, dim).

        Examples
        --------
        >>> import numpy as np, physics
        >>> found = physics.EffectiveTheory(3).observables(np.array([[[0.0], [1.0], [3.0]]]))
        >>> found["loss"].tolist(), found["Z_0"].tolist(), found["C"].tolist()
        ([0.1], [10.0], [[4.0]])
        """
        require_nonzero("initial", positions)
        with np.errstate(over="ignore", under="ignore"):
            norm = np.sum(positions**2, axis=(1, 2))
        beyond = norm[(norm < np.finfo(float).tiny) | np.isinf(norm)]
        if len(beyond):
            raise InputError(f"initial must have a Z_0 from 2.3e-308 to 1.7e308, got {beyond[0]:g}")
        loss = self.loss(positions) if self.parallelogram_count else np.full(len(positions), np.nan)
        return {"loss": loss, "Z_0": norm, "C": positions.sum(axis=1)}

    @cached_property
    def _quadratic_form(self) -> Array:
        """Matrix Q of ℓ_0 = tr(EᵀQE), (tokens, tokens); zero where there is no parallelogram."""
        return quadratic_forms(self.operation, self.mask[None])[0]

    @cached_property
    @one_blas_thread
    def _modes(self) -> tuple[Array, Array]:
        """Eigenvalues of Q (tokens,), ascending, with exact zeros, and the eigenvectors as columns."""
        values, vectors = np.linalg.eigh(self._quadratic_form)
        values[: self.ground_state_dimension] = 0.0
        return values, vectors

    @cached_property
    def _terms(self) -> tuple[Integers, Array, Array, Integers]:
        """Where classes start among the training samples, sorted by class, and what belongs to each sample.

        These are its weight in the loss (n, 1), and a matrix (n, tokens) that adds its two tokens; the last
        array is the number of its class (n,).
        """
        members, label = self.operation.by_class[0], self.operation.label
        members = members[self.mask[members]]
        _, starts, place, sizes = np.unique(
            label[members], return_index=True, return_inverse=True, return_counts=True
        )
        pair = _incidence(self.operation)[members]
        return starts, sizes[place, None] / self.parallelogram_count, pair, place

    def _descend(self, states: Array) -> tuple[Array, Array]:
        """Return the loss ℓ_0/Z_0 (runs,) of states (runs, tokens, dim), and its gradient in their shape.

        The m samples of a class with the sums s satisfy Σ_{a<b} |s_a - s_b|² = m Σ_a |s_a - mean|², which
        loses no digits where the loss is small.
        """
        self._linear(loss=True)
        starts, weight, pair, place = self._terms
        scaled, exponent = powers_of_two(states)
        sums = pair @ scaled
        means = np.add.reduceat(sums, starts, axis=1) / np.bincount(place)[:, None]
        deviation = sums - means[:, place]
        norm = np.sum(scaled**2, axis=(1, 2))
        mean = np.sum(weight * deviation**2, axis=(1, 2)) / norm
        gradient = 2 * (pair.T @ (weight * deviation) - mean[:, None, None] * scaled) / norm[:, None, None]
        return mean, np.ldexp(gradient, -exponent)

    @one_blas_thread
    def _flow(self, states: Array, times: Array) -> Array:
        """Return the closed solution (runs, times, tokens, dim) from states (runs, tokens, dim)."""
        self._linear()
        if not self.parallelogram_count:
            return np.repeat(states[:, None], len(times), axis=1)
        rates, modes = self._modes
        scaled, exponent = powers_of_two(states)
        norm = np.sum(scaled**2, axis=(1, 2))[:, None, None]
        unit = np.ldexp(1.0, np.minimum(-2 * exponent, 1000))  # times count in units of its inverse
        amplitudes = modes.T @ scaled
        # The slowest rate that occurs is factored out, so that not all amplitudes underflow.
        slowest = (amplitudes != 0.0).any(axis=2).argmax(axis=1)
        excess = np.maximum(rates - rates[slowest, None], 0.0)[:, None]
        with np.errstate(over="ignore"):  # to no amplitude
            decay = np.exp(np.maximum(-2.0 * excess * times[:, None] / norm, -1e308) * unit)
        moved = amplitudes[:, None] * decay[..., None]
        moved *= np.sqrt(norm / np.sum(moved**2, axis=(2, 3))[..., None])[..., None]
        return np.ldexp(modes @ moved, exponent[:, None])

    def _linear(self, *, loss: bool = False) -> None:
        """Refuse a group that does not commute, and with `loss` a training set without a parallelogram."""
        if not self.operation.commutes:
            raise InputError(f"group must commute, because embeddings are added, got {self.operation.name}")
        if loss and not self.parallelogram_count:
            raise InputError("pairs must permit at least 1 parallelogram for an effective loss, got none")


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
        raise InputError(f"theory must commute to have a grokking rate, got the group {operation.name}")
    rates = np.zeros(len(marked))
    moving = np.flatnonzero((nullities(operation, marked) < 3) & (operation.tokens > 2))
    block = max(BATCH_BYTES // (8 * operation.tokens**2), 1)
    for begin in range(0, len(moving), block):
        chosen = moving[begin : begin + block]
        rates[chosen] = np.linalg.eigvalsh(quadratic_forms(operation, marked[chosen]))[:, 2]
    return 2 / operation.tokens * rates


def _incidence(operation: Operation) -> Array:
    """Return the matrix (samples, tokens) that adds the embeddings of the two tokens of each sample."""
    matrix = np.zeros((len(operation.samples), operation.tokens))
    for end in operation.samples.T:
        np.add.at(matrix, (np.arange(len(matrix)), end), 1.0)
    return matrix


def quadratic_forms(operation: Operation, masks: Mask) -> Array:
    """Return the matrix Q of the loss ℓ_0 = tr(EᵀQE) of each training set, float64 (sets, tokens, tokens).

    `masks` (sets, samples) mark the training sets. Q is zero where there is no parallelogram. It is a
    quotient of whole numbers: with v_a = e_i + e_j for sample a, a class of m samples adds m Σ_a v_a v_aᵀ - u
    uᵀ, where u = Σ_a v_a.
    """
    pair, count = _incidence(operation), np.zeros(len(masks))
    Q = np.zeros((len(masks), operation.tokens, operation.tokens))
    for c in range(operation.label.max() + 1):
        members = operation.label == c
        chosen, v = masks[:, members].astype(np.float64), pair[members]
        size, u = chosen.sum(axis=1), chosen @ v
        Q += size[:, None, None] * (v.T @ (chosen[:, :, None] * v)) - u[:, :, None] * u[:, None, :]
        count += size * (size - 1) / 2
    return Q / np.maximum(count, 1.0)[:, None, None]


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
