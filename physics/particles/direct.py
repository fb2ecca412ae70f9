"""The direct sum of the forces between pair sums, and the Euler step of an ensemble (Musat §5-6).

The force on P pair sums is the sum of three parts:

1. the repulsion from *all* other pair sums, without a test of the class;
2. the alignment against *all* pair sums: sums of unit vectors over the open half spaces s_a·s_b > 0;
3. corrections for pairs of the same class.

The first part is different if the softening is tiny: then it is summed over different classes only. Pair sums
are stored by *rank*: first the first member of each class, then the second member of each, and so on.
Interactions within classes then form long streams that need no test of the class. Positions are stored axis
by axis, (dim, P). Every loop has one order, which depends only on the number of pair sums. The bits are
therefore the same for any number of threads, and for a run alone as in an ensemble.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import prange
from numpy.typing import NDArray

from physics.jit import address_of, call, inner_kernel, kernel, piece, rows_kernel
from physics.particles.alignment import align, half_planes, half_spaces, merge_sort, sort
from physics.particles.repulsion import (
    repel_apart,
    repel_group,
    repel_rectangle,
    repulsion_apart,
    share_of_repulsion,
)

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class Pairs(NamedTuple):
    """Layout of the P pair sums in memory, in slots; `physics.particles.pair_sums` chooses their order."""

    first: Integers
    """Token i of the pair (i, j) in each slot, (P,)."""
    second: Integers
    """Token j of the pair (i, j) in each slot, (P,)."""
    label: Integers
    """Class of the pair in each slot, (P,)."""
    meetings: Integers
    """Streams (a, b, length), (streams, 3): slots a + c and b + c are of one class for all c < length."""


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


class Calls(NamedTuple):
    """Addresses (integers) of the kernels of a force, in fields named after them; 0 if one is not needed."""

    pair_sums: int
    work: int
    repulsion: int
    repel_group: int
    repel: int
    same_class: int
    add: int
    gather: int
    move: int
    align: int = 0
    half_planes: int = 0
    half_spaces: int = 0
    sort: int = 0
    merge_sort: int = 0


COINCIDENT = 1e-13
"""Spread along an axis, relative to the largest coordinate, that counts as rounding error."""

STREAM = 512
"""Length of the longest stream of interactions, chosen so that its data stay in the nearest caches."""


@inner_kernel()
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


@inner_kernel()
def _pair_sums(position: Array, pairs: Pairs, sums: Array, units: Array) -> None:
    """Write the pair sums to `sums` and their unit vectors, zero at the origin, to `units` (dim, P)."""
    dim, count = sums.shape
    norm = np.empty(count)
    for a in range(count):
        norm[a] = 0.0
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


@inner_kernel()
def _gather(pair_force: Array, pairs: Pairs, force: Array) -> None:
    """Write the forces on particles, (tokens, dim): those on pair sums, (dim, P), act on both particles."""
    force[:] = 0.0
    for a in range(pairs.first.size):
        for k in range(force.shape[1]):
            force[pairs.first[a], k] += pair_force[k, a]
            force[pairs.second[a], k] += pair_force[k, a]


@inner_kernel()
def _move(position: Array, force: Array, step_size: float, normalise: bool) -> None:
    """Advance one run (tokens, dim) by an Euler step; `normalise` ends it with zero mean and unit variance.

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


def move(position: Array, force: Array, step_size: float, normalise: bool) -> None:
    """Move the particles of one run in place by one Euler step, called from Python.

    `position` (tokens, dim) moves by `step_size` times `force` (tokens, dim). With `normalise`, every axis is
    then shifted to zero mean and scaled to unit variance; an axis on which all particles coincide up to
    rounding errors is set to zero.
    """
    arguments = position, force, step_size, normalise
    _call_move(*arguments, address_of(_move, *arguments))


@kernel()
def _call_move(position: Array, force: Array, step_size: float, normalise: bool, address: int) -> None:
    call(address, (position, force, step_size, normalise))


@inner_kernel()
def _work_in_plane(
    task: int,
    tasks: int,
    sums: Array,
    units: Array,
    pairs: Pairs,
    law: Law,
    repel: bool,
    share: Array,
    aligned: Array,
    calls: Calls,
) -> None:
    """Do one of `tasks` parts of the work in the plane, and write its forces to `share` (dim, P).

    If there is alignment between classes, the last task also writes the sums over half planes to `aligned`.
    """
    share[:] = 0.0
    if repel:
        strength, squared = law.repulsion, law.softening_squared
        call(calls.repulsion, (sums, task, tasks, strength, squared, share, calls.repel_group, calls.repel))
    call(calls.same_class, (sums, units, pairs.meetings, task, tasks, law, share))
    if law.alignment_diff != 0.0 and task == tasks - 1:
        call(calls.half_planes, (sums, units, aligned, calls.sort, calls.merge_sort))


@inner_kernel()
def _work_apart(
    task: int,
    tasks: int,
    sums: Array,
    units: Array,
    pairs: Pairs,
    law: Law,
    repel: bool,
    share: Array,
    aligned: Array,
    calls: Calls,
) -> None:
    """Do one of `tasks` parts of the work as `_work_in_plane` does, in any dimension, for any softening."""
    count = pairs.label.size
    share[:] = 0.0
    if repel:
        strength, squared = law.repulsion, law.softening_squared
        call(calls.repulsion, (sums, pairs.label, task, tasks, strength, squared, share, calls.repel))
    call(calls.same_class, (sums, units, pairs.meetings, task, tasks, law, share))
    if law.alignment_diff != 0.0:
        if len(sums) != 2:
            begin, end = count * task // tasks, count * (task + 1) // tasks
            call(calls.half_spaces, (sums, units, begin, end, aligned))
        elif task == tasks - 1:
            call(calls.half_planes, (sums, units, aligned, calls.sort, calls.merge_sort))


