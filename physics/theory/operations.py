"""What is learned: finite groups, operations on symbols, their samples, and training sets drawn from them."""

import itertools
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any

import numpy as np

from physics.checks import InputError, misfit, regular_array, require_memory, whole_number
from physics.seeds import Seed, parent_seed
from physics.values import Int32, Integers, Mask, Value, read_only

LARGEST_ORDER = 2000
"""Largest order of a group; the table of a much larger one would not fit into memory."""
LARGEST_DEGREE = 6
"""Largest number of points of a group of all permutations, or of all even ones, within `LARGEST_ORDER`."""


@dataclass(frozen=True, eq=False)
class FiniteGroup(Value):
    """A finite group, given by its Cayley table, as an operation that networks or theories can learn.

    Two groups are equal if their tables are. Functions such as `cyclic` and `symmetric` make common groups.

    Parameters
    ----------
    table : array_like of int, shape (n, n)
        ``table[a, b]`` is the number of the product a·b; elements are numbered from 0 to n - 1, n ≤ 2000.
    name : str, default "group"
        Name in messages and figures.

    Raises
    ------
    InputError
        If `table` is not the table of a group. The message names the violated axiom and the elements.

    Examples
    --------
    >>> import physics
    >>> parity = physics.FiniteGroup([[0, 1], [1, 0]], name="parity")
    >>> parity.order, parity.commutes, parity.inverses.tolist()
    (2, True, [0, 1])
    """

    table: Integers
    name: str = field(default="group", compare=False)

    def __post_init__(self) -> None:
        table = regular_array("table", self.table)
        if table.ndim != 2 or table.shape[0] != table.shape[1] or table.dtype.kind not in "iu":
            raise misfit("table", table, "hold whole numbers in the shape (n, n)")
        if not 1 <= len(table) <= LARGEST_ORDER:
            raise InputError(f"table must have between 1 and {LARGEST_ORDER} elements, got {len(table)}")
        table = table.astype(np.int64)
        _check_axioms(table)
        self._set(table=read_only(table))

    @property
    def order(self) -> int:
        """Number n of elements."""
        return len(self.table)

    @cached_property
    def commutes(self) -> bool:
        """Whether a·b = b·a for all elements a and b, that is, whether the group is commutative."""
        return bool(np.array_equal(self.table, self.table.T))

    @cached_property
    def identity(self) -> int:
        """Number of the identity element, the element e with e·a = a·e = a."""
        return _identity(self.table)

    @cached_property
    def inverses(self) -> Integers:
        """Number of the inverse of each element, as an array of int64 of shape (n,)."""
        return np.argmax(self.table == self.identity, axis=1)

    def __repr__(self) -> str:
        return f"FiniteGroup({self.name}, order {self.order})"


def cyclic(order: int) -> FiniteGroup:
    """Return the cyclic group of a given order, which is addition modulo `order`.

    Parameters
    ----------
    order : int
        Number of elements n, from 1 to 2000.

    Returns
    -------
    FiniteGroup
        The group C_n; element k is the number k.

    Raises
    ------
    InputError
        If `order` is out of its range.

    Examples
    --------
    >>> import physics
    >>> physics.cyclic(3).table.tolist()
    [[0, 1, 2], [1, 2, 0], [2, 0, 1]]
    """
    order = whole_number("order", order, 1, LARGEST_ORDER)
    elements = np.arange(order)
    return FiniteGroup((elements[:, None] + elements) % order, f"C_{order}")


