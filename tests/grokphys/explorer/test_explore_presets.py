"""Presets and their hints, values that are refused, and odd files: what a page asks of its session."""

import threading
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import physics
from physics.particles.system import ParticleSystem

pytest.importorskip("bokeh", reason="bokeh is not installed")

from bokeh.document import Document
from bokeh.document.events import ModelChangedEvent
from bokeh.models import Spinner
from bokeh.protocol import Protocol
from bokeh.server.session import ServerSession
from bokeh.server.views.ws import WSHandler
from sessions import drawn, followed, opened, put

from grokphys.explorer import exports, server, session
from grokphys.explorer.application import Connection
from grokphys.explorer.views import circles
from grokphys.explorer.views import view as views
from grokphys.explorer.views.tabs import VIEWS

PARTICLES, NETWORKS, THEORY, CIRCLES, NEURONS = VIEWS


# -- presets and their hints -----------------------------------------------------------------------------


def test_a_preset_waits_for_a_view_that_loads_and_others_are_ignored(monkeypatch):
    page, waiting = opened(PARTICLES, THEORY), []
    monkeypatch.setattr(views, "PREPARED", {PARTICLES})
    monkeypatch.setattr(session, "PREPARED", views.PREPARED)
    monkeypatch.setattr(page, "later", lambda work, *given, then: waiting.append(lambda: then(work(*given))))
    page._command("view", "theory")
    page._command("preset", "theory/memorizes only")
    page._command("preset", "theory/of another program")
    page._command("preset", "nowhere/a circle forms")
    assert (page.view.slug, page.bridge.message[1]) == ("particles", "note")
    for arrive in waiting:
        arrive()
    assert (page.view.slug, page.view._size.value) == ("theory", 16)
    assert page.playing
    assert page.bridge.message[2] == ""


def test_a_view_that_loads_does_not_come_once_another_is_chosen(monkeypatch):
    page, waiting = opened(PARTICLES, THEORY), []
    monkeypatch.setattr(views, "PREPARED", {PARTICLES})
    monkeypatch.setattr(session, "PREPARED", views.PREPARED)
    monkeypatch.setattr(page, "later", lambda work, *given, then: waiting.append(lambda: then(work(*given))))
    page._command("view", "theory")
    page._command("preset", "particles/pull it apart")
    assert page.bridge.message[2] == "", "nothing loads that anyone waits for"
    waiting[0]()
    assert page.view.slug == "particles"
    assert page.view._kind.value == "circle"


def test_a_hint_stays_as_long_as_the_controls_are_those_of_its_preset():
    views.prepared(THEORY)
    page = opened(PARTICLES, THEORY)
    view = followed(page, "a circle forms", 1)
    hint = page.bridge.watch
    assert hint.startswith("Watch 17 particles")
    put(page, view._numbers, "numbers")
    assert page.bridge.watch == hint, "classes look different, and nothing else"
    put(page, view._law["alignment"], 0.5)
    assert page.bridge.watch == ""
    put(page, view._law["alignment"], 2)
    assert page.bridge.watch == hint
    page._command("view", "theory")
    followed(page, "it generalizes", 3)
    assert page.bridge.watch.startswith("Watch the ten numbers")
    page.view._click(0, 0)
    page._say_status()
    assert page.bridge.watch == ""


@pytest.mark.parametrize("kind", VIEWS)
def test_every_view_opens_with_what_to_watch_and_how_to_start(kind):
    kind.prepare()
    page = opened(kind)
    first = kind.presets[0]
    assert page.bridge.watch == f"{first.watch} Press Play to start."
    assert page.bridge.speed == first.speed
    page._command("preset", first.name)
    assert page.bridge.watch == first.watch, "it plays"
    page._command("pause", None)
    assert page.bridge.watch == f"{first.watch} Press Play to start."
    page.view.advance(1)
    page._say_status()
    assert page.bridge.watch == first.watch, "who has started it knows how"
    for preset in kind.presets:
        page._command("preset", preset.name)
        assert page.bridge.watch == preset.watch, preset.name


