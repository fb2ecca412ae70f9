"""Output of the commands: tables, text and figures. Each file is written completely or not at all."""

import contextlib
import csv
import importlib.util
import io
import json
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from physics.errors import OutputError
from physics.trajectory.locks import replace_as_a_whole
from physics.trajectory.provenance import plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Budget = Literal["quick", "default", "paper"]
FigureFormat = Literal["png", "svg", "pdf"]


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write rows as CSV, with columns in the order in which they first occur.

    Parameters
    ----------
    path : Path
        File to write, which is replaced.
    rows : sequence of mapping of str to object
        Values by the name of the column; a missing one is an empty cell.

    Returns
    -------
    Path
        The path of the file.

    Raises
    ------
    OutputError
        If the file cannot be written.
    """
    columns = _columns(rows)
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, restval="")
    writer.writeheader()
    writer.writerows(rows)
    return write_bytes(path, _encoded(text.getvalue()))


def write_table(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write rows as Parquet if the name ends in .parquet, and otherwise as CSV.

    Call `refuse_table` before a long computation, so that a wrong name is refused at once.

    Parameters
    ----------
    path : Path
        File to write, which is replaced.
    rows : sequence of mapping of str to object
        Values by the name of the column; a missing one is an empty cell of CSV, or null in Parquet. A column
        whose values have several types is text in Parquet.

    Returns
    -------
    Path
        The path of the file.

    Raises
    ------
    OutputError
        If the file cannot be written.
    """
    if path.suffix != ".parquet":
        return write_csv(path, rows)
    import pyarrow
    from pyarrow import parquet

    def stored(value: Any) -> Any:
        return _encoded(value).decode() if isinstance(value, str) else value

    def column(values: list[Any]) -> Any:
        try:
            return pyarrow.array(values)
        except (TypeError, ValueError, OverflowError):  # of several types, or too large
            return pyarrow.array([None if value is None else str(value) for value in values])

    table = pyarrow.table(
        {stored(name): column([stored(row.get(name)) for row in rows]) for name in _columns(rows)}
    )
    buffer = io.BytesIO()
    parquet.write_table(table, buffer)
    return write_bytes(path, buffer.getvalue())


def _columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def refuse_table(path: Path, overwrite: bool) -> None:
    """Refuse a table that cannot be written, before any work is done.

    Parameters
    ----------
    path : Path
        Name of the table.
    overwrite : bool
        Whether to replace a file that exists.

    Raises
    ------
    OutputError
        If the file exists, its directory cannot be written to, the name does not end in .csv or .parquet, or
        Parquet needs a package that is not installed.
    """
    refuse_existing(path, overwrite)
    if path.suffix not in (".csv", ".parquet"):
        raise OutputError(f"cannot write {path}: the name of a table must end in .csv or .parquet")
    if path.suffix == ".parquet" and importlib.util.find_spec("pyarrow") is None:
        raise OutputError(f"cannot write {path}: Parquet needs pyarrow: pip install 'grokphys[parquet]'")


def write_text(path: Path, text: str) -> Path:
    """Write text to a file in one atomic step, so that no reader finds half of it.

    Parameters
    ----------
    path : Path
        File to write, which is replaced.
    text : str
        The text. In the file it ends in exactly one line feed.

    Returns
    -------
    Path
        The path of the file.

    Raises
    ------
    OutputError
        If the file cannot be written.
    """
    return write_bytes(path, _encoded(text.rstrip("\n") + "\n"))


def _encoded(text: str) -> bytes:
    """Return text in UTF-8, with an escape for each byte of a file name that is not UTF-8."""
    return text.encode(errors="backslashreplace")


def printable(text: object) -> str:
    r"""Return an object as text for a terminal, with ``\x1b`` in place of an escape character, and so on.

    Parameters
    ----------
    text : object
        Text that may come from a file or be the name of one.

    Returns
    -------
    str
        The text, in which all that `str.isprintable` does not count as printable is escaped as in Python,
        such as a line break, or a byte of a file name that is not UTF-8.
    """
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in str(text))


