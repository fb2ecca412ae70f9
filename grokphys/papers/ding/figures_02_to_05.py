"""Ding et al., Figures 2 to 5 and 14: signals, planes of circles, frozen embeddings, numbers of circles."""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.circles.fourier import fourier_signals
from analysis.circles.geometry import circle_delta, circularity, frequency_plane, principal_components
from analysis.circles.survival import survives
from analysis.plots import palette
from analysis.stats.intervals import CONFIDENCE
from grokphys.papers import charts, counters, evidence, measures
from grokphys.papers.ding.training import PAPER, QUICK, train_networks
from grokphys.papers.evidence import Columns, Measure, Tables
from grokphys.papers.pieces import in_parts
from grokphys.papers.recipe import Result, Run, Setting, Statement, recipe
from nets.engines.ensemble import draw
from nets.models import EmbeddingMLP

# -- Figure 2 ----------------------------------------------------------------------------------------------

Array = NDArray[np.float64]


QUICK_WHOLE = Setting(size=QUICK, snapshots=(0, 100, 500), networks=3, seed=0)
SNAPSHOTS = (0, 100, 300, 500, 1000, 30_000)


def _train(run: Run, record: Any) -> dict[str, NDArray[Any]]:
    """Train networks to the end, and record them at the steps `record`.

    The arrays are the steps (frames,), the signals of the K frequencies (networks, frames, K), the final
    embeddings (networks, p, d) of p tokens in d dimensions, and all embeddings of the first network (frames,
    p, d).
    """

    def make() -> dict[str, Any]:
        trained = train_networks(run, range(run.setting.networks), record)
        return {
            "steps": trained.steps,
            "signals": fourier_signals(trained.positions),
            "final": trained.final,
            "one": trained.positions[0],
        }

    return run.keep("networks", make)


# -- Figure 2 -----------------------------------------------------------------------------------------------


def _apart(own: Columns) -> float:
    """Return log₁₀ of the weakest survivor's final signal over that of the strongest dead circle, or NaN."""
    alive = own["survived"].astype(bool)
    if not 0 < alive.sum() < len(alive):
        return np.nan
    return float(np.log10(own["last"][alive].min() / own["last"][~alive].max()))


