"""Both engines where options meet: ways to combine, activations, losses, rates, batches, ended members."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest
import torch

import nets
from nets.engines.choice import choose_engine, optimizer_of
from nets.engines.ensemble import batches, draw
from physics.errors import InputError

TOKENS, DIM, WIDTH = 5, 4, 7
FIRST = {"sum": DIM, "concatenate": 2 * DIM, "product": DIM, "data": 3, "neurons": DIM}
DATA = np.random.default_rng(5).normal(size=(25, 3))


@dataclass(frozen=True)
class Mine(nets.DenseModel):
    """A model of one's own with any architecture; its encoder may end anywhere."""

    combine: str
    activation: str = "tanh"
    error: str = "cross_entropy"
    even: float = 0.0
    embedding_penalty: float = 0.0
    encoder: tuple[str, ...] = ("embedding",)
    tokens: int = TOKENS
    dim: int = DIM
    initialisation: str = "pytorch"
    biases: bool = True
    frequencies: tuple[int, ...] = ()

    @cached_property
    def task(self):
        a, b = np.indices((TOKENS, TOKENS)).reshape(2, -1)
        inputs = DATA if self.combine == "data" else np.stack([a, b], axis=1)
        return nets.Task(inputs, (a * b + a) % TOKENS, TOKENS)

    @cached_property
    def architecture(self):
        hidden = () if self.combine == "neurons" else (6, WIDTH)
        sizes = (FIRST[self.combine], *hidden, TOKENS)
        options = self.even, self.biases, self.frequencies
        return nets.Architecture(self.combine, sizes, self.activation, self.error, *options)

    def initial(self, embedding, layers):
        drawn = super().initial(embedding, layers)
        return {name: drawn[name] for name in self.architecture.shapes(TOKENS, DIM)}

    def point_sets(self, parameters, train):
        return parameters.get("embedding", parameters["output.weight"][:, :DIM].transpose(1, 2))


def engines(ensemble, settings=None, dtype="float64"):
    settings = settings or optimizer_of(ensemble.runs, 0.01, 0.1, None, None, (0.9, 0.999), 1e-8)
    return [choose_engine(name, ensemble, settings, dtype, "cpu", None) for name in ("fused", "torch")]


def agree(found, expected, **tolerance):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, err_msg=name, **tolerance)


@pytest.mark.parametrize("error", ["cross_entropy", "mean_squared_error"])
@pytest.mark.parametrize(
    ("activation", "even"), [("relu", 0), ("silu", 0), ("tanh", 0.5), ("asinh", 0), ("asinh", 2)]
)
@pytest.mark.parametrize("combine", FIRST)
def test_every_architecture_is_the_same_to_both_engines(combine, activation, even, error):
    encoder = ("hidden1.weight", "hidden1.bias") if combine == "data" else ("embedding",)
    ensemble = draw(Mine(combine, activation, error, even, encoder=encoder), runs=2, seed=3)
    fused, torched = engines(ensemble)
    assert (fused.name, torched.name) == ("fused", "torch")
    for part in ("train", "validation"):
        for found, expected in zip(fused.losses(part), torched.losses(part), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12)
    for name in ensemble.parameters:
        found = fused.gradient(name)
        assert found.any()
        np.testing.assert_allclose(found, torched.gradient(name), rtol=0, atol=1e-14)


@pytest.mark.parametrize("batch", [None, 3])
@pytest.mark.parametrize("combine", ["sum", "concatenate"])
def test_networks_without_biases_see_only_the_frequencies_of_their_embedding(combine, batch):
    model = Mine(combine, biases=False, frequencies=(2,))
    ensemble = draw(model, runs=2, seed=3)
    assert not any(name.endswith("bias") for name in ensemble.parameters)
    whole = draw(Mine(combine), runs=2, seed=3).parameters
    agree(ensemble.parameters, {name: whole[name] for name in ensemble.parameters}, rtol=0)
    machines = engines(ensemble)
    for machine in machines:
        machine.advance(0, 5, batches(ensemble, batch, 0, 5))
        before, embedding = machine.losses("train")[0], machine.parameters()["embedding"]
        waves = np.fft.rfft(machine.gradient("embedding"), axis=1)
        np.testing.assert_allclose(waves[:, [0, 1]], 0, atol=1e-15)
        assert (abs(waves[:, 2]) > 1e-6).all()
        machine.assign("embedding", embedding + np.cos(2 * np.pi / TOKENS * np.arange(TOKENS))[:, None])
        np.testing.assert_allclose(machine.losses("train")[0], before, rtol=1e-12)
    agree(*(machine.parameters() for machine in machines), rtol=0, atol=1e-13)


def test_frequencies_that_an_embedding_cannot_have_are_refused():
    with pytest.raises(InputError, match="frequencies"):
        nets.Architecture("product", (4, 7, 5), "tanh", "cross_entropy", frequencies=(1,))
    for frequencies in ((3,), (1, 1), (0,)):
        with pytest.raises(InputError, match="frequencies"):
            nets.train(Mine("sum", frequencies=frequencies), steps=1)


ENCODERS = {
    "sum": ("embedding", "hidden1.weight", "hidden1.bias"),
    "concatenate": ("embedding", "hidden1.weight"),
    "product": ("embedding",),
}


