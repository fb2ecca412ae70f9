"""Edges of fits: roundings of clocks, signs, windows, sentences, types, and the parts that a score sees."""

import math
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import analysis
from analysis.laws.honest import honest_scores
from analysis.laws.ode import PUBLISHED, ODEFit, fit_each, fit_trajectories
from analysis.laws.pieces import as_pieces, differences, elapsed, unit, whole_steps
from analysis.laws.regressors import FitWarning, LinearODERegressor
from analysis.laws.resampling import resample_coefficients
from analysis.laws.scores import Law
from physics import InputError

A, B, START = np.array([[-0.4, 0.9], [-0.8, -0.1]]), np.array([0.3, -0.2]), np.array([1.0, 2.0])
RNG = np.random.default_rng(14)
FIRST_STATE = RNG.bit_generator.state


@pytest.fixture(autouse=True)
def seeded():
    """Let every test draw the same numbers, whichever ran before it."""
    RNG.bit_generator.state = FIRST_STATE


def walk(*shape):
    return RNG.standard_normal(shape).cumsum(axis=-2)


class Growth(Law):
    """The law dx = x of every component."""

    def __init__(self, kind, rate=1.0):
        self.kind, self.rate = kind, rate

    def changes(self, states):
        return self.rate * states


# -- clocks -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [np.arange(12) / 3, np.arange(12) / 7, 0.4 + 0.3 * np.arange(12)])
def test_a_map_of_any_step_goes_by_its_multiples(times):
    """A third has no finite decimals, and 0.7 - 0.4 is less than 0.3 in floating-point numbers."""
    path = analysis.affine_solution(A, B, START, times - times[0])
    fit = fit_trajectories(path, times, penalty=None)
    for frames in (1, 2, 7, 11):
        matrix, shift = fit.to_increment(times[frames] - times[0])
        np.testing.assert_allclose(START + matrix @ START + shift, path[frames], rtol=1e-6)
    step = times[1] - times[0]
    for wrong in (0.5 * step, 1.001 * step, 0.999 * step, 1e-12):
        with pytest.raises(InputError, match="step must be a whole multiple of the map's step"):
            fit.to_increment(wrong)
    for wrong, got in ((0, "0"), (-step, f"{-step:g}"), (math.nan, "nan"), (math.inf, "inf")):
        with pytest.raises(InputError, match=f"step must be a finite number greater than 0, got {got}"):
            fit.to_increment(wrong)


def test_spacings_may_differ_by_rounding_and_no_more():
    x = walk(8, 2)
    for times in (np.linspace(0, 0.7, 8), 1e3 + 0.1 * np.arange(8)):
        assert unit(as_pieces(x, times)) == pytest.approx(0.1, rel=1e-8)
    both = as_pieces([x, x], [0.1 * np.arange(8), 5.3 + 0.1 * np.arange(8)])
    assert unit(both) == 0.1
    uneven = 0.1 * np.arange(8)
    uneven[3] += 1e-7
    with pytest.raises(InputError, match="times must be equally spaced for an increment map, got spacings"):
        unit(as_pieces(x, uneven))
    with pytest.raises(InputError, match="times must have one spacing in all trajectories"):
        unit(as_pieces([x, x], [0.1 * np.arange(8), 0.1000001 * np.arange(8)]))
    assert len(differences(as_pieces(x, uneven), "generator")) == 1, "only a map needs equal steps"


