"""Locks that let only one process write a file, deferred signals, and files that are replaced as a whole."""

import contextlib
import errno
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from physics.errors import OutputError


def claimed(path: Path) -> bool:
    """Return whether a process holds the lock of the file `path`, because it is writing the file."""
    from filelock import FileLock, Timeout

    lock = path.with_name(path.name + ".lock")
    if not lock.exists():
        return False
    try:
        with FileLock(lock, timeout=0, thread_local=False):
            return False
    except (Timeout, OSError):
        return True


@contextlib.contextmanager
def claim(path: Path, *, wait: bool = False) -> Iterator[bool]:
    """Hold the lock of a file while the context is open, so that no other process writes the file.

    The lock is the file ``path.lock``; it ends with the process that holds it, however the process ends. The
    context yields whether the lock is held: False if another process holds it, unless `wait` is True. If the
    directory does not exist or cannot be written, an `OutputError` is raised.

    The lock file is removed before the lock is released; another process that waits for it notices this and
    tries again.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path.with_name(path.name + ".lock"), timeout=-1 if wait else 0, thread_local=False)
    held = False
    try:
        if not path.absolute().parent.is_dir():  # the library would create it
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        with contextlib.suppress(Timeout):
            lock.acquire()
            held = True
    except OSError as error:
        raise OutputError(f"cannot write {lock.lock_file}: {error.strerror or error}") from None
    try:
        yield held
    finally:
        if held:
            Path(lock.lock_file).unlink(missing_ok=True)
            lock.release()


@contextlib.contextmanager
def signals_deferred() -> Iterator[list[Any]]:
    """Defer SIGINT and SIGTERM while the main thread is in a section that must not be interrupted.

    Python's own locks and threads do not survive an exception from a signal handler at every moment: for
    example, `threading.Thread.start` can leave a thread that never runs. The signals are handled at the end
    of the section, even if an exception ends it. The context yields the list of those that have been deferred
    so far.
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


def wait_for(thread: threading.Thread, cancelled: threading.Event, *, start: bool = False) -> None:
    """Wait until a thread has ended; a signal in the meantime sets `cancelled`, and is handled afterwards.

    With `start` the thread is started first. Only the main thread receives signals; in another thread this
    function just waits.
    """
    with signals_deferred() as waiting:
        if start:
            thread.start()
        while thread.is_alive():
            thread.join(0.1)
            if waiting:
                cancelled.set()


def replace_as_a_whole(path: Path, write: Callable[[BinaryIO], object], *, alone: bool = False) -> None:
    """Replace or create the file `path`; an old file stays until the new one is complete and on disk.

    The function `write` receives an open binary file that is created in the same directory, under a random
    name that ends in ``.partial``, so that several processes may replace `path` at the same time. It is
    removed if writing fails, and an `OutputError` says why. If `alone` is True, because the caller holds a
    lock, its name is ``path.partial``, so that it replaces what a killed process may have left.
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
