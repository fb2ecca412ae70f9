"""What the controls of each view offer and begin with, which links leave out, and what presets set."""

import asyncio
import logging
import os
import signal
import tempfile
from types import SimpleNamespace

import pytest

pytest.importorskip("bokeh", reason="bokeh is not installed")

from bokeh.models import CategoricalSlider, Checkbox, Select, Slider, Spinner
from hostile import alone
from sessions import opened
from tornado.httputil import HTTPHeaders, HTTPServerRequest, RequestStartLine

import physics
from grokphys.explorer import application, server, uploads
from grokphys.explorer.door import Door
from grokphys.explorer.runs.starts import KINDS
from grokphys.explorer.views import view as views
from grokphys.explorer.views.tabs import VIEWS

SEED, FORCE = (0, 10**6, 1), (0, 4, 0.05)
OFFERED = {
    # name: smallest value, largest value, step; usual value, which no link names
    "particles": {
        "alignment": (FORCE, 2), "attraction": (FORCE, 1), "repulsion": (FORCE, 1),
        "softening": ((0, 0.5, 0.01), 0.1), "step_size": ((0.001, 0.1, 0.001), 0.02),
        "modulus": ((0, 200, 1), 0),
        "tokens": ((3, 64, 1), 17), "dim": ((1, 8, 1), 2), "seed": (SEED, 0), "twin_seed": (SEED, 7),
        "noise": ((0, 1, 0.01), 0.1), "twin": (None, False), "arrows": (None, False),
        "kind": ((*KINDS, "file"), "normal"), "plane": (("axes 1, 2",), "axes 1, 2"),
        "sweep": (("", "alignment", "attraction", "repulsion", "softening"), ""),
        "numbers": (("markers", "numbers"), "markers"),
    },
    "networks": {
        "alignment": ((0, 4, 0.05), 1), "ratio": ((1, 100, 1), 20), "decay": ((0, 5, 0.05), 1),
        "tokens": ((3, 41, 1), 17), "dim": ((1, 16, 1), 2), "hidden": ((4, 256, 4), 32), "seed": (SEED, 0),
        "rate": (
            ("0.0001", "0.0002", "0.0003", "0.0005", "0.001", "0.002", "0.003", "0.005", "0.01", "0.02",
             "0.03", "0.05", "0.1", "0.2"), "0.01"),
        "kind": (("constant attention", "toy addition"), "constant attention"),
        "numbers": (("markers", "numbers"), "markers"), "plane": (("axes 1, 2",), "axes 1, 2"),
    },
    "theory": {
        "size": ((0, 55, 1), 45), "time": ((0, 120, 1), 0), "tokens": ((3, 31, 1), 10), "seed": (SEED, 3),
        "modulus": ((0, 200, 1), 0), "dim": ((1, 2), 1),
    },
    "circles": {
        "time": ((0, 79, 1), 0), "limit": ((0.001, 10**6, 0.5), 2), "first": ((0, 4000, 1), 0),
        "last": ((0, 4000, 1), 1000), "run": ((0, 0, 1), 0), "rollout": (None, True),
        "recipe": (("Lasso, α = 0.01", "least squares"), "Lasso, α = 0.01"),
        "rule": (("a multiple of the mean signal", "an absolute signal"), "a multiple of the mean signal"),
    },
    "neurons": {
        "tokens": ((5, 31, 2), 23), "hidden": ((4, 128, 4), 12), "scale": ((0.02, 0.5, 0.02), 0.1),
        "rate": ((0.0001, 100, 0.5), 2), "seed": (SEED, 9),
        "activation": (("quadratic", "relu", "silu", "tanh", "abs"), "quadratic"),
        "optimizer": (("gradient descent", "AdamW"), "gradient descent"),
    },
}  # fmt: skip


def offered(widget):
    """What a widget offers: its ends and its step, or all of its values."""
    match widget:
        case Slider():
            return widget.start, widget.end, widget.step
        case Spinner():
            return widget.low, widget.high, widget.step
        case Select():
            return tuple(option[0] if isinstance(option, tuple) else option for option in widget.options)
        case CategoricalSlider():
            return tuple(widget.categories)
        case Checkbox():
            return None


@pytest.mark.parametrize("kind", VIEWS, ids=lambda kind: kind.slug)
def test_controls_offer_and_begin_with_what_links_rely_on(kind):
    """A link names only what differs from the usual values: with other ones, it would open another state."""
    views.prepared(kind)
    view = opened(kind).view
    expected = OFFERED[kind.slug]
    found = {name: (offered(widget), view._usual[name]) for name, widget in view.widgets.items()}
    assert {name: found[name] for name in expected} == expected
    assert set(found) - set(expected) == ({"file", "plane"} if kind.slug == "circles" else set())
    assert view.state() == {}
    assert {name: type(usual) for name, (_, usual) in found.items() if name in ("dim", "seed", "tokens")} == {
        name: int for name in ("dim", "seed", "tokens") if name in found
    }


