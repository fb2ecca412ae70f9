"""Lasso and elastic net for many problems at once, from their second moments.

This replaces scikit-learn, which takes 724 times as long for 2900 targets that must converge (`grokphys bench
ode`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.laws.lasso_kernels import lasso_paths
from physics.checks import InputError, finite_array, number, whole_number
from physics.values import Shown

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Moments:
    """Covariances of m regressions, each with K features and T targets.

    Attributes
    ----------
    gram : ndarray of float64, shape (m, K, K)
        Covariances of the features.
    cross : ndarray of float64, shape (m, T, K)
        Covariances of targets and features.
    power : ndarray of float64, shape (m, T)
        Variance of every target.
    feature_mean, target_mean : ndarray of float64, shapes (m, K) and (m, T)
        Means of features and targets.
    """

    gram: Array
    cross: Array
    power: Array
    feature_mean: Array
    target_mean: Array

    @classmethod
    def of(cls, problems: Sequence[tuple[Array, Array]]) -> "Moments":
        """Return the moments of regressions, which must agree in the numbers of features and targets.

        `problems` are pairs of features (rows, features) and targets (rows, targets), float64. The data are
        centered before they are squared, so that no digits are lost.
        """
        parts = []
        for X, Y in problems:
            x, y = X.mean(axis=0), Y.mean(axis=0)
            X0, Y0 = X - x, Y - y
            with np.errstate(over="ignore", invalid="ignore"):
                gram, power = X0.T @ X0 / len(X), (Y0**2).mean(axis=0)
            for name, values, squares in (("X", X0, gram), ("y", Y0, power)):
                if not np.isfinite(squares).all() or (np.ptp(values, axis=0).any() and not squares.any()):
                    raise InputError(f"{name} must be in a unit in which its squares are finite and not 0")
            parts.append((gram, Y0.T @ X0 / len(X), power, x, y))
        return cls(*(np.stack(part) for part in zip(*parts, strict=True)))

    def pooled(self, weights: Array) -> "Moments":
        """Return the moments of mixtures of the samples of the regressions.

        A row of `weights` (mixtures, regressions), at least 0, holds the weight of the samples of each
        regression in one mixture.
        """
        share = weights / weights.sum(axis=1, keepdims=True)
        x, y = share @ self.feature_mean, share @ self.target_mean
        # About the mean of the mixture: the variance within the parts plus that of their means.
        dx = self.feature_mean - x[:, None]
        dy = self.target_mean - y[:, None]
        return Moments(
            np.einsum("rm,mij->rij", share, self.gram) + np.einsum("rm,rmi,rmj->rij", share, dx, dx),
            np.einsum("rm,mti->rti", share, self.cross) + np.einsum("rm,rmt,rmi->rti", share, dy, dx),
            share @ self.power + np.einsum("rm,rmt->rt", share, dy**2),
            x,
            y,
        )


@dataclass(frozen=True)
class LassoSolution(Shown):
    """Solutions of m regressions with K features and T targets at P penalties each.

    Attributes
    ----------
    coef : ndarray of float64, shape (m, T, P, K)
        Coefficients.
    intercept : ndarray of float64, shape (m, T, P)
        Constants.
    sweeps : ndarray of int64, shape (m, T, P)
        Number of sweeps of coordinate descent that were taken.
    gap : ndarray of float64, shape (m, T, P)
        Duality gap, an upper bound of the excess of the objective over its minimum.
    converged : ndarray of bool, shape (m, T, P)
        Whether the gap is at most the tolerance of the fit times the variance of the target.

    Examples
    --------
    >>> import analysis, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> found = analysis.laws.batch_lasso([(X, X[:, :1] + 2)], alpha=0.1)
    >>> found.coef.shape, bool(found.converged.all())
    ((1, 1, 1, 3), True)
    """

    coef: Array
    intercept: Array
    sweeps: NDArray[np.int64]
    gap: Array
    converged: NDArray[np.bool_]


def solve(
    moments: Moments, alpha: Array, *, l1_ratio: float = 1.0, max_iter: int = 100_000, tol: float = 1e-8
) -> LassoSolution:
    """Solve regressions with L1 and L2 penalties from their moments; see `batch_lasso` for the parameters.

    `alpha` is (1, P) or (T, P), for one or for each of the T targets, and greater than 0. The penalties of a
    row decrease, and each solution starts from the previous one.
    """
    m, targets, features = moments.cross.shape
    alpha = np.ascontiguousarray(np.broadcast_to(alpha, (targets, alpha.shape[1])))
    points = alpha.shape[1]
    coef = np.empty((m, targets, points, features))
    sweeps, gap = np.empty((m, targets, points), np.int64), np.empty((m, targets, points))
    gram, cross, power = map(np.ascontiguousarray, (moments.gram, moments.cross, moments.power))
    lasso_paths(
        gram, cross, power, l1_ratio * alpha, (1 - l1_ratio) * alpha, max_iter, tol, coef, sweeps, gap
    )
    intercept = moments.target_mean[..., None] - np.einsum("mtpk,mk->mtp", coef, moments.feature_mean)
    return LassoSolution(coef, intercept, sweeps, gap, gap <= tol * moments.power[..., None])


def batch_lasso(
    problems: Any, *, alpha: float = 0.01, l1_ratio: float = 1.0, max_iter: int = 100_000, tol: float = 1e-8
) -> LassoSolution:
    """Fit Lasso or elastic net to all targets of many regressions, on all cores.

    For each column y of Y with n rows, the fit finds the coefficients w and the constant w₀ that minimize
    ``‖y - Xw - w₀‖² / (2n) + alpha (l1_ratio ‖w‖₁ + (1 - l1_ratio) ‖w‖² / 2)``, as
    `sklearn.linear_model.ElasticNet` does. This function is faster because all targets of a regression share
    its Gram matrix.

    Parameters
    ----------
    problems : sequence of (X, Y), shapes (n_i, K) and (n_i, T)
        Regressions of T targets on K features, the same numbers for all. Problem i has n_i rows.
    alpha : float, default 0.01
        Weight of the penalty, greater than 0.
    l1_ratio : float, default 1.0
        Fraction of the L1 norm in the penalty, greater than 0 and at most 1.
    max_iter : int, default 100_000
        Largest number of sweeps of coordinate descent for each target, at least 1.
    tol : float, default 1e-8
        Duality gap, relative to the target's variance, at which a target counts as converged.

    Returns
    -------
    LassoSolution
        Coefficients and constants of all regressions, at this one penalty.

    Raises
    ------
    InputError
        If there is no regression, shapes do not agree, a value is not finite, or a parameter is out of range.

    Examples
    --------
    >>> import analysis, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> found = analysis.laws.batch_lasso([(X, X[:, :1]), (X, 2 * X[:, 1:2])], alpha=0.1)
    >>> found.coef.shape, np.count_nonzero(found.coef, axis=-1).ravel().tolist()
    ((2, 1, 1, 3), [1, 1])
    """
    checked = []
    for k, problem in enumerate(problems):
        X, Y = (finite_array(f"{name} of problem {k}", x) for name, x in zip("XY", problem, strict=True))
        if X.ndim != 2 or Y.ndim != 2 or len(X) != len(Y) or not X.size:
            raise InputError(f"problem {k} must hold X (n, K) and Y (n, T), got {X.shape} and {Y.shape}")
        checked.append((X, Y))
    shapes = sorted({(X.shape[1], Y.shape[1]) for X, Y in checked})
    if len(shapes) != 1:
        raise InputError(f"problems must be at least one, with equal features and targets, got {shapes}")
    alpha, l1_ratio = number("alpha", alpha, above=0.0), number("l1_ratio", l1_ratio, maximum=1.0, above=0.0)
    max_iter, tol = whole_number("max_iter", max_iter, 1), number("tol", tol, above=0.0)
    return solve(Moments.of(checked), np.array([[alpha]]), l1_ratio=l1_ratio, max_iter=max_iter, tol=tol)


def path(moments: Moments, l1_ratio: float, points: int = 60, depth: float = 1e-4) -> Array:
    """Return decreasing penalties (targets, points) for each target of the first of some regressions.

    They are spaced geometrically, from the smallest one at which all coefficients are 0 to `depth` times it.
    """
    strongest = np.maximum(np.abs(moments.cross[0]).max(axis=1), np.finfo(float).tiny) / l1_ratio
    return np.asarray(strongest[:, None] * np.geomspace(1, depth, points))