@partial(counters.Chance, "survivors replaced by as many circles of the largest signals at the start")
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
    "ding-2", item="Figure 2", quick=QUICK_WHOLE,
    paper_setting=Setting(size=PAPER, snapshots=SNAPSHOTS, networks=30, seed=20_000), source="Section 2",
    cost="half an hour to two hours: all networks are trained to the end",
    rules=(
        Statement("left", "The surviving frequencies clearly separate themselves from the rest",
            "log₁₀ of the weakest survivor's signal over that of the strongest of the dead, mean of networks",
            measures.of_networks("circles", _apart), least=1.0, source="Figure 2",
            chance=counters.shuffled("circles", "survived", within="network"),
            note="signals are norms, as in the figure; with squares it would be twice as much, and hold"),
        Statement("right", "projections of a surviving frequency stabilize into a clear circle",
            "circularity (Eq. 5) of the survivors at the end, mean of networks; 1 for a circle",
            measures.mean("circles", "circularity", by="network", survived=True), least=0.9,
            chance=counters.shuffled("circles", "survived", within="network")),
        Statement("not always", "initially large frequencies do not always lead to surviving circles",
            "share of networks in which the frequency that begins strongest dies",
            measures.share_of_networks("circles", lambda own: not own["survived"][np.argmax(own["first"])]),
            least=0.05,
            chance="by chance about 25 of 29 die: the statement only says that strength does not decide",
            counter=_strongest_survive),
    ),
)  # fmt: skip
def signals(run: Run) -> Result:
    """The signals of all frequencies of one network during training, and a dead and a surviving circle.

    The break after step 10⁴ is an effect of rounding in 32 bits (see `rounding`).

    Notes
    -----
    Embedding MLPs are trained to the end on addition modulo p. The table "circles" has a row for each
    frequency of each network, with its first and last signal. The rules ask how far survivors and dead
    circles are apart, how circular survivors are, and how often the frequency that starts strongest dies.
    """
    setting = run.setting
    snapshots = [*setting.snapshots[:-1], setting.size.steps]
    record = {*range(0, 1000, 10), *np.geomspace(1000, PAPER.steps, 20).astype(int).tolist(), *snapshots}
    found = _train(run, sorted(step for step in record if step <= setting.size.steps))
    signal, steps = found["signals"], found["steps"]
    alive = survives(signal[:, -1])
    networks, K = alive.shape
    index = {"network": range(networks), "frequency": range(1, K + 1)}
    columns = {"first": signal[:, 0], "last": signal[:, -1], "circularity": circularity(found["final"])}
    rows = evidence.table_of(index, **columns, survived=alive)
    best = 1 + int(np.argmax(signal[0, -1]))
    dead = 1 + int(np.argmax(np.where(alive[0], 0, signal[0, 0])))
    with charts.page(12.6, 4.8) as figure:
        parts: Any = figure.subfigures(1, 2, width_ratios=(1, 1.75))
        ax = parts[0].subplots()
        ax.plot(steps, signal[0][:, ~alive[0]], color=palette.DEAD, linewidth=0.7)
        for n, k in enumerate(np.flatnonzero(alive[0]).tolist()):
            color = palette.SERIES[n % len(palette.SERIES)]
            ax.plot(steps, signal[0, :, k], color=color, linewidth=1.7, label=f"k = {k + 1}")
        ax.set(yscale="log", xlabel="step", ylabel="Fourier signal ‖$F_k$‖", xlim=(0, steps[-1]))
        ax.set_xscale("symlog", linthresh=100)
        ax.set_title(f"{alive[0].sum()} of {K} frequencies survive")
        if alive[0].any():
            charts.legend_below(ax, columns=3)
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
    ax.scatter(
        points[:, 0], points[:, 1], s=11, linewidths=0, c=palette.cyclic_colors(p)[k * np.arange(p) % p]
    )
    ax.set(xlim=(-extent, extent), ylim=(-extent, extent), xticks=[], yticks=[])
    ax.set_aspect("equal")
    ax.spines[:].set_visible(True)
    ax.spines[:].set_color(palette.FRAME)


# -- Figure 3 -----------------------------------------------------------------------------------------------


def _hits(rows: Columns) -> tuple[Any, Any]:
    """Return whether pairs of components show the frequency of a survivor, and the network of each pair."""
    hits = [np.isin(own["component"], own["frequency"]) for own in evidence.by_network(rows)]
    return np.concatenate([*hits, []]), np.repeat(np.arange(len(hits)), [len(own) for own in hits])


@partial(
    counters.Chance, "random embeddings, in which as many of the strongest frequencies count as survivors"
)
def _random_embeddings(tables: Tables, generator: np.random.Generator) -> Tables:
    """Return tables in which each final embedding is replaced by normally distributed numbers."""
    rows = []
    for network, count in zip(*np.unique(tables["planes"]["network"], return_counts=True), strict=True):
        rows += _planes(int(network), generator.standard_normal((PAPER.tokens, PAPER.dim)), int(count))
    return {**tables, "planes": evidence.columns_of(rows)}


