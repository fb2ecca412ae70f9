"""Liu et al.: toy networks on addition, p = 10, beside the effective theory (Figs. 3, 4b, 4d, 5b)."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.plots.figures import graded_colors, style
from analysis.stats.intervals import correlation, mean, proportion
from grokphys.output import Budget, save_figure, write_csv
from grokphys.papers.liu.theory import LEARNING_RATE, RATE_SETS, TOKENS, rate_table, show_steps, step_rows
from nets.models import DenseModel, ToyAddition
from nets.networks import networks
from nets.training import train
from physics import EffectiveTheory, Operation, grokking_rates, predicted_accuracy, representation_quality

DECODER_RATE = 3e-5
"""Far slower than the embedding: with 1e-3 the decoder memorises before a representation forms."""
DELTA = 0.1
"""Of the distance, so 0.01 of its square; RQI at 0.01 of the distance is in the tables too."""
SIZES: dict[Budget, range] = {
    "quick": range(14, 55, 10),
    "default": range(6, 55, 3),
    "paper": range(3, 55),
}
SEEDS: dict[Budget, int] = {"quick": 3, "default": 9, "paper": 25}
STEPS: dict[Budget, int] = {"quick": 4000, "default": 6000, "paper": 20_000}
SHOWN_STEPS: dict[Budget, int] = {"quick": 2500, "default": 4000, "paper": 4000}
"""Of the trajectories of Figure 4 (d)."""
GROKKED = 0.95
TRACK = 20
PARTS = ("train", "validation")

Row = dict[str, Any]


@cache
def trained_fractions(budget: Budget) -> list[Row]:
    """Networks of every training size: RQI, accuracies, steps to RQI > 0.95, and λ_3 of their own sets."""
    rows = []
    for size in SIZES[budget]:
        found, masks = measure(
            ToyAddition(TOKENS), size, SEEDS[budget], STEPS[budget], rate=DECODER_RATE, delta=DELTA
        )
        for row, rate in zip(found, grokking_rates(Operation(TOKENS), masks), strict=True):
            n_h = 1 / (rate * LEARNING_RATE) if rate > 0 else np.inf
            rows.append(row | {"lambda_3": float(rate), "n_h": float(n_h)})
    return rows


def measure(
    model: DenseModel, size: int, seeds: int, steps: int, *, rate: float, delta: float
) -> tuple[list[Row], NDArray[np.bool_]]:
    """Train networks on `size` samples each; return what became of them, and their training sets as masks."""
    assert model.theory is not None
    operation = model.theory.operation
    total = len(operation.samples)
    trained = train(
        model,
        runs=seeds,
        steps=steps,
        seed=size,
        learning_rate=rate,
        weight_decay=0.0,
        embedding_learning_rate=LEARNING_RATE,
        train_fraction=size / total,
        record=[steps],
        observables=("train_accuracy", "validation_accuracy", "layers"),
        thresholds={"quality": GROKKED},
        track=TRACK,
        delta=delta,
    )
    masks = np.zeros((seeds, total), bool)
    np.put_along_axis(masks, networks(trained).examples("train"), True, axis=1)
    embeddings = trained.final.astype(float)
    if not operation.commutes:
        side = round(model.dim**0.5)
        embeddings = embeddings.reshape(seeds, model.tokens, side, side)
    rows = []
    for k, (E, mask) in enumerate(zip(embeddings, masks, strict=True)):
        theory = replace(model.theory, pairs=operation.samples[mask])
        right, held = (float(trained.observables[f"{part}_accuracy"][k, -1]) for part in PARTS)
        rows.append(
            {"size": size, "fraction": size / total, "seed": k, "steps": steps}
            | {
                "rqi": float(representation_quality(E, theory, delta)),
                "rqi_delta_0.01": float(representation_quality(E, theory, 0.01)),
                "train_accuracy": right,
                "validation_accuracy": held,
                "accuracy": (size * right + (total - size) * held) / total,
                "predicted_accuracy": float(predicted_accuracy(E, theory, delta)),
                "steps_to_rqi": float(trained.observables["steps_to_quality"][k, -1]),
            }
        )
    return rows, masks


def setting(rows: list[Row]) -> str:
    """How many networks were trained for how long, for titles and the screen."""
    seeds = len({row["seed"] for row in rows})
    return f"{seeds} networks a size, {rows[0]['steps']} steps"


# -- Figure 3 ----------------------------------------------------------------------------------------------


def accuracies(out: Path, budget: Budget) -> list[Path]:
    """Figure 3: accuracy of trained networks, that predicted from their embeddings, and both compared."""
    rows = trained_fractions(budget)
    real, predicted = (np.array([row[k] for row in rows]) for k in ("accuracy", "predicted_accuracy"))
    difference = mean(real - predicted)
    print(
        f"  accuracy minus predicted accuracy: {difference.format(3)} on average over {len(rows)} networks; "
        f"predicted within 0.1 in {np.mean(abs(real - predicted) <= 0.1):.0%} of them ({setting(rows)}, "
        f"δ = {DELTA:g})"
    )
    with style():
        figure = Figure(figsize=(10.2, 3.5))
        figure.suptitle(f"Addition, p = 10 (Fig. 3): {setting(rows)}, δ = {DELTA:g}", fontsize=10.5)
        show_accuracies(rows, figure.subplots(1, 3))
        picture = save_figure(figure, out / "liu-3.png")
    return [write_csv(out / "liu-3.csv", rows), picture]


def show_accuracies(rows: list[Row], axes: Any = None) -> Any:
    """Draw real and predicted accuracy over the training fraction, and one against the other."""
    axes = Figure().subplots(1, 3) if axes is None else axes
    fraction, real, predicted = (
        np.array([row[k] for row in rows]) for k in ("fraction", "accuracy", "predicted_accuracy")
    )
    for ax, values, label in (
        (axes[0], real, "accuracy Acc"),
        (axes[1], predicted, r"predicted $\widehat{Acc}$"),
    ):
        ax.scatter(fraction, values, s=12, alpha=0.6, linewidths=0)
        ax.plot([0, 1], [0, 1], color="#d1603d", linestyle="--", linewidth=1, label="training set alone")
        ax.set(
            xlabel="training data fraction", ylabel=f"{label}, all samples", xlim=(0, 1.02), ylim=(0, 1.03)
        )
        ax.legend(loc="lower right")
    axes[2].scatter(predicted, real, s=12, c=fraction, cmap="viridis", linewidths=0)
    axes[2].plot([0, 1], [0, 1], color="#888888", linestyle=":", linewidth=1)
    axes[2].set(xlabel=r"predicted $\widehat{Acc}$", ylabel="accuracy Acc", xlim=(0, 1.03), ylim=(0, 1.03))
    axes[2].set_title("coloured by fraction")
    return axes


# -- Figure 4 (b), (d) -------------------------------------------------------------------------------------


def qualities(out: Path, budget: Budget) -> list[Path]:
    """Figure 4 (b): RQI of trained networks over the training data fraction, p = 10."""
    rows = trained_fractions(budget)
    with style():
        figure = Figure(figsize=(5.2, 3.6))
        show_qualities(rows, figure.subplots(), f"RQI of networks, p = {TOKENS} (Fig. 4b)")
        picture = save_figure(figure, out / "liu-4b.png")
    summary = summarise(rows, "rqi")
    above = [row["fraction"] for row in summary if row["median"] > 0.5]
    print(
        f"  the median RQI exceeds one half from r = {min(above, default=np.nan):.2f} on "
        f"(published: about 0.4; {setting(rows)}, decoder rate {DECODER_RATE:g}, δ = {DELTA:g})"
    )
    return [write_csv(out / "liu-4b.csv", rows), write_csv(out / "liu-4b-summary.csv", summary), picture]


def summarise(rows: list[Row], name: str) -> list[Row]:
    """Median, quartiles and best of a quantity, and how often RQI > 0.95, for each training size."""
    found = []
    for size in sorted({row["size"] for row in rows}):
        chosen = [row for row in rows if row["size"] == size]
        low, median, high = np.quantile([row[name] for row in chosen], [0.25, 0.5, 0.75])
        grokked = proportion(sum(np.isfinite(row["steps_to_rqi"]) for row in chosen), len(chosen))
        found.append(
            {"size": size, "fraction": chosen[0]["fraction"], "networks": len(chosen)}
            | {"quartile_1": low, "median": median, "quartile_3": high}
            | {"best": max(row[name] for row in chosen)}
            | {"grokked": grokked.estimate, "grokked_low": grokked.low, "grokked_high": grokked.high}
        )
    return found


def show_qualities(rows: list[Row], ax: Axes | None = None, title: str = "", line: str = "median") -> Axes:
    """Draw the RQI of single networks over the training fraction, and their median or best."""
    ax = Figure().subplots() if ax is None else ax
    summary = summarise(rows, "rqi")
    ax.scatter([r["fraction"] for r in rows], [r["rqi"] for r in rows], s=10, color="#999999", linewidths=0)
    ax.plot([r["fraction"] for r in summary], [r[line] for r in summary], "o-", markersize=3.5, label=line)
    ax.set(xlabel="training data fraction", ylabel="RQI", title=title, xlim=(0, 1.02), ylim=(-0.03, 1.03))
    ax.legend(loc="upper left")
    return ax


def trajectories(out: Path, budget: Budget) -> list[Path]:
    """Figure 4 (d): one-dimensional embeddings of a trained network, normalised, p = 10, 45 samples."""
    steps = SHOWN_STEPS[budget]
    trained = train(
        ToyAddition(TOKENS),
        runs=4,
        steps=steps,
        seed=3,
        learning_rate=DECODER_RATE,
        weight_decay=0.0,
        embedding_learning_rate=LEARNING_RATE,
        train_fraction=45 / 55,
        record=40,
        observables=("validation_accuracy", "layers"),
    )
    full = EffectiveTheory(TOKENS)
    quality = representation_quality(trained, full, DELTA)
    run = int(np.argmax(quality[:, -1]))
    mask = np.zeros((1, 55), bool)
    mask[0, networks(trained.run(run)).examples("train")[0]] = True
    n_h = 1 / (float(grokking_rates(full.operation, mask)[0]) * LEARNING_RATE)
    E = trained.positions[run, :, :, 0].astype(float)
    E = (E - E.mean(axis=1, keepdims=True)) / E.std(axis=1, keepdims=True)
    passed = trained.steps[quality[run] > GROKKED]
    when = f"passes {GROKKED} (δ = {DELTA:g}) after {passed[0]} steps" if len(passed) else "does not pass"
    print(
        f"  network {run} of {trained.runs} (the best RQI) {when}; "
        f"n_h = 1/(λ_3 η) = {n_h:.0f} of its training set"
    )
    rows = [
        {"step": int(s), "rqi": float(q), "n_h": n_h} | {f"E_{k}": float(x) for k, x in enumerate(state)}
        for s, q, state in zip(trained.steps, quality[run], E, strict=True)
    ]
    with style():
        figure = Figure(figsize=(5.2, 3.6))
        ax = figure.subplots()
        for token, color in enumerate(graded_colors(TOKENS)):
            ax.plot(trained.steps, E[:, token], color=color)
            place = {"xytext": (4, 0), "textcoords": "offset points", "va": "center", "color": color}
            ax.annotate(str(token), (steps, E[-1, token]), **place)
        for step in passed[:1]:
            ax.axvline(step, color="#888888", linestyle=":", linewidth=1)
            ax.annotate("RQI > 0.95", (step, ax.get_ylim()[1]), xytext=(3, -10), textcoords="offset points")
        ax.set(
            xlabel=f"steps, embedding rate {LEARNING_RATE:g}",
            ylabel="normalised embedding",
            title="Trained network, p = 10, 45 of 55 samples (Fig. 4d)",
            xlim=(0, steps),
        )
        picture = save_figure(figure, out / "liu-4d.png")
    return [write_csv(out / "liu-4d.csv", rows), picture]


# -- Figure 5 (b) ------------------------------------------------------------------------------------------


def grokking_steps(out: Path, budget: Budget) -> list[Path]:
    """Figure 5 (b): steps to RQI > 0.95 of trained networks, and n_h = 1/(λ_3 η) of the theory, p = 10."""
    rows = trained_fractions(budget)
    table = rate_table(Operation(TOKENS), RATE_SETS[budget])
    theory = step_rows(table)
    found = [row for row in rows if np.isfinite(row["steps_to_rqi"])]
    both = [row for row in found if np.isfinite(row["n_h"])]
    ratio = np.array([row["n_h"] / row["steps_to_rqi"] for row in both])
    low, median, high = np.quantile(ratio, [0.25, 0.5, 0.75]) if len(both) else [np.nan] * 3
    surprising = len(found) - len(both)
    related = correlation(*(np.log([row[name] for row in both]) for name in ("n_h", "steps_to_rqi")))
    print(
        f"  {len(found)} of {len(rows)} networks pass RQI {GROKKED} (δ = {DELTA:g}; {setting(rows)}), "
        f"{surprising} of them with λ_3 = 0; n_h of their training sets is {median:.0f} times their steps, "
        f"quartiles {low:.0f} to {high:.0f}; the logarithms correlate by {related.format(2)}"
    )
    with style():
        figure = Figure(figsize=(10.2, 3.8))
        left, right = figure.subplots(1, 2)
        show_steps(table, left)
        show_network_steps(rows, left)
        show_predicted_steps(both, right)
        picture = save_figure(figure, out / "liu-5b.png")
    return [write_csv(out / "liu-5b.csv", theory), write_csv(out / "liu-5b-networks.csv", rows), picture]


def show_network_steps(rows: list[Row], ax: Axes) -> Axes:
    """Add the networks to the theory: dots, those that never pass in a row at the top."""
    steps = np.array([row["steps_to_rqi"] for row in rows])
    fraction = np.array([row["fraction"] for row in rows])
    passed = np.isfinite(steps)
    top = 0.8 * ax.get_ylim()[1]
    look: dict[str, Any] = {"s": 14, "color": "#d1603d", "linewidths": 0, "alpha": 0.7, "zorder": 3}
    ax.scatter(fraction[passed], steps[passed], label=f"networks, RQI > {GROKKED}", **look)
    never = np.full((~passed).sum(), top)
    look |= {"marker": "^", "s": 12, "alpha": 0.3}
    ax.scatter(fraction[~passed], never, label=f"never in {rows[0]['steps']} steps", **look)
    ax.set(title="Grokking steps, p = 10 (Fig. 5b)", ylim=(min([*steps[passed], 100.0]) / 2, 1.3 * top))
    ax.legend(fontsize=8, loc="center left")
    return ax


def show_predicted_steps(rows: list[Row], ax: Axes | None = None) -> Axes:
    """Draw the steps of each network against n_h of its own training set."""
    ax = Figure().subplots() if ax is None else ax
    if not rows:
        ax.set_title("No network passed")
        return ax
    n_h, steps, fraction = (np.array([row[k] for row in rows]) for k in ("n_h", "steps_to_rqi", "fraction"))
    points = ax.scatter(n_h, steps, c=fraction, s=16, cmap="viridis", linewidths=0, vmin=0, vmax=1)
    ax.figure.colorbar(points, ax=ax, label="training data fraction")
    ax.set(
        xscale="log",
        yscale="log",
        xlabel=r"$n_h = 1/(\lambda_3\eta)$ of the same training set",
        ylabel=f"steps to RQI > {GROKKED}",
        title="Each network against its own prediction",
    )
    return ax
