"""Points that the pointer moves, and of which the session hears while they move."""

from collections.abc import Callable
from typing import Any

from bokeh.events import PanEnd, PanStart
from bokeh.models import CustomJS, PointDrawTool

from grokphys.explorer.plots.plane import TokenPlot
from grokphys.explorer.session import Session


class Drag:
    """Lets the pointer move the tokens of a plot; play pauses while one is held.

    Parameters
    ----------
    session : Session
        Session whose play pauses.
    plot : TokenPlot
        Plot of the tokens.
    follow, drop : callable
        Functions without arguments, called when a held token has moved, and when it is let go.

    Attributes
    ----------
    on : bool
        Whether a token is held.
    """

    def __init__(
        self, session: Session, plot: TokenPlot, follow: Callable[[], Any], drop: Callable[[], Any]
    ) -> None:
        self.on, self._session, self._react = False, session, session.reaction
        self._follow, self._drop = follow, drop
        figure, source = plot.figure, plot.tokens
        tool = PointDrawTool(renderers=[plot.disc], add=False)
        figure.add_tools(tool)
        figure.toolbar.active_drag = tool
        # Bokeh itself sends the points only when they are let go.
        for event, call in ((PanStart, "held(source, true)"), (PanEnd, "held(source, false)")):
            figure.js_on_event(event, CustomJS(args={"source": source}, code=f"window.grokphys.{call}"))
        source.js_on_change("change", CustomJS(code="window.grokphys.dragged(cb_obj)"))
        figure.on_event(PanStart, self._react(lambda _event: self.hold(True)))
        figure.on_event(PanEnd, self._react(lambda _event: self.end()))
        source.on_change("data", self._moved)

    def hold(self, held: bool) -> None:
        """Take the points if `held` is True, and otherwise release them, wherever they are."""
        self.on = held
        self._session.hold(held)

    def end(self) -> None:
        """Release the points where they are now."""
        self._follow()
        self.hold(False)  # before `drop`, whose changes are no drag
        self._drop()

    def _moved(self, _name: str, _old: Any, _new: Any) -> None:
        if self.on:  # otherwise it is the view that moves them
            self._react(self._follow)()
