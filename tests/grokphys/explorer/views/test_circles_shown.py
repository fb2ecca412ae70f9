"""What the view of circles shows of a file while it rests, grows or is left, and what its runs read."""

import re
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("bokeh", reason="bokeh is not installed")

from bokeh.document import Document
from sessions import drawn

import physics
from grokphys.explorer import theme
from grokphys.explorer.plots import circles as plots
from grokphys.explorer.plots.circles import CoefficientPlot, score_text
from grokphys.explorer.runs import circles as runs
from grokphys.explorer.session import Session
from grokphys.explorer.views.circles import CirclesView
from grokphys.files import embedded_trajectory
from physics.trajectory.header import Layout
from physics.trajectory.recording import FileRecorder

REAL = str(embedded_trajectory())


@pytest.fixture
def path(tmp_path):
    """A file of three runs of 201 frames, whose clouds grow."""
    positions = np.random.default_rng(1).standard_normal((3, 201, 7, 3)) * np.arange(1, 202)[:, None, None]
    place = tmp_path / "three.h5"
    physics.Trajectory(positions, np.arange(201) * 5).save(place)
    return place


def opened(*files):
    """Return a session in which workers do their work at once."""
    page = Session(Document(), [CirclesView], files)
    page.later = lambda work, *given, then: page.reaction(lambda: then(work(*given)), by_hand=False)()
    page._command("ready", None)
    return page


def said(page):
    return dict(page.bridge.status)


def test_another_plane_is_drawn_in_all_panels_while_it_rests(path):
    page = opened(path)
    view, run = page.view, runs.open_run(path)
    view._time.value = 120
    names = run.planes()
    assert names[3:] == ["components 1, 2", "axes 1, 2", "axes 1, 3", "axes 2, 3"], "components come first"
    assert run.seen(names[0]).names == (f"plane of {names[0]} at the end, axis 1", "axis 2")
    assert run.seen("axes 1, 3").names == ("axis 1", "axis 3")
    steps, signals = run.signals
    for plane in (names[1], "axes 1, 3", names[2], "components 1, 2", names[0]):
        view._plane.value = plane
        seen = run.seen(plane)
        np.testing.assert_array_equal(view._tokens.points(), seen.points[120])
        trails = view._tokens._trails.data
        np.testing.assert_allclose(
            [trails["x1"][-7:], trails["y1"][-7:]], seen.points[120].T, rtol=1e-4, atol=1e-2
        )
        np.testing.assert_allclose(
            [trails["x0"][-7:], trails["y0"][-7:]], seen.points[119].T, rtol=1e-4, atol=1e-2
        )
        assert view._tokens.tokens.data["fill"] == [theme.class_colors(7)[place] for place in seen.order]
        ring = np.stack([view._ring.data["x"], view._ring.data["y"]], axis=1)
        assert view._signals._now.location == steps[120] + 1
        line = view._signals._chosen.data
        if plane.startswith("frequency"):
            k = int(plane.split()[1])
            np.testing.assert_array_equal(ring, seen.points[120, seen.cycle])
            np.testing.assert_array_equal(line["y"], signals[:, k - 1])
            assert said(page)[f"signal {k}"] == f"{signals[120, k - 1]:.4g}"
        else:
            assert len(ring) == len(line["y"]) == 0
    axes = drawn(view.film(), 120)
    np.testing.assert_allclose(axes["tokens"].collections[1].get_offsets(), seen.points[120])
    assert view.film().shown == 120
    view.show(whole=False)
    view.advance(3)
    view.show(whole=False)
    assert (view._frame, view._time.value) == (123, 120), "the slider waits for a complete update"
    assert view.pace == 10 / 201


def test_a_rule_and_its_limit_are_those_of_all_that_is_said_and_drawn(path):
    page = opened(path)
    view, run = page.view, runs.open_run(path)
    strong = np.sort(run.final_signals)
    for rule, limit, given in (
        ("an absolute signal", 10.0, {"threshold": 10.0}),
        ("an absolute signal", float(strong[-2:].mean()), {"threshold": float(strong[-2:].mean())}),
        ("a multiple of the mean signal", 2.0, {"factor": 2.0}),
        ("a multiple of the mean signal", 1.0, {"factor": 1.0}),
    ):
        view._rule.value = rule
        if limit not in (10.0, 2.0):
            view._limit.value = limit
        assert view._limit.value == limit
        survivors, level = run.survivors(**given), run.limit(**given)
        assert said(page)["survivors"] == (" ".join(map(str, survivors)) or "none")
        assert said(page)["limit"] == f"{level:.4g}"
        assert view._signals._limit.location == level
        assert view._signals._alive.data["label"] == [str(k) for k in survivors]
        axes = drawn(view.film())["signals"]
        labels = [line.get_label() for line in axes.lines]
        assert [words for words in labels if words.startswith("k =")] == [f"k = {k}" for k in survivors]
        assert f"survives above {level:.3g}" in labels
        ((name, value),) = given.items()
        assert f"analysis.surviving_frequencies(positions[-1], {name}={value!r})" in view.python()


