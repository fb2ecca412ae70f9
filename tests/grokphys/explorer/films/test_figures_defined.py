"""Ranges, ticks, legends and layouts of the figures of the explorer, and the files that films become."""

import io
import sys
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image

pytest.importorskip("bokeh", reason="bokeh is not installed")

from bokeh.models import FixedTicker, LogTicker, Span

import physics
from grokphys.explorer import theme
from grokphys.explorer.films import export, films, parts
from grokphys.explorer.films.particles import particle_film
from grokphys.explorer.plots import plane
from grokphys.explorer.plots.measures import MeasureCurves
from grokphys.explorer.plots.theory import PairGrid
from grokphys.explorer.runs.planes import plane_axes, shortened
from grokphys.explorer.runs.starts import start
from grokphys.explorer.runs.ticks import log_ticks
from grokphys.explorer.runs.training_set import TrainingSet
from physics.errors import OutputError

# -- ranges ------------------------------------------------------------------------------------------------


def square(width=None, height=None, top=1.0):
    made = theme.plot("x", square=True)
    made.y_range.update(start=-top, end=top)
    for name, size in (("inner_width", width), ("inner_height", height)):
        if size is not None:
            made.set_from_json(name, size)
    made.y_range.update(start=-top, end=top)
    return made


@pytest.mark.parametrize(
    ("width", "height", "aspect"),
    [(None, None, 1.5), (600, None, 1.5), (600, 300, 2.0), (200, 400, 0.5), (10, 400, 0.25), (100, 400, 0.25),
     (0, 300, 1.5), (600, 0, 1.5)],
)  # fmt: skip
def test_a_plane_has_equal_units_in_the_shape_that_the_page_has_drawn(width, height, aspect):
    made = square(width, height, top=3.0)
    assert theme.bounds(made) == theme.limits(made) == (-3 * aspect, 3 * aspect, -3.0, 3.0)


def test_the_page_keeps_units_equal_whenever_its_plane_changes_its_shape_or_range():
    made = theme.plot("x", square=True)
    for owner, name in ((made, "inner_width"), (made, "inner_height"), (made.y_range, "end")):
        (script,) = owner.js_property_callbacks[f"change:{name}"]
        assert (script.code, script.args) == (theme.SQUARE, {"plot": made}), name
    assert not theme.plot("x").js_property_callbacks


def test_a_figure_zooms_only_if_points_would_fill_too_little_or_too_much_of_it():
    made = square()
    for extent, top in (
        (0.56, 1.0),
        (0.94, 1.0),
        (0.96, 1.15 * 0.96),
        (0.7, 1.15 * 0.96),
        (0.5, 1.15 * 0.5),
        (0, 1.15),
    ):
        theme.zoom(made, extent)
        assert (made.y_range.start, made.y_range.end) == (-top, pytest.approx(top)), extent
        assert made.tags == [extent or 1.0]
    tall = square(200, 400)  # which shows half as much to the right as above
    theme.zoom(tall, 0.45)
    assert tall.y_range.end == 1.0, "0.9 of what is shown to the right"
    theme.zoom(tall, 0.49)
    assert tall.y_range.end == pytest.approx(1.15 * 0.98)
    tall.set_from_json("inner_width", 400)
    theme.zoom(tall)
    assert tall.y_range.end == pytest.approx(1.15 * 0.49), "the extent of before, in the new shape"


def test_limits_that_the_page_finds_in_the_data_are_not_known():
    made = theme.plot("x", y_range=(-1, 2))
    assert theme.limits(made) == (None, None, -1.0, 2.0)
    made.x_range.update(start=float("nan"), end=5)
    assert theme.limits(made) == (None, 5.0, -1.0, 2.0)


