"""`grokphys compare`: the comparison of two ensembles."""

from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from grokphys.options import OneFile, OutFile, Overwrite


def compare(
    first: Positional[OneFile],
    second: Positional[OneFile],
    *,
    align: Literal["auto", "scaling", "ends", "none"] = "auto",
    delta: float = 0.01,
    out: OutFile = Path("results/compare/report.html"),
    overwrite: Overwrite = False,
) -> int:
    """Compare two ensembles: final structures and shapes, motion, and when thresholds are reached.

    The command prints the conclusion and the tables, and writes a report with figures and a JSON file with
    all numbers. A file that cannot be read is named and skipped; the exit status is then 1. Shapes are
    compared only for equal numbers of tokens. The files of the example are made by the examples of `grokphys
    simulate --help` and `grokphys train --help`.

    Example: grokphys compare particles.h5 networks.h5 --out comparison.html

    Args:
        first: File or quoted pattern of the first ensemble, such as simulated particles.
        second: File or quoted pattern of the second ensemble, such as trained networks.
        align: How the times of the two ensembles are matched. scaling multiplies the times of the second by
            the factor at which its motion is closest to the first, for runs from the same initial positions;
            ends lets both end at the same time; none leaves the times as they are. auto means scaling if the
            initial positions are the same, and ends otherwise. Ensembles with different numbers of tokens
            allow only auto and none, and their motion is not compared.
        delta: Tolerance of the representation quality, greater than 0: the largest distance |E_i + E_j - E_m
            - E_n| at which four tokens count as a parallelogram. The unit is the standard deviation of the
            embedding on each axis, which is scaled to 1 first.
        out: File to write. It is the report, NAME.html; all numbers are written to NAME.json next to it.
        overwrite: Replace files that exist.
    """
    from grokphys.report.comparing import write_file_comparison

    return write_file_comparison(first, second, align=align, delta=delta, out=out, overwrite=overwrite)
