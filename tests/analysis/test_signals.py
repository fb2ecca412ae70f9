import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import analysis
from analysis.stats.intervals import Interval, clustered_proportion


def embedding(p=11, d=4, seed=0):
    return np.random.default_rng(seed).standard_normal((p, d))


def ring(p, frequency, radius=1.0):
    angle = 2 * np.pi * frequency * np.arange(p) / p
    return radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)


# -- Fourier signals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [3, 4, 11, 12])
def test_signals_equal_the_definition(p):
    E = embedding(p)
    expected = [
        np.linalg.norm(sum(np.exp(-2j * np.pi * k * n / p) * E[n] for n in range(p)))
        for k in range(1, p // 2 + 1)
    ]
    np.testing.assert_allclose(analysis.fourier_signals(E), expected, rtol=1e-12)


@given(st.integers(3, 20), st.integers(1, 5), st.integers(0, 1000))
@settings(max_examples=50, deadline=None)
def test_signals_obey_parseval(p, d, seed):
    E = embedding(p, d, seed)
    squares = analysis.fourier_signals(E).values ** 2
    weight = np.full(p // 2, 2.0)
    if p % 2 == 0:
        weight[-1] = 1.0  # the last frequency of an even p is its own conjugate
    total = (E.sum(axis=0) ** 2).sum() + (weight * squares).sum()
    assert total == pytest.approx(p * (E**2).sum())


@given(st.integers(0, 12), st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_signals_do_not_see_translations_rotations_or_shifts_of_the_tokens(shift, seed):
    E = embedding(13, 4, seed)
    turn = np.linalg.qr(embedding(4, 4, seed + 1))[0]
    moved = np.roll(E, shift, axis=0) @ turn + 5.0
    np.testing.assert_allclose(analysis.fourier_signals(moved), analysis.fourier_signals(E), rtol=1e-9)


def test_a_unit_permutes_the_frequencies():
    E = embedding(11)
    signals = analysis.fourier_signals(E)
    relabelled = analysis.fourier_signals(E[3 * np.arange(11) % 11])
    for k in range(1, 6):
        to = 3 * k % 11
        assert relabelled.sel(frequency=min(to, 11 - to)) == pytest.approx(signals.sel(frequency=k).item())


def test_survivors_by_both_rules():
    E = np.concatenate([ring(11, 2), ring(11, 5, 0.7), 0.01 * embedding(11)], axis=1)
    assert analysis.surviving_frequencies(E).tolist() == [2, 5]
    signals = analysis.fourier_signals(E)
    np.testing.assert_array_equal(analysis.survives(signals), [False, True, False, False, True])
    assert analysis.surviving_frequencies(E, threshold=6.0).tolist() == [2]
    assert analysis.surviving_frequencies(E, factor=4).tolist() == []
    batch = np.stack([E, E[::-1]])
    assert analysis.survives(analysis.fourier_signals(batch)).shape == (2, 5)


# -- statistics ---------------------------------------------------------------------------------------------


def test_intervals_have_their_coverage():
    """Of 500 experiments with a known truth, about 95 % of the intervals hold it."""
    rng = np.random.default_rng(0)
    held = {"proportion": 0, "mean": 0, "correlation": 0}
    for _ in range(500):
        held["proportion"] += analysis.proportion(rng.binomial(100, 0.17), 100).covers(0.17)
        held["mean"] += analysis.mean(rng.normal(3, 2, 12)).covers(3)
        x = rng.standard_normal(40)
        held["correlation"] += analysis.correlation(x, 0.6 * x + 0.8 * rng.standard_normal(40)).covers(0.6)
    for name, count in held.items():
        assert 0.92 < count / 500 < 0.98, name


def test_the_interval_of_a_mean_is_students():
    values = np.random.default_rng(1).normal(3, 2, 7)
    found, expected = analysis.mean(values), stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert (found.low, found.high) == (pytest.approx(expected.low), pytest.approx(expected.high))


def coverage(intervals, truth):
    return np.mean([one.covers(truth) for one in intervals])


@pytest.mark.parametrize("groups", [4, 12])
def test_trials_in_groups_have_the_interval_of_groups(groups):
    rng = np.random.default_rng(groups)
    alike, apart, independent = [], [], []
    for _ in range(300):
        rates = rng.beta(0.3 * 6, 0.7 * 6, groups)
        hits = rng.binomial(60, rates)
        alike.append(clustered_proportion(hits, [60] * groups))
        apart.append(analysis.proportion(hits.sum(), 60 * groups))
        independent.append(clustered_proportion(rng.binomial(60, 0.3, groups), [60] * groups))
    assert coverage(apart, 0.3) < 0.6, "taken for independent"
    assert 0.91 < coverage(alike, 0.3) < 0.99
    assert 0.91 < coverage(independent, 0.3) < 0.99
    # Student's interval of the rates of the groups, which have the standard deviation of the beta law.
    spread = (0.3 * 0.7 * (1 / 7 + 6 / 7 / 60) / groups) ** 0.5
    width = np.median([one.high - one.low for one in alike])
    assert 0.7 < width / (2 * stats.t.ppf(0.975, groups - 1) * spread) < 1.15


def test_correlations_of_values_in_groups_have_the_interval_of_groups():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(12), 15)
    whole, apart = [], []
    for _ in range(150):
        center = rng.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], 12)[groups]
        x, y = (center + 0.3 * rng.standard_normal((180, 2))).T
        whole.append(analysis.correlation(x, y, groups))
        apart.append(analysis.correlation(x, y))
    truth = 0.5 / 1.09
    assert coverage(apart, truth) < 0.6
    assert 0.88 < coverage(whole, truth) < 0.99
    # Fisher's z has the standard error 1 / √(n - 3) of the independent ones.
    widths = [np.arctanh(one.high) - np.arctanh(one.low) for one in whole]
    assert 0.8 < np.median(widths) / (2 * stats.t.ppf(0.975, 11) / 9**0.5) < 1.25
    assert np.isnan(analysis.correlation(x, y, groups % 2).low)


def test_wilsons_interval_where_nothing_or_everything_succeeds():
    none, all_ = analysis.proportion(0, 100), analysis.proportion(100, 100)
    assert (none.estimate, none.low) == (0, 0)
    assert none.high == pytest.approx(0.0370, abs=1e-4)
    assert all_.low == pytest.approx(1 - none.high)


def test_what_cannot_be_estimated_is_not_a_number():
    for empty in (analysis.proportion(0, 0), analysis.mean([]), analysis.correlation([1, 2, 3], [1, 2, 3])):
        assert np.isnan(empty.estimate)
        assert empty.format() == "-"
    assert np.isnan(analysis.correlation([1, 1, 1, 1], [1, 2, 3, 4]).estimate)
    assert analysis.mean([2.0]).format() == "2.0"
    assert Interval(0.5, 0.25, 0.75, 9).format(0, 100) == "50 [25, 75]"
    assert f"{Interval(1.5, 1.25, np.inf, 9):.2f}" == "1.50 [1.25, ∞]"
    assert f"{Interval(0.5, -np.inf, 0.75, 9):.0%}" == "50% [-∞, 75%]"
