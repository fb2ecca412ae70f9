"""The index of a sweep: one xarray dataset with a row for each run, which is made from the files."""

import io
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from numpy.typing import NDArray

from grokphys.output import write_bytes
from grokphys.sweeps.config import Declaration, canonical
from grokphys.sweeps.pack import Pack, program
from physics.errors import FileFormatError
from physics.trajectory.stored import attach, scale

if TYPE_CHECKING:
    import xarray

SCHEMA, SCHEMA_VERSION = "grokphys-sweep", 1
FILTERS = {"compression": "gzip", "compression_opts": 1, "shuffle": True, "fletcher32": True}
Finals = Mapping[str, Mapping[str, NDArray[np.float64]]]
"""Last values (runs,) of the runs in each complete file, by the name of the file."""


def index_path(directory: Path, shard: str | None = None) -> Path:
    """Return the path of the index of a sweep, ``index.h5``, or of a shard ``i/n``, ``index-i-of-n.h5``."""
    return directory / ("index.h5" if shard is None else f"index-{shard.replace('/', '-of-')}.h5")


def write_index(path: Path, sweep: Declaration, packs: Sequence[Pack], finals: Finals) -> None:
    """Write the index of the runs of some packs in one step, so that no reader sees half of it.

    Runs of files that are not complete have NaN. An `OutputError` says that the index cannot be written.
    """
    rows = np.sort(np.concatenate([np.empty(0, np.int64), *(pack.rows for pack in packs)]).astype(np.int64))
    names = sorted({name for values in finals.values() for name in values})
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        file.attrs["schema"], file.attrs["schema_version"] = SCHEMA, str(SCHEMA_VERSION)
        file.attrs["kind"], file.attrs["declaration"] = sweep.kind, sweep.text
        file.attrs["program"] = program(sweep.kind)
        file.attrs["axes"], file.attrs["outcomes"] = canonical(sweep.axes), canonical(names)
        row = scale(file, "row", rows)
        for name, values in _columns(sweep, packs, finals, names).items():
            attach(_dataset(file, name, values[rows]), row)
        number = scale(file, "file_number", np.arange(len(packs)))
        attach(_dataset(file, "file_name", np.array([pack.name for pack in packs], object)), number)
    write_bytes(path, buffer.getvalue())


def program_of(path: Path) -> str | None:
    """Return the fingerprint of the program of an index, or None if there is none that can be read."""
    try:
        with h5py.File(path, "r") as file:
            return str(file.attrs["program"])
    except (OSError, KeyError):
        return None


