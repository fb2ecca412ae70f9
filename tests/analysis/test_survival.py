import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from analysis.circles.prediction import circle_counts, fitness, survival_rates
from analysis.circles.survival import StoppingRule
from analysis.stats.intervals import clustered_proportion


def population(runs=60, K=20, seed=0, signal=2.0, gradient=1.0):
    """Circles whose log odds of survival are known."""
    rng = np.random.default_rng(seed)
    x, g = rng.standard_normal((2, runs, K))
    odds = signal * x + gradient * g - 2
    return 80 + 3 * x, 0.1 * g, rng.uniform(size=(runs, K)) < 1 / (1 + np.exp(-odds)), odds


def test_fitness_finds_the_law_behind_survival():
    signals, gradients, survived, odds = population()
    found = fitness(signals, gradients, survived, resamples=60)
    for value, (estimate, low, high) in zip((2, 1), found.odds, strict=True):
        assert low < value < high
        assert estimate == pytest.approx(value, rel=0.2)
    # Circles are independent here: the intervals are those of Fisher's information.
    X = np.stack([np.ones(signals.size), signals.ravel(), gradients.ravel()], axis=1)
    X[:, 1:] = (X[:, 1:] - X[:, 1:].mean(axis=0)) / X[:, 1:].std(axis=0)
    p = 1 / (1 + np.exp(-odds.ravel()))
    error = np.linalg.inv((X * (p * (1 - p))[:, None]).T @ X).diagonal()[1:] ** 0.5
    np.testing.assert_allclose(np.ptp(found.odds[:, 1:], axis=1) / (2 * 1.96 * error), 1, atol=0.3)
    best = np.mean((odds > 0) == survived)
    assert found.logistic.left_out.covers(best)
    assert found.svm.left_out.covers(best)
    assert found.majority == pytest.approx(1 - survived.mean())
    assert found.logistic.area > 0.85
    assert found.signal_correlation.estimate > found.gradient_correlation.estimate > 0.1
    again = fitness(
        signals.ravel(), gradients.ravel(), survived.ravel(), np.repeat(np.arange(60), 20), resamples=2
    )
    assert again.logistic == found.logistic


def shared(runs=12, trials=4, K=10, seed=0):
    """Every run `trials` times, as trials that share their embedding and end alike: one says all."""
    signals, gradients, survived, _ = population(runs, K, seed)
    again = [np.repeat(values, trials, axis=0) for values in (signals, gradients, survived)]
    return (signals, gradients, survived), again, np.repeat(np.arange(runs), trials)


def bounds(interval):
    return [interval.estimate, interval.low, interval.high]


def test_trials_that_share_an_embedding_do_not_make_an_interval_narrower():
    once, again, groups = shared()
    found, repeated = fitness(*once, resamples=24), fitness(*again, groups, resamples=24)
    assert repeated.groups == found.groups == 12
    np.testing.assert_allclose(repeated.odds, found.odds, rtol=0.01)
    for name in ("signal_correlation", "gradient_correlation"):
        np.testing.assert_allclose(bounds(getattr(repeated, name)), bounds(getattr(found, name)), rtol=1e-6)
    by_run = fitness(*again, resamples=24)
    assert (np.ptp(by_run.odds[:, 1:], axis=1) < 0.8 * np.ptp(found.odds[:, 1:], axis=1)).all()
    for model in ("svm", "logistic"):
        for score in ("left_out", "in_sample"):
            one, other = (getattr(getattr(fit, model), score) for fit in (repeated, found))
            np.testing.assert_allclose(bounds(one), bounds(other), rtol=1e-6)
            assert one.count == 4 * other.count
    rates = [
        survival_rates(x, y, groups=names)
        for x, y, names in ((again[0], again[2], groups), (once[0], once[2], np.arange(12)))
    ]
    np.testing.assert_allclose(*([bounds(row.rate) for row in one] for one in rates), rtol=1e-6)
    alone = survival_rates(again[0], again[2])
    assert all(
        a.rate.high - a.rate.low < b.rate.high - b.rate.low for a, b in zip(alone, rates[0], strict=True)
    )


