"""References of the particle engine: the same force in plain NumPy, PyTorch and Numba.

`numpy_forces`, `torch_forces` and `numba_forces` take positions (runs, tokens, dim) and return forces of that
shape, by sums over all pairs of pair sums. All constants are 1, and classes are i + j modulo the tokens.
"""

import math
from functools import cache
from typing import Any

import numpy as np
from numba import prange
from numpy.typing import NDArray

from physics.jit import kernel
from physics.particles.system import ParticleSystem

Array = NDArray[np.float64]


@cache
def _pairs(tokens: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], Array]:
    first, second = np.triu_indices(tokens)
    holds = np.zeros((tokens, first.size))
    np.add.at(holds, (first, np.arange(first.size)), 1.0)
    np.add.at(holds, (second, np.arange(first.size)), 1.0)
    return first, second, (first + second) % tokens, holds


def numpy_forces(positions: Array, softening: float = 0.1) -> Array:
    """Compute the forces by NumPy, from arrays with an entry for each pair of pair sums.

    Parameters
    ----------
    positions : ndarray of float64, shape (runs, tokens, dim)
        Positions of the particles.
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


def torch_forces(positions: Any, softening: float = 0.1) -> Any:
    """Compute the forces by PyTorch, in the same way as `numpy_forces`.

    Parameters
    ----------
    positions : Tensor, shape (runs, tokens, dim)
        Positions of the particles.
    softening : float, default 0.1
        Length below which attraction and repulsion fade.

    Returns
    -------
    Tensor, shape (runs, tokens, dim)
        Force on each particle, in the number type of the positions.
    """
    import torch

    first, second, label, holds = (torch.from_numpy(array) for array in _pairs(positions.shape[1]))
    weights = ParticleSystem(positions.shape[1], positions.shape[2]).weights
    same_weight, diff_weight = torch.tensor(weights, dtype=positions.dtype)
    same = label[:, None] == label
    sums = positions[:, first] + positions[:, second]
    difference = sums[:, :, None] - sums[:, None]
    squared = (difference * difference).sum(-1) + softening**2
    radial = torch.where(same, -same_weight * squared.rsqrt(), diff_weight / squared)
    force = (radial[..., None] * difference).sum(2)
    units = sums / torch.linalg.vector_norm(sums, dim=2, keepdim=True)
    weight = torch.where(same, same_weight, -diff_weight).fill_diagonal_(0.0)
    ahead = torch.where(sums @ sums.mT > 0, weight, 0.0)
    return holds @ (force + ahead @ units)


@kernel(parallel=True)
def _naive(sums: Array, label: NDArray[np.int64], weights: Array, softening: float, out: Array) -> None:
    runs, pairs, dim = sums.shape
    for row in prange(runs * pairs):
        run, a = row // pairs, row % pairs
        for k in range(dim):
            out[run, a, k] = 0.0
        for b in range(pairs):
            if a == b:
                continue
            squared = softening * softening
            product = 0.0
            norm = 0.0
            for k in range(dim):
                difference = sums[run, a, k] - sums[run, b, k]
                squared += difference * difference
                product += sums[run, a, k] * sums[run, b, k]
                norm += sums[run, b, k] * sums[run, b, k]
            same = label[a] == label[b]
            radial = -weights[0] / math.sqrt(squared) if same else weights[1] / squared
            ahead = (weights[0] if same else -weights[1]) / math.sqrt(norm) if product > 0 else 0.0
            for k in range(dim):
                difference = sums[run, a, k] - sums[run, b, k]
                out[run, a, k] += radial * difference + ahead * sums[run, b, k]


def numba_forces(positions: Array, softening: float = 0.1) -> Array:
    """Compute the forces by loops over pairs of pair sums and axes, compiled by Numba, on all cores.

    Parameters
    ----------
    positions : ndarray of float64, shape (runs, tokens, dim)
        Positions of the particles.
    softening : float, default 0.1
        Length below which attraction and repulsion fade.

    Returns
    -------
    ndarray of float64, shape (runs, tokens, dim)
        Force on each particle.
    """
    first, second, label, holds = _pairs(positions.shape[1])
    sums = np.ascontiguousarray(positions[:, first] + positions[:, second])
    out = np.empty_like(sums)
    weights = np.array(ParticleSystem(positions.shape[1], positions.shape[2]).weights)
    _naive(sums, label, weights, softening, out)
    return holds @ out
