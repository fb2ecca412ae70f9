"""Liu et al., §4.2: a transformer that learns to add mod p, its effective dimension, dropout and phases."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import nets
from analysis.circles.geometry import effective_dimension
from analysis.phases.diagram import PhaseDiagram, Refinement
from analysis.plots.figures import style
from analysis.stats.intervals import proportion
from grokphys.output import Budget, save_figure, write_csv
from grokphys.papers.liu.phases import (
    ALL,
    HIGH,
    LOW,
    MIDDLE,
    Claim,
    Row,
    draw,
    four_phases,
    generalises,
    judged,
    say,
    steps_to,
)
from grokphys.phases import ACCURACIES, NEVER, Training, axis, or_never, summary, write_diagrams
from nets import TokenTransformer

EMBEDDING = {"embedding_learning_rate": 1e-3, "embedding_weight_decay": 0.0}
SEED = 42


SMALL = TokenTransformer(29, 48, depth=1, width=48)


@dataclass(frozen=True)
class Setting:
    """What a budget trains. The paper gives the model, its 100 seeds, and the optimiser of the embedding.

    The small ones take p = 29 and 48 dimensions in one block, embeddings that begin at 0.03 of their normal
    size and a faster decoder, so that what takes the paper thousands of steps takes hundreds; `delay`, from
    which on generalisation counts as grokking, shrinks with it. The networks that are followed (Figures 1, 7
    left, 21, 22) have weight decay and, where they are small, dropout too: without it a few tokens end far
    out and the circles stay blurred. Dropout is scanned at a weight decay that is too weak by itself (in the
    published code: none), the phase diagram without dropout.
    """

    model: TokenTransformer = SMALL
    steps: int = 1600
    seeds: int = 4
    dropout: float = 0.1
    embedding_scale: float = 0.03
    learning_rate: float = 3e-3
    weight_decay: float = 1.0
    dropouts: tuple[float, ...] = (0.0, 0.02, 0.05, 0.1, 0.2)
    dropout_decay: float = 0.3
    dropout_seeds: int = 2
    rates: tuple[float, float] = (1e-3, 1e-2)
    decays: tuple[float, float] = (0.03, 30.0)
    cells: tuple[int, int] = (2, 4)
    refinement: Refinement = field(default_factory=lambda: Refinement(2, 4, 1, 28))
    delay: int = 200

    @property
    def network(self) -> TokenTransformer:
        """The model that is followed."""
        return replace(self.model, dropout=self.dropout)

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of `nets.train` that every figure has in common, but for the decoder's."""
        return {"embedding_scale": self.embedding_scale, "steps": self.steps, "seed": SEED, **EMBEDDING}

    @property
    def decoder(self) -> dict[str, Any]:
        """The decoder's optimiser, where it is not scanned."""
        return {"learning_rate": self.learning_rate, "weight_decay": self.weight_decay}


SETTINGS: dict[Budget, Setting] = {
    "quick": Setting(
        steps=1200,
        seeds=2,
        dropouts=(0.0, 0.05),
        dropout_seeds=1,
        cells=(1, 3),
        refinement=Refinement(1, 1, 0),
    ),
    "default": Setting(),
    "paper": Setting(
        model=TokenTransformer(),
        steps=100_000,
        seeds=100,
        dropout=0.0,
        embedding_scale=1.0,
        learning_rate=1e-3,
        dropouts=tuple(np.linspace(0, 0.5, 10).tolist()),
        dropout_decay=0.0,
        dropout_seeds=3,
        rates=(1e-6, 1e-2),
        decays=(0.02, 20.0),
        cells=(8, 8),
        refinement=Refinement(3, 7, 2),
        delay=1000,
    ),
}


def describe(setting: Setting) -> str:
    """The model of a budget, in words."""
    model = setting.model
    blocks = "one block" if model.depth == 1 else f"{model.depth} blocks"
    return f"p = {model.tokens}, {model.dim} dimensions, {blocks}"


