"""Liu et al., Figure 7: a transformer that learns modular addition; its dimension, dropout, and phases."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from analysis.circles.geometry import effective_dimension
from analysis.phases.classification import DELAY
from analysis.plots.palette import FIRST, REFERENCE, SECOND
from analysis.plots.style import legend_below, style
from analysis.stats.intervals import Interval
from grokphys.papers.counters.builders import Draw, drawn
from grokphys.papers.evidence import joined, mean, rank_correlation, share, shuffled, where
from grokphys.papers.liu.measures import closer_to_memorization, contrast
from grokphys.papers.liu.planes import ALL, CHANCE, GENERAL, Plane, diagram, inside
from grokphys.papers.pieces import in_parts
from grokphys.papers.recipe import Result, Run, Statement, Tables, recipe
from grokphys.phases import ACCURACIES
from nets import TokenTransformer
from nets.training import train

EMBEDDING: dict[str, Any] = {"embedding_learning_rate": 1e-3, "embedding_weight_decay": 0.0}
SMALL = TokenTransformer(11, 16, depth=1, width=16)
SECTION = "Section 4.2"
PIECE = 1, 10
"""Largest number of transformers that are trained together, on a CPU and on a GPU (for minutes)."""


def steps_reached(trained: Any) -> tuple[Any, Any]:
    """Return the steps at which training and validation accuracy reach 90 %, each float64 (runs,).

    They are infinite for a network that never reaches 90 %. `trained` is a trajectory of networks that were
    trained with the thresholds `ACCURACIES`.
    """
    found = [trained.observables[f"steps_to_{name}"][:, -1].astype(float) for name in ACCURACIES]
    first, second = (np.where(np.isfinite(steps), steps, np.inf) for steps in found)
    return first, second


@dataclass(frozen=True)
class Followed:
    """Setting of Figure 7 (left): transformers whose embeddings are recorded over training.

    The paper does not state the learning rate and the weight decay of the decoder.

    Attributes
    ----------
    model : TokenTransformer
        Network to train.
    seeds : int
        Number of networks.
    steps : int
        Number of steps of training.
    piece : int, default 1
        Largest number of networks that are trained together on a CPU.
    frames : int, default 1000
        Approximate number of recorded frames after the start.
    learning_rate : float, default 1e-3
        Learning rate of the decoder.
    weight_decay : float, default 1.0
        Weight decay of the decoder.
    """

    model: TokenTransformer
    seeds: int
    steps: int
    piece: int = 1
    frames: int = 1000
    learning_rate: float = 1e-3
    weight_decay: float = 1.0


# -- left --------------------------------------------------------------------------------------------------


def _change(first: str, second: str) -> Any:
    """Return a `Measure` of the mean logarithm of the ratio of the effective dimensions at two moments.

    The dimension at the `second` moment is divided by that at the `first`. A moment is "start", "generalized"
    (the first frame with 90 % validation accuracy) or "end". Networks that never generalize do not count.
    """

    def measure(tables: Tables, level: float) -> Interval:
        rows = tables["moments"]
        a, b = (where(rows, moment=name)["dimension"] for name in (first, second))
        return mean(np.log(b / a), level)

    return measure


@recipe(
    "liu-7",
    paper="Liu",
    item="Figure 7, left",
    shows="The effective dimension of the embeddings, and the accuracies, during training.",
    quick=Followed(SMALL, 2, 200, 2),
    paper_setting=Followed(TokenTransformer(), 100, 20_000),
    cost="0.1 s for each step and network: 55 hours, or half an hour of a GPU; 30 of 100 are stored",
    rules=(
        Statement(
            "rises",
            "the entropy increases up to generalization time",
            SECTION,
            "mean logarithm of the dimension when 90 % are validated over that at the start; by chance 0",
            _change("start", "generalized"),
            chance=shuffled("moments", "dimension", within="network"),
            least=0.02,
            digits=3,
        ),
        Statement(
            "falls",
            "then decreases drastically afterwards",
            SECTION,
            "mean logarithm of the dimension at the end over that when 90 % are validated; by chance 0",
            _change("generalized", "end"),
            chance=shuffled("moments", "dimension", within="network"),
            most=-0.5,
        ),
    ),
)
def dimension(run: Run) -> Result:
    """Reproduce Figure 7 (left) of Liu et al.: the effective dimension of the embeddings over training.

    The figure marks the step at which a network reaches 90 % validation accuracy. The rules ask whether the
    dimension rises until then, and falls afterward.
    """
    setting: Followed = run.setting
    parts = list(in_parts(run, setting.seeds, (setting.piece, PIECE[1]), partial(_follow, setting)))
    curves = np.concatenate([part["dimension"] for part in parts])
    reached = np.concatenate([part["validation_steps"] for part in parts])
    steps = parts[0]["steps"]
    done = np.flatnonzero(np.isfinite(reached))
    at = [int(np.argmax(steps >= reached[k])) for k in done]
    values = np.stack([curves[done, 0], curves[done, at], curves[done, -1]], axis=1)
    moments = {
        "network": np.repeat(done, 3),
        "moment": np.tile(["start", "generalized", "end"], len(done)),
        "dimension": values.ravel(),
    }
    networks = {"network": np.arange(len(reached)), "validation_steps": reached}
    middle = {"step": steps} | {f"quartile_{k}": np.quantile(curves, k / 4, axis=0) for k in (1, 2, 3)}
    with style(6.0):
        figure = Figure(figsize=(6.0, 4.2))
        ax = figure.subplots()
        ax.plot(steps, curves.T, color=FIRST, linewidth=0.6, alpha=0.3)
        ax.plot(steps, middle["quartile_2"], color=FIRST, label=f"median of {len(curves)} networks")
        ax.plot(
            reached[done], values[:, 1], "o", color=SECOND, markersize=4, label="90 % validation accuracy"
        )
        ax.set(xlabel="step", ylabel="effective dimension exp(S)", ylim=(0, None))
        legend_below(ax)
    return Result({"moments": moments, "networks": networks, "curve": middle}, {"liu-7": figure})


def _follow(setting: Followed, part: range) -> dict[str, Any]:
    trained = train(
        setting.model,
        runs=len(part),
        first_run=part.start,
        seed=700,
        steps=setting.steps,
        record=max(setting.steps // setting.frames, 1),
        thresholds=ACCURACIES,
        learning_rate=setting.learning_rate,
        weight_decay=setting.weight_decay,
        **EMBEDDING,
    )
    return {
        "steps": trained.steps,
        "dimension": np.stack([effective_dimension(positions) for positions in trained.positions]),
        "validation_steps": steps_reached(trained)[1],
    }


# -- center ------------------------------------------------------------------------------------------------

SIGNIFICANT = 0.2
"""Rate from which dropout counts as significant in the rules."""


@dataclass(frozen=True)
class Dropouts:
    """Setting of Figure 7 (center): networks at several rates of dropout, without weight decay.

    Attributes
    ----------
    model : TokenTransformer
        Network to train.
    rates : sequence of float
        Rates of dropout.
    seeds : int
        Number of networks at each rate.
    steps : int
        Largest number of steps of training.
    learning_rate : float, default 1e-3
        Learning rate of the decoder.
    """

    model: TokenTransformer
    rates: Sequence[float]
    seeds: int
    steps: int
    learning_rate: float = 1e-3


def _with_much_dropout(tables: Tables) -> dict[str, Any]:
    rows = tables["networks"]
    return {name: values[rows["dropout"] >= SIGNIFICANT] for name, values in rows.items()}


def _under_a_thousand(tables: Tables, level: float) -> Interval:
    return share(_with_much_dropout(tables)["validation_steps"] < 1000, level)


def _speeds_up(tables: Tables, level: float) -> Interval:
    rows = tables["networks"]
    return rank_correlation(rows["dropout"], rows["validation_steps"], level)


def _comprehends(tables: Tables, level: float) -> Interval:
    """Return the share of networks with much dropout that generalize soon after they fit: comprehension."""
    rows = _with_much_dropout(tables)
    soon = rows["validation_steps"] < rows["train_steps"] + DELAY
    return share(np.isfinite(rows["validation_steps"]) & soon, level)


def _without_dropout(name: str) -> Draw:
    def column(rows: Any, _: np.random.Generator) -> Any:
        return np.resize(rows[name][rows["dropout"] == 0], len(rows[name]))

    return column


DRY = drawn(
    "the steps of networks without dropout for all",
    "networks",
    **{name: _without_dropout(name) for name in ("train_steps", "validation_steps")},
)


@recipe(
    "liu-7b",
    paper="Liu",
    item="Figure 7, center",
    shows="How soon networks generalize, by the rate of dropout. Networks of equal numbers share a dot; the "
    "dotted line is at 1000 steps.",
    quick=Dropouts(SMALL, (0.0, 0.2), 2, 100),
    paper_setting=Dropouts(TokenTransformer(), tuple(np.linspace(0, 0.5, 10).round(3).tolist()), 5, 20_000),
    cost="0.1 s for each step and network, up to 28 hours on two cores; each network is kept",
    rules=(
        Statement(
            "below 1000 steps",
            "With a significant dropout rate, the generalization time can be brought down to under 10^3"
            " steps",
            SECTION,
            "share of networks with dropout of 0.2 or more that generalize in fewer than 1000 steps",
            _under_a_thousand,
            chance="none: most networks have this much dropout; the rule on speed tests the rates",
            counter=DRY,
            least=0.5,
            note="all do at rates from 0.2 to 0.4, and one of ten above",
        ),
        Statement(
            "no grokking",
            "and the grokking phenomenon vanishes completely",
            SECTION,
            "share of networks with dropout of 0.2 or more that generalize within 1000 steps after they fit",
            _comprehends,
            chance="none: most networks have this much dropout; the rule on speed tests the rates",
            counter=DRY,
            least=0.8,
            note="all do at rates from 0.2 to 0.45, and one of five at 0.5",
        ),
        Statement(
            "speeds up",
            "Effect of dropout on speeding up generalization",
            "Figure 7",
            "Kendall's τ of the steps to 90 % of the validation set with the rate of dropout; by chance 0",
            _speeds_up,
            chance=shuffled("networks", "validation_steps"),
            most=-0.2,
            note="fewer steps up to a rate of a quarter, and more beyond (see the notes)",
        ),
    ),
)
def dropout(run: Run) -> Result:
    """Reproduce Figure 7 (center) of Liu et al.: steps to 90 % accuracy on both sets, over dropout.

    The table "networks" has a row for each network. The rules ask how many networks with much dropout
    generalize early, how many do so soon after they fit, and whether the steps to generalization fall as the
    rate of dropout rises.
    """
    setting: Dropouts = run.setting
    parts = (
        in_parts(run, setting.seeds, PIECE, partial(_with_dropout, setting, k), f"dropout-{rate:g}-networks")
        for k, rate in enumerate(setting.rates)
    )
    rows = joined(chain.from_iterable(parts))
    with style(6.0):
        figure = Figure(figsize=(6.0, 4.2))
        ax = figure.subplots()
        for part, color in (("train", FIRST), ("validation", SECOND)):
            steps = rows[f"{part}_steps"]
            done = np.isfinite(steps)
            ax.plot(rows["dropout"][done], steps[done], "o", color=color, markersize=5, label=part)
            ax.plot(rows["dropout"][~done], np.full((~done).sum(), setting.steps), "^", color=color)
        ax.plot([], [], "^", color=REFERENCE, label=f"never in {setting.steps} steps")
        ax.axhline(1000, color=REFERENCE, linestyle=":", linewidth=1)
        ax.set(xlabel="rate of dropout", ylabel="steps to 90 %", yscale="log")
        legend_below(ax)
    return Result({"networks": rows}, {"liu-7b": figure})


def _with_dropout(setting: Dropouts, number: int, part: range) -> dict[str, Any]:
    rate = setting.rates[number]
    trained = train(
        replace(setting.model, dropout=rate),
        runs=len(part),
        first_run=part.start,
        seed=750 + number,
        steps=setting.steps,
        record=setting.steps,
        observables=(),
        thresholds=ACCURACIES,
        track=20,
        stop="thresholds",
        learning_rate=setting.learning_rate,
        weight_decay=0.0,
        **EMBEDDING,
    )
    fitted, generalized = steps_reached(trained)
    return {"dropout": np.full(len(part), rate), "train_steps": fitted, "validation_steps": generalized}


# -- right -------------------------------------------------------------------------------------------------


def _decay_helps(tables: Tables, level: float) -> Interval:
    rows = tables["networks"]
    return contrast(np.isin(rows["phase"], GENERAL), ~inside(rows, ALL, (0.0, 1 / 3)), level)


def _plane(model: TokenTransformer, cells: int, steps: int, delay: float) -> Plane:
    return Plane(
        {"Transformer": model},
        ("learning_rate", 1e-6, 1e-2),
        ("weight_decay", 0.02, 20.0),
        cells,
        1,
        steps,
        EMBEDDING,
        seed=780,
        delay=delay,
        labels=("decoder learning rate", "decoder weight decay"),
    )


@recipe(
    "liu-7c",
    paper="Liu",
    item="Figure 7, right",
    shows="Phases of the transformer over the decoder's learning rate and weight decay.",
    quick=_plane(SMALL, 3, 60, 20),
    paper_setting=_plane(TokenTransformer(), 8, 100_000, 1000),
    cost="0.1 s for each step and network, two to seven days on two cores; each cell is kept",
    rules=(
        Statement(
            "weight decay",
            "a certain amount of weight decay proves beneficial to generalization",
            SECTION,
            "share of networks that generalize with more than the lowest third of decays minus that in it",
            _decay_helps,
            chance=CHANCE,
            least=0.1,
        ),
        Statement(
            "closer to memorization",
            "on transformers the grokking phase stays closer to the memorization phase (compared to the "
            "comprehension phase)",
            "Abstract",
            "mean distance to memorization, in cells, of comprehension minus that of grokking; by chance 0",
            closer_to_memorization,
            chance=CHANCE,
            least=0.5,
            independent="cell",
        ),
    ),
)
def phases(run: Run) -> Result:
    """Reproduce Figure 7 (right) of Liu et al.: phases of transformers over learning rate and weight decay.

    The table "networks" has a row for each network. The rules ask whether weight decay helps to generalize,
    and whether grokking is nearer to memorization than comprehension is.
    """
    return diagram(run, "liu-7c", width=1)
