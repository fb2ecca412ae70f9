"""Musat, *Clustering and Alignment*: the numbers of the paper next to those of this project."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from analysis.circles.classes import Structures, structures
from analysis.plots.distributions import show_estimates
from analysis.plots.embeddings import show_embedding
from analysis.plots.style import panels
from analysis.stats.intervals import Interval, correlation, mean, proportion
from grokphys.report.page import Section, document
from physics.particles.structures import circle_ratio
from physics.trajectory import Trajectory

PAPER_RUNS = 100


@dataclass(frozen=True)
class PaperRow:
    """A row of Table 1 or 2 of Musat, from 100 runs.

    Attributes
    ----------
    circles : int
        Number of runs that are circles.
    imperfections : Interval
        Mean grid imperfections of the other runs, with the paper's 95 % interval.
    circle_accuracy, rest_accuracy : float, default NaN
        Mean validation accuracy in % of circles and of the others; NaN if the table has none.
    correlation : Interval or float, default NaN
        Correlation of imperfections and accuracy of the others.
    """

    circles: int
    imperfections: Interval
    circle_accuracy: float = np.nan
    rest_accuracy: float = np.nan
    correlation: Interval | float = np.nan


def _plus_minus(center: float, half: float) -> Interval:
    return Interval(center, center - half, center + half, PAPER_RUNS)


TABLE_1: Mapping[float, PaperRow] = {  # by weight decay
    0.0: PaperRow(0, _plus_minus(102.2, 6.1), np.nan, 18.2, Interval(-0.92, -0.95, -0.88, PAPER_RUNS)),
    0.3: PaperRow(1, _plus_minus(72.7, 6.6), 77.4, 34.8, Interval(-0.90, -0.93, -0.85, PAPER_RUNS)),
    0.6: PaperRow(12, _plus_minus(39.6, 4.0), 65.9, 51.6, Interval(-0.84, -0.89, -0.77, PAPER_RUNS)),
    1.0: PaperRow(18, _plus_minus(31.6, 4.0), 60.4, 46.7, Interval(-0.64, -0.75, -0.49, PAPER_RUNS)),
}
TABLE_2: Mapping[float, PaperRow] = {  # by f_a
    0.5: PaperRow(0, _plus_minus(35.5, 3.7)),
    1.0: PaperRow(17, _plus_minus(36.3, 4.8)),
    2.0: PaperRow(56, _plus_minus(42.9, 10.1)),
}


def verdict(ours: Interval, paper: Interval | float) -> str:
    """Say whether an interval contains the number of the paper, or overlaps with its interval.

    Parameters
    ----------
    ours : Interval
        Number of this project with its 95 % interval.
    paper : Interval or float
        The number of the paper, with its 95 % interval if it prints one; NaN if it has no such number.

    Returns
    -------
    str
        "covered" if `ours` contains the number of the paper, "intervals meet" if the two intervals overlap,
        and otherwise "not covered"; "not in the paper", "none here" or "no interval here" if one is missing.
    """
    theirs = paper if isinstance(paper, Interval) else Interval(paper, paper, paper, 0)
    if not np.isfinite(theirs.estimate):
        return "not in the paper"
    if not np.isfinite(ours.estimate):
        return "none here"
    if not np.isfinite([ours.low, ours.high]).all():
        return "no interval here"
    if ours.covers(theirs.estimate):
        return "covered"
    return "intervals meet" if ours.low <= theirs.high and theirs.low <= ours.high else "not covered"


def tables(particles: Mapping[float, Trajectory], networks: Mapping[float, Trajectory]) -> list[Section]:
    """Compare particles with Table 2 of Musat, and networks with Table 1.

    Parameters
    ----------
    particles, networks : mapping of float to Trajectory
        Simulated particles by their alignment constant f_a, and trained networks by their weight decay, all
        of them in the paper's tables, and f_a = 1 among them. All have the same number of runs.

    Returns
    -------
    list of Section
        How many numbers of the paper our intervals contain, and then a section for each table, whose picture
        shows the estimates of the particles, and final positions of the first network beside the particles
        with f_a = 1. Intervals of accuracies end at 0 and 100 %.
    """
    rows = {
        "f_a": [row for value, run in particles.items() for row in _rows(value, TABLE_2[value], run)],
        "weight decay": [row for value, run in networks.items() for row in _rows(value, TABLE_1[value], run)],
    }
    trained = next(iter(networks.values()))
    figures = {"f_a": _estimates(rows["f_a"]), "weight decay": _gallery(particles[1.0], trained)}
    return document(
        "musat.txt",
        figures,
        tables=rows,
        runs=trained.runs,
        epochs=int(trained.steps[-1]),
        paper_runs=PAPER_RUNS,
    )


def _rows(value: float, paper: PaperRow, trajectory: Trajectory) -> list[dict[str, Any]]:
    """Return what the table says of an ensemble; a network has accuracies."""
    ours = structures(trajectory.final, initial=trajectory.initial)
    circles = proportion(paper.circles, PAPER_RUNS).map(_percent)
    numbers: list[tuple[str, Interval | float, Interval, int]] = [
        ("circles, %", circles, ours.circles.map(_percent), 1),
        ("grid imperfections of the rest", paper.imperfections, ours.grid_imperfections, 1),
    ]
    if "validation_accuracy" in trajectory.observables:
        accuracy = 100 * trajectory.observables["validation_accuracy"][:, -1]
        of_circles, of_rest = (mean(accuracy[part]).within(0, 100) for part in (ours.circle, ~ours.circle))
        related = correlation(ours.imperfections[~ours.circle], accuracy[~ours.circle])
        numbers += [
            ("accuracy of circles, %", paper.circle_accuracy, of_circles, 1),
            ("accuracy of the rest, %", paper.rest_accuracy, of_rest, 1),
            ("correlation of imperfections and accuracy", paper.correlation, related, 2),
        ]
    return [
        {"value": value, "name": name, "paper": theirs, "ours": own, "digits": digits}
        | {"verdict": verdict(own, theirs)}
        for name, theirs, own, digits in numbers
    ]


def _estimates(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw the numbers of the paper and ours, with a panel for each quantity."""
    names = list(dict.fromkeys(row["name"] for row in rows))
    axes = panels(1, len(names), 9.5 / len(names), 3.0, sharey=True)
    for ax, name in zip(axes[0], names, strict=True):
        numbers = [
            (f"$f_a$ = {row['value']:g}", row["paper"], row["ours"]) for row in rows if row["name"] == name
        ]
        show_estimates(numbers, ax, xlabel=name)
    return axes[0, 0].figure


