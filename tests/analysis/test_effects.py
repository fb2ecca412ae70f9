import naive
import numpy as np
import pytest
from scipy import stats

import analysis
from analysis.stats.calibration import calibrate
from analysis.stats.effects import bootstrap, permutation_p_value
from analysis.stats.intervals import difference
from physics import InputError


def covered(intervals, truth):
    return np.mean([interval.covers(truth) for interval in intervals])


def width(intervals):
    return np.mean([one.high - one.low for one in intervals])


def scatter(intervals):
    """Width of the interval that holds 95 % of a normal law with the spread of the estimates."""
    return 2 * 1.96 * np.std([one.estimate for one in intervals], ddof=1)


@pytest.mark.parametrize("seed", range(4))
def test_cliffs_delta_counts_all_pairs(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 5, 9), rng.integers(0, 6, 7)
    found = analysis.stats.cliffs_delta(x, y)
    assert found.estimate == pytest.approx(naive.cliffs_delta(x, y))
    assert found.low < found.estimate < found.high
    swapped = analysis.stats.cliffs_delta(y, x)
    assert (swapped.low, swapped.high) == (pytest.approx(-found.high), pytest.approx(-found.low))


def test_cliffs_delta_has_a_real_interval_where_samples_do_not_overlap():
    found = analysis.stats.cliffs_delta(np.arange(10.0) + 100, np.arange(10.0))
    assert (found.estimate, found.high) == (1, 1)
    assert 0.4 < found.low < 0.95, "ten runs of each cannot prove that no pair is the other way"


def test_intervals_of_effects_have_their_coverage():
    rng = np.random.default_rng(5)
    shift, delta = 0.8, 2 * stats.norm.cdf(0.8 / 2**0.5) - 1
    samples = [(rng.normal(shift, 1, 18), rng.normal(0, 1, 14)) for _ in range(100)]
    deltas = [analysis.stats.cliffs_delta(x, y) for x, y in samples]
    means = [bootstrap((x, y), lambda a, b: a.mean(-1) - b.mean(-1), resamples=400) for x, y in samples]
    g = [analysis.stats.hedges_g(x, y) for x, y in samples[:50]]
    for intervals, truth in ((deltas, delta), (means, shift), (g, shift)):
        assert covered(intervals, truth) > 0.88
        assert 0.85 < width(intervals) / scatter(intervals) < 1.25, "as wide as the estimates scatter"
    # Of means that is known: Student's.
    assert width(means) == pytest.approx(2 * stats.t.ppf(0.975, 13) * (1 / 18 + 1 / 14) ** 0.5, rel=0.1)


def test_hedges_g_is_unbiased_where_cohens_d_is_not():
    rng = np.random.default_rng(1)
    found = [analysis.stats.hedges_g(rng.normal(1, 1, 6), rng.normal(0, 1, 6)).estimate for _ in range(120)]
    assert np.mean(found) == pytest.approx(1.0, abs=0.15)
    x, y = np.array([1.0, 2.0, 4.0]), np.array([0.0, 1.0, 1.0, 3.0])
    pooled = np.sqrt((2 * x.var(ddof=1) + 3 * y.var(ddof=1)) / 5)
    assert analysis.stats.hedges_g(x, y).estimate == pytest.approx(
        (1 - 3 / 19) * (x.mean() - y.mean()) / pooled
    )


def test_proportions_have_newcombes_interval_and_cohens_h():
    # Newcombe 1998, Table II, row (a): 56/70 and 48/80, method 10.
    ours, theirs = analysis.proportion(56, 70), analysis.proportion(48, 80)
    found = difference(ours, theirs)
    assert (found.low, found.high) == (pytest.approx(0.0524, abs=1e-4), pytest.approx(0.3339, abs=1e-4))
    h = analysis.stats.cohens_h(ours, theirs)
    assert h.estimate == pytest.approx(2 * np.arcsin(0.8**0.5) - 2 * np.arcsin(0.6**0.5))
    compared = analysis.stats.compare_proportions("x", [True] * 5, [False] * 5)
    assert compared.effects["Cohen's h"].estimate == pytest.approx(np.pi)
    assert compared.p_value == pytest.approx(2 / 252)
    assert compared.difference.high == pytest.approx(1)
    assert compared.difference.low > 0


def test_the_permutation_test_counts_what_is_as_extreme():
    x, y = np.array([3.0, 4.0, 5.0]), np.array([0.0, 1.0, 2.0])
    assert permutation_p_value(x, y) == pytest.approx(2 / 20, abs=0.02)
    assert permutation_p_value(x, x) == 1
    rng = np.random.default_rng(0)
    null = [permutation_p_value(*rng.standard_normal((2, 8))) for _ in range(80)]
    assert stats.kstest(null, "uniform").pvalue > 0.01


def test_what_was_seen_counts_among_the_permutations():
    assert permutation_p_value(np.arange(15.0), 100 + np.arange(15.0)) == 1 / 4001


