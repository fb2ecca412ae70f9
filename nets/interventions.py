"""Interventions on single circles of an embedding in Fourier space (Ding et al. §3.2, §4.1, Appendix C).

All functions take and return plain arrays (..., p, d): embeddings of p tokens in d dimensions. The circles
that they keep, they keep with their phases. A frequency k from 1 to ⌊p/2⌋ stands for the pair k and p - k:
both are changed together, so that the embedding stays real. For even p, the frequency p/2 has no partner.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from physics.checks import InputError, finite_array, flag, misfit, number, point_sets, sequence, whole_number
from physics.values import Array, Complex


def scale_frequency(E: Any, frequency: int, factor: float) -> Array:
    """Enlarge or shrink one circle of an embedding, and leave the other circles and the mean unchanged.

    This tests whether the initial size of a circle decides whether it survives.

    Parameters
    ----------
    E : array_like, shape (..., p, d)
        Finite embeddings of p tokens, at least 3, in d dimensions.
    frequency : int
        Frequency of the circle, from 1 to ⌊p/2⌋.
    factor : float
        Factor by which the Fourier coefficient of this frequency is multiplied, at least 0. The signal of the
        frequency, the norm of this coefficient, changes by the same factor. The paper uses 0.85 to 1.15.

    Returns
    -------
    ndarray of float64, the shape of `E`
        The changed embeddings.

    Raises
    ------
    InputError
        If an argument has the wrong type or shape, or is out of its range.

    References
    ----------
    Ding et al. 2024, §3.2.1, Figure 6 (middle).

    Examples
    --------
    >>> import analysis, numpy as np
    >>> from nets.interventions import scale_frequency
    >>> E = np.random.default_rng(0).standard_normal((7, 2))
    >>> before, after = (analysis.fourier_signals(X) for X in (E, scale_frequency(E, 2, 3.0)))
    >>> (after / before).round(6).values.tolist()
    [1.0, 3.0, 1.0]
    """
    coefficients, tokens = _transformed(E)
    (chosen,) = _frequencies("frequency", [frequency], tokens)
    coefficients[..., chosen, :] *= number("factor", factor, 0.0)
    return np.fft.irfft(coefficients, tokens, axis=-2)


def with_signals(E: Any, signals: Any, *, mean: bool = False) -> Array:
    """Build an embedding whose circles have chosen sizes, and the planes and phases of the circles of `E`.

    Parameters
    ----------
    E : array_like, shape (..., p, d)
        Finite embeddings of p tokens, at least 3, in d dimensions. A random embedding gives random planes and
        phases.
    signals : array_like, shape (..., ⌊p/2⌋)
        Wanted signal of each frequency k = 1 … ⌊p/2⌋, at least 0: the norm of its Fourier coefficient, as
        `analysis.fourier_signals` returns it. Leading axes broadcast with those of `E`. In the paper, two
        frequencies get signals of a chosen ratio, and all others get 1e-6.
    mean : bool, default False
        Whether to keep the mean of `E` over the tokens (frequency 0). Otherwise it becomes zero.

    Returns
    -------
    ndarray of float64, shape (..., p, d)
        The new embeddings.

    Raises
    ------
    InputError
        If an argument is invalid, or a signal is wanted at a frequency that `E` does not have, so that its
        plane is unknown.

    References
    ----------
    Ding et al. 2024, §3.2.1, Figure 6 (right).

    Examples
    --------
    >>> import analysis, numpy as np
    >>> from nets.interventions import with_signals
    >>> E = np.random.default_rng(0).standard_normal((7, 2))
    >>> analysis.fourier_signals(with_signals(E, [2.0, 0.0, 1.0])).round(6).values.tolist()
    [2.0, 0.0, 1.0]
    """
    coefficients, tokens = _transformed(E)
    wanted = finite_array("signals", signals)
    if not wanted.ndim or wanted.shape[-1] != tokens // 2:
        raise misfit("signals", wanted, f"hold one norm for each of the {tokens // 2} frequencies")
    number("signals", wanted.min(initial=0.0), 0.0)
    still, circles = coefficients[..., :1, :] * float(flag("mean", mean)), coefficients[..., 1:, :]
    norms = np.linalg.norm(circles, axis=-1)
    try:
        wanted, norms = np.broadcast_arrays(wanted, norms)
    except ValueError:
        raise misfit("signals", wanted, f"have a shape that broadcasts with {norms.shape}") from None
    if not np.isfinite(norms).all():
        raise InputError("E must have signals below 1e154, whose squares are finite, got a larger one")
    lost = (wanted > 0) & (norms == 0)
    if lost.any():
        missing = int(np.argwhere(lost)[0, -1]) + 1
        raise InputError(f"E must have a signal at frequency {missing} that can be scaled, got 0")
    factors = np.divide(wanted, norms, out=np.zeros(norms.shape), where=norms > 0)
    circles = circles * factors[..., None]
    still = np.broadcast_to(still, (*circles.shape[:-2], 1, circles.shape[-1]))
    return np.fft.irfft(np.concatenate([still, circles], axis=-2), tokens, axis=-2)


def keep_frequencies(E: Any, frequencies: Iterable[int], *, mean: bool = False) -> Array:
    """Keep only the chosen circles of an embedding, and remove all others.

    Parameters
    ----------
    E : array_like, shape (..., p, d)
        Finite embeddings of p tokens, at least 3, in d dimensions.
    frequencies : sequence of int
        Frequencies to keep, from 1 to ⌊p/2⌋. The sequence may be empty.
    mean : bool, default False
        Whether to keep the mean of `E` over the tokens (frequency 0) too. The paper sets it to zero, like the
        removed frequencies.

    Returns
    -------
    ndarray of float64, the shape of `E`
        Embeddings with only these circles. If all frequencies and the mean are kept, they equal `E` up to
        rounding errors.

    Raises
    ------
    InputError
        If an argument has the wrong type or shape, or is out of its range.

    References
    ----------
    Ding et al. 2024, §4.1 and Appendix C.

    Examples
    --------
    >>> import analysis, nets, numpy as np
    >>> E = np.random.default_rng(0).standard_normal((7, 2))
    >>> signals = analysis.fourier_signals(nets.keep_frequencies(E, [2]))
    >>> signals.frequency[signals > 1e-9].values.tolist()
    [2]
    """
    coefficients, tokens = _transformed(E)
    kept = np.zeros((tokens // 2 + 1, 1))
    kept[_frequencies("frequencies", frequencies, tokens)] = 1
    kept[0] = flag("mean", mean)
    return np.fft.irfft(coefficients * kept, tokens, axis=-2)


def _transformed(E: Any) -> tuple[Complex, int]:
    """Return the Fourier coefficients (..., ⌊tokens/2⌋ + 1, dim) of embeddings, and the number of tokens."""
    embedding = point_sets("E", E)
    return np.fft.rfft(embedding, axis=-2), embedding.shape[-2]


def _frequencies(name: str, values: Any, tokens: int) -> list[int]:
    """Return checked frequencies, each from 1 to ⌊tokens/2⌋."""
    return [whole_number(name, value, 1, tokens // 2) for value in sequence(name, values)]
