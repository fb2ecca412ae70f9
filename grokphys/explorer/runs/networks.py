"""A network in training, next to particles that start at the positions of its tokens."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import nets
from analysis.circles.survival import surviving_frequencies
from grokphys.explorer.runs import starts
from grokphys.explorer.runs.history import History
from grokphys.explorer.runs.particles import ParticleRun
from grokphys.explorer.runs.planes import plane_axes
from grokphys.explorer.runs.scripts import arguments, constructed
from grokphys.explorer.runs.verdicts import (
    GRID,
    LASTS,
    MEMORIZED,
    PARTLY,
    SURE,
    circles,
    gridded,
    learned,
    shape,
)
from physics.errors import SimulationError
from physics.particles.structures import circle_ratio, grid_imperfections
from physics.particles.system import ParticleSystem
from physics.trajectory import Trajectory
from physics.trajectory.provenance import fields

Array = NDArray[np.float64]
Bounds = tuple[float, float, float, float]
RESOLUTION = 72
"""Number of points along each axis of the map of a network's answers."""
ONE_CIRCLE = 3
"""Largest dimension in which tokens form one circle or a grid; in more, they form several circles at once."""
LOSSES = ("train_loss", "train_accuracy", "validation_loss", "validation_accuracy")


@dataclass
class Stretch:
    """A number of optimizer steps at the same rates.

    Attributes
    ----------
    learning_rate, weight_decay : float
        Rates of the optimizer, as `nets.Training` takes them.
    steps : int, default 0
        Number of steps that have been taken at these rates.
    """

    learning_rate: float
    weight_decay: float
    steps: int = 0


def rates_of(stretch: Stretch) -> dict[str, Any]:
    """Return learning rate and weight decay as keyword arguments of `nets.Training`."""
    return {"learning_rate": stretch.learning_rate, "weight_decay": stretch.weight_decay}


