"""Checkpoints: what a killed run needs to go on to the same bits."""

import contextlib
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from physics.errors import FileFormatError, OutputError

SECONDS = 30.0
LARGEST_SHARE = 0.02
"""A checkpoint is due after so many seconds, or later, where writing it would take more than this share."""


class Checkpoint:
    """The file ``OUT.checkpoint`` beside an unfinished trajectory, replaced as a whole by a newer one."""

    def __init__(self, out: str | os.PathLike[str], configuration: Mapping[str, Any]) -> None:
        self.path = Path(f"{os.fspath(out)}.checkpoint")
        self._configuration = json.dumps(configuration, sort_keys=True)
        self._written = monotonic()
        self._cost = 0.0

    @property
    def due(self) -> bool:
        """Whether it is time to write one."""
        return monotonic() - self._written > max(SECONDS, self._cost / LARGEST_SHARE)

    def write(self, step: int, state: Mapping[str, NDArray[Any]]) -> None:
        """Replace the checkpoint by the state after `step`; the old one stays until the new one is whole."""
        began = monotonic()
        partial = self.path.with_name(self.path.name + ".partial")
        values: dict[str, Any] = {f"state/{name}": value for name, value in state.items()}
        values |= {"step": np.int64(step), "configuration": np.array(self._configuration)}
        try:
            with partial.open("wb") as file:
                np.savez(file, allow_pickle=False, **values)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(self.path)
        except OSError as error:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)
            raise OutputError(f"cannot write the checkpoint {self.path}: {error.strerror or error}") from None
        self._written = monotonic()
        self._cost = self._written - began

    def read(self) -> tuple[int, dict[str, NDArray[Any]]] | None:
        """Step and state of the checkpoint, or None where there is none.

        Raises
        ------
        FileFormatError
            If it is damaged, or of a run with another configuration.
        """
        if not self.path.exists():
            return None
        try:
            with self.path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                values = {name: stored[name] for name in stored.files}
            step, configuration = int(values.pop("step")), str(values.pop("configuration"))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise FileFormatError(
                f"{self.path} is damaged ({error}); remove it, and the run resumes from its start"
            ) from None
        if configuration != self._configuration:
            raise FileFormatError(
                f"{self.path} belongs to a run with another configuration; remove it, or overwrite"
            )
        return step, {name.removeprefix("state/"): value for name, value in values.items()}

    def remove(self) -> None:
        """Remove it, and what a killed writer may have left of a newer one."""
        for path in (self.path, self.path.with_name(self.path.name + ".partial")):
            path.unlink(missing_ok=True)
