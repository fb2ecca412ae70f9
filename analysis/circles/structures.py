"""Structures of final embeddings: circles, or grids with imperfections."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.stats.intervals import Interval, mean, proportion
from physics.checks import short_text
from physics.errors import InputError
from physics.particles.structures import grid_imperfections, is_circle
from physics.theory.groups import FiniteGroup
from physics.theory.operations import Operation

PLAIN = ("EffectiveTheory", "ToyAddition")
MODULAR = ("ParticleSystem", "ConstantAttention", "EmbeddingMLP", "TokenTransformer", "TwoLayer")
"""Models and systems that learn plain addition, and those that add modulo their number of tokens."""
UNPAIRED = ("AffineFlow", "LinearNetwork", "ImageMLP")
"""Models and systems without sums of pairs, for which circles and grids have no meaning."""


@dataclass(frozen=True, eq=False)
class Structures:
    """Circles and grid imperfections of the final embeddings of an ensemble, which `structures` returns.

    Attributes
    ----------
    circle : ndarray of bool, shape (runs,)
        Which embeddings are circles; see `physics.is_circle`.
    imperfections : ndarray of int64, shape (runs,)
        Number of grid imperfections of every embedding, circles included; see `physics.grid_imperfections`.
    circles : Interval
        Fraction of circles, with Wilson's 95 % interval.
    grid_imperfections : Interval
        Mean number of imperfections over the runs that are not circles, with its 95 % interval.

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


def structures(final: Any, *, modulus: int | None = None, group: Any = None) -> Structures:
    """Return which final embeddings are circles, and their grid imperfections (Musat, Algorithms 1 and 2).

    Parameters
    ----------
    final : array_like of float, shape (runs, tokens, dim)
        Final embeddings or positions, finite.
    modulus : int, optional
        Modulus of the classes of pair sums, at least 2; by default the number of tokens.
    group : FiniteGroup or array_like of int, shape (tokens, tokens), optional
        Group whose products are the classes, or its Cayley table, instead of a modulus.

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
    circle = is_circle(final)
    imperfections = grid_imperfections(final, modulus=modulus, group=group)
    return Structures(
        circle, imperfections, proportion(int(circle.sum()), len(circle)), mean(imperfections[~circle])
    )


def structures_by(operation: Operation, final: Any) -> Structures:
    """Return the `structures` of embeddings (runs, tokens, dim) for the classes of a commuting operation.

    An `InputError` refuses invalid embeddings, and an operation that does not commute.
    """
    return structures(final, **class_options(operation))


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

    It is told by the entries ``modulus`` and ``group`` of the system, of the model, or of the trajectory
    itself, as users of `nets.Recorder` give them. Without such entries it follows from the type of the system
    or model, some of which add modulo the number of `tokens`. An `InputError` refuses an invalid entry.
    """
    system, model = parameters.get("system") or {}, parameters.get("model") or {}
    own = {name: parameters[name] for name in ("modulus", "group") if name in parameters}
    made = own | dict(system or model)
    group = made.get("group")
    if group is not None:
        named = isinstance(group, Mapping)
        if named and not {"table", "name"} <= set(group):
            raise InputError(f"group must be recorded with a table and a name, got {short_text(group)}")
        table, name = (group["table"], group["name"]) if named else (group, "group")
        return Operation(tokens, group=FiniteGroup(table, name))
    modulus = made.get("modulus")
    if modulus is None and made.get("type") in MODULAR:
        modulus = tokens
    if modulus is None and made.get("type") not in PLAIN:
        return None
    return Operation(tokens, modulus)
