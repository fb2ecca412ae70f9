"""Corners of intervals, circles and structures, each against its definition."""

import math

import numpy as np
import pytest
from scipy import stats

import analysis
import physics
from analysis.circles.classes import class_options
from analysis.circles.fourier import fourier_signals
from analysis.circles.prediction import fitness, survival_rates
from analysis.comparison.ensembles import EnsembleOf
from analysis.phases.cells import Cell, Run
from analysis.phases.classification import classify_phases
from analysis.phases.diagram import PhaseDiagram
from analysis.stats.intervals import Interval, clustered_proportion, readable
from analysis.stats.transitions import fit_critical_values, median_crossing
from physics import Operation, Trajectory


def test_a_bound_that_the_data_do_not_limit_stays_open_within_what_is_possible():
    open_ = Interval(0.9, 0.5, math.inf, 3).within(0.0, 1.0)
    assert (open_.low, open_.high, open_.count) == (0.5, math.inf, 3)
    assert math.isnan(Interval(0.9, math.nan, 1.2, 3).within(0.0, 1.0).low)
    cut = Interval(0.9, -0.1, 1.2, 3).within(0.0, 1.0)
    assert (cut.estimate, cut.low, cut.high) == (0.9, 0.0, 1.0)


def test_groups_without_a_trial_are_no_groups():
    assert clustered_proportion([3, 0, 5, 0], [9, 0, 7, 0]) == clustered_proportion([3, 5], [9, 7])
    assert math.isnan(clustered_proportion([3, 0], [9, 0]).low), "a single group has no interval"


def test_two_groups_are_enough_for_an_interval():
    hits, trials = np.array([3, 5]), np.array([9, 7])
    rate = 8 / 16
    scatter = 2 * np.sum((hits - rate * trials) ** 2) / 16**2
    effective = rate * (1 - rate) / scatter * (stats.norm.ppf(0.975) / stats.t.ppf(0.975, 1)) ** 2
    wilson = analysis.proportion(rate * effective, effective)
    found = clustered_proportion(hits, trials)
    assert (found.estimate, found.low, found.high) == pytest.approx((rate, wilson.low, wilson.high))
    assert found.count == 16


def test_transitions_of_single_samples_count_samples_not_values():
    values = np.repeat([0.2, 0.3, 0.4, 0.5], [2, 5, 4, 1])
    assert fit_critical_values(values, 0.1).critical.count == 12
    assert median_crossing(values, 0.1).count == 12


def test_the_majority_may_be_that_of_the_survivors():
    rng = np.random.default_rng(0)
    alive = rng.random((12, 6)) < 0.8
    signals = rng.normal(size=alive.shape) + alive
    share = alive.mean()
    assert share > 0.6
    assert fitness(signals, rng.normal(size=alive.shape), alive, resamples=2).majority == share
    assert fitness(signals, signals, ~alive, resamples=2).majority == pytest.approx(share)


def test_a_value_on_the_edge_of_two_bins_belongs_to_the_upper_one():
    values, alive = np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([True, False, True, True, False])
    first, second = survival_rates(values, alive, bins=2)
    assert (first.low, first.high, second.low, second.high) == (1, 3, 3, 5)
    assert (first.rate.count, second.rate.count) == (2, 3)
    assert (first.rate.estimate, second.rate.estimate) == (0.5, pytest.approx(2 / 3))


def test_survivors_are_those_of_the_end_whatever_window_is_looked_at():
    angle = 2 * np.pi * np.arange(7) / 7
    rings = [np.stack([np.cos(k * angle), np.sin(k * angle)], axis=1) for k in (1, 2)]
    E = np.array([[rings[0], rings[0], rings[1] + 0.4 * rings[0]]])
    trajectory = Trajectory(E, [0, 5, 10])
    found = analysis.circles_of(trajectory, 0, 5)
    assert found.steps.tolist() == [0, 5]
    assert found.survived.tolist() == [[False, True, False]]
    signals = fourier_signals(E[0, -1])
    low = analysis.circles_of(trajectory, 0, 5, threshold=float(signals[0]) * 0.9)
    assert low.survived.tolist() == [[True, True, False]]
    assert (
        analysis.circles_of(trajectory, factor=1.0).survived.tolist()
        == (signals > signals.mean())[None].tolist()
    )


