"""A setting with which the threads of PyTorch sleep, instead of spin, while they wait for each other.

On busy cores, a step took 410 ms with two spinning threads, 14 ms with two sleeping threads, and 13 ms with
one thread. OpenMP reads the setting when it is loaded, which happens while PyTorch is imported, whoever
imports it. A setting of the user takes precedence.
"""

import ctypes
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

DRIVERS = ("libcuda.so.1", "nvcuda.dll")
"""Libraries of the driver, without which PyTorch finds no CUDA."""
ROCM = Path("/dev/kfd")
"""Device of an AMD driver, which PyTorch for ROCm also calls CUDA."""


class _Finder(MetaPathFinder):
    """Adds the setting to the import of PyTorch, and leaves all other imports alone."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find PyTorch as Python does, and nothing else."""
        spec = PathFinder.find_spec(fullname, path, target) if fullname == "torch" else None
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(fullname, spec.origin)
        return spec


class _Loader(SourceFileLoader):
    """Imports PyTorch with the setting, which is removed from the environment afterwards."""

    def exec_module(self, module: ModuleType) -> None:
        """Import PyTorch with the setting."""
        import physics.jit  # noqa: F401 - before, as PyTorch may load the OpenMP of Numba's threads too

        os.environ["OMP_WAIT_POLICY"] = "passive"
        try:
            super().exec_module(module)
        finally:
            del os.environ["OMP_WAIT_POLICY"]


if not os.environ.keys() & {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"}:
    sys.meta_path.insert(0, _Finder())


def _one_thread() -> None:
    """Let PyTorch use one thread in a process that has been forked: the others of its pool do not exist."""
    torch: Any = sys.modules.get("torch")
    if hasattr(torch, "set_num_threads"):
        torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_one_thread)


def cuda_is_available() -> bool:
    """Return whether PyTorch can use CUDA; without a driver, this is known before PyTorch is imported."""
    if "torch" not in sys.modules and not ROCM.exists() and not any(map(_is_installed, DRIVERS)):
        return False
    return bool(import_module("torch").cuda.is_available())


def _is_installed(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
