"""Symmetries of a problem: the relabelings of the tokens that do not change it."""

from dataclasses import dataclass
from itertools import product
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from physics.checks import whole_number
from physics.errors import InputError
from physics.theory.groups import FiniteGroup, as_group
from physics.theory.operations import Operation

Permutations = NDArray[np.int64]
LARGEST = 2**20
"""Largest number of relabelings that are searched; a problem with more is refused."""


@dataclass(frozen=True, eq=False)
class Symmetry:
    """Relabelings of the tokens that do not change a problem, for the argument `symmetry` of `compare`.

    Attributes
    ----------
    name : str
        Name in tables.
    permutations : ndarray of int64, shape (n, tokens)
        Relabeling g sends token i to ``permutations[g, i]``; the identity is among the relabelings.
    affine : bool, default False
        Whether these are all maps i → u i + c (mod tokens) with a unit u, in the order of (u, c); see
        `affine_maps`. A Fourier transform then gives the overlaps of two shapes for all c at once.

    Examples
    --------
    >>> import analysis
    >>> first, second = analysis.comparison.affine_maps(5), analysis.comparison.no_relabelling(5)
    >>> both = first & second  # relabelings that both problems allow
    >>> len(both), both.permutations.tolist()
    (1, [[0, 1, 2, 3, 4]])
    """

    name: str
    permutations: Permutations
    affine: bool = False

    @property
    def tokens(self) -> int:
        """Number of tokens that the relabelings permute."""
        return self.permutations.shape[1]

    def __len__(self) -> int:
        return len(self.permutations)

    def __and__(self, other: "Symmetry") -> "Symmetry":
        """Return the relabelings that both this problem and the problem of `other` allow."""
        if len(self) == len(other) and np.array_equal(self.permutations, other.permutations):
            return self
        allowed = {tuple(row) for row in other.permutations.tolist()}
        kept = [row for row in self.permutations.tolist() if tuple(row) in allowed]
        return Symmetry(f"{self.name} and {other.name}", np.array(kept, np.int64))


def no_relabelling(tokens: int) -> Symmetry:
    """Return the symmetry that only allows rotations and reflections, and no relabeling.

    Parameters
    ----------
    tokens : int
        Number of tokens, at least 1.

    Returns
    -------
    Symmetry
        The identity alone, for the argument `symmetry` of `compare`.

    Raises
    ------
    InputError
        If `tokens` is not a whole number of at least 1.

    Examples
    --------
    >>> import analysis
    >>> analysis.comparison.no_relabelling(3).permutations.tolist()
    [[0, 1, 2]]
    """
    return Symmetry("no relabeling", np.arange(whole_number("tokens", tokens, 1))[None])


def affine_maps(tokens: int) -> Symmetry:
    """Return the maps i → u i + c (mod tokens) with a unit u, which permute the classes of modular sums.

    A unit is a number from 1 to `tokens` that has no factor in common with `tokens`.

    Parameters
    ----------
    tokens : int
        Number of tokens, at least 1, which is also the modulus.

    Returns
    -------
    Symmetry
        All such maps, for the argument `symmetry` of `compare`. A prime number p of tokens has p (p - 1).

    Raises
    ------
    InputError
        If `tokens` is not a whole number of at least 1.

    Examples
    --------
    >>> import analysis
    >>> analysis.comparison.affine_maps(3).permutations.tolist()
    [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 2, 1], [1, 0, 2], [2, 1, 0]]
    """
    p = whole_number("tokens", tokens, 1)
    units = np.array([u for u in range(1, p + 1) if gcd(u, p) == 1])
    maps = (units[:, None, None] * np.arange(p) + np.arange(p)[:, None]) % p
    return Symmetry(f"i → u i + c (mod {p})", maps.reshape(-1, p), affine=True)


def symmetry_of(theory: Any, pairs: Any = None) -> Symmetry:
    """Return all relabelings of the tokens that permute the classes of a problem.

    Parameters
    ----------
    theory : Operation, EffectiveTheory or FiniteGroup
        Problem that is learned. For a group the relabelings are the maps ``i → z α(i)`` with an automorphism
        α and an element z of the center. They are the bijections f for which ``f(i)·f(j)`` is a function of
        ``i·j``. Addition modulo the number of tokens p is the cyclic group. Addition without a modulus, or
        with one that no sum reaches, only allows the reversal ``i → p - 1 - i`` and the identity.
    pairs : array_like of int, shape (n, 2), optional
        Training set, which relabelings must map onto itself; by default all pairs.

    Returns
    -------
    Symmetry
        The relabelings, for the argument `symmetry` of `compare`.

    Raises
    ------
    InputError
        If `theory` is of another type, `pairs` is not a training set, or the problem has more than 2^20
        relabelings. Also if it adds modulo a number that some sums reach, other than the number of tokens.

    Examples
    --------
    >>> import analysis, physics
    >>> plain = analysis.comparison.symmetry_of(physics.EffectiveTheory(4))
    >>> plain.name, plain.permutations.tolist()
    ('reversal', [[0, 1, 2, 3], [3, 2, 1, 0]])
    """
    operation = Operation(group=theory) if isinstance(theory, FiniteGroup) else theory
    operation = getattr(operation, "operation", operation)
    if not isinstance(operation, Operation):
        raise InputError(
            f"theory must be an Operation, EffectiveTheory or group, got {type(theory).__name__}"
        )
    p = operation.tokens
    if operation.group is not None:
        found = _group_maps(operation.group)
    elif operation.modulus == p:
        found = affine_maps(p)
    elif operation.modulus is None or operation.modulus >= 2 * p - 1:
        found = Symmetry("reversal", np.array([np.arange(p), np.arange(p)[::-1]]))
    else:
        raise InputError(
            f"the modulus of theory must be {p}, its number of tokens, or at least {2 * p - 1}, where no sum "
            f"wraps around, to have relabelings, got {operation.modulus}"
        )
    return found if pairs is None else _stabiliser(found, operation, pairs)


