"""Trajectory files that a page is given: by the command line, or uploaded from the browser."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import panel

from experiments.explore import starts, theme
from experiments.explore.session import Session
from physics.errors import FileFormatError, InputError
from physics.trajectory import Trajectory, load


def uploaded(name: str, content: bytes) -> Trajectory:
    """Read an uploaded file into memory.

    Raises
    ------
    FileFormatError
        If it is not a trajectory file; the message names the file as its owner does.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "upload.h5"
        path.write_bytes(content)
        try:
            return load(path)
        except (FileFormatError, OSError) as error:
            raise FileFormatError(str(error).replace(str(path), name)) from None


class FileChooser:
    """Controls that choose a file, a run and a frame of it.

    Attributes
    ----------
    trajectory : Trajectory or None
        The chosen one.
    panel : panel object
    """

    def __init__(self, session: Session, chosen: Callable[[], None]) -> None:
        self.trajectory: Trajectory | None = None
        self._name = ""
        names = {"choose …": None} | {path.name: path for path in session.files}
        self._given = theme.control(panel.widgets.Select, "file", options=names, visible=len(names) > 1)
        self._upload = theme.control(panel.widgets.FileInput, "upload", accept=".h5,.hdf5,.partial")
        self._run = theme.control(panel.widgets.IntInput, "run", start=0, value=0)
        self._frame = theme.control(panel.widgets.IntInput, "frame (-1: the last)", start=-1, value=0)
        self.panel = panel.Column(
            self._given, self._upload, self._run, self._frame, visible=False, margin=0,
            sizing_mode="stretch_width",
        )  # fmt: skip

        def given(event: Any) -> None:
            if event.new is not None:
                self.trajectory, self._name = Trajectory.open(event.new), str(event.new)
                chosen()

        def upload(event: Any) -> None:
            if event.new:
                self._name = str(self._upload.filename)
                self.trajectory = uploaded(self._name, event.new)
                chosen()

        def other(_event: Any) -> None:
            if self.trajectory is not None:
                chosen()

        self._given.param.watch(session.reaction(given), "value")
        self._upload.param.watch(session.reaction(upload), "value")
        for widget in (self._run, self._frame):
            widget.param.watch(session.reaction(other), "value")

    def start(self) -> starts.Start:
        """Return the chosen frame as a start.

        Raises
        ------
        InputError
            If there is no such run or frame.
        """
        if self.trajectory is None:
            raise InputError("a file must be chosen to start from")
        run, frame = self._run.value, self._frame.value
        E = self.trajectory.run(run).frame(frame)[0]
        if not (E == E).all():
            raise InputError(f"frame {frame} of run {run} in {self._name} holds NaN; choose another")
        line = f"E = physics.Trajectory.open({self._name!r}).run({run}).frame({frame})[0].astype(float)"
        return starts.given(E, (line,))
