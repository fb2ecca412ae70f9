"""The kernel that counts grid imperfections (Musat, Appendix A, Algorithm 2)."""

import math

import numpy as np
from numpy.typing import NDArray

from physics.jit import kernel, rows_kernel

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@kernel()
def _place(value: float, low: float, side: float, across: int) -> int:
    """Return the number of the cell, along one axis, in which `value` lies.

    Cells of width `side` begin at `low`, and the last of the `across` cells includes the upper edge.
    """
    return min(int((value - low) / side), across - 1) if across > 1 else 0


@kernel()
def _cells(sums: Array, low: Array, side: float, across: Integers, cell: Integers) -> None:
    """Write the number of the cell in which each pair sum lies to `cell` (pairs,).

    `sums` (pairs, dim) are the pair sums. The cells are squares of width `side` on the first one or two axes,
    with `across` (axes,) cells from the corner `low` (axes,), numbered row by row.
    """
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
    """Return the nearest pair sum to `a` other than `a` itself, or -1 if none is at a finite distance.

    If rounded distances are equal, the first of the pair sums in pair order is returned. `sums` (pairs, dim)
    are the pair sums, and `members` (pairs,) lists them by cell, cell c from slot ``begin[c]`` to before slot
    ``begin[c + 1]``. The other arguments are those of `_cells`. Shells of cells around the cell of `a` are
    searched outward, until everything beyond is certainly farther than the nearest one so far.
    """
    dim, axes = sums.shape[1], across.size
    center = np.empty(axes, np.int64)
    room = 0  # number of shells until all cells are searched
    for k in range(axes):
        center[k] = _place(sums[a, k], low[k], side, across[k])
        room = max(room, center[k], across[k] - 1 - center[k])
    nearest = math.inf
    found = -1
    for shell in range(room + 1):
        # A cell of this shell is at least shell - 1 sides away; the factors allow for rounding errors.
        if (shell - 1) * side * (1.0 - 1e-9) > nearest * (1.0 + 1e-12):
            break
        left = max(0, center[0] - shell)
        right = min(across[0] - 1, center[0] + shell)
        for i in range(left, right + 1):
            wall = axes == 1 or abs(i - center[0]) == shell
            bottom = max(0, center[1] - shell) if axes == 2 else 0
            top = min(across[1] - 1, center[1] + shell) if axes == 2 else 0
            for j in range(bottom, top + 1):
                if axes == 1:
                    if abs(i - center[0]) != shell:
                        continue
                elif not wall and abs(j - center[1]) != shell:
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

    `positions` (runs, tokens, dim) are the embeddings, `first` and `second` (pairs,) the two tokens of each
    pair sum, and `label` (pairs,) its class. The runs from `first_run` to before `last_run` are treated. A
    single pair sum has no other one and is marked.

    Ties of the rounded distance are decided by pair order, as in the paper's algorithm. The pair sums of a
    run are sorted into about as many cells as there are pair sums, along the first two axes. The cost is then
    proportional to their number if they are spread out.
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
