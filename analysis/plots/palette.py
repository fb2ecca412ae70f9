"""The palette of all figures, in which one color has one meaning everywhere.

Neighboring colors differ by at least 10 in CIELAB (ΔE*ab), also for readers with protanopia, deuteranopia or
tritanopia, and when they are printed in shades of gray. A test computes this.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

SERIES = ("#0b6e99", "#d1603d", "#52b788", "#5b2a7a", "#e3c044", "#1f1f1f")
"""Curves and ensembles, in the order in which they are drawn."""
FIRST, SECOND = SERIES[:2]
"""The first and the second of two ensembles or curves."""
SURVIVES, DEAD = SECOND, "#b0b0b0"
"""Frequencies whose circle survives the training, and those that die."""
REFERENCE = "#888888"
"""Values with which results are compared: the paper's, chance, a prediction, a threshold."""
INK, SOFT, FRAME, WHITE = "#222222", "#555555", "#cccccc", "#ffffff"
"""Colors of text and exact lines, of explanations, of frames and connecting lines, and of the background."""
PHASES: Mapping[str, str] = {
    "comprehension": "#f6cf65",
    "grokking": "#d1603d",
    "memorization": "#0b5c88",
    "confusion": "#a6a6a6",
}
"""The four phases of learning."""
BADGE, BADGE_EDGE = "#ffe3a8", "#8a5a00"
"""Colors of the note on figures that were made at a toy setting."""

_TO_CONES = np.array(  # axes of Oklab: lightness, green to red, blue to yellow
    [
        [1.0, 0.3963377774, 0.2158037573],
        [1.0, -0.1055613458, -0.0638541728],
        [1.0, -0.0894841775, -1.2914855480],
    ]
)
_TO_LINEAR_RGB = np.array(
    [
        [4.0767416621, -3.3077115913, 0.2309699292],
        [-1.2684380046, 2.6097574011, -0.3413193965],
        [-0.0041960863, -0.7034186147, 1.7076147010],
    ]
)


def class_colors(count: int) -> NDArray[np.float64]:
    """Return one color for each class or token, such that neighbors in their cycle can be told apart.

    The hue runs once around the color wheel, and dark and light alternate. For an odd count the last color
    has a lightness in between, because it would otherwise be as dark as the first color, which follows it in
    the cycle.

    Parameters
    ----------
    count : int
        Number of classes.

    Returns
    -------
    ndarray of float64, shape (count, 4)
        Red, green, blue and opacity, each from 0 to 1.
    """
    place = np.arange(count)
    lightness = np.where(place % 2 == 0, 0.48, 0.78)
    if count % 2 and count > 1:
        lightness[-1] = 0.63
    return _wheel(lightness, place / max(count, 1))


def cyclic_colors(count: int) -> NDArray[np.float64]:
    """Return colors that change smoothly around a cycle, for points whose order the reader should see.

    Parameters
    ----------
    count : int
        Number of points of the cycle.

    Returns
    -------
    ndarray of float64, shape (count, 4)
        Red, green, blue and opacity, each from 0 to 1.
    """
    return _wheel(np.full(count, 0.66), np.arange(count) / max(count, 1))


def graded_colors(count: int) -> NDArray[np.float64]:
    """Return colors from dark to light, for items that have an order but no cycle.

    Parameters
    ----------
    count : int
        Number of items, such as the symbols of plain addition.

    Returns
    -------
    ndarray of float64, shape (count, 4)
        Red, green, blue and opacity, each from 0 to 1.
    """
    import matplotlib as mpl  # the explorer uses this module without matplotlib

    return np.asarray(mpl.colormaps["viridis"](np.linspace(0, 0.88, count)))


def ink_on(color: NDArray[np.float64]) -> str:
    """Return the color of text that is easier to read on a background.

    Parameters
    ----------
    color : array_like, shape (3,) or (4,)
        Background: red, green and blue from 0 to 1, and possibly the opacity.

    Returns
    -------
    str
        "black" or "white".
    """
    return "black" if float(np.asarray(color)[:3] @ (0.30, 0.59, 0.11)) > 0.5 else "white"


def _wheel(lightness: NDArray[np.float64], turn: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return colors of a hue wheel in Oklab (Ottosson 2020), whose hues look equally light and colorful."""
    angle, chroma = 0.5 + 2 * np.pi * turn, 0.13
    lab = np.stack([lightness, chroma * np.cos(angle), chroma * np.sin(angle)], axis=-1)
    linear = np.clip((lab @ _TO_CONES.T) ** 3 @ _TO_LINEAR_RGB.T, 0, 1)
    rgb = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return np.concatenate([np.round(255 * rgb) / 255, np.ones((len(rgb), 1))], axis=1)
