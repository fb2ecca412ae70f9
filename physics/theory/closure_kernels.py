"""Kernels of the closure of training sets: by linear algebra modulo primes, or by deduction (Liu, App. H).

**Linear closure**, of a commuting operation. The linear system "E_i + E_j = y_c for each training sample
(i, j) of class c" is solved token by token. Each token has coordinates in the space of solutions, at first a
single one that no other token has. The first sample of each class defines y_c. Every later sample is a
relation between four tokens, whose coordinates add up to a vector w. If w is not zero, one coordinate is
eliminated from all tokens. The remaining coordinates are a basis of the null space. Residues are kept in
float64. For primes below 2²⁶ a product stays below 2⁵², so products and remainders are exact, and loops over
coordinates are vectorized.

**Deduction**, if the operation does not commute. A parallelogram E_x E_y = E_z E_w says that E_z⁻¹ E_x =
E_w E_y⁻¹: the left quotient (z, x) equals the right quotient (w, y). Left and right quotients are thus the
two sides of a bipartite graph whose edges are parallelograms. The paper's step, from three parallelograms
that share quotients to a fourth, makes every connected component complete if it is repeated. A union-find
structure of components therefore replaces a search for triples.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import prange
from numpy.typing import NDArray

from physics.jit import kernel

Float = NDArray[np.float64]
Int = NDArray[np.int32]
Bool = NDArray[np.bool_]


class Samples(NamedTuple):
    """All samples of an operation, also sorted by class."""

    tokens: int
    """Number of tokens."""
    pairs: Int
    """The two tokens of each sample, (samples, 2)."""
    label: Int
    """Class of each sample, (samples,)."""
    members: Int
    """Numbers of the samples sorted by class, (samples,)."""
    starts: Int
    """Where each class starts among the members, and the end of the last one, (classes + 1,)."""


# -- linear algebra modulo primes ------------------------------------------------------------------------


@kernel()
def _residue(value: float, prime: float, inverse: float) -> float:
    """Return an integer `value`, |value| < 2⁵², modulo `prime`, given 1/prime as `inverse`.

    The rounded quotient may be wrong by one, which the two tests correct.
    """
    rest = value - math.floor(value * inverse) * prime
    if rest < 0.0:
        rest += prime
    if rest >= prime:
        rest -= prime
    return rest


@kernel()
def _reciprocal(value: float, prime: float) -> float:
    """Return the inverse of `value` modulo `prime`, by Euclid's algorithm on integers in float64."""
    old_rest, rest, old_factor, factor = value, prime, 1.0, 0.0
    while rest != 0.0:
        quotient = math.floor(old_rest / rest)
        old_rest, rest = rest, old_rest - quotient * rest
        old_factor, factor = factor, old_factor - quotient * factor
    return old_factor + prime if old_factor < 0.0 else old_factor


@kernel()
def _start(x: Float) -> None:
    """Give each token one coordinate of its own in `x` (tokens, tokens)."""
    x[:] = 0.0
    for token in range(x.shape[0]):
        x[token, token] = 1.0


@kernel()
def _impose(x: Float, free: int, i: int, j: int, m: int, n: int, w: Float, prime: float) -> int:
    """Impose x_i + x_j = x_m + x_n on the coordinates `x` (tokens, free), and return how many remain free."""
    inverse = 1.0 / prime
    pivot = -1
    for c in range(free):
        w[c] = _residue(x[i, c] + x[j, c] - x[m, c] - x[n, c], prime, inverse)
        if w[c] != 0.0:
            pivot = c  # the last one, so that removing it moves the fewest entries
    if pivot < 0:
        return free
    scale = w[pivot]
    if scale != 1.0:
        scale = _reciprocal(scale, prime)
        for c in range(free):
            w[c] = _residue(w[c] * scale, prime, inverse)
    last = free - 1
    w[pivot] = w[last]
    for token in range(x.shape[0]):
        factor = x[token, pivot]
        x[token, pivot] = x[token, last]
        if factor != 0.0:
            for c in range(last):
                x[token, c] = _residue(x[token, c] - factor * w[c], prime, inverse)
    return last


