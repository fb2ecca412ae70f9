"""Whether a law fitted to some networks predicts the survivors of others, or later steps of the same ones.

Where Musat's particles end, next to the networks that they describe.

Beyond Liu et al.: the critical fraction of the closure for addition of p = 5 to 60 symbols, and of groups.

Beyond Liu et al.: how often two networks of one cell of a phase diagram have the same phase.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

import physics
from analysis.phases import PHASES
from analysis.plots import palette
from analysis.plots.distributions import show_distributions
from analysis.stats.intervals import Interval
from grokphys.arena import signals as arena
from grokphys.arena.shapes import Particles, disparities
from grokphys.arena.track import ANOTHER, STILL, ensemble, seen
from grokphys.papers import charts, counters, evidence, measures
from grokphys.papers.ding.figures_09_to_16 import fit_networks, fits
from grokphys.papers.ding.training import LASSO, LINEAR, PAPER, QUICK, law_of, train_networks
from grokphys.papers.evidence import Columns, Measure, Tables
from grokphys.papers.liu.phases import CHANCE, RATES, Plane, name_phases, show_phases, train_plane
from grokphys.papers.recipe import Number, Result, Run, Setting, Statement, recipe
from nets import ConstantAttention
from physics import FiniteGroup, Operation
from physics.theory.operations import random_orders

# -- laws --------------------------------------------------------------------------------------------------

Booleans = NDArray[np.bool_]
Integers = NDArray[np.int64]
STARTS = (0, 20, 50, 100, 200, 300, 400)
WILD = 1e4
"""Largest relative error of a rollout, which one that diverges has."""
LAWS = {"mean_field": "mean field", "linear": "Lasso"}
"""Laws of the arena by the column of their agreement."""
NAMES = {
    "mean_field": "mean field, nine terms", "linear": "linear, Lasso",
    "ranking": "ranking by the signal there",
}  # fmt: skip


def _better(over: str, start: int) -> Statement:
    name = NAMES[over]
    return Statement(f"mean field and {over}, from step {start}",
        f"a mean field tells the survivors better than {name}",
        "agreement on the survivors: that of the mean field minus the other's; by chance 0",
        measures.mean("networks", f"mean_field - {over}", start=start), least=0.02,
        source="this project; no paper says it",
        chance=counters.exchanged("networks", "mean_field", over),
        family=f"a mean field tells more survivors than {name.removesuffix(' there')}")  # fmt: skip


def _draw_law(setting: Setting, tables: Tables, left: Any, right: Any) -> None:
    """Draw the agreement of each theory, and the errors of the laws, over the step of the prediction."""
    rows = tables["networks"]
    for n, (column, name) in enumerate(NAMES.items()):
        shown = rows["start"] + 4.0 * (n - 1)  # so that bars do not hide each other
        charts.means(left, shown, rows[column], label=name)
        if column in LAWS:
            charts.means(right, shown, rows[f"{column}_error"])
    left.set_yticks(np.linspace(0, 1, 6))
    size = setting.size
    title = f"p = {size.tokens}, d = {size.dim}, {setting.networks} networks, unseen in the fit"
    charts.label(left, "step of the prediction", "agreement on the survivors", title, ylim=(0, 1.03))
    title = f"rollouts to step {setting.last}, mean and 95 % interval"
    charts.label(right, "step of the prediction", "log₁₀ relative error", title, legend=False)


@recipe(
    "ding-law", item="one law for many networks",
    quick=Setting(size=QUICK, starts=(0, 100), every=10, last=300, networks=8, seed=0),
    paper_setting=Setting(size=PAPER, starts=STARTS, every=10, last=1000, networks=50, seed=170_000),
    draw=_draw_law, panels=(9.8, 3.7, 1, 2), cost="one to two hours",
    rules=tuple(_better(over, start) for over in ("ranking", "linear") for start in STARTS),
)  # fmt: skip
def across_networks(run: Run) -> Result:
    """Whether a law fitted to some networks predicts the survivors of others.

    Notes
    -----
    The table "networks" has a row for each network and step of the prediction, with the agreement on the
    survivors of a mean-field law, of the linear law of Ding et al., and of a ranking by the signal. The rules
    judge whether the mean field agrees better.
    """
    return Result({"networks": run.keep("networks", partial(_judged, run))})


def _judged(run: Run) -> Columns:
    """Train networks, and return the agreement of each theory, and the log₁₀ relative error of each law.

    A law is fitted to the networks of the other folds. A rollout that diverges has an error of `WILD`, and
    predicts no survivor.
    """
    setting = run.setting
    record = f"{setting.every}:{setting.last},{setting.size.steps}"
    networks = arena.with_signals(train_networks(run, range(setting.networks), record))
    final, parts = arena.alive(networks), []
    for start in setting.starts:
        truth = arena.path(networks, start)
        part = {"start": np.full(len(truth), start), "network": np.arange(len(truth))}
        laws = [arena.SignalLaw(kind) for kind in LAWS.values()]
        for name, paths in zip(LAWS, arena.crossed(laws, networks, start, "predict"), strict=True):
            errors = np.minimum(arena.relative_errors(paths, truth), WILD)
            part |= {name: arena.agreement(arena.ends_of(paths), final), f"{name}_error": np.log10(errors)}
        parts.append(part | {"ranking": arena.ranked(truth[:, 0], final)})
    return evidence.joined(parts)


# -- forward in time ----------------------------------------------------------------------------------------


def _fails(later: Booleans, early: Booleans, level: float) -> Interval:
    gap = evidence.difference(evidence.share(later, level), evidence.share(early, level))
    return replace(gap, count=len(later))


def _flatters(law: str) -> Statement:
    return Statement(law,
        f"the R² of {law} in sample flatters: half of a network's steps do not tell the other half",
        "share of networks in which the law of the first 500 steps has an R² below 0 on the next 500, minus "
        "the share in which it is below 0 on its own 500; 0 where the halves are exchanged by chance",
        measures.of_rows(_fails, "forward", "later < 0", "early < 0", law=law), least=0.75,
        possible=(-1.0, 1.0), source="this project; no paper says it",
        chance=counters.exchanged("forward", "early", "later"),
        note="corrected after the run: intervals of shares; before, that of a mean, "
        "which had no width")  # fmt: skip


def _draw_forward(setting: Setting, tables: Tables, ax: Any) -> None:
    """Draw R² of the changes in the first and in the second half of the steps, for each network and law."""
    table, half = tables["forward"], setting.steps // 2
    for n, name in enumerate((LINEAR, LASSO)):
        rows = evidence.where(table, law=name)
        halves = [rows["early"], rows["later"]]
        dots = ax.plot(np.add((0, 1), 0.1 * n), halves, "o", color=palette.SERIES[n], ms=4, alpha=0.5)
        dots[0].set_label(name)
    ax.set_yscale("symlog", linthresh=1, linscale=1.5)
    ax.axhline(0, color=palette.INK, linewidth=0.8)
    ax.set_xticks((0, 1), (f"first {half} steps, fitted", f"next {half} steps"))
    title = f"{len(np.unique(table['network']))} networks, each fitted alone"
    charts.label(ax, "", "R² of the changes", title, xlim=(-0.5, 1.6))


@recipe(
    "ding-forward", item="the linear law, forward in time",
    **fits((3, 280_000), {"networks": 6, "steps": 150}),
    draw=_draw_forward, panels=(5.6, 3.8), cost="five to fifteen minutes",
    rules=(_flatters(LINEAR), _flatters(LASSO)),
)  # fmt: skip
def forward(run: Run) -> Result:
    """How well a linear law fitted to the first half of the training steps predicts the second half.

    Notes
    -----
    The signals of embedding MLPs are fitted by least squares and by Lasso. The table "forward" has a row for
    each network and law. The rules judge in how many more networks R² is negative in the second half of the
    steps, to which the law was not fitted, than in the first half.
    """
    _, signals = fit_networks(run)
    half = run.setting.steps // 2
    rows = []
    for (network, x), name in product(enumerate(signals), (LINEAR, LASSO)):
        law = law_of(name, x[: half + 1])
        early, later = (law.score(part).derivative for part in (x[: half + 1], x[half:]))
        rows.append({"network": network, "law": name, "early": early, "later": later})
    return Result({"forward": evidence.columns_of(rows)})


# -- particles against constant attention ------------------------------------------------------------------

SHAPES = {
    "particles": "Musat's particles, as printed", "start": STILL, "another": ANOTHER,
    "unrelated": "another network",
}  # fmt: skip
"""Shapes that the fate of a network is compared with, by the column of their disparity."""


def _draw_particles(setting: Setting, tables: Tables, ax: Any) -> None:
    """Draw the distribution of the disparity of each prediction to the final shape."""
    samples = {name: tables["networks"][column] for column, name in SHAPES.items()}
    words = "Procrustes disparity to the network's own final shape"
    show_distributions(samples, ax, xlabel=words, title=f"{setting.runs} networks at weight decay 1")


CHOICE = (
    "it was judged by the nearest shape, where mean and median give opposite verdicts; the arena has fates"
)


@recipe(
    "compare-particles", item="the fate of a network, by particles", quick=Setting(runs=8, epochs=200),
    paper_setting=Setting(runs=400, epochs=2000), draw=_draw_particles, panels=(6.4, 4.2),
    source="Musat, abstract", cost="five minutes",
    rules=(
        Statement("nearer than the start, own fate",
            "particles converge to the same structures as the embedding vectors in the trained transformer",
            "disparity to a network's final shape of the particles that begin at its start, minus that of "
            "the start; by chance 0",
            measures.mean("networks", "particles - start"), most=-0.1, source="Musat, Section 6",
            chance=counters.exchanged("networks", "particles", "start")),
        Statement("as near as another network", "identical structures emerge",
            "disparity to a network's final shape of the particles that begin at its start, minus that of a "
            "network with other layers",
            measures.mean("networks", "particles - another"), least=-0.1, most=0.1,
            chance=counters.replaced("networks", particles="unrelated")),
    ),
    withdrawn={"shapes": CHOICE, "nearer than the start": CHOICE},
)  # fmt: skip
def particles_and_attention(run: Run) -> Result:
    """How near Musat's particles end to the final shape of the network at whose start they begin.

    Notes
    -----
    This is the track fate of `grokphys arena`, at f_a = 1 and weight decay 1. The table "networks" has a row
    for each network, with the Procrustes disparities to its final shape of the particles, of its start, of a
    network from the same start with other layers, and of an unrelated one.
    """
    setting = run.setting
    options: dict[str, Any] = {"runs": setting.runs, "steps": setting.epochs, "record": setting.epochs}
    options |= {"weight_decay": 1.0, "seed": run.seed(8302)}
    networks, another = (
        ensemble(None, ConstantAttention(), layers=layers, **options) for layers in (None, run.seed(8303))
    )
    starts = seen(networks, slice(1))
    shapes = Particles(SHAPES["particles"]).fit(networks).predict(starts), starts.initial, another.final
    columns = zip(SHAPES, (*shapes, np.roll(networks.final, 1, axis=0)), strict=True)
    return Result({"networks": {name: disparities(each, networks.final) for name, each in columns}})


# -- the transition by the number of symbols ---------------------------------------------------------------

FAMILIES = {"plain addition": False, "addition mod p": True}
SEED = 9100


def measure(operation: Operation, orders: int, seed: int) -> dict[str, NDArray[Any]]:
    """Count random orders of all samples by how many samples are needed to determine the representation.

    Parameters
    ----------
    operation : Operation
        Operation that is learned.
    orders : int
        Number of random orders.
    seed : int
        Seed of the random orders.

    Returns
    -------
    dict of str to ndarray
        Table with the columns "size", a number of samples; "fraction", the same over the number of all
        samples; and "orders", the number of orders that need this many. If the operation commutes, rows are
        also split by the column "last": whether just as many samples are needed until no symbol is isolated
        (see `last_symbols`).
    """
    drawn = random_orders(operation, sets=orders, seed=seed)
    sizes = physics.critical_sizes(operation, orders=drawn)
    kinds = [sizes, sizes == last_symbols(operation, drawn)] if operation.commutes else [sizes]
    (size, *last), counts = np.unique(np.stack(kinds).astype(int), axis=1, return_counts=True)
    table = {"size": size, "fraction": size / len(operation.samples)}
    return table | ({"last": last[0].astype(bool)} if last else {}) | {"orders": counts}


def critical_fraction(rows: Columns, level: float) -> Interval:
    """Return the median fraction of samples that determine the representation, from a table of `measure`.

    Its interval at the confidence level `level` is that of order statistics.
    """
    return evidence.median(np.repeat(rows["fraction"], rows["orders"]), level)


def _critical(tokens: int, law: bool = False) -> Measure:
    """Return a measure of the logarithm of r_c of plain addition, or of r_c p / ln p with a `law`."""
    scale = np.log(tokens) / tokens if law else 1.0
    fraction = measures.of_rows(critical_fraction, "orders", dict, family="plain addition", tokens=tokens)
    return measures.mapped(fraction, lambda value: float(np.log(value / scale)))


LARGEST: dict[str, Any] = {"family": "plain addition", "tokens": 60}


@partial(counters.Chance, "fractions at p = 60 that are 28/60 of those at p = 28, as by a law 1/p")
def _one_over_p(tables: Tables, generator: np.random.Generator) -> Tables:
    """Return tables in which 60 symbols need as many samples for each symbol as 28 do."""
    rows = counters.instead("orders", rows=LARGEST | {"tokens": 28}, of=LARGEST)(tables, generator)["orders"]
    scale = np.where(evidence.chosen_rows(rows, LARGEST), 28 / 60, 1)
    return {**tables, "orders": {**rows, "fraction": scale * rows["fraction"]}}


OTHERS = "the last isolated symbol of another order, which is taken to complete that order"


@partial(counters.changed, OTHERS, "orders")
def _of_another_order(table: Columns, generator: np.random.Generator) -> Columns:
    """Return orders of p = 60 in which the last isolated symbol has nothing to do with completeness."""
    rows = evidence.where(table, **LARGEST)
    rows = {name: np.repeat(values, rows["orders"]) for name, values in rows.items()}
    last = rows["size"] == generator.permutation(rows["size"])
    return rows | {"last": last, "orders": np.ones(len(last), int)}


def last_symbols(operation: Operation, orders: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return how many samples from the beginning of each order are needed until no symbol is isolated.

    A symbol is isolated until one of its samples has the class of another sample. Until then no equation
    contains the symbol, and its embedding is free, so that the representation cannot be complete.

    Parameters
    ----------
    operation : Operation
        Operation that is learned, which must commute.
    orders : ndarray of int32, shape (sets, samples)
        Orders of all samples, as permutations of their numbers.

    Returns
    -------
    ndarray of int32, shape (sets,)
        Number of samples for each order.
    """
    count = len(operation.samples)
    arrival = np.empty_like(orders)
    np.put_along_axis(arrival, orders, np.arange(1, count + 1, dtype=np.int32)[None], axis=1)
    useful = np.full(orders.shape, count + 1, np.int32)
    for label in np.unique(operation.label):
        members = np.flatnonzero(operation.label == label)
        if len(members) > 1:
            times = arrival[:, members]
            useful[:, members] = np.maximum(times, np.partition(times, 1, axis=1)[:, 1:2])
    symbols = range(operation.tokens)
    first = [useful[:, (operation.samples == s).any(axis=1)].min(axis=1) for s in symbols]
    return np.asarray(np.max(first, axis=0))


