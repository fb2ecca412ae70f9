"""Laws of motion of signals, their predictions, and honest scores of these."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from sklearn.base import BaseEstimator, clone

from analysis.circles.survival import agreement, survives
from analysis.laws.nonlinear import term_name
from analysis.laws.pieces import Array, Pieces, as_pieces, differences, elapsed, r_squared, whole_steps
from physics.checks import choice, finite_array, number
from physics.errors import InputError

BLOW_UP = 1e3
"""A rollout has diverged if it exceeds this multiple of the largest value of its start (or of 1)."""

FOLDS = 10
"""Largest number of runs that are left out one by one; more runs are left out in this many groups."""


@dataclass(frozen=True)
class Score:
    """Scores of a law on some data.

    Attributes
    ----------
    derivative : float
        R² of the changes, averaged over components; negative if a constant would predict better.
    rollout : float
        R² of the trajectories predicted from their first frames alone; -inf if one overflows.
    relative_error : float
        ``‖predicted - true‖ / ‖true‖`` of the rollouts; inf if one overflows.
    reached : float
        Fraction of the frames that the rollouts reach before they diverge; 1 if none does.
    survivors : float
        Agreement on the components that survive, which exceed twice the mean in the last frame: the number
        that survive in both the data and the rollout, over the number that survive in either, averaged over
        trajectories. NaN if none survives.
    """

    derivative: float
    rollout: float
    relative_error: float
    reached: float
    survivors: float


class Law(ABC):
    """A law `dx/dt = f(x)` (kind "generator") or `x_{n+1} - x_n = f(x_n)` (kind "increment")."""

    kind: str

    @abstractmethod
    def changes(self, states: Array) -> Array:
        """Return the right side f(x) of the law.

        Parameters
        ----------
        states : ndarray, shape (n, K)

        Returns
        -------
        ndarray of float64, shape (n, K)
        """

    def table(self) -> list[dict[str, Any]]:
        """Return the coefficients as rows.

        Returns
        -------
        list of dict

        Raises
        ------
        InputError
            If the coefficients of the law have no names.
        """
        raise InputError(f"{type(self).__name__} has no coefficients that a table could name")

    @property
    def missed(self) -> list[int]:
        """Components, counted from 1 as frequencies are, whose fits have not converged."""
        return []

    def predict(self, x0: Any, times: Any) -> Array:
        """Return the trajectory from a state; `rollout` also returns how far it got.

        Parameters
        ----------
        x0, times : array_like, shape (K,) and (n,)
            As in `rollout`.

        Returns
        -------
        ndarray of float64, shape (n, K)
        """
        return self.rollout(x0, times)[0]

    def rollout(self, x0: Any, times: Any) -> tuple[Array, int]:
        """Follow the law from a state.

        Parameters
        ----------
        x0 : array_like, shape (K,)
            State at time 0.
        times : array_like, shape (n,)
            Increasing, counted from `x0`; whole numbers of steps for an increment map.

        Returns
        -------
        states : ndarray of float64, shape (n, K)
            States, which are infinite from the frame at which the rollout has diverged.
        reached : int
            Number of frames before that.

        Raises
        ------
        InputError
            If a value is not finite, or `times` are negative or decrease.
        """
        state, clock = finite_array("x0", x0), finite_array("times", times).reshape(-1)
        bound = BLOW_UP * max(1.0, float(np.abs(state).max(initial=0)))
        states = self._iterate(state, clock, bound) if self.kind == "increment" else None
        if states is None:
            states = self._integrate(state, clock, bound)
        with np.errstate(invalid="ignore"):
            wild = ~(np.abs(states) <= bound).all(axis=1)
        reached = int(np.argmax(wild)) if wild.any() else len(states)
        states[reached:] = np.inf
        return states, reached

    def score(self, signals: Any, times: Any = None) -> Score:
        """Score the law on data such as later frames or another run.

        Parameters
        ----------
        signals, times : array_like
            As in `fit_trajectories`.

        Returns
        -------
        Score
            R² of the changes over all steps, and of the rollouts from the first frames over all frames.
        """
        return self._score(as_pieces(signals, times))

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
            error = float(np.linalg.norm(rolled - true) / max(np.linalg.norm(true), np.finfo(float).tiny))
        known = [value for value in agreements if np.isfinite(value)]
        return Score(
            derivative,
            r_squared(true, rolled),
            error,
            max(reached, 0) / len(true),
            float(np.mean(known)) if known else float("nan"),
        )

    def _iterate(self, state: Array, clock: Array, bound: float) -> Array:
        whole = whole_steps(clock)
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
        states = np.full((len(clock), len(state)), np.inf)
        if not len(clock):
            return states
        if np.any(np.diff(clock) < 0) or clock[0] < 0:
            raise InputError(f"times must be at least 0 and must not decrease, got {clock[:5].tolist()}")
        found = solve_ivp(
            lambda _, x: self.changes(x[None])[0],
            (0.0, max(float(clock[-1]), np.finfo(float).tiny)),
            state,
            t_eval=clock,
            rtol=1e-8,
            atol=1e-10 * bound,
            events=edge,
        )
        states[: found.y.shape[1]] = found.y.T
        return states


class RegressorLaw(Law):
    """A law whose changes a fitted estimator predicts.

    Attributes
    ----------
    regressor : estimator
        Fitted, with ``predict(states (n, K)) -> changes (n, K)``.
    kind : {"increment", "generator"}
    in_sample : Score
    """

    def __init__(self, regressor: Any, kind: str, pieces: Pieces) -> None:
        self.regressor = regressor
        self.kind = kind
        self.in_sample = self._score(pieces)

    def changes(self, states: Array) -> Array:
        """Return the predictions of the estimator.

        Parameters
        ----------
        states : ndarray, shape (n, K)

        Returns
        -------
        ndarray of float64, shape (n, K)
            Infinite if a state is not finite.
        """
        if not np.isfinite(states).all():
            return np.full_like(states, np.inf)
        return np.asarray(self.regressor.predict(states))

    def table(self) -> list[dict[str, Any]]:
        """Return the coefficients as rows, if they have names.

        Returns
        -------
        list of dict
            One row for each term of a mean-field law, or for each target of other laws.
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
        """Components whose fits have not converged, if the last step of a pipeline reports them."""
        last = self.regressor[-1] if hasattr(self.regressor, "steps") else self.regressor
        return [int(k) + 1 for k in np.flatnonzero(~getattr(last, "converged_", np.array([], bool)))]


