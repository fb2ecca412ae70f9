"""Columns of the tables of Musat's recipes, their seeds, and which network is drawn."""

from types import SimpleNamespace

import numpy as np
import pytest

import nets
import physics
from analysis.circles.classes import structures
from grokphys.papers.musat import classifiers, ensembles, galleries, start, table_1, table_2
from grokphys.papers.recipe import RECIPES, Run
from grokphys.report.musat import TABLE_1, TABLE_2
from physics import InputError


def made_up(asked, dim=2):
    """Stands for `networks`: notes what it is asked, and returns embeddings that the seed decides."""

    def networks(decay, *, runs, seed, epochs, **options):
        asked.append((decay, runs, seed, epochs, options))
        rng = np.random.default_rng(seed)
        width = options["model"].dim if "model" in options else dim
        E = rng.normal(size=(runs, 17, width))
        angle = 2 * np.pi * np.arange(17) / 17
        E[0, :, :2] = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        accuracy = rng.uniform(size=(runs, 2))
        return SimpleNamespace(final=E, observables={"validation_accuracy": accuracy}, runs=runs)

    return networks


def expected(table, decay, runs, seed, dim=2):
    trained = made_up([], dim)(decay, runs=runs, seed=seed, epochs=1)
    np.testing.assert_array_equal(table["circle"], physics.is_circle(trained.final))
    np.testing.assert_array_equal(table["imperfections"], physics.grid_imperfections(trained.final))
    np.testing.assert_allclose(table["accuracy"], 100 * trained.observables["validation_accuracy"][:, -1])


def rows_of(table, **values):
    here = np.all([table[name] == value for name, value in values.items()], axis=0)
    return {name: column[here] for name, column in table.items()}


def test_trained_galleries_go_down_with_the_decay_and_up_with_the_dimension(monkeypatch):
    asked, drawn = [], []
    monkeypatch.setattr(galleries, "networks", made_up(asked))
    monkeypatch.setattr(galleries, "gallery", lambda *what: drawn.append(what) or len(drawn))
    monkeypatch.setattr(galleries, "_show_planes", lambda *what: what)
    made = galleries.embeddings(Run(galleries.Setting(9, 4, 30), "quick"))
    decays = (1.0, 0.6, 0.3, 0.0)
    assert asked == [(decay, 9, 5200 + round(10 * decay), 30, {}) for decay in decays]
    rows = made.columns()["runs"]
    assert rows["weight_decay"].tolist() == np.repeat(decays, 9).tolist()
    for decay in decays:
        expected(rows_of(rows, weight_decay=decay), decay, 9, 5200 + round(10 * decay))
    assert list(made.figures) == ["musat-D", "musat-D-wd0.6", "musat-D-wd0.3", "musat-D-wd0"]
    for (final, title, accuracy), decay in zip(drawn, decays, strict=True):
        assert len(final) == 4
        assert title == f"Weight decay {decay:g}, 30 epochs"
        np.testing.assert_array_equal(accuracy, rows_of(rows, weight_decay=decay)["accuracy"])
    asked.clear()
    made = galleries.higher(Run(galleries.Setting(8, 4, 30), "quick"))
    assert [(decay, seed, options["model"].dim) for decay, _, seed, _, options in asked] == [
        (1.0, 5303, 3), (1.0, 5304, 4)
    ]  # fmt: skip
    assert list(made.figures) == ["musat-G", "musat-G-D4"]
    for dim in (3, 4):
        table = made.columns()[f"D{dim}"]
        expected(table, 1.0, 8, 5300 + dim, dim)
        final, planes, accuracy, shown = made.figures["musat-G" if dim == 3 else "musat-G-D4"]
        assert (final.shape, planes, shown) == ((8, 17, dim), galleries.PLANES[dim], dim)
        assert accuracy.tolist() == table["accuracy"].tolist()


def test_networks_of_both_tables_have_seeds_of_their_own(monkeypatch):
    asked, moved = [], []
    for module in (table_1, table_2, start):
        monkeypatch.setattr(module, "networks", made_up(asked))
    rows = table_1.table_1(Run(table_1.Setting(5, 30), "quick")).columns()["networks"]
    assert asked == [(decay, 5, 1700 + round(10 * decay), 30, {}) for decay in TABLE_1]
    for decay in TABLE_1:
        expected(rows_of(rows, weight_decay=decay), decay, 5, 1700 + round(10 * decay))
    asked.clear()

    def simulated(f_a, *, runs, seed, step_size, steps):
        moved.append((f_a, runs, seed, step_size, steps))
        return SimpleNamespace(final=np.random.default_rng(seed).normal(size=(runs, 17, 2)))

    monkeypatch.setattr(table_2, "particles", simulated)
    tables = table_2.table_2(Run(table_2.Setting(6, 7, 30), "quick")).columns()
    assert moved == [(f_a, 6, 2600 + round(1000 * f_a) + 4, 0.02, 100) for f_a in TABLE_2]
    assert asked == [(1.0, 7, 2690, 30, {})]
    assert tables["networks"]["runs"].sum() == 7
    assert set(tables["networks"]["weight_decay"]) == {1.0}
    for f_a in TABLE_2:
        own = rows_of(tables["particles"], f_a=f_a)
        assert own["runs"].sum() == 6
        assert set(own["step_size"]) == {0.02}


