import csv
import math
from functools import partial

import numpy as np
import pytest
from grokphys.papers.claims import Written
from pictures import shows_something

import nets
from analysis import circularity, decision_error, fit_trajectories, fourier_signals, survives
from analysis.circles.survival import fitness
from analysis.stats.intervals import Interval, clustered_proportion
from grokphys.papers.ding import claims as scoreboard
from grokphys.papers.ding import (
    interventions as ding_interventions,
)
from grokphys.papers.ding import (
    law as ding_law,
)
from grokphys.papers.ding import (
    networks as ding_networks,
)
from grokphys.papers.ding import (
    selection as ding_selection,
)
from grokphys.papers.ding import (
    training as ding_training,
)
from grokphys.papers.ding.training import (
    RECORD,
    RULE,
    SIZES,
    Circles,
    Size,
    UntilDecided,
    audit,
    show_intervals,
    train_circles,
)
from nets import EmbeddingMLP, train
from nets.engines.ensemble import draw

TINY = {"quick": Size(13, 8, 300), "paper": Size(13, 8, 1000)}


def rows_of(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def tiny(monkeypatch):
    """Recipes in seconds: thirteen tokens, a few hundred steps."""
    for name, size in TINY.items():
        monkeypatch.setitem(SIZES, name, size)
    for module, name, value in (
        (ding_networks, "MODULI", (7, 13)),
        (ding_networks, "ALL_MODULI", (8, 9, 13)),
        (ding_networks, "DIMS", (4, 8)),
        (ding_networks, "COUNTED", 2),
        (ding_networks, "FIXED_D", (4, 13)),
        (ding_networks, "DECAYS", (0.0, 0.5)),
        (ding_selection, "EMBEDDINGS", 3),
        (ding_selection, "TRIALS", 3),
        (ding_selection, "PAIRS", 4),
    ):
        monkeypatch.setattr(module, name, {"quick": value, "paper": value})


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
    found = Circles(steps, np.stack([wrong, right]), audited=2)
    text = audit([found])
    assert decision_error(steps, found.signals).wrong.estimate == 0.5
    assert "on 2 runs of 1000 steps" in text
    assert "50 [9, 91] % of those decided" in text
    assert "0.50" in text  # one circle too many in one of two runs


def test_intervals_without_bounds_are_drawn_as_points():
    from matplotlib.figure import Figure

    nan = float("nan")
    ax = show_intervals(
        Figure().subplots(), [1, 2], [Interval(3, nan, nan, 1), Interval(4, 2, 5, 9)], linestyle=""
    )
    bars = ax.collections[0].get_segments()
    assert [float(np.ptp(bar[:, 1])) for bar in bars] == [0.0, 3.0]


def test_sizes_state_the_reduction():
    assert "the paper's" in str(SIZES["paper"])
    assert "30000" in str(SIZES["quick"])


@pytest.mark.filterwarnings("ignore:alpha = 0.01 leaves no coefficient", "ignore:Objective did not converge")
def test_recipes_of_many_sizes(tiny, tmp_path, monkeypatch, capsys):
    fitted = []

    def remembered(values, **recipe):
        fitted.append((values, fit_trajectories(values, **recipe)))
        return fitted[-1][1]

    monkeypatch.setattr(ding_networks, "fit_trajectories", remembered)
    paths = [
        path
        for recipe in (
            ding_networks.frozen,
            ding_networks.by_size,
            ding_networks.by_decay,
            ding_networks.all_moduli,
            ding_networks.gradients,
            ding_networks.fits_by_size,
        )
        for path in recipe(tmp_path, "quick")
    ]
    assert {path.name for path in paths} == {
        f"ding-{n}.{kind}" for n in (4, 5, "9a", 10, 13, 14) for kind in ("csv", "png")
    }
    fits = rows_of(tmp_path / "ding-9a.csv")
    assert {row["fit"] for row in fits} == {"Lasso, α = 0.01", "least squares"}
    assert len(fits) == len(fitted)
    for row, (values, fit) in zip(fits, fitted, strict=True):
        changes = np.diff(values, axis=0)
        missed = changes - values[:-1] @ fit.A.T - fit.b
        explained = 1 - (missed**2).sum(axis=0) / ((changes - changes.mean(axis=0)) ** 2).sum(axis=0)
        assert float(row["changes"]) == pytest.approx(explained.mean(), abs=1e-9)
    assert all(shows_something(path) for path in paths if path.suffix == ".png")
    counted = rows_of(tmp_path / "ding-5.csv")
    assert [(int(row["p"]), int(row["d"])) for row in counted] == [(7, 8), (13, 4), (13, 8)]
    assert {row["prime"] for row in rows_of(tmp_path / "ding-14.csv")} == {"True", "False"}
    decays = rows_of(tmp_path / "ding-10.csv")
    assert {(row["weight_decay"], row["limit"]) for row in decays} == {
        (decay, limit) for decay in ("0.0", "0.5") for limit in ("twice the mean", "signal above 10")
    }
    assert "the paper: 100" in capsys.readouterr().out


FEW = partial(survives, factor=1.2)
"""Networks so small have no survivor after a few hundred steps; by this limit most have some."""


def test_recipes_that_take_circles_away(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(ding_interventions, "survives", FEW)
    data, _ = ding_interventions.ablation(tmp_path, "quick")
    losses = {}
    for row in rows_of(data):
        losses.setdefault(row["start"], []).append(float(row["test_loss"]))
    assert len(losses) == 5
    assert all(np.isfinite(values).all() for values in losses.values())
    data, picture = ding_interventions.collaboration(tmp_path, "quick")
    assert shows_something(picture)
    rows = rows_of(data)
    size, runs = TINY["quick"], ding_interventions.RUNS["quick"]
    trained = train(
        size.model,
        runs=runs,
        steps=size.steps,
        weight_decay=ding_training.DECAY,
        record="log:10",
        observables=("validation_loss", "layers"),
    )
    alive = [1 + np.flatnonzero(FEW(fourier_signals(final))) for final in trained.final]
    assert all(len(some) for some in alive)
    for run in range(runs):
        found = {
            (int(row["step"]), row["kept"], row["frequencies"]): float(row["test_loss"])
            for row in rows
            if row["run"] == str(run)
        }
        sets = sum(math.comb(len(alive[run]), count) for count in ding_interventions.KEPT)
        assert len(found) == len(trained.steps) * (2 + sets)
        recorded = trained.observables["validation_loss"][run]
        for step, loss in zip(trained.steps, recorded, strict=True):
            assert found[int(step), "all", ""] == pytest.approx(loss, rel=1e-5)
        # By hand: the embedding of the last frame, with the winning frequencies alone.
        E = trained.final[run].astype(float)
        F = np.fft.fft(E, axis=0)
        F[[k for k in range(13) if min(k, 13 - k) not in alive[run]]] = 0
        last = nets.networks(trained.run(run)).with_embedding(np.fft.ifft(F, axis=0).real).loss("validation")
        name = " ".join(map(str, alive[run]))
        assert found[int(trained.steps[-1]), "survivors", name] == pytest.approx(last[0], rel=1e-5)


def test_initial_signals_and_trials(tiny, tmp_path, capsys):
    data, _ = ding_selection.initial_signals(tmp_path, "quick")
    rows = rows_of(data)
    assert {row["panel"] for row in rows} == {"frequencies", "bins", "scaled", "pair"}
    scaled = [row for row in rows if row["panel"] == "scaled"]
    for n in ("0", "1"):  # a larger factor is a larger deviation
        x = [float(row["x"]) for row in scaled if row["embedding"] == n]
        assert x == sorted(x)
    larger = [float(row["survival_rate"]) for row in rows if row.get("which") == "larger"]
    smaller = [float(row["survival_rate"]) for row in rows if row.get("which") == "smaller"]
    assert np.mean(larger) > np.mean(smaller)
    assert "stopping rule" in capsys.readouterr().out


def test_backpropagated_rates_are_what_the_gradient_does_to_the_signal(tiny):
    trials = ding_selection.train_trials("quick")
    # The trials of one embedding share it; layers and splits are their own.
    for one in trials.circles:
        assert np.ptp(one.signals[:, 0], axis=0).max() == 0
        assert np.ptp(one.signals[:, 4], axis=0).min() > 0
    assert trials.embedding.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    for n in range(3):  # the runs that are said to share an embedding are those that do
        own = trials.pooled()[trials.embedding == n]
        assert (own == own[0]).all()
        assert (trials.pooled()[trials.embedding != n] != own[0]).any(axis=1).all()
    assert trials.backprop.shape == (3, 3, 6)
    # Adam follows the gradient: the signals that it raises most shrink least.
    change = trials.pooled(at=5)
    assert np.corrcoef(trials.backprop.reshape(change.shape).ravel(), change.ravel())[0, 1] > 0.3


def made_up_trials(embeddings=3, trials=3, K=8):
    """Circles whose start tells a little of whether they survive."""
    rng = np.random.default_rng(0)
    found = []
    for start in 10 + rng.standard_normal((embeddings, K)):
        signals = np.tile(start, (trials, 7, 1))
        signals[:, 1:] += 0.1 * rng.standard_normal((trials, 6, K))
        signals[:, -1] = np.where(start + 2 * rng.standard_normal((trials, K)) > 11.5, 30.0, 1.0)
        found.append(Circles(np.arange(7), signals, 0))
    return ding_selection.Trials(found, rng.standard_normal((embeddings, trials, K)))


def test_rows_are_of_the_starts_that_they_name(tiny, tmp_path, monkeypatch):
    """Runs that end as they begin: a circle survives where it begins above twice the mean."""
    trials, starts = made_up_trials(), []

    def as_they_begin(model, *, runs, steps, audited, initial, **options):
        starts.append(initial)
        signals = fourier_signals(initial)
        return Circles(np.array([0, steps]), np.stack([signals, signals], axis=1), audited)

    monkeypatch.setattr(ding_selection, "train_trials", lambda budget: trials)
    monkeypatch.setattr(ding_selection, "train_circles", as_they_begin)
    rows = rows_of(ding_selection.initial_signals(tmp_path, "quick")[0])
    each = [row for row in rows if row["panel"] == "frequencies"]
    for n, one in enumerate(trials.circles):
        found = [float(row["x"]) for row in each if row["embedding"] == str(n)]
        assert found == one.signals[0, 0].tolist()
    *scaled, pairs = starts
    factors, (embeddings, count) = ding_selection.FACTORS["quick"], ding_selection.SCALED["quick"]
    for n in range(embeddings):
        own = [row for row in rows if row["panel"] == "scaled" and row["embedding"] == str(n)]
        k = int(own[0]["frequency"]) - 1
        signals = fourier_signals(scaled[n]).reshape(len(factors), count, -1)
        assert (signals == signals[:, :1]).all(), "the same start for all trials"
        np.testing.assert_allclose(signals[:, 0, k] / signals[0, 0, k], np.array(factors) / factors[0])
        expected = signals[:, 0, k] - np.delete(signals[:, 0], k, axis=1).mean(axis=1)
        np.testing.assert_allclose([float(row["x"]) for row in own], expected)
    ratios, count = ding_selection.RATIOS["quick"], ding_selection.PAIRS["quick"]
    strongest = np.sort(fourier_signals(pairs), axis=1)[:, ::-1]
    np.testing.assert_allclose(strongest[:, 1] / strongest[:, 0], np.repeat(ratios, count))
    assert (strongest[:, 2:] < 1e-4).all()
    smaller = [row for row in rows if row.get("which") == "smaller"]
    assert [float(row["x"]) for row in smaller] == list(ratios)
    # Of six circles the smaller one of a pair is above twice the mean where r > (1 + r) / 3.
    assert [float(row["survival_rate"]) for row in smaller] == [r > (1 + r) / 3 for r in ratios]


def test_the_headline_is_the_score_on_embeddings_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(ding_selection, "train_trials", lambda budget: made_up_trials())
    judged = []

    def remembered(*values, **options):
        judged.append((values[-1], fitness(*values, **options, resamples=2)))
        return judged[-1][1]

    monkeypatch.setattr(ding_selection, "fitness", remembered)
    files = [path.name for path in ding_selection.initial_gradients(tmp_path, "quick")]
    groups, found = judged[0]
    assert groups.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    row = rows_of(tmp_path / "ding-7-fitness.csv")[0]
    for name, score in (("accuracy", found.svm.left_out), ("in_sample", found.svm.in_sample)):
        assert [float(row[column]) for column in (name, f"{name}_low", f"{name}_high")] == [
            score.estimate, score.low, score.high
        ]  # fmt: skip
    assert row["embeddings"] == "3"
    headline = scoreboard._machine(Written(tmp_path, files))
    assert (headline.estimate, headline.low, headline.count) == (
        100 * found.svm.left_out.estimate, 100 * found.svm.left_out.low, 3
    )  # fmt: skip


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
    agreement, error = ding_law._judge(ding_law.LAWS[ding_law.MEAN_FIELD], pieces, final)
    assert agreement.mean() > 0.9
    assert error.max() < -2  # the terms of this law are among the nine
    ranked = ding_law._rank(pieces[:, 0], final)
    assert (ranked == 1).all() if (final.sum(axis=1) == 1).all() else ranked.mean() > 0.4


@pytest.mark.filterwarnings("ignore:alpha = 0.01 leaves no coefficient", "ignore:Objective did not converge")
def test_recipe_of_laws_across_runs(tiny, tmp_path, monkeypatch, capsys):
    for name, value in (("RUNS", {"quick": 5}), ("LAST", 300), ("STARTS", (0, 50)), ("survives", FEW)):
        monkeypatch.setattr(ding_law, name, value)
    data, picture = ding_law.across_runs(tmp_path, "quick")
    assert shows_something(picture)
    rows = rows_of(data)
    assert [(row["start"], row["predictor"]) for row in rows[:3]] == [
        ("0", name) for name in (*ding_law.LAWS, ding_law.RANKING)
    ]
    # The ranking by hand: as many of the strongest as survive in the others, against those that do.
    size = TINY["quick"]
    trained = train(
        size.model, runs=5, steps=300, weight_decay=ding_training.DECAY, record="10:300,300", observables=()
    )
    signals = fourier_signals(trained.positions.astype(float))
    final = signals[:, -1] > 1.2 * signals[:, -1].mean(axis=1, keepdims=True)
    assert final.sum() > 3
    for row in rows:
        if row["predictor"] != ding_law.RANKING:
            continue
        start, agree = signals[:, int(row["start"]) // 10], []
        for run in range(5):
            count = round(np.delete(final.sum(axis=1), run).mean())
            called = set(np.argsort(-start[run])[:count].tolist())
            alive = set(np.flatnonzero(final[run]).tolist())
            agree.append(len(called & alive) / max(len(called | alive), 1))
        assert float(row["survivors_agree"]) == pytest.approx(np.mean(agree))
    assert "mean field above ranking" in capsys.readouterr().out


@pytest.mark.slow
def test_gradients_and_signals_tell_survivors_from_the_dead(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(ding_selection.EMBEDDINGS, "quick", 3)
    ding_selection.initial_gradients(tmp_path, "quick")
    text = capsys.readouterr().out
    assert "linear SVM" in text
    rows = [row for row in rows_of(tmp_path / "ding-7.csv") if row["panel"] == "rates" and row["step"] == "4"]
    assert float(rows[-1]["survival_rate"]) > 2 * float(rows[0]["survival_rate"])


def test_survival_by_circularity(tiny, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(ding_selection.ROUND, "quick", 4)
    data, picture = ding_selection.by_circularity(tmp_path, "quick")
    assert picture.exists()
    rows = rows_of(data)
    size = TINY["quick"]
    circles = train_circles(size.model, runs=4, steps=size.steps)
    start = circularity(draw(size.model, runs=4, seed=0).parameters["embedding"])
    order = np.argsort(start, axis=None).reshape(8, 3)  # 24 circles in bins of three
    run = np.repeat(np.arange(4), 6)
    for row, members in zip(rows, order, strict=True):
        alive = circles.survived.ravel()[members]
        assert float(row["circularity"]) == pytest.approx(start.ravel()[members].mean())
        expected = clustered_proportion(
            [alive[run[members] == k].sum() for k in range(4)],
            [np.sum(run[members] == k) for k in range(4)],
        )
        found = [float(row[name]) for name in ("rate", "rate_low", "rate_high")]
        np.testing.assert_allclose(found, [expected.estimate, expected.low, expected.high])
    assert "correlation of survival with circularity" in capsys.readouterr().out