def direct_product(*groups: FiniteGroup) -> FiniteGroup:
    """Return the direct product of groups, whose elements are tuples with one element of each group.

    Every finite commutative group is isomorphic to a product of cyclic groups (Liu, Appendix B).

    Parameters
    ----------
    *groups : FiniteGroup
        At least one group.

    Returns
    -------
    FiniteGroup
        Its order is the product of the orders. For two groups, the element (a, b) has the number a·n + b,
        where n is the order of the second group.

    Raises
    ------
    InputError
        If there is no group, an argument is not a group, or the product has more than 2000 elements.

    Examples
    --------
    >>> import physics
    >>> product = physics.theory.direct_product(physics.cyclic(2), physics.cyclic(3))
    >>> product.name, product.order
    ('C_2 x C_3', 6)
    """
    if not groups or not all(isinstance(group, FiniteGroup) for group in groups):
        got = ", ".join(type(group).__name__ for group in groups) or "none"
        raise InputError(f"groups must be at least one FiniteGroup and nothing else, got {got}")
    order = int(np.prod([group.order for group in groups], dtype=object))
    if order > LARGEST_ORDER:
        raise InputError(f"groups must give a group of at most {LARGEST_ORDER} elements, got one of {order}")
    table = reduce(
        lambda left, right: np.kron(left, np.ones_like(right)) * len(right) + np.tile(right, left.shape),
        [group.table for group in groups],
    )
    return FiniteGroup(table, " x ".join(group.name for group in groups))


def symmetric(degree: int) -> FiniteGroup:
    """Return the symmetric group S_n of all permutations of n points.

    Parameters
    ----------
    degree : int
        Number of points n, from 1 to 6.

    Returns
    -------
    FiniteGroup
        The group of n! permutations in lexicographic order; a·b applies b first.

    Raises
    ------
    InputError
        If `degree` is out of its range.

    Examples
    --------
    >>> import physics
    >>> group = physics.symmetric(3)
    >>> group.order, group.commutes
    (6, False)
    """
    degree = whole_number("degree", degree, 1, LARGEST_DEGREE)
    return _of_permutations(list(itertools.permutations(range(degree))), f"S_{degree}")


def alternating(degree: int) -> FiniteGroup:
    """Return the alternating group A_n of the even permutations of n points.

    Parameters
    ----------
    degree : int
        Number of points n, from 1 to 6.

    Returns
    -------
    FiniteGroup
        The group of n!/2 permutations (of 1 for n = 1) in lexicographic order; a·b applies b first.

    Raises
    ------
    InputError
        If `degree` is out of its range.

    Examples
    --------
    >>> import physics
    >>> physics.theory.alternating(4).order
    12
    """
    degree = whole_number("degree", degree, 1, LARGEST_DEGREE)
    even = [
        permutation
        for permutation in itertools.permutations(range(degree))
        if sum(a > b for a, b in itertools.combinations(permutation, 2)) % 2 == 0
    ]
    return _of_permutations(even, f"A_{degree}")


