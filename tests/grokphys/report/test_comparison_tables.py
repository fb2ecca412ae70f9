"""The tables and sentences of a comparison: each cell is recomputed from the numbers that it shows."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from analysis.comparison.timing import OnsetDifference, Onsets
from analysis.stats.effects import Difference
from analysis.stats.intervals import Interval
from grokphys.report import comparing
from grokphys.report.page import document
from grokphys.report.wording import median_time

NONE = Interval(math.nan, math.nan, math.nan, 0)
SHAPES = SimpleNamespace(
    nearest=np.array([0.1, 0.2, 0.9, math.nan]),
    distances=lambda _names: {},
    symmetry=type("Named", (), {"name": "rotations", "__len__": lambda self: 34})(),
)


def difference(name, first, second, *, low=None, effect="Cliff's delta", p=0.01, adjusted=None):
    """A difference whose interval begins at `low`, by default beside 0, and contains it if `low` is below."""
    gap = first - second
    low = gap - abs(gap) / 2 if low is None else low
    return Difference(
        name,
        (np.full(9, first), np.full(9, second)),
        Interval(first, first - 1, first + 1, 9),
        Interval(second, second - 1, second + 1, 9),
        Interval(gap, low, 2 * gap - low, 9),
        {effect: Interval(0.5, 0.25, 0.75, 9), "Hedges' g": Interval(2.0, 1.0, 3.0, 9)},
        p,
        "a test",
        p if adjusted is None else adjusted,
    )


def comparison(*distributions, **others):
    """What the tables read of a comparison."""
    parts = {"motion": None, "shapes": None, "onsets": {}, "accuracy": None, "notes": ()}
    return SimpleNamespace(
        names=("simulated", "trained"),
        runs=(9, 8),
        tests=5,
        distributions={one.name: one for one in distributions},
        **(parts | others),
    )


def section(compared, title):
    """Text and table of a section of the report."""
    found = comparing._document(compared, {}, about="", pair=())
    (one,) = (one for one in found if one.title == title)
    return one.text, one.tables[0] if one.tables else None


def moved(**others):
    """A motion that was compared."""
    parts = {"pairs": np.zeros((6, 2)), "times": np.arange(11.0), "alignment": "ends", "paired": True}
    return SimpleNamespace(**parts, **{"scale": NONE, "mean_error": NONE, "chance_error": NONE} | others)


def onset(name, first, second, ratio, p=0.01, reached=True):
    both = [Onsets(np.asarray(times, float), np.full(len(times), reached)) for times in (first, second)]
    return OnsetDifference(name, *both, p, ratio, NONE, p)


# -- tables -------------------------------------------------------------------------------------------------


def test_a_row_of_final_states_shows_both_sides_the_difference_and_the_answer():
    both = difference("circles", 0.5, 0.25, effect="Cohen's h"), difference("train loss", 3.0, 1.0)
    _, found = section(comparison(*both), "Side by side")
    assert found.header == [
        "quantity", "simulated", "trained", "difference", "effect", "adjusted p", "different?"
    ]  # fmt: skip
    circles, loss = found.rows
    assert circles[:3] == ["circles, %", "50 [-50, 150]", "25 [-75, 125]"]
    assert circles[3:5] == ["25 [12, 38]", "h = 0.50 [0.25, 0.75]"]
    assert loss[:3] == ["train loss", "3.0 [2.0, 4.0]", "1.0 [0.0, 2.0]"]
    assert loss[3:] == ["2.0 [1.0, 3.0]", "δ = 0.50 [0.25, 0.75]", "0.010", "yes"]
    assert "of 9 simulated and 8 trained runs" in found.caption
    assert "all 5 tests" in found.caption
    assert "simulated minus trained" in found.caption


@pytest.mark.parametrize(
    ("low", "p", "adjusted", "answer"),
    [
        (1.0, 0.01, 0.04, "yes"),
        (1.0, 0.01, 0.06, "unclear"),  # the interval excludes 0, and the test does not reject
        (-1.0, 0.01, 0.04, "unclear"),  # the other way round
        (-1.0, 0.3, 0.6, "no"),
        (math.nan, 0.01, 0.04, "unknown"),
        (1.0, math.nan, math.nan, "unknown"),
    ],
)
def test_the_answer_needs_both_the_test_and_the_interval(low, p, adjusted, answer):
    one = difference("x", 3.0, 1.0, low=low, p=p, adjusted=adjusted)
    _, found = section(comparison(one), "Side by side")
    assert found.rows[0][-1] == answer


def test_a_row_of_onsets_shows_when_each_side_reaches_the_threshold():
    fast = onset("train_accuracy", [10] * 5, [30] * 4, Interval(3.0, 2.5, 3.5, 9))
    never = onset("quality", [50] * 5, [50] * 4, NONE, p=0.5, reached=False)
    late = "When thresholds are reached"
    _, found = section(comparison(onsets={"train_accuracy": fast, "quality": never}), late)
    assert found.header[:3] == ["threshold", "simulated: reached by, %", "simulated: median time"]
    assert found.header[3:6] == ["trained: reached by, %", "trained: median time", "ratio of times"]
    row = found.rows[0]
    assert row[0] == "train accuracy"
    assert (row[1], row[3]) == (fast.first.fraction.format(0, 100), fast.second.fraction.format(0, 100))
    assert (row[2], row[4]) == (median_time(fast.first), median_time(fast.second))
    assert row[1].startswith("100 [")
    assert row[2].startswith("10")
    assert row[4].startswith("30")
    assert row[5:] == ["3.0 [2.5, 3.5]", "0.010", "yes"]
    assert found.rows[1][1].startswith("0 [0, ")
    assert found.rows[1][2] == "reached by fewer than half"
    assert found.rows[1][5:] == ["-", "0.50", "no"]
    assert "multiplied by 1/τ" not in found.caption
    _, aligned = section(comparison(onsets={"train_accuracy": fast}, motion=moved()), late)
    assert "trained runs, times of simulated multiplied by 1/τ" in aligned.caption
    one_side = onset("train_accuracy", [10] * 5, [30] * 4, Interval(1.2, 0.9, 1.5, 9))
    assert section(comparison(onsets={"x": one_side}), late)[1].rows[0][-1] == "unclear"


def test_a_row_of_shapes_has_the_quartiles_of_the_finite_distances():
    distances = {"simulated, final": [0.1, 0.2, 0.3, 0.4, 0.5, math.nan], "other trained": [math.nan]}
    shapes = SimpleNamespace(**vars(SHAPES) | {"distances": lambda _names: {
        name: np.array(values) for name, values in distances.items()
    }})  # fmt: skip
    _, found = section(comparison(shapes=shapes), "Final shapes")
    assert found.rows == [
        ["simulated, final", "0.300", "0.200 to 0.400"],
        ["other trained", "-", "-"],
    ]
    assert "34 relabelings of the tokens (rotations)" in found.caption
    assert "each final trained shape" in found.caption


def test_the_errors_of_the_motion_and_of_the_predicted_accuracy_are_those_that_were_measured():
    numbers = [Interval(k + 0.5, k + 0.25, k + 0.75, 9) for k in range(4)]
    motion = moved(scale=numbers[1], mean_error=numbers[2], chance_error=numbers[3])
    motion.paired = False
    _, found = section(comparison(motion=motion), "Motion")
    assert found.caption.startswith("Means over 6 pairs of runs and 11 times")
    assert [row[1] for row in found.rows] == [
        "1.5 [1.2, 1.8]", "2.5 [2.2, 2.8]", "3.5 [3.2, 3.8]"
    ]  # fmt: skip
    assert found.rows[0][0] == "time factor τ, time of simulated in a unit of time of trained"
    assert found.rows[2][0] == "mean error of two simulated runs that end alike"
    motion.paired = True
    _, found = section(comparison(motion=motion), "Motion")
    assert found.rows[2][0] == "mean error of runs paired at random"
    accuracy = SimpleNamespace(
        predicted=np.zeros(7), bias=numbers[0], error=numbers[1], correlation=numbers[2], slope=numbers[3]
    )
    _, found = section(comparison(accuracy=accuracy), "Predicted and measured accuracy")
    assert found.rows == [["0.5 [0.2, 0.8]", "1.5 [1.2, 1.8]", "2.5 [2.2, 2.8]", "3.5 [3.2, 3.8]"]]
    assert found.header == [
        "measured minus predicted", "root mean square of that", "correlation", "slope"
    ]  # fmt: skip
    assert "of 7 runs" in found.caption


# -- sentences ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("late", "word"), [(3500, "earlier than"), (150, "later than")])
def test_the_demonstration_says_which_side_forms_its_circles_earlier_where_most_form_none(late, word):
    particles = Onsets(np.array([late, late, 5882.0, 5882.0, 5882.0]), np.arange(5) < 2)
    networks = Onsets(np.array([160.0, 220, 340, *[2000.0] * 4]), np.arange(7) < 3)
    motion = SimpleNamespace(mean_error=NONE, chance_error=NONE)
    values = {
        "c": SimpleNamespace(runs=(5, 7), motion=motion), "runs": 7, "training": NONE, "validation": NONE,
        "paper": SimpleNamespace(circle_accuracy=1, rest_accuracy=1), "circles": [2, 3], "both": 0,
        "flat": [0, 0],
    }  # fmt: skip
    *_, said = document("demo.txt", lasting=SimpleNamespace(first=particles, second=networks), **values)[
        0
    ].text
    assert f"form it {word} such particle runs: 3 at 220 of 2000 epochs and 2 at {late} of 5880," in said
    never = SimpleNamespace(first=Onsets(particles.times, np.arange(5) < 0), second=networks)
    assert "form it" not in document("demo.txt", lasting=never, **values)[0].text[-1]
