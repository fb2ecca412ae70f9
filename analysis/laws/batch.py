"""One law of motion for all runs of a batch, with its scores, as `grokphys fit-ode` computes it."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from analysis.circles.signals import Signals, signals_of
from analysis.laws.honest import HonestScores, honest_scores
from analysis.laws.lasso import ratio
from analysis.laws.nonlinear import MeanFieldRegressor, lotka_volterra
from analysis.laws.ode import fit_trajectories
from analysis.laws.regressors import CRITERIA
from analysis.laws.resampling import Resampled, resample_coefficients
from analysis.laws.scores import Law, fit_law
from physics.checks import choice, number, whole_number
from physics.errors import InputError
from physics.trajectory import Trajectory

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
    alpha : float or {"aic", "bic", "cv"}, default 0.01
        Weight of the penalty, at least 0, or the criterion that chooses it; see `LinearODERegressor`.
    l1_ratio : float, default 0.5
        Fraction of the L1 norm in the elastic net, greater than 0 and at most 1. With the mean-field law it
        may also be 0.
    max_iter : int, default 100_000
        Largest number of sweeps of coordinate descent for each component, at least 1.
    kind : {"increment", "generator"}, default "increment"
        Whether the law f gives the change per step, `x_{n+1} - x_n = f(x_n)`, or the rate of change,
        `dx/dt = f(x)`.

    Raises
    ------
    InputError
        If a value is not allowed. `penalty` is only checked when a law that uses it is fitted.

    Examples
    --------
    >>> import analysis
    >>> analysis.Recipe(law="lotka-volterra", penalty=None).label
    'Lotka-Volterra, least squares'
    """

    law: str = "linear"
    penalty: str | None = "lasso"
    alpha: float | str = 0.01
    l1_ratio: float = 0.5
    max_iter: int = 100_000
    kind: str = "increment"

    def __post_init__(self) -> None:
        choice("law", self.law, LAWS)
        choice("kind", self.kind, ("increment", "generator"))
        if isinstance(self.alpha, str):
            choice("alpha", self.alpha, CRITERIA)
        else:
            number("alpha", self.alpha, 0.0)
        if self.law != "mean-field":
            ratio(self.l1_ratio)
        else:
            number("l1_ratio", self.l1_ratio, 0.0, 1.0)
        whole_number("max_iter", self.max_iter, 1)

    @property
    def label(self) -> str:
        """Short description of the fit for tables and titles, such as "Lasso, α = 0.01"."""
        if self.law == "mean-field":
            return "mean field, nine terms"
        how = "least squares" if self.penalty is None else f"{self.penalty}, α = {self.alpha}"
        how = how.replace("lasso", "Lasso")
        return how if self.law == "linear" else f"Lotka-Volterra, {how}"

    def fit(self, signals: Any, times: Any = None) -> Law:
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
            return fit_law(MeanFieldRegressor(), signals, times, kind=self.kind)
        options: dict[str, Any] = {
            "penalty": self.penalty, "alpha": self.alpha, "l1_ratio": self.l1_ratio, "max_iter": self.max_iter
        }  # fmt: skip
        if self.law == "lotka-volterra":
            return fit_law(lotka_volterra(**options), signals, times, kind=self.kind)
        return fit_trajectories(signals, times, kind=self.kind, **options)

    def check_resamples(self, resamples: int) -> None:
        """Refuse laws whose coefficients cannot be resampled, before anything is fitted.

        Parameters
        ----------
        resamples : int
            Number of resamples that was asked for, which the message repeats.

        Raises
        ------
        InputError
            If the law is not linear, or alpha is not a number.
        """
        if self.law != "linear" or isinstance(self.alpha, str):
            raise InputError(
                f"resamples must be 0 unless the law is linear and alpha a number, got {resamples} with the "
                f"{self.law} law and alpha {self.alpha}"
            )

    def resample(self, batch: Any, resamples: int = 200, *, seed: int = 0, **window: Any) -> Resampled:
        """Return intervals of the coefficients of a linear law by `resample_coefficients`.

        Parameters
        ----------
        batch : Trajectory, Signals, or sequence of these
            Runs that were fitted.
        resamples : int, default 200
            Number of resamples, at least 2.
        seed : int, default 0
            Seed of the resamples.
        **window
            Steps `first` (default 0) and `last` (default 1000) of the fit, as in `fit_batch`. They do not
            apply to `Signals`.

        Returns
        -------
        Resampled
            Intervals of all coefficients.

        Raises
        ------
        InputError
            If the law is not linear, alpha is not a number, or the batch or another argument is invalid.

        Examples
        --------
        >>> import analysis, physics
        >>> analysis.Recipe().resample(physics.example("ding"), resamples=20, last=200).unit
        'blocks of 14 changes'
        """
        self.check_resamples(resamples)
        runs = batch_signals(batch, **window)
        return resample_coefficients(
            [run.values for run in runs], [run.steps for run in runs], kind=self.kind, penalty=self.penalty,
            alpha=float(self.alpha), l1_ratio=self.l1_ratio, resamples=resamples, seed=seed,
        )  # fmt: skip


def fit_batch(
    batch: Any,
    recipe: Recipe | None = None,
    *,
    first: int = 0,
    last: int | None = 1000,
    split: float = 0.5,
) -> HonestScores:
    """Fit one law to all runs of a batch, and score it on these data, on later frames, and on unseen runs.

    Parameters
    ----------
    batch : Trajectory, Signals, or sequence of these
        Runs to fit. All are assumed to obey the same law.
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
        return honest_scores(
            (recipe or Recipe()).fit, [run.values for run in runs], [run.steps for run in runs], split=split
        )


def batch_signals(batch: Any, *, first: int = 0, last: int | None = 1000) -> list[Signals]:
    """Return the signals of all runs of a batch, one `Signals` for each; the arguments are as in `fit_batch`.

    An `InputError` refuses an empty batch, an entry of another type, runs that differ in the number of
    frequencies, and signals that are not finite.
    """
    parts = list(batch) if isinstance(batch, Sequence) else [batch]
    if not parts:
        raise InputError("batch must hold at least one run, got none")
    runs: list[Signals] = []
    for part in parts:
        if isinstance(part, Trajectory):
            runs += signals_of(part, first, last)
        elif isinstance(part, Signals):
            runs.append(part)
        else:
            raise InputError(f"batch must hold trajectories or signals, got {type(part).__name__}")
    sizes = sorted({run.values.shape[1] for run in runs})
    if len(sizes) > 1:
        raise InputError(f"batch must agree in the number of frequencies, got {sizes}")
    if not all(np.isfinite(run.values).all() for run in runs):
        raise InputError("batch must hold finite signals, got NaN or infinite values")
    return runs
