"""A network in training, next to particles that start at the positions of its tokens."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import nets
from analysis.circles.survival import surviving_frequencies
from grokphys.explorer.films import Film, Scene, film
from grokphys.explorer.panels import Lines, Panel, Sums, Tokens, series
from grokphys.explorer.runs.common import (
    History,
    Start,
    TrainingRun,
    arguments,
    circles,
    constructed,
    plane_axes,
    program,
    shape,
    timed,
)
from grokphys.explorer.runs.particles import ParticleRun
from physics.particles.structures import circle_ratio, grid_imperfections
from physics.particles.system import ParticleSystem

Array = NDArray[np.float64]
Bounds = tuple[float, float, float, float]
RESOLUTION = 72
"""Number of points along each axis of the map of a network's answers."""
ONE_CIRCLE = 3
"""Largest dimension in which tokens form one circle or a grid; in more, they form several circles at once."""
MEMORIZED, GENERALIZED = 0.97, 0.9
"""Accuracies from which training pairs, and held-out pairs, count as learned (Liu et al., Appendix A)."""
GROKS = 1000
"""Smallest number of steps from memorizing to generalizing that is called grokking (Liu et al., Table 1)."""
LOSSES = ("train_loss", "train_accuracy", "validation_loss", "validation_accuracy")


@dataclass
class Stretch:
    """A number of optimizer steps at the same rates, which are keyword arguments of `nets.Training`."""

    rates: dict[str, float]
    steps: int = 0


class NetworkRun(TrainingRun):
    """A network in training, and particles that start at its embedding and move in step with it.

    Parameters
    ----------
    model : ConstantAttention or ToyAddition
        Network to train.
    seed : int
        Seed of the network, at least 0.
    rates : mapping of str to float
        Learning rate and weight decay, for embedding and layers unless the model's paper has other ones for
        the embedding.
    system : ParticleSystem
        Law of the particles, with the tokens and dimensions of the model.
    ratio : int
        Optimizer steps for each step of the particles.

    Attributes
    ----------
    plane : str
        Name of the plane on which the embedding is shown, one of `common.planes`.
    axes : ndarray of float64, shape (2, dim)
        Orthonormal axes of the plane when it was last computed.
    bounds : tuple of float
        Left, right, bottom and top of the part of the plane that is mapped.
    map : ndarray of uint8, shape (RESOLUTION, RESOLUTION)
        Class that the network assigns to each point of the plane within `bounds`.
    held_out : ndarray of bool, shape (examples,)
        Which examples are not used for training.
    memorized, generalized : int, or None
        First kept steps at which the accuracy on the training pairs was `MEMORIZED`, and that on the held-out
        pairs `GENERALIZED`; None before.
    """

    plane = "axes 1, 2"
    bounds: Bounds = (-1.5, 1.5, -1.0, 1.0)
    positions_name = "embedding"
    observables = LOSSES

    def __init__(
        self, model: nets.Model, seed: int, rates: dict[str, float], system: ParticleSystem, ratio: int
    ) -> None:
        self.ratio, self._law, self.stretches = ratio, system, [Stretch(rates)]
        super().__init__(model, seed, **rates)

    def reset(self) -> None:
        """Start again from the same initial weights, with the current rates and the current law."""
        self.settings = self.stretches[-1].rates
        self.stretches = [Stretch(self.settings)]
        super().reset()
        self.held_out = np.ones(len(self.model.task.labels), bool)
        self.held_out[self.training.networks().examples("train")[0]] = False
        begin = self.training.embeddings[0].astype(np.float64)
        lines = ("P = training.embeddings[0].astype(float)  # particles from the same start",)
        self.particles = ParticleRun(self._law, self._law.default_step_size, Start(0, begin, lines, "P"))
        self._owed = 0
        self.axes: Array | None = None
        self.memorized: int | None = None
        self.generalized: int | None = None
        self._record()

    def advance(self, steps: int) -> None:
        """Continue the training, let the particles follow, and map the plane.

        Raises
        ------
        SimulationError
            If the embedding or the particles blow up.
        """
        self.train(steps)
        self.stretches[-1].steps += steps
        behind, self._owed = divmod(self._owed + steps, self.ratio)
        if behind:
            self.particles.advance(behind)
        self._record()

    @property
    def circles(self) -> list[int] | None:
        """Surviving frequencies, or None for a `ToyAddition` or at most `ONE_CIRCLE` dimensions."""
        if self.model.dim <= ONE_CIRCLE or not isinstance(self.model, nets.ConstantAttention):
            return None
        return surviving_frequencies(self.history.last["embedding"]).tolist()

    @property
    def shape(self) -> tuple[str, str]:
        """Shape of the embedding ("circles", "circle", "grid" or ""), and a sentence about it.

        Whatever has `circles` is "circles".
        """
        if (frequencies := self.circles) is not None:
            return "circles", circles(frequencies, self.model.tokens // 2)
        last = self.history.last
        return shape(last["embedding"].astype(np.float64), int(last["imperfections"]))

    @property
    def learning(self) -> str:
        """A sentence about what the network has learned."""
        last = self.history.last
        train, held_out = (100 * float(last[f"{part}_accuracy"]) for part in ("train", "validation"))
        now = f"{train:.0f} % of the training pairs and {held_out:.0f} % of the held-out pairs"
        if self.memorized is None:
            return f"Answers {now}."
        if self.generalized is None:
            return f"Memorizes by step {self.memorized}; now it answers {now}."
        groks = "It groks: m" if self.generalized - self.memorized >= GROKS else "M"
        return f"{groks}emorizes by step {self.memorized}, and generalizes by step {self.generalized}."

    def look(self) -> None:
        """Compute the axes of the plane, and map the classes that the network assigns to its points.

        The mapped plane passes through the mean of the pair sums. The last frame keeps the map.
        """
        E = self.training.embeddings[0].astype(np.float64)
        self.axes = plane_axes(E, self.plane, self.axes)
        left, right, bottom, top = self.bounds
        x, y = np.linspace(left, right, RESOLUTION), np.linspace(bottom, top, RESOLUTION)
        within = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2) @ self.axes
        middle = E[np.asarray(self.model.task.inputs)].sum(axis=1).mean(axis=0)
        beside = middle - self.axes.T @ (self.axes @ middle)
        seen = self.training.networks().classify(within + beside)[0]
        self.map = seen.reshape(RESOLUTION, RESOLUTION).astype(np.uint8)
        self.history.last.update(map=self.map, bounds=self.bounds, axes=self.axes)

    def change(self, rates: dict[str, float]) -> None:
        """Continue the training with another learning rate and weight decay."""
        last = self.stretches[-1]
        if rates == last.rates:
            return
        self.training.set_rates(**rates)
        if last.steps:
            self.stretches.append(Stretch(rates))
        else:
            last.rates = rates

    def change_law(self, system: ParticleSystem) -> None:
        """Change the law of the particles from now on, and their step size to the default of the new law."""
        self._law = system
        self.particles.change(system, system.default_step_size)

    def python(self) -> str:
        """Return a program that reproduces the run up to its last embedding `E` and last particles `P`."""
        begin, *moves = self.particles.calls()
        made = f"{constructed('nets', self.model)}, seed={self.seed}, {arguments(**self.stretches[0].rates)}"
        stretches = [(stretch, arguments(**stretch.rates)) for stretch in self.stretches]
        return program("networks", made=made, begin=begin, stretches=stretches, moves=moves)

    def parameters(self) -> dict[str, Any]:
        """Return the model and the settings of the training, with the last rates."""
        return super().parameters() | self.stretches[-1].rates

    def _record(self) -> None:
        E = self.training.embeddings[0]
        losses = [*self.training.losses("train"), *self.training.losses("validation")]
        values = {name: value[0] for name, value in zip(LOSSES, losses, strict=True)}
        if self.memorized is None and values["train_accuracy"] >= MEMORIZED:
            self.memorized = self.step
        if self.generalized is None and values["validation_accuracy"] >= GENERALIZED:
            self.generalized = self.step
        self.history.append(
            self.step,
            embedding=E,
            particles=self.particles.positions,
            particle_step=self.particles.step,
            circle_ratio=circle_ratio(E),
            imperfections=grid_imperfections(E, modulus=self.particles.system.modulus),
            **values,
        )
        self.look()


