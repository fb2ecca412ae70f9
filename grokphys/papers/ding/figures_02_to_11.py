"""Ding et al., Figures 2 to 5 and 14: signals, planes of circles, frozen embeddings, numbers of circles.

Ding et al., Figure 6: how often a circle survives, by the initial signal of its frequency.

Ding et al., Figure 7: how often circles survive, by the changes of their signals in the first steps.

Ding et al., Figure 8: how many circles a network needs in order to add.

Ding et al., Figure 11: the circularity of random embeddings, and the survival of circles by it.
"""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import chain, combinations, islice
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.stats import mode

from analysis.circles import circularity, frequency_plane, principal_components, survives
from analysis.circles.fourier import circle_delta, frequency_norms
from analysis.plots import palette
from analysis.stats.intervals import Interval
from grokphys.papers import charts, counters, evidence, measures
from grokphys.papers.ding import training
from grokphys.papers.ding.training import PAPER, QUICK, means_by, train_networks
from grokphys.papers.evidence import Columns, Measure, Tables, joined, table_of, where
from grokphys.papers.pieces import in_parts
from grokphys.papers.recipe import Number, Result, Run, Setting, Statement, recipe
from nets import EmbeddingMLP, keep_frequencies, networks
from nets.engines.ensemble import draw
from nets.interventions import scale_frequency, with_signals
from physics.seeds import generator as generator_of

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
        signals = frequency_norms(trained.positions)
        return {
            "steps": trained.steps,
            "signals": signals,
            "final": trained.final,
            "one": trained.positions[0],
        }

    return run.keep("networks", make)


# -- Figure 2 -----------------------------------------------------------------------------------------------


