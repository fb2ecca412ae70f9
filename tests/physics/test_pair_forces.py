"""Forces of one's own between tokens and between pair sums: sums, symmetries, and what is refused."""

import math

import naive
import numba
import numpy as np
import pytest

import physics
from physics import PairForces, SimulationError


def lennard_jones(r2, depth, radius):
    ratio = (radius * radius / r2) ** 3
    return depth * (2 * ratio * ratio - ratio) / r2


@numba.njit
def clustering(r2, same_class, attraction, repulsion, softening):
    r2 += softening**2
    if same_class:
        return -attraction / math.sqrt(r2)
    return repulsion / r2


def plus(modulus):
    return lambda i, j: (i + j) % modulus


def points(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.parametrize(("tokens", "dim"), [(2, 1), (5, 2), (9, 3), (4, 7)])
def test_forces_between_tokens_are_the_naive_sum(tokens, dim):
    system = PairForces(lennard_jones, tokens, dim, parameters=[0.3, 1.2])
    x = points(3, tokens, dim)
    for found, run in zip(system.forces(x), x, strict=True):
        np.testing.assert_allclose(found, naive.pair_forces(run, lennard_jones, (0.3, 1.2)), rtol=1e-11)
        np.testing.assert_array_equal(system.forces(run), found)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({}, plus(6)),
        ({"modulus": 4}, plus(4)),
        ({"group": physics.theory.direct_product(physics.cyclic(2), physics.cyclic(3))},
         lambda i, j: ((i // 3 + j // 3) % 2, (i % 3 + j % 3) % 3)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_forces_between_pair_sums_are_the_naive_sum(dim, options, rule):
    system = PairForces(clustering, 6, dim, on="pair sums", parameters=(1.5, 0.7, 0.1), **options)
    x = points(2, 6, dim)
    for found, run in zip(system.forces(x), x, strict=True):
        expected = naive.pair_forces(run, clustering.py_func, (1.5, 0.7, 0.1), on="pair sums", rule=rule)
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"dim": 3},
        {"modulus": 4},
        {"group": physics.theory.direct_product(physics.cyclic(2), physics.cyclic(4))},
    ],
)
def test_the_clustering_terms_of_the_paper_are_such_forces(options):
    particles = physics.ParticleSystem(8, alignment=0.0, attraction=1.3, repulsion=0.4, **options)
    same, diff = particles.weights
    classes = {name: options[name] for name in ("modulus", "group") if name in options}
    system = PairForces(
        clustering, 8, particles.dim, on="pair sums", parameters=(1.3 * same, 0.4 * diff, 0.1), **classes
    )
    x = points(4, 8, particles.dim)
    expected = physics.forces(x, particles)
    np.testing.assert_allclose(system.forces(x), expected, rtol=1e-12, atol=1e-13 * np.abs(expected).max())


def test_forces_conserve_momentum_and_angular_momentum():
    for system in (
        PairForces(lennard_jones, 7, 3, parameters=[1.0, 1.0]),
        PairForces(clustering, 7, 3, on="pair sums", parameters=(1.0, 1.0, 0.1)),
    ):
        x = points(2, 7, 3)
        forces = system.forces(x)
        size = np.abs(forces).sum()
        assert np.abs(forces.sum(axis=1)).max() < 1e-14 * size
        assert np.abs(np.cross(x, forces).sum(axis=1)).max() < 1e-13 * size


@pytest.mark.usefixtures("all_threads")
def test_the_bits_do_not_depend_on_threads_or_on_other_runs():
    system = PairForces(clustering, 7, 2, on="pair sums", parameters=(1.0, 1.0, 0.1))
    x = points(5, 7, 2)
    together = system.forces(x)
    np.testing.assert_array_equal(together, [system.forces(run) for run in x])
    numba.set_num_threads(1)
    np.testing.assert_array_equal(together, system.forces(x))


def test_points_at_one_place_feel_nothing_of_each_other():
    system = PairForces(lennard_jones, 3, 2, parameters=[1.0, 1.0])
    found = system.forces([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    np.testing.assert_array_equal(found, [[-1.0, 0.0], [-1.0, 0.0], [2.0, 0.0]])


def test_a_pole_of_the_function_is_infinite_and_no_exception():
    system = PairForces(numba.njit(pole), 2, 1)
    assert np.isinf(system.forces([[0.0], [1.0]])).all()
    with pytest.raises(SimulationError, match="the state overflowed in step 1"):
        physics.simulate(system, steps=2, initial=[[0.0], [1.0]])


def pole(r2):
    return 1.0 / (r2 - 1.0)


def harmonic(r2):
    return -1.0


def test_steps_are_plain_euler_steps_and_adaptive_ones_follow_the_flow():
    x = points(4, 5, 2)
    centered = x - x.mean(axis=1, keepdims=True)
    euler = physics.simulate(PairForces(harmonic, 5, 2), initial=x, runs=4, steps=10)
    adaptive = PairForces(harmonic, 5, 2, integrator="adaptive", relative_tolerance=1e-10)
    np.testing.assert_allclose(euler.final - x + centered, centered * (1 - 5 * 0.02) ** 10, rtol=1e-10)
    for every in (1, 5, 10):
        exact = physics.simulate(adaptive, initial=x, runs=4, steps=10, record=every)
        np.testing.assert_allclose(exact.final - x + centered, centered * np.exp(-5 * 0.2), rtol=1e-8)
