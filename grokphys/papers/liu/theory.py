"""Liu et al., *Towards Understanding Grokking*: the figures that its effective theory makes for p = 10."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.plots.figures import graded_colors, style
from analysis.stats.intervals import mean, proportion
from analysis.stats.transitions import Transition, fit_transition
from grokphys.output import Budget, save_figure, write_csv
from physics import (
    EffectiveTheory,
    Operation,
    closures,
    grokking_rates,
    predicted_accuracy,
    random_training_sets,
    representation_quality,
)

TOKENS = 10
LEARNING_RATE = 1e-3
"""η of the embeddings in Figures 4 and 5."""
SETS: dict[Budget, int] = {"quick": 400, "default": 10_000, "paper": 10_000}
RATE_SETS: dict[Budget, int] = {"quick": 100, "default": 2000, "paper": 10_000}
PUBLISHED_CRITICAL = 0.4

Row = dict[str, Any]
Masks = NDArray[np.bool_]


def training_sets(operation: Operation, sizes: Any, sets: int, seed: int) -> dict[int, Masks]:
    """Independent random training sets of every size, (sets, |D_0|) each."""
    streams = np.random.SeedSequence(seed).spawn(len(sizes))
    return {
        int(size): random_training_sets(operation, int(size), sets=sets, seed=stream)
        for size, stream in zip(sizes, streams, strict=True)
    }


def _sizes(operation: Operation) -> range:
    return range(1, len(operation.samples) + 1)


# -- Figure 4 (a) ------------------------------------------------------------------------------------------


def probability(out: Path, budget: Budget) -> list[Path]:
    """Figure 4 (a): probability that the training set implies a unique linear representation, p = 10."""
    rows, fit = unique_probability(Operation(TOKENS), SETS[budget])
    print(
        f"  r_c = {fit.critical.format(4)}, 95 % profile likelihood (published: about {PUBLISHED_CRITICAL}); "
        f"deviance {fit.misfit:.1f} per degree of freedom"
    )
    with style():
        figure = Figure(figsize=(5.2, 3.6))
        show_probability(rows, fit, figure.subplots())
        picture = save_figure(figure, out / "liu-4a.png")
    critical = {"r_c": fit.critical.estimate, "low": fit.critical.low, "high": fit.critical.high}
    fitted = [{**critical, "width": fit.width, "shape": fit.shape, "misfit": fit.misfit}]
    return [write_csv(out / "liu-4a.csv", rows), write_csv(out / "liu-4a-fit.csv", fitted), picture]


def unique_probability(operation: Operation, sets: int, seed: int = 41) -> tuple[list[Row], Transition]:
    """Fraction of training sets of each size that determine all, and the transition of that fraction."""
    rows = []
    for size, masks in training_sets(operation, _sizes(operation), sets, seed).items():
        complete = int(closures(operation, masks).complete.sum())
        interval = proportion(complete, sets)
        rows.append(
            {
                "size": size,
                "fraction": size / len(operation.samples),
                "sets": sets,
                "unique": complete,
                "probability": interval.estimate,
                "low": interval.low,
                "high": interval.high,
            }
        )
    fit = fit_transition(
        [row["fraction"] for row in rows], [row["unique"] for row in rows], [row["sets"] for row in rows]
    )
    return rows, fit


def show_probability(rows: list[Row], fit: Transition, ax: Axes | None = None) -> Axes:
    """Draw the probability of a unique representation over the training fraction, with its fit."""
    ax = Figure().subplots() if ax is None else ax
    fraction, p, low, high = (
        np.array([row[k] for row in rows]) for k in ("fraction", "probability", "low", "high")
    )
    smooth = np.linspace(fraction.min(), 1, 400)
    ax.axvspan(fit.critical.low, fit.critical.high, color="#d1603d", alpha=0.3, linewidth=0)
    ax.axvline(fit.critical.estimate, color="#d1603d", linewidth=1, label=f"$r_c$ = {fit.critical.format(3)}")
    ax.plot(smooth, fit.probability(smooth), color="#999999", label="fit")
    error = np.clip([p - low, high - p], 0, None)
    ax.errorbar(
        fraction, p, error, fmt="o", markersize=3.5, linewidth=1, label=f"{rows[0]['sets']} sets a point"
    )
    ax.set(
        xlabel="training data fraction",
        ylabel="probability",
        title="Unique linear representation, p = 10 (Fig. 4a)",
        xlim=(0, 1),
        ylim=(-0.03, 1.03),
    )
    ax.legend(loc="lower right")
    return ax


# -- Figure 4 (c) ------------------------------------------------------------------------------------------


def trajectories(out: Path, budget: Budget) -> list[Path]:
    """Figure 4 (c): one-dimensional embeddings move in the effective theory, p = 10, 45 samples."""
    full = EffectiveTheory(TOKENS)
    mask = random_training_sets(full, 45, seed=3)[0]
    theory = EffectiveTheory(TOKENS, pairs=full.operation.samples[mask])
    n_h = theory.grokking_steps(LEARNING_RATE)
    steps = np.linspace(0, 5 * n_h, 501)
    E = theory.solve(theory.start(np.random.default_rng(5)), steps * LEARNING_RATE)[:, :, 0]
    E = (E - E.mean(axis=1, keepdims=True)) / E.std(axis=1, keepdims=True)
    quality = representation_quality(E[:, :, None], theory, delta=0.1)
    formed = steps[np.argmax(quality > 0.95)] / n_h
    print(f"  n_h = 1/(λ_3 η) = {n_h:.0f} steps; RQI (δ = 0.1) passes 0.95 at {formed:.1f} n_h")
    rows = [
        {"step": float(s), "steps_over_n_h": float(s / n_h), "rqi_delta_0.1": float(q)}
        | {f"E_{k}": float(x) for k, x in enumerate(state)}
        for s, q, state in zip(steps, quality, E, strict=True)
    ]
    with style():
        figure = Figure(figsize=(5.2, 3.6))
        show_trajectories(steps, E, n_h, figure.subplots())
        picture = save_figure(figure, out / "liu-4c.png")
    return [write_csv(out / "liu-4c.csv", rows), picture]


def show_trajectories(steps: Any, E: Any, n_h: float, ax: Axes | None = None) -> Axes:
    """Draw normalised embeddings (frames, tokens) over the steps, with n_h and 3 n_h marked."""
    ax = Figure().subplots() if ax is None else ax
    for token, color in enumerate(graded_colors(E.shape[1])):
        ax.plot(steps, E[:, token], color=color)
        ax.annotate(
            str(token),
            (steps[-1], E[-1, token]),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            color=color,
        )
    for multiple, name in ((1, "$n_h$"), (3, "$3n_h$")):
        ax.axvline(multiple * n_h, color="#888888", linestyle=":", linewidth=1)
        ax.annotate(name, (multiple * n_h, ax.get_ylim()[1]), xytext=(3, -10), textcoords="offset points")
    ax.set(
        xlabel=r"steps of $\eta$ = 0.001",
        ylabel="normalised embedding",
        title="Effective theory, p = 10, 45 of 55 samples (Fig. 4c)",
        xlim=(0, steps[-1]),
    )
    return ax


# -- Figure 5 ----------------------------------------------------------------------------------------------


def rates(out: Path, budget: Budget) -> list[Path]:
    """Figure 5 (a): the grokking rate λ_3 over the training data fraction, p = 10."""
    table = rate_table(Operation(TOKENS), RATE_SETS[budget])
    print(
        f"  mean λ_3 of the complete data: {table[55].mean():.4f}; exactly 0 for all sets of at most "
        f"{max((size for size, rate in table.items() if not rate.any()), default=0)} samples"
    )
    with style():
        figure = Figure(figsize=(5.2, 3.6))
        show_rates(table, figure.subplots())
        picture = save_figure(figure, out / "liu-5a.png")
    return [write_csv(out / "liu-5a.csv", rate_rows(table)), picture]


def step_rows(table: dict[int, NDArray[np.float64]]) -> list[Row]:
    """Median and quartiles of the grokking steps n_h = 1/(λ_3 η) for each size; infinite where λ_3 = 0."""
    rows = []
    for size, rate in table.items():
        n_h = np.divide(1 / LEARNING_RATE, rate, out=np.full(len(rate), np.inf), where=rate > 0)
        low, median, high = np.quantile(n_h, [0.25, 0.5, 0.75], method="inverted_cdf")
        rows.append(
            {"size": size, "fraction": size / max(table), "sets": len(rate)}
            | {"n_h_quartile_1": low, "n_h_median": median, "n_h_quartile_3": high}
        )
    return rows


def rate_table(operation: Operation, sets: int, seed: int = 51) -> dict[int, NDArray[np.float64]]:
    """Grokking rates (sets,) of random training sets of each size."""
    return {
        size: grokking_rates(operation, masks)
        for size, masks in training_sets(operation, _sizes(operation), sets, seed).items()
    }


def rate_rows(table: dict[int, NDArray[np.float64]]) -> list[Row]:
    """Mean with its interval, quartiles, and how often the rate is positive, for each size."""
    rows = []
    for size, rate in table.items():
        centre, positive = mean(rate), proportion(int((rate > 0).sum()), len(rate))
        quartiles = np.quantile(rate, [0.25, 0.5, 0.75])
        rows.append(
            {"size": size, "fraction": size / max(table), "sets": len(rate)}
            | {"mean": centre.estimate, "low": centre.low, "high": centre.high}
            | {f"quartile_{k + 1}": float(q) for k, q in enumerate(quartiles)}
            | {"positive": positive.estimate, "positive_low": positive.low, "positive_high": positive.high}
        )
    return rows


def show_rates(table: dict[int, NDArray[np.float64]], ax: Axes | None = None) -> Axes:
    """Draw rates of single training sets as dots, and their mean and quartiles."""
    ax = Figure().subplots() if ax is None else ax
    total = max(table)
    jitter = np.random.default_rng(0)
    for size, rate in table.items():
        few = rate[:60]
        ax.scatter(
            (size + jitter.uniform(-0.3, 0.3, len(few))) / total,
            few,
            s=2,
            color="#bbbbbb",
            linewidths=0,
            zorder=0,
        )
    rows = rate_rows(table)
    fraction = [row["fraction"] for row in rows]
    ax.fill_between(
        fraction,
        [r["quartile_1"] for r in rows],
        [r["quartile_3"] for r in rows],
        alpha=0.25,
        linewidth=0,
        label="quartiles",
    )
    ax.plot(fraction, [r["mean"] for r in rows], label="mean")
    ax.axvline(PUBLISHED_CRITICAL, color="#888888", linestyle=":", linewidth=1)
    ax.set(
        xlabel="training data fraction",
        ylabel=r"grokking rate $\lambda_3$",
        title="Grokking rate, p = 10 (Fig. 5a)",
        xlim=(0, 1.02),
        ylim=(-0.003, None),
    )
    ax.legend(loc="upper left")
    return ax


def show_steps(table: dict[int, NDArray[np.float64]], ax: Axes | None = None) -> Axes:
    """Draw the median and the quartiles of n_h; where more than a quarter never groks, the band is open."""
    ax = Figure().subplots() if ax is None else ax
    rows = step_rows(table)
    names = ("fraction", "n_h_quartile_1", "n_h_median", "n_h_quartile_3")
    fraction, low, median, high = (np.array([row[name] for row in rows]) for name in names)
    top = 10 * median[np.isfinite(median)].max()
    ax.fill_between(
        fraction,
        low,
        np.minimum(high, top),
        where=np.isfinite(low).tolist(),
        alpha=0.25,
        linewidth=0,
        label="quartiles",
    )
    ax.plot(fraction, median, label=r"median $n_h = 1/(\lambda_3\eta)$")
    ax.set(
        xlabel="training data fraction",
        ylabel=r"steps of $\eta$ = 0.001",
        yscale="log",
        ylim=(None, top),
        xlim=(0, 1.02),
        title="Grokking steps in theory, p = 10 (Fig. 5b)",
    )
    ax.legend()
    return ax


# -- Figure 10 ---------------------------------------------------------------------------------------------


def bounds(out: Path, budget: Budget) -> list[Path]:
    """Figure 10: the upper bounds RQI-bar and Acc-bar, and stopped flows beneath them, p = 10."""
    operation = Operation(TOKENS)
    each = {"quick": 4, "default": 20, "paper": 100}[budget]
    generator = np.random.default_rng(10)
    rows = []
    for size, masks in training_sets(operation, _sizes(operation), each, 101).items():
        ideal = closures(operation, masks)
        for k, mask in enumerate(masks):
            theory = EffectiveTheory(TOKENS, pairs=operation.samples[mask])
            time = 10 ** generator.uniform(0.5, 3.5)
            E = theory.solve(theory.start(generator), [time])[0]
            rows.append(
                {
                    "size": size,
                    "fraction": size / len(operation.samples),
                    "time": time,
                    "rqi_bound": float(ideal.quality[k]),
                    "accuracy_bound": float(ideal.accuracy[k]),
                    "rqi": float(representation_quality(E, theory)),
                    "accuracy": float(predicted_accuracy(E, theory)),
                }
            )
    above = sum(row["rqi"] > row["rqi_bound"] or row["accuracy"] > row["accuracy_bound"] for row in rows)
    full = [row["size"] for row in rows if row["rqi_bound"] == 1]
    print(
        f"  RQI-bar = 1 from {min(full)} samples on (r = {min(full) / 55:.2f}); {above} of {len(rows)} "
        "stopped flows above a bound, by coincidences within δ"
    )
    with style():
        figure = Figure(figsize=(9.6, 5.9))
        figure.suptitle(
            "Ideal bounds, and the effective theory stopped at random times, p = 10 (Fig. 10)", fontsize=10.5
        )
        axes = figure.subplots(2, 3)
        for line, (name, label) in zip(axes, (("rqi", "RQI"), ("accuracy", "accuracy")), strict=True):
            show_bound(rows, name, label, line)
        picture = save_figure(figure, out / "liu-10.png")
    return [write_csv(out / "liu-10.csv", rows), picture]


def show_bound(rows: list[Row], name: str, label: str, axes: Any = None) -> Any:
    """Draw a bound over the training fraction, what a stopped flow reaches, and one against the other."""
    axes = Figure().subplots(1, 3) if axes is None else axes
    fraction, bound, value = (np.array([row[k] for row in rows]) for k in ("fraction", f"{name}_bound", name))
    reach = {"rqi": r"$\overline{\mathrm{RQI}}$", "accuracy": r"$\overline{\mathrm{Acc}}$"}[name]
    for ax, y, title in ((axes[0], value, f"{label}, flow stopped"), (axes[1], bound, f"bound {reach}")):
        ax.scatter(fraction, y, s=5, alpha=0.5, linewidths=0)
        if name == "accuracy":
            ax.plot([0, 1], [0, 1], color="#d1603d", linestyle="--", linewidth=1)
        ax.set(xlabel="training data fraction", ylabel=title, xlim=(0, 1.02), ylim=(-0.03, 1.03))
    axes[2].scatter(bound, value, s=5, alpha=0.5, linewidths=0)
    axes[2].plot([0, 1], [0, 1], color="#888888", linestyle=":", linewidth=1)
    axes[2].set(
        xlabel=f"bound {reach}", ylabel=f"{label}, flow stopped", xlim=(-0.03, 1.03), ylim=(-0.03, 1.03)
    )
    return axes
