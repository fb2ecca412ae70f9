"""Python source of calls, for "Copy as Python"."""

from dataclasses import fields
from typing import Any

from physics.trajectory.provenance import plain


def arguments(**options: Any) -> str:
    """Return the source of keyword arguments; floats are written so that they are read back exactly."""
    return ", ".join(f"{name}={plain(value)!r}" for name, value in options.items())


def constructed(package: str, made: Any) -> str:
    """Return the call that constructs a dataclass, without the fields that are at their defaults."""
    usual = type(made)()
    changed = {
        entry.name: getattr(made, entry.name)
        for entry in fields(made)
        if plain(getattr(made, entry.name)) != plain(getattr(usual, entry.name))
    }
    return f"{package}.{type(made).__name__}({arguments(**changed)})"
