"""Figures of two ensembles side by side: errors over time, onsets, calibration, and aligned shapes."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from analysis.circles.fourier import principal_components
from analysis.comparison.compared import Comparison
from analysis.comparison.motion import Motion, Paths, frame_mean
from analysis.comparison.relabelling import aligned
from analysis.comparison.timing import OnsetDifference
from analysis.plots.distributions import show_distributions, show_effects
from analysis.plots.embeddings import show_embedding
from analysis.plots.palette import FIRST, REFERENCE, SECOND, graded_colors
from analysis.plots.style import Panels, axes_of, figure_of, legend_below, panels, style, styled
from analysis.stats.effects import Calibration
from analysis.stats.intervals import plain

COLUMNS = 4
"""Number of frames that are shown side by side."""
SHOWN = 5
"""Largest number of distributions that are drawn."""


@styled
def show_onsets(onset: OnsetDifference, names: tuple[str, str], ax: Axes | None = None) -> Axes:
    """Draw the fraction of runs that have reached a threshold over time (Kaplan-Meier), with 95 % bands.

    Parameters
    ----------
    onset : OnsetDifference
        Onsets of two ensembles, such as one of `Comparison.onsets`.
    names : pair of str
        Names of the two ensembles.
    ax : Axes, optional
        Axes to draw on; new ones by default.

    Returns
    -------
    Axes
        The axes.
    """
    ax = axes_of(ax)
    for onsets, name, color in zip((onset.first, onset.second), names, (FIRST, SECOND), strict=True):
        times, alive, low, high = onsets.curve()
        end = max(float(onsets.times.max()), float(times[-1]))
        times = np.append(times, end)
        alive, low, high = (np.append(values, values[-1]) for values in (alive, low, high))
        label = f"{name}: {int(onsets.reached.sum())} of {len(onsets.reached)}"
        ax.step(times, 1 - alive, where="post", color=color, label=label)
        known = np.isfinite(low).tolist()
        ax.fill_between(times, 1 - low, 1 - high, known, step="post", color=color, alpha=0.15, linewidth=0)
    ax.set(xlabel="time", ylabel="fraction of runs", title=onset.name.replace("_", " "))
    ax.set_ylim(-0.02, 1.02)
    ax.margins(x=0)
    legend_below(ax)
    return ax


@styled
def show_calibration(calibration: Calibration, ax: Axes | None = None, *, title: str = "") -> Axes:
    """Draw measured against predicted accuracy, with the diagonal on which they agree.

    Parameters
    ----------
    calibration : Calibration
        Predictions and measurements.
    ax : Axes, optional
        Axes to draw on; new ones by default.
    title : str, default ""
        Title of the axes.

    Returns
    -------
    Axes
        The axes.
    """
    ax = axes_of(ax)
    ax.plot([0, 1], [0, 1], color=REFERENCE, linestyle=":", linewidth=1)
    ax.scatter(calibration.predicted, calibration.measured, s=18, color=FIRST, linewidths=0, alpha=0.6)
    ax.set(xlabel="predicted accuracy", ylabel="measured accuracy", xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
    ax.set_title(title)
    return ax


def show_quantities(comparison: Comparison) -> Panels:
    """Draw the effect sizes of all quantities of a comparison, and the first few distributions.

    Parameters
    ----------
    comparison : Comparison
        Comparison to draw. Distributions of its proportions are not drawn, as they have only two values.

    Returns
    -------
    ndarray of Axes, shape (rows, columns)
        The axes, with the effect sizes first; axes that are not needed are off.
    """
    values = [x for x in comparison.distributions.values() if "Cohen's h" not in x.effects]
    drawn = values[:SHOWN]
    columns = min(1 + len(drawn), 2)
    axes = panels(-(-(1 + len(drawn)) // columns), columns, 4.7, 3.3)
    title = "Effect sizes, 95 % intervals"
    show_effects(comparison.distributions, axes.flat[0], names=comparison.names, title=title)
    for ax, difference in zip(axes.flat[1:], drawn, strict=False):
        samples = dict(zip(comparison.names, difference.samples, strict=True))
        show_distributions(samples, ax, xlabel=difference.name)
    for ax in axes.flat[1 + len(drawn) :]:
        ax.set_axis_off()
    return axes


def show_motion(comparison: Comparison) -> Panels:
    """Draw the error of the pairs of runs over time, and the times that correspond to each other.

    Parameters
    ----------
    comparison : Comparison
        Comparison with a `motion`.

    Returns
    -------
    ndarray of Axes, shape (1, 2)
        The axes of the error, and of the times.
    """
    assert comparison.motion is not None
    axes = panels(1, 2, 5.25, 3.4)
    _draw_errors(comparison.motion, comparison.names, axes[0, 0])
    axes[0, 0].set_ylabel("disparity")
    _draw_times(comparison.motion, comparison.names, axes[0, 1])
    return axes


@styled
def _draw_errors(motion: Motion, names: tuple[str, str], ax: Axes) -> None:
    """Draw medians and quartiles, over the pairs of runs, of their errors over time and of chance."""
    chance = "runs paired at random" if motion.paired else f"two runs of {names[0]}"
    pairs = f"a run of {names[0]} and one of {names[1]}"
    for errors, color, label in ((motion.chance, REFERENCE, chance), (motion.error, FIRST, pairs)):
        shown = np.isfinite(errors).any(axis=0)
        if shown.any():
            low, middle, high = np.nanquantile(errors[:, shown], [0.25, 0.5, 0.75], axis=0)
            ax.fill_between(motion.times[shown], low, high, color=color, alpha=0.2, linewidth=0)
            ax.plot(motion.times[shown], middle, color=color, label=label)
    ax.set(xlabel=f"time, {names[1]}", ylim=(0, None), title="Error over time")
    ax.margins(x=0)
    legend_below(ax)


@styled
def _draw_times(motion: Motion, names: tuple[str, str], ax: Axes) -> None:
    """Draw the corresponding times, which are the same for all pairs, and the interval of their ratio."""
    ax.plot(motion.times, motion.matched[0], color=FIRST, linewidth=1.6)
    if np.isfinite(motion.scale.low):
        ends = motion.times * motion.scale.low, motion.times * motion.scale.high
        ax.fill_between(motion.times, *ends, color=FIRST, alpha=0.2, linewidth=0)
    ax.set(xlabel=f"time, {names[1]}", ylabel=f"time, {names[0]}", title="Times that correspond")
    ax.margins(x=0)
    ax.set_ylim(0, None)


def show_nearest(comparison: Comparison, count: int = 4) -> Any:
    """Draw final shapes of the second ensemble (discs) over the nearest ones of the first (open circles).

    The best match is on the left and the worst on the right; above each are its runs and their disparity.

    Parameters
    ----------
    comparison : Comparison
        Comparison of the two ensembles.
    count : int, default 4
        Largest number of shapes.

    Returns
    -------
    ndarray of Axes, shape (1, n), or None
        One panel for each of the n shapes that are drawn. None if shapes are not compared, lie on a line, or
        have different dimensions.
    """
    (ours, theirs), shapes = comparison.ensembles, comparison.shapes
    if shapes is None or ours.dim != theirs.dim or theirs.dim < 2:
        return None
    order = np.argsort(shapes.nearest, kind="stable")
    chosen = order[np.linspace(0, len(order) - 1, min(count, len(order))).round().astype(int)]
    axes = panels(1, len(chosen), 3.1, 3.4)
    for ax, run in zip(axes[0], chosen, strict=True):
        partner = int(shapes.disparity[:, run].argmin())
        permutation = shapes.symmetry.permutations[shapes.relabelling[partner, run]]
        moved = aligned(ours.final[partner], theirs.final[run], permutation)
        target, moved = _planar(theirs.final[run], theirs.final[run]), _planar(moved, theirs.final[run])
        title = f"run {run} (discs),\nrun {partner} (open circles),\ndisparity {shapes.nearest[run]:.2f}"
        show_embedding(target, ax, outline=moved, title=title)
    return axes


def show_typical_pair(comparison: Comparison) -> Any:
    """Draw the typical pair of runs over time: lines if they have one dimension, or points at several times.

    Parameters
    ----------
    comparison : Comparison
        Comparison of the two ensembles, with a motion.

    Returns
    -------
    ndarray of Axes, shape (rows, columns), or None
        A panel for each ensemble with lines, or a row for each ensemble with points. None if the two have no
        times in common or differ in dimension.
    """
    motion = comparison.motion
    assert motion is not None
    ours, theirs = comparison.ensembles
    chosen = typical_pair(motion)
    frames = np.flatnonzero(np.isfinite(motion.error[chosen]))
    if not len(frames) or ours.times is None or theirs.times is None:
        return None
    times, matched = motion.times[frames], motion.matched[chosen, frames]
    left = Paths(ours.positions(motion.pairs[chosen, :1]), ours.times).at(matched)[0]
    right = Paths(theirs.positions(motion.pairs[chosen, 1:]), theirs.times).at(times)[0]
    left = left[:, motion.relabelling[chosen]]
    if max(left.shape[2], right.shape[2]) == 1:
        return _lines(comparison, times, left[..., 0], right[..., 0])
    if left.shape[2] != right.shape[2]:
        return None
    return _snapshots(comparison, times, matched, left, right, motion.error[chosen, frames])


def typical_pair(motion: Motion) -> int:
    """Return the index of the pair of runs whose mean error over the frames is the median of all pairs.

    The errors are those of `motion`. For an even number of pairs, the lower of the two middle ones counts.
    """
    means = frame_mean(motion.error)
    return int(np.argsort(means, kind="stable")[(len(means) - 1) // 2])


def _lines(comparison: Comparison, times: Any, left: Any, right: Any) -> Panels:
    """Draw embeddings of one dimension over time, one panel for each ensemble.

    `left` and `right` (frames, tokens) are those of the two ensembles, at the times `times` (frames,).
    """
    moved = [aligned(a[:, None], b[:, None])[:, 0] for a, b in zip(left, right, strict=True)]
    center, size = right.mean(axis=1, keepdims=True), right.std(axis=1, keepdims=True)
    left, right = (np.array(moved) - center) / size, (right - center) / size
    axes = panels(1, 2, 5.25, 3.6, sharey=True)
    for ax, states, name in zip(axes[0], (left, right), comparison.names, strict=True):
        side = "embedding, scaled" if ax is axes[0, 0] else ""
        for line, color in zip(states.T, graded_colors(states.shape[1]), strict=True):
            ax.plot(times, line, color=color, linewidth=1.2)
        with style(figure_of(ax).get_figwidth()):
            ax.set(title=name, xlabel=f"time, {comparison.names[1]}", ylabel=side)
        ax.margins(x=0)
    return axes


def _snapshots(
    comparison: Comparison, times: Any, matched: Any, left: Any, right: Any, errors: Any
) -> Panels:
    """Draw points at several times, one row for each ensemble."""
    places = np.unique(np.linspace(0, len(times) - 1, COLUMNS).round().astype(int))
    axes = panels(2, len(places), 2.4, 2.65)
    for column, k in zip(axes.T, places, strict=True):
        moved = _planar(aligned(left[k], right[k]), right[-1])
        show_embedding(moved, column[0], title=f"time {plain(matched[k])}")
        title = f"time {plain(times[k])},\ndistance {errors[k]:.2f}"
        show_embedding(_planar(right[k], right[-1]), column[1], title=title)
    for ax, name in zip(axes[:, 0], comparison.names, strict=True):
        ax.set_ylabel(name)
    return axes


def _planar(E: Any, reference: Any) -> Any:
    """Return up to two coordinates: the given ones, or those along the principal axes of `reference`."""
    return E if E.shape[1] <= 2 else E @ principal_components(reference).axes[:2].T
