"""Laws of motion, the rollouts that they predict, and scores of both."""

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from sklearn.base import BaseEstimator, clone

from analysis.circles.fourier import fourier_signals
from analysis.circles.survival import agreement, survives
from analysis.laws.regressors import FitWarning, term_name
from analysis.scaling import scaled
from physics.checks import InputError, choice, finite_array, increasing_array, number
from physics.trajectory import Trajectory
from physics.values import Array, Integers, Shown

Pieces = list[tuple[Array, Array]]
"""Times (n,) and states (n, K) of each trajectory."""

KINDS = ("increment", "generator")


def as_pieces(signals: Any, times: Any = None) -> Pieces:
    """Convert signals and times, as `fit_trajectories` takes them, to a list of checked trajectories.

    Trajectories and labelled signals are taken at their recorded steps.

    The result holds times (frames,) and states (frames, components) of each trajectory, both float64. An
    `InputError` refuses shapes that do not agree, values that are not finite, times that do not increase, and
    a trajectory of fewer than 2 frames.
    """
    parts = signals if isinstance(signals, Sequence) else [signals]
    if times is None and parts and all(isinstance(x, Trajectory) or hasattr(x, "step") for x in parts):
        data = [fourier_signals(x) if isinstance(x, Trajectory) else x for x in parts]
        rows = [run for x in data for run in (x if x.ndim == 3 else [x])]
        signals, times = [run.values for run in rows], [run.step.values for run in rows]
    if isinstance(signals, Sequence) and len(signals) and np.ndim(signals[0]) == 2:
        arrays = [finite_array(f"signals[{k}]", piece, ndim=2) for k, piece in enumerate(signals)]
    else:
        array = finite_array("signals", signals)
        if array.ndim not in (2, 3) or not array.size:
            raise InputError(f"signals must be (frames, K) or (runs, frames, K), got {array.shape}")
        arrays = list(array if array.ndim == 3 else array[None])
    if len({piece.shape[1] for piece in arrays}) != 1:
        raise InputError(f"signals must agree in components, got {[p.shape[1] for p in arrays]}")
    if times is None:
        clocks: list[Any] = [np.arange(len(piece)) for piece in arrays]
    else:
        listed = np.iterable(times) and np.ndim(next(iter(times), 0)) > 0
        clocks = list(times) if listed else [times] * len(arrays)
    if len(clocks) != len(arrays):
        raise InputError(f"times must be given once or {len(arrays)} times, got {len(clocks)}")
    pieces = []
    for k, (clock, piece) in enumerate(zip(clocks, arrays, strict=True)):
        t = increasing_array(f"times of trajectory {k}", clock)
        if len(t) != len(piece):
            raise InputError(f"times of trajectory {k} must have {len(piece)} entries, got {t.shape}")
        if len(piece) < 2:
            raise InputError(f"trajectory {k} must have at least 2 frames, got {len(piece)}")
        pieces.append((t, piece))
    return pieces


def differences(pieces: Pieces, kind: str) -> list[tuple[Array, Array]]:
    """Return states and their changes, (n - 1, components) each, within each trajectory of n frames.

    "increment" gives the states at the frames, and first differences; an `InputError` refuses frames that are
    not equally spaced. "generator" gives midpoints and difference quotients, whose error is of second order
    in the spacing.
    """
    choice("kind", kind, KINDS)
    if kind == "increment":
        unit(pieces)
        return [(x[:-1], np.diff(x, axis=0)) for _, x in pieces]
    return [((x[:-1] + x[1:]) / 2, np.diff(x, axis=0) / np.diff(t)[:, None]) for t, x in pieces]


def pooled(pieces: Pieces, kind: str) -> tuple[Array, Array]:
    """Return the `differences` of all trajectories one after the other."""
    states, changes = zip(*differences(pieces, kind), strict=True)
    return np.concatenate(states), np.concatenate(changes)


