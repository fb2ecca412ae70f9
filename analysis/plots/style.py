"""The one look of all figures: style, axes, and the colours of tokens and of ensembles."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

STYLE = Path(__file__).with_name("grokphys.mplstyle")
TOKENS = "twilight_shifted"
"""Cyclic colour map of tokens and classes, in every view."""
FIRST, SECOND, GREY = "#0b6e99", "#d1603d", "#888888"
"""Of two ensembles, and of what both are held against."""

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Panels = NDArray[Any]
"""Axes (rows, columns) of one figure."""


def style() -> AbstractContextManager[None]:
    """Draw within the shared style."""
    return plt.style.context(STYLE)


def styled(draw: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Let a figure draw within the shared style, whoever calls it."""

    @wraps(draw)
    def wrapped(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with style():
            return draw(*args, **kwargs)

    return wrapped


def axes_of(ax: Axes | None) -> Axes:
    """Return `ax`, or new axes."""
    return plt.subplots()[1] if ax is None else ax


def panels(rows: int, columns: int, width: float, height: float, **options: Any) -> Panels:
    """Return the axes of a new figure in the shared style; a panel is `width` × `height` inches."""
    with style():
        figure = Figure(figsize=(width * columns, height * rows))
        return np.asarray(figure.subplots(rows, columns, squeeze=False, **options))


def framed(ax: Axes) -> Axes:
    """Take the ticks off, and draw a thin frame around: for planes whose axes mean nothing."""
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(True)
    ax.spines[:].set_color("#cccccc")
    return ax


def token_colors(tokens: int) -> Any:
    """One colour a token, around the cycle."""
    return mpl.colormaps[TOKENS](np.arange(tokens) / tokens)


def graded_colors(count: int) -> Any:
    """Colours (count, 4) of things that have an order but no cycle, such as symbols of plain addition."""
    return mpl.colormaps["viridis"](np.linspace(0, 0.88, count))
