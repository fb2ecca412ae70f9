"""Networks for the figures of Ding et al.: where they stop, and what is made of them."""

import itertools

import numpy as np
import pytest

import nets
from analysis import circularity, fourier_signals, survives
from analysis.stats.intervals import Interval
from grokphys.papers.beyond import law as beyond_law
from grokphys.papers.ding import figure_06, figure_08, figure_09, figure_11, trials
from grokphys.papers.ding import training as ding_training
from grokphys.papers.ding.training import (
    DECAY,
    RECORD,
    RULE,
    Circles,
    Size,
    UntilDecided,
    show_intervals,
    train_circles,
)
from grokphys.papers.recipe import Run
from nets import EmbeddingMLP, train
from nets.engines.ensemble import draw

TINY = Size(13, 8, 300)


def few(signals):
    """Networks so small have no survivor after a few hundred steps; by this limit most have some."""
    return survives(signals, factor=1.2)


def growing(rate, frames=60, every=20):
    """Signals in which one of four circles grows and three die, in an embedding of eight tokens."""
    steps = every * np.arange(frames)
    n = np.arange(8)
    signal = np.stack([np.exp(rate * steps)] + [np.exp(-0.01 * steps)] * 2, axis=1)
    waves = [[np.cos(2 * np.pi * k * n / 8), np.sin(2 * np.pi * k * n / 8)] for k in (1, 2, 3)]
    return steps, np.einsum("tk,kdn->tnkd", signal, np.array(waves)).reshape(frames, 8, 6)


def test_a_run_stops_where_the_rule_first_decides():
    steps, fast = growing(0.001)
    _, slow = growing(-0.008)
    stop = UntilDecided()
    ended = np.array([stop(int(s), np.stack(pair), {}) for s, *pair in zip(steps, fast, slow, strict=True)])
    for run, E in enumerate((fast, slow)):
        first = RULE.first(steps, fourier_signals(E))
        assert first is not None
        assert steps[ended[:, run].argmax()] == first
        np.testing.assert_allclose(np.stack(stop.signals)[:, run], fourier_signals(E))
    assert ended[:, 0].argmax() < ended[:, 1].argmax()


def test_audited_runs_are_not_stopped_and_diverged_ones_do_no_harm():
    steps, E = growing(0.001)
    stop = UntilDecided(audited=1)
    broken = np.full_like(E[0], np.nan)
    ended = [stop(int(s), np.stack([e, e, broken]), {}).tolist() for s, e in zip(steps, E, strict=True)]
    assert ended[-1] == [False, True, False]


def test_trained_runs_keep_their_signals_up_to_where_they_stop(monkeypatch):
    model = EmbeddingMLP(tokens=13, dim=8)
    starts = np.random.default_rng(0).standard_normal((3, 13, 8))
    whole = train(
        model,
        runs=3,
        steps=400,
        weight_decay=1.0,
        initial={"embedding": starts},
        record=RECORD,
        observables=(),
    )
    truth = fourier_signals(whole.positions)
    monkeypatch.setattr(ding_training, "SHARD", 2)
    found = train_circles(model, runs=3, steps=400, audited=1, initial=starts, weight_decay=1.0)
    assert found.steps[:6].tolist() == [0, 1, 2, 3, 4, 5]
    for run in range(3):
        first = RULE.first(whole.steps, truth[run])
        end = len(whole.steps) if first is None or run == 0 else int(np.searchsorted(whole.steps, first)) + 1
        np.testing.assert_allclose(found.signals[run, :end], truth[run, :end], rtol=1e-6)
        assert np.ptp(found.signals[run, end - 1 :], axis=0).max(initial=0) == 0
    np.testing.assert_array_equal(found.survived, survives(found.signals[:, -1]))
    assert found.counts.shape == found.decided.shape == (3,)


def test_the_audit_counts_wrong_decisions():
    steps = np.arange(0, 1001, 100)
    early, late = np.array([10.0, 10, 1, 1, 1, 1]), np.array([1.0, 20, 1, 1, 1, 1])
    wrong = np.where(steps[:, None] < 600, early, late)
    right = np.broadcast_to(late, wrong.shape)
    rows = Circles(steps, np.stack([wrong, right, right]), audited=2).columns()
    assert rows["circles"].tolist() == [1, 1, 1]
    assert rows["changed"].tolist() == [1, 0, 0]  # one circle too many when it was decided
    assert rows["audited"].tolist() == [True, True, False]
    assert rows["decided"].all()


