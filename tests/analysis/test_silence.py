"""Data that once gave wrong numbers in silence: other units and orders, extra tokens, runs that blow up."""

import math

import numpy as np
import pytest

import analysis
import physics
from analysis.circles.classes import structures_by
from analysis.comparison.timing import Onsets, log_rank, onset_ratio
from analysis.laws.lasso import Moments
from analysis.laws.scores import Law
from analysis.stats.effects import permutation_p_value
from physics.errors import InputError

UNITS = (1e-200, 1e-170, 1e-30, 1e30, 1e150)


def circle(p, k, dim=2, rng=None):
    angle = 2 * np.pi * k * np.arange(p) / p
    E = np.zeros((p, dim)) if rng is None else 0.05 * rng.normal(size=(p, dim))
    E[:, :2] += np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return E


def moving(E, parameters=None, frames=4):
    positions = np.stack([E * (1 + t) for t in range(frames)])[None]
    return physics.Trajectory(positions, np.arange(frames), parameters=parameters)


# -- the modulus ---------------------------------------------------------------------------------------------

STATED = (
    {"modulus": 23},
    {"system": {"modulus": 23}},
    {"model": {"modulus": 23, "type": "mine", "tokens": 25}},
    {"task": {"modulus": 23}},
    {"model": {"type": "EmbeddingMLP", "tokens": 23}},
    {"group": physics.cyclic(23).table.tolist()},
)
READERS = (
    analysis.fourier_signals,
    analysis.circles_of,
    analysis.fit_batch,
    lambda trajectory: analysis.Recipe().resample(trajectory),
    lambda trajectory: analysis.compare(trajectory, trajectory),
    lambda trajectory: trajectory.plot("signals"),
)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("parameters", STATED)
def test_extra_tokens_are_refused_with_what_to_pass(parameters, read):
    with pytest.raises(InputError, match=r"got 25; pass Trajectory.select_tokens\(slice\(23\)\)"):
        read(moving(circle(25, 4, 5), parameters))


@pytest.mark.parametrize("parameters", STATED)
def test_the_numbers_of_the_modulus_are_read_as_they_are(parameters):
    E = circle(23, 9, 6, np.random.default_rng(0))
    circles = analysis.circles_of(moving(E, parameters))
    assert circles.frequency[circles.survived[0]].values.tolist() == [9]
    np.testing.assert_allclose(circles.signals[0, -1], 4 * analysis.fourier_signals(E), rtol=1e-12)


def test_moduli_that_contradict_each_other_and_missing_tokens_are_refused():
    with pytest.raises(InputError, match="one modulus, got 23 and 25"):
        analysis.fourier_signals(moving(circle(23, 2), {"modulus": 23, "model": {"modulus": 25}}))
    with pytest.raises(InputError, match="the 23 numbers of the modulus 23 .* got 7"):
        analysis.fourier_signals(moving(circle(7, 2), {"modulus": 23}))


def test_particles_have_structures_for_any_modulus_but_frequencies_for_their_own():
    made = physics.simulate(physics.ParticleSystem(7, modulus=10), steps=5, runs=3)
    assert "survivors" not in analysis.compare(made, made).distributions
    operation = physics.Operation(7, 10)
    expected = physics.grid_imperfections(made.final, modulus=10)
    np.testing.assert_array_equal(structures_by(operation, made.final).imperfections, expected)
    with pytest.raises(InputError, match="the 10 numbers"):
        analysis.circles_of(made)


def test_an_operation_of_other_tokens_is_refused():
    x = np.random.default_rng(0).normal(size=(3, 2, 7, 2))
    with pytest.raises(InputError, match="operation must be one of the 7 tokens"):
        analysis.compare(x, x, operation=physics.Operation(6, 6))


