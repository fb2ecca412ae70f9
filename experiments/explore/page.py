"""A page of the explorer: its template, and a session for whoever opens it."""

from collections.abc import Callable, Sequence
from importlib.resources import files as resources
from pathlib import Path
from typing import Any

import panel

from experiments.explore.session import SPEEDS, Session
from experiments.explore.view import View

CONNECT = "window.grokphys.connect(bridge)"
LOST = "window.grokphys.lost()"


def page(kinds: Sequence[type[View]], paths: Sequence[Path]) -> Callable[[], Any]:
    """Return the function that makes the page of a new tab."""
    template = _read("page.html")
    fixed = {
        "page_css": _read("page.css"),
        "page_js": _read("page.js"),
        "views": [(kind.slug, kind.name) for kind in kinds],
        "speeds": SPEEDS,
    }

    def open_page() -> Any:
        from bokeh.models import CustomJS

        document = panel.state.curdoc
        assert document is not None
        session = Session(document, kinds, paths)
        panel.state.on_session_destroyed(lambda _context: session.close())
        shell = panel.Template(template)
        for name, value in fixed.items():
            shell.add_variable(name, value)
        root = panel.Column(sizing_mode="stretch_width", margin=0)
        shell.add_panel("stage", root, tags=[session.bridge])  # it spells out what it is given: nothing yet
        root.append(session.stage)
        document.js_on_event("document_ready", CustomJS(args={"bridge": session.bridge}, code=CONNECT))
        document.js_on_event("connection_lost", CustomJS(code=LOST))
        return shell

    return open_page


def _read(name: str) -> str:
    return resources("experiments.explore").joinpath(name).read_text(encoding="utf-8")
