"""Two ensembles in motion: clocks, pairs, and what chance gives."""

import numpy as np
import pytest
from ensembles import guise, noise
from scipy.spatial import procrustes

import analysis
import physics
from analysis.stats.intervals import difference
from physics import Trajectory

AS_LABELLED = analysis.comparison.no_relabelling(7)


def test_a_relabelled_rotated_stretched_copy_is_the_same_motion(particles):
    comparison = analysis.compare(particles, guise(particles, stretch=2.5))
    motion = comparison.motion
    assert motion.paired
    assert motion.alignment == "scaling"
    assert motion.scale.estimate == pytest.approx(1 / 2.5, rel=1e-3)
    assert motion.scale.low <= motion.scale.estimate <= motion.scale.high
    assert motion.relabelling[0].tolist() == [(3 * i + 2) % 7 for i in range(7)]
    assert np.nanmax(motion.error) < 1e-4
    assert motion.mean_error.high < 1e-5 < 0.1 < motion.chance_error.low
    for name in ("circles", "quality", "effective_dimension", "survivors"):
        assert comparison.distributions[name].difference.estimate == pytest.approx(0, abs=1e-9)


def test_the_copy_may_be_longer_or_shorter(particles):
    short = guise(particles, stretch=3.0, frames=21)
    for first, second, tau in ((particles, short, 1 / 3), (short, particles, 3.0)):
        motion = analysis.compare(first, second).motion
        assert motion.scale.estimate == pytest.approx(tau, rel=2e-2)
        assert np.nanmean(motion.error) < 1e-3


def walks(seed, runs=8):
    return Trajectory(np.cumsum(noise(runs, 6, 7, 2, seed=seed), axis=1), np.arange(6))


def test_partners_who_are_chosen_do_not_win_by_the_choice():
    """Two ensembles of one law, twelve times: pairs are as near as runs of the first are to each other."""
    system = physics.ParticleSystem(tokens=7)
    gained, nearer = [], 0
    for seed in range(12):
        first, second = (
            physics.simulate(system, runs=12, steps=60, record=10, seed=each) for each in (seed, seed + 1000)
        )
        motion = analysis.compare(first, second).motion
        gained.append(motion.mean_error.estimate - motion.chance_error.estimate)
        nearer += difference(motion.mean_error, motion.chance_error).high < 0
    assert abs(np.mean(gained)) < 0.05, "0.16 where the others are not chosen"
    assert nearer <= 1


def missed(a, b):
    """Procrustes disparity of two runs, frame by frame."""
    return np.array([procrustes(y, x)[2] for x, y in zip(a, b, strict=True)])


def ends_nearest(runs, end, without=None):
    """Numbers of the runs, those that end nearest first."""
    apart = [procrustes(end, run[-1])[2] for run in runs]
    return [k for k in np.argsort(apart) if k != without]


def test_the_mean_error_is_over_frames_that_have_a_counterpart():
    first, second = walks(0, 3), walks(1, 3)
    short = Trajectory(first.positions[:, :4], first.steps[:4])
    motion = analysis.compare(short, second, symmetry=AS_LABELLED, paired=True, align="none").motion
    pairs = zip(short.positions, second.positions, strict=True)
    expected = np.array([missed(a, b[:4]) for a, b in pairs])
    np.testing.assert_allclose(motion.error[:, :4], expected)
    assert np.isnan(motion.error[:, 4:]).all()
    assert motion.mean_error.estimate == pytest.approx(expected[:, 1:].mean())


def test_components_of_a_flow_are_no_points_whose_shapes_could_be_compared():
    flow = physics.simulate(physics.AffineFlow(-np.eye(3), np.zeros(3)), steps=5, runs=4)
    for both in ((flow, flow), (walks(0), [flow])):
        with pytest.raises(physics.InputError, match="AffineFlow"):
            analysis.compare(*both)


# -- clocks ------------------------------------------------------------------------------------------------


def test_what_ends_together_is_compared_at_equal_parts_of_its_time():
    first, second = walks(0, 5), walks(1, 4)
    second = Trajectory(second.positions, second.steps, second.steps * 0.5)
    motion = analysis.compare(first, second, symmetry=AS_LABELLED, align="ends").motion
    assert (motion.scale.estimate, motion.alignment) == (2.0, "ends")
    np.testing.assert_allclose(motion.matched, np.tile(np.arange(6.0), (4, 1)))
    x = first.positions
    own = np.array([missed(x[ends_nearest(x, run[-1], without=k)[0]], run) for k, run in enumerate(x)])
    np.testing.assert_allclose(motion.chance, own)
    one_less = [
        missed(x[ends_nearest(x, run[-1], without=left)[0]], run)
        for run in second.positions
        for left in range(5)
    ]
    assert motion.mean_error.estimate == pytest.approx(np.mean(one_less)), (
        "over all choices among one run less"
    )