# -- units ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", UNITS)
def test_measures_of_embeddings_do_not_depend_on_the_unit(unit):
    rng = np.random.default_rng(1)
    E = circle(11, 3, 4, rng)
    for measure in (analysis.circularity, analysis.effective_dimension):
        np.testing.assert_allclose(measure(E * unit), measure(E), rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(
        analysis.fourier_signals(E * unit) / unit, analysis.fourier_signals(E), rtol=1e-12
    )
    here, there = (analysis.circles.principal_components(x) for x in (E, E * unit))
    np.testing.assert_allclose(there.fractions, here.fractions, rtol=1e-12)
    plane = analysis.frequency_plane(E * unit, 3).points / unit
    np.testing.assert_allclose(
        plane @ plane.T, (p := analysis.frequency_plane(E, 3).points) @ p.T, atol=1e-12
    )
    other = rng.normal(size=(2, 11, 4))
    expected = analysis.comparison.procrustes_disparity(E[None], other)[0]
    np.testing.assert_allclose(
        analysis.comparison.procrustes_disparity(E[None] * unit, other / unit)[0], expected, rtol=1e-9
    )


@pytest.mark.parametrize("unit", [1e-25, 1e-22, 1e-10, 1.0, 1e19])
def test_signals_of_float32_are_computed_in_float64(unit):
    positions = (unit * circle(7, 2)).astype(np.float32)[None, None]
    trajectory = physics.Trajectory(positions, [0])
    expected = analysis.fourier_signals(positions.astype(np.float64)).values
    np.testing.assert_allclose(analysis.fourier_signals(trajectory), expected, atol=1e-14 * expected.max())
    assert analysis.survives(analysis.fourier_signals(trajectory)[0, 0]).values.tolist() == [
        False,
        True,
        False,
    ]


@pytest.mark.parametrize("unit", UNITS)
def test_statistics_do_not_depend_on_the_unit(unit):
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=9), rng.normal(size=12) + 1

    def close(found, expected, factor=1.0):
        values = [[one.estimate / factor, one.low / factor, one.high / factor] for one in (found,)]
        np.testing.assert_allclose(values[0], [expected.estimate, expected.low, expected.high], rtol=1e-9)

    close(analysis.mean(unit * x), analysis.mean(x), unit)
    close(analysis.stats.hedges_g(unit * x, unit * y), analysis.stats.hedges_g(x, y))
    close(analysis.correlation(unit * x, y[:9] / unit), analysis.correlation(x, y[:9]))
    assert permutation_p_value(unit * x, unit * y) == permutation_p_value(x, y)
    here, there = (
        analysis.stats.calibrate(x, x + y[:9]),
        analysis.stats.calibrate(unit * x, unit * (x + y[:9])),
    )
    close(there.error, here.error, unit)
    close(there.slope, here.slope)


@pytest.mark.parametrize("unit", [1e-200, 1e-60, 1e60, 1e100, 1e150, 1e200])
def test_affine_laws_are_exact_in_every_unit(unit):
    A, b = np.array([[-1.0, 0.5], [0.2, -0.3]]), np.array([1.0, 2.0])
    flow, constant = analysis.to_increment(A, b)
    scaled = analysis.to_increment(A, b * unit)
    np.testing.assert_allclose(scaled[0], flow, rtol=1e-13)
    np.testing.assert_allclose(scaled[1] / unit, constant, rtol=1e-13)
    back = analysis.to_generator(*scaled)
    np.testing.assert_allclose(back[0], A, rtol=1e-12)
    np.testing.assert_allclose(back[1] / unit, b, rtol=1e-12)
    units = np.array([1.0, unit])  # each component in a unit of its own
    mixed = analysis.to_increment(A * units[:, None] / units, b * units)
    np.testing.assert_allclose(mixed[0] / units[:, None] * units, flow, rtol=1e-12)
    np.testing.assert_allclose(mixed[1] / units, constant, rtol=1e-12)


def test_slow_laws_keep_their_digits():
    A, b = 1e-15 * np.array([[-1.0, 0.5], [0.2, -0.3]]), np.array([1.0, 2.0])
    for convert in (analysis.to_increment, analysis.to_generator):  # they differ by 1e-30
        matrix, constant = convert(A, b)
        np.testing.assert_allclose(matrix, A, rtol=1e-14)
        np.testing.assert_allclose(constant, b, rtol=1e-14)
    A, b = np.array([[-0.5, 0.1], [0.0, -1e-15]]), np.array([1.0, 1e-15])  # a fast component and a slow one
    matrix, constant = analysis.to_generator(*analysis.to_increment(A, b))
    np.testing.assert_allclose(matrix, A, rtol=1e-14)
    np.testing.assert_allclose(constant, b, rtol=1e-14)


