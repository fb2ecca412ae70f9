"""`grokphys compare`: two ensembles held against each other."""

from pathlib import Path

from tyro.conf import Positional

from grokphys.options import OutFile, Overwrite


def compare(
    first: Positional[str],
    second: Positional[str],
    *,
    align: str = "auto",
    delta: float = 0.01,
    out: OutFile = Path("results/compare/report.html"),
    overwrite: Overwrite = False,
) -> int:
    """Hold two ensembles against each other: structures, shapes, motion, onsets, accuracy.

    Prints the tables, and writes a report with figures, and beside it all numbers as JSON. A file that cannot
    be read is named and passed over (exit status 1). Of different numbers of tokens, shapes are not compared.

    Args:
        first: a trajectory file, or a quoted pattern whose files count as one ensemble; say, simulated.
        second: the same of the other; say, trained.
        align: how the clocks are aligned: scaling (the factor of least error, for runs from the same starts),
            ends (they end together), none, or by what both have, such as quality; auto: scaling or ends.
        delta: tolerance of the representation quality, relative to the size of the embedding.
        out: file to write: the report, NAME.html; the numbers go to NAME.json.
        overwrite: replace what is there.
    """
    from grokphys.report.comparing import write_file_comparison

    return write_file_comparison(first, second, align=align, delta=delta, out=out, overwrite=overwrite)
