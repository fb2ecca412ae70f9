"""Figures 3 to 7 and the table of activations of He et al.: neurons of networks trained on all pairs.

Figures 14 and 15 of He et al.: the three stages of grokking, with weight decay and 3/4 of the pairs.

Figures 9, 12 and 13 of He et al.: neurons that start as waves of one frequency, under gradient descent.

A test of the lottery of He et al.: the final frequency of each neuron, and predictions from its start.

At small weights and for the quadratic activation every frequency k of a neuron moves independently, ``dθ/dt =
2c conj(θ) ξ``, ``dξ/dt = c θ²``. Here θ and ξ are the Fourier coefficients of the input and the output
weights at k, and c is a constant. They diverge at a time t* that the start gives in closed form. The winner
should be the frequency with the smallest t*. Two simpler predictions are compared with it: the frequency with
the largest initial magnitude |θ|, and the one with the smallest misalignment |2φ - ψ|, where φ and ψ are the
phases of θ and ξ.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau

from analysis.circles import diversification
from analysis.plots import palette
from grokphys.papers import charts, counters, evidence, measures
from grokphys.papers.evidence import Columns, Measure, Tables, by_network, joined, table_of, where
from grokphys.papers.recipe import Number, Result, Run, Setting, Statement, recipe
from nets import TwoLayer, train
from physics import FourierLottery, Trajectory
from physics.neurons.spectrum import neuron_spectrum

LAYERS = {"input": "θ", "output": "ξ"}


RANDOM_MAGNITUDES = counters.drawn(
    "the magnitudes of random weights, α and β from a Rayleigh distribution", "neurons",
    **{f"{layer}_magnitude": lambda rows, rng: rng.rayleigh(size=len(rows["share"])) for layer in LAYERS},
)  # fmt: skip


# -- neurons -----------------------------------------------------------------------------------------------

EVEN: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "|x|": np.abs, "x²": np.square, "x⁴": lambda x: x**4, "log(1 + exp 2x)": lambda x: np.logaddexp(0, 2 * x),
    "exp x": np.exp,
}  # fmt: skip
"""Activations with an even part, which replace ReLU after training; those in `ODD` have none."""
ODD: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {"x": lambda x: x, "x³": lambda x: x**3}
SHOWN = 20
"""Number of neurons whose spectra the figure shows."""
ALIGNED = np.pi / 8
"""Largest misalignment, in radians, at which the phases of a neuron are aligned; by chance it is that of one
neuron in eight."""


def trained_neurons(setting: Setting, seed: int, tokens: int = 23, **options: Any) -> Trajectory:
    """Train networks as He et al. do in Section 3: on all pairs of tokens, by AdamW without weight decay.

    The positions are the input weights (runs, frames, tokens, hidden). By default the first and the last
    frame are recorded, with the output weights. `options` are further options of `nets.train`; they may
    replace the weight decay, the training fraction, and what is recorded.
    """
    given: dict[str, Any] = {"weight_decay": 0.0, "train_fraction": 1.0}
    given |= {"record": setting.steps, "observables": ("layers",)}
    return train(
        TwoLayer(tokens, setting.hidden), runs=setting.runs, steps=setting.steps, seed=seed,
        learning_rate=setting.learning_rate, betas=(0.9, 0.98), device="cpu", **given | options,
    )  # fmt: skip


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
        layers. "frequencies" has a row for each network and frequency, with the number of its neurons.
        "activations" has the accuracy of each network with each other activation in place of ReLU.
    """
    runs, _, p, hidden = W_in.shape
    start, end = (neuron_spectrum(W_in[:, frame], W_out[:, frame]) for frame in (0, -1))
    counts = diversification(end).counts

    def strongest(spectrum: Any) -> NDArray[Any]:
        power = spectrum.magnitude**2
        return np.asarray(spectrum.at_frequency(power) / power.sum(axis=-1))

    neurons = table_of(
        {"network": range(runs), "_": range(hidden)}, share=strongest(end),
        share_at_start=strongest(start), frequency=end.frequency, input_phase=end.at_frequency(end.phase),
        output_phase=end.at_frequency(end.output_phase), input_magnitude=end.at_frequency(end.magnitude),
        output_magnitude=end.at_frequency(end.output_magnitude),
    )  # fmt: skip
    every, shown = range(1, counts.shape[-1] + 1), min(SHOWN, hidden)
    spectra = table_of(
        {"neuron": range(1, shown + 1), "frequency": every}, input_magnitude=end.magnitude[0, :shown],
        output_magnitude=end.output_magnitude[0, :shown],
    )  # fmt: skip
    a, b = np.indices((p, p)).reshape(2, -1)
    right = []
    for into, out in zip(*(np.asarray(part[:, -1], np.float64) for part in (W_in, W_out)), strict=True):
        answers = [(function(into[a] + into[b]) @ out).argmax(1) for function in (EVEN | ODD).values()]
        right.append([np.mean(answer == (a + b) % p) for answer in answers])
    return {
        "neurons": neurons, "spectra": spectra,
        "frequencies": table_of({"network": range(runs), "frequency": every}, neurons=counts),
        "activations": table_of({"network": range(runs), "activation": [*EVEN, *ODD]}, accuracy=right),
    }  # fmt: skip


