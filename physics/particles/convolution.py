"""The repulsion d/(d² + ε²) of many points in the plane, computed as one convolution to a given tolerance.

The push d/(d² + ε²), with d the difference of two points and ε the softening length, is smooth on the scale
of ε. Its Fourier transform falls as exp(-ε|ξ|) with the wavenumber ξ, so a grid of spacing h resolves it up
to an error of about exp(-πε/h). Unit charges are spread onto the grid by a Kaiser-Bessel window and convolved
by a fast Fourier transform (FFT). The field is read off through the same window, whose transform is divided
out twice.

The grid is periodic and the points are not. The box is therefore twice as wide as the points, plus a strip in
which the push is tapered to zero, smoothly on a scale far above ε. Multipole methods do not apply, because
the softened push is not harmonic.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numba
import numpy as np
from numba import prange
from numpy.typing import NDArray
from scipy import fft, special

from physics.jit import kernel
from physics.values import Array

SAFETY = 3.0
"""Factor by which the grid is designed to be more accurate than the tolerance."""
CELL_COST, POINT_COST = 450.0, 4000.0
"""Measured time for a cell of the grid and for a point, in units of the time for a pair of the direct sum."""
SHAPE = 0.62 * math.pi
"""Kaiser-Bessel parameter for each grid point of the window, measured: aliasing errs like the cut-off."""
TASKS = 8
"""Number of grids onto which charges are spread in parallel; they are then added."""
SHARPEST = 1e-12
"""Smallest tolerance of the sum, relative to the largest push; rounding errors are not far below."""
MEMORY = 16_000_000
"""Largest number of grid cells, for which all arrays together take about 1 GB."""


@dataclass(frozen=True)
class Plan:
    """A grid that meets a tolerance for points of a given extent."""

    spacing: float
    """Distance h between grid points, in units of the positions."""
    width: int
    """Number of grid points under the window, along an axis."""
    shape: tuple[int, int]
    """Numbers of rows and columns of the grid."""
    taper: float
    """Width of the strip in which the push falls to zero, in units of the positions."""
    sharpness: float
    """Argument of the error function at the edges of the strip; a larger one makes the fall steeper."""


def plan(extent: Array, softening: float, tolerance: float, pair_count: int | None = None) -> Plan | None:
    """Choose a grid for the repulsion of points in the plane, or return None if none meets the tolerance.

    `extent` (2,) is the width of the set of points along each axis, in the same unit as the `softening` ε >
    0. `tolerance` is the largest error, relative to the largest push. There is no grid if rounding errors are
    too large, for more than `MEMORY` cells, and for an extent of 10⁶ softening lengths or more; nor, if the
    number of points `pair_count` is given, if it would take longer than the direct sum.

    Extents are rounded up to powers of 2^(1/8), so that a moving system uses one grid for many steps. Points
    that have collapsed to within the softening push each other less, and most of these pushes cancel; their
    tolerance is tightened for both reasons.
    """
    widest = float(extent.max())
    tolerance *= min(1.0, widest / (4.0 * softening)) ** 2
    if not (tolerance >= SHARPEST and widest < 1e6 * softening):
        return None
    z = 1.0  # solves 2 √(πz/2) exp(-z) = tolerance / SAFETY, where the left side is what the grid misses
    for _ in range(30):
        z = math.log(2.0 * SAFETY / tolerance * math.sqrt(math.pi * z / 2.0))
    spacing = math.pi * softening / z
    width = math.ceil(0.42 * z) + 1
    sharpness = 0.5 + math.sqrt(math.log(SAFETY / tolerance))
    rounded = [2.0 ** (math.ceil(8.0 * math.log2(max(e, softening))) / 8.0) for e in extent]
    taper = 5.0 * sharpness * softening
    shape = [
        int(fft.next_fast_len(math.ceil((2.0 * e + taper) / spacing) + 3 * width + 4, real=True))
        for e in rounded
    ]
    cells, pairs = shape[0] * shape[1], pair_count or math.inf
    if cells > MEMORY or CELL_COST * cells + POINT_COST * pairs > pairs**2 / 2:
        return None
    return Plan(spacing, width, (shape[0], shape[1]), taper, sharpness)


def on_particles(position: Array, pairs: Any, softening: float, chosen: Plan) -> Array:
    """Return the repulsion between all pair sums of one run as forces (tokens, 2) on its particles.

    `position` (tokens, 2) are the particles, `pairs` is the layout of their pair sums, and `chosen` is the
    grid that `plan` has chosen for the extent of the pair sums at this `softening`. The forces are for a
    constant of 1.
    """
    first, second, tokens = pairs.first, pairs.second, len(position)
    push = repulsion(np.ascontiguousarray((position[first] + position[second]).T), softening, chosen)
    both = [np.bincount(first, one, tokens) + np.bincount(second, one, tokens) for one in push]
    return np.stack(both, axis=1)


def repulsion(points: Array, softening: float, chosen: Plan) -> Array:
    """Return the sum of d/(d² + ε²) over all other points, for every point; points and sums are (2, count).

    Here d is the vector from the other point to this one, d² its squared length, and ε the `softening`.
    `chosen` is the grid that `plan` has chosen for the extent of these points.
    """
    table = _window(chosen.width)
    low = points.min(axis=1, keepdims=True)
    scaled = (points - low) / chosen.spacing + (chosen.width / 2 + 1)
    rows, columns = (int(scaled[k].max()) + chosen.width // 2 + 3 for k in range(2))
    partial = np.zeros((TASKS, rows, columns))
    spread(scaled, table, partial)
    charge = partial.sum(axis=0)
    del partial
    workers = numba.get_num_threads()
    # Rows without points are zero, so they are not transformed; nor are they needed in the result.
    lines = fft.rfft(charge, chosen.shape[1], axis=1, workers=workers)
    spectrum = fft.fft(lines, chosen.shape[0], axis=0, workers=workers, overwrite_x=True)
    fields = []
    for push in _push_spectra(chosen, softening):
        lines = fft.ifft(spectrum * push, axis=0, workers=workers, overwrite_x=True)[:rows]
        fields.append(fft.irfft(lines, chosen.shape[1], axis=1, workers=workers))
    out = np.empty_like(points)
    gather(scaled, table, fields[0], fields[1], out)
    return out


@lru_cache(maxsize=1)
def _push_spectra(chosen: Plan, softening: float) -> NDArray[Any]:
    """Return the transforms of both components of the tapered push, without the effect of the windows.

    Each is divided by the square of the window's transform, because the window is applied twice. They are
    complex (2, rows, columns // 2 + 1), real transforms of the grid.
    """
    axes, tapers, inverses = [], [], []
    for k, size in enumerate(chosen.shape):
        difference = fft.fftfreq(size, 1.0 / size) * chosen.spacing
        box = size * chosen.spacing
        images = np.stack([difference, difference - np.where(difference < 0.0, -box, box)])
        edge = 2.0 * (np.abs(images) - (box - chosen.taper) / 2.0) / chosen.taper - 1.0
        tapers.append(np.where(edge < 1.0, 0.5 * special.erfc(chosen.sharpness * edge), 0.0))
        axes.append(images)
        frequency = fft.rfftfreq(size) if k else fft.fftfreq(size)
        inverses.append(1.0 / _window_transform(2.0 * np.pi * frequency, chosen.width) ** 2)
    push = np.zeros((2, *chosen.shape))
    for m, n in np.ndindex(2, 2):
        x, y = axes[0][m][:, None], axes[1][n]
        weight = tapers[0][m][:, None] * tapers[1][n] / (x**2 + y**2 + softening**2)
        push[0] += x * weight
        push[1] += y * weight
    spectra = fft.rfft2(push, workers=numba.get_num_threads())
    spectra *= inverses[0][:, None]
    spectra *= inverses[1]
    return spectra


def _window_transform(frequency: Array, width: int) -> Array:
    beta = SHAPE * width
    root = np.sqrt((beta**2 - (width * frequency / 2.0) ** 2).astype(complex))
    return np.real(width * np.sinh(root) / root) / special.i0(beta)


@lru_cache(maxsize=8)
def _window(width: int) -> Array:
    """Return the window as polynomials (degree + 1, width), accurate to rounding errors.

    Column k belongs to the unit interval k of the window; rows run from the highest power to the constant.
    """
    degree = width + 5
    nodes = np.cos(np.pi * (np.arange(2 * degree) + 0.5) / (2 * degree)) / 2.0
    table = np.zeros((degree + 1, width))
    beta = SHAPE * width
    for k in range(width):
        z = 2.0 * (nodes + k + 0.5 - width / 2.0) / width
        values = special.i0(beta * np.sqrt(np.maximum(1.0 - z * z, 0.0))) / special.i0(beta)
        series = np.polynomial.Chebyshev.fit(nodes, values, degree, domain=[-0.5, 0.5])
        power = series.convert(kind=np.polynomial.Polynomial).coef[::-1]
        table[degree + 1 - power.size :, k] = power
    return table


# -- kernels between points and the grid ------------------------------------------------------------------


@kernel(reorder=True)
def _weights(value: float, table: Array, weights: Array) -> int:
    """Write the window's values at the grid points around `value`, and return the first of these grid points.

    `value` is in units of the grid. `table` (degree + 1, width) holds the polynomials in the distance from
    the middle of each interval, the highest power first. The values are written to `weights` (width,).
    """
    begin = int(value - 0.5 * table.shape[1]) + 1
    t = begin - value + 0.5 * table.shape[1] - 0.5
    for k in range(weights.size):
        weights[k] = table[0, k]
    for power in range(1, table.shape[0]):
        row = table[power]
        for k in range(weights.size):
            weights[k] = weights[k] * t + row[k]
    return begin


@kernel(parallel=True, rows=lambda points, *_: points.shape[1])
def spread(points: Array, table: Array, partial: Array) -> None:
    """Add a unit charge for every point to the grids `partial` (tasks, rows, columns).

    `points` (2, count) are in units of the grid, and `table` (degree + 1, width) holds the polynomials of the
    window, which must lie within the grid around every point. Each task spreads an equal share of the points
    onto its own grid. A point gives each grid point the product of the windows along both axes.
    """
    tasks, count = len(partial), points.shape[1]
    for task in prange(tasks):
        grid = partial[task]
        wx, wy = np.empty(table.shape[1]), np.empty(table.shape[1])
        for a in range(count * task // tasks, count * (task + 1) // tasks):
            row = _weights(points[0, a], table, wx)
            column = _weights(points[1, a], table, wy)
            for i in range(wx.size):
                line, weight = grid[row + i, column : column + wy.size], wx[i]
                for j in range(wy.size):
                    line[j] += weight * wy[j]


@kernel(parallel=True, rows=lambda points, *_: points.shape[1])
def gather(points: Array, table: Array, field_x: Array, field_y: Array, out: Array) -> None:
    """Read a field off the grid at the points, and write it to `out` (2, count).

    `points` (2, count) are in units of the grid, `table` (degree + 1, width) holds the polynomials of the
    window, and `field_x` and `field_y` (rows, columns) are the components of the field. Each result is the
    sum of the field weighted by the window.
    """
    count = points.shape[1]
    for task in prange(TASKS):
        wx, wy = np.empty(table.shape[1]), np.empty(table.shape[1])
        for a in range(count * task // TASKS, count * (task + 1) // TASKS):
            row = _weights(points[0, a], table, wx)
            column = _weights(points[1, a], table, wy)
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
            out[0, a], out[1, a] = total_x, total_y
