"""Figures fit for a paper: colors that every reader can tell apart, letters that can be read in print."""

import dataclasses
import itertools
import re
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure
from pictures import SMALLEST, letters

import physics
from analysis.comparison.motion import Motion
from analysis.comparison.timing import Onsets
from analysis.phases.classification import PHASES
from analysis.plots import palette
from analysis.plots.comparison import (
    show_calibration,
    show_error,
    show_matching_times,
    show_onsets,
    show_typical_pair,
)
from analysis.plots.distributions import show_distributions, show_estimates
from analysis.plots.embeddings import show_embedding
from analysis.plots.phases import COLORS
from analysis.plots.signals import show_coefficients, show_lines, show_signals
from analysis.plots.style import legend_below, panels, style
from analysis.stats.calibration import calibrate
from analysis.stats.intervals import Interval, mean

ROOT = Path(__file__).parents[3]

# Machado, Oliveira and Fernandes (2009), severity 1: what a dichromat sees of linear red, green and blue.
SEEN = {
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
    "grey": [[0.2126729, 0.7151522, 0.0721750]] * 3,
    "normal sight": np.eye(3),
}
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)


def rgb(color):
    return [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]


def cielab(colors, seen):
    """CIELAB coordinates of sRGB colors (n, 3), as somebody sees them."""
    given = np.asarray(colors, float)
    linear = np.where(given <= 0.04045, given / 12.92, ((given + 0.055) / 1.055) ** 2.4)
    white = XYZ.sum(axis=1)
    x = np.clip(linear @ np.transpose(SEEN[seen]), 0, 1) @ XYZ.T / white
    f = np.where(x > 216 / 24389, np.cbrt(x), (24389 / 27 * x + 16) / 116)
    return np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], axis=1)


def test_cielab_of_known_colors():
    found = cielab([[1, 1, 1], [0, 0, 0], [1, 0, 0]], "normal sight")
    np.testing.assert_allclose(found, [[100, 0, 0], [0, 0, 0], [53.24, 80.09, 67.20]], atol=0.05)
    np.testing.assert_allclose(cielab([[1, 0, 0], [0, 0, 1]], "grey")[:, 1:], 0, atol=0.05)


@pytest.mark.parametrize("seen", SEEN)
@pytest.mark.parametrize("count", [2, 3, 4, 5, 10, 16, 17, 59, 113])
def test_neighboring_classes_can_be_told_apart(count, seen):
    lab = cielab(palette.class_colors(count)[:, :3], seen)
    assert np.linalg.norm(lab - np.roll(lab, 1, axis=0), axis=1).min() >= 10


@pytest.mark.parametrize("seen", SEEN)
@pytest.mark.parametrize("colors", [palette.SERIES, tuple(palette.PHASES.values())], ids=["series", "phases"])
def test_curves_and_phases_can_be_told_apart(colors, seen):
    lab = cielab([rgb(color) for color in colors], seen)
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(lab, 2)) >= 10


def test_each_phase_has_one_color_everywhere():
    assert tuple(palette.PHASES) == PHASES
    assert COLORS is palette.PHASES


def test_no_figure_has_a_color_of_its_own():
    written = re.compile(r"""["'](#[0-9a-fA-F]{3,8})["']|color=["'](?!none)[a-z]+["']""")
    files = [*(ROOT / "analysis").rglob("*.py"), *(ROOT / "grokphys/papers").rglob("*.py")]
    files += (ROOT / "grokphys/report").rglob("*.py")
    found = {path.name for path in files if written.search(path.read_text("utf-8"))}
    assert found == {"palette.py"}


def test_the_style_draws_curves_in_the_colors_of_the_palette():
    with plt.style.context("analysis.plots.grokphys"):
        colors = plt.rcParams["axes.prop_cycle"].by_key()["color"]
    assert tuple(colors) == palette.SERIES


@pytest.mark.parametrize("width", [5.0, 7.2, 13.0])
def test_letters_can_be_read_in_print(width):
    times, signals = np.arange(6), np.random.default_rng(0).uniform(size=(6, 8))
    with style(width):
        figure = Figure(figsize=(width, 6))
        axes = figure.subplots(2, 3).flat
    show_embedding(signals[:, :2], axes[0], title="an embedding")
    show_signals(times, signals, axes[1], marked=[2, 5], rollout=signals)
    show_coefficients(signals[:, :6], axes[2], marked=[3])
    show_lines(times, signals, axes[3], xlabel="step", ylabel="state")
    show_distributions({"A": signals[0], "B": []}, axes[4], xlabel="x")
    show_estimates([("row", 1.0, mean(signals[0]))], axes[5], xlabel="x")
    figure.draw_without_rendering()
    assert min(letters(figure)) >= SMALLEST


