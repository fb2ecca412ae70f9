"""What the commands share: how options are filled and checked, and how results are said."""

from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, TypeVar

import tyro

from physics.errors import InputError

Built = TypeVar("Built")


class ValueNotAllowed(Exception):  # noqa: N818 - it ends as a sentence, not as an error of ours
    """An object refuses a value from the command line."""


def checked(kind: Callable[..., Built]) -> Callable[..., Built]:
    """Let the command line fill an object of this kind and report what it refuses in our own words."""

    @wraps(kind)
    def build(*args: Any, **kwargs: Any) -> Built:
        try:
            return kind(*args, **kwargs)
        except InputError as error:
            raise ValueNotAllowed(str(error)) from None

    return build


Files = Annotated[tuple[str, ...], tyro.conf.arg(metavar="FILE|'PATTERN' ...")]
Names = Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME ...")]


def structure_line(found: Any) -> str:
    """Circles and imperfections of an ensemble in one line."""
    circles = int(found.circle.sum())
    text = f"{circles} of {len(found.circle)} runs are circles ({found.circles.format(1, 100)} %)"
    if circles < len(found.circle):
        text += f", grid imperfections of the rest {found.grid_imperfections.format()}"
    return text


def sentence(error: Exception) -> str:
    """The sentence of an error, without the number of the system."""
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