# -- rules -------------------------------------------------------------------------------------------------


def misalignment(rows: Any) -> NDArray[np.float64]:
    """Return the misalignment |2φ - ψ| of neurons (n,) in radians, from 0 to π.

    `rows` has the columns ``input_phase`` φ and ``output_phase`` ψ, in radians.
    """
    return np.abs(np.angle(np.exp(1j * (2 * np.asarray(rows["input_phase"]) - rows["output_phase"]))))


def _accuracy(*names: str) -> Measure:
    """Return a measure of the lowest accuracy of a network, in %, with some activations in place of ReLU."""
    return measures.of_networks(
        "activations", lambda own: 100 * own["accuracy"].min(), among=f"np.isin(activation, {names})"
    )


def _scatter(own: Any) -> Any:
    product = own["input_magnitude"] * own["output_magnitude"] ** 2
    return product.std() / product.mean()


def _draw_neurons(_setting: Setting, tables: Tables, top: Any, bottom: Any) -> None:
    """Draw the neurons of the first network, and the accuracy of all with each activation.

    Multiples of the input phase φ are drawn for the most frequent frequency, each at its own radius.
    """
    rows, counts = (where(tables[name], network=0) for name in ("neurons", "frequencies"))
    K = len(counts["neurons"])
    for ax, (layer, symbol) in zip((top[0], bottom[0]), LAYERS.items(), strict=True):
        values = np.reshape(tables["spectra"][f"{layer}_magnitude"], (-1, K))
        extent = (0.5, K + 0.5, len(values) + 0.5, 0.5)
        image = ax.imshow(values, aspect="auto", cmap="viridis", extent=extent)
        ax.set(xticks=range(1, K + 1, 2), yticks=range(1, len(values) + 1, 3))
        charts.label(ax, "frequency k", "neuron", f"{layer} weights |{symbol}|")
        ax.figure.colorbar(image, ax=ax, aspect=30, pad=0.03)
    turn = 2 * np.pi
    top[1].plot(2 * rows["input_phase"] % turn, rows["output_phase"] % turn, ".", markersize=3)
    top[1].plot([0, turn], [0, turn], color=palette.REFERENCE, linewidth=1, linestyle=":")
    charts.label(top[1], "2φ (radians)", "ψ (radians)", "phase alignment")
    top[2].bar(counts["frequency"], counts["neurons"])
    charts.label(top[2], "frequency k", "neurons", "frequency balance", xticks=range(1, K + 1, 2))
    most = int(counts["frequency"][np.argmax(counts["neurons"])])
    for order in (1, 2, 3, 4):
        angle = order * where(rows, frequency=most)["input_phase"]
        bottom[1].plot(order * np.cos(angle), order * np.sin(angle), ".", markersize=4, label=f"{order}φ")
    bottom[1].set(aspect="equal", xticks=[], yticks=[])
    charts.label(bottom[1], title=f"multiples of φ, k = {most}", legend={"columns": 2, "markerscale": 3})
    bottom[2].violinplot([rows["input_magnitude"], rows["output_magnitude"]], showmedians=True)
    bottom[2].set_xticks([1, 2], ["input α", "output β"])
    charts.label(bottom[2], y="magnitude", title="magnitudes", ylim=(0, None))
    for place, name in enumerate(EVEN | ODD):
        accuracy = 100 * where(tables["activations"], activation=name)["accuracy"]
        color = palette.FIRST if name in EVEN else palette.SECOND
        top[3].scatter(accuracy, np.full(len(accuracy), place), color=color, linewidths=0, alpha=0.6)
    top[3].set_yticks(range(len(EVEN | ODD)), [name.replace(" + ", "\n+ ") for name in EVEN | ODD])
    charts.label(top[3], "accuracy (%)", title="in place of ReLU", xlim=(-5, 105))
    top[3].invert_yaxis()
    bottom[3].set_axis_off()


SOURCE = "Section 3.1, Observation {} (authors' page)"


