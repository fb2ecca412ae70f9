"""Kernels of the alignment: for each pair sum, the sum of the directions of all in its half space.

In all of them `sums` (dim, P) are the P pair sums, axis by axis, and `units` (dim, P) their unit vectors,
which are zero for a pair sum at the origin.
"""

import math

import numpy as np
from numpy.typing import NDArray

from physics.jit import call, inner_kernel, piece

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

MARGIN = 1e-14
"""Bound on the rounding error of a difference of diamond angles and of the sign of s_a·s_b."""


@inner_kernel()
def half_spaces(sums: Array, units: Array, begin: int, end: int, out: Array) -> None:
    """Add up, for pair sums a from `begin` to before `end`, the unit vectors of all b with s_a·s_b > 0.

    The pair sums s are `sums` (dim, P), and `units` (dim, P) are their unit vectors. The b include a itself.
    The results overwrite the columns `begin` to before `end` of `out` (dim, P). The sign of s_a·s_b is that
    of the plain sum of rounded products, without a fused product.
    """
    dim, pairs = sums.shape
    size = end - begin
    product = np.empty(size)
    for k in range(dim):
        total = piece(out, k * pairs + begin, size)
        for a in range(size):
            total[a] = 0.0
    for b in range(pairs):
        for a in range(size):
            product[a] = 0.0
        for k in range(dim):
            s, targets = sums[k, b], piece(sums, k * pairs + begin, size)
            for a in range(size):
                product[a] += s * targets[a]
        for k in range(dim):
            unit, total = units[k, b], piece(out, k * pairs + begin, size)
            for a in range(size):
                total[a] += unit if product[a] > 0.0 else 0.0


@inner_kernel()
def merge_sort(key: Array, order: Integers, scratch: Integers) -> None:
    """Sort the indices `order` (P,) in place by their entries in `key` (P,), and equal keys by index.

    The result does not depend on the initial order. `scratch` (P,) is scratch memory, which is overwritten.
    """
    count = order.size
    width = 1
    while width < count:
        for left in range(0, count, 2 * width):
            middle = min(left + width, count)
            right = min(left + 2 * width, count)
            i, j = left, middle
            for slot in range(left, right):
                take = j >= right
                if i < middle and j < right:
                    p, q = order[i], order[j]
                    take = key[p] < key[q] or (key[p] == key[q] and p < q)
                if take:
                    scratch[slot] = order[i]
                    i += 1
                else:
                    scratch[slot] = order[j]
                    j += 1
        for slot in range(count):  # Numba compiles an assignment of arrays for seconds
            order[slot] = scratch[slot]
        width *= 2


@inner_kernel()
def sort(key: Array, order: Integers, merge_sort: int) -> None:
    """Write the permutation that sorts `key` (P,) to `order` (P,); equal keys are ordered by their index.

    Keys are from 0 to 4, or infinite. They are put into as many buckets as there are keys, so that an
    insertion sort has little left to do. If keys are so crowded that it would take too long, the kernel
    `merge_sort`, whose address is the argument of this name, takes over.
    """
    count = key.size
    begin, bucket = np.empty(count + 2, np.int64), np.empty(count, np.int64)
    for c in range(count + 2):
        begin[c] = 0
    for a in range(count):
        bucket[a] = min(int(key[a] * (0.25 * count)), count - 1) if key[a] < math.inf else count
        begin[bucket[a] + 1] += 1
    for c in range(count):
        begin[c + 1] += begin[c]
    for a in range(count):
        order[begin[bucket[a]]] = a
        begin[bucket[a]] += 1
    moves = 0
    for slot in range(1, count):
        p = order[slot]
        at = slot
        while at > 0 and (
            key[order[at - 1]] > key[p] or (key[order[at - 1]] == key[p] and order[at - 1] > p)
        ):
            order[at] = order[at - 1]
            at -= 1
        order[at] = p
        moves += slot - at
        if moves > 8 * count:
            call(merge_sort, (key, order, np.empty(count, np.int64)))
            return


