"""What laws are fitted to and judged on, from the definition."""

import numpy as np
import pytest

import analysis
from analysis.laws.ode import ODEFit
from analysis.laws.resampling import resample_coefficients
from analysis.laws.scores import honest_scores


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
        analysis.Signals(np.arange(30), np.cumsum(rng.standard_normal((30, 2)), axis=0) + 5, [])
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
