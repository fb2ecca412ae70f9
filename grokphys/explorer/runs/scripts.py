"""Python source of calls, for "Copy as Python"."""

from dataclasses import fields
from typing import Any

from physics.trajectory.provenance import plain


def arguments(**options: Any) -> str:
    """Return the Python source of keyword arguments.

    Parameters
    ----------
    **options : object
        Values by name. Floats are written so that they are read back exactly.

    Returns
    -------
    str
        Source such as ``tokens=17, dim=2``.
    """
    return ", ".join(f"{name}={plain(value)!r}" for name, value in options.items())


def constructed(package: str, made: Any) -> str:
    """Return the Python source of the call that constructs a dataclass.

    Parameters
    ----------
    package : str
        Package of the class, such as "physics".
    made : object
        The dataclass, whose fields all have defaults.

    Returns
    -------
    str
        Source of the call, without the fields that are at their defaults.
    """
    usual = type(made)()
    changed = {
        entry.name: getattr(made, entry.name)
        for entry in fields(made)
        if plain(getattr(made, entry.name)) != plain(getattr(usual, entry.name))
    }
    return f"{package}.{type(made).__name__}({arguments(**changed)})"
