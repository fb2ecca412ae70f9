"""`grokphys bench`: the benchmarks by their names."""

from collections.abc import Callable

from grokphys.bench.gpu import bench_gpu
from grokphys.bench.nets import bench_nets
from grokphys.bench.ode import bench_ode
from grokphys.bench.particles import bench_particles
from grokphys.bench.start import bench_start
from grokphys.bench.theory import bench_theory

BENCHES: dict[str, Callable[..., int]] = {
    "theory": bench_theory,
    "particles": bench_particles,
    "nets": bench_nets,
    "ode": bench_ode,
    "start": bench_start,
    "gpu": bench_gpu,
}
"""Benchmarks by name: functions of the JSON file `out` and of `budget`; gpu also takes `minutes`."""
