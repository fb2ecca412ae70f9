"""
Train a network of your own
===========================

A model is a task, a random start, and a function from parameters to outputs. This one subtracts modulo 11 by
the entrywise product of two embeddings. Eight members train at once.
"""

from dataclasses import dataclass
from functools import cached_property

import matplotlib.pyplot as plt
import numpy as np

import nets


@dataclass(frozen=True)
class Product(nets.Model):
    """Compute the logits of a - b mod p as W (E_a * E_b), from the entrywise product of two embeddings."""

    tokens: int = 11
    dim: int = 12
    loss = "cross_entropy"

    @cached_property
    def task(self):
        """List all ordered pairs with their differences."""
        pairs = np.indices((self.tokens, self.tokens)).reshape(2, -1).T
        return nets.Task(pairs, (pairs[:, 0] - pairs[:, 1]) % self.tokens, self.tokens)

    def initial(self, embedding, layers):
        """Draw one member from two random generators."""
        return {
            "embedding": embedding.standard_normal((self.tokens, self.dim)),
            "readout": layers.standard_normal((self.dim, self.tokens)) / self.dim**0.5,
        }

    def outputs(self, parameters, inputs, dropout=None):
        """Return logits (runs, examples, tokens) for pairs of tokens (runs, examples, 2)."""
        pairs = nets.embedded(parameters["embedding"], inputs)
        return pairs.prod(2) @ parameters["readout"]


trained = nets.train(
    Product(), runs=8, steps=300, weight_decay=0.1, learning_rate=0.01, record=10, observables=("layers",)
)

# %%
# The product of two embeddings cannot distinguish a - b from b - a. So the network can answer at most the
# pairs with a = b and one of each two others, 6 of every 11. Its accuracy on all pairs cannot exceed this.

labels = Product().task.labels
answers = [nets.networks(trained, frame).outputs().argmax(-1) for frame in range(len(trained.steps))]
accuracy = np.mean(np.array(answers) == labels, axis=-1)  # (frames, runs)
plt.style.use("analysis.plots.grokphys")
figure, ax = plt.subplots(figsize=(6.4, 3.8))
ax.plot(trained.steps, 100 * accuracy, linewidth=1)
ax.axhline(100 * 6 / 11, color="#888888", linestyle="--", linewidth=1, label="bound, 6 in 11")
ax.set(xlabel="step", ylabel="accuracy on all pairs (%)", ylim=(0, 100))
ax.legend(loc="upper left")
plt.show()
