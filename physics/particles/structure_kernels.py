"""The kernel that counts grid imperfections (Musat, Appendix A, Algorithm 2)."""

import math

import numpy as np
from numpy.typing import NDArray

from physics.jit import kernel, rows_kernel

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@kernel()
def _place(value: float, low: float, side: float, across: int) -> int:
    """Return the number of the cell, along one axis, in which `value` lies."""
    return min(int((value - low) / side), across - 1) if across > 1 else 0


@kernel()
def _cells(sums: Array, low: Array, side: float, across: Integers, cell: Integers) -> None:
    """Write the number of the cell in which every pair sum lies."""
    pairs, axes = sums.shape[0], across.size
    for a in range(pairs):
        number = 0
        for k in range(axes):
            number = number * across[k] + _place(sums[a, k], low[k], side, across[k])
        cell[a] = number


@kernel()
def _nearest(
    a: int,
    sums: Array,
    low: Array,
    side: float,
    across: Integers,
    begin: Integers,
    members: Integers,
) -> int:
    """Return the nearest other pair sum; if rounded distances are equal, the first of them in pair order.

    Shells of cells around the cell of `a` are searched outward. The search ends when everything beyond is
    farther than the nearest one so far, by more than rounding errors can hide, so that no tie is missed.
    """
    dim, axes = sums.shape[1], across.size
    centre = np.empty(axes, np.int64)
    room = 0  # number of shells until all cells are searched
    for k in range(axes):
        centre[k] = _place(sums[a, k], low[k], side, across[k])
        room = max(room, centre[k], across[k] - 1 - centre[k])
    nearest = math.inf
    found = -1
    for shell in range(room + 1):
        # A cell of this shell is at least shell - 1 sides away; the factors allow for rounding errors.
        if (shell - 1) * side * (1.0 - 1e-9) > nearest * (1.0 + 1e-12):
            break
        left = max(0, centre[0] - shell)
        right = min(across[0] - 1, centre[0] + shell)
        for i in range(left, right + 1):
            wall = axes == 1 or abs(i - centre[0]) == shell
            bottom = max(0, centre[1] - shell) if axes == 2 else 0
            top = min(across[1] - 1, centre[1] + shell) if axes == 2 else 0
            for j in range(bottom, top + 1):
                if axes == 1:
                    if abs(i - centre[0]) != shell:
                        continue
                elif not wall and abs(j - centre[1]) != shell:
                    continue
                number = i * across[1] + j if axes == 2 else i
                for slot in range(begin[number], begin[number + 1]):
                    b = members[slot]
                    if b == a:
                        continue
                    squared = 0.0
                    for k in range(dim):
                        d = sums[a, k] - sums[b, k]
                        squared += d * d
                    distance = math.sqrt(squared)
                    if distance < nearest or (distance == nearest and b < found):
                        nearest = distance
                        found = b
                    if distance == 0.0:  # later ones in this cell cannot be nearer
                        break
    return found


@rows_kernel()
def grid_imperfections(
    first_run: int,
    last_run: int,
    positions: Array,
    first: NDArray[np.int32],
    second: NDArray[np.int32],
    label: NDArray[np.int32],
    imperfect: NDArray[np.bool_],
) -> None:
    """Mark in `imperfect` (runs, pairs) each pair sum whose nearest other pair sum has another class.

    `first` and `second` (pairs,) hold the two particles of each pair sum, and `label` (pairs,) its class.

    The distance is the rounded square root, as in the paper's algorithm, and only a strictly smaller one
    replaces the nearest so far. Ties are therefore decided by pair order, to the bit. Pair sums are sorted
    into about P cells along the first two axes, in pair order within a cell, so that the cost is O(P) if they
    are spread out.
    """
    dim = positions.shape[2]
    pairs = label.size
    axes = min(dim, 2)
    for run in range(first_run, last_run):
        sums = np.empty((pairs, dim))
        for a in range(pairs):
            for k in range(dim):
                sums[a, k] = positions[run, first[a], k] + positions[run, second[a], k]
        low = np.empty(axes)
        extent = np.empty(axes)
        for k in range(axes):
            low[k] = sums[:, k].min()
            extent[k] = sums[:, k].max() - low[k]
        side = extent.max() / pairs
        if axes == 2:
            side = max(side, math.sqrt(extent[0] * extent[1] / pairs))
        if not (side > 1e-140 and side < math.inf):  # one point, or squares would overflow
            side = math.inf
        across = np.empty(axes, np.int64)
        count = 1
        for k in range(axes):
            across[k] = int(extent[k] / side) + 1 if side < math.inf else 1
            count *= across[k]
        cell = np.empty(pairs, np.int64)
        _cells(sums, low, side, across, cell)
        begin = np.zeros(count + 1, np.int64)
        for a in range(pairs):
            begin[cell[a] + 1] += 1
        for c in range(count):
            begin[c + 1] += begin[c]
        fill = begin.copy()
        members = np.empty(pairs, np.int64)
        for a in range(pairs):
            members[fill[cell[a]]] = a
            fill[cell[a]] += 1
        for a in range(pairs):
            b = _nearest(a, sums, low, side, across, begin, members)
            imperfect[run, a] = b < 0 or label[b] != label[a]
