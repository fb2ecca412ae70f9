"""Kernels of the closure of training sets under an operation that does not commute (Liu, Appendix H).

A parallelogram E_x E_y = E_z E_w says that E_z⁻¹ E_x = E_w E_y⁻¹: the left quotient (z, x) equals the right
quotient (w, y). Left and right quotients are thus the two sides of a bipartite graph whose edges are
parallelograms. The paper's step, from three parallelograms that share quotients to a fourth, makes every
connected component complete if it is repeated. A union-find structure of components therefore replaces a
search for triples.
"""

import numpy as np
from numpy.typing import NDArray

from physics.jit import kernel, rows_kernel

Int = NDArray[np.int32]


@kernel()
def _find(parent: Int, a: int) -> int:
    """Return the root of `a`, and shorten the path to it."""
    while parent[a] != a:
        parent[a] = parent[parent[a]]
        a = parent[a]
    return a


@kernel()
def _unite(parent: Int, a: int, b: int) -> bool:
    """Join two trees under the smaller root, and return whether they were separate."""
    a = _find(parent, a)
    b = _find(parent, b)
    if a == b:
        return False
    if a < b:
        parent[b] = a
    else:
        parent[a] = b
    return True


@kernel()
def _given(mask: NDArray[np.bool_], members: Int, starts: Int, sums: Int, quotients: Int) -> None:
    """Initialize the trees: join the training samples of each class in `sums`, and no `quotients`."""
    for a in range(sums.size):
        sums[a] = a
    for a in range(quotients.size):
        quotients[a] = a
    for c in range(starts.size - 1):
        first = -1
        for k in range(starts[c], starts[c + 1]):
            if mask[members[k]]:
                if first >= 0:
                    _unite(sums, first, members[k])
                else:
                    first = members[k]


@kernel()
def _join_quotients(samples: Int, members: Int, starts: Int, tokens: int, sums: Int, quotients: Int) -> None:
    """Join the left and right quotients, and their inverses, of any two samples joined in `sums`.

    The left quotient (z, x) is node z·tokens + x, and the right quotient (w, y) is node tokens² + w·tokens +
    y.
    """
    right = tokens * tokens
    for c in range(starts.size - 1):
        for k in range(starts[c], starts[c + 1]):
            a = members[k]
            for other in range(k + 1, starts[c + 1]):
                b = members[other]
                if _find(sums, a) == _find(sums, b):
                    x, y = samples[a, 0], samples[a, 1]
                    z, w = samples[b, 0], samples[b, 1]
                    _unite(quotients, z * tokens + x, right + w * tokens + y)
                    _unite(quotients, x * tokens + z, right + y * tokens + w)


@kernel()
def _follows(samples: Int, a: int, b: int, tokens: int, quotients: Int) -> bool:
    """Return whether parallelograms connect the left quotient of samples a and b to their right quotient."""
    left = samples[b, 0] * tokens + samples[a, 0]
    right = tokens * tokens + samples[b, 1] * tokens + samples[a, 1]
    return _find(quotients, left) == _find(quotients, right)


@kernel()
def _deduce(
    mask: NDArray[np.bool_], samples: Int, members: Int, starts: Int, tokens: int, sums: Int, quotients: Int
) -> None:
    """Join the samples whose products must be equal in `sums` (samples,).

    `quotients` (2 tokens²,) is scratch memory.
    """
    _given(mask, members, starts, sums, quotients)
    changed = True
    while changed:
        changed = False
        _join_quotients(samples, members, starts, tokens, sums, quotients)
        for c in range(starts.size - 1):
            for k in range(starts[c], starts[c + 1]):
                for other in range(k + 1, starts[c + 1]):
                    if _follows(samples, members[k], members[other], tokens, quotients):
                        changed |= _unite(sums, members[k], members[other])


@kernel()
def _tally(
    mask: NDArray[np.bool_], sums: Int, group: Int, size: NDArray[np.int64], augmented: NDArray[np.bool_]
) -> int:
    """Return the number |P(D)| of implied parallelograms: of pairs of samples with the same root in `sums`.

    The root of each sample is written to `group`. In `augmented`, all samples are marked that share a root
    with a sample of the training set `mask`. `size` is scratch memory, one number for each sample.
    """
    size[:] = 0
    augmented[:] = False
    total = 0
    for a in range(sums.size):
        root = _find(sums, a)
        group[a] = root
        total += size[root]
        size[root] += 1
        augmented[root] |= mask[a]
    for a in range(sums.size):  # a root precedes its members, so its entry is final
        augmented[a] = augmented[group[a]]
    return total


