"""Spectra of logits and neurons, and the lottery, where an option is rarely met."""

import json

import numpy as np
import pytest

from analysis import excluded_loss, frequency_ablation, logit_spectrum, neuron_spectrum, restricted_loss
from analysis.circles import exclude_logits, restrict_logits
from physics import FourierLottery, InputError
from physics.neurons.spectrum import NeuronSpectrum
from physics.neurons.three_waves import first_divergence
from physics.system import describe

SHAPE = "logits must have the shape (..., p, p, p) for two tokens and a class"
CHOSEN = "frequencies must be a sequence of whole numbers or a mask"
WEIGHTS = "W_in must have the shape (..., tokens, hidden)"
LOGITS = np.random.default_rng(0).standard_normal((2, 3, 6, 6, 6))


def said(call):
    with pytest.raises(InputError) as error:
        call()
    return str(error.value)


# -- logits -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: logit_spectrum(np.ones((2, 2, 2))),
            f"{SHAPE}, p of at least 3, got (2, 2, 2)",
        ),
        (
            lambda: logit_spectrum(np.ones((5, 5))),
            f"{SHAPE}, p of at least 3, got (5, 5)",
        ),
        (
            lambda: restrict_logits(LOGITS, [[1]]),
            f"{CHOSEN}, got [[1]]",
        ),
        (lambda: restrict_logits(LOGITS, 1), f"{CHOSEN}, got 1"),
        (lambda: restrict_logits(LOGITS, [1.0]), "frequencies must be a whole number of at least 1, got 1.0"),
        (lambda: restrict_logits(LOGITS, [3, 4]), "frequencies must be at most 3, got 4"),
        (
            lambda: restricted_loss(LOGITS, [1], examples=[[0, 0], [-1, 3]]),
            "examples must be tokens from 0 to 5, got -1 to 3",
        ),
        (
            lambda: restricted_loss(LOGITS, [1], examples=np.zeros((0, 2), int)),
            "examples must be whole numbers of shape (n, 2), got int64 of shape (0, 2)",
        ),
        (
            lambda: restricted_loss(LOGITS, [1], examples=[[0, 1, 2]]),
            "examples must be whole numbers of shape (n, 2), got int64 of shape (1, 3)",
        ),
        (
            lambda: restricted_loss(LOGITS, [1], examples=[[True, False]]),
            "examples must be whole numbers of shape (n, 2), got bool of shape (1, 2)",
        ),
        (
            lambda: restricted_loss(LOGITS, [1], examples=np.zeros((3, 4, 2), int)),
            "examples must have the shape (n, 2), or (2, 3) before it for each network, got (3, 4, 2)",
        ),
    ],
)  # fmt: skip
def test_what_is_refused_of_logits(call, sentence):
    assert said(call) == sentence


def test_losses_of_many_networks_are_those_of_each_on_its_examples():
    rng = np.random.default_rng(1)
    own = rng.integers(0, 6, (2, 3, 4, 2))
    marks = rng.random((2, 3, 3)) < 0.5
    for loss in (restricted_loss, excluded_loss):
        together, shared = loss(LOGITS, marks, examples=own), loss(LOGITS, marks, examples=own[1, 2])
        plain = loss(LOGITS, [1, np.int8(3), 1])
        for at in np.ndindex(2, 3):
            k = (np.flatnonzero(marks[at]) + 1).tolist()
            assert together[at] == pytest.approx(loss(LOGITS[at], k, examples=own[at]))
            assert shared[at] == pytest.approx(loss(LOGITS[at], k, examples=own[1, 2]))
            assert plain[at] == pytest.approx(loss(LOGITS[at], [3, 1]))
    ablated = frequency_ablation(LOGITS)
    assert ablated.shape == (2, 3, 3)
    np.testing.assert_allclose(ablated[..., 2], excluded_loss(LOGITS, [3]))
    for change in (restrict_logits, exclude_logits):
        np.testing.assert_array_equal(change(LOGITS, marks[0])[1], change(LOGITS[1], marks[0]))


