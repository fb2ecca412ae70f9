"""Figures of embeddings as points in a plane."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from analysis.plots.palette import FRAME, REFERENCE, class_colors, ink_on
from analysis.plots.style import axes_of, framed, points, styled
from physics.checks import one_embedding, point_sets


@styled
def show_embedding(
    E: Any, ax: Axes | None = None, *, labels: bool = True, outline: Any = None, title: str = ""
) -> Axes:
    """Draw an embedding in the plane of its first two axes, each token as a disc with its number.

    Parameters
    ----------
    E : array_like, shape (tokens, dim)
        One finite embedding. If it has one dimension, its points lie on a line.
    ax : Axes, optional
        Axes to draw on; new ones by default.
    labels : bool, default True
        Whether to write the number of each token into its disc.
    outline : array_like, shape (tokens, dim), optional
        Points that are drawn as open circles behind the discs, such as the shape that `E` is aligned to.
    title : str, default ""
        Title of the axes.

    Returns
    -------
    Axes
        The axes.

    Raises
    ------
    InputError
        If `E` is not one finite embedding of at least 3 tokens, or `outline` is not finite.
    """
    ax = axes_of(ax)
    planar = _planar(one_embedding("E", E))
    tokens = len(planar)
    if outline is not None:
        behind = _planar(point_sets("outline", outline))
        ring: Any = {"facecolors": "none", "edgecolors": REFERENCE, "linewidths": 1.0}
        ax.scatter(behind[:, 0], behind[:, 1], s=points(12.5) ** 2, zorder=1, **ring)
        ax.plot(*np.stack([planar, behind], axis=1).T, color=FRAME, linewidth=0.8, zorder=0)
    colors = class_colors(tokens)
    ax.scatter(
        planar[:, 0], planar[:, 1], s=points(10.5 if labels else 7) ** 2, c=colors, zorder=2, linewidths=0
    )
    if labels:
        for token, ((x, y), color) in enumerate(zip(planar.tolist(), colors, strict=True)):
            middle: Any = {"ha": "center", "va": "center_baseline", "fontsize": "small", "zorder": 3}
            # Panels are arranged by what stands around their frames; numbers inside need not be measured.
            ax.text(x, y, str(token), color=ink_on(color), in_layout=False, **middle)
    low, high = planar.min(axis=0), planar.max(axis=0)
    room = 0.12 * float(np.max(high - low))
    ax.update_datalim([low - room, high + room])  # equal scales cut a margin, but never data
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(0.02)
    framed(ax).set_title(title)
    return ax


def _planar(points: Any) -> Any:
    """Return the first two coordinates of points (tokens, dim); the second is 0 if there is none."""
    return np.pad(points, ((0, 0), (0, max(0, 2 - points.shape[1]))))[:, :2]
