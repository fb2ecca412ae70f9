"""Liu et al., Table 1: the four phases of learning, found and drawn for any network."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

import nets
from nets import Model

Row = dict[str, Any]

PHASES = {
    "comprehension": "#f2c14e",
    "grokking": "#d1603d",
    "memorization": "#0b6e99",
    "confusion": "#c9c9c9",
}
NEVER = "never"


def phase(train: float, validation: float, delay: int) -> str:
    """Phase of a run by the steps at which it reached its thresholds, NaN for never (Table 1).

    A run that generalises and never fits its training set is confusion, as one that does neither.
    """
    if math.isnan(train):
        return "confusion"
    if math.isnan(validation):
        return "memorization"
    return "comprehension" if validation - train < delay else "grokking"


def scan(
    model: Model,
    rates: Sequence[float],
    decays: Sequence[float],
    *,
    thresholds: Mapping[str, float],
    delay: int,
    steps: int,
    seed: int,
    **options: Any,
) -> list[Row]:
    """Train one network for each rate and weight decay of the decoder, and tell its phase."""
    cells = list(itertools.product(rates, decays))
    reached = steps_to(
        model,
        thresholds,
        runs=len(cells),
        steps=steps,
        seed=seed,
        learning_rate=[rate for rate, _ in cells],
        weight_decay=[decay for _, decay in cells],
        **options,
    )
    return [
        {
            "learning_rate": rate,
            "weight_decay": decay,
            "train_steps": or_never(train),
            "validation_steps": or_never(validation),
            "phase": phase(train, validation, delay),
        }
        for (rate, decay), (train, validation) in zip(cells, reached, strict=True)
    ]


def steps_to(model: Model, thresholds: Mapping[str, float], *, steps: int, **options: Any) -> Any:
    """Steps (runs, 2) to the thresholds of training and validation accuracy, NaN for never."""
    trained = nets.train(
        model,
        steps=steps,
        record=steps,
        observables=(),
        thresholds=thresholds,
        track=max(steps // 200, 1),
        stop="thresholds",
        **options,
    )
    parts = ("train", "validation")
    return np.stack([trained.observables[f"steps_to_{part}_accuracy"][:, -1] for part in parts], axis=1)


def or_never(steps: float) -> int | str:
    """Return a number of steps as tables hold it."""
    return NEVER if math.isnan(steps) else int(steps)


def show_phases(rows: Sequence[Row], ax: Axes | None = None, *, title: str = "") -> Axes:
    """Draw the phases over the decoder's weight decay and learning rate, with the steps to generalise."""
    ax = Figure().subplots() if ax is None else ax
    rates = sorted({row["learning_rate"] for row in rows})
    decays = sorted({row["weight_decay"] for row in rows})
    names = list(PHASES)
    table = np.empty((len(rates), len(decays)))
    for row in rows:
        place = rates.index(row["learning_rate"]), decays.index(row["weight_decay"])
        table[place] = names.index(row["phase"])
        if row["validation_steps"] != NEVER:
            ax.annotate(str(row["validation_steps"]), place[::-1], ha="center", va="center", fontsize=7)
    ax.imshow(
        table,
        cmap=ListedColormap(list(PHASES.values())),
        vmin=-0.5,
        vmax=len(names) - 0.5,
        origin="lower",
        aspect="auto",
    )
    ax.set_xticks(range(len(decays)), [f"{decay:g}" for decay in decays])
    ax.set_yticks(range(len(rates)), [f"{rate:g}" for rate in rates])
    ax.tick_params(length=0)
    ax.set(xlabel="weight decay of the decoder", ylabel="learning rate of the decoder", title=title)
    handles = [Patch(color=color, label=name) for name, color in PHASES.items()]
    ax.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)
    return ax
