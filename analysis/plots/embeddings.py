"""Figures of embeddings in a plane."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from analysis.plots.style import GREY, axes_of, framed, styled, token_colors
from physics.checks import point_sets
from physics.errors import InputError


@styled
def show_embedding(
    E: Any, ax: Axes | None = None, *, labels: bool = True, outline: Any = None, title: str = ""
) -> Axes:
    """Draw an embedding (tokens, dim) in the plane of its first two axes, each token with its number.

    `outline` (tokens, dim) is drawn as open circles behind it, such as the shape it is aligned to.
    """
    ax = axes_of(ax)
    points = point_sets("E", E)
    if points.ndim != 2:
        raise InputError(f"E must be one embedding (tokens, dim), got the shape {points.shape}")
    tokens = len(points)
    planar = np.pad(points, ((0, 0), (0, max(0, 2 - points.shape[1]))))[:, :2]
    if outline is not None:
        behind = point_sets("outline", outline)[:, :2]
        ax.scatter(
            behind[:, 0], behind[:, 1], s=150, facecolors="none", edgecolors=GREY, linewidths=1.0, zorder=1
        )
        ax.plot(*np.stack([planar, behind], axis=1).T, color="#bbbbbb", linewidth=0.8, zorder=0)
    colors = token_colors(tokens)
    ax.scatter(planar[:, 0], planar[:, 1], s=90, c=colors, zorder=2, linewidths=0)
    if labels:
        for token, (place, color) in enumerate(zip(planar, colors, strict=True)):
            ink = "black" if color[:3] @ (0.30, 0.59, 0.11) > 0.6 else "white"
            ax.annotate(
                str(token), place, ha="center", va="center_baseline", fontsize=6.5, color=ink, zorder=3
            )
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(0.12)
    framed(ax).set_title(title)
    return ax