@recipe(
    "he-neurons", item="Figures 3 to 7 and the table of activations",
    quick=Setting(hidden=48, steps=150, runs=3, learning_rate=3e-3),
    paper_setting=Setting(hidden=512, steps=5000, runs=40, learning_rate=1e-4),
    draw=_draw_neurons, panels=(14.0, 7.2, 2, 4), source=SOURCE.format(3),
    cost="two minutes", looks=2,
    rules=(
        Statement("phase alignment", "every point falls on the diagonal line y = x",
            "share of neurons with |2φ - ψ| of at most π/8; by chance 0.125",
            measures.mean("neurons", lambda rows: misalignment(rows) <= ALIGNED, by="network"), least=0.9,
            possible=(0.0, 1.0), source=SOURCE.format(2),
            chance=counters.shuffled("neurons", "output_phase", within="network")),
        Statement("equal magnitudes", "The products α β² are nearly identical across neurons",
            "standard deviation of α β² over its mean, of the neurons of a network",
            measures.of_networks("neurons", _scatter), most=0.25, chance=RANDOM_MAGNITUDES,
            note="α and β are the magnitudes of the input and the output weights at the neuron's frequency; "
            "the authors' saved network has 0.253"),
        Statement("any even part works", "Any activation with a nonzero even component works perfectly",
            "smallest accuracy, percent, with an activation that has an even part in place of ReLU",
            _accuracy(*EVEN), least=99.0, possible=(0.0, 100.0), source=SOURCE.format(4),
            chance=counters.shuffled("activations", "accuracy", within="network")),
    ),
    withdrawn={
        **dict.fromkeys(
            ("frequency balance", "phase symmetry"), "frequencies and phases drawn at random pass as well"
        ),
        **dict.fromkeys(
            ("accuracy with x", "accuracy with x³"),
            "after a verdict of *disagrees*: the paper's 4.1 and 3.6 % are of one network, from which a mean "
            "of many must differ; ours have 3.4 to 5.5 and 3.4 to 5.7 %, and chance, 1/23, is 4.3 %",
        ),
        "a single frequency": "after a verdict of *disagrees*: 19 % of our neurons have 90 % of their power "
        "in one frequency, and 20 % of those of the network in the authors' figures; the rule asks for 90 %",
    },
)  # fmt: skip
def neurons(run: Run) -> Result:
    """Frequencies, phases and magnitudes of the 512 neurons of the first of 40 networks.

    At the top right is the accuracy of all networks with other activations. The maps show the first 20
    neurons. The bars of the magnitudes are at the smallest, the median and the largest.

    Notes
    -----
    All tables are those of `tables_of`, with rows for all networks except for "spectra". The rules judge the
    authors' observations.
    """

    def weights() -> dict[str, Any]:
        trained = trained_neurons(run.setting, run.seed(42_000))
        return {"W_in": trained.positions, "W_out": trained.observables["layers.output.weight"]}

    return Result(tables_of(**run.keep("weights", weights)))


# -- grokking in stages ------------------------------------------------------------------------------------

FITTED, GENERALISED = 0.999, 0.95
"""Accuracies at which Stage I ends (on the training pairs), and Stage II (on the test pairs: “~95 %”)."""


def _course(setting: Setting, seed: int) -> dict[str, Any]:
    """Train networks with weight decay 2 on three quarters of the pairs, and measure them in each frame.

    The arrays (runs, frames) are the step, losses, accuracies, the norm of the weights, and means over living
    neurons of the purity and of |sin D|, where D is the misalignment. The last, "unseen_accuracy", is the
    accuracy on pairs (a, b) for which neither (a, b) nor (b, a) is in the training set.
    """
    names = ("train_loss", "train_accuracy", "validation_loss", "validation_accuracy")
    trained = trained_neurons(
        setting, seed, weight_decay=2.0, train_fraction=0.75, record=setting.every,
        observables=(*names, "layers"),
    )  # fmt: skip
    W_in, W_out = trained.positions, trained.observables["layers.output.weight"]
    model = TwoLayer(hidden=setting.hidden)
    p, pairs = model.tokens, model.task.inputs
    mirrored = pairs[:, 1] * p + pairs[:, 0]
    spectrum = neuron_spectrum(W_in[:], W_out[:])
    squares = (W_in[:] ** 2).sum((2, 3)) + (W_out[:] ** 2).sum((2, 3))
    answered = []
    for run, (train_set, tested) in enumerate(
        zip(trained.start["train_examples"], trained.start["validation_examples"], strict=True)
    ):
        a, b = pairs[tested[~np.isin(mirrored[tested], train_set)]].T
        for into, out in zip(W_in[run], W_out[run], strict=True):
            logits = np.maximum(into[a] + into[b], 0) @ out
            answered.append(np.mean(logits.argmax(axis=1) == (a + b) % p))
    return {
        "step": np.broadcast_to(trained.steps, squares.shape),
        **{name: trained.observables[name] for name in names},
        "purity": np.nanmean(spectrum.purity, axis=-1),
        "misaligned": np.nanmean(np.abs(np.sin(spectrum.misalignment)), axis=-1),
        "norm": np.sqrt(squares),
        "unseen_accuracy": np.reshape(answered, squares.shape),
    }


