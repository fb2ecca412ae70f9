"""Phase diagrams in the style of Liu et al.: the cells that were computed, without interpolation."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import NullFormatter

from analysis.phases import PHASES, Cell, PhaseDiagram
from analysis.plots.palette import INK, WHITE
from analysis.plots.palette import PHASES as COLORS
from analysis.plots.style import legend_below, styled

UNDECIDED: Any = {"edgecolor": INK, "hatch": "////", "linewidth": 0.0}
"""Look of a cell without a clear majority."""
LABELLED = 0.04
"""Smallest share of the plane at which the name of a phase is written into it."""


@styled
def show_phases(
    diagram: PhaseDiagram, ax: Axes | None = None, *, title: str = "", legend: bool = True
) -> Axes:
    """Draw each cell in the color of its majority phase, hatched if the majority is unclear.

    The name of a phase is written where the other phases are farthest, as in Liu et al., Fig. 6. Phases that
    cover less than a twenty-fifth of the diagram have no name in it.

    Parameters
    ----------
    diagram : PhaseDiagram
        Diagram to draw.
    ax : Axes, optional
        Axes to draw on; new ones by default.
    title : str, default ""
        Title of the axes.
    legend : bool, default True
        Whether to explain the colors below the axes.

    Returns
    -------
    Axes
        The axes.
    """
    ax = Figure().subplots() if ax is None else ax
    for cell in diagram.cells:
        _draw(diagram, cell, ax)
    for axis, ticks, scale, limits in (
        (diagram.x, ax.xaxis, ax.set_xscale, ax.set_xlim),
        (diagram.y, ax.yaxis, ax.set_yscale, ax.set_ylim),
    ):
        scale(axis.scale)
        limits(axis.value(0.0), axis.value(1.0))
        if axis.scale == "log" and axis.value(1.0) >= 10 * axis.value(0.0):
            ticks.set_minor_formatter(NullFormatter())  # ticks at the decades are enough
    for phase in PHASES:
        _name(diagram, phase, ax)
    ax.set(xlabel=diagram.x.label, ylabel=diagram.y.label, title=title)
    ax.tick_params(which="both", direction="out")
    if legend:
        for phase, color in COLORS.items():
            ax.fill_between([], [], color=color, label=phase)
        ax.fill_between([], [], **UNDECIDED, facecolor=WHITE, label="undecided")
        legend_below(ax, columns=3)
    return ax


def _draw(diagram: PhaseDiagram, cell: Cell, ax: Axes) -> None:
    """Draw one cell of a diagram as a rectangle in the color of its phase, hatched if it is undecided."""
    left, right = map(diagram.x.value, cell.x)
    low, high = map(diagram.y.value, cell.y)
    box = (left, low), right - left, high - low
    color = COLORS[cell.majority.phase]
    if diagram.decided(cell):
        ax.add_patch(Rectangle(*box, facecolor=color, edgecolor=WHITE, linewidth=0.4))
    else:
        ax.add_patch(Rectangle(*box, facecolor=color, **UNDECIDED))
        ax.add_patch(Rectangle(*box, fill=False, edgecolor=WHITE, linewidth=0.8))


def _name(diagram: PhaseDiagram, phase: str, ax: Axes) -> None:
    """Write the name of a phase into the cell of this phase that is farthest from the other phases."""
    here = np.array([cell.majority.phase == phase for cell in diagram.cells])
    if sum(cell.covered() for cell, inside in zip(diagram.cells, here, strict=True) if inside) < LABELLED:
        return
    centers = np.array([[np.mean(cell.x), np.mean(cell.y)] for cell in diagram.cells])
    walls = 2 * np.minimum(centers, 1 - centers).min(axis=1)[here]
    distance = np.linalg.norm(centers[here][:, None] - centers[~here], axis=2).min(axis=1, initial=1.0)
    x, y = centers[here][np.argmax(np.minimum(distance, walls))]
    box = {"boxstyle": "round,pad=0.2", "facecolor": WHITE, "alpha": 0.75, "linewidth": 0}
    ax.text(diagram.x.value(x), diagram.y.value(y), phase, ha="center", va="center", bbox=box)
