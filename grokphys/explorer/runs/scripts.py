"""Python source of calls, for the button "Copy as Python" of the explorer."""

from dataclasses import fields
from typing import Any

from physics.trajectory.provenance import plain


def arguments(**options: Any) -> str:
    """Return Python source of keyword arguments, such as ``tokens=17, dim=2``; floats keep all bits."""
    return ", ".join(f"{name}={plain(value)!r}" for name, value in options.items())


def constructed(package: str, made: Any) -> str:
    """Return Python source of the call that constructs `made` again, without arguments at their defaults.

    Parameters
    ----------
    package : str
        Package of the class, such as "physics".
    made : object
        Instance of a dataclass whose fields all have defaults.
    """
    usual = type(made)()
    changed = {
        entry.name: getattr(made, entry.name)
        for entry in fields(made)
        if plain(getattr(made, entry.name)) != plain(getattr(usual, entry.name))
    }
    return f"{package}.{type(made).__name__}({arguments(**changed)})"
