"""Files that a page asks for or uploads: their names, their progress, and what a closed tab leaves."""

import threading

import numpy as np
import pytest

import physics

pytest.importorskip("bokeh", reason="bokeh is not installed")

from bokeh.document import Document
from browser import loaded
from sessions import opened, passed

from grokphys.explorer import exports, session, uploads
from grokphys.explorer.films.export import Film
from grokphys.explorer.views import view as views
from grokphys.explorer.views.tabs import VIEWS

PARTICLES, _, THEORY, CIRCLES, _ = VIEWS


@pytest.fixture
def page():
    page = opened(PARTICLES)
    page.view.restore({"tokens": 7})
    passed(page)
    return page


def test_what_is_exported_has_the_name_of_its_view_and_comes_when_it_is_made(page, monkeypatch):
    made = []
    page.later = lambda work, *given, then: made.append(lambda: then(work(*given)))
    page.view.advance(3)
    for name, begins, kind in (
        ("save", b"\x89HDF", "application/x-hdf5"),
        ("png", b"\x89PNG", "image/png"),
    ):
        ending = "h5" if name == "save" else name
        page._command(name, None)
        assert page.bridge.message[1:] == ["note", f"Making particles.{ending} …"]
        made.pop()()
        _, file, media, content = page.bridge.download
        assert (file, media, bytes(content)[:4]) == (f"particles.{ending}", kind, begins)
        assert page.bridge.message[1:] == ["done", f"particles.{ending} is in your downloads."]
        if name == "save":
            np.testing.assert_array_equal(loaded(bytes(content)).final[0], page.view._run.positions)
    drawn = []
    film = Film(3, lambda figure: drawn.append)
    monkeypatch.setattr(type(page.view), "film", lambda self: film)
    for name, kind in (("gif", "image/gif"), ("mp4", "video/mp4")):
        monkeypatch.setattr(exports.export, name, lambda film, progress: progress(1, 3) or b"film")
        page._command(name, None)
        assert page.bridge.message[1:] == ["progress", f"Making particles.{name} …"]
        made.pop()()
        passed(page)
        assert page.bridge.download[1:3] == [f"particles.{name}", kind]


def test_progress_is_told_now_and_then_and_a_cancel_ends_all_films_in_the_making(page, monkeypatch):
    clock, made, said = [5.0], [], []
    monkeypatch.setattr(exports, "monotonic", lambda: clock[0])
    monkeypatch.setattr(type(page.view), "film", lambda self: Film(9, lambda figure: lambda frame: None))
    page.later = lambda work, *given, then: made.append(lambda: work(*given))
    page.soon = lambda function: function()
    say, page.say = page.say, lambda text, kind="note": said.append((kind, text))

    def make(film, progress):
        for done, now in ((1, 5.0), (2, 5.2), (3, 5.31), (4, 5.5)):
            clock[0] = now
            progress(done, 9)
        film.begin(None)(0)
        return b""

    for _ in range(2):
        page._exports._film("gif", "image/gif", make)
    said.clear()
    made[0]()
    assert said == [("progress", f"Making particles.gif: {done} of 9 frames") for done in (1, 3)]
    page._command("cancel", None)
    for film in made:
        with pytest.raises(exports.Canceled, match=r"^particles\.gif was canceled\.$"):
            film()
    page._exports._film("gif", "image/gif", make)
    made[2]()  # it was begun after the cancel
    page.say = say
    page.close()
    with pytest.raises(exports.Canceled):
        made[2]()


def test_a_film_is_ended_before_it_begins_and_before_each_picture():
    cancel, moved = threading.Event(), []

    def check():
        if cancel.is_set():
            raise exports.Canceled

    film = exports.checked(Film(3, lambda figure: moved.append, size=(1.0, 2.0)), check)
    assert (film.frames, film.size) == (3, (1.0, 2.0))
    move = film.begin(None)
    move(1)
    cancel.set()
    for work in (lambda: move(2), lambda: film.begin(None)):
        with pytest.raises(exports.Canceled):
            work()
    assert moved == [1]


def test_an_upload_is_shown_where_it_can_be_and_removed_at_the_end(tmp_path):
    views.prepared(THEORY)
    (tmp_path / "private").mkdir()
    held = uploads.Uploads(tmp_path / "private")
    page = session.Session(Document(), [PARTICLES, THEORY, CIRCLES], (), held)
    page._command("ready", None)

    def upload(number):
        place = held.begin(5000)
        physics.simulate(physics.ParticleSystem(5), steps=3, seed=number, out=place, overwrite=True)
        key = held.keep(place, "mine.h5")
        page._command("uploaded", key)
        return place

    view, first = page.view, upload(1)
    assert (page.bridge.view, view._kind.value, view._file.files.list.value) == (
        "particles",
        "file",
        str(first),
    )
    np.testing.assert_array_equal(view._run.positions, physics.load(first).initial[0])
    page._command("view", "theory")
    for kind in (THEORY, CIRCLES):
        views.PREPARED.add(kind)
    second = upload(2)
    assert (page.bridge.view, page.view._path) == ("circles", second), "the theory reads no files"
    assert page.files == {first: "mine.h5", second: "mine (2).h5"}
    assert view._file.files.list.value == str(first), "a view that is not shown only lists it"
    assert str(second) in [value for value, _ in view._file.files.list.options]
    assert page.bridge.message[2] == ""
    page._command("refused", "mine.h5 is not an HDF5 file")
    assert page.bridge.message[1:] == ["error", "mine.h5 is not an HDF5 file"]
    assert (page.view._path, len(page.files)) == (second, 2)
    page.close()
    assert list((tmp_path / "private").iterdir()) == []
    assert page._views == {}
    alone = opened(PARTICLES)
    alone._command("uploaded", "key")
    words = "upload must be left out, because this page has no server that takes files"
    assert alone.bridge.message[1:] == ["error", words]


def test_what_is_made_for_a_closed_tab_is_dropped(page):
    done, ready = [], threading.Event()
    page.later(lambda value: ready.set() or value, 3, then=done.append)
    assert ready.wait(30)
    session.DRAW.submit(int).result(30)
    passed(page)
    assert done == [3]
    page.closed = True
    page.later(lambda: 4, then=done.append)
    session.DRAW.submit(int).result(30)
    assert (passed(page), done) == (0, [3])
