"""What a session does in each state: play, pauses, frames in flight, replays, and tabs."""

from types import SimpleNamespace

import pytest

from physics.errors import InputError

pytest.importorskip("bokeh", reason="bokeh is not installed")

from sessions import opened, passed, put, waiting

from grokphys.explorer import exports, replay, session
from grokphys.explorer.views import view as views
from grokphys.explorer.views.changes import Sweep
from grokphys.explorer.views.tabs import VIEWS

PARTICLES, _, THEORY, *_ = VIEWS


@pytest.fixture
def page():
    views.prepared(THEORY)
    page = opened(PARTICLES, THEORY)
    page.view.restore({"tokens": 7})
    page.view.show()
    waiting(page)
    return page


# -- play --------------------------------------------------------------------------------------------------


def test_a_frame_is_sent_unless_three_are_on_their_way_or_something_rests(page):
    page._command("play", None)
    assert len(waiting(page)) == 1
    page._waiting = False
    for name, value, sent in (("frame", 2, 1), ("frame", 3, 0), ("shown", 1, 1), ("playing", 0, 0)):
        setattr(page.bridge, name, value)
        waiting(page)
        page._waiting = False
        page._schedule()
        assert len(waiting(page)) == sent, (name, value)
    page.bridge.playing = 1
    page._waiting = True
    page._schedule()
    assert waiting(page) == [], "one frame waits already"
    page._waiting = False
    page.hold(True)
    assert waiting(page) == []
    page.hold(False)
    assert len(waiting(page)) == 1


def test_play_takes_steps_of_the_speed_and_tells_little_until_a_third_of_a_second_has_passed(
    page, monkeypatch
):
    clock = [1000.0]
    monkeypatch.setattr(session, "monotonic", lambda: clock[0])
    shown, show = [], page.view.show
    page.view.show = lambda *, whole=True: shown.append(whole) or show(whole=whole)
    page._command("speed", 5)
    page._command("play", None)
    for now, whole in ((1000.0, True), (1000.1, False), (1000.29, False), (1000.31, True), (1000.4, False)):
        clock[0] = now
        assert passed(page) == 1
        assert shown[-1] == whole, now
        page.bridge.shown = page.bridge.frame
    assert (page.view._run.step, page.bridge.frame) == (25, 5)
    assert dict(page.bridge.status)["step"] == "20", "as of the last complete update"
    assert page._drawn.maxlen == 30
    page._command("pause", None)
    assert (shown[-1], dict(page.bridge.status)["step"]) == (True, "25")
    assert (page.bridge.playing, passed(page)) == (0, 1)
    assert page.view._run.step == 25, "the frame that waited is not taken"
    page._command("step", None)
    passed(page)
    assert (page.view._run.step, dict(page.bridge.status)["step"]) == (26, "26")
    names = [name for name, _ in page.bridge.status]
    assert names[:2] == ["step", "fps"]
    assert dict(page.bridge.status)["fps"] == "–"


def test_a_frame_waits_until_the_last_one_has_taken_its_time(page, monkeypatch):
    monkeypatch.setattr(session, "monotonic", lambda: 50.0)
    waits = []
    page.document.add_timeout_callback = lambda function, wait: waits.append(wait)
    page.bridge.playing = 1
    for began, pace, wait in ((50.0, 0.0, 29), (50.0, 0.1, 100), (49.95, 0.1, 50), (40.0, 0.1, 0)):
        monkeypatch.setattr(type(page.view), "pace", pace)
        page._began, page._waiting = began, False
        page._schedule()
        assert waits[-1] == wait


def test_play_ends_with_the_view_and_begins_again_from_its_start(page):
    page._command("view", "theory")
    view = page.view
    page._command("speed", 100)
    page._command("play", None)
    for frame, playing in ((100, 1), (120, 0)):
        passed(page)
        page.bridge.shown = page.bridge.frame
        assert (view._frame, page.bridge.playing, view._time.value) == (frame, playing, frame)
    further = []
    view.advance = further.append
    page._command("step", None)
    passed(page)
    assert (view._frame, further) == (120, []), "there is no further frame"
    page._command("play", None)
    assert (view._frame, page.bridge.playing) == (0, 1)


