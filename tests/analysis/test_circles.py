import numpy as np
import pytest

import analysis
from physics import InputError, Trajectory, example

RATES = (0.8, 1.1, 0.9)


def rotating(runs=3, frames=12, p=7, steps=None):
    """Runs whose circles shrink and grow at known rates a step, and their signals."""
    angle = 2 * np.pi * np.arange(p)[:, None] / p
    steps = np.arange(frames) if steps is None else np.asarray(steps)
    sizes = [(1 + np.arange(runs))[:, None] * np.array(rate) ** steps for rate in RATES]
    circles = [np.concatenate([np.cos(k * angle), np.sin(k * angle)], axis=1) for k in (1, 2, 3)]
    E = [size[..., None, None] * circle for size, circle in zip(sizes, circles, strict=True)]
    return Trajectory(np.concatenate(E, axis=3), steps), np.stack(sizes, axis=2) * p / 2**0.5


def test_circles_of_a_trajectory():
    trajectory, signals = rotating(frames=30)
    circles = analysis.circles_of(trajectory)
    np.testing.assert_allclose(circles.signals, signals, atol=1e-12)
    assert circles.survived.values.tolist() == [[False, True, False]] * 3
    gradient = analysis.circles.signal_gradient(circles.signals)
    np.testing.assert_allclose(gradient, signals[:, 4] - signals[:, 3], atol=1e-12)
    window = analysis.circles_of(trajectory, 5, 9)
    assert window.step.values.tolist() == [5, 6, 7, 8, 9]
    np.testing.assert_allclose(window.signals, signals[:, 5:10], atol=1e-12)
    np.testing.assert_array_equal(window.survived, circles.survived)
    alone = analysis.fourier_signals(trajectory).isel(run=2, step=-1)
    assert alone.frequency[analysis.survives(alone)].values.tolist() == [2]


def test_a_gradient_is_of_a_step_whatever_was_recorded():
    trajectory, signals = rotating(steps=[0, 2, 6, 7])
    found = analysis.circles_of(trajectory).signals
    for at in (3, 6):
        gradient = analysis.circles.signal_gradient(found, at)
        np.testing.assert_allclose(gradient, (signals[:, 2] - signals[:, 1]) / 4, atol=1e-12)
    with pytest.raises(InputError, match="at must be at most 7, got 8"):
        analysis.circles.signal_gradient(found, 8)


def test_survivors_obey_the_limit_that_is_given():
    """Signals at the end are as 1 to 3 of one frequency: all, one or none of them exceed a limit."""
    trajectory, signals = rotating(frames=3)
    last = signals[:, -1]
    for limits, alive in (
        ({"factor": 0.5}, last > 0.5 * last.mean(axis=1, keepdims=True)),
        ({"factor": 1.2}, last > 1.2 * last.mean(axis=1, keepdims=True)),
        ({"threshold": 10.0}, last > 10.0),
    ):
        assert analysis.circles_of(trajectory, **limits).survived.values.tolist() == alive.tolist()
        assert (analysis.circles_of(trajectory).survived.values != alive).any()
    whole = analysis.survives(trajectory)  # of its signals, not of its positions
    np.testing.assert_array_equal(whole[:, -1], analysis.circles_of(trajectory).survived)


def test_signals_that_were_recorded_are_taken_and_those_of_later_embeddings_follow():
    real = example("ding")
    circles = analysis.circles_of(real)
    np.testing.assert_array_equal(circles.signals[:, :1001], real.observables["fourier_signals"][:, :1001])
    np.testing.assert_array_equal(circles.step[1001:], real.steps[real.steps > 1000])
    np.testing.assert_allclose(circles.signals[:, -1], analysis.fourier_signals(real.final), rtol=1e-6)
    assert circles.frequency[circles.survived[0]].values.tolist() == [7, 8, 11, 13, 25]


def test_a_law_is_fitted_to_a_trajectory_and_predicts_all_runs_at_once():
    trajectory, signals = rotating(steps=np.arange(0, 36, 3))
    fit, expected = (
        analysis.fit_trajectories(*data, kind="generator", penalty=None)
        for data in ((trajectory,), (signals, trajectory.steps))
    )
    np.testing.assert_allclose(fit.A, expected.A, atol=1e-12)
    starts = analysis.fourier_signals(trajectory)[:, 0]
    together = fit.predict(starts, trajectory.steps)
    np.testing.assert_array_equal(together[1], fit.predict(starts[1], trajectory.steps))


def test_a_batch_is_fitted_and_scored_as_honest_scores_do():
    trajectory, _ = rotating()
    recipe = analysis.Recipe(penalty=None, kind="generator")
    runs = list(analysis.fourier_signals(trajectory).values)
    found = analysis.fit_batch(analysis.fourier_signals(trajectory), recipe)
    expected = analysis.honest_scores(recipe.fit, runs, [trajectory.steps] * 3)
    assert found.in_sample == expected.in_sample
    assert found.across == expected.across
    assert found.law.missed == []
    np.testing.assert_allclose(np.diag(found.law.A), np.log(RATES), rtol=0.01)


def test_trajectories_are_cut_to_the_window_and_pooled():
    trajectory, signals = rotating(frames=30)
    recipe = analysis.Recipe(alpha=1e-3)
    found = analysis.fit_batch([trajectory, trajectory.run(0)], recipe, last=9)
    assert len(found.across) == 4
    assert found.law.transitions == 4 * 9
    one = analysis.fit_trajectories(
        [*signals[:, :10], signals[0, :10]], penalty="lasso", alpha=1e-3, kind="increment"
    )
    np.testing.assert_allclose(found.law.A, one.A, atol=1e-9)


def test_targets_that_do_not_converge_are_named_and_not_warned_of():
    found = analysis.fit_batch(example("ding"), analysis.Recipe(alpha=1e-6, max_iter=1), last=100)
    assert found.law.missed == [int(k) + 1 for k in np.flatnonzero(~found.law.converged)]
    assert found.law.missed


def test_intervals_of_a_batch_are_those_of_its_trajectories():
    trajectory, signals = rotating(frames=9)
    recipe = analysis.Recipe(alpha=1e-3)
    found = recipe.resample(trajectory, 20, seed=3)
    times = [trajectory.steps] * 3
    expected = analysis.laws.resample_coefficients(list(signals), times, alpha=1e-3, resamples=20, seed=3)
    np.testing.assert_allclose(found.A_low, expected.A_low, atol=1e-9)
    with pytest.raises(InputError, match="resamples"):
        analysis.Recipe("mean-field").resample(trajectory, 20)
