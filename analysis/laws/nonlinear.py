"""Nonlinear laws of the signals: mean-field competition, and Lotka-Volterra."""

import itertools
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils.validation import check_is_fitted

from analysis.laws.regressors import LinearODERegressor, checked_data
from analysis.scaling import scaled
from physics.checks import InputError, short_text, whole_number

Array = NDArray[np.float64]
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


def lotka_volterra(penalty: str | None = None, alpha: float | str = 0.01, **options: Any) -> Pipeline:
    """Return an estimator with all terms up to second order in the components (Ding et al. 2024, Eq. 2).

    The terms are a constant, the components, and the products of two components. Fit it with `fit_law`. For
    the signals of Ding et al., it is nearly perfect in sample, but its rollouts diverge; `Score.reached` says
    how far they get.

    Parameters
    ----------
    penalty : {"lasso", "elastic-net", None}, optional
        Penalty; by default none, which is least squares.
    alpha : float or {"aic", "bic", "cv"}, default 0.01
        Weight of the penalty, or the criterion that chooses it.
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
