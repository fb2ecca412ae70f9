"""The page of the explorer: its template, the bridge to its script, and a new session for each tab."""

import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bokeh.core.properties import Any as AnyValue
from bokeh.core.properties import Int, List, String
from bokeh.core.templates import get_env
from bokeh.core.validation import silence
from bokeh.core.validation.warnings import EMPTY_LAYOUT
from bokeh.document import Document
from bokeh.model import DataModel
from bokeh.models import CustomJS

from grokphys.explorer.theme import asset, sections
from grokphys.options import sentence
from grokphys.output import printable
from physics.errors import FileFormatError, InputError, SimulationError

SPEEDS = (1, 2, 3, 5, 8, 12, 20, 35, 60, 100)
"""Numbers of steps per frame that the page offers."""
EXPECTED = (InputError, FileFormatError, OSError, SimulationError)
"""Exceptions whose sentences are shown; all other exceptions are shown as errors of the program."""


class Bridge(DataModel):
    """A model of Bokeh through which the script of a page and its session communicate.

    The `help` of each property says who sets it and what it holds. Lists that carry a command begin with a
    number that increases, so that a repeated command is a change.
    """

    command: Any = List(AnyValue, default=[0, "", None], help="From the page: [number, name, value].")
    shown: Any = Int(default=0, help="From the page: the last frame that it has drawn.")
    frame: Any = Int(default=0, help="From the session: the last frame that was sent.")
    view: Any = String(default="", help="From the session: the view on the stage.")
    playing: Any = Int(default=0, help="From the session: 1 while the view plays, otherwise 0.")
    speed: Any = Int(default=1, help="From the session: steps per frame.")
    status: Any = List(AnyValue, default=[], help="From the session: [name, text] of each measure.")
    verdict: Any = String(default="", help="From the session: what is on screen, in a sentence.")
    watch: Any = String(default="", help="From the session: what to watch for.")
    preset: Any = String(default="", help="From the session: the preset that the state fits, or none.")
    link: Any = String(default="", help="From the session: the state, as the fragment of an address.")
    lacks: Any = String(default="", help="From the session: what the link leaves out, in a sentence.")
    message: Any = List(AnyValue, default=[0, "", ""], help="From the session: [number, kind, sentence].")
    script: Any = List(AnyValue, default=[0, ""], help="From the session: [number, Python text].")
    download: Any = List(
        AnyValue, default=[0, "", "", None], help="From the session: [number, name, type, content]."
    )

    def send(self, name: str, *values: Any) -> None:
        """Send the list property `name` with another number and `values` to the page."""
        setattr(self, name, [getattr(self, name)[0] + 1, *values])


def explained(error: Exception) -> str:
    """Return a sentence about an error for the page; print the traceback of one that is not `EXPECTED`."""
    if isinstance(error, EXPECTED):
        return sentence(error)
    if sys.stderr is not None:  # None where it is closed, as by daemons
        traceback.print_exception(error, file=sys.stderr)
    return f"This is an error in GrokPhys, not in your input: {type(error).__name__}: {error}"


def page(views: Sequence[type[Any]], paths: Sequence[Path], folder: Path) -> Callable[[Document], None]:
    """Return the function that fills the Bokeh document of a new tab.

    Parameters
    ----------
    views : sequence of type of View
        Views in the order of their tabs.
    paths : sequence of Path
        Trajectory files of the command line.
    folder : Path
        Private folder of the files that pages upload.
    """
    from grokphys.explorer.session import Session

    silence(EMPTY_LAYOUT)  # lists of cards may be empty
    template = get_env().from_string(asset("page.html"))
    fixed = {
        "page_css": asset("page.css"),
        "page_js": asset("page.js") + asset("marks.js"),
        "views": views,
        "terms": terms(),
        "about": sections("about.txt", r"\[(\w+)\]"),
        "speeds": SPEEDS,
        "opening": f"Opening {printable(paths[0].name)} …" if paths else "Loading the first figures …",
        "plays": 0 if paths else 1,
    }

    def open_page(document: Document) -> None:
        session = Session(document, views, paths, folder)
        document.on_session_destroyed(lambda _context: session.close())
        document.template = template
        document.template_variables.update(fixed)
        document.config.update(reconnect_session=False, notify_connection_status=False)  # page.js does this
        session.stage.update(name="stage", tags=[session.bridge])
        document.add_root(session.stage)
        connect = CustomJS(args={"bridge": session.bridge}, code="window.grokphys.connect(bridge)")
        document.js_on_event("document_ready", connect)
        document.js_on_event("connection_lost", CustomJS(code="window.grokphys.lost()"))

    return open_page


def terms() -> dict[str, list[str]]:
    """Return, for each term on the page, a list of its explanation and of a section of a paper or ""."""
    rows = [line.split(" | ") for line in asset("terms.txt").splitlines()]
    return {name: [words, source[0].rstrip(" |") if source else ""] for name, words, *source in rows}
