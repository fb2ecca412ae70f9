"""Ding et al., the figures that one real run or no training at all allows: 2, 3, 9, 11 (left) and 16.

They are drawn from the embedded run, p = 59 and d = 128 (`data/README.md`); a budget changes only Figure 11.
"""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.circles.fourier import fourier_signals
from analysis.circles.geometry import (
    circle_delta,
    circularity,
    effective_dimension,
    frequency_plane,
    principal_components,
)
from analysis.laws.flow import affine_solution
from analysis.laws.ode import ODEFit, fit_trajectories
from analysis.laws.scores import HonestScores
from analysis.plots.figures import show_coefficients, style, token_colors
from analysis.stats.intervals import mean
from grokphys.batches import Row
from grokphys.files import embedded_trajectory
from grokphys.output import Budget, save_figure, write_csv
from grokphys.report import circles as ding
from physics.trajectory import Trajectory

Array = NDArray[np.float64]
SNAPSHOTS = (0, 100, 300, 500, 1000, 4000)
DEAD = "#b0b0b0"
CLOSED: Any = {"color": "#a8d5a7", "linewidth": 3.5}
ORIGINAL: Any = {"color": "#222222", "linewidth": 2.4, "alpha": 0.55}
FITS: dict[str, Any] = {
    "least squares": {"color": "#d1603d", "linestyle": (0, (4, 2)), "linewidth": 1.3},
    "Lasso, α = 0.01": {"color": "#0b6e99", "linestyle": (0, (1.5, 1.2)), "linewidth": 1.3},
}


def signals(out: Path, budget: Budget) -> list[Path]:
    """Figure 2: all signals over time, and a dead and a surviving frequency in their planes."""
    run = _run()
    found = ding.signals_of(run)[0]
    alive = found.survivors
    dead, best = _dead_and_best(found)
    # Every step up to 1000, then the frames that the embeddings were recorded at.
    late = run.steps > found.steps[-1]
    steps = np.concatenate([found.steps, run.steps[late]])
    values = np.concatenate([found.values, fourier_signals(run.positions[0, late])])
    with style():
        figure = Figure(figsize=(12.6, 3.6))
        parts: Any = figure.subfigures(1, 2, width_ratios=(1, 1.75))
        ax = parts[0].subplots()
        for k, color in _colors(alive, values.shape[1]):
            label = f"k = {k}" if k in alive else ("dead" if k == dead else None)
            width = 1.7 if k in alive else 0.7
            ax.plot(steps, values[:, k - 1], color=color, linewidth=width, label=label)
        ax.legend(loc="lower left")
        ax.set(yscale="log", xlabel="step", ylabel="Fourier signal ‖F_k‖")
        ax.set_xscale("symlog", linthresh=100)
        ax.set_xlim(0, steps[-1])
        ax.set_title(f"{len(alive)} of {values.shape[1]} frequencies survive")
        axes = parts[1].subplots(2, len(SNAPSHOTS))
        for row, k in zip(axes, (dead, best), strict=True):
            frames = [run.positions[0, int(np.searchsorted(run.steps, step))] for step in SNAPSHOTS]
            planes = [frequency_plane(E, k).points for E in frames]
            extent = 1.1 * max(float(np.abs(points).max()) for points in planes)
            for ax, step, points in zip(row, SNAPSHOTS, planes, strict=True):
                _show_plane(ax, points, k, extent)
                ax.set_title(f"step {step}" if k == dead else "", fontsize=9)
            row[0].set_ylabel(f"k = {k}, {'dead' if k == dead else 'survives'}", fontsize=9)
        parts[1].suptitle("tokens n in the plane of frequency k; colour: k n mod p", fontsize=9.5)
        picture = save_figure(figure, out / "ding-2.png")
    print(f"  survivors {', '.join(map(str, alive))}; the dead frequency {dead} began strongest of the dead")
    names = [f"signal_{k + 1}" for k in range(values.shape[1])]
    rows: list[Row] = [
        {"step": int(step), **dict(zip(names, map(float, x), strict=True))}
        for step, x in zip(steps, values, strict=True)
    ]
    return [write_csv(out / "ding-2.csv", rows), picture]


