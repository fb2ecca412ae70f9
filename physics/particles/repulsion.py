"""Kernels of the repulsion between all pair sums, where the direct sum spends most of its time.

In all of them `sums` (dim, P) are the P pair sums, axis by axis, and `out` (dim, P) the forces on them, to
which the repulsion is added. `repulsion` is its constant, weight included, and `softening_squared` is the
square ε² of the softening length.
"""

import math

import numpy as np
from numpy.typing import NDArray

from physics.jit import call, inner_kernel

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

GROUP, CHUNK = 16, 4096
"""Numbers of rows and of columns of pairs that are processed at once; a chunk holds whole groups."""


@inner_kernel(reorder=True)
def repel_rectangle(
    sums: Array,
    out: Array,
    a0: int,
    a1: int,
    b0: int,
    b1: int,
    repulsion: float,
    softening_squared: float,
) -> None:
    """Add the repulsion d/(d² + ε²) between two ranges of pair sums in the plane, to the forces on both.

    The pair sums from `a0` to before `a1` of `sums` (2, P) interact with those from `b0` to before `b1`; the
    ranges must not overlap. The forces are added to `out` (2, P). `repulsion` is the constant, and
    `softening_squared` is ε². Two rows are processed at once, which halves the memory traffic of the columns.
    """
    x, y = sums[0, b0:b1], sums[1, b0:b1]
    out_x, out_y = out[0, b0:b1], out[1, b0:b1]
    a = a0
    while a + 1 < a1:
        x0, y0, x1, y1 = sums[0, a], sums[1, a], sums[0, a + 1], sums[1, a + 1]
        total_x0 = total_y0 = total_x1 = total_y1 = 0.0
        for b in range(x.size):
            dx0, dy0, dx1, dy1 = x0 - x[b], y0 - y[b], x1 - x[b], y1 - y[b]
            inverse0 = repulsion / (dx0 * dx0 + (dy0 * dy0 + softening_squared))
            inverse1 = repulsion / (dx1 * dx1 + (dy1 * dy1 + softening_squared))
            total_x0 += dx0 * inverse0
            total_y0 += dy0 * inverse0
            total_x1 += dx1 * inverse1
            total_y1 += dy1 * inverse1
            out_x[b] -= dx0 * inverse0 + dx1 * inverse1
            out_y[b] -= dy0 * inverse0 + dy1 * inverse1
        out[0, a] += total_x0
        out[1, a] += total_y0
        out[0, a + 1] += total_x1
        out[1, a + 1] += total_y1
        a += 2
    if a < a1:
        x0, y0 = sums[0, a], sums[1, a]
        total_x0 = total_y0 = 0.0
        for b in range(x.size):
            dx0, dy0 = x0 - x[b], y0 - y[b]
            inverse0 = repulsion / (dx0 * dx0 + (dy0 * dy0 + softening_squared))
            total_x0 += dx0 * inverse0
            total_y0 += dy0 * inverse0
            out_x[b] -= dx0 * inverse0
            out_y[b] -= dy0 * inverse0
        out[0, a] += total_x0
        out[1, a] += total_y0


@inner_kernel(reorder=True)
def repel_group(
    sums: Array, out: Array, a0: int, a1: int, repulsion: float, softening_squared: float
) -> None:
    """Add the repulsion between all pairs of the pair sums `a0` to before `a1` in the plane.

    The pair sums are `sums` (2, P), and the forces on them are added to `out` (2, P). `softening_squared`
    must be greater than 0, so that the force of a pair sum on itself is 0 and needs no test.
    """
    x, y = sums[0, a0:a1], sums[1, a0:a1]
    out_x, out_y = out[0, a0:a1], out[1, a0:a1]
    for r in range(x.size):
        xr, yr = x[r], y[r]
        for b in range(x.size):
            dx, dy = x[b] - xr, y[b] - yr
            inverse = repulsion / (dx * dx + (dy * dy + softening_squared))
            out_x[b] += dx * inverse
            out_y[b] += dy * inverse


