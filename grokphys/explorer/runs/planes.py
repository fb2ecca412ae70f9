"""Planes in which points of many dimensions are shown: pairs of axes, or of principal components."""

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
MOST_AXES = 5
"""Number of axes of which all pairs are offered."""
MOST_COMPONENTS = 6
LONGEST = 1 / 3
"""Largest length of an arrow, relative to the distance from the middle of its figure to the edge."""


def planes(dim: int) -> list[str]:
    """Return the names of the planes in `dim` dimensions, the simplest first."""
    if dim <= 2:
        return ["axes 1, 2"]
    axes = [f"axes {a}, {b}" for a, b in combinations(range(1, min(dim, MOST_AXES) + 1), 2)]
    components = [f"components {k}, {k + 1}" for k in range(1, min(dim, MOST_COMPONENTS), 2)]
    return [*axes, *components]


def plane_axes(E: Any, name: str, before: Array | None = None) -> Array:
    """Return orthonormal rows (2, dim) that span the plane of that name; the second is 0 for dim = 1.

    Principal components are rotated to be near the rows `before`, so that a film does not jump.
    """
    points = np.asarray(E, np.float64)
    dim = points.shape[1]
    kind, numbers = name.split(" ", 1)
    chosen = [int(number) - 1 for number in numbers.split(", ")]
    if kind == "axes":
        basis = np.eye(max(dim, 2))[:, :dim]
    else:
        basis = np.linalg.svd(points - points.mean(axis=0), full_matrices=True)[2]
    rows = basis[chosen]
    if kind == "axes" or before is None or before.shape != rows.shape:
        return rows
    left, _, right = np.linalg.svd(before @ rows.T)  # the rotation within the plane with the smallest change
    return np.asarray(left @ right @ rows)


def shortened(vectors: Array, edge: float) -> Array:
    """Return vectors (n, 2), all made shorter by one factor if the longest would not fit in a figure."""
    longest = float(np.hypot(*vectors.T).max(initial=0.0))
    return vectors * min(1.0, LONGEST * edge / longest) if longest > 0 else vectors
