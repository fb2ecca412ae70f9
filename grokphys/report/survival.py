"""Output of `grokphys survival`: the circles of many runs, and what predicts their survival."""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.circles.prediction import circle_counts, fitness, survival_rates
from analysis.circles.survival import StoppingRule, circles_of, signal_gradient
from grokphys.batches import Row, read_each, run_columns
from grokphys.report.page import document
from physics.errors import InputError
from physics.trajectory import Trajectory

Array = NDArray[np.float64]
Read = tuple[list[Row], Any, Array]
"""Columns that name each run of a file, its circles as from `circles_of`, and their gradients (runs, K)."""


def read_circles(
    files: Sequence[str], at: int, factor: float, threshold: float | None, failed: list[Path]
) -> list[Read]:
    """Read the circles of all runs of all files.

    Parameters
    ----------
    files : sequence of str
        File names, patterns, or names of examples.
    at : int
        Step at which the initial gradient is measured; see `signal_gradient`.
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

    def read(trajectory: Trajectory) -> tuple[Any, Array]:
        circles = circles_of(trajectory, factor=factor, threshold=threshold)
        return circles, signal_gradient(circles.signals, at).values

    return [
        ([run_columns(path, trajectory, k) for k in measured[0].member.values.tolist()], *measured)
        for path, trajectory, measured in read_each(files, read, failed)
    ]


def rows(files: Sequence[Read]) -> list[Row]:
    """Return a tidy table of files that `read_circles` has read, with one row for each circle."""
    return [
        columns | {"frequency": k + 1, "initial_signal": float(signals[run, 0, k])}
        | {"initial_gradient": float(gradient[run, k]), "final_signal": float(signals[run, -1, k])}
        | {"survived": bool(survived[run, k])}
        for names, circles, gradient in files
        for signals, survived in [(circles.signals.values, circles.survived.values)]
        for run, columns in enumerate(names)
        for k in range(survived.shape[1])
    ]  # fmt: skip


def report(
    files: Sequence[Read], groups: str, bins: int, threshold: float | None, factor: float
) -> list[str]:
    """Return the tables of the report on survival, and sentences that say why one is missing.

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
    columns = [run for names, _, _ in files for run in names]
    by: dict[str, list[Any]] = {"p": [run["tokens"] for run in columns], "d": [run["dim"] for run in columns]}
    by["weight decay"] = [str(run.get("parameter.weight_decay", "-")) for run in columns]
    alive = [circles.survived.values for _, circles, _ in files]
    firsts = (StoppingRule().first(run.step, run) for _, circles, _ in files for run in circles.signals)
    decided = [step for step in firsts if step is not None]
    values: dict[str, Any] = {
        "counts": circle_counts([n for each in alive for n in each.sum(axis=1)], by), "decided": decided,
        "median": np.median(decided) if decided else np.nan, "survivors": any(map(np.any, alive)),
        "limit": f"{factor:g} times the mean" if threshold is None else f"{threshold:g}",
        "sizes": sorted(set(zip(by["p"], by["d"], strict=True))), "rates": {}, "groups": 0, "fitness": None,
    }  # fmt: skip
    if values["survivors"] and len(values["sizes"]) == 1:
        signal = np.concatenate([circles.signals.values[:, 0] for _, circles, _ in files])
        gradient, survived = np.concatenate([each for _, _, each in files]), np.concatenate(alive)
        of_runs = [run.tobytes().hex() for run in signal]
        labels = of_runs if groups == "run" else [str(run["file"]) for run in columns]
        values["groups"] = len(set(labels))
        for name, numbers in (("initial signal", signal), ("initial gradient", gradient)):
            values["rates"][name] = survival_rates(numbers, survived, bins=bins, groups=labels)
        with contextlib.suppress(InputError):  # there are too few groups, or too few that differ
            values["fitness"] = fitness(signal, gradient, survived, labels)
    (opening,) = document("survival.txt", **values)
    return [*(table.text() for table in opening.tables), *opening.text]
