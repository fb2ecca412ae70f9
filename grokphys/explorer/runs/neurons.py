"""The neurons of the two-layer network of He et al. in training, and the exact race of their frequencies."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

import nets
from grokphys.explorer.films import Film, Scene, film
from grokphys.explorer.panels import Curve, Lines, Panel, Tokens, cycle, series
from grokphys.explorer.runs.common import TrainingRun, arguments, constructed, program, timed
from physics.neurons.lottery import FourierLottery
from physics.neurons.spectrum import NeuronSpectrum, neuron_spectrum

Array = NDArray[np.float64]
FRAMES = 400
"""Largest number of frames, with the weights of all neurons, that are kept."""
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

    Raises
    ------
    InputError
        If a setting is not allowed by `nets.Training`.
    """

    positions_name, limit = "inside", FRAMES
    observables = ("train_loss", "train_accuracy")

    def __init__(self, model: nets.TwoLayer, seed: int, learning_rate: float, optimizer: str) -> None:
        rates = {"learning_rate": learning_rate, "weight_decay": 0.0}
        super().__init__(model, seed, **rates, optimizer=optimizer, train_fraction=1.0)

    @property
    def flows(self) -> bool:
        """Whether the exact flow describes this network: quadratic neurons under gradient descent."""
        return self.model.activation == "quadratic" and self.settings["optimizer"] == "sgd"

    def reset(self) -> None:
        """Start again from the initial weights."""
        super().reset()
        self._record()
        self.start = self.spectrum
        self.__dict__.pop("blowup", None)

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

    # -- the race ----------------------------------------------------------------------------------------

    @property
    def race(self) -> FourierLottery:
        """Exact flow; its time is the number of steps times the learning rate."""
        return FourierLottery(self.model.tokens)

    @cached_property
    def blowup(self) -> Array:
        """Steps until each frequency diverges in the exact flow, float64 (hidden, ⌊tokens/2⌋).

        They are infinite for a frequency that never diverges.
        """
        return self.race.blowup_times(self.start.theta, self.start.xi) / self.settings["learning_rate"]

    def predicted(self) -> NDArray[np.int64]:
        """Return the frequency of each neuron that diverges first in the exact flow, int64 (hidden,).

        It is 0 for a neuron of which no frequency diverges.
        """
        return self.race.winners(self.start.theta, self.start.xi)

    def flow(self, neuron: int, points: int = 120) -> tuple[Array, Array]:
        """Return the exact flow of one neuron until shortly before a frequency of it diverges.

        If none diverges, the flow covers 1000 steps.

        Parameters
        ----------
        neuron : int
            Number of the neuron, from 0.
        points : int, default 120
            Number n of steps at which the flow is computed.

        Returns
        -------
        ndarray of float64, shape (n,)
            Numbers of steps, which need not be whole.
        ndarray of float64, shape (n, ⌊tokens/2⌋)
            Magnitude |θ| of the input weights at each frequency.
        """
        last = BEFORE * float(self.blowup[neuron].min())
        steps = np.linspace(0.0, last if np.isfinite(last) else 1000.0, points)
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

    def verdict(self, neuron: int) -> str:
        """Return sentences about a neuron, whether it agrees with the exact flow, and about all neurons."""
        spectrum = self.spectrum
        frequency, single = int(spectrum.frequency[neuron]), spectrum.kind == "single"
        has = "has" if single[neuron] else "is strongest at"
        words = [f"Neuron {neuron} {has} frequency {frequency}" if frequency else f"Neuron {neuron} is dead"]
        if self.flows:
            predicted = self.predicted()
            words[0] += f"; the exact flow predicts {predicted[neuron]}"
            share = 100 * (spectrum.frequency == predicted).mean()
            words.append(f"{share:.0f} % of neurons have the frequency that the flow predicts")
        words.append(f"{100 * single.mean():.0f} % have a single frequency")
        apart = np.degrees(np.abs(spectrum.misalignment))
        if np.isfinite(apart).any():  # dead neurons have no phase
            words.append(f"The median misalignment of their phases is {np.nanmedian(apart):.0f}°")
        return ". ".join(words) + "."

    # -- export ---------------------------------------------------------------------------------------

    def python(self, neuron: int = 0) -> str:
        """Return a program that trains this network again, with the input weights as `E`.

        The program also prints loss, accuracy, and the frequency and the purity of a neuron.
        """
        made = f"{constructed('nets', self.model)}, seed={self.seed}, {arguments(**self.settings)}"
        return program("neurons", made=made, step=self.step, neuron=neuron)

    def _record(self) -> None:
        inside, outside = self.weights()
        self.spectrum: NeuronSpectrum = neuron_spectrum(inside, outside)
        loss, accuracy = self.training.losses("train")
        self.history.append(
            self.step,
            inside=inside.astype(np.float32),
            magnitude=self.spectrum.magnitude,
            misalignment=self.spectrum.misalignment,
            frequency=self.spectrum.frequency,
            train_loss=float(loss[0]),
            train_accuracy=float(accuracy[0]),
        )


# -- what is shown -----------------------------------------------------------------------------------------


def phases(magnitude: NDArray[Any], misalignment: NDArray[Any]) -> Array:
    """Return a point (…, hidden, 2) for each neuron: misalignment as angle, relative magnitude as radius.

    Magnitudes have the shape (…, hidden, K), and misalignments (…, hidden).
    """
    size, angle = magnitude.max(axis=-1), np.nan_to_num(misalignment)
    radius = size / np.maximum(size.max(axis=-1, keepdims=True), 1e-300)
    return np.asarray(radius[..., None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1))


def neuron_panels(run: NeuronRun, neuron: int) -> dict[str, Panel]:
    """Return the panels of the race of one neuron, and of the accuracy."""
    steps, magnitude = run.history.steps, run.history["magnitude"][:, neuron]
    exact: list[Curve] = []
    if run.flows:
        clock, flow = run.flow(neuron)
        shown = np.where(flow <= ABOVE * magnitude.max(), flow, np.nan)
        exact = cycle(clock, list(shown.T), "dashed", first=1)
    title = f"Race of the frequencies of neuron {neuron} (dashed: exact flow)"
    curves = [*cycle(steps, list(magnitude.T), first=1), *exact]
    accuracies = series(steps, {"accuracy": run.history["train_accuracy"]}, label=False)
    return {
        "race": Lines(title=title, curves=curves, dots=False),
        "accuracy": Lines(title="Accuracy", curves=accuracies, y_range=(-0.04, 1.04)),
    }


def phase_panel(paths: Array, frame: int, frequency: Any, frequencies: int, chosen: int) -> Panel:
    """Return the panel of the phases of all neurons, in the colors of their frequencies."""
    order = np.asarray(frequency) * paths.shape[1] // (frequencies + 1)
    title = "Phase 2φ − ψ of each neuron (aligned: right)"
    return Tokens(title=title, paths=paths, frame=frame, order=order, chosen=chosen)


def neuron_film(run: NeuronRun, neuron: int) -> Film:
    """Return a film of the phases of all neurons, the race of one, and the accuracy, at the kept frames."""
    history, curves = run.history, neuron_panels(run, neuron)
    steps, magnitude, frequency = history.steps, history["magnitude"], history.last["frequency"]
    paths = phases(magnitude, history["misalignment"])

    def scene(frame: int) -> Scene:
        shown = phase_panel(paths, frame, frequency, magnitude.shape[2], neuron)
        return f"step {steps[frame]}", {"phases": shown, **timed(curves, steps[frame])}

    return film(scene, len(steps), (("phases", "race", "accuracy"),), (12.0, 4.2))
