import json

import naive
import numpy as np
import pytest
from ensembles import ensemble, guise, noise, ring

import analysis
import physics
from analysis.circles.classes import structures
from analysis.comparison.ensembles import EnsembleOf
from analysis.stats.intervals import holm
from grokphys.report.comparing import comparison_sections, conclusion, findings
from physics import InputError, Trajectory
from physics.theory.operations import Operation

# -- where they end ----------------------------------------------------------------------------------------


def test_final_structures_and_shapes():
    circles, others = [ring(7, k) for k in (1, 2, 3)], list(noise(5, 7, 2))
    comparison = analysis.compare(ensemble(circles + others), [ensemble(circles[:1]), ensemble(others[:2])])
    assert comparison.runs == (8, 3)
    found = comparison.distributions["circles"]
    assert (found.first.estimate, found.second.estimate) == (pytest.approx(3 / 8), pytest.approx(1 / 3))
    assert found.difference.covers(3 / 8 - 1 / 3)
    assert comparison.simulated.imperfections[4] == naive.grid_imperfections(others[1])
    assert comparison.shapes.disparity.shape == (8, 3)
    np.testing.assert_allclose(comparison.shapes.nearest, 0, atol=1e-12)
    assert (comparison.shapes.nearest_start > 0.05).all()
    assert (comparison.shapes.nearest_trained > 0.01).all()
    grids = comparison.distributions["grid_imperfections"]
    ours, theirs = comparison.simulated.imperfections[3:], comparison.trained.imperfections[1:]
    assert grids.effects["Cliff's delta"].estimate == pytest.approx(naive.cliffs_delta(ours, theirs))
    assert grids.difference.estimate == pytest.approx(ours.mean() - theirs.mean())
    assert comparison.distributions["effective_dimension"].first.count == 8


def test_arrays_are_ensembles_too(particles):
    array = particles.positions.astype(np.float64)
    known = [
        Trajectory(array, np.arange(particles.frames)),
        Trajectory(array[:2] + 1, np.arange(particles.frames)),
    ]
    expected = analysis.compare(*known).table()
    assert analysis.compare(array, array[:2] + 1).table() == expected
    assert analysis.compare([array[:3], array[3:]], known[1]).table() == expected
    whole = np.round(10 * array).astype(int)
    assert analysis.compare(whole, whole).runs == (6, 6)


@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        (np.zeros((4, 5, 2)), r"an array \(4, 5, 2\) of float64"),
        (np.zeros((1, 2, 3, 2), complex), r"an array \(1, 2, 3, 2\) of complex128"),
        (np.zeros((1, 0, 3, 2)), r"an array \(1, 0, 3, 2\) of float64"),
        ("run.h5", "str"),
        (None, "NoneType"),
        ([[1, 2]], "list"),
    ],
)
def test_what_is_no_ensemble_is_refused(particles, wrong, found):
    with pytest.raises(InputError, match=rf"trained must be a Trajectory, an array .*, got {found}"):
        analysis.compare(particles, wrong)


@pytest.mark.parametrize("modulus", [None, 4, 7])
def test_imperfections_are_of_the_rule_of_the_ensemble(modulus):
    found = physics.simulate(physics.ParticleSystem(7), runs=20, steps=2)
    measured = EnsembleOf("first", [found], given=Operation(7, modulus)).last("grid_imperfections")
    expected = {m: [naive.grid_imperfections(E, m) for E in found.final] for m in (4, 7, 14)}
    assert measured.tolist() == expected[14 if modulus is None else modulus]
    assert expected[7] != expected[14]


def test_imperfections_are_those_of_the_runs_that_are_no_circles():
    circles, others = [ring(7, k) for k in (1, 2, 3)], list(noise(5, 7, 2))
    found = structures(np.stack([*circles, *others]))
    assert found.circle.tolist() == 3 * [True] + 5 * [False]
    assert (found.circles.estimate, found.circles.count) == (3 / 8, 8)
    expected = np.mean([naive.grid_imperfections(E) for E in others])
    assert (found.grid_imperfections.estimate, found.grid_imperfections.count) == (pytest.approx(expected), 5)
    assert found.imperfections.mean() != pytest.approx(expected)


