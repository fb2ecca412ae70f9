"""What the figures of the explorer and of its films hold, read back from what is sent to the page."""

from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib import colors as mpl_colors
from matplotlib.figure import Figure

from analysis.plots.palette import class_colors

pytest.importorskip("bokeh", reason="bokeh is not installed")

from grokphys.explorer import theme
from grokphys.explorer.films import films, parts
from grokphys.explorer.plots import circles, plane
from grokphys.explorer.plots.neurons import Bars, HeatMap
from grokphys.explorer.plots.theory import FlowCurves, PairGrid, ParallelogramPlot
from grokphys.explorer.runs.training_set import TrainingSet


def limits(figure):
    return (figure.x_range.start, figure.x_range.end, figure.y_range.start, figure.y_range.end)


def columns(source, *names):
    return [np.asarray(source.data[name]).tolist() for name in names]


def linear(color):
    """Red, green and blue of a color in linear light (sRGB), from 0 to 1."""
    values = np.array(mpl_colors.to_rgb(color))
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def luminance(color):
    """Relative luminance of WCAG 2.2."""
    return linear(color) @ [0.2126, 0.7152, 0.0722]


# -- colors -----------------------------------------------------------------------------------------------


def test_texts_are_black_or_white_and_darker_colors_keep_their_hue():
    assert theme.text_colors(["#000000", "#0000ff", "#757575"]) == ["#ffffff"] * 3
    assert theme.text_colors(["#ffffff", "#00ff00", "#ff0000", "#767676"]) == ["#000000"] * 4
    assert theme.text_colors(["#000000", "#ffffff"], dark=True) == ["#ffffff", "#000000"], "both are inverted"
    paper = luminance(theme.PAPER)
    for color in ("#ffff00", "#80c0ff", "#101020"):
        dark, bright = linear(theme.darker(color)), linear(color)
        limit = (paper + 0.05) / 4.5 - 0.05
        np.testing.assert_allclose(dark, bright * min(1, limit / luminance(color)), atol=0.01)
    assert theme.class_colors(7) == [mpl_colors.to_hex(color) for color in class_colors(7)]


# -- neurons and circles ----------------------------------------------------------------------------------


def test_magnitudes_are_bars_from_frequency_1_and_logits_are_cells_about_their_classes():
    bars = Bars("x")
    bars.show(np.array([0.5, 2.0, 1.0]))
    assert columns(bars._source, "k", "top", "fill") == [[1, 2, 3], [0.5, 2, 1], theme.class_colors(3)]
    assert (bars.figure.y_range.start, bars.figure.renderers[0].glyph.fill_color) == (0, "fill")
    heat, logits = HeatMap("x", 200), np.array([[1.0, -3], [2, 0]])
    heat.show(logits)
    assert heat._source.data["image"][0].tolist() == logits.tolist()
    assert heat._source.data["size"] == [2]
    assert (heat._colors.low, heat._colors.high) == (-3, 3)
    assert limits(heat.figure) == (-0.5, 1.5) * 2
    heat.show(np.zeros((3, 3)))
    assert (heat._colors.low, heat._colors.high) == (-1, 1), "nothing is as large as nothing"
    assert limits(heat.figure) == (-0.5, 2.5) * 2


def test_signals_are_drawn_by_whether_they_survive_and_which_one_is_looked_at():
    steps = np.array([0, 9, 99])
    values = np.random.default_rng(0).uniform(1, 2, (3, 4))
    shown = circles.SignalPlot()
    run = SimpleNamespace(signals=(steps, values), frequencies=4)
    shown.show(run, [4, 2], 1.5, 3)
    assert shown._dead.data["name"] == ["k = 1", "k = 3"]
    assert shown._alive.data["name"] == ["k = 4", "k = 2"]
    for source, own in ((shown._dead, (0, 2)), (shown._alive, (3, 1))):
        for x, y, k in zip(source.data["xs"], source.data["ys"], own, strict=True):
            assert x.tolist() == [1, 10, 100]
            assert y.tolist() == values[:, k].tolist()
    assert shown._alive.data["line"] == list(theme.SERIES[:2])
    assert shown._alive.data["dash"] == list(theme.DASHES[:2])
    assert columns(shown._chosen, "x", "y") == [[1, 10, 100], values[:, 2].tolist()]
    assert shown._limit.location == 1.5
    shown.point_at(9)
    assert shown._now.location == 10
    shown.show(run, [], 1.5, None)
    assert columns(shown._chosen, "x", "y") == [[], []]
    rollout = np.where(np.arange(8).reshape(2, 4) == 5, np.inf, 1.0)
    shown.show_rollout(SimpleNamespace(steps=np.array([4, 9]), rollout=rollout))
    np.testing.assert_array_equal(shown._rollouts.data["ys"], [[1, 1], [1, np.nan], [1, 1], [1, 1]])
    assert shown._rollouts.data["xs"][0].tolist() == [5, 10]
    shown.show_rollout(None)
    assert shown._rollouts.data["xs"] == []


