import naive
import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pair_sums import numba_forces

import physics
from physics import ParticleSystem
from physics.particles import convolution
from physics.particles import direct as kernels
from physics.particles import system as particles


def random_positions(tokens, dim, seed=0, runs=None):
    shape = (tokens, dim) if runs is None else (runs, tokens, dim)
    return np.random.default_rng(seed).standard_normal(shape)


def agree(ours, reference, relative=1e-12):
    assert np.abs(ours - reference).max() <= relative * np.abs(reference).max()


@pytest.mark.parametrize("tokens", [3, 4, 7, 10])
@pytest.mark.parametrize("dim", [1, 2, 3, 5])
def test_forces_equal_the_naive_sum(tokens, dim):
    system = ParticleSystem(tokens, dim, attraction=0.7, repulsion=1.3, alignment=2.0, softening=0.2)
    x = random_positions(tokens, dim)
    agree(
        physics.forces(x, system),
        naive.forces(x, attraction=0.7, repulsion=1.3, alignment=2.0, softening=0.2),
    )


def configuration(shape, tokens, dim):
    rng = np.random.default_rng(1)
    angle = 2 * np.pi * np.arange(tokens) / tokens
    side = round(tokens ** (1 / dim) + 0.5)
    x = np.zeros((tokens, dim))
    if shape == "circle":
        x[:, :2] = np.stack([np.cos(angle), np.sin(angle)], axis=1)[:, :dim]
    elif shape == "grid":
        x[:] = np.stack(np.unravel_index(np.arange(tokens), (side,) * dim), axis=1) - 1
    elif shape == "cross":  # every pair of arms at a right angle: s·s' = 0 abounds
        x[np.arange(tokens), np.arange(tokens) % dim] = np.arange(tokens) - tokens // 2
    elif shape == "clustered":
        x[:] = rng.standard_normal((3, dim))[np.arange(tokens) % 3]
    elif shape == "crowded":  # all pair sums in nearly one direction, so that sorting by angle is work
        x[:] = 1.0 + 1e-3 * rng.standard_normal((tokens, dim))
    elif shape == "collapsing":
        x[:] = 1e-9 * rng.standard_normal((tokens, dim))
    elif shape == "tiny":
        x[:] = 1e-143 * rng.standard_normal((tokens, dim))
    else:
        x[:] = rng.uniform(-1.7, 1.7, (tokens, dim))
    return x


@pytest.mark.parametrize(
    "shape", ["uniform", "circle", "grid", "cross", "clustered", "crowded", "collapsing", "tiny"]
)
@pytest.mark.parametrize("softening", [0.1, 0.0])
@pytest.mark.parametrize("dim", [1, 2, 3, 5])
def test_forces_on_special_configurations(shape, softening, dim):
    for tokens in (9, 12) if dim == 2 else (9,):  # 45 and 78 pair sums: several tiles
        x = configuration(shape, tokens, dim)
        ours = physics.forces(x, ParticleSystem(tokens, dim, softening=softening))
        assert np.isfinite(ours).all()
        # On a symmetric state large terms cancel: the yardstick is then a force on a pair sum, not the rest.
        scale = max(9.0, np.abs(ours).max())
        assert np.abs(ours - naive.forces(x, softening=softening)).max() <= 1e-11 * scale


@pytest.mark.parametrize("shape", ["uniform", "circle", "grid", "cross", "clustered"])
@pytest.mark.parametrize("softening", [0.1, 0.0])
@pytest.mark.parametrize("dim", [2, 3])
def test_spread_over_the_cores_the_forces_have_the_same_bits(shape, softening, dim):
    x = configuration(shape, 56, dim)
    system = ParticleSystem(56, dim, softening=softening)
    assert particles.BY_ROW <= system.pair_count < particles.BY_ROW_ALWAYS
    by_row = physics.forces(x, system)
    by_run = physics.forces(np.stack([x] * numba.get_num_threads()), system)
    np.testing.assert_array_equal(by_run, np.stack([by_row] * len(by_run)))
    if softening:  # the reference has no answer where pair sums coincide without it
        error = np.abs(by_row - numba_forces(x[None], softening)[0]).max()
        assert error <= 1e-11 * max(9.0, np.abs(by_row).max())


