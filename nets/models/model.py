"""The base class of all models, and that of models of dense layers, which both engines train."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, get_args

import numpy as np
from numpy.typing import NDArray

from nets.architecture import EMBEDDING, Architecture, Initialisation
from nets.tasks import Task
from physics.checks import choice, whole_number
from physics.theory.system import EffectiveTheory

if TYPE_CHECKING:
    from torch import Tensor

Parameters = dict[str, NDArray[np.float64]]


class Model(ABC):
    """Base class of the networks that `train` trains; docs/guide/own_models.md shows how to write your own.

    A model is a frozen dataclass, whose fields are stored in trajectories. The fields `tokens` and `dim` are
    the shape of the recorded positions. A model must define `task`, `loss`, `initial` and `outputs`.
    """

    tokens: int
    dim: int

    encoder: ClassVar[tuple[str, ...]] = (EMBEDDING,)
    """First parameters, which train with the rates of the embedding; all others are the decoder."""

    @property
    @abstractmethod
    def task(self) -> Task:
        """The task that the model learns."""

    @property
    @abstractmethod
    def loss(self) -> str:
        """Training loss: "cross_entropy" or "mean_squared_error"."""

    @abstractmethod
    def initial(self, embedding: np.random.Generator, layers: np.random.Generator) -> Parameters:
        """Draw the parameters of one member.

        Parameters
        ----------
        embedding : numpy.random.Generator
            Random stream of the embedding.
        layers : numpy.random.Generator
            Random stream of all other parameters.

        Returns
        -------
        dict of ndarray of float64
            Parameters by name. If there is an "embedding", it comes first and has the shape (tokens, dim).
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
            Function ``dropout(states, rate)`` that drops numbers during training; None at evaluation.

        Returns
        -------
        Tensor, shape (runs, examples, outputs)
            Logits, or values that are compared with the targets.
        """

    architecture: Architecture | None = None
    """Layers that the fused engine can compute; None if only PyTorch can."""

    embedding_penalty: float = 0.0

    dropout: float = 0.0
    """Rate of dropout during training."""

    @property
    def activation_numbers(self) -> int:
        """Approximate count of numbers that PyTorch keeps for one example of one member during training."""
        drawn = self.initial(np.random.default_rng(0), np.random.default_rng(0))
        return 3 * sum(value.shape[-1] for value in drawn.values())  # input, output and gradient of layers

    @property
    def theory(self) -> EffectiveTheory | None:
        """Operation that the model learns, whose parallelograms define the quality of embeddings; or None."""
        return None

    def targets(self, generator: np.random.Generator) -> NDArray[np.float64]:
        """Return the target of each class for the squared error, one-hot by default.

        Parameters
        ----------
        generator : numpy.random.Generator
            Random stream of the targets of one member.

        Returns
        -------
        ndarray of float64, shape (classes, outputs)
        """
        return np.eye(self.task.classes)

    def _set(self, **checked: Any) -> None:
        """Set checked fields of a frozen dataclass, from its ``__post_init__``."""
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def point_sets(self, parameters: dict[str, "Tensor"], train: tuple["Tensor", "Tensor"]) -> "Tensor":
        """Return what is recorded as positions, by default the embeddings.

        Parameters
        ----------
        parameters : dict of Tensor
            Parameters by name, each with a first axis of length runs.
        train : pair of Tensor
            Inputs (runs, examples, ...) and labels (runs, examples) of the training sets.

        Returns
        -------
        Tensor, shape (runs, tokens, dim)
        """
        return parameters[EMBEDDING]


class DenseModel(Model):
    """Base class of models that both engines train: embedding, combination, dense layers and loss."""

    architecture: Architecture

    initialisation: Initialisation

    @property
    def loss(self) -> str:
        """Training loss of the architecture: "cross_entropy" or "mean_squared_error"."""
        return self.architecture.loss

    @property
    def activation_numbers(self) -> int:
        """Count of numbers kept for one example in training: input, output and gradient of each layer."""
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
            Not used, because these models have no dropout.

        Returns
        -------
        Tensor, shape (runs, examples, outputs)
        """
        return self.architecture.outputs(parameters, inputs)

    def initial(self, embedding: np.random.Generator, layers: np.random.Generator) -> Parameters:
        """Draw the parameters of one member.

        Parameters
        ----------
        embedding : numpy.random.Generator
            Random stream of the embedding.
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
        """Embedding (tokens, dim) as PyTorch's module draws it: standard normal."""
        return generator.standard_normal((self.tokens, self.dim))

    def _check(self, **minima: int) -> None:
        """Coerce whole-number fields, and the initialization."""
        self._set(**{name: whole_number(name, getattr(self, name), least) for name, least in minima.items()})
        choice("initialisation", self.initialisation, get_args(Initialisation))
