"""Liu et al., Figures 1, 21 and 22: principal components of the embeddings of transformers.

Liu et al., Figures 2 and 19: embeddings in the plane, of sums with their decoder, and of images.
"""

from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from numpy.typing import NDArray
from scipy.stats import special_ortho_group
from sklearn.decomposition import PCA

import nets
from analysis.circles.fourier import frequency_norms
from analysis.phases import DELAY
from analysis.plots import palette
from grokphys.papers import charts, counters, measures
from grokphys.papers.evidence import Columns, columns_of, joined, table_of, where
from grokphys.papers.liu.phases import ADAMW_DECAY, DATA, IMAGES, OTHER_DATA, SMALL
from grokphys.papers.liu.transition import train_networks
from grokphys.papers.recipe import Result, Run, Setting, Statement, recipe
from nets import Task, TokenTransformer, ToyAddition
from nets.models.dense import load_images
from nets.tasks import modular_addition
from physics import EffectiveTheory
from physics.seeds import generator

PARTS = ("train_accuracy", "validation_accuracy")


def frequency_of(E: NDArray[Any]) -> int:
    """Return the frequency of largest power in a projection E (p, axes) of p tokens, from 1 to ⌊p/2⌋."""
    return int(frequency_norms(E).argmax()) + 1


def share_of(E: NDArray[Any], frequency: int) -> float:
    """Return the fraction of the variance of a projection E (p, axes) that belongs to one frequency.

    The number p of tokens must be odd, and the frequency from 1 to ⌊p/2⌋. The tokens must not coincide.
    """
    power = frequency_norms(E) ** 2
    return float(power[frequency - 1] / power.sum())


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


# -- Figures 1, 21, 22 -------------------------------------------------------------------------------------

SEED = 2100
TURNS = 20
"""Number of random directions of the change with which Figure 21 is compared."""
LATE = "two of the four networks had been trained, but not measured, when this rule was written"
FOLLOWED: dict[str, Any] = {
    "quick": {"model": SMALL, "seeds": 2, "steps": 200, "frames": 10, "weight_decay": 1.0,
        "embedding_weight_decay": 0.0},
    "paper_setting": Setting(
        model=TokenTransformer(59, depth=3, width=128, dropout=0.05, causal=False), seeds=4, steps=20_000,
        frames=200, learning_rate=2e-4, weight_decay=1.0, embedding_weight_decay=ADAMW_DECAY,
        counts=(2, 4, 6, 10),
    ),
    "cost": "0.2 to 0.4 s for each step and network, 5 to 9 hours; shared by liu-1, liu-21 and liu-22",
    "fidelity": "nearest: 53 tokens, two wider blocks without dropout and with a causal mask, a decoder of "
    "rate 1e-3, and an embedding without decay; to be run again with what the authors' programs note",
}  # fmt: skip
"""Arguments of the recipes of the three figures.

The authors' plots load "modular-addition59-deep", "one layer deeper" than their default of two, we suppose.
Other arguments are those that `scripts/plot.py` of their branch `prototype` notes, for a run of another name
("modular add"); no decay of the embedding is, so that PyTorch's default holds.
"""


def followed(run: Run) -> list[dict[str, NDArray[Any]]]:
    """Train networks, and measure each of them with its embedding reduced to principal components.

    Each network has its embeddings (frames, tokens, dim), its steps (frames,), and a table with a row for
    each frame, number of components and kind: "final" components are those of the last frame, "current" ones
    those of the same frame, and "actual" stands for the embedding as it is.
    """
    make = partial(_network, run.setting, run.seed(SEED))
    return [run.keep(f"network-{k}", partial(make, k), family="liu-1") for k in range(run.setting.seeds)]


