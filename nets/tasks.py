"""What the networks learn: examples, labels, and the split into training and validation sets."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from physics.checks import number
from physics.errors import InputError


@dataclass(frozen=True)
class Task:
    """All examples of a task.

    Attributes
    ----------
    inputs : ndarray of int64, shape (examples, 2)
        Tokens a, b.
    labels : ndarray of int64, shape (examples,)
    """

    inputs: NDArray[np.int64]
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    def training_size(self, fraction: float) -> int:
        """Number of training examples: the whole part of `fraction` of all, as 122 of 153 at 0.8."""
        fraction = number("train_fraction", fraction, above=0.0)
        size = int(fraction * len(self) + 1e-9)
        if not 0 < size < len(self):
            raise InputError(
                f"train_fraction must leave at least one training and one validation example of {len(self)}, "
                f"got {fraction:g}"
            )
        return size

    def split(
        self, fraction: float, generator: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Draw the indices of the training examples, and those of the rest, each in increasing order."""
        order = generator.permutation(len(self))
        size = self.training_size(fraction)
        return np.sort(order[:size]), np.sort(order[size:])


def modular_addition(tokens: int) -> Task:
    """Unordered pairs a ≤ b with label (a + b) mod tokens (Musat §3)."""
    inputs = np.stack(np.triu_indices(tokens), axis=1).astype(np.int64)
    return Task(inputs, inputs.sum(axis=1) % tokens)
