"""Liu et al., Figures 12, 17 and 18: networks on addition of 4 tokens, and on S_3, permutations of three."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from analysis.plots.palette import FIRST, REFERENCE, SECOND, graded_colors
from analysis.plots.style import legend_below, style
from analysis.stats.intervals import Interval
from grokphys.papers.counters.builders import rarest_absent
from grokphys.papers.evidence import joined, mean, rank_correlation, share, shuffled, where
from grokphys.papers.liu.figures_03_04b_05b import (
    Fractions,
    said,
    show_accuracies,
    show_line,
    show_reached,
    train_fractions,
)
from grokphys.papers.liu.figures_04a_05a import DELTA, GROKKED, LEARNING_RATE
from grokphys.papers.liu.measures import TOGETHER, best_passes, passing_gap, smallest
from grokphys.papers.recipe import Number, Printed, Result, Run, Statement, Tables, recipe
from nets.models import GroupDecoder, ToyAddition
from nets.training import train
from physics import representation_quality

# -- Figure 12 ---------------------------------------------------------------------------------------------

FOUR = ((0, 2), (1, 1), (0, 3), (1, 2), (1, 3), (2, 2))
"""Training set of Eq. 21."""
PACES = {"fast decoder": (1e-3, 1e-2), "slow decoder": (1e-2, 1e-3)}
"""Learning rates of the representation and of the decoder."""
KINDS = ("A1 A2 A3", "A1", "A2", "A3", "none")
"""The representations of Figure 11: any two equations imply the third."""


@dataclass(frozen=True)
class Four:
    """Setting of Figure 12: `seeds` networks of a `model` at each pair of rates, trained for `steps`."""

    model: ToyAddition
    seeds: int
    steps: int


def _quality_gap(tables: Tables, level: float) -> Interval:
    fast, slow = (where(tables["networks"], decoder=pace)["rqi"] for pace in PACES)
    return mean(slow - fast, level)  # networks of the same place have the same start


def _rarest(tables: Tables, level: float) -> Interval:
    kinds = tables["networks"]["equations"]
    starts = np.tile(np.arange(len(kinds) // len(PACES)), len(PACES))
    return smallest([share(kinds == kind, level, groups=starts) for kind in KINDS])


def _draw_four(setting: Four, tables: Tables) -> dict[str, Figure]:
    """Draw the representations of four tokens that were learned with each pair of learning rates."""
    with style(9.6):
        figure = Figure(figsize=(9.6, 4.8))
        for ax, pace in zip(figure.subplots(1, 2), PACES, strict=True):
            show_representations(where(tables["networks"], decoder=pace), ax)
            ax.set_title(rf"{pace}, $(\eta_1, \eta_2)$ = {PACES[pace]}")
    return {"liu-12": figure}


@recipe(
    "liu-12",
    paper="Liu",
    item="Figure 12; Appendix E",
    shows="The representations of p = 4 that networks find, by the rates of embedding and decoder.",
    quick=Four(ToyAddition(4, hidden=(50, 50)), 6, 1500),
    paper_setting=Four(ToyAddition(4), 200, 3000),
    cost="five minutes",
    rules=(
        Statement(
            "slow decoder",
            "The relatively slow decoder produces better representations (in the sense of higher RQI)",
            "Appendix E",
            "mean RQI with the slow decoder minus that with the fast one; by chance 0",
            _quality_gap,
            chance=shuffled("networks", "rqi"),
            least=0.1,
            note=TOGETHER,
        ),
        Statement(
            "all representations",
            "our algorithms actually generates all possible representations",
            "Appendix E",
            "share of the rarest of the five representations among the networks of both paces",
            _rarest,
            chance="none: an order of networks changes no share",
            counter=rarest_absent("networks", "equations"),
            least=0.002,
            digits=3,
            note=TOGETHER,
        ),
    ),
    draw=_draw_four,
)
def four(run: Run) -> Result:
    """Reproduce Figure 12 of Liu et al.: embeddings of 4 tokens learned with a fast and a slow decoder.

    The table "networks" has a row for each network. The rules ask whether a slow decoder gives a higher
    representation quality (RQI), and whether all five representations occur.
    """
    parts = (run.keep(pace.replace(" ", "-"), partial(_train_four, run.setting, pace)) for pace in PACES)
    return Result({"networks": joined(parts)})


def _train_four(setting: Four, pace: str) -> dict[str, Any]:
    trained = train(
        setting.model,
        runs=setting.seeds,
        steps=setting.steps,
        seed=1200,
        weight_decay=0.0,
        learning_rate=PACES[pace][1],
        embedding_learning_rate=PACES[pace][0],
        train_examples=[setting.model.task.inputs.tolist().index(list(pair)) for pair in FOUR],
        record=[setting.steps],
        observables=("train_accuracy",),
    )
    E = trained.final[:, :, 0].astype(float)
    E = (E - E.mean(axis=1, keepdims=True)) / E.std(axis=1, keepdims=True)
    return {
        "decoder": np.full(setting.seeds, pace),
        "equations": np.array([equations(e) for e in E]),
        "rqi": np.array([representation_quality(e[:, None], setting.model.theory, DELTA) for e in E]),
        "train_accuracy": trained.observables["train_accuracy"][:, -1].astype(float),
        **{f"E_{token}": E[:, token] for token in range(4)},
    }


def equations(E: NDArray[np.float64]) -> str:
    """Return the equations of Liu's Eq. 20, such as "A1 A2", that E (4,) satisfies within 0.1, or "none"."""
    gaps = {"A1": E[0] + E[2] - 2 * E[1], "A2": E[0] + E[3] - E[1] - E[2], "A3": E[1] + E[3] - 2 * E[2]}
    return " ".join(name for name, gap in gaps.items() if abs(gap) <= DELTA) or "none"


