"""`grokphys bench theory`: the effective theory against the published procedure, in one run."""

from functools import partial
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

import physics
from grokphys.bench import references
from grokphys.bench.timing import Effort, Row, compare, goal, growth


def _transition(p: int) -> int:
    """Return about the size at which half of all training sets of addition of p symbols become complete."""
    return round(0.5 * p * (np.log(p) + 2))


def closures(effort: Effort) -> list[Row]:
    """Closures of training sets near the transition, against ranks of matrices, and how their times grow."""
    rows: list[Row] = []
    for p in (8, 10, 12) if effort.part > 1 else (8, 10, 14, 24):
        operation = physics.Operation(p)
        masks = physics.random_training_sets(operation, _transition(p), sets=1000)
        tried = masks[: 20 if p <= 12 else 1]
        training = [[tuple(sample) for sample in operation.samples[mask].tolist()] for mask in tried]
        ours, theirs = (
            physics.closures(operation, tried),
            [references.closure(p, pairs) for pairs in training],
        )
        assert ours.nullity is not None
        same = [(ours.nullity[k], ours.implied[k]) == theirs[k][:2] for k in range(len(tried))]
        what = f"closure at the transition, p = {p}"
        loop = partial(lambda p, sets: [references.closure(p, pairs) for pairs in sets], p, training)
        checks: Row = goal("same nullities and parallelograms", all(same))
        checks["error"] = float(np.abs(ours.accuracy - [closure[2] for closure in theirs]).max())
        calls = {"published procedure": (loop, float(len(tried)))}
        rounds = 1 if p > 12 else effort.rounds
        call = partial(physics.closures, operation, masks)
        rows += compare(what, call, calls, units=len(masks), rounds=rounds, **checks)
    sizes = (25, 50, 100, 200)
    times = []
    for p in sizes:
        operation = physics.Operation(p)
        masks = physics.random_training_sets(operation, _transition(p), sets=64)
        call = partial(physics.closures, operation, masks)
        times.append(compare(f"closure, p = {p}", call, {}, units=64, rounds=effort.rounds)[0]["ours_s"])
    return [*rows, growth("growth of closures, p = 25 to 200", sizes, times)]


def flow(effort: Effort) -> list[Row]:
    """The closed solution of the flow against RK45 at a tolerance of 1e-11."""
    samples = physics.Operation(10).samples
    masks = physics.random_training_sets(physics.Operation(10), 30, seed=1)
    theory = physics.EffectiveTheory(10, 3, samples[masks[0]])
    E, times = theory.start(np.random.default_rng(0)) + 0.5, np.linspace(0, 20, 21)

    def integrate() -> Any:
        slope = lambda _, y: -theory.gradient(y.reshape(E.shape)).ravel()  # noqa: E731
        return solve_ivp(slope, (0, 20), E.ravel(), t_eval=times, rtol=1e-11, atol=1e-11).y.T

    error = float(np.abs(integrate().reshape(21, *E.shape) - theory.solve(E, times)).max())
    checks: Row = {"error": error} | goal("at most 1e-9", error <= 1e-9)
    ours = partial(theory.solve, E, times)
    return compare("flow, p = 10, 21 times", ours, {"RK45": integrate}, rounds=effort.rounds, **checks)


def gradient(effort: Effort) -> list[Row]:
    """The gradient of the effective loss for complete data, which has the most parallelograms."""
    rows: list[Row] = []
    sizes = (62, 125, 250, 500)
    for p in sizes:
        theory = physics.EffectiveTheory(p)
        E = theory.start(np.random.default_rng(0))
        theirs: dict[str, Any] = {}
        checks: Row = {}
        if p == 62:
            quadruples = theory.parallelograms
            theirs = {"published procedure": partial(references.gradient, E, quadruples)}
            checks = {"error": float(np.abs(theory.gradient(E) - references.gradient(E, quadruples)).max())}
        rows += compare(
            f"gradient, p = {p}", partial(theory.gradient, E), theirs, rounds=effort.rounds, **checks
        )
    return [*rows, growth("growth of the gradient", sizes[1:], [row["ours_s"] for row in rows[1:]])]


def quality(effort: Effort) -> list[Row]:
    """The representation quality of an embedding for p = 10, in an ensemble of 1000."""
    theory = physics.EffectiveTheory(10)
    E = np.arange(10.0)[:, None] + 0.05 * np.random.default_rng(0).standard_normal((1000, 10, 1))
    quadruples = theory.parallelograms.tolist()

    def loop() -> list[float]:
        return [references.quality(states, quadruples, 0.05) for states in E[:20]]

    ours = partial(physics.representation_quality, E, theory, delta=0.05)
    error = float(np.abs(ours()[:20] - loop()).max())
    theirs = {"published procedure": (loop, 20)}
    return compare("quality, p = 10", ours, theirs, units=1000, rounds=effort.rounds, error=error)


BENCHMARKS = (closures, flow, gradient, quality)
