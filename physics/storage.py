"""The trajectory file: H5MD 1.1 that xarray, pyh5md and MDAnalysis open, and that survives a kill.

Layout, writer and reader are one schema; its name and version stand in ``/parameters``. The rules that
keep a killed run readable:

* the structure is written and flushed before the first frame, under the name ``NAME.partial``;
* a flush changes the file all at once or not at all (`physics.transactions`): a kill, or a disk that is
  full, leaves the file of the flush before;
* a chunk is written once, compressed, when it is full; where a slow run flushes early, its chunk is stored
  unfiltered at full size, and rewritten in place. No space is ever freed, so the file does not grow by
  flushing often; steps, times and small observables are not filtered, for the same reason;
* a reader trims to the shortest of step, time and value;
* the finished file is synced and takes its name in one atomic step.
"""

import contextlib
import errno
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path as FilePath
from time import monotonic
from typing import Any, Self

import h5py
import numpy as np
from numpy.typing import NDArray

from physics.errors import InputError, OutputError
from physics.hdf5 import (
    CHUNK_BYTES,
    append_chunk,
    attach,
    chunk_shape,
    extend,
    scale,
    whole_chunk,
)
from physics.locks import locked
from physics.recording import Layout
from physics.stored import SCHEMA, SCHEMA_VERSION, StoredTrajectory
from physics.trajectory import Clock, Path, Trajectory
from physics.transactions import TransactionalFile

SMALL_FRAME_BYTES = 4096
FLUSH_SECONDS = 2.0
FILTERS = {"compression": "gzip", "compression_opts": 1, "shuffle": True, "fletcher32": True}


@cache
def code_version() -> str:
    """Version of the package, with the commit where it runs from a checkout."""
    version = metadata.version("grokphys")
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--exclude=*"],
            cwd=FilePath(__file__).parent,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
        version += "+g" + described.stdout.strip()
    return version


