"""Recorders: they receive frames in order, keep a copy of each, and return a trajectory at the end.

A recorder for a file writes each frame at once to the log ``NAME.partial``. When the run is complete, it
makes the trajectory file of the log under the name ``NAME.merging``, and renames it.

A log is a head (a description of the run as a line of JSON, and its initial arrays), followed by one record
of fixed size for each frame, and by an end mark. Head and records have a checksum. A process that is killed,
or a disk that is full, can damage nothing but the last record, which a reader recognizes and leaves out.
"""

import contextlib
import math
import os
import struct
import warnings
import zlib
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from physics.checks import file_path, flag, require_memory
from physics.errors import FileFormatError, InputError, OutputError
from physics.trajectory.header import DAMAGED, Clock, Header, Layout, Path, checked_start
from physics.trajectory.locks import LockedFile, naming
from physics.trajectory.provenance import made_with, require_same
from physics.trajectory.trajectory import Trajectory, load
from physics.values import Arrays

HEAD = struct.Struct("<8sQI")
"""Magic bytes, and length and CRC-32 of the content of the head."""
RECORD = struct.Struct("<4sI")
"""Kind of the record, CRC-32 of its content, which begins with a clock."""
CLOCK = struct.Struct("<qd")
MAGIC, FRAME, END = b"GrokPhys", b"GPfr", RECORD.pack(b"GPen", 0)


