"""The values of a configuration: their types, their smallest values, and their text."""

import json
import math
import types
from collections.abc import Callable
from typing import Any, Literal, Union, get_args, get_origin

from physics.checks import LARGEST, choice, flag, number, short_text, whole_number
from physics.errors import InputError

RATES = ("learning_rate", "weight_decay", "embedding_learning_rate", "embedding_weight_decay")
LEAST = dict.fromkeys(("seed", "first_run", *RATES), 0) | dict.fromkeys(
    ("steps", "record_every", "track", "batch_size"), 1
)
"""Smallest values of numbers that a system or a model does not check when its cell is built."""
ABOVE_ZERO = ("layer_scale", "embedding_scale")
"""Numbers that must be greater than 0, for the same reason."""


def coerced(name: str, value: Any, annotation: Any) -> Any:
    """Return a value of a configuration as the type that its parameter has on the command line.

    Parameters
    ----------
    name : str
        Name of the parameter, for messages.
    value : object
        Value that the configuration gives.
    annotation : type
        Type hint of the parameter.

    Returns
    -------
    object
        The value in its type: a list or a single value becomes a tuple where the type is a tuple, and a whole
        number becomes a float or text where that is the type.

    Raises
    ------
    InputError
        If the value is not of this type.
    """
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        if value is None and types.NoneType in inner:
            return None
        return coerced(name, value, next(one for one in inner if one is not types.NoneType))
    if origin is Literal:
        return choice(name, value, inner)
    if origin is tuple:
        items = value if isinstance(value, list | tuple) else [value]
        return tuple(coerced(name, item, inner[0]) for item in items)
    if annotation is str:
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise InputError(f"{name} must be text, got {short_text(value)}")
        return str(value)
    checks: dict[Any, Callable[[str, Any], Any]] = {bool: flag, int: _whole, float: _number}
    return checks[annotation](name, value) if annotation in checks else value


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{name} must be a whole number, got {short_text(value)}")
    return whole_number(name, value, LEAST.get(name, -LARGEST))


def canonical(value: Any) -> str:
    """Return JSON text that is the same for equal content, whatever the order of its keys, on one line.

    A TypeError or ValueError refuses what JSON does not have, such as dates, NaN and infinity.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _number(name: str, value: Any) -> float:
    return number(name, value, LEAST.get(name, -math.inf), above=0.0 if name in ABOVE_ZERO else -math.inf)


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the entries of an object of JSON; a ValueError refuses a name that occurs twice, as TOML does.

    Parameters
    ----------
    pairs : list of tuple of str and object
        Names and values in the order of the text.

    Returns
    -------
    dict of str to object
        Values by name.
    """
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{short_text(name)} is declared twice in one table")
        found[name] = value
    return found
