"""The circles' view: what is read off a file is what the analysis reads off it."""

import time

import numpy as np
import pytest

import analysis
import physics
from grokphys.explorer import files
from grokphys.explorer.films import export, films
from grokphys.explorer.runs import circles as circle_run
from grokphys.explorer.runs.circles import open_run
from grokphys.files import embedded_trajectory
from physics.trajectory.header import Layout
from physics.trajectory.recording import FileRecorder

REAL = embedded_trajectory()
pytestmark = pytest.mark.filterwarnings("ignore:Widget.name is deprecated:PendingDeprecationWarning")


@pytest.fixture(scope="module")
def real():
    return open_run(REAL)


@pytest.fixture
def particles(tmp_path):
    path = tmp_path / "particles.h5"
    physics.simulate(physics.ParticleSystem(7), runs=3, steps=40, seed=5, out=path)
    return path


def test_the_real_run_is_read(real):
    whole = physics.load(REAL)
    np.testing.assert_array_equal(real.embeddings, whole.positions[0])
    np.testing.assert_array_equal(real.steps, whole.steps)
    assert real.frequencies == 29
    assert real.every == 1


def test_signals_are_those_recorded_and_after_them_those_of_the_embeddings(real):
    steps, values = real.signals
    assert steps.tolist() == [*range(1001), 1500, 2000, 3000, 4000]
    np.testing.assert_array_equal(values[:1001], physics.load(REAL).observables["fourier_signals"][0])
    np.testing.assert_array_equal(values[-1], analysis.fourier_signals(real.embeddings[-1]))


def test_survivors_by_both_rules(real):
    assert real.survivors() == [7, 8, 11, 13, 25]
    assert real.survivors(threshold=8.0) == [
        k + 1 for k, value in enumerate(real.final_signals) if value > real.limit(threshold=8.0)
    ]
    assert len(real.survivors(threshold=8.0)) > 5
    assert real.limit() == 2 * real.final_signals.mean()
    assert real.strongest == 11


def test_the_plane_of_a_frequency_is_that_of_the_last_frame(real):
    found = real.plane(7)
    np.testing.assert_allclose(
        found.points[-1], analysis.frequency_plane(real.embeddings[-1], 7).points, atol=1e-12
    )
    assert found.points.shape == (80, 59, 2)
    angle = np.unwrap(np.arctan2(*found.points[-1][found.cycle[:-1]].T))
    turns = np.diff(angle)
    assert (turns * np.sign(turns.sum()) > 0).all(), "neighbours in the cycle are neighbours on the circle"
    np.testing.assert_array_equal(found.order, 7 * np.arange(59) % 59)


def test_principal_components_are_those_of_the_last_frame(real):
    expected = analysis.circles.principal_components(real.embeddings[-1]).points
    for pair in (0, 2):
        found = real.seen(f"components {2 * pair + 1}, {2 * pair + 2}")
        np.testing.assert_allclose(
            np.abs(found.points[-1]), np.abs(expected[:, 2 * pair : 2 * pair + 2]), atol=1e-10
        )
        assert found.names == (f"component {2 * pair + 1}", f"component {2 * pair + 2}")


def test_every_plane_that_is_named_can_be_seen(real, particles):
    names = real.planes()
    assert names[0] == "frequency 11"
    assert sorted(names[:29]) == sorted(f"frequency {k}" for k in range(1, 30))
    for run in (real, open_run(particles)):
        for name in run.planes()[::3]:
            assert run.seen(name).points.shape == (len(run.steps), run.tokens, 2)
    with pytest.raises(physics.InputError, match="plane must be one of 'frequency 11'.*got 'frequency 30'"):
        real.seen("frequency 30")


def test_one_dimension_is_shown_on_a_line(tmp_path):
    rng = np.random.default_rng(0)
    physics.Trajectory(rng.standard_normal((1, 4, 6, 1)), range(4)).save(tmp_path / "t.h5")
    run = open_run(tmp_path / "t.h5")
    for found in (run.seen("axes 1, 2"), run.plane(2)):
        assert found.points.shape == (4, 6, 2)
        assert not found.points[..., 1].any()
    assert run.plane(2).cycle is None, "modulo 6, frequency 2 has two tokens on each place"
    assert run.plane(1).cycle is not None


def test_the_law_is_that_of_the_paper_s_recipe(real):
    fitted = real.fit("least squares", last=200)
    signals = physics.load(REAL).observables["fourier_signals"][0, :201].astype(float)
    law = analysis.fit_trajectories(signals, kind="increment", penalty=None)
    assert fitted.kind == "increment"
    np.testing.assert_array_equal(fitted.A, law.A)
    np.testing.assert_array_equal(fitted.rollout, law.predict(signals[0], np.arange(201)))
    assert fitted.scores.in_sample.derivative == pytest.approx(law.r2_in_sample)
    assert fitted.scores.forward.derivative < fitted.scores.in_sample.derivative


