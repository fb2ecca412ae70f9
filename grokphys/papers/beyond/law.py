"""Whether a law fitted to some networks predicts the survivors of others, or later steps of the same ones."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.circles.fourier import trajectory_signals
from analysis.circles.survival import survives
from analysis.laws.nonlinear import MeanFieldRegressor
from analysis.laws.ode import PUBLISHED, fit_trajectories
from analysis.laws.scores import Law, fit_law
from analysis.plots.palette import INK, SERIES
from analysis.plots.style import legend_below, style
from analysis.stats.intervals import CONFIDENCE, Interval
from grokphys.papers.beyond.agreement import agreement as common
from grokphys.papers.beyond.agreement import strongest
from grokphys.papers.ding.figure_09 import fit_networks
from grokphys.papers.ding.training import (
    DECAY,
    LASSO,
    LINEAR,
    PAPER,
    QUICK,
    Fits,
    Size,
    law_of,
    show_intervals,
)
from grokphys.papers.evidence import columns_of, difference, exchanged, joined, mean, share, where
from grokphys.papers.recipe import Measure, Result, Run, Statement, Tables, recipe
from nets.training import train

Array = NDArray[np.float64]
Booleans = NDArray[np.bool_]
FOLDS = 4
STARTS = (0, 20, 50, 100, 200, 300, 400)
WILD = 1e4
"""Largest relative error of a rollout, which one that diverges has."""
MEAN_FIELD, LINEAR_LAW, RANKING = "mean field, nine terms", "linear, Lasso", "ranking by the signal there"
LAWS: dict[str, Callable[[list[Array]], Law]] = {
    MEAN_FIELD: lambda x: fit_law(MeanFieldRegressor(), x),
    LINEAR_LAW: lambda x: fit_trajectories(x, **PUBLISHED["lasso"]),
}
COLUMNS = {MEAN_FIELD: "mean_field", LINEAR_LAW: "linear", RANKING: "ranking"}
OURS = "this project; no paper says it"


@dataclass(frozen=True)
class Across:
    """Setting: laws are fitted to some networks, and then predict the survivors of the others.

    Attributes
    ----------
    size : Size
        Modulus, dimension and number of steps.
    starts : tuple of int
        Steps from which survivors are predicted.
    every : int
        Number of steps from one frame of the fit to the next.
    last : int
        Last step of the fit and of the predictions.
    networks : int
        Number of networks.
    seed : int
        Seed of the ensemble.
    """

    size: Size
    starts: tuple[int, ...]
    every: int
    last: int
    networks: int
    seed: int


def _gain(over: str, start: int) -> Measure:
    def measure(tables: Tables, level: float) -> Interval:
        rows = where(tables["networks"], start=start)
        return mean(rows["mean_field"] - rows[over], level)

    return measure


def _better(name: str, start: int) -> Statement:
    over = COLUMNS[name]
    return Statement(
        f"mean field and {over}, from step {start}",
        f"a mean field tells the survivors better than {name}",
        OURS,
        "agreement on the survivors: that of the mean field minus the other's; by chance 0",
        _gain(over, start),
        chance=exchanged("networks", "mean_field", over),
        least=0.02,
    )


@recipe(
    "ding-law",
    paper="beyond",
    item="one law for many networks",
    shows="Whether a law fitted to some networks predicts the survivors of others.",
    quick=Across(QUICK, (0, 100), 10, 300, 8, 0),
    paper_setting=Across(PAPER, STARTS, 10, 1000, 50, 170_000),
    cost="one to two hours",
    rules=tuple(_better(name, start) for name in (RANKING, LINEAR_LAW) for start in STARTS),
)
def across_networks(run: Run) -> Result:
    """Beyond the papers: predict the survivors of networks that are left out of a fit, by rollouts of a law.

    The table "networks" has a row for each network and step of the prediction, with the agreement on the
    survivors of a mean-field law, of the linear law of Ding et al., and of a ranking by the signal. The rules
    judge whether the mean field agrees better. The figure is "ding-law".
    """
    setting: Across = run.setting
    size = setting.size

    def train_all() -> dict[str, Any]:
        trained = train(
            size.model,
            runs=setting.networks,
            steps=size.steps,
            seed=setting.seed,
            weight_decay=DECAY,
            record=f"{setting.every}:{setting.last},{size.steps}",
            observables=(),
        )
        return {"signals": trajectory_signals(trained)}

    signals = run.keep("networks", train_all)["signals"]
    final, head = survives(signals[:, -1]), signals[:, : setting.last // setting.every + 1]
    parts = []
    for start in setting.starts:
        pieces = head[:, start // setting.every :]
        part = {"start": np.full(len(pieces), start), "network": np.arange(len(pieces))}
        for name, fit in LAWS.items():
            part[COLUMNS[name]], part[f"{COLUMNS[name]}_error"] = _judge(fit, pieces, final)
        parts.append(part | {"ranking": common(strongest(pieces[:, 0], final), final)})
    rows = joined(parts)
    with style(9.8):
        figure = Figure(figsize=(9.8, 3.7))
        left, right = figure.subplots(1, 2)
        for n, (name, column) in enumerate(COLUMNS.items()):
            shown = np.array(setting.starts) + 4.0 * (n - 1)  # so that bars do not hide each other
            own = [where(rows, start=start) for start in setting.starts]
            look: Any = {"label": name, "color": SERIES[n]}
            show_intervals(left, shown, [mean(part[column], CONFIDENCE) for part in own], **look)
            if name in LAWS:
                errors = [mean(part[f"{column}_error"], CONFIDENCE) for part in own]
                show_intervals(right, shown, errors, **look)
        left.set(xlabel="step of the prediction", ylabel="agreement on the survivors", ylim=(0, 1.03))
        left.set_yticks(np.linspace(0, 1, 6))
        left.set_title(f"p = {size.tokens}, d = {size.dim}, {setting.networks} networks, unseen in the fit")
        legend_below(left)
        right.set(xlabel="step of the prediction", ylabel="log₁₀ relative error")
        right.set_title(f"rollouts to step {setting.last}, mean and 95 % interval")
    return Result({"networks": rows}, {"ding-law": figure})


def _judge(fit: Callable[[list[Array]], Law], pieces: Array, final: Booleans) -> tuple[Array, Array]:
    """Predict the survivors of each run by a law that was fitted to the runs of the other folds.

    Parameters
    ----------
    fit : callable
        Function of a list of signals, each of shape (frames, K), that returns a fitted law.
    pieces : ndarray of float64, shape (runs, frames, K)
        Signals of K frequencies from the step of the prediction on.
    final : ndarray of bool, shape (runs, K)
        Whether the circle of each frequency survives in the end.

    Returns
    -------
    pair of ndarray of float64, shape (runs,)
        Agreement of predicted and final survivors, from 0 to 1, and log₁₀ of the relative error of the
        rollout, at most that of `WILD`. A rollout that diverges predicts no survivor.
    """
    agreement, error = np.empty(len(pieces)), np.empty(len(pieces))
    for fold in range(FOLDS):
        left = np.arange(fold, len(pieces), FOLDS)
        law = fit(list(np.delete(pieces, left, axis=0)))
        for run in left:
            path, _ = law.rollout(pieces[run, 0], np.arange(pieces.shape[1]))
            sound = np.isfinite(path).all()
            alive = survives(path[-1]) if sound else np.zeros_like(final[run])
            agreement[run] = common(alive, final[run])
            miss = float(np.linalg.norm(path - pieces[run]) / np.linalg.norm(pieces[run])) if sound else WILD
            error[run] = np.log10(min(miss, WILD))
    return agreement, error


# -- forward in time ----------------------------------------------------------------------------------------


def _fails(law: str) -> Measure:
    def measure(tables: Tables, level: float) -> Interval:
        rows = where(tables["forward"], law=law)
        parts = [share(rows[half] < 0, level) for half in ("later", "early")]
        return replace(difference(*parts), count=len(rows["network"]))

    return measure


def _flatters(law: str) -> Statement:
    return Statement(
        law,
        f"the R² of {law} in sample flatters: half of a network's steps do not tell the other half",
        OURS,
        "share of networks in which the law of the first 500 steps has an R² below 0 on the next 500, "
        "minus the share in which it is below 0 on its own 500; 0 where the halves are exchanged by chance",
        _fails(law),
        chance=exchanged("forward", "early", "later"),
        least=0.75,
        possible=(-1.0, 1.0),
        note="corrected after the run: intervals of shares; before, that of a mean, which had no width",
    )


def _draw_forward(setting: Fits, tables: Tables) -> dict[str, Figure]:
    """Draw R² of the changes in the first and in the second half of the steps, for each network and law."""
    table, half = tables["forward"], setting.steps // 2
    with style(5.6):
        figure = Figure(figsize=(5.6, 3.8))
        ax = figure.subplots()
        for n, name in enumerate((LINEAR, LASSO)):
            mine = where(table, law=name)
            for k, part in enumerate(("early", "later")):
                look: Any = {"color": SERIES[n], "label": name if not k else None, "alpha": 0.5}
                ax.plot(np.full(len(mine[part]), k + 0.1 * n), mine[part], "o", markersize=4, **look)
        ax.set_yscale("symlog", linthresh=1, linscale=1.5)
        worst = np.log10(max(10.0, -float(np.min(table["later"]))))
        powers = [(-(10.0**k), f"$-10^{{{k}}}$") for k in range(1, int(worst) + 1)]
        ax.set_yticks(*zip((1, "1"), (0.5, "0.5"), (0, "0"), (-1, "−1"), *powers, strict=True))
        ax.set(
            xticks=(0, 1), xticklabels=(f"first {half} steps, fitted", f"next {half} steps"), xlim=(-0.5, 1.6)
        )
        ax.axhline(0, color=INK, linewidth=0.8)
        ax.set(
            ylabel="R² of the changes",
            title=f"{len(np.unique(table['network']))} networks, each fitted alone",
        )
        legend_below(ax)
    return {"ding-forward": figure}


@recipe(
    "ding-forward",
    paper="beyond",
    item="the linear law, forward in time",
    shows="How well a linear law fitted to the first half of the training steps predicts the second half.",
    quick=Fits(QUICK.tokens, (QUICK.dim,), 6, 3, steps=150),
    paper_setting=Fits(PAPER.tokens, (PAPER.dim,), 30, 280_000),
    cost="five to fifteen minutes",
    rules=(_flatters(LINEAR), _flatters(LASSO)),
    draw=_draw_forward,
)
def forward(run: Run) -> Result:
    """Beyond the papers: compare R² of the changes in the steps of a fit and in those that follow.

    The signals of embedding MLPs are fitted by least squares and by Lasso. The table "forward" has a row for
    each network and law. The rules judge in how many more networks R² is negative in the second half of the
    steps, to which the law was not fitted, than in the first half.
    """
    _, signals = fit_networks(run)
    half = run.setting.steps // 2
    rows: list[dict[str, Any]] = []
    for network, x in enumerate(signals):
        for name in (LINEAR, LASSO):
            law = law_of(name, x[: half + 1])
            own = {
                part: law.score(s).derivative for part, s in (("early", x[: half + 1]), ("later", x[half:]))
            }
            rows.append({"network": network, "law": name} | own)
    return Result({"forward": columns_of(rows)})
