"""Figures 9, 12 and 13 of He et al.: neurons that start as waves of one frequency, under gradient descent."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.plots.palette import INK
from analysis.plots.style import legend_below, style
from analysis.stats.intervals import Interval
from grokphys.papers.counters.builders import drawn
from grokphys.papers.evidence import by_network, mean, shuffled, where
from grokphys.papers.he.neurons import ALIGNED, misalignment
from grokphys.papers.recipe import Measure, Number, Printed, Result, Run, Statement, Tables, recipe
from nets.models import TwoLayer
from nets.training import train
from physics.neurons.lottery import FourierLottery
from physics.neurons.spectrum import neuron_spectrum


class Descent(NamedTuple):
    """Settings of gradient descent for one activation.

    Attributes
    ----------
    activation : str
        Activation of the neurons, as in `nets.TwoLayer`.
    scale : float
        Magnitude of the initial waves.
    learning_rate : float
        Learning rate.
    steps : int
        Number of steps.
    """

    activation: Any
    scale: float
    learning_rate: float
    steps: int


@dataclass(frozen=True)
class Setting:
    """Setting of Figures 9, 12 and 13.

    Attributes
    ----------
    descents : tuple of Descent
        The trainings; `PUBLISHED` has those of the published code.
    hidden : int
        Number of neurons.
    runs : int
        Number of networks of each training.
    frames : int
        Approximate number of recorded frames after the start.
    """

    descents: tuple[Descent, ...]
    hidden: int
    runs: int
    frames: int


PUBLISHED = (Descent("quadratic", 0.02, 0.1, 10_000), Descent("relu", 0.002, 0.01, 10_000))


def _trained(descent: Descent, setting: Setting, seed: int) -> dict[str, Any]:
    """Train networks whose neurons start with a single frequency, and compare them with the exact flow.

    The arrays (runs, neurons) are the initial frequency, the share of power that stays there, the ratio of
    the third harmonic, both final phases, and the relative deviation of θ from the flow. The deviation is
    that of the last frame before half of the smallest blow-up time. For the first network, θ and ξ at the
    initial frequency have the shape (frames, neurons); θ and ξ are the Fourier coefficients of the input and
    output weights. The steps and times of the frames are returned as well.
    """
    trained = train(
        TwoLayer(
            hidden=setting.hidden,
            activation=descent.activation,
            start="single_frequency",
            scale=descent.scale,
        ),
        runs=setting.runs,
        steps=descent.steps,
        seed=seed,
        optimizer="sgd",
        learning_rate=descent.learning_rate,
        weight_decay=0.0,
        train_fraction=1.0,
        record=descent.steps // setting.frames,
        observables=("layers",),
        device="cpu",
    )
    found = neuron_spectrum(trained.positions[:], trained.observables["layers.output.weight"][:])
    assert found.xi is not None
    theta, xi = (np.asarray(part, np.complex128) for part in (found.theta, found.xi))
    first = np.abs(theta[:, 0]).argmax(axis=-1)
    harmonic = 3 * (first + 1) % 23
    harmonic = np.minimum(harmonic, 23 - harmonic) - 1

    def at(values: Any, index: Any) -> NDArray[Any]:
        return np.asarray(np.take_along_axis(values, index[..., None], axis=-1)[..., 0])

    times = trained.steps * descent.learning_rate
    flow = FourierLottery(23)
    start = at(theta[:, 0], first), at(xi[:, 0], first)
    blowup = flow.blowup_times(theta[:, 0], xi[:, 0]).min()
    half = int(np.searchsorted(times, blowup / 2, side="right") - 1)
    # The flow of a lone frequency is the same for every k of an odd modulus.
    exact = flow.solve(_all(start[0]), _all(start[1]), times[half])[0][..., 0]
    end = theta[:, -1], xi[:, -1]
    power = np.abs(end[0]) ** 2
    neurons = {
        "frequency": first + 1,
        "kept": at(power, first) / power.sum(axis=-1),
        "third": np.abs(at(end[0], harmonic)) / np.abs(at(end[0], first)),
        "input_phase": np.angle(at(end[0], first)),
        "output_phase": np.angle(at(end[1], first)),
        "deviation": np.abs(at(theta[:, half], first) - exact) / np.abs(exact),
    }
    course = at(theta[0], np.broadcast_to(first[0], theta[0].shape[:2]))
    return neurons | {
        "steps": trained.steps,
        "theta": course,
        "xi": at(xi[0], np.broadcast_to(first[0], theta[0].shape[:2])),
        "time": times,
    }


def _all(values: NDArray[Any]) -> NDArray[Any]:
    """Return an array (..., 11) with the coefficients (...) repeated for each of 11 frequencies."""
    return np.repeat(values[..., None], 11, axis=-1)


def _table(parts: Mapping[str, Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    names = ("frequency", "kept", "third", "input_phase", "output_phase", "deviation")
    rows: dict[str, list[NDArray[Any]]] = {}
    for activation, part in parts.items():
        runs, hidden = part["kept"].shape
        label = {
            "activation": np.full(runs * hidden, activation),
            "network": np.repeat(np.arange(runs), hidden),
        }
        for name, values in (label | {name: part[name].ravel() for name in names}).items():
            rows.setdefault(name, []).append(values)
    return {name: np.concatenate(values) for name, values in rows.items()}


# -- rules -------------------------------------------------------------------------------------------------


def _mean(column: str, activation: str) -> Measure:
    """Return a `Measure` of the mean over networks of the median of a column over neurons."""

    def measure(tables: Tables, level: float) -> Interval:
        rows = where(tables["neurons"], activation=activation)
        own = [np.median(one[column]) for one in by_network(rows)]
        return mean(own, level)

    return measure


def _aligned(activation: str) -> Measure:
    def measure(tables: Tables, level: float) -> Interval:
        rows = where(tables["neurons"], activation=activation)
        return mean(misalignment(rows) <= ALIGNED, level, groups=rows["network"])

    return measure


KEPT = "part of the power of the input weights at the frequency of the start, median of the neurons"
ALONE = "each neuron is compared with its own start, which no shuffle of neurons changes"
ANY_POWER = drawn(
    "the power of random weights at one of the 11 frequencies",
    "neurons",
    kept=lambda rows, rng: rng.beta(1, 10, len(rows["kept"])),
)
ANY_PHASE = drawn(
    "a flow of the same magnitude, but of a random phase",
    "neurons",
    deviation=lambda rows, rng: np.abs(2 * np.sin(rng.uniform(0, np.pi, len(rows["kept"])))),
)


@recipe(
    "he-waves",
    paper="He",
    item="Figures 9, 12 and 13",
    shows="Phases and magnitudes of neurons that start as waves, next to the exact flow.",
    quick=Setting(
        (Descent("quadratic", 0.05, 0.2, 400), Descent("relu", 0.01, 0.05, 400)), hidden=44, runs=3, frames=40
    ),
    paper_setting=Setting(PUBLISHED, hidden=512, runs=5, frames=100),
    cost="two minutes",
    rules=(
        Statement(
            "the quadratic keeps its frequency",
            "the Fourier support of each neuron's weights is preserved exactly",
            "Section 4.5, Figure 12 (authors' page)",
            KEPT,
            _mean("kept", "quadratic"),
            chance=ALONE,
            counter=ANY_POWER,
            least=0.99,
        ),
        Statement(
            "ReLU keeps it nearly",
            "the dominant frequency remains overwhelmingly dominant",
            "Section 4.6, Figure 13a (authors' page)",
            KEPT,
            _mean("kept", "relu"),
            chance=ALONE,
            counter=ANY_POWER,
            least=0.9,
        ),
        Number(
            "third harmonic of ReLU over the first, input weights",
            Printed("0.11", "Section 4.6, 1/9 (authors' page)"),
            _mean("third", "relu"),
            margin=0.02,
            digits=3,
            note="a ratio of amplitudes, not of powers",
        ),
        *(
            Statement(
                f"phases align, {activation}",
                "The phase misalignment … converges to zero from any initial condition",
                "Section 4.4, theorem (authors' page)",
                "share of neurons with |2φ - ψ| of at most π/8 at the end; by chance 0.125",
                _aligned(activation),
                chance=shuffled("neurons", "output_phase", within="network"),
                least=0.9,
                note="of trained networks; the theorem is about the exact flow, and excludes D = π",
            )
            for activation in ("quadratic", "relu")
        ),
        Statement(
            "the network follows the exact flow",
            "the full dynamics of the entire network reduce to independent copies of a four-variable ODE",
            "Section 4.2 (authors' page)",
            "|θ of the network minus that of the flow| over the latter, at half of the smallest t*, median",
            _mean("deviation", "quadratic"),
            chance=ALONE,
            counter=ANY_PHASE,
            most=0.05,
            note="of quadratic networks, which are the ones that the flow describes",
        ),
    ),
)
def waves(run: Run) -> Result:
    """Reproduce Figures 9, 12 and 13 of He et al.: phases and magnitudes of a neuron that starts as a wave.

    Networks with quadratic and with ReLU neurons are trained. The figure shows one neuron of each, with the
    exact flow next to the magnitudes of the quadratic one, and the final misalignment of all neurons. The
    table "neurons" has a row for each neuron. The rules judge how far neurons keep their frequency, align
    their phases, and follow the flow.
    """
    setting: Setting = run.setting
    parts = {
        descent.activation: run.keep(descent.activation, partial(_trained, descent, setting, 44_000))
        for descent in setting.descents
    }
    table = _table(parts)
    with style(12.0):
        figure = Figure(figsize=(12.0, 8.0), layout="constrained")
        axes = figure.subplots(len(parts), 3, squeeze=False)
        for row, (activation, part) in zip(axes, parts.items(), strict=True):
            start = np.angle(part["theta"][0] ** 2 * part["xi"][0].conj())
            neuron = int(np.argmin(np.abs(np.abs(start) - 2.0)))  # far from aligned, and not stuck
            theta, xi = part["theta"][:, neuron], part["xi"][:, neuron]
            double, phase = np.unwrap(2 * np.angle(theta)), np.unwrap(np.angle(xi))
            phase += 2 * np.pi * np.round((double[-1] - phase[-1]) / (2 * np.pi))  # next to 2φ at the end
            for values, label in ((double, "2φ"), (phase, "ψ")):
                row[0].plot(part["steps"], values, label=label)
            row[0].set(title=f"{activation}: a neuron", xlabel="step", ylabel="phase in radians")
            row[1].plot(part["steps"], np.abs(theta), label="α")
            row[1].plot(part["steps"], np.abs(xi), label="β")
            if activation == "quadratic":
                flow = FourierLottery(23)
                begin = _all(theta[:1]), _all(xi[:1])
                times = part["time"][part["time"] < 0.97 * flow.blowup_times(*begin).min()]
                for exact, words in zip(flow.solve(*begin, times), ("exact flow", None), strict=True):
                    look: Any = {"color": INK, "linewidth": 0.8, "linestyle": ":", "label": words}
                    row[1].plot(part["steps"][: len(times)], np.abs(exact[:, 0, 0]), **look)
            row[1].set(title="the same neuron", xlabel="step", ylabel="magnitude", yscale="log")
            own = where(table, activation=activation)
            row[2].hist(misalignment(own), bins=np.linspace(0, np.pi, 33))
            row[2].set(title="all neurons at the end", xlabel="|2φ − ψ| in radians", ylabel="neurons")
            for ax in row[:2]:
                legend_below(ax)
    return Result({"neurons": table}, {"he-waves": figure})