def _network(setting: Setting, seed: int, number: int) -> dict[str, NDArray[Any]]:
    model = setting.model
    trained = nets.train(
        model, runs=1, first_run=number, seed=seed, steps=setting.steps,
        record=max(setting.steps // setting.frames, 1), observables=(*PARTS, "layers"),
        learning_rate=setting.learning_rate, weight_decay=setting.weight_decay,
        embedding_learning_rate=1e-3, embedding_weight_decay=setting.embedding_weight_decay,
    )  # fmt: skip
    rows = []
    for frame, step in enumerate(trained.steps.tolist()):
        E, layers = trained.positions[0, frame], nets.networks(trained, frame)
        versions: dict[tuple[str, int], Any] = {("actual", model.dim): E}
        for n, (name, axes) in product(setting.counts, (("final", trained.positions[0, -1]), ("current", E))):
            components = PCA(n).fit(axes)
            versions[name, n] = components.inverse_transform(components.transform(E))
        for (name, n), projected in versions.items():
            changed = layers.with_embedding(projected)
            right = {f"{part}_accuracy": changed.accuracy(part)[0] for part in ("train", "validation")}
            rows.append({"step": step, "components": name, "n": n} | right)
    return {"positions": trained.positions[0], "steps": trained.steps, **columns_of(rows)}


def actual(one: dict[str, NDArray[Any]]) -> NDArray[Any]:
    """Return the validation accuracy (frames,) of a network with its embeddings as they are.

    `one` is an item of what `followed` returns.
    """
    return one["validation_accuracy"][one["components"] == "actual"]


def show_circle(E: Any, frequency: int, ax: Axes, title: str) -> None:
    """Draw a projection E (tokens, 2) with a line in the order of a frequency, and number up to 30 tokens."""
    order = np.argsort(frequency * np.arange(len(E)) % len(E))
    ax.plot(*E[np.append(order, order[0])].T, color=palette.FRAME, linewidth=0.8, zorder=1)
    ax.scatter(E[order, 0], E[order, 1], s=42, c=palette.class_colors(len(E)), zorder=2, linewidths=0)
    for token, place in enumerate(E if len(E) <= 30 else ()):
        ax.annotate(str(token), place, (4, 3), textcoords="offset points", fontsize="small")
    ax.set(xticks=[], yticks=[], title=title, aspect="equal", adjustable="datalim")
    ax.spines[:].set_visible(False)


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
    before, after = (last - DELAY <= step) & (step <= last), (first <= step) & (step <= first + DELAY)
    return float(own["structure"][after].mean() - own["structure"][before].mean())


@recipe(
    "liu-1", item="Figure 1", source="Figure 1", **FOLLOWED,
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
            show_circle(PCA(2).fit_transform(one["positions"][frame]), frequency, ax, title)
    return Result({"frames": rows}, {"liu-1": figure})


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
    gap = float(own["share"][~turned].mean() - own["share"][turned].mean())
    return gap if own["validation_accuracy"][0] > 0.99 else np.nan


@recipe(
    "liu-21", item="Figure 21; Appendix K", source="Appendix K", **FOLLOWED,
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
    """The final and the initial embedding on principal axes.

    As the final one contains the initial one, the right panel shows some structure in any case. Lines and
    colors follow the tokens in the order of the strongest frequency of the final components.

    Notes
    -----
    The table "hints" compares each network with `TURNS` networks of the same start whose embedding has
    changed as much in random directions, and the rule asks for more structure than these have.
    """
    parts, ones = [], followed(run)
    for network, one in enumerate(ones):
        start, end = one["positions"][[0, -1]].astype(np.float64)
        shares = _shares(start, end, generator(run.seed(SEED + 1 + network)))
        index = {"network": [network], "turned": [False] + [True] * TURNS}
        parts.append(table_of(index, share=shares, validation_accuracy=actual(one)[-1]))
    start, end = ones[0]["positions"][[0, -1]]
    own, last = PCA(2).fit(start), PCA(2).fit(end)
    views = last.transform(end), own.transform(start), last.transform(start)
    names = "final, on its own", "initial, on its own", "initial, on the final"
    frequency = frequency_of(views[0])
    with charts.panels(10.2, 3.8, 1, 3) as (figure, axes):
        for ax, name, points in zip(axes, names, views, strict=True):
            share = f"frequency {frequency}: {share_of(points, frequency):.0%} of the variance"
            show_circle(points, frequency, ax, f"{name} components\n{share}")
    return Result({"hints": joined(parts)}, {"liu-21": figure})


FINAL = {"components": "final"}


def _few_suffice(own: Columns) -> float:
    """Return the best accuracy with a few final components, NaN for a network that does not generalize."""
    end = own["step"] == own["step"].max()
    right, components = own["validation_accuracy"][end], own["components"][end]
    whole = (right[components == "actual"] >= 0.99).all()
    return float(right[components == "final"].max()) if whole else np.nan


def _final_better(own: Columns) -> float:
    """Return the mean lead of final over current components in the frames in which they differ.

    Both agree at the end and as long as nothing is learned, in a number of frames that says nothing.
    """
    final, current = (own["validation_accuracy"][own["components"] == n] for n in ("final", "current"))
    gap = (final - current)[np.abs(final - current) >= 0.02]
    return float(gap.mean()) if len(gap) else 0.0


def _draw_projected(setting: Setting, tables: Any, *axes: Any) -> None:
    """Draw the accuracies of the first network with reduced embeddings over the steps of training.

    Lines are dashed for all dimensions, dotted for current components.
    """
    rows = where(tables["accuracy"], network=0)
    for ax, part in zip(axes, PARTS, strict=True):
        whole = where(rows, components="actual")
        ax.plot(whole["step"], whole[part], "k--", linewidth=1.2, label="all dimensions")
        for (kind, line), (k, n) in product((("final", "-"), ("current", ":")), enumerate(setting.counts)):
            own, label = where(rows, components=kind, n=n), f"{n} {kind} components"
            ax.plot(own["step"], own[part], line, color=palette.SERIES[k], linewidth=1.2, label=label)
        title = part.replace("_accuracy", "") + " set, first network"
        charts.label(ax, "step", "accuracy", title, ylim=(0, 1.03), legend=False)
    axes[1].legend(loc="center left", bbox_to_anchor=(1.01, 0.5))


@recipe(
    "liu-22", item="Figure 22; Appendix K", source="Appendix K", draw=_draw_projected,
    panels=(10.6, 4.0, 1, 2), **FOLLOWED,
    rules=(
        Statement("a few suffice",
            "the first few principal components contain enough information to reach 99% accuracy",
            "mean validation accuracy at the end with the best number of final components, ten at most, of "
            "networks that reach 99 % with all dimensions",
            measures.of_networks("accuracy", _few_suffice), least=0.99, digits=3, possible=(0.0, 1.0),
            chance=counters.instead("accuracy", rows=FINAL | {"step": 0}, of=FINAL | {"step": 20_000}),
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
    rows = joined(one | {"network": np.full(len(one["step"]), k)} for k, one in enumerate(followed(run)))
    names = ("step", "components", "n", *PARTS, "network")
    return Result({"accuracy": {name: rows[name] for name in names}})


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
    centered, steps = E - E.mean(axis=0), np.arange(len(E)) - (len(E) - 1) / 2
    if operation == "modular addition":
        return share_of(E, frequency_of(centered))
    return float(np.sum((steps @ centered) ** 2) / (steps @ steps) / np.sum(centered**2))


@recipe(
    "liu-2", item="Figure 2", source="Section 3", cost="half an hour", looks=2,
    fidelity="nearest: the published notebooks have other decoders, with weight decay 5 and 10",
    quick={"hidden": (30, 30), "seeds": 4, "steps": 400, "grid": 60},
    paper_setting=Setting(hidden=(200, 200), seeds=160, steps=20_000, grid=300, tokens=11),
    rules=(
        Statement("structure, addition",
            "generalization appears to be linked to the emergence of highly-structured embeddings",
            "Kendall's τ of the accuracy in validation with the part of the variance that is a line of even "
            "steps",
            measures.rank_correlation("networks", "structure", "validation_accuracy", operation="addition"),
            least=0.2, chance=counters.shuffled("networks", "structure", within="operation"),
            note="the most accurate of the networks has 0.86"),
    ),
    withdrawn={
        "structure, modular addition": "after a verdict of *disagrees*, 0.01 [-0.14, 0.15]: none generalizes"
    },
)  # fmt: skip
def planar(run: Run) -> Result:
    """Embeddings of p = 11 in the plane, and the class that the decoder assigns to every point.

    Shown are the least and the most accurate of 160 networks with 40 learning rates. The color of a
    point is the class of a pair of embeddings whose midpoint it is.

    Notes
    -----
    The table "networks" has a row for each network. The rules ask whether networks generalize better the more
    structured their embeddings are.
    """
    parts = {name: run.keep(name.replace(" ", "-"), partial(_train_planar, run, name)) for name in MODELS}
    names = ("validation_accuracy", "train_accuracy", "structure", "learning_rate")
    rows = joined({name: part[name] for name in names} for part in parts.values())
    rows["operation"] = np.repeat(list(parts), run.setting.seeds)
    with charts.panels(10.4, 10.4, 2, 2) as (figure, axes):
        for line, (name, part) in zip(axes, parts.items(), strict=True):
            for k, ax in enumerate(line):
                show_classes(part["E"][k], part["classes"][k], part["frame"][k], name, ax)
                title = f"{name}: validation accuracy {100 * part['shown'][k]:.0f} %"
                charts.label(ax, "first coordinate", "second coordinate", title)
    return Result({"networks": rows}, {"liu-2": figure})


def _train_planar(run: Run, operation: str) -> dict[str, Any]:
    setting = run.setting
    model = MODELS[operation](setting.tokens, 2, hidden=setting.hidden, kind="classification")
    rates = np.resize(np.geomspace(1e-4, 1e-2, min(setting.seeds, 40)), setting.seeds)
    trained = train_networks(
        run, 200 + len(operation), model=model, learning_rate=rates.tolist(), train_fraction=0.8,
        observables=(*PARTS, "layers"),
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
        found = nets.networks(trained).member(int(k)).classify(2 * points)
        classes.append(found.reshape(setting.grid, setting.grid))
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
    colors = palette.class_colors(len(E)) if modular else palette.graded_colors(2 * len(E) - 1)
    shades = 0.45 + 0.55 * np.array([tuple(color)[:3] for color in colors])
    ax.imshow(shades[classes], extent=frame, origin="lower", aspect="auto")
    size = charts.points(12.5) ** 2
    ax.scatter(E[:, 0], E[:, 1], s=size, color=palette.WHITE, edgecolors=palette.INK, zorder=2)
    for token, place in enumerate(E):
        ax.annotate(str(token), place, ha="center", va="center", fontsize="small", zorder=3)


# -- Figure 19 ---------------------------------------------------------------------------------------------


@recipe(
    "liu-19", item=f"Figure 19, on {IMAGES}; Appendix I", fidelity=OTHER_DATA,
    quick={"encoders": 2, "images": 200},
    paper_setting=Setting(encoders=20, images=1500, data=DATA, hidden=200, steps=100, rate=1e-3),
    source="Appendix I", independent="encoder", cost="a minute",
    rules=(
        Statement("collapse", "Images of the same class collapse to their class-means",
            "variance about the class means after 100 steps over that at the start",
            measures.mean("encoders", "within_end / within_start"), most=0.1,
            chance=counters.replaced("encoders", within_start="between_start", within_end="between_end")),
        Statement("classes", "and different class-means do not collapse",
            "variance of the class means after 100 steps over that at the start",
            measures.mean("encoders", "between_end / between_start"), least=0.5,
            chance=counters.replaced("encoders", between_start="within_start", between_end="within_end")),
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
        rows[f"within_{when}"], rows[f"between_{when}"] = parts.T
    title = f"{len(labels)} images of {setting.data}; each class has its digit at its median"
    with charts.panels(11.6, 4.2, 1, 3, title) as (figure, axes):
        for ax, frame in zip(axes, (0, setting.steps // 2, setting.steps), strict=True):
            E = paths[0][frame]
            ax.scatter(*E.T, s=6, c=palette.class_colors(10)[labels], linewidths=0)
            for digit in range(10):
                box = {"boxstyle": "circle,pad=0.1", "facecolor": palette.WHITE}
                ax.annotate(str(digit), np.median(E[labels == digit], axis=0), bbox=box, fontsize="small")
            charts.label(ax, "first coordinate", "second coordinate", f"step {frame}", xticks=[], yticks=[])
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
    count, optimizer = members.sum(dim=0), torch.optim.Adam([f], lr=setting.rate)
    path = [f.detach().numpy().astype(float)]
    for _ in range(setting.steps):
        optimizer.zero_grad()
        # Σ |f(x) - f(y)|² over the pairs of a class of n is n Σ |f|² - |Σ f|².
        squares, sums = members.T @ (f**2).sum(dim=1), members.T @ f
        ((count * squares - (sums**2).sum(dim=1)).sum() / (f**2).sum()).backward()
        optimizer.step()
        path.append(f.detach().numpy().astype(float))
    return np.array(path)


def _variances(f: NDArray[np.float64], labels: Any) -> tuple[float, float]:
    """Return the variance about the class means, and the variance of these means.

    `f` (images, 2) are embeddings and `labels` (images,) their classes, from 0 to 9.
    """
    means = np.array([f[labels == k].mean(axis=0) for k in range(10)])
    return float(np.mean(np.sum((f - means[labels]) ** 2, axis=1))), float(means.var(axis=0).sum())