def test_starts_share_seeds_and_are_compared_start_by_start(monkeypatch):
    asked = []
    monkeypatch.setattr(start, "networks", made_up(asked))
    monkeypatch.setattr(start, "DRAWS", 20)
    setting = start.Setting(("pytorch", "kaiming_uniform"), 24, 30)
    tables = start.starts(Run(setting, "quick")).columns()
    assert [(decay, seed, options["model"].initialisation) for decay, _, seed, _, options in asked] == [
        (decay, 7100 + round(10 * decay), name) for name in setting.starts for decay in TABLE_1
    ]
    rows, totals = tables["networks"], tables["totals"]
    assert rows["network"].tolist() == list(range(24)) * 8
    assert totals["start"].tolist() == list(setting.starts)
    for n, name in enumerate(setting.starts):
        samples = {decay: start.Sample.of(rows_of(rows, start=name, weight_decay=decay)) for decay in TABLE_1}
        found = start.total(samples)
        assert {key: totals[key][n] for key in found} == found
        seen, numbers = start.distance(samples)
        assert (found["chi_square"], found["numbers"]) == (seen, numbers)
        assert 1 / 21 <= found["p_value"] <= 1
    nearer, each = (rule.measure(tables, 0.95) for rule in RECIPES["musat-start"].rules)
    assert nearer.count == each.count == 24, "networks, and not the parts of the jackknife"
    assert each.estimate == pytest.approx(totals["chi_square"][0] / totals["numbers"][0])
    assert nearer.estimate == pytest.approx(totals["chi_square"][1] - totals["chi_square"][0])


def test_chance_exchanges_the_starts_of_networks_of_equal_decay():
    rows = {"start": np.repeat(["a", "b"], 20), "weight_decay": np.tile(np.repeat([0.0, 1.0], 10), 2),
            "network": np.tile(np.arange(10), 4), "circle": np.arange(40) % 2 == 0,
            "imperfections": np.arange(40.0), "accuracy": 100 + np.arange(40.0)}  # fmt: skip
    found = start._shuffled_starts({"networks": rows, "totals": {}}, np.random.default_rng(0))
    mixed = found["networks"]
    for name in ("start", "weight_decay", "network"):
        assert mixed[name].tolist() == rows[name].tolist()
    assert mixed["imperfections"].tolist() != rows["imperfections"].tolist()
    np.testing.assert_array_equal(mixed["accuracy"], 100 + mixed["imperfections"])
    np.testing.assert_array_equal(mixed["circle"], mixed["imperfections"] % 2 == 0)
    for decay in (0.0, 1.0):
        here = rows["weight_decay"] == decay
        assert sorted(mixed["imperfections"][here]) == sorted(rows["imperfections"][here])


@pytest.fixture
def trained():
    model = nets.ConstantAttention(17, hidden=8)
    return nets.train(model, runs=3, steps=5, record=5, observables=("validation_accuracy", "layers"), seed=2)


def test_pair_sums_stand_with_their_tokens_class_and_answer(trained, monkeypatch):
    monkeypatch.setattr(classifiers, "_trained", lambda setting, seed: trained)
    monkeypatch.setattr(classifiers, "typical_runs", lambda trained, found: {"circle": 2, "grid": 1})
    made = classifiers.circle_map(Run(classifiers.Setting(3, 1.0, 5), "paper"))
    tables = made.columns()
    sums, tokens = tables["sums"], tables["tokens"]
    assert set(sums["network"]) == {2}
    E = trained.final[2].astype(float)
    pairs = [(a, b) for a in range(17) for b in range(a, 17)]
    assert sorted(zip(sums["a"].tolist(), sums["b"].tolist(), strict=True)) == pairs
    np.testing.assert_allclose(np.stack([sums["x"], sums["y"]], axis=1), E[sums["a"]] + E[sums["b"]])
    assert sums["class"].tolist() == ((sums["a"] + sums["b"]) % 17).tolist()
    alone = nets.networks(trained.run(2))
    assert sums["seen"].tolist() == alone.classify(E[sums["a"]] + E[sums["b"]])[0].tolist()
    held = alone.examples("validation")[0]
    assert np.flatnonzero(sums["validates"]).tolist() == sorted(held.tolist())
    assert tokens["circle"].tolist() == np.repeat(structures(trained.final).circle, 17).tolist()
    left, right = made.figures["musat-4"].get_axes()[:2]
    right_share = 100 * trained.observables["validation_accuracy"][2, -1]
    heads = left.get_title() + left.get_title(loc="left")
    assert heads.startswith("network 2: ")
    assert heads.endswith(f"grid imperfections; accuracy {right_share:.0f} %")
    assert "diamonds" in right.get_title() + right.get_title(loc="left")
    assert set(classifiers.grid_map(Run(None, "paper")).columns()["sums"]["network"]) == {1}


def test_a_map_needs_its_structure_at_the_papers_setting_and_shows_the_first_network_otherwise(
    trained, monkeypatch
):
    monkeypatch.setattr(classifiers, "_trained", lambda setting, seed: trained)
    monkeypatch.setattr(classifiers, "typical_runs", lambda trained, found: {"grid": 1})
    with pytest.raises(InputError, match=r"^there must be a circle among the 3 networks, found none$"):
        classifiers.circle_map(Run(None, "paper"))
    assert set(classifiers.circle_map(Run(None, "quick")).columns()["sums"]["network"]) == {0}
    axes = classifiers.more_maps(Run(None, "quick")).figures["musat-F"].get_axes()
    assert [bool(ax.has_data()) for ax in axes[:8]] == [True] * 6 + [False] * 2, "two networks a row"


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
    assert "runs" not in mixed
