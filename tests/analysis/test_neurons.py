import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import diversification, neuron_spectrum


def layer(seed, tokens=11, hidden=6, *leading):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((*leading, tokens, hidden)), rng.standard_normal((*leading, hidden, tokens))


def waves(tokens, frequency, phase, size=1.0):
    """Weights (tokens, neurons) of one frequency and phase a neuron."""
    angle = 2 * np.pi * np.outer(np.arange(tokens), frequency) / tokens
    return size * np.cos(angle + phase)


@pytest.mark.parametrize("tokens", [3, 5, 8, 23])
def test_spectrum_is_the_definition(tokens):
    W_in, W_out = layer(tokens, tokens, 5, 2)
    found = neuron_spectrum(W_in, W_out)
    assert found.magnitude.shape == found.output_phase.shape == (2, 5, tokens // 2)
    for run in range(2):
        for m in range(5):
            alpha, phi = naive.neuron_fourier(W_in[run, :, m])
            beta, psi = naive.neuron_fourier(W_out[run, m])
            np.testing.assert_allclose(found.magnitude[run, m], alpha, rtol=1e-12)
            np.testing.assert_allclose(found.phase[run, m], phi, atol=1e-12)
            np.testing.assert_allclose(found.output_magnitude[run, m], beta, rtol=1e-12)
            np.testing.assert_allclose(found.output_phase[run, m], psi, atol=1e-12)
            frequency, purity, gini, misalignment = naive.neuron(W_in[run, :, m], W_out[run, m])
            assert found.frequency[run, m] == frequency
            np.testing.assert_allclose(found.purity[run, m], purity, rtol=1e-12)
            np.testing.assert_allclose(found.gini[run, m], gini, atol=1e-12)
            if 2 * frequency == tokens:
                assert np.isnan(found.misalignment[run, m])
            else:
                np.testing.assert_allclose(found.misalignment[run, m], misalignment, atol=1e-12)


def test_the_wave_of_half_the_tokens_has_all_of_its_power():
    """It has no second half, its conjugate: its variance is the square of its magnitude."""
    one, alternating = np.sqrt(2) * waves(8, [1], 0.3), waves(8, [4], 0.0)
    np.testing.assert_allclose([one.var(), alternating.var()], 1.0)
    found = neuron_spectrum(np.hstack([one + alternating, 0.4 * one / np.sqrt(2) + alternating]))
    np.testing.assert_allclose(found.purity[0], 0.5)
    assert found.kind.tolist() == ["double", "single"]
    np.testing.assert_allclose(found.magnitude[0, [0, 3]], [np.sqrt(2), 1.0])
    two = neuron_spectrum(0.8 * one + alternating, share=0.6)  # the larger magnitude has the smaller power
    assert (two.frequency.tolist(), two.kind.tolist()) == ([1], ["single"])
    pair = np.hstack([one, alternating])  # of equal norm
    assert neuron_spectrum(pair, dead_below=0.99).dead.tolist() == [False, False]


def test_weights_are_the_sum_of_their_waves():
    W_in, _ = layer(1, 9, 4)
    found = neuron_spectrum(W_in)
    angle = 2 * np.pi * np.outer(np.arange(9), np.arange(1, 5)) / 9
    rebuilt = (found.magnitude * np.cos(angle[:, None] + found.phase)).sum(axis=-1) + W_in.mean(axis=0)
    np.testing.assert_allclose(rebuilt, W_in, atol=1e-13)


@pytest.mark.parametrize(
    ("dtype", "sizes"), [("float32", (1e-30, 1e-25, 1e25, 1e37)), ("float64", (1e-300, 1e-170, 1e170, 1e300))]
)
def test_the_scale_of_the_weights_is_of_no_account(dtype, sizes):
    """The squares of such weights, and the products of their phases, leave the range of their type."""
    W_in, W_out = (array.astype(dtype) for array in layer(2, 11, 6))
    W_in[:, 2], W_in[:, 3] = 0, 1e-4 * W_in[:, 0]
    expected = neuron_spectrum(W_in, W_out, second=W_in[::-1])
    limits = {"rtol": 3e-6 if dtype == "float32" else 1e-13}
    for size in sizes:
        size = 2.0 ** round(np.log2(size))
        found = neuron_spectrum(
            W_in * W_in.dtype.type(size), W_out, second=W_in[::-1] * W_in.dtype.type(size)
        )
        assert found.magnitude.dtype == dtype
        np.testing.assert_allclose(found.magnitude / size, expected.magnitude, **limits)
        for name in ("dead", "frequency", "kind"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
        for name in ("purity", "gini", "misalignment"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-5, **limits)
        without = neuron_spectrum(W_out.T, W_in.T * W_in.dtype.type(size))
        np.testing.assert_array_equal(without.dead, neuron_spectrum(W_out.T, W_in.T).dead)
    assert expected.dead.tolist() == [False, False, True, True, False, False]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 12))
