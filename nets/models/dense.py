"""The models of dense layers: on the embeddings of two tokens, and on images."""

import hashlib
import os
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from nets.architecture import EMBEDDING, Activation, Architecture, Initialisation, Neuron
from nets.models.model import DenseModel, ModularAddition, Parameters
from nets.tasks import Task, addition, group_products, modular_addition
from physics.checks import InputError, choice, number, short_text, whole_number
from physics.errors import FileFormatError
from physics.theory.operations import as_group, symmetric
from physics.theory.system import EffectiveTheory

if TYPE_CHECKING:
    from torch import Tensor

LIU: Mapping[str, Any] = {
    "learning_rate": 1e-3,
    "weight_decay": 0.0,
    "embedding_learning_rate": 1e-3,
    "embedding_weight_decay": 0.0,
    "steps": 5000,
}
"""Settings of Liu et al., who vary the rate (1e-5 to 1e-2) and the weight decay (from 0) of the decoder.

The values here lie in these ranges. The rates of the embedding are those of the paper, which does not state
the number of steps.
"""


@dataclass(frozen=True)
class ConstantAttention(ModularAddition, DenseModel):
    """One hidden layer on the sum of two embeddings, for modular addition (Musat §3).

    A transformer whose attention does not depend on the tokens sees only the sum of two embeddings, which is
    what Musat studies. The hidden layer has ReLU, and the loss is the cross-entropy.

    Parameters
    ----------
    tokens : int, default 17
        Number of tokens, which is also the modulus; at least 3.
    dim : int, default 2
        Dimension of the embedding, at least 1.
    hidden : int, default 32
        Width of the hidden layer, at least 1.
    initialisation : str, default "pytorch"
        Distribution of the initial weights: "pytorch" (uniform on ±1/√inputs, for biases too, as in the
        paper), or "kaiming_uniform", "kaiming_normal", "xavier_uniform" or "xavier_normal" with biases of
        zero. The embedding is standard normal.

    Raises
    ------
    InputError
        If a value is out of its range.

    Examples
    --------
    >>> import nets
    >>> nets.train(nets.ConstantAttention(tokens=7, hidden=8), runs=2, steps=5, record=1).positions.shape
    (2, 6, 7, 2)
    """

    tokens: int = 17
    dim: int = 2
    hidden: int = 32
    initialisation: Initialisation = "pytorch"

    settings: ClassVar[Mapping[str, Any]] = {
        "learning_rate": 0.01,
        "weight_decay": 1.0,
        "train_fraction": 0.8,  # 122 of 153 pairs
        "steps": 2000,
    }

    def __post_init__(self) -> None:
        self._check(tokens=3, dim=1, hidden=1)

    @cached_property
    def task(self) -> Task:
        """Modular addition: all unordered pairs a ≤ b with the label (a + b) mod tokens."""
        return modular_addition(self.tokens)

    @cached_property
    def architecture(self) -> Architecture:  # type: ignore[override]
        """Layers of the model: the sum of two embeddings, one hidden layer, and the cross-entropy."""
        return Architecture("sum", (self.dim, self.hidden, self.tokens), "relu", "cross_entropy")


