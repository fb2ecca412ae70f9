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
    """Return the least memory limit in bytes of this process's control groups and of those around them.

    Both versions of Linux's control groups are read, below `root`; without any the limit is infinite.
    """
    limit = float("inf")
    try:
        groups = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return limit
    for line in groups:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        # A container may see its own group as the root, under which the host's path does not exist.
        top = root / "sys/fs/cgroup" / ("memory" if controllers else "")
        inner = top / path.lstrip("/")
        for folder in (inner, *inner.parents):
            if folder != top and top not in folder.parents:
                break
            for name in ("memory.max", "memory.limit_in_bytes"):
                try:
                    limit = min(limit, float((folder / name).read_text()))
                except (OSError, ValueError):  # no such file, or the word "max"
                    continue
    return limit if limit < 2**60 else float("inf")  # version 1 writes a huge number for none
