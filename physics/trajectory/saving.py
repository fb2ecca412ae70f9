"""Writing a whole trajectory to its file, in such a way that no signal or full disk leaves half a file."""

import errno
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from physics.trajectory.h5md import write_file
from physics.trajectory.header import Header, Layout, Path, require_values
from physics.trajectory.locks import wait_for
from physics.trajectory.provenance import made_with
from physics.trajectory.target import Target

if TYPE_CHECKING:
    from physics.trajectory.trajectory import Trajectory


def save(trajectory: "Trajectory", path: Path, *, overwrite: bool = False) -> None:
    """Write `trajectory` to the file `path`: `Trajectory.save` describes arguments and errors."""
    shared = [name for name in trajectory.observables if name not in trajectory._clocks]
    layout = Layout(
        trajectory.runs,
        trajectory.tokens,
        trajectory.dim,
        str(trajectory.dtype),
        trajectory.frames,
        {
            name: (trajectory.observables[name].dtype.str, trajectory.observables[name].shape[2:])
            for name in shared
        },
    )
    header = Header(
        layout, trajectory.parameters, trajectory.made_with or made_with("physics"), tuple(trajectory.start)
    )
    header.check()
    for name in trajectory._clocks:
        require_values(name, trajectory._kinds()[name][1])
    target = Target(path, overwrite=overwrite)
    cancelled, failures = threading.Event(), []

    def blocks() -> Iterator[list[NDArray[Any]]]:
        for block, positions in trajectory.blocks():
            if cancelled.is_set():
                raise InterruptedError(errno.EINTR, "interrupted")
            by_run = (positions, *(trajectory.observables[name][:, block] for name in shared))
            yield [
                trajectory.steps[block],
                trajectory.times[block],
                *(np.ascontiguousarray(np.moveaxis(values, 1, 0)) for values in by_run),
            ]

    def write() -> None:
        try:
            with target.sentences():
                series = {
                    name: (trajectory.clock(name), trajectory.observables[name])
                    for name in trajectory._clocks
                }
                write_file(
                    target.merging,
                    header,
                    blocks(),
                    frames=trajectory.frames,
                    complete=trajectory.complete,
                    start=trajectory.start,
                    series=series,
                )
                target.publish()
                target.partial.unlink(missing_ok=True)
        except Exception as error:
            failures.append(error)
        finally:
            target.close()

    # Signals reach the main thread only, so none can interrupt the HDF5 calls of another thread.
    thread = threading.Thread(target=write, name="grokphys writer")
    wait_for(thread, cancelled, start=True)
    if failures:
        raise failures[0]
