"""Maps of a classifier over the plane of its embedding, with the pair sums that it receives."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap

from analysis.plots.palette import INK, WHITE, class_colors
from analysis.plots.style import axes_of, framed, styled
from physics.checks import InputError, finite_array, regular_array

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
    array = _planar("points", points)
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
    seen, points = regular_array("classes", classes), None if sums is None else _planar("sums", sums)
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


def _planar(name: str, value: Any) -> Any:
    """Return checked points (n, 2)."""
    array = finite_array(name, value)
    if array.ndim != 2 or array.shape[1] != 2 or not len(array):
        raise InputError(f"{name} must have the shape (n, 2), got {array.shape}")
    return array
