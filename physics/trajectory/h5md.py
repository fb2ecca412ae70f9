"""The trajectory file: H5MD 1.1, in a form that xarray, pyh5md and MDAnalysis open too.

The file is written in one go, under a temporary name, when all frames are known, so it never has to survive a
crash. Every dataset has chunks of at most a megabyte, and the checksum fletcher32 of HDF5. Whole numbers and
truth values are compressed; the digits of real numbers hardly can be.

A file may come from anyone. Therefore nothing outside the file is read (external storage, links, virtual
datasets), and only numbers are read (no objects, no references).
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
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from physics.errors import FileFormatError
from physics.trajectory.header import (
    DAMAGED,
    SCHEMA,
    SCHEMA_VERSION,
    check_version,
    checked_clock,
    observable_type,
)

CHUNK_BYTES = 2**19
"""Size of a chunk in bytes that `chunk_shape` aims at."""
BLOCK_BYTES = 2**23
"""Size in bytes of what is written at a time."""
LARGEST_CHUNK = 2**26
"""Largest chunk in bytes that is read, unless all data are larger; a chunk is unpacked as a whole."""
READ = ("schema", "schema_version", "code_version", "config", "libraries", "identity", "complete")
"""Attributes that are read; those that other programs have added to a file are ignored."""


# -- writing -----------------------------------------------------------------------------------------------


class _Disk(io.FileIO):
    """A file to which HDF5 writes, and which never refuses a write.

    HDF5 does not survive a write that fails: it crashes when it closes its objects. Therefore what does not
    fit on a full disk is kept in memory until HDF5 has closed the file; `error` then tells what has failed.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, "x+")
        self.error: OSError | None = None
        self._lost: list[tuple[int, bytes]] = []

    def write(self, data: Any) -> int:
        end, view = self.tell() + len(data), memoryview(data)
        try:
            while self.error is None and len(view):
                view = view[super().write(view) :]
        except OSError as error:
            self.error = error
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


def write_file(path: Path, trajectory: Any) -> None:
    """Write a `Trajectory` to the new file `path`, and return when the operating system has it on disk.

    HDF5 runs in a thread of its own: only the main thread receives signals, so that no exception of a signal
    handler ends a call of HDF5 midway. Such an exception ends the writing between two blocks.
    """
    cancelled: list[bool] = []
    outcome: list[BaseException | None] = []

    def write() -> None:
        try:
            with _Disk(path) as disk:

                def check() -> None:
                    if cancelled:
                        raise InterruptedError(errno.EINTR, "interrupted")
                    if disk.error is not None:
                        raise disk.error

                with h5py.File(disk, "w", libver=("v110", "v110")) as file:
                    _write(file, trajectory, check)
                check()
                os.fsync(disk.fileno())
            outcome.append(None)
        except BaseException as error:  # raised below
            outcome.append(error)

    interruption = None
    start_new_thread(write, ())
    while not outcome:
        try:
            time.sleep(0.002)
        except BaseException as error:  # of a signal handler
            cancelled.append(True)
            interruption = error
    failure = interruption or outcome.pop()
    if failure is not None:
        try:
            raise failure
        finally:
            del failure, interruption  # whose tracebacks refer to this frame