@pytest.mark.parametrize("softening", [0.1, 0.0])
def test_pair_sums_of_different_chunks_meet(softening):
    """The direct sum takes 4096 pair sums at a time; 91 tokens have 4186."""
    system = ParticleSystem(91, softening=softening)
    assert system.pair_count > kernels.CHUNK
    x = random_positions(91, 2)
    agree(physics.forces(x, system, method="direct"), numba_forces(x[None], softening)[0], 1e-11)


@pytest.mark.parametrize("tasks", [1, 3, 4, 16])
def test_every_pair_is_pushed_once_however_the_work_is_cut(tasks, monkeypatch):
    x = random_positions(33, 2)
    expected = physics.forces(x, ParticleSystem(33))
    monkeypatch.setattr(particles, "_tasks", lambda pair_count: tasks)
    agree(physics.forces(x, ParticleSystem(33)), expected, 1e-12)


@pytest.mark.parametrize("shape", ["uniform", "clustered", "grid", "circle", "collapsing", "cross"])
@pytest.mark.parametrize("tolerance", [1e-3, 1e-7, 1e-10])
def test_the_fast_sum_honours_its_tolerance(shape, tolerance):
    for scale in (1.0, 1e-3) if shape == "uniform" else (1.0,):
        x = scale * configuration(shape, 60, 2)
        x[0] += 1e-3 * scale  # a symmetric state may have forces of zero, and nothing to be relative to
        for system in (ParticleSystem(60), ParticleSystem(60, alignment=0.0, softening=0.3)):
            exact = physics.forces(x, system, method="direct")
            error = np.abs(physics.forces(x, system, method="fast", tolerance=tolerance) - exact).max()
            assert error <= tolerance * np.abs(exact).max()


def test_the_fast_sum_uses_the_grid():
    x = configuration("uniform", 60, 2)
    exact = physics.forces(x, ParticleSystem(60), method="direct")
    error = np.abs(physics.forces(x, ParticleSystem(60), method="fast", tolerance=1e-3) - exact).max()
    assert error > 1e-13 * np.abs(exact).max()


def test_where_no_grid_will_do_the_fast_sum_is_direct(monkeypatch):
    for x in (1e-9 * random_positions(20, 2), 1e5 * random_positions(20, 2), np.zeros((20, 2))):
        exact = physics.forces(x, ParticleSystem(20), method="direct")
        np.testing.assert_array_equal(physics.forces(x, ParticleSystem(20), method="fast"), exact)
    monkeypatch.setattr(convolution, "MEMORY", 1000)  # too few cells for any
    x = random_positions(20, 2)
    exact = physics.forces(x, ParticleSystem(20), method="direct")
    np.testing.assert_array_equal(physics.forces(x, ParticleSystem(20), method="fast"), exact)


def test_all_particles_at_the_origin_feel_nothing():
    for softening in (0.1, 0.0):
        assert not physics.forces(np.zeros((5, 2)), ParticleSystem(5, softening=softening)).any()


@pytest.mark.parametrize("runs", [1, 7, 8, 19])
def test_a_run_has_the_same_bits_in_every_lane(runs):
    x = random_positions(17, 2, runs=runs)
    system = ParticleSystem()
    assert system.pair_count < particles.LANES_BELOW
    together = physics.simulate(system, steps=5, initial=x).final
    for k in range(runs):
        np.testing.assert_array_equal(physics.simulate(system, steps=5, initial=x[k]).final[0], together[k])


@pytest.mark.parametrize("shape", ["uniform", "circle", "grid", "cross", "clustered", "collapsing", "tiny"])
@pytest.mark.parametrize("alignment", [1.0, 0.0])
def test_eight_runs_side_by_side_feel_what_one_alone_does(shape, alignment, monkeypatch):
    x = configuration(shape, 13, 2)
    system = ParticleSystem(13, alignment=alignment, pairs=naive.pairs(13)[3:])
    side_by_side = physics.forces(x, system)
    moved = physics.simulate(system, steps=1, initial=x).final
    monkeypatch.setattr(particles, "LANES_BELOW", 0)
    alone = physics.forces(x, system)
    assert np.abs(side_by_side - alone).max() <= 1e-11 * max(9.0, np.abs(alone).max())
    np.testing.assert_allclose(moved, physics.simulate(system, steps=1, initial=x).final, rtol=0, atol=1e-6)