def unit(pieces: Pieces) -> float:
    """Return the time from one frame to the next, to nine digits; refuse frames at unequal distances."""
    spacing = np.concatenate([np.diff(t) for t, _ in pieces])
    if np.ptp(spacing) > 1e-9 * spacing.max():
        got = f"spacings from {spacing.min()} to {spacing.max()}; choose kind='generator'"
        raise InputError(f"times must be equally spaced for an increment map, got {got}")
    return float(f"{spacing[0]:.9g}")


def whole_steps(clock: Array) -> Integers:
    """Return times (n,) in steps as int64; refuse those that are negative or not whole."""
    whole = np.rint(clock).astype(np.int64)
    wrong = clock[(whole != clock) | (whole < 0)]
    if len(wrong):
        raise InputError(f"times of an increment map must be whole numbers of at least 0, got {wrong[0]}")
    return whole


def r_squared(truth: Array, predicted: Array) -> float:
    """Return the coefficient of determination R² of predictions (n, K), averaged over the K components.

    A component without variance counts as 1 if its prediction is exact, and otherwise as 0, as in
    scikit-learn. The result is NaN for fewer than two rows, and -inf if a prediction overflows.
    """
    if len(truth) < 2:
        return float("nan")
    truth, exponent = scaled(truth, 0)
    with np.errstate(over="ignore"):
        predicted = np.ldexp(predicted, -exponent)
        if not np.isfinite(predicted).all() or not np.isfinite(predicted**2).all():
            return float("-inf")
    missed = ((truth - predicted) ** 2).sum(axis=0)
    spread = ((truth - truth.mean(axis=0)) ** 2).sum(axis=0)
    explained = 1 - missed / np.where(spread > 0, spread, 1.0)
    return float(np.where(spread > 0, explained, missed == 0).mean())


BLOW_UP = 1e3
"""A rollout has diverged if it exceeds this multiple of the largest value of its start (or of 1)."""


@dataclass(frozen=True)
class Score(Shown):
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


