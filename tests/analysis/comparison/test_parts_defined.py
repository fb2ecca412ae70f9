"""The parts of a comparison where runs, clocks and measures differ, each against its definition."""

import json
import math

import numpy as np
import pytest
from ensembles import ensemble, noise, ring
from scipy import stats

import physics
from analysis import compare
from analysis.comparison import parts
from analysis.comparison.compared import _plain
from analysis.comparison.ensembles import MEASURES, EnsembleOf
from analysis.comparison.symmetry import no_relabelling
from analysis.stats.intervals import Interval, difference, mean
from physics import InputError, Trajectory

FRAMES = np.arange(6)


def reaching(onsets, *, seed=0, stretch=1.0, **observables):
    """Walks of five tokens whose accuracy jumps in given frames."""
    accuracy = (np.array(onsets)[:, None] <= FRAMES).astype(float)
    positions = np.cumsum(noise(len(onsets), 6, 5, 2, seed=seed), axis=1)
    given = {"validation_accuracy": accuracy, **observables}
    return Trajectory(positions, FRAMES, FRAMES * stretch, observables=given)


# -- when -------------------------------------------------------------------------------------------------


def test_onsets_of_the_first_are_put_on_the_clock_of_the_second():
    jumps = np.array([1, 2, 3, 5])
    first, second = reaching(jumps), reaching(jumps, stretch=2.5)
    found = compare(first, second)
    reached, tau = found.onsets["validation_accuracy"], found.motion.scale.estimate
    assert found.motion.paired
    assert tau == pytest.approx(0.4, rel=1e-3)
    np.testing.assert_allclose(reached.first.times, jumps / tau)
    np.testing.assert_allclose(reached.second.times, 2.5 * jumps)
    assert reached.paired_ratio.estimate == pytest.approx(1.0, rel=2e-3)


def test_intervals_of_onsets_allow_for_the_time_factor_relative_to_its_estimate():
    first, second = reaching([1, 2, 3, 4]), reaching([2, 3, 4, 5], seed=1, stretch=3.0)
    found = compare(first, second, paired=True, align="scaling")
    factor, one = found.motion.scale, found.onsets["validation_accuracy"]
    assert math.isfinite(factor.low)
    assert abs(factor.estimate - 1) > 0.2
    known = mean(np.log(one.second.times / one.first.times))
    clock = Interval(0.0, math.log(factor.estimate / factor.high), math.log(factor.estimate / factor.low), 0)
    expected = difference(known, clock).map(math.exp)
    assert (one.paired_ratio.low, one.paired_ratio.high) == pytest.approx((expected.low, expected.high))
    apart = compare(first, second, paired=False).onsets["validation_accuracy"]
    assert apart.paired_ratio.count == 0
    assert math.isnan(apart.paired_ratio.estimate)


def test_what_one_ensemble_never_reaches_is_compared_and_what_neither_does_is_not():
    never, some = reaching([9, 9, 9]), reaching([2, 3, 9], seed=1)
    for first, second in ((never, some), (some, never)):
        one = compare(first, second, align="none").onsets["validation_accuracy"]
        assert (one.first.reached.any(), one.second.reached.any()) == (first is some, second is some)
    assert "validation_accuracy" not in compare(never, reaching([9, 9], seed=1), align="none").onsets


def test_the_thresholds_are_those_of_liu():
    """Section 4 and Table 1: RQI > 0.95, and 90 % of the training and of the validation set."""
    assert dict(parts.THRESHOLDS) == {"quality": 0.95, "train_accuracy": 0.9, "validation_accuracy": 0.9}
    levels = np.tile([0.0, 0.85, 0.89, 0.91, 0.96, 1.0], (2, 1))
    both = [reaching([9, 9], seed=k, train_accuracy=levels) for k in (0, 1)]
    assert compare(*both, align="none").onsets["train_accuracy"].first.times.tolist() == [3, 3]


def test_a_circle_lasts_from_the_frame_after_which_its_ratio_stays_below_1_2():
    circle, loose = ring(5, 1), ring(5, 1) * np.array([1.0, 1.0, 1.0, 1.0, 1.25])[:, None]
    tight = ring(5, 1) * np.array([1.0, 1.0, 1.0, 1.0, 1.15])[:, None]
    runs = [[circle, loose, tight, circle, tight, circle], [loose, loose, loose, loose, tight, tight]]
    one = Trajectory(np.array([*runs, [loose] * 6]), FRAMES)
    found = compare(one, reaching([2, 3]), align="none").onsets["lasting circle"].first
    assert found.times.tolist() == [2, 4, 5]
    assert found.reached.tolist() == [True, True, False]


