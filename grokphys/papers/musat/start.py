"""Which start of the layers Musat's Table 1 speaks for: the paper does not say how its weights begin."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import special, stats

from analysis.compare.comparison import structures
from analysis.plots.figures import style
from analysis.stats.intervals import Interval, correlation, mean, proportion
from grokphys.output import Budget, save_figure, write_csv
from grokphys.report.musat import PAPER_RUNS, TABLE_1, PaperRow
from nets.architecture import Initialisation
from nets.models import ConstantAttention
from nets.training import train
from physics.trajectory import Trajectory

Array = NDArray[np.float64]
STEPS = 2000
RUNS: dict[Budget, int] = {"quick": 12, "default": 400, "paper": 2000}
DRAWS = 2000
"""Pairs of tables that are simulated for the probability of a distance."""
BLOCK = 2**21
"""Networks that are drawn at a time."""
STARTS: tuple[Initialisation, ...] = ("pytorch", "xavier_uniform", "xavier_normal", "kaiming_uniform")

Row = dict[str, Any]


def starts(out: Path, budget: Budget) -> list[Path]:
    """Musat, Table 1 by the start of the layers: how far all its numbers are from ours."""
    runs = RUNS[budget]
    rows: list[Row] = []
    totals: list[Row] = []
    for start in STARTS:
        model = ConstantAttention(initialisation=start)
        options: dict[str, Any] = {"runs": runs, "steps": STEPS, "record": STEPS}
        ensembles = {decay: train(model, weight_decay=decay, **options) for decay in TABLE_1}
        own = compared(start, ensembles)
        rows += own
        totals.append(total(start, own, ensembles))
    for row in totals:
        print(
            f"  {row['start']}: χ² = {row['chi_square']:.1f} over {row['numbers']} numbers of Table 1, "
            f"p = {row['p_value']:.2g}; {runs} networks for each weight decay, {STEPS} epochs"
        )
    print(
        "  numbers of the same networks depend on each other: p is the part of "
        f"{DRAWS} simulated pairs of tables, each pair of one law, that are as far apart"
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


@dataclass(frozen=True, eq=False)
class Sample:
    """Networks of one weight decay: circles, imperfections and accuracies in %, (..., networks) each."""

    circle: NDArray[np.bool_]
    imperfections: Array
    accuracy: Array

    @staticmethod
    def of(trained: Trajectory) -> "Sample":
        """Of trained networks."""
        found = structures(trained.final)
        accuracy = 100 * trained.observables["validation_accuracy"][:, -1].astype(np.float64)
        return Sample(found.circle, found.imperfections.astype(np.float64), accuracy)


@dataclass(frozen=True, eq=False)
class Numbers:
    """What Table 1 says of some networks, and what errors need; arrays (...), one value a sample.

    Attributes
    ----------
    networks : int
    circles : ndarray
    imperfections, error : ndarray
        Mean of the rest, and its standard error.
    accuracy, variance : ndarray, shape (2, ...)
        Mean accuracy in % of circles and of the rest, and its variance over networks.
    correlation : ndarray
        Of imperfections and accuracy of the rest.
    """

    networks: int
    circles: Array
    imperfections: Array
    error: Array
    accuracy: Array
    variance: Array
    correlation: Array

    @staticmethod
    def of_paper(row: PaperRow) -> "Numbers":
        """Of the paper; it gives no scatter of its accuracies."""
        related = row.correlation.estimate if isinstance(row.correlation, Interval) else row.correlation
        values: tuple[Any, ...] = (
            row.circles,
            row.imperfections.estimate,
            (row.imperfections.high - row.imperfections.low) / (2 * 1.96),
            [row.circle_accuracy, row.rest_accuracy],
            [np.nan, np.nan],
            related,
        )
        return Numbers(PAPER_RUNS, *(np.asarray(value, np.float64) for value in values))

    @staticmethod
    def of(sample: Sample) -> "Numbers":
        """Of samples of networks."""
        rest = ~sample.circle
        count = rest.sum(axis=-1)
        imperfections, scatter = _moments(sample.imperfections, rest)
        (circle, of_circle), (other, of_other) = (
            _moments(sample.accuracy, kind) for kind in (sample.circle, rest)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            half = stats.t.ppf(0.975, np.maximum(count - 1, 1)) * np.sqrt(scatter / count)
            deviations = [
                np.where(rest, values - centre[..., None], 0.0)
                for values, centre in ((sample.imperfections, imperfections), (sample.accuracy, other))
            ]
            together = np.sum(deviations[0] * deviations[1], axis=-1) / (count - 1)
            related = together / np.sqrt(scatter * of_other)
        return Numbers(
            sample.circle.shape[-1],
            sample.circle.sum(axis=-1).astype(np.float64),
            imperfections,
            half / 1.96,
            np.stack([circle, other]),
            np.stack([of_circle, of_other]),
            np.clip(related, -1.0, 1.0),
        )


def _moments(values: Array, chosen: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Mean and variance (...) of the chosen of values (..., n); NaN of too few."""
    count = chosen.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = np.where(chosen, values, 0.0).sum(axis=-1) / count
        squares = np.where(chosen, (values - centre[..., None]) ** 2, 0.0).sum(axis=-1)
        return centre, np.where(count > 1, squares / (count - 1), np.nan)


