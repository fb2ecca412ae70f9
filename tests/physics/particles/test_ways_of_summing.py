"""Which kernels sum the forces of which system, on which grid, and what each of their parts returns."""

import naive
import numpy as np
import pytest

import physics
from physics import ParticleSystem
from physics.particles import convolution
from physics.particles import system as particles

RNG = np.random.default_rng(0)


# -- which way is taken -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dim", "softening", "apart"),
    [(2, 1e-3, False), (2, 9.9e-4, True), (2, 0.0, True), (1, 0.1, True), (3, 0.1, True)],
)
def test_classes_are_told_apart_where_a_difference_would_lose_digits(dim, softening, apart):
    assert ParticleSystem(5, dim, softening=softening)._law().apart is apart


@pytest.mark.parametrize("normalise", [True, False])
def test_a_large_system_takes_the_same_steps(monkeypatch, normalise):
    system = ParticleSystem(6, normalise=normalise)
    x = 2 + RNG.standard_normal((3, 6, 2))
    expected, found = x.copy(), x.copy()
    system.advance(expected, 0.05, 3)
    monkeypatch.setattr(particles, "FAST_ABOVE", 0)
    system.advance(found, 0.05, 3)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_adaptive_steps_take_forces_as_exact_as_they_need():
    law = {"softening": 0.5, "alignment": 0.0, "normalise": False, "integrator": "adaptive"}
    x = np.random.default_rng(1).standard_normal((260, 2))
    system = ParticleSystem(260, **law, relative_tolerance=1e-8)
    expected = system.forces(x, method="direct")
    found, rough = system.velocity(x), ParticleSystem(260, **law).velocity(x)
    bound = 1e-10 * np.abs(expected).max()
    assert 0 < np.abs(found - expected).max() < bound < np.abs(rough - expected).max()


# -- grids --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(500, 375), (375, 500), (125, 135)])
def test_a_grid_of_odd_size_sums_too(shape):
    """On grids with an odd number of rows or columns, and as long as they are wide or not."""
    extent, tolerance = {500: ([3, 2], 1e-6), 375: ([2, 3], 1e-6), 125: ([0.05, 0.2], 1e-4)}[shape[0]]
    points = RNG.random((2, 50))
    points -= points.min(axis=1, keepdims=True)
    points *= np.array(extent)[:, None] / points.max(axis=1, keepdims=True)
    plan = convolution.plan(np.array(extent, float), 0.1, tolerance)
    assert plan.shape == shape
    apart = points[:, :, None] - points[:, None]
    expected = (apart / ((apart**2).sum(axis=0) + 0.01)).sum(axis=2)
    found = convolution.repulsion(points, 0.1, plan)
    # The tolerance is of the largest push, 1/(2 ε), and of the number of pushes.
    assert np.abs(found - expected).max() <= tolerance * np.abs(expected).max()
    shifted = convolution.repulsion(points + np.array([[7.0], [-9.0]]), 0.1, plan)
    np.testing.assert_allclose(shifted, found, atol=1e-9)


# -- parts of the direct sum ----------------------------------------------------------------------------


@pytest.mark.parametrize("softening", [0.1, 0.0])
def test_the_potential_of_more_pair_sums_than_its_tasks_take_at_once(softening):
    """19 tokens have 190 pair sums: 24 groups of 8 rows, the last not full, for 16 tasks."""
    x = RNG.standard_normal((2, 19, 2))
    system = ParticleSystem(19, softening=softening)
    expected = [naive.clustering_potential(one, softening=softening) for one in x]
    np.testing.assert_allclose(system.potential(x), expected, rtol=1e-11)


# -- structures, adaptive steps ---------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_a_single_pair_sum_is_an_imperfection_and_no_point_set_has_none(dim):
    x = RNG.standard_normal((4, 5, dim))
    assert physics.grid_imperfections(x, pairs=[(3, 1)]).tolist() == [1] * 4
    assert physics.grid_imperfections(x[0], pairs=[(0, 1), (2, 4)]) == 0, "both of class 1"
    assert physics.grid_imperfections(x[0], pairs=[(0, 1), (2, 3)]) == 2
    for call_ in (physics.grid_imperfections, physics.circle_ratio, physics.is_circle):
        assert call_(x[:0]).shape == (0,)
