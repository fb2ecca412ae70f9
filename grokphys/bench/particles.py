"""`grokphys bench particles`: the particle engine against plain NumPy, PyTorch and Numba, in one run.

All contenders are timed in turn within one process, round by round. A ratio therefore compares measurements
that are close in time, and its spread is that of the rounds. The first call, which loads compiled code, is
timed separately.
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
from grokphys.bench.timing import against, exponent, in_turn, machine, measured, ratio, seconds, table
from grokphys.output import Budget
from grokphys.report.page import Table
from physics.jit import kernel
from physics.particles.forces import forces
from physics.particles.system import ParticleSystem

ARRAY_LIMIT = 1900
"""Largest number P of pair sums for which the NumPy and PyTorch references, which hold several arrays of P²
entries, are run."""

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
    # Four chains for each element, with factors that are unknown to the compiler, which would combine known
    # ones.
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
        budget: quick takes fewer rounds and measures the cost up to N = 337 particles; the other budgets
            continue to N = 997, where one direct sum takes ten seconds or more.
    """
    rounds, sizes = {
        "quick": (3, (113, 199, 337)),
        "default": (7, (113, 199, 337, 499, 997)),
        "paper": (9, (113, 149, 199, 251, 337, 499, 709, 997)),
    }[budget]
    return measured("particles", out, parts((17, 59, 113), 1000, 100, rounds, sizes), _tables)


def parts(
    tokens: tuple[int, ...], runs: int, steps: int, rounds: int, sizes: tuple[int, ...]
) -> dict[str, Callable[[], Any]]:
    """Return the measurements of the benchmark, by name.

    Parameters
    ----------
    tokens : tuple of int
        Numbers of particles that are compared with references. The first one is an ensemble, the others are
        single runs.
    runs : int
        Number of runs of the ensemble.
    steps : int
        Number of steps.
    rounds : int
        Number of rounds in which the contenders are timed in turn.
    sizes : tuple of int
        Numbers of particles over which the cost of one evaluation of the forces is fitted.

    Returns
    -------
    dict of str to callable
        Functions without arguments that return results which JSON can hold.
    """
    return {
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


def _compare(tokens: int, runs: int, steps: int, rounds: int) -> list[dict[str, Any]]:
    """Return rows that compare the time of a step of one run with references that fit into memory."""
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
    state = start.copy()
    ours = partial(system.advance, state, 0.02, steps), runs * steps
    took = in_turn({"ours": ours, **calls}, rounds, lambda _: np.copyto(state, start))
    about = {"tokens": tokens, "runs": runs, "first_call_s": first}
    speed = system.pair_count * (system.pair_count - 1) / 2 / min(took["ours"])
    return [about | row | {"interactions_per_s": speed} for row in against(took)]


def _limits(rounds: int) -> dict[str, float]:
    """Return divisions and fused multiply-adds per second of one core, on an array in its cache."""
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
    """Time one evaluation of the forces over size, by the direct sum and automatically, and fit exponents.

    Calls of several seconds are timed only once or twice, because their spread is small.
    """
    rng = np.random.default_rng(1)
    rows: list[dict[str, Any]] = []
    for size in sizes:
        system, x = ParticleSystem(size), rng.standard_normal((size, 2))
        took: dict[str, list[float]] = {"direct": [], "auto": []}
        found = {}
        forces(x, system)  # this plans the grid, which a moving system does once for many steps
        while not took["auto"] or (len(took["auto"]) < rounds and sum(took["direct"]) < 5.0):
            for method, times in took.items():
                began = time.perf_counter()
                found[method] = forces(x, system, method=method)
                times.append(time.perf_counter() - began)
        error = np.abs(found["auto"] - found["direct"]).max() / np.abs(found["direct"]).max()
        rows.append(
            {
                "tokens": size,
                **{f"{method}_s": min(times) for method, times in took.items()},
                "gain": ratio(took["direct"], took["auto"]),
                "relative_error": float(error),
            }
        )
    exponents = {
        method: exponent(sizes, [row[f"{method}_s"] for row in rows]) for method in ("direct", "auto")
    }
    return {"rows": rows, "exponents": exponents}


def _fresh(tokens: int) -> dict[str, float]:
    """Measure the first call and the memory in a new process, which finds the compiled code on disk."""
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
    threads, cost = result["machine"]["threads"], result["cost"]
    dividers = threads * result["limits"]["divisions_per_s"]
    comparisons = [row | {"of": row["interactions_per_s"] / dividers} for row in result["comparisons"]]
    return [
        table(
            f"A step of one run against references; {threads} threads; ratios: median [least, most].",
            comparisons,
            {
                "size": "N = {tokens}, {runs} runs",
                "reference": "{reference}",
                "ours": "{ours_s:time}",
                "reference takes": "{reference_s:time}",
                "ratio": "{ratio:spread}",
                "pairs/s": "{interactions_per_s:.3g}",
                "of all cores' dividers": "{of:.0%}",
            },
        ),
        table(
            "Limits of one core, measured in this run.",
            [{"what": name.removesuffix("_per_s"), "rate": rate} for name, rate in result["limits"].items()],
            {"operation": "{what}", "per second": "{rate:.3g}"},
        ),
        table(
            "One evaluation of the forces against size, tolerance 1e-6; cost grows as N to the power "
            f"{cost['exponents']['direct']:.2f} (direct), {cost['exponents']['auto']:.2f} (auto).",
            cost["rows"],
            {
                "size": "N = {tokens}",
                "direct": "{direct_s:time}",
                "auto": "{auto_s:time}",
                "gain": "{gain:spread}",
                "relative error": "{relative_error:.1g}",
            },
        ),
        table(
            "A process of its own, compiled code on disk.",
            result["fresh_process"],
            {
                "size": "N = {tokens}",
                "import": "{import_s:time}",
                "first forces": "{first_forces_s:time}",
                "memory before": "{memory_before_mib:.0f} MiB",
                "peak memory": "{peak_memory_mib:.0f} MiB",
            },
        ),
    ]
