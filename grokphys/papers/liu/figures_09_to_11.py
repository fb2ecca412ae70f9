"""Liu et al., Figures 9 to 11 (Appendices C, E): what an ideal model infers, and what networks reach."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from numpy.typing import NDArray

from analysis.plots.palette import FIRST, REFERENCE, SECOND, SERIES, graded_colors, ink_on
from analysis.plots.style import legend_below, points, style
from analysis.stats.intervals import Interval
from grokphys.papers.counters.builders import replaced
from grokphys.papers.counters.liu import NEVER, one_sample_less
from grokphys.papers.evidence import columns_of, exact, mean, share, shuffled
from grokphys.papers.liu.figures_03_04b_05b import PAPER, QUICK, Fractions, said, train_fractions
from grokphys.papers.liu.figures_04a_05a import DELTA, STRICT, TOKENS, training_sets
from grokphys.papers.recipe import Measure, Number, Printed, Result, Run, Statement, Tables, recipe
from physics import EffectiveTheory, Operation, closures
from physics.seeds import generator as generator_of

COMPUTED = "none: it is derived, not drawn"
CURRICULUM = [(0, 4), (1, 3), (1, 5), (2, 4), (0, 2), (1, 1), (2, 4), (3, 3)]
"""D_1 … D_8 of Appendix C. D_7 repeats D_4."""
EQUATIONS = {"A1": ((0, 2), (1, 1)), "A2": ((0, 3), (1, 2)), "A3": ((1, 3), (2, 2))}
"""Equations of Eq. 20, each with the two samples from which it follows."""
GENERIC = np.array([[-1.6, -0.4], [-0.7, 0.9], [0.5, -0.7], [1.8, 0.6]])
"""Four points without a parallelogram, from which the representations of p = 4 start."""


def ground_state(theory: EffectiveTheory, start: Any) -> NDArray[np.float64]:
    """Return the planar representation (tokens, 2) that the flow of the theory from `start` approaches."""
    return theory.solve(start, [1e6])[0]


def show_parallelograms(E: Any, quadruples: Any, title: str, ax: Axes) -> None:
    """Draw an embedding E (tokens, 2) and its parallelograms E_i + E_j = E_m + E_n.

    `quadruples` lists their tokens (i, j, m, n). A parallelogram with a repeated token is a line.
    """
    for k, (i, j, m, n) in enumerate(quadruples):
        corners = E[[i, m, j, n, i]]
        ax.fill(*corners.T, color=SERIES[k % len(SERIES)], alpha=0.25)
        ax.plot(*corners.T, color=SERIES[k % len(SERIES)], linewidth=1.2)
    colors = graded_colors(len(E))
    ax.scatter(E[:, 0], E[:, 1], s=points(11) ** 2, c=colors, zorder=3)
    for token, ((x, y), color) in enumerate(zip(E, colors, strict=True)):
        ax.annotate(
            str(token), (x, y), ha="center", va="center", fontsize="small", color=ink_on(color), zorder=4
        )
    ax.set_title(title)
    ax.margins(0.15)
    ax.set_aspect("equal", "datalim")
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)


# -- Figure 9 ----------------------------------------------------------------------------------------------


def _freedom(tables: Tables, level: float) -> Interval:
    rows = tables["stages"]
    return exact(rows["n_0"][rows["given"] == 8][0])


def _fewest(tables: Tables, level: float) -> Interval:
    rows = tables["sets"]
    return exact(rows["size"][rows["unique"] > 0].min())


def _implies(given: int, quadruple: Sequence[int]) -> Measure:
    def measure(tables: Tables, level: float) -> Interval:
        rows = tables["parallelograms"]
        goal = {frozenset(quadruple[:2]), frozenset(quadruple[2:])}
        own = [
            {frozenset(q[:2]), frozenset(q[2:])}
            for q in zip(*(rows[k][rows["given"] == given].tolist() for k in "ijmn"), strict=True)
        ]
        return exact(goal in own)

    return measure


@recipe(
    "liu-9",
    paper="Liu",
    item="Figure 9; Appendix C",
    shows="As samples D_1 to D_8 are added, parallelograms form, until all embeddings lie on a line. Colors "
    "only tell parallelograms apart. The overlined RQI is the part of all that follows from the samples.",
    quick=(5, 6),
    paper_setting=(1, 2, 3, 4, 5, 6, 7, 8),
    cost="a few seconds",
    rules=(
        *(
            Statement(
                f"D_1 to D_{given}",
                quote,
                "Appendix C",
                f"whether the parallelogram {q} follows from the first {given} samples, 1 or 0",
                _implies(given, q),
                chance=COMPUTED,
                counter=one_sample_less(CURRICULUM),
                least=0.5,
                independent="proof",
                digits=0,
            )
            for given, q, quote in (
                (4, (0, 5, 2, 3), "which implies that (0, 5, 2, 3) is also a parallelogram"),
                (6, (4, 4, 3, 5), "Now we can derive that 2E_4 = E_3 + E_5"),
            )
        ),
        Statement(
            "all eight",
            "ending up Figure 9(c). This linear structure agrees with the arithmetic structure of R",
            "Appendix C",
            "degrees of freedom n_0 that the eight samples leave; a line has 2",
            _freedom,
            chance=COMPUTED,
            counter=one_sample_less(CURRICULUM),
            least=1.5,
            most=2.5,
            independent="proof",
            digits=0,
        ),
        Number(
            "fewest samples that determine p = 6, of all sets (“we only need 8 training samples”)",
            Printed("8", "Appendix C"),
            _fewest,
            margin=0.5,
            independent="proof",
            digits=0,
            note="not covered, since fewer suffice: the paper's point is the stronger for it",
        ),
    ),
)
def curriculum(run: Run) -> Result:
    """Reproduce Figure 9 of Liu et al.: the parallelograms that follow from growing training sets.

    The operation is the addition of 6 tokens. The table "stages" has a row for each training set of the
    figure, "parallelograms" one for each parallelogram that such a set implies, and "sets" the number of
    training sets of each size that determine the representation.
    """
    stages: dict[str, list[Any]] = {"given": [], "distinct": [], "n_0": [], "rqi_bound": []}
    implied: dict[str, list[Any]] = {name: [] for name in ("given", *"ijmn")}
    start = generator_of(2).standard_normal((6, 2))
    with style(9.6):
        figure = Figure(figsize=(9.6, 3.6))
        for ax, count in zip(figure.subplots(1, 3), (4, 6, 8), strict=True):
            theory = EffectiveTheory(6, pairs=sorted(set(CURRICULUM[:count])))
            found = theory.implied_parallelograms
            total = EffectiveTheory(6).parallelogram_count
            row = (count, len(theory.pairs), theory.ground_state_dimension, len(found) / total)
            for name, value in zip(stages, row, strict=True):
                stages[name].append(value)
            for name, values in zip(implied, ([count] * len(found), *found.T.tolist()), strict=True):
                implied[name] += values
            title = f"$D_1$ to $D_{count}$: $n_0$ = {row[2]}, "
            title += rf"$\overline{{\mathrm{{RQI}}}}$ = {len(found)}/{total}"
            show_parallelograms(ground_state(theory, start), found, title, ax)
    operation = Operation(6)
    sets = []
    for size in run.setting:
        chosen = np.array(list(itertools.combinations(range(len(operation.samples)), size)))
        masks = np.zeros((len(chosen), len(operation.samples)), bool)
        np.put_along_axis(masks, chosen, True, axis=1)
        unique = closures(operation, masks).complete.sum()
        sets.append({"size": size, "sets": len(masks), "unique": int(unique)})
    return Result({"stages": stages, "parallelograms": implied, "sets": columns_of(sets)}, {"liu-9": figure})


# -- Figure 10 ---------------------------------------------------------------------------------------------


BOUND = {"rqi": "rqi_bound", "predicted_accuracy": "accuracy_bound"}
"""Columns of Figure 10, and those that hold their bounds."""
TOLERANCES = (
    (STRICT, "_strict", "this δ was added after networks had been judged at δ = 0.1"),
    (DELTA, "", "the tolerance to which the published code amounts; Appendix E says δ = 0.01"),
)
"""Tolerances of Figure 10, the ends of the names of their columns, and what to say of them."""
BOUND_ONE = {"rqi": (797, {"_strict": 94, "": 54}), "predicted_accuracy": (217, {"_strict": 99, "": 88})}
"""For each column: how many networks have the bound 1, and the percentage of the others within theirs."""


def _bound_one(name: str, end: str) -> str:
    count, others = BOUND_ONE[name]
    return f"{count} networks have the bound 1, which nothing exceeds; of others {others[end]} % are within"


def _within(name: str, end: str) -> Measure:
    def measure(tables: Tables, level: float) -> Interval:
        rows = tables["networks"]
        return share(rows[name + end] <= rows[BOUND[name]] + 1e-6, level)

    return measure


def _far(end: str) -> Measure:
    def measure(tables: Tables, level: float) -> Interval:
        rows = tables["networks"]
        some = rows["rqi_bound"] > 0
        return mean((rows["rqi_bound"] - rows[f"rqi{end}"])[some], level)

    return measure


def _smallest_whole(tables: Tables, level: float) -> Interval:
    rows = tables["sets"]
    return exact(rows["fraction"][rows["unique"] > 0].min())


def _draw_bounds(setting: Fractions, tables: Tables) -> dict[str, Figure]:
    """Draw quality and predicted accuracy, and their bounds, over the training fraction and each other.

    They have two colors, for the tolerance of Appendix E and for the wider one.
    """
    rows = tables["networks"]
    look: Any = {"s": 7, "alpha": 0.5, "linewidths": 0}
    with style(10.4):
        figure = Figure(figsize=(10.4, 6.6))
        figure.suptitle(f"p = 10: {said(setting)}")
        names = (("rqi", "RQI"), ("predicted_accuracy", r"$\widehat{Acc}$"))
        lines = figure.subplots(2, 3)
        for line, (name, label) in zip(lines, names, strict=True):
            bound = rows[BOUND[name]]
            line[1].scatter(rows["fraction"], bound, color=REFERENCE, **look)
            for (delta, end, _), color in zip(reversed(TOLERANCES), (SECOND, FIRST), strict=True):
                for ax, x in ((line[0], rows["fraction"]), (line[2], bound)):
                    ax.scatter(x, rows[name + end], color=color, label=f"δ = {delta}", **look)
            line[2].plot([0, 1], [0, 1], color=REFERENCE, linestyle="--", linewidth=1, label="value = bound")
            line[2].set(xlabel=f"bound of {label}", xlim=(-0.03, 1.03))
            for ax, text in zip(line, (label, f"bound of {label}", label), strict=True):
                ax.set(ylabel=text, ylim=(-0.03, 1.03))
            for ax in line[:2]:
                ax.set(xlabel="training data fraction", xlim=(0, 1.02))
        for ax in lines[1, ::2]:
            legend_below(ax)
    return {"liu-10": figure}


@recipe(
    "liu-10",
    paper="Liu",
    item="Figure 10; Appendix E",
    shows="Quality and accuracy of trained networks, and the bounds that an ideal model sets.",
    quick=QUICK,
    paper_setting=PAPER,
    cost="an hour alone; no time after liu-3, whose networks it shares",
    rules=(
        *(
            Statement(
                f"bound of {words}, δ = {delta}",
                quote,
                "Appendix E",
                "share of networks that are not above the bound",
                _within(name, end),
                chance=shuffled("networks", BOUND[name]),
                least=0.95,
                note=f"{note}; {_bound_one(name, end)}",
            )
            for delta, end, note in TOLERANCES
            for name, words, quote in (
                ("rqi", "RQI", "Alexander principle sets an upper bound for RQI"),
                ("predicted_accuracy", "accuracy", "and sets an upper bound for the predicted accuracy"),
            )
        ),
        *(
            Statement(
                f"far from ideal, δ = {delta}",
                "We find the trained models are usually far from being ideal",
                "Appendix E",
                "mean of the bound minus the RQI, where the bound is above 0",
                _far(end),
                chance="none: with bounds in another order, their mean distance is the same",
                counter=replaced("networks", **{f"rqi{end}": "rqi_bound"}),
                least=0.1,
                note=f"the mean decides: fewer than half of the networks are 0.1 below their bound; {note}",
            )
            for delta, end, note in TOLERANCES
        ),
        Statement(
            "small sets",
            "it is possible to have the bound of RQI = 1 only with < 40% training data",
            "Appendix E",
            "smallest fraction of random training sets with bound 1",
            _smallest_whole,
            chance="none: that it exists is shown by one example",
            counter=NEVER,
            most=0.4,
            independent="training set",
            note="of 10 000 random sets of each size; ten chosen pairs, 0.18 of the data, suffice",
        ),
    ),
    draw=_draw_bounds,
)
def bounds(run: Run) -> Result:
    """Reproduce Figure 10 of Liu et al.: RQI and predicted accuracy of networks, and bounds by their data.

    RQI is the representation quality index. The toy networks, on addition of 10 tokens, are those of Figure
    3. Parallelograms hold up to a tolerance δ of 0.01 or 0.1. The rules ask how many networks stay within
    the bounds, how far below the bound their RQI is, and how small a training set can be that allows an RQI
    of 1.
    """
    rows = train_fractions(run, family="liu-3")
    operation = Operation(TOKENS)
    masks = training_sets(operation, range(10, 31), 200 if run.budget == "quick" else 10_000, seed=1010)
    sizes = np.array(list(masks))
    sets = {
        "size": sizes,
        "fraction": sizes / len(operation.samples),
        "sets": np.array([len(one) for one in masks.values()]),
        "unique": np.array([int(closures(operation, one).complete.sum()) for one in masks.values()]),
    }
    return Result({"networks": rows, "sets": sets})


# -- Figure 11 ---------------------------------------------------------------------------------------------


def _descent(tables: Tables, level: float) -> Interval:
    """Return the share of nested pairs of sets of equations in which the smaller leaves no less freedom."""
    rows = tables["subsets"]
    names = [set(text.split()) - {"none"} for text in rows["equations"].tolist()]
    freedom = rows["degrees_of_freedom"]
    pairs = [(a, b) for a, b in itertools.permutations(range(len(names)), 2) if names[b] < names[a]]
    return exact(np.mean([freedom[a] <= freedom[b] for a, b in pairs]))


@recipe(
    "liu-11",
    paper="Liu",
    item="Figure 11; Appendix E",
    shows="The possible representations of p = 4, and how they contain one another.",
    quick=4,
    paper_setting=4,
    cost="a second",
    rules=(
        Statement(
            "hierarchy",
            "R should be a descendant of R*, and n(R*) <= n(R)",
            "Appendix E",
            "share of parents and children of which the child has at least as many degrees of freedom",
            _descent,
            chance=shuffled("subsets", "degrees_of_freedom"),
            least=0.999,
            independent="proof",
        ),
    ),
)
def hierarchy(run: Run) -> Result:
    """Reproduce Figure 11 of Liu et al.: subsets of the three equations of 4 tokens, and what they imply.

    Nothing is trained. The table "subsets" has a row for each subset. The rule asks whether a representation
    that satisfies more equations has no more degrees of freedom.
    """
    rows: dict[str, list[Any]] = {"equations": [], "implied": [], "degrees_of_freedom": []}
    theories: dict[tuple[str, ...], EffectiveTheory | None] = {}
    names = {tuple(sum(pairs, ())): name for name, pairs in EQUATIONS.items()}
    for size in range(3, -1, -1):
        for chosen in itertools.combinations(EQUATIONS, size):
            theory = EffectiveTheory(4, pairs=sum((EQUATIONS[a] for a in chosen), ())) if chosen else None
            implied = tuple(names[tuple(q)] for q in theory.implied_parallelograms.tolist()) if theory else ()
            freedom = theory.ground_state_dimension if theory else 4
            for name, value in zip(rows, (" ".join(chosen), " ".join(implied), freedom), strict=True):
                rows[name].append(value or "none")
            theories.setdefault(implied, theory)
    with style(7.4):
        figure = Figure(figsize=(7.4, 5.6))
        figure.set_layout_engine("none")
        show_hierarchy(theories, figure)
    return Result({"subsets": rows}, {"liu-11": figure})


def show_hierarchy(theories: dict[tuple[str, ...], EffectiveTheory | None], figure: Figure) -> None:
    """Draw each representation in a separate frame, with arrows to those that satisfy fewer equations.

    `theories` holds the theory by the equations that hold, or None if none does. The figure must not have a
    layout engine.
    """
    levels: dict[int, list[tuple[str, ...]]] = {}
    for implied, theory in theories.items():
        levels.setdefault(theory.ground_state_dimension if theory else 4, []).append(implied)
    place: dict[tuple[str, ...], tuple[float, float]] = {}
    for row, (freedom, members) in enumerate(sorted(levels.items())):
        for column, implied in enumerate(members):
            x, y = (column + 0.5) / len(members) if len(members) > 1 else 0.5, 0.86 - 0.34 * row
            place[implied] = (x, y)
            ax = figure.add_axes((x - 0.13, y - 0.11, 0.26, 0.19))
            theory = theories[implied]
            E = GENERIC if theory is None else ground_state(theory, GENERIC)
            show_parallelograms(E, [] if theory is None else theory.implied_parallelograms, "", ax)
            figure.text(x, y + 0.09, f"{{{', '.join(implied)}}}, $n_0$ = {freedom}", ha="center")
    for parent, child in itertools.permutations(place, 2):
        if set(child) < set(parent) and not any(set(child) < set(a) < set(parent) for a in place):
            (x, y), (u, v) = place[parent], place[child]
            arrow: Any = {"arrowstyle": "-|>", "mutation_scale": 12, "color": REFERENCE, "linewidth": 1}
            figure.add_artist(FancyArrowPatch((x, y - 0.115), (u, v + 0.125), **arrow))