def test_a_law_is_shown_until_its_run_is_left_and_its_rollout_while_it_is_wanted(path):
    page = opened(path)
    view = page.view
    assert "No law has been fitted yet." in view._scores.text
    assert len(view._bottom.children) == 1
    view._recipe.value, view._first.value, view._last.value = "least squares", 10, 400
    view._start_fit()
    fitted = view._run.fit("least squares", first=10, last=400)
    np.testing.assert_array_equal(view._fitted.A, fitted.A)
    assert view._fitted.steps.tolist() == fitted.steps.tolist() == [*range(10, 401, 5)]
    assert page.bridge.message[1:] == ["note", "; ".join(fitted.notes)]
    assert said(page)["rollout R²"] == f"{fitted.scores.in_sample.rollout:.4f}"
    assert (len(view._bottom.children), view._scores.text) == (2, score_text(fitted))
    assert view._coefficients._cells.data["value"].tolist() == fitted.A.ravel().tolist()
    before = view._survivors()
    view._limit.value = 1.0
    assert len(view._survivors()) > len(before)
    assert view._coefficients._marks.data["x"] == [*view._survivors(), *[0] * len(view._survivors())]
    for active in (False, True):
        view._rollout.active = active
        assert len(view._signals._rollouts.data["xs"]) == 3 * active
        black = [line for line in drawn(view.film())["signals"].lines if line.get_color() == "black"]
        assert bool(black) == active
    view._deliver(runs.open_run(path), SimpleNamespace(notes=("too late",)))
    assert view._fitted.recipe == "least squares", "that of another run comes too late"
    view._index.value = 1
    assert (view._fitted, len(view._bottom.children)) == (None, 1)
    assert view._signals._rollouts.data["xs"] == []
    assert "rollout R²" not in said(page)


def test_a_link_opens_its_file_its_run_and_its_frame(path):
    page = opened(path)
    view = page.view
    view._index.value = 2
    view._limit.value, view._time.value = 1.5, 77
    state = view.state()
    first = view._plane.options[0]
    assert state == {"file": str(path), "run": 2, "limit": 1.5, "time": 77, "plane": first}
    view.restore({})
    assert (view._path, view._index.value, view._last.value, view._time.value) == (
        view._path.__class__(REAL), 0, 1000, 0,
    )  # fmt: skip
    assert view.state() == {}
    view.restore(state)
    assert (view._path, view._index.value, view._limit.value, view._frame) == (path, 2, 1.5, 77)
    assert (view._plane.value, view._last.value, view._run.index) == (first, 1000, 2)
    np.testing.assert_array_equal(view._tokens.points(), view._run.seen(first).points[77])
    assert view.state() == {name: value for name, value in state.items() if name != "plane"}
    view.restore({"file": str(path), "first": 15, "plane": "axes 2, 3"})
    assert (view._run.index, view._first.value, view._plane.value) == (0, 15, "axes 2, 3")
    for wrong, words in (
        ({"run": 3, "file": str(path)}, "run must be below 3, got 3"),
        ({"run": -1, "file": str(path)}, "run must be at least 0, got -1"),
        ({"file": "/etc/passwd"}, "file must be one of three.h5, ding_p59_d128_seed0.h5, got '/etc/passwd'"),
    ):
        with pytest.raises(physics.InputError, match=f"^{re.escape(words)}$"):
            view.restore(wrong)
        assert view._path == path, "the run before stays"


# -- a file that grows -------------------------------------------------------------------------------------


@contextmanager
def recorded(path, frames):
    """Record frames one by one: yield a function that appends so many more."""
    positions = (
        np.random.default_rng(2).standard_normal((frames, 7, 2)) * np.arange(1, frames + 1)[:, None, None]
    )
    with FileRecorder(path, Layout(1, 7, 2, "float64", frames), {}) as recorder:
        done = 0

        def more(count):
            nonlocal done
            for frame in range(done, done + count):
                recorder.append(frame, float(frame), positions[frame][None])
            done += count
            recorder.flush()

        yield more


