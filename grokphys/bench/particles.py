"""`grokphys bench particles`: the particle engine against plain NumPy, PyTorch and Numba, in one run."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

import physics
from grokphys.bench import references
from grokphys.bench.timing import Effort, Row, compare, goal, growth

STEP = 0.02


def _steps(tokens: int, runs: int, steps: int, effort: Effort) -> list[Row]:
    """Compare steps of particles with NumPy, after a check that the forces agree."""
    system = physics.ParticleSystem(tokens)
    start = np.random.default_rng(0).standard_normal((runs, tokens, 2))
    forces = physics.forces(start, system)
    error = float(np.abs(references.numpy_forces(start) - forces).max() / np.abs(forces).max())
    few, state = max(1, steps // 50), start.copy()

    def theirs() -> None:
        x = start
        for _ in range(few):
            x = x + STEP * references.numpy_forces(x)
            x = (x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True)

    return compare(
        f"a step, N = {tokens}, {runs} {'run' if runs == 1 else 'runs'}",
        lambda: system.advance(state, STEP, steps),
        {"NumPy": (theirs, few * runs)},
        units=steps * runs,
        rounds=effort.rounds,
        before=lambda _: np.copyto(state, start),
        error=error,
    )


def small_ensembles(effort: Effort) -> list[Row]:
    """Steps of 1000 runs of 17 particles."""
    return _steps(17, 1000 // effort.part, 100, effort)


def single_systems(effort: Effort) -> list[Row]:
    """Steps of one system of 59 particles."""
    return _steps(59, 1, 100, effort)


def many_dimensions(effort: Effort) -> list[Row]:
    """Forces on 29 particles in five dimensions."""
    x = np.random.default_rng(3).standard_normal((1, 29, 5))
    ours, theirs = (
        partial(physics.forces, x, physics.ParticleSystem(29, 5)),
        partial(references.numpy_forces, x),
    )
    error = float(np.abs(ours() - theirs()).max())
    return compare(
        "forces, N = 29, five dimensions", ours, {"NumPy": theirs}, rounds=effort.rounds, error=error
    )


def fast_sum(effort: Effort) -> list[Row]:
    """Forces of many particles by the fast sum, against our own direct sum, and how their times grow."""
    rows, times, sizes = [], [], (199, 337) if effort.part > 1 else (199, 337, 499, 997)
    for size in sizes:
        system, x = physics.ParticleSystem(size), np.random.default_rng(1).standard_normal((size, 2))
        both = {name: partial(physics.forces, x, system, method=name) for name in ("auto", "direct")}
        found: dict[str, NDArray[np.float64]] = {name: call() for name, call in both.items()}
        error = float(np.abs(found["auto"] - found["direct"]).max() / np.abs(found["direct"]).max())
        checks: Row = {"error": error} | goal("at most 1e-6", error <= 1e-6)
        rounds = 1 if size > 500 else effort.rounds
        what = f"forces, N = {size}, tolerance 1e-6"
        rows += compare(what, both["auto"], {"our direct sum": both["direct"]}, rounds=rounds, **checks)
        times.append(rows[-1]["ours_s"])
    return [*rows, growth("growth of the fast sum", sizes, times)]


BENCHMARKS = (small_ensembles, single_systems, many_dimensions, fast_sum)
