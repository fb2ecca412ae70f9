"""Reading trajectory files, and the logs of unfinished runs, without trusting their content.

A file may come from anyone. Therefore nothing outside the file is read (external storage, links, virtual
datasets), only numbers are read (no objects, no references), and every size is compared with what the file
really stores before memory is allocated. Every failure raises a `FileFormatError` that names the file.
"""

import contextlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from physics.checks import file_path
from physics.errors import FileFormatError
from physics.trajectory.header import (
    Layout,
    Path,
    check_parameters,
    check_version,
    observable_name,
    observable_type,
)
from physics.trajectory.log import RECORD, Log, is_log
from physics.trajectory.trajectory import Trajectory
from physics.trajectory.views import LazyArrays

LARGEST_RATIO = 1100
"""Largest ratio of compression that is accepted: deflate cannot exceed it, so a larger claim is false."""
LARGEST_CHUNK = 2**26
"""Largest chunk in bytes that is accepted, unless all data are larger; a chunk is unpacked as a whole."""
BLOCK = 2**20
"""Number of points whose runs and tokens are checked at a time."""
READ = ("schema", "schema_version", "code_version", "config", "libraries", "identity", "complete")
"""Attributes that are read; those that other programs have added to a file are ignored."""


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
        self._log: Log | None = None
        self._forget()
        with damage(self.path):
            if self.path.is_file() and is_log(self.path):
                self._look_at_log(Log(self.path))
                self._stamp = self._stat()
                return
        self._stamp = self._stat()
        with _opened(self.path) as file:
            attributes = _attributes(self.path, file)
            position = "particles/tokens/position"
            value = _dataset(file, f"{position}/value")
            run, token = (_dataset(file, f"particles/tokens/{name}") for name in ("run", "token"))
            if value.ndim != 3 or value.dtype not in (np.float32, np.float64):
                raise FileFormatError(f"{self.path} is damaged: positions are {value.dtype} {value.shape}")
            self.complete = bool(attributes["complete"])
            runs, tokens = _runs(self.path, run, token, value.shape[1])
            self.steps, self.times = _clock(file, position, len(value), exact=self.complete)
            self._dtype, self._clocks, frames = value.dtype, {}, len(self.steps)
            self._types = {}
            self._found = [observable_name(name) for name in _item(file, "observables")]
            for name in self._found:
                observable = _dataset(file, f"observables/{name}/value")
                if observable.ndim < 2 or observable.shape[1] != runs:
                    raise FileFormatError(f"{self.path} is damaged: {name!r} does not have {runs} runs")
                dtype = np.dtype(bool) if _is_boolean(observable) else observable.dtype
                self._types[name] = dtype, observable.shape[2:]
                if _item(file, f"observables/{name}/step") == _item(file, f"{position}/step"):
                    if self.complete and len(observable) != frames:
                        raise FileFormatError(
                            f"{self.path} is damaged: {name!r} does not have {frames} frames"
                        )
                    frames = min(frames, len(observable))
                else:
                    self._clocks[name] = _clock(file, f"observables/{name}", len(observable), exact=True)
            self._shape = (runs, frames, tokens, value.shape[2])
            self.steps, self.times = self.steps[:frames], self.times[:frames]
            self.parameters = check_parameters(_configuration(self.path, attributes), runs)
            self.made_with = json.loads(attributes.get("libraries", "{}"))
            self.made_with.setdefault("grokphys", bytes(attributes["code_version"]).decode())
            self.identity = bytes(attributes.get("identity", b"")).decode()
            started = _dataset_names(file, "parameters/start")
        self.start = LazyArrays(lambda: started, lambda name: self._read_whole(f"parameters/start/{name}"))

    def _forget(self) -> None:
        self._cache: NDArray[Any] | None = None
        self._observables = LazyArrays(lambda: self._found, self._observable)

    def _kinds(self) -> Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]]:
        return self._types

    def _look_at_log(self, log: Log) -> None:
        if log.header is None or not log.begun:
            raise FileFormatError(f"{self.path} holds nothing: its process ended before it wrote anything")
        self._log, layout = log, log.layout
        self._dtype, self._clocks, self._found = np.dtype(layout.dtype), {}, list(layout.observables)
        self._types = {name: (np.dtype(kind), shape) for name, (kind, shape) in layout.observables.items()}
        self.parameters, self.made_with = dict(log.header.parameters), dict(log.header.made_with)
        self.identity = log.header.identity
        names = list(log.header.start)
        self.start = LazyArrays(lambda: names, self._started)
        self._take(log, layout)

    def _take(self, log: Log, layout: Layout) -> None:
        self.steps, self.times, self.complete = log.steps, log.times, log.complete
        self._shape = (layout.runs, log.frames, layout.tokens, layout.dim)

    @property
    def code_version(self) -> str:
        """Version of the package that recorded the trajectory."""
        return str(self.made_with.get("grokphys", "unknown"))

    def refresh(self) -> int:
        """Read new frames of an unfinished run, and return their number; refuse a file that was replaced."""
        before = self.frames
        if self._log is None:
            return 0
        try:
            with self._unchanged(), damage(self.path):
                self._log.refresh()
        except FileNotFoundError:
            self._become_finished()
        else:
            if self.frames != self._log.frames:
                self._forget()
            self._take(self._log, self._log.layout)
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
            self._cache = self._from_file(slice(None), slice(None))
        return self._cache

    def _read(self, runs: slice, frames: slice) -> NDArray[Any]:
        return self._from_file(runs, frames) if self._cache is None else self._cache[runs, frames]

    def _from_file(self, runs: slice, frames: slice) -> NDArray[Any]:
        first, last, _ = runs.indices(self.runs)
        taken = range(*frames.indices(self.frames))
        if self._log is not None:
            return self._from_log(
                lambda log: _by_run(log.read(2, taken)[:, first:last]), lambda: self._from_file(runs, frames)
            )
        with self._unchanged(), _opened(self.path) as file:
            value = file["particles/tokens/position/value"]
            block = value[taken.start : taken.stop : taken.step, first * self.tokens : last * self.tokens]
        return _by_run(block.reshape(len(taken), last - first, self.tokens, self.dim))

    def _from_log(self, read: Callable[[Log], Any], again: Callable[[], Any]) -> Any:
        """Return what `read` finds in the log, or `again` in the file that a complete log has become."""
        assert self._log is not None
        try:
            with self._unchanged(), damage(self.path):
                return read(self._log)
        except FileNotFoundError:
            if not self.complete:
                raise
        self._become_finished()
        return again()

    def _started(self, name: str) -> NDArray[Any]:
        if self._log is None:
            return self.start[name]
        return self._from_log(lambda log: log.start()[name], lambda: self.start[name])

    def _observable(self, name: str) -> NDArray[Any]:
        count = len(self.clock(name)[0])
        if self._log is not None:
            at = 3 + self._found.index(name)
            return self._from_log(
                lambda log: _by_run(log.read(at, range(count))), lambda: self._observable(name)
            )
        return _by_run(self._read_whole(f"observables/{name}/value")[:count])

    def _read_whole(self, name: str) -> NDArray[Any]:
        with self._unchanged(), _opened(self.path) as file:
            dataset = _dataset(file, name)
            values: NDArray[Any] = dataset[...]
            return values.astype(bool) if _is_boolean(dataset) else values

    @contextlib.contextmanager
    def _unchanged(self) -> Iterator[None]:
        now = self._stat()
        if now != self._stamp:
            raise FileFormatError(f"{self.path} has changed since it was opened; open it again")
        yield

    def _stat(self) -> tuple[int, ...]:
        """Return what distinguishes one file from another; a log that has grown is still the same file."""
        try:
            stat = self.path.stat()
        except FileNotFoundError:
            raise _nothing_there(self.path) from None
        except OSError as error:
            raise FileFormatError(f"{self.path} cannot be read: {error.strerror}") from None
        if self._log is None:
            return stat.st_ino, stat.st_size, stat.st_mtime_ns
        with self.path.open("rb") as file:  # its first record is unique to the log
            return stat.st_ino, *file.read(RECORD.size)