def test_uneven_steps_are_fitted_by_a_generator_and_warnings_become_notes(particles, tmp_path):
    whole = physics.load(particles)
    kept = [0, 1, 2, 4, 8, 16, 32, 40]
    physics.Trajectory(whole.positions[:, kept], kept).save(tmp_path / "uneven.h5")
    run = open_run(tmp_path / "uneven.h5", 1)
    fitted = run.fit("Lasso, α = 0.01")
    assert fitted.kind == "generator"
    assert fitted.rollout.shape == (8, 3)
    late = run.fit("Lasso, α = 0.01", first=4)
    steps, signals = run.signals[0][3:], run.signals[1][3:]
    with pytest.warns(UserWarning, match="leaves no coefficient"):
        law = analysis.fit_trajectories(signals, steps, kind="generator", **circle_run.RECIPES[late.recipe])
    assert late.steps.tolist() == [4, 8, 16, 32, 40]
    np.testing.assert_array_equal(late.rollout, law.predict(signals[0], np.array([0, 4, 12, 28, 36])))
    thin = open_run(particles).fit("Lasso, α = 0.01", last=2)
    assert any("only the penalty chooses" in note for note in thin.notes)
    with pytest.raises(physics.InputError, match="steps 0 to 1 must hold at least 3 frames"):
        run.fit(last=1)
    with pytest.raises(physics.InputError, match="as many changes as unknowns for least squares"):
        run.fit("least squares", last=2)


def test_a_long_run_is_thinned_and_keeps_its_end(particles, monkeypatch):
    monkeypatch.setattr(circle_run, "LARGEST_FRAMES", 10)
    run, whole = open_run(particles, 2), physics.load(particles)
    assert run.every == 5
    np.testing.assert_array_equal(run.embeddings, whole.positions[2, [*range(0, 41, 5)]])
    assert run.survivors() == analysis.surviving_frequencies(whole.final[2]).tolist()


def test_what_is_not_a_trajectory_is_refused_with_a_sentence(tmp_path, particles):
    (tmp_path / "text.h5").write_text("hello")
    with pytest.raises(physics.FileFormatError, match="text.h5 is not an HDF5 file"):
        open_run(tmp_path / "text.h5")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        open_run(tmp_path / "none.h5")
    with pytest.raises(physics.InputError, match="run must be below 3, got 3"):
        open_run(particles, 3)
    physics.Trajectory(np.zeros((1, 2, 2, 1)), range(2)).save(tmp_path / "two.h5")
    with pytest.raises(physics.InputError, match="at least 3 tokens to have circles, got 2"):
        open_run(tmp_path / "two.h5")
    positions = np.ones((1, 2, 5, 2))
    positions[0, 1, 2, 0] = np.nan
    physics.Trajectory(positions, range(2)).save(tmp_path / "nan.h5")
    with pytest.raises(physics.InputError, match="positions must be finite"):
        open_run(tmp_path / "nan.h5")
    wrong = physics.Trajectory(
        np.ones((1, 2, 5, 2)), range(2), observables={"fourier_signals": np.ones((1, 2, 7))}
    )
    wrong.save(tmp_path / "wrong.h5")
    with pytest.raises(physics.InputError, match="signals of 2 frequencies for its 5 tokens, got 7"):
        open_run(tmp_path / "wrong.h5")


def test_circles_are_drawn_with_and_without_a_fit(particles):
    run = open_run(particles)
    film = films.circles_film(run, run.plane(2), run.survivors(), run.limit(), run.fit())
    assert film.frames == 41
    assert export.png(film, 0, dpi=40) != export.png(film, 20, dpi=40)
    plain = films.circles_film(run, run.seen("axes 1, 2"), [], run.limit())
    assert export.png(plain, dpi=40).startswith(b"\x89PNG")


# -- the view, without a browser ----------------------------------------------------------------------------


@pytest.fixture
def make_session():
    document = pytest.importorskip("bokeh.document").Document()
    from grokphys.explorer.session import Session
    from grokphys.explorer.uploads import Uploads
    from grokphys.explorer.views.circles import CirclesView

    # There is no event loop here: what a worker hands over is done in the worker.
    document.add_next_tick_callback = lambda function: function()

    def make(*files, uploads=None):
        if uploads is not None:
            uploads.mkdir()
        session = Session(document, (CirclesView,), files, uploads and Uploads(uploads))
        session.bridge.command = [0, "ready", None]
        return session

    return make