def test_a_fast_component_does_not_hide_the_generator_of_another():
    matrix, _ = analysis.to_generator(np.diag([1e13, -0.5]), [0.0, 0.0])
    np.testing.assert_allclose(matrix, np.diag([np.log(1e13), np.log(0.5)]), rtol=1e-12, atol=1e-300)
    for A in ([[1e13 - 1, 1.0], [1.0, 1e-13 - 1]], [[1e13 - 1, 1e13], [1e13, 1e13 - 1]], [[0, 1], [1, 0]]):
        with pytest.raises(InputError, match="no real logarithm"):  # 1 + A is singular
            analysis.to_generator(A, [0.0, 0.0])


def test_laws_are_fitted_and_scored_in_units_of_every_component():
    A, b = np.array([[-0.2, 0.1], [0.05, -0.1]]), np.array([1.0, 2.0])
    x = analysis.laws.affine_rollout(A, b, [0.3, -1.0], 40)
    units = np.array([1e-140, 1e120])
    found = analysis.fit_trajectories(x * units, penalty=None)
    np.testing.assert_allclose(found.A / units[:, None] * units, A, rtol=1e-9)
    score = found.score(x * units)
    assert score.derivative == pytest.approx(1.0, abs=1e-12)
    assert score.rollout == pytest.approx(1.0, abs=1e-9)
    here = analysis.laws.resample_coefficients(x, penalty=None, resamples=20)
    there = analysis.laws.resample_coefficients(x * [1e-9, 1e9], penalty=None, resamples=20)
    np.testing.assert_allclose(there.A_low * [[1, 1e18], [1e-18, 1]], here.A_low, rtol=1e-5)
    for size in (1e-170, 1e160):
        with pytest.raises(InputError, match="unit in which its squares are finite and not 0"):
            analysis.fit_trajectories(x * size)


# -- orders --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3]])
def test_a_transition_does_not_depend_on_the_order_of_its_data(order):
    r, hits = np.array([0.2, 0.3, 0.4, 0.5, 0.6]), np.array([0, 3, 10, 17, 20])
    critical = analysis.fit_transition(r[order], hits[order], [20] * 5).critical
    assert critical.format(2) == "0.40 [0.35, 0.45]"


def test_an_end_that_the_data_do_not_bound_is_infinite():
    rng = np.random.default_rng(3)
    found = analysis.fit_transition([0.5, 1.0], [9, 10], [10, 10]).critical
    assert found.low < 1e-6
    assert 0.45 < found.estimate < found.high < 0.5
    for hits in ([5, 5], [8, 2]):  # no transition, and one that falls
        found = analysis.fit_transition([0.5, 1.0], hits, [10, 10]).critical
        assert found.low == 0
        assert math.isinf(found.high)
    for _ in range(3):  # weak data once ended in an error of SciPy
        n = int(rng.integers(2, 6))
        r, trials = rng.random(n) * 10.0 ** rng.integers(-3, 3), rng.integers(2, 60, n)
        hits = np.minimum(rng.integers(0, 60, n), trials)
        hits[0] = 1
        found = analysis.fit_transition(r, hits, trials).critical
        assert 0 <= found.low <= found.estimate <= found.high
        place = rng.permutation(n)
        assert analysis.fit_transition(r[place], hits[place], trials[place]).critical == found


