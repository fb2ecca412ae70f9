"""What `grokphys fit-ode` does: read signals, fit a law, score it honestly, write it down."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from analysis.laws.flow import interactions
from analysis.laws.nonlinear import MeanFieldRegressor, lotka_volterra, term_name
from analysis.laws.ode import ODEFit, fit_trajectories
from analysis.laws.resampling import resample_coefficients
from analysis.laws.scores import HonestScores, Law, RegressorLaw, Score, fit_law
from grokphys.batches import Row, read_each, run_columns
from grokphys.output import save_figure, write_csv, write_json
from grokphys.report import circles as ding
from physics.checks import number, whole_number
from physics.errors import InputError

NAMES = (
    "coefficients.csv",
    "interactions.csv",
    "scores.json",
    "coefficients.png",
    "rollout.png",
    "intervals.csv",
)


@dataclass(frozen=True)
class Run:
    """Signals of one run, and the columns that name it."""

    signals: ding.Signals
    columns: Row


@dataclass(frozen=True)
class Recipe:
    """Which law is fitted, and how; the options of the command."""

    law: str
    penalty: str
    alpha: str
    l1_ratio: float
    max_iter: int
    kind: str

    @property
    def label(self) -> str:
        """Name of the fit in tables and titles."""
        if self.law == "mean-field":
            return "mean field, nine terms"
        how = "least squares" if self.penalty == "least-squares" else f"{self.penalty}, α = {self.alpha}"
        how = how.replace("lasso", "Lasso")
        return how if self.law == "linear" else f"Lotka-Volterra, {how}"

    @property
    def weight(self) -> float | str:
        """`alpha` as a number or a name."""
        if self.alpha in ("aic", "bic", "cv"):
            return self.alpha
        try:
            weight = float(self.alpha)
        except ValueError:
            raise InputError(f"alpha must be a number, aic, bic or cv, got {self.alpha!r}") from None
        return number("alpha", weight, 0.0)

    def check(self, resamples: int) -> None:
        """Refuse options that do not go together, before anything is read or written.

        Raises
        ------
        InputError
            If a value is out of its range, or `resamples` is given where there is nothing to draw it for.
        """
        weight = self.weight
        if not 0.0 <= number("l1_ratio", self.l1_ratio) <= 1.0:
            raise InputError(f"l1_ratio must be from 0 to 1, got {self.l1_ratio:g}")
        whole_number("max_iter", self.max_iter, 1)
        if whole_number("resamples", resamples, 0) == 1:
            raise InputError("resamples must be 0 or at least 2, got 1")
        if resamples and (self.law != "linear" or isinstance(weight, str)):
            raise InputError(
                f"resamples must be 0 unless the law is linear and alpha a number, got {resamples} with the "
                f"{self.law} law and alpha {self.alpha}"
            )

    def fit(self, signals: Any, times: Any) -> Law:
        """Fit the law to runs."""
        penalty = None if self.penalty == "least-squares" else self.penalty
        if self.law == "mean-field":
            return fit_law(MeanFieldRegressor(), signals, times, kind=self.kind)
        if self.law == "lotka-volterra":
            return fit_law(
                lotka_volterra(penalty, self.weight, l1_ratio=self.l1_ratio, max_iter=self.max_iter),
                signals,
                times,
                kind=self.kind,
            )
        return fit_trajectories(
            signals,
            times,
            kind=self.kind,
            penalty=penalty,
            alpha=self.weight,
            l1_ratio=self.l1_ratio,
            max_iter=self.max_iter,
        )


def read_signals(files: Sequence[str], first: int, last: int, failed: list[Path]) -> list[Run]:
    """Signals of all runs of all files; those that cannot be read are named and added to `failed`."""
    runs: list[Run] = []
    sizes: dict[int, str] = {}
    for path, trajectory, found in read_each(files, lambda t: ding.signals_of(t, first, last), failed):
        if not all(np.isfinite(one.values).all() for one in found):
            raise InputError(f"{path} holds NaN or infinite signals")
        sizes.setdefault(trajectory.tokens, str(path))
        runs += [Run(one, run_columns(path, trajectory, k)) for k, one in enumerate(found)]
    if len(sizes) > 1:
        named = ", ".join(f"p = {p} ({path})" for p, path in sizes.items())
        raise InputError(f"files must agree in the number of tokens p, got {named}; fit them apart")
    return runs


def fit(runs: Sequence[Run], recipe: Recipe) -> HonestScores:
    """Fit and score; targets that do not converge are named by `missed` afterwards, once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("once", UserWarning)
        return ding.score_law([run.signals for run in runs], recipe.fit)


def summary(scores: HonestScores, recipe: Recipe, window: str) -> str:
    """Scores as text, with what else must be said."""
    lines = [ding.score_table({recipe.label: scores}, window).text()]
    reached = scores.in_sample.reached
    if reached < 1:
        lines.append(f"The rollouts blow up: they reach {100 * reached:.0f} % of the frames.")
    if isinstance(scores.law, ODEFit) and not scores.law.A.any():
        lines.append("No coefficient is left: alpha is too large for these signals.")
    return "\n".join(lines)