def test_many_steps_are_thinned_evenly_in_their_logarithm_and_keep_both_ends():
    for steps in (np.arange(5000), np.arange(100, 90_000, 7)):
        kept = circles._log_evenly(steps)
        assert len(kept) <= circles.POINTS
        assert (kept[0], kept[-1]) == (0, len(steps) - 1)
        assert (np.diff(kept) > 0).all()
        late = np.diff(np.log(steps[kept] + 1))[-100:]
        assert late.max() < 1.6 * np.log((steps[-1] + 1) / (steps[0] + 1)) / (circles.POINTS - 1)
    assert circles._log_evenly(np.arange(circles.POINTS)).tolist() == list(range(circles.POINTS))


def test_coefficients_are_cells_of_who_acts_on_whom():
    A = np.array([[0.0, 2.0, 0], [-1, 0, 0.5], [0, 0, -4]])
    shown = circles.CoefficientPlot()
    shown.show(SimpleNamespace(A=A), [3])
    data = shown._cells.data
    for on, of, cell, sign, text, fill in zip(
        *(data[name] for name in ("on", "of", "value", "sign", "text", "fill")), strict=True
    ):
        value = A[on - 1, of - 1]
        assert (cell, sign, text) == (value, "+" if value > 0 else "−" if value < 0 else "", f"{of} on {on}")
        red, _, blue = mpl_colors.to_rgb(fill)
        assert np.sign(round(red - blue, 2)) == np.sign(value)
    assert [shown._marks.data[name] for name in ("x", "y", "marker")] == [
        [3, 0],
        [0, 3],
        ["inverted_triangle", "triangle"],
    ]
    assert limits(shown.figure) == (-0.6, 3.5, 3.5, -0.6)
    assert shown.figure.xaxis.ticker.ticks == [1, 2, 3]
    shown.show(SimpleNamespace(A=np.zeros((13, 13))), [])
    assert shown.figure.xaxis.ticker.ticks == [1, 5, 10]


# -- the plane --------------------------------------------------------------------------------------------


def test_tokens_carry_their_numbers_and_lead_their_trails():
    rng = np.random.default_rng(1)
    points = rng.normal(size=(5, 2))
    shown = plane.TokenPlot("x")
    shown.begin(points, [2, 0, 1, 4, 3])
    data, colors = shown.tokens.data, theme.class_colors(5)
    assert columns(shown.tokens, "x", "y", "name") == [*points.T.tolist(), list("01234")]
    assert data["fill"] == [colors[k] for k in (2, 0, 1, 4, 3)]
    assert data["ink"] == theme.text_colors(data["fill"])
    alpha = np.reshape(shown._trails.data["alpha"], (plane.TRAIL, 5))
    assert (np.diff(alpha[:, 0]) > 0).all()
    assert np.ptp(alpha, axis=1).max() == 0
    assert shown._trails.data["color"][:5] == data["fill"]
    path = rng.normal(size=(3, 5, 2))
    shown.follow(path, 2)
    np.testing.assert_allclose(shown.points(), path[-1])
    ends = np.stack(
        [np.reshape(shown._trails.data[name], (plane.TRAIL, 5)) for name in ("x0", "y0", "x1", "y1")]
    )
    np.testing.assert_allclose(ends[2:, -1].T, path[2], atol=1e-4)
    np.testing.assert_allclose(ends[:2, -1].T, path[1], atol=1e-4)
    np.testing.assert_allclose(ends[:2, -2].T, path[0], atol=1e-4)
    np.testing.assert_allclose(ends[:2, 0].T, path[0], atol=1e-4)
    shown.ring(3)
    assert columns(shown._ring, "x", "y") == [[path[-1, 3, 0]], [path[-1, 3, 1]]]
    for none in (None, 5):
        shown.ring(none)
        assert columns(shown._ring, "x", "y") == [[], []]
    shown.begin(np.zeros((41, 2)))
    assert shown.disc.glyph.size == 16
    shown.begin(np.zeros((40, 2)))
    assert shown.disc.glyph.size == 21


