"""Which start of the layers Musat's Table 1 speaks for: the paper does not say how its weights begin."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import stats

from analysis.comparison import Structures, structures
from analysis.figures import style
from analysis.statistics import correlation, mean, proportion
from experiments.musat import PAPER_RUNS, TABLE_1, PaperRow
from experiments.output import Budget, save_figure, write_csv
from nets.architecture import Initialisation
from nets.models import ConstantAttention
from nets.train import train
from physics.trajectory import Trajectory

STEPS = 2000
RUNS: dict[Budget, int] = {"quick": 12, "default": 400, "paper": 2000}
STARTS: tuple[Initialisation, ...] = ("pytorch", "xavier_uniform", "xavier_normal", "kaiming_uniform")

Row = dict[str, Any]


def starts(out: Path, budget: Budget) -> list[Path]:
    """Musat, Table 1 by the start of the layers: how far all its numbers are from ours."""
    runs = RUNS[budget]
    rows = [
        row
        for start in STARTS
        for row in compared(
            start,
            {
                decay: train(
                    ConstantAttention(initialisation=start),
                    runs=runs,
                    steps=STEPS,
                    weight_decay=decay,
                    record=STEPS,
                )
                for decay in TABLE_1
            },
        )
    ]
    totals = [total(start, rows) for start in STARTS]
    for row in totals:
        print(
            f"  {row['start']}: χ² = {row['chi_square']:.1f} over {row['numbers']} numbers of Table 1, "
            f"p = {row['p_value']:.2g}; {runs} networks for each weight decay, {STEPS} epochs"
        )
    with style():
        figure = Figure(figsize=(10.2, 3.8))
        left, right = figure.subplots(1, 2)
        show_circles(rows, left)
        show_totals(totals, right)
        picture = save_figure(figure, out / "musat-start.png")
    return [
        write_csv(out / "musat-start.csv", rows),
        write_csv(out / "musat-start-totals.csv", totals),
        picture,
    ]


def compared(start: str, ensembles: Mapping[float, Trajectory]) -> list[Row]:
    """Each number of Table 1, ours with its interval, and the square of their distance in standard errors."""
    rows = []
    for decay, trained in ensembles.items():
        found = structures(trained.final)
        accuracy = 100 * trained.observables["validation_accuracy"][:, -1]
        paper = TABLE_1[decay]
        own = {
            "circles": found.circles,
            "grid imperfections": found.grid_imperfections,
            "accuracy of circles": mean(accuracy[found.circle]),
            "accuracy of the rest": mean(accuracy[~found.circle]),
            "correlation": correlation(found.imperfections[~found.circle], accuracy[~found.circle]),
        }
        squares = distances(paper, found, accuracy)
        rows += [
            {"start": start, "weight_decay": decay, "quantity": name, "networks": trained.runs}
            | {"here": ours.estimate, "here_low": ours.low, "here_high": ours.high, "count": ours.count}
            | {"chi_square": squares[name]}
            for name, ours in own.items()
        ]
    return rows


def distances(paper: PaperRow, found: Structures, accuracy: NDArray[np.float64]) -> dict[str, float]:
    """Squared distance of the paper's numbers from ours in standard errors of both, NaN where one is absent.

    Circles: likelihood ratio of two binomials. Imperfections: the paper's own interval. Accuracies, for which
    it gives none: our scatter at the paper's number of networks. Correlations: Fisher's z.
    """
    count, circles = len(found.circle), int(found.circle.sum())
    rest = PAPER_RUNS - paper.circles
    table = np.array([[paper.circles, rest], [circles, count - circles]])
    both = table.sum(axis=0).all()
    ratio = stats.chi2_contingency(table, correction=False, lambda_="log-likelihood") if both else None
    ours = found.grid_imperfections
    error = np.hypot(_error(ours.low, ours.high), _error(paper.imperfections.low, paper.imperfections.high))
    related = correlation(found.imperfections[~found.circle], accuracy[~found.circle]).estimate
    theirs = paper.correlation if isinstance(paper.correlation, float) else paper.correlation.estimate
    return {
        "circles": float(ratio.statistic) if ratio is not None else 0.0,
        "grid imperfections": float(((ours.estimate - paper.imperfections.estimate) / error) ** 2),
        "accuracy of circles": _accuracy(paper.circle_accuracy, paper.circles, accuracy[found.circle]),
        "accuracy of the rest": _accuracy(paper.rest_accuracy, rest, accuracy[~found.circle]),
        "correlation": _correlation(theirs, rest, related, count - circles),
    }


def _error(low: float, high: float) -> float:
    return (high - low) / (2 * 1.96)


def _correlation(paper: float, count: int, ours: float, our_count: int) -> float:
    if min(count, our_count) <= 3:
        return float("nan")
    return float((np.arctanh(ours) - np.arctanh(paper)) ** 2 / (1 / (our_count - 3) + 1 / (count - 3)))


def _accuracy(paper: float, count: int, ours: NDArray[np.float64]) -> float:
    if len(ours) < 2 or not ours.var() or not count or not np.isfinite(paper):
        return float("nan")
    return float((ours.mean() - paper) ** 2 / (ours.var(ddof=1) * (1 / count + 1 / len(ours))))


def total(start: str, rows: list[Row]) -> Row:
    """Sum of the squares of one start, and the probability of a larger one by chance (approximate)."""
    squares = np.array([row["chi_square"] for row in rows if row["start"] == start])
    squares = squares[np.isfinite(squares)]
    return {
        "start": start,
        "chi_square": float(squares.sum()),
        "numbers": len(squares),
        "p_value": float(stats.chi2.sf(squares.sum(), len(squares))),
    }


def show_circles(rows: list[Row], ax: Axes | None = None) -> Axes:
    """Draw the fraction of circles over weight decay, by the start of the layers, and the paper's."""
    ax = Figure().subplots() if ax is None else ax
    paper = [proportion(row.circles, PAPER_RUNS) for row in TABLE_1.values()]
    names = list(dict.fromkeys(row["start"] for row in rows))
    series = {"paper": [(i.estimate, i.low, i.high) for i in paper]} | {
        name: [
            (row["here"], row["here_low"], row["here_high"])
            for row in rows
            if row["start"] == name and row["quantity"] == "circles"
        ]
        for name in names
    }
    for k, (name, values) in enumerate(series.items()):
        middle, low, high = 100 * np.array(values).T
        x = np.array(list(TABLE_1)) + 0.014 * (k - len(series) / 2)
        error = np.clip([middle - low, high - middle], 0, None)
        look: dict[str, Any] = {"color": "#888888", "marker": "D"} if name == "paper" else {"marker": "o"}
        ax.errorbar(x, middle, error, linestyle="none", markersize=4.5, capsize=2, label=name, **look)
    ax.set(xlabel="weight decay", ylabel="circles, %", title="Circles of Table 1 by the start of the layers")
    ax.set_xticks(list(TABLE_1))
    ax.legend(loc="upper left")
    return ax


def show_totals(totals: list[Row], ax: Axes | None = None) -> Axes:
    """Draw χ² of all numbers of Table 1 for each start, beside what chance gives in 95 % of the cases."""
    ax = Figure().subplots() if ax is None else ax
    names = [row["start"] for row in totals]
    ax.barh(names, [row["chi_square"] for row in totals], height=0.55)
    for y, row in enumerate(totals):
        place = (row["chi_square"], y)
        ax.annotate(
            f"p = {row['p_value']:.2g}", place, xytext=(4, 0), textcoords="offset points", va="center"
        )
    bound = float(stats.chi2.ppf(0.95, max(row["numbers"] for row in totals)))
    ax.axvline(bound, color="#d1603d", linestyle="--", linewidth=1, label="95 % of chance below")
    ax.set(xlabel="χ² of the numbers of Table 1", title="Distance of Table 1 from our networks")
    ax.set(xlim=(0, 1.25 * ax.get_xlim()[1]), ylim=(len(totals) - 0.4, -1))
    ax.legend(loc="upper right")
    return ax
