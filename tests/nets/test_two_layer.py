"""The two-layer network in both engines, against a plain PyTorch loop that is written here."""

import functools

import numpy as np
import pytest
import torch

import nets
from nets.engines.ensemble import batches, draw

ACTIVATIONS = {
    "relu": torch.relu,
    "quadratic": torch.square,
    "silu": torch.nn.functional.silu,
    "tanh": torch.tanh,
    "abs": torch.abs,
}
STEPS = 20
RATES = {"learning_rate": [0.01, 0.003], "weight_decay": [0.0, 0.4]}
OBSERVED = ("train_loss", "train_accuracy", "validation_loss", "validation_accuracy", "layers")


@functools.cache
def plain_training(model, *, run, optimizer, fraction, batch_size):
    """Weights into and out of the neurons at each step, and losses and accuracies on both sets."""
    ensemble = draw(model, runs=run + 1, seed=7, train_fraction=fraction)
    into, out = (
        torch.tensor(ensemble.parameters[name][run], requires_grad=True)
        for name in ("embedding", "output.weight")
    )
    kind = {"adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}[optimizer]
    stepper = kind([into, out], lr=RATES["learning_rate"][run], weight_decay=RATES["weight_decay"][run])
    a, b = torch.tensor(model.task.inputs).T
    labels = (a + b) % model.tokens
    order = batches(ensemble, batch_size, 0, STEPS)

    def logits(index):
        return ACTIVATIONS[model.activation](into[a[index]] + into[b[index]]) @ out

    frames, measured = [], []
    for step in range(STEPS + 1):
        frames.append((into.detach().numpy().copy(), out.detach().numpy().copy()))
        with torch.no_grad():
            for part in (ensemble.train[run], ensemble.validation[run]):
                found = logits(part)
                loss = torch.nn.functional.cross_entropy(found, labels[part]) if len(part) else np.nan
                measured.append((float(loss), float((found.argmax(1) == labels[part]).double().mean())))
        index = ensemble.train[run]
        if step < STEPS:
            index = index if order is None else index[order[run, step]]
            stepper.zero_grad()
            torch.nn.functional.cross_entropy(logits(index), labels[index]).backward()
            stepper.step()
    return [np.stack(part) for part in zip(*frames, strict=True)], np.array(measured).reshape(-1, 2, 2)


@pytest.mark.parametrize("engine", ["fused", "torch"])
@pytest.mark.parametrize(("fraction", "batch_size"), [(1.0, None), (0.6, None), (0.6, 11)])
@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_member_is_trained_as_a_plain_loop_would(activation, optimizer, fraction, batch_size, engine):
    model = nets.TwoLayer(9, 21, activation, scale=1.0)
    found = nets.train(
        model,
        runs=2,
        steps=STEPS,
        seed=7,
        record=1,
        engine=engine,
        dtype="float64",
        optimizer=optimizer,
        train_fraction=fraction,
        batch_size=batch_size,
        observables=OBSERVED,
        device="cpu",
        **RATES,
    )
    for run in range(2):
        (into, out), measured = plain_training(
            model, run=run, optimizer=optimizer, fraction=fraction, batch_size=batch_size
        )
        assert np.abs(found.positions[run] - into).max() <= 1e-12
        assert np.abs(found.observables["layers.output.weight"][run] - out).max() <= 1e-12
        assert np.abs(into[-1] - into[0]).max() > 1e-3
        for column, part in enumerate(("train", "validation")):
            for row, name in enumerate(("loss", "accuracy")):
                np.testing.assert_allclose(
                    found.observables[f"{part}_{name}"][run], measured[:, column, row], rtol=0, atol=1e-12
                )
    assert np.isnan(found.observables["validation_loss"]).all() == (fraction == 1)


@pytest.mark.parametrize(
    ("hidden", "tokens"), [(1, 14), (7, 14), (700, 14), (65, 3), (100, 18), (48, 23), (70, 30)]
)
def test_any_number_of_neurons_and_tokens(hidden, tokens):
    """Chunks and outputs are filled up to whole vectors, one to eight of them; a modulus may be even."""
    model = nets.TwoLayer(tokens, hidden, "quadratic", scale=0.5)
    engines = [
        nets.train(
            model,
            steps=6,
            record=6,
            engine=engine,
            dtype="float64",
            train_fraction=1.0,
            weight_decay=0.1,
            observables=("train_loss", "gradient"),
        )
        for engine in ("fused", "torch")
    ]
    np.testing.assert_allclose(engines[0].positions, engines[1].positions, rtol=0, atol=1e-12)
    for name, values in engines[0].observables.items():
        np.testing.assert_allclose(values, engines[1].observables[name], rtol=0, atol=1e-12)


def test_random_starts_are_normal_of_the_scale():
    model = nets.TwoLayer(23, 512, scale=0.3)
    start = model.initial(np.random.default_rng(0), np.random.default_rng(1))
    for name, shape in (("embedding", (23, 512)), ("output.weight", (512, 23))):
        values = start[name]
        assert values.shape == shape
        assert values.std() == pytest.approx(0.3 / 23**0.5, rel=0.03)
        assert abs(values.mean()) < 0.002
    assert not np.array_equal(start["embedding"], start["output.weight"].T)


def test_a_start_of_a_single_frequency_is_a_wave_in_both_layers():
    p, hidden = 11, 42
    model = nets.TwoLayer(p, hidden, start="single_frequency", scale=0.02)
    start = model.initial(np.random.default_rng(0), np.random.default_rng(1))
    spectra = [np.fft.rfft(part, axis=0) for part in (start["embedding"], start["output.weight"].T)]
    frequencies = [np.abs(spectrum).argmax(axis=0) for spectrum in spectra]
    np.testing.assert_array_equal(*frequencies)
    counts = np.bincount(frequencies[0], minlength=6)
    assert counts[0] == 0
    assert set(counts[1:]) == {8, 9}  # 42 neurons over 5 frequencies
    for spectrum in spectra:
        magnitude = np.abs(spectrum) * 2 / p
        np.testing.assert_allclose(magnitude.max(axis=0), 0.02, rtol=1e-12)
        np.testing.assert_allclose(magnitude.sum(axis=0), 0.02, rtol=1e-11)
    phases = np.angle([spectrum[frequencies[0], np.arange(hidden)] for spectrum in spectra])
    assert np.abs(np.corrcoef(phases)[0, 1]) < 0.5


def test_the_quadratic_flow_keeps_a_single_frequency_at_small_weights():
    """Their Theorem: without decay the energy of a neuron stays at the frequency with which it began."""
    model = nets.TwoLayer(11, 30, "quadratic", start="single_frequency", scale=0.02)
    trained = nets.train(
        model,
        steps=400,
        record=400,
        optimizer="sgd",
        learning_rate=0.5,
        weight_decay=0.0,
        train_fraction=1.0,
        dtype="float64",
    )
    before, after = np.abs(np.fft.rfft(trained.positions[0], axis=1))
    assert np.abs(trained.final - trained.initial).max() > 0.002
    held = after[before.argmax(axis=0), np.arange(30)] ** 2 / (after**2).sum(axis=0)
    assert held.min() > 0.99