# -- what is shown -----------------------------------------------------------------------------------------

ROWS = ("embedding", "embedding sums", "loss"), ("particles", "particles sums", "accuracy")
TITLES = {
    "embedding": ("Network: embedding", "Network: pair sums over its classifier"),
    "particles": ("Particles from the same start", "Particles: pair sums"),
}


def place_panels(run: NetworkRun, name: str, paths: Array, frame: int, **options: Any) -> dict[str, Panel]:
    """Return the panels of tokens with paths (frames, tokens, 2), and of their pair sums.

    The `name` is "embedding" or "particles"; `options` are the map of the network's answers and its bounds.
    """
    title, title_of_sums = TITLES[name]
    pairs = np.asarray(run.model.task.inputs)
    return {
        name: Tokens(title=title, paths=paths, frame=frame),
        f"{name} sums": Sums(
            title=title_of_sums,
            points=paths[frame][pairs].sum(axis=1),
            pairs=pairs,
            classes=run.model.task.labels,
            held_out=run.held_out,
            extent=2 * float(np.abs(paths).max()),
            **options,
        ),
    }


def loss_panels(history: History) -> dict[str, Panel]:
    """Return the panels of losses and accuracies."""
    looks: dict[str, Any] = {"loss": {"log": "y"}, "accuracy": {"y_range": (-0.04, 1.04)}}
    parts = {what: {p: history[f"{p}_{what}"] for p in ("train", "validation")} for what in looks}
    return {
        what: Lines(title=what.capitalize(), curves=series(history.steps, parts[what]), **look)
        for what, look in looks.items()
    }


def network_film(run: NetworkRun, plane: str) -> Film:
    """Return a film of a network, and of its particles below, at the kept frames of the run.

    If the plane has kept its axes, the pair sums of the network lie over the map of its answers.
    """
    history = run.history
    axes = {name: plane_axes(history.last[name], plane) for name in TITLES}
    paths = {name: history[name] @ axes[name].T for name in axes}
    maps, bounds, axes_then = (history[name] for name in ("map", "bounds", "axes"))
    steps, particle_steps, losses = history.steps, history["particle_step"], loss_panels(history)

    def scene(frame: int) -> Scene:
        same = np.allclose(axes_then[frame], axes["embedding"])
        answers = {"map": maps[frame], "bounds": tuple(bounds[frame])} if same else {}
        shown = place_panels(run, "embedding", paths["embedding"], frame, **answers)
        shown |= place_panels(run, "particles", paths["particles"], frame)
        words = f"step {steps[frame]}, particle step {particle_steps[frame]}"
        return words, shown | timed(losses, steps[frame])

    return film(scene, len(steps), ROWS, (10.5, 6.4))
