"""Ding et al., Figure 6: how often a circle survives, by the initial signal of its frequency."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from analysis.circles.prediction import survival_rates
from analysis.plots.palette import DEAD, SERIES, SURVIVES
from analysis.plots.style import legend_below, style
from analysis.stats.intervals import Interval, proportion
from grokphys.papers.counters.ding import NONE_REVIVED, SURVIVORS_AT_RANDOM
from grokphys.papers.ding import training
from grokphys.papers.ding.training import BY_THE_RULE, Size, show_intervals, train_circles
from grokphys.papers.ding.trials import PAPER, QUICK, Trials, train_trials
from grokphys.papers.evidence import correlation, joined, paired_gap, share, shuffled
from grokphys.papers.pieces import in_parts
from grokphys.papers.recipe import Number, Printed, Result, Run, Statement, Tables, recipe
from nets.interventions import scale_frequency, with_signals
from physics.seeds import generator as generator_of

SECTION = "Section 3.2.1"


def _rates(tables: Tables) -> tuple[Any, Any, Any]:
    """Return three columns with a row for each frequency of each embedding.

    They are the initial signal, the fraction of the networks on this embedding in which the frequency
    survives, and the number of the embedding.
    """
    table = tables["circles"]
    own = table["embedding"].astype(int) * 1000 + table["frequency"].astype(int)
    _, first, group = np.unique(own, return_index=True, return_inverse=True)
    rate = np.bincount(group, table["survived"]) / np.bincount(group)
    return table["signal"][first], rate, table["embedding"][first]


def _correlation(tables: Tables, level: float) -> Interval:
    signal, rate, embedding = _rates(tables)
    return correlation(signal, rate, level, groups=embedding)


def _draw_signals(setting: Trials, tables: Tables) -> dict[str, Figure]:
    """Draw the survival rate over the initial signal, for each frequency and in bins."""
    circles = tables["circles"]
    signal, rate, _ = _rates(tables)
    bins = survival_rates(
        circles["signal"][:, None], circles["survived"][:, None], groups=circles["embedding"]
    )
    with style(5.6):
        figure = Figure(figsize=(5.6, 4.0))
        ax = figure.subplots()
        ax.scatter(signal, rate, s=9, color=DEAD, linewidths=0, label="a frequency of an embedding")
        show_intervals(ax, [b.value for b in bins], [b.rate for b in bins], color=SURVIVES, label="bins")
        ax.set(xlabel="initial signal ‖$F_k$‖", ylabel="survival rate", ylim=(-0.03, 1.03))
        ax.set_title(f"{setting.embeddings} embeddings, {setting.trials} trials each")
        legend_below(ax)
    return {"ding-6": figure}


@recipe(
    "ding-6",
    paper="Ding",
    item="Figure 6, left",
    shows="How often a frequency survives, by its initial signal.",
    quick=QUICK,
    paper_setting=PAPER,
    cost="half an hour to two hours",
    rules=(
        Number(
            "correlation of survival rate and initial signal",
            Printed("0.85", SECTION),
            _correlation,
            margin=0.1,
            independent="embedding",
            note=BY_THE_RULE,
        ),
        Statement(
            "likelier",
            "the higher the initial signal, the more likely the model is to choose that frequency",
            SECTION,
            "Pearson correlation of the survival rate and the initial signal; by chance 0",
            _correlation,
            chance=shuffled("circles", "survived", within="embedding"),
            least=0.5,
            independent="embedding",
            note=BY_THE_RULE,
        ),
    ),
    draw=_draw_signals,
)
def initial_signals(run: Run) -> Result:
    """Reproduce Figure 6 (left) of Ding et al.: how often each frequency survives, over its initial signal.

    Several networks with different layers and training sets start from each embedding. The table "circles"
    has a row for each frequency of each network. The rules judge the correlation of survival rate and initial
    signal.
    """
    circles = train_trials(run)
    return Result({"circles": circles})


# -- the middle ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scaled:
    """Setting of Figure 6 (middle): networks start from embeddings of which one frequency is scaled.

    Attributes
    ----------
    size : Size
        Modulus, dimension and number of steps.
    embeddings : int
        Number of embeddings before scaling.
    factors : sequence of float
        Factors by which the signal of the frequency is multiplied.
    trials : int
        Number of networks for each embedding and factor.
    frequency : int, default 25
        Frequency that is scaled, the same in all embeddings; the default is that of the published code.
    """

    size: Size
    embeddings: int
    factors: Sequence[float]
    trials: int
    frequency: int = 25


MUCH = 10.0
"""Least distance of a signal from the mean of the others, near 87, at which it is much higher or lower."""


def _survives(sign: int) -> Any:
    """Return a `Measure` of the share of trials in which a frequency survives that is much higher or lower.

    `sign` is 1 for higher and -1 for lower.
    """

    def measure(tables: Tables, level: float) -> Interval:
        rows = tables["runs"]
        here = sign * rows["deviation"] >= MUCH
        return share(rows["survived"][here], level, groups=rows["embedding"][here])

    return measure


def _more(tables: Tables, level: float) -> Interval:
    rows = tables["runs"]
    far = (rows["deviation"] >= MUCH, rows["deviation"] <= -MUCH)
    return paired_gap(lambda x: x.sum() / len(x), (rows["survived"],), *far, level, groups=rows["embedding"])


def _draw_scaled(setting: Scaled, tables: Tables) -> dict[str, Figure]:
    """Draw how often a frequency survives, over the distance of its signal from the mean of the others."""
    rows = tables["runs"]
    with style(5.6):
        figure = Figure(figsize=(5.6, 4.0))
        ax = figure.subplots()
        start = rows["deviation"].reshape(-1, setting.trials)[:, 0]
        ax.scatter(
            start,
            rows["survived"].reshape(-1, setting.trials).mean(axis=1),
            s=9,
            color=DEAD,
            linewidths=0,
            label="an embedding and a factor",
        )
        bins = survival_rates(rows["deviation"][:, None], rows["survived"][:, None], groups=rows["embedding"])
        show_intervals(ax, [b.value for b in bins], [b.rate for b in bins], color=SURVIVES, label="bins")
        ax.set(xlabel="‖$F_k$‖ - mean of the others", ylabel="survival rate of k", ylim=(-0.03, 1.03))
        ax.set_title(
            f"signal of k = {setting.frequency} times {setting.factors[0]} to {setting.factors[-1]},\n"
            f"{setting.embeddings} embeddings, {setting.trials} trials each",
            fontsize="medium",
        )
        legend_below(ax)
    return {"ding-6b": figure}


@recipe(
    "ding-6b",
    paper="Ding",
    item="Figure 6, middle",
    shows="How often a frequency survives if its signal alone is raised or lowered.",
    quick=Scaled(training.QUICK, 2, (0.85, 1.15), 4, 5),
    paper_setting=Scaled(training.PAPER, 60, (0.85, 0.9, 0.95, 1.0, 1.05, 1.1, 1.15), 8),
    cost="two to four hours",
    rules=(
        Statement(
            "raised",
            "if the frequency is much higher than the rest, survival rate is near 100 %",
            SECTION,
            "share of trials with a signal at least 10 above the mean of the others in which it survives",
            _survives(1),
            chance=shuffled("runs", "survived"),
            least=0.9,
            independent="embedding",
        ),
        Statement(
            "lowered",
            "the frequency rarely survives if it is much lower than the mean",
            SECTION,
            "share of trials with a signal at least 10 below the mean of the others in which it survives",
            _survives(-1),
            chance="a share near the mean of all trials; the difference below tests it",
            counter=shuffled("runs", "survived"),
            most=0.1,
            independent="embedding",
        ),
        Statement(
            "difference",
            "the initial signal of the frequency plays a unique role in determining the final representation",
            SECTION,
            "survival with a signal at least 10 above the mean of the others minus that at least 10 below",
            _more,
            chance=shuffled("runs", "survived"),
            least=0.3,
            independent="embedding",
            note="corrected after the run: what one embedding has above and below is resampled together",
        ),
    ),
    draw=_draw_scaled,
)
def scaled(run: Run) -> Result:
    """Reproduce Figure 6 (middle) of Ding et al.: survival of a frequency whose signal is multiplied.

    One frequency of each embedding is multiplied by several factors, and networks with different layers and
    training sets start from the result. The table "runs" has a row for each network. The rules judge how
    often the frequency survives if its signal is far above or far below the mean of the others.
    """
    setting: Scaled = run.setting
    rows = joined(
        run.keep(f"embedding-{n}", partial(_scale_one, setting, n)) for n in range(setting.embeddings)
    )
    return Result({"runs": rows})


def _scale_one(setting: Scaled, number: int) -> dict[str, Any]:
    size, seed = setting.size, 6100 + number
    generator = generator_of(seed)
    E, k = generator.standard_normal((size.tokens, size.dim)), setting.frequency
    starts = np.repeat([scale_frequency(E, k, f) for f in setting.factors], setting.trials, axis=0)
    one = train_circles(
        size.model, runs=len(starts), steps=size.steps, audited=int(number < 5), seed=seed, initial=starts
    )
    signal = one.signals[:, 0]
    return {
        "embedding": np.full(len(starts), number),
        "frequency": np.full(len(starts), k),
        "factor": np.repeat(setting.factors, setting.trials),
        "deviation": signal[:, k - 1] - np.delete(signal, k - 1, axis=1).mean(axis=1),
        "survived": one.survived[:, k - 1],
        **one.columns(),
    }


# -- the right ----------------------------------------------------------------------------------------------


RATIOS = 1, 11
"""Largest number of ratios of which the networks are trained together, on a CPU and on a GPU."""


@dataclass(frozen=True)
class Pairs:
    """Setting of Figure 6 (right): networks start from two frequencies, with the signals s and r s.

    Attributes
    ----------
    size : Size
        Modulus, dimension and number of steps.
    ratios : sequence of float
        Ratios r of the weaker to the stronger signal.
    pairs : int
        Number of networks for each ratio, each with two random frequencies.
    others : float, default 1e-6
        Signal of all other frequencies, and the least signal of the weaker one.
    """

    size: Size
    ratios: Sequence[float]
    pairs: int
    others: float = 1e-6


def _larger(tables: Tables, level: float) -> Interval:
    rows = tables["runs"]
    return share(rows["larger"][rows["ratio"] < 1], level)


def _smaller_rises(tables: Tables, level: float) -> Interval:
    rows = tables["runs"]
    return correlation(rows["ratio"], rows["smaller"].astype(float), level)


@recipe(
    "ding-6c",
    paper="Ding",
    item="Figure 6, right",
    shows="How often the stronger and the weaker of two frequencies survive, and any other.",
    quick=Pairs(training.QUICK, (0.2, 0.6, 1.0), 3),
    paper_setting=Pairs(training.PAPER, tuple(np.linspace(0, 1, 11).round(2).tolist()), 20),
    cost="three to six hours: all networks are trained to the end, since circles come back late",
    rules=(
        Statement(
            "larger",
            "the frequency with the highest signal will always survive",
            SECTION,
            "share of networks with r < 1 in which the larger one survives",
            _larger,
            chance="4 of 29 circles survive elsewhere",
            counter=SURVIVORS_AT_RANDOM,
            least=0.95,
        ),
        Statement(
            "smaller",
            "the second highest frequency increases in survival rate as its signal increases",
            SECTION,
            "Pearson correlation of the survival of the smaller one with the ratio r; by chance 0",
            _smaller_rises,
            chance=shuffled("runs", "smaller"),
            least=0.2,
        ),
        Statement(
            "revived",
            "all other frequencies having a signal near 0 … the model sometimes chooses to revive them",
            SECTION,
            "share of networks in which any other frequency survives",
            lambda tables, level: share(tables["runs"]["revived"], level),
            chance="none, if what is near zero stayed there",
            counter=NONE_REVIVED,
            least=0.05,
        ),
    ),
)
def pairs(run: Run) -> Result:
    """Reproduce Figure 6 (right) of Ding et al.: survival of the stronger and the weaker of two frequencies.

    Networks start from two random frequencies, with all others at a tiny signal. The table "runs" has a row
    for each network. The rules judge how often the stronger one, the weaker one and any other survives.
    """
    setting: Pairs = run.setting
    rows = joined(in_parts(run, len(setting.ratios), RATIOS, partial(_train_pairs, setting), name="ratios"))
    with style(5.6):
        figure = Figure(figsize=(5.6, 4.0))
        ax = figure.subplots()
        for n, (name, label) in enumerate(
            (("larger", "the larger"), ("smaller", "the smaller"), ("revived", "any other, revived"))
        ):
            alive = rows[name].reshape(len(setting.ratios), -1)
            values = [proportion(int(part.sum()), len(part)) for part in alive]
            look: Any = {"linestyle": ":"} if n == 2 else {}
            places = np.array(setting.ratios) + 0.012 * (n - 1)  # side by side, where they agree
            show_intervals(ax, places, values, color=SERIES[n], label=label, **look)
        ax.set(xlabel="r, ratio of the two signals", ylabel="survival rate", ylim=(-0.03, 1.03))
        ax.set_title(f"all others at {setting.others:g}; {setting.pairs} pairs each")
        legend_below(ax)
    return Result({"runs": rows}, {"ding-6c": figure})


def _train_pairs(setting: Pairs, part: range) -> dict[str, Any]:
    size, count = setting.size, setting.pairs
    typical = np.sqrt(size.tokens * size.dim)
    rows, starts, both = np.arange(count), [], []
    for number in part:
        generator = generator_of(6200 + number)
        two = np.array([generator.choice(size.tokens // 2, 2, replace=False) for _ in rows])
        signals = np.full((count, size.tokens // 2), setting.others)
        signals[rows, two[:, 0]] = typical
        signals[rows, two[:, 1]] = max(setting.ratios[number] * typical, setting.others)
        starts.append(with_signals(generator.standard_normal((count, size.tokens, size.dim)), signals))
        both.append(two)
    networks = len(part) * count
    one = train_circles(
        size.model,
        runs=networks,
        first_run=part.start * count,
        steps=size.steps,
        audited=networks,
        seed=6200,
        initial=np.concatenate(starts),
    )
    larger, smaller = np.concatenate(both).T
    rows = np.arange(networks)
    others = one.survived.copy()
    others[rows, larger] = others[rows, smaller] = False
    return {
        "ratio": np.repeat(np.array(setting.ratios)[part.start : part.stop], count),
        "larger": one.survived[rows, larger],
        "smaller": one.survived[rows, smaller],
        "revived": others.any(axis=1),
        **one.columns(),
    }