def test_large_logits_cost_no_digits_and_a_constant_one_is_nan_alone():
    pairs = [[0, 0], [5, 4]]
    assert restricted_loss(1e4 + LOGITS, [1], examples=pairs) == pytest.approx(
        restricted_loss(LOGITS, [1], examples=pairs), rel=1e-9
    )
    flat = LOGITS.copy()
    flat[1, 0] = 3.0
    found = logit_spectrum(flat)
    for part in (found.explained, found.ghosts_explained[..., :-1]):
        assert np.isnan(part).all(axis=-1).tolist() == [[False] * 3, [True, False, False]]
        assert np.isfinite(part[0]).all()
    assert np.isnan(found.ghosts_explained[..., -1]).all()
    assert found.key_frequencies(1.0).sum(axis=-1).tolist() == [[3, 3, 3], [0, 3, 3]]


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.uint64])
def test_examples_may_be_numbers_of_few_bits(kind):
    """Pair (a, b) is number 19 a + b of 361 pairs, which 8 bits do not hold."""
    logits = np.random.default_rng(2).standard_normal((19, 19, 19))
    pairs = np.array([[0, 0], [18, 18], [14, 3], [7, 0]])
    expected = excluded_loss(logits, [2], examples=pairs)
    assert excluded_loss(logits, [2], examples=pairs.astype(kind)) == expected


# -- the lottery ------------------------------------------------------------------------------------------


def test_a_lottery_keeps_what_was_said_in_pythons_types():
    given = FourierLottery(np.int64(7), np.int8(2), np.float32(0.5), np.float64(0.25))
    kept = [given.tokens, given.neurons, given.coupling, given.scale]
    assert (kept, [type(one) for one in kept]) == ([7, 2, 0.5, 0.25], [int, int, float, float])
    assert FourierLottery(7).coupling is None
    assert json.loads(json.dumps(dict(describe(FourierLottery())))) == {
        "type": "FourierLottery", "tokens": 23, "neurons": 1, "coupling": None, "scale": 0.1,
    }  # fmt: skip
    single = given.unpack(given.start(np.random.default_rng(0)).astype(np.float32))
    assert [one.dtype for one in single] == [np.complex128] * 2


def test_weights_are_packed_for_as_many_neurons_as_there_are():
    race, waves = FourierLottery(5, neurons=2), np.ones((3, 2, 2))
    assert race.pack(waves, waves).shape == (3, 5, 4)
    for shape in ((3, 2), (1, 2), (2,)):
        sentence = said(lambda shape=shape: race.pack(np.ones(shape), np.ones(shape)))
        assert sentence == f"theta and xi must have the shape (..., 2, 2), got {shape}"
    for shape in ((2, 3), (2, 2, 1)):
        sentence = said(lambda shape=shape: race.pack(waves[0], np.ones(shape)))
        wanted = "theta and xi must have the same shape (..., 2) for 5 tokens, got (2, 2) and "
        assert sentence == f"{wanted}{shape}"
    for shape in ((5,), (4, 4), (5, 2)):
        sentence = said(lambda shape=shape: race.unpack(np.ones(shape)))
        assert sentence == f"positions must have the shape (..., 5, 4), got {shape}"


def test_the_first_to_diverge_is_named_with_all_its_places():
    future, past = np.full((2, 3, 4, 5), 9.0), np.full((2, 3, 4, 5), -8.0)
    future[1, 2, 3, 4], past[0, 1, 2, 3] = 2.0, -3.0
    where = "neuron 3 of run 1, 2 diverges at t* = 2 in frequency 5"
    assert first_divergence(np.array([0.0, 2.0]), future, past) == f"2: {where}"
    assert first_divergence(np.array([-9.0, 2.5]), future, past) == f"2.5: {where}", "the future comes first"
    assert first_divergence(np.array(-3.0), future, past) == (
        "-3: neuron 2 of run 0, 1 diverges at t* = -3 in frequency 4"
    )
    assert first_divergence(np.array([-2.9, 1.9]), future, past) == ""
    assert first_divergence(np.array([]), future, past) == ""
    assert first_divergence(np.array(5.0), future[1, 2, 3], past[1, 2, 3]).startswith(
        "5: the neuron diverges"
    )
    assert first_divergence(np.array(5.0), future[1, 2], past[1, 2]).startswith("5: neuron 3 diverges at")