def upload(session, path, name):
    """Upload a file as the server does, and return its key."""
    content = path.read_bytes()
    place = session._uploads.begin(len(content))
    place.write_bytes(content)
    return session._uploads.keep(place, name)


def press(button):
    from bokeh.events import ButtonClick

    button._trigger_event(ButtonClick(button))


def said(session):
    """State as the page says it."""
    return dict(session.bridge.status)


def wait_for(condition):
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("nothing came within 30 seconds")


def test_the_view_begins_with_the_given_files_or_the_real_run(make_session, particles, capsys):
    status = said(make_session())
    assert (status["file"], status["survivors"]) == (REAL.name, "7 8 11 13 25")
    assert status["signal 11"] == f"{open_run(REAL).signals[1][0, 10]:.4g}"
    session = make_session(particles, REAL)
    assert said(session)["run"] == "0 of 0–2"
    session.view._index.value = 2
    assert said(session)["run"] == "2 of 0–2"
    session.view._index.value = 3
    assert session.bridge.message[1:] == ["error", "run must be below 3, got 3"]
    assert said(session)["run"] == "2 of 0–2"
    assert session.view._index.visible
    session.view._file.list.value = str(REAL)
    assert said(session)["file"] == REAL.name
    assert ("run" in said(session), session.view._index.visible) == (False, False), "it has no other"
    session.view._last.value, session.view._file.list.value = 500, str(particles)
    assert capsys.readouterr().err == "", "the frequency that was looked at is none of these 7 tokens"


def test_a_run_that_is_being_recorded_is_followed(make_session, tmp_path):
    whole = physics.simulate(physics.ParticleSystem(7), steps=60, seed=5)
    layout = Layout(1, 7, 2, "float64", 61)
    with FileRecorder(tmp_path / "run.h5", layout, whole.parameters) as recorder:
        for frame in range(20):
            recorder.append(int(whole.steps[frame]), float(whole.times[frame]), whole.frame(frame))
        recorder.flush()
        session = make_session(tmp_path / "run.h5.partial")
        view = session.view
        assert (said(session)["step"], said(session)["recording"]) == ("19", "continues")
        assert (view._watching is not None, session.bridge.playing, view.waits) == (True, 1, True)
        assert view.verdict().startswith("So far, ")
        assert "Press Play" not in session.bridge.watch
        session.bridge.command = [2, "pause", None]
        view._go(5)
        for frame in range(20, 40):
            recorder.append(int(whole.steps[frame]), float(whole.times[frame]), whole.frame(frame))
        recorder.flush()
        view._follow()
        wait_for(lambda: view._time.end == 39)
        assert (view._frame, view._end) == (5, 39), "who looks back is not taken away"
        view._go(39)
        recorder.append(int(whole.steps[40]), float(whole.times[40]), whole.frame(40))
        recorder.flush()
        view._follow()
        wait_for(lambda: view._time.end == 40)
        assert view._frame == 39, "who has paused is not taken away"
        view._go(40)
        session.bridge.command = [3, "play", None]
        assert view._frame == 40, "play goes on with what comes"
        for frame in range(41, 61):
            recorder.append(int(whole.steps[frame]), float(whole.times[frame]), whole.frame(frame))
    view._follow()
    wait_for(lambda: session.bridge.playing == 0)  # it is complete
    assert (view._frame, view._end) == (60, 60), "who looks at the end goes on with it"
    assert view._watching is None
    np.testing.assert_array_equal(view._run.embeddings, whole.positions[0])
    session.bridge.command = [4, "python", None]
    assert "recording" not in view.status()
    assert view._file.list.value == view.state()["file"] == str(tmp_path / "run.h5"), (
        "it has its own name now"
    )
    for name in ("run.h5", "run.h5.partial"):  # a link of now, and one of then
        view.restore({"file": str(tmp_path / name), "time": 60})
        assert (view._path, view._frame) == (tmp_path / "run.h5", 60)
    assert files.finished(tmp_path / "run.h5.partial") == tmp_path / "run.h5"
    assert files.finished(tmp_path / "other.h5.partial") == tmp_path / "other.h5.partial"


