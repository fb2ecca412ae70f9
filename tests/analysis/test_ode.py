"""Linear laws: fits, maps and generators, and rollouts."""

import math

import naive
import numpy as np
import pytest
from numpy.polynomial.chebyshev import chebvander
from scipy.integrate import solve_ivp
from scipy.linalg import expm
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet, Lasso
from sklearn.utils.estimator_checks import parametrize_with_checks

import analysis
import nets
import physics
from analysis.laws.lasso import Moments, solve
from analysis.laws.ode import fit_trajectories
from analysis.laws.scores import Law
from physics import InputError
from physics.examples import example_path


@parametrize_with_checks(
    [
        analysis.LinearODERegressor(),
        analysis.LinearODERegressor(penalty=None),
        analysis.LinearODERegressor("elastic-net"),
        analysis.MeanFieldRegressor(),
    ]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)


def stable_system(size=4, seed=0):
    rng = np.random.default_rng(seed)
    A = 0.1 * rng.standard_normal((size, size)) - 0.1 * np.eye(size)
    return A, rng.standard_normal(size), rng


def test_a_known_increment_map_is_recovered_from_several_runs():
    A, b, rng = stable_system()
    runs = [analysis.laws.affine_rollout(A, b, rng.standard_normal(4), 30) for _ in range(3)]
    fit = analysis.fit_trajectories(runs, penalty=None)
    np.testing.assert_allclose(fit.A, A, atol=1e-10)
    np.testing.assert_allclose(fit.b, b, atol=1e-10)
    assert fit.transitions == 90
    assert fit.r2_in_sample == pytest.approx(1)
    assert fit.r2_rollout == pytest.approx(1)
    other = fit.score(analysis.laws.affine_rollout(A, b, rng.standard_normal(4), 50))
    assert (other.derivative, other.rollout, other.reached) == pytest.approx((1, 1, 1))
    assert other.relative_error < 1e-9


def test_no_derivative_is_taken_across_a_join():
    """The published code appends first differences of joined trajectories, and so invents some."""
    A, b, _ = stable_system()
    near = analysis.laws.affine_rollout(A, b, np.ones(4), 20)
    far = analysis.laws.affine_rollout(A, b, -100 * np.ones(4), 20)
    joined = analysis.fit_trajectories(np.concatenate([near, far]), penalty=None)
    apart = analysis.fit_trajectories([near, far], penalty=None)
    np.testing.assert_allclose(apart.A, A, atol=1e-9)
    assert np.abs(joined.A - A).max() > 0.01
    assert (joined.transitions, apart.transitions) == (41, 40)


def test_the_increment_map_and_the_generator_are_different_objects():
    A, b, _ = stable_system()
    t = np.arange(0.0, 20.0)
    x = analysis.affine_solution(A, b, np.ones(4), t)
    increment = analysis.fit_trajectories(x, t, kind="increment", penalty=None)
    from scipy.linalg import expm

    np.testing.assert_allclose(increment.A, expm(A) - np.eye(4), atol=1e-7)
    errors = []
    for step in (0.2, 0.1):
        fine = np.arange(0, 20, step)
        fit = analysis.fit_trajectories(
            analysis.affine_solution(A, b, np.ones(4), fine), fine, kind="generator", penalty=None
        )
        errors.append(np.abs(fit.A - A).max())
    assert errors[0] < 1e-3
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.05), "second order in the spacing"


def test_a_generator_from_uneven_times():
    A, b, rng = stable_system()
    t = np.cumsum(rng.uniform(0.01, 0.05, 800))
    fit = analysis.fit_trajectories(
        analysis.affine_solution(A, b, np.ones(4), t - t[0]), t, kind="generator", penalty=None
    )
    np.testing.assert_allclose(fit.A, A, atol=1e-4)
    np.testing.assert_allclose(
        fit.predict(np.ones(4), [0.0, 3.0]), analysis.affine_solution(A, b, np.ones(4), [0, 3]), atol=1e-3
    )


def test_the_exact_solution_against_an_integrator_singular_matrices_included():
    rng = np.random.default_rng(2)
    singular = rng.standard_normal((4, 2)) @ rng.standard_normal((2, 4)) / 4
    nilpotent = np.diag(np.ones(3), 1)
    t = np.linspace(0, 3, 7)
    for A in (singular, nilpotent, np.zeros((4, 4)), rng.standard_normal((4, 4)) / 2):
        b, x0 = rng.standard_normal(4), rng.standard_normal(4)
        oracle = solve_ivp(
            lambda _, x, A=A, b=b: A @ x + b, (0, 3), x0, t_eval=t, rtol=1e-12, atol=1e-13, method="DOP853"
        )
        np.testing.assert_allclose(analysis.affine_solution(A, b, x0, t), oracle.y.T, atol=1e-9)


