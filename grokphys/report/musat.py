"""Musat, *Clustering and Alignment*: the numbers of the paper next to those of this project."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from analysis.circles.classes import Structures, structures
from analysis.plots.distributions import show_estimates
from analysis.plots.embeddings import show_embedding
from analysis.plots.style import panels
from analysis.stats.intervals import Interval, correlation, mean, proportion
from grokphys.report.page import Picture, Section, Table
from grokphys.report.wording import caption
from physics.particles.structures import circle_ratio
from physics.trajectory import Trajectory

PAPER_RUNS = 100
Estimate = tuple[str, Interval | float, Interval]
"""Label of a row, the value of the paper, and ours."""
Row = tuple[float, str, Interval | float, Interval, int]


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


def table_2(ensembles: Mapping[float, Trajectory]) -> Section:
    """Compare particles with Table 2 of Musat: circles, and grid imperfections of the other runs.

    Parameters
    ----------
    ensembles : mapping of float to Trajectory
        Simulated particles by their alignment constant f_a, which must be one of the paper's table.

    Returns
    -------
    Section
        Text, a table with a row for each constant and quantity, and a picture of the estimates.
    """
    rows = []
    for alignment, trajectory in ensembles.items():
        paper, ours = TABLE_2[alignment], structures(trajectory.final, initial=trajectory.initial)
        circles = proportion(paper.circles, PAPER_RUNS).map(_percent)
        rows.append((alignment, "circles, %", circles, ours.circles.map(_percent), 1))
        rows.append(
            (alignment, "grid imperfections of the rest", paper.imperfections, ours.grid_imperfections, 1)
        )
    return _section(
        "Particles: Table 2",
        caption("musat", "particles"),
        caption("musat", "particles_table", runs=_runs(ensembles)),
        "f_a",
        rows,
    )


def table_1(ensembles: Mapping[float, Trajectory]) -> Section:
    """Compare networks with Table 1 of Musat: structures, validation accuracy and their correlation.

    Parameters
    ----------
    ensembles : mapping of float to Trajectory
        Trained networks by their weight decay, which must be one of the paper's table.

    Returns
    -------
    Section
        Text, a table with a row for each quantity and weight decay, and a picture of the estimates. Intervals
        of accuracies end at 0 and 100 %.
    """
    rows = []
    for weight_decay, trajectory in ensembles.items():
        paper, ours = TABLE_1[weight_decay], structures(trajectory.final, initial=trajectory.initial)
        accuracy = 100 * trajectory.observables["validation_accuracy"][:, -1]
        related = correlation(ours.imperfections[~ours.circle], accuracy[~ours.circle])
        circles = proportion(paper.circles, PAPER_RUNS).map(_percent)
        for name, theirs, own, digits in (
            ("circles, %", circles, ours.circles.map(_percent), 1),
            ("accuracy of circles, %", paper.circle_accuracy, mean(accuracy[ours.circle]).within(0, 100), 1),
            ("accuracy of the rest, %", paper.rest_accuracy, mean(accuracy[~ours.circle]).within(0, 100), 1),
            ("grid imperfections of the rest", paper.imperfections, ours.grid_imperfections, 1),
            ("correlation of imperfections and accuracy", paper.correlation, related, 2),
        ):
            rows.append((weight_decay, name, theirs, own, digits))
    steps = ", ".join(sorted({f"{int(t.steps[-1])}" for t in ensembles.values()}))
    return _section(
        "Networks: Table 1",
        caption("musat", "networks", steps=steps),
        caption("musat", "networks_table", runs=_runs(ensembles)),
        "weight decay",
        rows,
    )


def _runs(ensembles: Mapping[float, Trajectory]) -> str:
    return ", ".join(sorted({str(trajectory.runs) for trajectory in ensembles.values()}))


def _section(title: str, text: str, what: str, setting: str, rows: Sequence[Row]) -> Section:
    """Return the section of rows (value of the setting, quantity, paper, ours, digits), with its picture."""
    cells, drawn = [], dict[str, list[Estimate]]()
    label = "$f_a$ =" if setting == "f_a" else setting
    for value, name, theirs, own, digits in rows:
        paper = theirs if isinstance(theirs, Interval) else Interval(theirs, np.nan, np.nan, PAPER_RUNS)
        printed = paper.format(digits) if np.isfinite(paper.low) else f"{paper.estimate:.{digits}f}"
        printed = "-" if np.isnan(paper.estimate) else printed
        cells.append([f"{value:g}", name, printed, own.format(digits), verdict(own, theirs)])
        drawn.setdefault(name, []).append((f"{label} {value:g}", theirs, own))
    columns = min(len(drawn), 3)
    axes = panels(-(-len(drawn) // columns), columns, 9.5 / columns, 3.0, sharey=True)
    for ax, (name, estimates) in zip(axes.flat, drawn.items(), strict=False):
        show_estimates(estimates, ax, xlabel=name.removesuffix(" of imperfections and accuracy"))
    for ax in axes.flat[len(drawn) :]:
        ax.set_axis_off()
    return Section(
        title,
        [text, caption("musat", "verdict")],
        [
            Table(
                caption("musat", "table", what=what, paper_runs=PAPER_RUNS),
                [setting, "quantity", "paper", "here", "verdict"],
                cells,
            )
        ],
        [Picture(caption("musat", "estimates"), axes[0, 0].figure)],
    )


def _percent(part: float) -> float:
    return 100 * part


def gallery(particles: Trajectory, networks: Trajectory) -> Picture:
    """Draw the final positions of typical runs: a circle, the best grid and a typical grid.

    Parameters
    ----------
    particles, networks : Trajectory
        Simulated particles, shown above, and trained networks, shown below.

    Returns
    -------
    Picture
        Two rows of three panels. The panel of a structure that no run has is empty.
    """
    axes = panels(2, 3, 9.5 / 3, 3.3)
    for row, (name, trajectory) in zip(axes, (("particles", particles), ("networks", networks)), strict=True):
        found = structures(trajectory.final, initial=trajectory.initial)
        chosen = typical_runs(trajectory, found)
        for ax, kind in zip(row, ("circle", "grid", "imperfect grid"), strict=True):
            if kind not in chosen:
                ax.set_axis_off()
                continue
            run = chosen[kind]
            number = str(found.imperfections[run])
            if kind == "circle":
                number = f"ratio {circle_ratio(trajectory.final[run]):.2f}"
            show_embedding(trajectory.final[run], ax, title=f"{name} {run}: {kind} ({number})")
    return Picture(
        caption("musat", "gallery"),
        axes[0, 0].figure,
    )


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
