"""What is learned: an operation on symbols, its samples, and training sets drawn from them."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from physics.checks import InputError, misfit, regular_array, require_memory, whole_number
from physics.seeds import Seed, parent_seed
from physics.theory.groups import FiniteGroup, as_group
from physics.values import Int32, Integers, Mask, Value, read_only

BYTES_PER_PAIR = 20
"""Bytes for each ordered pair of tokens that `Operation.samples` needs while it lists the samples."""


@dataclass(frozen=True, eq=False)
class Operation(Value):
    """A binary operation on `tokens` symbols, with all its samples: what a network or a theory learns.

    By default the operation is the addition of whole numbers. The class of a sample (i, j) is the correct
    answer. All samples together are the complete data set D_0 of Liu et al.

    Parameters
    ----------
    tokens : int, optional
        Number of symbols p, at least 2. By default 10, or the order of the group if one is given.
    modulus : int, optional
        Modulus, at least 2: the class of (i, j) is (i + j) mod `modulus` instead of i + j.
    group : FiniteGroup or array_like of int, shape (p, p), optional
        Group of at least 2 elements, or its Cayley table: the class of (i, j) is the product i·j instead.

    Attributes
    ----------
    samples : ndarray of int32, shape (samples, 2)
        Pairs of symbols in lexicographic order: those with i ≤ j if the operation commutes, and all p²
        otherwise.
    label : ndarray of int32, shape (samples,)
        Class of each sample.

    Raises
    ------
    InputError
        If a value is out of its range, `group` is not a group, `tokens` is not the order of the group, both
        a modulus and a group are given, or the samples of so many tokens do not fit into memory.

    Examples
    --------
    >>> import physics
    >>> addition = physics.Operation(3, modulus=3)
    >>> addition.samples.tolist()
    [[0, 0], [0, 1], [0, 2], [1, 1], [1, 2], [2, 2]]
    >>> addition.label.tolist()
    [0, 1, 2, 2, 0, 1]
    """

    if TYPE_CHECKING:
        tokens: int = 10
    else:
        tokens: int | None = None  # None until __post_init__ sets the default
    modulus: int | None = None
    group: FiniteGroup | None = None

    def __post_init__(self) -> None:
        if self.modulus is not None:
            self._set(modulus=whole_number("modulus", self.modulus, 2))
        if self.group is not None:
            if self.modulus is not None:
                raise InputError("modulus and group must not be given together, got both")
            group = as_group(self.group)
            if group.order < 2:
                raise InputError(f"group must have at least 2 elements, got {group.order}")
            self._set(group=group)
        self._set(tokens=tokens_of(self.tokens, self.group, 10, minimum=2))
        what = f"all samples of {self.tokens} tokens"
        require_memory(what, BYTES_PER_PAIR * self.tokens**2, "take fewer tokens")

    @property
    def name(self) -> str:
        """Name of the operation in figures and messages, such as "addition, p = 5, mod 5"."""
        if self.group is not None:
            return self.group.name
        return f"addition, p = {self.tokens}" + ("" if self.modulus is None else f", mod {self.modulus}")

    @cached_property
    def commutes(self) -> bool:
        """Whether the operation commutes, so that (i, j) and (j, i) are one sample."""
        return self.group is None or self.group.commutes

    @cached_property
    def samples(self) -> Int32:  # noqa: D102 (an attribute of the class docstring)
        p = self.tokens
        pairs = np.triu_indices(p) if self.commutes else np.divmod(np.arange(p * p), p)
        return read_only(np.stack(pairs, axis=1).astype(np.int32))

    @cached_property
    def label(self) -> Int32:  # noqa: D102 (an attribute of the class docstring)
        i, j = self.samples.T
        if self.group is not None:
            return read_only(self.group.table[i, j].astype(np.int32))
        if self.modulus is None or self.modulus > 2 * self.tokens:  # which exceeds every sum
            return read_only(i + j)
        return read_only((i + j) % np.int32(self.modulus))

    @cached_property
    def by_class(self) -> tuple[Int32, Int32]:
        """Numbers of the samples sorted by class (samples,), and where each class starts (classes + 1,).

        The last entry of the second array is the end of the last class. Both arrays are int32.
        """
        sizes = np.bincount(self.label)
        starts = np.append(0, np.cumsum(sizes))
        members = np.argsort(self.label, kind="stable")
        return read_only(members.astype(np.int32)), read_only(starts.astype(np.int32))

    @cached_property
    def parallelogram_count(self) -> int:
        """Number of parallelograms, which are pairs of different samples of the same class."""
        sizes = np.bincount(self.label).astype(np.int64)
        return int((sizes * (sizes - 1) // 2).sum())

    def mask(self, pairs: Any) -> Mask:
        """Return a training set, given by pairs of symbols, as a mask over all samples.

        Parameters
        ----------
        pairs : array_like of int, shape (n, 2), or None
            Pairs of symbols from 0 to tokens - 1, or None for all samples.

        Returns
        -------
        ndarray of bool, shape (samples,)
            True for the samples of the training set; read-only.

        Raises
        ------
        InputError
            If `pairs` is empty, an entry is not a pair of symbols, or a sample is repeated. If the operation
            commutes, (i, j) and (j, i) are the same sample.

        Examples
        --------
        >>> import physics
        >>> addition = physics.Operation(3)
        >>> addition.mask([[0, 1], [2, 1]]).tolist()  # of (0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)
        [False, True, False, False, True, False]
        """
        if pairs is None:
            return read_only(np.ones(len(self.samples), bool))
        array = regular_array("pairs", pairs)
        if array.size == 0:
            raise InputError("pairs must hold at least 1 pair of symbols, got an empty training set")
        if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
            raise misfit("pairs", array, "be whole numbers of the shape (n, 2)")
        outside = np.argwhere(((array < 0) | (array >= self.tokens)).any(axis=1))
        if len(outside):
            i, j = array[outside[0, 0]]
            raise InputError(f"pairs must hold symbols from 0 to {self.tokens - 1}, got ({i}, {j})")
        i, j = array.astype(np.int64).T
        if self.commutes:
            i, j = np.minimum(i, j), np.maximum(i, j)
        place = self._place[i, j]
        times = np.bincount(place, minlength=len(self.samples))
        if times.max() > 1:
            twice = int(np.argmax(times > 1))
            a, b = self.samples[twice]
            also = f", where ({b}, {a}) is the same sample" if self.commutes and a != b else ""
            raise InputError(f"pairs must not repeat a sample, got ({a}, {b}) {times[twice]} times{also}")
        return read_only(times > 0)

    def masks(self, masks: Any) -> Mask:
        """Check training sets that are given as masks over all samples.

        Parameters
        ----------
        masks : array_like of bool, shape (sets, samples)
            True for the samples of each training set.

        Returns
        -------
        ndarray of bool, shape (sets, samples)
            The same values, read-only.

        Raises
        ------
        InputError
            If `masks` are not bool, have another shape, or mark no sample in a set.

        Examples
        --------
        >>> import numpy as np, physics
        >>> physics.Operation(2).masks([[True, False, True]]).sum(axis=1).tolist()
        [2]
        """
        array = regular_array("masks", masks)
        if array.dtype != np.bool_ or array.ndim != 2 or array.shape[1] != len(self.samples):
            raise misfit("masks", array, f"be bool of the shape (sets, {len(self.samples)})")
        empty = np.flatnonzero(~array.any(axis=1))
        if len(empty):
            raise InputError(f"masks must mark at least 1 sample in each set, got none in set {empty[0]}")
        return read_only(array)

    @cached_property
    def _place(self) -> Integers:
        place = np.full((self.tokens, self.tokens), -1)
        place[self.samples[:, 0], self.samples[:, 1]] = np.arange(len(self.samples))
        return place


def tokens_of(tokens: Any, group: FiniteGroup | None, default: int, *, minimum: int) -> int:
    """Return the number of tokens: `tokens`, or the order of the group, or else `default`.

    An `InputError` refuses `tokens` below `minimum`, or other than the order of the group.
    """
    if tokens is None:
        return default if group is None else group.order
    tokens = whole_number("tokens", tokens, minimum)
    if group is not None and tokens != group.order:
        raise InputError(f"tokens must be {group.order}, the order of the group, got {tokens}")
    return tokens


def operation_of(theory: Any) -> Operation:
    """Return the operation of an `EffectiveTheory`, or `theory` itself if it is an `Operation`.

    Anything without an operation is an `InputError`.
    """
    found = theory if isinstance(theory, Operation) else getattr(theory, "operation", None)
    if not isinstance(found, Operation):
        raise InputError(f"theory must be an EffectiveTheory or an Operation, got {type(theory).__name__}")
    return found


def class_rule(tokens: int, modulus: int | None = None, group: Any = None) -> Operation:
    """Return the commutative operation that gives the pair sums of `tokens` tokens their classes.

    It is addition modulo `modulus`, by default modulo `tokens`, or the product of `group`, a `FiniteGroup` or
    its Cayley table. An `InputError` refuses a modulus below 2, a group that does not commute or has another
    order, and both together.
    """
    if group is None:
        return Operation(tokens, tokens if modulus is None else modulus)
    group = as_group(group)
    if not group.commutes:
        raise InputError(f"group must commute, because E_i + E_j does, got {group.name}")
    return Operation(tokens, modulus, group)


def random_training_sets(theory: Any, size: int, *, sets: int = 1, seed: Seed = 0) -> Mask:
    """Draw random training sets of a given size, all with equal probability.

    Parameters
    ----------
    theory : EffectiveTheory or Operation
        Operation whose samples are drawn. The training set of a theory is ignored.
    size : int
        Number of distinct samples of each set, from 1 to the number of all samples.
    sets : int, default 1
        Number of training sets, at least 1. With the same seed, a larger number gives the same sets and more.
    seed : int or numpy.random.SeedSequence, default 0
        Seed of the draws.

    Returns
    -------
    ndarray of bool, shape (sets, samples)
        True for the samples of each set.

    Raises
    ------
    InputError
        If `theory`, `size`, `sets` or `seed` is invalid or out of its range.

    Examples
    --------
    >>> import physics
    >>> sets = physics.random_training_sets(physics.Operation(5), size=9, sets=4)
    >>> sets.shape, sets.sum(axis=1).tolist()
    ((4, 15), [9, 9, 9, 9])
    """
    operation = operation_of(theory)
    size = whole_number("size", size, 1)
    samples = len(operation.samples)
    if size > samples:
        raise InputError(f"size must be at most {samples}, the number of samples, got {size}")
    masks = np.zeros((whole_number("sets", sets, 1), samples), bool)
    masks[:, :size] = True
    return np.random.default_rng(parent_seed(seed)).permuted(masks, axis=1)


def random_orders(theory: Any, *, sets: int = 1, seed: Seed = 0) -> Int32:
    """Draw `sets` random orders of the samples, all with equal probability, int32 (sets, samples).

    Each row is a permutation of the numbers of the samples. Its first k entries are a random training set of
    size k, so one order serves all sizes. An `InputError` refuses an invalid `theory`, `sets` or `seed`.
    """
    samples = len(operation_of(theory).samples)
    orders = np.tile(np.arange(samples, dtype=np.int32), (whole_number("sets", sets, 1), 1))
    return np.random.default_rng(parent_seed(seed)).permuted(orders, axis=1)
