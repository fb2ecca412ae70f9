"""Structures of point sets: Algorithm 2 of Musat, Appendix A."""

import math

import numpy as np
from numba import prange
from numpy.typing import NDArray

from physics.jit import kernel


@kernel(parallel=True)
def grid_imperfections(positions: NDArray[np.float64], modulus: int, imperfect: NDArray[np.bool_]) -> None:
    """Mark in `imperfect` (runs, pairs) each pair sum whose nearest other pair sum has another class.

    The distance is the rounded square root, as in the paper's algorithm, and only a strictly smaller one
    replaces the nearest: ties go to the first in pair order, to the bit.
    """
    runs, tokens, dim = positions.shape
    pairs = tokens * (tokens + 1) // 2
    sums = np.empty((runs, pairs, dim))
    label = np.empty(pairs, np.int64)
    a = 0
    for i in range(tokens):
        for j in range(i, tokens):
            label[a] = (i + j) % modulus
            for run in range(runs):
                for k in range(dim):
                    sums[run, a, k] = positions[run, i, k] + positions[run, j, k]
            a += 1
    for row in prange(runs * pairs):
        run = row // pairs
        a = row % pairs
        nearest = math.inf
        match = False
        for b in range(pairs):
            if b == a:
                continue
            distance_squared = 0.0
            for k in range(dim):
                d = sums[run, a, k] - sums[run, b, k]
                distance_squared += d * d
            distance = math.sqrt(distance_squared)
            if distance < nearest:
                nearest = distance
                match = label[a] == label[b]
        imperfect[run, a] = not match
