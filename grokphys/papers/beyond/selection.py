"""Beyond Ding et al.: activations for which circles compete."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.circles.fourier import fourier_signals
from analysis.circles.survival import survives
from analysis.plots.palette import SERIES
from analysis.plots.style import style
from analysis.stats.intervals import Interval
from grokphys.papers import evidence
from grokphys.papers.counters.builders import instead
from grokphys.papers.ding.training import DECAY, show_intervals
from grokphys.papers.evidence import joined, mean, paired_gap, shuffled, where
from grokphys.papers.recipe import Result, Run, Statement, Tables, recipe
from nets.models import EmbeddingMLP
from nets.training import train

SOURCE = "beyond the papers; SCIENCE of this project, measured beforehand on other seeds"


class Kind(NamedTuple):
    """An activation: its name, and the weight λ (`even`) with which the even part of SiLU is added to it."""

    activation: Any
    even: float = 0.0

    def __str__(self) -> str:
        return f"{self.activation}, λ = {self.even:g}" if self.even else str(self.activation)


class Place(NamedTuple):
    """Size and training of a network: modulus (`tokens`), embedding dimension (`dim`), and steps."""

    tokens: int
    dim: int
    steps: int


@dataclass(frozen=True)
class Setting:
    """Setting: `runs` networks for each pair of an activation in `kinds` and a size in `places`."""

    kinds: Sequence[Kind]
    places: Sequence[Place]
    runs: int


def effective_number(signals: Any) -> NDArray[np.float64]:
    """Return the effective number of circles, ``(Σx²)² / Σx⁴`` for the Fourier signals x of all frequencies.

    Parameters
    ----------
    signals : array_like, shape (..., K)
        Signals of K frequencies.

    Returns
    -------
    ndarray of float64, shape (...)
        1 if only one signal is not zero, K if all are equal and not zero, and NaN if all are zero.
    """
    squares = np.asarray(signals, np.float64) ** 2
    return np.asarray(squares.sum(axis=-1) ** 2 / (squares**2).sum(axis=-1))


def octaves(alive: Any, tokens: int) -> NDArray[np.int64]:
    """Count the pairs of survivors of which one has twice the frequency of the other.

    Parameters
    ----------
    alive : array_like of bool, shape (..., K)
        Whether the circle of each frequency k = 1 … K survives.
    tokens : int
        Modulus, an odd number of at least 5; frequencies are taken modulo it and up to sign.

    Returns
    -------
    ndarray of int64, shape (...)
        Number of pairs.
    """
    survived = np.asarray(alive, bool)
    k = np.arange(1, survived.shape[-1] + 1)
    double = 2 * k % tokens
    double = np.minimum(double, tokens - double)
    return np.asarray((survived & survived[..., double - 1]).sum(axis=-1))


def networks(run: Run, seed: int) -> dict[str, NDArray[Any]]:
    """Train networks of all sizes and activations of a setting, and return a table with a row for each.

    The modulus is added to `seed`. `_trained` describes the columns.
    """
    setting: Setting = run.setting
    return joined(
        run.keep(
            f"{place.tokens}-{kind.activation}-{kind.even:g}",
            partial(_trained, kind, place, setting.runs, seed),
        )
        for place in setting.places
        for kind in setting.kinds
    )


def _trained(kind: Kind, place: Place, runs: int, seed: int) -> dict[str, Any]:
    """Train networks of one activation and one size, and return a table with a row for each.

    Its columns are modulus, activation and number of the network; the effective number of circles as a
    fraction of all; the numbers of survivors, of their pairs, and of the pairs with the ratio 2; and the
    validation accuracy. All activations share initial weights and training sets, because the seed depends
    only on the modulus.
    """
    model = EmbeddingMLP(place.tokens, place.dim, activation=kind.activation, even=kind.even)
    trained = train(
        model,
        runs=runs,
        steps=place.steps,
        seed=seed + place.tokens,
        weight_decay=DECAY,
        record=place.steps,
        observables=("validation_accuracy",),
    )
    signals = fourier_signals(trained.final)
    alive = survives(signals)
    counts = alive.sum(axis=1)
    return {
        "tokens": np.full(runs, place.tokens),
        "activation": np.full(runs, kind.activation),
        "even": np.full(runs, kind.even),
        "network": np.arange(runs),
        "effective": effective_number(signals) / signals.shape[1],
        "survivors": counts,
        "pairs": counts * (counts - 1) // 2,
        "octaves": octaves(alive, place.tokens),
        "accuracy": trained.observables["validation_accuracy"][:, -1],
    }


# -- selection ---------------------------------------------------------------------------------------------


def _mean(column: str, tokens: int, kind: Kind) -> Callable[[Tables, float], Interval]:
    def measure(tables: Tables, level: float) -> Interval:
        rows = where(tables["networks"], tokens=tokens, activation=kind.activation, even=kind.even)
        return mean(rows[column], level)

    return measure


def gap(
    tokens: int, first: Kind, second: Kind, statistic: Callable[..., Any], *columns: str
) -> Callable[[Tables, float], Interval]:
    """Return a `Measure` of a statistic of columns with one activation minus the same with another.

    Networks with the same number share their initial weights, so these are left out together.
    """

    def measure(tables: Tables, level: float) -> Interval:
        rows = where(tables["networks"], tokens=tokens)
        a, b = ((rows["activation"] == k.activation) & (rows["even"] == k.even) for k in (first, second))
        values = tuple(rows[name] for name in columns)
        return paired_gap(statistic, values, a, b, level, groups=rows["network"])

    return measure


def _falls(tokens: int) -> Callable[[Tables, float], Interval]:
    def measure(tables: Tables, level: float) -> Interval:
        rows = where(tables["networks"], tokens=tokens, activation="tanh")
        return evidence.rank_correlation(rows["even"], rows["effective"], level, groups=rows["network"])

    return measure


ODD, SELECTS = ("tanh", "asinh"), ("silu", "relu")
PART = "effective number of circles as a part of all"
ANY = shuffled("networks", "effective", within="tokens", among={"even": 0.0})
EFFECTIVE = "(Σs²)²/Σs⁴ of the final signals s: all if they are equal, as they nearly are at the start"
PAIRED = "corrected after the run: networks with the same initial weights are resampled together"


def _selection_rules(tokens: int) -> tuple[Statement, ...]:
    at = f"p = {tokens}"
    tanh, quarter, silu = Kind("tanh"), Kind("tanh", 0.25), Kind("silu")
    plain = {"tokens": tokens, "activation": "tanh", "even": 0.0}
    return (
        *(
            Statement(
                f"{at}: {name} selects nothing",
                "an odd activation lets all circles survive",
                SOURCE,
                f"{PART}, {name}",
                _mean("effective", tokens, Kind(name)),
                chance=ANY,
                least=0.85,
                note=EFFECTIVE,
            )
            for name in ODD
        ),
        *(
            Statement(
                f"{at}: {name} selects",
                "an activation with an even part lets a few circles survive",
                SOURCE,
                f"{PART}, {name}",
                _mean("effective", tokens, Kind(name)),
                chance=ANY,
                most=0.5,
                note=EFFECTIVE,
            )
            for name in SELECTS
        ),
        Statement(
            f"{at}: tanh generalizes as well",
            "without an even part the network generalizes as well",
            SOURCE,
            "validation accuracy with tanh minus that with SiLU",
            gap(tokens, tanh, silu, np.mean, "accuracy"),
            chance="shuffling activations would make them alike",
            counter=instead("networks", rows=plain | {"tokens": 31, "even": 4.0}, of=plain),
            least=-0.02,
            note=PAIRED,
        ),
        Statement(
            f"{at}: the even part competes",
            "the more of the even part, the fewer circles survive",
            SOURCE,
            "Kendall's τ of the effective number of circles and λ, tanh; by chance 0",
            _falls(tokens),
            chance=shuffled("networks", "even", within="activation"),
            most=-0.5,
            note=PAIRED,
        ),
        Statement(
            f"{at}: there is a threshold",
            "a little of the even part changes nothing",
            SOURCE,
            f"{PART} at λ = 0.25 minus that at 0; 0 below a threshold",
            gap(tokens, quarter, tanh, np.mean, "effective"),
            chance="shuffling λ would make them alike; the fall over all λ is the rule before",
            counter=instead("networks", rows={"even": 0.5}, of={"even": 0.25}),
            least=-0.05,
            most=0.05,
            note=PAIRED,
            withdrawn="a smooth curve that begins flat passes as well, without any threshold",
        ),
    )


MIXED = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 2.0, 4.0)
FOUR = tuple(Kind(name) for name in (*SELECTS, *ODD))
SPELLED = {"silu": "SiLU", "relu": "ReLU"}


def _draw_selection(setting: Setting, tables: Tables) -> dict[str, Figure]:
    """Draw the effective number of circles over the even part, and by activation."""
    table = tables["networks"]
    with style(10.4):
        figure = Figure(figsize=(10.4, 3.9))
        left, right = figure.subplots(1, 2, sharey=True)
        for n, p in enumerate(np.unique(table["tokens"])):
            rows = where(table, tokens=p, activation="tanh")
            weights = np.unique(rows["even"])
            found = [mean(where(rows, even=even)["effective"], 0.95) for even in weights]
            look: Any = {"color": SERIES[n], "marker": "os"[n % 2], "label": f"p = {p}"}
            show_intervals(left, weights, found, **look)
            four = (where(table, tokens=p, activation=k.activation, even=0.0) for k in FOUR)
            plain = [mean(own["effective"], 0.95) for own in four]
            show_intervals(right, np.arange(4) + 0.1 * n, plain, linestyle="none", **look)
        left.set_xscale("symlog", linthresh=0.1)
        left.set(xlabel="λ in tanh(x) + λ (x/2) tanh(x/2)", ylim=(0, 1.05))
        left.set_ylabel("effective number of circles\nover all frequencies")
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=2)
        right.set_xticks(range(4), [SPELLED.get(kind.activation, kind.activation) for kind in FOUR])
        right.set_title(f"{setting.runs} networks each")
    return {"selection": figure}


@recipe(
    "selection",
    paper="beyond",
    item="selection: the even part of the activation",
    shows="The effective number of circles, as a share of all, by the even part of the activation.",
    quick=Setting((*FOUR, Kind("tanh", 0.25), Kind("tanh", 4.0)), (Place(31, 64, 60),), 3),
    paper_setting=Setting(
        (*FOUR, *(Kind("tanh", even) for even in MIXED[1:]), Kind("asinh", 1.0)),
        (Place(31, 64, 1500), Place(59, 128, 3000)),
        40,
    ),
    cost="one to two hours",
    rules=(*_selection_rules(31), *_selection_rules(59)),
    draw=_draw_selection,
)
def selection(run: Run) -> Result:
    """Beyond the papers: measure how many circles survive with activations that have an even part or none.

    The table "networks" has a row for each network. The rules judge the effective number of circles, as a
    fraction of all, and the validation accuracy.
    """
    return Result({"networks": networks(run, 31_000)})
