"""`grokphys bench`: the registry of benchmarks, each against a reference in the same run."""

from collections.abc import Callable

from experiments.bench_particles import bench_particles
from experiments.bench_theory import bench_theory

BENCHES: dict[str, Callable[..., int]] = {"theory": bench_theory, "particles": bench_particles}
"""What each name measures: a function of `out`, the JSON file, and `budget`."""
