"""Forces between pair sums, and the Euler step of a particle ensemble (Musat §5-6).

The force splits exactly into three sums (P pair sums, N particles):

1. repulsion from *all* pair sums, P²/2 reciprocals without a test of the class;
2. alignment against *all* pair sums, a sum of unit vectors over the open half space s_a·s_b > 0;
3. what pairs of the same class feel instead: N³/8 pairs.

Pair sums are stored by *rank*: the first member of each class, then the second of each, and so on, so that
members of one class meet in long streams that test nothing. Positions are kept axis by axis (dim, P).
Every loop has one order, fixed by the number of pair sums alone: the same bits for any number
of threads, and for a run alone as for the same run in an ensemble.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import prange
from numpy.typing import NDArray

from physics.jit import kernel

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class Pairs(NamedTuple):
    """Where the pair sums are kept."""

    first: Integers
    """(P,): i of the pair (i, j) in every slot."""
    second: Integers
    """(P,): j of it."""
    label: Integers
    """(P,): its class."""
    meetings: Integers
    """(streams, 3): slots a, b and a length; the slots a + c and b + c are of one class."""


class Law(NamedTuple):
    """The constants of the force, weights included."""

    attraction: float
    repulsion: float
    alignment_same: float
    alignment_diff: float
    softening_squared: float
    apart: bool
    """Sum repulsion over different classes only, slower, instead of taking off what is too much."""


MARGIN = 1e-14
"""Error of a difference of two diamond angles (a few ulp of 4) and of the sign of s_a·s_b, in one bound."""

COINCIDENT = 1e-13
"""Spread of an axis, relative to the distance from the origin, up to which it is rounding."""

GROUP, CHUNK = 16, 4096
"""Rows and columns of pairs that the repulsion takes at once; a chunk is whole groups."""

STREAM = 512
"""Longest stream of meetings: what it touches stays in the nearest caches."""


@kernel(reorder=True)
def _repel_rectangle(
    sums: Array,
    out: Array,
    a0: int,
    a1: int,
    b0: int,
    b1: int,
    repulsion: float,
    softening_squared: float,
) -> None:
    """Add what the pair sums b0…b1 push those of a0…a1, d/(d² + ε²), and the opposite, in the plane.

    Two rows at once halve the traffic of the columns; the loop runs at the speed of the divider. Without the
    slices Numba would test every index for being negative, and nothing would be vectorised. Each term is
    good to 3 ulp, a row sum of n terms to n ulp of the sum of their sizes.
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


@kernel(reorder=True)
def _repel_group(
    sums: Array, out: Array, a0: int, a1: int, repulsion: float, softening_squared: float
) -> None:
    """Add the repulsion among the pair sums a0…a1, of all pairs: none pushes itself, as d = 0."""
    x, y = sums[0, a0:a1], sums[1, a0:a1]
    out_x, out_y = out[0, a0:a1], out[1, a0:a1]
    for r in range(x.size):
        xr, yr = x[r], y[r]
        for b in range(x.size):
            dx, dy = x[b] - xr, y[b] - yr
            inverse = repulsion / (dx * dx + (dy * dy + softening_squared))
            out_x[b] += dx * inverse
            out_y[b] += dy * inverse


