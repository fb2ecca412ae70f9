"""`grokphys train`: what the command line fills is what Python users pass."""

import numpy as np
import pytest

import nets
import physics
from grokphys.cli.main import main
from grokphys.models import named_group

LIU = {
    "learning_rate": 0.001,
    "weight_decay": 0.0,
    "embedding_learning_rate": 0.001,
    "embedding_weight_decay": 0.0,
}


@pytest.mark.parametrize(
    ("words", "model", "options"),
    [
        (
            "--model embedding-mlp --tokens 7 --dim 4 --hidden 6 5 --activation tanh --even 0.5",
            nets.EmbeddingMLP(7, 4, (6, 5), activation="tanh", even=0.5),
            {"weight_decay": 0.5},
        ),
        (
            "--model toy-addition --tokens 5 --kind classification --hidden 8 --scale 0.5 --initialisation "
            "xavier_normal --learning-rate 0.001 0.01 --embedding-weight-decay 0",
            nets.ToyAddition(
                5, hidden=(8,), kind="classification", scale=0.5, initialisation="xavier_normal"
            ),
            LIU | {"learning_rate": [0.001, 0.01]},
        ),
        (
            "--model group-decoder --group D3 --hidden 8 --shared layers split --batch-size 9 --engine torch",
            nets.GroupDecoder(physics.theory.dihedral(3), hidden=(8,)),
            LIU | {"shared": ("layers", "split"), "batch_size": 9, "engine": "torch"},
        ),
        (
            "--model TokenTransformer --tokens 5 --dim 4 --depth 1 --heads 2 --width 6 --causal False "
            "--dropout 0.1",
            nets.TokenTransformer(5, 4, depth=1, heads=2, width=6, causal=False, dropout=0.1),
            LIU | {"weight_decay": 1.0},
        ),
        (
            "--model two-layer --tokens 7 --hidden 5 --activation abs --start single_frequency --scale 0.3 "
            "--optimizer sgd",
            nets.TwoLayer(7, 5, "abs", "single_frequency", 0.3),
            {"learning_rate": 1e-4, "weight_decay": 0.0, "train_fraction": 1.0, "optimizer": "sgd"},
        ),
        (
            "--tokens 5 --freeze-embedding --observables quality layers --threshold train_accuracy=0.2 "
            "--track 2 --stop-at-thresholds --layer-scale 2 --embedding-scale 0.5 1",
            nets.ConstantAttention(5),
            {
                "freeze_embedding": True,
                "observables": ("quality", "layers"),
                "thresholds": {"train_accuracy": 0.2},
                "track": 2,
                "stop": "thresholds",
                "layer_scale": 2.0,
                "embedding_scale": [0.5, 1.0],
            },
        ),
    ],
)
def test_the_command_does_what_python_would(words, model, options, tmp_path, capsys):
    path = tmp_path / "t.h5"
    status = main(
        ["train", *words.split(), "--runs", "2", "--steps", "6", "--record", "3", "--out", str(path)]
    )
    assert status == 0, capsys.readouterr().err
    found = physics.load(path)
    expected = nets.train(model, runs=2, steps=6, record=3, **options)
    np.testing.assert_array_equal(found.positions, expected.positions)
    assert found.parameters == expected.parameters
    assert set(found.observables) == set(expected.observables)


def test_groups_by_name():
    orders = {"Z5": 5, "s3": 6, "A4": 12, "D4": 8, "Q8": 8}
    assert {name: named_group(name).order for name in orders} == orders