def test_uploads_are_opened_and_files_that_were_not_given_are_refused(make_session, particles, tmp_path):
    session = make_session(uploads=tmp_path / "private")
    before = said(session)["file"]
    for path in (particles, "/etc/passwd", str(particles) + "/../particles.h5"):
        session.view._file.list.value = str(path)
        assert session.bridge.message[1:] == [
            "error",
            f"file must be one that was given or uploaded, got {str(path)!r}",
        ]
        assert said(session)["file"] == before == REAL.name
    for name in ("particles.h5", "particles (2).h5"):  # one name twice
        session.bridge.command = [len(name), "uploaded", upload(session, particles, "particles.h5")]
        assert said(session)["file"] == name
        assert name in [word for _, word in session.view._file.list.options]
        session.bridge.command = [2 * len(name), "python", None]
        assert f"physics.Trajectory.open({name!r})" in session.bridge.script[1]
    session.view._file.list.value = str(REAL)
    assert said(session)["survivors"] == "7 8 11 13 25"

    physics.Trajectory(np.zeros((1, 2, 2, 1)), range(2)).save(tmp_path / "two.h5")
    session.bridge.command = [100, "uploaded", upload(session, tmp_path / "two.h5", "two.h5")]
    assert session.bridge.message[2] == "two.h5 must hold at least 3 tokens to have circles, got 2"
    assert session.view._file.list.value == str(REAL), "what cannot be opened is not said to be open"
    session.bridge.command = [101, "uploaded", "0" * 32]
    assert session.bridge.message[2].startswith(
        "upload must be the key of a file that has not been opened yet"
    )
    assert len(list((tmp_path / "private").iterdir())) == 3
    session.close()
    assert list((tmp_path / "private").iterdir()) == []


def test_two_given_files_of_one_name_are_told_apart_by_their_folders(make_session, particles, tmp_path):
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "particles.h5"
    other.write_bytes(particles.read_bytes())
    session = make_session(particles, other, REAL)
    assert [word for _, word in session.view._file.list.options] == [str(particles), str(other), REAL.name]


def test_scrubbing_moves_tokens_that_were_projected_before(make_session):
    session = make_session()
    view = session.view
    view._plane.value = "frequency 7"
    view._time.value = 50
    run = open_run(REAL)
    expected = run.plane(7).points[50]
    np.testing.assert_array_equal(view._tokens.points(), expected)
    assert said(session)["step"] == str(run.steps[50])
    assert "signal 7" in said(session)
    view._plane.value = "components 1, 2"
    np.testing.assert_array_equal(view._tokens.points(), run.seen("components 1, 2").points[50])
    assert not any(name.startswith("signal") for name in said(session))
    assert view.film().shown == 50
    view.advance(1000)
    assert (view.finished, view.pace) == (True, 0.1), "80 frames take eight seconds"
    session.bridge.command = [1, "reset", None]
    assert said(session)["step"] == "0"


def test_survivors_follow_the_rule(make_session):
    session = make_session()
    session.view._rule.value = "an absolute signal"
    assert session.view._limit.value == 10
    run = open_run(REAL)
    assert said(session)["survivors"] == " ".join(map(str, run.survivors(threshold=10.0)))
    session.view._limit.value = 1000.0
    assert said(session)["survivors"] == "none"
    session.view._limit.value = -1.0
    assert "threshold must be" in session.bridge.message[2]


def test_what_is_copied_is_what_is_shown_and_fitted(make_session):
    session = make_session()
    view = session.view
    view._recipe.value, view._last.value = "least squares", 200
    press(view._fit)
    wait_for(lambda: "rollout R²" in said(session))
    view._time.value = 33
    for n, plane in enumerate(("frequency 8", "components 3, 4", "axes 1, 3")):
        view._plane.value = plane
        session.bridge.command = [n + 1, "python", None]
        found = {}
        exec(session.bridge.script[1], found)
        np.testing.assert_array_equal(view._tokens.points(), found["points"])
        np.testing.assert_array_equal(view._fitted.A, found["law"].A)
        np.testing.assert_array_equal(view._fitted.rollout, found["rollout"])
    view._last.value = 1
    press(view._fit)
    wait_for(lambda: session.bridge.message[1] == "error")
    assert "must hold at least 3 frames" in session.bridge.message[2]
    assert view._fitted is not None


def test_the_fit_of_uneven_steps_is_copied(particles, tmp_path):
    whole = physics.load(particles)
    kept = [0, 1, 2, 4, 8, 16, 32, 40]
    physics.Trajectory(whole.positions[:, kept], kept).save(tmp_path / "uneven.h5")
    run = open_run(tmp_path / "uneven.h5", 1)
    fitted, found = run.fit(), {}
    exec(run.python("axes 1, 2", 3, fitted), found)
    np.testing.assert_array_equal(found["rollout"], fitted.rollout)
    np.testing.assert_array_equal(found["E"], whole.positions[1, 4])
