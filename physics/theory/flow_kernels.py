"""Kernels of the effective loss, its gradient, its quadratic form and its flow (Liu, Eqs. 5 and 8).

The m samples (i, j) of a class with the sums s_a = E_i + E_j satisfy Σ_{a<b} |s_a - s_b|² = m Σ_a |s_a -
mean|². One pass over the samples for the mean of each class and one for the deviations therefore give the
loss ℓ_0 and its gradient. The formula m Σ |s|² - |Σ s|² would lose digits where the loss is small.
"""

import math

import numpy as np
from numba import prange
from numpy.typing import NDArray

from physics.jit import kernel

Float = NDArray[np.float64]
Int = NDArray[np.int32]


@kernel()
def _descend(x: Float, samples: Int, starts: Int, scale: float, g: Float) -> float:
    """Write the gradient of the loss ℓ_0 on one axis to `g` (tokens,), and return ℓ_0 of this axis.

    `samples` (n, 2) are the training samples sorted by class, class c begins at ``starts[c]``, and `scale` is
    1 over the number of parallelograms.
    """
    g[:] = 0.0
    loss = 0.0
    for c in range(starts.size - 1):
        begin, end = starts[c], starts[c + 1]
        size = end - begin
        if size < 2:
            continue
        mean = 0.0
        for a in range(begin, end):
            mean += x[samples[a, 0]] + x[samples[a, 1]]
        mean /= size
        weight = size * scale
        total = 0.0
        for a in range(begin, end):
            i, j = samples[a, 0], samples[a, 1]
            deviation = x[i] + x[j] - mean
            total += deviation * deviation
            g[i] += 2.0 * weight * deviation
            g[j] += 2.0 * weight * deviation
        loss += weight * total
    return loss


@kernel(parallel=True, least=4096)
def loss_and_gradient(x: Float, samples: Int, starts: Int, scale: float, loss: Float, g: Float) -> None:
    """Write the loss ℓ_0 and its gradient for the rows of `x` (rows, tokens).

    The results are written to `loss` (rows,) and `g` (rows, tokens). Each row is one axis of one run.
    `samples` (n, 2) are the training samples sorted by class, class c begins at ``starts[c]``, and `scale` is
    1 over the number of parallelograms.
    """
    for row in prange(len(x)):
        loss[row] = _descend(x[row], samples, starts, scale, g[row])


@kernel(parallel=True)
def quadratic_forms(
    masks: NDArray[np.bool_],
    samples: Int,
    members: Int,
    starts: Int,
    Q: Float,
    count: NDArray[np.int64],
) -> None:
    """Write the number of parallelograms of each training set to `count` (sets,), and Q times it to `Q`.

    Q (tokens, tokens) is the matrix of the loss, ℓ_0 = tr(EᵀQE), one for each of the sets. `masks` (sets,
    samples) mark the training sets, `members` are the numbers of the `samples` (samples, 2) sorted by class,
    and ``starts[c]`` is where class c begins among them. The entries of the result are whole numbers: with
    v_a = e_i + e_j for sample a, a class of m samples adds m Σ_a v_a v_aᵀ - u uᵀ, where u = Σ_a v_a.
    """
    tokens = Q.shape[1]
    for s in prange(len(masks)):
        matrix = Q[s]
        matrix[:] = 0.0
        u = np.zeros(tokens)
        support = np.empty(tokens, np.int32)
        total = 0
        for c in range(starts.size - 1):
            size = 0
            reach = 0
            for k in range(starts[c], starts[c + 1]):
                a = members[k]
                if masks[s, a]:
                    size += 1
                    for end in range(2):
                        i = samples[a, end]
                        if u[i] == 0.0:
                            support[reach] = i
                            reach += 1
                        u[i] += 1.0
            if size > 1:
                total += size * (size - 1) // 2
                for k in range(starts[c], starts[c + 1]):
                    a = members[k]
                    if masks[s, a]:
                        i, j = samples[a, 0], samples[a, 1]
                        matrix[i, i] += size
                        matrix[j, j] += size
                        matrix[i, j] += size
                        matrix[j, i] += size
                for a in range(reach):
                    i = support[a]
                    for b in range(reach):
                        j = support[b]
                        matrix[i, j] -= u[i] * u[j]
            for a in range(reach):
                u[support[a]] = 0.0
        count[s] = total


@kernel(parallel=True, least=4096)
def relax(amplitudes: Float, rates: Float, times: Float, norm: Float, unit: Float, out: Float) -> None:
    """Write the amplitudes of the modes at the given times to `out` (runs, times, tokens, dim).

    `amplitudes` (runs, tokens, dim) are those at time 0 in the basis of eigenvectors of the matrix Q of the
    loss, `rates` (tokens,) are its eigenvalues, ascending, and `norm` (runs,) is the conserved Σ|E_k|². Times
    count in units of ``1 / unit`` (runs,). The slowest rate that occurs is factored out, so that not all
    amplitudes underflow.
    """
    _, tokens, dim = amplitudes.shape
    for run in prange(len(amplitudes)):
        slowest = tokens - 1
        for i in range(tokens - 1, -1, -1):
            for k in range(dim):
                if amplitudes[run, i, k] != 0.0:
                    slowest = i
        for t in range(times.size):
            total = 0.0
            out[run, t, :slowest] = 0.0  # amplitudes of 0, whose factor would overflow
            for i in range(slowest, tokens):
                exponent = -2.0 * (rates[i] - rates[slowest]) * times[t] / norm[run]
                decay = math.exp(max(exponent, -1e308) * unit[run])
                for k in range(dim):
                    value = amplitudes[run, i, k] * decay
                    out[run, t, i, k] = value
                    total += value * value
            scale = math.sqrt(norm[run] / total)
            for i in range(tokens):
                for k in range(dim):
                    out[run, t, i, k] *= scale
