"""Models that are not ours: what `train` makes of them, and what it refuses."""

import re
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
        (np.arange(7.0), "two tokens for each example, got float64 of the shape"),
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
class Neurons(Layers):
    @cached_property
    def architecture(self):
        return nets.Architecture("neurons", (self.dim, self.tokens), "relu", "cross_entropy")

    def initial(self, embedding, layers):
        drawn = super().initial(embedding, layers)
        return {name: drawn[name] for name in ("embedding", "output.weight")}


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


@pytest.mark.parametrize(
    "model", [Neurons(), Table(), changed(Product, outputs=with_dropout, dropout=0.5)], ids=repr
)
def test_models_that_the_refusals_below_are_made_of_can_be_trained(model):
    trained = nets.train(model, runs=2, steps=5, device="cpu")
    assert np.abs(trained.final - trained.initial).max() > 0.01


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (Product, "model must be a model such as ConstantAttention(), got the class Product"),
        (3, "model must be a model such as ConstantAttention(), got int"),
        (Product(tokens=0), "tokens of Product must be at least 1, got 0"),
        (changed(Product, loss="hinge"), "loss of Mine must be one of 'cross_entropy', 'mean_squared_error'"),
        (changed(Product, initial=lambda *_: None), "initial of Mine must return a dict of arrays"),
        (
            changed(Product, initial=lambda *_: {"embedding": np.full((7, 4), np.nan)}),
            "initial['embedding'] of Mine must be finite, got 28 NaN",
        ),
        (
            changed(Product, initial=lambda *_: {"embedding": np.zeros((4, 7))}),
            "the embedding of Mine must have the shape (7, 4), got (4, 7)",
        ),
        (
            changed(Product, initial=lambda *_: {"readout": np.zeros((4, 7))}),
            "encoder of Mine must name the first of its parameters, readout, got embedding",
        ),
        (changed(Product, task=([0], [1])), "task of Mine must be a nets.Task, got tuple"),
        (
            changed(Product, outputs=lambda self, parameters, inputs, dropout=None: inputs),
            "outputs of Mine must return a tensor of shape (2, 3, 7) here, got (2, 3, 2)",
        ),
        (
            changed(Product, point_sets=lambda self, parameters, train: 3),
            "point_sets of Mine must return a tensor of shape (2, 7, 4) here, got int",
        ),
        (
            changed(Product, loss="mean_squared_error", targets=lambda self, generator: np.ones((3, 7))),
            "targets of Mine must have the shape (7, outputs), got (3, 7)",
        ),
        (
            with_architecture(activation="gelu"),
            "architecture.activation of Mine must be one of 'silu', 'relu',",
        ),
        (
            with_architecture(sizes=(5, 9, 7)),
            "architecture of Mine must have the sizes (4, hidden widths, outputs) with at least one hidden "
            "width and the loss 'cross_entropy', got (5, 9, 7)",
        ),
        (
            with_architecture(sizes=(4, 7)),
            "architecture of Mine must have the sizes (4, hidden widths, outputs) with at least one hidden",
        ),
        (
            with_architecture(combine="neurons", activation="relu"),
            "architecture of Mine must have the sizes (4, outputs) and the loss 'cross_entropy', got (4, 9",
        ),
        (
            changed(Layers, loss="mean_squared_error"),
            "architecture of Mine must have the sizes (4, hidden widths, outputs) with at least one hidden "
            "width and the loss 'mean_squared_error', got (4, 9, 7) and 'cross_entropy'",
        ),
        (
            changed(Layers, initial=Product.initial),
            "initial of Mine must return, for its architecture, {'embedding': (7, 4),",
        ),
        (
            changed(Layers, outputs=lambda self, *given: 2 * self.architecture.outputs(*given[:2])),
            "outputs of Mine must agree with its architecture, which both engines compute",
        ),
        (
            with_architecture(embedding_penalty=0.5),
            "embedding_penalty of Mine must agree with its architecture",
        ),
        (
            changed(Product, outputs=divided_by_the_norm_of_all),
            "outputs of Mine must be for each member what they are for it alone, got others for two members",
        ),
        (
            changed(Product, outputs=with_a_mean_readout, initial=identity),
            "outputs of Mine must be for each member what they are for it alone, got others for two members",
        ),
        (
            changed(Product, outputs=with_a_bias_without_an_axis),
            "outputs of Mine must compute two members on three examples, got RuntimeError: The size of",
        ),
        (
            changed(Product, point_sets=centred_over_all),
            "point_sets of Mine must be for each member what they are for it alone, got others for two",
        ),
        *(
            (
                starting_with(scale=value),
                "initial['scale'] of Mine must be an array of floating-point numbers with at least one axis, "
                f"got {got}",
            )
            for value, got in (
                (np.ones(3, int), "int64 of the shape (3,)"),
                (np.array(1.0), "float64 of the shape ()"),
                (1.0, "1.0"),
                ([0.0, 0.5], "[0.0, 0.5]"),
            )
        ),
        (
            changed(Product, initial=lambda *_: {}["scale"]),
            "initial of Mine must return a dict of arrays that is not empty, got KeyError: 'scale'",
        ),
        (
            one_after_the_last(),
            "outputs of Mine must compute two members on three examples, got IndexError: index out of range",
        ),
        (
            starting_with(scale=np.ones(3), shift=np.zeros(2)),
            "outputs of Mine must use each of its parameters, got outputs without scale, shift",
        ),
        (
            changed(Product, outputs=with_whole_numbers),
            "outputs of Mine must have gradients with respect to its parameters, got torch.int64 without any",
        ),
        (
            changed(Product, outputs=with_none_of_the_gradient),
            "outputs of Mine must have gradients with respect to its parameters, got torch.float64",
        ),
        (dense(), "architecture of Mine must be a nets.Architecture, got NoneType"),
        (dense(architecture=("sum", (4, 9))), "architecture of Mine must be a nets.Architecture, got tuple"),
        (
            dense(architecture=Layers().architecture),
            "initial of Mine must return a dict of arrays that is not empty, got AttributeError: 'Mine' "
            "object has no attribute 'initialisation'",
        ),
        (
            changed(Layers, __post_init__=lambda self: self._set(initialisation="x")),
            "initialisation must be one of 'pytorch', 'kaiming_uniform', 'kaiming_normal', 'xavier_uniform',",
        ),
        (with_architecture(sizes=(4, 0, 7)), "architecture.sizes of Mine must be at least 1, got 0"),
        (with_architecture(sizes=(4, 8.5, 7)), "architecture.sizes of Mine must be a whole number of at"),
        (with_architecture(sizes=4), "architecture.sizes of Mine must be a sequence, got 4"),
        (with_architecture(sizes=()), "architecture of Mine must have the sizes (4, hidden widths, outputs)"),
        *(
            (
                changed(Product, outputs=with_dropout, dropout=rate),
                f"dropout of Mine must be a finite number of at least 0 and less than 1, got {rate:g}",
            )
            for rate in (-1.0, 1.0, 1.5)
        ),
        (
            changed(Layers, dropout=0.5),
            "dropout of Mine must be 0 for a model with an architecture, which has none, got 0.5",
        ),
        (
            changed(Product, dropout=0.5),
            "dropout of Mine must be 0 for a model whose outputs drop nothing, got 0.5",
        ),
        (
            changed(Product, outputs=with_dropout),
            "dropout of Mine must be greater than 0 for a model whose outputs drop states, got 0",
        ),
        *(
            (model, f"{name} of Mine must be a finite number of at least 0, got {value}")
            for model, name, value in (
                (with_architecture(even=-2.0), "architecture.even", "-2"),
                (with_architecture(even=np.nan), "architecture.even", "nan"),
                (with_architecture(embedding_penalty=-0.1), "architecture.embedding_penalty", "-0.1"),
                (changed(Product, embedding_penalty=np.inf), "embedding_penalty", "inf"),
            )
        ),
        *(
            (
                changed(Neurons, architecture=replace(Neurons().architecture, **{name: value}), **fields),
                f"architecture.{name} of Mine must be {allowed} where combine is 'neurons', got {value!r}",
            )
            for name, value, allowed, fields in (
                ("even", 0.5, "0", {}),
                ("embedding_penalty", 0.5, "0", {}),
                ("loss", "mean_squared_error", "'cross_entropy'", {"loss": "mean_squared_error"}),
            )
        ),
        (
            changed(Table, embedding_penalty=0.5),
            "embedding_penalty of Mine must be 0 without a parameter named 'embedding', got 0.5",
        ),
    ],
    ids=lambda value: value[:60] if isinstance(value, str) else "",
)
def test_what_cannot_be_trained_is_refused_in_a_sentence(model, sentence, tmp_path):
    with pytest.raises(InputError, match=re.escape(sentence)):
        nets.train(model, steps=1, out=tmp_path / "t.h5")
    assert not list(tmp_path.iterdir())


def test_classes_without_an_example_at_all_are_not_missed():
    inputs = np.stack(np.triu_indices(4), axis=1)
    doubled = nets.Task(inputs, 2 * (inputs.sum(axis=1) % 4), 7)  # odd classes are never right
    ensemble = draw(changed(Product, task=doubled), runs=1, seed=0, train_examples=[0, 1, 4])
    assert doubled.labels[[0, 1, 4]].tolist() == [0, 2, 4]
    assert ensemble.unseen_classes == [1]


def test_a_model_that_is_no_dataclass_is_refused():
    bare = type("Bare", (nets.Model,), {n: vars(Product)[n] for n in ("task", "loss", "initial", "outputs")})
    with pytest.raises(InputError, match="a frozen dataclass whose fields say what it is, got Bare"):
        nets.train(bare())
