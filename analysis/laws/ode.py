"""Linear ODEs fitted to trajectories (Ding et al. §4.2), one at a time or hundreds at once.

The **increment map** is `x_{n+1} = x_n + A x_n + b`, which the paper fits to the states x_n at consecutive
steps. The **generator** is `dx/dt = A x + b`. `analysis.laws.flow` converts one into the other.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from analysis.circles.survival import circles_of
from analysis.laws import scores
from analysis.laws.flow import affine_rollout, affine_solution, to_generator, to_increment
from analysis.laws.lasso import Moments, solve
from analysis.laws.regressors import FitWarning, LinearODERegressor, MeanFieldRegressor, lotka_volterra
from analysis.stats.intervals import CONFIDENCE
from physics.checks import InputError, choice, distinct, number, whole_number
from physics.trajectory import Trajectory
from physics.values import Array, Shown

PUBLISHED: dict[str, dict[str, Any]] = {
    "lasso": {"kind": "increment", "penalty": "lasso", "alpha": 0.01},
    "least-squares": {"kind": "increment", "penalty": None},
}
"""The paper's recipes, on the signals (norms) of steps 0-1000: ``fit_trajectories(x, **PUBLISHED["lasso"])``.
The published code stops Lasso after 1000 sweeps, even if it has not converged; here the limit is 100 000."""


@dataclass(frozen=True)
class ODEFit(scores.Law):
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
        return (np.flatnonzero(~self.converged) + 1).tolist()

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
            got = distinct(step, self.unit, self.unit * round(times))
            raise InputError(f"step must be a whole multiple of the map's step, {self.unit}, got {got}")
        power = np.eye(self.components + 1)
        power[:-1, :-1] += self.A
        power[:-1, -1] = self.b
        power = np.linalg.matrix_power(power, round(times))
        return power[:-1, :-1] - np.eye(self.components), power[:-1, -1]

    def _iterate(self, state: Array, clock: Array, bound: float) -> Array:
        whole = scores.whole_steps(clock)
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
    alpha: float = 0.01,
    **options: Any,
) -> ODEFit:
    """Fit one linear ODE to many trajectories, without mixing the end of one with the start of the next.

    Parameters
    ----------
    signals : Trajectory, signals or array_like of shape (frames, K) or (runs, frames, K)
        Trajectories of K components, such as the Fourier signals of a trajectory; or a sequence of these,
        with arrays (frames_i, K).
    times : array_like, shape (frames,), or a sequence with one for each run, optional
        Increasing times of the frames. By default the recorded steps, and 0, 1, 2, … for arrays.
    kind : {"increment", "generator"}, default "increment"
        "increment" fits `x_{n+1} - x_n = A x_n + b` as the paper does, and needs equally spaced frames, whose
        spacing becomes the unit of time. "generator" fits `dx/dt = A x + b` to difference quotients at the
        midpoints, also for uneven times. Its error is of second order in the spacing, and noise biases it.
    penalty : {"lasso", "elastic-net", None}, default "lasso"
        Penalty: the Lasso of the paper, the elastic net, or none (ordinary least squares).
    alpha : float, default 0.01
        Weight of the penalty, at least 0. At 0 the fit is by least squares.
    **options
        Other parameters of `LinearODERegressor`: l1_ratio, max_iter and tol.

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
    regressor = LinearODERegressor(penalty, alpha, **options)
    alpha = regressor.check()
    pieces = scores.as_pieces(signals, times)
    states, changes = scores.pooled(pieces, kind)
    _say_what_is_poor(states, None if alpha == 0 else penalty)
    regressor.fit(states, changes)
    A, b = regressor.coef_, np.atleast_1d(regressor.intercept_)
    if regressor.alpha_.any() and not A.any() and changes.var(axis=0).any():
        largest = np.abs(Moments.of([(states, changes)]).cross).max() / regressor.l1_share
        said = f"alpha = {regressor.alpha_[0]:g} leaves no coefficient; coefficients appear below"
        warnings.warn(f"{said} {largest:.3g}", FitWarning, stacklevel=2)
    step = scores.unit(pieces) if kind == "increment" else 1.0
    r2 = scores.r_squared(changes, states @ A.T + b)
    law = ODEFit(kind, A, b, step, regressor.alpha_, regressor.converged_, r2, np.nan, len(states))
    return replace(law, r2_rollout=law._score(pieces).rollout)


