"""Models that are not ours: what `train` makes of them, and what it refuses."""

import inspect
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


def never(step, embeddings, observables):
    return np.zeros(len(embeddings), bool)


@pytest.mark.parametrize("edited", ["Product", "never"])
def test_a_model_or_a_stop_rule_that_was_edited_does_not_resume(tmp_path, monkeypatch, edited):
    def interrupt(step, *_):
        if step == 4:
            raise KeyboardInterrupt

    options = {"steps": 6, "record": 2, "observables": "layers", "out": tmp_path / "t.h5", "stop": never}
    with pytest.raises(KeyboardInterrupt):
        nets.train(Product(), **options, callback=interrupt)
    read = inspect.getsource
    with monkeypatch.context() as other, pytest.raises(InputError, match=rf"source_code: .*'{edited}'"):
        changed = globals()[edited]
        other.setattr(inspect, "getsource", lambda one: read(one) + "# edited" * (one is changed))
        nets.train(Product(), **options, resume=True)
    found = nets.train(Product(), **options, resume=True)
    assert sorted(found.parameters["source_code"]) == ["Product", "never"]
    assert nets.networks(found).model == Product()


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
    assert trained.parameters["model"] == {"type": "Product", "tokens": 7, "dim": 4}
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


def changed(base, **members):
    return dataclass(frozen=True)(type("Mine", (base,), members))()


def with_architecture(**fields):
    return changed(Layers, architecture=replace(Layers().architecture, **fields))


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
            "outputs of Mine must return a tensor of shape (1, 2, 7) here, got (1, 2, 2)",
        ),
        (
            changed(Product, point_sets=lambda self, parameters, train: 3),
            "point_sets of Mine must return a tensor of shape (1, 7, 4) here, got int",
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
            changed(Layers, outputs=lambda self, parameters, inputs, dropout=None: torch.zeros(1, 2, 7)),
            "outputs of Mine must agree with its architecture, which both engines compute",
        ),
        (
            with_architecture(embedding_penalty=0.5),
            "embedding_penalty of Mine must agree with its architecture",
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