@kernel(reorder=True)
def _repel_apart(
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
    """Do as the two above in any dimension, for a < b, between different classes only.

    Where softening is tiny the pushes of same-class neighbours would be added and taken off again at a size
    that drowns the rest; so the class is tested here. Coincident pair sums have no direction: no force.
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


@kernel()
def _half_spaces(sums: Array, units: Array, begin: int, end: int, out: Array) -> None:
    """Write to `out` (dim, begin…end) the sum of the unit vectors of all pair sums b with s_a·s_b > 0.

    The sources are taken one by one against a block of targets that stays in the nearest cache, without a
    reduction or a fused product: the sign of s_a·s_b is that of the plain sum of rounded products.
    """
    dim, pairs = sums.shape
    product = np.empty(end - begin)
    out[:, begin:end] = 0.0
    for b in range(pairs):
        product[:] = 0.0
        for k in range(dim):
            s, targets = sums[k, b], sums[k, begin:end]
            for a in range(product.size):
                product[a] += s * targets[a]
        for k in range(dim):
            unit, out_k = units[k, b], out[k, begin:end]
            for a in range(product.size):
                out_k[a] += unit if product[a] > 0.0 else 0.0


@kernel()
def _merge_sort(key: Array, order: Integers, scratch: Integers) -> None:
    """Sort `order` by (key, index): one order whatever came in, so that ties cost no reproducibility."""
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
        order[:] = scratch
        width *= 2


@kernel()
def _sort(key: Array, order: Integers) -> None:
    """Write the permutation that sorts `key` (in 0…4, or infinite) to `order`, equal keys by their index.

    As many buckets as keys, filled in the order of the index, leave little for an insertion sort; where keys
    crowd so that it has too much to do, they are merged.
    """
    count = key.size
    begin = np.zeros(count + 2, np.int64)
    bucket = np.empty(count, np.int64)
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
            _merge_sort(key, order, np.empty_like(order))
            return


@kernel()
def _half_planes(sums: Array, units: Array, out: Array) -> None:
    """Write the same sums as `_half_spaces` of all pair sums in the plane, in O(P log P).

    Sorted by the diamond angle ±y/(|x|+|y|), monotone in the true one and exactly 1 of 4 to a right angle,
    the half plane is a window, and its sum a difference of prefix sums (error: P ulp of the largest prefix).
    Within `MARGIN` of the edge the sign of s_a·s_b decides, so ties and right angles are exact.
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
        else:  # a pair sum at the origin has no direction: behind all others, and never met
            key[a] = math.inf
    if not (smallest > 1e-140 and largest < 1e140):  # here s_a·s_b itself rounds to zero or overflows
        _half_spaces(sums, units, 0, pairs, out)
        return
    order = np.empty(pairs, np.int64)
    _sort(key, order)
    angle = np.empty(3 * members)  # three turns, so that no window wraps
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
        x, y, centre = sums[0, a], sums[1, a], key[a]
        while angle[first] < centre - (1.0 + MARGIN):
            first += 1
        while angle[last] < centre + (1.0 - MARGIN):
            last += 1
        inside, outside = first, last
        near_x = near_y = 0.0
        while angle[inside] <= centre - (1.0 - MARGIN):
            b = order[inside % members]
            if x * sums[0, b] + y * sums[1, b] > 0.0:
                near_x += units[0, b]
                near_y += units[1, b]
            inside += 1
        while outside < 3 * members and angle[outside] <= centre + (1.0 + MARGIN):
            b = order[outside % members]
            if x * sums[0, b] + y * sums[1, b] > 0.0:
                near_x += units[0, b]
                near_y += units[1, b]
            outside += 1
        out[0, a] = before_x[last] - before_x[inside] + near_x
        out[1, a] = before_y[last] - before_y[inside] + near_y


@kernel()
def _same_class(
    sums: Array, units: Array, meetings: Integers, task: int, tasks: int, law: Law, out: Array
) -> None:
    """Add what pair sums of the same class feel of each other: every `tasks`-th stream of `meetings`.

    Attraction, alignment with the opposite sign, and minus the repulsion that the sum over all has given them
    (unless `law.apart`).
    """
    repulsion = 0.0 if law.apart else law.repulsion
    alignment = law.alignment_same + law.alignment_diff
    square, product = np.empty(STREAM), np.empty(STREAM)
    for row in range(task, len(meetings), tasks):
        a, b, length = meetings[row]
        radial, aligned = square[:length], product[:length]
        if len(sums) == 2:
            x, y = sums[0, a : a + length], sums[1, a : a + length]
            s, t = sums[0, b : b + length], sums[1, b : b + length]
            for c in range(radial.size):
                radial[c] = (x[c] - s[c]) * (x[c] - s[c]) + (y[c] - t[c]) * (y[c] - t[c])
                aligned[c] = x[c] * s[c] + y[c] * t[c]
        else:
            radial[:] = 0.0
            aligned[:] = 0.0
            for k in range(len(sums)):
                s, t = sums[k, a : a + length], sums[k, b : b + length]
                for c in range(radial.size):
                    radial[c] += (s[c] - t[c]) * (s[c] - t[c])
                    aligned[c] += s[c] * t[c]
        for c in range(radial.size):
            squared = radial[c] + law.softening_squared
            inverse = 1.0 / (squared if squared != 0.0 else math.inf)
            radial[c] = law.attraction * math.sqrt(inverse) + repulsion * inverse
            aligned[c] = alignment if aligned[c] > 0.0 else 0.0
        for k in range(len(sums)):
            s, t = sums[k, a : a + length], sums[k, b : b + length]
            u, v = units[k, a : a + length], units[k, b : b + length]
            f, g = out[k, a : a + length], out[k, b : b + length]
            for c in range(radial.size):
                f[c] += radial[c] * (t[c] - s[c]) + aligned[c] * v[c]
            for c in range(radial.size):
                g[c] += radial[c] * (s[c] - t[c]) + aligned[c] * u[c]


@kernel()
def _share_of_repulsion(sums: Array, label: Integers, task: int, tasks: int, law: Law, out: Array) -> None:
    """Add the part of the repulsion that belongs to `task`.

    Groups of sixteen rows meet all that follow, `CHUNK` columns at a time, which stay in the second cache.
    The groups are dealt to and fro, so that all tasks have nearly the same number of pairs.
    """
    count = label.size
    push, softening = law.repulsion, law.softening_squared
    turn = 0
    for begin in range(0, count, CHUNK):
        end = min(begin + CHUNK, count)
        for a in range(0, end, GROUP):
            place = turn % (2 * tasks)
            turn += 1
            if min(place, 2 * tasks - 1 - place) != task:
                continue
            behind = min(a + GROUP, end)
            if law.apart:
                _repel_apart(sums, label, out, a, behind, begin, end, push, softening)
            elif a < begin:
                _repel_rectangle(sums, out, a, behind, begin, end, push, softening)
            else:
                _repel_group(sums, out, a, behind, push, softening)
                _repel_rectangle(sums, out, a, behind, behind, end, push, softening)


@kernel()
def _pair_sums(position: Array, pairs: Pairs, sums: Array, units: Array) -> None:
    """Write the pair sums and their directions; a pair sum at the origin has none, one that overflows NaN."""
    dim, count = sums.shape
    norm = np.zeros(count)
    for k in range(dim):
        s = sums[k]
        for a in range(count):
            s[a] = position[pairs.first[a], k] + position[pairs.second[a], k]
        for a in range(count):
            norm[a] += s[a] * s[a]
    for a in range(count):
        norm[a] = 1.0 / math.sqrt(norm[a] if norm[a] > 0.0 else math.inf) + (norm[a] - norm[a])
    for k in range(dim):
        s, unit = sums[k], units[k]
        for a in range(count):
            unit[a] = s[a] * norm[a]


@kernel()
def _gather(pair_force: Array, pairs: Pairs, force: Array) -> None:
    """Sum the forces on pair sums to those on particles; a pair (i, i) counts twice."""
    force[:] = 0.0
    for a in range(pairs.first.size):
        for k in range(force.shape[1]):
            force[pairs.first[a], k] += pair_force[k, a]
            force[pairs.second[a], k] += pair_force[k, a]


@kernel()
def _align(aligned: Array, sums: Array, units: Array, alignment: float, out: Array) -> None:
    """Subtract `alignment` times the half-space sum `aligned` without the pair sum's own direction."""
    dim, count = sums.shape
    own = np.zeros(count)
    for k in range(dim):
        s = sums[k]
        for a in range(count):
            own[a] += s[a] * s[a]
    for k in range(dim):
        unit, ahead, total = units[k], aligned[k], out[k]
        for a in range(count):
            total[a] -= alignment * (ahead[a] - (unit[a] if own[a] > 0.0 else 0.0))


@kernel()
def move(position: Array, force: Array, step_size: float, normalise: bool) -> None:
    """Advance one run: x + step_size·F, then, with `normalise`, zero mean and unit variance on every axis.

    An axis on which all particles coincide, but for rounding, has no scale: it is set to zero. One whose
    variance overflows becomes NaN, not zero.
    """
    tokens, dim = position.shape
    for k in range(dim):
        mean = 0.0
        farthest = 0.0
        for i in range(tokens):
            position[i, k] += step_size * force[i, k]
            mean += position[i, k]
            farthest = max(farthest, abs(position[i, k]))
        if not normalise:
            continue
        mean /= tokens
        variance = 0.0
        for i in range(tokens):
            position[i, k] -= mean
            variance += position[i, k] * position[i, k]
        variance /= tokens
        scale = 1.0 / math.sqrt(variance) if variance > 0.0 else 0.0
        if math.sqrt(variance) <= COINCIDENT * farthest:
            scale = 0.0
        elif variance == math.inf:
            scale = math.nan
        for i in range(tokens):
            position[i, k] *= scale


@kernel()
def _work(
    task: int,
    tasks: int,
    sums: Array,
    units: Array,
    pairs: Pairs,
    law: Law,
    repel: bool,
    share: Array,
    aligned: Array,
) -> None:
    """Do one of `tasks` parts of the work: write what it finds to `share`, and its part of `aligned`."""
    dim, count = sums.shape
    share[:] = 0.0
    if repel:
        _share_of_repulsion(sums, pairs.label, task, tasks, law, share)
    _same_class(sums, units, pairs.meetings, task, tasks, law, share)
    if law.alignment_diff != 0.0:
        if dim != 2:
            _half_spaces(sums, units, count * task // tasks, count * (task + 1) // tasks, aligned)
        elif task == tasks - 1:
            _half_planes(sums, units, aligned)


@kernel()
def _add(share: Array, total: Array) -> None:
    for k in range(len(share)):
        found, out = share[k], total[k]
        for a in range(out.size):
            out[a] += found[a]


@kernel(parallel=True)
def advance_runs(
    positions: Array,
    pairs: Pairs,
    law: Law,
    step_size: float,
    steps: int,
    normalise: bool,
    tasks: int,
    forces: Array,
    repel: bool,
) -> None:
    """Take `steps` steps of every run, one core a run, and leave the last forces in `forces`.

    `positions` and `forces` are (runs, tokens, dim). With `steps` = 0 the forces are computed and nothing
    moves; without `repel` they lack the repulsion, which others sum. The parts of the work are done in turn,
    so that the bits are those of `advance_rows`.
    """
    runs, _, dim = positions.shape
    count = pairs.first.size
    for run in prange(runs):
        sums, units, total = np.empty((dim, count)), np.empty((dim, count)), np.empty((dim, count))
        share, aligned = np.empty((dim, count)), np.empty((dim, count))
        for step in range(max(steps, 1)):
            _pair_sums(positions[run], pairs, sums, units)
            total[:] = 0.0
            for task in range(tasks):
                _work(task, tasks, sums, units, pairs, law, repel, share, aligned)
                _add(share, total)
            if law.alignment_diff != 0.0:
                _align(aligned, sums, units, law.alignment_diff, total)
            _gather(total, pairs, forces[run])
            if step < steps:
                move(positions[run], forces[run], step_size, normalise)


@kernel(parallel=True)
def advance_rows(
    positions: Array,
    pairs: Pairs,
    law: Law,
    step_size: float,
    steps: int,
    normalise: bool,
    tasks: int,
    forces: Array,
    repel: bool,
) -> None:
    """Do as `advance_runs`, run after run, each with all cores.

    The work of a step is cut into tasks, `partial` (tasks, dim, pairs) holds what each has found, and they
    are summed in their order: the cut depends on the number of pair sums alone.
    """
    runs, _, dim = positions.shape
    count = pairs.first.size
    partial = np.empty((tasks, dim, count))
    sums, units, total = np.empty((dim, count)), np.empty((dim, count)), np.empty((dim, count))
    aligned = np.empty((dim, count))
    for run in range(runs):
        for step in range(max(steps, 1)):
            _pair_sums(positions[run], pairs, sums, units)
            for task in prange(tasks):
                # The type of a prange's index changes on the way: `_work` would be compiled for both.
                _work(np.int64(task), tasks, sums, units, pairs, law, repel, partial[task], aligned)  # type: ignore[arg-type]
            total[:] = 0.0
            for task in range(tasks):  # a second parallel region would cost more than this
                _add(partial[task], total)
            if law.alignment_diff != 0.0:
                _align(aligned, sums, units, law.alignment_diff, total)
            _gather(total, pairs, forces[run])
            if step < steps:
                move(positions[run], forces[run], step_size, normalise)
