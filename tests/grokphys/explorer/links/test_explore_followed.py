"""Runs that are followed while they are recorded, and whose process or file goes away."""

import contextlib
import shutil

import pytest

import physics
from physics.trajectory.header import Layout
from physics.trajectory.locks import LockedFile, claimed
from physics.trajectory.recording import FileRecorder

pytest.importorskip("bokeh", reason="bokeh is not installed")

from bokeh.document import Document

from grokphys.explorer.session import Session
from grokphys.explorer.views.circles import CirclesView


def followed_in(path):
    """Return a session that follows a file."""
    session = Session(Document(), [CirclesView], [path])
    session.bridge.command = [0, "ready", None]
    return session


def said(session):
    return dict(session.bridge.status)


def test_a_run_whose_process_has_ended_is_said_to_be_stopped(tmp_path):
    whole = physics.simulate(physics.ParticleSystem(7), steps=3, seed=5)
    left = tmp_path / "left.h5.partial"
    with FileRecorder(tmp_path / "run.h5", Layout(1, 7, 2, "float64", 4), whole.parameters) as recorder:
        for frame in range(2):
            recorder.append(int(whole.steps[frame]), float(whole.times[frame]), whole.frame(frame))
        recorder.flush()
        shutil.copy(tmp_path / "run.h5.partial", left)
    session = followed_in(left)
    assert session.bridge.playing == 1
    with contextlib.closing(LockedFile(left)):
        session.reaction(session.view._follow)()
        assert (said(session)["recording"], session.bridge.playing) == ("continues", 1)
    session.reaction(session.view._follow)()
    assert (said(session)["recording"], session.bridge.playing) == ("stopped", 0)
    assert not claimed(left)


def test_a_followed_file_that_disappears_is_said_once(tmp_path):
    whole = physics.simulate(physics.ParticleSystem(7), steps=3, seed=5)
    gone = tmp_path / "gone.h5.partial"
    with FileRecorder(tmp_path / "run.h5", Layout(1, 7, 2, "float64", 4), whole.parameters) as recorder:
        for frame in range(4):
            recorder.append(int(whole.steps[frame]), float(whole.times[frame]), whole.frame(frame))
        recorder.flush()
        shutil.copy(tmp_path / "run.h5.partial", gone)
    session = followed_in(gone)
    view = session.view
    gone.unlink()
    session.reaction(view._follow)()
    assert session.bridge.message[1] == "error"
    assert f"{gone} is no longer followed: " in session.bridge.message[2]
    assert view._watching is None
    assert said(session)["step"] == "3", "what was read stays"
