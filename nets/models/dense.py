"""The models that apply dense layers to the embeddings of two tokens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from nets.architecture import Activation, Architecture, Initialisation
from nets.models.model import DenseModel, ModularAddition
from nets.tasks import Task, addition, group_products, modular_addition
from physics.checks import InputError, choice, number, whole_number
from physics.theory.groups import as_group, symmetric
from physics.theory.system import EffectiveTheory

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
            raise InputError(
                f"even must be 0 for the activation {self.activation!r}, which already has an even part, "
                f"unlike tanh and asinh, got {self.even:g}"
            )

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
        raise InputError(f"hidden must be a non-empty sequence of widths, got {value!r}")
    return widths
