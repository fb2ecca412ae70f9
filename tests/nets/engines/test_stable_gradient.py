"""The gradient of the cross-entropy without cancellation, in both engines, against exact arithmetic."""

import numpy as np
import pytest
import torch

import nets
from nets.engines import activations, losses
from nets.engines.choice import choose_engine, optimizer_of
from nets.engines.ensemble import batches, draw
from nets.engines.torch import cross_entropy, stable_cross_entropy
from physics import InputError
from physics.jit import address_of

MODELS = {
    "dense": nets.EmbeddingMLP(14, 3, (8,)),
    "neurons": nets.TwoLayer(15, 9),
    "squares": nets.ToyAddition(8, 2, (9,), 4),
}


def by_kernel(stable, logits, labels):
    kernel = losses.stable_cross_entropy_gradient if stable else losses.cross_entropy_gradient
    out, batch = np.empty_like(logits), np.empty(0, np.int32)
    exp = address_of(activations.exponential, out[0])
    kernel(logits, labels, logits, batch, 0, len(logits), exp, out)
    return out


def by_autograd(stable, logits, labels):
    outputs = torch.tensor(logits[None], requires_grad=True)
    loss = (stable_cross_entropy if stable else cross_entropy)(outputs, torch.tensor(labels[None]).long())
    loss.mean().backward()
    return outputs.grad[0].numpy()


def exact(logits, labels):
    wide = logits.astype(np.longdouble)
    powers = np.exp(wide - wide.max(axis=1, keepdims=True))
    powers /= powers.sum(axis=1, keepdims=True)
    rows = np.arange(len(labels))
    powers[rows, labels] = 0
    powers[rows, labels] = -powers.sum(axis=1)
    return powers / len(labels)


def confident(dtype, gap, classes=7, offset=0.0):
    """Logits of four examples, each `gap` surer of the right class than of any other."""
    generator = np.random.default_rng(3)
    labels = np.array([0, 6, 3, 3], np.int32) % classes
    logits = generator.uniform(-1, 1, (4, classes))
    logits[np.arange(4), labels] = 1 + gap
    return (logits + offset).astype(dtype), labels


@pytest.mark.parametrize("gradient", [by_kernel, by_autograd])
@pytest.mark.parametrize("gap", [-60.0, -25.0, -20.5, -5.0, 0.0, 3.0, 17.0, 40.0])
@pytest.mark.parametrize(("dtype", "error"), [(np.float32, 4e-6), (np.float64, 1e-13)])
def test_all_entries_keep_their_digits_however_sure_a_network_is(gradient, gap, dtype, error):
    logits, labels = confident(dtype, gap)
    found, expected = gradient(True, logits, labels), exact(logits, labels)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected.astype(dtype), rtol=error)
    assert np.abs(found.sum(axis=1)).max() <= error * np.abs(found).max()


@pytest.mark.parametrize("gradient", [by_kernel, by_autograd])
@pytest.mark.parametrize("offset", [-1e4, -100.0, 100.0, 1e4])
def test_a_constant_that_is_added_to_all_logits_changes_nothing(gradient, offset):
    logits, labels = confident(np.float32, 7.0, offset=offset)
    np.testing.assert_allclose(gradient(True, logits, labels), exact(logits, labels), rtol=4e-6)


@pytest.mark.parametrize("gradient", [by_kernel, by_autograd])
@pytest.mark.parametrize("classes", [1, 2])
def test_few_classes(gradient, classes):
    logits, labels = confident(np.float32, 17.0, classes)
    np.testing.assert_allclose(gradient(True, logits, labels), exact(logits, labels), rtol=4e-6)


def test_examples_of_a_batch_and_of_a_later_block_are_those_of_their_labels():
    logits, labels = confident(np.float32, 17.0)
    expected = exact(logits, labels)
    exp = address_of(activations.exponential, logits[0])
    all_, batch = np.empty(0, np.int32), np.array([9, 5, 2, 0, 3, 1], np.int32)
    given = np.full(10, 5, np.int32)
    for chosen, places in ((all_, np.arange(2, 6)), (batch, batch[2:])):
        own, out = given.copy(), np.empty_like(logits)
        own[places] = labels
        losses.stable_cross_entropy_gradient(logits, own, logits, chosen, 2, 4, exp, out)
        np.testing.assert_allclose(out, expected.astype(np.float32), rtol=4e-6)


