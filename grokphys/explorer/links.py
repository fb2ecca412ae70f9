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
"""Largest number of steps that a link may request, which take some seconds."""

MOST_MOVED = 100
"""Largest number of coordinates, in all moves of particles by hand, that a link holds."""
MOST_CHANGES = 100
"""Largest number of changes of controls during a run that a link holds."""
UNCHANGED = (
    "This link repeats the run with the present controls, because they were changed more than "
    f"{MOST_CHANGES} times; “Copy as Python” holds all changes."
)
"""Sentence of a page whose run has more changes of controls than a link holds."""
LACKS = (
    f"This link holds no move of a particle by hand, because all moves have more than {MOST_MOVED} "
    "coordinates; “Copy as Python” holds all moves."
)
"""Sentence of a page whose run has more moves by hand than a link holds."""


def written(view: str, speed: int, state: Mapping[str, Any]) -> str:
    """Return the fragment of an address that describes the state of a page.

    Parameters
    ----------
    view : str
        Name of the view in addresses.
    speed : int
        Number of steps per frame.
    state : mapping of str to object
        State of the view, of values that JSON can hold. Texts may be names of files that are not UTF-8.

    Returns
    -------
    str
        The fragment, without the number sign before it.
    """
    whole = {"view": view, "speed": speed, "state": dict(state)}
    return quote(json.dumps(whole, separators=(",", ":"), ensure_ascii=False), errors="surrogateescape")


def read(text: str) -> tuple[str, Any, dict[str, Any]]:
    """Return what the fragment of an address describes.

    Parameters
    ----------
    text : str
        Fragment in the form that `written` returns.

    Returns
    -------
    str
        Name of the view, which need not exist.
    object
        Number of steps per frame, 1 if it is missing, which is not checked yet.
    dict of str to object
        State of the view, which is not checked yet.

    Raises
    ------
    InputError
        If the fragment is of another form.
    """
    try:
        whole = json.loads(unquote(text, errors="surrogateescape"))
        return str(whole["view"]), whole.get("speed", 1), dict(whole.get("state", {}))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        shown = repr(text if len(text) < 80 else f"{text[:77]}…")
        raise InputError(f"link must be one that this page has made, got {shown}") from None


def replayed(state: Mapping[str, Any]) -> int:
    """Return the number of steps that a state requests: its entry "step", or 0 if there is none.

    Raises
    ------
    InputError
        If the entry is not a whole number from 0 to `LONGEST_REPLAY`.
    """
    steps = state.get("step", 0)
    if whole_number("step", steps, 0) > LONGEST_REPLAY:
        raise InputError(f"step must be at most {LONGEST_REPLAY} in a link, got {steps}")
    return int(steps)


def moved(state: Mapping[str, Any], tokens: int, dim: int) -> list[tuple[int, int, list[float]]]:
    """Return the moves of particles by hand in a state: its entry "moves", or none if there is no entry.

    Parameters
    ----------
    state : mapping of str to object
        State from a link.
    tokens, dim : int
        Numbers of particles and of dimensions.

    Returns
    -------
    list of tuple of int, int and list of float
        Step, number of the particle, and its coordinates after the move, for each move.

    Raises
    ------
    InputError
        If the entry is of another form, its steps decrease or are beyond that of the state, a particle does
        not exist, or all moves together have more than `MOST_MOVED` coordinates.
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
