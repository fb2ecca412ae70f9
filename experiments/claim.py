"""Who works on a file: a lock that ends with the process that holds it, however that ends."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from physics.errors import OutputError
from physics.locks import lock as take


@contextlib.contextmanager
def claim(path: Path, *, wait: bool = False) -> Iterator[bool]:
    """Hold ``path.lock`` and yield True, or yield False where another process holds it.

    The lock file is removed before the lock is given back. Whoever has opened it by then finds, with the lock
    in hand, that it is no longer the file of that name, and begins again. Where a system has no such locks,
    one driver a sweep is up to the user.

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
            take(descriptor, wait=wait)
        except BlockingIOError:
            os.close(descriptor)
            return None
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), lock.stat()):
                return descriptor
        os.close(descriptor)
