import json
import re

import numpy as np
import pytest
import torch

import nets
from nets import ConstantAttention, recording_steps
from nets.architecture import draw_layer
from nets.engines.choice import _device
from nets.tasks import Task, modular_addition
from physics import InputError
from physics.theory.groups import symmetric

OBSERVABLES = {"train_loss", "train_accuracy", "validation_loss", "validation_accuracy", "status"}


def streams(seed, run):
    """Embedding, layers and split of a member, as documented: children of the run's child of the seed."""
    child = np.random.SeedSequence(seed).spawn(run + 1)[run]
    return [np.random.default_rng(stream) for stream in child.spawn(5)]


def test_what_is_recorded(tmp_path):
    trajectory = nets.train(ConstantAttention(7), runs=2, steps=10, record=4, out=tmp_path / "t.h5")
    assert trajectory.positions.shape == (2, 4, 7, 2)
    assert trajectory.positions.dtype == np.float32
    np.testing.assert_array_equal(trajectory.steps, [0, 4, 8, 10])
    assert set(trajectory.observables) == OBSERVABLES
    assert trajectory.complete
    assert trajectory.parameters["model"] == {
        "type": "ConstantAttention",
        "tokens": 7,
        "dim": 2,
        "hidden": 32,
        "initialisation": "pytorch",
    }
    json.dumps(trajectory.parameters)
    in_memory = nets.train(ConstantAttention(7), runs=2, steps=10, record=4)
    np.testing.assert_array_equal(in_memory.positions, trajectory.positions)
    for name in OBSERVABLES:
        np.testing.assert_array_equal(in_memory.observables[name], trajectory.observables[name])


def test_recorded_embeddings_are_copies_of_their_own_step():
    """The published code records live memory on a CPU: its entry i holds step i + 1."""
    model = ConstantAttention(7)
    trajectory = nets.train(model, runs=2, steps=3, record=1, seed=9)
    for run in range(2):
        start = model.initial(*streams(9, run)[:2])["embedding"]
        np.testing.assert_array_equal(trajectory.initial[run], start.astype(np.float32))
    shorter = nets.train(model, runs=2, steps=1, record=1, seed=9)
    np.testing.assert_array_equal(trajectory.frame(1), shorter.frame(1))
    assert not np.array_equal(trajectory.frame(0), trajectory.frame(1))


def test_a_member_does_not_depend_on_the_others():
    ensemble = nets.train(ConstantAttention(7), runs=4, steps=20, record=20, dtype="float64")
    for run in range(4):
        alone = nets.train(ConstantAttention(7), steps=20, record=20, dtype="float64", first_run=run)
        np.testing.assert_array_equal(alone.initial[0], ensemble.initial[run])
        np.testing.assert_allclose(alone.final[0], ensemble.final[run], rtol=0, atol=1e-12)


def test_the_default_initialisation_is_pytorchs():
    model = ConstantAttention(50, 40, 60)
    drawn = model.initial(*streams(0, 0)[:2])
    assert abs(drawn["embedding"].std() - 1) < 0.05
    for name, inputs in (("hidden1", 40), ("output", 60)):
        for part in ("weight", "bias"):
            values = drawn[f"{name}.{part}"]
            assert np.abs(values).max() <= inputs**-0.5
            assert np.abs(values).max() > 0.9 * inputs**-0.5
    assert drawn["hidden1.weight"].std() == pytest.approx(40**-0.5 / 3**0.5, rel=0.05)


def test_the_papers_split():
    task = modular_addition(17)
    assert len(task) == 153
    assert task.training_size(0.8) == 122
    train, validation = task.split(0.8, np.random.default_rng(0))
    assert len(train) == 122
    assert sorted([*train, *validation]) == list(range(153))
    assert (task.labels == task.inputs.sum(axis=1) % 17).all()
    assert (task.inputs[:, 0] <= task.inputs[:, 1]).all()


def test_training_sizes_are_whole_parts_in_decimals():
    for size in (100, 1000):
        task = Task(np.zeros((size, 2), np.int64), np.zeros(size, np.int64), 3)
        for percent in range(1, 100):  # 0.29 * 100 is 28.999… in binary
            assert task.training_size(percent / 100) == percent * size // 100


@pytest.mark.parametrize(
    "model", [nets.ToyAddition(40, 20, scale=3.0), nets.GroupDecoder(symmetric(4), scale=3.0)]
)
def test_embeddings_start_within_half_the_scale(model):
    drawn = model.initial(*streams(0, 0)[:2])["embedding"]
    assert 1.4 < np.abs(drawn).max() <= 1.5
    assert drawn.std() == pytest.approx(3.0 / 12**0.5, rel=0.1)


@pytest.mark.parametrize("rule", ["kaiming_uniform", "kaiming_normal", "xavier_uniform", "xavier_normal"])
def test_initialisations_are_those_of_pytorch(rule):
    theirs = torch.empty(400, 100)  # (outputs, inputs)
    options = {"nonlinearity": "relu"} if rule.startswith("kaiming") else {}
    generator = torch.Generator().manual_seed(0)
    getattr(torch.nn.init, f"{rule}_")(theirs, generator=generator, **options)
    drawn = draw_layer("layer", rule, 100, 400, np.random.default_rng(0))
    ours = drawn["layer.weight"]
    assert ours.shape == (100, 400)
    assert ours.std() == pytest.approx(theirs.std().item(), rel=0.02)
    if rule.endswith("uniform"):
        assert np.abs(ours).max() == pytest.approx(theirs.abs().max().item(), rel=0.01)
    assert not drawn["layer.bias"].any()


