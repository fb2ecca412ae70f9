import numpy as np

from grokphys.papers.beyond import pairings
from grokphys.papers.recipe import RECIPES, Run
from nets.provenance import training_sets
from physics.trajectory import Trajectory


def test_the_theory_starts_where_its_network_does():
    networks = pairings._toys(45, 2, 60, 0)
    flow = pairings._theory_of(networks)
    E = networks.initial.astype(float)
    expected = (E - E.mean(axis=1, keepdims=True)) / E.std(axis=1, keepdims=True)
    np.testing.assert_allclose(flow.initial, expected)
    assert (np.diff(flow.times) > 0).all()
    assert flow.times[-1] == pairings.THEORY_SPAN * 60


def test_a_distance_is_held_against_that_of_another_run():
    tables = {"networks": {"distance": np.array([1.0, 4.0, 2.0]), "to_another": np.array([2.0, 2.0, 2.0])}}
    found = pairings._ratio("networks", "distance", "to_another")(tables, 0.95)
    assert np.isclose(found.estimate, 1.0)
    assert found.low < 1 < found.high


def test_every_network_has_its_row_however_many_there_are(monkeypatch):
    def toys(size, seeds, steps, number):
        rng = np.random.default_rng(size)
        walks = np.cumsum(rng.normal(size=(seeds, 6, 10, 1)), axis=1)
        return Trajectory(walks, np.arange(6), parameters={"noise": number})

    def theory(networks):
        noise = networks.parameters["noise"] * np.random.default_rng(1).normal(size=networks.positions.shape)
        return Trajectory(networks.positions + noise, networks.steps)

    monkeypatch.setattr(pairings, "_toys", toys)
    monkeypatch.setattr(pairings, "_theory_of", theory)
    setting = pairings.Toys((30, 45), 51, 60)
    made = RECIPES["compare-theory"].make(Run(setting, "quick")).columns()["networks"]
    assert made["samples"].tolist() == [30] * 51 + [45] * 51
    same = made["samples"] == 30
    assert made["distance"][same].max() < 0.05 < made["distance"][~same].min()
    assert made["to_another"].min() > 0.05


def test_a_theory_that_never_groks_has_no_step_at_which_it_does(monkeypatch):
    networks = pairings._toys(45, 3, 60, 0)
    first = iter([None, 4, 0])

    def quality(states, theory, delta):
        at = next(first)
        assert delta == pairings.DELTA
        return np.where(np.arange(len(states)) >= (np.inf if at is None else at), pairings.GROKKED, 0.9)

    monkeypatch.setattr(pairings, "representation_quality", quality)
    found = pairings._theory_of(networks).observables["steps_to_quality"]
    assert found.shape == (3, 301)
    np.testing.assert_array_equal(found, np.repeat([[np.nan], [4], [0]], 301, axis=1))


def test_a_theory_has_the_training_set_of_its_own_network():
    networks = pairings._toys(30, 3, 60, 1)
    _, examples = training_sets(networks)
    theories = pairings._own_theories(networks)
    pairs = np.array([(i, j) for i in range(10) for j in range(i, 10)])
    for theory, chosen in zip(theories, examples, strict=True):
        assert {tuple(sorted(pair)) for pair in np.array(theory.pairs)} == {tuple(p) for p in pairs[chosen]}
    assert len({str(np.array(theory.pairs).tolist()) for theory in theories}) == 3


def test_signals_are_a_trajectory_with_the_circles_that_survive_at_each_frame(monkeypatch):
    class Rule:
        def first(self, steps, values):
            assert np.isfinite(values).all()
            return int(steps[1]) if values[0, 0] == 1 else None

    monkeypatch.setattr(pairings, "StoppingRule", Rule)
    signals = np.array([[[1.0, 1, 1], [9, 1, 1], [0, 9, 0]], [[2.0, 2, 2], [np.nan, 1, 1], [1, 1, 30]]])
    found = pairings._as_trajectory(signals, np.array([0, 10, 30]))
    np.testing.assert_array_equal(found.positions[..., 0], signals)
    assert found.observables["surviving_circles"].tolist() == [[0, 1, 1], [0, 0, 1]]
    np.testing.assert_array_equal(found.observables["strongest_signal"], [[1, 9, 9], [2, np.nan, 30]])
    np.testing.assert_array_equal(found.observables["steps_to_decided_survivors"], [[10] * 3, [np.nan] * 3])