@inner_kernel(reorder=True)
def repel_apart(
    sums: Array,
    label: Integers,
    out: Array,
    a0: int,
    a1: int,
    b0: int,
    b1: int,
    repulsion: float,
    softening_squared: float,
) -> None:
    """Add the repulsion between pair sums a < b of different classes, in any dimension.

    The pair sums from `a0` to before `a1` of `sums` (dim, P) interact with those from `b0` to before `b1`,
    unless their classes in `label` (P,) are equal. The forces on both are added to `out` (dim, P).
    `repulsion` is the constant, and `softening_squared` is ε².

    If the softening is tiny, the repulsion between close pair sums of the same class is so large that adding
    and subtracting it again would lose all digits. Therefore the class is tested here. Without softening, two
    pair sums at the same place exert no force on each other.
    """
    dim = len(sums)
    weight = np.empty(b1 - b0)
    for a in range(a0, a1):
        begin = max(b0, a + 1)
        if begin >= b1:
            continue
        inverse = weight[: b1 - begin]
        labels = label[begin:b1]
        inverse[:] = softening_squared
        for k in range(dim):
            s, others = sums[k, a], sums[k, begin:b1]
            for b in range(inverse.size):
                inverse[b] += (s - others[b]) * (s - others[b])
        mine = label[a]
        for b in range(inverse.size):
            apart = labels[b] != mine and inverse[b] != 0.0
            inverse[b] = repulsion / (inverse[b] if apart else math.inf)
        for k in range(dim):
            s, others, out_k = sums[k, a], sums[k, begin:b1], out[k, begin:b1]
            total = 0.0
            for b in range(inverse.size):
                push = (s - others[b]) * inverse[b]
                total += push
                out_k[b] -= push
            out[k, a] += total


@inner_kernel()
def share_of_repulsion(
    sums: Array,
    task: int,
    tasks: int,
    repulsion: float,
    softening_squared: float,
    out: Array,
    repel_group: int,
    repel_rectangle: int,
) -> None:
    """Add the part of the repulsion in the plane that belongs to `task`, a number from 0 to `tasks` - 1.

    The forces on the pair sums `sums` (2, P) are added to `out` (2, P). Groups of `GROUP` rows interact with
    all later rows, `CHUNK` columns at a time. The groups are assigned to tasks in alternating order, so that
    all tasks have nearly the same number of pairs. `repulsion` is the constant, and `softening_squared` is
    ε². The arguments `repel_group` and `repel_rectangle` are the addresses of these kernels.
    """
    count = sums.shape[1]
    turn = 0
    for begin in range(0, count, CHUNK):
        end = min(begin + CHUNK, count)
        for a in range(0, end, GROUP):
            place = turn % (2 * tasks)
            turn += 1
            if min(place, 2 * tasks - 1 - place) != task:
                continue
            behind = min(a + GROUP, end)
            first = begin
            if a >= begin:
                call(repel_group, (sums, out, a, behind, repulsion, softening_squared))
                first = behind
            call(repel_rectangle, (sums, out, a, behind, first, end, repulsion, softening_squared))


@inner_kernel()
def repulsion_apart(
    sums: Array,
    label: Integers,
    task: int,
    tasks: int,
    repulsion: float,
    softening_squared: float,
    out: Array,
    repel_apart: int,
) -> None:
    """Add the part of the repulsion between different classes that belongs to `task`, in any dimension.

    The forces on the pair sums `sums` (dim, P), of the classes `label` (P,), are added to `out` (dim, P). The
    tasks, from 0 to `tasks` - 1, share the pairs as in `share_of_repulsion`. `repulsion` is the constant, and
    `softening_squared` is ε². The argument `repel_apart` is the address of this kernel.
    """
    count = label.size
    turn = 0
    for begin in range(0, count, CHUNK):
        end = min(begin + CHUNK, count)
        for a in range(0, end, GROUP):
            place = turn % (2 * tasks)
            turn += 1
            if min(place, 2 * tasks - 1 - place) == task:
                behind = min(a + GROUP, end)
                call(repel_apart, (sums, label, out, a, behind, begin, end, repulsion, softening_squared))