@pytest.mark.parametrize("kind", ["adamw", "sgd"])
@pytest.mark.parametrize("combine", ENCODERS)
def test_rates_follow_the_encoder_and_the_penalty_the_embedding(combine, kind):
    """As PyTorch's optimizers, with a group of parameters for the encoder, and another one for the rest."""
    model = Mine(combine, error="mean_squared_error", embedding_penalty=0.7, encoder=ENCODERS[combine])
    ensemble = draw(model, runs=3, seed=3)
    given = {"lr": [0.01, 0.02, 0.03], "weight_decay": [0.0, 0.3, 0.2]}
    encoded = {"lr": [0.005, 0.0, 0.04], "weight_decay": [0.1, 0.5, 0.0]}
    settings = optimizer_of(3, *given.values(), *encoded.values(), (0.8, 0.95), 1e-6, kind)
    order = batches(ensemble, 7, 3, 2)
    machines = engines(ensemble, settings)
    for machine in machines:
        machine.advance(0, 3, None)
        machine.advance(3, 2, order)
    task, targets = model.task, torch.eye(TOKENS, dtype=torch.float64)
    for run in range(3):
        values = {
            name: torch.tensor(value[run : run + 1], requires_grad=True)
            for name, value in ensemble.parameters.items()
        }
        groups = [
            {"params": [values[name] for name in values if (name in model.encoder) is encoder]}
            | {key: rates[run] for key, rates in one.items()}
            for encoder, one in ((True, encoded), (False, given))
        ]
        options = {"betas": (0.8, 0.95), "eps": 1e-6} if kind == "adamw" else {}
        theirs = {"adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}[kind](groups, **options)
        for step in range(5):
            index = ensemble.train[run] if step < 3 else ensemble.train[run][order[run, step - 3]]
            outputs = model.outputs(values, torch.tensor(task.inputs[index])[None])[0]
            loss = torch.nn.functional.mse_loss(outputs, targets[torch.tensor(task.labels[index])])
            theirs.zero_grad()
            (loss + 0.7 * values["embedding"].abs().mean()).backward()
            theirs.step()
        for machine in machines:
            found = {name: value[run : run + 1] for name, value in machine.parameters().items()}
            agree(found, {name: value.detach() for name, value in values.items()}, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["adamw", "sgd"])
@pytest.mark.parametrize("batch", [None, 6])
def test_members_that_end_leave_the_others_their_own_rates_batches_and_moments(kind, batch):
    model = Mine("sum")
    ensemble = draw(model, runs=4, seed=3)
    rates = [[0.01, 0.02, 0.03, 0.04], [0.0, 0.3, 0.2, 0.1], [0.04, 0.01, 0.02, 0.03], [0.2, 0.1, 0.0, 0.3]]
    later = [values[::-1] for values in rates]
    for machine in engines(ensemble, optimizer_of(4, *rates, (0.8, 0.95), 1e-6, kind)):
        machine.advance(0, 3, batches(ensemble, batch, 0, 3))
        machine.stop(np.array([False, True, False, False]))
        machine.advance(3, 2, batches(ensemble, batch, 3, 2))
        machine.set_rates(optimizer_of(4, *later, (0.8, 0.95), 1e-6, kind))
        machine.stop(np.array([True, True, False, False]))
        machine.advance(5, 2, batches(ensemble, batch, 5, 2))
        together = machine.parameters()
        for run, steps in enumerate((5, 3, 7, 7)):
            alone = draw(model, runs=1, seed=3, first_run=run)
            own, own_later = ([values[run] for values in one] for one in (rates, later))
            single = choose_engine(
                machine.name, alone, optimizer_of(1, *own, (0.8, 0.95), 1e-6, kind), "float64", "cpu", None
            )
            for step in range(steps):
                if step == 5:
                    single.set_rates(optimizer_of(1, *own_later, (0.8, 0.95), 1e-6, kind))
                single.advance(step, 1, batches(alone, batch, step, 1))
            found = {name: value[run : run + 1] for name, value in together.items()}
            agree(found, single.parameters(), rtol=0, atol=1e-13)


BLOCKS = {
    "sums": nets.ConstantAttention(19, 3, 8),
    "concatenations": nets.EmbeddingMLP(14, 3, (8,)),
    "squares": nets.ToyAddition(20, 2, (9,), 4),
    "data": nets.ImageMLP(hidden=(8,)),
    "neurons": nets.TwoLayer(14, 70),
    "few neurons": nets.TwoLayer(15, 9),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_of_float32_sum_to_the_gradient_and_the_loss_of_float64(name):
    """A block has 128 examples, or 48 pairs; vectors of float32 have twice as many numbers."""
    ensemble = draw(BLOCKS[name], runs=2, seed=1, train_fraction=0.1 if name == "data" else 0.75)
    single, double = engines(ensemble, dtype="float32")[0], engines(ensemble)[1]
    for part in ("train", "validation"):
        (loss, share), (expected, exact) = single.losses(part), double.losses(part)
        np.testing.assert_allclose(loss, expected, rtol=1e-5)
        np.testing.assert_allclose(share, exact, atol=0.02)  # logits may tie in one type only
    for parameter in ensemble.parameters:
        found, expected = single.gradient(parameter), double.gradient(parameter)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