def test_pair_sums_are_filled_by_class_or_hollow():
    points, pairs = np.array([[1.0, 2], [3, 4], [-5, 6]]), [(0, 0), (0, 1), (1, 2)]
    shown = plane.SumPlot("x")
    shown.begin(points, pairs, [0, 6, 1], 7, [False, True, False])
    colors = theme.class_colors(7)
    data = shown._sums.data
    assert columns(shown._sums, "x", "y") == points.T.tolist()
    assert data["fill"] == [colors[0], "#ffffff", colors[1]]
    assert data["line"] == ["#444444", colors[6], "#444444"]
    assert data["ink"] == [theme.darker(colors[k]) for k in (0, 6, 1)]
    assert (data["class"], data["pair"]) == (["0", "6", "1"], ["0, 0", "0, 1", "1, 2"])
    assert data["marker"] == [plane.MARKERS[k] for k in (0, 1, 1)]
    assert shown._texts.data["x"] == []
    shown.show_numbers(True)
    assert shown._texts.data["class"] == ["0", "6", "1"]
    assert (shown._discs.glyph.fill_alpha, shown._discs.glyph.line_alpha) == (0, 0)
    shown.move(points / 2)
    assert columns(shown._sums, "x", "y") == columns(shown._texts, "x", "y") == (points / 2).T.tolist()
    shown.show_numbers(False)
    assert shown._texts.data["class"] == []
    assert (shown._discs.glyph.fill_alpha, shown._discs.glyph.line_alpha) == (1, 1)
    many = np.zeros((401, 2))
    shown.begin(many, [(0, 0)] * 401, [0] * 401, 1)
    assert shown._discs.glyph.size == 5
    assert set(shown._sums.data["fill"]) == set(theme.class_colors(1))


def test_curves_end_in_a_dot_and_leave_gaps():
    shown = plane.Curves("x", ["a", "b"])
    shown.show(np.arange(4), a=np.array([1.0, np.inf, 3, 4]), b=np.ones(4))
    np.testing.assert_array_equal(shown._source.data["a"], [1, np.nan, 3, 4])
    assert columns(shown._now, "step", "a", "b") == [[3], [4], [1]]
    steps = np.arange(1000)
    thin = plane._thinned(steps, {"a": steps * 2.0})
    assert len(thin["step"]) == plane.MOST_POINTS
    assert (thin["step"][0], thin["step"][-1]) == (0, 999)
    np.testing.assert_array_equal(thin["a"], 2.0 * thin["step"])
    two = plane.Curves("x", ["a"], starts=("left", "right"))
    assert not two.figure.legend.visible
    two.show_beside(np.arange(2), a=np.array([5.0, 6]))
    assert two.figure.legend.visible
    assert columns(two._beside, "step", "a") == [[0, 1], [5, 6]]
    two.show_beside(np.arange(0), a=np.empty(0))
    assert not two.figure.legend.visible


def test_points_are_rounded_to_a_part_of_their_extent():
    points = np.array([[1234.56789, 0.000123456], [-3.0, 2.0]])
    x, y = plane._drawn(points)
    assert np.abs(np.transpose([x, y]) - points).max() <= 1e-5 * 1234.6
    assert x[0] == 1234.57
    assert plane._drawn(np.array([[0.000123456, 0.0]]))[0] == [0.000123456]
    many = plane._drawn(np.ones((plane.LONG + 1, 2)))
    assert many.dtype == np.float32
    assert isinstance(plane._drawn(np.ones((plane.LONG, 2)))[0], list)


# -- the theory -------------------------------------------------------------------------------------------


@pytest.fixture(params=[1, 2])
def chosen(request):
    return TrainingSet.drawn(6, None, size=14, dim=request.param, seed=3)


