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

from physics.jit import kernel
from physics.values import Array, Int32, Integers, Mask


class Samples(NamedTuple):
    """All samples of an operation, also sorted by class."""

    tokens: int
    """Number of tokens."""
    pairs: Int32
    """The two tokens of each sample, (samples, 2)."""
    label: Int32
    """Class of each sample, (samples,)."""
    members: Int32
    """Numbers of the samples sorted by class, (samples,)."""
    starts: Int32
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
def _impose(x: Array, free: int, i: int, j: int, m: int, n: int, w: Array, prime: float) -> int:
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
def _solve(
    order: Int32, mask: Mask, samples: Samples, prime: float, floor: int, x: Array, w: Array
) -> tuple[int, int]:
    """Solve the linear system of the samples of `mask` in `x` (tokens, tokens), one after the other.

    Return the nullity, and how many samples of the `order` have been taken until it reached `floor`, or one
    more than all. The rank modulo a prime never exceeds the true rank. A nullity that has reached `floor`,
    the nullity of the complete data set, is therefore final.
    """
    x[:] = 0.0
    for token in range(x.shape[0]):  # each token has one coordinate of its own
        x[token, token] = 1.0
    free, pairs = x.shape[0], samples.pairs
    first = np.full(samples.starts.size - 1, -1, np.int32)
    for at in range(order.size):
        a = order[at]
        if mask[a]:
            base = first[samples.label[a]]
            if base < 0:
                first[samples.label[a]] = a
            else:
                i, j, m, n = pairs[base, 0], pairs[base, 1], pairs[a, 0], pairs[a, 1]
                free = _impose(x, free, i, j, m, n, w, prime)
                if free == floor:
                    return free, at + 1
    return free, order.size + 1


@kernel()
def _same(x: Array, nullities: Int32, nullity: int, primes: Array, one: Int32, other: Int32) -> bool:
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
def _fingerprints(x: Array, nullity: int, prime: float, h: Array) -> None:
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
def closures(
    masks: Mask,
    samples: Samples,
    primes: Array,
    floor: int,
    nullity: Int32,
    implied: Integers,
    augmented: Mask,
    groups: Int32,
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
    mask: Mask, samples: Samples, primes: Array, floor: int, augmented: Mask, group: Int32
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
        nullities[k], _ = _solve(samples.members, mask, samples, primes[k], floor, x[k], w)
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
def critical_sizes(orders: Int32, samples: Samples, primes: Array, floor: int, size: Integers) -> None:
    """Write how many samples of each order reduce the nullity to `floor`, to `size` (sets,).

    `orders` (sets, samples) are permutations of the numbers of the samples. Each of the `primes` gives an
    upper bound, and the smallest is exact. The result is the number of samples plus one if the nullity never
    reaches `floor`.
    """
    count, tokens = orders.shape[1], samples.tokens
    for s in prange(len(orders)):
        x, w, mask = np.empty((tokens, tokens)), np.empty(tokens), np.ones(count, np.bool_)
        size[s] = count + 1
        for k in range(primes.size):
            size[s] = min(size[s], _solve(orders[s], mask, samples, primes[k], floor, x, w)[1])


# -- deduction -------------------------------------------------------------------------------------------


@kernel()
def _find(parent: Int32, a: int) -> int:
    """Return the root of `a`, and shorten the path to it."""
    while parent[a] != a:
        parent[a] = parent[parent[a]]
        a = parent[a]
    return a


@kernel()
def _unite(parent: Int32, a: int, b: int) -> bool:
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
def _given(mask: Mask, samples: Samples, sums: Int32, quotients: Int32) -> None:
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
def _join_quotients(samples: Samples, sums: Int32, quotients: Int32) -> None:
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
def _follows(samples: Samples, a: int, b: int, quotients: Int32) -> bool:
    """Return whether parallelograms connect the left quotient of samples a and b to their right quotient."""
    tokens, pairs = samples.tokens, samples.pairs
    left = pairs[b, 0] * tokens + pairs[a, 0]
    right = tokens * tokens + pairs[b, 1] * tokens + pairs[a, 1]
    return _find(quotients, left) == _find(quotients, right)


@kernel(parallel=True)
def deductions(masks: Mask, samples: Samples, implied: Integers, augmented: Mask, groups: Int32) -> None:
    """Close each training set of `masks` (sets, samples): find what it implies by deduction.

    The results are the number `implied` of parallelograms (sets,), the `augmented` training sets, and the
    partition `groups` (sets, samples each).
    """
    members, starts = samples.members, samples.starts
    for s in prange(len(masks)):
        sums = np.empty(masks.shape[1], np.int32)
        quotients = np.empty(2 * samples.tokens * samples.tokens, np.int32)
        _given(masks[s], samples, sums, quotients)
        changed = True
        while changed:
            changed = False
            _join_quotients(samples, sums, quotients)
            for a in range(sums.size):  # an assignment of arrays would compile for three seconds more
                augmented[s, a] = masks[s, a]
            implied[s] = 0
            for c in range(starts.size - 1):
                for k in range(starts[c], starts[c + 1]):
                    a = members[k]
                    for later in range(k + 1, starts[c + 1]):
                        b = members[later]
                        if _follows(samples, a, b, quotients):
                            implied[s] += 1
                            augmented[s, a] |= masks[s, b]
                            augmented[s, b] |= masks[s, a]
                            changed |= _unite(sums, a, b)
        for a in range(sums.size):
            groups[s, a] = _find(sums, a)
