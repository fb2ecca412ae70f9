"""`grokphys bench particles`: the particle engine against plain NumPy, PyTorch and Numba, in one run.

What is compared is timed in turn within one process, round by round, so a ratio is that of neighbours in
time; its spread is that of the rounds. The first call, which loads compiled code, is apart.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grokphys.bench import references
from grokphys.bench.timing import machine, seconds, spread
from grokphys.output import Budget, make_directory, write_json
from grokphys.progress import progress
from grokphys.report.page import Table
from physics.jit import kernel
from physics.particles.system import ParticleSystem, forces

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
def _multiply_add(x: NDArray[np.float64], factors: NDArray[np.float64], rounds: int) -> None:
    # Four chains an element, of factors that the compiler does not know: it would multiply known ones out.
    a, b, c, d = factors[0], factors[1], factors[2], factors[3]
    for _ in range(rounds):
        for k in range(x.size):
            p, q, r, s = x[k], x[k] + a, x[k] + b, x[k] + c
            for _ in range(8):
                p = p * a + d
                q = q * b + d
                r = r * c + d
                s = s * d + a
            x[k] = (p + q) + (r + s)


def bench_particles(*, out: Path = Path("results/bench-particles.json"), budget: Budget = "default") -> int:
    """Time the particle engine against plain NumPy, PyTorch and Numba, as ratios taken in one run.

    The first size is an ensemble of 1000 runs, the others are single systems. Medians of rounds are
    stated with the spread from the fastest to the slowest.

    Args:
        out: JSON file to write all numbers to.
        budget: quick takes fewer rounds and fits the cost up to N = 337; the others go on to N = 997, where
            one direct sum takes ten seconds or more.
    """
    rounds, sizes = {
        "quick": (3, (113, 199, 337)),
        "default": (7, (113, 199, 337, 499, 997)),
        "paper": (9, (113, 149, 199, 251, 337, 499, 709, 997)),
    }[budget]
    make_directory(out.parent)
    result = measure((17, 59, 113), 1000, 100, rounds, sizes)
    for table in _tables(result):
        print(table.text(), end="\n\n")
    write_json(out, result)
    print(f"wrote {out}")
    return 0


def measure(
    tokens: tuple[int, ...], runs: int, steps: int, rounds: int, sizes: tuple[int, ...]
) -> dict[str, Any]:
    """Measure the first size as an ensemble of `runs` over `steps`, the others as single systems.

    The cost of one evaluation is fitted over `sizes`.
    """
    parts: dict[str, Callable[[], Any]] = {
        "machine": machine,
        "comparisons": lambda: [
            row
            for place, size in enumerate(tokens)
            for row in _compare(size, *((runs, steps) if place == 0 else (1, steps)), rounds)
        ],
        "limits": lambda: _limits(rounds),
        "cost": lambda: _cost(sizes, rounds),
        "fresh_process": lambda: [_fresh(size) for size in (tokens[0], sizes[-1])],
    }
    return {name: parts[name]() for name in progress(tuple(parts), "bench particles", "part")}


def _compare(tokens: int, runs: int, steps: int, rounds: int) -> list[dict[str, Any]]:
    """Time a step of one run: ours and every reference that fits, in turn."""
    system = ParticleSystem(tokens)
    start = np.random.default_rng(0).standard_normal((runs, tokens, 2))
    few = start[: max(1, min(runs, 400_000 // system.pair_count**2))]
    calls: dict[str, tuple[Callable[[], Any], int]] = {
        "numba": (lambda: references.numba_forces(few), len(few))
    }
    if system.pair_count <= ARRAY_LIMIT:
        import torch

        tensor = torch.from_numpy(few)
        calls["numpy"] = (lambda: references.numpy_forces(few), len(few))
        calls["torch"] = (lambda: references.torch_forces(tensor), len(few))
    first = seconds(lambda: system.advance(start[:1].copy(), 0.02, 1))
    for call, _ in calls.values():
        call()
    ours: list[float] = []
    theirs: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        state = start.copy()
        ours.append(seconds(partial(system.advance, state, 0.02, steps)) / (runs * steps))
        for name, (call, count) in calls.items():
            theirs[name].append(seconds(call) / count)
    return [
        {
            "tokens": tokens,
            "runs": runs,
            "reference": name,
            "first_call_s": first,
            "ours_s": spread(ours),
            "reference_s": spread(took),
            "ratio": spread([b / a for a, b in zip(ours, took, strict=True)]),
            "interactions_per_s": system.pair_count * (system.pair_count - 1) / 2 / min(ours),
        }
        for name, took in theirs.items()
    ]


def _limits(rounds: int) -> dict[str, float]:
    """Divisions and fused multiply-adds a second, of one core on an array that stays in its cache."""
    x = np.full(512, 1.5)
    _divide(x, 1)
    factors = np.array([0.1, 0.2, 0.3, 0.15])
    _multiply_add(x, factors, 1)
    return {
        "divisions_per_s": 512 * 2000 / min(seconds(lambda: _divide(x, 2000)) for _ in range(rounds)),
        "multiply_adds_per_s": 512
        * 32
        * 1000
        / min(seconds(lambda: _multiply_add(x, factors, 1000)) for _ in range(rounds)),
    }


def _cost(sizes: tuple[int, ...], rounds: int) -> dict[str, Any]:
    """Time one evaluation of the forces against size, direct and automatic in turn, and fit exponents.

    What takes seconds is timed once or twice only: its spread is small.
    """
    rng = np.random.default_rng(1)
    rows: list[dict[str, Any]] = []
    for size in sizes:
        system, x = ParticleSystem(size), rng.standard_normal((size, 2))
        took: dict[str, list[float]] = {"direct": [], "auto": []}
        found = {}
        forces(x, system)  # plans the grid, which a moving system does once for many steps
        while not took["auto"] or (len(took["auto"]) < rounds and sum(took["direct"]) < 5.0):
            for method, times in took.items():
                began = time.perf_counter()
                found[method] = forces(x, system, method=method)
                times.append(time.perf_counter() - began)
        error = np.abs(found["auto"] - found["direct"]).max() / np.abs(found["direct"]).max()
        gain = [a / b for a, b in zip(took["direct"], took["auto"], strict=True)]
        rows.append(
            {
                "tokens": size,
                **{f"{method}_s": min(times) for method, times in took.items()},
                "gain": spread(gain),
                "relative_error": float(error),
            }
        )
    exponents = {
        method: float(np.polyfit(np.log(sizes), np.log([row[f"{method}_s"] for row in rows]), 1)[0])
        for method in ("direct", "auto")
    }
    return {"rows": rows, "exponents": exponents}


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
            "One evaluation of the forces against size, tolerance 1e-6; cost grows as N to the power "
            f"{cost['exponents']['direct']:.2f} (direct), {cost['exponents']['auto']:.2f} (auto).",
            ["size", "direct", "auto", "gain", "relative error"],
            [
                [
                    f"N = {row['tokens']}",
                    f"{1e3 * row['direct_s']:.4g} ms",
                    f"{1e3 * row['auto_s']:.4g} ms",
                    "{median:.1f} [{least:.1f}, {most:.1f}]".format(**row["gain"]),
                    f"{row['relative_error']:.1g}",
                ]
                for row in cost["rows"]
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