# -- spectra of neurons -----------------------------------------------------------------------------------


def wave(p, terms):
    """A sum of waves α cos(2πka/p + φ), given as (k, α, φ)."""
    a = np.arange(p)
    return sum(size * np.cos(2 * np.pi * k * a / p + phase) for k, size, phase in terms)


def test_quantities_of_a_layer_are_their_definitions():
    neurons = [
        [(1, 2.0, 0.3)],
        [(1, 1.0, 0.1), (3, 1.0, -2.0)],
        [(1, 1.0, 0.0), (2, 1.0, 1.0), (3, 1.1, 2.0)],
        [(2, 1e-4, 0.0)],
    ]
    W = np.stack([wave(7, terms) for terms in neurons], axis=1) + 5.0
    found = neuron_spectrum(W, dead_below=1e-3)
    sizes = np.array([[2, 0, 0], [1, 0, 1], [1, 1, 1.1], [0, 1e-4, 0]])
    np.testing.assert_allclose(found.magnitude, sizes, atol=1e-14)
    assert found.frequency.tolist() == [1, found.frequency[1], 3, 0]
    assert found.kind.tolist() == ["single", "double", "many", "dead"]
    power = sizes[:3] ** 2
    purity = (power**2).sum(axis=1) / power.sum(axis=1) ** 2
    np.testing.assert_allclose(found.purity, [*purity, np.nan])
    differences = np.abs(sizes[:3, :, None] - sizes[:3, None]).sum(axis=(1, 2)) / (
        2 * 9 * sizes[:3].mean(axis=1)
    )
    np.testing.assert_allclose(found.gini, [*differences, np.nan], atol=1e-12)
    assert found.at_frequency(found.phase)[0] == pytest.approx(0.3)
    assert (found.hidden, found.tokens) == (4, 7)
    for name in ("output_magnitude", "output_phase", "misalignment"):
        assert said(lambda name=name: getattr(found, name)).endswith("output magnitudes or phases, got none")


def test_a_neuron_is_dead_by_its_inputs_or_its_outputs_at_the_limit():
    inputs = np.stack([wave(5, [(1, size, 0.0)]) for size in (4.0, 1.0, 1.0, 0.5)], axis=1)
    outputs = np.stack([wave(5, [(1, size, 0.0)]) for size in (1.0, 4.0, 0.5, 4.0)])
    assert neuron_spectrum(inputs, dead_below=0.125).dead.tolist() == [False, False, False, True]
    assert neuron_spectrum(inputs, outputs, dead_below=0.125).dead.tolist() == [False, False, True, True]
    assert neuron_spectrum(inputs, outputs, dead_below=0.1249).dead.tolist() == [False] * 4
    assert neuron_spectrum(0 * inputs, dead_below=0.0).dead.all()


def test_shares_at_the_limit_count_and_phases_are_in_one_turn():
    two = np.stack([wave(5, [(1, 3.0, np.pi), (2, 1.0, 0.0)]), wave(5, [(1, 1.0, -np.pi / 2)])], axis=1)
    found = neuron_spectrum(two, share=np.nextafter(0.9, 0))
    assert found.kind.tolist() == ["single", "single"]
    assert neuron_spectrum(two, share=0.91).kind.tolist() == ["double", "single"]
    np.testing.assert_allclose(found.at_frequency(found.phase), [np.pi, -np.pi / 2])
    assert (neuron_spectrum(-np.ones((4, 1)) * [[1], [-1], [1], [-1]]).phase[..., -1] == np.pi).all()


