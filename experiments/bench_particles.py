"""`grokphys bench particles`: the particle engine against plain NumPy, PyTorch and Numba, in one run.

What is compared is timed in turn within one process, round by round, so a ratio is that of neighbours in
time; its spread is that of the rounds. The first call, which loads compiled code, is apart.
"""

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from experiments import bench_references as references
from experiments.output import Budget, make_directory, write_text
from experiments.report import Table
from physics.jit import kernel
from physics.systems.particles import ParticleSystem, forces

ARRAY_LIMIT = 1900
"""Pair sums up to which the NumPy and PyTorch references, which hold several P² arrays, are run."""

FRESH = """
import sys, time
def peak():
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
    except OSError:
        return float("nan")
began = time.perf_counter()
import numpy, physics
imported = time.perf_counter()
tokens = int(sys.argv[1])
before = peak()
physics.forces(numpy.random.default_rng(0).standard_normal((tokens, 2)), physics.ParticleSystem(tokens))
done = time.perf_counter()
print(imported - began, done - imported, before, peak())
"""


@kernel()
def _divide(x: NDArray[np.float64], rounds: int) -> None:
    for _ in range(rounds):
        for k in range(x.size):
            x[k] = 1.0 / x[k]


@kernel(reorder=True)
def _multiply_add(x: NDArray[np.float64], rounds: int) -> None:
    # Four independent chains an element; the cache gives up one load and one store in 32 operations.
    for _ in range(rounds):
        for k in range(x.size):
            p, q, r, s = x[k], x[k] + 1.0, x[k] + 2.0, x[k] + 3.0
            for _ in range(8):
                p = p * 0.9999 + 1e-9
                q = q * 0.9998 + 1e-9
                r = r * 0.9997 + 1e-9
                s = s * 0.9996 + 1e-9
            x[k] = (p + q) + (r + s) - 5.9


def bench_particles(*, out: Path = Path("results/bench-particles.json"), budget: Budget = "default") -> int:
    """Time the particle engine against plain NumPy, PyTorch and Numba, as ratios taken in one run.

    The first size is an ensemble of 1000 runs, the others are single systems. Medians of rounds are
    stated with the spread from the fastest to the slowest.

    Args:
        out: JSON file to write all numbers to.
        budget: quick takes fewer rounds; paper fits the cost up to N = 499.
    """
    rounds, largest = {"quick": (3, 199), "default": (7, 337), "paper": (9, 499)}[budget]
    make_directory(out.parent)
    result = measure((17, 59, 113), 1000, 100, rounds, largest)
    for table in _tables(result):
        print(table.text(), end="\n\n")
    write_text(out, json.dumps(result, indent=1))
    print(f"wrote {out}")
    return 0


def measure(tokens: tuple[int, ...], runs: int, steps: int, rounds: int, largest: int) -> dict[str, Any]:
    """Measure the first size as an ensemble of `runs` over `steps`, the others as single systems."""
    return {
        "machine": _machine(),
        "comparisons": [
            row
            for place, size in enumerate(tokens)
            for row in _compare(size, *((runs, steps) if place == 0 else (1, 10)), rounds)
        ],
        "limits": _limits(rounds),
        "cost": _cost(largest, rounds),
        "fresh_process": [_fresh(size) for size in sorted({tokens[0], largest})],
    }


def _machine() -> dict[str, Any]:
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "processor": platform.processor() or platform.machine(),
        "threads": numba.get_num_threads(),
        "load": load,
    }


