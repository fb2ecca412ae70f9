"""What laws are fitted to and judged on, from the definition."""

import numpy as np
import pytest

import analysis
from analysis.laws.honest import honest_scores
from analysis.laws.ode import ODEFit, fit_each, fit_trajectories
from analysis.laws.regressors import FitWarning, LinearODERegressor
from analysis.laws.resampling import resample_coefficients
from physics import InputError


def growing(rate, kind="generator"):
    """One component that grows by a factor of exp(rate) in a unit of time."""
    A = np.array([[rate if kind == "generator" else np.exp(rate) - 1]])
    return ODEFit(kind, A, np.zeros(1), 1.0, np.zeros(1), np.ones(1, bool), np.nan, np.nan, 0)


class Seen:
    """A law that says what it was fitted to and scored on."""

    def __init__(self, values, clocks):
        self.fitted = [len(x) for x in values], [t[-1] for t in clocks]
        self.scored = []

    def score(self, values, clocks):
        self.scored.append(([len(x) for x in values], [t[0] for t in clocks]))
        return self, self.scored[-1]


@pytest.mark.parametrize(
    ("frames", "split", "seen"), [(10, 0.5, 5), (11, 0.5, 6), (20, 0.25, 5), (11, 0.9, None)]
)
def test_the_early_law_sees_its_part_of_the_frames_and_is_judged_from_the_last_of_them(frames, split, seen):
    x, laws = np.arange(2.0 * frames).reshape(frames, 2), []

    def fit(values, clocks):
        laws.append(Seen(values, clocks))
        return laws[-1]

    found = honest_scores(fit, [x], [np.arange(frames) * 3.0], split=split)
    if seen is None:
        assert found.forward is None
        return
    assert laws[1].fitted == ([seen], [3.0 * (seen - 1)])
    assert laws[1].scored == [([frames - seen + 1], [3.0 * (seen - 1)])]
    assert found.across == ()


@pytest.mark.parametrize("kind", ["generator", "increment"])
def test_a_rollout_has_diverged_beyond_a_thousand_times_its_start_or_one(kind):
    for start, end, reached in ((1e-4, 900.0, 2), (1e-4, 1100.0, 1), (2.0, 1900.0, 2), (2.0, 2100.0, 1)):
        states, found = growing(np.log(end / start), kind).rollout([start], [0.0, 1.0])
        assert found == reached, (start, end)
        assert np.isfinite(states[-1, 0]) == (reached == 2)
    one = growing(np.log(3.0), kind)
    assert one.rollout([1.0], np.arange(9.0))[1] == 7, "3⁶ = 729, and 3⁷ is more than 1000"
    score = one.score(3.0 ** np.arange(9.0)[:, None])
    assert score.reached == pytest.approx(6 / 8)


def test_blocks_are_as_long_as_the_root_of_the_number_of_changes():
    x = np.cumsum(np.random.default_rng(0).standard_normal((50, 2)), axis=0)
    assert resample_coefficients(x, penalty=None, resamples=2).unit == "blocks of 7 changes"
    assert resample_coefficients(x, penalty=None, resamples=2, block=3).unit == "blocks of 3 changes"
    assert resample_coefficients(np.stack([x, x]), penalty=None, resamples=2).unit == "trajectories"


def test_a_resample_of_a_recipe_is_of_its_seed_and_its_window():
    rng = np.random.default_rng(1)
    runs = [
        analysis.circles.Signals(np.arange(30), np.cumsum(rng.standard_normal((30, 2)), axis=0) + 5, [])
        for _ in range(4)
    ]
    recipe = analysis.Recipe(penalty="elastic-net", alpha=0.02, l1_ratio=0.25)
    for seed in (0, 3):
        found = recipe.resample(runs, 5, seed=seed)
        expected = resample_coefficients(
            [run.values for run in runs],
            alpha=0.02,
            penalty="elastic-net",
            l1_ratio=0.25,
            resamples=5,
            seed=seed,
        )
        np.testing.assert_array_equal(found.A_low, expected.A_low)
        np.testing.assert_array_equal(found.inclusion, expected.inclusion)


