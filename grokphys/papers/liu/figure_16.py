"""Liu et al., Figure 16 and Appendix L: deduction in groups, and the origin of the effective loss."""

import itertools
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import physics
from analysis.plots.palette import FIRST, REFERENCE, SECOND
from analysis.plots.style import legend_below, style
from analysis.stats.intervals import Interval
from analysis.stats.intervals import mean as mean_of
from grokphys.papers.evidence import Chance, columns_of, exact, mean, shuffled, slope, where
from grokphys.papers.liu.figures_09_to_11 import COMPUTED, CURRICULUM
from grokphys.papers.recipe import Columns, Measure, Result, Run, Statement, Tables, recipe
from physics import EffectiveTheory, LinearNetwork, Operation, closures, random_training_sets, simulate
from physics.seeds import children, parent_seed

Row = dict[str, Any]
Quadruple = tuple[int, int, int, int]

# -- Figure 16 ---------------------------------------------------------------------------------------------


DEDUCE = "parallelograms are needed to deduce a new parallelogram"


def _needed(name: str) -> Measure:
    """Return a `Measure` of whether all links of a chain are needed for its last parallelogram.

    It is 1 if the last parallelogram follows from the whole chain but not from a part of it, and otherwise 0
    or -1. `name` is that of the operation.
    """

    def measure(tables: Tables, level: float) -> Interval:
        follows = where(tables["chains"], operation=name)["follows"].astype(float)
        return exact(follows[0] - follows[1:].max())

    return measure


@partial(Chance, "what follows from the whole chain replaced by what follows without one of its links")
def _one_link_less(tables: Tables, generator: np.random.Generator) -> Tables:
    """Return tables in which one link of each chain is left out, at random, where none should be."""
    rows = tables["chains"]
    follows = np.array(rows["follows"])
    for name in np.unique(rows["operation"]):
        own = np.flatnonzero(rows["operation"] == name)
        follows[own[0]] = follows[generator.choice(own[1:])]
    return {**tables, "chains": {**rows, "follows": follows}}


def _draw_deduction(setting: int, tables: Tables) -> dict[str, Figure]:
    """Draw what follows from random training sets of two groups, C_6 and S_3, over the training fraction."""
    with style(9.6):
        figure = Figure(figsize=(9.6, 4.0))
        for ax, name in zip(figure.subplots(1, 2, sharey=True), ("C_6", "S_3"), strict=True):
            show_deduction(name, where(tables["sets"], operation=name), ax)
    return {"liu-16": figure}


SETS, STARTS = 10_000, 20