def test_steps_and_times_in_another_order_are_sorted_or_refused():
    values, times = np.array([[0.1, 0.6, 0.9], [0.0, 0.1, 0.2]]), np.array([0, 10, 20])
    order = [2, 0, 1]
    found = analysis.comparison.onsets(values[:, order], times[order], 0.5)
    assert found.times.tolist() == [10, 20]
    assert found.reached.tolist() == [True, False]
    signals = np.array([[1, 1, 1]] + 3 * [[9, 1, 1]])
    rule = analysis.circles.StoppingRule(hold=20)
    for call in (rule.first, rule.decided):
        for steps in ([0, 20, 10, 30], [0, 10, 10, 20]):
            with pytest.raises(InputError, match="steps must increase"):
                call(steps, signals)
    back = physics.Trajectory(np.random.default_rng(0).normal(size=(2, 3, 5, 2)), [0, 1, 2], [0.0, 2.0, 1.0])
    with pytest.raises(InputError, match="times of simulated must increase"):
        analysis.compare(back, back)


@pytest.mark.parametrize("kind", ["increment", "generator"])
def test_a_trajectory_may_be_asked_for_in_any_order_of_times(kind):
    class Growth(Law):
        def changes(self, states):
            return states

    Growth.kind = kind
    linear = analysis.fit_trajectories(np.exp(np.arange(9.0))[:, None], kind=kind, penalty=None)
    for law in (Growth(), linear):
        states, reached = law.rollout([1.0], [20, 1, 0, 3])
        ordered, again = law.rollout([1.0], [0, 1, 3, 20])
        assert reached == again == 3
        assert np.isinf(states[0, 0])
        np.testing.assert_array_equal(states[[2, 1, 3, 0]], ordered)


# -- equal means, exchanged sides ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (np.array([1, 3, 2]) / 60, np.array([2, 2, 0, 4]) / 60),
        (np.array([4, 2, 2]) / 10, np.array([1, 4, 3]) / 10),
        ([0.1 + 0.2], [0.3, 0.4, 0.2]),
    ],
)
def test_equal_means_have_a_p_value_of_one(first, second):
    assert permutation_p_value(first, second) == 1


def test_the_ratio_of_exchanged_sides_is_the_inverse():
    rng = np.random.default_rng(4)
    for size in (2, 9, 30):
        a, b = (Onsets(rng.integers(1, 40, n).astype(float), rng.random(n) < 0.8) for n in (size, size + 4))
        here, there = onset_ratio(a, b), onset_ratio(b, a)
        assert here.estimate * there.estimate == pytest.approx(1, rel=1e-12)
        for low, high in ((here.low, there.high), (there.low, here.high)):
            assert (low == 0 and math.isinf(high)) or low * high == pytest.approx(1, rel=1e-12)
    # The statistic vanishes for factors from 1.5 to 1.6, but for the rounding of its fractions.
    a = Onsets(np.array([30.0, 50, 40, 60]), np.array([True, True, False, True]))
    b = Onsets(np.array([80.0, 10, 60, 80, 80, 60, 80]), np.array([1, 0, 1, 0, 1, 1, 1]) > 0)
    assert log_rank(a, b, 1.55) == log_rank(b, a, 1 / 1.55) == 0
    assert onset_ratio(a, b).estimate == pytest.approx((1.5 * 1.6) ** 0.5, rel=3e-3)
    assert onset_ratio(a, b).estimate * onset_ratio(b, a).estimate == pytest.approx(1, rel=1e-12)


# -- runs that blow up ---------------------------------------------------------------------------------------


def test_runs_that_blow_up_are_named_and_left_out():
    x = np.stack([circle(7, 1), circle(7, 1) * [2, 1], circle(7, 1) * [1e57, 3e57]])
    began = np.random.default_rng(0).normal(size=x.shape)
    found = analysis.structures(x, initial=began)
    assert found.blown_up.tolist() == [False, False, True]
    assert (found.circles.estimate, found.circles.count, found.grid_imperfections.count) == (0.5, 2, 1)
    assert analysis.structures(x).blown_up.tolist() == [False, False, True], "beside the other runs"
    assert not analysis.structures(1e155 * x[:2]).blown_up.any()
    frames = np.stack([began, x / 100, x], axis=1)
    blown = physics.Trajectory(frames, [0, 1, 2], parameters={"step_size": 0.1, "system": {"tokens": 7}})
    comparison = analysis.compare(blown, blown[:2])
    assert comparison.runs == (2, 2)
    assert comparison.simulated.circles.count == 2
    assert any("1 of 3 simulated runs blew up" in note and "run 2" in note for note in comparison.notes)
    with pytest.raises(InputError, match=r"does not blow up.*step_size below 0.1"):
        analysis.compare(blown[2:], blown[:2])


