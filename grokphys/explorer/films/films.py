"""Films of trajectories and theories, drawn by matplotlib: for exports, and `grokphys animate`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from grokphys.explorer.films import parts
from grokphys.explorer.films.export import Film, Move
from grokphys.explorer.films.parts import EDGE
from grokphys.explorer.runs.circles import CircleRun, Fitted, Projection
from grokphys.explorer.runs.training_set import TrainingSet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DASHES: tuple[Any, ...] = ("-", (0, (6, 1.5)), (0, (1.2, 1)), (0, (6, 1.5, 1, 1.5)), (0, (3, 1)))
"""Dashes that distinguish survivors without color."""
DEAD = "#b5b5b5"
"""Color of the signals of circles that do not survive."""


def circles_film(
    run: CircleRun,
    projection: Projection,
    survivors: Sequence[int],
    limit: float,
    fitted: Fitted | None = None,
) -> Film:
    """Return a film of tokens on a plane, next to the signals with a line at the step of the frame.

    The film has a frame for each frame of the run.

    Parameters
    ----------
    run : CircleRun
        Run with its signals.
    projection : Projection
        Tokens of all frames on the plane.
    survivors : sequence of int
        Frequencies whose signals are in color, counted from 1.
    limit : float
        Signal above which a circle survives.
    fitted : Fitted, optional
        Law whose predictions for the survivors are drawn over their signals.
    """

    def begin(figure: "Figure") -> Move:
        left, right = figure.subplots(1, 2, gridspec_kw={"width_ratios": (1, 1.2)})
        parts.plane(left, parts.extent(projection.points), projection.names, label="tokens")
        show_signals(right, run, survivors, limit, fitted)
        right.set_label("signals")
        return parts.together(
            parts.title(left, lambda frame: f"step {run.steps[frame]}"),
            parts.tokens(left, projection.points, order=projection.order, cycle=projection.cycle),
            parts.now(right, run.steps + 1),
        )

    return Film(len(projection.points), begin, (9.6, 4.6))


def flow_film(chosen: TrainingSet) -> Film:
    """Return a film of the flow of the effective theory under a training set.

    It shows the training set, its parallelograms, and against time the embeddings (on their first axis), the
    representation quality (RQI), and the predicted accuracy.
    """
    found = chosen.measures

    def begin(figure: "Figure") -> Move:
        (grid, shape), (lines, quality) = figure.subplots(2, 2, gridspec_kw={"height_ratios": (1.5, 1)})
        show_training_set(grid, chosen)
        for token, color in enumerate(_colors(chosen.operation.tokens)):
            lines.plot(chosen.times, chosen.embeddings[:, token, 0], color=color, linewidth=1)
        lines.set(xlabel="time", ylabel="E, axis 1" if chosen.dim > 1 else "E", xlim=(0, chosen.times[-1]))
        lines.set_label("embeddings")
        quality.set(ylim=(-0.03, 1.03), label="quality")
        figure.suptitle(
            f"{chosen.operation.name}: n₀ = {found.ground_state_dimension}, "
            f"λ₃ = {found.grokking_rate:.4g}, ideal accuracy {100 * found.ideal_accuracy:.1f} %",
            fontsize=11,
        )
        named = [("RQI", chosen.quality), ("accuracy", chosen.accuracy)]
        return parts.together(
            parallelograms(shape, chosen),
            parts.now(lines, chosen.times),
            parts.curves(quality, chosen.times, named, "time"),
        )

    return Film(len(chosen.times), begin, (9.2, 7.0))


# -- parts -------------------------------------------------------------------------------------------------


def show_signals(
    ax: "Axes", run: CircleRun, survivors: Sequence[int], limit: float, fitted: Fitted | None = None
) -> None:
    """Draw signals against the step: survivors in color with their frequency, the others gray.

    Both axes are logarithmic, the vertical one only if a signal is positive. The arguments after `ax` are
    those of `circles_film`.
    """
    from matplotlib import pyplot as plt

    steps, values = run.signals
    cycle = plt.rcParams["axes.prop_cycle"].by_key()["color"]
    ax.plot(steps + 1, values, color=DEAD, linewidth=0.6, zorder=0)
    for n, k in enumerate(survivors):
        look: Any = {"color": cycle[n % len(cycle)], "linestyle": DASHES[n % len(DASHES)]}
        ax.plot(steps + 1, values[:, k - 1], linewidth=1.6, label=f"k = {k}", **look)
        if fitted is not None:
            name = "linear ODE, rolled out" if n == len(survivors) - 1 else None
            ax.plot(fitted.steps + 1, fitted.rollout[:, k - 1], color="black", linewidth=0.8, label=name)
    ax.axhline(limit, color=EDGE, linestyle=":", linewidth=1, label=f"survives above {limit:.3g}")
    ax.set(xscale="log", xlabel="step + 1", ylabel=r"Fourier signal $\Vert F_k\Vert$")
    ax.set_xlim(1, max(steps[-1], 1) + 1)
    parts.plain_ticks(ax.xaxis)
    positive = values[values > 0]
    if len(positive):
        ax.set_yscale("log")
        ax.set_ylim(max(positive.min(), 1e-4 * positive.max()) / 1.5, 2.5 * positive.max())
        parts.plain_ticks(ax.yaxis)
    parts.legend(ax, 4)


def show_training_set(ax: "Axes", chosen: TrainingSet) -> None:
    """Draw the pairs (i, j) of a training set on a grid.

    Trained pairs are squares, pairs that follow from them are rings, and all other pairs are dots. Lines join
    the trained pairs with the same sum i + j.
    """
    (i, j), label = chosen.operation.samples.T, chosen.operation.label
    colors = _colors(chosen.classes)[label]
    size = (190 / chosen.operation.tokens) ** 2 / 2
    ax.scatter(i, j, s=0.04 * size, c="#aaaaaa", linewidths=0)
    for line in chosen.diagonals:
        ax.plot(*line.T, color="#cccccc", zorder=0)
    look: Any = {"s": 0.5 * size, "edgecolors": EDGE, "linewidths": 0.5}
    ax.scatter(i[chosen.mask], j[chosen.mask], marker="s", c=colors[chosen.mask], label="trained", **look)
    look = {"s": 0.35 * size, "facecolors": "none", "linewidths": 1.2, "label": "follows"}
    ax.scatter(i[chosen.follows], j[chosen.follows], marker="o", edgecolors=EDGE, **look)
    ax.set_aspect("equal")
    ax.set(xlabel="i", ylabel="j", title=f"{chosen.measures.pairs} of {chosen.measures.samples} pairs")
    ax.legend(loc="lower right", fontsize=7.5)  # below the diagonal there are no pairs


def parallelograms(ax: "Axes", chosen: TrainingSet) -> Move:
    """Draw tokens and parallelograms of a training set, and return the function that moves them to a frame.

    In a plane, parallelograms are quadrilaterals. On a line, they are pairs of half circles, which have the
    same center when the parallelogram is satisfied.
    """
    from matplotlib.collections import LineCollection, PolyCollection

    label, colors = chosen.operation.label, _colors(chosen.classes)
    on_line = chosen.dim == 1
    paths = np.pad(chosen.embeddings, ((0, 0), (0, 0), (0, 2 - chosen.dim)))
    parts.plane(ax, parts.extent(paths), ("E", "") if on_line else ("E, axis 1", "axis 2"), label="tokens")
    if on_line:
        sums: Any = LineCollection([], colors=colors[label[chosen.linked]], linewidths=0.9)
    else:
        edges = colors[chosen.parallelogram_classes]
        sums = PolyCollection([], facecolors="none", edgecolors=edges, linewidths=0.5, alpha=0.6)
    ax.add_collection(parts.moving(sums), autolim=False)
    side = np.where(label[chosen.linked] % 2, -1, 1)  # odd classes below the line
    angle = np.linspace(0, np.pi, 25)

    def shapes(frame: int) -> None:
        if not on_line:
            sums.set_verts(chosen.quadrilaterals(frame))
            return
        middle, radius = chosen.arcs(frame)
        x = middle[:, None] + radius[:, None] * np.cos(angle)
        sums.set_segments(np.stack([x, (side * radius)[:, None] * np.sin(angle)], axis=2))

    words = f"{chosen.measures.parallelograms} parallelograms"
    return parts.together(
        parts.title(ax, lambda frame: f"time {chosen.times[frame]:.4g}: {words}"),
        shapes,
        parts.tokens(ax, paths),
    )


def _colors(count: int) -> Any:
    from analysis.plots.palette import class_colors

    return class_colors(count)
