"""Table 2 of Musat: circles and grid imperfections of particles (Section 6); and for other step sizes."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from analysis.plots.distributions import show_estimates
from analysis.plots.style import style
from analysis.stats.intervals import Interval
from grokphys.papers.counters.builders import instead
from grokphys.papers.evidence import difference, joined
from grokphys.papers.musat.ensembles import (
    FITTED,
    PAIRS,
    STEPS,
    circles,
    counted,
    gap,
    imperfections,
    networks,
    particles,
    percent_of,
    shuffled_runs,
    structures_of,
)
from grokphys.papers.recipe import Number, Printed, Result, Rule, Run, Statement, Tables, recipe
from grokphys.report.musat import PAPER_RUNS, TABLE_2

SECTION = "Section 6"
DECAY = 1.0
"""Weight decay of the networks that are compared with the particles at the paper's f_a = 1."""


@dataclass(frozen=True)
class Setting:
    """Setting of Table 2.

    Attributes
    ----------
    runs : int
        Number of runs of the particles at each alignment constant f_a.
    networks : int
        Number of networks that are compared with the particles.
    epochs : int
        Number of steps of training of the networks.
    """

    runs: int
    networks: int
    epochs: int


def _numbers() -> tuple[Rule, ...]:
    rules: list[Rule] = []
    for f_a, row in TABLE_2.items():
        source, own = f"Table 2, f_a = {f_a:g}", row.imperfections
        both: Any = {"independent": "run", "fitted": FITTED, "digits": 1}
        printed = Printed(f"{own.estimate:.1f}", source, (own.low, own.high))
        rules += [
            Number(
                f"f_a = {f_a:g}: circles (%)",
                percent_of(row.circles, source),
                circles("particles", 100, f_a=f_a),
                margin=3.0,
                **both,
            ),
            Number(
                f"f_a = {f_a:g}: grid imperfections of the rest",
                printed,
                imperfections("particles", f_a=f_a),
                margin=2.0,
                **both,
            ),
        ]
    return tuple(rules)


def _more(low: float, high: float) -> Statement:
    return Statement(
        f"more circles from f_a = {low:g} to {high:g}",
        "increasing f_a leads to more circles",
        SECTION,
        f"share of circles at f_a = {high:g} minus that at {low:g}; by chance 0",
        gap(circles("particles", f_a=high), circles("particles", f_a=low)),
        chance=shuffled_runs("particles", "f_a"),
        least=0.05,
        independent="run",
        fitted=FITTED,
    )


ALIKE = "shuffling which system a run belongs to would make them alike; f_a = 0.5 and 2 are unlike"
UNLIKE = instead("particles", rows={"f_a": 2.0}, of={"f_a": 1.0})


def _draw_table(setting: Setting, tables: Tables) -> dict[str, Figure]:
    """Draw circles and imperfections of the particles by f_a, next to those of the paper."""
    with style(9.5):
        figure = Figure(figsize=(9.5, 2.9))
        left, right = figure.subplots(1, 2)
    shares, rest = [], []
    for f_a, row in TABLE_2.items():
        low, high = percent_of(row.circles, "").interval or (np.nan, np.nan)
        measures = circles("particles", 100, f_a=f_a), imperfections("particles", f_a=f_a)
        ours = [measure(tables, 0.95) for measure in measures]
        shares.append((f"$f_a$ = {f_a:g}", Interval(row.circles, low, high, PAPER_RUNS), ours[0]))
        rest.append((f"$f_a$ = {f_a:g}", row.imperfections, ours[1]))
    title = f"{setting.runs} runs each; {PAPER_RUNS} in the paper"
    show_estimates(shares, left, xlabel="circles, % of runs", title=title)
    show_estimates(rest, right, xlabel="grid imperfections of the rest", title="95 % intervals")
    return {"musat-table2": figure}