@recipe(
    "ding-3", item="Figure 3", quick=QUICK_WHOLE,
    paper_setting=Setting(size=PAPER, snapshots=(), networks=30, seed=30_000), source="Figure 3",
    cost="half an hour to two hours: all networks are trained to the end",
    rules=(
        Statement("correspondence",
            "The ∆ between adjacent tokens shows a correspondence between PCA and FFT",
            "share of pairs of components whose frequency is that of a survivor; by chance 4 of 29",
            lambda tables, level: evidence.share(
                *_hits(tables["planes"])[:1], level, groups=_hits(tables["planes"])[1],
            ),
            least=0.5, chance=counters.shuffled("planes", "component"),
            note="of a random embedding, 36 % of the pairs show one of its four strongest frequencies"),
        Statement("significant",
            "first 10 principal components in pairs, the only components with significant singular values",
            "part of the variance along as many pairs of components as circles survive, mean of networks",
            measures.of_networks("planes", lambda own: own["variance"].sum()), least=0.95,
            chance="in a random embedding, the first 10 of 58 components have 37 % of the variance",
            counter=_random_embeddings, note="the chance was said to be a fifth until after the run"),
        Statement("better", "the Fourier transformation … can reveal circular representations better",
            "part of a plane's variance at its own frequency: Fourier planes minus pairs of components",
            measures.mean("planes", lambda rows: rows["in_fourier"] - rows["in_components"], by="network"),
            least=0.1, source="Section 2",
            chance="there is nothing to shuffle between the two bases but the sign: 0",
            counter=_random_embeddings,
            withdrawn="random embeddings pass by more, as a Fourier plane is made for its own frequency"),
    ),
)  # fmt: skip
def components(run: Run) -> Result:
    """A final embedding along pairs of principal components and in Fourier planes.

    Notes
    -----
    Embedding MLPs are trained to the end on addition modulo p. The table "planes" has a row for each survivor
    of each network. The rules ask how often a pair of components shows the frequency of a survivor, how much
    variance these pairs hold, and whether single frequencies stand out more in Fourier planes.
    """
    final = _train(run, [run.setting.size.steps])["final"].astype(np.float64)
    rows = [row for network, E in enumerate(final) for row in _planes(network, E)]
    table = {name: np.array([row[name] for row in rows]) for name in PLANE}
    shown = int(table["network"][0]) if rows else 0
    one, E = evidence.where(table, network=shown), final[shown]
    points, columns = principal_components(E).points, max(len(one["frequency"]), 2)
    with charts.panels(2.25 * columns, 5.6, 2, columns, squeeze=False) as (figure, axes):
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


# -- Figure 4 ----------------------------------------------------------------------------------------------

PIECE_04 = 10, 410
"""Largest number of networks that are trained together, on a CPU and on a GPU."""
WINDOW = 16
"""Largest distance from d = p of the dimensions that the rule "transition" compares."""


def _loss(chosen: Callable[[Any, Any], Any]) -> Measure:
    """Return a measure of the mean log₁₀ of the final test loss of the dimensions d that are `chosen`."""
    return measures.mean(
        "networks",
        lambda rows: np.log10(rows["test_loss"]),
        among=lambda rows: (rows["step"] == rows["step"].max()) & chosen(rows["d"], rows["p"]),
    )


def _draw_frozen(setting: Setting, tables: Tables) -> dict[str, Figure]:
    """Draw both losses over the dimension at each snapshot, as geometric means with intervals."""
    rows, colors = tables["networks"], palette.graded_colors(len(setting.snapshots))
    with charts.panels(9.6, 3.7, 1, 2) as (figure, (first, second)):
        for ax, name in ((first, "test_loss"), (second, "train_loss")):
            for step, color in zip(setting.snapshots, colors, strict=True):
                here = [rows[name][(rows["d"] == d) & (rows["step"] == step)] for d in setting.dims]
                # Losses differ by factors: geometric mean and its interval.
                means = [evidence.mean(np.log(values), CONFIDENCE).map(np.exp) for values in here]
                middle, low, high = np.array([(one.estimate, one.low, one.high) for one in means]).T
                ax.plot(setting.dims, middle, "o-", color=color, markersize=3.5, label=step)
                ax.fill_between(setting.dims, low, high, color=color, alpha=0.12, linewidth=0)
            ax.axvline(setting.tokens, color=palette.INK, linewidth=0.8, linestyle=":")
            ax.set(xlabel="embedding dimension d (dotted: d = p)", yscale="log")
        first.set(ylabel="test loss", title=f"frozen embeddings, p = {setting.tokens}")
        second.set(ylabel="training loss")
        second.set_title(f"geometric mean of {setting.networks} networks, 95 % interval")
        charts.legend_below(first, title="step", columns=2)
    return {"ding-4": figure}