def test_runs_that_blow_up_have_no_circles():
    rng = np.random.default_rng(0)
    E = 0.1 * rng.normal(size=(4, 6, 11, 4))
    E[..., :2] += np.linspace(0.5, 3, 6)[:, None, None] * circle(11, 3)
    E[1, 3:] = 1e57 * rng.normal(size=(3, 11, 4))
    blown = physics.Trajectory(E, np.arange(6) * 100, parameters={"modulus": 11})
    sound = blown[[0, 2, 3]]
    with pytest.warns(RuntimeWarning, match="^run 1 blew up and does not count$"):
        circles = analysis.circles_of(blown)
    np.testing.assert_array_equal(circles.survived, analysis.circles_of(sound).survived)
    np.testing.assert_array_equal(circles.signals, analysis.circles_of(sound).signals)
    assert circles.member.values.tolist() == [0, 2, 3]
    recipe = analysis.Recipe(alpha=1e-3)
    with pytest.warns(RuntimeWarning, match="run 1 blew up"):
        found = analysis.fit_batch(blown, recipe)
    np.testing.assert_array_equal(found.law.A, analysis.fit_batch(sound, recipe).law.A)
    with pytest.raises(InputError, match="is finite and does not blow up, got none"):
        analysis.circles_of(blown[1])
    E[1, 3:] = np.nan
    with pytest.warns(RuntimeWarning, match="^run 1 is not finite and does not count$"):
        circles = analysis.circles_of(physics.Trajectory(E, np.arange(6) * 100))
    np.testing.assert_array_equal(circles.signals, analysis.circles_of(sound).signals)
    lost = physics.Trajectory(E, np.arange(6) * 100)
    assert any("are not finite and left out (run 1)" in one for one in analysis.compare(lost, sound).notes)


@pytest.mark.parametrize("unit", [1e-170, 1e160])
def test_regressions_in_extreme_units_are_right_or_refused(unit):
    rng = np.random.default_rng(5)
    X, Y = rng.normal(size=(30, 3)), rng.normal(size=(30, 2))
    plain = analysis.LinearODERegressor(None).fit(X, Y)
    for inner, outer in ((unit, unit), (1.0, unit), (unit, 1.0)):
        found = analysis.LinearODERegressor(None).fit(X * inner, Y * outer)
        np.testing.assert_allclose(found.coef_ * (inner / outer), plain.coef_, rtol=1e-9)
        np.testing.assert_allclose(found.intercept_ / outer, plain.intercept_, rtol=1e-9)
    for data in ((X * unit, Y), (X, Y * unit)):
        with pytest.raises(InputError, match="unit in which its squares are finite and not 0"):
            Moments.of([data])


def test_tokens_in_the_order_of_another_group_have_no_frequencies():
    place = np.array([0, 3, 1, 6, 2, 5, 4])
    number = np.argsort(place)
    table = place[(number[:, None] + number) % 7]
    E = np.empty((7, 2))
    E[place] = circle(7, 2)
    made = moving(E, {"group": table.tolist()})
    six = {"name": "S_3", "table": physics.symmetric(3).table.tolist()}
    for read in (analysis.circles_of, analysis.fourier_signals, analysis.fit_batch):
        with pytest.raises(InputError, match="tokens must be the numbers 0 to 6, added modulo 7"):
            read(made)
        with pytest.raises(InputError, match="named 'S_3'"):
            read(moving(circle(6, 1), {"group": six}))
    assert "survivors" not in analysis.compare(made, made).distributions


def test_an_array_is_as_good_as_a_trajectory_if_it_has_its_axes():
    E = np.random.default_rng(0).normal(size=(3, 4, 7, 2))
    np.testing.assert_allclose(analysis.circles_of(E).signals, analysis.fourier_signals(E))
    with pytest.raises(InputError, match=r"trajectory must have 4 axes, got the shape \(7, 2\)"):
        analysis.circles_of(E[0, 0])
