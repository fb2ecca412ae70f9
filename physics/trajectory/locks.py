"""Files that one process at a time may write, and files that are replaced as a whole."""

import contextlib
import errno
import fcntl
import io
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from physics.errors import InUseError, OutputError

FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}
"""Errors of file systems without locks, on which nothing can be locked."""


class LockedFile:
    """A file that is open for writing under an exclusive lock, which ends with this object or its process.

    The lock is an flock of the file's own descriptor. A missing file is created. If another object holds the
    lock, an `InUseError` is raised, unless `wait` is True.
    """

    def __init__(self, path: Path, *, wait: bool = False) -> None:
        self.path, self._process = path, os.getpid()
        while True:
            # a signal interrupts neither the end of such an object nor its method `close`
            self._file = io.FileIO(path, "r+", opener=lambda name, _: os.open(name, FLAGS, 0o666))
            for patience in (0.0, 0.01, 0.05):  # as `claimed` takes the lock for a moment
                time.sleep(patience)
                if _lock(self._file.fileno(), exclusive=True, wait=wait):
                    break
            else:
                self._file.close()
                raise InUseError(f"{path} is being written by another process; wait for it or stop it")
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(self._file.fileno()), path.stat()):
                    return
            self._file.close()  # it was removed or replaced by the process that held the lock

    @property
    def is_open(self) -> bool:
        """Whether the lock is held."""
        return not self._file.closed

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        return os.fstat(self._file.fileno()).st_size

    def write(self, at: int, data: Any) -> int:
        """Write bytes at a position, and return the position behind them."""
        view = memoryview(data)
        self._file.seek(at)
        at += len(view)
        while len(view):
            view = view[self._file.write(view) :]
        return at

    def truncate(self, size: int) -> None:
        """Cut the file at a size in bytes."""
        self._file.truncate(size)

    def sync(self) -> None:
        """Return as soon as the operating system has the file on disk."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file and release the lock; the file itself stays."""
        if self.is_open and self._process == os.getpid():  # processes that were forked have the lock too
            with contextlib.suppress(OSError):
                fcntl.flock(self._file.fileno(), fcntl.LOCK_UN)
        self._file.close()


def _lock(descriptor: int, *, exclusive: bool, wait: bool = False) -> bool:
    """Lock an open file, and return whether that succeeded; a file system without locks always succeeds."""
    kind = (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | (0 if wait else fcntl.LOCK_NB)
    try:
        fcntl.flock(descriptor, kind)
    except OSError as error:
        return error.errno in NO_LOCKS
    return True


def claimed(path: Path) -> bool:
    """Return whether somebody holds the file `path` as a `LockedFile`, because they write it."""
    try:
        with path.open("rb") as file:
            return not _lock(file.fileno(), exclusive=False)
    except OSError:
        return False


@contextlib.contextmanager
def claim(path: Path, *, wait: bool = False) -> Iterator[bool]:
    """Hold the lock of a file, the file ``path.lock``, while the context is open.

    The context yields whether the lock is held: False if another process holds it, unless `wait` is True. If
    the directory does not exist or cannot be written, an `OutputError` is raised.
    """
    lock = None
    try:
        with contextlib.suppress(InUseError):
            lock = LockedFile(path.with_name(path.name + ".lock"), wait=wait)
    except OSError as error:
        raise OutputError(f"cannot write {path.name}.lock in {path.parent}: {error.strerror}") from None
    try:
        yield lock is not None
    finally:
        if lock is not None:
            lock.path.unlink(missing_ok=True)
            lock.close()


@contextlib.contextmanager
def signals_deferred() -> Iterator[list[Any]]:
    """Defer SIGINT and SIGTERM while the main thread is in a section that must not be interrupted.

    They are handled at the end of the section, even if an exception ends it. The context yields the list of
    those that have been deferred so far.
    """
    waiting: list[Any] = []
    handlers: dict[int, Any] = {}
    try:
        with contextlib.ExitStack() as restored:  # runs all callbacks, even if a signal arrives in between
            if threading.current_thread() is threading.main_thread():
                for number in (signal.SIGINT, signal.SIGTERM):
                    handler = signal.getsignal(number)
                    if callable(handler):
                        handlers[number] = handler
                        restored.callback(signal.signal, number, handler)
                        signal.signal(number, lambda *arguments: waiting.append(arguments))
            yield waiting
    finally:
        for number, frame in waiting:
            handlers[number](number, frame)


def replace_as_a_whole(path: Path, write: Callable[[BinaryIO], object], *, alone: bool = False) -> None:
    """Replace or create the file `path`; an old file stays until the new one is complete and on disk.

    The function `write` receives an open binary file in the same directory, under a random name that ends in
    ``.partial``, or under the name ``path.partial`` if the caller holds a lock and is thus `alone`. It is
    removed if writing fails, and an `OutputError` says why.
    """
    token = "" if alone else f".{os.urandom(8).hex()}"
    partial = path.with_name(f"{path.name}{token}.partial")
    try:
        with contextlib.ExitStack() as undo:
            undo.callback(_remove, partial)
            _remove(partial)
            with partial.open("xb") as file:  # it follows no link
                write(file)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
            undo.pop_all()
    except (OSError, RuntimeError) as error:  # PyTorch raises a RuntimeError if the disk is full
        reason = getattr(error, "strerror", None) or error
        raise OutputError(f"cannot write {path}: {reason}") from None


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
