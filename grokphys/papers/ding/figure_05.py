"""Ding et al., Figures 5 and 14: how many circles survive, by the modulus and the embedding dimension."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.plots.palette import FRAME
from analysis.plots.style import legend_below, style
from analysis.stats.intervals import CONFIDENCE, Interval
from grokphys.papers.counters.builders import drawn
from grokphys.papers.ding.training import DECAY, PAPER, QUICK, Size, show_intervals
from grokphys.papers.evidence import jackknife, joined, mean, share, shuffled, where
from grokphys.papers.pieces import in_parts
from grokphys.papers.recipe import Measure, Result, Run, Statement, Tables, recipe
from nets.models import EmbeddingMLP
from nets.training import train

Array = NDArray[np.float64]
SECTION = "Section 3.1"
PIECE = 10, 100
"""Largest number of networks that are trained together, on a CPU (for less than an hour) and on a GPU."""


@dataclass(frozen=True)
class Counts:
    """Setting of Figures 5 and 14: networks of many moduli and dimensions.

    Attributes
    ----------
    size : Size
        Default modulus, default dimension, and number of steps.
    moduli : sequence of int
        Moduli p of networks with the default dimension.
    dims : sequence of int
        Dimensions d of networks with the default modulus.
    networks : int
        Number of networks of each size.
    seed : int
        Seed, to which 1000 p + d is added.
    """

    size: Size
    moduli: Sequence[int]
    dims: Sequence[int]
    networks: int
    seed: int


def _primes(first: int, last: int) -> tuple[int, ...]:
    """Return the prime numbers from `first` to `last`, both included."""
    return tuple(p for p in range(first, last + 1) if all(p % q for q in range(2, p)))


def published_count(E: Any) -> NDArray[np.int64]:
    """Return the number of circles in embeddings E (runs, p, d) by the rule of the published code, (runs,).

    The mean, twice of which a signal must exceed, is taken over all p Fourier components: frequency 0 counts,
    and so do both components of every other frequency. For few tokens this differs from `survives`: four
    equal circles of 17 tokens, and no others, exceed twice this mean, but not twice the mean of the 8
    frequencies. NaN counts as zero.
    """
    signals = np.linalg.norm(np.fft.fft(np.nan_to_num(E), axis=-2), axis=-1)
    return np.asarray((signals > 2 * signals.mean(axis=-1, keepdims=True)).sum(axis=-1) // 2)


def count_circles(run: Run) -> dict[str, NDArray[Any]]:
    """Train the networks of a `Counts` setting to the end, and return a table with a row for each of them.

    Its columns are the modulus p, the dimension d, the number of the network among those of its size, whether
    p is prime, and the number of circles by `published_count`. Networks are not stopped when `UntilDecided`
    would stop them: some circles die later, and how many depends on the size.
    """
    setting: Counts = run.setting
    size = setting.size
    pairs = [(p, size.dim) for p in setting.moduli]
    pairs += [(size.tokens, d) for d in setting.dims if d != size.dim or size.tokens not in setting.moduli]

    def train_part(p: int, d: int, part: range) -> dict[str, Any]:
        count = len(part)
        trained = train(
            EmbeddingMLP(tokens=p, dim=d),
            runs=count,
            first_run=part.start,
            steps=size.steps,
            seed=setting.seed + 1000 * p + d,
            weight_decay=DECAY,
            record=[size.steps],
            observables=(),
        )
        return {
            "p": np.full(count, p),
            "d": np.full(count, d),
            "network": np.array(part),
            "prime": np.full(count, bool(_primes(p, p))),
            "circles": published_count(trained.final),
        }

    return joined(
        one
        for p, d in pairs
        for one in in_parts(
            run, setting.networks, PIECE, partial(train_part, p, d), name=f"p-{p}-d-{d}-networks"
        )
    )


def _means(x: Any, circles: Any) -> tuple[Array, Array]:
    """Return the distinct values of a column x (n,), and the mean number of circles at each of them."""
    values, group = np.unique(x, return_inverse=True)
    return values.astype(float), np.bincount(group, circles) / np.bincount(group)


def _usual(tables: Tables, name: str) -> dict[str, NDArray[Any]]:
    """Return the networks that have the most frequent modulus ("p") or the most frequent dimension ("d").

    Only the other quantity varies among these networks.
    """
    rows = tables["networks"]
    values, count = np.unique(rows[name], return_counts=True)
    return where(rows, **{name: values[np.argmax(count)]})


def _rises(x: str) -> Measure:
    """Return a `Measure` of the correlation between x and the mean number of circles at each x.

    x is the modulus "p" or the dimension "d"; networks count if they have the most frequent value of the
    other one.
    """
    other = {"p": "d", "d": "p"}[x]

    def fisher(values: Any, circles: Any) -> float:
        correlation = np.corrcoef(*_means(values, circles))[0, 1]
        return float(np.arctanh(np.clip(correlation, -1 + 1e-12, 1 - 1e-12)))

    def measure(tables: Tables, level: float) -> Interval:
        rows = _usual(tables, other)
        found = jackknife(fisher, (rows[x], rows["circles"]), level, groups=rows["network"])
        return found.map(np.tanh)

    return measure


def _at_default(tables: Tables) -> NDArray[Any]:
    """Return the number of circles of each network that has the most frequent modulus and dimension."""
    return where(_usual(tables, "d"), p=_usual(tables, "p")["p"][0])["circles"]


def _expected(tables: Tables, level: float) -> Interval:
    return mean(_at_default(tables), level)


def _three_or_more(tables: Tables, level: float) -> Interval:
    return share(_at_default(tables) >= 3, level)


@recipe(
    "ding-5",
    paper="Ding",
    item="Figure 5",
    shows="How many circles survive, by the number of tokens and by the embedding dimension.",
    quick=Counts(QUICK, (17, 23, 31), (8, 16, 32), 3, 0),
    paper_setting=Counts(PAPER, _primes(17, 97), tuple(range(16, 129, 16)), 100, 50_000_000),
    cost="one to two days: all networks are trained to the end, 0.2 ms (p = 17) to 8 ms (p = 97) a step; "
    "ten networks at a time are kept",
    rules=(
        Statement(
            "left",
            "clear positive correlation between p and the number of circles the model learns",
            SECTION,
            "Pearson correlation of p and the mean number of circles; by chance 0",
            _rises("p"),
            chance=shuffled("networks", "circles"),
            least=0.5,
        ),
        Statement(
            "right",
            "similarly shows an upward curve",
            SECTION,
            "Pearson correlation of d and the mean number of circles; by chance 0",
            _rises("d"),
            chance=shuffled("networks", "circles"),
            least=0.5,
        ),
        Statement(
            "expected number",
            "only 3-5 circles survive after training",
            "Section 1",
            "mean number of circles at p = 59, d = 128",
            _expected,
            chance="shuffling among networks of one size leaves the mean; all 29 circles begin alike",
            counter=drawn("all circles of all networks", "networks", circles=lambda rows, _: rows["p"] // 2),
            least=3.0,
            most=5.0,
        ),
        Statement(
            "three or more",
            "the model almost always chooses three or more circles as its final representations",
            "Appendix C",
            "share of networks with three or more circles at p = 59, d = 128",
            _three_or_more,
            chance="shuffling among networks of one size leaves the share; 29 circles could make it 1",
            counter=drawn("two circles in each network, which may suffice", "networks", circles=2),
            least=0.9,
        ),
    ),
)
def by_size(run: Run) -> Result:
    """Reproduce Figure 5 of Ding et al.: how many circles survive over the modulus p and the dimension d.

    The table "networks" has a row for each network. The rules ask whether the mean number of circles rises
    with p and with d, and how many circles survive at the default p and d.
    """
    tables = {"networks": count_circles(run)}
    size = run.setting.size
    with style(9.6):
        figure = Figure(figsize=(9.6, 3.6))
        left, right = figure.subplots(1, 2, sharey=True)
        _show_counts(left, _usual(tables, "d"), "p")
        left.set(xlabel="modulus p", ylabel="circles that survive", ylim=(0, None))
        left.set_title(f"d = {size.dim}, {run.setting.networks} networks each, mean and 95 % interval")
        _show_counts(right, _usual(tables, "p"), "d")
        right.set(xlabel="embedding dimension d", title=f"p = {size.tokens}")
    return Result(tables, {"ding-5": figure})


def _show_counts(ax: Axes, rows: dict[str, NDArray[Any]], x: str, **look: Any) -> None:
    """Draw the mean number of circles over the modulus ("p") or the dimension ("d"), with 95 % intervals.

    `look` holds options of `show_intervals`.
    """
    places = np.unique(rows[x])
    values = [mean(rows["circles"][rows[x] == place], CONFIDENCE) for place in places]
    show_intervals(ax, places, values, **look)


# -- Figure 14 ----------------------------------------------------------------------------------------------


def _more_variation(tables: Tables, level: float) -> Interval:
    """Return how much more the mean number of circles of composite p scatters than that of prime p.

    Each mean is compared with the line through those of the next smaller and the next larger prime, so that a
    curved trend is no scatter. The result is the ratio of the root mean squares of these differences.
    """

    def off(p: Array, number: Array, prime: Any) -> tuple[Array, Array]:
        known, values = p[prime], number[prime]
        composite = number[~prime] - np.interp(p[~prime], known, values)
        between = np.diff(known)
        line = (values[:-2] * between[1:] + values[2:] * between[:-1]) / (between[1:] + between[:-1])
        return composite[(p[~prime] > known[0]) & (p[~prime] < known[-1])], values[1:-1] - line

    def logarithm(x: Any, circles: Any, prime: Any) -> float:
        p, number = _means(x, circles)
        composite, own = off(p, number, _means(x, prime)[1] == 1)
        ratio = float(np.log(np.mean(composite**2) / np.mean(own**2)) / 2)
        return ratio if np.isfinite(ratio) else np.nan

    rows = tables["networks"]
    columns = (rows["p"], rows["circles"], rows["prime"].astype(bool))
    return jackknife(logarithm, columns, level, groups=rows["network"]).map(np.exp)


@recipe(
    "ding-14",
    paper="Ding",
    item="Figure 14; Appendix F",
    shows="Numbers of surviving circles for all moduli, prime or composite.",
    quick=Counts(QUICK, (17, 18, 19, 23), (), 3, 0),
    paper_setting=Counts(PAPER, tuple(range(17, 98)), (), 20, 140_000_000),
    cost="a day or more: 20 networks of each modulus, as in the published code; ten at a time are kept",
    rules=(
        Statement(
            "trend",
            "an upward trend can still be observed",
            "Appendix F",
            "Pearson correlation of p and the mean number of circles; by chance 0",
            _rises("p"),
            chance=shuffled("networks", "circles"),
            least=0.3,
        ),
        Statement(
            "variation",
            "Compared with Figure 5 (Left), one can observe more variation in Figure 14",
            "Appendix F",
            "scatter of composite moduli about the line between the nearest primes over that of primes about "
            "the line between their neighbors; by chance 1",
            _more_variation,
            chance=shuffled("networks", "circles"),
            least=1.2,
        ),
    ),
)
def all_moduli(run: Run) -> Result:
    """Reproduce Figure 14 of Ding et al.: how many circles survive over the modulus p, prime or composite.

    The table "networks" has a row for each network. The rules ask whether the mean number of circles rises
    with p, and whether it scatters more for composite than for prime p.
    """
    rows = count_circles(run)
    with style(6.4):
        figure = Figure(figsize=(6.4, 3.8))
        ax = figure.subplots()
        ax.plot(*_means(rows["p"], rows["circles"]), color=FRAME, linewidth=1)
        for prime, label in ((True, "prime p"), (False, "composite p")):
            _show_counts(ax, where(rows, prime=prime), "p", linestyle="", label=label)
        ax.set(xlabel="modulus p", ylabel="circles that survive", ylim=(0, None))
        ax.set_title(f"d = {run.setting.size.dim}, {run.setting.networks} networks each, 95 % intervals")
        legend_below(ax)
    return Result({"networks": rows}, {"ding-14": figure})
