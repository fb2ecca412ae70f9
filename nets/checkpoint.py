"""Checkpoints, from which an interrupted training resumes with bit-identical results."""

from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from physics.errors import FileFormatError
from physics.trajectory.locks import replace_as_a_whole
from physics.trajectory.recording import FileRecorder

SECONDS = 30.0
LARGEST_SHARE = 0.02
"""Least time between checkpoints in seconds, and the largest fraction of time that writing them may take."""


class Checkpoint:
    """The file ``OUT.checkpoint`` next to an unfinished trajectory, from which a training resumes.

    Each new checkpoint replaces the previous one in a single operation, so that an interruption never leaves
    a damaged file.

    Parameters
    ----------
    frames : FileRecorder
        Recorder of the trajectory, whose frames must be on disk before a checkpoint refers to them.
    parts : mapping of str to object
        Objects whose ``state()``, arrays by name, is saved, and given to ``restore`` when a run is resumed.
    """

    def __init__(self, frames: FileRecorder, parts: Mapping[str, Any]) -> None:
        self.path = Path(f"{frames.path}.checkpoint")
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
        values: dict[str, Any] = {"step": step, "recorded": self._frames.last_step}
        values["run"] = self._frames.identity
        for part, stateful in self._parts.items():
            values |= {f"{part}/{name}": value for name, value in stateful.state().items()}
        replace_as_a_whole(self.path, lambda file: np.savez(file, allow_pickle=False, **values), alone=True)
        self._written = monotonic()
        self._cost = self._written - began

    def restore(self) -> int | None:
        """Restore all parts, and return the step at which the checkpoint was written.

        The result is None if there is no checkpoint, if it belongs to another run, or if it is newer than the
        frames on disk. The run is then repeated from its start, with bit-identical results, and only missing
        frames are added. If no frame is on disk, the checkpoint is removed.

        Raises
        ------
        FileFormatError
            If the checkpoint is damaged, which the checksums of its zip archive show.
        """
        if not self._frames.frames:
            self.remove()
        if not self.path.exists():
            return None
        try:
            with self.path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                values = {name: stored[name] for name in stored.files}
            step, recorded, run = (values.pop(name).item() for name in ("step", "recorded", "run"))
        except Exception as error:  # flipped bytes raise whatever zipfile, NumPy and tokenize do
            advice = "remove it, and the run starts again"
            raise FileFormatError(f"{self.path} is damaged ({error}); {advice}") from None
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
