"""The image classifier with which Liu et al. show grokking on real data, and the reader of its images."""

import gzip
import hashlib
import io
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, get_args

import numpy as np
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
UNSIGNED_BYTE = 8
ARCHIVE_NAMES = ("x_train", "y_train", "x_test", "y_test")


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
    """Read labeled images from a file, a directory, or scikit-learn. Each file may be compressed by gzip.

    Parameters
    ----------
    data : str
        "digits" for the 1797 images of 8 × 8 pixels that come with scikit-learn. Otherwise the path of an npz
        archive, or of a directory of MNIST's files. An archive holds ``x_train`` and ``y_train``, and a
        directory ``train-images-idx3-ubyte`` and ``train-labels-idx1-ubyte``. If there is a test set, it is
        called ``x_test`` and ``y_test``, or ``t10k-…`` in a directory.
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
        If a file, or scikit-learn for the digits, is missing, or if a file is damaged, in another format, of
        a size that does not match the others, or has labels out of range.
    """
    if data == DIGITS:
        return _digits(classes)
    path = Path(data)
    if not path.exists():
        raise FileFormatError(
            f"data must be 'digits', or the path of a directory of IDX files or of an npz archive; there is "
            f"no {path}"
        )
    if not (path.is_dir() or path.is_file()):  # reading a pipe or a device might never end
        raise FileFormatError(f"{path} is neither a file nor a directory, so it holds no images")
    parts = _idx_files(path) if path.is_dir() else _archive(path)
    for where, pixels, labels in parts:
        if len(pixels) != len(labels) or not len(labels):
            found = f"{len(pixels)} images and {len(labels)} labels"
            raise FileFormatError(f"{where} must hold images and one label for each, got {found}")
        _check_labels(where, labels, classes)
    sizes = {pixels.shape[1:] for _, pixels, _ in parts}
    if len(sizes) > 1:
        found = " and ".join(" × ".join(map(str, size)) for size in sorted(sizes))
        raise FileFormatError(f"{path} holds images of {found} pixels; all must be of one size")
    return Images(
        np.concatenate([_flat(pixels) for _, pixels, _ in parts]),
        np.concatenate([labels.astype(np.int64) for _, _, labels in parts]),
        len(parts[0][2]),
    )


def _check_labels(where: str, labels: NDArray[np.generic], classes: int) -> None:
    low, high = labels.min(), labels.max()
    if low < 0 or high >= classes:
        wanted = f"whole numbers from 0 to classes - 1 = {classes - 1}"
        raise FileFormatError(f"labels must be {wanted}, got {low} to {high} in {where}")


Part = tuple[str, NDArray[np.generic], NDArray[np.generic]]
"""Origin, pixels (images, ...), and labels (images,) of one set of images."""


def _flat(pixels: NDArray[np.generic]) -> NDArray[np.float32]:
    """Return pixels (images, pixels) as float32, with bytes scaled to [0, 1]."""
    flat = pixels.reshape(len(pixels), -1).astype(np.float32)
    return flat / np.float32(255) if pixels.dtype == np.uint8 else flat


def _digits(classes: int) -> Images:
    """Read the digits from the data file of scikit-learn, without the second that importing it takes."""
    folder = getattr(find_spec("sklearn"), "submodule_search_locations", None)
    path = Path(folder[0]) / "datasets/data/digits.csv.gz" if folder else None
    if path is None or not path.is_file():
        raise FileFormatError(
            "data 'digits' needs the file digits.csv.gz of scikit-learn, which is not installed"
        )
    table = np.loadtxt(io.BytesIO(_content(path)), delimiter=",", dtype=np.float32)
    labels = table[:, -1].astype(np.int64)
    _check_labels(DIGITS, labels, classes)
    return Images(table[:, :-1] / np.float32(16), labels, len(table))


def _content(path: Path) -> bytes:
    """Return the bytes of a file, after decompressing them if they are in gzip format."""
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise FileFormatError(f"{path} is damaged ({error})") from None
    except OSError as error:
        raise FileFormatError(f"{path} cannot be read ({error.strerror})") from None


# -- IDX ---------------------------------------------------------------------------------------------------


