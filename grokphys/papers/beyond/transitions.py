"""Beyond Liu et al.: the critical training fraction of addition of p = 5 to 60 symbols, and of groups.

Beyond Liu et al.: how often two networks of one cell of a phase diagram have the same phase.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import stats

import physics
from analysis.phases.classification import PHASES
from analysis.plots import palette
from analysis.stats.intervals import Interval
from grokphys.papers import charts, counters, evidence, measures
from grokphys.papers.evidence import Columns, Measure, Tables
from grokphys.papers.liu.phases import CHANCE, RATES, Plane, name_phases, show_phases, train_plane
from grokphys.papers.recipe import Number, Result, Run, Setting, Statement, recipe
from physics import FiniteGroup, Operation, critical_sizes
from physics.theory.operations import random_orders

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
    sizes = critical_sizes(operation, orders=drawn)
    kinds = [sizes, sizes == last_symbols(operation, drawn)] if operation.commutes else [sizes]
    (size, *last), counts = np.unique(np.stack(kinds).astype(int), axis=1, return_counts=True)
    table = {"size": size, "fraction": size / len(operation.samples)}
    return table | ({"last": last[0].astype(bool)} if last else {}) | {"orders": counts}


def critical_fraction(rows: Columns, level: float) -> Interval:
    """Return the median fraction of samples that determine the representation, from a table of `measure`.

    Its interval at the confidence level `level` is that of order statistics.
    """
    values = np.sort(np.repeat(rows["fraction"], rows["orders"]))
    count = len(values)
    low, high = (int(stats.binom.ppf((1 + side * level) / 2, count, 0.5)) for side in (-1, 1))
    return Interval(float(np.median(values)), float(values[low]), float(values[min(high, count - 1)]), count)


def _critical(tokens: int, scale: float = 1.0, family: str = "plain addition") -> Measure:
    return lambda tables, level: critical_fraction(
        evidence.where(tables["orders"], family=family, tokens=tokens), level
    ).map(lambda value: float(np.log(value / scale)))


def _law(tokens: int) -> Any:
    return _critical(tokens, np.log(tokens) / tokens)


LARGEST: dict[str, Any] = {"family": "plain addition", "tokens": 60}


@partial(counters.Chance, "fractions at p = 60 that are 28/60 of those at p = 28, as by a law 1/p")
def _one_over_p(tables: Tables, generator: np.random.Generator) -> Tables:
    """Return tables in which 60 symbols need as many samples for each symbol as 28 do."""
    rows = counters.instead("orders", rows=LARGEST | {"tokens": 28}, of=LARGEST)(tables, generator)["orders"]
    own = (rows["family"] == LARGEST["family"]) & (rows["tokens"] == 60)
    return {**tables, "orders": {**rows, "fraction": np.where(own, 28 / 60, 1) * rows["fraction"]}}


@partial(counters.Chance, "the last isolated symbol of another order, which is taken to complete that order")
def _of_another_order(tables: Tables, generator: np.random.Generator) -> Tables:
    """Return tables of p = 60 in which the last isolated symbol has nothing to do with completeness."""
    rows = evidence.where(tables["orders"], **LARGEST)
    rows = {name: np.repeat(values, rows["orders"]) for name, values in rows.items()}
    last = rows["size"] == generator.permutation(rows["size"])
    return {**tables, "orders": {**rows, "last": last, "orders": np.ones(len(last), int)}}


EXACT = "the closure of a training set is computed, and has no chance that could be shuffled"


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


def _draw_scaling(setting: Setting, tables: Tables) -> dict[str, Figure]:
    """Draw the distribution of the critical fraction, and how it and the column "last" depend on p."""
    table = tables["orders"]
    with charts.panels(11.4, 4.6, 1, 3) as (figure, (left, middle, right)):
        _show_distributions(left, evidence.where(table, family="plain addition"))
        _show_over_p(middle, table, critical_fraction)
        _show_over_p(
            right, table, lambda rows, level: evidence.share(np.repeat(rows["last"], rows["orders"]), level)
        )
        smooth = np.geomspace(min(setting.tokens), max(setting.tokens), 100)
        law = np.log(smooth) / smooth
        middle.plot(smooth, law, color=palette.REFERENCE, linestyle="--", linewidth=1, label=r"$\ln p\,/\,p$")
        middle.set(yscale="log", ylabel=r"critical fraction $r_c$", title="critical fraction")
        middle.set_yticks([0.1, 0.2, 0.4, 0.7], ["0.1", "0.2", "0.4", "0.7"])
        middle.set_yticks([], minor=True)
        right.set(
            ylabel="share of orders", ylim=(0, 1), title="orders completed by\nthe last isolated symbol"
        )
        charts.legend_below(middle)
        charts.legend_below(right)
    return {"liu-scaling": figure}


@recipe(
    "liu-scaling", item="the transition for p = 5 … 60", quick=Setting(tokens=(5, 10, 28, 60), orders=20),
    paper_setting=Setting(tokens=(5, 7, 10, 14, 20, 28, 40, 60), orders=10_000), draw=_draw_scaling,
    source="beyond the papers", independent="order", cost="two minutes",
    rules=(
        Statement("r_c falls with p", "the critical training data fraction r_c is not a constant",
            "r_c at p = 60 over r_c at p = 10, plain addition; 1 where it is a constant",
            measures.ratio(_critical(60), _critical(10)), most=0.8,
            source="beyond the papers: Liu gives r_c = 0.4 at p = 10", chance=EXACT,
            counter=counters.instead("orders", rows=LARGEST | {"tokens": 10}, of=LARGEST),
            note="r_c is the median fraction over random orders"),
        Statement("r_c falls as ln p / p", "the coupon collector's law, of which large p has the limit",
            "r_c p / ln p at p = 60 over that at p = 28, plain addition; 1 where the law holds",
            measures.ratio(_law(60), _law(28)), least=0.9, most=1.1, chance=EXACT, counter=_one_over_p,
            note="other laws lie in this range too, such as a power p^-0.8: the ratio still falls at p = 60"),
        Statement("the last isolated symbol decides",
            "the representation is complete as soon as no symbol is isolated",
            "share of orders in which the last isolated symbol completes it, p = 60, plain addition",
            measures.share("orders", "np.repeat(last, orders)", **LARGEST), least=0.5, chance=EXACT,
            counter=_of_another_order),
    ),
)  # fmt: skip
def scaling(run: Run) -> Result:
    """The critical training fraction by the number of symbols p, next to ln p / p.

    Notes
    -----
    Each random order of all samples is followed until the samples determine the representation. The table
    "orders" counts orders by the number of these samples. The rules judge, for plain addition, how the median
    fraction depends on p, and whether the last isolated symbol decides.
    """
    setting = run.setting
    parts = []
    for family, modular in FAMILIES.items():
        for p in setting.tokens:
            operation = Operation(p, modulus=p if modular else None)
            part = run.keep(f"{family}-{p}", partial(measure, operation, setting.orders, run.seed(SEED + p)))
            count = len(part["size"])
            parts.append({"family": np.full(count, family), "tokens": np.full(count, p), **part})
    return Result({"orders": evidence.joined(parts)})


def _show_distributions(ax: Axes, rows: Columns) -> None:
    """Draw, for each p, the probability that a training set determines the representation, over its size."""
    tokens = np.unique(rows["tokens"])
    for p, color in zip(tokens, palette.graded_colors(len(tokens)), strict=True):
        own = evidence.where(rows, tokens=p)
        order = np.argsort(own["fraction"])
        passed = np.cumsum(own["orders"][order]) / own["orders"].sum()
        ax.step(own["fraction"][order], passed, where="post", color=color, label=str(p))
    ax.set(xlabel="training data fraction", ylabel="probability of a\nunique representation", xlim=(0, 1))
    ax.set(title="plain addition")
    ax.set_xticks(np.linspace(0, 1, 6))
    charts.legend_below(ax, title="p", handlelength=1.2)


def _show_over_p(ax: Axes, table: Columns, value: Callable[[Columns, float], Interval]) -> None:
    for (family, _), marker in zip(FAMILIES.items(), "os", strict=True):
        own = evidence.where(table, family=family)
        tokens = np.unique(own["tokens"])
        found = [value(evidence.where(own, tokens=p), 0.95) for p in tokens]
        middle, low, high = np.array([(one.estimate, one.low, one.high) for one in found]).T
        bars = np.clip([middle - low, high - middle], 0, None)
        ax.errorbar(tokens, middle, bars, fmt=marker, markersize=4, linewidth=1, label=family)
    ax.set(xlabel="p", xscale="log")
    ax.set_xticks([5, 10, 20, 40, 60], ["5", "10", "20", "40", "60"])
    ax.set_xticks([], minor=True)


# -- groups ------------------------------------------------------------------------------------------------


def some_groups() -> list[FiniteGroup]:
    """Return fifteen finite groups, of orders from 6 to 24, some of which do not commute."""
    cyclic, product = physics.cyclic, physics.theory.direct_product
    return [
        cyclic(6),
        physics.symmetric(3),
        cyclic(8),
        product(cyclic(2), cyclic(4)),
        product(cyclic(2), cyclic(2), cyclic(2)),
        physics.theory.dihedral(4),
        physics.theory.quaternion(),
        cyclic(10),
        physics.theory.dihedral(5),
        cyclic(12),
        physics.theory.dihedral(6),
        physics.theory.alternating(4),
        cyclic(24),
        product(cyclic(2), cyclic(2), cyclic(6)),
        physics.symmetric(4),
    ]


def _draw_groups(setting: int, tables: Tables) -> dict[str, Figure]:
    """Draw the critical fraction of each group with its interval."""
    table = tables["orders"]
    operations = {group.name: Operation(group=group) for group in some_groups()}
    with charts.page(6.4, 4.4) as figure:
        _show_groups(figure.subplots(), table, operations)
    return {"liu-groups": figure}


@recipe(
    "liu-groups", item="the transition for groups", quick=20, paper_setting=10_000, draw=_draw_groups,
    source="Liu, Figure 18 (b)", independent="order", cost="five minutes",
    rules=(
        Number("S_3: critical fraction by deduction, against networks on S_3", "0.5",
            lambda tables, level: critical_fraction(evidence.where(tables["orders"], group="S_3"), level),
            margin=0.02, digits=3),
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
    parts, commuting = [], {}
    for group in some_groups():
        operation = Operation(group=group)
        part = run.keep(group.name, partial(measure, operation, run.setting, run.seed(SEED)))
        commuting[group.name] = operation.commutes
        kept = {name: part[name] for name in ("size", "fraction", "orders")}
        parts.append({"group": np.full(len(part["size"]), group.name), **kept})
    return Result({"orders": evidence.joined(parts)})


def _show_groups(ax: Axes, table: Columns, operations: dict[str, Operation]) -> None:
    """Draw the critical fraction of each group with its 95 % interval, from a table of random orders.

    Groups are drawn in the order of their `operations`, which are given by name.
    """
    place = dict(zip(operations, np.arange(len(operations))[::-1], strict=True))
    for commutes, color, label in (
        (True, palette.FIRST, "commuting; unordered pairs"),
        (False, palette.SECOND, "not commuting; ordered pairs"),
    ):
        names = [name for name, own in operations.items() if own.commutes == commutes]
        found = [critical_fraction(evidence.where(table, group=name), 0.95) for name in names]
        middle, low, high = np.array([(one.estimate, one.low, one.high) for one in found]).T
        y = [place[name] for name in names]
        ax.errorbar(
            middle, y, xerr=[middle - low, high - middle], fmt="o", markersize=5, color=color, label=label
        )
    labels = [re.sub(r"(\w)_(\d+)", r"$\1_{\2}$", name).replace("x", "×") for name in place]
    orders = [f"{label}, {own.tokens}" for label, own in zip(labels, operations.values(), strict=True)]
    ax.set_yticks(list(place.values()), orders)
    ax.set(xlabel=r"critical fraction $r_c$, with 95 % intervals", ylabel="group, and its order")
    ax.set(title="Transitions of finite groups", xlim=(0, None))
    ax.grid(axis="y")
    charts.legend_below(ax)


# -- networks of one cell ----------------------------------------------------------------------------------

Integers = NDArray[np.int64]


def phase_map(rows: Columns) -> Integers:
    """Return the places in `PHASES` of the phases of all networks, int64 (rows, columns, networks).

    `rows` is the table "networks" of a plane, whose cells have equally many networks.
    """
    order = np.lexsort((rows["network"], rows["column"], rows["row"]))
    shape = (int(np.max(rows["row"])) + 1, int(np.max(rows["column"])) + 1, -1)
    return np.array([PHASES.index(name) for name in rows["phase"][order]]).reshape(shape)


def agreement(phases: Any) -> NDArray[np.float64]:
    """Return the share of pairs of networks that have the same phase, over the last axis of `phases`."""
    values = np.asarray(phases)
    pairs = combinations(range(values.shape[-1]), 2)
    return np.mean([values[..., a] == values[..., b] for a, b in pairs], axis=0)


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

    return evidence.jackknife(beyond, tuple(cells.T), level)


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
    with charts.page(11.4, 4.0) as figure:
        *each, last = figure.subplots(1, phases.shape[-1] + 1, sharex=True, sharey=True)
        for k, ax in enumerate(each):
            show_phases(ax, edges, phases[..., k])
            ax.set_title(f"network {k} of each cell")
        _show_agreement(last, edges, agreement(phases))
        for ax in (*each, last):
            ax.set(xscale=x.scale, yscale=y.scale, xlabel=x.label)
        each[0].set_ylabel(y.label)
        name_phases(figure)
    return {"liu-seeds": figure}


def _show_agreement(ax: Axes, edges: list[Any], same: NDArray[np.float64]) -> None:
    """Draw the share of agreeing pairs of each cell, with a scale of colors."""
    drawn = ax.pcolormesh(*edges, same, cmap="Purples", vmin=0, vmax=1)
    ax.set_title("pairs that agree")
    ax.figure.colorbar(drawn, ax=ax, label="share of pairs")


@recipe(
    "liu-seeds", item="Figure 6 (a) of Liu et al., network by network", quick=replace(RATES["quick"], each=2),
    paper_setting=RATES["paper_setting"], draw=_draw,
    source="beyond the papers: the figures of Liu et al. show one color in each cell", independent="cell",
    cost="an hour or two alone; no time after liu-6a, whose networks it shares",
    rules=(
        Statement("one phase", "networks of one cell, which differ in their seed, have the same phase",
            "share of pairs of networks of one cell that have the same phase, mean over the cells",
            lambda tables, level: evidence.mean(agreement(phase_map(tables["networks"])).ravel(), level),
            least=0.9, chance=CHANCE),
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
    rows = train_plane(run, run.setting, family="liu-6a")
    return Result({"networks": rows})
