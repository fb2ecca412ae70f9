"""The layers of a dense model: how two tokens are combined, the dense layers after that, and the loss."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from physics.checks import choice, number, sequence, whole_number
from physics.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

EMBEDDING = "embedding"
Combine = Literal["sum", "concatenate", "product", "data", "neurons"]
Activation = Literal["silu", "relu", "tanh", "asinh"]
Neuron = Literal["relu", "quadratic", "silu", "tanh", "abs"]
"""Names of the activations of `nets.TwoLayer`."""
Loss = Literal["cross_entropy", "mean_squared_error"]
Initialisation = Literal["pytorch", "kaiming_uniform", "kaiming_normal", "xavier_uniform", "xavier_normal"]

ODD = ("tanh", "asinh")
"""Activations that are odd functions, to which an even part may be added."""
ACTIVATIONS: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "relu": lambda x: np.maximum(x, 0),
    "quadratic": np.square,
    "silu": lambda x: x / 2 * (1 + np.tanh(x / 2)),  # x / (1 + exp(-x)) overflows
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "abs": np.abs,
}
"""The activations as functions of NumPy arrays, by name."""


@dataclass(frozen=True)
class Architecture:
    """Layers between the tokens and the loss of a model that both engines can train.

    A `DenseModel` states its layers in this form once. The PyTorch engine and the fused engine both compute
    them from it, so that a model of your own needs no code for either. Values are checked when a training
    begins (see `check`), not when an architecture is created.

    Attributes
    ----------
    combine : {"sum", "concatenate", "product", "data", "neurons"}
        How the embeddings of two tokens a and b become the input of the first dense layer. "sum" is `E_a +
        E_b`, "concatenate" is `[E_a, E_b]`, and "product" is the matrix product `E_a E_b` of embeddings that
        are square matrices. "data" is the example itself, without an embedding. "neurons" takes the rows of
        the embedding as the weights into a hidden layer, whose activations are `σ(E_a + E_b)`; one layer
        without a bias follows.
    sizes : tuple of int
        Number of inputs of the first dense layer, widths of the hidden layers, number of outputs of the last.
        Under "neurons" they are two: the number of neurons and the number of outputs.
    activation : {"silu", "relu", "tanh", "asinh"}
        Function after each dense layer except the last. Under "neurons" it is the function σ, which is one of
        "relu", "quadratic", "silu", "tanh" and "abs".
    loss : {"cross_entropy", "mean_squared_error"}
        Loss, averaged over the examples. The squared error is also averaged over the outputs, as in PyTorch's
        `MSELoss`. Under "neurons" it is the cross-entropy.
    embedding_penalty : float, default 0.0
        Factor, at least 0, of the mean magnitude of the embedding's components, which is added to the
        training loss. Under "neurons" it is 0.
    even : float, default 0.0
        Weight λ, at least 0, of the even part of SiLU, `λ (x/2) tanh(x/2)`, which is added to the activation.
        Under "neurons" it is 0.

    Examples
    --------
    >>> import nets
    >>> layers = nets.Architecture("sum", (2, 32, 17), "relu", "cross_entropy")
    >>> layers.layers
    ('hidden1', 'output')
    """

    combine: Combine
    sizes: tuple[int, ...]
    activation: Activation | Neuron
    loss: Loss
    embedding_penalty: float = 0.0
    even: float = 0.0

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the dense layers, such as ("hidden1", "output"), with which parameter names begin."""
        return (*(f"hidden{number}" for number in range(1, len(self.sizes) - 1)), "output")

    def check(
        self, kind: str, embedding: tuple[int, int], features: int, loss: str
    ) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the parameters, and refuse an architecture that does not fit its model.

        Engines trust shapes, so a model of your own is checked once, before it is trained.

        Parameters
        ----------
        kind : str
            Name of the model, with which messages begin.
        embedding : pair of int
            Numbers of tokens and of dimensions of the embedding.
        features : int
            Length of one input of a model that reads data.
        loss : str
            Loss that the model states.

        Returns
        -------
        dict of str to tuple of int
            Shape of each parameter of one member, in the order in which the model must return them.

        Raises
        ------
        InputError
            If `combine`, `activation` or `loss` is unknown, if `loss`, `embedding_penalty` or `even` is not
            allowed, if the sizes are not whole numbers of at least 1, if they or the loss do not agree with
            the model, or if "product" meets a dimension that is not a square number.
        """
        neurons = self.combine == "neurons"
        activations = Neuron if neurons else Activation
        for name, allowed in (("combine", Combine), ("activation", activations), ("loss", Loss)):
            choice(f"architecture.{name} of {kind}", getattr(self, name), get_args(allowed))
        name = f"architecture.sizes of {kind}"
        layers = list(pairwise(whole_number(name, size, 1) for size in sequence(name, self.sizes)))
        _, dim = embedding
        first = {"concatenate": 2 * dim, "data": features}.get(self.combine, dim)
        if (len(layers) != 1 if neurons else len(layers) < 2) or self.sizes[0] != first or self.loss != loss:
            rest = "outputs)" if neurons else "hidden widths, outputs) with at least one hidden width"
            raise InputError(
                f"architecture of {kind} must have the sizes ({first}, {rest} and the loss {loss!r}, got "
                f"{self.sizes} and {self.loss!r}"
            )
        for name in ("embedding_penalty", "even"):
            if number(f"architecture.{name} of {kind}", value := getattr(self, name), 0.0) and neurons:
                raise InputError(
                    f"architecture.{name} of {kind} must be 0 where combine is 'neurons', got {value}"
                )
        if neurons and loss != "cross_entropy":
            raise InputError(
                f"architecture.loss of {kind} must be 'cross_entropy' where combine is 'neurons', got "
                f"{loss!r}"
            )
        if self.combine == "product" and math.isqrt(dim) ** 2 != dim:
            raise InputError(f"dim of {kind} must be a square where embeddings are matrices, got {dim}")
        wanted: dict[str, tuple[int, ...]] = {} if self.combine == "data" else {EMBEDDING: embedding}
        for name, (inputs, width) in zip(self.layers, layers, strict=True):
            wanted |= {f"{name}.weight": (inputs, width)}
            wanted |= {} if neurons else {f"{name}.bias": (1, width)}
        return wanted

    def draw(
        self, initialisation: Initialisation, generator: np.random.Generator
    ) -> dict[str, NDArray[np.float64]]:
        """Draw the weights and biases of the dense layers, in their order.

        Parameters
        ----------
        initialisation : {"pytorch", "kaiming_uniform", "kaiming_normal", "xavier_uniform", "xavier_normal"}
            Distribution of the weights. "pytorch" is uniform on ±1/√inputs, for biases too; the others have
            biases of zero.
        generator : numpy.random.Generator
            Source of the random numbers.

        Returns
        -------
        dict of ndarray of float64
            "NAME.weight" (inputs, outputs) and "NAME.bias" (1, outputs) for each layer.

        Raises
        ------
        InputError
            If `initialisation` is none of these.
        """
        choice("initialisation", initialisation, get_args(Initialisation))
        drawn: dict[str, NDArray[np.float64]] = {}
        for name, (inputs, outputs) in zip(self.layers, pairwise(self.sizes), strict=True):
            drawn |= draw_layer(name, initialisation, inputs, outputs, generator)
        return drawn

    def decoded(self, parameters: Mapping[str, NDArray[Any]], states: NDArray[Any]) -> NDArray[Any]:
        """Return the outputs of one member for given inputs of its first dense layer.

        This is computed with NumPy, because PyTorch takes seconds to import. It needs biases, so it does not
        apply to "neurons", whose layer has none.

        Parameters
        ----------
        parameters : mapping of str to ndarray
            Parameters of the member by name, without an axis of runs.
        states : ndarray, shape (examples, sizes[0])
            Inputs of the first dense layer, such as sums of two embeddings.

        Returns
        -------
        ndarray, shape (examples, outputs)
            Logits, or estimates of the targets, in the number type of the arguments.

        Examples
        --------
        >>> import nets, numpy as np
        >>> layers = nets.Architecture("sum", (2, 8, 5), "relu", "cross_entropy")
        >>> parameters = layers.draw("pytorch", np.random.default_rng(0))
        >>> layers.decoded(parameters, np.zeros((3, 2))).shape
        (3, 5)
        """
        for name in self.layers:
            if name != self.layers[0]:
                even = self.even * states / 2 * np.tanh(states / 2) if self.even else 0
                states = ACTIVATIONS[self.activation](states) + even
            states = states @ parameters[f"{name}.weight"] + parameters[f"{name}.bias"]
        return states

    def hidden(self, parameters: dict[str, "Tensor"], inputs: "Tensor") -> "Tensor":
        """Return the activations of the last hidden layer for all members at once.

        Parameters
        ----------
        parameters : dict of Tensor
            Parameters by name, each with a first axis of length runs.
        inputs : Tensor, shape (runs, examples, 2) or (runs, examples, features)
            Pairs of tokens (int64), or data.

        Returns
        -------
        Tensor, shape (runs, examples, width)
            Activations, where width is that of the last hidden layer.
        """
        if self.combine == "neurons":
            return self.activate(embedded(parameters[EMBEDDING], inputs).sum(2))
        states = self._first(parameters, inputs)
        for name in self.layers[1:-1]:
            states = dense(parameters, name, self.activate(states))
        return self.activate(states)

    def activate(self, states: "Tensor") -> "Tensor":
        """Apply the activation, with its even part if there is one, to each number.

        Parameters
        ----------
        states : Tensor
            Values of any shape.

        Returns
        -------
        Tensor, the shape of `states`
            Activations.

        Examples
        --------
        >>> import nets, torch
        >>> nets.Architecture("sum", (2, 8, 5), "relu", "cross_entropy").activate(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
        """
        import torch

        functions: dict[str, Any] = {"silu": torch.nn.functional.silu, "quadratic": torch.square}
        activated: Tensor = (functions.get(self.activation) or getattr(torch, self.activation))(states)
        if self.even:
            half = states / 2
            activated = activated + self.even * half * torch.tanh(half)
        return activated

    def outputs(self, parameters: dict[str, "Tensor"], inputs: "Tensor") -> "Tensor":
        """Return the outputs of the last layer for all members at once.

        Parameters
        ----------
        parameters : dict of Tensor
            Parameters by name, each with a first axis of length runs.
        inputs : Tensor, shape (runs, examples, 2) or (runs, examples, features)
            Pairs of tokens (int64), or data.

        Returns
        -------
        Tensor, shape (runs, examples, outputs)
            Logits, or estimates of the targets.
        """
        return dense(parameters, "output", self.hidden(parameters, inputs))

    def _first(self, parameters: dict[str, "Tensor"], inputs: "Tensor") -> "Tensor":
        """Return the first dense layer of some inputs, before the activation, (runs, examples, sizes[1])."""
        name = self.layers[0]
        if self.combine == "data":
            return dense(parameters, name, inputs)
        embedding = parameters[EMBEDDING]
        if self.combine == "product" or inputs.shape[1] < embedding.shape[1]:
            pairs = embedded(embedding, inputs)
            if self.combine == "sum":
                return dense(parameters, name, pairs.sum(2))
            if self.combine == "product":
                side = math.isqrt(pairs.shape[3])
                first, second = pairs.unflatten(3, (side, side)).unbind(2)
                pairs = first @ second
            return dense(parameters, name, pairs.flatten(2))
        # The layer is linear. With no fewer examples than tokens it is computed for each token at each place,
        # and the results of two tokens are added.
        places = parameters[f"{name}.weight"].unflatten(1, (-1, embedding.shape[2]))
        first, *others = (embedding[:, None] @ places).unbind(1)
        second = others[0] if others else first  # of a sum, both places have the same weights
        one, other = inputs.unbind(2)
        return embedded(first + parameters[f"{name}.bias"], one) + embedded(second, other)


def embedded(embedding: "Tensor", tokens: "Tensor") -> "Tensor":
    """Look up the embeddings of tokens for every member of an ensemble, inside `Model.outputs`.

    All rows are read from one table. With `gather`, PyTorch would sum the gradient of an embedding on CUDA in
    an order that depends on the threads, and results would not repeat.

    Parameters
    ----------
    embedding : Tensor, shape (runs, tokens, dim)
        Embeddings of all members.
    tokens : Tensor of int64, shape (runs, ...)
        Numbers of the tokens, from 0 to tokens - 1. They are not checked.

    Returns
    -------
    Tensor, shape (runs, ..., dim)
        Embedding of each token.

    Examples
    --------
    >>> import nets, torch
    >>> table = torch.arange(12.0).reshape(2, 3, 2)  # two members, three tokens, two dimensions
    >>> nets.embedded(table, torch.tensor([[0, 2], [1, 1]])).tolist()
    [[[0.0, 1.0], [4.0, 5.0]], [[8.0, 9.0], [8.0, 9.0]]]
    """
    import torch

    runs, count, _ = embedding.shape
    begin = torch.arange(0, runs * count, count, device=tokens.device)
    rows = tokens + begin.reshape(-1, *[1] * (tokens.ndim - 1))
    return torch.nn.functional.embedding(rows, embedding.flatten(0, 1))


def draw_layer(
    name: str, initialisation: Initialisation, inputs: int, outputs: int, generator: np.random.Generator
) -> dict[str, NDArray[np.float64]]:
    """Draw the initial weight and bias of one dense layer from a random stream.

    The result holds "NAME.weight" (inputs, outputs) and "NAME.bias" (1, outputs), both of float64. The rule
    "pytorch" draws both as `torch.nn.Linear` does; the Kaiming and Xavier rules draw biases of 0.
    """
    weight = _weights(initialisation, inputs, outputs, generator)
    if initialisation == "pytorch":
        bias = generator.uniform(-(inputs**-0.5), inputs**-0.5, (1, outputs))
    else:
        bias = np.zeros((1, outputs))
    return {f"{name}.weight": weight, f"{name}.bias": bias}


def dense(parameters: dict[str, "Tensor"], name: str, states: "Tensor") -> "Tensor":
    """Return ``states @ weight + bias``, (runs, examples, outputs), of the dense layer `name` of all members.

    `states` (runs, examples, inputs) are the inputs of the layer, and `parameters` are those of the ensemble
    by name, (runs, ...) each. A layer without a bias is allowed.
    """
    import torch

    weight, bias = parameters[f"{name}.weight"], parameters.get(f"{name}.bias")
    return states @ weight if bias is None else torch.baddbmm(bias, states, weight)


def _weights(
    initialisation: Initialisation, inputs: int, outputs: int, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Draw the weights (inputs, outputs) of one layer, which multiply its inputs from the right."""
    deviation = {
        "pytorch": (3 * inputs) ** -0.5,
        "kaiming_uniform": (2 / inputs) ** 0.5,
        "kaiming_normal": (2 / inputs) ** 0.5,
        "xavier_uniform": (2 / (inputs + outputs)) ** 0.5,
        "xavier_normal": (2 / (inputs + outputs)) ** 0.5,
    }[initialisation]
    if initialisation.endswith("normal"):
        return generator.normal(0.0, deviation, (inputs, outputs))
    bound = inputs**-0.5 if initialisation == "pytorch" else 3**0.5 * deviation
    return generator.uniform(-bound, bound, (inputs, outputs))
