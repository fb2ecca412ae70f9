"""Edges of transitions: what is refused, degrees of freedom, values at 0, and samples known within a step."""

import math

import numpy as np
import pytest
from scipy import optimize

from analysis.stats.intervals import proportion
from analysis.stats.transitions import Transition, fit_critical_values, fit_transition, median_crossing
from physics import InputError

R, HITS, TRIALS = [0.2, 0.3, 0.4, 0.5, 0.6], [0, 3, 10, 17, 20], [20] * 5


@pytest.mark.parametrize(
    ("hits", "trials", "got"),
    [
        ([0, 3, 10, 21, 20], TRIALS, "21 of 20"),
        ([-1, 3, 10, 17, 20], TRIALS, "-1 of 20"),
        ([0, 3, 10, 17, 0], [20, 20, 20, 20, 0], "0 of 0"),
    ],
)
def test_more_successes_than_trials_and_none_of_none_are_refused(hits, trials, got):
    with pytest.raises(InputError) as refused:
        fit_transition(R, hits, trials)
    assert str(refused.value) == f"successes must be from 0 to trials, and trials at least 1, got {got}"


@pytest.mark.parametrize("step", [0.0, -0.1, math.nan])
@pytest.mark.parametrize("find", [fit_critical_values, median_crossing])
def test_a_step_must_be_greater_than_0(find, step):
    with pytest.raises(InputError, match="step must be a finite number greater than 0, got"):
        find([0.3, 0.4, 0.4, 0.5], step)
    with pytest.raises(InputError, match="values must be finite, got 1 NaN"):
        find([0.3, 0.4, math.nan, 0.5], 0.1)


@pytest.mark.parametrize("find", [fit_critical_values, median_crossing])
def test_samples_that_are_none_or_too_few_are_refused(find):
    with pytest.raises(InputError, match="values must .* got"):
        find([], 0.1)
    for values in ([[0.1, 0.2, 0.3]], [0.1, 0.2], [0.2, 0.2, 0.2]):
        with pytest.raises(InputError, match="a list of at least 3 numbers that are not all equal, got"):
            fit_critical_values(values, 0.1)
    assert fit_critical_values([0.1, 0.2, 0.3], 0.1).critical.count == 3


@pytest.mark.parametrize(
    ("hits", "inside"), [([0, 3, 10, 17, 20], 3), ([1, 3, 10, 17, 20], 4), ([1, 3, 12, 17, 19], 5)]
)
def test_the_misfit_is_by_degree_of_freedom_of_values_with_both_outcomes(hits, inside):
    """Three parameters are fitted: of three such values none is left, of four one."""
    found = fit_transition(R, hits, TRIALS)
    assert found.critical.count == 100
    if inside == 3:
        assert math.isnan(found.misfit)
        return
    p, k, n = found.probability(R), np.array(hits), np.array(TRIALS)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.nan_to_num(k * np.log(k / n / p)) + np.nan_to_num((n - k) * np.log((1 - k / n) / (1 - p)))
    assert found.misfit == pytest.approx(2 * terms.sum() / (inside - 3), rel=1e-6)


def test_values_that_only_fail_or_only_pass_pull_the_curve_all_the_same():
    middle = fit_transition(R[1:4], HITS[1:4], TRIALS[1:4])
    whole = fit_transition(R, HITS, TRIALS)
    early = fit_transition([0.05, 0.31, *R[1:4]], [0, 0, *HITS[1:4]], [200, 200, *TRIALS[1:4]])
    assert whole.width < middle.width
    assert early.critical.estimate > whole.critical.estimate


def test_values_of_0_and_less_count_as_the_smallest():
    zero, tiny = (fit_transition([least, *R], [0, *HITS], [20, *TRIALS]) for least in (0.0, 1e-12))
    assert zero == tiny
    assert fit_transition([-3.0, *R], [0, *HITS], [20, *TRIALS]) == tiny
    np.testing.assert_array_equal(tiny.probability([-1.0, 0.0, 1e-13]), tiny.probability([1e-12] * 3))
    assert tiny.probability([[0.1, 9.0]]).shape == (1, 2)
    curve = Transition(tiny.critical, 0.2, 1.5, 0.0)
    center = tiny.critical.estimate
    assert curve.probability(0.3) == pytest.approx(
        (1 + (2**1.5 - 1) * (center / 0.3) ** (1 / 0.2)) ** (-1 / 1.5)
    )


def test_a_fraction_that_falls_again_is_fitted_by_its_largest_so_far():
    found = fit_transition(R, [0, 12, 9, 17, 20], TRIALS)
    assert 0.28 < found.critical.estimate < 0.4
    assert found.critical.low < found.critical.estimate < found.critical.high


def test_samples_are_fitted_by_the_probability_to_pass_within_their_step():
    """The likelihood is P(v) - P(v - step); its profile has risen by 1.92 at both bounds."""
    values, step = np.repeat([0.2, 0.3, 0.4, 0.5, 0.6, 0.7], [1, 4, 9, 8, 4, 2]), 0.1
    found = fit_critical_values(values, step)

    def cost(center, log_width, log_shape):
        width, shape = math.exp(log_width), math.exp(log_shape)
        ends = np.maximum([values, values - step], 1e-12)
        upper, lower = (1 + (2**shape - 1) * (center / ends) ** (1 / width)) ** (-1 / shape)
        return -float(np.log(np.maximum(upper - lower, 1e-300)).sum())

    at = [math.log(found.width), math.log(found.shape)]
    least = cost(found.critical.estimate, *at)
    free = optimize.minimize(
        lambda x: cost(*x), [found.critical.estimate, *at], method="Nelder-Mead", tol=1e-9
    )
    assert least <= free.fun + 1e-6
    for bound in (found.critical.low, found.critical.high):
        rest = optimize.minimize(lambda x, at=bound: cost(at, *x), at, method="Nelder-Mead", tol=1e-9)
        assert rest.fun - least == pytest.approx(3.841459 / 2, rel=1e-3)
    levels = np.unique(values)
    passed = [(values <= level).mean() for level in levels]
    assert found.misfit == pytest.approx(np.abs(found.probability(levels) - passed).max())


def test_half_of_equal_samples_have_passed_in_the_middle_of_the_step():
    found = median_crossing([3.0] * 5, 0.5)
    none, every = proportion(0, 5), proportion(5, 5)
    assert (found.estimate, found.count) == (2.75, 5)
    assert found.low == pytest.approx(np.interp(0.5, [none.high, every.high], [2.5, 3.0]))
    assert found.high == pytest.approx(np.interp(0.5, [none.low, every.low], [2.5, 3.0]))
    alone = median_crossing([3.0], 1.0)
    assert (alone.estimate, alone.count) == (2.5, 1)
    assert math.isnan(alone.low)
    assert math.isnan(alone.high)
    assert median_crossing([5.0, 3.0, 4.0, 3.0], 1.0) == median_crossing([3.0, 3.0, 4.0, 5.0], 1.0)
