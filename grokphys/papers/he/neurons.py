"""Figures 3 to 7 and the table of activations of He et al.: neurons of networks trained on all pairs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.circles.neurons import diversification
from analysis.plots.palette import FIRST, REFERENCE, SECOND
from analysis.plots.style import legend_below, style
from analysis.stats.intervals import Interval
from grokphys.papers.counters.he import BROKEN_STICK, RANDOM_MAGNITUDES, half_a_circle
from grokphys.papers.evidence import Chance, mean, shuffled, where
from grokphys.papers.recipe import Measure, Number, Printed, Result, Run, Statement, Tables, recipe
from nets.models import TwoLayer
from nets.training import train
from physics.neurons.spectrum import neuron_spectrum
from physics.trajectory import Trajectory

EVEN: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "|x|": np.abs,
    "x²": np.square,
    "x⁴": lambda x: x**4,
    "log(1 + exp 2x)": lambda x: np.logaddexp(0, 2 * x),
    "exp x": np.exp,
}
"""Activations with an even part, which replace ReLU after training; those in `ODD` have none."""
ODD: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {"x": lambda x: x, "x³": lambda x: x**3}
PURE = 0.9
"""Least fraction of its power that a neuron with a single frequency has there."""
SHOWN = 20
"""Number of neurons whose spectra the figure shows."""
ALIGNED = np.pi / 8
"""Largest misalignment, in radians, at which the phases of a neuron are aligned; by chance it is that of one
neuron in eight."""


@dataclass(frozen=True)
class Setting:
    """Setting of Figures 3 to 7.

    Attributes
    ----------
    hidden : int
        Number of neurons.
    steps : int
        Number of steps of training.
    runs : int
        Number of networks.
    learning_rate : float, default 1e-4
        Learning rate of AdamW.
    """

    hidden: int
    steps: int
    runs: int
    learning_rate: float = 1e-4


def trained(setting: Setting, seed: int, **options: Any) -> Trajectory:
    """Train networks as He et al. do in Section 3: on all pairs, with AdamW and without weight decay.

    The positions are the input weights (runs, frames, tokens, hidden). By default the first and the last
    frame are recorded, with the output weights. `options` are further options of `nets.train`; they may
    replace the weight decay, the training fraction, and what is recorded.
    """
    given: dict[str, Any] = {
        "weight_decay": 0.0,
        "train_fraction": 1.0,
        "record": setting.steps,
        "observables": ("layers",),
    }
    return train(
        TwoLayer(hidden=setting.hidden),
        runs=setting.runs,
        steps=setting.steps,
        seed=seed,
        learning_rate=setting.learning_rate,
        betas=(0.9, 0.98),
        device="cpu",
        **(given | options),
    )


def _weights(setting: Setting, seed: int) -> dict[str, Any]:
    """Train networks, and return the weights of both layers at the start and at the end, (runs, 2, ...)."""
    made = trained(setting, seed)
    return {"W_in": made.positions, "W_out": made.observables["layers.output.weight"]}


def tables_of(W_in: NDArray[Any], W_out: NDArray[Any]) -> dict[str, dict[str, NDArray[Any]]]:
    """Analyze the neurons of trained networks, and return three tables.

    Parameters
    ----------
    W_in : ndarray, shape (runs, 2, tokens, hidden)
        Input weights at the start and at the end of training.
    W_out : ndarray, shape (runs, 2, hidden, tokens)
        Output weights at the start and at the end of training.

    Returns
    -------
    dict of str to dict of str to ndarray
        "neurons" has a row for each neuron, with its final frequency, phases and magnitudes. "spectra" has a
        row for each frequency of the first twenty neurons of the first network, with its magnitude in both
        layers. "frequencies" has a row for each network and frequency, with the number of its neurons and the
        asymmetry of their phases. "activations" has the accuracy of each network with each other activation
        in place of ReLU.
    """
    runs, _, p, hidden = W_in.shape
    start, end = (neuron_spectrum(W_in[:, frame], W_out[:, frame]) for frame in (0, -1))
    spread = diversification(end, (2, 4))

    def strongest(spectrum: Any) -> NDArray[Any]:
        power = spectrum.magnitude**2
        return np.asarray(spectrum.at_frequency(power) / power.sum(axis=-1))

    networks = np.repeat(np.arange(runs), hidden)
    neurons = {
        "share": strongest(end),
        "share_at_start": strongest(start),
        "frequency": end.frequency,
        "input_phase": end.at_frequency(end.phase),
        "output_phase": end.at_frequency(end.output_phase),
        "input_magnitude": end.at_frequency(end.magnitude),
        "output_magnitude": end.at_frequency(end.output_magnitude),
    }
    K = spread.counts.shape[-1]
    shown = {"input": end.magnitude[0, :SHOWN], "output": end.output_magnitude[0, :SHOWN]}
    spectra = {
        "neuron": np.repeat(np.arange(1, len(shown["input"]) + 1), K),
        "frequency": np.tile(np.arange(1, K + 1), len(shown["input"])),
        **{f"{layer}_magnitude": values.ravel() for layer, values in shown.items()},
    }
    frequencies = {
        "network": np.repeat(np.arange(runs), K),
        "frequency": np.tile(np.arange(1, K + 1), runs),
        "neurons": spread.counts.ravel(),
        "asymmetry_2": spread.asymmetry[..., 0].ravel(),
        "asymmetry_4": spread.asymmetry[..., 1].ravel(),
    }
    final_in, final_out = (np.asarray(part[:, -1], np.float64) for part in (W_in, W_out))
    a, b = np.indices((p, p)).reshape(2, -1)
    right = []
    for run in range(runs):
        states = final_in[run][a] + final_in[run][b]
        answers = [(function(states) @ final_out[run]).argmax(1) for function in (EVEN | ODD).values()]
        right += [np.mean(answer == (a + b) % p) for answer in answers]
    activations = {
        "network": np.repeat(np.arange(runs), len(EVEN | ODD)),
        "activation": np.tile([*EVEN, *ODD], runs),
        "accuracy": np.array(right),
    }
    return {
        "neurons": {"network": networks, **{name: np.ravel(values) for name, values in neurons.items()}},
        "spectra": spectra,
        "frequencies": frequencies,
        "activations": activations,
    }


# -- rules -------------------------------------------------------------------------------------------------


def _single(tables: Tables, level: float) -> Interval:
    rows = tables["neurons"]
    return mean(np.asarray(rows["share"]) >= PURE, level, groups=rows["network"])


def misalignment(rows: Any) -> NDArray[np.float64]:
    """Return the misalignment |2φ - ψ| of neurons (n,) in radians, from 0 to π.

    `rows` has the columns ``input_phase`` φ and ``output_phase`` ψ, in radians.
    """
    return np.abs(np.angle(np.exp(1j * (2 * np.asarray(rows["input_phase"]) - rows["output_phase"]))))


def _aligned(tables: Tables, level: float) -> Interval:
    rows = tables["neurons"]
    return mean(misalignment(rows) <= ALIGNED, level, groups=rows["network"])


def _balanced(tables: Tables, level: float) -> Interval:
    rows = tables["frequencies"]
    counts = np.asarray(rows["neurons"], float).reshape(len(np.unique(rows["network"])), -1)
    shares = counts / counts.sum(axis=1, keepdims=True)
    entropy = -np.sum(shares * np.log(np.where(shares > 0, shares, 1)), axis=1)
    return mean(np.exp(entropy) / counts.shape[1], level)


def _uneven(tables: Tables, level: float) -> Interval:
    rows = tables["frequencies"]
    both = np.concatenate([rows["asymmetry_2"], rows["asymmetry_4"]])
    return mean(np.nan_to_num(both, nan=1.0), level, groups=np.tile(rows["network"], 2))


def _scatter(tables: Tables, level: float) -> Interval:
    rows = tables["neurons"]
    product = np.asarray(rows["input_magnitude"]) * np.asarray(rows["output_magnitude"]) ** 2
    own = [product[rows["network"] == network] for network in np.unique(rows["network"])]
    return mean([values.std() / values.mean() for values in own], level)


def _accuracy(*names: str) -> Measure:
    """Return a `Measure` of the lowest accuracy, in %, with some activations in place of ReLU.

    The `names` are keys of `EVEN` or `ODD`. The lowest accuracy of each network counts, and the result is the
    mean over networks.
    """

    def measure(tables: Tables, level: float) -> Interval:
        rows = tables["activations"]
        chosen = np.isin(rows["activation"], names)
        accuracy = np.asarray(rows["accuracy"])[chosen].reshape(-1, len(names))
        return mean(100 * accuracy.min(axis=1), level)

    return measure


@partial(Chance, "`share` of each neuron replaced by what it was at the start")
def _as_begun(tables: Tables, generator: np.random.Generator) -> Tables:
    """Return tables with each neuron's share of power before training, as a model of chance."""
    rows = tables["neurons"]
    return {**tables, "neurons": {**rows, "share": rows["share_at_start"]}}