def _draw_scaling(setting: Setting, tables: Tables, left: Any, middle: Any, right: Any) -> None:
    """Draw the distribution of the critical fraction, and how it and the column "last" depend on p."""
    table = tables["orders"]
    _show_distributions(left, evidence.where(table, family="plain addition"))
    _show_over_p(middle, table, critical_fraction)
    _show_over_p(right, table, _share_of_last)
    smooth = np.geomspace(min(setting.tokens), max(setting.tokens), 100)
    law = np.log(smooth) / smooth
    middle.plot(smooth, law, color=palette.REFERENCE, linestyle="--", linewidth=1, label=r"$\ln p\,/\,p$")
    middle.set(yscale="log")
    middle.set_yticks([0.1, 0.2, 0.4, 0.7], ["0.1", "0.2", "0.4", "0.7"])
    middle.set_yticks([], minor=True)
    charts.label(middle, "p", r"critical fraction $r_c$", "critical fraction")
    title = "orders completed by\nthe last isolated symbol"
    charts.label(right, "p", "share of orders", title, ylim=(0, 1))


@recipe(
    "liu-scaling", item="the transition of the closure, p = 5 … 60",
    quick=Setting(tokens=(5, 10, 28, 60), orders=20),
    paper_setting=Setting(tokens=(5, 7, 10, 14, 20, 28, 40, 60), orders=10_000),
    draw=_draw_scaling, panels=(11.4, 4.6, 1, 3),
    source="beyond the papers", independent="order", cost="two minutes",
    rules=(
        Statement("r_c falls with p", "the critical training data fraction r_c is not a constant",
            "r_c at p = 60 over r_c at p = 10, plain addition; 1 where it is a constant",
            measures.ratio(_critical(60), _critical(10)), most=0.8,
            source="beyond the papers: Liu gives r_c = 0.4 at p = 10",
            chance=counters.instead("orders", rows=LARGEST | {"tokens": 10}, of=LARGEST),
            note="r_c is the median fraction over random orders"),
        Statement("r_c falls as ln p / p", "the coupon collector's law, of which large p has the limit",
            "r_c p / ln p at p = 60 over that at p = 28, plain addition; 1 where the law holds",
            measures.ratio(_critical(60, law=True), _critical(28, law=True)), least=0.9, most=1.1,
            chance=_one_over_p,
            note="other laws lie in this range too, such as a power p^-0.8: the ratio still falls at p = 60"),
        Statement("the last isolated symbol decides",
            "the representation is complete as soon as no symbol is isolated",
            "share of orders in which the last isolated symbol completes it, p = 60, plain addition",
            measures.share("orders", "np.repeat(last, orders)", **LARGEST), least=0.5,
            chance=_of_another_order),
    ),
)  # fmt: skip
def scaling(run: Run) -> Result:
    """The critical training fraction of the closure by the number of symbols p, next to ln p / p.

    Notes
    -----
    Each random order of all samples is followed until the samples determine the representation. The table
    "orders" counts orders by the number of these samples. The rules judge, for plain addition, how the median
    fraction depends on p, and whether the last isolated symbol decides.
    """
    setting = run.setting
    parts = []
    for family, p in product(FAMILIES, setting.tokens):
        operation = Operation(p, modulus=p if FAMILIES[family] else None)
        part = run.keep(f"{family}-{p}", partial(measure, operation, setting.orders, run.seed(SEED + p)))
        count = len(part["size"])
        parts.append({"family": np.full(count, family), "tokens": np.full(count, p), **part})
    return Result({"orders": evidence.joined(parts)})


