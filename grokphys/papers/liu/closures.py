"""Liu et al., Figures 9 to 11 (Appendices C, E): what an ideal model infers, and what networks reach.

Liu et al., Figure 16 and Appendix L: deduction in groups, and the origin of the effective loss.

Liu et al., Figures 12, 17 and 18: networks on addition of 4 tokens, and on S_3, permutations of three.
"""

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from numpy.typing import NDArray
from sklearn.decomposition import PCA

import physics
from analysis.plots import palette
from analysis.stats import Interval
from analysis.stats import mean as mean_of
from grokphys.papers import charts, counters, measures
from grokphys.papers.evidence import Columns, Measure, Tables, columns_of, joined, mean, table_of, where
from grokphys.papers.liu import transition
from grokphys.papers.recipe import Number, Result, Run, Setting, Statement, recipe
from nets import GroupDecoder, ToyAddition, train
from physics import EffectiveTheory, Operation, closures, representation_quality, simulate
from physics.seeds import children, generator

RESAMPLES = 10_000
TOGETHER = "corrected after the run: two networks with the same start are resampled together"
"""Note on rules for the networks of two settings."""


def best_passes(tables: Tables, level: float) -> Interval:
    """Return the training fraction from which the best network of each size reaches an RQI of 0.95.

    The fraction is that of a jump, as in `half_rise`. Its interval resamples the networks of each size, of
    which none passes with the probability (1 - k/n)^n if k of n passed. A jackknife would have no width: the
    best of several networks hardly ever depends on one of them. RQI is the representation quality index. The
    table "networks" needs the columns "fraction" and "steps_to_rqi" (infinite if never).
    """
    rows = tables["networks"]
    places, own = np.unique(rows["fraction"], return_inverse=True)
    count = np.bincount(own)
    passed = np.bincount(own, np.isfinite(rows["steps_to_rqi"]))
    none = (passed == 0).astype(float)
    if not 0 < none.sum() < len(none):
        return Interval(np.nan, np.nan, np.nan, len(own))
    drawn = np.random.default_rng(0).random((RESAMPLES, len(places))) < (1 - passed / count) ** count
    jumps = transition.jump(places, np.vstack([none, drawn]))
    low, high = np.quantile(jumps[1:], [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(jumps[0]), float(low), float(high), len(own))


ENOUGH = 0.4
"""Fraction of the data below which, by Appendix E, a set can determine the representation."""
NEVER = counters.drawn(
    f"no set of less than {100 * ENOUGH:g} % of the data that has the bound 1",
    "sets",
    unique=lambda rows, _: np.where(rows["fraction"] < ENOUGH, 0, rows["unique"]),
)


def implied(samples: Sequence[tuple[int, int]], counts: Sequence[int]) -> dict[str, Any]:
    """Return the tables "stages" and "parallelograms" of Figure 9, for the first samples of six tokens."""
    stages, found = [], []
    for given in counts:
        theory = EffectiveTheory(6, pairs=sorted(set(samples[:given])))
        quadruples = theory.implied_parallelograms.tolist()
        stages.append(
            {"given": given, "distinct": len(set(samples[:given])), "n_0": theory.ground_state_dimension}
            | {"rqi_bound": len(quadruples) / EffectiveTheory(6).parallelogram_count}
        )
        found += [{"given": given} | dict(zip("ijmn", one, strict=True)) for one in quadruples]
    return {"stages": columns_of(stages), "parallelograms": columns_of(found)}


@partial(counters.Chance, "what follows without the last of the samples")
def one_sample_less(tables: Any, _: np.random.Generator) -> Any:
    """Return the tables of Figure 9 without the last of the first 4, 6 or 8 samples."""
    less = implied(CURRICULUM, (3, 5, 7))
    for rows in less.values():
        rows["given"] += 1
    return {**tables, **less}


# -- Figures 9 to 11 ---------------------------------------------------------------------------------------

COMPUTED = "none: it is derived, not drawn"
CURRICULUM = [(0, 4), (1, 3), (1, 5), (2, 4), (0, 2), (1, 1), (2, 4), (3, 3)]
"""D_1 … D_8 of Appendix C. D_7 repeats D_4."""
EQUATIONS = {"A1": ((0, 2), (1, 1)), "A2": ((0, 3), (1, 2)), "A3": ((1, 3), (2, 2))}
"""Equations of Eq. 20, each with the two samples from which it follows."""
GENERIC = np.array([[-1.6, -0.4], [-0.7, 0.9], [0.5, -0.7], [1.8, 0.6]])
"""Four points without a parallelogram, from which the representations of p = 4 start."""


def show_parallelograms(theory: EffectiveTheory | None, start: Any, title: str, ax: Axes) -> None:
    """Draw the embedding (tokens, 2) that the flow of a theory from `start` approaches, and what it implies.

    A parallelogram with a repeated token is a line. Without a theory, the embedding stays at its start.
    """
    E = start if theory is None else theory.solve(start, [1e6])[0]
    for k, (i, j, m, n) in enumerate([] if theory is None else theory.implied_parallelograms):
        corners, series = E[[i, m, j, n, i]], palette.SERIES[k % len(palette.SERIES)]
        ax.fill(*corners.T, color=series, alpha=0.25)
        ax.plot(*corners.T, color=series, linewidth=1.2)
    colors = palette.graded_colors(len(E))
    ax.scatter(E[:, 0], E[:, 1], s=charts.points(11) ** 2, c=colors, zorder=3)
    for token, (place, color) in enumerate(zip(E, colors, strict=True)):
        look: Any = {"ha": "center", "va": "center", "fontsize": "small", "zorder": 4}
        ax.annotate(str(token), place, color=palette.ink_on(color), **look)
    ax.margins(0.15)
    ax.set(xticks=[], yticks=[], title=title, aspect="equal", adjustable="datalim")
    ax.spines[:].set_visible(False)


# -- Figure 9 ----------------------------------------------------------------------------------------------


def _implies(given: int, quadruple: Sequence[int]) -> Measure:
    """Return a measure of whether a parallelogram follows from the first samples, 1 or 0."""

    def follows(tables: Tables) -> bool:
        rows = where(tables["parallelograms"], given=given)
        return sorted(quadruple) in np.sort([rows[k] for k in "ijmn"], axis=0).T.tolist()

    return measures.exact(follows)


@recipe(
    "liu-9", item="Figure 9; Appendix C", quick=(5, 6), paper_setting=(1, 2, 3, 4, 5, 6, 7, 8),
    source="Appendix C", cost="a few seconds",
    rules=(
        *(
            Statement(f"D_1 to D_{given}", quote,
                f"whether the parallelogram {q} follows from the first {given} samples, 1 or 0",
                _implies(given, q), least=0.5, digits=0, independent="proof", chance=COMPUTED,
                counter=one_sample_less)
            for given, q, quote in (
                (4, (0, 5, 2, 3), "which implies that (0, 5, 2, 3) is also a parallelogram"),
                (6, (4, 4, 3, 5), "Now we can derive that 2E_4 = E_3 + E_5"),
            )
        ),
        Statement("all eight",
            "ending up Figure 9(c). This linear structure agrees with the arithmetic structure of R",
            "degrees of freedom n_0 that the eight samples leave; a line has 2",
            measures.exact(lambda tables: where(tables["stages"], given=8)["n_0"][0]), least=1.5, most=2.5,
            digits=0, independent="proof", chance=COMPUTED, counter=one_sample_less),
        Number("fewest samples that determine p = 6, of all sets (“we only need 8 training samples”)", "8",
            measures.exact(lambda tables: tables["sets"]["size"][tables["sets"]["unique"] > 0].min()),
            margin=0.5, digits=0, independent="proof",
            note="not covered, since fewer suffice: the paper's point is the stronger for it"),
    ),
)  # fmt: skip
def curriculum(run: Run) -> Result:
    """As samples D_1 to D_8 are added, parallelograms form, until all embeddings lie on a line.

    Colors only tell parallelograms apart. The overlined RQI is the part of all that follows from the samples.

    Notes
    -----
    The operation is the addition of 6 tokens. The table "stages" has a row for each training set of the
    figure, "parallelograms" one for each parallelogram that such a set implies, and "sets" the number of
    training sets of each size that determine the representation.
    """
    tables = implied(CURRICULUM, (4, 6, 8))
    start = generator(run.seed(2)).standard_normal((6, 2))
    total = EffectiveTheory(6).parallelogram_count
    with charts.panels(9.6, 3.6, 1, 3) as (figure, axes):
        for ax, count in zip(axes, (4, 6, 8), strict=True):
            theory = EffectiveTheory(6, pairs=sorted(set(CURRICULUM[:count])))
            quality = rf"$\overline{{\mathrm{{RQI}}}}$ = {len(theory.implied_parallelograms)}/{total}"
            title = rf"$D_1$ to $D_{count}$: $n_0$ = {theory.ground_state_dimension}, {quality}"
            show_parallelograms(theory, start, title, ax)
    sets = []
    for size in run.setting:
        chosen = np.array(list(itertools.combinations(range(21), size)))  # of all 21 samples
        unique = closures(Operation(6), (chosen[:, :, None] == np.arange(21)).any(axis=1)).complete.sum()
        sets.append({"size": size, "sets": len(chosen), "unique": unique})
    return Result(tables | {"sets": columns_of(sets)}, {"liu-9": figure})


# -- Figure 10 ---------------------------------------------------------------------------------------------


BOUND = {"rqi": "rqi_bound", "predicted_accuracy": "accuracy_bound"}
"""Columns of Figure 10, and those that hold their bounds."""
LABELS = "RQI", r"$\widehat{Acc}$"
TOLERANCES = (
    (transition.STRICT, "_strict", "this δ was added after networks had been judged at δ = 0.1"),
    (transition.DELTA, "", "the tolerance to which the published code amounts; Appendix E says δ = 0.01"),
)
"""Tolerances of Figure 10, the ends of the names of their columns, and what to say of them."""
BOUND_ONE = {"rqi": (797, {"_strict": 94, "": 54}), "predicted_accuracy": (217, {"_strict": 99, "": 88})}
"""For each column: how many networks have the bound 1, and the percentage of the others within theirs."""


def _bound_one(name: str, end: str) -> str:
    count, others = BOUND_ONE[name]
    return f"{count} networks have the bound 1, which nothing exceeds; of others {others[end]} % are within"


def _draw_bounds(setting: Setting, tables: Tables, *lines: Any) -> None:
    """Draw quality and predicted accuracy, and their bounds, over the training fraction and each other.

    They have two colors, for the tolerance of Appendix E and for the wider one.
    """
    rows, fraction = tables["networks"], transition.FRACTION
    look: Any = {"s": 7, "alpha": 0.5, "linewidths": 0}
    sides: Any = {"xlim": (-0.03, 1.03), "ylim": (-0.03, 1.03), "legend": False}
    lines[0][0].figure.suptitle(f"p = 10: {transition.said(setting)}")
    for (left, middle, right), (name, bound), label in zip(lines, BOUND.items(), LABELS, strict=True):
        for (delta, end, _), color in zip(TOLERANCES[::-1], (palette.SECOND, palette.FIRST), strict=True):
            for ax, x in ((left, "fraction"), (right, bound)):
                ax.scatter(rows[x], rows[name + end], color=color, label=f"δ = {delta}", **look)
        middle.scatter(rows["fraction"], rows[bound], color=palette.REFERENCE, **look)
        right.plot([0, 1], [0, 1], "--", color=palette.REFERENCE, linewidth=1, label="value = bound")
        words = f"bound of {label}"
        charts.label(left, fraction, label, **sides)
        charts.label(middle, fraction, words, **sides)
        charts.label(right, words, label, **sides)
    for ax in lines[1][::2]:
        charts.legend_below(ax)


@recipe(
    "liu-10", item="Figure 10; Appendix E", quick=transition.QUICK, paper_setting=transition.PAPER,
    fidelity=transition.FIDELITY,
    draw=_draw_bounds, panels=(10.4, 6.6, 2, 3), source="Appendix E",
    cost="an hour alone; no time after liu-3, whose networks it shares",
    rules=(
        *(
            Statement(f"bound of {words}, δ = {delta}", quote,
                "share of networks that are not above the bound",
                measures.share("networks", f"{name + end} <= {BOUND[name]} + 1e-6"), least=0.95,
                chance=counters.shuffled("networks", BOUND[name]), note=f"{note}; {_bound_one(name, end)}")
            for delta, end, note in TOLERANCES
            for name, words, quote in (
                ("rqi", "RQI", "Alexander principle sets an upper bound for RQI"),
                ("predicted_accuracy", "accuracy", "and sets an upper bound for the predicted accuracy"),
            )
        ),
        *(
            Statement(f"far from ideal, δ = {delta}",
                "We find the trained models are usually far from being ideal",
                "mean of the bound minus the RQI, where the bound is above 0",
                measures.mean("networks", f"rqi_bound - rqi{end}", among="rqi_bound > 0"), least=0.1,
                chance="none: with bounds in another order, their mean distance is the same",
                counter=counters.replaced("networks", **{f"rqi{end}": "rqi_bound"}),
                note=f"the mean decides: fewer than half of the networks are 0.1 below their bound; {note}")
            for delta, end, note in TOLERANCES
        ),
        Statement("small sets", "it is possible to have the bound of RQI = 1 only with < 40% training data",
            "smallest fraction of random training sets with bound 1",
            measures.exact(lambda tables: tables["sets"]["fraction"][tables["sets"]["unique"] > 0].min()),
            most=0.4, independent="training set", chance="none: that it exists is shown by one example",
            counter=NEVER,
            note="of 10 000 random sets of each size; ten chosen pairs, 0.18 of the data, suffice"),
    ),
)  # fmt: skip
def bounds(run: Run) -> Result:
    """Quality and accuracy of trained networks, and the bounds that an ideal model sets.

    Notes
    -----
    RQI is the representation quality index. The toy networks, on addition of 10 tokens, are those of Figure
    3. Parallelograms hold up to a tolerance δ of 0.01 or 0.1. The rules ask how many networks stay within
    the bounds, how far below the bound their RQI is, and how small a training set can be that allows an RQI
    of 1.
    """
    rows = transition.train_fractions(run, family="liu-3")
    operation = Operation(transition.TOKENS)
    count = 200 if run.budget == "quick" else 10_000
    sets = transition.unique_sets(operation, range(10, 31), count, run.seed(1010))
    return Result({"networks": rows, "sets": sets})


# -- Figure 11 ---------------------------------------------------------------------------------------------


def _descent(tables: Tables) -> Any:
    """Return the share of nested pairs of sets of equations in which the smaller leaves no less freedom."""
    rows = tables["subsets"]
    names = [set(text.split()) - {"none"} for text in rows["equations"].tolist()]
    freedom = rows["degrees_of_freedom"]
    pairs = [(a, b) for a, b in itertools.permutations(range(len(names)), 2) if names[b] < names[a]]
    return np.mean([freedom[a] <= freedom[b] for a, b in pairs])


@recipe(
    "liu-11", item="Figure 11; Appendix E", quick=4, paper_setting=4, source="Appendix E",
    independent="proof", cost="a second",
    rules=(
        Statement("hierarchy", "R should be a descendant of R*, and n(R*) <= n(R)",
            "share of parents and children of which the child has at least as many degrees of freedom",
            measures.exact(_descent), least=0.999, chance=counters.shuffled("subsets", "degrees_of_freedom")),
    ),
)  # fmt: skip
def hierarchy(run: Run) -> Result:
    """The possible representations of p = 4, and how they contain one another.

    Notes
    -----
    Nothing is trained. The table "subsets" has a row for each subset. The rule asks whether a representation
    that satisfies more equations has no more degrees of freedom.
    """
    rows = []
    theories: dict[tuple[str, ...], EffectiveTheory | None] = {}
    names = {tuple(sum(pairs, ())): name for name, pairs in EQUATIONS.items()}
    for size in range(3, -1, -1):
        for chosen in itertools.combinations(EQUATIONS, size):
            theory = EffectiveTheory(4, pairs=sum((EQUATIONS[a] for a in chosen), ())) if chosen else None
            implied = tuple(names[tuple(q)] for q in theory.implied_parallelograms.tolist()) if theory else ()
            freedom = theory.ground_state_dimension if theory else 4
            words = {"equations": " ".join(chosen) or "none", "implied": " ".join(implied) or "none"}
            rows.append(words | {"degrees_of_freedom": freedom})
            theories.setdefault(implied, theory)
    with charts.page(7.4, 5.6) as figure:
        figure.set_layout_engine("none")
        show_hierarchy(theories, figure)
    return Result({"subsets": columns_of(rows)}, {"liu-11": figure})


def show_hierarchy(theories: dict[tuple[str, ...], EffectiveTheory | None], figure: Figure) -> None:
    """Draw each representation in a separate frame, with arrows to those that satisfy fewer equations.

    `theories` holds the theory by the equations that hold, or None if none does: all, one, or no equation.
    The figure must not have a layout engine.
    """
    places = [(0.5, 0.86), *((x / 6, 0.52) for x in (1, 3, 5)), (0.5, 0.18)]
    for (x, y), (implied, theory) in zip(places, theories.items(), strict=True):
        show_parallelograms(theory, GENERIC, "", figure.add_axes((x - 0.13, y - 0.11, 0.26, 0.19)))
        freedom = theory.ground_state_dimension if theory else 4
        figure.text(x, y + 0.09, f"{{{', '.join(implied)}}}, $n_0$ = {freedom}", ha="center")
    arrow: Any = {"arrowstyle": "-|>", "mutation_scale": 12, "color": palette.REFERENCE, "linewidth": 1}
    for (x, y), (u, v) in [
        *itertools.product(places[:1], places[1:4]),
        *itertools.product(places[1:4], places[4:]),
    ]:
        figure.add_artist(FancyArrowPatch((x, y - 0.115), (u, v + 0.125), **arrow))


# -- Figure 16 ---------------------------------------------------------------------------------------------

DEDUCE = "parallelograms are needed to deduce a new parallelogram"


def _needed(name: str, tables: Tables) -> float:
    """Return 1 if the last of a chain follows from the whole but from no part of it, otherwise 0 or -1."""
    follows = where(tables["chains"], operation=name)["follows"].astype(float)
    return float(follows[0] - follows[1:].max())


LESS = "what follows from the whole chain replaced by what follows without one of its links"


@partial(counters.changed, LESS, "chains")
def _one_link_less(rows: Any, rng: np.random.Generator) -> Any:
    """Return what follows if one link of each chain is left out, at random, where none should be."""
    follows = np.array(rows["follows"])
    for name in np.unique(rows["operation"]):
        own = np.flatnonzero(rows["operation"] == name)
        follows[own[0]] = follows[rng.choice(own[1:])]
    return {"follows": follows}


def _draw_deduction(setting: int, tables: Tables, *axes: Any) -> None:
    """Draw which fraction of all parallelograms is given and which is implied, over the training fraction.

    The groups are C_6 (cyclic, of order 6) and S_3 (permutations of three things). For S_3 the fraction that
    follows without transitivity is drawn too.
    """
    for ax, name, words in zip(axes, ("C_6", "S_3"), ("linear closure", "deduction"), strict=True):
        rows = where(tables["sets"], operation=name)
        fraction, given, implied = (rows[column] for column in ("fraction", "given", "implied"))
        ax.plot(fraction, given, color=palette.REFERENCE, linestyle="--", label=r"given, $|P_0(D)|/|P_0|$")
        ax.plot(fraction, implied, label=r"implied, $|P(D)|/|P_0|$")
        ax.fill_between(fraction, given, implied, alpha=0.15, linewidth=0)
        if name == "S_3":
            alone: Any = {"color": palette.SECOND, "linewidth": 1.2, "label": "three give a fourth, alone"}
            ax.plot(fraction, rows["chains_only"], **alone)
        y = "part of all parallelograms"
        charts.label(ax, "training data fraction", y, f"${name}$: {words}", xlim=(0, 1), ylim=(0, 1.03))


@recipe(
    "liu-16", item="Figure 16; Appendix H", quick=60, paper_setting=10_000, draw=_draw_deduction,
    panels=(9.6, 4.0, 1, 2), source="Appendix H.1", independent="proof",
    shows="The part of all parallelograms that follows from random training sets of two groups, a mean "
    "over 10000 sets of each size. In S_3 three parallelograms give a fourth, and pairs that equal a "
    "third pair equal each other; the orange curve leaves out the second rule.",
    cost="two minutes",
    rules=tuple(
        Statement(words, quote,
            f"whether the last of the chain follows in {name} from all {links} before it (1 or 0), minus "
            "whether it follows with one of them left out",
            measures.exact(partial(_needed, name)), least=0.5, digits=0, chance=COMPUTED,
            counter=_one_link_less,
            note="in this chain, in which each parallelogram shares two symbols with the one before it")
        for name, words, links, quote in (
            ("C_7", "commuting", 2, f"for Abelian groups, two {DEDUCE}"),
            ("S_3", "not commuting", 3, f"three {DEDUCE}"),
        )
    ),
)  # fmt: skip
def deduction(run: Run) -> Result:
    """Reproduce Figure 16 and Appendix H.1 of Liu et al.: what follows from parallelograms in groups.

    The table "chains" has a row for each chain of parallelograms, whole and without one link. The table
    "sets" has a row for each group and size of random training sets. The rules ask whether every link is
    needed.
    """
    chains = chain(Operation(group=physics.cyclic(7))) + chain(Operation(group=physics.symmetric(3)))
    given: list[dict[str, Any]] = []
    operations = [Operation(group=physics.cyclic(6)), Operation(group=physics.symmetric(3))]
    for operation in operations:
        sizes = range(1, len(operation.samples) + 1)
        for size, stream in zip(sizes, children(run.seed(1600), range(len(sizes))), strict=True):
            masks = physics.random_training_sets(operation, size, sets=run.setting, seed=stream)
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


def chain(operation: Operation) -> list[dict[str, Any]]:
    """Leave out each parallelogram of a chain in turn, and return whether the last one still follows.

    Every link says that two quotients, or differences, are equal. Two links imply the last parallelogram if
    the operation commutes (Eq. 29 of Liu et al.), and three if it does not (Eqs. 30, 31). There is a row for
    the whole chain, and one for each chain without one link.
    """
    known, last = _chain_of(operation)
    sides = lambda q: {tuple(sorted(side) if operation.commutes else side) for side in (q[:2], q[2:])}  # noqa: E731
    rows = []
    for links in (known, *itertools.combinations(known, len(known) - 1)):
        samples = sorted({side for link in links for side in (link[:2], link[2:])})
        theory = EffectiveTheory(group=operation.group, pairs=samples)
        follows = sides(last) in [sides(q) for q in theory.implied_parallelograms.tolist()]
        words, end = (" ".join(str(q).replace(" ", "") for q in each) for each in (links, [last]))
        rows.append({"operation": operation.name, "known": words, "last": end, "follows": follows})
    return rows


def _chain_of(operation: Operation) -> tuple[list[tuple[int, ...]], tuple[int, ...]]:
    """Return the equations of Liu et al. as quadruples: those that are known, and the one that follows.

    By Eq. 29, a + d = b + c and c + f = d + e imply a + f = b + e if the operation commutes. If it does not,
    by Eqs. 30 and 31, ad = bc, fc = ed and eh = fg imply ah = bg.
    """
    assert operation.group is not None
    t, inverse = operation.group.table.tolist(), operation.group.inverses.tolist()
    if operation.commutes:
        a, b, d, f = 1, 0, 2, 4
        c = t[t[a][d]][inverse[b]]
        e = t[t[c][f]][inverse[d]]
        return [(a, d, b, c), (c, f, d, e)], (a, f, b, e)
    a, b, d, f, h = 1, 2, 3, 4, 0
    quotient = t[inverse[b]][a]
    c, g, e = t[quotient][d], t[quotient][h], t[f][quotient]
    return [(a, d, b, c), (f, c, e, d), (e, h, f, g)], (a, h, b, g)


# -- Appendix L --------------------------------------------------------------------------------------------


def _draw_emergence(setting: int, tables: Tables, left: Any, right: Any) -> None:
    """Draw the distance of the coupled flow from its adiabatic limit, and two energies over time."""
    rows, energies = tables["limits"], tables["energies"]
    for start in range(setting):
        own = where(rows, start=start)
        left.loglog(own["rate_ratio"], own["largest_distance"], "o-", color=palette.FIRST, alpha=0.5)
    line = own["largest_distance"][-1] * own["rate_ratio"] / own["rate_ratio"][-1]
    left.loglog(own["rate_ratio"], line, color=palette.REFERENCE, linestyle="--", label="slope 1")
    charts.label(left, r"$\eta_A/\eta_x$", "largest distance\nfrom the limit, t ≤ 2")
    ratios = np.unique(energies["rate_ratio"])
    for ratio in (ratios[-1], ratios[-3], ratios[0]):
        own = where(energies, rate_ratio=ratio, start=0)
        label = rf"$\eta_A/\eta_x$ = {ratio:.3g}"
        (drawn,) = right.semilogy(own["time"], own["internal_energy"], label=label)
        right.semilogy(own["time"], own["effective"], color=drawn.get_color(), linestyle=":", linewidth=2)
    charts.label(right, "time", "energy", r"internal energy (line), $|P_0(D)|\,\ell_0/4$ (dots)")


@recipe(
    "liu-L", item="Appendix L", quick=3, paper_setting=20,
    draw=_draw_emergence, panels=(9.6, 4.0, 1, 2), source="Appendix L", independent="start",
    shows="How near a linear network is to its effective loss, by the learning rate η_A of its layer over "
    "η_x of its embedding: on the left for 20 starts, and on the right for the first of them.",
    cost="a minute",
    rules=(
        Statement("adiabatic limit", "the quadratic potential ... is time-independent because η_A → 0",
            "slope of the distance to that limit over η_A/η_x below 0.07, as logarithms: 1 is first order",
            measures.slope(
                "limits", "np.log(rate_ratio)", "np.log(largest_distance)", by="start",
                among="rate_ratio < 0.07",
            ),
            least=0.9, most=1.1, chance=counters.shuffled("limits", "largest_distance")),
        Statement("effective loss", "the total energy of the system is ℓ_0",
            "mean distance of the internal energy over |P_0(D)| ℓ_0/4 from 1, at the slowest layers",
            measures.mean(
                "energies", "abs(internal_energy / effective - 1)", by="start",
                among="rate_ratio == rate_ratio.min()",
            ),
            most=0.05, digits=3, source="Appendix L, Eq. 42",
            chance="none: both are computed of the same state",
            counter=counters.shuffled("energies", "effective", within="time", among={"rate_ratio": 0.003})),
    ),
)  # fmt: skip
def emergence(run: Run) -> Result:
    """Reproduce Appendix L of Liu et al.: the flow of a linear network and its adiabatic limit.

    In this limit the layers learn infinitely slowly, so that the inputs move in a constant potential. The
    table "limits" has the largest distance between the flow and this limit, and "energies" the internal
    energy next to the effective loss. The rules judge the order of the distance in the ratio of the rates,
    and how near the energies are.
    """
    pairs = np.array(sorted(set(CURRICULUM[:6])))
    theory = EffectiveTheory(6, 2, pairs=pairs)
    limits: list[dict[str, float]] = []
    flows: list[dict[str, Any]] = []
    for start in range(run.setting):
        rng = np.random.default_rng((run.seed(12), start))
        labels = rng.standard_normal((11, 3))[pairs.sum(axis=1)]
        state = None
        for ratio in np.geomspace(0.3, 0.003, 7).tolist():
            network = physics.LinearNetwork(labels, pairs=pairs, network_rate=ratio)
            state = network.start(rng) if state is None else state
            A, b, E = network.unpack(state)
            moving = simulate(network, initial=state, steps=200, step_size=0.01, record=10)
            limit = network.adiabatic(A, b).solve(E.ravel(), moving.times).reshape(-1, *E.shape)
            _, _, moved = network.unpack(moving.positions[0])
            distance = float(np.abs(moved - limit).max())
            limits.append({"start": start, "rate_ratio": ratio, "largest_distance": distance})
            loss_0 = theory.loss(moved) * np.sum(moved**2, axis=(1, 2))
            # Two samples in every class: |P_0(D)|/(2 m) with m = 2.
            effective = loss_0 * theory.parallelogram_count / 4
            index = {"start": [start], "rate_ratio": [ratio], "time": moving.times}
            energy = moving.observables["internal_energy"][0]
            flows.append(table_of(index, internal_energy=energy, effective=effective))
    return Result({"limits": columns_of(limits), "energies": joined(flows)})


# -- Figures 12, 17, 18 ------------------------------------------------------------------------------------

# -- Figure 12 ---------------------------------------------------------------------------------------------

FOUR = ((0, 2), (1, 1), (0, 3), (1, 2), (1, 3), (2, 2))
"""Training set of Eq. 21."""
PACES = {"fast decoder": (1e-3, 1e-2), "slow decoder": (1e-2, 1e-3)}
"""Learning rates of the representation and of the decoder."""
KINDS = ("A1 A2 A3", "A1", "A2", "A3", "none")
"""The representations of Figure 11: any two equations imply the third."""


def _draw_four(setting: Setting, tables: Tables, *axes: Any) -> None:
    """Draw the representations of four tokens that were learned with each pair of learning rates."""
    for ax, (pace, pair) in zip(axes, PACES.items(), strict=True):
        show_representations(where(tables["networks"], decoder=pace), ax)
        ax.set_title(rf"{pace}, $(\eta_1, \eta_2)$ = {pair}")


@recipe(
    "liu-12", item="Figure 12; Appendix E",
    quick=Setting(model=ToyAddition(4, hidden=(50, 50)), seeds=6, steps=1500),
    paper_setting=Setting(model=ToyAddition(4), seeds=200, steps=3000),
    draw=_draw_four, panels=(9.6, 4.8, 1, 2), source="Appendix E", cost="five minutes",
    rules=(
        Statement("slow decoder",
            "The relatively slow decoder produces better representations (in the sense of higher RQI)",
            "mean RQI with the slow decoder minus that with the fast one; by chance 0",
            lambda tables, level: mean(
                np.subtract(*(where(tables["networks"], decoder=pace)["rqi"] for pace in reversed(PACES))),
                level,
            ),
            least=0.1, chance=counters.shuffled("networks", "rqi"), note=TOGETHER),
        Statement("all representations", "our algorithms actually generates all possible representations",
            "share of the rarest of the five representations among the networks of both paces",
            measures.rarest(
                "networks", "equations", KINDS,
                by=lambda rows: np.arange(len(rows["rqi"])) % (len(rows["rqi"]) // len(PACES)),
            ),
            least=0.002, digits=3, chance="none: an order of networks changes no share",
            counter=counters.rarest_absent("networks", "equations"), note=TOGETHER),
    ),
)  # fmt: skip
def four(run: Run) -> Result:
    """The representations of p = 4 that networks find, by the rates of embedding and decoder.

    Notes
    -----
    The table "networks" has a row for each network. The rules ask whether a slow decoder gives a higher
    representation quality (RQI), and whether all five representations occur.
    """
    parts = (run.keep(pace.replace(" ", "-"), partial(_train_four, run, pace)) for pace in PACES)
    return Result({"networks": joined(parts)})


def _train_four(run: Run, pace: str) -> dict[str, Any]:
    setting = run.setting
    trained = train(
        setting.model, runs=setting.seeds, steps=setting.steps, seed=run.seed(1200), weight_decay=0.0,
        learning_rate=PACES[pace][1], embedding_learning_rate=PACES[pace][0],
        train_examples=[setting.model.task.inputs.tolist().index(list(pair)) for pair in FOUR],
        record=[setting.steps], observables=("train_accuracy",),
    )  # fmt: skip
    E = trained.final[:, :, 0].astype(float)
    E = (E - E.mean(axis=1, keepdims=True)) / E.std(axis=1, keepdims=True)
    theory = setting.model.theory
    return table_of(
        {"decoder": np.full(setting.seeds, pace)}, equations=[equations(e) for e in E],
        rqi=[representation_quality(e[:, None], theory, transition.DELTA) for e in E],
        train_accuracy=trained.observables["train_accuracy"][:, -1].astype(float),
        **{f"E_{token}": E[:, token] for token in range(4)},
    )  # fmt: skip


def equations(E: NDArray[np.float64]) -> str:
    """Return the equations of Liu's Eq. 20, such as "A1 A2", that E (4,) satisfies within 0.1, or "none"."""
    gaps = {"A1": E[0] + E[2] - 2 * E[1], "A2": E[0] + E[3] - E[1] - E[2], "A3": E[1] + E[3] - 2 * E[2]}
    return " ".join(name for name, gap in gaps.items() if abs(gap) <= transition.DELTA) or "none"


def show_representations(rows: Any, ax: Axes) -> None:
    """Draw the networks of a table as rows of four points, grouped by the equations they satisfy."""
    E = np.stack([rows[f"E_{token}"] for token in range(4)], axis=1)
    E = np.where(E[:, :1] < E[:, 3:], E, -E)  # mirrored so that 0 is left of 3
    colors, height = palette.graded_colors(4), 0.0
    for kind in sorted(set(rows["equations"].tolist()), key=lambda name: (name == "none", -len(name), name)):
        own = E[rows["equations"] == kind]
        places = height + np.arange(len(own))
        for token, color in enumerate(colors):
            ax.scatter(own[:, token], places, color=color, s=max(18 - len(E) / 12, 3), linewidths=0)
        look: Any = {"xycoords": ax.get_yaxis_transform(), "va": "center", "fontsize": "small"}
        ax.annotate(f"{kind}: {len(own)}", (1.02, height + len(own) / 2), **look)
        height += len(own) + max(len(E) / 20, 1)
    for token, color in enumerate(colors):
        ax.scatter([], [], color=color, s=18, label=str(token))
    ax.legend(title="symbol", ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.1), handletextpad=0)
    ax.set(yticks=[], xlabel="normalized embedding", ylabel=f"{len(E)} networks, a row each")
    ax.invert_yaxis()


# -- Figures 17 and 18 -------------------------------------------------------------------------------------

MATRIX_DELTA = 4.5
"""Tolerance of the squared Frobenius norm; the published code bounds the mean of the nine squares by 0.5."""
MATRIX_DECODER_RATE = 1e-5
"""Learning rate of the decoder, the paper's lowest: faster decoders memorize before a structure forms."""
PERMUTATIONS = ("e", "(23)", "(12)", "(123)", "(132)", "(13)")
"""The elements of `physics.symmetric(3)`: permutations of three things in lexicographic order."""
SPLIT = 24 / 36
"""Fraction of the pairs that train: 24 of 36, as in the paper (Section 4.1)."""


def _is_hexagon(own: Columns) -> bool:
    """Return whether the elements form a hexagon on the first and the third principal component."""
    points = own["PC1"] + 1j * own["PC3"]
    points = points - points.mean()
    angles = np.sort(np.angle(points, deg=True))
    gaps = np.diff(np.append(angles, angles[0] + 360))
    return bool(abs(gaps - 60).max() < 30 and abs(points).max() < 2 * abs(points).min())


def _draw_hexagon(setting: Setting, tables: Tables, *axes: Any) -> None:
    """Draw the network of highest quality on the planes of its first three principal components."""
    rows = tables["elements"]
    best = where(rows, network=rows["network"][np.argmax(rows["rqi"])])
    title = f"$S_3$: the best RQI of {setting.seeds} networks, {best['rqi'][0]:.2f}"
    axes[0].figure.suptitle(title)
    for ax, plane in zip(axes, ((1, 2), (1, 3), (2, 3)), strict=True):
        show_components(np.stack([best[f"PC{k}"] for k in plane], axis=1), ax)
        ax.set(**{f"{side}label": f"principal component {k}" for side, k in zip("xy", plane, strict=True)})
    charts.legend_below(axes[1])


@recipe(
    "liu-17", item="Figure 17; Appendix H",
    quick=Setting(model=GroupDecoder(hidden=(50, 50)), seeds=3, steps=800, rate=MATRIX_DECODER_RATE),
    paper_setting=Setting(model=GroupDecoder(), seeds=50, steps=20_000, rate=MATRIX_DECODER_RATE),
    draw=_draw_hexagon, panels=(10.6, 3.8, 1, 3), source="Appendix H.2", cost="ten to twenty minutes",
    rules=(
        Statement("hexagon", "On the plane of PC1 and PC3, the six points are organized as a hexagon",
            "share of the networks with RQI > 0.95 whose points on that plane are 60° apart within 30°, at "
            "distances from the center within a factor of 2",
            measures.share_of_networks("elements", _is_hexagon, among=f"rqi > {transition.GROKKED}"),
            least=0.5, chance=counters.shuffled("elements", "PC3", within="network"),
            note="half of them have a hexagon on PC2 and PC3; the three variances are often nearly equal"),
    ),
)  # fmt: skip
def hexagon(run: Run) -> Result:
    """The six matrices that a network learns for S_3, on their first three principal components.

    Notes
    -----
    The table "elements" has a row for each network and element of the group. The rule asks how often the
    elements form a hexagon, among networks with a representation quality index (RQI) above 0.95.
    """
    setting = run.setting
    trained = train(
        setting.model, runs=setting.seeds, steps=setting.steps, seed=run.seed(1700),
        learning_rate=setting.rate, weight_decay=0.0, embedding_learning_rate=transition.LEARNING_RATE,
        train_fraction=SPLIT, record=[setting.steps], observables=(),
    )  # fmt: skip
    points = np.stack([PCA(3).fit_transform(matrices) for matrices in trained.final.astype(float)])
    quality = representation_quality(trained, setting.model.theory, MATRIX_DELTA)[:, -1:]
    components = {f"PC{k + 1}": points[:, :, k] for k in range(3)}
    index = {"network": range(setting.seeds), "element": PERMUTATIONS}
    return Result({"elements": table_of(index, rqi=quality, **components)})


def show_components(points: Any, ax: Axes) -> None:
    """Draw the six permutations at `points` (6, 2) of the plane of two components."""
    even = np.array([name in ("e", "(123)", "(132)") for name in PERMUTATIONS])
    for chosen, color, label in ((even, palette.FIRST, "even"), (~even, palette.SECOND, "odd")):
        ax.fill(*points[chosen].T, color=color, alpha=0.08, linewidth=0)
        ax.scatter(points[chosen, 0], points[chosen, 1], s=50, color=color, label=label, linewidths=0)
    for n, place in enumerate(points):
        near = abs(points - place).max(axis=1) < 0.05  # elements that cannot be told apart share a label
        if n == near.argmax():
            look: Any = {"xytext": (6, 4), "ha": "left"} if even[n] else {"xytext": (-6, 4), "ha": "right"}
            names = np.array(PERMUTATIONS)[near]
            ax.annotate("\n".join(names), place, textcoords="offset points", fontsize="small", **look)
    ax.update_datalim([(side * np.abs(points[:, 0]).max(), 0.0) for side in (-1.4, 1.4)])  # room for labels
    ax.set(aspect="equal", adjustable="datalim", xmargin=0.0, ymargin=0.15)


SEEN = "the rise is what the figure shows; until after the run, the quotation had words of ours"


def _draw_permutations(setting: Setting, tables: Tables, top: Any, bottom: Any) -> None:
    """Draw the panels (a) to (e) of the paper, and the share of networks of high quality."""
    rows = {**tables["networks"], "passed": np.isfinite(tables["networks"]["steps_to_rqi"])}
    words = f"matrix products count as equal up to a squared distance of δ = {setting.delta:g}"
    title = f"$S_3$: {transition.said(setting)};\n{words}"
    top[0].figure.suptitle(title)
    transition.show_line(rows, "rqi", np.max, "best", top[0])
    top[0].set(ylabel="RQI")
    top[1].axvline(0.5, color=palette.REFERENCE, linestyle=":", linewidth=1, label="paper: 0.5")
    places = np.unique(rows["fraction"])
    fewest = [rows["steps_to_rqi"][rows["fraction"] == place].min() for place in places]
    top[1].plot(places, fewest, "o-", markersize=3.5, label="fewest steps")
    transition.show_reached(rows, setting.steps, top[1])
    transition.show_line(rows, "passed", np.mean, "share", top[2])
    top[2].set(ylabel=f"reached RQI > {transition.GROKKED}", title="not in the paper")
    transition.show_accuracies(rows, bottom)
    for ax, letter in zip((*top[:2], *bottom), "abcde", strict=True):
        ax.set_title(f"({letter})")


@recipe(
    "liu-18", item="Figure 18; Appendix H",
    quick={"model": GroupDecoder(hidden=(50, 50)), "sizes": (12, 24, 32), "seeds": 3, "steps": 800},
    paper_setting=Setting(
        model=GroupDecoder(), sizes=tuple(range(3, 36)), seeds=11, steps=20_000, rate=MATRIX_DECODER_RATE,
        delta=MATRIX_DELTA, seed=1800,
    ),
    draw=_draw_permutations, panels=(10.6, 7.6, 2, 3), source="Appendix H.2", cost="one to two hours",
    rules=(
        Statement("(a)", "RQI increases as training set becomes larger",
            "Kendall's τ of the RQI with the training fraction; by chance 0",
            measures.rank_correlation("networks", "fraction", "rqi"), least=0.3, source="Figure 18 (a)",
            chance=counters.shuffled("networks", "rqi")),
        Number("(b): r_c at which the best network begins to pass RQI 0.95", "0.5", best_passes, margin=0.06,
            source="Figure 18 (b)",
            note="corrected after the run: networks are resampled; before, a jackknife, which had no width"),
        Statement("(b)", "the steps to reach RQI > 0.95 ... find a phase transition at r = r_c = 0.5",
            "share of networks that pass with more than 0.6 of the data minus that with less than 0.4",
            transition.passed("fraction > 0.6", "fraction < 0.4"), least=0.3,
            chance=counters.shuffled("networks", "steps_to_rqi")),
        Statement("(c)", "The real accuracy Acc is shown in Figure 18 (c)",
            "Kendall's τ of the accuracy on what was held out with the training fraction; by chance 0",
            measures.rank_correlation("networks", "fraction", "validation_accuracy"), least=0.3,
            chance=counters.shuffled("networks", "validation_accuracy"), note=SEEN),
        Statement("(d)", "the predicted accuracy … (calculated from RQI) is shown in Figure 18 (d)",
            "Kendall's τ of the predicted accuracy on what was held out with the training fraction",
            measures.rank_correlation(
                "networks", "fraction", "(predicted_accuracy - fraction) / (1 - fraction)",
            ),
            least=0.3, chance=counters.shuffled("networks", "predicted_accuracy"), note=SEEN),
        Statement("(e)", "the predicted accuracy is a lower bound of Acc",
            "share of networks whose accuracy is not below the predicted one",
            measures.share("networks", "accuracy >= predicted_accuracy - 1e-6"), least=0.9,
            chance=counters.shuffled("networks", "predicted_accuracy")),
    ),
)  # fmt: skip
def permutations(run: Run) -> Result:
    """Networks on S_3: quality, steps and accuracies over the training fraction.

    Notes
    -----
    The table "networks" has a row for each network. The rules judge how representation quality, steps and
    accuracies depend on the fraction, and whether the predicted accuracy is a lower bound of the real one.
    """
    return Result({"networks": transition.train_fractions(run)})