# -- which runs -------------------------------------------------------------------------------------------


def test_the_motion_of_many_pairs_is_that_of_the_first_ones():
    first, second = reaching([1] * 5), reaching([1] * 5, seed=1)
    together = compare(first, second, paired=True, states=True, align="none", most_pairs=3)
    assert together.motion.pairs.tolist() == [[0, 0], [1, 1], [2, 2]]
    assert "motion of the first 3 of 5 pairs of runs" in together.notes
    whole = compare(first, second, states=True, align="none", paired=False, most_pairs=3).motion
    assert whole.pairs[:, 1].tolist() == [0, 1, 2]
    assert len(whole.chance) == 3
    enough = compare(first, second, paired=True, states=True, align="none", most_pairs=together.runs[0])
    assert not any("motion of the first" in note for note in enough.notes), "there are no more"
    few = compare(first, reaching([1], seed=1), states=True, align="none", most_pairs=3).motion
    assert (len(few.pairs), len(few.chance)) == (1, 3), "chance is that of all runs, however few the pairs"


def test_equal_progress_is_looked_up_in_the_runs_that_are_finite():
    steps = np.arange(9)
    ages = np.array([8 * (steps / 8) ** (1 + 0.4 * k) for k in range(4)])

    def aged(seed, values):
        positions = noise(4, 9, 5, 2, seed=seed)
        positions[0, -1] = np.nan
        return Trajectory(positions, steps, observables={"age": values})

    both = aged(4, ages), aged(5, np.tile(steps, (4, 1)) * 1.0)
    kept = [
        Trajectory(one.positions[1:], steps, observables={"age": one.observables["age"][1:]}) for one in both
    ]
    options = {"paired": True, "states": True, "align": "age"}
    found, expected = (compare(*two, **options).motion for two in (both, kept))
    np.testing.assert_array_equal(found.matched, expected.matched)
    np.testing.assert_array_equal(found.error, expected.error)


def test_pairs_of_which_other_runs_are_finite_are_refused():
    """Runs 1 and 2 of the first, and 0 and 1 of the second: none but run 1 belongs to a pair."""
    first, second = (Trajectory(noise(3, 4, 5, 2, seed=k), range(4)) for k in (0, 1))
    first.positions[0, -1] = second.positions[2, -1] = np.nan
    with pytest.raises(InputError, match="finite, got 2 and 2 finite runs, which are not the same runs"):
        compare(first, second, paired=True)
    assert not compare(first, second).motion.paired


def test_many_frames_are_thinned_and_keep_their_own_times():
    """Of 101 frames 48 are compared, each at the time at which the first had got as far."""
    steps = np.arange(101)
    path = noise(2, 1, 5, 2, seed=4) + (steps / 100)[None, :, None, None] * noise(2, 1, 5, 2, seed=5)
    first = Trajectory(path, steps, observables={"age": np.tile(steps, (2, 1)) * 1.0})
    second = Trajectory(path, steps, steps * 2.0, observables={"age": np.tile(steps, (2, 1)) * 1.0})
    motion = compare(first, second, align="age", paired=True).motion
    assert len(motion.times) == 48
    np.testing.assert_allclose(motion.matched, np.tile(motion.times / 2, (2, 1)))
    np.testing.assert_allclose(motion.error, 0, atol=1e-9)


def test_accuracies_that_are_given_are_those_of_all_runs_also_of_those_left_out():
    final = noise(4, 5, 2)
    final[1] = np.nan
    second = ensemble(final, noise(4, 5, 2, seed=3))
    found = compare(ensemble(noise(3, 5, 2)), second, accuracies=([0, 9, 0, 0], [1, 9, 1, 1])).accuracy
    assert found.predicted.tolist() == [0, 0, 0]
    assert found.bias.estimate == 1


def accuracies(seed, **observables):
    values = {name: np.repeat(np.array(one)[:, None], 2, axis=1) for name, one in observables.items()}
    return Trajectory(noise(3, 2, 5, 2, seed=seed), [0, 1], observables=values)


def test_accuracies_are_those_of_the_second_ensemble_and_across_only_for_pairs():
    one = {"accuracy": [0.1, 0.5, 0.9], "predicted_accuracy": [0.2, 0.6, 1.0]}
    two = {"accuracy": [0.3, 0.5, 0.7], "predicted_accuracy": [0.3, 0.5, 0.7]}
    assert compare(accuracies(0, **one), accuracies(1, **two)).accuracy.bias.estimate == 0
    assert compare(accuracies(0, **two), accuracies(1, **one)).accuracy.bias.estimate == pytest.approx(-0.1)
    half = {name: {name: values} for name, values in one.items()}
    predicted, measured = half["predicted_accuracy"], half["accuracy"]
    assert compare(accuracies(0, **predicted), accuracies(1, **measured)).accuracy is None
    assert compare(accuracies(0, **predicted), accuracies(0, **measured)).accuracy is not None


