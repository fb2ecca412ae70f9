"""The parts of a system of particles that decide how exactly it is computed, each from its definition."""

import naive
import numpy as np
import pytest
from scipy.integrate import RK45

import physics
from physics import ParticleSystem
from physics.particles import adaptive, convolution

X = np.random.default_rng(0).standard_normal((2, 5, 2))


def followed(velocity, state, duration, tolerance):
    """Follow one state stage by stage, with SciPy's coefficients; return it, and the sizes of the steps."""
    slope, left, tried = velocity(state), duration, []
    step = 0.01 * np.abs(state).max() / np.abs(slope).max()
    while left > 0:
        step = min(step, left)
        tried.append(step)
        slopes = [slope]
        for row in [*RK45.A[1:], RK45.B]:  # the solution is the last stage
            moved = state + step * sum(a * k for a, k in zip(row, slopes, strict=False))
            slopes.append(velocity(moved))
        error = np.abs(step * sum(e * k for e, k in zip(RK45.E, slopes, strict=True))).max()
        error /= tolerance * max(np.abs(state).max(), np.abs(moved).max())
        if error <= 1:
            state, slope, left = moved, slopes[-1], left - step
        step *= min(max(0.9 * error**-0.2, 0.2), 5.0)
    return state, np.array(tried)


@pytest.mark.parametrize("tolerance", [1e-3, 1e-7])
def test_every_adaptive_step_has_the_size_of_the_rule(tolerance):
    """The first ones grow fivefold; where the rate turns hundredfold, steps are refused and shrink."""
    seen = []

    def velocity(x):
        seen.append(x.ravel().copy())
        return np.stack([np.ones_like(x[..., 0]), -60 * np.tanh(9 * (x[..., 0] - 1)) * x[..., 1]], axis=-1)

    start = np.array([1e-6, 2.0])
    expected, tried = followed(velocity, start, 1.4, tolerance)
    by_rule, found = seen.copy(), start[None].copy()
    seen.clear()
    adaptive.integrate(velocity, found, 1.4, tolerance)
    assert (tried[1:] / tried[:-1]).max() == pytest.approx(5)
    assert (tried[1:] / tried[:-1]).min() < 0.5
    np.testing.assert_allclose(seen, by_rule, rtol=1e-7)
    np.testing.assert_allclose(found[0], expected, rtol=1e-7)


@pytest.mark.parametrize("normalise", [True, False])
def test_an_adaptive_flow_goes_from_a_normalised_state_to_a_normalised_one(monkeypatch, normalise):
    def integrate(velocity, states, duration, tolerance):
        asked.append((velocity, states.copy(), duration, tolerance))
        states += np.array([0.5, 2.0])  # a drift
        states *= 3

    asked = []
    monkeypatch.setattr("physics.particles.system.integrate", integrate)
    system = ParticleSystem(5, integrator="adaptive", normalise=normalise, relative_tolerance=1e-3)
    moved = 3 * X + 1
    system.advance(moved, 0.125, 3)
    ((velocity, begun, duration, tolerance),) = asked
    assert (velocity, duration, tolerance) == (system.velocity, 0.375, 1e-3)
    expected = (np.stack([naive.normalised(x) for x in 3 * X + 1]), 3 * (3 * X + 1 + [0.5, 2.0]))
    if normalise:
        np.testing.assert_allclose(begun, expected[0], rtol=0, atol=1e-13)
        np.testing.assert_allclose(moved, expected[0], rtol=0, atol=1e-13)
    else:
        np.testing.assert_array_equal(begun, 3 * X + 1)
        np.testing.assert_array_equal(moved, expected[1])


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ({}, ("auto", 1e-6)),
        ({"tolerance": 0.5}, ("auto", 1e-2)),
        ({"method": "fast", "tolerance": 1e-10}, ("fast", 1e-10)),
        ({"tolerance": 9e-11}, ("direct", 9e-11)),
        ({"method": "direct", "tolerance": 1e-3}, ("direct", 1e-3)),
    ],
)
def test_forces_are_summed_as_asked_and_exactly_where_no_grid_is_sharp_enough(monkeypatch, given, used):
    seen = []

    def forces(system, positions, *, method, tolerance):
        seen.append((positions.shape, method, tolerance))
        return 2 * positions

    monkeypatch.setattr(ParticleSystem, "forces", forces)
    for x in (X, X[0]):
        np.testing.assert_array_equal(physics.forces(x, ParticleSystem(5), **given), 2 * x)
    assert seen == [((2, 5, 2), *used), ((1, 5, 2), *used)]


@pytest.mark.parametrize(("relative", "used"), [(1e-2, 1e-6), (1e-4, 1e-6), (1e-5, 1e-7), (1e-12, 1e-10)])
def test_forces_of_the_flow_are_a_hundred_times_as_exact_as_its_steps(monkeypatch, relative, used):
    seen = []

    def forces(system, positions, *, tolerance):
        seen.append(tolerance)
        return np.zeros_like(positions)

    monkeypatch.setattr(ParticleSystem, "forces", forces)
    ParticleSystem(5, integrator="adaptive", relative_tolerance=relative).velocity(X)
    assert seen == pytest.approx([used], rel=1e-12)


def test_a_grid_is_taken_where_it_costs_less_than_all_pairs():
    """The direct sum has P²/2 pairs; cells and points of the grid cost as measured, in the same unit."""
    chosen = convolution.plan(2.0 * np.ptp(X[0], axis=0), 0.1, 1e-6)
    rows, columns = chosen.shape
    assert chosen.cells == rows * columns
    cells = convolution.CELL_COST * rows * columns
    # P²/2 = cells + 4000 P
    even = convolution.POINT_COST + np.sqrt(convolution.POINT_COST**2 + 2 * cells)
    for pairs, grid in ((int(even) - 1, None), (int(even) + 1, chosen), (None, chosen)):
        assert convolution.plans(X[:1], 0.1, 1e-6, pairs) == [grid]
    assert convolution.plans(X, 0.1, 1e-6) == [chosen, convolution.plan(2 * np.ptp(X[1], axis=0), 0.1, 1e-6)]


def test_a_grid_may_have_as_many_cells_as_memory_is_set_aside_for(monkeypatch):
    chosen = convolution.plan(np.array([3.0, 2.0]), 0.1, 1e-6)
    monkeypatch.setattr(convolution, "MEMORY", chosen.cells)
    assert convolution.plan(np.array([3.0, 2.0]), 0.1, 1e-6) == chosen
    monkeypatch.setattr(convolution, "MEMORY", chosen.cells - 1)
    assert convolution.plan(np.array([3.0, 2.0]), 0.1, 1e-6) is None


def test_a_moving_system_keeps_its_grid_until_it_has_grown_by_an_eighth_of_an_octave():
    grids = {convolution.plan(np.array([e, 1.0]), 0.1, 1e-6) for e in np.geomspace(2.001, 2 * 2**0.99, 400)}
    assert len(grids) == 8
    flat = convolution.plan(np.array([3.0, 0.0]), 0.1, 1e-6)  # an extent counts as the softening at least
    assert flat == convolution.plan(np.array([3.0, 0.1]), 0.1, 1e-6)