def _write(file: h5py.File, trajectory: Any, check: Callable[[], None]) -> None:
    """Write all groups and datasets; `check` is called after each block."""
    _describe(file, trajectory)
    points = trajectory.runs * trajectory.tokens
    tokens = file["particles/tokens"]
    position = tokens.create_group("position")
    particle, axis = (
        scale(tokens, "particle", np.arange(points)),
        scale(tokens, "axis", np.arange(trajectory.dim)),
    )
    run, token = divmod(np.arange(points), trajectory.tokens)
    for name, numbers in (("run", run), ("token", token)):
        attach(_dataset(tokens, name, numbers.shape, numbers.dtype, numbers.__getitem__), particle)
    for name in ("particle", "axis", "run", "token"):  # links, so that readers can open the group alone
        position[name] = tokens[name]
    _clock(position, trajectory.steps, trajectory.times)
    shape = (trajectory.frames, points, trajectory.dim)
    rows = partial(trajectory._rows, None)
    value = _dataset(position, "value", shape, trajectory.dtype, rows, check)
    attach(value, position["step"], particle, axis)
    for name, (dtype, inner) in trajectory._kinds().items():
        group = file["observables"].create_group(name)
        steps, times = trajectory.clock(name)
        if name in trajectory._clocks:
            _clock(group, steps, times)
        else:
            for link in ("step", "time"):
                group[link] = position[link]
        shape = (len(steps), trajectory.runs, *inner)
        value = _dataset(group, "value", shape, dtype, partial(trajectory._rows, name), check)
        scales = [
            scale(group, f"axis_{axis - 1}" if axis else "run", np.arange(length))
            for axis, length in enumerate(shape[1:])
        ]
        attach(value, group["step"], *scales)
    if trajectory.start:
        start = file.create_group("parameters/start")
        for name, values in trajectory.start.items():
            value = _dataset(start, name, values.shape, values.dtype, values.__getitem__, check)
            for axis, length in enumerate(values.shape):
                label = f"axis_{axis - 1}_{length}" if axis else f"run_{length}"
                if label not in start:
                    scale(start, label, np.arange(length))
                value.dims[axis].attach_scale(start[label])


