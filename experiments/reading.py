"""The commands that read files: `analyze`, `fit-ode`, `compare`, `info`."""

import json
import sys
import warnings
from pathlib import Path
from typing import Any, Literal

import numpy as np
from tyro.conf import Positional

from experiments.options import Files, sentence, structure_line
from experiments.output import make_directory, refuse_existing, save_figure, write_csv, write_text
from physics.errors import InputError
from physics.trajectory import Trajectory


def analyze(files: Positional[Files], *, out: Path | None = None, overwrite: bool = False) -> int:
    """Say what the final embeddings of trajectory files have become.

    Prints a summary a file; a file that cannot be read is named on stderr and the others go on (exit
    status 1).

    Args:
        files: trajectory files or quoted glob patterns.
        out: CSV file for one row a run: structures, surviving frequencies, final losses and accuracies.
        overwrite: replace the CSV file if it exists.
    """
    from analysis.comparison import structures
    from analysis.fourier import fourier_signals, survives
    from experiments.files import resolve
    from physics.structure import circle_ratio

    if out is not None:
        refuse_existing(out, overwrite)
    rows: list[dict[str, Any]] = []
    failures = 0
    for path in resolve(files):
        try:
            trajectory = Trajectory.open(path)
            final = trajectory.final
            found = structures(final)
            ratios = circle_ratio(final)
            alive = survives(fourier_signals(final))
            measured = {
                f"final_{name}": trajectory.observables[name][:, -1]
                for name in trajectory.observables
                if trajectory.observables[name].ndim == 2
            }
        except (ValueError, OSError) as error:
            failures += 1
            print(f"grokphys: {path}: {sentence(error)}", file=sys.stderr)
            continue
        print(f"{path}: {structure_line(found)}")
        first = int(trajectory.parameters.get("first_run", 0))
        rows.extend(
            {
                "file": str(path),
                "run": first + run,
                "program": trajectory.parameters.get("program", ""),
                "seed": json.dumps(trajectory.parameters.get("seed")),
                "complete": trajectory.complete,
                "tokens": trajectory.tokens,
                "dim": trajectory.dim,
                "step": int(trajectory.steps[-1]),
                "circle": bool(found.circle[run]),
                "circle_ratio": float(ratios[run]),
                "grid_imperfections": int(found.imperfections[run]),
                "surviving_frequencies": " ".join(str(k + 1) for k in np.flatnonzero(alive[run])),
                **{name: float(values[run]) for name, values in measured.items()},
            }
            for run in range(trajectory.runs)
        )
    if out is not None and rows:
        write_csv(out, rows)
        print(f"{len(rows)} runs in {out}")
    return 1 if failures else 0


