"""Figures, each drawn once: the data that are drawn, and in which colors."""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from pictures import lines, title
from scipy.spatial import procrustes
from trajectories import circles

from analysis import neuron_spectrum
from analysis.circles.fourier import frequency_norms
from analysis.circles.survival import surviving_frequencies
from analysis.comparison.compared import EnsembleOf
from analysis.comparison.timing import Onsets
from analysis.phases import Axis, Cell, Run
from analysis.plots import neurons, palette
from analysis.plots.comparison import show_calibration, show_nearest, show_onsets, typical_pair
from analysis.plots.distributions import show_distributions
from analysis.plots.embeddings import show_embedding
from analysis.plots.neurons import show_neurons
from analysis.plots.phases import show_phases
from analysis.plots.signals import show_rollouts, show_signals, show_trajectory
from physics import Trajectory


def axes_(width=5.0):
    return Figure(figsize=(width, 4.0)).subplots()


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
    numbers = [(text.get_text(), text.get_position()) for text in ax.texts]
    assert numbers == [(str(k), tuple(E[k, :2])) for k in range(5)]
    assert not show_embedding(E, axes_(), labels=False).texts


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
    assert [drawn[n].get_color() for n in (4, 2, 0)] == [palette.SERIES[0], palette.SERIES[1], palette.DEAD]
    assert ax.get_ylim() == pytest.approx((0, 1.05 * values.max()))


def test_rollouts_take_frames_of_a_map_and_elapsed_steps_of_a_flow():
    steps = np.array([100, 110, 130])
    values = np.random.default_rng(2).uniform(1, 2, (3, 4))
    asked = []

    def law(kind):
        def predict(start, times):
            asked.append((kind, start.tolist(), list(times)))
            return start + np.asarray(times)[:, None]

        return SimpleNamespace(kind=kind, predict=predict)

    axes = show_rollouts(
        circles(steps, values, np.arange(4) == 1), {"map": law("increment"), "flow": law("generator")}
    )[0]
    assert asked == [
        ("increment", values[0].tolist(), [0, 1, 2]),
        ("generator", values[0].tolist(), [0, 10, 30]),
    ]
    for ax, times, name in zip(axes, ([0, 1, 2], [0, 10, 30]), ("map", "flow"), strict=True):
        assert title(ax) == name
        assert lines(ax)["frequency 2"] == (steps.tolist(), values[:, 1].tolist())
        dashed = [line.get_ydata().tolist() for line in ax.lines if line.get_linestyle() == "--"]
        assert (values[0, 1] + np.array(times)).tolist() in dashed


# -- estimates --------------------------------------------------------------------------------------------


def test_distributions_are_cumulative_over_finite_values():
    ax = show_distributions({"A": [3.0, 1.0, np.nan, 2.0], "B": [np.inf]}, axes_(), xlabel="x")
    (x, y) = lines(ax)["A (n = 3)"]
    assert x[1:] == [1, 2, 3]
    np.testing.assert_allclose(y[1:], [1 / 3, 2 / 3, 1])
    assert lines(ax)["B (none)"] == ([], [])


def test_a_calibration_is_predicted_across_and_measured_upward():
    found = SimpleNamespace(predicted=np.array([0.1, 0.5]), measured=np.array([0.3, 0.9]))
    ax = show_calibration(found, axes_(), title="t")
    assert cloud(ax).tolist() == [[0.1, 0.3], [0.5, 0.9]]


# -- comparisons ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("means", "chosen"), [([3.0, 1.0, 2.0], 2), ([4.0, 1.0, 3.0, 2.0], 3), ([1.0, 1.0, 1.0, 1.0], 1)]
)
def test_the_typical_pair_has_the_median_error_and_the_lower_one_of_two(means, chosen):
    error = np.repeat(np.array(means)[:, None], 3, axis=1)
    error[0, 0] = np.nan
    assert typical_pair(SimpleNamespace(error=error)) == chosen


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

    def compared(*runs, shapes=shapes):
        ensembles = [EnsembleOf("x", [Trajectory(one[:, None], [0])]) for one in runs]
        return SimpleNamespace(names=("A", "B"), shapes=shapes, ensembles=ensembles)

    order = np.argsort(shapes.nearest)
    for count, chosen in ((4, order[[0, 2, 3, 5]]), (2, order[[0, 5]]), (9, order)):
        axes = show_nearest(compared(first, second), count)
        assert axes.shape == (1, len(chosen))
        for ax, run in zip(axes[0], chosen, strict=True):
            partner = int(disparity[:, run].argmin())
            both = f"run {run} (discs),\nrun {partner} (open circles)"
            assert title(ax) == f"{both},\ndisparity {shapes.nearest[run]:.2f}"
            np.testing.assert_allclose(cloud(ax, 1), second[run])
            rings, b = cloud(ax, 0), second[run] - second[run].mean(axis=0)
            off = np.sum((rings - second[run]) ** 2) / np.sum(b**2)
            assert off == pytest.approx(shapes.nearest[run]), "a is turned, scaled and moved to fit b best"
    assert show_nearest(compared(first, second)).shape == (1, 4)
    assert show_nearest(compared(first, second, shapes=None)) is None
    assert show_nearest(compared(first[..., :1], second[..., :1])) is None
    assert show_nearest(compared(first, rng.normal(size=(6, 5, 3)))) is None


# -- phases -----------------------------------------------------------------------------------------------