def test_intervals_without_bounds_are_drawn_as_points():
    from matplotlib.figure import Figure

    nan = float("nan")
    ax = show_intervals(
        Figure().subplots(), [1, 2], [Interval(3, nan, nan, 1), Interval(4, 2, 5, 9)], linestyle=""
    )
    bars = ax.collections[0].get_segments()
    assert [float(np.ptp(bar[:, 1])) for bar in bars] == [0.0, 3.0]


def test_circles_are_taken_away_from_trained_networks(monkeypatch):
    monkeypatch.setattr(figure_08, "survives", few)
    setting = figure_08.Kept(TINY, "log:10", 2, 0)
    tables = figure_08.collaboration(Run(setting, "quick")).columns()
    trained = train(
        TINY.model, runs=2, steps=300, weight_decay=DECAY, record="log:10",
        observables=("validation_loss", "layers"),
    )  # fmt: skip
    for k, final in enumerate(trained.final):
        signal = fourier_signals(final)
        alive = [int(f) + 1 for f in np.argsort(-signal) if few(signal)[f]]
        own = {name: values[tables["sets"]["network"] == k] for name, values in tables["sets"].items()}
        assert own["test_loss"][own["kept"] == 0] == pytest.approx(
            trained.observables["validation_loss"][k, -1], rel=1e-5
        )
        assert len(alive) >= 1
        for count in range(1, min(3, len(alive)) + 1):
            for rank, kept in enumerate(itertools.combinations(alive, count)):
                F = np.fft.fft(final.astype(float), axis=0)
                F[[f for f in range(13) if min(f, 13 - f) not in kept]] = 0
                E = np.fft.ifft(F, axis=0).real
                loss = nets.networks(trained.run(k)).with_embedding(E).loss("validation")[0]
                here = (own["kept"] == count) & (own["rank"] == rank)
                assert own["test_loss"][here] == pytest.approx(loss, rel=1e-5)


def test_scores_of_a_law_are_those_of_its_fit():
    rng = np.random.default_rng(0)
    x = np.cumsum(rng.normal(size=(60, 4)), axis=0) + 40
    law = figure_09.law_of(figure_09.LASSO, x)
    found = figure_09._score(figure_09.LASSO, x)
    assert found["r2"] == pytest.approx(law.r2_in_sample)
    assert found["error"] == pytest.approx(
        law.score(x).relative_error * np.linalg.norm(x[1:]) / np.linalg.norm(x)
    )
    assert found["coefficients"] == np.count_nonzero(law.A) / 16
    between = law.A[~np.eye(4, dtype=bool)]
    assert found["collaborate"] == pytest.approx(np.sum(between > 0) / np.count_nonzero(between))


def test_trials_share_their_embedding_and_the_gradient_raises_what_it_raises():
    rows = trials.train_trials(Run(trials.Trials(TINY, 3, 3), "quick"))
    signal = rows["signal"].reshape(3, 3, 6)
    assert (signal == signal[:, :1]).all()
    assert (signal[0, 0] != signal[1, 0]).any()
    assert rows["embedding"].reshape(3, -1).tolist() == [[k] * 18 for k in range(3)]
    # Layers and splits are their own.
    assert np.ptp(rows["change_4"].reshape(3, 3, 6), axis=1).min() > 0
    # Adam follows the gradient: the signals that it raises most shrink least.
    assert np.corrcoef(rows["gradient"], rows["change_4"])[0, 1] > 0.3
    assert rows["audited"].reshape(3, 3, 6)[:, 0].all()
    assert not rows["audited"].reshape(3, 3, 6)[:, 1:].any()


