"""Output of `grokphys survival`: the circles of many runs, and what predicts their survival."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.circles.prediction import Classifier, Fitness, circle_counts, fitness, survival_rates
from analysis.circles.signals import Circles, circles_of
from grokphys.batches import Row, read_each, run_columns
from grokphys.report.page import Table
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

    Returns
    -------
    list of Read
        For each file, the columns that name each run, its circles, and their gradients (runs, K).

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
        ([run_columns(path, trajectory, k) for k in range(trajectory.runs)], *found)
        for path, trajectory, found in read_each(files, read, failed)
    ]


def rows(files: Sequence[Read]) -> list[Row]:
    """Return a tidy table of all files, with one row for each circle.

    Parameters
    ----------
    files : sequence of Read
        Files that `read_circles` has read.

    Returns
    -------
    list of dict of str to object
        Values by the name of the column: those that name the run, the frequency, its initial and final
        signal, its initial gradient, and whether it survived.
    """
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
    """Yield the tables and sentences of the report on survival, one after the other.

    Parameters
    ----------
    files : sequence of Read
        Files that `read_circles` has read.
    groups : {"run", "file"}
        Unit of the intervals and of the cross-validation; see `group_labels`.
    bins : int
        Number of bins for the survival rates, at least 1.
    threshold : float or None
        Final signal above which a circle survives; None if the factor decided.
    factor : float
        Factor of the mean signal that decides survival.

    Yields
    ------
    str
        Counts of survivors, survival rates by initial signal and by gradient, and the quality of predictions,
        or a sentence that says why they are not judged. If no circle survives, or the runs differ in size, a
        sentence says so instead of all but the counts.
    """
    columns = [one for names, _, _ in files for one in names]
    yield counts_table(columns, [circles for _, circles, _ in files]).text()
    limit = f"{factor:g} times the mean" if threshold is None else f"{threshold:g}"
    if not any(circles.survived.any() for _, circles, _ in files):
        yield f"No circle survives, because no final signal exceeds {limit}. Try a lower limit."
        return
    sizes = sorted({(one["tokens"], one["dim"]) for one in columns})
    if len(sizes) > 1:
        named = ", ".join(f"p = {p}, d = {d}" for p, d in sizes)
        yield f"Runs of different sizes cannot be pooled ({named}); give one size at a time."
        return
    signal = np.concatenate([circles.initial for _, circles, _ in files])
    gradient = np.concatenate([own for _, _, own in files])
    survived = np.concatenate([circles.survived for _, circles, _ in files])
    labels = group_labels(columns, signal, groups)
    for name, values in (("initial signal", signal), ("initial gradient", gradient)):
        yield rates_table(name, values, survived, bins, limit, labels).text()
    try:
        judged = fitness_table(fitness(signal, gradient, survived, labels)).text()
    except InputError:
        judged = (
            "Predictions are not judged, because that needs at least 2 groups of runs, and survivors and "
            "dead circles whichever of them are left out."
        )
    yield judged


def counts_table(columns: Sequence[Row], circles: Sequence[Circles]) -> Table:
    """Return the table of the number of circles that survive, by p, d and weight decay.

    Parameters
    ----------
    columns : sequence of Row
        Columns that name each run, with its tokens p, its dimensions d, and its parameters.
    circles : sequence of Circles
        Circles of each file, whose runs are those of `columns` in the same order.

    Returns
    -------
    Table
        Number of runs and mean number of survivors with its 95 % interval, for each combination.
    """
    by = {
        "p": [one["tokens"] for one in columns],
        "d": [one["dim"] for one in columns],
        "weight decay": [str(one.get("parameter.weight_decay", "-")) for one in columns],
    }
    counted = circle_counts(np.concatenate([one.counts for one in circles]), by)
    steps = np.concatenate([one.decided() for one in circles])
    steps = steps[np.isfinite(steps)]
    when = f", median step {np.median(steps):.0f}" if len(steps) else ""
    return Table(
        f"Number of circles that survive, mean and 95 % interval; the survivors were decided in "
        f"{len(steps)} of "
        f"{len(columns)} "
        f"runs{when}.",
        [*by, "runs", "circles"],
        [
            [*(str(row[name]) for name in by), str(row["circles"].count), row["circles"].format(2)]
            for row in counted
        ],
    )


def group_labels(columns: Sequence[Row], initial: Any, groups: str) -> list[str]:
    """Return a label for each run, which is the same for all runs of a group.

    Parameters
    ----------
    columns : sequence of Row
        Columns that name each run.
    initial : ndarray of float64, shape (runs, K)
        Initial signals of K frequencies.
    groups : {"run", "file"}
        "file" groups the runs of a file, and "run" only those that share their initial signals.

    Returns
    -------
    list of str
        The labels, in the order of the runs.
    """
    if groups == "file":
        return [str(one["file"]) for one in columns]
    return [signal.tobytes().hex() for signal in initial]


def rates_table(
    name: str, values: Array, survived: NDArray[np.bool_], bins: int, limit: str, labels: Sequence[str]
) -> Table:
    """Return the table of survival rates by an initial value, with intervals over whole groups.

    Parameters
    ----------
    name : str
        Name of the initial value, such as "initial signal".
    values : ndarray of float64, shape (runs, K)
        Initial value of each circle.
    survived : ndarray of bool, shape (runs, K)
        Which circles survive.
    bins : int
        Number of bins with equally many circles.
    limit : str
        Words for the caption about the signal that survivors exceed, such as "2 times the mean".
    labels : sequence of str
        Group of each run, as `group_labels` returns it.

    Returns
    -------
    Table
        Range of the value, number of circles, and survival rate with its 95 % interval, for each bin.
    """
    return Table(
        f"Survival (final signal above {limit}) by {name}, with 95 % intervals over {len(set(labels))} "
        "groups.",
        [name, "circles", "survive, %"],
        [
            [f"{row.low:.4g} to {row.high:.4g}", str(row.rate.count), row.rate.format(1, 100)]
            for row in survival_rates(values, survived, bins=bins, groups=labels)
        ],
    )


def fitness_table(found: Fitness) -> Table:
    """Return the table of how well correlations and classifiers predict survival.

    Parameters
    ----------
    found : Fitness
        Result of `analysis.fitness` for initial signals and gradients.

    Returns
    -------
    Table
        Accuracy when groups are left out, in sample and balanced, and area under the ROC curve, for each
        classifier.
    """

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
        f"the gradient {found.gradient_correlation.format(2)}.\nLog odds per standard deviation: {odds}.\n"
        "Accuracy in %; always predicting the more frequent outcome gives "
        f"{100 * found.majority:.1f}. Intervals are over {found.groups} whole groups.",
        ["from signal and gradient", "groups left out", "in sample", "balanced", "area under ROC"],
        [line("linear SVM", found.svm), line("logistic", found.logistic)],
    )