def test_tokens_that_are_followed_keep_the_extent_of_all_frames_unless_they_are_tiny():
    path = np.ones((3, 4, 2)) * np.array([6.0, 1.0, 0.1])[:, None, None]
    path[:, 0] *= -1
    shown = plane.TokenPlot("x")
    shown.begin(path[0])
    for frame, extent in ((0, 6.0), (1, 6.0), (2, 0.6), (1, 6.0)):
        shown.follow(path, frame)
        assert shown.figure.tags == [pytest.approx(extent)]
    shown.follow(path[1:], 1)
    assert shown.figure.tags == [pytest.approx(0.6)]
    shown.follow(path[2:] / 2, 0)
    assert shown.figure.tags == [pytest.approx(0.05)], "of the path that is shown now"
    shown.move(path[1])
    assert shown.figure.tags == [1.0]
    sums = plane.SumPlot("x")
    sums.begin(np.full((400, 2), -3.0), [(0, 0)] * 400, [0] * 400, 1)
    assert (sums.figure.tags, sums._discs.glyph.size) == ([3.0], 9)
    sums.move(np.full((400, 2), -9.0))
    assert sums.figure.tags == [9.0]


def test_numbers_of_pair_sums_are_those_of_the_sums_that_are_shown_now():
    shown, points = plane.SumPlot("x"), np.array([[1.0, 2], [3, 4], [-5, 6]])
    shown.show_numbers(True)
    for classes in ([0, 2, 1], [1, 1, 0]):
        shown.begin(points, [(0, 0), (0, 1), (1, 2)], classes, 3)
        assert shown._texts.data["class"] == list(map(str, classes))
        assert shown._texts.data["x"] == [1, 3, -5]


def test_an_arrow_is_a_third_of_half_a_figure_at_most():
    vectors = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    np.testing.assert_allclose(shortened(vectors, 3.0), vectors / 5)
    np.testing.assert_array_equal(shortened(vectors, 15.0), vectors)
    np.testing.assert_allclose(shortened(vectors, 14.7), 0.98 * vectors)
    np.testing.assert_array_equal(shortened(0 * vectors, 1.0), 0 * vectors)
    assert shortened(np.empty((0, 2)), 1.0).shape == (0, 2)


def test_axes_of_a_space_of_another_size_are_no_past():
    E = np.random.default_rng(0).standard_normal((9, 4))
    for name in ("components 1, 2", "strongest circle", "axes 2, 3"):
        np.testing.assert_array_equal(plane_axes(E, name, np.eye(2, 3)), plane_axes(E, name))
    np.testing.assert_array_equal(plane_axes(E, "axes 2, 3", np.eye(4)[:2]), np.eye(4)[1:3])


def test_a_lattice_of_many_dimensions_has_whole_sides():
    for tokens, dim, side in ((243, 5, 3), (244, 5, 4), (64, 3, 4), (65, 3, 5), (5, 1, 5)):
        E = start("grid", tokens, dim, 0, 0.0).positions
        assert len(np.unique(E[:, 0])) == side
        assert E[0].tolist() == [-(side - 1) / 2] * dim
        assert len(np.unique(E, axis=0)) == tokens


# -- axes --------------------------------------------------------------------------------------------------


def test_a_logarithmic_axis_has_ticks_for_what_is_finite_and_positive():
    axis = theme.plot("x", y_axis_type="log").yaxis[0]
    assert isinstance(axis.ticker, LogTicker)
    for nothing in ([], [np.nan, -1, 0, np.inf]):
        theme.tick(axis, nothing)
        assert isinstance(axis.ticker, LogTicker)
    theme.tick(axis, [0.0, 2.0, np.nan, 50.0, np.inf, -3])
    beyond = (50 / 2) ** 0.05
    assert axis.ticker.ticks == log_ticks(2 / beyond, 50 * beyond)
    kept = axis.ticker
    theme.tick(axis, [3.0])
    assert axis.ticker is kept
    assert kept.ticks == log_ticks(0.3, 30.0)
    assert log_ticks(3.0, np.inf) == [3.0]
    assert log_ticks(np.inf, np.inf) == log_ticks(-1, 2) == []
    assert log_ticks(5, 2) == [5.0]
    assert log_ticks(1, 10, 2) == [1.0, 10.0]


