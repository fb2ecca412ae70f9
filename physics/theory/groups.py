"""Finite groups, whose addition or multiplication is learned (Liu, Appendices B and H)."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from physics.checks import whole_number
from physics.errors import InputError
from physics.values import Value, read_only

LARGEST_ORDER = 2000
"""Largest order of a group: a larger Cayley table would not fit in the memory of a small machine."""


@dataclass(frozen=True, eq=False)
class FiniteGroup(Value):
    """A finite group, given by its Cayley table. Two groups are equal if their tables are.

    Parameters
    ----------
    table : array_like of int, shape (n, n)
        ``table[a, b]`` is the element a·b; elements are 0 … n-1.
    name : str, default "group"
        Name in messages and figures.

    Raises
    ------
    InputError
        If `table` is not the table of a group. The message names the violated axiom and the elements.
    """

    table: NDArray[np.int64]
    name: str = field(default="group", compare=False)

    def __post_init__(self) -> None:
        table = np.asarray(self.table)
        if table.ndim != 2 or table.shape[0] != table.shape[1] or table.dtype.kind not in "iu":
            raise InputError(
                f"table must hold whole numbers in the shape (n, n), got {table.dtype} of shape {table.shape}"
            )
        if not 1 <= len(table) <= LARGEST_ORDER:
            raise InputError(f"table must have between 1 and {LARGEST_ORDER} elements, got {len(table)}")
        table = table.astype(np.int64)
        _check_axioms(table)
        self._set(table=read_only(table))

    @property
    def order(self) -> int:
        """Number of elements."""
        return len(self.table)

    @cached_property
    def commutes(self) -> bool:
        """Whether a·b = b·a for all elements."""
        return bool(np.array_equal(self.table, self.table.T))

    @cached_property
    def identity(self) -> int:
        """Number of the identity element."""
        return _identity(self.table)

    @cached_property
    def inverses(self) -> NDArray[np.int64]:
        """Number of the inverse of each element, (n,)."""
        return np.argmax(self.table == self.identity, axis=1)

    def __repr__(self) -> str:
        return f"FiniteGroup({self.name}, order {self.order})"


def cyclic(order: int) -> FiniteGroup:
    """Return the cyclic group, which is addition modulo `order`.

    Parameters
    ----------
    order : int
        Number of elements, at least 1.

    Returns
    -------
    FiniteGroup
        The group C_n; element k is the number k.

    Raises
    ------
    InputError
        If `order` is not a whole number of at least 1, or is too large for a table.

    Examples
    --------
    >>> import physics
    >>> physics.cyclic(3).table.tolist()
    [[0, 1, 2], [1, 2, 0], [2, 0, 1]]
    """
    order = whole_number("order", order, 1)
    elements = np.arange(_affordable(order))
    return FiniteGroup((elements[:, None] + elements) % order, f"C_{order}")


def direct_product(*groups: FiniteGroup) -> FiniteGroup:
    """Return the direct product of groups. The element (a, b) of two groups is a·|second| + b.

    With `cyclic` this gives every finite abelian group (Appendix B).

    Parameters
    ----------
    *groups : FiniteGroup
        At least one group.

    Returns
    -------
    FiniteGroup
        Its order is the product of the orders.

    Raises
    ------
    InputError
        If there is no group, an argument is not a group, or the product is too large for a table.

    Examples
    --------
    >>> import physics
    >>> physics.direct_product(physics.cyclic(2), physics.cyclic(3)).name
    'C_2 x C_3'
    """
    if not groups or not all(isinstance(group, FiniteGroup) for group in groups):
        raise InputError(f"direct_product needs at least one FiniteGroup, got {groups!r}")
    _affordable(int(np.prod([group.order for group in groups], dtype=object)))
    table = reduce(
        lambda left, right: np.kron(left, np.ones_like(right)) * len(right) + np.tile(right, left.shape),
        [group.table for group in groups],
    )
    return FiniteGroup(table, " x ".join(group.name for group in groups))


def symmetric(degree: int) -> FiniteGroup:
    """Return the group S_n of all permutations of `degree` points, in lexicographic order.

    Parameters
    ----------
    degree : int
        Number of points n, at least 1.

    Returns
    -------
    FiniteGroup
        The group of n! elements.

    Raises
    ------
    InputError
        If `degree` is not a whole number of at least 1, or is too large for a table.

    Examples
    --------
    >>> import physics
    >>> physics.symmetric(3).order
    6
    """
    degree = whole_number("degree", degree, 1)
    _affordable(_factorial(degree))
    return _of_permutations(list(itertools.permutations(range(degree))), f"S_{degree}")


def alternating(degree: int) -> FiniteGroup:
    """Return the group A_n of the even permutations of `degree` points, in lexicographic order.

    Parameters
    ----------
    degree : int
        Number of points n, at least 1.

    Returns
    -------
    FiniteGroup
        The group of n!/2 elements (of one element for n = 1).

    Raises
    ------
    InputError
        If `degree` is not a whole number of at least 1, or is too large for a table.

    Examples
    --------
    >>> import physics
    >>> physics.alternating(4).order
    12
    """
    degree = whole_number("degree", degree, 1)
    _affordable(_factorial(degree) // 2)
    even = [
        permutation
        for permutation in itertools.permutations(range(degree))
        if sum(a > b for a, b in itertools.combinations(permutation, 2)) % 2 == 0
    ]
    return _of_permutations(even, f"A_{degree}")


def dihedral(sides: int) -> FiniteGroup:
    """Return the group D_n of the 2n symmetries of a polygon with `sides` sides.

    Elements 0 … n-1 are the rotations r^k, elements n … 2n-1 the reflections r^k s, with s r = r⁻¹ s.

    Parameters
    ----------
    sides : int
        Number of sides n, at least 1.

    Returns
    -------
    FiniteGroup
        The group of 2n elements.

    Raises
    ------
    InputError
        If `sides` is not a whole number of at least 1, or is too large for a table.

    Examples
    --------
    >>> import physics
    >>> physics.dihedral(4).order
    8
    """
    sides = whole_number("sides", sides, 1)
    _affordable(2 * sides)
    flip, turn = np.divmod(np.arange(2 * sides), sides)
    sign = 1 - 2 * flip
    angle = (turn[:, None] + sign[:, None] * turn) % sides
    return FiniteGroup(angle + sides * (flip[:, None] ^ flip), f"D_{sides}")


def quaternion() -> FiniteGroup:
    """Return the group Q_8 of the unit quaternions, in the order 1, i, j, k, -1, -i, -j, -k.

    Returns
    -------
    FiniteGroup
        The group of 8 elements.

    Examples
    --------
    >>> import physics
    >>> i, j, k = 1, 2, 3
    >>> int(physics.quaternion().table[i, j]) == k
    True
    """
    unit = np.array([[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 1, 0]])
    minus = np.array([[0, 0, 0, 0], [0, 1, 0, 1], [0, 1, 1, 0], [0, 0, 1, 1]])  # i·i = -1, i·k = -j, …
    sign, axis = np.divmod(np.arange(8), 4)
    negative = sign[:, None] ^ sign ^ minus[np.ix_(axis, axis)]
    return FiniteGroup(unit[np.ix_(axis, axis)] + 4 * negative, "Q_8")


def from_permutations(generators: Sequence[Sequence[int]], name: str = "group") -> FiniteGroup:
    """Return the group that permutations generate (by SymPy), with elements in lexicographic order.

    Parameters
    ----------
    generators : sequence of permutations
        Permutations of 0 … n-1, all with the same n.
    name : str, default "group"
        Name of the group in messages and figures.

    Returns
    -------
    FiniteGroup

    Raises
    ------
    InputError
        If a generator is not a permutation, they differ in length, or the group is too large.
    ImportError
        If SymPy is not installed.
    """
    arrays = [tuple(int(point) for point in generator) for generator in generators]
    if not arrays:
        raise InputError("generators must hold at least one permutation, got none")
    for k, array in enumerate(arrays):
        if sorted(array) != list(range(len(arrays[0]))):
            raise InputError(
                f"generators[{k}] must be a rearrangement of 0 … {len(arrays[0]) - 1}, got {list(array)}"
            )
    try:
        from sympy.combinatorics import (  # type: ignore[import-untyped, unused-ignore]
            Permutation,
            PermutationGroup,
        )
    except ImportError:
        raise ImportError("from_permutations needs SymPy: pip install sympy") from None
    group = PermutationGroup([Permutation(list(array)) for array in arrays])
    _affordable(int(group.order()))
    return _of_permutations(sorted(tuple(element) for element in group.generate(af=True)), name)


def _of_permutations(elements: list[tuple[int, ...]], name: str) -> FiniteGroup:
    """Cayley table of permutations in lexicographic order; (a·b)(x) = a(b(x))."""
    array = np.array(elements, np.int64).reshape(len(elements), -1)
    products = array[np.arange(len(array))[:, None, None], array[None]]  # (a, b, x) -> a(b(x))
    place = {element: k for k, element in enumerate(elements)}
    table = [[place[tuple(product)] for product in row] for row in products.tolist()]
    return FiniteGroup(np.array(table), name)


def _check_axioms(table: NDArray[np.int64]) -> None:
    order = len(table)
    outside = np.argwhere((table < 0) | (table >= order))
    if len(outside):
        a, b = outside[0]
        raise InputError(
            f"table must be a group, but closure fails: {a}·{b} = {table[a, b]} is not among 0 … {order - 1}"
        )
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
            raise InputError(
                f"table must be a group, but associativity fails for ({a}, {b}, {c}): ({a}·{b})·{c} = "
                f"{left[a, c]} and {a}·({b}·{c}) = {right[a, c]}"
            )
        passed[b] = True
        while not passed[products := table[np.ix_(passed, passed)]].all():
            passed[products] = True
    inverse = (table == identity) & (table == identity).T
    missing = np.flatnonzero(~inverse.any(axis=1))
    if len(missing):
        raise InputError(f"table must be a group, but element {missing[0]} has no inverse")


def _identity(table: NDArray[np.int64]) -> int:
    elements = np.arange(len(table))
    neutral = (table == elements).all(axis=1) & (elements == table.T).all(axis=1)
    if not neutral.any():
        nearest = int(np.argmax((table == elements).sum(axis=1) + (elements == table.T).sum(axis=1)))
        row, column = table[nearest], table[:, nearest]
        b = int(np.argmax((row != elements) | (column != elements)))
        raise InputError(
            f"table must be a group, but no element is an identity: the closest is {nearest}, where "
            f"{nearest}·{b} = {row[b]} and {b}·{nearest} = {column[b]}"
        )
    return int(np.argmax(neutral))


def _affordable(order: int) -> int:
    if order > LARGEST_ORDER:
        raise InputError(f"a group must have at most {LARGEST_ORDER} elements, got {order}")
    return order


def _factorial(degree: int) -> int:
    return int(np.prod(np.arange(1, degree + 1), dtype=object))


def as_group(group: Any) -> FiniteGroup:
    """Return `group` itself, or the group of a Cayley table."""
    return group if isinstance(group, FiniteGroup) else FiniteGroup(group)