def missed(law: Law) -> list[int]:
    """Frequencies whose targets have not converged."""
    converged = np.array([])
    if isinstance(law, ODEFit):
        converged = law.converged
    elif isinstance(law, RegressorLaw) and hasattr(law.regressor, "steps"):
        converged = law.regressor[-1].converged_
    return [int(k) + 1 for k in np.flatnonzero(~converged.astype(bool))]


def rows(runs: Sequence[Run], scores: HonestScores, recipe: Recipe) -> list[Row]:
    """Tidy table: one row a run."""
    table = []
    for k, run in enumerate(runs):
        s = run.signals
        row: Row = run.columns | {
            "law": recipe.law,
            "fit": recipe.label,
            "kind": recipe.kind,
            "first_step": int(s.steps[0]),
            "last_step": int(s.steps[-1]),
            "survivors": " ".join(map(str, s.survivors)),
        }
        row |= _columns("in_sample", scores.law.score([s.values], [s.steps]))
        if scores.across:
            row |= _columns("across_runs", scores.across[k])
        table.append(row)
    return table


def write(
    out: Path,
    runs: Sequence[Run],
    scores: HonestScores,
    recipe: Recipe,
    window: Mapping[str, int],
    intervals: Sequence[Row] = (),
) -> None:
    """Write coefficients, interactions, scores, figures and intervals to the directory `out`.

    What an earlier fit has left there under these names, and this one does not have, is removed.
    """
    law = scores.law
    written = [write_csv(out / NAMES[0], coefficient_rows(law))]
    content = {
        **asdict(recipe),
        "alpha": recipe.weight,
        **window,
        "runs": len(runs),
        "in_sample": asdict(scores.in_sample),
        "forward": asdict(scores.forward) if scores.forward else None,
        "across_runs": [asdict(score) for score in scores.across],
    }
    if isinstance(law, ODEFit):
        content |= {
            "r2_in_sample": law.r2_in_sample,
            "r2_rollout": law.r2_rollout,
            "alphas": law.alpha.tolist(),
            "converged": law.converged.tolist(),
        }
        written.append(write_csv(out / NAMES[1], interactions(law.A)))
        survivors = runs[0].signals.survivors
        figure = ding.coefficient_picture(law, survivors, recipe.label).figure
        written.append(save_figure(figure, out / NAMES[3]))
    written.append(write_json(out / NAMES[2], content))
    picture = ding.rollout_picture(runs[0].signals, {recipe.label: law})
    written.append(save_figure(picture.figure, out / NAMES[4]))
    if intervals:
        written.append(write_csv(out / NAMES[5], intervals))
    for name in NAMES:
        if out / name not in written:
            (out / name).unlink(missing_ok=True)


def coefficient_rows(law: Law) -> list[Row]:
    """Coefficients of a law as rows: a row a target for the linear one, a row a term for the mean field."""
    if isinstance(law, ODEFit):
        names = [f"a_{k + 1}" for k in range(len(law.b))]
        return [
            {"frequency": k + 1, "b": float(law.b[k]), **dict(zip(names, map(float, law.A[k]), strict=True))}
            for k in range(len(law.b))
        ]
    assert isinstance(law, RegressorLaw)
    if isinstance(law.regressor, MeanFieldRegressor):
        return [
            {"term": term_name(term), "coefficient": float(c)}
            for term, c in zip(law.regressor.terms_, law.regressor.coef_, strict=True)
        ]
    terms, last = law.regressor[0].get_feature_names_out(), law.regressor[-1]
    return [
        {"frequency": k + 1, "1": float(b), **{name: float(v) for name, v in zip(terms, w, strict=True) if v}}
        for k, (b, w) in enumerate(zip(last.intercept_, last.coef_, strict=True))
    ]


def interval_rows(runs: Sequence[Run], law: Law, recipe: Recipe, resamples: int) -> list[Row]:
    """Every coefficient of a linear law with its interval and inclusion frequency, a row each."""
    weight = recipe.weight
    assert isinstance(law, ODEFit), "`Recipe.check` has refused the other laws"
    assert not isinstance(weight, str), "and what chooses alpha"
    found = resample_coefficients(
        [run.signals.values for run in runs],
        [run.signals.steps for run in runs],
        kind=recipe.kind,
        penalty=None if recipe.penalty == "least-squares" else recipe.penalty,
        alpha=weight,
        l1_ratio=recipe.l1_ratio,
        resamples=resamples,
    )
    return [
        {
            "frequency": i + 1,
            "of": j + 1,
            "coefficient": float(law.A[i, j]),
            "low": float(found.A_low[i, j]),
            "high": float(found.A_high[i, j]),
            "inclusion": float(found.inclusion[i, j]),
            "drawn": found.unit,
        }
        for i, j in np.ndindex(law.A.shape)
    ]


def _columns(prefix: str, score: Score) -> Row:
    return {f"{prefix}_{name}": value for name, value in asdict(score).items()}
