"""`grokphys fit-ode`: one law of motion for the Fourier signals of many runs."""

import sys
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional

from grokphys.options import Files, Overwrite, TableFile, given_otherwise
from grokphys.output import make_directory, refuse_existing, refuse_table, write_table
from grokphys.progress import stages
from physics.checks import whole_number
from physics.errors import InputError


def fit_ode(
    files: Positional[Files],
    *,
    law: Literal["linear", "mean-field", "lotka-volterra"] = "linear",
    penalty: Literal["lasso", "elastic-net", "least-squares"] = "lasso",
    alpha: str = "0.01",
    l1_ratio: float = 0.5,
    max_iter: int = 100_000,
    form: Literal["increment", "generator"] = "increment",
    first: int = 0,
    last: int = 1000,
    resamples: int = 0,
    table: TableFile = None,
    directory: Annotated[Path | None, given_otherwise("none", "DIRECTORY")] = None,
    overwrite: Overwrite = False,
) -> int:
    """Fit one law of motion to the Fourier signals of trajectories (Ding §4.2).

    All runs of all files together obey one law; the scores say how well, in sample, forward in time, and
    across runs. A file that cannot be read is named and passed over. The exit status is 1 then, or if
    a target has not converged.

    Args:
        files: trajectory files or quoted glob patterns.
        law: the paper's linear ODE, a mean-field competition, or all quadratic terms.
        penalty: of the linear and the quadratic law: Lasso as in the paper, elastic net, or least squares.
        alpha: weight of the penalty, at least 0, or aic, bic or cv to choose it for each target.
        l1_ratio: part of the L1 norm in the elastic net, from 0 to 1.
        max_iter: number of sweeps of coordinate descent for each target, at most.
        form: the increment map between consecutive frames, or the generator dx/dt, a step.
        first: first step to fit.
        last: last step to fit.
        resamples: number of draws of runs, or of blocks of a single run, for intervals.csv in DIRECTORY: 95 %
            intervals of a linear law's coefficients, and how often the penalty lets each in; 0 for none.
        table: table to write, as CSV or Parquet; one row a run: file, run, parameters and scores.
        directory: directory to write to: coefficients.csv, interactions.csv, scores.json, coefficients.png
            and rollout.png.
        overwrite: replace what is there.
    """
    from grokphys.report import laws as fits

    recipe = fits.recipe_of(law, penalty, alpha, l1_ratio, max_iter, form, resamples)
    if whole_number("last", last, 1) <= whole_number("first", first, 0):
        raise InputError(f"last must be a step after first, {first}, got {last}")
    if resamples and directory is None:
        raise InputError("resamples needs directory (--directory), where intervals.csv is written")
    if table is not None:
        refuse_table(table, overwrite)
    if directory is not None:
        for name in fits.NAMES:
            refuse_existing(directory / name, overwrite, parents=True)
    failed: list[Path] = []
    runs = fits.read_signals(files, first, last, failed)
    if not runs:
        return 1
    with stages("fit-ode", "fit and score", "resample", "write") as begin:
        begin()
        scores = fits.fit(runs, recipe)
        begin()
        intervals = fits.interval_rows(runs, scores.law, recipe, resamples) if resamples else []
        begin()
        print(fits.summary(scores, recipe, f"steps {first} to {last}, {len(runs)} runs, {form}"))
        if table is not None:
            write_table(table, fits.rows(runs, scores, recipe))
            print(f"{len(runs)} runs in {table}")
        if directory is not None:
            make_directory(directory)
            fits.write(directory, runs, scores, recipe, {"first": first, "last": last}, intervals)
            print(f"coefficients, scores and figures in {directory}")
    missed = scores.law.missed
    if missed:
        print(
            f"grokphys: frequencies {', '.join(map(str, missed))} have not converged in {max_iter} "
            "sweeps; raise --max-iter",
            file=sys.stderr,
        )
    return 1 if missed or failed else 0
