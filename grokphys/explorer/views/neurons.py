"""View 5: single neurons that choose a frequency, and the exact race that predicts it (He et al.)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from bokeh.events import Tap

import nets
from grokphys.explorer import films
from grokphys.explorer.films import Array, Curve, Film, Lines, Panel, Scene, film, series
from grokphys.explorer.runs import common
from grokphys.explorer.runs.common import TRAINING, TrainingRun, arguments
from grokphys.explorer.view import LARGEST_SEED, WAYS, View, choice, number, slider
from physics.neurons.lottery import FourierLottery
from physics.neurons.spectrum import NeuronSpectrum, neuron_spectrum

RATES = {"gradient descent": ("sgd", 2.0), "AdamW": ("adamw", 0.005)}
"""Optimizers by their labels, with their default learning rates."""
ABOVE = 1.5
"""Multiple of a neuron's largest trained magnitude up to which the exact flow, which diverges, is shown."""
BEFORE = 0.98
"""Fraction of the time to the first divergence for which `NeuronRun.flow` computes the exact flow."""


class NeuronRun(TrainingRun):
    """A `nets.TwoLayer` in training on all pairs, and the exact flow of small weights from the same start.

    While weights are small, the frequencies of a neuron move independently. Their motion is solved exactly
    (He et al., Section 4.4): each diverges at a time that its start determines.

    Parameters
    ----------
    model : TwoLayer
        Network to train.
    seed : int
        Seed of the network.
    learning_rate : float
        Learning rate of the optimizer.
    optimizer : {"sgd", "adamw"}
        Optimizer; the exact flow describes only gradient descent, "sgd".

    Attributes
    ----------
    race : FourierLottery
        Exact flow; its time is the number of steps times the learning rate.
    flows : bool
        Whether it describes this network: quadratic neurons under gradient descent.
    blowup : ndarray of float64, shape (hidden, ⌊tokens/2⌋)
        Steps until each frequency diverges in the exact flow, infinite if it never does.
    predicted : ndarray of int64, shape (hidden,)
        Frequency of each neuron that diverges first in the exact flow; 0 if none diverges.

    Raises
    ------
    InputError
        If a setting is not allowed by `nets.Training`.
    """

    positions_name, limit = "inside", 400
    observables = ("train_loss", "train_accuracy")

    def __init__(self, model: nets.TwoLayer, seed: int, learning_rate: float, optimizer: str) -> None:
        self.race = FourierLottery(model.tokens)
        self.flows = model.activation == "quadratic" and optimizer == "sgd"
        rates = {"learning_rate": learning_rate, "weight_decay": 0.0}
        super().__init__(model, seed, **rates, optimizer=optimizer, train_fraction=1.0)

    def reset(self) -> None:
        """Start again from the initial weights."""
        super().reset()
        self._record()
        self.start = self.spectrum
        begin = self.start.theta, self.start.xi
        self.blowup = self.race.blowup_times(*begin) / self.settings["learning_rate"]
        self.predicted = self.race.winners(*begin)

    def advance(self, steps: int) -> None:
        """Train for `steps` steps of the optimizer, and keep the frame.

        Raises
        ------
        SimulationError
            If the input weights blow up.
        """
        self.train(steps)
        self._record()

    def weights(self) -> tuple[Array, Array]:
        """Return the input weights (tokens, hidden) and the output weights (hidden, tokens), as float64."""
        weights = self.training.networks().parameters
        return weights["embedding"][0].astype(np.float64), weights["output.weight"][0].astype(np.float64)

    def flow(self, neuron: int) -> tuple[Array, Array]:
        """Return the exact flow of a neuron until shortly before a frequency diverges, or over 1000 steps.

        Returns
        -------
        ndarray of float64, shape (n,)
            Numbers of steps, which need not be whole.
        ndarray of float64, shape (n, ⌊tokens/2⌋)
            Magnitude |θ| of the input weights at each frequency.
        """
        last = BEFORE * float(self.blowup[neuron].min())
        steps = np.linspace(0.0, last if np.isfinite(last) else 1000.0, 120)
        assert self.start.xi is not None
        start = self.start.theta[neuron : neuron + 1], self.start.xi[neuron : neuron + 1]
        theta, _ = self.race.solve(*start, self.settings["learning_rate"] * steps)
        return steps, np.abs(theta[:, 0])

    def summed(self, count: int) -> Array:
        """Return the logits that the first `count` neurons alone give, float64 (tokens, tokens).

        Rows are sums of two tokens modulo their number, and columns are answers. A row is the mean over the
        pairs with that sum, minus its own mean over the answers.
        """
        import torch

        inside, outside = self.weights()
        sums = torch.as_tensor(inside[:, None, :count] + inside[None, :, :count])
        act = self.model.architecture.activate(sums).numpy()
        first, total = np.indices((self.model.tokens, self.model.tokens))
        logits = act[first, (total - first) % self.model.tokens].mean(axis=0) @ outside[:count]
        return np.asarray(logits - logits.mean(axis=1, keepdims=True))

    def _record(self) -> None:
        inside, outside = self.weights()
        self.spectrum: NeuronSpectrum = neuron_spectrum(inside, outside)
        loss, accuracy = self.training.losses("train")
        self.history.append(
            self.step,
            inside=inside.astype(np.float32),
            magnitude=self.spectrum.magnitude,
            misalignment=self.spectrum.misalignment,
            train_loss=float(loss[0]),
            train_accuracy=float(accuracy[0]),
        )

    # -- what is shown -------------------------------------------------------------------------------------

    def phases(self, frame: int, neuron: int) -> Panel:
        """Return the panel of the phases of all neurons, in the colors of their frequencies.

        The angle is the misalignment, and the radius the magnitude relative to that of the largest neuron.
        """
        values = self.history.frame(frame)
        size, angle = values["magnitude"].max(axis=1), np.nan_to_num(values["misalignment"])
        ends = (size / max(size.max(), 1e-300))[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        order = self.spectrum.frequency * len(size) // (self.race.frequencies + 1)
        title = "Phase 2φ − ψ of each neuron (aligned: right)"
        return films.Tokens(title=title, paths=ends[None], order=order, chosen=neuron)

    def curves(self, neuron: int) -> dict[str, Panel]:
        """Return the panels of the race of one neuron, and of the accuracy."""
        steps, magnitude = self.history.steps, self.history["magnitude"][:, neuron]
        exact: list[Curve] = []
        if self.flows:
            clock, flow = self.flow(neuron)
            shown = np.where(flow <= ABOVE * magnitude.max(), flow, np.nan)
            exact = films.cycle(clock, list(shown.T), "dashed", first=1)
        title = f"Race of the frequencies of neuron {neuron} (dashed: exact flow)"
        curves = [*films.cycle(steps, list(magnitude.T), first=1), *exact]
        accuracies = series(steps, {"accuracy": self.history["train_accuracy"]}, label=False)
        looks: dict[str, Any] = {"title": "Accuracy", "y_range": (-0.04, 1.04), "xlabel": TRAINING}
        return {
            "race": Lines(title=title, curves=curves, xlabel=TRAINING, dots=False),
            "accuracy": Lines(curves=accuracies, **looks),
        }


@dataclass(frozen=True)
class Parameters:
    """What can be chosen about the network of neurons, and about what is shown of it."""

    tokens: int = slider("tokens p", 23, 5, 31, 2, heading=("Network", ("neuron",)))
    hidden: int = slider("neurons", 12, 4, 128, 4)
    activation: str = choice("activation", ["quadratic", "relu", "silu", "tanh", "abs"])
    scale: float = slider("scale of the start", 0.1, 0.02, 0.5, 0.02)
    seed: int = number("seed", 9, 0, LARGEST_SEED)  # with 9, the winner of most races stands out
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

    def ready(self, name: str, plot: Any) -> None:
        """Let a click choose the neuron whose point is nearest."""

        def tap(event: Any) -> None:
            away = np.hypot(*(plot.points() - [event.x, event.y]).T)
            self.widgets["neuron"].value = int(away.argmin())

        if name == "phases":
            plot.figure.on_event(Tap, self.session.reaction(tap))

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
        count = min(of.count, of.hidden) if "count" in (state or {}) else of.hidden
        with self.filling():
            self.widgets["neuron"].update(high=of.hidden - 1, value=min(of.neuron, of.hidden - 1))
            self.widgets["count"].update(end=of.hidden, value=count)
        self.usual["count"] = of.hidden
        super().restart(state)

    def panels(self, whole: bool) -> Mapping[str, Panel]:
        """Return the phases; everything else changes only with complete updates."""
        run, chosen = self.run, self.values.neuron
        shown = {"phases": run.phases(-1, chosen)}
        if not whole:
            return shown
        inside, outside = run.weights()
        weights = series(np.arange(run.model.tokens), {"reads": inside[:, chosen], "writes": outside[chosen]})
        sizes = run.spectrum.magnitude[chosen]
        bars = [
            Curve([k, k], [0.0, sizes[k - 1]], color, name=f"k = {k}", width=8.0)
            for k, color in enumerate(films.line_colors(len(sizes)), 1)
        ]
        title = f"Weights of neuron {chosen}"
        return {
            **shown,
            **common.timed(run.curves(chosen), run.step),
            "weights": Lines(title=f"{title}, by token", curves=weights, xlabel="token", dots=False),
            "spectrum": Lines(title=f"{title}, by frequency", curves=bars, xlabel="frequency k", dots=False),
            "logits": films.Matrix(
                title="Logits", values=run.summed(self.values.count), rows="a + b", columns="answer"
            ),
        }

    def status(self) -> dict[str, str]:
        """Return step, loss, accuracy, and measures of the chosen neuron, as texts by their names."""
        run, chosen = self.run, self.values.neuron
        last, spectrum = run.history.last, run.spectrum
        alive = {
            "purity": f"{spectrum.purity[chosen]:.3f}",
            "phase misalignment": f"{spectrum.misalignment[chosen]:+.2f}",
        }
        return {
            TRAINING: str(run.step),
            "train loss": f"{last['train_loss']:.4f}",
            "train accuracy": f"{last['train_accuracy']:.3f}",
            "neuron": str(chosen),
            **({} if spectrum.dead[chosen] else alive),
            **({"blow-up time": f"{run.blowup[chosen].min():.0f}"} if run.flows else {}),
        }

    def verdict(self) -> str:
        """Return sentences on a neuron, whether it agrees with the exact flow, and on all neurons."""
        run, chosen, spectrum = self.run, self.values.neuron, self.run.spectrum
        frequency, single = int(spectrum.frequency[chosen]), spectrum.kind == "single"
        has = "has" if single[chosen] else "is strongest at"
        words = [f"Neuron {chosen} {has} frequency {frequency}" if frequency else f"Neuron {chosen} is dead"]
        if run.flows:
            words[0] += f"; the exact flow predicts {run.predicted[chosen]}"
            share = 100 * (spectrum.frequency == run.predicted).mean()
            words.append(f"{share:.0f} % of neurons have the frequency that the flow predicts")
        words.append(f"{100 * single.mean():.0f} % have a single frequency")
        apart = np.degrees(np.abs(spectrum.misalignment))
        if np.isfinite(apart).any():  # dead neurons have no phase
            words.append(f"The median misalignment of their phases is {np.nanmedian(apart):.0f}°")
        return ". ".join(words) + "."

    def python(self) -> str:
        """Return Python source that trains by `nets.Training`, with the input weights as `E`.

        It prints loss, accuracy, and the frequency and the purity of the chosen neuron.
        """
        run = self.run
        made = f"{common.constructed('nets', run.model)}, seed={run.seed}, {arguments(**run.settings)}"
        return common.program("neurons", made=made, step=run.step, neuron=self.values.neuron)

    def key(self, name: str) -> None:
        """Choose the neuron before or after the chosen one by an arrow key."""
        right, up = WAYS.get(name, (0, 0))
        self.widgets["neuron"].value = (self.values.neuron + right - up) % self.run.model.hidden

    def film(self) -> Film:
        """Return a film of the phases, the race of the chosen neuron, and the accuracy."""
        run, neuron = self.run, self.values.neuron
        steps, curves = run.history.steps, run.curves(neuron)
        phases: Any = [run.phases(frame, neuron) for frame in range(len(steps))]
        tokens = replace(phases[-1], paths=np.concatenate([panel.paths for panel in phases]))

        def scene(frame: int) -> Scene:
            shown = {"phases": replace(tokens, frame=frame), **common.timed(curves, steps[frame])}
            return f"{TRAINING} {steps[frame]}", shown

        return film(scene, len(steps), (("phases", "race", "accuracy"),), (12.0, 4.2))