def test_lasso_is_scikit_learns_converged():
    rng = np.random.default_rng(0)
    x = np.cumsum(rng.standard_normal((300, 6)), axis=0)
    fit = analysis.fit_trajectories(x, alpha=0.05, tol=1e-10)
    model = Lasso(alpha=0.05, max_iter=10**6, tol=1e-10).fit(x[:-1], np.diff(x, axis=0))
    np.testing.assert_allclose(fit.A, model.coef_, atol=1e-10)
    assert fit.converged.all()


def test_targets_that_have_not_converged_are_named():
    real = physics.load(example_path("ding"))
    signals = real.observables["fourier_signals"][0]
    with pytest.warns(ConvergenceWarning, match=r"of 29 targets have not converged in 2 sweeps: \d+, \d+"):
        fit = analysis.fit_trajectories(signals, max_iter=2)
    assert 2 < np.count_nonzero(~fit.converged) < 29


def test_the_papers_recipe_on_the_real_trajectory_flatters():
    signals = physics.load(example_path("ding")).observables["fourier_signals"][0].astype(float)
    least_squares = analysis.fit_trajectories(signals, penalty=None)
    lasso = analysis.fit_trajectories(signals)
    assert least_squares.r2_in_sample > 0.99
    assert 0.7 < lasso.r2_in_sample < least_squares.r2_in_sample
    assert lasso.converged.all()
    assert np.mean(lasso.A != 0) < 0.25
    early = analysis.fit_trajectories(signals[:501], penalty=None)
    assert early.score(signals[500:]).derivative < 0
    rates = np.diff(signals, axis=0)
    powers = chebvander(np.linspace(-1, 1, len(rates)), 29)  # as many coefficients as a row of A and b
    left = rates - powers @ np.linalg.lstsq(powers, rates, rcond=None)[0]
    assert 1 - np.var(left) / np.var(rates - rates.mean(axis=0)) == pytest.approx(0.995, abs=0.0005)


# -- penalties and their weights ----------------------------------------------------------------------------


def test_the_elastic_net_is_scikit_learns():
    rng = np.random.default_rng(0)
    x = np.cumsum(rng.standard_normal((200, 5)), axis=0)
    fit = analysis.fit_trajectories(x, penalty="elastic-net", alpha=0.3, l1_ratio=0.2)
    model = ElasticNet(alpha=0.3, l1_ratio=0.2, max_iter=10**6, tol=1e-12).fit(x[:-1], np.diff(x, axis=0))
    np.testing.assert_allclose(fit.A, model.coef_, atol=1e-9)


# -- the map and the generator ------------------------------------------------------------------------------


def test_maps_and_generators_convert_into_each_other():
    A, b, _ = stable_system()
    linear, shift = analysis.to_increment(A, b, 0.7)
    np.testing.assert_allclose(linear, expm(0.7 * A) - np.eye(4), atol=1e-12)
    x = analysis.affine_solution(A, b, np.ones(4), [0.7])[0]
    np.testing.assert_allclose(np.ones(4) + linear @ np.ones(4) + shift, x, atol=1e-12)
    back = analysis.to_generator(linear, shift, 0.7)
    np.testing.assert_allclose(back[0], A, atol=1e-10)
    np.testing.assert_allclose(back[1], b, atol=1e-10)
    nilpotent = np.diag(np.ones(3), 1)
    np.testing.assert_allclose(
        analysis.to_generator(nilpotent, b)[0], naive.matrix_log1p(nilpotent), atol=1e-12
    )


@pytest.mark.parametrize("value", [-1.0, -1.5])
def test_a_map_without_a_generator_is_refused(value):
    with pytest.raises(InputError, match=f"1 \\+ A with the eigenvalues {1 + value:.3g}, .* no real"):
        analysis.to_generator(np.diag([value, -0.5]), np.zeros(2))


def test_a_fit_converts_in_units_of_time():
    A, b, _ = stable_system()
    t = np.arange(0.0, 10, 0.5)
    fit = analysis.fit_trajectories(analysis.affine_solution(A, b, np.ones(4), t), t, penalty=None)
    assert fit.unit == 0.5
    np.testing.assert_allclose(fit.to_generator()[0], A, atol=1e-5)
    np.testing.assert_allclose(fit.to_increment(1.5)[0], expm(1.5 * A) - np.eye(4), atol=1e-5)
    with pytest.raises(InputError, match=r"must be a whole multiple of the map's step, 0\.5, got 0\.7"):
        fit.to_increment(0.7)


def test_who_helps_whom():
    A = np.array([[-1.0, 2, 0], [3, -1, -0.5], [0, 4, 9]])
    rows = analysis.laws.interactions(A)
    assert [(r["first"], r["second"], r["relation"]) for r in rows] == [
        (2, 3, "exploitation"),
        (1, 2, "collaboration"),
    ]
    assert (rows[0]["on_first"], rows[0]["on_second"]) == (-0.5, 4.0)
    assert analysis.laws.interactions([[0, -1.0], [0, 0]])[0]["relation"] == "competition"