def _show_distributions(ax: Axes, rows: Columns) -> None:
    """Draw, for each p, the probability that a training set determines the representation, over its size."""
    tokens = np.unique(rows["tokens"])
    for p, color in zip(tokens, palette.graded_colors(len(tokens)), strict=True):
        counts = evidence.where(rows, tokens=p)
        order = np.argsort(counts["fraction"])
        passed = np.cumsum(counts["orders"][order]) / counts["orders"].sum()
        ax.step(counts["fraction"][order], passed, where="post", color=color, label=str(p))
    ax.set_xticks(np.linspace(0, 1, 6))
    words = "training data fraction", "probability of a\nunique representation", "plain addition"
    charts.label(ax, *words, xlim=(0, 1), legend={"title": "p", "handlelength": 1.2})


def _share_of_last(rows: Columns, level: float) -> Interval:
    return evidence.share(np.repeat(rows["last"], rows["orders"]), level)


def _show_over_p(ax: Axes, table: Columns, value: Callable[[Columns, float], Interval]) -> None:
    for family, marker in zip(FAMILIES, "os", strict=True):
        rows = evidence.where(table, family=family)
        tokens = np.unique(rows["tokens"])
        values = [value(evidence.where(rows, tokens=p), 0.95) for p in tokens]
        look: Any = {"marker": marker, "linestyle": "none", "linewidth": 1, "capsize": 0}
        charts.intervals(ax, tokens, values, label=family, **look)
    ax.set(xlabel="p", xscale="log")
    ax.set_xticks([5, 10, 20, 40, 60], ["5", "10", "20", "40", "60"])
    ax.set_xticks([], minor=True)


