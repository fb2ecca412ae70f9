"""Ding et al., *Survival of the Fittest Representation*: circles of a trajectory and the ODE they obey."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from numpy.typing import NDArray

from analysis.circles.fourier import fourier_signals, survives, trajectory_signals
from analysis.laws.ode import PUBLISHED, ODEFit, fit_trajectories
from analysis.laws.scores import HonestScores, Law, honest_scores
from analysis.plots import figures
from grokphys.report.page import Picture, Section, Table
from physics.errors import InputError
from physics.trajectory import Trajectory

OBSERVABLE = "fourier_signals"
RECIPES: dict[str, dict[str, Any]] = {
    "Lasso, α = 0.01": PUBLISHED["lasso"],
    "least squares": PUBLISHED["least-squares"],
}


@dataclass(frozen=True)
class Signals:
    """Fourier signals of one run in a window of steps, and which survive in the end.

    Attributes
    ----------
    steps : ndarray of int64, shape (frames,)
    values : ndarray of float64, shape (frames, K)
    survivors : list of int
        Frequencies above twice the mean signal in the last frame of the whole run.
    """

    steps: NDArray[np.int64]
    values: NDArray[np.float64]
    survivors: list[int]


def signals_of(
    trajectory: Trajectory,
    first: int = 0,
    last: int | None = None,
    *,
    factor: float = 2.0,
    threshold: float | None = None,
) -> list[Signals]:
    """Return the signals of every run between two steps, both included, and its survivors.

    The observable `fourier_signals` is taken where the trajectory holds it (it may be recorded more often
    than the embeddings); else they are computed from the embeddings. For the limits see `survives`.
    """
    if OBSERVABLE in trajectory.observables:
        steps = trajectory.clock(OBSERVABLE)[0]
        values = trajectory.observables[OBSERVABLE]
    else:
        steps = trajectory.steps
        values = trajectory_signals(trajectory)
    window = (steps >= first) & (steps <= (steps[-1] if last is None else last))
    if np.count_nonzero(window) < 2:
        end = "the last" if last is None else last
        raise InputError(
            f"steps {first} to {end} must hold at least 2 frames, got {np.count_nonzero(window)} of the "
            f"{len(steps)} between {steps[0]} and {steps[-1]}"
        )
    final = survives(fourier_signals(trajectory.final), factor=factor, threshold=threshold)
    return [
        Signals(steps[window], run[window].astype(np.float64), [int(k) + 1 for k in np.flatnonzero(alive)])
        for run, alive in zip(values, final, strict=True)
    ]


def fit_and_score(signals: list[Signals], **recipe: Any) -> HonestScores:
    """Fit one linear ODE to all runs, and score it in sample, forward in time and across runs."""
    return score_law(signals, lambda x, t: fit_trajectories(x, t, **recipe))


def score_law(signals: list[Signals], fit: Callable[[Any, Any], Law]) -> HonestScores:
    """Score any law that ``fit(signals, times)`` makes."""
    return honest_scores(fit, [s.values for s in signals], [s.steps for s in signals])


def score_table(scores: Mapping[str, HonestScores], window: str) -> Table:
    """Scores of several fits side by side."""
    rows = []
    for name, score in scores.items():
        law = score.law
        inside, forward = score.in_sample, score.forward
        sparse = converged = "-"
        if isinstance(law, ODEFit):
            sparse = f"{np.count_nonzero(law.A)} of {law.A.size}"
            converged = f"{int(law.converged.sum())} of {len(law.converged)}"
        rows.append(
            [
                name,
                _r2(inside.derivative),
                _r2(inside.rollout),
                _r2(forward.derivative) if forward else "-",
                _r2(forward.rollout) if forward else "-",
                _r2(score.median("derivative")),
                _r2(score.median("rollout")),
                _r2(score.mean("survivors")),
                sparse,
                converged,
            ]
        )
    header = [
        "fit",
        "in sample, changes",
        "rollout",
        "forward, changes",
        "rollout",
        "across, changes",
        "rollout",
        "survivors",
        "coefficients not 0",
        "targets converged",
    ]
    caption = (
        f"R² of the law, {window}. In sample is the paper's figure. Forward: fitted to the first half of the "
        "steps, scored on the second half."
    )
    if any(row[5] != "-" for row in rows):
        caption += (
            " Across: fitted to other runs, median. Survivors: of the circles that survive, in the run or by "
            "the rollout, the part that do in both."
        )
    kept = [column for column in range(len(header)) if any(row[column] != "-" for row in rows)]
    return Table(caption, [header[k] for k in kept], [[row[k] for k in kept] for row in rows])


def coefficient_picture(fit: ODEFit, survivors: list[int], name: str) -> Picture:
    """Heat map of A."""
    with figures.style():
        figure, ax = plt.subplots(figsize=(7.2, 6.2))
    figures.show_coefficients(fit.A, ax, marked=survivors, title=f"Increment map A, {name}")
    plt.close(figure)
    return Picture(
        "Red: the signal of the column's frequency raises that of the row's (collaboration); blue: lowers it "
        "(competition). Survivors in bold.",
        figure,
    )


def rollout_picture(signals: Signals, laws: Mapping[str, Law]) -> Picture:
    """Original signals, and those rolled out from the first frame by each fit."""
    with figures.style():
        figure, axes = plt.subplots(1, len(laws), figsize=(5.2 * len(laws), 4.0), sharey=True, squeeze=False)
    elapsed = signals.steps - signals.steps[0]
    for ax, (name, law) in zip(axes[0], laws.items(), strict=True):
        times = np.arange(len(elapsed)) if law.kind == "increment" else elapsed
        figures.show_signals(
            signals.steps,
            signals.values,
            ax,
            marked=signals.survivors,
            rollout=law.predict(signals.values[0], times),
            title=name,
        )
        if ax is not axes[0, 0]:
            ax.set_ylabel("")
    plt.close(figure)
    return Picture("Original signals, and the same rolled out from the first frame alone (dashed).", figure)


def ode_section(trajectory: Trajectory, source: str, last: int = 1000) -> Section:
    """The paper's recipe on one trajectory: fit, coefficients, rollouts (Fig. 9)."""
    signals = signals_of(trajectory, 0, last)
    scores = {name: fit_and_score(signals, **recipe) for name, recipe in RECIPES.items()}
    laws = {name: score.law for name, score in scores.items()}
    lasso = laws["Lasso, α = 0.01"]
    assert isinstance(lasso, ODEFit)
    first = signals[0]
    return Section(
        "Circles: the linear ODE",
        [
            f"{source} Of {first.values.shape[1]} frequencies {len(first.survivors)} survive (final signal "
            f"above twice the mean): {', '.join(map(str, first.survivors))}. The increment map "
            "x(n+1) - x(n) = A x(n) + b is fitted "
            f"to the {len(first.steps) - 1} consecutive steps up to {last}.",
            "The in-sample figures are those that the paper reports. " + _forward_sentence(scores),
        ],
        [score_table(scores, f"steps 0 to {last}, one run")],
        [
            coefficient_picture(lasso, first.survivors, "Lasso, α = 0.01"),
            rollout_picture(first, laws),
        ],
    )


def _forward_sentence(scores: Mapping[str, HonestScores]) -> str:
    worse = [name for name, score in scores.items() if score.forward and score.forward.rollout < 0]
    if not worse:
        return "Fitted to the first half of the steps alone, the laws also predict the second half."
    return (
        f"They flatter: fitted to the first half of the steps, {' and '.join(worse)} predict"
        f"{'' if len(worse) > 1 else 's'} the second half worse than a constant would (R² below 0)."
    )


def _r2(value: float) -> str:
    if not np.isfinite(value):
        return "-" if np.isnan(value) else "overflow"
    return f"{value:.4f}" if value > -1 else f"{value:.3g}"
