import itertools

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from sklearn.linear_model import Lasso
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV

import analysis
from analysis.laws.regressors import NINE, mean_field_terms, term_name
from physics import InputError


def stable_system(size=4, seed=0):
    rng = np.random.default_rng(seed)
    A = 0.1 * rng.standard_normal((size, size)) - 0.1 * np.eye(size)
    return A, rng.standard_normal(size), rng


# -- intervals ----------------------------------------------------------------------------------------------


def test_resampled_intervals_hold_the_coefficients():
    A, b, rng = stable_system(3)
    covered, widths, estimates = 0, [], []
    for _ in range(12):
        runs = []
        for _ in range(12):
            x = np.zeros((40, 3))
            x[0] = 3 * rng.standard_normal(3)
            for n in range(39):
                x[n + 1] = x[n] + A @ x[n] + b + 0.1 * rng.standard_normal(3)
            runs.append(x)
        found = analysis.laws.resample_coefficients(runs, penalty=None, resamples=100)
        assert found.unit == "trajectories"
        covered += np.mean((found.A_low <= A) & (found.A_high >= A))
        widths.append(found.A_high - found.A_low)
        estimates.append(analysis.fit_trajectories(runs, penalty=None).A)
    assert 0.8 < covered / 12 < 1
    # As wide as the coefficients scatter from data to data.
    spread = 2 * 1.96 * np.sqrt(np.var(estimates, axis=0, ddof=1).mean())
    assert 0.75 < np.mean(widths) / spread < 1.25
    assert (found.inclusion == 1).all()
    one = analysis.laws.resample_coefficients(runs[0], alpha=0.05, resamples=50, block=5)
    assert one.unit == "blocks of 5 changes"
    again = analysis.laws.resample_coefficients(runs[0], alpha=0.05, resamples=50, block=5)
    np.testing.assert_array_equal(one.A_low, again.A_low)
    # By scikit-learn, on the blocks that the same generator draws: 8 of 35 for 39 changes.
    x, change = runs[0][:-1], np.diff(runs[0], axis=0)
    drawn = np.random.default_rng(0).multinomial(8, np.full(35, 1 / 35), size=50)
    A = []
    for counts in drawn:
        rows = np.concatenate([np.arange(k, k + 5) for k in np.repeat(np.arange(35), counts)])
        lasso = Lasso(alpha=0.05, tol=1e-12, max_iter=100_000)
        A.append([lasso.fit(x[rows], target).coef_.copy() for target in change[rows].T])
    np.testing.assert_allclose(one.inclusion, np.mean(np.array(A) != 0, axis=0))
    assert 0 < np.median(one.inclusion) < 1, "the penalty lets some in now and then"
    low, high = np.quantile(A, [0.025, 0.975], axis=0)
    np.testing.assert_allclose(one.A_low, low, atol=1e-6)
    np.testing.assert_allclose(one.A_high, high, atol=1e-6)


def test_a_resample_is_a_fit_to_the_drawn_runs():
    """Moments of a mixture equal those of the concatenated data."""
    from analysis.laws.lasso import Moments

    rng = np.random.default_rng(0)
    parts = [(rng.standard_normal((n, 3)) + n, rng.standard_normal((n, 2)) * n) for n in (5, 9, 7)]
    counts = np.array([[2.0, 0, 1]])
    pooled = Moments.of(parts).pooled(counts * [5, 9, 7])
    drawn = [parts[0], parts[0], parts[2]]
    whole = Moments.of([tuple(np.concatenate(side) for side in zip(*drawn, strict=True))])
    for name in ("gram", "cross", "power", "feature_mean", "target_mean"):
        np.testing.assert_allclose(getattr(pooled, name), getattr(whole, name), atol=1e-10)


def test_a_resample_weighs_runs_by_their_length():
    rng = np.random.default_rng(1)
    runs = [rng.standard_normal((n, 2)).cumsum(axis=0) for n in (8, 30, 15)]
    found = analysis.laws.resample_coefficients(runs, penalty=None, resamples=20, seed=4)
    drawn = np.random.default_rng(4).multinomial(3, np.full(3, 1 / 3), size=20)
    A = []
    for counts in drawn:
        chosen = [run for run, count in zip(runs, counts, strict=True) for _ in range(count)]
        states = np.concatenate([run[:-1] for run in chosen])
        changes = np.concatenate([np.diff(run, axis=0) for run in chosen])
        design = np.column_stack([states, np.ones(len(states))])
        A.append(np.linalg.lstsq(design, changes, rcond=None)[0][:2].T)
    np.testing.assert_allclose(found.A_low, np.quantile(A, 0.025, axis=0), rtol=1e-7)
    np.testing.assert_allclose(found.A_high, np.quantile(A, 0.975, axis=0), rtol=1e-7)


# -- laws that are not linear -------------------------------------------------------------------------------


