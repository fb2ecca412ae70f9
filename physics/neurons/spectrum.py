"""Fourier spectra of single neurons: frequency, phase, purity, and how the phases of both layers relate."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from physics.blas import one_blas_thread
from physics.checks import InputError, finite_array, number
from physics.values import Shown, Value, read_only

Array = NDArray[np.floating[Any]]
Complex = NDArray[np.complexfloating[Any, Any]]

KINDS = ("single", "double", "many", "dead")
"""Kinds of neurons: with one frequency, with two, with more, or with no weights that depend on the token."""


@dataclass(frozen=True, eq=False)
class NeuronSpectrum(Shown, Value):
    """The weights of neurons as functions of the token, in Fourier space; `neuron_spectrum` computes it.

    A neuron of a network that adds modulo p often responds to a single frequency k: its input weight for
    token a is ``α cos(2πka/p + φ)``, with a magnitude α and a phase φ. The complex number ``θ_k = α exp(iφ)``
    holds both. One object can hold the neurons of many layers or networks. The glossary,
    ``docs/glossary.md``, explains terms such as phase alignment. All quantities other than θ and ξ are
    computed on first use.

    Attributes
    ----------
    tokens : int
        Modulus p.
    theta : ndarray of complex128, or complex64 for float32 weights, shape (..., hidden, K)
        Input weights θ_k of the frequencies k = 1 … K, where K = ⌊p/2⌋.
    theta_second : ndarray of the same type and shape, or None
        Input weights for the second token, if the network reads both tokens by different weights.
    xi : ndarray of the same type and shape, or None
        Output weights ``ξ_k = β exp(iψ)``, by which the neuron contributes to the logit of each class.
    dead_below : float
        Limit below which a neuron counts as dead; see `neuron_spectrum`.
    share : float
        Fraction of the power that one or two frequencies must hold; see `kind`.

    Examples
    --------
    >>> import numpy as np
    >>> from physics.neurons.spectrum import neuron_spectrum
    >>> wave = 2 * np.cos(2 * np.pi * 3 * np.arange(11) / 11)
    >>> spectrum = neuron_spectrum(wave[:, None])
    >>> spectrum.frequency.tolist(), spectrum.magnitude.max().round(6).item()
    ([3], 2.0)
    """

    tokens: int
    theta: Complex
    theta_second: Complex | None = None
    xi: Complex | None = None
    dead_below: float = 1e-3
    share: float = 0.9

    @property
    def hidden(self) -> int:
        """Number of neurons in a layer, the length of the axis `hidden`."""
        return self.theta.shape[-2]

    @cached_property
    def magnitude(self) -> Array:
        """Magnitudes α ≥ 0 of the input weights at the frequencies 1 … K, (..., hidden, K).

        If the tokens are read by different weights, this is the root mean square over both.
        """
        magnitude: Array = np.sqrt(self._power.parts)
        magnitude *= self._power.scale[..., None]
        return magnitude

    @cached_property
    def phase(self) -> Array:
        """Phases φ of the input weights for the first token, (..., hidden, K), in radians in (-π, π]."""
        return _angle(self.theta)

    @cached_property
    def output_magnitude(self) -> Array:
        """Magnitudes β ≥ 0 of the output weights, (..., hidden, K).

        Raises
        ------
        InputError
            If the spectrum was made without output weights.
        """
        return np.abs(self._outputs())

    @cached_property
    def output_phase(self) -> Array:
        """Phases ψ of the output weights, (..., hidden, K), in radians in (-π, π].

        Raises
        ------
        InputError
            If the spectrum was made without output weights.
        """
        return _angle(self._outputs())

    @cached_property
    def dead(self) -> NDArray[np.bool_]:
        """Whether the weights of each neuron hardly depend on the token, bool of shape (..., hidden).

        The limit `dead_below` is explained in `neuron_spectrum`.
        """
        dead = self._weak(self._power)
        if self.xi is not None:
            dead = dead | self._weak(_power_of(self.tokens, self.xi))
        return dead

    @cached_property
    def frequency(self) -> NDArray[np.int64]:
        """Frequency of each neuron's largest magnitude, from 1, (..., hidden); 0 for a dead neuron."""
        return np.where(self.dead, 0, self._strongest + 1)

    @cached_property
    def purity(self) -> Array:
        """How much of the power of each neuron is in one of its K frequencies, from 1/K to 1, (..., hidden).

        It is the inverse participation ratio ``Σ_k P_k² / (Σ_k P_k)²`` of the power P_k: 1 for a single
        frequency, and 1/n for n frequencies of equal power. The power is the mean square of the wave over the
        tokens, α_k²/2, or α_k² for the frequency p/2 of an even p. It is NaN for a dead neuron.
        """
        return np.where(self.dead, np.nan, np.einsum("...k,...k->...", self._shares, self._shares))

    @cached_property
    def gini(self) -> Array:
        """Gini coefficient of the K magnitudes of each neuron, (..., hidden); NaN for a dead neuron.

        It is 0 if all magnitudes are equal, and 1 - 1/K for a single frequency (Hurley and Rickard 2009).
        """
        ordered = np.sort(self.magnitude, axis=-1)
        K = ordered.shape[-1]
        total = np.where(self.dead, 1.0, ordered.sum(axis=-1))
        return np.where(self.dead, np.nan, ordered @ (2 * np.arange(1, K + 1) - K - 1) / (K * total))

    @cached_property
    def kind(self) -> NDArray[np.str_]:
        """Kind of each neuron, one of the strings in `KINDS`, of shape (..., hidden).

        A neuron is "single" if one frequency holds at least the fraction `share` of its power, "double" if
        two together do, "many" otherwise, and "dead" if its weights hardly depend on the token.
        """
        first = self._shares.max(axis=-1)
        two = np.sort(self._shares, axis=-1)[..., -2:].sum(axis=-1)
        number_ = np.select([self.dead, first >= self.share, two >= self.share], [3, 0, 1], 2)
        return np.array(KINDS)[number_]

    @cached_property
    def misalignment(self) -> Array:
        """Difference 2φ - ψ of input and output phases, in radians in (-π, π], of shape (..., hidden).

        It is taken at the frequency of each neuron. In the theory of He et al., training brings it to 0
        (phase alignment), where a neuron grows fastest. If the tokens are read by different weights, the sum
        of both input phases replaces 2φ. The value is NaN for a dead neuron, and at frequency p/2 of an even
        p, whose wave has a sign but no phase.

        Raises
        ------
        InputError
            If the spectrum was made without output weights.
        """
        xi = self.at_frequency(self._outputs())
        first = self.at_frequency(self.theta)
        second = first if self.theta_second is None else self.at_frequency(self.theta_second)
        # Numbers are first scaled to size 1, because the product of three small weights would underflow.
        turned = _unit(first) * _unit(second) * _unit(xi).conj()
        without = self.dead | (2 * self.frequency == self.tokens)
        return np.where(without, np.nan, _angle(turned))

    def at_frequency(self, values: Any) -> NDArray[Any]:
        """Return the entries of an array at the strongest frequency of each neuron.

        Parameters
        ----------
        values : array_like, shape (..., hidden, K)
            Values for each frequency, such as `phase`.

        Returns
        -------
        ndarray, shape (..., hidden)
            Entries in the type of `values`. This includes dead neurons, although their `frequency` is 0.

        Examples
        --------
        >>> import numpy as np
        >>> from physics.neurons.spectrum import neuron_spectrum
        >>> spectrum = neuron_spectrum(np.cos(2 * np.pi * 3 * np.arange(11) / 11 + 0.5)[:, None])
        >>> spectrum.at_frequency(spectrum.phase).round(6).tolist()
        [0.5]
        """
        return np.take_along_axis(np.asarray(values), self._strongest[..., None], axis=-1)[..., 0]

    @cached_property
    def _power(self) -> "_Power":
        return _power_of(self.tokens, *(one for one in (self.theta, self.theta_second) if one is not None))

    @cached_property
    def _shares(self) -> Array:
        """Fraction of the power that each frequency holds, (..., hidden, K); 0 for a dead neuron."""
        power = _doubled(self.tokens, self._power.parts)
        return np.divide(power, np.where(self.dead, np.inf, self._power.total)[..., None])

    @cached_property
    def _strongest(self) -> NDArray[np.int64]:
        return np.asarray(self._power.parts.argmax(axis=-1))

    def _weak(self, power: "_Power") -> NDArray[np.bool_]:
        norm = np.sqrt(power.total) * power.scale
        return np.asarray(norm <= self.dead_below * norm.max(axis=-1, keepdims=True, initial=0.0))

    def _outputs(self) -> Complex:
        if self.xi is None:
            raise InputError("W_out must be given to neuron_spectrum for magnitudes of outputs, got none")
        return self.xi


