"""Liu et al.: the worked examples of Appendices C, E, H and L, computed instead of drawn by hand."""

import itertools
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

import physics
from analysis.plots.figures import graded_colors, style
from analysis.stats.intervals import mean
from grokphys.output import Budget, save_figure, write_csv
from physics import EffectiveTheory, LinearNetwork, Operation, closures, random_training_sets, simulate

Row = dict[str, Any]
Quadruple = tuple[int, int, int, int]

CURRICULUM = [(0, 4), (1, 3), (1, 5), (2, 4), (0, 2), (1, 1), (2, 4), (3, 3)]
"""D_1 … D_8 of Appendix C. D_7 repeats D_4, so that 7 samples suffice, not 8."""
EQUATIONS = {"A1": ((0, 2), (1, 1)), "A2": ((0, 3), (1, 2)), "A3": ((1, 3), (2, 2))}
"""Eq. 20, each with the two samples that ask for it."""

GENERIC = np.array([[-1.6, -0.4], [-0.7, 0.9], [0.5, -0.7], [1.8, 0.6]])
"""Four points without a parallelogram, from which the representations of p = 4 are reached."""


def ground_state(theory: EffectiveTheory, start: Any) -> NDArray[np.float64]:
    """Return the planar representation that the flow from `start` (tokens, 2) ends in."""
    return theory.solve(start, [1e6])[0]


def show_parallelograms(E: Any, quadruples: Any, title: str = "", ax: Axes | None = None) -> Axes:
    """Draw a planar embedding and its parallelograms; one with a repeated symbol is a line."""
    ax = Figure().subplots() if ax is None else ax
    colors = mpl.colormaps["Set2"].colors  # type: ignore[attr-defined]
    for k, (i, j, m, n) in enumerate(quadruples):
        corners = E[[i, m, j, n, i]]
        ax.fill(*corners.T, color=colors[k % 8], alpha=0.25)
        ax.plot(*corners.T, color=colors[k % 8], linewidth=1.2)
    ax.scatter(E[:, 0], E[:, 1], s=90, c=graded_colors(len(E)), zorder=3)
    for token, (x, y) in enumerate(E):
        ax.annotate(str(token), (x, y), ha="center", va="center", fontsize=8, color="white", zorder=4)
    ax.set_title(title)
    ax.margins(0.15)
    ax.set_aspect("equal", "datalim")
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    return ax


# -- Figure 9 ----------------------------------------------------------------------------------------------


def curriculum(out: Path, budget: Budget) -> list[Path]:
    """Figure 9: more samples, more parallelograms, p = 6 (Appendix C)."""
    rows: list[Row] = []
    with style():
        figure = Figure(figsize=(9.6, 3.4))
        start = np.random.default_rng(2).standard_normal((6, 2))
        for ax, count in zip(figure.subplots(1, 3), (4, 6, 8), strict=True):
            samples = sorted(set(CURRICULUM[:count]))
            theory = EffectiveTheory(6, pairs=samples)
            given = {tuple(q) for q in theory.parallelograms.tolist()}
            quality = physics.ideal_quality(theory)
            stage = {
                "stage": f"D_1 to D_{count}",
                "samples": len(samples),
                "n_0": theory.ground_state_dimension,
            }
            rows += [
                stage
                | dict(zip("ijmn", q, strict=True))
                | {"origin": "given" if tuple(q) in given else "implied", "rqi_bound": quality}
                for q in theory.implied_parallelograms.tolist()
            ]
            title = (
                f"$D_1$ to $D_{count}$: $n_0$ = {theory.ground_state_dimension}, "
                rf"$\overline{{\mathrm{{RQI}}}}$ = {len(theory.implied_parallelograms)}/"
                f"{theory.operation.parallelogram_count}"
            )
            show_parallelograms(ground_state(theory, start), theory.implied_parallelograms, title, ax)
            print(
                f"  D_1 to D_{count}: {len(samples)} distinct samples, n_0 = "
                f"{theory.ground_state_dimension}, RQI-bar = {quality:.2f}"
            )
        picture = save_figure(figure, out / "liu-9.png")
    return [write_csv(out / "liu-9.csv", rows), picture]


