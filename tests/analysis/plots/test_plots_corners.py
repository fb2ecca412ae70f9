"""Rarely drawn sides of the library's figures: other runs and clocks, space, missing intervals, looks."""

import dataclasses
import itertools
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from pictures import lines, title

from analysis import logit_spectrum, neuron_spectrum
from analysis.circles.fourier import fourier_signals
from analysis.circles.geometry import principal_components
from analysis.circles.survival import surviving_frequencies
from analysis.comparison.motion import Motion
from analysis.comparison.timing import Onsets
from analysis.plots import palette
from analysis.plots import style as styles
from analysis.plots.comparison import (
    show_calibration,
    show_error,
    show_matching_times,
    show_nearest,
    show_onsets,
    show_typical_pair,
)
from analysis.plots.distributions import show_distributions
from analysis.plots.maps import show_classifier
from analysis.plots.neurons import show_logit_waves, show_neurons, show_phases
from analysis.plots.signals import show_coefficients, show_signals
from analysis.plots.trajectory import show_trajectory
from analysis.stats.intervals import Interval
from physics import InputError, Trajectory

NONE = Interval(np.nan, np.nan, np.nan, 0)
RNG = np.random.default_rng(11)
FIRST_STATE = RNG.bit_generator.state


@pytest.fixture(autouse=True)
def seeded():
    """Let every test draw the same numbers, whichever ran before it."""
    RNG.bit_generator.state = FIRST_STATE


def axes_(width=5.0):
    return Figure(figsize=(width, 4.0)).subplots()


def cloud(ax, n=0):
    return np.asarray(ax.collections[n].get_offsets())


def in_plane(E, reference):
    return E @ np.linalg.svd(reference - reference.mean(axis=0))[2][:2].T


# -- a trajectory -----------------------------------------------------------------------------------------


def recorded():
    positions = RNG.normal(size=(3, 4, 7, 5))
    observables = {
        "train_loss": np.arange(6.0).reshape(3, 2),
        "parts": np.arange(3 * 4 * 2.0).reshape(3, 4, 2),
    }
    clocks = {"train_loss": ([0, 7], [0.0, 3.5])}
    return Trajectory(positions, [0, 2, 4, 6], [0.0, 0.5, 1.0, 2.0], observables=observables, clocks=clocks)


@pytest.mark.parametrize(("run", "frame"), [(0, -1), (2, 0), (-2, 1)])
def test_positions_are_those_of_the_run_and_the_frame_in_their_own_plane(run, frame):
    moves = recorded()
    E = moves.positions[run, frame]
    ax = show_trajectory(moves, "positions", axes_(), run=run, frame=frame, title="t")
    np.testing.assert_allclose(cloud(ax), in_plane(E - E.mean(axis=0), E), atol=1e-12)
    assert title(ax) == "t"
    flat = Trajectory(moves.positions[..., :2], moves.steps)
    assert cloud(show_trajectory(flat, ax=axes_())).tolist() == flat.positions[0, -1].tolist()


@pytest.mark.parametrize("run", [0, 2, -2])
def test_signals_are_those_of_the_run_at_its_steps_and_its_last_survivors_are_marked(run):
    moves = recorded()
    moves.positions[:, -1] *= 0.01  # all frames but the last have other survivors
    moves.positions[:, -1, :, :2] += np.stack(
        [np.cos(2 * np.pi * 2 * np.arange(7) / 7), np.sin(2 * np.pi * 2 * np.arange(7) / 7)], axis=1
    )
    ax = show_trajectory(moves, "signals", axes_(), run=run, title="t")
    marked = surviving_frequencies(moves.positions[run, -1]).tolist()
    assert marked == [2]
    x, y = lines(ax)["frequency 2"]
    assert x == [0, 2, 4, 6], "steps, as the axis says, and not times"
    assert y == pytest.approx(fourier_signals(moves.positions[run])[:, 1])
    assert (ax.get_xlabel(), title(ax)) == ("step", "t")


