"""The index of a sweep: one xarray dataset with a row for each run, which is built from the files."""

import contextlib
import hashlib
import io
import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from numpy.typing import NDArray

from grokphys.output import put_aside, write_bytes, write_text
from grokphys.sweeps.config import KINDS, SECTIONS, Declaration, canonical, declaration
from grokphys.sweeps.pack import Pack, chosen_packs, program
from grokphys.sweeps.work import Finals, Stamp, read_complete, stamp_of
from physics.errors import FileFormatError, InputError
from physics.trajectory.h5md import attach, scale
from physics.trajectory.locks import claim

if TYPE_CHECKING:
    import xarray

SCHEMA, SCHEMA_VERSION = "grokphys-sweep", 1
DIGEST = hashlib.sha256().digest_size
"""Number of bytes at the end of an index, after those of HDF5, that hold their SHA-256 digest."""
FILTERS = {"compression": "gzip", "compression_opts": 1, "shuffle": True, "fletcher32": True}


class DamagedIndexError(FileFormatError):
    """An index is damaged. It is made again from the files of the sweep."""


@dataclass
class Known:
    """Files of a sweep that are known to be complete, each by its name.

    Attributes
    ----------
    finals : dict of str to Finals
        Final values of the runs in each file.
    stamps : dict of str to Stamp
        Size in bytes and time of the last change of each file in nanoseconds.
    """

    finals: dict[str, Finals] = field(default_factory=dict)
    stamps: dict[str, Stamp] = field(default_factory=dict)

    def add(self, name: str, finals: Finals, stamp: Stamp) -> None:
        """Add a complete file with the final values (runs,) of its runs, and its stamp."""
        self.finals[name], self.stamps[name] = finals, stamp


def index_path(directory: Path, shard: str | None = None) -> Path:
    """Return the path of the index of a sweep, ``index.h5``, or of a shard ``i/n``, ``index-i-of-n.h5``."""
    return directory / ("index.h5" if shard is None else f"index-{shard.replace('/', '-of-')}.h5")


def read_known(directory: Path, sweep: Declaration) -> tuple[Known, list[str]]:
    """Collect what the indices of a sweep and of its shards say about files that have not changed since.

    Parameters
    ----------
    directory : Path
        Directory of the sweep.
    sweep : Declaration
        The sweep.

    Returns
    -------
    Known
        Complete files.
    list of str
        Problems of an index, in sentences.

    Raises
    ------
    FileFormatError
        If an index is of a newer version, and must not be replaced.
    """
    known, notes = Known(), []
    for path in sorted([*directory.glob("index.h5"), *directory.glob("index-*-of-*.h5")]):
        try:
            attributes, columns = _read(path)
        except DamagedIndexError as error:
            notes.append(f"{error}; it is made again from the files")
            continue
        names, stamps = columns["file_name"].tolist(), columns["files/stamp"].tolist()
        if path == index_path(directory) and not _declares(attributes["declaration"], sweep):
            notes.append(f"{path} is of another configuration; it is made again for this one")
        if attributes["program"] != program(sweep.kind):
            notes.append(
                f"{path} and its {len(names)} files are of other code or other libraries; the files stay, "
                "and the runs are made again under other names"
            )
        complete = {name: tuple(stamp) for name, stamp in zip(names, stamps, strict=True) if stamp[0] >= 0}
        changed = [name for name, stamp in complete.items() if stamp_of(directory / name) != stamp]
        if changed:
            notes.append(
                f"{path} disagrees with {len(changed)} of its {len(complete)} files ({changed[0]}"
                f"{', …' if changed[1:] else ''}); it is made again from the files"
            )
        order = np.lexsort((columns["member"], columns["file"]))
        starts = np.searchsorted(columns["file"][order], np.arange(len(names) + 1))
        for number, name in enumerate(names):
            if name in complete and name not in changed:
                rows = order[starts[number] : starts[number + 1]]
                finals = {key: columns[key][rows] for key in json.loads(attributes["outcomes"])}
                known.add(name, finals, complete[name])
    return known, notes