@pytest.mark.parametrize("gradient", [by_kernel, by_autograd])
def test_the_default_subtracts_one_as_pytorch_does_and_loses_the_digits(gradient):
    logits, labels = confident(np.float32, 17.0)
    found, expected = gradient(False, logits, labels), exact(logits, labels).astype(np.float32)
    own = np.arange(4), labels
    assert 1e-9 < -expected[own].max() < 1e-7
    assert (np.abs(found[own] / expected[own] - 1) > 0.01).any()
    found[own] = expected[own] = 0
    np.testing.assert_allclose(found, expected, rtol=4e-6)  # all others keep theirs


@pytest.mark.parametrize("logits", [[[np.inf, 0.0]], [[-np.inf, 0.0]], [[np.nan, 0.0]]])
def test_a_network_that_overflows_is_seen_by_its_loss(logits):
    outputs, labels = torch.tensor([logits]), torch.zeros((1, 1), dtype=torch.long)
    assert not torch.isfinite(cross_entropy(outputs, labels)).any()  # what an engine states


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("engine", ["fused", "torch"])
def test_in_double_precision_both_gradients_train_alike(name, engine):
    ensemble = draw(MODELS[name], runs=2, seed=1)
    settings = optimizer_of(2, 0.01, 0.1, None, None, (0.9, 0.999), 1e-8)
    stable, usual = (
        choose_engine(engine, ensemble, settings, "float64", "cpu", None, stable_gradient=one)
        for one in (True, False)
    )
    for machine in (stable, usual):
        machine.advance(0, 3, None)
        machine.advance(3, 3, batches(ensemble, 9, 3, 3))
    for parameter, value in usual.parameters().items():
        np.testing.assert_allclose(stable.parameters()[parameter], value, rtol=0, atol=1e-11)
        changed = not np.array_equal(stable.parameters()[parameter], value)
        assert changed == (name != "squares")  # a squared error has one gradient only
    np.testing.assert_allclose(stable.losses("validation")[0], usual.losses("validation")[0], rtol=1e-9)


SETTINGS = optimizer_of(2, 0.01, 0.0, None, None, (0.9, 0.999), 1e-8)


@pytest.fixture(scope="module")
def sure():
    """Two networks whose loss is about 1e-7."""
    model = nets.EmbeddingMLP(11, 8, (32,))
    options = {"runs": 2, "steps": 600, "record": 600, "weight_decay": 0.0, "dtype": "float64"}
    trained = nets.networks(nets.train(model, observables=("layers",), **options))
    scaled = {"output.weight": 2.0, "output.bias": 2.0}
    initial = {name: value * scaled.get(name, 1.0) for name, value in trained.parameters.items()}
    return draw(model, runs=2, seed=0, initial=initial)


@pytest.mark.parametrize("engine", ["fused", "torch"])
def test_late_gradients_are_those_of_double_precision_only_without_the_subtraction(sure, engine):
    double = choose_engine("fused", sure, SETTINGS, "float64", "cpu", None)
    assert ((double.losses("train")[0] > 1e-9) & (double.losses("train")[0] < 1e-6)).all()
    errors = []
    for stable in (True, False):
        single = choose_engine(engine, sure, SETTINGS, "float32", "cpu", None, stable_gradient=stable)
        found = {name: (single.gradient(name), double.gradient(name)) for name in sure.parameters}
        errors.append(max(np.abs(one - other).max() / np.abs(other).max() for one, other in found.values()))
    assert errors[0] < 1e-3
    assert errors[1] > 0.05


def test_losses_are_stated_alike(sure):
    stable, usual = (
        choose_engine("torch", sure, SETTINGS, "float32", "cpu", None, stable_gradient=one)
        for one in (True, False)
    )
    np.testing.assert_array_equal(stable.losses("train"), usual.losses("train"))


def test_a_file_says_which_gradient_it_was_and_is_not_resumed_with_the_other(tmp_path):
    def stops(step, *_):
        if step == 4:
            raise StopIteration

    options = {"steps": 6, "record": 2, "out": tmp_path / "t.h5"}
    assert nets.train(MODELS["dense"], steps=1).parameters["stable_gradient"] is False
    nets.train(MODELS["dense"], **options, stable_gradient=True, callback=stops)
    with pytest.raises(InputError, match="stable_gradient"):
        nets.train(MODELS["dense"], **options, resume=True)


@pytest.mark.parametrize("train", [nets.train, nets.Training])
def test_it_is_true_or_false(train):
    with pytest.raises(InputError, match="stable_gradient must be True or False, got 'yes'"):
        train(MODELS["dense"], stable_gradient="yes")
