"""The replay of a run from a link, in short pieces between which the server answers its pages."""

from collections.abc import Iterator
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grokphys.explorer.session import Session

PIECE = 0.3
"""Seconds after which a piece of a replay ends with its next frame."""
PAUSE = 50
"""Milliseconds between two pieces of a replay, in which commands of the page arrive."""


class Replay:
    """The replay in the session of one page; `stop` ends it early, and so does the end of the session."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._frames: Iterator[int] | None = None

    def start(self, steps: int) -> None:
        """Let the visible view, which is at its start, repeat `steps` steps at the speed of the page."""
        self._frames = self._session.view.replay(steps, self._session.bridge.speed)
        self._schedule(self._frames, steps)

    def stop(self) -> None:
        """End the replay, if there is one, at the frame that it has reached, and remove its message."""
        if self._frames is not None:
            self._frames = None
            self._session.say("")

    def _schedule(self, frames: Iterator[int], steps: int) -> None:
        """Schedule the next piece of a replay as a callback, for which Bokeh locks the document."""

        async def piece() -> None:
            if frames is not self._frames or self._session.closed:
                return
            taken = await self._session.move(lambda: some(frames))
            if frames is not self._frames:  # an error has ended this replay, and is on the page
                return
            if taken is None:
                self.stop()
                return
            self._session.say(f"Repeating the run of this link: step {taken} of {steps} …")
            self._schedule(frames, steps)

        self._session.document.add_timeout_callback(piece, PAUSE)


def some(frames: Iterator[int]) -> int | None:
    """Take frames for `PIECE` seconds, and return the number of steps so far; None if the frames end."""
    end = monotonic() + PIECE
    for taken in frames:
        if monotonic() > end:
            return taken
    return None
