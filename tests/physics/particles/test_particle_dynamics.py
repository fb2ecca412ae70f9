import naive
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import physics
from physics import InputError, ParticleSystem, SimulationError
from physics.particles import motion

smooth = {"alignment": 0.0}


def random_positions(tokens, dim=2, seed=0):
    return np.random.default_rng(seed).standard_normal((tokens, dim))


def exact_flow(system, start, time):
    """SciPy's flow of the velocity, from a normalized start where the system normalizes."""
    start = naive.normalised(start) if system.normalise else start
    solution = solve_ivp(
        lambda _, x: system.velocity(x.reshape(1, *start.shape)).ravel(),
        (0, time),
        start.ravel(),
        method="DOP853",
        rtol=1e-12,
        atol=1e-12,
    )
    return solution.y[:, -1].reshape(start.shape)


def slope(x, y):
    return np.polyfit(np.log(x), np.log(y), 1)[0]


# -- steps and flows -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_without_normalisation_a_step_is_eulers(dim):
    x = random_positions(6, dim, seed=5)
    trajectory = physics.simulate(ParticleSystem(6, dim, normalise=False), steps=3, step_size=0.05, initial=x)
    for k in range(3):
        x = x + 0.05 * naive.forces(x)
        np.testing.assert_allclose(trajectory.positions[0, k + 1], x, rtol=0, atol=1e-11)


@pytest.mark.parametrize("normalise", [True, False])
def test_euler_steps_converge_to_the_flow_with_order_1(normalise):
    system = ParticleSystem(7, **smooth, normalise=normalise)
    start = naive.normalised(random_positions(7))
    exact = exact_flow(system, start, 0.1)
    steps = np.array([20, 40, 80, 160])
    errors = [
        np.abs(physics.simulate(system, steps=n, step_size=0.1 / n, initial=start).final[0] - exact).max()
        for n in steps
    ]
    assert slope(0.1 / steps, errors) == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize("dim", [2, 3])
def test_the_adaptive_integrator_follows_the_flow_to_its_tolerance(normalise, dim):
    errors = []
    for tolerance in (1e-4, 1e-6, 1e-8):
        system = ParticleSystem(
            7, dim, **smooth, normalise=normalise, integrator="adaptive", relative_tolerance=tolerance
        )
        start = random_positions(7, dim, seed=2)
        trajectory = physics.simulate(system, steps=4, step_size=0.25, initial=start, record=2)
        np.testing.assert_array_equal(trajectory.times, [0.0, 0.5, 1.0])
        np.testing.assert_array_equal(trajectory.initial[0], start)
        errors.append(np.abs(trajectory.final[0] - exact_flow(system, start, 1.0)).max())
        assert errors[-1] < 100 * tolerance
    assert errors[2] < errors[0] / 100


def test_the_adaptive_pair_is_of_order_5():
    evaluations, errors = [], []
    for tolerance in 10.0 ** -np.arange(4, 11):
        calls = []

        def turn(x, calls=calls):  # the harmonic oscillator
            calls.append(1)
            return np.stack([x[:, 1], -x[:, 0]], axis=1)

        state = np.array([[1.0, 0.0]])
        motion.integrate(turn, state, 20.0, tolerance)
        evaluations.append(len(calls))
        errors.append(np.abs(state - [[np.cos(20), -np.sin(20)]]).max())
    assert slope(evaluations, errors) == pytest.approx(-5.0, abs=0.5)


@pytest.mark.parametrize(("width", "tolerance"), [(0.1, 1e-5), (0.01, 1e-7)])
def test_a_step_into_a_sudden_pulse_is_taken_again(width, tolerance):
    """Steps have grown on the plain before the pulse, whose area is known, and must shrink in it."""

    def velocity(x):
        return np.stack([width / ((x[:, 1] - 1.0) ** 2 + width**2), np.ones(len(x))], axis=1)

    state = np.array([[10.0, 0.0]])
    motion.integrate(velocity, state, 2.0, tolerance)
    assert state[0, 0] == pytest.approx(10.0 + 2.0 * np.arctan(1.0 / width), rel=2.0 * tolerance)