@recipe(
    "ding-4", item="Figure 4",
    quick=Setting(tokens=23, dims=(8, 16, 20, 22, 24, 32), snapshots=(100, 300), networks=3, seed=0),
    paper_setting=Setting(
        tokens=59, dims=(*range(16, 64, 2), *range(64, 129, 4)), snapshots=(500, 1000, 2000, 5000, 10_000),
        networks=10, seed=40_000,
    ),
    draw=_draw_frozen, source="Section 3.1", cost="three to four hours",
    rules=(
        Statement("transition", "the test loss is sharply better when d > p than when d < p",
            "log₁₀ of the test loss at the end: mean of 43 ≤ d < 59 minus mean of 59 < d ≤ 75; by chance 0",
            measures.difference(
                _loss(lambda d, p: (p - WINDOW <= d) & (d < p)),
                _loss(lambda d, p: (p < d) & (d <= p + WINDOW)),
            ),
            least=0.3, chance=counters.shuffled("networks", "test_loss", within="step"),
            withdrawn="the loss falls as steeply about other dimensions: it has a slope, and no step at p"),
        Statement("small d",
            "at 10,000 steps, models with the small ds (d≤20) have lower loss than models with medium ds",
            "log₁₀ of the test loss at the end: mean of 20 < d ≤ 59 minus mean of 16 ≤ d ≤ 20; by chance 0",
            measures.difference(_loss(lambda d, p: (d > 20) & (d <= p)), _loss(lambda d, p: d <= 20)),
            least=0.1, chance=counters.shuffled("networks", "test_loss", within="step")),
    ),
)  # fmt: skip
def frozen(run: Run) -> Result:
    """How well layers learn from fixed random embeddings, by the embedding dimension.

    Notes
    -----
    Layers are trained on embeddings of p tokens that are drawn at random and kept. The table "networks" has a
    row for each network and snapshot. The rules compare final test losses below and above d = p, and for
    small and medium d.
    """
    count = len(run.setting.dims) * run.setting.networks  # numbered through all dimensions
    return Result({"networks": evidence.joined(in_parts(run, count, PIECE_04, partial(_train_frozen, run)))})