def test_relabelling_tokens_permutes_frequencies(seed, factor):
    """The weights of token c·a at token a have at frequency c·k what they had at k, or its conjugate."""
    p = 13
    W_in, W_out = layer(seed, p)
    places = np.arange(p) * factor % p
    first, second = neuron_spectrum(W_in, W_out), neuron_spectrum(W_in[places], W_out[:, places])
    moved = np.arange(1, 7) * factor % p
    folded = np.minimum(moved, p - moved)
    np.testing.assert_allclose(second.magnitude[:, folded - 1], first.magnitude, atol=1e-12)
    assert np.array_equal(second.frequency, folded[first.frequency - 1])
    np.testing.assert_allclose(second.purity, first.purity, rtol=1e-10)
    np.testing.assert_allclose(second.gini, first.gini, rtol=1e-10)
    sign = np.where(moved == folded, 1, -1)[first.frequency - 1]
    turned = np.exp(1j * second.misalignment) - np.exp(1j * sign * first.misalignment)
    np.testing.assert_allclose(turned, 0, atol=1e-10)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 10))
def test_shifts_of_tokens_move_phases(seed, shift):
    """Token a + s takes the place of a; the sum moves by 2s, so that the misalignment stays."""
    p = 11
    W_in, W_out = layer(seed, p)
    first = neuron_spectrum(W_in, W_out)
    second = neuron_spectrum(np.roll(W_in, -shift, axis=0), np.roll(W_out, -2 * shift, axis=1))
    turn = 2 * np.pi * np.arange(1, 6) * shift / p
    np.testing.assert_allclose(second.magnitude, first.magnitude, atol=1e-12)
    np.testing.assert_allclose(np.exp(1j * second.phase), np.exp(1j * (first.phase + turn)), atol=1e-9)
    np.testing.assert_allclose(np.exp(1j * second.misalignment), np.exp(1j * first.misalignment), atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.floats(1e-150, 1e150), st.floats(-5, 5))
def test_scale_and_bias_change_no_neuron(seed, scale, bias):
    W_in, W_out = layer(seed)
    first, second = neuron_spectrum(W_in, W_out), neuron_spectrum(scale * W_in, W_out / scale)
    assert np.array_equal(first.frequency, second.frequency)
    assert np.array_equal(first.kind, second.kind)
    for name in ("purity", "gini"):
        np.testing.assert_allclose(getattr(second, name), getattr(first, name), rtol=1e-9)
    biased = neuron_spectrum(W_in + bias, W_out + bias)
    np.testing.assert_allclose(biased.misalignment, first.misalignment, atol=1e-9)
    assert ((first.purity >= 1 / 5 - 1e-12) & (first.purity <= 1)).all()
    assert ((first.gini >= 0) & (first.gini <= 1 - 1 / 5)).all()
    assert ((-np.pi < first.misalignment) & (first.misalignment <= np.pi)).all()


def test_kinds_of_neurons():
    p = 17
    pure, flat = waves(p, [3, 5], 0.3), np.full((p, 1), 2.0)
    two = waves(p, [3], 0.1) + 0.9 * waves(p, [7], 0.2)
    many = sum(waves(p, [k], k) for k in range(1, 9))
    W_in = np.hstack([pure, two, many, flat, 1e-4 * pure[:, :1], pure[:, :1]])
    W_out = np.vstack([W_in.T[:6], np.full((1, p), 3.0)])
    found = neuron_spectrum(W_in, W_out)
    assert found.kind.tolist() == ["single", "single", "double", "many", "dead", "dead", "dead"]
    assert found.frequency.tolist()[:3] + found.frequency.tolist()[4:] == [3, 5, 3, 0, 0, 0]
    np.testing.assert_allclose(found.purity[[0, 1, 3]], [1, 1, 1 / 8], rtol=1e-12)
    np.testing.assert_allclose(found.gini[[0, 1, 3]], [7 / 8, 7 / 8, 0], atol=1e-12)
    assert found.dead.tolist() == [False] * 4 + [True] * 3
    assert np.isnan(found.purity[4:]).all()
    assert np.isnan(found.gini[4:]).all()
    assert np.isnan(found.misalignment[4:]).all()
    # The output weights alone tell that the last one is dead; a lower limit revives the small one.
    assert neuron_spectrum(W_in).kind[6] == "single"
    assert neuron_spectrum(W_in, W_out, dead_below=1e-5).kind[5] == "single"
    assert neuron_spectrum(W_in, W_out, share=0.5).kind[2] == "single"
    nothing = neuron_spectrum(np.zeros((p, 3)), np.zeros((3, p)))
    assert (nothing.kind == "dead").all()
    assert (nothing.frequency == 0).all()
    assert neuron_spectrum(np.eye(3)).kind.tolist() == ["single"] * 3
    assert neuron_spectrum(np.eye(5)).kind.tolist() == ["double"] * 5
    phases = found.at_frequency(found.phase)
    for m in range(4):
        assert phases[m] == found.phase[m, found.magnitude[m].argmax()]


