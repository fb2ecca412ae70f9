"""Links: the state of a page as the fragment of an address, without the token of its server."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

from physics.checks import whole_number
from physics.errors import InputError

LONGEST_REPLAY = 20_000
"""Largest number of steps that a link may request, which takes some seconds."""


def written(view: str, speed: int, state: Mapping[str, Any]) -> str:
    """Return the fragment of a view, its steps per frame, and its state."""
    whole = {"view": view, "speed": speed, "state": dict(state)}
    return quote(json.dumps(whole, separators=(",", ":"), ensure_ascii=False))


def read(text: str) -> tuple[str, Any, dict[str, Any]]:
    """Return the view, the steps per frame, and the state of a fragment.

    Raises
    ------
    InputError
        If no page has made it.
    """
    try:
        whole = json.loads(unquote(text))
        return str(whole["view"]), whole.get("speed", 1), dict(whole.get("state", {}))
    except (ValueError, TypeError, KeyError, AttributeError):
        raise InputError("link must be one that this page has made") from None


def replayed(state: Mapping[str, Any]) -> int:
    """Return the number of steps that a state requests.

    Raises
    ------
    InputError
        If it is not a whole number, or too large.
    """
    steps = state.get("step", 0)
    if whole_number("step", steps, 0) > LONGEST_REPLAY:
        raise InputError(f"step must be at most {LONGEST_REPLAY} in a link, got {steps}")
    return int(steps)