def _say_what_is_poor(states: Array, penalty: str | None) -> None:
    """Warn of data that do not determine a law, or refuse least squares on them."""
    unknowns = states.shape[1] + 1
    if len(states) < unknowns:
        got = f"{len(states)} changes for {unknowns} unknowns of each target"
        if penalty is None:
            raise InputError(f"signals must hold at least as many changes as unknowns, got {got}; add frames")
        said = f"{got}: only the penalty chooses among the laws that fit"
        warnings.warn(said, FitWarning, stacklevel=3)
    constant = np.flatnonzero(np.ptp(states, axis=0) == 0)
    if len(constant):
        said = (
            f"components {', '.join(map(str, constant + 1))} (from 1) do not vary: their columns of A are 0"
        )
        warnings.warn(said, FitWarning, stacklevel=3)


@dataclass(frozen=True)
class Resampled(Shown):
    """Coefficients of a linear ODE over resamples of its data, which `resample_coefficients` returns.

    The law ``A x + b`` of K components has a matrix A of coefficients and a vector b of constants.

    Attributes
    ----------
    A_low, A_high : ndarray of float64, shape (K, K)
        Bounds of the 95 % percentile interval of every coefficient.
    b_low, b_high : ndarray of float64, shape (K,)
        Bounds of the 95 % percentile interval of every constant.
    inclusion : ndarray of float64, shape (K, K)
        Fraction of the resamples in which the coefficient is not 0.
    resamples : int
        Number of resamples.
    unit : str
        What was drawn: "trajectories", or blocks of successive changes, such as "blocks of 10 changes".

    Examples
    --------
    >>> import analysis, numpy as np
    >>> x = np.random.default_rng(0).normal(size=(100, 2)).cumsum(axis=0)
    >>> found = analysis.laws.resample_coefficients(x, penalty=None, resamples=50)
    >>> bool((found.A_low <= found.A_high).all()), found.inclusion.tolist()
    (True, [[1.0, 1.0], [1.0, 1.0]])
    """

    A_low: Array
    A_high: Array
    b_low: Array
    b_high: Array
    inclusion: Array
    resamples: int
    unit: str


