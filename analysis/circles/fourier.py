"""Fourier signals of embeddings, which measure the sizes of their circles (Ding et al. §2)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.circles.classes import require_cyclic
from analysis.scaling import scaled
from physics.checks import choice, point_sets
from physics.errors import InputError
from physics.trajectory import Trajectory


def fourier_signals(E: Any, *, kind: str = "norm") -> NDArray[np.float64]:
    """Return the Fourier signal of every frequency of an embedding: the size of each of its circles.

    Parameters
    ----------
    E : array_like, shape (..., p, d)
        Finite embeddings ``E_n`` of the tokens n = 0 … p-1 in d dimensions; p is at least 3.
    kind : {"norm", "square"}, default "norm"
        Whether a signal is the norm of the Fourier coefficient ``F_k = Σ_n exp(-2πi k n / p) E_n``, which the
        figures of the paper show, or the square of this norm, which its text defines.

    Returns
    -------
    ndarray of float64, shape (..., p // 2)
        Signals of the frequencies k = 1 … ⌊p/2⌋, so that entry k-1 belongs to frequency k. The coefficient of
        p - k is the conjugate of that of k, so it has no entry of its own.

    Raises
    ------
    InputError
        If `E` is not finite or has another shape, or `kind` is unknown.

    References
    ----------
    Ding et al. 2024, Eq. 1.

    Examples
    --------
    >>> import analysis, numpy as np
    >>> angle = 2 * np.pi * 2 * np.arange(7) / 7  # a circle of radius 1 and frequency 2
    >>> analysis.fourier_signals(np.stack([np.cos(angle), np.sin(angle)], axis=1)).round(2).tolist()
    [0.0, 4.95, 0.0]
    """
    choice("kind", kind, ("norm", "square"))
    array, exponent = scaled(point_sets("E", E), (-2, -1))
    coefficients = np.fft.rfft(array, axis=-2)[..., 1:, :]
    squares = (coefficients.real**2 + coefficients.imag**2).sum(axis=-1)
    exponent = exponent[..., 0]
    if kind == "norm":
        return np.asarray(np.ldexp(np.sqrt(squares), exponent))
    return np.asarray(np.ldexp(squares, 2 * exponent))


def trajectory_signals(trajectory: Trajectory) -> NDArray[np.float64]:
    """Return the Fourier signals of all frames of a trajectory, reading it block by block.

    Parameters
    ----------
    trajectory : Trajectory
        Trajectory of embeddings in memory, or in a file of any size.

    Returns
    -------
    ndarray of float64, shape (runs, frames, tokens // 2)
        Norm of the Fourier coefficient of each frequency k = 1 … ⌊tokens/2⌋, as `fourier_signals` returns it.

    Raises
    ------
    InputError
        If a frame is not finite, of which the message names the first, or if the trajectory states another
        operation than addition modulo its number of tokens, or was selected from other tokens.

    Examples
    --------
    >>> import analysis, numpy as np, physics
    >>> trajectory = physics.example("ding")
    >>> signals = analysis.trajectory_signals(trajectory)
    >>> last = analysis.fourier_signals(trajectory.final)
    >>> signals.shape, bool(np.allclose(signals[:, -1], last, rtol=1e-3))
    ((1, 80, 29), True)
    """
    require_cyclic(trajectory)
    return signals_and_final(trajectory)[0]


def signals_and_final(
    trajectory: Trajectory, megabytes: float = 32.0, runs: Any = slice(None)
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return what `trajectory_signals` returns, and the last frame, from one pass over a trajectory.

    The last frame (runs, tokens, dim) has the number type of the trajectory. Blocks of about `megabytes` are
    read at a time. An `InputError` names the first frame of `runs`, by default all, whose signals are not
    finite.
    """
    parts, final = [], np.empty(0)
    for _, block in trajectory.blocks(megabytes):
        parts.append(_block_signals(block))
        final = block[:, -1].copy()
    signals = np.concatenate(parts, axis=1)
    numbers = np.arange(trajectory.runs)[runs]
    bad = np.argwhere(~np.isfinite(signals[numbers]).all(axis=2))
    if len(bad):
        first = f"step {trajectory.steps[bad[0, 1]]} of run {numbers[bad[0, 0]]}"
        got = f"NaN or infinity in {len(bad)} frames, the first of them {first}"
        raise InputError(f"positions must be finite, got {got}")
    return signals, final


def _block_signals(block: NDArray[Any]) -> NDArray[np.float64]:
    """Return the signals (runs, frames, tokens // 2) of a block (runs, frames, tokens, dim).

    Products with the real Fourier matrix are several times as fast as fast Fourier transforms, because there
    are few tokens, and often a prime number of them.
    """
    tokens = block.shape[2]
    count = tokens // 2
    angle = 2 * np.pi * np.arange(1, count + 1)[:, None] * np.arange(tokens) / tokens
    basis = np.concatenate([np.cos(angle), np.sin(angle)])
    signals = np.empty((*block.shape[:2], count))
    for run, frames in enumerate(block):
        for first in range(0, len(frames), 8):  # few enough frames to stay in the cache
            part = slice(first, first + 8)
            points, exponent = scaled(np.asarray(frames[part], np.float64), (-2, -1))
            waves = basis @ points
            squares = np.einsum("fkd,fkd->fk", waves, waves)
            norms = np.sqrt(squares[:, :count] + squares[:, count:])
            signals[run, part] = np.ldexp(norms, exponent[..., 0])
    return signals


def frequency_shares(E: Any) -> NDArray[np.float64]:
    """Return the fraction of the variance of an embedding that belongs to each frequency.

    Parameters
    ----------
    E : array_like, shape (..., p, d)
        Finite embeddings of p tokens, at least 3, in d dimensions, or their projections on a plane.

    Returns
    -------
    ndarray of float64, shape (..., p // 2)
        Fractions for k = 1 … ⌊p/2⌋. They add up to 1, or are all 0 if the tokens coincide.

    Raises
    ------
    InputError
        If `E` is not finite or has another shape.

    Examples
    --------
    >>> import analysis, numpy as np
    >>> angle = 2 * np.pi * 3 * np.arange(17) / 17
    >>> circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    >>> analysis.circles.frequency_shares(circle).round(6).tolist()
    [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """
    array = scaled(point_sets("E", E), (-2, -1))[0]
    power = fourier_signals(array, kind="square")
    if array.shape[-2] % 2 == 0:
        power[..., -1] /= 2  # its own conjugate, whereas every other frequency stands for two
    total = power.sum(axis=-1, keepdims=True)
    rounding = 1e-24 * array.shape[-2] * np.sum(np.square(array), axis=(-2, -1))[..., None]
    return np.where(total > rounding, power / np.where(total > 0, total, 1.0), 0.0)