def json_text(content: Any, *, indent: int | None = 1) -> str:
    """Return content as JSON text; NaN and the infinities, which JSON does not have, become null.

    Parameters
    ----------
    content : object
        Numbers, text, truth values, None, paths and arrays, or lists and mappings of them.
    indent : int or None, default 1
        Number of spaces for each level; None writes one line.

    Returns
    -------
    str
        The text, in which letters outside ASCII stay as they are.
    """
    return json.dumps(_finite(plain(content)), indent=indent, ensure_ascii=False, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_json(path: Path, content: Any) -> Path:
    """Write content as indented JSON in one atomic step.

    Parameters
    ----------
    path : Path
        File to write, which is replaced.
    content : object
        Content that `json_text` accepts. NaN and the infinities become null.

    Returns
    -------
    Path
        The path of the file.

    Raises
    ------
    OutputError
        If the file cannot be written.
    """
    return write_text(path, json_text(content))


def save_figure(figure: "Figure", path: Path, *, dpi: float | None = None) -> Path:
    """Write a figure in the format that the name asks for: .png, .svg or .pdf.

    Parameters
    ----------
    figure : Figure
        The figure.
    path : Path
        File to write, which is replaced.
    dpi : float, optional
        Resolution of a PNG in dots per inch, by default that of the style.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    OutputError
        If the file cannot be written.
    """
    picture = io.BytesIO()
    figure.savefig(picture, format=path.suffix[1:], dpi=dpi)
    return write_bytes(path, picture.getvalue())


def write_bytes(path: Path, content: bytes) -> Path:
    """Write a file in one atomic step, so that no reader finds half of it.

    Parameters
    ----------
    path : Path
        File to write, which is replaced.
    content : bytes
        The content.

    Returns
    -------
    Path
        The path of the file.

    Raises
    ------
    OutputError
        If the file cannot be written.
    """
    replace_as_a_whole(path, lambda file: file.write(content))
    return path


def put_aside(path: Path, ending: str = "damaged") -> Path:
    """Rename a file, so that another one may take its place and nothing is lost.

    Parameters
    ----------
    path : Path
        The file.
    ending : str, default "damaged"
        What is added to its name after a full stop, with a number if there is such a file already.

    Returns
    -------
    Path
        The new path, which no other file had.
    """
    k, aside = 1, path.with_name(f"{path.name}.{ending}")
    while aside.exists():
        k, aside = k + 1, path.with_name(f"{path.name}.{ending}-{k + 1}")
    return path.replace(aside)


def make_directory(*paths: Path) -> None:
    """Create directories and their parents, or none of them.

    Parameters
    ----------
    *paths : Path
        Directories, which may exist.

    Raises
    ------
    OutputError
        If one of them cannot be created; those that were created before it are removed again.
    """
    made: list[Path] = []
    for path in paths:
        above = [one for one in (path, *path.parents) if not one.exists()]
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            for one in [*above, *reversed(made)]:
                with contextlib.suppress(OSError):
                    one.rmdir()
            raise OutputError(f"cannot write to {path}: {error.strerror}") from error
        made += reversed(above)


@contextlib.contextmanager
def directory_to_fill(path: Path) -> Iterator[None]:
    """Create a directory for a block of code, and remove it if the block fails without writing to it.

    Parameters
    ----------
    path : Path
        The directory, which may exist. Parents that do not exist are created, and removed in the same case.

    Raises
    ------
    OutputError
        If the directory cannot be created.
    """
    made = [one for one in (path, *path.parents) if not one.exists()]
    make_directory(path)
    try:
        yield
    except BaseException:
        for one in made:
            with contextlib.suppress(OSError):  # it is not empty
                one.rmdir()
        raise


def refuse_existing(path: Path, overwrite: bool, *, parents: bool = False) -> None:
    """Refuse a file that cannot be written, before any work is done.

    Parameters
    ----------
    path : Path
        File to write.
    overwrite : bool
        Whether a regular file that exists may be replaced. Anything else that exists, such as a device, may
        not.
    parents : bool, default False
        Whether directories that do not exist will be made.

    Raises
    ------
    OutputError
        If the file exists and may not be replaced, or its directory does not exist or cannot be written to.
    """
    if path.exists() and not path.is_file():
        raise OutputError(f"cannot write {path}: it exists and is not a regular file")
    if path.exists() and not overwrite:
        raise OutputError(f"{path} exists; choose another name or pass --overwrite")
    refuse_unwritable(path.absolute().parent, parents=parents)


def refuse_unwritable(directory: Path, *, parents: bool = True) -> None:
    """Refuse a directory that cannot be written to, before any work is done.

    Parameters
    ----------
    directory : Path
        The directory.
    parents : bool, default True
        Whether the directory and its parents may be created later. The nearest one that exists is then
        checked instead.

    Raises
    ------
    OutputError
        If the directory does not exist although `parents` is False, or the one that is checked is not a
        directory or cannot be written to.
    """
    place = directory.absolute()
    while parents and not place.exists() and not place.is_symlink() and place != place.parent:
        place = place.parent
    if place.is_symlink() and not place.exists():
        raise OutputError(f"cannot write to {directory}: {place} is a link that leads nowhere")
    if not place.exists():
        raise OutputError(f"cannot write to {directory}: the directory {directory} does not exist")
    if not place.is_dir():
        raise OutputError(f"cannot write to {directory}: {place} is not a directory")
    try:
        tempfile.TemporaryFile(dir=place).close()
    except OSError as error:
        raise OutputError(f"cannot write to {directory}: {error.strerror}") from None
