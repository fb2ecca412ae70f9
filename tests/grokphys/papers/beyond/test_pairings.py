import numpy as np

from grokphys.papers.beyond import pairings


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