class Law(Shown, ABC):
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
        raise InputError(f"law must have named coefficients for a table, got {type(self).__name__}")

    @property
    def missed(self) -> list[int]:
        """Components, counted from 1, whose fits have not converged; none unless a subclass reports them."""
        return []

    def predict(self, x0: Any, times: Any) -> Array:
        """Return the trajectory from a state; `rollout` also returns how far it got before it diverged.

        Parameters
        ----------
        x0 : array_like of float, shape (K,) or (runs, K)
            State of the K components at time 0, or one for each run.
        times : array_like of float, shape (n,)
            Times in any order, counted from `x0`; whole numbers of steps for an increment map.

        Returns
        -------
        ndarray of float64, shape (n, K) or (runs, n, K)
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
        if np.ndim(x0) == 2:
            return np.stack([self.rollout(state, times)[0] for state in x0])
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
        states, changes = pooled(pieces, self.kind)
        with np.errstate(over="ignore", invalid="ignore"):
            derivative = r_squared(changes, self.changes(states))
        rollouts, agreements, reached = [], [], 0
        for t, x in pieces:
            states, frames = self.rollout(x[0], t - t[0] if self.kind == "generator" else np.arange(len(x)))
            rollouts.append(states[1:])
            reached += max(frames - 1, 0)
            # A rollout that has diverged has no survivors.
            agreements.append(
                agreement(survives(x[-1]), survives(states[-1]) & np.isfinite(states[-1]).all())
            )
        truth, rolled = np.concatenate([x[1:] for _, x in pieces]), np.concatenate(rollouts)
        error = math.inf
        if np.isfinite(rolled).all():
            units, exponent = scaled(truth)
            missed = np.linalg.norm(np.ldexp(rolled, -exponent) - units)
            error = float(missed / max(np.linalg.norm(units), np.finfo(float).tiny))
        known = [value for value in agreements if np.isfinite(value)]
        survivors = float(np.mean(known)) if known else math.nan
        return Score(derivative, r_squared(truth, rolled), error, reached / len(truth), survivors)

    def _iterate(self, state: Array, clock: Array, bound: float) -> Array:
        whole = whole_steps(clock)
        path = np.full((whole.max(initial=0) + 1, len(state)), np.inf)
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
        number("times", clock[0], 0.0)
        # SciPy refuses a time that comes twice.
        moments, place = np.unique(clock, return_inverse=True)
        states = np.full((len(moments), len(state)), np.inf)
        solution = solve_ivp(
            lambda _, x: self.changes(x[None])[0],
            (0.0, max(float(clock[-1]), np.finfo(float).tiny)),
            state,
            t_eval=moments,
            rtol=1e-8,
            atol=1e-10 * bound * min(float(np.abs(state).max(initial=0.0)) or 1.0, 1.0),
            events=edge,
        )
        states[: solution.y.shape[1]] = solution.y.T
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
            names = map(term_name, self.regressor.terms_)
            coefficients = map(float, self.regressor.coef_)
            return [{"term": n, "coefficient": c} for n, c in zip(names, coefficients, strict=True)]
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
        Estimator of scikit-learn, `MeanFieldRegressor`, or the result of `lotka_volterra`. A clone of it is
        fitted to the changes of all runs, one run after the other.
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

    Notes
    -----
    An estimator that cross-validates must leave out whole runs: successive changes of one run are alike, so
    that a fold with some of them knows the others. The default of scikit-learn cuts runs into pieces. For R
    runs of equal length, ``cv=R`` leaves out one at a time, and ``sklearn.model_selection.TimeSeriesSplit()``
    predicts the later part of a single run. Estimators such as ``LassoCV`` do not converge on signals that
    are as collinear as those of Ding et al.; `LinearODERegressor` does.

    Examples
    --------
    >>> import analysis, physics
    >>> signals = analysis.circles_of(physics.example("ding"), 0, 1000).signals
    >>> law = analysis.fit_law(analysis.MeanFieldRegressor(), signals)
    >>> len(law.table()), law.in_sample.reached
    (9, 1.0)

    The penalty that predicts runs best which it has not seen:

    >>> from sklearn.model_selection import GridSearchCV
    >>> runs = [analysis.laws.affine_rollout([[-0.1]], [1.0], [x], 40) for x in (0.0, 5.0, 20.0)]
    >>> search = GridSearchCV(analysis.LinearODERegressor(), {"alpha": [0.001, 0.1, 1.0]}, cv=len(runs))
    >>> analysis.fit_law(search, runs).regressor.best_params_
    {'alpha': 0.001}
    """
    pieces = as_pieces(signals, times)
    return RegressorLaw(clone(estimator).fit(*pooled(pieces, kind)), kind, pieces)


FOLDS = 10
"""Largest number of runs that are left out one by one; more runs are left out in this many groups."""


@dataclass(frozen=True)
class HonestScores(Shown):
    """Scores of a law in sample, forward in time, and across runs, which `honest_scores` returns.

    Attributes
    ----------
    law : Law
        Law that was fitted to all data.
    in_sample : Score
        Score on the data of the fit. Ding et al. report this number; it says little about prediction.
    forward : Score or None
        Score of a law that was fitted to the early part of every run, on the later part. Rollouts start at
        the split. None if either part of some run has fewer than three frames, or the law cannot be fitted to
        the early part alone, which may hold too few changes.
    across : tuple of Score
        Score of each run by a law that was fitted to other runs: to all others if there are at most ten runs,
        and otherwise to about nine tenths of them. Empty for a single run, or if the law cannot be fitted to
        the others alone.

    Examples
    --------
    >>> import analysis, physics
    >>> scores = analysis.fit_batch(physics.example("ding"))
    >>> scores.in_sample.derivative > 0, scores.forward.rollout < 0, scores.across
    (True, True, ())
    """

    law: Law
    in_sample: Score
    forward: Score | None
    across: tuple[Score, ...]

    def mean(self, name: str) -> float:
        """Return a score on runs that the fit has not seen, averaged over these runs.

        Parameters
        ----------
        name : str
            Name of a field of `Score`, such as "rollout".

        Returns
        -------
        float
            Mean of the values that are not NaN; NaN if there are none.

        Examples
        --------
        >>> import analysis
        >>> x = [analysis.laws.affine_rollout([[-0.1]], [1.0], [x0], 40) for x0 in (0.0, 5.0)]
        >>> fit = lambda signals, times: analysis.fit_trajectories(signals, times, penalty=None)
        >>> round(analysis.honest_scores(fit, x).mean("rollout"), 6)
        1.0
        """
        values = [getattr(score, name) for score in self.across if not math.isnan(getattr(score, name))]
        return float(np.mean(values)) if values else math.nan

    def median(self, name: str) -> float:
        """Return the median of a score over the runs that the fit has not seen.

        Parameters
        ----------
        name : str
            Name of a field of `Score`, such as "rollout".

        Returns
        -------
        float
            Median; NaN if no run was left out, or if a value is NaN.

        Examples
        --------
        >>> import analysis
        >>> x = [analysis.laws.affine_rollout([[-0.1]], [1.0], [x0], 40) for x0 in (0.0, 5.0)]
        >>> fit = lambda signals, times: analysis.fit_trajectories(signals, times, penalty=None)
        >>> round(analysis.honest_scores(fit, x).median("derivative"), 6)
        1.0
        """
        return float(np.median([getattr(score, name) for score in self.across])) if self.across else math.nan


