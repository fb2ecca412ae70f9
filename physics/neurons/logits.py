"""Logits of modular addition in Fourier space: waves of a + b - c, and the effect of a few frequencies."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from physics.checks import InputError, finite_array, misfit, number, regular_array, short_text, whole_number
from physics.values import Array, Integers, Mask, Shown, powers_of_two


@dataclass(frozen=True, eq=False)
class LogitSpectrum(Shown):
    """Logits of modular addition as a sum of waves ``A_k cos(2πk(a + b - c)/p)``; see `logit_spectrum`.

    Here a and b are the tokens, c is the class and p the modulus. K = ⌊p/2⌋ is the number of frequencies k.

    Attributes
    ----------
    coefficients : ndarray of float64, shape (..., K)
        A_k of the frequencies 1 … K, in units of the logits; positive if the wave favors the correct class.
    explained : ndarray of float64, shape (..., K)
        Fraction of the variance of the logits that each wave holds. The fractions add up to at most 1; the
        rest is not a function of a + b - c. NaN if the logits do not depend on the class.
    ghosts : ndarray of float64, shape (..., K)
        Mean coefficient of cos(2πk(2a - c)/p) and cos(2πk(2b - c)/p). These waves favor twice a token instead
        of the sum, and so lead to wrong answers. Quadratic neurons whose phases are evenly distributed have
        ghosts of A_k/2. NaN for the frequency p/2 of an even p.
    ghosts_explained : ndarray of float64, shape (..., K)
        Fraction of the variance that these two waves hold together, in addition to `explained`; NaN as
        `ghosts`, and if the logits do not depend on the class.
    """

    coefficients: Array
    explained: Array
    ghosts: Array
    ghosts_explained: Array

    def key_frequencies(self, share: float = 0.9) -> "np.ndarray[Any, Any]":
        """Return the fewest frequencies that together hold a given share of the explained variance.

        Parameters
        ----------
        share : float, default 0.9
            Share of the explained variance, greater than 0 and at most 1.

        Returns
        -------
        ndarray of int64, shape (n,), or of these as objects, shape (...)
            Frequencies from 1 to K, increasing, for each spectrum. An example is in `logit_spectrum`.

        Raises
        ------
        InputError
            If `share` is out of its range.
        """
        share = number("share", share, maximum=1.0, above=0.0)
        power = np.nan_to_num(self.explained)
        order = np.argsort(-power, axis=-1, kind="stable")
        ranked = np.take_along_axis(power, order, axis=-1)
        before = np.cumsum(ranked, axis=-1) - ranked
        wanted = before < share * (1 - 1e-12) * ranked.sum(axis=-1, keepdims=True)
        keys = np.empty(power.shape[:-1], object)
        for place in np.ndindex(keys.shape):
            keys[place] = 1 + np.sort(order[place][wanted[place]])
        return keys if keys.ndim else np.asarray(keys.item())


def logit_spectrum(logits: Any) -> LogitSpectrum:
    """Decompose logits into the waves cos(2πk(a + b - c)/p), which peak at the correct answer.

    It shows which frequencies a trained network computes with, from its outputs alone.

    Parameters
    ----------
    logits : array_like, shape (..., p, p, p)
        Logit of class c for the tokens a and b at [..., a, b, c], for p of at least 3.

    Returns
    -------
    LogitSpectrum
        Coefficients, and fractions of the variance. Variances are computed about the mean over the classes of
        each pair, because the softmax ignores this mean.

    Raises
    ------
    InputError
        If `logits` are not finite or of another shape.

    References
    ----------
    Nanda et al. 2023, arXiv 2301.05217, §4; He et al. 2026, arXiv 2602.16849.

    Examples
    --------
    >>> import numpy as np
    >>> from physics.neurons.logits import logit_spectrum
    >>> a, b, c = np.ogrid[:7, :7, :7]
    >>> found = logit_spectrum(3 * np.cos(2 * np.pi * 2 * (a + b - c) / 7) + a)
    >>> found.coefficients.round(9) + 0, found.key_frequencies()
    (array([0., 3., 0.]), array([2]))
    """
    array, exponent = powers_of_two(_logits(logits), (-3, -2, -1))
    p = array.shape[-1]
    steps = np.arange(p)
    coefficients = _waves_of(_by_sum(array), steps)
    twice = [_waves_of(array.mean(axis=other), 2 * steps) for other in (-2, -3)]
    power, both = coefficients**2 / 2, (twice[0] ** 2 + twice[1] ** 2) / 2
    ghosts = (twice[0] + twice[1]) / 2
    if p % 2 == 0:
        power[..., -1] *= 2
        ghosts[..., -1] = both[..., -1] = np.nan
    variance = array.var(axis=-1).mean(axis=(-2, -1))[..., None]
    with np.errstate(invalid="ignore", divide="ignore"):
        explained = np.where(variance > 0, power / variance, np.nan)
        ghosts_explained = np.where(variance > 0, both / variance, np.nan)
    unit = exponent[..., 0, 0]
    return LogitSpectrum(np.ldexp(coefficients, unit), explained, np.ldexp(ghosts, unit), ghosts_explained)


def restrict_logits(logits: Any, frequencies: Any) -> Array:
    """Keep only the waves of a + b of some frequencies, and the constant part, of logits.

    Parameters
    ----------
    logits : array_like, shape (..., p, p, p)
        Logits with the last axes (a, b, class), as in `logit_spectrum`.
    frequencies : sequence of int, or array of such sequences
        Frequencies from 1 to K = ⌊p/2⌋, the same for all logits, or those of each in an array with the
        leading axes of `logits`, as `LogitSpectrum.key_frequencies` returns them.

    Returns
    -------
    ndarray of float64, shape (..., p, p, p)
        Projection of the logit of each class onto 1, cos(2πk(a + b)/p) and sin(2πk(a + b)/p).

    Raises
    ------
    InputError
        If `logits` are not finite, a shape is another one, or a frequency is out of its range.

    References
    ----------
    Nanda et al. 2023, arXiv 2301.05217, §5.1: restricted loss.

    Examples
    --------
    >>> import numpy as np
    >>> from physics.neurons.logits import restrict_logits
    >>> a, b, c = np.ogrid[:7, :7, :7]
    >>> clean, other = (np.cos(2 * np.pi * k * (a + b - c) / 7) for k in (2, 3))
    >>> bool(np.allclose(restrict_logits(clean + other, [2]), clean))
    True
    """
    array = _logits(logits)
    return _spread(_waves(array, frequencies, constant=True))


def exclude_logits(logits: Any, frequencies: Any) -> Array:
    """Remove the waves of a + b of some frequencies from logits, and leave the rest unchanged.

    The result shows what a network can do without these frequencies; see `excluded_loss`.

    Parameters
    ----------
    logits : array_like, shape (..., p, p, p)
        Logits with the last axes (a, b, class), as in `logit_spectrum`.
    frequencies : sequence of int, or array of such sequences
        Frequencies to remove, as in `restrict_logits`.

    Returns
    -------
    ndarray of float64, shape (..., p, p, p)

    Raises
    ------
    InputError
        If `logits` are not finite, a shape is another one, or a frequency is out of its range.

    References
    ----------
    Nanda et al. 2023, arXiv 2301.05217, §5.1: excluded loss.

    Examples
    --------
    >>> import numpy as np
    >>> from physics.neurons.logits import exclude_logits
    >>> a, b, c = np.ogrid[:7, :7, :7]
    >>> clean, other = (np.cos(2 * np.pi * k * (a + b - c) / 7) for k in (2, 3))
    >>> bool(np.allclose(exclude_logits(clean + other, [3]), clean))
    True
    """
    array = _logits(logits)
    return array - _spread(_waves(array, frequencies, constant=False))


def restricted_loss(logits: Any, frequencies: Any, *, examples: Any = None) -> Array:
    """Return the cross-entropy of networks that keep only some frequencies in their logits.

    If this restricted loss is low, these frequencies suffice.

    Parameters
    ----------
    logits : array_like, shape (..., p, p, p)
        Logits with the last axes (a, b, class), as in `logit_spectrum`.
    frequencies : sequence of int, or array of such sequences
        Frequencies to keep, as in `restrict_logits`.
    examples : array_like of int, shape (n, 2) or (..., n, 2), optional
        Pairs (a, b) over which the loss is averaged; all pairs by default.

    Returns
    -------
    ndarray of float64, shape (...)
        Mean cross-entropy in nats.

    Raises
    ------
    InputError
        If `logits`, `frequencies` or `examples` have a wrong shape, or a value that is not allowed.

    Examples
    --------
    >>> import numpy as np
    >>> from physics.neurons.logits import restricted_loss
    >>> a, b, c = np.ogrid[:7, :7, :7]
    >>> logits = 9 * np.cos(2 * np.pi * 2 * (a + b - c) / 7)
    >>> restricted_loss(logits, [2]).round(2).item(), restricted_loss(logits, [3]).round(2).item()
    (0.07, 1.95)
    """
    return _loss(restrict_logits(logits, frequencies), examples)


def excluded_loss(logits: Any, frequencies: Any, *, examples: Any = None) -> Array:
    """Return the cross-entropy of networks whose logits have lost some frequencies.

    If this excluded loss is high, the network needs these frequencies. Nanda et al. evaluate it on the
    training examples, where only a network that adds, and does not memorize, needs single frequencies.

    Parameters
    ----------
    logits : array_like, shape (..., p, p, p)
        Logits with the last axes (a, b, class), as in `logit_spectrum`.
    frequencies : sequence of int, or array of such sequences
        Frequencies to remove, as in `exclude_logits`.
    examples : array_like of int, shape (n, 2) or (..., n, 2), optional
        Pairs (a, b) over which the loss is averaged; all pairs by default.

    Returns
    -------
    ndarray of float64, shape (...)
        Mean cross-entropy in nats.

    Raises
    ------
    InputError
        If `logits`, `frequencies` or `examples` have a wrong shape, or a value that is not allowed.

    Examples
    --------
    >>> import numpy as np
    >>> from physics.neurons.logits import excluded_loss
    >>> a, b, c = np.ogrid[:7, :7, :7]
    >>> logits = 9 * np.cos(2 * np.pi * 2 * (a + b - c) / 7)
    >>> excluded_loss(logits, [2]).round(2).item(), excluded_loss(logits, [3]).round(2).item()
    (1.95, 0.07)
    """
    return _loss(exclude_logits(logits, frequencies), examples)


def frequency_ablation(logits: Any, *, examples: Any = None) -> Array:
    """Return the cross-entropy of networks after each single frequency has been removed from their logits.

    Parameters
    ----------
    logits : array_like, shape (..., p, p, p)
        Logits with the last axes (a, b, class), as in `logit_spectrum`.
    examples : array_like of int, shape (n, 2) or (..., n, 2), optional
        Pairs (a, b) over which the loss is averaged; all pairs by default.

    Returns
    -------
    ndarray of float64, shape (..., K)
        The `excluded_loss` of each frequency from 1 to K = ⌊p/2⌋, in nats.

    Raises
    ------
    InputError
        If `logits` or `examples` have a wrong shape, or a value that is not allowed.

    Examples
    --------
    >>> import numpy as np
    >>> from physics.neurons.logits import frequency_ablation
    >>> a, b, c = np.ogrid[:7, :7, :7]
    >>> frequency_ablation(9 * np.cos(2 * np.pi * 2 * (a + b - c) / 7)).round(2).tolist()
    [0.07, 1.95, 0.07]
    """
    array = _logits(logits)
    K = array.shape[-1] // 2
    return np.stack([excluded_loss(array, [k], examples=examples) for k in range(1, K + 1)], axis=-1)


def _logits(value: Any) -> Array:
    array = finite_array("logits", value)
    if array.ndim < 3 or len(set(array.shape[-3:])) != 1 or array.shape[-1] < 3:
        raise misfit("logits", array, "have the shape (..., p, p, p), for two tokens and a class, p ≥ 3")
    return array


def _by_sum(logits: Array) -> Array:
    """Return the mean logits over the pairs of each sum s, (..., p, p), at [..., s, c]."""
    p = logits.shape[-1]
    first = np.arange(p)
    return np.asarray(logits[..., first, (first[:, None] - first) % p, :].mean(axis=-2))


def _waves_of(logits: Array, answer: Integers) -> Array:
    """Return the coefficients (..., K) of cos(2πk(answer[s] - c)/p) in mean logits (..., s, c)."""
    p = logits.shape[-1]
    steps = np.arange(p)
    profile = logits[..., steps, (answer - steps[:, None]) % p].mean(axis=-1)  # by answer - c
    coefficients = 2 / p * np.fft.rfft(profile, axis=-1).real[..., 1:]
    if p % 2 == 0:
        coefficients[..., -1] /= 2
    return np.asarray(coefficients)


def _waves(logits: Array, frequencies: Any, *, constant: bool) -> Array:
    """Return the part of the logits, by sum and class (..., p, p), that some frequencies of the sum hold."""
    p = logits.shape[-1]
    waves = np.fft.rfft(_by_sum(logits), axis=-2)
    waves[..., 1:, :] *= _marks(frequencies, p // 2, logits.shape[:-3])[..., None]
    waves[..., 0, :] *= constant
    return np.fft.irfft(waves, p, axis=-2)


def _spread(by_sum: Array) -> Array:
    """Return the logits (..., p, p, p) of all pairs, given the logits of their sums (..., p, p)."""
    p = by_sum.shape[-1]
    return np.asarray(by_sum[..., np.add.outer(np.arange(p), np.arange(p)) % p, :])


def _marks(frequencies: Any, K: int, leading: tuple[int, ...]) -> Mask:
    """Return numbers of frequencies as a mask (K,), or (*leading, K) if they are those of each logits."""
    if isinstance(frequencies, np.ndarray) and frequencies.dtype == object and frequencies.shape == leading:
        return np.stack([_marks(each, K, ()) for each in frequencies.flat]).reshape(*leading, K)
    given = regular_array("frequencies", frequencies)
    if isinstance(frequencies, str | bytes) or given.ndim != 1:
        need = f"a sequence of whole numbers, or an array {leading} of such sequences"
        raise InputError(f"frequencies must be {need}, got {short_text(frequencies)}")
    marks = np.zeros(K, bool)
    for value in frequencies:
        marks[whole_number("frequencies", value, 1, K) - 1] = True
    return marks


def _loss(logits: Array, examples: Any) -> Array:
    """Return the mean cross-entropy (...) of logits (..., p, p, p) over pairs, in nats."""
    p = logits.shape[-1]
    top = logits.max(axis=-1, keepdims=True)
    surprise = np.log(np.exp(logits - top).sum(axis=-1)) + top[..., 0]
    first, second = np.ogrid[:p, :p]
    surprise -= logits[..., first, second, (first + second) % p]
    if examples is None:
        return np.asarray(surprise.mean(axis=(-2, -1)))
    pairs = regular_array("examples", examples)
    if pairs.dtype.kind not in "iu" or pairs.ndim < 2 or pairs.shape[-1] != 2 or not pairs.size:
        raise misfit("examples", pairs, "be whole numbers of shape (n, 2)")
    if not 0 <= pairs.min() <= pairs.max() < p:
        raise InputError(f"examples must be tokens from 0 to {p - 1}, got {pairs.min()} to {pairs.max()}")
    leading = surprise.shape[:-2]
    number_ = pairs.astype(np.int64) @ [p, 1]  # in the type of `examples` it may overflow
    if number_.ndim > 1 and number_.shape[:-1] != leading:
        raise misfit("examples", pairs, f"have the shape (n, 2), or {leading} before it for each network")
    flat = surprise.reshape(*leading, p * p)
    return np.take_along_axis(flat, np.broadcast_to(number_, (*leading, number_.shape[-1])), -1).mean(axis=-1)
