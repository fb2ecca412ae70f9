"""Liu et al., Figures 1, 21 and 22: principal components of the embeddings of transformers."""

from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.stats import special_ortho_group
from sklearn.decomposition import PCA

import nets
from analysis.phases.classification import DELAY
from analysis.plots.palette import FRAME, SERIES, class_colors
from analysis.plots.style import style
from analysis.stats.intervals import Interval
from grokphys.papers.counters.liu import UNTRAINED
from grokphys.papers.evidence import by_network, mean, shuffled, where
from grokphys.papers.liu.figure_07 import EMBEDDING, SMALL, Followed
from grokphys.papers.liu.measures import frequency_of, share_of, structure_of
from grokphys.papers.recipe import Result, Run, Statement, Tables, recipe
from nets import TokenTransformer
from nets.engines.ensemble import draw
from physics.seeds import generator
from physics.trajectory import Trajectory

APPENDIX = "Appendix K"
COST = "0.1 s for each step and network, two hours on two cores; shared by liu-1, liu-21 and liu-22"
SEED = 2100
LINES = "Lines and colors follow the tokens in the order of the strongest frequency of the final components."
TURNS = 20
"""Number of random directions of the change with which Figure 21 is compared."""
LATE = "two of the four networks had been trained, but not measured, when this rule was written"


@dataclass(frozen=True)
class Projected(Followed):
    """Setting of Figures 1, 21 and 22: transformers whose weights are recorded at some steps.

    Attributes
    ----------
    frames : int, default 40
        Approximate number of recorded frames after the start.
    counts : tuple of int, default (2, 4, 6, 10)
        Numbers of principal components to which embeddings are reduced.
    """

    frames: int = 40
    counts: tuple[int, ...] = (2, 4, 6, 10)


QUICK = Projected(SMALL, 2, 200, frames=10)
PAPER = Projected(TokenTransformer(), 4, 20_000)


def followed(run: Run) -> list[dict[str, NDArray[Any]]]:
    """Train networks, and measure each of them with its embedding reduced to principal components.

    Each network has its embeddings (frames, tokens, dim), its steps (frames,), and a table with a row for
    each frame, number of components and kind: "final" components are those of the last frame, "current" ones
    those of the same frame, and "actual" stands for the embedding as it is.
    """
    setting: Projected = run.setting
    return [
        run.keep(f"network-{k}", partial(_network, setting, k), family="liu-1") for k in range(setting.seeds)
    ]


