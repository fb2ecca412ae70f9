from itertools import pairwise

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

import nets
from nets import ImageMLP
from nets.engines.ensemble import draw
from nets.models.dense import load_images
from physics import FileFormatError, InputError

IMAGES = np.random.default_rng(0).integers(0, 256, (40, 4, 3), dtype=np.uint8)
LABELS = np.arange(40, dtype=np.uint8) % 5


def write_archive(path, **replaced):
    arrays = {"x_train": IMAGES[:30], "y_train": LABELS[:30], "x_test": IMAGES[30:], "y_test": LABELS[30:]}
    arrays |= replaced
    np.savez(path, **{name: value for name, value in arrays.items() if value is not None})
    return path


# -- files -------------------------------------------------------------------------------------------------


def test_the_digits_are_those_of_scikit_learn():
    images = load_images("digits", 10)
    theirs = load_digits()
    np.testing.assert_array_equal(images.inputs * 16, theirs.data)
    np.testing.assert_array_equal(images.labels, theirs.target)
    assert images.inputs.max() == 1
    assert not len(images.held_out)


def test_bytes_are_scaled_and_floating_pixels_stay(tmp_path):
    images = load_images(str(write_archive(tmp_path / "mnist.npz")), 5)
    np.testing.assert_array_equal(images.inputs, IMAGES.reshape(40, 12).astype(np.float32) / 255)
    np.testing.assert_array_equal(images.labels, LABELS)
    np.testing.assert_array_equal(images.held_out, np.arange(30, 40))
    pixels = np.linspace(-2, 3, 30 * 12).reshape(30, 4, 3)
    images = load_images(str(write_archive(tmp_path / "f.npz", x_train=pixels, x_test=None, y_test=None)), 5)
    np.testing.assert_array_equal(images.inputs, pixels.reshape(30, 12).astype(np.float32))
    assert not len(images.held_out)


@pytest.mark.parametrize(
    ("replaced", "sentence"),
    [
        ({"x_train": None}, "npz archive of x_train and y_train"),
        ({"y_test": None}, "npz archive of x_train"),
        ({"x_train": np.array([None] * 30)}, "npz archive of x_train"),
        ({"x_train": IMAGES[:30].astype(np.int32)}, "bytes or floating-point"),
        ({"x_test": IMAGES[30:, :3]}, "npz archive of x_train"),
        ({"x_train": np.full((30, 4, 3), np.nan)}, "finite"),
        ({"y_train": LABELS[:30] / 2}, "labels must be whole numbers"),
        ({"y_train": LABELS[:20]}, "a row for each label"),
        ({"y_train": LABELS[:30].astype(int) - 1}, "from 0 to 4"),
    ],
)
def test_bad_archives_end_in_a_sentence(replaced, sentence, tmp_path):
    with pytest.raises((FileFormatError, InputError), match=sentence):
        ImageMLP(str(write_archive(tmp_path / "m.npz", **replaced)), classes=5)


# -- the model ---------------------------------------------------------------------------------------------