@one_blas_thread
def neuron_spectrum(
    W_in: Any, W_out: Any = None, *, second: Any = None, dead_below: float = 1e-3, share: float = 0.9
) -> NeuronSpectrum:
    """Return the Fourier magnitudes and phases of the weights of every neuron.

    Use it to see which frequency each neuron of a trained network responds to, and whether its output is
    aligned with its input.

    Parameters
    ----------
    W_in : array_like, shape (..., tokens, hidden)
        What each neuron receives from each token, for p ≥ 3 tokens. In a network with an embedding E, these
        are the effective weights E @ W of the first layer, as `Networks.neuron_weights` returns them.
    W_out : array_like, shape (..., hidden, tokens), optional
        What each neuron adds to the logit of each class.
    second : array_like, shape of `W_in`, optional
        What each neuron receives from the second token, if the network reads the two tokens by different
        weights, as a network that concatenates their embeddings does.
    dead_below : float, default 1e-3
        A neuron is dead if the Euclidean norm of its input weights, or of its output weights, is at most this
        fraction of the largest norm in its layer. The mean over the tokens is subtracted first, because it
        acts as a bias or shifts all logits alike.
    share : float, default 0.9
        Fraction of the power that one or two frequencies must hold, for `NeuronSpectrum.kind`; greater than 0
        and at most 1.

    Returns
    -------
    NeuronSpectrum
        With `magnitude`, `phase`, `output_magnitude`, `output_phase` (..., hidden, K), and `frequency`,
        `purity`, `gini`, `kind`, `misalignment` (..., hidden).

    Raises
    ------
    InputError
        If shapes do not agree, a value is not finite, or a limit is out of its range.

    Notes
    -----
    For odd p there are K = (p - 1)/2 frequencies, each with a magnitude and a phase. For even p the last one,
    p/2, is its own conjugate: it has a magnitude, and a sign in place of a phase (0 or π), but no
    misalignment. With p = 3 there is one frequency, and every neuron is pure.

    References
    ----------
    He, Wang, Chen and Yang 2026, arXiv 2602.16849. The notebooks of their repository compute the
    participation ratio over cosines and sines separately, so that it depends on the phase. Their web page
    computes it over frequencies, as here.

    Examples
    --------
    >>> import numpy as np
    >>> from physics.neurons.spectrum import neuron_spectrum
    >>> angle = 2 * np.pi * np.outer(np.arange(7), [1, 3]) / 7
    >>> spectrum = neuron_spectrum(2 * np.cos(angle + 0.5), np.cos(angle + 0.75).T)
    >>> spectrum.frequency, spectrum.kind, spectrum.misalignment.round(6)
    (array([1, 3]), array(['single', 'single'], dtype='<U6'), array([0.25, 0.25]))
    """
    inputs = weights("W_in", W_in, ("tokens", "hidden"))
    tokens, hidden = inputs.shape[-2:]
    if tokens < 3:
        raise InputError(f"W_in must hold at least 3 tokens, got the shape {inputs.shape}")
    others: dict[str, Complex] = {}
    if second is not None:
        array = weights("second", second, ("tokens", "hidden"))
        if array.shape != inputs.shape:
            raise InputError(f"second must have the shape of W_in, {inputs.shape}, got {array.shape}")
        others["theta_second"] = _coefficients(array.swapaxes(-1, -2))
    if W_out is not None:
        array = weights("W_out", W_out, ("hidden", "tokens"))
        wanted = (*inputs.shape[:-2], hidden, tokens)
        if array.shape != wanted:
            raise InputError(f"W_out must have the shape {wanted} for this W_in, got {array.shape}")
        others["xi"] = _coefficients(array)
    dead_below, share = number("dead_below", dead_below, 0.0), number("share", share, maximum=1.0, above=0.0)
    theta = _coefficients(inputs.swapaxes(-1, -2))
    return NeuronSpectrum(tokens, theta, **others, dead_below=dead_below, share=share)


