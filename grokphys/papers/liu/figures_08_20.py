"""Liu et al., Figures 8 and 20 (§4.3, Appendix J): grokking on images.

If the environment variable GROKPHYS_MNIST is set, it names a directory of MNIST's files or an npz archive.
Otherwise the images are the 1797 digits that come with scikit-learn. The items of the recipes say which.
"""

import os
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from analysis.phases.classification import DELAY
from analysis.plots.palette import FIRST, REFERENCE, SECOND
from analysis.plots.style import legend_below, style
from analysis.stats.intervals import Interval
from grokphys.papers.evidence import exchanged, jackknife, joined, rank_correlation, share, shuffled
from grokphys.papers.liu.planes import CHANCE, HIGH, LOW, Plane, corner, drawing, trained
from grokphys.papers.recipe import Result, Run, Statement, Tables, recipe
from nets import ImageMLP
from nets.training import train

DATA = os.environ.get("GROKPHYS_MNIST", "digits")
IMAGES = "scikit-learn's digits" if DATA == "digits" else "MNIST"
APPENDIX = "Appendix J"
THRESHOLDS = {"train_accuracy": 0.9, "validation_accuracy": 0.6}
"""Accuracies at which a network has fitted and has generalized. For images the paper asks for 60 % on the
validation set, instead of 90 % (Appendix J)."""
SCALE = 8.0
"""Factor of the initial weights: the paper says "a constant > 1", and the authors' later code has 8."""
BATCH = 200
SINGLE = "one network in each cell, so that a cell tells no probabilities"


@dataclass(frozen=True)
class Setting:
    """Setting of Figures 8 (a) and 20: networks on images.

    The paper states depth, width, 1000 images and AdamW.

    Attributes
    ----------
    model : ImageMLP
        Network to train.
    images : tuple of int
        Numbers of training images.
    seeds : int
        Number of networks for each number of images.
    steps : int
        Largest number of steps.
    rate : float, default 1e-3
        Learning rate of the last layer.
    weight_decay : float, default 0.01
        Weight decay.
    seed : int, default 800
        Seed, to which the number of images is added.
    """

    model: ImageMLP
    images: tuple[int, ...]
    seeds: int
    steps: int
    rate: float = 1e-3
    weight_decay: float = 0.01
    seed: int = 800


def options(model: ImageMLP, images: int) -> dict[str, Any]:
    """Return split, batch size, initial scale and encoder's rate, as arguments of `nets.train`."""
    return {
        "train_fraction": images / (len(model.task) - len(model.task.held_out)),
        "batch_size": min(BATCH, images),
        "layer_scale": SCALE,
        "embedding_learning_rate": 1e-3,
    }


def train_images(run: Run, *, curves: bool) -> dict[str, dict[str, Any]]:
    """Train the networks of a `Setting`, and return tables of the steps and the accuracies that they reach.

    The table "networks" has the steps to the `THRESHOLDS` (infinite if never). With `curves`, all networks
    are trained to the end, and the table "curves" has their accuracies over time. Otherwise a network stops
    when it has reached both thresholds.
    """
    setting: Setting = run.setting
    digest = str(setting.model.digest)[-12:]
    rows = joined(
        run.keep(f"images-{count}-{digest}", partial(_train, setting, count, curves))
        for count in setting.images
    )
    return {
        table: {name.split(".")[1]: values for name, values in rows.items() if name.startswith(table)}
        for table in dict.fromkeys(name.split(".")[0] for name in rows)
    }


