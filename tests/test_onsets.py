import numpy as np
import pytest
from scipy import stats

from analysis.onsets import Onsets, compare_onsets, log_rank, onset_ratio, onsets
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
def test_the_curve_is_scipys_kaplan_meier(seed):
    one = weibull(25, limit=1.0, seed=seed)
    times, alive, low, high = one.curve()
    expected = stats.ecdf(as_scipy(one)).sf
    np.testing.assert_allclose(alive[1:], expected.evaluate(times[1:]))
    band = expected.confidence_interval(method="log-log")
    inside = np.isfinite(low)
    np.testing.assert_allclose(low[inside][1:], band.low.evaluate(times[inside][1:]))
    np.testing.assert_allclose(high[inside][1:], band.high.evaluate(times[inside][1:]))


def test_intervals_of_medians_and_ratios_have_their_coverage():
    truth = np.log(2) ** (1 / 1.5)
    medians, ratios = [], []
    for seed in range(80):
        first, second = weibull(30, seed=seed), weibull(25, 2.0, 1.6, seed + 1000)
        median, ratio = first.median, onset_ratio(first, second)
        medians.append(median.low <= truth <= median.high)
        ratios.append(ratio.covers(2.0))
    assert np.mean(medians) > 0.90
    assert 0.89 < np.mean(ratios) <= 1


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
    assert open_.low > 1
    assert np.isinf(open_.high), "the data do not say how late the rest would come"


def test_a_single_run_has_no_interval():
    one = Onsets(np.array([2.0]), np.array([True]))
    assert np.isnan(one.median.low)
    assert onset_ratio(one, one.scaled(4.0)).estimate == pytest.approx(4.0)
    assert np.isnan(onset_ratio(one, one.scaled(4.0)).low)


def test_onsets_are_first_or_lasting_frames():
    values = [[0, 1, 0, 1, 1], [0, 0, np.nan, 0, 0], [1, 1, 1, 1, 1]]
    times = [0, 10, 20, 30, 40]
    first = onsets(values, times, 1)
    assert first.times.tolist() == [10, 40, 0]
    assert first.reached.tolist() == [True, False, True]
    assert onsets(values, times, 1, lasting=True).times.tolist() == [30, 40, 0]
    with pytest.raises(InputError, match="values and times must have the shapes"):
        onsets(values, times[1:], 1)
