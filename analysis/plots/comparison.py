"""Figures of a comparison. Each takes `ax=None`, draws, and returns the axes."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from analysis.compare.motion import Motion
from analysis.compare.onsets import OnsetDifference
from analysis.plots.figures import axes_of, graded_colors, styled
from analysis.stats.calibration import Calibration
from analysis.stats.effects import Difference

Array = NDArray[np.float64]
FIRST, SECOND, GREY = "#0b6e99", "#d1603d", "#888888"


@styled
def show_error(
    motion: Motion, name: str, ax: Axes | None = None, *, ylabel: str = "disparity", title: str = ""
) -> Axes:
    """Draw the error over time: median and quartiles over pairs, and what chance gives."""
    ax = axes_of(ax)
    strange = "strange partners" if motion.paired else "nearest of the first alone"
    for errors, color, label in ((motion.chance, GREY, strange), (motion.error, FIRST, "pairs")):
        if not np.isfinite(errors).any():
            continue
        shown = np.isfinite(errors).any(axis=0)
        low, middle, high = np.nanquantile(errors[:, shown], [0.25, 0.5, 0.75], axis=0)
        times = motion.times[shown]
        ax.fill_between(times, low, high, color=color, alpha=0.2, linewidth=0)
        ax.plot(times, middle, color=color, label=f"{label}, median and quartiles")
    ax.set(xlabel=f"time, {name}", ylabel=ylabel, ylim=(0, None), title=title)
    ax.margins(x=0)
    ax.legend(loc="best")
    return ax


@styled
def show_clocks(motion: Motion, names: tuple[str, str], ax: Axes | None = None, *, title: str = "") -> Axes:
    """Draw which time of the first stands beside each time of the second, pair by pair."""
    ax = axes_of(ax)
    same = np.allclose(motion.matched, motion.matched[:1], equal_nan=True)
    for row in motion.matched[:1] if same else motion.matched:
        ax.plot(motion.times, row, color=FIRST, linewidth=1.6 if same else 0.5, alpha=1.0 if same else 0.4)
    if np.isfinite(motion.scale.low):
        ends = motion.times * motion.scale.low, motion.times * motion.scale.high
        ax.fill_between(motion.times, *ends, color=FIRST, alpha=0.2, linewidth=0)
    if not same and np.isfinite(motion.scale.estimate):
        ax.plot(motion.times, motion.times * motion.scale.estimate, color="k", linewidth=1.2)
    ax.set(xlabel=f"time, {names[1]}", ylabel=f"time, {names[0]}", title=title)
    ax.margins(x=0)
    ax.set_ylim(0, None)
    return ax


@styled
def show_effects(distributions: Mapping[str, Difference], ax: Axes | None = None, *, title: str = "") -> Axes:
    """Draw Cliff's delta of values and Cohen's h of proportions, with 95 % intervals; 0 is no effect."""
    ax = axes_of(ax)
    rows = [(one.name, *next(iter(one.effects.items()))) for one in distributions.values()]
    for y, (_, effect, value) in enumerate(reversed(rows)):
        if not np.isfinite(value.estimate):
            continue
        bars = [[value.estimate - value.low], [value.high - value.estimate]]
        shape, color = ("s", SECOND) if effect == "Cohen's h" else ("o", FIRST)
        ax.errorbar(value.estimate, y, xerr=bars, fmt=shape, color=color, markersize=5.5, capsize=3)
    ax.axvline(0, color=GREY, linewidth=0.9, linestyle=":")
    ax.set_yticks(range(len(rows)), [name for name, *_ in reversed(rows)])
    ax.set_ylim(-0.6, len(rows) - 0.4)
    ax.set_xlim(min(-1.05, ax.get_xlim()[0]), max(1.05, ax.get_xlim()[1]))
    ax.grid(visible=True, axis="x")
    for label, shape, color in (("Cliff's delta", "o", FIRST), ("Cohen's h", "s", SECOND)):
        if any(effect == label for _, effect, _ in rows):
            ax.plot([], [], shape, color=color, markersize=5.5, label=label)
    ax.legend(loc="best")
    ax.set(xlabel="effect size, first minus second", title=title)
    return ax


@styled
def show_onsets(onset: OnsetDifference, names: tuple[str, str], ax: Axes | None = None) -> Axes:
    """Draw the part of the runs that have reached it by a time, by Kaplan and Meier, with 95 % bands."""
    ax = axes_of(ax)
    for one, name, color in zip((onset.first, onset.second), names, (FIRST, SECOND), strict=True):
        times, alive, low, high = one.curve()
        end = max(float(one.times.max()), float(times[-1]))
        times, alive, low, high = (
            np.append(values, value)
            for values, value in zip(
                (times, alive, low, high), (end, alive[-1], low[-1], high[-1]), strict=True
            )
        )
        label = f"{name}: {int(one.reached.sum())} of {len(one.reached)}"
        ax.step(times, 1 - alive, where="post", color=color, label=label)
        sound = np.isfinite(low)
        ax.fill_between(
            times, 1 - low, 1 - high, where=sound.tolist(), step="post", color=color, alpha=0.15, linewidth=0
        )
    ax.set(
        xlabel="time",
        ylabel="part that has reached it",
        ylim=(-0.02, 1.02),
        title=onset.name.replace("_", " "),
    )
    ax.margins(x=0)
    ax.legend(loc="best")
    return ax


@styled
def show_calibration(found: Calibration, ax: Axes | None = None, *, title: str = "") -> Axes:
    """Draw measured against predicted, with the diagonal on which they agree."""
    ax = axes_of(ax)
    ax.plot([0, 1], [0, 1], color=GREY, linestyle=":", linewidth=1)
    ax.scatter(found.predicted, found.measured, s=18, color=FIRST, linewidths=0, alpha=0.6)
    ax.set(xlabel="predicted accuracy", ylabel="measured accuracy", xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
    ax.set_title(title)
    return ax


@styled
def show_lines(
    times: Any, states: Any, ax: Axes | None = None, *, title: str = "", xlabel: str = "", ylabel: str = ""
) -> Axes:
    """Draw components (frames, tokens) over time, each in its colour."""
    ax = axes_of(ax)
    for token, color in enumerate(graded_colors(np.shape(states)[1])):
        ax.plot(times, np.asarray(states)[:, token], color=color, linewidth=1.2)
    ax.set(xlabel=xlabel, ylabel=ylabel, title=title)
    ax.margins(x=0)
    return ax
