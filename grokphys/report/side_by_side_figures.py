"""The pictures of a comparison."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import pyplot as plt

from analysis.circles.geometry import principal_components
from analysis.compare.comparison import Comparison
from analysis.compare.ensembles import EnsembleOf
from analysis.compare.motion import Paths, frame_mean
from analysis.compare.relabelling import aligned
from analysis.plots import figures
from analysis.plots.comparison import (
    show_calibration,
    show_clocks,
    show_effects,
    show_error,
    show_lines,
    show_onsets,
)
from grokphys.report.page import Picture
from physics.trajectory import Trajectory

Trajectories = Sequence[Trajectory]
COLUMNS = 5
"""Frames that are shown side by side, and distributions in a row."""
SHOWN = 5
"""Distributions that are drawn; all are in the table."""


def distribution_pictures(comparison: Comparison) -> list[Picture]:
    """Effect sizes of all quantities, and the distributions of the first of them."""
    if not comparison.distributions:
        return []
    drawn = [one for one in comparison.distributions.values() if "Cohen's h" not in one.effects][:SHOWN]
    panels = 1 + len(drawn)
    columns = min(panels, 3)
    rows = -(-panels // columns)
    with figures.style():
        figure, axes = plt.subplots(rows, columns, figsize=(4.1 * columns, 3.3 * rows), squeeze=False)
    show_effects(comparison.distributions, axes.flat[0], title="Effect sizes, 95 % intervals")
    for ax, one in zip(axes.flat[1:], drawn, strict=False):
        samples = dict(zip(comparison.names, one.samples, strict=True))
        figures.show_distributions(samples, ax, xlabel=one.name)
    for ax in axes.flat[panels:]:
        ax.set_axis_off()
    plt.close(figure)
    return [Picture("Effect sizes, and cumulative distributions over the runs.", figure)]


def motion_pictures(comparison: Comparison, first: Trajectories, second: Trajectories) -> list[Picture]:
    """The typical pair frame by frame after alignment, and error and clocks over time."""
    motion = comparison.motion
    assert motion is not None
    ylabel = "disparity" if comparison.shapes is not None else "1 - R² across components"
    with figures.style():
        figure, axes = plt.subplots(1, 2, figsize=(10.5, 3.4))
    show_error(motion, comparison.names[1], axes[0], ylabel=ylabel, title="Error over time")
    show_clocks(motion, comparison.names, axes[1], title="Clocks, after alignment")
    plt.close(figure)
    over_time = Picture("Error of the pairs over time, and which times stand side by side.", figure)
    return [*_frames(comparison, first, second), over_time]


def shape_picture(comparison: Comparison) -> Picture:
    """Distributions of the distances between final shapes."""
    assert comparison.shapes is not None
    with figures.style():
        figure, ax = plt.subplots(figsize=(6.2, 3.4))
    figures.show_distributions(
        comparison.shapes.distances(comparison.names),
        ax,
        xlabel="Procrustes disparity to the nearest shape",
        title=f"Final shapes of {comparison.names[1]}: nearest among …",
    )
    plt.close(figure)
    return Picture("How distances between final shapes are distributed.", figure)


def overlay_pictures(
    comparison: Comparison, first: Trajectories, second: Trajectories, count: int = 4
) -> list[Picture]:
    """Final shapes of the second over those of the first nearest to them, at quantiles of the distance."""
    one, other = EnsembleOf(comparison.names[0], first), EnsembleOf(comparison.names[1], second)
    shapes = comparison.shapes
    if shapes is None or one.dim != other.dim or other.dim < 2:
        return []
    order = np.argsort(shapes.nearest, kind="stable")
    chosen = order[np.linspace(0, len(order) - 1, min(count, len(order))).round().astype(int)]
    with figures.style():
        figure, axes = plt.subplots(1, len(chosen), figsize=(3.1 * len(chosen), 3.4), squeeze=False)
    for ax, run in zip(axes[0], chosen, strict=True):
        partner = int(shapes.disparity[:, run].argmin())
        permutation = shapes.symmetry.permutations[shapes.relabelling[partner, run]]
        moved = aligned(one.final[partner], other.final[run], permutation)
        target, moved = _planar(other.final[run], other.final[run]), _planar(moved, other.final[run])
        title = f"{other.name} {run}, {one.name} {partner}: {shapes.nearest[run]:.3f}"
        figures.show_embedding(target, ax, outline=moved, title=title)
    plt.close(figure)
    return [
        Picture(
            f"Final shapes of {other.name} (discs) and the nearest of {one.name}, aligned (open circles): "
            "from the best match on the left to the worst on the right, with the disparity.",
            figure,
        )
    ]


def onset_picture(comparison: Comparison) -> Picture:
    """Part of the runs that have got there over time."""
    shown = list(comparison.onsets.values())[:3]
    with figures.style():
        figure, axes = plt.subplots(1, len(shown), figsize=(max(4.1 * len(shown), 5.2), 3.3), squeeze=False)
    for ax, onset in zip(axes[0], shown, strict=True):
        show_onsets(onset, comparison.names, ax)
    plt.close(figure)
    return Picture("Part of the runs that have got there by a time, clocks aligned, with 95 % bands.", figure)


def calibration_picture(comparison: Comparison) -> Picture:
    """Measured against predicted accuracy."""
    assert comparison.accuracy is not None
    with figures.style():
        figure, ax = plt.subplots(figsize=(4.4, 3.9))
    show_calibration(comparison.accuracy, ax, title=f"{len(comparison.accuracy.predicted)} runs")
    plt.close(figure)
    return Picture("Accuracy measured against what was predicted; dotted: where they agree.", figure)


def _frames(comparison: Comparison, first: Trajectories, second: Trajectories) -> list[Picture]:
    """The pair of the median error: lines of one dimension, or point sets at several times."""
    motion = comparison.motion
    assert motion is not None
    one, other = EnsembleOf(comparison.names[0], first), EnsembleOf(comparison.names[1], second)
    covered, means = np.isfinite(motion.error), frame_mean(motion.error)
    chosen = int(np.argsort(means, kind="stable")[(len(means) - 1) // 2])
    frames = np.flatnonzero(covered[chosen])
    if not len(frames) or one.times is None or other.times is None:
        return []
    times, matched = motion.times[frames], motion.matched[chosen, frames]
    left = Paths(one.positions(motion.pairs[chosen, :1]), one.times).at(matched)[0]
    right = Paths(other.positions(motion.pairs[chosen, 1:]), other.times).at(times)[0]
    left = left[:, motion.relabelling[chosen]]
    i, j = motion.pairs[chosen]
    who = f"run {i} of {one.name} and run {j} of {other.name}, the pair of median error"
    if max(left.shape[2], right.shape[2]) == 1:
        return [_lines(comparison, times, left[..., 0], right[..., 0], who)]
    if left.shape[2] != right.shape[2]:
        return []
    return [_snapshots(comparison, times, matched, left, right, motion.error[chosen, frames], who)]


def _lines(comparison: Comparison, times: Any, left: Any, right: Any, who: str) -> Picture:
    ylabel = "state"
    if comparison.shapes is not None:
        moved = [aligned(a[:, None], b[:, None])[:, 0] for a, b in zip(left, right, strict=True)]
        centre, size = right.mean(axis=1, keepdims=True), right.std(axis=1, keepdims=True)
        left, right = (np.array(moved) - centre) / size, (right - centre) / size
        ylabel = "normalised embedding"
    with figures.style():
        figure, axes = plt.subplots(1, 2, figsize=(10.5, 3.6), sharey=True)
    for ax, states, name in zip(axes, (left, right), comparison.names, strict=True):
        side = ylabel if ax is axes[0] else ""
        show_lines(times, states, ax, title=name, xlabel=f"time, {comparison.names[1]}", ylabel=side)
    plt.close(figure)
    return Picture(f"Aligned: {who}. Each line is a token or component.", figure)


def _snapshots(
    comparison: Comparison, times: Any, matched: Any, left: Any, right: Any, errors: Any, who: str
) -> Picture:
    places = np.unique(np.linspace(0, len(times) - 1, COLUMNS).round().astype(int))
    with figures.style():
        figure, axes = plt.subplots(2, len(places), figsize=(2.2 * len(places), 4.9), squeeze=False)
    for column, k in zip(axes.T, places, strict=True):
        moved = _planar(aligned(left[k], right[k]), right[-1])
        figures.show_embedding(moved, column[0], title=f"t = {matched[k]:.3g}")
        title = f"t = {times[k]:.3g}, error {errors[k]:.2f}"
        figures.show_embedding(_planar(right[k], right[-1]), column[1], title=title)
    for ax, name in zip(axes[:, 0], comparison.names, strict=True):
        ax.set_ylabel(name)
    plt.close(figure)
    return Picture(f"After alignment of clocks, labels and axes: {who}.", figure)


def _planar(E: Any, reference: Any) -> Any:
    """Two coordinates: those there are, or the first principal components of a reference."""
    return E if E.shape[1] <= 2 else E @ principal_components(reference).axes[:2].T
