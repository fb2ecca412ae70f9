"""Recorders: they take frames in order, keep a copy of each, and give a trajectory."""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from physics.errors import InputError
from physics.trajectory import Path, Trajectory


@dataclass(frozen=True)
class Layout:
    """What a recorder must make room for."""

    runs: int
    tokens: int
    dim: int
    dtype: str
    frames: int
    observables: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Shape of each observable for one frame of one run; () for a number."""


class Recorder(Protocol):
    """Takes frames in order and keeps a copy of each."""

    frames: int
    where: str

    def append(self, step: int, time: float, positions: NDArray[Any], **observables: NDArray[Any]) -> None:
        """Keep one frame: positions (runs, tokens, dim) and observables (runs, ...)."""

    def flush(self) -> None:
        """Put every frame kept where a killed process leaves it."""

    def first_positions(self) -> NDArray[np.float64]:
        """Copy of the first frame kept."""

    def last_positions(self) -> NDArray[np.float64]:
        """Copy of the last frame kept."""

    @property
    def last_step(self) -> int:
        """Step of the last frame kept."""

    def result(self) -> Trajectory:
        """What was recorded."""

    def __enter__(self) -> Self:
        """Begin to record."""

    def __exit__(self, kind: object, error: object, traceback: object, /) -> None:
        """End to record; without an exception the trajectory is complete."""


class MemoryRecorder:
    """Keeps frames in arrays that are as large as the whole run from the start."""

    where = " in memory (attribute `recorded` of this error)"

    def __init__(self, layout: Layout, parameters: Mapping[str, Any]) -> None:
        shape = (layout.runs, layout.frames, layout.tokens, layout.dim)
        require_memory(
            f"{layout.frames} frames of {layout.runs} runs",
            math.prod(shape) * np.dtype(layout.dtype).itemsize,
            "record less often, or stream to a file with out",
        )
        self.frames = 0
        self._positions = np.empty(shape, layout.dtype)
        self._steps = np.empty(layout.frames, np.int64)
        self._times = np.empty(layout.frames)
        self._observables = {
            name: np.empty((layout.runs, layout.frames, *tail), np.float64)
            for name, tail in layout.observables.items()
        }
        self._parameters = parameters

    def append(self, step: int, time: float, positions: NDArray[Any], **observables: NDArray[Any]) -> None:
        """Copy one frame."""
        self._steps[self.frames] = step
        self._times[self.frames] = time
        self._positions[:, self.frames] = positions
        for name, values in observables.items():
            self._observables[name][:, self.frames] = values
        self.frames += 1

    def flush(self) -> None:
        """Memory has nothing to put elsewhere."""

    def first_positions(self) -> NDArray[np.float64]:
        """Copy of the first frame kept."""
        return self._positions[:, 0].astype(np.float64)

    def last_positions(self) -> NDArray[np.float64]:
        """Copy of the last frame kept."""
        return self._positions[:, self.frames - 1].astype(np.float64)

    @property
    def last_step(self) -> int:
        """Step of the last frame kept."""
        return int(self._steps[self.frames - 1])

    def result(self) -> Trajectory:
        """What was recorded, complete or not."""
        n = self.frames
        return Trajectory(
            self._positions[:, :n],
            self._steps[:n],
            self._times[:n],
            observables={name: values[:, :n] for name, values in self._observables.items()},
            parameters=self._parameters,
            complete=n == self._positions.shape[1],
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if isinstance(error, Exception):
            error.recorded = self.result()  # type: ignore[attr-defined]


def recorder(
    out: Path | None,
    layout: Layout,
    parameters: Mapping[str, Any],
    *,
    overwrite: bool = False,
    resume: bool | None = None,
) -> Recorder:
    """Return what records a run: to the file `out`, or to memory where that is None."""
    if out is None:
        if resume:
            raise InputError("resume needs out, the file whose unfinished run shall go on")
        return MemoryRecorder(layout, parameters)
    from physics.storage import TrajectoryWriter

    return TrajectoryWriter(out, layout, parameters, overwrite=overwrite, resume=resume)


def require_memory(what: str, needed: float, advice: str) -> None:
    """Refuse what does not fit into this machine, before the system kills it."""
    if needed > _memory():
        raise InputError(f"{what} need {needed / 2**30:.1f} GiB, more than this machine's memory; {advice}")


def _memory() -> float:
    """Bytes of memory of this machine, or infinity where the system does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return math.inf
