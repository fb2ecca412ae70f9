"""A test of the lottery of He et al.: the final frequency of each neuron, and predictions from its start.

At small weights and for the quadratic activation every frequency k of a neuron moves independently, ``dθ/dt =
2c conj(θ) ξ``, ``dξ/dt = c θ²``. Here θ and ξ are the Fourier coefficients of the input and the output
weights at k, and c is a constant. They diverge at a time t* that the start gives in closed form. The winner
should be the frequency with the smallest t*. Two simpler predictions are compared with it: the frequency with
the largest initial magnitude |θ|, and the one with the smallest misalignment |2φ - ψ|, where φ and ψ are the
phases of θ and ξ.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.plots import palette
from analysis.stats.intervals import Interval
from grokphys.papers import charts, counters, measures
from grokphys.papers.evidence import Columns, Measure, Tables, joined, mean, rank_correlation, where
from grokphys.papers.recipe import Result, Run, Setting, Statement, recipe
from nets.models import TwoLayer
from nets.training import train
from physics.neurons.lottery import FourierLottery
from physics.neurons.spectrum import neuron_spectrum

ABSTRACT = "Abstract"
COROLLARY = "Section 4.5, corollary (authors' page)"
READERS = ("time", "magnitude", "phase")
"""Predictors of the final frequency: smallest t*, largest |θ|, smallest |2φ - ψ|."""
ROWS = 64
"""Largest number of neurons of a network that the table of neurons lists; shares are of all neurons."""


class Cell(NamedTuple):
    """Settings of networks and of their training; the default numbers are the paper's.

    Attributes
    ----------
    tokens, hidden, steps : int
        Numbers of tokens p, of neurons, and of steps of training.
    optimizer : {"adamw", "sgd"}
        Optimizer; "sgd" is gradient descent.
    scale : float
        Factor of all initial weights.
    activation, weight_decay, learning_rate, train_fraction
        As in `nets.TwoLayer` and `nets.train`.
    """

    tokens: int = 23
    activation: Any = "quadratic"
    hidden: int = 512
    optimizer: str = "adamw"
    scale: float = 0.1
    weight_decay: float = 0.0
    train_fraction: float = 1.0
    learning_rate: float = 1e-4
    steps: int = 5000

    @property
    def series(self) -> str:
        """Text that names optimizer, activation, modulus and width, by which networks are grouped."""
        return f"{self.optimizer}, {self.activation}, p = {self.tokens}, {self.hidden} neurons"


def _ran(run: Run, seed: int) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]]]:
    """Train the networks of all cells, and return a table of networks and a table of neurons.

    A network has the settings of its cell, its accuracy, and the shares that `_shares` returns. Of each
    network, the first `ROWS` neurons are listed with their final frequency (0 if dead) and the frequencies
    that the `READERS` predict.
    """
    setting = run.setting
    networks, neurons = [], []
    for number, cell in enumerate(setting.cells):
        part = run.keep(
            "-".join(map(str, cell)), partial(_trained, cell, setting.runs, run.seed(seed + cell.tokens))
        )
        own = number * setting.runs + np.arange(setting.runs)
        label = {**cell._asdict(), "series": cell.series}
        networks.append(
            {name: np.full(setting.runs, value) for name, value in label.items()}
            | {"network": own, "accuracy": part["accuracy"], **_shares(part)}
        )
        first = {name: part[name][:, :ROWS] for name in ("chosen", *READERS)}
        first["network"] = np.repeat(own[:, None], first["chosen"].shape[1], axis=1)
        neurons.append({name: values.ravel() for name, values in first.items()})
    return joined(networks), joined(neurons)


def _shares(part: Columns) -> dict[str, NDArray[Any]]:
    """Return, for each network, the share of living neurons that end at the frequency of each predictor.

    `part` is what `_trained` returns. The shares of neurons with a single frequency ("single") and of dead
    neurons ("dead") are returned as well, each with the shape (runs,).
    """
    alive = part["chosen"] > 0
    counts = alive.sum(axis=1)
    found = {name: ((part["chosen"] == part[name]) & alive).sum(axis=1) / counts for name in READERS}
    return found | {"single": part["single"].mean(axis=1), "dead": 1 - alive.mean(axis=1)}


def _trained(cell: Cell, runs: int, seed: int) -> dict[str, Any]:
    """Train `runs` networks of a cell, and analyze their neurons at the start and at the end.

    The arrays (runs, neurons) are the final frequency ("chosen", 0 if the neuron is dead), whether it has at
    least 90 % of the power ("single"), and the frequency that each predictor names. The final training
    accuracy (runs,) is "accuracy".
    """
    trained = train(
        TwoLayer(cell.tokens, cell.hidden, cell.activation, scale=cell.scale), runs=runs, steps=cell.steps,
        seed=seed, optimizer=cell.optimizer, learning_rate=cell.learning_rate, weight_decay=cell.weight_decay,
        train_fraction=cell.train_fraction, betas=(0.9, 0.98), record=cell.steps,
        observables=("train_accuracy", "layers"), device="cpu",
    )  # fmt: skip
    outputs = trained.observables["layers.output.weight"]
    start, end = (neuron_spectrum(trained.positions[:, frame], outputs[:, frame]) for frame in (0, -1))
    assert start.xi is not None
    return {
        "chosen": end.frequency,
        "single": end.kind == "single",
        **foretold(start.theta, start.xi),
        "accuracy": trained.observables["train_accuracy"][:, -1],
    }


def foretold(theta: Any, xi: Any) -> dict[str, NDArray[np.int64]]:
    """Predict the final frequency of neurons from the coefficients θ and ξ (..., neurons, K) of their start.

    There are K frequencies, for 2 K + 1 tokens. Each of the `READERS` names one for each neuron, int64 (...,
    neurons).
    """
    theta, xi = np.asarray(theta, np.complex128), np.asarray(xi, np.complex128)
    misaligned = np.abs(np.angle(theta**2 * xi.conj()))
    times = FourierLottery(2 * theta.shape[-1] + 1).blowup_times(theta, xi)
    losers = {"time": times, "magnitude": -np.abs(theta), "phase": misaligned}
    return {name: 1 + values.argmin(axis=-1) for name, values in losers.items()}


# -- rules -------------------------------------------------------------------------------------------------


def _foretells(reader: str, cell: Cell) -> Measure:
    """Return a measure of the share of living neurons that end at the frequency of a predictor."""
    return measures.mean("networks", reader, **cell._asdict())


def _lead(cell: Cell) -> Measure:
    """Return a `Measure` of how much more often the blow-up time names the winner than the other predictors.

    The share of the better one of magnitude and phase is subtracted.
    """

    def measure(tables: Tables, level: float) -> Interval:
        rows = where(tables["networks"], **cell._asdict())
        other = max(("magnitude", "phase"), key=lambda reader: float(rows[reader].sum()))
        return mean(rows["time"] - rows[other], level)

    return measure


def _flow(scale: float) -> Cell:
    """Return a cell trained by gradient descent, as in the theory, from initial weights of the given scale.

    The number of steps is proportional to 1 / scale, because smaller weights take longer to diverge.
    """
    return Cell(hidden=128, optimizer="sgd", scale=scale, learning_rate=0.5, steps=int(np.ceil(400 / scale)))


def _surer(tables: Tables, level: float, cell: Cell | None = None) -> Interval:
    """Return Kendall's τ of the scale of the start and the share that t* names, by gradient descent.

    The `cell` gives the settings other than the scale and the steps, which are those of `_flow` by default.
    Networks at the same place of each scale start from the same weights, up to the scale, and are one unit.
    """
    fixed = (cell or _flow(0.1))._asdict()
    del fixed["scale"], fixed["steps"]
    rows = where(tables["networks"], **fixed)
    runs = int(np.sum(rows["scale"] == rows["scale"][:1]))  # as many at each scale
    place = np.arange(len(rows["scale"])) % max(runs, 1)
    return rank_correlation(rows["scale"], rows["time"], level, groups=place)


BASE = (
    Cell(),
    Cell(activation="relu"),
    *(Cell(31, activation, 128) for activation in ("quadratic", "relu")),
    *(Cell(59, activation, 64) for activation in ("quadratic", "relu")),
)
"""AdamW at the paper's learning rate; networks for more tokens than the paper's 23 have fewer neurons."""
NARROW = {activation: Cell(activation=activation, hidden=128) for activation in ("quadratic", "relu")}
FLOWS = tuple(_flow(scale) for scale in (0.03, 0.1, 0.3))
VARIED = tuple(
    replaced
    for cell in NARROW.values()
    for replaced in (
        cell,
        *(cell._replace(scale=scale) for scale in (0.01, 0.03, 0.3, 1.0)),
        cell._replace(weight_decay=2.0),
        cell._replace(train_fraction=0.75),
        cell._replace(weight_decay=2.0, train_fraction=0.75),
    )
)
PAPER = Setting(cells=(*BASE, *FLOWS, *VARIED), runs=5)
ENDS_THERE = "share of the neurons that are not dead which end at that frequency"
ALL_COUNT = (
    "corrected after the run: all living neurons of a network count; before, those among its first "
    f"{ROWS} counted"
)


def by_chance(reader: str) -> counters.Chance:
    """Return a model of chance: the neurons of a network exchange the frequencies that `reader` predicts.

    The share of neurons whose final frequency is predicted is then computed again for each network, from the
    neurons that the table lists.
    """
    exchange = counters.shuffled("neurons", reader, within="network")

    def chance(tables: Tables, generator: np.random.Generator) -> Tables:
        mixed = exchange(tables, generator)
        rows, networks = mixed["neurons"], tables["networks"]
        alive = np.asarray(rows["chosen"]) > 0
        hits = alive & (rows["chosen"] == rows[reader])
        own = np.asarray(rows["network"], int)
        found = np.bincount(own, hits) / np.maximum(np.bincount(own, alive), 1)
        return {**mixed, "networks": {**networks, reader: found[np.asarray(networks["network"], int)]}}

    return counters.Chance(f"{exchange.words}, and shares counted again", chance)


BY_CHANCE = {reader: by_chance(reader) for reader in READERS}
DETERMINED = "the “winner” determined by its initial spectral magnitude and phase alignment"
RULES = (
    *(
        Statement(f"t* names the winner: {cell.series}", DETERMINED,
            f"{ENDS_THERE}, the one of smallest t*; by chance {2 / (cell.tokens - 1):.2g}",
            _foretells("time", cell), least=0.9, source=ABSTRACT, chance=BY_CHANCE["time"], note=ALL_COUNT)
        for cell in (_flow(0.1), *BASE)
    ),
    *(
        Statement(f"the best phase wins: {cell.series}",
            "The winning frequency for neuron m is: k* = argmin D(0), where D(0) is the initial phase "
            "misalignment",
            f"{ENDS_THERE}, the one of smallest |2φ - ψ|; by chance 0.091",
            _foretells("phase", cell), least=0.5, source=COROLLARY, chance=BY_CHANCE["phase"], note=ALL_COUNT)
        for cell in (_flow(0.1), *BASE[:2])
    ),
    *(
        Statement(f"neither alone: {cell.series}",
            "The winner is determined at initialization by the combination of initial magnitude and initial "
            "phase misalignment",
            "share of neurons that end at the frequency of smallest t*, minus that for largest magnitude or "
            "for best phase, whichever is larger",
            _lead(cell), least=0.05, source="Section 4.5, caption of Figure 10 (authors' page)",
            chance=BY_CHANCE["time"], note=ALL_COUNT)
        for cell in (_flow(0.1), *BASE[:2])
    ),
    Statement("surer from smaller starts",
        "Under small initialization, the gradient flow decouples across neurons and across frequency "
        "components within each neuron",
        "Kendall's τ of the scale of the start and the share that t* names, gradient descent; by chance 0",
        _surer, most=-0.3, source="Section 2, Q2 (authors' page)",
        chance=counters.shuffled("networks", "time", within="series"),
        note="corrected after the run: networks with the same start, up to its scale, are resampled "
        "together"),
    Statement("it runs on partial data",
        "During this stage, the lottery ticket mechanism runs, but on incomplete data",
        f"{ENDS_THERE}, the one of smallest t*, with 75 % of the pairs and weight decay 2, ReLU, 128 neurons",
        _foretells("time", NARROW["relu"]._replace(weight_decay=2.0, train_fraction=0.75)), least=0.5,
        source="Section 5.2 (authors' page)", chance=BY_CHANCE["time"], note=ALL_COUNT),
)  # fmt: skip


def _draw(setting: Setting, tables: Tables) -> dict[str, Figure]:
    """Draw how often each predictor is right, by cell, and two shares of neurons by initial scale."""
    networks = tables["networks"]
    cells: Sequence[Cell] = setting.cells
    readers = {"time": "smallest t*", "magnitude": "largest |θ|", "phase": "smallest |2φ − ψ|"}
    places = -np.arange(len(cells))
    with charts.page(13.0, 8.6, layout="constrained") as figure:
        axes = figure.subplot_mosaic([["cells", "time"], ["cells", "single"]])
        for n, (reader, words) in enumerate(readers.items()):
            found = [mean(where(networks, **cell._asdict())[reader], 0.95) for cell in cells]
            middle = np.array([one.estimate for one in found])
            bars = np.nan_to_num([middle - [one.low for one in found], [one.high for one in found] - middle])
            axes["cells"].errorbar(
                middle, places + 0.2 * (1 - n), xerr=bars, fmt="os^"[n], markersize=4,
                color=palette.SERIES[n], label=words,
            )  # fmt: skip
        chance = [2 / (cell.tokens - 1) for cell in cells]
        axes["cells"].plot(chance, places, "|", color=palette.REFERENCE, markersize=12, label="chance")
        axes["cells"].set_yticks(places, [_short(cell) for cell in cells])
        axes["cells"].set(xlabel="fraction of neurons that end\nat the predicted frequency", xlim=(0, 1))
        axes["cells"].set_title(f"Where not stated:\nAdamW, initial scale {Cell().scale:g}")
        axes["cells"].margins(y=0.02)
        charts.legend_below(axes["cells"], columns=1)
        for column, words in (
            ("time", "Neurons that end\nwhere t* is smallest"),
            ("single", "Neurons that hold\n90 % in one frequency"),
        ):
            for n, series in enumerate(np.unique(networks["series"])):
                rows = where(networks, series=series, weight_decay=0.0, train_fraction=1.0)
                scales = np.unique(rows["scale"])
                if len(scales) > 1:
                    found = [mean(where(rows, scale=scale)[column], 0.95) for scale in scales]
                    name = _in_words(str(series).partition(", p =")[0]).replace("descent, ", "descent,\n")
                    look: Any = {"color": palette.SERIES[n % len(palette.SERIES)], "marker": "os^Dv"[n % 5]}
                    charts.intervals(axes[column], scales, found, label=name, **look)
            axes[column].set(xlabel="initial scale", ylabel="fraction", title=words, xscale="log")
            axes[column].set_ylim(0, 1.02)
        if axes["single"].has_data():
            charts.legend_below(axes["single"])
    return {"lottery": figure}


@recipe(
    "lottery", item="the lottery: does the blow-up time name the winner?",
    quick=Setting(cells=(Cell(hidden=32, steps=400, learning_rate=1e-3), _flow(0.3)), runs=3),
    paper_setting=PAPER, draw=_draw,
    shows=f"How often a neuron ends at the frequency whose exact flow diverges first, in {PAPER.runs} "
    "networks of each kind.",
    cost="four minutes",
    rules=RULES,
)  # fmt: skip
def lottery(run: Run) -> Result:
    """Measure how often each predictor names the final frequency of a neuron (He et al., Section 4.5).

    The table "networks" has the shares of each network, and "neurons" lists some neurons of each. The rules
    judge how often the smallest blow-up time t* and the smallest misalignment name that frequency.
    """
    networks, neurons = _ran(run, 41_000)
    return Result({"networks": networks, "neurons": neurons})


def _in_words(name: str) -> str:
    """Return the name of an optimizer or of an activation as it is written in text."""
    return name.replace("sgd", "gradient descent").replace("adamw", "AdamW").replace("relu", "ReLU")


def _short(cell: Cell) -> str:
    """Return the label of a cell on an axis, without the usual scale, decay, fraction and optimizer."""
    plain, words = Cell(), [f"p = {cell.tokens}, {_in_words(cell.activation)}", f"{cell.hidden} neurons"]
    words += [f"scale {cell.scale:g}"] if cell.scale != plain.scale else []
    words += [f"decay {cell.weight_decay:g}"] if cell.weight_decay else []
    words += [f"{100 * cell.train_fraction:.0f} % of pairs"] if cell.train_fraction < 1 else []
    return ", ".join([*words, *([_in_words(cell.optimizer)] if cell.optimizer == "sgd" else [])])