def test_all_circles_or_a_single_run_leave_parts_out_and_say_so():
    comparison = analysis.compare(ensemble([ring(7, 1)]), ensemble([ring(7, 2)]))
    assert "grid_imperfections" not in comparison.distributions
    assert np.isnan(comparison.simulated.grid_imperfections.estimate)
    assert np.isnan(comparison.shapes.nearest_trained).all()
    assert "simulated is a single run: no interval can be given for it" in comparison.notes
    assert np.isnan(comparison.distributions["effective_dimension"].difference.low)


def test_the_same_distribution_twice_shows_no_difference():
    first, again = (
        physics.simulate(physics.ParticleSystem(tokens=7), runs=30, steps=40, record_every=40, first_run=k)
        for k in (0, 30)
    )
    comparison = analysis.compare(first, again)
    assert not comparison.motion.paired
    for one in comparison.distributions.values():
        assert one.difference.covers(0), one.name
        assert one.p_value > 0.01
    assert comparison.motion.alignment == "ends"


def test_runs_that_are_not_finite_are_left_out_and_counted():
    final = noise(4, 7, 2)
    final[1] = np.nan
    comparison = analysis.compare(ensemble(final), ensemble(noise(3, 7, 2, seed=1)))
    assert comparison.runs == (3, 3)
    assert "1 of 4 simulated runs are not finite and left out" in comparison.notes


# -- symmetry of the problem -------------------------------------------------------------------------------


def test_relabellings_are_those_of_the_problem():
    def compared(pairs=None, **system):
        made = physics.simulate(physics.EffectiveTheory(5, 2, pairs=pairs, **system), runs=2, steps=2)
        return len(analysis.compare(made, made).shapes.symmetry)

    assert compared(modulus=5) == 20
    assert compared() == 2
    assert compared([(0, 1), (0, 2), (1, 1)]) == 1, "a fixed training set allows what maps it onto itself"
    group = physics.direct_product(physics.cyclic(2), physics.cyclic(2))
    made = physics.simulate(physics.ParticleSystem(4, group=group), runs=2, steps=2)
    assert len(analysis.compare(made, made).shapes.symmetry) == 24


def test_classes_are_those_that_the_file_records():
    made, again = (
        physics.simulate(physics.ParticleSystem(7, modulus=3), runs=8, steps=9, seed=seed) for seed in (0, 1)
    )
    found = analysis.compare(made, [again, again])
    expected = physics.grid_imperfections(made.final, modulus=3)
    assert found.simulated.imperfections.tolist() == expected.tolist()
    assert (expected != physics.grid_imperfections(made.final)).any()
    assert not any("names no operation" in note for note in found.notes)
    nameless = analysis.compare(ensemble(noise(2, 7, 2)), made)
    assert "simulated names no operation: classes are i + j mod 7" in nameless.notes
    other = physics.simulate(physics.ParticleSystem(7), runs=2, steps=9)
    with pytest.raises(InputError, match="trained must record one operation, got i . j mod 3, i . j mod 7"):
        analysis.compare(made, [again, other])


def test_a_long_search_is_left_out_and_said():
    runs = ensemble(noise(10, 59, 8))
    comparison = analysis.compare(runs, ensemble(noise(10, 59, 8, seed=1)))
    assert len(comparison.shapes.symmetry) == 1
    assert any("are a long search" in note for note in comparison.notes)
    assert comparison.simulated is None


# -- when, and how well ------------------------------------------------------------------------------------


def curves(onsets, frames=21, tracked=False):
    """Runs whose accuracy jumps at given frames."""
    accuracy = (np.arange(frames) >= np.array(onsets)[:, None]).astype(float)
    observables = {"validation_accuracy": accuracy}
    if tracked:
        steps = np.where(np.array(onsets) < frames, onsets, np.nan)
        observables["steps_to_validation_accuracy"] = np.repeat(steps[:, None], frames, axis=1)
    positions = np.cumsum(noise(len(onsets), frames, 5, 2), axis=1)
    return Trajectory(positions, np.arange(frames), observables=observables)


@pytest.mark.parametrize("tracked", [False, True])
def test_onsets_count_runs_that_never_get_there(tracked):
    first, second = curves([2, 3, 4, 5, 99], tracked=tracked), curves([6, 8, 9, 99, 99], tracked=tracked)
    found = analysis.compare(first, second, align="none").onsets["validation_accuracy"]
    assert found.first.reached.tolist() == [True] * 4 + [False]
    assert found.first.times.tolist() == [2, 3, 4, 5, 20]
    assert found.first.median.estimate == 4
    assert found.second.median.estimate == 9
    assert found.ratio.low <= 2.2 <= found.ratio.high
    assert np.isfinite(found.paired_ratio.estimate)
    both = analysis.compare(first, second, align="none", thresholds={"validation_accuracy": 0.5})
    assert "validation_accuracy" in both.onsets


