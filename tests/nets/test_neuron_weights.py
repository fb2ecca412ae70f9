from types import SimpleNamespace

import numpy as np
import pytest
import torch

import nets
from analysis import (
    excluded_loss,
    logit_spectrum,
    neuron_ablation,
    neuron_spectrum,
    restricted_loss,
)
from nets import neurons
from physics import InputError, load

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


def test_a_diverged_member_has_no_neurons():
    with pytest.warns(RuntimeWarning, match="diverged"):
        trained = nets.train(
            nets.ConstantAttention(5, hidden=4),
            runs=2,
            steps=40,
            record=40,
            learning_rate=[0.01, 1e38],
            observables=("train_loss", *NAMES),
        )
    for name in NAMES:
        last = trained.observables[name][:, -1]
        assert np.isfinite(last[0]).all()
        assert np.isnan(last[1]).all()


def test_a_recorder_takes_them_from_analysis(tmp_path):
    E = torch.nn.Embedding(5, 4)
    with nets.Recorder(E.weight, tmp_path / "mine.h5") as recorder:
        for _ in range(3):
            with torch.no_grad():
                E.weight += 0.1
            spectrum = neuron_spectrum(E.weight.detach().numpy())
            recorder.step(neuron_frequency=spectrum.frequency, neuron_purity=spectrum.purity)
    stored = load(tmp_path / "mine.h5").observables
    assert stored["neuron_purity"].shape == (1, 4, 4)
    np.testing.assert_array_equal(stored["neuron_frequency"][0, -1], spectrum.frequency)


@pytest.mark.parametrize("name", NAMES)
def test_models_that_do_not_add_have_none(name):
    with pytest.raises(
        InputError, match=f"observables must not name '{name}', which ToyAddition does not have"
    ):
        nets.train(nets.ToyAddition(), steps=1, observables=(name,))


def test_bad_input():
    toy = nets.networks(nets.train(nets.ToyAddition(), steps=1, observables=("layers",)))
    with pytest.raises(InputError, match="model must add two embeddings, or concatenate them"):
        toy.neuron_weights()
    with pytest.raises(InputError, match="model must learn addition modulo its tokens"):
        toy.logits()
    with pytest.raises(InputError, match="inputs must be tokens from 0 to 9"):
        toy.activations([[0, 10]])
    transformer = nets.TokenTransformer(5, 4, depth=1, width=4)
    with pytest.raises(
        InputError, match="must not name 'neuron_purity', which TokenTransformer does not have"
    ):
        nets.train(transformer, steps=1, observables=("neuron_purity",))
    heard = nets.train(transformer, steps=1, observables=("restricted_loss", "layers"))
    assert np.isfinite(heard.observables["restricted_loss"]).all()
    with pytest.raises(InputError, match="activations needs a model of dense layers"):
        nets.networks(heard).activations()


@pytest.mark.parametrize("rates", [[1e3, 1e3], [1e3, 1e-2]])
def test_neurons_of_a_network_that_diverges_are_nan_and_others_stay(rates):
    """At every step, also where weights are numbers still and logits none."""
    options = {"steps": 8, "record": 1, "optimizer": "sgd", "weight_decay": 0.0, "observables": NAMES}
    model = nets.TwoLayer(5, 6, "quadratic")
    with pytest.warns(RuntimeWarning, match="diverged"):
        found = nets.train(model, runs=2, learning_rate=rates, **options)
    for name in NAMES:
        gone = np.isnan(found.observables[name][0]).reshape(9, -1).all(axis=1)
        assert not gone[0]
        assert gone[-1]
        assert (np.diff(gone.astype(int)) >= 0).all()
    if rates[1] < 1:
        alone = nets.train(model, run_numbers=[1], learning_rate=rates[1], **options)
        for name in NAMES:
            np.testing.assert_allclose(found.observables[name][1], alone.observables[name][0], rtol=1e-9)


@pytest.mark.parametrize(
    ("loss", "modulus", "classes", "adds"),
    [
        ("cross_entropy", 7, 7, True),
        ("mse", 7, 7, False),
        ("cross_entropy", 6, 7, False),
        ("cross_entropy", 7, 8, False),
    ],
)
def test_a_network_adds_if_it_has_a_logit_for_each_sum(loss, modulus, classes, adds):
    theory, task = SimpleNamespace(modulus=modulus), SimpleNamespace(classes=classes)
    assert neurons.adds(SimpleNamespace(loss=loss, tokens=7, theory=theory, task=task)) is adds
