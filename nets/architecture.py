"""The layers of a dense model: how two tokens are combined, the dense layers after that, and the loss."""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from physics.checks import InputError, choice, number, sequence, whole_number

if TYPE_CHECKING:
    from torch import Tensor

EMBEDDING = "embedding"
Combine = Literal["sum", "concatenate", "product", "data", "neurons"]
Activation = Literal["silu", "relu", "tanh", "asinh"]
Neuron = Literal["relu", "quadratic", "silu", "tanh", "abs"]
"""Names of the activations of `nets.TwoLayer`."""
Loss = Literal["cross_entropy", "mean_squared_error"]
Initialisation = Literal["pytorch", "kaiming_uniform", "kaiming_normal", "xavier_uniform", "xavier_normal"]


@dataclass(frozen=True)
class Architecture:
    """Layers between the tokens and the loss of a model that both engines can train.

    A `DenseModel` states its layers in this form once. The PyTorch engine and the fused engine both compute
    them from it, so that a model of your own needs no code for either.

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
    activation : {"silu", "relu", "tanh", "asinh", "quadratic", "abs"}
        Function after each dense layer except the last; under "neurons" it is the function σ.
    loss : {"cross_entropy", "mean_squared_error"}
        Loss, averaged over the examples. The squared error is also averaged over the outputs, as in PyTorch's
        `MSELoss`.
    even : float, default 0.0
        Weight λ, at least 0, of the even part of SiLU, `λ (x/2) tanh(x/2)`, which is added to the activation.
    biases : bool, default True
        Whether the dense layers have biases; those after "neurons" have none.
    frequencies : tuple of int, default ()
        Frequencies of the part of the embedding that enters the first layer, from 1 to (tokens - 1) / 2, if
        the tokens are numbers that are added; the empty tuple stands for all of the embedding. It is for
        "sum" and "concatenate".

    Raises
    ------
    InputError
        If a name is unknown, a size or a frequency is not a whole number of at least 1, there are too few
        sizes, "product" meets a number of inputs that is not a square, or frequencies do not fit.

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
    even: float = 0.0
    biases: bool = True
    frequencies: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        choice("combine", self.combine, get_args(Combine))
        choice("activation", self.activation, tuple({*get_args(Activation), *get_args(Neuron)}))
        choice("loss", self.loss, get_args(Loss))
        number("even", self.even, 0.0)
        sizes = [whole_number("sizes", size, 1) for size in sequence("sizes", self.sizes)]
        neurons = self.combine == "neurons"
        if (len(sizes) != 2) if neurons else len(sizes) < 3:
            rest = "neurons and outputs" if neurons else "inputs, hidden layers (at least one) and outputs"
            raise InputError(f"sizes must be those of {rest}, got {self.sizes}")
        if self.combine == "product" and math.isqrt(sizes[0]) ** 2 != sizes[0]:
            raise InputError(f"sizes must begin with a square where embeddings are matrices, got {sizes[0]}")
        for frequency in sequence("frequencies", self.frequencies):
            whole_number("frequencies", frequency, 1)
        if self.frequencies and self.combine not in ("sum", "concatenate"):
            raise InputError(f"frequencies must be left out for {self.combine!r}, got {self.frequencies}")

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the dense layers, such as ("hidden1", "output"), with which parameter names begin."""
        return (*(f"hidden{number}" for number in range(1, len(self.sizes) - 1)), "output")

    def shapes(self, tokens: int, dim: int) -> dict[str, tuple[int, ...]]:
        """Return the shape of each parameter of one member, in the order in which a model returns them.

        Parameters
        ----------
        tokens, dim : int
            Shape of the embedding.

        Returns
        -------
        dict of str to tuple of int
            Shapes by name: of the embedding, unless the layers read data, and of the weights and biases.

        Examples
        --------
        >>> import nets
        >>> nets.Architecture("neurons", (8, 5), "relu", "cross_entropy").shapes(5, 8)
        {'embedding': (5, 8), 'output.weight': (8, 5)}
        """
        shapes: dict[str, tuple[int, ...]] = {} if self.combine == "data" else {EMBEDDING: (tokens, dim)}
        for name, (inputs, width) in zip(self.layers, pairwise(self.sizes), strict=True):
            shapes[f"{name}.weight"] = (inputs, width)
            if self.biases and self.combine != "neurons":
                shapes[f"{name}.bias"] = (1, width)
        return shapes

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
            "NAME.weight" (inputs, outputs) and "NAME.bias" (1, outputs) for each layer. The weights are the
            same without biases.

        Raises
        ------
        InputError
            If `initialisation` is none of these.
        """
        choice("initialisation", initialisation, get_args(Initialisation))
        drawn: dict[str, NDArray[np.float64]] = {}
        for name, (inputs, outputs) in zip(self.layers, pairwise(self.sizes), strict=True):
            drawn |= draw_layer(name, initialisation, inputs, outputs, generator)
            if not self.biases:
                del drawn[f"{name}.bias"]
        return drawn

    def projector(self, tokens: int) -> NDArray[np.float64]:
        """Return the matrix that projects an embedding on the part of it with the `frequencies`.

        Parameters
        ----------
        tokens : int
            Number of tokens.

        Returns
        -------
        ndarray of float64, shape (tokens, tokens)
            Symmetric matrix, or shape (0, 0) if all of the embedding enters.

        Raises
        ------
        InputError
            If a frequency is larger than (tokens - 1) / 2, or occurs twice.
        """
        if not self.frequencies:
            return np.empty((0, 0))
        if max(self.frequencies) > (tokens - 1) // 2 or len({*self.frequencies}) < len(self.frequencies):
            raise InputError(
                f"frequencies must be different numbers up to {(tokens - 1) // 2}, got {self.frequencies}"
            )
        gaps = 2 * np.pi / tokens * np.subtract.outer(np.arange(tokens), np.arange(tokens))
        return 2 / tokens * np.cos(np.multiply.outer(gaps, self.frequencies)).sum(2)

    def decoded(self, parameters: dict[str, "Tensor"], states: "Tensor") -> "Tensor":
        """Return the outputs for given inputs of the first dense layer, such as sums of two embeddings.

        Parameters
        ----------
        parameters : dict of Tensor
            Parameters by name, each with a first axis of length runs.
        states : Tensor, shape (runs, examples, sizes[0])
            Inputs of the first dense layer.

        Returns
        -------
        Tensor, shape (runs, examples, outputs)
            Logits, or estimates of the targets.
        """
        first = dense(parameters, self.layers[0], states)
        return dense(parameters, "output", self._last_hidden(parameters, first))

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
        return self._last_hidden(parameters, self._first(parameters, inputs))

    def _last_hidden(self, parameters: dict[str, "Tensor"], states: "Tensor") -> "Tensor":
        """Return the activations of the last hidden layer, from the states of the first before theirs."""
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
        if self.frequencies:
            embedding = embedding.new_tensor(self.projector(embedding.shape[1])) @ embedding
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
        if self.biases:
            first = first + parameters[f"{name}.bias"]
        return embedded(first, one) + embedded(second, other)


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

    Raises
    ------
    InputError
        If `embedding` is no tensor with three axes, or `tokens` is no tensor.

    Examples
    --------
    >>> import nets, torch
    >>> table = torch.arange(12.0).reshape(2, 3, 2)  # two members, three tokens, two dimensions
    >>> nets.embedded(table, torch.tensor([[0, 2], [1, 1]])).tolist()
    [[[0.0, 1.0], [4.0, 5.0]], [[8.0, 9.0], [8.0, 9.0]]]
    """
    import torch

    if not (isinstance(embedding, torch.Tensor) and isinstance(tokens, torch.Tensor) and embedding.ndim == 3):
        got = f"{type(embedding).__name__} {np.shape(embedding)} and {type(tokens).__name__}"
        raise InputError(f"embedding must be a tensor (runs, tokens, dim), and tokens a tensor, got {got}")
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
    deviation = (2 / (inputs + outputs if initialisation.startswith("xavier") else inputs)) ** 0.5
    if initialisation.endswith("normal"):
        return generator.normal(0.0, deviation, (inputs, outputs))
    bound = inputs**-0.5 if initialisation == "pytorch" else 3**0.5 * deviation
    return generator.uniform(-bound, bound, (inputs, outputs))
