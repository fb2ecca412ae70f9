"""The commands that read files: `analyze`, `fit-ode`, `survival`, `compare`, `info`."""

import sys
import time
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from tyro.conf import Positional

from grokphys.options import Files, OutFile, Overwrite, TableFile, given_otherwise, sentence, structures_of
from grokphys.output import json_text, make_directory, refuse_existing, refuse_table, write_table
from grokphys.progress import progress, stages
from physics.checks import number, whole_number
from physics.errors import InputError
from physics.trajectory import Trajectory

LONGEST_VALUE = 200
FOLLOW_SECONDS = 0.5


def analyze(
    files: Positional[Files],
    *,
    structures: Literal["auto", "yes", "no"] = "auto",
    table: TableFile = None,
    overwrite: Overwrite = False,
) -> int:
    """Say what the embeddings of trajectory files have become.

    Prints a summary a file; a file that cannot be read is named on stderr and the others go on (exit
    status 1).

    Args:
        files: trajectory files or quoted glob patterns.
        structures: count grid imperfections of the final embeddings; auto: where they have up to 4 axes.
        table: table to write, as CSV or Parquet; one row a run: structures, surviving frequencies and since
            which step, effective dimension, final losses and accuracies.
        overwrite: replace what is there.
    """
    from grokphys.batches import read_each, run_columns

    if table is not None:
        refuse_table(table, overwrite)
    rows: list[dict[str, Any]] = []
    failed: list[Path] = []
    for path, trajectory, (line, measured) in read_each(files, lambda t: _measure(t, structures), failed):
        print(f"{path}: {line}")
        rows.extend(run_columns(path, trajectory, k) | columns for k, columns in enumerate(measured))
    if table is not None and rows:
        write_table(table, rows)
        print(f"{len(rows)} runs in {table}")
    return 1 if failed else 0


def _measure(trajectory: Trajectory, wanted: str) -> tuple[str, list[dict[str, Any]]]:
    """Summary line of a file and the columns of each of its runs."""
    from analysis.circles.fourier import signals_and_final, survives
    from analysis.circles.geometry import effective_dimension
    from analysis.circles.survival import StoppingRule
    from physics.particles.structures import circle_ratio, is_circle

    signals, final = signals_and_final(trajectory)
    ratios, circle, dimension = circle_ratio(final), is_circle(final), effective_dimension(final)
    alive = survives(signals[:, -1])
    counted = wanted == "yes" or (wanted == "auto" and trajectory.dim <= 4)
    found, line = structures_of(trajectory, final) if counted else (None, "")
    rule = StoppingRule()
    rows = []
    for run in range(trajectory.runs):
        decided = rule.first(trajectory.steps, signals[run])
        row: dict[str, Any] = {
            "step": int(trajectory.steps[-1]),
            "circle": bool(circle[run]),
            "circle_ratio": float(ratios[run]),
            "grid_imperfections": None if found is None else int(found.imperfections[run]),
            "effective_dimension": float(dimension[run]),
            "survivors": int(alive[run].sum()),
            "surviving_frequencies": " ".join(str(k + 1) for k in np.flatnonzero(alive[run])),
            "survivors_decided_at": decided,
        }
        for name in trajectory.observables:
            if len(trajectory.clock(name)[0]) and trajectory.observables[name].ndim == 2:
                row[f"final_{name}"] = float(trajectory.observables[name][run, -1])
        rows.append(row)
    if found is not None:
        return line, rows
    counts = alive.sum(axis=1)
    return f"{trajectory.runs} runs, {counts.mean():.1f} of {alive.shape[1]} frequencies survive", rows


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
    from grokphys.report import laws as ding_fits

    recipe = ding_fits.recipe_of(law, penalty, alpha, l1_ratio, max_iter, form, resamples)
    if whole_number("last", last, 1) <= whole_number("first", first, 0):
        raise InputError(f"last must be a step after first, {first}, got {last}")
    if resamples and directory is None:
        raise InputError("resamples needs directory (--directory), where intervals.csv is written")
    if table is not None:
        refuse_table(table, overwrite)
    if directory is not None:
        for name in ding_fits.NAMES:
            refuse_existing(directory / name, overwrite, parents=True)
    failed: list[Path] = []
    runs = ding_fits.read_signals(files, first, last, failed)
    if not runs:
        return 1
    with stages("fit-ode", "fit and score", "resample", "write") as begin:
        begin()
        scores = ding_fits.fit(runs, recipe)
        begin()
        intervals = ding_fits.interval_rows(runs, scores.law, recipe, resamples) if resamples else []
        begin()
        print(ding_fits.summary(scores, recipe, f"steps {first} to {last}, {len(runs)} runs, {form}"))
        if table is not None:
            write_table(table, ding_fits.rows(runs, scores, recipe))
            print(f"{len(runs)} runs in {table}")
        if directory is not None:
            make_directory(directory)
            ding_fits.write(directory, runs, scores, recipe, {"first": first, "last": last}, intervals)
            print(f"coefficients, scores and figures in {directory}")
    missed = scores.law.missed
    if missed:
        print(
            f"grokphys: frequencies {', '.join(map(str, missed))} have not converged in {max_iter} "
            "sweeps; raise --max-iter",
            file=sys.stderr,
        )
    return 1 if missed or failed else 0


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
    from grokphys.report import survival as ding_survival

    whole_number("at", at, 1)
    whole_number("bins", bins, 1)
    number("factor", factor, above=0.0)
    if signal_threshold is not None:
        number("signal_threshold", signal_threshold, 0.0)
    if table is not None:
        refuse_table(table, overwrite)
    failed: list[Path] = []
    circles = ding_survival.read_circles(files, at, factor, signal_threshold, failed)
    if not circles:
        return 1
    parts = ding_survival.report(circles, groups, bins, signal_threshold, factor)
    for part in progress(parts, "survival", "table", 4):
        print(f"{part}\n")
    if table is not None:
        rows = ding_survival.rows(circles)
        print(f"{write_table(table, rows)}: {len(rows)} circles")
    return 1 if failed else 0


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