def competition(terms, coef, x0, steps):
    """Iterate a mean-field law in plain loops."""
    x = [np.asarray(x0, float)]
    for _ in range(steps):
        now = x[-1]
        change = np.zeros_like(now)
        for k, value in enumerate(now):
            for term, c in zip(terms, coef, strict=True):
                part = value ** term[0]
                for order, power in enumerate(term[1:], 1):
                    part *= np.mean(now**order) ** power
                change[k] += c * part
        x.append(now + change)
    return np.array(x)


def test_a_mean_field_law_is_found_and_predicts_other_runs_and_sizes():
    rng = np.random.default_rng(0)
    coef = np.array([0.0, 0.01, -0.05, 0.03, -0.02, -0.04, 0.08, -0.01, -0.01])
    runs = [competition(NINE, coef, rng.uniform(0.5, 2, 6), 60) for _ in range(3)]
    law = analysis.fit_law(analysis.MeanFieldRegressor(), runs)
    np.testing.assert_allclose(law.regressor.coef_, coef, atol=1e-8)
    other = competition(NINE, coef, rng.uniform(0.5, 2, 6), 60)
    found = law.score(other)
    assert found.derivative == pytest.approx(1)
    assert found.relative_error < 1e-8
    # The law commutes with permutations of the components.
    order = rng.permutation(6)
    np.testing.assert_allclose(law.changes(other[:, order]), law.changes(other)[:, order], atol=1e-12)


def test_an_estimator_that_cross_validates_can_leave_out_whole_runs():
    rng = np.random.default_rng(0)
    pushes = rng.normal(size=(4, 1, 3))  # each run has its own, so that its frames know one another
    runs = (pushes + 0.1 * rng.normal(size=(4, 30, 3))).cumsum(axis=1)
    alphas = [0.01, 0.1, 1.0, 10.0]
    search = analysis.fit_law(GridSearchCV(analysis.LinearODERegressor(), {"alpha": alphas}, cv=4), runs)
    expected = []
    for k, alpha in itertools.product(range(4), alphas):
        others = np.delete(runs, k, axis=0)
        states, changes = others[:, :-1].reshape(-1, 3), np.diff(others, axis=1).reshape(-1, 3)
        fit = analysis.LinearODERegressor(alpha=alpha).fit(states, changes)
        expected.append(r2_score(np.diff(runs[k], axis=0), fit.predict(runs[k][:-1])))
    means = np.reshape(expected, (4, 4)).mean(axis=0)
    np.testing.assert_allclose(search.regressor.cv_results_["mean_test_score"], means, rtol=1e-9)
    assert search.regressor.best_params_["alpha"] == alphas[means.argmax()] > 0.01


def test_coefficients_of_a_mean_field_law_are_in_the_units_of_the_data():
    x = np.random.default_rng(0).uniform(5, 15, (40, 6))
    m2 = (x**2).mean(axis=1, keepdims=True)
    change = 2.0 * x - 0.5 * x * m2 + 0.25 * x**2
    found = analysis.MeanFieldRegressor([(1,), (1, 0, 1), (2,)]).fit(x, change)
    np.testing.assert_allclose(found.coef_, [2.0, -0.5, 0.25], rtol=1e-9)


def test_mean_field_terms():
    assert len(mean_field_terms(3)) == 14
    assert set(NINE) <= {tuple(t) for t in _stripped(mean_field_terms(3))}
    assert [term_name(t) for t in NINE] == ["1", "m₁", "x", "x m₁", "x m₁²", "x m₂", "x²", "x² m₁", "x³"]
    for bad in ([], [(1.5,)], [()], [3], 0):
        with pytest.raises(InputError, match="terms must be"):
            analysis.MeanFieldRegressor(bad).fit(np.ones((3, 2)), np.ones((3, 2)))
    with pytest.raises(InputError, match="y must have at most 2 columns"):
        analysis.MeanFieldRegressor().fit(np.ones((3, 2)), np.ones((3, 3)))


def _stripped(terms):
    for term in terms:
        while len(term) > 1 and not term[-1]:
            term = term[:-1]
        yield term


def test_lotka_volterra_is_recovered_and_its_blow_up_reported():
    t = np.arange(0.0, 12, 0.01)
    found = solve_ivp(
        lambda _, x: [x[0] - 0.5 * x[0] * x[1], 0.3 * x[0] * x[1] - 0.8 * x[1]],
        (0, 12), [2.0, 1.0], t_eval=t, rtol=1e-10, atol=1e-12,
    )  # fmt: skip
    law = analysis.fit_law(analysis.lotka_volterra(), found.y.T, t, kind="generator")
    np.testing.assert_allclose(law.regressor[-1].coef_, [[1, 0, 0, -0.5, 0], [0, -0.8, 0, 0.3, 0]], atol=1e-3)
    assert law.in_sample.rollout > 0.999
    assert law.in_sample.reached == 1
    # dx/dt = x² from 1 leaves every bound at t = 1: the rollout says so instead of hiding it.
    t = np.linspace(0, 0.9, 50)
    law = analysis.fit_law(analysis.lotka_volterra(), 1 / (1 - t[:, None]), t, kind="generator")
    states, reached = law.rollout([1.0], np.linspace(0, 2, 21))
    assert 9 <= reached <= 11
    assert np.isinf(states[reached:]).all()
    law.kind = "increment"
    score = law.score(np.arange(1.0, 101.0)[:, None])
    assert score.rollout == -np.inf
    assert score.relative_error == np.inf
    assert score.reached < 0.2


