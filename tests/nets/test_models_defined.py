"""The models by their formulas in NumPy: what they draw, in which order, and what they answer."""

import numpy as np
import pytest
import torch

import nets
import physics
from physics import InputError


def activated(name, x, even=0.0):
    own = {
        "relu": np.maximum(x, 0), "tanh": np.tanh(x), "asinh": np.arcsinh(x), "silu": x / (1 + np.exp(-x)),
        "quadratic": x**2, "abs": np.abs(x),
    }[name]  # fmt: skip
    return own + even * (x / 2) * np.tanh(x / 2)


def layers(parameters, x, names, activation, even=0.0):
    """Dense layers with an activation after each but the last."""
    for k, name in enumerate(names):
        x = x @ parameters[f"{name}.weight"] + parameters.get(f"{name}.bias", 0.0)
        x = x if k == len(names) - 1 else activated(activation, x, even)
    return x


def added(E, a, b):
    return E[a] + E[b]


def beside(E, a, b):
    return np.hstack([E[a], E[b]])


def product(E, a, b):
    side = round(E.shape[1] ** 0.5)
    matrices = E.reshape(-1, side, side)
    return (matrices[a] @ matrices[b]).reshape(len(a), -1)


S3 = physics.symmetric(3)
MODELS = {
    "ConstantAttention": (nets.ConstantAttention(5, 3, 4), added, "relu"),
    "silu": (nets.EmbeddingMLP(5, 3, (4, 6)), beside, "silu"),
    "asinh": (nets.EmbeddingMLP(5, 3, (4,), activation="asinh", even=0.7), beside, "asinh"),
    "ToyAddition": (nets.ToyAddition(5, 2, (4, 6), outputs_dim=7), added, "tanh"),
    "classified": (nets.ToyAddition(5, 2, (4,), kind="classification"), added, "tanh"),
    "GroupDecoder": (nets.GroupDecoder(S3, side=2, hidden=(4,), outputs_dim=7), product, "tanh"),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_decoder_answers_as_its_formula_says(name):
    model, combined, activation = MODELS[name]
    parameters = model.initial(np.random.default_rng(1), np.random.default_rng(2))
    names = [key.removesuffix(".weight") for key in parameters if key.endswith(".weight")]
    a, b = model.task.inputs.T
    expected = layers(
        parameters, combined(parameters["embedding"], a, b), names, activation, getattr(model, "even", 0.0)
    )
    tensors = {key: torch.as_tensor(value)[None] for key, value in parameters.items()}
    found = model.outputs(tensors, torch.as_tensor(model.task.inputs)[None])[0].numpy()
    np.testing.assert_allclose(found, expected, atol=1e-12)
    outputs = (
        getattr(model, "outputs_dim", None) if model.loss == "mean_squared_error" else model.task.classes
    )
    assert found.shape == (len(model.task), outputs)
    if model.loss == "mean_squared_error":
        targets = model.targets(np.random.default_rng(3))
        drawn = np.random.default_rng(3).standard_normal((model.task.classes, outputs))
        np.testing.assert_array_equal(targets, drawn)


@pytest.mark.parametrize(
    "rule", ["pytorch", "kaiming_uniform", "kaiming_normal", "xavier_uniform", "xavier_normal"]
)
def test_layers_are_drawn_one_after_the_other_weights_first(rule):
    model = nets.EmbeddingMLP(5, 3, (4, 7), initialisation=rule)
    found = model.initial(np.random.default_rng(1), np.random.default_rng(2))
    np.testing.assert_array_equal(found["embedding"], np.random.default_rng(1).standard_normal((5, 3)))
    own = np.random.default_rng(2)
    for name, (m, n) in zip(("hidden1", "hidden2", "output"), ((6, 4), (4, 7), (7, 5)), strict=True):
        spread = 2 / m if rule.startswith("kaiming") else 2 / (m + n)
        if rule == "pytorch":
            weight = own.uniform(-1 / m**0.5, 1 / m**0.5, (m, n))
            bias = own.uniform(-1 / m**0.5, 1 / m**0.5, (1, n))
        else:
            bias = np.zeros((1, n))
            uniform = rule.endswith("uniform")
            bound = (3 * spread) ** 0.5
            weight = own.uniform(-bound, bound, (m, n)) if uniform else own.normal(0, spread**0.5, (m, n))
        np.testing.assert_allclose(found[f"{name}.weight"], weight, rtol=1e-12)
        np.testing.assert_allclose(found[f"{name}.bias"], bias, rtol=1e-12)
    assert list(found) == [
        "embedding", "hidden1.weight", "hidden1.bias", "hidden2.weight", "hidden2.bias", "output.weight",
        "output.bias",
    ]  # fmt: skip


def test_embeddings_of_liu_fill_an_interval():
    for model, shape in (
        (nets.ToyAddition(6, 2, scale=0.5), (6, 2)),
        (nets.GroupDecoder(scale=0.25), (6, 9)),
    ):
        expected = np.random.default_rng(1).uniform(-model.scale / 2, model.scale / 2, shape)
        found = model.initial(np.random.default_rng(1), np.random.default_rng(2))["embedding"]
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("activation", ["relu", "quadratic", "silu", "tanh", "abs"])
def test_two_layers_add_the_weights_of_both_tokens(activation):
    model = nets.TwoLayer(5, 6, activation)
    found = model.initial(np.random.default_rng(1), np.random.default_rng(2))
    deviation = 0.1 / 5**0.5
    np.testing.assert_allclose(found["embedding"], np.random.default_rng(1).normal(0, deviation, (5, 6)))
    np.testing.assert_allclose(found["output.weight"], np.random.default_rng(2).normal(0, deviation, (6, 5)))
    a, b = model.task.inputs.T
    expected = activated(activation, found["embedding"][a] + found["embedding"][b]) @ found["output.weight"]
    tensors = {key: torch.as_tensor(value)[None] for key, value in found.items()}
    answered = model.outputs(tensors, torch.as_tensor(model.task.inputs)[None])[0].numpy()
    np.testing.assert_allclose(answered, expected, atol=1e-15)


def test_neurons_may_start_with_one_frequency_each():
    model = nets.TwoLayer(7, 8, start="single_frequency", scale=0.5)
    found = model.initial(np.random.default_rng(1), np.random.default_rng(2))
    rng = np.random.default_rng(1)
    frequencies = rng.permutation([1, 2, 3, 1, 2, 3, 1, 2])
    for name, generator in (("embedding", rng), ("output.weight", np.random.default_rng(2))):
        phases = generator.uniform(-np.pi, np.pi, 8)
        waves = 0.5 * np.cos(2 * np.pi * np.outer(np.arange(7), frequencies) / 7 + phases)
        np.testing.assert_allclose(found[name] if name == "embedding" else found[name].T, waves, atol=1e-12)
    for tokens in (3, 8):
        with pytest.raises(InputError, match="tokens must be odd and at least 5"):
            nets.TwoLayer(tokens, start="single_frequency")
    assert nets.TwoLayer(5, start="single_frequency").tokens == 5