def test_an_observable_has_a_line_for_each_run_or_for_each_component_of_one_at_its_own_times():
    moves = recorded()
    ax = show_trajectory(moves, "train_loss", axes_(), run=1, title="t")
    assert [line.get_ydata().tolist() for line in ax.lines] == [[0, 1], [2, 3], [4, 5]]
    assert all(line.get_xdata().tolist() == [0, 3.5] for line in ax.lines)
    assert (title(ax), ax.get_xlabel(), ax.get_ylabel()) == ("t", "time", "train loss")
    for run in (0, 2, -1):
        ax = show_trajectory(moves, "parts", axes_(), run=run)
        assert [line.get_ydata().tolist() for line in ax.lines] == moves.observables["parts"][run].T.tolist()
        assert all(line.get_xdata().tolist() == [0, 0.5, 1, 2] for line in ax.lines)
        assert {to_hex(line.get_color()) for line in ax.lines} == {palette.FIRST}


# -- two ensembles ----------------------------------------------------------------------------------------


def motion(error, matched, scale=NONE, times=None, pairs=None):
    error, matched = np.asarray(error, float), np.asarray(matched, float)
    times = np.arange(error.shape[1], dtype=float) if times is None else times
    pairs = np.zeros((len(error), 2), int) if pairs is None else pairs
    same = np.tile(np.arange(5), (len(error), 1))
    return Motion(pairs, True, same, "ends", scale, times, matched, error, error + 1, NONE, NONE)


def test_errors_fill_their_axes_from_0_and_have_a_legend_and_a_color_each():
    ax = show_error(motion([[0.5, 2.0, 1.0]] * 2, [[0, 1, 2]] * 2), ("A", "B"), axes_())
    assert ax.get_ylim()[0] == 0
    assert ax.get_xlim() == (0, 2)
    assert [to_hex(line.get_color()) for line in ax.lines] == [palette.REFERENCE, palette.FIRST]
    assert [to_hex(area.get_facecolor()[0]) for area in ax.collections] == [palette.REFERENCE, palette.FIRST]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "runs paired at random",
        "a run of A and one of B",
    ]


@pytest.mark.parametrize(
    ("low", "estimate", "bands", "drawn"),
    [(1.5, 2.0, 1, 3), (np.nan, 2.0, 0, 3), (np.nan, np.nan, 0, 2)],
)
def test_a_factor_is_drawn_as_far_as_it_is_known(low, estimate, bands, drawn):
    times = np.array([0.0, 1.0, 2.0])
    one = motion(np.ones((2, 3)), [times * 2, times * 3], Interval(estimate, low, 2.5, 2))
    ax = show_matching_times(one, ("A", "B"), axes_())
    assert (len(ax.collections), len(ax.lines)) == (bands, drawn)
    assert [to_hex(line.get_color()) for line in ax.lines] == [*[palette.FIRST] * 2, palette.INK][:drawn]
    assert {(line.get_linewidth(), line.get_alpha()) for line in ax.lines[:2]} == {(0.5, 0.4)}
    assert ax.get_xlim() == (0, 2)
    assert ax.get_ylim()[0] == 0
    same = dataclasses.replace(one, matched=one.matched[[0, 0]])
    ax = show_matching_times(same, ("A", "B"), axes_())
    assert (len(ax.collections), len(ax.lines)) == (bands, 1)
    assert (ax.lines[0].get_linewidth(), ax.lines[0].get_alpha()) == (1.6, 1.0)
    gap = np.array([[0.0, 1.0, np.nan]] * 2)
    assert len(show_matching_times(dataclasses.replace(one, matched=gap), ("A", "B"), axes_()).lines) == 1


def test_fractions_that_have_arrived_have_a_band_up_to_the_end_of_the_last_run():
    first = Onsets(np.array([1.0, 2, 4, 9]), np.array([True, True, True, False]))
    never = Onsets(np.array([6.0, 6.0]), np.array([False, False]))
    ax = show_onsets(SimpleNamespace(first=first, second=never, name="x"), ("A", "B"), axes_())
    assert [line.get_xdata()[-1] for line in ax.lines] == [9, 6]
    assert ax.lines[1].get_ydata().tolist() == [0, 0]
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_ylim()) == ("time", "fraction of runs", (-0.02, 1.02))
    assert ax.get_xlim() == (0, 9)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["A: 3 of 4", "B: 0 of 2"]
    _, _, low, high = first.curve()
    corners = {tuple(corner) for corner in np.round(ax.collections[0].get_paths()[0].vertices, 9).tolist()}
    for time, least, most in ((2.0, low[2], high[2]), (9.0, low[-1], high[-1])):
        assert {(time, round(1 - least, 9)), (time, round(1 - most, 9))} <= corners
    assert [to_hex(area.get_facecolor()[0]) for area in ax.collections] == [palette.FIRST, palette.SECOND]


