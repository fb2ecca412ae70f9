"""What a comparison notes, what it measures, and which starts are equal, each against its definition."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from ensembles import noise, ring

from analysis import compare
from analysis.comparison import parts
from analysis.comparison.ensembles import _quality, _watched
from analysis.comparison.symmetry import no_relabelling
from analysis.comparison.timing import Onsets
from analysis.stats.intervals import Interval
from physics import Trajectory
from physics.theory.operations import class_rule

KNOWN = "the factor between the clocks has no interval: onsets take it as known"


def walks(runs, dim, seed, tokens=5, **options):
    return Trajectory(np.cumsum(noise(runs, 3, tokens, dim, seed=seed), axis=1), range(3), **options)


@pytest.mark.parametrize(
    ("low", "alignment", "noted", "clock"),
    [
        (math.nan, "scaling", True, (1.0, 1.0)),
        (math.nan, "progress", True, (1.0, 1.0)),
        (math.nan, "ends", False, (1.0, 1.0)),
        (math.nan, "none", False, (1.0, 1.0)),
        (1.6, "scaling", False, (2.0 / 2.5, 2.0 / 1.6)),
    ],
)
def test_a_clock_without_an_interval_is_noted_where_it_was_estimated(
    low, alignment, noted, clock, monkeypatch
):
    onsets = Onsets(np.array([2.0, 4.0]), np.array([True, True]))
    motion = SimpleNamespace(
        scale=Interval(2.0, low, 2.5, 3), alignment=alignment, paired=False, pairs=np.array([[0, 0]])
    )
    asked = []
    monkeypatch.setattr(parts, "compare_onsets", lambda *what, **how: asked.append((what, how)))
    whole = SimpleNamespace(notes=[], _reached=lambda thresholds: {"quality": (onsets, onsets)})
    parts.Parts.onsets(whole, motion, None)
    assert whole.notes == ([KNOWN] if noted else [])
    (((name, first, second), how),) = asked
    assert (name, first.times.tolist(), second.times.tolist()) == ("quality", [1.0, 2.0], [2.0, 4.0])
    assert how == {"pairs": [], "clock": pytest.approx(clock)}
    motion.paired = True
    parts.Parts.onsets(whole, motion, None)
    assert asked[1][1]["pairs"] == [[0, 0]]
    parts.Parts.onsets(whole, None, None)
    assert asked[2][0][1].times.tolist() == [2.0, 4.0], "without a motion times stay as they are"
    assert asked[2][1]["pairs"] == []


def test_structures_are_measured_if_both_ensembles_are_planar():
    for dims, planar in (((2, 4), True), ((2, 5), False), ((5, 2), False)):
        found = compare(walks(3, dims[0], 0), walks(3, dims[1], 1), align="none")
        assert ("circles" in found.distributions) == planar, dims


def starts(first, second, states=False):
    both = [SimpleNamespace(initial=np.asarray(one, float)) for one in (first, second)]
    return SimpleNamespace(first=both[0], second=both[1], states=states, symmetry=no_relabelling(5))


def test_starts_are_equal_up_to_a_similarity_unless_all_tokens_lie_in_one_point():
    shapes = noise(2, 5, 2, seed=7)
    turned = 3.0 * shapes[..., ::-1] * [1.0, -1.0] + [0.5, 2.0]
    same = parts.Parts._same_starts
    assert same(starts(shapes, turned))
    assert not same(starts(shapes, turned, states=True)), "states are compared as they are"
    assert same(starts(shapes, shapes + 1e-12, states=True))
    assert not same(starts(shapes, shapes[::-1]))
    for place in (0.0, [1.0, 2.0]):
        assert not same(starts(shapes * 0 + place, shapes * 0 + place))
        assert not same(starts(shapes, shapes * 0 + place))
        assert not same(starts(shapes * 0 + place, shapes))


def test_quality_is_nan_where_nothing_varies():
    flat = np.ones((3, 5, 2))
    assert np.isnan(_quality(flat, class_rule(5), 0.01)).all()
    some = np.stack([np.ones((5, 2)), ring(5, 1), np.c_[np.arange(5.0), np.ones(5)]])
    assert np.isnan(_quality(some, class_rule(5), 0.01)).tolist() == [True, False, True]


@pytest.mark.parametrize(("states", "searched"), [(False, 20), (True, 1)])
def test_motion_searches_the_relabelings_of_the_problem_unless_states_are_compared(
    states, searched, monkeypatch
):
    """Addition modulo 5 is kept by i → u i + s with 4 factors and 5 shifts."""

    class Stop(Exception):  # noqa: N818 - it ends the test
        pass

    def stop(first, second, pairs, symmetry, **how):
        assert len(symmetry.permutations) == searched
        raise Stop

    monkeypatch.setattr(parts, "compare_motion", stop)
    with pytest.raises(Stop):
        compare(walks(2, 2, 0), walks(2, 2, 1), states=states)


def test_a_run_that_did_not_arrive_was_watched_until_its_clock_or_its_training_ended():
    found = Onsets(np.array([5.0, 9.0, 9.0]), np.array([False, False, True]))
    assert _watched(found, np.array([7.0, 7.0, 7.0])).times.tolist() == [5, 7, 9]
