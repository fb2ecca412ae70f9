"""Figures of a comparison: what is drawn is recomputed from the positions of the runs."""

import itertools
import re

import matplotlib.pyplot as plt
import numpy as np
import pytest

import analysis
import physics
from analysis.plots.comparison import (
    show_motion,
    show_nearest,
    show_quantities,
    show_typical_pair,
    typical_pair,
)

NAMES = ("A", "B")


@pytest.fixture(scope="module")
def compared():
    """Two small ensembles in the plane, from different starts, and their comparison."""
    first = physics.simulate(physics.ParticleSystem(5), runs=4, steps=12, record_every=2, seed=1)
    second = physics.simulate(
        physics.ParticleSystem(5, alignment=2.0), runs=6, steps=12, record_every=2, seed=7
    )
    return analysis.compare(first, second, names=NAMES), first, second


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def places(collection):
    return np.asarray(collection.get_offsets())


def gap(shape, target):
    """Squared distance of two shapes in units of the target's size."""
    return ((shape - target) ** 2).sum() / ((target - target.mean(axis=0)) ** 2).sum()


def disparity(a, b):
    """Least gap over translations, rotations, reflections and scales: one minus squared correlation."""
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    return 1 - np.linalg.svd(a.T @ b, compute_uv=False).sum() ** 2 / ((a**2).sum() * (b**2).sum())


def test_the_nearest_shapes_are_drawn_from_the_best_to_the_worst(compared):
    comparison, first, second = compared
    permutations = comparison.shapes.symmetry.permutations
    best = np.array(
        [
            [min(disparity(one[p], other) for p in permutations) for one in first.final]
            for other in second.final
        ]
    )
    axes = show_nearest(comparison, [first], [second], count=3)[0]
    assert len(axes) == 3
    drawn = []
    for ax in axes:
        run, partner, shown = re.fullmatch(
            r"run (\d+) \(discs\),\nrun (\d+) \(open circles\),\ndisparity ([\d.]+)",
            ax.get_title(loc="left") or ax.get_title(),
        ).groups()
        run, partner = int(run), int(partner)
        outline, discs = map(places, ax.collections)
        np.testing.assert_allclose(discs, second.final[run])
        assert partner == best[run].argmin()
        assert float(shown) == pytest.approx(best[run].min(), abs=0.006)
        assert gap(outline, discs) == pytest.approx(best[run].min(), abs=1e-9)
        drawn.append(best[run].min())
    assert drawn == sorted(drawn)
    assert (drawn[0], drawn[-1]) == (best.min(axis=1).min(), best.min(axis=1).max())


def test_the_nearest_shapes_are_not_drawn_of_lines_or_of_other_dimensions(compared):
    comparison, first, _ = compared
    flat = physics.simulate(physics.ParticleSystem(5, 1), runs=3, steps=4, seed=3)
    assert show_nearest(comparison, [first], [flat]) is None
    assert show_nearest(analysis.compare(flat, flat, names=NAMES), [flat], [flat]) is None


def test_quantities_are_drawn_as_their_distributions(compared):
    comparison, *both = compared
    axes = show_quantities(comparison)
    shown = {ax.get_xlabel(): ax for ax in list(axes.flat)[1:] if ax.axison}
    assert list(shown) == [
        one.name for one in comparison.distributions.values() if "Cohen's h" not in one.effects
    ]
    (ax,) = (ax for name, ax in shown.items() if "imperfections" in name)
    for line, name, run in zip(ax.lines, NAMES, both, strict=True):
        counts = [physics.grid_imperfections(E) for E in run.final if not physics.is_circle(E)]
        assert line.get_label() == f"{name} (n = {len(counts)})"
        x, y = line.get_data()
        for value in np.unique(counts):
            assert y[x == value].max() == pytest.approx(np.mean(np.array(counts) <= value))


def test_motion_is_drawn_as_errors_and_matching_times(compared):
    comparison, *_ = compared
    motion = comparison.motion
    error, times = show_motion(comparison)[0]
    assert (error.get_ylabel(), error.get_title(loc="left")) == ("disparity", "Error over time")
    line = next(line for line in error.lines if line.get_label() == "a run of A and one of B")
    np.testing.assert_allclose(line.get_ydata(), np.median(motion.error, axis=0))
    assert times.get_title(loc="left") == "Times that correspond"
    for line, row in zip(times.lines, motion.matched, strict=False):
        np.testing.assert_array_equal(line.get_ydata(), row)


def test_the_typical_pair_is_drawn_at_several_times(compared):
    """The shape of the first ensemble is moved onto that of the second: what is left is the error."""
    comparison, first, second = compared
    motion = comparison.motion
    means = motion.error.mean(axis=1)
    chosen = typical_pair(motion)
    assert means[chosen] == np.sort(means)[(len(means) - 1) // 2]
    run, other = motion.pairs[chosen]
    assert run != other
    upper, lower = show_typical_pair(comparison, [first], [second])
    assert [row[0].get_ylabel() for row in (upper, lower)] == list(NAMES)
    frames = []
    for top, below in zip(upper, lower, strict=True):
        (left,), (right,) = map(places, top.collections), map(places, below.collections)
        frame = next(k for k in range(second.frames) if np.allclose(second.positions[other, k], right))
        assert gap(left, right) == pytest.approx(motion.error[chosen, frame], abs=1e-9)
        label = motion.relabelling[chosen]
        if motion.matched[chosen, frame] in first.times:
            same = first.positions[run, first.times.tolist().index(motion.matched[chosen, frame])][label]
            assert disparity(same, right) == pytest.approx(motion.error[chosen, frame], abs=1e-9)
        frames.append(frame)
        words = below.get_title(loc="left") or below.get_title()
        assert words.endswith(f"distance {motion.error[chosen, frame]:.2f}")
    assert frames == sorted(frames)
    assert (frames[0], frames[-1], len(frames)) == (0, second.frames - 1, 4)
    assert all(a < b for a, b in itertools.pairwise(frames))
