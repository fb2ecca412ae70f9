"""Linear ODEs fitted to trajectories (Ding §4.2), and what they predict.

Two objects are kept apart. The **increment map** is `x_{n+1} = x_n + A x_n + b`, what the paper's recipe
fits from consecutive steps. The **generator** is `dx/dt = A x + b`. They agree only to first order
in the step; `affine_rollout` iterates the one, `affine_solution` solves the other exactly.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, LinearRegression
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted, validate_data

from physics.checks import choice, finite_array, number, whole_number
from physics.errors import InputError
from physics.systems.affine_flow import AffineFlow

Array = NDArray[np.float64]


class LinearODERegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Fit `dX = X Aᵀ + b` by least squares or Lasso, one target at a time.

    Parameters
    ----------
    penalty : {"lasso", None}, default "lasso"
        Lasso as in the paper, or ordinary least squares.
    alpha : float, default 0.01
        Weight of the L1 norm, as in `sklearn.linear_model.Lasso`; ignored by least squares.
    max_iter : int, default 100_000
        Coordinate descent sweeps for each target. The published code leaves scikit-learn's 1000, at
        which half of its targets have not converged.
    tol : float, default 1e-4
        Tolerance of the dual gap, as in `sklearn.linear_model.Lasso`.

    Attributes
    ----------
    coef_ : ndarray, shape (targets, features), or (features,) for one-dimensional targets
        The matrix A.
    intercept_ : ndarray, shape (targets,), or a float
        The vector b.
    n_iter_ : ndarray of int, shape (targets,)
        Sweeps taken; 1 for least squares.
    converged_ : ndarray of bool, shape (targets,)
        Which targets converged. Others are named in a `ConvergenceWarning`.

    Notes
    -----
    The estimator does not know what `dX` is: increments make `A, b` the increment map, derivatives the
    generator. `fit_trajectories` knows.
    """

    def __init__(
        self,
        penalty: str | None = "lasso",
        alpha: float = 0.01,
        *,
        max_iter: int = 100_000,
        tol: float = 1e-4,
    ) -> None:
        self.penalty = penalty
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to states `X` (samples, features) and their changes `y` (samples, targets) or (samples,)."""
        if self.penalty not in ("lasso", None):
            raise InputError(f"penalty must be 'lasso' or None, got {self.penalty!r}")
        X, y = validate_data(self, X, y, multi_output=True, y_numeric=True, dtype=np.float64)
        if self.penalty is None:
            model = LinearRegression().fit(X, y)
            self.n_iter_ = np.ones(1 if y.ndim == 1 else y.shape[1], np.int64)
            self.converged_ = np.ones_like(self.n_iter_, bool)
        else:
            with (
                warnings.catch_warnings()
            ):  # scikit-learn warns without saying which target; we name them below
                warnings.simplefilter("ignore", ConvergenceWarning)
                model = Lasso(alpha=self.alpha, max_iter=self.max_iter, tol=self.tol).fit(X, y)
            self.n_iter_ = np.atleast_1d(np.asarray(model.n_iter_))
            # The reported dual gap is divided by the samples; tol times the target's variance bounds it.
            gap = np.atleast_1d(np.asarray(model.dual_gap_))
            bound = self.tol * np.atleast_1d(y.var(axis=0))
            self.converged_ = (gap <= bound) | (self.n_iter_ < self.max_iter)
            if not self.converged_.all():
                missed = np.flatnonzero(~self.converged_)
                warnings.warn(
                    f"{len(missed)} of {len(self.converged_)} targets have not converged in "
                    f"{self.max_iter} sweeps: {', '.join(map(str, missed))}; raise max_iter or alpha",
                    ConvergenceWarning,
                    stacklevel=2,
                )
        self.coef_ = model.coef_
        self.intercept_ = model.intercept_
        return self

    def predict(self, X: Any) -> Array:
        """Changes of the states `X` (samples, features)."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return np.asarray(X @ self.coef_.T + self.intercept_)


