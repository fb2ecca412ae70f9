"""What Liu's figures of trained networks show, read back from the axes, of networks that are made up."""

from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from pictures import lines, title

import nets
from analysis.phases.classification import PHASES, classify_phases
from analysis.plots.palette import PHASES as PHASE_COLORS
from analysis.stats.intervals import proportion
from grokphys.papers import evidence
from grokphys.papers.liu import figure_07 as transformer
from grokphys.papers.liu import figures_06_13_to_15 as diagrams
from grokphys.papers.liu import planes
from grokphys.papers.recipe import RECIPES, Run

inf = np.inf
C, G, M, X = PHASES


def cloud(ax, n=0):
    return np.asarray(ax.collections[n].get_offsets())


# -- planes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("downwards", [True, False])
def test_a_plane_shows_the_phase_of_most_networks_and_the_share_of_each(downwards):
    rng = np.random.default_rng(0)
    column, row, _ = (a.ravel() for a in np.indices((3, 3, 4)))
    rows = {
        "column": np.tile(column, 2),
        "row": np.tile(row, 2),
        "phase": rng.choice(PHASES, 72),
        "diagram": np.repeat(["one", "two"], 36),
    }
    plane = planes.Plane(
        dict.fromkeys(("one", "two"), nets.ToyAddition(10)),
        ("learning_rate", 1e-4, 1e-1),
        ("weight_decay", 0.0, 6.0),
        3,
        4,
        10,
        {},
        0,
        labels=("rate", "decay"),
    )
    figure = planes.show_planes(rows, plane, downwards=downwards)
    axes = np.reshape(figure.get_axes(), (2, 5))
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    assert words == [*PHASES, "tie, in the color listed first"]
    scale = figure.legends[0].get_title().get_text()
    assert scale == "4 networks in each cell; shares: white for none, full color for all"
    for line, name in zip(axes, ("one", "two"), strict=True):
        own = rows["diagram"] == name
        share = np.zeros((4, 3, 3))
        for k, phase in enumerate(PHASES):
            for r in range(3):
                for c in range(3):
                    share[k, r, c] = np.mean(
                        rows["phase"][own & (rows["row"] == r) & (rows["column"] == c)] == phase
                    )
        mesh, *ties = line[0].collections
        assert title(line[0]) == f"{name}\nmost frequent of 4"
        *_, second, most = np.sort(share, axis=0)
        marked = [[10.0 ** (c - 3.5), 2 * r + 1] for r, c in np.argwhere(second == most)]
        assert (len(marked) > 0) == (len(ties) == 1) == (name == "one"), "the second diagram has no tie"
        np.testing.assert_allclose([place for one in ties for place in one.get_offsets()], marked)
        np.testing.assert_array_equal(np.asarray(mesh.get_array()), share.argmax(axis=0))
        assert [mesh.cmap(k)[:3] for k in range(4)] == [to_rgba(PHASE_COLORS[phase])[:3] for phase in PHASES]
        assert mesh.get_clim() == (-0.5, 3.5)
        corners = mesh.get_coordinates()
        np.testing.assert_allclose(corners[0, :, 0], [1e-4, 1e-3, 1e-2, 1e-1])
        np.testing.assert_allclose(corners[:, 0, 1], [0, 2, 4, 6])
        for ax, phase, part in zip(line[1:], PHASES, share, strict=True):
            np.testing.assert_allclose(np.asarray(ax.collections[0].get_array()), part)
            assert ax.collections[0].get_clim() == (0, 1)
            assert title(ax) == f"share of\n{phase}"
        assert line[0].yaxis_inverted() == downwards
        assert (line[0].get_xscale(), line[0].get_yscale()) == ("log", "linear")
        assert (line[0].get_ylabel(), line[2].get_xlabel()) == ("decay", "rate")


def test_a_plane_of_one_network_in_each_cell_has_no_ties():
    column, row = (a.ravel() for a in np.indices((3, 3)))
    phase = np.array(PHASES)[(column + row) % 4]
    rows = {"column": column, "row": row, "phase": phase, "diagram": np.full(9, "one")}
    setting = planes.Plane(
        {"one": nets.ToyAddition(10)},
        ("learning_rate", 1e-4, 1e-1),
        ("weight_decay", 0, 6),
        3,
        1,
        10,
        {},
        0,
    )
    figure = planes.drawing("name")(setting, {"networks": rows})["name"]
    (first,) = figure.get_axes()
    assert first.get_xlabel()
    assert (len(first.collections), title(first)) == (1, "one")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(PHASES)
    assert figure.legends[0].get_title().get_text() == "one network in each cell"


def test_a_recipe_whose_pictures_stand_apart_has_those_of_one_that_draws_them(monkeypatch):
    column, row = (a.ravel() for a in np.indices((3, 3)))
    setting = RECIPES["liu-6b"].settings["quick"]
    (name,) = setting.models
    rows = {"column": column, "row": row, "phase": np.full(9, C), "diagram": np.full(9, name)}
    monkeypatch.setattr(planes, "train_plane", lambda run, plane, **options: rows)
    run = Run(setting, "quick")
    drawn = planes.diagram(run, "here").figures["here"].get_axes()
    own = diagrams.capacity(run).figures["liu-6d"].get_axes()
    assert not planes.trained(run).figures
    for one, other in zip(drawn, own, strict=True):
        assert title(one) == title(other)
        np.testing.assert_array_equal(one.collections[0].get_array(), other.collections[0].get_array())


