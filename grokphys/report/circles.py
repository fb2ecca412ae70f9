"""Tables, pictures and sentences about laws of motion of Fourier signals, as Ding et al. fitted them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from analysis.circles.signals import OBSERVABLE, Signals, signals_of
from analysis.laws.ode import PUBLISHED, ODEFit, Recipe, fit_batch
from analysis.laws.scores import HonestScores, Law
from analysis.plots.signals import show_coefficients, show_rollouts
from analysis.plots.style import panels
from analysis.stats.intervals import plain
from grokphys.report.page import Picture, Section, Table
from grokphys.report.wording import caption
from physics.trajectory import Trajectory

__all__ = [
    "OBSERVABLE", "RECIPES", "Signals", "coefficient_picture", "fit_and_score", "ode_section",
    "rollout_picture", "score_table", "signals_of",
]  # fmt: skip

RECIPES: dict[str, dict[str, Any]] = {
    "Lasso, α = 0.01": PUBLISHED["lasso"],
    "least squares": PUBLISHED["least-squares"],
}
HEADER = [
    *("fit", "R² in sample: changes", "R² in sample: rollout", "R² forward: changes", "R² forward: rollout"),
    *("R² across runs: changes", "R² across runs: rollout", "survivors found", "nonzero coefficients"),
    "converged fits",
]


def fit_and_score(signals: list[Signals], **recipe: Any) -> HonestScores:
    """Fit one law, linear by default, to all runs; score it in sample, forward in time and across runs.

    Parameters
    ----------
    signals : list of Signals
        Fourier signals of each run.
    **recipe
        Arguments of `analysis.laws.Recipe`, such as ``alpha=0.01``.

    Raises
    ------
    InputError
        If an argument of the recipe is not allowed, there is no run, a signal is not finite, or the runs
        differ in their number of frequencies.
    """
    return fit_batch(signals, Recipe(**recipe))


def score_table(scores: Mapping[str, HonestScores], window: str) -> Table:
    """Return a table of the scores of several fits, with a row for each of them.

    Parameters
    ----------
    scores : mapping of str to HonestScores
        Scores by the name of the fit.
    window : str
        Words for the caption about the steps and runs of the fits, such as "steps 0 to 1000, one run".

    Returns
    -------
    Table
        R² in sample, forward in time and across runs; the Jaccard index of predicted and true survivors; and
        for linear laws the numbers of nonzero coefficients and of converged fits. Columns without any number
        are left out.
    """
    rows = []
    for name, score in scores.items():
        law, inside, later = score.law, score.in_sample, score.forward
        forward = (later.derivative, later.rollout) if later else (np.nan, np.nan)
        others = score.median("derivative"), score.median("rollout")
        survivors = score.mean("survivors")
        counts = ["-", "-"]
        if isinstance(law, ODEFit):
            counts = [f"{np.count_nonzero(law.A)} of {law.A.size}"]
            counts += [f"{int(law.converged.sum())} of {len(law.converged)}"]
        squares = map(_r2, (inside.derivative, inside.rollout, *forward, *others))
        rows.append([name, *squares, "-" if np.isnan(survivors) else f"{survivors:.2f}", *counts])
    filled = [column for column in range(len(HEADER)) if any(row[column] != "-" for row in rows)]
    across = [caption("laws", "across")] if 5 in filled else []
    return Table(
        " ".join([caption("laws", "scores", window=window), *across]),
        [HEADER[k] for k in filled],
        [[row[k] for k in filled] for row in rows],
    )


def coefficient_picture(fit: ODEFit, survivors: list[int], name: str) -> Picture:
    """Return a heat map of the matrix A (K, K) of a linear law, the fit `name`, with marked survivors.

    The frequencies in `survivors` are counted from 1.
    """
    ax = panels(1, 1, 7.2, 6.2)[0, 0]
    what = "Generator" if fit.kind == "generator" else "Increment map"
    show_coefficients(fit.A, ax, marked=survivors, title=f"{what} A, {name}")
    return Picture(
        caption("laws", "coefficients"),
        ax.figure,
    )


def rollout_picture(signals: Signals, laws: Mapping[str, Law]) -> Picture:
    """Return a picture of the measured signals, and of those that laws, by name, predict from the first."""
    return Picture(
        caption("laws", "rollout"),
        show_rollouts(signals, laws)[0, 0].figure,
    )


def ode_section(trajectory: Trajectory, source: str, last: int = 1000) -> Section:
    """Apply the method of Ding et al. to one trajectory: fit, coefficients and rollouts (Figure 9).

    Parameters
    ----------
    trajectory : Trajectory
        Training of a network.
    source : str
        A sentence about the network, which opens the section.
    last : int, default 1000
        Last step of the fit, which begins at step 0.
    """
    signals = signals_of(trajectory, 0, last)
    scores = {name: fit_and_score(signals, **recipe) for name, recipe in RECIPES.items()}
    laws = {name: score.law for name, score in scores.items()}
    lasso, first = laws["Lasso, α = 0.01"], signals[0]
    assert isinstance(lasso, ODEFit)
    return Section(
        "A linear law for circles",
        [
            caption(
                "laws",
                "survivors",
                source=source,
                count=first.values.shape[1],
                survivors=len(first.survivors),
                names=", ".join(map(str, first.survivors)),
            ),
            caption("laws", "fit", steps=len(first.steps) - 1, last=last),
            forward_sentence(scores),
        ],
        [score_table(scores, f"steps 0 to {last}, one run")],
        [coefficient_picture(lasso, first.survivors, "Lasso, α = 0.01"), rollout_picture(first, laws)],
    )


def forward_sentence(scores: Mapping[str, HonestScores]) -> str:
    """Return how well laws predict the steps to which they were fitted, and later steps."""
    parts = [
        f"{name}: R² = {_r2(score.in_sample.rollout, 2)} in sample, {_r2(score.forward.rollout, 2)} forward"
        for name, score in scores.items()
        if score.forward
    ]
    return caption("laws", "forward", scores="; ".join(parts))


def _r2(value: float, digits: int = 4) -> str:
    if not np.isfinite(value):
        return "-" if np.isnan(value) else "overflow"
    if value > 0.999:
        return "> 0.999" if value < 1 else "1"
    if value < -1000:
        return "below -1000"
    return f"{value:.{digits}f}" if value > -1 else plain(value)
