"""Tokens that the pointer drags, whose positions reach the session while they move."""

from collections.abc import Callable
from typing import Any

from bokeh.events import PanEnd, PanStart
from bokeh.models import CustomJS, PointDrawTool

from grokphys.explorer.plots.plane import TokenPlot
from grokphys.explorer.session import Session


class Drag:
    """The dragging of a plot's tokens by the pointer, while which play pauses.

    Parameters
    ----------
    session : Session
        Session whose play pauses.
    plot : TokenPlot
        Plot of the tokens.
    follow, drop : callable
        Functions without arguments. `follow` is called whenever the held token has moved, and both, `follow`
        first, when it is let go.

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
        # By itself, Bokeh sends the points only when they are let go.
        for event, call in ((PanStart, "held(source, true)"), (PanEnd, "held(source, false)")):
            figure.js_on_event(event, CustomJS(args={"source": source}, code=f"window.grokphys.{call}"))
        source.js_on_change("change", CustomJS(code="window.grokphys.dragged(cb_obj)"))
        figure.on_event(PanStart, self._react(lambda _event: self.hold(True)))
        figure.on_event(PanEnd, self._react(lambda _event: self.end()))
        source.on_change("data", self._moved)

    def hold(self, held: bool) -> None:
        """Note whether a token is held, and let play pause meanwhile."""
        self.on = held
        self._session.hold(held)

    def end(self) -> None:
        """Release the token where it is, with calls of `follow` and then of `drop`."""
        self._follow()
        self.hold(False)  # before `drop`, which moves points without the pointer
        self._drop()

    def _moved(self, _name: str, _old: Any, _new: Any) -> None:
        if self.on:  # otherwise the view has moved the points
            self._react(self._follow)()