def test_the_constrained_flow_keeps_mean_and_variance():
    x = random_positions(7, 3, seed=1)[None]
    velocity = ParticleSystem(7, 3).velocity(x)
    centered = x - x.mean(axis=1, keepdims=True)
    assert np.abs(velocity.mean(axis=1)).max() < 1e-13
    assert np.abs((centered * velocity).sum(axis=1)).max() < 1e-11
    # It is what a normalized step does, per unit of a small step size, to a normalized state.
    x = naive.normalised(x[0])
    small = naive.normalised(x + 1e-7 * naive.forces(x)) - x
    np.testing.assert_allclose(small / 1e-7, ParticleSystem(7, 3).velocity(x[None])[0], atol=2e-5)


@pytest.mark.parametrize("normalise", [True, False])
def test_adaptive_runs_do_not_depend_on_their_company_and_resume_to_the_same_bits(
    normalise, tmp_path, monkeypatch
):
    system = ParticleSystem(5, normalise=normalise, integrator="adaptive", relative_tolerance=1e-3)
    options = {"seed": 4, "record": 3, "observables": ("potential", "circle_ratio")}
    ensemble = physics.simulate(system, steps=12, runs=3, **options)
    alone = physics.simulate(system, steps=12, first_run=2, **options)
    np.testing.assert_array_equal(alone.positions[0], ensemble.positions[2])
    np.testing.assert_array_equal(alone.observables["potential"][0], ensemble.observables["potential"][2])

    advance, frames = ParticleSystem.advance, []

    def interrupted(self, *given):
        frames.append(1)
        if len(frames) == 3:
            raise KeyboardInterrupt
        advance(self, *given)

    out = tmp_path / "run.h5"
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(ParticleSystem, "advance", interrupted)
        physics.simulate(system, steps=12, runs=3, **options, out=out)
    assert physics.load(f"{out}.partial").frames == 3
    resumed = physics.simulate(system, steps=12, runs=3, **options, out=out, resume=True)
    np.testing.assert_array_equal(resumed.positions, ensemble.positions)
    for name, values in ensemble.observables.items():
        np.testing.assert_array_equal(resumed.observables[name], values)


def test_where_the_flow_slides_along_a_jump_the_integrator_gives_up(monkeypatch):
    monkeypatch.setattr(motion, "MAX_STEPS", 50)
    system = ParticleSystem(integrator="adaptive", relative_tolerance=1e-8)
    with pytest.raises(SimulationError) as error:
        physics.simulate(system, steps=100, step_size=0.1)
    assert "run 0 needs more than 50 adaptive steps" in str(error.value)
    assert "raise relative_tolerance; the frames up to step" in str(error.value)
    recorded = error.value.recorded
    assert 1 <= recorded.frames < 101
    assert not recorded.complete


# -- observables -----------------------------------------------------------------------------------------


def test_observables_are_recorded_on_request(tmp_path):
    system = ParticleSystem(6, 3, modulus=4, attraction=0.7, repulsion=1.3, softening=0.3)
    names = ("circle_ratio", "grid_imperfections", "mean_force", "potential")
    out = tmp_path / "run.h5"
    trajectory = physics.simulate(system, runs=2, steps=4, record=2, observables=names, out=out)
    assert trajectory.parameters["observables"] == list(names)
    assert set(trajectory.observables) == set(names)

    def rule(i, j):
        return (i + j) % 4

    constants = {"attraction": 0.7, "repulsion": 1.3, "softening": 0.3, "rule": rule}
    for run, frame in np.ndindex(2, 3):
        x = trajectory.positions[run, frame]
        norms = np.linalg.norm(x, axis=1)
        expected = {
            "circle_ratio": norms.max() / norms.min(),
            "grid_imperfections": naive.grid_imperfections(x, rule=rule),
            "mean_force": np.linalg.norm(naive.forces(x, **constants), axis=1).mean(),
            "potential": naive.clustering_potential(x, **constants),
        }
        for name, value in expected.items():
            assert trajectory.observables[name][run, frame] == pytest.approx(value, rel=1e-10)
    assert not physics.simulate(system, steps=1).observables


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("softening", [0.0, 1e-30, 0.1])
def test_the_potential_at_any_scale(scale, softening):
    for tokens in (3, 9, 14):
        x = scale * random_positions(tokens, seed=tokens)
        system = ParticleSystem(tokens, softening=softening)
        expected = naive.clustering_potential(x, softening=softening)
        assert system.potential(x[None])[0] == pytest.approx(expected, rel=1e-11)