def _draw_neurons(_setting: Setting, tables: Tables) -> dict[str, Figure]:
    """Draw the neurons of the first network, and the accuracy of all with each activation.

    Multiples of the input phase φ are drawn for the most frequent frequency, each at its own radius.
    """
    rows, counts = (where(tables[name], network=0) for name in ("neurons", "frequencies"))
    with style(14.0):
        figure = Figure(figsize=(14.0, 7.2), layout="constrained")
        axes = figure.subplot_mosaic(
            [["input", "phases", "balance", "activations"], ["output", "circles", "sizes", "activations"]]
        )
        for layer, symbol in (("input", "θ"), ("output", "ξ")):
            values = np.reshape(tables["spectra"][f"{layer}_magnitude"], (-1, len(counts["neurons"])))
            number, K = values.shape
            extent = (0.5, K + 0.5, number + 0.5, 0.5)
            image = axes[layer].imshow(values, aspect="auto", cmap="viridis", extent=extent)
            axes[layer].set(title=f"{layer} weights |{symbol}|", xlabel="frequency k", ylabel="neuron")
            axes[layer].set(xticks=range(1, K + 1, 2), yticks=range(1, number + 1, 3))
            figure.colorbar(image, ax=axes[layer], aspect=30, pad=0.03)
        turn, ax = 2 * np.pi, axes["phases"]
        ax.plot(2 * rows["input_phase"] % turn, rows["output_phase"] % turn, ".", markersize=3)
        ax.plot([0, turn], [0, turn], color=REFERENCE, linewidth=1, linestyle=":")
        ax.set(xlabel="2φ (radians)", ylabel="ψ (radians)", title="phase alignment")
        axes["balance"].bar(counts["frequency"], counts["neurons"])
        axes["balance"].set(xlabel="frequency k", ylabel="neurons", title="frequency balance")
        axes["balance"].set_xticks(range(1, K + 1, 2))
        most = int(counts["frequency"][np.argmax(counts["neurons"])])
        group = rows["frequency"] == most
        ax = axes["circles"]
        for order in (1, 2, 3, 4):
            angle = order * rows["input_phase"][group]
            ax.plot(order * np.cos(angle), order * np.sin(angle), ".", markersize=4, label=f"{order}φ")
        ax.set(title=f"multiples of φ, k = {most}", aspect="equal", xticks=[], yticks=[])
        legend_below(ax, columns=2, markerscale=3)
        axes["sizes"].violinplot([rows["input_magnitude"], rows["output_magnitude"]], showmedians=True)
        axes["sizes"].set_xticks([1, 2], ["input α", "output β"])
        axes["sizes"].set(ylabel="magnitude", ylim=(0, None), title="magnitudes")
        _show_activations(tables["activations"], axes["activations"])
    return {"he-neurons": figure}