def test_table_1_names_the_phase_of_each_outcome():
    made = diagrams.definitions(Run(7, "quick"))
    rows = made.columns()["outcomes"]
    steps = np.append(np.geomspace(10, 1e5, 6).round(), inf)
    assert sorted(set(rows["train_steps"].tolist())) == steps.tolist()
    for fit, held, printed in zip(
        rows["train_steps"], rows["validation_steps"], rows["printed"], strict=True
    ):
        if np.isinf(fit):
            expected = "confusion" if np.isinf(held) else "not named"
        else:
            expected = M if np.isinf(held) else (C if held - fit < 1000 else G)
        assert printed == expected
    known = [
        np.where(np.isfinite(rows[f"{part}_steps"]), rows[f"{part}_steps"], np.nan)
        for part in ("train", "validation")
    ]
    assert rows["phase"].tolist() == classify_phases(*known).tolist()
    (ax,) = made.figures["liu-table1"].get_axes()
    for n, name in enumerate((*PHASE_COLORS, "not named")):
        here = rows["printed"] == name
        places = [
            np.where(np.isfinite(rows[f"{part}_steps"]), rows[f"{part}_steps"], 4e5)[here]
            for part in ("train", "validation")
        ]
        np.testing.assert_allclose(cloud(ax, n), np.transpose(places))
    assert diagrams._named({"outcomes": rows}, 0.95).estimate == 3 / 4
    named = rows["printed"] != "not named"
    found = diagrams._as_printed({"outcomes": rows}, 0.95)
    assert found == evidence.exact(np.mean((rows["printed"] == rows["phase"])[named])), (
        "all outcomes are listed"
    )


# -- transformers -----------------------------------------------------------------------------------------


def test_figure_7_shows_all_curves_their_median_and_where_they_generalize(monkeypatch):
    curves = np.array([[5.0, 6, 3, 2], [4, 4.5, 4.2, 4.1], [7, 8, 9, 1]])
    steps, reached = np.array([0, 10, 20, 30]), [11.0, inf, 30.0]

    def follow(setting, part):
        found = np.array([reached[k] for k in part])
        return {"steps": steps, "dimension": curves[part], "validation_steps": found}

    monkeypatch.setattr(transformer, "_follow", follow)
    made = transformer.dimension(Run(transformer.Followed(nets.TokenTransformer(), 3, 30), "quick"))
    (ax,) = made.figures["liu-7"].get_axes()
    assert [line.get_ydata().tolist() for line in ax.lines[:3]] == curves.tolist()
    assert lines(ax)["median of 3 networks"] == (steps.tolist(), np.median(curves, axis=0).tolist())
    assert lines(ax)["90 % validation accuracy"] == ([11, 30], [3, 1])
    quartiles = made.columns()["curve"]
    for k in (1, 3):
        assert quartiles[f"quartile_{k}"].tolist() == np.quantile(curves, k / 4, axis=0).tolist()


def test_figure_7_shows_both_steps_over_dropout_and_those_that_never_come(monkeypatch):
    made = {0.0: ([10.0, 20.0], [inf, 900.0]), 0.3: ([inf, 30.0], [400.0, 500.0])}

    def with_dropout(setting, number, part):
        rate = setting.rates[number]
        fitted, held = (steps[part.start : part.stop] for steps in made[rate])
        return {"dropout": [rate] * len(part), "train_steps": fitted, "validation_steps": held}

    monkeypatch.setattr(transformer, "_with_dropout", with_dropout)
    setting = transformer.Dropouts(nets.TokenTransformer(), (0.0, 0.3), 2, 1000)
    (ax,) = transformer.dropout(Run(setting, "quick")).figures["liu-7b"].get_axes()
    assert lines(ax)["train"] == ([0, 0, 0.3], [10, 20, 30])
    assert lines(ax)["validation"] == ([0, 0.3, 0.3], [900, 400, 500])
    never = [line.get_xydata().tolist() for line in ax.lines if line.get_label().startswith("_")]
    assert never[:2] == [[[0.3, 1000]], [[0, 1000]]]
    assert never[2][0][1] == 1000


def test_rules_of_figure_7_on_a_few_networks():
    rows = {
        "dropout": np.array([0.0, 0, 0.1, 0.1, 0.2, 0.2, 0.5, 0.5]),
        "train_steps": np.array([10.0, 10, 10, 10, 100, 100, inf, 500]),
        "validation_steps": np.array([20.0, 30, 999, 1000, 1100, 1099, inf, inf]),
    }
    tables = {"networks": rows}
    assert transformer._under_a_thousand(tables, 0.95) == proportion(0, 4), "only much dropout counts"
    assert transformer._comprehends(tables, 0.95) == proportion(1, 4), "who never generalizes does not count"


def test_dropout_is_trained_at_each_rate_with_a_seed_of_its_own(monkeypatch):
    asked = []

    def train(model, **options):
        asked.append((model.dropout, options["seed"], options["first_run"], options["runs"]))
        assert (options["weight_decay"], options["stop"]) == (0.0, "thresholds")
        steps = {
            f"steps_to_{name}": np.array([[5.0, np.nan if options["first_run"] else value]])
            for name, value in (("train_accuracy", 7.0), ("validation_accuracy", 9.0))
        }
        return SimpleNamespace(observables=steps)

    monkeypatch.setattr(transformer, "train", train)
    setting = transformer.Dropouts(nets.TokenTransformer(), (0.0, 0.3), 2, 1000)
    rows = transformer.dropout(Run(setting, "quick")).columns()["networks"]
    assert asked == [(0.0, 750, 0, 1), (0.0, 750, 1, 1), (0.3, 751, 0, 1), (0.3, 751, 1, 1)]
    assert rows["dropout"].tolist() == [0, 0, 0.3, 0.3]
    assert rows["train_steps"].tolist() == [7, inf] * 2
    assert rows["validation_steps"].tolist() == [9, inf] * 2