def phases(out: Path, budget: Budget) -> list[Path]:
    """Figure 7: effective dimension over training; dropout; the phase diagram of the decoder."""
    setting = SETTINGS[budget]
    trained = nets.train(
        setting.network,
        runs=setting.seeds,
        record=max(setting.steps // 80, 1),
        thresholds=ACCURACIES,
        **setting.options,
        **setting.decoder,
    )
    dimension = np.stack([effective_dimension(trained.positions[k]) for k in range(setting.seeds)])
    reached = trained.observables["steps_to_validation_accuracy"][:, -1]
    dropped = [
        {
            "dropout": rate,
            "run": run,
            "train_steps": or_never(train),
            "validation_steps": or_never(validation),
        }
        for rate in setting.dropouts
        for run, (train, validation) in enumerate(_with_dropout(setting, rate))
    ]
    diagram = _diagram(setting, out / "liu-7-networks" if budget == "paper" else None)
    claims = judged("Transformer", _claims(diagram))
    done = np.isfinite(reached)
    print(
        f"  {describe(setting)}, {setting.seeds} seeds: "
        f"{proportion(int(done.sum()), setting.seeds).format(0, 100)} % reach 90 % of the validation set in "
        f"{setting.steps} steps (dropout {setting.dropout:g}, weight decay {setting.weight_decay:g})"
        + (f", the median one after {np.median(reached[done]):.0f}" if done.any() else "")
    )
    print(
        f"  effective dimension, median: {np.median(dimension[:, 0]):.1f} at the start, at most "
        f"{np.median(dimension.max(axis=1)):.1f}, {np.median(dimension[:, -1]):.1f} at the end"
    )
    print("\n".join(f"  phase diagram: {line}" for line in summary(diagram)))
    say(claims)
    with style():
        figure = Figure(figsize=(12.4, 3.9))
        left, middle, right = figure.subplots(1, 3)
        show_dimension(trained.steps, dimension, reached, left)
        left.set_title(f"Dropout {setting.dropout:g}, weight decay {setting.weight_decay:g}")
        show_dropout(dropped, setting.steps, middle)
        middle.set_title(f"Dropout, weight decay {setting.dropout_decay:g}")
        draw(diagram, right, "No dropout")
        figure.suptitle(describe(setting))
        picture = save_figure(figure, out / "liu-7.png")
    curves = [
        {"run": run, "step": int(step), "effective_dimension": float(value)}
        for run, values in enumerate(dimension)
        for step, value in zip(trained.steps, values, strict=True)
    ]
    return [
        write_csv(out / "liu-7.csv", curves),
        write_csv(out / "liu-7-dropout.csv", dropped),
        *write_diagrams(out, "liu-7-phases", {"Transformer": diagram}),
        write_csv(out / "liu-7-claims.csv", claims),
        picture,
    ]


def _diagram(setting: Setting, store: Path | None) -> PhaseDiagram:
    """Phases over the decoder's learning rate and weight decay, without dropout."""
    options = {name: value for name, value in setting.options.items() if name not in ("steps", "seed")}
    (columns, rows), model = setting.cells, setting.model
    return Training(
        model,
        axis(model, "learning_rate", *setting.rates, columns, label="decoder learning rate"),
        axis(model, "weight_decay", *setting.decays, rows, label="decoder weight decay"),
        setting.steps,
        setting.delay,
        seed=SEED,
        options=options,
        store=store,
    ).diagram(setting.refinement)


def _claims(diagram: PhaseDiagram) -> list[Claim]:
    little, some, much = (generalises(diagram, ALL, part) for part in (LOW, MIDDLE, HIGH))
    text = (
        f"a certain amount of weight decay helps to generalise (here {little:.0%} of the third with the "
        f"least generalises, {some:.0%} of the middle one, {much:.0%} of that with the most)"
    )
    return [four_phases(diagram), (text, max(some, much) > little)]


def _with_dropout(setting: Setting, rate: float) -> Any:
    """Steps (seeds, 2) to 90 % of both sets at a rate of dropout, NaN for never."""
    return steps_to(
        replace(setting.model, dropout=rate),
        ACCURACIES,
        runs=setting.dropout_seeds,
        learning_rate=setting.learning_rate,
        weight_decay=setting.dropout_decay,
        **setting.options,
    )


def show_dimension(steps: Any, dimension: Any, reached: Any, ax: Axes | None = None) -> Axes:
    """Draw the effective dimension (runs, frames) over the steps, and when each run has generalised."""
    ax = Figure().subplots() if ax is None else ax
    for values, step in zip(dimension, reached, strict=True):
        ax.plot(steps, values, color="#0b6e99", linewidth=0.8, alpha=0.45)
        if np.isfinite(step):
            ax.plot(step, np.interp(step, steps, values), "o", color="#d1603d", markersize=4, zorder=3)
    ax.plot(steps, np.median(dimension, axis=0), color="#0b6e99", label=f"median of {len(dimension)} seeds")
    if np.isfinite(reached).any():
        ax.plot([], [], "o", color="#d1603d", markersize=4, label="90 % of the validation set")
    ax.set(xlabel="step", ylabel="effective dimension exp(S)", ylim=(0, None))
    ax.legend(loc="lower left")
    return ax


def show_dropout(rows: Sequence[Row], steps: int, ax: Axes | None = None) -> Axes:
    """Draw the steps to 90 % of the training and the validation set over the rate of dropout."""
    ax = Figure().subplots() if ax is None else ax
    rates = sorted({row["dropout"] for row in rows})
    for part, color in (("train", "#0b6e99"), ("validation", "#d1603d")):
        found = [[row[f"{part}_steps"] for row in rows if row["dropout"] == rate] for rate in rates]
        numbers = [[np.inf if value == NEVER else value for value in values] for values in found]
        for rate, values in zip(rates, numbers, strict=True):
            seen = [value for value in values if np.isfinite(value)]
            ax.plot([rate] * len(seen), seen, "o", color=color, markersize=4, alpha=0.6)
            ax.plot([rate] * (len(values) - len(seen)), [steps] * (len(values) - len(seen)), "^", color=color)
        medians = np.array([np.median(values) for values in numbers])
        ax.plot(rates, np.where(np.isfinite(medians), medians, np.nan), color=color, label=f"{part}, median")
    ax.plot([], [], "^", color="#888888", label=f"never in {steps} steps")
    ax.set(xlabel="rate of dropout", ylabel="steps to 90 %", ylim=(0, 1.08 * steps))
    ax.legend()
    return ax
