"""`grokphys survival`: which circles survive, and what told so at the start."""

from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional

from grokphys.options import Files, Overwrite, TableFile, given_otherwise
from grokphys.output import refuse_table, write_table
from grokphys.progress import progress
from physics.checks import number, whole_number


def survival(
    files: Positional[Files],
    *,
    at: int = 4,
    factor: float = 2.0,
    signal_threshold: Annotated[float | None, given_otherwise("by the factor", "FLOAT")] = None,
    groups: Literal["run", "file"] = "run",
    bins: int = 8,
    table: TableFile = None,
    overwrite: Overwrite = False,
) -> int:
    """Say which circles survive, how many, and what told so at the start (Ding §3).

    A file that cannot be read is named on stderr and the others go on (exit status 1).

    Args:
        files: trajectory files or quoted glob patterns.
        at: step whose change of the signal is the initial gradient, at least 1; if it is not recorded, the
            next that is.
        factor: a circle survives if its final signal exceeds this many times the mean.
        signal_threshold: use this absolute signal instead; the paper's gradient study takes 10.
        groups: left out together to judge predictions: a run, or a file whose runs share an embedding.
        bins: number of bins of equally many circles for the survival rates.
        table: table to write, as CSV or Parquet; one row a circle: file, run, parameters, signals, gradient,
            survival.
        overwrite: replace what is there.
    """
    from grokphys.report import survival as told

    whole_number("at", at, 1)
    whole_number("bins", bins, 1)
    number("factor", factor, above=0.0)
    if signal_threshold is not None:
        number("signal_threshold", signal_threshold, 0.0)
    if table is not None:
        refuse_table(table, overwrite)
    failed: list[Path] = []
    circles = told.read_circles(files, at, factor, signal_threshold, failed)
    if not circles:
        return 1
    parts = told.report(circles, groups, bins, signal_threshold, factor)
    for part in progress(parts, "survival", "table", 4):
        print(f"{part}\n")
    if table is not None:
        rows = told.rows(circles)
        print(f"{write_table(table, rows)}: {len(rows)} circles")
    return 1 if failed else 0
