"""Lasso and elastic net for many problems at once, from their second moments.

This replaces scikit-learn, which takes hundreds of times as long where targets must converge (`python
benchmarks/peers.py laws`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import prange

from physics.checks import InputError
from physics.jit import kernel
from physics.values import Array, Integers, Mask

KKT = 1e-9
"""Fraction of alpha by which the gradient of a zero coefficient may exceed it, for rounding errors."""
PIVOT = 1e-13
"""Fraction of the diagonal below which a pivot counts as zero, so that the active set is singular."""


@kernel()
def _sweep(gram: Array, l1: float, l2: float, w: Array, g: Array) -> None:
    """Minimize the objective of `lasso_paths` over each coefficient in `w` in turn.

    `g` is the negative gradient of its smooth part, ``q - (gram + l2) w``, and is kept up to date.
    """
    features = w.size
    for j in range(features):
        curvature = gram[j, j] + l2
        if curvature <= 0.0:
            continue
        pull = g[j] + curvature * w[j]
        new = math.copysign(max(abs(pull) - l1, 0.0), pull) / curvature
        change = new - w[j]
        if change != 0.0:
            w[j] = new
            for k in range(features):
                g[k] -= gram[j, k] * change
            g[j] -= l2 * change


@kernel()
def _solve_active(gram: Array, l1: float, l2: float, q: Array, w: Array, L: Array, rows: Integers) -> int:
    """Move `w` to the minimum on its active set, or up to the first coefficient that changes its sign.

    The active set is the coefficients that are not zero. The result is 1 if the minimum was reached; 0 if a
    coefficient left the set, so that repeated calls terminate; and -1 if no step can be taken. No step
    increases the objective. If features of the set are linearly dependent, the step follows the dependence:
    predictions stay the same, and the L1 norm does not increase until a coefficient is zero. `L` and `rows`
    are working memory.
    """
    size = 0
    for j in range(w.size):
        if w[j] != 0.0:
            rows[size] = j
            size += 1
    target = np.empty(size)
    for a in range(size):
        i = rows[a]
        for b in range(a + 1):
            value = gram[i, rows[b]] + (l2 if a == b else 0.0)
            diagonal = value
            for k in range(b):
                value -= L[a, k] * L[b, k]
            if a == b:
                if value <= PIVOT * diagonal:
                    return _leave_dependence(gram, w, L, rows, a)
                L[a, a] = math.sqrt(value)
            else:
                L[a, b] = value / L[b, b]
        target[a] = q[i] - math.copysign(l1, w[i])
    _substitute(L, target)
    step = 1.0
    leaves = -1
    for a in range(size):
        old = w[rows[a]]
        if old * target[a] <= 0.0 and l1 > 0.0:
            part = old / (old - target[a])
            if part < step:
                step = part
                leaves = a
    for a in range(size):
        i = rows[a]
        w[i] = target[a] if leaves < 0 else w[i] + step * (target[a] - w[i])
    if leaves < 0:
        return 1
    w[rows[leaves]] = 0.0
    return 0


@kernel()
def _substitute(L: Array, x: Array) -> None:
    """Replace x by the solution y of L Lᵀ y = x, in the first rows of the triangular L."""
    for a in range(x.size):
        for k in range(a):
            x[a] -= L[a, k] * x[k]
        x[a] /= L[a, a]
    for a in range(x.size - 1, -1, -1):
        for k in range(a + 1, x.size):
            x[a] -= L[k, a] * x[k]
        x[a] /= L[a, a]


@kernel()
def _leave_dependence(gram: Array, w: Array, L: Array, rows: Integers, a: int) -> int:
    """Move along the dependence of active feature `a` on those before it, until a coefficient is zero."""
    v = np.empty(a + 1)
    v[a] = 1.0
    for i in range(a):
        v[i] = -gram[rows[a], rows[i]]
    _substitute(L, v[:a])
    slope = 0.0
    for i in range(a + 1):
        slope += math.copysign(1.0, w[rows[i]]) * v[i]
    if slope > 0.0:
        for i in range(a + 1):
            v[i] = -v[i]
    step = math.inf
    leaves = a
    for i in range(a + 1):
        if w[rows[i]] * v[i] < 0.0 and -w[rows[i]] / v[i] < step:
            step = -w[rows[i]] / v[i]
            leaves = i
    if step == math.inf:
        return -1
    for i in range(a + 1):
        w[rows[i]] += step * v[i]
    w[rows[leaves]] = 0.0
    return 0


@kernel()
def _gradient(gram: Array, l2: float, q: Array, w: Array, g: Array) -> None:
    """Write ``q - (gram + l2) w`` to `g`, the negative gradient of the smooth part of the objective."""
    for j in range(w.size):
        value = q[j] - l2 * w[j]
        for k in range(w.size):
            value -= gram[j, k] * w[k]
        g[j] = value


@kernel()
def _gap(power: float, l1: float, q: Array, w: Array, g: Array) -> float:
    """Return the duality gap at `w`, an upper bound of how far the objective exceeds its minimum.

    The dual point is the residual, scaled by a factor c that makes it feasible. With the mean square r² of
    the residual, the gap is ``½ (1-c)² r² + l1 ‖w‖₁ - c wᵀg``. It is written in this form because no large
    terms cancel near the optimum, where c is 1.
    """
    steepest = 0.0
    norm = 0.0
    product = 0.0
    residual = power
    for j in range(w.size):
        steepest = max(steepest, abs(g[j]))
        norm += abs(w[j])
        product += w[j] * g[j]
        residual -= w[j] * (q[j] + g[j])
    scale = l1 / steepest if steepest > l1 else 1.0
    return 0.5 * (1.0 - scale) ** 2 * max(residual, 0.0) + l1 * norm - scale * product


@kernel()
def _target(
    gram: Array, q: Array, power: float, l1: float, l2: float, limit: int, tol: float, w: Array
) -> tuple[int, float]:
    """Minimize for one target, starting from `w`; return the number of sweeps and the duality gap.

    Plain sweeps need tens of thousands of rounds if signals are collinear. Therefore each sweep, which adds
    features, is followed by exact solutions on the active set, which remove features. When neither changes
    the set, the solution is exact. If rounding errors prevent this, sweeps continue until the gap is at most
    ``tol * power``.
    """
    features = w.size
    g = np.empty(features)
    L = np.empty((features, features))
    rows = np.empty(features, np.int64)
    _gradient(gram, l2, q, w, g)
    sweeps = 0
    while sweeps < limit:
        _sweep(gram, l1, l2, w, g)
        sweeps += 1
        state = 0
        while state == 0:
            state = _solve_active(gram, l1, l2, q, w, L, rows)
        _gradient(gram, l2, q, w, g)
        if state == 1:
            optimal = True
            for j in range(features):
                optimal &= w[j] != 0.0 or abs(g[j]) <= l1 * (1.0 + KKT)
            if optimal:
                break
        if sweeps % 10 == 0 and _gap(power, l1, q, w, g) <= tol * power:
            break
    _gradient(gram, l2, q, w, g)
    return sweeps, max(_gap(power, l1, q, w, g), 0.0)


@kernel(parallel=True, rows=lambda gram, q, *_: q.shape[0] * q.shape[1])
def lasso_paths(
    gram: Array,
    q: Array,
    power: Array,
    l1: Array,
    l2: Array,
    limit: int,
    tol: float,
    coefficients: Array,
    sweeps: Integers,
    gaps: Array,
) -> None:
    """Minimize ``½ wᵀ(G + l2)w - qᵀw + l1 ‖w‖₁`` over w (K,) for every problem, target and penalty.

    For m problems with K features and T targets, `gram` (m, K, K), which is G in this formula, `q` (m, T, K)
    and `power` (m, T) are second moments: of the features, of features and targets, and of the targets. The
    penalties `l1` and `l2` are (T, P). Each of their rows is a path from strong to weak penalties, on which a
    solution starts from the previous one. A solution takes at most `limit` sweeps, and ends early at a
    duality gap of `tol` times the power of its target. The kernel writes `coefficients` (m, T, P, K), and
    `sweeps` and `gaps` (m, T, P).

    This is fast because a sweep costs K² for each target instead of K times the number of samples, and
    because a few sweeps replace thousands. Each (problem, target) owns its rows, so the results do not depend
    on the threads.
    """
    targets, points = l1.shape
    for row in prange(len(gram) * targets):
        problem = row // targets
        target = row % targets
        w = np.zeros(gram.shape[1])
        for point in range(points):
            sweeps[problem, target, point], gaps[problem, target, point] = _target(
                gram[problem],
                q[problem, target],
                power[problem, target],
                l1[target, point],
                l2[target, point],
                limit,
                tol,
                w,
            )
            for k in range(w.size):  # Numba takes seconds to compile an assignment of arrays
                coefficients[problem, target, point, k] = w[k]


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
class LassoSolution:
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
    """

    coef: Array
    intercept: Array
    sweeps: Integers
    gap: Array
    converged: Mask


def solve(
    moments: Moments, alpha: Array, *, l1_ratio: float = 1.0, max_iter: int = 100_000, tol: float = 1e-8
) -> LassoSolution:
    """Solve regressions with L1 and L2 penalties from their moments.

    For each target y with n rows, it finds the coefficients w and the constant w₀ that minimize
    ``‖y - Xw - w₀‖² / (2n) + alpha (l1_ratio ‖w‖₁ + (1 - l1_ratio) ‖w‖² / 2)``, as
    `sklearn.linear_model.ElasticNet` does. A target has converged at a duality gap of `tol` times its
    variance, and takes at most `max_iter` sweeps.

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
