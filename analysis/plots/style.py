"""The style of all figures: fonts that are readable in print, axes, panels and legends."""

import contextlib
from collections.abc import Callable, Iterator
from functools import cache, wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.transforms import ScaledTranslation
from numpy.typing import NDArray

from analysis.plots.palette import FRAME

STYLE = Path(__file__).with_name("grokphys.mplstyle")
PRINTED = 7.2
"""Width of the text of a page in inches; wider figures are printed at this width."""
SIZES = ("font.size", "axes.titlesize", "axes.labelsize", "legend.fontsize", "figure.titlesize")
"""Settings in points, which are enlarged for figures that will be reduced in print."""

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Panels = NDArray[Any]
"""Axes (rows, columns) of one figure."""


@contextlib.contextmanager
def style(width: float = PRINTED) -> Iterator[None]:
    """Draw in the style of the library, within a ``with`` block.

    Parameters
    ----------
    width : float, default 7.2
        Width of the figure in inches. In figures wider than `PRINTED`, letters are drawn larger in
        proportion, so that they have at least 7 points on paper.
    """
    settings: dict[Any, Any] = dict(_settings())
    enlarged = max(1.0, width / PRINTED)
    with matplotlib.rc_context(settings | {name: enlarged * settings[name] for name in SIZES}):
        yield


@cache
def _settings() -> Any:
    """Return the settings of the style sheet; reading it takes longer than a panel takes to be made."""
    return matplotlib.rc_params_from_file(STYLE, use_default_template=False)


def points(size: float) -> float:
    """Return the size to draw with for a given size in print.

    Parameters
    ----------
    size : float
        Size in print, in points.

    Returns
    -------
    float
        Size in points, which is larger than `size` within a `style` of a wide figure, because that figure
        will be reduced in print.
    """
    return size * float(matplotlib.rcParams["font.size"] / _settings()["font.size"])


def styled(draw: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Decorate the function `draw` so that it draws in the style of the library.

    If one of the function's arguments is an Axes object, letters have the size that suits its figure.
    """

    @wraps(draw)
    def wrapped(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        ax = next((argument for argument in (*args, *kwargs.values()) if isinstance(argument, Axes)), None)
        with style(PRINTED if ax is None else figure_of(ax).get_figwidth()):
            return draw(*args, **kwargs)

    return wrapped


def figure_of(ax: Axes) -> Figure:
    """Return the whole figure that contains the axes."""
    figure = ax.get_figure(root=True)
    assert figure is not None, "axes that are drawn stand in a figure"
    return figure


def axes_of(ax: Axes | None) -> Axes:
    """Return the axes on which to draw.

    Parameters
    ----------
    ax : Axes or None
        Given axes, which are returned themselves; None makes a new figure.

    Returns
    -------
    Axes
        Axes on which to draw.
    """
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt  # only here: figures of the program need no window

    return plt.subplots()[1]


def panels(rows: int, columns: int, width: float, height: float, **options: Any) -> Panels:
    """Return the axes of a new figure in the style of the library.

    Parameters
    ----------
    rows, columns : int
        Numbers of rows and columns of panels.
    width, height : float
        Size of each panel in inches.
    **options
        Options of `matplotlib.figure.Figure.subplots`.

    Returns
    -------
    ndarray of Axes, shape (rows, columns)
        The axes.
    """
    with style(width * columns):
        figure = Figure(figsize=(width * columns, height * rows))
        return np.asarray(figure.subplots(rows, columns, squeeze=False, **options))


def framed(ax: Axes) -> Axes:
    """Remove the ticks of `ax` and draw a thin frame, for planes whose axes have no meaning; return `ax`."""
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(True)
    ax.spines[:].set_color(FRAME)
    return ax


def legend_below(ax: Axes, *, columns: int | None = None, **options: Any) -> Legend:
    """Put the legend below the axes, where it cannot hide data; it is empty if nothing is drawn.

    Parameters
    ----------
    ax : Axes
        Axes whose lines the legend explains.
    columns : int, optional
        Number of entries in a row; as many as fit by default.
    **options
        Further options of `Axes.legend`.

    Returns
    -------
    Legend
        The legend.
    """
    figure, font = figure_of(ax), matplotlib.rcParams["font.size"]
    labels = ax.get_legend_handles_labels()[1]
    if columns is None:
        letters = max(map(len, labels), default=1)
        room = figure.get_figwidth() * ax.get_position().width * 72 / (0.55 * font)
        columns = max(1, min(len(labels), int(room / (letters + 6))))
    # The words alone: Matplotlib's own labels would be laid out now and again when they are drawn.
    words = ax.xaxis.get_major_formatter().format_ticks(list(ax.get_xticks()))
    ticks = max((text.count("\n") for text in words), default=0)
    below = 2.0 + 1.3 * (ticks + len(ax.get_xlabel().splitlines()))
    shift = ScaledTranslation(0, -below * font / 72, figure.dpi_scale_trans)
    place: Any = {"bbox_to_anchor": (0.5, 0.0), "bbox_transform": ax.transAxes + shift}
    return ax.legend(loc="upper center", ncols=columns, **place, **options)