def compared(start: str, ensembles: Mapping[float, Trajectory]) -> list[Row]:
    """Each number of Table 1, ours with its interval, and the square of their distance in standard errors."""
    rows = []
    for decay, trained in ensembles.items():
        found, sample = structures(trained.final), Sample.of(trained)
        rest = ~found.circle
        own = {
            "circles": found.circles,
            "grid imperfections": found.grid_imperfections,
            "accuracy of circles": mean(sample.accuracy[found.circle]),
            "accuracy of the rest": mean(sample.accuracy[rest]),
            "correlation": correlation(found.imperfections[rest], sample.accuracy[rest]),
        }
        squares = distances(Numbers.of_paper(TABLE_1[decay]), Numbers.of(sample))
        rows += [
            {"start": start, "weight_decay": decay, "quantity": name, "networks": trained.runs}
            | {"here": ours.estimate, "here_low": ours.low, "here_high": ours.high, "count": ours.count}
            | {"chi_square": float(squares[name])}
            for name, ours in own.items()
        ]
    return rows


def distances(paper: Numbers, ours: Numbers) -> dict[str, Array]:
    """Squared distance (...) of the paper's numbers from ours in standard errors of both.

    Circles: likelihood ratio of two binomials. Imperfections: the paper's own interval. Accuracies, for which
    it gives none: our scatter at the paper's number of networks. Correlations: Fisher's z. NaN where a number
    is absent, or can say nothing: no circles here and none there, which no start of the layers could miss.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        circles = np.broadcast_arrays(paper.circles, ours.circles)
        rest = np.broadcast_arrays(paper.networks - paper.circles, ours.networks - ours.circles)
        table = np.stack([np.stack(circles), np.stack(rest)])  # by kind, the paper's and ours
        both = table.sum(axis=1, keepdims=True)
        expected = both * table.sum(axis=0, keepdims=True) / table.sum(axis=(0, 1), keepdims=True)
        ratio = 2 * special.xlogy(table, table / np.where(expected > 0, expected, 1.0)).sum(axis=(0, 1))
        imperfect = (ours.imperfections - paper.imperfections) ** 2 / (ours.error**2 + paper.error**2)
        scatter = ours.variance * (1 / table[:, 0] + 1 / table[:, 1])
        accurate = (ours.accuracy - paper.accuracy) ** 2 / scatter
        few = np.minimum(*table[1]) <= 3
        turned = (np.arctanh(ours.correlation) - np.arctanh(paper.correlation)) ** 2
        related = turned / (1 / (table[1, 0] - 3) + 1 / (table[1, 1] - 3))
    found = {
        "circles": np.where((both > 0).all(axis=(0, 1)), ratio, np.nan),
        "grid imperfections": imperfect,
        "accuracy of circles": accurate[0],
        "accuracy of the rest": accurate[1],
        "correlation": np.where(few, np.nan, related),
    }
    return {name: np.where(np.isfinite(value), value, np.nan) for name, value in found.items()}


def total(start: str, rows: list[Row], ensembles: Mapping[float, Trajectory], *, seed: int = 0) -> Row:
    """Sum of the squares of one start, and the probability of a larger one where both tables have one law.

    The numbers of one row come from the same networks and depend on each other, so that their sum has no χ²
    distribution: it is simulated. Both tables are drawn from our networks again and again, with the rate of
    circles that the paper's networks and ours have together.
    """
    squares = np.array([row["chi_square"] for row in rows if row["start"] == start])
    generator = np.random.default_rng(seed)
    chance = np.zeros(DRAWS)
    for decay, trained in ensembles.items():
        sample = Sample.of(trained)
        rate = (TABLE_1[decay].circles + sample.circle.sum()) / (PAPER_RUNS + trained.runs)
        each = max(BLOCK // (PAPER_RUNS + trained.runs), 1)
        for first in range(0, DRAWS, each):
            count = min(each, DRAWS - first)
            drawn = (
                Numbers.of(_drawn(sample, rate, (count, networks), generator))
                for networks in (PAPER_RUNS, trained.runs)
            )
            chance[first : first + count] += np.nansum(list(distances(*drawn).values()), axis=0)
    seen = float(np.nansum(squares))
    return {
        "start": start,
        "chi_square": seen,
        "numbers": int(np.isfinite(squares).sum()),
        "chance_95": float(np.quantile(chance, 0.95)),
        "p_value": float((1 + np.count_nonzero(chance >= seen)) / (1 + DRAWS)),
    }


def _drawn(sample: Sample, rate: float, shape: tuple[int, int], generator: np.random.Generator) -> Sample:
    """Draw tables (tables, networks) from networks; of a kind that we have none of, no accuracy is known."""
    circle = generator.uniform(size=shape) < rate
    imperfections, accuracy = np.full(shape, np.nan), np.full(shape, np.nan)
    for kind in (True, False):
        members, here = np.flatnonzero(sample.circle == kind), circle == kind
        if len(members):
            chosen = generator.choice(members, size=int(here.sum()))
            imperfections[here], accuracy[here] = sample.imperfections[chosen], sample.accuracy[chosen]
    return Sample(circle, imperfections, accuracy)


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
    """Draw χ² of all numbers of Table 1 for each start, and what chance stays below in 95 % of the cases."""
    ax = Figure().subplots() if ax is None else ax
    names = [row["start"] for row in totals]
    ax.barh(names, [row["chi_square"] for row in totals], height=0.55)
    for y, row in enumerate(totals):
        place = (row["chi_square"], y)
        ax.annotate(
            f"p = {row['p_value']:.2g}", place, xytext=(4, 0), textcoords="offset points", va="center"
        )
    bounds = [row["chance_95"] for row in totals]
    ax.plot(bounds, range(len(totals)), "|", color="#d1603d", markersize=26, label="95 % of chance below")
    ax.set(xlabel="χ² of the numbers of Table 1", title="Distance of Table 1 from our networks")
    ax.set(xlim=(0, 1.25 * ax.get_xlim()[1]), ylim=(len(totals) - 0.4, -1))
    ax.legend(loc="upper right")
    return ax
