"""Comparisons of two ensembles: structures, shapes, onsets on one clock, accuracies, and what is left out."""

import json
import math

import naive
import numpy as np
import pytest
from ensembles import ensemble, guise, noise, ring
from scipy import stats
from scipy.spatial import procrustes

import analysis
import physics
from analysis import compare
from analysis.circles.classes import structures
from analysis.comparison.compared import MEASURES, EnsembleOf
from analysis.comparison.relabelling import no_relabelling
from analysis.stats.intervals import Interval, difference, mean
from physics import InputError, Trajectory
from physics.theory.operations import Operation

# -- where they end ----------------------------------------------------------------------------------------


def test_intervals_of_few_runs_end_at_what_is_possible():
    """Student's intervals of three runs reach below no imperfection and above the dimension of the plane."""
    found = compare(ensemble(list(noise(3, 7, 2))), ensemble(list(noise(3, 7, 2)[::-1] * [1.0, 0.3])))
    limits = {
        "grid_imperfections": (0, 28), "effective_dimension": (1, 2), "quality": (0, 1), "survivors": (0, 3)
    }  # fmt: skip
    cut = 0
    for name, (least, most) in limits.items():
        each = found.distributions[name]
        for side, values in zip((each.first, each.second), each.samples, strict=True):
            assert least <= side.low <= side.estimate <= side.high <= most
            cut += mean(values).low < least or mean(values).high > most
        assert least - most <= each.difference.low <= each.difference.high <= most - least
    assert cut > 1


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


def test_the_same_distribution_twice_shows_no_difference():
    first, again = (
        physics.simulate(physics.ParticleSystem(tokens=7), runs=30, steps=40, record=40, first_run=k)
        for k in (0, 30)
    )
    comparison = analysis.compare(first, again)
    assert not comparison.motion.paired
    for one in comparison.distributions.values():
        assert one.difference.covers(0), one.name
        assert one.p_value > 0.01
    assert comparison.motion.alignment == "ends"


# -- symmetry of the problem -------------------------------------------------------------------------------


def test_relabellings_are_those_of_the_problem():
    def compared(pairs=None, **system):
        made = physics.simulate(physics.EffectiveTheory(5, 2, pairs=pairs, **system), runs=2, steps=2)
        return len(analysis.compare(made, made).shapes.symmetry)

    assert compared(modulus=5) == 20
    assert compared() == 2
    assert compared([(0, 1), (0, 2), (1, 1)]) == 1, "a fixed training set allows what maps it onto itself"
    group = physics.theory.direct_product(physics.cyclic(2), physics.cyclic(2))
    made = physics.simulate(physics.ParticleSystem(4, group=group), runs=2, steps=2)
    assert len(analysis.compare(made, made).shapes.symmetry) == 24


@pytest.mark.parametrize("pairs", [5, "all", [[0, 9]], [[0, 1, 2]]])
def test_a_recorded_training_set_that_is_no_table_of_pairs_is_refused(pairs):
    made = Trajectory(noise(3, 2, 5, 2), [0, 1], parameters={"system": {"modulus": 5, "pairs": pairs}})
    with pytest.raises(InputError, match="simulated: pairs must"):
        analysis.compare(made, made)


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


P = 5


def least(a, b, *, relabelled=True):
    """Smallest disparity over the affine relabelings of five tokens."""
    orders = (
        [(u * np.arange(P) + s) % P for u in range(1, P) for s in range(P)] if relabelled else [np.arange(P)]
    )
    return min(procrustes(b, a[order])[2] for order in orders)


@pytest.fixture(scope="module")
def both():
    return ensemble(noise(4, P, 2, seed=1), noise(4, P, 2, seed=2)), ensemble(noise(3, P, 2, seed=3))


@pytest.mark.parametrize("relabelled", [True, False])
def test_each_shape_has_its_nearest_ones_among_three_ensembles(both, relabelled):
    first, second = both
    symmetry = None if relabelled else no_relabelling(P)
    found = compare(first, second, symmetry=symmetry).shapes

    def among(shapes, *, others=False):
        return [
            min(least(a, b, relabelled=relabelled) for k, a in enumerate(shapes) if not others or k != n)
            for n, b in enumerate(second.final)
        ]

    expected = [[least(a, b, relabelled=relabelled) for b in second.final] for a in first.final]
    np.testing.assert_allclose(found.disparity, expected, atol=1e-9)
    np.testing.assert_allclose(found.nearest, among(first.final), atol=1e-9)
    np.testing.assert_allclose(found.nearest_start, among(first.initial), atol=1e-9)
    np.testing.assert_allclose(found.nearest_trained, among(second.final, others=True), atol=1e-9)
    assert list(found.distances(("a", "b"))) == ["a, final", "a, start", "other b"]
    for name, values in found.distances(("a", "b")).items():
        own = {"a, final": found.nearest, "a, start": found.nearest_start, "other b": found.nearest_trained}
        assert values is own[name]


def test_a_run_is_compared_with_its_nearest_or_with_that_of_its_number(both):
    first, second = both
    whole = compare(first, second)
    assert not whole.motion.paired
    np.testing.assert_array_equal(whole.motion.pairs[:, 0], whole.shapes.disparity.argmin(axis=0))
    np.testing.assert_array_equal(whole.motion.pairs[:, 1], [0, 1, 2])
    again = Trajectory(first.positions[:, :, :, ::-1] * 2.0, first.steps)
    together = compare(first, again)
    assert together.motion.paired
    assert together.motion.pairs.tolist() == [[k, k] for k in range(4)]
    np.testing.assert_allclose(compare(first, again, align="none").motion.error, 0, atol=1e-9)
    assert not compare(first, again, paired=False).motion.paired
    with pytest.raises(
        InputError, match="paired must be False unless the same runs of both are finite, got 4 and 3"
    ):
        compare(first, second, paired=True)


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


def test_a_circle_lasts_from_the_frame_after_which_its_ratio_stays_below_1_2():
    circle, loose = ring(5, 1), ring(5, 1) * np.array([1.0, 1.0, 1.0, 1.0, 1.25])[:, None]
    tight = ring(5, 1) * np.array([1.0, 1.0, 1.0, 1.0, 1.15])[:, None]
    runs = [[circle, loose, tight, circle, tight, circle], [loose, loose, loose, loose, tight, tight]]
    one = Trajectory(np.array([*runs, [loose] * 6]), FRAMES)
    found = compare(one, reaching([2, 3]), align="none").onsets["lasting circle"].first
    assert found.times.tolist() == [2, 4, 5]
    assert found.reached.tolist() == [True, True, False]


# -- which runs -------------------------------------------------------------------------------------------


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
    assert compare(accuracies(0, **predicted), accuracies(0, **measured)).accuracy.bias.estimate < 0
    given = compare(accuracies(0), accuracies(1), accuracies=([0, 0, 0], [1, 1, 1])).accuracy
    assert given.bias.estimate == 1
    assert compare(accuracies(0), accuracies(1)).accuracy is None


# -- the table --------------------------------------------------------------------------------------------


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
    assert one.last("validation_accuracy").tolist() == [1, 1, 0]
    assert one.times.tolist() == np.arange(0, 5.1, 0.5).tolist()
    still = EnsembleOf("a", [sparse([[0.0]], steps=(10,))])
    assert still.onsets("validation_accuracy", 0.9) is None, "a single measurement is no course"


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
