"""Options of laws that only scripts pass, and the smallest samples that determine a law."""

import math
import warnings

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.optimize import least_squares
from sklearn.model_selection import TimeSeriesSplit

import analysis
from analysis.laws.flow import augmented
from analysis.laws.honest import HonestScores
from analysis.laws.lasso import Moments, path, solve
from analysis.laws.matching import _by_blocks
from analysis.laws.ode import ODEFit
from analysis.laws.regressors import LinearODERegressor
from analysis.laws.scores import Score
from physics import InputError

A, B, START = np.array([[-0.4, 0.9], [-0.8, -0.1]]), np.array([0.3, -0.2]), np.array([1.0, 2.0])


def walk(frames, size, seed=0):
    return np.random.default_rng(seed).standard_normal((frames, size)).cumsum(axis=0)


@pytest.mark.parametrize("penalty", ["lasso", "elastic-net"])
def test_a_resample_without_a_weight_is_one_without_a_penalty(penalty):
    x = walk(60, 3)
    found = analysis.laws.resample_coefficients(x, penalty=penalty, alpha=0, resamples=20, seed=2)
    plain = analysis.laws.resample_coefficients(x, penalty=None, resamples=20, seed=2)
    for name in ("A_low", "A_high", "b_low", "b_high", "inclusion"):
        np.testing.assert_array_equal(getattr(found, name), getattr(plain, name))


def test_the_median_of_scores_is_unknown_where_one_of_them_is():
    scores = [Score(0.0, value, 0.0, 1.0, 0.0) for value in (1.0, 5.0, 2.0, math.nan)]
    assert HonestScores(None, scores[0], None, tuple(scores[:3])).median("rollout") == 2.0
    assert math.isnan(HonestScores(None, scores[0], None, tuple(scores)).median("rollout"))


def test_cross_validation_of_one_trajectory_has_as_many_folds_of_later_rows_as_asked_for():
    x = walk(40, 3, seed=5)
    states, changes = x[:-1], np.diff(x, axis=0)
    candidates = path(Moments.of([(states, changes)]), 1.0)
    found = []
    for cv in (3, 5, 8):
        cost = np.zeros_like(candidates)
        for kept, left in TimeSeriesSplit(cv).split(states):
            fit = solve(Moments.of([(states[kept], changes[kept])]), candidates, l1_ratio=1.0)
            told = np.einsum("nk,tak->nta", states[left], fit.coef[0]) + fit.intercept[0]
            cost += ((told - changes[left][:, :, None]) ** 2).sum(axis=0)
        regressor = LinearODERegressor("lasso", "cv", cv=cv).fit(states, changes)
        np.testing.assert_allclose(regressor.alpha_, candidates[np.arange(3), cost.argmin(axis=1)])
        found.append(regressor.alpha_.tolist())
    assert found[0] != found[1], "the number of folds matters"


@pytest.mark.parametrize(
    ("unit", "step", "times"), [(0.1, 0.3, 3), (0.1, 0.7, 7), (0.3, 0.3, 1), (5.0, 10, 2)]
)
def test_whole_multiples_of_a_step_may_be_rounded(unit, step, times):
    law = ODEFit("increment", A, B, unit, np.zeros(2), np.ones(2, bool), 1.0, 1.0, 9)
    matrix, shift = law.to_increment(step)
    path = analysis.laws.affine_rollout(A, B, START, times)
    np.testing.assert_allclose(START + matrix @ START + shift, path[-1], rtol=1e-12)
    for wrong in (step + 1e-6 * unit, step - 0.5 * unit):
        with pytest.raises(InputError, match=r"^step must be a whole multiple of the map's step"):
            law.to_increment(wrong)


@pytest.mark.parametrize("targets", [1, 2, 5])
def test_the_targets_of_a_mean_field_law_are_the_first_components(targets):
    rng = np.random.default_rng(4)
    x = rng.uniform(1.0, 3.0, size=(50, 5))
    change = rng.standard_normal((50, targets))
    fit = analysis.MeanFieldRegressor([(1,), (0, 1), (2, 0, 1)]).fit(x, change)
    own, m1, m2 = x[:, :targets], x.mean(axis=1)[:, None], (x**2).mean(axis=1)[:, None]
    columns = np.stack([own, np.broadcast_to(m1, own.shape), own**2 * m2], axis=-1)
    wanted = np.linalg.lstsq(columns.reshape(-1, 3), change.ravel(), rcond=None)[0]
    np.testing.assert_allclose(fit.coef_, wanted, rtol=1e-9)
    np.testing.assert_allclose(fit.predict(x), columns @ wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("on_first", "on_second", "relation"),
    [
        (1, 0, "collaboration"), (0, 1, "collaboration"), (2, 1, "collaboration"), (-1, 0, "competition"),
        (0, -1, "competition"), (-1, -2, "competition"), (1, -1, "exploitation"), (-1, 1, "exploitation"),
    ],
)  # fmt: skip
def test_a_component_that_does_not_act_does_not_change_what_a_pair_is(on_first, on_second, relation):
    (row,) = analysis.laws.interactions([[7, on_first], [on_second, -7]])
    assert (row["on_first"], row["on_second"], row["relation"]) == (on_first, on_second, relation)


def test_the_strongest_pair_is_first_whoever_acts_on_whom():
    rows = analysis.laws.interactions([[0, 1, -2], [-5, 0, 3], [0, 4, 0]])
    assert [(row["first"], row["second"]) for row in rows] == [(1, 2), (2, 3), (1, 3)]


