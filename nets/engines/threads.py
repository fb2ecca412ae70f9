"""Loads PyTorch so that its threads sleep while they wait for each other.

By default they spin, which on busy cores made a step of two threads take 410 ms that one did in 13; asleep
they take 14. OpenMP reads its setting when it is loaded, which is here; a setting of the user stays.
"""

import importlib
import os

import physics.jit  # noqa: F401 - before, as PyTorch may load the OpenMP of Numba's threads too

if not os.environ.keys() & {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"}:
    os.environ["OMP_WAIT_POLICY"] = "passive"
    importlib.import_module("torch")
    del os.environ["OMP_WAIT_POLICY"]
