import numpy as np
import pytest
from scipy import stats

from analysis.comparison.timing import Onsets, compare_onsets, log_rank, onset_ratio, onsets
from physics import InputError


def censored(times, limit):
    return Onsets(np.minimum(times, limit), times <= limit)


def weibull(runs, scale=1.0, limit=1.8, seed=0):
    return censored(scale * np.random.default_rng(seed).weibull(1.5, runs), limit * scale)


def as_scipy(one):
    return stats.CensoredData(uncensored=one.times[one.reached], right=one.times[~one.reached])


@pytest.mark.parametrize("seed", range(5))
def test_the_log_rank_statistic_is_scipys(seed):
    first, second = weibull(20, seed=seed), weibull(15, 1.5, 1.0, seed + 100)
    expected = stats.logrank(as_scipy(first), as_scipy(second))
    assert log_rank(first, second) == pytest.approx(expected.statistic)
    assert compare_onsets("x", first, second).p_value == pytest.approx(expected.pvalue)


def test_ties_in_whole_steps_are_scipys_too():
    rng = np.random.default_rng(0)
    first, second = (censored(rng.integers(1, 6, 15).astype(float), 4.0) for _ in range(2))
    assert log_rank(first, second) == pytest.approx(
        stats.logrank(as_scipy(first), as_scipy(second)).statistic
    )


@pytest.mark.parametrize("seed", range(3))
def test_the_curve_is_kaplan_and_meiers_with_greenwoods_band(seed):
    one = weibull(25, limit=1.0, seed=seed)
    survival, greenwood = 1.0, 0.0
    for time, *found in list(zip(*one.curve(), strict=True))[1:]:
        left, events = np.sum(one.times >= time), np.sum((one.times == time) & one.reached)
        survival, greenwood = survival * (1 - events / left), greenwood + events / (left * (left - events))
        half = 1.959964 * greenwood**0.5 / abs(np.log(survival))
        np.testing.assert_allclose(found, [survival, survival ** np.exp(half), survival ** np.exp(-half)])