def test_controls_that_a_view_fills_say_nothing_by_themselves(monkeypatch):
    page = opened(PARTICLES)
    view, said = page.view, []
    monkeypatch.setattr(page, "_say_status", lambda: said.append(1))
    with view.filling():
        view._law["alignment"].value = 1
        view._numbers.value = "numbers"
    assert said == []
    view._law["alignment"].value = 2
    assert said == [1]


def test_the_ends_of_curves_follow_a_particle_that_is_held():
    page = opened(PARTICLES)
    view = followed(page, "a circle forms", 100)
    end = view._curves.ratio._now.data
    view._drag.hold(True)
    data = {name: list(values) for name, values in view._particles.tokens.data.items()}
    data["x"][0] += 3.0
    view._particles.tokens.data = data
    assert view._curves.ratio._now.data["step"] == [100] == list(end["step"])
    assert view._curves.ratio._now.data["ratio"] == [float(physics.circle_ratio(view._held))]
    assert view._curves.ratio._now.data["ratio"][0] > 1.5 > end["ratio"][0]
    assert f"{view._curves.imperfections._now.data['imperfections'][0]:.0f}" == view.status()["imperfections"]
    view._drag.end()
    assert view._run.positions[0, 0] > 3 - 2


def test_a_rate_is_not_known_from_one_instant():
    page = opened(PARTICLES)
    page.bridge.playing = 1
    page._drawn.extend([1.0, 1.001])
    assert page.frames_a_second == 0.0
    page._drawn.extend([1.1, 1.2, 1.3])
    assert page.frames_a_second == pytest.approx(4 / 0.3)


def test_the_second_start_writes_its_classes_too():
    view = opened(PARTICLES).view
    view.restore({"twin": True, "numbers": "numbers"})
    assert len(view._top.children) == 4
    sums = view._beside[1]
    assert sums._texts.data["class"] == view._sums._texts.data["class"] != []
    view._numbers.value = "markers"
    assert len(sums._texts.data["class"]) == 0
    view.restore({})
    assert len(view._top.children) == 2


def test_every_view_keeps_its_own_speed():
    views.prepared(THEORY)
    views.prepared(NETWORKS)
    page = opened(PARTICLES, NETWORKS)
    page._command("speed", 3)
    page._command("view", "networks")
    assert page.bridge.speed == 8
    page._command("view", "particles")
    assert page.bridge.speed == 3


def test_a_run_of_ones_own_is_watched_too(tmp_path):
    path = tmp_path / "mine.h5"
    physics.simulate(ParticleSystem(7), steps=20, record_every=5, seed=0).save(path)
    page = session.Session(Document(), [CIRCLES], [path])
    page._command("ready", None)
    words = "Watch which circles of this run grow, and which die out."
    assert page.bridge.watch == f"{words} Press Play to start."


def test_presets_of_circles_show_the_run_of_which_they_speak(tmp_path):
    path = tmp_path / "mine.h5"
    physics.simulate(ParticleSystem(7), steps=20, record_every=5, seed=0).save(path)
    page = session.Session(Document(), [CIRCLES], [path])
    assert page.view.state()["file"] == str(path)
    page._command("preset", "an octave is lost")
    assert page.bridge.message[2] == ""
    assert dict(page.bridge.status)["file"] == "ding_p59_d128_seed0.h5"
    assert page.bridge.watch.startswith("Circle 22 is among the strongest")


def test_settled_is_not_said_of_another_law():
    page = opened(PARTICLES)
    view = followed(page, "a circle forms", 200)
    assert page.bridge.verdict.endswith("Settled.")
    put(page, view._law["alignment"], 0)
    assert "Settled" not in page.bridge.verdict


# -- values that are refused -----------------------------------------------------------------------------


