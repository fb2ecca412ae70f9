"""View 5: single neurons that choose a frequency, and the exact race that predicts it (He et al.)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from bokeh.events import Tap
from bokeh.models import Span
from numpy.typing import NDArray

from grokphys.explorer import theme
from grokphys.explorer.films.export import Film
from grokphys.explorer.plots.neurons import Bars, HeatMap
from grokphys.explorer.plots.plane import Curves, TokenPlot
from grokphys.explorer.plots.theory import FlowCurves
from grokphys.explorer.session import Session
from grokphys.explorer.views import presets
from grokphys.explorer.views.view import WAYS, View

Array = NDArray[np.float64]
HEIGHT = 250
ABOVE = 1.5
"""Multiple of a neuron's largest trained magnitude up to which the exact flow, which diverges, is shown."""
SEED = 9
"""Default seed, with which the winner of most races stands out."""
RATES = {"gradient descent": ("sgd", 2.0), "AdamW": ("adamw", 0.005)}
"""Optimizers by their labels, with their default learning rates."""


class NeuronsView(View):
    """The view of the neurons of a network in training.

    It shows the phases of all neurons; the weights of one neuron, their spectrum and the race of its
    frequencies; the logits; and the accuracy.
    """

    slug, name = "neurons", "Neurons"
    needs = ("nets", "grokphys.explorer.runs.neurons", "grokphys.explorer.films.neurons")
    terms = ("neuron", "phase misalignment", "purity", "blow-up time", "train loss", "train accuracy")
    presets = presets.NEURONS

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._tokens = theme.slider("tokens p", 5, 31, 23, 2)
        self._hidden = theme.slider("neurons", 4, 128, 12, 4)
        self._activation = theme.chooser("activation", ["quadratic", "relu", "silu", "tanh", "abs"])
        self._optimizer = theme.chooser("optimizer", list(RATES))
        self._rate = theme.number("learning rate", 2.0, 0.0001, 100.0, mode="float", step=0.5)
        self._scale = theme.slider("scale of the start", 0.02, 0.5, 0.1, 0.02)
        self._seed = theme.number("seed", SEED, 0, theme.LARGEST_SEED)
        self._neuron = theme.number("selected neuron", 0, 0, 11)
        self._count = theme.slider("neurons summed", 1, 12, 12)

        self._phases = TokenPlot("Phase 2φ − ψ of each neuron (aligned: right)", height=HEIGHT)
        self._phases.figure.on_event(Tap, session.reaction(self._tap))
        self._place = FlowCurves(
            "Weights of the selected neuron, by token", ("reads", "writes"), x_axis_label="token"
        )
        self._place.figure.select_one(Span).visible = False  # the axis of this figure is the token, not time
        self._bars = Bars("Weights of the selected neuron, by frequency")
        title = "Race of its frequencies (dashed: exact flow of quadratic neurons)"
        self._race = FlowCurves(title, x_axis_label="step", height=HEIGHT)
        self._logits = HeatMap("Logits (rows: a + b, columns: answers)", HEIGHT)
        self._accuracy = Curves("Accuracy", ["accuracy"], height=210, y_range=(-0.04, 1.04))
        self.figures = {
            "phases": self._phases.figure,
            "race": self._race.figure,
            "accuracy": self._accuracy.figure,
        }
        self._fresh, self._colored = True, np.empty(0, np.int64)
        self._run: Any = self._begin()
        start = (self._tokens, self._hidden, self._activation, self._rate, self._scale, self._seed)
        self.connect(lambda _: self._renew(), *start)
        self.connect(self._other_optimizer, self._optimizer)
        self.connect(lambda _: self.show(), self._neuron, self._count)
        self.hold(
            tokens=self._tokens,
            hidden=self._hidden,
            activation=self._activation,
            optimizer=self._optimizer,
            rate=self._rate,
            scale=self._scale,
            seed=self._seed,
        )

    def panel(self) -> Any:
        """Return controls, phases, weights and their spectrum, the race, logits and accuracy."""
        controls = [
            theme.heading("Network", terms=("neuron",)),
            *(self._tokens, self._hidden, self._activation, self._scale, self._seed),
            theme.heading("Training", terms=("learning rate",)),
            *(self._optimizer, self._rate),
            theme.heading("Display", "Click a neuron, or enter its number.", terms=("phase misalignment",)),
            *(self._neuron, self._count),
        ]
        plots = (self._phases, self._logits, self._race, self._place, self._bars, self._accuracy)
        return theme.stage(controls, theme.grid(*(theme.card(plot.figure) for plot in plots), columns=3))

    def advance(self, steps: int) -> None:
        """Continue the training by `steps` steps of the optimizer."""
        self._run.advance(steps)

    def show(self, *, whole: bool = True) -> None:
        """Move the phases; everything else changes only with complete updates."""
        run, points = self._run, self._points()
        frequency = run.spectrum.frequency
        if self._fresh or not np.array_equal(frequency, self._colored):
            self._colored = frequency
            self._phases.begin(points, (frequency * len(points)) // (run.race.frequencies + 1))
        else:
            self._phases.move(points)
        self._fresh = False
        if not whole:
            return
        chosen, history = self._chosen, run.history
        self._phases.ring(chosen)
        inside, outside = run.weights()
        self._place.show(np.arange(run.model.tokens), [inside[:, chosen], outside[chosen]])
        self._bars.show(run.spectrum.magnitude[chosen])
        trained = history["magnitude"][:, chosen]
        steps, exact = run.flow(chosen) if run.flows else (np.empty(0), np.empty((0, 0)))
        self._race.show(history.steps, list(trained.T))
        self._race.show_beside(steps, np.where(exact <= ABOVE * trained.max(), exact, np.nan))
        self._race.point_at(run.step)
        self._logits.show(run.summed(min(self._count.value, run.model.hidden)))
        self._accuracy.show(history.steps, accuracy=history["train_accuracy"])

    def reset(self) -> None:
        """Start again with the same network."""
        self._run.reset()
        self.forget()

    def forget(self) -> None:
        """Remove the trails that lead from earlier frames to the present one."""
        self._fresh = True

    def status(self) -> dict[str, str]:
        """Return step, loss, accuracy, and measures of the chosen neuron, as texts by their names."""
        run, chosen = self._run, self._chosen
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

    def python(self) -> str:
        """Return Python source that trains by `nets.Training` and describes the chosen neuron."""
        return str(self._run.python(self._chosen))

    def verdict(self) -> str:
        """Return sentences on the chosen neuron and on all neurons."""
        from grokphys.explorer.runs.verdicts import neurons

        run = self._run
        return neurons(run.spectrum, run.predicted() if run.flows else None, self._chosen)

    def state(self) -> dict[str, Any]:
        """Return the widgets' state with the number of steps, if there are any."""
        return {**super().state(), **({"step": self._run.step} if self._run.step else {})}

    def renew(self, state: Mapping[str, Any]) -> None:
        """Start again with the network that the widgets describe."""
        self._renew()

    def key(self, name: str) -> None:
        """Choose the neuron before or after the chosen one by an arrow key."""
        right, up = WAYS.get(name, (0, 0))
        self._neuron.value = (self._chosen + right - up) % self._run.model.hidden

    def film(self) -> Film:
        """Return a `Film` of the phases, the race of the chosen neuron, and the accuracy."""
        from grokphys.explorer.films.neurons import neuron_film

        return neuron_film(self._run, self._chosen)

    # -- interaction ------------------------------------------------------------------------------

    @property
    def _chosen(self) -> int:
        return min(int(self._neuron.value), self._run.model.hidden - 1)

    def _points(self) -> Array:
        """Return a point (hidden, 2) for each neuron: misalignment as angle, relative magnitude as radius."""
        spectrum = self._run.spectrum
        size = spectrum.magnitude.max(axis=1)
        angle = np.nan_to_num(spectrum.misalignment)
        return np.asarray(size / size.max() * np.stack([np.cos(angle), np.sin(angle)])).T

    def _begin(self) -> Any:
        import nets
        from grokphys.explorer.runs.neurons import NeuronRun

        model = nets.TwoLayer(
            self._tokens.value, self._hidden.value, self._activation.value, scale=self._scale.value
        )
        return NeuronRun(model, self._seed.value, self._rate.value, RATES[self._optimizer.value][0])

    def _renew(self) -> None:
        """Start again with a network of the chosen settings."""
        self._run, self._fresh = self._begin(), True
        hidden = self._run.model.hidden
        with self.filling():
            self._neuron.update(high=hidden - 1, value=self._chosen)
            self._count.update(end=hidden, value=hidden)
        self.show()

    def _other_optimizer(self, name: str) -> None:
        """Change the optimizer, and the learning rate to its default."""
        with self.filling():
            self._rate.value = RATES[name][1]
        self._renew()

    def _tap(self, event: Any) -> None:
        """Choose the neuron whose point is nearest to the click."""
        if event.x is not None and event.y is not None:
            away = np.hypot(*(self._points() - [event.x, event.y]).T)
            self._neuron.value = int(away.argmin())
