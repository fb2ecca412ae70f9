"""Trajectories of signals as pieces, which are checked once and differentiated within each piece only."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.scaling import scaled
from physics.checks import choice, distinct, finite_array
from physics.errors import InputError
from physics.memory import require_memory

Array = NDArray[np.float64]
Pieces = list[tuple[Array, Array]]
"""Times (n,) and states (n, K) of each trajectory."""

KINDS = ("increment", "generator")
LARGEST = 1e150
"""Largest size of a signal, and smallest inverse of it, so that sums of squares are finite and not 0."""


def as_pieces(signals: Any, times: Any = None, *, minimum: int = 2) -> Pieces:
    """Convert signals and times, as `fit_trajectories` takes them, to a list of checked trajectories.

    The result holds times (frames,) and states (frames, components) of each trajectory, both float64. An
    `InputError` refuses shapes that do not agree, values that are not finite or above 1e150 in size, times
    that do not increase, and a trajectory of fewer than `minimum` frames.
    """
    if isinstance(signals, Sequence) and len(signals) and np.ndim(signals[0]) == 2:
        arrays = [finite_array(f"signals[{k}]", piece, ndim=2) for k, piece in enumerate(signals)]
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
    largest = max((float(np.abs(piece).max(initial=0.0)) for piece in arrays), default=0.0)
    if largest > LARGEST or 0 < largest < 1 / LARGEST:
        raise InputError(
            "signals must be between 1e-150 and 1e150 in size, so that their squares are finite and do not "
            f"vanish, got {largest:.3g}; change their unit"
        )
    if times is None:
        clocks: list[Any] = [np.arange(len(piece)) for piece in arrays]
    elif not _are_clocks(times):
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


def _are_clocks(times: Any) -> bool:
    """Return whether `times` hold a clock for each trajectory, and are not one clock or no clock at all."""
    listed = hasattr(times, "__len__") and getattr(times, "ndim", 1) > 0 and len(times) > 0
    return listed and np.ndim(times[0]) > 0


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


def unit(pieces: Pieces) -> float:
    """Return the time from one frame to the next, rounded to nine digits.

    An `InputError` refuses frames that are not equally spaced, and trajectories with different spacings.
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
    """Return the times (frames,) of a trajectory since its first frame, in the unit of time of a law.

    They are numbers of frames for the kind "increment", and differences of times for the kind "generator".
    """
    t, x = piece
    return t - t[0] if kind == "generator" else np.arange(len(x), dtype=np.float64)


def whole_steps(clock: Array, components: int = 1) -> NDArray[np.int64]:
    """Return times (n,) in steps as int64, or refuse one that is negative or not a whole number.

    So are steps whose states of so many components would not fit into memory.
    """
    whole = np.rint(clock).astype(np.int64)
    if np.any(whole != clock) or np.any(whole < 0):
        bad = clock[(whole != clock) | (whole < 0)][0]
        raise InputError(
            "times of an increment map must be whole numbers of steps of at least 0, got "
            f"{distinct(bad, np.rint(bad))}"
        )
    require_states(int(whole.max(initial=0)), components)
    return whole


def require_states(steps: int, components: int) -> None:
    """Refuse steps if the states after all of them would not fit into memory."""
    what = f"the states after each of {steps} steps"
    require_memory(what, 8.0 * (steps + 1) * components, "take fewer steps")


def r_squared(truth: Array, predicted: Array) -> float:
    """Return the coefficient of determination R² of predictions (n, K), averaged over the K components.

    A component without variance counts as 1 if its prediction is exact, and otherwise as 0, as in
    scikit-learn. The result is NaN for fewer than two rows, and -inf if a prediction overflows.
    """
    from sklearn.metrics import r2_score

    if len(truth) < 2:
        return float("nan")
    truth, exponent = scaled(truth, 0)
    with np.errstate(over="ignore"):
        predicted = np.ldexp(predicted, -exponent)
        if not np.isfinite(predicted).all() or not np.isfinite(predicted**2).all():
            return float("-inf")
    return float(r2_score(truth, predicted))
