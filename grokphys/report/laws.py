"""Output of `grokphys fit-ode`: the tables and figures of a law that `analysis.fit_batch` has fitted."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import numpy as np

from analysis.circles.survival import circles_of
from analysis.laws.flow import interactions
from analysis.laws.ode import ODEFit, Recipe, fit_batch
from analysis.laws.scores import HonestScores, Law
from grokphys.batches import Row, read_each, run_columns
from grokphys.output import FigureFormat, save_figure, write_csv, write_json
from grokphys.report.circles import law_figures, score_table, survivors
from physics.checks import whole_number
from physics.errors import InputError

TABLES = ("coefficients.csv", "interactions.csv", "scores.json", "intervals.csv")
FILES = (
    *TABLES,
    *(f"{name}.{ending}" for name in ("coefficients", "rollout") for ending in get_args(FigureFormat)),
)
"""Names of all files that `write` may write or remove: figures in every format."""
Run = tuple[Row, Any]
"""The columns that name a run, and its circles, as ``circles_of(trajectory).isel(run=0)``."""


def recipe_of(
    law: str, penalty: str, alpha: float, l1_ratio: float, max_iter: int, kind: str, resamples: int
) -> Recipe:
    """Return the recipe that the options of `grokphys fit-ode` describe.

    Parameters
    ----------
    law : {"linear", "mean-field", "lotka-volterra"}
        Law to fit.
    penalty : {"lasso", "elastic-net", "least-squares"}
        Penalty of its coefficients.
    alpha : float
        Weight of the penalty, at least 0.
    l1_ratio : float
        Fraction of the L1 norm in the elastic net, greater than 0 and at most 1.
    max_iter : int
        Largest number of sweeps of coordinate descent, at least 1.
    kind : {"increment", "generator"}
        Whether the law describes changes from frame to frame, or rates of change for each step.
    resamples : int
        Number of times that the fit is repeated on resampled data: 0 for none, otherwise at least 2.

    Returns
    -------
    analysis.laws.Recipe
        The recipe, whose values have been checked.

    Raises
    ------
    InputError
        If a value is out of its range, or `resamples` is given for a law that cannot be resampled.
    """
    recipe = Recipe(law, None if penalty == "least-squares" else penalty, alpha, l1_ratio, max_iter, kind)
    if whole_number("resamples", resamples, 0) == 1:
        raise InputError("resamples must be 0 or at least 2, got 1")
    if resamples:
        recipe.check_resamples(resamples)
    return recipe


def read_signals(files: Sequence[str], first: int, last: int, failed: list[Path]) -> list[Run]:
    """Read the Fourier signals of all runs of all files in a window of steps.

    Parameters
    ----------
    files : sequence of str
        File names, patterns, or names of examples.
    first, last : int
        First and last step of the window.
    failed : list of Path
        List to which files that cannot be read are added; they are also named on stderr.

    Returns
    -------
    list of Run
        For each run, the columns that name it in a table, and its circles.

    Raises
    ------
    InputError
        If a recorded signal is not finite, the files differ in their number of tokens, or a pattern matches
        no file. A file with fewer than 2 frames in the window counts as one that cannot be read.
    FileNotFoundError
        If a file does not exist.
    """
    runs: list[Run] = []
    sizes: dict[int, str] = {}
    for path, trajectory, found in read_each(files, lambda t: circles_of(t, first, last), failed):
        if not np.isfinite(found.signals.values).all():
            raise InputError(f"{path} must hold finite signals, but some are NaN or infinite")
        sizes.setdefault(trajectory.tokens, str(path))
        each = (found.isel(run=k) for k in range(found.sizes["run"]))
        runs += [(run_columns(path, trajectory, int(run.member)), run) for run in each]
    if len(sizes) > 1:
        named = ", ".join(f"p = {p} ({path})" for p, path in sizes.items())
        raise InputError(f"files must agree in the number of tokens p, got {named}; fit them separately")
    return runs


def fit(runs: Sequence[Run], recipe: Recipe) -> HonestScores:
    """Fit a law to all runs and score it; each warning is shown once."""
    with warnings.catch_warnings():
        warnings.simplefilter("once", UserWarning)
        return fit_batch([run.signals for _, run in runs], recipe)


def summary(scores: HonestScores, recipe: Recipe, window: str) -> str:
    """Return the scores of a law as text for the terminal, with remarks about the fit.

    The words `window` are about the steps and runs of the fit.
    """
    lines = [score_table({recipe.label: scores}, window).text()]
    reached = scores.in_sample.reached
    if reached < 1:
        lines.append(f"The rollouts diverge: they reach {100 * reached:.0f} % of the frames.")
    if isinstance(scores.law, ODEFit) and not scores.law.A.any():
        lines.append("All coefficients are 0, because alpha is too large for these signals.")
    return "\n".join(lines)


def rows(runs: Sequence[Run], scores: HonestScores, recipe: Recipe) -> list[Row]:
    """Return a tidy table with one row for each run: how it was made, the fit, and the scores of the run."""
    parts = [{"in_sample": scores.law.score(run.signals)} for _, run in runs]
    if scores.across:
        parts = [part | {"across_runs": score} for part, score in zip(parts, scores.across, strict=True)]
    law = {"law": recipe.law, "fit": recipe.label, "kind": recipe.kind}
    return [
        columns | law | {"first_step": int(run.step[0]), "last_step": int(run.step[-1])}
        | {"survivors": " ".join(map(str, survivors(run)))}
        | {f"{where}_{name}": x for where, score in part.items() for name, x in asdict(score).items()}
        for (columns, run), part in zip(runs, parts, strict=True)
    ]  # fmt: skip


def write(
    out: Path, runs: Sequence[Run], scores: HonestScores, recipe: Recipe, window: Mapping[str, int],
    intervals: Sequence[Row] = (), figures: FigureFormat = "png",
) -> None:  # fmt: skip
    """Write coefficients, scores and a figure of rollouts of a law to a directory.

    Of a linear law, the interactions, a figure of the coefficients and any intervals are written too. Files
    of these names from an earlier fit that this fit does not write are removed, and so are its figures in
    other formats.

    Parameters
    ----------
    out : Path
        Existing directory.
    runs : sequence of Run
        Runs to which the law was fitted.
    scores : HonestScores
        The law and its scores.
    recipe : Recipe
        How it was fitted.
    window : mapping of str to int
        First and last step that were fitted, which are written with the scores.
    intervals : sequence of Row, default ()
        Rows that `interval_rows` returns, if the fit was resampled.
    figures : {"png", "svg", "pdf"}, default "png"
        Format of the figures.

    Raises
    ------
    OutputError
        If a file cannot be written.
    """
    law, first = scores.law, runs[0][1]
    written = [write_csv(out / "coefficients.csv", law.table())]
    content = asdict(recipe) | {"penalty": recipe.penalty or "least-squares", **window, "runs": len(runs)}
    content |= {"in_sample": asdict(scores.in_sample), "across_runs": list(map(asdict, scores.across))}
    content["forward"] = asdict(scores.forward) if scores.forward else None
    if isinstance(law, ODEFit):
        content |= {"r2_in_sample": law.r2_in_sample, "r2_rollout": law.r2_rollout}
        content |= {"alphas": law.alpha.tolist(), "converged": law.converged.tolist()}
        written.append(write_csv(out / "interactions.csv", interactions(law.A)))
    written.append(write_json(out / "scores.json", content))
    for name, figure in law_figures(law, first, recipe.label, {recipe.label: law}).items():
        written.append(save_figure(figure, out / f"{name}.{figures}"))
    if intervals:
        written.append(write_csv(out / "intervals.csv", intervals))
    for name in FILES:
        if out / name not in written:
            (out / name).unlink(missing_ok=True)


def interval_rows(runs: Sequence[Run], law: Law, recipe: Recipe, resamples: int) -> list[Row]:
    """Resample the runs of the fit of a linear law, or blocks of the steps of a single run.

    Returns
    -------
    list of Row
        For each pair of frequencies the coefficient, its 95 % interval, the fraction of the fits in which the
        coefficient is not zero, and what was resampled.
    """
    assert isinstance(law, ODEFit), "`recipe_of` has refused the other laws"
    resampled = recipe.resample([run.signals for _, run in runs], resamples)
    matrices = {"coefficient": law.A, "low": resampled.A_low, "high": resampled.A_high}
    matrices["inclusion"] = resampled.inclusion
    return [
        {"frequency": i + 1, "of": j + 1, **{name: float(matrix[i, j]) for name, matrix in matrices.items()}}
        | {"drawn": resampled.unit}
        for i, j in np.ndindex(law.A.shape)
    ]
