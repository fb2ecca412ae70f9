"""A page opens its own links, and a link that is refused changes nothing that the page shows."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("bokeh", reason="bokeh is not installed")

from sessions import opened, put

from grokphys.explorer import links
from grokphys.explorer.films import export
from grokphys.explorer.page import page
from grokphys.explorer.session import Session
from grokphys.explorer.views.circles import CirclesView
from grokphys.explorer.views.networks import NetworksView
from grokphys.explorer.views.particles import ParticlesView
from grokphys.explorer.views.theory import TheoryView
from grokphys.explorer.views.view import prepared
from physics import Trajectory


def asked(session, view, state, speed=1):
    """Open a link, and return the kind and the sentence of the message that follows."""
    session._command("open", json.dumps({"view": view, "speed": speed, "state": state}))
    return tuple(session.bridge.message[1:])


@pytest.mark.parametrize(("symbols", "pairs"), [(20, 210), (4, 10)])
def test_a_training_set_of_another_number_of_symbols_opens_from_its_link(symbols, pairs):
    first, second = opened(TheoryView), opened(TheoryView)
    put(first, first.view._tokens, symbols)
    assert first.view._size.end == pairs
    second._command("open", first.bridge.link)
    assert second.bridge.message[2] == ""
    assert second.view._chosen.pairs == first.view._chosen.pairs
    assert second.view._size.end == pairs
    second._command("open", opened(TheoryView).bridge.link)
    assert (second.view._tokens.value, second.view._size.value, second.view._size.end) == (10, 45, 55)


@pytest.mark.parametrize(
    ("kind", "state", "speed"),
    [
        (ParticlesView, {"alignment": 3.5, "seed": 12, "tokens": 31, "kind": "spiral"}, 1),
        (ParticlesView, {"alignment": 3.5, "tokens": 31, "moves": [[0, 99, [0, 0]]], "step": 2}, 1),
        (ParticlesView, {"alignment": 3.5, "tokens": 31, "step": "x"}, 1),
        (ParticlesView, {"alignment": 3.5}, 4),
        (NetworksView, {"tokens": 7, "before": [[3, {"rate": "x"}]], "step": 5}, 1),
        (TheoryView, {"tokens": 5, "size": 9, "dim": 2, "pairs": "ff"}, 1),
        (TheoryView, {"tokens": 5}, 1),
    ],
)
def test_controls_and_run_stay_those_before_a_link_that_is_refused(kind, state, speed):
    prepared(kind)
    session = opened(kind)
    session._command("speed", 2)
    before, script = session.bridge.link, session.view.python()
    assert asked(session, kind.slug, state, speed)[0] == "error"
    session._say_status()
    assert session.bridge.link == before
    assert session.view.python() == script


def named_otherwise(folder):
    """A file whose name is not UTF-8."""
    path = folder / os.fsdecode(b"p\xff.h5")
    Trajectory(np.random.default_rng(0).standard_normal((2, 6, 7, 3)), np.arange(6)).save(path)
    return path


def with_files(*paths):
    session = Session(opened(CirclesView).document, [CirclesView], paths)
    session._command("ready", None)
    return session


def test_a_file_stays_open_when_the_link_of_another_is_refused(tmp_path):
    one, two = tmp_path / "one.h5", tmp_path / "two.h5"
    for path, frames in ((one, 6), (two, 4)):
        Trajectory(np.random.default_rng(0).standard_normal((2, frames, 7, 3)), np.arange(frames)).save(path)
    session = with_files(one, two)
    assert asked(session, "circles", {"file": str(one), "run": 1, "time": 3})[1] == ""
    before = session.bridge.link
    assert asked(session, "circles", {"file": str(two), "plane": "axes 8, 9"})[0] == "error"
    session._say_status()
    assert session.bridge.link == before
    view = session.view
    assert (view._path, view._index.value, view._run.index, view._frame) == (one, 1, 1, 3)


def test_a_file_whose_name_is_not_text_has_a_page_a_link_and_a_picture(tmp_path):
    path = named_otherwise(tmp_path)
    session = with_files(path)
    assert session.bridge.message[2] == ""
    assert links.read(session.bridge.link) == ("circles", 1, {"file": str(path)})
    assert session.bridge.link.endswith("p%FF.h5%22%7D%7D")
    session._command("open", session.bridge.link)
    assert session.bridge.message[2] == ""
    assert export.png(session.view.still(), dpi=40).startswith(b"\x89PNG")
    document = opened(CirclesView).document
    page([CirclesView], [Path(path)], None)(document)
    document.template_variables["opening"].encode()
