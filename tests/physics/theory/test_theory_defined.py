"""Operations, groups, training sets and rates where an option is rarely met, each from its definition."""

from itertools import pairwise

import numpy as np
import pytest

import physics
from physics import (
    EffectiveTheory,
    FiniteGroup,
    InputError,
    Operation,
    alternating,
    cyclic,
    dihedral,
    direct_product,
    from_permutations,
    quaternion,
    symmetric,
)
from physics.theory import groups
from physics.theory.groups import as_group
from physics.theory.operations import class_rule, random_orders
from physics.theory.quality import count_parallelograms, list_parallelograms

S_3 = Operation(group=symmetric(3))
FIVE = EffectiveTheory(5)
LINE = np.arange(5.0)[:, None]
TABLE = "table must hold whole numbers in the shape (n, n)"
PAIRS = "pairs must be whole numbers of the shape (n, 2)"
REPEATED = "pairs must not repeat a sample, got"
MASKS = "masks must be bool of the shape (sets, 15)"
EMPTY = "masks must mark at least 1 sample in each set, got none in set"


def said(call):
    with pytest.raises(InputError) as error:
        call()
    return str(error.value)


# -- groups -----------------------------------------------------------------------------------------------


def test_the_smallest_groups_of_each_kind():
    for made, order, name in (
        (cyclic(1), 1, "C_1"), (symmetric(1), 1, "S_1"), (symmetric(2), 2, "S_2"), (alternating(1), 1, "A_1"),
        (alternating(2), 1, "A_2"), (alternating(3), 3, "A_3"), (dihedral(1), 2, "D_1"),
        (dihedral(2), 4, "D_2"), (direct_product(cyclic(3)), 3, "C_3"),
    ):  # fmt: skip
        assert (made.order, made.commutes, repr(made)) == (order, True, f"FiniteGroup({name}, order {order})")
        assert (made.table[made.identity] == np.arange(order)).all()
    assert (dihedral(2).table.diagonal() == 0).all(), "the group of four"
    assert direct_product(cyclic(3)) == alternating(3) == cyclic(3)


def test_elements_are_numbered_as_the_functions_say():
    i, j, k = 1, 2, 3
    t = quaternion().table
    assert [t[i, j], t[j, k], t[k, i], t[j, i], t[i, i], t[k, k], t[4, 4], t[4, i]] == [
        3,
        1,
        2,
        7,
        4,
        4,
        0,
        5,
    ]
    t = dihedral(5).table
    r, s = 1, 5
    assert [t[r, s], t[s, r], t[s, s], t[r, 4], t[5 + 2, 5 + 4]] == [6, 9, 0, 0, 3]
    assert alternating(3).table.tolist() == cyclic(3).table.tolist(), "012, 120, 201"


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: FiniteGroup([0, 1]), f"{TABLE}, got int64 of shape (2,)"),
        (
            lambda: FiniteGroup([[False, True], [True, False]]),
            f"{TABLE}, got bool of shape (2, 2)",
        ),
        (
            lambda: FiniteGroup([[0, 1], [-1, 0]]),
            "table must be a group, but closure fails: 1·0 = -1 is not among 0 … 1",
        ),
        (
            lambda: FiniteGroup([[1, 0, 2], [0, 1, 1], [2, 2, 0]]),
            "table must be a group, but no element is an identity: the closest is 1, where 1·2 = 1 and "
            "2·1 = 2",
        ),
        (
            lambda: direct_product(cyclic(2), [[0]]),
            "groups must be at least one FiniteGroup and nothing else, got FiniteGroup, list",
        ),
        (
            lambda: from_permutations([[1, 0], [0, 1, 2]]),
            "generators[1] must be a rearrangement of 0 … 1, got [0, 1, 2]",
        ),
        (lambda: from_permutations(5), "generators must be a sequence, got 5"),
        (lambda: from_permutations([1, 2]), "generators[0] must be a sequence, got 1"),
        (
            lambda: as_group("C_3"),
            "group must be a FiniteGroup, such as physics.symmetric(3), or a Cayley table, got 'C_3'",
        ),
        (lambda: class_rule(6, group=symmetric(3)), "group must commute, because E_i + E_j does, got S_3"),
        (lambda: class_rule(6, 3, cyclic(6)), "modulus and group must not be given together, got both"),
    ],
)  # fmt: skip
def test_what_is_no_group_is_refused(call, sentence):
    assert said(call) == sentence