def test_plain_addition_has_a_class_for_each_sum():
    assert class_options(Operation(7)) == {"modulus": 14}
    assert class_options(Operation(7, 5)) == {"modulus": 5}
    group = physics.symmetric(3)
    assert class_options(Operation(group=group)) == {"group": group}


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"modulus": 0}, "modulus must be at least 2, got 0"),
        ({"system": {"group": {"order": 2}}},
         "group must be recorded with a table and a name, got {'order': 2}"),
    ],
)  # fmt: skip
def test_an_operation_that_is_none_is_refused_and_its_file_is_named(parameters, sentence, tmp_path):
    """The first part is fine, and the second one was written by someone else."""
    positions = np.zeros((1, 2, 2, 1))
    strange = Trajectory(positions, [0, 1], parameters=parameters)
    strange.save(tmp_path / "strange.h5")
    stored = Trajectory.open(tmp_path / "strange.h5")
    for part, name in ((strange, "first"), (stored, str(tmp_path / "strange.h5"))):
        with pytest.raises(physics.InputError) as said:
            EnsembleOf("first", [Trajectory(positions, [0, 1]), part]).operation  # noqa: B018 - a property
        assert str(said.value) == f"{name}: {sentence}"


@pytest.mark.parametrize(
    ("value", "text"),
    [(math.nan, "-"), (math.inf, "∞"), (-math.inf, "-∞"), (0.0, "0"), (0.00012345, "0.000123"),
     (-41.26, "-41.3"), (123456.0, "123000"), (2.5e7, "2.50 × 10⁷"), (1.2e-5, "1.20 × 10⁻⁵")],
)  # fmt: skip
def test_numbers_are_written_with_three_digits_and_without_exponents_where_people_do(value, text):
    assert readable(value) == text


def test_a_correlation_in_groups_has_the_jackknife_error_of_fishers_z():
    rng = np.random.default_rng(6)
    groups = np.repeat(["a", "b", "c", "d", "e"], [3, 4, 5, 2, 6])
    x = rng.normal(size=20)
    y = x + rng.normal(size=20)
    found = analysis.correlation(x, y, groups)
    left = [np.arctanh(np.corrcoef(x[groups != g], y[groups != g])[0, 1]) for g in "abcde"]
    error = math.sqrt(4 / 5 * np.sum((left - np.mean(left)) ** 2))
    z, t = np.arctanh(np.corrcoef(x, y)[0, 1]), stats.t.ppf(0.975, 4)
    expected = (math.tanh(z), math.tanh(z - t * error), math.tanh(z + t * error))
    assert (found.estimate, found.low, found.high) == pytest.approx(expected)
    assert found.count == 20
    two = analysis.correlation(x, y, np.arange(20) % 2)
    assert math.isnan(two.low), "of two groups nothing is known"
    same = np.where(groups == "a", x, 1.0)
    assert math.isnan(analysis.correlation(same, y, groups).low), "without the first it does not vary"


def test_runs_that_only_validate_are_told_from_those_that_do_neither():
    def run(number, train, validation):
        return Run(number, train, validation, str(classify_phases(train, validation)))

    nan = math.nan
    runs = [
        run(0, nan, 5.0),
        run(1, nan, nan),
        run(2, nan, nan),
        run(3, 4.0, 5.0),
        run(4, nan, 7.0),
        run(5, 1.0, nan),
        run(6, nan, nan),
    ]
    x, y = (analysis.Axis(name, 0.0, 1.0, cells=1) for name in "xy")
    cell = Cell((0.0, 1.0), (0.0, 1.0), (0.5, 0.5), 0, runs)
    (row,) = PhaseDiagram(x, y, 1000, 0.5, [cell]).rows()
    assert (row["validation_only"], row["confusion"], row["runs"]) == (2, 5, 7)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e8])
def test_whether_there_is_a_fixed_point_does_not_depend_on_the_unit(unit):
    singular = unit * np.array([[1.0, -1.0], [2.0, -2.0]])
    assert analysis.laws.fixed_points(singular, [unit, 2 * unit]).point == pytest.approx([-0.5, 0.5])
    assert analysis.laws.fixed_points(singular, [unit, (2 + 1e-6) * unit]).point is None
    # Of large terms that cancel, the rest is a rounding error of the terms, not of b.
    far = analysis.laws.fixed_points(unit * np.array([[1e8, -1e8], [1.0, 1.0]]), unit * np.array([1.0, -2e7]))
    assert far.point == pytest.approx([1e7, 1e7])
