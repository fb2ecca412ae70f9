import numpy as np
import pytest
import torch

import nets
from analysis import excluded_loss, logit_spectrum, neuron_ablation, neuron_spectrum, restricted_loss

NAMES = ("neuron_frequency", "neuron_purity", "restricted_loss", "excluded_loss")


@pytest.fixture(scope="module", params=["sum", "concatenate"])
def trained(request):
    if request.param == "sum":
        model = nets.ConstantAttention(7, hidden=12)
    else:
        model = nets.EmbeddingMLP(7, 5, hidden=(9, 8))
    return nets.train(
        model,
        runs=3,
        steps=60,
        record=30,
        seed=1,
        observables=("train_loss", "layers", *NAMES),
        dtype="float64",
    )


def test_effective_weights_are_what_neurons_receive(trained):
    networks = nets.networks(trained)
    weights = networks.neuron_weights()
    layer = networks.parameters["hidden1.weight"], networks.parameters["hidden1.bias"]
    E, dim = networks.parameters["embedding"], networks.model.dim
    for run in range(3):
        for a, b in ((0, 3), (6, 2)):
            if "second" in weights:
                pair = np.concatenate([E[run, a], E[run, b]])
                received = weights["W_in"][run, a] + weights["second"][run, b]
            else:
                pair = E[run, a] + E[run, b]
                received = weights["W_in"][run, a] + weights["W_in"][run, b]
            np.testing.assert_allclose(received, pair @ layer[0][run], rtol=1e-12)
    assert ("second" in weights) == (len(layer[0][0]) == 2 * dim) == ("W_out" not in weights)


def test_logits_and_activations_belong_together(trained):
    networks = nets.networks(trained)
    logits, p = networks.logits(), 7
    assert logits.shape == (3, p, p, p)
    inputs = networks.model.task.inputs
    found = logits[:, inputs[:, 0], inputs[:, 1]]
    np.testing.assert_allclose(found, networks.outputs(), rtol=1e-12)
    states, out = networks.activations(), networks.parameters["output.weight"]
    np.testing.assert_allclose(states @ out + networks.parameters["output.bias"], found, rtol=1e-12)
    answered = networks.activations([[6, 2], [0, 3]]) @ out + networks.parameters["output.bias"]
    np.testing.assert_allclose(answered, logits[:, [6, 0], [2, 3]], rtol=1e-12)
    every = np.zeros((1, states.shape[2]), bool)
    labels = networks.model.task.labels
    losses = neuron_ablation(states, out, labels, bias=networks.parameters["output.bias"], groups=every)
    wanted = [
        torch.nn.functional.cross_entropy(torch.as_tensor(one), torch.as_tensor(labels)).item()
        for one in found
    ]
    np.testing.assert_allclose(losses[:, 0], wanted, rtol=1e-12)


def test_observables_are_what_analysis_says(trained):
    for frame in range(3):
        networks = nets.networks(trained, frame)
        weights = networks.neuron_weights()
        spectrum = neuron_spectrum(weights["W_in"], weights.get("W_out"), second=weights.get("second"))
        logits = networks.logits()
        keys = logit_spectrum(logits).key_frequencies()
        seen = networks.model.task.inputs[networks.examples("train")]
        wanted = {
            "neuron_frequency": spectrum.frequency,
            "neuron_purity": spectrum.purity,
            "restricted_loss": restricted_loss(logits, keys),
            "excluded_loss": excluded_loss(logits, keys, examples=seen),
        }
        for name, value in wanted.items():
            np.testing.assert_allclose(trained.observables[name][:, frame], value, rtol=1e-9)
