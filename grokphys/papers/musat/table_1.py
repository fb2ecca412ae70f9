"""Table 1 of Musat: structures and validation accuracy of networks by weight decay (Section 4)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy import stats

from analysis.plots.distributions import show_estimates
from analysis.plots.style import style
from analysis.stats.intervals import Interval
from grokphys.papers.evidence import correlation, difference, joined, mean, shuffled, where
from grokphys.papers.musat.ensembles import (
    EPOCHS,
    PAIRS,
    circles,
    gap,
    imperfections,
    networks,
    percent_of,
    table_of,
)
from grokphys.papers.recipe import Number, Printed, Result, Rule, Run, Statement, Tables, recipe
from grokphys.report.musat import PAPER_RUNS, TABLE_1

SECTION = "Section 4"
PERCENT = (0.0, 100.0)
"""Smallest and largest possible percentage."""
Measure = Callable[[Tables, float], Interval]


@dataclass(frozen=True)
class Setting:
    """Setting: number of networks at each weight decay, and epochs for which each is trained."""

    runs: int
    epochs: int


def _accuracy(decay: float, circle: bool) -> Measure:
    def measure(tables: Tables, level: float) -> Interval:
        return mean(where(tables["networks"], weight_decay=decay, circle=circle)["accuracy"], level)

    return measure


def _sampled(decay: float, circle: bool, count: int) -> Measure:
    """Return a `Measure` of our mean accuracy in %, whose interval includes the error of the paper's mean.

    The paper prints no error of its accuracies, so its number is taken as a mean over `count` networks with
    the variance of ours. The interval may exceed 100 %.

    Parameters
    ----------
    decay : float
        Weight decay.
    circle : bool
        Whether to take the networks with a circle, or those without.
    count : int
        Number of such networks in the paper.
    """

    def measure(tables: Tables, level: float) -> Interval:
        values = where(tables["networks"], weight_decay=decay, circle=circle)["accuracy"]
        found = mean(values, level)
        if len(values) < 2:
            return found
        t = float(stats.t.ppf((1 + level) / 2, len(values) - 1))
        half = t * float(values.std(ddof=1)) * (1 / len(values) + 1 / count) ** 0.5
        return Interval(found.estimate, found.estimate - half, found.estimate + half, len(values))

    return measure


def _related(decay: float) -> Measure:
    def measure(tables: Tables, level: float) -> Interval:
        rows = where(tables["networks"], weight_decay=decay, circle=False)
        return correlation(rows["imperfections"], rows["accuracy"], level)

    return measure


AS_MANY = "the paper states no error, so the interval is that of a mean over as many networks as it has"


def _numbers() -> tuple[Rule, ...]:
    rules: list[Rule] = []
    for decay, row in TABLE_1.items():
        source, rest = f"Table 1, weight decay {decay:g}", PAPER_RUNS - row.circles
        own, related = row.imperfections, row.correlation
        assert isinstance(related, Interval)
        rules += [
            Number(
                f"decay {decay:g}: circles (%)",
                percent_of(row.circles, source),
                circles("networks", 100, weight_decay=decay),
                margin=4.0,
                digits=1,
                possible=PERCENT,
            ),
            Number(
                f"decay {decay:g}: accuracy of {rest} that are no circles (%)",
                Printed(f"{row.rest_accuracy:.1f}", source),
                _sampled(decay, False, rest),
                margin=12.0,
                digits=1,
                note=AS_MANY,
                possible=PERCENT,
            ),
            Number(
                f"decay {decay:g}: grid imperfections",
                Printed(f"{own.estimate:.1f}", source, (own.low, own.high)),
                imperfections("networks", weight_decay=decay),
                margin=4.0,
                digits=1,
            ),
            Number(
                f"decay {decay:g}: correlation",
                Printed(f"{related.estimate:.2f}", source, (related.low, related.high)),
                _related(decay),
                margin=0.1,
            ),
        ]
        if row.circles:
            rules.append(
                Number(
                    f"decay {decay:g}: accuracy of {row.circles} circles (%)",
                    Printed(f"{row.circle_accuracy:.1f}", source),
                    _sampled(decay, True, row.circles),
                    margin=12.0,
                    digits=1,
                    note=AS_MANY,
                    possible=PERCENT,
                )
            )
    return tuple(rules)


def _more_accurate(decay: float) -> Statement:
    def measure(tables: Tables, level: float) -> Interval:
        return difference(_accuracy(decay, True)(tables, level), _accuracy(decay, False)(tables, level))

    return Statement(
        f"decay {decay:g}: circles are more accurate",
        "circles consistently have higher validation accuracy than non-circles",
        SECTION,
        "accuracy of circles minus that of the rest, in points; one validation pair of 31 is 3.2",
        measure,
        chance=shuffled("networks", "accuracy", within="weight_decay"),
        least=3.2,
        digits=1,
    )


def _highly_correlated(decay: float) -> Statement:
    return Statement(
        f"decay {decay:g}: accuracy follows imperfections",
        "for non-circles … the validation accuracy is highly correlated with the number of quantifiable grid "
        "imperfections",
        SECTION,
        "Pearson correlation of accuracy and imperfections of networks that are no circles; by chance 0",
        _related(decay),
        chance=shuffled("networks", "accuracy", within="weight_decay"),
        most=-0.5,
    )


def _draw(setting: Setting, tables: Tables) -> dict[str, Figure]:
    """Draw our circles, accuracies, imperfections and correlations next to those of the paper."""
    panels: dict[str, list[tuple[str, Any, Interval]]] = {}
    for decay, row in TABLE_1.items():
        constants = {"weight_decay": decay}
        paper = percent_of(row.circles, "")
        low, high = paper.interval or (np.nan, np.nan)
        circle = Interval(paper.value, low, high, PAPER_RUNS)
        for title, theirs, ours in (
            ("circles, %", circle, circles("networks", 100, **constants)),
            ("accuracy of circles, %", row.circle_accuracy, _accuracy(decay, True)),
            ("accuracy of non-circles, %", row.rest_accuracy, _accuracy(decay, False)),
            ("imperfections of non-circles", row.imperfections, imperfections("networks", **constants)),
            ("correlation of accuracy and imperfections", row.correlation, _related(decay)),
        ):
            panels.setdefault(title, []).append((f"weight decay {decay:g}", theirs, ours(tables, 0.95)))
    with style(9.6):
        figure = Figure(figsize=(9.6, 6.4))
        axes = list(figure.subplots(2, 3, sharey=True).flat)
    for ax, (title, rows) in zip(axes, panels.items(), strict=False):
        limits = PERCENT if title.endswith("%") else (-np.inf, np.inf)
        show_estimates([(name, paper, ours.within(*limits)) for name, paper, ours in rows], ax, xlabel=title)
        ax.set_xlabel(fill(title, 30))
        ax.get_legend().remove()
        for y, (_, _, ours) in enumerate(reversed(rows)):
            if ours.count == 1:  # a point without an interval
                beside: Any = {"textcoords": "offset points", "ha": "right", "va": "center"}
                ax.annotate("one network", (ours.estimate, y - 0.13), (-9, 0), **beside)
    axes[5].set_axis_off()
    words = (
        "paper, with its 95 % interval\nwhere it is known",
        "here, with the 95 % interval\nof our networks alone",
    )
    axes[5].legend(axes[0].get_legend_handles_labels()[0], words, loc="center")
    return {"musat-table1": figure}


PAPER = Setting(1000, EPOCHS)


@recipe(
    "musat-table1",
    paper="Musat",
    item="Table 1",
    shows=f"Circles, grid imperfections and accuracy of {PAPER.runs} networks at each weight decay.",
    quick=Setting(8, 300),
    paper_setting=PAPER,
    cost="half an hour",
    rules=(
        *_numbers(),
        *(_more_accurate(decay) for decay, row in TABLE_1.items() if row.circles),
        *(_highly_correlated(decay) for decay in TABLE_1),
        Statement(
            "weight decay makes circles",
            "weight decay plays a crucial role in the emergence of circular structures",
            "Section 2",
            "share of circles at weight decay 1 minus that at 0; by chance 0",
            gap(circles("networks", weight_decay=1.0), circles("networks", weight_decay=0.0)),
            chance=shuffled("networks", "weight_decay"),
            least=0.1,
        ),
        Statement(
            "weight decay reduces imperfections",
            "weight decay plays a crucial role … in reducing grid imperfections",
            "Section 2",
            "imperfections of networks that are no circles at weight decay 0 minus those at 1; 15.3 are a "
            "tenth of the pairs",
            gap(imperfections("networks", weight_decay=0.0), imperfections("networks", weight_decay=1.0)),
            chance=shuffled("networks", "weight_decay"),
            least=PAIRS / 10,
            digits=1,
        ),
    ),
    draw=_draw,
)
def table_1(run: Run) -> Result:
    """Reproduce Table 1 of Musat: circles, imperfections and validation accuracy at four weight decays.

    Networks of constant attention learn addition modulo 17. The table "networks" has a row for each. The
    rules compare four or five numbers at each weight decay with those of the paper. They also judge whether
    circles are more accurate, whether accuracy falls with imperfections, and whether circles become more
    frequent and imperfections fewer with weight decay.
    """
    setting: Setting = run.setting
    table = joined(run.keep(f"decay-{decay:g}", partial(_trained, decay, setting)) for decay in TABLE_1)
    return Result({"networks": table})


def _trained(decay: float, setting: Setting) -> dict[str, Any]:
    trained = networks(decay, runs=setting.runs, seed=1700 + round(10 * decay), epochs=setting.epochs)
    return {"weight_decay": np.full(setting.runs, decay), **table_of(trained)}
