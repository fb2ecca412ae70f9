"""What can be asked of a picture without looking at it."""

import numpy as np
from matplotlib.container import ErrorbarContainer
from matplotlib.image import imread
from matplotlib.text import Text

from analysis.plots.style import PRINTED

SMALLEST = 7.0
"""Points that a letter must have on paper."""


def shows_something(path):
    """Whether a PNG file holds more than a background: no blank figure, no axes without content."""
    image = imread(path)[..., :3]
    assert min(image.shape[:2]) > 100
    colors, counts = np.unique(np.round(image.reshape(-1, 3), 2), axis=0, return_counts=True)
    return len(colors) > 20 and counts.max() < 0.995 * counts.sum()


def letters(figure):
    """Sizes in points of all texts of a figure when it is printed as wide as a page at most."""
    reduced = max(1.0, figure.get_figwidth() / PRINTED)
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    return [text.get_fontsize() / reduced for text in texts]


def lines(ax):
    """Data (x, y) of the labelled lines of axes, as lists, by label."""
    return {
        line.get_label(): tuple(np.asarray(values, float).tolist() for values in line.get_data())
        for line in ax.lines
        if not line.get_label().startswith("_")
    }


def bars(ax):
    """Places, estimates, lower and upper ends (4, n) of the error bars of axes, by label."""
    found = {}
    for n, one in enumerate(ax.containers):
        if not isinstance(one, ErrorbarContainer):
            continue
        label = one.get_label() if one.get_label()[:1] != "_" else n
        data = np.asarray(one.lines[0].get_data(), float)
        value = 0 if one.has_xerr else 1  # horizontal bars have their places on the other axis
        ends = np.array([segment[:, value] for segment in one.lines[2][0].get_segments()])
        found[label] = np.array([data[1 - value], data[value], ends.min(axis=1), ends.max(axis=1)])
    return found


def intervals(values):
    """What `bars` finds of intervals: estimates, lower and upper ends (3, n)."""
    sides = np.array([[one.estimate, one.low, one.high] for one in values], float).T
    return np.where(np.isnan(sides), sides[0], sides)


def areas(ax):
    """Lower and upper edge (2, n) of each filled band of axes, in the order of x."""
    found = []
    for band in ax.collections:
        if type(band).__name__ == "FillBetweenPolyCollection":
            at = band.get_paths()[0].vertices
            found.append(
                np.array([[side(at[at[:, 0] == x, 1]) for x in np.unique(at[:, 0])] for side in (min, max)])
            )
    return found


def title(ax):
    """Title of axes, which the style of the library sets on the left."""
    return ax.get_title(loc="left")
