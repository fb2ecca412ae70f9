"""Output of `grokphys survival`: the circles of many runs, and what predicts their survival."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.circles.prediction import Fitness, circle_counts, fitness, survival_rates
from analysis.circles.signals import Circles, circles_of
from grokphys.batches import Row, read_each, run_columns
from grokphys.report.page import Table
from grokphys.report.wording import caption
from physics.errors import InputError
from physics.trajectory import Trajectory

Array = NDArray[np.float64]
Read = tuple[list[Row], Circles, Array]
"""Columns that name each run of a file, its circles, and their gradients (runs, K)."""


def read_circles(
    files: Sequence[str], at: int, factor: float, threshold: float | None, failed: list[Path]
) -> list[Read]:
    """Read the circles of all runs of all files.

    Parameters
    ----------
    files : sequence of str
        File names, patterns, or names of examples.
    at : int
        Step at which the initial gradient is measured; see `Circles.gradient`.
    factor : float
        A circle survives if its final signal exceeds this many times the mean of the run's final signals.
    threshold : float or None
        Final signal above which a circle survives; None lets the factor decide.
    failed : list of Path
        List to which files that cannot be read are added; they are also named on stderr.

    Raises
    ------
    InputError
        If a pattern matches no file.
    FileNotFoundError
        If a file does not exist.
    """

    def read(trajectory: Trajectory) -> tuple[Circles, Array]:
        circles = circles_of(trajectory, factor=factor, threshold=threshold)
        return circles, circles.gradient(at)

    return [
        ([run_columns(path, trajectory, k) for k in measured[0].numbers], *measured)
        for path, trajectory, measured in read_each(files, read, failed)
    ]


def rows(files: Sequence[Read]) -> list[Row]:
    """Return a tidy table of files that `read_circles` has read, with one row for each circle."""
    return [
        columns
        | {
            "frequency": k + 1,
            "initial_signal": float(circles.initial[run, k]),
            "initial_gradient": float(gradient[run, k]),
            "final_signal": float(circles.final[run, k]),
            "survived": bool(circles.survived[run, k]),
        }
        for names, circles, gradient in files
        for run, columns in enumerate(names)
        for k in range(circles.survived.shape[1])
    ]


def report(
    files: Sequence[Read], groups: str, bins: int, threshold: float | None, factor: float
) -> Iterator[str]:
    """Yield the tables of the report on survival, or sentences that say why there is none.

    Parameters
    ----------
    files : sequence of Read
        Files that `read_circles` has read.
    groups : {"run", "file"}
        Unit of the intervals and of the cross-validation: all runs of a file, or only those that share their
        initial signals.
    bins : int
        Number of bins for the survival rates, at least 1.
    threshold : float or None
        Final signal above which a circle survives; None if the factor decided.
    factor : float
        Factor of the mean signal that decides survival.
    """
    columns = [one for names, _, _ in files for one in names]
    yield counts_table(columns, [circles for _, circles, _ in files]).text()
    limit = f"{factor:g} times the mean" if threshold is None else f"{threshold:g}"
    if not any(circles.survived.any() for _, circles, _ in files):
        yield caption("survival", "none", limit=limit)
        return
    sizes = sorted({(one["tokens"], one["dim"]) for one in columns})
    if len(sizes) > 1:
        named = ", ".join(f"p = {p}, d = {d}" for p, d in sizes)
        yield caption("survival", "sizes", sizes=named)
        return
    signal = np.concatenate([circles.initial for _, circles, _ in files])
    gradient = np.concatenate([gradient for _, _, gradient in files])
    survived = np.concatenate([circles.survived for _, circles, _ in files])
    labels = [str(one["file"]) for one in columns]
    if groups == "run":
        labels = [run.tobytes().hex() for run in signal]
    for name, values in (("initial signal", signal), ("initial gradient", gradient)):
        yield Table(
            caption("survival", "rates", limit=limit, value=name, groups=len(set(labels))),
            [name, "circles", "survive, %"],
            [
                [f"{row.low:.4g} to {row.high:.4g}", str(row.rate.count), row.rate.format(1, 100)]
                for row in survival_rates(values, survived, bins=bins, groups=labels)
            ],
        ).text()
    try:
        yield fitness_table(fitness(signal, gradient, survived, labels)).text()
    except InputError:
        yield caption("survival", "unjudged")


def counts_table(columns: Sequence[Row], circles: Sequence[Circles]) -> Table:
    """Return the table of the number of circles that survive, by p, d and weight decay.

    Parameters
    ----------
    columns : sequence of Row
        Columns that name each run, with its tokens p, its dimensions d, and its parameters.
    circles : sequence of Circles
        Circles of each file, whose runs are those of `columns` in the same order.
    """
    by: dict[str, list[Any]] = {
        "p": [one["tokens"] for one in columns],
        "d": [one["dim"] for one in columns],
        "weight decay": [str(one.get("parameter.weight_decay", "-")) for one in columns],
    }
    counted = circle_counts(np.concatenate([one.counts for one in circles]), by)
    steps = np.concatenate([one.decided() for one in circles])
    steps = steps[np.isfinite(steps)]
    when = f", median step {np.median(steps):.0f}" if len(steps) else ""
    return Table(
        caption("survival", "counts", decided=len(steps), runs=len(columns), when=when),
        [*by, "runs", "circles"],
        [
            [*(str(row[name]) for name in by), str(row["circles"].count), row["circles"].format(2)]
            for row in counted
        ],
    )


def fitness_table(result: Fitness) -> Table:
    """Return the table of how well correlations and classifiers predict survival.

    It has the accuracy when groups are left out, in sample and balanced, and the area under the ROC curve.
    """
    odds = ", ".join(
        f"{name} {value:.2f} [{low:.2f}, {high:.2f}]"
        for name, (value, low, high) in zip(("signal", "gradient"), result.odds, strict=True)
    )
    lines = []
    for name, model in (("linear SVM", result.svm), ("logistic", result.logistic)):
        accuracies = model.left_out.format(1, 100), model.in_sample.format(1, 100)
        lines.append([name, *accuracies, f"{100 * model.balanced:.1f}", f"{model.area:.3f}"])
    return Table(
        f"Pearson correlation of survival with the initial signal {result.signal_correlation.format(2)}, "
        f"with the gradient {result.gradient_correlation.format(2)}.\n"
        f"Log odds per standard deviation: {odds}.\n"
        "Accuracy in %; always predicting the more frequent outcome gives "
        f"{100 * result.majority:.1f}. Intervals are over {result.groups} whole groups.",
        ["from signal and gradient", "groups left out", "in sample", "balanced", "area under ROC"],
        lines,
    )
