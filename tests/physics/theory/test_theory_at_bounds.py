"""Kernels of the theory at odd sizes, layouts and bounds: primes, orders, modes, forms and quality."""

import warnings
from itertools import combinations, pairwise

import naive_theory as naive
import numpy as np
import pytest

import physics
from physics import (
    EffectiveTheory,
    InputError,
    LinearNetwork,
    Operation,
    ParticleSystem,
    SimulationError,
    Trajectory,
)
from physics.theory import closure_kernels, flow_kernels
from physics.theory.closure import LARGEST_PRIME, nullities, primes_for
from physics.theory.operations import random_orders
from physics.theory.rates import _forms, quadratic_form, sorted_samples

S_3 = Operation(group=physics.symmetric(3))
OPERATIONS = [
    Operation(5),
    Operation(6, 6),
    Operation(5, 8),
    Operation(7, 3),
    Operation(group=physics.cyclic(4)),
]


def draw(operation, sets=6, seed=0):
    """Training sets of many sizes, the first of one sample and the last of all."""
    rng = np.random.default_rng(seed)
    masks = rng.random((sets, len(operation.samples))) < np.linspace(0, 1, sets)[:, None]
    masks[:, rng.integers(masks.shape[1])] = True
    masks[-1] = True
    return masks


# -- closures and orders ----------------------------------------------------------------------------------


def test_ranks_are_computed_modulo_the_largest_primes():
    found = primes_for(Operation(120, 120))
    assert (found.dtype, len(found)) == (np.float64, 7), "119/2 · log2(8) bits in pieces of just below 26"
    small = [n for n in range(2, 8193) if all(n % d for d in range(2, int(n**0.5) + 1))]
    above = np.arange(int(found[-1]), LARGEST_PRIME)
    prime = above[np.all(above[:, None] % np.array(small) != 0, axis=1)]
    assert found.tolist() == prime[::-1].tolist()
    for p in range(2, 60):
        # (0, 0) and (q, q) are of one class if 2q = p modulo p, and their row has the length √8
        for operation, longest in ((Operation(p), 6), (Operation(p, p), 6 + 2 * (p % 2 == 0))):
            primes, bits = primes_for(operation), (p - 1) / 2 * np.log2(longest)
            assert np.log2(primes[:-1]).sum() <= bits < np.log2(primes).sum(), operation.name


@pytest.mark.parametrize("operation", [Operation(6), Operation(5, 5), S_3], ids=lambda one: one.name)
def test_masks_and_orders_of_any_layout_are_read_by_rows(operation):
    masks, orders = draw(operation, 8), random_orders(operation, sets=8)
    whole = physics.closures(operation, masks, groups=True)
    sizes = physics.critical_sizes(operation, orders=orders)
    spread = np.zeros((16, 2 * masks.shape[1]), bool)
    spread[::2, ::2] = masks
    for given in (np.asfortranarray(masks), spread[::2, ::2], masks.tolist()):
        found = physics.closures(operation, given, groups=True)
        for name in ("implied", "augmented", "groups", "quality", "complete"):
            np.testing.assert_array_equal(getattr(found, name), getattr(whole, name))
    for given in (np.asfortranarray(orders), orders.astype(np.uint8), np.repeat(orders, 2, axis=0)[::2]):
        np.testing.assert_array_equal(physics.critical_sizes(operation, orders=given), sizes)
    assert (sizes >= 2).all()
    backwards = physics.closures(operation, masks[::-1])
    np.testing.assert_array_equal(backwards.augmented, whole.augmented[::-1])


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.name)
def test_groups_are_a_partition_by_equal_sums(operation):
    masks = draw(operation, 9, seed=2)
    found = physics.closures(operation, masks, groups=True)
    label, samples = operation.label, operation.samples
    for mask, groups, implied, augmented in zip(
        masks, found.groups, found.implied, found.augmented, strict=True
    ):
        same = (groups[:, None] == groups) & ~np.eye(len(groups), dtype=bool)
        assert (label[:, None] == label)[same].all(), "groups are parts of classes"
        assert implied == same.sum() / 2
        np.testing.assert_array_equal(augmented, mask | same[:, mask].any(axis=1))
        together = (label[:, None] == label) & mask & mask[:, None]
        assert same[together & ~np.eye(len(groups), dtype=bool)].all(), "what is trained is implied"
    free = nullities(operation, masks)
    for mask, n_0 in zip(masks, free, strict=True):
        pairs = [tuple(map(int, pair)) for pair in samples[mask]]
        labels = dict(zip(pairs, label[mask], strict=True))
        rows = [
            naive.row((*a, *b), operation.tokens) for a, b in combinations(pairs, 2) if labels[a] == labels[b]
        ]
        rank = np.linalg.matrix_rank(np.array(rows).reshape(-1, operation.tokens)) if rows else 0
        assert n_0 == operation.tokens - rank