def dihedral(sides: int) -> FiniteGroup:
    """Return the dihedral group D_n of the rotations and reflections of a regular polygon with n sides.

    Parameters
    ----------
    sides : int
        Number of sides n, from 1 to 1000. For n = 1 and n = 2, the same rules define groups of 2 and 4
        elements.

    Returns
    -------
    FiniteGroup
        The group of 2n elements. Elements 0 … n-1 are the rotations r^k, and elements n … 2n-1 the
        reflections r^k s, with s r = r⁻¹ s.

    Raises
    ------
    InputError
        If `sides` is out of its range.

    Examples
    --------
    >>> import physics
    >>> physics.theory.dihedral(4).order
    8
    """
    sides = whole_number("sides", sides, 1, LARGEST_ORDER // 2)
    flip, turn = np.divmod(np.arange(2 * sides), sides)
    sign = 1 - 2 * flip
    angle = (turn[:, None] + sign[:, None] * turn) % sides
    return FiniteGroup(angle + sides * (flip[:, None] ^ flip), f"D_{sides}")


def quaternion() -> FiniteGroup:
    """Return the quaternion group Q_8 of the unit quaternions ±1, ±i, ±j and ±k.

    Returns
    -------
    FiniteGroup
        The group of 8 elements, in the order 1, i, j, k, -1, -i, -j, -k.

    Examples
    --------
    >>> import physics
    >>> i, j, k = 1, 2, 3
    >>> int(physics.theory.quaternion().table[i, j]) == k
    True
    """
    unit = np.array([[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 1, 0]])
    minus = np.array([[0, 0, 0, 0], [0, 1, 0, 1], [0, 1, 1, 0], [0, 0, 1, 1]])  # i·i = -1, i·k = -j, …
    sign, axis = np.divmod(np.arange(8), 4)
    negative = sign[:, None] ^ sign ^ minus[np.ix_(axis, axis)]
    return FiniteGroup(unit[np.ix_(axis, axis)] + 4 * negative, "Q_8")


def _of_permutations(elements: list[tuple[int, ...]], name: str) -> FiniteGroup:
    """Return the group of these permutations, which are in lexicographic order; (a·b)(x) = a(b(x))."""
    array = np.array(elements, np.int32).reshape(len(elements), -1)
    place = {element.tobytes(): k for k, element in enumerate(array)}
    table = [np.array([place[product.tobytes()] for product in a[array]]) for a in array]
    return FiniteGroup(np.array(table), name)


def _check_axioms(table: Integers) -> None:
    order = len(table)
    outside = np.argwhere((table < 0) | (table >= order))
    if len(outside):
        a, b = outside[0]
        outer = f"{table[a, b]} is not among 0 … {order - 1}"
        raise InputError(f"table must be a group, but closure fails: {a}·{b} = {outer}")
    identity = _identity(table)
    # Light's test: the elements b with (a·b)·c = a·(b·c) for all a, c are closed under the product, so that
    # it is enough to try those that generate the rest.
    passed = np.zeros(order, bool)
    while not passed.all():
        b = int(np.argmin(passed))
        left, right = table[table[:, b]], table[:, table[b]]
        wrong = np.argwhere(left != right)
        if len(wrong):
            a, c = wrong[0]
            unlike = f"({a}·{b})·{c} = {left[a, c]} and {a}·({b}·{c}) = {right[a, c]}"
            raise InputError(f"table must be a group, but associativity fails for ({a}, {b}, {c}): {unlike}")
        passed[b] = True
        while not passed[products := table[np.ix_(passed, passed)]].all():
            passed[products] = True
    inverse = (table == identity) & (table == identity).T
    missing = np.flatnonzero(~inverse.any(axis=1))
    if len(missing):
        raise InputError(f"table must be a group, but element {missing[0]} has no inverse")


def _identity(table: Integers) -> int:
    elements = np.arange(len(table))
    neutral = (table == elements).all(axis=1) & (elements == table.T).all(axis=1)
    if not neutral.any():
        raise InputError("table must be a group, but no element is an identity")
    return int(np.argmax(neutral))


def as_group(group: Any) -> FiniteGroup:
    """Return `group` itself if it is a `FiniteGroup`, and the group with this Cayley table otherwise.

    A table is an array_like of int of shape (n, n). An `InputError` says what is wrong with any other value.
    """
    if isinstance(group, str):
        raise InputError(f"group must be a FiniteGroup or a Cayley table, got {group!r}")
    return group if isinstance(group, FiniteGroup) else FiniteGroup(group)


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

    tokens: int = None  # type: ignore[assignment]  # __post_init__ sets the default
    modulus: int | None = None
    group: FiniteGroup | None = None

    def __post_init__(self) -> None:
        if self.modulus is not None:
            self._set(modulus=whole_number("modulus", self.modulus, 2))
        if self.group is not None:
            if self.modulus is not None:
                raise InputError("modulus and group must not be given together, got both")
            self._set(group=as_group(self.group))
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
        return pairs_within(self.label)

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


def pairs_within(label: Int32) -> int:
    """Count the pairs of different samples with the same `label` (samples,): their parallelograms."""
    sizes = np.bincount(label).astype(np.int64)
    return int((sizes * (sizes - 1) // 2).sum())


def tokens_of(tokens: Any, group: FiniteGroup | None, default: int, *, minimum: int) -> int:
    """Return the number of tokens: `tokens`, or the order of the group, or else `default`.

    An `InputError` refuses a number below `minimum`, and `tokens` other than the order of the group.
    """
    order = None if group is None else whole_number("the order of the group", group.order, minimum)
    if tokens is None:
        return default if order is None else order
    tokens = whole_number("tokens", tokens, minimum)
    if order not in (None, tokens):
        raise InputError(f"tokens must be {order}, the order of the group, got {tokens}")
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
    samples = len(operation.samples)
    size = whole_number("size", size, 1, samples)
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
