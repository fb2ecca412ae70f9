"""Recorders, which receive frames in order, keep a copy of each, and return a trajectory."""

import math
import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from physics.errors import InputError
from physics.trajectory.header import Layout, Path
from physics.trajectory.trajectory import Trajectory


class Recorder(Protocol):
    """Receives frames in order and keeps a copy of each."""

    frames: int
    where: str
    complete: bool
    """Whether there is nothing left to record."""

    def append(self, step: int, time: float, positions: NDArray[Any], **observables: NDArray[Any]) -> None:
        """Keep one frame: positions (runs, tokens, dim) and observables (runs, ...)."""

    def flush(self) -> None:
        """Return when every frame is stored where it survives the process."""

    def frame(self, index: int) -> NDArray[Any]:
        """Return a copy of the positions of a frame that was kept before this process began to record."""

    @property
    def last_step(self) -> int:
        """Step of the last frame kept."""

    def result(self) -> Trajectory:
        """Return the trajectory that was recorded."""

    def __enter__(self) -> Self:
        """Begin recording."""

    def __exit__(self, kind: object, error: BaseException | None, traceback: object, /) -> None:
        """End recording; without an exception the trajectory is complete."""

    def close(self) -> None:
        """End recording if a signal has kept `__exit__` from it."""


class MemoryRecorder:
    """Keeps frames in arrays that are as large as the whole run from the start."""

    where = " in memory (attribute `recorded` of this error)"

    def __init__(
        self, layout: Layout, parameters: Mapping[str, Any], start: Mapping[str, NDArray[Any]] | None = None
    ) -> None:
        require_memory(
            f"{layout.frames} frames of {layout.runs} runs",
            layout.frames * math.prod(layout.columns[2][2]) * np.dtype(layout.dtype).itemsize,
            "record less often, or stream to a file with out",
        )
        self.frames = 0
        self.complete = False
        self._columns = [
            np.empty((*shape[:1], layout.frames, *shape[1:]), dtype) for _, dtype, shape in layout.columns
        ]
        self._names = list(layout.observables)
        self._parameters, self._start = parameters, start

    def append(self, step: int, time: float, positions: NDArray[Any], **observables: NDArray[Any]) -> None:
        """Copy one frame."""
        values = (positions, *(observables[name] for name in self._names))
        self._columns[0][self.frames], self._columns[1][self.frames] = step, time
        for column, value in zip(self._columns[2:], values, strict=True):
            column[:, self.frames] = value
        self.frames += 1

    def flush(self) -> None:
        """Do nothing: frames in memory are not stored anywhere else."""

    def frame(self, index: int) -> NDArray[Any]:
        """Return a copy of the positions of a frame."""
        return self._columns[2][:, : self.frames][:, index].copy()

    @property
    def last_step(self) -> int:
        """Step of the last frame kept."""
        return int(self._columns[0][self.frames - 1])

    def result(self) -> Trajectory:
        """Return the trajectory that was recorded, complete or not."""
        steps, times, positions, *observables = self._columns
        n = self.frames
        return Trajectory(
            positions[:, :n],
            steps[:n],
            times[:n],
            observables={name: v[:, :n] for name, v in zip(self._names, observables, strict=True)},
            parameters=self._parameters,
            start=self._start,
            complete=self.complete,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self.complete = error is None
        if isinstance(error, Exception):
            error.recorded = self.result()  # type: ignore[attr-defined]

    def close(self) -> None:
        """Do nothing: no thread writes."""


@contextmanager
def recorder(
    out: Path | None,
    layout: Layout,
    parameters: Mapping[str, Any],
    *,
    start: Mapping[str, NDArray[Any]] | None = None,
    resume: bool | None = None,
    **to_file: Any,
) -> Iterator[Recorder]:
    """Record a run to the file `out` (see `FileRecorder`), or to memory if it is None."""
    frames: Recorder
    if out is not None:
        from physics.trajectory.writer import FileRecorder

        frames = FileRecorder(out, layout, parameters, start=start, resume=resume, **to_file)
    elif resume:
        raise InputError("resume needs out (--out), the file of the unfinished run")
    else:
        frames = MemoryRecorder(layout, parameters, start)
    with closing(frames), frames:  # closed even if a signal arrives as `__exit__` begins
        yield frames


def require_memory(what: str, needed: float, advice: str) -> None:
    """Refuse a run that does not fit into memory, before the operating system kills the process."""
    try:
        memory = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):  # the system does not report its memory
        return
    if needed > memory:
        raise InputError(f"{what} need {needed / 2**30:.1f} GiB, more than this machine's memory; {advice}")