def test_curves_have_ticks_and_names_for_both_runs():
    shown = plane.Curves("x", ["a"], starts=("left", "right"), y_axis_type="log")
    shown.show(np.arange(2), a=np.array([1.0, 2.0]))
    alone = list(shown.figure.yaxis[0].ticker.ticks)
    shown.show_beside(np.arange(2), a=np.array([1.0, 900.0]))
    assert max(shown.figure.yaxis[0].ticker.ticks) > 100 > max(alone)
    assert isinstance(shown.figure.yaxis[0].ticker, FixedTicker)
    assert [item.label.value for item in shown.figure.legend[0].items] == ["left", "right"]
    named = plane.Curves("x", ["a", "b"])
    assert named.figure.legend.visible
    assert [item.label.value for item in named.figure.legend[0].items] == ["a", "b"]
    assert not plane.Curves("x", ["a"]).figure.legend
    lines = [found for found in named.figure.renderers if hasattr(found.glyph, "line_dash")]
    assert [one.glyph.line_dash for one in lines if one.glyph.line_width == 1.8] == [[], [6]]
    measures = MeasureCurves()
    assert [span.location for span in measures.ratio.figure.select({"type": Span})] == [1.2]
    assert not measures.imperfections.figure.select({"type": Span})
    assert (measures.ratio._logarithmic, measures.imperfections._logarithmic) == (True, False)
    measures.end_at(7, 1.5, 3)
    assert measures.ratio._now.data == {"step": [7], "ratio": [1.5]}
    assert measures.imperfections._now.data == {"step": [7], "imperfections": [3.0]}


def test_numbers_of_pairs_shrink_with_their_cells():
    grid = PairGrid(lambda i, j: None)
    for tokens, size in ((10, 13), (15, 13), (19, 10), (31, 6)):
        grid.show(TrainingSet.drawn(tokens).filled(False))
        assert grid._text.glyph.text_font_size == f"{size}px"


@pytest.mark.parametrize("pieces", [(), ("forces",), ("tokens N", "modulus")])
def test_a_heading_explains_its_terms_and_a_card_its_figure(pieces):
    html = theme.heading("Title", "words", terms=pieces).text
    assert html.endswith("</h2><p>words</p>")
    assert ("aria-label" in html) == bool(pieces)
    if pieces:
        assert f'aria-label="What is {", ".join(pieces)}?"' in html
        assert f"window.grokphys.explain(this, '{'|'.join(pieces)}')" in html
    assert theme.heading("Title").text == "<h2>Title</h2>"
    made = theme.plot("Its title")
    card = theme.card(made, *pieces[:0], theme.slider("s", 0, 1, 0))
    assert card.children[0].text == "<h3>Its title</h3>"
    assert card.children[1] is made
    assert len(card.children) == 3
    below = theme.heading("")
    assert theme.card(below).children == [below]
    assert theme.grid(card, columns=3).styles == {"--columns": "3"}


# -- films -------------------------------------------------------------------------------------------------


def coloured(frames, shown=-1, **options):
    """A film whose frames are of one color each, and the list of frames that it has drawn."""
    moved = []

    def begin(figure):
        figure.set_layout_engine("none")
        ax = figure.add_axes((0, 0, 1, 1), label="all")
        ax.set_axis_off()
        patch = parts.moving(ax.add_patch(Rectangle((0, 0), 1, 1)))

        def move(frame):
            moved.append(frame)
            patch.set_facecolor((frame / (frames - 1), 0.5, 0.25))

        return move

    return export.Film(frames, begin, (0.5, 0.31), shown, **options), moved


