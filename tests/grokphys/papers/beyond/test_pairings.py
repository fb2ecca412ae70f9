import numpy as np

from grokphys.papers.beyond import pairings
from grokphys.papers.recipe import RECIPES, Run
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
