"""Both engines where options meet: ways to combine, activations, losses, rates, batches, ended members."""

from dataclasses import dataclass, replace
from functools import cached_property
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import nets
from nets.engines import choice
from nets.engines.choice import choose_engine, optimizer_of
from nets.engines.ensemble import batches, draw
from nets.engines.fused import FusedEngine
from nets.engines.torch import BatchedEngine
from physics import InputError, symmetric

TOKENS, DIM, WIDTH = 5, 4, 7
FIRST = {"sum": DIM, "concatenate": 2 * DIM, "product": DIM, "data": 3}
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

    @cached_property
    def task(self):
        a, b = np.indices((TOKENS, TOKENS)).reshape(2, -1)
        inputs = DATA if self.combine == "data" else np.stack([a, b], axis=1)
        return nets.Task(inputs, (a * b + a) % TOKENS, TOKENS)

    @cached_property
    def architecture(self):
        sizes = (FIRST[self.combine], 6, WIDTH, TOKENS)
        return nets.Architecture(
            self.combine, sizes, self.activation, self.error, self.embedding_penalty, self.even
        )

    def initial(self, embedding, layers):
        drawn = super().initial(embedding, layers)
        return {name: drawn[name] for name in drawn if name != "embedding" or self.combine != "data"}

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


WIDE = {
    "product": nets.GroupDecoder(symmetric(3), side=5, hidden=(3,), outputs_dim=2),
    "sum": nets.ToyAddition(5, 40, (3,), 2),
    "concatenation": nets.EmbeddingMLP(5, 30, (3, 2)),
    "classes": nets.ConstantAttention(31, 1, 2),
    "data": nets.ImageMLP(hidden=(3, 2)),
}


@pytest.mark.parametrize("name", WIDE)
def test_a_first_layer_may_be_wider_than_all_others(name):
    ensemble = draw(WIDE[name], runs=2, seed=1, train_fraction=0.15)
    fused, torched = engines(ensemble)
    for parameter in ensemble.parameters:
        found, expected = fused.gradient(parameter), torched.gradient(parameter)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


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


def test_where_everybody_has_ended_nothing_moves_until_somebody_trains_again():
    ensemble = draw(Mine("sum"), runs=2, seed=3)
    for machine in engines(ensemble):
        machine.stop(np.array([True, True]))
        machine.advance(0, 3, None)
        machine.advance(3, 1, batches(ensemble, 5, 3, 1))
        agree(machine.parameters(), ensemble.parameters, rtol=0, atol=0)
        assert not any(value.any() for name, value in machine.state().items() if "parameters" not in name)
        machine.stop(np.array([True, False]))
        machine.advance(0, 1, None)
        moved = [(machine.parameters()[name] != value).any() for name, value in ensemble.parameters.items()]
        assert all(moved)
        assert (machine.parameters()["embedding"][0] == ensemble.parameters["embedding"][0]).all()


@pytest.mark.parametrize("runs", [1, 2])
def test_what_an_engine_gives_is_a_copy_and_so_is_what_it_takes(runs):
    ensemble = draw(Mine("sum"), runs=runs, seed=3)
    drawn = {name: value.copy() for name, value in ensemble.parameters.items()}
    for machine in engines(ensemble):
        for given in (machine.parameters(), machine.state(), {"points": machine.point_sets()}):
            for value in given.values():
                value[:] = 7.0
        machine.gradient("embedding")[:] = 7.0
        agree(machine.parameters(), drawn, rtol=0, atol=0)
        np.testing.assert_array_equal(machine.point_sets(), drawn["embedding"])
        kept = machine.parameters() | {"points": machine.point_sets()}
        before = {name: value.copy() for name, value in kept.items()}
        ended = np.ones(runs, bool)
        for who in (True, False):  # its caller fills the same array again
            ended[:] = who
            machine.stop(ended)
        ended[:] = True
        machine.advance(0, 1, None)
        agree(kept, before, rtol=0, atol=0)
        moved = machine.parameters()
        assert (moved["embedding"] != drawn["embedding"]).all(axis=(1, 2)).all()
        machine.stop(ended)
        machine.advance(1, 1, None)
        agree(machine.parameters(), moved, rtol=0, atol=0)
    agree(ensemble.parameters, drawn, rtol=0, atol=0)


