"""`grokphys bench particles`: forces of many particles by the fast sum against the direct one, in one run."""

from functools import partial

import numpy as np

import physics
from grokphys.bench.timing import Effort, Row, compare


def fast_sum(effort: Effort) -> list[Row]:
    """Forces of many particles by the fast sum, against our own direct sum."""
    rows: list[Row] = []
    for size in (199, 337) if effort.part > 1 else (199, 337, 499, 997):
        system, x = physics.ParticleSystem(size), np.random.default_rng(1).standard_normal((size, 2))
        both = {name: partial(physics.forces, x, system, method=name) for name in ("auto", "direct")}
        forces = {name: call() for name, call in both.items()}
        error = float(np.abs(forces["auto"] - forces["direct"]).max() / np.abs(forces["direct"]).max())
        checks: Row = {"error": error, "target": "at most 1e-6", "met": error <= 1e-6}
        rounds = 1 if size > 500 else effort.rounds
        what = f"forces, N = {size}, tolerance 1e-6"
        rows += compare(what, both["auto"], {"our direct sum": both["direct"]}, rounds=rounds, **checks)
    return rows


BENCHMARKS = (fast_sum,)
