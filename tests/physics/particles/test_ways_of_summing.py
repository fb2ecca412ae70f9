"""Which kernels sum the forces of which system, on which grid, and what each of their parts returns."""

import naive
import numba
import numpy as np
import pytest

import physics
from physics import InputError, ParticleSystem, SimulationError
from physics.jit import address_of, call
from physics.particles import adaptive, alignment, convolution, pair_sums
from physics.particles import system as particles

RNG = np.random.default_rng(0)


# -- which way is taken -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tokens", "options", "runs", "way"),
    [
        (23, {}, 1, ("lanes", None)),  # 276 pair sums
        (24, {}, 1, ("runs", 1)),  # 300
        (23, {"dim": 3}, 1, ("runs", 1)),
        (23, {"softening": 1e-3}, 1, ("lanes", None)),
        (23, {"softening": 9.9e-4}, 1, ("runs", 1)),
        (54, {}, 1, ("runs", 1)),  # 1485
        (55, {}, 1, ("rows", 4)),  # 1540
        (55, {}, 2, ("rows", 4)),
        (55, {}, 3, ("runs", 4)),  # as many as threads
        (99, {}, 3, ("runs", 4)),  # 4950
        (100, {}, 3, ("runs", 16)),  # 5050
        (199, {}, 3, ("runs", 16)),  # 19900
        (200, {}, 3, ("rows", 16)),  # 20100
    ],
)
def test_who_sums_directly(monkeypatch, tokens, options, runs, way):
    taken = []
    monkeypatch.setattr("numba.get_num_threads", lambda: 3)
    monkeypatch.setattr(particles.lanes, "advance", lambda *_: taken.append(("lanes", None)))
    for name in ("runs", "rows"):
        note = lambda *given, name=name: taken.append((name, given[6]))  # noqa: E731
        monkeypatch.setattr(particles.kernels, f"advance_{name}", note)
    system = ParticleSystem(tokens, **options)
    system.forces(np.zeros((runs, tokens, system.dim)), method="direct")
    assert taken == [way]


def test_the_work_is_cut_by_the_number_of_pair_sums():
    cuts = {1: 1, 1499: 1, 1500: 4, 4999: 4, 5000: 16, 10**6: 16}
    assert {pairs: particles._tasks(pairs) for pairs in cuts} == cuts


@pytest.mark.parametrize(
    ("options", "method", "asked"),
    [
        ({}, "auto", [21]),
        ({}, "fast", [None]),
        ({}, "direct", []),
        ({"softening": 1e-3}, "auto", [21]),
        ({"softening": 9.9e-4}, "auto", []),
        ({"softening": 9.9e-4}, "fast", [None]),
        ({"dim": 3}, "auto", []),
        ({"pairs": [(0, 1), (2, 2), (0, 2), (1, 2), (3, 5)]}, "auto", []),
    ],
)
def test_a_grid_is_considered_for_large_soft_systems_in_the_plane(monkeypatch, options, method, asked):
    monkeypatch.setattr(particles, "FAST_ABOVE", 21)  # 6 tokens have 21 pair sums
    seen = []

    def plans(positions, softening, tolerance, pairs):
        seen.append((softening, tolerance, pairs))
        return [None] * len(positions)

    monkeypatch.setattr(particles.convolution, "plans", plans)
    system = ParticleSystem(6, **options)
    x = RNG.standard_normal((2, 6, system.dim))
    found = system.forces(x, method=method, tolerance=1e-5)
    assert seen == [(system.softening, 1e-5, pairs) for pairs in asked]
    np.testing.assert_array_equal(found, system.forces(x, method="direct"))
    seen.clear()
    system.advance(x, 0.01, 2)
    if method == "auto":
        assert seen == [(system.softening, 1e-6, pairs) for pairs in 2 * asked], "in every step"


