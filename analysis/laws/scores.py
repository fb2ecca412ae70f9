"""Laws of motion, the rollouts that they predict, and scores of both."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from sklearn.base import BaseEstimator, clone

from analysis.circles.survival import agreement, survives
from analysis.laws.nonlinear import term_name
from analysis.laws.pieces import Array, Pieces, as_pieces, differences, elapsed, r_squared, whole_steps
from analysis.scaling import scaled
from physics.checks import choice, finite_array
from physics.errors import InputError

BLOW_UP = 1e3
"""A rollout has diverged if it exceeds this multiple of the largest value of its start (or of 1)."""


@dataclass(frozen=True)
class Score:
    """Scores of a law on some data, which `Law.score` returns.

    Attributes
    ----------
    derivative : float
        R² of the changes, averaged over components; negative if a constant would predict better.
    rollout : float
        R² of the trajectories predicted from their first frames alone; -inf if one diverges.
    relative_error : float
        ``‖predicted - true‖ / ‖true‖`` of the rollouts; inf if one diverges.
    reached : float
        Fraction of the frames after the first that the rollouts reach before they diverge; 1 if none does.
    survivors : float
        Agreement on the components that survive, which exceed twice the mean in the last frame. It is the
        number that survive in both the data and the rollout, over the number that survive in either, averaged
        over the trajectories in which any survives. A rollout that has diverged has no survivors. NaN if none
        survives anywhere.

    Examples
    --------
    >>> import analysis
    >>> x = analysis.laws.affine_rollout([[-0.5]], [1.0], [0.0], 20)
    >>> score = analysis.fit_trajectories(x, penalty=None).score(x)
    >>> round(score.derivative, 6), round(score.rollout, 6), score.reached
    (1.0, 1.0, 1.0)
    """

    derivative: float
    rollout: float
    relative_error: float
    reached: float
    survivors: float


class Law(ABC):
    """Base class of laws, `dx/dt = f(x)` (kind "generator") or `x_{n+1} - x_n = f(x_n)` (kind "increment").

    A subclass sets `kind` and defines `changes`, which is f; rollouts and scores follow from these.

    Examples
    --------
    >>> import analysis
    >>> class Decay(analysis.laws.Law):
    ...     kind = "increment"
    ...
    ...     def changes(self, states):
    ...         return -states / 2
    >>> Decay().predict([8.0], [0, 1, 2, 3])[:, 0].tolist()
    [8.0, 4.0, 2.0, 1.0]
    """

    kind: str

    @property
    def components(self) -> int | None:
        """Number of components that the law describes, or None if any number or an unknown one."""
        return None

    @abstractmethod
    def changes(self, states: Array) -> Array:
        """Return the right side f(x) of the law.

        Parameters
        ----------
        states : ndarray of float64, shape (n, K)
            States of the K components, one in each row.

        Returns
        -------
        ndarray of float64, shape (n, K)
            Change of each state, per step or per unit of time.
        """

    def table(self) -> list[dict[str, Any]]:
        """Return the coefficients as rows of a table.

        Returns
        -------
        list of dict
            Rows, whose columns depend on the law.

        Raises
        ------
        InputError
            If the coefficients of the law have no names.
        """
        raise InputError(
            f"law must have named coefficients to be shown as a table, got {type(self).__name__}"
        )

    @property
    def missed(self) -> list[int]:
        """Components, counted from 1, whose fits have not converged; none unless a subclass reports them."""
        return []

    def predict(self, x0: Any, times: Any) -> Array:
        """Return the trajectory from a state; `rollout` also returns how far it got before it diverged.

        Parameters
        ----------
        x0 : array_like of float, shape (K,)
            State of the K components at time 0.
        times : array_like of float, shape (n,)
            Times in any order, counted from `x0`; whole numbers of steps for an increment map.

        Returns
        -------
        ndarray of float64, shape (n, K)
            State at each time; infinite from the time at which it has diverged.

        Raises
        ------
        InputError
            If a value is not finite, or a time is not allowed, as in `rollout`.

        Examples
        --------
        >>> import analysis
        >>> x = analysis.laws.affine_rollout([[1.0]], [0.0], [1.0], 9)
        >>> law = analysis.fit_trajectories(x, penalty=None)
        >>> law.predict([1.0], [0, 1, 2])[:, 0].round(6).tolist()
        [1.0, 2.0, 4.0]
        """
        return self.rollout(x0, times)[0]

    def rollout(self, x0: Any, times: Any) -> tuple[Array, int]:
        """Predict the trajectory from a state alone, by following the law until it diverges.

        Parameters
        ----------
        x0 : array_like, shape (K,)
            State of the K components at time 0.
        times : array_like, shape (n,)
            Times in any order, counted from `x0`; whole numbers of steps for an increment map.

        Returns
        -------
        states : ndarray of float64, shape (n, K)
            State at each time. It is infinite from the first time at which a component exceeds a thousand
            times the largest magnitude in `x0` (or 1, if that is larger): the rollout has diverged.
        reached : int
            Number of times before the rollout diverged.

        Raises
        ------
        InputError
            If a value is not finite, times of an increment map are not whole numbers of at least 0, or times
            of a nonlinear generator are negative.

        Examples
        --------
        >>> import analysis
        >>> x = analysis.laws.affine_rollout([[1.0]], [0.0], [1.0], 9)
        >>> law = analysis.fit_trajectories(x, penalty=None)
        >>> states, reached = law.rollout([1.0], [0, 5, 10])  # it doubles in each step, to 1024 in step 10
        >>> states[:, 0].round(6).tolist(), reached
        ([1.0, 32.0, inf], 2)
        """
        state, clock = finite_array("x0", x0), finite_array("times", times).reshape(-1)
        order = np.argsort(clock, kind="stable")
        bound = BLOW_UP * max(1.0, float(np.abs(state).max(initial=0)))
        follow = self._iterate if self.kind == "increment" else self._integrate
        states = follow(state, clock[order], bound)
        with np.errstate(invalid="ignore"):
            wild = ~(np.abs(states) <= bound).all(axis=1)
        reached = int(np.argmax(wild)) if wild.any() else len(states)
        states[reached:] = np.inf
        return states[np.argsort(order)], reached

    def score(self, signals: Any, times: Any = None) -> Score:
        """Score the law on data such as later frames or another run.

        Parameters
        ----------
        signals, times : array_like of float
            Trajectories (runs, frames, K) of K components and their times (frames,), by default 0, 1, 2, …;
            see `fit_trajectories` for all accepted forms.

        Returns
        -------
        Score
            Scores of the changes between all frames, and of rollouts from the first frames over all others.

        Raises
        ------
        InputError
            If the trajectories are invalid or of another number of components than the law, or their frames
            are not equally spaced for an increment map.
        """
        pieces = as_pieces(signals, times)
        if self.components not in (None, got := pieces[0][1].shape[1]):
            raise InputError(f"signals must have the {self.components} components of the law, got {got}")
        return self._score(pieces)

    def _score(self, pieces: Pieces) -> Score:
        pairs = differences(pieces, self.kind)
        with np.errstate(over="ignore", invalid="ignore"):
            found = np.concatenate([self.changes(x) for x, _ in pairs])
        derivative = r_squared(np.concatenate([dx for _, dx in pairs]), found)
        truth, predicted, agreements, reached = [], [], [], 0
        for t, x in pieces:
            states, frames = self.rollout(x[0], elapsed((t, x), self.kind))
            truth.append(x[1:])
            predicted.append(states[1:])
            reached += frames - 1
            # A rollout that has diverged has no survivors.
            told = survives(states[-1]) if np.isfinite(states[-1]).all() else np.zeros(x.shape[1], bool)
            agreements.append(agreement(survives(x[-1]), told))
        true, rolled = np.concatenate(truth), np.concatenate(predicted)
        error = float("inf")
        if np.isfinite(rolled).all():
            unit, exponent = scaled(true)
            missed = np.linalg.norm(np.ldexp(rolled, -exponent) - unit)
            error = float(missed / max(np.linalg.norm(unit), np.finfo(float).tiny))
        known = [value for value in agreements if np.isfinite(value)]
        return Score(
            derivative,
            r_squared(true, rolled),
            error,
            max(reached, 0) / len(true),
            float(np.mean(known)) if known else float("nan"),
        )

    def _iterate(self, state: Array, clock: Array, bound: float) -> Array:
        whole = whole_steps(clock, len(state))
        path = np.full((int(whole.max(initial=0)) + 1, len(state)), np.inf)
        path[0] = state
        with np.errstate(over="ignore", invalid="ignore"):
            for n in range(1, len(path)):
                path[n] = path[n - 1] + self.changes(path[n - 1][None])[0]
                if not np.abs(path[n]).max() <= bound:
                    break
        return path[whole]

    def _integrate(self, state: Array, clock: Array, bound: float) -> Array:
        def edge(_: float, x: Array) -> float:
            return bound - float(np.abs(x).max())

        edge.terminal = True  # type: ignore[attr-defined]
        if not len(clock):
            return np.empty((0, len(state)))
        if clock[0] < 0:
            raise InputError(f"times must be at least 0, got {clock[:5].tolist()}")
        # SciPy refuses a time that comes twice.
        moments, place = np.unique(clock, return_inverse=True)
        states = np.full((len(moments), len(state)), np.inf)
        found = solve_ivp(
            lambda _, x: self.changes(x[None])[0],
            (0.0, max(float(clock[-1]), np.finfo(float).tiny)),
            state,
            t_eval=moments,
            rtol=1e-8,
            atol=1e-10 * bound * min(float(np.abs(state).max(initial=0.0)) or 1.0, 1.0),
            events=edge,
        )
        states[: found.y.shape[1]] = found.y.T
        return states[place]


class RegressorLaw(Law):
    """A law whose changes a fitted estimator predicts, which `fit_law` returns.

    Attributes
    ----------
    regressor : estimator
        Fitted estimator, whose `predict` returns changes (n, K) for states (n, K) of K components.
    kind : {"increment", "generator"}
        Whether it predicts the change per step, or the rate of change.
    in_sample : Score
        Scores on the data of the fit.

    Examples
    --------
    >>> import analysis, numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> law = analysis.fit_law(LinearRegression(), analysis.laws.affine_rollout([[-0.5]], [1.0], [0.0], 20))
    >>> law.changes(np.array([[4.0]])).round(6).tolist()
    [[-1.0]]
    """

    def __init__(self, regressor: Any, kind: str, pieces: Pieces) -> None:
        self.regressor = regressor
        self.kind = kind
        self.in_sample = self._score(pieces)

    def changes(self, states: Array) -> Array:
        """Return the changes that the estimator predicts.

        Parameters
        ----------
        states : ndarray of float64, shape (n, K)
            States of the K components, one in each row.

        Returns
        -------
        ndarray of float64, shape (n, K)
            Changes per step of an increment map, or per unit of time of a generator; all infinite if a state
            is not finite.
        """
        if not np.isfinite(states).all():
            return np.full_like(states, np.inf)
        # Some estimators predict a single target as a vector.
        return np.asarray(self.regressor.predict(states), np.float64).reshape(states.shape)

    def table(self) -> list[dict[str, Any]]:
        """Return the coefficients as rows of a table, if they have names.

        Returns
        -------
        list of dict
            One row for each term of a mean-field law, with the columns "term" and "coefficient". Otherwise
            one row for each component, with the columns "frequency" (its number, from 1), "1" (the constant),
            and the terms whose coefficients are not 0.

        Raises
        ------
        InputError
            If the estimator does not name its coefficients.
        """
        if hasattr(self.regressor, "terms_"):
            names = (term_name(term) for term in self.regressor.terms_)
            return [
                {"term": name, "coefficient": float(c)}
                for name, c in zip(names, self.regressor.coef_, strict=True)
            ]
        if not hasattr(self.regressor, "steps"):
            return super().table()
        terms, last = self.regressor[0].get_feature_names_out(), self.regressor[-1]
        return [
            {"frequency": k + 1, "1": float(b)} | {t: float(v) for t, v in zip(terms, w, strict=True) if v}
            for k, (b, w) in enumerate(zip(last.intercept_, last.coef_, strict=True))
        ]

    @property
    def missed(self) -> list[int]:
        """Components, counted from 1, whose fits have not converged; empty if the estimator has no report."""
        last = self.regressor[-1] if hasattr(self.regressor, "steps") else self.regressor
        return [int(k) + 1 for k in np.flatnonzero(~getattr(last, "converged_", np.array([], bool)))]


def fit_law(
    estimator: BaseEstimator, signals: Any, times: Any = None, *, kind: str = "increment"
) -> RegressorLaw:
    """Fit a law to trajectories with any estimator that predicts changes from states.

    Parameters
    ----------
    estimator : estimator
        Estimator such as `MeanFieldRegressor`, or the result of `lotka_volterra`. A clone of it is fitted.
    signals, times : array_like of float
        Trajectories (runs, frames, K) of K components and their times (frames,), by default 0, 1, 2, …; see
        `fit_trajectories` for all accepted forms.
    kind : {"increment", "generator"}, default "increment"
        Whether to fit the change per step, or the rate of change.

    Returns
    -------
    RegressorLaw
        Fitted law with its scores in sample.

    Raises
    ------
    InputError
        If `kind` is unknown, or the trajectories are invalid; see `fit_trajectories`. Errors of the estimator
        are passed on.

    Examples
    --------
    >>> import analysis, physics
    >>> run = analysis.signals_of(physics.example("ding"), 0, 1000)[0]
    >>> law = analysis.fit_law(analysis.MeanFieldRegressor(), run.values, run.steps)
    >>> len(law.table()), law.in_sample.reached
    (9, 1.0)
    """
    choice("kind", kind, ("increment", "generator"))
    pieces = as_pieces(signals, times)
    pairs = differences(pieces, kind)
    states, changes = (np.concatenate(part) for part in zip(*pairs, strict=True))
    return RegressorLaw(clone(estimator).fit(states, changes), kind, pieces)
