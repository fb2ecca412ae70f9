"""Kernels of the theory at odd sizes, layouts and bounds: primes, orders, modes, forms and quality."""

import warnings
from itertools import combinations

import naive_theory as naive
import numpy as np
import pytest

import physics
from physics import (
    EffectiveTheory,
    InputError,
    LinearNetwork,
    Operation,
    SimulationError,
    Trajectory,
)
from physics.theory import flow_kernels
from physics.theory.closure import nullities

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


def test_two_symbols_without_parallelograms_need_no_sample():
    assert physics.critical_sizes(Operation(2), sets=2).tolist() == [0, 0]
    assert physics.critical_sizes(Operation(2, 2), sets=20, seed=1).min() == 2


# -- forms, flows and modes -------------------------------------------------------------------------------


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


# -- groups -----------------------------------------------------------------------------------------------


# -- quality ----------------------------------------------------------------------------------------------


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