def test_permutations_generate_no_more_than_the_largest_order(monkeypatch):
    pytest.importorskip("sympy")
    assert from_permutations([[0, 1]], "none").order == 1
    monkeypatch.setattr(groups, "LARGEST_ORDER", 6)
    found = from_permutations([[1, 0, 2], [1, 2, 0]], "S")
    assert (found.order, found.name, from_permutations([[1, 0]]).name) == (6, "S", "group")
    monkeypatch.setattr(groups, "LARGEST_ORDER", 5)
    sentence = "generators must give a group of at most 5 elements, got one of 6"
    assert said(lambda: from_permutations([[1, 0, 2], [1, 2, 0]])) == sentence


# -- operations and training sets -------------------------------------------------------------------------


def test_operations_have_the_names_that_messages_use():
    names = [Operation().name, Operation(5, np.int64(3)).name, S_3.name]
    assert names == ["addition, p = 10", "addition, p = 5, mod 3", "S_3"]
    assert type(Operation(5, np.int64(3)).modulus) is int
    assert (class_rule(7).modulus, class_rule(7, 3).modulus, class_rule(4, group=cyclic(4)).modulus) == (
        7,
        3,
        None,
    )


@pytest.mark.parametrize("operation", [Operation(4), Operation(4, 3), S_3], ids=lambda one: one.name)
def test_samples_by_class_are_all_samples_in_their_order(operation):
    members, starts = operation.by_class
    assert (members.dtype, starts.dtype, starts[0], starts[-1]) == (np.int32, np.int32, 0, len(members))
    for label, (begin, end) in enumerate(pairwise(starts)):
        assert members[begin:end].tolist() == np.flatnonzero(operation.label == label).tolist()
    assert operation.samples.tolist() == sorted(operation.samples.tolist())
    assert (operation.samples.dtype, operation.label.dtype) == (np.int32, np.int32)
    pairs = len(operation.samples)
    assert pairs == (36 if operation is S_3 else 10)
    for array in (operation.samples, operation.label, members, starts, operation.mask(None)):
        assert not array.flags.writeable


@pytest.mark.parametrize(
    ("operation", "pairs", "sentence"),
    [
        (Operation(5), [(True, False)], f"{PAIRS}, got bool of shape (1, 2)"),
        (Operation(5), [[(0, 1)]], f"{PAIRS}, got int64 of shape (1, 1, 2)"),
        (Operation(5), [(0, 1), (2, 5), (-1, 9)], "pairs must hold symbols from 0 to 4, got (2, 5)"),
        (Operation(5), [(0, 4)] * 3, f"{REPEATED} (0, 4) 3 times, where (4, 0) is the same sample"),
        (Operation(5), [(3, 4), (2, 2), (4, 3), (2, 2)], f"{REPEATED} (2, 2) 2 times"),
        (S_3, [(5, 0), (5, 0)], f"{REPEATED} (5, 0) 2 times"),
    ],
)  # fmt: skip
def test_a_training_set_that_is_none_is_refused(operation, pairs, sentence):
    assert said(lambda: operation.mask(pairs)) == sentence


def test_a_training_set_names_samples_in_either_order_where_they_are_one():
    for pairs in ([(4, 0), (1, 1)], np.array([[1, 1], [0, 4]], np.uint8)):
        mask = Operation(5).mask(pairs)
        assert Operation(5).samples[mask].tolist() == [[0, 4], [1, 1]]
    assert S_3.samples[S_3.mask([(4, 0), (0, 4)])].tolist() == [[0, 4], [4, 0]]
    assert not mask.flags.writeable