# -- groups ------------------------------------------------------------------------------------------------


def some_groups() -> list[FiniteGroup]:
    """Return fifteen finite groups, of orders from 6 to 24, some of which do not commute."""
    cyclic, theory, two = physics.cyclic, physics.theory, physics.cyclic(2)
    product = theory.direct_product
    commuting = [*map(cyclic, (6, 8, 10, 12, 24)), product(two, cyclic(4)), product(two, two, two)]
    commuting.append(product(two, two, cyclic(6)))
    others = [*map(physics.symmetric, (3, 4)), *map(theory.dihedral, (4, 5, 6))]
    others += [theory.quaternion(), theory.alternating(4)]
    return sorted(commuting + others, key=lambda group: group.order)


def _draw_groups(setting: int, tables: Tables, ax: Any) -> None:
    """Draw the critical fraction of each group with its 95 % interval, from a table of random orders."""
    operations = {group.name: Operation(group=group) for group in some_groups()}
    place = dict(zip(operations, np.arange(len(operations))[::-1], strict=True))
    kinds = ("commuting; unordered pairs", "not commuting; ordered pairs")
    for commutes, label in zip((True, False), kinds, strict=True):
        names = [name for name, operation in operations.items() if operation.commutes == commutes]
        values = [critical_fraction(evidence.where(tables["orders"], group=name), 0.95) for name in names]
        look: Any = {"linestyle": "none", "markersize": 5, "capsize": 0, "label": label}
        charts.intervals(ax, [place[name] for name in names], values, across=True, **look)
    labels = [re.sub(r"(\w)_(\d+)", r"$\1_{\2}$", name).replace("x", "×") for name in place]
    orders = [f"{label}, {own.tokens}" for label, own in zip(labels, operations.values(), strict=True)]
    ax.set_yticks(list(place.values()), orders)
    ax.grid(axis="y")
    words = r"critical fraction $r_c$, with 95 % intervals", "group, and its order"
    charts.label(ax, *words, "Transitions of finite groups", xlim=(0, None))


