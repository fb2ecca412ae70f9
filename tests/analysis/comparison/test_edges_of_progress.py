"""Edges of equal progress: frames that are not finite, curves without common values; names of ensembles."""

import math

import numpy as np
import pytest
from ensembles import ensemble, noise

from analysis import compare
from analysis.comparison.progress import by_progress, same_progress
from physics import InputError, Operation, Trajectory, cyclic, symmetric

NAN, INF = math.nan, math.inf
STEPS = np.arange(5.0)


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_frames_that_are_not_finite_are_left_out_on_either_side(bad):
    rising = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    gap = np.where(STEPS == 2, bad, rising)
    np.testing.assert_allclose(same_progress(gap, rising, 3 * STEPS, STEPS), 3 * STEPS)
    np.testing.assert_allclose(same_progress(rising, gap, 3 * STEPS, STEPS), [0, 3, NAN, 9, 12])
    ended = np.where(STEPS > 2, bad, rising)
    np.testing.assert_allclose(same_progress(ended, rising, 3 * STEPS, STEPS), [0, 3, 6, NAN, NAN])
    late = np.where(STEPS < 1, bad, rising)
    np.testing.assert_allclose(same_progress(late, rising, 3 * STEPS, STEPS), [NAN, 3, 6, 9, 12])
    for one in (np.full(5, bad), np.where(STEPS == 2, 1.0, bad)):
        assert np.isnan(same_progress(one, rising, STEPS, STEPS)).all()
        assert np.isnan(same_progress(rising, one, STEPS, STEPS)).all()


def test_a_pair_without_a_finite_value_has_no_factor_and_the_others_have():
    second = np.tile(STEPS, (3, 1))
    first = np.array([STEPS, np.full(5, NAN), STEPS])
    matched, scale = by_progress(first, second, 2 * STEPS, STEPS, True)
    np.testing.assert_allclose(matched, [2 * STEPS, np.full(5, NAN), 2 * STEPS])
    assert (scale.estimate, scale.count) == (pytest.approx(2), 2)
    for paired in (True, False):
        with pytest.raises(InputError, match="align must name an observable that takes the same values"):
            by_progress(np.full((3, 5), NAN), second, STEPS, STEPS, paired)


def test_the_mean_over_runs_is_taken_where_all_are_finite():
    first, second = np.tile(STEPS, (2, 1)), np.tile(STEPS, (3, 1))
    second[1, 3] = NAN
    matched, scale = by_progress(first, second, 2 * STEPS, STEPS, False)
    np.testing.assert_allclose(matched, [[0, 2, 4, NAN, 8]])
    assert scale.estimate == pytest.approx(2)


def test_an_observable_that_is_nowhere_finite_is_no_clock():
    def walks(values, seed):
        return Trajectory(noise(2, 3, 5, 2, seed=seed), [0, 1, 2], observables={"x": np.tile(values, (2, 1))})

    for bad in (NAN, INF):
        for paired in (True, False):
            with pytest.raises(InputError, match="align must name an observable that takes the same values"):
                compare(walks([bad] * 3, 0), walks([0.0, 1.0, 2.0], 1), align="x", paired=paired)
    motion = compare(walks([0.0, 1.0, NAN], 0), walks([0.0, 0.5, 1.0], 1), align="x").motion
    np.testing.assert_allclose(motion.matched, np.tile([0.0, 0.5, 1.0], (2, 1)))


@pytest.mark.parametrize("names", [("A", "A"), ("A",), ("A", "B", "C"), "AB", ("A", "B", "A")])
def test_ensembles_have_two_different_names(names):
    both = ensemble(noise(2, 5, 2)), ensemble(noise(2, 5, 2, seed=1))
    with pytest.raises(InputError, match="names must be two different names, got"):
        compare(*both, names=names)
    assert compare(*both, names=["A", "B"]).shapes is not None


def test_products_that_do_not_commute_have_no_structures_of_pair_sums():
    both = noise(3, 3, 6, 2), noise(2, 3, 6, 2, seed=1)
    found = compare(*both, operation=Operation(group=symmetric(3)))
    assert (found.simulated, found.trained) == (None, None)
    assert set(found.distributions) == {"effective_dimension", "survivors"}
    assert "quality" not in found.onsets
    assert found.shapes.symmetry.name.startswith("automorphisms of ")
    commuting = compare(*both, operation=Operation(group=cyclic(6)))
    assert len(commuting.simulated.circle) == 3
    assert {"circles", "quality"} <= set(commuting.distributions)
