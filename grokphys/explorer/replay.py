"""Replays the run of a link in short pieces, so that the page and others of its server have their turn."""

from collections.abc import Iterator
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grokphys.explorer.session import Session

PIECE = 0.3
"""Seconds that a piece of a replay takes at least; it ends with the next frame."""
PAUSE = 50
"""Milliseconds between two pieces, in which commands of the page arrive."""


class Replay:
    """The replay of one page, which ends early if the page asks for something else or is closed.

    Parameters
    ----------
    session : Session
        Session of the page.
    """

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._frames: Iterator[int] | None = None

    def start(self, steps: int) -> None:
        """Let the visible view repeat `steps` steps at the speed of the page, from its start."""
        self._frames = self._session.view.replay(steps, self._session.bridge.speed)
        self._schedule(self._frames, steps)

    def stop(self) -> None:
        """End the replay, if there is one, with the frame that it has reached."""
        if self._frames is not None:
            self._frames = None
            self._session.say("")

    def _schedule(self, frames: Iterator[int], steps: int) -> None:
        """Schedule the next piece of a replay, for which Bokeh locks the document."""

        async def piece() -> None:
            if frames is not self._frames or self._session.closed:
                return
            taken = await self._session.move(lambda: some(frames))
            if frames is not self._frames:  # an error has ended it, and is on the page
                return
            if taken is None:
                self.stop()
                return
            self._session.say(f"Repeating the run of this link: step {taken} of {steps} …")
            self._schedule(frames, steps)

        self._session.document.add_timeout_callback(piece, PAUSE)


def some(frames: Iterator[int]) -> int | None:
    """Take some frames, and return the number of steps since the start; None if there are no more frames."""
    end = monotonic() + PIECE
    for taken in frames:
        if monotonic() > end:
            return taken
    return None
