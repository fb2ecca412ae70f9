"""View 5: single neurons that choose a frequency, and the exact race that predicts it (He et al.)."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from bokeh.events import Tap
from numpy.typing import NDArray

from grokphys.explorer import theme
from grokphys.explorer.curves import cycle, series
from grokphys.explorer.films import Film, neuron_film
from grokphys.explorer.plots import Bars, Curves, HeatMap, TokenPlot
from grokphys.explorer.session import Session
from grokphys.explorer.view import WAYS, View, choice, number, slider

Array = NDArray[np.float64]
HEIGHT = 250
ABOVE = 1.5
"""Multiple of a neuron's largest trained magnitude up to which the exact flow, which diverges, is shown."""
RATES = {"gradient descent": ("sgd", 2.0), "AdamW": ("adamw", 0.005)}
"""Optimizers by their labels, with their default learning rates."""


@dataclass(frozen=True)
class Parameters:
    """What can be chosen about the network of neurons, and about what is shown of it."""

    tokens: int = slider("tokens p", 23, 5, 31, 2)
    hidden: int = slider("neurons", 12, 4, 128, 4)
    activation: str = choice("activation", ["quadratic", "relu", "silu", "tanh", "abs"])
    optimizer: str = choice("optimizer", list(RATES))
    rate: float = number("learning rate", 2.0, 0.0001, 100.0, mode="float", step=0.5)
    scale: float = slider("scale of the start", 0.1, 0.02, 0.5, 0.02)
    seed: int = number("seed", 9, 0, theme.LARGEST_SEED)  # with 9, the winner of most races stands out
    neuron: int = number("selected neuron", 0, 0, 127, role="look")
    count: int = slider("neurons summed", 128, 1, 128, role="look")