def test_the_median_is_the_first_time_at_which_at_most_half_are_left():
    for n in range(2, 201):
        times = np.random.default_rng(n).permutation(np.arange(1.0, n + 1))
        assert Onsets(times, np.ones(n, bool)).median.estimate == -(-n // 2), n
        later = np.append(times, [n + 5.0] * n)  # as many who never get there: the last event is the median
        assert Onsets(later, np.arange(2 * n) < n).median.estimate == n, n


def test_where_all_have_reached_it_the_interval_is_where_they_did():
    together = Onsets(np.full(20, 3.0), np.ones(20, bool)).median
    assert (together.estimate, together.low, together.high) == (3, 3, 3)
    few = Onsets(np.full(3, 3.0), np.ones(3, bool)).median
    assert (few.estimate, few.low, few.high) == (3, 3, np.inf), "of three, chance alone may bring all early"
    at_the_start = Onsets(np.zeros(20), np.ones(20, bool)).median
    assert (at_the_start.estimate, at_the_start.low, at_the_start.high) == (0, 0, 0)
    times, alive, low, high = Onsets(np.r_[1.0, np.full(9, 2.0)], np.ones(10, bool)).curve()
    assert (times[-1], alive[-1], low[-1]) == (2, 0, 0)
    assert high[-1] == pytest.approx(stats.binomtest(0, 9).proportion_ci().high)


def test_intervals_of_medians_and_ratios_have_their_coverage_and_no_more():
    truth = np.log(2) ** (1 / 1.5)
    medians, ratios = [], []
    for seed in range(80):
        first, second = weibull(30, seed=seed), weibull(25, 2.0, 1.6, seed + 1000)
        medians.append(first.median)
        ratios.append(onset_ratio(first, second))
    assert 0.88 < np.mean([one.covers(truth) for one in medians]) < 1
    assert 0.88 < np.mean([one.covers(2.0) for one in ratios]) < 1
    # The widths of large samples: of a median 1 / (2 f √n), of the logarithm of a ratio √(1/d + 1/e) / shape.
    density = 1.5 * truth**0.5 * np.exp(-(truth**1.5))
    width = np.median([one.high - one.low for one in medians])
    assert 0.85 < width / (2 * 1.96 / (2 * density * 30**0.5)) < 1.25
    width = np.median([np.log(one.high / one.low) for one in ratios])
    assert 0.85 < width / (2 * 1.96 * np.sqrt(1 / 28 + 1 / 22) / 1.5) < 1.25


CLOCK = {"clock": (np.exp(-1.96 * 0.2), np.exp(1.96 * 0.2)), "pairs": [(0, 0), (1, 1), (2, 2)]}
"""A clock that is known within 20 %."""


def test_a_clock_that_was_estimated_widens_the_interval_by_its_own():
    first, second = weibull(40, 1.1, 9.0), weibull(40, limit=9.0, seed=5000)
    known, found = (
        compare_onsets("x", first, second, **options).paired_ratio
        for options in ({"pairs": CLOCK["pairs"]}, CLOCK)
    )
    logs = np.log([[one.low, one.estimate, one.high] for one in (known, found)])
    half = logs[0, 2] - logs[0, 1]
    np.testing.assert_allclose(logs[1] - logs[0, 1], np.hypot(half, 1.96 * 0.2) * np.array([-1, 0, 1]))


@pytest.mark.slow
def test_a_clock_that_was_estimated_is_not_taken_as_known():
    """The same law twice, the clock of the first off by an error of 20 %: its interval says so."""
    naive, allowed = 0, 0
    for seed in range(60):
        error = np.exp(0.2 * np.random.default_rng(seed).standard_normal())
        first, second = weibull(40, error, 9.0, seed), weibull(40, limit=9.0, seed=seed + 5000)
        naive += abs(log_rank(first, second)) > stats.norm.ppf(0.975)
        found = compare_onsets("x", first, second, **CLOCK)
        allowed += found.p_value < 0.05
        assert found.differs == (found.p_value < 0.05 and not found.ratio.covers(1.0))
    assert naive >= 9
    assert 1 <= allowed <= 7


def test_the_interval_of_a_ratio_leaves_1_out_where_the_test_rejects_it():
    for seed in range(60):
        first, second = weibull(12, seed=seed), weibull(14, 1.8, seed=seed + 300)
        found = compare_onsets("x", first, second)
        assert (found.p_value < 0.05) == (not found.ratio.covers(1.0))
        assert found.differs == (found.p_value < 0.05)


def test_the_ratio_of_a_stretched_copy_is_the_stretch():
    first = weibull(40, limit=9.0)
    found = onset_ratio(first, first.scaled(3.0))
    assert found.estimate == pytest.approx(3.0, rel=0.15)
    assert found.covers(3.0)
    same = compare_onsets("x", first, first, pairs=[(k, k) for k in range(40)])
    assert same.ratio.covers(1.0)
    assert same.p_value == pytest.approx(1.0)
    assert same.paired_ratio.estimate == pytest.approx(1.0)


def test_runs_that_never_get_there_are_not_taken_for_the_last_step():
    few = Onsets(np.array([1.0, 2.0, 10.0, 10.0, 10.0]), np.array([True, True, False, False, False]))
    assert np.isinf(few.median.estimate)
    assert few.fraction.estimate == pytest.approx(0.4)
    none = Onsets(np.full(5, 10.0), np.zeros(5, bool))
    compared = compare_onsets("x", none, none)
    assert np.isnan(compared.p_value)
    assert np.isnan(compared.ratio.estimate)
    half_open = onset_ratio(few, none)
    assert np.isnan(half_open.estimate)
    all_ = Onsets(np.arange(1.0, 9.0), np.ones(8, bool))
    open_ = onset_ratio(all_, Onsets(np.r_[7.5, np.full(7, 8.0)], np.arange(8) == 0))
    assert np.isnan(open_.estimate), "the data do not say how late the rest would come, or whether"


def test_onsets_are_first_or_lasting_frames():
    values = [[0, 1, 0, 1, 1], [0, 0, np.nan, 0, 0], [1, 1, 1, 1, 1]]
    times = [0, 10, 20, 30, 40]
    first = onsets(values, times, 1)
    assert first.times.tolist() == [10, 40, 0]
    assert first.reached.tolist() == [True, False, True]
    assert onsets(values, times, 1, lasting=True).times.tolist() == [30, 40, 0]
    with pytest.raises(InputError, match="values and times must have"):
        onsets(values, times[1:], 1)


def test_the_paired_ratio_is_that_of_pairs_of_which_both_reach_it():
    first = Onsets(np.array([1.0, 2.0, 5.0, 9.0, 3.0]), np.array([True, True, False, True, True]))
    second = Onsets(np.array([2.0, 2.5, 1.0, 9.0, 9.0]), np.array([True, True, True, False, True]))
    found = compare_onsets("x", first, second, pairs=[(k, k) for k in range(5)]).paired_ratio
    assert found.estimate == pytest.approx(np.exp(np.mean(np.log([2.0, 1.25, 3.0]))))
    assert found.count == 3


def test_an_onset_in_the_first_frame_counts_as_half_of_the_earliest_later_one():
    first, second = (Onsets(np.array(times), np.ones(2, bool)) for times in ([0.0, 2.0], [4.0, 3.0]))
    found = compare_onsets("x", first, second, pairs=[(0, 0), (1, 1)])
    assert found.paired_ratio.estimate == pytest.approx(np.sqrt(4 / 1 * 3 / 2))
    assert onset_ratio(*(Onsets(np.zeros(1), np.ones(1, bool)) for _ in range(2))).estimate == pytest.approx(
        1
    )