def automorphisms(group: Any) -> Permutations:
    """Return all automorphisms of a finite group: the bijections that preserve its products.

    Parameters
    ----------
    group : FiniteGroup, or array_like of int, shape (order, order)
        The group, or its Cayley table.

    Returns
    -------
    ndarray of int64, shape (n, order)
        A row for each automorphism; entry g is the image of the element g.

    Raises
    ------
    InputError
        If there are more than 2^20 candidates for the images of a generating set, or the table is not that of
        a group.

    Examples
    --------
    >>> import analysis
    >>> analysis.comparison.automorphisms([[0, 1, 2], [1, 2, 0], [2, 0, 1]]).tolist()  # addition modulo 3
    [[0, 1, 2], [0, 2, 1]]
    """
    group = as_group(group)
    orders = _orders(group)
    generators = _generators(group)
    images = [np.flatnonzero(orders == orders[g]) for g in generators]
    candidates = int(np.prod([len(image) for image in images], dtype=object))
    if candidates > LARGEST:
        raise InputError(
            f"group must leave at most {LARGEST} images of its generators to try, got {candidates}"
        )
    found = [_extended(group, generators, choice) for choice in product(*images)]
    return np.array([one for one in found if one is not None], np.int64)


def _stabiliser(symmetry: Symmetry, operation: Operation, pairs: Any) -> Symmetry:
    """Return the relabelings of an operation that map the training set `pairs` (n, 2) onto itself."""
    mask = operation.mask(pairs)
    if mask.all():
        return symmetry
    place = np.zeros((operation.tokens, operation.tokens), bool)
    i, j = operation.samples[mask].T
    place[i, j] = True
    if operation.commutes:
        place |= place.T
    kept = [bool(place[g[i], g[j]].all()) for g in symmetry.permutations]
    return Symmetry(f"{symmetry.name} within the training set", symmetry.permutations[kept])


def _group_maps(group: FiniteGroup) -> Symmetry:
    """Return the relabelings i → z α(i) of a group; the identity comes first."""
    p, elements = group.order, np.arange(group.order)
    if group.commutes and np.array_equal(group.table, (elements[:, None] + elements) % p):
        return affine_maps(p)
    center = np.flatnonzero((group.table == group.table.T).all(axis=1))
    maps = automorphisms(group)
    if len(maps) * len(center) > LARGEST:
        raise InputError(
            f"group must have at most {LARGEST} relabelings, got {len(maps)} automorphisms times "
            f"{len(center)} elements of the center"
        )
    moved = group.table[center[None, :, None], maps[:, None, :]].reshape(-1, p)
    first = np.lexsort(np.append(moved.T[::-1], [~(moved == elements).all(axis=1)], axis=0))
    return Symmetry(f"automorphisms of {group.name} and its center", moved[first])


def _orders(group: FiniteGroup) -> NDArray[np.int64]:
    """Return the order of each element."""
    orders = np.zeros(group.order, np.int64)
    power, n = np.arange(group.order), 1
    while not orders.all():
        orders[(power == group.identity) & (orders == 0)] = n
        power, n = group.table[power, np.arange(group.order)], n + 1
    return orders


def _generators(group: FiniteGroup) -> list[int]:
    """Return a small generating set, by repeatedly adding the missing element of the highest order."""
    orders = _orders(group)
    chosen: list[int] = []
    reached = np.zeros(group.order, bool)
    reached[group.identity] = True
    while not reached.all():
        chosen.append(int(np.argmax(np.where(reached, 0, orders))))
        reached[chosen[-1]] = True
        while not reached[products := group.table[np.ix_(reached, reached)]].all():
            reached[products] = True
    return chosen


def _extended(group: FiniteGroup, generators: list[int], images: tuple[Any, ...]) -> Permutations | None:
    """Extend the images of generators to an automorphism (order,); return None if there is none."""
    image = np.full(group.order, -1)
    image[group.identity] = group.identity
    known = [group.identity]
    for element in known:
        for generator, target in zip(generators, images, strict=True):
            moved, expected = group.table[element, generator], group.table[image[element], target]
            if image[moved] < 0:
                image[moved] = expected
                known.append(moved)
            elif image[moved] != expected:
                return None
    bijective = len(np.unique(image)) == group.order
    return image if bijective and (image[group.table] == group.table[np.ix_(image, image)]).all() else None
