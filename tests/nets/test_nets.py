import numpy as np
import pytest
import torch

import nets
from nets import ConstantAttention
from nets.architecture import draw_layer
from nets.tasks import modular_addition


def streams(seed, run):
    """Embedding, layers and split of a member, as documented: children of the run's child of the seed."""
    child = np.random.SeedSequence(seed).spawn(run + 1)[run]
    return [np.random.default_rng(stream) for stream in child.spawn(5)]


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


def test_the_papers_split():
    task = modular_addition(17)
    assert len(task) == 153
    assert task.training_size(0.8) == 122
    train, validation = task.split(0.8, np.random.default_rng(0))
    assert len(train) == 122
    assert sorted([*train, *validation]) == list(range(153))
    assert (task.labels == task.inputs.sum(axis=1) % 17).all()
    assert (task.inputs[:, 0] <= task.inputs[:, 1]).all()


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


def test_silu_is_half_of_its_argument_and_the_even_part():
    x = torch.linspace(-6, 6, 25, dtype=torch.float64)
    layers = nets.EmbeddingMLP(7, 4, (6,), activation="tanh", even=1.0).architecture
    even = layers.activate(x) - torch.tanh(x)
    torch.testing.assert_close(x / 2 + even, torch.nn.functional.silu(x))
    torch.testing.assert_close(even, even.flip(0))