@pytest.mark.parametrize(
    ("masks", "sentence"),
    [
        (np.ones(15, bool), f"{MASKS}, got bool of shape (15,)"),
        (np.ones((1, 1, 15), bool), f"{MASKS}, got bool of shape (1, 1, 15)"),
        (np.ones((2, 14), bool), f"{MASKS}, got bool of shape (2, 14)"),
        (np.arange(4)[:, None] * np.ones(15) % 2 > 0, f"{EMPTY} 0"),
        (np.arange(1, 5)[:, None] * np.ones(15) % 2 > 0,
         f"{EMPTY} 1"),
    ],
)  # fmt: skip
def test_masks_that_are_no_training_sets_are_refused(masks, sentence):
    assert said(lambda: Operation(5).masks(masks)) == sentence


def test_drawn_sets_and_orders_are_those_of_the_seed():
    trained = EffectiveTheory(4, pairs=[(0, 1), (1, 1)])
    for draw in (physics.random_training_sets, random_orders):
        options = {"size": 3} if draw is physics.random_training_sets else {}
        found = draw(trained, **options, sets=2, seed=7)
        np.testing.assert_array_equal(
            found, draw(Operation(4), **options, sets=2, seed=np.random.SeedSequence(7))
        )
        assert not np.array_equal(found, draw(Operation(4), **options, sets=2, seed=8))
        assert not np.array_equal(found[0], found[1])
        assert draw(Operation(4), **options).shape == (1, 10)
        assert said(lambda draw=draw, options=options: draw(Operation(4), **options, sets=0)) == (
            "sets must be at least 1, got 0"
        )
    orders = random_orders(Operation(4), sets=5)
    assert orders.dtype == np.int32
    assert (np.sort(orders, axis=1) == np.arange(10)).all()


def test_a_theory_is_a_set_and_an_operation_is_all_samples():
    few = EffectiveTheory(5, pairs=[(0, 2), (1, 1), (0, 3)])
    assert (count_parallelograms(few), count_parallelograms(few.operation)) == (
        1,
        few.operation.parallelogram_count,
    )
    assert list_parallelograms(few).tolist() == [[0, 2, 1, 1]]
    assert count_parallelograms(few, few.operation.mask([(0, 3), (1, 2), (2, 4)])) == 1
    assert physics.ideal_accuracy(few.operation) == physics.ideal_quality(few.operation) == 1
    assert physics.ideal_accuracy(few) == 3 / 15
    assert physics.ideal_quality(few) == 1 / few.operation.parallelogram_count
    E = np.random.default_rng(0).standard_normal((5, 1))
    assert physics.augmented_training_set(E, few.operation).all()
    assert physics.augmented_training_set(E, few).tolist() == few.mask.tolist()
    assert said(lambda: count_parallelograms(few, [True])) == (
        "masks must be bool of the shape (sets, 15), got bool of shape (1, 1)"
    )


