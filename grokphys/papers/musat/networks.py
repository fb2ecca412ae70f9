"""Musat's networks: Table 1 at scale, weights under decay (Fig. 6), galleries, and classifier maps."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from analysis.compare.comparison import structures
from analysis.plots import figures, maps
from analysis.stats.intervals import mean
from grokphys.output import Budget, save_figure, write_csv
from grokphys.papers.musat import start as musat_start
from grokphys.report import musat
from grokphys.report.page import publish
from nets.models import ConstantAttention
from nets.networks import networks
from nets.training import train
from physics.particles.structures import circle_ratio
from physics.trajectory import Trajectory

STEPS = 2000
RUNS: dict[Budget, int] = {"quick": 10, "default": 100, "paper": 1000}
NORM_RUNS: dict[Budget, int] = {"quick": 3, "default": 10, "paper": 100}
"""Networks for each weight decay of Figure 6; the paper has 10."""
NORM_DECAYS = np.linspace(0, 1, 11)
MAP_RUNS: dict[Budget, int] = {"quick": 25, "default": 100, "paper": 100}
"""Networks among which a typical one is chosen."""
MAP_DECAY = 1.0
SHOWN: dict[Budget, int] = {"quick": 8, "default": 20, "paper": 20}
"""Networks in the gallery of Appendix D, for each weight decay; the paper shows 20."""
PLANES: Mapping[int, Sequence[tuple[int, int]]] = {
    3: ((0, 1), (0, 2), (1, 2)),
    4: ((0, 1), (1, 2), (2, 3)),
}
"""Pairs of dimensions of Appendix G, by D; which three the paper shows of D = 4 it does not say."""
SHOWN_3D: Mapping[int, int] = {3: 7, 4: 8}

Row = dict[str, Any]


def table_1(out: Path, budget: Budget) -> list[Path]:
    """Musat, Table 1: structures and validation accuracy of the networks by weight decay."""
    ensembles = {
        decay: train(runs=RUNS[budget], steps=STEPS, weight_decay=decay, record=STEPS)
        for decay in musat.TABLE_1
    }
    section = musat.table_1(ensembles)
    numbers = write_csv(out / "musat-table1-numbers.csv", musat_start.compared("pytorch", ensembles))
    return [*publish(out, "musat-table1", section.tables[0], section.figures[0]), numbers]


# -- Figure 6 ----------------------------------------------------------------------------------------------


def norms(out: Path, budget: Budget) -> list[Path]:
    """Musat, Figure 6: mean |w| and |b| of the hidden layer over training, by weight decay."""
    runs = NORM_RUNS[budget]
    trained = train(
        runs=runs * len(NORM_DECAYS),
        steps=STEPS,
        weight_decay=np.repeat(NORM_DECAYS, runs).tolist(),
        record=STEPS // 40,
        observables=("weight_norm", "bias_norm"),
    )
    rows: list[Row] = []
    for k, decay in enumerate(NORM_DECAYS):
        members = slice(k * runs, (k + 1) * runs)
        for at, step in enumerate(trained.steps):
            row: Row = {"weight_decay": f"{decay:g}", "step": int(step), "networks": runs}
            for name in ("weight_norm", "bias_norm"):
                found = mean(trained.observables[name][members, at])
                row |= {name: found.estimate, f"{name}_low": found.low, f"{name}_high": found.high}
            rows.append(row)
    with figures.style():
        figure = Figure(figsize=(9.6, 3.6))
        left, right = figure.subplots(1, 2)
        show_final_norms([row for row in rows if row["step"] == STEPS], left)
        show_norms([row for row in rows if row["weight_decay"] in ("0", "0.3", "1")], right)
        picture = save_figure(figure, out / "musat-6.png")
    last = {row["weight_decay"]: row for row in rows if row["step"] == STEPS}
    print(
        f"  from weight decay 0 to 1, mean |w| falls from {last['0']['weight_norm']:.2f} to "
        f"{last['1']['weight_norm']:.2f}, mean |b| from {last['0']['bias_norm']:.2f} to "
        f"{last['1']['bias_norm']:.2f}; {runs} networks each, after {STEPS} epochs"
    )
    return [write_csv(out / "musat-6.csv", rows), picture]


def show_final_norms(rows: list[Row], ax: Any = None) -> Any:
    """Draw mean |w| and |b| at the end of training over weight decay, with 95 % intervals."""
    ax = Figure().subplots() if ax is None else ax
    decay = [float(row["weight_decay"]) for row in rows]
    for name, label in (("weight_norm", "weights, mean |w|"), ("bias_norm", "biases, mean |b|")):
        middle, low, high = (np.array([row[name + side] for row in rows]) for side in ("", "_low", "_high"))
        ax.errorbar(
            decay, middle, [middle - low, high - middle], fmt="o-", markersize=4, capsize=2, label=label
        )
    ax.set(
        xlabel="weight decay",
        ylabel="mean magnitude",
        title=f"Hidden layer after {rows[0]['step']} epochs (Fig. 6), {rows[0]['networks']} networks each",
        ylim=(0, None),
    )
    ax.legend()
    return ax


def show_norms(rows: list[Row], ax: Any = None) -> Any:
    """Draw mean |w| (lines) and |b| (dashed) over training for some weight decays."""
    ax = Figure().subplots() if ax is None else ax
    for decay in dict.fromkeys(row["weight_decay"] for row in rows):
        chosen = [row for row in rows if row["weight_decay"] == decay]
        steps = [row["step"] for row in chosen]
        (line,) = ax.plot(steps, [row["weight_norm"] for row in chosen], label=f"weight decay {decay}")
        ax.plot(steps, [row["bias_norm"] for row in chosen], color=line.get_color(), linestyle=(0, (4, 2)))
        ax.fill_between(
            steps,
            [row["weight_norm_low"] for row in chosen],
            [row["weight_norm_high"] for row in chosen],
            color=line.get_color(),
            alpha=0.15,
            linewidth=0,
        )
    ax.set(xlabel="epoch", ylabel="mean magnitude", title="Weights (lines), biases (dashed)", ylim=(0, None))
    ax.legend()
    return ax


# -- Appendices D and G ------------------------------------------------------------------------------------


def gallery(out: Path, budget: Budget) -> list[Path]:
    """Musat, Appendix D: embeddings of the first networks for each weight decay of Table 1."""
    count = SHOWN[budget]
    rows: list[Row] = []
    paths = []
    for decay in sorted(musat.TABLE_1, reverse=True):
        trained = train(runs=count, steps=STEPS, weight_decay=decay, record=STEPS)
        columns = count // 4
        with figures.style():
            figure = Figure(figsize=(2.1 * columns, 9.2))
            figure.suptitle(f"Weight decay {decay:g}, {STEPS} epochs (App. D)", fontsize=10.5)
            for k, ax in enumerate(figure.subplots(4, columns).flat):
                row = _described(trained, k)
                rows.append({"weight_decay": decay} | row)
                figures.show_embedding(trained.final[k], ax, title=_title(row))
            paths.append(save_figure(figure, out / f"musat-D-wd{decay:g}.png"))
    return [write_csv(out / "musat-D.csv", rows), *paths]


def higher(out: Path, budget: Budget) -> list[Path]:
    """Musat, Appendix G: embeddings in three and four dimensions, on planes of two of them."""
    rows: list[Row] = []
    paths = []
    for dim, planes in PLANES.items():
        count = SHOWN_3D[dim]
        trained = train(ConstantAttention(dim=dim), runs=count, steps=STEPS, weight_decay=1.0, record=STEPS)
        with figures.style():
            figure = Figure(figsize=(2.1 * count, 6.9))
            figure.suptitle(f"D = {dim}, weight decay 1, {STEPS} epochs (App. G)", fontsize=10.5)
            axes = figure.subplots(len(planes), count)
            for run in range(count):
                row = _described(trained, run)
                rows.append({"dim": dim} | row)
                for ax, plane in zip(axes[:, run], planes, strict=True):
                    figures.show_embedding(trained.final[run][:, plane], ax)
                    if run == 0:
                        ax.set_ylabel(f"dimensions {plane[0] + 1}, {plane[1] + 1}")
                axes[0, run].set_title(_title(row))
            paths.append(save_figure(figure, out / f"musat-G-D{dim}.png"))
    return [write_csv(out / "musat-G.csv", rows), *paths]


def _described(trained: Trajectory, run: int) -> Row:
    found = structures(trained.final[run : run + 1])
    return {
        "network": run,
        "circle": bool(found.circle[0]),
        "norm_ratio": float(circle_ratio(trained.final[run])),
        "grid_imperfections": int(found.imperfections[0]),
        "validation_accuracy": float(trained.observables["validation_accuracy"][run, -1]),
    }


def _title(row: Row) -> str:
    accuracy = f"{100 * row['validation_accuracy']:.0f} %"
    kind = f"circle, {row['norm_ratio']:.2f}" if row["circle"] else f"{row['grid_imperfections']} imperf."
    return f"{row['network']}: {kind}, {accuracy}"


# -- Figures 3 and 4 ---------------------------------------------------------------------------------------


def grid_map(out: Path, budget: Budget) -> list[Path]:
    """Musat, Figure 3: a grid, and its classifier over the plane with the pair sums."""
    return _map(out, budget, "grid", "musat-3")


def circle_map(out: Path, budget: Budget) -> list[Path]:
    """Musat, Figure 4: a circle, and its classifier over the plane with the pair sums."""
    return _map(out, budget, "circle", "musat-4")


def _map(out: Path, budget: Budget, kind: str, name: str) -> list[Path]:
    """Train, take the most typical network of a kind, and draw what it has learned."""
    trained = train(
        runs=MAP_RUNS[budget],
        steps=STEPS,
        weight_decay=MAP_DECAY,
        record=STEPS,
        observables=("validation_accuracy", "layers"),
    )
    chosen = musat.typical_runs(trained, structures(trained.final))
    if kind not in chosen:
        print(f"  no {kind} among {trained.runs} networks at weight decay {MAP_DECAY:g}")
        return []
    run = chosen[kind]
    alone = networks(trained.run(run))
    E, task = trained.final[run].astype(float), alone.model.task
    sums = E[task.inputs].sum(axis=1)
    held_out = np.isin(np.arange(len(task)), alone.examples("validation")[0])
    seen = alone.classify(sums)[0]
    grid, bounds = maps.plane(sums)
    side = round(len(grid) ** 0.5)
    with figures.style():
        figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.9))
    row = _described(trained, run)
    figures.show_embedding(E, left, title=f"Embedding of network {_title(row)} validated")
    maps.show_classifier(
        alone.classify(grid)[0].reshape(side, side),
        bounds,
        right,
        count=task.classes,
        sums=sums,
        labels=task.labels,
        held_out=held_out,
        title="Classes; pair sums that train (discs) or validate (diamonds)",
    )
    plt.close(figure)
    hits = seen == task.labels
    print(
        f"  network {run} of {trained.runs} at weight decay {MAP_DECAY:g}: {hits[~held_out].sum()} of "
        f"{(~held_out).sum()} training and {hits[held_out].sum()} of {held_out.sum()} validation pairs right"
    )
    rows = [
        {"a": int(a), "b": int(b), "x": x, "y": y, "class": int(c), "seen": int(s), "validates": bool(v)}
        for (a, b), (x, y), c, s, v in zip(
            task.inputs, sums.tolist(), task.labels, seen, held_out, strict=True
        )
    ]
    return [write_csv(out / f"{name}.csv", rows), save_figure(figure, out / f"{name}.png")]
