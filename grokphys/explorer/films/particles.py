"""A run of particles as a film: particles and pair sums, and curves of their measures below."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from grokphys.explorer.films import parts
from grokphys.explorer.films.export import Film, Move
from grokphys.explorer.runs.planes import plane_axes
from physics.theory.operations import Operation
from physics.trajectory import Trajectory

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CIRCLE = 1.2
"""Circle ratio below which particles form a circle (Musat, Appendix A.1)."""


def particle_film(
    trajectory: Trajectory,
    *,
    run: int = 0,
    operation: Operation | None = None,
    plane: str = "axes 1, 2",
    second: Trajectory | None = None,
    arrows: Callable[[int], NDArray[np.float64]] | None = None,
) -> Film:
    """Return a film of one run of particles, with one frame for each frame of the trajectory.

    Parameters
    ----------
    trajectory : Trajectory
        Trajectory to film. Its observables circle_ratio and grid_imperfections are drawn below the particles,
        if they are recorded.
    run : int, default 0
        Number of the run in the trajectory.
    operation : Operation, optional
        Operation that gives each pair its class; by default addition modulo the number of tokens.
    plane : str, default "axes 1, 2"
        Name of the plane, one of `planes.planes`; the last frame determines its axes.
    second : Trajectory, optional
        Trajectory from another start, whose first run is drawn next to `run`, at the same or the next
        recorded step. It must have the observables that `trajectory` has.
    arrows : callable, optional
        Function of the number of a frame that returns the arrows (tokens, dim) of the particles of `run`.
    """
    positions, steps = trajectory.positions[run].astype(np.float64), trajectory.steps
    operation = operation or Operation(trajectory.tokens, trajectory.tokens)
    measured = [
        (name.replace("_", " "), trajectory.observables[name][run])
        for name in ("circle_ratio", "grid_imperfections")
        if name in trajectory.observables
    ]
    axes = plane_axes(positions[-1], plane)
    paths = positions @ axes.T
    beside = None
    if second is not None:
        found = np.searchsorted(second.steps, steps).clip(max=len(second.steps) - 1)
        places = second.positions[0, found].astype(np.float64)
        beside = places @ plane_axes(places[-1], plane).T

    def begin(figure: "Figure") -> Move:
        shown = [("particles", "tokens", "sums", paths)]
        if beside is not None:
            shown.append(("second start", "second start", "second start sums", beside))
        grid = figure.add_gridspec(2 if measured else 1, 4, height_ratios=[3, 1] if measured else [1])
        width, moves = 2 // len(shown), list[Move]()
        for k, (name, label, sums, path) in enumerate(shown):
            first = 2 * k * width
            left = figure.add_subplot(grid[0, first : first + width])
            right = figure.add_subplot(grid[0, first + width : first + 2 * width])
            parts.plane(left, parts.extent(path), label=label)
            parts.plane(right, 2 * parts.extent(path), label=sums)
            right.set_title("pair sums, by class")

            def title(frame: int, name: str = name) -> str:
                return f"{name}, step {steps[frame]}"

            def added(frame: int, path: NDArray[np.float64] = path) -> NDArray[np.float64]:
                return np.asarray(path[frame][operation.samples].sum(axis=1))

            moves += [parts.title(left, title), parts.tokens(left, path)]
            moves.append(parts.sums(right, added, operation.label, int(operation.label.max()) + 1))
            if arrows is not None and k == 0:
                moves.append(parts.arrows(left, paths, lambda frame: arrows(frame) @ axes.T))
        for k, (name, values) in enumerate(measured):
            ax = figure.add_subplot(grid[1, 2 * k : 2 * (k + 1)], label=name)
            ax.set(title=name, xlabel="step", yscale="log" if "ratio" in name else "linear")
            if "ratio" in name:
                ax.axhline(CIRCLE, color="#c2502f", linestyle="--", linewidth=1)
                parts.plain_ticks(ax.yaxis)
            curves = [(values, {"color": "#0b6e99", "label": "first start"})]
            if second is not None:
                other = second.observables[name.replace(" ", "_")][0][found]
                curves.append((other, {"color": "#c2502f", "label": "second start", "linestyle": "--"}))
            for curve, look in curves:
                moves.append(parts.grown(ax, steps, np.where(np.isfinite(curve), curve, np.nan), **look))
            if second is not None:
                parts.legend(ax)
        return parts.together(*moves)

    width = 8.0 if beside is None else 14.0
    return Film(len(steps), begin, (width, 5.4) if measured else (width, 4.2))