def test_auto_is_fused_on_a_cpu_for_layers_and_pytorch_for_all_else(monkeypatch):
    ensemble = draw(Mine("sum"), runs=1, seed=3)
    settings = optimizer_of(1, 0.01, 0.1, None, None, (0.9, 0.999), 1e-8)

    def chosen(one, name="auto", device="cpu"):
        found = choose_engine(name, one, settings, "float32", device, 1)
        return found.name, str(found.device), found.chunk

    assert chosen(ensemble) == ("fused", "cpu", None)
    assert chosen(ensemble, "torch") == ("torch", "cpu", 1)
    other = draw(nets.TokenTransformer(5, 4, depth=1, width=3), runs=1, seed=3)
    assert chosen(other) == ("torch", "cpu", 1)
    for available, place in ((True, "cuda"), (False, "cpu")):
        monkeypatch.setattr(choice, "cuda_is_available", lambda available=available: available)
        assert choice._device("auto") == place
    monkeypatch.setattr(choice, "_device", lambda device: "meta")
    assert chosen(ensemble, device="auto") == ("torch", "meta", 1)
    with pytest.raises(InputError, match="engine must be 'auto' or 'torch' for Mine on meta, got 'fused'"):
        chosen(ensemble, "fused")


def test_steps_of_dense_layers_are_captured_on_cuda_and_no_others(monkeypatch):
    settings = optimizer_of(1, 0.01, 0.1, None, None, (0.9, 0.999), 1e-8)
    monkeypatch.setattr("nets.engines.torch.BatchedEngine", lambda *_, graphs, **__: graphs)
    for model, captured in ((Mine("sum"), True), (nets.TokenTransformer(5, 4, depth=1, width=3), False)):
        ensemble = draw(model, runs=1, seed=3)
        for place in ("cuda", "cuda:1", "cpu"):
            monkeypatch.setattr(choice, "_device", lambda device, place=place: place)
            graphs = choose_engine("torch", ensemble, settings, "float32", "auto", None)
            assert graphs is (captured and place != "cpu")


def test_on_a_cpu_activations_take_a_gibibyte():
    machine = SimpleNamespace(
        device=torch.device("cpu"),
        _ensemble=SimpleNamespace(runs=1000, model=SimpleNamespace(activation_numbers=2**10)),
        _sets={"train": np.zeros((5, 3)), "validation": np.zeros((5, 2**10))},
        _dtype=torch.float32,
    )
    assert BatchedEngine._affordable(machine) == 2**30 // (4 * 2**20)


@dataclass(frozen=True)
class Reading(nets.Model):
    """A model that reads data and has no architecture, so that only PyTorch computes it."""

    tokens: int = 3
    dim: int = 2
    dropout: float = 0.0
    loss = "mean_squared_error"
    encoder = ("into",)

    @cached_property
    def task(self):
        return nets.Task(DATA, np.arange(25) % 3, 3)

    def initial(self, embedding, layers):
        return {"into": embedding.normal(size=(3, 2)), "out": layers.normal(size=(2, 3))}

    def outputs(self, parameters, inputs, dropout=None):
        states = (inputs @ parameters["into"]).tanh()
        return (dropout(states, self.dropout) if dropout else states) @ parameters["out"]

    def point_sets(self, parameters, train):
        return parameters["into"]