@cache
def _network(setting: Projected, number: int) -> dict[str, NDArray[Any]]:
    model = setting.model
    trained = nets.train(
        model,
        runs=1,
        first_run=number,
        seed=SEED,
        steps=setting.steps,
        record=nets.recording_steps(max(setting.steps // setting.frames, 1), setting.steps).tolist(),
        observables=("train_accuracy", "validation_accuracy", "layers"),
        learning_rate=setting.learning_rate,
        weight_decay=setting.weight_decay,
        **EMBEDDING,
    )
    ensemble = draw(model, runs=1, seed=SEED, first_run=number)
    split = {"train": ensemble.train[0], "validation": ensemble.validation[0]}
    final = {n: PCA(n).fit(trained.positions[0, -1]) for n in setting.counts}
    found: dict[str, list[Any]] = {name: [] for name in ("step", "components", "n", *PARTS)}
    for frame, step in enumerate(trained.steps.tolist()):
        E = trained.positions[0, frame]
        versions: dict[tuple[str, int], Any] = {("actual", model.dim): E}
        for n in setting.counts:
            own = PCA(n).fit(E)
            versions["final", n] = final[n].inverse_transform(final[n].transform(E))
            versions["current", n] = own.inverse_transform(own.transform(E))
        for (components, n), projected in versions.items():
            right = _accuracies(model, trained, frame, projected, split)
            row = (step, components, n, *(right[part] for part in PARTS))
            for name, value in zip(found, row, strict=True):
                found[name].append(value)
    accuracy = {name: np.array(values) for name, values in found.items()}
    return {"positions": trained.positions[0], "steps": trained.steps, **accuracy}


PARTS = ("train_accuracy", "validation_accuracy")


def actual(one: dict[str, NDArray[Any]]) -> NDArray[Any]:
    """Return the validation accuracy (frames,) of a network with its embeddings as they are.

    `one` is an item of what `followed` returns.
    """
    return one["validation_accuracy"][one["components"] == "actual"]


def _accuracies(
    model: TokenTransformer, trained: Trajectory, frame: int, E: NDArray[Any], split: dict[str, Any]
) -> dict[str, float]:
    """Return the training and the validation accuracy of a network at one frame with another embedding.

    `E` (tokens, dim) replaces the embedding, `trained` holds the layers of each frame, and `split` the
    indices of the examples of both sets. The keys are those of `PARTS`.
    """
    parameters = {
        name.removeprefix("layers."): torch.as_tensor(values[:1, frame])
        for name, values in trained.observables.items()
        if name.startswith("layers.")
    }
    parameters["embedding"] = torch.as_tensor(np.asarray(E, np.float32))[None]
    with torch.no_grad():
        logits = model.outputs(parameters, torch.as_tensor(model.task.inputs)[None])
    right = logits[0].argmax(-1).numpy() == model.task.labels
    return {f"{part}_accuracy": float(right[index].mean()) for part, index in split.items()}


def show_circle(E: Any, frequency: int, ax: Axes, *, title: str = "") -> None:
    """Draw a projection E (tokens, 2) with a line in the order of a frequency, and number up to 30 tokens."""
    tokens = len(E)
    order = np.argsort(frequency * np.arange(tokens) % tokens)
    ax.plot(*E[np.append(order, order[0])].T, color=FRAME, linewidth=0.8, zorder=1)
    colors = np.empty((tokens, 4))
    colors[order] = class_colors(tokens)
    ax.scatter(E[:, 0], E[:, 1], s=42, c=colors, zorder=2, linewidths=0)
    for token, (x, y) in enumerate(E if tokens <= 30 else ()):
        ax.annotate(str(token), (x, y), (4, 3), textcoords="offset points", fontsize="small")
    ax.set(xticks=[], yticks=[], title=title, aspect="equal", adjustable="datalim")
    ax.spines[:].set_visible(False)


# -- Figure 1 ----------------------------------------------------------------------------------------------


def _emerges(tables: Tables, level: float) -> Interval:
    """Return how much more structure there is just after a network generalizes than just before.

    Before are the last frame with less than 50 % of the validation set and those up to `DELAY` steps earlier,
    after the first one with 90 % and those up to `DELAY` steps later. Networks without either do not count.
    """
    gaps = []
    for own in by_network(tables["frames"]):
        right, step = own["validation_accuracy"], own["step"]
        general = np.flatnonzero(right >= 0.9)
        failing = np.flatnonzero(right[: general[0]] < 0.5) if len(general) else general
        if len(failing):
            last, first = step[failing[-1]], step[general[0]]
            before = (last - DELAY <= step) & (step <= last)
            after = (first <= step) & (step <= first + DELAY)
            gaps.append(own["structure"][after].mean() - own["structure"][before].mean())
    return mean(gaps, level)


@recipe(
    "liu-1",
    paper="Liu",
    item="Figure 1",
    shows="Embeddings of a transformer, projected on principal components, before and after it generalizes. "
    f"The components are those of each step. {LINES}",
    quick=QUICK,
    paper_setting=PAPER,
    cost=COST,
    rules=(
        Statement(
            "coincides",
            "generalization coincides with the emergence of structure in the embeddings",
            "Figure 1",
            "part of the variance of the first two components that lies at one frequency each, within 1000 "
            "steps after 90 % of validation minus within 1000 steps before the last frame below 50 %; by "
            "chance 0",
            _emerges,
            chance=shuffled("frames", "structure", within="network"),
            least=0.2,
            note="structure goes on growing (see the notes); with the courses of structure of two networks "
            f"exchanged, the gap is 0.11, so that growth alone gives as much; {LATE}",
        ),
    ),
)
def emergence(run: Run) -> Result:
    """Reproduce Figure 1 of Liu et al.: the first two principal components of the embeddings over training.

    The table "frames" has a row for each network and recorded frame. The rule asks whether single frequencies
    hold more of their variance as soon as a network generalizes. The figure shows the first one that does.
    """
    ones = followed(run)
    frames: dict[str, list[Any]] = {n: [] for n in ("network", "step", "validation_accuracy", "structure")}
    for network, one in enumerate(ones):
        for step, E, accuracy in zip(one["steps"], one["positions"], actual(one), strict=True):
            row = (network, int(step), float(accuracy), structure_of(PCA(2).fit_transform(E)))
            for name, value in zip(frames, row, strict=True):
                frames[name].append(value)
    one = next((one for one in ones if (actual(one) >= 0.9).any()), ones[0])
    accuracy, last = actual(one), len(actual(one)) - 1
    general = int(np.argmax(accuracy >= 0.9)) or last
    shown = sorted({0, general // 2, general, (general + last) // 2, last})
    frequency = frequency_of(PCA(2).fit_transform(one["positions"][-1]))
    with style(2.7 * len(shown)):
        figure = Figure(figsize=(2.7 * len(shown), 3.3))
        for ax, frame in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown, strict=True):
            title = f"step {one['steps'][frame]}\nvalidation {accuracy[frame]:.0%}"
            show_circle(PCA(2).fit_transform(one["positions"][frame]), frequency, ax, title=title)
    return Result({"frames": frames}, {"liu-1": figure})


# -- Figure 21 ---------------------------------------------------------------------------------------------

VIEWS = ("final, on its own components", "initial, on its own components", "initial, on the final components")


def _shares(start: NDArray[Any], end: NDArray[Any], random: np.random.Generator) -> list[float]:
    """Return the parts of the start's variance on the final components that lie at their frequencies.

    The first is that of the embedding `end` (tokens, dim). The others belong to `TURNS` embeddings that have
    changed as much in random directions: what is left of the `start` stays, and the rest is turned.
    """
    left = (start * end).sum() / (start**2).sum() * start
    turns = special_ortho_group(start.shape[1], seed=random).rvs(TURNS)
    ends = [end, *(left + (end - left) @ turn for turn in turns)]
    axes = [PCA(2).fit(E) for E in ends]
    return [structure_of(one.transform(start), one.transform(E)) for one, E in zip(axes, ends, strict=True)]


def _hints(tables: Tables, level: float) -> Interval:
    gaps = []
    for own in by_network(tables["hints"]):
        if own["validation_accuracy"][0] > 0.99:
            turned = own["turned"].astype(bool)
            gaps.append(own["share"][~turned].mean() - own["share"][turned].mean())
    return mean(gaps, level)


@recipe(
    "liu-21",
    paper="Liu",
    item="Figure 21; Appendix K",
    shows="The final and the initial embedding on principal axes; as the final one contains the initial one, "
    f"the right panel shows some structure in any case. {LINES}",
    quick=QUICK,
    paper_setting=PAPER,
    cost=COST,
    rules=(
        Statement(
            "lottery ticket",
            "the projection of the embeddings at initialization to the principal components of the "
            "embeddings at generalization seem to already contain much of that structure … the structured "
            "representation necessary for generalization already existed (partially) at initialization",
            APPENDIX,
            "part of the start's variance on the final components that lies at their frequencies, minus the "
            "same if the embedding had changed in random directions; by chance 0; of networks above 99 %",
            _hints,
            chance=shuffled("hints", "share", within="network"),
            least=0.05,
            note=LATE,
        ),
    ),
)
def tickets(run: Run) -> Result:
    """Reproduce Figure 21 of Liu et al.: the final and the initial embedding on the final components.

    The initial embedding is also shown on its own components. The final components contain the initial
    embedding, so that they show some structure of it whatever was learned. The table "hints" therefore
    compares each network with `TURNS` networks of the same start whose embedding had changed as much in
    random directions, and the rule asks for more structure than these have.
    """
    hints: dict[str, list[Any]] = {n: [] for n in ("network", "turned", "share", "validation_accuracy")}
    ones = followed(run)
    for network, one in enumerate(ones):
        start, end = one["positions"][[0, -1]].astype(np.float64)
        hints["network"] += [network] * (1 + TURNS)
        hints["turned"] += [False] + [True] * TURNS
        hints["share"] += _shares(start, end, generator(SEED + 1 + network))
        hints["validation_accuracy"] += [float(actual(one)[-1])] * (1 + TURNS)
    start, end = ones[0]["positions"][[0, -1]]
    axes = PCA(2).fit(end)
    views = (axes.transform(end), PCA(2).fit_transform(start), axes.transform(start))
    frequency = frequency_of(views[0])
    with style(10.2):
        figure = Figure(figsize=(10.2, 3.8))
        for ax, view, points in zip(figure.subplots(1, 3), VIEWS, views, strict=True):
            share = f"{share_of(points, frequency):.0%} of the variance"
            show_circle(points, frequency, ax, title=f"{view}\nfrequency {frequency}: {share}")
    return Result({"hints": hints}, {"liu-21": figure})


# -- Figure 22 ---------------------------------------------------------------------------------------------


def _few_suffice(tables: Tables, level: float) -> Interval:
    best = []
    for own in by_network(tables["accuracy"]):
        end = own["step"] == own["step"].max()
        right, components = own["validation_accuracy"][end], own["components"][end]
        if (right[components == "actual"] >= 0.99).all():
            best.append(right[components == "final"].max())
    return mean(best, level)


def _final_better(tables: Tables, level: float) -> Interval:
    """Return the mean lead of final over current components where they differ, as a mean over networks.

    Both agree at the end and as long as nothing is learned, in a number of frames that says nothing.
    """
    means = []
    for own in by_network(tables["accuracy"]):
        final, current = (own["validation_accuracy"][own["components"] == n] for n in ("final", "current"))
        gap = (final - current)[np.abs(final - current) >= 0.02]
        means.append(gap.mean() if len(gap) else 0.0)
    return mean(means, level)


@recipe(
    "liu-22",
    paper="Liu",
    item="Figure 22; Appendix K",
    shows="The accuracy that a few principal components carry, current or final ones.",
    quick=QUICK,
    paper_setting=PAPER,
    cost=COST,
    rules=(
        Statement(
            "a few suffice",
            "the first few principal components contain enough information to reach 99% accuracy",
            APPENDIX,
            "mean validation accuracy at the end with the best number of final components, ten at most, of "
            "networks that reach 99 % with all dimensions",
            _few_suffice,
            chance="none: most rows of a network that generalizes are near 1, and so are shuffled ones",
            counter=UNTRAINED,
            least=0.99,
            digits=3,
            note=f"26 to 76 % with ten; the paper does not say how many its lines have; {LATE}",
            possible=(0.0, 1.0),
        ),
        Statement(
            "final axes",
            "embeddings reconstructed from the PCA at the end of training (solid lines) perform better than "
            "current highest variance axes",
            APPENDIX,
            "mean validation accuracy with final components minus that with current ones, over frames and "
            "numbers of components where they differ by 0.02 or more; by chance 0",
            _final_better,
            chance=shuffled("accuracy", "validation_accuracy", within="network"),
            least=0.05,
            digits=3,
            note=LATE,
        ),
    ),
)
def projections(run: Run) -> Result:
    """Reproduce Figure 22 of Liu et al.: the accuracy with embeddings reduced to a few components.

    The table "accuracy" holds the tables of all networks.
    """
    ones = followed(run)
    names = ("step", "components", "n", *PARTS)
    rows: dict[str, Any] = {name: np.concatenate([one[name] for one in ones]) for name in names}
    rows["network"] = np.repeat(np.arange(len(ones)), [len(one["step"]) for one in ones])
    with style(10.6):
        figure = Figure(figsize=(10.6, 4.0))
        for ax, part in zip(figure.subplots(1, 2, sharey=True), PARTS, strict=True):
            show_projected(where(rows, network=0), part, ax)
            ax.set_title(part.replace("_accuracy", "") + " set, first network")
        ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    return Result({"accuracy": rows}, {"liu-22": figure})


def show_projected(rows: Any, part: str, ax: Axes) -> None:
    """Draw the accuracy of one network with reduced embeddings over the steps of training.

    `part` is the column that is drawn. Lines are dashed for all dimensions, dotted for current components.
    """
    lines = {"actual": "--", "final": "-", "current": ":"}
    counts = sorted(set(rows["n"][rows["components"] != "actual"].tolist()))
    for components, line in lines.items():
        for n in counts if components != "actual" else [int(rows["n"].max())]:
            own = where(rows, components=components, n=n)
            color = SERIES[counts.index(n)] if components != "actual" else "k"
            label = "all dimensions" if components == "actual" else f"{n} {components} components"
            ax.plot(own["step"], own[part], line, color=color, linewidth=1.2, label=label)
    ax.set(xlabel="step", ylabel="accuracy", ylim=(0, 1.03))
