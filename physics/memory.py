"""How much memory this process may use, and the refusal of what needs more."""

import contextlib
import os
from pathlib import Path

from physics.errors import InputError


def require_memory(what: str, needed: float, advice: str) -> None:
    """Refuse work that needs more bytes than this process may use, with an `InputError`.

    The message says `what` needs the memory, and gives the `advice`. Otherwise the operating system might end
    the process without a word. If the system does not report its memory, nothing is refused.
    """
    limits = {"this container or job may use": group_limit()}
    with contextlib.suppress(AttributeError, OSError, ValueError):
        limits["this machine has"] = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    whose = min(limits, key=lambda name: limits[name])
    if needed > limits[whose]:
        size, limit = needed / 2**30, limits[whose] / 2**30
        raise InputError(f"{what} need {size:.1f} GiB, more than the {limit:.1f} GiB that {whose}; {advice}")


def group_limit(root: Path = Path("/")) -> float:
    """Return the least memory limit in bytes of this process's control group and of those around it.

    Version 2 of Linux's control groups is read, below `root`; without any the limit is infinite.
    """
    limit = float("inf")
    with contextlib.suppress(OSError, StopIteration):
        lines = (root / "proc/self/cgroup").read_text().splitlines()
        path = next(line for line in lines if line.startswith("0::")).removeprefix("0::/")
        # A container may see its own group as the root, under which the host's path does not exist.
        inner = root / "sys/fs/cgroup" / path
        for folder in (inner, *inner.parents):
            with contextlib.suppress(OSError, ValueError):  # no such file, or the word "max"
                limit = min(limit, float((folder / "memory.max").read_text()))
    return limit
