"""What the benchmarks share: how long a call takes, the spread of rounds, and what machine it was."""

import os
import platform
import time
from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np


def seconds(call: Callable[[], Any]) -> float:
    """Time one call."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def best(call: Callable[[], Any], repeats: int = 5) -> float:
    """Seconds of the fastest of several calls, after one that compiles and fills the caches."""
    call()
    return min(seconds(call) for _ in range(repeats))


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, least and most."""
    return {"median": float(np.median(values)), "least": min(values), "most": max(values)}


def machine() -> dict[str, Any]:
    """Processor, threads, and the load when it began."""
    return {
        "processor": platform.processor() or platform.machine(),
        "threads": numba.get_num_threads(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
    }