def show_representations(rows: Any, ax: Axes) -> None:
    """Draw the networks of a table as rows of four points, grouped by the equations they satisfy."""
    E = np.stack([rows[f"E_{token}"] for token in range(4)], axis=1)
    E = np.where(E[:, :1] < E[:, 3:], E, -E)  # mirrored so that 0 is left of 3
    colors, height = graded_colors(4), 0.0
    for kind in sorted(set(rows["equations"].tolist()), key=lambda name: (name == "none", -len(name), name)):
        own = E[rows["equations"] == kind]
        places = height + np.arange(len(own))
        for token, color in enumerate(colors):
            ax.scatter(own[:, token], places, color=color, s=max(18 - len(E) / 12, 3), linewidths=0)
        look: Any = {"xycoords": ax.get_yaxis_transform(), "va": "center", "fontsize": "small"}
        ax.annotate(f"{kind}: {len(own)}", (1.02, height + len(own) / 2), **look)
        height += len(own) + max(len(E) / 20, 1)
    for token, color in enumerate(colors):
        ax.scatter([], [], color=color, s=18, label=str(token))
    ax.legend(title="symbol", ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.1), handletextpad=0)
    ax.set(yticks=[], xlabel="normalized embedding", ylabel=f"{len(E)} networks, a row each")
    ax.invert_yaxis()


# -- Figures 17 and 18 -------------------------------------------------------------------------------------

MATRIX_DELTA = 4.5
"""Tolerance of the squared Frobenius norm; the published code bounds the mean of the nine squares by 0.5."""
MATRIX_DECODER_RATE = 1e-5
"""Learning rate of the decoder, the paper's lowest: faster decoders memorize before a structure forms."""
OPTIONS = (MATRIX_DECODER_RATE, MATRIX_DELTA, 1800)
"""Learning rate of the decoder, tolerance and seed of Figure 18."""
PERMUTATIONS = ("e", "(23)", "(12)", "(123)", "(132)", "(13)")
"""The elements of `physics.symmetric(3)`: permutations of three things in lexicographic order."""
SPLIT = 24 / 36
"""Fraction of the pairs that train: 24 of 36, as in the paper (Section 4.1)."""


@dataclass(frozen=True)
class Matrices:
    """Setting of Figure 17: `seeds` networks of a `model` on permutations; `rate` is that of the decoder."""

    model: GroupDecoder
    seeds: int
    steps: int
    rate: float = MATRIX_DECODER_RATE


def _hexagons(tables: Tables, level: float) -> Interval:
    """Return how often networks of a quality above 0.95 form a hexagon on the 1st and 3rd principal axis."""
    rows = tables["elements"]
    found = []
    for network in np.unique(rows["network"][rows["rqi"] > GROKKED]):
        own = where(rows, network=network)
        points = own["PC1"] + 1j * own["PC3"]
        points = points - points.mean()
        angles = np.sort(np.angle(points, deg=True))
        gaps = np.diff(np.append(angles, angles[0] + 360))
        found.append(bool(abs(gaps - 60).max() < 30 and abs(points).max() < 2 * abs(points).min()))
    return share(found, level)


