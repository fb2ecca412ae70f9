"""The cost of recording on disk: our log of whole records, compared with HDF5's own mode (SWMR).

A slow run flushes after every frame. For each method the program prints the bytes that are written and the
final size, as multiples of the data, and the seconds. Run it as ``python benchmarks/recording.py [frames]``.
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import h5py
import numpy as np

from physics.trajectory.header import Layout
from physics.trajectory.writer import FileRecorder

TOKENS, DIM = 59, 6
FILTERS: dict[str, dict[str, Any]] = {
    "SWMR, deflate and checksum": {
        "compression": "gzip",
        "compression_opts": 1,
        "shuffle": True,
        "fletcher32": True,
    },
    "SWMR, checksum alone": {"fletcher32": True},
}


def written() -> int:
    """Return the bytes that this process has given the system to write."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["wchar"])


def swmr(path: Path, frames: np.ndarray, filters: dict[str, Any]) -> None:
    """Append frame by frame to chunks of half a megabyte, and flush each frame."""
    chunk = (2**19 // frames[0].nbytes, *frames.shape[1:])
    with h5py.File(path, "w", libver=("v110", "v110")) as file:
        value = file.create_dataset(
            "value", (0, *frames.shape[1:]), "f8", maxshape=(None, *frames.shape[1:]), chunks=chunk, **filters
        )
        step = file.create_dataset("step", (0,), "i8", maxshape=(None,), chunks=(1024,), fletcher32=True)
        file.swmr_mode = True
        for k, frame in enumerate(frames):
            value.resize(k + 1, axis=0)
            value[k] = frame
            value.flush()
            step.resize(k + 1, axis=0)
            step[k] = k
            step.flush()


def log(path: Path, frames: np.ndarray) -> None:
    """Record frame by frame, flush each frame, and write the file."""
    with FileRecorder(path, Layout(1, TOKENS, DIM, "float64", len(frames)), {}) as recorder:
        for k, frame in enumerate(frames):
            recorder.append(k, float(k), frame[None])
            recorder.flush()


def main(count: int) -> None:
    """Measure each method once."""
    frames = np.random.default_rng(0).standard_normal((count, TOKENS, DIM))
    ways: dict[str, Callable[[Path], None]] = {
        name: lambda path, filters=filters: swmr(path, frames, filters) for name, filters in FILTERS.items()
    }
    ways["log of whole records"] = lambda path: log(path, frames)
    print(
        f"{count} frames of {frames[0].nbytes} bytes, each flushed: {frames.nbytes / 2**20:.1f} MiB of data"
    )
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, way) in enumerate(ways.items()):
            path, before, began = Path(folder) / f"{number}.h5", written(), perf_counter()
            way(path)
            took, bytes_written = perf_counter() - began, written() - before
            written_part, size = bytes_written / frames.nbytes, path.stat().st_size / frames.nbytes
            print(f"{name:<30} written {written_part:6.2f}, size {size:5.2f} of the data, {took:6.1f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
