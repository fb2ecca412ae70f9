"""Which circles survive, and when this is decided (Ding et al. 2024, Section 3).

By default a circle survives if its final signal exceeds twice the mean of all signals: `survives`. A
`StoppingRule` decides during a training which circles will survive.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.circles.classes import as_trajectory, require_cyclic, sound_runs
from analysis.circles.fourier import fourier_signals, frequency_norms, trajectory_signals
from physics.checks import increasing_array, number, one_embedding, real_array, truth_array, whole_number
from physics.errors import InputError
from physics.trajectory import Trajectory
from physics.values import Array, Integers, Mask

if TYPE_CHECKING:
    import xarray


def survives(signals: Any, *, factor: float = 2.0, threshold: float | None = None) -> Any:
    """Return which frequencies have survived the training (Ding et al. 2024, §3).

    Parameters
    ----------
    signals : xarray.DataArray, array_like of float, shape (..., K), or Trajectory
        Final signals of K frequencies: the norms of their Fourier coefficients.
    factor : float, default 2.0
        A circle survives if its signal exceeds `factor` times the mean over the K frequencies, which is the
        rule of the paper; greater than 0.
    threshold : float, optional
        Signal above which a circle survives, greater than 0; `factor` is then not used. The paper takes 10
        for its study of gradients.

    Returns
    -------
    xarray.DataArray or ndarray of bool, the shape of `signals`
        Whether each frequency survives, with the coordinates of labelled signals. A signal of NaN does not
        survive. By the rule of the mean, no other signal of the same embedding survives either.

    Raises
    ------
    InputError
        If `signals` is a single number, or the limit that is used is not a finite number greater than 0.

    Examples
    --------
    >>> import analysis
    >>> analysis.survives([0.1, 5.0, 0.2, 0.3]).tolist()
    [False, True, False, False]
    """
    signals = fourier_signals(signals) if isinstance(signals, Trajectory) else signals
    array = real_array("signals", signals)
    if not array.ndim:
        raise InputError(f"signals must have at least 1 axis, got the number {array}")
    if threshold is not None:
        alive = array > number("threshold", threshold, above=0.0)
    else:
        alive = array > number("factor", factor, above=0.0) * array.mean(axis=-1, keepdims=True)
    return signals.copy(data=alive) if hasattr(signals, "coords") else alive


def surviving_frequencies(E: Any, *, factor: float = 2.0, threshold: float | None = None) -> Integers:
    """Return the frequencies whose circles have survived in one embedding.

    Parameters
    ----------
    E : array_like, shape (p, d), or Trajectory of one run
        One finite final embedding of p tokens, at least 3, in d dimensions. For several, use `survives` on
        their signals.
    factor : float, default 2.0
        A circle survives if its signal exceeds `factor` times the mean signal; greater than 0.
    threshold : float, optional
        Signal above which a circle survives, greater than 0; `factor` is then not used.

    Returns
    -------
    ndarray of int64, shape (n,)
        Frequencies between 1 and ⌊p/2⌋, increasing; empty if none survives.

    Raises
    ------
    InputError
        If `E` is not a single finite embedding, or the limit that is used is not greater than 0.

    Examples
    --------
    >>> import analysis, physics
    >>> analysis.surviving_frequencies(physics.example("ding").final[0]).tolist()
    [7, 8, 11, 13, 25]
    """
    signals = frequency_norms(one_embedding("E", E))
    return 1 + np.flatnonzero(survives(signals, factor=factor, threshold=threshold))


def agreement(first: Any, second: Any) -> Any:
    """Return how far two sets of surviving frequencies agree: their Jaccard index.

    Parameters
    ----------
    first, second : array_like of bool, shape (..., frequencies)
        Which frequencies survive, in the same order in both. The other axes, such as one of runs, are
        broadcast against each other.

    Returns
    -------
    float or ndarray of float64, shape (...)
        Number of frequencies in both sets over the number in at least one, from 0 to 1; NaN where both are
        empty. It is a float for two sets.

    Raises
    ------
    InputError
        If a value is not boolean, the two do not list the same number of frequencies, or their other axes do
        not fit together.

    Examples
    --------
    >>> import analysis
    >>> analysis.circles.agreement([True, True, False], [True, False, False])
    0.5
    >>> analysis.circles.agreement([[True, True, False], [False, False, True]], [True, False, False])
    array([0.5, 0. ])
    """
    a, b = truth_array("first", first), truth_array("second", second)
    try:
        fits = a.ndim * b.ndim > 0 and a.shape[-1] == b.shape[-1] and np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        fits = False
    if not fits:
        raise InputError(f"second must list the same frequencies as first, got {b.shape} and {a.shape}")
    either = (a | b).sum(axis=-1)
    shared = np.divide((a & b).sum(axis=-1), either, out=np.full(either.shape, np.nan), where=either > 0)
    return shared if shared.ndim else float(shared)


@dataclass(frozen=True)
class StoppingRule:
    """A rule that decides when the survivors of a run are known, so that training may stop.

    A circle survives if its signal exceeds the limit, which is `factor` times the mean signal. A run is
    decided at a recorded step if two things hold at all records of the last `hold` steps. The set of
    survivors is the same and not empty; and each signal differs from the limit by more than the fraction
    `margin` of it. A callback of a training may call `decided` at each record.

    Parameters
    ----------
    factor : float, default 2.0
        A circle survives if its signal exceeds `factor` times the mean signal; greater than 0.
    margin : float, default 0.1
        Distance from the limit that each signal must exceed, as a fraction of it; at least 0 and less than 1.
    hold : int, default 200
        Number of steps for which both conditions must hold, at least 0.

    Raises
    ------
    InputError
        If a value is out of its range.

    Notes
    -----
    A decision may turn out wrong later. For eight networks with 59 tokens in 128 dimensions, trained for 6000
    steps, the default decides at step 1200 on average, and is right up to step 2000. By step 6000, four of
    the 232 circles have died nevertheless, one of them from a signal well above the limit.

    Examples
    --------
    >>> import analysis
    >>> rule = analysis.circles.StoppingRule(hold=20)
    >>> rule.first([0, 10, 20, 30], [[1, 1, 1]] + 3 * [[9, 1, 1]])
    30
    """

    factor: float = 2.0
    margin: float = 0.1
    hold: int = 200

    def __post_init__(self) -> None:
        number("factor", self.factor, above=0.0)
        number("margin", self.margin, 0.0, below=1.0)
        whole_number("hold", self.hold, 0)

    def decided(self, steps: Any, signals: Any) -> bool:
        """Return whether the survivors are decided at the last recorded step.

        Parameters
        ----------
        steps : array_like of int, shape (frames,)
            Recorded steps, increasing.
        signals : array_like, shape (frames, K)
            Signals of K frequencies at these steps: the norms of their Fourier coefficients.

        Returns
        -------
        bool
            Whether both conditions hold at every record of the last `hold` steps, and at the last record
            before them. It is False if the records span fewer than `hold` steps, or if there are none.

        Raises
        ------
        InputError
            If steps do not increase, or there is not one row of signals, which are real numbers, for each.

        Examples
        --------
        >>> import analysis
        >>> rule, signals = analysis.circles.StoppingRule(hold=20), [[1, 1, 1]] + 3 * [[9, 1, 1]]
        >>> rule.decided([0, 10, 20, 30], signals), rule.decided([0, 10, 20], signals[:3])
        (True, False)
        """
        clock, x = _records(steps, signals)
        if not clock.size or clock[-1] - clock[0] < self.hold:
            return False
        since = np.searchsorted(clock, clock[-1] - self.hold, side="right") - 1
        return bool(self._decided(clock[since:], x[since:])[-1])

    def first(self, steps: Any, signals: Any) -> int | None:
        """Return the first recorded step at which the survivors are decided.

        Parameters
        ----------
        steps : array_like of int, shape (frames,)
            Recorded steps, increasing.
        signals : array_like, shape (frames, K)
            Signals of K frequencies at these steps: the norms of their Fourier coefficients.

        Returns
        -------
        int or None
            First step at which `decided` would return True; None if there is none.

        Raises
        ------
        InputError
            If steps do not increase, or there is not one row of signals, which are real numbers, for each.

        Examples
        --------
        >>> import analysis
        >>> rule = analysis.circles.StoppingRule(hold=10)
        >>> rule.first([0, 10, 20], [[1, 1, 1], [9, 1, 1], [9, 1, 1]])
        20
        """
        clock, x = _records(steps, signals)
        decided = self._decided(clock, x)
        return int(clock[decided.argmax()]) if decided.any() else None

    def _decided(self, clock: Array, x: Array) -> Mask:
        """Return at which records the survivors are decided, from their steps and signals."""
        if not clock.size:
            return np.zeros(0, bool)
        limit = self.factor * x.mean(axis=-1, keepdims=True)
        alive = x > limit
        clear = (np.abs(x - limit) > self.margin * limit).all(axis=-1) & alive.any(axis=-1)
        changed = np.append(False, (alive[1:] != alive[:-1]).any(axis=-1))
        place = np.arange(len(clock))
        # The frame from which both conditions hold up to each one, or the next one if they do not hold there.
        since = np.maximum.accumulate(np.where(clear, np.where(changed, place, 0), place + 1))
        return clear & (clock - self.hold >= clock[np.minimum(since, place)])


def _records(steps: Any, signals: Any) -> tuple[Array, Array]:
    """Return checked steps (frames,) and signals (frames, frequencies); both may hold nothing."""
    clock, x = increasing_array("steps", steps), real_array("signals", signals)
    if x.shape[:-1] != clock.shape and (clock.size or x.size):
        raise InputError(f"steps and signals must be (n,) and (n, K), got {clock.shape} and {x.shape}")
    return clock, x


def circles_of(
    trajectory: Any,
    first: int = 0,
    last: int | None = None,
    *,
    factor: float = 2.0,
    threshold: float | None = None,
) -> "xarray.Dataset":
    """Return the Fourier signals of every run of a trajectory between two steps, and which circles survive.

    Parameters
    ----------
    trajectory : Trajectory, or array_like of shape (runs, frames, tokens, dim)
        Embeddings; see `fourier_signals`. The frames of an array are steps 0, 1, 2, ….
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
    xarray.Dataset
        "signals" (run, step, frequency) in the window, as `fourier_signals` returns them, and "survived"
        (run, frequency), whether each circle survives in the last frame of the trajectory. Runs that blew up,
        by the criterion of `structures`, and runs whose first or last frame is not finite are left out.

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
    >>> circles = analysis.circles_of(physics.example("ding"), 0, 1000)
    >>> circles.signals.shape, circles.frequency[circles.survived[0]].values.tolist()
    ((1, 1001, 29), [7, 8, 11, 13, 25])
    >>> circles.survived.sum("frequency").item()  # the number of circles
    5
    """
    trajectory = as_trajectory("trajectory", trajectory)
    require_cyclic(trajectory)
    sound = sound_runs(trajectory)
    signals = trajectory_signals(trajectory, sound)
    steps, since = signals.step.values, number("first", first)
    window = (steps >= since) & (steps <= (steps[-1] if last is None else number("last", last)))
    if np.count_nonzero(window) < 2:
        got = f"{np.count_nonzero(window)} of {len(steps)} from step {steps[0]} to {steps[-1]}"
        raise InputError(f"first and last must enclose at least 2 frames, got {got}")
    final = survives(frequency_norms(trajectory.final[sound]), factor=factor, threshold=threshold)
    data = signals[:, window].to_dataset(name="signals")
    return data.assign(survived=(("run", "frequency"), final))


def signal_gradient(signals: "xarray.DataArray", at: int = 4) -> "xarray.DataArray":
    """Return the change of signals per step, from the frame before a step to the frame at this step.

    Early in training it is the initial gradient, from which Ding et al. predict which circles survive.

    Parameters
    ----------
    signals : xarray.DataArray, (run, step, frequency)
        Signals, such as those of `circles_of`.
    at : int, default 4
        Step at which the interval ends, at least 1. If there is no frame at this step, the next frame is
        used; if that is the first frame, the second frame is used.

    Returns
    -------
    xarray.DataArray, (run, frequency)
        Change per step.

    Raises
    ------
    InputError
        If `at` is less than 1 or beyond the last step.

    Examples
    --------
    >>> import analysis, physics
    >>> circles = analysis.circles_of(physics.example("ding"), 0, 1000)
    >>> gradient = analysis.circles.signal_gradient(circles.signals)
    >>> bool(gradient.where(circles.survived).mean() > gradient.mean())
    True
    """
    steps = signals.step.values
    place = max(int(np.searchsorted(steps, whole_number("at", at, 1, steps[-1]))), 1)
    change = signals[:, place].drop_vars(("step", "time")) - signals[:, place - 1]
    return change.drop_vars(("step", "time")) / (steps[place] - steps[place - 1])
