"""Liu et al., Figures 4 (a), 5 (a) and Appendix F: the effective theory for addition of p = 10 tokens."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import stats
from scipy.integrate import solve_ivp

from analysis.plots.palette import FIRST, REFERENCE, SECOND
from analysis.plots.style import legend_below, style
from analysis.stats.intervals import Interval
from grokphys.papers.counters.builders import drawn
from grokphys.papers.evidence import Chance, difference, mean, share, shuffled
from grokphys.papers.liu.measures import crossing
from grokphys.papers.recipe import Number, Printed, Result, Run, Statement, Tables, recipe
from physics import (
    EffectiveTheory,
    Operation,
    closures,
    grokking_rates,
    random_training_sets,
)
from physics.seeds import children
from physics.seeds import generator as generator_of

TOKENS = 10
LEARNING_RATE = 1e-3
"""Learning rate η of the embeddings."""
GROKKED = 0.95
DELTA = 0.1
"""Tolerance of a distance. Its square is 0.01, the tolerance in the published code (`threshold_P`)."""
STRICT = 0.01
"""Tolerance of a distance that Appendix E states for Figure 10."""
SHOWN_SIZE = 45

Masks = NDArray[np.bool_]


def training_sets(operation: Operation, sizes: Any, sets: int, seed: int) -> dict[int, Masks]:
    """Draw independent random training sets of every size, as masks over all samples, bool (sets, samples).

    `sets` is the number of training sets of each of the `sizes`, which are the keys of the result.
    """
    streams = children(seed, range(len(sizes)))
    return {
        int(size): random_training_sets(operation, int(size), sets=sets, seed=stream)
        for size, stream in zip(sizes, streams, strict=True)
    }


def _every_size(operation: Operation) -> range:
    return range(1, len(operation.samples) + 1)


# -- Figure 4 (a) ------------------------------------------------------------------------------------------


def _unique(tables: Tables, level: float) -> Interval:
    rows = tables["sizes"]
    return crossing(rows["fraction"], rows["unique"], rows["sets"], level)


def _jump(column: str) -> Any:
    """Return a `Measure` of the share for sets of at least half of the data minus that for at most 0.3.

    `column` counts the training sets of a size for which something holds.
    """

    def measure(tables: Tables, level: float) -> Interval:
        rows = tables["sizes"]
        high, low = rows["fraction"] >= 0.5, rows["fraction"] <= 0.3
        parts = [_pooled(rows[column][part], rows["sets"][part], level) for part in (high, low)]
        return difference(*parts)

    return measure


def _pooled(successes: Any, trials: Any, level: float) -> Interval:
    return share(np.arange(int(np.sum(trials))) < int(np.sum(successes)), level)


def _draw_probability(setting: int, tables: Tables) -> dict[str, Figure]:
    """Draw the probability of a unique representation over the training fraction."""
    rows = tables["sizes"]
    with style(5.6):
        figure = Figure(figsize=(5.6, 4.0))
        ax = figure.subplots()
        at = [_pooled(unique, setting, 0.95) for unique in rows["unique"]]
        p, low, high = (np.array([getattr(one, side) for one in at]) for side in ("estimate", "low", "high"))
        error = np.clip([p - low, high - p], 0, None)
        ax.errorbar(
            rows["fraction"], p, error, fmt="o-", markersize=3.5, linewidth=1, label=f"{setting} sets"
        )
        place = _unique(tables, 0.95)
        ax.axvline(place.estimate, color=SECOND, linewidth=1, label=f"$r_c$ = {place.format(3)}")
        ax.set(xlabel="training data fraction", ylabel="probability of a unique representation")
        ax.set(xlim=(0, 1), ylim=(-0.03, 1.03), title="p = 10")
        legend_below(ax)
    return {"liu-4a": figure}


@recipe(
    "liu-4a",
    paper="Liu",
    item="Figure 4 (a)",
    shows="The probability that the training set implies a unique linear representation.",
    quick=100,
    paper_setting=10_000,
    cost="a minute",
    rules=(
        Number(
            "r_c",
            Printed("0.4", "Figure 4 (a)"),
            _unique,
            margin=0.02,
            independent="training set",
            digits=4,
        ),
        Statement(
            "transition",
            "has a phase transition around r_c = 0.4",
            "Section 3.2",
            "probability for at least half of the data minus that for at most 0.3 of it; by chance 0",
            _jump("unique"),
            chance=shuffled("sizes", "unique"),
            least=0.8,
            independent="training set",
        ),
    ),
    draw=_draw_probability,
)
def probability(run: Run) -> Result:
    """Reproduce Figure 4 (a) of Liu et al.: how probably a random training set determines the representation.

    Random training sets of each size are drawn, and nothing is trained. The table "sizes" has a row for each
    size. The rules compare the fraction at which the probability is one half with that of the paper, and
    judge the rise of the probability.
    """
    operation, sets = Operation(TOKENS), run.setting
    masks = training_sets(operation, _every_size(operation), sets, seed=141)
    sizes = np.array(list(masks))
    unique = np.array([int(closures(operation, one).complete.sum()) for one in masks.values()])
    rows = {
        "size": sizes,
        "fraction": sizes / len(operation.samples),
        "sets": np.full(len(sizes), sets),
        "unique": unique,
    }
    return Result({"sizes": rows})


# -- Figure 5 (a) ------------------------------------------------------------------------------------------


def _threshold(tables: Tables, level: float) -> Interval:
    rows = tables["sizes"]
    return crossing(rows["fraction"], rows["positive"], rows["sets"], level)


def _zero_below(tables: Tables, level: float) -> Interval:
    rows = tables["sizes"]
    below = rows["fraction"] <= 0.35
    return _pooled((rows["sets"] - rows["positive"])[below], rows["sets"][below], level)


DRAWS = 1000
"""Number of times that means are drawn anew to measure the error of their ranks."""


def _rate_rises(tables: Tables, level: float) -> Interval:
    """Return Kendall's τ of the mean λ_3 and the size, above 0.4 of the data.

    The sizes are all that there are. The interval holds τ of means that are drawn anew, each from a normal
    distribution with its standard error.
    """
    rows = tables["sizes"]
    fraction, rate, error = (rows[name][rows["fraction"] > 0.4] for name in ("fraction", "mean", "error"))
    drawn = rate + error * np.random.default_rng(0).standard_normal((DRAWS, len(rate)))
    ranks = [stats.kendalltau(fraction, values).statistic for values in drawn]
    low, high = np.quantile(ranks, [(1 - level) / 2, (1 + level) / 2])
    found = stats.kendalltau(fraction, rate).statistic
    return Interval(float(found), float(low), float(high), int(rows["sets"].max()))


def _draw_rates(setting: int, tables: Tables) -> dict[str, Figure]:
    """Draw the grokking rate λ_3 over the training fraction, as a mean with quartiles."""
    rows = tables["sizes"]
    with style(5.6):
        figure = Figure(figsize=(5.6, 4.0))
        ax = figure.subplots()
        x = rows["fraction"]
        ax.fill_between(x, rows["quartile_1"], rows["quartile_3"], alpha=0.25, linewidth=0, label="quartiles")
        ax.plot(x, rows["mean"], label=f"mean of {setting} sets")
        ax.axvline(0.4, color=REFERENCE, linestyle=":", linewidth=1, label="0.4")
        ax.set(xlabel="training data fraction", ylabel=r"grokking rate $\lambda_3$", title="p = 10")
        ax.set(xlim=(0, 1.02), ylim=(-0.003, None))
        legend_below(ax)
    return {"liu-5a": figure}


@recipe(
    "liu-5a",
    paper="Liu",
    item="Figure 5 (a)",
    shows="The grokking rate λ_3 by the training fraction.",
    quick=100,
    paper_setting=10_000,
    cost="two minutes",
    rules=(
        Number(
            "fraction at which λ_3 > 0 for half of the training sets",
            Printed("0.4", "Section 3.2"),
            _threshold,
            margin=0.02,
            independent="training set",
            digits=4,
            note="interpolated between sizes; elsewhere, r_c is the median over random orders",
        ),
        Statement(
            "below",
            "When the data fraction is below some threshold (around 0.4), λ_3 is zero with high probability",
            "Section 3.2",
            "share of training sets of at most 0.35 of the data for which λ_3 = 0",
            _zero_below,
            chance=shuffled("sizes", "positive"),
            least=0.9,
            independent="training set",
        ),
        Statement(
            "above",
            "When data size is above the threshold, λ_3 (on average) is an increasing function of data size",
            "Section 3.2",
            "Kendall's τ of the mean λ_3 with the size, above 0.4; by chance 0",
            _rate_rises,
            chance=shuffled("sizes", "mean"),
            least=0.9,
            independent="training set",
            note="corrected after the run: training sets are drawn anew; before, the interval left out sizes",
            possible=(-1.0, 1.0),
        ),
    ),
    draw=_draw_rates,
)
def rates(run: Run) -> Result:
    """Reproduce Figure 5 (a) of Liu et al.: the grokking rate λ_3 of random training sets, for 10 tokens.

    Random training sets of each size are drawn, and nothing is trained. The table "sizes" has a row for each
    size. The rules judge at which fraction of the data λ_3 becomes positive, and whether its mean rises above
    that fraction.
    """
    table = rate_table(Operation(TOKENS), run.setting, seed=151)
    sizes = np.array(list(table))
    rows: dict[str, Any] = {
        "size": sizes,
        "fraction": sizes / sizes.max(),
        "sets": np.full(len(sizes), run.setting),
        "positive": np.array([int((rate > 0).sum()) for rate in table.values()]),
        "mean": np.array([rate.mean() for rate in table.values()]),
        "error": np.array([rate.std() / len(rate) ** 0.5 for rate in table.values()]),
    }
    for k in (1, 2, 3):
        rows[f"quartile_{k}"] = np.array([np.quantile(rate, k / 4) for rate in table.values()])
    return Result({"sizes": rows})


def rate_table(operation: Operation, sets: int, seed: int) -> dict[int, NDArray[np.float64]]:
    """Return the grokking rates λ_3, float64 (sets,) per unit of time, of random training sets by their size.

    There are `sets` training sets of each size from 1 to the number of all samples.
    """
    return {
        size: grokking_rates(operation, masks)
        for size, masks in training_sets(operation, _every_size(operation), sets, seed).items()
    }


# -- Appendix F --------------------------------------------------------------------------------------------


def _largest(column: str, centred: bool) -> Any:
    def measure(tables: Tables, level: float) -> Interval:
        rows = tables["flows"]
        return mean(rows[column][rows["centred"] == centred], level)

    return measure


def _changing(column: str) -> Chance:
    """Return a model of data in which relative changes are of any size up to 1."""
    return drawn(
        f"`{column}` drawn evenly from 0 to 1, as of what nothing conserves",
        "flows",
        **{column: lambda rows, rng: rng.random(len(rows["start"]))},
    )


TRAINING_SETS = 200
INTEGRATED = "none: what is conserved is computed for every start, and shuffling starts changes no mean"


@recipe(
    "liu-F",
    paper="Liu",
    item="Appendix F, Eq. 24",
    shows="How Z_0 = Σ|E|² and C = ΣE change in the flow of the effective loss, as medians over "
    f"{TRAINING_SETS} training sets.",
    quick=6,
    paper_setting=TRAINING_SETS,
    cost="a minute",
    rules=tuple(
        Statement(
            name,
            "We will prove the following two quantities are conserved: C = Σ E_k, Z_0 = Σ |E_k|²",
            "Appendix F, Eq. 24",
            f"mean largest relative change of {what}, integrated numerically",
            _largest(column, centred),
            chance=INTEGRATED,
            counter=_changing(column),
            most=1e-3,
            independent="start",
            digits=6,
        )
        for name, what, column, centred in (
            ("Z_0", "Z_0", "norm_change", False),
            ("C of any start", "C, against the root of p Z_0", "sum_change", False),
            ("C of a centered start", "C, against the root of p Z_0", "sum_change", True),
        )
    ),
)
def conservation(run: Run) -> Result:
    """Reproduce Appendix F of Liu et al.: whether the flow conserves Z_0 = Σ|E|² and C = ΣE.

    The flow is integrated numerically. Each random training set has one start with a mean and one without.
    The table "flows" has a row for each start, and the rules judge the largest changes.
    """
    full = EffectiveTheory(TOKENS)
    masks = random_training_sets(full, SHOWN_SIZE, sets=run.setting, seed=161)
    generator = generator_of(161)
    times, rows, curves = 50, [], []
    for number, mask in enumerate(masks):
        theory = EffectiveTheory(TOKENS, pairs=full.operation.samples[mask])
        for centred in (False, True):
            E = generator.standard_normal((TOKENS, 1)) + 1.0
            E = E - E.mean() if centred else E
            moved = solve_ivp(
                lambda _, x, theory=theory: -theory.gradient(x[:, None])[:, 0],
                (0.0, 2.0 * times),
                E[:, 0],
                t_eval=2.0 * np.arange(times + 1),
                rtol=1e-10,
                atol=1e-12,
            )
            path = moved.y.T
            norm, total = (path**2).sum(axis=1), path.sum(axis=1)
            changes = abs(norm / norm[0] - 1), abs(total - total[0]) / np.sqrt(TOKENS * norm[0])
            rows.append((number, centred, *(float(change.max()) for change in changes)))
            curves.append(changes)
    names = ("start", "centred", "norm_change", "sum_change")
    table = {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
    with style(9.6):
        figure = Figure(figsize=(9.6, 4.0))
        for ax, k, title, linear in zip(
            figure.subplots(1, 2),
            (0, 1),
            ("relative change of $Z_0$", r"change of $C$ over $\sqrt{p\,Z_0}$"),
            (1e-13, 1e-4),
            strict=True,
        ):
            for centred, color, label in ((False, SECOND, "random start"), (True, FIRST, "centered")):
                own = [pair[k] for pair, row in zip(curves, rows, strict=True) if row[1] == centred]
                time = np.arange(times + 1) * 2.0
                ax.plot(time, np.median(own, axis=0), color=color, label=f"{label}, median")
            ax.set(xlabel="time", ylabel=title)
            ax.set_yscale("symlog", linthresh=linear)
            legend_below(ax)
    return Result({"flows": table}, {"liu-F": figure})
