import matplotlib.pyplot as plt
import numpy as np
import pytest

from analysis import logit_spectrum, neuron_spectrum
from analysis.plots.neurons import show_logit_waves, show_neurons, show_phases
from physics import InputError


@pytest.fixture
def ax():
    figure, ax = plt.subplots()
    yield ax
    plt.close(figure)


@pytest.fixture
def spectrum():
    p = 11
    phases = np.array([0.3, 1.9, -2.0, 0.5])
    angle = 2 * np.pi * np.outer(np.arange(p), [4, 2, 4, 1]) / p
    W_in = np.cos(angle + phases) * [1, 1, 1, 1e-6]
    return neuron_spectrum(W_in, np.cos(angle + 2 * phases + [0, 0.2, 0, 0]).T)


def test_rows_are_neurons_by_frequency_and_dead_ones_last(ax, spectrum):
    for output in (False, True):
        assert show_neurons(spectrum, ax, output=output) is ax
    drawn = np.asarray(ax.images[0].get_array())
    wanted = np.zeros((4, 5))
    wanted[0, 1] = wanted[1, 3] = wanted[2, 3] = 1
    np.testing.assert_allclose(drawn, wanted, atol=1e-12)


def test_aligned_phases_lie_on_the_diagonal(ax, spectrum):
    assert show_phases(spectrum, ax) is ax
    points = np.asarray(ax.collections[0].get_offsets())
    assert points.shape == (3, 2)
    np.testing.assert_allclose(points[:, 0] - points[:, 1], [0, -0.2, 0], atol=1e-12)
    assert (np.abs(points) <= np.pi).all()
    colors = ax.collections[0].get_facecolors()
    assert np.array_equal(colors[0], colors[2])
    assert not np.array_equal(colors[0], colors[1])


def test_bars_are_the_coefficients(ax):
    a, b, c = np.ogrid[:7, :7, :7]
    waves = logit_spectrum(2 * np.cos(2 * np.pi * 3 * (a + b - c) / 7))
    assert show_logit_waves(waves, ax) is ax
    heights = [bar.get_height() for bar in ax.patches]
    np.testing.assert_allclose(heights, [0, 0, 2], atol=1e-12)
    assert ax.get_title(loc="left") == "100% of the logits explained"


def test_bad_input():
    with pytest.raises(InputError, match=r"spectrum must be of one layer \(hidden, K\), got \(1, 3, 1\)"):
        show_neurons(neuron_spectrum(np.ones((1, 3, 3))))
    with pytest.raises(InputError, match=r"waves must be of one network"):
        show_logit_waves(logit_spectrum(np.ones((2, 3, 3, 3))))
    plt.close("all")
