"""Recorders: they receive frames in order, keep a copy of each, and return a trajectory at the end.

A recorder for a file writes each frame at once to the log ``NAME.partial`` (`physics.trajectory.log`). When
the run is complete, it makes the trajectory file of the log under the name ``NAME.merging``, and renames it.
"""

import contextlib
import math
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from physics.checks import file_path, flag
from physics.errors import FileFormatError, InputError, OutputError
from physics.memory import require_memory
from physics.trajectory.header import Header, Layout, Path, checked_start
from physics.trajectory.locks import LockedFile
from physics.trajectory.log import END, MAGIC, Log, head_of, is_log, record_of
from physics.trajectory.provenance import made_with, require_same
from physics.trajectory.trajectory import Trajectory, load


class MemoryRecorder:
    """Keeps frames in arrays in memory, which have the size of the whole run from the start.

    `layout` gives the sizes, types and number of the frames, `parameters` say how the run is made, and
    `start` holds arrays with which the run begins, (runs, ...) each. If the positions of all frames need more
    memory than the machine has, an `InputError` is raised.
    """

    where = " in memory (attribute `recorded` of this error)"

    def __init__(
        self, layout: Layout, parameters: Mapping[str, Any], start: Mapping[str, NDArray[Any]] | None = None
    ) -> None:
        require_memory(
            f"{layout.frames} frames of {layout.runs} runs",
            layout.frames * math.prod(layout.columns[2][2]) * np.dtype(layout.dtype).itemsize,
            "record less often, or give out, so that they are streamed to a file",
        )
        self.frames, self.last_step, self.complete = 0, -1, False
        self._columns = [
            np.empty((*shape[:1], layout.frames, *shape[1:]), dtype) for _, dtype, shape in layout.columns
        ]
        self._layout, self._parameters, self._start = layout, parameters, start

    def append(
        self,
        step: int,
        time: float,
        positions: NDArray[Any],
        observables: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        """Copy a frame to the next place of the arrays; all observables of the layout must be given."""
        values = (positions, *self._layout.measured(observables or {}))
        self._columns[0][self.frames], self._columns[1][self.frames] = step, time
        for column, value in zip(self._columns[2:], values, strict=True):
            column[:, self.frames] = value
        self.frames, self.last_step = self.frames + 1, step

    def frame(self, index: int) -> NDArray[Any]:
        """Return a copy of the positions (runs, tokens, dim) of the frame `index`; -1 is the last one."""
        return self._columns[2][:, : self.frames][:, index].copy()

    def result(self) -> Trajectory:
        """Return the trajectory recorded so far, complete or not; it shares memory with the recorder."""
        steps, times, positions, *observables = self._columns
        n = self.frames
        return Trajectory(
            positions[:, :n],
            steps[:n],
            times[:n],
            observables={
                name: v[:, :n] for name, v in zip(self._layout.observables, observables, strict=True)
            },
            parameters=self._parameters,
            start=self._start,
            complete=self.complete,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self.complete = error is None
        if isinstance(error, Exception):
            error.recorded = self.result()  # type: ignore[attr-defined]


class _Target:
    """A file to be written: its log is locked, and it is written under a temporary name and renamed.

    An `OutputError` says why it may not be written; nothing has been changed then. Without `resume`, which is
    None if the caller cannot resume a run, an unfinished run is only replaced if `overwrite` is True.
    """

    def __init__(self, path: Path, *, overwrite: bool, resume: bool | None = None) -> None:
        self.path, self.overwrite = file_path("out", path), flag("overwrite", overwrite)
        if resume is not None:
            flag("resume", resume)
        self.partial = self.path.with_name(self.path.name + ".partial")
        self._merging = self.path.with_name(self.path.name + ".merging")
        if self.path.is_dir():
            raise OutputError(f"cannot write {self.path}: it is a directory")
        if not self.path.parent.is_dir():
            raise OutputError(f"cannot write {self.path}: the directory {self.path.parent} does not exist")
        if self.path.exists() and not overwrite and not resume:
            raise OutputError(f"{self.path} exists; choose another name or pass overwrite=True")
        with self.sentences():
            self.log = LockedFile(self.partial)
            if self.log.size and not overwrite and not resume:
                self.log.close()
                go_on = "" if resume is None else "resume=True to continue it, or "
                raise OutputError(
                    f"{self.partial} holds an unfinished run; pass {go_on}overwrite=True to start again"
                )

    def publish(self, trajectory: Trajectory, kept: str = "") -> None:
        """Write a trajectory to the file; without `overwrite`, a file that was created meanwhile stays."""
        from physics.trajectory.h5md import write_file  # `import physics` does not need HDF5

        with self.sentences(kept):
            try:
                self._merging.unlink(missing_ok=True)  # left by a killed process
                write_file(self._merging, trajectory)
                if not self.overwrite and self.path.exists():
                    raise OutputError(
                        f"{self.path} was created in the meantime; choose another name or pass overwrite=True"
                    )
                self._merging.replace(self.path)
                self.close(keep=False)
            finally:
                self._merging.unlink(missing_ok=True)

    def close(self, *, keep: bool) -> None:
        """Release the lock; unless `keep` is True, the log is removed before."""
        if not keep and self.log.is_open:
            self.partial.unlink(missing_ok=True)
        self.log.close()

    @contextlib.contextmanager
    def sentences(self, kept: str = "") -> Iterator[None]:
        """Turn errors of the operating system or of HDF5 into an `OutputError` that names this file.

        `kept` is the end of the message, which says which frames are kept.
        """
        try:
            yield
        except OutputError:
            raise
        except (OSError, RuntimeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise OutputError(f"cannot write {self.path}: {reason}{kept}") from error


def save(trajectory: Trajectory, path: Path, *, overwrite: bool = False) -> None:
    """Write `trajectory` to the file `path`: `Trajectory.save` describes arguments and errors."""
    kinds = trajectory._kinds()
    layout = Layout(
        trajectory.runs,
        trajectory.tokens,
        trajectory.dim,
        str(trajectory.dtype),
        observables={name: (dtype.str, shape) for name, (dtype, shape) in kinds.items()},
    )
    if not trajectory.made_with:
        trajectory.made_with = made_with("physics")
    Header(layout, trajectory.parameters, trajectory.made_with).check()
    target = _Target(path, overwrite=overwrite)
    try:
        target.publish(trajectory)
    finally:
        target.close(keep=bool(target.log.is_open and target.log.size))


class FileRecorder:
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
        start: Mapping[str, NDArray[Any]] | None = None,
        packages: tuple[str, ...] = ("physics",),
        overwrite: bool = False,
        resume: bool | None = None,
        until: int | None = None,
    ) -> None:
        arrays = checked_start(start, layout.runs)
        types = {name: (values.dtype.str, values.shape) for name, values in arrays.items()}
        header = Header(layout, dict(parameters), made_with(*packages), types)
        header.check()
        self.complete = False
        """Whether there is nothing left to record."""
        self.frames, self.last_step = 0, -1
        self.identity = header.identity
        """Identifier that distinguishes this run from all others, even of the same configuration."""
        self._resumed: Trajectory | None = None
        self._failure = ""
        self._can_resume = resume is not None
        self._target = _Target(path, overwrite=overwrite, resume=resume)
        self.path = self._target.path
        self.where = f" in {self._target.partial}"
        try:
            if resume and not overwrite and self._target.path.exists():
                self._return(header)
            else:
                self._begin(header, arrays, resume=bool(resume), until=until)
        except BaseException:
            self._target.close(keep=bool(self._target.log.size))
            raise

    def _return(self, header: Header) -> None:
        """Return the complete file of the run that was to be resumed."""
        target, finished = self._target, load(self._target.path)
        require_same(target.path, finished.parameters, header.made_with, header)
        if not finished.complete:
            raise OutputError(f"{target.path} was stored unfinished and cannot be resumed")
        with contextlib.suppress(FileFormatError):
            if is_log(target.partial) and Log(target.partial).header.identity == finished.identity:
                target.log.truncate(0)  # a killed process has left the log
        self._layout, self._resumed, self.complete = header.layout, finished, True
        self.frames, self.last_step = finished.frames, int(finished.steps[-1]) if finished.frames else -1
        target.close(keep=bool(target.log.size))

    def _begin(
        self, header: Header, start: Mapping[str, NDArray[Any]], *, resume: bool, until: int | None
    ) -> None:
        """Continue the log of an unfinished run, or begin a new log."""
        target, head = self._target, head_of(header, start)
        if resume and target.log.size:
            with target.partial.open("rb") as file:
                begins = MAGIC.startswith(file.read(len(MAGIC)))
            if begins and target.log.size < len(head):
                warnings.warn(
                    f"{target.partial} was killed before it began; the run starts again",
                    RuntimeWarning,
                    stacklevel=5,
                )
            elif not is_log(target.partial):
                raise InputError(
                    f"{target.partial} cannot be resumed: it was written by another version of GrokPhys, or "
                    "is not an unfinished run; pass overwrite=True to start again"
                )
            else:
                log = Log(target.partial)
                require_same(target.partial, log.header.parameters, log.header.made_with, header)
                if until is not None:
                    log.forget(int(np.searchsorted(log.steps, until, side="right")))
                header, self.complete, self._end = log.header, log.complete, log.end
                self.frames, self.last_step = len(log.steps), int(log.steps[-1]) if len(log.steps) else -1
                target.log.truncate(self._end)
                self._resumed = load(target.partial)
        self._layout, self.identity = header.layout, header.identity
        if self._resumed is None:
            with target.sentences():
                target.log.truncate(0)
                try:
                    self._end = target.log.write(0, head)
                except BaseException:
                    target.log.truncate(0)
                    raise

    def append(
        self,
        step: int,
        time: float,
        positions: NDArray[Any],
        observables: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        """Write a frame to the log.

        `positions` are (runs, tokens, dim), and all observables of the layout must be given by name, (runs,
        ...) each. An `InputError` refuses observables that are not like those of the first frame. If this or
        an earlier frame cannot be written, or the recording has ended, an `OutputError` is raised.
        """
        if self._failure:
            raise OutputError(self._failure)
        if not self._target.log.is_open:
            raise OutputError(f"cannot add a frame to {self._target.path}: its recording has ended")
        values = (positions, *self._layout.measured(observables or {}))
        columns = [
            np.asarray(value, dtype, order="C").reshape(shape)
            for value, (_, dtype, shape) in zip(values, self._layout.columns[2:], strict=True)
        ]
        end = self._end
        try:
            with self._target.sentences(
                f"; the frames written before are{self.where}" if self.frames else ""
            ):
                for part in record_of(step, time, columns):
                    end = self._target.log.write(end, part)
        except OutputError as error:
            self._failure = str(error)
            with contextlib.suppress(OSError):
                self._target.log.truncate(self._end)
            raise
        self._end, self.last_step = end, step
        self.frames += 1

    def flush(self) -> None:
        """Return as soon as every frame is on disk, or raise the `OutputError` that prevents it."""
        with self._target.sentences():
            self._target.log.sync()

    def frame(self, index: int) -> NDArray[Any]:
        """Return a copy of the positions (runs, tokens, dim) of frame `index` of a run that is resumed."""
        assert self._resumed is not None
        return self._resumed.frame(index)

    def result(self) -> Trajectory:
        """Open the finished file, and return its trajectory."""
        return load(self._target.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        try:
            if error is None and self._target.log.is_open:
                self._finish()
        except BaseException as failure:
            self._tell(failure)
            raise
        finally:
            self.close()
        if error is not None:
            self._tell(error)

    def close(self) -> None:
        """End the recording without making the finished file; a log without frames is removed."""
        self._target.close(keep=self.frames > 0)

    def _finish(self) -> None:
        """Turn the log into the trajectory file."""
        if self._failure:
            raise OutputError(self._failure)
        kept = f"; the frames are{self.where}"
        with self._target.sentences(kept):
            self._target.log.write(self._end, END)
            self._target.log.sync()
        self._target.publish(load(self._target.partial), kept)

    def _tell(self, error: BaseException) -> None:
        """Add a note to what interrupts the recording, which says where the frames are.

        An extension module whose import is interrupted raises an `ImportError`.
        """
        interrupts = isinstance(error, ImportError) or not isinstance(error, Exception)
        if self.frames and interrupts and self._target.partial.exists():
            go_on = "; pass resume=True to continue it" if self._can_resume else ""
            kept = "1 frame is" if self.frames == 1 else f"{self.frames} frames are"
            error.add_note(f"{kept} kept in {self._target.partial}{go_on}")


def recorder(
    out: Path | None,
    layout: Layout,
    parameters: Mapping[str, Any],
    *,
    start: Mapping[str, NDArray[Any]] | None = None,
    resume: bool | None = None,
    **to_file: Any,
) -> FileRecorder | MemoryRecorder:
    """Return a recorder for a run, to be used as a context manager: for the file `out`, or for memory.

    The arguments are those of `FileRecorder`; the last ones have no effect without a file. An `InputError`
    refuses to resume a run without a file.
    """
    if out is not None:
        return FileRecorder(out, layout, parameters, start=start, resume=resume, **to_file)
    if resume is not None and flag("resume", resume):
        raise InputError("out must name the file of the unfinished run to resume it, got None")
    return MemoryRecorder(layout, parameters, start)