def test_cross_validation_leaves_out_trajectories_of_any_length():
    rng = np.random.default_rng(2)
    runs = [np.cumsum(rng.standard_normal((n, 3)), axis=0) * k for k, n in enumerate((12, 25, 9, 17), 1)]
    found = fit_trajectories(runs, alpha="cv", cv=4)
    states, changes = (
        np.concatenate(part) for part in zip(*((x[:-1], np.diff(x, axis=0)) for x in runs), strict=True)
    )
    names = [name for name, x in zip("cadb", runs, strict=True) for _ in x[1:]]
    grouped = LinearODERegressor("lasso", "cv", cv=4).fit(states, changes, names)
    np.testing.assert_allclose(found.alpha, grouped.alpha_)
    plain = LinearODERegressor("lasso", "cv", cv=4).fit(states, changes)
    assert (plain.alpha_ != grouped.alpha_).any()
    more = LinearODERegressor("lasso", "cv", cv=9).fit(states, changes, names)
    np.testing.assert_array_equal(more.alpha_, grouped.alpha_), "no more folds than trajectories"


@pytest.mark.parametrize(("penalty", "l1_ratio"), [("lasso", 0.5), ("elastic-net", 0.25)])
def test_the_warning_says_below_which_penalty_coefficients_appear(penalty, l1_ratio):
    x = np.cumsum(np.random.default_rng(3).standard_normal((30, 2)), axis=0)

    def fitted(alpha):
        return fit_trajectories(x, penalty=penalty, alpha=alpha, l1_ratio=l1_ratio)

    with pytest.warns(FitWarning, match="leaves no coefficient") as caught:
        assert not fitted(1e6).A.any()
    limit = float(str(caught[0].message).rpartition("below ")[2])
    assert fitted(0.98 * limit).A.any()
    with pytest.warns(FitWarning, match="leaves no coefficient"):
        fitted(1.02 * limit)


def test_the_score_of_each_trajectory_is_that_of_the_components_that_vary():
    x = np.cumsum(np.random.default_rng(4).standard_normal((2, 20, 3)), axis=1)
    x[1, :, 2] = 7.0
    found = fit_each(x, alpha=0.05)
    for k, parts in enumerate(([0, 1, 2], [0, 1])):
        changes = np.diff(x[k], axis=0)
        rest = changes - (x[k, :-1] @ found.A[k].T + found.b[k])
        r2 = 1 - (rest**2).sum(axis=0)[parts] / ((changes - changes.mean(axis=0)) ** 2).sum(axis=0)[parts]
        assert found.r2_in_sample[k] == pytest.approx(r2.mean())


def test_a_batch_is_split_where_it_is_asked_to_be():
    x = np.cumsum(np.random.default_rng(5).standard_normal((2, 40, 2)), axis=1)
    runs = [analysis.circles.Signals(np.arange(40), values, []) for values in x]
    recipe = analysis.Recipe(penalty=None)
    found = [analysis.fit_batch(runs, recipe, split=split).forward for split in (0.25, 0.5)]
    assert found == [honest_scores(recipe.fit, list(x), split=split).forward for split in (0.25, 0.5)]
    assert found[0] != found[1]


@pytest.mark.parametrize(
    ("share", "sentence"), [(-0.1, "l1_ratio must be .*got -0.1"), (1.5, "l1_ratio must be .*got 1.5")]
)
def test_a_share_of_the_lasso_is_refused_beyond_0_and_1(share, sentence):
    states = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(InputError, match=sentence):
        LinearODERegressor(penalty="elastic-net", alpha=0.1, l1_ratio=share).fit(states, states)


def test_only_a_square_matrix_is_stable_or_not():
    said = r"A must have the shape \(K, K\) with K at least 1, got \(2, 3\)"
    with pytest.raises(InputError, match=said):
        analysis.laws.stability(np.ones((2, 3)))
