"""Linear ODEs fitted to trajectories (Ding et al. §4.2), one at a time or hundreds at once.

The **increment map** is `x_{n+1} = x_n + A x_n + b`, which the paper fits to the states x_n at consecutive
steps. The **generator** is `dx/dt = A x + b`. `analysis.laws.flow` converts one into the other.
"""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.laws.flow import affine_rollout, affine_solution, augmented, to_generator, to_increment
from analysis.laws.lasso import Moments, ratio, solve
from analysis.laws.pieces import Array, as_pieces, differences, r_squared, unit, whole_steps
from analysis.laws.regressors import FitWarning, LinearODERegressor
from analysis.laws.scores import Law
from physics.checks import choice, distinct, number, whole_number
from physics.errors import InputError

PUBLISHED: dict[str, dict[str, Any]] = {
    "lasso": {"kind": "increment", "penalty": "lasso", "alpha": 0.01},
    "least-squares": {"kind": "increment", "penalty": None},
}
"""The paper's recipes, on the signals (norms) of steps 0-1000: ``fit_trajectories(x, **PUBLISHED["lasso"])``.
The published code stops Lasso after 1000 sweeps, even if it has not converged; here the limit is 100 000."""


@dataclass(frozen=True)
class ODEFit(Law):
    """A fitted linear ODE and how well it describes the data; `fit_trajectories` returns it.

    Attributes
    ----------
    kind : {"increment", "generator"}
        Whether A and b are the map x(n+1) = x(n) + A x(n) + b, or dx/dt = A x + b.
    A : ndarray of float64, shape (K, K)
        Effect of each component (column) on the change of each (row), per step or per unit of time.
    b : ndarray of float64, shape (K,)
        Constant part of the change of each component, in the units of the data per step or per unit of time.
    unit : float
        Time that one increment takes; 1 for a generator.
    alpha : ndarray of float64, shape (K,)
        Weight of the penalty in the fit of each row of A; 0 without a penalty.
    converged : ndarray of bool, shape (K,)
        For which rows of A the fit has converged.
    r2_in_sample : float
        R² of the changes in the steps of the fit, averaged over components. Ding et al. report this number;
        it says little about prediction.
    r2_rollout : float
        R² of the trajectories predicted from their first frames alone, averaged over components; -inf if a
        prediction diverges.
    transitions : int
        Number of pairs of consecutive frames to which the law was fitted.

    Examples
    --------
    >>> import analysis
    >>> x = analysis.laws.affine_rollout([[-0.5]], [1.0], [0.0], 20)
    >>> fit = analysis.fit_trajectories(x, penalty=None)
    >>> fit.predict([4.0], [0, 1, 2])[:, 0].round(6).tolist(), round(fit.r2_rollout, 6)
    ([4.0, 3.0, 2.5], 1.0)
    """

    kind: str
    A: Array
    b: Array
    unit: float
    alpha: Array
    converged: NDArray[np.bool_]
    r2_in_sample: float
    r2_rollout: float
    transitions: int

    @property
    def components(self) -> int:
        """Number K of components."""
        return len(self.b)

    def changes(self, states: Array) -> Array:
        """Return the right side ``A x + b`` of the law.

        Parameters
        ----------
        states : ndarray of float64, shape (n, K)
            States of the K components, one in each row.

        Returns
        -------
        ndarray of float64, shape (n, K)
            Change of each state, per step or per unit of time.
        """
        return np.asarray(states @ self.A.T + self.b)

    def table(self) -> list[dict[str, Any]]:
        """Return the coefficients as rows of a table.

        Returns
        -------
        list of dict
            One row for each of the K components, with the columns ``frequency`` (its number, from 1), ``b``,
            and ``a_1`` … ``a_K``, the effects of all components on it.
        """
        return [
            {"frequency": k + 1, "b": float(b)} | {f"a_{j}": float(a) for j, a in enumerate(row, 1)}
            for k, (row, b) in enumerate(zip(self.A, self.b, strict=True))
        ]

    @property
    def missed(self) -> list[int]:
        """Components, counted from 1, whose fits have not converged."""
        return [int(k) + 1 for k in np.flatnonzero(~self.converged)]

    def to_generator(self) -> tuple[Array, Array]:
        """Return the law as a generator, which gives the rate of change.

        Returns
        -------
        A : ndarray of float64, shape (K, K)
            Matrix of ``dx/dt = A x + b`` for K components, per unit of time.
        b : ndarray of float64, shape (K,)
            Constant of the generator.

        Raises
        ------
        InputError
            If the law is an increment map without a real generator; see `analysis.to_generator`.
        """
        return (self.A, self.b) if self.kind == "generator" else to_generator(self.A, self.b, self.unit)

    def to_increment(self, step: float = 1.0) -> tuple[Array, Array]:
        """Return the law as an increment map, which gives the change over a time step.

        Parameters
        ----------
        step : float, default 1.0
            Time step, greater than 0. For a fitted increment map it must be a whole multiple of `unit`.

        Returns
        -------
        A : ndarray of float64, shape (K, K)
            Matrix of ``x(t + step) - x(t) = A x(t) + b`` for K components.
        b : ndarray of float64, shape (K,)
            Constant of the map.

        Raises
        ------
        InputError
            If `step` is not greater than 0, or, for a fitted increment map, no multiple of `unit`.
        """
        if self.kind == "generator":
            return to_increment(self.A, self.b, step)
        times = number("step", step, above=0.0) / self.unit
        if round(times) < 1 or abs(times - round(times)) > 1e-8 * times:  # `unit` has nine digits
            raise InputError(
                f"step must be a whole multiple of the map's step, {distinct(self.unit, step)}, got "
                f"{distinct(step, self.unit, self.unit * round(times))}"
            )
        power = np.linalg.matrix_power(np.eye(len(self.b) + 1) + augmented(self.A, self.b), round(times))
        return power[:-1, :-1] - np.eye(len(self.b)), power[:-1, -1]

    def _iterate(self, state: Array, clock: Array, bound: float) -> Array:
        whole = whole_steps(clock)
        return affine_rollout(self.A, self.b, state, int(whole.max(initial=0)))[whole]

    def _integrate(self, state: Array, clock: Array, bound: float) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            return affine_solution(self.A, self.b, state, clock)