def info(files: Positional[Files], *, follow: bool = False) -> int:
    """Print what trajectory files hold, whether they are complete, and how they were made.

    Args:
        files: trajectory files or quoted glob patterns; unfinished files (.partial) too.
        follow: print each new frame of one unfinished file, until its run is complete; Ctrl-C ends it.
    """
    from grokphys.files import resolve
    from physics.trajectory.stored import StoredTrajectory

    if follow:
        paths = resolve(files)
        if len(paths) != 1:
            raise InputError(f"follow (--follow) takes one file, got {len(paths)}")
        return _follow(StoredTrajectory(paths[0]))
    failures = 0
    for path in resolve(files):
        try:
            found = StoredTrajectory(path)
        except (ValueError, OSError) as error:
            failures += 1
            print(f"grokphys: {sentence(error)}", file=sys.stderr)
            continue
        span = f"steps {found.steps[0]} to {found.steps[-1]}" if found.frames else "no frame yet"
        print(path)
        print(f"  complete     {'yes' if found.complete else 'no: unfinished or cut short'}")
        size = f"{found.runs} runs × {found.frames} frames × {found.tokens} tokens × {found.dim} dimensions"
        print(f"  positions    {size}, {found.dtype}, {span}")
        for name in found.observables:
            clock = found.clock(name)[0]
            span = f"steps {clock[0]} to {clock[-1]}" if len(clock) else "no step"
            own = "" if clock is found.steps else f", own clock: {span}"
            print(f"  observable   {name}, {len(clock)} frames{own}")
        print(f"  made by      {found.parameters.get('program', 'unknown')}, grokphys {found.code_version}")
        for name, value in found.parameters.items():
            if name != "program":
                print(f"    {name:<15}{_shortened(value)}")
    return 1 if failures else 0


def _follow(found: Any) -> int:
    """Print each frame of a run that is being recorded elsewhere: its step and the means of its numbers."""
    seen = 0
    while True:
        shared = (name for name in found.observables if found.clock(name)[0] is found.steps)
        numbers = {name: values for name in shared if (values := found.observables[name]).ndim == 2}
        for frame in range(seen, found.frames):
            means = (f"{name} {np.mean(values[:, frame]):.6g}" for name, values in numbers.items())
            print("  ".join([f"step {found.steps[frame]}", *means]), flush=True)
        seen = found.frames
        if found.complete:
            print(f"{found.path}: complete, {found.frames} frames")
            return 0
        while not found.refresh() and not found.complete:
            time.sleep(FOLLOW_SECONDS)


def _shortened(value: Any) -> str:
    """JSON of a stored value; of a long one only its beginning and its length."""
    text = json_text(value, indent=None)
    if len(text) <= LONGEST_VALUE:
        return text
    items = f" ({len(value)} items)" if isinstance(value, dict | list | str) else ""
    return f"{text[:LONGEST_VALUE]} …{items}"