WIDE = {"tokens": 31, "dim": 16, "hidden": 128, "seed": 2, "alignment": 3.0, "plane": "strongest circle"}


def test_presets_set_what_their_names_promise():
    """The presets of networks take minutes to come true, which the slow part of the suite waits for."""
    particles, networks, theory, circles, neurons = (
        {preset.name: (dict(preset.settings), preset.speed) for preset in kind.presets} for kind in VIEWS
    )
    assert networks == {
        "a circle forms": ({"seed": 0}, 8),
        "an imperfect grid": ({"seed": 18}, 8),
        "it groks": (WIDE | {"decay": 0.2}, 8),
        "memorizes only": (WIDE | {"decay": 0.0}, 8),
    }
    grid = {"alignment": 1.0, "step_size": 0.01}
    assert particles == {
        "a circle forms": ({}, 1),
        "an imperfect grid": (grid | {"seed": 89}, 2),
        "two starts, one law": (grid | {"seed": 20, "twin": True, "twin_seed": 89}, 2),
        "pull it apart": ({"kind": "circle", "noise": 0.05, "arrows": True}, 1),
    }
    assert [preset[1] for shown in (theory, circles, neurons) for preset in shown.values()] == [
        1,
        1,
        1,
        1,
        3,
        5,
        5,
    ]
    assert neurons["neurons become waves"][0] == {"hidden": 48, "seed": 0, "activation": "relu"}
    for kind in VIEWS:
        view = opened(kind).view
        for preset in kind.presets:
            assert set(preset.settings) <= set(view.widgets)
            view.restore(preset.settings)
            assert view.preset is preset


# -- uploads as they arrive --------------------------------------------------------------------------------


def handler(folder, **headers):
    """A handler of one upload, and the list of what it answers."""
    made, answers = uploads.UploadHandler.__new__(uploads.UploadHandler), []
    limits = []
    made.request = SimpleNamespace(
        method="POST", headers=headers, connection=SimpleNamespace(set_max_body_size=limits.append)
    )
    made.initialize(uploads.Uploads(folder))
    made._refuse = lambda status, text: answers.append((status, text))
    made.finish = lambda text: answers.append((200, text))
    made.get_query_argument = lambda name, usual: "of/mine.h5"
    return made, answers, limits


@pytest.mark.parametrize("size", ["", "-5", "5.0", "many"])
def test_an_upload_without_a_size_is_refused(tmp_path, size):
    made, answers, limits = handler(tmp_path, **{"Content-Length": size})
    made.prepare()
    assert answers == [(411, "An upload must state its size in the header Content-Length.")]
    assert limits == []
    made.request.method = "GET"
    made.prepare()
    assert len(answers) == 1, "the handler has no such method, which Tornado says"


def test_an_upload_that_has_no_room_or_meets_an_error_leaves_nothing(tmp_path, monkeypatch):
    made, answers, _ = handler(tmp_path / "nowhere", **{"Content-Length": "5"})
    made.prepare()
    assert [status for status, _ in answers] == [507], "the disk refuses it"
    made.on_finish()
    assert made._uploads._sizes == {}
    made, answers, limits = handler(tmp_path, **{"Content-Length": str(uploads.LARGEST_UPLOAD + 1)})
    made.prepare()
    assert [status for status, _ in answers] == [413]
    made, answers, limits = handler(tmp_path, **{"Content-Length": str(uploads.LARGEST_UPLOAD)})
    made.prepare()
    assert (answers, limits) == ([], [uploads.LARGEST_UPLOAD])
    made.data_received(b"first")

    def full(chunk):
        raise OSError(28, "No space left on device")

    real, written = made._file, []
    made._file = SimpleNamespace(write=full, close=real.close)
    made.data_received(b"second")
    made._file = SimpleNamespace(write=written.append, close=real.close)
    made.data_received(b"third")
    assert written == [], "what comes after an error is not written"
    alone(made.post())
    assert [status for status, _ in answers] == [507]
    assert "No space left on device" in answers[0][1]
    assert len(list(tmp_path.iterdir())) == 1
    made.on_finish()
    assert list(tmp_path.iterdir()) == []
    assert made._uploads._sizes == {}