def stages(rows: Any) -> dict[str, NDArray[Any]]:
    """Return a table with a row for each network, which describes the ends of the stages of its training.

    Stage I ends when the training accuracy reaches `FITTED`, Stage II when the validation accuracy then
    reaches `GENERALISED`, and Stage III with the last frame. Each has the step and accuracies at its
    end, in columns such as ``step_II``; they are NaN for a stage that does not end. `rows` has a row
    for each network and frame.
    """
    table = []
    for course in by_network(rows):
        fitted = np.flatnonzero(course["train_accuracy"] >= FITTED)
        general = np.flatnonzero(course["validation_accuracy"] >= GENERALISED)
        general = general[general >= fitted[0]] if len(fitted) else general[:0]
        table.append({"network": float(course["network"][0])})
        for stage, at in (("I", fitted[:1]), ("II", general[:1]), ("III", [-1])):
            for name in ("step", "validation_accuracy", "unseen_accuracy"):
                table[-1][f"{name}_{stage}"] = float(course[name][at][0]) if len(at) else np.nan
    return evidence.columns_of(table)


# -- rules -------------------------------------------------------------------------------------------------


BY_NETWORK = (
    "corrected after the run: τ of each network, and its mean; before, the frames of all networks were one "
    "sample, which gave {}"
)


KNOWN, TESTED, UNSEEN = "training pairs", "test pairs", "test pairs never seen in either order"
MISALIGNED = "misalignment D = 2φ − ψ of the phases φ\nof input and ψ of output weights"
PANELS: dict[str, dict[str, str]] = {
    "loss": {"train_loss": KNOWN, "validation_loss": TESTED},
    "accuracy": {"train_accuracy": KNOWN, "validation_accuracy": TESTED, "unseen_accuracy": UNSEEN},
    "mean |sin D| of the neurons": {"misaligned": MISALIGNED},
    "inverse participation ratio": {"purity": "inverse participation ratio (left)"},
}
"""For each panel the label of its y-axis, and words for each column of the table of frames that it shows."""


def _draw(setting: Setting, tables: Tables, *rows: Any) -> None:
    """Draw the course and the stages of the first network that ends Stage II, or else of the first one."""
    table, axes = tables["stages"], np.ravel(rows)
    ended = np.isfinite(table["step_II"])
    shown = int(ended.argmax())
    course = {name: x[1:] for name, x in where(tables["frames"], network=table["network"][shown]).items()}
    which = f"first of the {ended.sum()} that reach" if ended.any() else "none reaches"
    axes[0].figure.suptitle(f"Network {shown + 1} of {len(ended)} ({which} the end of Stage II)")
    norm = axes[3].twinx()
    norm.plot(course["step"], course["norm"], color=palette.SECOND)
    norm.set_ylabel("norm of the weights")
    axes[3].plot([], [], color=palette.SECOND, label="norm of the weights (right)")
    for ax, (quantity, names) in zip(axes, PANELS.items(), strict=True):
        for n, (name, words) in enumerate(names.items()):
            ax.plot(course["step"], course[name], color=palette.SERIES[n], label=words)
        for stage, line in (("I", "--"), ("II", ":")):
            look: Any = {"color": palette.REFERENCE, "linewidth": 1, "linestyle": line}
            ax.axvline(table[f"step_{stage}"][shown], label=f"end of Stage {stage}", **look)
        scale = "log" if quantity == "loss" else "linear"
        charts.label(ax, "step", quantity, xscale="log", yscale=scale)