def _describe(file: h5py.File, trajectory: Any) -> None:
    """Write the groups that describe a file, and how its content was made."""
    versions = trajectory.made_with
    file.create_group("h5md").attrs["version"] = np.array([1, 1], np.int32)
    author = os.environ.get("GROKPHYS_AUTHOR") or os.environ.get("USER") or "unknown"
    file.create_group("h5md/author").attrs["name"] = np.bytes_(author.encode(errors="replace"))
    creator = file.create_group("h5md/creator")
    creator.attrs["name"] = np.bytes_("GrokPhys")
    creator.attrs["version"] = np.bytes_(versions.get("grokphys", "unknown"))
    attributes = {
        "schema": np.bytes_(SCHEMA),
        "schema_version": np.int64(SCHEMA_VERSION),
        "code_version": np.bytes_(versions.get("grokphys", "unknown")),
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
    group: h5py.Group,
    name: str,
    shape: tuple[int, ...],
    dtype: Any,
    rows: Callable[[slice], NDArray[Any]],
    check: Callable[[], None] = lambda: None,
) -> h5py.Dataset:
    """Create a dataset whose first axis can grow, and write it block by block.

    The type bool is stored as int8 with an attribute, as xarray expects.
    """
    dtype = np.dtype(dtype)
    stored = np.dtype("i1") if dtype.kind == "b" else dtype
    chunks = chunk_shape(shape, stored.itemsize)
    dataset = group.create_dataset(
        name, shape=shape, dtype=stored, maxshape=(None, *shape[1:]), chunks=chunks, **_filters(stored)
    )
    if dtype.kind == "b":
        dataset.attrs["dtype"] = "bool"
    row_bytes = max(stored.itemsize * math.prod(shape[1:]), 1)
    step = max(BLOCK_BYTES // (row_bytes * chunks[0]), 1) * chunks[0]
    for begin in range(0, shape[0], step):
        part = slice(begin, min(begin + step, shape[0]))
        values = np.asarray(rows(part), stored, order="C")
        dataset[part] = values.reshape(part.stop - part.start, *shape[1:])
        check()
    return dataset


def _filters(dtype: np.dtype[Any]) -> dict[str, Any]:
    packed = {"compression": "gzip", "compression_opts": 1, "shuffle": True}
    return {"fletcher32": True} | (packed if dtype.kind in "iu" else {})


def chunk_shape(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return the shape of the chunks in which HDF5 stores a dataset, each of at most a megabyte.

    A chunk holds as many whole entries of the first axis, such as frames, as fit into half a megabyte. If one
    entry is larger than a megabyte, the chunk is a part of it, and its axes are halved from the second one
    on. `itemsize` is the size of a number in bytes.
    """
    chunk = [max(n, 1) for n in shape]
    frame = itemsize * math.prod(chunk[1:])
    chunk[0] = max(min(CHUNK_BYTES // max(frame, 1), chunk[0]), 1)
    axis = 1
    while itemsize * math.prod(chunk) > 2 * CHUNK_BYTES:
        while chunk[axis] == 1:
            axis += 1
        chunk[axis] = -(-chunk[axis] // 2)
    return tuple(chunk)


def scale(group: h5py.Group, name: str, values: NDArray[Any]) -> h5py.Dataset:
    """Create and return a dimension scale: a dataset of `values` (n,) that labels an axis of others."""
    dtype = np.asarray(values).dtype
    filters = {"chunks": chunk_shape(values.shape, dtype.itemsize), **_filters(dtype)} if len(values) else {}
    dataset = group.create_dataset(name, data=values, **filters)
    dataset.make_scale(name)
    return dataset


def attach(dataset: h5py.Dataset, *scales: h5py.Dataset) -> None:
    """Attach dimension scales to the leading axes of a dataset, in order, so that xarray labels them."""
    for axis, labels in enumerate(scales):
        dataset.dims[axis].attach_scale(labels)


def _clock(group: h5py.Group, steps: NDArray[np.int64], times: NDArray[np.float64]) -> None:
    """Write the steps and times of a group."""
    step, time = (
        _dataset(group, name, values.shape, values.dtype, values.__getitem__)
        for name, values in (("step", steps), ("time", times))
    )
    step.make_scale("step")
    time.dims[0].attach_scale(step)


# -- reading -----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def opened(path: Path) -> Iterator[h5py.File]:
    """Open an HDF5 file for reading; every failure within the context is a `FileFormatError`."""
    with damage(path):
        path.stat()
        if not path.is_file():
            raise FileFormatError(f"{path} is a directory or a device, not a trajectory file")
        if not h5py.is_hdf5(path):
            raise FileFormatError(f"{path} is not an HDF5 file")
        try:
            file = h5py.File(path, "r", locking="best-effort")
        except OSError as error:
            if isinstance(error, BlockingIOError) or "unable to lock" not in str(error):
                raise
            file = h5py.File(path, "r", locking=False)  # the file system has no locks
        with file:
            yield file


@contextlib.contextmanager
def damage(path: Path) -> Iterator[None]:
    """Turn errors of reading, which have many types in h5py, into a `FileFormatError` that names `path`.

    A missing file remains a `FileNotFoundError`, with a message that names the file too.
    """
    try:
        yield
    except FileFormatError:
        raise
    except FileNotFoundError:
        partial = path.with_name(path.name + ".partial")
        more = f"; the run is unfinished; open {partial} to see its frames" if partial.exists() else ""
        raise FileNotFoundError(errno.ENOENT, f"there is no file {path}{more}") from None
    except BlockingIOError:
        raise FileFormatError(f"{path} cannot be read yet: another program is writing it") from None
    except PermissionError:
        raise FileFormatError(f"{path} cannot be read: no permission") from None
    except MemoryError:
        raise FileFormatError(f"{path} holds more than this machine's memory") from None
    except TimeoutError:  # of a signal handler that ends the reading: nothing is said of the file
        raise
    except (*DAMAGED, OSError) as error:
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        text = "its end is missing" if "truncated file" in text else text
        raise FileFormatError(f"{path} is damaged: {text[:200]}") from error


def attributes_of(path: Path, file: h5py.File) -> Mapping[str, Any]:
    """Return the attributes of a file, and refuse a file that is not ours or newer than this code."""
    attributes = {}
    if has(file, "parameters"):
        group = item(file, "parameters")
        for name in READ:
            if name in group.attrs:
                # HDF5 can hang on damaged strings of variable length
                if h5py.h5a.open(group.id, name.encode()).dtype.kind not in "iufS":
                    raise ValueError(f"{name!r} is neither a number nor a string of fixed length")
                attributes[name] = group.attrs[name]
    schema = attributes.get("schema")
    if not isinstance(schema, bytes) or "schema_version" not in attributes:
        kind = "an H5MD file of another program" if has(file, "h5md") else "an HDF5 file"
        raise FileFormatError(f"{path} is {kind}, not a GrokPhys trajectory")
    check_version(path, schema.decode(errors="replace"), attributes["schema_version"])
    return attributes


def has(place: Any, name: str) -> bool:
    """Return whether a group has a link of this name, without following it as ``in`` of h5py would."""
    return isinstance(place, h5py.Group) and place.id.links.exists(name.encode())


def item(file: h5py.File, name: str) -> Any:
    """Return the object at a path in the file; links that lead elsewhere are refused."""
    place = file
    for part in name.split("/"):
        if not has(place, part):
            raise ValueError(f"it holds no {name}")
        if place.id.links.get_info(part.encode()).type != h5py.h5l.TYPE_HARD:
            raise ValueError(f"{part} in {name} is a link, which is not followed")
        place = place[part]
    return place


def dataset(file: h5py.File, name: str) -> h5py.Dataset:
    """Return a dataset of numbers that is stored entirely in this file, or raise an error."""
    place = item(file, name)
    if not isinstance(place, h5py.Dataset) or place.shape is None:
        raise ValueError(f"{name} is not a dataset with values")
    if place.is_virtual or place.external:
        raise ValueError(f"{name} keeps its data in another file, which is not read")
    observable_type(name, place.dtype)
    if place.chunks is None:
        whole = place.id.get_storage_size() == place.size * place.dtype.itemsize
    else:
        chunks = math.prod(-(-n // size) for n, size in zip(place.shape, place.chunks, strict=True))
        whole = place.id.get_num_chunks() == chunks
        whole &= math.prod(place.chunks) * place.dtype.itemsize <= max(LARGEST_CHUNK, place.nbytes)
    if not whole:
        raise ValueError(f"{name} claims the shape {place.shape}, but less is stored")
    return place


def is_boolean(values: h5py.Dataset) -> bool:
    """Return whether integers stand for booleans, which an attribute marks; its text is not read."""
    return bool(values.dtype == np.int8) and "dtype" in values.attrs


def clock_of(file: h5py.File, group: str, length: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the steps and times of the `length` frames of a group."""
    step, time = dataset(file, f"{group}/step"), dataset(file, f"{group}/time")
    if not step.shape == time.shape == (length,) or step.dtype.kind not in "iu" or time.dtype.kind != "f":
        kinds = f"steps {step.dtype} {step.shape} and times {time.dtype} {time.shape}"
        raise ValueError(f"{group} has {kinds} for {length} frames")
    return checked_clock(f"steps in {group}", step[:], time[:])


def runs_of(file: h5py.File, points: int) -> tuple[int, int]:
    """Return the numbers of runs and tokens; refuse points that are not sorted by run, and then by token."""
    run, token = (dataset(file, f"particles/tokens/{name}") for name in ("run", "token"))
    if not points or {run.shape, token.shape} != {(points,)} or {run.dtype.kind, token.dtype.kind} - {*"iu"}:
        kinds = f"{run.dtype} {run.shape} and {token.dtype} {token.shape}"
        raise ValueError(f"the runs and tokens of its {points} points are {kinds}")
    runs = int(run[-1]) + 1
    tokens, rest = divmod(points, runs) if 0 < runs <= points else (0, 1)
    sorted_points = [] if rest else divmod(np.arange(points), tokens)
    if rest or not all(map(np.array_equal, sorted_points, (run[:], token[:]))):
        raise ValueError(f"its {points} points are not sorted into {runs} runs and by token")
    return runs, tokens