@kernel()
def _solve(mask: Bool, samples: Samples, prime: float, floor: int, x: Float, w: Float) -> int:
    """Solve the linear system of the training set `mask` in `x` (tokens, tokens), and return its nullity.

    The rank modulo a prime never exceeds the true rank. A nullity that has reached `floor`, the nullity of
    the complete data set, is therefore final.
    """
    _start(x)
    free, pairs = x.shape[0], samples.pairs
    for c in range(samples.starts.size - 1):
        first = -1
        for k in range(samples.starts[c], samples.starts[c + 1]):
            a = samples.members[k]
            if not mask[a]:
                continue
            if first < 0:
                first = a
                continue
            i, j, m, n = pairs[first, 0], pairs[first, 1], pairs[a, 0], pairs[a, 1]
            free = _impose(x, free, i, j, m, n, w, prime)
            if free == floor:
                return free
    return free


@kernel()
def _same(x: Float, nullities: Int, nullity: int, primes: Float, one: Int, other: Int) -> bool:
    """Return whether two samples have equal sums in every solution.

    They are compared modulo all primes for which the rank is the true one.
    """
    i, j, m, n = one[0], one[1], other[0], other[1]
    for k in range(primes.size):
        if nullities[k] != nullity:
            continue
        prime = primes[k]
        for c in range(nullity):
            w = x[k, i, c] + x[k, j, c] - x[k, m, c] - x[k, n, c]
            if w != 0.0 and w != prime and w != -prime:
                return False
    return True


@kernel()
def _fingerprints(x: Float, nullity: int, prime: float, h: Float) -> None:
    """Write a linear function of each token's coordinates modulo `prime` to `h` (tokens,).

    Samples with equal sums of coordinates have equal sums of fingerprints modulo `prime`; the converse need
    not hold.
    """
    inverse = 1.0 / prime
    for token in range(h.size):
        total = 0.0
        weight = 48271.0
        for c in range(nullity):
            weight = _residue(weight * 16807.0, prime, inverse)
            total = _residue(total + x[token, c] * weight, prime, inverse)
        h[token] = total


@kernel(parallel=True)
def nullities(masks: Bool, samples: Samples, primes: Float, floor: int, nullity: Int) -> None:
    """Write the nullity n_0 of each training set of `masks` (sets, samples) to `nullity` (sets,).

    Ranks are computed modulo the `primes` (primes,). `floor` is a lower bound of the nullities, at which the
    computation stops.
    """
    for s in prange(len(masks)):
        x, w = np.empty((samples.tokens, samples.tokens)), np.empty(samples.tokens)
        n_0 = samples.tokens
        for k in range(primes.size):
            n_0 = min(n_0, _solve(masks[s], samples, primes[k], floor, x, w))
            if n_0 == floor:
                break
        nullity[s] = n_0


@kernel(parallel=True)
def closures(
    masks: Bool,
    samples: Samples,
    primes: Float,
    floor: int,
    nullity: Int,
    implied: NDArray[np.int64],
    augmented: Bool,
    groups: Int,
) -> None:
    """Find what each training set of `masks` (sets, samples) implies: its closure.

    `floor` is a lower bound of the nullities. The results are `nullity` n_0 (sets,), the number `implied` of
    parallelograms (sets,), the `augmented` training sets (sets, samples), and `groups` (sets, samples), in
    which two samples of a class have the same number if their sums agree in every solution. The caller
    ensures that the product of the `primes` exceeds every minor that decides a rank.
    """
    for s in prange(len(masks)):
        nullity[s], implied[s] = _closure(masks[s], samples, primes, floor, augmented[s], groups[s])


