"""Checkpoints: what a killed run needs to go on to the same bits."""

import contextlib
import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from physics.errors import FileFormatError, OutputError
from physics.trajectory.writer import FileRecorder

SECONDS = 30.0
LARGEST_SHARE = 0.02
"""A checkpoint is due after so many seconds, or later, where writing it would take more than this share."""


class Stateful(Protocol):
    """What goes back to a state that it gave."""

    def state(self) -> dict[str, NDArray[Any]]:
        """All that a resumed run needs."""

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Go back to a state."""


class Checkpoint:
    """The file ``OUT.checkpoint`` beside an unfinished trajectory, replaced as a whole by a newer one.

    Parameters
    ----------
    out : path
        The trajectory.
    frames : FileRecorder
        What records it.
    parts : mapping of str to objects with ``state`` and ``restore``
        What goes on from there.
    """

    def __init__(
        self, out: str | os.PathLike[str], frames: FileRecorder, parts: Mapping[str, Stateful]
    ) -> None:
        self.path = Path(f"{os.fspath(out)}.checkpoint")
        self._frames, self._parts = frames, parts
        self._written = monotonic()
        self._cost = 0.0

    @property
    def due(self) -> bool:
        """Whether it is time to write one."""
        return monotonic() - self._written > max(SECONDS, self._cost / LARGEST_SHARE)

    def save(self, step: int) -> None:
        """Keep the state of all parts after `step`, once the frames that come before it are kept."""
        began = monotonic()
        self._frames.flush()
        kept = {"step": step, "recorded": self._frames.last_step, "run": self._frames.identity}
        values = {name: np.array(value) for name, value in kept.items()}
        for part, stateful in self._parts.items():
            values |= {f"{part}/{name}": value for name, value in stateful.state().items()}
        replace_as_a_whole(self.path, lambda file: np.savez(file, allow_pickle=False, **values))
        self._written = monotonic()
        self._cost = self._written - began

    def restore(self) -> int | None:
        """Put all parts back, and return the step.

        None where there is nothing to go back to: no checkpoint, or one of another run, or a newer one than
        the frames on disk. The run is then repeated from its start, to the same bits, and only frames that
        are missing are added.

        Raises
        ------
        FileFormatError
            If it is damaged.
        """
        if not self._frames.frames:
            self.remove()
        if not self.path.exists():
            return None
        try:
            with self.path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                values = {name: stored[name] for name in stored.files}
            step, recorded, run = (values.pop(name).item() for name in ("step", "recorded", "run"))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise FileFormatError(
                f"{self.path} is damaged ({error}); remove it, and the run resumes from its start"
            ) from None
        if run != self._frames.identity or recorded > self._frames.last_step:
            return None
        for part, stateful in self._parts.items():
            head = f"{part}/"
            stateful.restore({n.removeprefix(head): v for n, v in values.items() if n.startswith(head)})
        return int(step)

    def remove(self) -> None:
        """Remove it, and what a killed writer may have left of a newer one."""
        for path in (self.path, self.path.with_name(self.path.name + ".partial")):
            path.unlink(missing_ok=True)


def replace_as_a_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Replace the file `path` by what is written; the old one stays until the new one is whole and on disk.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    partial = path.with_name(path.name + ".partial")
    try:
        with partial.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except (OSError, RuntimeError) as error:  # PyTorch raises the latter where a disk is full
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        reason = getattr(error, "strerror", None) or error
        raise OutputError(f"cannot write the checkpoint {path}: {reason}") from None
