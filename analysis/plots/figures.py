"""Figures. Each takes `ax=None`, draws, and returns the axes; none calls `show`."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from analysis.stats.intervals import Interval
from physics.checks import point_sets
from physics.errors import InputError

STYLE = Path(__file__).with_name("grokphys.mplstyle")
TOKENS = "twilight_shifted"
"""Cyclic colour map of tokens and classes, in every view."""

Arguments = ParamSpec("Arguments")


def style() -> AbstractContextManager[None]:
    """Draw within the shared style."""
    return plt.style.context(STYLE)


def styled(draw: Callable[Arguments, Axes]) -> Callable[Arguments, Axes]:
    """Let a figure draw within the shared style, whoever calls it."""

    @wraps(draw)
    def wrapped(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Axes:
        with style():
            return draw(*args, **kwargs)

    return wrapped


def axes_of(ax: Axes | None) -> Axes:
    """Return `ax`, or new axes."""
    return plt.subplots()[1] if ax is None else ax


def token_colors(tokens: int) -> Any:
    """One colour a token, around the cycle."""
    return mpl.colormaps[TOKENS](np.arange(tokens) / tokens)


def graded_colors(count: int) -> Any:
    """Colours (count, 4) of things that have an order but no cycle, such as symbols of plain addition."""
    return mpl.colormaps["viridis"](np.linspace(0, 0.88, count))


@styled
def show_embedding(
    E: Any, ax: Axes | None = None, *, labels: bool = True, outline: Any = None, title: str = ""
) -> Axes:
    """Draw an embedding (tokens, dim) in the plane of its first two axes, each token with its number.

    `outline` (tokens, dim) is drawn as open circles behind it, such as the shape it is aligned to.
    """
    ax = axes_of(ax)
    points = point_sets("E", E)
    if points.ndim != 2:
        raise InputError(f"E must be one embedding (tokens, dim), got the shape {points.shape}")
    tokens = len(points)
    planar = np.pad(points, ((0, 0), (0, max(0, 2 - points.shape[1]))))[:, :2]
    if outline is not None:
        behind = point_sets("outline", outline)[:, :2]
        ax.scatter(
            behind[:, 0],
            behind[:, 1],
            s=150,
            facecolors="none",
            edgecolors="#888888",
            linewidths=1.0,
            zorder=1,
        )
        ax.plot(*np.stack([planar, behind], axis=1).T, color="#bbbbbb", linewidth=0.8, zorder=0)
    colors = token_colors(tokens)
    ax.scatter(planar[:, 0], planar[:, 1], s=90, c=colors, zorder=2, linewidths=0)
    if labels:
        for token, ((x, y), color) in enumerate(zip(planar, colors, strict=True)):
            ax.annotate(
                str(token),
                (x, y),
                ha="center",
                va="center_baseline",
                fontsize=6.5,
                color="black" if color[:3] @ (0.30, 0.59, 0.11) > 0.6 else "white",
                zorder=3,
            )
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(0.12)
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_visible(True)
        spine.set_color("#cccccc")
    ax.set_title(title)
    return ax


@styled
def show_coefficients(A: Any, ax: Axes | None = None, *, marked: Sequence[int] = (), title: str = "") -> Axes:
    """Draw the matrix A of a linear ODE on frequencies 1 … K; red: collaboration, blue: competition.

    Frequencies `marked`, such as the survivors, are set in bold on both axes.
    """
    ax = axes_of(ax)
    matrix = np.asarray(A, np.float64)
    size = len(matrix)
    limit = float(np.abs(matrix).max()) or 1.0
    image = ax.imshow(
        matrix, norm=mpl.colors.SymLogNorm(limit / 100, vmin=-limit, vmax=limit), interpolation="nearest"
    )
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.85)
    bar.set_label("coefficient a step (symmetric log)")
    ticks = np.arange(size)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks(ticks, [str(k + 1) for k in ticks], fontsize=6)
        for k, label in enumerate(axis.get_ticklabels()):
            if k + 1 in marked:
                label.set_fontweight("bold")
                label.set_color("#d1603d")
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(True)
    ax.set_xlabel("signal of frequency")
    ax.set_ylabel("changes frequency")
    ax.set_title(title)
    return ax


@styled
def show_signals(
    times: Any,
    signals: Any,
    ax: Axes | None = None,
    *,
    marked: Sequence[int] = (),
    rollout: Any = None,
    title: str = "",
) -> Axes:
    """Draw signals (frames, K) of frequencies 1 … K, those `marked` in colour, and a `rollout` dashed."""
    ax = axes_of(ax)
    t, values = np.asarray(times), np.asarray(signals, np.float64)
    colors = plt.rcParams["axes.prop_cycle"].by_key()["color"]
    named = {k: colors[n % len(colors)] for n, k in enumerate(marked)}
    order = sorted(range(1, values.shape[1] + 1), key=lambda k: k in named)
    for k in order:
        color = named.get(k, "#b5b5b5")
        label = f"frequency {k}" if k in named else ("dead" if k == order[0] else None)
        ax.plot(
            t, values[:, k - 1], color=color, label=label, linewidth=1.8 if k in named else 0.8, alpha=0.9
        )
        if rollout is not None:
            dashed = "k" if k in named else "#6b6b6b"
            ax.plot(
                t, np.asarray(rollout)[:, k - 1], color=dashed, linestyle=(0, (4, 3)), linewidth=0.9, zorder=5
            )
    if rollout is not None:
        ax.plot([], [], color="k", linestyle=(0, (4, 3)), linewidth=0.9, label="rolled out")
    ax.set_xlabel("step")
    ax.set_ylabel("Fourier signal ‖F_k‖")
    ax.set_ylim(0, 1.35 * max(float(values.max()), 1e-12))  # room for the legend above the curves
    ax.legend(ncols=3, loc="upper center")
    ax.set_title(title)
    return ax


@styled
def show_distributions(
    samples: Mapping[str, Any], ax: Axes | None = None, *, xlabel: str = "", title: str = ""
) -> Axes:
    """Draw the cumulative distribution of each sample; samples without values are named as empty."""
    ax = axes_of(ax)
    for name, values in samples.items():
        array = np.asarray(values, np.float64)
        array = array[np.isfinite(array)]
        if len(array):
            ax.ecdf(array, label=f"{name} (n = {len(array)})")
        else:
            ax.plot([], [], label=f"{name} (none)")
    ax.set_xlabel(xlabel)
    ax.set_ylabel("fraction of runs at or below")
    ax.grid(visible=True)
    ax.legend(loc="best")
    ax.set_title(title)
    return ax


@styled
def show_estimates(
    rows: Sequence[tuple[str, Interval | float, Interval]],
    ax: Axes | None = None,
    *,
    xlabel: str = "",
    title: str = "",
) -> Axes:
    """Draw rows (label, the paper's value or interval, our interval) as points with 95 % bars."""
    ax = axes_of(ax)
    for y, (_, paper, ours) in enumerate(reversed(rows)):
        given = paper if isinstance(paper, Interval) else Interval(paper, paper, paper, 0)
        for offset, value, color, marker, label in (
            (0.13, given, "#888888", "D", "paper"),
            (-0.13, ours, "#0b6e99", "o", "here"),
        ):
            if np.isfinite(value.estimate):
                ax.errorbar(
                    value.estimate,
                    y + offset,
                    xerr=[[value.estimate - value.low], [value.high - value.estimate]],
                    fmt=marker,
                    color=color,
                    markersize=6,
                    capsize=3,
                    label=label if y == 0 else None,
                )
    ax.set_yticks(range(len(rows)), [label for label, _, _ in reversed(rows)])
    ax.set_ylim(-0.6, len(rows) - 0.4)
    ax.grid(visible=True, axis="x")
    ax.set_xlabel(xlabel)
    ax.legend(loc="best")
    ax.set_title(title)
    return ax
