"""Controls that choose among the trajectory files that a page may open."""

from collections.abc import Callable, Mapping
from pathlib import Path

from bokeh.models import Button, CustomJS

from grokphys.explorer import theme
from grokphys.explorer.runs import starts
from grokphys.explorer.uploads import named
from grokphys.explorer.views.view import View
from physics.errors import InputError
from physics.trajectory import Trajectory

UPLOAD = "window.grokphys.upload()"


class FileList:
    """A list of the files that the page may open, and a button to upload another one.

    Parameters
    ----------
    view : View
        View of the list. A file that is uploaded while the view is visible is chosen at once.
    chosen : callable
        Function of the path and the name of a file, which is called when the user chooses the file. In its
        errors, the name replaces the path.
    others : mapping of Path to str, optional
        Names by path of files in addition to those of the session.
    prompt : str, default ""
        Entry of the list before a file is chosen. Without it, the list shows the first file from the start.

    Attributes
    ----------
    list : bokeh.models.Select
        The list.
    panel : list of Bokeh models
        The list and the button, for the controls of the view.
    """

    def __init__(
        self,
        view: View,
        chosen: Callable[[Path, str], None],
        others: Mapping[Path, str] | None = None,
        prompt: str = "",
    ) -> None:
        self._view, self._chosen, self._others, self._prompt = view, chosen, dict(others or {}), prompt
        self.list = theme.chooser("file", self._options())
        self._upload = theme.control(Button, "upload a file …")
        self._upload.js_on_event("button_click", CustomJS(code=UPLOAD))
        self.panel = [self.list, self._upload]
        self.list.visible = bool(self.files)
        view.connect(self._choose, self.list)
        view.session.on_upload.append(self._add)

    @property
    def files(self) -> dict[Path, str]:
        """Names by path of the files that may be chosen; those of the session come first."""
        return {**self._view.session.files, **self._others}

    def show(self, path: Path) -> None:
        """Let the list show the file `path`, without calling the function `chosen`."""
        with self._view.filling():
            self.list.value = str(path)

    def complete(self, path: Path) -> Path:
        """Return the path of a file whose recording is complete, and let list and session use this path."""
        now, session = finished(path), self._view.session
        session.files = {now if one == path else one: name for one, name in session.files.items()}
        session.files |= {now: str(now)} if now != path else {}
        with self._view.filling():
            self.list.update(options=theme.choices(self._options()), value=str(now))
        return now

    def _options(self) -> dict[str, str]:
        listed = {label: str(path) for path, label in labels(self.files).items()}
        return {self._prompt: ""} | listed if self._prompt else listed

    def _choose(self, value: str) -> None:
        if not value:
            return
        found = next((item for item in self.files.items() if str(item[0]) == value), None)
        if found is None:
            raise InputError(f"file must be one that was given or uploaded, got {value!r}")
        with named(*found):
            self._chosen(*found)

    def _add(self, path: Path) -> None:
        """Add an uploaded file to the list, and choose it if the view is visible."""
        with self._view.filling():
            self.list.update(options=theme.choices(self._options()), visible=True)
        if self._view.session.view is self._view:
            self.list.value = str(path)


class FileChooser:
    """Controls that choose a file, one of its runs, and a frame of the run.

    Parameters
    ----------
    view : View
        View of the controls.
    chosen : callable
        Function without arguments, called when a file, or another run or frame of it, is chosen.

    Attributes
    ----------
    trajectory : Trajectory or None
        The trajectory of the chosen file; None before a file is chosen.
    panel : Bokeh model
        The controls.
    """

    def __init__(self, view: View, chosen: Callable[[], None]) -> None:
        self.trajectory: Trajectory | None = None
        self._path, self._name = Path(), ""

        def opened(path: Path, name: str) -> None:
            self.trajectory, self._path, self._name = found, path, name = Trajectory.open(path), path, name
            with view.filling():
                for field, count in ((self._run, found.runs), (self._frame, found.frames)):
                    field.update(high=count - 1, value=min(field.value, count - 1))
            chosen()

        def other(_new: int) -> None:
            if self.trajectory is not None:
                chosen()

        self.files = FileList(view, opened, prompt="choose …")
        self._run = theme.number("run", 0, 0, 0)
        self._frame = theme.number("frame (-1: last)", 0, -1, 0)
        self.panel = theme.column(*self.files.panel, self._run, self._frame, visible=False)
        view.connect(other, self._run, self._frame)

    def start(self) -> starts.Start:
        """Return the positions of the chosen frame as initial positions, with Python code that reads them.

        Raises
        ------
        InputError
            If no file is chosen, the run or the frame does not exist, or the frame holds NaN or infinity.
        """
        if self.trajectory is None:
            raise InputError("file must be a trajectory file to start from, got none")
        run, frame = self._run.value, self._frame.value
        with named(self._path, self._name):
            E = self.trajectory.run(run).frame(frame)[0]
        if not (E == E).all():
            raise InputError(f"frame {frame} of run {run} in {self._name} holds NaN; choose another")
        line = f"E = physics.Trajectory.open({self._name!r}).run({run}).frame({frame})[0].astype(float)"
        return starts.given(E, (line,))


def finished(path: Path) -> Path:
    """Return the path without ".partial" if only that file exists, because a recording is complete."""
    complete = path.with_suffix("")
    return complete if path.suffix == ".partial" and not path.exists() and complete.exists() else path


def labels(files: Mapping[Path, str]) -> dict[Path, str]:
    """Return labels by path for files with names by path.

    A label is the last part of the name, or the whole name if several names have the same last part.
    """
    short = {path: Path(name).name for path, name in files.items()}
    count = list(short.values()).count
    return {path: label if count(label) == 1 else files[path] for path, label in short.items()}