@kernel()
def _closure(
    mask: Bool, samples: Samples, primes: Float, floor: int, augmented: Bool, group: Int
) -> tuple[int, int]:
    """Close one training set, and return its nullity and the number of implied parallelograms."""
    tokens, pairs = samples.tokens, samples.pairs
    x = np.empty((primes.size, tokens, tokens))
    nullities = np.empty(primes.size, np.int32)
    w, h = np.empty(tokens), np.empty(tokens)
    count = mask.size
    leader = np.empty(count, np.int32)  # first sample of each group
    size = np.empty(count, np.int64)
    trained = np.empty(count, np.bool_)
    fingerprint = np.empty(count)
    n_0 = tokens
    for k in range(primes.size):
        nullities[k] = _solve(mask, samples, primes[k], floor, x[k], w)
        n_0 = min(n_0, nullities[k])
        if n_0 == floor:
            break
    filled = 0  # number of groups so far
    total = 0
    modulus = 0.0
    if n_0 > floor:
        for k in range(primes.size):
            if nullities[k] == n_0:
                _fingerprints(x[k], n_0, primes[k], h)
                modulus = primes[k]
                break
    for c in range(samples.starts.size - 1):
        begin = filled
        for k in range(samples.starts[c], samples.starts[c + 1]):
            a = samples.members[k]
            f, g = 0.0, begin
            if n_0 > floor:
                f = h[pairs[a, 0]] + h[pairs[a, 1]]
                if f >= modulus:
                    f -= modulus
                while g < filled and not (
                    fingerprint[g] == f and _same(x, nullities, n_0, primes, pairs[a], pairs[leader[g]])
                ):
                    g += 1
            # Otherwise the set determines as much as the complete data set, so that classes are the groups.
            if g == filled:
                leader[g], fingerprint[g] = a, f
                size[g], trained[g] = 0, False
                filled += 1
            group[a] = g
            total += size[g]
            size[g] += 1
            trained[g] |= mask[a]
    for a in range(count):
        augmented[a] = trained[group[a]]
    return n_0, total


@kernel(parallel=True)
def critical_sizes(orders: Int, samples: Samples, primes: Float, floor: int, size: NDArray[np.int64]) -> None:
    """Write how many samples of each order reduce the nullity to `floor`, to `size` (sets,).

    `orders` (sets, samples) are permutations of the numbers of the samples. Each of the `primes` gives an
    upper bound, and the smallest is exact. The result is the number of samples plus one if the nullity never
    reaches `floor`.
    """
    count, tokens, pairs = orders.shape[1], samples.tokens, samples.pairs
    for s in prange(len(orders)):
        x, w = np.empty((tokens, tokens)), np.empty(tokens)
        first = np.empty(samples.starts.size - 1, np.int32)
        size[s] = count + 1
        for k in range(primes.size):
            _start(x)
            first[:] = -1
            free = tokens
            at = 0
            while at + 1 < size[s] and free > floor:  # a size is at most one more than all samples
                a = orders[s, at]
                at += 1
                base = first[samples.label[a]]
                if base < 0:
                    first[samples.label[a]] = a
                else:
                    i, j, m, n = pairs[base, 0], pairs[base, 1], pairs[a, 0], pairs[a, 1]
                    free = _impose(x, free, i, j, m, n, w, primes[k])
            if free == floor:
                size[s] = at


# -- deduction -------------------------------------------------------------------------------------------


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
def _given(mask: Bool, samples: Samples, sums: Int, quotients: Int) -> None:
    """Initialize the trees: join the training samples of each class in `sums`, and no `quotients`."""
    for a in range(sums.size):
        sums[a] = a
    for a in range(quotients.size):
        quotients[a] = a
    for c in range(samples.starts.size - 1):
        first = -1
        for k in range(samples.starts[c], samples.starts[c + 1]):
            a = samples.members[k]
            if mask[a]:
                if first >= 0:
                    _unite(sums, first, a)
                else:
                    first = a


