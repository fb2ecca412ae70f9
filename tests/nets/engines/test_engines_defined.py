"""What both engines do at the edges of numbers and of memory, from its definition."""

import types

import numpy as np
import pytest
import torch

import nets
from nets.engines import activations
from nets.engines.choice import choose_engine, optimizer_of
from nets.engines.ensemble import batches, draw
from nets.engines.torch import BatchedEngine
from physics import InputError
from physics.jit import address_of

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


TOGETHER = {
    "batches": MODELS["targets"],
    "dropout": nets.TokenTransformer(5, 4, width=3, dropout=0.3),
    "data": nets.ImageMLP(hidden=(4,)),
}


@pytest.mark.parametrize("kind", TOGETHER)
def test_whoever_is_computed_together_each_has_its_own_batches_and_dropout(kind):
    """Two at a time, or beside one that has ended, a member trains as it does among all five."""
    ensemble = draw(TOGETHER[kind], runs=5, seed=1, train_fraction=0.6 if kind != "data" else 0.01)
    settings = optimizer_of(5, 0.01, 0.1, None, None, (0.9, 0.999), 1e-8)
    chosen = None if kind == "dropout" else batches(ensemble, 3, 0, 2)
    whole, in_chunks, without = (
        choose_engine("torch", ensemble, settings, "float64", "cpu", chunk) for chunk in (5, 2, 2)
    )
    without.stop(np.arange(5) == 1)
    for machine in (whole, in_chunks, without):
        machine.advance(0, 2, chosen)
    others = [0, 2, 3, 4]
    # The bias of keys has no gradient but rounding, which the optimizer divides by its ε = 1e-8.
    bound = {"rtol": 0, "atol": 0.01 / 1e-8 * np.finfo(float).eps}
    for name, values in whole.parameters().items():
        np.testing.assert_allclose(in_chunks.parameters()[name], values, **bound)
        np.testing.assert_allclose(without.parameters()[name][others], values[others], **bound)
        np.testing.assert_array_equal(without.parameters()[name][1], ensemble.parameters[name][1])
    np.testing.assert_allclose(in_chunks.point_sets(), whole.point_sets(), rtol=0, atol=1e-12)
    for part in ("train", "validation"):
        for found, values in zip(in_chunks.losses(part), whole.losses(part), strict=True):
            np.testing.assert_allclose(found, values, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["relu", "silu", "tanh", "asinh", "quadratic", "abs"])
def test_at_zero_an_activation_has_the_value_and_the_slope_of_pytorch(name, dtype):
    states, slopes = np.array([0.0, -0.0, 1.5, -1.5], dtype), np.empty(4, dtype)
    points = torch.tensor(states, requires_grad=True)
    functions = {"silu": torch.nn.functional.silu, "quadratic": torch.square}
    expected = functions.get(name, getattr(torch, name, None))(points)
    expected.sum().backward()
    activations.ACTIVATION[name](states, slopes, address_of(activations.exponential, states))
    np.testing.assert_allclose(states, expected.detach().numpy(), rtol=4 * np.finfo(dtype).eps)
    np.testing.assert_allclose(slopes, points.grad.numpy(), rtol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize(("free", "chunk"), [(2.0, 1), (3.9, 1), (4.0, 2), (100.0, 5)])
def test_a_device_computes_as_many_members_as_fit_into_half_of_its_free_memory(monkeypatch, free, chunk):
    """One member of 3 · 7 numbers for each of 11 examples, in float32, takes 924 bytes."""
    asked = []
    monkeypatch.setattr("nets.engines.torch._free_bytes", lambda device: asked.append(device) or 924 * free)
    machine = types.SimpleNamespace(
        device=torch.device("cuda:1"),
        _ensemble=types.SimpleNamespace(runs=5, model=types.SimpleNamespace(activation_numbers=21)),
        _sets={"train": np.zeros((5, 11)), "validation": np.zeros((5, 3))},
        _dtype=torch.float32,
    )
    assert BatchedEngine._affordable(machine) == chunk
    assert asked == [torch.device("cuda:1")]
    monkeypatch.setattr("nets.engines.torch._free_bytes", lambda device: 2 * 924 - 1)
    machine._ensemble.model.activation_numbers = 21
    with pytest.raises(
        InputError,
        match=r"runs must need at most half of the device.s free 0\.0 GiB for",
    ):
        BatchedEngine._affordable(machine)
    machine.device = torch.device("cpu")  # which can swap
    monkeypatch.setattr("nets.engines.torch.CPU_BYTES", 10)
    assert BatchedEngine._affordable(machine) == 1


def test_numbers_that_a_step_keeps_are_counted_for_each_layer():
    assert MODELS["targets"].activation_numbers == 3 * (2 + 30 + 20 + 12)
    assert nets.ImageMLP(hidden=(9, 4)).activation_numbers == 3 * (64 + 9 + 4 + 10)
    of_a_block = 2 * (18 * 6 + 4 * 7 + 8 * 2)  # states, hidden layer and attention of both tokens
    model = nets.TokenTransformer(5, 6, depth=3, heads=2, width=7)
    assert model.activation_numbers == 3 * of_a_block + 3 * 5


def test_more_than_ten_runs_that_diverged_are_named_by_the_first_ten_where_train_is_called():
    with pytest.warns(RuntimeWarning, match="11 of 11 runs diverged") as said:
        nets.train(
            nets.ConstantAttention(5), runs=11, first_run=3, steps=5, record=5, learning_rate=1e30,
            weight_decay=0.0,
        )  # fmt: skip
    assert "of run 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 is not finite" in str(said[0].message)
    assert said[0].filename == __file__


@pytest.mark.parametrize("engine", ["fused", "torch"])
def test_the_embeddings_that_a_callback_keeps_stay_as_they_were(engine):
    kept = []
    found = nets.train(
        MODELS["logits"], steps=9, record=3, engine=engine, device="cpu",
        callback=lambda step, time, positions, observables: kept.append(positions),
    )  # fmt: skip
    assert not np.array_equal(kept[0], kept[-1])
    np.testing.assert_array_equal(np.stack(kept, axis=1), found.positions)
