"""Kernels that list parallelograms, and count how many an embedding has (Liu, Eqs. 1-3 and 12)."""

import numpy as np
from numba import prange
from numpy.typing import NDArray

from physics.jit import kernel

Int = NDArray[np.int32]
Float = NDArray[np.float64]


@kernel(parallel=True)
def fill(
    samples: Int,
    members: Int,
    place: Int,
    ends: Int,
    offsets: NDArray[np.int64],
    out: Int,
) -> None:
    """Write all pairs of samples of the same class to `out` (count, 4), in lexicographic order.

    `samples` (samples, 2) are pairs of tokens, and `members` (samples,) their numbers sorted by class.
    ``place[a]`` is the position of sample a among the members, and ``ends[a]`` is the end of its class.
    Sample a thus forms ``ends[a] - place[a] - 1`` parallelograms with later ones, and writes them from the
    row ``offsets[a]`` on, which the caller has counted.
    """
    for a in prange(len(samples)):
        row = offsets[a]
        for k in range(place[a] + 1, ends[a]):
            b = members[k]
            out[row, 0] = samples[a, 0]
            out[row, 1] = samples[a, 1]
            out[row, 2] = samples[b, 0]
            out[row, 3] = samples[b, 1]
            row += 1


@kernel(parallel=True)
def near_sums(
    sums: Float,
    members: Int,
    starts: Int,
    mask: NDArray[np.bool_],
    bound: float,
    found: NDArray[np.int64],
    augmented: NDArray[np.bool_],
) -> None:
    """Find the parallelograms of each state.

    `sums` (states, samples, components) are the sums or products of the samples, sorted by class: `members`
    (samples,) are the numbers of the samples in this order, and class c begins at ``starts[c]``. Two samples
    of a class whose squared distance is at most `bound` are a parallelogram. Their number is written to
    `found` (states,). The samples that `mask` (samples,) marks as trained, and those that form a
    parallelogram with a trained one, are marked in `augmented` (states, samples). Both are in the original
    order of the samples.
    """
    _, count, components = sums.shape
    for s in prange(len(sums)):
        for a in range(count):
            augmented[s, a] = mask[a]
        total = 0
        for c in range(starts.size - 1):
            for k in range(starts[c], starts[c + 1]):
                trained = mask[members[k]]
                for other in range(k + 1, starts[c + 1]):
                    distance_squared = 0.0
                    for d in range(components):
                        difference = sums[s, k, d] - sums[s, other, d]
                        distance_squared += difference * difference
                    if distance_squared <= bound:
                        total += 1
                        if trained:
                            augmented[s, members[other]] = True
                        elif mask[members[other]]:
                            augmented[s, members[k]] = True
        found[s] = total
