"""The effective theory as published: loops, lists, and ranks with a tolerance, in NumPy.

It is implemented from the paper's text (Liu et al.), neither optimized nor slowed down on purpose.
`grokphys bench theory` compares the package with it in the same run.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Pair = tuple[int, int]
Quadruple = tuple[int, int, int, int]
Array = NDArray[np.float64]


def samples_of(tokens: int) -> list[Pair]:
    """Return all unordered pairs of symbols.

    Parameters
    ----------
    tokens : int
        Number of symbols.

    Returns
    -------
    list of tuple of int
        Pairs (i, j) with i ≤ j, in lexicographic order.
    """
    return [(i, j) for i in range(tokens) for j in range(i, tokens)]


def parallelograms(samples: Sequence[Pair]) -> list[Quadruple]:
    """Return all parallelograms of samples by a loop over pairs (Liu et al., Eq. 1).

    Parameters
    ----------
    samples : list of tuple of int
        Pairs (i, j) of symbols.

    Returns
    -------
    list of tuple of int
        Quadruples (i, j, m, n) of two different samples with i + j = m + n.
    """
    found = []
    for k, (i, j) in enumerate(samples):
        for m, n in samples[k + 1 :]:
            if i + j == m + n:
                found.append((i, j, m, n))
    return found


def equations(quadruples: Sequence[Quadruple], tokens: int) -> Array:
    """Return the matrix of the equations E_i + E_j - E_m - E_n = 0 (Liu et al., Eq. 7).

    Parameters
    ----------
    quadruples : list of tuple of int
        Parallelograms (i, j, m, n).
    tokens : int
        Number of symbols.

    Returns
    -------
    ndarray of float64, shape (parallelograms, tokens)
        Coefficients of the equations, a row for each parallelogram.
    """
    A = np.zeros((len(quadruples), tokens))
    for row, (i, j, m, n) in zip(A, quadruples, strict=True):
        row[i] += 1
        row[j] += 1
        row[m] -= 1
        row[n] -= 1
    return A


def closure(tokens: int, training: Sequence[Pair]) -> tuple[int, int, float]:
    """Return what a training set implies about linear representations, by matrix ranks (Eqs. 12 to 14).

    A parallelogram of the data set is implied if its equation does not raise the rank of those of the
    training set.

    Parameters
    ----------
    tokens : int
        Number of symbols p.
    training : sequence of pair of int
        Samples of the training set.

    Returns
    -------
    tuple of int, int and float
        Dimension n_0 of the space of embeddings (one axis) in which all parallelograms of the training set
        hold; number of implied parallelograms; and fraction of all samples that are in the training set or
        complete an implied parallelogram with one of it.
    """
    candidates = parallelograms(samples_of(tokens))
    A = equations(parallelograms(training), tokens)
    rank = np.linalg.matrix_rank(A) if len(A) else 0
    implied = []
    for q, row in zip(candidates, equations(candidates, tokens), strict=True):
        if np.linalg.matrix_rank(np.vstack([A, row])) == rank:
            implied.append(q)
    known = set(training)
    augmented = set(training)
    for i, j, m, n in implied:
        if (i, j) in known:
            augmented.add((m, n))
        if (m, n) in known:
            augmented.add((i, j))
    return tokens - rank, len(implied), len(augmented) / len(samples_of(tokens))


def gradient(E: Array, quadruples: NDArray[Any]) -> Array:
    """Return the gradient of the effective loss ℓ_0/Z_0 (Liu et al., Eq. 25).

    ℓ_0 is the mean of |E_i + E_j - E_m - E_n|² over the parallelograms, and Z_0 the sum of all |E_i|².

    Parameters
    ----------
    E : ndarray of float64, shape (tokens, dim)
        Embedding.
    quadruples : ndarray of int, shape (n, 4)
        Parallelograms.

    Returns
    -------
    ndarray of float64, shape (tokens, dim)
        Derivative with respect to each coordinate of the embedding.
    """
    i, j, m, n = quadruples.T
    d = E[i] + E[j] - E[m] - E[n]
    norm = np.sum(E**2)
    loss = np.sum(d**2) / len(quadruples)
    slope = np.zeros_like(E)
    for symbols, sign in ((i, 1), (j, 1), (m, -1), (n, -1)):
        np.add.at(slope, symbols, sign * 2 / len(quadruples) * d)
    return slope / norm - 2 * loss / norm**2 * E


def quality(E: Array, quadruples: Sequence[Quadruple], delta: float) -> float:
    """Return the representation quality index (RQI) of one embedding, by a loop (Liu et al., Eqs. 2, 3).

    Parameters
    ----------
    E : ndarray of float64, shape (tokens, dim)
        Embedding.
    quadruples : sequence of (i, j, m, n)
        All parallelograms of the data set.
    delta : float
        Tolerance of a distance, in units of the standard deviation of the embedding.

    Returns
    -------
    float
        Fraction of the parallelograms that the embedding has.
    """
    E = (E - E.mean(axis=0)) / E.std(axis=0)
    found = 0
    for i, j, m, n in quadruples:
        if np.linalg.norm(E[i] + E[j] - E[m] - E[n]) <= delta:
            found += 1
    return found / len(quadruples)
