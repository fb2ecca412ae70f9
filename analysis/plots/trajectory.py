"""Figures of a single trajectory: its points, its signals, or an observable."""

import numpy as np
from matplotlib.axes import Axes

from analysis.circles.classes import require_cyclic
from analysis.circles.fourier import frequency_norms, principal_components
from analysis.circles.survival import surviving_frequencies
from analysis.plots.embeddings import show_embedding
from analysis.plots.palette import FIRST
from analysis.plots.signals import show_signals
from analysis.plots.style import axes_of, styled
from physics.checks import InputError, choice, whole_number
from physics.trajectory import Trajectory


@styled
def show_trajectory(
    trajectory: Trajectory,
    what: str = "positions",
    ax: Axes | None = None,
    *,
    run: int = 0,
    frame: int = -1,
    title: str = "",
) -> Axes:
    """Draw positions, Fourier signals, or an observable of a trajectory.

    Parameters
    ----------
    trajectory : Trajectory
        Trajectory to draw.
    what : str, default "positions"
        "positions" draws the points of one run at one frame, in the plane of their two largest principal
        components if they have more than two axes. "signals" draws the Fourier signals of one run over time,
        with the survivors of the last frame in color. The name of an observable draws a line for each run, or
        for each component of one run if there are several.
    ax : Axes, optional
        Axes to draw on; new ones by default.
    run, frame : int, default 0 and -1
        Indices of the run and of the frame; negative numbers count from the end.
    title : str, default ""
        Title of the axes.

    Returns
    -------
    Axes
        The axes.

    Raises
    ------
    InputError
        If there is no such run, frame or observable, the observable is a table at every frame, or the points
        to draw are not finite.
    """
    choice("what", what, ("positions", "signals", *trajectory.observables))
    whole_number("run", run, -trajectory.runs, trajectory.runs - 1)
    ax = axes_of(ax)
    if what == "positions":
        points = trajectory.frame(frame)[run]
        if points.shape[1] > 2:
            points = principal_components(points).points[:, :2]
        return show_embedding(points, ax, title=title)
    if what == "signals":
        require_cyclic(trajectory)
        single = trajectory.run(run)
        signals = frequency_norms(single.positions[0])
        return show_signals(
            single.steps, signals, ax, marked=surviving_frequencies(single.final[0]).tolist(), title=title
        )
    values, (_, times) = np.asarray(trajectory.observables[what]), trajectory.clock(what)
    if values.ndim > 3:
        raise InputError(f"what must name numbers or lists, got {what!r} of tables {values.shape[2:]}")
    lines = values.T if values.ndim == 2 else trajectory.run(run).observables[what][0]
    ax.plot(times, lines, color=FIRST, alpha=max(0.15, min(1.0, 3 / lines.shape[1])))
    ax.set_xlabel("time")
    ax.set_ylabel(what.replace("_", " "))
    ax.set_title(title)
    return ax