# -- honest scores ------------------------------------------------------------------------------------------


def test_honest_scores_tell_memory_from_law():
    """Free matrices memorize runs that share a mean-field law; in sample one cannot see it."""
    rng = np.random.default_rng(1)
    coef = np.array([0.0, 0.01, -0.05, 0.03, -0.02, -0.04, 0.08, -0.01, -0.01])
    runs = [competition(NINE, coef, rng.uniform(0.5, 2, 8), 60) for _ in range(3)]
    free = analysis.honest_scores(lambda x, t: analysis.fit_trajectories(x, t, penalty=None), runs)
    law = analysis.honest_scores(lambda x, t: analysis.fit_law(analysis.MeanFieldRegressor(), x, t), runs)
    assert free.in_sample.derivative > 0.9
    assert free.median("derivative") < 0
    assert law.median("derivative") == pytest.approx(1)
    assert law.forward.rollout == pytest.approx(1, abs=1e-4)
    assert len(law.across) == 3
    alone = analysis.honest_scores(lambda x, t: analysis.fit_trajectories(x, t, alpha=1e-4), runs[0])
    assert alone.across == ()
    assert np.isnan(alone.median("rollout"))
    short = analysis.honest_scores(lambda x, t: analysis.fit_trajectories(x, t, alpha=1e-4), runs[0][:4, :2])
    assert short.forward is None
    mixed = analysis.honest_scores(
        lambda x, t: analysis.fit_trajectories(x, t, penalty=None), [runs[0][:, :2], runs[1][:4, :2]]
    )
    assert mixed.forward is None, "one of them is too short to be cut"
    with pytest.raises(
        InputError, match="split must be a finite number greater than 0 and less than 1, got 1"
    ):
        analysis.honest_scores(lambda x, t: analysis.fit_trajectories(x, t), runs, split=1)


def test_a_law_with_too_few_changes_in_a_part_is_fitted_all_the_same():
    """Least squares of five components needs six changes: ten of each run, and five of its first half."""
    rng = np.random.default_rng(4)
    one = rng.normal(size=(11, 5)).cumsum(axis=0)
    fit = lambda x, t: analysis.fit_trajectories(x, t, penalty=None)  # noqa: E731
    found = analysis.honest_scores(fit, one)
    assert found.forward is None
    assert found.in_sample.derivative > 0
    found = analysis.honest_scores(fit, [one[:5], one[5:9]])
    assert (found.forward, found.across) == (None, ())
    with pytest.raises(InputError, match="signals must hold at least as many changes as unknowns"):
        analysis.honest_scores(fit, one[:4])


def test_survivors_of_rollouts_are_held_against_the_data():
    class Fixed(analysis.laws.Law):
        kind = "increment"
        rates = np.array([0.0, 0, -0.5, -0.5, -0.5, -0.5])

        def changes(self, states):
            return states * self.rates

    law, start = Fixed(), np.full(6, 4.0)
    same = law.predict(start, np.arange(20.0))
    other = same.copy()
    other[:, [1, 2]] = other[:, [2, 1]]  # survivors 0 and 2, where the law has 0 and 1
    assert law.score(same).survivors == 1
    assert law.score(other).survivors == pytest.approx(1 / 3)
    assert law.score([same, other]).survivors == pytest.approx(2 / 3)
    assert law.score(np.ones((9, 6))).survivors == 0, "nobody survives there"
    law.rates = np.zeros(6)
    assert np.isnan(law.score(np.ones((9, 6))).survivors)


def test_forward_and_across_scores_never_see_what_they_score():
    seen = []

    class Probe(analysis.laws.Law):
        kind = "increment"

        def changes(self, states):
            return np.zeros_like(states)

    def fit(signals, times):
        seen.append([(s[0, 0], len(s)) for s in signals])
        return Probe()

    runs = [np.full((11, 1), float(k)) + np.arange(11.0)[:, None] / 100 for k in range(12)]
    scores = analysis.honest_scores(fit, runs)
    everything, early, *left_out = seen
    assert [n for _, n in everything] == [11] * 12
    assert [n for _, n in early] == [6] * 12
    assert len(left_out) == 10
    kept = [{round(first) for first, _ in one} for one in left_out]
    for k in range(12):
        assert sum(k not in names for names in kept) == 1
    assert len(scores.across) == 12


@pytest.mark.parametrize(("start", "last"), [(2.0**-10, 19), (1.0, 9), (8.0, 9)])
def test_what_begins_small_diverges_at_a_thousand(start, last):
    class Doubling(analysis.laws.Law):
        kind = "increment"

        def changes(self, states):
            return states

    states, reached = Doubling().rollout([start], np.arange(25))
    assert reached == last + 1
    np.testing.assert_array_equal(states[:reached, 0], start * 2.0 ** np.arange(reached))
    assert np.isinf(states[reached:]).all()
