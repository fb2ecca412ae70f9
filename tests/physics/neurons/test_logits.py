from itertools import product

import naive
import numpy as np
import pytest

from analysis.circles import diversification, neuron_ablation
from physics.neurons import (
    exclude_logits,
    excluded_loss,
    frequency_ablation,
    logit_spectrum,
    neuron_spectrum,
    restrict_logits,
    restricted_loss,
)
from physics.neurons.logits import LogitSpectrum


def noise(p, *leading, seed=0):
    return np.random.default_rng(seed).standard_normal((*leading, p, p, p))


def clock(p, weights):
    """Logits Σ A_k cos(2πk(a + b - c)/p)."""
    a, b, c = np.ogrid[:p, :p, :p]
    return sum(A * np.cos(2 * np.pi * k * (a + b - c) / p) for k, A in weights.items())


@pytest.mark.parametrize("p", [3, 5, 6])
def test_coefficients_are_the_definition(p):
    logits = noise(p, 2)
    found = logit_spectrum(logits)
    for run in range(2):
        wanted = naive.logit_waves(logits[run])
        np.testing.assert_allclose(found.coefficients[run], wanted, atol=1e-14)
        centered = logits[run] - logits[run].mean(axis=2, keepdims=True)
        for k, A in enumerate(wanted, 1):
            left = centered - clock(p, {k: A})
            part = 1 - (left**2).sum() / (centered**2).sum()
            np.testing.assert_allclose(found.explained[run, k - 1], part, atol=1e-13)
        first = naive.logit_waves(logits[run], lambda a, b: 2 * a)
        second = naive.logit_waves(logits[run], lambda a, b: 2 * b)
        whole = slice(None) if p % 2 else slice(-1)
        np.testing.assert_allclose(found.ghosts[run][whole], ((first + second) / 2)[whole], atol=1e-14)
        held = (first**2 + second**2) / 2 / (centered**2).mean()
        np.testing.assert_allclose(found.ghosts_explained[run][whole], held[whole], atol=1e-13)
        assert np.isnan(found.ghosts[run, -1]) == (p % 2 == 0)


def test_logits_of_the_right_answer_are_explained_whole():
    p = 11
    shifted = clock(p, {2: 3.0, 5: 1.0}) + noise(p)[..., :1]  # the same for all classes
    found = logit_spectrum(shifted)
    np.testing.assert_allclose(found.coefficients, [0, 3, 0, 0, 1], atol=1e-13)
    np.testing.assert_allclose(found.explained, [0, 0.9, 0, 0, 0.1], atol=1e-13)
    assert found.key_frequencies().tolist() == [2]
    assert found.key_frequencies(0.91).tolist() == [2, 5]
    flat = logit_spectrum(np.ones((5, 5, 5)))
    assert np.isnan(flat.explained).all()
    assert not flat.key_frequencies().size


def test_key_frequencies_are_as_few_as_hold_their_share():
    """Two of 0.3 are 90 % of the first sum, exactly but for rounding, which asks for no third one."""
    few = (0.6 / 0.9 - 0.6) / 3
    power = np.array([[0.3, few, 0.3, few, few], [0.0, 0.0, 1.0, 0.0, 0.0], [0.0] * 5, [np.nan] * 5])
    spectrum = LogitSpectrum(power, power, power, power)
    assert list(map(len, spectrum.key_frequencies(0.9))) == [2, 1, 0, 0]
    assert spectrum.key_frequencies(0.9)[0].tolist() == [1, 3]
    assert list(map(len, spectrum.key_frequencies(1))) == [5, 1, 0, 0]
    assert spectrum.key_frequencies(0.4)[0].tolist() == [1], "the first of equals"


def test_relabelling_permutes_the_coefficients():
    p, factor = 7, 3
    logits = noise(p)
    places = np.arange(p) * factor % p
    first, second = logit_spectrum(logits), logit_spectrum(logits[np.ix_(places, places, places)])
    moved = np.arange(1, 4) * factor % p
    np.testing.assert_allclose(second.coefficients[np.minimum(moved, p - moved) - 1], first.coefficients)