def write_index(path: Path, sweep: Declaration, packs: list[Pack], known: Known) -> None:
    """Write the index of the runs of some packs in one step, so that no reader sees half of it.

    An index of another declaration is kept as ``NAME.earlier``, and a damaged one as ``NAME.damaged``.

    Parameters
    ----------
    path : Path
        Index file, which is replaced.
    sweep : Declaration
        The sweep.
    packs : list of Pack
        Packs whose runs the index lists.
    known : Known
        Complete files. Runs in other files have NaN.

    Raises
    ------
    OutputError
        If the index cannot be written.
    """
    rows = np.sort(np.concatenate([np.empty(0, np.int64), *(pack.rows for pack in packs)]).astype(np.int64))
    stamps = np.array([known.stamps.get(pack.name, (-1, -1)) for pack in packs], np.int64).reshape(-1, 2)
    buffer = io.BytesIO()
    with h5py.File(buffer, "w", libver=("v108", "v108")) as file:
        file.attrs["schema"], file.attrs["schema_version"] = SCHEMA, SCHEMA_VERSION
        file.attrs["kind"], file.attrs["declaration"] = sweep.kind, sweep.text
        file.attrs["program"] = program(sweep.kind)
        file.attrs["axes"] = canonical(sweep.axes)
        file.attrs["outcomes"] = canonical(_outcome_names(packs, known))
        row = scale(file, "row", rows)
        for name, values in _columns(sweep, packs, known).items():
            attach(_dataset(file, name, values[rows]), row)
        number = scale(file, "file_number", np.arange(len(packs)))
        attach(_dataset(file, "file_name", np.array([pack.name for pack in packs], object)), number)
        part = scale(file.create_group("files"), "part", np.arange(2))
        attach(_dataset(file, "files/stamp", stamps), number, part)
    with claim(path, wait=True):
        with contextlib.suppress(FileNotFoundError):
            try:
                if not _declares(_read(path)[0]["declaration"], sweep):
                    put_aside(path, "earlier")
            except DamagedIndexError:  # or of another program: kept too
                put_aside(path)
        content = buffer.getvalue()
        write_bytes(path, content + hashlib.sha256(content).digest())


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
        If the file is not the index of a sweep, was written by a newer version of GrokPhys, or is damaged and
        cannot be made again from the files of the sweep.
    ImportError
        If xarray or h5netcdf is not installed.

    Examples
    --------
    >>> import grokphys
    >>> sweep = grokphys.open_sweep("results/sweep/networks", unstack=True)  # doctest: +SKIP
    >>> sweep["validation_accuracy"].mean("run")  # doctest: +SKIP
    """
    try:
        import xarray
    except ImportError:
        raise ImportError("open_sweep needs xarray: pip install 'grokphys[cluster]'") from None
    path = index_path(Path(path)) if Path(path).is_dir() else Path(path)
    try:
        attributes, _ = _read(path)
    except DamagedIndexError:
        _make_again(path)
        attributes, _ = _read(path)
    axes = json.loads(attributes["axes"])
    data = xarray.load_dataset(io.BytesIO(_content(path)), engine="h5netcdf").drop_vars("row")
    data["file"] = ("row", data["file_name"].values[data["file"].values])
    data = data.drop_vars(["file_name", "file_number"])
    outcomes = {*json.loads(attributes["outcomes"]), "file", "member", "complete"}
    data = data.set_coords([name for name in data.data_vars if name not in outcomes])
    if not unstack:
        return data
    if not axes:
        return data.swap_dims(row="run")
    # By their places, because an index of several levels has no place for NaN.
    values, places = zip(*(np.unique(data[name].values, return_inverse=True) for name in axes), strict=True)
    data = data.assign_coords({name: ("row", place) for name, place in zip(axes, places, strict=True)})
    data = data.set_index(row=[*axes, "run"]).unstack("row")
    return data.assign_coords(dict(zip(axes, values, strict=True)))


def _columns(sweep: Declaration, packs: list[Pack], known: Known) -> dict[str, NDArray[Any]]:
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
    columns |= {name: np.full(sum(lengths), np.nan) for name in _outcome_names(packs, known)}
    for k, pack in enumerate(packs):
        columns["file"][pack.rows], columns["member"][pack.rows] = k, np.arange(len(pack.rows))
        columns["complete"][pack.rows] = pack.name in known.finals
        for name, values in known.finals.get(pack.name, {}).items():
            columns[name][pack.rows] = values
    return columns


def _outcome_names(packs: list[Pack], known: Known) -> list[str]:
    return sorted({name for pack in packs for name in known.finals.get(pack.name, {})})


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
    filters = FILTERS if len(values) else {}  # an empty dataset has no chunks
    if values.dtype == bool:
        dataset = file.create_dataset(name, data=values.astype(np.int8), **filters)
        dataset.attrs["dtype"] = "bool"
        return dataset
    return file.create_dataset(name, data=values, **filters)


def _content(path: Path) -> bytes:
    """Return the bytes of an index in HDF5 without the digest that follows them.

    HDF5 hangs or crashes on some damaged files, so it gets none whose digest is wrong.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no index {path}; grokphys sweep writes it")
    written = path.read_bytes()
    content, digest = written[:-DIGEST], written[-DIGEST:]
    if hashlib.sha256(content).digest() != digest:
        raise DamagedIndexError(f"{path} is damaged: its content is not what was written")
    return content


