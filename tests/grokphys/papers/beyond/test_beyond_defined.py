"""What stands in the tables beyond the papers, from the definition, for networks of a few steps."""

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest

import nets
from analysis.circles.fourier import fourier_signals
from grokphys.papers.beyond import law, pairings, predictability, selection, votes
from grokphys.papers.beyond import octaves as of_octaves
from grokphys.papers.beyond.selection import Kind, Place


def stronger(signals):
    """Stands for the survivors of small networks, in which nothing dies."""
    return signals > np.median(signals, axis=-1, keepdims=True)


def common(a, b):
    return (a & b).sum() / max((a | b).sum(), 1)


def guessed(scores, final):
    """Agreement of the strongest circles, as many as the others have on average, with the survivors."""
    found = []
    for run, values in enumerate(scores):
        count = round(np.mean([alive.sum() for k, alive in enumerate(final) if k != run]))
        best = sorted(range(len(values)), key=lambda k: -values[k])[:count]
        found.append(common(np.isin(np.arange(len(values)), best), final[run]))
    return found


def test_a_row_of_selection_is_what_its_network_ended_with(monkeypatch):
    monkeypatch.setattr(selection, "survives", stronger)
    rows = selection._trained(Kind("tanh", 0.5), Place(11, 12, 30), 3, seed=100)
    trained = nets.train(
        nets.EmbeddingMLP(11, 12, activation="tanh", even=0.5), runs=3, steps=30, seed=111, weight_decay=0.5
    )
    signals = fourier_signals(trained.final)
    squares = signals**2
    np.testing.assert_allclose(rows["effective"], squares.sum(1) ** 2 / (squares**2).sum(1) / 5, rtol=1e-6)
    assert rows["survivors"].tolist() == [2, 2, 2]
    assert rows["pairs"].tolist() == [1, 1, 1]
    np.testing.assert_allclose(rows["accuracy"], trained.observables["validation_accuracy"][:, -1])
    assert rows["octaves"].tolist() == selection.octaves(stronger(signals), 11).tolist()
    assert (set(rows["activation"]), set(rows["even"]), set(rows["tokens"])) == ({"tanh"}, {0.5}, {11})


def test_ratios_of_several_moduli_are_counted_by_what_each_would_have_by_chance():
    rows = {"tokens": [23, 31], "octaves": [3, 5], "pairs": [10, 15]}
    rows = {name: np.array(values) for name, values in rows.items()}
    # Of K = (p - 1) / 2 frequencies there are (K - 1) / 2 ratios: 5 and 7 of them.
    found = of_octaves.relative_frequency(rows, 0.95).estimate
    assert found == pytest.approx((3 * 5 + 5 * 7) / (10 + 15))