@recipe(
    "liu-16",
    paper="Liu",
    item="Figure 16; Appendix H",
    shows="The part of all parallelograms that follows from random training sets of two groups, a mean over "
    f"{SETS} sets of each size. In S_3 three parallelograms give a fourth, and pairs that equal a third pair "
    "equal each other; the orange curve leaves out the second rule.",
    quick=60,
    paper_setting=SETS,
    cost="two minutes",
    rules=tuple(
        Statement(
            words,
            quote,
            "Appendix H.1",
            f"whether the last of the chain follows in {name} from all {links} before it (1 or 0), minus "
            "whether it follows with one of them left out",
            _needed(name),
            chance=COMPUTED,
            counter=_one_link_less,
            least=0.5,
            independent="proof",
            digits=0,
            note="in this chain, in which each parallelogram shares two symbols with the one before it",
        )
        for name, words, links, quote in (
            ("C_7", "commuting", 2, f"for Abelian groups, two {DEDUCE}"),
            ("S_3", "not commuting", 3, f"three {DEDUCE}"),
        )
    ),
    draw=_draw_deduction,
)
def deduction(run: Run) -> Result:
    """Reproduce Figure 16 and Appendix H.1 of Liu et al.: what follows from parallelograms in groups.

    The table "chains" has a row for each chain of parallelograms, whole and without one link. The table
    "sets" has a row for each group and size of random training sets. The rules ask whether every link is
    needed.
    """
    chains = chain(Operation(group=physics.cyclic(7)), 2) + chain(Operation(group=physics.symmetric(3)), 3)
    given: list[Row] = []
    operations = [Operation(group=physics.cyclic(6)), Operation(group=physics.symmetric(3))]
    for operation in operations:
        sizes = range(1, len(operation.samples) + 1)
        for size, stream in zip(sizes, children(1600, range(len(sizes))), strict=True):
            masks = random_training_sets(operation, size, sets=run.setting, seed=stream)
            counts = np.stack([np.bincount(operation.label[mask], minlength=6) for mask in masks])
            permitted = (counts * (counts - 1) // 2).sum(axis=1) / operation.parallelogram_count
            quality = mean_of(closures(operation, masks).quality)
            chained = mean_of(closures(operation, masks, transitive=operation.commutes).quality)
            given.append(
                {"operation": operation.name, "size": size, "fraction": size / len(operation.samples)}
                | {"sets": run.setting, "given": mean_of(permitted).estimate, "implied": quality.estimate}
                | {"implied_low": quality.low, "implied_high": quality.high, "chains_only": chained.estimate}
            )
    return Result({"chains": columns_of(chains), "sets": columns_of(given)})


def chain(operation: Operation, links: int) -> list[Row]:
    """Leave out each parallelogram of a chain in turn, and return whether the last one still follows.

    Every link says that two quotients, or differences, are equal. Two links imply the last parallelogram if
    the operation commutes (Eq. 29 of Liu et al.), and three if it does not (Eqs. 30, 31). There is a row for
    the whole chain, and one for each chain without one link.
    """
    known, last = (_commuting_chain if operation.commutes else _quotient_chain)(operation)
    assert len(known) == links
    rows = []
    for count in range(links, links - 2, -1):
        for kept in itertools.combinations(range(links), count):
            samples = sorted({pair for k in kept for pair in (known[k][:2], known[k][2:])})
            theory = EffectiveTheory(group=operation.group, pairs=samples)
            implied = {
                frozenset((_sample(q[:2], operation), _sample(q[2:], operation)))
                for q in theory.implied_parallelograms.tolist()
            }
            follows = frozenset((_sample(last[:2], operation), _sample(last[2:], operation))) in implied
            rows.append(
                {
                    "operation": operation.name,
                    "known": " ".join(str(known[k]).replace(" ", "") for k in kept),
                    "last": str(last).replace(" ", ""),
                    "follows": follows,
                }
            )
    return rows


def _sample(pair: Any, operation: Operation) -> tuple[int, int]:
    """Return the two symbols of a pair, sorted if the operation commutes."""
    i, j = (int(k) for k in pair)
    return (min(i, j), max(i, j)) if operation.commutes else (i, j)


def _commuting_chain(operation: Operation) -> tuple[list[Quadruple], Quadruple]:
    """Return Eq. 29 of Liu et al. as quadruples: a + d = b + c and c + f = d + e imply a + f = b + e."""
    assert operation.group is not None
    t, inverse = operation.group.table, operation.group.inverses
    a, b, d, f = 1, 0, 2, 4
    c = int(t[t[a, d], inverse[b]])
    e = int(t[t[c, f], inverse[d]])
    return [(a, d, b, c), (c, f, d, e)], (a, f, b, e)


def _quotient_chain(operation: Operation) -> tuple[list[Quadruple], Quadruple]:
    """Return Eqs. 30 and 31 of Liu et al. as quadruples: ad = bc, fc = ed and eh = fg imply ah = bg."""
    assert operation.group is not None
    t, inverse = operation.group.table, operation.group.inverses
    a, b, d, f, h = 1, 2, 3, 4, 0
    quotient = t[inverse[b], a]
    c, g, e = int(t[quotient, d]), int(t[quotient, h]), int(t[f, quotient])
    return [(a, d, b, c), (f, c, e, d), (e, h, f, g)], (a, h, b, g)


def show_deduction(name: str, rows: Columns, ax: Axes) -> None:
    """Draw which fraction of all parallelograms is given and which is implied, over the training fraction.

    `name` is that of the group: "C_6" (cyclic, of order 6) or "S_3" (permutations of three things). `rows`
    has a row for each size of the training set. For S_3 the fraction that follows without transitivity is
    drawn too.
    """
    fraction, given, implied = (rows[column] for column in ("fraction", "given", "implied"))
    ax.plot(fraction, given, color=REFERENCE, linestyle="--", label=r"given, $|P_0(D)|/|P_0|$")
    ax.plot(fraction, implied, label=r"implied, $|P(D)|/|P_0|$")
    ax.fill_between(fraction, given, implied, alpha=0.15, linewidth=0)
    commutes = name.startswith("C")
    if not commutes:
        ax.plot(
            fraction, rows["chains_only"], color=SECOND, linewidth=1.2, label="three give a fourth, alone"
        )
    ax.set(
        xlabel="training data fraction",
        ylabel="part of all parallelograms" if commutes else "",
        title=f"${name[0]}_{name[2:]}$: " + ("linear closure" if commutes else "deduction"),
        xlim=(0, 1),
        ylim=(0, 1.03),
    )
    legend_below(ax)


# -- Appendix L --------------------------------------------------------------------------------------------


def _order(tables: Tables, level: float) -> Interval:
    rows = tables["limits"]
    slow = rows["rate_ratio"] < 0.07
    x, y = (np.log(rows[name][slow]) for name in ("rate_ratio", "largest_distance"))
    return slope(x, y, level, groups=rows["start"][slow])


def _emerges(tables: Tables, level: float) -> Interval:
    rows = tables["energies"]
    slow = rows["rate_ratio"] == rows["rate_ratio"].min()
    gap = abs(rows["internal_energy"] / rows["effective"] - 1)
    return mean(gap[slow], level, groups=rows["start"][slow])


def _draw_emergence(setting: int, tables: Tables) -> dict[str, Figure]:
    """Draw the distance of the coupled flow from its adiabatic limit, and two energies over time."""
    rows, energies = tables["limits"], tables["energies"]
    with style(9.6):
        figure = Figure(figsize=(9.6, 4.0))
        left, right = figure.subplots(1, 2)
        for start in range(setting):
            own = where(rows, start=start)
            left.loglog(own["rate_ratio"], own["largest_distance"], "o-", color=FIRST, alpha=0.5)
        line = own["largest_distance"][-1] * own["rate_ratio"] / own["rate_ratio"][-1]
        left.loglog(own["rate_ratio"], line, color=REFERENCE, linestyle="--", label="slope 1")
        left.set(xlabel=r"$\eta_A/\eta_x$", ylabel="largest distance\nfrom the limit, t ≤ 2")
        legend_below(left)
        ratios = np.unique(energies["rate_ratio"])
        for ratio in (ratios[-1], ratios[-3], ratios[0]):
            own = where(energies, rate_ratio=ratio, start=0)
            label = rf"$\eta_A/\eta_x$ = {ratio:.3g}"
            (drawn,) = right.semilogy(own["time"], own["internal_energy"], label=label)
            right.semilogy(own["time"], own["effective"], color=drawn.get_color(), linestyle=":", linewidth=2)
        right.set(xlabel="time", ylabel="energy")
        right.set(title=r"internal energy (line), $|P_0(D)|\,\ell_0/4$ (dots)")
        legend_below(right)
    return {"liu-L": figure}


@recipe(
    "liu-L",
    paper="Liu",
    item="Appendix L",
    shows="How near a linear network is to its effective loss, by the learning rate η_A of its layer over "
    f"η_x of its embedding: on the left for {STARTS} starts, and on the right for the first of them.",
    quick=3,
    paper_setting=STARTS,
    cost="a minute",
    rules=(
        Statement(
            "adiabatic limit",
            "the quadratic potential ... is time-independent because η_A → 0",
            "Appendix L",
            "slope of the distance to that limit over η_A/η_x below 0.07, as logarithms: 1 is first order",
            _order,
            chance=shuffled("limits", "largest_distance"),
            least=0.9,
            most=1.1,
            independent="start",
        ),
        Statement(
            "effective loss",
            "the total energy of the system is ℓ_0",
            "Appendix L, Eq. 42",
            "mean distance of the internal energy over |P_0(D)| ℓ_0/4 from 1, at the slowest layers",
            _emerges,
            chance="none: both are computed of the same state",
            counter=shuffled("energies", "effective", within="time", among={"rate_ratio": 0.003}),
            most=0.05,
            independent="start",
            digits=3,
        ),
    ),
    draw=_draw_emergence,
)
def emergence(run: Run) -> Result:
    """Reproduce Appendix L of Liu et al.: the flow of a linear network and its adiabatic limit.

    In this limit the layers learn infinitely slowly, so that the inputs move in a constant potential. The
    table "limits" has the largest distance between the flow and this limit, and "energies" the internal
    energy next to the effective loss. The rules judge the order of the distance in the ratio of the rates,
    and how near the energies are.
    """
    theory = EffectiveTheory(6, 2, pairs=sorted(set(CURRICULUM[:6])))
    pairs = theory.pairs
    assert pairs is not None
    limits: list[Row] = []
    flows: list[Row] = []
    for start in range(run.setting):
        base: Any = parent_seed(12).entropy
        rng = np.random.default_rng((base, start))
        labels = rng.standard_normal((11, 3))[pairs.sum(axis=1)]
        state = None
        for ratio in np.geomspace(0.3, 0.003, 7).tolist():
            network = LinearNetwork(labels, pairs=pairs, network_rate=ratio)
            state = network.start(rng) if state is None else state
            A, b, E = network.unpack(state)
            moving = simulate(network, initial=state, steps=200, step_size=0.01, record_every=10)
            limit = network.adiabatic(A, b).solve(E.ravel(), moving.times).reshape(-1, *E.shape)
            _, _, moved = network.unpack(moving.positions[0])
            distance = float(np.abs(moved - limit).max())
            limits.append({"start": start, "rate_ratio": ratio, "largest_distance": distance})
            loss_0 = theory.loss(moved) * np.sum(moved**2, axis=(1, 2))
            internal = moving.observables["internal_energy"][0]
            # Two samples in every class: |P_0(D)|/(2 m) with m = 2.
            effective = loss_0 * theory.parallelogram_count / 4
            flows += [
                {"start": start, "rate_ratio": ratio, "time": t, "internal_energy": u, "effective": v}
                for t, u, v in zip(moving.times.tolist(), internal.tolist(), effective.tolist(), strict=True)
            ]
    return Result({"limits": columns_of(limits), "energies": columns_of(flows)})
