"""The declaration that the directory of a sweep keeps as `sweep.json`."""

import json
from pathlib import Path
from typing import Any

from grokphys.output import put_aside, write_text
from grokphys.sweeps.config import KINDS, SECTIONS, Declaration
from grokphys.sweeps.values import canonical
from physics.errors import InputError
from physics.trajectory.locks import claim


def keep_declaration(directory: Path, sweep: Declaration) -> list[str]:
    """Keep the declaration of a sweep as `sweep.json`; that of another sweep becomes ``sweep.json.earlier``.

    Parameters
    ----------
    directory : Path
        Directory of the sweep.
    sweep : Declaration
        The sweep.

    Returns
    -------
    list of str
        What was put aside, in a sentence; nothing if the directory is new or the declaration the same.

    Raises
    ------
    InputError
        If the `sweep.json` there is not one that a sweep has written, such as a configuration.
    OutputError
        If the file cannot be written.
    """
    path = directory / "sweep.json"
    notes: list[str] = []
    with claim(path, wait=True):
        if path.exists():
            if _damaged(path):
                notes = [f"{path} is damaged; it is now {put_aside(path).name} and is written again"]
                write_text(path, sweep.text)
                return notes
            found = written(path)
            if found is None:
                raise InputError(
                    "directory must be new or that of a sweep, because sweep.json is written there, got "
                    f"{directory}, whose sweep.json no sweep has written"
                )
            if declares(found, sweep):
                return notes
            notes = [f"{path} is of another configuration; it is now {put_aside(path, 'earlier').name}"]
        write_text(path, sweep.text)
    return notes


def declares(text: str, sweep: Declaration) -> bool:
    """Return whether a text is that of a declaration; earlier versions wrote empty sections too.

    Parameters
    ----------
    text : str
        JSON text, as `sweep.json` and the index hold it.
    sweep : Declaration
        The declaration.

    Returns
    -------
    bool
        True if both declare the same sweep.
    """
    try:
        sections = json.loads(text)
    except (TypeError, ValueError):
        return False
    if isinstance(sections, dict):
        sections = {name: section for name, section in sections.items() if section}
    return bool(sections == json.loads(sweep.text))


def _damaged(path: Path) -> bool:
    """Return whether a `sweep.json` is no JSON at all, such as one that a full disk or a crash cut off."""
    try:
        json.loads(path.read_text(encoding="utf-8"))
    except (OSError, RecursionError):
        return False
    except ValueError:
        return True
    return False


def written(path: Path) -> str | None:
    """Return the text of a `sweep.json` that a sweep has written, or None if it is of another origin."""
    try:
        text = path.read_text(encoding="utf-8")
        content: Any = json.loads(text)
        ours = (
            isinstance(content, dict) and content.keys() <= {*SECTIONS} and content.get("kind") in (*KINDS,)
        )
        return text if ours and text.strip() == canonical(content) else None
    except (OSError, ValueError, RecursionError):
        return None
