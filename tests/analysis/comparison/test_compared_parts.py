"""Shapes and pairs of two ensembles, held against SciPy's Procrustes analysis over all relabelings."""

import math

import numpy as np
import pytest
from ensembles import ensemble, noise
from scipy.spatial import procrustes

from analysis import compare
from analysis.comparison.ensembles import EnsembleOf
from analysis.comparison.symmetry import no_relabelling
from physics import InputError, Trajectory

P = 5


def least(a, b, *, relabelled=True):
    """Smallest disparity over the affine relabelings of five tokens."""
    orders = (
        [(u * np.arange(P) + s) % P for u in range(1, P) for s in range(P)] if relabelled else [np.arange(P)]
    )
    return min(procrustes(b, a[order])[2] for order in orders)


@pytest.fixture(scope="module")
def both():
    return ensemble(noise(4, P, 2, seed=1), noise(4, P, 2, seed=2)), ensemble(noise(3, P, 2, seed=3))


@pytest.mark.parametrize("relabelled", [True, False])
def test_each_shape_has_its_nearest_ones_among_three_ensembles(both, relabelled):
    first, second = both
    symmetry = None if relabelled else no_relabelling(P)
    found = compare(first, second, symmetry=symmetry).shapes

    def among(shapes, *, others=False):
        return [
            min(least(a, b, relabelled=relabelled) for k, a in enumerate(shapes) if not others or k != n)
            for n, b in enumerate(second.final)
        ]

    expected = [[least(a, b, relabelled=relabelled) for b in second.final] for a in first.final]
    np.testing.assert_allclose(found.disparity, expected, atol=1e-9)
    np.testing.assert_allclose(found.nearest, among(first.final), atol=1e-9)
    np.testing.assert_allclose(found.nearest_start, among(first.initial), atol=1e-9)
    np.testing.assert_allclose(found.nearest_trained, among(second.final, others=True), atol=1e-9)
    assert list(found.distances(("a", "b"))) == ["a, final", "a, start", "other b"]
    for name, values in found.distances(("a", "b")).items():
        own = {"a, final": found.nearest, "a, start": found.nearest_start, "other b": found.nearest_trained}
        assert values is own[name]


def test_a_run_is_compared_with_its_nearest_or_with_that_of_its_number(both):
    first, second = both
    whole = compare(first, second)
    assert not whole.motion.paired
    np.testing.assert_array_equal(whole.motion.pairs[:, 0], whole.shapes.disparity.argmin(axis=0))
    np.testing.assert_array_equal(whole.motion.pairs[:, 1], [0, 1, 2])
    again = Trajectory(first.positions[:, :, :, ::-1] * 2.0, first.steps)
    together = compare(first, again)
    assert together.motion.paired
    assert together.motion.pairs.tolist() == [[k, k] for k in range(4)]
    np.testing.assert_allclose(compare(first, again, align="none").motion.error, 0, atol=1e-9)
    assert not compare(first, again, paired=False).motion.paired
    with pytest.raises(
        InputError, match="paired must be False unless the same runs of both are finite, got 4 and 3"
    ):
        compare(first, second, paired=True)


def test_states_are_compared_as_they_are(both):
    first, second = both
    whole = compare(first, second, states=True)
    assert whole.shapes is None
    apart = np.array([[((a - b) ** 2).sum() for b in second.final] for a in first.final])
    np.testing.assert_array_equal(whole.motion.pairs[:, 0], apart.argmin(axis=0))


def test_runs_that_are_not_finite_are_left_out_and_said(both):
    first, second = both
    broken = Trajectory(first.positions.copy(), first.steps)
    broken.positions[1, -1, 0, 0] = math.nan
    whole = compare(broken, second, names=("one", "two"))
    assert whole.runs == (3, 3)
    assert any("1 of 4 one runs are not finite and left out" in note for note in whole.notes)
    np.testing.assert_allclose(whole.shapes.nearest, compare(
        Trajectory(np.delete(first.positions, 1, axis=0), first.steps), second).shapes.nearest)  # fmt: skip


def test_at_equal_progress_each_ensemble_has_its_own_clock():
    """The second moves at half the speed, and its observable says so: no error is left."""
    steps = np.arange(9)
    path = noise(2, 1, P, 2, seed=4) + steps[None, :, None, None] / 8 * noise(2, 1, P, 2, seed=5)
    done = np.tile(steps / 8.0, (2, 1))
    first = Trajectory(path, steps, steps * 1.0, observables={"progress": done})
    second = Trajectory(path, steps, steps * 2.0, observables={"progress": done})
    found = compare(first, second, align="progress").motion
    assert found.alignment == "progress"
    assert found.scale.estimate == pytest.approx(0.5)
    np.testing.assert_allclose(found.error, 0, atol=1e-9)
    with pytest.raises(InputError, match="align must be 'auto', .*progress.*, got 'something'"):
        compare(first, second, align="something")


def test_runs_that_are_not_finite_are_left_out_wherever_they_stand():
    positions = noise(6, 4, P, 2, seed=4)
    spoiled = positions.copy()
    spoiled[[0, 3], -1] = np.nan
    halves = [Trajectory(spoiled[:2], range(4)), Trajectory(spoiled[2:], range(4))]
    found = EnsembleOf("them", halves)
    sound = [1, 2, 4, 5]
    np.testing.assert_array_equal(found.final, positions[sound, -1])
    for runs in ([0], [3, 1], [0, 1, 2, 3]):
        np.testing.assert_array_equal(found.positions(np.array(runs)), positions[np.array(sound)[runs]])
