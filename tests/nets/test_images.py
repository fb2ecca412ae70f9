import gzip
import struct
from itertools import pairwise

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

import nets
from nets import ImageMLP
from nets.engines.ensemble import draw
from nets.models.images import load_images
from physics import FileFormatError, InputError

IMAGES = np.random.default_rng(0).integers(0, 256, (40, 4, 3), dtype=np.uint8)
LABELS = np.arange(40, dtype=np.uint8) % 5


def idx(array, *, magic=None):
    """An IDX file, written by hand."""
    head = bytes([0, 0, 8, array.ndim]) if magic is None else magic
    return head + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def write_idx(folder, *, compressed=False, **replaced):
    """MNIST's four files: 30 images to train on and 10 to test."""
    files = {
        "train-images-idx3-ubyte": idx(IMAGES[:30]),
        "train-labels-idx1-ubyte": idx(LABELS[:30]),
        "t10k-images-idx3-ubyte": idx(IMAGES[30:]),
        "t10k-labels-idx1-ubyte": idx(LABELS[30:]),
    }
    files |= {name.replace("_", "-") + "-ubyte": content for name, content in replaced.items()}
    for name, content in files.items():
        if content is None:
            continue
        if compressed:
            (folder / f"{name}.gz").write_bytes(gzip.compress(content))
        else:
            (folder / name).write_bytes(content)
    return folder


def write_archive(path, **replaced):
    arrays = {"x_train": IMAGES[:30], "y_train": LABELS[:30], "x_test": IMAGES[30:], "y_test": LABELS[30:]}
    arrays |= replaced
    np.savez(path, **{name: value for name, value in arrays.items() if value is not None})
    return path


# -- files -------------------------------------------------------------------------------------------------


def test_the_digits_have_ten_classes():
    with pytest.raises(FileFormatError, match="from 0 to classes - 1 = 4, got 0 to 9 in digits"):
        load_images("digits", 5)


def test_the_digits_are_those_of_scikit_learn():
    images = load_images("digits", 10)
    theirs = load_digits()
    np.testing.assert_array_equal(images.pixels * 16, theirs.data)
    np.testing.assert_array_equal(images.labels, theirs.target)
    assert images.pixels.max() == 1
    assert images.trainable == 1797


@pytest.mark.parametrize("form", ["idx", "idx.gz", "npz"])
def test_mnist_from_every_form_is_the_same(form, tmp_path):
    if form.startswith("idx"):
        path = write_idx(tmp_path, compressed=form.endswith("gz"))
    else:
        path = write_archive(tmp_path / "mnist.npz")
    images = load_images(str(path), 5)
    np.testing.assert_array_equal(images.pixels, IMAGES.reshape(40, 12).astype(np.float32) / 255)
    np.testing.assert_array_equal(images.labels, LABELS)
    assert images.trainable == 30
    assert images.digest == load_images(str(write_archive(tmp_path / "other.npz")), 5).digest
    for path in list(tmp_path.glob("*-idx*")):  # some downloads have a dot there
        path.rename(path.with_name(path.name.replace("-idx", ".idx")))
    if form.startswith("idx"):
        assert load_images(str(tmp_path), 5).digest == images.digest


def test_a_test_set_may_be_missing_and_floating_pixels_stay(tmp_path):
    folder = write_idx(tmp_path, t10k_images_idx3=None, t10k_labels_idx1=None)
    assert load_images(str(folder), 5).trainable == len(load_images(str(folder), 5).labels) == 30
    pixels = np.linspace(-2, 3, 30 * 12).reshape(30, 4, 3)
    path = write_archive(tmp_path / "f.npz", x_train=pixels, x_test=None, y_test=None)
    images = load_images(str(path), 5)
    np.testing.assert_array_equal(images.pixels, pixels.reshape(30, 12).astype(np.float32))


@pytest.mark.parametrize(
    ("replaced", "sentence"),
    [
        ({"train_images_idx3": None}, "must hold train-images-idx3-ubyte"),
        ({"t10k_labels_idx1": None}, "must hold t10k-labels-idx1-ubyte"),
        ({"train_images_idx3": idx(IMAGES[:30])[:-5]}, "cannot be read"),
        ({"train_images_idx3": idx(IMAGES[:30])[:9]}, "cannot be read"),
        ({"train_labels_idx1": idx(LABELS[:30]) + b"??"}, "cannot be read"),
        ({"train_images_idx3": b""}, "IDX file"),
        ({"train_labels_idx1": idx(LABELS[:30], magic=bytes([0, 0, 13, 1]))}, "IDX file"),
        ({"train_images_idx3": gzip.compress(idx(IMAGES[:30]))[:-20]}, "cannot be read"),
        ({"train_images_idx3": idx(LABELS[:30])}, "one label for each"),
        ({"train_labels_idx1": idx(LABELS[:29])}, "one label for each"),
        ({"t10k_images_idx3": idx(IMAGES[30:, :3])}, "of one size"),
        ({"t10k_labels_idx1": idx(LABELS[30:] + 1)}, "from 0 to classes - 1 = 4"),
    ],
)
def test_bad_idx_files_end_in_a_sentence(replaced, sentence, tmp_path):
    with pytest.raises(FileFormatError, match=sentence):
        ImageMLP(str(write_idx(tmp_path, **replaced)), classes=5)


@pytest.mark.parametrize(
    ("replaced", "sentence"),
    [
        ({"x_train": None}, "must hold x_train"),
        ({"y_test": None}, "must hold y_test"),
        ({"x_train": np.array([None] * 30)}, "cannot be read"),
        ({"x_train": IMAGES[:30].astype(np.int32)}, "pixels that are bytes or finite"),
        ({"x_train": np.full((30, 4, 3), np.nan)}, "pixels that are bytes or finite"),
        ({"y_train": LABELS[:30] / 2}, "whole labels"),
        ({"y_train": LABELS[:20]}, "one label for each"),
        ({"y_train": LABELS[:30].astype(int) - 1}, "from 0 to classes - 1 = 4"),
    ],
)
def test_bad_archives_end_in_a_sentence(replaced, sentence, tmp_path):
    with pytest.raises(FileFormatError, match=sentence):
        ImageMLP(str(write_archive(tmp_path / "m.npz", **replaced)), classes=5)


def test_other_files_and_other_images_end_in_a_sentence(tmp_path):
    (tmp_path / "text.npz").write_text("not an archive")
    for path in (tmp_path / "text.npz", tmp_path / "nowhere"):
        with pytest.raises(FileFormatError, match="text.npz|none at"):
            ImageMLP(str(path))
    model = ImageMLP(str(write_archive(tmp_path / "m.npz")), classes=5)
    write_archive(tmp_path / "m.npz", y_train=LABELS[1:31])
    with pytest.raises(FileFormatError, match="digest"):
        ImageMLP(model.data, classes=5, digest=model.digest)


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
