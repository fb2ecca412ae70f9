"""Slow, plain versions of the effective theory, written from the paper alone, for tests to compare with."""

import itertools
from fractions import Fraction

import numpy as np


def samples_of(tokens, commutes=True):
    pairs = itertools.product(range(tokens), repeat=2)
    return [(i, j) for i, j in pairs if i <= j or not commutes]


def parallelograms(samples, label):
    """Eq. 1: all unordered pairs of distinct samples with the same label."""
    return [(*a, *b) for a, b in itertools.combinations(samples, 2) if label(*a) == label(*b)]


def row(quadruple, tokens):
    i, j, m, n = quadruple
    equation = [0] * tokens
    for symbol, sign in ((i, 1), (j, 1), (m, -1), (n, -1)):
        equation[symbol] += sign
    return equation


def rank(rows):
    """Rank over the rational numbers, by Gaussian elimination with fractions."""
    matrix = [[Fraction(value) for value in line] for line in rows]
    done = 0
    for column in range(len(matrix[0]) if matrix else 0):
        pivot = next((k for k in range(done, len(matrix)) if matrix[k][column]), None)
        if pivot is None:
            continue
        matrix[done], matrix[pivot] = matrix[pivot], matrix[done]
        for k in range(done + 1, len(matrix)):
            factor = matrix[k][column] / matrix[done][column]
            matrix[k] = [a - factor * b for a, b in zip(matrix[k], matrix[done], strict=True)]
        done += 1
    return done


def closure(tokens, training, label):
    """Eq. 14: n_0, P(D) by one rank for each candidate, and D-bar by Eq. 12."""
    everything = parallelograms(samples_of(tokens), label)
    known = [row(q, tokens) for q in parallelograms(training, label)]
    base = rank(known)
    implied = [q for q in everything if rank([*known, row(q, tokens)]) == base]
    return tokens - base, implied, augment(training, implied)


def augment(training, implied):
    """Eq. 12."""
    augmented = set(training)
    for i, j, m, n in implied:
        if (i, j) in training:
            augmented.add((m, n))
        if (m, n) in training:
            augmented.add((i, j))
    return augmented


def deduction(table, training):
    """Appendix H: three parallelograms give a fourth, and equal products are equal to one another."""
    p = len(table)
    samples = samples_of(p, commutes=False)
    equal = np.array(
        [
            [a == b or (a in training and b in training and table[a] == table[b]) for b in samples]
            for a in samples
        ]
    )
    while True:
        quotients = np.zeros((p, p, p, p), bool)  # (z, x, w, y): E_z⁻¹ E_x = E_w E_y⁻¹
        for (k, (x, y)), (m, (z, w)) in itertools.product(enumerate(samples), repeat=2):
            quotients[z, x, w, y] |= equal[k, m]
        sides = quotients.reshape(p * p, p * p).astype(int)
        fourth = (sides @ sides.T @ sides > 0).reshape(p, p, p, p)
        new = equal.copy()
        for (k, (x, y)), (m, (z, w)) in itertools.product(enumerate(samples), repeat=2):
            new[k, m] |= fourth[z, x, w, y]
        new = new.astype(int) @ new.astype(int) > 0
        if np.array_equal(new, equal):
            break
        equal = new
    pairs = itertools.combinations(enumerate(samples), 2)
    return [(*a, *b) for (k, a), (m, b) in pairs if equal[k, m]]


def loss(E, quadruples):
    """Eq. 5."""
    total = sum(np.sum((E[i] + E[j] - E[m] - E[n]) ** 2) for i, j, m, n in quadruples)
    return total / len(quadruples) / np.sum(E**2)


def gradient(E, quadruples):
    """Eq. 25, term by term."""
    norm = np.sum(E**2)
    slope = np.zeros_like(E)
    for i, j, m, n in quadruples:
        d = 2 * (E[i] + E[j] - E[m] - E[n]) / len(quadruples)
        for symbol, sign in ((i, 1), (j, 1), (m, -1), (n, -1)):
            slope[symbol] += sign * d
    return slope / norm - 2 * loss(E, quadruples) / norm * E


def hessian(tokens, quadruples):
    """Eq. 8 with Z_0 = tokens."""
    A = np.array([row(q, tokens) for q in quadruples])
    return 2 * A.T @ A / len(quadruples) / tokens


def normalised(E):
    return (E - E.mean(axis=0)) / E.std(axis=0)


def found(E, quadruples, delta):
    """Eq. 2, for embeddings that are normalized already."""
    return [q for q in quadruples if np.linalg.norm(E[q[0]] + E[q[1]] - E[q[2]] - E[q[3]]) <= delta]


def published_flow(E, quadruples, step_size, steps):
    """The Euler loop of the published toy/train_add.py: no mean, and Z_0 as at the start for ever.

    It is run over all of P_0 there, whatever the training set.
    """
    E = E.copy()
    norm = np.sum(E**2)
    for _ in range(steps):
        total = 0.0
        slope = np.zeros_like(E)
        for i, j, m, n in quadruples:
            d = E[i] + E[j] - E[m] - E[n]
            total += np.sum(d**2)
            for symbol, sign in ((i, 1), (j, 1), (m, -1), (n, -1)):
                slope[symbol] += sign * 2 * d
        E -= step_size * (slope / norm - 2 * total / norm**2 * E)
    return E
