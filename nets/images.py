"""The image classifier of Liu et al., where grokking shows on data of the world."""

import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor

from nets.architecture import Architecture, Initialisation
from nets.image_files import DIGITS, Images, load_images
from nets.models import DenseModel, Parameters, checked_widths
from nets.tasks import Task
from physics.checks import choice, whole_number
from physics.errors import FileFormatError, InputError


@dataclass(frozen=True)
class ImageMLP(DenseModel):
    """Dense layers with ReLU on the pixels of an image, squared error to one-hot targets (Liu §4.3, App. J).

    What is recorded as positions is the mean activation of the last hidden layer over the member's training
    images of each class, (classes, width); zero for a class without a training image. The decoder is the last
    layer, the encoder, with the rates of the embedding in `nets.train`, all the others.

    Parameters
    ----------
    data : str, default "digits"
        "digits" for the 1797 images of 8 × 8 pixels that come with scikit-learn; or the path of a directory
        of MNIST's IDX files or of an npz archive, as `nets.image_files.load_images` has it. A test set that
        comes with the data is what validates; the digits have none, and those that do not train validate.
    hidden : sequence of int, default (200, 200)
        Widths of the hidden layers, at least one; with the output, the paper's depth of 3.
    classes : int, default 10
        Number of classes, at least 3.
    initialisation : str, default "pytorch"
        How weights begin, as in `ConstantAttention`. The paper's "Kaiming uniform" is PyTorch's default for a
        linear layer, the rule of that name with a = √5: uniform on ±1/√inputs, biases too.
    digest : str, optional
        Fingerprint of the images; found where it is not given, and compared where it is, so that what a
        trajectory says of its data can be checked.

    Raises
    ------
    InputError
        If a value is out of its range.
    FileFormatError
        If the images cannot be read, or are not those of the digest.

    Notes
    -----
    The paper's large initialisation is ``nets.train(..., layer_scale=8)``: weights and biases are multiplied,
    as in the published code of the authors' later work; the paper says "the initial weights". Its training
    set of 1000 images is ``train_fraction=1000 / images``. The images are kept once, as float32, and each
    member holds the indices of its own.
    """

    data: str = DIGITS
    hidden: tuple[int, ...] = (200, 200)
    classes: int = 10
    initialisation: Initialisation = "pytorch"
    digest: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.data, str | os.PathLike):
            raise InputError(f"data must be 'digits' or a path, got {type(self.data).__name__}")
        object.__setattr__(self, "data", os.fspath(self.data))
        object.__setattr__(self, "hidden", checked_widths(self.hidden))
        object.__setattr__(self, "classes", whole_number("classes", self.classes, 3))
        choice("initialisation", self.initialisation, get_args(Initialisation))
        found = self._images.digest
        if self.digest not in (None, found):
            raise FileFormatError(
                f"the images of {self.data} have the digest {found}, where {self.digest} is asked for; the "
                f"files are not those of that run"
            )
        object.__setattr__(self, "digest", found)

    @cached_property
    def _images(self) -> Images:
        return load_images(self.data, self.classes)

    @property
    def tokens(self) -> int:  # type: ignore[override]
        """Points of the recorded sets: the classes."""
        return self.classes

    @property
    def dim(self) -> int:  # type: ignore[override]
        """Components of the recorded points: the width of the last hidden layer."""
        return self.hidden[-1]

    @property
    def encoder(self) -> tuple[str, ...]:  # type: ignore[override]
        """Parameters of all layers but the last."""
        return tuple(
            f"{name}.{part}" for name in self.architecture.layers[:-1] for part in ("weight", "bias")
        )

    @cached_property
    def task(self) -> Task:
        """Images with their labels; the test set, where there is one, is held out."""
        images = self._images
        held_out = np.arange(images.trainable, len(images.labels))
        return Task(images.pixels, images.labels, self.classes, held_out)

    @cached_property
    def architecture(self) -> Architecture:  # type: ignore[override]
        """Dense layers on the pixels."""
        sizes = (self._images.pixels.shape[1], *self.hidden, self.classes)
        return Architecture("data", sizes, "relu", "mean_squared_error")

    def initial(self, embedding: np.random.Generator, layers: np.random.Generator) -> Parameters:
        """Draw the layers of one member; there is no embedding."""
        return self.architecture.draw(self.initialisation, layers)

    def point_sets(self, parameters: dict[str, Tensor], train: tuple[Tensor, Tensor]) -> Tensor:
        """Class means (runs, classes, width) of the last hidden layer over the training images."""
        images, labels = train
        states = self.architecture.hidden(parameters, images)
        member: Any = torch.nn.functional.one_hot(labels, self.classes).to(states.dtype)
        return member.transpose(1, 2) @ states / member.sum(1).clamp(min=1)[..., None]
