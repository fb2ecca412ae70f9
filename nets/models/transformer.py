"""The transformer of Liu et al., computed for all members of an ensemble as one batch."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nets.architecture import EMBEDDING, Initialisation, dense, draw_layer, embedded
from nets.models.dense import LIU
from nets.models.model import ModularAddition, Parameters
from nets.tasks import Task, modular_addition
from physics.checks import InputError, flag, number

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class TokenTransformer(ModularAddition):
    """A decoder-only transformer on the two tokens of modular addition (Liu et al. §4.2).

    Each token is embedded. Then follow blocks, each of which has two parts: attention and a feed-forward
    layer. A layer norm precedes each part, and the output of a part is added to its input. The two outputs of
    the last block, one for each token, are concatenated and mapped to the classes by a linear layer.

    Parameters
    ----------
    tokens : int, default 53
        Number of tokens p, which is also the modulus; at least 3.
    dim : int, default 256
        Dimension of the embedding and of all states, at least 1; a multiple of `heads`.
    depth : int, default 2
        Number of blocks, at least 1.
    heads : int, default 1
        Number of attention heads in each block, at least 1.
    width : int, default 256
        Number of hidden units in each feed-forward layer, at least 1.
    dropout : float, default 0.0
        Rate of dropout in the blocks during training, at least 0 and less than 1. Which units are dropped
        follows from the seed and from the kind of device.
    causal : bool, default True
        Whether the first token is kept from attending to the second.
    initialisation : str, default "pytorch"
        Distribution of the initial weights: "pytorch", as in PyTorch's `TransformerEncoderLayer` and
        `Linear`; or "kaiming_uniform", "kaiming_normal", "xavier_uniform" or "xavier_normal" for all weights,
        with biases of zero. The embedding is standard normal, and layer norms begin with gains of 1.

    Raises
    ------
    InputError
        If a value is out of its range, or `heads` does not divide `dim`.

    Notes
    -----
    The paper states the number of tokens, the dimension, the concatenation, and that the blocks have dropout.
    Except for the mask, all other defaults are those of its published code: two blocks of one head,
    feed-forward layers as wide as the embedding, ReLU, and no layer norm at the end. Dropout acts on
    attention weights, on hidden units and on the output of each part. There is no positional encoding,
    because the concatenation distinguishes the two tokens. The code has no causal mask, although the paper
    calls the model decoder-only; here the mask is the default, and `causal=False` is the model of the code.

    The embedding alone is the encoder. ``nets.train(..., embedding_weight_decay=0)`` therefore applies weight
    decay only to the decoder, which is everything else, as the paper does.

    Examples
    --------
    >>> import nets
    >>> small = nets.TokenTransformer(tokens=5, dim=4, depth=1, width=8)
    >>> nets.train(small, runs=2, steps=3, record=1).positions.shape
    (2, 4, 5, 4)
    """

    tokens: int = 53
    dim: int = 256
    depth: int = 2
    heads: int = 1
    width: int = 256
    dropout: float = 0.0
    causal: bool = True
    initialisation: Initialisation = "pytorch"

    settings: ClassVar[Mapping[str, Any]] = {**LIU, "weight_decay": 1.0, "train_fraction": 0.8, "steps": 2000}

    def __post_init__(self) -> None:
        self._check(tokens=3, dim=1, depth=1, heads=1, width=1)
        if self.dim % self.heads:
            raise InputError(f"heads must divide dim = {self.dim}, got {self.heads}")
        self._set(dropout=number("dropout", self.dropout, 0.0, below=1.0), causal=flag("causal", self.causal))

    @cached_property
    def task(self) -> Task:
        """Modular addition: all ordered pairs with the label (a + b) mod tokens."""
        return modular_addition(self.tokens, ordered=True)

    @property
    def loss(self) -> str:
        """Training loss, which is "cross_entropy"."""
        return "cross_entropy"

    @property
    def activation_numbers(self) -> int:
        """Approximate count of numbers that PyTorch keeps for one example of one member during training.

        It counts about 18 states and 4 hidden layers for each token and block, the attention, and the logits.
        """
        return 2 * self.depth * (18 * self.dim + 4 * self.width + 8 * self.heads) + 3 * self.tokens

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
            "embedding" (tokens, dim), weights (inputs, outputs), biases (1, outputs), and gains of the layer
            norms (1, dim), by name.
        """
        drawn: Parameters = {EMBEDDING: embedding.standard_normal((self.tokens, self.dim))}
        rule = self.initialisation
        for block in self._blocks:
            for part in ("attention", "feed_forward"):
                drawn[f"{block}.{part}.norm.weight"] = np.ones((1, self.dim))
                drawn[f"{block}.{part}.norm.bias"] = np.zeros((1, self.dim))
            # PyTorch's attention: queries, keys and values by Xavier's rule as one layer, biases zero.
            as_one = "xavier_uniform" if rule == "pytorch" else rule
            drawn |= draw_layer(f"{block}.attention.in", as_one, self.dim, 3 * self.dim, layers)
            drawn |= draw_layer(f"{block}.attention.out", rule, self.dim, self.dim, layers)
            drawn[f"{block}.attention.out.bias"][:] = 0
            drawn |= draw_layer(f"{block}.feed_forward.in", rule, self.dim, self.width, layers)
            drawn |= draw_layer(f"{block}.feed_forward.out", rule, self.width, self.dim, layers)
        return drawn | draw_layer("output", rule, 2 * self.dim, self.tokens, layers)

    def outputs(self, parameters: dict[str, "Tensor"], inputs: "Tensor", dropout: Any = None) -> "Tensor":
        """Compute the logits of all members at once.

        Parameters
        ----------
        parameters : dict of Tensor
            Parameters by name, each with a first axis of length runs.
        inputs : Tensor of int64, shape (runs, examples, 2)
            Pairs of tokens.
        dropout : callable, optional
            Function ``dropout(states, rate)`` that, during training, sets a random fraction `rate` of the
            numbers to zero and divides the others by ``1 - rate``, so that their mean stays the same; None at
            evaluation.

        Returns
        -------
        Tensor, shape (runs, examples, tokens)
            Logits.
        """
        from torch import cat, relu

        runs, examples, _ = inputs.shape
        drops = dropout is not None and self.dropout > 0

        def drop(states: "Tensor") -> "Tensor":
            return dropout(states, self.dropout) if drops else states

        # Under the mask, the states of a first token depend on this token alone, as do all queries, keys and
        # values of the first block. Computing them once for each token instead of once for each example does
        # less than half of the work. Dropout makes them differ, and few examples would gain nothing.
        shared = self.causal and not drops and examples > self.tokens
        first, second = inputs.unbind(-1)
        states = parameters[EMBEDDING] if shared else embedded(parameters[EMBEDDING], inputs.flatten(1))
        for block in self._blocks:
            name = f"{block}.attention"
            joint = dense(parameters, f"{name}.in", _normed(parameters, name, states))
            if shared and block == self._blocks[0]:  # from here also rows of each example's second token
                joint, states = (cat([rows, embedded(rows, second)], 1) for rows in (joint, states))
            mixed = self._mix_second(joint, first) if shared else self._mix(joint, drop)
            states = states + drop(dense(parameters, f"{name}.out", mixed))
            name = f"{block}.feed_forward"
            hidden = relu(dense(parameters, f"{name}.in", _normed(parameters, name, states)))
            states = states + drop(dense(parameters, f"{name}.out", drop(hidden)))
        if shared:
            states = cat([embedded(states[:, : self.tokens], first), states[:, self.tokens :]], -1)
        return dense(parameters, "output", states.reshape(runs, examples, 2 * self.dim))

    @property
    def _blocks(self) -> tuple[str, ...]:
        return tuple(f"block{number}" for number in range(1, self.depth + 1))

    def _mix(self, joint: "Tensor", drop: Any) -> "Tensor":
        """Average the values of the tokens by attention.

        `joint` (runs, rows, 3 dim) holds queries, keys and values next to each other; two successive rows are
        the tokens of one example. Returns (runs, rows, dim).
        """
        import torch

        runs, rows, _ = joint.shape
        shape = (runs, rows // 2, 2, 3, self.heads, self.dim // self.heads)
        queries, keys, values = joint.reshape(shape).permute(3, 0, 1, 4, 2, 5)
        scores = queries @ keys.transpose(-1, -2) / (self.dim // self.heads) ** 0.5
        if self.causal:
            later = torch.ones(2, 2, dtype=torch.bool, device=scores.device).triu(1)
            scores = scores.masked_fill(later, -torch.inf)
        mixed = drop(scores.softmax(-1)) @ values
        return mixed.transpose(2, 3).reshape(runs, rows, self.dim)

    def _mix_second(self, joint: "Tensor", first: "Tensor") -> "Tensor":
        """Average the values by causal attention, with the first token of each example computed once.

        `joint` (runs, tokens + examples, 3 dim) holds queries, keys and values of every token as a first one,
        and then those of the second token of each example, whose first token is in `first` (runs, examples).
        Returns (runs, tokens + examples, dim). A first token sees only itself, so that its average is its
        value. A second one sees both, and a softmax of two scores is the sigmoid of their difference.
        """
        from torch import cat, lerp

        alone, seconds = joint[:, : self.tokens], joint[:, self.tokens :]
        heads = (self.heads, self.dim // self.heads)
        queries, own_keys, own_values = seconds.unflatten(-1, (3, *heads)).unbind(2)
        keys, values = embedded(alone[..., self.dim :], first).unflatten(-1, (2, *heads)).unbind(2)
        scores = (queries * (keys - own_keys)).sum(-1, keepdim=True) / heads[1] ** 0.5
        mixed = lerp(own_values, values, scores.sigmoid())
        return cat([alone[..., 2 * self.dim :], mixed.flatten(2)], 1)


def _normed(parameters: dict[str, "Tensor"], name: str, states: "Tensor") -> "Tensor":
    """Apply a layer norm with the gain and the bias of each member."""
    import torch

    normal = torch.nn.functional.layer_norm(states, states.shape[-1:])
    return torch.addcmul(parameters[f"{name}.norm.bias"], normal, parameters[f"{name}.norm.weight"])
