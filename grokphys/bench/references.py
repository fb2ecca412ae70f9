"""References of the benchmarks: particles in NumPy, and the effective theory by the published procedure.

Both are implemented from the papers' text, neither optimized nor slowed down on purpose.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from physics.particles.system import ParticleSystem

Pair = tuple[int, int]
Quadruple = tuple[int, int, int, int]
Array = NDArray[np.float64]


@cache
def _pairs(tokens: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], Array]:
    first, second = np.triu_indices(tokens)
    holds = np.zeros((tokens, first.size))
    np.add.at(holds, (first, np.arange(first.size)), 1.0)
    np.add.at(holds, (second, np.arange(first.size)), 1.0)
    return first, second, (first + second) % tokens, holds


def numpy_forces(positions: Array, softening: float = 0.1) -> Array:
    """Compute the forces on particles by NumPy, from arrays with an entry for each pair of pair sums.

    Parameters
    ----------
    positions : ndarray of float64, shape (runs, tokens, dim)
        Positions of the particles. All constants are 1, and classes are i + j modulo the tokens.
    softening : float, default 0.1
        Length below which attraction and repulsion fade.

    Returns
    -------
    ndarray of float64, shape (runs, tokens, dim)
        Force on each particle.
    """
    first, second, label, holds = _pairs(positions.shape[1])
    same_weight, diff_weight = ParticleSystem(positions.shape[1], positions.shape[2]).weights
    same = label[:, None] == label
    sums = positions[:, first] + positions[:, second]
    difference = sums[:, :, None] - sums[:, None]
    squared = np.einsum("rabk,rabk->rab", difference, difference) + softening**2
    radial = np.where(same, -same_weight / np.sqrt(squared), diff_weight / squared)
    force = np.einsum("rab,rabk->rak", radial, difference)
    units = sums / np.linalg.norm(sums, axis=2, keepdims=True)
    ahead = np.where(sums @ sums.transpose(0, 2, 1) > 0, np.where(same, same_weight, -diff_weight), 0.0)
    ahead[:, np.arange(first.size), np.arange(first.size)] = 0.0
    return holds @ (force + ahead @ units)


def samples_of(tokens: int) -> list[Pair]:
    """Return all pairs (i, j) of symbols with i ≤ j, in lexicographic order."""
    return [(i, j) for i in range(tokens) for j in range(i, tokens)]


def parallelograms(samples: Sequence[Pair]) -> list[Quadruple]:
    """Return all (i, j, m, n) of two different samples with i + j = m + n, by a loop (Liu et al., Eq. 1)."""
    return [(i, j, m, n) for k, (i, j) in enumerate(samples) for m, n in samples[k + 1 :] if i + j == m + n]


def closure(tokens: int, training: Sequence[Pair]) -> tuple[int, int, float]:
    """Return what a training set implies about linear representations, by matrix ranks (Eqs. 7, 12 to 14).

    A parallelogram of the data set is implied if its equation E_i + E_j = E_m + E_n does not raise the rank
    of those of the training set.

    Returns
    -------
    tuple of int, int and float
        Dimension n_0 of the space of embeddings (one axis) in which all parallelograms of the training set
        hold; number of implied parallelograms; and fraction of all samples that are in the training set or
        complete an implied parallelogram with one of it.
    """

    def equations(quadruples: Sequence[Quadruple]) -> Array:
        A = np.zeros((len(quadruples), tokens))
        for row, quadruple in zip(A, quadruples, strict=True):
            np.add.at(row, list(quadruple), [1, 1, -1, -1])
        return A

    candidates = parallelograms(samples_of(tokens))
    A = equations(parallelograms(training))
    rank = np.linalg.matrix_rank(A) if len(A) else 0
    rows = zip(candidates, equations(candidates), strict=True)
    implied = [q for q, row in rows if np.linalg.matrix_rank(np.vstack([A, row])) == rank]
    augmented = set(training)
    for i, j, m, n in implied:
        augmented |= {(m, n)} if (i, j) in training else set()
        augmented |= {(i, j)} if (m, n) in training else set()
    return tokens - rank, len(implied), len(augmented) / len(samples_of(tokens))


def gradient(E: Array, quadruples: NDArray[Any]) -> Array:
    """Return the gradient of the effective loss ℓ_0/Z_0 of an embedding (tokens, dim) (Liu et al., Eq. 25).

    ℓ_0 is the mean of |E_i + E_j - E_m - E_n|² over the parallelograms (n, 4), and Z_0 the sum of all |E_i|².
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
    """Return the representation quality index of an embedding (tokens, dim), by a loop (Liu, Eqs. 2, 3).

    It is the fraction of the parallelograms that close to a distance of `delta` standard deviations.
    """
    E = (E - E.mean(axis=0)) / E.std(axis=0)
    return float(np.mean([np.linalg.norm(E[i] + E[j] - E[m] - E[n]) <= delta for i, j, m, n in quadruples]))