def test_a_nullity_that_no_set_reaches_is_told_by_a_size_beyond_all():
    operation = Operation(5)
    orders, sizes = random_orders(operation, sets=3), np.zeros(3, np.int64)
    primes = primes_for(operation)
    closure_kernels.critical_sizes(orders, operation.samples, operation.label, primes, 1, sizes)
    assert sizes.tolist() == [16] * 3
    closure_kernels.critical_sizes(orders, operation.samples, operation.label, primes, 5, sizes)
    assert sizes.tolist() == [0] * 3, "five degrees of freedom are left from the start"


def test_two_symbols_without_parallelograms_need_no_sample():
    assert physics.critical_sizes(Operation(2), sets=2).tolist() == [0, 0]
    assert physics.critical_sizes(Operation(2, 2), sets=20, seed=1).min() == 2


# -- forms, flows and modes -------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.name)
def test_forms_of_many_sets_are_those_of_each_to_the_last_bit(operation):
    masks = draw(operation, 12, seed=5)
    forms = _forms(operation, masks)
    for mask, Q in zip(masks, forms, strict=True):
        np.testing.assert_array_equal(Q, quadratic_form(operation, mask))
        np.testing.assert_array_equal(Q, Q.T)
        E = np.random.default_rng(1).standard_normal((operation.tokens, 1))
        samples, label = operation.samples[mask], operation.label[mask]
        gaps = [
            (E[samples[a]].sum() - E[samples[b]].sum()) ** 2
            for a, b in combinations(range(len(label)), 2)
            if label[a] == label[b]
        ]
        assert (E.T @ Q @ E).item() == pytest.approx(np.mean(gaps) if gaps else 0, abs=1e-13)
    assert not forms[0].any(), "one sample has no parallelogram"


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.name)
def test_samples_of_a_set_stand_by_class(operation):
    for mask in draw(operation):
        samples, starts = sorted_samples(operation, mask)
        assert (len(samples), starts[0], starts[-1]) == (mask.sum(), 0, mask.sum())
        assert (samples.dtype, starts.dtype) == (np.int32, np.int32)
        for label, (begin, end) in enumerate(pairwise(starts)):
            wanted = operation.samples[mask & (operation.label == label)]
            assert samples[begin:end].tolist() == wanted.tolist()


