"""Models that are not ours: what `train` makes of them, and what it refuses."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pytest
import torch

import nets
from nets.engines.ensemble import draw
from nets.tasks import modular_addition
from physics import InputError


@dataclass(frozen=True)
class Product(nets.Model):
    tokens: int = 7
    dim: int = 4
    loss = "cross_entropy"

    @cached_property
    def task(self):
        return modular_addition(self.tokens)

    def initial(self, embedding, layers):
        E = embedding.standard_normal((self.tokens, self.dim))
        return {"embedding": E, "readout": layers.standard_normal((self.dim, self.tokens))}

    def outputs(self, parameters, inputs, dropout=None):
        return nets.embedded(parameters["embedding"], inputs).prod(2) @ parameters["readout"]


@dataclass(frozen=True)
class Layers(nets.DenseModel):
    tokens: int = 7
    dim: int = 4
    initialisation: str = "pytorch"

    @cached_property
    def task(self):
        return modular_addition(self.tokens)

    @cached_property
    def architecture(self):
        return nets.Architecture("sum", (self.dim, 9, self.tokens), "asinh", "cross_entropy", even=0.3)


@pytest.mark.parametrize("engine", ["fused", "torch"])
@pytest.mark.parametrize(
    ("inputs", "sentence"),
    [
        (np.arange(1, 8), "tokens from 0 to 6, got 1 to 7"),
        (np.arange(-1, 6), "tokens from 0 to 6, got -1 to 5"),
        (np.arange(7.0), "two tokens for each example, got float64 of shape"),
    ],
)
def test_tokens_that_there_are_not_are_refused_before_a_kernel_reads_them(inputs, sentence, engine):
    """The kernels take tokens as indices without a check, and wrote beyond the end of the embedding."""
    pairs = np.stack([inputs, inputs[::-1]], axis=1)
    other = type("Other", (Layers,), {"task": nets.Task(pairs, np.arange(7), 7)})
    with pytest.raises(InputError, match=f"^inputs of the task of Other must be {sentence}"):
        nets.train(other(), steps=2, engine=engine)


def test_each_class_has_a_one_hot_target_unless_the_model_says_otherwise():
    task = nets.ToyAddition(7, 1, (9, 9), kind="classification").task
    assert task.classes == 13
    targets = type("Sums", (Product,), {"task": task})().targets(np.random.default_rng(0))
    np.testing.assert_array_equal(targets, np.eye(13))


def test_it_is_trained_as_a_plain_loop_would(tmp_path):
    options = {"steps": 25, "record": 25, "weight_decay": 0.3, "dtype": "float64", "seed": 4, "device": "cpu"}
    trained = nets.train(Product(), runs=2, out=tmp_path / "t.h5", observables=("layers",), **options)
    described = {name: trained.parameters["model"][name] for name in ("type", "tokens", "dim")}
    assert described == {"type": "Product", "tokens": 7, "dim": 4}
    ensemble = draw(Product(), runs=2, seed=4)
    for run in range(2):
        values = {
            name: torch.nn.Parameter(torch.tensor(value[run : run + 1]))
            for name, value in ensemble.parameters.items()
        }
        adamw = torch.optim.AdamW(values.values(), lr=0.01, weight_decay=0.3)
        task, train = Product().task, ensemble.train[run]
        for _ in range(25):
            adamw.zero_grad()
            outputs = Product().outputs(values, torch.tensor(task.inputs[train])[None])
            torch.nn.functional.cross_entropy(outputs[0], torch.tensor(task.labels[train])).backward()
            adamw.step()
        found = trained.final[run], trained.observables["layers.readout"][run, -1]
        for value, name in zip(found, ("embedding", "readout"), strict=True):
            np.testing.assert_allclose(value, values[name][0].detach().numpy(), rtol=0, atol=1e-12)
    revived = nets.networks(trained)
    assert isinstance(revived.model, Product)
    assert revived.outputs().shape == (2, 28, 7)


def test_an_architecture_of_ones_own_is_computed_by_both_engines():
    options = {"runs": 2, "steps": 30, "record": 30, "dtype": "float64", "device": "cpu"}
    fused, torched = (nets.train(Layers(), engine=engine, **options) for engine in ("fused", "torch"))
    assert fused.parameters["engine"] == "fused"
    np.testing.assert_allclose(fused.final, torched.final, rtol=0, atol=1e-12)
    assert np.abs(fused.final - fused.initial).max() > 0.01


def looked_up(parameters, inputs):
    return nets.embedded(parameters["embedding"], inputs).prod(2)


def divided_by_the_norm_of_all(self, parameters, inputs, dropout=None):
    states = looked_up(parameters, inputs)
    return states / states.norm() @ parameters["readout"]


def with_a_mean_readout(self, parameters, inputs, dropout=None):
    return looked_up(parameters, inputs) @ parameters["readout"].mean(0)


def with_a_bias_without_an_axis(self, parameters, inputs, dropout=None):
    return looked_up(parameters, inputs) @ parameters["readout"] + parameters["readout"].sum(1)


def centred_over_all(self, parameters, train):
    return parameters["embedding"] - parameters["embedding"].mean((0, 1))


def with_dropout(self, parameters, inputs, dropout=None):
    states = looked_up(parameters, inputs)
    return (states if dropout is None else dropout(states, 0.5)) @ parameters["readout"]


def with_whole_numbers(self, parameters, inputs, dropout=None):
    return Product.outputs(self, parameters, inputs).long()


def with_none_of_the_gradient(self, parameters, inputs, dropout=None):
    return Product.outputs(self, parameters, inputs).detach()


def starting_with(**values):
    return changed(Product, initial=lambda *generators: Product.initial(*generators) | values)


def one_after_the_last():
    task = modular_addition(7)
    return changed(Product, task=nets.Task(task.inputs + 1, task.labels, 7))


def dense(**members):
    """Return a dense model that defines nothing but its task, and `members`."""
    fields = {"tokens": int, "dim": int}
    members |= {"__annotations__": fields, "tokens": 7, "dim": 4, "task": modular_addition(7)}
    return dataclass(frozen=True)(type("Mine", (nets.DenseModel,), members))()


def identity(self, embedding, layers):
    return {"embedding": np.eye(self.tokens, self.dim), "readout": np.eye(self.dim, self.tokens)}


def changed(base, **members):
    return dataclass(frozen=True)(type("Mine", (base,), members))()


def with_architecture(**fields):
    return changed(Layers, architecture=replace(Layers().architecture, **fields))


@dataclass(frozen=True)
class Table(Product):
    encoder = ("table",)

    def initial(self, embedding, layers):
        return {"table": embedding.standard_normal((self.tokens, self.tokens, self.tokens))}

    def point_sets(self, parameters, train):
        return parameters["table"].mean(1)[..., : self.dim]

    def outputs(self, parameters, inputs, dropout=None):
        members = torch.arange(len(inputs))[:, None]
        return parameters["table"][members, inputs[..., 0], inputs[..., 1]]


@pytest.mark.parametrize("model", [Table(), changed(Product, outputs=with_dropout, dropout=0.5)], ids=repr)
def test_models_that_the_refusals_below_are_made_of_can_be_trained(model):
    trained = nets.train(model, runs=2, steps=5, device="cpu")
    assert np.abs(trained.final - trained.initial).max() > 0.01


REFUSED = [
    (Product, "model must be .* got the class Product"),
    (3, "model must be"),
    (Product(tokens=0), "tokens of Product"),
    (changed(Product, loss="hinge"), "loss of Mine"),
    (changed(Product, initial=lambda *_: None), "Mine .* AttributeError"),
    (changed(Product, initial=lambda *_: {}["scale"]), "Mine .* KeyError"),
    (changed(Product, initial=lambda *_: {"embedding": np.full((7, 4), np.nan)}), "initial.*embedding"),
    (changed(Product, initial=lambda *_: {"embedding": np.zeros((4, 7))}), "embedding of Mine"),
    (changed(Product, initial=lambda *_: {"readout": np.zeros((4, 7))}), "encoder of Mine"),
    (starting_with(scale=1.0), "initial of Mine"),
    (starting_with(scale=np.ones(3)), "Mine cannot be trained, .* RuntimeError"),
    (changed(Product, task=([0], [1])), "task of Mine must be a nets.Task"),
    (one_after_the_last(), "Mine .* IndexError"),
    (changed(Product, outputs=lambda self, parameters, inputs, dropout=None: inputs), "outputs of Mine"),
    (changed(Product, outputs=with_a_bias_without_an_axis), "Mine .* RuntimeError"),
    (changed(Product, outputs=with_whole_numbers), "Mine .* RuntimeError"),
    (changed(Product, outputs=with_none_of_the_gradient), "Mine .* RuntimeError"),
    (changed(Product, outputs=divided_by_the_norm_of_all), "outputs of Mine .* for it alone"),
    (changed(Product, outputs=with_a_mean_readout, initial=identity), "outputs of Mine .* for it alone"),
    (changed(Product, point_sets=centred_over_all), "point_sets of Mine .* for it alone"),
    (changed(Product, point_sets=lambda self, parameters, train: 3), "Mine .* TypeError"),
    (changed(Product, loss="mean_squared_error", targets=lambda *_: np.ones((3, 7))), "targets of Mine"),
    (changed(Product, outputs=with_dropout), "dropout of Mine"),
    (changed(Product, dropout=0.5), "dropout of Mine"),
    (changed(Product, outputs=with_dropout, dropout=1.0), "dropout of Mine"),
    (changed(Layers, dropout=0.5), "dropout of Mine"),
    (changed(Product, embedding_penalty=np.inf), "embedding_penalty of Mine"),
    (changed(Table, embedding_penalty=0.5), "embedding_penalty of Mine"),
    (dense(), "Mine .* AttributeError"),
    (dense(architecture=Layers().architecture), "Mine .* AttributeError"),
    (with_architecture(sizes=(5, 9, 7)), "architecture of Mine .* sizes that begin with 4"),
    (changed(Layers, initial=Product.initial), "initial of Mine must return"),
]


@pytest.mark.parametrize(("model", "sentence"), REFUSED, ids=[words for _, words in REFUSED])
def test_what_cannot_be_trained_is_refused_in_a_sentence(model, sentence, tmp_path):
    with pytest.raises(InputError, match=sentence):
        nets.train(model, steps=1, out=tmp_path / "t.h5")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"combine": "difference"}, "combine"),
        ({"activation": "gelu"}, "activation"),
        ({"loss": "hinge"}, "loss"),
        ({"sizes": (4, 7)}, "sizes"),
        ({"sizes": (4, 0, 7)}, "sizes"),
        ({"sizes": 4}, "sizes"),
        ({"combine": "neurons", "activation": "relu"}, "sizes"),
        ({"combine": "product", "sizes": (5, 9, 7)}, "sizes"),
        ({"even": -2.0}, "even"),
    ],
)
def test_an_architecture_that_there_is_not_is_refused(changes, name):
    with pytest.raises(InputError, match=f"^{name} must"):
        replace(Layers().architecture, **changes)


def test_outputs_of_ones_own_are_computed_by_pytorch_alone():
    twice = changed(Layers, outputs=lambda self, *given: 2 * self.architecture.outputs(*given[:2]))
    trained = nets.train(twice, steps=5, dtype="float64", observables=("train_loss", "layers"), device="cpu")
    assert trained.parameters["engine"] == "torch"
    recorded = trained.observables["train_loss"][:, -1]
    np.testing.assert_allclose(nets.networks(trained).loss("train"), recorded)
    with pytest.raises(InputError, match="engine must be 'auto' or 'torch' for Mine"):
        nets.train(twice, engine="fused", device="cpu")


def test_classes_without_an_example_at_all_are_not_missed():
    inputs = np.stack(np.triu_indices(4), axis=1)
    doubled = nets.Task(inputs, 2 * (inputs.sum(axis=1) % 4), 7)  # odd classes are never right
    ensemble = draw(changed(Product, task=doubled), runs=1, seed=0, train_examples=[0, 1, 4])
    assert doubled.labels[[0, 1, 4]].tolist() == [0, 2, 4]
    assert ensemble.unseen_classes == [1]


def test_a_model_that_is_no_dataclass_is_refused():
    bare = type("Bare", (nets.Model,), {n: vars(Product)[n] for n in ("task", "loss", "initial", "outputs")})
    with pytest.raises(InputError, match="a frozen dataclass and a nets.Model, .*, got Bare"):
        nets.train(bare())
