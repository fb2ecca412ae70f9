"""Does one law, fitted to some runs, tell which circles survive in others? Beyond Ding et al., §4.2."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.circles.fourier import survives, trajectory_signals
from analysis.laws.nonlinear import MeanFieldRegressor
from analysis.laws.ode import fit_trajectories
from analysis.laws.scores import Law, fit_law
from analysis.plots.figures import style
from analysis.stats.intervals import Interval, mean
from grokphys.output import Budget, save_figure, write_csv
from grokphys.papers.ding.training import DECAY, SIZES, columns, show_intervals
from grokphys.report import circles as ding
from nets.training import train

Array = NDArray[np.float64]
Booleans = NDArray[np.bool_]
Row = dict[str, Any]
RUNS: dict[Budget, int] = {"quick": 12, "default": 20, "paper": 50}
FOLDS = 4
LAST = 1000
EVERY = 10
STARTS = (0, 20, 50, 100, 200, 300, 400)
WILD = 1e4
"""Relative error that a rollout counts for where it blows up."""
MEAN_FIELD = "mean field, nine terms"
LAWS: dict[str, Callable[[list[Array]], Law]] = {
    MEAN_FIELD: lambda x: fit_law(MeanFieldRegressor(), x),
    "linear, Lasso": lambda x: fit_trajectories(x, **ding.RECIPES["Lasso, α = 0.01"]),
}
RANKING = "ranking by the signal there"


def across_runs(out: Path, budget: Budget) -> list[Path]:
    """Not in the paper: survivors of unseen runs by rollouts of one law, from different steps on."""
    size, runs = SIZES[budget], RUNS[budget]
    trained = train(
        size.model,
        runs=runs,
        steps=size.steps,
        weight_decay=DECAY,
        record=f"{EVERY}:{LAST},{size.steps}",
        observables=(),
    )
    signals = trajectory_signals(trained)
    final = survives(signals[:, -1])
    head = signals[:, : LAST // EVERY + 1]
    rows: list[Row] = []
    agreed: dict[str, list[Interval]] = {}
    errors: dict[str, list[Interval]] = {}
    gains: list[Interval] = []
    for start in STARTS:
        pieces = head[:, start // EVERY :]
        ranked = _rank(pieces[:, 0], final)
        for name, fit in LAWS.items():
            judged = _judge(fit, pieces, final)
            agreed.setdefault(name, []).append(mean(judged[0]))
            errors.setdefault(name, []).append(mean(judged[1]))
            if name == MEAN_FIELD:
                gains.append(mean(judged[0] - ranked))
        agreed.setdefault(RANKING, []).append(mean(ranked))
        rows += [
            {"start": start, "predictor": name}
            | columns("survivors_agree", values[-1])
            | (columns("log10_error", errors[name][-1]) if name in errors else {})
            for name, values in agreed.items()
        ]
    with style():
        figure = Figure(figsize=(9.8, 3.7))
        left, right = figure.subplots(1, 2)
        for n, (name, values) in enumerate(agreed.items()):
            shown = np.array(STARTS) + 4.0 * (n - 1)  # so that bars do not hide each other
            show_intervals(left, shown, values, label=name, color=f"C{n}", linestyle="-" if n < 2 else ":")
            if name in errors:
                show_intervals(right, shown, errors[name], label=name, color=f"C{n}")
        left.set(xlabel="step from which it predicts", ylabel="agreement on the survivors", ylim=(0, 1.4))
        left.set_yticks(np.linspace(0, 1, 6))
        left.set_title(f"p = {size.tokens}, d = {size.dim}, {runs} runs, unseen in the fit")
        left.legend(loc="upper left")
        right.set(xlabel="step from which it predicts", ylabel=f"log₁₀ relative error to step {LAST}")
        right.set_title("rollouts, mean and 95 % interval")
        picture = save_figure(figure, out / "ding-law.png")
    print(
        f"  {size}; {runs} runs, {FOLDS} folds; rollouts to step {LAST}, survivors as of step {size.steps}\n"
        "  agreement: of the circles that survive by either, the part that do by both"
    )
    for k, start in enumerate(STARTS):
        text = "; ".join(f"{name} {values[k].format(2)}" for name, values in agreed.items())
        print(f"  from step {start}: {text}; mean field above ranking by {gains[k].format(2)}")
    return [write_csv(out / "ding-law.csv", rows), picture]


def _judge(fit: Callable[[list[Array]], Law], pieces: Array, final: Booleans) -> tuple[Array, Array]:
    """Agreement and log₁₀ relative error (runs,), each run by a law fitted to the other folds."""
    agreement, error = np.empty(len(pieces)), np.empty(len(pieces))
    for fold in range(FOLDS):
        left = np.arange(fold, len(pieces), FOLDS)
        law = fit(list(np.delete(pieces, left, axis=0)))
        for run in left:
            path, _ = law.rollout(pieces[run, 0], np.arange(pieces.shape[1]))
            sound = np.isfinite(path).all()
            alive = survives(path[-1]) if sound else np.zeros_like(final[run])
            agreement[run] = _agreement(alive, final[run])
            miss = float(np.linalg.norm(path - pieces[run]) / np.linalg.norm(pieces[run])) if sound else WILD
            error[run] = np.log10(min(miss, WILD))
    return agreement, error


def _rank(start: Array, final: Booleans) -> Array:
    """Agreement where the strongest circles are called survivors, as many as other runs have on average."""
    counts = final.sum(axis=1)
    found = []
    for run, signals in enumerate(start):
        others = round(float(np.delete(counts, run).mean()))
        alive = np.zeros_like(final[run])
        alive[np.argsort(-signals)[:others]] = True
        found.append(_agreement(alive, final[run]))
    return np.array(found)


def _agreement(first: Booleans, second: Booleans) -> float:
    return float((first & second).sum() / max((first | second).sum(), 1))