def test_each_run_decays_from_its_own_slowest_mode():
    rates, norm = np.array([0.0, 0.5, 0.5, 2.0]), np.array([2.0, 5.0, 3.0])
    amplitudes = np.zeros((3, 4, 2))
    amplitudes[0] = [[0, 0], [0, 0], [0, 1], [1, 0]]
    amplitudes[1] = [[0, 0], [0, 0], [0, 0], [1, 2]]
    amplitudes[2] = [[0, 1], [1, 0], [0, 0], [0, 1]]
    times, out = np.array([0.0, 3.0, 1e9]), np.full((3, 3, 4, 2), np.nan)
    flow_kernels.relax(amplitudes, rates, times, norm, np.ones(3), out)
    for run in range(3):
        np.testing.assert_allclose(out[run, 0], amplitudes[run], atol=1e-15)
        bare = amplitudes[run] * np.exp(-2 * rates * 3 / norm[run])[:, None]
        np.testing.assert_allclose(out[run, 1], bare * np.sqrt(norm[run] / np.sum(bare**2)), atol=1e-15)
        np.testing.assert_allclose(np.sum(out[run] ** 2, axis=(1, 2)), norm[run], rtol=1e-14)
    np.testing.assert_allclose(out[0, 2], [[0, 0], [0, 0], [0, np.sqrt(2)], [0, 0]], atol=1e-300)
    np.testing.assert_allclose(out[1, 2], amplitudes[1], rtol=1e-15)
    np.testing.assert_allclose(out[2, 2], [[0, np.sqrt(3)], [0, 0], [0, 0], [0, 0]], atol=1e-300)


@pytest.mark.parametrize("modulus", [None, 7])
def test_a_theory_keeps_its_training_set_sorted_and_closed_to_changes(modulus):
    pairs = np.array([[4, 2], [0, 0], [3, 3], [6, 1]])
    theory = EffectiveTheory(7, 3, pairs, modulus)
    assert theory.pairs.tolist() == [[0, 0], [1, 6], [2, 4], [3, 3]]
    assert theory.operation.samples[theory.mask].tolist() == theory.pairs.tolist()
    assert not any(one.flags.writeable for one in (theory.pairs, theory.mask))
    assert (theory.tokens, theory.dim, theory.modulus, theory.group) == (7, 3, modulus, None)
    assert theory.ground_states.shape == (7, theory.ground_state_dimension)
    basis = theory.ground_states
    np.testing.assert_allclose(theory.hessian() @ basis, 0, atol=1e-14)
    found = [[0, 0, 1, 6], [2, 4, 3, 3]] if modulus else [[2, 4, 3, 3]]
    assert theory.parallelograms.tolist() == found
    assert EffectiveTheory(7).pairs is None


def test_what_a_theory_computes_does_not_change_what_it_was_given():
    theory = EffectiveTheory(5, 2, pairs=[(0, 2), (1, 1), (1, 3), (2, 2)])
    E = np.random.default_rng(0).standard_normal((3, 5, 2))
    kept = E.copy()
    found = theory.observables(E)
    assert {name: values.shape for name, values in found.items()} == {"loss": (3,), "Z_0": (3,), "C": (3, 2)}
    theory.solve(E, [0.0, 1.0])
    theory.gradient(E)
    physics.representation_quality(E, theory)
    np.testing.assert_array_equal(E, kept)
    E[1, 2] = kept[1, 2] = 0.0  # only a state of nothing but zeros is refused
    theory.advance(E, 0.25, 4)
    np.testing.assert_allclose(E, theory.solve(kept, [1.0])[:, 0], atol=1e-14)
    still = EffectiveTheory(5, 2, pairs=[(0, 0)])
    moved = still.solve(kept, [0.0, 1.0])
    moved[:] = 7
    assert kept.max() < 7, "a copy"
    assert np.isnan(still.observables(E)["loss"]).all()
    assert still.observables(E)["loss"].shape == (3,)


# -- groups -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: physics.cyclic(2001), "order must be at most 2000, got 2001"),
        (lambda: physics.dihedral(1001), "sides must be at most 1000, got 1001"),
        (lambda: physics.symmetric(7), "degree must be at most 6, got 7"),
        (
            lambda: physics.direct_product(physics.cyclic(67), physics.cyclic(30)),
            "groups must give a group of at most 2000 elements, got one of 2010",
        ),
        (
            lambda: physics.FiniteGroup(np.zeros((2001, 2001), np.int8)),
            "table must have between 1 and 2000 elements, got 2001",
        ),
    ],
)
def test_the_largest_groups_are_those_of_the_documentation(call, sentence):
    with pytest.raises(InputError) as error:
        call()
    assert str(error.value) == sentence


