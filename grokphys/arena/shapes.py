"""The tracks fate and force: where the embedding of a network ends, and which force acts on its shape."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import physics
from analysis.comparison import no_relabelling, procrustes_disparity
from grokphys.arena.track import (
    ANOTHER,
    STILL,
    Array,
    Case,
    Theory,
    Track,
    checked_prediction,
    ensemble,
    seen,
    split,
)
from nets import ConstantAttention
from nets.provenance import training_sets
from physics import ParticleSystem, Trajectory

STEPS = 2000
RECORD = (*(1, 3, 6, 10, 16, 25, 35, 50), *range(0, STEPS + 1, 20))
SEEDS = {"seed": 47_000, "layers": 47_001}


@dataclass(frozen=True)
class Attention:
    """Networks with constant attention: how many, to fit and held out together, and their weight decay."""

    decay: float
    networks: int
    steps: int = STEPS
    window: tuple[int, int] | None = None

    def train(self, folder: Path | None, layers: int | None = None) -> Trajectory:
        """Train the networks, or others from the same starts if a seed of the layers is given."""
        return ensemble(
            folder, ConstantAttention(), layers=layers, runs=self.networks, steps=self.steps,
            weight_decay=self.decay, seed=SEEDS["seed"], dtype="float64", observables=("gradient",),
            record=tuple(sorted({step for step in RECORD if step < self.steps} | {self.steps})),
        )  # fmt: skip


DECAYS = {"decay 1": Attention(1.0, 320), "decay 0.3": Attention(0.3, 320)}


def training_pairs(trajectory: Trajectory) -> NDArray[np.int64]:
    """Return the pairs of tokens in the training set of each network, int64 (networks, pairs, 2)."""
    model, examples = training_sets(trajectory)
    return np.asarray(model.task.inputs[examples], np.int64)


# -- fate --------------------------------------------------------------------------------------------------


def disparities(first: Any, second: Any) -> Array:
    """Return the Procrustes disparity of each shape (networks, tokens, dim) to its partner, (networks,)."""
    plain = no_relabelling(len(first[0]))
    pairs = zip(first, second, strict=True)
    return np.array([procrustes_disparity(a[None], b[None], plain)[0][0, 0] for a, b in pairs])


class Fate(Track):
    """Where an embedding ends: theories see its start and the training set, and predict its final shape."""

    name = "fate"
    measure = "Procrustes disparity to the network's own final shape"
    best = 0.0
    settings = {  # noqa: RUF012
        "paper": DECAYS,
        "quick": {name: replace(setting, networks=40) for name, setting in DECAYS.items()},
    }

    def entries(self) -> Sequence[Theory]:
        """Return the theories of the motion of embeddings."""
        return [Particles()]

    def case(self, setting: Attention, folder: Path | None) -> Case:
        """Return networks, of which the first frames are seen, and scores of their final shapes."""
        fit, held_out = split(setting.train(folder))
        another = split(setting.train(folder, SEEDS["layers"]))[1]
        final, starts = np.asarray(held_out.final), seen(held_out, slice(1))

        def score(predicted: Any) -> Array:
            shapes = predicted.final if isinstance(predicted, Trajectory) else predicted
            return disparities(checked_prediction(shapes, final.shape), final)

        ends = {STILL: score(starts.initial), ANOTHER: score(another.final)}
        return Case(seen(fit, observables=("gradient",)), starts, score, ends)


# -- theories ----------------------------------------------------------------------------------------------


class Particles:
    """Musat's particles with the constants of the paper, on the training set of each network."""

    def __init__(self, name: str = "Musat's particles, as printed", steps: int = 100) -> None:
        self.name, self.steps = name, steps

    def fit(self, trajectory: Trajectory) -> Self:
        """Return the particles: nothing is fitted."""
        return self

    def predict(self, starts: Trajectory) -> Array:
        """Return where the particles end, (networks, tokens, dim)."""
        options: dict[str, Any] = {"steps": self.steps, "record": self.steps}
        ends = [
            physics.simulate(system, initial=start, **options).final[0]
            for start, system in zip(starts.final, self._systems(starts), strict=True)
        ]
        return np.stack(ends)

    def force(self, past: Trajectory) -> Array:
        """Return the force on the last frame, (networks, tokens, dim)."""
        systems = self._systems(past)
        return np.stack([system.forces(x) for x, system in zip(scaled(past.final), systems, strict=True)])

    def _systems(self, trajectory: Trajectory) -> Iterator[ParticleSystem]:
        for pairs in training_pairs(trajectory):
            yield ParticleSystem(trajectory.tokens, trajectory.dim, pairs=pairs)


def scaled(shapes: Any) -> Array:
    """Return shapes (networks, tokens, dim), centered and with a root mean square of 1."""
    centered = np.asarray(shapes, np.float64) - np.mean(shapes, axis=1, keepdims=True)
    return np.asarray(centered / np.sqrt((centered**2).mean(axis=(1, 2), keepdims=True)))
