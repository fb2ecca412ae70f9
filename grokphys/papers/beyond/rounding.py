"""Beyond Ding et al.: what the rounding of one subtraction does to a network that has long generalized.

The gradient of the cross-entropy with respect to the logit of the right class is q - 1, where q is the
probability of this class. Numbers of 32 bits near 1 are multiples of 6e-8, so that the subtraction leaves
only rounding once the loss is that small. PyTorch computes it so, and so did the published codes. Summed over
all other classes, their probabilities give the same number with all its digits. The recipe trains networks in
three kinds of arithmetic from the same starts. The rules were written after a pilot (three networks of
another seed, p = 31), in which the loss jumped up by five orders and circles died with q - 1 in 32 bits only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.circles.fourier import fourier_signals
from analysis.circles.survival import survives
from analysis.plots.palette import SERIES
from analysis.plots.style import style
from analysis.stats.intervals import Interval
from grokphys.papers.beyond.agreement import agreement
from grokphys.papers.beyond.selection import Place
from grokphys.papers.ding.training import DECAY
from grokphys.papers.evidence import Chance, joined, mean, shuffled, where
from grokphys.papers.pieces import in_parts
from grokphys.papers.recipe import Columns, Measure, Result, Run, Statement, Tables, recipe
from nets.models import EmbeddingMLP
from nets.training import train

USUAL, STABLE, DOUBLE = "subtraction, 32 bits", "sum, 32 bits", "subtraction, 64 bits"
OPTIONS: dict[str, dict[str, Any]] = {
    USUAL: {"dtype": "float32"},
    STABLE: {"dtype": "float32", "stable_gradient": True},
    DOUBLE: {"dtype": "float64"},
}
"""Arguments of `nets.train` for each arithmetic."""
PIECE = 8, 120
"""Largest number of networks that are trained together, on a CPU and on a GPU."""
FRAMES = 300
"""Number of recorded steps, at equal distances."""
SETTLED = 5000
"""Step before which a rise of the loss does not count. Networks have long generalized by then."""
SEED = 48_000


@dataclass(frozen=True)
class Setting:
    """Setting: networks of several sizes.

    Attributes
    ----------
    places : sequence of Place
        Sizes of the networks, with their numbers of steps.
    runs : sequence of int
        For each size, number of networks in each arithmetic with 32 bits.
    doubles : sequence of int
        For each size, how many of the same networks are also trained with 64 bits.
    """

    places: Sequence[Place]
    runs: Sequence[int]
    doubles: Sequence[int]


def largest_rise(losses: Any) -> NDArray[np.float64]:
    """Return the largest rise of losses (..., steps) above their smallest value before, as a decimal log.

    A loss that always falls gives a number below 0, of the size of its slowest fall.
    """
    return np.asarray(_rises(losses).max(axis=-1))


def first_jump(losses: Any, steps: Any) -> NDArray[np.float64]:
    """Return the first of `steps` (steps,) at which losses (..., steps) exceed ten times their least before.

    The result is NaN where there is no such step.
    """
    jumps = _rises(losses) > 1
    return np.where(jumps.any(axis=-1), np.asarray(steps)[1:][jumps.argmax(axis=-1)], np.nan)


def _rises(losses: Any) -> Any:
    """Return the decimal log of each loss but the first over the least before, (..., steps - 1)."""
    logs = np.log10(losses)
    return logs[..., 1:] - np.minimum.accumulate(logs, axis=-1)[..., :-1]


def _trained(place: Place, arithmetic: str, part: range) -> dict[str, NDArray[Any]]:
    """Train a part of the networks of one size; return the loss, and which circles survive, at each frame."""
    trained = train(
        EmbeddingMLP(place.tokens, place.dim),
        runs=len(part),
        first_run=part.start,
        steps=place.steps,
        seed=SEED + place.tokens,
        weight_decay=DECAY,
        record=place.steps // FRAMES,
        observables=("train_loss", "validation_accuracy"),
        keep_start=False,
        **OPTIONS[arithmetic],
    )
    alive = survives(fourier_signals(trained.positions))
    return {
        "step": np.tile(trained.steps, (len(part), 1)),
        "loss": trained.observables["train_loss"],
        "alive": alive,
        "accuracy": trained.observables["validation_accuracy"][:, -1],
    }


def _tables(run: Run) -> dict[str, Columns]:
    """Train all networks; return tables of the networks at the end, and of losses and circles on the way."""
    setting: Setting = run.setting
    ends: list[Columns] = []
    courses: list[Columns] = []
    for place, runs, doubles in zip(setting.places, setting.runs, setting.doubles, strict=True):
        counts = {DOUBLE: doubles, USUAL: runs, STABLE: runs}
        found = {
            arithmetic: joined(
                in_parts(
                    run, count, PIECE, partial(_trained, place, arithmetic), f"{place.tokens}, {arithmetic}"
                )
            )
            for arithmetic, count in counts.items()
        }
        for arithmetic, rows in found.items():
            count, steps = counts[arithmetic], rows["step"][0]
            late = steps >= min(SETTLED, place.steps // 2)
            before, end = rows["alive"][:, late.argmax()], rows["alive"][:, -1]
            own = agreement(end[:doubles], found[DOUBLE]["alive"][:, -1])
            ends.append(
                {
                    "tokens": np.full(count, place.tokens),
                    "network": 1000 * place.tokens + np.arange(count),
                    "arithmetic": np.full(count, arithmetic),
                    "rise": largest_rise(rows["loss"][:, late]),
                    "jump": first_jump(rows["loss"][:, late], steps[late]),
                    "loss": np.log10(rows["loss"][:, -1]),
                    "circles": end.sum(axis=1),
                    "died": (before & ~end).sum(axis=1),
                    "as_double": np.append(own, np.full(count - len(own), np.nan)),
                    "accuracy": rows["accuracy"],
                }
            )
            courses.append(
                {
                    "tokens": np.full(len(steps), place.tokens),
                    "arithmetic": np.full(len(steps), arithmetic),
                    "step": steps,
                    "first_loss": np.log10(rows["loss"][0]),
                    "circles": rows["alive"][:doubles].sum(axis=2).mean(axis=0),
                }
            )
    return {"networks": joined(ends), "course": joined(courses)}


# -- rules -------------------------------------------------------------------------------------------------


def _gap(
    tokens: int, column: str, first: str, second: str, *, also: str = "", sizes: bool = False
) -> Measure:
    """Return a `Measure` of a column in one arithmetic minus that in another, as a mean of networks.

    Only networks count that have been trained in both, and in the arithmetic `also` if it is given. With
    `sizes`, absolute values are averaged.
    """

    def measure(tables: Tables, level: float) -> Interval:
        one, other, third = (
            where(tables["networks"], tokens=tokens, arithmetic=name)
            for name in (first, second, also or second)
        )
        common = np.intersect1d(np.intersect1d(one["network"], other["network"]), third["network"])
        places = (dict(zip(rows["network"].tolist(), rows[column], strict=True)) for rows in (one, other))
        here, there = (np.array([values[network] for network in common.tolist()]) for values in places)
        return mean(np.abs(here - there) if sizes else here - there, level)

    return measure


def _rise(tokens: int, arithmetic: str) -> Measure:
    def measure(tables: Tables, level: float) -> Interval:
        return mean(where(tables["networks"], tokens=tokens, arithmetic=arithmetic)["rise"], level)

    return measure


def _mixed(column: str) -> Chance:
    return shuffled("networks", column, within="network")


SOURCE = "a question of this project, after a pilot at p = 31 with other seeds"
RISE = (
    f"decimal log of the largest rise of the training loss after step {SETTLED} above its least before, at "
    "every hundredth step"
)


def _rules(tokens: int) -> tuple[Statement, ...]:
    at, circles = f"p = {tokens}", float(tokens // 2)
    return (
        Statement(
            f"{at}: one subtraction lets the loss jump up",
            "the gradient at the right class is its probability minus 1; in 32 bits this subtraction throws "
            "a network back that has long generalized",
            SOURCE,
            f"{RISE}: by subtraction minus that by the sum, both in 32 bits; by chance 0",
            _gap(tokens, "rise", USUAL, STABLE),
            chance=_mixed("rise"),
            least=2.0,
        ),
        Statement(
            f"{at}: it does not by the sum",
            "the loss does not jump up if the probabilities of the other classes are summed instead",
            SOURCE,
            f"{RISE}: by the sum in 32 bits",
            _rise(tokens, STABLE),
            chance=_mixed("rise"),
            most=0.3,
        ),
        Statement(
            f"{at}: nor in 64 bits",
            "nor does it jump up by subtraction in 64 bits",
            SOURCE,
            f"{RISE}: by subtraction in 64 bits",
            _rise(tokens, DOUBLE),
            chance=_mixed("rise"),
            most=0.3,
        ),
        Statement(
            f"{at}: circles die of it",
            "circles that have survived the competition die of rounding",
            SOURCE,
            f"circles that survive at step {SETTLED} and not at the end: by subtraction minus by the sum, "
            "both in 32 bits; by chance 0",
            _gap(tokens, "died", USUAL, STABLE),
            chance=_mixed("died"),
            least=0.25,
            possible=(-circles, circles),
        ),
        Statement(
            f"{at}: the loss is that of 64 bits",
            "by the sum, training in 32 bits is like that in 64",
            SOURCE,
            "decimal log of the training loss at the end, by the sum in 32 bits minus by subtraction in 64: "
            "its absolute value",
            _gap(tokens, "loss", STABLE, DOUBLE, sizes=True),
            chance=_mixed("loss"),
            most=0.1,
            note="the mean of these absolute values",
        ),
        Statement(
            f"{at}: and so are the circles",
            "by the sum, 32 bits keep more of the circles that 64 keep than they do by subtraction",
            SOURCE,
            "part of the circles that survive in 32 or in 64 bits that do in both: by the sum in 32 bits "
            "minus that by subtraction in 32; by chance 0",
            _gap(tokens, "as_double", STABLE, USUAL, also=DOUBLE),
            chance=_mixed("as_double"),
            least=0.1,
            possible=(-1.0, 1.0),
        ),
    )


def _draw(setting: Setting, tables: Tables) -> dict[str, Figure]:
    """Draw the loss of one network and the mean number of circles over the steps, for each size."""
    looks = {USUAL: (SERIES[1], "-"), STABLE: (SERIES[0], "-"), DOUBLE: (SERIES[5], ":")}
    rows = len(setting.places)
    with style(10.4):
        figure = Figure(figsize=(10.4, 0.6 + 3.1 * rows), layout="constrained")
        axes = figure.subplots(rows, 2, squeeze=False)
        counts = zip(setting.places, setting.doubles, strict=True)
        for (left, right), (place, doubles) in zip(axes, counts, strict=True):
            for arithmetic, (color, line) in looks.items():
                own = where(tables["course"], tokens=place.tokens, arithmetic=arithmetic)
                look: Any = {"color": color, "linestyle": line, "label": arithmetic, "linewidth": 1.4}
                left.plot(own["step"][1:], 10 ** own["first_loss"][1:], **look)
                right.plot(own["step"][1:], own["circles"][1:], **look)
            left.set_yscale("log")
            left.set(ylabel="training loss (nats)", title=f"p = {place.tokens}, d = {place.dim}: one network")
            right.set(ylabel="circles that survive", ylim=(0, None))
            right.set_title(f"mean of {doubles} networks")
        for ax in axes[-1]:
            ax.set_xlabel("step")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return {"rounding": figure}


PAPER = Setting((Place(31, 64, 30_000), Place(59, 128, 30_000)), (24, 12), (12, 8))


@recipe(
    "rounding",
    paper="beyond",
    item="rounding: one subtraction in 32 bits",
    shows=f"Training loss and circles over {PAPER.places[0].steps} steps, in three kinds of arithmetic. The "
    "gradient is the probability of the right class minus 1 (subtraction), or else minus the sum of the "
    "probabilities of all other classes (sum).",
    quick=Setting((Place(31, 32, 600),), (3,), (2,)),
    paper_setting=PAPER,
    cost="two hours",
    rules=(*_rules(31), *_rules(59)),
    draw=_draw,
)
def rounding(run: Run) -> Result:
    """Beyond the papers: train the same networks in 32 and 64 bits, and with a gradient without cancellation.

    The table "networks" has a row for each network and arithmetic, and "course" one for each arithmetic and
    recorded step.
    """
    return Result(_tables(run))
