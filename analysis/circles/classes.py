"""Structures of final embeddings: circles, or grids with imperfections."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.stats.intervals import Interval, mean, proportion
from physics.checks import InputError, finite_array, real_array, short_text, whole_number
from physics.particles.structures import grid_imperfections, is_circle
from physics.theory.operations import FiniteGroup, Operation, cyclic
from physics.trajectory import Trajectory
from physics.values import Shown

PLAIN = ("EffectiveTheory", "ToyAddition")
MODULAR = ("ParticleSystem", "ConstantAttention", "EmbeddingMLP", "TokenTransformer", "TwoLayer")
"""Models and systems that learn plain addition, and those that add modulo their number of tokens."""
UNPAIRED = ("AffineFlow", "LinearNetwork", "ImageMLP")
"""Models and systems without sums of pairs, for which circles and grids have no meaning."""
BLOWN_UP = 1e6
"""A run has blown up if its points end this many times farther out than it began, or than the other runs."""


@dataclass(frozen=True, eq=False)
class Structures(Shown):
    """Circles and grid imperfections of the final embeddings of an ensemble, which `structures` returns.

    Attributes
    ----------
    circle : ndarray of bool, shape (runs,)
        Which embeddings are circles; see `physics.is_circle`.
    imperfections : ndarray of int64, shape (runs,)
        Number of grid imperfections of every embedding, circles included; see `physics.grid_imperfections`.
    circles : Interval
        Fraction of circles among the runs that did not blow up, with Wilson's 95 % interval.
    grid_imperfections : Interval
        Mean number of imperfections over the runs that neither are circles nor blew up, with its 95 %
        interval.
    blown_up : ndarray of bool, shape (runs,)
        Which runs ended a million times farther out than they began, or than the others; they count in
        neither average.

    Examples
    --------
    >>> import analysis, numpy as np
    >>> angle = 2 * np.pi * np.arange(7) / 7
    >>> circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    >>> found = analysis.structures(np.stack([circle, circle * [2, 1]]))  # a circle and an ellipse
    >>> found.circles.format(2), found.grid_imperfections.count
    ('0.50 [0.09, 0.91]', 1)
    """

    circle: NDArray[np.bool_]
    imperfections: NDArray[np.int64]
    circles: Interval
    grid_imperfections: Interval
    blown_up: NDArray[np.bool_]


def structures(
    final: Any, *, modulus: int | None = None, group: Any = None, initial: Any = None
) -> Structures:
    """Return which final embeddings are circles, and their grid imperfections (Musat, Algorithms 1 and 2).

    Parameters
    ----------
    final : Trajectory, or array_like of float, shape (runs, tokens, dim)
        Final embeddings or positions, finite. Of a trajectory they are those of the last frame, the classes
        are those of the operation that it records, and `initial` is its first frame.
    modulus : int, optional
        Modulus of the classes of pair sums, at least 2; by default the number of tokens.
    group : FiniteGroup or array_like of int, shape (tokens, tokens), optional
        Group whose products are the classes, or its Cayley table, instead of a modulus.
    initial : array_like of float, shape (runs, tokens, dim), optional
        Where the runs began, to tell the runs that blew up.

    Returns
    -------
    Structures
        Values of each run, and their averages with 95 % intervals.

    Raises
    ------
    InputError
        If an argument is invalid, as in `physics.is_circle` and `physics.grid_imperfections`.

    Examples
    --------
    >>> import analysis, numpy as np
    >>> angle = 2 * np.pi * np.arange(7) / 7
    >>> circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    >>> analysis.structures(np.stack([circle, circle * [2, 1]])).circle.tolist()
    [True, False]
    """
    if isinstance(final, Trajectory):
        if not (finite := finite_runs(final)).all():
            raise InputError(
                f"final must be finite, but {run_names(np.flatnonzero(~finite))} of {final.runs} diverged; "
                "take a smaller learning rate or step size, or pass trajectory[numbers] of the others"
            )
        recorded = recorded_operation(final.parameters, final.tokens)
        if recorded is not None and modulus is None and group is None:
            return structures_by(recorded, final.final, final.initial if initial is None else initial)
        final, initial = final.final, final.initial if initial is None else initial
    circle = is_circle(final)
    imperfections = grid_imperfections(final, modulus=modulus, group=group)
    lost = blown_up(final, initial)
    circles = proportion(int((circle & ~lost).sum()), int((~lost).sum()))
    return Structures(circle, imperfections, circles, mean(imperfections[~circle & ~lost]), lost)


def as_trajectory(name: str, value: Any) -> Trajectory:
    """Return a trajectory unchanged, or an array (runs, frames, tokens, dim) with the steps 0, 1, 2, …."""
    if isinstance(value, Trajectory):
        return value
    positions = real_array(name, value, ndim=4)
    return Trajectory(positions, np.arange(positions.shape[1]))


def blown_up(final: Any, initial: Any = None) -> NDArray[np.bool_]:
    """Return which runs (runs, tokens, dim) blew up, beside where they began or else the other runs."""
    sizes = np.abs(finite_array("final", final, ndim=3)).max(axis=(1, 2), initial=0.0)
    if initial is None:
        return sizes > BLOWN_UP * np.median(sizes) if len(sizes) else np.zeros(0, bool)
    start = finite_array("initial", initial, ndim=3)
    if start.shape != np.shape(final):
        raise InputError(f"initial must have the shape of final, {np.shape(final)}, got {start.shape}")
    return np.asarray(sizes > BLOWN_UP * np.maximum(np.abs(start).max(axis=(1, 2), initial=0.0), 1.0))


def sound_runs(trajectory: Trajectory) -> NDArray[np.int64]:
    """Return the numbers of the runs whose ends are finite and that did not blow up; warn of the others.

    An `InputError` refuses a trajectory without such a run.
    """
    finite, lost = finite_runs(trajectory), lost_runs(trajectory)
    if (lost | ~finite).all():
        advice = smaller_step(trajectory) if lost.any() else ""
        raise InputError(f"trajectory must hold a run that is finite and does not blow up, got none{advice}")
    if not finite.all():
        warnings.warn(unfinite_text(np.flatnonzero(~finite)), RuntimeWarning, stacklevel=3)
    if lost.any():
        warnings.warn(blown_text(np.flatnonzero(lost), trajectory), RuntimeWarning, stacklevel=3)
    return np.flatnonzero(finite & ~lost)


def finite_runs(trajectory: Trajectory) -> NDArray[np.bool_]:
    """Return which runs of a trajectory have finite first and last frames."""
    ends = (trajectory.initial, trajectory.final)
    return np.logical_and(*(np.isfinite(end).all(axis=(1, 2)) for end in ends))


def lost_runs(trajectory: Trajectory) -> NDArray[np.bool_]:
    """Return which of the finite runs of a trajectory blew up; states of an affine flow may grow at will."""
    lost = np.zeros(trajectory.runs, bool)
    if (trajectory.parameters.get("system") or {}).get("type") != "AffineFlow":
        finite = finite_runs(trajectory)
        lost[finite] = blown_up(trajectory.final[finite], trajectory.initial[finite])
    return lost


def unfinite_text(numbers: NDArray[np.int64]) -> str:
    """Return words that some runs are not finite, such as "run 1 is not finite and does not count"."""
    verbs = ("is", "does") if len(numbers) == 1 else ("are", "do")
    return f"{run_names(numbers)} {verbs[0]} not finite and {verbs[1]} not count"


def blown_text(numbers: NDArray[np.int64], trajectory: Trajectory) -> str:
    """Return words that some runs of a trajectory blew up, such as "run 1 blew up and does not count"."""
    verb = "does" if len(numbers) == 1 else "do"
    return f"{run_names(numbers)} blew up and {verb} not count{smaller_step(trajectory)}"


def run_names(numbers: NDArray[np.int64]) -> str:
    """Return the first few numbers of runs in words, such as "runs 1, 2"."""
    several = "s" * (len(numbers) > 1)
    return f"run{several} {', '.join(map(str, numbers[:5]))}{' and others' * (len(numbers) > 5)}"


def smaller_step(trajectory: Trajectory) -> str:
    """Return the advice to take a smaller step size than that of a trajectory; "" if it is unknown."""
    step = trajectory.parameters.get("step_size")
    return f"; try a step_size below {step:g}" if isinstance(step, int | float) else ""


def structures_by(operation: Operation, final: Any, initial: Any = None) -> Structures:
    """Return the `structures` of embeddings (runs, tokens, dim) for the classes of a commuting operation.

    An `InputError` refuses invalid embeddings, and an operation that does not commute.
    """
    return structures(final, initial=initial, **class_options(operation))


def class_options(operation: Operation) -> dict[str, Any]:
    """Return the options of `physics.grid_imperfections` for the classes of an operation.

    They are either a "group" or a "modulus". Plain addition has a modulus that exceeds every sum.
    """
    if operation.group is not None:
        return {"group": operation.group}
    return {"modulus": operation.modulus or 2 * operation.tokens}


def class_names(operation: Operation) -> str:
    """Return the classes of an operation in words, such as "i + j", "i + j mod 17" or "products in S_3"."""
    if operation.group is not None:
        return f"products in {operation.group.name}"
    return "i + j" if operation.modulus is None else f"i + j mod {operation.modulus}"


def recorded_operation(parameters: Mapping[str, Any], tokens: int) -> Operation | None:
    """Return the operation that the parameters of a trajectory record, or None if they record none.

    It is told by the entries ``modulus`` and ``group`` of the parameters themselves, as users of
    `nets.Recorder` give them, or of their system, model or task. Without such entries it follows from the
    type of the system or model, some of which add modulo their number of tokens. An `InputError` refuses an
    invalid entry, a number of `tokens` that is not that of the operation, and tokens that were selected in
    another order.
    """
    parts = [parameters, *(parameters.get(name) for name in ("system", "model", "task"))]
    stated = [part if isinstance(part, Mapping) else {} for part in parts]
    _, system, model, _ = stated
    for group in (part["group"] for part in stated if part.get("group") is not None):
        named = isinstance(group, Mapping)
        if named and not {"table", "name"} <= set(group):
            raise InputError(f"group must be recorded with a table and a name, got {short_text(group)}")
        group = FiniteGroup(group["table"], group["name"]) if named else FiniteGroup(group, "group")
        _require_tokens(f"elements of the group {group.name}", group.order, tokens)
        _require_order(f"elements of the group {group.name}", parameters, tokens)
        return Operation(tokens, group=group)
    moduli = [part["modulus"] for part in stated if part.get("modulus") is not None]
    kind = (system or model).get("type")
    if not moduli and kind in MODULAR:
        moduli = [(system or model).get("tokens", tokens)]
    if not moduli:
        return Operation(tokens) if kind in PLAIN else None
    modulus = whole_number("modulus", moduli[0], 2)
    if any(value != modulus for value in moduli):
        raise InputError(f"parameters must state one modulus, got {' and '.join(map(short_text, moduli))}")
    _require_order(f"numbers of the modulus {modulus}", parameters, tokens)
    if system.get("tokens") != tokens:  # a system has its own tokens, whatever the modulus of its classes
        _require_tokens(f"numbers of the modulus {modulus}", modulus, tokens)
    return Operation(tokens, modulus)


def is_cyclic(operation: Operation | None) -> bool:
    """Return whether tokens of an operation have frequencies: unless it is a group other than addition mod p.

    The elements of a group of addition modulo p must be the numbers 0 … p-1 in this order. A modulus must be
    the number of tokens.
    """
    if operation is None or operation.group is None:
        return operation is None or operation.modulus in (None, operation.tokens)
    return bool(np.array_equal(operation.group.table, cyclic(operation.tokens).table))


def require_cyclic(trajectory: Trajectory) -> None:
    """Refuse all but a trajectory whose tokens have frequencies by what it states; see `is_cyclic`."""
    tokens = trajectory.tokens
    operation = recorded_operation(trajectory.parameters, tokens)
    if is_cyclic(operation):
        return
    assert operation is not None
    if operation.modulus is not None:
        _require_tokens(f"numbers of the modulus {operation.modulus}", operation.modulus, tokens)
    numbers = f"the numbers 0 to {tokens - 1}, added modulo {tokens}"
    raise InputError(f"tokens must be {numbers}, to have frequencies, got the group named {operation.name!r}")


def _require_order(what: str, parameters: Mapping[str, Any], tokens: int) -> None:
    """Refuse as many selected tokens as the trajectory has, unless they are the first ones in their order."""
    chosen = parameters.get("selected_tokens")
    if isinstance(chosen, list) and len(chosen) == tokens:
        for place, token in enumerate(chosen):
            if token != place:
                got = f"token {short_text(token)} in place {place}; select them by slice({tokens})"
                raise InputError(f"tokens must be the {what} of the trajectory, in order from 0, got {got}")


def _require_tokens(what: str, size: int, tokens: int) -> None:
    if tokens != size:
        select = f"pass Trajectory.select_tokens(slice({size})), or record with tokens=slice({size})"
        advice = select if tokens > size else "record all of them, or correct the parameters"
        raise InputError(f"tokens must be the {size} {what} of the trajectory, got {tokens}; {advice}")
