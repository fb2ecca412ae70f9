"""Finite groups, whose multiplication is learned, such as addition modulo n (Liu, Appendices B and H)."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any

import numpy as np

from physics.checks import InputError, misfit, regular_array, sequence, whole_number
from physics.values import Integers, Value, read_only

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
    _check_order("groups", int(np.prod([group.order for group in groups], dtype=object)))
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


def from_permutations(generators: Sequence[Sequence[int]], name: str = "group") -> FiniteGroup:
    """Return the group that some permutations generate, for groups that have no function of their own.

    Parameters
    ----------
    generators : sequence of permutations
        At least one permutation of 0 … n-1, given as the sequence of images of 0, 1, …; n is the same for
        all.
    name : str, default "group"
        Name of the group in messages and figures.

    Returns
    -------
    FiniteGroup
        All products of the generators in lexicographic order; a·b applies b first.

    Raises
    ------
    InputError
        If a generator is not a permutation, they differ in length, or the group has more than 2000 elements.
    ImportError
        If SymPy, which finds the elements, is not installed.

    Examples
    --------
    >>> import physics
    >>> physics.theory.from_permutations([[1, 2, 0, 3, 4], [0, 1, 2, 4, 3]], name="C_3 x C_2")
    FiniteGroup(C_3 x C_2, order 6)
    """
    given = [sequence(f"generators[{k}]", one) for k, one in enumerate(sequence("generators", generators))]
    arrays = [tuple(whole_number(f"generators[{k}]", x, 0) for x in one) for k, one in enumerate(given)]
    if not arrays:
        raise InputError("generators must hold at least one permutation, got none")
    for k, array in enumerate(arrays):
        if sorted(array) != list(range(len(arrays[0]))):
            last = len(arrays[0]) - 1
            raise InputError(f"generators[{k}] must be a rearrangement of 0 … {last}, got {list(array)}")
    try:
        from sympy.combinatorics import (  # type: ignore[import-untyped, unused-ignore]
            Permutation,
            PermutationGroup,
        )
    except ImportError:
        raise ImportError("from_permutations needs SymPy: pip install sympy") from None
    group = PermutationGroup([Permutation(list(array)) for array in arrays])
    _check_order("generators", int(group.order()))
    return _of_permutations(sorted(tuple(element) for element in group.generate(af=True)), name)


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


def _check_order(name: str, order: int) -> None:
    if order > LARGEST_ORDER:
        raise InputError(f"{name} must give a group of at most {LARGEST_ORDER} elements, got one of {order}")


def as_group(group: Any) -> FiniteGroup:
    """Return `group` itself if it is a `FiniteGroup`, and the group with this Cayley table otherwise.

    A table is an array_like of int of shape (n, n). An `InputError` says what is wrong with any other value.
    """
    if isinstance(group, str):
        raise InputError(f"group must be a FiniteGroup or a Cayley table, got {group!r}")
    return group if isinstance(group, FiniteGroup) else FiniteGroup(group)
