import itertools

import naive
import numpy as np
import pytest
from sklearn.linear_model import Lasso

import physics
from analysis.laws.lasso import Moments, solve
from physics.examples import example_path

# -- the batch Lasso ----------------------------------------------------------------------------------------


def problems(seed=0):
    """Regular, wide, dependent, constant and collinear features."""
    rng = np.random.default_rng(seed)
    regular = rng.standard_normal((60, 12))
    dependent = regular.copy()
    dependent[:, 3] = 2 * dependent[:, 1] - dependent[:, 0]
    dependent[:, 5] = 7.0
    decays = np.exp(-np.outer(np.linspace(0, 3, 60), rng.uniform(0.5, 1.5, 12))) * 80 + 100
    for X in (regular, dependent, decays):
        yield X, X @ rng.standard_normal((12, 4)) + rng.standard_normal((60, 4))
    yield regular[:60], np.zeros((60, 4))


def lasso(pairs, alpha=0.01, l1_ratio=1.0):
    """Solve regressions at one penalty."""
    return solve(Moments.of(pairs), np.array([[alpha]]), l1_ratio=l1_ratio)


@pytest.mark.parametrize(("alpha", "l1_ratio"), [(0.001, 1.0), (0.05, 1.0), (1.0, 1.0), (0.05, 0.3)])
def test_the_batch_lasso_is_optimal(alpha, l1_ratio):
    found = lasso(problems(), alpha=alpha, l1_ratio=l1_ratio)
    assert found.converged.all()
    for k, (X, Y) in enumerate(problems()):
        for t in range(4):
            w, w0 = found.coef[k, t, 0], found.intercept[k, t, 0]
            gap = naive.elastic_net_gap(X, Y[:, t], w, alpha, l1_ratio)
            assert gap <= 1e-9 * max(Y[:, t].var(), 1e-12)
            np.testing.assert_allclose(w0, Y[:, t].mean() - X.mean(axis=0) @ w, atol=1e-10)


def test_the_batch_lasso_has_the_coefficients_of_scikit_learns():
    signals = physics.load(example_path("ding")).observables["fourier_signals"][0].astype(float)
    states, changes = signals[:-1], np.diff(signals, axis=0)
    found = lasso([(states, changes)], alpha=0.1)
    model = Lasso(alpha=0.1, tol=1e-14, max_iter=50_000, precompute=True)
    for t in (2, 6, 12):
        np.testing.assert_allclose(found.coef[0, t, 0], model.fit(states, changes[:, t]).coef_, atol=1e-8)
    # At the published alpha, scikit-learn takes minutes; there the solution is checked by its own conditions.
    found = lasso([(states, changes)])
    for t, k in itertools.product(range(29), [0]):
        w = found.coef[k, t, 0]
        assert naive.elastic_net_gap(states, changes[:, t], w, 0.01, 1.0) <= 1e-10 * changes[:, t].var()


def test_coefficients_of_a_path_are_exactly_zero_before_they_enter():
    X, Y = next(problems())
    moments = Moments.of([(X, Y)])
    for l1_ratio in (1.0, 0.3):
        strongest = np.abs(moments.cross[0]).max(axis=1, keepdims=True) / l1_ratio
        alpha = strongest * np.geomspace(1, 1e-4, 40)
        found = solve(moments, alpha, l1_ratio=l1_ratio)
        assert not found.coef[0, :, 0].any(), "the first penalty is the weakest that kills all"
        assert (np.count_nonzero(found.coef[0, :, 1], axis=1) >= 1).all()
        # Where a coefficient is exactly zero its gradient may be anything up to the penalty, and only there.
        for t, k in itertools.product(range(4), range(40)):
            w = found.coef[0, t, k]
            gradient = moments.cross[0, t] - moments.gram[0] @ w - (1 - l1_ratio) * alpha[t, k] * w
            active = w != 0
            np.testing.assert_allclose(
                gradient[active], l1_ratio * alpha[t, k] * np.sign(w[active]), rtol=1e-6
            )
            assert (np.abs(gradient[~active]) <= l1_ratio * alpha[t, k] * (1 + 1e-8)).all()


def test_duplicate_features_share_one_optimum():
    X = np.random.default_rng(0).standard_normal((40, 3))
    X[:, 2] = X[:, 1]
    y = X @ [[1.0], [2.0], [0.0]]
    found = lasso([(X, y)], alpha=0.1)
    alone = lasso([(X[:, :2], y)], alpha=0.1)
    assert found.coef[0, 0, 0, 1:].sum() == pytest.approx(alone.coef[0, 0, 0, 1])
    assert found.converged.all()


@pytest.mark.usefixtures("all_threads")
def test_the_batch_lasso_has_the_same_bits_with_any_number_of_threads():
    import numba

    many = lasso(problems()).coef
    numba.set_num_threads(1)
    one = lasso(problems()).coef
    np.testing.assert_array_equal(one, many)


def test_moments_of_a_mixture_are_those_of_its_repeated_rows():
    rng = np.random.default_rng(11)
    parts = [(rng.standard_normal((8, 3)) + k, rng.standard_normal((8, 2)) - 2 * k) for k in range(3)]
    draws = np.array([[2, 0, 1], [1, 1, 1]])
    found = Moments.of(parts).pooled(draws.astype(float))
    for k, draw in enumerate(draws):
        rows = [part for part, times in zip(parts, draw, strict=True) for _ in range(times)]
        whole = Moments.of([tuple(np.concatenate(side) for side in zip(*rows, strict=True))])
        for name in ("gram", "cross", "power", "feature_mean", "target_mean"):
            np.testing.assert_allclose(getattr(found, name)[k], getattr(whole, name)[0], atol=1e-12)
