"""The trajectory files that a page may open, and the controls that choose among them."""

from collections.abc import Mapping
from pathlib import Path

from bokeh.models import Button, CustomJS

from grokphys.explorer import theme
from grokphys.explorer.session import Session
from grokphys.options import sentence
from physics.errors import FileFormatError, InputError
from physics.trajectory import Trajectory, load


def upload() -> Button:
    """Return a button that uploads a file."""
    button: Button = theme.control(Button, "upload a file …")
    button.js_on_event("button_click", CustomJS(code="window.grokphys.upload()"))
    return button


def finished(path: str) -> str:
    """Return the path without ".partial" if only that file exists, because a recording is complete."""
    complete = path.removesuffix(".partial")
    return complete if not Path(path).exists() and Path(complete).exists() else path


def opened(session: Session, path: str) -> tuple[str, Trajectory]:
    """Return the name for the user and the trajectory of a file that the page may open.

    Raises
    ------
    FileFormatError
        If the file cannot be read; the error calls it by its name.
    """
    name = session.files.get(path, path)
    try:
        return name, load(finished(path))
    except (FileFormatError, InputError, OSError) as error:
        raise FileFormatError(sentence(error).replace(path, name)) from None


def labels(files: Mapping[str, str]) -> dict[str, str]:
    """Return a label for each path: the last part of its name, or the whole name if others end alike."""
    short = {path: Path(name).name for path, name in files.items()}
    count = list(short.values()).count
    return {path: label if count(label) == 1 else files[path] for path, label in short.items()}
