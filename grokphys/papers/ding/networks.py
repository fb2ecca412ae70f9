"""Ding et al., networks of many sizes and decays, and single runs: Figures 4, 5, 9 (a), 10, 13 to 15."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.circles.fourier import fourier_signals, survives, surviving_frequencies
from analysis.circles.survival import circle_counts
from analysis.laws.ode import fit_trajectories
from analysis.plots.figures import graded_colors, show_coefficients, style
from analysis.stats.intervals import Interval, mean
from grokphys.output import Budget, save_figure, write_csv
from grokphys.papers.ding.training import DECAY, SIZES, Circles, audit, columns, show_intervals, train_circles
from grokphys.report import circles as ding
from nets.models import EmbeddingMLP
from nets.training import train

Row = dict[str, Any]
DEAD = "#b0b0b0"
FIXED_D: dict[Budget, Sequence[int]] = {
    "quick": (4, 8, 16, 24, 31, 48, 64),
    "default": (4, 8, 16, 32, 48, 59, 72, 96, 128),
    "paper": tuple(range(4, 132, 4)),
}
MODULI: dict[Budget, Sequence[int]] = {
    "quick": (17, 23, 31, 37),
    "default": (17, 29, 43, 59, 79),
    "paper": (17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97),
}
ALL_MODULI: dict[Budget, Sequence[int]] = {
    "quick": (24, 25, 26, 27, 28, 29, 30, 31),
    "default": (17, 18, 19, 24, 25, 29, 30, 36, 37, 42, 43, 48, 49, 53, 54, 59, 60),
    "paper": tuple(range(17, 98)),
}
DIMS: dict[Budget, Sequence[int]] = {
    "quick": (8, 16, 32, 64),
    "default": (16, 32, 64, 96, 128),
    "paper": (16, 32, 48, 64, 80, 96, 112, 128),
}
COUNTED: dict[Budget, int] = {"quick": 5, "default": 10, "paper": 100}
"""Runs for each p or d; the paper has 100."""
DECAYS: dict[Budget, Sequence[float]] = {
    "quick": (0.0, 0.1, 0.3, 0.5, 1.0, 2.0),
    "default": (0.0, 0.01, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 2.0),
    "paper": (0.0, 0.001, 0.003, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0),
}
FITTED: dict[Budget, int] = {"quick": 2, "default": 8, "paper": 50}
"""Runs for each d that are fitted one by one."""
FEW: dict[Budget, int] = {"quick": 3, "default": 4, "paper": 20}
"""Runs of full length for each setting."""


# -- Figure 4 ----------------------------------------------------------------------------------------------


def frozen(out: Path, budget: Budget) -> list[Path]:
    """Figure 4: test loss against d where only the layers are trained, at snapshots."""
    size, runs = SIZES[budget], FEW[budget]
    # The paper's figure ends at 10 000 steps.
    steps = min(size.steps, 10000)
    snapshots = [*(step for step in (100, 300, 1000, 2000, 4000) if step < steps), steps]
    rows: list[Row] = []
    for d in FIXED_D[budget]:
        trained = train(
            EmbeddingMLP(tokens=size.tokens, dim=d),
            runs=runs,
            steps=steps,
            weight_decay=DECAY,
            freeze_embedding=True,
            record=snapshots,
            observables=("train_loss", "validation_loss"),
        )
        for at, step in enumerate(snapshots):
            row: Row = {"d": d, "step": step}
            for name in ("validation_loss", "train_loss"):
                # Losses differ by factors: geometric mean and its interval.
                found = columns(name, mean(np.log(trained.observables[name][:, at])))
                row |= {key: value if key == "count" else np.exp(value) for key, value in found.items()}
            rows.append(row)
    with style():
        figure = Figure(figsize=(9.6, 3.7))
        first, second = figure.subplots(1, 2)
        for ax, name, label in (
            (first, "validation_loss", "test loss"),
            (second, "train_loss", "training loss"),
        ):
            for step, color in zip(snapshots, graded_colors(len(snapshots)), strict=True):
                chosen = [row for row in rows if row["step"] == step]
                x = [row["d"] for row in chosen]
                ax.plot(x, [row[name] for row in chosen], "o-", color=color, markersize=3.5, label=str(step))
                ax.fill_between(
                    x,
                    *([row[f"{name}_{side}"] for row in chosen] for side in ("low", "high")),
                    color=color,
                    alpha=0.12,
                    linewidth=0,
                )
            ax.axvline(size.tokens, color="#444444", linewidth=0.8, linestyle=":")
            ax.set(xlabel="embedding dimension d (dotted: d = p)", ylabel=label, yscale="log")
        first.set_title(f"frozen embeddings, p = {size.tokens}")
        second.set_title(f"geometric mean of {runs} networks, 95 % interval")
        first.legend(title="step", loc="best", ncols=2)
        picture = save_figure(figure, out / "ding-4.png")
    last = {row["d"]: row["validation_loss"] for row in rows if row["step"] == steps}
    print(
        f"  test loss after {steps} steps (the paper: 10000): "
        + ", ".join(f"{loss:.2g} (d = {d})" for d, loss in last.items())
        + f"; {runs} networks each, embeddings frozen"
    )
    return [write_csv(out / "ding-4.csv", rows), picture]


# -- Figures 5, 10 and 14 ----------------------------------------------------------------------------------


def by_size(out: Path, budget: Budget) -> list[Path]:
    """Figure 5: number of surviving circles against p at one d, and against d at one p."""
    size, runs = SIZES[budget], COUNTED[budget]
    by_p = {(p, size.dim): 0 for p in MODULI[budget]}
    print(f"  {size}; {runs} runs each (the paper: 100)")
    found, rows = _count(by_p | {(size.tokens, d): 1 for d in DIMS[budget]}, runs, size.steps)
    with style():
        figure = Figure(figsize=(9.6, 3.6))
        left, right = figure.subplots(1, 2, sharey=True)
        _show_counts(left, [row for row in rows if row["d"] == size.dim], "p")
        left.set(xlabel="modulus p", ylabel="circles that survive")
        left.set_title(f"d = {size.dim}, {runs} runs each, mean and 95 % interval")
        _show_counts(right, [row for row in rows if row["p"] == size.tokens], "d")
        right.set(xlabel="embedding dimension d", title=f"p = {size.tokens}; hollow: mostly undecided")
        left.set_ylim(0, None)
        left.set_xticks(MODULI[budget])
        right.set_xticks(DIMS[budget])
        picture = save_figure(figure, out / "ding-5.png")
    print("  " + audit([one for (p, _), one in found.items() if p == size.tokens]))
    return [write_csv(out / "ding-5.csv", _flat(rows)), picture]


def all_moduli(out: Path, budget: Budget) -> list[Path]:
    """Figure 14: number of surviving circles against p, prime or not."""
    size, runs = SIZES[budget], COUNTED[budget]
    moduli = ALL_MODULI[budget]
    print(f"  {size}, but p; {runs} runs each (the paper does not say how many)")
    found, rows = _count({(p, size.dim): 2 * (p == max(moduli)) for p in moduli}, runs, size.steps)
    for row in rows:
        row["prime"] = all(row["p"] % q for q in range(2, row["p"]))
    with style():
        figure = Figure(figsize=(6.4, 3.8))
        ax = figure.subplots()
        ax.plot(
            [row["p"] for row in rows],
            [row["circles"].estimate for row in rows],
            color="#cccccc",
            linewidth=1,
        )
        for prime, label in ((True, "prime p"), (False, "composite p")):
            _show_counts(ax, [row for row in rows if row["prime"] == prime], "p", linestyle="", label=label)
        ax.set(xlabel="modulus p", ylabel="circles that survive", ylim=(0, None))
        ax.set_title(f"d = {size.dim}, {runs} runs each, 95 % intervals; hollow: mostly undecided")
        ax.legend(loc="lower right")
        picture = save_figure(figure, out / "ding-14.png")
    print("  " + audit([found[max(found)]]))
    return [write_csv(out / "ding-14.csv", _flat(rows)), picture]


def by_decay(out: Path, budget: Budget) -> list[Path]:
    """Figure 10: number of circles after training of full length against weight decay."""
    size, runs, decays = SIZES[budget], FEW[budget], DECAYS[budget]
    trained = train(
        size.model,
        runs=runs * len(decays),
        steps=size.steps,
        weight_decay=np.repeat(decays, runs).tolist(),
        record=[size.steps],
        observables=("validation_accuracy",),
    )
    signals = fourier_signals(trained.final)
    limits = {"twice the mean": survives(signals), "signal above 10": survives(signals, threshold=10.0)}
    accuracy = trained.observables["validation_accuracy"][:, -1].reshape(-1, runs)
    rows: list[Row] = [
        {"weight_decay": decay, "limit": name}
        | columns("circles", mean(alive.sum(axis=1)[k * runs : (k + 1) * runs]))
        | {"validation_accuracy": float(accuracy[k].mean())}
        for name, alive in limits.items()
        for k, decay in enumerate(decays)
    ]
    with style():
        figure = Figure(figsize=(9.6, 3.6))
        left, right = figure.subplots(1, 2)
        for n, name in enumerate(limits):
            values = [mean(limits[name].sum(axis=1)[k * runs : (k + 1) * runs]) for k in range(len(decays))]
            show_intervals(left, decays, values, label=name, color=f"C{n}")
        left.set(ylabel="circles that survive", ylim=(0, None))
        left.legend(loc="best")
        left.set_title(f"p = {size.tokens}, d = {size.dim}, {size.steps} steps, {runs} runs each")
        show_intervals(right, decays, [mean(values) for values in accuracy], color="C2")
        right.set(ylabel="test accuracy", ylim=(0, 1.03))
        for ax in (left, right):
            ax.set_xscale("symlog", linthresh=min(decay for decay in decays if decay))
            ax.set_xlim(0, None)
            ax.set_xlabel("weight decay (linear below the first)")
        picture = save_figure(figure, out / "ding-10.png")
    print(f"  {size}; {runs} runs each, all of full length")
    for name in limits:
        text = ", ".join(f"{r['weight_decay']:g}: {r['circles']:.1f}" for r in rows if r["limit"] == name)
        print(f"  circles by weight decay, {name}: {text}")
    return [write_csv(out / "ding-10.csv", rows), picture]


def _count(
    sizes: dict[tuple[int, int], int], runs: int, steps: int
) -> tuple[dict[tuple[int, int], Circles], list[Row]]:
    """Train networks of each (p, d), so many of them to the end, and tabulate the circles that survive."""
    found = {
        (p, d): train_circles(EmbeddingMLP(tokens=p, dim=d), runs=runs, steps=steps, audited=audited)
        for (p, d), audited in sizes.items()
    }
    keys = [key for key, one in found.items() for _ in one.counts]
    counts = np.concatenate([one.counts for one in found.values()])
    rows = circle_counts(counts, {"p": [p for p, _ in keys], "d": [d for _, d in keys]})
    for row in rows:
        one = found[row["p"], row["d"]]
        row["undecided"] = int((~one.decided).sum())
        left = f", {row['undecided']} of {runs} runs undecided" if row["undecided"] else ""
        print(f"  p = {row['p']}, d = {row['d']}: {row['circles'].format(1)} circles{left}")
    return found, rows


def _show_counts(ax: Axes, rows: list[Row], name: str, **look: Any) -> None:
    """Draw circles over p or d; hollow where at least half of the runs were undecided at the end."""
    show_intervals(ax, [row[name] for row in rows], [row["circles"] for row in rows], **look)
    open_ = [row for row in rows if 2 * row["undecided"] >= row["circles"].count]
    places, counts = [row[name] for row in open_], [row["circles"].estimate for row in open_]
    ax.plot(places, counts, linestyle="", marker="o", markersize=2.4, color="white", zorder=5)


def _flat(rows: list[Row]) -> list[Row]:
    """Rows whose circles are an estimate and its interval, as columns."""
    return [row | columns("circles", row["circles"]) for row in rows]


# -- Figures 13 and 15 -------------------------------------------------------------------------------------


def gradients(out: Path, budget: Budget) -> list[Path]:
    """Figure 13: the gradient of the loss by the embedding, on the Fourier basis, over time (Appendix D)."""
    size = SIZES["paper"]
    steps = {"quick": 1000, "default": 2000, "paper": 30000}[budget]
    trained = train(
        size.model,
        steps=steps,
        weight_decay=DECAY,
        record="5:1000,50",
        observables=("gradient",),
    )
    slopes = fourier_signals(trained.observables["gradient"][0])
    signals = fourier_signals(trained.positions[0])
    alive = surviving_frequencies(trained.final[0]).tolist()
    with style():
        figure = Figure(figsize=(10.4, 3.7))
        axes = figure.subplots(1, 2)
        for ax, first, title in (
            (axes[0], 0, "Fourier norm of ∂L/∂E; survivors in colour"),
            (axes[1], 100, "steps 100 to 1000"),
        ):
            window = (trained.steps >= first) & (trained.steps <= (1000 if first else steps))
            for k in sorted(range(1, slopes.shape[1] + 1), key=lambda k: k in alive):
                look: Any = {"color": DEAD, "linewidth": 0.6}
                if k in alive:
                    look = {"color": f"C{alive.index(k) % 6}", "linewidth": 1.4, "label": f"k = {k}"}
                ax.plot(trained.steps[window], slopes[window, k - 1], **look)
            ax.set(xlabel="step", ylabel="‖Fourier transform of ∂L/∂E‖ at k", title=title)
            ax.set_ylim(0, None)
        if alive:
            axes[0].legend(loc="upper right")
        picture = save_figure(figure, out / "ding-13.png")
    largest = slopes.max(axis=1)
    peak = int(largest.argmax())
    late = float(largest[np.searchsorted(trained.steps, 1000)] / largest[peak])
    print(
        f"  one run, p = {size.tokens}, d = {size.dim}, {steps} steps (the paper: {size.steps}): "
        f"the gradient is largest at step {trained.steps[peak]}, and {late:.1e} of that at step 1000"
    )
    rows: list[Row] = [
        {
            "step": int(step),
            "frequency": k + 1,
            "survives": k + 1 in alive,
            "gradient": float(slopes[at, k]),
            "signal": float(signals[at, k]),
        }
        for at, step in enumerate(trained.steps)
        for k in range(slopes.shape[1])
    ]
    return [write_csv(out / "ding-13.csv", rows), picture]


def three_fits(out: Path, budget: Budget) -> list[Path]:
    """Figure 15: matrices of Lasso fits to three more runs (Appendix G)."""
    size, runs, steps = SIZES["paper"], 3, 1000
    trained = train(size.model, runs=runs, steps=steps, weight_decay=DECAY, record=1, observables=())
    rows: list[Row] = []
    with style():
        figure = Figure(figsize=(15.0, 4.8))
        for run, (ax, found) in enumerate(
            zip(figure.subplots(1, runs), ding.signals_of(trained), strict=True)
        ):
            fit = fit_trajectories(found.values, **ding.RECIPES["Lasso, α = 0.01"])
            kept = np.count_nonzero(fit.A)
            title = f"run {run}: {kept} coefficients, R² {fit.r2_in_sample:.2f} in sample"
            show_coefficients(fit.A, ax, marked=found.survivors, title=title)
            print(
                f"  run {run}: survivors {', '.join(map(str, found.survivors))}; {kept} of {fit.A.size} "
                f"coefficients are not 0, {fit.converged.sum()} of {len(fit.converged)} targets converged; "
                f"R² in sample {fit.r2_in_sample:.3f} of changes, {fit.r2_rollout:.3f} of the rollout"
            )
            rows += [
                {"run": run, "frequency": int(i) + 1, "by": int(j) + 1, "coefficient": float(fit.A[i, j])}
                for i, j in np.argwhere(fit.A)
            ]
        picture = save_figure(figure, out / "ding-15.png")
    print(f"  p = {size.tokens}, d = {size.dim}, steps 0 to {steps}, survivors as of the last")
    return [write_csv(out / "ding-15.csv", rows), picture]


def fits_by_size(out: Path, budget: Budget) -> list[Path]:
    """Figure 9 (a): R² in sample of the linear ODE against the embedding dimension."""
    runs, steps = FITTED[budget], 1000
    tokens, dims = SIZES["paper"].tokens, DIMS[budget]
    scores: dict[str, list[Interval]] = {name: [] for name in ding.RECIPES}
    rows: list[Row] = []
    for dim in dims:
        trained = train(
            EmbeddingMLP(tokens=tokens, dim=dim),
            runs=runs,
            steps=steps,
            weight_decay=DECAY,
            record=1,
            observables=(),
        )
        signals = [found.values for found in ding.signals_of(trained)]
        for name, recipe in ding.RECIPES.items():
            fits = [fit_trajectories(values, **recipe) for values in signals]
            scores[name].append(mean([fit.r2_in_sample for fit in fits]))
            rows += [
                {"d": dim, "run": run, "fit": name, "changes": fit.r2_in_sample, "rollout": fit.r2_rollout}
                for run, fit in enumerate(fits)
            ]
    with style():
        figure = Figure(figsize=(5.2, 3.6))
        ax = figure.subplots()
        for name, values in scores.items():
            show_intervals(ax, dims, values, label=name)
        ax.set(xlabel="embedding dimension d", ylabel="R² of changes, in sample", ylim=(None, 1.02))
        ax.set_xticks(dims)
        ax.set_title(f"p = {tokens}, {runs} runs each, mean and 95 % interval")
        ax.legend()
        picture = save_figure(figure, out / "ding-9a.png")
    for name, values in scores.items():
        print(f"  {name}: " + ", ".join(f"d = {d}: {v.format(3)}" for d, v in zip(dims, values, strict=True)))
    print(f"  {runs} runs each of {steps} steps, each fitted alone")
    return [write_csv(out / "ding-9a.csv", rows), picture]
