"""The image classifier with which Liu et al. show grokking on real data, and the reader of its images."""

import hashlib
import os
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nets.architecture import Architecture, Initialisation
from nets.models.dense import checked_widths
from nets.models.model import DenseModel, Parameters
from nets.tasks import Task
from physics.errors import FileFormatError, InputError

if TYPE_CHECKING:
    from torch import Tensor

DIGITS = "digits"


@dataclass(frozen=True)
class ImageMLP(DenseModel):
    """Dense layers on the pixels of an image, which show grokking on real data (Liu et al. §4.3, Appendix J).

    The layers have ReLU, and the squared error compares the output with one-hot targets. Since there is no
    embedding, the recorded positions (classes, width) are the mean activations of the last hidden layer over
    the training images of each class; they are zero for a class without training images. The decoder is the
    last layer. The encoder is all other layers, which train with the rates of the embedding in `nets.train`.

    Parameters
    ----------
    data : str, default "digits"
        "digits" for the 1797 images of 8 × 8 pixels that come with scikit-learn. Otherwise the path of an npz
        archive, such as that of MNIST by Keras; see `nets.models.images.load_images`. A test set in the data
        is the validation set. The digits have none, so the images that are not used for training are the
        validation set.
    hidden : sequence of int, default (200, 200)
        Width of each hidden layer, at least 1; at least one layer. With the output, the default has the
        paper's depth of 3.
    classes : int, default 10
        Number of classes, at least 3. Labels must be from 0 to ``classes - 1``.
    initialisation : str, default "pytorch"
        Distribution of the initial weights: "pytorch" (uniform on ±1/√inputs, for biases too), or
        "kaiming_uniform", "kaiming_normal", "xavier_uniform" or "xavier_normal" with biases of zero. The
        "Kaiming uniform" of the paper is "pytorch" here: PyTorch's default for a linear layer, the rule with
        a = √5.
    digest : str, optional
        Fingerprint that the images must have, so that a run is only continued with the data it began with. It
        is computed if it is not given.

    Raises
    ------
    InputError
        If a value is out of its range.
    FileFormatError
        If the images cannot be read or do not have the fingerprint `digest`.

    Notes
    -----
    The paper's large initialization is ``nets.train(..., layer_scale=8)``, which multiplies weights and
    biases, as the published code of the authors' later work does; the paper says "the initial weights". Its
    training set of 1000 images is ``train_fraction=1000 / images``. The images are stored once as float32,
    and each member stores the indices of its training images.

    Examples
    --------
    >>> import nets
    >>> model = nets.ImageMLP(hidden=(16,))
    >>> len(model.task), nets.train(model, steps=3, train_fraction=0.1).positions.shape
    (1797, (1, 2, 10, 16))
    """

    data: str = DIGITS
    hidden: tuple[int, ...] = (200, 200)
    classes: int = 10
    initialisation: Initialisation = "pytorch"
    digest: str | None = None

    settings: ClassVar[Mapping[str, Any]] = {
        "learning_rate": 1e-3,
        "weight_decay": 0.01,
        "train_fraction": 1000 / 1797,  # the paper trains on 1000 images
        "steps": 6000,
    }

    def __post_init__(self) -> None:
        if not isinstance(self.data, str | os.PathLike):
            raise InputError(f"data must be 'digits' or a path, got {type(self.data).__name__}")
        self._set(
            data=DIGITS if self.data == DIGITS else str(Path(self.data).absolute()),
            hidden=checked_widths(self.hidden),
        )
        self._check(classes=3)
        digest = _digest(self.task)
        if self.digest not in (None, digest):
            raise FileFormatError(
                f"the images of {self.data} have the digest {digest} instead of {self.digest}; the run used "
                "other files"
            )
        self._set(digest=digest)

    @property
    def tokens(self) -> int:  # type: ignore[override]
        """Number of recorded points, which is the number of classes."""
        return self.classes

    @property
    def dim(self) -> int:  # type: ignore[override]
        """Dimension of the recorded points, which is the width of the last hidden layer."""
        return self.hidden[-1]

    @property
    def encoder(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the parameters of all layers but the last, which train with the rates of the embedding."""
        return tuple(
            f"{name}.{part}" for name in self.architecture.layers[:-1] for part in ("weight", "bias")
        )

    @cached_property
    def task(self) -> Task:
        """Classification of the images. A test set that comes with the data is never drawn for training."""
        return load_images(self.data, self.classes)

    @cached_property
    def architecture(self) -> Architecture:  # type: ignore[override]
        """Layers of the model: dense layers on the pixels, and the squared error."""
        sizes = (self.task.inputs.shape[1], *self.hidden, self.classes)
        return Architecture("data", sizes, "relu", "mean_squared_error")

    def initial(self, embedding: np.random.Generator, layers: np.random.Generator) -> Parameters:
        """Draw the initial weights and biases of one member.

        Parameters
        ----------
        embedding : numpy.random.Generator
            Not used, because there is no embedding.
        layers : numpy.random.Generator
            Random stream of the layers.

        Returns
        -------
        dict of ndarray of float64
            Weights (inputs, outputs) and biases (1, outputs) by name.
        """
        return self.architecture.draw(self.initialisation, layers)

    def point_sets(self, parameters: dict[str, "Tensor"], train: tuple["Tensor", "Tensor"]) -> "Tensor":
        """Return the mean activation of the last hidden layer over the training images of each class.

        Parameters
        ----------
        parameters : dict of Tensor
            Parameters by name, each with a first axis of length runs.
        train : pair of Tensor
            Images (runs, examples, pixels) and labels (runs, examples) of the training sets.

        Returns
        -------
        Tensor, shape (runs, classes, width)
            Mean activations; zero for a class without training images.
        """
        from torch.nn.functional import one_hot

        images, labels = train
        states = self.architecture.hidden(parameters, images)
        member: Any = one_hot(labels, self.classes).to(states.dtype)
        return member.transpose(1, 2) @ states / member.sum(1).clamp(min=1)[..., None]


def load_images(data: str, classes: int) -> Task:
    """Read labeled images from a file, or from scikit-learn.

    Parameters
    ----------
    data : str
        "digits" for the 1797 images of 8 × 8 pixels that come with scikit-learn. Otherwise the path of an npz
        archive that holds ``x_train`` and ``y_train``, and, if there is a test set, ``x_test`` and
        ``y_test``, such as ``mnist.npz`` of Keras.
    classes : int
        Number of classes; labels must be from 0 to classes - 1.

    Returns
    -------
    Task
        Images as rows of float32, and their labels; the test set is held out. Pixels that are bytes, and the
        digits, are scaled to [0, 1]; floating-point pixels of an archive are not changed.

    Raises
    ------
    FileFormatError
        If the file is missing, damaged or in another format.
    InputError
        If pixels are not finite, or labels are not from 0 to classes - 1 or not one for each image.
    """
    if data == DIGITS:
        from sklearn.datasets import load_digits

        digits = load_digits()
        return Task(digits.data.astype(np.float32) / np.float32(16), digits.target, classes)
    try:
        with np.load(data, allow_pickle=False) as archive:
            parts = ["train", "test"] if "x_test" in archive else ["train"]
            images, labels = ([archive[f"{kind}_{part}"] for part in parts] for kind in "xy")
        pixels, answers = np.concatenate(images), np.concatenate(labels)
        if pixels.dtype != np.uint8 and pixels.dtype.kind != "f":
            raise ValueError(f"pixels must be bytes or floating-point numbers, got {pixels.dtype}")
        scale = 255 if pixels.dtype == np.uint8 else 1
        pixels = pixels.reshape(len(pixels), -1).astype(np.float32) / np.float32(scale)
    except (OSError, ValueError, LookupError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise FileFormatError(
            f"data must be 'digits', or an npz archive of x_train and y_train, got {data} ({error})"
        ) from None
    return Task(pixels, answers, classes, np.arange(len(images[0]), len(pixels)))


def _digest(task: Task) -> str:
    """Return the fingerprint "sha256:…" of images, labels and the number of images before the test set."""
    digest = hashlib.sha256(f"{task.inputs.shape} {len(task) - len(task.held_out)}".encode())
    digest.update(np.ascontiguousarray(task.inputs, "<f4").data)
    digest.update(np.ascontiguousarray(task.labels, "<i8").data)
    return f"sha256:{digest.hexdigest()}"