def test_pieces_take_their_times_once_or_each_and_differences_stay_within():
    x, y = walk(5, 2), walk(4, 2)
    once = as_pieces(np.stack([x, 2 * x]), [0, 1, 4, 5, 9])
    assert [t.tolist() for t, _ in once] == [[0, 1, 4, 5, 9]] * 2
    each = as_pieces((x, y), ([0, 1, 2, 3, 4], [1, 3, 4, 9]))
    assert [t.tolist() for t, _ in each] == [[0, 1, 2, 3, 4], [1, 3, 4, 9]]
    assert [t.tolist() for t, _ in as_pieces([x, y])] == [[0, 1, 2, 3, 4], [0, 1, 2, 3]]
    assert len(as_pieces(x.tolist())) == 1
    (_, (states, rates)) = differences(each, "generator")
    np.testing.assert_allclose(states, (y[1:] + y[:-1]) / 2)
    np.testing.assert_allclose(rates, np.diff(y, axis=0) / np.array([[2], [1], [5]]))
    ((states, changes),) = differences(as_pieces(y, [0, 2, 4, 6]), "increment")
    np.testing.assert_array_equal(states, y[:-1])
    np.testing.assert_array_equal(changes, np.diff(y, axis=0))
    assert elapsed(each[1], "generator").tolist() == [0, 2, 3, 8]
    assert elapsed(each[1], "increment").tolist() == [0, 1, 2, 3]
    broken = y.copy()
    broken[2, 1] = np.inf
    with pytest.raises(InputError, match=r"^signals\[1\] must be finite, got 1 NaN or infinite among 8"):
        as_pieces([x, broken])
    with pytest.raises(InputError, match=r"^trajectory 1 must have at least 5 frames, got 4$"):
        as_pieces([x, y], minimum=5)
    with pytest.raises(InputError, match=r"^times of trajectory 1 must increase, got 3 followed by 3$"):
        as_pieces([x, y], [[0, 1, 2, 3, 4], [0, 3, 3, 2]])


@pytest.mark.parametrize(
    ("clock", "got"), [([0.0, 2.5, -1.0], "2.5"), ([0.0, -1.0], "-1"), ([1 + 1e-9], "1.000000001")]
)
def test_the_first_step_that_is_none_is_named(clock, got):
    with pytest.raises(InputError, match=f"whole numbers of steps of at least 0, got {got}$"):
        whole_steps(np.array(clock))