def stored(onset, last, *, tracked, every=100, runs=1):
    """One file of `last` steps whose runs reach it at a step."""
    steps = np.arange(0, last + 1, every)
    observables = {"validation_accuracy": np.tile((steps >= onset).astype(float), (runs, 1))}
    if tracked:
        reached = np.where(steps[-1] >= onset, float(onset), np.nan)
        observables["steps_to_validation_accuracy"] = np.full((runs, len(steps)), reached)
    return Trajectory(noise(runs, len(steps), 5, 2), steps, observables=observables)


@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize("order", [1, -1])
def test_every_file_has_its_own_clock_and_its_own_end(tracked, order):
    short, long = stored(99_999, 1000, tracked=tracked), stored(3000, 5000, tracked=tracked)
    found = analysis.compare([short, long][::order], [stored(400, 1000, tracked=tracked)], align="none")
    reached = found.onsets["validation_accuracy"]
    assert reached.first.times.tolist() == [1000, 3000][::order]
    assert reached.first.reached.tolist() == [False, True][::order]
    assert reached.second.times.tolist() == [400]


@pytest.mark.parametrize("tracked", [False, True])
def test_onsets_are_counted_from_the_start_of_the_recording(tracked):
    later = Trajectory(
        noise(2, 11, 5, 2),
        np.arange(1000, 1101, 10),
        np.arange(100, 110.1, 1.0),
        observables={
            "validation_accuracy": np.stack([np.arange(11) >= 4, np.zeros(11)]).astype(float),
            "status": np.stack([np.zeros(11), np.arange(11) >= 7]).astype(float),
            **({"steps_to_validation_accuracy": np.array([[1040.0] * 11, [np.nan] * 11])} if tracked else {}),
        },
    )
    other = curves([3, 4], tracked=tracked)
    found = analysis.compare(later, other, align="none").onsets["validation_accuracy"].first
    assert (found.times.tolist(), found.reached.tolist()) == ([4, 7], [True, False])


def test_a_run_that_was_stopped_was_watched_until_then():
    steps = np.arange(0, 101, 10)
    observables = {
        "validation_accuracy": np.zeros((2, 11)),
        "status": np.stack([np.zeros(11), (steps >= 40).astype(float)]),
    }
    one = Trajectory(noise(2, 11, 5, 2), steps, observables=observables)
    found = analysis.compare(one, curves([3, 4]), align="none").onsets["validation_accuracy"].first
    assert (found.times.tolist(), found.reached.any()) == ([100, 40], False)


def test_predicted_and_measured_accuracy():
    def with_observables(seed, **observables):
        values = {name: np.repeat(np.array(one)[:, None], 2, axis=1) for name, one in observables.items()}
        return Trajectory(noise(3, 2, 5, 2, seed=seed), [0, 1], observables=values)

    measured = with_observables(0, accuracy=[0.1, 0.5, 0.9], predicted_accuracy=[0.2, 0.6, 1.0])
    found = analysis.compare(with_observables(1), measured).accuracy
    assert found.bias.estimate == pytest.approx(-0.1)
    apart = (
        with_observables(0, predicted_accuracy=[0.2, 0.6, 1.0]),
        with_observables(0, accuracy=[0.2, 0.6, 1]),
    )
    assert analysis.compare(*apart).accuracy.bias.estimate == pytest.approx(0)
    assert analysis.compare(with_observables(1), with_observables(2)).accuracy is None
    given = analysis.compare(measured, measured, accuracies=([0, 0, 0], [1, 1, 1])).accuracy
    assert given.bias.estimate == 1


# -- what is decided ---------------------------------------------------------------------------------------


def test_holms_p_values():
    np.testing.assert_allclose(
        holm([0.01, 0.04, np.nan, 0.03, 0.5]), [0.04, 0.09, np.nan, 0.09, 0.5], equal_nan=True
    )
    np.testing.assert_allclose(holm([0.5, 0.6]), [1, 1])
    assert holm([]).shape == (0,)