@pytest.mark.parametrize("both", [False, True])
def test_misalignment_is_of_the_phases_of_both_tokens(both):
    phases = np.array([[0.3, 1.1, 2.0], [-0.7, 2.9, 1.0]])
    outputs = np.stack([wave(8, [(k, 1e-80, psi)]) for k, psi in ((1, 0.2), (3, -1.0), (4, 0.0))])
    first, second = (
        np.stack([wave(8, [(k, 1e-150, phi)]) for k, phi in zip((1, 3, 4), row, strict=True)], axis=1)
        for row in phases
    )
    found = neuron_spectrum(first, outputs, second=second if both else None)
    turn = (phases.sum(axis=0) if both else 2 * phases[0]) - [0.2, -1.0, 0.0]
    wanted = np.angle(np.exp(1j * turn))
    np.testing.assert_allclose(found.misalignment, [wanted[0], wanted[1], np.nan], atol=1e-9)
    size = np.sqrt((1 + 1) / 2) * 1e-150
    np.testing.assert_allclose(found.magnitude[[0, 1], [0, 2]], size, rtol=1e-9)


@pytest.mark.parametrize("kind", [np.complex64, np.complex128])
def test_half_a_turn_is_positive_in_single_precision_too(kind):
    waves = np.array([[complex(-1.0, -0.0)], [complex(-1.0, 0.0)], [-1j]], kind)
    found = NeuronSpectrum(3, waves, xi=waves)
    half = np.angle(np.array(-1.0, kind))
    assert found.phase.dtype == half.dtype
    np.testing.assert_array_equal(found.phase[:, 0], [half, half, -half / 2])
    np.testing.assert_array_equal(found.output_phase, found.phase)


def test_a_neuron_that_reads_one_token_alone_has_the_phase_of_that_one():
    silent, read = np.zeros((7, 1)), wave(7, [(2, 3.0, 0.7)])[:, None]
    outputs = wave(7, [(2, 5.0, 0.2)])[None]
    for first, second in ((silent, read), (read, silent)):
        found = neuron_spectrum(first, outputs, second=second)
        assert (found.dead.tolist(), found.frequency.tolist(), found.kind.tolist()) == (
            [False],
            [2],
            ["single"],
        )
        np.testing.assert_allclose(found.misalignment, [0.5])
        np.testing.assert_allclose(found.magnitude, [[0, 3 / np.sqrt(2), 0]], atol=1e-14)
        np.testing.assert_allclose(found.output_magnitude, [[0, 5, 0]], atol=1e-14)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: neuron_spectrum(np.ones((5, 1)), second=np.full((5, 1), np.nan)),
            "second must be finite, got 5 NaN or infinite among 5 values",
        ),
        (
            lambda: neuron_spectrum(np.ones((5, 1)), np.full((1, 5), np.inf)),
            "W_out must be finite, got 5 NaN or infinite among 5 values",
        ),
        (
            lambda: neuron_spectrum(np.ones((5, 1)), np.ones(5)),
            "W_out must have the shape (..., hidden, tokens), got (5,)",
        ),
        (lambda: neuron_spectrum(np.ones((2, 4))), "W_in must hold at least 3 tokens, got the shape (2, 4)"),
        (lambda: neuron_spectrum(np.ones(5)), f"{WEIGHTS}, got (5,)"),
        (lambda: neuron_spectrum(np.ones((5, 0))), f"{WEIGHTS}, got (5, 0)"),
        (
            lambda: neuron_spectrum(np.full((5, 1), np.inf, np.float32)),
            "W_in must be finite, got 5 NaN or infinite among 5 values",
        ),
        (
            lambda: neuron_spectrum(np.ones((2, 5, 3)), np.ones((3, 5))),
            "W_out must have the shape (2, 3, 5) for this W_in, got (3, 5)",
        ),
    ],
)  # fmt: skip
def test_what_is_refused_of_weights(call, sentence):
    assert said(call) == sentence