def test_tokens_that_are_read_apart():
    p = 11
    first, second = waves(p, [2, 2], [0.4, 0.1]), waves(p, [2, 2], [0.8, 0.3], 2.0)
    found = neuron_spectrum(first, waves(p, [2, 2], [1.0, 0.4]).T, second=second)
    np.testing.assert_allclose(found.misalignment, [0.2, 0.0], atol=1e-12)
    np.testing.assert_allclose(found.magnitude[:, 1], np.sqrt(2.5), rtol=1e-12)
    same = neuron_spectrum(first, first.T, second=first)
    np.testing.assert_allclose(same.misalignment, neuron_spectrum(first, first.T).misalignment, rtol=1e-12)


def test_diversification_is_the_definition():
    p, hidden = 13, 40
    W_in, _ = layer(5, p, hidden)
    found = diversification(neuron_spectrum(W_in), orders=(2, 4))
    members = {k: [] for k in range(1, 7)}
    for m in range(hidden):
        alpha, phi = naive.neuron_fourier(W_in[:, m])
        members[1 + int(alpha.argmax())].append(phi[alpha.argmax()])
    assert found.counts.tolist() == [len(members[k]) for k in range(1, 7)]
    for k, phases in members.items():
        for i, order in enumerate((2, 4)):
            wanted = abs(np.mean(np.exp(1j * order * np.array(phases)))) if phases else np.nan
            np.testing.assert_allclose(found.asymmetry[k - 1, i], wanted, atol=1e-12)
    shares = np.array([len(members[k]) for k in members]) / hidden
    shares = shares[shares > 0]
    np.testing.assert_allclose(found.diversity, np.exp(-(shares * np.log(shares)).sum()) / 6)


def test_phases_that_are_spread_evenly():
    p, n = 11, 6
    even = np.hstack([waves(p, [k] * n, 2 * np.pi * np.arange(n) / n) for k in range(1, 6)])
    found = diversification(neuron_spectrum(even))
    assert (found.counts == n).all()
    np.testing.assert_allclose(found.asymmetry, 0, atol=1e-12)
    np.testing.assert_allclose(found.diversity, 1)
    at_rest = diversification(neuron_spectrum(np.zeros((2, p, 3))))
    assert at_rest.counts.sum() == 0
    assert np.isnan(at_rest.diversity).all()
    assert at_rest.diversity.shape == (2,)


def test_several_layers_are_as_one_after_the_other():
    rng = np.random.default_rng(8)
    W_in, W_out = rng.normal(size=(2, 3, 11, 6)), rng.normal(size=(2, 3, 6, 11))
    W_in[0, 1, :, 2] = 0.5  # a dead neuron
    W_in[1, 2, :, 3] = np.cos(2 * np.pi * 4 * np.arange(11) / 11)
    whole = neuron_spectrum(W_in, W_out)
    names = ("theta", "xi", "magnitude", "output_magnitude", "phase", "output_phase", "frequency", "dead")
    names += ("kind", "purity", "gini", "misalignment")
    for place in np.ndindex(2, 3):
        one = neuron_spectrum(W_in[place], W_out[place])
        for name in names:
            np.testing.assert_array_equal(getattr(whole, name)[place], getattr(one, name), err_msg=name)
        np.testing.assert_array_equal(whole.at_frequency(whole.phase)[place], one.at_frequency(one.phase))
    sizes = np.abs(np.fft.fft(W_in[1, 0], axis=0)[1:6]).T
    gaps = np.abs(sizes[:, :, None] - sizes[:, None]).sum(axis=(1, 2))
    np.testing.assert_allclose(whole.gini[1, 0], gaps / (2 * 5 * sizes.sum(axis=1)))
    assert (whole.kind[0, 1, 2], whole.kind[1, 2, 3]) == ("dead", "single")
