"""Estimators of laws: least squares, Lasso and elastic net, mean-field competition, and Lotka-Volterra."""

import itertools
import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy.linalg import lstsq
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils.validation import check_is_fitted, validate_data

from analysis.laws.lasso import Moments, solve
from analysis.scaling import scaled
from physics.checks import InputError, number, regular_array, short_text, whole_number
from physics.values import Array

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
    alpha : float, default 0.01
        Weight of the penalty, as in `sklearn.linear_model.ElasticNet`; 0 is least squares. `fit_law` shows
        how cross-validation over runs chooses it.
    l1_ratio : float, default 0.5
        Fraction of the L1 norm in the elastic net, greater than 0 and at most 1; the Lasso does not use it.
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
        alpha: float = 0.01,
        *,
        l1_ratio: float = 0.5,
        max_iter: int = 100_000,
        tol: float = 1e-8,
    ) -> None:
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the law to states and their changes.

        Parameters
        ----------
        X : array_like, shape (samples, features)
            States in the order of time.
        y : array_like, shape (samples, targets) or (samples,)
            Changes of these states.

        Returns
        -------
        LinearODERegressor
            This estimator, fitted.

        Raises
        ------
        InputError
            If a parameter is invalid.
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
            l1_ratio, limit, tol = self.l1_share, self.max_iter, self.tol
            solution = solve(moments, np.array([[alpha]]), l1_ratio=l1_ratio, max_iter=limit, tol=tol)
            coef, intercept = solution.coef[0, :, 0], solution.intercept[0, :, 0]
            self.alpha_ = np.full(targets, alpha)
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

    def check(self) -> float:
        """Check all parameters of the estimator, and return its `alpha`.

        Returns
        -------
        float
            The parameter `alpha`.

        Raises
        ------
        InputError
            If a parameter is invalid.
        """
        if self.penalty not in ("lasso", "elastic-net", None):
            raise InputError(f"penalty must be 'lasso', 'elastic-net' or None, got {self.penalty!r}")
        whole_number("max_iter", self.max_iter, 1)
        number("tol", self.tol, above=0.0)
        number("l1_ratio", self.l1_ratio, maximum=1.0, above=0.0)
        return number("alpha", self.alpha, 0.0)

    @property
    def l1_share(self) -> float:
        """Fraction of the L1 norm in the penalty, which is all of it for the Lasso."""
        return 1.0 if self.penalty == "lasso" else self.l1_ratio


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


Term = tuple[int, ...]
NINE: tuple[Term, ...] = (
    (0,), (0, 1), (1,), (1, 1), (1, 2), (1, 0, 1), (2,), (2, 1), (3,),
)  # fmt: skip
"""Nine terms up to third degree that predict across runs: 1, m₁, x, x m₁, x m₁², x m₂, x², x² m₁, x³."""


class MeanFieldRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Regression in which every component obeys one law of itself and of averages over all components.

    It fits `dx_k = f(x_k; m₁, m₂, …)` for components k = 1 … K, with the same f for all k. Here m_q is the
    mean of the powers x_j^q over all components j. Multiplying all tokens by a number that is invertible
    modulo their number permutes the frequencies and changes nothing else. A law that holds for all runs
    therefore commutes with these permutations. This is the simplest such law: components compete for shared
    resources.

    Parameters
    ----------
    terms : sequence of tuple of int, or int, optional
        Terms of f, where ``(a, c₁, c₂, …)`` is ``x^a m₁^c₁ m₂^c₂ …``. A number means all terms up to that
        degree, in which m_q counts q times; there are 14 up to the third. The default is nine terms up to the
        third degree, which predict across runs: 1, m₁, x, x m₁, x m₁², x m₂, x², x² m₁, x³.

    Attributes
    ----------
    terms_ : list of tuple of int
        Terms of the fitted f, in the order of `coef_`.
    coef_ : ndarray of float64, shape (terms,)
        Coefficients in the units of the data.
    scale_ : float
        Root mean square of the data, which is the unit in which the terms are formed.
    targets_ : int
        Number of targets T of the fit.
    vector_ : bool
        Whether `y` was one-dimensional, so that `predict` returns one dimension too.

    Notes
    -----
    In continuous time such a law preserves the order of the components, because two equal components stay
    equal. Its rollout therefore ranks the components as the first frame does, and only predicts how many
    survive. The same holds for an increment map with small changes per step.

    Examples
    --------
    >>> import analysis, numpy as np
    >>> x = np.random.default_rng(0).uniform(size=(200, 5))
    >>> change = x * (0.1 - x.mean(axis=1, keepdims=True))  # x - x m: growth, and competition
    >>> fit = analysis.MeanFieldRegressor([(1,), (1, 1)]).fit(x, change)
    >>> fit.coef_.round(6).tolist()
    [0.1, -1.0]
    """

    def __init__(self, terms: Sequence[Term] | int = NINE) -> None:
        self.terms = terms

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the law to states and their changes, by least squares over all components at once.

        Parameters
        ----------
        X : array_like, shape (samples, K)
            States of the K components.
        y : array_like, shape (samples, T) or (samples,)
            Changes of the first T components, usually of all components.

        Returns
        -------
        MeanFieldRegressor
            This estimator, fitted.

        Raises
        ------
        InputError
            If `terms` are invalid, or there are more targets than components.
        ValueError
            If shapes do not agree or a value is not finite; this is scikit-learn's own check.
        """
        self.terms_ = mean_field_terms(self.terms)
        X, y = checked_data(self, X, y)
        Y = y[:, None] if y.ndim == 1 else y
        if Y.shape[1] > X.shape[1]:
            raise InputError(f"y must have at most {X.shape[1]} columns, as X, got {Y.shape[1]}")
        states, exponent = scaled(X)
        self.scale_ = float(np.ldexp(np.sqrt(np.mean(states**2)), exponent).item()) or 1.0
        self.targets_ = Y.shape[1]
        self.vector_ = y.ndim == 1
        features = self._features(X).reshape(-1, len(self.terms_))
        solution = np.linalg.lstsq(features, Y.ravel(), rcond=None)[0]
        self._scaled = solution
        self.coef_ = solution / self.scale_ ** np.array(list(map(_degree, self.terms_)), float)
        return self

    def predict(self, X: Any) -> Array:
        """Return the changes of states.

        Parameters
        ----------
        X : array_like, shape (samples, K)
            States of the K components.

        Returns
        -------
        ndarray of float64, shape (samples, T) or (samples,)
            Changes of the first T components, in the shape of `y` in `fit`.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If `X` has another number of components, or a value is not finite.
        """
        check_is_fitted(self)
        X = checked_data(self, X)
        changes = self._features(X) @ self._scaled
        return changes[:, 0] if self.vector_ else changes

    def _features(self, X: Array) -> Array:
        """Return the values of all terms (samples, targets, terms) at states, which are scaled first."""
        x = X / self.scale_
        orders = max(len(term) for term in self.terms_) - 1
        means = [(x**p).mean(axis=1, keepdims=True) for p in range(1, orders + 1)]
        states = x[:, : self.targets_]
        features = np.empty((*states.shape, len(self.terms_)))
        for k, (power, *exponents) in enumerate(self.terms_):
            column = states**power
            for m, c in zip(means, exponents, strict=False):
                column = column * m**c
            features[..., k] = column
        return features

    def __sklearn_tags__(self) -> Any:
        """Mark the estimator as one with few coefficients, which fits data without its symmetry poorly."""
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags


def mean_field_terms(terms: Sequence[Term] | int) -> list[Term]:
    """Return the terms of `MeanFieldRegressor` without repetition, from a list of terms or a largest degree.

    An `InputError` refuses anything but a degree of at least 1 and a non-empty sequence of tuples of whole
    numbers of at least 0.
    """
    if not isinstance(terms, Sequence):
        degree = whole_number("terms", terms, 1)
        powers = [range(degree // order + 1) for order in [1, *range(1, degree + 1)]]
        parsed = [term for term in itertools.product(*powers) if _degree(term) <= degree]
    else:
        parsed = [tuple(term) for term in terms if isinstance(term, Sequence)]
        whole = all(isinstance(c, int) and c >= 0 for term in parsed for c in term)
        if not parsed or len(parsed) < len(terms) or not whole or not all(parsed):
            allowed = "a degree of at least 1, or tuples of powers (of x, m₁, m₂, …) of at least 0"
            raise InputError(f"terms must be {allowed}, got {short_text(terms)}")
    return list(dict.fromkeys(parsed))


def _degree(term: Term) -> int:
    """Return the degree of a term in the components."""
    return term[0] + sum(order * power for order, power in enumerate(term[1:], 1))


def term_name(term: Term) -> str:
    """Return the name of a term, such as "x² m₁" for (2, 1), or "1" if all powers are 0."""
    raised = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
    lowered = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
    parts = []
    for order, power in enumerate(term):
        if power:
            symbol = "x" if not order else "m" + str(order).translate(lowered)
            parts.append(symbol + (str(power).translate(raised) if power > 1 else ""))
    return " ".join(parts) or "1"


def lotka_volterra(penalty: str | None = None, alpha: float = 0.01, **options: Any) -> Pipeline:
    """Return an estimator with all terms up to second order in the components (Ding et al. 2024, Eq. 2).

    The terms are a constant, the components, and the products of two components. Fit it with `fit_law`. For
    the signals of Ding et al., it is nearly perfect in sample, but its rollouts diverge; `Score.reached` says
    how far they get.

    Parameters
    ----------
    penalty : {"lasso", "elastic-net", None}, optional
        Penalty; by default none, which is least squares.
    alpha : float, default 0.01
        Weight of the penalty.
    **options
        Further options of `LinearODERegressor`. All options are checked when the estimator is fitted.

    Returns
    -------
    sklearn.pipeline.Pipeline
        Estimator of the changes of states (samples, K) of K components.

    Examples
    --------
    >>> import analysis, physics
    >>> signals = analysis.circles_of(physics.example("ding"), 0, 1000).signals
    >>> law = analysis.fit_law(analysis.lotka_volterra(), signals.sel(frequency=[7, 8, 11]))
    >>> sorted(law.table()[0])[:4]
    ['1', 'frequency', 'x0', 'x0 x1']
    """
    return make_pipeline(
        PolynomialFeatures(degree=2, include_bias=False), LinearODERegressor(penalty, alpha, **options)
    )