def components(out: Path, budget: Budget) -> list[Path]:
    """Figure 3: the final embedding along its principal components, and in the planes of its frequencies."""
    run = _run()
    E = np.asarray(run.final[0], np.float64)
    signal = fourier_signals(E)
    order = 1 + np.argsort(-signal)[: len(ding.signals_of(run)[0].survivors)]
    found = principal_components(E)
    rows: list[Row] = []
    with style():
        figure = Figure(figsize=(2.25 * len(order), 5.6))
        axes = figure.subplots(2, len(order))

        def show(ax: Axes, points: Array, k: int, basis: str, heading: str, size: str, more: Row) -> None:
            delta, share = circle_delta(k, len(E)), _share(points, k)
            _show_plane(ax, points, k, 1.1 * float(np.abs(points).max()))
            ax.set_title(f"{heading}k = {k}, Δ = {delta}", fontsize=9)
            ax.set_xlabel(f"{size},\n{100 * share:.1f} % of the plane at k", fontsize=8.5)
            rows.append({"basis": basis, "frequency": k, "delta": delta, "share_at_frequency": share} | more)

        for pair, ax in enumerate(axes[0]):
            columns = slice(2 * pair, 2 * pair + 2)
            fraction = float(found.fractions[columns].sum())
            heading = f"components {2 * pair + 1}, {2 * pair + 2}\n"
            size = f"{100 * fraction:.0f} % of variance"
            more: Row = {"variance": fraction}
            k = found.frequency(pair)
            show(ax, found.points[:, columns], k, "principal components", heading, size, more)
        for k, ax in zip(order.tolist(), axes[1], strict=True):
            strength = float(signal[k - 1])
            points = frequency_plane(E, k).points
            show(ax, points, k, "Fourier", "", f"‖F_k‖ = {strength:.1f}", {"signal": strength})
        axes[0, 0].set_ylabel("principal components")
        axes[1, 0].set_ylabel("Fourier planes")
        picture = save_figure(figure, out / "ding-3.png")
    print(
        f"  effective dimension {float(effective_dimension(E)):.1f} with {len(order)} circles (at the start "
        f"{float(effective_dimension(run.initial[0])):.1f}); colours run k n mod p around each circle"
    )
    return [write_csv(out / "ding-3.csv", rows), picture]


def equations(out: Path, budget: Budget) -> list[Path]:
    """Figure 9: the linear ODE, its R² in sample and forward, two trajectories, and the matrix of Lasso."""
    found = ding.signals_of(_run(), 0, 1000)[0]
    scores = {name: ding.fit_and_score([found], **recipe) for name, recipe in ding.RECIPES.items()}
    print(ding.score_table(scores, "steps 0 to 1000, one run").text())
    lasso = scores["Lasso, α = 0.01"].law
    assert isinstance(lasso, ODEFit)
    dead, best = _dead_and_best(found)
    exact = affine_solution(lasso.A, lasso.b, found.values[0], found.steps.astype(float))
    with style():
        figure = Figure(figsize=(12.0, 8.6))
        (first, second), (third, fourth) = figure.subplots(2, 2)
        _show_scores(first, scores)
        for ax, k, state in ((second, dead, "dead"), (third, best, "survives")):
            ax.plot(found.steps, found.values[:, k - 1], label="original", **ORIGINAL)
            ax.plot(
                found.steps, exact[:, k - 1], color="#a8d5a7", linewidth=3.5, label="Eq. 4 with Lasso's A"
            )
            for name, score in scores.items():
                path = score.law.predict(found.values[0], np.arange(len(found.steps)))
                ax.plot(found.steps, path[:, k - 1], label=f"{name}, rolled out", **FITS[name])
            ax.set(xlabel="step", ylabel="Fourier signal ‖F_k‖", title=f"frequency {k}, {state}")
            ax.set_ylim(0, None)
            ax.legend(loc="best")
        title = "A of Lasso, α = 0.01; survivors marked"
        show_coefficients(lasso.A, fourth, marked=found.survivors, title=title)
        picture = save_figure(figure, out / "ding-9.png")
    rows: list[Row] = []
    for name, score in scores.items():
        for kind, value in (("in sample", score.in_sample), ("forward", score.forward)):
            assert value is not None
            row: Row = {"fit": name, "scored": kind}
            rows.append(row | {"changes": value.derivative, "rollout": value.rollout})
    print("  one run of d = 128; ding-9a has several runs of several d")
    return [write_csv(out / "ding-9.csv", rows), picture]


