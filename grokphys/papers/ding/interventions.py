"""Ding et al., circles taken away: from trained networks (Figure 8), and from the start (Figure 12)."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.circles.fourier import fourier_signals, survives
from analysis.plots.figures import style
from analysis.stats.intervals import mean
from grokphys.output import Budget, save_figure, write_csv
from grokphys.papers.ding.training import DECAY, SIZES
from nets.interventions import keep_frequencies
from nets.networks import networks
from nets.training import train
from physics.trajectory import Trajectory

Row = dict[str, Any]
KEPT = (1, 2, 3, 4)
RUNS: dict[Budget, int] = {"quick": 2, "default": 3, "paper": 10}


def collaboration(out: Path, budget: Budget) -> list[Path]:
    """Figure 8: test loss over training where only one, two, three or four circles are kept at evaluation."""
    size, runs = SIZES[budget], RUNS[budget]
    trained = train(
        size.model,
        runs=runs,
        steps=size.steps,
        weight_decay=DECAY,
        record="log:10",
        observables=("layers",),
    )
    signals = fourier_signals(trained.final)
    rows: list[Row] = []
    for frame, step in enumerate(trained.steps):
        for run in range(runs):
            alive = (1 + np.flatnonzero(survives(signals[run]))).tolist()
            rows += [
                {"run": run, "step": int(step), "kept": name, "frequencies": " ".join(map(str, kept))}
                | {"test_loss": loss}
                for name, kept, loss in _losses(trained.run(run), frame, alive)
            ]
    with style():
        figure = Figure(figsize=(12.6, 3.4))
        shown = [count for count in KEPT if any(row["kept"] == str(count) for row in rows)] or [1]
        axes = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
        for ax, count in zip(axes, shown, strict=True):
            _band(ax, [r for r in rows if r["kept"] == "all"], "all frequencies", "#4d4d4d")
            _band(ax, [r for r in rows if r["kept"] == "survivors"], "survivors only", "C2")
            some = [r for r in rows if r["kept"] == str(count)]
            _band(ax, some, "kept: median of sets", "C1")
            best: dict[tuple[int, int], Row] = {}
            for row in some:
                key = row["run"], row["step"]
                best[key] = min(best.get(key, row), row, key=lambda r: r["test_loss"])
            _band(ax, list(best.values()), "kept: best set of each run", "C0")
            ax.axhline(np.log(size.tokens), color="#444444", linewidth=0.8, linestyle=":")
            ax.set(xlabel="step", xscale="log", yscale="log", title=f"{count} of the survivors kept")
        axes[0].set_ylabel("test loss (dotted: chance)")
        axes[0].legend(loc="lower left")
        picture = save_figure(figure, out / "ding-8.png")
    print(
        f"  {size}; {runs} runs, {', '.join(str(int(n)) for n in survives(signals).sum(axis=1))} survivors; "
        "bands: smallest and largest"
    )
    for name in ("all", "survivors", *map(str, KEPT)):
        final = [r["test_loss"] for r in rows if r["kept"] == name and r["step"] == size.steps]
        if final:
            print(
                f"  at the end, kept {name}: test loss {np.median(final):.2g} (median of {len(final)} sets; "
                f"{min(final):.2g} to {max(final):.2g})"
            )
    return [write_csv(out / "ding-8.csv", rows), picture]


def _losses(run: Trajectory, frame: int, alive: Sequence[int]) -> list[tuple[str, Sequence[int], float]]:
    """Test loss of one run at one frame with all frequencies, the survivors, and every set of some."""
    revived = networks(run, frame)
    E = revived.parameters["embedding"]
    sets = [(str(n), kept) for n in KEPT for kept in itertools.combinations(alive, n)]
    found: list[tuple[str, Sequence[int], float]] = [("all", (), float(revived.loss("validation")[0]))]
    for name, kept in [("survivors", tuple(alive)), *sets]:
        loss = revived.with_embedding(keep_frequencies(E, kept)).loss("validation")
        found.append((name, kept, float(loss[0])))
    return found


def _band(ax: Any, rows: Sequence[Row], label: str, color: str) -> None:
    """Draw the median over rows of one step, and the band from the smallest to the largest."""
    steps = sorted({row["step"] for row in rows if row["step"]})
    losses = [[row["test_loss"] for row in rows if row["step"] == step] for step in steps]
    ax.plot(steps, [np.median(values) for values in losses], color=color, label=label)
    low, high = ([side(values) for values in losses] for side in (min, max))
    ax.fill_between(steps, low, high, color=color, alpha=0.15, linewidth=0)


# -- Figure 12 ---------------------------------------------------------------------------------------------


def ablation(out: Path, budget: Budget) -> list[Path]:
    """Figure 12: training that starts with only the winning, or only random, frequencies (Appendix C)."""
    size, runs = SIZES[budget], RUNS[budget]
    options: dict[str, Any] = {
        "runs": runs,
        "steps": size.steps,
        "weight_decay": DECAY,
        "record": 10 if size.steps < 30000 else 50,
        "observables": ("validation_loss",),
    }
    whole = train(size.model, **options)
    generator = np.random.default_rng(0)
    final = fourier_signals(whole.final)
    order = 1 + np.argsort(-final, axis=1)
    # Random ones are drawn from all but the two that won.
    drawn = np.array([generator.choice(ranked[2:], 2, replace=False) for ranked in order])
    cases = {
        "the largest (A)": order[:, :1],
        "the largest two (B)": order[:, :2],
        "one random (C)": drawn[:, :1],
        "two random (D)": drawn,
    }
    trained = {"all": whole}
    for name, kept in cases.items():
        start = np.stack([keep_frequencies(E, k) for E, k in zip(whole.initial, kept.tolist(), strict=True)])
        # The same seed: layers and training sets are those of the undisturbed runs.
        trained[name] = train(size.model, initial={"embedding": start}, **options)
    rows: list[Row] = []
    print(f"  {size}; {runs} runs each, with the same layers and training sets")
    for name, run in trained.items():
        losses = run.observables["validation_loss"]
        alive = survives(fourier_signals(run.final))
        circles, lowest = mean(alive.sum(axis=1)), losses.min(axis=1)
        half = [_first(run.steps, values < 1e-2) for values in losses]
        kept = np.full(runs, np.nan)
        if name in cases:
            kept = np.mean([alive[k, np.array(f) - 1].mean() for k, f in enumerate(cases[name].tolist())])
        print(
            f"  start with {name}: {circles.format(1)} circles; lowest test loss {np.median(lowest):.1g} "
            f"(median); below 0.01 first at step {', '.join(half)}"
            + (f"; {100 * float(kept):.0f} % of those kept survive" if name in cases else "")
        )
        rows += [
            {"start": name, "run": k, "step": int(step), "test_loss": float(losses[k, at])}
            | {"circles": int(alive[k].sum())}
            for k in range(runs)
            for at, step in enumerate(run.steps)
        ]
    with style():
        figure = Figure(figsize=(10.4, 3.8))
        first, second = figure.subplots(1, 2, sharey=True)
        names = list(cases)
        for ax, title, chosen in (
            (first, "the strongest frequencies of the undisturbed run", names[:2]),
            (second, "random frequencies", names[2:]),
        ):
            for n, name in enumerate(["all", *chosen]):
                for k in range(runs):
                    label = {"label": f"start with {name}"} if k == 0 else {}
                    loss = trained[name].observables["validation_loss"][k]
                    look: Any = {"color": f"C{n}", "linewidth": 1.1 if k == 0 else 0.5}
                    ax.plot(trained[name].steps, loss, alpha=1 if k == 0 else 0.5, **look, **label)
            ax.set(xlabel="step", yscale="log", title=title)
            ax.legend(loc="best")
        first.set_ylabel("test loss")
        first.set_ylim(None, 1e3)  # room for the legends
        picture = save_figure(figure, out / "ding-12.png")
    return [write_csv(out / "ding-12.csv", rows), picture]


def _first(steps: NDArray[np.int64], reached: NDArray[np.bool_]) -> str:
    return str(steps[reached.argmax()]) if reached.any() else "never"
