"""The page of the explorer: its template, and a new session for each tab."""

import re
from collections.abc import Callable, Sequence
from importlib.resources import files as resources
from pathlib import Path

from bokeh.core.templates import get_env
from bokeh.core.validation import silence
from bokeh.core.validation.warnings import EMPTY_LAYOUT
from bokeh.document import Document
from bokeh.models import CustomJS

from grokphys.explorer.bridge import SPEEDS
from grokphys.explorer.files import finished
from grokphys.explorer.guard import guard
from grokphys.explorer.session import WORK, Session
from grokphys.explorer.uploads import LARGEST_UPLOAD, Uploads
from grokphys.explorer.views.view import View
from grokphys.output import printable

CONNECT = "window.grokphys.connect(bridge)"
LOST = "window.grokphys.lost()"
HEAD_START = 30
"""Milliseconds for the empty page to be sent; its first view is made while the browser reads scripts."""
AFTERWARDS = 250
"""Milliseconds for the first view to be sent; its kernels are loaded while the browser draws it."""


def page(kinds: Sequence[type[View]], paths: Sequence[Path], uploads: Uploads) -> Callable[[Document], None]:
    """Return the function that fills the Bokeh document of a new tab.

    Parameters
    ----------
    kinds : sequence of type of View
        Views in the order of their tabs.
    paths : sequence of Path
        Trajectory files of the command line.
    uploads : Uploads
        Store of the files that pages upload.
    """
    silence(EMPTY_LAYOUT)  # the stage of a new page is empty
    template = get_env().from_string(_read("page.html"))
    fixed = {
        "page_css": _read("page.css"),
        "page_js": _read("page.js") + _read("marks.js"),
        "views": kinds,
        "terms": terms(),
        "about": dict(
            re.findall(r"^\[(\w+)\]\n(.*?)(?=\n\[|\Z)", _read("about.txt"), re.DOTALL | re.MULTILINE)
        ),
        "speeds": SPEEDS,
        "opening": f"Opening {printable(paths[0].name)} …" if paths else "Loading the first figures …",
        "plays": 0 if paths else 1,
        "largest_upload": LARGEST_UPLOAD,
    }

    def open_page(document: Document) -> None:
        session = Session(document, kinds, [finished(path) for path in paths], uploads, begin=False)
        guard(document, session.fail)
        document.on_session_destroyed(lambda _context: session.close())

        def begin() -> None:
            session.begin()
            if not session.closed:
                document.add_timeout_callback(lambda: WORK.submit(session.view.warm), AFTERWARDS)

        document.template = template
        document.template_variables.update(fixed)
        document.config.update(reconnect_session=False, notify_connection_status=False)  # page.js does this
        session.stage.update(name="stage", tags=[session.bridge])
        document.add_root(session.stage)
        document.add_timeout_callback(begin, HEAD_START)
        document.js_on_event("document_ready", CustomJS(args={"bridge": session.bridge}, code=CONNECT))
        document.js_on_event("connection_lost", CustomJS(code=LOST))

    return open_page


def terms() -> dict[str, list[str]]:
    """Return, for each term on the page, a list of its explanation and of a section of a paper or ""."""
    rows = [line.split(" | ") for line in _read("terms.txt").splitlines()]
    return {name: [sentence, source[0].rstrip(" |") if source else ""] for name, sentence, *source in rows}


def _read(name: str) -> str:
    return resources("grokphys.explorer").joinpath("assets", name).read_text(encoding="utf-8")
