"""Output of the commands: tables, text and figures. Each file is written completely or not at all."""

import csv
import importlib.util
import io
import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from physics.errors import OutputError
from physics.trajectory.locks import replace_as_a_whole
from physics.trajectory.provenance import plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Budget = Literal["quick", "default", "paper"]
FigureFormat = Literal["png", "svg", "pdf"]
Rows = Sequence[Mapping[str, Any]]


def write_csv(path: Path, rows: Rows) -> Path:
    """Write rows as CSV, with columns in the order in which they first occur, and return the path.

    A value that a row lacks is an empty cell. An `OutputError` says why the file cannot be written.
    """
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, _columns(rows), restval="")
    writer.writeheader()
    writer.writerows(rows)
    return write_bytes(path, _encoded(text.getvalue()))


def write_table(path: Path, rows: Rows) -> Path:
    """Write rows as Parquet if the name ends in .parquet, and otherwise as CSV; return the path.

    A column of several types is text in Parquet. Call `refuse_table` before a long computation, so that a
    wrong name is refused at once. An `OutputError` says why the file cannot be written.
    """
    if path.suffix != ".parquet":
        return write_csv(path, rows)
    import pyarrow
    from pyarrow import parquet

    def column(values: list[Any]) -> Any:
        try:
            return pyarrow.array(values)
        except (TypeError, ValueError, OverflowError):  # of several types, too large, or no text in UTF-8
            return pyarrow.array(
                [None if value is None else _encoded(str(value)).decode() for value in values]
            )

    columns = {name: column([row.get(name) for row in rows]) for name in _columns(rows)}
    buffer = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), buffer)
    return write_bytes(path, buffer.getvalue())


def _columns(rows: Rows) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def refuse_table(path: Path | None, overwrite: bool) -> None:
    """Raise an `OutputError` if a table, if there is one, cannot have this name, or exists and must stay."""
    if path is None:
        return
    refuse_existing(path, overwrite)
    if path.suffix not in (".csv", ".parquet"):
        raise OutputError(f"cannot write {path}: the name of a table must end in .csv or .parquet")
    if path.suffix == ".parquet" and importlib.util.find_spec("pyarrow") is None:
        raise OutputError(f"cannot write {path}: Parquet needs pyarrow: pip install 'grokphys[parquet]'")


def write_text(path: Path, text: str) -> Path:
    """Write text, which in the file ends in exactly one line feed, in one atomic step; return the path."""
    return write_bytes(path, _encoded(text.rstrip("\n") + "\n"))


def _encoded(text: str) -> bytes:
    """Return text in UTF-8, with an escape for each byte of a file name that is not UTF-8."""
    return text.encode(errors="backslashreplace")


def printable(text: object) -> str:
    r"""Return an object as text for a terminal, with ``\x1b`` in place of an escape character, and so on.

    All that `str.isprintable` does not count as printable is escaped as in Python, such as a line break, or a
    byte of a file name that is not UTF-8.
    """
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in str(text))


def json_text(content: Any, *, indent: int | None = 1) -> str:
    """Return content as JSON text; NaN and the infinities, which JSON does not have, become null.

    Parameters
    ----------
    content : object
        Numbers, text, truth values, None, paths and arrays, or lists and mappings of them.
    indent : int or None, default 1
        Number of spaces for each level; None writes one line.
    """
    return json.dumps(_finite(plain(content)), indent=indent, ensure_ascii=False, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_json(path: Path, content: Any) -> Path:
    """Write content that `json_text` accepts as indented JSON in one atomic step; return the path."""
    return write_text(path, json_text(content))


def save_figure(figure: "Figure", path: Path, *, dpi: float | None = None) -> Path:
    """Write a figure in the format that the name asks for, .png, .svg or .pdf, and return the path.

    The resolution `dpi` of a PNG in dots per inch is by default that of the style.
    """
    picture = io.BytesIO()
    figure.savefig(picture, format=path.suffix[1:], dpi=dpi)
    return write_bytes(path, picture.getvalue())


def write_bytes(path: Path, content: bytes) -> Path:
    """Write a file in one atomic step, so that no reader finds half of it, and return its path.

    Raises
    ------
    OutputError
        If the file cannot be written.
    """
    replace_as_a_whole(path, lambda file: file.write(content))
    return path


def put_aside(path: Path, ending: str = "damaged") -> Path:
    """Rename a file to NAME.ending, or NAME.ending-2 and so on, so that nothing is lost; return the path."""
    k, aside = 1, path.with_name(f"{path.name}.{ending}")
    while aside.exists():
        k, aside = k + 1, path.with_name(f"{path.name}.{ending}-{k + 1}")
    return path.replace(aside)


def make_directory(*paths: Path) -> None:
    """Create directories and their parents; an `OutputError` says why one of them cannot be created."""
    for path in paths:
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"cannot write to {path}: {error.strerror}") from error


def refuse_existing(path: Path, overwrite: bool, *, parents: bool = False) -> None:
    """Refuse a file that cannot be written, before any work is done.

    Parameters
    ----------
    path : Path
        File to write. If it exists and is not a regular file, such as a device, it is refused.
    overwrite : bool
        Whether a regular file that exists may be replaced.
    parents : bool, default False
        Whether directories that do not exist will be made.

    Raises
    ------
    OutputError
        If the file exists and may not be replaced, or its directory does not exist or cannot be written to.
    """
    refuse_special(path)
    if path.exists() and not overwrite:
        raise OutputError(f"{path} exists; choose another name or pass --overwrite")
    refuse_unwritable(path.absolute().parent, parents=parents)


def refuse_special(path: Path | None) -> None:
    """Raise an `OutputError` if an output file exists and is not a regular file, such as a device."""
    if path is not None and path.exists() and not path.is_file():
        raise OutputError(f"cannot write {path}: it exists and is not a regular file")


def refuse_unwritable(directory: Path, *, parents: bool = True) -> None:
    """Refuse a directory that cannot be written to, before any work is done.

    Parameters
    ----------
    directory : Path
        The directory.
    parents : bool, default True
        Whether it may be created later. The nearest directory that exists is then checked instead.

    Raises
    ------
    OutputError
        If the directory does not exist although `parents` is False, or cannot be written to.
    """
    place = directory.absolute()
    while parents and not os.path.lexists(place) and place != place.parent:
        place = place.parent
    if not place.is_dir():
        why = "not a directory" if os.path.lexists(place) else "no such directory"
        raise OutputError(f"cannot write to {directory}: {place} is {why}")
    if not os.access(place, os.W_OK):
        raise OutputError(f"cannot write to {directory}: permission denied")
