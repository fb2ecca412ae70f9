"""What figures of the library draw when data are missing, few or constant, and details unread elsewhere."""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgba
from matplotlib.figure import Figure
from pictures import lines

from analysis.circles.signals import Signals
from analysis.comparison.motion import Motion
from analysis.comparison.timing import Onsets
from analysis.plots import palette
from analysis.plots import style as styles
from analysis.plots.comparison import show_error, show_matching_times, show_onsets
from analysis.plots.distributions import show_distributions, show_effects, show_estimates
from analysis.plots.embeddings import show_embedding
from analysis.plots.maps import show_classifier
from analysis.plots.signals import show_coefficients, show_lines, show_rollouts, show_signals
from analysis.plots.trajectory import show_trajectory
from analysis.stats.intervals import Interval
from physics import InputError, Trajectory

NAN, INF = np.nan, np.inf
NONE = Interval(NAN, NAN, NAN, 0)


def axes_():
    return Figure().subplots()


def motion(error, matched, chance=None, scale=NONE):
    error, matched = np.asarray(error, float), np.asarray(matched, float)
    chance = error if chance is None else np.asarray(chance, float)
    pairs, labels = np.zeros((len(error), 2), int), np.zeros((len(error), 3), int)
    times = np.arange(error.shape[1], dtype=float)
    return Motion(pairs, False, labels, "ends", scale, times, matched, error, chance, NONE, NONE)


# -- nothing, gaps, and one value -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "draw",
    [
        lambda ax: show_distributions({}, ax),
        lambda ax: show_effects({}, ax),
        lambda ax: show_error(motion([[NAN, NAN]], [[0, 1]]), ("A", "B"), ax),
        lambda ax: show_signals([0, 1], np.ones((2, 0)), ax),
    ],
)
def test_a_figure_of_nothing_has_an_empty_legend(draw):
    ax = draw(axes_())
    assert ax.get_legend().get_texts() == []
    assert not [line for line in ax.lines if line.get_label()[0] != "_"]
    ax.figure.draw_without_rendering()


def test_signals_of_a_run_that_diverged_are_drawn_as_far_as_they_are_finite():
    values = np.array([[1.0, 2.0], [4.0, 3.0], [INF, NAN]])
    ax = show_signals([0, 1, 2], values, axes_(), marked=[1])
    assert ax.get_ylim() == pytest.approx((0, 1.05 * 4))
    np.testing.assert_array_equal(lines(ax)["frequency 1"][1], values[:, 0])
    for nothing in (np.full((2, 2), NAN), np.zeros((0, 2))):
        ax = show_signals(np.arange(len(nothing)), nothing, axes_(), marked=[1])
        assert ax.get_ylim() == (0, 1.05e-12)
    assert show_signals([0, 1], -np.ones((2, 2)), axes_()).get_ylim() == (0, 1.05e-12)
    for times, wrong, words in (
        ([0, 1], [1.0, 2.0], "signals must have 2 axes"),
        ([[0, 1, 2]], values, "times must have 1 axis"),
    ):
        with pytest.raises(InputError, match=words):
            show_signals(times, wrong, axes_())


def test_coefficients_that_are_not_finite_are_refused():
    with pytest.raises(InputError, match="A must be finite, got 1 NaN or infinite among 4 values"):
        show_coefficients([[1.0, NAN], [2.0, 3.0]], axes_())


@pytest.mark.parametrize("dim", [1, 2, 3, 5])
def test_points_of_a_run_that_diverged_are_refused_in_any_number_of_dimensions(dim):
    positions = np.random.default_rng(0).normal(size=(2, 2, 5, dim))
    positions[1, 1, 0, 0] = NAN
    moves = Trajectory(positions, [0, 1])
    with pytest.raises(InputError, match="E must be finite, got 1 NaN"):
        show_trajectory(moves, run=1, ax=axes_())
    assert len(show_trajectory(moves, run=1, frame=0, ax=axes_()).collections[0].get_offsets()) == 5


def test_what_is_no_line_or_no_run_of_a_trajectory_is_refused():
    tables = np.zeros((2, 3, 2, 2))
    moves = Trajectory(np.zeros((2, 3, 5, 2)), [0, 1, 2], observables={"tables": tables})
    with pytest.raises(InputError) as refused:
        show_trajectory(moves, "tables", axes_())
    assert str(refused.value) == (
        "what must name an observable of numbers or lists, got 'tables' of tables (2, 2)"
    )
    for run, words in ((2, "run must be below 2, got 2"), (-3, "run must be at least -2, got -3")):
        with pytest.raises(InputError, match=words):
            show_trajectory(moves, ax=axes_(), run=run)
    with pytest.raises(InputError, match="what must be one of 'positions', 'signals', 'tables', got 'speed'"):
        show_trajectory(moves, "speed", axes_())