def initial_circularity(out: Path, budget: Budget) -> list[Path]:
    """Figure 11, left: circularity of random embeddings against their dimension (Appendix B)."""
    count = {"quick": 10, "default": 50, "paper": 50}[budget]
    p, dims = 59, (2, 4, 8, 16, 32, 64, 128, 256, 512)
    generator = np.random.default_rng(0)
    found = {d: circularity(generator.standard_normal((count, p, d))) for d in dims}
    estimates = {
        "maximum": [mean(found[d].max(axis=1)) for d in dims],
        "mean": [mean(found[d].mean(axis=1)) for d in dims],
    }
    rows: list[Row] = [
        {
            "d": d,
            "over frequencies": name,
            "circularity": value.estimate,
            "low": value.low,
            "high": value.high,
        }
        | {"embeddings": count}
        for name, values in estimates.items()
        for d, value in zip(dims, values, strict=True)
    ]
    with style():
        figure = Figure(figsize=(5.2, 3.8))
        ax = figure.subplots()
        for (name, values), color in zip(estimates.items(), ("#d1603d", "#0b6e99"), strict=True):
            y = np.array([value.estimate for value in values])
            bars = np.array([[value.estimate - value.low, value.high - value.estimate] for value in values]).T
            look: Any = {"fmt": "o-", "color": color, "markersize": 4, "capsize": 2}
            ax.errorbar(dims, y, yerr=bars, label=f"{name} over frequencies", **look)
        d = np.geomspace(2, 512, 50)
        ax.plot(d, d / (d + p - 2), color="#222222", linewidth=0.9, linestyle="--", label="d / (d + p - 2)")
        ax.set(xscale="log", xlabel="embedding dimension d", ylabel="circularity (Eq. 5)", ylim=(0, 1))
        ax.set_xticks(dims, [str(d) for d in dims])
        ax.minorticks_off()
        ax.legend(loc="upper left")
        ax.set_title(f"{count} random embeddings, p = {p}")
        picture = save_figure(figure, out / "ding-11.png")
    first, last = (estimates["mean"][n].format(3) for n in (0, -1))
    print(f"  mean circularity rises from {first} (d = 2) to {last} (d = 512), as d / (d + p - 2)")
    return [write_csv(out / "ding-11.csv", rows), picture]


def all_trajectories(out: Path, budget: Budget) -> list[Path]:
    """Figure 16: original and estimated signals of all frequencies in one run."""
    found = ding.signals_of(_run(), 0, 1000)[0]
    times = np.arange(len(found.steps))
    rolled = {
        name: fit_trajectories(found.values, **recipe).predict(found.values[0], times)
        for name, recipe in ding.RECIPES.items()
    }
    errors = {name: np.sqrt(np.mean((path - found.values) ** 2, axis=0)) for name, path in rolled.items()}
    count = found.values.shape[1]
    with style():
        figure = Figure(figsize=(12.0, 8.6))
        axes = figure.subplots(5, 6, sharex=True, sharey=True).ravel()
        for k, ax in enumerate(axes[:count]):
            ax.plot(found.steps, found.values[:, k], label="original", **ORIGINAL)
            for name, path in rolled.items():
                ax.plot(found.steps, path[:, k], label=name, **FITS[name])
            alive = k + 1 in found.survivors
            look: Any = {"weight": "bold", "color": "#d1603d"} if alive else {"color": "#444444"}
            ax.text(0.96, 0.93, f"{k + 1}", transform=ax.transAxes, ha="right", va="top", **look)
        axes[0].set_ylim(0, 1.05 * float(found.values.max()))
        for ax in axes[count:]:
            ax.axis("off")
        handles, labels = axes[0].get_legend_handles_labels()
        axes[-1].legend(handles, labels, loc="center")
        figure.supxlabel("step", fontsize=10)
        figure.supylabel("Fourier signal ‖F_k‖; survivors' numbers in bold", fontsize=10)
        picture = save_figure(figure, out / "ding-16.png")
    for name, error in errors.items():
        print(f"  {name}: root mean square error of the rollouts {error.mean():.2f} on average, in sample")
    rows: list[Row] = [
        {"frequency": k + 1, "survives": k + 1 in found.survivors, "fit": name, "rms_error": float(error[k])}
        for name, error in errors.items()
        for k in range(count)
    ]
    return [write_csv(out / "ding-16.csv", rows), picture]


