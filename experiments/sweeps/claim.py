"""Who works on a file: a lock that ends with the process that holds it, however that ends."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from physics.errors import OutputError

try:
    import fcntl
except ImportError:  # no such locks on this system: one driver a sweep is then up to the user
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def claim(path: Path, *, wait: bool = False) -> Iterator[bool]:
    """Hold ``path.lock`` and yield True, or yield False where another process holds it.

    The lock file is removed before the lock is given back. Whoever has opened it by then finds, with the lock
    in hand, that it is no longer the file of that name, and begins again.

    Raises
    ------
    OutputError
        If the directory cannot be written.
    """
    lock = path.with_name(path.name + ".lock")
    descriptor = _locked(lock, wait)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            with contextlib.suppress(OSError):
                lock.unlink()
            os.close(descriptor)


def _locked(lock: Path, wait: bool) -> int | None:
    """Descriptor of a lock file that is ours, or None."""
    while True:
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise OutputError(f"cannot write {lock}: {error.strerror}") from None
        try:
            if fcntl is not None:
                fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError:  # a file system without locks
            return descriptor
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), lock.stat()):
                return descriptor
        os.close(descriptor)
