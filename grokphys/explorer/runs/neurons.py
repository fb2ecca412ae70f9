"""The neurons of the two-layer network of He et al. in training, and the exact race of their frequencies."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

import nets
from grokphys.explorer.runs.common import (
    History,
    arguments,
    constructed,
    program,
    require_bounded,
    smaller_rate,
)
from physics.neurons.lottery import FourierLottery
from physics.neurons.spectrum import NeuronSpectrum, neuron_spectrum
from physics.trajectory import Trajectory
from physics.trajectory.provenance import fields

Array = NDArray[np.float64]
FRAMES = 400
"""Largest number of frames, with the weights of all neurons, that are kept."""
BEFORE = 0.98
"""Fraction of the time to the first divergence for which `NeuronRun.flow` computes the exact flow."""


class NeuronRun:
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

    def __init__(self, model: nets.TwoLayer, seed: int, learning_rate: float, optimizer: str) -> None:
        self.model = model
        self.settings: dict[str, Any] = {
            "learning_rate": learning_rate,
            "weight_decay": 0.0,
            "optimizer": optimizer,
            "train_fraction": 1.0,
        }
        self.seed = seed
        self.history = History(FRAMES)
        self.reset()

    @property
    def step(self) -> int:
        """Number of optimizer steps taken."""
        return self.training.step

    @property
    def flows(self) -> bool:
        """Whether the exact flow describes this network: quadratic neurons under gradient descent."""
        return self.model.activation == "quadratic" and self.settings["optimizer"] == "sgd"

    def reset(self) -> None:
        """Start again from the initial weights."""
        self.training = nets.Training(self.model, seed=self.seed, **self.settings)
        self.history.clear()
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
        self.training.advance(steps)
        require_bounded(
            self.training.embeddings, self.history.frame(0)["inside"][None], self.step, smaller_rate
        )
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
        tokens = self.model.tokens
        pairs = np.add.outer(np.arange(tokens), np.arange(tokens)) % tokens
        sums = torch.as_tensor(inside[:, None, :count] + inside[None, :, :count])
        act = self.model.architecture.activate(sums).numpy()
        by_sum = np.zeros((tokens, count))
        np.add.at(by_sum, pairs.ravel(), act.reshape(-1, count))
        logits = by_sum @ outside[:count] / tokens
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

    def trajectory(self) -> Trajectory:
        """Return the kept frames of the input weights, with loss, accuracy and all settings of the run."""
        history = self.history
        return Trajectory(
            history["inside"][None],
            history.steps,
            observables={name: history[name][None] for name in ("train_loss", "train_accuracy")},
            parameters={
                "program": "grokphys explore",
                "model": {"type": type(self.model).__name__, **fields(self.model)},
                "seed": self.seed,
                **self.settings,
                "python": self.python(),
            },
        )

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
