"""View 2: a network in training (Musat, Section 3; Liu et al., Section 2), and particles from its start."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, LinearColorMapper

from grokphys.explorer import theme
from grokphys.explorer.curves import class_colors, series
from grokphys.explorer.films import Film, network_film
from grokphys.explorer.plots import Curves, SumPlot, TokenPlot
from grokphys.explorer.runs.common import plane_axes, planes
from grokphys.explorer.session import Session
from grokphys.explorer.view import View, choice, number, one_of, slider
from physics.particles.system import ParticleSystem

ATTENTION, ADDITION = "constant attention", "toy addition"
HEIGHT = 258
RATES = [f"{digit * 10.0**-power:.4g}" for power in (4, 3, 2) for digit in (1, 2, 3, 5)] + ["0.1", "0.2"]
PUBLISHED: dict[str, dict[str, Any]] = {
    ATTENTION: {"tokens": 17, "dim": 2, "hidden": 32, "rate": "0.01", "decay": 1.0},
    ADDITION: {"tokens": 10, "dim": 1, "hidden": 200, "rate": "0.001", "decay": 0.0},
}
"""Sizes and rates of the papers (Musat; Liu et al.), which the view sets when the network is chosen."""
TOY = {"embedding_learning_rate": 0.001, "embedding_weight_decay": 0.0, "train_fraction": 45 / 55}
"""Fixed settings of toy addition: Liu et al. train its embedding at other rates than the decoder."""


@dataclass(frozen=True)
class Parameters:
    """What can be chosen about a network in training and the particles beside it."""

    kind: str = choice("network", [ATTENTION, ADDITION])
    tokens: int = slider("tokens N", 17, 3, 41)
    dim: int = slider("dimensions D", 2, 1, 16)
    hidden: int = slider("hidden units", 32, 4, 256, 4)
    seed: int = number("seed", 0, 0, theme.LARGEST_SEED)
    rate: str = one_of("learning rate", RATES, "0.01", role="live")
    decay: float = slider("weight decay", 1.0, 0, 5, 0.05, role="live")
    alignment: float = slider("alignment fₐ", 1.0, 0, 4, 0.05, role="live")
    ratio: int = slider("optimizer steps per particle step", 20, 1, 100, role="live")
    plane: str = choice("plane", ["axes 1, 2"], role="look")


class NetworksView(View):
    """The view of a network in training, and of particles that move in step with it.

    It shows tokens and pair sums of both, those of the network over the map of its answers, and curves of
    loss and accuracy.
    """

    slug, name = "networks", "Networks"
    Parameters = Parameters
    terms = (
        *("tokens N", "dimensions D", "hidden units", "pair sum", "learning rate", "weight decay"),
        *("train loss", "train accuracy", "validation accuracy", "circle ratio", "imperfections", "circles"),
        *("alignment fₐ", "particle step"),
    )

    @classmethod
    def prepare(cls) -> None:
        """Import PyTorch."""
        importlib.import_module("grokphys.explorer.runs.networks")

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._plots: dict[str, Any] = {
            "embedding": TokenPlot("Network: embedding", height=HEIGHT),
            "embedding sums": SumPlot("Network: pair sums over its classifier", height=HEIGHT),
            "particles": TokenPlot("Particles from the same start", height=HEIGHT),
            "particles sums": SumPlot("Particles: pair sums", height=HEIGHT),
        }
        self._curves = {
            "loss": Curves("Loss", height=HEIGHT, y_axis_type="log"),
            "accuracy": Curves("Accuracy", height=HEIGHT, y_range=(-0.04, 1.04)),
        }
        self.figures = {name: plot.figure for name, plot in self._plots.items()}
        self._field = self.figures["embedding sums"]
        self._map = ColumnDataSource({"image": [], "x": [], "y": [], "dw": [], "dh": []})
        self._colors = LinearColorMapper(palette=["#ffffff"], low=-0.5, high=0.5)
        image = self._field.image(
            "image", "x", "y", "dw", "dh", source=self._map, color_mapper=self._colors, global_alpha=0.55
        )
        image.level = "underlay"
        for name in ("inner_width", "inner_height"):  # the map is of what the page shows
            self._field.on_change(name, lambda _name, _old, _new: session.soon(self.show))
        self._kind, self._fresh = ATTENTION, True
        self._axes: Any = None
        self._shown: dict[str, Any] = {}
        self.restart()

    def panel(self) -> Any:
        """Return controls, and the network above the particles, with curves at the right."""
        of = self.widgets
        controls = [
            theme.heading("Network", terms=("tokens N", "dimensions D", "hidden units")),
            *(of[name] for name in ("kind", "tokens", "dim", "hidden", "seed")),
            theme.heading("Optimizer (AdamW)", terms=("learning rate", "weight decay")),
            *(of["rate"], of["decay"]),
            theme.heading("Particles", terms=("alignment fₐ", "particle step")),
            *(of["alignment"], of["ratio"]),
            theme.heading("Display", "Hollow marks are held-out pairs.", terms=("plane", "pair sum")),
            of["plane"],
        ]
        network, sums, particles, particle_sums = (plot.figure for plot in self._plots.values())
        loss, accuracy = (plot.figure for plot in self._curves.values())
        figures = (network, sums, loss, particles, particle_sums, accuracy)
        return theme.stage(controls, theme.grid(*map(theme.card, figures), columns=3))

    # -- the run -------------------------------------------------------------------------------------------

    def made(self, state: Mapping[str, Any]) -> Any:
        """Return a run of the network that the widgets describe."""
        import nets
        from grokphys.explorer.runs.networks import NetworkRun

        of = self.values
        attention = of.kind == ATTENTION
        model: Any = (
            nets.ConstantAttention(of.tokens, of.dim, of.hidden)
            if attention
            else nets.ToyAddition(of.tokens, of.dim, (of.hidden, of.hidden))
        )
        law = self._law(of.alignment)
        settings = {} if attention else TOY
        return NetworkRun(model, of.seed, float(of.rate), of.decay, law, of.ratio, **settings)

    def restart(self, state: Mapping[str, Any] | None = None) -> None:
        """Start the network that the widgets describe; another kind has the sizes and rates of its paper."""
        kind = self.values.kind
        if kind != self._kind and state is None:
            self.set(**PUBLISHED[kind])
        self._kind = kind
        super().restart(state)

    def _law(self, alignment: float) -> ParticleSystem:
        tokens = self.values.tokens
        modulus = None if self.values.kind == ATTENTION else 2 * tokens - 1  # above all sums: plain addition
        return ParticleSystem(tokens, self.values.dim, alignment=alignment, modulus=modulus)

    def apply(self, values: Mapping[str, Any]) -> None:
        """Let the run continue with other rates, another law and another ratio."""
        self.run.change(float(values["rate"]), values["decay"])
        self.run.change_law(self._law(values["alignment"]))
        self.run.ratio = values["ratio"]

    def offer(self) -> None:
        """Offer the planes of the embedding's space."""
        names = planes(self.values.dim, cyclic=self.values.kind == ATTENTION)
        self.offer_options("plane", names)

    def advance(self, steps: int) -> None:
        """Continue the training by `steps` steps of the optimizer, and let the particles follow."""
        self.run.advance(steps, theme.bounds(self._field))

    def forget(self) -> None:
        """Let the next frame be shown without trails."""
        self._fresh = True

    # -- what is shown -------------------------------------------------------------------------------------

    def show(self, *, whole: bool = True) -> None:
        """Move tokens and pair sums, and draw the map again; curves change only with complete updates."""
        run, plane = self.run, self.values.plane
        pairs, labels = np.asarray(run.model.task.inputs), run.model.task.labels
        if self._fresh:
            run.plane, run.axes = plane, None
            run.look(None)
        sets = {
            "embedding": run.training.embeddings[0].astype(np.float64),
            "particles": run.particles.positions,
        }
        for name, E in sets.items():
            if not self._fresh and np.array_equal(E, self._shown[name]):
                continue  # particles rest during most steps of the network
            self._shown[name] = E
            if name == "particles":  # the network run keeps the axes of its embedding, which the map needs
                self._axes = plane_axes(E, plane, None if self._fresh else self._axes)
            points = E @ (self._axes if name == "particles" else run.axes).T
            added = points[pairs].sum(axis=1)
            tokens, sums = self._plots[name], self._plots[f"{name} sums"]
            if self._fresh:
                tokens.begin(points)
                sums.begin(added, pairs, labels, run.held_out)
            else:
                tokens.move(points)
                sums.move(added)
        bounds = theme.bounds(self._field)
        if self._fresh or bounds != run.map_bounds:  # the figure has zoomed
            self._colors.update(palette=class_colors(run.classes), high=run.classes - 0.5)
            run.look_again(bounds)
        self._fresh = False
        left, right, bottom, top = run.map_bounds
        places = {"x": [left], "y": [bottom], "dw": [right - left], "dh": [top - bottom]}
        self._map.data = {"image": [run.map], **places}
        if whole:
            for what, curves in self._curves.items():
                parts = {part: run.history[f"{part}_{what}"] for part in ("train", "validation")}
                curves.show(series(run.history.steps, parts))

    def status(self) -> dict[str, str]:
        """Return steps, training loss, accuracies, and measures of the shape, as texts by their names."""
        last = self.run.history.last
        shape, _ = self.run.shape
        measures = {}
        if shape == "circles":
            measures["circles"] = " ".join(map(str, self.run.circles)) or "none"
        elif shape != "grid" and self.values.dim > 1:
            measures["circle ratio"] = f"{last['circle_ratio']:.3f}"
        if shape in ("grid", ""):
            measures["imperfections"] = str(last["imperfections"])
        return {
            "step": str(self.run.step),
            "train loss": f"{last['train_loss']:.4f}",
            "train accuracy": f"{last['train_accuracy']:.3f}",
            "validation accuracy": f"{last['validation_accuracy']:.3f}",
            **measures,
            "particle step": str(self.run.particles.step),
        }

    def verdict(self) -> str:
        """Return sentences on what the network has learned, and on the shape of its embedding."""
        return f"{self.run.learning} {self.run.shape[1]}"

    def film(self) -> Film:
        """Return a `Film` with the network above and the particles below."""
        return network_film(self.run, self.values.plane)