def calls_of(pairs: Pairs, law: Law, dim: int) -> Calls:
    """Return the addresses of the kernels that `law` needs in `dim` dimensions; compile them once.

    Only the types of `pairs` matter. Which kernels are needed depends on `law.apart`, on whether there is
    alignment between classes, and on whether `dim` is 2.
    """
    kind = law.apart, law.alignment_diff != 0.0, dim == 2
    if kind not in _calls:
        _calls[kind] = _compiled(pairs, law, dim)
    return _calls[kind]


_calls: dict[tuple[bool, bool, bool], Calls] = {}


def _compiled(pairs: Pairs, law: Law, dim: int) -> Calls:
    array, order, key = np.empty((dim, 0)), np.empty(0, np.int64), np.empty(0)
    labels = pairs.label
    if law.apart:
        repel = address_of(repel_apart, array, labels, array, 0, 1, 0, 1, 0.0, 0.0)
        repulsion, group = address_of(repulsion_apart, array, labels, 0, 1, 0.0, 0.0, array, 0), 0
    else:
        repel = address_of(repel_rectangle, array, array, 0, 1, 0, 1, 0.0, 0.0)
        repulsion = address_of(share_of_repulsion, array, 0, 1, 0.0, 0.0, array, 0, 0)
        group = address_of(repel_group, array, array, 0, 1, 0.0, 0.0)
    calls = Calls(
        address_of(_pair_sums, array, pairs, array, array),
        0,
        repulsion,
        group,
        repel,
        address_of(_same_class, array, array, pairs.meetings, 0, 1, law, array),
        address_of(_add, array, array),
        address_of(_gather, array, pairs, array),
        address_of(_move, array, array, 0.0, True),
    )
    if law.alignment_diff != 0.0:
        calls = calls._replace(align=address_of(align, array, array, array, 0.0, array))
        if dim == 2:
            calls = calls._replace(
                half_planes=address_of(half_planes, array, array, array, 0, 0),
                sort=address_of(sort, key, order, 0),
                merge_sort=address_of(merge_sort, key, order, order),
            )
        else:
            calls = calls._replace(half_spaces=address_of(half_spaces, array, array, 0, 1, array))
    work = _work_apart if law.apart else _work_in_plane
    return calls._replace(work=address_of(work, 0, 1, array, array, pairs, law, True, array, array, calls))


@inner_kernel()
def _add(share: Array, total: Array) -> None:
    for k in range(len(share)):
        found, out = share[k], total[k]
        for a in range(out.size):
            out[a] += found[a]


@rows_kernel()
def advance_runs(
    begin: int,
    end: int,
    positions: Array,
    pairs: Pairs,
    law: Law,
    step_size: float,
    steps: int,
    normalise: bool,
    tasks: int,
    forces: Array,
    repel: bool,
    calls: Calls,
) -> None:
    """Move the runs from `begin` to before `end` by `steps` steps, one run after the other.

    `positions` (runs, tokens, dim) are overwritten, and `forces`, of the same shape, receives the forces
    before the last step. With `steps` = 0 the forces are computed and nothing moves; without `repel` they
    lack the repulsion from all pair sums. `step_size` is in units of time, `normalise` is as in `move`, and
    `calls` is what `calls_of` returns for the layout `pairs` and the constants `law`. The `tasks` parts of
    the work are done in turn, so that the bits are those of `advance_rows`.
    """
    dim, count = positions.shape[2], pairs.first.size
    sums, units, total = np.empty((dim, count)), np.empty((dim, count)), np.empty((dim, count))
    share, aligned = np.empty((dim, count)), np.empty((dim, count))
    for run in range(begin, end):
        for step in range(max(steps, 1)):
            call(calls.pair_sums, (positions[run], pairs, sums, units))
            total[:] = 0.0
            for task in range(tasks):
                call(calls.work, (task, tasks, sums, units, pairs, law, repel, share, aligned, calls))
                call(calls.add, (share, total))
            if law.alignment_diff != 0.0:
                call(calls.align, (aligned, sums, units, law.alignment_diff, total))
            call(calls.gather, (total, pairs, forces[run]))
            if step < steps:
                call(calls.move, (positions[run], forces[run], step_size, normalise))


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
    calls: Calls,
) -> None:
    """Advance all runs as `advance_runs` does, with the same arguments, but each run on all cores.

    The work of a step is cut into `tasks` parts. Each part writes its forces to a row of `partial` (tasks,
    dim, P), and these rows are added in a fixed order.
    """
    runs, _, dim = positions.shape
    count = pairs.first.size
    partial = np.empty((tasks, dim, count))
    sums, units, total = np.empty((dim, count)), np.empty((dim, count)), np.empty((dim, count))
    aligned = np.empty((dim, count))
    for run in range(runs):
        for step in range(max(steps, 1)):
            call(calls.pair_sums, (positions[run], pairs, sums, units))
            for task in prange(tasks):
                share, at = partial[task], np.int64(task)
                call(calls.work, (at, tasks, sums, units, pairs, law, repel, share, aligned, calls))
            total[:] = 0.0
            for task in range(tasks):  # a parallel loop would cost more to start
                call(calls.add, (partial[task], total))
            if law.alignment_diff != 0.0:
                call(calls.align, (aligned, sums, units, law.alignment_diff, total))
            call(calls.gather, (total, pairs, forces[run]))
            if step < steps:
                call(calls.move, (positions[run], forces[run], step_size, normalise))
