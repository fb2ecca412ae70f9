import itertools

import naive_theory as naive
import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import physics
from physics import EffectiveTheory, Operation, Trajectory
from physics.theory.closure import least_nullity, primes_for
from physics.theory.operations import random_orders
from physics.theory.system import list_parallelograms

KLEIN = physics.theory.direct_product(physics.cyclic(2), physics.cyclic(2))
OPERATIONS = [
    Operation(4),
    Operation(6),
    Operation(7),
    Operation(6, modulus=6),
    Operation(5, modulus=5),
    Operation(6, modulus=4),
    Operation(group=KLEIN),
    Operation(group=physics.theory.direct_product(physics.cyclic(2), physics.cyclic(3))),
]
MATRICES = [physics.symmetric(3), physics.theory.dihedral(4), physics.theory.quaternion()]


def label_of(operation):
    table = np.full((operation.tokens,) * 2, -1)
    table[operation.samples[:, 0], operation.samples[:, 1]] = operation.label
    return lambda i, j: table[i, j]


def training(operation, mask):
    return [tuple(int(k) for k in pair) for pair in operation.samples[mask]]


# -- lists -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "operation", OPERATIONS + [Operation(group=g) for g in MATRICES], ids=lambda o: o.name
)
def test_list_is_that_of_the_double_loop_in_order(operation):
    mask = physics.random_training_sets(operation, 2 * len(operation.samples) // 3, seed=4)[0]
    for subset in (mask, np.ones_like(mask)):
        expected = naive.parallelograms(training(operation, subset), label_of(operation))
        listed = list_parallelograms(operation.samples[subset], operation.label[subset])
        assert listed.tolist() == [list(q) for q in expected]
    assert operation.parallelogram_count == len(expected)


def test_paper_p4():
    """Eqs. 18 to 20."""
    theory = EffectiveTheory(4)
    assert len(theory.operation.samples) == 10
    assert theory.parallelograms.tolist() == [[0, 2, 1, 1], [0, 3, 1, 2], [1, 3, 2, 2]]
    half = EffectiveTheory(4, pairs=[(0, 2), (1, 1), (0, 3), (1, 2), (1, 3), (2, 2)])  # Eq. 21
    assert half.ground_state_dimension == 2
    assert half.implied_parallelograms.tolist() == theory.parallelograms.tolist()


def test_paper_appendix_c():
    samples = [(0, 4), (1, 3), (1, 5), (2, 4), (0, 2), (1, 1), (2, 4), (3, 3)]
    first = EffectiveTheory(6, pairs=samples[:4])
    assert [0, 5, 2, 3] in first.implied_parallelograms.tolist()
    assert [0, 5, 2, 3] not in first.parallelograms.tolist()
    second = EffectiveTheory(6, pairs=samples[:6])
    assert [3, 5, 4, 4] in second.implied_parallelograms.tolist()
    assert second.ground_state_dimension == 3
    last = EffectiveTheory(6, pairs=[*samples[:6], (3, 3)])  # D_7 repeats D_4
    assert last.ground_state_dimension == 2
    assert last.closure.complete[0]


# -- closure -----------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(OPERATIONS), st.integers(0, 2**32), st.floats(0.1, 0.9))
def test_closure_is_that_of_one_rational_rank_a_candidate(operation, seed, fraction):
    size = max(round(fraction * len(operation.samples)), 1)
    mask = physics.random_training_sets(operation, size, seed=seed)[0]
    nullity, implied, augmented = naive.closure(
        operation.tokens, training(operation, mask), label_of(operation)
    )
    theory = EffectiveTheory(
        operation.tokens, pairs=operation.samples[mask], modulus=operation.modulus, group=operation.group
    )
    assert theory.ground_state_dimension == nullity
    assert theory.implied_parallelograms.tolist() == [list(q) for q in implied]
    assert {tuple(pair) for pair in operation.samples[theory.closure.augmented[0]].tolist()} == augmented
    assert theory.closure.implied[0] == len(implied)
    assert physics.theory.ideal_quality(theory) == len(implied) / operation.parallelogram_count
    assert physics.ideal_accuracy(theory) == len(augmented) / len(operation.samples)


@pytest.mark.parametrize("group", MATRICES[:2], ids=lambda g: g.name)
def test_deduction_is_that_of_the_triple_search(group):
    operation = Operation(group=group)
    sizes = np.linspace(0.25, 0.6, 4) * len(operation.samples)
    gained = 0
    for seed, size in enumerate(sizes.astype(int)):
        mask = physics.random_training_sets(operation, size, seed=seed)[0]
        implied = naive.deduction(group.table, training(operation, mask))
        theory = EffectiveTheory(pairs=operation.samples[mask], group=group)
        assert theory.implied_parallelograms.tolist() == [list(q) for q in implied]
        expected = naive.augment(training(operation, mask), implied)
        assert {tuple(s) for s in operation.samples[theory.closure.augmented[0]].tolist()} == expected
        gained += len(implied) - theory.parallelogram_count
    assert gained > 0


def test_three_parallelograms_give_a_fourth():
    """Eqs. 30 and 31: two do not, where products do not commute."""
    t = physics.symmetric(3).table
    inverse = physics.symmetric(3).inverses
    a, b, d, f, h = 1, 2, 3, 4, 0
    quotient = t[inverse[b], a]
    c, g = t[quotient, d], t[quotient, h]
    e = t[f, quotient]
    assert t[a, d] == t[b, c]
    assert t[f, c] == t[e, d]
    assert t[e, h] == t[f, g]
    first, second, third = [(a, d), (b, c)], [(f, c), (e, d)], [(e, h), (f, g)]
    fourth = sorted([(int(a), int(h)), (int(b), int(g))])
    for known, follows in ((first + second, False), (first + second + third, True)):
        theory = EffectiveTheory(
            pairs=sorted({(int(x), int(y)) for x, y in known}), group=physics.symmetric(3)
        )
        assert ([*fourth[0], *fourth[1]] in theory.implied_parallelograms.tolist()) is follows


def test_a_batch_is_its_members():
    operation = Operation(8)
    masks = np.concatenate(
        [physics.random_training_sets(operation, size, sets=60, seed=size) for size in (6, 12, 20)]
    )
    batch = physics.closures(operation, masks, groups=True)
    for k, mask in enumerate(masks):
        one = physics.closures(operation, mask[None], groups=True)
        assert one.nullity[0] == batch.nullity[k]
        assert one.implied[0] == batch.implied[k]
        assert np.array_equal(one.augmented[0], batch.augmented[k])
        assert np.array_equal(one.groups[0], batch.groups[k])


@pytest.mark.parametrize(
    "operation", [Operation(9), Operation(group=physics.theory.quaternion())], ids=lambda o: o.name
)
@pytest.mark.usefixtures("all_threads")
def test_the_same_with_any_number_of_threads(operation):
    masks = physics.random_training_sets(operation, 18, sets=300)
    many = physics.closures(operation, masks)
    sizes = physics.critical_sizes(operation, sets=50)
    numba.set_num_threads(1)
    one = physics.closures(operation, masks)
    assert np.array_equal(one.implied, many.implied)
    assert np.array_equal(one.augmented, many.augmented)
    assert np.array_equal(sizes, physics.critical_sizes(operation, sets=50))


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([*OPERATIONS, Operation(group=MATRICES[0])]), st.integers(0, 2**32), st.integers(2, 20)
)
def test_closing_is_monotone_and_closing_twice_is_closing_once(operation, seed, size):
    count = len(operation.samples)
    order = np.random.default_rng(seed).permutation(count)
    small, large = np.zeros(count, bool), np.zeros(count, bool)
    small[order[: min(size, count) // 2 + 1]] = large[order[: min(size, count)]] = True
    small |= large & small
    low, high = (physics.closures(operation, mask[None]) for mask in (small & large, large))
    assert (high.augmented[0] >= low.augmented[0]).all()
    assert high.implied[0] >= low.implied[0]
    again = physics.closures(operation, high.augmented)
    assert again.implied[0] == high.implied[0]
    assert np.array_equal(again.augmented, high.augmented)


@pytest.mark.parametrize("group", [physics.cyclic(7), KLEIN, *MATRICES], ids=lambda g: g.name)
def test_relabelling_by_an_automorphism_changes_nothing(group):
    n = group.order
    if group.commutes:
        relabel = (3 * np.arange(n)) % n if n == 7 else np.array([0, 2, 3, 1])
    else:
        g = 1
        relabel = group.table[group.table[g], group.inverses[g]]
    assert np.array_equal(relabel[group.table], group.table[np.ix_(relabel, relabel)])
    assert not np.array_equal(relabel, np.arange(n))
    operation = Operation(group=group)
    masks = physics.random_training_sets(operation, len(operation.samples) // 3, sets=20)
    moved = np.stack([operation.mask(relabel[operation.samples[mask]]) for mask in masks])
    here, there = physics.closures(operation, masks), physics.closures(operation, moved)
    assert np.array_equal(here.implied, there.implied)
    assert np.array_equal(here.accuracy, there.accuracy)
    assert len(set(here.implied.tolist())) > 1


def test_reflection_is_a_symmetry_of_plain_addition():
    operation = Operation(9)
    masks = physics.random_training_sets(operation, 14, sets=30)
    mirrored = np.stack([operation.mask(8 - operation.samples[mask]) for mask in masks])
    assert np.array_equal(
        physics.closures(operation, masks).nullity, physics.closures(operation, mirrored).nullity
    )


def test_one_small_prime_errs_and_enough_of_them_do_not(monkeypatch):
    """The bound that the proof rests on: minors survive modulo one of primes whose product exceeds them."""
    operation = Operation(9)
    masks, orders = physics.random_training_sets(operation, 16, sets=200), random_orders(operation, sets=200)

    def implied(primes=None):
        if primes:
            monkeypatch.setattr("physics.theory.closure.primes_for", lambda _: np.array(primes, float))
        return physics.closures(operation, masks), physics.critical_sizes(operation, orders=orders)

    exact, sizes = implied()
    small = [2, 3, 5, 7, 11]
    assert np.prod(small) > 6 ** ((operation.tokens - 1) / 2)
    enough, same_sizes = implied(small)
    assert np.array_equal(enough.nullity, exact.nullity)
    assert np.array_equal(enough.implied, exact.implied)
    assert np.array_equal(sizes, same_sizes)
    wrong, larger = implied([2])
    assert (wrong.nullity >= exact.nullity).all()
    assert (wrong.nullity > exact.nullity).any()
    assert (larger >= sizes).all()
    assert (larger > sizes).any()
    assert np.prod(primes_for(operation)) > 6 ** ((operation.tokens - 1) / 2)
    assert np.prod(primes_for(Operation(60, modulus=60))) > 8 ** (59 / 2)


def test_nullity_agrees_with_floating_ranks_where_those_are_safe():
    operation = Operation(24)
    for size in (20, 40, 60, 90):
        masks = physics.random_training_sets(operation, size, sets=5, seed=size)
        for mask, n_0 in zip(masks, physics.closures(operation, masks).nullity, strict=True):
            quadruples = list_parallelograms(operation.samples[mask], operation.label[mask])
            A = np.array([naive.row(q, 24) for q in quadruples]).reshape(-1, 24)
            assert n_0 == 24 - (np.linalg.matrix_rank(A) if len(A) else 0)


@pytest.mark.parametrize(
    ("operation", "expected"),
    [(Operation(p), 2) for p in (2, 3, 5, 9)]
    + [(Operation(p, modulus=p), 1) for p in (2, 5, 6)]
    + [
        (Operation(6, modulus=9), 1),
        (Operation(6, modulus=11), 2),
        (Operation(7, modulus=3), 1),
        (Operation(group=KLEIN), 1),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_complete_data_leave_two_or_one_degree_of_freedom(operation, expected):
    quadruples = naive.parallelograms(naive.samples_of(operation.tokens), label_of(operation))
    rank = naive.rank([naive.row(q, operation.tokens) for q in quadruples])
    assert least_nullity(operation) == operation.tokens - rank == expected


@pytest.mark.parametrize(
    "operation", [Operation(7), Operation(6, modulus=6), Operation(group=MATRICES[0])], ids=lambda o: o.name
)
def test_critical_size_is_where_prefixes_become_complete(operation):
    orders = random_orders(operation, sets=40, seed=5)
    for order, size in zip(orders, physics.critical_sizes(operation, orders=orders), strict=True):
        masks = np.zeros((2, len(order)), bool)
        masks[0, order[: size - 1]] = masks[1, order[:size]] = True
        assert physics.closures(operation, masks).complete.tolist() == [False, True]
    drawn = physics.critical_sizes(operation, sets=40, seed=5)
    np.testing.assert_array_equal(drawn, physics.critical_sizes(operation, orders=orders))


def test_training_sets_do_not_depend_on_how_many_stand_beside_them():
    few, many = (physics.random_training_sets(Operation(10), 20, sets=n, seed=3) for n in (5, 50))
    assert np.array_equal(few, many[:5])
    assert (many.sum(axis=1) == 20).all()
    assert abs(many.mean(axis=0) - 20 / 55).max() < 0.35
    assert physics.random_training_sets(Operation(10), 55).all()


def test_without_a_parallelogram_there_is_no_quality_and_all_of_it_is_implied():
    found = physics.closures(Operation(2), np.array([[True, False, True], [True] * 3]))
    assert np.isnan(found.quality).all()
    assert (found.implied.tolist(), found.complete.tolist()) == ([0, 0], [True, True])
    np.testing.assert_allclose(found.accuracy, [2 / 3, 1])
    assert found.groups is None


# -- quality and accuracy ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [1, 2])
def test_quality_and_accuracy_by_definition(dim):
    rng = np.random.default_rng(8)
    operation = Operation(7)
    mask = physics.random_training_sets(operation, 12)[0]
    theory = EffectiveTheory(7, pairs=operation.samples[mask])
    everything = naive.parallelograms(naive.samples_of(7), lambda i, j: i + j)
    states = np.arange(7.0)[:, None] + 0.2 * rng.standard_normal((2, 3, 7, dim))
    quality = physics.representation_quality(states, theory, delta=0.2)
    accuracy = physics.predicted_accuracy(states, theory, delta=0.2)
    marked = physics.theory.augmented_training_set(states, theory, delta=0.2)
    assert quality.shape == accuracy.shape == (2, 3)
    for at in np.ndindex(2, 3):
        found = naive.found(naive.normalised(states[at]), everything, 0.2)
        augmented = naive.augment(training(operation, mask), found)
        assert quality[at] == len(found) / len(everything)
        assert accuracy[at] == len(augmented) / 28
        assert {tuple(pair) for pair in operation.samples[marked[at]].tolist()} == augmented
    assert len(np.unique(quality)) > 2


def test_each_axis_is_centered_and_scaled_by_itself():
    """Neither a shift nor a scale of one axis changes anything."""
    rng = np.random.default_rng(8)
    theory, everything = EffectiveTheory(7), naive.parallelograms(naive.samples_of(7), lambda i, j: i + j)
    states = np.arange(7.0)[:, None] + 0.2 * rng.standard_normal((4, 7, 3))
    moved = states * [1.0, 3.0, 0.1] + [20.0, -7.0, 0.5]
    quality = physics.representation_quality(moved, theory, delta=0.3)
    found = [len(naive.found(naive.normalised(state), everything, 0.3)) for state in states]
    assert quality.tolist() == [count / len(everything) for count in found]
    assert min(quality) > 0
    assert len(set(found)) > 1
    accuracy = physics.predicted_accuracy(states, theory, delta=0.3)
    np.testing.assert_array_equal(physics.predicted_accuracy(moved, theory, delta=0.3), accuracy)


@pytest.mark.parametrize(
    "theory", [EffectiveTheory(6, pairs=[(0, 2), (1, 1)]), EffectiveTheory(group=MATRICES[0])]
)
def test_states_in_blocks_have_the_quality_that_they_have_alone(theory, monkeypatch):
    rng = np.random.default_rng(5)
    shape = (6, 2) if theory.operation.commutes else (6, 2, 2)
    states = rng.standard_normal((11, *shape))
    alone = [physics.representation_quality(state, theory, 2.0) for state in states]
    marked = [physics.theory.augmented_training_set(state, theory, 2.0) for state in states]
    assert len(set(map(float, alone))) > 2
    monkeypatch.setattr("physics.theory.system.BLOCK_BYTES", 8 * len(theory.mask) * states[0, 0].size * 3)
    np.testing.assert_array_equal(physics.representation_quality(states, theory, 2.0), alone)
    np.testing.assert_array_equal(physics.theory.augmented_training_set(states, theory, 2.0), marked)


def test_delta_bounds_the_distance_not_its_square():
    E = np.arange(5.0)[:, None]
    E[4] += 0.05  # after scaling, sums that hold token 4 are off by some 0.035
    theory = EffectiveTheory(5)
    assert physics.representation_quality(E, theory, delta=0.01) < 1
    assert physics.representation_quality(E, theory, delta=0.08) == 1
    assert physics.representation_quality(E, theory, delta=1e200) == 1


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(3, 27), st.floats(0.5, 2), st.floats(-3, 3))
def test_bounds_of_ground_states(seed, size, scale, shift):
    """Eqs. 16 and 17 hold with equality for a generic ground state, whatever its scale and place."""
    operation = Operation(7)
    theory = EffectiveTheory(
        7, pairs=operation.samples[physics.random_training_sets(operation, size, seed=seed)[0]]
    )
    weights = np.random.default_rng(seed).standard_normal(theory.ground_state_dimension)
    E = (scale * theory.ground_states @ weights + shift)[:, None]
    assert physics.representation_quality(E, theory, delta=1e-9) == physics.theory.ideal_quality(theory)
    assert physics.predicted_accuracy(E, theory, delta=1e-9) == physics.ideal_accuracy(theory)


def test_generalised_parallelograms():
    """Permutation matrices of S_3, in any basis, have all of them; noise takes them away."""
    rng = np.random.default_rng(2)
    group = physics.symmetric(3)
    theory = EffectiveTheory(pairs=[(0, 0), (1, 1), (2, 3)], group=group)
    matrices = np.array([np.eye(3)[:, list(q)] for q in itertools.permutations(range(3))])
    basis = rng.standard_normal((3, 3))
    turned = basis @ matrices @ np.linalg.inv(basis)
    for E in (matrices, turned):
        assert physics.representation_quality(E, theory, delta=1e-10) == 1
        assert physics.predicted_accuracy(E, theory, delta=1e-10) == 12 / 36  # two classes are trained
    noisy = rng.standard_normal((2, 6, 3, 3))
    assert physics.representation_quality(noisy, theory).max() == 0
    unit = noisy / np.sqrt(np.mean(noisy**2, axis=(1, 2, 3), keepdims=True))
    samples = naive.samples_of(6, commutes=False)
    quadruples = naive.parallelograms(samples, lambda a, b: group.table[a, b])
    for state, quality in zip(unit, physics.representation_quality(noisy, theory, delta=30.0), strict=True):
        near = [np.sum((state[a] @ state[b] - state[c] @ state[d]) ** 2) <= 30 for a, b, c, d in quadruples]
        assert quality == np.mean(near)
        assert 0 < quality < 1


def test_trajectories_and_their_flat_matrices():
    rng = np.random.default_rng(3)
    theory = EffectiveTheory(6, pairs=[(0, 2), (1, 1), (2, 4), (3, 3), (0, 4), (1, 3)])
    moving = physics.simulate(theory, runs=3, steps=400, record=100)
    quality = physics.representation_quality(moving, theory)
    assert quality.shape == (3, 5)
    assert np.array_equal(quality, physics.representation_quality(moving.positions, theory))
    group = EffectiveTheory(pairs=[(0, 0)], group=physics.symmetric(3))
    matrices = rng.standard_normal((2, 3, 6, 3, 3))
    flat = Trajectory(matrices.reshape(2, 3, 6, 9), [0, 1, 2])
    assert np.array_equal(
        physics.representation_quality(flat, group, delta=5.0),
        physics.representation_quality(matrices, group, delta=5.0),
    )


# -- bad input ---------------------------------------------------------------------------------------------
