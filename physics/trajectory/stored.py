"""Trajectories in files, and in the logs of unfinished runs, which are read when they are used."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from physics.checks import file_path
from physics.errors import FileFormatError
from physics.trajectory.h5md import (
    attributes_of,
    clock_of,
    damage,
    dataset,
    has,
    is_boolean,
    item,
    opened,
    runs_of,
)
from physics.trajectory.header import Path, check_parameters, observable_name
from physics.trajectory.log import Log, is_log
from physics.trajectory.trajectory import Trajectory

POSITION = "particles/tokens/position"


class StoredTrajectory(Trajectory):
    """A trajectory in a file that is read when needed; the file is opened for each read and closed again.

    `path` is a trajectory file, or the log ``NAME.partial`` of an unfinished run. A missing file is a
    `FileNotFoundError`, and one that is not a readable trajectory a `FileFormatError`.
    """

    def __init__(self, path: Path) -> None:
        self.path = file_path("path", path)
        self._log: Log | None = None
        self._look()

    def _look(self) -> None:
        """Read everything except positions and observables."""
        self._cache: NDArray[Any] | None = None
        with damage(self.path):
            if self.path.is_file() and is_log(self.path):
                self._look_at_log(Log(self.path))
                return
            self._log, self._stamp = None, self._stat()
        with opened(self.path) as file:
            attributes = attributes_of(self.path, file)
            value = dataset(file, f"{POSITION}/value")
            if value.ndim != 3 or value.dtype not in (np.float32, np.float64):
                raise ValueError(f"positions are {value.dtype} {value.shape}")
            self.complete = bool(attributes["complete"])
            runs, tokens = runs_of(file, value.shape[1])
            self.steps, self.times = clock_of(file, POSITION, len(value))
            self._dtype, self._shape = value.dtype, (runs, len(value), tokens, value.shape[2])
            self._types, self._clocks = {}, {}
            for name in map(observable_name, item(file, "observables")):
                values = dataset(file, f"observables/{name}/value")
                if values.ndim < 2 or values.shape[1] != runs:
                    raise ValueError(f"{name!r} does not have {runs} runs")
                self._types[name] = np.dtype(bool) if is_boolean(values) else values.dtype, values.shape[2:]
                if item(file, f"observables/{name}/step") != item(file, f"{POSITION}/step"):
                    self._clocks[name] = clock_of(file, f"observables/{name}", len(values))
                elif len(values) != self.frames:
                    raise ValueError(f"{name!r} does not have {self.frames} frames")
            self.parameters = check_parameters(json.loads(attributes["config"]), runs)
            self.made_with = dict(json.loads(attributes.get("libraries", "{}")))
            self.made_with.setdefault("grokphys", bytes(attributes["code_version"]).decode())
            self.identity = bytes(attributes.get("identity", b"")).decode()
            initial = list(item(file, "parameters/start")) if has(item(file, "parameters"), "start") else []
            stored = {name: dataset(file, f"parameters/start/{name}") for name in initial}
            names = [name for name, values in stored.items() if "CLASS" not in values.attrs]
        self.start = LazyArrays(names, lambda name: self._whole(f"parameters/start/{name}"))
        self._observables = LazyArrays(self._types, self._observable)

    def _look_at_log(self, log: Log) -> None:
        header, layout = log.header, log.header.layout
        self._log, self._dtype, self._clocks = log, np.dtype(layout.dtype), {}
        self._types = {name: (np.dtype(kind), shape) for name, (kind, shape) in layout.observables.items()}
        self.parameters, self.made_with = dict(header.parameters), dict(header.made_with)
        self.identity = header.identity
        self.start = log.start()
        self._take(log)

    def _take(self, log: Log) -> None:
        layout = log.header.layout
        self.steps, self.times, self.complete = log.steps, log.times, log.complete
        self._shape = (layout.runs, len(log.steps), layout.tokens, layout.dim)
        self._cache, self._observables = None, LazyArrays(self._types, self._observable)

    @property
    def code_version(self) -> str:
        """Version of the package that recorded the trajectory."""
        return str(self.made_with.get("grokphys", "unknown"))

    def refresh(self) -> int:
        """Read new frames of an unfinished run; see `Trajectory.refresh`."""
        before = self.frames
        if self._log is None:
            return 0
        try:
            with damage(self.path):
                self._log.refresh()
        except FileNotFoundError:
            self._become_finished()
        else:
            if not np.array_equal(self.steps, self._log.steps) or self.complete != self._log.complete:
                self._take(self._log)
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

    def _observable(self, name: str) -> NDArray[Any]:
        return _by_run(self._rows(name, slice(None)))

    def _rows(self, name: str | None, frames: slice) -> NDArray[Any]:
        """Return some frames of the positions (None) or of an observable, (n, runs, ...)."""
        if self._log is not None:
            column = 2 if name is None else 3 + list(self._types).index(name)
            try:
                with damage(self.path):
                    return self._log.read(column, range(len(self._log.steps))[frames])
            except FileNotFoundError:
                if not self.complete:
                    raise
            self._become_finished()
        if name is None:
            rows = self._whole(f"{POSITION}/value", frames)
            return rows.reshape(len(rows), self.runs, self.tokens, self.dim)
        return self._whole(f"observables/{name}/value", frames)

    def _whole(self, name: str, part: slice = slice(None)) -> NDArray[Any]:
        if self._stat() != self._stamp:
            raise FileFormatError(f"{self.path} has changed since it was opened; open it again")
        with opened(self.path) as file:
            stored = dataset(file, name)
            values: NDArray[Any] = stored[part]
            return values.astype(bool) if is_boolean(stored) else values

    def _stat(self) -> tuple[int, int, int]:
        with damage(self.path):
            stat = self.path.stat()
        return stat.st_ino, stat.st_size, stat.st_mtime_ns

    def __reduce__(self) -> tuple[Any, ...]:
        return _in_memory, (self._arguments(),)


def _in_memory(arguments: dict[str, Any]) -> Trajectory:
    return Trajectory(**arguments)


def _by_run(rows: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(np.moveaxis(rows, 1, 0))


class LazyArrays(Mapping[str, NDArray[Any]]):
    """Arrays of a file by name, each of which is read on first use and kept."""

    def __init__(self, names: Any, read: Callable[[str], NDArray[Any]]) -> None:
        self._names, self._read = tuple(names), read
        self._values: dict[str, NDArray[Any]] = {}

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._values:
            if name not in self._names:
                raise KeyError(name)
            self._values[name] = self._read(name)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
