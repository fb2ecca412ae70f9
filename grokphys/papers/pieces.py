"""Pieces of slow computations on disk, from which an interrupted run continues, and a digest of the code.

A piece is a file `STORE/NAME/DIGITS/PIECE.npz`, where NAME is a recipe, or a family of recipes that share the
piece, and DIGITS change with the setting, with the function that computes the arrays, and with the libraries.
A run therefore never continues from pieces of another setting, and leaves them where they are.
"""

import hashlib
import inspect
import io
import json
import textwrap
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache, partial
from importlib import import_module, metadata
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grokphys.output import make_directory, write_bytes
from physics.errors import FileFormatError
from physics.trajectory.provenance import made_with

if TYPE_CHECKING:
    from grokphys.papers.recipe import Run

SEEDS = "seeds that were used"
ORIGIN = "how it was made"
DATE = "%Y-%m-%dT%H:%M:%SZ"
"""Format of dates, that of ISO 8601 in UTC."""
GENERATION = 1
"""Number that is raised by hand if simulations, trainings or analyses of old pieces would give other numbers.

The functions that compute pieces, and the settings, are compared by their text; what these call is not.
"""
LIBRARIES = ("numba", "numpy", "scipy", "torch")
"""Libraries whose version may change a number."""
Piece = dict[str, Any]
"""How a piece was made: its "version" of GrokPhys, "processor", "seconds" and "date", and if it is "new"."""


def trains_on_gpu() -> bool:
    """Return whether trainings run on a GPU by default."""
    return bool(import_module("torch").cuda.is_available())


def made_here() -> dict[str, str]:
    """Return what `made_with` does for simulations and trainings, and the name of the GPU if there is one."""
    made = made_with("physics", "nets")
    if trains_on_gpu():
        gpu = import_module("torch").cuda.get_device_name()
        made = made | {"processor": f"{made['processor']}, {gpu}"}
    return made


@cache
def code_digest(*packages: str) -> str:
    """Return sixteen hexadecimal digits that change with the code of our packages and with libraries.

    By default all packages count. A stored result keeps the digits, so that `grokphys reproduce --all` knows
    whether it is up to date.
    """
    digest = hashlib.sha256(_versions().encode())
    root = Path(__file__).parents[2]
    for package in packages or ("physics", "nets", "analysis", "grokphys"):
        for path in sorted((root / package).rglob("*.py")):
            digest.update(f"{path.relative_to(root)}\n{path.read_text(encoding='utf-8')}".encode())
    return digest.hexdigest()[:16]


def _versions() -> str:
    return " ".join(f"{name} {metadata.version(name)}" for name in LIBRARIES)


def piece_digits(setting: Any, make: Callable[..., Any], shift: int = 0, versions: str = "") -> str:
    """Return the sixteen hexadecimal digits that tell the pieces of one setting and one code from others.

    Parameters
    ----------
    setting : object
        Setting of the run, whose representation as text must show everything that the arrays depend on.
    make : callable
        Function that computes a piece, or a `functools.partial` of it, of which the text counts.
    shift : int, default 0
        Number that is added to every seed.
    versions : str, optional
        Names and versions of the `LIBRARIES`; by default of those that are installed.
    """
    while isinstance(make, partial):
        make = make.func
    text = textwrap.dedent(inspect.getsource(make))
    parts = (text, repr(setting), str(shift), str(GENERATION), versions or _versions())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def in_parts(
    run: "Run", count: int, sizes: tuple[int, int], make: Callable[[range], Any], name: str = "networks"
) -> Iterator[dict[str, NDArray[Any]]]:
    """Yield the arrays of `count` networks part by part, each of which `run.keep` computes or has stored.

    Parameters
    ----------
    run : Run
        Run of a recipe.
    count : int
        Number of networks, or of other things.
    sizes : pair of int
        Largest number of networks in a part on a CPU, where a few take minutes, and on a GPU, which takes
        nearly as long for a few as for many. Stored parts of either size are used on both, so that a run can
        go on on another machine.
    make : callable
        Function of a range of networks that returns their arrays by name.
    name : str, default "networks"
        What the names of the pieces begin with.
    """

    def piece(part: range) -> str:
        return f"{name}-{part.start}-to-{part.stop - 1}"

    folder, first = run.folder(make), 0
    while first < count:
        parts = [range(first, min(first + size, count)) for size in sizes]
        stored = [part for part in parts if folder and (folder / f"{piece(part)}.npz").exists()]
        part = max(stored, key=len) if stored else parts[trains_on_gpu()]
        yield run.keep(piece(part), partial(make, part))
        first = part.stop


def kept(
    path: Path, make: Callable[[], Mapping[str, Any]], seeds: set[int]
) -> tuple[dict[str, NDArray[Any]], Piece]:
    """Return the arrays in a file, which are computed and stored first if the file does not exist.

    Parameters
    ----------
    path : Path
        File to read or to write, whose directory is made.
    make : callable
        Function without arguments that returns the arrays by name.
    seeds : set of int
        Seeds of the run, to which `make` adds those that it uses. They are stored with the arrays, and added
        again if the file is read, so that the result of a continued run names all of its seeds.

    Returns
    -------
    dict of str to ndarray
        The arrays by name.
    dict
        How they were made; see `Piece`.

    Raises
    ------
    FileFormatError
        If the file exists and cannot be read.
    OutputError
        If the file cannot be written; of its directory, this is found out before anything is computed.
    """
    new = not path.exists()
    if new:
        make_directory(path.parent)
        versions, earlier, content = made_here(), set(seeds), io.BytesIO()
        began, date = time.perf_counter(), datetime.now(UTC).strftime(DATE)
        seeds.clear()
        made = {name: np.asarray(value) for name, value in make().items()}
        origin = {"version": versions["grokphys"], "processor": versions["processor"], "date": date}
        seconds = round(time.perf_counter() - began, 1)
        made[SEEDS] = np.array([str(seed) for seed in sorted(seeds)], dtype=str)  # of any size
        made[ORIGIN] = np.array(json.dumps(origin | {"seconds": seconds}))
        seeds |= earlier
        np.savez_compressed(content, allow_pickle=False, **made)
        write_bytes(path, content.getvalue())
    try:
        with zipfile.ZipFile(path) as archive:  # NumPy reads no further than a damaged header says
            if (damaged := archive.testzip()) is not None:
                raise ValueError(f"the checksum of {damaged} is wrong")
        with np.load(path, allow_pickle=False) as stored:
            arrays = dict(stored)
        piece = json.loads(str(arrays.pop(ORIGIN))) | {"new": new}
        seeds |= {int(seed) for seed in arrays.pop(SEEDS)}
    except OSError as error:
        raise FileFormatError(f"cannot read the piece {path}: {error.strerror or error}") from error
    except Exception as error:  # zip, zlib, NumPy's header and JSON have errors of a dozen types
        raise FileFormatError(
            f"the piece {path} is damaged or of another origin; remove it to compute it again"
        ) from error
    return arrays, piece


def grouped(pieces: Iterable[Piece]) -> list[dict[str, Any]]:
    """Return what a result says of its pieces: one entry for each version and processor, in order of time.

    An entry has the "version", the "processor", the number of "pieces", and their "seconds" together.
    """
    groups: dict[tuple[str, str], list[float]] = {}
    for piece in sorted(pieces, key=itemgetter("date")):
        groups.setdefault((piece["version"], piece["processor"]), []).append(piece["seconds"])
    return [
        {"version": version, "processor": processor, "pieces": len(each), "seconds": round(sum(each), 1)}
        for (version, processor), each in groups.items()
    ]
