"""The trajectory file: H5MD 1.1, in a form that xarray, pyh5md and MDAnalysis open too.

The file is written in one go, under a temporary name, when all frames are known, so it never has to survive a
crash. Every dataset has chunks of at most a megabyte, and the checksum fletcher32 of HDF5. Whole numbers and
truth values are compressed; the digits of real numbers hardly can be.
"""

import contextlib
import errno
import io
import json
import math
import os
import time
import uuid
from _thread import start_new_thread
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO

import h5py
import numpy as np
from numpy.typing import NDArray

from physics.trajectory.header import SCHEMA, SCHEMA_VERSION

CHUNK_BYTES = 2**19
"""Size of a chunk in bytes that `chunk_shape` aims at."""
BLOCK_BYTES = 2**23
"""Size in bytes of what is written at a time."""


class _Disk(io.FileIO):
    """A file to which HDF5 writes, and which never refuses a write.

    HDF5 does not survive a write that fails: it crashes when it closes its objects. Therefore what does not
    fit on a full disk is kept in memory, and `check` raises what has failed, or interrupts, between two
    blocks.
    """

    def __init__(self, descriptor: int, mode: str) -> None:
        super().__init__(descriptor, mode)
        self.failure: OSError | None = None
        self.interruption: OSError | None = None
        self._lost: list[tuple[int, bytes]] = []

    def check(self) -> None:
        """Raise the error of an earlier write, or that interrupts the writing."""
        if error := self.failure or self.interruption:
            raise error

    def write(self, data: Any) -> int:
        end, view = self.tell() + len(data), memoryview(data)
        try:
            while self.failure is None and len(view):
                view = view[super().write(view) :]
        except OSError as error:
            self.failure = error
        if len(view):
            self._lost.append((end - len(view), bytes(view)))
        self.seek(end)
        return len(data)

    def readinto(self, buffer: Any) -> int:
        begin, view = self.tell(), memoryview(buffer)
        view[:] = bytes(len(view))
        super().readinto(view)
        for at, data in self._lost:
            first, last = max(at, begin), min(at + len(data), begin + len(view))
            if first < last:
                view[first - begin : last - begin] = data[first - at : last - at]
        self.seek(begin + len(view))
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        with contextlib.suppress(OSError):
            super().truncate(size)
        return size or 0


def write_file(file: BinaryIO, trajectory: Any) -> None:
    """Write a `Trajectory` to a new file.

    HDF5 runs in a thread of its own: only the main thread receives signals, so that no exception of a signal
    handler ends a call of HDF5 midway. Such an exception ends the writing between two blocks.
    """
    errors: list[BaseException] = []
    ended: list[bool] = []
    disk = _Disk(os.dup(file.fileno()), "r+")

    def write() -> None:
        try:
            with disk, h5py.File(disk, "w", libver=("v110", "v110")) as h5:
                _write(h5, trajectory, disk.check)
            disk.check()
        except BaseException as error:  # raised below
            errors.append(error)
        ended.append(True)

    start_new_thread(write, ())
    while not ended:
        try:
            time.sleep(0.002)
        except BaseException as error:  # of a signal handler
            disk.interruption = InterruptedError(errno.EINTR, "interrupted")
            errors.insert(0, error)
    if errors:
        raise errors.pop(0)


