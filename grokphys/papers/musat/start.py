"""Which initialization of the layers reproduces Musat's Table 1; the paper does not state the one it uses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import special, stats

from analysis.plots.palette import REFERENCE, SECOND
from analysis.plots.style import legend_below, style
from analysis.stats.intervals import Interval, proportion
from grokphys.papers.counters.builders import instead
from grokphys.papers.evidence import Chance, columns_of, jackknife, joined, where
from grokphys.papers.musat.ensembles import EPOCHS, networks, table_of
from grokphys.papers.recipe import Columns, Result, Run, Statement, Tables, recipe
from grokphys.report.musat import PAPER_RUNS, TABLE_1, PaperRow
from nets.architecture import Initialisation
from nets.models import ConstantAttention

Array = NDArray[np.float64]
DRAWS = 2000
"""Number of pairs of tables that are simulated for the distribution of a distance by chance."""
BLOCK = 2**21
"""About the largest number of networks that are drawn at a time, which limits the memory."""
STARTS: tuple[Initialisation, ...] = ("pytorch", "xavier_uniform", "xavier_normal", "kaiming_uniform")
BLOCKS = 20
"""Number of parts into which the jackknife divides networks, to leave out one after the other."""


@dataclass(frozen=True)
class Setting:
    """Setting: `runs` networks of each of the initializations `starts` and of each weight decay.

    Each network is trained for `epochs` steps.
    """

    starts: Sequence[Initialisation]
    runs: int
    epochs: int


@dataclass(frozen=True, eq=False)
class Sample:
    """Networks of one weight decay, or many samples of them, as arrays (..., networks).

    The arrays hold whether the embedding is a `circle`, its grid `imperfections`, and the validation
    `accuracy` in %.
    """

    circle: NDArray[np.bool_]
    imperfections: Array
    accuracy: Array

    @staticmethod
    def of(table: Columns) -> "Sample":
        """Return the networks of a table, whose columns have the names of the attributes, as a sample."""
        return Sample(
            np.asarray(table["circle"], bool),
            np.asarray(table["imperfections"], np.float64),
            np.asarray(table["accuracy"], np.float64),
        )


@dataclass(frozen=True, eq=False)
class Numbers:
    """The numbers of a row of Table 1, for the paper or as arrays (...) for samples of our networks.

    Attributes
    ----------
    networks : int
        Number of networks in a sample.
    circles : ndarray, shape (...)
        Number of circles.
    imperfections, error : ndarray, shape (...)
        Mean imperfections of the networks without a circle, and half the width of its 95 % interval divided
        by 1.96.
    accuracy, variance : ndarray, shape (2, ...)
        Mean and variance of the accuracy in % over the networks with a circle, and over those without.
    correlation : ndarray, shape (...)
        Pearson correlation of imperfections and accuracy among the networks without a circle.
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
        """Return the numbers of a row of the paper's Table 1, which has no variances: they are NaN."""
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
        """Return the numbers of Table 1 for a sample of networks, or for many samples at once."""
        rest = ~sample.circle
        count = rest.sum(axis=-1)
        imperfections, scatter = _moments(sample.imperfections, rest)
        (circle, of_circle), (other, of_other) = (
            _moments(sample.accuracy, kind) for kind in (sample.circle, rest)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            half = stats.t.ppf(0.975, np.maximum(count - 1, 1)) * np.sqrt(scatter / count)
            deviations = [
                np.where(rest, values - center[..., None], 0.0)
                for values, center in ((sample.imperfections, imperfections), (sample.accuracy, other))
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
    """Return mean and variance, (...) each, of values (..., n) where `chosen` (..., n) is True.

    The mean is NaN if no value is chosen, and the variance is NaN if fewer than two are.
    """
    count = chosen.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        center = np.where(chosen, values, 0.0).sum(axis=-1) / count
        squares = np.where(chosen, (values - center[..., None]) ** 2, 0.0).sum(axis=-1)
        return center, np.where(count > 1, squares / (count - 1), np.nan)


def distances(paper: Numbers, ours: Numbers) -> dict[str, Array]:
    """Return the squared distance of each number of Table 1 from ours, in units of its squared error.

    Circles are compared by the likelihood ratio of two binomials, imperfections by both standard errors, and
    correlations on the scale of Fisher's z. The paper states no error of its accuracies, so these are
    compared by the variance over our networks. A distance is NaN if one of the numbers is absent, and that of
    circles also if neither table has a circle or both have nothing else.
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


def distance(samples: Mapping[float, Sample]) -> tuple[float, int]:
    """Return the sum of all squared `distances` that are not NaN, and their count.

    `samples` holds our networks by weight decay, for each row of Table 1 that is compared.
    """
    squares = np.concatenate(
        [
            list(distances(Numbers.of_paper(TABLE_1[decay]), Numbers.of(own)).values())
            for decay, own in samples.items()
        ]
    )
    return float(np.nansum(squares)), int(np.isfinite(squares).sum())


def total(samples: Mapping[float, Sample], *, seed: int = 0) -> dict[str, float]:
    """Compare our networks of one initialization, by weight decay, with Table 1.

    The result holds the sum of the squared distances ("chi_square"), their count ("numbers"), the 95 %
    quantile of the sum by chance ("chance_95") and the probability of at least this sum by chance
    ("p_value"). Several numbers come from the same networks, so the sum has no χ² distribution. Its
    distribution is simulated with the seed `seed`: both tables are drawn from our networks `DRAWS` times,
    with the joint rate of circles in the paper's networks and ours.
    """
    generator = np.random.default_rng(seed)
    chance = np.zeros(DRAWS)
    for decay, sample in samples.items():
        runs = len(sample.circle)
        rate = (TABLE_1[decay].circles + sample.circle.sum()) / (PAPER_RUNS + runs)
        each = max(BLOCK // (PAPER_RUNS + runs), 1)
        for first in range(0, DRAWS, each):
            count = min(each, DRAWS - first)
            drawn = (
                Numbers.of(_drawn(sample, rate, (count, networks), generator))
                for networks in (PAPER_RUNS, runs)
            )
            chance[first : first + count] += np.nansum(list(distances(*drawn).values()), axis=0)
    seen, numbers = distance(samples)
    return {
        "chi_square": seen,
        "numbers": numbers,
        "chance_95": float(np.quantile(chance, 0.95)),
        "p_value": float((1 + np.count_nonzero(chance >= seen)) / (1 + DRAWS)),
    }


def _drawn(sample: Sample, rate: float, shape: tuple[int, int], generator: np.random.Generator) -> Sample:
    """Draw tables of networks, of the `shape` (tables, networks), with replacement from a sample.

    The probability of a circle is `rate`. If the sample has no network with a circle, or none without, the
    other numbers of networks of this kind are NaN.
    """
    circle = generator.uniform(size=shape) < rate
    imperfections, accuracy = np.full(shape, np.nan), np.full(shape, np.nan)
    for kind in (True, False):
        members, here = np.flatnonzero(sample.circle == kind), circle == kind
        if len(members):
            chosen = generator.choice(members, size=int(here.sum()))
            imperfections[here], accuracy[here] = sample.imperfections[chosen], sample.accuracy[chosen]
    return Sample(circle, imperfections, accuracy)


# -- the recipe --------------------------------------------------------------------------------------------


def _samples(rows: Columns, start: str) -> dict[float, Sample]:
    own = where(rows, start=start)
    return {decay: Sample.of(where(own, weight_decay=decay)) for decay in TABLE_1}


def _by_block(tables: Tables, level: float, measure: Any) -> Interval:
    """Return the number that `measure` computes from the table of networks, with a jackknife interval.

    The jackknife leaves out one of `BLOCKS` parts of the networks after the other.
    """
    rows = tables["networks"]
    names = list(rows)

    def of_columns(*columns: Any) -> float:
        return float(measure(dict(zip(names, columns, strict=True))))

    found = jackknife(of_columns, tuple(rows.values()), level, groups=rows["network"] % BLOCKS)
    return replace(found, count=len(np.unique(rows["network"])))


def _nearer(tables: Tables, level: float) -> Interval:
    def measure(rows: Columns) -> float:
        found = {start: distance(_samples(rows, start))[0] for start in np.unique(rows["start"])}
        return min(value for start, value in found.items() if start != "pytorch") - found["pytorch"]

    return _by_block(tables, level, measure)


def _each(tables: Tables, level: float) -> Interval:
    def measure(rows: Columns) -> float:
        square, numbers = distance(_samples(rows, "pytorch"))
        return square / numbers

    return _by_block(tables, level, measure)


@partial(Chance, "networks of equal weight decay shuffled among initializations")
def _shuffled_starts(tables: Tables, generator: np.random.Generator) -> Tables:
    """Return tables in which networks of equal weight decay have exchanged initializations, as by chance."""
    rows = tables["networks"]
    order = np.arange(len(rows["start"]))
    for decay in np.unique(rows["weight_decay"]):
        here = np.flatnonzero(rows["weight_decay"] == decay)
        order[here] = generator.permutation(here)
    mixed = {name: rows[name][order] for name in ("circle", "imperfections", "accuracy")}
    return {**tables, "networks": {**rows, **mixed}}


def _draw(setting: Setting, tables: Tables) -> dict[str, Figure]:
    with style(10.2):
        figure = Figure(figsize=(10.2, 4.0))
        figure.suptitle(f"{setting.runs} networks of each initialization and weight decay")
        left, right = figure.subplots(1, 2)
        show_circles(tables["networks"], setting.starts, left)
        show_totals(tables["totals"], right)
    return {"musat-start": figure}


@recipe(
    "musat-start",
    paper="beyond",
    item="starts of the layers",
    shows="Which initialization of the layers reproduces Musat's Table 1 best. P is the probability of a "
    "larger χ² by chance.",
    quick=Setting(("pytorch", "xavier_uniform"), 12, 300),
    paper_setting=Setting(STARTS, 500, EPOCHS),
    cost="seven minutes",
    rules=(
        Statement(
            "PyTorch's start is the nearest",
            "We train 100 random initializations for 2000 epochs",
            "Table 1",
            "χ² of all numbers of Table 1, of the nearest other start minus that of PyTorch's; 6 is a ratio "
            "of likelihoods of 20",
            _nearer,
            chance=_shuffled_starts,
            least=6.0,
            digits=1,
        ),
        Statement(
            "PyTorch's start gives Table 1",
            "We train 100 random initializations for 2000 epochs",
            "Table 1",
            "χ² of a number of Table 1; 1 where both tables have one law",
            _each,
            chance="of the same law it would hold: it can fail only by another start or another training",
            counter=instead("networks", rows={"start": "kaiming_uniform"}, of={"start": "pytorch"}),
            most=2.0,
            note="wide because one of the 18 numbers is the mean accuracy of three circles, at decay 0.3",
        ),
    ),
    draw=_draw,
)
def starts(run: Run) -> Result:
    """Beyond the papers: compare networks of several initializations of the layers with Table 1 of Musat.

    The result holds the tables "networks" and "totals" and the figure "musat-start". The rules judge χ² of
    PyTorch's initialization, and how much larger the smallest χ² of the others is.
    """
    setting: Setting = run.setting
    table = joined(
        run.keep(f"{start}-{decay:g}", partial(_trained, setting, start, decay))
        for start in setting.starts
        for decay in TABLE_1
    )
    totals = [{"start": start, **total(_samples(table, start))} for start in setting.starts]
    return Result({"networks": table, "totals": columns_of(totals)})


def _trained(setting: Setting, start: Initialisation, decay: float) -> dict[str, Any]:
    """Train networks from the initialization `start` of the layers, and return a table of them.

    Initial embeddings and training sets are the same for all initializations.
    """
    trained = networks(
        decay,
        runs=setting.runs,
        seed=7100 + round(10 * decay),
        epochs=setting.epochs,
        model=ConstantAttention(initialisation=start),
    )
    constants = {"start": np.full(setting.runs, start), "weight_decay": np.full(setting.runs, decay)}
    return {**constants, "network": np.arange(setting.runs), **table_of(trained)}


def show_circles(rows: Columns, starts: Sequence[str], ax: Axes) -> Axes:
    """Draw the share of circles against weight decay, for each initialization and for the paper."""
    series = {"paper": [proportion(row.circles, PAPER_RUNS) for row in TABLE_1.values()]}
    for start in starts:
        own = _samples(rows, start).values()
        series[start.replace("_", " ")] = [proportion(int(one.circle.sum()), len(one.circle)) for one in own]
    for k, (name, values) in enumerate(series.items()):
        middle, low, high = 100 * np.array([(one.estimate, one.low, one.high) for one in values]).T
        x = np.array(list(TABLE_1)) + 0.014 * (k - len(series) / 2)
        error = np.clip([middle - low, high - middle], 0, None)
        look: dict[str, Any] = {"color": REFERENCE, "marker": "D"} if name == "paper" else {"marker": "o"}
        ax.errorbar(x, middle, error, linestyle="none", markersize=4.5, capsize=2, label=name, **look)
    ax.set(xlabel="weight decay", ylabel="circles, %", title="Circles of Table 1, by initialization")
    ax.set_xticks(list(TABLE_1))
    legend_below(ax)
    return ax


def show_totals(totals: Columns, ax: Axes) -> Axes:
    """Draw χ² of all numbers of Table 1 for each row of `totals`, and its 95 % quantile by chance."""
    names = [start.replace("_", " ") for start in totals["start"].tolist()]
    ax.barh(names, totals["chi_square"], height=0.55)
    bounds = totals["chance_95"]
    for y, right in enumerate(np.maximum(totals["chi_square"], bounds).tolist()):
        ax.text(right, y, f"  P = {totals['p_value'][y]:.2g}", va="center")
    ax.plot(bounds, range(len(names)), "|", color=SECOND, markersize=26, label="95 % quantile by chance")
    ax.set(xlabel="χ² of the numbers of Table 1", title="Distance of Table 1 from our networks")
    ax.margins(x=0.18)
    ax.set(xlim=(0, None), ylim=(len(names) - 0.4, -1))
    legend_below(ax)
    return ax
