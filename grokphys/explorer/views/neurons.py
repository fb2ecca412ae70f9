"""View 5: single neurons that choose a frequency, and the exact race that predicts it (He et al.)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from bokeh.events import Tap
from numpy.typing import NDArray

import nets
from grokphys.explorer import theme
from grokphys.explorer.films import Film
from grokphys.explorer.panels import Bars, Lines, Matrix, Panel, series
from grokphys.explorer.runs.common import timed
from grokphys.explorer.runs.neurons import NeuronRun, neuron_film, neuron_panels, phase_panel, phases
from grokphys.explorer.session import Session
from grokphys.explorer.view import WAYS, View, choice, number, slider

Array = NDArray[np.float64]
RATES = {"gradient descent": ("sgd", 2.0), "AdamW": ("adamw", 0.005)}
"""Optimizers by their labels, with their default learning rates."""


@dataclass(frozen=True)
class Parameters:
    """What can be chosen about the network of neurons, and about what is shown of it."""

    tokens: int = slider("tokens p", 23, 5, 31, 2, heading=("Network", ("neuron",)))
    hidden: int = slider("neurons", 12, 4, 128, 4)
    activation: str = choice("activation", ["quadratic", "relu", "silu", "tanh", "abs"])
    scale: float = slider("scale of the start", 0.1, 0.02, 0.5, 0.02)
    seed: int = number("seed", 9, 0, theme.LARGEST_SEED)  # with 9, the winner of most races stands out
    optimizer: str = choice("optimizer", list(RATES), heading=("Training", ("learning rate",)))
    rate: float = number("learning rate", 2.0, 0.0001, 100.0, mode="float", step=0.5)
    neuron: int = number(
        "selected neuron", 0, 0, 127, role="look",
        heading=("Display", ("phase misalignment",), "Click a neuron, or enter its number."),
    )  # fmt: skip
    count: int = slider("neurons summed", 128, 1, 128, role="look")


class NeuronsView(View):
    """The view of the neurons of a network in training.

    It shows the phases of all neurons; the weights of one neuron, their spectrum and the race of its
    frequencies; the logits; and the accuracy.
    """

    slug, name = "neurons", "Neurons"
    Parameters = Parameters
    run: NeuronRun
    rows = ({"phases": 250, "logits": 250, "race": 250, "weights": 210, "spectrum": 210, "accuracy": 210},)
    columns = 3
    terms = ("neuron", "phase misalignment", "purity", "blow-up time", "train loss", "train accuracy")

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.restart()

    def ready(self, name: str, plot: Any) -> None:
        """Let a click choose a neuron."""
        if name == "phases":
            plot.figure.on_event(Tap, self.session.reaction(self._tap))

    def made(self, state: Mapping[str, Any]) -> NeuronRun:
        """Return a run of the network that the widgets describe."""
        of = self.values
        model = nets.TwoLayer(of.tokens, of.hidden, of.activation, scale=of.scale)
        return NeuronRun(model, of.seed, of.rate, RATES[of.optimizer][0])

    def restart(self, state: Mapping[str, Any] | None = None) -> None:
        """Start the network that the widgets describe; another optimizer has its default learning rate."""
        of = self.values
        optimizer, rate = RATES[of.optimizer]
        if state is None and self.run is not None and self.run.settings["optimizer"] != optimizer:
            self.set(rate=rate)
        with self.filling():
            self.widgets["neuron"].update(high=of.hidden - 1, value=min(of.neuron, of.hidden - 1))
            self.widgets["count"].update(end=of.hidden, value=of.hidden)
        self.usual["count"] = of.hidden
        super().restart(state)

    def look(self) -> None:
        """Show another neuron, or the logits of another number of neurons."""
        self.show()

    @property
    def _chosen(self) -> int:
        return min(int(self.values.neuron), self.run.model.hidden - 1)

    @property
    def _points(self) -> Array:
        """Point (hidden, 2) of each neuron."""
        return phases(self.run.spectrum.magnitude, self.run.spectrum.misalignment)

    def panels(self, whole: bool) -> Mapping[str, Panel]:
        """Return the phases; everything else changes only with complete updates."""
        run, chosen = self.run, self._chosen
        frequency, frequencies = run.spectrum.frequency, run.race.frequencies
        shown = {"phases": phase_panel(self._points[None], 0, frequency, frequencies, chosen)}
        if not whole:
            return shown
        inside, outside = run.weights()
        weights = series(np.arange(run.model.tokens), {"reads": inside[:, chosen], "writes": outside[chosen]})
        return {
            **shown,
            **timed(neuron_panels(run, chosen), run.step),
            "weights": Lines(
                title="Weights of the selected neuron, by token",
                curves=weights,
                xlabel="token",
                dots=False,
                columns=2,
            ),
            "spectrum": Bars(
                title="Weights of the selected neuron, by frequency", magnitude=run.spectrum.magnitude[chosen]
            ),
            "logits": Matrix(
                title="Logits",
                values=run.summed(min(self.values.count, run.model.hidden)),
                rows="a + b",
                columns="answer",
            ),
        }

    def status(self) -> dict[str, str]:
        """Return step, loss, accuracy, and measures of the chosen neuron, as texts by their names."""
        run, chosen = self.run, self._chosen
        last, spectrum = run.history.last, run.spectrum
        alive = {
            "purity": f"{spectrum.purity[chosen]:.3f}",
            "phase misalignment": f"{spectrum.misalignment[chosen]:+.2f}",
        }
        return {
            "step": str(run.step),
            "train loss": f"{last['train_loss']:.4f}",
            "train accuracy": f"{last['train_accuracy']:.3f}",
            "neuron": str(chosen),
            **({} if spectrum.dead[chosen] else alive),
            **({"blow-up time": f"{run.blowup[chosen].min():.0f}"} if run.flows else {}),
        }

    def verdict(self) -> str:
        """Return sentences on the chosen neuron and on all neurons."""
        return self.run.verdict(self._chosen)

    def python(self) -> str:
        """Return Python source that trains by `nets.Training` and describes the chosen neuron."""
        return self.run.python(self._chosen)

    def key(self, name: str) -> None:
        """Choose the neuron before or after the chosen one by an arrow key."""
        right, up = WAYS.get(name, (0, 0))
        self.widgets["neuron"].value = (self._chosen + right - up) % self.run.model.hidden

    def film(self) -> Film:
        """Return a `Film` of the phases, the race of the chosen neuron, and the accuracy."""
        return neuron_film(self.run, self._chosen)

    def _tap(self, event: Any) -> None:
        """Choose the neuron whose point is nearest to the click."""
        away = np.hypot(*(self._points - [event.x, event.y]).T)
        self.widgets["neuron"].value = int(away.argmin())