@dataclass(frozen=True)
class _Column:
    """What a function returns for the slices of the first axis, as an array of this shape and type."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    rows: Callable[[slice], NDArray[Any]]

    def __getitem__(self, part: Any) -> Any:
        return self.rows(part)


def _write(file: h5py.File, trajectory: Any, check: Callable[[], None]) -> None:
    """Write all groups and datasets; `check` is called after each block."""
    _describe(file, trajectory)
    frames, runs, count = trajectory.frames, trajectory.runs, trajectory.tokens
    tokens = file["particles/tokens"]
    position = tokens.create_group("position")
    particle = scale(tokens, "particle", np.arange(runs * count))
    axis = scale(tokens, "axis", np.arange(trajectory.dim))
    for name, numbers in zip(("run", "token"), divmod(np.arange(runs * count), count), strict=True):
        attach(_dataset(tokens, name, numbers), particle)
    for name in ("particle", "axis", "run", "token"):  # links, so that readers can open the group alone
        position[name] = tokens[name]
    _clock(position, trajectory.steps, trajectory.times)
    shape = (frames, runs * count, trajectory.dim)
    column = _Column(shape, trajectory.dtype, partial(trajectory._rows, None))
    attach(_dataset(position, "value", column, check), position["step"], particle, axis)
    for name, (dtype, inner) in trajectory._kinds().items():
        group = file["observables"].create_group(name)
        steps, times = trajectory.clock(name)
        if name in trajectory._clocks:
            _clock(group, steps, times)
        else:
            for link in ("step", "time"):
                group[link] = position[link]
        shape = (len(steps), runs, *inner)
        column = _Column(shape, dtype, partial(trajectory._rows, name))
        value = _dataset(group, "value", column, check)
        labels = ["run", *(f"axis_{axis}" for axis in range(len(inner)))]
        scales = [
            scale(group, label, np.arange(length)) for label, length in zip(labels, shape[1:], strict=True)
        ]
        attach(value, group["step"], *scales)
    for name, values in trajectory.start.items():
        start = file.require_group("parameters/start")
        value = _dataset(start, name, values, check)
        for axis, length in enumerate(values.shape):
            label = f"axis_{axis - 1}_{length}" if axis else f"run_{length}"
            if label not in start:
                scale(start, label, np.arange(length))
            value.dims[axis].attach_scale(start[label])


def _describe(file: h5py.File, trajectory: Any) -> None:
    """Write the groups that describe a file, and how its content was made."""
    versions = trajectory.made_with
    version = np.bytes_(versions.get("grokphys", "unknown"))
    file.create_group("h5md").attrs["version"] = np.array([1, 1], np.int32)
    author = os.environ.get("GROKPHYS_AUTHOR") or os.environ.get("USER") or "unknown"
    file.create_group("h5md/author").attrs["name"] = np.bytes_(author.encode(errors="replace"))
    file.create_group("h5md/creator").attrs.update({"name": np.bytes_("GrokPhys"), "version": version})
    attributes = {
        "schema": np.bytes_(SCHEMA),
        "schema_version": np.int64(SCHEMA_VERSION),
        "code_version": version,
        "config": np.bytes_(json.dumps(trajectory.parameters, allow_nan=False).encode()),
        "seed": np.bytes_(json.dumps(trajectory.parameters.get("seed"))),
        "libraries": np.bytes_(json.dumps(versions).encode()),
        "identity": np.bytes_(trajectory.identity or uuid.uuid4().hex),
        "complete": np.int64(trajectory.complete),
    }
    file.create_group("parameters").attrs.update(attributes)
    box = file.create_group("particles/tokens/box")
    box.attrs["dimension"] = np.int64(trajectory.dim)
    box.attrs["boundary"] = np.array([b"none"] * trajectory.dim)
    file.create_group("observables")


def _dataset(
    group: h5py.Group, name: str, values: Any, check: Callable[[], None] = lambda: None
) -> h5py.Dataset:
    """Create a dataset of an array or a `_Column`, whose first axis can grow, and write it block by block.

    The type bool is stored as int8 with an attribute, as xarray expects.
    """
    dtype, shape = np.dtype(values.dtype), values.shape
    stored = np.dtype("i1") if dtype.kind == "b" else dtype
    chunks = chunk_shape(shape, stored.itemsize)
    options: dict[str, Any] = {"maxshape": (None, *shape[1:]), "chunks": chunks, "fletcher32": True}
    if stored.kind in "iu":
        options |= {"compression": "gzip", "compression_opts": 1, "shuffle": True}
    dataset = group.create_dataset(name, shape=shape, dtype=stored, **options)
    if dtype.kind == "b":
        dataset.attrs["dtype"] = "bool"
    row_bytes = max(stored.itemsize * math.prod(shape[1:]), 1)
    step = max(BLOCK_BYTES // (row_bytes * chunks[0]), 1) * chunks[0]
    for begin in range(0, shape[0], step):
        part = slice(begin, min(begin + step, shape[0]))
        block = np.asarray(values[part], stored, order="C")
        dataset[part] = block.reshape(part.stop - part.start, *shape[1:])
        check()
    return dataset


def chunk_shape(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return the shape of the chunks in which HDF5 stores a dataset, each of at most a megabyte.

    A chunk holds as many whole entries of the first axis, such as frames, as fit into half a megabyte. If one
    entry is larger than a megabyte, the chunk is a part of it, and its axes are halved from the second one
    on. `itemsize` is the size of a number in bytes.
    """
    chunk = [max(n, 1) for n in shape]
    frame = itemsize * math.prod(chunk[1:])
    chunk[0] = max(min(CHUNK_BYTES // frame, chunk[0]), 1)
    axis = 1
    while itemsize * math.prod(chunk) > 2 * CHUNK_BYTES:
        while chunk[axis] == 1:
            axis += 1
        chunk[axis] = -(-chunk[axis] // 2)
    return tuple(chunk)


def scale(group: h5py.Group, name: str, values: NDArray[Any]) -> h5py.Dataset:
    """Create and return a dimension scale: a dataset of `values` (n,) that labels an axis of others."""
    dataset = _dataset(group, name, values)
    dataset.make_scale(name)
    return dataset


def attach(dataset: h5py.Dataset, *scales: h5py.Dataset) -> None:
    """Attach dimension scales to the leading axes of a dataset, in order, so that xarray labels them."""
    for axis, labels in enumerate(scales):
        dataset.dims[axis].attach_scale(labels)


def _clock(group: h5py.Group, steps: NDArray[np.int64], times: NDArray[np.float64]) -> None:
    """Write the steps and times of a group."""
    attach(_dataset(group, "time", times), scale(group, "step", steps))
