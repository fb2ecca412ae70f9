"""The base classes of all models, and what one of your own is checked for, once, before anything is drawn."""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, get_args

import numpy as np
from numpy.typing import NDArray

from nets.architecture import EMBEDDING, Architecture, Initialisation, Loss
from nets.settings import OTHERWISE, Settings
from nets.tasks import Task
from physics.checks import choice, finite_array, mapping, number, require_memory, whole_number
from physics.errors import FileFormatError, InputError
from physics.theory.system import EffectiveTheory
from physics.trajectory.provenance import is_ours
from physics.values import Printed, brief

if TYPE_CHECKING:
    from torch import Tensor

Parameters = dict[str, NDArray[np.float64]]


class Model(Printed, ABC):
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
        settings = ", ".join(
            f"{name}={brief(value)}" for name, value in {**OTHERWISE, **self.settings}.items()
        )
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
        return {EMBEDDING: self._embedding(embedding), **self.architecture.draw(self.initialisation, layers)}

    def _embedding(self, generator: np.random.Generator) -> NDArray[np.float64]:
        """Draw an embedding (tokens, dim) as `torch.nn.Embedding` does: standard normal."""
        return generator.standard_normal((self.tokens, self.dim))


ADVICE = "train them in shards, with fewer runs at a time and first_run"


def require_model(model: Any) -> Model:
    """Return `model` if it is one, with settings of a training that `nets.train` has."""
    kind = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
    if not isinstance(model, Model) or not hasattr(model, "__dataclass_fields__"):
        need = "a frozen dataclass and a nets.Model, such as ConstantAttention()"
        raise InputError(f"model must be {need}, got {kind}")
    known = {field.name for field in dataclasses.fields(Settings)} - {"runs", "seed"}
    for name in mapping(f"settings of {kind}", model.settings):
        if name not in known:
            raise InputError(f"settings of {kind} must name settings of nets.train, got {name!r}")
    return model


def require_sound(model: Model, runs: int) -> None:
    """Refuse a model that cannot be trained, and an ensemble that does not fit into memory.

    The kernels trust what is checked here: shapes of parameters, and tokens, which they take as indices.
    """
    kind = type(model).__name__
    try:
        _check(model, kind, runs)
    except (InputError, FileFormatError, MemoryError):
        raise
    except Exception as error:
        text = " ".join(str(error).split())
        raise InputError(f"{kind} cannot be trained, got {type(error).__name__}: {text}") from error


def _require(right: bool, what: str, need: str, got: Any) -> None:
    if not right:
        raise InputError(f"{what} must {need}, got {got}")


def _check(model: Any, kind: str, runs: int) -> None:
    tokens, dim = (whole_number(f"{name} of {kind}", getattr(model, name), 1) for name in ("tokens", "dim"))
    choice(f"loss of {kind}", model.loss, get_args(Loss))
    number(f"dropout of {kind}", model.dropout, 0.0, below=1.0)
    drawn = {
        name: finite_array(f"initial[{name!r}] of {kind}", value)
        for name, value in model.initial(np.random.default_rng(0), np.random.default_rng(0)).items()
    }
    shapes = {name: value.shape for name, value in drawn.items()}
    arrays = bool(drawn) and () not in shapes.values()
    _require(arrays, f"initial of {kind}", "return arrays with an axis", f"shapes {shapes}")
    numbers = sum(value.size for value in drawn.values())
    # Drawing takes two copies in float64; training takes values and two moments in its number type.
    require_memory(f"{runs} networks of {numbers} parameters", 40.0 * numbers * runs, ADVICE)
    head, size = list(drawn)[: len(model.encoder)], shapes.get(EMBEDDING, (tokens, dim))
    named = set(head) == set(model.encoder)
    _require(named, f"encoder of {kind}", f"name its first parameters, {head}", model.encoder)
    _require(size == (tokens, dim), f"embedding of {kind}", f"have the shape {(tokens, dim)}", size)
    penalty = number(f"embedding_penalty of {kind}", model.embedding_penalty, 0.0)
    usable = not penalty or EMBEDDING in drawn
    _require(usable, f"embedding_penalty of {kind}", "be 0 without an embedding", penalty)
    _require(isinstance(model.task, Task), f"task of {kind}", "be a nets.Task", type(model.task).__name__)
    inputs, layers = model.task.inputs, model.architecture
    if isinstance(layers, Architecture):
        data, what = layers.combine == "data", f"inputs of the task of {kind}"
        width = {"concatenate": 2 * dim, "data": inputs.shape[1]}.get(layers.combine, dim)
        expected, sizes = layers.shapes(tokens, dim), layers.sizes
        _require(sizes[0] == width, f"architecture of {kind}", f"have sizes that begin with {width}", sizes)
        same = list(shapes.items()) == list(expected.items())
        _require(same, f"initial of {kind}", f"return {expected} in this order", shapes)
        fits = inputs.dtype.kind == "f" if data else inputs.dtype.kind == "i" and inputs.shape[1:] == (2,)
        need = f"be {'data' if data else 'two tokens'} for each example"
        _require(fits, what, need, f"{inputs.dtype} of shape {inputs.shape}")
        low, high = (0, 0) if data or not inputs.size else (inputs.min(), inputs.max())
        _require(0 <= low <= high < tokens, what, f"be tokens from 0 to {tokens - 1}", f"{low} to {high}")
    if not is_ours(type(model)):  # ours are tested, and PyTorch takes seconds to import
        _try_out(model, kind, drawn)


