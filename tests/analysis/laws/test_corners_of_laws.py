"""Corners of laws and comparisons: limits that callers set, plateaus, units, and ends of ranges."""

import math

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import analysis
import physics
from analysis.circles.classes import structures
from analysis.circles.fourier import frequency_shares
from analysis.comparison import symmetry
from analysis.comparison.ensembles import EnsembleOf
from analysis.comparison.progress import by_progress, frame_mean, monotone, same_progress
from analysis.laws.honest import HonestScores
from analysis.laws.pieces import r_squared, unit, whole_steps
from analysis.laws.regressors import LinearODERegressor
from analysis.laws.scores import BLOW_UP, Law, Score
from analysis.stats.intervals import Interval
from physics import InputError, Trajectory

RNG = np.random.default_rng(3)
TIED = RNG.normal(size=(40, 1)) + 0.01 * RNG.normal(size=(40, 3))  # so alike that a fit takes many sweeps
TARGET = TIED @ [[1.0], [-2.0], [3.0]] + RNG.normal(size=(40, 1))


class Growth(Law):
    """The law dx = x² of every component."""

    def __init__(self, kind):
        self.kind = kind

    def changes(self, states):
        return states**2


# -- limits that are passed on ------------------------------------------------------------------------------


def fits(**limits):
    """Number of sweeps by each of the three ways to fit the same regression."""
    path = np.concatenate([TIED, TIED[:1]])
    regressor = LinearODERegressor(alpha=1e-4, **limits).fit(TIED, TARGET)
    batch = analysis.laws.batch_lasso([(TIED, TARGET)], alpha=1e-4, **limits)
    each = analysis.laws.fit_each(path, alpha=1e-6, **limits)
    return regressor, batch, each


@pytest.mark.filterwarnings("ignore:.*have not converged")
def test_sweeps_and_tolerance_are_those_that_were_asked_for():
    regressor, batch, each = fits(max_iter=1)
    assert regressor.n_iter_.tolist() == [1]
    assert batch.sweeps.tolist() == [[[1]]]
    assert not any(one.all() for one in (regressor.converged_, batch.converged, each.converged))
    regressor, batch, each = fits()
    assert regressor.n_iter_[0] == batch.sweeps[0, 0, 0] > 1
    assert all(one.all() for one in (regressor.converged_, batch.converged, each.converged))
    regressor, batch, each = fits(max_iter=1, tol=1e9)
    assert all(one.all() for one in (regressor.converged_, batch.converged, each.converged))


def test_the_share_of_the_first_norm_counts_for_the_elastic_net_only():
    lasso = [LinearODERegressor("lasso", 0.1, l1_ratio=r).fit(TIED, TARGET).coef_ for r in (0.2, 0.9)]
    np.testing.assert_array_equal(*lasso)
    net = [LinearODERegressor("elastic-net", 0.1, l1_ratio=r).fit(TIED, TARGET).coef_ for r in (0.2, 1.0)]
    np.testing.assert_allclose(net[1], lasso[0], rtol=1e-12)
    assert np.abs(net[0] - net[1]).max() > 0.1
    batch = analysis.laws.batch_lasso([(TIED, TARGET)], alpha=0.1, l1_ratio=0.2)
    np.testing.assert_allclose(batch.coef[0, :, 0], net[0], rtol=1e-6)


# -- rollouts -----------------------------------------------------------------------------------------------


def test_a_flow_is_integrated_to_six_digits_at_times_that_may_come_twice():
    times = np.array([0.0, 0.5, 0.5, 0.9])
    found = Growth("generator").predict([1.0, 0.5], times)
    np.testing.assert_allclose(found, 1 / (1 / np.array([1.0, 0.5]) - times[:, None]), rtol=3e-7)


@pytest.mark.parametrize("kind", ["generator", "increment"])
def test_a_rollout_ends_where_it_exceeds_a_thousand_times_its_start(kind):
    states, reached = Growth(kind).rollout([2.0], np.arange(6))
    # The flow from 2 ends at time 1/2; the map goes by 2, 6, 42, 1806, and beyond 2000.
    assert reached == {"generator": 1, "increment": 4}[kind]
    assert np.isfinite(states[:reached]).all()
    assert np.isinf(states[reached:]).all()
    assert states[0] == 2.0
    small, _ = Growth(kind).rollout([0.001], [0.0])
    assert (small.tolist(), BLOW_UP) == ([[0.001]], 1000.0)
    nothing, none = Growth(kind).rollout([1.0], [])
    assert (nothing.shape, none) == ((0, 1), 0)