def test_a_run_that_grows_keeps_its_plane_and_its_place(tmp_path):
    with recorded(tmp_path / "run.h5", 60) as more:
        more(20)
        page = opened(tmp_path / "run.h5.partial")
        view = page.view
        assert (view._frame, page.bridge.playing, view._last.high, view._last.value) == (19, 1, 19, 19)
        assert len(page.document.session_callbacks) == 1, "no frame until more is recorded"
        page._command("pause", None)
        plane = view._plane.options[2]
        view._plane.value = plane
        view._go(5)
        more(20)
        view._follow()
        run = view._run
        assert (len(run.steps), view._frame, view._time.end, view._plane.value) == (40, 5, 39, plane)
        assert view._plane.options == run.planes()
        np.testing.assert_array_equal(view._tokens.points(), run.seen(plane).points[5])
        k = int(plane.split()[1])
        np.testing.assert_array_equal(view._signals._chosen.data["y"], run.signals[1][:, k - 1])
        assert (view._last.high, view._last.value) == (39, 19)
        assert not view.waits
        view._go(39)
        assert (view.waits, view.finished) == (True, False)
        assert page.bridge.playing == 0
        # The reader of another file is not taken back to this one.
        stored = view._stored
        view._file.list.value = REAL
        assert (view._watching, page.document.session_callbacks) == (None, [])
        view._grow(stored, run)
        assert (view._run.name, view._reading) == (REAL, False)
        view.start()
        assert view._watching is None, "that file is complete"
        view._file.list.value = str(tmp_path / "run.h5.partial")
        assert (view._frame, view._end, page.bridge.playing) == (39, 39, 1), "it plays from its newest frame"
        view.stop()
        assert (view._watching, page.document.session_callbacks) == (None, [])
        view.start()
        assert len(page.document.session_callbacks) == 1
        (watching,) = page.document.session_callbacks
        assert watching.period == 1000
        # One reading at a time; an error of reading is said, and what was read stays.
        view._reading = True
        more(1)
        view._follow()
        assert view._end == 39
        view._reading = False
        page.reaction(lambda: view._grow(view._stored, physics.InputError("a run that is odd")))()
        assert page.bridge.message[1:] == ["error", "a run that is odd"]
        assert (view._end, view._reading) == (39, False)
        more(19)
    view._follow()
    assert (view._end, view._watching, view.status().get("recording")) == (59, None, None)


# -- what is read ------------------------------------------------------------------------------------------


def test_of_a_long_run_no_more_is_read_than_memory_holds(monkeypatch, path):
    whole = physics.load(path)
    for largest, every in (
        (8 * 21 * 201, 1),
        (8 * 21 * 200, 2),
        (8 * 21 * 67, 3),
        (8 * 21 * 66, 4),
        (1, 201),
    ):
        monkeypatch.setattr(runs, "LARGEST_BYTES", largest)
        run = runs.open_run(path, 1)
        assert run.every == every
        np.testing.assert_array_equal(run.embeddings, run.trajectory.positions[0])
        assert run.steps[0] == 0
        np.testing.assert_array_equal(run.embeddings[0], whole.positions[1, 0])
    monkeypatch.setattr(runs, "LARGEST_BYTES", 8 * 21 * 50)
    page = opened(path)
    assert page.bridge.message[1:] == ["note", f"{path} is long: one of every 5 frames is shown."]
    found = {}
    exec(page.view.python(), found)
    np.testing.assert_array_equal(found["points"], page.view._tokens.points())
    assert "every=5" in page.view.python()
    page.view._index.value = 2
    page._command("ready", None)
    np.testing.assert_array_equal(page.view.trajectory().positions[0], whole.positions[2, ::5])


def test_a_run_on_a_line_is_projected_by_its_script(tmp_path):
    positions = np.random.default_rng(3).standard_normal((1, 4, 6, 1))
    physics.Trajectory(positions, range(4)).save(tmp_path / "line.h5")
    run = runs.open_run(tmp_path / "line.h5")
    for plane in ("axes 1, 2", "frequency 2"):
        found = {}
        exec(run.python(plane, 2), found)
        np.testing.assert_allclose(found["points"], run.seen(plane).points[2], atol=1e-12)
        assert found["points"].shape == (6, 2)


