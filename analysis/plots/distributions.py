"""Figures of values over runs: distributions, estimates with their intervals, and effect sizes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from analysis.plots.palette import FIRST, REFERENCE, SECOND
from analysis.plots.style import axes_of, legend_below, styled
from analysis.stats.effects import Difference
from analysis.stats.intervals import Interval
from physics.checks import real_array


@styled
def show_distributions(
    samples: Mapping[str, Any], ax: Axes | None = None, *, xlabel: str = "", title: str = ""
) -> Axes:
    """Draw the cumulative distribution of each sample, to compare several at once.

    Parameters
    ----------
    samples : mapping of str to array_like (n,)
        Values of each sample by its name. Values that are not finite are ignored, and a sample without finite
        values is only named in the legend.
    ax : Axes, optional
        Axes to draw on; new ones by default.
    xlabel, title : str, default ""
        Label of the values, and title of the axes.

    Returns
    -------
    Axes
        The axes.
    """
    ax = axes_of(ax)
    for name, values in samples.items():
        array = real_array(f"samples[{name!r}]", values)
        array = array[np.isfinite(array)]
        if len(array):
            ax.ecdf(array, label=f"{name} (n = {len(array)})")
        else:
            ax.plot([], [], label=f"{name} (none)")
    ax.set(xlabel=xlabel, ylabel="cumulative fraction", title=title)
    ax.grid(visible=True)
    legend_below(ax)
    return ax


@styled
def show_estimates(
    rows: Sequence[tuple[str, Any, Interval]], ax: Axes | None = None, *, xlabel: str = "", title: str = ""
) -> Axes:
    """Draw values of a paper next to ours, as points with bars for their intervals.

    Parameters
    ----------
    rows : sequence of (str, Interval or float, Interval)
        Label, value of the paper, and our estimate in each row, from top to bottom.
    ax : Axes, optional
        Axes to draw on; new ones by default.
    xlabel, title : str, default ""
        Label of the values, and title of the axes.

    Returns
    -------
    Axes
        The axes.
    """
    ax, named = axes_of(ax), set[str]()
    for y, (_, paper, ours) in enumerate(reversed(rows)):
        published = paper if isinstance(paper, Interval) else Interval(paper, paper, paper, 0)
        for place, value, color, marker, label in (
            (y + 0.13, published, REFERENCE, "D", "paper"),
            (y - 0.13, ours, FIRST, "o", "here"),
        ):
            if np.isfinite(value.estimate):  # the first of each kind stands in the legend
                look = {"fmt": marker, "color": color, "label": None if label in named else label}
                _bar(ax, place, value, markersize=6, **look)
                named.add(label)
    _name_rows(ax, [label for label, _, _ in rows])
    ax.set(xlabel=xlabel, title=title)
    if named:
        legend_below(ax)
    return ax


@styled
def show_effects(
    distributions: Mapping[str, Difference],
    ax: Axes | None = None,
    *,
    names: tuple[str, str] = ("first", "second"),
    title: str = "",
) -> Axes:
    """Draw Cliff's delta of values and Cohen's h of proportions, with 95 % intervals; 0 is no effect.

    Parameters
    ----------
    distributions : mapping of str to Difference
        Differences, such as `Comparison.distributions`.
    ax : Axes, optional
        Axes to draw on; new ones by default.
    names : pair of str, default ("first", "second")
        Names of the two ensembles.
    title : str, default ""
        Title of the axes.

    Returns
    -------
    Axes
        The axes.
    """
    ax = axes_of(ax)
    looks = {"Cliff's delta": ("o", FIRST), "Cohen's h": ("s", SECOND)}
    rows = [(x.name, *next(iter(x.effects.items()))) for x in distributions.values()]
    for y, (_, effect, value) in enumerate(reversed(rows)):
        marker, color = looks[effect]
        _bar(ax, y, value, fmt=marker, color=color, markersize=5.5)
    ax.axvline(0, color=REFERENCE, linewidth=0.9, linestyle=":")
    _name_rows(ax, [name for name, *_ in rows])
    ax.set_xlim(min(-1.05, ax.get_xlim()[0]), max(1.05, ax.get_xlim()[1]))
    for label, (marker, color) in looks.items():
        if any(effect == label for _, effect, _ in rows):
            ax.plot([], [], marker, color=color, markersize=5.5, label=label)
    ax.set(xlabel=f"effect size ({names[0]} minus {names[1]})", title=title)
    legend_below(ax)
    return ax


def _bar(ax: Axes, y: float, value: Interval, **looks: Any) -> None:
    """Draw an estimate with its interval at the height `y`, or nothing if there is no estimate."""
    if np.isfinite(value.estimate):
        ax.errorbar(value.estimate, y, xerr=value.error, capsize=3, **looks)


def _name_rows(ax: Axes, names: Sequence[str]) -> None:
    """Label the rows on the left, with the first row on top."""
    ax.set_yticks(range(len(names)), list(reversed(names)))
    ax.set_ylim(-0.6, len(names) - 0.4)
    ax.grid(visible=True, axis="x")