def test_steps_of_a_map_are_whole_from_zero_on():
    assert whole_steps(np.array([0.0, 3.0, 3.0])).tolist() == [0, 3, 3]
    assert unit([(np.array([0.0, 2.0, 4.0]), None), (np.array([1.0, 3.0, 5.0]), None)]) == 2.0


def test_a_single_component_may_be_predicted_as_a_vector():
    class Halves(BaseEstimator):
        def fit(self, X, Y):
            return self

        def predict(self, X):
            return -X[:, 0] / 2

    law = analysis.fit_law(Halves(), analysis.laws.affine_rollout([[-0.5]], [1.0], [0.0], 20))
    np.testing.assert_array_equal(law.changes(np.array([[4.0], [6.0]])), [[-2.0], [-3.0]])


def test_a_prediction_that_overflows_has_no_finite_score():
    truth = np.array([[1.0], [2.0], [4.0]])
    assert r_squared(truth, truth) == 1.0
    assert r_squared(truth, np.full_like(truth, truth.mean())) == pytest.approx(0.0)
    assert r_squared(truth, np.array([[1.0], [1e200], [4.0]])) == -math.inf
    assert r_squared(truth, np.array([[1.0], [np.inf], [4.0]])) == -math.inf
    assert math.isnan(r_squared(truth[:1], truth[:1]))
    two = np.array([[0.0, 0.0], [2.0, 200.0]])
    assert r_squared(two, np.array([[0.0, 100.0], [2.0, 100.0]])) == pytest.approx(0.5), (
        "a mean of components"
    )


def test_a_mean_of_scores_leaves_out_what_is_not_known():
    scores = tuple(Score(0.0, value, 0.0, 1.0, value) for value in (1.0, math.nan, 4.0))
    found = HonestScores(None, scores[0], None, scores)
    assert found.mean("rollout") == 2.5
    assert math.isnan(HonestScores(None, scores[0], None, scores[1:2]).mean("rollout"))
    assert HonestScores(None, scores[0], None, (scores[0], scores[2])).median("rollout") == 2.5
    assert math.isnan(HonestScores(None, scores[0], None, ()).median("rollout"))


# -- comparisons --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [[0, 1, 2, 2, 2], [0, 0, 0, 1, 3], [0, 1, 1, 1, 4], [5, 3, 3, 0, 0]])
def test_a_course_beside_itself_has_its_own_times_on_plateaus_too(path):
    times = np.array([0.0, 1.0, 3.0, 4.0, 8.0])
    course = np.array(path, float)
    np.testing.assert_allclose(same_progress(course, course, times, times), times, atol=1e-12)
    np.testing.assert_allclose(same_progress(course, course, 2 * times, times), 2 * times, atol=1e-12)
    assert np.isnan(same_progress(course, -course, times, times)).all(), "one rises, the other falls"
    assert np.isnan(same_progress(course, np.ones(5), times, times)).all()


def test_progress_outside_of_what_the_other_has_passed_has_no_time():
    times = np.arange(5.0)
    found = same_progress(np.array([1.0, 1.5, 2, 2.5, 3]), np.array([0.0, 1, 2, 3, 4]), times, times)
    np.testing.assert_allclose(found, [np.nan, 0, 2, 4, np.nan], atol=1e-12)
    assert monotone(np.array([3.0, 3.0, 1.0])).tolist() == [3.0, 3.0, 1.0]
    assert monotone(np.array([0.0, 2.0, 1.0])).tolist() == [0.0, 1.5, 1.5]
    with pytest.raises(InputError, match="align must name an observable that takes the same values in both"):
        by_progress(np.ones((2, 5)), np.ones((2, 5)), times, times, True)


def test_the_factor_of_pairs_is_the_geometric_mean_of_those_that_have_one():
    times = np.array([0.0, 1.0, 2.0, 4.0])
    second = np.array([[0.0, 1.0, 2.0, 4.0], [0.0, 1.0, 2.0, 4.0], [1.0, 1.0, 1.0, 1.0]])
    first = np.stack([second[0] / 2, second[0] / 8, second[0]])  # half, and an eighth as fast
    clock = np.array([0.0, 1.0, 2.0, 4.0]) * 8
    matched, scale = by_progress(first * 8, second, clock, times, True)
    assert np.isnan(matched[2]).all()
    assert scale.estimate == pytest.approx(math.sqrt(2 * 8)), (scale, matched)
    assert scale.count == 2


