"""Exports of a page as files: the run, a picture, or a film with its progress."""

import contextlib
import ctypes
import gc
import tempfile
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np

from grokphys.explorer.films import export
from physics.trajectory import Trajectory

if TYPE_CHECKING:
    from grokphys.explorer.session import Session

ENDED = threading.Event()
"""Set when the server stops, so that films in the making end."""
TELL_EVERY = 0.3
"""Seconds between two progress messages of a film."""


class Canceled(Exception):  # noqa: N818 - not an error
    """Raised in a worker to end a film: the page cancels it, its tab is closed, or the server stops."""


class Exports:
    """Creates the files of a session in a worker, and sends them to the browser.

    Parameters
    ----------
    session : Session
        Session whose visible view is exported.
    """

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._canceled = 0  # how often films were canceled

    def orders(self) -> dict[str, Callable[[], Any]]:
        """Return functions without arguments for the commands "save", "png", "gif", "mp4" and "cancel"."""
        return {
            "save": lambda: self._make("h5", "application/x-hdf5", partial(file_bytes, self._trajectory())),
            "png": lambda: self._make("png", "image/png", partial(export.png, self._view.still())),
            "gif": lambda: self._film("gif", "image/gif", export.gif),
            "mp4": lambda: self._film("mp4", "video/mp4", export.mp4),
            "cancel": self._cancel,
        }

    @property
    def _view(self) -> Any:
        return self._session.view

    def _trajectory(self) -> Trajectory:
        kept: Trajectory = self._view.trajectory()
        return kept

    def _cancel(self) -> None:
        """End all films in the making, of which the page shows the last."""
        self._canceled += 1

    def _film(self, ending: str, kind: str, make: Callable[..., bytes]) -> None:
        """Make a film of the media type `kind` in a worker; tell its progress, and let the page cancel it."""
        begun = self._canceled
        session, name, told = self._session, f"{self._view.slug}.{ending}", 0.0

        def check() -> None:
            if self._canceled > begun or session.closed or ENDED.is_set():
                raise Canceled(f"{name} was canceled.")

        def progress(done: int, whole: int) -> None:
            nonlocal told
            check()
            if monotonic() - told > TELL_EVERY:
                told = monotonic()
                words = f"Making {name}: {done} of {whole} frames"
                session.soon(lambda: session.say(words, "progress"))

        self._make(
            ending, kind, partial(make, checked(self._view.film(), check), progress=progress), "progress"
        )

    def _make(self, ending: str, kind: str, make: Callable[[], bytes], said: str = "note") -> None:
        """Let a worker make a file of the media type `kind`, and send it to the browser.

        The file has the name of the view and the given `ending`; `said` is the kind of the first message.
        """
        session, name = self._session, f"{self._view.slug}.{ending}"
        session.say(f"Making {name} …", said)

        def deliver(content: bytes) -> None:
            session.bridge.send("download", name, kind, np.frombuffer(content, np.uint8))
            session.say(f"{name} is in your downloads.", "done")

        session.later(_tidily, make, then=deliver)


def checked(film: export.Film, check: Callable[[], None]) -> export.Film:
    """Return the same film, which calls `check` when it begins and before it draws each picture.

    An exception that `check()` raises ends the work.
    """

    def begin(figure: Any) -> export.Move:
        check()
        move = film.begin(figure)

        def moved(frame: int) -> None:
            check()
            move(frame)

        return moved

    return replace(film, begin=begin)


def _tidily(make: Callable[[], bytes]) -> bytes:
    """Return `make()`, and then give the memory that its pictures took back to the system.

    The GNU C library keeps freed memory unless it is told to return it: without the last call, a server
    holds 20 MiB more for each thread that has drawn a film. Where the call does not exist, it is left out.
    """
    try:
        return make()
    finally:
        gc.collect()
        with contextlib.suppress(AttributeError, OSError, TypeError):
            ctypes.CDLL(None).malloc_trim(0)


def file_bytes(trajectory: Trajectory) -> bytes:
    """Return the content of the HDF5 file that `Trajectory.save` writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.h5"
        trajectory.save(path)
        return path.read_bytes()