def _percent(part: float) -> float:
    return 100 * part


def _gallery(particles: Trajectory, networks: Trajectory) -> Figure:
    """Draw final positions: a circle, the best grid and a typical grid; a structure may be missing."""
    ensembles = {"particles": particles, "networks": networks}
    axes = panels(2, 3, 9.5 / 3, 3.3)
    for row, (name, trajectory) in zip(axes, ensembles.items(), strict=True):
        ends = structures(trajectory.final, initial=trajectory.initial)
        chosen = typical_runs(trajectory, ends)
        for ax, kind in zip(row, ("circle", "grid", "imperfect grid"), strict=True):
            if kind not in chosen:
                ax.set_axis_off()
                continue
            run = chosen[kind]
            ratio = f"ratio {circle_ratio(trajectory.final[run]):.2f}"
            number = ratio if kind == "circle" else str(ends.imperfections[run])
            show_embedding(trajectory.final[run], ax, title=f"{name} {run}: {kind} ({number})")
    return axes[0, 0].figure


def typical_runs(trajectory: Trajectory, found: Structures) -> dict[str, int]:
    """Return the places of typical runs: the roundest circle, the best grid and the median grid.

    Parameters
    ----------
    trajectory : Trajectory
        Runs of particles or networks.
    found : Structures
        Their final structures, in the same order.

    Returns
    -------
    dict of str to int
        Place of the run in the trajectory by "circle", "grid" and "imperfect grid", as far as they exist.
        Every run that is no circle counts as a grid.
    """
    chosen = {}
    circles, grids = np.flatnonzero(found.circle), np.flatnonzero(~found.circle)
    if len(circles):
        chosen["circle"] = int(circles[np.argmin(circle_ratio(trajectory.final[circles]))])
    if len(grids):
        order = grids[np.argsort(found.imperfections[grids], kind="stable")]
        chosen["grid"] = int(order[0])
        if len(order) > 1:
            chosen["imperfect grid"] = int(order[len(order) // 2])
    return chosen