@recipe(
    "musat-table2",
    paper="Musat",
    item="Table 2",
    shows="How many runs of the particles end as circles, by the strength of their alignment.",
    quick=Setting(40, 10, 300),
    paper_setting=Setting(10_000, 1000, 2000),
    cost="ten minutes",
    rules=(
        *_numbers(),
        _more(0.5, 1.0),
        _more(1.0, 2.0),
        Statement(
            "circles as in the transformer",
            "the relative frequency of circles … very similar to the results obtained from the transformer",
            SECTION,
            "share of circles of particles at f_a = 1 minus that of networks at weight decay 1",
            gap(circles("particles", f_a=1.0), circles("networks")),
            chance=ALIKE,
            counter=UNLIKE,
            least=-0.1,
            most=0.1,
            independent="run",
            fitted=FITTED,
        ),
        Statement(
            "grid imperfections as in the transformer",
            "the average number of grid imperfections … very similar to the results obtained from the "
            "transformer",
            SECTION,
            "imperfections of particles at f_a = 1 minus those of networks at weight decay 1; 7.65 are a "
            "twentieth of the pairs",
            gap(imperfections("particles", f_a=1.0), imperfections("networks")),
            chance=ALIKE,
            counter=UNLIKE,
            least=-PAIRS / 20,
            most=PAIRS / 20,
            independent="run",
            fitted=FITTED,
        ),
    ),
    draw=_draw_table,
)
def table_2(run: Run) -> Result:
    """Reproduce Table 2 of Musat: circles and imperfections of particles for each alignment constant f_a.

    The tables "particles" and "networks" count the runs of each structure. The rules compare the share of
    circles and the mean imperfections with those of the paper. They also judge whether circles become more
    frequent with f_a, and whether particles at f_a = 1 agree with networks at weight decay 1.
    """
    setting: Setting = run.setting
    moved = [run.keep(f"f_a-{f_a:g}", partial(_moved, f_a, setting.runs, 0.02, 2600)) for f_a in TABLE_2]
    trained = run.keep(
        "networks",
        lambda: counted(
            {"weight_decay": DECAY},
            structures_of(networks(DECAY, runs=setting.networks, seed=2690, epochs=setting.epochs).final),
        ),
    )
    tables = {"particles": joined(moved), "networks": trained}
    return Result(tables)


def _moved(f_a: float, runs: int, step_size: float, seed: int) -> dict[str, Any]:
    """Simulate particles to the time 2 (`STEPS` steps of 0.02), and count the structures of the runs.

    The seed is `seed` and a number that f_a and the step size determine.
    """
    own = seed + round(100 * f_a) * 10 + round(200 * step_size)
    steps = round(STEPS * 0.02 / step_size)
    end = particles(f_a, runs=runs, seed=own, step_size=step_size, steps=steps).final
    return counted({"f_a": f_a, "step_size": step_size}, structures_of(end))


# -- over f_a and step size --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Map:
    """Setting of the map: simulations on a grid of alignment constants and step sizes.

    Attributes
    ----------
    alignments, step_sizes : sequence of float
        Values of f_a, and of the time that passes in one step.
    runs : int
        Number of runs at each pair of an alignment constant and a step size.
    """

    alignments: Sequence[float]
    step_sizes: Sequence[float]
    runs: int


def _over_f_a(tables: Tables, level: float) -> Interval:
    """Return the rise of the share of circles from f_a = 0.5 to 1 or from 1 to 2, at step size 0.005.

    It is the one whose interval begins lower.
    """
    rows = [circles("particles", f_a=f_a, step_size=0.005)(tables, level) for f_a in (0.5, 1.0, 2.0)]
    return min((difference(b, a) for a, b in pairwise(rows)), key=lambda gap: gap.low)


def _of_step(measure: Any) -> Any:
    return gap(measure(f_a=1.0, step_size=0.005), measure(f_a=1.0, step_size=0.02))


STEP = "a step has no chance to be shuffled: runs of another step are alike where the step does not matter"


