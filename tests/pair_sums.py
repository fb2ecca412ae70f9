"""The forces on particles by loops over pairs of pair sums, compiled: a reference for many particles."""

import math

import numba
import numpy as np

from physics import ParticleSystem


def numba_forces(positions, softening=0.1):
    """Forces on particles at `positions` (runs, tokens, dim), with all constants 1, classes modulo tokens."""
    tokens, dim = positions.shape[1:]
    first, second = np.triu_indices(tokens)
    holds = np.zeros((tokens, first.size))
    np.add.at(holds, (first, np.arange(first.size)), 1.0)
    np.add.at(holds, (second, np.arange(first.size)), 1.0)
    sums = np.ascontiguousarray(positions[:, first] + positions[:, second])
    out = np.zeros_like(sums)
    weights = np.array(ParticleSystem(tokens, dim).weights)
    _add_forces(sums, (first + second) % tokens, weights, softening, out)
    return holds @ out


@numba.njit(error_model="numpy")
def _add_forces(sums, label, weights, softening, out):
    runs, pairs, _ = sums.shape
    for run in range(runs):
        for a in range(pairs):
            for b in range(pairs):
                if a == b:
                    continue
                d = sums[run, a] - sums[run, b]
                squared = softening * softening + (d * d).sum()
                same = label[a] == label[b]
                radial = -weights[0] / math.sqrt(squared) if same else weights[1] / squared
                ahead = 0.0
                if (sums[run, a] * sums[run, b]).sum() > 0:
                    norm = math.sqrt((sums[run, b] * sums[run, b]).sum())
                    ahead = (weights[0] if same else -weights[1]) / norm
                out[run, a] += radial * d + ahead * sums[run, b]
