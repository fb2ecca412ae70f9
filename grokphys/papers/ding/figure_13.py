"""Ding et al., Figure 13: the gradient of the loss with respect to the embedding, by frequency, over time."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.circles.fourier import fourier_signals
from analysis.circles.survival import survives
from analysis.plots.palette import DEAD, SERIES
from analysis.plots.style import legend_below, style
from analysis.stats.intervals import Interval
from grokphys.papers.ding.training import DECAY, PAPER, QUICK, Size
from grokphys.papers.evidence import by_network, joined, mean, shuffled, where
from grokphys.papers.pieces import in_parts
from grokphys.papers.recipe import Result, Run, Statement, Tables, recipe
from nets.training import train

SECTION = "Appendix D"
ROUNDING = (
    "in one network a second rise, by rounding, makes the gradient largest near step 18 000, which widens "
    "the interval; in the others it is largest near step 20 (see the notes)"
)
PIECE = 5, 5
"""Most networks trained together, on a CPU and on a GPU. Gradients of all frames are in memory."""


@dataclass(frozen=True)
class Gradients:
    """Setting of Figure 13: networks whose gradients are recorded.

    Attributes
    ----------
    size : Size
        Modulus, dimension and number of steps.
    record : str
        When to record, as in `nets.train`.
    networks : int
        Number of networks.
    seed : int
        Seed of the ensemble.
    """

    size: Size
    record: str
    networks: int
    seed: int


def _peak(tables: Tables, level: float) -> Interval:
    """Return the step at which the largest gradient over frequencies peaks, as a mean of networks."""
    rows = tables["gradients"]
    one = by_network(rows)
    return mean([own["step"][np.argmax(own["largest"])] for own in one], level)


def _late(tables: Tables, level: float) -> Interval:
    """Return the mean gradient after step 1000 over that of the steps 50 to 200, as a mean of networks.

    The gradient of a step is the largest over all frequencies.
    """
    rows = tables["gradients"]
    ratios = []
    for own in by_network(rows):
        early = (own["step"] >= 50) & (own["step"] <= 200)
        ratios.append(own["largest"][own["step"] > 1000].mean() / own["largest"][early].mean())
    return mean(ratios, level)


@recipe(
    "ding-13",
    paper="Ding",
    item="Figure 13; Appendix D",
    shows="The gradient of the loss of one network by the embedding, for each frequency, during training. "
    "The rise after step 10⁴ is an effect of rounding in 32 bits (see `rounding`).",
    quick=Gradients(Size(QUICK.tokens, QUICK.dim, 1200), "10:1000,40", 3, 0),
    paper_setting=Gradients(PAPER, "5:1000,200", 20, 130_000),
    cost="half an hour to two hours",
    rules=(
        Statement(
            "spike",
            "The Fourier gradient spikes around 100 steps",
            SECTION,
            "step at which the largest gradient of a network is largest",
            _peak,
            chance=shuffled("gradients", "largest", within="network"),
            least=50.0,
            most=200.0,
            digits=0,
            possible=(0.0, np.inf),
            note=ROUNDING,
        ),
        Statement(
            "over",
            "and quickly diminishes to near zero after 1000 steps",
            SECTION,
            "mean largest gradient after step 1000 over that of steps 50 to 200; by chance 1",
            _late,
            chance=shuffled("gradients", "largest", within="network"),
            most=0.1,
            possible=(0.0, np.inf),
            note=ROUNDING,
        ),
    ),
)
def gradients(run: Run) -> Result:
    """Reproduce Figure 13 of Ding et al.: the gradient of the embedding, by frequency, over time.

    Embedding MLPs are trained on addition modulo p, and the Fourier norms of the gradient are recorded. The
    table "gradients" has a row for each network and recorded step. The rules judge when the gradient is
    largest, and how small it is after step 1000.
    """
    setting: Gradients = run.setting
    size = setting.size

    def train_part(part: range) -> dict[str, Any]:
        trained = train(
            size.model,
            runs=len(part),
            first_run=part.start,
            steps=size.steps,
            seed=setting.seed,
            weight_decay=DECAY,
            record=setting.record,
            observables=("gradient",),
        )
        slopes = fourier_signals(trained.observables["gradient"])
        alive, steps = survives(fourier_signals(trained.final)), trained.steps
        return {
            "network": np.repeat(part, len(steps)),
            "step": np.tile(steps, len(part)),
            "largest": slopes.max(axis=2).ravel(),
            "mean": slopes.mean(axis=2).ravel(),
            "slopes": slopes.reshape(-1, slopes.shape[2]),
            "alive": np.repeat(alive, len(steps), axis=0),
        }

    rows = joined(in_parts(run, setting.networks, PIECE, train_part))
    table = {name: rows[name] for name in ("network", "step", "largest", "mean")}
    return Result({"gradients": table}, {"ding-13": _show(where(rows, network=0))})


def _show(rows: dict[str, NDArray[Any]]) -> Figure:
    """Draw the gradient of one network at all frequencies, at all steps and from step 100 to step 1000.

    `rows` has a row for each recorded step.
    """
    alive = np.flatnonzero(rows["alive"][0])
    with style(10.4):
        figure = Figure(figsize=(10.4, 3.7))
        axes = figure.subplots(1, 2)
        for ax, first, last in ((axes[0], 0, np.inf), (axes[1], 100, 1000)):
            window = (rows["step"] >= first) & (rows["step"] <= last)
            steps, slopes = rows["step"][window], rows["slopes"][window]
            ax.plot(steps, np.delete(slopes, alive, axis=1), color=DEAD, linewidth=0.6)
            for n, k in enumerate(alive):
                ax.plot(
                    steps, slopes[:, k], color=SERIES[n % len(SERIES)], linewidth=1.4, label=f"k = {k + 1}"
                )
            ax.set(xlabel="step", ylabel="‖Fourier transform\nof ∂L/∂E‖ at k", ylim=(0, None))
        axes[0].set_xscale("symlog", linthresh=100)
        axes[0].set(title="one network; survivors in color", xlim=(0, None))
        axes[1].set(title="steps 100 to 1000")
        if len(alive):
            legend_below(axes[0])
    return figure
