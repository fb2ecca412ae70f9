"""The bridge: a model through which a page and its session communicate, besides widgets and figures."""

import sys
import traceback
from typing import Any

from bokeh.core.properties import Any as AnyValue
from bokeh.core.properties import Int, List, String
from bokeh.model import DataModel

from grokphys.options import sentence
from physics.errors import FileFormatError, InputError, SimulationError

SPEEDS = (1, 2, 3, 5, 8, 12, 20, 35, 60, 100)
"""Numbers of steps per frame that the page offers."""
EXPECTED = (InputError, FileFormatError, OSError, SimulationError)
"""Exceptions whose sentences are shown; all other exceptions are shown as errors of the program."""


class Bridge(DataModel):
    """A model of Bokeh through which the script of a page and its session communicate.

    The `help` of each property says who sets it and what it holds. Lists that carry a command begin with a
    number that increases, so that a repeated command is a change.
    """

    command: Any = List(AnyValue, default=[0, "", None], help="From the page: [number, name, value].")
    shown: Any = Int(default=0, help="From the page: the last frame that it has drawn.")
    frame: Any = Int(default=0, help="From the session: the last frame that was sent.")
    view: Any = String(default="", help="From the session: the view on the stage.")
    playing: Any = Int(default=0, help="From the session: 1 while the view plays, otherwise 0.")
    speed: Any = Int(default=1, help="From the session: steps per frame.")
    status: Any = List(AnyValue, default=[], help="From the session: [name, text] of each measure.")
    verdict: Any = String(default="", help="From the session: what is on screen, in a sentence.")
    watch: Any = String(default="", help="From the session: what to watch for.")
    preset: Any = String(default="", help="From the session: the preset that the state fits, or none.")
    link: Any = String(default="", help="From the session: the state, as the fragment of an address.")
    lacks: Any = String(default="", help="From the session: what the link leaves out, in a sentence.")
    message: Any = List(AnyValue, default=[0, "", ""], help="From the session: [number, kind, sentence].")
    script: Any = List(AnyValue, default=[0, ""], help="From the session: [number, Python text].")
    download: Any = List(
        AnyValue, default=[0, "", "", None], help="From the session: [number, name, type, content]."
    )

    def send(self, name: str, *values: Any) -> None:
        """Send a command to the page.

        Parameters
        ----------
        name : {"message", "script", "download"}
            Name of the command, which is a list property of this model.
        *values : object
            Its values after the number: kind and sentence, Python text, or name, type and content of a file.
        """
        setattr(self, name, [getattr(self, name)[0] + 1, *values])


def explained(error: Exception) -> str:
    """Return a sentence about an error for the page; print the traceback of one that is not `EXPECTED`."""
    if isinstance(error, EXPECTED):
        return sentence(error)
    if sys.stderr is not None:  # None where it is closed, as by daemons
        traceback.print_exception(error, file=sys.stderr)
    return f"This is an error in GrokPhys, not in your input: {type(error).__name__}: {error}"


def offered(speed: Any) -> int:
    """Return a number of steps per frame that a page or a link gives, if it is one of `SPEEDS`.

    Raises
    ------
    InputError
        If it is not.
    """
    if speed not in SPEEDS:
        raise InputError(f"steps per frame must be one of {', '.join(map(str, SPEEDS))}, got {speed!r}")
    return SPEEDS[SPEEDS.index(speed)]