def test_without_alignment_the_force_is_the_gradient_of_a_potential():
    system = ParticleSystem(5, 3, attraction=0.8, repulsion=1.1, alignment=0.0, softening=0.3)
    x = random_positions(5, 3, seed=3)
    constants = {"attraction": 0.8, "repulsion": 1.1, "softening": 0.3}
    h = 1e-5
    gradient = np.empty_like(x)
    for index in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[index] = h
        up, down = (naive.clustering_potential(x + sign * step, **constants) for sign in (1, -1))
        gradient[index] = (up - down) / (2 * h)
    agree(physics.forces(x, system), -gradient, 1e-7)


@given(st.integers(3, 8), st.integers(1, 4), st.integers(0, 1000))
@settings(max_examples=25, deadline=None)
def test_clustering_conserves_the_centre(tokens, dim, seed):
    force = physics.forces(random_positions(tokens, dim, seed), ParticleSystem(tokens, dim, alignment=0.0))
    assert np.abs(force.sum(axis=0)).max() <= 1e-11 * max(1.0, np.abs(force).max())


@given(st.integers(2, 4), st.integers(0, 1000))
@settings(max_examples=25, deadline=None)
def test_forces_turn_with_the_particles(dim, seed):
    system = ParticleSystem(7, dim)
    x = random_positions(7, dim, seed)
    turn = np.linalg.qr(random_positions(dim, dim, seed + 1))[0]
    agree(physics.forces(x @ turn, system), physics.forces(x, system) @ turn, 1e-10)


@given(st.integers(1, 6), st.integers(0, 6), st.integers(0, 1000))
@settings(max_examples=25, deadline=None)
def test_relabelling_by_an_automorphism_permutes_the_forces(unit, shift, seed):
    order = (unit * np.arange(7) + shift) % 7
    x = random_positions(7, 2, seed)
    system = ParticleSystem(7)
    agree(physics.forces(x[order], system), physics.forces(x, system)[order], 1e-10)


def test_a_relabelling_that_breaks_the_classes_changes_the_forces():
    x = random_positions(7, 2)
    order = [1, 0, 2, 3, 4, 5, 6]
    system = ParticleSystem(7)
    assert np.abs(physics.forces(x[order], system) - physics.forces(x, system)[order]).max() > 0.1


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_a_step_is_the_normalised_euler_step(dim):
    x = random_positions(6, dim, seed=5)
    trajectory = physics.simulate(ParticleSystem(6, dim), steps=3, step_size=0.05, initial=x)
    for k in range(3):
        x = naive.normalised(x + 0.05 * naive.forces(x))
        np.testing.assert_allclose(trajectory.positions[0, k + 1], x, rtol=0, atol=1e-10)


@pytest.mark.parametrize("dim", [2, 3])
def test_a_small_spread_far_from_the_origin_is_no_coincidence(dim):
    x = 1.0 + 1e-9 * random_positions(7, dim)
    trajectory = physics.simulate(ParticleSystem(7, dim), steps=1, initial=x)
    np.testing.assert_allclose(trajectory.final[0].std(axis=0), 1, rtol=1e-5)


def test_the_same_bits_for_any_number_of_threads(all_threads):
    large = 80
    assert ParticleSystem(large).pair_count >= particles.BY_ROW
    assert ParticleSystem().pair_count < particles.LANES_BELOW
    results = []
    for threads in sorted({1, all_threads}):
        numba.set_num_threads(threads)
        results.append(
            [
                physics.simulate(runs=5, steps=7).positions,
                physics.simulate(ParticleSystem(large), steps=2).positions,
                physics.simulate(ParticleSystem(large, 3), steps=2).positions,
            ]
        )
    for result in results:
        for ours, first in zip(result, results[0], strict=True):
            np.testing.assert_array_equal(ours, first)