def fit_trajectories(
    signals: Any,
    times: Any = None,
    *,
    kind: str = "increment",
    penalty: str | None = "lasso",
    alpha: float | str = 0.01,
    l1_ratio: float = 0.5,
    cv: int = 5,
    max_iter: int = 100_000,
    tol: float = 1e-8,
) -> ODEFit:
    """Fit one linear ODE to many trajectories, without mixing the end of one with the start of the next.

    Parameters
    ----------
    signals : array_like, shape (frames, K) or (runs, frames, K), or a sequence of arrays (frames_i, K)
        Trajectories of the K components, such as Fourier signals.
    times : array_like, shape (frames,), or a sequence with one for each trajectory, optional
        Increasing times of the frames. By default 0, 1, 2, ….
    kind : {"increment", "generator"}, default "increment"
        "increment" fits `x_{n+1} - x_n = A x_n + b` as the paper does, and needs equally spaced frames, whose
        spacing becomes the unit of time. "generator" fits `dx/dt = A x + b` to difference quotients at the
        midpoints, also for uneven times. Its error is of second order in the spacing, and noise biases it;
        `match_trajectories` avoids both but takes longer.
    penalty : {"lasso", "elastic-net", None}, default "lasso"
        Penalty: the Lasso of the paper, the elastic net, or none (ordinary least squares).
    alpha : float or {"aic", "bic", "cv"}, default 0.01
        Weight of the penalty, at least 0, or the criterion that chooses it; see `LinearODERegressor`. At 0
        the fit is by least squares. Cross-validation leaves out whole trajectories if there are several.
    l1_ratio : float, default 0.5
        Fraction of the L1 norm in the elastic net, greater than 0 and at most 1; the Lasso does not use it.
    cv : int, default 5
        Number of folds of the cross-validation, at least 2.
    max_iter : int, default 100_000
        Largest number of sweeps of coordinate descent for each component, at least 1.
    tol : float, default 1e-8
        Duality gap, relative to the variance of a component's changes, at which its fit has converged.

    Returns
    -------
    ODEFit
        Fitted law with its scores.

    Raises
    ------
    InputError
        If shapes do not agree, values are not finite, times do not increase, or a trajectory has fewer than
        two frames. Also if an increment map is wanted from uneven times, or least squares from fewer changes
        than unknowns, or if another argument is out of its range.

    Warns
    -----
    FitWarning
        If components are constant, if there are fewer changes than unknowns, so that only the penalty makes
        the solution unique, or if the penalty leaves no coefficient.
    ConvergenceWarning
        If the fits of components have not converged after `max_iter` sweeps.

    References
    ----------
    Ding et al. 2024, Eq. 3; their recipes are in `PUBLISHED`.

    Examples
    --------
    >>> import analysis
    >>> x = analysis.laws.affine_rollout([[-0.5, 0.1], [0.0, -0.2]], [1.0, 1.0], [0.0, 1.0], 20)
    >>> fit = analysis.fit_trajectories(x, penalty=None)
    >>> fit.A.round(6).tolist(), fit.b.round(6).tolist()
    ([[-0.5, 0.1], [0.0, -0.2]], [1.0, 1.0])
    """
    choice("kind", kind, ("increment", "generator"))
    pieces = as_pieces(signals, times)
    pairs = differences(pieces, kind)
    states, changes = (np.concatenate(part) for part in zip(*pairs, strict=True))
    groups = np.repeat(np.arange(len(pairs)), [len(x) for x, _ in pairs])
    regressor = LinearODERegressor(penalty, alpha, l1_ratio=l1_ratio, cv=cv, max_iter=max_iter, tol=tol)
    regressor.check()
    _say_what_is_poor(states, None if alpha == 0 else penalty)
    regressor.fit(states, changes, groups)
    A, b = regressor.coef_, np.atleast_1d(regressor.intercept_)
    if regressor.alpha_.any() and not A.any() and changes.var(axis=0).any():
        strongest = np.abs((changes - changes.mean(axis=0)).T @ (states - states.mean(axis=0))).max()
        share = 1.0 if penalty == "lasso" else l1_ratio
        warnings.warn(
            f"alpha = {regressor.alpha_.max():g} leaves no coefficient, so that every signal drifts at a "
            f"constant rate; coefficients appear below {strongest / len(states) / share:.3g}",
            FitWarning,
            stacklevel=2,
        )
    fit = ODEFit(
        kind,
        A,
        b,
        unit(pieces) if kind == "increment" else 1.0,
        regressor.alpha_,
        regressor.converged_,
        r_squared(changes, states @ A.T + b),
        np.nan,
        len(states),
    )
    return replace(fit, r2_rollout=fit._score(pieces).rollout)


