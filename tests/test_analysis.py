import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso
from sklearn.utils.estimator_checks import parametrize_with_checks

import analysis
import physics
from analysis.comparison import aligned
from analysis.statistics import Interval
from physics import InputError, Trajectory


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
    np.testing.assert_allclose(analysis.fourier_signals(E, kind="square"), np.square(expected), rtol=1e-12)


@given(st.integers(3, 20), st.integers(1, 5), st.integers(0, 1000))
@settings(max_examples=50, deadline=None)
def test_signals_obey_parseval(p, d, seed):
    E = embedding(p, d, seed)
    squares = analysis.fourier_signals(E, kind="square")
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
        assert relabelled[min(to, 11 - to) - 1] == pytest.approx(signals[k - 1])


def test_survivors_by_both_rules():
    E = np.concatenate([ring(11, 2), ring(11, 5, 0.7), 0.01 * embedding(11)], axis=1)
    assert analysis.surviving_frequencies(E).tolist() == [2, 5]
    signals = analysis.fourier_signals(E)
    np.testing.assert_array_equal(analysis.survives(signals), [False, True, False, False, True])
    assert analysis.surviving_frequencies(E, threshold=6.0).tolist() == [2]
    assert analysis.surviving_frequencies(E, factor=4).tolist() == []
    batch = np.stack([E, E[::-1]])
    assert analysis.survives(analysis.fourier_signals(batch)).shape == (2, 5)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: analysis.fourier_signals(np.zeros(3)), "E must have the shape (..., tokens, dim), got (3,)"),
        (
            lambda: analysis.fourier_signals(embedding(), kind="x"),
            "kind must be one of 'norm', 'square', got 'x'",
        ),
        (
            lambda: analysis.surviving_frequencies(np.zeros((2, 5, 3))),
            "E must be one embedding (p, d), got the shape (2, 5, 3); see survives",
        ),
        (lambda: analysis.survives([1.0], factor=0), "factor must be a finite number greater than 0, got 0"),
        (
            lambda: analysis.fourier_signals(np.full((5, 2), np.nan)),
            "E must be finite, got 10 NaN or infinite of 10 values",
        ),
    ],
)
def test_signals_refuse_bad_input(call, sentence):
    with pytest.raises(InputError) as error:
        call()
    assert str(error.value) == sentence


# -- linear ODEs --------------------------------------------------------------------------------------------