@recipe(
    "he-grokking", item="Figures 14 and 15",
    quick=Setting(hidden=48, steps=900, runs=3, learning_rate=3e-3, every=100),
    paper_setting=Setting(hidden=512, steps=50_000, runs=20, learning_rate=1e-4, every=200),
    draw=_draw, panels=(9.6, 8.4, 2, 2), source="Section 5.4 (authors' page)", cost="ten minutes", looks=2,
    rules=(
        Number("test accuracy when all is memorized", "70",
            measures.mean("stages", "100 * validation_accuracy_I"), margin=5.0, digits=0,
            source="Section 5.2 (authors' page)"),
        Statement("pairs that were never seen are wrong",
            "truly held-out test pairs where neither (x, y) nor (y, x) is in the training set — completely "
            "wrong",
            "accuracy at the end of Stage I on pairs of which neither order trains",
            measures.mean("stages", "unseen_accuracy_I"), most=0.1, possible=(0.0, 1.0),
            source="Section 5.2, Figure 15 (authors' page)",
            chance=counters.replaced("stages", unseen_accuracy_I="validation_accuracy_I")),
        Statement("and right in the end",
            "After Stages II and III, those same pairs are now predicted correctly",
            "accuracy at the end on pairs of which neither order trains",
            measures.mean("stages", "unseen_accuracy_III"), least=0.95, possible=(0.0, 1.0),
            chance=counters.replaced("stages", unseen_accuracy_III="unseen_accuracy_I"),
            note="0.86 and 0.92 in two networks of the authors; pairs (a, a) alone stay wrong there"),
        Statement("phases align all the while", "The average |sin D| decreases throughout",
            "Kendall's τ of the step and the mean |sin D|; by chance 0",
            measures.of_networks("frames", lambda own: kendalltau(own["step"], own["misaligned"]).statistic),
            most=-0.5, possible=(-1.0, 1.0), source="Section 5.1, Figure 14 (c) (authors' page)",
            chance=counters.shuffled("frames", "misaligned", within="network"),
            note=BY_NETWORK.format("-0.66")),
        Statement("sparser all the while", "The average IPR increases throughout training",
            "Kendall's τ of the step and the mean inverse participation ratio; by chance 0",
            measures.of_networks("frames", lambda own: kendalltau(own["step"], own["purity"]).statistic),
            least=0.5, possible=(-1.0, 1.0), source="Section 5.1, Figure 14 (d) (authors' page)",
            chance=counters.shuffled("frames", "purity", within="network"), note=BY_NETWORK.format("0.79")),
    ),
    withdrawn={
        "the norm shrinks in Stage III": "any course that is not largest at its end passes",
        **dict.fromkeys(
            ("generalization is late", "sparser in Stage II", "the norm grows in Stage II"),
            "a mean over networks is undefined once one never ends Stage II: four of twenty never do",
        ),
    },
)  # fmt: skip
def grokking(run: Run) -> Result:
    """Losses, accuracies and phases of one network with weight decay, by training stage.

    Stage I ends when all training pairs are right, and Stage II at 95 % of the test pairs, which not all of
    the 20 networks reach.

    Notes
    -----
    The table "frames" has a row for each network and recorded frame, and "stages" one for each network. The
    rules judge accuracies at the ends of the stages, and trends over the whole training.
    """
    setting = run.setting
    course = run.keep("course", lambda: _course(setting, run.seed(43_000)))
    numbers = np.repeat(np.arange(setting.runs), course["step"].shape[1])
    frames = {"network": numbers, **{name: values.ravel() for name, values in course.items()}}
    return Result({"stages": stages(frames), "frames": frames})


# -- waves -------------------------------------------------------------------------------------------------


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


PUBLISHED = (Descent("quadratic", 0.02, 0.1, 10_000), Descent("relu", 0.002, 0.01, 10_000))


def _trained(descent: Descent, setting: Setting, seed: int) -> dict[str, Any]:
    """Train networks whose neurons start with a single frequency.

    The arrays (runs, neurons) are the initial frequency, the share of power that stays there, the ratio of
    the third harmonic, and both final phases. For the first network, θ and ξ at the
    initial frequency have the shape (frames, neurons); θ and ξ are the Fourier coefficients of the input and
    output weights. The steps and times of the frames are returned as well.
    """
    trained = train(
        TwoLayer(
            hidden=setting.hidden, activation=descent.activation, start="single_frequency",
            scale=descent.scale,
        ),
        runs=setting.runs, steps=descent.steps, seed=seed, optimizer="sgd",
        learning_rate=descent.learning_rate, weight_decay=0.0, train_fraction=1.0,
        record=descent.steps // setting.frames, observables=("layers",), device="cpu",
    )  # fmt: skip
    found = neuron_spectrum(trained.positions[:], trained.observables["layers.output.weight"][:])
    theta, xi = (np.asarray(part, np.complex128) for part in (found.theta, found.xi))
    first = np.abs(theta[:, 0]).argmax(axis=-1)
    harmonic = 3 * (first + 1) % 23
    harmonic = np.minimum(harmonic, 23 - harmonic) - 1

    def at(values: Any, index: Any) -> NDArray[Any]:
        return np.asarray(np.take_along_axis(values, index[..., None], axis=-1)[..., 0])

    end, along = theta[:, -1], np.broadcast_to(first[0], theta[0].shape[:2])
    return {
        "frequency": first + 1, "kept": np.abs(at(end, first)) ** 2 / (np.abs(end) ** 2).sum(axis=-1),
        "third": np.abs(at(end, harmonic) / at(end, first)), "input_phase": np.angle(at(end, first)),
        "output_phase": np.angle(at(xi[:, -1], first)), "theta": at(theta[0], along), "xi": at(xi[0], along),
        "steps": trained.steps, "time": trained.steps * descent.learning_rate,
    }  # fmt: skip


