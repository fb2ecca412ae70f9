"""The base class of all models, and the base class of dense models, which both engines can train."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, get_args

import numpy as np
from numpy.typing import NDArray

from nets.architecture import EMBEDDING, Architecture, Initialisation
from nets.settings import OTHERWISE
from nets.tasks import Task
from physics.checks import choice, whole_number
from physics.theory.system import EffectiveTheory

if TYPE_CHECKING:
    from torch import Tensor

Parameters = dict[str, NDArray[np.float64]]


class Model(ABC):
    """Base class of the networks that `train` trains.

    A model is a frozen dataclass, and its fields are stored in trajectories. The fields `tokens` and `dim`
    are the shape of the recorded positions. A model must define `task`, `loss`, `initial` and `outputs`;
    everything else has a default. The defaults of `encoder` and `point_sets` require that one parameter is
    called "embedding". The guide shows how to write your own model (docs/guide/own_models.md).

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import nets, numpy as np
    >>> @dataclass(frozen=True)
    ... class Linear(nets.Model):
    ...     tokens: int = 5
    ...     dim: int = 2
    ...     loss = "cross_entropy"
    ...
    ...     @property
    ...     def task(self):
    ...         pairs = np.argwhere(np.ones((self.tokens, self.tokens)))
    ...         return nets.Task(pairs, pairs.sum(axis=1) % self.tokens, self.tokens)
    ...
    ...     def initial(self, embedding, layers):
    ...         shape = (self.tokens, self.dim)
    ...         return {"embedding": embedding.normal(size=shape), "out": layers.normal(size=shape[::-1])}
    ...
    ...     def outputs(self, parameters, inputs, dropout=None):
    ...         return nets.embedded(parameters["embedding"], inputs).sum(2) @ parameters["out"]
    >>> nets.train(Linear(), runs=2, steps=3, record=1).positions.shape
    (2, 4, 5, 2)
    """

    tokens: int
    dim: int

    encoder: ClassVar[tuple[str, ...]] = (EMBEDDING,)
    """Names of the first parameters of `initial`, which train with the embedding's rates in `nets.train`.

    All other parameters are the decoder, which trains with the rates of the layers.
    """

    settings: ClassVar[Mapping[str, Any]] = OTHERWISE
    """Settings with which `nets.train` trains the model where none are given.

    The models of the toolkit have those of their papers; a model of your own may state others.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__repr__" not in vars(cls):
            cls.__repr__ = Model.__repr__  # type: ignore[method-assign]  # not that of `dataclass`

    def __repr__(self) -> str:
        """Return the call that makes the model, and as a comment the settings with which it is trained."""
        values = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in fields(self))  # type: ignore[arg-type]
        settings = ", ".join(f"{name}={value!r}" for name, value in {**OTHERWISE, **self.settings}.items())
        return f"{type(self).__name__}({values})  # by default trained with {settings}"

    @property
    @abstractmethod
    def task(self) -> Task:
        """Task that the model learns: examples, their labels, and which of them may be used for training."""

    @property
    @abstractmethod
    def loss(self) -> str:
        """Training loss: "cross_entropy" or "mean_squared_error"."""

    @abstractmethod
    def initial(self, embedding: np.random.Generator, layers: np.random.Generator) -> Parameters:
        """Draw the initial parameters of one member.

        Parameters
        ----------
        embedding : numpy.random.Generator
            Random stream of the embedding.
        layers : numpy.random.Generator
            Random stream of all other parameters.

        Returns
        -------
        dict of ndarray of float64
            Parameters by name, those of `encoder` first. An "embedding" has the shape (tokens, dim).
        """

    @abstractmethod
    def outputs(self, parameters: dict[str, "Tensor"], inputs: "Tensor", dropout: Any = None) -> "Tensor":
        """Compute the outputs of all members at once.

        Parameters
        ----------
        parameters : dict of Tensor
            Parameters by name, each with a first axis of length runs.
        inputs : Tensor, shape (runs, examples, 2) or (runs, examples, features)
            Pairs of tokens (int64), or data.
        dropout : callable, optional
            Function ``dropout(states, rate)`` that, during training, sets a random fraction `rate` of the
            numbers to zero and divides the others by ``1 - rate``, so that their mean stays the same; None at
            evaluation.

        Returns
        -------
        Tensor, shape (runs, examples, outputs)
            Logits under cross-entropy, or values that are compared with the targets under the squared error.
        """

    architecture: Architecture | None = None
    """Layers of a `DenseModel`, which the fused engine can compute; None for all others."""

    embedding_penalty: float = 0.0
    """Factor, at least 0, of the mean magnitude of the embedding's components, added to the training loss."""

    dropout: float = 0.0
    """Rate of dropout during training, at least 0 and less than 1; 0 if `outputs` drops nothing."""

    @property
    def activation_numbers(self) -> int:
        """Approximate count of numbers that PyTorch keeps for one example of one member during training.

        The PyTorch engine decides by it how many members fit into memory at once. By default it is three
        times the sum of the last axes of all parameters: the input, the output and the gradient of each
        layer.
        """
        drawn = self.initial(np.random.default_rng(0), np.random.default_rng(0))
        return 3 * sum(value.shape[-1] for value in drawn.values())

    @property
    def theory(self) -> EffectiveTheory | None:
        """Effective theory of the operation that the model learns, or None if it learns no operation.

        Its parallelograms define the representation quality of the embeddings.
        """
        return None

    def targets(self, generator: np.random.Generator) -> NDArray[np.float64]:
        """Return the target of each class under the squared error; by default, one-hot vectors.

        Parameters
        ----------
        generator : numpy.random.Generator
            Random stream of the targets of one member.

        Returns
        -------
        ndarray of float64, shape (classes, outputs)
            Target of each class.
        """
        return np.eye(self.task.classes)

    def _set(self, **checked: Any) -> None:
        """Set checked fields of a frozen dataclass, from its ``__post_init__``."""
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def _check(self, **minima: int) -> None:
        """Check the initialisation, if it is a field, and whole numbers, given their smallest values."""
        self._set(**{name: whole_number(name, getattr(self, name), least) for name, least in minima.items()})
        if hasattr(self, "initialisation"):
            choice("initialisation", self.initialisation, get_args(Initialisation))

    def point_sets(self, parameters: dict[str, "Tensor"], train: tuple["Tensor", "Tensor"]) -> "Tensor":
        """Return the points that are recorded as positions; by default, the parameter "embedding".

        Parameters
        ----------
        parameters : dict of Tensor
            Parameters by name, each with a first axis of length runs.
        train : pair of Tensor
            Inputs (runs, examples, ...) and labels (runs, examples) of the training sets.

        Returns
        -------
        Tensor, shape (runs, tokens, dim)
            Points of each member.
        """
        return parameters[EMBEDDING]


