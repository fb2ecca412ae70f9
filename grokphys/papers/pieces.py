"""Pieces of slow computations on disk, from which an interrupted run continues.

A piece is a file `STORE/NAME/DIGITS/PIECE.npz`, where NAME is a recipe, or a family of recipes that share the
piece, and DIGITS change with the setting and with all code and libraries on which the arrays depend. A run
therefore never continues from pieces of other code, and leaves them where they are.
"""

import hashlib
import io
import json
import math
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grokphys.output import make_directory
from grokphys.papers.fingerprint import fingerprint
from physics.errors import FileFormatError
from physics.seeds import hear, hear_seeds
from physics.trajectory.locks import replace_as_a_whole
from physics.trajectory.provenance import made_with

if TYPE_CHECKING:
    from grokphys.papers.recipe import Run

SEEDS = "seeds that were used"
ORIGIN = "how it was made"
COMPUTES_NOTHING = ("grokphys.papers.recipe", "grokphys.papers.pieces", "analysis.plots")
"""Modules and packages that recipes import, and on which no number depends."""
DATE = "%Y-%m-%dT%H:%M:%SZ"
"""Format of dates, that of ISO 8601 in UTC."""


@dataclass(frozen=True)
class Piece:
    """How a piece was made.

    Attributes
    ----------
    version : str
        Version of GrokPhys, with the commit of a checkout.
    processor : str
        Processor, and GPU if there is one.
    seconds : float
        Duration of the computation.
    date : str
        Time at which it began, in the format `DATE`.
    new : bool
        Whether this run has computed it, and not read it.
    """

    version: str
    processor: str
    seconds: float
    date: str
    new: bool


def trains_on_gpu() -> bool:
    """Return whether trainings run on a GPU by default."""
    # Imported by name, because recipes that train nothing do not depend on PyTorch.
    return bool(import_module("nets.engines.threads").cuda_is_available())


def made_here() -> dict[str, str]:
    """Return what `made_with` does for simulations and trainings, with the name of the GPU if there is one.

    The GPU, on which trainings run by default, follows the name of the processor.
    """
    made = made_with("physics", "nets")
    if trains_on_gpu():
        gpu = import_module("torch").cuda.get_device_name()
        made = made | {"processor": f"{made['processor']}, {gpu}"}
    return made


def in_parts(
    run: "Run",
    count: int,
    sizes: tuple[int, int],
    make: Callable[[range], Mapping[str, Any]],
    name: str = "networks",
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


def piece_digits(setting: Any, make: Callable[..., Any], shift: int = 0) -> str:
    """Return the digits that tell the pieces of one setting and one code from others.

    Parameters
    ----------
    setting : object
        Setting of the run, whose representation as text must show everything that the arrays depend on.
    make : callable
        Function that computes a piece. The module that defines it, or that defines the function of a
        `functools.partial`, counts with all modules of GrokPhys that it imports, except for those that
        `COMPUTES_NOTHING` names.
    shift : int, default 0
        Number that is added to every seed.

    Returns
    -------
    str
        Sixteen hexadecimal digits.
    """
    while isinstance(make, partial):
        make = make.func
    code = fingerprint(make.__module__, without=COMPUTES_NOTHING)
    return hashlib.sha256(f"{code} {setting!r} {shift}".encode()).hexdigest()[:16]


def kept(path: Path, make: Callable[[], Mapping[str, Any]]) -> tuple[dict[str, NDArray[Any]], Piece]:
    """Return the arrays in a file, which are computed and stored first if the file does not exist.

    Seeds that the computation used are stored with the arrays. `hear_seeds` hears them in either case, so
    that the result of a continued run names all of its seeds.

    Parameters
    ----------
    path : Path
        File to read or to write, whose directory is made.
    make : callable
        Function without arguments that returns the arrays by name.

    Returns
    -------
    dict of str to ndarray
        The arrays by name.
    Piece
        How they were made.

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
        versions = made_here()
        began, date = time.perf_counter(), datetime.now(UTC).strftime(DATE)
        with hear_seeds() as seeds:
            made = {name: np.asarray(value) for name, value in make().items()}
        origin = {
            "version": versions["grokphys"],
            "processor": versions["processor"],
            "seconds": round(time.perf_counter() - began, 1),
            "date": date,
        }
        made[SEEDS] = np.array([str(seed) for seed in sorted(seeds)], dtype=str)  # of any size
        made[ORIGIN] = np.array(json.dumps(origin))
        replace_as_a_whole(path, lambda file: np.savez_compressed(file, allow_pickle=False, **made))
    try:
        content = io.BytesIO(path.read_bytes())
    except OSError as error:
        raise FileFormatError(f"cannot read the piece {path}: {error.strerror or error}") from error
    try:
        with zipfile.ZipFile(content) as archive:  # NumPy reads no further than a damaged header says
            if (damaged := archive.testzip()) is not None:
                raise ValueError(f"the checksum of {damaged} is wrong")
        content.seek(0)
        with np.load(content, allow_pickle=False) as stored:
            found = dict(stored)
        piece = Piece(**json.loads(str(found.pop(ORIGIN))), new=new)
        datetime.strptime(piece.date, DATE)
        if not (isinstance(piece.version, str) and isinstance(piece.processor, str)):
            raise TypeError("version and processor are no text")
        if not 0 <= piece.seconds < math.inf:
            raise ValueError("seconds are no duration")
        numbers = [int(seed) for seed in found.pop(SEEDS)]
    except Exception as error:  # zip, zlib, NumPy's header and JSON have errors of a dozen types
        raise FileFormatError(
            f"the piece {path} is damaged or of another origin; remove it to compute it again"
        ) from error
    hear(*numbers)
    return found, piece


def grouped(pieces: Iterable[Piece]) -> list[dict[str, Any]]:
    """Return what a result says of its pieces: one entry for each version and processor, in order of time.

    An entry has the "version", the "processor", the number of "pieces", and their "seconds" together.
    """
    found: dict[tuple[str, str], list[float]] = {}
    for one in sorted(pieces, key=lambda one: one.date):
        found.setdefault((one.version, one.processor), []).append(one.seconds)
    return [
        {"version": version, "processor": processor, "pieces": len(each), "seconds": round(sum(each), 1)}
        for (version, processor), each in found.items()
    ]
