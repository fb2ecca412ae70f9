"""Intervals, effect sizes, tests and calibration, by their definitions and their coverage."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

import analysis
from analysis.circles.prediction import fitness, survival_rates
from analysis.stats import effects, intervals
from analysis.stats.effects import bootstrap, calibrate, compare_proportions, permutation_p_value
from analysis.stats.intervals import clustered_proportion, difference, holm, is_shown, plain, readable
from analysis.stats.transitions import fit_transition
from physics import InputError


def covered(intervals, truth):
    return np.mean([interval.covers(truth) for interval in intervals])


def width(intervals):
    return np.mean([one.high - one.low for one in intervals])


def scatter(intervals):
    """Width of the interval that holds 95 % of a normal law with the spread of the estimates."""
    return 2 * 1.96 * np.std([one.estimate for one in intervals], ddof=1)


def test_cliffs_delta_has_a_real_interval_where_samples_do_not_overlap():
    found = analysis.stats.cliffs_delta(np.arange(10.0) + 100, np.arange(10.0))
    assert (found.estimate, found.high) == (1, 1)
    assert 0.4 < found.low < 0.95, "ten runs of each cannot prove that no pair is the other way"


def test_exchanging_two_samples_exchanges_only_the_sides():
    rng = np.random.default_rng(1)
    for m, n in ((30, 40), (12, 12), (5, 30)):
        x, y = rng.normal(size=m), rng.normal(0.5, 1, size=n)
        there, back = (analysis.stats.compare_values("x", *each) for each in ((x, y), (y, x)))
        assert there.p_value == back.p_value
        pairs = [(there.difference, back.difference)]
        for one, other in [*pairs, *zip(there.effects.values(), back.effects.values(), strict=True)]:
            assert [*one] == pytest.approx([-other.estimate, -other.high, -other.low])


def test_an_interval_is_read_unpacked_and_drawn():
    share = analysis.proportion(17, 30)
    estimate, low, high = share
    assert (str(share), f"{share:.0%}") == ("0.57 [0.39, 0.73]", "57% [39%, 73%]")
    assert share.error.tolist() == [[estimate - low], [high - estimate]]
    with pytest.raises(InputError, match="successes must be .* at most 5, got 'a'"):
        analysis.proportion("a", 5)


def test_intervals_of_effects_have_their_coverage():
    rng = np.random.default_rng(5)
    shift, delta = 0.8, 2 * stats.norm.cdf(0.8 / 2**0.5) - 1
    samples = [(rng.normal(shift, 1, 18), rng.normal(0, 1, 14)) for _ in range(100)]
    deltas = [analysis.stats.cliffs_delta(x, y) for x, y in samples]
    means = [bootstrap((x, y), lambda a, b: a.mean(-1) - b.mean(-1), resamples=400) for x, y in samples]
    g = [analysis.stats.hedges_g(x, y) for x, y in samples[:50]]
    for measured, truth in ((deltas, delta), (means, shift), (g, shift)):
        assert covered(measured, truth) > 0.88
        assert 0.85 < width(measured) / scatter(measured) < 1.25, "as wide as the estimates scatter"
    # Of means that is known: Student's.
    assert width(means) == pytest.approx(2 * stats.t.ppf(0.975, 13) * (1 / 18 + 1 / 14) ** 0.5, rel=0.1)


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


def test_calibration_is_the_definition():
    rng = np.random.default_rng(4)
    x = rng.uniform(0, 1, 5)
    y = 0.3 + 0.5 * x + rng.normal(0, 0.1, 5)
    found = calibrate(x, y)
    order = np.random.default_rng(1).permutation(len(x))
    assert calibrate(x[order], y[order]).error == found.error == calibrate(y, x).error
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


def test_a_correlation_within_groups_has_the_interval_of_its_pseudo_values():
    names, (x, noise) = np.repeat(list("abcdef"), 4), np.random.default_rng(7).standard_normal((2, 24))
    y = x + noise
    whole = np.arctanh(np.corrcoef(x, y)[0, 1])
    left = [np.arctanh(np.corrcoef(x[names != name], y[names != name])[0, 1]) for name in "abcdef"]
    pseudo = 6 * whole - 5 * np.array(left)
    half = stats.t.ppf(0.975, 5) * pseudo.std(ddof=1) / 6**0.5
    found = intervals.correlation(x, y, names)
    expected = np.tanh([whole, whole - half, whole + half])
    assert (found.estimate, found.low, found.high) == pytest.approx(tuple(expected))


def test_an_interval_is_expanded_for_the_smaller_of_two_samples():
    """The five alone would not scatter; the fifty do, and are expanded as five are (Hesterberg 2015)."""
    rng = np.random.default_rng(3)
    few, many = 1e-3 * rng.standard_normal(5), rng.standard_normal(50)
    expected = (5 / 4) ** 0.5 * stats.t.ppf(0.975, 4)
    for samples in ((few, many), (many, few)):
        found = bootstrap(samples, lambda a, b: a.mean(axis=-1) - b.mean(axis=-1))
        half = (found.high - found.low) / 2 / (many.std() / 50**0.5)
        assert half == pytest.approx(expected, rel=0.12)


@pytest.mark.parametrize("alone", [0, 1])
def test_one_value_against_many_is_as_extreme_as_it_is_far_from_all(alone):
    one, many = np.array([3.0]), np.array([0.0, 1.0, 2.0, 4.0, 5.5, 3.0])
    pooled = np.concatenate([one, many])
    for value in (3.0, 6.0):
        pooled[0] = value
        far = np.abs(pooled - pooled.mean())
        samples = (pooled[:1], many) if not alone else (many, pooled[:1])
        assert permutation_p_value(*samples) == pytest.approx(np.mean(far >= far[0] - 1e-12))


def numbers(one):
    return [one.estimate, one.low, one.high]


# -- effects ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("first", "second"), [([1, 2, 2, 5], [2, 3, 0]), ([3], [1, 3, 4]), ([1, 2], [1.5])])
def test_cliffs_delta_counts_the_pairs_in_which_one_is_larger(first, second):
    pairs = list(itertools.product(first, second))
    expected = np.mean([np.sign(x - y) for x, y in pairs])
    found = effects.cliffs_delta(first, second)
    assert found.estimate == pytest.approx(expected)
    assert effects.cliffs_delta(second, first).estimate == pytest.approx(-expected)
    assert found.count == len(first) + len(second)
    assert math.isfinite(found.low) == (min(len(first), len(second)) > 1)
    if math.isfinite(found.low):  # Newcombe's score interval: its ends solve (θ - A)² = z² Var(θ)
        m, n, z = len(first), len(second), stats.norm.ppf(0.975)
        area = (expected + 1) / 2
        for end in (found.low, found.high):
            theta = (end + 1) / 2
            half = (m + n) / 2 - 1
            variance = theta * (1 - theta) * (1 + half * ((1 - theta) / (2 - theta) + theta / (1 + theta)))
            assert (theta - area) ** 2 == pytest.approx(z**2 * variance / (m * n))


def test_hedges_g_divides_by_the_pooled_spread_and_corrects_for_small_samples():
    x, y = np.array([1.0, 2.0, 4.0, 7.0]), np.array([0.0, 1.0, 5.0])
    pooled = math.sqrt((3 * x.var(ddof=1) + 2 * y.var(ddof=1)) / 5)
    found = effects.hedges_g(x, y)
    assert found.estimate == pytest.approx((1 - 3 / (4 * 5 - 1)) * (x.mean() - y.mean()) / pooled)
    assert found.low < found.estimate < found.high
    for a, b in ((x, [1.0]), ([2.0, 2.0], [1.0, 1.0]), ([], [1.0, 2.0])):
        assert not np.isfinite(numbers(effects.hedges_g(a, b))).any()
    assert effects.hedges_g([2.0, 2.0], [1.0, 2.0]).estimate > 0, "one sample varies"


def test_a_bootstrap_interval_is_expanded_as_students():
    rows = np.random.default_rng(1).normal(size=(8, 2))
    found = effects.bootstrap((rows,), lambda a: a[..., 0].mean(axis=1), resamples=20_000)
    means = np.random.default_rng(2).choice(rows[:, 0], (200_000, 8)).mean(axis=1)
    tail = stats.norm.cdf(math.sqrt(8 / 7) * stats.t.ppf(0.025, 7))  # without the root it is 7 % less wide
    assert found.estimate == pytest.approx(rows[:, 0].mean())
    assert found.high - found.low == pytest.approx(np.ptp(np.quantile(means, [tail, 1 - tail])), rel=0.03)
    single = effects.bootstrap(([[1.0]], [[2.0], [3.0]]), lambda a, b: (a.mean(1) - b.mean(1)).ravel())
    assert (single.estimate, single.count) == (-1.5, 3)
    assert math.isnan(single.low)


# -- circles ------------------------------------------------------------------------------------------------


def test_bins_of_survival_hold_equally_many_circles_and_their_own_rates():
    x = np.arange(12.0).reshape(3, 4)
    alive = np.random.default_rng(2).random((3, 4)) < 0.5
    rows = survival_rates(x, alive, bins=3)
    edges = np.quantile(x, [0, 1 / 3, 2 / 3, 1])
    assert [(row.low, row.high) for row in rows] == list(itertools.pairwise(edges))
    for row, part in zip(rows, np.split(np.arange(12), 3), strict=True):
        assert row.value == x.ravel()[part].mean()
        assert row.rate == intervals.proportion(int(alive.ravel()[part].sum()), 4)
    grouped = survival_rates(x, alive, bins=3, groups=["b", "a", "b"])
    for row, part in zip(grouped, np.split(np.arange(12), 3), strict=True):
        names = np.repeat(["b", "a", "b"], 4)[part]
        kinds = np.unique(names)
        hits = [alive.ravel()[part][names == kind].sum() for kind in kinds]
        assert row.rate == intervals.clustered_proportion(hits, [(names == kind).sum() for kind in kinds])
    (same,) = survival_rates(np.ones((2, 2)), np.eye(2, dtype=bool), bins=4)
    assert (same.low, same.high, same.rate.estimate) == (1.0, 1.0, 0.5)


def test_what_predicts_survival_is_judged_on_groups_that_were_left_out():
    rng = np.random.default_rng(6)
    signals, gradients = rng.normal(size=(2, 12, 5))
    alive = signals + 0.3 * rng.normal(size=(12, 5)) > 0.4
    found = fitness(signals, gradients, alive, resamples=20)
    assert found.groups == 12
    assert found.majority == pytest.approx(max(alive.mean(), 1 - alive.mean()))
    names = np.repeat(np.arange(12), 5)
    assert found.signal_correlation == intervals.correlation(signals.ravel(), alive.ravel(), names)
    assert found.gradient_correlation == intervals.correlation(gradients.ravel(), alive.ravel(), names)
    assert found.odds[0, 0] > 1 > abs(found.odds[1, 0])
    assert (found.odds[:, 1] < found.odds[:, 0]).all()
    assert found.svm.area > 0.9
    assert found.svm.in_sample.estimate >= found.svm.left_out.estimate
    for wrong, said in (
        ({"groups": np.zeros(12)}, "at least 2 groups"),
        ({"survived": np.ones((12, 5), bool)}, "survived must hold both outcomes, got 60 survivors of 60"),
        ({"survived": names.reshape(12, 5) == 3}, "are left out, got survivors in 1 and dead"),
        ({"resamples": 0}, "resamples must be at least 1"),
    ):
        with pytest.raises(InputError, match=said):
            fitness(**({"signals": signals, "gradients": gradients, "survived": alive} | wrong))


# -- phases -------------------------------------------------------------------------------------------------


NAN, INF = math.nan, math.inf


def curve(r, center, width, shape):
    return (1 + (2**shape - 1) * (center / r) ** (1 / width)) ** (-1 / shape)


# -- intervals --------------------------------------------------------------------------------------------


def test_a_level_widens_an_interval_as_its_quantile_does():
    values = np.random.default_rng(12).normal(size=9)
    for level in (0.5, 0.95, 0.99):
        found = intervals.mean(values, level)
        low, high = stats.t.interval(level, 8, values.mean(), stats.sem(values))
        assert numbers(found) == pytest.approx([values.mean(), low, high])
        wilson = stats.binomtest(3, 9).proportion_ci(level, method="wilson")
        assert numbers(intervals.proportion(3, 9, level))[1:] == pytest.approx([wilson.low, wilson.high])
    hits, trials = [1, 4, 4], [5, 5, 10]
    scatter = 3 / 2 * sum((h - 0.45 * n) ** 2 for h, n in zip(hits, trials, strict=True)) / 400
    weight = 0.45 * 0.55 / scatter * (stats.norm.ppf(0.75) / stats.t.ppf(0.75, 2)) ** 2
    expected = intervals.proportion(0.45 * weight, weight, 0.5)
    assert numbers(clustered_proportion(hits, trials, 0.5))[1:] == pytest.approx(numbers(expected)[1:])


def test_groups_that_agree_count_as_one_trial_each():
    """Where nothing scatters, each group says as much as a single trial, whatever its size."""
    for hits, rate in (([5, 10, 20], 0.5), ([0, 0, 0], 0.0)):
        weight = 3 * (stats.norm.ppf(0.975) / stats.t.ppf(0.975, 2)) ** 2
        found, expected = (
            clustered_proportion(hits, [10, 20, 40]),
            intervals.proportion(rate * weight, weight),
        )
        assert numbers(found) == pytest.approx([rate, expected.low, expected.high])
        assert found.count == 70
    one = clustered_proportion([3], [5])
    assert (one.estimate, one.count) == (0.6, 5)
    assert np.isnan([one.low, clustered_proportion([], []).estimate]).all()
    assert clustered_proportion([], []).count == 0


def test_p_values_are_adjusted_in_their_order_and_what_is_unknown_is_no_test():
    given = np.array([0.04, NAN, 0.01, 0.03, 0.03, NAN])
    found = holm(given)
    np.testing.assert_allclose(found, [0.09, NAN, 0.04, 0.09, 0.09, NAN])
    assert np.isnan(holm([NAN, NAN])).all()
    assert holm([0.2]).tolist() == [0.2]
    assert holm([0.0, 1.0]).tolist() == [0.0, 1.0]
    for adjusted, p, shown in (
        (0.049, 0.9, True), (0.05, 0.001, False), (0.2, 0.001, False), (NAN, 0.049, True), (NAN, 0.05, False),
        (NAN, NAN, False), (1.0, 0.0, False),
    ):  # fmt: skip
        assert is_shown(adjusted, p) is shown


@pytest.mark.parametrize(
    ("value", "text", "short"),
    [
        (1e6, "1.00 × 10⁶", "1 × 10⁶"), (999_999.0, "1000000", "1000000"),
        (-2.5e6, "-2.50 × 10⁶", "-2.5 × 10⁶"),
        (1e-4, "0.000100", "0.0001"), (9.9e-5, "9.90 × 10⁻⁵", "9.9 × 10⁻⁵"), (100.0, "100", "100"),
        (10.0, "10.0", "10"), (0.5, "0.500", "0.5"), (1234.0, "1230", "1230"), (12.34, "12.3", "12.3"),
        (INF, "∞", "∞"), (-INF, "-∞", "-∞"), (NAN, "-", "-"), (0.0, "0", "0"),
        (1e-12, "1.00 × 10⁻¹²", "1 × 10⁻¹²"),
    ],
)  # fmt: skip
def test_numbers_are_written_as_people_do(value, text, short):
    assert readable(value) == text
    assert plain(value) == short


# -- effects ----------------------------------------------------------------------------------------------


def test_a_comparison_of_proportions_is_newcombes_with_fishers_test():
    first, second = np.array([1, 1, 1, 0, 1], bool), np.array([0, 1, 0, 0, 0, 0, 0, 1], bool)
    found = compare_proportions("x", first, second)
    ours, theirs = intervals.proportion(4, 5), intervals.proportion(2, 8)
    assert (found.first, found.second) == (ours, theirs)
    assert found.difference == intervals.difference(ours, theirs)
    assert found.p_value == pytest.approx(stats.fisher_exact([[4, 1], [2, 6]]).pvalue)
    assert (found.name, found.test) == ("x", "Fisher's exact test")
    assert [sample.tolist() for sample in found.samples] == [first.tolist(), second.tolist()]
    for a, b in (([], [True]), ([True], [])):
        empty = compare_proportions("x", a, b)
        assert math.isnan(empty.p_value)
        assert math.isnan(empty.effects["Cohen's h"].estimate)
        assert empty.effects["Cohen's h"].count == 1
    for wrong in ([math.nan, math.nan, 0], ["False", "no"], [1, 0]):
        with pytest.raises(InputError, match=r"^second must be an array of booleans, got "):
            compare_proportions("x", first, wrong)
    with pytest.raises(InputError, match=r"^first must have 1 axis, got the shape \(\)"):
        compare_proportions("x", True, second)


# -- calibration and transitions --------------------------------------------------------------------------


def test_a_transition_has_a_misfit_from_four_values_inside_on():
    r = np.linspace(0.2, 0.8, 7)
    for inside in (3, 4):
        hits = np.round(200 * curve(r, 0.5, 0.1, 1.0))
        hits[: (7 - inside) // 2], hits[(7 + inside) // 2 :] = 0, 200
        hits[(7 - inside) // 2 :][:inside] = np.clip(hits[(7 - inside) // 2 :][:inside], 1, 199)
        found = fit_transition(r, hits, np.full(7, 200))
        assert math.isfinite(found.misfit) == (inside == 4)
        assert found.critical.count == 1400
        assert found.critical.low < found.critical.estimate < found.critical.high
