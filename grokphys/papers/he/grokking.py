"""Figures 14 and 15 of He et al.: the three stages of grokking, with weight decay and 3/4 of the pairs."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.stats import kendalltau

from analysis.plots.palette import REFERENCE, SECOND, SERIES, SOFT
from analysis.plots.style import legend_below, points, style
from analysis.stats.intervals import Interval
from grokphys.papers.counters.builders import replaced
from grokphys.papers.evidence import Chance, by_network, mean, shuffled, where
from grokphys.papers.he import neurons
from grokphys.papers.recipe import Measure, Number, Printed, Result, Run, Statement, Tables, recipe
from nets.models import TwoLayer
from physics.neurons.spectrum import neuron_spectrum

FITTED, GENERALISED = 0.999, 0.95
"""Accuracies at which Stage I ends (on the training pairs), and Stage II (on the test pairs: “~95 %”)."""


@dataclass(frozen=True)
class Setting(neurons.Setting):
    """Setting of Figures 14 and 15: networks that are trained with weight decay on part of the pairs.

    Attributes
    ----------
    hidden : int
        Number of neurons.
    steps : int
        Number of steps of training.
    runs : int
        Number of networks.
    learning_rate : float, default 1e-4
        Learning rate of the optimizer AdamW.
    every : int, default 200
        Number of steps from one recorded frame to the next.
    """

    every: int = 200


def _course(setting: Setting, seed: int) -> dict[str, Any]:
    """Train networks with weight decay 2 on three quarters of the pairs, and measure them in each frame.

    The arrays (runs, frames) are the step, losses, accuracies, the norm of the weights, and means over living
    neurons of the purity and of |sin D|, where D is the misalignment. The last, "unseen_accuracy", is the
    accuracy on pairs (a, b) for which neither (a, b) nor (b, a) is in the training set.
    """
    names = ("train_loss", "train_accuracy", "validation_loss", "validation_accuracy")
    trained = neurons.trained(
        setting,
        seed,
        weight_decay=2.0,
        train_fraction=0.75,
        record=setting.every,
        observables=(*names, "layers"),
    )
    W_in, W_out = trained.positions, trained.observables["layers.output.weight"]
    model = TwoLayer(hidden=setting.hidden)
    p, pairs = model.tokens, model.task.inputs
    mirrored = pairs[:, 1] * p + pairs[:, 0]
    found: dict[str, list[Any]] = {"purity": [], "misaligned": [], "norm": [], "unseen_accuracy": []}
    for run, (train_set, tested) in enumerate(
        zip(trained.start["train_examples"], trained.start["validation_examples"], strict=True)
    ):
        spectrum = neuron_spectrum(W_in[run], W_out[run])
        found["purity"].append(np.nanmean(spectrum.purity, axis=-1))
        found["misaligned"].append(np.nanmean(np.abs(np.sin(spectrum.misalignment)), axis=-1))
        squares = (W_in[run] ** 2).sum((1, 2)) + (W_out[run] ** 2).sum((1, 2))
        found["norm"].append(np.sqrt(squares))
        unseen = tested[~np.isin(mirrored[tested], train_set)]
        a, b = pairs[unseen].T
        right = []
        for into, out in zip(W_in[run], W_out[run], strict=True):
            logits = np.maximum(into[a] + into[b], 0) @ out
            right.append(np.mean(logits.argmax(axis=1) == (a + b) % p))
        found["unseen_accuracy"].append(right)
    return {
        "step": np.broadcast_to(trained.steps, (setting.runs, len(trained.steps))),
        **{name: trained.observables[name] for name in names},
        **{name: np.array(values) for name, values in found.items()},
    }


def stages(rows: Any) -> dict[str, NDArray[Any]]:
    """Return a table with a row for each network, which describes the ends of the stages of its training.

    Stage I ends when the training accuracy reaches `FITTED`, Stage II when the validation accuracy then
    reaches `GENERALISED`, and Stage III with the last frame. Each has the step, accuracies, purity and norm
    at its end, in columns such as ``norm_II``; they are NaN for a stage that does not end. `rows` has a row
    for each network and frame.
    """
    networks = np.unique(rows["network"])
    columns = ("step", "validation_accuracy", "unseen_accuracy", "purity", "norm")
    table: dict[str, list[float]] = {"network": list(map(float, networks))}
    for network in networks:
        own = {name: np.asarray(values)[rows["network"] == network] for name, values in rows.items()}
        fitted = own["train_accuracy"] >= FITTED
        first = int(fitted.argmax()) if fitted.any() else None
        after = (own["validation_accuracy"] >= GENERALISED) & (np.arange(len(fitted)) >= (first or 0))
        second = int(after.argmax()) if first is not None and after.any() else None
        last = len(fitted) - 1
        for stage, at in (("I", first), ("II", second), ("III", last)):
            for name in columns:
                value = np.nan if at is None else float(own[name][at])
                table.setdefault(f"{name}_{stage}", []).append(value)
        table.setdefault("largest_norm", []).append(float(own["norm"].max()))
    return {name: np.array(values) for name, values in table.items()}


# -- rules -------------------------------------------------------------------------------------------------


def _of(name: str, other: str = "", *, ratio: bool = False) -> Measure:
    """Return a `Measure` of the mean over networks of the column `name` of the table of stages.

    If another column is given, it is subtracted, or divides the first with `ratio`.
    """

    def measure(tables: Tables, level: float) -> Interval:
        rows = tables["stages"]
        values = np.asarray(rows[name], float)
        if other:
            values = values / rows[other] if ratio else values - rows[other]
        return mean(values, level)

    return measure


def _percent(name: str) -> Measure:
    return lambda tables, level: mean(100 * np.asarray(tables["stages"][name]), level)


def _trend(column: str) -> Measure:
    def measure(tables: Tables, level: float) -> Interval:
        own = by_network(tables["frames"])
        return mean([kendalltau(rows["step"], rows[column]).statistic for rows in own], level)

    return measure


BY_NETWORK = (
    "corrected after the run: τ of each network, and its mean; before, the frames of all networks were one "
    "sample, which gave {}"
)


@partial(Chance, "`norm` shuffled among the frames of each network, from which the stages are read again")
def _any_order(tables: Tables, generator: np.random.Generator) -> Tables:
    """Return tables in which the norm of each network takes its values in any order."""
    frames = shuffled("frames", "norm", within="network")(tables, generator)["frames"]
    return {**tables, "frames": frames, "stages": stages(frames)}


WHICH = "the stages are read from each network's own course, which no shuffle of networks changes"


PANELS: tuple[tuple[str, dict[str, str]], ...] = (
    ("loss", {"train_loss": "training pairs", "validation_loss": "test pairs"}),
    (
        "accuracy",
        {
            "train_accuracy": "training pairs",
            "validation_accuracy": "test pairs",
            "unseen_accuracy": "test pairs never seen in either order",
        },
    ),
    (
        "mean |sin D| of the neurons",
        {"misaligned": "misalignment D = 2φ − ψ of the phases φ\nof input and ψ of output weights"},
    ),
    ("inverse participation ratio", {"purity": "inverse participation ratio (left)"}),
)
"""For each panel the label of its y-axis, and words for each column of the table of frames that it shows."""


def _draw(setting: Setting, tables: Tables) -> dict[str, Figure]:
    """Draw the course and the stages of the first network that ends Stage II, or else of the first one."""
    table = tables["stages"]
    ended = np.isfinite(table["step_II"])
    shown = int(ended.argmax())
    course = where(tables["frames"], network=table["network"][shown])
    steps = course["step"]
    ends = [step for step in (table["step_I"][shown], table["step_II"][shown]) if np.isfinite(step)]
    with style(9.6):
        figure = Figure(figsize=(9.6, 8.4))
        which = f"first of the {ended.sum()} that reach" if ended.any() else "none reaches"
        figure.suptitle(f"Network {shown + 1} of {len(ended)} ({which} the end of Stage II)")
        axes = figure.subplots(2, 2).ravel()
        for ax, (quantity, names) in zip(axes, PANELS, strict=True):
            for n, (name, words) in enumerate(names.items()):
                ax.plot(steps[1:], course[name][1:], color=SERIES[n], label=words)
            for k, step in enumerate(ends):
                label = None if k else "end of a stage"
                ax.axvline(step, color=REFERENCE, linewidth=1, linestyle="--", label=label)
            sides = [steps[1], *ends, steps[-1]]
            for name, low, high in zip(("I", "II", "III"), sides, sides[1:], strict=False):
                at = float(np.sqrt(low * high)), 1.01  # the middle of the stage on the logarithmic axis
                look: Any = {"ha": "center", "va": "bottom", "color": SOFT, "fontsize": points(8)}
                ax.text(*at, f"Stage {name}", transform=ax.get_xaxis_transform(), **look)
            ax.set(xlabel="step", ylabel=quantity, xscale="log")
        axes[0].set_yscale("log")
        norm = axes[3].twinx()
        norm.plot(steps[1:], course["norm"][1:], color=SECOND, label="norm of the weights (right)")
        norm.set_ylabel("norm of the weights")
        axes[3].plot([], [], color=SECOND, label="norm of the weights (right)")
        for ax in axes:
            legend_below(ax)
    return {"he-grokking": figure}


PAPER_GROKKING, ENOUGH = Setting(512, 50_000, 5), round(100 * GENERALISED)


@recipe(
    "he-grokking",
    paper="He",
    item="Figures 14 and 15",
    shows="Losses, accuracies and phases of one network with weight decay, by training stage. Stage I ends "
    f"when all training pairs are right, and Stage II at {ENOUGH} % of the test pairs, which "
    f"not all of the {PAPER_GROKKING.runs} networks reach.",
    quick=Setting(48, 900, 3, 3e-3, 100),
    paper_setting=PAPER_GROKKING,
    cost="five minutes",
    rules=(
        Number(
            "test accuracy when all is memorized",
            Printed("70", "Section 5.2 (authors' page)"),
            _percent("validation_accuracy_I"),
            margin=5.0,
            digits=0,
        ),
        Statement(
            "pairs that were never seen are wrong",
            "truly held-out test pairs where neither (x, y) nor (y, x) is in the training set — completely "
            "wrong",
            "Section 5.2, Figure 15 (authors' page)",
            "accuracy at the end of Stage I on pairs of which neither order trains",
            _of("unseen_accuracy_I"),
            chance=WHICH,
            counter=replaced("stages", unseen_accuracy_I="validation_accuracy_I"),
            most=0.1,
            possible=(0.0, 1.0),
        ),
        Statement(
            "and right in the end",
            "After Stages II and III, those same pairs are now predicted correctly",
            "Section 5.4 (authors' page)",
            "accuracy at the end on pairs of which neither order trains",
            _of("unseen_accuracy_III"),
            chance=WHICH,
            counter=replaced("stages", unseen_accuracy_III="unseen_accuracy_I"),
            least=0.95,
            possible=(0.0, 1.0),
        ),
        Statement(
            "generalization is late",
            "the network quickly memorizes the training set … but then takes much longer (often orders of "
            "magnitude more training steps) to generalize",
            "Section 5 (authors' page)",
            "steps to 95 % of the test pairs over steps to all training pairs",
            _of("step_II", "step_I", ratio=True),
            chance=WHICH,
            counter=replaced("stages", step_II="step_I"),
            least=3.0,
            note="undefined, as two networks never reach 95 %; the ratios of the other three are 4.7 to 5.5",
        ),
        Statement(
            "sparser in Stage II",
            "frequency sparsity (measured by the inverse participation ratio, IPR) increases sharply",
            "Section 5.3 (authors' page)",
            "mean inverse participation ratio at the end of Stage II minus that at the end of Stage I",
            _of("purity_II", "purity_I"),
            chance=WHICH,
            counter=replaced("stages", purity_II="purity_I"),
            least=0.1,
        ),
        Statement(
            "the norm grows in Stage II",
            "parameter norms keep growing (the loss gradient is still active)",
            "Section 5.3 (authors' page)",
            "norm of the parameters at the end of Stage II over that at the end of Stage I",
            _of("norm_II", "norm_I", ratio=True),
            chance=WHICH,
            counter=replaced("stages", norm_II="norm_I"),
            least=1.05,
        ),
        Statement(
            "the norm shrinks in Stage III",
            "the parameter norm decreases, confirming that weight decay is the sole active force",
            "Section 5.4 (authors' page)",
            "norm of the parameters at the end over the largest on the way",
            _of("norm_III", "largest_norm", ratio=True),
            chance=WHICH,
            counter=_any_order,
            most=0.99,
            withdrawn="any course that is not largest at its end passes",
        ),
        Statement(
            "phases align all the while",
            "The average |sin D| decreases throughout",
            "Section 5.1, Figure 14 (c) (authors' page)",
            "Kendall's τ of the step and the mean |sin D|; by chance 0",
            _trend("misaligned"),
            chance=shuffled("frames", "misaligned", within="network"),
            most=-0.5,
            note=BY_NETWORK.format("-0.66"),
            possible=(-1.0, 1.0),
        ),
        Statement(
            "sparser all the while",
            "The average IPR increases throughout training",
            "Section 5.1, Figure 14 (d) (authors' page)",
            "Kendall's τ of the step and the mean inverse participation ratio; by chance 0",
            _trend("purity"),
            chance=shuffled("frames", "purity", within="network"),
            least=0.5,
            note=BY_NETWORK.format("0.79"),
            possible=(-1.0, 1.0),
        ),
    ),
    draw=_draw,
)
def grokking(run: Run) -> Result:
    """Reproduce Figures 14 and 15 of He et al.: losses, accuracies, alignment, sparsity and norm over time.

    The table "frames" has a row for each network and recorded frame, and "stages" one for each network. The
    rules judge accuracies, sparsity and norm at the ends of the stages, and trends over the whole training.
    """
    setting: Setting = run.setting
    course = run.keep("course", lambda: _course(setting, 43_000))
    shape = course["step"].shape
    networks = np.broadcast_to(np.arange(shape[0])[:, None], shape)
    frames = {"network": networks.ravel(), **{name: values.ravel() for name, values in course.items()}}
    return Result({"stages": stages(frames), "frames": frames})