def test_phases_are_drawn_cell_by_cell_and_named_where_there_is_room():
    x, y = Axis("x", 0.0, 1.0), Axis("y", 1e-3, 1e1, scale="log")
    assert (x.value(0.25), y.value(0.5)) == (0.25, pytest.approx(0.1))
    areas = [
        ((0.0, 0.5), (0.0, 1.0), "comprehension"), ((0.5, 1.0), (0.0, 0.9), "memorization"),
        ((0.5, 0.8), (0.9, 1.0), "grokking"), ((0.8, 1.0), (0.9, 1.0), "comprehension"),
    ]  # fmt: skip
    cells = [Cell(a, b, (0.0, 0.0), 0, [Run(0, 1.0, 1.0, phase)]) for a, b, phase in areas]
    diagram = SimpleNamespace(x=x, y=y, cells=cells, decided=lambda cell: cell is not cells[1])
    ax = show_phases(diagram, axes_(), title="t")
    filled = [patch for patch in ax.patches if patch.get_fill()]
    for patch, cell in zip(filled, cells, strict=True):
        assert to_hex(patch.get_facecolor()) == to_hex(palette.PHASES[cell.majority.phase])
        assert (patch.get_hatch() == "////") == (cell is cells[1])
        corners = patch.get_corners()[[0, 2]].T.ravel()
        np.testing.assert_allclose(corners, [*cell.x, *(1e-3 * 1e4 ** np.array(cell.y))])
    assert {text.get_text() for text in ax.texts} == {"comprehension", "memorization"}
    (name,) = [text for text in ax.texts if text.get_text() == "comprehension"]
    np.testing.assert_allclose(name.get_position(), (0.25, 0.1)), "of its two cells the larger one's middle"
    np.testing.assert_allclose([*ax.get_xlim(), *ax.get_ylim()], [0, 1, 1e-3, 10])


def in_plane(E, reference):
    return E @ np.linalg.svd(reference - reference.mean(axis=0))[2][:2].T


# -- a trajectory -----------------------------------------------------------------------------------------


def recorded():
    positions = np.random.default_rng(11).normal(size=(3, 4, 7, 5))
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
    assert y == pytest.approx(frequency_norms(moves.positions[run])[:, 1])


# -- two ensembles ----------------------------------------------------------------------------------------


def test_fractions_that_have_arrived_have_a_band_up_to_the_end_of_the_last_run():
    first = Onsets(np.array([1.0, 2, 4, 9]), np.array([True, True, True, False]))
    never = Onsets(np.array([6.0, 6.0]), np.array([False, False]))
    ax = show_onsets(SimpleNamespace(first=first, second=never, name="x"), ("A", "B"), axes_())
    assert [line.get_xdata()[-1] for line in ax.lines] == [9, 6]
    assert ax.lines[1].get_ydata().tolist() == [0, 0]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["A: 3 of 4", "B: 0 of 2"]
    _, _, low, high = first.curve()
    corners = {tuple(corner) for corner in np.round(ax.collections[0].get_paths()[0].vertices, 9).tolist()}
    for time, least, most in ((2.0, low[2], high[2]), (9.0, low[-1], high[-1])):
        assert {(time, round(1 - least, 9)), (time, round(1 - most, 9))} <= corners
    assert [to_hex(area.get_facecolor()[0]) for area in ax.collections] == [palette.FIRST, palette.SECOND]


# -- signals and the style --------------------------------------------------------------------------------


@pytest.fixture
def ax():
    figure, ax = plt.subplots()
    yield ax
    plt.close(figure)


@pytest.fixture
def spectrum():
    p = 11
    phases = np.array([0.3, 1.9, -2.0, 0.5])
    angle = 2 * np.pi * np.outer(np.arange(p), [4, 2, 4, 1]) / p
    W_in = np.cos(angle + phases) * [1, 1, 1, 1e-6]
    return neuron_spectrum(W_in, np.cos(angle + 2 * phases + [0, 0.2, 0, 0]).T)


def test_rows_are_neurons_by_frequency_and_dead_ones_last(ax, spectrum):
    for output in (False, True):
        assert show_neurons(spectrum, ax, output=output) is ax
    drawn = np.asarray(ax.images[0].get_array())
    wanted = np.zeros((4, 5))
    wanted[0, 1] = wanted[1, 3] = wanted[2, 3] = 1
    np.testing.assert_allclose(drawn, wanted, atol=1e-12)
    dead, all_ = neuron_spectrum(np.zeros((7, 2))), neuron_spectrum(np.eye(7)[:, :2])
    for one in (spectrum, dead, all_):
        show_neurons(one, ax)
        assert ax.images[-1].get_clim() == (0, 1), "a color means the same in all figures"
    show_neurons(spectrum, ax)
    assert list(ax.images[-1].get_extent()) == [0.5, 5.5, 4, 0], "columns stand over their frequencies"


def test_aligned_phases_lie_on_the_diagonal(ax, spectrum):
    assert neurons.show_phases(spectrum, ax) is ax
    points = np.asarray(ax.collections[0].get_offsets())
    assert points.shape == (3, 2)
    np.testing.assert_allclose(points[:, 0] - points[:, 1], [0, -0.2, 0], atol=1e-12)
    assert (np.abs(points) <= np.pi).all()
    colors = ax.collections[0].get_facecolors()
    assert np.array_equal(colors[0], colors[2])
    assert not np.array_equal(colors[0], colors[1])
    (line,) = ax.lines
    np.testing.assert_array_equal(line.get_xydata(), [[-np.pi, -np.pi], [np.pi, np.pi]])