# -- rollouts and scores ----------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [2.0, -2.0])
@pytest.mark.parametrize("kind", ["generator", "increment"])
def test_a_rollout_may_diverge_to_either_side(kind, start):
    law = Growth(kind, 1.0 if kind == "increment" else math.log(2.0))
    states, reached = law.rollout([start, 0.0], np.arange(12))
    assert reached == 10, "2 × 2⁹ is less than a thousand times 2, and 2 × 2¹⁰ is more"
    np.testing.assert_allclose(states[:10, 0], start * 2.0 ** np.arange(10), rtol=1e-6)
    assert np.isposinf(states[10:]).all(), "of all components"
    affine = ODEFit(kind, law.rate * np.eye(2), np.zeros(2), 1.0, np.zeros(2), np.ones(2, bool), 1.0, 1.0, 9)
    found, frames = affine.rollout([start, 0.0], np.arange(12))
    assert frames == 10
    np.testing.assert_allclose(found[:10], states[:10], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", ["generator", "increment"])
def test_times_need_neither_begin_at_zero_nor_be_each_once(kind):
    law = Growth(kind, -0.5)
    factor = 0.5 if kind == "increment" else math.exp(-0.5)
    for times in ([3.0, 3.0, 5.0], [4.0], [0.0, 0.0]):
        found = law.predict([8.0], times)
        np.testing.assert_allclose(found[:, 0], 8 * factor ** np.array(times), rtol=1e-6)
    back = Growth("increment", -0.5).predict([8.0], [2, 0])
    assert back[:, 0].tolist() == [2, 8], "a map may be asked in any order"
    assert Growth("increment", -0.5).predict([8.0], 3).tolist() == [[1.0]]


def test_a_score_is_over_all_frames_but_the_first_of_each_trajectory():
    runs = [walk(6, 2) + 5, walk(4, 2) - 3]
    law = Growth("increment", 0.1)
    found = law.score(runs)
    truth = np.concatenate([x[1:] for x in runs])
    rolled = np.concatenate([x[0] * 1.1 ** np.arange(1, len(x))[:, None] for x in runs])
    assert found.relative_error == pytest.approx(np.linalg.norm(rolled - truth) / np.linalg.norm(truth))
    spread = ((truth - truth.mean(axis=0)) ** 2).sum(axis=0)
    assert found.rollout == pytest.approx((1 - ((rolled - truth) ** 2).sum(axis=0) / spread).mean())
    changes = np.concatenate([np.diff(x, axis=0) for x in runs])
    told = np.concatenate([0.1 * x[:-1] for x in runs])
    spread = ((changes - changes.mean(axis=0)) ** 2).sum(axis=0)
    assert found.derivative == pytest.approx((1 - ((told - changes) ** 2).sum(axis=0) / spread).mean())
    assert found.reached == 1
    assert Growth("increment", 0.0).score(np.zeros((4, 2))).relative_error == 0


@pytest.mark.parametrize(
    ("frames", "split", "at"), [(9, 0.25, 2), (9, 0.249, None), (11, 0.8, 8), (11, 0.9, None), (5, 0.5, 2)]
)
def test_a_law_of_early_frames_needs_two_changes_on_both_sides(frames, split, at):
    seen = []

    def fit(values, clocks):
        seen.append(len(values[0]))
        return Growth("increment")

    found = honest_scores(fit, [walk(frames, 1)], split=split)
    assert (found.forward is None) == (at is None)
    assert seen == ([frames] if at is None else [frames, at + 1])


# -- fits -------------------------------------------------------------------------------------------------


def test_the_papers_recipes_are_those_of_the_paper():
    assert PUBLISHED == {
        "lasso": {"kind": "increment", "penalty": "lasso", "alpha": 0.01},
        "least-squares": {"kind": "increment", "penalty": None},
    }


def test_a_fit_passes_its_limits_on():
    x = walk(40, 3)
    with pytest.warns(
        ConvergenceWarning, match=r"of 3 targets have not converged in 1 sweeps: .* \(from 0\)"
    ):
        few = fit_trajectories(x, alpha=1e-4, max_iter=1)
    assert few.missed == (np.flatnonzero(~few.converged) + 1).tolist() != []
    assert all(type(k) is int for k in few.missed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fit_trajectories(x, alpha=1e-4, max_iter=1, tol=1e9).converged.all()
    times = 0.5 * np.arange(40)
    for kind, step in (("increment", 0.5), ("generator", 1.0)):
        found = fit_trajectories(x, times, kind=kind, penalty=None)
        ((states, changes),) = differences(as_pieces(x, times), kind)
        design = np.column_stack([states, np.ones(39)])
        expected = np.linalg.lstsq(design, changes, rcond=None)[0]
        np.testing.assert_allclose(found.A, expected[:3].T, atol=1e-9)
        np.testing.assert_allclose(found.b, expected[3], atol=1e-9)
        assert (found.kind, found.unit, found.transitions, found.alpha.tolist()) == (kind, step, 39, [0] * 3)
        each = fit_each(x, times, kind=kind, alpha=1e-9)
        np.testing.assert_allclose(each.A[0], found.A, atol=1e-4)


@pytest.mark.parametrize("size", [1e-3, 1e-7, 1e-16, 1e-100, 1e12])
def test_least_squares_does_not_depend_on_units(size):
    x, units = walk(40, 3), np.array([1.0, size, 1.0])
    fit, scaled = fit_trajectories(x, penalty=None), fit_trajectories(x * units, penalty=None)
    np.testing.assert_allclose(scaled.A * units / units[:, None], fit.A, rtol=1e-9)
    np.testing.assert_allclose(scaled.b / units, fit.b, rtol=1e-9)
    assert scaled.r2_in_sample == pytest.approx(fit.r2_in_sample, rel=1e-12)


def test_least_squares_takes_small_differences_for_what_they_are():
    """They were left out where smaller than a millionth, although they determine the changes."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 1)) + 1e-8 * rng.standard_normal((50, 2))
    fit = LinearODERegressor(penalty=None).fit(X, 1e8 * (X[:, 0] - X[:, 1]))
    np.testing.assert_allclose(fit.coef_, [1e8, -1e8], rtol=1e-6)


@pytest.mark.parametrize("options", [{"penalty": None}, {"alpha": 1e-8}])
@pytest.mark.filterwarnings("ignore:components 4")
def test_a_constant_of_any_size_changes_nothing(options):
    x = walk(38, 3)
    without = fit_trajectories(x, **options)
    found = fit_trajectories(np.column_stack([x, np.full(38, 1e10 / 3)]), **options)
    assert not found.A[:, 3].any()
    np.testing.assert_allclose(found.A[:3, :3], without.A, rtol=1e-9)
    np.testing.assert_allclose(found.b[:3], without.b, rtol=1e-9)


def test_a_law_is_scored_on_its_components_only():
    x = walk(40, 3)
    for kind in ("increment", "generator"):
        fit = fit_trajectories(x, penalty=None, kind=kind)
        with pytest.raises(InputError, match="^signals must have the 3 components of the law, got 1$"):
            fit.score(x[:, :1])


def test_states_that_no_memory_holds_are_refused():
    far, said = (
        10**13,
        r"^the states after each of 10000000000000 steps need \d+\.\d GiB, .*; take fewer steps$",
    )
    fit = fit_trajectories(walk(40, 3), penalty=None)
    for call in (fit.predict, Growth("increment").predict):
        with pytest.raises(InputError, match=said):
            call(np.ones(3), [0, far])
    with pytest.raises(InputError, match=said):
        analysis.laws.affine_rollout(A, B, START, far)


def test_warnings_of_fits_that_are_only_scored_are_not_shown():
    """The second run makes the law, and the fit without it has no coefficient."""
    still = 1e-3 * RNG.standard_normal((30, 1))
    grown = 10 * analysis.laws.affine_rollout([[-0.1]], [1.0], [0.0], 29)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FitWarning)
        scores = honest_scores(lambda x, t: fit_trajectories(x, t, alpha=0.01), [still, grown])
    assert scores.law.A.any()
    with pytest.warns(FitWarning, match="leaves no coefficient"):
        fit_trajectories(still, alpha=0.01)


def test_a_fit_of_one_component_is_a_matrix_too():
    x = analysis.laws.affine_rollout([[-0.5]], [1.0], [9.0], 12)
    fit = fit_trajectories(x, penalty=None)
    assert (fit.A.shape, fit.b.shape) == ((1, 1), (1,))
    assert (fit.A[0, 0], fit.b[0]) == pytest.approx((-0.5, 1.0))
    assert fit.table() == [{"frequency": 1, "b": pytest.approx(1.0), "a_1": pytest.approx(-0.5)}]
    assert type(fit.table()[0]["b"]) is float


@pytest.mark.parametrize("penalty", ["lasso", "elastic-net", None])
def test_warnings_of_a_fit_are_those_of_its_caller(penalty):
    x = walk(30, 2)
    x[:, 0] = 4.0
    with pytest.warns(FitWarning, match=r"components 1 \(counted from 1\) do not vary") as caught:
        fit_trajectories(x, penalty=penalty)
    assert {one.filename for one in caught} == {__file__}
    if penalty is not None:
        with pytest.warns(FitWarning, match="3 changes for 5 unknowns of each target") as caught:
            fit_trajectories(walk(4, 4), penalty=penalty)
        with pytest.warns(FitWarning, match="leaves no coefficient") as caught:
            fit_trajectories(walk(30, 2), penalty=penalty, alpha=1e7)
        assert {one.filename for one in caught} == {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("error", FitWarning)
        fit_trajectories(walk(5, 3), penalty=penalty, alpha=1e-3)
        fit_trajectories(np.tile(np.arange(9.0)[:, None], 2), penalty=penalty, alpha=1e3)


def test_every_fit_of_its_own_takes_the_clock_and_the_share_of_the_norms():
    x = walk(2, 30, 3)
    found = fit_each(x, 2.0 * np.arange(30), kind="generator", alpha=0.05, l1_ratio=0.3)
    for k in range(2):
        ((states, rates),) = differences(as_pieces(x[k], 2.0 * np.arange(30)), "generator")
        one = LinearODERegressor("elastic-net", 0.05, l1_ratio=0.3).fit(states, rates)
        np.testing.assert_allclose(found.A[k], one.coef_, atol=1e-9)
        np.testing.assert_allclose(found.b[k], one.intercept_, atol=1e-9)


# -- resamples --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("frames", "block"), [(3, 1), (44, 7), (43, 6), (13, 3)])
def test_blocks_are_the_nearest_whole_number_to_the_root(frames, block):
    found = resample_coefficients(walk(frames, 1), penalty=None, resamples=2)
    assert found.unit == f"blocks of {block} changes"
    assert found.resamples == 2


@pytest.mark.parametrize("kind", ["increment", "generator"])
def test_a_resample_is_of_the_kind_and_the_clock_that_were_given(kind):
    runs, times = [walk(12, 2), walk(9, 2)], [2.0 * np.arange(12), 2.0 * np.arange(9)]
    found = resample_coefficients(runs, times, kind=kind, penalty=None, resamples=400)
    ends = [fit_trajectories(x, t, kind=kind, penalty=None) for x, t in zip(runs, times, strict=True)]
    both = np.array([fit.A for fit in ends])
    for fit in both:  # one draw in four is of one run alone, twice
        assert (found.A_low <= fit + 1e-9).all()
        assert (found.A_high >= fit - 1e-9).all()
    b = np.array([fit.b for fit in ends])
    assert (found.b_low <= b.min(axis=0) + 1e-9).all()
    assert (found.b_high >= b.max(axis=0) - 1e-9).all()
    signals = [analysis.circles.Signals(t.astype(int), x, []) for t, x in zip(times, runs, strict=True)]
    recipe = analysis.Recipe(penalty=None, kind=kind)
    again = recipe.resample(signals, 400)
    np.testing.assert_array_equal(again.A_low, found.A_low)
    assert recipe.resample(signals).resamples == 200


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_neither_convergence_nor_the_choice_of_a_penalty_depends_on_the_unit(unit):
    tied = RNG.normal(size=(40, 1)) + 0.01 * RNG.normal(size=(40, 3))
    target = unit * (tied @ [[1.0], [-2.0], [3.0]] + RNG.normal(size=(40, 1)))
    one, many = (
        analysis.laws.batch_lasso([(tied, target)], alpha=1e-4 * unit, max_iter=n) for n in (1, 10_000)
    )
    assert (one.converged.all(), many.converged.all()) == (False, True)
    X = np.random.default_rng(1).normal(size=(30, 3))
    exact = X @ [1.0, 0.0, -2.0]
    usual, scaled = (LinearODERegressor(alpha="bic").fit(X, c * exact) for c in (1.0, unit))
    assert scaled.alpha_ == pytest.approx(unit * usual.alpha_)


def test_two_groups_are_left_out_as_a_whole():
    groups = np.repeat([0, 1], 15)
    X = RNG.normal(size=(30, 2)) + 4 * RNG.normal(size=(2, 2))[groups]
    y = X[:, 0] + 5 * groups + RNG.normal(size=30)
    order = RNG.permutation(30)
    found, mixed = (LinearODERegressor(alpha="cv").fit(X[k], y[k], groups[k]) for k in (np.arange(30), order))
    assert found.alpha_ == pytest.approx(mixed.alpha_), "the order of rows says nothing of groups"
    by_time = [LinearODERegressor(alpha="cv").fit(X[k], y[k]).alpha_[0] for k in (np.arange(30), order)]
    assert by_time[0] != pytest.approx(by_time[1])
    one = LinearODERegressor(alpha="cv").fit(X, y, np.zeros(30))
    assert one.alpha_[0] == by_time[0], "a single group is split in time"


@pytest.mark.parametrize("spacing", [1 / 3000, 1e-10, 12345.678912345])
def test_the_unit_of_a_map_has_nine_digits_however_short_it_is(spacing):
    ((times, rows),) = as_pieces(RNG.normal(size=(9, 2)), None)
    assert unit([(times * spacing, rows)]) == float(f"{spacing:.9g}")