@dataclass(frozen=True)
class BatchFit:
    """Linear ODEs of K components, fitted to m trajectories separately; `fit_each` returns them.

    Attributes
    ----------
    A : ndarray of float64, shape (m, K, K)
        Matrix of each law: the effect of each component (column) on the change of each (row).
    b : ndarray of float64, shape (m, K)
        Constant part of the change of each component.
    r2_in_sample : ndarray of float64, shape (m,)
        R² of the changes of each trajectory, averaged over the components whose changes vary; 0 if none does.
    converged : ndarray of bool, shape (m, K)
        For which rows of A the fit has converged.

    Examples
    --------
    >>> import analysis, numpy as np
    >>> analysis.laws.fit_each(np.random.default_rng(0).normal(size=(3, 40, 2))).converged.tolist()
    [[True, True], [True, True], [True, True]]
    """

    A: Array
    b: Array
    r2_in_sample: Array
    converged: NDArray[np.bool_]


def fit_each(
    signals: Any,
    times: Any = None,
    *,
    kind: str = "increment",
    alpha: float = 0.01,
    l1_ratio: float = 1.0,
    max_iter: int = 100_000,
    tol: float = 1e-8,
) -> BatchFit:
    """Fit a separate linear ODE to each trajectory by Lasso or elastic net, on all cores.

    Parameters
    ----------
    signals : array_like, shape (frames, K) or (runs, frames, K), or a sequence of arrays (frames_i, K)
        Trajectories of the K components, such as Fourier signals.
    times : array_like, shape (frames,), or a sequence with one for each trajectory, optional
        Increasing times of the frames. By default 0, 1, 2, ….
    kind : {"increment", "generator"}, default "increment"
        Whether to fit the change per step, or the rate of change; see `fit_trajectories`.
    alpha : float, default 0.01
        Weight of the penalty, greater than 0.
    l1_ratio : float, default 1.0
        Fraction of the L1 norm in the penalty, greater than 0 and at most 1; 1 is the Lasso.
    max_iter : int, default 100_000
        Largest number of sweeps of coordinate descent for each component, at least 1.
    tol : float, default 1e-8
        Duality gap, relative to the variance of a component's changes, at which its fit has converged.

    Returns
    -------
    BatchFit
        Coefficients and scores of each trajectory.

    Raises
    ------
    InputError
        If the trajectories are invalid (see `fit_trajectories`), or a parameter is out of its range.

    Examples
    --------
    >>> import analysis, numpy as np
    >>> signals = np.random.default_rng(0).normal(size=(3, 40, 2))
    >>> analysis.laws.fit_each(signals).A.shape
    (3, 2, 2)
    """
    moments = Moments.of(differences(as_pieces(signals, times), kind))
    found = solve(
        moments,
        np.array([[number("alpha", alpha, above=0.0)]]),
        l1_ratio=ratio(l1_ratio),
        max_iter=whole_number("max_iter", max_iter, 1),
        tol=number("tol", tol, above=0.0),
    )
    A = found.coef[:, :, 0]
    explained = 2 * np.einsum("mtk,mtk->mt", A, moments.cross) - np.einsum(
        "mtk,mkl,mtl->mt", A, moments.gram, A
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        r2 = np.where(moments.power > 0, explained / moments.power, np.nan)
    varies = np.isfinite(r2)
    mean = np.where(varies, r2, 0).sum(axis=1) / np.maximum(varies.sum(axis=1), 1)
    return BatchFit(A, found.intercept[:, :, 0], mean, found.converged[:, :, 0])


def _say_what_is_poor(states: Array, penalty: str | None) -> None:
    """Warn of data that do not determine a law, or refuse least squares on them."""
    unknowns = states.shape[1] + 1
    if len(states) < unknowns:
        if penalty is None:
            raise InputError(
                f"signals must hold at least as many changes as unknowns for least squares, got "
                f"{len(states)} changes for {unknowns} unknowns of each target; give more frames or a penalty"
            )
        warnings.warn(
            f"{len(states)} changes for {unknowns} unknowns of each target: only the penalty chooses among "
            "the laws that fit",
            FitWarning,
            stacklevel=3,
        )
    constant = np.flatnonzero(np.ptp(states, axis=0) == 0)
    if len(constant):
        warnings.warn(
            f"components {', '.join(map(str, constant + 1))} (counted from 1) do not vary: nothing can be "
            "learned from them, and their columns of A are 0",
            FitWarning,
            stacklevel=3,
        )
