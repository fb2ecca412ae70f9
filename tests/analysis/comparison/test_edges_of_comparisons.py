"""Edges of comparisons: observables with clocks of their own, infinite ends, options, plain values."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
from ensembles import ensemble, noise

import analysis
from analysis import compare
from analysis.comparison.compared import _adjusted, _plain
from analysis.comparison.ensembles import EnsembleOf
from analysis.comparison.motion import Motion
from analysis.comparison.parts import Parts
from analysis.comparison.progress import _log_factor, frame_mean
from analysis.comparison.symmetry import no_relabelling
from analysis.comparison.timing import Onsets, compare_onsets, onsets
from analysis.stats.effects import compare_values
from analysis.stats.intervals import Interval
from physics import InputError, Operation, Trajectory

NAN, INF = math.nan, math.inf


def walks(runs, frames=6, dim=2, seed=0, steps=None, **options):
    positions = np.cumsum(noise(runs, frames, 5, dim, seed=seed), axis=1)
    return Trajectory(positions, np.arange(frames) if steps is None else steps, **options)


# -- clocks of observables --------------------------------------------------------------------------------


def sparse(values, steps=(10, 12, 15), **more):
    """Positions of steps 10 to 20 whose times begin at 5, and an accuracy at three steps of its own."""
    return walks(
        len(values), 11, steps=np.arange(10, 21), times=np.arange(5.0, 10.1, 0.5),
        observables={"validation_accuracy": np.array(values, float), **more},
        clocks={"validation_accuracy": (steps, np.array(steps) / 2.0)},
    )  # fmt: skip


def test_a_run_was_watched_until_its_observable_was_last_measured():
    """The file goes on until 5, but the accuracy was measured at 0, 1 and 2.5 only."""
    one = EnsembleOf("a", [sparse([[0, 0, 1], [0, 1, 1], [0, 0, 0]])])
    found = one.onsets("validation_accuracy", 0.9)
    assert found.times.tolist() == [2.5, 1.0, 2.5]
    assert found.reached.tolist() == [True, True, False]
    values, times = one.series("validation_accuracy", np.array([2, 0]))
    assert times.tolist() == [0, 1, 2.5]
    assert values.tolist() == [[0, 0, 0], [0, 0, 1]]
    assert one.last("validation_accuracy").tolist() == [1, 1, 0]
    assert one.times.tolist() == np.arange(0, 5.1, 0.5).tolist()
    still = EnsembleOf("a", [sparse([[0.0]], steps=(10,))])
    assert still.onsets("validation_accuracy", 0.9) is None, "a single measurement is no course"
    assert still.series("validation_accuracy", np.array([0])) is None


def test_a_status_with_its_own_clock_ends_a_run_at_its_time():
    one = walks(
        3, 11, steps=np.arange(10, 21), times=np.arange(5.0, 10.1, 0.5),
        observables={"validation_accuracy": np.zeros((3, 11)),
                     "status": np.array([[0, 0, 0], [0, 2, 0], [-1, -1, -1]])},
        clocks={"status": ([10, 13, 20], [5.0, 6.5, 10.0])},
    )  # fmt: skip
    found = EnsembleOf("a", [one]).onsets("validation_accuracy", 0.9)
    assert found.times.tolist() == [5, 1.5, 5], "of a status above 0"


def test_recorded_onsets_are_put_on_the_clock_of_the_positions():
    steps = np.array([[12.0, 12.0], [NAN, 15.0], [NAN, NAN], [INF, INF]])
    one = walks(
        4, 3, steps=[10, 14, 20], times=[5.0, 6.0, 9.0], observables={"steps_to_x": steps},
        clocks={"steps_to_x": ([10, 20], [5.0, 9.0])},
    )  # fmt: skip
    found = EnsembleOf("a", [one]).tracked("steps_to_x")
    assert found.times.tolist() == [0.5, 1.5, 4, 4]
    assert found.reached.tolist() == [True, True, False, False]


def test_onsets_count_a_value_that_meets_the_threshold_and_a_falling_one():
    one = walks(2, 3, observables={"loss": np.array([[3.0, 2.0, 1.0], [3.0, 1.0, 2.0]])})
    found = EnsembleOf("a", [one])
    assert found.onsets("loss", 1.0, falling=True).times.tolist() == [2, 1]
    lasting = found.onsets("loss", 1.0, falling=True, lasting=True)
    assert (lasting.times.tolist(), lasting.reached.tolist()) == ([2, 2], [True, False])
    assert found.onsets("loss", 2.0).times.tolist() == [0, 0]
    assert onsets([[0.0, 1.0]], [0, 1], 1.0).reached.tolist() == [True]


# -- ensembles --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [INF, -INF, NAN])
@pytest.mark.parametrize("end", [0, -1])
def test_runs_with_an_end_that_is_not_finite_are_left_out(bad, end):
    one = walks(3)
    one.positions[1, end, 4, 1] = bad
    found = EnsembleOf("a", [one, walks(1, seed=3)])
    assert found.sound.tolist() == [True, False, True, True]
    assert (found.runs, len(found.initial), len(found.final)) == (3, 3, 3)


def test_a_gap_within_a_run_is_no_reason_to_leave_it_out():
    one = walks(3)
    one.positions[1, 2] = NAN
    found = EnsembleOf("a", [one])
    assert found.runs == 3
    assert found.onsets("circle_ratio", 1.2, falling=True).reached.shape == (3,)
    motion = compare(one, walks(3, seed=1), states=True, paired=True, align="none").motion
    assert np.isnan(motion.error[1, 2])
    assert np.isfinite(motion.error[1, [0, 3, 4, 5]]).all()
    assert np.isfinite(motion.error[[0, 2]]).all()


def test_arrays_keep_their_number_type_and_whole_numbers_become_floats():
    array = noise(2, 3, 5, 2)
    for given, kept in ((array.astype(np.float32), np.float32), (array, np.float64)):
        assert EnsembleOf("a", given).parts[0].dtype == kept
    assert EnsembleOf("a", array.astype(np.float16)).parts[0].dtype == np.float64
    assert EnsembleOf("a", (10 * array).astype(np.int8)).parts[0].dtype == np.float64
    parts = EnsembleOf("a", (array, array[:1])).parts
    assert [one.runs for one in parts] == [2, 1]
    assert EnsembleOf("a", array.astype(np.float32)).final.dtype == np.float64
    assert EnsembleOf("a", array).parts[0].steps.tolist() == [0, 1, 2]


def test_quantities_are_those_that_all_parts_have_as_tables():
    def part(**shapes):
        return walks(1, 3, observables={name: np.zeros((1, 3, *shape)) for name, shape in shapes.items()})

    both = EnsembleOf("a", [part(b=(), a=(), wide=(2,)), part(a=(), b=(), c=())])
    assert both.observables == ["a", "b"]
    assert EnsembleOf("a", [part(a=()), part(a=(2,))]).observables == []
    waves = walks(1, 3, observables={"a": np.ones((1, 3), complex), "b": np.ones((1, 3), bool)})
    assert EnsembleOf("a", waves).observables == ["b"], "complex numbers have no order"
    assert EnsembleOf("a", [part(a=(), b=()), waves]).observables == ["b"]


def test_a_clock_is_counted_from_the_first_frame_and_must_be_that_of_all_files():
    one = walks(1, 3, times=[2.0, 3.0, 7.0])
    assert EnsembleOf("a", [one, one]).times.tolist() == [0, 1, 5]
    assert EnsembleOf("a", [one, walks(1, 3, times=[2.0, 3.0, 8.0])]).times is None
    assert EnsembleOf("a", [walks(1, 1)]).times is None
    found = compare([one, walks(1, 3, times=[2.0, 3.0, 8.0])], one)
    assert found.motion is None
    assert "no motion: an ensemble has a single frame, or files with different clocks" in found.notes
    assert compare(one, ensemble(noise(1, 5, 2))[:1]).motion is not None


# -- notes and options ------------------------------------------------------------------------------------


def test_notes_name_the_ensemble_that_they_are_about():
    named = walks(2, parameters={"modulus": 5})
    found = compare(walks(1), named, names=("A", "B")).notes
    assert found[:2] == (
        "A is a single run: no interval can be given for it",
        "A names no operation: classes are i + j mod 5",
    )
    assert not any("B" in note for note in found)
    found = compare(named, walks(1, seed=1), names=("A", "B"), operation=Operation(5)).notes
    assert [note for note in found if "single run" in note] == [
        "B is a single run: no interval can be given for it"
    ]
    assert not any("names no operation" in note for note in found), "it was given"
    assert not any("names no operation" in note for note in compare(named, walks(2), states=True).notes)


def test_a_scaling_at_the_edge_of_those_that_were_tried_is_noted():
    note = "the best time scaling lies at the edge of those that were tried"
    steps = np.arange(9)
    path = noise(2, 1, 5, 2, seed=4) + steps[None, :, None, None] / 8 * noise(2, 1, 5, 2, seed=5)
    first = Trajectory(path, steps)
    assert note not in compare(first, Trajectory(path, steps, 2.0 * steps), align="scaling").notes
    asked = []
    work = SimpleNamespace(
        first=EnsembleOf("a", first), second=EnsembleOf("b", first), states=True, most_pairs=9, notes=asked,
    )  # fmt: skip
    pairs = np.array([[0, 0], [1, 1]])
    edge = pytest.MonkeyPatch()
    for at, said in ((True, [note]), (False, [])):
        asked.clear()
        with edge.context() as patch:
            patch.setattr(Motion, "at_edge", lambda self, ratio, at=at: at and ratio == 1.0)
            Parts.motion(work, pairs, True, "scaling", None)
            assert asked == said
            Parts.motion(work, pairs, True, "ends", None)
            assert asked == said, "only a scaling was tried"


@pytest.mark.parametrize(("dim", "frames"), [(2, 48), (3, 16), (1, 48)])
def test_fewer_frames_are_compared_in_space(dim, frames):
    first, second = walks(2, 101, dim), walks(2, 101, dim, seed=1)
    motion = compare(first, second, states=True, align="none").motion
    assert len(motion.times) == frames
    assert (motion.times[0], motion.times[-1]) == (0, 100)
    few = compare(walks(2, 5, dim), walks(2, 5, dim, seed=1), states=True, align="none").motion
    assert few.times.tolist() == [0, 1, 2, 3, 4]


def test_thresholds_that_are_given_replace_the_usual_ones():
    values = np.tile([0.0, 0.5, 1.0], (2, 1))
    both = [walks(2, 3, seed=k, observables={"validation_accuracy": values, "x": values}) for k in (0, 1)]
    usual = compare(*both, align="none").onsets
    assert usual["validation_accuracy"].first.times.tolist() == [2, 2]
    found = compare(*both, align="none", thresholds={"x": 0.5}).onsets
    assert found["x"].first.times.tolist() == [1, 1]
    assert "validation_accuracy" not in found
    shape = compare(*both, align="none", thresholds={"circle_ratio": 0.5}).onsets
    assert shape["circle_ratio"].first.times.tolist() == [0, 0]
    with pytest.raises(InputError, match=r"quantities of both \(validation_accuracy, x\), got 'quality'"):
        compare(*both, states=True, align="none", thresholds={"quality": 0.5})


def accurate(seed, **observables):
    values = {name: np.repeat(np.array(one, float)[:, None], 2, axis=1) for name, one in observables.items()}
    return Trajectory(noise(3, 2, 5, 2, seed=seed), [0, 1], observables=values)


def test_an_accuracy_is_measured_as_such_before_it_is_that_of_a_validation():
    predicted = {"predicted_accuracy": [0.2, 0.5, 0.8]}
    only = accurate(1, **predicted, validation_accuracy=[0.3, 0.6, 0.9])
    assert compare(accurate(0), only).accuracy.bias.estimate == pytest.approx(0.1)
    both = accurate(1, **predicted, validation_accuracy=[0.3, 0.6, 0.9], accuracy=[0.2, 0.5, 0.8])
    assert compare(accurate(0), both).accuracy.bias.estimate == pytest.approx(0)
    assert compare(only, accurate(0)).accuracy.bias.estimate == pytest.approx(0.1), "those of the first"
    for wrong in (([0, 0, 0], [1, 1]), ([0, 0], [1, 1, 1])):
        shapes = [str(np.shape(one)) for one in wrong]
        with pytest.raises(InputError, match="accuracies must be two arrays, each with one value") as refused:
            compare(only, only, accuracies=wrong)
        assert str(refused.value).endswith(f"3 trained runs, got {shapes[0]} and {shapes[1]}")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"align": "scaling"},
         "align must be 'auto' or 'none' for ensembles of 5 and 7 tokens, got 'scaling'"),
        ({"paired": True}, "paired must be False for ensembles of 5 and 7 tokens, got True"),
        ({"symmetry": no_relabelling(5)},
         "symmetry must be left out for ensembles of 5 and 7 tokens, got no relabeling"),
    ],
)  # fmt: skip
def test_shapes_of_other_sizes_take_no_options_of_shapes(options, sentence):
    both = ensemble(noise(2, 5, 2)), ensemble(noise(2, 7, 2))
    with pytest.raises(InputError) as refused:
        compare(*both, **options)
    assert str(refused.value) == sentence
    for allowed in ({"align": "none"}, {"paired": False}, {}):
        found = compare(*both, **allowed)
        assert found.shapes is None
        assert (
            "5 and 7 tokens: shapes and motion are not compared, and times are left as they are"
            in found.notes
        )


# -- results as plain values ------------------------------------------------------------------------------


def test_nested_values_become_plain_ones():
    given = {
        1: (np.float32(0.5), np.int64(2), (np.bool_(True), [np.array([1.0, NAN])])),
        "interval": Interval(np.float64(1.0), -INF, INF, 3),
        "deep": {"a": ({"b": np.array([[INF]])},)},
        "word": "x", "nothing": None,
    }  # fmt: skip
    found = _plain(given)
    assert found == {
        "1": [0.5, 2, [True, [[1.0, None]]]],
        "interval": {"estimate": 1.0, "low": "-inf", "high": "inf", "count": 3},
        "deep": {"a": [{"b": [["inf"]]}]},
        "word": "x", "nothing": None,
    }  # fmt: skip
    assert [type(value) for value in found["1"][:2]] == [float, int]
    assert type(found["1"][2][0]) is bool
    json.dumps(found, allow_nan=False)


def test_a_comparison_as_a_dictionary_names_its_relabelings_and_leaves_out_their_tables():
    found = compare(walks(2), walks(3, seed=1), names=("A", "B"))
    kept = found.to_dict()
    assert kept["shapes"].keys() == {"nearest", "nearest_start", "nearest_trained", "symmetry"}
    assert kept["shapes"]["symmetry"] == {"name": "i → u i + c (mod 5)", "size": 20}
    assert kept["names"] == ["A", "B"]
    assert kept["runs"] == [2, 3]
    assert kept == json.loads(found.to_json())
    assert "\n" in found.to_json()
    assert "→" in found.to_json()


def test_tests_are_adjusted_together_in_the_order_of_their_names():
    one = compare_values("x", [1.0, 2.0, 3.0], [4.0, 5.0, 6.0])
    other = compare_values("y", [1.0, 5.0, 3.0], [2.0, 4.0, 3.0])
    at = Onsets(np.array([1.0, 2.0]), np.array([True, True]))
    late = compare_onsets("z", at, at.scaled(3.0))
    distributions, reached = _adjusted({"x": one, "y": other}, {"z": late})
    expected = analysis.stats.intervals.holm([one.p_value, other.p_value, late.p_value])
    adjusted = [found.adjusted_p_value for found in (*distributions.values(), *reached.values())]
    assert adjusted == expected.tolist()
    assert [*distributions, *reached] == ["x", "y", "z"]
    assert distributions["x"].p_value == one.p_value


# -- what is left out, and why ----------------------------------------------------------------------------


def test_onsets_that_were_recorded_are_not_read_from_the_curves():
    values = np.tile([0.0, 0.0, 0.0, 1.0], (2, 1))
    names = ("steps_to_validation_accuracy", "steps_to_b", "steps_to_a", "steps_to_d", "steps_to_c")
    recorded = {name: np.full((2, 4), 2.5) for name in names}
    both = [walks(2, 4, seed=k, observables={"validation_accuracy": values} | recorded) for k in (0, 1)]
    found = compare(*both, align="none").onsets
    assert found["validation_accuracy"].first.times.tolist() == [2.5, 2.5]
    assert [name for name in found if len(name) == 1] == ["a", "b", "c", "d"]
    assert not any(name.startswith("steps_to") for name in compare(*both, align="none").distributions)


def test_a_quantity_that_was_measured_once_gives_no_clock():
    once = walks(2, 4, observables={"x": np.ones((2, 1))}, clocks={"x": ([0], [0.0])})
    often = walks(2, 4, seed=1, observables={"x": np.tile(np.arange(4.0), (2, 1))})
    for both, name in (((once, often), "simulated"), ((often, once), "trained")):
        with pytest.raises(InputError) as refused:
            compare(*both, align="x")
        assert str(refused.value) == f"align must name a quantity that {name} has at two frames, got 'x'"


@pytest.mark.parametrize("dims", [(5, 5), (4, 5), (5, 4)])
def test_qualities_are_measured_in_few_dimensions_only(dims):
    found = compare(walks(2, 3, dims[0]), walks(2, 3, dims[1], seed=1), align="none")
    assert set(found.distributions) == {"effective_dimension", "survivors"}
    assert not found.onsets
    assert (found.simulated, found.trained) == (None, None)


def test_ensembles_of_other_numbers_of_runs_are_refused_as_pairs_without_more_words():
    with pytest.raises(InputError, match="got 2 and 3 finite runs$"):
        compare(walks(2), walks(3, seed=1), paired=True)


def test_a_factor_between_clocks_is_of_frames_that_have_one():
    times = np.array([0.0, 1.0, 2.0, 4.0])
    matched = np.array([[0.0, 2.0, NAN, 2.0], [5.0, 0.0, 6.0, INF], [NAN, 0.0, NAN, NAN]])
    found = _log_factor(matched, times)
    np.testing.assert_allclose(found, [0.0, math.log(3), NAN], atol=1e-12)
    np.testing.assert_array_equal(frame_mean(np.array([[1.0, INF, 3.0, -INF, NAN]])), [2.0])
