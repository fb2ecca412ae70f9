"""Planes in which tokens are shown: of two axes, of two principal components, or of the strongest circle."""

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
MOST_AXES = 5
"""Number of leading axes of which all pairs are offered as planes."""
MOST_COMPONENTS = 6
"""Number of leading principal components that are offered as planes, two at a time."""
STRONGEST = "strongest circle"
"""Name of the plane of the frequency with the largest Fourier signal."""
LONGEST = 1 / 3
"""Largest length of an arrow, relative to the distance from the middle of its figure to the edge."""


def planes(dim: int, *, cyclic: bool = False) -> list[str]:
    """Return the names of the planes on which points can be shown.

    Parameters
    ----------
    dim : int
        Number of dimensions of the points, at least 1.
    cyclic : bool, default False
        Whether tokens are added modulo their number, so that they can form circles of several frequencies.

    Returns
    -------
    list of str
        Names such as "axes 1, 2" and "components 1, 2", then "strongest circle" if `cyclic` is True. With up
        to 2 dimensions, "axes 1, 2" is the only one.
    """
    if dim <= 2:
        return ["axes 1, 2"]
    axes = [f"axes {a}, {b}" for a, b in combinations(range(1, min(dim, MOST_AXES) + 1), 2)]
    components = [f"components {k}, {k + 1}" for k in range(1, min(dim, MOST_COMPONENTS), 2)]
    return [*axes, *components, *([STRONGEST] if cyclic else [])]


def plane_axes(E: Any, name: str, before: Array | None = None) -> Array:
    """Return the axes of a plane.

    Parameters
    ----------
    E : array_like, shape (tokens, dim)
        Points, from which principal components and circles are computed.
    name : str
        Name of the plane, one of `planes`.
    before : ndarray of float64, shape (2, dim), optional
        Axes of an earlier frame. Those of components and of circles are turned or mirrored within their plane
        to be as near to these as possible, so that a film does not jump.

    Returns
    -------
    ndarray of float64, shape (2, dim)
        Orthonormal rows; the second is 0 for dim = 1.
    """
    points = np.asarray(E, np.float64)
    dim = points.shape[1]
    kind, numbers = name.split(" ", 1)
    if name == STRONGEST:
        rows = _strongest(points)
    else:
        chosen = [int(number) - 1 for number in numbers.split(", ")]
        if kind == "axes":
            return np.eye(max(dim, 2))[chosen, :dim]
        rows = np.linalg.svd(points - points.mean(axis=0), full_matrices=True)[2][chosen]
    if before is None or before.shape != rows.shape:
        return rows
    left, _, right = np.linalg.svd(before @ rows.T)  # of the orthogonal map with the smallest change
    return np.asarray(left @ right @ rows)


def _strongest(points: Array) -> Array:
    """Return the axes (2, dim) of the plane of the frequency with the largest Fourier signal."""
    from analysis.circles.fourier import fourier_signals
    from analysis.circles.geometry import frequency_plane

    return frequency_plane(points, 1 + int(np.argmax(fourier_signals(points)))).axes


def shortened(vectors: Array, edge: float) -> Array:
    """Return arrows that fit into a figure, all shortened by one factor if one of them is too long.

    Parameters
    ----------
    vectors : ndarray of float64, shape (n, 2)
        The arrows.
    edge : float
        Distance from the middle of the figure to its upper edge; an arrow may be `LONGEST` of it long.

    Returns
    -------
    ndarray of float64, shape (n, 2)
        The arrows.
    """
    longest = float(np.hypot(*vectors.T).max(initial=0.0))
    return vectors * min(1.0, LONGEST * edge / longest) if longest > 0 else vectors
