"""Both engines against a plain PyTorch loop: modules, `torch.optim.AdamW`, one member at a time."""

import dataclasses
import functools

import numpy as np
import pytest
import torch

import nets
from grokphys.bench.nets import PlainNetwork
from nets.engines import activations, losses, optimizers, products
from nets.engines.choice import choose_engine, optimizer_of
from nets.engines.ensemble import batches, draw
from physics.jit import address_of
from physics.theory.groups import cyclic

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
        steps=50,
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
        frames, measured = plain_training(name, run=run, steps=50, dtype=torch.float64, batch_size=batch_size)
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
        plain, _ = plain_training(name, run=run, steps=50, dtype=torch.float32)
        exact, _ = plain_training(name, run=run, steps=50, dtype=torch.float64, batch_size=None)
        for ensemble in ensembles:
            assert ensemble.positions.dtype == np.float32
            for step, bound in ((10, 1e-6), (50, 1e-4)):
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
    A = np.asarray(generator.standard_normal((rows, inner)), dtype, order=order)
    B = generator.standard_normal((inner, columns)).astype(dtype)
    out = generator.standard_normal((rows, columns)).astype(dtype)
    exact = out + A.astype(np.float64) @ B.astype(np.float64)
    bound = (inner + 2) * np.finfo(dtype).eps * (np.abs(out) + np.abs(A).astype(np.float64) @ np.abs(B))
    turned = order == "F"
    products.add_product(A.T if turned else A, turned, B, out, 0)
    assert (np.abs(out - exact) <= bound).all()


@pytest.mark.parametrize(
    ("name", "bound"), [("exponential", 2e-7), ("hyperbolic tangent", 3e-7), ("hyperbolic sine", 3e-7)]
)
def test_float32_functions(name, bound):
    small = np.geomspace(1e-30, 1, 5001)
    x = np.concatenate([np.linspace(-86, 87, 10001), small, -small]).astype(np.float32)
    found = x.copy()
    if name == "exponential":
        activations.exponential(found)
        exact = np.exp(x.astype(np.float64))
    elif name == "hyperbolic tangent":
        activations.hyperbolic_tangent(found, np.empty_like(x), address_of(activations.exponential, x))
        exact = np.tanh(x.astype(np.float64))
    else:
        activations.inverse_hyperbolic_sine(found)
        exact = np.arcsinh(x.astype(np.float64))
    assert (np.abs(found - exact) <= bound * np.abs(exact)).all()


def test_the_exponential_ends_where_float32_does():
    x = np.array([-1e30, -88, 89, 1e30, 0], np.float32)
    activations.exponential(x)
    assert np.isfinite(x).all()
    assert x[0] <= 2e-38
    assert x[4] == 1


def activate(activation, states, slopes, even=0.0):
    kernel, exp = activations.ACTIVATION[activation], address_of(activations.exponential, states)
    if even:
        room = np.empty((2, len(states)), states.dtype)
        activations.with_even_part(address_of(kernel, states, slopes, exp), states, slopes, even, *room, exp)
    else:
        kernel(states, slopes, exp)