def _try_out(model: Any, kind: str, drawn: Mapping[str, NDArray[np.float64]]) -> None:
    """Refuse a model whose outputs or points are wrong for two members on three examples, or mix members."""
    import torch

    task, width, generator = model.task, model.task.classes, np.random.default_rng(1)
    if model.loss == "mean_squared_error":
        classes, width = finite_array(f"targets of {kind}", model.targets(generator)).shape
        _require(classes == task.classes, f"targets of {kind}", f"have {task.classes} rows", classes)
    second = model.initial(generator, generator)
    parameters = {}
    for name, value in drawn.items():
        pair = np.stack([value, second[name]]).astype(float)
        # Noise tells members apart whose initial values do not depend on the generators, such as biases of 0.
        noise = 0.01 * generator.standard_normal(pair.shape)
        parameters[name] = torch.as_tensor(pair + noise).requires_grad_()
    tokens = task.inputs.reshape(len(task), -1)
    examples = [0, tokens.min(axis=1).argmin(), tokens.max(axis=1).argmax()]
    inputs = torch.as_tensor(task.inputs[examples])
    inputs = (inputs.double() if inputs.is_floating_point() else inputs).expand(2, *inputs.shape)
    labels = torch.as_tensor(task.labels[examples]).expand(2, -1)
    rates = []

    def dropout(states: torch.Tensor, rate: float) -> torch.Tensor:
        rates.append(rate)
        return states

    def computed(name: str, members: slice) -> torch.Tensor:
        of_members = {key: value[members] for key, value in parameters.items()}
        if name == "outputs":
            return model.outputs(of_members, inputs[members], dropout)
        return model.point_sets(of_members, (inputs[members], labels[members]))

    for name, shape in (("point_sets", (model.tokens, model.dim)), ("outputs", (3, width))):
        together = computed(name, slice(2))
        alone = torch.cat([computed(name, slice(1)), computed(name, slice(1, 2))])
        right, got = together.shape == (2, *shape), tuple(together.shape)
        _require(right, f"{name} of {kind}", f"return a tensor of shape {(2, *shape)} here", got)
        rounding = 1e-5 * float(alone.detach().nan_to_num().abs().max())
        right = torch.allclose(together, alone, rtol=0, atol=rounding, equal_nan=True)
        need = "be for each member what they are for it alone"
        _require(right, f"{name} of {kind}", need, "others for two members at once")
    torch.autograd.grad(together.sum(), list(parameters.values()))  # an error if a parameter is not used
    need = "be the rate with which its outputs drop states"
    _require(any(rates) == bool(model.dropout), f"dropout of {kind}", need, model.dropout)
