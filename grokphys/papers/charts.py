"""Pictures of recipes: figures in the style of the library, and drawings that several of them share."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.circles.prediction import survival_rates
from analysis.plots.palette import DEAD, SURVIVES
from analysis.plots.style import legend_below as legend_below
from analysis.plots.style import points as points
from analysis.plots.style import style
from analysis.stats.intervals import CONFIDENCE, Interval
from grokphys.papers.evidence import mean


@contextmanager
def page(width: float, height: float, title: str = "", **options: Any) -> Iterator[Figure]:
    """Make a figure of a size in inches, in whose style everything in the context is drawn."""
    with style(width):
        figure = Figure(figsize=(width, height), **options)
        if title:
            figure.suptitle(title)
        yield figure


@contextmanager
def panels(
    width: float, height: float, rows: int = 1, columns: int = 1, title: str = "", **options: Any
) -> Iterator[tuple[Figure, Any]]:
    """Make a figure as `page` does, with the panels of `Figure.subplots`, which are yielded with it."""
    with page(width, height, title) as figure:
        yield figure, figure.subplots(rows, columns, **options)


def label(ax: Axes, x: str = "", y: str = "", title: str = "", *, legend: Any = None, **options: Any) -> None:
    """Name the axes, and put a legend below them if a curve has a label.

    `options` are those of `Axes.set`, and `legend` holds those of `legend_below`, or False for no legend.
    """
    ax.set(**{"xlabel": x or ax.get_xlabel(), "ylabel": y or ax.get_ylabel()} | options)
    if title:
        ax.set_title(title)
    if legend is not False and ax.get_legend_handles_labels()[0]:
        legend_below(ax, **(legend or {}))


def intervals(
    ax: Axes, places: Any, values: Sequence[Interval], *, across: bool = False, **look: Any
) -> Axes:
    """Draw estimates at places (n,) on the x-axis as points with error bars; a bound of NaN gives no bar.

    With `across`, the places are on the y-axis and the bars are horizontal. `look` holds options of
    `Axes.errorbar`.
    """
    middle, low, high = np.array([(value.estimate, value.low, value.high) for value in values]).T
    bars = np.nan_to_num(np.clip([middle - low, high - middle], 0, None))
    options: dict[str, Any] = {"marker": "o", "markersize": 4, "capsize": 2} | look
    where = (middle, places, None, bars) if across else (places, middle, bars)
    ax.errorbar(*where, **options)
    return ax


def means(
    ax: Axes, x: Any, y: Any, *, possible: Any = (-np.inf, np.inf), of: Any = mean, **look: Any
) -> None:
    """Draw the mean of y at each place on the x-axis with its 95 % interval.

    `of` is another estimate than `evidence.mean`, such as `evidence.share`.
    """
    places = np.unique(x)
    values = [of(np.asarray(y)[np.asarray(x) == place], CONFIDENCE).within(*possible) for place in places]
    intervals(ax, places, values, **look)


def ranges(ax: Axes, x: Any, y: Any, **look: Any) -> None:
    """Draw the median of y at each place on the x-axis, and shade the area from the least to the largest."""
    places = np.unique(x)
    low, middle, high = np.transpose([np.quantile(y[x == place], (0, 0.5, 1)) for place in places])
    (line,) = ax.plot(places, middle, **look)
    ax.fill_between(places, low, high, color=line.get_color(), alpha=0.15, linewidth=0)


def steps(ax: Axes, x: Any, steps: Any, most: int, never: str = "", **look: Any) -> None:
    """Draw the steps of networks to a goal over x, with triangles at `most` for those that never reach it.

    `never` is the label of the triangles.
    """
    done = np.isfinite(steps)
    look = {"linestyle": "none", "marker": "o"} | look
    ax.plot(x[done], steps[done], **look)
    if not done.all():
        ax.plot(x[~done], np.full((~done).sum(), most), **look | {"marker": "^", "label": never or None})


def survival(ax: Axes, values: Any, survived: Any, groups: Any, **look: Any) -> None:
    """Draw the survival rate of circles over a quantity, in bins of equally many circles, with intervals."""
    bins = survival_rates(values[:, None], survived[:, None], groups=groups)
    look = {"color": SURVIVES} | look
    intervals(ax, [one.value for one in bins], [one.rate for one in bins], **look)


def densities(ax: Axes, values: Any, survived: Any, edges: Any, quantity: str) -> None:
    """Draw the distribution of a quantity over dead circles, and over survivors."""
    for state, color, alive in (("dead", DEAD, False), ("survived", SURVIVES, True)):
        part = values[survived == alive]
        if len(part):  # an empty histogram has no density
            ax.hist(part, edges, density=True, alpha=0.55, color=color, label=f"{state} ({len(part)})")
    label(ax, quantity, "density")
