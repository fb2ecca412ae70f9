"""How a session plays, exports and fails, and what the figures show of it, without a browser."""

import time

import pytest

import physics

pytest.importorskip("bokeh", reason="bokeh is not installed")

from sessions import opened, passed, played, put

from grokphys.explorer import films, session
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
    wanted = "modulus (below 2: tokens N) must be a whole number from 0 to 200, got nothing"
    assert page.bridge.message[2] == wanted
    put(page, seed=3)
    assert page.bridge.message[2] == "", "another value has been accepted"
    assert (page.view.run.system.tokens, page.view.run.first.seed) == (9, 3)
