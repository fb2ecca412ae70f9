"""What `nets` refuses: one table of calls, and the name that the sentence must hold."""

import numpy as np
import pytest

import nets
from nets.interventions import with_signals
from physics import InputError

SMALL = nets.ConstantAttention(7)
E = np.random.default_rng(0).standard_normal((6, 2))


def networks():
    return nets.Training(nets.EmbeddingMLP(5, 4, (4,)), runs=3).networks()


def task(**changes):
    given = {"inputs": np.zeros((3, 2), int), "labels": [0, 1, 0], "classes": 2} | changes
    return lambda: nets.Task(**given)


ARGUMENTS = [
    {"learning_rate": [0.1, 0.1, 0.1]},
    {"weight_decay": np.nan},
    {"embedding_weight_decay": -1},
    {"betas": (0.9, 1.0)},
    {"epsilon": 0},
    {"batch_size": 23},
    {"shared": ("weights",)},
    {"initial": {"head": 1}},
    {"train_examples": []},
    {"train_fraction": 1.0},
    {"observables": ("loss",)},
    {"thresholds": {"loss": 1}},
    {"stop": "thresholds"},
    {"steps": 0},
    {"track": 0},
    {"delta": 0},
    {"layer_scale": 0},
    {"embedding_scale": [1.0]},
    {"optimizer": "adam"},
    {"dtype": "float16"},
    {"engine": "steam"},
    {"device": "tpu"},
    {"chunk": 0},
    {"record": "5:3,2:1,1"},
    {"run_numbers": [1]},
    {"out": 5},
    {"freeze_embedding": 1},
    {"stable_gradient": 1},
    {"callback": 3},
    {"progress": 3},
]
CALLS = [
    *(((lambda g=given: nets.train(SMALL, **{"runs": 2, "steps": 10, **g})), next(iter(given)))
      for given in ARGUMENTS),
    (lambda: nets.train("attention"), "model"),
    (lambda: nets.train(SMALL, validation_examples=[1]), "train_examples"),
    (lambda: nets.train(SMALL, train_examples=[0, 1], validation_examples=[1]), "validation_examples"),
    (lambda: nets.train(SMALL, resume=True), "out"),
    (lambda: nets.train(nets.TokenTransformer(5, 4, width=4), engine="fused", device="cpu"), "engine"),
    (lambda: nets.train(nets.ImageMLP(hidden=(4,)), observables=("gradient",)), "observables"),
    (lambda: nets.Training(SMALL).advance(0), "steps"),
    (lambda: nets.Training(SMALL).set_rates(momentum=1.0), "rates"),
    (lambda: nets.Training(SMALL).set_rates(weight_decay=-1), "weight_decay"),
    (lambda: nets.Training(SMALL).losses("test"), "part"),
    (lambda: networks().loss("test"), "part"),
    (lambda: networks().member(3), "run"),
    (lambda: networks().outputs([[0, 5]]), "inputs"),
    (lambda: networks().with_embedding(np.zeros((5, 3))), "E"),
    (lambda: networks().classify(np.zeros((2, 4))), "classify"),
    (lambda: nets.interventions.scale_frequency(E, 0, 1.0), "frequency"),
    (lambda: nets.interventions.scale_frequency(E, 1, -0.1), "factor"),
    (lambda: nets.interventions.scale_frequency(E[:2], 1, 1.0), "E"),
    (lambda: nets.keep_frequencies(E, [1, 7]), "frequencies"),
    (lambda: with_signals(E, [1.0]), "signals"),
    (lambda: with_signals(0 * E, [0, 1, 0]), "E"),
    (task(labels=[0, 1, 2]), "labels"),
    (task(labels=[0, 1]), "inputs"),
    (task(inputs=np.full((3, 2), np.nan)), "inputs"),
    (task(held_out=[1, 1]), "held_out"),
    (task(classes=0), "classes"),
    (lambda: nets.ConstantAttention(2), "tokens"),
    (lambda: nets.ConstantAttention(hidden=0), "hidden"),
    (lambda: nets.ConstantAttention(initialisation="zeros"), "initialisation"),
    (lambda: nets.EmbeddingMLP(hidden=()), "hidden"),
    (lambda: nets.EmbeddingMLP(activation="gelu"), "activation"),
    (lambda: nets.EmbeddingMLP(even=0.5), "even"),
    (lambda: nets.ToyAddition(kind="both"), "kind"),
    (lambda: nets.ToyAddition(scale=0), "scale"),
    (lambda: nets.GroupDecoder([[0, 1], [1, 1]]), "table"),
    (lambda: nets.GroupDecoder(embedding_penalty=-1), "embedding_penalty"),
    (lambda: nets.TokenTransformer(dim=6, heads=4), "heads"),
    (lambda: nets.TokenTransformer(dropout=1.0), "dropout"),
    (lambda: nets.TokenTransformer(causal=1), "causal"),
    (lambda: nets.TwoLayer(22, start="single_frequency"), "tokens"),
    (lambda: nets.TwoLayer(activation="asinh"), "activation"),
    (lambda: nets.ImageMLP(classes=2), "classes"),
    (lambda: nets.ImageMLP(3), "data"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "name"), CALLS, ids=[f"{n} {name}" for n, (_, name) in enumerate(CALLS)])
def test_a_refusal_names_what_it_refuses(call, name):
    with pytest.raises(InputError, match=rf"\b{name}\b"):
        call()