def test_networks_learn():
    trajectory = nets.train(ConstantAttention(7), runs=8, steps=600, record=600, weight_decay=0.3)
    loss = trajectory.observables["train_loss"]
    assert (loss[:, -1] < loss[:, 0] / 2).all()
    assert trajectory.observables["train_accuracy"][:, -1].mean() > 0.8


def test_a_diverging_member_is_said():
    with pytest.warns(RuntimeWarning, match=r"1 of 1 runs diverged: .* or a parameter of run 0 is not"):
        nets.train(ConstantAttention(5), steps=30, learning_rate=1e30, weight_decay=0.0)
    with pytest.warns(RuntimeWarning, match=r"1 of 2 runs diverged: .* or a parameter of run 5 is not"):
        nets.train(
            ConstantAttention(5), runs=2, first_run=4, steps=30, learning_rate=[0.01, 1e30], weight_decay=0.0
        )


@pytest.mark.parametrize(
    ("record", "steps", "expected"),
    [
        (3, 7, [0, 3, 6, 7]),
        ("3", 6, [0, 3, 6]),
        ([5, 0, 5], 7, [0, 5]),
        ("0,2,7", 7, [0, 2, 7]),
        (np.array([1, 4]), 7, [1, 4]),
        ("log:1", 1000, [0, 1, 10, 100, 1000]),
        ("log:1", 1, [0, 1]),
        ("1:3,4", 13, [0, 1, 2, 3, 7, 11, 13]),
        ("2:4,3:10,5", 16, [0, 2, 4, 7, 10, 15, 16]),
        ("1:9,2", 4, [0, 1, 2, 3, 4]),
    ],
)
def test_recording_steps(record, steps, expected):
    assert recording_steps(record, steps).tolist() == expected


def test_logarithmic_recording_is_dense_where_it_begins():
    chosen = recording_steps("log", 10_000)
    assert chosen[:6].tolist() == [0, 1, 2, 3, 4, 5] or set(range(4)) <= set(chosen)
    assert chosen[-1] == 10_000
    assert 60 < len(chosen) < 85
    assert (np.diff(chosen) > 0).all()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"runs": 0}, "runs must be at least 1, got 0"),
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"learning_rate": -1}, "learning_rate must be a finite number of at least 0, got -1"),
        ({"weight_decay": -1}, "weight_decay must be a finite number of at least 0, got -1"),
        ({"train_fraction": 0}, "train_fraction must be a finite number greater than 0 and at most 1, got 0"),
        (
            {"train_fraction": 1.0},
            "train_fraction must leave at least one training and one validation example of 153, got 1",
        ),
        ({"train_fraction": 0.001}, "train_fraction must leave at least one training"),
        ({"record": 0}, "record must be at least 1, got 0"),
        (
            {"record": "sometimes"},
            "record must be a number, 'log', 'log:n', 'every:until,every' or a list of steps, got 'some",
        ),
        ({"record": [0, 99999]}, "record must name at least one step and none beyond 2000, got [0, 99999]"),
        ({"record": []}, "record must name at least one step"),
        ({"dtype": "int8"}, "dtype must be one of 'float32', 'float64', got 'int8'"),
        *(
            (
                {"device": device},
                f"device must be 'auto', 'cpu' or a CUDA device such as 'cuda' or 'cuda:1', got {device!r}",
            )
            for device in ("abacus", "meta", "mps", None)
        ),
        ({"model": "mlp"}, "model must be a model such as ConstantAttention(), got str"),
        ({"seed": 1.5}, "seed must be a whole number of at least 0 or a numpy SeedSequence, got 1.5"),
    ],
)
def test_bad_input_ends_in_a_sentence_and_leaves_nothing(arguments, sentence, tmp_path):
    with pytest.raises(InputError) as error:
        nets.train(**arguments, out=tmp_path / "t.h5")
    assert str(error.value).startswith(sentence)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
def test_cuda_asked_for_and_absent():
    with pytest.raises(InputError, match="device must be 'auto' or 'cpu', because this machine"):
        nets.train(device="cuda")


def test_cuda_devices_are_counted(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    assert _device("cuda:1") == "cuda:1"
    with pytest.raises(InputError, match="^device must be at most 'cuda:1' on this machine, got 'cuda:2'$"):
        _device("cuda:2")


@pytest.mark.parametrize(("name", "value"), [("tokens", 2), ("dim", 0), ("hidden", 0)])
def test_a_model_refuses_bad_sizes(name, value):
    with pytest.raises(InputError, match=f"{name} must be at least {value + 1}, got {value}"):
        ConstantAttention(**{name: value})


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"activation": "gelu"}, "activation must be one of 'silu', 'relu', 'tanh', 'asinh', got 'gelu'"),
        ({"activation": "tanh", "even": -1}, "even must be a finite number of at least 0, got -1"),
        ({"even": 0.5}, "even must be 0 for the activation 'silu', which already has an even part"),
    ],
)
def test_an_activation_that_is_not_one_is_refused(fields, sentence):
    with pytest.raises(InputError, match=re.escape(sentence)):
        nets.EmbeddingMLP(**fields)


def test_silu_is_half_of_its_argument_and_the_even_part():
    x = torch.linspace(-6, 6, 25, dtype=torch.float64)
    layers = nets.EmbeddingMLP(7, 4, (6,), activation="tanh", even=1.0).architecture
    even = layers.activate(x) - torch.tanh(x)
    torch.testing.assert_close(x / 2 + even, torch.nn.functional.silu(x))
    torch.testing.assert_close(even, even.flip(0))
