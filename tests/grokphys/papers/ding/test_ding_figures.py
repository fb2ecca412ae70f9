"""What is known of the embedded run, p = 59 and d = 128, by the functions of the recipes."""

import numpy as np
import pytest

import physics
from analysis import fourier_signals
from grokphys.papers.ding import figure_02, figure_11
from grokphys.papers.ding.figure_09 import LASSO, LINEAR, law_of, path_of
from grokphys.papers.recipe import Run
from grokphys.report.circles import signals_of


@pytest.fixture(scope="module")
def run():
    return physics.example("ding")


@pytest.fixture(scope="module")
def signals(run):
    return signals_of(run, 0, 1000)[0].values


def test_fourier_planes_hold_circles_and_principal_components_mix_them(run):
    rows = figure_02._planes(0, np.asarray(run.final[0], float))
    assert {row["frequency"] for row in rows} == {7, 8, 11, 13, 25}
    assert min(row["in_fourier"] for row in rows) > 0.99
    assert min(row["in_components"] for row in rows) < 0.6


def test_circularity_of_random_embeddings_grows_with_their_dimension():
    setting = figure_11.Embeddings(59, (2, 8, 32, 128, 512), 10, 0)
    rows = figure_11.initial_circularity(Run(setting, "quick")).tables["embeddings"]
    for d in setting.dims:
        own = rows["mean"][rows["d"] == d]
        assert own.mean() == pytest.approx(d / (d + 57), abs=0.02)
        assert (rows["maximum"][rows["d"] == d] > own).all()


def test_signals_of_the_start_and_of_the_end(run, signals):
    final = fourier_signals(run.final[0])
    assert (1 + np.flatnonzero(final > 2 * final.mean())).tolist() == [7, 8, 11, 13, 25]
    assert signals[0].max() < 2 * signals[0].mean()


def test_the_linear_law_follows_all_signals_in_sample(signals):
    errors = {}
    for name in (LINEAR, LASSO):
        path = path_of(name, law_of(name, signals), signals)
        errors[name] = np.sqrt(np.mean((path - signals) ** 2, axis=0))
    assert errors[LINEAR].max() < 0.1 < errors[LASSO].max() < 5


def test_the_linear_ode_flatters_in_sample(signals):
    for name in (LINEAR, LASSO):
        law = law_of(name, signals[:501])
        assert law.score(signals[:501]).derivative > 0.7
        assert law.score(signals[500:]).derivative < -100
