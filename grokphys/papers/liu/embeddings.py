"""Liu et al., Figures 1, 21 and 22: principal components of the embeddings of transformers.

Liu et al., Figures 2 and 19: embeddings in the plane, of sums with their decoder, and of images.
"""

from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import product
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from numpy.typing import NDArray
from scipy.stats import special_ortho_group
from sklearn.decomposition import PCA

import nets
from analysis.phases.classification import DELAY
from analysis.plots import palette
from grokphys.papers import charts, counters, measures
from grokphys.papers.evidence import Columns, columns_of, joined, table_of, where
from grokphys.papers.liu.phases import ADAMW_DECAY, DATA, IMAGES, OTHER_DATA, SMALL
from grokphys.papers.recipe import Result, Run, Setting, Statement, recipe
from nets import Task, TokenTransformer, ToyAddition, train
from nets.engines.ensemble import draw
from nets.models.images import load_images
from nets.tasks import modular_addition
from physics import EffectiveTheory, Trajectory
from physics.seeds import generator
from physics.trajectory.schedule import recording_steps


def frequency_of(E: NDArray[Any]) -> int:
    """Return the frequency of largest power in a projection E (p, axes) of p tokens, from 1 to ⌊p/2⌋."""
    power = (np.abs(np.fft.rfft(E, axis=0)) ** 2).sum(axis=1)
    return int(power[1:].argmax()) + 1


def share_of(E: NDArray[Any], frequency: int) -> float:
    """Return the fraction of the variance of a projection E (p, axes) that belongs to one frequency.

    The number p of tokens must be odd, and the frequency from 1 to ⌊p/2⌋. The tokens must not coincide.
    """
    power = (np.abs(np.fft.fft(E - E.mean(axis=0), axis=0)) ** 2).sum(axis=1)
    return float(2 * power[frequency] / power.sum())


def structure_of(E: NDArray[Any], like: NDArray[Any] | None = None) -> float:
    """Return the fraction of the variance of a projection that lies at one frequency for each axis.

    `E` (p, axes) holds the projections of p tokens, and `like`, of the same shape, those that name the
    frequencies: of each axis the one of largest power. By default E names its own. Tokens must not coincide.
    """
    power, chosen = (
        np.abs(np.fft.rfft(points - points.mean(axis=0), axis=0))[1:] ** 2
        for points in (E, E if like is None else like)
    )
    return float(np.take_along_axis(power, chosen.argmax(axis=0)[None], axis=0).sum() / power.sum())


FINAL = {"components": "final"}
UNTRAINED = counters.instead("accuracy", rows=FINAL | {"step": 0}, of=FINAL | {"step": 20_000})


# -- Figures 1, 21, 22 -------------------------------------------------------------------------------------

COST = "0.1 s for each step and network, eleven hours on two cores; shared by liu-1, liu-21 and liu-22"
SEED = 2100
TURNS = 20
"""Number of random directions of the change with which Figure 21 is compared."""
LATE = "two of the four networks had been trained, but not measured, when this rule was written"


PAPER = Setting(
    model=TokenTransformer(causal=False), seeds=4, steps=100_000, frames=200, learning_rate=1e-3,
    weight_decay=0.0, embedding_weight_decay=ADAMW_DECAY, counts=(2, 4, 6, 10),
)  # fmt: skip
FIDELITY = (
    "nearest: with a causal mask, and with weight decay 1 for the decoder and 0 for the embedding; to be run "
    "again without the mask, with 0 and 0.01, as in the published code"
)
QUICK = {
    "model": SMALL, "seeds": 2, "steps": 200, "frames": 10, "weight_decay": 1.0,
    "embedding_weight_decay": 0.0,
}  # fmt: skip


def followed(run: Run) -> list[dict[str, NDArray[Any]]]:
    """Train networks, and measure each of them with its embedding reduced to principal components.

    Each network has its embeddings (frames, tokens, dim), its steps (frames,), and a table with a row for
    each frame, number of components and kind: "final" components are those of the last frame, "current" ones
    those of the same frame, and "actual" stands for the embedding as it is.
    """
    setting = run.setting
    return [
        run.keep(f"network-{k}", partial(_network, setting, run.seed(SEED), k), family="liu-1")
        for k in range(setting.seeds)
    ]