A, B, START = np.array([[-0.4, 0.9], [-0.8, -0.1]]), np.array([0.3, -0.2]), np.array([1.0, 2.0])


def walk(*shape, rng=None):
    rng = rng or np.random.default_rng(14)
    return rng.standard_normal(shape).cumsum(axis=-2)


class Growth(Law):
    """The law dx = x of every component."""

    def __init__(self, kind, rate=1.0):
        self.kind, self.rate = kind, rate

    def changes(self, states):
        return self.rate * states


# -- clocks -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [np.arange(12) / 3, np.arange(12) / 7, 0.4 + 0.3 * np.arange(12)])
def test_a_map_of_any_step_goes_by_its_multiples(times):
    """A third has no finite decimals, and 0.7 - 0.4 is less than 0.3 in floating-point numbers."""
    path = analysis.affine_solution(A, B, START, times - times[0])
    fit = fit_trajectories(path, times, penalty=None)
    for frames in (1, 2, 7, 11):
        matrix, shift = fit.to_increment(times[frames] - times[0])
        np.testing.assert_allclose(START + matrix @ START + shift, path[frames], rtol=1e-6)
    step = times[1] - times[0]
    for wrong in (0.5 * step, 1.001 * step, 0.999 * step, 1e-12):
        with pytest.raises(InputError, match="step must be a whole multiple of the map's step"):
            fit.to_increment(wrong)
    for wrong, got in ((0, "0"), (-step, f"{-step:g}"), (math.nan, "nan"), (math.inf, "inf")):
        with pytest.raises(InputError, match=f"step must be a finite number greater than 0, got {got}"):
            fit.to_increment(wrong)


# -- rollouts and scores ----------------------------------------------------------------------------------


def test_a_score_is_over_all_frames_but_the_first_of_each_trajectory():
    runs = [walk(6, 2) + 5, walk(4, 2) - 3]
    law = Growth("increment", 0.1)
    found = law.score(runs)
    truth = np.concatenate([x[1:] for x in runs])
    rolled = np.concatenate([x[0] * 1.1 ** np.arange(1, len(x))[:, None] for x in runs])
    assert found.relative_error == pytest.approx(np.linalg.norm(rolled - truth) / np.linalg.norm(truth))
    spread = ((truth - truth.mean(axis=0)) ** 2).sum(axis=0)
    assert found.rollout == pytest.approx((1 - ((rolled - truth) ** 2).sum(axis=0) / spread).mean())
    changes = np.concatenate([np.diff(x, axis=0) for x in runs])
    told = np.concatenate([0.1 * x[:-1] for x in runs])
    spread = ((changes - changes.mean(axis=0)) ** 2).sum(axis=0)
    assert found.derivative == pytest.approx((1 - ((told - changes) ** 2).sum(axis=0) / spread).mean())
    assert found.reached == 1
    assert Growth("increment", 0.0).score(np.zeros((4, 2))).relative_error == 0


def test_the_linear_law_of_a_network_is_nearer_to_it_than_that_of_another():
    small = nets.EmbeddingMLP(11, 8, hidden=(16,))
    signals = analysis.fourier_signals(nets.train(small, runs=2, steps=100, record=1, observables=()))
    laws = [fit_trajectories(x, penalty=None) for x in signals]
    own, other = ([law.score(x).relative_error for law, x in zip(laws, xs, strict=True)]
                  for xs in (signals, signals[::-1]))  # fmt: skip
    assert max(own) < 0.5 * min(other)


# -- fits -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e-3, 1e-7, 1e-16, 1e-100, 1e12])
def test_least_squares_does_not_depend_on_units(size):
    x, units = walk(40, 3), np.array([1.0, size, 1.0])
    fit, scaled = fit_trajectories(x, penalty=None), fit_trajectories(x * units, penalty=None)
    np.testing.assert_allclose(scaled.A * units / units[:, None], fit.A, rtol=1e-9)
    np.testing.assert_allclose(scaled.b / units, fit.b, rtol=1e-9)
    assert scaled.r2_in_sample == pytest.approx(fit.r2_in_sample, rel=1e-12)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_convergence_does_not_depend_on_the_unit(unit):
    rng = np.random.default_rng(14)
    tied = rng.normal(size=(40, 1)) + 0.01 * rng.normal(size=(40, 3))
    target = unit * (tied @ [[1.0], [-2.0], [3.0]] + rng.normal(size=(40, 1)))
    one, many = (
        solve(Moments.of([(tied, target)]), np.array([[1e-4 * unit]]), max_iter=n) for n in (1, 10_000)
    )
    assert (one.converged.all(), many.converged.all()) == (False, True)