def test_the_potential_falls_along_the_flow_that_it_drives():
    system = ParticleSystem(9, **smooth, normalise=False, integrator="adaptive")
    potential = physics.simulate(system, steps=20, runs=3, observables=["potential"]).observables["potential"]
    assert (np.diff(potential, axis=1) < 0).all()


# -- states and steps that lead nowhere ------------------------------------------------------------------


@pytest.mark.parametrize("place", [(0.1, 0.3), (-7.7, 1e-5), (1e6, 0.0)])
def test_particles_that_all_coincide_are_not_blown_up_from_rounding(place):
    start = np.tile(place, (17, 1))
    assert not physics.simulate(steps=3, initial=start).final.any()
    free = physics.simulate(ParticleSystem(normalise=False), steps=3, initial=start).final[0]
    assert np.ptp(free, axis=0).max() <= 1e-11 * np.abs(free).max()


@pytest.mark.filterwarnings("ignore:steps of size")  # without softening, pairs jump over each other
@pytest.mark.parametrize("softening", [0.1, 0.0])
def test_some_particles_that_coincide_do_not_push_each_other(softening):
    start = random_positions(10)
    start[5:] = start[:5]
    system = ParticleSystem(10, softening=softening)
    expected = naive.forces(start, softening=softening)
    np.testing.assert_allclose(physics.forces(start, system), expected, rtol=0, atol=1e-10)
    assert np.isfinite(physics.simulate(system, steps=5, initial=start).positions).all()


def test_an_explosion_names_its_step_and_a_size_and_keeps_what_was_recorded(tmp_path):
    # Same-class pair sums push each other away at once: without normalization nothing holds them.
    system = ParticleSystem(5, attraction=-1.0, softening=0.0, normalise=False)
    start = random_positions(5)
    options = {"steps": 50, "step_size": 1e308, "initial": start, "record": 10}
    with pytest.raises(SimulationError) as error:
        physics.simulate(system, **options)
    sentence = str(error.value)
    assert sentence.startswith("the state overflowed in step 1; try a step_size below ")
    assert sentence.endswith(
        "; the frames up to step 0 are kept in memory (attribute `recorded` of this error)"
    )
    np.testing.assert_array_equal(error.value.recorded.final[0], start)
    suggested = float(sentence.split("below ")[1].split(" or ")[0])
    moved = physics.simulate(system, steps=1, step_size=suggested, initial=start).final[0]
    assert np.abs(moved - start).max() <= 0.11 * np.abs(start).max()
    with pytest.raises(SimulationError, match=r"run\.h5\.partial"):
        physics.simulate(system, **options, out=tmp_path / "run.h5")
    kept = physics.load(tmp_path / "run.h5.partial")
    np.testing.assert_array_equal(kept.final[0], start)
    assert not kept.complete


def test_a_normalised_step_that_overflows_does_not_collapse_in_silence():
    with pytest.raises(SimulationError, match="overflowed in step 1; try a step_size below"):
        physics.simulate(steps=5, step_size=1e200)
    for system in (ParticleSystem(7, 3), ParticleSystem(30)):
        with pytest.raises(SimulationError, match="overflowed in step 1; try a step_size below"):
            physics.simulate(system, steps=5, step_size=1e200)


@pytest.mark.parametrize("options", [{}, {"normalise": False}, {"integrator": "adaptive"}, {"dim": 3}])
def test_a_state_too_large_for_its_squares_overflows_and_is_not_taken_for_zero(options):
    system = ParticleSystem(5, **options)
    with pytest.raises(SimulationError, match="overflowed in step 1"):
        physics.simulate(system, initial=1e200 * random_positions(5, system.dim))
    with pytest.raises(InputError, match="positions must be at most 1e\\+150 in size, got 2"):
        physics.forces(2e200 * np.ones((5, system.dim)), system)


def test_every_frame_after_the_first_has_zero_mean_and_unit_variance():
    final = physics.simulate(ParticleSystem(9, 3), steps=5, runs=3).positions[:, 1:]
    np.testing.assert_allclose(final.mean(axis=2), 0, atol=1e-14)
    np.testing.assert_allclose(final.std(axis=2), 1, atol=1e-14)