def _idx_files(folder: Path) -> list[Part]:
    """Read the training set of a directory, and its test set if there is one."""
    found = {
        (part, kind): _found(folder, f"{part}-{kind}", axes)
        for part in ("train", "t10k")
        for kind, axes in (("images", 3), ("labels", 1))
    }
    parts = []
    for part in ("train", "t10k"):
        images, labels = found[part, "images"], found[part, "labels"]
        if images is None and labels is None and part == "t10k":
            continue
        if images is None or labels is None:
            name = f"{part}-images-idx3-ubyte" if images is None else f"{part}-labels-idx1-ubyte"
            raise FileFormatError(f"{folder} must hold {name} or {name}.gz, but does not")
        parts.append((f"{images} with {labels.name}", _idx(images, 3), _idx(labels, 1)))
    return parts


def _found(folder: Path, name: str, axes: int) -> Path | None:
    """Return the path of an IDX file, or None; "-" or "." may precede "idx", and ".gz" may follow."""
    names = [f"{name}{mark}idx{axes}-ubyte{end}" for mark in "-." for end in ("", ".gz")]
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _idx(path: Path, axes: int) -> NDArray[np.generic]:
    """Read unsigned bytes from an IDX file: two zero bytes, type, number of axes, sizes, values."""
    content = _content(path)
    magic = bytes([0, 0, UNSIGNED_BYTE, axes])
    if content[:4] != magic:
        raise FileFormatError(
            f"{path} must begin with the bytes {magic.hex(' ')} of an IDX file (unsigned bytes, number of "
            f"axes {axes}), found {content[:4].hex(' ') or 'nothing'}"
        )
    start = 4 + 4 * axes
    if len(content) < start:
        raise FileFormatError(f"{path} is truncated: it ends within its header")
    sizes = struct.unpack(f">{axes}I", content[4:start])
    if len(content) - start != math.prod(sizes):
        state = "is truncated" if len(content) - start < math.prod(sizes) else "is too long"
        raise FileFormatError(
            f"{path} {state}: its header says {' × '.join(map(str, sizes))} bytes, and "
            f"{len(content) - start} follow"
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(sizes)


# -- npz ---------------------------------------------------------------------------------------------------


def _archive(path: Path) -> list[Part]:
    """Read the training set of an npz archive, and its test set if there is one."""
    content = _content(path)
    if content[:4] == bytes([0, 0, UNSIGNED_BYTE, 1]) or content[:4] == bytes([0, 0, UNSIGNED_BYTE, 3]):
        raise FileFormatError(f"{path} is one IDX file; give the directory that holds images and labels")
    if content[:2] != b"PK":
        raise FileFormatError(f"{path} is not an npz archive")
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in ARCHIVE_NAMES if name in archive.files}
            names = archive.files
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise FileFormatError(f"{path} is damaged, or not an archive of plain arrays ({error})") from None
    test = [name for name in ARCHIVE_NAMES[2:] if name in arrays]
    if not {"x_train", "y_train"} <= arrays.keys() or len(test) == 1:
        raise FileFormatError(
            f"{path} must hold x_train and y_train, and x_test and y_test together or not at all; it holds "
            f"{', '.join(names) or 'nothing'}"
        )
    return [_part(path, arrays, end) for end in ("train", "test") if f"x_{end}" in arrays]


def _part(path: Path, arrays: Mapping[str, NDArray[np.generic]], end: str) -> Part:
    """Return one set of images of an archive, "train" or "test", after checking types and shapes."""
    pixels, labels = arrays[f"x_{end}"], arrays[f"y_{end}"]
    if pixels.ndim < 2 or not (
        pixels.dtype == np.uint8 or (pixels.dtype.kind == "f" and np.isfinite(pixels).all())
    ):
        raise FileFormatError(
            f"x_{end} of {path} must be images (images, ...) of unsigned bytes or finite "
            f"floating-point numbers; found {pixels.dtype} of shape {pixels.shape}"
        )
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise FileFormatError(
            f"y_{end} of {path} must be whole numbers (images,), found {labels.dtype} of the shape "
            f"{labels.shape}"
        )
    return f"{path}: {end}", pixels, labels
