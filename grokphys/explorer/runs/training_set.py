"""The effective theory of a training set that the user assembles by clicks (Liu et al., Section 3)."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from grokphys.explorer.films import Film, Scene, film
from grokphys.explorer.panels import Lines, PairGrid, Panel, Parallelograms, cycle, series
from grokphys.explorer.runs.common import program, timed
from physics.errors import InputError
from physics.seeds import run_seeds
from physics.simulate import simulate
from physics.theory.operations import Operation, random_training_sets
from physics.theory.quality import ideal_accuracy, predicted_accuracy, representation_quality
from physics.theory.system import EffectiveTheory
from physics.trajectory import Trajectory

Array = NDArray[np.float64]
FRAMES = 121
"""Number of frames of a flow."""
LARGEST = 31
"""Largest number of symbols on a grid whose cells are large enough to be clicked."""
HORIZON = 16.0
"""Duration of a flow in decay times of its slowest mode; after 8 of them, RQI in a plane is not yet 1."""


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """A training set of pairs of symbols, and the flow of the embeddings under it; it never changes.

    Parameters
    ----------
    operation : Operation
        Addition, plain or with a modulus, of 3 to 31 symbols.
    mask : ndarray of bool, shape (samples,)
        Which of the operation's samples (pairs with i ≤ j) are trained; there may be none.
    dim : int, default 1
        Dimension of the embeddings, 1 or 2.
    seed : int, default 0
        Seed of the initial embeddings, which are those of the first run of `physics.simulate`.
    """

    operation: Operation
    mask: NDArray[np.bool_]
    dim: int = 1
    seed: int = 0

    @classmethod
    def drawn(
        cls, tokens: int, modulus: int | None = None, *, size: int, dim: int = 1, seed: int = 0
    ) -> "TrainingSet":
        """Draw a random training set.

        Parameters
        ----------
        tokens : int
            Number of symbols, from 3 to 31.
        modulus : int, optional
            Modulus of the addition; by default there is none.
        size : int
            Number of trained pairs, from 0.
        dim : int, default 1
            Dimension of the embeddings, 1 or 2.
        seed : int, default 0
            Seed of the pairs and of the initial embeddings.
        """
        operation = Operation(tokens, modulus)
        mask = np.zeros(len(operation.samples), bool)
        if size:
            mask = random_training_sets(operation, size, seed=seed)[0]
        return cls(operation, mask, dim, seed)

    # -- changes -----------------------------------------------------------------------------------------

    def toggled(self, i: int, j: int) -> "TrainingSet":
        """Return the training set with the pair (i, j), which is the same as (j, i), added or removed.

        Raises
        ------
        InputError
            If a symbol is not from 0 to the number of symbols minus 1.
        """
        mask = self.mask ^ self.operation.mask([(i, j)])
        return replace(self, mask=mask)

    def filled(self, trained: bool) -> "TrainingSet":
        """Return the training set of all pairs if `trained` is True, and otherwise the empty one."""
        return replace(self, mask=np.full_like(self.mask, trained))

    # -- measures ------------------------------------------------------------------------------------

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Trained pairs (i, j) with i ≤ j."""
        return [(int(i), int(j)) for i, j in self.operation.samples[self.mask]]

    @cached_property
    def theory(self) -> EffectiveTheory:
        """Effective theory of the training set; of an empty one that of a single pair, as nothing moves."""
        pairs = self.pairs or [(0, 0)]
        return EffectiveTheory(self.operation.tokens, self.dim, pairs, self.operation.modulus)

    @cached_property
    def ideal_accuracy(self) -> float:
        """Accuracy that an ideal model reaches, from 0 to 1."""
        return ideal_accuracy(self.theory) if self.pairs else 0.0

    @cached_property
    def measures(self) -> dict[str, str]:
        """Measures of the training set (Liu et al., Section 3), as texts by their names."""
        return {
            "pairs": f"{len(self.pairs)} of {len(self.mask)}",
            "parallelograms": str(self.theory.parallelogram_count),
            "ground states": str(self.theory.ground_state_dimension),
            "grokking rate": f"{self.theory.grokking_rate:.6g}",
            "ideal accuracy": f"{100 * self.ideal_accuracy:.2f} %",
        }

    @cached_property
    def follows(self) -> NDArray[np.bool_]:
        """Pairs that are not trained but follow from the trained ones, as a mask (samples,)."""
        return self.theory.closure.augmented[0] & ~self.mask & self.mask.any()

    # -- the flow ----------------------------------------------------------------------------------------

    @cached_property
    def start(self) -> Array:
        """Embeddings (symbols, dim) at time 0, with zero mean and unit variance on every axis."""
        return self.theory.start(np.random.default_rng(run_seeds(self.seed, 1)[0]))

    @cached_property
    def step_size(self) -> float:
        """Time between frames, such that the slowest mode that decays has decayed by exp(-16).

        It is rounded to three digits. If no mode decays, the flow has the duration 1.
        """
        moving = self.theory.spectrum[self.theory.spectrum > 0]
        horizon = HORIZON / moving[0] if len(moving) else 1.0
        return float(f"{horizon / (FRAMES - 1):.3g}")

    @property
    def times(self) -> Array:
        """Time of every frame, (frames,)."""
        return self.step_size * np.arange(FRAMES, dtype=np.float64)

    @cached_property
    def embeddings(self) -> Array:
        """Embeddings (frames, symbols, dim) at all times, by the closed solution of the flow."""
        return self.theory.solve(self.start, self.times)

    @cached_property
    def quality(self) -> Array:
        """Representation quality (RQI) of every frame, (frames,), for the tolerance δ = 0.01."""
        return representation_quality(self.embeddings, self.operation)

    @cached_property
    def accuracy(self) -> Array:
        """Predicted accuracy of every frame, (frames,), for the tolerance δ = 0.01."""
        return predicted_accuracy(self.embeddings, self.theory) * self.mask.any()

    def status(self, frame: int) -> dict[str, str]:
        """Return time, measures of the training set, and progress of the flow, as texts by their names."""
        return {
            "time": f"{self.times[frame]:.4g}",
            **self.measures,
            "RQI": f"{self.quality[frame]:.4f}",
            "accuracy": f"{100 * self.accuracy[frame]:.2f} %",
        }

    def verdict(self, frame: int) -> str:
        """Return one or two sentences about what the training set permits, and the progress of its flow."""
        if not self.pairs:
            return "No pair is trained: nothing moves."
        free = self.theory.ground_state_dimension
        if free > 2:
            open_, follow = np.count_nonzero(~self.mask), np.count_nonzero(self.follows)
            return (
                f"Memorizes only: of the {open_} pairs that are not trained, {follow} follow. "
                f"{free} degrees of freedom are left, instead of the 2 of a unique representation."
            )
        quality, accuracy = 100 * self.quality[frame], 100 * self.accuracy[frame]
        if quality > 99:
            ideal = f"{100 * self.ideal_accuracy:.0f} %"
            return f"It generalizes: the only representation is reached, and answers {ideal} of pairs."
        return (
            f"On the way to the only representation that these pairs allow: {quality:.0f} % of all "
            f"parallelograms are satisfied, and {accuracy:.0f} % of all pairs answered."
        )

    # -- geometry for figures -------------------------------------------------------------------------------

    @cached_property
    def linked(self) -> NDArray[np.int64]:
        """Numbers, among all samples, of the trained pairs whose answer another trained pair has."""
        trained = np.flatnonzero(self.mask)
        label = self.operation.label[trained]
        return trained[np.bincount(label)[label] > 1]

    @cached_property
    def fixed(self) -> dict[str, Panel]:
        """The panels that are the same in all frames: the pairs, the embeddings, and the quality."""
        both = {"RQI": self.quality, "accuracy": self.accuracy}
        embeddings = cycle(self.times, list(self.embeddings[:, :, 0].T))
        linked = self.operation.samples[self.linked]
        sums = linked.sum(axis=1)  # without the modulus
        return {
            "pairs": PairGrid(
                title="Training set",
                hint="click to add or remove pairs",
                samples=self.operation.samples,
                label=self.operation.label,
                trained=self.mask,
                follows=self.follows,
                diagonals=[linked[sums == value] for value in np.unique(sums)],
            ),
            "embeddings": Lines(
                title="Embeddings E against time, one curve per symbol",
                curves=embeddings,
                xlabel="time",
                dots=False,
            ),
            "quality": Lines(
                title="Quality and predicted accuracy, δ = 0.01",
                curves=series(self.times, both),
                xlabel="time",
                dots=False,
                y_range=(-0.04, 1.04),
            ),
        }

    def panels(self, frame: int) -> dict[str, Panel]:
        """Return the panels of a frame of the flow."""
        i, j = self.operation.samples[self.linked].T
        E = self.embeddings[frame]
        if self.dim == 1:
            ends = {"center": (E[i, 0] + E[j, 0]) / 2, "radius": np.abs(E[i, 0] - E[j, 0]) / 2}
            shapes = {"classes": self.operation.label[self.linked], **ends}
        else:
            i, j, m, n = self.theory.parallelograms.T
            classes = (i + j) % (self.operation.modulus or 2 * self.operation.tokens)
            shapes = {"classes": classes, "corners": E[np.stack([i, m, j, n], axis=1)]}
        tokens = Parallelograms(
            title="Parallelograms in the embedding",
            paths=np.pad(self.embeddings, ((0, 0), (0, 0), (0, 2 - self.dim))),
            frame=frame,
            count=int(self.operation.label.max()) + 1,
            **shapes,
        )
        return timed(self.fixed | {"tokens": tokens}, float(self.times[frame]))

    def film(self) -> Film:
        """Return a film of the flow: pairs, parallelograms, and embeddings and quality against time."""
        measures = ", ".join(f"{name} {text}" for name, text in self.measures.items())

        def scene(frame: int) -> Scene:
            words = f"{self.operation.name}, time {self.times[frame]:.4g}\n{measures}"
            return words, self.panels(frame)

        rows = ("pairs", "tokens"), ("embeddings", "quality")
        return film(scene, FRAMES, rows, (9.2, 7.0), (1.5, 1))

    # -- export ---------------------------------------------------------------------------------------

    def trajectory(self) -> Trajectory:
        """Return the flow as a trajectory, computed by `physics.simulate`.

        Raises
        ------
        InputError
            If the training set is empty.
        """
        return simulate(self._trained(), steps=FRAMES - 1, step_size=self.step_size, seed=self.seed)

    def python(self, frame: int) -> str:
        """Return Python source that reproduces the embeddings `E` of a `frame`, and prints its measures.

        Raises
        ------
        InputError
            If the training set is empty.
        """
        self._trained()
        operation, time = self.operation, float(self.times[frame])
        task = {"tokens": operation.tokens, "dim": self.dim, "modulus": operation.modulus}
        return program("theory", pairs=self.pairs, seed=self.seed, time=time, **task)

    def _trained(self) -> EffectiveTheory:
        if not self.pairs:
            raise InputError(
                "pairs must hold at least 1 pair for an effective theory, got none; click a pair to add it"
            )
        return self.theory
