"""`grokphys bench`: the registry of benchmarks, each against a reference in the same run."""

from collections.abc import Callable

from experiments.bench_gpu import bench_gpu
from experiments.bench_nets import bench_nets
from experiments.bench_ode import bench_ode
from experiments.bench_particles import bench_particles
from experiments.bench_theory import bench_theory

BENCHES: dict[str, Callable[..., int]] = {
    "theory": bench_theory,
    "particles": bench_particles,
    "nets": bench_nets,
    "ode": bench_ode,
    "gpu": bench_gpu,
}
"""What each name measures: a function of `out`, the JSON file, and `budget`; gpu takes `minutes` too."""
