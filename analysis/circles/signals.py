"""The circles of a trajectory: the signals of its runs in a window of steps, and the circles that survive."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.circles.classes import require_cyclic, sound_runs
from analysis.circles.fourier import fourier_signals, signals_and_final
from analysis.circles.survival import StoppingRule, survives
from physics.checks import increasing_array, number, whole_number
from physics.errors import InputError
from physics.trajectory import Trajectory

Array = NDArray[np.float64]
OBSERVABLE = "fourier_signals"
"""Name of the observable that holds signals, often at more steps than the embeddings."""


@dataclass(frozen=True, eq=False)
class Signals:
    """Fourier signals of one run in a window of steps, which `signals_of` returns.

    An embedding of p tokens has one signal for each frequency k = 1 … K with K = ⌊p/2⌋: the norm of its
    discrete Fourier coefficient, which is large if the tokens lie on a circle with k turns (Ding et al. §3).

    Attributes
    ----------
    steps : ndarray of int64, shape (frames,)
        Step of each frame of the window.
    values : ndarray of float64, shape (frames, K)
        Signals of the frequencies k = 1 … K.
    survivors : list of int
        Frequencies that survive in the last frame of the whole run.
    run : int, default 0
        Number of the run in its trajectory, counted from 0.

    Examples
    --------
    >>> import analysis, physics
    >>> run = analysis.signals_of(physics.example("ding"))[0]
    >>> run.values[-1].argmax() + 1 in run.survivors, run.survivors
    (True, [7, 8, 11, 13, 25])
    """

    steps: NDArray[np.int64]
    values: Array
    survivors: list[int]
    run: int = 0


@dataclass(frozen=True, eq=False)
class Circles:
    """Fourier signals of an ensemble over time, and which circles survive; `circles_of` returns them.

    An embedding of p tokens has one signal for each frequency k = 1 … K with K = ⌊p/2⌋: the norm of its
    discrete Fourier coefficient, which is large if the tokens lie on a circle with k turns (Ding et al. §3).

    Attributes
    ----------
    steps : ndarray of int64, shape (frames,)
        Step of each frame of the window.
    signals : ndarray of float64, shape (runs, frames, K)
        Signals of the frequencies k = 1 … K.
    survived : ndarray of bool, shape (runs, K)
        Which circles survive in the last frame of the whole run.
    numbers : ndarray of int64, shape (runs,), optional
        Number of each run in its trajectory, counted from 0; by default 0, 1, 2, ….

    Examples
    --------
    >>> import analysis, physics
    >>> circles = analysis.circles_of(physics.example("ding"), 0, 1000)
    >>> circles.signals.shape, circles.counts.tolist()
    ((1, 1001, 29), [5])
    """

    steps: NDArray[np.int64]
    signals: Array
    survived: NDArray[np.bool_]
    numbers: NDArray[np.int64] = None  # type: ignore[assignment]  # until __post_init__ sets the default

    def __post_init__(self) -> None:
        increasing_array("steps", self.steps)
        numbers: Any = self.numbers
        if numbers is None:
            object.__setattr__(self, "numbers", np.arange(len(self.signals)))

    @property
    def initial(self) -> Array:
        """Signals of all K frequencies in the first frame of the window, float64 (runs, K)."""
        return self.signals[:, 0]

    @property
    def final(self) -> Array:
        """Signals of all K frequencies in the last frame of the window, float64 (runs, K)."""
        return self.signals[:, -1]

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of circles that survive in each run, int64 (runs,)."""
        return self.survived.sum(axis=1)

    def gradient(self, at: int = 4) -> Array:
        """Return the change of the signals per step, from the frame before a step to the frame at this step.

        Early in training it is the initial gradient, from which Ding et al. predict which circles survive.

        Parameters
        ----------
        at : int, default 4
            Step at which the interval ends, at least 1. If the window has no frame at this step, the next
            frame is used; if that is the first frame of the window, the second frame is used.

        Returns
        -------
        ndarray of float64, shape (runs, K)
            Change per step of the signal of each frequency k = 1 … K, with K = ⌊p/2⌋ for p tokens.

        Raises
        ------
        InputError
            If `at` is less than 1 or beyond the last step of the window.

        Examples
        --------
        >>> import analysis, physics
        >>> circles = analysis.circles_of(physics.example("ding"), 0, 1000)
        >>> bool(circles.gradient(4)[circles.survived].mean() > circles.gradient(4).mean())
        True
        """
        if whole_number("at", at, 1) > self.steps[-1]:
            raise InputError(f"at must be at most the last step, {self.steps[-1]}, got {at}")
        place = max(int(np.searchsorted(self.steps, at)), 1)
        change = self.signals[:, place] - self.signals[:, place - 1]
        return np.asarray(change / (self.steps[place] - self.steps[place - 1]))

    def decided(self, rule: StoppingRule | None = None) -> Array:
        """Return the step at which a rule decides which circles survive, for each run.

        Parameters
        ----------
        rule : StoppingRule, optional
            Rule that decides; by default `StoppingRule()`.

        Returns
        -------
        ndarray of float64, shape (runs,)
            Steps of frames; NaN for a run that the rule does not decide within the window.

        Examples
        --------
        >>> import analysis, physics
        >>> circles = analysis.circles_of(physics.example("ding"), 0, 1000)
        >>> early, late = (circles.decided(analysis.circles.StoppingRule(hold=hold)) for hold in (100, 300))
        >>> (early < late).tolist()
        [True]
        """
        rule = rule or StoppingRule()
        first = [rule.first(self.steps, run) for run in self.signals]
        return np.array([np.nan if step is None else step for step in first], np.float64)


