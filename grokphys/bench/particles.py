"""`grokphys bench particles`: the particle engine against plain NumPy, PyTorch and Numba, in one run."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import physics
from grokphys.bench.timing import Effort, Row, compare, goal

STEP, SOFTENING = 0.02, 0.1
Array = NDArray[Any]


def particle_step(xp: Any, tokens: int) -> Callable[[Any], Any]:
    """Return a step of particles in two dimensions by arrays of NumPy, JAX or PyTorch.

    The coordinates lie in planes of their own, which all three compute three to five times as fast as arrays
    whose last axis has two entries; sums over partners are products of matrices.

    Parameters
    ----------
    xp : module
        `numpy`, `jax.numpy` or `torch`.
    tokens : int
        Number of particles. All constants are 1, and classes are i + j modulo `tokens`.

    Returns
    -------
    callable
        A function of positions of shape (..., 2, tokens) that returns those after a step of size `STEP`.
    """
    first, second = np.triu_indices(tokens)
    label = (first + second) % tokens
    same = label[:, None] == label
    alike, unlike = physics.ParticleSystem(tokens).weights
    strength = np.where(same, alike, -unlike)
    members = (first[:, None] == np.arange(tokens)) * 1.0 + (second[:, None] == np.arange(tokens))
    same, strength, beside, members = (
        xp.asarray(array) for array in (same, strength, strength * ~np.eye(len(same), dtype=bool), members)
    )

    def step(x: Any) -> Any:
        s = x[..., first] + x[..., second]
        a, b = s[..., 0, :], s[..., 1, :]
        squared = (a[..., :, None] - a[..., None, :]) ** 2 + (b[..., :, None] - b[..., None, :]) ** 2
        squared = squared + SOFTENING**2
        radial = -strength * xp.where(same, 1 / xp.sqrt(squared), 1 / squared)
        ahead = a[..., :, None] * a[..., None, :] + b[..., :, None] * b[..., None, :] > 0
        unit = s / xp.sqrt((s**2).sum(-2))[..., None, :]
        along = unit @ xp.swapaxes(xp.where(ahead, beside, 0.0), -1, -2)
        force = radial.sum(-1)[..., None, :] * s - s @ xp.swapaxes(radial, -1, -2) + along
        x = x + STEP * force @ members
        x = x - x.mean(-1)[..., None]
        return x / xp.sqrt((x**2).mean(-1))[..., None]

    return step


def numpy_steps(start: Array, steps: int) -> Array:
    """Return positions (runs, tokens, 2) after some steps by NumPy, run by run, which fits into the cache."""
    step, ends = particle_step(np, start.shape[1]), []
    for x in np.swapaxes(start, -1, -2):
        for _ in range(steps):
            x = step(x)
        ends.append(x.T)
    return np.array(ends)


def _steps(tokens: int, runs: int, steps: int, effort: Effort) -> list[Row]:
    """Compare steps of particles with NumPy, after a check that the first ones agree."""
    system = physics.ParticleSystem(tokens)
    start = np.random.default_rng(0).standard_normal((runs, tokens, 2))
    few, state = max(1, steps // 50), start.copy()
    theirs = partial(numpy_steps, start, few)
    system.advance(state, STEP, few)
    error = float(np.abs(theirs() - state).max() / np.abs(state).max())
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
