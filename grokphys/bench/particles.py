"""`grokphys bench particles`: the particle engine against plain NumPy, PyTorch and Numba, in one run."""

from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import physics
from grokphys.bench.timing import Effort, Row, compare, goal

STEP = 0.02
Array = NDArray[Any]


@cache
def _pairs(tokens: int) -> tuple[Array, ...]:
    first, second = np.triu_indices(tokens)
    holds = np.zeros((tokens, first.size))
    np.add.at(holds, (first, np.arange(first.size)), 1.0)
    np.add.at(holds, (second, np.arange(first.size)), 1.0)
    return first, second, (first + second) % tokens, holds


def numpy_forces(positions: Array, softening: float = 0.1) -> Array:
    """Compute the forces on particles by NumPy, from arrays with an entry for each pair of pair sums.

    Parameters
    ----------
    positions : ndarray of float64, shape (runs, tokens, dim)
        Positions of the particles. All constants are 1, and classes are i + j modulo the tokens.
    softening : float, default 0.1
        Length below which attraction and repulsion fade.

    Returns
    -------
    ndarray of float64, shape (runs, tokens, dim)
        Force on each particle.
    """
    first, second, label, holds = _pairs(positions.shape[1])
    same_weight, diff_weight = physics.ParticleSystem(positions.shape[1], positions.shape[2]).weights
    same = label[:, None] == label
    sums = positions[:, first] + positions[:, second]
    difference = sums[:, :, None] - sums[:, None]
    squared = np.einsum("rabk,rabk->rab", difference, difference) + softening**2
    radial = np.where(same, -same_weight / np.sqrt(squared), diff_weight / squared)
    force = np.einsum("rab,rabk->rak", radial, difference)
    units = sums / np.linalg.norm(sums, axis=2, keepdims=True)
    ahead = np.where(sums @ sums.transpose(0, 2, 1) > 0, np.where(same, same_weight, -diff_weight), 0.0)
    ahead[:, np.arange(first.size), np.arange(first.size)] = 0.0
    return holds @ (force + ahead @ units)


def _steps(tokens: int, runs: int, steps: int, effort: Effort) -> list[Row]:
    """Compare steps of particles with NumPy, after a check that the forces agree."""
    system = physics.ParticleSystem(tokens)
    start = np.random.default_rng(0).standard_normal((runs, tokens, 2))
    forces = physics.forces(start, system)
    error = float(np.abs(numpy_forces(start) - forces).max() / np.abs(forces).max())
    few, state = max(1, steps // 50), start.copy()

    def theirs() -> None:
        x = start
        for _ in range(few):
            x = x + STEP * numpy_forces(x)
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


def fast_sum(effort: Effort) -> list[Row]:
    """Forces of many particles by the fast sum, against our own direct sum."""
    rows: list[Row] = []
    for size in (199, 337) if effort.part > 1 else (199, 337, 499, 997):
        system, x = physics.ParticleSystem(size), np.random.default_rng(1).standard_normal((size, 2))
        both = {name: partial(physics.forces, x, system, method=name) for name in ("auto", "direct")}
        forces: dict[str, Array] = {name: call() for name, call in both.items()}
        error = float(np.abs(forces["auto"] - forces["direct"]).max() / np.abs(forces["direct"]).max())
        checks: Row = {"error": error} | goal("at most 1e-6", error <= 1e-6)
        rounds = 1 if size > 500 else effort.rounds
        what = f"forces, N = {size}, tolerance 1e-6"
        rows += compare(what, both["auto"], {"our direct sum": both["direct"]}, rounds=rounds, **checks)
    return rows


BENCHMARKS = (small_ensembles, single_systems, fast_sum)