@cache
def _network(setting: Setting, seed: int, number: int) -> dict[str, NDArray[Any]]:
    model = setting.model
    trained = nets.train(
        model, runs=1, first_run=number, seed=seed, steps=setting.steps,
        record=recording_steps(max(setting.steps // setting.frames, 1), setting.steps).tolist(),
        observables=(*PARTS, "layers"), learning_rate=setting.learning_rate,
        weight_decay=setting.weight_decay, embedding_learning_rate=1e-3,
        embedding_weight_decay=setting.embedding_weight_decay,
    )  # fmt: skip
    ensemble = draw(model, runs=1, seed=seed, first_run=number)
    split = {"train_accuracy": ensemble.train[0], "validation_accuracy": ensemble.validation[0]}
    rows = []
    for frame, step in enumerate(trained.steps.tolist()):
        E = trained.positions[0, frame]
        versions: dict[tuple[str, int], Any] = {("actual", model.dim): E}
        for n, (name, axes) in product(setting.counts, (("final", trained.positions[0, -1]), ("current", E))):
            components = PCA(n).fit(axes)
            versions[name, n] = components.inverse_transform(components.transform(E))
        for (name, n), projected in versions.items():
            right = answered(model, trained, frame, projected, model.task.inputs) == model.task.labels
            accuracies = {part: float(right[index].mean()) for part, index in split.items()}
            rows.append({"step": step, "components": name, "n": n} | accuracies)
    return {"positions": trained.positions[0], "steps": trained.steps, **columns_of(rows)}


PARTS = ("train_accuracy", "validation_accuracy")


def actual(one: dict[str, NDArray[Any]]) -> NDArray[Any]:
    """Return the validation accuracy (frames,) of a network with its embeddings as they are.

    `one` is an item of what `followed` returns.
    """
    return one["validation_accuracy"][one["components"] == "actual"]


def answered(model: Any, trained: Trajectory, frame: int, E: Any, inputs: Any, run: int = 0) -> NDArray[Any]:
    """Return the classes of inputs by the layers of one network at one frame with another embedding E."""
    parameters = {
        name.removeprefix("layers."): torch.as_tensor(values[run : run + 1, frame]).float()
        for name, values in trained.observables.items()
        if name.startswith("layers.")
    }
    parameters["embedding"] = torch.as_tensor(np.asarray(E, np.float32))[None]
    with torch.no_grad():
        logits = model.outputs(parameters, torch.as_tensor(inputs)[None])
    return np.asarray(logits[0].argmax(-1))


def show_circle(E: Any, frequency: int, ax: Axes, *, title: str = "") -> None:
    """Draw a projection E (tokens, 2) with a line in the order of a frequency, and number up to 30 tokens."""
    tokens = len(E)
    order = np.argsort(frequency * np.arange(tokens) % tokens)
    ax.plot(*E[np.append(order, order[0])].T, color=palette.FRAME, linewidth=0.8, zorder=1)
    colors = np.empty((tokens, 4))
    colors[order] = palette.class_colors(tokens)
    ax.scatter(E[:, 0], E[:, 1], s=42, c=colors, zorder=2, linewidths=0)
    for token, (x, y) in enumerate(E if tokens <= 30 else ()):
        ax.annotate(str(token), (x, y), (4, 3), textcoords="offset points", fontsize="small")
    ax.set(xticks=[], yticks=[], title=title, aspect="equal", adjustable="datalim")
    ax.spines[:].set_visible(False)


# -- Figure 1 ----------------------------------------------------------------------------------------------


def _emerges(own: Columns) -> float:
    """Return how much more structure there is just after a network generalizes than just before.

    Before are the last frame with less than 50 % of the validation set and those up to `DELAY` steps earlier,
    after the first one with 90 % and those up to `DELAY` steps later. The result is NaN without either.
    """
    right, step = own["validation_accuracy"], own["step"]
    general = np.flatnonzero(right >= 0.9)
    failing = np.flatnonzero(right[: general[0]] < 0.5) if len(general) else general
    if not len(failing):
        return np.nan
    last, first = step[failing[-1]], step[general[0]]
    before = (last - DELAY <= step) & (step <= last)
    after = (first <= step) & (step <= first + DELAY)
    return float(own["structure"][after].mean() - own["structure"][before].mean())


@recipe(
    "liu-1", fidelity=FIDELITY, item="Figure 1", quick=QUICK, paper_setting=PAPER, source="Figure 1",
    cost=COST,
    rules=(
        Statement("coincides", "generalization coincides with the emergence of structure in the embeddings",
            "part of the variance of the first two components that lies at one frequency each, within 1000 "
            "steps after 90 % of validation minus within 1000 steps before the last frame below 50 %; by "
            "chance 0",
            measures.of_networks("frames", _emerges), least=0.2,
            chance=counters.shuffled("frames", "structure", within="network"),
            note="structure goes on growing (see the notes); with the courses of structure of two networks "
            f"exchanged, the gap is 0.11, so that growth alone gives as much; {LATE}"),
    ),
)  # fmt: skip
def emergence(run: Run) -> Result:
    """Embeddings of a transformer, projected on principal components, before and after it generalizes.

    The components are those of each step. Lines and colors follow the tokens in the order of the strongest
    frequency of the final components.

    Notes
    -----
    The table "frames" has a row for each network and recorded frame. The rule asks whether single frequencies
    hold more of their variance as soon as a network generalizes. The figure shows the first one that does.
    """
    ones = followed(run)
    structure = [[structure_of(PCA(2).fit_transform(E)) for E in one["positions"]] for one in ones]
    index = {"network": range(len(ones)), "step": ones[0]["steps"]}
    rows = table_of(index, validation_accuracy=[actual(one) for one in ones], structure=structure)
    one = next((one for one in ones if (actual(one) >= 0.9).any()), ones[0])
    accuracy, last = actual(one), len(actual(one)) - 1
    general = int(np.argmax(accuracy >= 0.9)) or last
    shown = sorted({0, general // 2, general, (general + last) // 2, last})
    frequency = frequency_of(PCA(2).fit_transform(one["positions"][-1]))
    with charts.panels(2.7 * len(shown), 3.3, 1, len(shown), squeeze=False) as (figure, axes):
        for ax, frame in zip(axes[0], shown, strict=True):
            title = f"step {one['steps'][frame]}\nvalidation {accuracy[frame]:.0%}"
            show_circle(PCA(2).fit_transform(one["positions"][frame]), frequency, ax, title=title)
    return Result({"frames": rows}, {"liu-1": figure})


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


def _hints(own: Columns) -> float:
    """Return how much more of the start's variance is structure than if the change had another direction."""
    turned = own["turned"].astype(bool)
    if not own["validation_accuracy"][0] > 0.99:
        return np.nan
    return float(own["share"][~turned].mean() - own["share"][turned].mean())


@recipe(
    "liu-21", item="Figure 21; Appendix K", quick=QUICK, paper_setting=PAPER, source="Appendix K",
    fidelity=FIDELITY,
    shows="The final and the initial embedding on principal axes; as the final one contains the initial "
    "one, the right panel shows some structure in any case. Lines and colors follow the tokens in the order "
    "of the strongest frequency of the final components.",
    cost=COST,
    rules=(
        Statement("lottery ticket",
            "the projection of the embeddings at initialization to the principal components of the "
            "embeddings at generalization seem to already contain much of that structure … the structured "
            "representation necessary for generalization already existed (partially) at initialization",
            "part of the start's variance on the final components that lies at their frequencies, minus the "
            "same if the embedding had changed in random directions; by chance 0; of networks above 99 %",
            measures.of_networks("hints", _hints), least=0.05,
            chance=counters.shuffled("hints", "share", within="network"), note=LATE),
    ),
)  # fmt: skip
def tickets(run: Run) -> Result:
    """Reproduce Figure 21 of Liu et al.: the final and the initial embedding on the final components.

    The initial embedding is also shown on its own components. The final components contain the initial
    embedding, so that they show some structure of it whatever was learned. The table "hints" therefore
    compares each network with `TURNS` networks of the same start whose embedding had changed as much in
    random directions, and the rule asks for more structure than these have.
    """
    parts, ones = [], followed(run)
    for network, one in enumerate(ones):
        start, end = one["positions"][[0, -1]].astype(np.float64)
        shares = _shares(start, end, generator(run.seed(SEED + 1 + network)))
        index, last = {"network": [network], "turned": [False] + [True] * TURNS}, actual(one)[-1]
        parts.append(table_of(index, share=shares, validation_accuracy=last))
    start, end = ones[0]["positions"][[0, -1]]
    components = PCA(2).fit(end)
    views = (components.transform(end), PCA(2).fit_transform(start), components.transform(start))
    frequency = frequency_of(views[0])
    with charts.panels(10.2, 3.8, 1, 3) as (figure, axes):
        for ax, view, points in zip(axes, VIEWS, views, strict=True):
            share = f"{share_of(points, frequency):.0%} of the variance"
            show_circle(points, frequency, ax, title=f"{view}\nfrequency {frequency}: {share}")
    return Result({"hints": joined(parts)}, {"liu-21": figure})


# -- Figure 22 ---------------------------------------------------------------------------------------------


def _few_suffice(own: Columns) -> float:
    """Return the best accuracy with a few final components, NaN for a network that does not generalize."""
    end = own["step"] == own["step"].max()
    right, components = own["validation_accuracy"][end], own["components"][end]
    if not (right[components == "actual"] >= 0.99).all():
        return np.nan
    return float(right[components == "final"].max())


def _final_better(own: Columns) -> float:
    """Return the mean lead of final over current components in the frames in which they differ.

    Both agree at the end and as long as nothing is learned, in a number of frames that says nothing.
    """
    final, current = (own["validation_accuracy"][own["components"] == n] for n in ("final", "current"))
    gap = (final - current)[np.abs(final - current) >= 0.02]
    return float(gap.mean()) if len(gap) else 0.0


@recipe(
    "liu-22", item="Figure 22; Appendix K", quick=QUICK, paper_setting=PAPER, source="Appendix K", cost=COST,
    fidelity=FIDELITY,
    rules=(
        Statement("a few suffice",
            "the first few principal components contain enough information to reach 99% accuracy",
            "mean validation accuracy at the end with the best number of final components, ten at most, of "
            "networks that reach 99 % with all dimensions",
            measures.of_networks("accuracy", _few_suffice), least=0.99, digits=3, possible=(0.0, 1.0),
            chance="none: most rows of a network that generalizes are near 1, and so are shuffled ones",
            counter=UNTRAINED,
            note=f"26 to 76 % with ten; the paper does not say how many its lines have; {LATE}"),
        Statement("final axes",
            "embeddings reconstructed from the PCA at the end of training (solid lines) perform better than "
            "current highest variance axes",
            "mean validation accuracy with final components minus that with current ones, over frames and "
            "numbers of components where they differ by 0.02 or more; by chance 0",
            measures.of_networks("accuracy", _final_better), least=0.05, digits=3,
            chance=counters.shuffled("accuracy", "validation_accuracy", within="network"), note=LATE),
    ),
)  # fmt: skip
def projections(run: Run) -> Result:
    """The accuracy that a few principal components carry, current or final ones.

    Notes
    -----
    The table "accuracy" holds the tables of all networks.
    """
    names = ("step", "components", "n", *PARTS)
    rows = joined(
        {name: one[name] for name in names} | {"network": np.full(len(one["step"]), network)}
        for network, one in enumerate(followed(run))
    )
    with charts.panels(10.6, 4.0, 1, 2, sharey=True) as (figure, axes):
        for ax, part in zip(axes, PARTS, strict=True):
            show_projected(where(rows, network=0), part, ax)
            ax.set_title(part.replace("_accuracy", "") + " set, first network")
        ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    return Result({"accuracy": rows}, {"liu-22": figure})


def show_projected(rows: Any, part: str, ax: Axes) -> None:
    """Draw the accuracy of one network with reduced embeddings over the steps of training.

    `part` is the column that is drawn. Lines are dashed for all dimensions, dotted for current components.
    """
    whole = where(rows, components="actual")
    ax.plot(whole["step"], whole[part], "k--", linewidth=1.2, label="all dimensions")
    counts = np.unique(rows["n"][rows["components"] != "actual"])
    for (components, line), (k, n) in product((("final", "-"), ("current", ":")), enumerate(counts)):
        own, label = where(rows, components=components, n=n), f"{n} {components} components"
        ax.plot(own["step"], own[part], line, color=palette.SERIES[k], linewidth=1.2, label=label)
    ax.set(xlabel="step", ylabel="accuracy", ylim=(0, 1.03))


# -- Figures 2, 19 -----------------------------------------------------------------------------------------

# -- Figure 2 ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ToyModularAddition(ToyAddition):
    """The toy model on modular addition, instead of plain addition (Liu et al., Figure 2 c and d)."""

    @cached_property
    def task(self) -> Task:
        """Task with an example for each unordered pair a ≤ b of tokens, whose label is (a + b) mod p."""
        return modular_addition(self.tokens, ordered=False)

    @cached_property
    def theory(self) -> EffectiveTheory:
        """Effective theory of addition modulo p, whose parallelograms define the quality of the embedding."""
        return EffectiveTheory(self.tokens, modulus=self.tokens)


MODELS = {"addition": ToyAddition, "modular addition": ToyModularAddition}


def plane_structure(E: NDArray[np.float64], operation: str) -> float:
    """Return how structured an embedding E (p, 2) is: a fraction of its variance, from 0 to 1.

    For the operation "addition" it is the fraction on a line with equal steps, and for "modular addition"
    that on a circle of one frequency.
    """
    if operation == "modular addition":
        return share_of(E, frequency_of(E - E.mean(axis=0)))
    steps = np.arange(len(E)) - (len(E) - 1) / 2
    centered = E - E.mean(axis=0)
    return float(np.sum((steps @ centered) ** 2) / (steps @ steps) / np.sum(centered**2))


@recipe(
    "liu-2", item="Figure 2", fidelity="nearest: the published notebooks have wider and deeper decoders with "
    "weight decay 5 and 10", quick={"hidden": (30, 30), "seeds": 4, "steps": 400, "grid": 60},
    paper_setting=Setting(hidden=(200, 200), seeds=40, steps=20_000, grid=300, tokens=11),
    source="Section 3", cost="ten to thirty minutes",
    rules=tuple(
        Statement(f"structure, {operation}",
            "generalization appears to be linked to the emergence of highly-structured embeddings",
            f"Kendall's τ of the accuracy in validation with the part of the variance that is {what}",
            measures.rank_correlation("networks", "structure", "validation_accuracy", operation=operation),
            least=0.2, chance=counters.shuffled("networks", "structure", within="operation"))
        for operation, what in (("addition", "a line of even steps"), ("modular addition", "one circle"))
    ),
)  # fmt: skip
def planar(run: Run) -> Result:
    """Embeddings of p = 11 in the plane, and the class that the decoder assigns to every point.

    Shown are the least and the most accurate of 40 networks with different learning rates. The color of a
    point is the class of a pair of embeddings whose midpoint it is.

    Notes
    -----
    The table "networks" has a
    row for each network. The rules ask whether networks generalize better the more structured their
    embeddings are.
    """
    setting = run.setting
    parts = {name: run.keep(name.replace(" ", "-"), partial(_train_planar, run, name)) for name in MODELS}
    names = ("validation_accuracy", "train_accuracy", "structure", "learning_rate")
    rows = joined({name: part[name] for name in names} for part in parts.values())
    rows["operation"] = np.repeat(list(parts), setting.seeds)
    with charts.panels(10.4, 10.4, 2, 2) as (figure, axes):
        for line, (name, part) in zip(axes, parts.items(), strict=True):
            for k, ax in enumerate(line):
                show_classes(part["E"][k], part["classes"][k], part["frame"][k], name, ax)
                title = f"{name}: validation accuracy {100 * part['shown'][k]:.0f} %"
                ax.set(xlabel="first coordinate", ylabel="second coordinate", title=title)
    return Result({"networks": rows}, {"liu-2": figure})


def _train_planar(run: Run, operation: str) -> dict[str, Any]:
    setting = run.setting
    model = MODELS[operation](setting.tokens, 2, hidden=setting.hidden, kind="classification")
    rates = np.geomspace(1e-4, 1e-2, setting.seeds)
    trained = train(
        model, runs=setting.seeds, steps=setting.steps, seed=run.seed(200 + len(operation)),
        learning_rate=rates.tolist(), weight_decay=0.0, embedding_learning_rate=1e-3, train_fraction=0.8,
        record=[setting.steps], observables=(*PARTS, "layers"),
    )  # fmt: skip
    accuracy = {k: trained.observables[k][:, -1].astype(float) for k in PARTS}
    shown = np.argsort(accuracy["validation_accuracy"], kind="stable")[[0, -1]]
    E = trained.final.astype(float)
    frames, classes = [], []
    for k in shown:
        reach = 1.15 * np.abs(E[k] - E[k].mean(axis=0)).max()
        x, y = (np.linspace(c - reach, c + reach, setting.grid) for c in E[k].mean(axis=0))
        points = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
        # The decoder takes the sum of two embeddings; here a point is their midpoint.
        itself = np.repeat(np.arange(len(points))[:, None], 2, axis=1)
        classes.append(answered(model, trained, -1, points, itself, k).reshape(setting.grid, setting.grid))
        frames.append([x[0], x[-1], y[0], y[-1]])
    return accuracy | {
        "structure": [plane_structure(one, operation) for one in E], "learning_rate": rates, "E": E[shown],
        "classes": classes, "frame": frames, "shown": accuracy["validation_accuracy"][shown],
    }  # fmt: skip


def show_classes(E: Any, classes: Any, frame: Any, operation: str, ax: Axes) -> None:
    """Draw the decoder's class of each point of the plane, and the embeddings E (tokens, 2) with numbers.

    `classes` (grid, grid) are the classes of points within the `frame`: left, right, bottom, top. The decoder
    takes a sum of two embeddings, and the point drawn is their midpoint. The operation determines the colors.
    """
    modular = operation == "modular addition"
    count = len(E) if modular else 2 * len(E) - 1
    some_colors = palette.class_colors if modular else palette.graded_colors
    colors = np.array([tuple(color)[:3] for color in some_colors(count)])
    ax.imshow(0.45 + 0.55 * colors[classes], extent=frame, origin="lower", aspect="auto")
    size = charts.points(12.5) ** 2
    ax.scatter(E[:, 0], E[:, 1], s=size, color=palette.WHITE, edgecolors=palette.INK, zorder=2)
    for token, (x, y) in enumerate(E):
        ax.annotate(str(token), (x, y), ha="center", va="center", fontsize="small", zorder=3)


# -- Figure 19 ---------------------------------------------------------------------------------------------


@recipe(
    "liu-19", fidelity=OTHER_DATA, item=f"Figure 19, on {IMAGES}; Appendix I",
    quick={"encoders": 2, "images": 200},
    paper_setting=Setting(encoders=20, images=1500, data=DATA, hidden=200, steps=100, rate=1e-3),
    source="Appendix I", independent="encoder", cost="a minute",
    rules=(
        Statement("collapse", "Images of the same class collapse to their class-means",
            "variance about the class means after 100 steps over that at the start",
            measures.mean("encoders", "within_end / within_start"), most=0.1,
            chance="none: start and end are of the same images, and no order of encoders changes their ratio",
            counter=counters.replaced("encoders", within_start="between_start", within_end="between_end")),
        Statement("classes", "and different class-means do not collapse",
            "variance of the class means after 100 steps over that at the start",
            measures.mean("encoders", "between_end / between_start"), least=0.5, chance="none: as above",
            counter=counters.replaced("encoders", between_start="within_start", between_end="within_end")),
    ),
)  # fmt: skip
def collapse(run: Run) -> Result:
    """Images that move by the effective loss, within and between classes.

    Notes
    -----
    The table "encoders" has a row for each encoder. The rules judge the variance about the class means, and
    that of the class means, at the end relative to the start.
    """
    setting = run.setting
    images = load_images(setting.data, 10)
    chosen = generator(run.seed(1900)).permutation(len(images))[: setting.images]
    pixels, labels = torch.as_tensor(images.inputs[chosen]), images.labels[chosen]
    paths = [_descend(setting, pixels, labels, run.seed(1900 + k)) for k in range(setting.encoders)]
    rows: dict[str, Any] = {"encoder": np.arange(setting.encoders)}
    for when, frame in (("start", 0), ("end", -1)):
        parts = np.array([_variances(path[frame], labels) for path in paths])
        rows[f"within_{when}"], rows[f"between_{when}"], rows[f"norm_{when}"] = parts.T
    title = f"{len(labels)} images of {setting.data}; each class has its digit left of its median"
    with charts.panels(11.6, 4.2, 1, 3, title) as (figure, axes):
        colors = palette.class_colors(10)
        for ax, frame in zip(axes, (0, setting.steps // 2, setting.steps), strict=True):
            E = paths[0][frame]
            ax.scatter(*E.T, s=6, c=colors[labels], linewidths=0)
            for digit, color in enumerate(colors):
                middle = np.median(E[labels == digit], axis=0)
                box = {"boxstyle": "circle,pad=0.1", "facecolor": palette.WHITE, "edgecolor": color}
                beside = {"xytext": (-15, 0), "textcoords": "offset points", "ha": "center", "va": "center"}
                ax.annotate(str(digit), middle, bbox=box, fontsize="small", **beside)
            ax.margins(x=0.1)
            ax.set(title=f"step {frame}", xlabel="first coordinate", xticks=[], yticks=[])
        axes[0].set_ylabel("second coordinate")
    return Result({"encoders": rows}, {"liu-19": figure})


def _descend(setting: Setting, pixels: Any, labels: Any, seed: int) -> NDArray[np.float64]:
    """Return the embeddings (steps + 1, images, 2) at the start and after each step of Adam.

    A random encoder maps `pixels` (images, features) to the start. The embeddings themselves, without the
    encoder, then descend the effective loss (Eq. 32 of Liu et al.) for the classes `labels` (images,).
    """
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        sizes = (pixels.shape[1], setting.hidden), (setting.hidden, setting.hidden), (setting.hidden, 2)
        first, second, last = (torch.nn.Linear(*pair) for pair in sizes)
        f = last(second(first(pixels).relu()).relu())
    f.requires_grad_()
    members = torch.nn.functional.one_hot(torch.as_tensor(labels).long(), 10).float()
    count = members.sum(dim=0)
    optimizer = torch.optim.Adam([f], lr=setting.rate)
    path = [f.detach().numpy().astype(float)]
    for _ in range(setting.steps):
        optimizer.zero_grad()
        # Σ |f(x) - f(y)|² over the pairs of a class of n is n Σ |f|² - |Σ f|².
        squares, sums = members.T @ (f**2).sum(dim=1), members.T @ f
        loss = (count * squares - (sums**2).sum(dim=1)).sum() / (f**2).sum()
        loss.backward()
        optimizer.step()
        path.append(f.detach().numpy().astype(float))
    return np.array(path)


def _variances(f: NDArray[np.float64], labels: Any) -> tuple[float, float, float]:
    """Return the variance about the class means, the variance of these means, and Z = Σ |f|².

    `f` (images, 2) are embeddings and `labels` (images,) their classes, from 0 to 9.
    """
    means = np.array([f[labels == k].mean(axis=0) for k in range(10)])
    within = np.mean(np.sum((f - means[labels]) ** 2, axis=1))
    return float(within), float(means.var(axis=0).sum()), float(np.sum(f**2))