@recipe(
    "liu-groups", item="the transition of the closure of groups", quick=20, paper_setting=10_000,
    draw=_draw_groups, panels=(6.4, 4.4),
    source="Liu, Figure 18 (b)", independent="order", cost="five minutes",
    rules=(
        Number("S_3: critical fraction by deduction, against networks on S_3", "0.5",
            measures.of_rows(critical_fraction, "orders", dict, group="S_3"), margin=0.02, digits=3),
    ),
)  # fmt: skip
def groups(run: Run) -> Result:
    """Critical fractions of fifteen finite groups.

    Notes
    -----
    For groups that commute, it is the fraction at which the linear closure is complete, and for all others
    that at which the deduction is. The table "orders" counts random orders of all samples, for each group.
    The rule compares the fraction of S_3 with that of networks in Figure 18 (b) of Liu et al.
    """
    parts = []
    for group in some_groups():
        counts = run.keep(group.name, partial(measure, Operation(group=group), run.setting, run.seed(SEED)))
        parts.append({"group": np.full(len(counts["size"]), group.name), **counts})
        parts[-1].pop("last", None)
    return Result({"orders": evidence.joined(parts)})


# -- networks of one cell ----------------------------------------------------------------------------------


def phase_map(rows: Columns) -> Integers:
    """Return the places in `PHASES` of the phases of all networks, int64 (rows, columns, networks).

    `rows` is the table "networks" of a plane, whose cells have equally many networks.
    """
    order = np.lexsort((rows["network"], rows["column"], rows["row"]))
    shape = (int(np.max(rows["row"])) + 1, int(np.max(rows["column"])) + 1, -1)
    return np.array([PHASES.index(name) for name in rows["phase"][order]]).reshape(shape)


