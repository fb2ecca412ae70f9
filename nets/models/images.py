"""The image classifier with which Liu et al. show grokking on real data, and the reader of its images."""

import gzip
import hashlib
import os
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, get_args

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from nets.architecture import Architecture, Initialisation
from nets.models.dense import checked_widths
from nets.models.model import DenseModel, Parameters
from nets.tasks import Task
from physics.checks import choice, whole_number
from physics.errors import FileFormatError, InputError
from physics.values import Value

if TYPE_CHECKING:
    from torch import Tensor

DIGITS = "digits"


@dataclass(frozen=True, eq=False)
class Images(Value):
    """Labeled images, one in each row; those that may be used for training come first.

    Attributes
    ----------
    pixels : ndarray of float32, shape (images, pixels)
        Brightness of each pixel; usually from 0 to 1.
    labels : ndarray of int64, shape (images,)
        Class of each image.
    trainable : int
        Number of images before the test set; all of them if there is no test set.
    """

    pixels: NDArray[np.float32]
    labels: NDArray[np.int64]
    trainable: int

    @property
    def digest(self) -> str:
        """Fingerprint "sha256:…" of the pixels, the labels and the number of images before the test set."""
        found = hashlib.sha256(f"{self.pixels.shape} {self.trainable}".encode())
        found.update(np.ascontiguousarray(self.pixels, "<f4").data)
        found.update(np.ascontiguousarray(self.labels, "<i8").data)
        return f"sha256:{found.hexdigest()}"


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
        archive, or of a directory of MNIST's IDX files; see `nets.models.images.load_images`. A test set in
        the data is the validation set. The digits have none, so the images that are not used for training are
        the validation set.
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
        If the images cannot be read, do not have the fingerprint `digest`, or have other labels.

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
            classes=whole_number("classes", self.classes, 3),
        )
        choice("initialisation", self.initialisation, get_args(Initialisation))
        found = self._images.digest
        if self.digest not in (None, found):
            raise FileFormatError(
                f"the images of {self.data} have the digest {found} instead of {self.digest}; the "
                f"run used other files"
            )
        self._set(digest=found)

    @cached_property
    def _images(self) -> Images:
        return load_images(self.data, self.classes)

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
        images = self._images
        held_out = np.arange(images.trainable, len(images.labels))
        return Task(images.pixels, images.labels, self.classes, held_out)

    @cached_property
    def architecture(self) -> Architecture:  # type: ignore[override]
        """Layers of the model: dense layers on the pixels, and the squared error."""
        sizes = (self._images.pixels.shape[1], *self.hidden, self.classes)
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


# -- images from files -------------------------------------------------------------------------------------