def test_a_gif_shows_every_frame_its_time_and_the_last_one_longer():
    film, moved = coloured(4)
    done = []
    picture = Image.open(io.BytesIO(export.gif(film, fps=10, longest=3, progress=lambda *n: done.append(n))))
    times, colors = [], []
    for frame in range(picture.n_frames):
        picture.seek(frame)
        times.append(picture.info["duration"])
        colors.append(picture.convert("RGB").getpixel((20, 12)))
    assert times == [100, 100, 1500]
    assert colors == [(0, 128, 64), (170, 128, 64), (255, 128, 64)], "exactly, as they are areas"
    assert done == [(1, 3), (2, 3), (3, 3)]
    assert picture.info["loop"] == 0
    assert picture.size == (40, 24)
    assert moved[-3:] == [0, 2, 3]


@pytest.mark.parametrize("fps", [0.01, 7, 12, 30, 35, 40, 45, 50])
def test_a_gif_takes_the_time_that_its_rate_says(fps):
    film, _ = coloured(5)
    picture = Image.open(io.BytesIO(export.gif(film, fps=fps)))
    times = []
    for frame in range(picture.n_frames):
        picture.seek(frame)
        times.append(picture.info["duration"])
    assert len(times) == 5
    assert sum(times[:-1]) == pytest.approx(4000 / fps, abs=5)
    assert all(time == pytest.approx(1000 / fps, abs=10) for time in times[:-1])
    assert min(times) >= 20, "viewers show shorter pictures for longer"


def test_a_caption_may_hold_any_name_of_a_file():
    film, _ = coloured(2, caption="file run $\\alpha^$.h5\nfile p\udcff\x1b.h5")
    assert export.png(film, dpi=100).startswith(b"\x89PNG")


def test_a_picture_is_of_the_frame_that_is_shown_unless_another_is_asked_for():
    for shown, frame, red in ((1, None, 85), (-1, None, 255), (1, 0, 0), (0, -2, 170)):
        film, _ = coloured(4, shown)
        picture = Image.open(io.BytesIO(export.png(film, frame, dpi=100)))
        assert picture.getpixel((20, 12)) == (red, 128, 64)
        assert picture.size == (50, 31)
        assert picture.info["dpi"] == pytest.approx((100, 100), abs=0.01)
    for wrong in (4, -5):
        with pytest.raises(IndexError):
            export.png(film, wrong)


def test_an_mp4_has_all_frames_in_an_even_number_of_pixels_or_a_sentence(monkeypatch, tmp_path):
    said = tmp_path / "said"
    program = tmp_path / "ffmpeg"
    program.write_text(
        f"#!{sys.executable}\nimport sys\nraw = sys.stdin.buffer.read()\n"
        f"open({str(said)!r}, 'w').write(f'{{len(raw)}} ' + ' '.join(sys.argv[1:]))\n"
        "open(sys.argv[-1], 'wb').write(b'a film')\n"
    )
    program.chmod(0o700)
    monkeypatch.setattr(export.shutil, "which", lambda name: str(program))
    film, _ = coloured(5)
    done = []
    assert export.mp4(film, fps=12.5, longest=3, dpi=100, progress=lambda *n: done.append(n)) == b"a film"
    size, *words = said.read_text().split()
    assert int(size) == 3 * 50 * 31 * 3
    given = dict(pairwise(words))
    assert (given["-s"], given["-r"], given["-vf"]) == ("50x31", "12.5", "crop=trunc(iw/2)*2:trunc(ih/2)*2")
    assert done == [(1, 3), (2, 3), (3, 3)]
    for script, words in (("echo first >&2; echo no room >&2; exit 3", "no room"), ("exit 3", "3")):
        program.write_text(f"#!/bin/sh\n{script}\n")
        with pytest.raises(OutputError, match=f"^ffmpeg failed: {words}$"):
            export.mp4(film)
    monkeypatch.setattr(export.shutil, "which", lambda name: None)
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", SimpleNamespace(get_ffmpeg_exe=lambda: "packed"))
    assert export._ffmpeg() == "packed"
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(OutputError, match=r"^an MP4 needs the program ffmpeg: install it, .*; a GIF needs"):
        export._ffmpeg()