@dataclass(frozen=True)
class ODEFit:
    """A fitted linear ODE and how well it describes the data.

    Attributes
    ----------
    kind : {"increment", "generator"}
        What A and b are.
    A : ndarray, shape (K, K)
    b : ndarray, shape (K,)
    regressor : LinearODERegressor
        The fitted estimator, with `converged_` and `n_iter_`.
    r2_in_sample : float
        R² of the changes it was fitted to, averaged over targets: the paper's figure, and a flattering one.
    r2_rollout : float
        R² of the trajectories predicted from their first frames alone, averaged over components.
    transitions : int
        Number of pairs of consecutive frames fitted.
    """

    kind: str
    A: Array
    b: Array
    regressor: LinearODERegressor
    r2_in_sample: float
    r2_rollout: float
    transitions: int

    def predict(self, x0: Any, times: Any) -> Array:
        """Trajectory (len(times), K) from `x0` (K,); times count from `x0`, in steps for an increment map."""
        return _predict(self.kind, self.A, self.b, x0, times)

    def score(self, signals: Any, times: Any = None) -> dict[str, float]:
        """Score other data, such as later frames or another run: R² of its changes and of its rollouts.

        Parameters
        ----------
        signals, times
            As in `fit_trajectories`.

        Returns
        -------
        dict
            ``{"derivative": R², "rollout": R²}``; negative where a constant would predict better.
        """
        pieces = _trajectories(signals, times)
        states, changes = _transitions(pieces, self.kind)
        return {
            "derivative": _r2(changes, states @ self.A.T + self.b),
            "rollout": _rollout_r2(self.kind, self.A, self.b, pieces),
        }


def fit_trajectories(
    signals: Any,
    times: Any = None,
    *,
    kind: str = "increment",
    penalty: str | None = "lasso",
    alpha: float = 0.01,
    max_iter: int = 100_000,
    tol: float = 1e-4,
) -> ODEFit:
    """Fit one linear ODE to many trajectories, never across a join.

    Parameters
    ----------
    signals : array_like, shape (frames, K) or (runs, frames, K), or a sequence of arrays (frames_i, K)
        Trajectories of the K components, such as Fourier signals.
    times : array_like, shape (frames,), or a sequence of them, one a trajectory, optional
        Increasing; 0, 1, 2, … by default.
    kind : {"increment", "generator"}, default "increment"
        "increment" fits `x_{n+1} - x_n = A x_n + b` as the paper does, and needs frames one step apart
        (any equal spacing, which becomes the unit). "generator" fits `dx/dt = A x + b` from difference
        quotients at the midpoints, for uneven times too; its error is of second order in the spacing.
    penalty, alpha, max_iter, tol
        As in `LinearODERegressor`.

    Returns
    -------
    ODEFit

    Raises
    ------
    InputError
        If shapes do not agree, values are not finite, times do not increase, a trajectory has fewer than two
        frames, or an increment map is asked for from uneven times.

    References
    ----------
    Ding et al. 2024, Eq. 3; their recipe is steps 0-1000, ``penalty="lasso", alpha=0.01``, or
    ``penalty=None``.
    """
    choice("kind", kind, ("increment", "generator"))
    alpha = number("alpha", alpha, 0.0)
    max_iter = whole_number("max_iter", max_iter, 1)
    tol = number("tol", tol, above=0.0)
    pieces = _trajectories(signals, times)
    states, changes = _transitions(pieces, kind)
    regressor = LinearODERegressor(penalty, alpha, max_iter=max_iter, tol=tol).fit(states, changes)
    A, b = np.atleast_2d(regressor.coef_), np.atleast_1d(regressor.intercept_)
    in_sample = _r2(changes, states @ A.T + b)
    return ODEFit(kind, A, b, regressor, in_sample, _rollout_r2(kind, A, b, pieces), len(states))


def affine_solution(A: Any, b: Any, x0: Any, times: Any) -> Array:
    """Solve `dx/dt = A x + b` exactly, for any A, singular ones included.

    Parameters
    ----------
    A : array_like, shape (K, K)
    b : array_like, shape (K,)
    x0 : array_like, shape (K,)
        State at time 0.
    times : array_like, shape (n,)

    Returns
    -------
    ndarray of float64, shape (n, K)
        From the exponential of the augmented matrix ``[[A, b], [0, 0]]``, where the paper's Eq. 4 adds
        1e-8 I to invert A.

    Raises
    ------
    InputError
        If shapes do not agree or values are not finite.
    """
    A, b, x0 = _affine(A, b, x0)
    return AffineFlow(A, b).solve(x0, finite_array("times", times).reshape(-1))


def affine_rollout(A: Any, b: Any, x0: Any, steps: int) -> Array:
    """Iterate the increment map `x_{n+1} = x_n + A x_n + b`.

    Parameters
    ----------
    A : array_like, shape (K, K)
    b : array_like, shape (K,)
    x0 : array_like, shape (K,)
    steps : int
        At least 0.

    Returns
    -------
    ndarray of float64, shape (steps + 1, K)
        The first row is `x0`. Values may overflow to infinity if the map is unstable.

    Raises
    ------
    InputError
        If shapes do not agree or values are not finite.
    """
    A, b, x0 = _affine(A, b, x0)
    steps = whole_number("steps", steps, 0)
    states = np.empty((steps + 1, len(b)))
    states[0] = x0
    with np.errstate(over="ignore", invalid="ignore"):
        for n in range(steps):
            states[n + 1] = states[n] + A @ states[n] + b
    return states


