"""The trajectory file, H5MD 1.1, which xarray, pyh5md and MDAnalysis open too; and how it is read lazily.

A file may come from anyone. Therefore nothing outside the file is read (external storage, links, virtual
datasets), and only numbers are read (no objects, no references).

A file is written in one go, under a temporary name, when all frames are known, so it never has to survive a
crash. Every dataset has chunks of at most a megabyte, and the checksum fletcher32 of HDF5. Whole numbers and
truth values are compressed; the digits of real numbers hardly can be.
"""

import contextlib
import errno
import io
import json
import math
import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path as FilePath
from typing import Any, BinaryIO

import h5py
import numpy as np
from numpy.typing import NDArray

from physics.checks import file_path
from physics.errors import FileFormatError
from physics.trajectory import header as headers
from physics.trajectory.header import SCHEMA, SCHEMA_VERSION, Clock, Header, Layout, Path
from physics.trajectory.locks import replace_as_a_whole
from physics.trajectory.recording import Log, is_log
from physics.trajectory.trajectory import Trajectory
from physics.values import Array, Integers

POSITION = "particles/tokens/position"


class StoredTrajectory(Trajectory):
    """A trajectory in a file that is read when needed; the file is opened for each read and closed again.

    `path` is a trajectory file, or the log ``NAME.partial`` of an unfinished run. A missing file is a
    `FileNotFoundError`, and one that is not a readable trajectory a `FileFormatError`.
    """

    def __init__(self, path: Path) -> None:
        self.path = file_path("path", path)
        self._look()

    def _look(self) -> None:
        """Read everything except positions and observables."""
        with _damage(self.path):
            log = self.path.is_file() and is_log(self.path)
            self._take(Log(self.path) if log else TrajectoryFile(self.path))

    def _take(self, source: "Log | TrajectoryFile") -> None:
        """Take what a file holds at present."""
        header, layout = source.header, source.header.layout
        self._source, self._chunk, self._clocks = source, source.chunk, source.clocks
        self.steps, self.times, self.complete = source.steps, source.times, source.complete
        self._dtype = np.dtype(layout.dtype)
        self._shape = (layout.runs, len(self.steps), layout.tokens, layout.dim)
        self._types = {name: (np.dtype(kind), tuple(s)) for name, (kind, s) in layout.observables.items()}
        self.parameters, self.made_with = dict(header.parameters), dict(header.made_with)
        self.identity, self.start = header.identity, header.start
        self._cache: NDArray[Any] | None = None
        self._observables = _LazyArrays(self._types, lambda name: _by_run(self._rows(name, slice(None))))

    def refresh(self) -> int:
        """Read new frames of an unfinished run; see `Trajectory.refresh`."""
        before, log = self.frames, self._source
        if isinstance(log, Log):
            try:
                with _damage(self.path):
                    log.refresh()
            except FileNotFoundError:
                self._become_finished()
            else:
                if not np.array_equal(self.steps, log.steps) or self.complete != log.complete:
                    self._take(log)
        return self.frames - before

    def _become_finished(self) -> None:
        """Continue with the file that was made from the lost log; refuse the file of another run."""
        finished = FilePath(str(self.path).removesuffix(".partial"))
        if StoredTrajectory(finished).identity != self.identity:
            raise FileFormatError(f"{self.path} no longer exists, and {finished} is another run")
        self.path = finished
        self._look()

    @property
    def positions(self) -> NDArray[Any]:
        """Positions of all frames, (runs, frames, tokens, dim), read on first use and kept in memory."""
        if self._cache is None:
            self._cache = _by_run(self._rows(None, slice(None)))
        return self._cache

    def _kinds(self) -> Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]]:
        return self._types

    def _read(self, runs: slice, frames: slice) -> NDArray[Any]:
        if self._cache is not None:
            return self._cache[runs, frames]
        return _by_run(self._rows(None, frames)[:, runs])

    def _rows(self, name: str | None, frames: slice) -> NDArray[Any]:
        """Return some frames of the positions (None) or of an observable, (n, runs, ...)."""
        count = self.frames if name is None else len(self.clock(name)[0])
        try:
            with _damage(self.path):
                return self._source.read(name, range(count)[frames])
        except FileNotFoundError:
            if not (self.complete and isinstance(self._source, Log)):
                raise
        self._become_finished()
        return self._rows(name, frames)

    def __reduce__(self) -> tuple[Any, ...]:
        return _in_memory, (self._arguments(),)  # which `copy.deepcopy` copies, as it would no partial


