"""Ding et al., *Survival of the Fittest Representation*: circles of a trajectory and the ODE they obey."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from numpy.typing import NDArray

from analysis import figures
from analysis.fourier import fourier_signals, survives
from analysis.ode import ODEFit, fit_trajectories
from experiments.report import Picture, Section, Table
from physics.errors import InputError
from physics.trajectory import Trajectory

OBSERVABLE = "fourier_signals"
RECIPES: dict[str, dict[str, Any]] = {
    "Lasso, α = 0.01": {"penalty": "lasso", "alpha": 0.01},
    "least squares": {"penalty": None},
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


def signals_of(trajectory: Trajectory, first: int = 0, last: int | None = None) -> list[Signals]:
    """Return the signals of every run between two steps, both included.

    The observable `fourier_signals` is taken where the trajectory holds it (it may be recorded more often
    than the embeddings); else they are computed from the embeddings.
    """
    if OBSERVABLE in trajectory.observables:
        steps = trajectory.clock(OBSERVABLE)[0]
        values = trajectory.observables[OBSERVABLE]
    else:
        steps = trajectory.steps
        values = np.concatenate([fourier_signals(block) for _, block in trajectory.blocks()], axis=1)
    window = (steps >= first) & (steps <= (steps[-1] if last is None else last))
    if np.count_nonzero(window) < 2:
        raise InputError(
            f"steps {first} to {last} must hold at least 2 frames, got {np.count_nonzero(window)} of the "
            f"{len(steps)} between {steps[0]} and {steps[-1]}"
        )
    final = survives(fourier_signals(trajectory.final))
    return [
        Signals(steps[window], run[window].astype(np.float64), [int(k) + 1 for k in np.flatnonzero(alive)])
        for run, alive in zip(values, final, strict=True)
    ]


@dataclass(frozen=True)
class Scores:
    """A fit and its scores, in sample and forward in time.

    `forward` comes from a second fit to the first half of the window, scored on the second half, which it has
    not seen.
    """

    fit: ODEFit
    forward: dict[str, float]


def fit_and_score(signals: list[Signals], **recipe: Any) -> Scores:
    """Fit one linear ODE to all runs, and measure how well it predicts later steps."""
    fit = fit_trajectories([s.values for s in signals], [s.steps for s in signals], **recipe)
    half = [len(s.steps) // 2 for s in signals]
    if min(half) < 2:
        return Scores(fit, {"derivative": np.nan, "rollout": np.nan})
    early = fit_trajectories(
        [s.values[: h + 1] for s, h in zip(signals, half, strict=True)],
        [s.steps[: h + 1] for s, h in zip(signals, half, strict=True)],
        **recipe,
    )
    return Scores(
        fit,
        early.score(
            [s.values[h:] for s, h in zip(signals, half, strict=True)],
            [s.steps[h:] for s, h in zip(signals, half, strict=True)],
        ),
    )


def score_table(scores: dict[str, Scores], window: str) -> Table:
    """Scores of several fits side by side."""
    rows = []
    for name, score in scores.items():
        fit = score.fit
        rows.append(
            [
                name,
                f"{fit.r2_in_sample:.4f}",
                f"{fit.r2_rollout:.4f}",
                _r2(score.forward["derivative"]),
                _r2(score.forward["rollout"]),
                f"{np.count_nonzero(fit.A)} of {fit.A.size}",
                f"{int(fit.regressor.converged_.sum())} of {len(fit.regressor.converged_)}",
            ]
        )
    return Table(
        f"R² of the linear ODE, {window}. In sample is the paper's figure. Forward: fitted to the first "
        "half of the steps, scored on the second half.",
        [
            "fit",
            "in sample, increments",
            "in sample, rollout",
            "forward, increments",
            "forward, rollout",
            "coefficients not 0",
            "targets converged",
        ],
        rows,
    )


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


def rollout_picture(signals: Signals, scores: dict[str, Scores]) -> Picture:
    """Original signals, and those rolled out from the first frame by each fit."""
    with figures.style():
        figure, axes = plt.subplots(
            1, len(scores), figsize=(5.2 * len(scores), 4.0), sharey=True, squeeze=False
        )
    elapsed = signals.steps - signals.steps[0]
    for ax, (name, score) in zip(axes[0], scores.items(), strict=True):
        times = np.arange(len(elapsed)) if score.fit.kind == "increment" else elapsed
        figures.show_signals(
            signals.steps,
            signals.values,
            ax,
            marked=signals.survivors,
            rollout=score.fit.predict(signals.values[0], times),
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
            coefficient_picture(scores["Lasso, α = 0.01"].fit, first.survivors, "Lasso, α = 0.01"),
            rollout_picture(first, scores),
        ],
    )


def _forward_sentence(scores: dict[str, Scores]) -> str:
    worse = [name for name, score in scores.items() if score.forward["rollout"] < 0]
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