def test_an_error_of_a_step_ends_play_and_what_is_canceled_does_not(page, capsys):
    page._command("play", None)
    page.fail(exports.Canceled("a.gif was canceled."))
    assert (page.bridge.message[1:], page.bridge.playing) == (["done", "a.gif was canceled."], 1)
    page.view.advance = lambda steps: (_ for _ in ()).throw(InputError("seed must be less"))
    passed(page)
    assert (page.bridge.message[1:], page.bridge.playing) == (["error", "seed must be less"], 0)
    assert page.bridge.frame == 0
    assert capsys.readouterr().err == "", "an expected error is no error of the program"
    count = page.bridge.message[0]
    page.say("")
    page.say("")
    assert page.bridge.message[0] == count + 1, "nothing is removed twice"


def test_another_tab_pauses_play_and_keeps_what_it_was_doing(page):
    stopped, started = [], []
    first = page.view
    first.stop, first.start = lambda: stopped.append(1), lambda: started.append(1)
    page._command("speed", 8)
    page._command("play", None)
    page._command("view", "theory")
    assert (page.bridge.playing, page.bridge.view, stopped, started) == (0, "theory", [1], [])
    assert [panel.visible for _, panel in page._views.values()] == [False, True]
    assert len(page.stage.children) == 2
    page._command("view", "particles")
    assert (page.view, page.bridge.speed, started) == (first, 8, [1])
    assert [panel.visible for _, panel in page._views.values()] == [True, False]
    assert len(page.stage.children) == 2
    page._command("play", None)
    page._command("view", "particles")
    assert (page.bridge.playing, stopped) == (1, [1]), "it is there already"
    page.close()
    assert stopped == [1, 1]


def test_a_speed_is_a_whole_number_and_a_preset_sets_its_own(page):
    page._command("speed", 12.0)
    assert (page.bridge.speed, type(page.bridge.speed)) == (12, int)
    for wrong in (0, 4, 1.5, "8", None):
        page._command("speed", wrong)
        words = f"steps per frame must be one of 1, 2, 3, 5, 8, 12, 20, 35, 60, 100, got {wrong!r}"
        assert page.bridge.message[1:] == ["error", words]
    assert page.bridge.speed == 12
    page._command("speed", 3)
    assert page.bridge.message[2] == ""
    page._command("preset", "particles/an imperfect grid")
    assert (page.bridge.speed, page.bridge.playing, page.bridge.preset) == (2, 1, "an imperfect grid")
    put(page, page.view._tokens, 9)
    assert page.bridge.preset == ""


def test_of_tabs_that_load_the_one_that_was_chosen_last_is_shown(page, monkeypatch):
    loading = []
    monkeypatch.setattr(session, "PREPARED", {PARTICLES})
    page.later = lambda work, *given, then: loading.append((work, given, then))
    page._command("view", "theory")
    assert (page.bridge.view, page.bridge.message[1:]) == (
        "particles", ["note", f"Loading {THEORY.name} …"]
    )  # fmt: skip
    page._command("view", "particles")
    assert page.bridge.message[2] == ""
    ((work, given, then),) = loading
    assert (work, given) == (views.prepared, (THEORY,))
    session.PREPARED.add(THEORY)
    then(None)
    assert page.bridge.view == "particles", "the user has gone back meanwhile"
    session.PREPARED.discard(THEORY)
    name = THEORY.presets[0].name
    page._command("preset", f"theory/{name}")
    session.PREPARED.add(THEORY)
    loading[1][2](None)
    assert (page.bridge.view, page.bridge.playing, page.bridge.preset) == ("theory", 1, name)
    assert page.bridge.message[2] == ""
    page._command("preset", "particles")
    assert page.bridge.view == "theory", "no preset of this view"
    page._command("view", "nothing")
    assert page.bridge.message[1:] == ["error", "view must be one of particles, theory, got 'nothing'"]