@pytest.mark.parametrize("kind", ["increment", "generator"])
def test_a_mode_that_neither_grows_nor_decays_is_not_stable(kind):
    for rate, stable in ((-1e-9, True), (0.0, False), (1e-9, False)):
        found = analysis.laws.stability([[-0.5, 0.0], [0.0, rate]], kind=kind)
        assert found.stable is stable
        assert found.growth[0] == pytest.approx(rate, rel=1e-6)


def test_a_law_without_coefficients_is_at_rest_everywhere():
    found = analysis.laws.fixed_points(np.zeros((2, 2)), np.zeros(2))
    assert found.point.tolist() == [0, 0]
    np.testing.assert_allclose(found.directions @ found.directions.T, np.eye(2), atol=1e-12)
    assert analysis.laws.fixed_points(np.zeros((2, 2)), [0, 1e-30]).point is None


# -- whole trajectories -------------------------------------------------------------------------------------


def test_as_many_values_as_unknowns_are_enough():
    times = np.array([0.0, 0.5, 1.5, 2.0])
    fit = analysis.laws.match_trajectories(analysis.affine_solution(A, B, START, times), times)
    np.testing.assert_allclose(fit.A, A, atol=1e-6)
    np.testing.assert_allclose(fit.b, B, atol=1e-6)
    with pytest.raises(InputError, match="at least as many values as unknowns, got 12 for 15"):
        analysis.laws.match_trajectories(walk(4, 3))


def test_components_are_weighed_by_their_noise():
    """The second round divides each residual by its size in the first."""
    rng = np.random.default_rng(6)
    times = np.linspace(0.0, 6.0, 25)
    x = analysis.affine_solution(A, B, START, times)
    x += rng.standard_normal(x.shape) * [1e-3, 0.4]
    theta = np.concatenate([A.ravel(), B, START])
    weights, rounds = 1 / x.std(axis=0), []

    def residuals(theta):
        path = analysis.affine_solution(theta[:4].reshape(2, 2), theta[4:6], theta[6:], times)
        return (path - x) * weights

    for _ in range(2):
        theta = least_squares(lambda one: residuals(one).ravel(), theta, xtol=1e-13, ftol=1e-13).x
        rounds.append(theta)
        weights = weights / np.sqrt((residuals(theta) ** 2).mean(axis=0))
    found = analysis.laws.match_trajectories(x, times)
    np.testing.assert_allclose(np.append(found.A.ravel(), found.b), rounds[1][:6], atol=2e-5)
    assert np.abs(rounds[1] - rounds[0])[:6].max() > 1e-2, "one round is not enough"


def test_a_component_that_does_not_vary_stays_where_it_is():
    times = np.linspace(0.0, 3.0, 9)
    x = np.stack([2 + np.exp(-times), np.full(9, 3.0)], axis=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit = analysis.laws.match_trajectories(x, times)
    assert any("do not determine" in str(one.message) for one in caught)
    np.testing.assert_allclose(fit.predict(x[0], times), x, atol=1e-6)


# -- what is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 3])
def test_interactions_have_a_name_for_each_component(count):
    matrix = [[0, 1], [-1, 0]]
    assert analysis.laws.interactions(matrix, ["a", "b"])[0]["second"] == "b"
    with pytest.raises(
        InputError, match=rf"^names must hold one name for each of 2 components, got {count}$"
    ):
        analysis.laws.interactions(matrix, "abc"[:count])


@pytest.mark.parametrize(("dims", "last"), [(3, 1), (4, 1), (5, 2), (1, 0)])
def test_planes_of_principal_components_are_numbered_from_0(dims, last):
    found = analysis.circles.principal_components(np.random.default_rng(7).normal(size=(9, dims)))
    assert 1 <= found.frequency(last) <= 4
    with pytest.raises(InputError, match=rf"^pair must be at most {last}, got {last + 1}$"):
        found.frequency(last + 1)
    with pytest.raises(InputError, match=r"^pair must be at least 0, got -1$"):
        found.frequency(-1)


def test_the_strongest_pair_is_first_whichever_sign_and_side_its_strongest_effect_has():
    rows = analysis.laws.interactions([[0, -6, 2], [1, 0, 3], [-7, -4, 0]])
    assert [(row["first"], row["second"]) for row in rows] == [(1, 3), (1, 2), (2, 3)]


def test_derivatives_by_a_matrix_that_may_be_defective_are_those_of_differences():
    M = augmented(np.array([[-0.5, 1.0], [0.0, -0.5]]), np.array([0.2, 0.1]))
    z0, times = np.array([1.0, 2.0, 1.0]), np.array([0.0, 0.7, 2.0])
    by_matrix, power = _by_blocks(M, z0, times)
    for n, time in enumerate(times):
        np.testing.assert_allclose(power[n], expm(time * M)[:2, :2], atol=1e-12)
        for row, column in np.ndindex(2, 3):
            step = np.zeros((3, 3))
            step[row, column] = 1e-5
            ends = [expm(time * one) @ z0 for one in (M + step, M - step)]
            np.testing.assert_allclose(
                by_matrix[n, :, row, column], (ends[0] - ends[1])[:2] / 2e-5, atol=1e-8
            )


def test_a_jacobian_of_more_than_a_gigabyte_is_refused():
    frames = 2**30 // (8 * 40 * (40 * 40 + 40 + 40)) + 1
    with pytest.raises(InputError, match="a Jacobian of at most 1 GiB, got 40 components and 79920 values"):
        analysis.laws.match_trajectories(np.zeros((frames, 40)))