@parametrize_with_checks(
    [analysis.LinearODERegressor(), analysis.LinearODERegressor(penalty=None)],
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
    runs = [analysis.affine_rollout(A, b, rng.standard_normal(4), 30) for _ in range(3)]
    fit = analysis.fit_trajectories(runs, penalty=None)
    np.testing.assert_allclose(fit.A, A, atol=1e-10)
    np.testing.assert_allclose(fit.b, b, atol=1e-10)
    assert fit.transitions == 90
    assert fit.r2_in_sample == pytest.approx(1)
    assert fit.r2_rollout == pytest.approx(1)
    other = analysis.affine_rollout(A, b, rng.standard_normal(4), 50)
    assert fit.score(other) == pytest.approx({"derivative": 1.0, "rollout": 1.0})


def test_no_derivative_is_taken_across_a_join():
    """The published code appends first differences of joined trajectories, and so invents some."""
    A, b, _ = stable_system()
    near = analysis.affine_rollout(A, b, np.ones(4), 20)
    far = analysis.affine_rollout(A, b, -100 * np.ones(4), 20)
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
    assert fit.regressor.converged_.all()


def test_targets_that_have_not_converged_are_named():
    real = physics.load(_real_data())
    signals = real.observables["fourier_signals"][0]
    with pytest.warns(ConvergenceWarning, match="of 29 targets have not converged in 1000 sweeps: 0, 1"):
        fit = analysis.fit_trajectories(signals, max_iter=1000)
    assert 5 < np.count_nonzero(~fit.regressor.converged_) < 29


def test_the_papers_recipe_on_the_real_trajectory_flatters():
    signals = physics.load(_real_data()).observables["fourier_signals"][0].astype(float)
    least_squares = analysis.fit_trajectories(signals, penalty=None)
    lasso = analysis.fit_trajectories(signals)
    assert least_squares.r2_in_sample > 0.99
    assert 0.7 < lasso.r2_in_sample < least_squares.r2_in_sample
    assert lasso.regressor.converged_.all()
    assert np.mean(lasso.A != 0) < 0.25
    early = analysis.fit_trajectories(signals[:501], penalty=None)
    assert early.score(signals[500:])["derivative"] < 0


def test_an_unstable_rollout_is_reported_as_overflow():
    x = np.cumsum(np.random.default_rng(0).standard_normal((30, 2)), axis=0)
    fit = analysis.fit_trajectories(x, penalty=None)
    fit.A[:] = 1e200 * np.eye(2)
    assert fit.score(x)["rollout"] == -np.inf


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda f: f(np.zeros(5)), "signals must have the shape (frames, K) or (runs, frames, K), got (5,)"),
        (lambda f: f(np.zeros((1, 3))), "trajectory 0 must have at least 2 frames, got 1"),
        (lambda f: f(np.full((5, 2), np.nan)), "signals must be finite, got 10 NaN or infinite of 10 values"),
        (
            lambda f: f(np.zeros((3, 2)), [0, 2, 2]),
            "times of trajectory 0 must increase, got 2 followed by 2",
        ),
        (
            lambda f: f(np.zeros((3, 2)), [0, 2, 1]),
            "times of trajectory 0 must increase, got 2 followed by 1",
        ),
        (
            lambda f: f(np.zeros((3, 2)), [0, 1]),
            "times of trajectory 0 must have 3 entries, got the shape (2,)",
        ),
        (
            lambda f: f(np.zeros((3, 2)), [0, 1, 3]),
            "an increment map needs frames that are equally far apart, got spacings from 1 to 2",
        ),
        (
            lambda f: f([np.zeros((3, 2)), np.zeros((3, 2))], [[0, 1, 2], [0, 2, 4]]),
            "an increment map needs one spacing for all trajectories, got [1.0, 2.0]",
        ),
        (
            lambda f: f([np.zeros((3, 2)), np.zeros((3, 4))]),
            "signals must agree in the number of components, got [2, 4]",
        ),
        (
            lambda f: f([np.zeros((3, 2)), np.zeros((3, 2))], [[0, 1, 2]]),
            "times must be given once or for each of 2 trajectories, got 1",
        ),
        (lambda f: f(np.zeros((3, 2)), kind="x"), "kind must be one of 'increment', 'generator', got 'x'"),
        (lambda f: f(np.zeros((3, 2)), penalty="x"), "penalty must be 'lasso' or None, got 'x'"),
    ],
)
def test_fits_refuse_bad_input(call, sentence):
    with pytest.raises(InputError) as error:
        call(analysis.fit_trajectories)
    assert str(error.value).startswith(sentence)


def test_solutions_refuse_shapes_that_do_not_fit():
    with pytest.raises(InputError, match="A, b and x0 must have the shapes"):
        analysis.affine_solution(np.eye(2), np.zeros(3), np.zeros(2), [0.0])
    with pytest.raises(InputError, match="times of an increment map must be whole numbers"):
        analysis.fit_trajectories(embedding(), penalty=None).predict(np.zeros(4), [0.5])


# -- statistics ---------------------------------------------------------------------------------------------


def test_intervals_have_their_coverage():
    """Of 2000 experiments with a known truth, about 95 % of the intervals hold it."""
    rng = np.random.default_rng(0)
    held = {"proportion": 0, "mean": 0, "correlation": 0}
    for _ in range(2000):
        held["proportion"] += analysis.proportion(rng.binomial(100, 0.17), 100).covers(0.17)
        held["mean"] += analysis.mean(rng.normal(3, 2, 12)).covers(3)
        x = rng.standard_normal(40)
        held["correlation"] += analysis.correlation(x, 0.6 * x + 0.8 * rng.standard_normal(40)).covers(0.6)
    for name, count in held.items():
        assert 0.93 < count / 2000 < 0.97, name


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


# -- comparison ---------------------------------------------------------------------------------------------


def ensemble(final, initial=None):
    final = np.asarray(final, float)
    start = np.random.default_rng(5).standard_normal(final.shape) if initial is None else initial
    return Trajectory(np.stack([start, final], axis=1), [0, 1])


