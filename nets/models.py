"""The models: their parameters, how they begin, and what they compute, for a whole ensemble at once."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nets.tasks import Task, modular_addition
from physics.checks import whole_number

EMBEDDING = "embedding"


@dataclass(frozen=True)
class ConstantAttention:
    """`W_o ReLU(W_h (E_a + E_b) + b_h) + b_o` on modular addition (Musat §3).

    Parameters
    ----------
    tokens : int, default 17
        Modulus N, at least 3.
    dim : int, default 2
        Dimension D of the embedding, at least 1.
    hidden : int, default 32
        Width H of the hidden layer, at least 1.

    Raises
    ------
    InputError
        If a value is out of its range.
    """

    tokens: int = 17
    dim: int = 2
    hidden: int = 32

    def __post_init__(self) -> None:
        for name, minimum in (("tokens", 3), ("dim", 1), ("hidden", 1)):
            object.__setattr__(self, name, whole_number(name, getattr(self, name), minimum))

    @property
    def task(self) -> Task:
        """What it learns."""
        return modular_addition(self.tokens)

    def initial(
        self, embedding: np.random.Generator, layers: np.random.Generator
    ) -> dict[str, NDArray[np.float64]]:
        """Draw the parameters of one member as PyTorch's modules do by default.

        The embedding (tokens, dim) is standard normal; weights (inputs, outputs) and biases of a linear
        layer are uniform on ±1/√inputs.
        """
        return {
            EMBEDDING: embedding.standard_normal((self.tokens, self.dim)),
            **_linear("hidden", self.dim, self.hidden, layers),
            **_linear("output", self.hidden, self.tokens, layers),
        }

    def logits(self, parameters: dict[str, Tensor], inputs: Tensor) -> Tensor:
        """Compute logits (runs, examples, tokens) for `inputs` (runs, examples, 2)."""
        embedding = parameters[EMBEDDING]
        runs, examples, _ = inputs.shape
        index = inputs.reshape(runs, 2 * examples, 1).expand(-1, -1, self.dim)
        pair_sums = embedding.gather(1, index).reshape(runs, examples, 2, self.dim).sum(2)
        hidden = torch.baddbmm(parameters["hidden.bias"], pair_sums, parameters["hidden.weight"]).relu()
        return torch.baddbmm(parameters["output.bias"], hidden, parameters["output.weight"])


def _linear(
    name: str, inputs: int, outputs: int, generator: np.random.Generator
) -> dict[str, NDArray[np.float64]]:
    """Weights (inputs, outputs) and bias (1, outputs) of a linear layer."""
    bound = inputs**-0.5
    return {
        f"{name}.weight": generator.uniform(-bound, bound, (inputs, outputs)),
        f"{name}.bias": generator.uniform(-bound, bound, (1, outputs)),
    }
