"""Figures of trajectories: signals over time, the laws fitted to them, points, and observables."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from analysis.circles.classes import require_cyclic
from analysis.circles.fourier import frequency_norms, principal_components
from analysis.circles.survival import surviving_frequencies
from analysis.plots.embeddings import show_embedding
from analysis.plots.palette import DEAD, FIRST, INK, SERIES, SURVIVES
from analysis.plots.style import Panels, axes_of, figure_of, legend_below, panels, style, styled
from physics.checks import InputError, choice, finite_array, real_array, whole_number
from physics.trajectory import Trajectory

if TYPE_CHECKING:
    import xarray

    from analysis.laws.scores import Law


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
    """Draw the Fourier signals of one run over time, with chosen frequencies in color.

    Parameters
    ----------
    times : array_like, shape (frames,)
        Step of each frame.
    signals : array_like of float, shape (frames, K)
        Signals of the K frequencies k = 1 … K. Values that are not finite are left out.
    ax : Axes, optional
        Axes to draw on; new ones by default.
    marked : sequence of int, default ()
        Frequencies to draw in color, such as the survivors; the others are gray.
    rollout : array_like of float, shape (frames, K), optional
        Prediction of the signals, drawn dashed in the same colors. The signals are then pale.
    title : str, default ""
        Title of the axes.

    Returns
    -------
    Axes
        The axes.
    """
    ax = axes_of(ax)
    t, values = real_array("times", times, ndim=1), real_array("signals", signals, ndim=2)
    looks = [(color, line) for line in ("-", "--", "-.") for color in SERIES]  # distinct up to 18 survivors
    named = {k: looks[n % len(looks)] for n, k in enumerate(marked)}
    order = sorted(range(1, values.shape[1] + 1), key=lambda k: k in named)
    dashes: dict[str, Any] = {"linestyle": (0, (4, 3)), "linewidth": 1.2}
    for k in order:
        (color, line), width = (named[k], 1.8) if k in named else ((DEAD, "-"), 0.8)
        label = f"frequency {k}" if k in named else ("dead" if k == order[0] else None)
        alpha = 1.0 if rollout is None else 0.45
        ax.plot(t, values[:, k - 1], color=color, label=label, linestyle=line, linewidth=width, alpha=alpha)
        if rollout is not None:
            ax.plot(t, np.asarray(rollout)[:, k - 1], color=color, zorder=5, **dashes)
    if rollout is not None:
        ax.plot([], [], color=INK, label="predicted from the first frame", **dashes)
    ax.set(xlabel="step", ylabel="Fourier signal ‖$F_k$‖", title=title)
    ax.set_ylim(0, 1.05 * values.max(initial=1e-12, where=np.isfinite(values)))
    legend_below(ax)
    return ax


@styled
def show_rollouts(circles: "xarray.Dataset", laws: "Mapping[str, Law]") -> Panels:
    """Draw the signals of a run, and their rollout from the first frame, with a panel for each law.

    Parameters
    ----------
    circles : xarray.Dataset
        Signals and survivors of one run: ``circles_of(trajectory).isel(run=0)``.
    laws : mapping of str to Law
        Fitted laws by their names.

    Returns
    -------
    ndarray of Axes, shape (1, laws)
        The axes.
    """
    axes = panels(1, len(laws), 5.2, 4.0, sharey=True)
    signals, steps = circles.signals.values, circles.step.values
    elapsed, marked = steps - steps[0], circles.frequency.values[circles.survived.values].tolist()
    for ax, (name, law) in zip(axes[0], laws.items(), strict=True):
        times = np.arange(len(elapsed)) if law.kind == "increment" else elapsed
        rollout = law.predict(signals[0], times)
        show_signals(steps, signals, ax, marked=marked, rollout=rollout, title=name)
        ax.label_outer()
    _share_legend(axes[0])
    return axes


def _share_legend(axes: Sequence[Axes]) -> None:
    """Replace the equal legends of several panels by one legend below all of them."""
    handles, labels = axes[0].get_legend_handles_labels()
    figure = figure_of(axes[0])
    for ax in axes:
        legend = ax.get_legend()
        assert legend is not None
        legend.remove()
    with style(figure.get_figwidth()):
        figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 4))


@styled
def show_coefficients(A: Any, ax: Axes | None = None, *, marked: Sequence[int] = (), title: str = "") -> Axes:
    """Draw the matrix of a linear law of frequencies.

    Red coefficients are positive (collaboration), and blue ones are negative (competition).

    Parameters
    ----------
    A : array_like, shape (K, K)
        Matrix for K frequencies. Its rows are the frequencies that change, its columns those that act.
    ax : Axes, optional
        Axes to draw on; new ones by default.
    marked : sequence of int, default ()
        Frequencies whose labels are bold, such as the survivors.
    title : str, default ""
        Title of the axes.

    Returns
    -------
    Axes
        The axes.

    Raises
    ------
    InputError
        If a coefficient is not finite.
    """
    ax = axes_of(ax)
    matrix = finite_array("A", A)
    size = len(matrix)
    limit = float(np.abs(matrix).max()) or 1.0
    image = ax.imshow(
        matrix, norm=mpl.colors.SymLogNorm(limit / 100, vmin=-limit, vmax=limit), interpolation="nearest"
    )
    decades = 10.0 ** np.arange(math.ceil(math.log10(limit / 100)), math.floor(math.log10(limit)) + 1)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.85, ticks=[*-decades[::-1], 0, *decades])
    bar.minorticks_off()
    bar.set_label("coefficient per step")
    ends = [k for k in (1, size) if all(12 * abs(k - mark) > size for mark in marked)]
    labels = sorted({*ends, *marked})
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks([k - 1 for k in labels], list(map(str, labels)), fontsize="small")
        for k, label in zip(labels, axis.get_ticklabels(), strict=True):
            if k in marked:
                label.set(fontweight="bold", color=SURVIVES)
    ax.spines[:].set_visible(True)
    ax.set(xlabel="frequency that acts", ylabel="frequency that changes", title=title)
    return ax


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
    ax.set(xlabel="time", ylabel=what.replace("_", " "), title=title)
    return ax