class NetworkRun:
    """A network in training, and particles that start at its embedding and move in step with it.

    Parameters
    ----------
    model : ConstantAttention or ToyAddition
        Network to train.
    seed : int
        Seed of the network, at least 0.
    learning_rate, weight_decay : float
        Rates of the optimizer, for embedding and layers unless `settings` give other ones for the embedding.
    system : ParticleSystem
        Law of the particles, with the tokens and dimensions of the model.
    ratio : int
        Optimizer steps for each step of the particles.
    **settings
        Further arguments of `nets.Training`.

    Attributes
    ----------
    plane : str
        Name of the plane on which the embedding is shown, one of `planes.planes`.
    axes : ndarray of float64, shape (2, dim)
        Orthonormal axes of the plane when it was last computed.
    map : ndarray of uint8, shape (RESOLUTION, RESOLUTION), or None
        Class that the network assigns to each point of the plane within `map_bounds`.
    memorized, generalized, partly : int, or None
        Steps by which the network has learned the training pairs, the held-out pairs, and a good part of the
        held-out pairs; None for what it has not learned, or has forgotten. See `verdicts.learned`.
    grid : int, or None
        Step since which the embedding has been a grid; see `verdicts.gridded`.
    """

    plane = "axes 1, 2"

    def __init__(
        self,
        model: nets.Model,
        seed: int,
        learning_rate: float,
        weight_decay: float,
        system: ParticleSystem,
        ratio: int,
        **settings: Any,
    ) -> None:
        self.model, self.seed, self.ratio, self._settings = model, seed, ratio, settings
        self.stretches = [Stretch(learning_rate, weight_decay)]
        self.history = History()
        self._law = system
        self.reset()

    @property
    def step(self) -> int:
        """Number of optimizer steps taken."""
        return self.training.step

    @property
    def classes(self) -> int:
        """Number of classes that the network distinguishes."""
        return int(self.model.task.labels.max()) + 1

    @property
    def held_out(self) -> NDArray[np.bool_]:
        """Examples that are not used for training, as a mask of bool (examples,)."""
        apart = np.ones(len(self.model.task.labels), bool)
        apart[self.training.networks().examples("train")[0]] = False
        return apart

    def reset(self) -> None:
        """Start again from the same initial weights, with the current rates and the current law."""
        last = self.stretches[-1]
        self.stretches = [Stretch(last.learning_rate, last.weight_decay)]
        self.training = nets.Training(self.model, seed=self.seed, **rates_of(last), **self._settings)
        begin = self.training.embeddings[0].astype(np.float64)
        lines = ("P = training.embeddings[0].astype(float)  # particles from the same start",)
        self.particles = ParticleRun(self._law, self._law.default_step_size, starts.given(begin, lines, "P"))
        self._owed = 0
        self.axes: Array | None = None
        self.map_bounds: Bounds = (-1.0, 1.0, -1.0, 1.0)
        self.look(None)
        self.history.clear()
        self.memorized: int | None = None
        self.generalized: int | None = None
        self.partly: int | None = None
        self.grid: int | None = None
        self._record()

    def advance(self, steps: int, bounds: Bounds | None = None) -> None:
        """Continue the training, let the particles follow, and map the plane.

        Parameters
        ----------
        steps : int
            Number of optimizer steps.
        bounds : tuple of float, optional
            Left, right, bottom and top of the part of the plane that is mapped; by default there is no map.

        Raises
        ------
        SimulationError
            If the embedding is no longer finite, or the particles overflow.
        """
        self.training.advance(steps)
        self.stretches[-1].steps += steps
        self._owed += steps
        behind, self._owed = divmod(self._owed, self.ratio)
        if behind:
            self.particles.advance(behind)
        if not np.isfinite(self.training.embeddings).all():
            raise SimulationError(
                f"the network diverged by step {self.step}; reset it, and choose a smaller learning rate"
            )
        self.look(bounds)
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

        Whatever has `circles` is "circles". A grid must have lasted `LASTS` steps, because an embedding
        passes grids on its way.
        """
        if (found := self.circles) is not None:
            return "circles", circles(found, self.model.tokens // 2)
        lasting = self.grid is not None and self.step - self.grid >= LASTS
        last = self.history.last
        return shape(last["embedding"].astype(np.float64), last["imperfections"], grid=lasting)

    def look(self, bounds: Bounds | None) -> None:
        """Compute the axes of the plane, and map the classes that the network assigns to its points.

        The mapped plane passes through the mean of the pair sums.

        Parameters
        ----------
        bounds : tuple of float or None
            Left, right, bottom and top of the map; None for no map.
        """
        E = self.training.embeddings[0].astype(np.float64)
        self.axes = plane_axes(E, self.plane, self.axes)
        self.map: NDArray[np.uint8] | None = None
        if bounds is None:
            return
        left, right, bottom, top = bounds
        x, y = np.linspace(left, right, RESOLUTION), np.linspace(bottom, top, RESOLUTION)
        within = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2) @ self.axes
        middle = E[np.asarray(self.model.task.inputs)].sum(axis=1).mean(axis=0)
        beside = middle - self.axes.T @ (self.axes @ middle)
        seen = self.training.networks().classify(within + beside)[0]
        self.map = seen.reshape(RESOLUTION, RESOLUTION).astype(np.uint8)
        self.map_bounds = bounds

    def look_again(self, bounds: Bounds) -> None:
        """Map the plane of the present step again, within other bounds (left, right, bottom, top)."""
        self.look(bounds)
        self.history.last.update(map=self.map, bounds=self.map_bounds, axes=self.axes)

    def change(self, learning_rate: float, weight_decay: float) -> None:
        """Continue the training with another learning rate and weight decay."""
        if (learning_rate, weight_decay) == (
            self.stretches[-1].learning_rate,
            self.stretches[-1].weight_decay,
        ):
            return
        self.training.set_rates(learning_rate=learning_rate, weight_decay=weight_decay)
        last = self.stretches[-1]
        if last.steps:
            self.stretches.append(Stretch(learning_rate, weight_decay))
        else:
            last.learning_rate, last.weight_decay = learning_rate, weight_decay

    def change_law(self, system: ParticleSystem) -> None:
        """Change the law of the particles from now on, and their step size to the default of the new law."""
        self._law = system
        self.particles.change(system, system.default_step_size)

    def python(self) -> str:
        """Return a program that reproduces the run up to its last embedding `E` and last particles `P`."""
        begin, *moves = self.particles.calls()
        first = self.stretches[0]
        options = {**rates_of(first), **self._settings}
        made = f"{constructed('nets', self.model)}, seed={self.seed}, {arguments(**options)}"
        lines = ["import nets", "import physics", "", f"training = nets.Training({made})", begin]
        for stretch in self.stretches:
            if stretch is not first:
                lines.append(f"training.set_rates({arguments(**rates_of(stretch))})")
            if stretch.steps:
                lines.append(f"training.advance({stretch.steps})")
        said = [
            "(train,), (held_out,) = training.losses('train')[1], training.losses('validation')[1]",
            'print(f"train accuracy {train:.3f}, validation accuracy {held_out:.3f}")',
        ]
        return "\n".join([*lines, "E = training.embeddings[0]", *moves, *said]) + "\n"

    def trajectory(self) -> Trajectory:
        """Return the kept frames of the embedding, with losses, accuracies and all settings of the run."""
        history, last = self.history, self.stretches[-1]
        return Trajectory(
            history["embedding"][None],
            history.steps,
            observables={name: history[name][None].astype(np.float64) for name in LOSSES},
            parameters={
                "program": "grokphys explore",
                "model": {"type": type(self.model).__name__, **fields(self.model)},
                "seed": self.seed,
                **rates_of(last),
                **self._settings,
                "python": self.python(),
            },
        )

    def _record(self) -> None:
        E = self.training.embeddings[0]
        found = [*self.training.losses("train"), *self.training.losses("validation")]
        values = {name: value[0] for name, value in zip(LOSSES, found, strict=True)}
        self.memorized = learned(self.memorized, self.step, values["train_accuracy"], MEMORIZED)
        self.generalized = learned(self.generalized, self.step, values["validation_accuracy"])
        self.partly = learned(self.partly, self.step, values["validation_accuracy"], PARTLY)
        imperfections = grid_imperfections(E, modulus=self.particles.system.modulus)
        self.grid = gridded(self.grid, self.step, imperfections, len(E), (SURE, GRID))
        self.history.append(
            self.step,
            embedding=E,
            particles=self.particles.positions,
            particle_step=self.particles.step,
            circle_ratio=circle_ratio(E),
            imperfections=imperfections,
            **values,
            **({} if self.map is None else {"map": self.map, "bounds": self.map_bounds, "axes": self.axes}),
        )
