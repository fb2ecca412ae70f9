"""The potential energy of attraction and repulsion between pair sums (Musat §5)."""

import math

import numpy as np
from numba import prange

from physics.jit import kernel
from physics.particles.direct import Law, Pairs
from physics.values import Array, Integers


def energies(positions: Array, pairs: Pairs, law: Law) -> Array:
    """Return the potential energy (runs,) of each run, which `ParticleSystem.potential` defines.

    `positions` (runs, tokens, dim) are those of the particles, and `pairs` is the layout of their pair sums.
    With positive repulsion and no softening, the energy is infinite if pair sums of different classes
    coincide.
    """
    sums = np.ascontiguousarray((positions[:, pairs.first] + positions[:, pairs.second]).swapaxes(1, 2))
    # Products of eight squares must not overflow.
    safe = law.softening_squared > 1e-38 and sums.shape[1] * np.ptp(sums, axis=2).max() ** 2 < 1e38
    partial = np.empty((len(positions), 16, 2))
    clustering(sums, pairs.label, law.softening_squared, 8 if safe else 1, partial)
    pull, logarithms = partial.sum(axis=1).T
    return np.asarray(law.attraction * pull - (0.5 * law.repulsion * logarithms if law.repulsion else 0.0))


@kernel(parallel=True, least=1)
def clustering(sums: Array, label: Integers, softening_squared: float, rows: int, partial: Array) -> None:
    """Sum √(d² + ε²) over pairs of the same class and log(d² + ε²) over pairs of different classes.

    Each pair of pair sums, at the distance d, counts once. `sums` (runs, dim, P) holds the P pair sums,
    `label` (P,) their classes, and `softening_squared` is ε². The work of each run is cut into tasks, each of
    which writes its two sums to a row of `partial` (runs, tasks, 2).

    Logarithms dominate the cost, so one logarithm of a product replaces the logarithms of `rows` rows; the
    caller ensures that the product does not overflow.
    """
    _, dim, count = sums.shape
    tasks = partial.shape[1]
    groups = -(-count // rows)
    for item in prange(len(sums) * tasks):
        run, task = item // tasks, item % tasks
        square, product, pull = np.empty(count), np.empty(count), np.zeros(count)
        logarithms = 0.0
        for group in range(task, groups, tasks):
            begin = group * rows
            product[begin:] = 1.0
            for a in range(begin, min(begin + rows, count)):
                squared, labels = square[a + 1 :], label[a + 1 :]
                among, drawn = product[a + 1 :], pull[a + 1 :]
                squared[:] = softening_squared
                for k in range(dim):
                    s, others = sums[run, k, a], sums[run, k, a + 1 :]
                    for b in range(squared.size):
                        squared[b] += (s - others[b]) * (s - others[b])
                mine = label[a]
                for b in range(squared.size):
                    same = labels[b] == mine
                    among[b] *= 1.0 if same else squared[b]
                    drawn[b] += math.sqrt(squared[b] if same else 0.0)
            for b in range(begin, count):
                logarithms += math.log(product[b])
        partial[run, task, 0] = pull.sum()
        partial[run, task, 1] = logarithms
