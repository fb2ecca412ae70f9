"""What the spectrum of neurons refuses: weights of a second token that belong to other runs."""

import numpy as np
import pytest

from analysis import neuron_spectrum
from physics import InputError


def test_the_second_token_has_weights_for_every_run():
    weights = np.random.default_rng(0).normal(size=(3, 7, 4))
    assert neuron_spectrum(weights, second=weights).frequency.shape == (3, 4)
    with pytest.raises(InputError, match=r"second must have the shape of W_in, \(3, 7, 4\), got \(7, 4\)"):
        neuron_spectrum(weights, second=weights[0])
