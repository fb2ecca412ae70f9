"""The particle engine against NumPy, PyTorch and Numba references; see `grokphys bench particles`.

Usage: python benchmarks/particles.py [--out FILE] [--largest N] …
"""

import tyro

from experiments.bench_particles import bench_particles

if __name__ == "__main__":
    tyro.cli(bench_particles)