def _table(parts: Mapping[str, Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    names = ("frequency", "kept", "third", "input_phase", "output_phase")
    rows = []
    for activation, part in parts.items():
        runs, neurons = part["kept"].shape
        index = {"activation": [activation], "network": range(runs), "_": range(neurons)}
        rows.append(table_of(index, **{name: part[name] for name in names}))
    return joined(rows)


# -- rules -------------------------------------------------------------------------------------------------


ANY_POWER = counters.drawn(
    "the power of random weights at one of the 11 frequencies", "neurons",
    kept=lambda rows, rng: rng.beta(1, 10, len(rows["kept"])),
)  # fmt: skip


@recipe(
    "he-waves", item="Figures 9, 12 and 13",
    quick=Setting(
        descents=(Descent("quadratic", 0.05, 0.2, 400), Descent("relu", 0.01, 0.05, 400)), hidden=44, runs=3,
        frames=40,
    ),
    paper_setting=Setting(descents=PUBLISHED, hidden=512, runs=5, frames=100),
    source="Section 4.5, Figure 12 (authors' page)", cost="two minutes",
    rules=(
        Statement("ReLU keeps it nearly", "the dominant frequency remains overwhelmingly dominant",
            "part of the power of the input weights at the frequency of the start, median of the neurons",
            measures.of_networks("neurons", lambda own: np.median(own["kept"]), activation="relu"), least=0.9,
            source="Section 4.6, Figure 13a (authors' page)", chance=ANY_POWER),
        Number("third harmonic of ReLU over the first, input weights", "0.11",
            measures.of_networks("neurons", lambda own: np.median(own["third"]), activation="relu"),
            margin=0.02, digits=3, source="Section 4.6, 1/9 (authors' page)",
            note="a ratio of amplitudes, not of powers; 0.237 in the authors' saved network, too"),
        *(
            Statement(f"phases align, {activation}",
                "The phase misalignment … converges to zero from any initial condition",
                "share of neurons with |2φ - ψ| of at most π/8 at the end; by chance 0.125",
                measures.mean(
                    "neurons", lambda rows: misalignment(rows) <= ALIGNED, by="network",
                    activation=activation,
                ),
                least=0.9, source="Section 4.4, theorem (authors' page)",
                chance=counters.shuffled("neurons", "output_phase", within="network"),
                note="of trained networks; the theorem is about the exact flow, and excludes D = π; "
                f"{saved} in the authors' saved network")
            for activation, saved in (("quadratic", 0.8), ("relu", 0.98))
        ),
    ),
    withdrawn=dict.fromkeys(
        ("the quadratic keeps its frequency", "the network follows the exact flow"), "a theorem, and a test"
    ),
)  # fmt: skip
def waves(run: Run) -> Result:
    """Phases and magnitudes of neurons that start as waves, next to the exact flow.

    Notes
    -----
    Networks with quadratic and with ReLU neurons are trained. The figure shows one neuron of each, with the
    exact flow next to the magnitudes of the quadratic one, and the final misalignment of all neurons. The
    table "neurons" has a row for each neuron. The rules judge how far neurons keep their frequency and align
    their phases.
    """
    setting = run.setting
    seed, descents = run.seed(44_000), {descent.activation: descent for descent in setting.descents}
    parts = {name: run.keep(name, partial(_trained, own, setting, seed)) for name, own in descents.items()}
    table = _table(parts)
    with charts.page(12.0, 8.0, layout="constrained") as figure:
        axes = figure.subplots(len(parts), 3, squeeze=False)
        for row, (activation, part) in zip(axes, parts.items(), strict=True):
            start = np.angle(part["theta"][0] ** 2 * part["xi"][0].conj())
            neuron = int(np.argmin(np.abs(np.abs(start) - 2.0)))  # far from aligned, and not stuck
            theta, xi = part["theta"][:, neuron], part["xi"][:, neuron]
            double, phase = np.unwrap(2 * np.angle(theta)), np.unwrap(np.angle(xi))
            phase += 2 * np.pi * np.round((double[-1] - phase[-1]) / (2 * np.pi))  # next to 2φ at the end
            curves = {"2φ": double, "ψ": phase, "α": np.abs(theta), "β": np.abs(xi)}
            for ax, (label, values) in zip(np.repeat(row[:2], 2), curves.items(), strict=True):
                ax.plot(part["steps"], values, label=label)
            if activation == "quadratic":
                flow = FourierLottery(23)
                a, b = (np.repeat(values[:1, None], 11, axis=1) for values in (theta, xi))
                times = part["time"][part["time"] < 0.97 * flow.blowup_times(a, b).min()]
                for exact, words in zip(flow.solve(a, b, times), ("exact flow", None), strict=True):
                    look: Any = {"color": palette.INK, "linewidth": 0.8, "linestyle": ":", "label": words}
                    row[1].plot(part["steps"][: len(times)], np.abs(exact[:, 0, 0]), **look)
            row[2].hist(misalignment(where(table, activation=activation)), bins=np.linspace(0, np.pi, 33))
            charts.label(row[0], "step", "phase in radians", f"{activation}: a neuron")
            charts.label(row[1], "step", "magnitude", "the same neuron", yscale="log")
            charts.label(row[2], "|2φ − ψ| in radians", "neurons", "all neurons at the end")
    return Result({"neurons": table}, {"he-waves": figure})


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
            "-".join(map(str, cell)), partial(_trained_cell, cell, setting.runs, run.seed(seed + cell.tokens))
        )
        numbers = number * setting.runs + np.arange(setting.runs)
        index = {name: [value] for name, value in cell._asdict().items()} | {"series": [cell.series]}
        networks.append(table_of(index | {"network": numbers}, accuracy=part["accuracy"], **_shares(part)))
        first = {name: part[name][:, :ROWS] for name in ("chosen", *READERS)}
        neurons.append(table_of({"network": numbers, "_": range(min(ROWS, cell.hidden))}, **first))
    return joined(networks), joined(neurons)


def _shares(part: Columns) -> dict[str, NDArray[Any]]:
    """Return, for each network, the share of living neurons that end at the frequency of each predictor.

    `part` is what `_trained_cell` returns. The shares of neurons with a single frequency ("single") and of
    dead neurons ("dead") are returned as well, each with the shape (runs,).
    """
    alive = part["chosen"] > 0
    counts = alive.sum(axis=1)
    found = {name: ((part["chosen"] == part[name]) & alive).sum(axis=1) / counts for name in READERS}
    return found | {"single": part["single"].mean(axis=1), "dead": 1 - alive.mean(axis=1)}


def _trained_cell(cell: Cell, runs: int, seed: int) -> dict[str, Any]:
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
    found = {"chosen": end.frequency, "single": end.kind == "single"} | foretold(start.theta, start.xi)
    return found | {"accuracy": trained.observables["train_accuracy"][:, -1]}


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

    def lead(rows: Columns) -> Any:
        return rows["time"] - max((rows["magnitude"], rows["phase"]), key=np.sum)

    return measures.mean("networks", lead, **cell._asdict())


def _flow(scale: float) -> Cell:
    """Return a cell trained by gradient descent, as in the theory, from initial weights of the given scale.

    The number of steps is proportional to 1 / scale, because smaller weights take longer to diverge.
    """
    return Cell(hidden=128, optimizer="sgd", scale=scale, learning_rate=0.5, steps=int(np.ceil(400 / scale)))


def _place(rows: Columns) -> Any:
    """Return the place of networks among those of their scale, of which there are as many at each scale.

    Networks at the same place start from the same weights, up to the scale, and are one unit.
    """
    return np.arange(len(rows["scale"])) % max(int(np.sum(rows["scale"] == rows["scale"][:1])), 1)


BASE = (
    Cell(),
    Cell(activation="relu"),
    *(Cell(31, activation, 128) for activation in ("quadratic", "relu")),
    *(Cell(59, activation, 64) for activation in ("quadratic", "relu")),
)
"""AdamW at the paper's learning rate; networks for more tokens than the paper's 23 have fewer neurons."""
NARROW = {activation: Cell(activation=activation, hidden=128) for activation in ("quadratic", "relu")}
FLOWS = tuple(_flow(scale) for scale in (0.03, 0.1, 0.3))
CHANGES: tuple[dict[str, Any], ...] = (
    {}, *({"scale": scale} for scale in (0.01, 0.03, 0.3, 1.0)), {"weight_decay": 2.0},
    {"train_fraction": 0.75}, {"weight_decay": 2.0, "train_fraction": 0.75},
)  # fmt: skip
VARIED = tuple(cell._replace(**change) for cell in NARROW.values() for change in CHANGES)
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
        alive, number = rows["chosen"] > 0, rows["network"]
        hits = np.bincount(number, alive & (rows["chosen"] == rows[reader]))
        found = hits / np.maximum(np.bincount(number, alive), 1)
        return {**mixed, "networks": {**networks, reader: found[networks["network"]]}}

    return counters.Chance(f"{exchange.words}, and shares counted again", chance)


BY_CHANCE = {reader: by_chance(reader) for reader in READERS}
DETERMINED = "the “winner” determined by its initial spectral magnitude and phase alignment"
RULES = (
    *(
        Statement(f"t* names the winner: {cell.series}", DETERMINED,
            f"{ENDS_THERE}, the one of smallest t*; by chance {2 / (cell.tokens - 1):.2g}",
            _foretells("time", cell), least=0.9, source=ABSTRACT, chance=BY_CHANCE["time"], note=ALL_COUNT,
            family="the smallest t* names the winner")
        for cell in (_flow(0.1), *BASE)
    ),
    *(
        Statement(f"the best phase wins: {cell.series}",
            "The winning frequency for neuron m is: k* = argmin D(0), where D(0) is the initial phase "
            "misalignment",
            f"{ENDS_THERE}, the one of smallest |2φ - ψ|; by chance 0.091",
            _foretells("phase", cell), least=0.5, source=COROLLARY, chance=BY_CHANCE["phase"],
            note=f"{ALL_COUNT}; the corollary is on equal magnitudes, the authors' demonstration is not",
            family="the best phase names the winner")
        for cell in (_flow(0.1), *BASE[:2])
    ),
    *(
        Statement(f"neither alone: {cell.series}",
            "The winner is determined at initialization by the combination of initial magnitude and initial "
            "phase misalignment",
            "share of neurons that end at the frequency of smallest t*, minus that for largest magnitude or "
            "for best phase, whichever is larger",
            _lead(cell), least=0.05, source="Section 4.5, caption of Figure 10 (authors' page)",
            chance=BY_CHANCE["time"], note=ALL_COUNT, family="neither magnitude nor phase alone does")
        for cell in (_flow(0.1), *BASE[:2])
    ),
    Statement("surer from smaller starts",
        "Under small initialization, the gradient flow decouples across neurons and across frequency "
        "components within each neuron",
        "Kendall's τ of the scale of the start and the share that t* names, gradient descent; by chance 0",
        measures.rank_correlation("networks", "scale", "time", by=_place, optimizer="sgd"), most=-0.3,
        source="Section 2, Q2 (authors' page)",
        chance=counters.shuffled("networks", "time", within="series"),
        note="corrected after the run: networks with the same start, up to its scale, are resampled "
        "together"),
    Statement("it runs on partial data",
        "During this stage, the lottery ticket mechanism runs, but on incomplete data",
        f"{ENDS_THERE}, the one of smallest t*, with 75 % of the pairs and weight decay 2, ReLU, 128 neurons",
        _foretells("time", NARROW["relu"]._replace(weight_decay=2.0, train_fraction=0.75)), least=0.5,
        source="Section 5.2 (authors' page)", chance=BY_CHANCE["time"], note=ALL_COUNT),
)  # fmt: skip


def _draw_lottery(setting: Setting, tables: Tables, left: Any, right: Any) -> None:
    """Draw how often each predictor is right, by cell, and two shares of neurons by initial scale."""
    networks, cells = tables["networks"], setting.cells
    readers = {"time": "smallest t*", "magnitude": "largest |θ|", "phase": "smallest |2φ − ψ|"}
    places = -np.arange(len(cells))
    for n, (reader, words) in enumerate(readers.items()):
        found = [_foretells(reader, cell)(tables, 0.95) for cell in cells]
        look: Any = {"linestyle": "none", "capsize": 0, "marker": "os^"[n], "label": words}
        charts.intervals(left, places + 0.2 * (1 - n), found, across=True, **look)
    chance = [2 / (cell.tokens - 1) for cell in cells]
    left.plot(chance, places, "|", color=palette.REFERENCE, markersize=12, label="chance")
    left.set_yticks(places, [_short(cell) for cell in cells])
    left.margins(y=0.02)
    words = "fraction of neurons that end\nat the predicted frequency"
    charts.label(left, words, xlim=(0, 1), legend={"columns": 1})
    for n, series in enumerate(np.unique(networks["series"])):
        rows = where(networks, series=series, weight_decay=0.0, train_fraction=1.0)
        if np.ptp(rows["scale"]):
            look = {"color": palette.SERIES[n % len(palette.SERIES)], "marker": "os^Dv"[n % 5]}
            name = _in_words(str(series).partition(", p =")[0])
            charts.means(right, rows["scale"], rows["time"], label=name, **look)
            charts.means(right, rows["scale"], rows["single"], linestyle=":", **look)
    title = "lines: smallest t* wins;\ndotted: 90 % in one k"
    charts.label(right, "initial scale", "fraction of neurons", title, xscale="log", ylim=(0, 1.02))


@recipe(
    "lottery", item="the lottery: does the blow-up time name the winner?",
    quick=Setting(cells=(Cell(hidden=32, steps=400, learning_rate=1e-3), _flow(0.3)), runs=3),
    paper_setting=Setting(cells=(*BASE, *FLOWS, *VARIED), runs=20), draw=_draw_lottery,
    panels=(13.0, 8.6, 1, 2), cost="a quarter of an hour", looks=2, rules=RULES,
    fidelity="nearest: gradient descent has 128 neurons and the rate 0.5, where the authors' saved networks "
    "have 512 and 0.1; 31 and 59 tokens have 128 and 64 neurons, where the code has 931 and 3370; AdamW has "
    "the rate 1e-4 of the authors' page, where the code has 5e-5",
)  # fmt: skip
def lottery(run: Run) -> Result:
    """How often a neuron ends at the frequency whose exact flow diverges first, in 20 networks of each kind.

    Where not stated, the optimizer is AdamW and the initial scale 0.1.

    Notes
    -----
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
