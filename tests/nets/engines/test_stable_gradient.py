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


def confident(dtype, gap):
    """Logits of four examples, each `gap` surer of the right class than of any other."""
    generator = np.random.default_rng(3)
    labels = np.array([0, 6, 3, 3], np.int32)
    logits = generator.uniform(-1, 1, (4, 7))
    logits[np.arange(4), labels] = 1 + gap
    return logits.astype(dtype), labels


@pytest.mark.parametrize("gradient", [by_kernel, by_autograd])
@pytest.mark.parametrize("gap", [-5.0, 0.0, 3.0, 17.0, 40.0])
@pytest.mark.parametrize(("dtype", "error"), [(np.float32, 3e-6), (np.float64, 1e-13)])
def test_all_entries_are_right_however_sure_a_network_is(gradient, gap, dtype, error):
    logits, labels = confident(dtype, gap)
    found, expected = gradient(True, logits, labels), exact(logits, labels)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected.astype(dtype), rtol=error)
    assert np.abs(found.sum(axis=1)).max() <= error * np.abs(found).max()


@pytest.mark.parametrize("gradient", [by_kernel, by_autograd])
def test_the_default_subtracts_one_as_pytorch_does_and_loses_the_digits(gradient):
    logits, labels = confident(np.float32, 17.0)
    found, expected = gradient(False, logits, labels), exact(logits, labels).astype(np.float32)
    own = np.arange(4), labels
    assert 1e-9 < -expected[own].max() < 1e-7
    assert (np.abs(found[own] / expected[own] - 1) > 0.01).any()
    found[own] = expected[own] = 0
    np.testing.assert_allclose(found, expected, rtol=3e-6)  # all others keep theirs


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


def test_engines_agree_in_single_precision():
    options = {"runs": 2, "steps": 20, "record": 20, "stable_gradient": True}
    fused, torched = (nets.train(MODELS["dense"], engine=one, **options) for one in ("fused", "torch"))
    np.testing.assert_allclose(fused.final, torched.final, atol=2e-4)


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
