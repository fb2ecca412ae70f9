"""Ding et al., Figure 4: layers trained on fixed random embeddings, by the embedding dimension."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.plots.palette import INK, graded_colors
from analysis.plots.style import legend_below, style
from analysis.stats.intervals import CONFIDENCE, Interval
from grokphys.papers.ding.training import DECAY
from grokphys.papers.evidence import difference, joined, mean, shuffled
from grokphys.papers.pieces import in_parts
from grokphys.papers.recipe import Result, Run, Statement, Tables, recipe
from nets.engines.ensemble import draw
from nets.models import EmbeddingMLP
from nets.training import train

SECTION = "Section 3.1"
PIECE = 10, 410
"""Largest number of networks that are trained together, on a CPU and on a GPU."""
WINDOW = 16
"""Largest distance from d = p of the dimensions that the rule "transition" compares."""


@dataclass(frozen=True)
class Frozen:
    """Setting of Figure 4: networks whose random embeddings are not trained.

    Attributes
    ----------
    tokens : int
        Modulus p.
    dims : sequence of int
        Embedding dimensions d.
    snapshots : sequence of int
        Steps at which losses are measured; the last one ends the training.
    networks : int
        Number of networks of each dimension.
    seed : int
        Seed of all networks, which are numbered through all dimensions.
    """

    tokens: int
    dims: Sequence[int]
    snapshots: Sequence[int]
    networks: int
    seed: int


def _mean_log(tables: Tables, level: float, chosen: Any) -> Interval:
    """Return the mean over networks of log₁₀ of the final test loss, with Student's interval.

    `chosen` is a function of the columns d (dimension) and p (modulus) that returns which rows count.
    """
    rows = tables["networks"]
    here = (rows["step"] == rows["step"].max()) & chosen(rows["d"], rows["p"])
    return mean(np.log10(rows["test_loss"][here]), level)


def _transition(tables: Tables, level: float) -> Interval:
    below = _mean_log(tables, level, lambda d, p: (p - WINDOW <= d) & (d < p))
    above = _mean_log(tables, level, lambda d, p: (p < d) & (d <= p + WINDOW))
    return difference(below, above)


def _descent(tables: Tables, level: float) -> Interval:
    small = _mean_log(tables, level, lambda d, p: d <= 20)
    medium = _mean_log(tables, level, lambda d, p: (d > 20) & (d <= p))
    return difference(medium, small)


@recipe(
    "ding-4",
    paper="Ding",
    item="Figure 4",
    shows="How well layers learn from fixed random embeddings, by the embedding dimension.",
    quick=Frozen(23, (8, 16, 20, 22, 24, 32), (100, 300), 3, 0),
    paper_setting=Frozen(
        59, (*range(16, 64, 2), *range(64, 129, 4)), (500, 1000, 2000, 5000, 10_000), 10, 40_000
    ),
    cost="three to four hours",
    rules=(
        Statement(
            "transition",
            "the test loss is sharply better when d > p than when d < p",
            SECTION,
            "log₁₀ of the test loss at the end: mean of 43 ≤ d < 59 minus mean of 59 < d ≤ 75; by chance 0",
            _transition,
            chance=shuffled("networks", "test_loss", within="step"),
            least=0.3,
            withdrawn="the loss falls as steeply about other dimensions: it has a slope, and no step at p",
        ),
        Statement(
            "small d",
            "at 10,000 steps, models with the small ds (d≤20) have lower loss than models with medium ds",
            SECTION,
            "log₁₀ of the test loss at the end: mean of 20 < d ≤ 59 minus mean of 16 ≤ d ≤ 20; by chance 0",
            _descent,
            chance=shuffled("networks", "test_loss", within="step"),
            least=0.1,
        ),
    ),
)
def frozen(run: Run) -> Result:
    """Reproduce Figure 4 of Ding et al.: the test loss over the dimension d if only the layers are trained.

    Layers are trained on embeddings of p tokens that are drawn at random and kept. The table "networks" has a
    row for each network and snapshot. The rules compare final test losses below and above d = p, and for
    small and medium d.
    """
    setting: Frozen = run.setting
    networks = len(setting.dims) * setting.networks
    rows = joined(in_parts(run, networks, PIECE, partial(_train_part, setting)))
    return Result({"networks": rows}, {"ding-4": _show(setting, rows)})


def _train_part(setting: Frozen, part: range) -> dict[str, Any]:
    """Train some of the networks, numbered through all dimensions, and return a table with their losses."""
    count, snapshots = len(part), list(setting.snapshots)
    d = np.array(setting.dims)[np.array(part) // setting.networks]
    model = EmbeddingMLP(setting.tokens, max(setting.dims))
    options: dict[str, Any] = {"runs": count, "first_run": part.start, "seed": setting.seed}
    trained = train(
        model,
        steps=snapshots[-1],
        initial=narrowed(draw(model, **options).parameters, d),
        weight_decay=DECAY,
        freeze_embedding=True,
        record=snapshots,
        observables=("train_loss", "validation_loss"),
        **options,
    )
    size = len(snapshots)
    return {
        "p": np.full(count * size, setting.tokens),
        "d": np.repeat(d, size),
        "network": np.repeat(np.array(part) % setting.networks, size),
        "step": np.tile(snapshots, count),
        "test_loss": trained.observables["validation_loss"].ravel(),
        "train_loss": trained.observables["train_loss"].ravel(),
    }


def narrowed(parameters: Mapping[str, NDArray[Any]], dims: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return initial parameters of networks that are as if their embeddings had fewer dimensions.

    The other components of an embedding are 0, and so are the weights on them. Both remain 0, if the
    embedding is not trained: gradients of these weights vanish. Networks of all dimensions can thus be
    trained together. Weights and biases of the first layer are drawn from ±1/√(2 d), as by PyTorch.

    Parameters
    ----------
    parameters : mapping of str to ndarray
        Initial parameters of `EmbeddingMLP` networks, (runs, ...) each.
    dims : ndarray of int, shape (runs,)
        Dimension d of each network, at most that of the embeddings.

    Returns
    -------
    dict of str to ndarray
        The embedding, and the weights and biases of the first layer.
    """
    E, W, b = (parameters[name] for name in ("embedding", "hidden1.weight", "hidden1.bias"))
    used = np.arange(E.shape[2]) < dims[:, None]
    wider = np.sqrt(E.shape[2] / dims)[:, None, None]
    return {
        "embedding": E * used[:, None, :],
        "hidden1.weight": W * wider * np.tile(used, 2)[:, :, None],
        "hidden1.bias": b * wider,
    }