# -- quality ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("modulus", [9, 10, 11, 2**31 - 1, 2**31, 2**53])
def test_a_modulus_beyond_all_sums_is_plain_addition(modulus):
    np.testing.assert_array_equal(Operation(5, modulus).label, Operation(5).label)
    assert ParticleSystem(5, modulus=modulus).modulus == modulus


def test_more_samples_than_fit_into_memory_are_refused():
    for make in (Operation, EffectiveTheory, ParticleSystem):
        with pytest.raises(InputError, match="all samples of 1000000 tokens need 18626.5 GiB, more"):
            make(10**6)


def test_quality_takes_embeddings_of_any_kind_and_layout():
    operation = Operation(5)
    E = np.random.default_rng(2).integers(0, 8, (3, 2, 5, 1)) + 20 * (np.arange(5) == 4)[:, None]
    expected = physics.representation_quality(E.astype(float), operation, 0.5)
    assert (expected.shape, len(np.unique(expected)) > 1) == ((3, 2), True)
    moving = Trajectory(E.astype(np.float32), [0, 1])
    for given in (E, E.astype(np.uint8), np.asfortranarray(E), E.tolist(), moving):
        np.testing.assert_array_equal(physics.representation_quality(given, operation, 0.5), expected)
    assert physics.representation_quality(E[0, 0], operation, 0.5).shape == ()
    theory = EffectiveTheory(5, pairs=[(0, 2), (3, 4)])
    assert physics.augmented_training_set(E, theory).shape == (3, 2, 15)
    assert physics.augmented_training_set(E[0, 0], theory).shape == (15,)
    np.testing.assert_array_equal(
        physics.predicted_accuracy(moving, theory, 0.5),
        physics.augmented_training_set(E, theory, 0.5).mean(axis=2),
    )


@pytest.mark.parametrize("unit", [2.0**-1060, 2.0**-600, 2.0**520, 2.0**1018])
def test_quality_is_the_same_in_any_unit(unit):
    rng = np.random.default_rng(0)
    for theory, shape in ((EffectiveTheory(7), (7, 2)), (EffectiveTheory(group=S_3.group), (6, 2, 2))):
        E = rng.integers(-9, 10, shape).astype(float)
        quality = physics.representation_quality(E, theory, 1.0)
        assert 0 < quality < 1
        assert physics.representation_quality(E * unit, theory, 1.0) == quality
    line = np.arange(7.0)[:, None]
    assert physics.representation_quality(line * unit, EffectiveTheory(7)) == 1


@pytest.mark.parametrize("power", [-1000, -560, -500, 512, 1000])
def test_loss_gradient_and_flow_do_not_depend_on_the_unit(power):
    theory, unit = EffectiveTheory(5, 2), 2.0**power
    E = np.random.default_rng(0).standard_normal((3, 5, 2))
    assert (theory.loss(unit * E) == theory.loss(E)).all()
    if abs(power) < 600:
        assert (unit * theory.gradient(unit * E) == theory.gradient(E)).all()
    ended = theory.solve(unit * E, [0.0, 1e308])[:, 1] / unit
    np.testing.assert_allclose(np.sum(ended**2, axis=(1, 2)), np.sum(E**2, axis=(1, 2)), rtol=1e-13)
    if power < 0:  # a small embedding is fast: it has reached a ground state
        assert (theory.loss(ended) < 1e-28).all()


def test_a_norm_that_no_number_can_record_is_refused():
    with pytest.raises(InputError, match="initial .*Z_0"):
        physics.simulate(EffectiveTheory(3), steps=1, initial=1e170 * np.arange(3.0)[:, None])


