"""Both engines against a plain PyTorch loop: modules, `torch.optim.AdamW`, one member at a time."""

import functools

import numpy as np
import pytest
import torch

import nets
from grokphys.bench.nets import PlainNetwork
from nets.engines import functions, fused, kernels, products
from nets.engines.choice import choose_engine, optimizer_of
from nets.engines.ensemble import batches, draw
from physics.theory.operations import cyclic

MODELS = {
    "constant attention": nets.ConstantAttention(11, 3, 16),
    "embedding MLP": nets.EmbeddingMLP(13, 8, (20, 18)),
    "ReLU": nets.EmbeddingMLP(13, 8, (20, 18), activation="relu"),
    "tanh": nets.EmbeddingMLP(13, 8, (20, 18), activation="tanh"),
    "asinh": nets.EmbeddingMLP(13, 8, (20, 18), activation="asinh"),
    "tanh and an even part": nets.EmbeddingMLP(13, 8, (20, 18), activation="tanh", even=0.75),
    "asinh and an even part": nets.EmbeddingMLP(13, 8, (20, 18), activation="asinh", even=2.0),
    "toy regression": nets.ToyAddition(8, 2, (30, 20), 12),
    "toy classification": nets.ToyAddition(8, 1, (30, 20), kind="classification"),
    "group": nets.GroupDecoder(hidden=(20, 30), outputs_dim=7),
    "one matrix entry": nets.GroupDecoder(cyclic(5).table, side=1, hidden=(9,), outputs_dim=3),
}
RATES = {
    "learning_rate": [0.01, 0.003, 0.02],
    "weight_decay": [0.5, 1.0, 0.0],
    "embedding_learning_rate": [0.002, 0.01, 0.005],
    "embedding_weight_decay": [0.0, 0.1, 0.3],
}


STEPS = 20
COMPARED = (0, 2)
"""Members that are trained by the plain loop too: the first and the last of three."""


@functools.cache
def plain_training(name, *, run, steps, dtype, batch_size=None):
    """Embeddings (steps + 1, tokens, dim), and loss and accuracy (steps + 1, 2, 2), of one member."""
    model = MODELS[name]
    ensemble = draw(model, runs=run + 1, seed=4)
    network = PlainNetwork(model).to(dtype)
    with torch.no_grad():
        network.embedding.weight.copy_(torch.tensor(ensemble.parameters["embedding"][run]))
        for name, layer in zip(model.architecture.layers, network.layers, strict=True):
            layer.weight.copy_(torch.tensor(ensemble.parameters[f"{name}.weight"][run].T))
            layer.bias.copy_(torch.tensor(ensemble.parameters[f"{name}.bias"][run, 0]))
    rates = {name: values[run] for name, values in RATES.items()}
    optimizer = torch.optim.AdamW(
        [
            {
                "params": network.embedding.parameters(),
                "lr": rates["embedding_learning_rate"],
                "weight_decay": rates["embedding_weight_decay"],
            },
            {
                "params": network.layers.parameters(),
                "lr": rates["learning_rate"],
                "weight_decay": rates["weight_decay"],
            },
        ]
    )
    inputs, labels = torch.tensor(model.task.inputs), torch.tensor(model.task.labels)
    targets = None if ensemble.targets is None else torch.tensor(ensemble.targets[run], dtype=dtype)

    def loss_of(index):
        outputs = network(inputs[index])
        if targets is None:
            return torch.nn.functional.cross_entropy(outputs, labels[index]), outputs.argmax(1)
        nearest = torch.cdist(outputs, targets).argmin(1)
        return torch.nn.functional.mse_loss(outputs, targets[labels[index]]), nearest

    order = batches(ensemble, batch_size, 0, steps)
    frames, measured = [], []
    for step in range(steps + 1):
        with torch.no_grad():
            for index in (ensemble.train[run], ensemble.validation[run]):
                loss, answer = loss_of(index)
                measured.append((loss.item(), float((answer == labels[index]).double().mean())))
        frames.append(network.embedding.weight.detach().clone().numpy())
        if step < steps:
            chosen = ensemble.train[run] if order is None else ensemble.train[run][order[run, step]]
            optimizer.zero_grad()
            loss, _ = loss_of(chosen)
            loss = loss + model.embedding_penalty * network.embedding.weight.abs().mean()
            loss.backward()
            optimizer.step()
    return np.stack(frames), np.array(measured).reshape(steps + 1, 2, 2)


