"""Kernels of the closure of training sets under a commuting operation, by linear algebra modulo primes.

The linear system "E_i + E_j = y_c for each training sample (i, j) of class c" is solved token by token. Each
token has coordinates in the space of solutions, at first a single one that no other token has. The first
sample of each class defines y_c. Every later sample is a relation between four tokens, whose coordinates add
up to a vector w. If w is not zero, one coordinate is eliminated from all tokens. The remaining coordinates
are a basis of the null space.

Residues are kept in float64. For primes below 2²⁶ a product stays below 2⁵², so products and remainders are
exact, and loops over coordinates are vectorized.
"""

import math

import numpy as np
from numpy.typing import NDArray

from physics.jit import kernel, rows_kernel

Float = NDArray[np.float64]
Int = NDArray[np.int32]


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
def _solve(
    mask: NDArray[np.bool_],
    samples: Int,
    members: Int,
    starts: Int,
    prime: float,
    floor: int,
    x: Float,
    w: Float,
) -> int:
    """Solve the linear system of the training set `mask` in `x` (tokens, tokens), and return its nullity.

    The rank modulo a prime never exceeds the true rank. A nullity that has reached `floor`, the nullity of
    the complete data set, is therefore final.
    """
    _start(x)
    free = x.shape[0]
    for c in range(starts.size - 1):
        first = -1
        for k in range(starts[c], starts[c + 1]):
            a = members[k]
            if not mask[a]:
                continue
            if first < 0:
                first = a
                continue
            free = _impose(
                x, free, samples[first, 0], samples[first, 1], samples[a, 0], samples[a, 1], w, prime
            )
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


@rows_kernel()
def nullities(
    first_set: int,
    last_set: int,
    masks: NDArray[np.bool_],
    samples: Int,
    members: Int,
    starts: Int,
    primes: Float,
    floor: int,
    nullity: Int,
) -> None:
    """Write the nullity n_0 of each training set of `masks` (sets, samples) to `nullity` (sets,).

    `samples` (samples, 2) are pairs of tokens, `members` their numbers sorted by class, and ``starts[c]`` is
    where class c begins among them. Ranks are computed modulo the `primes` (primes,). `floor` is a lower
    bound of the nullities, at which the computation stops.
    """
    tokens = 0
    for a in range(masks.shape[1]):
        tokens = max(tokens, samples[a, 0] + 1, samples[a, 1] + 1)
    x, w = np.empty((tokens, tokens)), np.empty(tokens)
    for s in range(first_set, last_set):
        n_0 = tokens
        for k in range(primes.size):
            n_0 = min(n_0, _solve(masks[s], samples, members, starts, primes[k], floor, x, w))
            if n_0 == floor:
                break
        nullity[s] = n_0


@rows_kernel()
def closures(
    first_set: int,
    last_set: int,
    masks: NDArray[np.bool_],
    samples: Int,
    members: Int,
    starts: Int,
    primes: Float,
    floor: int,
    nullity: Int,
    implied: NDArray[np.int64],
    augmented: NDArray[np.bool_],
    groups: Int,
) -> None:
    """Find what each training set of `masks` (sets, samples) implies: its closure.

    `samples` (samples, 2) are pairs of tokens, `members` their numbers sorted by class, and ``starts[c]`` is
    where class c begins among them. `floor` is a lower bound of the nullities. The results are `nullity` n_0
    (sets,), the number `implied` of parallelograms (sets,), and the `augmented` training sets (sets,
    samples). Unless `groups` (sets, samples) has no row, two samples of a class get the same number there if
    their sums agree in every solution. The caller ensures that the product of the `primes` exceeds every
    minor that decides a rank.
    """
    count = masks.shape[1]
    tokens = 0
    for a in range(count):
        tokens = max(tokens, samples[a, 0] + 1, samples[a, 1] + 1)
    x = np.empty((primes.size, tokens, tokens))
    nullities = np.empty(primes.size, np.int32)
    w = np.empty(tokens)
    h = np.empty(tokens)
    group = np.empty(count, np.int32)
    leader = np.empty(count, np.int32)  # first sample of each group
    size = np.empty(count, np.int64)
    trained = np.empty(count, np.bool_)
    fingerprint = np.empty(count)
    for s in range(first_set, last_set):
        mask = masks[s]
        n_0 = tokens
        for k in range(primes.size):
            nullities[k] = _solve(mask, samples, members, starts, primes[k], floor, x[k], w)
            n_0 = min(n_0, nullities[k])
            if n_0 == floor:
                break
        nullity[s] = n_0
        found = 0  # number of groups so far
        total = 0
        if n_0 > floor:
            for k in range(primes.size):
                if nullities[k] == n_0:
                    _fingerprints(x[k], n_0, primes[k], h)
                    modulus = primes[k]
                    break
            for c in range(starts.size - 1):
                begin = found
                for k in range(starts[c], starts[c + 1]):
                    a = members[k]
                    f = h[samples[a, 0]] + h[samples[a, 1]]
                    if f >= modulus:
                        f -= modulus
                    g = begin
                    while g < found and not (
                        fingerprint[g] == f
                        and _same(x, nullities, n_0, primes, samples[a], samples[leader[g]])
                    ):
                        g += 1
                    if g == found:
                        leader[g] = a
                        fingerprint[g] = f
                        size[g] = 0
                        trained[g] = False
                        found += 1
                    group[a] = g
                    total += size[g]
                    size[g] += 1
                    trained[g] |= mask[a]
        else:  # the set determines as much as the complete data set, so the classes are the groups
            for c in range(starts.size - 1):
                members_of_class = int(starts[c + 1] - starts[c])
                total += members_of_class * (members_of_class - 1) // 2
                trained[c] = False
                for k in range(starts[c], starts[c + 1]):
                    group[members[k]] = c
                    trained[c] |= mask[members[k]]
        implied[s] = total
        for a in range(count):
            augmented[s, a] = trained[group[a]]
        if groups.shape[0] > 0:
            for a in range(count):  # Numba compiles an assignment of arrays for seconds
                groups[s, a] = group[a]


@rows_kernel()
def critical_sizes(
    first_set: int,
    last_set: int,
    orders: Int,
    samples: Int,
    label: Int,
    primes: Float,
    floor: int,
    size: NDArray[np.int64],
) -> None:
    """Write how many samples of each order reduce the nullity to `floor`, to `size` (sets,).

    `orders` (sets, samples) are permutations of the numbers of the samples, `samples` (samples, 2) are pairs
    of tokens, and `label` (samples,) their classes. Each of the `primes` gives an upper bound, and the
    smallest is exact. The result is the number of samples plus one if the nullity never reaches `floor`.
    """
    count = orders.shape[1]
    tokens = 0
    classes = 0
    for a in range(count):
        tokens = max(tokens, samples[a, 0] + 1, samples[a, 1] + 1)
        classes = max(classes, label[a] + 1)
    x = np.empty((tokens, tokens))
    w = np.empty(tokens)
    first = np.empty(classes, np.int32)
    for s in range(first_set, last_set):
        size[s] = count + 1
        for k in range(primes.size):
            _start(x)
            first[:] = -1
            free = tokens
            at = 0
            while at + 1 < size[s] and free > floor:  # a size is at most one more than all samples
                a = orders[s, at]
                at += 1
                base = first[label[a]]
                if base < 0:
                    first[label[a]] = a
                else:
                    free = _impose(
                        x,
                        free,
                        samples[base, 0],
                        samples[base, 1],
                        samples[a, 0],
                        samples[a, 1],
                        w,
                        primes[k],
                    )
            if free == floor:
                size[s] = at