def test_a_file_without_a_frame_is_said_to_have_none_yet(tmp_path):
    with FileRecorder(tmp_path / "run.h5", Layout(1, 7, 2, "float64", 4), {}) as recorder:
        recorder.flush()
        place = tmp_path / "run.h5.partial"
        with pytest.raises(physics.InputError, match=r"must hold at least 1 frame, got none yet$"):
            runs.open_run(place)
        assert isinstance(runs.read_again(place, 0, "mine"), physics.InputError)
        recorder.append(0, 0.0, np.ones((1, 7, 2)))
    assert runs.read_again(tmp_path / "run.h5", 0, "mine").name == "mine"
    assert runs.open_run(tmp_path / "run.h5").name == str(tmp_path / "run.h5")
    with pytest.raises(physics.InputError, match="run must be at least 0, got -1"):
        runs.open_run(tmp_path / "run.h5", -1)


def test_targets_that_have_not_converged_are_counted(monkeypatch, path):
    law = SimpleNamespace(
        A=np.eye(3), b=np.zeros(3), converged=np.array([True, False, False]), predict=lambda x, times: times
    )
    monkeypatch.setattr(
        "grokphys.report.circles.fit_and_score", lambda *_, **options: SimpleNamespace(law=law)
    )
    fitted = runs.open_run(path).fit(first=5, last=100)
    assert fitted.notes == ("2 of 3 targets have not converged",)
    assert (fitted.recipe, fitted.kind) == ("Lasso, α = 0.01", "increment")
    assert fitted.rollout.tolist() == list(range(20))


def score(derivative, rollout):
    return SimpleNamespace(derivative=derivative, rollout=rollout)


def test_scores_are_written_as_they_can_be_read():
    A = np.array([[0.0, 2.0], [0.5, 0.0]])
    scores = SimpleNamespace(in_sample=score(0.98765, -9.99996), forward=None)
    fitted = SimpleNamespace(
        A=A,
        kind="increment",
        recipe="least squares",
        steps=np.array([3, 5, 9]),
        scores=scores,
        notes=("a note",),
    )
    assert score_text(fitted) == (
        "<h2>Scores</h2><p>Increment map, least squares, steps 3 to 9: 2 of 4 coefficients are not 0.</p>"
        "<p>In sample: R² = 0.9877 of the changes, -10.0000 of the rollout.</p><p>a note</p>"
    )
    fitted.kind, fitted.notes = "generator", ()
    for values, words in (
        ((-10.0, -12345.6), ("-10", "-12,346")),
        ((np.nan, -np.inf), ("undefined", "overflow")),
        ((np.inf, 1.0), ("overflow", "1.0000")),
    ):
        scores.forward = score(*values)
        text = score_text(fitted)
        assert "<p>Generator, least squares, " in text
        assert f"R² = {words[0]} of the changes, {words[1]} of the rollout. Below 0, a constant" in text
        assert text.count("<p>") == 3


def test_points_of_long_signals_are_even_in_the_logarithm_of_the_step():
    for first in (0, 50):
        for every in (1, 7):
            steps = first + every * np.arange(5000)
            exact = np.geomspace(first + 1, steps[-1] + 1, plots.POINTS) - 1
            places = np.ceil((exact - first) / every - 1e-5).astype(int)
            assert plots._log_evenly(steps).tolist() == sorted(set(places.tolist()))
            assert places[[0, -1]].tolist() == [0, 4999]
        few = first + np.arange(plots.POINTS)
        assert plots._log_evenly(few).tolist() == list(range(plots.POINTS))


def test_what_only_keeps_the_limit_in_sight_is_not_seen():
    shown = plots.SignalPlot()
    (point,) = [one for one in shown.figure.renderers if one.data_source is shown._reach]
    assert (point.glyph.fill_alpha, point.glyph.line_alpha) == (0, 0)


def test_signs_and_ticks_of_many_coefficients_shrink():
    plot = CoefficientPlot()
    for count, size, ticks in ((12, 14, [*range(1, 13)]), (28, 10, [1, 5, 10, 15, 20, 25]), (57, 5, None)):
        plot.show(SimpleNamespace(A=np.eye(count)), [])
        assert plot._signs.glyph.text_font_size == f"{size}px"
        for axis in plot.figure.axis:
            assert ticks is None or axis.ticker.ticks == ticks
