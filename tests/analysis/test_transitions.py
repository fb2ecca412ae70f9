import numpy as np
import pytest
from scipy import optimize, stats

from analysis.stats.transitions import fit_critical_values, fit_transition


def curve(r, center, width, shape):
    return (1 + (2**shape - 1) * (center / r) ** (1 / width)) ** (-1 / shape)


@pytest.mark.parametrize(("center", "width", "shape"), [(0.4, 0.08, 1.0), (0.2, 0.15, 0.2), (0.7, 0.05, 3.0)])
def test_a_known_transition_is_found_and_covered(center, width, shape):
    rng = np.random.default_rng(1)
    r = np.linspace(0.05, 1, 40)
    covered = 0
    for _ in range(20):
        fit = fit_transition(r, rng.binomial(400, curve(r, center, width, shape)), np.full(40, 400))
        covered += fit.critical.covers(center)
        assert abs(fit.critical.estimate / center - 1) < 0.02
        assert fit.critical.low < fit.critical.estimate < fit.critical.high
    assert covered >= 16
    np.testing.assert_allclose(fit.probability(fit.critical.estimate), 0.5, rtol=1e-9)


def test_an_interval_follows_the_profile_away_from_gumbels_shape():
    r = np.linspace(0.01, 1, 60)
    hits = np.random.default_rng(0).binomial(10_000, curve(r, 0.2309, 0.0154, 0.0242))
    fit = fit_transition(r, hits, np.full(60, 10_000))
    at = fit.critical
    assert fit.shape < 0.05
    # A larger shape fits on the upper side alone.
    assert 1.5 < (at.high - at.estimate) / (at.estimate - at.low) < 10


def unlikely(r, hits, trials, center, log_width, log_shape):
    """Minus the log-likelihood of independent trials, as the binomial law has it."""
    p = np.clip(curve(r, center, np.exp(log_width), np.exp(log_shape)), 1e-300, 1 - 1e-16)
    return -float(stats.binom.logpmf(hits, trials, p).sum())


@pytest.mark.parametrize("overdispersed", [False, True])
def test_the_interval_is_where_the_profile_of_the_likelihood_has_risen(overdispersed):
    """By half of χ²'s 95 % point at one degree of freedom, times the deviance per degree of freedom."""
    rng = np.random.default_rng(3)
    r, trials = np.linspace(0.05, 1, 40), np.full(40, 300)
    p = curve(r, 0.4, 0.1, 1.0)
    hits = rng.binomial(trials, rng.beta(30 * p, 30 * (1 - p)) if overdispersed else p)
    fit = fit_transition(r, hits, trials)
    inside = (hits > 0) & (hits < trials)
    assert inside.sum() < 40, "some say nothing"
    start = np.log([fit.width, fit.shape])
    least = unlikely(r, hits, trials, fit.critical.estimate, *start)
    perfect = -float(stats.binom.logpmf(hits, trials, hits / trials).sum())
    assert fit.misfit == pytest.approx(2 * (least - perfect) / (inside.sum() - 3), rel=1e-6)
    assert (fit.misfit > 2) == overdispersed
    for bound in (fit.critical.low, fit.critical.high):
        found = optimize.minimize(
            lambda x, at=bound: unlikely(r, hits, trials, at, *x), start, method="Nelder-Mead", tol=1e-10
        )
        assert found.fun - least == pytest.approx(3.841459 / 2 * max(fit.misfit, 1), rel=1e-3)


def test_critical_values_of_single_samples():
    rng = np.random.default_rng(2)
    u = rng.uniform(size=1500)
    exact = 0.3 * ((u ** (-0.5) - 1) / (2**0.5 - 1)) ** -0.1
    values = np.ceil(exact / 0.02) * 0.02
    fit = fit_critical_values(values, 0.02)
    assert abs(fit.critical.estimate - 0.3) < 0.004
    assert fit.critical.high - fit.critical.low < 0.01
    assert fit.misfit < 0.03


def test_a_curve_that_does_not_fit_says_so_and_widens_its_interval():
    r = np.linspace(0.05, 1, 60)
    steps = np.where(r < 0.5, 0.1, 0.9)  # far from any smooth transition
    few, many = (fit_transition(r, np.round(n * steps), np.full(60, n)) for n in (100, 10_000))
    assert many.misfit > 50
    wide, narrow = (fit.critical.high - fit.critical.low for fit in (few, many))
    assert 0.5 < narrow / wide < 2  # the misfit does not shrink with more of the same


def test_a_curve_that_fits_better_than_chance_has_no_narrower_interval():
    r = np.linspace(0.2, 0.8, 13)
    p = curve(r, 0.5, 0.1, 1.0)
    found = fit_transition(r, np.round(1000 * p), np.full(13, 1000))
    assert 0 < found.misfit < 0.1
    # A logistic curve in log r of the width w: the Fisher information of the center, alone, bounds its error.
    information = np.sum(1000 * p * (1 - p)) / 0.1**2
    half = np.log(found.critical.high / found.critical.low) / 2
    assert half > 0.95 * 1.96 / information**0.5