def open_sweep(path: str | os.PathLike[str], *, unstack: bool = False) -> "xarray.Dataset":
    """Read the results of `grokphys sweep` as one xarray dataset.

    Parameters
    ----------
    path : path
        The directory of a sweep, or an index file in it, such as that of a shard.
    unstack : bool, default False
        Whether to spread the rows over the axes of the sweep and the runs, such as ``(learning_rate,
        weight_decay, run)``. By default there is one dimension, ``row``. An axis that has the value null has
        the coordinate NaN for it.

    Returns
    -------
    xarray.Dataset
        One row for each run. Its coordinates are `cell` (number of the combination of parameters), `run` (its
        number in the seed) and the parameters in which cells differ. Its variables are `file` and `member`,
        the name of the trajectory file and the index of the run in it; `complete`; and the value of every
        scalar observable at the last step. That value is NaN if a run is not complete, and, except for
        `status` and the steps to thresholds, if a run has diverged.

    Raises
    ------
    FileNotFoundError
        If there is no index.
    FileFormatError
        If the file is not the index of a sweep, is damaged, or was written by a newer version of GrokPhys.
    ImportError
        If xarray or h5netcdf is not installed.

    Examples
    --------
    >>> import grokphys
    >>> sweep = grokphys.open_sweep("results/sweep/networks", unstack=True)  # doctest: +SKIP
    >>> sweep["validation_accuracy"].mean("run")  # doctest: +SKIP
    """
    import xarray

    path = index_path(Path(path)) if Path(path).is_dir() else Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no index {path}; grokphys sweep writes it")
    try:
        data = xarray.load_dataset(path, engine="h5netcdf").drop_vars("row")
        version, axes, last = (
            json.loads(data.attrs[name]) for name in ("schema_version", "axes", "outcomes")
        )
    except (OSError, KeyError, ValueError, RuntimeError) as error:
        raise FileFormatError(
            f"{path} is damaged or no index of a sweep ({error}); grokphys sweep makes it from the files"
        ) from None
    if version > SCHEMA_VERSION:
        raise FileFormatError(
            f"{path} has schema version {version}; this version of GrokPhys reads up to {SCHEMA_VERSION}, "
            "please upgrade"
        )
    data["file"] = ("row", data["file_name"].values[data["file"].values])
    data = data.drop_vars(["file_name", "file_number"])
    data = data.set_coords(
        [name for name in data.data_vars if name not in {*last, "file", "member", "complete"}]
    )
    if not unstack:
        return data
    if not axes:
        return data.swap_dims(row="run")
    # By their places, because an index of several levels has no place for NaN.
    values, places = zip(*(np.unique(data[name].values, return_inverse=True) for name in axes), strict=True)
    data = data.assign_coords({name: ("row", place) for name, place in zip(axes, places, strict=True)})
    data = data.set_index(row=[*axes, "run"]).unstack("row")
    return data.assign_coords(dict(zip(axes, values, strict=True)))


def _columns(
    sweep: Declaration, packs: Sequence[Pack], finals: Finals, outcomes: Sequence[str]
) -> dict[str, NDArray[Any]]:
    """Return every column of the index by name, with one entry for each run of the sweep."""
    cells = sweep.cells
    lengths = [len(cell.numbers) for cell in cells]
    columns: dict[str, NDArray[Any]] = {
        "cell": np.repeat(np.arange(len(cells)), lengths),
        "run": np.concatenate([np.array(cell.numbers, np.int64) for cell in cells]),
        "file": np.zeros(sum(lengths), np.int64),
        "member": np.zeros(sum(lengths), np.int64),
        "complete": np.zeros(sum(lengths), bool),
    }
    for name in dict.fromkeys(name for cell in cells for name in cell.coordinates):
        places = [cell.coordinates.get(name, cell.parameters.get(name)) for cell in cells]
        columns[name] = np.repeat(_array(places), lengths)
    columns |= {name: np.full(sum(lengths), np.nan) for name in outcomes}
    for k, pack in enumerate(packs):
        columns["file"][pack.rows], columns["member"][pack.rows] = k, np.arange(len(pack.rows))
        columns["complete"][pack.rows] = pack.name in finals
        for name, values in finals.get(pack.name, {}).items():
            columns[name][pack.rows] = values
    return columns


def _array(values: list[Any]) -> NDArray[Any]:
    """Return the values that a parameter has in all cells as one array, of one kind of number or of text."""
    kinds = {type(value) for value in values}
    if len(kinds) == 1 and kinds <= {bool, int, float}:
        return np.array(values)
    if kinds <= {int, float, type(None)}:
        return np.array([np.nan if value is None else value for value in values], np.float64)
    return np.array([value if isinstance(value, str) else canonical(value) for value in values], object)


def _dataset(file: h5py.File, name: str, values: NDArray[Any]) -> h5py.Dataset:
    """Store a column of an index in the form that xarray reads, and return its dataset."""
    if values.dtype == object:
        return file.create_dataset(name, data=values, dtype=h5py.string_dtype())
    stored = values.astype(np.int8) if values.dtype == bool else values
    filters = FILTERS if len(values) else {}  # an empty dataset has no chunks
    dataset = file.create_dataset(name, data=stored, **filters)
    if values.dtype == bool:
        dataset.attrs["dtype"] = "bool"
    return dataset
