"""Links: the state of a page as the fragment of an address, without the token of its server."""

import json
from collections.abc import Mapping
from itertools import pairwise
from typing import Any
from urllib.parse import quote, unquote

from grokphys.explorer.guard import is_number
from physics.checks import whole_number
from physics.errors import InputError

LONGEST_REPLAY = 20_000
"""Largest number of steps that a link may request, which takes some seconds."""

MOST_MOVED = 100
"""Largest number of coordinates of particles moved by hand that a link holds."""
MOST_CHANGES = 100
"""Largest number of changes of controls during a run that a link holds."""
UNCHANGED = (
    f"This link repeats the run with the controls of now, because they were changed more than {MOST_CHANGES} "
    "times; “Copy as Python” holds all changes."
)
LACKS = (
    f"This link holds no particle moved by hand, because those have more than {MOST_MOVED} coordinates; "
    "“Copy as Python” holds all of them."
)


def written(view: str, speed: int, state: Mapping[str, Any]) -> str:
    """Return the fragment of an address that describes the state of a page.

    Parameters
    ----------
    view : str
        Name of the view in addresses.
    speed : int
        Number of steps per frame.
    state : mapping of str to object
        Values of the view's widgets that differ from the defaults, which JSON can hold.

    Returns
    -------
    str
        The fragment, without the number sign before it.
    """
    whole = {"view": view, "speed": speed, "state": dict(state)}
    return quote(json.dumps(whole, separators=(",", ":"), ensure_ascii=False))


def read(text: str) -> tuple[str, Any, dict[str, Any]]:
    """Return what the fragment of an address describes.

    Parameters
    ----------
    text : str
        Fragment that `written` has made.

    Returns
    -------
    str
        Name of the view.
    object
        Number of steps per frame, which is not checked yet.
    dict of str to object
        Values of the view's widgets.

    Raises
    ------
    InputError
        If no page has made the fragment.
    """
    try:
        whole = json.loads(unquote(text))
        return str(whole["view"]), whole.get("speed", 1), dict(whole.get("state", {}))
    except (ValueError, TypeError, KeyError, AttributeError):
        raise InputError("link must be one that this page has made") from None


def replayed(state: Mapping[str, Any]) -> int:
    """Return the number of steps that a state requests.

    Parameters
    ----------
    state : mapping of str to object
        Values from a link.

    Returns
    -------
    int
        The value of "step", or 0 if there is none.

    Raises
    ------
    InputError
        If the value is not a whole number, or too large.
    """
    steps = state.get("step", 0)
    if whole_number("step", steps, 0) > LONGEST_REPLAY:
        raise InputError(f"step must be at most {LONGEST_REPLAY} in a link, got {steps}")
    return int(steps)


def moved(state: Mapping[str, Any], tokens: int, dim: int) -> list[tuple[int, int, list[float]]]:
    """Return the particles that were moved by hand in a state.

    Parameters
    ----------
    state : mapping of str to object
        Values from a link.
    tokens, dim : int
        Numbers of particles and of dimensions.

    Returns
    -------
    list of tuple of int, int and list of float
        Step, number of the particle, and coordinates of its place, for each move.

    Raises
    ------
    InputError
        If the moves are of another form, not in the order of their steps, or too many.
    """
    given, last = state.get("moves", []), replayed(state)
    match given:
        case [*moves] if len(moves) * dim <= MOST_MOVED and all(
            isinstance(move, list | tuple)
            and len(move) == 3
            and is_number(move[0], whole=True)
            and is_number(move[1], whole=True)
            and 0 <= move[0] <= last
            and 0 <= move[1] < tokens
            and isinstance(move[2], list | tuple)
            and len(move[2]) == dim
            and all(map(is_number, move[2]))
            for move in moves
        ):
            if all(before[0] <= after[0] for before, after in pairwise(moves)):
                return [(int(step), int(token), [*map(float, place)]) for step, token, place in moves]
    shown = json.dumps(given)
    raise InputError(
        f"moves must be at most {MOST_MOVED} coordinates in all, as [step, token, [{dim} numbers]] with "
        f"steps from 0 to {last} in order and tokens below {tokens}, got "
        f"{shown if len(shown) < 80 else shown[:77] + '…'}"
    )
