"""Tables, pictures and sentences about laws of motion of Fourier signals, as Ding et al. fitted them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from analysis.circles.survival import circles_of
from analysis.laws.ode import ODEFit, Recipe, fit_batch
from analysis.laws.scores import HonestScores, Law
from analysis.plots.signals import show_coefficients, show_rollouts
from analysis.plots.style import panels
from analysis.stats.intervals import plain
from grokphys.explorer.runs.circles import RECIPES
from grokphys.report.page import Section, Table, document
from physics.trajectory import Trajectory


def score_table(scores: Mapping[str, HonestScores], window: str) -> Table:
    """Return a table of the scores of several fits, with a row for each of them.

    Parameters
    ----------
    scores : mapping of str to HonestScores
        Scores by the name of the fit; all laws are linear, or none is.
    window : str
        Words for the caption about the steps and runs of the fits, such as "steps 0 to 1000, one run".

    Returns
    -------
    Table
        R² in sample, forward in time and across runs; the Jaccard index of predicted and true survivors; and
        for linear laws the numbers of nonzero coefficients and of converged fits. What no fit has is left
        out.
    """
    linear = all(isinstance(score.law, ODEFit) for score in scores.values())
    return document("scores.txt", scores=scores, window=window, linear=linear, r2=r2)[0].tables[0]


def law_figures(law: Law, circles: Any, name: str, laws: Mapping[str, Law]) -> dict[str, Figure]:
    """Return pictures of a law that is called `name`: the "rollout" of `laws`, and its "coefficients".

    `circles` are those of one run. Only a linear law has coefficients A (K, K), which are shown as a heat map
    with the survivors in bold.
    """
    figures = {"rollout": show_rollouts(circles, laws)[0, 0].figure}
    if isinstance(law, ODEFit):
        ax = panels(1, 1, 7.2, 6.2)[0, 0]
        what = "Generator" if law.kind == "generator" else "Increment map"
        show_coefficients(law.A, ax, marked=survivors(circles), title=f"{what} A, {name}")
        figures["coefficients"] = ax.figure
    return figures


def law_report(trajectory: Trajectory, last: int = 1000) -> list[Section]:
    """Apply the method of Ding et al. to a training up to a step: fit, coefficients, rollouts (Figure 9).

    The first section holds the conclusion.
    """
    circles = circles_of(trajectory, 0, last).isel(run=0)
    scores = {name: fit_batch(circles.signals, Recipe(**recipe)) for name, recipe in RECIPES.items()}
    laws = {name: score.law for name, score in scores.items()}
    name, law = next(iter(laws.items()))
    return document(
        "laws.txt", law_figures(law, circles, name, laws), circles=circles, survivors=survivors, last=last,
        scores=scores, window=f"steps 0 to {last}, one run", linear=True, r2=r2,
    )  # fmt: skip


def survivors(circles: Any) -> list[int]:
    """Return the frequencies of the circles of one run that survive."""
    return list(circles.frequency.values[circles.survived.values].tolist())


def r2(value: float, digits: int = 4) -> str:
    """Return R² as text, or only a bound where the number says no more: "> 0.999" or "below -1000"."""
    if not np.isfinite(value):
        return "-" if np.isnan(value) else "overflow"
    if value > 0.999:
        return "> 0.999" if value < 1 else "1"
    if value < -1000:
        return "below -1000"
    return f"{value:.{digits}f}" if value > -1 else plain(value)