# -- Figure 11 ---------------------------------------------------------------------------------------------


def hierarchy(out: Path, budget: Budget) -> list[Path]:
    """Figure 11: the representations of p = 4 and their descent (Appendix E)."""
    rows: list[Row] = []
    theories: dict[tuple[str, ...], EffectiveTheory | None] = {}
    names = {tuple(sum(pairs, ())): name for name, pairs in EQUATIONS.items()}
    for size in range(3, -1, -1):
        for chosen in itertools.combinations(EQUATIONS, size):
            theory = EffectiveTheory(4, pairs=sum((EQUATIONS[a] for a in chosen), ())) if chosen else None
            implied = tuple(names[tuple(q)] for q in theory.implied_parallelograms.tolist()) if theory else ()
            rows.append(
                {
                    "equations": " ".join(chosen) or "none",
                    "implied": " ".join(implied) or "none",
                    "degrees_of_freedom": theory.ground_state_dimension if theory else 4,
                }
            )
            theories.setdefault(implied, theory)
    print(
        f"  the {len(rows)} subsets of equations make {len(theories)} representations: any two equations "
        "imply the third"
    )
    with style():
        figure = Figure(figsize=(7.4, 5.6))
        figure.set_layout_engine("none")
        show_hierarchy(theories, figure)
        picture = save_figure(figure, out / "liu-11.png")
    return [write_csv(out / "liu-11.csv", rows), picture]


def show_hierarchy(theories: dict[tuple[str, ...], EffectiveTheory | None], figure: Figure) -> Figure:
    """Draw each representation in a frame of its own, from the most to the least determined."""
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
            quadruples: Any = [] if theory is None else theory.implied_parallelograms
            show_parallelograms(E, quadruples, "", ax)
            figure.text(x, y + 0.09, f"{{{', '.join(implied)}}}, n = {freedom}", ha="center", fontsize=10)
    for parent, child in itertools.permutations(place, 2):
        if set(child) < set(parent) and not any(set(child) < set(a) < set(parent) for a in place):
            (x, y), (u, v) = place[parent], place[child]
            figure.add_artist(
                mpl.patches.FancyArrowPatch(
                    (x, y - 0.115),
                    (u, v + 0.125),
                    arrowstyle="-|>",
                    mutation_scale=12,
                    color="#888888",
                    linewidth=1,
                )
            )
    return figure


# -- Figure 16 ---------------------------------------------------------------------------------------------


