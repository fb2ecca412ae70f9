"""The base class of views of frames that exist already, such as those of a file."""

from typing import TYPE_CHECKING, Any

from grokphys.explorer.views.view import View

if TYPE_CHECKING:
    from grokphys.explorer.session import Session


class FrameView(View):
    """A view of frames that exist already; play shows one after the other, and a slider chooses one.

    Parameters
    ----------
    session : Session
        Session of the page.
    slider : Bokeh model
        Slider of the number of the frame.
    """

    def __init__(self, session: "Session", slider: Any) -> None:
        super().__init__(session)
        self._time = slider
        self._frame = self._end = 0
        self.connect(self._go, slider)

    def advance(self, steps: int) -> None:
        """Move forward by `steps` frames, at most to the last one."""
        self._frame = min(self._frame + steps, self._end)

    @property
    def begun(self) -> bool:
        """Whether a later frame than the first is shown."""
        return self._frame > 0

    @property
    def finished(self) -> bool:
        """Whether the last frame is shown."""
        return self._frame == self._end

    def reset(self) -> None:
        """Return to the first frame."""
        self._frame = 0

    def _go(self, frame: int) -> None:
        if frame != self._frame:
            self._frame = min(frame, self._end)
            self.show()