def test_one_frame_one_pair_and_equal_values_are_drawn():
    ax = show_error(motion([[2.0]], [[0.0]], [[NAN]]), ("A", "B"), axes_())
    assert [line.get_xydata().tolist() for line in ax.lines] == [[[0, 2]]]
    ax = show_matching_times(motion([[1.0]], [[NAN]]), ("A", "B"), axes_())
    assert len(ax.lines) == 1
    once = Onsets(np.array([0.0]), np.array([True]))
    ax = show_onsets(SimpleNamespace(first=once, second=once, name="x"), ("A", "B"), axes_())
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["A: 1 of 1", "B: 1 of 1"]
    ax = show_distributions({"A": [3.0, 3.0]}, axes_())
    assert lines(ax)["A (n = 2)"][0][1:] == [3, 3]
    ax = show_embedding(np.full((3, 2), 4.0), axes_())
    assert np.isfinite([*ax.get_xlim(), *ax.get_ylim()]).all()
    assert ax.get_xlim()[0] < 4 < ax.get_xlim()[1]
    ax = show_lines([5], [[1.0, 2.0]], axes_())
    assert [line.get_xydata().tolist() for line in ax.lines] == [[[5, 1]], [[5, 2]]]


def test_an_estimate_without_an_interval_is_a_point_in_its_look():
    rows = [("a", NAN, Interval(2.0, NAN, NAN, 1)), ("b", 1.0, NONE), ("c", 3.0, Interval(4.0, 3.0, INF, 5))]
    ax = show_estimates(rows, axes_())
    found = [(one.lines[0].get_xydata()[0].tolist(), one.lines[0].get_marker()) for one in ax.containers]
    assert found == [([3, 0.13], "D"), ([4, -0.13], "o"), ([1, 1.13], "D"), ([2, 1.87], "o")]
    colors = [to_hex(one.lines[0].get_color()) for one in ax.containers]
    assert colors == [palette.REFERENCE, palette.FIRST] * 2
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["paper", "here"]
    assert ax.get_ylim() == (-0.6, 2.6)
    effects = {
        "a": SimpleNamespace(name="a", effects={"Cliff's delta": Interval(0.5, NAN, NAN, 3)}),
        "b": SimpleNamespace(name="b", effects={"Cohen's h": Interval(0.1, -3.0, 3.5, 3)}),
        "c": SimpleNamespace(name="c", effects={"Cohen's h": NONE}),
    }
    ax = show_effects(effects, axes_())
    looks = [(one.lines[0].get_marker(), to_hex(one.lines[0].get_color())) for one in ax.containers]
    assert looks == [("s", palette.SECOND), ("o", palette.FIRST)]
    shown = {one.get_text(): one for one in ax.get_legend().get_texts()}
    assert list(shown) == ["Cliff's delta", "Cohen's h"]
    keys = [(one.get_marker(), to_hex(one.get_color())) for one in ax.get_legend().get_lines()]
    assert keys == looks[::-1]
    low, high = ax.get_xlim()
    assert low < -3 < 3.5 < high
    assert ax.get_xlabel() == "effect size (first minus second)"


# -- details ----------------------------------------------------------------------------------------------


def test_laws_share_a_legend_of_up_to_four_columns_in_letters_of_the_whole_figure():
    values = np.random.default_rng(2).uniform(1, 2, (3, 6))
    law = SimpleNamespace(kind="generator", predict=lambda start, times: values)
    for survivors, laws, columns in (([1, 2, 3, 4], 3, 4), ([2], 1, 3)):
        axes = show_rollouts(
            Signals(np.array([0, 5, 9]), values, survivors), dict.fromkeys("abc"[:laws], law)
        )
        figure = axes[0, 0].figure
        assert tuple(figure.get_size_inches()) == (5.2 * laws, 4.0)
        (legend,) = figure.legends
        assert legend._ncols == columns
        with styles.style(5.2 * laws):
            assert legend.get_texts()[0].get_fontsize() == plt.rcParams["legend.fontsize"]
        ahead = [line for line in axes[0, 0].lines if line.get_linestyle() == "--" and len(line.get_xdata())]
        assert min(line.get_zorder() for line in ahead) > 2, "over the signals"


def test_images_have_a_cell_for_each_value_and_the_color_of_its_class():
    ax = show_classifier([[0, 1, 2, 3]], (0, 4, 0, 1), axes_(), count=4, sums=[[0.5, 0.5]], labels=[0])
    (image,) = ax.get_images()
    np.testing.assert_allclose(image.to_rgba(np.array([[0, 1, 2, 3]]))[0], palette.class_colors(4))
    assert image.get_interpolation() == "nearest"
    assert to_rgba(palette.WHITE) == pytest.approx(tuple(ax.collections[0].get_edgecolors()[0]))
    matrix = np.array([[-2.0, 0.5], [0.0, 1.0]])
    (image,) = show_coefficients(matrix, axes_()).get_images()
    assert image.get_interpolation() == "nearest"
    red, blue = (image.to_rgba(np.array([[value]]))[0, 0] for value in (2.0, -2.0))
    assert red[0] > red[2]
    assert blue[2] > blue[0]