def _affine(A: Any, b: Any, x0: Any) -> tuple[Array, Array, Array]:
    A, b, x0 = finite_array("A", A), finite_array("b", b), finite_array("x0", x0)
    if A.ndim != 2 or A.shape[0] != A.shape[1] or b.shape != A.shape[:1] or x0.shape != A.shape[:1]:
        raise InputError(
            f"A, b and x0 must have the shapes (K, K), (K,) and (K,), got {A.shape}, {b.shape} and {x0.shape}"
        )
    return A, b, x0


Pieces = list[tuple[Array, Array]]


def _trajectories(signals: Any, times: Any) -> Pieces:
    """Return [(times (n,), states (n, K))], checked."""
    if isinstance(signals, Sequence) and not np.isscalar(signals[0]) and np.ndim(signals[0]) == 2:
        arrays = [finite_array(f"signals[{k}]", piece) for k, piece in enumerate(signals)]
    else:
        array = finite_array("signals", signals)
        if array.ndim not in (2, 3):
            raise InputError(
                f"signals must have the shape (frames, K) or (runs, frames, K), got {array.shape}"
            )
        arrays = list(array if array.ndim == 3 else array[None])
    if len({piece.shape[1] for piece in arrays}) != 1:
        raise InputError(
            f"signals must agree in the number of components, got {[p.shape[1] for p in arrays]}"
        )
    if times is None:
        clocks: list[Any] = [np.arange(len(piece)) for piece in arrays]
    elif np.ndim(times[0]) == 0:
        clocks = [times] * len(arrays)
    else:
        clocks = list(times)
    if len(clocks) != len(arrays):
        raise InputError(
            f"times must be given once or for each of {len(arrays)} trajectories, got {len(clocks)}"
        )
    pieces = []
    for k, (clock, piece) in enumerate(zip(clocks, arrays, strict=True)):
        t = finite_array("times", clock)
        if t.shape != (len(piece),):
            raise InputError(
                f"times of trajectory {k} must have {len(piece)} entries, got the shape {t.shape}"
            )
        if len(piece) < 2:
            raise InputError(f"trajectory {k} must have at least 2 frames, got {len(piece)}")
        if np.any(np.diff(t) <= 0):
            at = int(np.argmax(np.diff(t) <= 0))
            raise InputError(
                f"times of trajectory {k} must increase, got {t[at]:g} followed by {t[at + 1]:g}"
            )
        pieces.append((t, piece))
    return pieces


def _transitions(pieces: Pieces, kind: str) -> tuple[Array, Array]:
    """States and their changes, taken within each trajectory."""
    states, changes = [], []
    for t, x in pieces:
        spacing = np.diff(t)
        if kind == "increment":
            if np.ptp(spacing) > 1e-9 * spacing.max():
                raise InputError(
                    "an increment map needs frames that are equally far apart, got spacings from "
                    f'{spacing.min():g} to {spacing.max():g}; choose other steps or kind="generator"'
                )
            states.append(x[:-1])
            changes.append(np.diff(x, axis=0))
        else:
            states.append((x[:-1] + x[1:]) / 2)
            changes.append(np.diff(x, axis=0) / spacing[:, None])
    if kind == "increment":
        units = {float(f"{(t[1] - t[0]):.9g}") for t, _ in pieces}
        if len(units) > 1:
            raise InputError(f"an increment map needs one spacing for all trajectories, got {sorted(units)}")
    return np.concatenate(states), np.concatenate(changes)


def _predict(kind: str, A: Array, b: Array, x0: Any, times: Any) -> Array:
    if kind == "generator":
        return affine_solution(A, b, x0, times)
    steps = finite_array("times", times)
    whole = np.rint(steps).astype(np.int64)
    if np.any(whole != steps) or np.any(whole < 0):
        raise InputError("times of an increment map must be whole numbers of steps of at least 0")
    return affine_rollout(A, b, x0, int(whole.max(initial=0)))[whole]


def _rollout_r2(kind: str, A: Array, b: Array, pieces: Pieces) -> float:
    """R² over all trajectories, each predicted from its first frame; -inf where a prediction overflows."""
    truth, predicted = [], []
    for t, x in pieces:
        elapsed = t - t[0] if kind == "generator" else np.arange(len(t), dtype=np.float64)
        truth.append(x[1:])
        predicted.append(_predict(kind, A, b, x[0], elapsed)[1:])
    return _r2(np.concatenate(truth), np.concatenate(predicted))


def _r2(truth: Array, predicted: Array) -> float:
    if len(truth) < 2:
        return float("nan")
    with np.errstate(over="ignore"):
        if not np.isfinite(predicted).all() or not np.isfinite(predicted**2).all():
            return float("-inf")
    return float(r2_score(truth, predicted))