@pytest.mark.parametrize("below", [True, False])
def test_a_legend_hides_no_data(below):
    ax = panels(1, 1, 5, 4)[0, 0]
    for k in range(5):
        ax.plot([0, 1], [k, 1], label=f"curve number {k}")
    ax.set(xlabel="time" if below else "", ylabel="value")
    legend = legend_below(ax)
    ax.figure.draw_without_rendering()
    box = legend.get_window_extent()
    assert box.y1 <= ax.get_window_extent().y0
    if below:
        assert box.y1 <= ax.xaxis.label.get_window_extent().y0
    assert box.y0 >= -1


def test_marked_signals_look_different_and_the_others_are_grey():
    ax = show_signals(np.arange(3), np.ones((3, 12)), marked=range(1, 11))
    looks = [
        (line.get_color(), line.get_linestyle()) for line in ax.lines if line.get_color() != palette.DEAD
    ]
    assert len(looks) == len(set(looks)) == 10


def test_an_interval_ends_where_the_quantity_does():
    found = mean([100.0, 90.0]).within(0, 100)
    assert found.high == 100
    assert found.low == mean([100.0, 90.0]).low
    assert found.estimate == 95
    assert np.isnan(Interval(1.0, np.nan, np.nan, 1).within(0, 100).low)


def test_a_diagonal_stands_where_prediction_and_measurement_agree():
    values = np.linspace(0.2, 0.9, 8)
    ax = show_calibration(calibrate(values, values))
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), ax.lines[0].get_ydata())
    assert ax.lines[0].get_color() == palette.REFERENCE


def test_a_plot_can_be_stored_as_vector_graphics(tmp_path):
    figure = physics.example("ding").plot("signals").figure
    figure.savefig(tmp_path / "signals.svg")
    assert "Fourier signal" in (tmp_path / "signals.svg").read_text("utf-8")


def test_labels_of_a_large_matrix_do_not_overlap():
    ax = panels(1, 1, 2.5, 2.5)[0, 0]
    show_coefficients(np.eye(29), ax, marked=[7, 8, 25])
    ax.figure.draw_without_rendering()
    labels = [label for label in ax.get_xticklabels() if label.get_text()]
    for shown in (labels, [label for label in ax.get_yticklabels() if label.get_text()]):
        boxes = [label.get_window_extent() for label in shown]
        assert not any(left.overlaps(right) for left, right in itertools.combinations(boxes, 2))
    bold = {label.get_text() for label in labels if label.get_fontweight() == "bold"}
    assert bold == {"7", "8", "25"}, "every frequency that is marked has a label"
    for n, axis in enumerate((ax.xaxis, ax.yaxis)):
        names = [int(label.get_text()) - 1 for label in axis.get_majorticklabels()]  # rows count from 0
        lines = ax.texts[n * len(names) : (n + 1) * len(names)]
        assert [line.xy[n] for line in lines] == names, "a line begins at each row"
        assert [line.xyann[n] for line in lines] == axis.get_majorticklocs().tolist(), "and ends at its label"


def motion_of(error, chance, matched, scale):
    times = np.arange(error.shape[1]) * 2.0
    pairs = np.stack([np.arange(len(error))] * 2, axis=1)
    labels = np.tile(np.arange(3), (len(error), 1))
    whole = Interval(0.5, 0.4, 0.6, len(error))
    return Motion(pairs, True, labels, "scaling", scale, times, matched, error, chance, whole, whole)


def band(area):
    """Corners of a shaded band, rounded."""
    return {tuple(corner) for corner in np.round(area.get_paths()[0].vertices, 9).tolist()}