def test_pairs_are_cells_by_whether_they_are_trained_or_follow(chosen):
    tapped = []
    grid = PairGrid(lambda i, j: tapped.append((i, j)))
    grid.show(chosen)
    data, colors = grid._cells.data, theme.class_colors(chosen.classes)
    known = {tuple(pair) for pair in chosen.pairs}
    for n, (i, j) in enumerate(chosen.operation.samples.tolist()):
        assert (data["i"][n], data["j"][n], data["class"][n]) == (i, j, i + j)
        own, trained, follows = colors[i + j], (i, j) in known, bool(chosen.follows[n])
        assert data["state"][n] == (
            "trained" if trained else "follows from the trained ones" if follows else "open"
        )
        assert data["fill"][n] == (own if trained else "#ffffff")
        assert data["line"][n] == (theme.darker(own) if trained or follows else theme.FAINT)
        assert data["width"][n] == (2.5 if follows else 1.0)
        assert data["text"][n] == (str(i + j) if trained or follows else "")
        assert data["ink"][n] == (theme.text_colors([own])[0] if trained else theme.darker(own))
    assert limits(grid.figure) == (-0.7, 5.7) * 2
    grid._tapped(SimpleNamespace(x=1.4, y=2.6), lambda i, j: tapped.append((i, j)))
    grid._tapped(SimpleNamespace(x=None, y=2.6), lambda i, j: tapped.append((i, j)))
    assert tapped == [(1, 3)]
    grid.point(2, 5)
    assert columns(grid._cursor, "i", "j") == [[2], [5]]


def test_parallelograms_are_arcs_on_a_line_and_quadrilaterals_in_the_plane(chosen):
    shown, film = ParallelogramPlot(), Figure().subplots()
    shown.begin(chosen, 4)
    move = films.parallelograms(film, chosen)
    for frame in (4, len(chosen.times) - 1):
        if frame != 4:
            shown.move(chosen, frame)
        move(frame)
        E = np.pad(chosen.embeddings[frame], ((0, 0), (0, 2 - chosen.dim)))
        np.testing.assert_allclose(shown._tokens.points(), E)
        drawn = film.collections[0]
        if chosen.dim == 1:
            pairs = chosen.operation.samples[chosen.linked]
            both = E[pairs][..., 0]
            np.testing.assert_allclose(shown._arcs.data["x"], both.mean(axis=1))
            np.testing.assert_allclose(shown._arcs.data["radius"], np.abs(both[:, 0] - both[:, 1]) / 2)
            odd = pairs.sum(axis=1) % 2 == 1
            np.testing.assert_allclose(shown._arcs.data["begin"], np.where(odd, np.pi, 0))
            np.testing.assert_allclose(shown._arcs.data["end"], np.where(odd, 2 * np.pi, np.pi))
            for arc, ends, below in zip(drawn.get_segments(), both, odd, strict=True):
                np.testing.assert_allclose(sorted([arc[0, 0], arc[-1, 0]]), sorted(ends), atol=1e-12)
                height = np.abs(ends[0] - ends[1]) / 2
                assert arc[12, 1] == pytest.approx(-height if below else height)
        else:
            corners = chosen.quadrilaterals(frame)
            assert len(corners) > 0
            np.testing.assert_allclose(shown._shapes.data["xs"], corners[..., 0])
            np.testing.assert_allclose(shown._shapes.data["ys"], corners[..., 1])
            for path, corner in zip(drawn.get_paths(), corners, strict=True):
                np.testing.assert_allclose(path.vertices[: len(corner)], corner)
        assert film.get_title().startswith(f"time {chosen.times[frame]:.4g}: ")


def test_a_flow_has_curves_by_name_or_by_token():
    times = np.arange(3.0)
    named, tokens = FlowCurves("x", ["RQI", "accuracy"]), FlowCurves("x")
    curves = [np.ones(3), np.zeros(3)]
    named.show(times, curves)
    tokens.show(times, curves)
    assert columns(named._source, "line", "dash", "name") == [
        list(theme.SERIES[:2]),
        list(theme.DASHES[:2]),
        ["RQI", "accuracy"],
    ]
    assert columns(tokens._source, "line", "dash", "name") == [
        theme.line_colors(2),
        ["solid"] * 2,
        ["0", "1"],
    ]
    assert columns(tokens._source, "xs", "ys") == [[[0, 1, 2]] * 2, [[1, 1, 1], [0, 0, 0]]]
    tokens.show_beside(times, np.arange(6.0).reshape(3, 2))
    assert columns(tokens._beside, "ys", "line") == [[[0, 2, 4], [1, 3, 5]], theme.line_colors(2)]
    tokens.show_beside(np.empty(0), np.empty((0, 0)))
    assert tokens._beside.data["line"] == []
    tokens.point_at(1.5)
    assert tokens._now.location == 1.5


# -- films ------------------------------------------------------------------------------------------------


