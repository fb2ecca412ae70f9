"""Kernels of the theory at odd sizes, layouts and bounds: primes, orders, modes, forms and quality."""

from itertools import combinations

import naive_theory as naive
import numpy as np
import pytest

import physics
from physics import EffectiveTheory, InputError, Operation
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


# -- forms, flows and modes -------------------------------------------------------------------------------


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


# -- linear networks --------------------------------------------------------------------------------------