def test_chance_gives_a_pair_the_ratio_2_as_often_as_there_are_such_pairs():
    moduli = np.array([7, 11, 23, 31, 43, 59])
    shares = []
    for p in moduli:
        pairs = list(combinations(range(1, (p + 1) // 2), 2))
        shares.append(np.mean([any((2 * a + s * b) % p == 0 or (2 * b + s * a) % p == 0 for s in (1, -1))
                               for a, b in pairs]))  # fmt: skip
    rows = {"tokens": moduli, "pairs": np.full(6, 1e8), "octaves": np.zeros(6), "even": np.arange(6)}
    found = of_octaves._any_ratio({"networks": rows, "other": {}}, np.random.default_rng(0))
    np.testing.assert_allclose(found["networks"]["octaves"] / 1e8, shares, rtol=2e-3)
    assert list(found["networks"]["even"]) == list(range(6))
    assert of_octaves.relative_frequency(found["networks"], 0.95).estimate == pytest.approx(1, rel=2e-3)


def test_survivors_are_predicted_from_the_signal_and_the_rate_of_a_step(monkeypatch):
    monkeypatch.setattr(predictability, "survives", stronger)
    seen = []

    def scores(now, rate, pieces, final):
        seen.append((now, rate, pieces))
        return {"signal": now, "rate": rate}

    monkeypatch.setattr(predictability, "_scores", scores)
    setting = predictability.Setting((Place(11, 12, 40),), 1, (), 4, (0, 20), 30)
    rows = predictability._predicted(setting, setting.places[0])
    trained = nets.train(
        nets.EmbeddingMLP(11, 12), runs=4, steps=40, seed=42_011, weight_decay=0.5, record=1, observables=()
    )
    signals = np.stack([fourier_signals(run) for run in trained.positions])
    final = stronger(signals[:, -1])
    for (now, rate, pieces), start in zip(seen, (0, 20), strict=True):
        np.testing.assert_allclose(now, signals[:, start], rtol=1e-5)
        np.testing.assert_allclose(rate, signals[:, start + 4] - signals[:, start], rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(pieces, signals[:, start:31:10], rtol=1e-5)
        for name, values in (("signal", now), ("rate", rate)):
            own = (rows["start"] == start) & (rows["predictor"] == name)
            np.testing.assert_allclose(rows["agreement"][own], guessed(values, final))
            assert rows["network"][own].tolist() == [0, 1, 2, 3]


def test_laws_and_machines_predict_networks_that_they_have_not_seen(monkeypatch):
    rng = np.random.default_rng(0)
    final = np.array([rng.permutation(np.arange(6) < 2) for _ in range(9)])
    now, rate = rng.normal(size=(2, 9, 6)) + 2.0 * final
    pieces = np.stack([now + k * rate for k in range(4)], axis=1)
    fitted = []

    class Doubling:
        def rollout(self, start, frames):
            wild = fitted[-1].tolist() == [0, 1, 3, 4, 5, 7, 8]  # the law for the networks 2 and 6
            return np.stack([start * (np.inf if wild else 2.0**k) for k in frames]), len(frames)

    def fit(parts, **_):
        numbers = [next(k for k in range(9) if np.array_equal(pieces[k], part)) for part in parts]
        fitted.append(np.array(numbers))
        return Doubling()

    monkeypatch.setattr(predictability, "fit_trajectories", fit)
    monkeypatch.setattr(predictability, "fit_law", lambda _, parts: fit(parts))
    found = predictability._scores(now, rate, pieces, final)
    folds = [[0, 4, 8], [1, 5], [2, 6], [3, 7]]
    assert [one.tolist() for one in fitted[::2]] == [[k for k in range(9) if k not in fold] for fold in folds]
    assert found["signal"] is now
    assert found["rate"] is rate
    expected = 8 * pieces[:, 0]
    expected[[2, 6]] = pieces[[2, 6], 0]  # where a rollout blows up, what it began with
    np.testing.assert_allclose(found["linear law"], expected)
    np.testing.assert_allclose(found["mean field"], expected)
    assert found["SVM"][final].mean() > found["SVM"][~final].mean() + 0.5
    assert np.abs(found["SVM"]).min() > 0


def test_one_law_of_other_networks_is_judged_by_its_survivors_and_its_error(monkeypatch):
    monkeypatch.setattr(law, "survives", stronger)
    rng = np.random.default_rng(1)
    pieces = rng.uniform(1, 2, (7, 3, 5))
    final = stronger(pieces[:, -1])
    lost = []

    class Constant:
        def __init__(self, parts):
            lost.append([k for k in range(7) if not any(np.array_equal(pieces[k], one) for one in parts)])

        def rollout(self, start, frames):
            path = np.tile(start, (len(frames), 1))
            return (path * np.inf if lost[-1][0] == 1 else path), len(frames)

    agreement, error = law._judge(Constant, pieces, final)
    assert sorted(k for fold in lost for k in fold) == list(range(7))
    for run in range(7):
        if run in next(fold for fold in lost if fold[0] == 1):
            assert agreement[run] == 0
            assert error[run] == np.log10(law.WILD)
            continue
        miss = np.linalg.norm(pieces[run] - pieces[run, 0]) / np.linalg.norm(pieces[run])
        assert error[run] == pytest.approx(np.log10(miss))
        assert agreement[run] == pytest.approx(common(stronger(pieces[run, 0]), final[run]))
    ranked = law.common(law.strongest(pieces[:, 0], final), final)
    np.testing.assert_allclose(ranked, guessed(pieces[:, 0], final))


def test_the_start_that_pairs_share_is_left_out_of_their_distance():
    motion = SimpleNamespace(
        error=np.array([[9.0, 1.0, 3.0], [9.0, np.nan, 5.0]]),
        chance=np.array([[9.0, 2.0, 4.0], [9.0, 6.0, 6.0]]),
    )
    found = pairings._pairs(SimpleNamespace(motion=motion))
    assert found["distance"].tolist() == [2, 5]
    assert found["to_another"].tolist() == [3, 6]


def test_neurons_of_votes_are_foretold_by_both_halves_of_what_they_read():
    found = votes._trained(Place(11, 6, 2), 5, range(2))
    trained = nets.train(
        nets.EmbeddingMLP(11, 6), runs=2, steps=2, seed=16, weight_decay=0.5, record=2,
        observables=("layers",), device="cpu",
    )  # fmt: skip
    start = nets.networks(trained, 0)
    for run in range(2):
        E, read = start.parameters["embedding"][run], start.parameters["hidden1.weight"][run]
        first, second = (np.abs(np.fft.fft(E @ half, axis=0)[1:6]) for half in (read[:6], read[6:]))
        assert found["magnitude"][run].tolist() == (1 + (first * second).argmax(axis=0)).tolist()
        np.testing.assert_allclose(found["signal"][run], fourier_signals(E), rtol=1e-5)
    named = found["time"][..., None] == np.arange(1, 6)
    np.testing.assert_array_equal(np.floor(found["votes"]), named.sum(axis=1))
    assert (np.abs(found["votes"] - np.floor(found["votes"])) <= 0.5).all()
    ranked = (found["votes"] - named.sum(axis=1)).argsort(axis=1)
    assert ranked.tolist() == found["haste"].argsort(axis=1).tolist(), "ties are ranked by speed"