def agreement(phases: Any) -> NDArray[np.float64]:
    """Return the share of pairs of networks that have the same phase, over the last axis of `phases`."""
    counts, networks = _counts(phases), np.shape(phases)[-1]
    return np.asarray((counts * (counts - 1)).sum(axis=-1) / (networks * (networks - 1)))


def _counts(phases: Any) -> Integers:
    """Return how many networks of each cell have each of the `PHASES`, int64 (..., phases)."""
    return np.stack([np.sum(phases == k, axis=-1) for k in range(len(PHASES))], axis=-1)


def inner_cells(phases: Integers) -> NDArray[np.bool_]:
    """Return which cells have neighbors of one phase, bool (rows, columns).

    Neighbors are the cells on the left, on the right, above and below. The phase of a cell is here the most
    frequent one of its networks, or the first of several in the order of `PHASES`. A cell itself does not
    count, so that the result does not depend on the networks that `agreement` compares in it.
    """
    usual = np.pad(np.argmax(_counts(phases), axis=-1), 1, constant_values=-1)
    around = np.stack([usual[1:-1, :-2], usual[1:-1, 2:], usual[:-2, 1:-1], usual[2:, 1:-1]])
    first = np.max(around, axis=0)
    return np.all((around == first) | (around == -1), axis=0)