def plain_training(model, *, run, steps, scale, rates, decay, train_fraction):
    """One network at a time, of PyTorch's own modules, with their own optimizer."""
    child = np.random.SeedSequence(0).spawn(run + 1)[run]
    _, layers, split, *_ = (np.random.default_rng(stream) for stream in child.spawn(5))
    drawn = model.initial(None, layers)
    sizes = model.architecture.sizes
    linear = [torch.nn.Linear(*pair).double() for pair in pairwise(sizes)]
    with torch.no_grad():
        for layer, name in zip(linear, model.architecture.layers, strict=True):
            layer.weight.copy_(scale * torch.tensor(drawn[f"{name}.weight"]).T)
            layer.bias.copy_(scale * torch.tensor(drawn[f"{name}.bias"][0]))
    encoder = torch.nn.Sequential(*(m for layer in linear[:-1] for m in (layer, torch.nn.ReLU())))
    groups = [
        {"params": encoder.parameters(), "lr": rates[0]},
        {"params": linear[-1].parameters(), "lr": rates[1]},
    ]
    optimizer = torch.optim.AdamW(groups, weight_decay=decay)
    train, validation = model.task.split(train_fraction, split)
    images, labels = torch.tensor(model.task.inputs).double(), torch.tensor(model.task.labels)
    targets = torch.eye(model.classes, dtype=torch.float64)[labels]
    means, losses, accuracies = [], [], []
    for _ in range(steps + 1):
        hidden = encoder(images)
        outputs = linear[-1](hidden)
        loss = torch.nn.functional.mse_loss(outputs[train], targets[train])
        held = torch.nn.functional.mse_loss(outputs[validation], targets[validation])
        losses.append((loss.item(), held.item()))
        accuracies.append((outputs.argmax(1) == labels)[validation].double().mean().item())
        chosen = hidden[train].detach()
        means.append([chosen[labels[train] == c].mean(0).numpy() for c in range(model.classes)])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return np.array(means), np.array(losses), np.array(accuracies)


@pytest.mark.parametrize("held_out", [False, True], ids=["the rest validates", "a test set validates"])
def test_every_member_is_trained_as_pytorchs_own_modules_would(held_out, tmp_path):
    ends = {} if held_out else {"x_test": None, "y_test": None}
    model = ImageMLP(str(write_archive(tmp_path / "m.npz", **ends)), hidden=(9, 7), classes=5)
    ensemble = nets.train(
        model,
        runs=2,
        steps=50,
        record=1,
        dtype="float64",
        layer_scale=2.0,
        learning_rate=3e-3,
        embedding_learning_rate=1e-3,
        weight_decay=0.1,
        train_fraction=0.6,
    )
    for run in range(2):
        means, losses, accuracies = plain_training(
            model, run=run, steps=50, scale=2.0, rates=(1e-3, 3e-3), decay=0.1, train_fraction=0.6
        )
        assert np.abs(ensemble.positions[run] - means).max() <= 1e-12
        for column, part in enumerate(("train", "validation")):
            assert np.abs(ensemble.observables[f"{part}_loss"][run] - losses[:, column]).max() <= 1e-12
        np.testing.assert_allclose(ensemble.observables["validation_accuracy"][run], accuracies, atol=1e-12)


def test_the_test_set_validates_alone(tmp_path):
    task = ImageMLP(str(write_archive(tmp_path / "m.npz")), classes=5).task
    train, validation = task.split(0.5, np.random.default_rng(1))
    assert len(train) == 15
    assert all(task.split(0.5, np.random.default_rng(seed))[0].max() < 30 for seed in range(20))
    np.testing.assert_array_equal(validation, np.arange(30, 40))
    np.testing.assert_array_equal(task.given_split([3, 1])[1], np.arange(30, 40))
    with pytest.raises(InputError, match="train_fraction must be .* at most 1, got 1.1"):
        task.split(1.1, np.random.default_rng(1))
    assert len(task.split(1.0, np.random.default_rng(1))[0]) == 30


def test_class_means_are_those_of_the_definition(tmp_path):
    model = ImageMLP(str(write_archive(tmp_path / "m.npz")), hidden=(6,), classes=5)
    parameters = {name: torch.tensor(value) for name, value in draw(model, runs=1, seed=0).parameters.items()}
    chosen = np.array([0, 1, 2, 5, 6, 10])
    labels = np.array([0, 0, 3, 3, 3, 1])
    images = torch.tensor(model.task.inputs[chosen][None], dtype=torch.float64)
    found = model.point_sets(parameters, (images, torch.tensor(labels[None])))[0].numpy()
    W, b = (parameters[f"hidden1.{part}"][0].numpy() for part in ("weight", "bias"))
    states = np.maximum(images[0].numpy() @ W + b, 0)
    for c in range(5):
        expected = states[labels == c].mean(axis=0) if (labels == c).any() else np.zeros(6)
        np.testing.assert_allclose(found[c], expected, atol=1e-12)
