"""The direct sum of the forces between pair sums, and the Euler step of an ensemble (Musat §5-6).

The force on P pair sums is the sum of three parts:

1. the repulsion from *all* other pair sums, without a test of the class;
2. the alignment against *all* pair sums: sums of unit vectors over the open half spaces s_a·s_b > 0;
3. corrections for pairs of the same class.

The first part is different if the softening is tiny, or outside the plane: then it is summed over different
classes only. Pair sums are stored by *rank*: first the first member of each class, then the second member of
each, and so on. Interactions within classes then form long streams that need no test of the class. Positions
are stored axis by axis, (dim, P). Every loop has one order, which depends only on the number of pair sums.
The bits are therefore the same for any number of threads, and for a run alone as in an ensemble.

In all kernels `sums` (dim, P) are the pair sums and `units` (dim, P) their unit vectors, which are zero for a
pair sum at the origin. `softening_squared` is ε².
"""

import math
from typing import NamedTuple

import numpy as np
from numba import prange

from physics.jit import address_of, call, kernel, piece
from physics.values import Array, Integers


class Steps(NamedTuple):
    """How the particles move: Euler steps, each of which ends with zero mean and unit variance if it may."""

    size: float
    """Length of a step, in units of time."""
    number: int
    """Number of steps; with 0 the forces are computed and nothing moves."""
    normalise: bool


COINCIDENT = 1e-13
"""Spread along an axis, relative to the largest coordinate, that counts as rounding error."""
STREAM = 512
"""Length of the longest stream of interactions, chosen so that its data stay in the nearest caches."""
GROUP, CHUNK = 16, 4096
"""Numbers of rows and of columns of pairs that are processed at once; a chunk holds whole groups."""
MARGIN = 1e-14
"""Bound on the rounding error of a difference of diamond angles and of the sign of s_a·s_b."""


class Pairs(NamedTuple):
    """Layout of the P pair sums in memory, in the slots that `pair_layout` chooses."""

    first: Integers
    """Token i of the pair (i, j) in each slot, (P,)."""
    second: Integers
    """Token j of the pair (i, j) in each slot, (P,)."""
    label: Integers
    """Class of the pair in each slot, (P,)."""
    meetings: Integers
    """Streams (a, b, length), (streams, 3): slots a + c and b + c are of one class for all c < length."""


def pair_layout(first: Integers, second: Integers, label: Integers) -> Pairs:
    """Arrange pairs (P,) by their rank within their class, and list which of them are of the same class.

    The first members of all classes come first, then the second members, and so on. Within a rank, larger
    classes come first, so that the classes that have a member of that rank are contiguous. The arrays of the
    result are read-only.
    """
    sizes = np.bincount(label)
    place = np.empty(sizes.size, np.int64)
    place[np.argsort(-sizes, kind="stable")] = np.arange(sizes.size)
    rank = np.empty_like(label)
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    rank[np.argsort(label, kind="stable")] = np.arange(label.size) - starts
    slots = np.lexsort((place[label], rank))
    layout = Pairs(first[slots], second[slots], label[slots], _meetings(np.bincount(rank)))
    for array in layout:
        array.setflags(write=False)
    return layout


