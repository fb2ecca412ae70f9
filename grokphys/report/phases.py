"""Tables of a phase diagram, which `grokphys phases` writes, and its summary in words."""

from dataclasses import astuple
from pathlib import Path

import numpy as np

from analysis.phases import PhaseDiagram
from grokphys.output import write_csv

STEPS, NEVER = ("train_steps", "validation_steps"), "never"
"""Columns of numbers of steps, and the word in a table for one that is NaN."""


def write_diagram(out: Path, diagram: PhaseDiagram) -> list[Path]:
    """Write the cells, the runs and the shares of the phases of a diagram as three CSV files.

    Parameters
    ----------
    out : Path
        Existing directory, in which the files are phases.csv, phases-runs.csv and phases-shares.csv.
    diagram : PhaseDiagram
        The diagram.

    Returns
    -------
    list of Path
        The three files.

    Raises
    ------
    OutputError
        If a file cannot be written.
    """
    runs = [
        row | {name: NEVER if np.isnan(row[name]) else int(row[name]) for name in STEPS}
        for row in diagram.run_rows()
    ]
    names = ("phase", "share", "share_low", "share_high", "effective_runs")
    shares = [
        dict(zip(names, (phase, *astuple(share)), strict=True)) for phase, share in diagram.shares().items()
    ]
    tables = {"": diagram.table(), "-runs": runs, "-shares": shares}
    return [write_csv(out / f"phases{part}.csv", rows) for part, rows in tables.items()]


def summary(diagram: PhaseDiagram) -> list[str]:
    """Describe a phase diagram in two lines of text.

    Parameters
    ----------
    diagram : PhaseDiagram
        The diagram.

    Returns
    -------
    list of str
        A line about the numbers of cells and networks, and a line with the share of each phase in the plane,
        in percent with its 95 % interval.
    """
    cells = diagram.cells
    unclear = sum(not diagram.decided(cell) for cell in cells)
    each = [len(cell.runs) for cell in cells]
    fine = 2 ** max(cell.level for cell in cells)
    full = diagram.x.cells * diagram.y.cells * fine**2
    lines = [
        f"{len(cells)} cells ({full} of the smallest size would fill the plane), {unclear} undecided; "
        f"{diagram.runs} networks, {min(each)} to {max(each)} a cell"
    ]
    shares = [f"{phase} {share.format(0, 100)} %" for phase, share in diagram.shares().items()]
    return [*lines, "shares of the plane: " + ", ".join(shares)]
