import numpy as np
import pytest

from grokphys.papers.liu import figures_03_04b_05b as toy
from grokphys.papers.liu import figures_12_17_18 as small
from grokphys.papers.recipe import RECIPES, Run
from nets import GroupDecoder, ToyAddition


def test_networks_stand_with_their_sets_bounds_and_steps():
    rows = RECIPES["liu-3"].make(Run(toy.QUICK, "quick")).columns()["networks"]
    samples = rows["train_accuracy"] * rows["size"]
    np.testing.assert_allclose(samples, samples.round(), atol=1e-5)
    assert (rows["predicted_accuracy"] >= rows["fraction"] - 1e-12).all()
    assert (rows["accuracy_bound"] >= rows["fraction"] - 1e-12).all()
    assert (rows["rqi_bound"][rows["size"] == 50] > 0.9).all()
    assert np.isinf(rows["n_h"][rows["size"] == 14]).any()
    best = {size: rows["rqi"][rows["size"] == size].max() for size in (14, 50)}
    assert best[14] < 0.3 < best[50]


def test_the_figures_of_one_setting_are_of_the_same_networks():
    first, second = (RECIPES[n].make(Run(toy.QUICK, "quick")).columns() for n in ("liu-4b", "liu-3"))
    np.testing.assert_array_equal(first["networks"]["rqi"], second["networks"]["rqi"])


@pytest.mark.parametrize("model", [ToyAddition(5, hidden=(8,)), GroupDecoder(hidden=(8,))])
def test_measured_sets_and_accuracies_belong_together(model):
    rows = toy.measure(toy.Fractions(model, (6,), 3, 20, 1e-3), 6)
    right = 6 * rows["train_accuracy"] + (len(model.task) - 6) * rows["validation_accuracy"]
    assert rows["accuracy"] == pytest.approx(right / len(model.task))
    assert (rows["predicted_accuracy"] >= 6 / len(model.task) - 1e-12).all()
    assert rows["network"].tolist() == [6000, 6001, 6002]


# -- The smallest cases -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("E", "expected"),
    [([0, 1, 2, 3], "A1 A2 A3"), ([0, 1, 2, 5], "A1"), ([0, 1, 3, 4], "A2"), ([0, 4, 5, 6], "A3")],
)
def test_equations_of_four_symbols(E, expected):
    assert small.equations(np.array(E, float)) == expected
    assert small.equations(np.array([0.0, 3.0, 1.0, 5.0])) == "none"


def test_a_slow_decoder_makes_more_parallelograms():
    rows = RECIPES["liu-12"].make(Run(RECIPES["liu-12"].settings["quick"], "quick")).columns()["networks"]
    slow = rows["decoder"] == "slow decoder"
    assert rows["rqi"][slow].mean() > rows["rqi"][~slow].mean()
    kinds = [0 if text == "none" else len(text.split()) for text in rows["equations"]]
    np.testing.assert_allclose(rows["rqi"], np.array(kinds) / 3)


def points_table(angles):
    turned = np.deg2rad(np.asarray(angles, float))
    own = {"PC1": np.cos(turned), "PC2": np.zeros(6), "PC3": np.sin(turned), "network": np.zeros(6, int)}
    return {"elements": own | {"rqi": np.ones(6)}}


def test_a_hexagon_is_looked_for_on_the_first_and_third_component():
    regular = points_table([0, 60, 120, 180, 240, 300])
    assert small._hexagons(regular, 0.95).estimate == 1
    assert small._hexagons(points_table([0, 10, 120, 130, 240, 250]), 0.95).estimate == 0
    rows = regular["elements"]
    flat = {"elements": rows | {"PC2": rows["PC3"], "PC3": rows["PC2"]}}
    assert small._hexagons(flat, 0.95).estimate == 0
    assert np.isnan(small._hexagons({"elements": rows | {"rqi": np.zeros(6)}}, 0.95).estimate)


def test_the_names_of_the_permutations_are_those_of_the_group():
    """(123) follows from (12) and (23); the three transpositions are their own inverses."""
    from physics import symmetric

    table = symmetric(3).table
    number = {name: k for k, name in enumerate(small.PERMUTATIONS)}
    for name in ("(12)", "(13)", "(23)"):
        assert table[number[name], number[name]] == number["e"]
    assert table[number["(123)"], number["(123)"]] == number["(132)"]
    assert table[number["(123)"], number["(132)"]] == number["e"]