@dataclass(frozen=True)
class EmbeddingMLP(ModularAddition, DenseModel):
    """Dense layers on two concatenated embeddings, for modular addition (Ding et al. §2, Appendix E).

    Parameters
    ----------
    tokens : int, default 59
        Number of tokens, which is also the modulus; at least 3.
    dim : int, default 128
        Dimension of the embedding, at least 1.
    hidden : sequence of int, default (100, 100)
        Width of each hidden layer, at least 1; at least one layer.
    initialisation : str, default "pytorch"
        Distribution of the initial weights: "pytorch" (uniform on ±1/√inputs, for biases too), or
        "kaiming_uniform", "kaiming_normal", "xavier_uniform" or "xavier_normal" with biases of zero. The
        embedding is standard normal.
    activation : {"silu", "relu", "tanh", "asinh"}, default "silu"
        Function after each hidden layer.
    even : float, default 0.0
        Weight λ, at least 0, of the even part of SiLU. It can be added to "tanh" and "asinh", which are odd:
        the function is then tanh(x) + λ (x/2) tanh(x/2), or asinh(x) + λ (x/2) tanh(x/2).

    Raises
    ------
    InputError
        If a value is out of its range, or `even` is not 0 for an activation that is not odd.

    Notes
    -----
    SiLU is x/2 + (x/2) tanh(x/2), the sum of an odd and an even part. Without the even part the network would
    be linear, so the even part is varied on odd functions that are not linear. Both tanh and asinh have slope
    1 at 0, but tanh saturates and asinh does not, which separates the effect of parity from that of
    saturation. A negative weight would give the same networks with the signs of their hidden units reversed.

    Examples
    --------
    >>> import nets
    >>> half = nets.EmbeddingMLP(31, 64, activation="tanh", even=0.5)
    >>> nets.train(half, steps=10, train_fraction=0.9).positions.shape
    (1, 2, 31, 64)
    """

    tokens: int = 59
    dim: int = 128
    hidden: tuple[int, ...] = (100, 100)
    initialisation: Initialisation = "pytorch"
    activation: Activation = "silu"
    even: float = 0.0

    settings: ClassVar[Mapping[str, Any]] = {
        "learning_rate": 0.01,
        "weight_decay": 0.5,
        "train_fraction": 0.8,
        "steps": 30_000,
    }

    def __post_init__(self) -> None:
        self._check(tokens=3, dim=1)
        self._set(hidden=checked_widths(self.hidden), even=number("even", self.even, 0.0))
        choice("activation", self.activation, get_args(Activation))
        if self.even and self.activation not in ("tanh", "asinh"):
            raise InputError(f"even must be 0 unless activation is 'tanh' or 'asinh', got {self.even:g}")

    @cached_property
    def task(self) -> Task:
        """Modular addition: all ordered pairs with the label (a + b) mod tokens."""
        return modular_addition(self.tokens, ordered=True)

    @cached_property
    def architecture(self) -> Architecture:  # type: ignore[override]
        """Layers of the model: two concatenated embeddings, dense layers, and the cross-entropy."""
        sizes = (2 * self.dim, *self.hidden, self.tokens)
        return Architecture("concatenate", sizes, self.activation, "cross_entropy", self.even)


class _Decoder(DenseModel):
    """What the decoders of Liu et al. share: random targets, and embeddings in an interval around 0."""

    outputs_dim: int
    scale: float

    def targets(self, generator: np.random.Generator) -> NDArray[np.float64]:
        """Draw the target of each class from the standard normal distribution.

        Parameters
        ----------
        generator : numpy.random.Generator
            Random stream of the targets of one member.

        Returns
        -------
        ndarray of float64, shape (classes, outputs_dim)
            Target of each class: of each sum, or of each element of the group.
        """
        return generator.standard_normal((self.task.classes, self.outputs_dim))

    def _embedding(self, generator: np.random.Generator) -> NDArray[np.float64]:
        return generator.uniform(-self.scale / 2, self.scale / 2, (self.tokens, self.dim))


