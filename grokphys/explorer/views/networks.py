"""View 2: a network in training (Musat, Section 3; Liu et al., Section 2), and particles from its start."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from bokeh.models import CategoricalSlider

import analysis
import nets
import physics
from grokphys.explorer import plots
from grokphys.explorer.films import Array, Film, Lines, Panel, Scene, film, series
from grokphys.explorer.runs import common
from grokphys.explorer.runs.common import TRAINING, Start, TrainingRun, arguments, plane_axes
from grokphys.explorer.runs.particles import ParticleRun
from grokphys.explorer.view import LARGEST_SEED, View, choice, number, parameter, slider

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
ATTENTION, ADDITION = "constant attention", "toy addition"
RATES = [f"{digit * 10.0**-power:.4g}" for power in (4, 3, 2) for digit in (1, 2, 3, 5)] + ["0.1", "0.2"]
PUBLISHED: dict[str, dict[str, Any]] = {
    ATTENTION: {"tokens": 17, "dim": 2, "hidden": 32, "rate": "0.01", "decay": 1.0},
    ADDITION: {"tokens": 10, "dim": 1, "hidden": 200, "rate": "0.001", "decay": 0.0},
}
"""Sizes and rates of the papers (Musat; Liu et al.), which the view sets when the network is chosen."""
ROWS = ("embedding", "embedding sums", "loss"), ("particles", "particles sums", "accuracy")
TITLES = {
    "embedding": ("Network: embedding", "Network: pair sums over its classifier"),
    "particles": ("Particles from the same start", "Particles: pair sums"),
}


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
        self,
        model: nets.Model,
        seed: int,
        rates: dict[str, float],
        system: physics.ParticleSystem,
        ratio: int,
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
        return analysis.surviving_frequencies(self.history.last["embedding"]).tolist()

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

    def change(self, rates: dict[str, float], system: physics.ParticleSystem, ratio: int) -> None:
        """Continue with other rates, and another law and ratio of the particles."""
        self._law, self.ratio = system, ratio
        self.particles.change(system, system.default_step_size)
        last = self.stretches[-1]
        if rates != last.rates:
            self.training.set_rates(**rates)
            if last.steps:
                self.stretches.append(Stretch(rates))
            else:
                last.rates = rates

    def python(self) -> str:
        """Return a program that reproduces the run up to its last embedding `E` and last particles `P`."""
        begin, *moves = self.particles.calls()
        rates = arguments(**self.stretches[0].rates)
        made = f"{common.constructed('nets', self.model)}, seed={self.seed}, {rates}"
        stretches = [(stretch, arguments(**stretch.rates)) for stretch in self.stretches]
        return common.program("networks", made=made, begin=begin, stretches=stretches, moves=moves)

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
            circle_ratio=physics.circle_ratio(E),
            imperfections=physics.grid_imperfections(E, modulus=self.particles.system.modulus),
            **values,
        )
        self.look()

    # -- what is shown -------------------------------------------------------------------------------------

    def tokens(self, name: str, E: Array, axes: Array, frame: int, **over: Any) -> dict[str, Panel]:
        """Return the panels of "embedding" or "particles" (frames, tokens, dim), and of their pair sums.

        These may stand `over` a map of the network's answers within some bounds.
        """
        task = np.asarray(self.model.task.inputs), self.model.task.labels
        shown = common.token_panels(name, TITLES[name], E, axes, frame, task)
        sums: Any = shown[f"{name} sums"]
        return shown | {f"{name} sums": replace(sums, held_out=self.held_out, **over)}

    def curves(self) -> dict[str, Panel]:
        """Return the panels of losses and accuracies."""
        looks: dict[str, Any] = {"loss": {"log": "y"}, "accuracy": {"y_range": (-0.04, 1.04)}}
        steps, of = self.history.steps, ("train", "validation")
        parts = {what: {part: self.history[f"{part}_{what}"] for part in of} for what in looks}
        return {
            what: Lines(title=what.capitalize(), curves=series(steps, parts[what]), xlabel=TRAINING, **look)
            for what, look in looks.items()
        }

    def film(self, plane: str) -> Film:
        """Return a film of the network, and of the particles below, at the kept frames.

        If the plane has kept its axes, the pair sums of the network lie over the map of its answers.
        """
        history, curves = self.history, self.curves()
        seen = {name: (history[name], plane_axes(history.last[name], plane)) for name in TITLES}
        maps, bounds, axes_then = (history[name] for name in ("map", "bounds", "axes"))
        steps, particle_steps = history.steps, history["particle_step"]

        def scene(frame: int) -> Scene:
            same = np.allclose(axes_then[frame], seen["embedding"][1])
            over = {"map": maps[frame], "bounds": tuple(bounds[frame])} if same else {}
            shown = self.tokens("embedding", *seen["embedding"], frame, **over)
            shown |= self.tokens("particles", *seen["particles"], frame)
            words = f"{TRAINING} {steps[frame]}, particle step {particle_steps[frame]}"
            return words, shown | common.timed(curves, steps[frame])

        return film(scene, len(steps), ROWS, (10.5, 6.4))


@dataclass(frozen=True)
class Parameters:
    """What can be chosen about a network in training and the particles beside it."""

    kind: str = choice(
        "network", [ATTENTION, ADDITION], heading=("Network", ("tokens N", "dimensions D", "hidden units"))
    )
    tokens: int = slider("tokens N", 17, 3, 41)
    dim: int = slider("dimensions D", 2, 1, 16)
    hidden: int = slider("hidden units", 32, 4, 256, 4)
    seed: int = number("seed", 0, 0, LARGEST_SEED)
    rate: str = parameter(
        CategoricalSlider, "learning rate", "0.01", categories=RATES, role="live",
        heading=("Optimizer (AdamW)", ("learning rate", "weight decay")),
    )  # fmt: skip
    decay: float = slider("weight decay", 1.0, 0, 5, 0.05, role="live")
    alignment: float = slider(
        "alignment fₐ", 1.0, 0, 4, 0.05, role="live", heading=("Particles", ("alignment fₐ", "particle step"))
    )
    ratio: int = slider("training steps per particle step", 20, 1, 100, role="live")
    plane: str = choice(
        "plane", ["axes 1, 2"], role="look",
        heading=("Display", ("plane", "pair sum"), "Hollow marks are held-out pairs."),
    )  # fmt: skip


class NetworksView(View):
    """The view of a network in training, and of particles that move in step with it.

    It shows tokens and pair sums of both, those of the network over the map of its answers, and curves of
    loss and accuracy.
    """

    slug, name = "networks", "Networks"
    Parameters = Parameters
    rows = (dict.fromkeys((*ROWS[0], *ROWS[1]), 258),)
    columns = 3

    _kind = ATTENTION
    _axes: Array | None = None

    def ready(self, name: str, plot: Any) -> None:
        """Map what the page shows of the plane."""
        if name == "embedding sums":
            for side in ("inner_width", "inner_height"):
                plot.figure.on_change(side, lambda _name, _old, _new: self.session.soon(self.show))

    def made(self, state: Mapping[str, Any]) -> NetworkRun:
        """Return a run of the network that the widgets describe."""
        of = self.values
        model: nets.Model = (
            nets.ConstantAttention(of.tokens, of.dim, of.hidden)
            if of.kind == ATTENTION
            else nets.ToyAddition(of.tokens, of.dim, (of.hidden, of.hidden))
        )
        return NetworkRun(model, of.seed, *self._law())

    def _law(self) -> tuple[dict[str, float], physics.ParticleSystem, int]:
        """Return the rates of the training, the law of the particles, and the ratio of their steps."""
        of = self.values
        modulus = None if of.kind == ATTENTION else 2 * of.tokens - 1  # above all sums: plain addition
        system = physics.ParticleSystem(of.tokens, of.dim, alignment=of.alignment, modulus=modulus)
        return {"learning_rate": float(of.rate), "weight_decay": of.decay}, system, of.ratio

    def restart(self, state: Mapping[str, Any] | None = None) -> None:
        """Start the network that the widgets describe; another kind has the sizes and rates of its paper."""
        kind = self.values.kind
        if kind != self._kind and state is None:
            self.set(**PUBLISHED[kind])
        self._kind = kind
        super().restart(state)

    def apply(self) -> None:
        """Let the run continue with other rates, another law and another ratio."""
        self.run.change(*self._law())

    def offer(self) -> None:
        """Offer the planes of the embedding's space."""
        cyclic = self.values.kind == ATTENTION
        self.offer_options("plane", common.planes(self.values.dim, cyclic=cyclic))

    # -- what is shown -------------------------------------------------------------------------------------

    def panels(self, whole: bool) -> Mapping[str, Panel]:
        """Return tokens and pair sums, those of the network over its answers, and losses and accuracies."""
        run, plane = self.run, self.values.plane
        if self._fresh:
            run.plane, run.axes = plane, None
            run.look()
        E, P = run.training.embeddings[0].astype(np.float64), run.particles.positions
        self._axes = plane_axes(P, plane, None if self._fresh else self._axes)
        shown = run.tokens("embedding", E[None], run.axes, 0, map=run.map, bounds=run.bounds)
        shown |= run.tokens("particles", P[None], self._axes, 0)
        return shown | run.curves() if whole else shown

    def show(self, *, whole: bool = True) -> None:
        """Show the network, and map its answers again where the figure has zoomed."""
        super().show(whole=whole)
        bounds = plots.bounds(self.plots["embedding sums"].figure)
        if bounds != self.run.bounds:
            self.run.bounds = bounds
            self.run.look()
            super().show(whole=False)

    def status(self) -> dict[str, str]:
        """Return steps, training loss, accuracies, and measures of the shape, as texts by their names."""
        last, circles = self.run.history.last, self.run.circles
        if circles is not None:
            measures = {"circles": " ".join(map(str, circles)) or "none"}
        else:
            ratio = {"circle ratio": f"{last['circle_ratio']:.3f}"} if self.run.model.dim > 1 else {}
            measures = ratio | {"imperfections": str(last["imperfections"])}
        return {
            TRAINING: str(self.run.step),
            "train loss": f"{last['train_loss']:.4f}",
            "train accuracy": f"{last['train_accuracy']:.3f}",
            "validation accuracy": f"{last['validation_accuracy']:.3f}",
            **measures,
            "particle step": str(self.run.particles.step),
        }

    def verdict(self) -> str:
        """Return sentences on what the network has learned, and on the shape of its embedding."""
        run, last, frequencies = self.run, self.run.history.last, self.run.circles
        train, held_out = (100 * float(last[f"{part}_accuracy"]) for part in ("train", "validation"))
        now = f"{train:.0f} % of the training pairs and {held_out:.0f} % of the held-out pairs"
        if run.memorized is None:
            learning = f"Answers {now}."
        elif run.generalized is None:
            learning = f"Memorizes by step {run.memorized}; now it answers {now}."
        else:
            groks = "It groks: m" if run.generalized - run.memorized >= GROKS else "M"
            learning = f"{groks}emorizes by step {run.memorized}, and generalizes by step {run.generalized}."
        if frequencies is None:
            E = last["embedding"].astype(np.float64)
            return f"{learning} {common.shape(E, int(last['imperfections']))}"
        if not frequencies:
            return f"{learning} No circle stands out yet."
        listed = ", ".join(map(str, frequencies))
        return f"{learning} {len(frequencies)} of {run.model.tokens // 2} circles stand out: {listed}."

    def film(self) -> Film:
        """Return a `Film` with the network above and the particles below."""
        run: NetworkRun = self.run
        return run.film(self.values.plane)