def test_a_refused_value_is_undone_and_its_sentence_goes_with_the_next_value():
    page = opened(PARTICLES)
    view, sent = page.view, []
    page.document.on_change(lambda event: sent.append(event))
    put(page, view._seed, -1)
    assert page.bridge.message[1:] == ["error", "seed must be a whole number from 0 to 1000000, got -1"]
    back = [event for event in sent if isinstance(event, ModelChangedEvent) and event.model is view._seed]
    assert [(event.attr, event.new, event.setter) for event in back] == [("value", 0, None)]
    put(page, view._seed, 3)
    assert page.bridge.message[2] == ""
    put(page, view._modulus, 17)
    put(page, view._modulus, 1)
    assert page.bridge.message[1:] == ["error", "modulus must be at least 2, got 1"]
    assert view._modulus.value == view._run.system.modulus == 17
    put(page, view._plane, "axes 1, 2")
    put(page, view._numbers, "numbers")
    assert page.bridge.message[2] == ""


@pytest.mark.parametrize("kind", [PARTICLES, THEORY])
def test_the_arrows_of_a_modulus_skip_one(kind):
    page = opened(kind)
    view = page.view
    for typed, kept in [(1, 2), (1, 0), (1, 2), (3, 3), (2, 2), (0, 0)]:
        put(page, view._modulus, typed)
        assert view._modulus.value == kept
        assert page.bridge.message[2] == ""
    put(page, view._modulus, 2)
    law = view._run.system if kind is PARTICLES else view._chosen.operation
    assert law.modulus == 2


@pytest.mark.parametrize("kind", VIEWS)
def test_number_fields_take_what_is_within_their_limits_alone(kind):
    page = opened(kind)
    fields = list(page.document.select({"type": Spinner}))
    assert fields
    for field in fields:
        assert field.low is not None
        assert field.high is not None, field.title
        for value in (1e9, -2, None, "text", float("nan"), float("inf"), field.high + 1, field.low - 1):
            before = field.value
            put(page, field, value)
            assert page.bridge.message[1] == "error", (field.title, value)
            assert page.bridge.message[2].startswith(f"{field.title} must be a")
            assert "e+" not in page.bridge.message[2].split(", got")[0]
            assert field.value == before
        for value in (field.high, field.low):
            before = field.value
            page.accepted()
            put(page, field, value)
            assert page.bridge.message[1] != "error" or page.bridge.message[2] == "", (field.title, value)
            put(page, field, before)


def test_the_limit_of_survival_is_positive_and_is_called_so():
    page = opened(CIRCLES)
    view = page.view
    for rule in (circles.FACTOR, circles.THRESHOLD):
        put(page, view._rule, rule)
        before = view._limit.value
        put(page, view._limit, 0)
        assert page.bridge.message[1:] == ["error", "limit must be a number from 0.001 to 1000000, got 0"]
        assert view._limit.value == before
        put(page, view._limit, 0.001)
        assert page.bridge.message[2] == ""
        assert len(view._survivors()) == 29


def test_an_error_goes_with_the_next_value_even_if_it_is_the_one_in_force():
    page = opened(PARTICLES)
    view = page.view
    put(page, view._modulus, 17)
    put(page, view._modulus, 1)
    assert page.bridge.message[1:] == ["error", "modulus must be at least 2, got 1"]
    page._command("accepted", None)  # the page's field says 17 again, which is no change of its model
    assert page.bridge.message[2] == ""
    page.say("A note.")
    page._command("accepted", None)
    assert page.bridge.message[2] == "A note."


def test_a_page_that_still_asks_while_its_session_ends_gets_no_answer(capsys):
    page = session.Session(Document(), [PARTICLES], begin=False)
    page.reaction(lambda: None)()  # such as the progress of a film, before the first view is there
    page.close()
    for order in ("ready", "play", "step", "gif"):
        page._command(order, None)
    page.begin()
    assert page.bridge.message[2] == ""
    assert capsys.readouterr().err == ""


