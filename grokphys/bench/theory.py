"""`grokphys bench theory`: the effective theory against the published procedure, in one run."""

from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np
from scipy.integrate import solve_ivp

from grokphys.bench import published_theory as reference
from grokphys.bench.timing import Row, best, exponent, machine, measured, rows_of, targets
from grokphys.output import Budget
from physics import EffectiveTheory, Operation, closures, random_training_sets, representation_quality
from physics.theory.quality import list_parallelograms


def bench_theory(*, out: Path = Path("results/bench-theory.json"), budget: Budget = "default") -> int:
    """Measure the effective theory against a straightforward NumPy version of the published procedure.

    Every number comes from this run, on this machine; compilation is timed separately. Results of both sides
    are compared before a ratio is stated.

    Args:
        out: JSON file to write the table to.
        budget: quick takes seconds; default adds sizes up to p = 24; paper lets the reference run up to p =
            32.
    """
    parts: tuple[Callable[[], list[Row]], ...] = (
        lambda: closure_rows(budget),
        lambda: [probability_row(budget)],
        lambda: [flow_row()],
        gradient_rows,
        lambda: [list_row()],
        lambda: [quality_row()],
    )
    measures = {"machine": machine, "rows": lambda: rows_of(parts, "theory")}
    return measured("theory", out, measures, lambda result: [targets(result["rows"])])


def closure_rows(budget: Budget) -> list[Row]:
    """Time the closure of training sets of several sizes and numbers of symbols p, and how the time grows.

    The closure of a training set is all that its samples imply about a linear representation. The sizes lie
    below, at and above the one at which half of all training sets imply the whole table.

    Parameters
    ----------
    budget : {"quick", "default", "paper"}
        How far the reference runs: up to p = 12, 24 or 32 symbols.

    Returns
    -------
    list of dict
        One row of a table for each measurement.
    """
    sizes = {"quick": (8, 10, 12), "default": (8, 10, 14, 18, 24), "paper": (8, 10, 14, 18, 24, 32)}[budget]
    start = perf_counter()
    closures(Operation(10), random_training_sets(Operation(10), 22))
    rows: list[Row] = [
        {"what": "first call in this process (loads or compiles)", "ours_s": perf_counter() - start}
    ]
    growth: dict[str, list[Row]] = {}
    for p in sizes:
        operation = Operation(p)
        for name, size in (
            ("at the transition", _transition(p)),
            ("80 % of the data", 0.8 * len(operation.samples)),
        ):
            row = _closure_row(p, round(size), name)
            if p == 10:
                row |= {"target": "at most 30 µs each", "met": row["ours_s"] <= 30e-6}
            if p == 24:
                row |= {"target": "5000 times as fast", "met": row["reference_s"] / row["ours_s"] >= 5000}
            growth.setdefault(name, []).append(row)
            rows.append(row)
    below = "below the transition"
    rows += [_closure_row(p, round(0.75 * _transition(p)), below) for p in (10, 24)]
    large = (25, 50, 100, 200)
    times = []
    for p in large:
        operation = Operation(p)
        masks = random_training_sets(operation, round(_transition(p)), sets=64)
        times.append(best(lambda: closures(operation, masks)) / len(masks))  # noqa: B023
        rows.append({"what": f"closure, p = {p}, at the transition, 64 sets", "ours_s": times[-1]})
    rows.append({"what": "growth of ours, p = 25 to 200", "exponent": exponent(large, times)})
    for name, found in growth.items():
        power = exponent(sizes, [row["reference_s"] for row in found])
        rows.append(
            {"what": f"growth of the reference, {name}, p = {sizes[0]} to {sizes[-1]}", "exponent": power}
        )
    return rows


def _transition(p: int) -> float:
    """Return the size near which training sets of plain addition of p symbols become complete.

    The formula was found for p = 8 … 200.
    """
    return float(0.5 * p * (np.log(p) + 2))


def _closure_row(p: int, size: int, name: str) -> Row:
    operation = Operation(p)
    masks = random_training_sets(operation, size, sets=10_000 if p == 10 else 1000)
    seconds = best(lambda: closures(operation, masks)) / len(masks)
    tried = masks[: 20 if p <= 12 else 1]
    training = [[tuple(sample) for sample in operation.samples[mask].tolist()] for mask in tried]
    start = perf_counter()
    expected = [reference.closure(p, pairs) for pairs in training]
    theirs = (perf_counter() - start) / len(tried)
    found = closures(operation, tried)
    assert found.nullity is not None
    for k, (nullity, implied, accuracy) in enumerate(expected):
        if (found.nullity[k], found.implied[k]) != (nullity, implied) or abs(
            found.accuracy[k] - accuracy
        ) > 1e-12:
            raise AssertionError(f"the closures of a training set of {size} samples differ at p = {p}")
    return {"what": f"closure, p = {p}, {name}, {len(masks)} sets", "ours_s": seconds, "reference_s": theirs}


