"""What the figures of the library show, read back from the axes."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgba
from matplotlib.figure import Figure
from pictures import lines, title
from scipy.spatial import procrustes

from analysis.circles.signals import Signals
from analysis.comparison.motion import Motion
from analysis.phases.axes import Axis
from analysis.plots import palette
from analysis.plots.comparison import (
    show_calibration,
    show_motion,
    show_nearest,
    show_quantities,
    show_typical_pair,
    typical_pair,
)
from analysis.plots.distributions import show_distributions, show_effects, show_estimates
from analysis.plots.embeddings import show_embedding
from analysis.plots.maps import plane
from analysis.plots.phases import show_phases
from analysis.plots.signals import show_lines, show_rollouts, show_signals
from analysis.stats.intervals import Interval
from physics import Trajectory

NONE = Interval(np.nan, np.nan, np.nan, 0)


def axes_():
    return Figure().subplots()


def cloud(ax, n=0):
    return np.asarray(ax.collections[n].get_offsets())


# -- points and lines -------------------------------------------------------------------------------------


def test_an_embedding_is_drawn_with_its_numbers_over_its_outline():
    E, outline = np.random.default_rng(0).normal(size=(2, 5, 3))
    ax = show_embedding(E, axes_(), outline=outline, title="above")
    rings, discs = ax.collections
    np.testing.assert_allclose(rings.get_offsets(), outline[:, :2])
    assert len(rings.get_facecolors()) == 0
    np.testing.assert_allclose(discs.get_offsets(), E[:, :2])
    np.testing.assert_allclose(discs.get_facecolors(), palette.class_colors(5))
    for token, line in enumerate(ax.lines):
        np.testing.assert_allclose(line.get_xydata(), [E[token, :2], outline[token, :2]])
    assert [(text.get_text(), text.get_position()) for text in ax.texts] == [
        (str(k), tuple(E[k, :2])) for k in range(5)
    ]
    assert title(ax) == "above"
    assert not show_embedding(E, axes_(), labels=False).texts
    room = 0.12 * np.ptp(E[:, :2], axis=0).max()
    low, high = np.array([ax.get_xlim(), ax.get_ylim()]).T
    assert (low <= E[:, :2].min(axis=0) - room + 1e-12).all()
    assert (high >= E[:, :2].max(axis=0) + room - 1e-12).all()


def test_points_on_a_line_and_their_outline_are_drawn_on_a_line():
    ax = show_embedding([[1.0], [2.0], [4.0]], axes_(), outline=[[1.5], [2.5], [3.0]])
    assert cloud(ax, 1).tolist() == [[1, 0], [2, 0], [4, 0]]
    assert cloud(ax, 0).tolist() == [[1.5, 0], [2.5, 0], [3, 0]]


def test_signals_are_drawn_in_the_order_of_the_marked_over_the_dead():
    values = np.random.default_rng(1).uniform(1, 3, (4, 3))
    ax = show_signals([0, 5, 10, 20], values, axes_(), marked=[3, 1], rollout=2 * values, title="above")
    drawn = [line for line in ax.lines if len(line.get_xdata())]
    assert [line.get_label() for line in drawn[::2]] == ["dead", "frequency 1", "frequency 3"]
    for line, dashed, k in zip(drawn[::2], drawn[1::2], (1, 0, 2), strict=True):
        assert line.get_xdata().tolist() == [0, 5, 10, 20]
        assert line.get_ydata().tolist() == values[:, k].tolist()
        assert dashed.get_ydata().tolist() == (2 * values[:, k]).tolist()
        assert dashed.get_color() == line.get_color()
        assert line.get_alpha() == 0.45
    assert [drawn[n].get_color() for n in (4, 2, 0)] == [palette.SERIES[0], palette.SERIES[1], palette.DEAD]
    assert ax.get_ylim() == pytest.approx((0, 1.05 * values.max()))
    assert ax.lines[-1].get_label() == "predicted from the first frame"
    ahead = show_signals([0, 1], np.ones((2, 3)), axes_(), marked=[1])
    assert [line.get_label() for line in ahead.lines if line.get_label()[0] != "_"] == ["dead", "frequency 1"]
    alone = show_signals([0, 1], np.zeros((2, 2)), axes_(), marked=[1, 2])
    assert [line.get_label() for line in alone.lines] == ["frequency 1", "frequency 2"]
    assert {line.get_alpha() for line in alone.lines} == {1.0}


def test_rollouts_take_frames_of_a_map_and_elapsed_steps_of_a_flow():
    steps = np.array([100, 110, 130])
    values = np.random.default_rng(2).uniform(1, 2, (3, 4))
    signals = Signals(steps, values, [2])
    asked = []

    def law(kind):
        def predict(start, times):
            asked.append((kind, start.tolist(), list(times)))
            return start + np.asarray(times)[:, None]

        return SimpleNamespace(kind=kind, predict=predict)

    axes = show_rollouts(signals, {"map": law("increment"), "flow": law("generator")})[0]
    assert asked == [
        ("increment", values[0].tolist(), [0, 1, 2]),
        ("generator", values[0].tolist(), [0, 10, 30]),
    ]
    for ax, times, name in zip(axes, ([0, 1, 2], [0, 10, 30]), ("map", "flow"), strict=True):
        assert title(ax) == name
        assert lines(ax)["frequency 2"] == (steps.tolist(), values[:, 1].tolist())
        dashed = [
            line.get_ydata().tolist()
            for line in ax.lines
            if line.get_linestyle() == "--" and len(line.get_xdata())
        ]
        assert (values[0, 1] + np.array(times)).tolist() in dashed


def test_lines_of_components_are_graded():
    states = np.random.default_rng(3).normal(size=(4, 3))
    ax = show_lines([0, 1, 3, 7], states, axes_(), title="t", xlabel="x", ylabel="y")
    for line, values, color in zip(ax.lines, states.T, palette.graded_colors(3), strict=True):
        assert line.get_xdata().tolist() == [0, 1, 3, 7]
        assert line.get_ydata().tolist() == values.tolist()
        assert to_rgba(line.get_color()) == pytest.approx(tuple(color))
    assert (title(ax), ax.get_xlabel(), ax.get_ylabel()) == ("t", "x", "y")


def test_a_grid_reaches_beyond_its_points_by_a_margin_on_each_side():
    grid, bounds = plane([[1.0, 1.0], [3.0, 1.5]], resolution=3, margin=0.25)
    assert bounds == (0.5, 3.5, -0.25, 2.75)
    assert grid.tolist() == [[x, y] for y in (-0.25, 1.25, 2.75) for x in (0.5, 2.0, 3.5)]
    _, bounds = plane([[1.0, 1.0]])
    assert bounds == pytest.approx((0.42, 1.58, 0.42, 1.58)), "a single point has a square of its own"
    grid, _ = plane([[0.0, 0.0], [1.0, 1.0]])
    assert len(grid) == 300**2


# -- estimates --------------------------------------------------------------------------------------------


def test_distributions_are_cumulative_over_finite_values():
    ax = show_distributions({"A": [3.0, 1.0, np.nan, 2.0], "B": [np.inf]}, axes_(), xlabel="x")
    (x, y) = lines(ax)["A (n = 3)"]
    assert x[1:] == [1, 2, 3]
    np.testing.assert_allclose(y[1:], [1 / 3, 2 / 3, 1])
    assert lines(ax)["B (none)"] == ([], [])


def bars_along(ax):
    found = []
    for one in ax.containers:
        (x,), (y,) = one.lines[0].get_data()
        ends = one.lines[2][0].get_segments()[0][:, 0].tolist()
        found.append((x, y, *ends))
    return found


def test_estimates_stand_below_those_of_the_paper_from_the_first_row_down():
    rows = [
        ("one", 3.0, Interval(2.0, 1.0, 2.5, 9)),
        ("two", Interval(5.0, 4.0, 7.0, 9), Interval(6.0, 5.0, 7.5, 9)),
        ("none", np.nan, NONE),
    ]
    ax = show_estimates(rows, axes_(), xlabel="x", title="t")
    found = bars_along(ax)
    np.testing.assert_allclose(
        found, [(5, 1.13, 4, 7), (6, 0.87, 5, 7.5), (3, 2.13, 3, 3), (2, 1.87, 1, 2.5)]
    )
    assert [text.get_text() for text in ax.get_yticklabels()] == ["none", "two", "one"]
    assert (title(ax), ax.get_xlabel()) == ("t", "x")
    assert ax.get_legend_handles_labels()[1] == ["paper", "here"]
    assert show_estimates([("none", np.nan, NONE)], axes_()).get_legend() is None


def test_effects_are_drawn_row_by_row_with_a_marker_for_each_kind():
    one = SimpleNamespace(
        name="x",
        effects={"Cliff's delta": Interval(0.5, 0.2, 0.8, 9), "Hedges' g": Interval(9.0, 8.0, 10.0, 9)},
    )
    two = SimpleNamespace(name="y", effects={"Cohen's h": Interval(-2.0, -2.5, -1.5, 9)})
    ax = show_effects({"x": one, "y": two}, axes_(), names=("A", "B"), title="t")
    np.testing.assert_allclose(bars_along(ax), [(-2, 0, -2.5, -1.5), (0.5, 1, 0.2, 0.8)])
    assert [text.get_text() for text in ax.get_yticklabels()] == ["y", "x"]
    assert ax.get_xlabel() == "effect size (A minus B)"
    low, high = ax.get_xlim()
    assert low < -2.5
    assert high == 1.05
    assert {line.get_label() for line in ax.lines if line.get_label()[0] != "_"} == {
        "Cliff's delta",
        "Cohen's h",
    }
    only = show_effects({"x": one}, axes_())
    assert only.get_xlim() == (-1.05, 1.05)
    assert {line.get_label() for line in only.lines if line.get_label()[0] != "_"} == {"Cliff's delta"}


def test_a_calibration_is_predicted_across_and_measured_upward():
    found = SimpleNamespace(predicted=np.array([0.1, 0.5]), measured=np.array([0.3, 0.9]))
    ax = show_calibration(found, axes_(), title="t")
    assert cloud(ax).tolist() == [[0.1, 0.3], [0.5, 0.9]]
    assert (ax.get_xlabel(), ax.get_ylabel(), title(ax)) == ("predicted accuracy", "measured accuracy", "t")


def quantity(name, effect="Cliff's delta"):
    rng = np.random.default_rng(len(name))
    return SimpleNamespace(
        name=name,
        effects={effect: Interval(0.5, 0.2, 0.8, 9)},
        samples=(rng.normal(size=3), rng.normal(size=4)),
    )


@pytest.mark.parametrize(
    ("count", "shape", "drawn"), [(0, (1, 1), 0), (1, (1, 2), 1), (2, (2, 2), 2), (7, (3, 2), 5)]
)
def test_quantities_have_an_axis_each_up_to_five_beside_the_effects(count, shape, drawn):
    several = [quantity("share", "Cohen's h"), *(quantity("x" * (n + 1)) for n in range(count))]
    comparison = SimpleNamespace(names=("A", "B"), distributions={one.name: one for one in several})
    axes = show_quantities(comparison)
    assert axes.shape == shape
    assert len(bars_along(axes.flat[0])) == count + 1
    assert axes.flat[0].get_xlabel() == "effect size (A minus B)"
    for ax, one in zip(axes.flat[1:], several[1 : 1 + drawn], strict=False):
        assert ax.get_xlabel() == one.name
        assert lines(ax)["A (n = 3)"][0][1:] == sorted(one.samples[0])
        assert lines(ax)["B (n = 4)"][0][1:] == sorted(one.samples[1])
    assert [ax.axison for ax in axes.flat] == [True] * (1 + drawn) + [False] * (axes.size - 1 - drawn)


# -- comparisons ------------------------------------------------------------------------------------------


def motion(error, times, matched, pairs, relabelling):
    return Motion(
        pairs,
        False,
        relabelling,
        "ends",
        Interval(2.0, 1.5, 2.5, 3),
        times,
        matched,
        error,
        error + 1,
        NONE,
        NONE,
    )


def test_the_motion_of_shapes_has_a_disparity_and_that_of_states_an_unexplained_part():
    one = motion(
        np.ones((2, 3)), np.arange(3.0), np.ones((2, 3)), np.zeros((2, 2), int), np.zeros((2, 4), int)
    )
    for shapes, words in ((object(), "disparity"), (None, "1 - R² across components")):
        comparison = SimpleNamespace(motion=one, shapes=shapes, names=("A", "B"))
        left, right = show_motion(comparison)[0]
        assert left.get_ylabel() == words
        assert (title(left), title(right)) == ("Error over time", "Times that correspond")
        assert list(lines(left)) == ["two runs of A", "a run of A and one of B"]


@pytest.mark.parametrize(
    ("means", "chosen"), [([3.0, 1.0, 2.0], 2), ([4.0, 1.0, 3.0, 2.0], 3), ([1.0, 1.0, 1.0, 1.0], 1)]
)
def test_the_typical_pair_has_the_median_error_and_the_lower_one_of_two(means, chosen):
    error = np.repeat(np.array(means)[:, None], 3, axis=1)
    error[0, 0] = np.nan
    assert typical_pair(SimpleNamespace(error=error)) == chosen


def turned(E, angle, scale=1.0):
    c, s = np.cos(angle), np.sin(angle)
    return scale * E @ np.array([[c, s], [-s, c]])


def test_the_typical_pair_of_planar_shapes_is_shown_over_time_turned_to_fit():
    """The first ensemble is the second turned, relabeled, and twice as slow."""
    rng = np.random.default_rng(4)
    start, end = rng.normal(size=(2, 6, 2))
    steps = np.arange(9)
    second = np.stack([start + (end - start) * t / 8 for t in steps])
    order = rng.permutation(6)
    slow = np.stack([turned(start + (end - start) * t / 16, 0.7, 3.0) for t in range(17)])
    first = np.empty_like(slow)
    first[:, order] = slow
    one = motion(
        np.full((1, 9), 0.25), steps.astype(float), 2.0 * steps[None], np.array([[1, 0]]), order[None]
    )
    comparison = SimpleNamespace(motion=one, shapes=object(), names=("A", "B"))
    runs = Trajectory(np.stack([np.zeros_like(first), first]), np.arange(17))
    axes = show_typical_pair(comparison, [runs], [Trajectory(second[None], steps)])
    assert axes.shape == (2, 4)
    for column, k in zip(axes.T, (0, 3, 5, 8), strict=True):
        for ax in column:
            np.testing.assert_allclose(cloud(ax), second[k], atol=1e-9)
        assert title(column[0]) == f"time {2 * k}"
        assert title(column[1]) == f"time {k},\ndistance 0.25"
    assert [ax.get_ylabel() for ax in axes[:, 0]] == ["A", "B"]
    other = Trajectory(np.zeros((1, 9, 6, 3)) + rng.normal(size=(6, 3)), steps)
    assert show_typical_pair(comparison, [runs], [other]) is None, "axes in two and in three dimensions"
    nothing = dataclasses.replace(one, error=np.full((1, 9), np.nan))
    comparison.motion = nothing
    assert show_typical_pair(comparison, [runs], [Trajectory(second[None], steps)]) is None


def test_the_typical_pair_of_embeddings_on_a_line_is_scaled_to_the_second():
    steps = np.arange(4)
    second = np.arange(5.0)[:, None] * (1 + steps[:, None, None]) + 7
    first = -3 * second[:, ::-1] + 100
    same = np.arange(5)[None]
    one = motion(np.ones((1, 4)), steps.astype(float), steps[None].astype(float), np.zeros((1, 2), int), same)
    comparison = SimpleNamespace(motion=one, shapes=object(), names=("A", "B"))
    left, right = show_typical_pair(
        comparison, [Trajectory(first[None], steps)], [Trajectory(second[None], steps)]
    )[0]
    for ax in (left, right):
        for line, value in zip(ax.lines, (np.arange(5) - 2) / 2**0.5, strict=True):
            np.testing.assert_allclose(line.get_ydata(), value, atol=1e-9)
    assert (left.get_ylabel(), right.get_ylabel()) == ("embedding, scaled", "")


def test_nearest_shapes_are_shown_from_the_best_match_to_the_worst():
    rng = np.random.default_rng(5)
    first, second = rng.normal(size=(3, 5, 2)), rng.normal(size=(6, 5, 2))
    permutations = np.array([[0, 1, 2, 3, 4], [4, 3, 2, 1, 0]])
    both = np.array([[[procrustes(b, a[p])[2] for p in permutations] for b in second] for a in first])
    disparity, relabelling = both.min(axis=2), both.argmin(axis=2)
    shapes = SimpleNamespace(
        disparity=disparity,
        relabelling=relabelling,
        nearest=disparity.min(axis=0),
        symmetry=SimpleNamespace(permutations=permutations),
    )
    comparison = SimpleNamespace(names=("A", "B"), shapes=shapes)
    runs = [[Trajectory(one[:, None], [0])] for one in (first, second)]
    order = np.argsort(shapes.nearest)
    for count, chosen in ((4, order[[0, 2, 3, 5]]), (2, order[[0, 5]]), (9, order)):
        axes = show_nearest(comparison, *runs, count)
        assert axes.shape == (1, len(chosen))
        for ax, run in zip(axes[0], chosen, strict=True):
            partner = int(disparity[:, run].argmin())
            both = f"run {run} (discs),\nrun {partner} (open circles)"
            assert title(ax) == f"{both},\ndisparity {shapes.nearest[run]:.2f}"
            np.testing.assert_allclose(cloud(ax, 1), second[run])
            rings, b = cloud(ax, 0), second[run] - second[run].mean(axis=0)
            off = np.sum((rings - second[run]) ** 2) / np.sum(b**2)
            assert off == pytest.approx(shapes.nearest[run]), "a is turned, scaled and moved to fit b best"
    assert show_nearest(comparison, *runs).shape == (1, 4)
    assert show_nearest(SimpleNamespace(names=("A", "B"), shapes=None), *runs) is None
    flat = [[Trajectory(one[:, None, :, :1], [0])] for one in (first, second)]
    assert show_nearest(comparison, *flat) is None
    solid = [Trajectory(rng.normal(size=(6, 1, 5, 3)), [0])]
    assert show_nearest(comparison, runs[0], solid) is None


# -- phases -----------------------------------------------------------------------------------------------


def test_phases_are_drawn_cell_by_cell_and_named_where_there_is_room():
    x, y = Axis("x", 0.0, 1.0), Axis("y", 1e-3, 1e1, scale="log")
    assert (x.value(0.25), y.value(0.5)) == (0.25, pytest.approx(0.1))
    cells = [
        SimpleNamespace(
            x=(0.0, 0.5), y=(0.0, 1.0), majority=SimpleNamespace(phase="comprehension"), covered=lambda: 0.5
        ),
        SimpleNamespace(
            x=(0.5, 1.0), y=(0.0, 0.9), majority=SimpleNamespace(phase="memorization"), covered=lambda: 0.45
        ),
        SimpleNamespace(
            x=(0.5, 0.8), y=(0.9, 1.0), majority=SimpleNamespace(phase="grokking"), covered=lambda: 0.03
        ),
        SimpleNamespace(
            x=(0.8, 1.0), y=(0.9, 1.0), majority=SimpleNamespace(phase="comprehension"), covered=lambda: 0.02
        ),
    ]
    diagram = SimpleNamespace(x=x, y=y, cells=cells, decided=lambda cell: cell is not cells[1])
    ax = show_phases(diagram, axes_(), title="t")
    filled = [patch for patch in ax.patches if patch.get_fill()]
    for patch, cell in zip(filled, cells, strict=True):
        assert to_hex(patch.get_facecolor()) == to_hex(palette.PHASES[cell.majority.phase])
        assert (patch.get_hatch() == "////") == (cell is cells[1])
        corners = [
            patch.get_x(),
            patch.get_x() + patch.get_width(),
            patch.get_y(),
            patch.get_y() + patch.get_height(),
        ]
        np.testing.assert_allclose(corners, [*cell.x, *(1e-3 * 1e4 ** np.array(cell.y))])
    assert {text.get_text() for text in ax.texts} == {"comprehension", "memorization"}
    (name,) = [text for text in ax.texts if text.get_text() == "comprehension"]
    np.testing.assert_allclose(name.get_position(), (0.25, 0.1)), "of its two cells the larger one's middle"
    assert (ax.get_xscale(), ax.get_yscale()) == ("linear", "log")
    np.testing.assert_allclose([*ax.get_xlim(), *ax.get_ylim()], [0, 1, 1e-3, 10])
    assert ax.get_legend() is not None
    assert show_phases(diagram, axes_(), legend=False).get_legend() is None
