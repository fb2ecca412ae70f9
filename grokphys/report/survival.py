"""What `grokphys survival` does: circles of many runs, how many survive, and what told so at the start."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from analysis.circles.survival import (
    Classifier,
    Fitness,
    StoppingRule,
    circle_counts,
    fitness,
    survival_rates,
)
from grokphys.batches import Row, read_each, run_columns
from grokphys.report import circles as ding
from grokphys.report.page import Table
from physics.errors import InputError
from physics.trajectory import Trajectory

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Circles:
    """All circles of one run.

    Attributes
    ----------
    columns : dict
        File, run and parameters.
    signal, gradient, final : ndarray, shape (K,)
        Initial signal, its change a step at the step asked for, and the last recorded signal.
    survived : ndarray of bool, shape (K,)
    decided : int or None
        Step at which the survivors were decided by `StoppingRule`.
    """

    columns: Row
    signal: Array
    gradient: Array
    final: Array
    survived: NDArray[np.bool_]
    decided: int | None


def read_circles(
    files: Sequence[str], at: int, factor: float, threshold: float | None, failed: list[Path]
) -> list[Circles]:
    """Circles of every run of every file; files that cannot be read are named and added to `failed`."""

    def read(trajectory: Trajectory) -> list[Circles]:
        found = []
        for run in ding.signals_of(trajectory, factor=factor, threshold=threshold):
            if at > run.steps[-1]:
                raise InputError(f"at must be at most the last step, {run.steps[-1]}, got {at}")
            place = max(int(np.searchsorted(run.steps, at)), 1)
            change = run.values[place] - run.values[place - 1]
            alive = np.isin(np.arange(1, run.values.shape[1] + 1), run.survivors)
            gradient = change / (run.steps[place] - run.steps[place - 1])
            decided = StoppingRule().first(run.steps, run.values)
            found.append(Circles({}, run.values[0], gradient, run.values[-1], alive, decided))
        return found

    circles = []
    for path, trajectory, found in read_each(files, read, failed):
        for k, one in enumerate(found):
            one.columns.update(run_columns(path, trajectory, k))
            circles.append(one)
    return circles


def rows(circles: Sequence[Circles]) -> list[Row]:
    """Tidy table: one row a circle."""
    return [
        one.columns
        | {
            "frequency": k + 1,
            "initial_signal": float(one.signal[k]),
            "initial_gradient": float(one.gradient[k]),
            "final_signal": float(one.final[k]),
            "survived": bool(one.survived[k]),
        }
        for one in circles
        for k in range(len(one.signal))
    ]


def report(
    circles: Sequence[Circles], groups: str, bins: int, threshold: float | None, factor: float
) -> Iterator[str]:
    """Tables and sentences, one after the other."""
    yield counts_table(circles).text()
    limit = f"{factor:g} times the mean" if threshold is None else f"{threshold:g}"
    if not any(one.survived.any() for one in circles):
        yield f"No circle survives: no final signal exceeds {limit}. Lower the limit."
        return
    sizes = sorted({(one.columns["tokens"], one.columns["dim"]) for one in circles})
    if len(sizes) > 1:
        named = ", ".join(f"p = {p}, d = {d}" for p, d in sizes)
        yield f"Initial signals of different sizes cannot be pooled, got {named}: give one size at a time."
        return
    signal = np.stack([one.signal for one in circles])
    gradient = np.stack([one.gradient for one in circles])
    survived = np.stack([one.survived for one in circles])
    labels = group_labels(circles, groups)
    for name, values in (("initial signal", signal), ("initial gradient", gradient)):
        yield rates_table(name, values, survived, bins, limit, labels).text()
    if len(set(labels)) < 2 or survived.all():
        yield "Predictions need at least 2 groups of runs, and dead circles: none are judged."
        return
    yield fitness_table(fitness(signal, gradient, survived, labels)).text()


def counts_table(circles: Sequence[Circles]) -> Table:
    """Circles that survive, by p, d and weight decay."""
    columns = {
        "p": [one.columns["tokens"] for one in circles],
        "d": [one.columns["dim"] for one in circles],
        "weight decay": [str(one.columns.get("parameter.weight_decay", "-")) for one in circles],
    }
    counted = circle_counts([int(one.survived.sum()) for one in circles], columns)
    steps = [one.decided for one in circles if one.decided is not None]
    when = f", median step {np.median(steps):.0f}" if steps else ""
    return Table(
        f"Circles that survive, mean and 95 % interval; survivors decided in {len(steps)} of {len(circles)} "
        f"runs{when}.",
        [*columns, "runs", "circles"],
        [
            [*(str(row[name]) for name in columns), str(row["circles"].count), row["circles"].format(2)]
            for row in counted
        ],
    )


def group_labels(circles: Sequence[Circles], groups: str) -> list[str]:
    """Name the group of every run: its file, or itself with all runs that share its initial embedding."""
    if groups == "file":
        return [str(one.columns["file"]) for one in circles]
    return [one.signal.tobytes().hex() for one in circles]


def rates_table(
    name: str, values: Array, survived: NDArray[np.bool_], bins: int, limit: str, labels: Sequence[str]
) -> Table:
    """Survival rate against an initial value, with intervals of whole groups."""
    return Table(
        f"Survival (final signal above {limit}) against {name}, 95 % intervals of {len(set(labels))} groups.",
        [name, "circles", "survive, %"],
        [
            [f"{row.low:.4g} to {row.high:.4g}", str(row.rate.count), row.rate.format(1, 100)]
            for row in survival_rates(values, survived, bins=bins, groups=labels)
        ],
    )


def fitness_table(found: Fitness) -> Table:
    """Correlations and classifiers."""

    def line(name: str, model: Classifier) -> list[str]:
        return [
            name,
            model.left_out.format(1, 100),
            model.in_sample.format(1, 100),
            f"{100 * model.balanced:.1f}",
            f"{model.area:.3f}",
        ]

    odds = ", ".join(
        f"{name} {value:.2f} [{low:.2f}, {high:.2f}]"
        for name, (value, low, high) in zip(("signal", "gradient"), found.odds, strict=True)
    )
    return Table(
        f"Pearson correlation of survival with the initial signal {found.signal_correlation.format(2)}, with "
        f"the gradient {found.gradient_correlation.format(2)}.\nLog odds a standard deviation: {odds}.\n"
        f"Accuracy, %; calling every circle dead gives {100 * found.majority:.1f}. Intervals of "
        f"{found.groups} groups as a whole.",
        ["from signal and gradient", "groups left out", "in sample", "balanced", "area under ROC"],
        [line("linear SVM", found.svm), line("logistic", found.logistic)],
    )
