"""Circles of an embedding: Fourier signals and which of them survive (Ding §2)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from physics.checks import choice, number, point_sets
from physics.errors import InputError


def fourier_signals(E: Any, *, kind: str = "norm") -> NDArray[np.float64]:
    """Signal of every frequency of an embedding.

    Parameters
    ----------
    E : array_like, shape (..., p, d)
        Embeddings of the tokens 0 … p-1, finite.
    kind : {"norm", "square"}, default "norm"
        ``‖F_k‖``, as every figure of the paper has it, or ``‖F_k‖²``, as its text says.

    Returns
    -------
    ndarray of float64, shape (..., p // 2)
        Entry k-1 belongs to frequency k = 1 … ⌊p/2⌋, where ``F_k = Σ_n exp(-2πi k n / p) E_n``. For even p
        the last frequency is its own conjugate.

    Raises
    ------
    InputError
        If `E` is not finite or not of that shape, or `kind` is unknown.

    References
    ----------
    Ding et al. 2024, Eq. 1.
    """
    choice("kind", kind, ("norm", "square"))
    coefficients = np.fft.rfft(point_sets("E", E), axis=-2)[..., 1:, :]
    squares = (coefficients.real**2 + coefficients.imag**2).sum(axis=-1)
    return np.sqrt(squares) if kind == "norm" else squares


def survives(signals: Any, *, factor: float = 2.0, threshold: float | None = None) -> NDArray[np.bool_]:
    """Tell which frequencies have survived.

    Parameters
    ----------
    signals : array_like, shape (..., frequencies)
        Final signals, as norms.
    factor : float, default 2.0
        The published rule: a circle survives if its signal exceeds `factor` times the mean signal.
    threshold : float, optional
        Use this absolute signal instead (the paper's gradient study takes 10).

    Returns
    -------
    ndarray of bool, the shape of `signals`

    Raises
    ------
    InputError
        If a limit is not greater than 0.
    """
    array = np.asarray(signals, np.float64)
    if threshold is not None:
        return array > number("threshold", threshold, above=0.0)
    return array > number("factor", factor, above=0.0) * array.mean(axis=-1, keepdims=True)


def surviving_frequencies(
    E: Any, *, factor: float = 2.0, threshold: float | None = None
) -> NDArray[np.int64]:
    """Frequencies whose circles have survived in one embedding.

    Parameters
    ----------
    E : array_like, shape (p, d)
        The final embedding; for many at once see `survives`.
    factor, threshold : float
        As in `survives`, on signals as norms.

    Returns
    -------
    ndarray of int64
        Frequencies between 1 and ⌊p/2⌋, increasing; empty if none survives.

    Raises
    ------
    InputError
        If `E` is not a single finite embedding.
    """
    if np.ndim(E) != 2:
        raise InputError(f"E must be one embedding (p, d), got the shape {np.shape(E)}; see survives")
    return 1 + np.flatnonzero(survives(fourier_signals(E), factor=factor, threshold=threshold))
