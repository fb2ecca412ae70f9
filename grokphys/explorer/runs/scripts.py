"""Python text of calls: what "Copy as Python" writes."""

from dataclasses import fields
from typing import Any

from physics.trajectory.provenance import plain


def arguments(**options: Any) -> str:
    """Return keyword arguments as they are written; the floats among them are read back to the same bits."""
    return ", ".join(f"{name}={plain(value)!r}" for name, value in options.items())


def constructed(package: str, made: Any) -> str:
    """Return the call that makes a dataclass again, fields left out that come without being given."""
    usual = type(made)()
    changed = {
        entry.name: getattr(made, entry.name)
        for entry in fields(made)
        if plain(getattr(made, entry.name)) != plain(getattr(usual, entry.name))
    }
    return f"{package}.{type(made).__name__}({arguments(**changed)})"