@inner_kernel()
def half_planes(sums: Array, units: Array, out: Array, sort: int, merge_sort: int) -> None:
    """Write the sums of `half_spaces` for all pair sums in the plane to `out` (2, P).

    `sums` and `units` (2, P) are the pair sums and their unit vectors. Pair sums are sorted by their diamond
    angle, a function of the direction that grows with the true angle and is exactly 1 for a quarter of a
    turn. The half plane of a pair sum is then a window of the sorted list, and its sum is a difference of
    prefix sums. This takes O(P log P) operations. Within `MARGIN` of the edges of the window the sign of
    s_a·s_b decides, so ties and right angles are exact. If products of coordinates may overflow or underflow,
    all pairs are tested instead. The arguments `sort` and `merge_sort` are the addresses of these kernels.
    """
    pairs = sums.shape[1]
    key = np.empty(pairs)
    largest, smallest = 0.0, math.inf
    members = 0
    for a in range(pairs):
        x, y = sums[0, a], sums[1, a]
        norm = abs(x) + abs(y)
        slope = y / norm
        key[a] = (slope if slope >= 0.0 else 4.0 + slope) if x >= 0.0 else 2.0 - slope
        if norm > 0.0:
            members += 1
            largest = max(largest, norm)
            smallest = min(smallest, norm)
        else:  # a pair sum at the origin has no direction and is sorted behind all others
            key[a] = math.inf
    if not (smallest > 1e-140 and largest < 1e140):  # s_a·s_b may underflow or overflow
        for a in range(pairs):  # as in `half_spaces`; slower, but this case is rare
            out[0, a] = out[1, a] = 0.0
            for b in range(pairs):
                if sums[0, a] * sums[0, b] + sums[1, a] * sums[1, b] > 0.0:
                    out[0, a] += units[0, b]
                    out[1, a] += units[1, b]
        return
    order = np.empty(pairs, np.int64)
    call(sort, (key, order, merge_sort))
    angle = np.empty(3 * members)  # three turns, so that no window has to wrap around
    before_x, before_y = np.empty(3 * members + 1), np.empty(3 * members + 1)
    total_x = total_y = 0.0
    for i in range(members):
        b = order[i]
        before_x[i] = total_x
        before_y[i] = total_y
        total_x += units[0, b]
        total_y += units[1, b]
        angle[i] = key[b] - 4.0
        angle[i + members] = key[b]
        angle[i + 2 * members] = key[b] + 4.0
    for i in range(members):
        before_x[i + members] = before_x[i] + total_x
        before_y[i + members] = before_y[i] + total_y
        before_x[i + 2 * members] = before_x[i] + 2.0 * total_x
        before_y[i + 2 * members] = before_y[i] + 2.0 * total_y
    first = last = 0
    for i in range(pairs):
        a = order[i]
        if i >= members:
            out[0, a] = out[1, a] = 0.0
            continue
        x, y, center = sums[0, a], sums[1, a], key[a]
        while angle[first] < center - (1.0 + MARGIN):
            first += 1
        while angle[last] < center + (1.0 - MARGIN):
            last += 1
        inside, outside = first, last
        near_x = near_y = 0.0
        while angle[inside] <= center - (1.0 - MARGIN):
            b = order[inside % members]
            if x * sums[0, b] + y * sums[1, b] > 0.0:
                near_x += units[0, b]
                near_y += units[1, b]
            inside += 1
        while outside < 3 * members and angle[outside] <= center + (1.0 + MARGIN):
            b = order[outside % members]
            if x * sums[0, b] + y * sums[1, b] > 0.0:
                near_x += units[0, b]
                near_y += units[1, b]
            outside += 1
        out[0, a] = before_x[last] - before_x[inside] + near_x
        out[1, a] = before_y[last] - before_y[inside] + near_y


@inner_kernel()
def align(aligned: Array, sums: Array, units: Array, alignment: float, out: Array) -> None:
    """Subtract `alignment` times the half-space sums `aligned` (dim, P) from the forces `out` (dim, P).

    Each half-space sum contains the direction of the pair sum itself, a column of `units` (dim, P), which is
    left out here. `sums` (dim, P) are the pair sums, and `alignment` is the constant of the alignment between
    classes, weight included.
    """
    dim, count = sums.shape
    own = np.empty(count)
    for a in range(count):
        own[a] = 0.0
    for k in range(dim):
        s = sums[k]
        for a in range(count):
            own[a] += s[a] * s[a]
    for k in range(dim):
        unit, ahead, total = units[k], aligned[k], out[k]
        for a in range(count):
            total[a] -= alignment * (ahead[a] - (unit[a] if own[a] > 0.0 else 0.0))