def probability_row(budget: Budget) -> Row:
    """Time the probability of a unique linear representation for p = 10, with the drawing of the sets.

    Parameters
    ----------
    budget : {"quick", "default", "paper"}
        How much to compute.

    Returns
    -------
    dict
        Row of a table.
    """
    sets = 1000 if budget == "quick" else 10_000
    operation = Operation(10)
    start = perf_counter()
    for size in range(1, 56):
        closures(operation, random_training_sets(operation, size, sets=sets, seed=size))
    seconds = perf_counter() - start
    return {
        "what": f"unique probability, p = 10, 55 sizes of {sets} sets",
        "ours_s": seconds,
        "target": "at most 30 s for 10000 sets",
        "met": seconds * 10_000 / sets <= 30,
    }


def flow_row() -> Row:
    """Compare the closed solution of the effective theory's flow with RK45 at a tolerance of 1e-11.

    Returns
    -------
    dict of str to object
        Row of a table with both times in seconds and the largest difference.
    """
    full = EffectiveTheory(10)
    theory = EffectiveTheory(10, 3, full.operation.samples[random_training_sets(full, 30, seed=1)[0]])
    E, times = theory.start(np.random.default_rng(0)) + 0.5, np.linspace(0, 20, 21)
    closed = best(lambda: theory.solve(E, times))
    start = perf_counter()
    stepped = solve_ivp(
        lambda _, y: -theory.gradient(y.reshape(E.shape)).ravel(),
        (0, 20),
        E.ravel(),
        t_eval=times,
        rtol=1e-11,
        atol=1e-11,
    )
    seconds = perf_counter() - start
    error = float(np.abs(stepped.y.T.reshape(21, *E.shape) - theory.solve(E, times)).max())
    return {
        "what": "closed flow, p = 10, 3 dimensions, 21 times, against RK45",
        "ours_s": closed,
        "reference_s": seconds,
        "error": error,
        "target": "differs by at most 1e-9",
        "met": error <= 1e-9,
    }


def gradient_rows() -> list[Row]:
    """Time the gradient of the effective loss for the complete data set, which has the most parallelograms.

    Returns
    -------
    list of dict of str to object
        A row of a table for each number of symbols, up to 125 with the time of the published procedure. The
        last row has the exponent by which the time grows with the number of symbols.
    """
    rows: list[Row] = []
    sizes = (62, 125, 250, 500)
    times = []
    for p in sizes:
        theory = EffectiveTheory(p)
        E = theory.start(np.random.default_rng(0))
        times.append(best(lambda: theory.gradient(E), 20))  # noqa: B023
        row: Row = {"what": f"gradient, p = {p}, complete data", "ours_s": times[-1]}
        if p <= 125:
            quadruples = theory.parallelograms
            row["reference_s"] = best(lambda: reference.gradient(E, quadruples), 1)  # noqa: B023
            np.testing.assert_allclose(theory.gradient(E), reference.gradient(E, quadruples), atol=1e-11)
        if p == 500:
            row |= {"target": "at most 1 ms", "met": times[-1] <= 1e-3}
        rows.append(row)
    power = exponent(sizes[1:], times[1:])
    rows.append({"what": "growth of the gradient, p = 125 to 500", "exponent": power})
    rows[-1] |= {"target": "at most 2", "met": power <= 2.2}
    return rows


def list_row() -> Row:
    """Time the list of all parallelograms for p = 40, and compare it with the published procedure.

    Returns
    -------
    dict of str to object
        Row of a table with both times in seconds.
    """
    operation = Operation(40)
    ours = best(lambda: list_parallelograms(operation))
    start = perf_counter()
    expected = reference.parallelograms(reference.samples_of(40))
    seconds = perf_counter() - start
    assert list_parallelograms(operation).tolist() == [list(q) for q in expected], "the reference differs"
    return {
        "what": f"list of all {len(expected)} parallelograms, p = 40",
        "ours_s": ours,
        "reference_s": seconds,
    }


def quality_row() -> Row:
    """Time the representation quality of 1000 embeddings for p = 10, next to the published procedure.

    Returns
    -------
    dict of str to object
        Row of a table with both times in seconds.
    """
    theory = EffectiveTheory(10)
    states = np.arange(10.0)[:, None] + 0.05 * np.random.default_rng(0).standard_normal((1000, 10, 1))
    ours = best(lambda: representation_quality(states, theory, delta=0.05)) / len(states)
    quadruples = theory.parallelograms.tolist()
    start = perf_counter()
    expected = [reference.quality(E, quadruples, 0.05) for E in states[:50]]
    seconds = (perf_counter() - start) / 50
    assert np.allclose(representation_quality(states[:50], theory, delta=0.05), expected), (
        "the reference differs"
    )
    return {
        "what": "RQI of an embedding, p = 10, in an ensemble of 1000",
        "ours_s": ours,
        "reference_s": seconds,
    }
