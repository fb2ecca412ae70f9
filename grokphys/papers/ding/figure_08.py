"""Ding et al., Figure 8: how many circles a network needs in order to add."""

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from analysis.circles.fourier import fourier_signals
from analysis.circles.survival import survives
from analysis.plots.palette import INK
from analysis.plots.style import legend_below, style
from analysis.stats.intervals import Interval
from grokphys.papers.ding.training import DECAY, PAPER, QUICK, Size
from grokphys.papers.evidence import joined, share, shuffled, where
from grokphys.papers.pieces import in_parts
from grokphys.papers.recipe import Measure, Result, Run, Statement, Tables, recipe
from nets.interventions import keep_frequencies
from nets.networks import networks
from nets.training import train

SECTION = "Section 4.1"
PIECE = 5, 5
"""Most networks trained together, on a CPU and on a GPU. The layers of all frames are in memory."""
FEW = 0.2
"""Accuracy below which a network counts as unable to add."""
HIGH, NEAR_ZERO = 1.0, 0.1
"""Test losses, in nats, above which a loss is high, and below which it is near zero; guessing gives ln p."""


@dataclass(frozen=True)
class Kept:
    """Setting of Figure 8: networks that are tested with only some of their circles.

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


def _strongest(count: int, holds: Any) -> Measure:
    """Return a `Measure` of the share of networks that meet a condition with their `count` strongest circles.

    `holds` is a function of test losses and accuracies that returns which networks meet the condition. A
    network with fewer survivors does not count.
    """

    def measure(tables: Tables, level: float) -> Interval:
        rows = where(tables["sets"], kept=count, rank=0)
        return share(holds(rows["test_loss"], rows["accuracy"]), level)

    return measure


def _draw(setting: Kept, tables: Tables) -> dict[str, Figure]:
    """Draw the test loss with all frequencies and with the strongest alone, over the steps."""
    with style(12.6):
        figure = Figure(figsize=(12.6, 4.6))
        axes = figure.subplots(1, 3, sharey=True)
        for count, ax in enumerate(axes, 1):
            strongest = f"the {count} strongest alone" if count > 1 else "the strongest alone"
            for kept, words in ((0, "all frequencies"), (count, strongest)):
                rows = where(tables["curves"], kept=kept)
                label = f"{words} ({len(np.unique(rows['network']))})"
                steps = np.unique(rows["step"][rows["step"] > 0])
                losses = [rows["test_loss"][rows["step"] == step] for step in steps]
                (line,) = ax.plot(steps, [np.median(values) for values in losses], label=label)
                low, high = ([side(values) for values in losses] for side in (min, max))
                ax.fill_between(steps, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
            guess = np.log(setting.size.tokens)
            ax.axhline(guess, color=INK, linewidth=0.8, linestyle=":", label="guessing")
            ax.set(xlabel="step", xscale="log", yscale="log")
            ax.set_title(f"{count} kept" if count < 2 else f"{count} kept, where at least {count} survive")
            legend_below(ax, title="median and range (networks)")
        axes[0].set_ylabel("test loss")
    return {"ding-8": figure}


@recipe(
    "ding-8",
    paper="Ding",
    item="Figure 8",
    shows="The test loss of embeddings of which only one, two or three circles are kept. The rise after step "
    "10⁴ is an effect of rounding in 32 bits (see `rounding`).",
    quick=Kept(QUICK, "log:3", 3, 0),
    paper_setting=Kept(PAPER, "log:8", 30, 80_000),
    cost="one to two hours",
    rules=(
        Statement(
            "one",
            "the model is not able to perform the modular addition with only one circle",
            SECTION,
            f"share of networks with less than {FEW:.0%} of the sums right by their strongest circle alone",
            _strongest(1, lambda loss, accuracy: accuracy < FEW),
            chance=shuffled("sets", "accuracy", within="network"),
            least=0.75,
        ),
        Statement(
            "two",
            "still has considerably high loss using two circles",
            SECTION,
            f"share of networks whose test loss is above {HIGH:g} with their two strongest circles",
            _strongest(2, lambda loss, accuracy: loss > HIGH),
            chance=shuffled("sets", "test_loss", within="network"),
            least=0.75,
        ),
        Statement(
            "three",
            "reaches near zero loss with 3 circles",
            SECTION,
            f"share of networks whose test loss is below {NEAR_ZERO:g} with their three strongest circles",
            _strongest(3, lambda loss, accuracy: loss < NEAR_ZERO),
            chance=shuffled("sets", "test_loss", within="network"),
            least=0.75,
            note="of networks with at least three survivors: those with just three all pass, others do not",
        ),
    ),
    draw=_draw,
)
def collaboration(run: Run) -> Result:
    """Reproduce Figure 8 of Ding et al.: the test loss if only one, two or three of the survivors are kept.

    Embedding MLPs are trained to the end on addition modulo p, and tested with embeddings that keep only some
    of their circles. The table "sets" has all sets of up to three survivors at the end, and "curves" the
    strongest sets over time. The rules judge test loss and accuracy with the strongest one, two and three
    circles.
    """
    setting: Kept = run.setting

    def train_part(part: range) -> dict[str, Any]:
        trained = train(
            setting.size.model,
            runs=len(part),
            first_run=part.start,
            steps=setting.size.steps,
            seed=setting.seed,
            weight_decay=DECAY,
            record=setting.record,
            observables=("layers",),
        )
        signals = fourier_signals(trained.final)
        rows = []
        for k, own in enumerate(signals):
            # The strongest first: the first set of each size then holds the strongest circles.
            alive = [int(f) + 1 for f in np.argsort(-own) if survives(own)[f]]
            for frame, step in enumerate(trained.steps):
                rows += [
                    (part.start + k, step, *row)
                    for row in _tested(networks(trained.run(k), frame), alive, step == trained.steps[-1])
                ]
        names = ("network", "step", "kept", "rank", "test_loss", "accuracy")
        return {name: np.array(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)}

    rows = joined(in_parts(run, setting.networks, PIECE, train_part))
    last = where(rows, step=setting.size.steps)
    curves = where(rows, rank=0)
    return Result({"sets": last, "curves": curves})


def _tested(revived: Any, alive: list[int], all_sets: bool) -> list[tuple[int, int, float, float]]:
    """Test a network at one frame with only some of its surviving circles.

    `alive` lists the surviving frequencies, the strongest first. All sets of up to three of them are tested,
    or else only the strongest one, two and three. A row is the size of the set (0 for all frequencies), its
    rank, the validation loss and the validation accuracy.
    """
    E = revived.parameters["embedding"]
    found = [(0, 0, float(revived.loss("validation")[0]), float(revived.accuracy("validation")[0]))]
    for count in range(1, min(3, len(alive)) + 1):
        for rank, kept in enumerate(combinations(alive, count)):
            changed = revived.with_embedding(keep_frequencies(E, kept))
            loss, accuracy = changed.loss("validation"), changed.accuracy("validation")
            found.append((count, rank, float(loss[0]), float(accuracy[0])))
            if not all_sets:
                break
    return found