def _show_activations(rows: Any, ax: Axes) -> None:
    """Draw the accuracy of each network with each activation in place of ReLU, from the top."""
    for place, name in enumerate([*EVEN, *ODD]):
        accuracy = 100 * rows["accuracy"][rows["activation"] == name]
        look: Any = {"color": FIRST if name in EVEN else SECOND, "linewidths": 0, "alpha": 0.6}
        ax.scatter(accuracy, np.full(len(accuracy), place), **look)
    ax.axhline(len(EVEN) - 0.5, color=REFERENCE, linewidth=1, linestyle=":")
    names = [name.replace(" + ", "\n+ ") for name in EVEN | ODD]
    ax.set_yticks(range(len(names)), names)
    ax.set(xlabel="accuracy (%)", xlim=(-5, 105), ylim=(len(names) - 0.5, -0.5))
    ax.set_title("in place of ReLU")


SOURCE = "Section 3.1, Observation {} (authors' page)"


PAPER_NEURONS = Setting(512, 5000, 5)


@recipe(
    "he-neurons",
    paper="He",
    item="Figures 3 to 7 and the table of activations",
    shows=f"Frequencies, phases and magnitudes of the {PAPER_NEURONS.hidden} neurons of the first of "
    f"{PAPER_NEURONS.runs} networks, and the accuracy of all with other activations. The maps show the first "
    f"{SHOWN} neurons. The bars of the magnitudes are at the smallest, the median and the largest.",
    quick=Setting(48, 150, 3, 3e-3),
    paper_setting=PAPER_NEURONS,
    cost="half a minute",
    rules=(
        Statement(
            "a single frequency",
            "every neuron concentrates its energy at a single frequency",
            SOURCE.format(1),
            f"share of neurons that hold at least {PURE:.0%} of their input power in one frequency",
            _single,
            chance=_as_begun,
            least=0.9,
        ),
        Statement(
            "phase alignment",
            "every point falls on the diagonal line y = x",
            SOURCE.format(2),
            "share of neurons with |2φ - ψ| of at most π/8; by chance 0.125",
            _aligned,
            chance=shuffled("neurons", "output_phase", within="network"),
            least=0.9,
            possible=(0.0, 1.0),
        ),
        Statement(
            "frequency balance",
            "Every frequency … is represented by roughly the same number of neurons",
            SOURCE.format(3),
            "effective number of frequencies, by the entropy of the neurons', over all; 1 if equal",
            _balanced,
            chance="neurons that draw frequencies at random are balanced too; the statement asks no more",
            counter=BROKEN_STICK,
            least=0.9,
            possible=(0.0, 1.0),
        ),
        Statement(
            "phase symmetry",
            "Within each frequency group, the input phases are approximately uniformly distributed",
            SOURCE.format(3),
            "|mean of exp(iιφ)| over the neurons of a frequency, ι = 2 and 4: 0 if even, 1 if equal, about "
            "0.13 for 46 random phases",
            _uneven,
            chance="random phases are about as even; the statement asks for no more",
            counter=half_a_circle,
            most=0.2,
        ),
        Statement(
            "equal magnitudes",
            "The products α β² are nearly identical across neurons",
            SOURCE.format(3),
            "standard deviation of α β² over its mean, of the neurons of a network",
            _scatter,
            chance="the spread of one column, which no shuffle changes",
            counter=RANDOM_MAGNITUDES,
            most=0.25,
            note="α and β are the magnitudes of the input and the output weights at the neuron's frequency",
        ),
        Statement(
            "any even part works",
            "Any activation with a nonzero even component works perfectly",
            SOURCE.format(4),
            "smallest accuracy, percent, with an activation that has an even part in place of ReLU",
            _accuracy(*EVEN),
            chance=shuffled("activations", "accuracy", within="network"),
            least=99.0,
            possible=(0.0, 100.0),
        ),
        *(
            Number(
                f"accuracy with {name}",
                Printed(text, SOURCE.format(4)),
                _accuracy(name),
                margin=2.0,
                digits=1,
            )
            for name, text in (("x", "4.1"), ("x³", "3.6"))
        ),
    ),
    draw=_draw_neurons,
)
def neurons(run: Run) -> Result:
    """Reproduce Figures 3 to 7 of He et al.: neurons in Fourier space after training on all pairs.

    The tables, which `tables_of` explains, hold all networks, except for "spectra". The rules judge the
    authors' observations.
    """
    weights = run.keep("weights", lambda: _weights(run.setting, 42_000))
    return Result(tables_of(weights["W_in"], weights["W_out"]))