@rows_kernel()
def closures(
    begin: int,
    end: int,
    masks: NDArray[np.bool_],
    samples: Int,
    members: Int,
    starts: Int,
    implied: NDArray[np.int64],
    augmented: NDArray[np.bool_],
    groups: Int,
) -> None:
    """Close each training set of `masks` (sets, samples): find what it implies by deduction.

    `samples` (samples, 2) are pairs of tokens, `members` their numbers sorted by class, and ``starts[c]`` is
    where class c begins among them. The results are the number `implied` of parallelograms (sets,), the
    `augmented` training sets (sets, samples), and, unless it has no row, the partition `groups` (sets,
    samples).
    """
    count = masks.shape[1]
    tokens = 0
    for a in range(count):
        tokens = max(tokens, samples[a, 0] + 1, samples[a, 1] + 1)
    sums = np.empty(count, np.int32)
    quotients = np.empty(2 * tokens * tokens, np.int32)
    group = np.empty(count, np.int32)
    size = np.empty(count, np.int64)
    for s in range(begin, end):
        _deduce(masks[s], samples, members, starts, tokens, sums, quotients)
        implied[s] = _tally(masks[s], sums, group, size, augmented[s])
        if groups.shape[0] > 0:
            for a in range(count):  # Numba compiles an assignment of arrays for seconds
                groups[s, a] = group[a]


@rows_kernel()
def chains(
    begin: int,
    end: int,
    masks: NDArray[np.bool_],
    samples: Int,
    members: Int,
    starts: Int,
    implied: NDArray[np.int64],
    augmented: NDArray[np.bool_],
) -> None:
    """Count what chains of parallelograms imply, without the transitivity of equal products.

    The training sets are `masks` (sets, samples), and `samples`, `members` and `starts` are as in `closures`.
    The results are the number `implied` of parallelograms (sets,) and the `augmented` training sets (sets,
    samples). One round is enough, because a parallelogram that follows joins quotients of one component.
    """
    count = masks.shape[1]
    tokens = 0
    for a in range(count):
        tokens = max(tokens, samples[a, 0] + 1, samples[a, 1] + 1)
    for s in range(begin, end):
        sums = np.empty(count, np.int32)
        quotients = np.empty(2 * tokens * tokens, np.int32)
        _given(masks[s], members, starts, sums, quotients)
        _join_quotients(samples, members, starts, tokens, sums, quotients)
        for a in range(count):
            augmented[s, a] = masks[s, a]
        total = 0
        for c in range(starts.size - 1):
            for k in range(starts[c], starts[c + 1]):
                a = members[k]
                for other in range(k + 1, starts[c + 1]):
                    b = members[other]
                    if _follows(samples, a, b, tokens, quotients):
                        total += 1
                        if masks[s, a]:
                            augmented[s, b] = True
                        elif masks[s, b]:
                            augmented[s, a] = True
        implied[s] = total


@rows_kernel()
def critical_sizes(
    begin: int,
    end: int,
    orders: Int,
    samples: Int,
    members: Int,
    starts: Int,
    everything: int,
    size: NDArray[np.int64],
) -> None:
    """Write how many samples of each order imply all parallelograms, to `size` (sets,).

    `orders` (sets, samples) are permutations of the numbers of the samples, and `everything` is the number
    |P_0| of all parallelograms. `samples` (samples, 2) are pairs of tokens, `members` their numbers sorted by
    class, and ``starts[c]`` is where class c begins among them. A larger training set never implies less, so
    the number is found by bisection.
    """
    count = orders.shape[1]
    tokens = 0
    for a in range(count):
        tokens = max(tokens, samples[a, 0] + 1, samples[a, 1] + 1)
    for s in range(begin, end):
        sums = np.empty(count, np.int32)
        quotients = np.empty(2 * tokens * tokens, np.int32)
        group = np.empty(count, np.int32)
        tally = np.empty(count, np.int64)
        augmented = np.empty(count, np.bool_)
        mask = np.empty(count, np.bool_)
        low = 0
        high = count
        while high - low > 1:
            middle = (low + high) // 2
            mask[:] = False
            for k in range(middle):
                mask[orders[s, k]] = True
            _deduce(mask, samples, members, starts, tokens, sums, quotients)
            if _tally(mask, sums, group, tally, augmented) == everything:
                high = middle
            else:
                low = middle
        size[s] = high
