"""The gradient of the cross-entropy without cancellation, in both engines, against exact arithmetic."""

import numpy as np
import pytest

import nets
from nets.engines.choice import choose_engine, optimizer_of
from nets.engines.ensemble import batches, draw

MODELS = {
    "dense": nets.EmbeddingMLP(14, 3, (8,)),
    "neurons": nets.TwoLayer(15, 9),
    "squares": nets.ToyAddition(8, 2, (9,), 4),
}


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