def test_disparity_equals_scipys_over_all_relabellings():
    rng = np.random.default_rng(0)
    for tokens in (5, 6):
        first, second = rng.standard_normal((2, tokens, 2)), rng.standard_normal((3, tokens, 2))
        disparity, _ = analysis.procrustes_disparity(first, second)
        expected = [[naive.procrustes_disparity(a, b) for b in second] for a in first]
        np.testing.assert_allclose(disparity, expected, atol=1e-12)


def test_the_same_shape_in_another_guise_is_found_and_aligned():
    shape = embedding(7, 2)
    turn = np.linalg.qr(embedding(2, 2, 3))[0]
    guise = 3.0 * shape[(2 * np.arange(7) + 5) % 7] @ turn + 1.5
    disparity, relabelling = analysis.procrustes_disparity([shape], [guise])
    assert disparity[0, 0] < 1e-12
    assert relabelling[0, 0].tolist() == [2, 5]
    np.testing.assert_allclose(aligned(shape, guise, relabelling[0, 0]), guise, atol=1e-12)


def test_shapes_of_different_dimension_are_comparable():
    flat = embedding(5, 2)
    raised = np.pad(flat, ((0, 0), (0, 1)))
    assert analysis.procrustes_disparity([flat], [raised])[0][0, 0] < 1e-12


def test_compare():
    rng = np.random.default_rng(0)
    circles = [ring(7, k) for k in (1, 2, 3)]
    noise = list(rng.standard_normal((5, 7, 2)))
    comparison = analysis.compare(ensemble(circles + noise), [ensemble(circles[:1]), ensemble(noise[:2])])
    assert comparison.simulated.circles.estimate == pytest.approx(3 / 8)
    assert comparison.trained.circles.estimate == pytest.approx(1 / 3)
    assert comparison.circle_difference.covers(3 / 8 - 1 / 3)
    assert comparison.simulated.imperfections[4] == naive.grid_imperfections(noise[1])
    assert comparison.shapes.disparity.shape == (8, 3)
    np.testing.assert_allclose(comparison.shapes.nearest, 0, atol=1e-12)
    assert (comparison.shapes.nearest_start > 0.05).all()
    assert (comparison.shapes.nearest_trained > 0.01).all()
    test = comparison.imperfections_test
    ours, theirs = comparison.simulated.imperfections[3:], comparison.trained.imperfections[1:]
    wins = np.mean([(a > b) + 0.5 * (a == b) for a in ours for b in theirs])
    assert test.superiority == pytest.approx(wins)
    assert 0 < test.p_value <= 1


def test_compare_where_all_are_circles_or_alone():
    comparison = analysis.compare(ensemble([ring(7, 1)]), ensemble([ring(7, 2)]))
    assert np.isnan(comparison.imperfections_test.p_value)
    assert np.isnan(comparison.simulated.grid_imperfections.estimate)
    assert np.isnan(comparison.shapes.nearest_trained).all()


@pytest.mark.parametrize(
    ("first", "second", "sentence"),
    [
        (
            np.zeros((1, 5, 2)),
            np.zeros((1, 7, 2)),
            "simulated and trained must have the same number of tokens, got 5 and 7",
        ),
        (np.full((1, 5, 2), np.nan), np.ones((1, 5, 2)), "the final state of simulated must be finite"),
        (np.ones((1, 5, 2)), embedding(5, 2)[None], "first must not hold a shape whose tokens all coincide"),
    ],
)
def test_compare_refuses_bad_input(first, second, sentence):
    with pytest.raises(InputError) as error:
        analysis.compare(ensemble(first), ensemble(second))
    assert str(error.value).startswith(sentence)


def test_ensembles_of_files_must_agree():
    with pytest.raises(
        InputError, match=r"trained must agree in tokens and dimensions, got \[\(5, 2\), \(7, 2\)\]"
    ):
        analysis.compare(ensemble([ring(5, 1)]), [ensemble([ring(5, 1)]), ensemble([ring(7, 1)])])
    with pytest.raises(InputError, match="simulated must be a Trajectory or a sequence of them"):
        analysis.compare([], ensemble([ring(5, 1)]))


def _real_data():
    from experiments.demo import embedded_trajectory

    return embedded_trajectory()