@dataclass(frozen=True)
class ToyAddition(_Decoder):
    """Decoder of the sum of two embeddings, for addition without a modulus (Liu et al. §2, Appendix G).

    Dense layers with tanh follow the sum of the embeddings. This is the model on which Liu et al. base their
    effective theory.

    Parameters
    ----------
    tokens : int, default 10
        Number of tokens p, at least 3. Sums are not reduced modulo p.
    dim : int, default 1
        Dimension of the embedding, at least 1.
    hidden : sequence of int, default (200, 200)
        Width of each hidden layer of the decoder, at least 1; at least one layer.
    outputs_dim : int, default 30
        Length of the random targets of the regression, at least 1. The classification ignores it.
    kind : {"regression", "classification"}, default "regression"
        Kind of task. "regression" has the squared error to fixed, normally distributed targets, one for each
        sum, and predicts the sum with the nearest target. "classification" has the cross-entropy over the
        2p - 1 sums.
    scale : float, default 1.0
        Width of the interval from -scale/2 to scale/2 from which embeddings are drawn uniformly, greater
        than 0.
    initialisation : str, default "pytorch"
        Distribution of the initial weights of the decoder: "pytorch" (uniform on ±1/√inputs, for biases too),
        or "kaiming_uniform", "kaiming_normal", "xavier_uniform" or "xavier_normal" with biases of zero.

    Raises
    ------
    InputError
        If a value is out of its range.

    Examples
    --------
    >>> import nets
    >>> trained = nets.train(nets.ToyAddition(hidden=(16,)), steps=5, record=5, observables=("quality",))
    >>> trained.positions.shape, trained.observables["quality"].shape
    ((1, 2, 10, 1), (1, 2))
    """

    tokens: int = 10
    dim: int = 1
    hidden: tuple[int, ...] = (200, 200)
    outputs_dim: int = 30
    kind: Literal["regression", "classification"] = "regression"
    scale: float = 1.0
    initialisation: Initialisation = "pytorch"

    settings: ClassVar[Mapping[str, Any]] = {**LIU, "train_fraction": 45 / 55}

    def __post_init__(self) -> None:
        self._check(tokens=3, dim=1, outputs_dim=1)
        self._set(hidden=checked_widths(self.hidden), scale=number("scale", self.scale, above=0.0))
        choice("kind", self.kind, ("regression", "classification"))

    @cached_property
    def task(self) -> Task:
        """Plain addition: all unordered pairs a ≤ b with the label a + b."""
        return addition(self.tokens)

    @cached_property
    def architecture(self) -> Architecture:  # type: ignore[override]
        """Layers of the model: the sum of two embeddings, dense layers, and the loss of its kind of task."""
        if self.kind == "regression":
            return Architecture(
                "sum", (self.dim, *self.hidden, self.outputs_dim), "tanh", "mean_squared_error"
            )
        return Architecture("sum", (self.dim, *self.hidden, self.task.classes), "tanh", "cross_entropy")

    @cached_property
    def theory(self) -> EffectiveTheory:
        """Effective theory of addition without a modulus, the operation that the model learns."""
        return EffectiveTheory(self.tokens)


@dataclass(frozen=True)
class GroupDecoder(_Decoder):
    """Decoder of the product of two matrix embeddings, for any finite group (Liu et al., Appendix H).

    Each group element has a square matrix as its embedding. Dense layers with tanh follow the matrix product
    of two of them, and the squared error compares the output with random targets.

    Parameters
    ----------
    group : FiniteGroup or array_like of int, shape (order, order), optional
        Group to learn, or its Cayley table; by default the permutations of three objects, S_3.
    side : int, default 3
        Number of rows and of columns of each matrix, at least 1. The recorded embeddings have side²
        components.
    hidden : sequence of int, default (200, 200)
        Width of each hidden layer of the decoder, at least 1; at least one layer.
    outputs_dim : int, default 30
        Length of the random targets, at least 1.
    scale : float, default 0.1
        Width of the interval from -scale/2 to scale/2 from which embeddings are drawn uniformly, greater
        than 0.
    embedding_penalty : float, default 1e-3
        Factor, at least 0, of the mean magnitude of the embedding's components, which is added to the squared
        error as in the published code.
    initialisation : str, default "pytorch"
        Distribution of the initial weights of the decoder: "pytorch" (uniform on ±1/√inputs, for biases too),
        or "kaiming_uniform", "kaiming_normal", "xavier_uniform" or "xavier_normal" with biases of zero.

    Raises
    ------
    InputError
        If a value is out of its range, or the table is not the table of a group.

    Examples
    --------
    >>> import nets
    >>> model = nets.GroupDecoder(hidden=(16,))
    >>> model.group.name, nets.train(model, steps=5).positions.shape
    ('S_3', (1, 2, 6, 9))
    """

    group: Any = field(default_factory=lambda: symmetric(3))
    side: int = 3
    hidden: tuple[int, ...] = (200, 200)
    outputs_dim: int = 30
    scale: float = 0.1
    embedding_penalty: float = 1e-3
    initialisation: Initialisation = "pytorch"

    settings: ClassVar[Mapping[str, Any]] = {**LIU, "train_fraction": 24 / 36}

    def __post_init__(self) -> None:
        self._check(side=1, outputs_dim=1)
        self._set(
            group=as_group(self.group),
            hidden=checked_widths(self.hidden),
            scale=number("scale", self.scale, above=0.0),
            embedding_penalty=number("embedding_penalty", self.embedding_penalty, 0.0),
        )

    @property
    def tokens(self) -> int:  # type: ignore[override]
        """Number of tokens: the order of the group."""
        return self.group.order

    @property
    def dim(self) -> int:  # type: ignore[override]
        """Dimension of the recorded embeddings: the number of components of a matrix, side²."""
        return self.side**2

    @cached_property
    def task(self) -> Task:
        """Multiplication in the group: all ordered pairs of elements a and b with their product as label."""
        return group_products(self.group)

    @cached_property
    def architecture(self) -> Architecture:  # type: ignore[override]
        """Layers of the model: the product of two matrices, dense layers, and the squared error."""
        sizes = (self.dim, *self.hidden, self.outputs_dim)
        return Architecture("product", sizes, "tanh", "mean_squared_error")

    @cached_property
    def theory(self) -> EffectiveTheory:
        """Effective theory of the group, with parallelograms of matrices if the group does not commute."""
        return EffectiveTheory(group=self.group)


