"""`grokphys survival`: which circles survive, and what predicts it at the start."""

from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional

from grokphys.options import Files, Overwrite, TableFile, given_otherwise
from grokphys.output import refuse_table, write_table
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
    """Report which circles survive training, and how well the initial state predicts it (Ding, Section 3).

    A file that cannot be read is named on stderr and skipped; the exit status is then 1.

    Example: grokphys survival example:ding --table circles.csv

    Args:
        files: Trajectory files, at least one; quoted patterns such as 'runs/*.h5'; or examples such as
            example:ding.
        at: Step, at least 1 and at most the last step, at which the initial gradient is measured. This is the
            change of the signal per step in the recorded interval that ends there. If the step is not
            recorded, the next recorded step is used.
        factor: Factor, greater than 0, that decides survival. A circle survives if its final signal exceeds
            this many times the mean of all final signals of its run.
        signal_threshold: Final signal, greater than 0, above which a circle survives; it takes the place of
            --factor. The paper takes 10 in its study of gradients.
        groups: Unit of the intervals and of the cross-validation, which never trains and tests a prediction
            on the same unit: run (runs with the same initial signals are one unit), or file (all runs of a
            file are one).
        bins: Number of bins, at least 1, for the survival rates by signal and by gradient. All bins hold
            about equally many circles.
        table: Table to write, as CSV or Parquet. It has one row for each circle: file, run, parameters,
            signals, gradient and survival.
        overwrite: Replace files that exist.
    """
    from grokphys.report import survival as survival_report

    whole_number("at", at, 1)
    whole_number("bins", bins, 1)
    number("factor", factor, above=0.0)
    if signal_threshold is not None:
        number("signal_threshold", signal_threshold, above=0.0)
    refuse_table(table, overwrite)
    failed: list[Path] = []
    circles = survival_report.read_circles(files, at, factor, signal_threshold, failed)
    if not circles:
        return 1
    for part in survival_report.report(circles, groups, bins, signal_threshold, factor):
        print(f"{part}\n")
    if table is not None:
        rows = survival_report.rows(circles)
        print(f"{write_table(table, rows)}: {len(rows)} circles")
    return 1 if failed else 0
