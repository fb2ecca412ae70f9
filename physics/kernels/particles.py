"""Forces between pair sums, and the normalised Euler step of a particle ensemble (Musat §5-6).

A row of a ``prange`` is one pair sum (or one particle) of one run, so a large single system spreads over
the cores as well as an ensemble does. The sum over the other pair sums runs in pair order inside
its row: the same bits for any number of threads.
"""

import math

import numpy as np
from numba import prange
from numpy.typing import NDArray

from physics.jit import kernel

Array = NDArray[np.float64]


@kernel()
def _pairs(tokens: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Unordered pairs i ≤ j in lexicographic order, and their class (i + j) mod tokens."""
    count = tokens * (tokens + 1) // 2
    first = np.empty(count, np.int64)
    second = np.empty(count, np.int64)
    label = np.empty(count, np.int64)
    a = 0
    for i in range(tokens):
        for j in range(i, tokens):
            first[a] = i
            second[a] = j
            label[a] = (i + j) % tokens
            a += 1
    return first, second, label


@kernel()
def _force_on_pair_sum(
    a: int,
    sums: Array,
    units: Array,
    label: NDArray[np.int64],
    attraction: float,
    repulsion: float,
    alignment_same: float,
    alignment_diff: float,
    softening_squared: float,
    out: Array,
) -> None:
    """Write the force on pair sum `a` to `out`.

    `sums` and `units` are (dim, pairs), the structure of arrays that lets the loops over `b` stream. The
    four constants hold their weights already.
    """
    dim, pairs = sums.shape
    radial = np.zeros(pairs)  # first |d|², then the factor of d = s_a - s_b
    aligned = np.zeros(pairs)  # first s_a·s_b, then the factor of s_b/|s_b|
    for k in range(dim):
        s = sums[k, a]
        for b in range(pairs):
            d = s - sums[k, b]
            radial[b] += d * d
            aligned[b] += s * sums[k, b]
    for b in range(pairs):
        same = label[b] == label[a]
        distance_squared = radial[b] + softening_squared
        if distance_squared == 0.0:  # coincident pair sums without softening have no direction
            radial[b] = 0.0
        elif same:
            radial[b] = -attraction / math.sqrt(distance_squared)
        else:
            radial[b] = repulsion / distance_squared
        if aligned[b] > 0.0:
            aligned[b] = alignment_same if same else -alignment_diff
        else:
            aligned[b] = 0.0
    radial[a] = 0.0
    aligned[a] = 0.0
    for k in range(dim):
        s = sums[k, a]
        total = 0.0
        for b in range(pairs):
            total += radial[b] * (s - sums[k, b]) + aligned[b] * units[k, b]
        out[k] = total


@kernel(parallel=True)
def total_forces(
    positions: Array, constants: Array, softening_squared: float, pair_force: Array, forces: Array
) -> None:
    """Write the force on every particle to `forces` (runs, tokens, dim).

    `constants` = (attraction, repulsion, alignment within a class, alignment across classes), each times
    its weight. `pair_force` (runs, pairs, dim) is scratch. Exact: O(pairs²) for each run.
    """
    runs, tokens, dim = positions.shape
    first, second, label = _pairs(tokens)
    pairs = first.size
    sums = np.empty((runs, dim, pairs))
    units = np.empty((runs, dim, pairs))
    for run in prange(runs):
        for a in range(pairs):
            norm_squared = 0.0
            for k in range(dim):
                s = positions[run, first[a], k] + positions[run, second[a], k]
                sums[run, k, a] = s
                norm_squared += s * s
            scale = 1.0 / math.sqrt(norm_squared) if norm_squared > 0.0 else 0.0
            for k in range(dim):
                units[run, k, a] = sums[run, k, a] * scale
    for row in prange(runs * pairs):
        run = row // pairs
        a = row % pairs
        _force_on_pair_sum(
            a,
            sums[run],
            units[run],
            label,
            constants[0],
            constants[1],
            constants[2],
            constants[3],
            softening_squared,
            pair_force[run, a],
        )
    for run in prange(runs):
        forces[run] = 0.0
        for a in range(pairs):
            for k in range(dim):  # a pair (i, i) holds its particle twice, and so counts twice
                forces[run, first[a], k] += pair_force[run, a, k]
                forces[run, second[a], k] += pair_force[run, a, k]


@kernel(parallel=True)
def move_and_normalise(positions: Array, forces: Array, step_size: float) -> None:
    """Advance `positions` in place: x + step_size·F, then zero mean and unit variance on every axis.

    An axis on which all particles coincide has no scale; it is left at zero.
    """
    runs, tokens, dim = positions.shape
    for run in prange(runs):
        for k in range(dim):
            mean = 0.0
            for i in range(tokens):
                positions[run, i, k] += step_size * forces[run, i, k]
                mean += positions[run, i, k]
            mean /= tokens
            variance = 0.0
            for i in range(tokens):
                positions[run, i, k] -= mean
                variance += positions[run, i, k] * positions[run, i, k]
            variance /= tokens
            scale = 1.0 / math.sqrt(variance) if variance > 0.0 else 1.0
            for i in range(tokens):
                positions[run, i, k] *= scale
