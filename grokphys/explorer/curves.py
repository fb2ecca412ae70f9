"""Colors of classes and curves, and curves as data, which the page and films draw alike."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.plots import palette

SERIES = ("#0b6e99", "#c75b39", "#3c8a65", "#5b2a7a", "#917a28", "#1f1f1f")
"""Colors of curves: those of the library's figures, darker where they would be too light to see."""
DASHES = ("solid", "dashed", "dotted", "dotdash", "dashdot", "solid")
INK, FAINT, EDGE, WARM = "#1d2733", "#8d887d", "#444444", "#c2502f"
"""Colors of exact lines, of curves in the background, of the edges of discs, and of marks."""
SHADE = 0.72
"""Brightness of thin lines and small texts in the color of a class, compared with its areas."""


def class_colors(count: int) -> list[str]:
    """Return one color (#rrggbb) for each of `count` classes or tokens, as in the library's figures."""
    return _hexadecimal(palette.class_colors(count)[:, :3])


def line_colors(count: int) -> list[str]:
    """Return `class_colors`, darkened for thin lines and for text on a light background."""
    return _hexadecimal(SHADE * palette.class_colors(count)[:, :3])


def text_colors(count: int) -> list[str]:
    """Return black or white for text on each of the `class_colors`; dark mode inverts both alike."""
    return [palette.ink_on(color) for color in palette.class_colors(count)]


def _hexadecimal(rgb: NDArray[np.float64]) -> list[str]:
    return ["#" + bytes(color).hex() for color in np.rint(255 * rgb).astype(np.uint8)]


@dataclass(frozen=True)
class Curve:
    """A curve: values y (n,) against x (n,), and how it is drawn.

    With a `label` it is named in the legend; `above` draws it over all others.
    """

    x: Any
    y: Any
    color: str
    dash: str = "solid"
    name: str = ""
    label: str = ""
    width: float = 1.7
    above: bool = False


def series(x: Any, curves: Mapping[str, Any], *, label: bool = True) -> list[Curve]:
    """Return curves against x, by their names, in the colors and dashes of the design."""
    return [
        Curve(x, y, SERIES[k % len(SERIES)], DASHES[k % len(DASHES)], name, name if label else "")
        for k, (name, y) in enumerate(curves.items())
    ]


def cycle(x: Any, curves: Sequence[Any], dash: str = "solid", first: int = 0) -> list[Curve]:
    """Return curves in the colors of as many tokens or classes, with names that count from `first`."""
    colors = line_colors(len(curves)) if len(curves) else []
    return [
        Curve(x, y, color, dash, str(k))
        for k, (y, color) in enumerate(zip(curves, colors, strict=True), first)
    ]