def test_final_values_are_those_of_the_runs_that_are_finite():
    spoiled = ensemble(noise(3, 5, 2))
    spoiled.positions[0, -1] = np.nan
    loss = np.repeat([[9.0], [1.0], [2.0]], 2, axis=1)
    one = Trajectory(spoiled.positions, spoiled.steps, observables={"train_loss": loss})
    other = Trajectory(noise(2, 2, 5, 2, seed=1), [0, 1], observables={"train_loss": loss[1:]})
    assert compare(one, other).distributions["train_loss"].samples[0].tolist() == [1, 2]


def test_progress_of_files_with_different_clocks_is_refused():
    two = [reaching([1, 2]), reaching([3, 4], stretch=2.0)]
    assert EnsembleOf("both", two).series("validation_accuracy", np.arange(4)) is None
    values, times = EnsembleOf("both", [two[0]] * 2).series("validation_accuracy", np.array([1, 2]))
    assert times.tolist() == FRAMES.tolist()
    assert values.tolist() == two[0].observables["validation_accuracy"][[1, 0]].tolist()


def test_the_quality_is_that_of_the_tolerance_and_of_embeddings_that_vary_on_each_axis():
    final = np.arange(5.0)[:, None] * np.array([1.0, -1.0]) + 0.15 * noise(6, 5, 2)
    final[2, :, 1] = 3.0
    plain = physics.Operation(5)
    found = EnsembleOf("one", [ensemble(final)], delta=0.1, given=plain).last("quality")
    own, fine = (physics.representation_quality(np.delete(final, 2, axis=0), plain, d) for d in (0.1, 0.01))
    assert np.isnan(found[2])
    np.testing.assert_allclose(np.delete(found, 2), own)
    assert (own != fine).any()
    coarse = compare(ensemble(final), ensemble(final[:2]), delta=0.1, operation=plain).distributions[
        "quality"
    ]
    assert coarse.first.estimate == pytest.approx(own.mean())
    assert coarse.second.estimate == pytest.approx(own[:2].mean())


# -- which measures ---------------------------------------------------------------------------------------


def test_what_says_how_a_run_went_is_no_quantity():
    given = {"status": np.zeros((3, 6)), "Z_0": np.ones((3, 6)), "wide": np.ones((3, 6, 2))}
    both = [reaching([1, 2, 3], seed=k, **given) for k in (0, 1)]
    found = compare(*both).distributions
    assert "validation_accuracy" in found
    assert not set(found) & {*given, "predicted_accuracy"}


def test_points_on_a_line_are_no_circles():
    line, plane = ensemble(noise(3, 5, 1)), ensemble(noise(3, 5, 2))
    for both in ((line, plane), (plane, line)):
        assert set(compare(*both).distributions) == {"quality"}
        assert "lasting circle" not in compare(*both).onsets


def test_coordinates_of_a_flow_are_compared_as_they_are_with_whatever_stands_beside_it():
    positions = noise(3, 4, 5, 2)
    flow = Trajectory(positions, range(4), parameters={"system": {"type": "AffineFlow"}})
    other = Trajectory(noise(3, 4, 5, 2, seed=1), range(4))
    for both in ((flow, other), (other, flow), (flow, [other, flow])):
        assert compare(*both).shapes is None
    assert compare(other, other).shapes is not None
    assert compare(flow, other, states=False).shapes is not None
    round_ = Trajectory(np.array([[noise(5, 2, seed=k), ring(5, 1)] for k in range(3)]), [0, 1])
    assert "lasting circle" in compare(round_, round_, align="none").onsets
    assert "lasting circle" not in compare(round_, round_, align="none", states=True).onsets


def test_examples_that_were_given_by_number_allow_no_relabelling():
    fixed = ensemble(noise(3, 5, 2))
    fixed = Trajectory(fixed.positions, fixed.steps, parameters={"train_examples": [0, 1]})
    free = ensemble(noise(3, 5, 2, seed=1))
    for both, name in (((fixed, free), "simulated"), ((free, [free, fixed]), "trained")):
        found = compare(*both)
        assert len(found.shapes.symmetry) == 1
        assert f"the examples of {name} were fixed by number: no relabeling" in found.notes


