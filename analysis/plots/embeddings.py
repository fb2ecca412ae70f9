"""Figures of embeddings as points in a plane, and maps of classifiers over it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap

from analysis.plots.palette import FRAME, INK, REFERENCE, WHITE, class_colors, ink_on
from analysis.plots.style import axes_of, framed, points, styled
from physics.checks import InputError, finite_array, one_embedding, point_sets, regular_array


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


Bounds = tuple[float, float, float, float]


def plane(points: Any, *, resolution: int = 300, margin: float = 0.08) -> tuple[Any, Bounds]:
    """Return a square grid around points, for `show_classifier`.

    Parameters
    ----------
    points : array_like, shape (n, 2)
        Points that the grid must contain.
    resolution : int, default 300
        Number of points of the grid on each side.
    margin : float, default 0.08
        Distance of the outermost points from the edge, as a fraction of their extent.

    Returns
    -------
    grid : ndarray of float64, shape (resolution², 2)
        Points of the grid, row by row from the bottom.
    bounds : tuple of float
        Left, right, bottom and top of the grid, in the unit of `points`.

    Raises
    ------
    InputError
        If `points` are not finite, have another shape, or there is none.
    """
    array = _plane_points("points", points)
    low, high = array.min(axis=0), array.max(axis=0)
    half = (0.5 + margin) * (float((high - low).max()) or 1.0)
    (x, y) = (low + high) / 2
    steps = np.linspace(-half, half, resolution)
    grid = np.stack(np.meshgrid(x + steps, y + steps), axis=-1).reshape(-1, 2)
    return grid, (x - half, x + half, y - half, y + half)


@styled
def show_classifier(
    classes: Any,
    bounds: Sequence[float],
    ax: Axes | None = None,
    *,
    count: int,
    sums: Any = None,
    labels: Any = None,
    held_out: Any = None,
    title: str = "",
) -> Axes:
    """Draw the regions of a classifier, and pair sums over them (Musat, Figures 3 and 4).

    Parameters
    ----------
    classes : array_like of int, shape (rows, columns)
        Class 0 … count-1 at the points of a grid, from the lowest row to the highest.
    bounds : sequence of float
        Left, right, bottom and top of the grid.
    ax : Axes, optional
        Axes to draw on; new ones by default.
    count : int
        Number of classes, which are colored around a cycle.
    sums : array_like, shape (pairs, 2), optional
        Pair sums E_a + E_b.
    labels : array_like of int, shape (pairs,), optional
        Correct classes of the sums, which `sums` need. A marker in the color of its surroundings is
        classified correctly.
    held_out : array_like of bool, shape (pairs,), optional
        Pair sums that were not used for training; they are drawn as diamonds with a dark edge.
    title : str, default ""
        Title of the axes.

    Returns
    -------
    Axes
        The axes.

    Raises
    ------
    InputError
        If `classes` or `sums` have another shape, or `labels` do not match the sums.
    """
    seen, points = regular_array("classes", classes), None if sums is None else _plane_points("sums", sums)
    if seen.ndim != 2:
        raise InputError(f"classes must be a grid (rows, columns), got the shape {seen.shape}")
    if points is not None and np.shape(labels) != (len(points),):
        raise InputError(f"labels must hold one class for each of {len(points)} sums, got {np.shape(labels)}")
    left, right, bottom, top = bounds
    colors = class_colors(count)
    ax = axes_of(ax)
    look: Any = {"origin": "lower", "interpolation": "nearest", "cmap": ListedColormap(colors)}
    ax.imshow(seen, extent=(left, right, bottom, top), vmin=-0.5, vmax=count - 0.5, **look)
    if points is not None:
        apart = np.zeros(len(points), bool) if held_out is None else np.asarray(held_out, bool)
        for chosen, marker, edge in ((~apart, "o", WHITE), (apart, "D", INK)):
            inside = colors[np.asarray(labels)[chosen]]
            x, y = points[chosen].T
            ax.scatter(x, y, s=30, marker=marker, c=inside, edgecolors=edge, linewidths=0.8)
    framed(ax).set(title=title, xlim=(left, right), ylim=(bottom, top))
    return ax


def _plane_points(name: str, value: Any) -> Any:
    """Return checked points (n, 2)."""
    array = finite_array(name, value)
    if array.ndim != 2 or array.shape[1] != 2 or not len(array):
        raise InputError(f"{name} must have the shape (n, 2), got {array.shape}")
    return array
