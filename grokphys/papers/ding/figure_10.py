"""Ding et al., Figure 10: how many circles survive, by the weight decay."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from analysis.circles.fourier import fourier_signals
from analysis.circles.survival import survives
from analysis.plots.style import legend_below, style
from analysis.stats.intervals import CONFIDENCE, Interval
from grokphys.papers.counters.ding import ONE_JUMP
from grokphys.papers.ding.training import PAPER, QUICK, Size, show_intervals
from grokphys.papers.evidence import jackknife, joined, mean, rank_correlation, shuffled, where
from grokphys.papers.pieces import in_parts
from grokphys.papers.recipe import Result, Run, Statement, Tables, recipe
from nets.training import train

SECTION = "Appendix A"
PIECE = 20, 130
"""Largest number of networks that are trained together, on a CPU (where they take an hour) and on a GPU."""
PART = 1 / 3
"""A circle survives here if its signal exceeds this fraction of the largest signal of its network.

All circles can, whereas they cannot all exceed the paper's limit, twice the mean signal. A weight decay that
shrinks all circles alike takes none of them below it, as it would below a fixed limit."""


@dataclass(frozen=True)
class Decays:
    """Setting of Figure 10: networks of several weight decays, all trained to the end.

    Attributes
    ----------
    size : Size
        Modulus, dimension and number of steps.
    decays : sequence of float
        Weight decays.
    networks : int
        Number of networks of each weight decay.
    seed : int
        Seed of all networks, which are numbered through all weight decays.
    """

    size: Size
    decays: Sequence[float]
    networks: int
    seed: int


def _all_survive(tables: Tables, level: float) -> Interval:
    rows = where(tables["networks"], weight_decay=0.0)
    return mean(rows["circles"] / rows["frequencies"], level)


def _generalizes(tables: Tables, level: float) -> Interval:
    return mean(where(tables["networks"], weight_decay=0.0)["accuracy"], level)


def _drops(tables: Tables, level: float) -> Interval:
    rows = tables["networks"]
    return rank_correlation(rows["weight_decay"], rows["circles"], level)


def _largest_drop(tables: Tables, level: float) -> Interval:
    """Return the largest drop of the mean number of circles from one weight decay to the next, as a fraction.

    The whole is the drop from the smallest weight decay to the fewest circles. If it is less than one circle,
    the result is NaN.
    """

    def part(decay: Any, circles: Any) -> float:
        group = np.unique(decay, return_inverse=True)[1]
        number = np.bincount(group, circles) / np.bincount(group)
        whole = number[0] - number.min()
        return float((number[:-1] - number[1:]).max() / whole) if whole >= 1 else np.nan

    rows = tables["networks"]
    return jackknife(part, (rows["weight_decay"], rows["circles"]), level, groups=rows["network"])


def _draw(setting: Decays, tables: Tables) -> dict[str, Figure]:
    """Draw mean numbers of circles, by two rules, and mean test accuracies over the weight decay."""
    rows, size = tables["networks"], setting.size
    smallest = min(decay for decay in setting.decays if decay)
    with style(9.6):
        figure = Figure(figsize=(9.6, 3.6))
        left, right = figure.subplots(1, 2)
        for ax, name, label, most in (
            (left, "circles", "above a third of the largest", size.tokens // 2),
            (left, "above_twice_mean", "above twice the mean", size.tokens // 2),
            (right, "accuracy", "test accuracy", 1),
        ):
            chosen = [rows[name][rows["weight_decay"] == decay] for decay in setting.decays]
            means = [mean(values, CONFIDENCE).within(0, most) for values in chosen]
            show_intervals(ax, setting.decays, means, label=label)
        left.set(ylabel="circles that survive", ylim=(0, None))
        left.set_title(
            f"p = {size.tokens}, d = {size.dim}, {size.steps} steps, {setting.networks} networks each"
        )
        right.set(ylabel="test accuracy", ylim=(0, 1.03))
        for ax in (left, right):
            ax.set_xscale("symlog", linthresh=smallest)
            ax.set_xlim(0, None)
            ax.set_xlabel(f"weight decay (linear below {smallest:g})")
            legend_below(ax)
    return {"ding-10": figure}


@recipe(
    "ding-10",
    paper="Ding",
    item="Figure 10; Appendix A",
    shows="How many circles survive, by the weight decay, and how accurate the networks are. At 0.05 one of "
    "20 networks is far from accurate, which makes the interval wide.",
    quick=Decays(QUICK, (0.0, 0.5, 2.0), 3, 0),
    paper_setting=Decays(
        PAPER,
        # The published code has values from 0.002 to 0.01 and from 0.1 to 1.5.
        (
            *(0.0, 0.002, 0.003, 0.004, 0.005, 0.007, 0.01, 0.02, 0.03, 0.05, 0.07),
            *(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5),
        ),
        20,
        100_010,
    ),
    cost="six to ten hours: all networks are trained to the end; twenty networks at a time are kept",
    rules=(
        Statement(
            "no decay",
            "there is no resource limit and it is not surprising that all the frequencies survive",
            SECTION,
            "share of the circles above a third of the largest signal at the end, without weight decay",
            _all_survive,
            chance=shuffled("networks", "circles"),
            least=0.95,
            possible=(0.0, 1.0),
            note="equal values of 20 networks cannot decide; some 100 networks would be needed",
        ),
        Statement(
            "no generalization",
            "while the neural network fails to generalize",
            SECTION,
            "test accuracy at the end, without weight decay; by chance 1/59",
            _generalizes,
            chance=shuffled("networks", "accuracy"),
            most=0.5,
            possible=(0.0, 1.0),
            note="16 of the 20 are at 1 % or below, and four at 11 to 65 %",
        ),
        Statement(
            "drops",
            "The number of final circular representations gradually drops",
            SECTION,
            "Kendall's τ of the number of circles above a third of the largest signal and weight decay; by "
            "chance 0",
            _drops,
            chance=shuffled("networks", "circles"),
            most=-0.3,
            note="one trend over all decays: the number is smallest at 0.1, and rises again up to 1.5",
        ),
        Statement(
            "gradually",
            "The number of final circular representations gradually drops",
            SECTION,
            "largest drop between neighboring decays, as a share of the whole; 1 for a single jump",
            _largest_drop,
            chance="shuffled, there is no drop of which a part could be taken; the rule before this tells it",
            counter=ONE_JUMP,
            most=0.5,
            note="26 networks, one of each decay, are left out at a time",
        ),
    ),
    draw=_draw,
)
def by_decay(run: Run) -> Result:
    """Reproduce Figure 10 of Ding et al.: final numbers of circles and test accuracies over the weight decay.

    The table "networks" has a row for each network. The rules judge how many circles survive and how accurate
    networks are without weight decay, and whether the number of circles drops gradually with it.
    """
    setting: Decays = run.setting
    size, count = setting.size, setting.networks

    def train_part(part: range) -> dict[str, Any]:
        numbers = np.array(part)
        decays = np.array(setting.decays)[numbers // count]
        trained = train(
            size.model,
            runs=len(part),
            first_run=part.start,
            steps=size.steps,
            seed=setting.seed,
            weight_decay=decays.tolist(),
            record=[size.steps],
            observables=("validation_accuracy",),
        )
        signals = fourier_signals(np.nan_to_num(trained.final))
        return {
            "weight_decay": decays,
            "network": numbers % count,
            "circles": (signals > PART * signals.max(axis=1, keepdims=True)).sum(axis=1),
            "above_twice_mean": survives(signals).sum(axis=1),
            "frequencies": np.full(len(part), signals.shape[1]),
            "accuracy": trained.observables["validation_accuracy"][:, -1],
        }

    return Result({"networks": joined(in_parts(run, len(setting.decays) * count, PIECE, train_part))})