def _read(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the attributes and all columns of an index, whose digest is verified.

    Raises
    ------
    FileNotFoundError
        If there is no index.
    FileFormatError
        If the file is damaged, of another program, or of a newer version.
    """
    content = _content(path)
    try:
        with h5py.File(io.BytesIO(content), "r") as file:
            attributes = dict(file.attrs)
            version = int(attributes["schema_version"])
            if version > SCHEMA_VERSION:
                raise FileFormatError(
                    f"{path} has schema version {version}; this version of GrokPhys reads up to "
                    f"{SCHEMA_VERSION}, please upgrade"
                )
            columns = {name: _values(file[name]) for name in file if name != "files"}
            return attributes, columns | {"files/stamp": _values(file["files/stamp"])}
    except FileFormatError:
        raise
    except (OSError, ValueError, TypeError, LookupError, RuntimeError) as error:
        raise DamagedIndexError(f"{path} is damaged ({error})") from None


def _values(dataset: h5py.Dataset) -> NDArray[Any]:
    if h5py.check_string_dtype(dataset.dtype) is not None:
        return np.asarray(dataset.asstr()[:], object)
    return np.asarray(dataset[:], bool if dataset.attrs.get("dtype") == "bool" else None)


def _make_again(path: Path) -> None:
    """Make a damaged index again from the files of its sweep, without running anything.

    A FileFormatError says what to do if there is no `sweep.json`, or no file that this program would make.
    """
    directory = path.absolute().parent
    text = _written(directory / "sweep.json")
    part = re.fullmatch(r"index(?:-(\d+)-of-(\d+))?\.h5", path.name)
    known, packs = Known(), []
    if text is not None and part is not None:
        sweep = declaration(json.loads(text))
        packs = chosen_packs(sweep, f"{part[1]}/{part[2]}" if part[1] else None)
    for pack in packs:
        if (directory / pack.name).exists():
            outcome = read_complete(pack, directory / pack.name)
            if outcome.stamp is not None:
                known.add(pack.name, outcome.finals, outcome.stamp)
    if not known.finals:
        raise FileFormatError(f"{path} is damaged; run grokphys sweep again to make it from the files")
    write_index(path, sweep, packs, known)


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
        if path.exists() and _damaged(path):
            notes = [f"{path} is damaged; it is now {put_aside(path).name} and is written again"]
        elif path.exists():
            text = _written(path)
            if text is None:
                raise InputError(
                    "directory must be new or that of a sweep, because sweep.json is written there, got "
                    f"{directory}, whose sweep.json no sweep has written"
                )
            if _declares(text, sweep):
                return notes
            notes = [f"{path} is of another configuration; it is now {put_aside(path, 'earlier').name}"]
        write_text(path, sweep.text)
    return notes


def _declares(text: str, sweep: Declaration) -> bool:
    """Return whether a text, as `sweep.json` and the index hold it, is that of a declaration."""
    return text.strip() == sweep.text


def _damaged(path: Path) -> bool:
    """Return whether a `sweep.json` is no JSON at all, such as one that a full disk or a crash cut off."""
    try:
        json.loads(path.read_text(encoding="utf-8"))
    except (OSError, RecursionError):
        return False
    except ValueError:
        return True
    return False


def _written(path: Path) -> str | None:
    """Return the text of a `sweep.json` that a sweep has written, or None if it is of another origin."""
    try:
        text = path.read_text(encoding="utf-8")
        content: Any = json.loads(text)
    except (OSError, ValueError, RecursionError):
        return None
    ours = isinstance(content, dict) and content.keys() <= {*SECTIONS} and content.get("kind") in (*KINDS,)
    return text if ours and text.strip() == canonical(content) else None