def test_an_upload_that_is_a_trajectory_stays_under_its_key(tmp_path):
    physics.simulate(physics.ParticleSystem(5), steps=2, out=tmp_path / "given.h5")
    content = (tmp_path / "given.h5").read_bytes()
    (tmp_path / "private").mkdir()
    made, answers, _ = handler(tmp_path / "private", **{"Content-Length": str(len(content))})
    made.prepare()
    for begin in range(0, len(content), 1000):
        made.data_received(content[begin : begin + 1000])
    alone(made.post())
    ((status, key),) = answers
    made.on_finish()
    made.on_connection_close()
    place, name = made._uploads.claim(key)
    assert (status, name, place.read_bytes()) == (200, "mine.h5", content)
    assert made._uploads._sizes == {place: len(content)}
    made, answers, _ = handler(tmp_path / "private", **{"Content-Length": "5"})
    made.prepare()
    made.data_received(b"wrong")
    alone(made.post())
    assert answers == [(422, "mine.h5 is not an HDF5 file")]
    made.on_connection_close()
    assert [*(tmp_path / "private").iterdir()] == [place]
    assert (uploads.LARGEST_UPLOAD, uploads.LARGEST_FOLDER) == (256 * 2**20, 2**30)


def test_an_upload_that_no_page_claims_is_removed(tmp_path, monkeypatch):
    physics.simulate(physics.ParticleSystem(5), steps=2, out=tmp_path / "given.h5")
    content = (tmp_path / "given.h5").read_bytes()
    (tmp_path / "private").mkdir()
    monkeypatch.setattr(uploads, "UNCLAIMED_SECONDS", 0)
    for claimed in (False, True):
        made, answers, _ = handler(tmp_path / "private", **{"Content-Length": str(len(content))})
        made.prepare()
        made.data_received(content)

        async def posted(made=made, answers=answers, claimed=claimed):
            await made.post()
            if claimed:
                made._uploads.claim(answers[0][1])
            for _ in range(10):  # turns of the loop
                await asyncio.sleep(0)

        alone(posted())
        made.on_finish()
        assert len(list((tmp_path / "private").iterdir())) == claimed
        assert len(made._uploads._sizes) == claimed
        with pytest.raises(physics.InputError, match="upload must be the key of a file"):
            made._uploads.claim(answers[0][1])


# -- the server --------------------------------------------------------------------------------------------


def test_a_new_server_removes_what_killed_ones_have_left_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left, new, other = (tmp_path / name for name in ("grokphys-explore-a", "grokphys-explore-b", "other"))
    for path in (left, new, other):
        path.mkdir()
        (path / "x.h5").touch()
    with server._private() as running:
        (running / "y.h5").touch()
        for path in (left, other, running):
            os.utime(path, (0, 0))
        with server._private() as second:
            assert second.is_dir()
            assert not left.exists()
            assert all(path.is_dir() for path in (running, new, other))
        assert (running / "y.h5").exists()
        assert not second.exists()
    assert {path.name for path in tmp_path.iterdir()} == {"grokphys-explore-b", "other"}


def test_no_address_in_the_log_holds_the_token(tmp_path):
    app = application.Application(lambda _: None, Door("secret", ["localhost"]), uploads.Uploads(tmp_path))
    headers = HTTPHeaders({"Host": "localhost"})
    for path, allowed in (
        ("/?token=secret", True),
        ("/nowhere?token=secret", True),
        ("/?token=other", False),
    ):
        request = HTTPServerRequest(
            start_line=RequestStartLine("GET", path, "HTTP/1.1"),
            headers=headers,
            connection=SimpleNamespace(context=SimpleNamespace()),
        )
        app.find_handler(request)
        assert (app._door.refusal(request) is None) == allowed
        assert "token" not in f"{request!r} {request.uri}"


def test_only_messages_about_closed_tabs_are_suppressed():
    log, known = logging.getLogger("asyncio"), logging.getLogger("bokeh.server.views.ws")
    application = logging.getLogger("tornado.application")
    before, level, others = list(log.filters), known.level, list(application.filters)
    try:
        server._hush()
        (matters,) = (one for one in log.filters if one not in before)
        for name, said in (("WebSocketClosedError", False), ("StreamClosedError", False), ("OSError", True)):
            error = type(name, (Exception,), {})()
            assert matters(SimpleNamespace(exc_info=(type(error), error, None))) == said
        assert matters(SimpleNamespace(exc_info=None))
        assert known.level == logging.ERROR
        (sensible,) = (one for one in application.filters if one not in others)
        for error, said in ((ValueError("Exceeds the limit (4300 digits)"), False), (ValueError("x"), True)):
            assert sensible(SimpleNamespace(exc_info=(ValueError, error, None))) == said
        assert sensible(SimpleNamespace(exc_info=None))
    finally:
        log.filters[:], application.filters[:] = before, others
        known.setLevel(level)


def test_signals_that_end_the_server_are_given_back():
    orders = [signal.SIGTERM, signal.SIGHUP]
    before = [signal.getsignal(order) for order in orders]
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with server._ended():
            assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN, "nohup wants it so"
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        for order, found in zip(orders, before, strict=True):
            signal.signal(order, found)