def test_accuracies_are_shown_from_0_to_1_over_a_dotted_diagonal():
    found = SimpleNamespace(predicted=np.array([0.4, 0.5]), measured=np.array([0.4, 0.6]))
    ax = show_calibration(found, axes_())
    assert (ax.get_xlim(), ax.get_ylim()) == ((-0.03, 1.03), (-0.03, 1.03))
    assert ax.lines[0].get_xydata().tolist() == [[0, 0], [1, 1]]
    assert ax.lines[0].get_linestyle() == ":"


def test_nearest_shapes_in_space_are_seen_along_the_plane_of_the_second():
    first, second = RNG.normal(size=(1, 5, 3)), RNG.normal(size=(1, 5, 3)) * [0.1, 2.0, 1.0]
    shapes = SimpleNamespace(
        disparity=np.zeros((1, 1)), relabelling=np.zeros((1, 1), int), nearest=np.zeros(1),
        symmetry=SimpleNamespace(permutations=np.arange(5)[None]),
    )  # fmt: skip
    comparison = SimpleNamespace(names=("A", "B"), shapes=shapes)
    (ax,) = show_nearest(comparison, *[[Trajectory(one[:, None], [0])] for one in (first, second)])[0]
    np.testing.assert_allclose(np.abs(cloud(ax, 1)), np.abs(in_plane(second[0], second[0])), atol=1e-9)
    a, b = first[0] - first[0].mean(axis=0), second[0] - second[0].mean(axis=0)
    u, s, v = np.linalg.svd(a.T @ b)
    fitted = a @ u @ v * s.sum() / (a**2).sum() + second[0].mean(axis=0)
    axes = principal_components(second[0]).axes[:2]
    np.testing.assert_allclose(cloud(ax, 0), fitted @ axes.T, atol=1e-9)


def test_a_typical_pair_in_space_is_seen_along_the_last_plane_of_the_second():
    steps = np.arange(3)
    path = RNG.normal(size=(1, 3, 5, 3))
    comparison = SimpleNamespace(
        motion=motion(np.zeros((1, 3)), steps[None]), shapes=object(), names=("A", "B")
    )
    axes = show_typical_pair(comparison, [Trajectory(2 * path, steps)], [Trajectory(path, steps)])
    assert axes.shape == (2, 3)
    plane = principal_components(path[0, -1]).axes[:2]
    for column, k in zip(axes.T, steps, strict=True):
        for ax in column:
            np.testing.assert_allclose(cloud(ax), path[0, k] @ plane.T, atol=1e-9)
    still = Trajectory(path[:, :1], [0])
    for both in (([still], [Trajectory(path, steps)]), ([Trajectory(path, steps)], [still])):
        assert show_typical_pair(comparison, *both) is None, "a single frame has no clock"


def test_frames_of_a_typical_pair_without_a_counterpart_are_left_out():
    steps = np.arange(4)
    path = RNG.normal(size=(1, 4, 5, 2))
    one = motion([[np.nan, 0.5, np.inf, 0.25]], [[0, 1, 2, 3]])
    comparison = SimpleNamespace(motion=one, shapes=object(), names=("A", "B"))
    axes = show_typical_pair(comparison, [Trajectory(path, steps)], [Trajectory(path, steps)])
    assert [title(ax) for ax in axes[1]] == ["time 1,\ndistance 0.50", "time 3,\ndistance 0.25"]


def test_distributions_stand_in_a_grid():
    ax = show_distributions({"A": [1.0]}, axes_(), title="t")
    assert title(ax) == "t"
    assert ax.xaxis.get_gridlines()[0].get_visible()
    assert ax.yaxis.get_gridlines()[0].get_visible()