def _draw_hexagon(setting: Matrices, tables: Tables) -> dict[str, Figure]:
    """Draw the network of highest quality on the planes of its first three principal components."""
    rows = tables["elements"]
    best = where(rows, network=rows["network"][np.argmax(rows["rqi"])])
    points = np.stack([best["PC1"], best["PC2"], best["PC3"]], axis=1)
    with style(10.6):
        figure = Figure(figsize=(10.6, 3.8))
        figure.suptitle(f"$S_3$: the best RQI of {setting.seeds} networks, {best['rqi'][0]:.2f}")
        for ax, plane in zip(figure.subplots(1, 3), ([0, 1], [0, 2], [1, 2]), strict=True):
            show_components(points[:, plane], plane, ax)
        legend_below(figure.axes[1])
    return {"liu-17": figure}


@recipe(
    "liu-17",
    paper="Liu",
    item="Figure 17; Appendix H",
    shows="The six matrices that a network learns for S_3, on their first three principal components.",
    quick=Matrices(GroupDecoder(hidden=(50, 50)), 3, 800),
    paper_setting=Matrices(GroupDecoder(), 50, 20_000),
    cost="ten to twenty minutes",
    rules=(
        Statement(
            "hexagon",
            "On the plane of PC1 and PC3, the six points are organized as a hexagon",
            "Appendix H.2",
            "share of the networks with RQI > 0.95 whose points on that plane are 60° apart within 30°, at "
            "distances from the center within a factor of 2",
            _hexagons,
            chance=shuffled("elements", "PC3", within="network"),
            least=0.5,
            note="half of them have a hexagon on PC2 and PC3; the three variances are often nearly equal",
        ),
    ),
    draw=_draw_hexagon,
)
def hexagon(run: Run) -> Result:
    """Reproduce Figure 17 of Liu et al.: principal components of six matrices learned for permutations.

    The table "elements" has a row for each network and element of the group. The rule asks how often the
    elements form a hexagon, among networks with a representation quality index (RQI) above 0.95.
    """
    setting: Matrices = run.setting
    trained = train(
        setting.model,
        runs=setting.seeds,
        steps=setting.steps,
        seed=1700,
        learning_rate=setting.rate,
        weight_decay=0.0,
        embedding_learning_rate=LEARNING_RATE,
        train_fraction=SPLIT,
        record=[setting.steps],
        observables=(),
    )
    points = np.stack([PCA(3).fit_transform(matrices) for matrices in trained.final.astype(float)])
    rows = {
        "network": np.repeat(np.arange(setting.seeds), 6),
        "element": np.tile(PERMUTATIONS, setting.seeds),
        "rqi": representation_quality(trained, setting.model.theory, MATRIX_DELTA)[:, -1].repeat(6),
        **{f"PC{k + 1}": points[:, :, k].ravel() for k in range(3)},
    }
    return Result({"elements": rows})


def show_components(points: Any, plane: list[int], ax: Axes) -> None:
    """Draw the six permutations at `points` (6, 2), on the `plane` of two components numbered from 0."""
    even = np.array([name in ("e", "(123)", "(132)") for name in PERMUTATIONS])
    for chosen, color, label in ((even, FIRST, "even"), (~even, SECOND, "odd")):
        ax.fill(*points[chosen].T, color=color, alpha=0.08, linewidth=0)
        ax.scatter(points[chosen, 0], points[chosen, 1], s=50, color=color, label=label, linewidths=0)
    for n, place in enumerate(points):
        near = abs(points - place).max(axis=1) < 0.05  # elements that cannot be told apart share a label
        if n == near.argmax():
            look: Any = {"xytext": (6, 4), "ha": "left"} if even[n] else {"xytext": (-6, 4), "ha": "right"}
            names = np.array(PERMUTATIONS)[near]
            ax.annotate("\n".join(names), place, textcoords="offset points", fontsize="small", **look)
    ax.update_datalim([(side * np.abs(points[:, 0]).max(), 0.0) for side in (-1.4, 1.4)])  # room for labels
    ax.set(xlabel=f"principal component {plane[0] + 1}", ylabel=f"principal component {plane[1] + 1}")
    ax.set(aspect="equal", adjustable="datalim", xmargin=0.0, ymargin=0.15)


SEEN = "the rise is what the figure shows; until after the run, the quotation had words of ours"


def _rises(column: str, *, held_out: bool = False) -> Any:
    def measure(tables: Tables, level: float) -> Interval:
        rows = tables["networks"]
        fraction, known = rows["fraction"], rows["fraction"] if held_out else 0
        return rank_correlation(fraction, (rows[column] - known) / (1 - known), level)

    return measure


