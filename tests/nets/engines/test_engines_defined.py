"""What both engines do at the edges of numbers and of memory, from its definition."""

import numpy as np
import pytest
import torch

import nets
from nets.engines import functions
from nets.engines.choice import choose_engine, optimizer_of
from nets.engines.ensemble import draw

MODELS = {
    "logits": nets.ToyAddition(8, 1, (30, 20), kind="classification"),
    "targets": nets.ToyAddition(8, 2, (30, 20), 12),
}


@pytest.mark.parametrize("lost", ["every parameter is NaN", "one bias is infinite"])
@pytest.mark.parametrize("engine", ["fused", "torch"])
@pytest.mark.parametrize("name", MODELS)
def test_outputs_that_are_not_finite_answer_nothing(name, engine, lost):
    model = MODELS[name]
    ensemble = draw(model, runs=2, seed=1)
    settings = optimizer_of(2, 0.01, 0.0, None, None, (0.9, 0.999), 1e-8)
    machine = choose_engine(engine, ensemble, settings, "float64", "cpu", None)
    before = [machine.losses(part) for part in ("train", "validation")]
    state = machine.state()
    bias = "parameters/output.bias"
    for key, value in state.items():
        if lost.startswith("every") and key.startswith("parameters"):
            value[1] = np.nan
        elif lost.startswith("one") and key in ("parameters", bias):
            value[1].reshape(-1)[-1] = np.inf  # the last number of a row is the bias of the last output
    machine.restore(state)
    for part, (loss, accuracy) in zip(("train", "validation"), before, strict=True):
        assert (model.task.labels[getattr(ensemble, part)[1]] == 0).any() or part == "validation"
        found, share = machine.losses(part)
        assert not np.isfinite(found[1])
        assert share[1] == 0.0
        assert (found[0], share[0]) == (loss[0], accuracy[0])


@pytest.mark.parametrize("engine", ["fused", "torch"])
def test_gradient_descent_shrinks_by_rate_times_decay_and_follows_the_gradient(engine):
    """Encoder and decoder, and every member, with rates of their own; there are no moments."""
    model = MODELS["logits"]
    ensemble = draw(model, runs=2, seed=1)
    settings = optimizer_of(2, [0.1, 0.2], [0.5, 0.0], 0.3, [2.0, 0.25], (0.9, 0.999), 1e-8, "sgd")
    machine = choose_engine(engine, ensemble, settings, "float64", "cpu", None)
    expected = machine.parameters()
    for step in range(2):
        for name, values in expected.items():
            shape = (2, *[1] * (values.ndim - 1))
            rate = np.reshape([0.3, 0.3] if name == "embedding" else [0.1, 0.2], shape)
            decay = np.reshape([2.0, 0.25] if name == "embedding" else [0.5, 0.0], shape)
            expected[name] = (1 - rate * decay) * values - rate * machine.gradient(name)
        machine.advance(step, 1, None)
        for name, found in machine.parameters().items():
            np.testing.assert_allclose(found, expected[name], rtol=0, atol=1e-14)
    moments = [value for name, value in machine.state().items() if not name.startswith("parameters")]
    assert moments
    assert not any(value.any() for value in moments)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["relu", "silu", "tanh", "asinh", "quadratic", "abs"])
def test_at_zero_an_activation_has_the_value_and_the_slope_of_pytorch(name, dtype):
    states, slopes = np.array([0.0, -0.0, 1.5, -1.5], dtype), np.empty(4, dtype)
    points = torch.tensor(states, requires_grad=True)
    theirs = {"silu": torch.nn.functional.silu, "quadratic": torch.square}
    expected = theirs.get(name, getattr(torch, name, None))(points)
    expected.sum().backward()
    functions.ACTIVATIONS[name](0.0, states, slopes)
    np.testing.assert_allclose(states, expected.detach().numpy(), rtol=4 * np.finfo(dtype).eps)
    np.testing.assert_allclose(slopes, points.grad.numpy(), rtol=4 * np.finfo(dtype).eps)