# -- neurons and maps -------------------------------------------------------------------------------------


def test_neurons_of_a_frequency_stand_from_the_purest_down_and_outputs_are_their_own():
    a = np.arange(11)[:, None]
    wave = 2 * np.pi * a * [1, 2, 1, 2] / 11
    other = np.cos(2 * np.pi * a * [3, 3, 3, 3] / 11)
    spectrum = neuron_spectrum(
        np.cos(wave) + [0.8, 0.1, 0.2, 0.5] * other, (np.cos(wave) + [0.1, 0.2, 0.4, 0.3] * other).T
    )
    ax = show_neurons(spectrum, axes_())
    shown = np.asarray(ax.images[0].get_array())
    np.testing.assert_allclose(shown[:, 2], [0.2, 0.8, 0.1, 0.5], atol=1e-9)
    np.testing.assert_allclose(shown.max(axis=1), 1)
    ax = show_neurons(spectrum, axes_(), output=True)
    np.testing.assert_allclose(np.asarray(ax.images[0].get_array())[:, 2], [0.4, 0.1, 0.2, 0.3], atol=1e-9)
    assert ax.images[0].colorbar.ax.get_ylabel() == "magnitude over the largest of the neuron"
    ax = show_phases(spectrum, axes_())
    assert (ax.get_xlabel(), ax.get_ylabel()) == (
        "twice the phase of the input, 2φ",
        "phase of the output, ψ",
    )
    assert ax.get_aspect() == 1
    several = neuron_spectrum(np.ones((1, 5, 2)), np.ones((1, 2, 5)))
    with pytest.raises(InputError, match=r"spectrum must hold one layer, .* the shape \(1, 2, 2\)"):
        show_phases(several)
    plt.close("all")


def test_key_frequencies_of_logits_are_colored_over_a_line_at_0():
    a, b, c = np.ogrid[:7, :7, :7]
    waves = logit_spectrum(
        2 * np.cos(2 * np.pi * 3 * (a + b - c) / 7) - 1.5 * np.cos(2 * np.pi * (a + b - c) / 7)
    )
    ax = show_logit_waves(waves, axes_())
    keys = waves.key_frequencies().tolist()
    assert 0 < sum(keys) < 3
    assert [to_hex(bar.get_facecolor()) == palette.FIRST for bar in ax.patches] == keys
    assert {to_hex(bar.get_facecolor()) for bar in ax.patches} == {palette.FIRST, palette.REFERENCE}
    assert [line.get_ydata() for line in ax.lines] == [[0, 0]]
    nothing = show_logit_waves(logit_spectrum(np.zeros((7, 7, 7))), axes_())
    assert title(nothing) == "0% of the logits explained"


def test_sums_have_the_color_of_their_class_and_all_count_as_trained_unless_said():
    given = {"count": 3, "sums": [[0, 0], [1, 1], [2, 0]], "labels": [2, 0, 2]}
    ax = show_classifier([[0, 1], [2, 1]], (0, 1, 0, 1), axes_(), **given, title="t")
    assert title(ax) == "t"
    discs, diamonds = ax.collections
    assert cloud(ax).tolist() == given["sums"]
    assert not len(diamonds.get_offsets())
    np.testing.assert_allclose(discs.get_facecolors(), palette.class_colors(3)[[2, 0, 2]])
    assert not show_classifier([[0, 1], [2, 1]], (0, 1, 0, 1), axes_(), count=3).collections
    assert not len(ax.get_xticks())


# -- signals and the style --------------------------------------------------------------------------------


def test_signals_have_a_frame_from_0_also_where_all_are_0():
    ax = show_signals([0, 1], np.zeros((2, 2)), axes_(), title="t")
    assert ax.get_ylim() == (0, 1.05e-12)
    assert (title(ax), ax.get_xlabel(), ax.get_ylabel()) == ("t", "step", "Fourier signal ‖$F_k$‖")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["dead"]


