"""`grokphys compare`: the comparison of two ensembles."""

from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import Positional

from grokphys.options import OneFile, OutFile, Overwrite


def compare(
    first: Positional[OneFile],
    second: Positional[OneFile],
    *,
    align: Annotated[str, tyro.conf.arg(metavar="METHOD")] = "auto",
    delta: float = 0.01,
    out: OutFile = Path("results/compare/report.html"),
    overwrite: Overwrite = False,
) -> int:
    """Compare two ensembles: final structures and shapes, motion, and when thresholds are reached.

    The command prints the conclusion and the tables, and writes a report with figures and a JSON file with
    all numbers. A file that cannot be read is named and skipped; the exit status is then 1. Shapes are
    compared only for equal numbers of tokens.

    Example: grokphys compare particles.h5 networks.h5 --out comparison.html

    Args:
        first: File or quoted pattern of the first ensemble, such as simulated particles.
        second: File or quoted pattern of the second ensemble, such as trained networks.
        align: How the times of the two ensembles are matched: scaling (by the factor of least error, for runs
            from the same initial positions), ends (both end at the same time), none, or the name of an
            observable that both have, such as quality (at equal progress of it). With auto it is scaling if
            the initial positions are the same, and ends otherwise.
        delta: Tolerance of the representation quality, relative to the size of the embedding.
        out: File to write. It is the report, NAME.html; the numbers go to NAME.json next to it.
        overwrite: Replace files that exist.
    """
    from grokphys.report.comparing import write_file_comparison

    return write_file_comparison(first, second, align=align, delta=delta, out=out, overwrite=overwrite)