def test_two_symbols_of_one_class_are_the_smallest_that_have_a_quality():
    operation = Operation(2, 2)
    assert operation.parallelogram_count == 1
    assert physics.representation_quality([[0.0], [3.0]], operation) == 0
    assert physics.representation_quality([[0.0], [3.0]], operation, delta=4.0) == 1
    theory = EffectiveTheory(2, modulus=2)  # ℓ_0 = (2 E_0 - 2 E_1)²
    np.testing.assert_allclose(theory.spectrum, [0, 8], atol=1e-14)
    assert (theory.grokking_rate, theory.relaxation_rate) == (0, theory.spectrum[1])
    assert theory.grokking_steps() == np.inf
    assert physics.grokking_rates(theory, [[True] * 3, [True, True, False]]).tolist() == [0, 0]
    wide = EffectiveTheory(6, modulus=11)  # two degrees of freedom are left, although there is a modulus
    assert (wide.relaxation_rate, wide.ground_state_dimension) == (wide.spectrum[2], 2)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: FIVE.loss(np.ones(5)), "E must have the shape (..., 5, dim), got (5,)"),
        (lambda: FIVE.loss(np.ones((5, 0))), "E must have the shape (..., 5, dim), got (5, 0)"),
        (lambda: FIVE.solve(np.ones((4, 1)), [1.0]), "initial must have the shape (..., 5, dim), got (4, 1)"),
        (lambda: FIVE.solve(LINE, 1.0), "times must have the shape (n,), got ()"),
        (lambda: FIVE.solve(LINE, [[1.0]]), "times must have the shape (n,), got (1, 1)"),
        (lambda: FIVE.solve(LINE, [1.0, -0.5, -2.0]), "times must be at least 0, got -2"),
        (lambda: FIVE.solve(LINE, [np.inf]), "times must be finite, got 1 NaN or infinite among 1 values"),
        (
            lambda: physics.representation_quality(np.stack([[LINE, LINE], [LINE, 0 * LINE]]), FIVE),
            "E must vary on every axis to be scaled to unit variance, got zero variance on axis 0 in state "
            "(1, 1)",
        ),
        (
            lambda: physics.representation_quality(np.arange(12.0).reshape(1, 2, 6, 1, 1)[:, ::-1] // 6, S_3),
            "E must not be zero everywhere, got only zeros in state (0, 1)",
        ),
        (
            lambda: physics.representation_quality(np.ones((0, 6, 2, 2)), S_3),
            "E must hold a square matrix for each symbol of S_3, in the shape (..., tokens, d, d), got "
            "(0, 6, 2, 2)",
        ),
        (
            lambda: physics.representation_quality(np.ones((5, 2, 2)), S_3),
            "E must hold 6 tokens for S_3, got 5",
        ),
        (
            lambda: physics.critical_sizes(FIVE, orders=np.arange(15)),
            "orders must hold each number from 0 to 14 once in every row, got int64 of shape (15,)",
        ),
        (lambda: physics.critical_sizes(FIVE, sets=0), "sets must be at least 1, got 0"),
        (
            lambda: physics.closures(S_3, np.ones((1, 36), bool), groups=True, transitive=False),
            "transitive must be True if the operation commutes or groups is True, got False",
        ),
    ],
)  # fmt: skip
def test_states_times_and_orders_that_do_not_fit_are_refused(call, sentence):
    assert said(call) == sentence


def test_states_keep_their_leading_axes_and_times_their_order():
    theory = EffectiveTheory(4, pairs=[(0, 2), (1, 1), (1, 3), (2, 2)])
    E = np.random.default_rng(0).standard_normal((2, 3, 4, 2))
    times = [3.0, 0.0, 1.0]
    found = theory.solve(E, times)
    assert found.shape == (2, 3, 3, 4, 2)
    assert theory.loss(found).shape == (2, 3, 3)
    assert (theory.loss(E[0, 0]).shape, theory.gradient(E[0, 0]).shape) == ((), (4, 2))
    np.testing.assert_allclose(found[:, :, 1], E, atol=1e-14)
    for n, time in enumerate(times):
        np.testing.assert_allclose(found[1, 2, n], theory.solve(E[1, 2], [time])[0], atol=1e-13)
    kept = E.copy()
    theory.gradient(E)
    np.testing.assert_array_equal(E, kept)
    free = EffectiveTheory(4, pairs=[(0, 0)])
    np.testing.assert_array_equal(free.solve(E, times), np.repeat(E[:, :, None], 3, axis=2))


def test_the_kind_of_a_closure_is_told_with_what_it_can_know():
    masks = physics.random_training_sets(S_3, 12, sets=2)
    for options, kind in (({}, "deduction"), ({"transitive": False}, "chains")):
        found = physics.closures(S_3, masks, **options)
        assert (found.kind, found.nullity, found.groups) == (kind, None, None)
        np.testing.assert_array_equal(found.quality, found.implied / S_3.parallelogram_count)
        np.testing.assert_array_equal(found.accuracy, found.augmented.sum(axis=1) / 36)
    whole = physics.closures(FIVE, np.ones((1, 15), bool), groups=True)
    assert (whole.kind, whole.nullity.tolist(), whole.complete.tolist()) == ("linear", [2], [True])
    label = FIVE.operation.label
    np.testing.assert_array_equal(whole.groups[0][:, None] == whole.groups[0], label[:, None] == label)
