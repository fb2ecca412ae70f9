"""Files that one process at a time may write, and files that are replaced as a whole."""

import contextlib
import fcntl
import io
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from physics.errors import InUseError, OutputError

FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW


class LockedFile(io.FileIO):
    """A file that is open for writing under an exclusive lock, which ends with this object or its process.

    The lock is an flock of the file's own descriptor. A missing file is created. If another object holds the
    lock, an `InUseError` is raised. On a file system without locks nothing is locked.
    """

    def __init__(self, path: Path) -> None:
        self.path, self._process = path, os.getpid()
        while True:
            super().__init__(path, "r+", opener=lambda name, _: os.open(name, FLAGS, 0o666))
            try:
                fcntl.flock(self, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.close()
                raise InUseError(f"{path} is being written by another process; wait for it") from None
            except OSError:  # the file system has no locks
                return
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(self.fileno()), path.stat()):
                    return  # otherwise the process that held the lock has removed or replaced the file

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        return os.fstat(self.fileno()).st_size

    def write_at(self, place: int, data: bytes) -> int:
        """Write all of `data` at a position, and return the position behind it."""
        view = memoryview(data)
        self.seek(place)
        while len(view):
            view = view[self.write(view) :]
        return place + len(data)

    def close(self) -> None:
        """Close the file and release the lock; the file itself stays."""
        if not self.closed and self._process == os.getpid():  # processes that were forked have the lock too
            with contextlib.suppress(OSError):
                fcntl.flock(self, fcntl.LOCK_UN)
        super().close()


@contextlib.contextmanager
def signals_deferred() -> Iterator[None]:
    """Defer SIGINT and SIGTERM while the main thread is in a section that must not be interrupted.

    They are handled at the end of the section, even if an exception ends it.
    """
    waiting: list[tuple[Any, Any]] = []
    try:
        with contextlib.ExitStack() as restored:  # runs all callbacks, even if a signal arrives in between
            for number in (signal.SIGINT, signal.SIGTERM):
                handler = signal.getsignal(number)
                if threading.current_thread() is threading.main_thread() and callable(handler):
                    restored.callback(signal.signal, number, handler)
                    signal.signal(number, lambda *call, handler=handler: waiting.append((handler, call)))
            yield
    finally:
        for handler, call in waiting:
            handler(*call)


@contextlib.contextmanager
def naming(path: Path, kept: str = "") -> Iterator[None]:
    """Turn errors of the operating system, HDF5 or PyTorch into an `OutputError` that names the file `path`.

    `kept` is the end of the message, which says which frames are kept.
    """
    try:
        yield
    except OutputError as error:
        raise type(error)(f"{error}{kept}") from None
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise OutputError(f"cannot write {path}: {reason}{kept}") from error


def replace_as_a_whole(
    path: Path,
    write: Callable[[BinaryIO], object],
    *,
    alone: bool = False,
    ending: str = "partial",
    overwrite: bool = True,
) -> None:
    """Replace or create the file `path`; an old file stays until the new one is complete and on disk.

    The function `write` receives an open binary file in the same directory, under a random name with this
    `ending`, or under the name ``path.ending`` if the caller holds a lock and is thus `alone`. It is removed
    if writing fails, and an `OutputError` says why. Without `overwrite`, a file that was created meanwhile
    stays.
    """
    token = "" if alone else f".{os.urandom(8).hex()}"
    partial = path.with_name(f"{path.name}{token}.{ending}")
    with naming(path), contextlib.ExitStack() as undo:
        undo.callback(partial.unlink, missing_ok=True)
        partial.unlink(missing_ok=True)
        with partial.open("x+b") as file:  # it follows no link
            write(file)
            file.flush()
            os.fsync(file.fileno())
        if not overwrite and path.exists():
            raise OutputError(f"{path} was created meanwhile; choose another name or pass overwrite=True")
        partial.replace(path)
        undo.pop_all()
