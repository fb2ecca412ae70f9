"""Beyond Liu et al.: the transition for p = 5 … 60, modulo n, and for groups."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

import physics
from analysis.plots.figures import graded_colors, style
from analysis.stats.intervals import proportion
from analysis.stats.transitions import fit_critical_values, median_crossing
from grokphys.output import Budget, save_figure, write_csv
from physics import FiniteGroup, Operation, critical_sizes
from physics.theory.operations import random_orders

SIZES = (5, 7, 10, 14, 20, 28, 40, 60)
ORDERS: dict[Budget, int] = {"quick": 300, "default": 4000, "paper": 10_000}
GROUP_ORDERS: dict[Budget, int] = {"quick": 100, "default": 2000, "paper": 10_000}

Row = dict[str, Any]


def measure(operation: Operation, orders: int, seed: int = 81) -> tuple[Row, Any]:
    """Critical fraction of an operation, by a fit and without one, and the critical sizes behind it."""
    samples = len(operation.samples)
    drawn = random_orders(operation, sets=orders, seed=seed)
    sizes = critical_sizes(operation, orders=drawn)
    fit = fit_critical_values(sizes / samples, 1 / samples)
    median = median_crossing(sizes / samples, 1 / samples)
    row = {
        "operation": operation.name,
        "tokens": operation.tokens,
        "samples": samples,
        "orders": orders,
        "r_c": median.estimate,
        "low": median.low,
        "high": median.high,
        "r_c_fit": fit.critical.estimate,
        "fit_low": fit.critical.low,
        "fit_high": fit.critical.high,
        "relative_width": fit.width,
        "shape": fit.shape,
        "misfit": fit.misfit,
    }
    if operation.commutes:
        last = proportion(int((sizes == last_symbols(operation, drawn)).sum()), orders)
        row |= {"last_symbol": last.estimate, "last_symbol_low": last.low, "last_symbol_high": last.high}
    return row, sizes


def last_symbols(operation: Operation, orders: NDArray[np.int32]) -> NDArray[np.int32]:
    """How many samples of each order (sets, |D_0|) it takes until no symbol is isolated.

    A symbol is isolated until one of its samples shares its class with another one: before, no equation holds
    the symbol, and its embedding is free. So the representation is never complete earlier than this.
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


def scaling(out: Path, budget: Budget) -> list[Path]:
    """Finite-size scaling: the critical fraction of plain addition and of addition mod p, p = 5 … 60."""
    families = {
        "plain addition": [measure(Operation(p), ORDERS[budget]) for p in SIZES],
        "addition mod p": [measure(Operation(p, modulus=p), ORDERS[budget]) for p in SIZES],
    }
    rows = []
    for name, measured in families.items():
        found = [row for row, _ in measured]
        large = [row for row in found if row["tokens"] >= 14]
        slope = np.polyfit(np.log([r["tokens"] for r in large]), np.log([r["r_c"] for r in large]), 1)[0]
        print(
            f"  {name}: r_c falls from {found[0]['r_c']:.3f} at p = {SIZES[0]} to {found[-1]['r_c']:.4f} "
            f"[{found[-1]['low']:.4f}, {found[-1]['high']:.4f}] at p = {SIZES[-1]}, about as "
            f"p^{slope:.2f} from p = 14 on"
        )
        print(
            f"    the last isolated symbol completes it in {found[2]['last_symbol']:.0%} of the orders at "
            f"p = {SIZES[2]}, in {found[-1]['last_symbol']:.0%} at p = {SIZES[-1]}"
        )
        rows += [{"family": name, **row} for row in found]
    with style():
        figure = Figure(figsize=(11.4, 3.7))
        left, middle, right = figure.subplots(1, 3)
        show_distributions(families["plain addition"], left)
        show_critical(families, middle)
        show_last_symbol(families, right)
        picture = save_figure(figure, out / "liu-scaling.png")
    curves = [
        {
            "tokens": row["tokens"],
            "size": size,
            "fraction": size / row["samples"],
            "probability": float((sizes <= size).mean()),
        }
        for row, sizes in families["plain addition"]
        for size in range(int(sizes.min()) - 1, int(sizes.max()) + 1)
    ]
    return [
        write_csv(out / "liu-scaling.csv", rows),
        write_csv(out / "liu-scaling-curves.csv", curves),
        picture,
    ]


def show_distributions(measured: Sequence[tuple[Row, Any]], ax: Axes | None = None) -> Axes:
    """Draw the probability that the training set determines all, over the fraction, for each p."""
    ax = Figure().subplots() if ax is None else ax
    for (row, sizes), color in zip(measured, graded_colors(len(measured)), strict=True):
        ordered = np.sort(sizes) / row["samples"]
        ax.step(
            ordered,
            np.arange(1, len(ordered) + 1) / len(ordered),
            where="post",
            color=color,
            label=row["tokens"],
        )
    ax.set(
        xlabel="training data fraction",
        ylabel="probability of a unique representation",
        title="Plain addition",
        xlim=(0, 1.25),
    )
    ax.set_xticks(np.linspace(0, 1, 6))
    ax.legend(title="p", loc="center right", handlelength=1.2)
    return ax