def _train_frozen(run: Run, part: range) -> dict[str, Any]:
    setting, snapshots = run.setting, list(run.setting.snapshots)
    d = np.array(setting.dims)[np.array(part) // setting.networks]
    model = EmbeddingMLP(setting.tokens, max(setting.dims))
    start = draw(model, runs=len(part), first_run=part.start, seed=run.seed(setting.seed)).parameters
    frozen = {"initial": narrowed(start, d), "freeze_embedding": True}
    names = ("train_loss", "validation_loss")
    trained = train_networks(run, part, snapshots, *names, model=model, steps=snapshots[-1], **frozen)
    table = evidence.table_of(
        {"network": np.array(part) % setting.networks, "step": snapshots}, p=setting.tokens, d=d[:, None],
        test_loss=trained.observables["validation_loss"], train_loss=trained.observables["train_loss"],
    )  # fmt: skip
    return {name: table[name] for name in ("p", "d", "network", "step", "test_loss", "train_loss")}


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


PIECE_05 = 10, 100
"""Largest number of networks that are trained together, on a CPU (for less than an hour) and on a GPU."""


def _primes(first: int, last: int) -> tuple[int, ...]:
    """Return the prime numbers from `first` to `last`, both included."""
    return tuple(p for p in range(first, last + 1) if all(p % q for q in range(2, p)))


def published_count(E: Any) -> NDArray[np.int64]:
    """Return the number of circles in embeddings E (runs, p, d) by the rule of the published code, (runs,).

    The mean, twice of which a signal must exceed, is taken over all p Fourier components: frequency 0 counts,
    and so do both components of every other frequency. For few tokens this differs from `survives`: four
    equal circles of 17 tokens, and no others, exceed twice this mean, but not twice the mean of the 8
    frequencies.
    """
    signals = np.linalg.norm(np.fft.fft(E, axis=-2), axis=-1)
    return np.asarray((signals > 2 * signals.mean(axis=-1, keepdims=True)).sum(axis=-1) // 2)


def count_circles(run: Run) -> dict[str, NDArray[Any]]:
    """Train the networks of a `Counts` setting to the end, and return a table with a row for each of them.

    Its columns are the modulus p, the dimension d, the number of the network among those of its size, whether
    p is prime, and the number of circles by `published_count`. Networks are not stopped when `UntilDecided`
    would stop them: some circles die later, and how many depends on the size.
    """
    setting = run.setting
    size = setting.size
    pairs = [(p, size.dim) for p in setting.moduli]
    pairs += [(size.tokens, d) for d in setting.dims if d != size.dim or size.tokens not in setting.moduli]
    parts = (
        in_parts(run, setting.networks, PIECE_05, partial(_count, run, p, d), f"p-{p}-d-{d}-networks")
        for p, d in pairs
    )
    return evidence.joined(chain.from_iterable(parts))


def _count(run: Run, p: int, d: int, part: range) -> dict[str, Any]:
    seed = run.setting.seed + 1000 * p + d
    trained = train_networks(run, part, [run.setting.size.steps], model=EmbeddingMLP(p, d), seed=seed)
    table = evidence.table_of({"p": [p], "d": [d], "network": part}, prime=bool(_primes(p, p)))
    return table | {"circles": published_count(trained.final)}


def _means(x: Any, circles: Any) -> tuple[Array, Array]:
    """Return the distinct values of a column x (n,), and the mean number of circles at each of them."""
    values, group = np.unique(x, return_inverse=True)
    return values.astype(float), np.bincount(group, circles) / np.bincount(group)


def _usual(*names: str) -> Callable[[Columns], Any]:
    """Return a function that tells rows of the most frequent modulus "p" or dimension "d", or of both.

    Only the other quantity varies among the networks of one of them.
    """

    def chosen(rows: Columns) -> Any:
        counted = {name: np.unique(rows[name], return_counts=True) for name in names}
        return np.all(
            [rows[name] == values[count.argmax()] for name, (values, count) in counted.items()], axis=0
        )

    return chosen


def _rises(x: str) -> Measure:
    """Return a `Measure` of the correlation between x and the mean number of circles at each x.

    x is the modulus "p" or the dimension "d"; networks count if they have the most frequent value of the
    other one.
    """

    def fisher(values: Any, circles: Any) -> float:
        correlation = np.corrcoef(*_means(values, circles))[0, 1]
        return float(np.arctanh(np.clip(correlation, -1 + 1e-12, 1 - 1e-12)))

    statistic = measures.statistic(
        fisher, "networks", x, "circles", by="network", among=_usual({"p": "d", "d": "p"}[x])
    )
    return measures.mapped(statistic, np.tanh)


def _draw_counts(setting: Setting, tables: Tables) -> dict[str, Figure]:
    """Draw the mean number of circles over the modulus and over the dimension."""
    size = setting.size
    by_modulus, by_dimension = (measures.rows_of(tables, "networks", {}, _usual(name)) for name in "dp")
    with charts.panels(9.6, 3.6, 1, 2, sharey=True) as (figure, (left, right)):
        charts.means(left, by_modulus["p"], by_modulus["circles"])
        left.set(xlabel="modulus p", ylabel="circles that survive", ylim=(0, None))
        left.set_title(f"d = {size.dim}, {setting.networks} networks each, mean and 95 % interval")
        charts.means(right, by_dimension["d"], by_dimension["circles"])
        right.set(xlabel="embedding dimension d", title=f"p = {size.tokens}")
    return {"ding-5": figure}


@recipe(
    "ding-5", item="Figure 5",
    quick=Setting(size=QUICK, moduli=(17, 23, 31), dims=(8, 16, 32), networks=3, seed=0),
    paper_setting=Setting(
        size=PAPER, moduli=_primes(17, 97), dims=tuple(range(16, 129, 16)), networks=100, seed=50_000_000,
    ),
    draw=_draw_counts, source="Section 3.1",
    cost="one to two days: all networks are trained to the end, 0.2 ms (p = 17) to 8 ms (p = 97) a step; "
    "ten networks at a time are kept",
    rules=(
        Statement("left", "clear positive correlation between p and the number of circles the model learns",
            "Pearson correlation of p and the mean number of circles; by chance 0",
            _rises("p"), least=0.5, chance=counters.shuffled("networks", "circles")),
        Statement("right", "similarly shows an upward curve",
            "Pearson correlation of d and the mean number of circles; by chance 0",
            _rises("d"), least=0.5, chance=counters.shuffled("networks", "circles")),
        Statement("expected number", "only 3-5 circles survive after training",
            "mean number of circles at p = 59, d = 128",
            measures.mean("networks", "circles", among=_usual("p", "d")), least=3.0, most=5.0,
            source="Section 1",
            chance="shuffling among networks of one size leaves the mean; all 29 circles begin alike",
            counter=counters.drawn(
                "all circles of all networks", "networks", circles=lambda rows, _: rows["p"] // 2,
            )),
        Statement("three or more",
            "the model almost always chooses three or more circles as its final representations",
            "share of networks with three or more circles at p = 59, d = 128",
            measures.share("networks", lambda rows: rows["circles"] >= 3, among=_usual("p", "d")), least=0.9,
            source="Appendix C",
            chance="shuffling among networks of one size leaves the share; 29 circles could make it 1",
            counter=counters.drawn("two circles in each network, which may suffice", "networks", circles=2)),
    ),
)  # fmt: skip
def by_size(run: Run) -> Result:
    """How many circles survive, by the number of tokens and by the embedding dimension.

    Notes
    -----
    The table "networks" has a row for each network. The rules ask whether the mean number of circles rises
    with p and with d, and how many circles survive at the default p and d.
    """
    return Result({"networks": count_circles(run)})


# -- Figure 14 ----------------------------------------------------------------------------------------------


def _variation(x: Any, circles: Any, prime: Any) -> float:
    """Return how much more the mean number of circles of composite p scatters than that of prime p.

    Each mean is compared with the line through those of the next smaller and the next larger prime, so that a
    curved trend is no scatter. The result is the logarithm of the ratio of the root mean squares of these
    differences.
    """
    p, number = _means(x, circles)
    is_prime = _means(x, prime)[1] == 1
    known, values, other = p[is_prime], number[is_prime], p[~is_prime]
    composite = (number[~is_prime] - np.interp(other, known, values))[
        (other > known[0]) & (other < known[-1])
    ]
    between = np.diff(known)
    line = (values[:-2] * between[1:] + values[2:] * between[:-1]) / (between[1:] + between[:-1])
    ratio = float(np.log(np.mean(composite**2) / np.mean((values[1:-1] - line) ** 2)) / 2)
    return ratio if np.isfinite(ratio) else np.nan


def _draw_moduli(setting: Setting, tables: Tables) -> dict[str, Figure]:
    """Draw the mean number of circles over the modulus, prime or composite."""
    rows = tables["networks"]
    with charts.panels(6.4, 3.8) as (figure, ax):
        ax.plot(*_means(rows["p"], rows["circles"]), color=palette.FRAME, linewidth=1)
        for prime, label in ((True, "prime p"), (False, "composite p")):
            part = evidence.where(rows, prime=prime)
            charts.means(ax, part["p"], part["circles"], linestyle="", label=label)
        ax.set(xlabel="modulus p", ylabel="circles that survive", ylim=(0, None))
        ax.set_title(f"d = {setting.size.dim}, {setting.networks} networks each, 95 % intervals")
        charts.legend_below(ax)
    return {"ding-14": figure}


@recipe(
    "ding-14", item="Figure 14; Appendix F",
    quick=Setting(size=QUICK, moduli=(17, 18, 19, 23), dims=(), networks=3, seed=0),
    paper_setting=Setting(size=PAPER, moduli=tuple(range(17, 98)), dims=(), networks=20, seed=140_000_000),
    draw=_draw_moduli, source="Appendix F",
    cost="a day or more: 20 networks of each modulus, as in the published code; ten at a time are kept",
    rules=(
        Statement("trend", "an upward trend can still be observed",
            "Pearson correlation of p and the mean number of circles; by chance 0",
            _rises("p"), least=0.3, chance=counters.shuffled("networks", "circles")),
        Statement("variation", "Compared with Figure 5 (Left), one can observe more variation in Figure 14",
            "scatter of composite moduli about the line between the nearest primes over that of primes "
            "about the line between their neighbors; by chance 1",
            measures.mapped(
                measures.statistic(
                    _variation, "networks", "p", "circles", lambda rows: rows["prime"].astype(bool),
                    by="network",
                ),
                np.exp,
            ),
            least=1.2, chance=counters.shuffled("networks", "circles")),
    ),
)  # fmt: skip
def all_moduli(run: Run) -> Result:
    """Numbers of surviving circles for all moduli, prime or composite.

    Notes
    -----
    The table "networks" has a row for each network. The rules ask whether the mean number of circles rises
    with p, and whether it scatters more for composite than for prime p.
    """
    return Result({"networks": count_circles(run)})
