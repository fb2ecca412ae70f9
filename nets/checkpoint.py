"""Checkpoints, from which an interrupted training resumes with bit-identical results."""

import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from physics.errors import FileFormatError
from physics.trajectory.locks import replace_as_a_whole
from physics.trajectory.recording import FileRecorder

SECONDS = 30.0
LARGEST_SHARE = 0.02
"""Least time between checkpoints in seconds, and the largest fraction of time that writing them may take."""


class Stateful(Protocol):
    """An object whose state can be saved and restored, such as an engine."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Return copies of all arrays that a resumed run needs, by name."""

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Restore the arrays that `state` has returned."""


class Checkpoint:
    """The file ``OUT.checkpoint`` next to an unfinished trajectory, from which a training resumes.

    Each new checkpoint replaces the previous one in a single operation, so that an interruption never leaves
    a damaged file.

    Parameters
    ----------
    out : path
        Path of the trajectory.
    frames : FileRecorder
        Recorder of the trajectory, whose frames must be on disk before a checkpoint refers to them.
    parts : mapping of str to Stateful
        Objects whose states are saved, and restored when a run is resumed.
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
        """Whether it is time for the next checkpoint, after `SECONDS`, or later if writing takes long."""
        return monotonic() - self._written > max(SECONDS, self._cost / LARGEST_SHARE)

    def save(self, step: int) -> None:
        """Save the state of all parts, once the earlier frames are on disk.

        Parameters
        ----------
        step : int
            Number of optimizer steps taken so far.

        Raises
        ------
        OutputError
            If the file cannot be written; the previous checkpoint then stays.
        """
        began = monotonic()
        self._frames.flush()
        clock = {"step": step, "recorded": self._frames.last_step, "run": self._frames.identity}
        values = {name: np.array(value) for name, value in clock.items()} | self._state()
        values["checksum"] = np.array(checksum(values))
        replace_as_a_whole(self.path, lambda file: np.savez(file, allow_pickle=False, **values), alone=True)
        self._written = monotonic()
        self._cost = self._written - began

    def _state(self) -> dict[str, NDArray[Any]]:
        return {
            f"{part}/{name}": value
            for part, stateful in self._parts.items()
            for name, value in stateful.state().items()
        }

    def restore(self) -> int | None:
        """Restore all parts, and return the step at which the checkpoint was written.

        The result is None if there is no checkpoint, if it belongs to another run, or if it is newer than the
        frames on disk. The run is then repeated from its start, with bit-identical results, and only missing
        frames are added. If no frame is on disk, the checkpoint is removed.

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
            if values.pop("checksum").item() != checksum(values):
                raise ValueError("its checksum fails")
            step, recorded, run = (values.pop(name).item() for name in ("step", "recorded", "run"))
            if not -1 <= recorded <= step or _kinds(values) != _kinds(self._state()):
                raise ValueError("its arrays or its step are not those of this run")
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise FileFormatError(
                f"{self.path} is damaged ({error}); remove it, and the run starts again"
            ) from None
        if run != self._frames.identity or recorded > self._frames.last_step:
            return None
        for part, stateful in self._parts.items():
            head = f"{part}/"
            stateful.restore({n.removeprefix(head): v for n, v in values.items() if n.startswith(head)})
        return int(step)

    def remove(self) -> None:
        """Remove the checkpoint, and the incomplete file that an interrupted write may have left."""
        remove(self.path)


def remove(checkpoint: Path) -> None:
    """Remove a checkpoint, and the incomplete file that an interrupted write may have left."""
    for path in (checkpoint, checkpoint.with_name(checkpoint.name + ".partial")):
        path.unlink(missing_ok=True)


def checksum(values: Mapping[str, NDArray[Any]]) -> int:
    """Return the CRC-32 of arrays with their names, types and shapes."""
    result = 0
    for name in sorted(values):
        array = np.ascontiguousarray(values[name])
        result = zlib.crc32(f"{name} {array.dtype.str} {array.shape}".encode(), result)
        result = zlib.crc32(array.tobytes(), result)
    return result


def _kinds(values: Mapping[str, NDArray[Any]]) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
    return {name: (value.dtype, value.shape) for name, value in values.items()}