@pytest.mark.parametrize(
    ("dim", "softening", "apart"),
    [(2, 1e-3, False), (2, 9.9e-4, True), (2, 0.0, True), (1, 0.1, True), (3, 0.1, True)],
)
def test_classes_are_told_apart_where_a_difference_would_lose_digits(dim, softening, apart):
    system = ParticleSystem(5, dim, attraction=2, repulsion=3, alignment=5, softening=softening)
    same, diff = system.weights
    assert system._law() == pytest.approx((2 * same, 3 * diff, 5 * same, 5 * diff, softening**2, apart))
    assert system._law().apart is apart


@pytest.mark.parametrize("normalise", [True, False])
def test_a_large_system_takes_the_same_steps(monkeypatch, normalise):
    system = ParticleSystem(6, normalise=normalise)
    x = 2 + RNG.standard_normal((3, 6, 2))
    expected, found = x.copy(), x.copy()
    system.advance(expected, 0.05, 3)
    monkeypatch.setattr(particles, "FAST_ABOVE", 0)
    system.advance(found, 0.05, 3)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_forces_of_whole_numbers_and_of_no_run_are_summed_and_of_another_system_are_refused():
    system = ParticleSystem(5)
    assert physics.forces(np.zeros((0, 5, 2)), system).shape == (0, 5, 2)
    whole = np.arange(10).reshape(1, 5, 2) ** 2
    np.testing.assert_array_equal(system.forces(whole), system.forces(whole.astype(float)))
    with pytest.raises(InputError, match="^system must be a ParticleSystem, got EffectiveTheory$"):
        physics.forces(np.zeros((5, 2)), physics.EffectiveTheory(5, 2))


def test_a_system_keeps_what_was_said_in_pythons_types():
    given = {
        "tokens": np.int64(5), "dim": np.int8(1), "attraction": np.float32(0.5), "repulsion": np.int16(2),
        "alignment": 3, "softening": np.float64(0.25), "modulus": np.uint8(4), "normalise": np.False_,
        "relative_tolerance": np.float64(0.01),
    }  # fmt: skip
    system = ParticleSystem(**given)
    kept = {name: getattr(system, name) for name in given}
    assert kept == given
    assert [type(value) for value in kept.values()] == [int] * 2 + [float] * 4 + [int, bool, float]
    assert ParticleSystem(group=physics.cyclic(4).table.tolist()).group == physics.cyclic(4)
    assert ParticleSystem(group=physics.cyclic(4)).modulus is None


# -- grids --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("extent", "softening", "tolerance", "wanted"),
    [
        ([3.0, 2.0], 0.1, 1e-6, (0.0182045588717166, 9, (500, 375), 2.1809403697831, 4.3618807395662)),
        ([0.05, 0.2], 0.1, 1e-4, (0.0225506827842438, 7, (125, 135), 1.9599157158881, 3.9198314317762)),
        ([40.0, 0.0], 0.3, 1e-9, (0.0387264284067608, 12, (2400, 270), 7.75708397142725, 5.17138931428483)),
    ],
)
def test_a_grid_stays_as_it_was_chosen(extent, softening, tolerance, wanted):
    """Another grid would change the last bits of every trajectory of a large system."""
    plan = convolution.plan(np.array(extent), softening, tolerance)
    found = (plan.spacing, plan.width, plan.shape, plan.taper, plan.sharpness)
    assert found[1:3] == wanted[1:3]
    np.testing.assert_allclose([found[0], *found[3:]], [wanted[0], *wanted[3:]], rtol=1e-12)


def test_no_grid_is_made_where_rounding_or_memory_would_not_do(monkeypatch):
    extent = np.array([4.0, 4.0])  # four softening lengths: the tolerance is what was asked
    assert convolution.plan(extent, 1.0, 1e-12) is not None
    assert convolution.plan(extent, 1.0, 0.99e-12) is None
    assert convolution.plan(extent / 2, 1.0, 4e-12) is not None, "half the extent, a quarter"
    assert convolution.plan(extent / 2, 1.0, 3.9e-12) is None
    monkeypatch.setattr(convolution, "MEMORY", 10**18)
    assert convolution.plan(np.array([0.99e6, 1.0]), 1.0, 1e-2) is not None
    assert convolution.plan(np.array([1e6, 1.0]), 1.0, 1e-2) is None
    assert convolution.plan(np.array([np.nan, 1.0]), 1.0, 1e-2) is None


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


