"""Every column of Ding's tables from its definition, also those that no rule reads."""

from types import SimpleNamespace

import numpy as np
import pytest

import nets
from analysis.circles.fourier import fourier_signals
from analysis.stats.intervals import proportion
from grokphys.papers.ding import figure_06, figure_08, figure_09, training, trials
from grokphys.papers.ding.training import Size, train_circles
from grokphys.papers.recipe import Run

TINY = Size(11, 8, 60)


def stronger(signals, **_):
    """Stands for the survivors of small networks, in which nothing dies."""
    return signals > np.median(signals, axis=-1, keepdims=True)


def test_rows_of_trials_are_the_frequencies_of_each_network(monkeypatch):
    monkeypatch.setattr(training, "survives", stronger)
    rows = trials.train_trials(Run(trials.Trials(TINY, 2, 3), "quick"))
    assert rows["trial"].tolist() == np.repeat(range(3), 5).tolist() * 2
    assert rows["frequency"].tolist() == [1, 2, 3, 4, 5] * 6
    for n in range(2):
        own = {name: values[rows["embedding"] == n].reshape(3, 5) for name, values in rows.items()}
        options = {"runs": 3, "seed": 6000 + n, "shared": ("embedding",)}
        found = train_circles(TINY.model, steps=60, audited=1, **options)
        early = nets.train(
            TINY.model, steps=4, weight_decay=0.5, record=1, observables=("gradient",), **options
        )
        signals = np.stack([fourier_signals(E) for E in early.positions])
        np.testing.assert_allclose(own["signal"], signals[:, 0], rtol=1e-5)
        for step in range(1, 5):
            np.testing.assert_allclose(
                own[f"change_{step}"], signals[:, step] - signals[:, step - 1], rtol=1e-3, atol=1e-5
            )
        E, G = early.final.astype(float), early.observables["gradient"][:, -1].astype(float)
        np.testing.assert_allclose(  # how the signals change along -G
            own["gradient"], (fourier_signals(E - 1e-4 * G) - fourier_signals(E)) / 1e-4, rtol=1e-2, atol=1e-4
        )
        np.testing.assert_array_equal(own["survived"], found.survived)
        np.testing.assert_array_equal(own["changed"], found.changed)
        np.testing.assert_array_equal(own["decided"], np.repeat(found.decided[:, None], 5, axis=1))
        assert own["audited"].tolist() == [[True] * 5] + [[False] * 5] * 2
    monkeypatch.setattr(trials, "AUDITED", 1)
    rows = trials._one_embedding(trials.Trials(TINY, 2, 3), 1)
    assert not rows["audited"].any(), "networks of the first embeddings alone are trained to the end"


def walk(count=25, K=4, seed=0):
    rng = np.random.default_rng(seed)
    return np.exp(rng.normal(0, 0.02, (count, K)).cumsum(axis=0)) * np.arange(30, 30 + K)


@pytest.mark.parametrize("name", [figure_09.LINEAR, figure_09.LASSO, figure_09.SOLVED, figure_09.QUADRATIC])
def test_scores_of_a_law_are_of_its_changes_its_path_and_its_coefficients(name):
    x = walk()
    law, found = figure_09.law_of(name, x), figure_09._score(name, x)
    path = figure_09.path_of(name, law, x)
    changes = np.diff(x, axis=0)
    left = changes - law.changes(x[:-1])
    assert found["r2"] == pytest.approx(
        1 - np.mean((left**2).sum(axis=0) / (len(changes) * changes.var(axis=0)))
    )
    assert found["missed"] == pytest.approx(1 - found["r2"])
    assert found["error"] == pytest.approx(min(np.linalg.norm(path - x) / np.linalg.norm(x), 1e3))
    assert found["error_of_rest"] == pytest.approx(np.linalg.norm(x - x[0]) / np.linalg.norm(x))
    miss = np.sqrt(np.mean((path - x) ** 2, axis=0))
    assert found["followed"] == np.mean(miss <= x[0] / 10)
    if name == figure_09.QUADRATIC:
        assert found["coefficients"] == 1
        assert np.isnan(found["collaborate"])
    else:
        assert found["coefficients"] == np.count_nonzero(law.A) / 16


def test_a_path_that_overflows_has_the_largest_error_and_is_not_followed(monkeypatch):
    x = walk()
    law = SimpleNamespace(changes=lambda x: np.zeros_like(x))
    monkeypatch.setattr(figure_09, "law_of", lambda name, x: law)
    for factor, error in ((np.inf, 1e3), (np.nan, 1e3), (2000.0, 1e3), (1001.0, 1000.0), (1000.0, 999.0)):
        monkeypatch.setattr(figure_09, "path_of", lambda name, law, x, f=factor: x * f)
        found = figure_09._score(figure_09.QUADRATIC, x)
        assert found["error"] == pytest.approx(error)
        assert found["followed"] == 0
    for off, share in ((0.1, 1.0), (0.101, 0.0)):
        monkeypatch.setattr(figure_09, "path_of", lambda name, law, x, o=off: x + (o - 1e-12) * x[0])
        assert figure_09._score(figure_09.QUADRATIC, x)["followed"] == share