def _run() -> Trajectory:
    return Trajectory.open(embedded_trajectory())


def _share(points: Array, k: int) -> float:
    """Part of the planar variance that lies at frequency k."""
    centred = points - points.mean(axis=0)
    power = (np.abs(np.fft.rfft(centred, axis=0)) ** 2).sum(axis=1)
    return float(power[k] / power[1:].sum())


def _show_plane(ax: Axes, points: Array, k: int, extent: float) -> Axes:
    """Draw tokens in a plane, coloured by their places on the circle of frequency k."""
    p = len(points)
    ax.scatter(points[:, 0], points[:, 1], s=11, linewidths=0, c=token_colors(p)[k * np.arange(p) % p])
    ax.set(xlim=(-extent, extent), ylim=(-extent, extent), xticks=[], yticks=[])
    ax.set_aspect("equal")
    ax.spines[:].set_visible(True)
    ax.spines[:].set_color("#dddddd")
    return ax


def _dead_and_best(found: ding.Signals) -> tuple[int, int]:
    """Frequency that began strongest of those that die, and that which ends strongest."""
    start = [0 if k + 1 in found.survivors else x for k, x in enumerate(found.values[0])]
    return 1 + int(np.argmax(start)), 1 + int(np.argmax(found.values[-1]))


def _colors(alive: list[int], count: int) -> list[tuple[int, str]]:
    """Frequencies and their colours, the dead first so that they lie behind."""
    cycle = mpl.rcParams["axes.prop_cycle"].by_key()["color"]
    dead = [(k, DEAD) for k in range(1, count + 1) if k not in alive]
    return dead + [(k, cycle[n % len(cycle)]) for n, k in enumerate(alive)]


def _show_scores(ax: Axes, scores: dict[str, HonestScores]) -> Axes:
    """R² in sample beside R² forward, as bars on an axis that is linear near 0 and 1."""
    labels = ("in sample,\nchanges", "in sample,\nrollout", "forward,\nchanges", "forward,\nrollout")
    floor = -1e8
    for n, (name, score) in enumerate(scores.items()):
        parts: list[Any] = [score.in_sample, score.forward]
        values = [v for part in parts for v in (part.derivative, part.rollout)]
        place = np.arange(4) + 0.36 * (n - 0.5)
        ax.bar(place, np.maximum(values, floor), 0.34, color=FITS[name]["color"], label=name)
        for x, value in zip(place, values, strict=True):
            text = (
                f"{value:.3f}"
                if value > -1
                else ("overflow" if np.isinf(value) else f"{value:.0e}".replace("e+0", "e"))
            )
            up = value > 0
            look: Any = {"ha": "center", "fontsize": 8, "textcoords": "offset points"}
            ax.annotate(text, (x, max(value, floor)), xytext=(0, 3 if up else -11), **look)
    ax.axhline(0, color="#444444", linewidth=0.8)
    ax.set_yscale("symlog", linthresh=1, linscale=1.2)
    ax.set_ylim(floor, 3)
    ax.set_xticks(range(4), labels)
    ax.set_ylabel("R² (symmetric log)")
    ax.legend(loc="lower left")
    ax.set_title("In sample, as the paper has it, and fitted to the first half only")
    return ax
