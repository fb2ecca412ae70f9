"""What reports say in rare cases: equal bounds, one quantity, a run that diverged, signals that are none."""

import base64
import csv
import io
import math
from dataclasses import asdict, replace
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

import nets
import physics
from analysis import Axis, Signals
from analysis.circles.structures import structures
from analysis.compare.onsets import OnsetDifference, Onsets
from analysis.phases.cells import Cell, Run
from analysis.phases.diagram import PhaseDiagram
from analysis.stats.intervals import Interval
from grokphys.report import circles, comparing, laws, musat, survival
from grokphys.report.conclusion import conclusion
from grokphys.report.page import DPI, Picture
from grokphys.report.phases import write_diagrams
from grokphys.report.side_by_side import onset_table
from grokphys.report.wording import explained, listed, median_time, rounded, significant
from nets.provenance import training_sets
from physics import InputError
from physics.theory.quality import predicted_accuracy

INF, NAN = math.inf, math.nan


def compared(**parts):
    given = {"motion": None, "shapes": None, "onsets": {}, "accuracy": None, "distributions": {}}
    return SimpleNamespace(names=("one", "other"), runs=(3, 4), tests=1, **(given | parts))


@pytest.mark.parametrize(
    ("error", "word"),
    [
        ((0.1, 0.3), "closer together than"), ((0.1, 0.4), "about as far apart as"),
        ((0.6, 0.8), "about as far apart as"), ((0.7, 0.8), "farther apart than"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("paired", [True, False])
def test_intervals_that_touch_do_not_tell_errors_apart(error, word, paired):
    chance = Interval(0.5, 0.4, 0.6, 9)
    motion = SimpleNamespace(mean_error=Interval(0.25, *error, 9), chance_error=chance, paired=paired)
    by = "runs paired at random" if paired else "two one runs that end alike"
    said = conclusion(compared(motion=motion))[1]
    assert said == (
        f"Over time, a other run and its one counterpart are {word} {by}: their mean distance is 0.25, "
        "compared with 0.50."
    )


def test_one_quantity_is_called_the_one():
    def found(differs, estimate):
        return SimpleNamespace(name="loss", differs=differs, difference=Interval(estimate, 0, 0, 9))

    both = "The one and the other runs differ in the one quantity compared: loss"
    none = "No difference between the one and the other runs is shown in the one quantity compared."
    for differs, estimate, said in (
        (False, 1.0, none),
        (True, 1.0, f"{both} (higher in the one runs)."),
        (True, -1.0, f"{both} (lower in the one runs)."),
    ):
        assert conclusion(compared(distributions={"loss": found(differs, estimate)}))[0] == said


def test_a_ratio_of_one_pair_says_so():
    both = [Onsets(np.array(times, float), np.ones(2, bool)) for times in ([1, 2], [3, 4])]
    none = Interval(NAN, NAN, NAN, 0)

    def row(ratio):
        one = OnsetDifference("x_y", *both, 0.5, ratio, none, 0.5)
        return onset_table(compared(onsets={"x_y": one})).rows[0]

    assert row(Interval(2.5, NAN, NAN, 1))[5:] == ["2.5 (one pair)", "0.50", "unknown"]
    assert row(Interval(2.5, 0.5, 3.5, 2))[5] == "2.5 [0.5, 3.5]"
    never = Onsets(np.array([9.0, 9.0]), np.zeros(2, bool))
    for sides, text in (((both[0], never), "2.5 (at least 2)"), ((never, both[0]), "2.5 (at least 2)"),
                        ((never, never), "undetermined")):  # fmt: skip
        one = OnsetDifference("x", *sides, 0.5, Interval(2.5, 2.0, INF, 3), none, 0.5)
        assert onset_table(compared(onsets={"x": one})).rows[0][5] == text


@pytest.mark.parametrize(
    ("write", "value", "text"),
    [
        (rounded, Interval(1e-4, 0.5e-4, 1e-4, 9), "0.0001 [5 × 10⁻⁵, 0.0001]"),
        (rounded, Interval(0.5, NAN, 0.75, 9), "0.5"), (rounded, Interval(0.5, 0.25, INF, 9), "0.5"),
        (rounded, Interval(-INF, -INF, 0.5, 9), "-"),
        (rounded, Interval(0.0, -0.001, 0.3, 9), "0.00 [0.00, 0.30]"),
        (significant, Interval(INF, 1.0, INF, 9), "-"),
        (significant, Interval(2.5, 2.0, INF, 9), "2.5 (at least 2)"),
        (significant, Interval(2.5, -INF, 3.0, 9), "2.5 (at most 3)"),
        (significant, Interval(2.5, 0.0, INF, 9), "2.5"), (significant, Interval(2.5, NAN, 3.0, 9), "2.5"),
        (significant, Interval(2.5, 2.0, NAN, 9), "2.5 (at least 2)"),
        (significant, Interval(2.5, 2.0, 3.0, 9), "2.5 [2.0, 3.0]"),
        (median_time, Interval(NAN, 1.0, 2.0, 9), "-"),
        (median_time, Interval(20.0, 10.0, INF, 9), "20 (at least 10)"),
        (median_time, Interval(INF, INF, INF, 9), "reached by fewer than half"),
        (median_time, Interval(INF, NAN, INF, 9), "reached by fewer than half"),
        (median_time, Interval(INF, 10.0, INF, 9), "reached by fewer than half, after 10 at the earliest"),
    ],
)  # fmt: skip
def test_open_ends_are_said_in_words(write, value, text):
    assert write(value) == text


def test_numbers_are_scaled_and_lists_cut_at_four():
    assert rounded(Interval(0.5, 0.25, 0.75, 9), 100.0) == "50 [25, 75]"
    assert listed(list("abcd")) == "a, b, c and d"
    assert listed(list("abcde")) == "a, b, c and 2 other quantities"
    assert listed(list("abc"), 2) == "a and 2 other quantities"
    assert listed(list("abcde"), 5) == "a, b, c, d and e"
    html = str(explained("grid imperfections of circles, survivors, a lasting circle"))
    assert html.count("<abbr ") == 4, "the longest term is taken"
    assert ">lasting circle</abbr>" in html


# -- laws -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.999, 4, "0.9990"), (0.9991, 4, "> 0.999"), (1.0, 4, "1"), (1.5, 4, "1"), (-1.0, 4, "-1"),
        (-0.9999, 2, "-1.00"), (-1000.0, 4, "-1000"), (-1001.0, 4, "below -1000"), (INF, 4, "overflow"),
        (0.126, 2, "0.13"),
    ],
)  # fmt: skip
def test_scores_at_their_bounds(value, digits, text):
    assert circles._r2(value, digits) == text


def test_a_law_that_fits_in_part_is_called_so():
    def scored(inside, forward):
        later = None if forward is None else SimpleNamespace(rollout=forward)
        return SimpleNamespace(in_sample=SimpleNamespace(rollout=inside), forward=later)

    part = {"a": scored(0.95, -1.0), "b": scored(0.9, -0.1), "c": scored(0.1, 0.0), "d": scored(0.2, None)}
    said = circles.forward_sentence(part, 11)
    assert said.startswith("A linear law, fitted by a and b, describes only in part the steps to which")
    assert "(R² = 0.90). " in said, "the worst of those that fail"
    assert "the next 5: a constant" in said
    assert " describes the steps" in circles.forward_sentence({"a": scored(0.91, -1.0)}, 10)
    assert "also predicts the second half" in circles.forward_sentence({"d": part["d"]}, 10)


def test_rows_of_a_fit_have_all_scores_of_their_own_run():
    rng = np.random.default_rng(2)
    runs = [({"run": k}, Signals(np.arange(12), rng.uniform(1, 2, (12, 2)), [1, 2])) for k in range(3)]
    recipe = laws.recipe_of("linear", "lasso", "0.001", 0.5, 1000, "generator", 0)
    scores = laws.fit(runs, recipe)
    for (_, run), across, row in zip(runs, scores.across, laws.rows(runs, scores, recipe), strict=True):
        own = scores.law.score([run.values], [run.steps])
        for prefix, score in (("in_sample", own), ("across_runs", across)):
            for name, value in asdict(score).items():
                np.testing.assert_equal(row[f"{prefix}_{name}"], value)
        assert (row["survivors"], row["kind"]) == ("1 2", "generator")
    alone = laws.fit(runs[:1], recipe)
    assert not any(name.startswith("across") for name in laws.rows(runs[:1], alone, recipe)[0])


@pytest.mark.parametrize("bad", [NAN, INF])
def test_signals_that_are_not_finite_are_refused_by_the_name_of_their_file(tmp_path, bad):
    signals = np.ones((2, 6, 2))
    signals[1, 3, 0] = bad
    path = tmp_path / "t.h5"
    observables = {"fourier_signals": signals}
    physics.Trajectory(np.zeros((2, 6, 5, 2)), np.arange(6), observables=observables).save(path)
    with pytest.raises(InputError, match=r"t\.h5 must hold finite signals, but some are NaN or infinite$"):
        laws.read_signals([str(path)], 0, 5, [])
    assert len(laws.read_signals([str(path)], 0, 2, [])) == 2, "outside the window"


# -- comparisons ------------------------------------------------------------------------------------------


def test_accuracies_of_runs_without_a_shape_are_not_predicted():
    names = ("train_accuracy", "validation_accuracy")
    made = nets.train(nets.ToyAddition(5, 4, hidden=(4,)), runs=4, steps=3, observables=names)
    positions = np.array(made.positions, np.float64)
    positions[1, -1, 2, 0] = NAN
    positions[2, -1, 2, 0] = INF
    positions[3, -1, :, 1] = 0.25
    observables = {name: np.array(made.observables[name]) for name in made.observables}
    observables["train_accuracy"][:, -1], observables["validation_accuracy"][:, -1] = 1.0, 0.5
    other = physics.Trajectory(positions, made.steps, observables=observables, parameters=made.parameters)
    predicted, measured = comparing.predicted_and_measured([other], 0.3)
    assert np.isfinite(predicted).tolist() == [True, False, False, False]
    model, examples = training_sets(made)
    seen = model.theory.operation.samples[examples[0]]
    assert predicted[0] == predicted_accuracy(positions[0, -1], replace(model.theory, pairs=seen), 0.3)
    part = len(seen) / len(model.task)
    np.testing.assert_allclose(measured, part + (1 - part) / 2)


def test_a_file_that_cannot_be_opened_is_left_to_the_reader(tmp_path):
    (tmp_path / "bad.h5").write_text("nothing")
    observables = {"mine": np.zeros((1, 2))}
    physics.Trajectory(np.zeros((1, 2, 5, 2)), [0, 1], observables=observables).save(tmp_path / "a.h5")
    bad, good = str(tmp_path / "bad.h5"), str(tmp_path / "a.h5")
    comparing._refuse_alignment("mine", (bad, good))
    comparing._refuse_alignment("quality", (good, good))
    comparing._refuse_alignment("ends", (good, good))
    for patterns in ((bad, good), (good, bad)):
        with pytest.raises(
            InputError, match=r"or an observable of both ensembles, got 'yours'; .*a\.h5 has "
        ):
            comparing._refuse_alignment("yours", patterns)


# -- survival and phases ----------------------------------------------------------------------------------


def test_weight_decay_that_no_file_states_is_a_dash_and_undecided_runs_have_no_median():
    from analysis.circles.signals import Circles

    signals = np.ones((2, 3, 2))
    whole = Circles(np.array([0, 5, 10]), signals, np.zeros((2, 2), bool))
    columns = [{"tokens": 5, "dim": 2, "file": "a", "run": k} for k in range(2)]
    table = survival.counts_table(columns, [whole])
    assert table.rows[0][:4] == ["5", "2", "-", "2"]
    first, second = survival.report([(columns, whole, np.zeros((2, 2)))], "run", 2, None, 2.5)
    assert first == table.text()
    assert (
        second == "No circle survives, because no final signal exceeds 2.5 times the mean. Try a lower limit."
    )
    *_, said = survival.report([(columns, whole, np.zeros((2, 2)))], "run", 2, 10.0, 2.5)
    assert "no final signal exceeds 10. Try" in said


def test_tables_of_several_diagrams_say_of_which_a_row_is(tmp_path):
    x, y = Axis("x", 0, 1, 1), Axis("y", 0, 1, 1)
    runs = [Run(0, 7.0, NAN, "memorization"), Run(1, NAN, NAN, "confusion")]
    diagram = PhaseDiagram(
        x, y, 1000, 0.9, [Cell((0.0, 1.0), (0.0, 1.0), (0.5, 0.5), 0, runs)], complete=True
    )

    def written(diagrams):
        found = []
        for path in write_diagrams(tmp_path, "d", diagrams):
            with path.open() as file:
                found.append(list(csv.DictReader(file)))
        return found

    _, alone, _ = written({"a": diagram})
    cells, both, shares = written({"a": diagram, "b": diagram})
    assert [row["diagram"] for row in both] == ["a", "a", "b", "b"]
    assert [row["diagram"] for row in cells] == ["a", "b"]
    assert {row["diagram"] for row in shares} == {"a", "b"}
    assert [next(iter(rows[0])) for rows in (cells, both, shares)] == ["diagram"] * 3
    assert "diagram" not in alone[0]
    assert [(row["train_steps"], row["validation_steps"]) for row in alone] == [
        ("7", "never"),
        ("never", "never"),
    ]
    for row in shares:
        share = diagram.shares()[row["phase"]]
        expected = (share.estimate, share.low, share.high, share.count)
        names = ("share", "share_low", "share_high", "effective_runs")
        assert tuple(float(row[name]) for name in names) == pytest.approx(expected)


# -- pictures and tables ----------------------------------------------------------------------------------


def test_a_picture_of_a_page_has_its_resolution_and_no_transparency():
    figure = Figure((3.0, 2.0), dpi=50)
    figure.subplots()
    read = Image.open(io.BytesIO(base64.b64decode(Picture("c", figure).png)))
    assert (read.size, read.mode, read.format) == ((3 * DPI, 2 * DPI), "RGB", "PNG")
    assert read.info["dpi"] == pytest.approx((DPI, DPI), abs=0.5)


def test_accuracies_end_at_what_is_possible_and_rows_at_the_last_step(monkeypatch):
    accuracy = np.zeros((8, 3))
    accuracy[:, -1] = [0.0, 0, 0, 0.1, 1, 1, 1, 0.9]
    circle = np.arange(8) < 4
    found = structures(np.random.default_rng(0).normal(size=(8, 5, 2)))
    monkeypatch.setattr(musat, "structures", lambda final: replace(found, circle=circle))
    E = np.random.default_rng(0).normal(size=(8, 3, 5, 2))
    trained = physics.Trajectory(E, [0, 3, 70], observables={"validation_accuracy": accuracy})
    section = musat.table_1({0.6: trained, 1.0: trained})
    rows = {(row[0], row[1]): row for row in section.tables[0].rows}
    assert rows["0.6", "accuracy of circles, %"][3].startswith("2.5 [0.0, 1")
    assert rows["1", "accuracy of the rest, %"][3].endswith(", 100.0]")
    assert "for 70 epochs" in section.text[0]
    assert "of 8 networks here and 100 in the paper" in section.tables[0].caption


def test_runs_of_equal_imperfections_are_chosen_in_their_order():
    count = 41
    found = SimpleNamespace(circle=np.zeros(count, bool), imperfections=np.full(count, 7))
    found.imperfections[30:] = 3
    chosen = musat.typical_runs(SimpleNamespace(final=np.zeros((count, 5, 2))), found)
    assert chosen == {"grid": 30, "imperfect grid": 9}, "eleven with 3 come first, then ten with 7"