def resample_coefficients(
    signals: Any,
    times: Any = None,
    *,
    kind: str = "increment",
    penalty: str | None = "lasso",
    alpha: float = 0.01,
    l1_ratio: float = 0.5,
    resamples: int = 200,
    block: int | None = None,
    seed: int = 0,
) -> Resampled:
    """Fit a linear ODE to many resamples of its data, to see how certain its coefficients are.

    Consecutive changes are correlated. Several trajectories are therefore drawn as a whole, and from a single
    one blocks of successive changes are drawn, which may overlap.

    Parameters
    ----------
    signals : Trajectory, signals or array_like of shape (frames, K) or (runs, frames, K)
        Trajectories of K components, such as the Fourier signals of a trajectory; or a sequence of these,
        with arrays (frames_i, K).
    times : array_like, shape (frames,), or a sequence with one for each run, optional
        Increasing times of the frames. By default the recorded steps, and 0, 1, 2, … for arrays.
    kind : {"increment", "generator"}, default "increment"
        Whether to fit the change per step, or the rate of change; see `fit_trajectories`.
    penalty : {"lasso", "elastic-net", None}, default "lasso"
        Penalty; None for least squares.
    alpha : float, default 0.01
        Weight of the penalty, at least 0; 0 is least squares.
    l1_ratio : float, default 0.5
        Fraction of the L1 norm in the elastic net, greater than 0 and at most 1; the Lasso does not use it.
    resamples : int, default 200
        Number of resamples, at least 2.
    block : int, optional
        Number of changes in a block of a single trajectory, at least 1; by default the rounded square root of
        the number of all changes. It should exceed the correlation time of the signals; otherwise the
        intervals are too narrow.
    seed : int, default 0
        Seed of the resamples.

    Returns
    -------
    Resampled
        Intervals of all coefficients.

    Raises
    ------
    InputError
        If the trajectories are invalid (see `fit_trajectories`), a parameter is out of its range, or `block`
        is given for several trajectories or exceeds the number of changes.

    Examples
    --------
    >>> import analysis, numpy as np
    >>> x = np.random.default_rng(0).normal(size=(100, 2)).cumsum(axis=0)
    >>> found = analysis.laws.resample_coefficients(x, resamples=50)
    >>> found.unit, found.A_low.shape
    ('blocks of 10 changes', (2, 2))
    """
    resamples = whole_number("resamples", resamples, 2)
    alpha = number("alpha", alpha, 0.0)
    LinearODERegressor(penalty, alpha, l1_ratio=l1_ratio).check()
    pairs = scores.differences(scores.as_pieces(signals, times), kind)
    generator = np.random.default_rng(seed)
    if len(pairs) > 1:
        if block is not None:
            raise InputError(f"block must be left out for {len(pairs)} trajectories, got {block!r}")
        unit, parts, drawn = "trajectories", pairs, len(pairs)
    else:
        states, changes = pairs[0]
        block = round(len(states) ** 0.5) if block is None else block
        block = whole_number("block", block, 1, len(states))
        starts = range(len(states) - block + 1)
        parts = [(states[k : k + block], changes[k : k + block]) for k in starts]
        unit, drawn = f"blocks of {block} changes", -(-len(states) // block)
    counts = generator.multinomial(drawn, np.full(len(parts), 1 / len(parts)), size=resamples)
    moments = Moments.of(parts).pooled(counts * np.array([len(x) for x, _ in parts], float))
    if penalty is None or alpha == 0:
        # In units in which all components vary alike, none looks constant beside another.
        spread = np.sqrt(np.einsum("rkk->rk", moments.gram)).max(axis=0)
        units = np.ldexp(1.0, np.where(spread > 0, np.frexp(spread)[1], 0))
        inverse = np.linalg.pinv(moments.gram / units / units[:, None], rcond=1e-14, hermitian=True)
        A = np.einsum("rkl,rtl->rtk", inverse, moments.cross / units) / units
        b = moments.target_mean - np.einsum("rtk,rk->rt", A, moments.feature_mean)
    else:
        solution = solve(moments, np.array([[alpha]]), l1_ratio=1.0 if penalty == "lasso" else l1_ratio)
        A, b = solution.coef[:, :, 0], solution.intercept[:, :, 0]
    tail = (1 - CONFIDENCE) / 2
    (A_low, A_high), (b_low, b_high) = (np.quantile(x, [tail, 1 - tail], axis=0) for x in (A, b))
    return Resampled(A_low, A_high, b_low, b_high, np.mean(A != 0, axis=0), resamples, unit)


LAWS = ("linear", "mean-field", "lotka-volterra")


@dataclass(frozen=True)
class Recipe:
    """Which law to fit to signals, and how to fit it; see `fit_batch`.

    Parameters
    ----------
    law : {"linear", "mean-field", "lotka-volterra"}, default "linear"
        Law: the linear ODE of Ding et al., `MeanFieldRegressor`, or `lotka_volterra`.
    penalty : {"lasso", "elastic-net", None}, default "lasso"
        Penalty of the linear law and of Lotka-Volterra; None for least squares. The mean-field law has no
        penalty, so it uses neither this nor the next three parameters.
    alpha : float, default 0.01
        Weight of the penalty, at least 0.
    l1_ratio : float, default 0.5
        Fraction of the L1 norm in the elastic net, greater than 0 and at most 1.
    max_iter : int, default 100_000
        Largest number of sweeps of coordinate descent for each component, at least 1.
    kind : {"increment", "generator"}, default "increment"
        Whether the law f gives the change per step, `x_{n+1} - x_n = f(x_n)`, or the rate of change,
        `dx/dt = f(x)`.

    Raises
    ------
    InputError
        If a value that the law uses is not allowed.

    Examples
    --------
    >>> import analysis
    >>> analysis.Recipe(law="lotka-volterra", penalty=None).label
    'Lotka-Volterra, least squares'
    """

    law: str = "linear"
    penalty: str | None = "lasso"
    alpha: float = 0.01
    l1_ratio: float = 0.5
    max_iter: int = 100_000
    kind: str = "increment"

    def __post_init__(self) -> None:
        choice("law", self.law, LAWS)
        choice("kind", self.kind, scores.KINDS)
        if self.law != "mean-field":
            LinearODERegressor(**self._options).check()

    @property
    def _options(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("penalty", "alpha", "l1_ratio", "max_iter")}

    @property
    def label(self) -> str:
        """Short description of the fit for tables and titles, such as "Lasso, α = 0.01"."""
        if self.law == "mean-field":
            return "mean field, nine terms"
        how = "least squares" if self.penalty is None else f"{self.penalty}, α = {self.alpha}"
        how = how.replace("lasso", "Lasso")
        return how if self.law == "linear" else f"Lotka-Volterra, {how}"

    def fit(self, signals: Any, times: Any = None) -> scores.Law:
        """Fit the law to trajectories.

        Parameters
        ----------
        signals, times : array_like of float
            Signals (runs, frames, K) of K frequencies and their times (frames,), by default 0, 1, 2, …; see
            `fit_trajectories` for all accepted forms.

        Returns
        -------
        Law
            Fitted law: an `ODEFit` if it is linear, and otherwise a `RegressorLaw`.

        Raises
        ------
        InputError
            If the trajectories or the penalty are invalid; see `fit_trajectories`.

        Examples
        --------
        >>> import analysis
        >>> recipe = analysis.Recipe(penalty=None)
        >>> recipe.fit(analysis.laws.affine_rollout([[-0.5]], [1.0], [0.0], 20)).A.round(6).tolist()
        [[-0.5]]
        """
        if self.law == "mean-field":
            return scores.fit_law(MeanFieldRegressor(), signals, times, kind=self.kind)
        if self.law == "lotka-volterra":
            return scores.fit_law(lotka_volterra(**self._options), signals, times, kind=self.kind)
        return fit_trajectories(signals, times, kind=self.kind, **self._options)

    def check_resamples(self, resamples: int) -> None:
        """Refuse laws whose coefficients cannot be resampled, before anything is fitted.

        Parameters
        ----------
        resamples : int
            Number of resamples that was asked for, which the message repeats.

        Raises
        ------
        InputError
            If the law is not linear.
        """
        if self.law != "linear":
            raise InputError(f"resamples must be 0 for the {self.law} law, got {resamples}")

    def resample(self, batch: Any, resamples: int = 200, *, seed: int = 0, **window: Any) -> Resampled:
        """Return intervals of the coefficients of a linear law by `resample_coefficients`.

        Parameters
        ----------
        batch : Trajectory, signals, or sequence of these
            Runs that were fitted, as in `fit_batch`.
        resamples : int, default 200
            Number of resamples, at least 2.
        seed : int, default 0
            Seed of the resamples.
        **window
            Steps `first` (default 0) and `last` (default 1000) of the fit, as in `fit_batch`. They do not
            apply to signals.

        Returns
        -------
        Resampled
            Intervals of all coefficients.

        Raises
        ------
        InputError
            If the law is not linear, or the batch or another argument is invalid.

        Examples
        --------
        >>> import analysis, physics
        >>> analysis.Recipe().resample(physics.example("ding"), resamples=20, last=200).unit
        'blocks of 14 changes'
        """
        self.check_resamples(resamples)
        runs = batch_signals(batch, **window)
        return resample_coefficients(
            runs, kind=self.kind, penalty=self.penalty,
            alpha=self.alpha, l1_ratio=self.l1_ratio, resamples=resamples, seed=seed,
        )  # fmt: skip


def fit_batch(
    batch: Any, recipe: Recipe | None = None, *, first: int = 0, last: int | None = 1000, split: float = 0.5
) -> scores.HonestScores:
    """Fit one law to all runs of a batch, and score it on these data, on later frames, and on unseen runs.

    Parameters
    ----------
    batch : Trajectory, signals, or sequence of these
        Runs to fit, or their signals as `fourier_signals` returns them. All are assumed to obey the same law.
    recipe : Recipe, optional
        Law and fit; by default the Lasso of Ding et al., `Recipe()`.
    first : int, default 0
        First step to fit, if trajectories are given.
    last : int, default 1000
        Last step to fit, if trajectories are given; None for the last step of each.
    split : float, default 0.5
        Fraction of the frames of each run that the forward fit sees, greater than 0 and less than 1.

    Returns
    -------
    HonestScores
        Scores and the law. `Law.missed` lists the components whose fits have not converged, in place of a
        `ConvergenceWarning`.

    Raises
    ------
    InputError
        If the batch is empty, a signal is not finite, the runs differ in the number of frequencies, or the
        signals cannot be fitted (see `fit_trajectories`).

    Examples
    --------
    >>> import analysis, physics
    >>> scores = analysis.fit_batch(physics.example("ding"), analysis.Recipe(penalty="lasso", alpha=0.01))
    >>> round(scores.in_sample.derivative, 3), scores.forward.rollout < 0
    (0.764, True)
    """
    runs = batch_signals(batch, first=first, last=last)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return scores.honest_scores((recipe or Recipe()).fit, runs, split=split)


def batch_signals(batch: Any, *, first: int = 0, last: int | None = 1000) -> list[Any]:
    """Return the signals of each part of a batch, as laws take them; the arguments are as in `fit_batch`."""
    parts = list(batch) if isinstance(batch, Sequence) else [batch]
    return [circles_of(x, first, last).signals if isinstance(x, Trajectory) else x for x in parts]