def test_a_page_without_a_server_takes_no_file_and_a_closed_one_no_command(page):
    page._command("uploaded", "key")
    words = "upload must be left out, because this page has no server that takes files"
    assert page.bridge.message[1:] == ["error", words]
    page._command("refused", "too large")
    assert page.bridge.message[1:] == ["error", "too large"]
    page._command("accepted", None)
    assert page.bridge.message[2] == ""
    page._command("unheard of", None)
    assert page.bridge.message[2] == ""
    page.close()
    page._command("play", None)
    assert page.bridge.playing == 0


def test_a_view_is_prepared_once(monkeypatch):
    monkeypatch.setattr(views, "PREPARED", set())
    prepared = []
    kind = type("Kind", (), {"prepare": classmethod(lambda cls: prepared.append(1))})
    assert views.prepared(kind) is views.prepared(kind) is kind
    assert prepared == [1]


def test_filling_lasts_until_the_outermost_block_ends(page):
    view, seen = page.view, []
    view.connect(seen.append, view._numbers)
    with view.filling():
        with view.filling():
            view._numbers.value = "numbers"
        view._numbers.value = "markers"
    view._numbers.value = "numbers"
    assert seen == ["numbers"]


def test_a_sweep_moves_by_steps_of_its_slider():
    slider, sweep = SimpleNamespace(start=0, end=4, step=0.5, value=3.5), Sweep()
    seen = []
    for _ in range(3):
        sweep.move(slider)
        seen.append(slider.value)
    assert seen == [4.0, 3.5, 3.0]


# -- replays -----------------------------------------------------------------------------------------------


def test_a_replay_yields_its_steps_and_stops_at_each_change(page):
    view = page.view
    assert [*view.replay(10, 4)] == [4, 8, 10]
    assert [*view.replay(0, 4)] == []
    view.restore({"tokens": 7, "step": 11, "before": [[3, {"alignment": 1.0}], [8, {"alignment": 3.0}]]})
    assert [*view.replay(11, 4)] == [3, 7, 8, 11]
    assert [(one.steps, one.system.alignment) for one in view._run.segments] == [(3, 1.0), (5, 3.0), (3, 2.0)]
    view.restore({"tokens": 7})
    assert len([*view.replay(301, 1)]) == 151, "at most 300 frames, but for changes"


def test_a_replay_comes_in_pieces_that_are_told_and_hands_end_it(page, monkeypatch):
    monkeypatch.setattr(replay, "PIECE", -1.0)  # each frame is a piece
    link = '{"view":"particles","speed":5,"state":{"tokens":7,"step":23}}'
    page._command("open", link)
    view, told = page.view, []
    while passed(page):
        told.append(page.bridge.message[2])
    words = "Repeating the run of this link: step {} of 23 …"
    assert told == [*(words.format(step) for step in (5, 10, 15, 20, 23)), ""]
    assert (view._run.step, page.bridge.speed) == (23, 5)
    for order, steps in ((("python", None), 23), (("ready", None), 23), (("accepted", None), 23),
                         (("play", None), 10), (("speed", 3), 10), (("key", "ArrowLeft"), 10)):  # fmt: skip
        page._command("open", link)
        passed(page)
        passed(page)
        assert view._run.step == 10
        page._command(*order)
        page.bridge.playing = 0
        if steps == 10:
            assert page.bridge.message[2] == ""
        while passed(page):
            pass
        assert view._run.step == steps, order
    page._command("open", link)
    passed(page)
    put(page, view._seed, 4)
    passed(page)
    passed(page)
    assert view._run.step == 0, "so does a control"
    page._command("open", link)
    passed(page)
    page.close()
    passed(page)
    assert view._run.step == 5


def test_frames_of_a_replay_are_taken_for_a_third_of_a_second(monkeypatch):
    clock = iter([10.0, 10.1, 10.3, 10.31, 10.32])
    monkeypatch.setattr(replay, "monotonic", lambda: next(clock))
    frames = iter([1, 2, 3, 4])
    assert replay.some(frames) == 3
    clock = iter([10.0, 10.1])
    assert replay.some(frames) is None