def _by_run(values: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(np.moveaxis(values, 1, 0))


@contextlib.contextmanager
def damage(path: FilePath) -> Iterator[None]:
    """Turn errors of reading, which have many types in h5py, into a `FileFormatError` that names `path`.

    A missing file remains a `FileNotFoundError`, with a message that names the file too.
    """
    try:
        yield
    except FileFormatError:
        raise
    except FileNotFoundError:
        raise _nothing_there(path) from None
    except PermissionError:
        raise FileFormatError(f"{path} cannot be read: no permission") from None
    except MemoryError:
        raise FileFormatError(f"{path} holds more than this machine's memory") from None
    except Exception as error:
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise FileFormatError(f"{path} is damaged: {text[:200]}") from error


@contextlib.contextmanager
def _opened(path: FilePath) -> Iterator[h5py.File]:
    with damage(path):
        if path.is_dir():
            raise FileFormatError(f"{path} is a directory, not a trajectory file")
        if not path.is_file():
            raise FileFormatError(f"{path} is not a regular file but a device or a pipe")
        if path.stat().st_size == 0:
            raise FileFormatError(f"{path} is empty, so it is not a trajectory file")
        try:
            file = h5py.File(path, "r", locking="best-effort")
        except BlockingIOError:
            raise FileFormatError(
                f"{path} is being written by another program, so it cannot be read yet"
            ) from None
        except OSError as error:
            if not h5py.is_hdf5(path):
                raise FileFormatError(f"{path} is not an HDF5 file") from None
            if "truncated file" in str(error):
                raise FileFormatError(f"{path} is truncated: its end is missing") from None
            raise
        with file:
            yield file


def _nothing_there(path: FilePath) -> FileNotFoundError:
    import errno

    unfinished = path.with_name(path.name + ".partial")
    more = f"; the run is unfinished; open {unfinished} to see its frames" if unfinished.exists() else ""
    return FileNotFoundError(errno.ENOENT, f"there is no file {path}{more}")


def _attributes(path: FilePath, file: h5py.File) -> Mapping[str, Any]:
    """Return the attributes of a file, and refuse a file that is not ours or newer than this code."""
    group = _item(file, "parameters") if _has(file, "parameters") else None
    attributes = {name: _attribute(group, name) for name in READ if group is not None and name in group.attrs}
    name = attributes.get("schema")
    if not isinstance(name, bytes) or "schema_version" not in attributes:
        kind = "an H5MD file of another program" if _has(file, "h5md") else "an HDF5 file"
        raise FileFormatError(f"{path} is {kind}, not a GrokPhys trajectory")
    check_version(path, name.decode(errors="replace"), attributes["schema_version"])
    return attributes


def _attribute(place: Any, name: str) -> Any:
    """Return an attribute; refuse strings of variable length, on whose damaged storage HDF5 can hang."""
    if h5py.h5a.open(place.id, name.encode()).dtype.kind not in "iufS":
        raise ValueError(f"{name!r} of {place.name} is neither a number nor a string of fixed length")
    return place.attrs[name]


def _is_boolean(dataset: h5py.Dataset) -> bool:
    """Return whether integers stand for booleans, which an attribute marks; its text is not read."""
    return dataset.dtype == np.int8 and "dtype" in dataset.attrs


def _has(place: Any, name: str) -> bool:
    """Return whether a group has a link of this name, without following it as ``in`` of h5py would."""
    return isinstance(place, h5py.Group) and place.id.links.exists(name.encode())


def _item(file: h5py.File, name: str) -> Any:
    """Return the object at a path in the file; links that lead elsewhere are refused."""
    place, within = file, ""
    for part in name.split("/"):
        within = f"{within}/{part}"
        if not _has(place, part):
            raise ValueError(f"it holds no {name}")
        if place.id.links.get_info(part.encode()).type != h5py.h5l.TYPE_HARD:
            raise ValueError(f"{within} is a link, which is not followed")
        place = place[part]
    return place


def _configuration(path: FilePath, attributes: Mapping[str, Any]) -> Any:
    try:
        return json.loads(attributes["config"])
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise FileFormatError(f"{path} is damaged: its configuration cannot be read ({error})") from None


def _dataset(file: h5py.File, name: str) -> h5py.Dataset:
    """Return a dataset of numbers that is stored entirely in this file, or raise an error."""
    place, within = _item(file, name), f"/{name}"
    if not isinstance(place, h5py.Dataset):
        raise ValueError(f"{within} is not a dataset")
    if place.is_virtual or place.external:
        raise ValueError(f"{within} keeps its data in another file, which is not read")
    if place.shape is None:
        raise ValueError(f"{within} is empty")
    observable_type(name, place.dtype)
    stored, claimed = place.id.get_storage_size(), math.prod(place.shape) * place.dtype.itemsize
    whole = stored == claimed
    if place.chunks is not None:
        count = math.prod(-(-n // size) for n, size in zip(place.shape, place.chunks, strict=True))
        chunk = math.prod(place.chunks) * place.dtype.itemsize
        whole = place.id.get_num_chunks() == count and count * chunk <= LARGEST_RATIO * stored
        whole &= chunk <= max(LARGEST_CHUNK, claimed)
    if not whole or stored > file.id.get_filesize():
        raise ValueError(f"{within} claims {claimed} bytes, but {stored} are stored")
    return place


def _dataset_names(file: h5py.File, name: str) -> list[str]:
    """Return the names of the arrays of a group, without dimension scales; none if there is no group."""
    if not _has(_item(file, name.rpartition("/")[0]), name.rpartition("/")[2]):
        return []
    found = {key: _dataset(file, f"{name}/{key}") for key in _item(file, name)}
    return [key for key, dataset in found.items() if "CLASS" not in dataset.attrs]


def _runs(path: FilePath, run: h5py.Dataset, token: h5py.Dataset, points: int) -> tuple[int, int]:
    """Return the numbers of runs and tokens; refuse points that are not sorted by run, and then by token."""
    for name, column in (("run", run), ("token", token)):
        if column.shape != (points,) or not points or column.dtype.kind not in "iu":
            got = f"{column.dtype} {column.shape}"
            raise FileFormatError(f"{path} is damaged: the {name} numbers of its {points} points are {got}")
    runs = int(run[-1]) + 1
    tokens, rest = divmod(points, runs) if 0 < runs <= points else (0, 1)
    for begin in range(0, points, BLOCK):
        end = min(begin + BLOCK, points)
        expected = [] if rest else divmod(np.arange(begin, end), tokens)
        if not expected or not all(map(np.array_equal, expected, (run[begin:end], token[begin:end]))):
            what = f"its {points} points are not sorted into {runs} runs and by token"
            raise FileFormatError(f"{path} is damaged: {what}")
    return runs, tokens


def _clock(file: h5py.File, group: str, length: int, *, exact: bool) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the steps and times of the `length` frames of a group.

    Unless `exact`, frames at the end for which a step or a time is missing are left out.
    """
    step, time = _dataset(file, f"{group}/step"), _dataset(file, f"{group}/time")
    frames = min(length, *step.shape, *time.shape)
    if step.ndim != 1 or time.ndim != 1 or (exact and not len(step) == len(time) == length):
        raise ValueError(
            f"{group} has steps of shape {step.shape} and times of shape {time.shape} for {length} frames"
        )
    if step.dtype.kind not in "iu" or time.dtype.kind != "f":
        raise ValueError(f"steps in {group} are {step.dtype}, and times {time.dtype}")
    steps, times = step[:frames].astype(np.int64), time[:frames].astype(np.float64)
    if np.any(steps[1:] <= steps[:-1]):
        raise ValueError(f"steps in {group} do not increase")
    if not np.isfinite(times).all():
        raise ValueError(f"times in {group} are not all finite")
    return steps, times
