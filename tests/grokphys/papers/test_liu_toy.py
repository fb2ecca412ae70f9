import csv
import re

import numpy as np
import pytest
from pictures import shows_something

from grokphys.papers.liu import small as liu_small
from grokphys.papers.liu import toy as liu_toy
from nets import GroupDecoder, ToyAddition
from physics import EffectiveTheory, representation_quality


def rows_of(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def small(monkeypatch):
    """Recipes in seconds: two sizes, few networks and steps."""
    for module, values in (
        (
            liu_toy,
            {"SIZES": range(12, 55, 38), "SEEDS": 2, "STEPS": 900, "RATE_SETS": 20, "SHOWN_STEPS": 400},
        ),
        (liu_small, {"FOUR_SEEDS": 3, "MATRIX_SIZES": range(12, 36, 20), "MATRIX_SEEDS": 2}),
        (liu_small, {"MATRIX_STEPS": 600}),
    ):
        for name, value in values.items():
            monkeypatch.setattr(module, name, {"quick": value})
    monkeypatch.setattr(liu_toy, "DECODER_RATE", 1e-4)
    for cached in (liu_toy.trained_fractions, liu_small.trained_matrices):
        cached.cache_clear()
    yield
    for cached in (liu_toy.trained_fractions, liu_small.trained_matrices):
        cached.cache_clear()


def test_figures_3_4b_and_5b_are_of_the_same_networks(small, tmp_path, capsys):
    accuracy = liu_toy.accuracies(tmp_path, "quick")
    quality = liu_toy.qualities(tmp_path, "quick")
    theory, networks, figure = liu_toy.grokking_steps(tmp_path, "quick")
    rows = rows_of(networks)
    assert rows_of(accuracy[0]) == rows_of(quality[0]) == rows
    assert [row["size"] for row in rows] == ["12", "12", "50", "50"]
    for row in rows:
        samples = float(row["train_accuracy"]) * int(row["size"])
        assert samples == pytest.approx(round(samples), abs=1e-6)
        assert float(row["predicted_accuracy"]) >= float(row["fraction"]) - 1e-12
        assert float(row["rqi"]) >= float(row["rqi_delta_0.01"])
        assert float(row["n_h"]) == pytest.approx(1000 / (float(row["lambda_3"]) or np.nan), nan_ok=True) or (
            row["n_h"] == "inf" and float(row["lambda_3"]) == 0
        )
    quality_of = {size: [float(r["rqi"]) for r in rows if r["size"] == size] for size in ("12", "50")}
    assert max(quality_of["12"]) < 0.3 < max(quality_of["50"])
    steps = rows_of(theory)
    assert steps[9]["n_h_median"] == "inf"
    assert float(steps[54]["n_h_median"]) == pytest.approx(7000 / 0.6)
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert "δ = 0.1; 2 networks a size, 900 steps" in capsys.readouterr().out


def test_the_trajectory_is_normalised_and_its_quality_recorded(small, tmp_path):
    data, _ = liu_toy.trajectories(tmp_path, "quick")
    rows = rows_of(data)
    E = np.array([[float(row[f"E_{k}"]) for k in range(10)] for row in rows])
    np.testing.assert_allclose(E.mean(axis=1), 0, atol=1e-6)
    np.testing.assert_allclose(E.std(axis=1), 1, atol=1e-6)
    quality = representation_quality(E[:, :, None], EffectiveTheory(10), liu_toy.DELTA)
    np.testing.assert_allclose(quality, [float(row["rqi"]) for row in rows])


def test_without_a_network_that_passes_there_is_nothing_to_predict():
    ax = liu_toy.show_predicted_steps([])
    assert "No network passed" in (ax.get_title(), ax.get_title("left"))


def test_the_summary_counts():
    rows = [
        {"size": size, "fraction": size / 10, "rqi": rqi, "steps_to_rqi": steps}
        for size, rqi, steps in ((4, 0.1, np.nan), (4, 0.5, np.nan), (4, 0.9, np.nan), (8, 1.0, 30.0))
    ]
    first, second = liu_toy.summarise(rows, "rqi")
    assert (first["median"], first["best"], first["networks"], first["grokked"]) == (0.5, 0.9, 3, 0.0)
    assert (second["size"], second["grokked"]) == (8, 1.0)


@pytest.mark.parametrize("model", [ToyAddition(5, hidden=(8,)), GroupDecoder(hidden=(8,))])
def test_measured_sets_and_accuracies_belong_together(model):
    rows, masks = liu_toy.measure(model, 6, 3, 20, rate=1e-3, delta=0.1)
    assert masks.shape == (3, len(model.task))
    assert (masks.sum(axis=1) == 6).all()
    assert len({mask.tobytes() for mask in masks}) == 3
    for row in rows:
        right = 6 * row["train_accuracy"] + (len(model.task) - 6) * row["validation_accuracy"]
        assert row["accuracy"] == pytest.approx(right / len(model.task))
        assert row["predicted_accuracy"] >= 6 / len(model.task) - 1e-12


# -- The smallest cases -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("E", "expected"),
    [([0, 1, 2, 3], "A1 A2 A3"), ([0, 1, 2, 5], "A1"), ([0, 1, 3, 4], "A2"), ([0, 4, 5, 6], "A3")],
)
def test_equations_of_four_symbols(E, expected):
    assert liu_small.equations(np.array(E, float)) == expected
    assert liu_small.equations(np.array([0.0, 3.0, 1.0, 5.0])) == "none"


def test_a_slow_decoder_makes_more_parallelograms(small, tmp_path, capsys):
    data, figure = liu_small.four(tmp_path, "quick")
    rows = rows_of(data)
    found = {pace: [r["equations"] for r in rows if r["decoder"] == pace] for pace in liu_small.PACES}
    assert found["slow decoder"] == 3 * ["A1 A2 A3"]
    assert "A1 A2 A3" not in found["fast decoder"]
    assert shows_something(figure)
    assert "slow decoder: all three parallelograms in 100" in capsys.readouterr().out


def test_figures_17_and_18_of_the_permutations(small, tmp_path, capsys):
    data, _ = liu_small.hexagon(tmp_path, "quick")
    elements = rows_of(data)
    assert [row["element"] for row in elements] == list(liu_small.PERMUTATIONS)
    data, summary, figure = liu_small.permutations(tmp_path, "quick")
    assert [row["networks"] for row in rows_of(summary)] == ["2", "2"]
    assert len(rows_of(data)) == 4
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert re.search(r"RQI > 0.95 .* \(2 networks a size, 600 steps, δ = 4.5\)", capsys.readouterr().out)


def test_the_names_of_the_permutations_are_those_of_the_group():
    """(123) follows from (12) and (23); the three transpositions are their own inverses."""
    from physics import symmetric

    table = symmetric(3).table
    number = {name: k for k, name in enumerate(liu_small.PERMUTATIONS)}
    for name in ("(12)", "(13)", "(23)"):
        assert table[number[name], number[name]] == number["e"]
    assert table[number["(123)"], number["(123)"]] == number["(132)"]
    assert table[number["(123)"], number["(132)"]] == number["e"]
