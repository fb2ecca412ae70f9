"""Liu et al., §4.3 and Appendix J: grokking on images, and how to control it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

import nets
from analysis.phases.diagram import PhaseDiagram, Refinement
from analysis.plots.figures import style
from grokphys.output import Budget, save_figure, write_csv
from grokphys.papers.liu.phases import HIGH, LOW, Claim, Row, judged, publish, rules, steps_to
from grokphys.phases import NEVER, Training, axis, or_never
from nets import ImageMLP

THRESHOLDS = {"train_accuracy": 0.9, "validation_accuracy": 0.6}
"""The paper takes 60 % of the validation set here instead of 90 % (App. J)."""
RATE = 1e-3
DELAY = 1000
SEED = 20


@dataclass(frozen=True)
class Setting:
    """What a budget trains. The paper gives depth and width, 1000 images, and that the start is scaled up.

    Of the digits, whose images have 64 pixels, 100 are hard enough. The factor 8 and batches of 200 images
    are those of the published code of the authors' later work.
    """

    hidden: tuple[int, int] = (200, 200)
    images: int = 100
    steps: int = 6000
    seeds: int = 4
    weight_decay: float = 0.3
    sizes: tuple[int, ...] = (30, 50, 75, 100, 150, 200, 400, 800)
    size_seeds: int = 3
    rates: tuple[float, float] = (1e-4, 1e-1)
    decays: tuple[float, float] = (0.03, 30.0)
    cells: int = 4
    refinement: Refinement = field(default_factory=lambda: Refinement(2, 4, 1, 90))
    scale: float = 8.0
    batch: int = 200


SETTINGS: dict[Budget, Setting] = {
    "quick": Setting(
        hidden=(100, 100),
        steps=4000,
        seeds=2,
        sizes=(50, 100, 200, 400),
        size_seeds=1,
        cells=3,
        refinement=Refinement(2, 2, 0),
    ),
    "default": Setting(),
    "paper": Setting(
        images=1000,
        steps=100_000,
        seeds=10,
        weight_decay=0.01,
        sizes=(50, 75, 100, 150, 200, 300, 400, 600, 800, 1000, 1200, 1500),
        size_seeds=10,
        rates=(1e-6, 1e-1),
        decays=(1e-4, 10.0),
        cells=10,
        refinement=Refinement(3, 7, 2),
    ),
}


def options(setting: Setting, model: ImageMLP, images: int) -> dict[str, Any]:
    """Arguments of `nets.train` for a training set of so many images."""
    task = model.task
    return {
        "train_fraction": images / (len(task) - len(task.held_out)),
        "batch_size": min(setting.batch, images),
        "layer_scale": setting.scale,
        "embedding_learning_rate": RATE,
        "seed": SEED,
        "steps": setting.steps,
    }


def grokking(out: Path, budget: Budget, data: str = "digits") -> list[Path]:
    """Figure 8 (left): training curves of networks that grok on images."""
    setting = SETTINGS[budget]
    model = ImageMLP(data, setting.hidden)
    trained = nets.train(
        model,
        runs=setting.seeds,
        record="log:12",
        observables=("train_accuracy", "validation_accuracy"),
        thresholds=THRESHOLDS,
        track=max(setting.steps // 200, 1),
        learning_rate=RATE,
        weight_decay=setting.weight_decay,
        **options(setting, model, setting.images),
    )
    curves = [
        {
            "run": run,
            "step": int(step),
            **{name: float(trained.observables[name][run, frame]) for name in THRESHOLDS},
        }
        for run in range(setting.seeds)
        for frame, step in enumerate(trained.steps)
    ]
    train, validation = (trained.observables[f"steps_to_{name}"][:, -1] for name in THRESHOLDS)
    print(f"  {_described(setting, model)}, weight decay {setting.weight_decay:g}, {setting.seeds} seeds")
    print(
        f"  90 % of the training set after {_list(train)} steps, 60 % of the validation set after "
        f"{_list(validation)}"
    )
    with style():
        figure = Figure(figsize=(5.2, 3.8))
        ax = show_curves(curves, figure.subplots())
        ax.set_title(f"{model.data}, {setting.images} training images (Fig. 8 left)")
        picture = save_figure(figure, out / "liu-8.png")
    return [write_csv(out / "liu-8.csv", curves), picture]


def phases(out: Path, budget: Budget, data: str = "digits") -> list[Path]:
    """Figure 8 (right): phases over the learning rate of the last layer and the weight decay, on images."""
    setting = SETTINGS[budget]
    model = ImageMLP(data, setting.hidden)
    common = options(setting, model, setting.images)
    diagram = Training(
        model,
        axis(model, "learning_rate", *setting.rates, setting.cells, label="learning rate of the last layer"),
        axis(model, "weight_decay", *setting.decays, setting.cells),
        common.pop("steps"),
        DELAY,
        THRESHOLDS,
        common.pop("seed"),
        common,
        out / "liu-8b-networks" if budget == "paper" else None,
    ).diagram(setting.refinement)
    title = f"{model.data}, {setting.images} training images"
    heading = f"Fig. 8 right: {_described(setting, model)}"
    return publish(out, "liu-8b", {title: diagram}, judged(title, _claims(diagram)), heading=heading)


def _described(setting: Setting, model: ImageMLP) -> str:
    widths = " and ".join(map(str, model.hidden))
    return f"{setting.images} images of {model.data}, hidden layers of {widths}, start × {setting.scale:g}"


def _claims(diagram: PhaseDiagram) -> list[Claim]:
    """What Appendix J says of Figure 8 (right)."""
    touching = diagram.touching().get(frozenset(("comprehension", "confusion")), 0)
    decay = {
        phase: [np.mean(cell.y) for cell in diagram.cells if cell.majority.phase == phase]
        for phase in ("grokking", "comprehension")
    }
    both = all(decay.values())
    less = bool(both and np.mean(decay["grokking"]) < np.mean(decay["comprehension"]))
    return [
        rules(diagram, "a high rate and weight decay", "confusion", HIGH, HIGH),
        rules(diagram, "a low rate and weight decay", "memorization", LOW, LOW),
        (f"comprehension borders on confusion (here {touching} times)", touching > 0),
        ("grokking comes with less weight decay than comprehension", less),
    ]


def _list(steps: Any) -> str:
    return ", ".join(str(or_never(step)) for step in steps)


def show_curves(rows: Sequence[Row], ax: Axes | None = None) -> Axes:
    """Draw the accuracies of each run over the steps."""
    ax = Figure().subplots() if ax is None else ax
    for run in sorted({row["run"] for row in rows}):
        chosen = [row for row in rows if row["run"] == run and row["step"] > 0]
        for part, color in (("train", "#0b6e99"), ("validation", "#d1603d")):
            ax.plot(
                [row["step"] for row in chosen],
                [row[f"{part}_accuracy"] for row in chosen],
                color=color,
                linewidth=1.2,
                alpha=0.8,
                label=part if run == 0 else None,
            )
    ax.axhline(0.1, color="#888888", linestyle=":", linewidth=1, label="chance")
    ax.set(xlabel="step", ylabel="accuracy", xscale="log", ylim=(0, 1.03))
    ax.legend(loc="upper left")
    return ax


def sizes(out: Path, budget: Budget, data: str = "digits") -> list[Path]:
    """Figure 20: the time to generalise grows rapidly where the training set gets small."""
    setting = SETTINGS[budget]
    model = ImageMLP(data, setting.hidden)
    rows: list[Row] = []
    for size in setting.sizes:
        reached = steps_to(
            model,
            THRESHOLDS,
            runs=setting.size_seeds,
            learning_rate=RATE,
            weight_decay=setting.weight_decay,
            **options(setting, model, size),
        )
        rows += [
            {
                "images": size,
                "run": run,
                "train_steps": or_never(train),
                "validation_steps": or_never(validation),
            }
            for run, (train, validation) in enumerate(reached)
        ]
        print(f"  {size} training images: 60 % of the validation set after {_list(reached[:, 1])} steps")
    print(
        f"  {model.data}, two hidden layers of {setting.hidden[0]}, weight decay {setting.weight_decay:g}, "
        f"{setting.size_seeds} seeds a size, at most {setting.steps} steps"
    )
    with style():
        figure = Figure(figsize=(5.6, 3.8))
        show_sizes(rows, setting.steps, figure.subplots()).set_title(f"Time to generalise, {model.data}")
        picture = save_figure(figure, out / "liu-20.png")
    return [write_csv(out / "liu-20.csv", rows), picture]


def show_sizes(rows: Sequence[Row], steps: int, ax: Axes | None = None) -> Axes:
    """Draw the steps to fit and to generalise over the size of the training set; never as a triangle."""
    ax = Figure().subplots() if ax is None else ax
    for part, color, marker in (("train", "#0b6e99", "s"), ("validation", "#d1603d", "o")):
        seen = [(row["images"], row[f"{part}_steps"]) for row in rows if row[f"{part}_steps"] != NEVER]
        never = [row["images"] for row in rows if row[f"{part}_steps"] == NEVER]
        amount = "90 %" if part == "train" else "60 %"
        images, taken = zip(*seen, strict=True) if seen else ((), ())
        ax.plot(
            images,
            taken,
            marker,
            color=color,
            markersize=5,
            fillstyle="none",
            label=f"{amount} of the {part} set",
        )
        ax.plot(never, [steps] * len(never), "^", color=color)
    ax.plot([], [], "^", color="#888888", label=f"never in {steps} steps")
    ax.set(xlabel="training images", ylabel="steps", xscale="log", yscale="log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 3)))
    ax.yaxis.set_major_formatter(ScalarFormatter())
    ax.yaxis.set_minor_formatter(NullFormatter())
    counts = sorted({row["images"] for row in rows})
    ax.set_xticks(counts, [str(count) for count in counts])
    ax.set_xticks([], minor=True)
    ax.legend(loc="lower right")
    return ax