def show_critical(families: Mapping[str, Sequence[tuple[Row, Any]]], ax: Axes | None = None) -> Axes:
    """Draw critical fractions over p, with the coupon collector's ln(p)/p."""
    ax = Figure().subplots() if ax is None else ax
    for (name, measured), marker in zip(families.items(), "os", strict=True):
        p, r_c, low, high = (
            np.array([row[k] for row, _ in measured]) for k in ("tokens", "r_c", "low", "high")
        )
        ax.errorbar(p, r_c, [r_c - low, high - r_c], fmt=marker, markersize=4, linewidth=1, label=name)
    smooth = np.geomspace(SIZES[0], SIZES[-1], 100)
    ax.plot(
        smooth, np.log(smooth) / smooth, color="#888888", linestyle="--", linewidth=1, label=r"$\ln p\,/\,p$"
    )
    ax.set(
        xlabel="p",
        ylabel=r"critical fraction $r_c$",
        xscale="log",
        yscale="log",
        title="The critical fraction falls with p",
    )
    ax.set_xticks([5, 10, 20, 40, 60], ["5", "10", "20", "40", "60"])
    ax.set_xticks([], minor=True)
    ax.set_yticks([0.1, 0.2, 0.4, 0.7], ["0.1", "0.2", "0.4", "0.7"])
    ax.set_yticks([], minor=True)
    ax.legend()
    return ax


def show_last_symbol(families: Mapping[str, Sequence[tuple[Row, Any]]], ax: Axes | None = None) -> Axes:
    """Draw how often the representation is complete as soon as the last symbol is no longer isolated.

    As for the connectivity of random graphs, that becomes the rule for large p, and makes r_c fall as
    ln(p)/p: after k samples of two symbols each, about p exp(-2k/p) symbols are in none.
    """
    ax = Figure().subplots() if ax is None else ax
    names = ("tokens", "last_symbol", "last_symbol_low", "last_symbol_high")
    for (name, measured), marker in zip(families.items(), "os", strict=True):
        p, share, low, high = (np.array([row[k] for row, _ in measured]) for k in names)
        ax.errorbar(p, share, [share - low, high - share], fmt=marker, markersize=4, linewidth=1, label=name)
    ax.set(
        xlabel="p",
        ylabel="share of orders",
        xscale="log",
        ylim=(0, 1),
        title="The last isolated symbol decides",
    )
    ax.set_xticks([5, 10, 20, 40, 60], ["5", "10", "20", "40", "60"])
    ax.set_xticks([], minor=True)
    ax.legend(loc="lower right")
    return ax


# -- groups ------------------------------------------------------------------------------------------------


def some_groups() -> list[FiniteGroup]:
    """Groups of order 6 to 24, abelian and not."""
    cyclic, product = physics.cyclic, physics.direct_product
    return [
        cyclic(6),
        physics.symmetric(3),
        cyclic(8),
        product(cyclic(2), cyclic(4)),
        product(cyclic(2), cyclic(2), cyclic(2)),
        physics.dihedral(4),
        physics.quaternion(),
        cyclic(10),
        physics.dihedral(5),
        cyclic(12),
        physics.dihedral(6),
        physics.alternating(4),
        cyclic(24),
        product(cyclic(2), cyclic(2), cyclic(6)),
        physics.symmetric(4),
    ]


def groups(out: Path, budget: Budget) -> list[Path]:
    """Critical fractions of finite groups: the linear closure where they commute, the deduction where not."""
    rows = []
    for group in some_groups():
        operation = Operation(group=group)
        row, _ = measure(operation, GROUP_ORDERS[budget])
        rows.append({"closure": "linear" if operation.commutes else "deduction", **row})
    by_name = {row["operation"]: row for row in rows}
    for name in ("S_3", "D_4", "Q_8", "S_4"):
        row = by_name[name]
        print(
            f"  {name}: r_c = {row['r_c']:.3f} [{row['low']:.3f}, {row['high']:.3f}] of "
            f"{row['samples']} ordered samples"
        )
    with style():
        figure = Figure(figsize=(6.4, 4.2))
        show_groups(rows, figure.subplots())
        picture = save_figure(figure, out / "liu-groups.png")
    return [write_csv(out / "liu-groups.csv", rows), picture]


def show_groups(rows: list[Row], ax: Axes | None = None) -> Axes:
    """Draw the critical fraction of each group with its interval, sorted by order."""
    ax = Figure().subplots() if ax is None else ax
    place = np.arange(len(rows))[::-1]
    for closure, color in (("linear", "#0b6e99"), ("deduction", "#d1603d")):
        chosen = [k for k, row in enumerate(rows) if row["closure"] == closure]
        r_c, low, high = (np.array([rows[k][name] for k in chosen]) for name in ("r_c", "low", "high"))
        label = (
            "commutes: linear closure, unordered" if closure == "linear" else "does not: deduction, ordered"
        )
        ax.errorbar(
            r_c, place[chosen], xerr=[r_c - low, high - r_c], fmt="o", markersize=5, color=color, label=label
        )
    ax.set_yticks(
        place, [re.sub(r"(\w)_(\d+)", r"$\1_{\2}$", row["operation"]).replace("x", "×") for row in rows]
    )
    ax.set(xlabel=r"critical fraction $r_c$, 95 %", title="Transitions of finite groups", xlim=(0, None))
    ax.grid(axis="y")
    ax.legend(loc="lower right")
    return ax
