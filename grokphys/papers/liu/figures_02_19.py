"""Liu et al., Figures 2 and 19: embeddings in the plane, of sums with their decoder, and of images."""

from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.plots.palette import INK, WHITE, class_colors, graded_colors
from analysis.plots.style import points, style
from analysis.stats.intervals import Interval
from grokphys.papers.counters.builders import replaced
from grokphys.papers.evidence import mean, rank_correlation, shuffled, where
from grokphys.papers.liu.figures_08_20 import DATA, IMAGES
from grokphys.papers.liu.measures import frequency_of, share_of
from grokphys.papers.recipe import Measure, Result, Run, Statement, Tables, recipe
from nets.models import ToyAddition
from nets.models.images import load_images
from nets.tasks import Task, modular_addition
from nets.training import train
from physics import EffectiveTheory
from physics.seeds import generator as generator_of
from physics.seeds import parent_seed

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


@dataclass(frozen=True)
class Planar:
    """Setting of Figure 2: networks with two-dimensional embeddings.

    The paper states only that there are 11 tokens. The networks of a task have different learning rates of
    the decoder, from 1e-4 to 1e-2, so that some of them may generalize and others memorize.

    Attributes
    ----------
    hidden : pair of int
        Widths of the two hidden layers of the decoder.
    seeds : int
        Number of networks of each task.
    steps : int
        Number of steps of training.
    grid : int, default 300
        Number of points along each side of the drawn decision regions.
    tokens : int, default 11
        Number of tokens p.
    """

    hidden: tuple[int, int]
    seeds: int
    steps: int
    grid: int = 300
    tokens: int = 11


MODELS = {"addition": ToyAddition, "modular addition": ToyModularAddition}


def _linked(operation: str) -> Measure:
    def measure(tables: Tables, level: float) -> Interval:
        rows = where(tables["networks"], operation=operation)
        return rank_correlation(rows["structure"], rows["validation_accuracy"], level)

    return measure


def structure_of(E: NDArray[np.float64], operation: str) -> float:
    """Return how structured an embedding E (p, 2) is: a fraction of its variance, from 0 to 1.

    For the operation "addition" it is the fraction on a line with equal steps, and for "modular addition"
    that on a circle of one frequency.
    """
    if operation == "modular addition":
        return share_of(E, frequency_of(E - E.mean(axis=0)))
    steps = np.arange(len(E)) - (len(E) - 1) / 2
    centered = E - E.mean(axis=0)
    return float(np.sum((steps @ centered) ** 2) / (steps @ steps) / np.sum(centered**2))


PAPER_PLANAR = Planar((200, 200), 40, 20_000)


@recipe(
    "liu-2",
    paper="Liu",
    item="Figure 2",
    shows="Embeddings of p = 11 in the plane, and the class that the decoder assigns to every point. Shown "
    f"are the least and the most accurate of {PAPER_PLANAR.seeds} networks with different learning rates. "
    "The color of a point is the class of a pair of embeddings whose midpoint it is.",
    quick=Planar((30, 30), 4, 400, 60),
    paper_setting=PAPER_PLANAR,
    cost="ten to thirty minutes",
    rules=tuple(
        Statement(
            f"structure, {operation}",
            "generalization appears to be linked to the emergence of highly-structured embeddings",
            "Section 3",
            f"Kendall's τ of the accuracy in validation with the part of the variance that is {what}",
            _linked(operation),
            chance=shuffled("networks", "structure", within="operation"),
            least=0.2,
        )
        for operation, what in (("addition", "a line of even steps"), ("modular addition", "one circle"))
    ),
)
def planar(run: Run) -> Result:
    """Reproduce Figure 2 of Liu et al.: plane embeddings, and the class of each point by the decoder.

    For each task, the figure shows the networks that generalize least and most. The table "networks" has a
    row for each network. The rules ask whether networks generalize better the more structured their
    embeddings are.
    """
    setting: Planar = run.setting
    parts = {name: run.keep(name.replace(" ", "-"), partial(_train_planar, setting, name)) for name in MODELS}
    names = ("validation_accuracy", "train_accuracy", "structure", "learning_rate")
    rows = {name: np.concatenate([part[name] for part in parts.values()]) for name in names}
    rows["operation"] = np.repeat(list(parts), setting.seeds)
    with style(10.4):
        figure = Figure(figsize=(10.4, 10.4))
        for line, (name, part) in zip(figure.subplots(2, 2), parts.items(), strict=True):
            for k, ax in enumerate(line):
                show_classes(part["E"][k], part["classes"][k], part["frame"][k], name, ax)
                ax.set_title(f"{name}: validation accuracy {100 * part['shown'][k]:.0f} %")
                ax.set(xlabel="first coordinate", ylabel="second coordinate")
    return Result({"networks": rows}, {"liu-2": figure})