def test_only_relabellings_of_both_problems_are_searched():
    one = ensemble(noise(3, 5, 2))
    sums, modular = (EnsembleOf(str(p), [one], given=physics.Operation(5, p)) for p in (None, 5))
    for pair in ((sums, modular), (modular, sums)):
        assert len(parts.Parts(*pair, ("a", "b"), False, None).symmetry) == 2, "as they are, and reversed"
    assert len(parts.Parts(modular, modular, ("a", "b"), False, None).symmetry) == 20


def test_runs_of_one_ensemble_are_matched_by_the_same_relabellings():
    one = EnsembleOf("rings", [ensemble([ring(7, 1), ring(7, 2)])], given=physics.Operation(7, 7))
    free = parts.Parts(one, one, ("a", "b"), False, None)
    assert free._apart(one.final)[0, 1] == pytest.approx(0, abs=1e-9)
    bound = parts.Parts(one, one, ("a", "b"), False, no_relabelling(7))
    assert bound._apart(one.final)[0, 1] > 0.5
    shown = free._apart(one.final, bound.shapes())
    np.testing.assert_array_equal(shown, bound.shapes().disparity)


# -- the table --------------------------------------------------------------------------------------------


def test_rows_of_onsets_and_accuracies_say_whose_they_are():
    first = reaching([1, 2, 3, 4], accuracy=np.tile([[0.1], [0.2], [0.4], [0.8]], 6))
    second = reaching([2, 3, 4, 9], seed=1, accuracy=np.tile([[0.2], [0.3], [0.4], [0.8]], 6),
                      predicted_accuracy=np.tile([[0.1], [0.5], [0.4], [0.9]], 6))  # fmt: skip
    found = compare(first, second, names=("a", "b"), paired=True, align="none")
    rows = {(row["part"], row["quantity"], row["statistic"]): row for row in found.table()}
    one = found.onsets["validation_accuracy"]
    for statistic, value in {
        "a, reached": one.first.fraction, "a, median time": one.first.median,
        "b, reached": one.second.fraction, "b, median time": one.second.median,
        "ratio": one.ratio, "paired ratio": one.paired_ratio,
    }.items():  # fmt: skip
        row = rows["onset", "validation_accuracy", statistic]
        np.testing.assert_array_equal(
            [row["estimate"], row["low"], row["high"], row["count"]],
            [value.estimate, value.low, value.high, value.count],
        )
        tested = (one.p_value, one.adjusted_p_value) if statistic == "ratio" else (math.nan, math.nan)
        np.testing.assert_array_equal((row["p_value"], row["adjusted_p_value"]), tested)
    assert one.first.fraction.estimate > one.second.fraction.estimate
    assert rows["onset", "validation_accuracy", "ratio"]["test"] == "log-rank test"
    for statistic in ("bias", "error", "correlation", "slope"):
        row = rows["accuracy", "predicted against measured", statistic]
        assert row["estimate"] == getattr(found.accuracy, statistic).estimate
    never = compare(reaching([9, 9]), reaching([1, 2], seed=1), align="none")
    assert never.to_dict()["onsets"]["validation_accuracy"]["first"]["times"] == [5, 5]
    late = compare(reaching([1, 2, 9, 9, 9]), reaching([1, 2], seed=1), align="none")
    assert json.loads(late.to_json())["onsets"]["validation_accuracy"]["first"]["times"] == [1, 2, 5, 5, 5]
    assert _plain([math.inf, -math.inf, math.nan]) == ["inf", "-inf", None]


@pytest.mark.parametrize("shape", [(4,), (2, 3)])
def test_each_measure_is_that_of_each_embedding(shape):
    rng = np.random.default_rng(9)
    E = rng.normal(size=(*shape, 7, 2))
    E[(0,) * len(shape)] = ring(7, 2)
    operation = physics.Operation(7, modulus=7)

    def survivors(one):
        signals = np.linalg.norm(np.fft.fft(one, axis=0), axis=1)[1:4]
        return np.sum(signals > 2 * signals.mean())

    expected = {
        "circle_ratio": physics.circle_ratio,
        "grid_imperfections": lambda one: physics.grid_imperfections(one[None], modulus=7)[0],
        "quality": lambda one: physics.representation_quality(one, operation, 1.5),
        "effective_dimension": lambda one: np.exp(
            stats.entropy(np.linalg.svd(one - one.mean(axis=0))[1] ** 2)
        ),
        "survivors": survivors,
    }
    assert set(MEASURES) == set(expected)
    for name, of in expected.items():
        found = MEASURES[name](E, operation, 1.5)
        assert found.shape == shape
        np.testing.assert_allclose(
            found, np.reshape([of(one) for one in E.reshape(-1, 7, 2)], shape), err_msg=name
        )