def test_networks_that_are_fitted_go_on_in_the_next_piece(monkeypatch):
    monkeypatch.setattr(figure_09, "PIECE", (2, 2))
    monkeypatch.setattr(figure_09, "_score", lambda name, x: {"last": float(x[-1, 0]), "of": name})
    laws = (figure_09.LINEAR, figure_09.LASSO)
    setting = figure_09.Fits(7, (4, 6), 3, 50, laws, steps=6)
    rows, signals = figure_09.fit_networks(Run(setting, "quick"))
    assert rows["d"].tolist() == [4] * 6 + [6] * 6
    assert rows["network"].tolist() == [0, 0, 1, 1, 2, 2] * 2
    assert rows["law"].tolist() == list(laws) * 6
    for n, d in enumerate((4, 6)):
        trained = nets.train(
            nets.EmbeddingMLP(7, d), runs=3, steps=6, seed=50 + d, weight_decay=0.5, record=1, observables=()
        )
        expected = np.stack([fourier_signals(E) for E in trained.positions])
        np.testing.assert_allclose(signals[3 * n : 3 * n + 3], expected, rtol=1e-5)
        np.testing.assert_allclose(
            rows["last"][6 * n : 6 * n + 6], np.repeat(expected[:, -1, 0], 2), rtol=1e-5
        )


def test_sets_of_circles_have_accuracies_and_curves_their_strongest(monkeypatch):
    monkeypatch.setattr(figure_08, "survives", stronger)
    monkeypatch.setattr(figure_08, "PIECE", (1, 1))
    made = figure_08.collaboration(Run(figure_08.Kept(TINY, "30", 2, 4), "quick")).columns()
    sets, curves = made["sets"], made["curves"]
    trained = nets.train(
        TINY.model, runs=2, steps=60, seed=4, weight_decay=0.5, record=30, observables=("layers",)
    )
    names = ("network", "step", "kept", "rank", "test_loss", "accuracy")
    assert all(tuple(table) == names for table in (sets, curves))
    # Two of five circles are stronger than the median: none, each, and both of them are kept.
    assert list(zip(sets["network"].tolist(), sets["kept"].tolist(), sets["rank"].tolist(), strict=True)) == [
        (network, *own) for network in (0, 1) for own in ((0, 0), (1, 0), (1, 1), (2, 0))
    ]
    assert set(sets["step"]) == {60}
    columns = (curves[name].tolist() for name in ("network", "step", "kept"))
    assert list(zip(*columns, strict=True)) == [
        (network, step, kept) for network in (0, 1) for step in (0, 30, 60) for kept in (0, 1, 2)
    ]  # fmt: skip
    assert set(curves["rank"]) == {0}
    for network in range(2):
        final = fourier_signals(trained.final[network])
        best = [int(k) + 1 for k in np.argsort(-final)[:2]]
        for frame, step in enumerate((0, 30, 60)):
            revived = nets.networks(trained.run(network), frame)
            E = revived.parameters["embedding"][0]
            for kept in (0, 1, 2):
                F = np.fft.fft(E.astype(float), axis=0)
                if kept:
                    F[[f for f in range(11) if min(f, 11 - f) not in best[:kept]]] = 0
                one = revived.with_embedding(np.fft.ifft(F, axis=0).real)
                (row,) = np.flatnonzero(
                    (curves["network"] == network) & (curves["step"] == step) & (curves["kept"] == kept)
                )
                assert curves["test_loss"][row] == pytest.approx(one.loss("validation")[0], rel=1e-4)
                assert curves["accuracy"][row] == pytest.approx(one.accuracy("validation")[0])
    found = figure_08._strongest(1, lambda loss, accuracy: loss > 0)({"sets": sets}, 0.95)
    assert found == proportion(2, 2), "one set of each network, the strongest"


def test_networks_of_figure_6_stand_with_the_audit_of_their_training(monkeypatch):
    asked = []

    def trained(model, *, runs, steps, audited, seed, initial, first_run=0):
        asked.append((runs, first_run, steps, audited, seed))
        signals = np.stack([fourier_signals(initial)] * 4, axis=1)
        return training.Circles(np.array([0, 10, 20, 30]), signals, audited)

    monkeypatch.setattr(figure_06, "train_circles", trained)
    rows = figure_06._scale_one(figure_06.Scaled(TINY, 9, (0.9, 1.1), 3, 2), 4)
    assert not figure_06._scale_one(figure_06.Scaled(TINY, 9, (0.9, 1.1), 3, 2), 5)["audited"].any()
    assert rows["embedding"].tolist() == [4] * 6
    assert rows["audited"].tolist() == [True] + [False] * 5
    pairs = figure_06._train_pairs(figure_06.Pairs(TINY, (0.0, 0.8), 3), range(1, 2))
    assert pairs["audited"].all()
    assert pairs["ratio"].tolist() == [0.8] * 3
    assert pairs["circles"].tolist() == [2, 2, 2]
    assert asked == [(6, 0, 60, 1, 6104), (6, 0, 60, 0, 6105), (3, 3, 60, 3, 6200)]