@pytest.mark.parametrize("activation", ["silu", "relu", "tanh", "asinh"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_activations_do_not_hide_what_overflowed(activation, dtype):
    lost = np.array([np.nan, 1.0], dtype)
    activate(activation, lost, np.empty_like(lost))
    assert np.isfinite(lost).tolist() == [False, True]


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


def test_members_are_shared_among_threads_each_once(monkeypatch):
    ensemble = draw(MODELS["embedding MLP"], runs=5, seed=2)
    settings = optimizer_of(5, 0.01, 0.0, None, None, (0.9, 0.999), 1e-8)
    found = []
    for threads in (1, 3):
        monkeypatch.setattr("numba.get_num_threads", lambda threads=threads: threads)
        engine = choose_engine("fused", ensemble, settings, "float64", "cpu", None)
        engine.advance(0, 3, None)
        engine.stop(np.arange(5) == 2)
        engine.advance(3, 2, batches(ensemble, 9, 3, 2))
        found.append([*engine.state().values(), *engine.losses("validation"), engine.gradient("embedding")])
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)

    def fails(members, room):
        if 3 in members:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        engine._spread(np.arange(5), fails)


def test_chunks_do_not_change_what_is_learned():
    options = {"runs": 5, "steps": 10, "engine": "torch", "dtype": "float64", "record": 10}
    whole = nets.train(MODELS["toy regression"], **options)
    chunked = nets.train(MODELS["toy regression"], chunk=2, **options)
    np.testing.assert_allclose(chunked.final, whole.final, rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", MODELS)
def test_gradients_are_those_of_autograd(name):
    options = {"runs": 2, "steps": 3, "record": 1, "observables": ("gradient",), "dtype": "float64"}
    fused, torched = (
        nets.train(MODELS[name], engine=engine, **options).observables["gradient"]
        for engine in ("fused", "torch")
    )
    assert np.abs(torched).max() > 1e-4
    np.testing.assert_allclose(fused, torched, rtol=0, atol=1e-13)


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


MANY = {
    "sums": nets.ConstantAttention(19, 3, 8),
    "concatenations": nets.EmbeddingMLP(14, 3, (8,)),
    "squares": nets.ToyAddition(20, 2, (9,), 4),
    "products": nets.GroupDecoder(cyclic(14), side=2, hidden=(9,), outputs_dim=3),
    "data": nets.ImageMLP(hidden=(8,)),
    "neurons": nets.TwoLayer(15, 9),
}


@pytest.mark.parametrize("name", MANY)
def test_more_examples_than_a_block_holds(name):
    """The kernels take 128 examples at a time: others of a set, and of a batch, come in further blocks."""
    ensemble = draw(MANY[name], runs=2, seed=1, train_fraction=0.1 if name == "data" else 0.75)
    assert ensemble.train.shape[1] > 140
    settings = optimizer_of(2, 0.01, 0.1, None, None, (0.9, 0.999), 1e-8)
    fused, torched = (
        choose_engine(one, ensemble, settings, "float64", "cpu", None) for one in ("fused", "torch")
    )
    for part in ("train", "validation"):
        for found, expected in zip(fused.losses(part), torched.losses(part), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12)
    for parameter in ensemble.parameters if name != "neurons" else ():
        found, expected = fused.gradient(parameter), torched.gradient(parameter)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)
    for engine in (fused, torched):
        engine.advance(0, 2, None)
        engine.advance(2, 2, batches(ensemble, 140, 2, 2))
    for parameter, value in fused.parameters().items():
        np.testing.assert_allclose(value, torched.parameters()[parameter], rtol=0, atol=1e-11)


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
        optimizers.adamw(values, gradient, first, second, 20, number, rates, betas)
        np.testing.assert_allclose(values, parameter.detach().numpy(), rtol=1e-13)


@pytest.mark.parametrize("engine", ["fused", "torch"])
def test_a_dead_network_is_right_where_the_first_class_is(engine):
    """Where outputs tie, the first of equals is the answer; not every one that ties with it."""

    def accuracy(model, bias, targets=None):
        initial = {"output.weight": np.zeros((model.hidden[-1], len(bias))), "output.bias": bias[None]}
        ensemble = draw(model, runs=2, seed=1, initial=initial)
        ensemble = dataclasses.replace(ensemble, targets=targets)
        settings = optimizer_of(2, 0.01, 0.0, None, None, (0.9, 0.999), 1e-8)
        machine = choose_engine(engine, ensemble, settings, "float64", "cpu", None)
        return machine.losses("train")[1], model.task.labels[ensemble.train]

    model = nets.ToyAddition(8, 1, (30, 20), kind="classification")
    for answer, bias in ((0, np.zeros(15)), (3, np.where(np.isin(np.arange(15), (3, 4, 9)), 2.0, -1.0))):
        found, labels = accuracy(model, bias)
        np.testing.assert_array_equal(found, (labels == answer).mean(axis=1))
    model = nets.ToyAddition(8, 1, (30, 20), outputs_dim=2)
    far, near = np.full((15, 2), 5.0), [[0.0, 1.0], [1.0, 0.0]]
    far[[4, 6]] = near  # equally near to an output of zero
    found, labels = accuracy(model, np.zeros(2), np.stack([far, far]))
    np.testing.assert_array_equal(found, (labels == 4).mean(axis=1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_network_that_is_sure_has_no_subnormal_gradients(dtype):
    """Processors multiply subnormal numbers ten times slower than others."""
    far = np.log(np.finfo(dtype).tiny)
    logits, gradient = np.array([[0.0, far + 0.5, far + 6, -1.0]], dtype), np.empty((1, 4), dtype)
    labels, batch = np.array([0]), np.empty(0, np.int32)
    exp = address_of(activations.exponential, gradient[0])
    losses.cross_entropy_gradient(logits, labels, gradient, batch, 0, 100, exp, gradient)
    chances = np.exp(logits[0].astype(np.longdouble))
    expected = (chances / chances.sum() - [1, 0, 0, 0]) / 100
    assert 0 < expected[1] < np.finfo(dtype).tiny < expected[2]
    assert gradient[0, 1] == 0
    np.testing.assert_allclose(gradient[0, [0, 2, 3]], expected[[0, 2, 3]].astype(dtype), rtol=3e-6)
