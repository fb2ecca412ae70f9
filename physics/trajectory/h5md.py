"""Writing the trajectory file: H5MD 1.1, in a form that xarray, pyh5md and MDAnalysis open too.

The file is written in one go, under a temporary name, when all frames are known, so it never has to survive a
crash. Every dataset has chunks of at most a megabyte and HDF5's own filters: shuffle, deflate, and the
checksum fletcher32.
"""

import json
import math
import os
import zlib
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from physics.trajectory.header import SCHEMA, SCHEMA_VERSION, Clock, Header

CHUNK_BYTES = 2**19
"""Size of a chunk in bytes that `chunk_shape` aims at."""
FILTERS = {"compression": "gzip", "compression_opts": 1, "shuffle": True, "fletcher32": True}
"""Filters of every dataset, which any HDF5 library can undo."""


def write_file(
    path: Path,
    header: Header,
    blocks: Iterable[Sequence[NDArray[Any]]],
    *,
    frames: int = 0,
    complete: bool = True,
    start: Mapping[str, NDArray[Any]] | None = None,
    series: Mapping[str, tuple[Clock, NDArray[Any]]] | None = None,
) -> None:
    """Write a trajectory file, and return when the operating system has it on disk.

    Parameters
    ----------
    path : Path
        File to write; an existing file is replaced.
    header : Header
        Description of the run.
    blocks : iterable of sequences of ndarray
        Blocks of n frames, as the columns of the layout: steps (n,), times (n,), positions (n, runs, tokens,
        dim), observables (n, runs, ...).
    frames : int, default 0
        Number of frames of all blocks, or 0 if it is unknown. HDF5 filters whole chunks, even of zeros, so
        the chunks of a short run are no longer than the run.
    complete : bool, default True
        Whether the run is complete.
    start : mapping of str to ndarray (runs, ...), optional
        Arrays with which the run began.
    series : mapping of str to ((steps, times), ndarray (runs, n, ...)), optional
        Observables that were measured at steps other than those of the frames.
    """
    layout = header.layout
    points = layout.runs * layout.tokens
    with h5py.File(path, "w", libver=("v110", "v110")) as file, _Pool() as pool:
        _describe(file, header, complete)
        tokens = file["particles/tokens"]
        position = tokens.create_group("position")
        particle, axis = (
            scale(tokens, "particle", np.arange(points)),
            scale(tokens, "axis", np.arange(layout.dim)),
        )
        for name, numbers in (
            ("run", np.arange(points) // layout.tokens),
            ("token", np.arange(points) % layout.tokens),
        ):
            attach(_dataset(tokens, name, numbers.shape, numbers.dtype, numbers), particle)
        for name in ("particle", "axis", "run", "token"):  # links, so that readers can open the group alone
            position[name] = tokens[name]
        columns = [
            *_clock(position, frames),
            _Column(_dataset(position, "value", (0, points, layout.dim), layout.dtype, rows=frames), pool),
        ]
        attach(columns[2].dataset, position["step"], particle, axis)
        for name, dtype, shape in layout.columns[3:]:
            group = _observable(file, name, np.dtype(dtype), shape, frames)
            for link in ("step", "time"):
                group[link] = position[link]
            group["value"].dims[0].attach_scale(group["step"])
            columns.append(_Column(group["value"], pool))
        for block in blocks:
            for column, values in zip(columns, block, strict=True):
                column.append(values)
        for name, ((steps, times), values) in (series or {}).items():
            group = _observable(file, name, values.dtype, (values.shape[0], *values.shape[2:]), len(steps))
            own = [*_clock(group, len(steps)), _Column(group["value"], pool)]
            group["value"].dims[0].attach_scale(group["step"])
            for column, numbers in zip(own, (steps, times, np.moveaxis(values, 1, 0)), strict=True):
                column.append(numbers)
            columns += own
        for column in columns:
            column.finish()
        if start:
            _write_start(file.create_group("parameters/start"), start)
    with path.open("rb") as written:
        os.fsync(written.fileno())


def _describe(file: h5py.File, header: Header, complete: bool) -> None:
    """Write the groups that describe a file, and how its content was made."""
    made_with = header.made_with
    file.create_group("h5md").attrs["version"] = np.array([1, 1], np.int32)
    author = os.environ.get("GROKPHYS_AUTHOR") or os.environ.get("USER") or "unknown"
    file.create_group("h5md/author").attrs["name"] = np.bytes_(author.encode(errors="replace"))
    creator = file.create_group("h5md/creator")
    creator.attrs["name"] = np.bytes_("GrokPhys")
    creator.attrs["version"] = np.bytes_(made_with.get("grokphys", "unknown"))
    attributes = {
        "schema": np.bytes_(SCHEMA),
        "schema_version": np.int64(SCHEMA_VERSION),
        "code_version": np.bytes_(made_with.get("grokphys", "unknown")),
        "config": np.bytes_(json.dumps(dict(header.parameters), allow_nan=False).encode()),
        "seed": np.bytes_(json.dumps(header.parameters.get("seed"))),
        "libraries": np.bytes_(json.dumps(dict(made_with)).encode()),
        "identity": np.bytes_(header.identity),
        "complete": np.int64(complete),
    }
    group = file.create_group("parameters")
    for name, value in attributes.items():
        group.attrs[name] = value
    box = file.create_group("particles/tokens/box")
    box.attrs["dimension"] = np.int64(header.layout.dim)
    box.attrs["boundary"] = np.array([b"none"] * header.layout.dim)
    file.create_group("observables")


def _dataset(
    group: h5py.Group,
    name: str,
    shape: tuple[int, ...],
    dtype: Any,
    data: NDArray[Any] | None = None,
    rows: int = 0,
) -> h5py.Dataset:
    """Create a dataset with the chunks and filters of trajectories, whose first axis can grow.

    `rows` is the expected length of the first axis if there are no `data`; 0 if it is unknown. The type bool
    is stored as int8 with an attribute, as xarray expects.
    """
    dtype = np.dtype(dtype)
    stored = np.dtype("i1") if dtype.kind == "b" else dtype
    dataset = group.create_dataset(
        name,
        shape=shape,
        dtype=stored,
        data=data,
        maxshape=(None, *shape[1:]),
        chunks=chunk_shape((len(data) if data is not None else rows, *shape[1:]), stored.itemsize),
        **FILTERS,
    )
    if dtype.kind == "b":
        dataset.attrs["dtype"] = "bool"  # as xarray expects
    return dataset


def chunk_shape(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return the shape of the chunks in which HDF5 stores a dataset, each of at most a megabyte.

    A chunk holds as many whole entries of the first axis, such as frames, as fit into half a megabyte. If one
    entry is larger than a megabyte, the chunk is a part of it, and its axes are halved from the second one
    on. A first axis of length 0 in `shape` means that its length is unknown. `itemsize` is the size of a
    number in bytes.
    """
    chunk = [max(n, 1) for n in shape]
    frame = itemsize * math.prod(chunk[1:])
    chunk[0] = max(min(CHUNK_BYTES // max(frame, 1), shape[0] or CHUNK_BYTES), 1)
    axis = 1
    while itemsize * math.prod(chunk) > 2 * CHUNK_BYTES:
        while chunk[axis] == 1:
            axis += 1
        chunk[axis] = -(-chunk[axis] // 2)
    return tuple(chunk)


def scale(group: h5py.Group, name: str, values: NDArray[Any]) -> h5py.Dataset:
    """Create and return a dimension scale: a dataset of `values` (n,) that labels an axis of others."""
    chunked = {"chunks": chunk_shape(values.shape, values.itemsize), **FILTERS} if len(values) else {}
    dataset = group.create_dataset(name, data=values, **chunked)
    dataset.make_scale(name)
    return dataset


def attach(dataset: h5py.Dataset, *scales: h5py.Dataset) -> None:
    """Attach dimension scales to the leading axes of a dataset, in order, so that xarray labels them."""
    for axis, one in enumerate(scales):
        dataset.dims[axis].attach_scale(one)


def _clock(group: h5py.Group, frames: int) -> list["_Column"]:
    """Create the empty datasets of steps (int64) and times (float64) of a group, and return their columns.

    `frames` is the expected number of frames; 0 if it is unknown.
    """
    step, time = (_dataset(group, *one, rows=frames) for one in (("step", (0,), "i8"), ("time", (0,), "f8")))
    step.make_scale("step")
    time.dims[0].attach_scale(step)
    return [_Column(step), _Column(time)]


def _observable(
    file: h5py.File, name: str, dtype: np.dtype[Any], frame: tuple[int, ...], frames: int
) -> h5py.Group:
    """Create an empty observable of the shape `frame`, (runs, ...), in one frame, without steps and times.

    `frames` is the expected number of frames; 0 if it is unknown.
    """
    group = file["observables"].create_group(name)
    value = _dataset(group, "value", (0, *frame), dtype, rows=frames)
    for axis, length in enumerate(frame):
        value.dims[axis + 1].attach_scale(
            scale(group, f"axis_{axis - 1}" if axis else "run", np.arange(length))
        )
    return group


def _write_start(group: h5py.Group, start: Mapping[str, NDArray[Any]]) -> None:
    for name, values in start.items():
        column = _Column(_dataset(group, name, (0, *values.shape[1:]), values.dtype, rows=len(values)))
        column.append(values)
        column.finish()
        for axis, length in enumerate(values.shape):
            one = f"run_{length}" if not axis else f"axis_{axis - 1}_{length}"
            column.dataset.dims[axis].attach_scale(
                group[one] if one in group else scale(group, one, np.arange(length))
            )


class _Pool(ThreadPoolExecutor):
    """Threads that compress chunks: zlib runs in parallel, whereas HDF5 takes one call at a time."""

    def __init__(self) -> None:
        self.workers = min(os.cpu_count() or 1, 4)
        super().__init__(self.workers)


class _Column:
    """Appends blocks of rows to a dataset, and gives whole chunks to HDF5 already compressed."""

    def __init__(self, dataset: h5py.Dataset, pool: _Pool | None = None) -> None:
        self.dataset = dataset
        self._pool = pool
        self._shape = (dataset.chunks[0], *dataset.shape[1:])
        self._rows: list[NDArray[Any]] = []
        self._count = 0
        self._waiting: deque[tuple[tuple[int, ...], Future[bytes]]] = deque()

    def append(self, rows: NDArray[Any]) -> None:
        """Accept rows (n, ...), which are written once they fill a chunk."""
        self._rows.append(rows.reshape(len(rows), *self._shape[1:]))
        self._count += len(rows)
        if self._count >= self._shape[0]:
            whole = self._rows[0] if len(self._rows) == 1 else np.concatenate(self._rows)
            count = len(whole) // self._shape[0] * self._shape[0]
            self._rows, self._count = [whole[count:]] if count < len(whole) else [], len(whole) - count
            self._write(whole[:count])

    def finish(self) -> None:
        """Write the remaining rows."""
        if self._rows:
            self._write(np.concatenate(self._rows))
            self._rows = []
        self._drain(0)

    def _write(self, rows: NDArray[Any]) -> None:
        dataset, begin = self.dataset, len(self.dataset)
        dataset.resize(begin + len(rows), axis=0)
        rows = np.ascontiguousarray(rows, dataset.dtype)
        steps = dataset.chunks
        for corner in product(*(range(0, n, size) for n, size in zip(rows.shape, steps, strict=True))):
            inside = tuple(slice(at, at + size) for at, size in zip(corner, steps, strict=True))
            piece = rows[inside]
            address = (begin + corner[0], *corner[1:])
            if self._pool is not None and piece.shape == steps and 2 * piece.nbytes >= CHUNK_BYTES:
                self._waiting.append((address, self._pool.submit(_filtered, piece)))
                self._drain(2 * self._pool.workers)
            else:
                dataset[(slice(address[0], address[0] + len(piece)), *inside[1:])] = piece

    def _drain(self, most: int) -> None:
        while len(self._waiting) > most:
            address, packed = self._waiting.popleft()
            self.dataset.id.write_direct_chunk(address, packed.result())


def _filtered(values: NDArray[Any]) -> bytes:
    """Return the bytes that HDF5 stores for a chunk of at most a megabyte under `FILTERS`.

    HDF5's own pipeline runs in one thread and looks for repeated strings, which the digits of real numbers do
    not have. zlib's run-length encoding is three times as fast, and its result is smaller.
    """
    shuffled = np.ascontiguousarray(values).view(np.uint8).reshape(-1, values.itemsize).T.tobytes()
    packer = zlib.compressobj(1, strategy=zlib.Z_RLE)
    packed = packer.compress(shuffled) + packer.flush()
    return packed + fletcher32(packed).to_bytes(4, "little")


def fletcher32(data: bytes) -> int:
    """Return the checksum that HDF5 stores behind a chunk, a number of 32 bits.

    It consists of the sum of the big-endian 16-bit words of `data` and the sum of these partial sums, modulo
    65535. `data` has at most two megabytes, so that no sum overflows; a missing last byte counts as zero.
    """
    words = np.frombuffer(data + bytes(len(data) % 2), ">u2").astype(np.int64)
    sums = int(words.sum()), int(words @ np.arange(len(words), 0, -1))
    low, high = (total % 65535 or (65535 if total else 0) for total in sums)
    return high << 16 | low