@pytest.mark.parametrize(("p", "frequencies"), [(5, [2]), (6, [1, 3]), (7, [1, 2, 3]), (5, [])])
def test_restricted_and_excluded_losses_are_the_definition(p, frequencies):
    logits = noise(p, seed=p)
    kept = naive.restricted_logits(logits, frequencies)
    np.testing.assert_allclose(restrict_logits(logits, frequencies), kept, atol=1e-13)
    without = logits - kept + logits.mean(axis=(0, 1))
    np.testing.assert_allclose(exclude_logits(logits, frequencies), without, atol=1e-13)
    pairs = list(product(range(p), repeat=2))
    some = pairs[::3]
    np.testing.assert_allclose(restricted_loss(logits, frequencies), naive.cross_entropy(kept, pairs))
    np.testing.assert_allclose(
        excluded_loss(logits, frequencies, examples=some), naive.cross_entropy(without, some)
    )
    np.testing.assert_allclose(
        restricted_loss(logits, frequencies, examples=some), naive.cross_entropy(kept, some)
    )
    for k, ablated in enumerate(frequency_ablation(logits, examples=some), 1):
        np.testing.assert_allclose(ablated, excluded_loss(logits, [k], examples=some))
    stacked = excluded_loss(np.stack([logits, 2 * logits]), frequencies, examples=[some, some[::-1]])
    np.testing.assert_allclose(stacked[0], naive.cross_entropy(without, some))
    assert stacked.shape == (2,)
    each = np.empty(2, object)
    each[:] = [frequencies, [1]]
    apart = restrict_logits(np.stack([logits, logits]), each)
    np.testing.assert_allclose(apart, [kept, restrict_logits(logits, [1])], atol=1e-13)


def test_what_memorizes_needs_no_frequency():
    """Nanda et al.: a table of answers survives without a frequency, a clock does not."""
    p = 13
    a, b, c = np.ogrid[:p, :p, :p]
    adds = clock(p, {3: 8.0, 5: 8.0, 6: 8.0})
    table = 8.0 * ((a + b - c) % p == 0)
    lost = [excluded_loss(each, [3, 5, 6]) - excluded_loss(each, []) for each in (adds, table)]
    assert lost[0] > 2.5
    assert 0 < lost[1] < 0.5
    np.testing.assert_allclose(restricted_loss(adds, [3, 5, 6]), restricted_loss(adds, range(1, 7)))
    ablated = frequency_ablation(adds)
    np.testing.assert_allclose(ablated[[0, 1, 3]], excluded_loss(adds, []))
    assert ablated[[2, 4, 5]].min() > 1.01 * ablated[0]
    np.testing.assert_allclose(ablated[4], excluded_loss(adds, [5]))


def test_a_symmetric_layer_of_quadratic_neurons_adds():
    """He et al.: with even phases and ψ = 2φ, only waves of a + b - c, of 2a - c and of 2b - c are left."""
    p, n = 11, 6
    phases = np.tile(2 * np.pi * np.arange(n) / n, 5)
    angle = 2 * np.pi * np.outer(np.arange(p), np.repeat(np.arange(1, 6), n)) / p
    W_in, W_out = np.cos(angle + phases), np.cos(angle + 2 * phases).T
    spectrum = neuron_spectrum(W_in, W_out)
    np.testing.assert_allclose(spectrum.misalignment, 0, atol=1e-12)
    np.testing.assert_allclose(diversification(spectrum, (2, 4)).asymmetry, 0, atol=1e-12)
    pairs = np.array(list(product(range(p), repeat=2)))
    states = (W_in[pairs[:, 0]] + W_in[pairs[:, 1]]) ** 2
    logits = (states @ W_out).reshape(p, p, p)
    assert (logits.argmax(axis=2) == np.add.outer(np.arange(p), np.arange(p)) % p).all()
    found = logit_spectrum(logits)
    np.testing.assert_allclose(found.coefficients, n / 2, rtol=1e-12)
    np.testing.assert_allclose(found.ghosts, n / 4, rtol=1e-12)
    np.testing.assert_allclose(found.explained.sum(), 2 / 3)
    np.testing.assert_allclose(found.ghosts_explained.sum(), 1 / 3)
    groups = spectrum.frequency == np.arange(1, 6)[:, None]
    labels = pairs.sum(axis=1) % p
    losses = neuron_ablation(states, W_out, labels, groups=groups)
    assert (losses > neuron_ablation(states, W_out, labels, groups=np.zeros((1, 30), bool))).all()
    assert losses[0] > neuron_ablation(states, W_out, labels).max()
