"""Columns of the tables of Musat's recipes, their seeds, and which network is drawn."""

from types import SimpleNamespace

import numpy as np

import physics
from grokphys.papers.musat import tables as ensembles
from grokphys.papers.recipe import Run, Setting


def made_up(asked, dim=2):
    """Stands for `networks`: notes what it is asked, and returns embeddings that the seed decides."""

    def networks(run, decay, seed, **options):
        asked.append((decay, seed, options))
        rng, runs = np.random.default_rng(seed), run.setting.runs
        width = options["model"].dim if "model" in options else dim
        E = rng.normal(size=(runs, 17, width))
        angle = 2 * np.pi * np.arange(17) / 17
        E[0, :, :2] = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        accuracy = rng.uniform(size=(runs, 2))
        return SimpleNamespace(final=E, observables={"validation_accuracy": accuracy}, runs=runs)

    return networks


def test_starts_share_seeds(monkeypatch):
    asked = []
    monkeypatch.setattr(ensembles, "networks", made_up(asked))
    setting = Setting(starts=("pytorch", "kaiming_uniform"), runs=24, epochs=30)
    rows = ensembles.starts(Run(setting, "quick")).columns()["networks"]
    assert [(decay, seed, options["model"].initialisation) for decay, seed, options in asked] == [
        (decay, 7100 + round(10 * decay), name) for name in setting.starts for decay in ensembles.TABLE_1
    ]
    assert rows["network"].tolist() == list(range(24)) * 8


def test_structures_are_those_of_random_positions_by_chance():
    rows = {"circle": np.ones(40, bool), "imperfections": np.zeros(40, int), "f_a": np.arange(40.0)}
    for dim in (2, 3):
        found = ensembles.random_positions("t", dim)({"t": rows, "u": {}}, np.random.default_rng(1))["t"]
        E = np.random.default_rng(1).standard_normal((40, 17, dim))
        np.testing.assert_array_equal(found["imperfections"], physics.grid_imperfections(E))
        np.testing.assert_array_equal(found["circle"], physics.is_circle(E))
        assert found["f_a"] is rows["f_a"]
    table = {"circle": np.array([True, False]), "f_a": np.array([1.0, 2.0]), "runs": np.array([2, 3])}
    mixed = ensembles.shuffled_runs("t", "f_a")({"t": table}, np.random.default_rng(0))["t"]
    assert mixed["circle"].tolist() == [True] * 2 + [False] * 3
    assert sorted(mixed["f_a"]) == [1, 1, 2, 2, 2]
    assert mixed["runs"].tolist() == [1] * 5
