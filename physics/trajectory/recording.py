"""Recorders: they receive frames in order, keep a copy of each, and return a trajectory at the end."""

import math
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from physics.checks import file_path, flag
from physics.errors import InputError
from physics.memory import require_memory
from physics.trajectory.header import Layout, Path
from physics.trajectory.trajectory import Trajectory


class Recorder(Protocol):
    """Interface of an object that receives frames in order and keeps a copy of each.

    It is used as a context manager. `frames` is the number of frames that are kept, and `where` is the end of
    a sentence that says where they are, such as " in run.h5.partial".
    """

    frames: int
    where: str
    complete: bool
    """Whether there is nothing left to record."""

    def append(
        self,
        step: int,
        time: float,
        positions: NDArray[Any],
        observables: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        """Keep a copy of a frame: `positions` (runs, tokens, dim), and observables (runs, ...) by name.

        An `InputError` refuses observables that are not like those of the first frame.
        """

    def flush(self) -> None:
        """Return as soon as every frame is stored where it survives the end of the process."""

    def frame(self, index: int) -> NDArray[Any]:
        """Return a copy of the positions (runs, tokens, dim) of a frame that was kept; -1 is the last."""

    @property
    def last_step(self) -> int:
        """Step of the last frame that is kept."""

    def result(self) -> Trajectory:
        """Return the trajectory that was recorded; it is complete unless an exception ended the recording."""

    def __enter__(self) -> Self:
        """Begin recording."""

    def __exit__(self, kind: object, error: BaseException | None, traceback: object, /) -> None:
        """End recording; if no exception was raised, the trajectory is complete."""

    def close(self) -> None:
        """End recording, in case a signal has prevented `__exit__` from doing so."""


class MemoryRecorder:
    """Keeps frames in arrays in memory, which have the size of the whole run from the start.

    `layout` gives the sizes, types and number of the frames, `parameters` say how the run is made, and
    `start` holds arrays with which the run begins, (runs, ...) each. If the positions of all frames need more
    memory than the machine has, an `InputError` is raised.
    """

    where = " in memory (attribute `recorded` of this error)"

    def __init__(
        self, layout: Layout, parameters: Mapping[str, Any], start: Mapping[str, NDArray[Any]] | None = None
    ) -> None:
        require_memory(
            f"{layout.frames} frames of {layout.runs} runs",
            layout.frames * math.prod(layout.columns[2][2]) * np.dtype(layout.dtype).itemsize,
            "record less often, or give out (--out), so that they are streamed to a file",
        )
        self.frames = 0
        self.complete = False
        self._columns = [
            np.empty((*shape[:1], layout.frames, *shape[1:]), dtype) for _, dtype, shape in layout.columns
        ]
        self._layout, self._parameters, self._start = layout, parameters, start

    def append(
        self,
        step: int,
        time: float,
        positions: NDArray[Any],
        observables: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        """Copy a frame to the next place of the arrays; all observables of the layout must be given."""
        values = (positions, *self._layout.measured(observables or {}))
        self._columns[0][self.frames], self._columns[1][self.frames] = step, time
        for column, value in zip(self._columns[2:], values, strict=True):
            column[:, self.frames] = value
        self.frames += 1

    def flush(self) -> None:
        """Do nothing, because frames in memory are not stored anywhere else."""

    def frame(self, index: int) -> NDArray[Any]:
        """Return a copy of the positions (runs, tokens, dim) of the frame `index`; -1 is the last one."""
        return self._columns[2][:, : self.frames][:, index].copy()

    @property
    def last_step(self) -> int:
        """Step of the last frame that is kept."""
        return int(self._columns[0][self.frames - 1])

    def result(self) -> Trajectory:
        """Return the trajectory recorded so far, complete or not; it shares memory with the recorder."""
        steps, times, positions, *observables = self._columns
        n = self.frames
        return Trajectory(
            positions[:, :n],
            steps[:n],
            times[:n],
            observables={
                name: v[:, :n] for name, v in zip(self._layout.observables, observables, strict=True)
            },
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
        """Do nothing, because there is no thread that writes."""


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
    """Open a recorder for a run, and close it at the end of the ``with`` block.

    Parameters
    ----------
    out : path or None
        File to record to, or None to record to memory.
    layout : Layout
        Sizes and types of the frames.
    parameters : mapping
        How the run is made, in values that JSON can hold.
    start : mapping of str to ndarray (runs, ...), optional
        Other arrays with which the run begins.
    resume : bool, optional
        Whether to continue an unfinished run; None if the caller cannot resume one.
    **to_file
        Further arguments of `FileRecorder`; they have no effect without a file.

    Yields
    ------
    Recorder
        A `FileRecorder` if `out` is given, otherwise a `MemoryRecorder`.

    Raises
    ------
    InputError
        If `resume` is True without a file, or as in `FileRecorder` and `MemoryRecorder`.
    OutputError
        If the file cannot be written.
    """
    frames: Recorder
    if out is not None:
        from physics.trajectory.writer import FileRecorder

        path = file_path("out", out)
        frames = FileRecorder(path, layout, parameters, start=start, resume=resume, **to_file)
    elif resume is not None and flag("resume", resume):
        raise InputError("out (--out) must name the file of the unfinished run to resume it, got None")
    else:
        frames = MemoryRecorder(layout, parameters, start)
    with closing(frames), frames:  # closed even if a signal arrives as `__exit__` begins
        yield frames