def test_parts_of_films_move_to_their_frame():
    ax, x, y = Figure().subplots(), np.array([0, 10, 20]), np.array([5.0, 6, 7])
    move = parts.together(
        parts.now(ax, x),
        parts.grown(ax, x, y, "#000000", label="curve"),
        parts.title(ax, lambda frame: f"frame {frame}"),
    )
    line, faint, grown = ax.lines
    move(1)
    assert list(line.get_xdata()) == [10, 10]
    assert (grown.get_xdata().tolist(), grown.get_ydata().tolist()) == ([0, 10], [5, 6])
    assert (faint.get_ydata().tolist(), faint.get_alpha(), grown.get_alpha()) == ([5, 6, 7], 0.25, None)
    assert ax.get_title() == "frame 1"
    rng = np.random.default_rng(2)
    paths = rng.normal(size=(20, 5, 2))
    ax = Figure().subplots()
    move = parts.tokens(ax, paths, order=[1, 0, 2, 3, 4], cycle=[0, 2, 4, 1, 3, 0])
    trail, discs, names = ax.collections
    np.testing.assert_allclose(discs.get_facecolors(), class_colors(5)[[1, 0, 2, 3, 4]])
    for frame in (15, 3):
        move(frame)
        np.testing.assert_allclose(discs.get_offsets(), paths[frame])
        np.testing.assert_allclose(names.get_offsets(), paths[frame])
        np.testing.assert_allclose(np.transpose(ax.lines[0].get_data()), paths[frame][[0, 2, 4, 1, 3, 0]])
        segments = np.reshape(trail.get_segments(), (parts.TRAIL, 5, 2, 2))
        before = [max(frame - parts.TRAIL + k, 0) for k in range(parts.TRAIL + 1)]
        np.testing.assert_allclose(segments[:, :, 0], paths[before[:-1]])
        np.testing.assert_allclose(segments[:, :, 1], paths[before[1:]])
    ax = Figure().subplots()
    parts.tokens(ax, np.zeros((1, 32, 2)))
    assert len(ax.collections) == 2, "more than 31 tokens have no numbers"


def test_sums_of_films_have_the_color_of_their_class_and_held_out_ones_are_open():
    points = np.random.default_rng(3).normal(size=(4, 6, 2))
    ax, labels, apart = Figure().subplots(), [0, 1, 2, 0, 1, 5], np.array([0, 1, 0, 0, 1, 0], bool)
    move = parts.sums(ax, lambda frame: points[frame], labels, 6, apart)
    (drawn,) = ax.collections
    own = class_colors(6)[labels]
    np.testing.assert_allclose(drawn.get_facecolors(), np.where(apart[:, None], 1.0, own))
    np.testing.assert_allclose(drawn.get_edgecolors(), np.where(apart[:, None], own, [0.27, 0.27, 0.27, 1]))
    move(3)
    np.testing.assert_allclose(drawn.get_offsets(), points[3])
    paths = [path.vertices.tolist() for path in drawn.get_paths()]
    assert paths[0] == paths[3] == paths[5]
    assert paths[0] != paths[1]
    assert parts.extent(np.array([[1.0, -2.0]])) == pytest.approx(2.24)
    assert parts.extent(np.zeros((2, 2))) == 1


def test_arrows_of_films_are_shortened_as_on_the_page():
    paths, ax = np.random.default_rng(4).normal(size=(3, 4, 2)), Figure().subplots()
    parts.plane(ax, 3.0, label="tokens")
    move = parts.arrows(ax, paths, lambda frame: 10.0 * (frame + 1) * paths[frame])
    move(2)
    (drawn,) = ax.collections
    np.testing.assert_allclose(drawn.get_offsets(), paths[2])
    shown = np.stack([drawn.U, drawn.V], axis=1)
    np.testing.assert_allclose(shown / np.abs(shown).max(), paths[2] / np.abs(paths[2]).max())
    assert np.hypot(*shown.T).max() <= 3.0


def test_the_training_set_of_a_film_fills_what_is_trained(chosen):
    ax = Figure().subplots()
    films.show_training_set(ax, chosen)
    dots, trained, follows = ax.collections
    samples = chosen.operation.samples
    assert np.asarray(dots.get_offsets()).tolist() == samples.tolist()
    assert np.asarray(trained.get_offsets()).tolist() == samples[chosen.mask].tolist()
    assert np.asarray(follows.get_offsets()).tolist() == samples[chosen.follows].tolist()
    np.testing.assert_allclose(
        trained.get_facecolors(), class_colors(chosen.classes)[samples[chosen.mask].sum(axis=1)]
    )
    assert ax.get_title() == f"14 of {len(samples)} pairs"
    for line in ax.lines:
        assert len({x + y for x, y in line.get_xydata().tolist()}) == 1, "it joins equal sums"
