"""Beyond Liu et al.: how often two networks of one cell of a phase diagram have the same phase."""

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.phases.classification import PHASES
from analysis.plots.style import style
from analysis.stats.intervals import Interval
from grokphys.papers.evidence import difference, jackknife, mean
from grokphys.papers.liu.figures_06_13_to_15 import RATES
from grokphys.papers.liu.planes import CHANCE, Columns, Plane, name_phases, show_phases, train_plane
from grokphys.papers.recipe import Result, Run, Statement, Tables, recipe

Integers = NDArray[np.int64]
OURS = "beyond the papers: the figures of Liu et al. show one color in each cell"


def phase_map(rows: Columns) -> Integers:
    """Return the places in `PHASES` of the phases of all networks, int64 (rows, columns, networks).

    `rows` is the table "networks" of a plane, whose cells have equally many networks.
    """
    order = np.lexsort((rows["network"], rows["column"], rows["row"]))
    shape = (int(np.max(rows["row"])) + 1, int(np.max(rows["column"])) + 1, -1)
    return np.array([PHASES.index(name) for name in rows["phase"][order]]).reshape(shape)


def agreement(phases: Any) -> NDArray[np.float64]:
    """Return the share of pairs of networks that have the same phase, over the last axis of `phases`."""
    values = np.asarray(phases)
    pairs = combinations(range(values.shape[-1]), 2)
    return np.mean([values[..., a] == values[..., b] for a, b in pairs], axis=0)


def _counts(phases: Any) -> Integers:
    """Return how many networks of each cell have each of the `PHASES`, int64 (..., phases)."""
    return np.stack([np.sum(phases == k, axis=-1) for k in range(len(PHASES))], axis=-1)


def inner_cells(phases: Integers) -> NDArray[np.bool_]:
    """Return which cells have neighbors of one phase, bool (rows, columns).

    Neighbors are the cells on the left, on the right, above and below. The phase of a cell is here the most
    frequent one of its networks, or the first of several in the order of `PHASES`. A cell itself does not
    count, so that the result does not depend on the networks that `agreement` compares in it.
    """
    usual = np.pad(np.argmax(_counts(phases), axis=-1), 1, constant_values=-1)
    around = np.stack([usual[1:-1, :-2], usual[1:-1, 2:], usual[:-2, 1:-1], usual[2:, 1:-1]])
    first = np.max(around, axis=0)
    return np.all((around == first) | (around == -1), axis=0)


def _same(tables: Tables, level: float) -> Interval:
    return mean(agreement(phase_map(tables["networks"])).ravel(), level)


def _beyond_chance(tables: Tables, level: float) -> Interval:
    """Return the agreement within cells minus that of networks of different cells, with a jackknife."""
    phases = phase_map(tables["networks"])
    cells = phases.reshape(-1, phases.shape[-1])

    def beyond(*columns: Any) -> float:
        own = np.stack(columns, axis=-1)
        counts = _counts(own)
        total = counts.sum(axis=0)
        across = np.sum(total**2) - np.sum(counts**2)  # ordered pairs of equal networks of two cells
        everything = own.size**2 - len(own) * own.shape[1] ** 2
        return float(agreement(own).mean() - across / everything)

    return jackknife(beyond, tuple(cells.T), level)


def _inner_minus_others(tables: Tables, level: float) -> Interval:
    phases = phase_map(tables["networks"])
    inner, same = inner_cells(phases), agreement(phases)
    return difference(mean(same[inner], level), mean(same[~inner], level))


def _draw(plane: Plane, tables: Tables) -> dict[str, Figure]:
    """Draw a phase diagram of each seed, and the share of pairs of networks that agree in each cell."""
    phases = phase_map(tables["networks"])
    (model,) = plane.models.values()
    x, y = plane.axes(model)
    edges = plane.edges(model)
    with style(11.4):
        figure = Figure(figsize=(11.4, 4.0))
        *each, last = figure.subplots(1, phases.shape[-1] + 1, sharex=True, sharey=True)
        for k, ax in enumerate(each):
            show_phases(ax, edges, phases[..., k])
            ax.set_title(f"network {k} of each cell")
        _show_agreement(last, edges, agreement(phases))
        for ax in (*each, last):
            ax.set(xscale=x.scale, yscale=y.scale, xlabel=x.label)
        each[0].set_ylabel(y.label)
        name_phases(figure)
    return {"liu-seeds": figure}


def _show_agreement(ax: Axes, edges: list[Any], same: NDArray[np.float64]) -> None:
    """Draw the share of agreeing pairs of each cell, with a scale of colors."""
    drawn = ax.pcolormesh(*edges, same, cmap="Purples", vmin=0, vmax=1)
    ax.set_title("pairs that agree")
    ax.figure.colorbar(drawn, ax=ax, label="share of pairs")


@recipe(
    "liu-seeds",
    paper="beyond",
    item="Figure 6 (a) of Liu et al., network by network",
    shows="How often two networks of one cell of a phase diagram have the same phase.",
    quick=replace(RATES["quick"], each=2),
    paper_setting=RATES["paper_setting"],
    cost="an hour or two alone; no time after liu-6a, whose networks it shares",
    rules=(
        Statement(
            "one phase",
            "networks of one cell, which differ in their seed, have the same phase",
            OURS,
            "share of pairs of networks of one cell that have the same phase, mean over the cells",
            _same,
            chance=CHANCE,
            least=0.9,
            independent="cell",
        ),
        Statement(
            "beyond chance",
            "the learning rates tell the phase of a network",
            OURS,
            "the same share minus that of pairs of networks of two cells; by chance 0",
            _beyond_chance,
            chance=CHANCE,
            least=0.2,
            independent="cell",
        ),
        Statement(
            "borders",
            "networks of one cell differ where two phases meet",
            "this project; no paper says it",
            "the same share in cells whose neighbors all have one most frequent phase, minus that in the "
            "others; by chance 0",
            _inner_minus_others,
            chance=CHANCE,
            least=0.1,
            independent="cell",
            note="the two to four cells that share a side with it",
        ),
    ),
    draw=_draw,
)
def seeds(run: Run) -> Result:
    """Compare the networks of each cell of Figure 6 (a) of Liu et al., which differ only in their seed.

    The table "networks" is that of `liu-6a`, whose networks are trained only once. The rules judge how often
    two networks of one cell have the same phase, and where.
    """
    rows = train_plane(run, run.setting, family="liu-6a")
    return Result({"networks": rows})
