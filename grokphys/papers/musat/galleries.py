"""Figures 1, 2 and 5, Appendices D, E and G of Musat: final structures of embeddings and particles."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from analysis.plots.embeddings import show_embedding
from analysis.plots.style import style
from analysis.stats.intervals import Interval
from grokphys.papers.evidence import difference, joined, mean, share, shuffled, where
from grokphys.papers.musat.ensembles import (
    EPOCHS,
    FITTED,
    GRID,
    ORDERED,
    PAIRS,
    STEPS,
    Measure,
    gallery,
    networks,
    particles,
    random_positions,
    structures_of,
    table_of,
    what,
)
from grokphys.papers.recipe import Result, Run, Statement, Tables, recipe
from grokphys.report.musat import TABLE_1, TABLE_2
from nets.models import ConstantAttention

PLANES: Mapping[int, Sequence[tuple[int, int]]] = {
    3: ((0, 1), (0, 2), (1, 2)),
    4: ((0, 1), (1, 2), (2, 3)),
}
"""Pairs of dimensions that Appendix G shows, by the dimension D; for D = 4 the paper does not name them."""
SHOWN_HIGHER: Mapping[int, int] = {3: 7, 4: 8}


@dataclass(frozen=True)
class Setting:
    """Setting of the galleries.

    Attributes
    ----------
    runs : int
        Number of runs at each constant (f_a, weight decay or dimension).
    shown : int
        Number of runs whose final positions are drawn.
    steps : int
        Number of steps, or of epochs of training.
    """

    runs: int
    shown: int
    steps: int


def _kind(name: str, **constants: float) -> Measure:
    """Return a `Measure` of the share of runs with one kind of structure.

    Parameters
    ----------
    name : {"circles", "grids", "imperfect grids"}
        The kind. Grids have at most `GRID` imperfections, and imperfect grids more, but at most `ORDERED`.
        Circles are neither.
    **constants : float
        Values that columns must have; other runs are left out.
    """

    def measure(tables: Tables, level: float) -> Interval:
        rows = where(tables["runs"], **constants)
        bad = rows["imperfections"]
        kinds = {
            "circles": rows["circle"],
            "grids": ~rows["circle"] & (bad <= GRID),
            "imperfect grids": ~rows["circle"] & (bad > GRID) & (bad <= ORDERED),
        }
        return share(kinds[name], level)

    return measure


def _structures(quote: str, source: str, fitted: str = "", **constants: float) -> tuple[Statement, ...]:
    meaning = {
        "circles": "largest norm less than 1.2 times the smallest",
        "grids": f"at most {GRID} of {PAIRS} imperfections",
        "imperfect grids": f"{GRID + 1} to {ORDERED} imperfections",
    }
    return tuple(
        Statement(
            name,
            quote,
            source,
            f"share of {name} ({text}); random positions are none of these",
            _kind(name, **constants),
            chance=random_positions("runs"),
            least=0.05,
            independent="run",
            fitted=fitted,
            note="of runs with "
            + ", ".join(f"{key.replace('t_d', 't d')} = {at:g}" for key, at in constants.items()),
        )
        for name, text in meaning.items()
    )


PAPER_PARTICLES = Setting(500, 20, STEPS)
PAPER_NETWORKS = Setting(200, 20, EPOCHS)
PAPER_HIGHER = Setting(100, 8, EPOCHS)


@recipe(
    "musat-5",
    paper="Musat",
    item="Figure 5; Appendix E",
    shows=f"Final positions of the first {PAPER_PARTICLES.shown} of {PAPER_PARTICLES.runs} runs of "
    "particles, at three strengths f_a of the alignment.",
    quick=Setting(24, 8, STEPS),
    paper_setting=PAPER_PARTICLES,
    cost="a minute",
    rules=_structures(
        "the particles self-organize into the same structures as the embeddings in the trained transformer: "
        "circles, grids, and imperfect grids",
        "Section 6",
        FITTED,
        f_a=1.0,
    ),
)
def arrangements(run: Run) -> Result:
    """Reproduce Figure 5 and Appendix E of Musat: final positions of particles, and counts of their kinds.

    Particles are simulated at the alignment constants f_a = 0.5, 1 and 2. The table "runs" has a row for each
    run, and a figure for each f_a shows the first runs. The rules judge the shares of circles, grids and
    imperfect grids at f_a = 1.
    """
    setting: Setting = run.setting
    rows, pictures = [], {}
    for f_a in (1.0, 2.0, 0.5):
        end = particles(f_a, runs=setting.runs, seed=5100 + round(10 * f_a), steps=setting.steps).final
        rows.append({"f_a": np.full(setting.runs, f_a), **structures_of(end)})
        name = "musat-5" if f_a == 1.0 else f"musat-5-fa{f_a:g}"
        pictures[name] = gallery(end[: setting.shown], f"$f_a$ = {f_a:g}, {setting.steps} steps")
    assert {float(row["f_a"][0]) for row in rows} == set(TABLE_2)
    return Result({"runs": joined(rows)}, pictures)


def _fewer(tables: Tables, level: float) -> Interval:
    rows = tables["runs"]
    first, last = (where(rows, weight_decay=decay)["imperfections"] for decay in (0.0, 1.0))
    return difference(mean(first, level), mean(last, level))


@recipe(
    "musat-D",
    paper="Musat",
    item="Figures 1, 2; Appendix D",
    shows=f"Trained embeddings of the first {PAPER_NETWORKS.shown} of {PAPER_NETWORKS.runs} networks, at "
    "four weight decays.",
    quick=Setting(8, 8, 300),
    paper_setting=PAPER_NETWORKS,
    cost="ten minutes",
    rules=(
        *_structures(
            "embedding vectors tend to be positioned in arithmetic progressions, forming either grids or "
            "circles … sometimes, however, the embeddings self-organize into imperfect grids",
            "Section 4",
            weight_decay=1.0,
        ),
        Statement(
            "weight decay",
            "weight decay plays a crucial role … in reducing grid imperfections",
            "Section 2",
            "imperfections of all embeddings at weight decay 0 minus those at 1; by chance 0",
            _fewer,
            chance=shuffled("runs", "weight_decay"),
            least=PAIRS / 10,
            digits=1,
        ),
    ),
)
def embeddings(run: Run) -> Result:
    """Reproduce Figures 1 and 2 and Appendix D of Musat: final embeddings, and counts of their kinds.

    Networks of constant attention are trained at the four weight decays of Table 1. The table "runs" has a
    row for each network, and a figure for each weight decay shows the first networks. The rules judge the
    shares of circles, grids and imperfect grids at weight decay 1, and compare the imperfections of all
    embeddings at weight decays 0 and 1.
    """
    setting: Setting = run.setting
    rows, pictures = [], {}
    for decay in sorted(TABLE_1, reverse=True):
        trained = networks(decay, runs=setting.runs, seed=5200 + round(10 * decay), epochs=setting.steps)
        table = table_of(trained)
        rows.append({"weight_decay": np.full(setting.runs, decay), **table})
        name = "musat-D" if decay == 1.0 else f"musat-D-wd{decay:g}"
        title = f"Weight decay {decay:g}, {setting.steps} epochs"
        pictures[name] = gallery(trained.final[: setting.shown], title, table["accuracy"])
    return Result({"runs": joined(rows)}, pictures)


# -- more dimensions ---------------------------------------------------------------------------------------


def _disordered(dim: int) -> Measure:
    """Return a `Measure` of the share of pair sums in `dim` dimensions that are nearest to another class."""
    return lambda tables, level: mean(tables[f"D{dim}"]["imperfections"] / PAIRS, level)


@recipe(
    "musat-G",
    paper="Musat",
    item="Appendix G",
    shows=f"Trained embeddings in three and in four dimensions, of the first {SHOWN_HIGHER[3]} and "
    f"{SHOWN_HIGHER[4]} of {PAPER_HIGHER.runs} networks. Each row shows two of the axes.",
    quick=Setting(8, 8, 300),
    paper_setting=PAPER_HIGHER,
    cost="five minutes",
    rules=tuple(
        Statement(
            f"D = {dim}",
            "the similar structures emerge in higher-dimensional embedding spaces",
            "Section 4",
            "part of the pair sums whose nearest other one is of another class; 0.96 for random positions",
            _disordered(dim),
            chance=random_positions(f"D{dim}", dim),
            most=0.5,
        )
        for dim in PLANES
    ),
)
def higher(run: Run) -> Result:
    """Reproduce Appendix G of Musat: embeddings in three and four dimensions, shown two dimensions at a time.

    Networks of constant attention are trained at weight decay 1, with embeddings of three and of four
    dimensions. The tables "D3" and "D4" have a row for each network, and each dimension has a figure. The
    rules judge the share of pair sums whose nearest other pair sum is of another class.
    """
    setting: Setting = run.setting
    tables, pictures = {}, {}
    for dim, planes in PLANES.items():
        trained = networks(
            1.0, runs=setting.runs, seed=5300 + dim, epochs=setting.steps, model=ConstantAttention(dim=dim)
        )
        tables[f"D{dim}"] = table_of(trained)
        name = "musat-G" if dim == 3 else f"musat-G-D{dim}"
        pictures[name] = _show_planes(trained.final, planes, tables[f"D{dim}"]["accuracy"], dim)
    return Result(tables, pictures)


def _show_planes(final: Any, planes: Sequence[tuple[int, int]], accuracy: Any, dim: int) -> Figure:
    count = SHOWN_HIGHER[dim]
    with style(2.1 * count):
        figure = Figure(figsize=(2.1 * count, 7.3))
        figure.suptitle(f"D = {dim}, weight decay 1")
        axes = figure.subplots(len(planes), count)
        for n in range(count):
            for ax, plane in zip(axes[:, n], planes, strict=True):
                show_embedding(final[n][:, plane], ax)
                if n == 0:
                    ax.set_ylabel(f"axes {plane[0] + 1}, {plane[1] + 1}")
            words = what(final[n], accuracy[n]).replace("ratio ", "").replace(",\naccuracy ", "\n")
            axes[0, n].set_title(f"{n}: {words}", fontsize="small")
    return figure