def _meetings(members: Integers) -> Integers:
    """Return streams (streams, 3) that together hold every pair of slots of the same class once.

    A stream (a, b, length) stands for the pairs of slots (a, b), (a + 1, b + 1), …. `members` (ranks,) counts
    the classes that have a member of each rank. Streams that continue each other are joined, and long ones
    are cut to `STREAM`, the length that the kernel processes at once.
    """
    starts = np.cumsum(members) - members
    m, n = np.triu_indices(members.size, 1)
    by_distance = np.lexsort((m, n - m))
    a, b, length = starts[m][by_distance], starts[n][by_distance], members[n][by_distance]
    follows = (a[1:] == a[:-1] + length[:-1]) & (b[1:] == b[:-1] + length[:-1])
    begins = np.flatnonzero(np.concatenate([[True], ~follows])[: a.size])
    a, b, length = a[begins], b[begins], np.add.reduceat(length, begins) if a.size else length
    parts = -(-length // STREAM)
    which = np.repeat(np.arange(a.size), parts)
    offset = (np.arange(which.size) - np.repeat(np.cumsum(parts) - parts, parts)) * STREAM
    length = np.minimum(length[which] - offset, STREAM)
    return np.stack([a[which] + offset, b[which] + offset, length], axis=1)


class Law(NamedTuple):
    """The constants of the force, each multiplied by the weight of its kind of interaction.

    With P pair sums, n_same ordered pairs of them of the same class and n_diff of different classes, the
    weight of `attraction` and `alignment_same` is P/n_same, and that of `repulsion` and `alignment_diff`
    P/n_diff. `softening_squared` is the square of the softening length ε.
    """

    attraction: float
    repulsion: float
    alignment_same: float
    alignment_diff: float
    softening_squared: float
    apart: bool
    """Whether to sum the repulsion over different classes only, which is slower but more accurate."""


# -- repulsion -------------------------------------------------------------------------------------------


@kernel(reorder=True)
def _repel_plane(sums: Array, out: Array, a0: int, a1: int, b0: int, b1: int, law: Law) -> None:
    """Add the repulsion d/(d² + ε²) between pair sums a < b in the plane, to the forces on both.

    The pair sums from `a0` to before `a1` of `sums` (2, P) interact with those from `b0` to before `b1`. The
    forces are added to `out` (2, P). Two rows are processed at once, which halves the memory traffic of the
    columns. The softening must be greater than 0, so that the force of a pair sum on itself is 0.
    """
    squared = law.softening_squared
    for a in range(a0, a1, 2):
        behind = min(a + 1, a1 - 1)  # the second row, or the first again without any force
        begin = max(b0, a + 1)
        x, y = sums[0, begin:b1], sums[1, begin:b1]
        out_x, out_y = out[0, begin:b1], out[1, begin:b1]
        x0, y0, x1, y1 = sums[0, a], sums[1, a], sums[0, behind], sums[1, behind]
        push0, push1 = law.repulsion, law.repulsion * (behind - a)
        total_x0 = total_y0 = total_x1 = total_y1 = 0.0
        for b in range(x.size):
            dx0, dy0, dx1, dy1 = x0 - x[b], y0 - y[b], x1 - x[b], y1 - y[b]
            inverse0 = push0 / (dx0 * dx0 + (dy0 * dy0 + squared))
            inverse1 = push1 / (dx1 * dx1 + (dy1 * dy1 + squared))
            total_x0 += dx0 * inverse0
            total_y0 += dy0 * inverse0
            total_x1 += dx1 * inverse1
            total_y1 += dy1 * inverse1
            out_x[b] -= dx0 * inverse0 + dx1 * inverse1
            out_y[b] -= dy0 * inverse0 + dy1 * inverse1
        out[0, a] += total_x0
        out[1, a] += total_y0
        out[0, behind] += total_x1
        out[1, behind] += total_y1


@kernel(reorder=True)
def _repel_apart(
    sums: Array, label: Integers, out: Array, a0: int, a1: int, b0: int, b1: int, law: Law
) -> None:
    """Add the repulsion between pair sums a < b of different classes, in any dimension.

    The pair sums from `a0` to before `a1` of `sums` (dim, P) interact with those from `b0` to before `b1`,
    unless their classes in `label` (P,) are equal. The forces on both are added to `out` (dim, P).

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
        inverse[:] = law.softening_squared
        for k in range(dim):
            s, others = sums[k, a], sums[k, begin:b1]
            for b in range(inverse.size):
                inverse[b] += (s - others[b]) * (s - others[b])
        mine = label[a]
        for b in range(inverse.size):
            apart = labels[b] != mine and inverse[b] != 0.0
            inverse[b] = law.repulsion / (inverse[b] if apart else math.inf)
        for k in range(dim):
            s, others, out_k = sums[k, a], sums[k, begin:b1], out[k, begin:b1]
            total = 0.0
            for b in range(inverse.size):
                push = (s - others[b]) * inverse[b]
                total += push
                out_k[b] -= push
            out[k, a] += total


@kernel()
def _repel(sums: Array, label: Integers, task: int, tasks: int, law: Law, out: Array) -> None:
    """Add the part of the repulsion that belongs to `task`, from 0 to `tasks` - 1, to `out` (dim, P).

    Groups of `GROUP` rows interact with all later rows, `CHUNK` columns at a time. The groups are assigned to
    tasks in alternating order, so that all tasks have nearly the same number of pairs.
    """
    turn = 0
    for begin in range(0, label.size, CHUNK):
        end = min(begin + CHUNK, label.size)
        for a in range(0, end, GROUP):
            place = turn % (2 * tasks)
            turn += 1
            if min(place, 2 * tasks - 1 - place) == task:
                if law.apart:
                    _repel_apart(sums, label, out, a, min(a + GROUP, end), begin, end, law)
                else:
                    _repel_plane(sums, out, a, min(a + GROUP, end), begin, end, law)


# -- alignment -------------------------------------------------------------------------------------------


@kernel()
def _half_spaces(sums: Array, units: Array, begin: int, end: int, out: Array) -> None:
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


@kernel()
def _insert(key: Array, order: Integers, slot: int, gap: int) -> int:
    """Move an entry of `order` back, in steps of `gap`, to where its key belongs, and return how far."""
    at, p = slot, order[slot]
    while at >= gap and key[order[at - gap]] > key[p]:
        order[at] = order[at - gap]
        at -= gap
    order[at] = p
    return slot - at


@kernel()
def _sorted(key: Array) -> Integers:
    """Return the order that sorts `key` (P,), whose entries are from 0 to 4, or infinite.

    Keys are put into as many buckets as there are keys, so that an insertion sort has little left to do, in a
    third of the time of NumPy's sort. If they are so crowded that it would take too long, keys that are far
    apart are sorted first (Shell's method), because a sort of NumPy compiles for three seconds.
    """
    count = key.size
    begin, bucket, order = np.zeros(count + 2, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
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
        moves += _insert(key, order, slot, 1)
        if moves > 8 * count:
            break
    gap = count if moves > 8 * count else 1
    while gap > 1:
        gap = max(gap * 5 // 11, 1)
        for slot in range(gap, count):
            _insert(key, order, slot, gap)
    return order


@kernel()
def _half_planes(sums: Array, units: Array, out: Array) -> None:
    """Write the sums of `half_spaces` for all pair sums in the plane to `out` (2, P).

    `sums` and `units` (2, P) are the pair sums and their unit vectors. Pair sums are sorted by their diamond
    angle, a function of the direction that grows with the true angle and is exactly 1 for a quarter of a
    turn. The half plane of a pair sum is then a window of the sorted list, and its sum is a difference of
    prefix sums. This takes O(P log P) operations. Within `MARGIN` of the edges of the window the sign of
    s_a·s_b decides, so ties and right angles are exact. If products of coordinates may overflow or underflow,
    all pairs are tested instead.
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
        _half_spaces(sums, units, 0, pairs, out)
        return
    order = _sorted(key)
    angle = np.empty(3 * members)  # three turns, so that no window has to wrap around
    before_x, before_y = np.empty(3 * members), np.empty(3 * members)
    total_x = total_y = 0.0
    for turn in range(3):
        for i in range(members):
            b, at = order[i], turn * members + i
            before_x[at], before_y[at] = total_x, total_y
            total_x += units[0, b]
            total_y += units[1, b]
            angle[at] = key[b] + 4.0 * (turn - 1)
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
        while angle[inside] <= center - (1.0 - MARGIN):
            inside += 1
        while outside < 3 * members and angle[outside] <= center + (1.0 + MARGIN):
            outside += 1
        near_x = near_y = 0.0
        for k in range(inside - first + outside - last):  # at both edges of the window
            at = first + k if first + k < inside else last + k - (inside - first)
            b = order[at % members]
            if x * sums[0, b] + y * sums[1, b] > 0.0:
                near_x += units[0, b]
                near_y += units[1, b]
        out[0, a] = before_x[last] - before_x[inside] + near_x
        out[1, a] = before_y[last] - before_y[inside] + near_y


# -- steps -----------------------------------------------------------------------------------------------


@kernel()
def _same_class(
    sums: Array, units: Array, meetings: Integers, task: int, tasks: int, law: Law, out: Array
) -> None:
    """Add the interactions of pair sums of the same class, for every `tasks`-th stream of `meetings`.

    These are the attraction, the alignment, and the negatives of what the sums over all pairs contain too
    much: the alignment between classes and, unless `law.apart` is true, the repulsion. `sums`, `units` and
    `out` are (dim, P).
    """
    repulsion = 0.0 if law.apart else law.repulsion
    alignment = law.alignment_same + law.alignment_diff
    dim, count = sums.shape
    square, product = np.empty(STREAM), np.empty(STREAM)
    for row in range(task, len(meetings), tasks):
        a, b, length = meetings[row]
        radial, aligned = piece(square, 0, length), piece(product, 0, length)
        for c in range(length):
            radial[c] = 0.0
            aligned[c] = 0.0
        for k in range(dim):
            s, t = piece(sums, k * count + a, length), piece(sums, k * count + b, length)
            for c in range(length):
                radial[c] += (s[c] - t[c]) * (s[c] - t[c])
                aligned[c] += s[c] * t[c]
        for c in range(length):
            squared = radial[c] + law.softening_squared
            inverse = 1.0 / (squared if squared != 0.0 else math.inf)
            radial[c] = law.attraction * math.sqrt(inverse) + repulsion * inverse
            aligned[c] = alignment if aligned[c] > 0.0 else 0.0
        for k in range(dim):
            s, t = piece(sums, k * count + a, length), piece(sums, k * count + b, length)
            u, v = piece(units, k * count + a, length), piece(units, k * count + b, length)
            f, g = piece(out, k * count + a, length), piece(out, k * count + b, length)
            for c in range(length):
                f[c] += radial[c] * (t[c] - s[c]) + aligned[c] * v[c]
            for c in range(length):
                g[c] += radial[c] * (s[c] - t[c]) + aligned[c] * u[c]


@kernel()
def move(position: Array, force: Array, step_size: float, normalise: bool) -> None:
    """Move the particles of one run (tokens, dim) in place by an Euler step along `force` (tokens, dim).

    With `normalise`, every axis is then shifted to zero mean and scaled to unit variance.

    An axis on which all particles coincide up to rounding errors has no scale and is set to zero. An axis
    whose variance overflows becomes NaN, not zero.
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
def _begin_step(position: Array, pairs: Pairs, state: Array) -> None:
    """Write pair sums and their unit vectors to the first two of `state` (4, dim, P), and clear the last."""
    sums, units = state[0], state[1]
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
        total = state[3, k]
        for a in range(count):
            total[a] = 0.0


class Calls(NamedTuple):
    """Addresses of the kernels that take the time: the same code in all callers, compiled once."""

    repel: int
    """The repulsion, or 0 to leave it out."""
    same_class: int
    half_planes: int
    work: int = 0


def calls_of(pairs: Pairs, law: Law) -> Calls:
    """Compile the kernels of a step, and return their addresses; only the types of the arguments matter."""
    forces, state = np.empty((0, 0)), np.empty((0, 0, 0))
    calls = Calls(
        address_of(_repel, forces, pairs.label, 0, 1, law, forces),
        address_of(_same_class, forces, forces, pairs.meetings, 0, 1, law, forces),
        address_of(_half_planes, forces, forces, forces),
    )
    return calls._replace(work=address_of(_work, 0, 1, pairs, law, calls, state, forces))


@kernel()
def _work(task: int, tasks: int, pairs: Pairs, law: Law, calls: Calls, state: Array, share: Array) -> None:
    """Do one of `tasks` parts of the work, and write its forces to `share` (dim, P).

    If there is alignment between classes, its sums over half spaces are written to ``state[2]``: by each task
    a part, but in the plane by the last task all.
    """
    sums, units, aligned = state[0], state[1], state[2]
    for k in range(len(share)):
        row = share[k]
        for a in range(row.size):
            row[a] = 0.0
    if calls.repel:
        call(calls.repel, (sums, pairs.label, task, tasks, law, share))
    call(calls.same_class, (sums, units, pairs.meetings, task, tasks, law, share))
    if law.alignment_diff != 0.0:
        count = pairs.label.size
        if len(sums) != 2:
            _half_spaces(sums, units, count * task // tasks, count * (task + 1) // tasks, aligned)
        elif task == tasks - 1:
            call(calls.half_planes, (sums, units, aligned))


@kernel()
def _add(share: Array, state: Array) -> None:
    """Add a share of the forces on pair sums to ``state[3]``."""
    for k in range(len(share)):
        row, total = share[k], state[3, k]
        for a in range(row.size):
            total[a] += row[a]


@kernel()
def _end_step(
    position: Array, force: Array, pairs: Pairs, law: Law, step: int, steps: Steps, state: Array
) -> None:
    """Write the forces on particles to `force`, each that on all its pair sums, and move the run."""
    total = state[3]
    if law.alignment_diff != 0.0:
        for k in range(len(total)):
            unit, ahead, pushed = state[1, k], state[2, k], total[k]
            for a in range(unit.size):  # the half space of a pair sum contains itself
                pushed[a] -= law.alignment_diff * (ahead[a] - unit[a])
    force[:] = 0.0
    for a in range(pairs.first.size):
        for k in range(force.shape[1]):
            force[pairs.first[a], k] += total[k, a]
            force[pairs.second[a], k] += total[k, a]
    if step < steps.number:
        move(position, force, steps.size, steps.normalise)


@kernel()
def _advance_run(
    position: Array, force: Array, pairs: Pairs, law: Law, steps: Steps, tasks: int, calls: Calls
) -> None:
    """Move one run, as `advance_runs` does."""
    state = np.empty((4, position.shape[1], pairs.first.size))
    share = np.empty((position.shape[1], pairs.first.size))
    for step in range(max(steps.number, 1)):
        _begin_step(position, pairs, state)
        for task in range(tasks):
            call(calls.work, (task, tasks, pairs, law, calls, state, share))
            _add(share, state)
        _end_step(position, force, pairs, law, step, steps, state)


@kernel(parallel=True)
def advance_runs(
    positions: Array, forces: Array, pairs: Pairs, law: Law, steps: Steps, tasks: int, calls: Calls
) -> None:
    """Move all runs, each on one core.

    `positions` (runs, tokens, dim) are overwritten, and `forces`, of the same shape, receives the forces
    before the last step. The `tasks` parts of the work are done in turn, so that the bits are those of
    `advance_rows`. `calls` is what `calls_of` returns.
    """
    for run in prange(len(positions)):
        _advance_run(positions[run], forces[run], pairs, law, steps, tasks, calls)


@kernel(parallel=True, rows=lambda *arguments: arguments[5])
def advance_rows(
    positions: Array, forces: Array, pairs: Pairs, law: Law, steps: Steps, tasks: int, calls: Calls
) -> None:
    """Move all runs as `advance_runs` does, but each on all cores.

    The work of a step is cut into `tasks` parts. Each part writes its forces to a row of `shares` (tasks,
    dim, P), and these rows are added in a fixed order.
    """
    dim, count = positions.shape[2], pairs.first.size
    shares, state = np.empty((tasks, dim, count)), np.empty((4, dim, count))
    for run in range(len(positions)):
        for step in range(max(steps.number, 1)):
            _begin_step(positions[run], pairs, state)
            for task in prange(tasks):
                call(calls.work, (np.int64(task), tasks, pairs, law, calls, state, shares[task]))
            for task in range(tasks):  # a parallel loop would cost more to start
                _add(shares[task], state)
            _end_step(positions[run], forces[run], pairs, law, step, steps, state)


def energies(positions: Array, pairs: Pairs, law: Law) -> Array:
    """Return the potential energy (runs,) of each run, which `ParticleSystem.potential` defines.

    `positions` (runs, tokens, dim) are those of the particles, and `pairs` is the layout of their pair sums.
    With positive repulsion and no softening, the energy is infinite if pair sums of different classes
    coincide.
    """
    sums = np.ascontiguousarray((positions[:, pairs.first] + positions[:, pairs.second]).swapaxes(1, 2))
    # Products of eight squares must not overflow.
    safe = law.softening_squared > 1e-38 and sums.shape[1] * np.ptp(sums, axis=2).max() ** 2 < 1e38
    partial = np.empty((len(positions), 16, 2))
    clustering(sums, pairs.label, law.softening_squared, 8 if safe else 1, partial)
    pull, logarithms = partial.sum(axis=1).T
    return np.asarray(law.attraction * pull - (0.5 * law.repulsion * logarithms if law.repulsion else 0.0))


@kernel(parallel=True, least=1)
def clustering(sums: Array, label: Integers, softening_squared: float, rows: int, partial: Array) -> None:
    """Sum √(d² + ε²) over pairs of the same class and log(d² + ε²) over pairs of different classes.

    Each pair of pair sums, at the distance d, counts once. `sums` (runs, dim, P) holds the P pair sums,
    `label` (P,) their classes, and `softening_squared` is ε². The work of each run is cut into tasks, each of
    which writes its two sums to a row of `partial` (runs, tasks, 2).

    Logarithms dominate the cost, so one logarithm of a product replaces the logarithms of `rows` rows; the
    caller ensures that the product does not overflow.
    """
    _, dim, count = sums.shape
    tasks = partial.shape[1]
    groups = -(-count // rows)
    for item in prange(len(sums) * tasks):
        run, task = item // tasks, item % tasks
        square, product, pull = np.empty(count), np.empty(count), np.zeros(count)
        logarithms = 0.0
        for group in range(task, groups, tasks):
            begin = group * rows
            product[begin:] = 1.0
            for a in range(begin, min(begin + rows, count)):
                squared, labels = square[a + 1 :], label[a + 1 :]
                among, drawn = product[a + 1 :], pull[a + 1 :]
                squared[:] = softening_squared
                for k in range(dim):
                    s, others = sums[run, k, a], sums[run, k, a + 1 :]
                    for b in range(squared.size):
                        squared[b] += (s - others[b]) * (s - others[b])
                mine = label[a]
                for b in range(squared.size):
                    same = labels[b] == mine
                    among[b] *= 1.0 if same else squared[b]
                    drawn[b] += math.sqrt(squared[b] if same else 0.0)
            for b in range(begin, count):
                logarithms += math.log(product[b])
        partial[run, task, 0] = pull.sum()
        partial[run, task, 1] = logarithms
