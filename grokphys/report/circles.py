"""Tables, pictures and sentences about laws of motion of Fourier signals, as Ding et al. fitted them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from analysis.circles.signals import OBSERVABLE, Signals, signals_of
from analysis.laws.batch import Recipe, fit_batch
from analysis.laws.honest import HonestScores
from analysis.laws.ode import PUBLISHED, ODEFit
from analysis.laws.scores import Law
from analysis.plots.signals import show_coefficients, show_rollouts
from analysis.plots.style import panels
from analysis.stats.intervals import plain
from grokphys.report.page import Picture, Section, Table
from physics.trajectory import Trajectory

__all__ = [
    "OBSERVABLE", "RECIPES", "Signals", "coefficient_picture", "fit_and_score", "ode_section",
    "rollout_picture", "score_table", "signals_of",
]  # fmt: skip

RECIPES: dict[str, dict[str, Any]] = {
    "Lasso, α = 0.01": PUBLISHED["lasso"],
    "least squares": PUBLISHED["least-squares"],
}


def fit_and_score(signals: list[Signals], **recipe: Any) -> HonestScores:
    """Fit one law, linear by default, to all runs; score it in sample, forward in time and across runs.

    Parameters
    ----------
    signals : list of Signals
        Fourier signals of each run.
    **recipe
        Arguments of `analysis.laws.Recipe`, such as ``alpha=0.01``.

    Returns
    -------
    HonestScores
        The fitted law and its scores.

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
        R² in sample, forward in time and across runs; the share of survivors found; and for linear laws the
        numbers of nonzero coefficients and of converged fits. Columns without any number are left out.
    """
    rows = []
    for name, score in scores.items():
        law = score.law
        inside, forward = score.in_sample, score.forward
        sparse = converged = "-"
        if isinstance(law, ODEFit):
            sparse = f"{np.count_nonzero(law.A)} of {law.A.size}"
            converged = f"{int(law.converged.sum())} of {len(law.converged)}"
        later = (forward.derivative, forward.rollout) if forward else (np.nan, np.nan)
        others = score.median("derivative"), score.median("rollout")
        found = score.mean("survivors")
        shown = "-" if np.isnan(found) else f"{found:.2f}"
        scored = map(_r2, (inside.derivative, inside.rollout, *later, *others))
        rows.append([name, *scored, shown, sparse, converged])
    header = ["fit", "R² in sample: changes", "R² in sample: rollout", "R² forward: changes"]
    header += ["R² forward: rollout", "R² across runs: changes", "R² across runs: rollout"]
    header += ["survivors found", "nonzero coefficients", "converged fits"]
    caption = (
        f"How well the law predicts the signals, {window}. Changes are predicted from frame to frame, "
        "rollouts "
        "from the first frame alone. In sample: scored on the steps of the fit, as in the paper. Forward: "
        "fitted to "
        "the first half of the steps and scored on the second half."
    )
    if any(row[5] != "-" for row in rows):
        caption += (
            " Across runs: fitted to all other runs, median. Survivors found: of the circles that survive "
            "in the run or in the rollout, the share that survives in both."
        )
    kept = [column for column in range(len(header)) if any(row[column] != "-" for row in rows)]
    return Table(caption, [header[k] for k in kept], [[row[k] for k in kept] for row in rows])


def coefficient_picture(fit: ODEFit, survivors: list[int], name: str) -> Picture:
    """Return a picture of the matrix A of a linear law, as a heat map.

    Parameters
    ----------
    fit : ODEFit
        The law, with a matrix of the shape (K, K) for K frequencies.
    survivors : list of int
        Frequencies that survive, counted from 1, which are marked.
    name : str
        Name of the fit, for the title.

    Returns
    -------
    Picture
        The heat map with its caption.
    """
    ax = panels(1, 1, 7.2, 6.2)[0, 0]
    what = "Generator" if fit.kind == "generator" else "Increment map"
    show_coefficients(fit.A, ax, marked=survivors, title=f"{what} A, {name}")
    return Picture(
        "Effect of the Fourier signal of one frequency (column) on that of another (row): red raises it "
        "(collaboration), blue lowers it (competition). Frequencies that survive are in bold.",
        ax.figure,
    )


def rollout_picture(signals: Signals, laws: Mapping[str, Law]) -> Picture:
    """Return a picture of the measured signals, and of those that laws predict from the first frame.

    Parameters
    ----------
    signals : Signals
        Measured signals of one run.
    laws : mapping of str to Law
        Laws by name. Each law has one panel.

    Returns
    -------
    Picture
        The curves with their caption.
    """
    figure = show_rollouts(signals, laws)[0, 0].figure
    return Picture(
        "Measured Fourier signals (pale lines), and those that each law predicts from the first frame alone "
        "(dashed, in the color of the signal that they predict).",
        figure,
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

    Returns
    -------
    Section
        Text, the table of scores, and pictures of the coefficients and the predicted signals.
    """
    signals = signals_of(trajectory, 0, last)
    scores = {name: fit_and_score(signals, **recipe) for name, recipe in RECIPES.items()}
    laws = {name: score.law for name, score in scores.items()}
    lasso = laws["Lasso, α = 0.01"]
    assert isinstance(lasso, ODEFit)
    first = signals[0]
    return Section(
        "A linear law for circles",
        [
            f"{source} Of {first.values.shape[1]} frequencies, {len(first.survivors)} survive: "
            f"{', '.join(map(str, first.survivors))}. A frequency survives if its final signal is above "
            "twice the "
            "mean of all.",
            "The linear law x(n+1) - x(n) = A x(n) + b is fitted "
            f"to the {len(first.steps) - 1} consecutive steps up to step {last}.",
            forward_sentence(scores, len(first.steps)),
        ],
        [score_table(scores, f"steps 0 to {last}, one run")],
        [
            coefficient_picture(lasso, first.survivors, "Lasso, α = 0.01"),
            rollout_picture(first, laws),
        ],
    )


def forward_sentence(scores: Mapping[str, HonestScores], frames: int) -> str:
    """Say in one or two sentences whether laws predict steps to which they were not fitted.

    A law fails if its R² over the second half of the steps, when fitted to the first half, is negative: a
    constant would then predict better.

    Parameters
    ----------
    scores : mapping of str to HonestScores
        Scores by the name of the fit.
    frames : int
        Number of frames of the fit.

    Returns
    -------
    str
        The text.
    """
    worse = [name for name, score in scores.items() if score.forward and score.forward.rollout < 0]
    if not worse:
        return "Fitted to the first half of the steps, the linear law also predicts the second half."
    fit = min(scores[name].in_sample.rollout for name in worse)
    describes = "describes" if fit > 0.9 else "describes only in part"
    which = f", fitted by {' and '.join(map(_in_words, worse))}," if len(worse) < len(scores) else ""
    return (
        f"A linear law{which} {describes} the steps to which it was fitted (R² = {_r2(fit, 2)}). "
        f"Fitted to the first half of them, it does not predict the next {frames // 2}: a constant would do "
        "better."
    )


def _in_words(name: str) -> str:
    """Return the name of a fit for a sentence: "Lasso, α = 0.01" becomes "the Lasso (α = 0.01)"."""
    kind, comma, setting = name.partition(", ")
    return f"the {kind} ({setting})" if comma else name


def _r2(value: float, digits: int = 4) -> str:
    if not np.isfinite(value):
        return "-" if np.isnan(value) else "overflow"
    if value > 0.999:
        return "> 0.999" if value < 1 else "1"
    if value < -1000:
        return "below -1000"
    return f"{value:.{digits}f}" if value > -1 else plain(value)