@kernel()
def _join_quotients(samples: Samples, sums: Int, quotients: Int) -> None:
    """Join the left and right quotients, and their inverses, of any two samples joined in `sums`.

    The left quotient (z, x) is node z·tokens + x, and the right quotient (w, y) is node tokens² + w·tokens +
    y.
    """
    tokens, members, starts = samples.tokens, samples.members, samples.starts
    right = tokens * tokens
    for c in range(starts.size - 1):
        for k in range(starts[c], starts[c + 1]):
            a = members[k]
            for later in range(k + 1, starts[c + 1]):
                b = members[later]
                if _find(sums, a) == _find(sums, b):
                    x, y = samples.pairs[a, 0], samples.pairs[a, 1]
                    z, w = samples.pairs[b, 0], samples.pairs[b, 1]
                    _unite(quotients, z * tokens + x, right + w * tokens + y)
                    _unite(quotients, x * tokens + z, right + y * tokens + w)


@kernel()
def _follows(samples: Samples, a: int, b: int, quotients: Int) -> bool:
    """Return whether parallelograms connect the left quotient of samples a and b to their right quotient."""
    tokens, pairs = samples.tokens, samples.pairs
    left = pairs[b, 0] * tokens + pairs[a, 0]
    right = tokens * tokens + pairs[b, 1] * tokens + pairs[a, 1]
    return _find(quotients, left) == _find(quotients, right)


@kernel()
def _deduce(mask: Bool, samples: Samples, sums: Int, quotients: Int) -> None:
    """Join the samples whose products must be equal in `sums`; `quotients` (2 tokens²,) is scratch memory."""
    members, starts = samples.members, samples.starts
    _given(mask, samples, sums, quotients)
    changed = True
    while changed:
        changed = False
        _join_quotients(samples, sums, quotients)
        for c in range(starts.size - 1):
            for k in range(starts[c], starts[c + 1]):
                for later in range(k + 1, starts[c + 1]):
                    if _follows(samples, members[k], members[later], quotients):
                        changed |= _unite(sums, members[k], members[later])


@kernel()
def _tally(mask: Bool, sums: Int, group: Int, augmented: Bool) -> int:
    """Return the number |P(D)| of implied parallelograms: of pairs of samples with the same root in `sums`.

    The root of each sample is written to `group`. In `augmented`, all samples are marked that share a root
    with a sample of the training set `mask`.
    """
    size = np.zeros(sums.size, np.int64)
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


@kernel(parallel=True)
def deductions(
    masks: Bool, samples: Samples, implied: NDArray[np.int64], augmented: Bool, groups: Int
) -> None:
    """Close each training set of `masks` (sets, samples): find what it implies by deduction.

    The results are the number `implied` of parallelograms (sets,), the `augmented` training sets, and the
    partition `groups` (sets, samples each).
    """
    for s in prange(len(masks)):
        sums = np.empty(masks.shape[1], np.int32)
        quotients = np.empty(2 * samples.tokens * samples.tokens, np.int32)
        _deduce(masks[s], samples, sums, quotients)
        implied[s] = _tally(masks[s], sums, groups[s], augmented[s])


@kernel(parallel=True)
def chains(masks: Bool, samples: Samples, implied: NDArray[np.int64], augmented: Bool) -> None:
    """Count what chains of parallelograms imply, without the transitivity of equal products.

    The results are as of `deductions`. One round is enough, because a parallelogram that follows joins
    quotients of one component.
    """
    members, starts = samples.members, samples.starts
    for s in prange(len(masks)):
        sums = np.empty(masks.shape[1], np.int32)
        quotients = np.empty(2 * samples.tokens * samples.tokens, np.int32)
        _given(masks[s], samples, sums, quotients)
        _join_quotients(samples, sums, quotients)
        augmented[s] = masks[s]
        total = 0
        for c in range(starts.size - 1):
            for k in range(starts[c], starts[c + 1]):
                a = members[k]
                for later in range(k + 1, starts[c + 1]):
                    b = members[later]
                    if _follows(samples, a, b, quotients):
                        total += 1
                        augmented[s, a] |= masks[s, b]
                        augmented[s, b] |= masks[s, a]
        implied[s] = total
