"""Ding et al., Figure 11: the circularity of random embeddings, and the survival of circles by it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from analysis.circles.geometry import circularity
from analysis.circles.prediction import survival_rates
from analysis.plots.palette import DEAD, FIRST, INK, SECOND, SOFT, SURVIVES
from analysis.plots.style import legend_below, style
from analysis.stats.intervals import CONFIDENCE, Interval
from grokphys.papers.counters.builders import replaced
from grokphys.papers.ding.training import (
    BY_THE_RULE,
    PAPER,
    QUICK,
    Size,
    parts_of,
    show_intervals,
    train_circles,
)
from grokphys.papers.evidence import correlation, joined, mean, rank_correlation, shuffled, where
from grokphys.papers.recipe import Measure, Result, Run, Statement, Tables, recipe
from nets.engines.ensemble import draw
from physics.seeds import generator as generator_of

SECTION = "Appendix B"
SHARD = 100
"""Number of networks of Figure 11 (right) that have one seed."""


@dataclass(frozen=True)
class Embeddings:
    """Setting of Figure 11 (left): random embeddings, none of them trained.

    Attributes
    ----------
    tokens : int
        Number of tokens p.
    dims : sequence of int
        Embedding dimensions d.
    count : int
        Number of embeddings of each dimension.
    seed : int
        Seed of the random stream.
    """

    tokens: int
    dims: Sequence[int]
    count: int
    seed: int


def _rises(column: str) -> Measure:
    def measure(tables: Tables, level: float) -> Interval:
        rows = tables["embeddings"]
        return rank_correlation(rows["d"], rows[column], level)

    return measure


def _rounder(name: str, column: str) -> Statement:
    return Statement(
        name,
        "circularity increases as dimensionality increases",
        SECTION,
        f"Kendall's τ of the {name} circularity over frequencies and d; by chance 0",
        _rises(column),
        chance=shuffled("embeddings", column),
        least=0.5,
        independent="embedding",
        possible=(-1.0, 1.0),
    )


@recipe(
    "ding-11",
    paper="Ding",
    item="Figure 11, left; Appendix B",
    shows="The circularity of random embeddings, by the embedding dimension.",
    quick=Embeddings(23, (2, 8, 32), 5, 0),
    paper_setting=Embeddings(59, (2, 4, 8, 16, 32, 64, 128, 256, 512), 50, 110_000),
    cost="seconds",
    rules=(_rounder("mean", "mean"), _rounder("maximum", "maximum")),
)
def initial_circularity(run: Run) -> Result:
    """Reproduce Figure 11 (left) of Ding et al.: the circularity (Eq. 5) of random embeddings over d.

    Normally distributed embeddings of p tokens are drawn in several dimensions d. The table "embeddings" has
    a row for each of them. The rules ask whether the mean and the maximum over frequencies rise with d.
    """
    setting: Embeddings = run.setting
    p, generator = setting.tokens, generator_of(setting.seed)
    found = [circularity(generator.standard_normal((setting.count, p, d))) for d in setting.dims]
    rows = {
        "d": np.repeat(setting.dims, setting.count),
        "mean": np.concatenate([values.mean(axis=1) for values in found]),
        "maximum": np.concatenate([values.max(axis=1) for values in found]),
    }
    with style(5.6):
        figure = Figure(figsize=(5.6, 3.8))
        ax = figure.subplots()
        for name, color in (("maximum", SECOND), ("mean", FIRST)):
            values = [mean(where(rows, d=d)[name], CONFIDENCE) for d in setting.dims]
            show_intervals(ax, setting.dims, values, color=color, label=f"{name} over frequencies")
        d = np.geomspace(setting.dims[0], setting.dims[-1], 50)
        ax.plot(d, d / (d + p - 2), color=INK, linewidth=0.9, linestyle="--", label="d / (d + p - 2)")
        ax.set(xscale="log", xlabel="embedding dimension d", ylabel="circularity (Eq. 5)", ylim=(0, 1))
        ax.set_xticks(setting.dims, [str(d) for d in setting.dims])
        ax.minorticks_off()
        legend_below(ax)
        ax.set_title(f"{setting.count} random embeddings, p = {p}")
    return Result({"embeddings": rows}, {"ding-11": figure})


# -- the right ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Survivors:
    """Setting of Figure 11 (right): networks with different embeddings.

    Attributes
    ----------
    size : Size
        Modulus, dimension and number of steps.
    networks : int
        Number of networks.
    audited : int
        Number of networks that are trained to the end, to count errors of the stopping rule.
    seed : int
        Seed of the first `SHARD` networks; that of the next ones is larger by 1.
    """

    size: Size
    networks: int
    audited: int
    seed: int


def _tells(tables: Tables, level: float) -> Interval:
    rows = tables["circles"]
    alive = rows["survived"].astype(float)
    return correlation(rows["circularity"], alive, level, groups=rows["network"])


@recipe(
    "ding-11b",
    paper="Ding",
    item="Figure 11, right; Appendix B",
    shows="How well the initial circularity of a frequency predicts its survival.",
    quick=Survivors(QUICK, 6, 1, 0),
    paper_setting=Survivors(PAPER, 340, 4, 111_000),
    cost="a quarter of an hour to an hour",
    rules=(
        Statement(
            "survival",
            "inconclusive as to whether larger initial circularity implies a better chance of survival",
            SECTION,
            "Pearson correlation of survival and initial circularity: none, by an equivalence margin of 0.1",
            _tells,
            chance="shuffled survival makes it true: what would make it untrue is a correlation",
            counter=replaced("circles", circularity="signal"),
            least=-0.1,
            most=0.1,
            note=f"{BY_THE_RULE}; circularity and initial signal are correlated",
        ),
    ),
)
def by_circularity(run: Run) -> Result:
    """Reproduce Figure 11 (right) of Ding et al.: how often circles survive, over their initial circularity.

    Most networks are trained only until their survivors are decided. The table "circles" has a row for each
    frequency of each network. The rule asks whether survival and initial circularity are uncorrelated.
    """
    setting: Survivors = run.setting
    model, seed = setting.size.model, setting.seed

    def train_part(number: int, part: range) -> dict[str, Any]:
        own: dict[str, Any] = {"runs": len(part), "seed": seed + number}
        audited = 0 if number else setting.audited
        found = train_circles(model, steps=setting.size.steps, audited=audited, **own)
        start = circularity(draw(model, **own).parameters["embedding"])
        K = start.shape[1]
        return {
            "network": np.repeat(part, K),
            "circularity": start.ravel(),
            "signal": found.signals[:, 0].ravel(),
            "survived": found.survived.ravel(),
            "changed": found.changed.ravel(),
            "decided": np.repeat(found.decided, K),
            "audited": np.repeat(np.arange(len(part)) < found.audited, K),
        }

    rows = joined(
        run.keep(f"networks-from-{part.start}", partial(train_part, number, part))
        for number, part in enumerate(parts_of(setting.networks, SHARD))
    )
    survived, start = rows["survived"], rows["circularity"]
    bins = survival_rates(start[:, None], survived[:, None], groups=rows["network"])
    with style(9.6):
        figure = Figure(figsize=(9.6, 3.6))
        left, right = figure.subplots(1, 2)
        edges = np.linspace(start.min(), start.max(), 31)
        for state, color, chosen in (("dead", DEAD, ~survived), ("survived", SURVIVES, survived)):
            if chosen.any():  # an empty histogram has no density
                label = f"{state} ({chosen.sum()})"
                left.hist(start[chosen], edges, density=True, alpha=0.55, color=color, label=label)
        left.set(xlabel="initial circularity (Eq. 5)", ylabel="density")
        left.set_title(f"{setting.networks} networks")
        legend_below(left)
        show_intervals(right, [b.value for b in bins], [b.rate for b in bins], color=SURVIVES)
        right.axhline(survived.mean(), color=SOFT, linestyle=":", linewidth=1)
        right.set(xlabel="initial circularity (Eq. 5)", ylabel="survival rate", ylim=(0, None))
        right.set_title("bins of equally many circles; dotted: all")
    return Result({"circles": rows}, {"ding-11b": figure})