def honest_scores(
    fit: Callable[[Any, Any], Law], signals: Any, times: Any = None, *, split: float = 0.5
) -> HonestScores:
    """Score a law on the data of its fit, on later frames, and on runs that the fit has not seen.

    Parameters
    ----------
    fit : callable
        Function ``fit(signals, times)`` of two lists with one array for each run, which returns a law.
    signals, times : array_like of float
        Trajectories (runs, frames, K) of K components and their times (frames,), by default 0, 1, 2, …; see
        `fit_trajectories` for all accepted forms.
    split : float, default 0.5
        Fraction of the frames of each run that the forward fit sees, greater than 0 and less than 1.

    Returns
    -------
    HonestScores
        The law, and its scores in sample, forward in time, and across runs.

    Raises
    ------
    InputError
        If the data are invalid (see `fit_trajectories`), or `split` is not between 0 and 1.

    Examples
    --------
    >>> import analysis, numpy as np
    >>> x = [analysis.laws.affine_rollout([[-0.1]], [1.0], [x0], 40) for x0 in (0.0, 5.0)]
    >>> fit = lambda signals, times: analysis.fit_trajectories(signals, times, penalty=None)
    >>> scores = analysis.honest_scores(fit, x)
    >>> round(scores.forward.rollout, 6), round(scores.mean("rollout"), 6)
    (1.0, 1.0)
    """
    number("split", split, above=0.0, below=1.0)
    pieces = as_pieces(signals, times)

    def fit_all(pieces: Pieces) -> Law:
        return fit([x for _, x in pieces], [t for t, _ in pieces])

    def fit_part(pieces: Pieces) -> Law | None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)  # it would seem to be about the law that is returned
            try:
                return fit_all(pieces)
            except InputError:  # a part may be too short for a fit, or not vary, although the whole is not
                return None

    law = fit_all(pieces)
    forward = None
    cuts = [int(split * (len(t) - 1)) for t, _ in pieces]
    if all(cut >= 2 and len(t) - cut > 2 for cut, (t, _) in zip(cuts, pieces, strict=True)):
        early = fit_part([(t[: cut + 1], x[: cut + 1]) for cut, (t, x) in zip(cuts, pieces, strict=True)])
        late = [(t[cut:], x[cut:]) for cut, (t, x) in zip(cuts, pieces, strict=True)]
        forward = early._score(late) if early else None
    across: dict[int, Score] = {}
    folds = min(len(pieces), FOLDS) if len(pieces) > 1 else 0
    for fold in range(folds):
        left = range(fold, len(pieces), folds)
        rest = fit_part([piece for k, piece in enumerate(pieces) if k not in left])
        if rest is None:
            across = {}
            break
        across |= {k: rest._score([pieces[k]]) for k in left}
    return HonestScores(law, law._score(pieces), forward, tuple(across[k] for k in sorted(across)))