def measured(seed, shift=0.0, runs=12, names=20):
    values = noise(names, runs, seed=seed)
    values[0] += shift
    observables = {f"x{k}": np.repeat(one[:, None], 2, axis=1) for k, one in enumerate(values)}
    return Trajectory(noise(runs, 2, 5, 2, seed=seed + 1), [0, 1], observables=observables)


def test_many_tests_are_counted_and_one_rule_decides():
    false, intervals = 0, 0
    for seed in range(10):
        found = analysis.compare(measured(seed), measured(seed + 100))
        every = [*found.distributions.values(), *found.onsets.values()]
        adjusted = holm([one.p_value for one in every])
        np.testing.assert_array_equal([one.adjusted_p_value for one in every], adjusted)
        assert found.tests == np.isfinite(adjusted).sum() >= 20
        false += any(one.differs for one in every)
        intervals += any(not one.difference.covers(0) for one in found.distributions.values())
    assert intervals >= 4, "of twenty intervals one is often wrong"
    assert false <= 1
    found = analysis.compare(measured(0, 3.0), measured(100))
    row = next(row for row in found.table() if row["quantity"] == "x0" and row["statistic"] == "difference")
    assert row["adjusted_p_value"] == found.distributions["x0"].adjusted_p_value > row["p_value"]
    assert json.loads(found.to_json())["distributions"]["x0"]["adjusted_p_value"] == row["adjusted_p_value"]
    (text,) = findings(found)
    assert "A difference is shown in x0 (higher in simulated" in text
    assert f"adjusted p among the {found.tests} tests" in text
    table = comparison_sections(found, [measured(0, 3.0)], [measured(100)])[0].tables[0]
    answers = {row[0]: row[-1] for row in table.rows}
    assert answers["x0"] == "yes"
    assert {name for name, word in answers.items() if word == "yes"} == {
        name for name, one in found.distributions.items() if one.differs
    }
    assert conclusion(found)[0].startswith("The simulated and the trained runs differ in 1 of the")
    assert len(conclusion(found)) == 3


def test_what_is_said_to_differ_has_no_interval_that_holds_0():
    """Outliers of one side: the means differ by the permutation test, Cliff's delta does not."""
    rng = np.random.default_rng(0)
    said = 0
    for _ in range(40):
        x, y = rng.standard_normal(30), rng.standard_normal(30)
        x[:4] += 12
        one = analysis.stats.compare_values("x", x, y)
        said += one.p_value < 0.05 and one.effects["Cliff's delta"].covers(0)
        intervals = [one.difference, *one.effects.values()]
        assert one.differs == (one.p_value < 0.05 and not any(each.covers(0) for each in intervals))
    assert said > 0


# -- what comes out ----------------------------------------------------------------------------------------


def test_every_number_is_in_the_table_and_in_the_json(particles):
    comparison = analysis.compare(particles, guise(particles))
    rows = comparison.table()
    assert {row["part"] for row in rows} >= {"distribution", "motion"}
    scale = next(row for row in rows if row["statistic"] == "scale")
    assert scale["estimate"] == comparison.motion.scale.estimate
    kept = json.loads(comparison.to_json())
    assert kept["motion"]["scale"]["low"] == comparison.motion.scale.low
    assert kept["distributions"]["quality"]["effects"]["Hedges' g"]["count"] == 12
    assert kept["shapes"]["symmetry"]["size"] == 42
    single = json.loads(analysis.compare(ensemble([ring(7, 1)]), ensemble([ring(7, 2)])).to_json())
    assert single["shapes"]["nearest_trained"] == [None], "NaN is null in JSON"