def _train_planar(setting: Planar, operation: str) -> dict[str, Any]:
    model = MODELS[operation](setting.tokens, 2, hidden=setting.hidden, kind="classification")
    rates = np.geomspace(1e-4, 1e-2, setting.seeds)
    trained = train(
        model,
        runs=setting.seeds,
        steps=setting.steps,
        seed=200 + len(operation),
        learning_rate=rates.tolist(),
        weight_decay=0.0,
        embedding_learning_rate=1e-3,
        train_fraction=0.8,
        record=[setting.steps],
        observables=("train_accuracy", "validation_accuracy", "layers"),
    )
    accuracy = {k: trained.observables[k][:, -1] for k in ("train_accuracy", "validation_accuracy")}
    order = np.argsort(accuracy["validation_accuracy"], kind="stable")
    shown = [int(order[0]), int(order[-1])]
    E = trained.final.astype(float)
    frames, classes = [], []
    for k in shown:
        reach = 1.15 * np.abs(E[k] - E[k].mean(axis=0)).max()
        x, y = (np.linspace(c - reach, c + reach, setting.grid) for c in E[k].mean(axis=0))
        points = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
        # The decoder takes the sum of two embeddings; here a point is their midpoint.
        layers = {
            name.removeprefix("layers."): torch.as_tensor(values[k : k + 1, -1]).float()
            for name, values in trained.observables.items()
            if name.startswith("layers.")
        }
        layers["embedding"] = torch.as_tensor(points, dtype=torch.float32)[None]
        itself = np.repeat(np.arange(len(points))[:, None], 2, axis=1)
        with torch.no_grad():
            logits = model.outputs(layers, torch.as_tensor(itself)[None])
        classes.append(logits[0].argmax(-1).numpy().reshape(setting.grid, setting.grid))
        frames.append([x[0], x[-1], y[0], y[-1]])
    return {
        **{name: values.astype(float) for name, values in accuracy.items()},
        "structure": np.array([structure_of(one, operation) for one in E]),
        "learning_rate": rates,
        "E": E[shown],
        "classes": np.array(classes),
        "frame": np.array(frames),
        "shown": accuracy["validation_accuracy"][shown].astype(float),
    }


def show_classes(E: Any, classes: Any, frame: Any, operation: str, ax: Axes) -> None:
    """Draw the decoder's class of each point of the plane, and the embeddings E (tokens, 2) with numbers.

    `classes` (grid, grid) are the classes of points within the `frame`: left, right, bottom, top. The decoder
    takes a sum of two embeddings, and the point drawn is their midpoint. The operation determines the colors.
    """
    modular = operation == "modular addition"
    count = len(E) if modular else 2 * len(E) - 1
    colors = np.array([tuple(c)[:3] for c in (class_colors if modular else graded_colors)(count)])
    ax.imshow(0.45 + 0.55 * colors[classes], extent=frame, origin="lower", aspect="auto")
    ax.scatter(E[:, 0], E[:, 1], s=points(12.5) ** 2, color=WHITE, edgecolors=INK, zorder=2)
    for token, (x, y) in enumerate(E):
        ax.annotate(str(token), (x, y), ha="center", va="center", fontsize="small", zorder=3)


# -- Figure 19 ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Collapse:
    """Setting of Figure 19: random encoders of images, whose embeddings descend the effective loss by Adam.

    Attributes
    ----------
    encoders : int
        Number of random encoders.
    images : int
        Number of images.
    data : str, default DATA
        Data set, as in `nets.ImageMLP`.
    hidden : int, default 200
        Width of the two hidden layers.
    steps : int, default 100
        Number of steps of Adam.
    rate : float, default 1e-3
        Learning rate of Adam.
    """

    encoders: int
    images: int
    data: str = DATA
    hidden: int = 200
    steps: int = 100
    rate: float = 1e-3


