"""`grokphys fit-ode`: one law of motion for the Fourier signals of many runs."""

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional

from grokphys.options import Figures, Files, Overwrite, TableFile, given_otherwise
from grokphys.output import make_directory, refuse_existing, refuse_table, write_table
from physics.checks import InputError, whole_number


def fit_ode(
    files: Positional[Files],
    *,
    law: Literal["linear", "mean-field", "lotka-volterra"] = "linear",
    penalty: Literal["lasso", "elastic-net", "least-squares"] = "lasso",
    alpha: float = 0.01,
    l1_ratio: float = 0.5,
    max_iter: int = 100_000,
    kind: Literal["increment", "generator"] = "increment",
    first: int = 0,
    last: int = 1000,
    resamples: int = 0,
    table: TableFile = None,
    directory: Annotated[Path | None, given_otherwise("none", "DIRECTORY")] = None,
    figures: Figures = "png",
    overwrite: Overwrite = False,
) -> int:
    """Fit one law of motion to the Fourier signals of trajectories (Ding, Section 4.2).

    All runs of all files are assumed to obey the same law. The scores say how well the law predicts the
    signals: in the steps of the fit, in later steps, and in runs that were left out of the fit. A file that
    cannot be read is named and skipped. The exit status is 1 in this case, or if a fit has not converged.

    Example: grokphys fit-ode example:ding --alpha 0.01 --directory fit

    Args:
        files: Trajectory files, at least one; quoted patterns such as 'runs/*.h5'; or examples such as
            example:ding.
        law: Law to fit: linear (the ODE of the paper), mean-field (nine terms, the same for every frequency)
            or lotka-volterra (all linear and quadratic terms).
        penalty: Penalty of the linear and of the Lotka-Volterra law: lasso (as in the paper), elastic-net, or
            least-squares (no penalty). The mean-field law has none.
        alpha: Weight of the penalty, at least 0, as in the estimator ElasticNet of scikit-learn; 0 means
            least squares.
        l1_ratio: Fraction of the L1 norm in the penalty elastic-net, greater than 0 and at most 1.
        max_iter: Largest number of sweeps of coordinate descent for each frequency, at least 1. One sweep
            updates every coefficient once.
        kind: What the law describes: the change from one frame to the next (increment), or the rate of change
            dx/dt for each step (generator).
        first: First step to fit, a whole number of at least 0.
        last: Last step to fit, a whole number greater than --first.
        resamples: Number of times that the fit is repeated, 0 or at least 2, for a linear law. Each
            fit uses resampled runs, or resampled blocks of steps if there is a single run.
            The 95 % interval of each coefficient, and how often the penalty keeps it, are written to
            intervals.csv in --directory, which is then required.
        table: Table to write, as CSV or Parquet. It has one row for each run: file, run, parameters and
            scores.
        directory: Directory to write to. It will hold coefficients.csv, interactions.csv, scores.json, two
            figures named coefficients and rollout, and with --resamples also intervals.csv. With --overwrite,
            figures of these names in other formats are removed.
        overwrite: Replace files that exist.
    """
    from grokphys.report import laws as fits

    recipe = fits.recipe_of(law, penalty, alpha, l1_ratio, max_iter, kind, resamples)
    if whole_number("last", last, 1) <= whole_number("first", first, 0):
        raise InputError(f"last must be greater than {first}, the value of --first, got {last}")
    if resamples and directory is None:
        raise InputError("resamples needs --directory, to which intervals.csv is written")
    written = [] if directory is None else [directory / name for name in fits.FILES]
    if table is not None and os.path.realpath(table) in map(os.path.realpath, written):
        raise InputError(f"table must be another file than those of --directory, got {table}")
    refuse_table(table, overwrite)
    for path in written:
        refuse_existing(path, overwrite, parents=True)
    failed: list[Path] = []
    runs = fits.read_signals(files, first, last, failed)
    if not runs:
        return 1
    window = {
        "first": int(min(run.step[0] for _, run in runs)),
        "last": int(max(run.step[-1] for _, run in runs)),
    }
    count = f"{len(runs)} run{'s' * (len(runs) > 1)}"
    scores = fits.fit(runs, recipe)
    intervals = fits.interval_rows(runs, scores.law, recipe, resamples) if resamples else []
    print(fits.summary(scores, recipe, f"steps {window['first']} to {window['last']}, {count}, {kind}"))
    if table is not None:
        write_table(table, fits.rows(runs, scores, recipe))
        print(f"{count} in {table}")
    if directory is not None:
        make_directory(directory)
        fits.write(directory, runs, scores, recipe, window, intervals, figures)
        print(f"coefficients, scores and figures in {directory}")
    missed = scores.law.missed
    if missed:
        print(
            f"grokphys: the fits of frequencies {', '.join(map(str, missed))} have not converged "
            f"in {max_iter} sweeps; raise --max-iter",
            file=sys.stderr,
        )
    return 1 if missed or failed else 0
