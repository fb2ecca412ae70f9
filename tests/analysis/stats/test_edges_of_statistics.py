"""Edges of statistics: infinite values, other levels, signs, plain numbers, and how values are written."""

import json
import math

import numpy as np
import pytest
from scipy import stats

import analysis
from analysis.stats import effects, intervals
from analysis.stats.calibration import calibrate
from analysis.stats.effects import Difference, bootstrap, compare_proportions
from analysis.stats.intervals import (
    Interval,
    clustered_proportion,
    holm,
    is_shown,
    plain,
    proportion,
    readable,
)
from analysis.stats.transitions import Transition, fit_critical_values, fit_transition, median_crossing
from physics import InputError

NAN, INF = math.nan, math.inf
RNG = np.random.default_rng(12)
FIRST_STATE = RNG.bit_generator.state


@pytest.fixture(autouse=True)
def seeded():
    """Let every test draw the same numbers, whichever ran before it."""
    RNG.bit_generator.state = FIRST_STATE


def numbers(one):
    return [one.estimate, one.low, one.high]


def curve(r, center, width, shape):
    return (1 + (2**shape - 1) * (center / r) ** (1 / width)) ** (-1 / shape)


# -- intervals --------------------------------------------------------------------------------------------


def test_numbers_are_plain_floats_that_json_takes():
    """NumPy's float64 is a float, but its float32 and its integers are none."""
    values = np.array([1, 2, 4, 8], np.float32)
    found = [
        analysis.mean(values), analysis.proportion(3, 8), clustered_proportion([1, 3], [4, 5]),
        analysis.correlation(values, values**2), analysis.stats.cliffs_delta(values, 2 * values),
        analysis.stats.median_crossing(values, 1.0), Interval(1.0, 0.5, 2.0, 4).map(np.float32),
    ]  # fmt: skip
    for one in found:
        assert [type(value) for value in numbers(one)] == [float] * 3, one
        assert type(one.count) is int, one
        json.dumps([*numbers(one), one.count])


def test_a_level_widens_an_interval_as_its_quantile_does():
    values = RNG.normal(size=9)
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


def test_a_proportion_of_all_or_none_ends_exactly_there():
    for count in (1, 7, 3.5):
        none, all_ = intervals.proportion(0, count), intervals.proportion(count, count)
        assert (none.estimate, none.low, all_.estimate, all_.high) == (0, 0, 1, 1)
        assert none.high == pytest.approx(1 - all_.low)
    assert (intervals.proportion(1.6, 3.6).count, intervals.proportion(1, 2.4).count) == (4, 2)


@pytest.mark.parametrize(("successes", "count"), [(4, 3), (-1, 3), (1, 0), (NAN, 3), (0, -2), (0.5, 0.4)])
def test_a_proportion_is_of_successes_from_none_to_all(successes, count):
    with pytest.raises(InputError) as refused:
        proportion(successes, count)
    assert str(refused.value) == f"successes must be from 0 to {count:g}, got {successes:g}"
    assert proportion(0.4, 0.4).estimate == 1
    assert proportion(0, 0).count == 0


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
    assert clustered_proportion([], []).count == 0


def test_a_difference_squares_the_sides_that_face_each_other():
    found = intervals.difference(Interval(5.0, 2.0, 9.0, 3), Interval(1.0, -3.0, 13.0, 4))
    assert numbers(found) == [4.0, 4 - math.hypot(3, 12), 4 + math.hypot(4, 4)]
    assert found.count == 7


def test_a_correlation_in_groups_changes_its_sign_with_a_variable():
    groups = np.repeat(np.arange(5), 4)
    x = RNG.normal(size=20)
    y = x + RNG.normal(size=20)
    found, mirrored = analysis.correlation(x, y, groups), analysis.correlation(x, -y, groups)
    assert found.estimate > 0.3
    assert numbers(mirrored) == pytest.approx([-found.estimate, -found.high, -found.low])
    perfect = analysis.correlation(x, 2 * x + 1, groups)
    assert numbers(perfect) == pytest.approx([1, 1, 1])
    assert numbers(analysis.correlation(x, -x, groups)) == pytest.approx([-1, -1, -1])
    assert math.isfinite(analysis.correlation([1, 2, 3, 4], [1, 3, 2, 4]).low), "four are enough"
    assert analysis.correlation([1, 2, 3], [1, 3, 2]).count == 3
    assert math.isnan(analysis.correlation([1, 2, 3, 4], [2, 2, 2, 2]).estimate)
    constant = np.where(groups == 0, y, 0.5)
    assert math.isnan(analysis.correlation(x, constant, groups).low)


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


def test_digits_are_as_many_as_asked_for():
    assert (readable(3.14159, 5), readable(1234.5, 2), readable(2.5e7, 1)) == ("3.1416", "1200", "2 × 10⁷")
    assert Interval(INF, 0.0, INF, 3).format() == "-"
    assert Interval(1.0, 0.5, INF, 3).format(2) == "1.00 [0.50, inf]"


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
        with pytest.raises(InputError, match=r"^second must be an array of booleans, got list \["):
            compare_proportions("x", first, wrong)
    with pytest.raises(InputError, match=r"^first must have 1 axis, got the shape \(\)"):
        compare_proportions("x", True, second)