def fit_law(
    estimator: BaseEstimator, signals: Any, times: Any = None, *, kind: str = "increment"
) -> RegressorLaw:
    """Fit a clone of any estimator of changes to trajectories.

    Parameters
    ----------
    estimator : estimator
        Estimator such as `MeanFieldRegressor`, or the result of `lotka_volterra`.
    signals, times, kind
        As in `fit_trajectories`.

    Returns
    -------
    RegressorLaw
    """
    choice("kind", kind, ("increment", "generator"))
    pieces = as_pieces(signals, times)
    pairs = differences(pieces, kind)
    states, changes = (np.concatenate(part) for part in zip(*pairs, strict=True))
    return RegressorLaw(clone(estimator).fit(states, changes), kind, pieces)


@dataclass(frozen=True)
class HonestScores:
    """Scores of a law in sample, forward in time, and across runs.

    Attributes
    ----------
    law : Law
        Fitted to all data.
    in_sample : Score
        Score on the data of the fit. Ding et al. report this number; it says little about prediction.
    forward : Score or None
        Score of a law that was fitted to the early part of every run, on the later part. Rollouts start at
        the split. None if a run is too short.
    across : tuple of Score
        Score of each run by a law that was fitted to the others. Empty for a single run.
    """

    law: Law
    in_sample: Score
    forward: Score | None
    across: tuple[Score, ...]

    def mean(self, name: str) -> float:
        """Return the mean over runs of a score across runs.

        Parameters
        ----------
        name : str
            Name of a field of `Score`, such as "rollout".

        Returns
        -------
        float
            NaN values are ignored; NaN if there is no other.
        """
        values = np.array([getattr(score, name) for score in self.across])
        known = values[~np.isnan(values)]
        return float(known.mean()) if len(known) else np.nan

    def median(self, name: str) -> float:
        """Return the median over runs of a score across runs.

        Parameters
        ----------
        name : str
            Name of a field of `Score`, such as "rollout".

        Returns
        -------
        float
            NaN for a single run.
        """
        return float(np.median([getattr(score, name) for score in self.across])) if self.across else np.nan


def honest_scores(
    fit: Callable[[Any, Any], Law], signals: Any, times: Any = None, *, split: float = 0.5
) -> HonestScores:
    """Score a law by the R² of `Law.score`: in sample, forward in time, and across runs.

    Parameters
    ----------
    fit : callable
        Function ``fit(signals, times)`` of two lists with one array for each run, which returns a law.
    signals, times
        As in `fit_trajectories`.
    split : float, default 0.5
        Fraction of the frames of each run that the forward fit sees.

    Returns
    -------
    HonestScores

    Raises
    ------
    InputError
        As `fit_trajectories`, or if `split` is not between 0 and 1.
    """
    if not 0 < number("split", split) < 1:
        raise InputError(f"split must be greater than 0 and less than 1, got {split:g}")
    pieces = as_pieces(signals, times)
    clocks, values = [t for t, _ in pieces], [x for _, x in pieces]
    law = fit(values, clocks)
    at = [int(split * (len(t) - 1)) for t in clocks]
    forward = None
    if all(a >= 2 and len(t) - a > 2 for a, t in zip(at, clocks, strict=True)):
        early = fit(
            [x[: a + 1] for x, a in zip(values, at, strict=True)],
            [t[: a + 1] for t, a in zip(clocks, at, strict=True)],
        )
        forward = early.score(
            [x[a:] for x, a in zip(values, at, strict=True)], [t[a:] for t, a in zip(clocks, at, strict=True)]
        )
    held: dict[int, Score] = {}
    if len(pieces) > 1:
        folds = min(len(pieces), FOLDS)
        for fold in range(folds):
            left = range(fold, len(pieces), folds)
            rest = fit(
                [x for k, x in enumerate(values) if k not in left],
                [t for k, t in enumerate(clocks) if k not in left],
            )
            held |= {k: rest.score([values[k]], [clocks[k]]) for k in left}
    return HonestScores(law, law.score(values, clocks), forward, tuple(held[k] for k in range(len(held))))