def load_images(data: str, classes: int) -> Images:
    """Read labeled images from a file, a directory, or scikit-learn.

    Parameters
    ----------
    data : str
        "digits" for the 1797 images of 8 × 8 pixels that come with scikit-learn. Otherwise the path of an npz
        archive, or of a directory of MNIST's files, which may be compressed by gzip. An archive holds
        ``x_train`` and ``y_train``, and a directory ``train-images-idx3-ubyte`` and
        ``train-labels-idx1-ubyte``. If there is a test set, it is called ``x_test`` and ``y_test``, or
        ``t10k-…`` in a directory.
    classes : int
        Number of classes; labels must be from 0 to classes - 1.

    Returns
    -------
    Images
        Images and labels. Pixels that are bytes, and the digits, are scaled to [0, 1]; floating-point pixels
        of an archive are not changed.

    Raises
    ------
    FileFormatError
        If a file is missing or damaged, in another format, of a size that does not match the others, or has
        labels out of range.
    """
    path = Path(data)
    if data == DIGITS:
        from sklearn.datasets import load_digits

        digits = load_digits()
        parts = [(digits.data.astype(np.float32) / np.float32(16), digits.target)]
    elif not (path.is_dir() or path.is_file()):  # reading a pipe or a device might never end
        raise FileFormatError(
            "data must be 'digits', or the path of a directory of IDX files or of an npz archive; there is "
            f"none at {path}"
        )
    else:
        try:
            parts = _directory(path) if path.is_dir() else _archive(path)
        except FileFormatError:
            raise
        except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise FileFormatError(f"the images in {path} cannot be read ({error})") from None
    for pixels, labels in parts:
        shapes = f"pixels {pixels.dtype} of shape {pixels.shape} and labels of shape {labels.shape}"
        if pixels.ndim < 2 or labels.shape != pixels.shape[:1] or not len(labels):
            raise FileFormatError(f"{data} must hold images (n, ...) and one label for each, got {shapes}")
        known = pixels.dtype == np.uint8 or (pixels.dtype.kind == "f" and np.isfinite(pixels).all())
        if not known or labels.dtype.kind not in "iu":
            raise FileFormatError(
                f"{data} must hold pixels that are bytes or finite, and whole labels, got {shapes}"
            )
        if not 0 <= labels.min() <= labels.max() < classes:
            raise FileFormatError(
                f"labels must be whole numbers from 0 to classes - 1 = {classes - 1}, got {labels.min()} to "
                f"{labels.max()} in {data}"
            )
        if pixels.shape[1:] != parts[0][0].shape[1:]:
            raise FileFormatError(f"images of {data} must be of one size, got {pixels.shape[1:]} too")
    return Images(
        np.concatenate([_flat(pixels) for pixels, _ in parts]),
        np.concatenate([labels.astype(np.int64) for _, labels in parts]),
        len(parts[0][1]),
    )


def _flat(pixels: NDArray[Any]) -> NDArray[np.float32]:
    """Return pixels (images, pixels) as float32, with bytes scaled to [0, 1]."""
    flat = pixels.reshape(len(pixels), -1).astype(np.float32)
    return flat / np.float32(255) if pixels.dtype == np.uint8 else flat


def _archive(path: Path) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Return the training set of an npz archive, and its test set if there is one."""
    with np.load(path, allow_pickle=False) as archive:
        if not isinstance(archive, NpzFile):
            raise FileFormatError(f"{path} must be an npz archive, got an npy file")
        names = set(archive.files)
        ends = ["train", "test"] if names & {"x_test", "y_test"} else ["train"]
        missing = {f"{kind}_{end}" for kind in "xy" for end in ends} - names
        if missing:
            raise FileFormatError(
                f"{path} must hold {' and '.join(sorted(missing))}, got {', '.join(names) or 'nothing'}"
            )
        return [(archive[f"x_{end}"], archive[f"y_{end}"]) for end in ends]


def _directory(folder: Path) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Return the training set of a directory of IDX files, and its test set if there is one."""
    files = {
        (part, kind): next(iter(sorted(folder.glob(f"{part}-{kind}?idx{axes}-ubyte*"))), None)
        for part in ("train", "t10k")
        for kind, axes in (("images", 3), ("labels", 1))
    }
    if not (files["t10k", "images"] or files["t10k", "labels"]):
        del files["t10k", "images"], files["t10k", "labels"]
    read = {}
    for (part, kind), path in files.items():
        if path is None:
            axes = 3 if kind == "images" else 1
            raise FileFormatError(f"{folder} must hold {part}-{kind}-idx{axes}-ubyte, got none")
        read[part, kind] = _idx(path)
    return [(read[part, "images"], read[part, "labels"]) for part, kind in read if kind == "images"]


def _idx(path: Path) -> NDArray[np.uint8]:
    """Read unsigned bytes from an IDX file: two zero bytes, type, number of axes, sizes, values."""
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    if content[:3] != b"\0\0\x08":
        raise FileFormatError(f"{path} must be an IDX file of unsigned bytes, got the bytes {content[:4]!r}")
    axes = content[3]
    sizes = np.frombuffer(content, ">u4", axes, 4).astype(int)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(sizes)
