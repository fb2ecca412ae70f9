"""Figures of neurons in Fourier space: their spectra, their phases, and the waves of the logits."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from analysis.plots.palette import REFERENCE, graded_colors
from analysis.plots.style import axes_of, styled
from physics.errors import InputError
from physics.neurons.spectrum import NeuronSpectrum


@styled
def show_neurons(spectrum: NeuronSpectrum, ax: Axes | None = None, *, output: bool = False) -> Axes:
    """Draw the Fourier magnitudes of one layer, a row for each neuron, sorted by frequency.

    Each row is relative to its largest magnitude. Dead neurons, whose weights hardly depend on the token, are
    last and have no magnitudes.

    Parameters
    ----------
    spectrum : NeuronSpectrum
        Spectrum of one layer.
    ax : Axes, optional
        Axes to draw on; new ones by default.
    output : bool, default False
        Whether to draw the magnitudes of the output weights instead of the input weights.

    Returns
    -------
    Axes
        The axes.

    Raises
    ------
    InputError
        If the spectrum holds several layers, or `output` is true and it has no output weights.
    """
    ax = axes_of(ax)
    _one_layer(spectrum)
    values = np.asarray(spectrum.output_magnitude if output else spectrum.magnitude, np.float64)
    largest = values.max(axis=1, keepdims=True)
    rows = np.where(spectrum.dead[:, None], 0.0, values / np.where(largest > 0, largest, 1.0))
    place = np.where(spectrum.dead, spectrum.tokens, spectrum.frequency)
    order = np.lexsort((-np.nan_to_num(spectrum.purity), place))
    K = values.shape[1]
    look: Any = {"aspect": "auto", "interpolation": "nearest", "cmap": "magma", "vmin": 0, "vmax": 1}
    image = ax.imshow(rows[order], extent=(0.5, K + 0.5, len(rows), 0), **look)
    ax.figure.colorbar(image, ax=ax, shrink=0.85).set_label("magnitude over the largest of the neuron")
    ax.set(xlabel="frequency", ylabel="neurons, by frequency")
    return ax


@styled
def show_phases(spectrum: NeuronSpectrum, ax: Axes | None = None) -> Axes:
    """Draw the output phase ψ of each living neuron against twice its input phase φ.

    Neurons whose phases are aligned, with ψ = 2φ, are on the line.

    Parameters
    ----------
    spectrum : NeuronSpectrum
        Spectrum of one layer, with output weights.
    ax : Axes, optional
        Axes to draw on; new ones by default.

    Returns
    -------
    Axes
        The axes. The color of a neuron shows its frequency, and phases are in radians.

    Raises
    ------
    InputError
        If the spectrum holds several layers or has no output weights.
    """
    ax = axes_of(ax)
    _one_layer(spectrum)
    shown = np.isfinite(spectrum.misalignment)
    psi = spectrum.at_frequency(spectrum.output_phase)[shown]
    doubled = np.angle(np.exp(1j * (psi + spectrum.misalignment[shown])))
    colors = graded_colors(spectrum.theta.shape[-1])[spectrum.frequency[shown] - 1]
    ax.plot([-np.pi, np.pi], [-np.pi, np.pi], color=REFERENCE, linewidth=0.8, linestyle=(0, (4, 3)))
    ax.scatter(doubled, psi, s=12, c=colors, linewidths=0)
    ticks = [-np.pi, 0, np.pi], ["-π", "0", "π"]
    ax.set_xticks(*ticks)
    ax.set_yticks(*ticks)
    ax.set(xlabel="twice the phase of the input, 2φ", ylabel="phase of the output, ψ", aspect="equal")
    return ax


def _one_layer(spectrum: NeuronSpectrum) -> None:
    """Refuse a spectrum of several layers."""
    if spectrum.theta.ndim != 2:
        raise InputError(f"spectrum must hold one layer (hidden, K), got {spectrum.theta.shape}")