def test_errors_are_drawn_as_medians_with_quartiles():
    rng = np.random.default_rng(3)
    error, chance = rng.exponential(size=(9, 5)), 1 + rng.exponential(size=(7, 5))
    error[:, 4], error[2, 1] = np.nan, np.nan  # no counterpart: the frame is left out, or the pair
    motion = motion_of(error, chance, np.ones((9, 5)), Interval(1.0, 0.9, 1.1, 9))
    for paired, by_chance in ((True, "runs paired at random"), (False, "two runs of A")):
        ax = show_error(dataclasses.replace(motion, paired=paired), ("A", "B"), ylabel="gap", title="above")
        assert [line.get_label() for line in ax.lines] == [by_chance, "a run of A and one of B"]
        assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title(loc="left")) == ("time, B", "gap", "above")
        for line, area, values in zip(ax.lines, ax.collections, (chance, error), strict=True):
            kept = [column[np.isfinite(column)] for column in values.T if np.isfinite(column).any()]
            times = motion.times[: len(kept)]
            quartiles = np.array([np.percentile(column, (25, 50, 75)) for column in kept])
            np.testing.assert_array_equal(line.get_xdata(), times)
            np.testing.assert_allclose(line.get_ydata(), quartiles[:, 1], rtol=1e-12)
            for end in (0, 2):
                ends = np.round(np.stack([times, quartiles[:, end]], axis=1), 9)
                assert {tuple(corner) for corner in ends.tolist()} <= band(area)
    nothing = dataclasses.replace(motion, chance=np.full((1, 5), np.nan))
    assert len(show_error(nothing, ("A", "B")).lines) == 1


def test_times_that_match_are_drawn_for_each_pair_and_named():
    scale = Interval(0.5, 0.4, 0.75, 2)
    matched = np.array([[0.0, 1, 2, 3], [0, 2, 4, np.nan]])
    motion = motion_of(np.ones((2, 4)), np.ones((2, 4)), matched, scale)
    ax = show_matching_times(motion, ("A", "B"), title="above")
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title(loc="left")) == ("time, B", "time, A", "above")
    drawn = [line.get_ydata() for line in ax.lines]
    for found, wanted in zip(drawn, [*matched, motion.times * 0.5], strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert all((line.get_xdata() == [0, 2, 4, 6]).all() for line in ax.lines)
    assert {(6.0, 2.4), (6.0, 4.5), (2.0, 0.8), (2.0, 1.5)} <= band(ax.collections[0])
    same = dataclasses.replace(motion, matched=matched[[0, 0]], scale=Interval(0.5, np.nan, np.nan, 1))
    ax = show_matching_times(same, ("A", "B"))
    assert (len(ax.lines), len(ax.collections)) == (1, 0)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), matched[0])


def test_onsets_are_drawn_as_fractions_that_rise():
    """By Kaplan and Meier: of the three runs that are left at time 3, one reaches it and one ends."""
    first = Onsets(np.array([1.0, 2, 4, 5]), np.array([True, True, True, False]))
    second = Onsets(np.array([2.0, 3, 3, 6]), np.array([True, True, False, True]))
    ax = show_onsets(SimpleNamespace(first=first, second=second, name="time_of_onset"), ("A", "B"))
    assert [line.get_label() for line in ax.lines] == ["A: 3 of 4", "B: 3 of 4"]
    assert ax.get_title(loc="left") == "time of onset"
    assert [line.get_color() for line in ax.lines] == [palette.FIRST, palette.SECOND]
    reached = ([(1, 0.25), (2, 0.5), (4, 0.75), (5, 0.75)], [(2, 0.25), (3, 0.5), (6, 1.0)])
    for line, wanted in zip(ax.lines, reached, strict=True):
        assert line.get_drawstyle() == "steps-post"
        x, y = line.get_data()
        for time, fraction in wanted:
            np.testing.assert_allclose(y[x == time], fraction)
        assert (y[x < wanted[0][0]] == 0).all()


def test_the_typical_pair_is_shown_at_times_that_match():
    """States on a line, twice as fast in the second: the first is drawn at twice the time."""
    steps, rates = np.arange(9), np.array([1.0, -2.0, 0.5])
    squares = rates[:, None] * steps[:, None, None].astype(float) ** 2
    first = physics.Trajectory(squares[None], steps)
    second = physics.Trajectory(4 * squares[None, :5], steps[:5])
    comparison = SimpleNamespace(
        names=("A", "B"),
        shapes=None,
        motion=dataclasses.replace(
            motion_of(np.zeros((1, 5)), np.zeros((1, 5)), 2.0 * steps[None, :5], Interval(2.0, 2.0, 2.0, 1)),
            times=steps[:5].astype(float),
        ),
    )
    left, right = show_typical_pair(comparison, [first], [second])[0]
    assert (left.get_title(loc="left"), right.get_title(loc="left"), left.get_xlabel()) == (
        "A",
        "B",
        "time, B",
    )
    for ax in (left, right):
        assert len(ax.lines) == 3
        for line, rate in zip(ax.lines, rates, strict=True):
            np.testing.assert_array_equal(line.get_xdata(), steps[:5])
            np.testing.assert_allclose(line.get_ydata(), 4 * rate * steps[:5] ** 2)
