"""View 2: a network in training (Musat, Section 3; Liu et al., Section 2), and particles from its start."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import nets
from grokphys.explorer import theme
from grokphys.explorer.films import Film
from grokphys.explorer.panels import Panel
from grokphys.explorer.runs.common import plane_axes, planes
from grokphys.explorer.runs.networks import ROWS, NetworkRun, loss_panels, network_film, place_panels
from grokphys.explorer.session import Session
from grokphys.explorer.view import View, choice, number, one_of, slider
from physics.particles.system import ParticleSystem

ATTENTION, ADDITION = "constant attention", "toy addition"
RATES = [f"{digit * 10.0**-power:.4g}" for power in (4, 3, 2) for digit in (1, 2, 3, 5)] + ["0.1", "0.2"]
PUBLISHED: dict[str, dict[str, Any]] = {
    ATTENTION: {"tokens": 17, "dim": 2, "hidden": 32, "rate": "0.01", "decay": 1.0},
    ADDITION: {"tokens": 10, "dim": 1, "hidden": 200, "rate": "0.001", "decay": 0.0},
}
"""Sizes and rates of the papers (Musat; Liu et al.), which the view sets when the network is chosen."""


@dataclass(frozen=True)
class Parameters:
    """What can be chosen about a network in training and the particles beside it."""

    kind: str = choice(
        "network", [ATTENTION, ADDITION], heading=("Network", ("tokens N", "dimensions D", "hidden units"))
    )
    tokens: int = slider("tokens N", 17, 3, 41)
    dim: int = slider("dimensions D", 2, 1, 16)
    hidden: int = slider("hidden units", 32, 4, 256, 4)
    seed: int = number("seed", 0, 0, theme.LARGEST_SEED)
    rate: str = one_of(
        "learning rate", RATES, "0.01", role="live",
        heading=("Optimizer (AdamW)", ("learning rate", "weight decay")),
    )  # fmt: skip
    decay: float = slider("weight decay", 1.0, 0, 5, 0.05, role="live")
    alignment: float = slider(
        "alignment fₐ", 1.0, 0, 4, 0.05, role="live", heading=("Particles", ("alignment fₐ", "particle step"))
    )
    ratio: int = slider("optimizer steps per particle step", 20, 1, 100, role="live")
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
    terms = (
        *("tokens N", "dimensions D", "hidden units", "pair sum", "learning rate", "weight decay"),
        *("train loss", "train accuracy", "validation accuracy", "circle ratio", "imperfections", "circles"),
        *("alignment fₐ", "particle step"),
    )

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._kind = ATTENTION
        self._axes: Any = None
        self.restart()

    def ready(self, name: str, plot: Any) -> None:
        """Map what the page shows of the plane."""
        if name == "embedding sums":
            for side in ("inner_width", "inner_height"):
                plot.figure.on_change(side, lambda _name, _old, _new: self.session.soon(self.show))

    # -- the run -------------------------------------------------------------------------------------------

    def made(self, state: Mapping[str, Any]) -> NetworkRun:
        """Return a run of the network that the widgets describe."""
        of = self.values
        model: nets.Model = (
            nets.ConstantAttention(of.tokens, of.dim, of.hidden)
            if of.kind == ATTENTION
            else nets.ToyAddition(of.tokens, of.dim, (of.hidden, of.hidden))
        )
        return NetworkRun(model, of.seed, _rates(vars(of)), self._system(of.alignment), of.ratio)

    def restart(self, state: Mapping[str, Any] | None = None) -> None:
        """Start the network that the widgets describe; another kind has the sizes and rates of its paper."""
        kind = self.values.kind
        if kind != self._kind and state is None:
            self.set(**PUBLISHED[kind])
        self._kind = kind
        super().restart(state)

    def _system(self, alignment: float) -> ParticleSystem:
        tokens = self.values.tokens
        modulus = None if self.values.kind == ATTENTION else 2 * tokens - 1  # above all sums: plain addition
        return ParticleSystem(tokens, self.values.dim, alignment=alignment, modulus=modulus)

    def apply(self, law: Mapping[str, Any]) -> None:
        """Let the run continue with other rates, another law and another ratio."""
        self.run.change(_rates(law))
        self.run.change_law(self._system(law["alignment"]))
        self.run.ratio = law["ratio"]

    def offer(self) -> None:
        """Offer the planes of the embedding's space."""
        self.offer_options("plane", planes(self.values.dim, cyclic=self.values.kind == ATTENTION))

    # -- what is shown -------------------------------------------------------------------------------------

    def panels(self, whole: bool) -> Mapping[str, Panel]:
        """Return tokens and pair sums, those of the network over its answers, and losses and accuracies."""
        run = self.run
        if self._fresh:
            run.plane, run.axes = self.values.plane, None
            run.look()
        E = run.training.embeddings[0].astype(np.float64)
        before = None if self._fresh else self._axes
        self._axes = plane_axes(run.particles.positions, self.values.plane, before)
        answers = {"map": run.map, "bounds": run.bounds}
        shown = place_panels(run, "embedding", (E @ run.axes.T)[None], 0, **answers)
        shown |= place_panels(run, "particles", (run.particles.positions @ self._axes.T)[None], 0)
        return shown | loss_panels(run.history) if whole else shown

    def show(self, *, whole: bool = True) -> None:
        """Show the network, and map its answers again where the figure has zoomed."""
        super().show(whole=whole)
        bounds = theme.bounds(self.plots["embedding sums"].figure)
        if bounds != self.run.bounds:
            self.run.bounds = bounds
            self.run.look()
            super().show(whole=False)

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


def _rates(values: Mapping[str, Any]) -> dict[str, float]:
    return {"learning_rate": float(values["rate"]), "weight_decay": values["decay"]}
