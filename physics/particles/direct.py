"""Direct sum of the forces between pair sums, and the Euler step of an ensemble of particles (Musat §5-6).

The force splits exactly into three sums (P pair sums, N particles):

1. repulsion from *all* pair sums, P²/2 reciprocals without a test of the class;
2. alignment against *all* pair sums, a sum of unit vectors over the open half space s_a·s_b > 0;
3. the corrections for pairs of the same class: N³/8 pairs.

Pair sums are stored by *rank*: the first member of each class, then the second of each, and so on, so that
interactions within classes form long streams without a test of the class. Positions are kept axis by axis
(dim, P). Every loop has one order, fixed by the number of pair sums alone: the same bits for any number of
threads, and for a run alone as for the same run in an ensemble.
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
    """Layout of the pair sums in memory."""

    first: Integers
    """(P,): i of the pair (i, j) in every slot."""
    second: Integers
    """(P,): j of the pair in every slot."""
    label: Integers
    """(P,): class of the pair in every slot."""
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
    """Whether to sum the repulsion over different classes only: slower than to subtract the excess."""


class Calls(NamedTuple):
    """Addresses of the kernels that a force needs, 0 where it does without."""

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
"""Spread of an axis, relative to the distance from the origin, that counts as rounding error."""

STREAM = 512
"""Longest stream of interactions, chosen so that its data stay in the nearest caches."""


@inner_kernel()
def _same_class(
    sums: Array, units: Array, meetings: Integers, task: int, tasks: int, law: Law, out: Array
) -> None:
    """Add the interactions of pair sums of the same class, for every `tasks`-th stream of `meetings`.

    These are the attraction, the alignment with the opposite sign, and, unless `law.apart`, minus the
    repulsion that the sum over all pairs has already added.
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
    """Write the pair sums and their directions; a pair sum at the origin has none, one that overflows NaN."""
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
    """Sum the forces on pair sums to those on particles; a pair (i, i) counts twice."""
    force[:] = 0.0
    for a in range(pairs.first.size):
        for k in range(force.shape[1]):
            force[pairs.first[a], k] += pair_force[k, a]
            force[pairs.second[a], k] += pair_force[k, a]


@inner_kernel()
def _move(position: Array, force: Array, step_size: float, normalise: bool) -> None:
    """Advance one run: x + step_size·F, then, with `normalise`, zero mean and unit variance on every axis.

    An axis on which all particles coincide up to rounding has no scale and is set to zero. An axis whose
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


def move(position: Array, force: Array, step_size: float, normalise: bool) -> None:
    """Do the same from Python."""
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
    """Do one of `tasks` parts of the work: write its forces to `share`, and its part of `aligned`."""
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
    """Do one part of the work as `_work_in_plane` does, in any dimension and with any softening."""
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
    """Compile what a force under `law` needs in so many dimensions, unless that is done."""
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
    """Take `steps` steps of some runs, one after the other, and leave the last forces in `forces`.

    `positions` and `forces` are (runs, tokens, dim), `calls` is what `calls_of` returns. With `steps` = 0 the
    forces are computed and nothing moves; without `repel` they lack the repulsion, which is then computed
    elsewhere. The parts of the work are done in turn, so that the bits are those of `advance_rows`.
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
    """Advance runs as `advance_runs` does, but one after the other, each on all cores.

    The work of a step is cut into tasks, `partial` (tasks, dim, pairs) holds the result of each task, and
    these are summed in a fixed order. The tasks depend only on the number of pair sums.
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
            for task in range(tasks):  # a second parallel region would cost more than this
                call(calls.add, (partial[task], total))
            if law.alignment_diff != 0.0:
                call(calls.align, (aligned, sums, units, law.alignment_diff, total))
            call(calls.gather, (total, pairs, forces[run]))
            if step < steps:
                call(calls.move, (positions[run], forces[run], step_size, normalise))