def trained(model, engine, dtype, **options):
    return nets.train(
        model,
        runs=3,
        steps=STEPS,
        seed=4,
        record=1,
        engine=engine,
        dtype=dtype,
        device="cpu",
        **RATES,
        **options,
    )


@pytest.mark.parametrize("batch_size", [None, 7])
@pytest.mark.parametrize("name", MODELS)
def test_every_member_is_trained_as_a_plain_loop_would(name, batch_size):
    model = MODELS[name]
    ensembles = [trained(model, engine, "float64", batch_size=batch_size) for engine in ("fused", "torch")]
    for run in COMPARED:
        frames, measured = plain_training(
            name, run=run, steps=STEPS, dtype=torch.float64, batch_size=batch_size
        )
        for ensemble in ensembles:
            assert np.abs(ensemble.positions[run] - frames).max() <= 1e-12
            for column, part in enumerate(("train", "validation")):
                loss, accuracy = (
                    ensemble.observables[f"{part}_{kind}"][run] for kind in ("loss", "accuracy")
                )
                np.testing.assert_allclose(loss, measured[:, column, 0], rtol=0, atol=1e-11)
                np.testing.assert_array_equal(accuracy, measured[:, column, 1])


@pytest.mark.parametrize("name", MODELS)
def test_float32_stays_as_close_as_plain_float32_does(name):
    """AdamW turns a gradient that is rounding noise into a step of full size: float32 itself drifts."""
    model = MODELS[name]
    ensembles = [trained(model, engine, "float32") for engine in ("fused", "torch")]
    for run in COMPARED:
        plain, _ = plain_training(name, run=run, steps=STEPS, dtype=torch.float32)
        exact, _ = plain_training(name, run=run, steps=STEPS, dtype=torch.float64, batch_size=None)
        for ensemble in ensembles:
            assert ensemble.positions.dtype == np.float32
            for step, bound in ((10, 1e-6), (STEPS, 1e-5)):
                drift = np.abs(plain[step] - exact[step]).max()
                found = np.abs(ensemble.positions[run, step] - plain[step]).max()
                assert found <= max(bound, 4 * drift)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (6, 5, 16), (7, 3, 17), (13, 100, 59), (45, 30, 33), (128, 9, 100)]
)
def test_the_product_of_matrices(shape, order, dtype):
    rows, inner, columns = shape
    generator = np.random.default_rng(0)
    columns = products.padded(columns, dtype)
    A = np.asarray(generator.standard_normal((rows, inner)), dtype, order=order)
    B = generator.standard_normal((inner, columns)).astype(dtype)
    out = generator.standard_normal((rows, columns)).astype(dtype)
    exact = out + A.astype(np.float64) @ B.astype(np.float64)
    bound = (inner + 2) * np.finfo(dtype).eps * (np.abs(out) + np.abs(A).astype(np.float64) @ np.abs(B))
    turned = order == "F"
    products.multiply(A.T if turned else A, turned, B, out, out)
    assert (np.abs(out - exact) <= bound).all()


FUNCTIONS = {
    "exponential": (functions.exponential, np.exp),
    "hyperbolic tangent": (functions.hyperbolic_tangent, np.tanh),
    "hyperbolic sine": (functions.inverse_hyperbolic_sine, np.arcsinh),
}


@pytest.mark.parametrize(
    ("name", "bound"), [("exponential", 2e-7), ("hyperbolic tangent", 3e-7), ("hyperbolic sine", 3e-7)]
)
def test_float32_functions(name, bound):
    small = np.geomspace(1e-30, 1, 5001)
    x = np.concatenate([np.linspace(-86, 87, 10001), small, -small]).astype(np.float32)
    function, exact = FUNCTIONS[name]
    found, exact = np.array([function(value) for value in x]), exact(x.astype(np.float64))
    assert (np.abs(found - exact) <= bound * np.abs(exact)).all()


def activate(activation, states, slopes, even=0.0):
    functions.ACTIVATIONS[activation](even, states, slopes)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("activation", "even"), [("silu", 0), ("relu", 0), ("tanh", 1.5), ("asinh", 0.25)])
