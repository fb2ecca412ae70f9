"""Estimators of linear laws: least squares, Lasso and elastic net, with a penalty that is given or chosen."""

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lstsq
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, TimeSeriesSplit
from sklearn.utils.validation import check_is_fitted, validate_data

from analysis.laws.lasso import LassoSolution, Moments, path, solve
from physics.checks import InputError, choice, number, regular_array, whole_number

Array = NDArray[np.float64]
CRITERIA = ("aic", "bic", "cv")
SIMILAR = 1e3
"""Ratio of the ranges of features up to which least squares solves for them as they are."""


class FitWarning(UserWarning):
    """Warning that the data or the penalty limit the meaning of the coefficients of a fit.

    Examples
    --------
    >>> import analysis, numpy as np, warnings
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warnings.simplefilter("always")
    ...     fit = analysis.fit_trajectories(np.random.default_rng(0).normal(size=(9, 2)), alpha=100.0)
    >>> found[0].category.__name__
    'FitWarning'
    """


def checked_data(estimator: Any, *data: Any) -> Any:
    """Return states, or states and their changes, as scikit-learn checks them; refuse masked entries."""
    for name, value in zip(("X", "y"), data, strict=False):
        if isinstance(value, np.ma.MaskedArray):
            regular_array(name, value)
    if len(data) == 1:
        return validate_data(estimator, *data, reset=False, dtype=np.float64)
    return validate_data(estimator, *data, multi_output=True, y_numeric=True, dtype=np.float64)


class LinearODERegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Linear regression `dX = X Aᵀ + b` by least squares, Lasso or elastic net, with one fit for each target.

    Rows of X are states of the features, and rows of dX are their changes, the targets. The estimator follows
    the interface of scikit-learn; `fit_trajectories` uses it for trajectories.

    Parameters
    ----------
    penalty : {"lasso", "elastic-net", None}, default "lasso"
        Penalty: the Lasso of Ding et al., the elastic net, or none (ordinary least squares).
    alpha : float or {"aic", "bic", "cv"}, default 0.01
        Weight of the penalty, as in `sklearn.linear_model.ElasticNet`; 0 is least squares. A name lets a
        criterion choose the weight for each target. For n rows and a residual sum of squares RSS, "aic"
        minimizes n log(RSS/n) plus 2 for each coefficient that is not 0, and "bic" adds log n for each. Both
        treat rows as independent, so serial correlation makes them keep too many coefficients. "cv"
        cross-validates: it leaves out whole groups if there are several, and otherwise predicts later rows
        from earlier ones.
    l1_ratio : float, default 0.5
        Fraction of the L1 norm in the elastic net, greater than 0 and at most 1; the Lasso does not use it.
    cv : int, default 5
        Number of folds of the cross-validation, at least 2.
    max_iter : int, default 100_000
        Largest number of sweeps of coordinate descent for each target, at least 1.
    tol : float, default 1e-8
        Duality gap, relative to the target's variance, at which a target counts as converged. scikit-learn's
        default of 1e-4 leaves coefficients of collinear signals wrong in the first digit.

    Attributes
    ----------
    coef_ : ndarray of float64, shape (targets, features), or (features,) for one-dimensional targets
        The matrix A.
    intercept_ : ndarray of float64, shape (targets,), or a float
        The vector b.
    alpha_ : ndarray of float64, shape (targets,)
        Weight of the penalty that was used; 0 for least squares.
    n_iter_ : ndarray of int64, shape (targets,)
        Number of sweeps taken; 1 for least squares.
    converged_ : ndarray of bool, shape (targets,)
        Which targets converged. A `ConvergenceWarning` names the others by their columns, counted from 0.

    Notes
    -----
    The meaning of A and b depends on `dX`: increments give the increment map, and derivatives the generator.
    `fit_trajectories` computes either from trajectories.

    Examples
    --------
    >>> import analysis, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> fit = analysis.LinearODERegressor(penalty=None).fit(X, X @ [[-0.5, 0.3], [0.1, -0.2]] + 1)
    >>> fit.coef_.round(6).tolist(), fit.intercept_.round(6).tolist()
    ([[-0.5, 0.1], [0.3, -0.2]], [1.0, 1.0])
    """

    def __init__(
        self,
        penalty: str | None = "lasso",
        alpha: float | str = 0.01,
        *,
        l1_ratio: float = 0.5,
        cv: int = 5,
        max_iter: int = 100_000,
        tol: float = 1e-8,
    ) -> None:
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.cv = cv
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Fit the law to states and their changes.

        Parameters
        ----------
        X : array_like, shape (samples, features)
            States in the order of time.
        y : array_like, shape (samples, targets) or (samples,)
            Changes of these states.
        groups : array_like, shape (samples,), optional
            The trajectory that each sample comes from, for cross-validation.

        Returns
        -------
        LinearODERegressor
            This estimator, fitted.

        Raises
        ------
        InputError
            If a parameter is invalid, or there are too few samples for the criterion that chooses `alpha`.
        ValueError
            If shapes do not agree or a value is not finite; this is scikit-learn's own check.

        Examples
        --------
        >>> import analysis
        >>> analysis.LinearODERegressor(alpha=0.0).fit([[0.0], [1.0], [2.0]], [1.0, 0.5, 0.0]).coef_.round(6)
        array([-0.5])
        """
        alpha = self.check()
        X, y = checked_data(self, X, y)
        Y = y[:, None] if y.ndim == 1 else y
        targets = Y.shape[1]
        if self.penalty is None or alpha == 0:
            coef, intercept = _least_squares(X, Y)
            self.alpha_ = np.zeros(targets)
            self.n_iter_ = np.ones(targets, np.int64)
            self.converged_ = np.ones(targets, bool)
        else:
            moments = Moments.of([(X, Y)])
            chosen = self._choose(alpha, X, Y, moments, groups)
            solution = self._solve(moments, chosen[:, None])
            coef, intercept = solution.coef[0, :, 0], solution.intercept[0, :, 0]
            self.alpha_ = chosen
            self.n_iter_ = solution.sweeps[0, :, 0]
            self.converged_ = solution.converged[0, :, 0]
            if not self.converged_.all():
                missed = np.flatnonzero(~self.converged_).tolist()
                said = f"{len(missed)} of {targets} targets have not converged in {self.max_iter} sweeps"
                names = ", ".join(map(str, missed))
                text = f"{said}: {names} (from 0); raise max_iter or alpha"
                warnings.warn(text, ConvergenceWarning, stacklevel=2)
        self.coef_ = coef[0] if y.ndim == 1 else coef
        self.intercept_ = float(intercept[0]) if y.ndim == 1 else intercept
        return self

    def predict(self, X: Any) -> Array:
        """Return the changes of states.

        Parameters
        ----------
        X : array_like, shape (samples, features)
            States.

        Returns
        -------
        ndarray of float64, shape (samples, targets) or (samples,)
            Changes, in the shape of `y` in `fit`.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If `X` has another number of features, or a value is not finite.
        """
        check_is_fitted(self)
        X = checked_data(self, X)
        return np.asarray(X @ self.coef_.T + self.intercept_)

    def check(self) -> float | str:
        """Check all parameters of the estimator, and return its `alpha`.

        Returns
        -------
        float or str
            The parameter `alpha`, as a number or the name of a criterion.

        Raises
        ------
        InputError
            If a parameter is invalid.
        """
        if self.penalty not in ("lasso", "elastic-net", None):
            raise InputError(f"penalty must be 'lasso', 'elastic-net' or None, got {self.penalty!r}")
        whole_number("max_iter", self.max_iter, 1)
        number("tol", self.tol, above=0.0)
        whole_number("cv", self.cv, 2)
        number("l1_ratio", self.l1_ratio, maximum=1.0, above=0.0)
        if isinstance(self.alpha, str):
            return choice("alpha", self.alpha, CRITERIA)
        return number("alpha", self.alpha, 0.0)

    @property
    def _ratio(self) -> float:
        return 1.0 if self.penalty == "lasso" else self.l1_ratio

    def _solve(self, moments: Moments, alpha: Array) -> LassoSolution:
        return solve(moments, alpha, l1_ratio=self._ratio, max_iter=self.max_iter, tol=self.tol)

    def _choose(self, alpha: float | str, X: Array, Y: Array, moments: Moments, groups: Any) -> Array:
        """Return the penalty of every target, (targets,).

        `alpha` is a number or one of `CRITERIA`; `X` (samples, features) and `Y` (samples, targets) are the
        data, `moments` are theirs, and `groups` (samples,) name the trajectories of the rows, or are None.
        """
        if not isinstance(alpha, str):
            return np.full(Y.shape[1], alpha)
        candidates = path(moments, self._ratio)
        if alpha == "cv":
            cost = self._left_out(X, Y, candidates, groups)
        else:
            cost = self._information(alpha, len(X), moments, candidates)
        return np.asarray(candidates[np.arange(len(candidates)), cost.argmin(axis=1)])

    def _information(self, name: str, samples: int, moments: Moments, candidates: Array) -> Array:
        """Return an information criterion of each penalty, (targets, candidates).

        `name` is "aic" or "bic", `samples` is the number of rows, `moments` are those of the data, and
        `candidates` (targets, candidates) are the penalties.
        """
        unknowns = moments.gram.shape[1] + 1
        if samples <= unknowns:
            got = f"{samples} samples for {unknowns} unknowns"
            raise InputError(f"alpha={name!r} needs more samples than unknowns, got {got}")
        w = self._solve(moments, candidates).coef[0]
        fitted = np.einsum("tpk,kl,tpl->tp", w, moments.gram[0], w)
        rest = moments.power[0][:, None] - 2 * np.einsum("tpk,tk->tp", w, moments.cross[0]) + fitted
        floor = np.maximum(np.finfo(float).eps * moments.power[0], np.finfo(float).tiny)[:, None]
        price = 2.0 if name == "aic" else np.log(samples)
        return np.asarray(samples * np.log(np.maximum(rest, floor)) + price * np.count_nonzero(w, axis=2))

    def _left_out(self, X: Array, Y: Array, candidates: Array, groups: Any) -> Array:
        """Return the sums of squared errors on rows that were left out, (targets, candidates).

        `X` (samples, features) and `Y` (samples, targets) are the data, and `candidates` the penalties. If
        `groups` (samples,) name several trajectories, whole ones are left out, and otherwise later rows.
        """
        count = 0 if groups is None else len(np.unique(groups))
        if count > 1:
            folds = GroupKFold(min(self.cv, count)).split(X, Y, groups)
        elif len(X) > self.cv:
            folds = TimeSeriesSplit(self.cv).split(X)
        else:
            raise InputError(f"alpha='cv' needs more samples than cv = {self.cv} folds, got {len(X)}")
        cost = np.zeros_like(candidates)
        for train, test in folds:
            fit = self._solve(Moments.of([(X[train], Y[train])]), candidates)
            for t in range(len(candidates)):
                error = X[test] @ fit.coef[0, t].T + fit.intercept[0, t] - Y[test, t, None]
                cost[t] += (error**2).sum(axis=0)
        return cost


def _least_squares(X: Array, Y: Array) -> tuple[Array, Array]:
    """Return the coefficients (targets, features) and constants (targets,) of least squares.

    `X` are (samples, features) and `Y` (samples, targets). The solver leaves out directions that are as small
    as rounding errors of the largest, so features of different ranges are first divided by powers of two. A
    constant one, of which centering may leave rounding errors, gets the coefficient 0.
    """
    low, high = X.min(axis=0), X.max(axis=0)
    half = high / 2 - low / 2  # the whole range may overflow
    scale = np.ones_like(half)
    if half.max() > SIMILAR * half.min(where=high > low, initial=np.inf):
        scale = np.ldexp(scale, np.frexp(half)[1])
    scale[high == low] = np.inf
    features = X / scale
    x, y = features.mean(axis=0), Y.mean(axis=0)
    # scikit-learn would leave out what is below a millionth of the largest
    cond = np.finfo(float).eps * max(X.shape)
    with np.errstate(over="ignore"):  # in the sums of squares, which are not used
        slopes = lstsq(features - x, Y - y, cond, overwrite_a=True, overwrite_b=True, check_finite=False)[0]
    return slopes.T / scale, y - x @ slopes