def circles_of(
    trajectory: Trajectory,
    first: int = 0,
    last: int | None = None,
    *,
    factor: float = 2.0,
    threshold: float | None = None,
) -> Circles:
    """Return the Fourier signals of every run of a trajectory between two steps, and which circles survive.

    Parameters
    ----------
    trajectory : Trajectory
        Trajectory of embeddings. If it has the observable `fourier_signals`, which may be recorded more often
        than the embeddings, this is used. Otherwise the signals are computed from the embeddings.
    first : int, default 0
        First step of the window.
    last : int, optional
        Last step of the window, included; by default the last step of the trajectory.
    factor : float, default 2.0
        A circle survives if its final signal exceeds `factor` times the mean over all frequencies.
    threshold : float, optional
        Signal above which a circle survives; `factor` is then not used. See `survives`.

    Returns
    -------
    Circles
        Steps and signals in the window, and the circles that survive in the last frame of the trajectory.
        Runs that blew up, by the criterion of `structures`, and runs whose first or last frame is not finite
        are left out.

    Raises
    ------
    InputError
        If an end of the window is not a number, if it holds fewer than two frames, if an embedding from which
        signals are computed is not finite between its ends, if no run is left, or if the limit of survival is
        not greater than 0.

    Warns
    -----
    RuntimeWarning
        If runs blew up or are not finite, which it names.

    Examples
    --------
    >>> import analysis, physics
    >>> circles = analysis.circles_of(physics.example("ding"))
    >>> circles.counts, circles.initial.shape, circles.gradient(4).shape
    (array([5]), (1, 29), (1, 29))
    """
    require_cyclic(trajectory)
    sound = sound_runs(trajectory)
    if OBSERVABLE in trajectory.observables:
        steps, values = trajectory.clock(OBSERVABLE)[0], trajectory.observables[OBSERVABLE]
    else:
        steps, values = trajectory.steps, signals_and_final(trajectory, runs=sound)[0]
    since = number("first", first)
    window = (steps >= since) & (steps <= (steps[-1] if last is None else number("last", last)))
    if np.count_nonzero(window) < 2:
        got = f"{np.count_nonzero(window)} of {len(steps)} from step {steps[0]} to {steps[-1]}"
        raise InputError(f"first and last must enclose at least 2 frames, got {got}")
    final = survives(fourier_signals(trajectory.final[sound]), factor=factor, threshold=threshold)
    return Circles(steps[window], np.asarray(values[:, window], np.float64)[sound], final, sound)


def signals_of(
    trajectory: Trajectory, first: int = 0, last: int | None = None, **limits: Any
) -> list[Signals]:
    """Return the signals of each run of a trajectory separately, as `fit_batch` accepts them.

    Parameters
    ----------
    trajectory : Trajectory
        Trajectory of embeddings; see `circles_of`.
    first : int, default 0
        First step of the window.
    last : int, optional
        Last step of the window, included; by default the last step of the trajectory.
    **limits : float
        Rule of survival, `factor` or `threshold`, as in `survives`.

    Returns
    -------
    list of Signals
        Steps, signals and surviving frequencies of each run that did not blow up.

    Raises
    ------
    InputError
        As for `circles_of`.

    Examples
    --------
    >>> import analysis, physics
    >>> run = analysis.signals_of(physics.example("ding"), 0, 1000)[0]
    >>> run.values.shape, run.survivors
    ((1001, 29), [7, 8, 11, 13, 25])
    """
    circles = circles_of(trajectory, first, last, **limits)
    return [
        Signals(circles.steps, values, [int(k) + 1 for k in np.flatnonzero(alive)], int(run))
        for run, values, alive in zip(circles.numbers, circles.signals, circles.survived, strict=True)
    ]
