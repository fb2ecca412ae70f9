"""Checkpoints, from which a killed run can be resumed to the same bits."""

import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from physics.errors import FileFormatError
from physics.trajectory.locks import replace_as_a_whole
from physics.trajectory.writer import FileRecorder

SECONDS = 30.0
LARGEST_SHARE = 0.02
"""Seconds between checkpoints, and the largest fraction of the time that writing them may take."""


class Stateful(Protocol):
    """An object that can return its state and be restored to it."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Return all that a resumed run needs."""

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Restore a state."""


class Checkpoint:
    """The file ``OUT.checkpoint`` next to an unfinished trajectory; a newer one replaces it as a whole.

    Parameters
    ----------
    out : path
        Path of the trajectory.
    frames : FileRecorder
        Recorder of the trajectory.
    parts : mapping of str to objects with ``state`` and ``restore``
        Objects that are restored when a run is resumed.
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
        """Return whether it is time to write a checkpoint."""
        return monotonic() - self._written > max(SECONDS, self._cost / LARGEST_SHARE)

    def save(self, step: int) -> None:
        """Save the state of all parts after `step`, once the frames before it are on disk."""
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
        """Restore all parts, and return the step of the checkpoint.

        The result is None if there is no checkpoint, or it belongs to another run, or it is newer than the
        frames on disk. The run is then repeated from its start, to the same bits, and only the missing frames
        are added.

        Raises
        ------
        FileFormatError
            If the checkpoint is damaged.
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
        """Remove the checkpoint, and the incomplete one that a killed writer may have left."""
        remove(self.path)


def remove(checkpoint: Path) -> None:
    """Remove a checkpoint, and the part of one that a killed process left."""
    for path in (checkpoint, checkpoint.with_name(checkpoint.name + ".partial")):
        path.unlink(missing_ok=True)