def _seconds(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {"median": float(np.median(values)), "least": min(values), "most": max(values)}


def _compare(tokens: int, runs: int, steps: int, rounds: int) -> list[dict[str, Any]]:
    """Time a step of one run: ours and every reference that fits, in turn."""
    system = ParticleSystem(tokens)
    start = np.random.default_rng(0).standard_normal((runs, tokens, 2))
    few = start[: max(1, min(runs, 400_000 // system.pairs**2))]
    calls: dict[str, tuple[Callable[[], Any], int]] = {
        "numba": (lambda: references.numba_forces(few), len(few))
    }
    if system.pairs <= ARRAY_LIMIT:
        import torch

        tensor = torch.from_numpy(few)
        calls["numpy"] = (lambda: references.numpy_forces(few), len(few))
        calls["torch"] = (lambda: references.torch_forces(tensor), len(few))
    first = _seconds(lambda: system.advance(start[:1].copy(), 0.02, 1))
    for call, _ in calls.values():
        call()
    ours: list[float] = []
    theirs: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        state = start.copy()
        ours.append(_seconds(partial(system.advance, state, 0.02, steps)) / (runs * steps))
        for name, (call, count) in calls.items():
            theirs[name].append(_seconds(call) / count)
    return [
        {
            "tokens": tokens,
            "runs": runs,
            "reference": name,
            "first_call_s": first,
            "ours_s": _spread(ours),
            "reference_s": _spread(seconds),
            "ratio": _spread([b / a for a, b in zip(ours, seconds, strict=True)]),
            "interactions_per_s": system.pairs * (system.pairs - 1) / 2 / min(ours),
        }
        for name, seconds in theirs.items()
    ]


def _limits(rounds: int) -> dict[str, float]:
    """Divisions and fused multiply-adds a second, of one core on an array that stays in its cache."""
    x = np.full(512, 1.5)
    _divide(x, 1)
    _multiply_add(x, 1)
    return {
        "divisions_per_s": 512 * 2000 / min(_seconds(lambda: _divide(x, 2000)) for _ in range(rounds)),
        "multiply_adds_per_s": 512
        * 32
        * 1000
        / min(_seconds(lambda: _multiply_add(x, 1000)) for _ in range(rounds)),
    }


def _cost(largest: int, rounds: int) -> dict[str, Any]:
    """Time of one force evaluation against size for each method, and the exponents between the ends."""
    sizes = np.unique(np.geomspace(113, largest, 4).round().astype(int))
    result: dict[str, Any] = {"tokens": sizes.tolist()}
    rng = np.random.default_rng(1)
    for method in ("direct", "auto"):
        seconds = []
        for size in sizes:
            system = ParticleSystem(int(size))
            x = rng.standard_normal((int(size), 2))
            call = partial(forces, x, system, method=method)
            call()
            seconds.append(min(_seconds(call) for _ in range(min(rounds, 3))))
        slope = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
        result[method] = {"seconds": seconds, "exponent": float(slope)}
    return result


def _fresh(tokens: int) -> dict[str, float]:
    """First call and memory in a process of its own, which finds the compiled code on disk."""
    command = [sys.executable, "-c", FRESH, str(tokens)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    imported, first, before, after = map(float, output.split())
    return {
        "tokens": tokens,
        "import_s": imported,
        "first_forces_s": first,
        "memory_before_mib": before,
        "peak_memory_mib": after,
    }


def _tables(result: dict[str, Any]) -> list[Table]:
    limits, cost = result["limits"], result["cost"]
    cores = result["machine"]["threads"]
    return [
        Table(
            f"A step of one run against references; {cores} threads; ratios: median [least, most] of rounds.",
            ["size", "reference", "ours", "reference takes", "ratio", "pairs/s", "of all cores' dividers"],
            [
                [
                    f"N = {row['tokens']}, {row['runs']} runs",
                    row["reference"],
                    f"{row['ours_s']['median'] * 1e6:.4g} us",
                    f"{row['reference_s']['median'] * 1e6:.4g} us",
                    "{median:.0f} [{least:.0f}, {most:.0f}]".format(**row["ratio"]),
                    f"{row['interactions_per_s']:.3g}",
                    f"{100 * row['interactions_per_s'] / (cores * limits['divisions_per_s']):.0f} %",
                ]
                for row in result["comparisons"]
            ],
        ),
        Table(
            "Limits of one core, measured in this run.",
            ["operation", "per second"],
            [[name.removesuffix("_per_s"), f"{value:.3g}"] for name, value in limits.items()],
        ),
        Table(
            "One evaluation of the forces against size; exponents fitted.",
            ["method", *(f"N = {size}" for size in cost["tokens"]), "exponent"],
            [
                [
                    method,
                    *(f"{1e3 * value:.4g} ms" for value in cost[method]["seconds"]),
                    f"{cost[method]['exponent']:.2f}",
                ]
                for method in ("direct", "auto")
            ],
        ),
        Table(
            "A process of its own, compiled code on disk.",
            ["size", "import", "first forces", "memory before", "peak memory"],
            [
                [
                    f"N = {row['tokens']}",
                    f"{row['import_s']:.2f} s",
                    f"{row['first_forces_s']:.2f} s",
                    f"{row['memory_before_mib']:.0f} MiB",
                    f"{row['peak_memory_mib']:.0f} MiB",
                ]
                for row in result["fresh_process"]
            ],
        ),
    ]