def is_log(path: FilePath) -> bool:
    """Return whether an existing file begins with the bytes of a log."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


class EmptyLogError(FileFormatError):
    """A log has no whole head: its process was killed before it recorded anything."""


class Log:
    """The frames of a log, which another process may be writing; each is checked when it is first read.

    A damaged log is a `FileFormatError`, and so is one whose head is not complete.

    Attributes
    ----------
    header : Header
        Description of the run.
    steps, times : ndarray of int64 and of float64, shape (frames,)
        Step and time of each frame.
    complete : bool
        Whether the run is complete.
    """

    clocks: Mapping[str, Clock] = {}
    chunk = 1

    def __init__(self, path: FilePath) -> None:
        self.path = path
        with path.open("rb") as file:
            self._head = file.read(HEAD.size)
            if not MAGIC.startswith(self._head[: len(MAGIC)]):
                raise FileFormatError(f"{path} is not an unfinished run of this version; pass overwrite=True")
            _, length, checksum = HEAD.unpack(self._head.ljust(HEAD.size))
            self._begin = HEAD.size + length
            if self._begin > os.fstat(file.fileno()).st_size:
                raise EmptyLogError(f"{path} holds nothing: its process ended before it wrote anything")
            content = file.read(length)
        if zlib.crc32(content) != checksum:
            raise self._damaged("the checksum of its head fails")
        try:
            self.header = Header.from_bytes(path, content)
        except FileFormatError:
            raise
        except DAMAGED as error:
            raise self._damaged(f"its head cannot be read ({error})") from None
        sizes = [np.dtype(kind).itemsize * math.prod(shape) for _, kind, shape in self.header.layout.columns]
        *self._offsets, self._record = np.cumsum([RECORD.size + CLOCK.size, *sizes]).tolist()
        self.steps, self.times, self.complete = np.empty(0, np.int64), np.empty(0), False
        self.refresh()

    @property
    def end(self) -> int:
        """Position in bytes at which the last whole frame ends."""
        return self._begin + len(self.steps) * self._record

    def refresh(self) -> None:
        """Read what was added since the last call; a resumed run may have gone back to a checkpoint."""
        clocks: list[tuple[int, float]] = []
        with self.path.open("rb", buffering=2**20) as file:
            size = self._checked_size(file)
            self.forget(max((size - self._begin) // self._record, 0))
            file.seek(self.end)
            last = int(self.steps[-1]) if len(self.steps) else -(2**63) - 1
            while not self.complete:
                record = file.read(self._record)
                self.complete = record.startswith(END)
                if self.complete or len(record) < self._record or not any(record[: RECORD.size]):
                    break  # a record that is not whole; after a power failure there may be zeros
                kind, checksum = RECORD.unpack_from(record)
                if kind != FRAME or zlib.crc32(memoryview(record)[RECORD.size :]) != checksum:
                    if file.tell() >= size:  # the last one may still be being written
                        break
                    raise self._damaged(f"the checksum of frame {len(self.steps) + len(clocks)} fails")
                step, time = CLOCK.unpack_from(record, RECORD.size)
                if step <= last or not math.isfinite(time):
                    raise self._damaged("its steps do not increase, or a time is not finite")
                last = step
                clocks.append((step, time))
        self.steps = np.append(self.steps, np.array([step for step, _ in clocks], np.int64))
        self.times = np.append(self.times, [time for _, time in clocks])

    def forget(self, frames: int) -> None:
        """Forget all but the first `frames` frames; only this object changes."""
        if frames < len(self.steps):
            self.steps, self.times, self.complete = self.steps[:frames], self.times[:frames], False

    def read(self, name: str | None, frames: range) -> NDArray[Any]:
        """Return some frames of the positions (None) or of an observable, (len(frames), runs, ...)."""
        layout = self.header.layout
        column = 0 if name is None else 1 + list(layout.observables).index(name)
        _, kind, shape = layout.columns[column]
        values = np.empty((len(frames), *shape), kind)
        with self.path.open("rb") as file:
            self._checked_size(file)
            for row, frame in zip(values.reshape(len(frames), math.prod(shape)), frames, strict=True):
                file.seek(self._begin + frame * self._record + self._offsets[column])
                if file.readinto(row.view(np.uint8).data) < row.nbytes:
                    raise self._damaged("it ends before its last recorded frame")
        return values

    def _checked_size(self, file: BinaryIO) -> int:
        """Return the size in bytes of the open log, which must be the one that was opened first."""
        if file.read(HEAD.size) != self._head:
            raise FileFormatError(f"{self.path} has changed since it was opened; open it again")
        return os.fstat(file.fileno()).st_size

    def _damaged(self, why: str) -> FileFormatError:
        return FileFormatError(f"{self.path} is damaged: {why}")


class MemoryRecorder(contextlib.AbstractContextManager["MemoryRecorder"]):
    """Keeps frames in arrays in memory, which have the size of the whole run from the start.

    `layout` gives the sizes, types and number of the frames, `parameters` say how the run is made, and
    `start` holds arrays with which the run begins, (runs, ...) each. If the positions of all frames need more
    memory than the machine has, an `InputError` is raised.
    """

    where = " in memory (attribute `recorded` of this error)"
    resumed: Trajectory | None = None

    def __init__(self, layout: Layout, parameters: Mapping[str, Any], start: Arrays | None = None) -> None:
        columns = [(dtype, (shape[0], layout.frames, *shape[1:])) for _, dtype, shape in layout.columns]
        dtype, shape = columns[0]
        what = f"{layout.frames} frames of {layout.runs} runs"
        advice = "record less often, or give out, so that they are streamed to a file"
        require_memory(what, math.prod(shape) * np.dtype(dtype).itemsize, advice)
        self.frames, self.last_step, self.complete = 0, -1, False
        self._steps, self._times = np.empty(layout.frames, np.int64), np.empty(layout.frames)
        self._columns = [np.empty(shape, dtype) for dtype, shape in columns]
        self._layout, self._parameters, self._start = layout, parameters, start

    def append(
        self, step: int, time: float, positions: NDArray[Any], observables: Arrays | None = None
    ) -> None:
        """Copy a frame to the next place of the arrays; all observables of the layout must be given."""
        values = (positions, *self._layout.measured(observables or {}))
        self._steps[self.frames], self._times[self.frames] = step, time
        for column, value in zip(self._columns, values, strict=True):
            column[:, self.frames] = value
        self.frames, self.last_step = self.frames + 1, step

    def result(self) -> Trajectory:
        """Return the trajectory recorded so far, complete or not; it shares memory with the recorder."""
        n = self.frames
        positions, *observables = (column[:, :n] for column in self._columns)
        return Trajectory(
            positions,
            self._steps[:n],
            self._times[:n],
            observables=dict(zip(self._layout.observables, observables, strict=True)),
            parameters=self._parameters,
            start=self._start,
            complete=self.complete,
        )

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self.complete = error is None
        if isinstance(error, Exception):
            error.recorded = self.result()  # type: ignore[attr-defined]


def _checked_target(path: Path, *, overwrite: bool, resume: bool | None) -> tuple[FilePath, FilePath]:
    """Return the absolute path of a file to be written, and that of its log.

    An `OutputError` says why the file may not be written.
    """
    target, replace = file_path("out", path), flag("overwrite", overwrite)
    if resume is not None:
        flag("resume", resume)
    if target.is_dir():
        raise OutputError(f"cannot write {target}: it is a directory")
    if not target.parent.is_dir():
        raise OutputError(f"cannot write {target}: the directory {target.parent} does not exist")
    if target.exists() and not replace and not resume:
        raise OutputError(f"{target} exists; choose another name or pass overwrite=True")
    return target, target.with_name(target.name + ".partial")


def save(trajectory: Trajectory, path: Path, *, overwrite: bool = False) -> None:
    """Write `trajectory` to the file `path`: `Trajectory.save` describes arguments and errors."""
    from physics.trajectory.stored import write_file  # `import physics` does not need HDF5

    kinds = {name: (dtype.str, shape) for name, (dtype, shape) in trajectory._kinds().items()}
    runs, _, tokens, dim = trajectory._shape
    layout = Layout(runs, tokens, dim, str(trajectory.dtype), observables=kinds)
    trajectory.made_with = trajectory.made_with or made_with("physics")
    Header(layout, trajectory.parameters, trajectory.made_with).to_bytes()
    target, partial = _checked_target(path, overwrite=overwrite, resume=None)
    with contextlib.ExitStack() as stack:
        if partial.exists():
            with naming(target):
                log = stack.enter_context(LockedFile(partial))
            if log.size and not overwrite:
                raise OutputError(f"{partial} holds an unfinished run; pass overwrite=True to start again")
        write_file(target, trajectory, overwrite=overwrite)
        partial.unlink(missing_ok=True)


class FileRecorder(contextlib.AbstractContextManager["FileRecorder"]):
    """Keeps frames in the log ``path.partial``, and turns it into the file ``path`` when the run is complete.

    It is used as a context manager. If an exception ends the run, the log stays, with every frame that was
    appended; a log without frames is removed.

    Parameters
    ----------
    path : path
        Name of the finished file.
    layout : Layout
        Sizes and types of the frames and of the observables.
    parameters : mapping
        How the run is made, in values that JSON can hold.
    start : mapping of str to ndarray (runs, ...), optional
        Other arrays with which the run begins.
    packages : tuple of str, default ("physics",)
        Packages whose source code determines the bits of the run.
    overwrite : bool, default False
        Whether to replace an existing file and an unfinished run.
    resume : bool, optional
        Whether to continue an unfinished run of the same configuration; None if the caller cannot resume one.
    until : int, optional
        Resume at this step at the latest; later frames are computed again. By default all frames are kept.

    Raises
    ------
    OutputError
        If the file or an unfinished one exists and is neither to be replaced nor resumed, another process
        writes it, or the directory cannot be written. Nothing has been changed then.
    InputError
        If the unfinished run has another configuration, or was made with versions that may give other bits.
    """

    def __init__(
        self,
        path: Path,
        layout: Layout,
        parameters: Mapping[str, Any],
        *,
        start: Arrays | None = None,
        packages: tuple[str, ...] = ("physics",),
        overwrite: bool = False,
        resume: bool | None = None,
        until: int | None = None,
    ) -> None:
        header = Header(layout, dict(parameters), made_with(*packages), checked_start(start, layout.runs))
        content = header.to_bytes()
        self.complete = False
        """Whether there is nothing left to record."""
        self.frames, self.last_step = 0, -1
        self.identity = header.identity
        """Identifier that distinguishes this run from all others, even of the same configuration."""
        self.path, self._partial = _checked_target(path, overwrite=overwrite, resume=resume)
        self.where = f" in {self._partial}"
        self._layout, self._overwrite, self._can_resume = layout, overwrite, resume is not None
        self.resumed: Trajectory | None = None
        """The run that is resumed, as it was."""
        self._end = 0
        with naming(self.path):
            self._log = LockedFile(self._partial)
        try:
            if resume:
                self.resumed = self._stored(header, until)
            elif self._log.size and not overwrite:
                go_on = "resume=True to continue it, or " if self._can_resume else ""
                how = f"pass {go_on}overwrite=True to start again"
                raise OutputError(f"{self._partial} holds an unfinished run; {how}")
            if self.resumed is None:
                with naming(self.path):
                    self._log.truncate(0)
                    head = HEAD.pack(MAGIC, len(content), zlib.crc32(content)) + content
                    self._end = len(head)
                    self._log.write_at(0, head)
            elif self.resumed.frames:
                self.complete, self.frames = self.resumed.complete, self.resumed.frames
                self.last_step = int(self.resumed.steps[-1])
        except BaseException:
            self.close()
            raise

    def _stored(self, header: Header, until: int | None) -> Trajectory | None:
        """Return the run to be resumed, finished or not, or None if it has not begun."""
        if self.path.exists() and not self._overwrite:
            finished = load(self.path)
            require_same(self.path, finished.parameters, header.made_with, header)
            if not finished.complete:
                raise OutputError(f"{self.path} was stored unfinished and cannot be resumed")
            with contextlib.suppress(FileFormatError):  # a killed process may have left the log
                if Log(self._partial).header.identity == finished.identity:
                    self._log.truncate(0)
            self.close()
            return finished
        if not self._log.size:
            return None
        try:
            log = Log(self._partial)
        except EmptyLogError:
            text = f"{self._partial} was killed before it began; the run starts again"
            warnings.warn(text, RuntimeWarning, stacklevel=5)
            return None
        require_same(self._partial, log.header.parameters, log.header.made_with, header)
        if until is not None:
            log.forget(int(np.searchsorted(log.steps, until, side="right")))
        self._log.truncate(log.end)
        self._layout, self.identity, self._end = log.header.layout, log.header.identity, log.end
        return load(self._partial)

    def append(
        self, step: int, time: float, positions: NDArray[Any], observables: Arrays | None = None
    ) -> None:
        """Write a frame to the log.

        `positions` are (runs, tokens, dim), and all observables of the layout must be given by name, (runs,
        ...) each. An `InputError` refuses observables that are not like those of the first frame. If the
        frame cannot be written, or the recording has ended, an `OutputError` is raised.
        """
        if self._log.closed:
            raise OutputError(f"cannot add a frame to {self.path}: its recording has ended")
        values = (positions, *self._layout.measured(observables or {}))
        columns = [
            np.asarray(value, dtype, order="C").reshape(shape)
            for value, (_, dtype, shape) in zip(values, self._layout.columns, strict=True)
        ]
        with naming(self.path, f"; the frames written before are{self.where}" if self.frames else ""):
            content = b"".join([CLOCK.pack(step, time), *(values.data for values in columns)])
            record = RECORD.pack(FRAME, zlib.crc32(content)) + content
            self._end = self._log.write_at(self._end, record)
        self.last_step, self.frames = step, self.frames + 1

    def flush(self) -> None:
        """Return as soon as every frame is on disk, or raise the `OutputError` that prevents it."""
        with naming(self.path):
            os.fsync(self._log.fileno())

    def result(self) -> Trajectory:
        """Open the finished file, and return its trajectory."""
        return load(self.path)

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        try:
            if error is None and not self._log.closed:
                self._finish()
        except BaseException as failure:
            self._tell(failure)
            raise
        finally:
            self.close()
        if error is not None:
            self._tell(error)

    def _finish(self) -> None:
        """Turn the log into the trajectory file."""
        from physics.trajectory.stored import write_file

        with naming(self.path, f"; the frames are{self.where}"):
            self._log.write_at(self._end, END)
            os.fsync(self._log.fileno())
            write_file(self.path, load(self._partial), overwrite=self._overwrite, alone=True)
            self._partial.unlink()
            self._log.close()

    def close(self) -> None:
        """End the recording without making the finished file; a log without frames is removed."""
        if not self._log.closed:
            if not self._log.size or (self._end and not self.frames):
                self._partial.unlink(missing_ok=True)
            self._log.close()

    def _tell(self, error: BaseException) -> None:
        """Add a note to what interrupts the recording, which says where the frames are.

        An extension module whose import is interrupted raises an `ImportError`.
        """
        interrupts = isinstance(error, ImportError) or not isinstance(error, Exception)
        if self.frames and interrupts and self._partial.exists():
            go_on = "; pass resume=True to continue it" if self._can_resume else ""
            kept = "1 frame is" if self.frames == 1 else f"{self.frames} frames are"
            error.add_note(f"{kept} kept in {self._partial}{go_on}")


def recorder(
    out: Path | None, layout: Layout, parameters: Mapping[str, Any], *, resume: bool | None, **options: Any
) -> FileRecorder | MemoryRecorder:
    """Return a recorder for a run, to be used as a context manager: for the file `out`, or for memory.

    The arguments are those of `FileRecorder`; the last ones have no effect without a file. An `InputError`
    refuses to resume a run without a file.
    """
    if out is not None:
        return FileRecorder(out, layout, parameters, resume=resume, **options)
    if resume is not None and flag("resume", resume):
        raise InputError("out must name the file of the unfinished run to resume it, got None")
    return MemoryRecorder(layout, parameters, options.get("start"))
