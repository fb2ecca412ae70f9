"""Figure 6 of Musat: how weight decay limits the weights and the biases of the hidden layer (Appendix B)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from analysis.plots.style import legend_below, style
from analysis.stats.intervals import Interval
from grokphys.papers import evidence
from grokphys.papers.evidence import difference, joined, shuffled, where
from grokphys.papers.musat.ensembles import EPOCHS, Measure, networks
from grokphys.papers.recipe import Columns, Result, Run, Statement, Tables, recipe

SOURCE = "Appendix B"
LABELS = {"weight_norm": "weights, mean |w|", "bias_norm": "biases, mean |b|"}


@dataclass(frozen=True)
class Setting:
    """Setting: weight decays, number of networks at each of them, and steps (epochs) of training."""

    decays: Sequence[float]
    runs: int
    epochs: int


def _left(*names: str) -> Measure:
    """Return a `Measure` of the value of a column at weight decay 1, as a fraction of that at 0.

    If several columns are named, the value is the first divided by all others. Means over networks are
    geometric.
    """

    def measure(tables: Tables, level: float) -> Interval:
        return difference(*(_logarithms(tables, names, decay, level) for decay in (1.0, 0.0))).map(np.exp)

    return measure


def _logarithms(tables: Tables, names: Sequence[str], decay: float, level: float) -> Interval:
    rows = where(tables["networks"], weight_decay=decay)
    values = [np.log(rows[name]) for name in names]
    return evidence.mean(values[0] - sum(values[1:]), level)


GEOMETRIC = "the means over the networks are geometric"


def _draw(setting: "Setting", tables: Tables) -> dict[str, Figure]:
    """Draw the mean magnitudes of weights and biases after training, and during training at some decays."""
    with style(9.6):
        figure = Figure(figsize=(9.6, 4.8))
        left, right = figure.subplots(1, 2)
        _show_last(left, tables["networks"], setting)
        _show_course(right, tables["course"])
    return {"musat-6": figure}


@recipe(
    "musat-6",
    paper="Musat",
    item="Figure 6; Appendix B",
    shows="Magnitudes of the weights and of the biases of the hidden layer, by weight decay.",
    quick=Setting((0.0, 0.5, 1.0), 6, 200),
    paper_setting=Setting(tuple(np.linspace(0, 1, 11).round(1).tolist()), 100, EPOCHS),
    cost="ten minutes",
    rules=(
        *(
            Statement(
                part,
                "weight decay strongly limits the magnitude of the weights and biases",
                SOURCE,
                f"mean magnitude of the {part} at weight decay 1, as a part of that at 0; by chance 1",
                _left(name),
                chance=shuffled("networks", "weight_decay"),
                most=0.5,
                note=GEOMETRIC,
            )
            for part, name in (("weights", "weight_norm"), ("biases", "bias_norm"))
        ),
        Statement(
            "biases more",
            "biases being limited more than weights",
            SOURCE,
            "what is left of the biases at weight decay 1 over what is left of the weights; by chance 1",
            _left("bias_norm", "weight_norm"),
            chance=shuffled("networks", "weight_decay"),
            most=0.9,
            note=GEOMETRIC,
        ),
    ),
    draw=_draw,
)
def norms(run: Run) -> Result:
    """Reproduce Figure 6 of Musat: mean |w| and |b| of the hidden layer, by weight decay and over training.

    Networks of constant attention are trained at weight decays from 0 to 1. The table "networks" has their
    final mean magnitudes, and "course" the means over networks at each recorded step. The rules compare the
    magnitudes at weight decay 1 with those at 0.
    """
    setting: Setting = run.setting
    parts = [run.keep(f"decay-{decay:g}", partial(_trained, decay, setting)) for decay in setting.decays]
    last, course = [], []
    for decay, part in zip(setting.decays, parts, strict=True):
        last.append(
            {"weight_decay": np.full(setting.runs, decay)} | {name: part[name][:, -1] for name in LABELS}
        )
        course.append(
            {"weight_decay": np.full(len(part["steps"]), decay), "step": part["steps"]}
            | {name: part[name].mean(axis=0) for name in LABELS}
        )
    tables = {"networks": joined(last), "course": joined(course)}
    return Result(tables)


def _trained(decay: float, setting: Setting) -> dict[str, Any]:
    every = setting.epochs // 40
    trained = networks(
        decay,
        runs=setting.runs,
        seed=6600 + round(10 * decay),
        epochs=setting.epochs,
        record=every,
        observables=tuple(LABELS),
    )
    return {"steps": trained.steps} | {name: trained.observables[name] for name in LABELS}


def _show_last(ax: Any, rows: Columns, setting: Setting) -> None:
    for name, label in LABELS.items():
        found = [
            _logarithms({"networks": rows}, (name,), decay, 0.95).map(np.exp) for decay in setting.decays
        ]
        middle, low, high = np.array([(one.estimate, one.low, one.high) for one in found]).T
        bars = [middle - low, high - middle]
        ax.errorbar(setting.decays, middle, bars, fmt="o-", markersize=4, capsize=2, label=label)
    title = f"After {setting.epochs} epochs, {setting.runs} networks each"
    ax.set(
        xlabel="weight decay",
        ylabel="magnitude, geometric mean\nover the networks",
        title=title,
        ylim=(0, None),
    )
    legend_below(ax, title="with 95 % intervals")


def _show_course(ax: Any, rows: Columns) -> None:
    decays = np.unique(rows["weight_decay"])
    for decay in decays[:: max(len(decays) // 3, 1)]:
        own = where(rows, weight_decay=decay)
        (line,) = ax.plot(own["step"], own["weight_norm"], label=f"weight decay {decay:g}")
        ax.plot(own["step"], own["bias_norm"], color=line.get_color(), linestyle=(0, (4, 2)))
    ax.set(xlabel="epoch", ylabel="magnitude, arithmetic mean\nover the networks", ylim=(0, None))
    ax.set_title("Weights (lines), biases (dashed)")
    legend_below(ax)
