"""Loads PyTorch in such a way that its threads sleep while they wait for each other.

By default they spin. On busy cores, a step then took 410 ms with two spinning threads, 14 ms with two
sleeping threads, and 13 ms with one thread. OpenMP reads the setting when it is loaded, which happens here. A
setting of the user takes precedence.
"""

import importlib
import os

import physics.jit  # noqa: F401 - before, as PyTorch may load the OpenMP of Numba's threads too

if not os.environ.keys() & {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"}:
    os.environ["OMP_WAIT_POLICY"] = "passive"
    importlib.import_module("torch")
    del os.environ["OMP_WAIT_POLICY"]
