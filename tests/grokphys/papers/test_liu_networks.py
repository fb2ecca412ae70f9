import csv
import math

import numpy as np
import pytest
import torch
from grokphys.papers.registry import FIGURES

from grokphys.papers.liu import components as liu_components
from grokphys.papers.liu import images as liu_images
from grokphys.papers.liu import networks as liu_networks
from grokphys.phases import NEVER
from nets import TokenTransformer

torch.set_num_threads(1)  # PyTorch's threads spin, and tiny matrices gain nothing by them


def rows_of(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_circle_is_of_its_frequency():
    token = np.arange(29)
    circle = np.stack([np.cos(2 * np.pi * 5 * token / 29), np.sin(2 * np.pi * 5 * token / 29)], axis=1)
    assert liu_components._frequency(circle) == 5
    assert liu_components._share(circle, 5) == pytest.approx(1)
    assert liu_components._share(circle, 4) == pytest.approx(0, abs=1e-12)
    line = liu_components.show_circle(circle, 5).lines[0].get_xydata()
    chords = np.linalg.norm(np.diff(line, axis=0), axis=1)
    np.testing.assert_allclose(chords, 2 * np.sin(np.pi / 29))  # a polygon that goes round once


def test_accuracies_of_the_own_embedding_are_the_recorded_ones(monkeypatch):
    setting = liu_networks.SETTINGS["quick"]
    small = liu_networks.replace(setting, model=TokenTransformer(7, 12, depth=1, width=8), steps=60)
    monkeypatch.setitem(liu_networks.SETTINGS, "quick", small)
    liu_components._network.cache_clear()
    trained = liu_components._network("quick")
    liu_components._network.cache_clear()
    split = liu_components._split(small)
    for frame in (0, trained.frames - 1):
        found = liu_components._accuracies(small.model, trained, frame, trained.positions[0, frame], split)
        for name, value in found.items():
            assert value == pytest.approx(trained.observables[name][0, frame])


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    out = tmp_path_factory.mktemp("reproduce")
    for name in ("liu-1", "liu-7", "liu-8", "liu-8b", "liu-20", "liu-21", "liu-22"):
        for path in FIGURES[name](out, "quick"):
            assert path.is_file()
    return out


@pytest.mark.slow
def test_generalisation_comes_with_fewer_dimensions(results):
    by_run = {}
    for row in rows_of(results / "liu-7.csv"):
        by_run.setdefault(row["run"], []).append(float(row["effective_dimension"]))
    for dimension in by_run.values():
        assert max(dimension) > dimension[0]
        assert dimension[-1] < 0.75 * max(dimension)
    phases = {row["phase"] for row in rows_of(results / "liu-7-phases.csv")}
    assert {"memorization", "confusion"} < phases


@pytest.mark.slow
def test_dropout_speeds_generalisation(results):
    rows = {float(row["dropout"]): row for row in rows_of(results / "liu-7-dropout.csv")}
    assert rows[0.0]["validation_steps"] == NEVER
    assert int(rows[0.05]["validation_steps"]) < 0.75 * liu_networks.SETTINGS["quick"].steps


@pytest.mark.slow
def test_the_final_embedding_is_a_circle_that_the_start_already_hints_at(results):
    views = {}
    for row in rows_of(results / "liu-21.csv"):
        views.setdefault(row["view"], []).append((float(row["pc_1"]), float(row["pc_2"])))
    final, own, projected = (np.array(points) for points in views.values())
    frequency = liu_components._frequency(final)
    assert liu_components._share(final, frequency) > 0.7
    assert liu_components._share(projected, frequency) > 2 * liu_components._share(own, frequency)


@pytest.mark.slow
def test_final_components_suffice_before_current_ones_do(results):
    rows = rows_of(results / "liu-22.csv")
    curves = {
        kind: np.array(
            [float(r["validation_accuracy"]) for r in rows if (r["components"], r["n"]) == (kind, "6")]
        )
        for kind in ("final", "current")
    }
    assert curves["final"][-1] == curves["current"][-1] > 0.5
    assert curves["final"].sum() > curves["current"].sum()


@pytest.mark.slow
def test_images_grok_and_fewer_take_longer(results):
    rows = rows_of(results / "liu-20.csv")
    steps = [math.inf if row["validation_steps"] == NEVER else int(row["validation_steps"]) for row in rows]
    assert steps == sorted(steps, reverse=True)
    assert int(rows[1]["train_steps"]) + liu_images.DELAY < steps[1]
    confused, memorized, bordering, _ = rows_of(results / "liu-8b-claims.csv")
    assert confused["claim"].startswith("a high rate and weight decay: confusion")
    assert memorized["claim"].startswith("a low rate and weight decay: memorization")
    assert confused["holds"] == memorized["holds"] == bordering["holds"] == "True"