def test_ensembles_of_different_numbers_of_tokens_have_structures_and_onsets_in_common():
    few = ensemble([*[ring(5, 1)] * 3, *noise(5, 5, 2)])
    many = ensemble([*[ring(11, 2)] * 4, *noise(2, 11, 2)])
    found = analysis.compare(few, many)
    assert (found.runs, found.shapes, found.motion) == ((8, 6), None, None)
    assert any(note.startswith("5 and 11 tokens: shapes and motion are not compared") for note in found.notes)
    alone = analysis.compare(many, many, paired=True)
    for name, one in found.distributions.items():
        if name != "grid_imperfections":
            assert one.second.estimate == alone.distributions[name].second.estimate, name
    assert {"circles", "quality", "effective_dimension"} <= set(found.distributions)
    share, counts = (one.distributions["grid_imperfections"].samples[1] for one in (found, alone))
    np.testing.assert_allclose(share, counts / 66)
    reached = found.onsets["lasting circle"]
    assert reached.second.median.estimate == alone.onsets["lasting circle"].second.median.estimate
    assert json.loads(found.to_json())["shapes"] is None


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: analysis.compare(ensemble(noise(2, 5, 2)), ensemble(noise(2, 7, 2)), paired=True),
         "paired must be False for ensembles of 5 and 7 tokens, got True"),
        (lambda: analysis.compare(ensemble(noise(2, 5, 2)), ensemble(noise(2, 7, 2)), align="ends"),
         "align must be 'auto' or 'none' for ensembles of 5 and 7 tokens, got 'ends'"),
        (lambda: analysis.compare(ensemble(noise(1, 5, 2)), ensemble(noise(1, 7, 2)),
                                  symmetry=analysis.comparison.symmetry_of(physics.cyclic(5))),
         "symmetry must be left out for ensembles of 5 and 7 tokens"),
        (lambda: analysis.compare(ensemble(noise(1, 5, 2)), ensemble(noise(1, 7, 2)), states=True),
         "states must have the same number of tokens and of axes, got (5, 2) and (7, 2)"),
        (lambda: analysis.compare(ensemble(np.full((1, 5, 2), np.nan)), ensemble(noise(1, 5, 2))),
         "the first and last frames of simulated must be finite in at least one run, got NaN or infinite"),
        (lambda: analysis.compare(ensemble(np.ones((1, 5, 2))), ensemble(noise(1, 5, 2))),
         "first must not hold a shape whose tokens all coincide"),
        (lambda: analysis.compare([], ensemble(noise(1, 5, 2))),
         "simulated must hold at least one Trajectory or array, got none"),
        (lambda: analysis.compare(ensemble(noise(1, 5, 2)), [ensemble(noise(1, n, 2)) for n in (5, 7)]),
         "trained must agree in tokens and dimensions, got [(5, 2), (7, 2)]"),
        (lambda: analysis.compare(ensemble(noise(1, 5, 2)), ensemble(noise(1, 5, 2)), align="mood"),
         "align must be 'auto', 'scaling', 'ends', 'none', or a quantity of both (circle_ratio, eff"),
        (lambda: analysis.compare(ensemble(noise(2, 5, 2)), ensemble(noise(3, 5, 2)), paired=True),
         "paired must be False unless the same runs of both are finite, got 2 and 3"),
        (lambda: analysis.compare(ensemble(noise(2, 5, 2)), ensemble(noise(2, 5, 2), noise(2, 5, 2, seed=9)),
                                  align="scaling"),
         "align must be 'auto', 'ends', 'none' or a quantity of both for runs"),
        (lambda: analysis.compare(ensemble(noise(2, 5, 2)), ensemble(noise(2, 5, 3)), states=True),
         "states must have the same number of tokens and of axes, got (5, 2) and (5, 3)"),
        (lambda: analysis.compare(ensemble(noise(2, 5, 2)), ensemble(noise(2, 5, 2)), thresholds={"mood": 1}),
         "thresholds must name quantities of both (circle_ratio, quality), got 'mood'"),
        (lambda: analysis.compare(ensemble(noise(2, 5, 2)), ensemble(noise(2, 5, 2)), accuracies=([1], [1])),
         "accuracies must be two arrays, each with one value for each of the 2 trained "
         "runs, got (1,) and (1,)"),
        (lambda: analysis.compare(ensemble(noise(2, 5, 2)), ensemble(noise(2, 5, 2)), accuracies=("a", "b")),
         "accuracies must be an array of real numbers, got"),
        (lambda: analysis.compare(ensemble(noise(2, 5, 2)), ensemble(noise(2, 5, 2)), thresholds=["quality"]),
         "thresholds must map names to numbers, got ['quality']"),
        (lambda: analysis.compare(ensemble(noise(2, 5, 2)), ensemble(noise(2, 5, 2)),
                                  thresholds={"quality": "x"}),
         "thresholds of quality must be a finite number, got 'x'"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_refused(call, sentence):
    with pytest.raises(InputError) as error:
        call()
    assert str(error.value).startswith(sentence)
