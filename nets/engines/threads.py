"""Threads of PyTorch, whose settings this package chooses where it imports PyTorch first."""

import ctypes
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

ROCM = Path("/dev/kfd")
"""Device of an AMD driver, which PyTorch for ROCm also calls CUDA."""


def _one_thread() -> None:
    """Let PyTorch use one thread in a process that has been forked: the others of its pool do not exist."""
    torch: Any = sys.modules.get("torch")
    if hasattr(torch, "set_num_threads"):
        torch.set_num_threads(1)


if "torch" not in sys.modules:
    # OpenMP reads it when PyTorch is imported. On busy cores, a step took 410 ms with two threads that spin
    # while they wait for each other, 14 ms with two that sleep, and 13 ms with one thread.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_one_thread)


def cuda_is_available() -> bool:
    """Return whether PyTorch can use CUDA; without a driver, this is known before PyTorch is imported."""
    if "torch" not in sys.modules and not ROCM.exists():
        try:
            ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        except OSError:
            return False
    return bool(import_module("torch").cuda.is_available())
