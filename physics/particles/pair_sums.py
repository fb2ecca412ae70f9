"""How the pair sums of a training set are arranged in memory for the kernels."""

import numpy as np
from numpy.typing import NDArray

from physics.particles.direct import STREAM, Pairs
from physics.particles.lanes import Classes
from physics.theory.operations import Mask, Operation

Integers = NDArray[np.int64]


def pair_layout(operation: Operation, mask: Mask) -> Pairs:
    """Arrange the pair sums by their rank within their class, and list which of them are of the same class.

    The first members of all classes come first, then the second members, and so on. Within a rank, larger
    classes come first, so that the classes that have a member of that rank are contiguous. `operation` gives
    pairs their classes, and `mask` (samples,) says which of its samples interact. The arrays of the result
    are read-only.
    """
    first, second = operation.samples[mask].T.astype(np.int64)
    label = operation.label[mask].astype(np.int64)
    sizes = np.bincount(label)
    place = np.empty(sizes.size, np.int64)
    place[np.argsort(-sizes, kind="stable")] = np.arange(sizes.size)
    rank = np.empty_like(label)
    rank[np.argsort(label, kind="stable")] = np.arange(label.size) - np.repeat(
        np.cumsum(sizes) - sizes, sizes
    )
    slots = np.lexsort((place[label], rank))
    layout = Pairs(first[slots], second[slots], label[slots], _meetings(np.bincount(rank)))
    for array in layout:
        array.setflags(write=False)
    return layout


def class_layout(operation: Operation, mask: Mask) -> Classes:
    """Arrange the pair sums class by class, for the kernels in `physics.particles.lanes`.

    `operation` gives pairs their classes, and `mask` (samples,) says which of its samples interact. Within a
    class they keep their order.
    """
    label = operation.label[mask]
    slots = np.argsort(label, kind="stable")
    first, second = operation.samples[mask][slots].T.astype(np.int64)
    end = np.searchsorted(label[slots], label[slots], side="right").astype(np.int64)
    return Classes(np.ascontiguousarray(first), np.ascontiguousarray(second), end)


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
    return np.stack(
        [a[which] + offset, b[which] + offset, np.minimum(length[which] - offset, STREAM)], axis=1
    )