def test_a_mean_over_frames_leaves_out_what_is_not_known():
    errors = np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan]])
    np.testing.assert_array_equal(frame_mean(errors), [2.0, np.nan])


def test_as_many_relabellings_are_searched_as_are_allowed(monkeypatch):
    group = physics.dihedral(4)
    found = analysis.comparison.symmetry_of(group)
    assert len(found) == 16  # eight automorphisms, and two elements of the center
    monkeypatch.setattr(symmetry, "LARGEST", 16)
    assert len(analysis.comparison.symmetry_of(group)) == 16
    monkeypatch.setattr(symmetry, "LARGEST", 15)
    with pytest.raises(
        InputError, match=r"^group must have at most 15 relabelings, got 8 automorphisms times 2"
    ):
        analysis.comparison.symmetry_of(group)
    images = 2 * 5  # of an element of order four, and of one of order two
    monkeypatch.setattr(symmetry, "LARGEST", images)
    assert len(symmetry.automorphisms(group)) == 8
    monkeypatch.setattr(symmetry, "LARGEST", images - 1)
    with pytest.raises(
        InputError, match=r"^group must leave at most 9 images of its generators to try, got 10$"
    ):
        symmetry.automorphisms(group)


def test_an_ensemble_of_several_parts_asks_each_of_them():
    def part(**parameters):
        return Trajectory(RNG.normal(size=(1, 2, 5, 2)), [0, 1], parameters=parameters)

    plain, given = part(), part(train_examples=9)
    assert [EnsembleOf("a", parts).fixed_examples for parts in ([plain, given], [given, plain], [plain])] == [
        True, True, False,
    ]  # fmt: skip
    five, free = part(modulus=5), part(model={"type": "ToyAddition"})
    assert EnsembleOf("a", [plain, five]).operation.modulus == 5
    assert not EnsembleOf("a", [plain, five]).says_operation
    assert EnsembleOf("a", [five, five]).says_operation
    assert EnsembleOf("a", [plain]).operation.modulus == 5, "addition modulo the tokens if nothing is known"
    with pytest.raises(InputError, match=r"^a must record one operation, got i \+ j, i \+ j mod 5; pass"):
        EnsembleOf("a", [five, free]).operation  # noqa: B018 - a property
    pairs = part(system={"type": "ParticleSystem", "pairs": [[0, 1]]})
    assert EnsembleOf("a", [plain, pairs]).training_set.tolist() == [[0, 1]]
    assert EnsembleOf("a", [plain]).training_set is None
    flow = part(system={"type": "AffineFlow"})
    assert [EnsembleOf("a", parts).states for parts in ([plain, flow], [plain])] == [True, False]


# -- units, moduli and ends ---------------------------------------------------------------------------------


@pytest.mark.parametrize("tokens", [6, 7])
def test_shares_of_frequencies_do_not_depend_on_the_unit(tokens):
    E = RNG.normal(size=(tokens, 3))
    shares = frequency_shares(E)
    assert shares.sum() == pytest.approx(1.0)
    for scale in (1e-9, 1e9):
        np.testing.assert_allclose(frequency_shares(scale * E), shares, rtol=1e-9)
    assert not frequency_shares(np.ones((tokens, 3))).any()


def test_structures_are_counted_by_the_classes_that_were_named():
    E = RNG.normal(size=(3, 7, 2))
    for options in ({"modulus": 5}, {"modulus": 14}, {"group": physics.cyclic(7)}, {}):
        wanted = physics.grid_imperfections(E, **options)
        np.testing.assert_array_equal(structures(E, **options).imperfections, wanted)
    assert not np.array_equal(structures(E, modulus=14).imperfections, structures(E).imperfections)


def test_both_ends_belong_to_an_interval():
    interval = Interval(1.0, 0.0, 2.0, 9)
    assert [interval.covers(x) for x in (-1e-9, 0.0, 1.0, 2.0, 2.0 + 1e-9)] == [
        False,
        True,
        True,
        True,
        False,
    ]
    assert not Interval(1.0, math.nan, math.nan, 1).covers(1.0)
    assert Interval(1.0, math.nan, math.nan, 1).format(2) == "1.00"
    assert Interval(math.nan, 0.0, 1.0, 0).format() == "-"
    assert Interval(0.125, 0.0, 1.0, 8).format(1, 100) == "12.5 [0.0, 100.0]"