def test_rows_are_of_the_starts_that_they_name(monkeypatch):
    """Runs that end as they begin: a circle survives where it begins above twice the mean."""
    starts = []

    def as_they_begin(model, *, runs, steps, audited, initial, **options):
        starts.append(initial)
        signals = fourier_signals(initial)
        return Circles(np.array([0, steps]), np.stack([signals, signals], axis=1), audited)

    monkeypatch.setattr(figure_06, "train_circles", as_they_begin)
    factors = (0.85, 1.0, 1.15)
    rows = figure_06.scaled(Run(figure_06.Scaled(TINY, 2, factors, 4, 2), "quick")).columns()["runs"]
    for n in range(2):
        own = {name: values[rows["embedding"] == n] for name, values in rows.items()}
        k = own["frequency"][0] - 1
        assert k == 1, "the same frequency in all embeddings"
        signals = fourier_signals(starts[n]).reshape(3, 4, -1)
        assert (signals == signals[:, :1]).all(), "the same start for all trials"
        np.testing.assert_allclose(signals[:, 0, k] / signals[0, 0, k], np.array(factors) / factors[0])
        expected = signals[:, 0, k] - np.delete(signals[:, 0], k, axis=1).mean(axis=1)
        np.testing.assert_allclose(own["deviation"], np.repeat(expected, 4))
        assert own["factor"].tolist() == np.repeat(factors, 4).tolist()
    starts.clear()
    ratios = (0.2, 0.6, 1.0)
    rows = figure_06.pairs(Run(figure_06.Pairs(TINY, ratios, 4), "quick")).columns()["runs"]
    strongest = np.sort(fourier_signals(np.concatenate(starts)), axis=1)[:, ::-1]
    np.testing.assert_allclose(strongest[:, 1] / strongest[:, 0], rows["ratio"])
    assert (strongest[:, 2:] < 1e-4).all()
    assert rows["larger"].all()
    assert not rows["revived"].any()
    # Of six circles the smaller one of a pair is above twice the mean where r > (1 + r) / 3.
    assert rows["smaller"].tolist() == [r > (1 + r) / 3 for r in rows["ratio"]]


def test_survival_by_circularity(monkeypatch):
    monkeypatch.setattr(figure_11, "SHARD", 3)
    setting = figure_11.Survivors(TINY, 4, 1, 7)
    rows = figure_11.by_circularity(Run(setting, "quick")).columns()["circles"]
    assert rows["network"].tolist() == np.repeat(range(4), 6).tolist()
    for piece, count in ((0, 3), (1, 1)):
        own = rows["network"] // 3 == piece
        circles = train_circles(TINY.model, runs=count, steps=300, seed=7 + piece)
        E = draw(TINY.model, runs=count, seed=7 + piece).parameters["embedding"]
        np.testing.assert_allclose(rows["circularity"][own], circularity(E).ravel())
        np.testing.assert_allclose(rows["signal"][own], circles.signals[:, 0].ravel())
        assert rows["survived"][own].tolist() == circles.survived.ravel().tolist()


def test_a_law_that_all_runs_share_predicts_the_survivors_of_others():
    # Competition for a shared resource, dx = x (x - mean) (1 - mean) / 5: the strongest of a run wins.
    rng = np.random.default_rng(0)
    x = rng.uniform(0.2, 0.4, (8, 6))
    frames = [x]
    for _ in range(200):
        mean = x.mean(axis=1, keepdims=True)
        x = x + 0.2 * x * (x - mean) * (1 - mean)
        frames.append(x)
    pieces = np.stack(frames, axis=1)
    final = survives(pieces[:, -1])
    agreement, error = beyond_law._judge(beyond_law.LAWS[beyond_law.MEAN_FIELD], pieces, final)
    assert agreement.mean() > 0.9
    assert error.max() < -2  # the terms of this law are among the nine
    ranked = beyond_law.common(beyond_law.strongest(pieces[:, 0], final), final)
    assert (ranked == 1).all() if (final.sum(axis=1) == 1).all() else ranked.mean() > 0.4


@pytest.mark.filterwarnings("ignore:alpha = 0.01 leaves no coefficient", "ignore:Objective did not converge")
def test_ranking_calls_the_strongest_survivors_as_many_as_elsewhere(monkeypatch):
    monkeypatch.setattr(beyond_law, "survives", few)
    setting = beyond_law.Across(TINY, (0, 50), 10, 200, 5, 0)
    rows = beyond_law.across_networks(Run(setting, "quick")).columns()["networks"]
    trained = train(TINY.model, runs=5, steps=300, weight_decay=DECAY, record="10:200,300", observables=())
    signals = fourier_signals(trained.positions.astype(float))
    final = signals[:, -1] > 1.2 * signals[:, -1].mean(axis=1, keepdims=True)
    assert final.sum() > 3
    for start, run, agreement in zip(rows["start"], rows["network"], rows["ranking"], strict=True):
        count = round(np.delete(final.sum(axis=1), run).mean())
        called = set(np.argsort(-signals[run, start // 10])[:count].tolist())
        alive = set(np.flatnonzero(final[run]).tolist())
        assert agreement == pytest.approx(len(called & alive) / max(len(called | alive), 1))


@pytest.mark.slow
def test_gradients_and_signals_tell_survivors_from_the_dead():
    rows = trials.train_trials(Run(trials.Trials(Size(31, 64, 1500), 3, 6), "quick"))
    order = np.argsort(rows["change_4"])
    eighth = len(order) // 8
    assert rows["survived"][order[-eighth:]].mean() > 2 * rows["survived"][order[:eighth]].mean()