def test_the_slope_of_an_activation_is_its_derivative(activation, even, dtype):
    x = np.linspace(-9, 9, 501)
    h = 1e-5

    def exact(x):
        function = {"tanh": np.tanh, "asinh": np.arcsinh, "silu": lambda x: x / (1 + np.exp(-x))}
        function["relu"] = lambda x: np.maximum(x, 0)
        return function[activation](x) + even * x / 2 * np.tanh(x / 2)

    states, slopes = x.astype(dtype), np.empty(len(x), dtype)
    activate(activation, states, slopes, even)
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(states, exact(x.astype(dtype).astype(float)), rtol=4 * eps, atol=8 * eps)
    smooth = np.abs(x) > 0.01
    slope = (exact(x + h) - exact(x - h)) / (2 * h)
    np.testing.assert_allclose(slopes[smooth], slope[smooth], rtol=0, atol=max(2e-9, 16 * eps))


def test_bits_do_not_depend_on_threads_company_or_pieces():
    model = MODELS["embedding MLP"]
    options = {"steps": 30, "seed": 2, "batch_size": 100}
    together = nets.train(model, runs=5, record=30, **options)
    in_pieces = nets.train(model, runs=5, record=1, **options)
    np.testing.assert_array_equal(together.final, in_pieces.final)
    for run in range(5):
        alone = nets.train(model, first_run=run, record=30, **options)
        np.testing.assert_array_equal(alone.final[0], together.final[run])


def test_chunks_do_not_change_what_is_learned():
    options = {"runs": 5, "steps": 10, "engine": "torch", "dtype": "float64", "record": 10}
    whole = nets.train(MODELS["toy regression"], **options)
    chunked = nets.train(MODELS["toy regression"], chunk=2, **options)
    np.testing.assert_allclose(chunked.final, whole.final, rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", MODELS)
def test_every_parameter_has_the_gradient_of_autograd(name):
    ensemble = draw(MODELS[name], runs=2, seed=1)
    settings = optimizer_of(2, 0.01, 0.0, None, None, (0.9, 0.999), 1e-8)
    fused, torched = (
        choose_engine(one, ensemble, settings, "float64", "cpu", None) for one in ("fused", "torch")
    )
    for parameter, values in ensemble.parameters.items():
        found = fused.gradient(parameter)
        assert found.shape == values.shape
        assert np.abs(found).max() > 1e-5
        np.testing.assert_allclose(found, torched.gradient(parameter), rtol=0, atol=1e-13)


def test_the_step_of_the_kernel_is_pytorchs():
    generator = np.random.default_rng(0)
    values, gradients = generator.standard_normal(50), generator.standard_normal((6, 50))
    gradients[:, :9] *= 1e-9  # where epsilon matters
    parameter = torch.nn.Parameter(torch.tensor(values))
    theirs = torch.optim.AdamW([parameter], lr=0.03, weight_decay=0.7, betas=(0.8, 0.99), eps=1e-8)
    first, second, betas = np.zeros(50), np.zeros(50), np.array([0.8, 0.99, 1e-8])
    rates = np.array([0.03, 0.7, 0.03, 0.7])
    for number, gradient in enumerate(gradients, 1):
        parameter.grad = torch.tensor(gradient)
        theirs.step()
        kernels.adamw(values, gradient, first, second, 20, number, rates, betas)
        np.testing.assert_allclose(values, parameter.detach().numpy(), rtol=1e-13)


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_weights_that_decay_become_0_and_not_subnormal(optimizer):
    """Processors may take twenty times as long with subnormal numbers."""
    values = np.geomspace(1e-36, 1e-40, 40, dtype=np.float32)
    slope, first, second = (np.full(40, number, np.float32) for number in (0, 1e-38, 1e-38))
    rates, betas = np.array([1.0, 0.5, 1.0, 0.5]), np.array([0.9, 0.999, 1e-8 * (optimizer == "adamw")])
    kernels.adamw(values, slope, first, second, 20, 1, rates, betas)
    least = np.finfo(np.float32).tiny
    for numbers in (values, first, second) if optimizer == "adamw" else (values,):
        assert not ((numbers != 0) & (np.abs(numbers) < least)).any()
    assert values[-1] == 0 or optimizer == "adamw"


def test_pairs_that_differ_in_order_count_twice():
    examples = fused.examples_of(
        draw(nets.TwoLayer(5, 8), runs=1), np.arange(25)[None], "float64", together=True
    )
    assert examples.counts.tolist() == [15]
    assert sorted(examples.weights[0, :15]) == [1] * 5 + [2] * 10
    assert examples.total == 25
