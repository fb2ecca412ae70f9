"""What a reader of the library's figures relies on: legends, labels, sizes and frames."""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from analysis.circles.signals import Signals
from analysis.phases.axes import Axis
from analysis.phases.classification import PHASES
from analysis.plots import palette
from analysis.plots import style as styles
from analysis.plots.distributions import show_distributions, show_effects
from analysis.plots.embeddings import show_embedding
from analysis.plots.maps import show_classifier
from analysis.plots.phases import show_phases
from analysis.plots.signals import _room, _spaced, show_coefficients, show_lines, show_rollouts, show_signals
from analysis.stats.intervals import Interval


def axes_(width=5.0):
    return Figure(figsize=(width, 4.0)).subplots()


def entries(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def diagram(high=1e1):
    cell = SimpleNamespace(
        x=(0.0, 1.0), y=(0.0, 1.0), majority=SimpleNamespace(phase="grokking"), covered=lambda: 1.0
    )
    axes = Axis("rate", 0.0, 1.0), Axis("decay", 1.0, high, scale="log")
    return SimpleNamespace(x=axes[0], y=axes[1], cells=[cell], decided=lambda cell: True)


def test_a_diagram_explains_its_colors_and_what_is_undecided():
    ax = show_phases(diagram(), axes_())
    assert entries(ax) == [*PHASES, "undecided"]
    *colored, hatched = ax.get_legend().get_patches()
    assert [to_hex(one.get_facecolor()) for one in colored] == [palette.PHASES[phase] for phase in PHASES]
    assert hatched.get_hatch() == "////"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("rate", "decay")
    assert (ax.get_xscale(), ax.get_yscale()) == ("linear", "log")
    assert (ax.get_xlim(), ax.get_ylim()) == ((0, 1), pytest.approx((1, 10)))
    assert show_phases(diagram(), axes_(), legend=False).get_legend() is None


@pytest.mark.parametrize(("high", "bare"), [(9.9, False), (10.0, True), (100.0, True)])
def test_ticks_within_decades_have_labels_only_on_an_axis_of_less_than_a_decade(high, bare):
    ax = show_phases(diagram(high), axes_())
    assert isinstance(ax.yaxis.get_minor_formatter(), NullFormatter) == bare


def test_discs_with_numbers_are_larger_and_lie_over_lines_and_rings():
    E = np.random.default_rng(0).normal(size=(5, 2))
    for labels, size in ((True, 10.5), (False, 7.0)):
        ax = show_embedding(E, axes_(), outline=E + 0.1, labels=labels)
        rings, discs = ax.collections
        assert discs.get_sizes().tolist() == [size**2]
        assert rings.get_sizes().tolist() == [12.5**2]
        assert ax.lines[0].get_zorder() < rings.get_zorder() < discs.get_zorder()
        assert ax.get_aspect() == 1
        assert len(ax.get_xticks()) == len(ax.get_yticks()) == 0
        assert all(text.get_zorder() > discs.get_zorder() for text in ax.texts)
        inks = [to_hex(palette.ink_on(color)) for color in palette.class_colors(5)]
        assert [to_hex(text.get_color()) for text in ax.texts] == (inks if labels else [])
    wide = show_embedding(E, axes_(2 * styles.PRINTED))
    assert wide.collections[0].get_sizes() == pytest.approx([(2 * 10.5) ** 2]), (
        "the figure is halved in print"
    )


def test_coefficients_are_colored_to_the_same_depth_on_both_sides_of_0():
    A = np.array([[0.0, 2.0], [-5.0, 1.0]])
    ax = show_coefficients(A, axes_(), marked=[2], title="t")
    (image,) = ax.get_images()
    np.testing.assert_array_equal(image.get_array(), A)
    assert (image.norm.vmin, image.norm.vmax, image.norm.linthresh) == (-5, 5, 0.05)
    assert image.colorbar.ax.get_ylabel() == "coefficient per step"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("frequency that acts", "frequency that changes")
    colors = [label.get_color() for label in ax.get_xticklabels()]
    assert (colors[1] == palette.SURVIVES, colors[0] == palette.SURVIVES) == (True, False)
    (image,) = show_coefficients(np.zeros((2, 2)), axes_()).get_images()
    assert (image.norm.vmin, image.norm.vmax) == (-1, 1)


def test_a_matrix_has_a_label_wherever_there_is_room_and_at_each_marked_row():
    assert list(_spaced(7, [], 1)) == [1, 2, 3, 4, 5, 6, 7]
    assert list(_spaced(7, [], 3)) == [1, 4, 7]
    assert _spaced(8, [3, 4], 2) == {3: 2.5, 4: 4.5, 7: 7}
    assert _spaced(9, [1, 2], 3) == {1: 1, 2: 4, 7: 7}, "beside the matrix"
    assert _spaced(9, [9, 8], 3) == {1: 1, 8: 6, 9: 9}
    assert list(_spaced(5, [1, 2, 3, 4, 5], 2).values()) == pytest.approx([1, 2, 3, 4, 5]), "too many"
    for width, size in ((5.0, 10), (5.0, 60), (2.0, 29)):
        ax = axes_(width)
        room = 72 * width * ax.get_position().width - 40
        assert _room(ax, size) == int(np.ceil(1.4 * plt.rcParams["font.size"] * size / room))


def test_panels_of_laws_share_one_legend_and_the_labels_of_the_outer_axes():
    values = np.random.default_rng(2).uniform(1, 2, (3, 4))
    signals = Signals(np.array([0, 5, 9]), values, [2, 3])
    law = SimpleNamespace(kind="generator", predict=lambda start, times: values)
    axes = show_rollouts(signals, {"one": law, "other": law})[0]
    assert [ax.get_ylabel() for ax in axes] == ["Fourier signal ‖$F_k$‖", ""]
    assert [ax.get_xlabel() for ax in axes] == ["step", "step"]
    assert [ax.get_legend() for ax in axes] == [None, None]
    (legend,) = axes[0].figure.legends
    expected = ["dead", "frequency 2", "frequency 3", "predicted from the first frame"]
    assert sorted(text.get_text() for text in legend.get_texts()) == expected
    assert axes[0].get_shared_y_axes().joined(*axes)


def test_twenty_survivors_have_eighteen_looks_and_the_dead_are_thin():
    ax = show_signals(np.arange(3), np.ones((3, 20)), axes_(), marked=range(1, 20))
    looks = [
        (line.get_color(), line.get_linestyle()) for line in ax.lines if line.get_color() != palette.DEAD
    ]
    assert len(set(looks)) == 18
    assert looks[18] == looks[0]
    assert {line.get_linewidth() for line in ax.lines if line.get_color() == palette.DEAD} == {0.8}
    assert {line.get_linewidth() for line in ax.lines if line.get_color() != palette.DEAD} == {1.8}


def test_distributions_and_effects_name_what_they_show_and_mark_no_effect():
    ax = show_distributions({"A": [1.0, np.nan], "B": [np.inf]}, axes_(), xlabel="x", title="t")
    assert entries(ax) == ["A (n = 1)", "B (none)"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x", "cumulative fraction")
    value = Interval(0.5, 0.2, 0.7, 9)
    rows = {name: SimpleNamespace(name=name, effects={"Cliff's delta": value}) for name in ("a", "b", "c")}
    ax = show_effects(rows, axes_(), names=("A", "B"))
    assert entries(ax) == ["Cliff's delta"]
    assert ax.get_xlim() == (-1.05, 1.05)
    assert ax.get_ylim() == (-0.6, 2.6)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["c", "b", "a"]
    assert any(line.get_xdata() == [0, 0] for line in ax.lines if line.get_linestyle() == ":")
    assert ax.xaxis.get_gridlines()[0].get_visible()
    assert not ax.yaxis.get_gridlines()[0].get_visible()


def test_a_map_fills_its_bounds_from_the_lowest_row_and_names_held_out_pairs():
    ax = show_classifier(
        [[0, 1], [2, 1]], (-1, 3, -2, 5), axes_(), count=3, sums=[[0, 0], [1, 1]], labels=[2, 1],
        held_out=[False, True], title="t",
    )  # fmt: skip
    (image,) = ax.get_images()
    assert image.origin == "lower"
    assert tuple(image.get_extent()) == (-1, 3, -2, 5)
    assert (ax.get_xlim(), ax.get_ylim()) == ((-1, 3), (-2, 5))
    assert (image.norm.vmin, image.norm.vmax) == (-0.5, 2.5)
    trained, held = ax.collections
    assert (trained.get_offsets().tolist(), held.get_offsets().tolist()) == ([[0, 0]], [[1, 1]])
    assert len(trained.get_paths()[0].vertices) > len(held.get_paths()[0].vertices), "a disc, and a diamond"


def test_a_legend_begins_two_lines_below_the_axes_and_one_for_each_line_of_labels():
    for xlabel, ticks, lines in (("", 0, 0), ("a", 0, 1), ("a\nb", 0, 2), ("a", 1, 2)):
        ax = axes_()
        ax.plot([0, 1], [0, 1], label="curve")
        ax.set(xlabel=xlabel)
        if ticks:
            ax.set_xticks([0, 1], ["one\ntwo", "three"])
        legend = styles.legend_below(ax)
        anchor = legend.get_bbox_to_anchor()
        below = (2.0 + 1.3 * lines) * plt.rcParams["font.size"] * ax.figure.dpi / 72
        assert ax.get_window_extent().y0 - anchor.y0 == pytest.approx(below)
        middle = ax.get_window_extent()
        assert anchor.x0 == pytest.approx((middle.x0 + middle.x1) / 2)


def test_a_legend_has_as_many_columns_as_fit():
    ax = axes_(6.0)
    for k in range(12):
        ax.plot([0, 1], [k, k], label=rf"$\nu$ = {k:02d}")
    room = 6.0 * ax.get_position().width * 72 / (0.55 * plt.rcParams["font.size"])
    assert styles.legend_below(ax)._ncols == min(12, int(room / (len("nu = 00") + 6)))
    assert styles.legend_below(ax, columns=2)._ncols == 2
    few = axes_(6.0)
    few.plot([0, 1], [0, 1], label="a")
    assert styles.legend_below(few)._ncols == 1


def test_letters_grow_with_figures_that_are_wider_than_print():
    with styles.style(2 * styles.PRINTED):
        assert styles.points(7.0) == 14.0
        doubled = plt.rcParams["font.size"]
        with styles.style():
            assert styles.points(7.0) == 14.0, "of the surrounding block"
    with styles.style(styles.PRINTED / 2):
        assert styles.points(7.0) == 7.0
        assert doubled == 2 * plt.rcParams["font.size"]
    assert styles.points(7.0) == 7.0
    axes = styles.panels(2, 3, 1.5, 2.0)
    assert (axes.shape, tuple(axes[0, 0].figure.get_size_inches())) == ((2, 3), (4.5, 4.0))


def test_lines_reach_both_edges():
    ax = show_lines([2, 5, 9], np.eye(3), axes_())
    assert ax.get_xlim() == (2, 9)