def weights(name: str, value: Any, axes: tuple[str, str]) -> Array:
    """Return finite weights of a layer, (..., n, m), as float64, or unchanged if they are float32.

    `name` and `axes`, the names of the last two axes, are for the message of an `InputError`, which also
    refuses an empty array.
    """
    if isinstance(value, np.ndarray) and value.dtype == np.float32 and np.isfinite(value).all():
        array: Array = value
    else:
        array = finite_array(name, value)
    if array.ndim < 2 or not array.size:
        raise InputError(f"{name} must have the shape (..., {', '.join(axes)}), got {array.shape}")
    return array


def _coefficients(values: Array) -> Complex:
    """Return ``α exp(iφ)`` (..., K) of values (..., p), by a product with a table."""
    product: Array = np.matmul(values, _table(values.shape[-1], values.dtype.name))
    return product.view(np.complex64 if product.dtype == np.float32 else np.complex128)


@lru_cache(maxsize=16)
def _table(tokens: int, dtype: str) -> Array:
    """Return the columns (2/p) cos and -(2/p) sin of each frequency in turn, (p, 2 ⌊p/2⌋).

    Two neighboring columns are the real and the imaginary part of one complex number.
    """
    # Whole numbers are reduced before they become angles, so that every entry is right to the last bits.
    turns = np.outer(np.arange(tokens), np.arange(1, tokens // 2 + 1)) % tokens / tokens
    table = np.stack([np.cos(2 * np.pi * turns), -np.sin(2 * np.pi * turns)], axis=-1) * (2 / tokens)
    if tokens % 2 == 0:
        table[:, -1] /= 2  # frequency p/2 is its own conjugate
        table[:, -1, 1] = 0.0
    return read_only(table.reshape(tokens, -1).astype(dtype))


class _Power(NamedTuple):
    """Squares of the magnitudes, and twice the power of all waves, in units of the square of a scale."""

    parts: Array  # (..., hidden, K)
    total: Array  # (..., hidden)
    scale: Array  # (..., hidden)


def _doubled(tokens: int, squares: Array) -> Array:
    """Return twice the power of waves from the squares of their magnitudes, (..., K).

    The mean of a squared wave is half the square of its magnitude, except at the frequency p/2 of an even p,
    whose wave alternates between two values of that size.
    """
    if tokens % 2:
        return squares
    return np.concatenate([squares[..., :-1], 2 * squares[..., -1:]], axis=-1)


def _power_of(tokens: int, *values: Complex) -> _Power:
    """Return the power of each frequency, from the mean of ``|values|²`` over arrays (..., hidden, K).

    The scale is 1 unless a square overflows or loses digits. It is then a power of two near the largest
    number of each neuron.
    """
    parts = [part for one in values for part in (one.real, one.imag)]
    limits = np.finfo(parts[0].dtype)
    with np.errstate(over="ignore", under="ignore"):
        power = np.asarray(sum(part**2 for part in parts)) / len(values)
        total = _doubled(tokens, power).sum(axis=-1)
    if total.min() > limits.tiny / limits.eps**2 and total.max() < np.inf:
        return _Power(power, total, np.ones_like(total))
    largest = np.max([np.abs(part).max(axis=-1) for part in parts], axis=0)
    exponent = np.maximum(np.frexp(largest)[1] - 1, limits.minexp)
    factor = np.ldexp(limits.dtype.type(1), -exponent)[..., None]
    power = np.asarray(sum((part * factor) ** 2 for part in parts)) / len(values)
    return _Power(power, _doubled(tokens, power).sum(axis=-1), np.ldexp(limits.dtype.type(1), exponent))


def _unit(values: Complex) -> Complex:
    size = np.abs(values)
    return np.divide(values, size, out=np.ones_like(values), where=size > 0)


def _angle(values: Complex) -> Array:
    """Return the angle of complex numbers in (-π, π]."""
    angle = np.angle(values)
    return np.where(angle <= -angle.dtype.type(np.pi), angle.dtype.type(np.pi), angle)