class ModularAddition(Model):
    """Base class of models that learn addition modulo the number of their tokens."""

    @cached_property
    def theory(self) -> EffectiveTheory:
        """Effective theory of addition modulo `tokens`, the operation that the model learns."""
        return EffectiveTheory(self.tokens, modulus=self.tokens)


class DenseModel(Model):
    """Base class of models that both engines can train: an embedding, and dense layers after it.

    A subclass is a frozen dataclass with the fields `tokens`, `dim` and `initialisation`, which defines
    `task` and `architecture`. The loss, the initial parameters and the outputs follow from these. A subclass
    without an embedding, such as `ImageMLP`, also defines `initial`, `encoder` and `point_sets`.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import nets, numpy as np
    >>> @dataclass(frozen=True)
    ... class Subtraction(nets.DenseModel):
    ...     tokens: int = 7
    ...     dim: int = 2
    ...     initialisation: str = "pytorch"
    ...
    ...     @property
    ...     def task(self):
    ...         a, b = np.indices((self.tokens, self.tokens)).reshape(2, -1)
    ...         return nets.Task(np.stack([a, b], axis=1), (a - b) % self.tokens, self.tokens)
    ...
    ...     @property
    ...     def architecture(self):
    ...         sizes = (2 * self.dim, 16, self.tokens)
    ...         return nets.Architecture("concatenate", sizes, "relu", "cross_entropy")
    >>> nets.train(Subtraction(), runs=2, steps=3, record=1).positions.shape
    (2, 4, 7, 2)
    """

    architecture: Architecture

    initialisation: Initialisation

    @property
    def loss(self) -> str:
        """Training loss of the architecture: "cross_entropy" or "mean_squared_error"."""
        return self.architecture.loss

    @property
    def activation_numbers(self) -> int:
        """Approximate count of numbers that PyTorch keeps for one example of one member during training.

        It is three times the sum of the widths of all layers, for the input, the output and the gradient of
        each. The PyTorch engine decides by it how many members fit into memory at once.
        """
        return 3 * sum(self.architecture.sizes)

    def outputs(self, parameters: dict[str, "Tensor"], inputs: "Tensor", dropout: Any = None) -> "Tensor":
        """Compute the outputs of all members at once.

        Parameters
        ----------
        parameters : dict of Tensor
            Parameters by name, each with a first axis of length runs.
        inputs : Tensor, shape (runs, examples, 2) or (runs, examples, features)
            Pairs of tokens (int64), or data.
        dropout : callable, optional
            Not used, because dense models have no dropout.

        Returns
        -------
        Tensor, shape (runs, examples, outputs)
            Logits under cross-entropy, or values that are compared with the targets under the squared error.
        """
        return self.architecture.outputs(parameters, inputs)

    def initial(self, embedding: np.random.Generator, layers: np.random.Generator) -> Parameters:
        """Draw the initial parameters of one member.

        Parameters
        ----------
        embedding : numpy.random.Generator
            Random stream of the embedding, which is standard normal by default.
        layers : numpy.random.Generator
            Random stream of the dense layers.

        Returns
        -------
        dict of ndarray of float64
            "embedding" (tokens, dim), and weights (inputs, outputs) and biases (1, outputs) of the layers.
        """
        return {
            EMBEDDING: self._embedding(embedding),
            **self.architecture.draw(self.initialisation, layers),
        }

    def _embedding(self, generator: np.random.Generator) -> NDArray[np.float64]:
        """Draw an embedding (tokens, dim) as `torch.nn.Embedding` does: standard normal."""
        return generator.standard_normal((self.tokens, self.dim))