class NeuronsView(View):
    """The view of the neurons of a network in training.

    It shows the phases of all neurons; the weights of one neuron, their spectrum and the race of its
    frequencies; the logits; and the accuracy.
    """

    slug, name = "neurons", "Neurons"
    Parameters = Parameters
    terms = ("neuron", "phase misalignment", "purity", "blow-up time", "train loss", "train accuracy")

    @classmethod
    def prepare(cls) -> None:
        """Import PyTorch."""
        importlib.import_module("grokphys.explorer.runs.neurons")

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._phases = TokenPlot("Phase 2φ − ψ of each neuron (aligned: right)", height=HEIGHT)
        self._phases.figure.on_event(Tap, session.reaction(self._tap))
        self._place = Curves(
            "Weights of the selected neuron, by token", x_axis_label="token", dots=False, columns=2
        )
        self._bars = Bars("Weights of the selected neuron, by frequency")
        title = "Race of its frequencies (dashed: exact flow of quadratic neurons)"
        self._race = Curves(title, height=HEIGHT, dots=False)
        self._logits = HeatMap("Logits", HEIGHT, "a + b", "answer")
        self._accuracy = Curves("Accuracy", y_range=(-0.04, 1.04))
        self.figures = {"phases": self._phases.figure}
        self._fresh, self._colored, self._optimizer = True, np.empty(0, np.int64), next(iter(RATES))
        self.restart()

    def panel(self) -> Any:
        """Return controls, phases, weights and their spectrum, the race, logits and accuracy."""
        of = self.widgets
        controls = [
            theme.heading("Network", terms=("neuron",)),
            *(of[name] for name in ("tokens", "hidden", "activation", "scale", "seed")),
            theme.heading("Training", terms=("learning rate",)),
            *(of["optimizer"], of["rate"]),
            theme.heading("Display", "Click a neuron, or enter its number.", terms=("phase misalignment",)),
            *(of["neuron"], of["count"]),
        ]
        plots = (self._phases, self._logits, self._race, self._place, self._bars, self._accuracy)
        return theme.stage(controls, theme.grid(*(theme.card(plot.figure) for plot in plots), columns=3))

    def made(self, state: Mapping[str, Any]) -> Any:
        """Return a run of the network that the widgets describe."""
        import nets
        from grokphys.explorer.runs.neurons import NeuronRun

        of = self.values
        model = nets.TwoLayer(of.tokens, of.hidden, of.activation, scale=of.scale)
        return NeuronRun(model, of.seed, of.rate, RATES[of.optimizer][0])

    def restart(self, state: Mapping[str, Any] | None = None) -> None:
        """Start the network that the widgets describe; another optimizer has its default learning rate."""
        of = self.values
        if of.optimizer != self._optimizer and state is None:
            self.set(rate=RATES[of.optimizer][1])
        self._optimizer = of.optimizer
        with self.filling():
            self.widgets["neuron"].update(high=of.hidden - 1, value=min(of.neuron, of.hidden - 1))
            self.widgets["count"].update(end=of.hidden, value=of.hidden)
        self.usual["count"] = of.hidden
        super().restart(state)

    def forget(self) -> None:
        """Let the next frame be shown without trails."""
        self._fresh = True

    def look(self) -> None:
        """Show another neuron, or the logits of another number of neurons."""
        self.show()

    @property
    def _chosen(self) -> int:
        return min(int(self.values.neuron), int(self.run.model.hidden) - 1)

    def _points(self) -> Array:
        """Return a point (hidden, 2) for each neuron: misalignment as angle, relative magnitude as radius."""
        spectrum = self.run.spectrum
        size = spectrum.magnitude.max(axis=1)
        angle = np.nan_to_num(spectrum.misalignment)
        return np.asarray(size / size.max() * np.stack([np.cos(angle), np.sin(angle)])).T

    def show(self, *, whole: bool = True) -> None:
        """Move the phases; everything else changes only with complete updates."""
        run, points, chosen = self.run, self._points(), self._chosen
        frequency = run.spectrum.frequency
        if self._fresh or not np.array_equal(frequency, self._colored):
            self._colored = frequency
            self._phases.begin(points, (frequency * len(points)) // (run.race.frequencies + 1))
        else:
            self._phases.move(points)
        self._fresh = False
        if not whole:
            return
        history, (inside, outside) = run.history, run.weights()
        self._phases.ring(chosen)
        both = {"reads": inside[:, chosen], "writes": outside[chosen]}
        self._place.show(series(np.arange(run.model.tokens), both))
        self._bars.show(run.spectrum.magnitude[chosen])
        trained = history["magnitude"][:, chosen]
        steps, exact = run.flow(chosen) if run.flows else (np.empty(0), np.empty((0, 0)))
        exact = np.where(exact <= ABOVE * trained.max(), exact, np.nan)
        race = [*cycle(history.steps, list(trained.T), first=1), *cycle(steps, list(exact.T), "dashed", 1)]
        self._race.show(race)
        self._race.point_at(run.step)
        self._logits.show(run.summed(min(self.values.count, run.model.hidden)))
        self._accuracy.show(series(history.steps, {"accuracy": history["train_accuracy"]}, label=False))

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
        return str(self.run.verdict(self._chosen))

    def python(self) -> str:
        """Return Python source that trains by `nets.Training` and describes the chosen neuron."""
        return str(self.run.python(self._chosen))

    def key(self, name: str) -> None:
        """Choose the neuron before or after the chosen one by an arrow key."""
        right, up = WAYS.get(name, (0, 0))
        self.widgets["neuron"].value = (self._chosen + right - up) % self.run.model.hidden

    def film(self) -> Film:
        """Return a `Film` of the phases, the race of the chosen neuron, and the accuracy."""
        return neuron_film(self.run, self._chosen)

    def _tap(self, event: Any) -> None:
        """Choose the neuron whose point is nearest to the click."""
        away = np.hypot(*(self._points() - [event.x, event.y]).T)
        self.widgets["neuron"].value = int(away.argmin())
