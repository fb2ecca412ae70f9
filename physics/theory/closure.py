"""What a training set implies: the exact closure, and what an ideal model reaches (Liu, Appendix E)."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from physics.checks import InputError, flag, regular_array
from physics.seeds import Seed
from physics.theory import closure_kernels as kernels
from physics.theory.operations import Operation, operation_of, random_orders
from physics.values import Array, Int32, Integers, Mask, Shown, Value

LARGEST_PRIME = 2**26
"""Upper bound of the primes: below it, products of residues are exact in float64, which the kernels use."""


@dataclass(frozen=True, eq=False)
class Closures(Shown, Value):
    """The parallelograms that each of many training sets implies, and what follows; see `closures`.

    A parallelogram is a pair of samples (i, j) and (m, n) of the same class, for which a generalizing network
    has E_i + E_j = E_m + E_n. A training set D implies the parallelograms P(D). All parallelograms of the
    operation are P_0, and all its samples D_0. Equations are those of Liu et al.

    Attributes
    ----------
    kind : {"linear", "deduction"}
        Method by which the closure was computed: "linear" if the operation commutes, otherwise "deduction".
    nullity : ndarray of int32, shape (sets,), or None
        Number n_0 of degrees of freedom that are left in each dimension of an embedding that satisfies all
        implied parallelograms; None if the operation does not commute.
    implied : ndarray of int64, shape (sets,)
        Number |P(D)| of implied parallelograms (Eq. 14).
    augmented : ndarray of bool, shape (sets, samples)
        Samples that are in the training set or follow from it, D-bar (Eq. 12).
    quality : ndarray of float64, shape (sets,)
        Representation quality of an ideal model, RQI-bar = |P(D)|/|P_0| (Eq. 16); NaN if P_0 is empty.
    accuracy : ndarray of float64, shape (sets,)
        Accuracy of an ideal model, Acc-bar = |D-bar|/|D_0| (Eq. 17).
    complete : ndarray of bool, shape (sets,)
        Whether P(D) = P_0, so that the training set determines as much as all samples together. For plain
        addition this is the linear representation, which is unique except for translation and scale.
    groups : ndarray of int32, shape (sets, samples), or None
        Partition of the samples: two samples of a class form an implied parallelogram if and only if their
        numbers are equal. It is None unless it was requested.

    Examples
    --------
    >>> import physics
    >>> theory = physics.EffectiveTheory(4, pairs=[[0, 2], [1, 1], [0, 3], [1, 2]])
    >>> found = physics.closures(theory, theory.mask[None])
    >>> found.implied.tolist(), found.quality.tolist(), found.complete.tolist()
    ([3], [1.0], [True])
    """

    kind: str
    nullity: Int32 | None
    implied: Integers
    augmented: Mask
    quality: Array
    accuracy: Array
    complete: Mask
    groups: Int32 | None = None


def closures(theory: Any, masks: Any, *, groups: bool = False) -> Closures:
    """Find exactly which parallelograms each of many training sets implies, on all cores.

    A training set permits the parallelograms P_0(D), the pairs of its samples that have the same class.
    Others may follow from these, so that a network that has learned the training set can answer new samples
    too. Equations, figures and appendices are those of Liu et al.

    Parameters
    ----------
    theory : EffectiveTheory or Operation
        Operation that is learned. The training set of a theory is ignored.
    masks : array_like of bool, shape (sets, samples)
        Training sets as masks over all samples of the operation, such as `random_training_sets` returns.
    groups : bool, default False
        Whether to keep the partition of the samples, `Closures.groups`.

    Returns
    -------
    Closures
        Results for each training set.

    Raises
    ------
    InputError
        If `theory` is not an `EffectiveTheory` or an `Operation`, `masks` are not bool of this shape, or a
        set is empty.

    Notes
    -----
    If the operation commutes, this is the **linear closure** of Eq. 14: a parallelogram is implied if and
    only if its equation is a linear combination of the equations of P_0(D). Otherwise it is the complete
    **deduction** of Appendix H: three parallelograms that share quotients imply a fourth, equality of
    products is transitive, and both rules are applied until nothing new follows. Everything that is deduced
    holds for every embedding by invertible matrices, but such embeddings may imply more.

    The linear closure is exact, without a tolerance. With p tokens, a nonzero minor of the system is at most
    c^(p-1) in absolute value (Hadamard), where c is the largest length of a row, √6 or √8. Ranks are computed
    modulo so many primes that their product exceeds this bound. Every minor that decides a rank is then
    nonzero modulo one of them. A rank modulo a prime never exceeds the true rank, so one prime is enough if
    the nullity already equals the nullity of the complete data set.

    Examples
    --------
    >>> import physics
    >>> theory = physics.EffectiveTheory(10)
    >>> sets = physics.random_training_sets(theory, size=20, sets=100)
    >>> found = physics.closures(theory, sets)
    >>> float(found.complete.mean()), int(found.nullity.min())
    (0.14, 2)
    """
    operation = operation_of(theory)
    marked = operation.masks(masks)
    flag("groups", groups)
    if operation.commutes:
        nullity, implied, augmented, partition = _linear(operation, marked, least_nullity(operation))
    else:
        nullity, (_, implied, augmented, partition) = None, _results(marked)
        kernels.deductions(marked, _samples(operation), implied, augmented, partition)
    everything = operation.parallelogram_count
    return Closures(
        "linear" if operation.commutes else "deduction",
        nullity,
        implied,
        augmented,
        implied / everything if everything else np.full(len(marked), np.nan),
        augmented.mean(axis=1),
        implied == everything,
        partition if groups else None,
    )


def critical_sizes(theory: Any, *, sets: int = 1000, seed: Seed = 0, orders: Any = None) -> Integers:
    """Return how many samples, added in random order, make a training set complete (P(D) = P_0).

    The first k samples of a random order are a random training set of size k. The fraction of results up to k
    is therefore the probability that such a set is complete, for all k at once.

    Parameters
    ----------
    theory : EffectiveTheory or Operation
        Operation that is learned. The training set of a theory is ignored.
    sets : int, default 1000
        Number of orders, at least 1.
    seed : int or numpy.random.SeedSequence, default 0
        Seed of the orders.
    orders : array_like of int, shape (sets, samples), optional
        Orders of the samples to use instead of random ones; each row is a permutation of their numbers.

    Returns
    -------
    ndarray of int64, shape (sets,)
        Number of samples, for each order, that are needed until the training set is complete.

    Raises
    ------
    InputError
        If `theory`, `sets` or `seed` is invalid, or a row of `orders` is not a permutation of the samples.

    Examples
    --------
    >>> import numpy as np, physics
    >>> sizes = physics.critical_sizes(physics.Operation(10), sets=500)
    >>> samples = len(physics.Operation(10).samples)
    >>> round(float(np.median(sizes)) / samples, 2)  # critical training fraction
    0.42
    """
    operation = operation_of(theory)
    if orders is None:
        rows = random_orders(operation, sets=sets, seed=seed)
    else:
        given, count = regular_array("orders", orders), len(operation.samples)
        what = f"orders must hold each number from 0 to {count - 1} once in every row"
        if given.dtype.kind not in "iu" or given.ndim != 2 or given.shape[1] != count:
            raise InputError(f"{what}, got {given.dtype} of shape {given.shape}")
        wrong = (np.sort(given, axis=1) != np.arange(count)).any(axis=1)
        if wrong.any():
            raise InputError(f"{what}, got other numbers in row {np.argmax(wrong)}")
        rows = np.ascontiguousarray(given, np.int32)
    if not operation.commutes:
        return _critical_deductions(operation, rows)
    size = np.empty(len(rows), np.int64)
    primes, floor = primes_for(operation), least_nullity(operation)
    kernels.critical_sizes(rows, _samples(operation), primes, floor, size)
    return size


def _critical_deductions(operation: Operation, orders: Int32) -> Integers:
    """Find how many samples of each order imply all parallelograms, by bisection: more never imply less."""
    place = np.argsort(orders, axis=1)
    low, high = np.zeros(len(orders), np.int64), np.full(len(orders), orders.shape[1])
    while (open_ := high - low > 1).any():
        middle = (low + high) // 2
        found = closures(operation, place[open_] < middle[open_, None])
        complete = np.zeros(len(orders), bool)
        complete[open_] = found.complete
        low, high = np.where(open_ & ~complete, middle, low), np.where(complete, middle, high)
    return high


def _samples(operation: Operation) -> kernels.Samples:
    return kernels.Samples(operation.tokens, operation.samples, operation.label, *operation.by_class)


def least_nullity(operation: Operation) -> int:
    """Return the nullity n_0 of the complete data set of a commuting operation; no training set has less.

    It is 2 for plain addition, where the parallelograms (0, k+1, 1, k) make all steps E_{k+1} - E_k equal,
    and 1 for a finite commutative group, where E_i - E_0 is a homomorphism to the reals, and hence zero. For
    a modulus other than the number of tokens it is computed.
    """
    if operation.modulus is None and operation.group is None:
        return 2
    if operation.group is not None or operation.modulus == operation.tokens:
        return 1
    # constant embeddings solve every such system, so no nullity is less than 1
    return int(nullities(operation, operation.mask(None)[None], floor=1)[0])


def nullities(operation: Operation, masks: Mask, floor: int | None = None) -> Int32:
    """Return the nullity n_0 of each training set of a commuting operation, int32 (sets,).

    It is the number of degrees of freedom that a training set leaves in one dimension. `masks` (sets,
    samples) are training sets, and `floor` is a lower bound of the nullities, by default `least_nullity`.
    """
    return _linear(operation, masks, least_nullity(operation) if floor is None else floor)[0]


def _linear(operation: Operation, masks: Mask, floor: int) -> tuple[NDArray[Any], ...]:
    """Return the arrays `nullity`, `implied`, `augmented` and `groups` of `Closures`, by linear algebra."""
    results = _results(masks)
    kernels.closures(masks, _samples(operation), primes_for(operation), floor, *results)
    return results


def _results(masks: Mask) -> tuple[NDArray[Any], ...]:
    sets = len(masks)
    return (
        np.empty(sets, np.int32),
        np.empty(sets, np.int64),
        np.empty(masks.shape, bool),
        np.empty(masks.shape, np.int32),
    )


def primes_for(operation: Operation) -> Array:
    """Return primes that are sufficient to compute ranks exactly for a commuting operation.

    They are below 2²⁶, float64 (primes,), and their product exceeds every minor of the linear system.
    """
    i, j = operation.samples.T
    doubles = np.bincount(operation.label[i == j])
    # (i, i, m, m) has the length √8, (i, i, m, n) √6, (i, j, m, n) 2; constants keep the rank below p.
    longest = 8 if doubles.max(initial=0) > 1 else 6
    bits = (operation.tokens - 1) / 2 * math.log2(longest)
    return np.array(_primes(int(bits / math.log2(LARGEST_PRIME - 2**16)) + 1), np.float64)


@lru_cache
def _primes(count: int) -> tuple[int, ...]:
    """Return the `count` largest primes below `LARGEST_PRIME`, by trial division."""
    divisors = np.arange(3, math.isqrt(LARGEST_PRIME) + 1, 2)
    primes: list[int] = []
    candidate = LARGEST_PRIME - 1
    while len(primes) < count:
        if (candidate % divisors).all():
            primes.append(candidate)
        candidate -= 2
    return tuple(primes)