def _beyond_chance(tables: Tables, level: float) -> Interval:
    """Return the agreement within cells minus that of networks of different cells, with a jackknife."""
    phases = phase_map(tables["networks"])
    cells = phases.reshape(-1, phases.shape[-1])

    def beyond(*columns: Any) -> float:
        own = np.stack(columns, axis=-1)
        counts = _counts(own)
        total = counts.sum(axis=0)
        across = np.sum(total**2) - np.sum(counts**2)  # ordered pairs of equal networks of two cells
        everything = own.size**2 - len(own) * own.shape[1] ** 2
        return float(agreement(own).mean() - across / everything)

    return evidence.jackknife(beyond, *cells.T, level=level)


def _inner_minus_others(tables: Tables, level: float) -> Interval:
    phases = phase_map(tables["networks"])
    inner, same = inner_cells(phases), agreement(phases)
    return evidence.difference(evidence.mean(same[inner], level), evidence.mean(same[~inner], level))


def _draw(plane: Plane, tables: Tables) -> dict[str, Figure]:
    """Draw a phase diagram of each seed, and the share of pairs of networks that agree in each cell."""
    phases = phase_map(tables["networks"])
    (model,) = plane.models.values()
    x, y = plane.axes(model)
    edges = plane.edges(model)
    options: Any = {"sharex": True, "sharey": True}
    with charts.panels(11.4, 4.0, 1, phases.shape[-1] + 1, **options) as (figure, (*each, last)):
        for k, ax in enumerate(each):
            show_phases(ax, edges, phases[..., k])
            ax.set_title(f"network {k} of each cell")
        cells = last.pcolormesh(*edges, agreement(phases), cmap="Purples", vmin=0, vmax=1)
        last.set_title("pairs that agree")
        figure.colorbar(cells, ax=last, label="share of pairs")
        for ax in (*each, last):
            ax.set(xscale=x.scale, yscale=y.scale, xlabel=x.label)
        each[0].set_ylabel(y.label)
        name_phases(figure)
    return {"liu-seeds": figure}


@recipe(
    "liu-seeds", item="Figure 6 (a) of Liu et al., network by network", quick=replace(RATES["quick"], each=2),
    paper_setting=RATES["paper_setting"], draw=_draw,
    source="beyond the papers: the figures of Liu et al. show one color in each cell", independent="cell",
    cost="an hour or two alone; no time after liu-6a, whose networks it shares",
    rules=(
        Statement("one phase", "networks of one cell, which differ in their seed, have the same phase",
            "share of pairs of networks of one cell that have the same phase, mean over the cells",
            measures.mean("networks", lambda rows: agreement(phase_map(rows)).ravel()), least=0.9,
            chance=CHANCE),
        Statement("beyond chance", "the learning rates tell the phase of a network",
            "the same share minus that of pairs of networks of two cells; by chance 0",
            _beyond_chance, least=0.2, chance=CHANCE),
        Statement("borders", "networks of one cell differ where two phases meet",
            "the same share in cells whose neighbors all have one most frequent phase, minus that in the "
            "others; by chance 0",
            _inner_minus_others, least=0.1, source="this project; no paper says it", chance=CHANCE,
            note="the two to four cells that share a side with it"),
    ),
)  # fmt: skip
def seeds(run: Run) -> Result:
    """How often two networks of one cell of a phase diagram have the same phase.

    Notes
    -----
    The table "networks" is that of `liu-6a`, whose networks are trained only once. The rules judge how often
    two networks of one cell have the same phase, and where.
    """
    return Result({"networks": train_plane(run, run.setting, family="liu-6a")})