class TrajectoryWriter:
    """Streams frames to ``path.partial`` and names it ``path`` when the run is complete.

    Used as a context manager. On an exception the unfinished file stays, holding every frame appended
    so far; it is removed where there is none.

    Parameters
    ----------
    path : path
        The finished file.
    layout : Layout
        Sizes, number type and observables.
    parameters : mapping
        How the run is made; JSON must hold it.
    overwrite : bool
        As in `physics.simulate`.
    resume : bool, optional
        The same; None where the caller cannot go on with an unfinished run.

    Raises
    ------
    OutputError
        If the file or an unfinished one exists, another process writes it, or the directory cannot be
        written. Nothing has been touched then.
    InputError
        If the unfinished file to resume has another configuration; the difference is shown.
    """

    def __init__(
        self,
        path: Path,
        layout: Layout,
        parameters: Mapping[str, Any],
        *,
        overwrite: bool = False,
        resume: bool | None = None,
    ) -> None:
        self.path = FilePath(path)
        if self.path.is_dir():
            raise OutputError(f"cannot write {self.path}: it is a directory")
        self.partial = self.path.with_name(self.path.name + ".partial")
        self.where = f" in {self.partial}"
        self.layout = layout
        self.parameters = dict(parameters)
        self.frames = 0
        self._overwrite = overwrite
        self._buffer: list[tuple[int, float, NDArray[Any], dict[str, NDArray[Any]]]] = []
        self._tails: dict[str | None, NDArray[Any]] = {}  # the unfiltered chunk at the end of each dataset
        self._refuse_existing(resume)
        if resume and self.partial.exists():
            self._open_unfinished()
        else:
            self._create()
        self._flushed_at = monotonic()

    # -- frames ------------------------------------------------------------------------------------------

    def append(self, step: int, time: float, positions: NDArray[Any], **observables: NDArray[Any]) -> None:
        """Keep a copy of one frame; it is on disk when its chunk is full, or after two seconds."""
        self._buffer.append(
            (
                step,
                time,
                np.array(positions, dtype=self.layout.dtype).reshape(-1, self.layout.dim),
                {name: np.array(values, dtype=np.float64) for name, values in observables.items()},
            )
        )
        self.frames += 1
        if len(self._buffer) >= self._room or monotonic() - self._flushed_at > FLUSH_SECONDS:
            self.flush()

    def flush(self, *, last: bool = False) -> None:
        """Write the waiting frames and flush the file; `last` compresses what is left of the last chunk."""
        if not self._buffer:
            return
        steps, times, positions, observables = zip(*self._buffer, strict=True)
        with self._sentences():
            self._storage.check()
            for name, dataset in self._values.items():
                frames = positions if name is None else [values[name] for values in observables]
                self._write(name, dataset, np.stack(frames), last)
            extend(self._time, np.array(times))
            extend(self._step, np.array(steps))  # last: a reader trims to the shortest
            self._file.flush()
            self._storage.commit()
        self._buffer.clear()
        self._flushed_at = monotonic()

    @property
    def _room(self) -> int:
        """Frames that the last chunk of the positions still takes, those waiting included."""
        return self._chunk_frames - (self.frames - len(self._buffer)) % self._chunk_frames

    def _write(self, name: str | None, dataset: h5py.Dataset, frames: NDArray[Any], last: bool) -> None:
        """Append frames that do not reach beyond the last chunk."""
        size = dataset.chunks[0]
        within = len(dataset) % size
        if whole_chunk(dataset, frames):
            append_chunk(dataset, frames)
            return
        whole = last or len(frames) % size == 0
        if dataset.compression is None or (not within and whole):
            extend(dataset, frames)
            return
        if not within:
            self._tails[name] = np.zeros((size, *dataset.shape[1:]), dataset.dtype)
        tail = self._tails[name]
        tail[within : within + len(frames)] = frames
        offset = (len(dataset) - within, *[0] * (dataset.ndim - 1))
        dataset.resize(len(dataset) + len(frames), axis=0)
        unfiltered = (1 << dataset.id.get_create_plist().get_nfilters()) - 1
        dataset.id.write_direct_chunk(offset, tail, filter_mask=unfiltered)

    def first_positions(self) -> NDArray[np.float64]:
        """Copy of the first frame."""
        return self._frame(0)

    def last_positions(self) -> NDArray[np.float64]:
        """Copy of the last frame."""
        return self._frame(self.frames - 1)

    @property
    def last_step(self) -> int:
        """Step of the last frame."""
        return int(self._buffer[-1][0] if self._buffer else self._step[-1])

    def result(self) -> Trajectory:
        """Open the finished file."""
        return Trajectory.open(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if error is None:
            self._complete()
            return
        with contextlib.suppress(OutputError):  # the first error is the one to report
            self.flush()
        with contextlib.suppress(OSError, RuntimeError):
            self._file.close()
        self._storage.close()
        if not self.frames:
            self.partial.unlink(missing_ok=True)

    def _frame(self, index: int) -> NDArray[np.float64]:
        shape = (self.layout.runs, self.layout.tokens, self.layout.dim)
        return np.asarray(self._value[index].reshape(shape), np.float64)

    # -- the file ----------------------------------------------------------------------------------------

    def _refuse_existing(self, resume: bool | None) -> None:
        directory = self.path.absolute().parent
        if not directory.is_dir():
            raise OutputError(f"cannot write {self.path}: the directory {directory} does not exist")
        if not os.access(directory, os.W_OK):
            raise OutputError(f"cannot write {self.path}: no permission to write in {directory}")
        if self.path.exists() and not self._overwrite:
            raise OutputError(f"{self.path} exists; choose another name or pass overwrite (--overwrite)")
        if self.partial.exists():
            if locked(self.partial):
                raise OutputError(
                    f"{self.partial} is being written by another process; wait for it or stop it"
                )
            if resume:
                return
            if not self._overwrite:
                go_on = "" if resume is None else "resume (--resume) to go on with it, or "
                raise OutputError(
                    f"{self.partial} holds an unfinished run; pass {go_on}overwrite (--overwrite) "
                    "to begin anew"
                )
            self.partial.unlink()

    def _create(self) -> None:
        layout = self.layout
        try:
            config = json.dumps(self.parameters, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InputError(f"parameters must be what JSON holds: {error}") from None
        self._refuse_full_disk()
        self._open("x")
        file = self._file
        with self._sentences():
            file.create_group("h5md").attrs["version"] = np.array([1, 1], np.int32)
            file.create_group("h5md/author").attrs["name"] = np.bytes_(_author())
            creator = file.create_group("h5md/creator")
            creator.attrs["name"] = np.bytes_("GrokPhys")
            creator.attrs["version"] = np.bytes_(code_version())

            parameters = file.create_group("parameters")
            parameters.attrs["schema"] = np.bytes_(SCHEMA)
            parameters.attrs["schema_version"] = np.int64(SCHEMA_VERSION)
            parameters.attrs["code_version"] = np.bytes_(code_version())
            parameters.attrs["config"] = np.bytes_(config.encode())
            parameters.attrs["seed"] = np.bytes_(json.dumps(self.parameters.get("seed")))
            parameters.attrs["complete"] = np.int64(0)

            tokens = file.create_group("particles/tokens")
            box = tokens.create_group("box")
            box.attrs["dimension"] = np.int64(layout.dim)
            box.attrs["boundary"] = np.array([b"none"] * layout.dim)
            position = tokens.create_group("position")
            points = layout.runs * layout.tokens
            particle = scale(tokens, "particle", np.arange(points))
            axis = scale(tokens, "axis", np.arange(layout.dim))
            tokens["run"] = np.repeat(np.arange(layout.runs), layout.tokens)
            tokens["token"] = np.tile(np.arange(layout.tokens), layout.runs)
            for name in ("run", "token"):
                attach(tokens[name], particle)
            for name in ("particle", "axis", "run", "token"):  # links, so that the group opens by itself
                position[name] = tokens[name]
            self._new_clock(position)
            position.create_dataset(
                "value",
                shape=(0, points, layout.dim),
                maxshape=(None, points, layout.dim),
                dtype=layout.dtype,
                chunks=chunk_shape((points, layout.dim), np.dtype(layout.dtype).itemsize, layout.frames),
                **FILTERS,
            )
            attach(position["value"], position["step"], particle, axis)
            file.create_group("observables")
            for name, tail in layout.observables.items():
                self._new_observable(name, (layout.runs, *tail))
            file.flush()
            self._storage.commit()
        self._find_datasets()

    def _open(self, mode: str) -> None:
        with self._sentences():
            self._storage = TransactionalFile(self.partial, mode)
            self._file = h5py.File(self._storage, "w" if mode == "x" else mode, libver=("v108", "v108"))

    def _new_clock(self, group: h5py.Group) -> None:
        for name, dtype in (("step", np.int64), ("time", np.float64)):
            group.create_dataset(name, shape=(0,), maxshape=(None,), chunks=(1024,), dtype=dtype)
        group["step"].make_scale("step")
        group["time"].dims[0].attach_scale(group["step"])

    def _new_observable(
        self, name: str, frame_shape: tuple[int, ...], dtype: Any = np.float64, *, own_clock: bool = False
    ) -> h5py.Group:
        """Make an empty observable, with the steps and times of the positions or its own."""
        group = self._file.create_group(f"observables/{name}")
        if own_clock:
            self._new_clock(group)
        else:
            for link in ("step", "time"):
                group[link] = self._file[f"particles/tokens/position/{link}"]
        frame_bytes = int(np.prod(frame_shape)) * np.dtype(dtype).itemsize
        large = frame_bytes >= SMALL_FRAME_BYTES or own_clock
        chunk = (
            chunk_shape(frame_shape, np.dtype(dtype).itemsize, 0)
            if large
            else (max(1, min(self.layout.frames or 1024, 1024, CHUNK_BYTES // frame_bytes)), *frame_shape)
        )
        if large and not own_clock and chunk[1:] == frame_shape:  # filled in step with the positions
            chunk = (self._file["particles/tokens/position/value"].chunks[0], *chunk[1:])
        group.create_dataset(
            "value",
            shape=(0, *frame_shape),
            maxshape=(None, *frame_shape),
            dtype=dtype,
            chunks=chunk,
            **(FILTERS if large else {}),
        )
        scales = [scale(group, "run", np.arange(frame_shape[0]))]
        scales += [scale(group, f"axis_{k}", np.arange(n)) for k, n in enumerate(frame_shape[1:])]
        attach(group["value"], group["step"], *scales)
        return group

    def _find_datasets(self) -> None:
        position = self._file["particles/tokens/position"]
        self._value, self._step, self._time = position["value"], position["step"], position["time"]
        self._chunk_frames: int = self._value.chunks[0]
        self._values: dict[str | None, h5py.Dataset] = {None: self._value}  # None: the positions
        for name in self.layout.observables:
            self._values[name] = self._file["observables"][name]["value"]

    def _open_unfinished(self) -> None:
        found = StoredTrajectory(self.partial)
        wanted = json.loads(json.dumps(self.parameters))
        different = [
            f"{key}: {found.parameters.get(key)!r} there, {wanted.get(key)!r} here"
            for key in sorted({*found.parameters, *wanted})
            if found.parameters.get(key) != wanted.get(key)
        ]
        if different:
            raise InputError(
                f"{self.partial} has another configuration and is not resumed ({'; '.join(different)})"
            )
        self._open("r+")
        self._find_datasets()
        self.frames = found.frames
        for dataset in (self._step, self._time, *self._values.values()):
            dataset.resize(self.frames, axis=0)
        for name, dataset in self._values.items():
            within = self.frames % dataset.chunks[0]
            self._tails[name] = np.zeros((dataset.chunks[0], *dataset.shape[1:]), dataset.dtype)
            self._tails[name][:within] = dataset[self.frames - within :]

    def write_series(self, name: str, values: NDArray[Any], clock: Clock) -> None:
        """Write a whole observable `values` (runs, n, ...) with its own steps and times."""
        with self._sentences():
            group = self._new_observable(
                name, (values.shape[0], *values.shape[2:]), values.dtype, own_clock=True
            )
            extend(group["step"], clock[0])
            extend(group["time"], clock[1])
            extend(group["value"], np.moveaxis(values, 1, 0))

    def _complete(self) -> None:
        self.flush(last=True)
        with self._sentences():
            self._file["parameters"].attrs["complete"] = np.int64(1)
            self._file.close()
            self._storage.commit()
            self._storage.sync()
            self._storage.close()
            if self._overwrite:
                self.partial.replace(self.path)
            else:
                self._link()

    def _link(self) -> None:
        """Take the final name without replacing a file that has come to bear it meanwhile."""
        try:
            os.link(self.partial, self.path)
        except FileExistsError:
            raise OutputError(
                f"{self.path} has come to exist meanwhile; the finished run is in {self.partial}"
            ) from None
        except OSError:  # a file system without hard links
            self.partial.rename(self.path)
        else:
            self.partial.unlink()

    def _refuse_full_disk(self) -> None:
        free = shutil.disk_usage(self.path.absolute().parent).free
        if free < 2**20:
            raise self._failure(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))

    @contextlib.contextmanager
    def _sentences(self) -> Iterator[None]:
        """Turn what the operating system or HDF5 says into a sentence about this file."""
        try:
            yield
        except OutputError:
            raise
        except (OSError, RuntimeError) as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> OutputError:
        reason = getattr(error, "strerror", None) or str(error)
        kept = f"; the frames written before are in {self.partial}" if self.frames else ""
        return OutputError(f"cannot write {self.path}: {reason}{kept}")


def save(trajectory: Trajectory, path: Path, *, overwrite: bool = False) -> None:
    """Write `trajectory` to `path`, block by block; see `Trajectory.save`."""
    shared = [name for name in trajectory.observables if name not in trajectory._clocks]
    layout = Layout(
        trajectory.runs,
        trajectory.tokens,
        trajectory.dim,
        str(trajectory.dtype),
        trajectory.frames,
        {name: trajectory.observables[name].shape[2:] for name in shared},
    )
    with TrajectoryWriter(path, layout, trajectory.parameters, overwrite=overwrite) as writer:
        for name in trajectory._clocks:
            writer.write_series(name, trajectory.observables[name], trajectory.clock(name))
        for block, positions in trajectory.blocks():
            for k, frame in enumerate(range(block.start, block.stop)):
                writer.append(
                    int(trajectory.steps[frame]),
                    float(trajectory.times[frame]),
                    positions[:, k],
                    **{name: trajectory.observables[name][:, frame] for name in shared},
                )


def _author() -> str:
    return os.environ.get("GROKPHYS_AUTHOR") or os.environ.get("USER") or "unknown"
