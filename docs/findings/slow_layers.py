"""A theory for the arena: an embedding moves by the mean force of sets of layers that learn along with it.

``grokphys arena --tracks fate --theory docs/findings/slow_layers.py:SlowLayers`` puts it into the table, and
takes three seconds of a core for each network held out.
"""

import numpy as np

from nets import ConstantAttention, Training
from nets.architecture import EMBEDDING


class SlowLayers:
    """Layers as slow fields: each set is drawn anew, as the first layers of the networks are not known.

    Embedding and layers take the steps of AdamW of the networks, whose rates and training sets are known.
    """

    name = "mean force of eight sets of layers"
    tracks = ("fate",)
    sets, seed = 8, 46_999

    def fit(self, networks):
        """Note how long networks are trained."""
        self.steps = int(networks.steps[-1])
        return self

    def predict(self, starts):
        """Return where the embeddings are after so many steps, (networks, tokens, dim)."""
        runs = zip(starts.final.astype(float), starts.start["train_examples"], strict=True)
        return np.stack([self.moved(x, examples, starts.parameters) for x, examples in runs])

    def moved(self, x, examples, made):
        """Return where one embedding ends, (tokens, dim)."""
        rate, decay = made["learning_rate"], made["weight_decay"]
        first, second, all_sets = np.zeros_like(x), np.zeros_like(x), (self.sets, *x.shape)
        settings = {"learning_rate": rate, "weight_decay": decay, "train_examples": examples}
        initial = {EMBEDDING: np.broadcast_to(x, all_sets)}
        model = ConstantAttention(*x.shape)
        layers = Training(model, runs=self.sets, seed=self.seed, initial=initial, **settings)
        for step in range(1, self.steps + 1):
            force = layers.machine.gradient(EMBEDDING).mean(axis=0)
            first, second = 0.9 * first + 0.1 * force, 0.999 * second + 0.001 * force**2
            size = np.sqrt(second / (1 - 0.999**step)) + 1e-8
            x = x * (1 - rate * decay) - rate * first / (1 - 0.9**step) / size
            layers.advance(1)
            layers.embeddings = np.broadcast_to(x, all_sets)
        return x