def test_a_picture_has_the_limits_and_the_words_that_it_is_given():
    figures = []

    def begin(figure):
        figures.append(figure)
        for name in ("one", "other"):
            figure.add_subplot(1, 2, 1 + (name == "other"), label=name).set(xlim=(0, 9), ylim=(0, 9))
        return lambda frame: None

    words = "word " * 40
    film = export.Film(1, begin, (4.0, 3.0), limits={"one": (1, 2, None, 4)}, caption=f"{words}\nsecond")
    export.png(film, dpi=30)
    one, other = figures[0].axes
    assert (one.get_xlim(), one.get_ylim()) == ((1, 2), (0, 4))
    assert (other.get_xlim(), other.get_ylim()) == ((0, 9), (0, 9))
    *lines, last = figures[0].get_supxlabel().splitlines()
    assert last == "second"
    assert " ".join(lines) == words.strip()
    assert max(map(len, lines)) <= 60
    assert len(lines) == 4


def test_a_second_start_is_shown_at_the_same_or_the_next_step():
    rng = np.random.default_rng(0)

    def run(steps):
        observables = {"circle_ratio": rng.uniform(1, 2, (1, len(steps))),
                       "grid_imperfections": rng.uniform(1, 2, (1, len(steps)))}  # fmt: skip
        return physics.Trajectory(rng.standard_normal((1, len(steps), 5, 2)), steps, observables=observables)

    first, second = run([0, 10, 20, 35]), run([0, 12, 20, 30])
    film, figure = particle_film(first, second=second, operation=physics.Operation(5, 3)), Figure()
    move = film.begin(figure)
    axes = {ax.get_label(): ax for ax in figure.axes}
    for frame, other in enumerate((0, 1, 2, 3)):
        move(frame)
        np.testing.assert_array_equal(axes["tokens"].collections[1].get_offsets(), first.positions[0, frame])
        np.testing.assert_array_equal(
            axes["second start"].collections[1].get_offsets(), second.positions[0, other]
        )
        E = second.positions[0, other]
        pairs = physics.ParticleSystem(5).operation.samples
        np.testing.assert_allclose(
            axes["second start sums"].collections[0].get_offsets(), E[pairs].sum(axis=1)
        )
        assert axes["second start"].get_title() == f"second start, step {first.steps[frame]}"
    curves = {line.get_label(): line.get_ydata() for line in axes["circle ratio"].lines}
    np.testing.assert_array_equal(curves["second start"], second.observables["circle_ratio"][0])
    assert (axes["circle ratio"].get_yscale(), axes["grid imperfections"].get_yscale()) == ("log", "linear")
    (limit, *_) = (line for line in axes["circle ratio"].lines if line.get_linestyle() == "--")
    assert limit.get_ydata()[0] == 1.2
    assert film.size == (14.0, 5.4)
    bare = physics.Trajectory(first.positions, first.steps)
    assert particle_film(bare).size == (8.0, 4.2)
    assert particle_film(first).size == (8.0, 5.4)


def test_signals_that_are_never_positive_have_a_linear_axis():
    for values, scale in ((np.zeros((3, 2)), "linear"), (np.array([[0, 0], [1e-9, 2.0], [1, 4]]), "log")):
        ax = Figure().subplots()
        run = SimpleNamespace(signals=(np.array([0, 1, 9]), values))
        films.show_signals(ax, run, [2], 1.5)
        assert (ax.get_xscale(), ax.get_yscale(), ax.get_xlim()) == ("log", scale, (1, 10))
        if scale == "log":
            assert ax.get_ylim() == pytest.approx((4e-4 / 1.5, 10.0))
    ax = Figure().subplots()
    films.show_signals(ax, SimpleNamespace(signals=(np.array([0]), np.ones((1, 2)))), [], 1.5)
    assert ax.get_xlim() == (1, 2)
    ax = Figure().subplots()
    parts.curves(ax, np.zeros(1), [("a", np.ones(1))], "time")
    assert ax.get_xlim() == (0, 1)