def test_the_run_of_a_file_ends_at_its_last(tmp_path):
    path = tmp_path / "three.h5"
    physics.simulate(ParticleSystem(7), runs=3, steps=20, record_every=5, seed=0).save(path)
    views.prepared(PARTICLES)
    page = session.Session(Document(), [CIRCLES, PARTICLES], [path])
    view = page.view
    assert (view._index.low, view._index.high) == (0, 2)
    assert (view._first.high, view._last.high, view._last.value) == (20, 20, 20)
    assert "last" not in view.state()
    page._command("view", "particles")
    view = page.view
    view._kind.value = "file"
    view._file.files.list.value = str(path)
    assert (view._file._run.high, view._file._frame.low, view._file._frame.high) == (2, -1, 4)
    view._file._run.value, view._file._frame.value = 2, -1
    np.testing.assert_array_equal(view._run.positions, physics.load(path).final[2])


# -- files that are odd ----------------------------------------------------------------------------------


def test_a_file_with_nan_is_named_and_the_view_opens_with_another(tmp_path):
    positions = np.random.default_rng(0).standard_normal((1, 4, 8, 5))
    positions[0, 2, 3, 1] = np.nan
    physics.Trajectory(positions, range(4)).save(tmp_path / "nan.h5")
    page = session.Session(Document(), [CIRCLES], [tmp_path / "nan.h5"])
    sentence = "nan.h5 cannot be shown: positions must be finite, got 1 NaN or infinite among 160 values"
    assert page.bridge.message[1] == "error"
    assert page.bridge.message[2].endswith(sentence)
    page._command("ready", None)
    assert dict(page.bridge.status)["file"] == "ding_p59_d128_seed0.h5"
    page.view._file.list.value = str(tmp_path / "nan.h5")
    assert page.bridge.message[2].endswith(sentence)
    assert page.view._file.list.value == str(page.view._path) != str(tmp_path / "nan.h5")


@pytest.mark.parametrize(("tokens", "dim", "frames"), [(8, 5, 4), (3, 1, 2), (8, 2, 1)])
def test_even_tokens_many_dimensions_and_few_frames_are_shown(tmp_path, tokens, dim, frames):
    positions = np.random.default_rng(0).standard_normal((1, frames, tokens, dim))
    physics.Trajectory(positions, range(frames)).save(tmp_path / "odd.h5")
    page = session.Session(Document(), [CIRCLES], [tmp_path / "odd.h5"])
    page._command("ready", None)
    view = page.view
    for plane in view._plane.options:
        view._plane.value = plane
        assert page.bridge.message[2] == ""
    assert view._plane.options[0].startswith("frequency")
    view.advance(9)
    view.show()
    assert drawn(view.still())["signals"].get_xlim()[1] > 1


def test_a_run_that_is_being_recorded_is_found_by_its_name(tmp_path):
    name = str(tmp_path / "run.h5")
    assert server._unfinished(name) == name
    (tmp_path / "run.h5.partial").touch()
    assert server._unfinished(name) == f"{name}.partial"
    (tmp_path / "run.h5").touch()
    assert server._unfinished(name) == name


def test_a_server_that_ends_does_not_wait_for_films(monkeypatch):
    page, made = opened(THEORY), []
    page.view.show()
    monkeypatch.setattr(page, "later", lambda work, *given, then: made.append(partial(work, *given)))
    page._command("gif", None)
    monkeypatch.setattr(exports, "ENDED", threading.Event())
    exports.ENDED.set()
    with pytest.raises(exports.Canceled, match=r"theory.gif was canceled"):
        made[0]()


def test_a_tab_that_a_ping_has_found_closed_is_closed_quietly():
    """Bokeh's handler of the socket asks the connection for the session that it has left already."""
    socket = SimpleNamespace(connection=None)
    socket.connection = Connection(Protocol(), socket, None, ServerSession("one", Document()))
    socket.connection.detach_session()
    socket.application, socket.close_code, socket.close_reason = None, 1001, ""
    WSHandler.on_close(socket)


def test_points_that_all_lie_together_are_shown(tmp_path):
    physics.Trajectory(np.zeros((1, 3, 8, 2)), range(3)).save(tmp_path / "zeros.h5")
    page = session.Session(Document(), [CIRCLES], [tmp_path / "zeros.h5"])
    view = page.view
    for _ in range(3):
        view.advance(1)
        view.show()
    assert view._tokens.figure.y_range.end > 0
    assert set(drawn(view.still())) >= {"tokens", "signals"}
