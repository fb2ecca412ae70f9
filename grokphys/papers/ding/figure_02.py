"""Ding et al., Figures 2 and 3: signals over time, and circles in Fourier planes and on principal axes."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.circles.fourier import fourier_signals
from analysis.circles.geometry import circle_delta, circularity, frequency_plane, principal_components
from analysis.circles.survival import survives
from analysis.plots.palette import DEAD, FRAME, SERIES, cyclic_colors
from analysis.plots.style import legend_below, style
from analysis.stats.intervals import Interval
from grokphys.papers.ding.training import DECAY, PAPER, QUICK, Size
from grokphys.papers.evidence import Chance, by_network, columns_of, mean, share, shuffled, where
from grokphys.papers.recipe import Result, Run, Statement, Tables, recipe
from nets.training import train

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Whole:
    """Setting of Figures 2 and 3: networks that are trained to the end.

    Attributes
    ----------
    size : Size
        Modulus, dimension and number of steps.
    snapshots : sequence of int
        Steps at which Figure 2 draws one network; the last step of training replaces the last of them.
    networks : int
        Number of networks.
    seed : int
        Seed of the ensemble.
    """

    size: Size
    snapshots: Sequence[int]
    networks: int
    seed: int


QUICK_WHOLE = Whole(QUICK, (0, 100, 500), 3, 0)
SNAPSHOTS = (0, 100, 300, 500, 1000, 30_000)


def _train(run: Run, record: Any) -> dict[str, NDArray[Any]]:
    """Train networks to the end, and record them at the steps `record`.

    The arrays are the steps (frames,), the signals of the K frequencies (networks, frames, K), the final
    embeddings (networks, p, d) of p tokens in d dimensions, and all embeddings of the first network (frames,
    p, d).
    """
    setting: Whole = run.setting

    def make() -> dict[str, Any]:
        trained = train(
            setting.size.model,
            runs=setting.networks,
            steps=setting.size.steps,
            seed=setting.seed,
            weight_decay=DECAY,
            record=record,
            observables=(),
        )
        return {
            "steps": trained.steps,
            "signals": fourier_signals(trained.positions),
            "final": trained.final,
            "one": trained.positions[0],
        }

    return run.keep("networks", make)


# -- Figure 2 -----------------------------------------------------------------------------------------------


def _apart(tables: Tables, level: float) -> Interval:
    """Return log₁₀ of the weakest survivor's final signal over the strongest dead circle's.

    It is the mean over the networks in which some circles survive and others die.
    """
    rows = tables["circles"]
    gaps = []
    for own in by_network(rows):
        alive = own["survived"].astype(bool)
        if 0 < alive.sum() < len(alive):
            gaps.append(np.log10(own["last"][alive].min() / own["last"][~alive].max()))
    return mean(gaps, level)


def _round(tables: Tables, level: float) -> Interval:
    rows = where(tables["circles"], survived=True)
    return mean(rows["circularity"], level, groups=rows["network"])


def _strongest_dies(tables: Tables, level: float) -> Interval:
    rows = tables["circles"]
    own = by_network(rows)
    return share([not one["survived"][np.argmax(one["first"])] for one in own], level)


@partial(Chance, "survivors replaced by as many circles of the largest signals at the start")
def _strongest_survive(tables: Tables, generator: np.random.Generator) -> Tables:
    """Return tables in which the signals at the start decide which circles of a network survive."""
    rows = tables["circles"]
    survived = np.zeros(len(rows["first"]), bool)
    for network in np.unique(rows["network"]):
        own = np.flatnonzero(rows["network"] == network)
        count = np.count_nonzero(rows["survived"][own])
        survived[own[np.argsort(-rows["first"][own])[:count]]] = True
    return {**tables, "circles": {**rows, "survived": survived}}


@recipe(
    "ding-2",
    paper="Ding",
    item="Figure 2",
    shows="The signals of all frequencies of one network during training, and a dead and a surviving circle. "
    "The break after step 10⁴ is an effect of rounding in 32 bits (see `rounding`).",
    quick=QUICK_WHOLE,
    paper_setting=Whole(PAPER, SNAPSHOTS, 30, 20_000),
    cost="half an hour to two hours: all networks are trained to the end",
    rules=(
        Statement(
            "left",
            "The surviving frequencies clearly separate themselves from the rest",
            "Figure 2",
            "log₁₀ of the weakest survivor's signal over that of the strongest of the dead, mean of networks",
            _apart,
            chance=shuffled("circles", "survived", within="network"),
            least=1.0,
            note="signals are norms, as in the figure; with squares it would be twice as much, and hold",
        ),
        Statement(
            "right",
            "projections of a surviving frequency stabilize into a clear circle",
            "Section 2",
            "circularity (Eq. 5) of the survivors at the end, mean of networks; 1 for a circle",
            _round,
            chance=shuffled("circles", "survived", within="network"),
            least=0.9,
        ),
        Statement(
            "not always",
            "initially large frequencies do not always lead to surviving circles",
            "Section 2",
            "share of networks in which the frequency that begins strongest dies",
            _strongest_dies,
            chance="by chance about 25 of 29 die: the statement only says that strength does not decide",
            counter=_strongest_survive,
            least=0.05,
        ),
    ),
)
def signals(run: Run) -> Result:
    """Reproduce Figure 2 of Ding et al.: all signals, and a dead and a surviving frequency in their planes.

    Embedding MLPs are trained to the end on addition modulo p. The table "circles" has a row for each
    frequency of each network, with its first and last signal. The rules ask how far survivors and dead
    circles are apart, how circular survivors are, and how often the frequency that starts strongest dies.
    """
    setting: Whole = run.setting
    snapshots = [*setting.snapshots[:-1], setting.size.steps]
    record = {*range(0, 1000, 10), *np.geomspace(1000, PAPER.steps, 20).astype(int).tolist(), *snapshots}
    found = _train(run, sorted(step for step in record if step <= setting.size.steps))
    signal, steps = found["signals"], found["steps"]
    alive = survives(signal[:, -1])
    networks, K = alive.shape
    rows = {
        "network": np.repeat(np.arange(networks), K),
        "frequency": np.tile(np.arange(1, K + 1), networks),
        "first": signal[:, 0].ravel(),
        "last": signal[:, -1].ravel(),
        "circularity": circularity(found["final"]).ravel(),
        "survived": alive.ravel(),
    }
    best = 1 + int(np.argmax(signal[0, -1]))
    dead = 1 + int(np.argmax(np.where(alive[0], 0, signal[0, 0])))
    with style(12.6):
        figure = Figure(figsize=(12.6, 4.8))
        parts: Any = figure.subfigures(1, 2, width_ratios=(1, 1.75))
        ax = parts[0].subplots()
        ax.plot(steps, signal[0][:, ~alive[0]], color=DEAD, linewidth=0.7)
        for n, k in enumerate(np.flatnonzero(alive[0]).tolist()):
            ax.plot(
                steps, signal[0, :, k], color=SERIES[n % len(SERIES)], linewidth=1.7, label=f"k = {k + 1}"
            )
        ax.set(yscale="log", xlabel="step", ylabel="Fourier signal ‖$F_k$‖", xlim=(0, steps[-1]))
        ax.set_xscale("symlog", linthresh=100)
        ax.set_title(f"{alive[0].sum()} of {K} frequencies survive")
        if alive[0].any():
            legend_below(ax, columns=3)
        axes = parts[1].subplots(2, len(snapshots))
        frames = [found["one"][np.searchsorted(steps, step)] for step in snapshots]
        for row, k in zip(axes, (dead, best), strict=True):
            planes = [frequency_plane(E, k).points for E in frames]
            extent = 1.1 * max(float(np.abs(points).max()) for points in planes)
            for cell, step, points in zip(row, snapshots, planes, strict=True):
                _show_plane(cell, points, k, extent)
                cell.set_title(f"step {step}" if k == dead else "", fontsize="small")
            row[0].set_ylabel(f"k = {k}, {'dead' if k == dead else 'survives'}", fontsize="small")
        parts[1].suptitle("tokens n in the plane of frequency k; color: k n mod p")
    return Result({"circles": rows}, {"ding-2": figure})


def _show_plane(ax: Axes, points: Array, k: int, extent: float) -> None:
    """Draw the points (p, 2) of p tokens, each colored by its place on the circle of frequency k.

    Token n is at the place k n mod p. `extent` is the largest coordinate that is shown.
    """
    p = len(points)
    ax.scatter(points[:, 0], points[:, 1], s=11, linewidths=0, c=cyclic_colors(p)[k * np.arange(p) % p])
    ax.set(xlim=(-extent, extent), ylim=(-extent, extent), xticks=[], yticks=[])
    ax.set_aspect("equal")
    ax.spines[:].set_visible(True)
    ax.spines[:].set_color(FRAME)


# -- Figure 3 -----------------------------------------------------------------------------------------------


def _found(tables: Tables, level: float) -> Interval:
    """Return the share of pairs of principal components whose strongest frequency is that of a survivor.

    As many pairs of a network count as circles survive in it.
    """
    rows = tables["planes"]
    own = by_network(rows)
    hits = [np.isin(one["component"], one["frequency"]) for one in own]
    groups = np.repeat(np.arange(len(own)), [len(one) for one in hits])
    return share(np.concatenate([*hits, []]), level, groups=groups if len(groups) else None)


def _significant(tables: Tables, level: float) -> Interval:
    rows = tables["planes"]
    own = [one["variance"] for one in by_network(rows)]
    return mean([one.sum() for one in own], level)


def _better(tables: Tables, level: float) -> Interval:
    rows = tables["planes"]
    return mean(rows["in_fourier"] - rows["in_components"], level, groups=rows["network"])


@partial(Chance, "random embeddings, in which as many of the strongest frequencies count as survivors")
def _random_embeddings(tables: Tables, generator: np.random.Generator) -> Tables:
    """Return tables in which each final embedding is replaced by normally distributed numbers."""
    rows = []
    for network, count in zip(*np.unique(tables["planes"]["network"], return_counts=True), strict=True):
        rows += _planes(int(network), generator.standard_normal((PAPER.tokens, PAPER.dim)), int(count))
    return {**tables, "planes": columns_of(rows)}


@recipe(
    "ding-3",
    paper="Ding",
    item="Figure 3",
    shows="A final embedding along pairs of principal components and in Fourier planes.",
    quick=QUICK_WHOLE,
    paper_setting=Whole(PAPER, (), 30, 30_000),
    cost="half an hour to two hours: all networks are trained to the end",
    rules=(
        Statement(
            "correspondence",
            "The ∆ between adjacent tokens shows a correspondence between PCA and FFT",
            "Figure 3",
            "share of pairs of components whose frequency is that of a survivor; by chance 4 of 29",
            _found,
            chance=shuffled("planes", "component"),
            least=0.5,
            note="of a random embedding, 36 % of the pairs show one of its four strongest frequencies",
        ),
        Statement(
            "significant",
            "first 10 principal components in pairs, the only components with significant singular values",
            "Figure 3",
            "part of the variance along as many pairs of components as circles survive, mean of networks",
            _significant,
            chance="in a random embedding, the first 10 of 58 components have 37 % of the variance",
            counter=_random_embeddings,
            least=0.95,
            note="the chance was said to be a fifth until after the run",
        ),
        Statement(
            "better",
            "the Fourier transformation … can reveal circular representations better",
            "Section 2",
            "part of a plane's variance at its own frequency: Fourier planes minus pairs of components",
            _better,
            chance="there is nothing to shuffle between the two bases but the sign: 0",
            counter=_random_embeddings,
            least=0.1,
            withdrawn="random embeddings pass by more, as a Fourier plane is made for its own frequency",
        ),
    ),
)
def components(run: Run) -> Result:
    """Reproduce Figure 3 of Ding et al.: a final embedding along principal components and in Fourier planes.

    Embedding MLPs are trained to the end on addition modulo p. The table "planes" has a row for each survivor
    of each network. The rules ask how often a pair of components shows the frequency of a survivor, how much
    variance these pairs hold, and whether single frequencies stand out more in Fourier planes.
    """
    final = _train(run, [run.setting.size.steps])["final"].astype(np.float64)
    rows = [row for network, E in enumerate(final) for row in _planes(network, E)]
    table = {name: np.array([row[name] for row in rows]) for name in PLANE}
    shown = int(table["network"][0]) if rows else 0
    one, E = where(table, network=shown), final[shown]
    points, columns = principal_components(E).points, max(len(one["frequency"]), 2)
    with style(2.25 * columns):
        figure = Figure(figsize=(2.25 * columns, 5.6))
        axes = figure.subplots(2, columns, squeeze=False)
        for pair, k in enumerate(one["component"].tolist()):
            plane = points[:, 2 * pair : 2 * pair + 2]
            _show_plane(axes[0, pair], plane, k, 1.1 * float(np.abs(plane).max()))
            head = f"components {2 * pair + 1}, {2 * pair + 2}\nk = {k}, Δ = {circle_delta(k, len(E))}"
            axes[0, pair].set_title(head, fontsize="small")
            axes[0, pair].set_xlabel(f"{one['variance'][pair]:.0%} of variance", fontsize="small")
        for place, k in enumerate(one["frequency"].tolist()):
            plane = frequency_plane(E, k).points
            _show_plane(axes[1, place], plane, k, 1.1 * float(np.abs(plane).max()))
            axes[1, place].set_title(f"k = {k}, Δ = {circle_delta(k, len(E))}", fontsize="small")
            axes[1, place].set_xlabel(f"{one['in_fourier'][place]:.1%} at k", fontsize="small")
        axes[0, 0].set_ylabel("principal components")
        axes[1, 0].set_ylabel("Fourier planes")
        if not rows:
            axes[0, 0].set_title("no circle survives")
    return Result({"planes": table}, {"ding-3": figure})


PLANE = ("network", "frequency", "component", "variance", "in_fourier", "in_components")
"""Columns of the table "planes", which has no row if no circle survives."""


def _planes(network: int, E: Array, count: int | None = None) -> list[dict[str, Any]]:
    """Compare the Fourier planes of the survivors of a network with pairs of its principal components.

    `E` (tokens, dim) is the final embedding. There is a row for each survivor, the strongest first, with the
    pair of components of the same rank, the frequency that is strongest in this pair, and fractions of the
    variance. If a `count` is given, as many of the strongest frequencies count as survivors.
    """
    signal, found = fourier_signals(E), principal_components(E)
    alive = np.count_nonzero(survives(signal)) if count is None else count
    order = [int(k) + 1 for k in np.argsort(-signal)[:alive]]
    rows = []
    for pair, k in enumerate(order):
        columns = slice(2 * pair, 2 * pair + 2)
        component = found.frequency(pair)
        rows.append(
            {
                "network": network,
                "frequency": k,
                "component": component,
                "variance": float(found.fractions[columns].sum()),
                "in_fourier": _part(frequency_plane(E, k).points, k),
                "in_components": _part(found.points[:, columns], component),
            }
        )
    return rows


def _part(points: Array, k: int) -> float:
    """Return the fraction of the variance of points (p, 2), p odd, that belongs to frequency k."""
    power = (np.abs(np.fft.rfft(points - points.mean(axis=0), axis=0)) ** 2).sum(axis=1)
    return float(power[k] / power[1:].sum())
