"""The lock that HDF5 takes on a file; it ends with the process that holds it, however that ends."""

from pathlib import Path
from typing import Any


def lock(file: Any, *, shared: bool = False, wait: bool = False) -> None:
    """Lock an open file or descriptor, on systems and file systems that have such locks.

    Raises
    ------
    BlockingIOError
        If another process holds it, unless `wait` is set.
    """
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        raise
    except OSError:  # a file system without locks
        return


def locked(path: Path) -> bool:
    """Whether another process holds the lock of a file, without touching the file."""
    with path.open("rb") as file:
        try:
            lock(file)
        except BlockingIOError:
            return True
    return False
