"""What the figures of a view show, as data that the page and films draw alike, and the colors of both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.plots import palette

Array = NDArray[np.float64]
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


# -- panels ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Panel:
    """What one figure shows; `hint` says what can be done with it on the page."""

    title: str = ""
    hint: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class Tokens(Panel):
    """Tokens in a plane around the origin, as numbered discs with trails of where they came from.

    Attributes
    ----------
    paths : ndarray of float64, shape (frames, tokens, 2)
        Places in all frames, whose extent the figure keeps. A single frame has no trail of its own: on the
        page, it continues those of the frames before.
    frame : int, default -1
        The frame that is shown.
    order : ndarray of int, shape (tokens,), optional
        Place of each token around the cycle of colors, by default its number.
    chain : ndarray of int, optional
        Tokens that a line joins.
    arrows : ndarray of float64, shape (tokens, 2), optional
        Arrows at the tokens, which are shortened alike where they are too long.
    chosen : int, optional
        Token with a ring around it.
    labels : pair of str
        Labels of the axes in pictures.
    """

    paths: Array
    frame: int = -1
    order: Any = None
    chain: Any = None
    arrows: Array | None = None
    chosen: int | None = None
    labels: tuple[str, str] = ("", "")


@dataclass(frozen=True, kw_only=True, eq=False)
class Parallelograms(Tokens):
    """Tokens with the parallelograms of a training set, in the colors of their classes of `count`.

    In the plane, parallelograms are quadrilaterals with `corners` (n, 4, 2). On a line, each trained pair
    whose class (n,) has another trained pair is a half circle with a `center` (n,) and a `radius` (n,), above
    the line for even classes and below it for odd ones; a parallelogram is satisfied if its two half circles
    have the same center.
    """

    classes: Any
    count: int
    corners: Array | None = None
    center: Array | None = None
    radius: Array | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Sums(Panel):
    """Sums of pairs of tokens in a plane, with the color and the marker of their class.

    Attributes
    ----------
    points : ndarray of float64, shape (n, 2)
        Pair sums.
    pairs : array_like of int, shape (n, 2)
        Tokens of each pair.
    classes : array_like of int, shape (n,)
        Class of each pair sum, from 0.
    held_out : array_like of bool, shape (n,), optional
        Whether each pair is held out from training, and therefore hollow; by default none is.
    map : ndarray of uint8, shape (rows, columns), optional
        Classes that a network assigns to the points of the plane within `bounds`: left, right, bottom, top.
    extent : float, optional
        Largest coordinate of all frames of a film; by default that of the points.
    """

    points: Array
    pairs: Any
    classes: Any
    held_out: Any = None
    map: Any = None
    bounds: tuple[float, float, float, float] = (-1.0, 1.0, -1.0, 1.0)
    extent: float | None = None


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


@dataclass(frozen=True, kw_only=True, eq=False)
class Lines(Panel):
    """Curves, a horizontal line at a `level` such as a limit, and a vertical one at the present time `now`.

    The axes are logarithmic with `log`, a word of the axes such as "y" or "xy". The vertical range is
    `y_range`, where it is fixed. The curves end in dots with `dots`, and `columns` of them stand side by side
    in the legend. On an axis of whole numbers there are about `whole` ticks.
    """

    curves: Sequence[Curve]
    now: float | None = None
    level: float | None = None
    xlabel: str = "step"
    ylabel: str = ""
    log: str = ""
    y_range: tuple[float, float] | None = None
    dots: bool = True
    columns: int = 4
    whole: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Matrix(Panel):
    """A square matrix as colors, red if positive and blue if negative, whose axes count from `first`.

    On a logarithmic scale, entries below a hundredth of the largest are still pale.
    """

    values: Any
    rows: str
    columns: str
    first: int = 0
    log: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Bars(Panel):
    """The magnitude (count,) of each frequency from 1 as a bar in the color of the frequency."""

    magnitude: Array


@dataclass(frozen=True, kw_only=True, eq=False)
class PairGrid(Panel):
    """A cell for each pair (i, j) of symbols with i ≤ j.

    A pair of `samples` (n, 2) is filled if it is `trained` (n,), framed if its answer `follows` (n,) from the
    trained ones, and otherwise empty. A line joins each of `diagonals`, groups of pairs (k, 2).
    """

    samples: Any
    label: Any
    trained: Any
    follows: Any
    diagonals: Sequence[Any]


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


def sum_colors(panel: Sums) -> tuple[NDArray[np.str_], NDArray[np.str_]]:
    """Return the color of the area and of the edge of each pair sum."""
    classes, count = np.asarray(panel.classes), int(np.max(panel.classes)) + 1
    hollow = np.zeros(len(classes), bool) if panel.held_out is None else np.asarray(panel.held_out)
    area, line = (np.array(colors(count))[classes] for colors in (class_colors, line_colors))
    return np.where(hollow, "#ffffff", area), np.where(hollow, line, EDGE)


def shortened(vectors: Array, edge: float) -> Array:
    """Return arrows (n, 2), all shortened by one factor if one is longer than a third of `edge`."""
    longest = float(np.hypot(*vectors.T).max(initial=0.0))
    return vectors * min(1.0, edge / 3 / longest) if longest > 0 else vectors