def _log_change(column: str) -> Measure:
    def measure(tables: Tables, level: float) -> Interval:
        rows = tables["encoders"]
        return mean(rows[f"{column}_end"] / rows[f"{column}_start"], level)

    return measure


@recipe(
    "liu-19",
    paper="Liu",
    item=f"Figure 19, on {IMAGES}; Appendix I",
    shows="Images that move by the effective loss, within and between classes.",
    quick=Collapse(2, 200),
    paper_setting=Collapse(20, 1500),
    cost="a minute",
    rules=(
        Statement(
            "collapse",
            "Images of the same class collapse to their class-means",
            "Appendix I",
            "variance about the class means after 100 steps over that at the start",
            _log_change("within"),
            chance="none: start and end are of the same images, and no order of encoders changes their ratio",
            counter=replaced("encoders", within_start="between_start", within_end="between_end"),
            most=0.1,
            independent="encoder",
        ),
        Statement(
            "classes",
            "and different class-means do not collapse",
            "Appendix I",
            "variance of the class means after 100 steps over that at the start",
            _log_change("between"),
            chance="none: as above",
            counter=replaced("encoders", between_start="within_start", between_end="within_end"),
            least=0.5,
            independent="encoder",
        ),
    ),
)
def collapse(run: Run) -> Result:
    """Reproduce Figure 19 of Liu et al.: embeddings of images by random encoders, and after steps of Adam.

    The table "encoders" has a row for each encoder. The rules judge the variance about the class means, and
    that of the class means, at the end relative to the start.
    """
    setting: Collapse = run.setting
    images = load_images(setting.data, 10)
    chosen = generator_of(1900).permutation(len(images.labels))[: setting.images]
    pixels, labels = torch.as_tensor(images.pixels[chosen]), images.labels[chosen]
    paths = [_descend(setting, pixels, labels, 1900 + k) for k in range(setting.encoders)]
    rows: dict[str, Any] = {"encoder": np.arange(setting.encoders)}
    for when, frame in (("start", 0), ("end", -1)):
        parts = np.array([_variances(path[frame], labels) for path in paths])
        rows[f"within_{when}"], rows[f"between_{when}"], rows[f"norm_{when}"] = parts.T
    with style(11.6):
        figure = Figure(figsize=(11.6, 4.2))
        colors = class_colors(10)
        for k, ax in enumerate(figure.subplots(1, 3)):
            frame = round(k / 2 * setting.steps)
            ax.scatter(*paths[0][frame].T, s=6, c=colors[labels], linewidths=0)
            for digit in range(10):
                middle = np.median(paths[0][frame][labels == digit], axis=0)
                box = {"boxstyle": "circle,pad=0.1", "facecolor": WHITE, "edgecolor": colors[digit]}
                beside = {"xytext": (-15, 0), "textcoords": "offset points", "ha": "center", "va": "center"}
                ax.annotate(str(digit), middle, bbox=box, fontsize="small", **beside)
            ax.margins(x=0.1)
            ax.set(title=f"step {frame}", xlabel="first coordinate", xticks=[], yticks=[])
        figure.axes[0].set_ylabel("second coordinate")
        figure.suptitle(
            f"{len(labels)} images of {setting.data}; each class has its digit left of its median"
        )
    return Result({"encoders": rows}, {"liu-19": figure})


def _descend(setting: Collapse, pixels: Any, labels: Any, seed: int) -> NDArray[np.float64]:
    """Return the embeddings (steps + 1, images, 2) at the start and after each step of Adam.

    A random encoder maps `pixels` (images, features) to the start. The embeddings themselves, without the
    encoder, then descend the effective loss (Eq. 32 of Liu et al.) for the classes `labels` (images,).
    """
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(parent_seed(seed).entropy)
        sizes = (pixels.shape[1], setting.hidden, setting.hidden, 2)
        layers = [torch.nn.Linear(a, b) for a, b in pairwise(sizes)]
        state = pixels
        for k, layer in enumerate(layers):
            state = layer(state).relu() if k < 2 else layer(state)
    f = state.clone().requires_grad_()
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
    within = float(np.mean(np.sum((f - means[labels]) ** 2, axis=1)))
    between = float(np.sum((means - means.mean(axis=0)) ** 2) / 10)
    return within, between, float(np.sum(f**2))
