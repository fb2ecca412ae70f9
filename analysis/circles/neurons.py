"""The neurons of a layer as a whole: their distribution over frequencies and phases, and ablation."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from physics.checks import finite_array, misfit, regular_array, sequence, truth_array, whole_number
from physics.errors import InputError
from physics.neurons.logits import LogitSpectrum as LogitSpectrum
from physics.neurons.logits import exclude_logits as exclude_logits
from physics.neurons.logits import excluded_loss as excluded_loss
from physics.neurons.logits import frequency_ablation as frequency_ablation
from physics.neurons.logits import logit_spectrum as logit_spectrum
from physics.neurons.logits import restrict_logits as restrict_logits
from physics.neurons.logits import restricted_loss as restricted_loss
from physics.neurons.spectrum import NeuronSpectrum
from physics.neurons.spectrum import neuron_spectrum as neuron_spectrum
from physics.values import Array, Integers, Shown


@dataclass(frozen=True, eq=False)
class Diversification(Shown):
    """Distribution of the neurons of a layer over frequencies and phases, which `diversification` returns.

    The frequencies are k = 1 … K with K = ⌊p/2⌋ for p tokens. Leading axes are those of the spectrum.

    Attributes
    ----------
    counts : ndarray of int64, shape (..., K)
        Number of neurons of each frequency, without those whose weights are all zero.
    orders : tuple of int
        Multiples ι of the phase.
    asymmetry : ndarray of float64, shape (..., K, orders)
        ``|mean of exp(iιφ_m)|`` over the neurons m of a frequency, where φ_m is the phase. It is 1 for equal
        phases, about ``√(π/(4n))`` for n random ones, and NaN for a frequency without neurons. It is 0 for n
        evenly spread phases, unless ι is a multiple of n.
    diversity : ndarray of float64, shape (...)
        Effective number of frequencies (the exponential of the entropy of `counts`) divided by K. It is 1 if
        all frequencies have equally many neurons, 1/K if one frequency has all of them, and NaN if no neuron
        counts.

    Examples
    --------
    >>> import analysis, numpy as np
    >>> waves = np.cos(2 * np.pi * np.outer(np.arange(11), [1, 2, 3, 4, 5]) / 11)
    >>> found = analysis.diversification(analysis.neuron_spectrum(waves))
    >>> found.counts.tolist(), found.diversity.round(6).item()  # one neuron for each frequency
    ([1, 1, 1, 1, 1], 1.0)
    """

    counts: Integers
    orders: tuple[int, ...]
    asymmetry: Array
    diversity: Array


def diversification(spectrum: NeuronSpectrum, orders: Sequence[int] = (1, 2, 3, 4)) -> Diversification:
    """Measure how evenly the neurons of a layer are spread over frequencies and phases.

    A network of single-frequency neurons adds two tokens a and b correctly if every frequency has neurons
    whose phases are spread evenly. In the logit of class c, all terms that are not functions of a + b - c
    then cancel.

    Parameters
    ----------
    spectrum : NeuronSpectrum
        Spectrum of one layer, or of many, as `neuron_spectrum` returns it.
    orders : sequence of int, default (1, 2, 3, 4)
        Multiples of the phase for which the asymmetry is measured, each at least 1. For quadratic neurons, 2
        and 4 matter.

    Returns
    -------
    Diversification
        Counts, asymmetry of the phases, and diversity of the frequencies.

    Raises
    ------
    InputError
        If `spectrum` is not a spectrum, `orders` is not a list, or an order is out of range or there is none.

    References
    ----------
    He et al. 2026, arXiv:2602.16849: phase symmetry and frequency diversification.

    Examples
    --------
    >>> import analysis, numpy as np
    >>> phases = 2 * np.pi * np.arange(8) / 8  # eight neurons of frequency 2
    >>> layer = analysis.neuron_spectrum(np.cos(2 * np.pi * 2 * np.arange(11)[:, None] / 11 + phases))
    >>> found = analysis.diversification(layer)
    >>> found.counts, found.asymmetry[1].round(6).tolist(), found.diversity.round(6).item()
    (array([0, 8, 0, 0, 0]), [0.0, 0.0, 0.0, 0.0], 0.2)
    """
    if not isinstance(spectrum, NeuronSpectrum):
        raise InputError(f"spectrum must be what neuron_spectrum returns, got {type(spectrum).__name__}")
    orders = tuple(whole_number("orders", order, 1) for order in sequence("orders", orders))
    if not orders:
        raise InputError("orders must hold at least one multiple of the phase, got none")
    K = spectrum.theta.shape[-1]
    frequency = spectrum.frequency.reshape(-1, spectrum.hidden)
    place = (frequency + (K + 1) * np.arange(len(frequency))[:, None]).ravel()  # the first is of dead neurons
    unit = np.exp(1j * np.angle(spectrum.at_frequency(spectrum.theta))).ravel()

    def by_frequency(values: Any) -> Array:
        sums = np.bincount(place, values, len(frequency) * (K + 1))
        return np.asarray(sums.reshape(*spectrum.frequency.shape[:-1], K + 1)[..., 1:])

    counts = by_frequency(None)
    powers = [unit**order for order in orders]
    sums = np.stack(
        [np.hypot(by_frequency(power.real), by_frequency(power.imag)) for power in powers], axis=-1
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        asymmetry = np.where(counts[..., None] > 0, sums / counts[..., None], np.nan)
        shares = counts / counts.sum(axis=-1, keepdims=True)
        entropy = -np.sum(shares * np.log(np.where(shares > 0, shares, 1.0)), axis=-1)
    return Diversification(counts.astype(np.int64), orders, asymmetry, np.exp(entropy) / K)


def neuron_ablation(
    activations: Any, W_out: Any, labels: Any, *, bias: Any = 0.0, groups: Any = None
) -> Array:
    """Return the cross-entropy of networks from which a neuron, or a group of neurons, is removed.

    The increase over the loss of the intact network shows how much the network depends on these neurons.

    Parameters
    ----------
    activations : array_like, shape (..., examples, hidden)
        Activations of the last hidden layer, as `nets.networks.Networks.activations` returns them.
    W_out : array_like, shape (..., hidden, classes)
        Output weights of the neurons.
    labels : array_like of int, shape (examples,)
        Correct class of each example.
    bias : array_like, broadcasts to (..., examples, classes), default 0.0
        Bias of the logits.
    groups : array_like of bool, shape (..., groups, hidden), optional
        Neurons that are removed together: ``spectrum.frequency[..., None, :] == k[:, None]`` removes all
        neurons of each frequency k. By default each neuron is removed separately.

    Returns
    -------
    ndarray of float64, shape (..., groups)
        Mean cross-entropy over the examples, in nats.

    Raises
    ------
    InputError
        If the shapes of the arguments do not agree, or one is empty, a value is not finite, or a label is not
        a class.

    Examples
    --------
    >>> import analysis, numpy as np
    >>> states = np.eye(2)  # neuron m is active in example m only, and writes to class m
    >>> analysis.neuron_ablation(states, 5 * np.eye(2), [0, 1]).round(3).tolist()
    [0.35, 0.35]
    """
    states, out = finite_array("activations", activations), finite_array("W_out", W_out)
    fits = states.ndim > 1 and out.shape[:-1] == (*states.shape[:-2], states.shape[-1])
    if not (fits and states.size and out.size):
        wanted = "(..., examples, hidden) and (..., hidden, classes)"
        raise InputError(f"activations and W_out must be {wanted}, got {states.shape} and {out.shape}")
    (*leading, examples, hidden), classes = states.shape, out.shape[-1]
    right = regular_array("labels", labels)
    if right.dtype.kind not in "iu" or right.shape != (examples,) or not np.isin(right, range(classes)).all():
        raise misfit("labels", right, f"be {examples} whole numbers from 0 to {classes - 1}")
    marks = truth_array("groups", np.eye(hidden, dtype=bool) if groups is None else groups)
    if marks.ndim < 2 or marks.shape[-1] != hidden or not marks.shape[-2]:
        raise InputError(f"groups must be bool (..., groups, {hidden}), got {marks.shape}")
    marks = _spread("groups", marks, (*leading, *marks.shape[-2:]))
    whole = states @ out
    whole += _spread("bias", finite_array("bias", bias), whole.shape)
    losses = []
    for group in np.moveaxis(marks, -2, 0):
        lacking = whole - (states * group[..., None, :]) @ out
        surprise = np.logaddexp.reduce(lacking, axis=-1) - lacking[..., np.arange(examples), right]
        losses.append(surprise.mean(axis=-1))
    return np.stack(losses, axis=-1)


def _spread(name: str, value: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return an array broadcast to a shape; an `InputError` says if it cannot be."""
    try:
        return np.broadcast_to(value, shape)
    except ValueError:
        raise InputError(f"{name} must broadcast to the shape {shape}, got {value.shape}") from None
