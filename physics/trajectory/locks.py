"""Who writes a file, and when a signal may come between."""

import contextlib
import errno
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from physics.errors import OutputError


@contextlib.contextmanager
def claim(path: Path, *, wait: bool = False) -> Iterator[bool]:
    """Hold ``path.lock`` and yield True, or yield False where another process holds it.

    The lock ends with the process that holds it, however that ends. Its file is removed before the lock is
    given back; whoever waits for it then notices and begins again.

    Raises
    ------
    OutputError
        If the directory cannot be written.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path.with_name(path.name + ".lock"), timeout=-1 if wait else 0, thread_local=False)
    held = False
    try:
        if not path.absolute().parent.is_dir():  # which the library would make
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
    """Hold SIGINT and SIGTERM back while the main thread does what must not be torn; they come at the end.

    Yields the list of those that wait. (Python's own locks and threads do not survive an exception from a
    signal handler at every moment: `threading.Thread.start` can leave a thread that never runs.)
    """
    waiting: list[Any] = []
    handlers: dict[int, Any] = {}
    with contextlib.ExitStack() as restored:  # runs all that it has, also if a signal comes in between
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                handler = signal.getsignal(number)
                if callable(handler):
                    handlers[number] = handler
                    restored.callback(signal.signal, number, handler)
                    signal.signal(number, lambda *arguments: waiting.append(arguments))
        yield waiting
    for number, frame in waiting:
        handlers[number](number, frame)


def wait_for(thread: threading.Thread, cancelled: threading.Event, *, start: bool = False) -> None:
    """Wait until a thread has ended; a signal meanwhile asks it to leave off, and comes once it has."""
    with signals_deferred() as waiting:
        if start:
            thread.start()
        while thread.is_alive():
            thread.join(0.1)
            if waiting:
                cancelled.set()