def test_what_has_no_interval_says_so():
    alone = analysis.stats.compare_values("x", [1.0], [2.0, 3.0])
    assert alone.difference.estimate == -1.5
    assert np.isnan(alone.difference.low)
    assert np.isnan(alone.effects["Cliff's delta"].low)
    empty = analysis.stats.compare_values("x", [np.nan], [2.0])
    assert np.isnan(empty.p_value)
    assert np.isnan(empty.difference.estimate)
    same = analysis.stats.compare_values("x", [1.0, 1.0], [1.0, 1.0])
    assert (same.difference.low, same.difference.high, same.p_value) == (0, 0, 1)
    assert np.isnan(same.effects["Hedges' g"].estimate)
    assert np.isnan(analysis.stats.cohens_h(analysis.proportion(0, 0), analysis.proportion(1, 2)).estimate)


def test_calibration_covers_the_truth():
    rng = np.random.default_rng(3)
    found = []
    for _ in range(60):
        predicted = rng.uniform(0, 1, 20)
        found.append(calibrate(predicted, 0.1 + 0.5 * predicted + rng.normal(0, 0.1, 20)))
    slopes = [one.slope for one in found]
    assert covered(slopes, 0.5) > 0.88
    assert 0.8 < width(slopes) / scatter(slopes) < 1.35
    perfect = calibrate([0.1, 0.5, 0.9, 0.2, np.nan], [0.1, 0.5, 0.9, 0.2, 1.0])
    assert (perfect.bias.estimate, perfect.error.estimate, perfect.bias.count) == (0, 0, 4)
    assert perfect.slope.estimate == pytest.approx(1)
    with pytest.raises(InputError, match=r"predicted and measured must have one shape \(n,\)"):
        calibrate([1, 2], [1])


def test_calibration_is_the_definition():
    rng = np.random.default_rng(4)
    x = rng.uniform(0, 1, 5)
    y = 0.3 + 0.5 * x + rng.normal(0, 0.1, 5)
    found = calibrate(x, y)
    gaps = y - x
    half = stats.t.ppf(0.975, 4) * gaps.std(ddof=1) / 5**0.5
    assert (found.bias.low, found.bias.high) == pytest.approx((gaps.mean() - half, gaps.mean() + half))
    assert found.error.estimate == pytest.approx((gaps**2).mean() ** 0.5)
    assert found.correlation.estimate == pytest.approx(np.corrcoef(x, y)[0, 1])
    design = np.stack([np.ones(5), x], axis=1)
    line, rest, *_ = np.linalg.lstsq(design, y, rcond=None)
    error = (rest[0] / 3 * np.linalg.inv(design.T @ design)[1, 1]) ** 0.5  # two of five are fitted
    half = stats.t.ppf(0.975, 3) * error
    assert found.slope.estimate == pytest.approx(line[1])
    assert (found.slope.low, found.slope.high) == pytest.approx((line[1] - half, line[1] + half))


def test_an_interval_is_expanded_for_the_smaller_of_two_samples():
    """The five alone would not scatter; the fifty do, and are expanded as five are (Hesterberg 2015)."""
    rng = np.random.default_rng(3)
    few, many = 1e-3 * rng.standard_normal(5), rng.standard_normal(50)
    expected = (5 / 4) ** 0.5 * stats.t.ppf(0.975, 4)
    for samples in ((few, many), (many, few)):
        found = bootstrap(samples, lambda a, b: a.mean(axis=-1) - b.mean(axis=-1))
        half = (found.high - found.low) / 2 / (many.std() / 50**0.5)
        assert half == pytest.approx(expected, rel=0.12)


def test_a_seed_draws_the_intervals_and_the_permutations_of_values_anew():
    x, y = np.random.default_rng(4).standard_normal((2, 12))
    first, again, other = (analysis.stats.compare_values("x", x, y, seed=seed) for seed in (0, 0, 1))
    for one, differs in ((again, False), (other, True)):
        assert (one.difference.low != first.difference.low) is differs
        assert (one.effects["Hedges' g"].low != first.effects["Hedges' g"].low) is differs
        assert (one.p_value != first.p_value) is differs


@pytest.mark.parametrize("alone", [0, 1])
def test_one_value_against_many_is_as_extreme_as_it_is_far_from_all(alone):
    one, many = np.array([3.0]), np.array([0.0, 1.0, 2.0, 4.0, 5.5, 3.0])
    pooled = np.concatenate([one, many])
    for value in (3.0, 6.0):
        pooled[0] = value
        far = np.abs(pooled - pooled.mean())
        samples = (pooled[:1], many) if not alone else (many, pooled[:1])
        assert permutation_p_value(*samples) == pytest.approx(np.mean(far >= far[0] - 1e-12))


def test_values_that_are_not_finite_are_no_values():
    found = analysis.stats.compare_values("x", [1.0, 2.0, np.inf, np.nan], [3.0, -np.inf, 4.0, 5.0])
    assert [sample.tolist() for sample in found.samples] == [[1, 2], [3, 4, 5]]
    assert found.difference.estimate == -2.5
