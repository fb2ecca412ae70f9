"""Recording to a file in such a way that no signal, crash or full disk can corrupt it.

An unfinished run is kept in its log, ``NAME.partial`` (`physics.trajectory.log`), which a separate thread
writes. Signals reach only the main thread, so no Ctrl-C can interrupt a write. Once the run is complete, the
same thread turns the log into the trajectory file under a temporary name, and renames it.
"""

import contextlib
import errno
import os
import threading
import warnings
from collections.abc import Iterator, Mapping
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from physics.errors import InputError, OutputError
from physics.trajectory.h5md import write_file
from physics.trajectory.header import Header, Layout, Path, checked_start
from physics.trajectory.locks import signals_deferred, wait_for
from physics.trajectory.log import END, FRAMES, Log, LogWriter, is_log
from physics.trajectory.provenance import made_with, require_same
from physics.trajectory.target import Target
from physics.trajectory.trajectory import Trajectory

FLUSH_SECONDS = 2.0
"""Seconds after which a frame is written, even if its block is small."""
BLOCK_BYTES = 2**20
"""Size of a block in bytes from which it is written at once."""
WAITING_BYTES = 2**26
"""Number of bytes that may wait to be written, before `append` waits too."""


class FileRecorder:
    """Keeps frames in the log ``path.partial``, and turns it into the file ``path`` when the run is complete.

    It is used as a context manager. If an exception ends the run, the log stays, with every frame that was
    appended so far, unless the disk is full; a log without frames is removed.

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
        checked_start(start, layout.runs)
        header = Header(layout, dict(parameters), made_with(*packages), tuple(start or {}))
        header.check()
        self._resume, self._overwrite = resume, overwrite
        with contextlib.ExitStack() as undo:
            with signals_deferred():
                self._target = Target(path, overwrite=overwrite, resume=resume)
                undo.callback(self._target.close)
                self._begin(header, start or {}, until)
                undo.callback(self._close)
            undo.pop_all()

    def _begin(self, header: Header, start: Mapping[str, NDArray[Any]], until: int | None) -> None:
        """Open the log of the run to resume, or begin a new log.

        A new log gets the `header` and the arrays `start`, (runs, ...) each. Of a run that is resumed, every
        block with a frame after the step `until` is forgotten; None keeps all.
        """
        self.where = f" in {self._target.partial}"
        self.frames, self._last_step = 0, -1
        self._written = 0  # frames in the log; a signal may arrive between appending a frame and counting it
        self.complete = False
        """Whether there is nothing left to record."""
        self._found: Trajectory | None = None
        self._inbox: SimpleQueue[Any] = SimpleQueue()
        self._done: SimpleQueue[int] = SimpleQueue()
        self._waiting = 0  # largest size in bytes of the frames that are not written yet
        self._failure: Exception | None = None
        self._cancelled = threading.Event()
        self._thread = threading.Thread()  # replaced by `__enter__`; one that knew `self` would keep the lock
        self._ended = self._exited = False
        self._opened = contextlib.ExitStack()
        partial, log = self._target.partial, None
        if self._resume and self._target.path.exists() and not self._overwrite:
            self._found = Trajectory.open(self._target.path)
            require_same(self._target.path, self._found.parameters, header.made_with, header)
            if not self._found.complete:
                raise OutputError(f"{self._target.path} was stored unfinished and cannot be resumed")
            self.complete = True
        elif self._resume and partial.exists():
            log = self._unfinished(header)
        if log is not None:
            if until is not None:
                log.forget_after(until)
                os.truncate(partial, log.end)
            header, self.complete = log.header or header, log.complete
            self._found = Trajectory.open(partial)
        self._layout, self._header = header.layout, header
        if self._found is not None:
            self.frames = self._written = self._found.frames
            if self.frames:
                self._last_step = int(self._found.steps[-1])
            if log is None:
                return
        with self._target.sentences():
            if log is not None:
                self._log = self._open_log(log.end)
                return
            partial.unlink(missing_ok=True)
            try:
                self._log = self._open_log()
                self._log.begin(header, start)
            except BaseException:
                partial.unlink(missing_ok=True)
                raise

    def _open_log(self, end: int | None = None) -> LogWriter:
        log = LogWriter(self._target.partial, end)
        self._opened.callback(log.close)
        return log

    # -- called by the caller's thread ---------------------------------------------------------------------

    def append(
        self,
        step: int,
        time: float,
        positions: NDArray[Any],
        observables: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        """Hand a copy of a frame to the thread that writes; it is in the log within about two seconds.

        `positions` are (runs, tokens, dim), and all observables of the layout must be given by name, (runs,
        ...) each. An `InputError` refuses observables that are not like those of the first frame. If an
        earlier frame could not be written, or the recording has ended, an `OutputError` is raised.
        """
        self._raise_failure()
        if self._exited:
            raise OutputError(f"cannot add a frame to {self._target.path}: its recording has ended")
        given = (step, time, positions, *self._layout.measured(observables or {}))
        frame = [
            np.array(value, dtype, order="C").reshape(shape)
            for value, (_, dtype, shape) in zip(given, self._layout.columns, strict=True)
        ]
        size = sum(part.nbytes for part in frame)
        with contextlib.suppress(Empty):
            while True:
                self._waiting -= self._done.get(self._waiting > 0 and self._waiting + size > WAITING_BYTES)
        self._waiting += size
        self._inbox.put((frame, size))
        self.frames, self._last_step = self.frames + 1, step

    def flush(self) -> None:
        """Return as soon as every frame is on disk, or raise the `OutputError` that prevents it."""
        self._call("flush")

    def frame(self, index: int) -> NDArray[Any]:
        """Return a copy of the positions (runs, tokens, dim) of frame `index` of a run that is resumed."""
        assert self._found is not None
        return self._found.frame(index)

    @property
    def last_step(self) -> int:
        """Step of the last frame that is kept, or -1 if there is none."""
        return self._last_step

    @property
    def identity(self) -> str:
        """Identifier that distinguishes this run from all others, even of the same configuration."""
        return self._header.identity

    def result(self) -> Trajectory:
        """Open the finished file, and return its trajectory."""
        return Trajectory.open(self._target.path)

    def __enter__(self) -> Self:
        self._user = threading.current_thread()
        self._thread = threading.Thread(target=self._work, name="grokphys recorder")
        try:
            with signals_deferred():
                self._thread.start()
        except BaseException:
            self._inbox.put("stop")
            raise
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        try:
            self._exited = not self._ended  # otherwise frames may be missing, so the caller gets an error
            self._inbox.put("finish" if error is None else "stop")
            wait_for(self._thread, self._cancelled)
        except BaseException as signalled:
            self._tell(signalled)
            raise
        if error is not None:
            self._tell(error)
            return
        self._raise_failure()

    def close(self) -> None:
        """End the thread that writes, in case a signal arrived before the first statement of `__exit__`."""
        if self._thread.is_alive():
            self._inbox.put("stop")
            wait_for(self._thread, self._cancelled)

    def _tell(self, error: BaseException) -> None:
        """Add a note to what interrupts the recording, which says where the frames are.

        An extension module whose import is interrupted raises an `ImportError`.
        """
        interrupts = isinstance(error, ImportError) or not isinstance(error, Exception)
        if self._written and interrupts and self._target.partial.exists():
            go_on = "" if self._resume is None else "; pass resume (--resume) to continue it"
            kept = "1 frame is" if self._written == 1 else f"{self._written} frames are"
            error.add_note(f"{kept} kept in {self._target.partial}{go_on}")

    def _call(self, what: str) -> None:
        reply: SimpleQueue[None] = SimpleQueue()
        self._inbox.put((what, reply))
        while self._thread.is_alive():
            with contextlib.suppress(Empty):
                reply.get(timeout=1.0)
                break
        self._raise_failure()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._ended and not self._exited:
            raise OutputError(f"cannot write {self._target.path}: the thread that writes it has ended")

    def _unfinished(self, header: Header) -> Log | None:
        """Return the log to resume, or None if the process was killed before it described the run.

        A file that is no log, or the log of another configuration, is an `InputError`.
        """
        partial = self._target.partial
        if partial.stat().st_size >= 4 and not is_log(partial):
            raise InputError(
                f"{partial} cannot be resumed: it was written by another version of GrokPhys, or is not an "
                "unfinished run; pass overwrite (--overwrite) to start again"
            )
        log = Log(partial) if is_log(partial) else None
        if log is None or log.header is None or not log.begun:
            warnings.warn(
                f"{partial} was killed before it began; the run starts again", RuntimeWarning, stacklevel=6
            )
            return None
        require_same(partial, log.header.parameters, log.header.made_with, header)
        return log

    # -- called by the writing thread -------------------------------------------------------------------

    def _work(self) -> None:
        """Write blocks until the end of the run; the first exception is kept in `_failure`."""
        frames: list[list[NDArray[Any]]] = []
        size, since, item = 0, 0.0, None
        while item not in ("finish", "stop"):
            try:
                wait = since + FLUSH_SECONDS - monotonic() if frames else FLUSH_SECONDS
                item = self._inbox.get(timeout=max(wait, 0.0))
            except Empty:  # the caller may have ended without telling this thread
                item = None if self._user.is_alive() else "stop"
            if isinstance(item, tuple) and item[0] != "flush":
                since = since if frames else monotonic()
                frames.append(item[0])
                size += item[1]
                if size < BLOCK_BYTES and monotonic() - since < FLUSH_SECONDS:
                    continue
            if frames:
                self._try(self._write, frames)
                frames = []
                self._done.put(size)
                size = 0
            if isinstance(item, tuple) and item[0] == "flush":
                self._try(self._log.sync)
                item[1].put(None)
        if item == "finish":
            self._try(self._finish)
        self._try(self._close)
        self._ended = True
        self._target.close()

    def _try(self, function: Any, *arguments: Any) -> None:
        if self._failure is None or function == self._close:
            try:
                with self._target.sentences(
                    f"; the frames written before are{self.where}" if self._written else ""
                ):
                    function(*arguments)
            except Exception as error:
                self._failure = self._failure or error

    def _write(self, frames: list[list[NDArray[Any]]]) -> None:
        """Append a block of frames to the log: all of its steps, then all of its times, and so on."""
        self._log.append(FRAMES, *(part for column in zip(*frames, strict=True) for part in column))
        self._written += len(frames)

    def _finish(self) -> None:
        """Turn the log into the trajectory file."""
        partial = self._target.partial
        found: Any = self._found
        if found is not None and found.path == self._target.path:  # a killed process may have left the log
            left = Log(partial).header if partial.exists() and is_log(partial) else None
            if left is not None and left.identity == found.identity:
                partial.unlink()
            return
        if not self.complete:
            self._log.append(END)
        self._log.sync()
        log = Log(partial)
        blocks = self._until_cancelled(log.blocks())
        write_file(self._target.merging, self._header, blocks, frames=log.frames, start=log.start())
        self._target.publish()
        partial.unlink(missing_ok=True)

    def _until_cancelled(self, blocks: Iterator[Any]) -> Iterator[Any]:
        for block in blocks:
            if self._cancelled.is_set():
                raise InterruptedError(errno.EINTR, "interrupted")
            yield block

    def _close(self) -> None:
        self._opened.close()
        if not self._written:
            self._target.partial.unlink(missing_ok=True)
