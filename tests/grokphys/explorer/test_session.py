"""How a session plays, exports and fails, and what the figures show of it, without a browser."""

import time
import tomllib

import numpy as np
import pytest

import physics

pytest.importorskip("bokeh", reason="bokeh is not installed")

from bokeh.core.property.vectorization import Value
from sessions import opened, passed, played, put

from grokphys.explorer import films, session, theme
from grokphys.explorer.panels import Curve, Lines, Panel, series, shortened
from grokphys.explorer.plots import MOST_POINTS, LinePlot
from grokphys.explorer.runs.common import asset
from grokphys.explorer.views import VIEWS

PARTICLES, _, THEORY, *_ = VIEWS


def test_play_waits_for_a_page_that_is_behind():
    page = opened(PARTICLES)
    page._command("speed", 5)
    page._command("play", None)
    passed(page, 12)
    assert page.bridge.frame == session.IN_FLIGHT == 3
    assert page.view.run.step == 15
    page.bridge.shown = 2  # as the page says once it has drawn the frame
    passed(page, 6)
    assert (page.bridge.frame, page.view.run.step) == (5, 25)
    page.bridge.shown = 5
    page.hold(True)
    passed(page, 4)
    assert page.view.run.step == 25, "a particle is held"
    page.hold(False)
    passed(page, 1)
    page._command("pause", None)
    passed(page, 4)
    assert page.view.run.step == 30
    page._command("step", None)
    passed(page, 2)
    assert page.view.run.step == 31
    page._command("speed", 4)
    assert page.bridge.message[1:] == [
        "error",
        "steps per frame must be one of 1, 2, 3, 5, 8, 12, 20, 35, 60, 100, got 4",
    ]


def test_play_ends_with_the_last_frame_and_begins_again():
    page = opened(THEORY)
    page._command("speed", 100)
    page._command("play", None)
    for _ in range(4):
        page.bridge.shown = page.bridge.frame
        passed(page, 1)
    assert (page.view.frame, page.bridge.playing) == (120, 0)
    page._command("play", None)
    assert (page.view.frame, page.bridge.playing) == (0, 1)


def delivered(page, seconds=120):
    """Let the event loop run until the last message is no longer about work."""
    end = time.monotonic() + seconds
    while page.bridge.message[1] == "progress" or page.bridge.message[2].startswith("Making"):
        assert time.monotonic() < end
        passed(page)
        time.sleep(0.02)
    return page.bridge.message[1:]


def test_exports_are_delivered_canceled_or_explained(monkeypatch):
    page = opened(PARTICLES)
    played(page, 30)
    page._command("save", None)
    assert delivered(page) == ["done", "particles.h5 is in your downloads."]
    _, name, kind, content = page.bridge.download
    assert (name, kind, bytes(content[:4])) == ("particles.h5", "application/x-hdf5", b"\x89HDF")
    page._command("gif", None)
    page._command("cancel", None)
    assert delivered(page) == ["done", "particles.gif was canceled."]
    assert page.bridge.download[1] == "particles.h5"
    full = physics.OutputError("no space is left")
    monkeypatch.setattr(films, "png", lambda _film: (_ for _ in ()).throw(full))
    page._command("png", None)
    assert delivered(page) == ["error", "no space is left"]
    monkeypatch.setattr(page.view, "trajectory", lambda: 1 / 0)
    page._command("save", None)
    assert page.bridge.message[2].startswith("This is an error in GrokPhys, not in your input: ZeroDivision")


def test_a_value_that_is_not_allowed_returns():
    page = opened(PARTICLES)
    put(page, tokens=9)
    put(page, modulus=None)
    assert page.view.values.modulus == 0
    assert (
        page.bridge.message[2]
        == "modulus (below 2: tokens N) must be a whole number from 0 to 200, got nothing"
    )
    put(page, seed=3)
    assert page.bridge.message[2] == "", "another value has been accepted"
    assert (page.view.run.system.tokens, page.view.run.first.seed) == (9, 3)


def test_a_closed_tab_takes_no_more_commands():
    page = opened(PARTICLES)
    page.close()
    page._command("step", None)
    page._command("play", None)
    assert page.bridge.playing == 0


def test_a_plane_zooms_only_when_it_must():
    figure = theme.plot(Panel(), 300, square=True)
    theme.zoom(figure, 2.0)
    assert theme.bounds(figure) == pytest.approx((-1.5 * 2.3, 1.5 * 2.3, -2.3, 2.3))
    for extent, top in (
        (2.1, 2.3),
        (1.3, 2.3),
        (1.2, 1.15 * 1.2),
        (1.35, 1.15 * 1.35),
        (0.0, 1.15 * 1.35),
        (0.5, 1.15 * 0.5),
    ):
        theme.zoom(figure, extent)
        assert figure.y_range.end == pytest.approx(top)


def test_long_arrows_are_shortened_alike():
    vectors = np.array([[3.0, 4.0], [0.3, 0.0]])
    np.testing.assert_allclose(shortened(vectors, 6.0), vectors * 0.4)
    np.testing.assert_array_equal(shortened(vectors, 15.0), vectors)
    np.testing.assert_array_equal(shortened(np.zeros((2, 2)), 1.0), 0)


def test_curves_keep_their_ends_and_leave_gaps():
    x = np.arange(1000)
    noisy = Curve(x, np.where(x == 999, np.inf, x), "#000000")
    panel = Lines(curves=[noisy, *series([0, 5], {"a": [1.0, 2.0]})])
    plot = LinePlot(panel, 200)
    plot.show(panel, True)
    shown = plot._lines.data["xs"][0]
    assert (len(shown), shown[0], shown[-1]) == (MOST_POINTS, 0, 999)
    assert np.isnan(plot._lines.data["ys"][0][-1])
    assert [(item.index, item.label) for item in plot.figure.legend.items] == [(1, Value("a"))]
    assert (plot._ends.data["x"], plot._ends.data["y"][1]) == ([999, 5], 2.0)
    plot.end_at(7, 3.0)
    assert (plot._ends.data["x"][0], plot._ends.data["y"][0]) == (7, 3.0)
    panel = Lines(curves=[Curve(x + 1, x, "#000000")], log="x")
    slow = LinePlot(panel, 200)
    slow.show(panel, True)
    steps = slow._lines.data["xs"][0]
    assert (steps[0], steps[-1]) == (1, 1000)
    assert np.diff(np.log(steps[-50:])).std() < 0.01, "even in the logarithm"


def test_all_widgets_of_a_view_are_on_its_panel():
    for kind in VIEWS:
        page = opened(kind)
        models = {model.id for model in page.stage.references()}
        for name, widget in page.view.widgets.items():
            assert widget.id in models, name
        assert set(kind.terms) <= set(tomllib.loads(asset("terms.toml")))