def deduction(out: Path, budget: Budget) -> list[Path]:
    """Figure 16: two parallelograms make a third where the operation commutes, three a fourth where not."""
    rows = chain(Operation(group=physics.cyclic(7)), 2) + chain(Operation(group=physics.symmetric(3)), 3)
    for row in rows:
        print(
            f"  {row['operation']}, {row['known']}: {row['last']} "
            + ("follows" if row["follows"] else "does not follow")
        )
    sets = {"quick": 100, "default": 2000, "paper": 10_000}[budget]
    given: list[Row] = []
    operations = [Operation(group=physics.cyclic(6)), Operation(group=physics.symmetric(3))]
    for operation in operations:
        sizes = range(1, len(operation.samples) + 1)
        for size, stream in zip(sizes, np.random.SeedSequence(16).spawn(len(sizes)), strict=True):
            masks = random_training_sets(operation, size, sets=sets, seed=stream)
            counts = np.stack([np.bincount(operation.label[mask], minlength=6) for mask in masks])
            permitted = (counts * (counts - 1) // 2).sum(axis=1) / operation.parallelogram_count
            quality = mean(closures(operation, masks).quality)
            chained = mean(closures(operation, masks, transitive=operation.commutes).quality)
            given.append(
                {
                    "operation": operation.name,
                    "size": size,
                    "fraction": size / len(operation.samples),
                    "sets": sets,
                }
                | {"given": mean(permitted).estimate, "implied": quality.estimate}
                | {"implied_low": quality.low, "implied_high": quality.high, "chains_only": chained.estimate}
            )
    with style():
        figure = Figure(figsize=(8.6, 3.5))
        for ax, operation in zip(figure.subplots(1, 2, sharey=True), operations, strict=True):
            show_deduction([row for row in given if row["operation"] == operation.name], ax)
        picture = save_figure(figure, out / "liu-16.png")
    return [write_csv(out / "liu-16-chains.csv", rows), write_csv(out / "liu-16.csv", given), picture]


def chain(operation: Operation, links: int) -> list[Row]:
    """Leave out each of the parallelograms of a chain in turn, and see whether its last one still follows.

    Every link says that two quotients, or differences, are equal. With two links (Eq. 29) the outer ones are
    compared where the operation commutes; where it does not, three are needed (Eqs. 30, 31).
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
    i, j = (int(k) for k in pair)
    return (min(i, j), max(i, j)) if operation.commutes else (i, j)


def _commuting_chain(operation: Operation) -> tuple[list[Quadruple], Quadruple]:
    """Eq. 29: a + d = b + c and c + f = d + e give a + f = b + e."""
    assert operation.group is not None
    t, inverse = operation.group.table, operation.group.inverses
    a, b, d, f = 1, 0, 2, 4
    c = int(t[t[a, d], inverse[b]])
    e = int(t[t[c, f], inverse[d]])
    return [(a, d, b, c), (c, f, d, e)], (a, f, b, e)


def _quotient_chain(operation: Operation) -> tuple[list[Quadruple], Quadruple]:
    """Eqs. 30, 31: ad = bc, fc = ed and eh = fg give ah = bg."""
    assert operation.group is not None
    t, inverse = operation.group.table, operation.group.inverses
    a, b, d, f, h = 1, 2, 3, 4, 0
    quotient = t[inverse[b], a]
    c, g, e = int(t[quotient, d]), int(t[quotient, h]), int(t[f, quotient])
    return [(a, d, b, c), (f, c, e, d), (e, h, f, g)], (a, h, b, g)


def show_deduction(rows: list[Row], ax: Axes | None = None) -> Axes:
    """Draw which part of all parallelograms is given, and which follows, over the training fraction."""
    ax = Figure().subplots() if ax is None else ax
    fraction, given, implied = (np.array([row[k] for row in rows]) for k in ("fraction", "given", "implied"))
    ax.plot(fraction, given, color="#888888", linestyle="--", label=r"given, $|P_0(D)|/|P_0|$")
    ax.plot(fraction, implied, label=r"implied, $|P(D)|/|P_0|$")
    ax.fill_between(fraction, given, implied, alpha=0.15, linewidth=0)
    name = rows[0]["operation"]
    commutes = name.startswith("C")
    if not commutes:
        only = [row["chains_only"] for row in rows]
        ax.plot(fraction, only, color="#d1603d", linewidth=1.2, label="without transitivity")
    ax.set(
        xlabel="training data fraction",
        ylabel="part of all parallelograms" if commutes else "",
        title=f"${name[0]}_{name[2:]}$: "
        + ("linear closure" if commutes else "deduction, three give a fourth"),
        xlim=(0, 1),
        ylim=(0, 1.03),
    )
    ax.legend(loc="lower right")
    return ax


# -- Appendix L --------------------------------------------------------------------------------------------


def emergence(out: Path, budget: Budget) -> list[Path]:
    """Appendix L: the effective loss emerges from a linear network, and its adiabatic limit is reached."""
    theory = EffectiveTheory(6, 2, pairs=sorted(set(CURRICULUM[:6])))
    pairs = theory.pairs
    assert pairs is not None
    rng = np.random.default_rng(12)
    labels = rng.standard_normal((11, 3))[pairs.sum(axis=1)]
    state = None
    limits, flows = [], []
    for ratio in np.geomspace(0.3, 0.003, 7):
        network = LinearNetwork(labels, pairs=pairs, network_rate=float(ratio))
        state = network.start(rng) if state is None else state
        A, b, E = network.unpack(state)
        moving = simulate(network, initial=state, steps=200, step_size=0.01, record_every=10)
        limit = network.adiabatic(A, b).solve(E.ravel(), moving.times).reshape(-1, *E.shape)
        _, _, moved = network.unpack(moving.positions[0])
        limits.append({"rate_ratio": float(ratio), "largest_distance": float(np.abs(moved - limit).max())})
        loss_0 = theory.loss(moved) * np.sum(moved**2, axis=(1, 2))
        internal = moving.observables["internal_energy"][0]
        # Two samples in every class: |P_0(D)|/(2 m) with m = 2.
        flows += [
            {"rate_ratio": float(ratio), "time": float(t), "internal_energy": float(u), "effective": float(v)}
            for t, u, v in zip(moving.times, internal, loss_0 * theory.parallelogram_count / 4, strict=True)
        ]
    ratios, distances = (np.log([row[k] for row in limits]) for k in ("rate_ratio", "largest_distance"))
    slope = np.polyfit(ratios[-4:], distances[-4:], 1)[0]
    start = max(abs(row["internal_energy"] / row["effective"] - 1) for row in flows if row["time"] == 0)
    print(
        f"  distance to the adiabatic limit falls as (η_A/η_x)^{slope:.2f}; at t = 0, where AᵀA = I, "
        f"internal energy and effective loss agree to {start:.0e}"
    )
    with style():
        figure = Figure(figsize=(8.6, 3.5))
        left, right = figure.subplots(1, 2)
        show_limit(limits, left)
        show_energies(flows, right)
        picture = save_figure(figure, out / "liu-L.png")
    return [write_csv(out / "liu-L-limit.csv", limits), write_csv(out / "liu-L-energy.csv", flows), picture]


def show_limit(rows: list[Row], ax: Axes | None = None) -> Axes:
    """Draw the distance to the adiabatic limit over the ratio of the rates."""
    ax = Figure().subplots() if ax is None else ax
    ratio, distance = (np.array([row[k] for row in rows]) for k in ("rate_ratio", "largest_distance"))
    ax.loglog(ratio, distance, "o-", label="coupled flow, t ≤ 2")
    ax.loglog(ratio, distance[-1] * ratio / ratio[-1], color="#888888", linestyle="--", label="first order")
    ax.set(xlabel=r"$\eta_A/\eta_x$", ylabel="largest distance of an embedding", title="Adiabatic limit")
    ax.legend()
    return ax


def show_energies(rows: list[Row], ax: Axes | None = None) -> Axes:
    """Draw the internal energy of the network against the effective loss, for a fast and a slow network."""
    ax = Figure().subplots() if ax is None else ax
    ratios = sorted({row["rate_ratio"] for row in rows})
    for ratio in (ratios[-1], ratios[-3], ratios[0]):
        chosen = [row for row in rows if row["rate_ratio"] == ratio]
        times = [row["time"] for row in chosen]
        (line,) = ax.semilogy(
            times, [row["internal_energy"] for row in chosen], label=rf"$\eta_A/\eta_x$ = {ratio:.3g}"
        )
        ax.semilogy(
            times, [row["effective"] for row in chosen], color=line.get_color(), linestyle=":", linewidth=2
        )
    ax.set(xlabel="time", ylabel="energy", title=r"Internal energy (line), $|P_0(D)|\,\ell_0/4$ (dots)")
    ax.legend()
    return ax