def test_matrices_of_one_entry_are_numbers_whose_products_are_compared():
    sign = np.array([1.0, -1, -1, 1, 1, -1])  # of the permutations of three points in lexicographic order
    E = 3 * sign[:, None, None]
    assert physics.representation_quality(E, S_3) == 1
    E[0] *= 2  # the unit is now 2 apart from the others
    scaled = E[:, 0, 0] / np.sqrt(np.mean(E**2))
    table = physics.symmetric(3).table
    pairs = [(a, b) for a in range(6) for b in range(6)]
    gaps = [
        (scaled[a] * scaled[b] - scaled[c] * scaled[d]) ** 2
        for (a, b), (c, d) in combinations(pairs, 2)
        if table[a, b] == table[c, d]
    ]
    for delta in (1e-9, min(gap for gap in gaps if gap > 1e-9) * 1.001, max(gaps) * 1.001):
        found = physics.representation_quality(E, S_3, delta)
        assert found == np.mean(np.array(gaps) <= delta)
    flat = Trajectory(E.reshape(1, 1, 6, 1), [0])
    assert physics.representation_quality(flat, S_3, max(gaps) * 1.001).tolist() == [[1.0]]


# -- linear networks --------------------------------------------------------------------------------------

LABELS = np.array([[1.0, -0.5, 0.3], [0.2, 0.9, -1.0]])


@pytest.mark.parametrize(
    ("pairs", "design"),
    [
        (None, [[1, 0], [0, 1]]),
        ([(0, 3), (1, 1)], [[1, 0, 0, 1], [0, 2, 0, 0]]),
        (np.array([[2, 0], [0, 0]], np.uint8), [[1, 0, 1], [2, 0, 0]]),
    ],
)
def test_inputs_are_points_or_sums_of_two_of_them(pairs, design):
    network = LinearNetwork(LABELS, inputs=4, pairs=pairs, input_rate=0.7, decay=0.2)
    assert (network.design.dtype, network.design.tolist()) == (np.float64, design)
    points = len(design[0])
    assert (network.points, network.outputs, network.tokens, network.dim) == (points, 3, points + 3, 5)
    state = network.start(np.random.default_rng(4))
    A, b, x = network.unpack(state)
    np.testing.assert_array_equal(x, np.random.default_rng(4).standard_normal((points, 4)))
    np.testing.assert_allclose(A @ A.T, np.eye(3), atol=1e-15)
    assert (b.tolist(), state[:points, -1].tolist()) == ([0, 0, 0], [0] * points)
    assert np.shares_memory(A, state), "views of the state"
    b += [0.5, -1, 2]
    kept = state.copy()
    flow, velocity = network.adiabatic(A, b), network.velocity(state)
    np.testing.assert_allclose(flow.A @ x.ravel() + flow.b, network.unpack(velocity)[2].ravel(), atol=1e-14)
    assert (velocity[:points, -1] == 0).all()
    network.loss(state)
    network.internal_energy(state)
    np.testing.assert_array_equal(state, kept)
    both = np.stack([state, 2 * state])
    for measure in (network.loss, network.velocity, network.internal_energy):
        np.testing.assert_allclose(measure(both)[1], measure(2 * state), rtol=1e-14)
    network.advance(both, 0.1, 0)
    np.testing.assert_array_equal(both[0], kept)
    network.advance(both, 0.01, 1)
    np.testing.assert_allclose(both[0], kept + 0.01 * network.velocity(kept), atol=1e-2)


def test_a_network_that_overflows_is_an_error_without_a_warning():
    with warnings.catch_warnings(), pytest.raises(SimulationError, match="the state overflowed"):
        warnings.simplefilter("error")
        physics.simulate(LinearNetwork(LABELS), steps=60, step_size=1e6, record_every=60)


@pytest.mark.parametrize("name", ["A", "b", "x"])
def test_parts_of_a_state_are_finite(name):
    parts = {"A": np.ones((3, 2)), "b": np.ones(3), "x": np.ones((2, 2))}
    parts[name].flat[-1] = np.inf
    with pytest.raises(InputError, match=f"^{name} must be finite, got 1 NaN or infinite among"):
        LinearNetwork(LABELS).pack(*parts.values())
