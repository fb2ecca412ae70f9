"""Trajectories of signals as pieces, which are checked once and differentiated within each piece only."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from physics.checks import choice, distinct, finite_array
from physics.errors import InputError

Array = NDArray[np.float64]
Pieces = list[tuple[Array, Array]]
"""Times (n,) and states (n, K) of each trajectory."""

KINDS = ("increment", "generator")


def as_pieces(signals: Any, times: Any = None, *, minimum: int = 2) -> Pieces:
    """Convert signals and times, as `fit_trajectories` takes them, to a list of checked trajectories.

    Parameters
    ----------
    signals : array_like, shape (frames, K) or (runs, frames, K), or a sequence of arrays (frames_i, K)
        Trajectories of the K components.
    times : array_like, shape (frames,), or a sequence with one for each trajectory, optional
        Increasing times of the frames, by default 0, 1, 2, ….
    minimum : int, default 2
        Smallest number of frames of a trajectory.

    Returns
    -------
    list of tuple of ndarray of float64
        Times (frames_i,) and states (frames_i, K) of each trajectory.

    Raises
    ------
    InputError
        If shapes do not agree, a value is not finite, times do not increase, or a trajectory is too short.
    """
    if isinstance(signals, Sequence) and len(signals) and np.ndim(signals[0]) == 2:
        arrays = [finite_array(f"signals[{k}]", piece) for k, piece in enumerate(signals)]
    else:
        array = finite_array("signals", signals)
        if array.ndim not in (2, 3) or not array.size:
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
        if len(piece) < minimum:
            raise InputError(f"trajectory {k} must have at least {minimum} frames, got {len(piece)}")
        if np.any(np.diff(t) <= 0):
            at = int(np.argmax(np.diff(t) <= 0))
            raise InputError(
                f"times of trajectory {k} must increase, got {distinct(t[at], t[at + 1])} followed by "
                f"{distinct(t[at + 1], t[at])}"
            )
        pieces.append((t, piece))
    return pieces


def differences(pieces: Pieces, kind: str) -> list[tuple[Array, Array]]:
    """Return states and their changes within each trajectory.

    Parameters
    ----------
    pieces : list of tuple
        Times (n,) and states (n, K) of each trajectory, as `as_pieces` returns them.
    kind : {"increment", "generator"}
        "increment" gives the states at the frames, and first differences. "generator" gives midpoints and
        difference quotients, which are of second order in the spacing.

    Returns
    -------
    list of tuple of ndarray of float64
        States and changes of each trajectory, (n - 1, K) each.

    Raises
    ------
    InputError
        If `kind` is unknown, or increments are wanted from frames that are not equally spaced.
    """
    choice("kind", kind, KINDS)
    if kind == "increment":
        unit(pieces)
        return [(x[:-1], np.diff(x, axis=0)) for _, x in pieces]
    return [((x[:-1] + x[1:]) / 2, np.diff(x, axis=0) / np.diff(t)[:, None]) for t, x in pieces]


def unit(pieces: Pieces) -> float:
    """Return the common spacing of all frames.

    Parameters
    ----------
    pieces : list of tuple
        Times (frames,) and signals (frames, K) of each trajectory.

    Returns
    -------
    float
        Time from one frame to the next, rounded to nine digits.

    Raises
    ------
    InputError
        If frames are not equally spaced, or trajectories have different spacings.
    """
    for t, _ in pieces:
        spacing = np.diff(t)
        if np.ptp(spacing) > 1e-9 * spacing.max():
            raise InputError(
                "times must be equally spaced for an increment map, got spacings from "
                f"{distinct(spacing.min(), spacing.max())} to {distinct(spacing.max(), spacing.min())}; "
                f"choose other steps or "
                'kind="generator"'
            )
    units = {float(f"{(t[1] - t[0]):.9g}") for t, _ in pieces}
    if len(units) > 1:
        raise InputError(
            f"times must have one spacing in all trajectories for an increment map, got {sorted(units)}"
        )
    return units.pop()


def elapsed(piece: tuple[Array, Array], kind: str) -> Array:
    """Return the times of a trajectory since its first frame, in the unit of a law.

    Parameters
    ----------
    piece : tuple of ndarray
        Times (frames,) and signals (frames, K).
    kind : {"increment", "generator"}
        Kind of the law: an increment map counts steps, and a generator has units of time.

    Returns
    -------
    ndarray of float64, shape (frames,)
        Numbers of steps, or differences of times, from 0.
    """
    t, x = piece
    return t - t[0] if kind == "generator" else np.arange(len(x), dtype=np.float64)


def whole_steps(clock: Array) -> NDArray[np.int64]:
    """Return times in steps as whole numbers.

    Parameters
    ----------
    clock : ndarray of float64, shape (n,)
        Times in steps.

    Returns
    -------
    ndarray of int64, shape (n,)
        The same numbers.

    Raises
    ------
    InputError
        If a time is negative or not a whole number.
    """
    whole = np.rint(clock).astype(np.int64)
    if np.any(whole != clock) or np.any(whole < 0):
        bad = clock[(whole != clock) | (whole < 0)][0]
        raise InputError(
            "times of an increment map must be whole numbers of steps of at least 0, got "
            f"{distinct(bad, np.rint(bad))}"
        )
    return whole


def r_squared(truth: Array, predicted: Array) -> float:
    """Return the coefficient of determination R², averaged over components.

    Components without variance count only if they are predicted wrongly, as in scikit-learn.

    Parameters
    ----------
    truth : ndarray of float64, shape (n, K)
        Measured values.
    predicted : ndarray of float64, shape (n, K)
        Predicted values.

    Returns
    -------
    float
        At most 1; NaN for fewer than two rows, and -inf if a prediction overflows.
    """
    from sklearn.metrics import r2_score

    if len(truth) < 2:
        return float("nan")
    with np.errstate(over="ignore"):
        if not np.isfinite(predicted).all() or not np.isfinite(predicted**2).all():
            return float("-inf")
    return float(r2_score(truth, predicted))