def _train(setting: Setting, count: int, curves: bool) -> dict[str, Any]:
    trained = train(
        setting.model,
        runs=setting.seeds,
        steps=setting.steps,
        seed=setting.seed + count,
        record="log:12" if curves else setting.steps,
        observables=tuple(THRESHOLDS) if curves else (),
        thresholds=THRESHOLDS,
        track=max(setting.steps // 500, 1),
        stop=None if curves else "thresholds",
        learning_rate=setting.rate,
        weight_decay=setting.weight_decay,
        **options(setting.model, count),
    )
    reached = [trained.observables[f"steps_to_{name}"][:, -1].astype(float) for name in THRESHOLDS]
    first, second = (np.where(np.isfinite(steps), steps, np.inf) for steps in reached)
    found = {
        "networks.images": np.full(setting.seeds, count),
        "networks.train_steps": first,
        "networks.validation_steps": second,
    }
    if curves:
        frames = len(trained.steps)
        found |= {
            "curves.network": np.repeat(np.arange(setting.seeds), frames),
            "curves.step": np.tile(trained.steps, setting.seeds),
            **{f"curves.{name}": trained.observables[name].ravel() for name in THRESHOLDS},
        }
    return found


# -- Figure 8 (a) ------------------------------------------------------------------------------------------


def _much_later(tables: Tables, level: float) -> Interval:
    rows = tables["networks"]
    fitted, generalized = rows["train_steps"], rows["validation_steps"]
    done = np.isfinite(fitted) & np.isfinite(generalized)
    return share(done & (generalized >= np.where(done, fitted, 0) + DELAY), level)


def _draw_curves(setting: Setting, tables: Tables) -> dict[str, Figure]:
    """Draw both accuracies of each network over the steps."""
    rows = tables["curves"]
    with style(6.0):
        figure = Figure(figsize=(6.0, 4.2))
        ax = figure.subplots()
        for network in np.unique(rows["network"]):
            own = (rows["network"] == network) & (rows["step"] > 0)
            for name, color in zip(THRESHOLDS, (FIRST, SECOND), strict=True):
                label = name.replace("_accuracy", "") if network == 0 else None
                ax.plot(rows["step"][own], rows[name][own], color=color, linewidth=1, alpha=0.7, label=label)
        ax.axhline(0.1, color=REFERENCE, linestyle=":", linewidth=1, label="chance")
        ax.set(xlabel="step", ylabel="accuracy", xscale="log", ylim=(0, 1.03))
        ax.set_title(f"{setting.images[0]} training images of {IMAGES}")
        legend_below(ax)
    return {"liu-8": figure}


PAPER_CURVES = Setting(ImageMLP(DATA), (1000,), 10, 100_000)


@recipe(
    "liu-8",
    paper="Liu",
    item=f"Figure 8 (a), on {IMAGES}",
    shows=f"Accuracies of {PAPER_CURVES.seeds} image networks with large initial weights and a small "
    "training set.",
    quick=Setting(ImageMLP(hidden=(20, 20)), (50,), 2, 200),
    paper_setting=PAPER_CURVES,
    cost="ten minutes: 10 networks of 1e5 steps, 0.4 ms for each step and network",
    rules=(
        Statement(
            "much later",
            "the network quickly fits the train set, and then much later in training validation accuracy "
            "improves",
            APPENDIX,
            "share of networks that reach 60 % in validation, 1000 steps or more after 90 % in training",
            _much_later,
            chance="none: the delay is a network's own, and no order of networks changes it",
            counter=exchanged("networks", "train_steps", "validation_steps"),
            least=0.5,
        ),
    ),
    draw=_draw_curves,
)
def grokking(run: Run) -> Result:
    """Reproduce Figure 8 (a) of Liu et al.: training curves of networks that grok on images.

    Networks start from large initial weights. The table "networks" has the steps to both accuracies, and
    "curves" the accuracies over time. The rule asks how many networks generalize 1000 steps or more after
    they have fitted.
    """
    return Result(train_images(run, curves=True))


# -- Figure 8 (b) ------------------------------------------------------------------------------------------


def _plane(model: ImageMLP, images: int, cells: int, steps: int, delay: float) -> Plane:
    return Plane(
        {f"{images} images of {IMAGES}": model},
        ("learning_rate", 1e-6, 1e-1),
        ("weight_decay", 1e-4, 10.0),
        cells,
        1,
        steps,
        options(model, images),
        seed=850,
        delay=delay,
        thresholds=THRESHOLDS,
        labels=("learning rate of the last layer", "weight decay"),
    )


def _less_decay(tables: Tables, level: float) -> Interval:
    """Return the mean row of comprehension minus that of grokking, in rows of rising weight decay."""
    rows, both = tables["networks"], ("comprehension", "grokking")
    here = np.isin(rows["phase"], both)

    def gap(row: Any, phase: Any) -> float:
        parts = [row[phase == name] for name in both]
        return float(parts[0].mean() - parts[1].mean()) if all(map(len, parts)) else np.nan

    return jackknife(gap, (rows["row"][here].astype(float), rows["phase"][here]), level)


@recipe(
    "liu-8b",
    paper="Liu",
    item=f"Figure 8 (b), on {IMAGES}",
    shows="Phases over the learning rate of the last layer and the weight decay. Networks have generalized "
    f"at {100 * THRESHOLDS['validation_accuracy']:g} % of the validation set.",
    quick=_plane(ImageMLP(hidden=(20, 20)), 50, 3, 100, 50),
    paper_setting=_plane(ImageMLP(DATA), 1000, 10, 100_000, DELAY),
    cost="an hour or two: 100 networks of at most 1e5 steps; each row of cells is kept",
    rules=(
        corner(
            "confusion",
            "a “confusion” phase in the bottom right (high learning rate and high weight decay)",
            APPENDIX,
            "confusion",
            HIGH,
            HIGH,
            note=f"{SINGLE}; all networks in this corner reach 60 % in validation within 1000 steps",
        ),
        corner(
            "memorization",
            "a “memorization” phase at low weight decay and low learning rate",
            APPENDIX,
            "memorization",
            LOW,
            LOW,
            note=SINGLE,
        ),
        Statement(
            "grokking",
            "a “grokking” phase as one decreases weight decay",
            APPENDIX,
            "mean row of comprehension minus that of grokking, in cells of weight decay; by chance 0",
            _less_decay,
            chance=CHANCE,
            least=0.5,
            note=SINGLE,
        ),
    ),
    draw=drawing("liu-8b"),
)
def phases(run: Run) -> Result:
    """Reproduce Figure 8 (b) of Liu et al.: the phases over the rate of the last layer and the weight decay.

    One network is trained in each cell, from large initial weights. The rules judge where in the plane
    confusion and memorization are frequent, and whether grokking has less weight decay than comprehension.
    """
    return trained(run)


# -- Figure 20 ---------------------------------------------------------------------------------------------


def _slower_with_less(tables: Tables, level: float) -> Interval:
    rows = tables["networks"]
    return rank_correlation(rows["images"], rows["validation_steps"], level)


def _bends(tables: Tables, level: float) -> Interval:
    """Return how much more generalization slows down from medium to small training sets than before.

    Sizes are split in thirds. The result is the mean log₁₀ of the steps in the smallest third minus that in
    the middle third, less the same for the middle and the largest third. A network that never generalizes
    counts with ten times the largest number of steps that any other network needed.
    """
    rows = tables["networks"]
    place = np.unique(rows["images"], return_inverse=True)[1]
    third = 3 * place // (place.max() + 1)
    steps = rows["validation_steps"]
    done = np.isfinite(steps)
    log = np.log10(np.where(done, steps, 10 * steps[done].max(initial=1)))

    def bend(part: Any, values: Any) -> float:
        small, middle, large = np.bincount(part, values, 3) / np.bincount(part, minlength=3)
        return float(small - 2 * middle + large)

    return jackknife(bend, (third, log), level)


def _draw_sizes(setting: Setting, tables: Tables) -> dict[str, Figure]:
    """Draw the steps to both accuracies over the number of images, as a point for each network."""
    rows = tables["networks"]
    shares = {part: f"{100 * THRESHOLDS[f'{part}_accuracy']:g} %" for part in ("train", "validation")}
    words = f"{shares['train']} in training", f"{shares['validation']} in validation"
    with style(6.0):
        figure = Figure(figsize=(6.0, 4.2))
        ax = figure.subplots()
        for part, goal, color, marker in zip(shares, words, (FIRST, SECOND), "so", strict=True):
            steps = rows[f"{part}_steps"]
            done = np.isfinite(steps)
            look: Any = {"color": color, "markersize": 5, "fillstyle": "none"}
            ax.plot(rows["images"][done], steps[done], marker, label=f"to {goal}", **look)
            if not done.all():
                look = {"color": color, "label": f"never {goal}"}
                ax.plot(rows["images"][~done], np.full((~done).sum(), setting.steps), "^", **look)
        ax.set(xlabel=f"training images of {IMAGES}", ylabel="steps", xscale="log", yscale="log")
        ax.set_title(f"{setting.seeds} networks for each number of images")
        legend_below(ax)
    return {"liu-20": figure}


@recipe(
    "liu-20",
    paper="Liu",
    item=f"Figure 20, on {IMAGES}",
    shows="How soon image networks generalize, by the number of training images.",
    quick=Setting(ImageMLP(hidden=(20, 20)), (50, 200), 2, 200),
    paper_setting=Setting(
        ImageMLP(DATA), (50, 75, 100, 150, 200, 300, 400, 600, 800, 1000, 1200, 1500), 10, 100_000, seed=2000
    ),
    cost="an hour or two: 120 networks of at most 1e5 steps; each size is kept",
    rules=(
        Statement(
            "size",
            "generalization time increases rapidly once one drops below a certain amount of training data",
            APPENDIX,
            "Kendall's τ of the steps to 60 % in validation with the number of images; by chance 0",
            _slower_with_less,
            chance=shuffled("networks", "validation_steps"),
            most=-0.3,
        ),
        Statement(
            "rapidly",
            "generalization time increases rapidly once one drops below a certain amount of training data",
            APPENDIX,
            "mean log₁₀ of the steps in the smallest third of sizes minus that in the middle third, less the "
            "same for the middle and the largest third; by chance 0",
            _bends,
            chance=shuffled("networks", "validation_steps"),
            least=0.3,
            note="most of the rise of the logarithm lies between 1500 and 600 images",
        ),
    ),
    draw=_draw_sizes,
)
def sizes(run: Run) -> Result:
    """Reproduce Figure 20 of Liu et al.: the steps to fit and to generalize over the number of images.

    Networks start from large initial weights. The table "networks" has the steps to both accuracies. The
    rules ask whether networks generalize later with fewer training images, and much later with very few.
    """
    return Result(train_images(run, curves=False))