def run(kernel, *arguments):
    """Call a kernel that only kernels call."""
    through(address_of(kernel, *arguments), arguments)


@numba.njit
def through(address, arguments):
    call(address, arguments)


@pytest.mark.parametrize("count", [1, 2, 3, 40, 257])
@pytest.mark.parametrize("kind", ["spread", "ties", "crowded", "falling", "ends", "infinite"])
def test_keys_are_sorted_and_equal_ones_by_their_index(kind, count):
    rng = np.random.default_rng(count)
    key = {
        "spread": 4 * rng.random(count),
        "ties": rng.integers(0, 5, count) * 1.0,
        "crowded": 2 + 1e-9 * rng.random(count),
        "falling": 1 - 1e-9 * np.arange(count),
        "ends": rng.choice([0.0, 4.0, np.nextafter(4.0, 0)], count),
        "infinite": np.where(rng.random(count) < 0.5, np.inf, 4 * rng.random(count)),
    }[kind]
    order, scratch = np.full(count, -1), np.empty(count, np.int64)
    merge = address_of(alignment.merge_sort, key, order, scratch)
    run(alignment.sort, key, order, merge)
    np.testing.assert_array_equal(order, np.argsort(key, kind="stable"))
    order = rng.permutation(count)
    run(alignment.merge_sort, key, order, scratch)
    np.testing.assert_array_equal(order, np.argsort(key, kind="stable"))


@pytest.mark.parametrize("longest", [1, 2, 3, 512])
@pytest.mark.parametrize(
    "options",
    [
        {"tokens": 12},
        {"tokens": 9, "modulus": 4},
        {"tokens": 7, "modulus": 100},
        {"tokens": 6, "pairs": [(0, 1), (2, 2), (0, 4), (1, 3), (5, 5), (2, 3)]},
        {"tokens": 6, "pairs": [(0, 0), (3, 3), (1, 2)]},  # one class of two, one of one
    ],
)
def test_every_two_pair_sums_of_a_class_meet_once_in_streams_of_any_length(monkeypatch, longest, options):
    monkeypatch.setattr(pair_sums, "STREAM", longest)
    pairs = ParticleSystem(**options)._layout
    met = [(a + c, b + c) for a, b, length in pairs.meetings for c in range(length)]
    slots = range(len(pairs.label))
    same = {(a, b) for a in slots for b in slots if a < b and pairs.label[a] == pairs.label[b]}
    assert len(met) == len(same)
    assert set(met) == same
    assert 1 <= pairs.meetings[:, 2].min() <= pairs.meetings[:, 2].max() <= longest
    assert not any(array.flags.writeable for array in pairs)


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


def test_the_integrator_counts_every_step_that_it_tries(monkeypatch):
    def turn(x):
        calls.append(len(x))
        return np.where(np.abs(x) > 0, 100 * np.stack([x[:, 1], -x[:, 0]], axis=1), 0.0)

    monkeypatch.setattr(adaptive, "MAX_STEPS", 3)
    calls, states = [], np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 1.0]])
    with pytest.raises(SimulationError) as error:
        adaptive.integrate(turn, states, 1.0, 1e-6)
    assert calls == [3] * 7 + [2] * 12, "runs that have arrived are not computed again"
    assert str(error.value).startswith("run 1 needs more than 3 adaptive steps, the next of size ")
    assert str(error.value).endswith(
        "; a force that jumps back and forth can cause this; raise relative_tolerance"
    )
    calls.clear()
    states[1:] = 1.0
    adaptive.integrate(turn, states, 3e-4, 1e-6)  # a hundredth of the time in which it changes, and the rest
    assert calls[-1] == 2
    np.testing.assert_allclose(states[1], [np.cos(0.03) + np.sin(0.03), np.cos(0.03) - np.sin(0.03)], 1e-7)