def _bounded(tables: Tables, level: float) -> Interval:
    rows = tables["networks"]
    return share(rows["accuracy"] >= rows["predicted_accuracy"] - 1e-6, level)


def _draw_permutations(setting: Fractions, tables: Tables) -> dict[str, Figure]:
    """Draw the panels (a) to (e) of the paper, and the share of networks of high quality."""
    rows = {**tables["networks"], "passed": np.isfinite(tables["networks"]["steps_to_rqi"])}
    with style(10.6):
        figure = Figure(figsize=(10.6, 7.6))
        words = f"matrix products count as equal up to a squared distance of δ = {setting.delta:g}"
        figure.suptitle(f"$S_3$: {said(setting)};\n{words}")
        top, bottom = figure.subplots(2, 3)
        show_line(rows, "rqi", np.max, "best", top[0])
        top[0].set(ylabel="RQI")
        top[1].axvline(0.5, color=REFERENCE, linestyle=":", linewidth=1, label="paper: 0.5")
        places = np.unique(rows["fraction"])
        fewest = [rows["steps_to_rqi"][rows["fraction"] == place].min() for place in places]
        top[1].plot(places, fewest, "o-", markersize=3.5, label="fewest steps")
        show_reached(rows, setting.steps, top[1])
        show_line(rows, "passed", np.mean, "share", top[2])
        top[2].set(ylabel=f"reached RQI > {GROKKED}", title="not in the paper")
        show_accuracies(rows, bottom)
        for ax, letter in zip((*top[:2], *bottom), "abcde", strict=True):
            ax.set_title(f"({letter})")
    return {"liu-18": figure}


@recipe(
    "liu-18",
    paper="Liu",
    item="Figure 18; Appendix H",
    shows="Networks on S_3: quality, steps and accuracies over the training fraction.",
    quick=Fractions(GroupDecoder(hidden=(50, 50)), (12, 24, 32), 3, 800, *OPTIONS),
    paper_setting=Fractions(GroupDecoder(), tuple(range(3, 36)), 11, 20_000, *OPTIONS),
    cost="one to two hours",
    rules=(
        Statement(
            "(a)",
            "RQI increases as training set becomes larger",
            "Figure 18 (a)",
            "Kendall's τ of the RQI with the training fraction; by chance 0",
            _rises("rqi"),
            chance=shuffled("networks", "rqi"),
            least=0.3,
        ),
        Number(
            "(b): r_c at which the best network begins to pass RQI 0.95",
            Printed("0.5", "Figure 18 (b)"),
            best_passes,
            margin=0.06,
            note="corrected after the run: networks are resampled; before, a jackknife, which had no width",
        ),
        Statement(
            "(b)",
            "the steps to reach RQI > 0.95 ... find a phase transition at r = r_c = 0.5",
            "Appendix H.2",
            "share of networks that pass with more than 0.6 of the data minus that with less than 0.4",
            passing_gap,
            chance=shuffled("networks", "steps_to_rqi"),
            least=0.3,
        ),
        Statement(
            "(c)",
            "The real accuracy Acc is shown in Figure 18 (c)",
            "Appendix H.2",
            "Kendall's τ of the accuracy on what was held out with the training fraction; by chance 0",
            _rises("validation_accuracy"),
            chance=shuffled("networks", "validation_accuracy"),
            least=0.3,
            note=SEEN,
        ),
        Statement(
            "(d)",
            "the predicted accuracy … (calculated from RQI) is shown in Figure 18 (d)",
            "Appendix H.2",
            "Kendall's τ of the predicted accuracy on what was held out with the training fraction",
            _rises("predicted_accuracy", held_out=True),
            chance=shuffled("networks", "predicted_accuracy"),
            least=0.3,
            note=SEEN,
        ),
        Statement(
            "(e)",
            "the predicted accuracy is a lower bound of Acc",
            "Appendix H.2",
            "share of networks whose accuracy is not below the predicted one",
            _bounded,
            chance=shuffled("networks", "predicted_accuracy"),
            least=0.9,
        ),
    ),
    draw=_draw_permutations,
)
def permutations(run: Run) -> Result:
    """Reproduce Figure 18 of Liu et al.: networks on permutations (S_3) over their training fraction.

    The table "networks" has a row for each network. The rules judge how representation quality, steps and
    accuracies depend on the fraction, and whether the predicted accuracy is a lower bound of the real one.
    """
    return Result({"networks": train_fractions(run)})
