"""Liu et al., Figures 3, 4 (b) and 5 (b): toy networks on the addition of p = 10 tokens.

The paper does not state the decoder's learning rate and the numbers of steps and networks of these figures.
The paper's setting has the rate of the published code (1e-4), and at least its 10 000 steps and 3 networks.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.plots.palette import REFERENCE, SECOND
from analysis.plots.style import legend_below, style
from analysis.stats.intervals import Interval, difference
from grokphys.papers.evidence import (
    columns_of,
    correlation,
    jackknife,
    joined,
    mean,
    rank_correlation,
    share,
    shuffled,
)
from grokphys.papers.liu.figures_04a_05a import DELTA, GROKKED, LEARNING_RATE, STRICT, TOKENS, rate_table
from grokphys.papers.liu.measures import half_rise
from grokphys.papers.recipe import Number, Printed, Result, Run, Statement, Tables, recipe
from nets.models import DenseModel, ToyAddition
from nets.networks import networks
from nets.training import train
from physics import Operation, closures, predicted_accuracy, representation_quality

DECODER_RATE = 1e-4
"""Learning rate of the decoder in the published code (`eta_dec`)."""
TRACK = 20
PARTS = ("train", "validation")


@dataclass(frozen=True)
class Fractions:
    """Setting of Figures 3, 4 (b), 5 (b), 10 and 18: networks on training sets of many sizes.

    Attributes
    ----------
    model : DenseModel
        Network to train.
    sizes : sequence of int
        Numbers of training examples.
    seeds : int
        Number of networks of each size.
    steps : int
        Number of steps of training.
    rate : float, default DECODER_RATE
        Learning rate of the decoder.
    delta : float, default DELTA
        Tolerance δ of the representation quality.
    seed : int, default 3000
        Seed, to which the size is added.
    """

    model: DenseModel
    sizes: Sequence[int]
    seeds: int
    steps: int
    rate: float = DECODER_RATE
    delta: float = DELTA
    seed: int = 3000


QUICK = Fractions(ToyAddition(TOKENS, hidden=(50, 50)), (14, 32, 50), 4, 1000, 3e-4)
PAPER = Fractions(ToyAddition(TOKENS), tuple(range(5, 55)), 25, 10_000)


def train_fractions(run: Run, *, family: str = "") -> dict[str, NDArray[Any]]:
    """Train the networks of a `Fractions` setting, and return a table with a row for each of them.

    Its columns are those of `measure`. Recipes of one `family` share the networks.
    """
    setting: Fractions = run.setting
    return joined(run.keep(f"size-{n}", partial(measure, setting, n), family=family) for n in setting.sizes)


def measure(setting: Fractions, size: int) -> dict[str, NDArray[Any]]:
    """Train networks on `size` samples each, and return a table with a row for each of them.

    A row has the representation quality index (RQI), the accuracy on all samples, the accuracy that the
    embedding predicts, and the RQI and accuracy of an ideal model; "_strict" marks those at δ = 0.01. It also
    has the first checked step with an RQI of 0.95 (infinite if there is none), and the steps n_h = 1/(λ_3 η)
    of the training set (NaN if the operation does not commute). Here λ_3 is its grokking rate and η the
    learning rate of the embedding.
    """
    model = setting.model
    assert model.theory is not None
    operation = model.theory.operation
    total = len(operation.samples)
    trained = train(
        model,
        runs=setting.seeds,
        steps=setting.steps,
        seed=setting.seed + size,
        learning_rate=setting.rate,
        weight_decay=0.0,
        embedding_learning_rate=LEARNING_RATE,
        train_fraction=size / total,
        record=[setting.steps],
        observables=("train_accuracy", "validation_accuracy", "layers"),
        thresholds={"quality": GROKKED},
        track=TRACK,
        delta=setting.delta,
    )
    masks = np.zeros((setting.seeds, total), bool)
    np.put_along_axis(masks, networks(trained).examples("train"), True, axis=1)
    ideal = closures(operation, masks)
    embeddings = trained.final.astype(float)
    if not operation.commutes:
        side = round(model.dim**0.5)
        embeddings = embeddings.reshape(setting.seeds, model.tokens, side, side)
    rows = []
    for k, (E, mask) in enumerate(zip(embeddings, masks, strict=True)):
        theory = replace(model.theory, pairs=operation.samples[mask])
        right, held = (float(trained.observables[f"{part}_accuracy"][k, -1]) for part in PARTS)
        reached = float(trained.observables["steps_to_quality"][k, -1])
        row: dict[str, Any] = {"size": size, "fraction": size / total, "network": 1000 * size + k}
        row |= {
            "rqi_bound": float(ideal.quality[k]),
            "train_accuracy": right,
            "validation_accuracy": held,
            "accuracy": (size * right + (total - size) * held) / total,
            "accuracy_bound": float(ideal.accuracy[k]),
            "steps_to_rqi": reached if np.isfinite(reached) else np.inf,
            "n_h": theory.grokking_steps(LEARNING_RATE) if operation.commutes else np.nan,
        }
        for end, delta in (("", setting.delta), ("_strict", STRICT)):
            row[f"rqi{end}"] = float(representation_quality(E, theory, delta))
            row[f"predicted_accuracy{end}"] = float(predicted_accuracy(E, theory, delta))
        rows.append(row)
    return columns_of(rows)


def said(setting: Fractions) -> str:
    """Return words for a title: how many networks were trained, and for how many steps."""
    return f"{setting.seeds} networks (dots) for each size, {setting.steps} steps"


# -- Figure 3 ----------------------------------------------------------------------------------------------


def _beyond_the_set(tables: Tables, level: float) -> Interval:
    """Return the correlation of real and predicted accuracy, after subtracting the training fraction."""
    rows = tables["networks"]
    real, predicted = (rows[name] - rows["fraction"] for name in ("accuracy", "predicted_accuracy"))
    return correlation(predicted, real, level)


def _distance(tables: Tables, level: float) -> Interval:
    rows = tables["networks"]
    return mean(abs(rows["accuracy"] - rows["predicted_accuracy"]), level)


def _draw_accuracies(setting: Fractions, tables: Tables) -> dict[str, Figure]:
    with style(10.6):
        figure = Figure(figsize=(10.6, 3.7))
        figure.suptitle(f"p = 10: {said(setting)}, δ = {setting.delta:g}")
        show_accuracies(tables["networks"], figure.subplots(1, 3))
    return {"liu-3": figure}


@recipe(
    "liu-3",
    paper="Liu",
    item="Figure 3",
    shows="The accuracy of networks, and the one that the parallelograms of their embeddings predict.",
    quick=QUICK,
    paper_setting=PAPER,
    cost="an hour for 1250 networks, which liu-4b, liu-5b and liu-10 share",
    rules=(
        Statement(
            "aligned",
            "the predicted accuracy aligns well with the true accuracy",
            "Section 3.1",
            "correlation of what true and predicted accuracy have beyond the training set; by chance 0",
            _beyond_the_set,
            chance=shuffled("networks", "predicted_accuracy"),
            least=0.7,
        ),
        Statement(
            "near",
            "We verified Acc ≈ predicted Acc in a toy setup",
            "Appendix D",
            "mean distance of true and predicted accuracy",
            _distance,
            chance=shuffled("networks", "predicted_accuracy"),
            most=0.1,
            withdrawn="the training fraction itself has a mean distance of 0.09 from the true accuracy",
        ),
    ),
    draw=_draw_accuracies,
)
def accuracies(run: Run) -> Result:
    """Reproduce Figure 3 of Liu et al.: the accuracy of networks, and that predicted from their embeddings.

    Toy networks learn the addition of 10 tokens from training sets of many sizes. The table "networks" has a
    row for each network. The rules judge how near the two accuracies are and how they are correlated.
    """
    return Result({"networks": train_fractions(run)})


def show_accuracies(rows: Any, axes: Any) -> None:
    """Draw real and predicted accuracy over the training fraction, and one over the other, on three axes."""
    fraction, real, predicted = (rows[k] for k in ("fraction", "accuracy", "predicted_accuracy"))
    for ax, values, label in ((axes[0], real, "accuracy Acc"), (axes[1], predicted, r"$\widehat{Acc}$")):
        ax.scatter(fraction, values, s=9, alpha=0.5, linewidths=0)
        ax.plot([0, 1], [0, 1], color=SECOND, linestyle="--", linewidth=1, label="training set alone")
        ax.set(xlabel="training data fraction", ylabel=label, xlim=(0, 1.02), ylim=(0, 1.03))
        legend_below(ax)
    points = axes[2].scatter(predicted, real, s=9, c=fraction, cmap="viridis", linewidths=0)
    axes[2].figure.colorbar(points, ax=axes[2], label="training fraction", aspect=30, pad=0.03)
    axes[2].plot([0, 1], [0, 1], color=REFERENCE, linestyle=":", linewidth=1, label="equal")
    axes[2].set(xlabel=r"predicted $\widehat{Acc}$", ylabel="accuracy Acc", xlim=(0, 1.03), ylim=(0, 1.03))
    legend_below(axes[2])


# -- Figure 4 (b) ------------------------------------------------------------------------------------------


def _quality_transition(tables: Tables, level: float) -> Interval:
    """Return the training fraction, by `half_rise`, from which the representation quality reaches 0.95."""
    rows = tables["networks"]
    return jackknife(half_rise, (rows["fraction"], np.isfinite(rows["steps_to_rqi"])), level)


def _quality_jump(tables: Tables, level: float) -> Interval:
    rows = tables["networks"]
    passed = np.isfinite(rows["steps_to_rqi"])
    high, low = rows["fraction"] >= 0.5, rows["fraction"] <= 0.3
    return difference(share(passed[high], level), share(passed[low], level))


def show_line(rows: Any, name: str, of: Any, label: str, ax: Axes) -> None:
    """Draw the column `name` over the training fraction, and a line through one number per size.

    The function `of`, such as a median, gives this number from the values of one size.
    """
    places = np.unique(rows["fraction"])
    ax.scatter(rows["fraction"], rows[name], s=9, color=REFERENCE, linewidths=0, label="one network")
    line = [of(rows[name][rows["fraction"] == place]) for place in places]
    ax.plot(places, line, "o-", markersize=3.5, label=label)
    ax.set(xlabel="training data fraction", xlim=(0, 1.02))
    legend_below(ax)


def show_reached(rows: Any, steps: int, ax: Axes) -> None:
    """Draw the steps of networks to a representation quality of 0.95, with triangles at `steps` for never."""
    passed = np.isfinite(rows["steps_to_rqi"])
    x, y = (rows[name][passed] for name in ("fraction", "steps_to_rqi"))
    ax.scatter(x, y, s=9, color=SECOND, linewidths=0, label="one network")
    never = rows["fraction"][~passed]
    look: Any = {"s": 16, "marker": "^", "color": REFERENCE, "linewidths": 0}
    ax.scatter(never, np.full(len(never), steps), label=f"never in {steps} steps", **look)
    ax.set(xlabel="training data fraction", ylabel=f"steps to RQI > {GROKKED}", xlim=(0, 1.02))
    legend_below(ax)


def _draw_qualities(setting: Fractions, tables: Tables) -> dict[str, Figure]:
    rows = tables["networks"]
    with style(9.6):
        figure = Figure(figsize=(9.6, 4.3))
        left, right = figure.subplots(1, 2)
        for ax in (left, right):
            ax.axvline(0.4, color=REFERENCE, linestyle=":", linewidth=1, label="paper: 0.4")
        show_line(rows, "rqi", np.median, "median", left)
        left.set(ylabel="RQI", ylim=(-0.03, 1.03), title=said(setting))
        show_reached(rows, setting.steps, right)
    return {"liu-4b": figure}


@recipe(
    "liu-4b",
    paper="Liu",
    item="Figure 4 (b)",
    shows="The quality of trained networks, and the steps until it is high, by the training fraction.",
    quick=QUICK,
    paper_setting=PAPER,
    cost="an hour alone; no time after liu-3, whose networks it shares",
    rules=(
        Number(
            "r_c of networks",
            Printed("0.4", "Figure 4 (b)"),
            _quality_transition,
            margin=0.05,
            note="the jump from no network to all with the same area as the curve of the shares that pass",
        ),
        Statement(
            "transition",
            "The number of steps to reach RQI > 0.95 is seen to have a phase transition at r_c = 0.4",
            "Section 3.2",
            "share of networks that pass RQI 0.95 with at least half of the data minus that with at most 0.3",
            _quality_jump,
            chance=shuffled("networks", "steps_to_rqi"),
            least=0.5,
        ),
    ),
    draw=_draw_qualities,
)
def qualities(run: Run) -> Result:
    """Reproduce Figure 4 (b) of Liu et al.: the RQI of networks, and the steps to 0.95, over their data.

    RQI is the representation quality index. The networks are those of Figure 3. The rules judge at which
    training fraction networks begin to pass 0.95, and how sharp the transition is.
    """
    return Result({"networks": train_fractions(run, family="liu-3")})


# -- Figure 5 (b) ------------------------------------------------------------------------------------------


def _both(tables: Tables) -> Any:
    rows = tables["networks"]
    both = np.isfinite(rows["steps_to_rqi"]) & np.isfinite(rows["n_h"])
    return {name: values[both] for name, values in rows.items()}


def _faster(tables: Tables, level: float) -> Interval:
    rows = _both(tables)
    return rank_correlation(rows["fraction"], rows["steps_to_rqi"], level)


def _follow(tables: Tables, level: float) -> Interval:
    rows = _both(tables)
    return correlation(np.log(rows["n_h"]), np.log(rows["steps_to_rqi"]), level)


def _draw_steps(setting: Fractions, tables: Tables) -> dict[str, Figure]:
    theory, both = tables["theory"], _both(tables)
    with style(10.2):
        figure = Figure(figsize=(10.2, 4.3))
        left, right = figure.subplots(1, 2)
        finite = np.isfinite(theory["n_h_median"])
        name = "theory: median $n_h$ of training sets,\nby Eq. 5, with $1/|P_0(D)|$"
        left.plot(theory["fraction"][finite], theory["n_h_median"][finite], label=name)
        show_reached(tables["networks"], setting.steps, left)
        left.set(yscale="log", ylabel=f"steps to RQI > {GROKKED}, or $n_h$", title=said(setting))
        look: Any = {"c": both["fraction"], "cmap": "viridis", "s": 12, "linewidths": 0}
        points = right.scatter(both["n_h"], both["steps_to_rqi"], **look)
        figure.colorbar(points, ax=right, label="training fraction", aspect=30, pad=0.03)
        right.set(xscale="log", yscale="log", xlabel=r"$n_h = 1/(\lambda_3\eta)$ of its training set (Eq. 5)")
        right.set(ylabel=f"steps to RQI > {GROKKED}", title="each network and its own prediction")
    return {"liu-5b": figure}


@recipe(
    "liu-5b",
    paper="Liu",
    item="Figure 5 (b)",
    shows="The steps to a good representation in theory and networks, by the training fraction.",
    quick=QUICK,
    paper_setting=PAPER,
    cost="an hour alone; no time after liu-3, whose networks it shares",
    rules=(
        Statement(
            "networks",
            "the trend of decreasing grokking steps as increasing data size",
            "Section 3.2",
            "Kendall's τ of the steps to RQI > 0.95 with the training fraction; by chance 0",
            _faster,
            chance=shuffled("networks", "steps_to_rqi"),
            most=-0.2,
        ),
        Statement(
            "theory",
            "The theory agrees qualitatively with neural networks",
            "Section 3.2",
            "Pearson correlation of the logarithms of steps and n_h; by chance 0",
            _follow,
            chance=shuffled("networks", "n_h"),
            least=0.3,
        ),
    ),
    draw=_draw_steps,
)
def steps_of_networks(run: Run) -> Result:
    """Reproduce Figure 5 (b) of Liu et al.: steps to a representation quality of 0.95, and n_h = 1/(λ_3 η).

    n_h is the number of steps in which a representation forms, by the grokking rate λ_3 of the training set
    and the learning rate η. The rules ask whether the steps fall with the data, and whether they follow n_h.
    """
    rows = train_fractions(run, family="liu-3")
    table = rate_table(Operation(TOKENS), 40 if run.budget == "quick" else 10_000, seed=152)
    with np.errstate(divide="ignore"):
        n_h = {size: 1 / (rate * LEARNING_RATE) for size, rate in table.items()}
    theory = {"fraction": np.array(list(n_h)) / 55} | {
        f"n_h_{name}": np.array([np.quantile(one, q, method="inverted_cdf") for one in n_h.values()])
        for name, q in (("quartile_1", 0.25), ("median", 0.5), ("quartile_3", 0.75))
    }
    return Result({"networks": rows, "theory": theory})