@recipe(
    "ding-2", item="Figure 2", quick=QUICK_WHOLE,
    paper_setting=Setting(size=PAPER, snapshots=SNAPSHOTS, networks=30, seed=20_000), source="Section 2",
    cost="half an hour to two hours: all networks are trained to the end", fidelity=training.SINGLE,
    rules=(
        Statement("right", "projections of a surviving frequency stabilize into a clear circle",
            "circularity (Eq. 5) of the survivors at the end, mean of networks; 1 for a circle",
            measures.mean("circles", "circularity", by="network", survived=True), least=0.9,
            chance=counters.shuffled("circles", "survived", within="network")),
    ),
    withdrawn={
        "left": "with squared signals it agrees, with norms it disagrees: the choice decides",
        "not always": "survivors drawn at random pass as well",
    },
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
    rows = table_of(
        {"network": range(networks), "frequency": range(1, K + 1)}, first=signal[:, 0], last=signal[:, -1],
        circularity=circularity(found["final"]).values, survived=alive,
    )  # fmt: skip
    best = 1 + int(np.argmax(signal[0, -1]))
    dead = 1 + int(np.argmax(np.where(alive[0], 0, signal[0, 0])))
    with charts.page(12.6, 4.8) as figure:
        parts: Any = figure.subfigures(1, 2, width_ratios=(1, 1.75))
        ax = parts[0].subplots()
        ax.plot(steps, signal[0][:, ~alive[0]], color=palette.DEAD, linewidth=0.7)
        for n, k in enumerate(np.flatnonzero(alive[0]).tolist()):
            color = palette.SERIES[n % len(palette.SERIES)]
            ax.plot(steps, signal[0, :, k], color=color, linewidth=1.7, label=f"k = {k + 1}")
        ax.set(yscale="log", xlim=(0, steps[-1]))
        ax.set_xscale("symlog", linthresh=100)
        title = f"{alive[0].sum()} of {K} frequencies survive"
        charts.label(ax, "step", "Fourier signal ‖$F_k$‖", title, legend={"columns": 3})
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


def _hits(rows: Columns) -> Any:
    """Return whether pairs of components show the frequency of a survivor of their network."""
    survivors = set(zip(rows["network"], rows["frequency"], strict=True))
    return [pair in survivors for pair in zip(rows["network"], rows["component"], strict=True)]


def _random_embeddings(rows: Any, generator: np.random.Generator) -> Any:
    """Return the table of planes of embeddings of normally distributed numbers."""
    networks, counts = np.unique(rows["network"], return_counts=True)
    return joined(
        _planes(network, generator.standard_normal((PAPER.tokens, PAPER.dim)), count)
        for network, count in zip(networks, counts, strict=True)
    )


RANDOM = counters.changed(
    "random embeddings, in which as many of the strongest frequencies count as survivors", "planes",
    _random_embeddings,
)  # fmt: skip


@recipe(
    "ding-3", item="Figure 3", quick=QUICK_WHOLE,
    paper_setting=Setting(size=PAPER, snapshots=(), networks=30, seed=30_000), source="Figure 3",
    cost="half an hour to two hours: all networks are trained to the end", fidelity=training.SINGLE,
    rules=(
        Statement("correspondence",
            "The ∆ between adjacent tokens shows a correspondence between PCA and FFT",
            "share of pairs of components whose frequency is that of a survivor; by chance 4 of 29",
            measures.share("planes", _hits, by="network"), least=0.5,
            chance=counters.shuffled("planes", "component"),
            note="of a random embedding, 36 % of the pairs show one of its four strongest frequencies"),
        Statement("significant",
            "first 10 principal components in pairs, the only components with significant singular values",
            "part of the variance along as many pairs of components as circles survive, mean of networks",
            measures.of_networks("planes", lambda own: own["variance"].sum()), least=0.95,
            chance=RANDOM, note="the chance was said to be a fifth until after the run"),
    ),
    withdrawn={"better": "random embeddings pass by more, as a Fourier plane is made for its own frequency"},
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
    table = joined(_planes(network, E) for network, E in enumerate(final))
    shown = int(table["network"][0]) if len(table["network"]) else 0
    one, E = where(table, network=shown), final[shown]
    points, columns = principal_components(E).points, max(len(one["frequency"]), 2)
    with charts.panels(2.25 * columns, 5.6, 2, columns, squeeze=False) as (figure, axes):
        for pair, (frequency, component) in enumerate(zip(one["frequency"], one["component"], strict=True)):
            variance, part = one["variance"][pair], one["in_fourier"][pair]
            for ax, plane, k, head, words in (
                (axes[0, pair], points[:, 2 * pair : 2 * pair + 2], component,
                 f"components {2 * pair + 1}, {2 * pair + 2}\n", f"{variance:.0%} of variance"),
                (axes[1, pair], frequency_plane(E, frequency).points, frequency, "", f"{part:.1%} at k"),
            ):  # fmt: skip
                _show_plane(ax, plane, k, 1.1 * float(np.abs(plane).max()))
                ax.set_title(f"{head}k = {k}, Δ = {circle_delta(k, len(E))}", fontsize="small")
                ax.set_xlabel(words, fontsize="small")
        axes[0, 0].set_ylabel("principal components")
        axes[1, 0].set_ylabel("Fourier planes")
        if not len(one["frequency"]):
            axes[0, 0].set_title("no circle survives")
    return Result({"planes": table}, {"ding-3": figure})


def _planes(network: int, E: Array, count: int | None = None) -> dict[str, NDArray[Any]]:
    """Compare the Fourier planes of the survivors of a network with pairs of its principal components.

    `E` (tokens, dim) is the final embedding. There is a row for each survivor, the strongest first, with the
    pair of components of the same rank, the frequency that is strongest in this pair, and fractions of the
    variance. If a `count` is given, as many of the strongest frequencies count as survivors.
    """
    signal, found = frequency_norms(E), principal_components(E)
    alive = np.count_nonzero(survives(signal)) if count is None else count
    order = (1 + np.argsort(-signal)[:alive]).tolist()
    components = [found.frequency(pair) for pair in range(alive)]
    planes = np.split(found.points[:, : 2 * alive], range(2, 2 * alive, 2), axis=1)
    return {
        "network": np.full(alive, network), "frequency": np.array(order, int),
        "component": np.array(components, int),
        "variance": found.fractions[: 2 * alive].reshape(alive, 2).sum(axis=1),
        "in_fourier": np.array([_part(frequency_plane(E, k).points, k) for k in order]),
        "in_components": np.array([_part(*pair) for pair in zip(planes, components, strict=False)]),
    }  # fmt: skip


def _part(points: Array, k: int) -> float:
    """Return the fraction of the variance of points (p, 2), p odd, that belongs to frequency k."""
    power = frequency_norms(points) ** 2
    return float(power[k - 1] / power.sum())


# -- Figure 4 ----------------------------------------------------------------------------------------------

PIECE_04 = 10, 410
"""Largest number of networks that are trained together, on a CPU and on a GPU."""


def _loss(chosen: str) -> Measure:
    """Return a measure of the mean log₁₀ of the final test loss of the dimensions d that are `chosen`."""
    return measures.mean("networks", "np.log10(test_loss)", among=f"(step == step.max()) & ({chosen})")


def _draw_frozen(setting: Setting, tables: Tables, *axes: Any) -> None:
    """Draw the mean logarithm of both losses over the dimension at each snapshot."""
    colors = palette.graded_colors(len(setting.snapshots))
    for ax, name in zip(axes, ("test_loss", "train_loss"), strict=True):
        for step, color in zip(setting.snapshots, colors, strict=True):
            rows = where(tables["networks"], step=step)
            charts.means(ax, rows["d"], np.log10(rows[name]), color=color, label=step, markersize=2.5)
        ax.axvline(setting.tokens, color=palette.INK, linewidth=0.8, linestyle=":")
        x, y = "embedding dimension d (dotted: d = p)", f"log₁₀ of the {name.replace('_', ' ')}"
        charts.label(ax, x, y, legend={"title": "step", "columns": 3})
    axes[0].set_title(f"frozen embeddings, p = {setting.tokens}, {setting.networks} networks each")


@recipe(
    "ding-4", item="Figure 4",
    quick=Setting(tokens=23, dims=(8, 16, 20, 22, 24, 32), snapshots=(100, 300), networks=3, seed=0),
    paper_setting=Setting(
        tokens=59, dims=(*range(16, 64, 2), *range(64, 129, 4)), snapshots=(500, 1000, 2000, 5000, 10_000),
        networks=10, seed=40_000,
    ),
    draw=_draw_frozen, panels=(9.6, 3.7, 1, 2), source="Section 3.1", cost="three to four hours",
    fidelity=f"{training.SINGLE}; 41 dimensions and 10 networks of each, where it has 113 and 5",
    rules=(
        Statement("small d",
            "at 10,000 steps, models with the small ds (d≤20) have lower loss than models with medium ds",
            "log₁₀ of the test loss at the end: mean of 20 < d ≤ 59 minus mean of 16 ≤ d ≤ 20; by chance 0",
            measures.difference(_loss("(d > 20) & (d <= p)"), _loss("d <= 20")),
            least=0.1, chance=counters.shuffled("networks", "test_loss", within="step")),
    ),
    withdrawn={
        "transition": "the loss falls as steeply about other dimensions: it has a slope, and no step at p",
    },
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
    frozen: dict[str, Any] = {"initial": narrowed(start, d), "freeze_embedding": True}
    names = ("train_loss", "validation_loss")
    trained = train_networks(run, part, snapshots, *names, model=model, steps=snapshots[-1], **frozen)
    return evidence.table_of(
        {"network": np.array(part) % setting.networks, "step": snapshots}, p=setting.tokens, d=d[:, None],
        test_loss=trained.observables["validation_loss"], train_loss=trained.observables["train_loss"],
    )  # fmt: skip


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
    weights = W * wider * np.tile(used, 2)[:, :, None]
    return {"embedding": E * used[:, None, :], "hidden1.weight": weights, "hidden1.bias": b * wider}


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


def _usual(*names: str) -> Callable[[Columns], Any]:
    """Return a function that tells rows of the most frequent modulus "p" or dimension "d", or of both.

    Only the other quantity varies among the networks of one of them.
    """
    return lambda rows: np.all([rows[name] == mode(rows[name]).mode for name in names], axis=0)


def _rises(x: str) -> Measure:
    """Return a `Measure` of the correlation between x and the mean number of circles at each x.

    x is the modulus "p" or the dimension "d"; networks count if they have the most frequent value of the
    other one.
    """
    statistic = measures.statistic(
        lambda values, circles: evidence.fisher(*means_by(values, circles)), "networks", x, "circles",
        by="network", among=_usual({"p": "d", "d": "p"}[x]),
    )  # fmt: skip
    return measures.mapped(statistic, np.tanh)


def _draw_counts(setting: Setting, tables: Tables) -> dict[str, Figure]:
    """Draw the mean number of circles over the modulus and over the dimension."""
    size = setting.size
    by_modulus, by_dimension = (measures.rows_of(tables, "networks", {}, _usual(name)) for name in "dp")
    with charts.panels(9.6, 3.6, 1, 2, sharey=True) as (figure, (left, right)):
        charts.means(left, by_modulus["p"], by_modulus["circles"])
        title = f"d = {size.dim}, {setting.networks} networks each, mean and 95 % interval"
        charts.label(left, "modulus p", "circles that survive", title, ylim=(0, None))
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
    fidelity=training.SINGLE,
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
            chance=counters.drawn(
                "all circles of all networks", "networks", circles=lambda rows, _: rows["p"] // 2,
            )),
        Statement("three or more",
            "the model almost always chooses three or more circles as its final representations",
            "share of networks with three or more circles at p = 59, d = 128",
            measures.share("networks", lambda rows: rows["circles"] >= 3, among=_usual("p", "d")), least=0.9,
            source="Appendix C",
            chance=counters.drawn("two circles in each network, which may suffice", "networks", circles=2)),
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
    p, number = means_by(x, circles)
    is_prime = means_by(x, prime)[1] == 1
    known, values, other = p[is_prime], number[is_prime], p[~is_prime]
    composite = (number[~is_prime] - np.interp(other, known, values))[
        (other > known[0]) & (other < known[-1])
    ]
    between = np.diff(known)
    line = (values[:-2] * between[1:] + values[2:] * between[:-1]) / (between[1:] + between[:-1])
    ratio = float(np.log(np.mean(composite**2) / np.mean((values[1:-1] - line) ** 2)) / 2)
    return ratio if np.isfinite(ratio) else np.nan


def _draw_moduli(setting: Setting, tables: Tables, ax: Any) -> None:
    """Draw the mean number of circles over the modulus, prime or composite."""
    rows = tables["networks"]
    ax.plot(*means_by(rows["p"], rows["circles"]), color=palette.FRAME, linewidth=1)
    for prime, label in ((True, "prime p"), (False, "composite p")):
        part = evidence.where(rows, prime=prime)
        charts.means(ax, part["p"], part["circles"], linestyle="", label=label)
    title = f"d = {setting.size.dim}, {setting.networks} networks each, 95 % intervals"
    charts.label(ax, "modulus p", "circles that survive", title, ylim=(0, None))


@recipe(
    "ding-14", item="Figure 14; Appendix F",
    quick=Setting(size=QUICK, moduli=(17, 18, 19, 23), dims=(), networks=3, seed=0),
    paper_setting=Setting(size=PAPER, moduli=tuple(range(17, 98)), dims=(), networks=20, seed=140_000_000),
    draw=_draw_moduli, panels=(6.4, 3.8), source="Appendix F",
    cost="a day or more: 20 networks of each modulus, as in the published code; ten at a time are kept",
    fidelity=training.SINGLE,
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


SURVIVORS_AT_RANDOM = counters.drawn(
    "survivors drawn at random from the 29 circles, as many as survive", "runs",
    larger=lambda rows, rng: 29 * rng.random(len(rows["circles"])) < rows["circles"],
)  # fmt: skip

# -- Figure 6 ----------------------------------------------------------------------------------------------


def _rates(tables: Tables) -> tuple[Any, Any, Any]:
    """Return three columns with a row for each frequency of each embedding.

    They are the initial signal, the fraction of the networks on this embedding in which the frequency
    survives, and the number of the embedding.
    """
    table = tables["circles"]
    own = table["embedding"].astype(int) * 1000 + table["frequency"].astype(int)
    _, first, group = np.unique(own, return_index=True, return_inverse=True)
    rate = np.bincount(group, table["survived"]) / np.bincount(group)
    return table["signal"][first], rate, table["embedding"][first]


def _correlation(tables: Tables, level: float) -> Interval:
    signal, rate, embedding = _rates(tables)
    return evidence.correlation(signal, rate, level, groups=embedding)


def _draw_signals(setting: Setting, tables: Tables, ax: Any) -> None:
    """Draw the survival rate over the initial signal, for each frequency and in bins."""
    circles = tables["circles"]
    signal, rate, _ = _rates(tables)
    ax.scatter(signal, rate, s=9, color=palette.DEAD, linewidths=0, label="a frequency of an embedding")
    charts.survival(ax, circles["signal"], circles["survived"], circles["embedding"], label="bins")
    title = f"{setting.embeddings} embeddings, {setting.trials} trials each"
    charts.label(ax, "initial signal ‖$F_k$‖", "survival rate", title, ylim=(-0.03, 1.03))


@recipe(
    "ding-6", item="Figure 6, left", quick=training.FEW_TRIALS, paper_setting=training.TRIALS,
    draw=_draw_signals, panels=(5.6, 4.0), source="Section 3.2.1", independent="embedding",
    cost="half an hour to two hours", fidelity=training.STOPPED,
    rules=(
        Number("correlation of survival rate and initial signal", "0.85", _correlation, margin=0.1),
    ),
    withdrawn={
        "likelier": "the number before it says the same",
    },
)  # fmt: skip
def initial_signals(run: Run) -> Result:
    """How often a frequency survives, by its initial signal.

    Notes
    -----
    Several networks with different layers and training sets start from each embedding. The table "circles"
    has a row for each frequency of each network. The rules judge the correlation of survival rate and initial
    signal.
    """
    return Result({"circles": training.train_trials(run)})


# -- the middle ---------------------------------------------------------------------------------------------


MUCH = 10.0
"""Least distance of a signal from the mean of the others, near 87, at which it is much higher or lower."""


def _draw_scaled(setting: Setting, tables: Tables, ax: Any) -> None:
    """Draw how often a frequency survives, over the distance of its signal from the mean of the others."""
    rows = tables["runs"]
    start, shares = (rows[name].reshape(-1, setting.trials) for name in ("deviation", "survived"))
    look: Any = {"s": 9, "color": palette.DEAD, "linewidths": 0, "label": "an embedding and a factor"}
    ax.scatter(start[:, 0], shares.mean(axis=1), **look)
    charts.survival(ax, rows["deviation"], rows["survived"], rows["embedding"], label="bins")
    title = f"signal of k = {setting.frequency} times {setting.factors[0]} to {setting.factors[-1]},\n"
    title += f"{setting.embeddings} embeddings, {setting.trials} trials each"
    charts.label(ax, "‖$F_k$‖ - mean of the others", "survival rate of k", title, ylim=(-0.03, 1.03))


@recipe(
    "ding-6b", item="Figure 6, middle",
    quick=Setting(size=training.QUICK, embeddings=2, factors=(0.85, 1.15), trials=4, frequency=5),
    paper_setting=Setting(
        size=training.PAPER, embeddings=60, factors=(0.85, 0.9, 0.95, 1.0, 1.05, 1.1, 1.15), trials=8,
        frequency=25,
    ),
    draw=_draw_scaled, panels=(5.6, 4.0), source="Section 3.2.1", independent="embedding",
    cost="two to four hours",
    fidelity=f"{training.STOPPED}; 60 embeddings, 7 factors and 8 networks, where it has 8, 50 and 50",
    rules=(
        Statement("raised", "if the frequency is much higher than the rest, survival rate is near 100 %",
            "share of trials with a signal at least 10 above the mean of the others in which it survives",
            measures.share("runs", "survived", by="embedding", among=f"deviation >= {MUCH}"), least=0.9,
            chance=counters.shuffled("runs", "survived")),
        Statement("lowered", "the frequency rarely survives if it is much lower than the mean",
            "share of trials with a signal at least 10 below the mean of the others in which it survives",
            measures.share("runs", "survived", by="embedding", among=f"deviation <= -{MUCH}"), most=0.1,
            chance=counters.shuffled("runs", "survived")),
    ),
    withdrawn={
        "difference": "the two rules before it imply it",
    },
)  # fmt: skip
def scaled(run: Run) -> Result:
    """How often a frequency survives if its signal alone is raised or lowered.

    Notes
    -----
    One frequency of each embedding is multiplied by several factors, and networks with different layers and
    training sets start from the result. The table "runs" has a row for each network. The rules judge how
    often the frequency survives if its signal is far above or far below the mean of the others.
    """
    numbers = range(run.setting.embeddings)
    return Result({"runs": joined(run.keep(f"embedding-{n}", partial(_scale_one, run, n)) for n in numbers)})


def _scale_one(run: Run, number: int) -> dict[str, Any]:
    setting = run.setting
    size, seed = run.setting.size, run.seed(6100 + number)
    generator = generator_of(seed)
    E, k = generator.standard_normal((size.tokens, size.dim)), setting.frequency
    starts = np.repeat([scale_frequency(E, k, f) for f in setting.factors], setting.trials, axis=0)
    one = training.train_circles(
        size.model, runs=len(starts), steps=size.steps, audited=int(number < 5), seed=seed, initial=starts
    )
    signal = one.signals[:, 0]
    index = {"embedding": [number], "frequency": [k], "factor": np.repeat(setting.factors, setting.trials)}
    deviation = signal[:, k - 1] - np.delete(signal, k - 1, axis=1).mean(axis=1)
    return table_of(index, deviation=deviation, survived=one.survived[:, k - 1])


# -- the right ----------------------------------------------------------------------------------------------


RATIOS = 1, 11
"""Largest number of ratios of which the networks are trained together, on a CPU and on a GPU."""


def _draw_pairs(setting: Setting, tables: Tables, ax: Any) -> None:
    """Draw how often the larger, the smaller and any other frequency survives, over the ratio of the two."""
    rows = tables["runs"]
    names = {"larger": "the larger", "smaller": "the smaller", "revived": "any other, revived"}
    for n, (name, label) in enumerate(names.items()):
        places, line = rows["ratio"] + 0.012 * (n - 1), ":" if n == 2 else "-"  # side by side
        charts.means(ax, places, rows[name], of=evidence.share, linestyle=line, label=label)
    title = f"all others at {setting.others:g}; {setting.pairs} pairs each"
    charts.label(ax, "r, ratio of the two signals", "survival rate", title, ylim=(-0.03, 1.03))


@recipe(
    "ding-6c", item="Figure 6, right",
    quick=Setting(size=training.QUICK, ratios=(0.2, 0.6, 1.0), pairs=3, others=1e-6),
    paper_setting=Setting(
        size=training.PAPER, ratios=tuple(np.linspace(0, 1, 11).round(2).tolist()), pairs=20, others=1e-6,
    ),
    draw=_draw_pairs, panels=(5.6, 4.0), source="Section 3.2.1",
    cost="three to six hours: all networks are trained to the end, since circles come back late",
    fidelity=f"{training.SINGLE}; 11 ratios of 20 pairs, where it has 16 ratios of frequencies 1 and 2",
    rules=(
        Statement("larger", "the frequency with the highest signal will always survive",
            "share of networks with r < 1 in which the larger one survives",
            measures.share("runs", "larger", among="ratio < 1"), least=0.95, chance=SURVIVORS_AT_RANDOM),
        Statement("smaller",
            "the second highest frequency increases in survival rate as its signal increases",
            "Pearson correlation of the survival of the smaller one with the ratio r; by chance 0",
            measures.correlation("runs", "ratio", "smaller.astype(float)"), least=0.2,
            chance=counters.shuffled("runs", "smaller")),
        Statement("revived",
            "all other frequencies having a signal near 0 … the model sometimes chooses to revive them",
            "share of networks in which any other frequency survives",
            measures.share("runs", "revived"), least=0.05,
            chance=counters.drawn("no other frequency that survives", "runs", revived=False)),
    ),
)  # fmt: skip
def pairs(run: Run) -> Result:
    """How often the stronger and the weaker of two frequencies survive, and any other.

    Notes
    -----
    Networks start from two random frequencies, with all others at a tiny signal. The table "runs" has a row
    for each network. The rules judge how often the stronger one, the weaker one and any other survives.
    """
    setting = run.setting
    rows = joined(in_parts(run, len(setting.ratios), RATIOS, partial(_train_pairs, run), name="ratios"))
    return Result({"runs": rows})


def _train_pairs(run: Run, part: range) -> dict[str, Any]:
    setting = run.setting
    size, count = setting.size, setting.pairs
    typical = np.sqrt(size.tokens * size.dim)
    rows, starts, both = np.arange(count), [], []
    for number in part:
        generator = generator_of(run.seed(6200 + number))
        two = np.array([generator.choice(size.tokens // 2, 2, replace=False) for _ in rows])
        signals = np.full((count, size.tokens // 2), setting.others)
        signals[rows, two[:, 0]] = typical
        signals[rows, two[:, 1]] = max(setting.ratios[number] * typical, setting.others)
        starts.append(with_signals(generator.standard_normal((count, size.tokens, size.dim)), signals))
        both.append(two)
    networks = len(part) * count
    one = training.train_circles(
        size.model, runs=networks, first_run=part.start * count, steps=size.steps, audited=networks,
        seed=run.seed(6200), initial=np.concatenate(starts),
    )  # fmt: skip
    pairs = np.concatenate(both)
    fates, circles = np.take_along_axis(one.survived, pairs, axis=1), one.survived.sum(axis=1)
    return table_of(
        {"ratio": np.repeat(np.array(setting.ratios)[part.start : part.stop], count)}, circles=circles,
        larger=fates[:, 0], smaller=fates[:, 1], revived=circles > fates.sum(axis=1),
    )  # fmt: skip


# -- Figure 7 ----------------------------------------------------------------------------------------------

ALIVE = "survived.astype(float)"


def _draw_gradients(setting: Setting, tables: Tables, left: Any, middle: Any, right: Any) -> None:
    """Draw survival over the changes of the signal in the steps 1 to 4, and by signal and change together."""
    circles = tables["circles"]
    survived = circles["survived"]
    edges = np.histogram_bin_edges(circles["change_4"], 40)
    charts.densities(left, circles["change_4"], survived, edges, "change of ‖$F_k$‖ in step 4")
    for step in range(1, 5):
        look: Any = {"color": palette.SERIES[step - 1], "label": f"step {step}"}
        charts.survival(middle, circles[f"change_{step}"], survived, circles["embedding"], **look)
    title = "bins of equally many circles"
    charts.label(middle, "change of ‖$F_k$‖ in that step", "survival rate", title, ylim=(0, None))
    for alive, color in ((False, palette.DEAD), (True, palette.SURVIVES)):
        here: Any = circles["signal"][survived == alive], circles["change_4"][survived == alive]
        right.scatter(*here, s=5, color=color, alpha=0.5, linewidths=0)
    charts.label(right, "initial signal ‖$F_k$‖", "change of ‖$F_k$‖\nin step 4")


@recipe(
    "ding-7", item="Figure 7", quick=training.FEW_TRIALS, paper_setting=training.TRIALS,
    draw=_draw_gradients, panels=(11.4, 4.6, 1, 3), source="Section 3.2.2", independent="embedding",
    cost="half an hour to two hours; no time after ding-6, whose networks it shares",
    fidelity=f"{training.STOPPED}; survivors exceed twice the mean, where the code asks for a signal of 10",
    rules=(
        Statement("left", "all gradient signals decrease over time",
            "share of circles whose signal falls in step 4",
            measures.share("circles", "change_4 < 0", by="embedding"), least=0.95,
            chance=counters.drawn(
                "a random sign of each `change_4`", "circles",
                change_4=lambda rows, rng: rows["change_4"] * rng.choice([-1, 1], len(rows["change_4"])),
            )),
        Statement("middle",
            "as the initial gradient increases, the survival rate of those frequencies increases",
            "Pearson correlation of survival with the change of the signal in step 4; by chance 0",
            measures.correlation("circles", "change_4", ALIVE, by="embedding"), least=0.1,
            chance=counters.shuffled("circles", "survived", within="embedding")),
    ),
    withdrawn=dict.fromkeys(
        ("right: accuracy of the linear support vector machine, in sample (%)", "right"),
        "it compared another classifier: the published one calls no circle a survivor (see the errata)",
    ),
)  # fmt: skip
def initial_gradients(run: Run) -> Result:
    """How often frequencies survive, by the changes of their signals in the first four steps.

    Notes
    -----
    The networks are those of Figure 6 (left). The table "circles" has a row for each frequency of each
    network. The rules judge how often signals fall in step 4, and how survival depends on their change there.
    """
    return Result({"circles": training.train_trials(run)})


# -- Figure 8 ----------------------------------------------------------------------------------------------

PIECE = 5, 5
"""Most networks trained together, on a CPU and on a GPU. The layers of all frames are in memory."""
FEW = 0.2
"""Accuracy below which a network counts as unable to add."""
HIGH, NEAR_ZERO = 1.0, 0.1
"""Test losses, in nats, above which a loss is high, and below which it is near zero; guessing gives ln p."""


def _draw(setting: Setting, tables: Tables) -> dict[str, Figure]:
    """Draw the test loss with all frequencies and with the strongest alone, over the steps."""
    with charts.panels(12.6, 4.6, 1, 3, sharey=True) as (figure, axes):
        for count, ax in enumerate(axes, 1):
            strongest = f"the {count} strongest alone" if count > 1 else "the strongest alone"
            for kept, words in ((0, "all frequencies"), (count, strongest)):
                rows = where(tables["curves"], kept=kept)
                label = f"{words} ({len(np.unique(rows['network']))})"
                after = rows["step"] > 0
                charts.ranges(ax, rows["step"][after], rows["test_loss"][after], label=label)
            guess = np.log(setting.size.tokens)
            ax.axhline(guess, color=palette.INK, linewidth=0.8, linestyle=":", label="guessing")
            title = f"{count} kept" if count < 2 else f"{count} kept, where at least {count} survive"
            ax.set(xscale="log", yscale="log")
            charts.label(ax, "step", title=title, legend={"title": "median and range (networks)"})
        axes[0].set_ylabel("test loss")
    return {"ding-8": figure}


@recipe(
    "ding-8", item="Figure 8", quick=Setting(size=training.QUICK, record="log:3", networks=3, seed=0),
    paper_setting=Setting(size=training.PAPER, record="log:8", networks=30, seed=80_000), draw=_draw,
    source="Section 4.1", cost="one to two hours",
    fidelity=f"{training.SINGLE}; sums held out, where the code tests all; and without the mean embedding",
    rules=(
        Statement("one", "the model is not able to perform the modular addition with only one circle",
            f"share of networks with less than {FEW:.0%} of the sums right by their strongest circle alone",
            measures.share("sets", f"accuracy < {FEW}", kept=1, rank=0), least=0.75,
            chance=counters.shuffled("sets", "accuracy", within="network")),
        Statement("two", "still has considerably high loss using two circles",
            f"share of networks whose test loss is above {HIGH:g} with their two strongest circles",
            measures.share("sets", f"test_loss > {HIGH}", kept=2, rank=0), least=0.75,
            chance=counters.shuffled("sets", "test_loss", within="network")),
        Statement("three", "reaches near zero loss with 3 circles",
            f"share of networks whose test loss is below {NEAR_ZERO:g} with their three strongest circles",
            measures.share("sets", f"test_loss < {NEAR_ZERO}", kept=3, rank=0), least=0.75,
            chance=counters.shuffled("sets", "test_loss", within="network"),
            note="of networks with at least three survivors: those with just three all pass, others do not"),
    ),
)  # fmt: skip
def collaboration(run: Run) -> Result:
    """The test loss of embeddings of which only one, two or three circles are kept.

    The rise after step 10⁴ is an effect of rounding in 32 bits (see `rounding`).

    Notes
    -----
    Embedding MLPs are trained to the end on addition modulo p, and tested with embeddings that keep only some
    of their circles. The table "sets" has all sets of up to three survivors at the end, and "curves" the
    strongest sets over time. The rules judge test loss and accuracy with the strongest one, two and three
    circles.
    """
    setting = run.setting

    def train_part(part: range) -> dict[str, Any]:
        trained = training.train_networks(run, part, setting.record, "layers")
        signals = frequency_norms(trained.final)
        rows = []
        for k, own in enumerate(signals):
            # The strongest first: the first set of each size then holds the strongest circles.
            alive = [int(f) + 1 for f in np.argsort(-own) if survives(own)[f]]
            for frame, step in enumerate(trained.steps):
                tested = _tested(networks(trained.run(k), frame), alive, step == trained.steps[-1])
                rows += [{"network": part.start + k, "step": step} | row for row in tested]
        return evidence.columns_of(rows)

    rows = joined(in_parts(run, setting.networks, PIECE, train_part))
    return Result({"sets": where(rows, step=setting.size.steps), "curves": where(rows, rank=0)})


def _tested(revived: Any, alive: list[int], all_sets: bool) -> list[dict[str, float]]:
    """Test a network at one frame with only some of its surviving circles.

    `alive` lists the surviving frequencies, the strongest first. All sets of up to three of them are tested,
    or else only the strongest one, two and three. A row has the size of the set (0 for all frequencies), its
    rank, the validation loss and the validation accuracy.
    """
    E = revived.parameters["embedding"]
    sets: list[Any] = [(0, 0, revived)]
    for count in range(1, min(3, len(alive)) + 1):
        for rank, kept in enumerate(islice(combinations(alive, count), None if all_sets else 1)):
            sets.append((count, rank, revived.with_embedding(keep_frequencies(E, kept))))
    return [
        {"kept": count, "rank": rank, "test_loss": one.loss("validation")[0],
            "accuracy": one.accuracy("validation")[0]}
        for count, rank, one in sets
    ]  # fmt: skip


# -- Figure 11 ---------------------------------------------------------------------------------------------

SHARD = 100
"""Number of networks of Figure 11 (right) that have one seed."""


def _rounder(name: str, column: str) -> Statement:
    return Statement(name, "circularity increases as dimensionality increases",
        f"Kendall's τ of the {name} circularity over frequencies and d; by chance 0",
        measures.rank_correlation("embeddings", "d", column), least=0.5, possible=(-1.0, 1.0),
        independent="embedding", source="Appendix B",
        chance=counters.shuffled("embeddings", column))  # fmt: skip


@recipe(
    "ding-11", item="Figure 11, left; Appendix B", quick=Setting(tokens=23, dims=(2, 8, 32), count=5, seed=0),
    paper_setting=Setting(tokens=59, dims=(2, 4, 8, 16, 32, 64, 128, 256, 512), count=50, seed=110_000),
    cost="seconds",
    rules=(_rounder("mean", "mean"), _rounder("maximum", "maximum")),
)  # fmt: skip
def initial_circularity(run: Run) -> Result:
    """The circularity of random embeddings, by the embedding dimension.

    Notes
    -----
    Normally distributed embeddings of p tokens are drawn in several dimensions d. The table "embeddings" has
    a row for each of them. The rules ask whether the mean and the maximum over frequencies rise with d.
    """
    setting = run.setting
    p, generator = setting.tokens, generator_of(run.seed(setting.seed))
    values = np.stack([circularity(generator.standard_normal((setting.count, p, d))) for d in setting.dims])
    mean, maximum = values.mean(axis=2), values.max(axis=2)
    rows = {"d": np.repeat(setting.dims, setting.count), "mean": mean.ravel(), "maximum": maximum.ravel()}
    with charts.panels(5.6, 3.8) as (figure, ax):
        for name, color in (("maximum", palette.SECOND), ("mean", palette.FIRST)):
            charts.means(ax, rows["d"], rows[name], color=color, label=f"{name} over frequencies")
        d = np.geomspace(setting.dims[0], setting.dims[-1], 50)
        ax.plot(d, d / (d + p - 2), color=palette.INK, linewidth=0.9, linestyle="--", label="d / (d + p - 2)")
        ax.set(xscale="log", ylim=(0, 1))
        ax.set_xticks(setting.dims, [str(d) for d in setting.dims])
        ax.minorticks_off()
        title = f"{setting.count} random embeddings, p = {p}"
        charts.label(ax, "embedding dimension d", "circularity (Eq. 5)", title)
    return Result({"embeddings": rows}, {"ding-11": figure})


# -- the right ----------------------------------------------------------------------------------------------


@recipe(
    "ding-11b", item="Figure 11, right; Appendix B",
    quick=Setting(size=training.QUICK, networks=6, audited=1, seed=0),
    paper_setting=Setting(size=training.PAPER, networks=340, audited=4, seed=111_000), source="Appendix B",
    cost="a quarter of an hour to an hour", fidelity=training.STOPPED,
    rules=(
        Statement("survival",
            "inconclusive as to whether larger initial circularity implies a better chance of survival",
            "Pearson correlation of survival and initial circularity: none, by an equivalence margin of 0.1",
            measures.correlation("circles", "circularity", ALIVE, by="network"), least=-0.1, most=0.1,
            chance=counters.replaced("circles", circularity="signal"),
            note="circularity and initial signal are correlated"),
    ),
)  # fmt: skip
def by_circularity(run: Run) -> Result:
    """How well the initial circularity of a frequency predicts its survival.

    Notes
    -----
    Most networks are trained only until their survivors are decided. The table "circles" has a row for each
    frequency of each network. The rule asks whether survival and initial circularity are uncorrelated.
    """
    setting = run.setting
    model, seed = setting.size.model, setting.seed

    def train_part(number: int, part: range) -> dict[str, Any]:
        own: dict[str, Any] = {"runs": len(part), "seed": run.seed(seed + number)}
        audited = 0 if number else setting.audited
        found = training.train_circles(model, steps=setting.size.steps, audited=audited, **own)
        start = circularity(draw(model, **own).parameters["embedding"])
        index = {"network": part, "_": start.frequency}
        return found.by_frequency(index, circularity=start, signal=found.signals[:, 0])

    rows = joined(
        run.keep(f"networks-from-{part.start}", partial(train_part, number, part))
        for number, part in enumerate(training.parts_of(setting.networks, SHARD))
    )
    survived, start = rows["survived"], rows["circularity"]
    with charts.panels(9.6, 3.6, 1, 2) as (figure, (left, right)):
        edges, quantity = np.linspace(start.min(), start.max(), 31), "initial circularity (Eq. 5)"
        charts.densities(left, start, survived, edges, quantity)
        left.set_title(f"{setting.networks} networks")
        charts.survival(right, start, survived, rows["network"])
        right.axhline(survived.mean(), color=palette.SOFT, linestyle=":", linewidth=1)
        title = "bins of equally many circles; dotted: all"
        charts.label(right, quantity, "survival rate", title, ylim=(0, None))
    return Result({"circles": rows}, {"ding-11b": figure})