def test_a_model_that_reads_data_without_an_architecture_is_trained_as_a_plain_loop_would():
    model = Reading()
    assert model.activation_numbers == 3 * (2 + 3)
    options = {"weight_decay": 0.3, "embedding_weight_decay": 0.0, "embedding_learning_rate": 0.02}
    found = nets.train(model, runs=2, steps=8, record=8, dtype="float64", observables="layers", **options)
    ensemble = draw(model, runs=2, seed=0)
    for run in range(2):
        drawn = {name: torch.tensor(value[run]) for name, value in ensemble.parameters.items()}
        into, out = (drawn[name].requires_grad_() for name in ("into", "out"))
        groups = [
            {"params": [into], "lr": 0.02, "weight_decay": 0.0},
            {"params": [out], "lr": 0.01, "weight_decay": 0.3},
        ]
        adamw, index = torch.optim.AdamW(groups), ensemble.train[run]
        for _ in range(8):
            adamw.zero_grad()
            answers = (torch.tensor(DATA[index]) @ into).tanh() @ out
            ((answers - torch.eye(3)[model.task.labels[index]]) ** 2).mean().backward()
            adamw.step()
        np.testing.assert_allclose(found.final[run], into.detach(), rtol=0, atol=1e-13)
        layers = found.observables["layers.out"][run, -1], found.observables["layers.into"][run, -1]
        for layer, value in zip(layers, (out, into), strict=True):
            np.testing.assert_allclose(layer, value.detach(), rtol=0, atol=1e-13)


def test_data_are_read_in_the_number_type_of_the_training():
    single, double = (nets.train(Reading(), steps=3, record=3, dtype=one) for one in ("float32", "float64"))
    assert (single.final.dtype, double.final.dtype) == (np.float32, np.float64)
    np.testing.assert_allclose(single.final, double.final, rtol=1e-4)


def test_dropout_in_a_model_of_ones_own_is_drawn_for_each_member():
    options = {"runs": 3, "steps": 2, "record": 1, "dtype": "float64"}
    options |= {"shared": ("embedding", "layers", "split")}
    dropped = nets.train(replace(Reading(), dropout=0.5), **options)
    plain = nets.train(Reading(), **options)
    assert (plain.positions[0] == plain.positions[1]).all()
    assert len({dropped.positions[run, 1].tobytes() for run in range(3)}) > 1
    alone = nets.train(replace(Reading(), dropout=0.5), **(options | {"runs": 1, "first_run": 2}))
    np.testing.assert_allclose(alone.positions[0], dropped.positions[2], rtol=0, atol=1e-14)


@pytest.mark.parametrize("engine", [BatchedEngine, FusedEngine])
def test_a_loss_near_the_rounding_of_float32_is_not_rounded(engine):
    ensemble = draw(nets.ConstantAttention(7), runs=1, seed=3)
    zero = {name: np.zeros_like(value) for name, value in ensemble.parameters.items()}
    zero["output.bias"][..., 0] = 16.0
    right = np.flatnonzero(ensemble.model.task.labels == 0)[None]
    settings = optimizer_of(1, 0.01, 0.1, None, None, (0.9, 0.999), 1e-8)
    place = (torch.device("cpu"), 1) if engine is BatchedEngine else ()
    machine = engine(replace(ensemble, parameters=zero, train=right), settings, "float32", *place)
    loss, accuracy = machine.losses("train")
    assert loss == pytest.approx(np.log1p(6 * np.exp(-16.0)), rel=1e-6)
    assert accuracy == 1


@pytest.mark.parametrize("combine", ["sum", "concatenate", "product"])
def test_a_few_examples_have_the_outputs_that_they_have_among_many(combine):
    """With fewer examples than tokens, the first layer is computed for each example, not for each token."""
    model = Mine(combine)
    ensemble = draw(model, runs=2, seed=3)
    parameters = {name: torch.as_tensor(value) for name, value in ensemble.parameters.items()}
    inputs = torch.as_tensor(model.task.inputs)[ensemble.train]
    assert inputs.shape[1] > TOKENS
    outputs = model.outputs(parameters, inputs)
    for few in (1, TOKENS - 1, TOKENS):
        torch.testing.assert_close(model.outputs(parameters, inputs[:, :few]), outputs[:, :few])
