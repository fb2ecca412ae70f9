"""The trajectory file: H5MD 1.1, in a form that xarray, pyh5md and MDAnalysis open too.

The file is written in one go, under a temporary name, when all frames are known, so it never has to survive a
crash. Every dataset has chunks of at most a megabyte, and the checksum fletcher32 of HDF5. Whole numbers and
truth values are compressed; the digits of real numbers hardly can be.
"""

import contextlib
import io
import json
import math
import os
import uuid
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import h5py
import numpy as np
from numpy.typing import NDArray

from physics.trajectory.header import SCHEMA, SCHEMA_VERSION
from physics.trajectory.locks import replace_as_a_whole
from physics.values import Array, Integers

CHUNK_BYTES = 2**19
"""Size of a chunk in bytes that `chunk_shape` aims at."""
BLOCK_BYTES = 2**23
"""Size in bytes of what is written at a time."""
SPARE_BYTES = 2**15
"""More than what HDF5 needs to describe a dataset and its dimension scales, in bytes."""
VERSIONS = ("v110", "v110")


def write_file(path: Path, trajectory: Any, *, overwrite: bool, alone: bool = False) -> None:
    """Write a `Trajectory` to a new file; the arguments are those of `replace_as_a_whole`.

    HDF5 crashes if a write fails, as on a full disk. Therefore its space is reserved first; when the file is
    closed, HDF5 gives back what it has not used.
    """

    def write(file: BinaryIO) -> None:
        empty = io.BytesIO()
        h5py.File(empty, "w", libver=VERSIONS).close()
        file.write(empty.getvalue())
        file.flush()
        with contextlib.suppress(AttributeError):  # macOS has no such call
            os.posix_fallocate(file.fileno(), 0, _most_bytes(trajectory))
        with h5py.File(file.name, "r+", libver=VERSIONS, locking="best-effort") as h5:
            _write(h5, trajectory)

    replace_as_a_whole(path, write, alone=alone, ending="merging", overwrite=overwrite)


def _most_bytes(trajectory: Any) -> int:
    """Return a size in bytes that the file of a trajectory does not exceed."""
    t = trajectory
    parts = [((t.frames, t.runs * t.tokens, t.dim), t.dtype)]
    parts += [((len(t.clock(n)[0]), t.runs, *shape), dtype) for n, (dtype, shape) in t._kinds().items()]
    parts += [(values.shape, values.dtype) for values in t.start.values()]
    size = 2**18 + 2 * len(json.dumps([t.parameters, t.made_with]))
    for shape, dtype in parts:
        whole = [-(-n // c) * c for n, c in zip(shape, chunk_shape(shape, dtype.itemsize), strict=True)]
        size += math.prod(whole) * dtype.itemsize * 257 // 256 + 8 * sum(shape) + 16 * shape[0] + SPARE_BYTES
    return size


def _write(file: h5py.File, trajectory: Any) -> None:
    """Write all groups and datasets."""
    _describe(file, trajectory)
    runs, count = trajectory.runs, trajectory.tokens
    tokens = file["particles/tokens"]
    position = tokens.create_group("position")
    particle = scale(tokens, "particle", np.arange(runs * count))
    axis = scale(tokens, "axis", np.arange(trajectory.dim))
    for name, numbers in zip(("run", "token"), divmod(np.arange(runs * count), count), strict=True):
        attach(_dataset(tokens, name, numbers), particle)
    for name in ("particle", "axis", "run", "token"):  # links, so that readers can open the group alone
        position[name] = tokens[name]
    _clock(position, trajectory.steps, trajectory.times)
    shape = (trajectory.frames, runs * count, trajectory.dim)
    value = _dataset(position, "value", partial(trajectory._rows, None), shape, trajectory.dtype)
    attach(value, position["step"], particle, axis)
    for name, (dtype, inner) in trajectory._kinds().items():
        group = file["observables"].create_group(name)
        steps, times = trajectory.clock(name)
        if name in trajectory._clocks:
            _clock(group, steps, times)
        else:
            for link in ("step", "time"):
                group[link] = position[link]
        value = _dataset(group, "value", partial(trajectory._rows, name), (len(steps), runs, *inner), dtype)
        labels = ["run", *(f"axis_{axis}" for axis in range(len(inner)))]
        scales = [scale(group, label, np.arange(n)) for label, n in zip(labels, value.shape[1:], strict=True)]
        attach(value, group["step"], *scales)
    for name, values in trajectory.start.items():
        start = file.require_group("parameters/start")
        value = _dataset(start, name, values)
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


def _dataset(group: h5py.Group, name: str, values: Any, *like: Any) -> h5py.Dataset:
    """Create a dataset, whose first axis can grow, and write it block by block.

    `values` are an array, or a function that returns the rows of a slice of the first axis of an array `like`
    (shape, dtype). The type bool is stored as int8 with an attribute, as xarray expects.
    """
    shape, dtype = like or (values.shape, values.dtype)
    rows = values if like else values.__getitem__
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
        dataset[part] = np.asarray(rows(part), stored, order="C").reshape(part.stop - begin, *shape[1:])
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


def _clock(group: h5py.Group, steps: Integers, times: Array) -> None:
    """Write the steps and times of a group."""
    attach(_dataset(group, "time", times), scale(group, "step", steps))
