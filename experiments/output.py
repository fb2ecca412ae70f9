"""What commands write: tables as CSV, text, figures; each file is there whole or not at all."""

import csv
import importlib.util
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from physics.errors import OutputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Budget = Literal["quick", "default", "paper"]


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write rows under the names of their columns, in the order in which these first occur."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, restval="")
    writer.writeheader()
    writer.writerows(rows)
    return write_bytes(path, text.getvalue().encode())


def write_table(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write rows as CSV or Parquet, by the ending of the name; call `refuse_table` before the work."""
    if path.suffix != ".parquet":
        return write_csv(path, rows)
    import pyarrow
    from pyarrow import parquet

    columns = list(dict.fromkeys(name for row in rows for name in row))
    table = pyarrow.table({name: [row.get(name) for row in rows] for name in columns})
    buffer = io.BytesIO()
    parquet.write_table(table, buffer)
    return write_bytes(path, buffer.getvalue())


def refuse_table(path: Path, overwrite: bool) -> None:
    """Refuse a table that exists, or whose ending says a format that cannot be written."""
    refuse_existing(path, overwrite)
    if path.suffix not in (".csv", ".parquet"):
        raise OutputError(f"cannot write {path}: the name of a table ends in .csv or .parquet")
    if path.suffix == ".parquet" and importlib.util.find_spec("pyarrow") is None:
        raise OutputError(f"cannot write {path}: Parquet needs pyarrow: pip install 'grokphys[parquet]'")


def write_text(path: Path, text: str) -> Path:
    """Write text, ended by a line feed."""
    return write_bytes(path, (text.rstrip("\n") + "\n").encode())


def save_figure(figure: "Figure", path: Path) -> Path:
    """Write a figure as PNG."""
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    return write_bytes(path, picture.getvalue())


def write_bytes(path: Path, content: bytes) -> Path:
    """Write a file in one atomic step, or say in a sentence why that cannot be."""
    partial = path.with_name(path.name + ".partial")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise OutputError(f"cannot write {path}: {error.strerror}") from error
    return path


def make_directory(path: Path) -> None:
    """Make a directory and those above it, or say in a sentence why that cannot be."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot write to {path}: {error.strerror}") from error


def refuse_existing(path: Path, overwrite: bool, *, parents: bool = False) -> None:
    """Refuse a file that exists, unless it is to be replaced, and a directory that does not."""
    if path.exists() and (path.is_dir() or not overwrite):
        raise OutputError(f"{path} exists; choose another name or pass --overwrite")
    if not parents and not path.absolute().parent.is_dir():
        raise OutputError(f"cannot write {path}: the directory {path.absolute().parent} does not exist")