def test_marked_rows_that_are_neighbors_have_labels_apart_from_each_other():
    ax = axes_(2.5)
    show_coefficients(np.eye(29), ax, marked=[7, 8, 9, 25], title="t")
    assert title(ax) == "t"
    assert all(spine.get_visible() for spine in ax.spines.values())
    for axis in (ax.xaxis, ax.yaxis):
        labels = {int(label.get_text()): label for label in axis.get_ticklabels()}
        places = dict(zip(labels, (1 + axis.get_majorticklocs()).tolist(), strict=True))
        apart = min(b - a for a, b in itertools.pairwise(places.values()))
        assert apart > 2, "neighbors would overlap"
        assert [places[k] for k in (7, 8, 9, 25)] == pytest.approx([8 - apart, 8, 8 + apart, 25])
        assert all(places[k] == k for k in set(places) - {7, 9}), "the others stay in their places"
        assert {tick.tick1line.get_markersize() for tick in axis.get_major_ticks()} == {0}
        bold = {k for k, label in labels.items() if label.get_color() == palette.SURVIVES}
        assert bold == {k for k, label in labels.items() if label.get_fontweight() == "bold"} == {7, 8, 9, 25}


def test_the_style_is_that_of_the_axes_wherever_they_are_given_and_ends_with_an_error():
    seen = []

    @styles.styled
    def draw(values, ax=None, *, other=None, fails=False):
        seen.append((styles.points(1.0), plt.rcParams["font.size"]))
        if fails:
            raise ValueError

    usual = plt.rcParams["font.size"]
    wide = axes_(3 * styles.PRINTED)
    draw([1], wide)
    draw([1], other=wide)
    draw([1], axes_(1.0))
    draw([1])
    with pytest.raises(ValueError):
        draw([1], ax=wide, fails=True)
    sizes = [size for size, _ in seen]
    assert sizes == pytest.approx([3, 3, 1, 1, 3])
    assert seen[0][1] == pytest.approx(3 * seen[2][1])
    assert (styles.points(1.0), plt.rcParams["font.size"]) == (1.0, usual)


def test_panels_are_as_wide_as_all_their_columns_and_letters_grow_with_them():
    axes = styles.panels(1, 4, styles.PRINTED / 2, 1.0, sharey=True)
    assert tuple(axes[0, 0].figure.get_size_inches()) == (2 * styles.PRINTED, 1.0)
    usual = styles.panels(1, 1, 1.0, 1.0)[0, 0].xaxis.label.get_fontsize()
    assert axes[0, 0].xaxis.label.get_fontsize() == pytest.approx(2 * usual)
    assert axes[0, 0].get_shared_y_axes().joined(*axes[0, :2])


def test_a_legend_takes_other_handles_and_is_centered_below():
    ax = axes_()
    (line,) = ax.plot([0, 1], [0, 1], label="curve")
    legend = styles.legend_below(ax, handles=[line], labels=["another"], columns=1)
    assert [text.get_text() for text in legend.get_texts()] == ["another"]
    assert legend._loc == 9, "upper center"
    frame = styles.framed(axes_())
    assert all(spine.get_visible() for spine in frame.spines.values())
    assert {to_hex(spine.get_edgecolor()) for spine in frame.spines.values()} == {palette.FRAME}


def test_classes_are_dark_and_light_in_turn_and_an_odd_last_one_is_between():
    dark, light, between = 0.48, 0.78, 0.63
    for lightness in ([dark], [dark, light], [dark, light, between], [dark, light] * 2):
        turn = np.arange(len(lightness)) / len(lightness)
        expected = palette._wheel(np.array(lightness), turn)
        np.testing.assert_array_equal(palette.class_colors(len(lightness)), expected)
    np.testing.assert_array_equal(
        palette.cyclic_colors(3), palette._wheel(np.full(3, 0.66), np.arange(3) / 3)
    )
    ends = [plt.get_cmap("viridis")(place) for place in (0.0, 0.88)]
    np.testing.assert_array_equal(palette.graded_colors(4)[[0, -1]], ends)
    assert palette.class_colors(0).shape == palette.graded_colors(0).shape == (0, 4)
    assert [palette.ink_on(np.array(color)) for color in ([0.5] * 3, [0.51] * 3, [1, 0, 0], [0, 1, 0])] == [
        "white", "black", "white", "black",
    ]  # fmt: skip