@pytest.mark.filterwarnings("ignore:invalid value encountered")
def test_draws_of_which_the_statistic_is_unbounded_are_left_out():
    """One over a mean that is 0 in some draws: the quantiles are those of the others."""

    def statistic(rows):
        with np.errstate(divide="ignore"):
            return 1 / rows.mean(axis=1)

    found = bootstrap((np.array([0.0, 0.0, 0.0, 1.0, 1.0]),), statistic)
    assert found.estimate == pytest.approx(2.5)
    assert found.high == 5.0, "of the draws with a mean, the smallest is 1/5"
    nothing = bootstrap((np.array([1.0, 2.0]),), lambda rows: np.full(len(rows), INF))
    assert math.isnan(nothing.low)
    assert math.isnan(nothing.high)


@pytest.mark.parametrize("side", ["difference", "effect"])
def test_an_ensemble_differs_if_the_test_and_every_interval_say_so(side):
    apart, across = Interval(1.0, 0.5, 1.5, 9), Interval(1.0, -0.5, 1.5, 9)
    given = {"difference": apart, "effect": apart} | {side: across}

    def differs(intervals, p=0.01, adjusted=0.04):
        return Difference(
            "x", (np.ones(2), np.ones(2)), apart, apart, intervals["difference"],
            {"first": apart, "e": intervals["effect"]}, p, "t", adjusted,
        ).differs  # fmt: skip

    assert differs({"difference": apart, "effect": apart}) is True
    assert differs(given) is False
    assert differs({"difference": apart, "effect": apart}, adjusted=0.06) is False
    assert differs({"difference": apart, "effect": apart}, adjusted=NAN) is True


def test_cliffs_delta_of_samples_apart_ends_at_one_and_of_one_value_has_no_interval():
    for x, y, sign in (([3, 4], [1, 2], 1), ([1, 2], [3, 4], -1)):
        found = analysis.stats.cliffs_delta(x, y)
        assert found.estimate == sign
        assert (found.high if sign > 0 else found.low) == sign
        assert -1 < (found.low if sign > 0 else found.high) * sign < 1
    alone = analysis.stats.cliffs_delta([2], [1, 3])
    assert (alone.estimate, alone.count) == (0, 3)
    for first, second in (([], [1.0]), ([1.0], [])):
        empty = analysis.stats.cliffs_delta(first, second)
        assert (math.isnan(empty.estimate), empty.count) == (True, 1)
    with_count = analysis.stats.hedges_g([1.0, 2.0, 1.0], [2.0, 2.0])
    assert with_count.count == 5
    assert with_count.high < 0
    assert analysis.stats.hedges_g([1.0], [2.0, 3.0]).count == 3
    assert math.isnan(effects.permutation_p_value([1.0], []))


# -- calibration and transitions --------------------------------------------------------------------------


def test_a_prediction_that_is_infinite_is_none():
    x, y = np.array([0.1, 0.4, 0.5, 0.9]), np.array([0.2, 0.3, 0.7, 0.8])
    expected = calibrate(x, y)
    for place in range(5):
        found = calibrate(np.insert(x, place, [INF, 0.5]), np.insert(y, place, [0.5, -INF]))
        assert found.predicted.tolist() == x.tolist()
        assert found.measured.tolist() == y.tolist()
        assert (found.bias, found.error, found.slope) == (expected.bias, expected.error, expected.slope)
    assert [one.count for one in (expected.bias, expected.error, expected.correlation, expected.slope)] == [
        4
    ] * 4
    with pytest.raises(InputError, match=r"got \(2, 2\) and \(2, 2\)"):
        calibrate(np.ones((2, 2)), np.ones((2, 2)))


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


def test_a_probability_rises_from_0_to_1_and_is_one_half_at_the_critical_value():
    one = Transition(Interval(0.4, 0.3, 0.5, 9), 0.1, 2.0, NAN)
    r = np.array([0.1, 0.3, 0.4, 0.5, 2.0])
    np.testing.assert_allclose(one.probability(r), curve(r, 0.4, 0.1, 2.0), rtol=1e-9)
    assert one.probability(0.4) == pytest.approx(0.5)
    assert one.probability([0.0, -1.0]).tolist() == pytest.approx([0, 0], abs=1e-12)
    assert one.probability([[0.4]]).shape == (1, 1)


def test_a_single_success_lies_between_none_and_all():
    for hits in ([0, 1, 3], [0, 2, 3], [1, 3, 3]):
        found = fit_transition([1.0, 2.0, 3.0], hits, [3, 3, 3])
        assert (found.critical.count, math.isnan(found.misfit)) == (9, True)


def test_a_control_parameter_may_be_zero():
    r = np.array([0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.9])
    p = curve(np.maximum(r, 1e-12), 0.45, 0.15, 1.0)
    found = fit_transition(r, np.round(500 * p), np.full(8, 500))
    assert found.critical.estimate == pytest.approx(0.45, rel=0.03)


def test_the_misfit_of_single_samples_is_the_largest_gap_of_the_shares():
    values = np.array([0.2, 0.3, 0.3, 0.4, 0.4, 0.4, 0.5, 0.6])
    fit = fit_critical_values(values, 0.1)
    level = np.unique(values)
    gaps = np.abs(fit.probability(level) - [np.mean(values <= one) for one in level])
    assert fit.misfit == pytest.approx(gaps.max())
    assert fit.critical.count == 8
    for few in ([0.2, 0.3], [0.3, 0.3, 0.3], [[0.2, 0.3, 0.4]]):
        with pytest.raises(InputError, match="values must be a list of at least 3 numbers that are not all"):
            fit_critical_values(few, 0.1)
    only = median_crossing([3.0], 1.0)
    assert only.estimate == pytest.approx(2.5)
