"""Ding et al., Figure 12: networks that start from one or two circles."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.circles.fourier import fourier_signals
from analysis.circles.survival import survives
from analysis.plots.palette import SERIES
from analysis.plots.style import legend_below, style
from analysis.stats.intervals import Interval
from grokphys.papers.counters.builders import drawn, instead
from grokphys.papers.ding.training import DECAY, PAPER, QUICK, Size
from grokphys.papers.evidence import joined, mean, share, shuffled, where
from grokphys.papers.pieces import in_parts
from grokphys.papers.recipe import Measure, Result, Run, Statement, Tables, recipe
from nets.interventions import keep_frequencies
from nets.training import train
from physics.seeds import generator as generator_of
from physics.trajectory import Trajectory

SECTION = "Appendix C"
ALL, LARGEST, TWO, RANDOM, TWO_RANDOM = (
    "all",
    "the largest (A)",
    "the largest two (B)",
    "one random (C)",
    "two random (D)",
)
LEARNT = 1e-2
"""Test loss below which a network has learned the task."""
PIECE = 4, 60
"""Largest number of networks of a start that are trained together, on a CPU (half an hour) and on a GPU."""
SHOWN = 60
"""Largest number of steps of a loss curve that the table keeps."""


@dataclass(frozen=True)
class Ablation:
    """Setting of Figure 12: networks trained from all circles and from four other starts.

    Network k has the same layers and the same training set for every start.

    Attributes
    ----------
    size : Size
        Modulus, dimension and number of steps.
    record : str
        When test losses are recorded, as in `nets.train`.
    networks : int
        Number of networks for each start.
    seed : int
        Seed of all ensembles.
    """

    size: Size
    record: str
    networks: int
    seed: int


def _of(*starts: str) -> Any:
    """Return a function of tables that returns the networks with any of the given starts."""
    return lambda tables: {
        name: values[np.isin(tables["networks"]["start"], starts)]
        for name, values in tables["networks"].items()
    }


def _share(starts: tuple[str, ...], holds: Any) -> Measure:
    def measure(tables: Tables, level: float) -> Interval:
        rows = _of(*starts)(tables)
        return share(holds(rows), level, groups=rows["network"] if len(starts) > 1 else None)

    return measure


def _later(starts: tuple[str, ...], sign: int) -> Measure:
    """Return a `Measure` of the share of networks with some starts that learn later than with all circles.

    Learning means a test loss below `LEARNT`. With the sign -1 it is the share that learns earlier. A tie,
    which is learning at the same recorded step or never from both starts, counts one half.
    """

    def measure(tables: Tables, level: float) -> Interval:
        whole = _of(ALL)(tables)["learnt"]
        rows = _of(*starts)(tables)
        learnt, usual = rows["learnt"], np.tile(whole, len(starts))
        later = (sign * learnt > sign * usual) + (learnt == usual) / 2
        return share(later, level, groups=rows["network"])

    return measure


def _lowest(tables: Tables, level: float) -> Interval:
    return mean(np.log10(_of(TWO)(tables)["lowest"]), level)


def _ends_with(tables: Tables, level: float) -> Interval:
    return mean(_of(LARGEST)(tables)["circles"], level)


PAPER_ABLATION = Ablation(PAPER, "10:2000,100", 60, 120_000)
STAYS = drawn(
    "nothing revived that began at zero",
    "networks",
    circles=lambda rows, _: np.where(rows["start"] == ALL, rows["circles"], rows["kept"]),
    others=0,
)


@recipe(
    "ding-12",
    paper="Ding",
    item="Figure 12; Appendix C",
    shows="Test loss of networks that begin with all circles, the one or two strongest, or one or two random "
    f"ones: of the first network (solid), and the median of {PAPER_ABLATION.networks} (dotted). The rise "
    "near step 19 000 is an effect of rounding in 32 bits (see `rounding`).",
    quick=Ablation(QUICK, "20", 3, 0),
    paper_setting=PAPER_ABLATION,
    cost="four to eight hours; four networks of each start at a time are kept",
    rules=(
        Statement(
            "A: others are revived",
            "the model revives some frequencies with an originally 0 signal",
            SECTION,
            "share of networks A in which a frequency survives that began at zero",
            _share((LARGEST,), lambda rows: rows["others"] > 0),
            chance="none, if what began at zero stayed there",
            counter=STAYS,
            least=0.75,
        ),
        Statement(
            "A: four circles",
            "and eventually ends up with four learned circles",
            SECTION,
            "mean number of circles of networks A",
            _ends_with,
            chance="they began with one; shuffling among one start leaves the mean",
            counter=STAYS,
            least=3.5,
            most=4.5,
        ),
        Statement(
            "A to D: never one",
            "In none of our experiments were we able to construct … a single-circle representation",
            SECTION,
            "share of networks A to D that end with a single circle",
            _share((LARGEST, TWO, RANDOM, TWO_RANDOM), lambda rows: rows["circles"] == 1),
            chance="half of them begin with one; what survives cannot be shuffled to be one",
            counter=STAYS,
            most=0.1,
        ),
        Statement(
            "B: two suffice",
            "achieves good performance using only the two circles initialized with non-zero signals",
            SECTION,
            "share of networks B in which nothing but these two survives",
            _share((TWO,), lambda rows: (rows["others"] == 0) & (rows["kept"] == 2)),
            chance=shuffled("networks", "others", within="network"),
            least=0.75,
        ),
        Statement(
            "B: loss",
            "Two circles seem sufficient for the model to achieve a loss as low as 1e-7",
            SECTION,
            "mean log₁₀ of the lowest test loss of networks B; guessing has 0.6",
            _lowest,
            chance="all starts may come as low in 30 000 steps: shuffling among them tells nothing",
            counter=instead("networks", rows={"start": RANDOM}, of={"start": TWO}),
            most=-6.0,
            note="by PyTorch in float32, in which the smallest losses come out too small",
        ),
        Statement(
            "B: faster",
            "Experiment B reaches lower test loss more quickly than the original",
            SECTION,
            "share of networks B whose test loss is below 0.01 earlier than with all circles; by chance 0.5",
            _later((TWO,), -1),
            chance=shuffled("networks", "learnt", within="network"),
            least=0.75,
        ),
        Statement(
            "C and D: slower",
            "the model struggles to learn with only 1 or 2 random frequencies",
            SECTION,
            "share of networks C and D whose test loss is below 0.01 later than with all; by chance 0.5",
            _later((RANDOM, TWO_RANDOM), 1),
            chance=shuffled("networks", "learnt", within="network"),
            least=0.75,
            note="both starts together: from one circle always later, from two nearly always earlier",
        ),
        Statement(
            "C and D: three or more",
            "after training, at least three circles survive",
            SECTION,
            "share of networks C and D in which three circles or more survive",
            _share((RANDOM, TWO_RANDOM), lambda rows: rows["circles"] >= 3),
            chance="none, if what began at zero stayed there",
            counter=STAYS,
            least=0.75,
            note="both starts together: from one circle always, while two random ones mostly stay alone",
        ),
    ),
)
def ablation(run: Run) -> Result:
    """Reproduce Figure 12 of Ding et al.: trainings that start from only the strongest or random frequencies.

    Embedding MLPs start from all circles, from the one or two that were strongest at the end of that
    training, or from one or two random ones. The table "networks" has a row for each network, and "curves"
    the test loss over time. The rules judge which circles survive, the lowest test loss, and whether learning
    is faster or slower than from all circles.
    """
    setting: Ablation = run.setting
    trained = joined(in_parts(run, setting.networks, PIECE, partial(_train_part, setting)))
    found = {name: where(trained, start=name) for name in (ALL, LARGEST, TWO, RANDOM, TWO_RANDOM)}
    rows = joined(found.values())
    names = ("start", "network", "circles", "kept", "others", "lowest", "learnt")
    tables = {"networks": {name: rows[name] for name in names}, "curves": _curves(found)}
    return Result(tables, {"ding-12": _show(found)})


def _train_part(setting: Ablation, part: range) -> dict[str, Any]:
    """Train some of the networks from each of the five starts; return a table of what `_ended` returns."""
    options: dict[str, Any] = {
        "steps": setting.size.steps,
        "seed": setting.seed,
        "weight_decay": DECAY,
        "record": setting.record,
        "observables": ("validation_loss",),
    }
    whole = train(setting.size.model, runs=len(part), first_run=part.start, **options)
    order = 1 + np.argsort(-fourier_signals(np.nan_to_num(whole.final)), axis=1)
    # Random frequencies are drawn from all except the two that were strongest at the end, in the same way
    # whichever networks are trained together.
    generator = generator_of(setting.seed)
    ranks = [2 + generator.choice(order.shape[1] - 2, 2, replace=False) for _ in range(part.stop)]
    drawn = np.take_along_axis(order, np.array(ranks[part.start :]), axis=1)
    cases = {LARGEST: order[:, :1], TWO: order[:, :2], RANDOM: drawn[:, :1], TWO_RANDOM: drawn}
    starts = [
        keep_frequencies(E, chosen)
        for kept in cases.values()
        for E, chosen in zip(whole.initial, kept.tolist(), strict=True)
    ]
    # Seed and numbers are the same, so layers and training sets are those of the undisturbed networks.
    again = train(
        setting.size.model,
        runs=len(starts),
        run_numbers=[*part] * len(cases),
        initial={"embedding": np.stack(starts)},
        **options,
    )
    found = [_ended(ALL, part, whole, order[:, :0])]
    for n, (name, kept) in enumerate(cases.items()):
        found.append(_ended(name, part, again[n * len(part) : (n + 1) * len(part)], kept))
    return joined(found)


def _ended(start: str, part: range, trained: Trajectory, kept: NDArray[np.int64]) -> dict[str, Any]:
    """Return a table of networks, which started from the frequencies `kept` (networks, n).

    It has a row for each network with the name of its start and its number; numbers of survivors (all, those
    kept, and others); the lowest test loss; the first recorded step with a loss below `LEARNT` (infinite if
    there is none); and the steps and losses of all frames, each (networks, frames).
    """
    alive = survives(fourier_signals(np.nan_to_num(trained.final)))
    losses, steps = trained.observables["validation_loss"], trained.steps
    chosen = np.zeros_like(alive)
    np.put_along_axis(chosen, kept - 1, True, axis=1)
    below = losses < LEARNT
    return {
        "start": np.full(len(part), start),
        "network": np.array(part),
        "circles": alive.sum(axis=1),
        "kept": (alive & chosen).sum(axis=1),
        "others": (alive & ~chosen).sum(axis=1),
        "lowest": losses.min(axis=1),
        "learnt": np.where(below.any(axis=1), steps[below.argmax(axis=1)], np.inf),
        "steps": np.broadcast_to(steps, losses.shape),
        "losses": losses,
    }


def _curves(found: dict[str, dict[str, NDArray[Any]]]) -> dict[str, Any]:
    """Return a table of the median and the range of the test loss over networks, at up to `SHOWN` steps.

    `found` holds the tables of `_ended` by the name of the start. The steps become sparser with time.
    """
    steps = found[ALL]["steps"][0]
    at = np.unique(np.searchsorted(steps, np.geomspace(max(steps[1], 1), steps[-1], SHOWN)))
    return {
        "start": np.repeat(list(found), len(at)),
        "step": np.tile(steps[at], len(found)),
        "median": np.concatenate([np.median(one["losses"][:, at], axis=0) for one in found.values()]),
        "lowest": np.concatenate([one["losses"][:, at].min(axis=0) for one in found.values()]),
        "highest": np.concatenate([one["losses"][:, at].max(axis=0) for one in found.values()]),
    }


def _show(found: dict[str, dict[str, NDArray[Any]]]) -> Figure:
    """Draw the test loss over time for each start: of the first network, and the median of all networks.

    `found` holds the tables of `_ended` by the name of the start.
    """
    with style(10.4):
        figure = Figure(figsize=(10.4, 4.6))
        axes = figure.subplots(1, 2, sharey=True)
        for ax, title, names in (
            (axes[0], "the strongest of the undisturbed network", (ALL, LARGEST, TWO)),
            (axes[1], "random frequencies", (ALL, RANDOM, TWO_RANDOM)),
        ):
            for n, name in enumerate(names):
                one = found[name]
                steps, losses = one["steps"][0], one["losses"]
                ax.plot(steps, losses[0], color=SERIES[n], linewidth=1.0, label=name)
                ax.plot(steps, np.median(losses, axis=0), color=SERIES[n], linestyle=":")
            ax.set(xlabel="step", yscale="log", title=title)
            legend_below(ax, title="frequencies at the start (dotted: median of all networks)", columns=3)
        axes[0].set(ylabel="test loss")
    return figure
