"""Tables and measures of the recipe "rounding" from their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nets
from analysis.circles.fourier import fourier_signals
from analysis.circles.survival import agreement, survives
from grokphys.papers.beyond import rounding
from grokphys.papers.beyond.rounding import DOUBLE, STABLE, USUAL, Setting
from grokphys.papers.beyond.selection import Place
from grokphys.papers.recipe import Run

PLACE = Place(11, 8, 900)


@given(st.lists(st.floats(1e-8, 10.0), min_size=2, max_size=9))
def test_the_largest_rise_is_from_the_least_loss_before(losses):
    pairs = [later / earlier for n, later in enumerate(losses) for earlier in losses[:n]]
    assert rounding.largest_rise([losses, losses]) == pytest.approx([np.log10(max(pairs))] * 2, abs=1e-12)


def test_a_loss_that_falls_by_a_tenth_never_rises():
    np.testing.assert_allclose(rounding.largest_rise(0.1 ** np.arange(6)), -1.0)


@pytest.mark.parametrize(
    ("arithmetic", "options"),
    [
        (USUAL, {"dtype": "float32", "stable_gradient": False}),
        (STABLE, {"dtype": "float32", "stable_gradient": True}),
        (DOUBLE, {"dtype": "float64", "stable_gradient": False}),
    ],
)
def test_networks_are_those_of_their_arithmetic(arithmetic, options):
    found = rounding._trained(PLACE, arithmetic, range(1, 3))
    trained = nets.train(
        nets.EmbeddingMLP(11, 8), runs=2, first_run=1, steps=900, seed=48_011, weight_decay=0.5,
        record=3, observables=("train_loss", "validation_accuracy"), **options,
    )  # fmt: skip
    alive = survives(fourier_signals(trained.positions))
    np.testing.assert_array_equal(found["step"], [trained.steps] * 2)
    np.testing.assert_array_equal(found["loss"], trained.observables["train_loss"])
    np.testing.assert_array_equal(found["circles"], alive.sum(axis=2))
    np.testing.assert_array_equal(found["survived"], alive[:, -1])
    np.testing.assert_array_equal(found["accuracy"], trained.observables["validation_accuracy"][:, -1])


def test_each_network_is_in_the_table_once_for_each_arithmetic_and_compared_with_its_own_double(monkeypatch):
    def made(place, arithmetic, part):
        number = np.array(part)[:, None]
        kind = (USUAL, STABLE, DOUBLE).index(arithmetic)
        steps = np.tile(np.arange(0, 11_000, 1000), (len(part), 1))
        loss = np.where(steps == 10_000, 10.0 ** (kind - number), 1e-3)
        loss = np.where(steps < 5000, 1e-9, loss)  # a rise at step 5000, which is not counted
        survived = np.arange(4) <= (number + kind) % 3
        circles = np.broadcast_to(survived.sum(axis=1)[:, None], steps.shape)
        accuracy = np.full(len(part), 0.5 + kind / 10)
        return {"step": steps, "loss": loss, "circles": circles, "survived": survived, "accuracy": accuracy}

    monkeypatch.setattr(rounding, "_trained", made)
    setting = Setting((Place(31, 4, 10_000), Place(59, 4, 10_000)), (11, 3), (2, 3))
    tables = rounding.rounding(Run(setting, "quick")).columns()
    rows = tables["networks"]
    for tokens, runs, doubles in ((31, 11, 2), (59, 3, 3)):
        for kind, arithmetic in enumerate((USUAL, STABLE, DOUBLE)):
            own = (rows["tokens"] == tokens) & (rows["arithmetic"] == arithmetic)
            numbers = np.arange(doubles if arithmetic == DOUBLE else runs)
            np.testing.assert_array_equal(rows["network"][own], 1000 * tokens + numbers)
            np.testing.assert_allclose(rows["rise"][own], np.maximum(3 + kind - numbers, 0))
            np.testing.assert_allclose(rows["loss"][own], kind - numbers)
            np.testing.assert_array_equal(rows["circles"][own], (numbers + kind) % 3 + 1)
            np.testing.assert_allclose(rows["accuracy"][own], 0.5 + kind / 10)
            sets = [np.arange(4) <= ((numbers + k) % 3)[:, None] for k in (kind, 2)]
            expected = np.where(numbers < doubles, agreement(*sets), np.nan)
            np.testing.assert_allclose(rows["as_double"][own], expected)
            course = (tables["course"]["tokens"] == tokens) & (tables["course"]["arithmetic"] == arithmetic)
            assert tables["course"]["step"][course].tolist() == list(range(0, 11_000, 1000))
            np.testing.assert_allclose(tables["course"]["first_loss"][course], [-9] * 5 + [-3] * 5 + [kind])
            np.testing.assert_allclose(tables["course"]["circles"][course], ((numbers + kind) % 3 + 1).mean())


def test_gaps_are_between_the_same_networks():
    rows = {
        "tokens": np.array([31, 31, 31, 31, 31, 59]),
        "network": np.array([2, 0, 1, 1, 2, 1]),
        "arithmetic": np.array([USUAL, USUAL, USUAL, DOUBLE, DOUBLE, DOUBLE]),
        "rise": np.array([5.0, 9.0, 3.0, 1.0, 6.0, 70.0]),
        "as_double": np.array([5.0, 9.0, np.nan, 1.0, 6.0, 70.0]),
    }
    tables = {"networks": rows}

    def found(*what, **options):
        one = rounding._gap(31, *what, **options)(tables, 0.95)
        return one.estimate, one.count

    assert found("rise", USUAL, DOUBLE) == (0.5, 2)
    assert found("rise", DOUBLE, USUAL) == (-0.5, 2)
    assert found("rise", USUAL, DOUBLE, sizes=True) == (1.5, 2)
    assert found("as_double", USUAL, DOUBLE) == (-1.0, 1)
    assert found("rise", USUAL, STABLE)[1] == 0
    assert rounding._rise(31, USUAL)(tables, 0.95).estimate == pytest.approx(17 / 3)