def _in_memory(arguments: dict[str, Any]) -> Trajectory:
    return Trajectory(**arguments)


def _by_run(rows: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(np.moveaxis(rows, 1, 0))


class _LazyArrays(Mapping[str, NDArray[Any]]):
    """Arrays of a file by name, each of which is read on first use and kept."""

    def __init__(self, names: Any, read: Callable[[str], NDArray[Any]]) -> None:
        self._values: dict[str, NDArray[Any] | None] = dict.fromkeys(names)
        self._read = read

    def __getitem__(self, name: str) -> NDArray[Any]:
        values = self._values[name]
        if values is None:
            values = self._values[name] = self._read(name)
        return values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


# -- what a file holds -------------------------------------------------------------------------------------


class TrajectoryFile:
    """What a file holds, with the attributes and methods of a `Log`; its arrays are read on request."""

    def __init__(self, path: FilePath) -> None:
        self.path = path
        self._stamp = self._stat()
        with self._opened() as file:
            attributes = _attributes_of(path, file)
            value = _dataset(file, f"{POSITION}/value")
            if value.ndim != 3 or value.dtype not in (np.float32, np.float64):
                raise ValueError(f"positions are {value.dtype} {value.shape}")
            self.complete = bool(attributes["complete"])
            self.chunk = value.chunks[0] if value.chunks else 1
            runs, tokens = _runs_of(file, value.shape[1])
            self.steps, self.times = _clock_of(file, POSITION, len(value))
            types, self.clocks = {}, {}
            for name in _item(file, "observables"):
                values = _dataset(file, f"observables/{name}/value")
                if values.ndim < 2 or values.shape[1] != runs:
                    raise ValueError(f"{name!r} does not have {runs} runs")
                types[name] = "?" if _is_boolean(values) else values.dtype.str, values.shape[2:]
                if _item(file, f"observables/{name}/step") != _item(file, f"{POSITION}/step"):
                    self.clocks[name] = _clock_of(file, f"observables/{name}", len(values))
                elif len(values) != len(self.steps):
                    raise ValueError(f"{name!r} does not have {len(self.steps)} frames")
            names = list(_item(file, "parameters/start")) if _has(_item(file, "parameters"), "start") else []
            stored = {name: _dataset(file, f"parameters/start/{name}") for name in names}
            names = [name for name, values in stored.items() if "CLASS" not in values.attrs]
            self.header = Header(
                Layout(runs, tokens, value.shape[2], value.dtype.str, observables=types),
                headers.check_parameters(json.loads(attributes["config"]), runs),
                dict(json.loads(attributes.get("libraries", "{}"))),
                _LazyArrays(names, lambda name: self._whole(f"parameters/start/{name}")),
                bytes(attributes.get("identity", b"")).decode(),
            )

    def read(self, name: str | None, frames: range) -> NDArray[Any]:
        """Return some frames of the positions (None) or of an observable, (len(frames), runs, ...)."""
        part, layout = slice(frames.start, frames.stop, frames.step), self.header.layout
        if name is not None:
            return self._whole(f"observables/{name}/value", part)
        return self._whole(f"{POSITION}/value", part).reshape(-1, layout.runs, layout.tokens, layout.dim)

    def _whole(self, name: str, part: slice = slice(None)) -> NDArray[Any]:
        with self._opened() as file:
            stored = _dataset(file, name)
            values: NDArray[Any] = stored[part]
            return values.astype(bool) if _is_boolean(stored) else values

    def _stat(self) -> tuple[int, int, int]:
        stat = self.path.stat()
        return stat.st_ino, stat.st_size, stat.st_mtime_ns

    @contextlib.contextmanager
    def _opened(self) -> Iterator[h5py.File]:
        """Open the file for reading; every failure within the context is a `FileFormatError`."""
        with _damage(self.path):
            if self._stat() != self._stamp:
                raise FileFormatError(f"{self.path} has changed since it was opened; open it again")
            if not self.path.is_file():
                raise FileFormatError(f"{self.path} is a directory or a device, not a trajectory file")
            if not h5py.is_hdf5(self.path):
                raise FileFormatError(f"{self.path} is not an HDF5 file")
            with h5py.File(self.path, "r", locking="best-effort") as file:
                yield file


@contextlib.contextmanager
def _damage(path: FilePath) -> Iterator[None]:
    """Turn errors of reading, which have many types in h5py, into a `FileFormatError` that names `path`.

    A missing file remains a `FileNotFoundError`, with a message that names the file too.
    """
    try:
        yield
    except (FileFormatError, TimeoutError):  # or a signal handler ends the reading
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
    except (*headers.DAMAGED, OSError) as error:
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        text = "its end is missing" if "truncated file" in text else text
        raise FileFormatError(f"{path} is damaged: {text[:200]}") from error


def _attributes_of(path: FilePath, file: h5py.File) -> dict[str, Any]:
    """Return the attributes of a file, and refuse a file that is not ours or newer than this code."""
    attributes = {}
    group = _item(file, "parameters") if _has(file, "parameters") else file
    for name in ("schema", "schema_version", "config", "libraries", "identity", "complete"):
        if name in group.attrs:
            # HDF5 can hang on damaged strings of variable length
            if h5py.h5a.open(group.id, name.encode()).dtype.kind not in "iufS":
                raise ValueError(f"{name!r} is neither a number nor a string of fixed length")
            attributes[name] = group.attrs[name]
    if attributes.get("schema") != headers.SCHEMA.encode():
        kind = "an H5MD file of another program" if _has(file, "h5md") else "an HDF5 file"
        raise FileFormatError(f"{path} is {kind}, not a GrokPhys trajectory")
    headers.check_version(path, attributes["schema_version"])
    return attributes


def _has(place: Any, name: str) -> bool:
    """Return whether a group has a link of this name, without following it as ``in`` of h5py would."""
    return isinstance(place, h5py.Group) and place.id.links.exists(name.encode())


def _item(file: h5py.File, name: str) -> Any:
    """Return the object at a path in the file; links that lead elsewhere are refused."""
    place = file
    for part in name.split("/"):
        if not _has(place, part):
            raise ValueError(f"it holds no {name}")
        if place.id.links.get_info(part.encode()).type != h5py.h5l.TYPE_HARD:
            raise ValueError(f"{part} in {name} is a link, which is not followed")
        place = place[part]
    return place


def _dataset(file: h5py.File, name: str) -> h5py.Dataset:
    """Return a dataset of numbers that is stored entirely in this file, or raise an error."""
    place = _item(file, name)
    if not isinstance(place, h5py.Dataset) or place.shape is None:
        raise ValueError(f"{name} is not a dataset with values")
    if place.is_virtual or place.external:
        raise ValueError(f"{name} keeps its data in another file, which is not read")
    headers.observable_type(name, place.dtype)
    if place.chunks is None:
        whole = place.id.get_storage_size() == place.size * place.dtype.itemsize
    else:
        chunks = math.prod(-(-n // size) for n, size in zip(place.shape, place.chunks, strict=True))
        whole = place.id.get_num_chunks() == chunks
    if not whole:
        raise ValueError(f"{name} claims the shape {place.shape}, but less is stored")
    return place


def _is_boolean(values: h5py.Dataset) -> bool:
    """Return whether integers stand for booleans, which an attribute marks; its text is not read."""
    return bool(values.dtype == np.int8) and "dtype" in values.attrs


def _clock_of(file: h5py.File, group: str, length: int) -> Clock:
    """Return the steps and times of the `length` frames of a group."""
    step, time = _dataset(file, f"{group}/step"), _dataset(file, f"{group}/time")
    if not step.shape == time.shape == (length,) or step.dtype.kind not in "iu" or time.dtype.kind != "f":
        kinds = f"steps {step.dtype} {step.shape} and times {time.dtype} {time.shape}"
        raise ValueError(f"{group} has {kinds} for {length} frames")
    return headers.checked_clock(f"steps in {group}", step[:], time[:])


def _runs_of(file: h5py.File, points: int) -> tuple[int, int]:
    """Return the numbers of runs and tokens; refuse points that are not sorted by run, and then by token."""
    run, token = (_dataset(file, f"particles/tokens/{name}") for name in ("run", "token"))
    if not points or {run.shape, token.shape} != {(points,)} or {run.dtype.kind, token.dtype.kind} - {*"iu"}:
        kinds = f"{run.dtype} {run.shape} and {token.dtype} {token.shape}"
        raise ValueError(f"the runs and tokens of its {points} points are {kinds}")
    runs = int(run[-1]) + 1
    tokens, rest = divmod(points, runs) if 0 < runs <= points else (0, 1)
    sorted_points = [] if rest else divmod(np.arange(points), tokens)
    if rest or not all(map(np.array_equal, sorted_points, (run[:], token[:]))):
        raise ValueError(f"its {points} points are not sorted into {runs} runs and by token")
    return runs, tokens


# -- writing -----------------------------------------------------------------------------------------------

CHUNK_BYTES = 2**19
"""Size of a chunk in bytes that `chunk_shape` aims at."""
BLOCK_BYTES = 2**23
"""Size in bytes of what is written at a time."""
SPARE_BYTES = 2**15
"""More than what HDF5 needs to describe a dataset and its dimension scales, in bytes."""
VERSIONS = ("v110", "v110")


def write_file(path: FilePath, trajectory: Any, *, overwrite: bool, alone: bool = False) -> None:
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
        attach(_written(tokens, name, numbers), particle)
    for name in ("particle", "axis", "run", "token"):  # links, so that readers can open the group alone
        position[name] = tokens[name]
    _clock(position, trajectory.steps, trajectory.times)
    shape = (trajectory.frames, runs * count, trajectory.dim)
    value = _written(position, "value", partial(trajectory._rows, None), shape, trajectory.dtype)
    attach(value, position["step"], particle, axis)
    for name, (dtype, inner) in trajectory._kinds().items():
        group = file["observables"].create_group(name)
        steps, times = trajectory.clock(name)
        if name in trajectory._clocks:
            _clock(group, steps, times)
        else:
            for link in ("step", "time"):
                group[link] = position[link]
        value = _written(group, "value", partial(trajectory._rows, name), (len(steps), runs, *inner), dtype)
        labels = ["run", *(f"axis_{axis}" for axis in range(len(inner)))]
        scales = [scale(group, label, np.arange(n)) for label, n in zip(labels, value.shape[1:], strict=True)]
        attach(value, group["step"], *scales)
    for name, values in trajectory.start.items():
        start = file.require_group("parameters/start")
        value = _written(start, name, values)
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


def _written(group: h5py.Group, name: str, values: Any, *like: Any, grows: bool = True) -> h5py.Dataset:
    """Create a dataset, whose first axis can grow unless `grows` is false, and write it block by block.

    `values` are an array, or a function that returns the rows of a slice of the first axis of an array `like`
    (shape, dtype). The type bool is stored as int8 with an attribute, as xarray expects.
    """
    shape, dtype = like or (values.shape, values.dtype)
    rows = values if like else values.__getitem__
    stored = np.dtype("i1") if dtype.kind == "b" else dtype
    chunks = chunk_shape(shape, stored.itemsize)
    largest = (None, *shape[1:]) if grows or not shape[0] else None  # no chunk fits into an empty dataset
    options: dict[str, Any] = {"maxshape": largest, "chunks": chunks, "fletcher32": True}
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


def scale(group: h5py.Group, name: str, values: NDArray[Any], *, grows: bool = False) -> h5py.Dataset:
    """Create and return a dimension scale: a dataset of `values` (n,) that labels an axis of others."""
    dataset = _written(group, name, values, grows=grows)
    dataset.make_scale(name)
    return dataset


def attach(dataset: h5py.Dataset, *scales: h5py.Dataset) -> None:
    """Attach dimension scales to the leading axes of a dataset, in order, so that xarray labels them."""
    for axis, labels in enumerate(scales):
        dataset.dims[axis].attach_scale(labels)


def _clock(group: h5py.Group, steps: Integers, times: Array) -> None:
    """Write the steps and times of a group."""
    attach(_written(group, "time", times), scale(group, "step", steps, grows=True))
