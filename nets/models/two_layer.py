"""The two-layer network of He, Wang, Chen and Yang, whose neurons come to respond to one frequency each."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from nets.architecture import EMBEDDING, Architecture, Neuron
from nets.models.model import DenseModel, ModularAddition, Parameters
from nets.tasks import Task, modular_addition
from physics.checks import InputError, choice, number

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
            raise InputError(
                f"tokens must be odd and at least 5 if start is 'single_frequency', got {self.tokens}"
            )

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