def checked_widths(value: Sequence[int]) -> tuple[int, ...]:
    """Return widths of hidden layers as a tuple of int.

    An `InputError` refuses anything but a non-empty sequence of whole numbers of at least 1.
    """
    widths = tuple(whole_number("hidden", width, 1) for width in value) if isinstance(value, Sequence) else ()
    if not widths:
        raise InputError(f"hidden must be a non-empty sequence of widths, got {short_text(value)}")
    return widths


Start = Literal["random", "single_frequency"]
OUTPUT = "output.weight"


@dataclass(frozen=True)
class TwoLayer(ModularAddition, DenseModel):
    """A two-layer network without biases for modular addition, `σ(W_in[a] + W_in[b]) W_out` (He et al. 2026).

    In the paper, each neuron comes to respond to a single frequency during training. The embedding is `W_in`
    itself: its row a holds the weights of token a into the hidden layer. Positions therefore have the shape
    (tokens, hidden), and column m is what neuron m reads. The other layer `W_out` (hidden, tokens) is the
    observable "layers.output.weight", which ``observables=("layers",)`` records; row m is what neuron m
    writes.

    Parameters
    ----------
    tokens : int, default 23
        Number of tokens p, which is also the modulus; at least 3.
    hidden : int, default 512
        Number of neurons, at least 1.
    activation : {"relu", "quadratic", "silu", "tanh", "abs"}, default "relu"
        The function σ. "quadratic" is x², for which the theory is exact at small weights.
    start : {"random", "single_frequency"}, default "random"
        "random" draws normal weights of standard deviation ``scale / √tokens`` in both layers. With
        "single_frequency", neuron m reads `scale cos(2π k_m j / p + φ_m)` from token j, and writes `scale
        cos(2π k_m j / p + ψ_m)` to the logit of class j. The frequencies k_m are distributed evenly among the
        neurons in random order, and the phases φ_m and ψ_m are uniform.
    scale : float, default 0.1
        Scale of the initial weights, greater than 0.

    Raises
    ------
    InputError
        If a value is out of its range, or "single_frequency" is combined with an even number of tokens or
        with fewer than 5. Modulo 3, each frequency k satisfies 2k = -k, and the phases do not align.

    Notes
    -----
    The examples are all ordered pairs, and ``train_fraction=1.0`` trains on all of them, as the paper does
    except when it studies grokking. The validation set is then empty, and its losses and accuracies are NaN.

    The published code raises the learning rate linearly over the first ten steps; here it is constant.

    References
    ----------
    He, Wang, Chen and Yang 2026, On the mechanism and dynamics of modular addition, arXiv:2602.16849.

    Examples
    --------
    >>> import nets
    >>> trained = nets.train(
    ...     nets.TwoLayer(hidden=64, activation="quadratic"),
    ...     train_fraction=1.0,
    ...     learning_rate=1e-3,
    ...     weight_decay=0.0,
    ...     steps=20,
    ...     record=20,
    ...     observables=("train_loss", "layers"),
    ... )
    >>> trained.final.shape, nets.networks(trained).parameters["output.weight"].shape
    ((1, 23, 64), (1, 64, 23))
    """

    tokens: int = 23
    hidden: int = 512
    activation: Neuron = "relu"
    start: Start = "random"
    scale: float = 0.1

    settings: ClassVar[Mapping[str, Any]] = {
        "learning_rate": 1e-4,
        "weight_decay": 0.0,
        "train_fraction": 1.0,
        "steps": 5000,
    }

    def __post_init__(self) -> None:
        self._check(tokens=3, hidden=1)
        self._set(scale=number("scale", self.scale, above=0.0))
        choice("activation", self.activation, get_args(Neuron))
        choice("start", self.start, get_args(Start))
        if self.start == "single_frequency" and (self.tokens < 5 or self.tokens % 2 == 0):
            need = "odd and at least 5 if start is 'single_frequency'"
            raise InputError(f"tokens must be {need}, got {self.tokens}")

    @property
    def dim(self) -> int:  # type: ignore[override]
        """Dimension of the recorded points: the number of weights of a token, one for each neuron."""
        return self.hidden

    @cached_property
    def task(self) -> Task:
        """Modular addition: all ordered pairs with the label (a + b) mod tokens, all allowed in training."""
        return modular_addition(self.tokens, ordered=True, whole=True)

    @cached_property
    def architecture(self) -> Architecture:  # type: ignore[override]
        """Layers of the model: neurons that add two rows of weights, and a layer without a bias."""
        return Architecture("neurons", (self.hidden, self.tokens), self.activation, "cross_entropy")

    def initial(self, embedding: np.random.Generator, layers: np.random.Generator) -> Parameters:
        """Draw the input and the output weights of one member.

        Parameters
        ----------
        embedding : numpy.random.Generator
            Random stream of the input weights. It also orders the frequencies if `start` is
            "single_frequency".
        layers : numpy.random.Generator
            Random stream of the output weights.

        Returns
        -------
        dict of ndarray of float64
            "embedding" (tokens, hidden) and "output.weight" (hidden, tokens).
        """
        if self.start == "random":
            deviation = self.scale / self.tokens**0.5
            return {
                EMBEDDING: embedding.normal(0.0, deviation, (self.tokens, self.hidden)),
                OUTPUT: layers.normal(0.0, deviation, (self.hidden, self.tokens)),
            }
        frequencies = 1 + np.arange(self.hidden) % (self.tokens // 2)
        frequencies = embedding.permutation(frequencies)
        return {EMBEDDING: self._waves(frequencies, embedding), OUTPUT: self._waves(frequencies, layers).T}

    def _waves(self, frequencies: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.float64]:
        """Return cosines (tokens, hidden) of the given frequencies with random phases."""
        phases = generator.uniform(-np.pi, np.pi, self.hidden)
        angles = 2 * np.pi / self.tokens * np.outer(np.arange(self.tokens), frequencies) + phases
        return np.asarray(self.scale * np.cos(angles))


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
        archive, such as that of MNIST by Keras; see `nets.models.dense.load_images`. A test set in the data
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
            text = f"the images of {self.data} have the digest {digest} instead of {self.digest}"
            raise FileFormatError(f"{text}; the run used other files")
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
        need = "'digits', or an npz archive of x_train and y_train"
        raise FileFormatError(f"data must be {need}, got {data} ({error})") from None
    return Task(pixels, answers, classes, np.arange(len(images[0]), len(pixels)))


def _digest(task: Task) -> str:
    """Return the fingerprint "sha256:…" of images, labels and the number of images before the test set."""
    digest = hashlib.sha256(f"{task.inputs.shape} {len(task) - len(task.held_out)}".encode())
    digest.update(np.ascontiguousarray(task.inputs, "<f4").data)
    digest.update(np.ascontiguousarray(task.labels, "<i8").data)
    return f"sha256:{digest.hexdigest()}"
