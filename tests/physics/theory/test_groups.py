import itertools

import numpy as np
import pytest

from physics import FiniteGroup, InputError, cyclic, symmetric
from physics.theory import alternating, dihedral, direct_product, quaternion


def orders(group):
    """How many elements there are of each order."""
    counts = {}
    for a in range(group.order):
        power, n = a, 1
        while power != group.identity:
            power, n = group.table[power, a], n + 1
        counts[n] = counts.get(n, 0) + 1
    return counts


@pytest.mark.parametrize(
    ("group", "order", "commutes", "elements"),
    [
        (cyclic(6), 6, True, {1: 1, 2: 1, 3: 2, 6: 2}),
        (direct_product(cyclic(2), cyclic(3)), 6, True, {1: 1, 2: 1, 3: 2, 6: 2}),
        (direct_product(cyclic(2), cyclic(2), cyclic(2)), 8, True, {1: 1, 2: 7}),
        (symmetric(3), 6, False, {1: 1, 2: 3, 3: 2}),
        (symmetric(4), 24, False, {1: 1, 2: 9, 3: 8, 4: 6}),
        (alternating(4), 12, False, {1: 1, 2: 3, 3: 8}),
        (dihedral(4), 8, False, {1: 1, 2: 5, 4: 2}),
        (dihedral(5), 10, False, {1: 1, 2: 5, 5: 4}),
        (quaternion(), 8, False, {1: 1, 2: 1, 4: 6}),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_known_groups(group, order, commutes, elements):
    assert group.order == order
    assert group.commutes is commutes
    assert orders(group) == elements
    assert (group.table[np.arange(order), group.inverses] == group.identity).all()


def test_direct_product_multiplies_part_by_part():
    left, right = cyclic(3), symmetric(3)
    product = direct_product(left, right)
    for (a, b), (c, d) in itertools.product(itertools.product(range(3), range(6)), repeat=2):
        assert product.table[6 * a + b, 6 * c + d] == 6 * left.table[a, c] + right.table[b, d]


def test_permutations_compose_as_functions():
    elements = list(itertools.permutations(range(3)))
    table = symmetric(3).table
    for a, b in itertools.product(range(6), repeat=2):
        assert elements[table[a, b]] == tuple(elements[a][elements[b][x]] for x in range(3))


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ([[0, 1], [1, 2]], r"closure fails: 1·1 = 2 is not among 0 … 1"),
        ([[0, 0], [1, 1]], "no element is an identity$"),
        (
            [[0, 1, 2], [1, 0, 0], [2, 0, 0]],
            r"associativity fails for \(1, 1, 2\): \(1·1\)·2 = 2 and 1·\(1·2\) = 1",
        ),
        ([[0, 1], [1, 1]], r"element 1 has no inverse"),
        (
            [[0, 1, 2], [1, 2, 0]],
            r"table must hold whole numbers in the shape \(n, n\), got int64 of shape \(2, 3\)",
        ),
        ([[0.0, 1.0], [1.0, 0.0]], r"table must hold whole numbers"),
        (np.zeros((0, 0), int), r"between 1 and 2000 elements, got 0"),
    ],
)
def test_not_a_group(table, sentence):
    with pytest.raises(InputError, match=sentence):
        FiniteGroup(table)


def test_a_loop_that_is_not_associative_is_found_wherever_it_fails():
    # A Latin square with identity and inverses: only associativity tells it from a group.
    table = [[0, 1, 2, 3, 4], [1, 0, 3, 4, 2], [2, 4, 0, 1, 3], [3, 2, 4, 0, 1], [4, 3, 1, 2, 0]]
    with pytest.raises(InputError, match="associativity fails"):
        FiniteGroup(table)
    # Times the cyclic group of three, whose elements come first: they generate each other, and pass.
    loop, cycle = np.array(table), cyclic(3).table
    product = (3 * loop[:, None, :, None] + cycle[None, :, None, :]).reshape(15, 15)
    with pytest.raises(InputError, match="associativity fails"):
        FiniteGroup(product)


def test_a_group_is_found_under_every_relabelling():
    rng = np.random.default_rng(0)
    for group in (symmetric(4), quaternion(), direct_product(cyclic(4), cyclic(3))):
        relabel = rng.permutation(group.order)
        back = np.argsort(relabel)
        table = relabel[group.table[np.ix_(back, back)]]
        assert FiniteGroup(table).identity == relabel[group.identity]
        wrong = table.copy()
        wrong[1, 2], wrong[1, 3] = table[1, 3], table[1, 2]
        with pytest.raises(InputError, match=r"table must be a group, but .*(fails|identity|inverse)"):
            FiniteGroup(wrong)
