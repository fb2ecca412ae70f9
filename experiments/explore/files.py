"""Trajectory files that a page is given: by the command line, or uploaded from the browser."""

import base64
import tempfile
from collections.abc import Callable
from pathlib import Path

from bokeh.models import FileInput

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
    panel : model
    """

    def __init__(self, session: Session, chosen: Callable[[], None]) -> None:
        self.trajectory: Trajectory | None = None
        self._name = ""
        names = {"choose …": ""} | {path.name: str(path) for path in session.files}
        self._given = theme.chooser("file", names, visible=len(names) > 1)
        self._upload = theme.control(FileInput, "upload", accept=".h5,.hdf5,.partial")
        self._run = theme.number("run", 0, 0)
        self._frame = theme.number("frame (-1: the last)", 0, -1)
        self.panel = theme.column(self._given, self._upload, self._run, self._frame, visible=False)

        def given(_attribute: str, _old: str, new: str) -> None:
            if new:
                self.trajectory, self._name = Trajectory.open(new), new
                chosen()

        def upload() -> None:
            if self._upload.value:
                self._name = str(self._upload.filename)
                self.trajectory = uploaded(self._name, base64.b64decode(self._upload.value))
                chosen()

        def other(_attribute: str, _old: int, _new: int) -> None:
            if self.trajectory is not None:
                chosen()

        self._given.on_change("value", session.reaction(given))
        self._upload.on_change("value", lambda _name, _old, _new: session.soon(upload))
        for widget in (self._run, self._frame):
            widget.on_change("value", session.reaction(other))

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
