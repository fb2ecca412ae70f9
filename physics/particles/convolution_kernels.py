"""Kernels between points and a grid: a smooth window spreads charges onto the grid and reads a field off it.

The window is a polynomial on each of its `width` unit intervals, so one loop (Horner's scheme) gives all of
its values at a point without transcendental functions.
"""

import numpy as np
from numpy.typing import NDArray

from physics.jit import kernel, rows_kernel

Array = NDArray[np.float64]


@kernel(reorder=True)
def _window(value: float, table: Array, weights: Array) -> int:
    """Write the window's values at the grid points around `value`, and return the first of these grid points.

    `value` is in units of the grid. `table` (degree + 1, width) holds the polynomials in the distance from
    the middle of each interval, the highest power first. The values are written to `weights` (width,).
    """
    begin = int(value - 0.5 * table.shape[1]) + 1
    t = begin - value + 0.5 * table.shape[1] - 0.5
    weights[:] = table[0]
    for power in range(1, table.shape[0]):
        row = table[power]
        for k in range(weights.size):
            weights[k] = weights[k] * t + row[k]
    return begin


@rows_kernel(lambda points, table, partial: len(partial))
def spread(begin: int, end: int, points: Array, table: Array, partial: Array) -> None:
    """Add a unit charge for every point to the grids `partial` (tasks, rows, columns).

    `points` (2, count) are in units of the grid, and `table` (degree + 1, width) holds the polynomials of the
    window, which must lie within the grid around every point. Each task spreads an equal share of the points
    onto its own grid; this call does the tasks from `begin` to before `end`. A point gives each grid point
    the product of the windows along both axes.
    """
    tasks, count = len(partial), points.shape[1]
    for task in range(begin, end):
        grid = partial[task]
        wx, wy = np.empty(table.shape[1]), np.empty(table.shape[1])
        for a in range(count * task // tasks, count * (task + 1) // tasks):
            row = _window(points[0, a], table, wx)
            column = _window(points[1, a], table, wy)
            for i in range(wx.size):
                line, weight = grid[row + i, column : column + wy.size], wx[i]
                for j in range(wy.size):
                    line[j] += weight * wy[j]


@rows_kernel(lambda points, *_: points.shape[1])
def gather(
    begin: int,
    end: int,
    points: Array,
    table: Array,
    field_x: Array,
    field_y: Array,
    scale: float,
    out: Array,
) -> None:
    """Read a field off the grid at the points from `begin` to before `end`, and write it to `out` (2, count).

    `points` (2, count) are in units of the grid, `table` (degree + 1, width) holds the polynomials of the
    window, and `field_x` and `field_y` (rows, columns) are the components of the field. Each result is the
    sum of the field weighted by the window, times the factor `scale`.
    """
    wx, wy = np.empty(table.shape[1]), np.empty(table.shape[1])
    for a in range(begin, end):
        row = _window(points[0, a], table, wx)
        column = _window(points[1, a], table, wy)
        total_x = total_y = 0.0
        for i in range(wx.size):
            line_x = field_x[row + i, column : column + wy.size]
            line_y = field_y[row + i, column : column + wy.size]
            along_x = along_y = 0.0
            for j in range(wy.size):
                along_x += line_x[j] * wy[j]
                along_y += line_y[j] * wy[j]
            total_x += wx[i] * along_x
            total_y += wx[i] * along_y
        out[0, a] = scale * total_x
        out[1, a] = scale * total_y


@rows_kernel(lambda x, *_: x.shape[1])
def push_samples(
    begin: int,
    end: int,
    x: Array,
    y: Array,
    taper_x: Array,
    taper_y: Array,
    softening_squared: float,
    push: Array,
) -> None:
    """Write both components of the tapered push d/(d² + ε²) to the grid `push` (2, rows, columns).

    `x` (2, rows) and `y` (2, columns) hold the difference d along an axis, and in their second row that to
    the next periodic image. The push of each image is multiplied by `taper_x` and `taper_y`, of the same
    shapes, which are factors from 0 to 1. `softening_squared` is ε², in the squared unit of `x`. This call
    writes the rows from `begin` to before `end`.
    """
    for i in range(begin, end):
        line_x, line_y = push[0, i], push[1, i]
        line_x[:] = 0.0
        line_y[:] = 0.0
        for m in range(2):
            for n in range(2):
                if taper_x[m, i] == 0.0:
                    continue
                dx, across, taper = x[m, i], y[n], taper_y[n]
                for j in range(across.size):
                    inverse = taper_x[m, i] * taper[j] / (dx * dx + across[j] * across[j] + softening_squared)
                    line_x[j] += dx * inverse
                    line_y[j] += across[j] * inverse
