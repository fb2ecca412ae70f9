"""What a training set implies: the exact closure P(D), and the resulting bounds (Liu, Appendix E)."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from physics.checks import whole_number
from physics.errors import InputError
from physics.lazy import lazy_modules
from physics.seeds import Seed
from physics.theory.operations import Mask, Operation, operation_of, random_orders

if TYPE_CHECKING:
    from physics.theory import closure_kernels as linear
    from physics.theory import deduction_kernels as deduction
else:
    linear, deduction = lazy_modules("physics.theory", "closure_kernels", "deduction_kernels")

LARGEST_PRIME = 2**26
"""Upper bound of the primes: the kernels keep residues in float64, whose products are exact below it."""


@dataclass(frozen=True)
class Closures:
    """The parallelograms that each of many training sets implies, and the bounds that follow.

    Attributes
    ----------
    kind : {"linear", "deduction", "chains"}
        Method by which the closure was computed; see `closures`.
    nullity : ndarray of int32, shape (sets,), or None
        Number n_0 of degrees of freedom of the ground states; None if the operation does not commute.
    implied : ndarray of int64, shape (sets,)
        Number |P(D)| of implied parallelograms (Eq. 14).
    augmented : ndarray of bool, shape (sets, |D_0|)
        Samples that are in the training set or follow from it, D-bar (Eq. 12).
    quality : ndarray of float64, shape (sets,)
        Quality of an ideal model, RQI-bar = |P(D)|/|P_0| (Eq. 16); NaN if the operation has no parallelogram.
    accuracy : ndarray of float64, shape (sets,)
        Accuracy of an ideal model, Acc-bar = |D-bar|/|D_0| (Eq. 17).
    complete : ndarray of bool, shape (sets,)
        Whether P(D) = P_0, so that the training set determines as much as the complete data set. For plain
        addition that is the linear representation, which is unique up to translation and scale (n_0 = 2).
    groups : ndarray of int32, shape (sets, |D_0|), or None
        Two samples of a class form an implied parallelogram if and only if their numbers are equal. Kept on
        request.
    """

    kind: str
    nullity: NDArray[np.int32] | None
    implied: NDArray[np.int64]
    augmented: Mask
    quality: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    complete: Mask
    groups: NDArray[np.int32] | None = None


def closures(theory: Any, masks: Any, *, groups: bool = False, transitive: bool = True) -> Closures:
    """Find exactly which parallelograms each of many training sets implies, on all cores.

    If the operation commutes, this is the **linear closure** of Eq. 14: a parallelogram is implied if and
    only if its equation is a linear combination of those of P_0(D). Otherwise it is the complete
    **deduction** of Appendix H: three parallelograms that share quotients imply a fourth, equality of
    products is transitive, and both rules are applied until nothing new follows. Everything that is deduced
    holds for every embedding by invertible matrices, but such embeddings may imply more.

    Parameters
    ----------
    theory : EffectiveTheory or Operation
        Operation that is learned; the training set of a theory is ignored.
    masks : array_like of bool, shape (sets, |D_0|)
        Training sets, given by which samples each contains, such as `random_training_sets` returns.
    groups : bool, default False
        Whether to keep the partition of the samples as well.
    transitive : bool, default True
        Whether to use transitivity if the operation does not commute. Without it only the step that the paper
        draws (Figure 16) is used. Much less then follows, and Eq. 16 is no longer a bound, because equality
        of embeddings is transitive.

    Returns
    -------
    Closures

    Raises
    ------
    InputError
        If `masks` are invalid, a set is empty, or `transitive` is False for a linear closure or a partition.

    Notes
    -----
    The linear closure is exact by proof, without a tolerance. A nonzero minor of the system is at most
    c^(p-1) in absolute value (Hadamard), where c is the largest length of a row, √6 or √8; ranks are computed
    modulo so many primes that their product exceeds this bound. Every minor that decides a rank is then
    nonzero modulo one of them. A rank modulo a prime never exceeds the true rank, so one prime is enough if
    the nullity already equals that of the complete data set.
    """
    operation = operation_of(theory)
    marked = operation.masks(masks)
    if not transitive and (operation.commutes or groups):
        raise InputError("transitive must be True if the operation commutes or groups is True, got False")
    sets, count = marked.shape
    implied = np.empty(sets, np.int64)
    augmented = np.empty((sets, count), bool)
    kept = np.empty((sets if groups else 0, count), np.int32)
    nullity = None
    members, starts = operation.by_class
    if operation.commutes:
        nullity = np.empty(sets, np.int32)
        linear.closures(
            marked,
            operation.samples,
            members,
            starts,
            primes_for(operation),
            least_nullity(operation),
            nullity,
            implied,
            augmented,
            kept,
        )
    elif not transitive:
        deduction.chains(marked, operation.samples, members, starts, implied, augmented)
    else:
        deduction.closures(marked, operation.samples, members, starts, implied, augmented, kept)
    everything = operation.parallelogram_count
    return Closures(
        "linear" if operation.commutes else "deduction" if transitive else "chains",
        nullity,
        implied,
        augmented,
        implied / everything if everything else np.full(sets, np.nan),
        augmented.mean(axis=1),
        implied == everything,
        kept if groups else None,
    )


def critical_sizes(theory: Any, *, sets: int = 1000, seed: Seed = 0, orders: Any = None) -> NDArray[np.int64]:
    """Return how many samples, added in random order, make a training set complete, P(D) = P_0.

    The first k samples of a random order are a random training set of size k. The fraction of results up to k
    is therefore the probability that such a set is complete, for all k at once.

    Parameters
    ----------
    theory : EffectiveTheory or Operation
    sets : int, default 1000
        Number of orders.
    seed : int or numpy.random.SeedSequence, default 0
    orders : array_like of int, shape (sets, |D_0|), optional
        Orders of the samples to use instead of random ones.

    Returns
    -------
    ndarray of int64, shape (sets,)

    Raises
    ------
    InputError
        If `sets` is out of range, or a row of `orders` is not a permutation of the samples.
    """
    operation = operation_of(theory)
    if orders is None:
        rows = random_orders(operation, sets=sets, seed=seed)
    else:
        rows = np.ascontiguousarray(np.asarray(orders), np.int32)
        count = len(operation.samples)
        if rows.ndim != 2 or not np.array_equal(
            np.sort(rows, axis=1), np.tile(np.arange(count), (len(rows), 1))
        ):
            raise InputError(
                f"orders must hold rearrangements of 0 … {count - 1}, got the shape {rows.shape}"
            )
    size = np.empty(len(rows), np.int64)
    members, starts = operation.by_class
    if operation.commutes:
        primes, floor = primes_for(operation), least_nullity(operation)
        linear.critical_sizes(rows, operation.samples, operation.label, primes, floor, size)
    else:
        everything = operation.parallelogram_count
        deduction.critical_sizes(rows, operation.samples, members, starts, everything, size)
    return size


def least_nullity(operation: Operation) -> int:
    """Return the nullity of the complete data set under the linear closure, a lower bound for all sets.

    It is 2 for plain addition, where (0, k+1, 1, k) makes all steps E_{k+1} - E_k equal, and 1 for a finite
    group, where E_i - E_0 is a homomorphism to the reals, hence zero. Other moduli are computed.
    """
    if operation.modulus is None and operation.group is None:
        return 2
    if operation.group is not None or operation.modulus == operation.tokens:
        return 1
    # constant embeddings solve every such system, so no nullity is less than 1
    return int(nullities(operation, operation.mask(None)[None], floor=1)[0])


def nullities(operation: Operation, masks: Mask, floor: int | None = None) -> NDArray[np.int32]:
    """Return only n_0 (sets,) of training sets (sets, |D_0|) under the linear closure.

    `floor` is a lower bound of the nullity, by default `least_nullity`.
    """
    found = np.empty(len(masks), np.int32)
    floor = least_nullity(operation) if floor is None else floor
    linear.nullities(masks, operation.samples, *operation.by_class, primes_for(operation), floor, found)
    return found


def primes_for(operation: Operation) -> NDArray[np.float64]:
    """Return primes whose product exceeds every minor of the operation's system, as float64."""
    i, j = operation.samples.T
    doubles = np.bincount(operation.label[i == j])
    # (i, i, m, m) has the length √8, (i, i, m, n) √6, (i, j, m, n) 2; constants keep the rank below p.
    longest = 8 if doubles.max(initial=0) > 1 else 6
    bits = (operation.tokens - 1) / 2 * math.log2(longest)
    return np.array(_primes(int(bits / math.log2(LARGEST_PRIME - 2**16)) + 1), np.float64)


@lru_cache
def _primes(count: int) -> tuple[int, ...]:
    """Return the largest primes below `LARGEST_PRIME`, at most about 1800, by trial division.

    This takes 0.2 ms for one prime and 40 ms for fifty, whereas importing SymPy takes 500 ms (measured).
    """
    divisors = np.arange(3, math.isqrt(LARGEST_PRIME) + 1, 2)
    found: list[int] = []
    candidate = LARGEST_PRIME - 1
    while len(found) < whole_number("count", count, 1):
        if (candidate % divisors).all():
            found.append(candidate)
        candidate -= 2
    return tuple(found)