def _show(setting: Frozen, rows: dict[str, NDArray[Any]]) -> Figure:
    with style(9.6):
        figure = Figure(figsize=(9.6, 3.7))
        first, second = figure.subplots(1, 2)
        for ax, name in ((first, "test_loss"), (second, "train_loss")):
            for step, color in zip(setting.snapshots, graded_colors(len(setting.snapshots)), strict=True):
                here = [rows[name][(rows["d"] == d) & (rows["step"] == step)] for d in setting.dims]
                # Losses differ by factors: geometric mean and its interval.
                found = [mean(np.log(values), CONFIDENCE).map(np.exp) for values in here]
                ax.plot(
                    setting.dims, [f.estimate for f in found], "o-", color=color, markersize=3.5, label=step
                )
                sides = ([getattr(f, side) for f in found] for side in ("low", "high"))
                ax.fill_between(setting.dims, *sides, color=color, alpha=0.12, linewidth=0)
            ax.axvline(setting.tokens, color=INK, linewidth=0.8, linestyle=":")
            ax.set(xlabel="embedding dimension d (dotted: d = p)", yscale="log")
        first.set(ylabel="test loss", title=f"frozen embeddings, p = {setting.tokens}")
        second.set(ylabel="training loss")
        second.set_title(f"geometric mean of {setting.networks} networks, 95 % interval")
        legend_below(first, title="step", columns=2)
    return figure
