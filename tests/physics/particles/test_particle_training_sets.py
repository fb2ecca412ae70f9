import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import physics
from physics import ParticleSystem

c2c4 = physics.theory.direct_product(physics.cyclic(2), physics.cyclic(4))


def rule_of(tokens, modulus=None, group=None):
    if group is not None:
        return lambda i, j: int(group.table[i, j])
    return lambda i, j: (i + j) % (modulus or tokens)


@st.composite
def restricted(draw):
    """A class rule, and a training set in which both kinds of interaction occur."""
    choices = [{"tokens": 5}, {"tokens": 7, "modulus": 3}, {"tokens": 6, "modulus": 100}, {"group": c2c4}]
    options = draw(st.sampled_from([*choices, {"group": physics.cyclic(6)}]))
    tokens = options["group"].order if "group" in options else options["tokens"]
    rule = rule_of(tokens, options.get("modulus"), options.get("group"))
    chosen = draw(st.sets(st.sampled_from(naive.pairs(tokens)), min_size=3))
    classes = {}
    for pair in chosen:
        classes.setdefault(rule(*pair), []).append(pair)
    if len(classes) < 2 or max(map(len, classes.values())) < 2:
        chosen = set(naive.pairs(tokens))
    return options, tokens, rule, sorted(chosen)


@given(restricted(), st.integers(1, 3), st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_only_the_training_set_interacts(setting, dim, seed):
    options, tokens, rule, training = setting
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((tokens, dim))
    shuffled = rng.permutation(np.array([p if rng.random() < 0.5 else p[::-1] for p in training]))
    system = ParticleSystem(**options, dim=dim, pairs=shuffled, alignment=2.0)
    expected = naive.forces(x, alignment=2.0, training=training, rule=rule)
    # where few pair sums interact, forces may cancel: the yardstick is then a force on a pair sum
    assert np.abs(physics.forces(x, system) - expected).max() <= 1e-11 * max(9.0, np.abs(expected).max())
    potential = naive.clustering_potential(x, training=training, rule=rule)
    assert system.potential(x[None])[0] == pytest.approx(potential, rel=1e-10, abs=1e-10)
    ours = physics.grid_imperfections(
        x, modulus=options.get("modulus"), group=options.get("group"), pairs=shuffled
    )
    assert ours == naive.grid_imperfections(x, training=training, rule=rule)


def test_all_pairs_as_a_training_set_and_z_n_as_a_group_are_the_default_to_the_bit():
    x = np.random.default_rng(0).standard_normal((3, 12, 2))
    expected = physics.forces(x, ParticleSystem(12))
    for options in (
        {"pairs": naive.pairs(12)},
        {"modulus": 12},
        {"group": physics.cyclic(12)},
        {"group": physics.cyclic(12).table},
    ):
        np.testing.assert_array_equal(physics.forces(x, ParticleSystem(12, **options)), expected)


def training_set(system, fraction=0.8, seed=0):
    mask = physics.random_training_sets(system, int(fraction * len(system.operation.samples)), seed=seed)[0]
    return system.operation.samples[mask]


@pytest.mark.parametrize("tolerance", [1e-3, 1e-6, 1e-9])
def test_the_fast_sum_of_a_training_set_honours_its_tolerance(tolerance):
    whole = ParticleSystem(60)
    x = np.random.default_rng(3).standard_normal((60, 2))
    for options in (
        {"pairs": training_set(whole)},
        {"pairs": training_set(whole, 0.3), "modulus": 7},
        {"group": physics.theory.direct_product(physics.cyclic(6), physics.cyclic(10)), "softening": 0.3},
    ):
        system = ParticleSystem(60, **options)
        exact = physics.forces(x, system, method="direct")
        fast = physics.forces(x, system, method="fast", tolerance=tolerance)
        assert 0 < np.abs(fast - exact).max() <= tolerance * np.abs(exact).max()


def test_the_weights_are_those_of_the_training_set():
    system = ParticleSystem(5, pairs=[(0, 1), (3, 3), (2, 4), (0, 0)])  # classes 1, 1, 1, 0
    assert system.pair_count == 4
    assert system.weights == pytest.approx((4 / 6, 4 / 6))


def test_a_training_set_and_its_rule_are_provenance_that_makes_the_run_again():
    system = ParticleSystem(group=c2c4, pairs=training_set(ParticleSystem(group=c2c4)))
    trajectory = physics.simulate(system, steps=3, observables=["grid_imperfections"])
    stored = dict(trajectory.parameters["system"])
    assert stored.pop("type") == "ParticleSystem"
    assert stored["tokens"] == 8
    stored["group"] = stored["group"]["table"]
    again = physics.simulate(ParticleSystem(**stored), steps=3)
    np.testing.assert_array_equal(again.positions, trajectory.positions)
    assert trajectory.observables["grid_imperfections"][0, -1] == naive.grid_imperfections(
        trajectory.final[0], rule=rule_of(8, group=c2c4)
    )
