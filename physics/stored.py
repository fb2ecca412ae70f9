"""Reading the trajectory file: check that it is ours, trim to what is whole, read when used."""

import contextlib
import errno
import json
from collections.abc import Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from physics.errors import FileFormatError
from physics.trajectory import Path, Trajectory
from physics.transactions import TransactionalFile, has_journal

SCHEMA = "grokphys-trajectory"
SCHEMA_VERSION = 1


class StoredTrajectory(Trajectory):
    """A trajectory in a file, read when used. The file is opened for each read and closed again."""

    def __init__(self, path: Path) -> None:
        self.path = FilePath(path)
        with _reading(self.path) as file:
            parameters = _check_schema(self.path, file)
            position = file["particles/tokens/position"]
            run, value = file["particles/tokens/run"], position["value"]
            runs = int(run[-1]) + 1
            frames = min(len(value), len(position["step"]), len(position["time"]))
            self._shape = (runs, frames, value.shape[1] // runs, value.shape[2])
            self._dtype = value.dtype
            self.steps = position["step"][:frames]
            self.times = position["time"][:frames]
            self._clocks = {}
            self._names = list(file["observables"])
            for name in self._names:
                group = file["observables"][name]
                if group["step"] == position["step"]:
                    frames = min(frames, len(group["value"]))
                else:
                    n = min(len(group["step"]), len(group["time"]), len(group["value"]))
                    self._clocks[name] = (group["step"][:n], group["time"][:n])
            self._shape = (runs, frames, *self._shape[2:])
            self.steps, self.times = self.steps[:frames], self.times[:frames]
            self.parameters = parameters
            self.complete = bool(file["parameters"].attrs["complete"])
            self.code_version = file["parameters"].attrs["code_version"].decode()
        self._stamp = self._stat()
        self._cache: NDArray[Any] | None = None
        self._observables = _StoredObservables(self)

    @property
    def positions(self) -> NDArray[Any]:
        """All frames, (runs, frames, tokens, dim), read at the first use and kept."""
        if self._cache is None:
            self._cache = self._from_file(slice(None), slice(None))
        return self._cache

    def _read(self, runs: slice, frames: slice) -> NDArray[Any]:
        return self._from_file(runs, frames) if self._cache is None else self._cache[runs, frames]

    def _from_file(self, runs: slice, frames: slice) -> NDArray[Any]:
        first, last, _ = runs.indices(self.runs)
        taken = range(*frames.indices(self.frames))
        with self._open() as file:
            value = file["particles/tokens/position/value"]
            block = value[taken.start : taken.stop : taken.step, first * self.tokens : last * self.tokens]
        block = block.reshape(len(taken), last - first, self.tokens, self.dim)
        return np.ascontiguousarray(np.moveaxis(block, 1, 0))

    def read_observable(self, name: str) -> NDArray[Any]:
        """Read one observable, (runs, n, ...)."""
        with self._open() as file:
            values = file["observables"][name]["value"][: len(self.clock(name)[0])]
        return np.ascontiguousarray(np.moveaxis(values, 1, 0))

    @contextlib.contextmanager
    def _open(self) -> Iterator[h5py.File]:
        if self._stat() != self._stamp:
            raise FileFormatError(f"{self.path} has changed since it was opened; open it again")
        with _reading(self.path) as file:
            yield file

    def _stat(self) -> tuple[int, int, int]:
        stat = self.path.stat()
        return stat.st_ino, stat.st_size, stat.st_mtime_ns


class _StoredObservables(Mapping[str, NDArray[Any]]):
    """The observables of a file, each read when first asked for and kept."""

    def __init__(self, trajectory: StoredTrajectory) -> None:
        self._trajectory = trajectory
        self._kept: dict[str, NDArray[Any]] = {}

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._trajectory._names:
            raise KeyError(name)
        if name not in self._kept:
            self._kept[name] = self._trajectory.read_observable(name)
        return self._kept[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._trajectory._names)

    def __len__(self) -> int:
        return len(self._trajectory._names)


@contextlib.contextmanager
def _reading(path: FilePath) -> Iterator[h5py.File]:
    """Open a file for reading, or say in one sentence why that cannot be."""
    if not path.exists():
        raise FileNotFoundError(errno.ENOENT, f"there is no file {path}")
    if path.is_dir():
        raise FileFormatError(f"{path} is a directory, not a trajectory file")
    if path.stat().st_size == 0:
        raise FileFormatError(f"{path} is empty")
    storage = contextlib.ExitStack()
    try:
        if has_journal(path):
            file = h5py.File(storage.enter_context(TransactionalFile(path, "r")), "r")
        else:
            file = h5py.File(path, "r", locking="best-effort")
    except BlockingIOError:
        raise FileFormatError(f"{path} is being written by another process") from None
    except PermissionError:
        raise FileFormatError(f"{path} cannot be read: no permission") from None
    except OSError as error:
        if not h5py.is_hdf5(path):
            raise FileFormatError(f"{path} is not an HDF5 file") from None
        if "truncated file" in str(error):
            raise FileFormatError(f"{path} is truncated: its end is missing ({error})") from None
        raise FileFormatError(f"{path} is damaged: {error}") from None
    with storage, file:
        try:
            yield file
        except OSError as error:
            raise FileFormatError(f"{path} is damaged: {error}") from error


def _check_schema(path: FilePath, file: h5py.File) -> dict[str, Any]:
    """Return the parameters of a file that is ours and not newer than this code."""
    attributes = file["parameters"].attrs if "parameters" in file else {}
    name = attributes.get("schema")
    if not isinstance(name, bytes) or name.decode(errors="replace") != SCHEMA:
        kind = "an H5MD file of another program" if "h5md" in file else "an HDF5 file"
        raise FileFormatError(
            f"{path} is {kind}, not a GrokPhys trajectory (schema {SCHEMA!r}, found "
            f"{name.decode(errors='replace') if isinstance(name, bytes) else name!r})"
        )
    version = int(attributes["schema_version"])
    if version > SCHEMA_VERSION:
        raise FileFormatError(
            f"{path} has schema version {version}; this version of GrokPhys reads up to {SCHEMA_VERSION}, "
            "please upgrade"
        )
    missing = [
        item
        for item in ("particles/tokens/position/value", "particles/tokens/run", "observables")
        if item not in file
    ]
    if missing:
        raise FileFormatError(f"{path} is damaged: it holds no {missing[0]}")
    try:
        parameters = json.loads(attributes["config"])
    except (KeyError, ValueError) as error:
        raise FileFormatError(f"{path} is damaged: its configuration cannot be read ({error})") from None
    return dict(parameters)