def _draw_map(setting: Map, tables: Tables) -> dict[str, Figure]:
    """Draw circles and imperfections of the particles as maps over f_a and step size."""

    def grid(measure: Any, scale: float) -> Any:
        return [
            [
                scale * measure("particles", f_a=f_a, step_size=step)(tables, 0.95).estimate
                for f_a in setting.alignments
            ]
            for step in setting.step_sizes
        ]

    with style(9.5):
        figure = Figure(figsize=(9.5, 3.2))
        for ax, values, title in zip(
            figure.subplots(1, 2),
            (grid(circles, 100), grid(imperfections, 1)),
            ("circles, % of runs", "grid imperfections of the rest"),
            strict=True,
        ):
            image = ax.imshow(np.array(values), origin="lower", aspect="auto", cmap="viridis")
            ax.set_xticks(range(len(setting.alignments)), [f"{value:g}" for value in setting.alignments])
            ax.set_yticks(range(len(setting.step_sizes)), [f"{value:g}" for value in setting.step_sizes])
            ax.set(xlabel="alignment constant $f_a$", ylabel="step size", title=title)
            ax.grid(visible=False)
            figure.colorbar(image, ax=ax)
    return {"musat-map": figure}


PAPER_MAP = Map((0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0), (0.005, 0.01, 0.02, 0.04), 2000)


@recipe(
    "musat-map",
    paper="beyond",
    item="particles over the alignment constant f_a and the step size",
    shows="The share of circles, and the imperfections of the rest, by alignment and step size, of "
    f"{PAPER_MAP.runs} runs each.",
    quick=Map((0.5, 1.0, 2.0), (0.005, 0.02), 15),
    paper_setting=PAPER_MAP,
    cost="half an hour",
    rules=(
        Statement(
            "alignment",
            "f_a makes circles, not the size of the step",
            "beyond the papers",
            "smaller one of the rises of the share of circles from f_a = 0.5 to 1 and to 2, at step 0.005",
            _over_f_a,
            chance=shuffled_runs("particles", "f_a"),
            least=0.05,
            independent="run",
            fitted=FITTED,
        ),
        Statement(
            "circles do not depend on the step",
            "We then move each particle with a small step in the direction of the total force",
            SECTION,
            "share of circles at step 0.005 minus that at 0.02, f_a = 1, after the same time",
            _of_step(lambda **constants: circles("particles", **constants)),
            chance=STEP,
            counter=instead(
                "particles", rows={"f_a": 1.5, "step_size": 0.005}, of={"f_a": 1.0, "step_size": 0.005}
            ),
            least=-0.05,
            most=0.05,
            independent="run",
        ),
        Statement(
            "imperfections do not depend on the step",
            "We then move each particle with a small step in the direction of the total force",
            SECTION,
            "imperfections at step 0.005 minus those at 0.02, f_a = 1, after the same time; 4 are the "
            "paper's own half-width",
            _of_step(lambda **constants: imperfections("particles", **constants)),
            chance=STEP,
            counter=instead("particles", rows={"step_size": 0.04}, of={"step_size": 0.02}),
            least=-4.0,
            most=4.0,
            independent="run",
            note="4.0 is the half-width in Table 1; in Table 2 it is 4.8",
        ),
    ),
    draw=_draw_map,
)
def phase_map(run: Run) -> Result:
    """Beyond Musat's paper: map circles and imperfections of particles over f_a and step size.

    The table "particles" counts the runs of each structure, for each alignment constant f_a and step size.
    The rules judge whether the share of circles rises with f_a, and whether this share and the imperfections
    at f_a = 1 stay nearly the same at a smaller step.
    """
    setting: Map = run.setting
    table = joined(
        run.keep(f"{f_a:g}-{step:g}", partial(_moved, f_a, setting.runs, step, 5000))
        for step in setting.step_sizes
        for f_a in setting.alignments
    )
    return Result({"particles": table})
