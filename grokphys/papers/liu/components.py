"""Liu et al., Figures 1, 21, 22 and Appendix K: the embeddings of one transformer, on their components."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.decomposition import PCA

import nets
from analysis.plots.figures import style, token_colors
from grokphys.output import Budget, save_figure, write_csv
from grokphys.papers.liu.networks import SEED, SETTINGS, Setting, describe
from grokphys.papers.liu.phases import Row
from nets import TokenTransformer
from nets.engines.ensemble import draw
from physics.trajectory import Trajectory


@lru_cache(maxsize=1)
def _network(budget: Budget) -> Trajectory:
    """One network with all of its layers at some 40 steps."""
    setting = SETTINGS[budget]
    record = nets.recording_steps(max(setting.steps // 40, 1), setting.steps)
    observables = ("train_accuracy", "validation_accuracy", "layers")
    return nets.train(
        setting.network,
        record=record.tolist(),
        observables=observables,
        **setting.options,
        **setting.decoder,
    )


def _frequency(E: NDArray[Any]) -> int:
    """Frequency 1 … ⌊p/2⌋ of the largest part of a centred projection (tokens, axes)."""
    power = (np.abs(np.fft.rfft(E, axis=0)) ** 2).sum(axis=1)
    return int(power[1:].argmax()) + 1


def _share(E: NDArray[Any], frequency: int) -> float:
    """Part of the variance of a projection (tokens, axes) that one frequency holds."""
    power = (np.abs(np.fft.fft(E - E.mean(axis=0), axis=0)) ** 2).sum(axis=1)
    return float(2 * power[frequency] / power.sum())


def show_circle(E: Any, frequency: int, ax: Axes | None = None, *, title: str = "") -> Axes:
    """Draw a projection (tokens, 2); colours and the line go round the circle of that frequency."""
    ax = Figure().subplots() if ax is None else ax
    tokens = len(E)
    order = np.argsort(frequency * np.arange(tokens) % tokens)
    ax.plot(*E[np.append(order, order[0])].T, color="#bbbbbb", linewidth=0.8, zorder=1)
    colors = np.empty((tokens, 4))
    colors[order] = token_colors(tokens)
    ax.scatter(E[:, 0], E[:, 1], s=42, c=colors, zorder=2, linewidths=0)
    for token, (x, y) in enumerate(E):
        ax.annotate(str(token), (x, y), (4, 3), textcoords="offset points", fontsize=6)
    ax.set_title(title)
    ax.set_aspect("equal", "datalim")
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    return ax


def emergence(out: Path, budget: Budget) -> list[Path]:
    """Figure 1: the first two principal components of the embeddings before and after 90 % are reached."""
    setting, trained = SETTINGS[budget], _network(budget)
    accuracy = trained.observables["validation_accuracy"][0]
    last = len(accuracy) - 1
    general = int(np.argmax(accuracy >= 0.9)) or last
    frames = sorted({0, general // 2, general, (general + last) // 2, last})
    final = PCA(2).fit_transform(trained.positions[0, -1])
    frequency = _frequency(final)
    rows = []
    with style():
        figure = Figure(figsize=(2.6 * len(frames), 3.1))
        for ax, frame in zip(figure.subplots(1, len(frames)), frames, strict=True):
            projected = PCA(2).fit_transform(trained.positions[0, frame])
            step, train = int(trained.steps[frame]), trained.observables["train_accuracy"][0, frame]
            text = f"step {step}\ntrain {train:.0%}, validation {accuracy[frame]:.0%}"
            show_circle(projected, frequency, ax, title=text)
            rows += [
                {"step": step, "token": token, "pc_1": float(x), "pc_2": float(y)}
                | {"validation_accuracy": float(accuracy[frame])}
                for token, (x, y) in enumerate(projected)
            ]
            print(
                f"  step {step}: validation {accuracy[frame]:.0%}, frequency {frequency} holds "
                f"{_share(projected, frequency):.0%} of the first two components"
            )
        picture = save_figure(figure, out / "liu-1.png")
    print(f"  {describe(setting)}, one seed")
    return [write_csv(out / "liu-1.csv", rows), picture]


def tickets(out: Path, budget: Budget) -> list[Path]:
    """Figure 21: the embeddings at the start already hold some of the structure, on the final axes."""
    setting, trained = SETTINGS[budget], _network(budget)
    start, end = trained.positions[0, 0], trained.positions[0, -1]
    axes = PCA(2).fit(end)
    views = {
        "final, on its own components": axes.transform(end),
        "initial, on its own components": PCA(2).fit_transform(start),
        "initial, on the final components": axes.transform(start),
    }
    frequency = _frequency(views["final, on its own components"])
    # A random plane has the same chance for each of the (p - 1)/2 frequencies.
    print(
        f"  {describe(setting)}, one seed; part of the variance that frequency {frequency} holds, "
        f"{2 / (setting.model.tokens - 1):.0%} by chance:"
    )
    rows = []
    with style():
        figure = Figure(figsize=(9.9, 3.5))
        for ax, (name, projected) in zip(figure.subplots(1, 3), views.items(), strict=True):
            share = _share(projected, frequency)
            print(f"    {name}: {share:.0%}")
            title = f"{name[0].upper()}{name[1:]}\nfrequency {frequency}: {share:.0%} of the variance"
            show_circle(projected, frequency, ax, title=title)
            rows += [
                {"view": name, "token": token, "pc_1": float(x), "pc_2": float(y)}
                for token, (x, y) in enumerate(projected)
            ]
        picture = save_figure(figure, out / "liu-21.png")
    return [write_csv(out / "liu-21.csv", rows), picture]


def projections(out: Path, budget: Budget) -> list[Path]:
    """Figure 22: accuracy with the embeddings reduced to their first n principal components, then or final.

    Projected onto the components of scikit-learn's PCA, its mean included, and back.
    """
    setting, trained = SETTINGS[budget], _network(budget)
    counts = (2, 4, 6, 10)
    final = {n: PCA(n).fit(trained.positions[0, -1]) for n in counts}
    split = _split(setting)
    rows: list[Row] = []
    for frame, step in enumerate(trained.steps.tolist()):
        E = trained.positions[0, frame]
        versions = {("actual", setting.model.dim): E}
        for n in counts:
            versions["final", n] = final[n].inverse_transform(final[n].transform(E))
            own = PCA(n).fit(E)
            versions["current", n] = own.inverse_transform(own.transform(E))
        for (components, n), projected in versions.items():
            found = _accuracies(setting.model, trained, frame, projected, split)
            rows.append({"step": step, "components": components, "n": n, **found})
    last = {
        row["n"]: row["validation_accuracy"] for row in rows[-len(versions) :] if row["components"] == "final"
    }
    print(
        f"  {describe(setting)}, one seed; validation accuracy at the end, by the number of components: "
        + ", ".join(f"{n}: {last[n]:.0%}" for n in counts)
    )
    with style():
        figure = Figure(figsize=(10.4, 3.8))
        for ax, part in zip(figure.subplots(1, 2, sharey=True), ("train", "validation"), strict=True):
            show_projected(rows, part, ax)
        picture = save_figure(figure, out / "liu-22.png")
    return [write_csv(out / "liu-22.csv", rows), picture]


def _split(setting: Setting) -> dict[str, NDArray[np.int64]]:
    """Training and validation examples of the network of `_network`."""
    ensemble = draw(setting.model, runs=1, seed=SEED)
    return {"train": ensemble.train[0], "validation": ensemble.validation[0]}


def _accuracies(
    model: TokenTransformer, trained: Trajectory, frame: int, E: NDArray[Any], split: dict[str, Any]
) -> dict[str, float]:
    """Accuracies of the network of a frame with another embedding (tokens, dim)."""
    parameters = {
        name.removeprefix("layers."): torch.as_tensor(values[:1, frame])
        for name, values in trained.observables.items()
        if name.startswith("layers.")
    }
    parameters["embedding"] = torch.as_tensor(np.asarray(E, np.float32))[None]
    with torch.no_grad():
        logits = model.outputs(parameters, torch.as_tensor(model.task.inputs)[None])
    right = logits[0].argmax(-1).numpy() == model.task.labels
    return {f"{part}_accuracy": float(right[index].mean()) for part, index in split.items()}


def show_projected(rows: Sequence[Row], part: str, ax: Axes | None = None) -> Axes:
    """Draw the accuracy over the steps: actual (dashed), final components (lines), current ones (dots)."""
    ax = Figure().subplots() if ax is None else ax
    lines = {"actual": "--", "final": "-", "current": ":"}
    counts = sorted({row["n"] for row in rows if row["components"] != "actual"})
    colors = dict(zip(counts, ("#d1603d", "#f2a541", "#3c9d6b", "#0b6e99"), strict=True))
    for components, n in dict.fromkeys((row["components"], row["n"]) for row in rows):
        chosen = [row for row in rows if (row["components"], row["n"]) == (components, n)]
        ax.plot(
            [row["step"] for row in chosen],
            [row[f"{part}_accuracy"] for row in chosen],
            lines[components],
            color=colors.get(n, "k"),
            linewidth=1.2,
            label="all dimensions" if components == "actual" else f"{n} {components} components",
        )
    ax.set(xlabel="step", title=f"{part.capitalize()} set", ylim=(0, 1.03))
    if part == "train":
        ax.set_ylabel("accuracy")
    else:
        ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    return ax