def test_groups_are_left_out_as_a_whole():
    """Six groups, each with its own level of the signal: what one says, another does not."""
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(6), 10)
    x = rng.standard_normal((60, 8)) + 4 * rng.standard_normal(6)[groups][:, None]
    g = rng.standard_normal((60, 8))
    y = rng.uniform(size=(60, 8)) < (0.1 + 0.8 * (np.arange(6) % 2))[groups][:, None]
    found = fitness(x, g, y, groups, resamples=2)
    X, names = np.stack([x.ravel(), g.ravel()], axis=1), np.repeat(groups, 8)
    scores = np.empty(480)
    for name in range(6):
        seen = names != name
        center, width = X[seen].mean(axis=0), X[seen].std(axis=0)
        model = LogisticRegression(C=np.inf, max_iter=1000).fit((X[seen] - center) / width, y.ravel()[seen])
        scores[~seen] = model.decision_function((X[~seen] - center) / width)
    right = (scores > 0) == y.ravel()
    assert found.logistic.left_out.estimate == pytest.approx(right.mean())
    assert found.logistic.area == pytest.approx(roc_auc_score(y.ravel(), scores))
    assert abs(fitness(x, g, y, resamples=2).logistic.left_out.estimate - right.mean()) > 0.03, "by runs"
    counts = [np.sum(names == name) for name in range(6)]
    expected = clustered_proportion([right[names == name].sum() for name in range(6)], counts)
    assert found.logistic.left_out == expected
    rates = survival_rates(x, y, bins=1, groups=groups)
    assert rates[0].rate == clustered_proportion([y[groups == name].sum() for name in range(6)], counts)


def test_counts_by_parameters():
    rows = circle_counts([3, 5, 4, 8], {"p": [59, 59, 31, 59], "wd": [0.5, 0.5, 0.5, 1.0]})
    assert [(r["p"], r["wd"], r["circles"].estimate, r["circles"].count) for r in rows] == [
        (31, 0.5, 4, 1),
        (59, 0.5, 4, 2),
        (59, 1.0, 8, 1),
    ]
    assert circle_counts([1, 3], {})[0]["circles"].estimate == 2


def fading(steps, *, late=False):
    """Two of ten circles rise; one of the others passes for a survivor until step 200, or 700."""
    x = np.tile(np.exp(-steps / 100)[:, None] * 10, (1, 10))
    x[:, :2] = 10
    x[:, 2] = np.where(steps < (700 if late else 200), 10, 10 * np.exp(-(steps - 200) / 50))
    return x


def test_a_run_is_decided_when_its_survivors_have_held_clear_of_the_limit():
    steps = np.arange(0, 2001, 10)
    rule = StoppingRule(margin=0.1, hold=200)
    step = rule.first(steps, fading(steps))
    seen = [t for n, t in enumerate(steps) if rule.decided(steps[: n + 1], fading(steps)[: n + 1])]
    assert step == seen[0], "asked again and again, or once for all"
    assert 400 <= step <= 600
    assert StoppingRule(hold=400).first(steps, fading(steps)) == step + 200
    assert rule.first(steps, np.ones((201, 10))) is None, "nobody survives where all are equal"
    assert not rule.decided([], np.zeros((0, 10)))
    sparse = np.where(np.arange(4)[:, None] % 2 == np.arange(10) // 5, 10.0, 1.0)  # survivors alternate
    assert not rule.decided(300 * np.arange(4), sparse), "one frame shows nothing held"
    assert rule.first(np.array([0, 100]), fading(np.array([0, 100]))) is None


@pytest.mark.parametrize("hold", [0, 7, 20, 22])
@pytest.mark.parametrize("margin", [0.0, 0.2])
def test_a_rule_decides_by_all_frames_that_its_time_reaches_back_to(hold, margin):
    rng = np.random.default_rng(hold)
    rule = StoppingRule(factor=1.5, margin=margin, hold=hold)
    clock = np.array([0, 3, 10, 15, 20, 40, 41, 60, 61, 90])
    kinds = np.array([[9.0, 1.0, 1.0], [1.0, 9.0, 1.0], [5.0, 4.9, 1.0], [1.0, 1.0, 1.0]])
    both = {True: 0, False: 0}
    for _ in range(60):
        x = kinds[rng.choice(4, size=len(clock), p=[0.7, 0.1, 0.1, 0.1])]
        expected = []
        for n, step in enumerate(clock):
            begin = [k for k in range(n + 1) if clock[k] <= step - hold]
            frames = x[begin[-1] : n + 1] if begin else x[:0]
            limit = 1.5 * frames.mean(axis=1, keepdims=True)
            clear = (np.abs(frames - limit) > margin * limit).all(axis=1) & (frames > limit).any(axis=1)
            same = len({tuple(row) for row in (frames > limit).tolist()}) == 1
            expected.append(bool(begin) and bool(clear.all()) and same)
        assert [rule.decided(clock[: n + 1], x[: n + 1]) for n in range(len(clock))] == expected
        first = clock[expected.index(True)] if any(expected) else None
        assert rule.first(clock, x) == first
        both[any(expected)] += 1
    assert both[True]