def fit_ode(
    files: Positional[Files],
    *,
    penalty: Literal["lasso", "least-squares"] = "lasso",
    alpha: float = 0.01,
    max_iter: int = 100_000,
    kind: Literal["increment", "generator"] = "increment",
    first: int = 0,
    last: int = 1000,
    out: Path | None = None,
    overwrite: bool = False,
) -> int:
    """Fit one linear ODE to the Fourier signals of trajectories (Ding §4.2).

    All runs of all files together obey one law; the scores say how well, in sample and forward in time.
    The exit status is 1 if a target has not converged.

    Args:
        files: trajectory files or quoted glob patterns.
        penalty: Lasso as in the paper, or least squares.
        alpha: weight of the L1 norm.
        max_iter: sweeps of coordinate descent for each target.
        kind: the increment map between consecutive frames, or the generator dx/dt.
        first: first step to fit.
        last: last step to fit.
        out: directory for coefficients.csv, scores.json, coefficients.png and rollout.png.
        overwrite: replace these files if they exist.
    """
    from sklearn.exceptions import ConvergenceWarning

    from experiments import ding
    from experiments.files import trajectories

    names = ("coefficients.csv", "scores.json", "coefficients.png", "rollout.png")
    if out is not None:
        for name in names:
            refuse_existing(out / name, overwrite, parents=True)
    signals = [one for trajectory in trajectories(files) for one in ding.signals_of(trajectory, first, last)]
    if len({one.values.shape[1] for one in signals}) > 1:
        raise InputError(
            "files must agree in the number of frequencies, got "
            f"{sorted({one.values.shape[1] for one in signals})}"
        )
    label = f"Lasso, α = {alpha:g}" if penalty == "lasso" else "least squares"
    recipe = {"penalty": "lasso" if penalty == "lasso" else None, "alpha": alpha, "max_iter": max_iter}
    with warnings.catch_warnings():  # said below, by the numbers of the frequencies
        warnings.simplefilter("ignore", ConvergenceWarning)
        scores = ding.fit_and_score(signals, kind=kind, **recipe)
    print(ding.score_table({label: scores}, f"steps {first} to {last}, {len(signals)} runs, {kind}").text())
    fit = scores.fit
    missed = np.flatnonzero(~fit.regressor.converged_)
    if len(missed):
        print(
            f"grokphys: frequencies {', '.join(str(k + 1) for k in missed)} have not converged in {max_iter} "
            "sweeps; raise --max-iter",
            file=sys.stderr,
        )
    if out is not None:
        make_directory(out)
        header = ["frequency", "b", *(f"a_{k + 1}" for k in range(len(fit.b)))]
        write_csv(
            out / names[0],
            [
                dict(zip(header, [k + 1, float(fit.b[k]), *map(float, fit.A[k])], strict=True))
                for k in range(len(fit.b))
            ],
        )
        write_text(
            out / names[1],
            json.dumps(
                {
                    "kind": kind,
                    **recipe,
                    "first": first,
                    "last": last,
                    "runs": len(signals),
                    "r2_in_sample": fit.r2_in_sample,
                    "r2_rollout": fit.r2_rollout,
                    "r2_forward": scores.forward,
                    "converged": fit.regressor.converged_.tolist(),
                },
                indent=1,
            ),
        )
        save_figure(ding.coefficient_picture(fit, signals[0].survivors, label).figure, out / names[2])
        save_figure(ding.rollout_picture(signals[0], {label: scores}).figure, out / names[3])
        print(f"coefficients, scores and figures in {out}")
    return 1 if len(missed) else 0


def compare(
    simulated: Positional[str], trained: Positional[str], *, out: Path | None = None, overwrite: bool = False
) -> int:
    """Hold simulated against trained dynamics: structures, rank test, final shapes.

    Args:
        simulated: a trajectory file, or a quoted pattern whose files count as one ensemble.
        trained: the same of the trained ones.
        out: HTML file for a report with figures.
        overwrite: replace the report if it exists.
    """
    from experiments.files import trajectories
    from experiments.report import write_report
    from experiments.side_by_side import comparison_section

    if out is not None:
        refuse_existing(out, overwrite, parents=True)
    section = comparison_section(trajectories([simulated]), trajectories([trained]))
    for paragraph in section.text:
        print(paragraph)
    for table in section.tables:
        print(f"\n{table.text()}")
    if out is not None:
        write_report(out, "Simulated against trained", f"{simulated} and {trained}", [section])
        print(f"\nreport in {out}")
    return 0


def info(files: Positional[Files]) -> int:
    """Print what trajectory files hold, whether they are complete, and how they were made.

    Args:
        files: trajectory files or quoted glob patterns; unfinished files (.partial) too.
    """
    from experiments.files import resolve
    from physics.stored import StoredTrajectory

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
            own = "" if clock is found.steps else f", own clock: steps {clock[0]} to {clock[-1]}"
            print(f"  observable   {name}, {len(clock)} frames{own}")
        print(f"  made by      {found.parameters.get('program', 'unknown')}, grokphys {found.code_version}")
        for name, value in found.parameters.items():
            if name != "program":
                print(f"    {name:<15}{json.dumps(value, ensure_ascii=False)}")
    return 1 if failures else 0
