"""Beyond Liu et al.: the transition for p = 5 … 60, modulo n, and for groups."""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import physics
from analysis.figures import style
from analysis.transitions import fit_critical_values, median_crossing
from experiments.output import Budget, graded_colors, save_figure, write_csv
from physics import FiniteGroup, Operation, critical_sizes

SIZES = (5, 7, 10, 14, 20, 28, 40, 60)
ORDERS: dict[Budget, int] = {"quick": 300, "default": 4000, "paper": 20_000}
GROUP_ORDERS: dict[Budget, int] = {"quick": 100, "default": 2000, "paper": 10_000}

Row = dict[str, Any]


def measure(operation: Operation, orders: int, seed: int = 81) -> tuple[Row, Any]:
    """Critical fraction of an operation, by a fit and without one, and the critical sizes behind it."""
    samples = len(operation.samples)
    sizes = critical_sizes(operation, sets=orders, seed=seed)
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
    return row, sizes


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
        rows += [{"family": name, **row} for row in found]
    with style():
        figure = Figure(figsize=(11.4, 3.7))
        left, middle, right = figure.subplots(1, 3)
        show_distributions(families["plain addition"], left)
        show_critical(families, middle)
        show_collapse(families["plain addition"], right)
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
        xlim=(0, 1),
    )
    ax.legend(title="p", loc="lower right", ncols=2)
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
        title="The critical fraction is no constant",
    )
    ax.set_xticks([5, 10, 20, 40, 60], ["5", "10", "20", "40", "60"])
    ax.set_xticks([], minor=True)
    ax.set_yticks([0.1, 0.2, 0.4, 0.7], ["0.1", "0.2", "0.4", "0.7"])
    ax.set_yticks([], minor=True)
    ax.legend()
    return ax


def show_collapse(measured: Sequence[tuple[Row, Any]], ax: Axes | None = None) -> Axes:
    """Draw the same curves over 2k/p - ln p, in which the last of p rare events arrives by Gumbel's law.

    A random sample holds two symbols, so after k of them about p exp(-2k/p) symbols are in none.
    """
    ax = Figure().subplots() if ax is None else ax
    for (row, sizes), color in zip(measured, graded_colors(len(measured)), strict=True):
        x = 2 * np.sort(sizes) / row["tokens"] - math.log(row["tokens"])
        ax.step(x, np.arange(1, len(x) + 1) / len(x), where="post", color=color)
    x = np.linspace(-1, 8, 200)
    ax.plot(x, np.exp(-np.exp(-x)), color="#888888", linestyle="--", linewidth=1, label="every symbol drawn")
    ax.set(
        xlabel=r"$2k/p - \ln p$ after $k$ samples",
        ylabel="probability of a unique representation",
        title="Only the last symbol matters, for large p",
        xlim=(-1, 8),
    )
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
