"""Files as trees of containers, numbers and `Stored` arrays, and tables of losses; no code in them runs."""

import contextlib
import csv
import importlib
import json
import math
import re
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nets.reading.pickles import Opaque, Stored, unpickled
from physics.errors import FileFormatError, InputError

CHECKPOINTS = (".pt", ".pth", ".ckpt", ".bin", ".pkl", ".pickle", ".safetensors")
ARRAYS = (".npy", ".npz", ".mat")
H5 = (".h5", ".h5md", ".hdf5")
DEFLATE = 1032
"""Largest number of bytes that can come out of one compressed byte of an .npz file."""
SAFETENSORS = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64",
               "I32": "int32", "I16": "int16", "I8": "int8", "U8": "uint8", "BOOL": "bool"}  # fmt: skip


def tree_of(path: Path) -> Any:
    """Return what a file holds: containers, numbers, texts, `Stored` arrays, and `Opaque` objects.

    A `FileFormatError` says why a file cannot be read, and an `InputError` that its ending is unknown.
    """
    readers: dict[str, Callable[[Path], Any]] = {
        ".npy": _npy, ".npz": _npz, ".mat": _mat, ".safetensors": _safetensors,
        **dict.fromkeys(H5, _hdf5), **dict.fromkeys(CHECKPOINTS[:-1], unpickled),
    }  # fmt: skip
    if path.suffix not in readers:
        raise InputError(f"path must be a directory or a file {', '.join(readers)}, got {path}")
    with reading(path):
        if not path.stat().st_size:
            raise FileFormatError("it is empty")
        return readers[path.suffix](path)


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Raise any error in this block as a `FileFormatError` that names the file and says what is wrong."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except InputError:
        raise
    except (FileFormatError, OSError) as error:
        if str(error).startswith(str(path)):
            raise
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise FileFormatError(f"{path} is not a readable {path.suffix} file: {reason}") from None
    except Exception:
        raise FileFormatError(
            f"{path} is not a readable {path.suffix} file: it is damaged, or of another program"
        ) from None


def _npy(path: Path) -> Any:
    return _numpy_array(path, partial(path.open, "rb"), path.stat().st_size, mapped=True)


def _npz(path: Path) -> dict[str, Any]:
    with zipfile.ZipFile(path) as archive:
        parts = {}
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            if name in parts:
                raise FileFormatError(f"it holds two arrays named {name!r}")
            size = min(info.file_size, DEFLATE * min(info.compress_size, path.stat().st_size))
            parts[name] = _numpy_array(path, partial(_member, path, info), size)
    return parts


@contextlib.contextmanager
def _member(path: Path, info: zipfile.ZipInfo) -> Iterator[Any]:
    with zipfile.ZipFile(path) as archive, archive.open(info) as file:
        yield file


def _numpy_array(path: Path, start: Callable[[], Any], size: int, mapped: bool = False) -> Any:
    """Read the header of an array, whose file `start` opens and which has at most `size` bytes."""
    with start() as file:
        first = np.lib.format.read_magic(file) == (1, 0)
        header = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
        sizes, fortran, kind = header(file)
        shape: tuple[int, ...] = tuple(map(int, sizes))
        if kind.hasobject:
            return unpickled(file.read())
        offset = file.tell()
    count: int = math.prod(shape)
    if min(shape, default=0) < 0 or count * kind.itemsize > size - offset:
        raise FileFormatError(f"its array has the shape {shape}, which is more than the file holds")

    def loaded() -> NDArray[Any]:
        with reading(path), start() as file:
            return np.asarray(np.lib.format.read_array(file, allow_pickle=False))

    def view() -> NDArray[Any]:
        return np.memmap(path, kind, "r", offset, shape, "F" if fortran else "C")

    whole = view if mapped and count else cache(loaded)
    return whole().item() if not shape else Stored(shape, kind.name, whole)


def _mat(path: Path) -> dict[str, Any]:
    from scipy.io import loadmat

    return {
        name: value.item() if value.size == 1 else _in_memory(value.ravel() if 1 in value.shape else value)
        for name, value in loadmat(path).items()
        if not name.startswith("__") and value.dtype.kind in "biuf"
    }


def _in_memory(values: NDArray[Any]) -> Stored:
    return Stored(values.shape, values.dtype.name, lambda: values)


def _safetensors(path: Path) -> dict[str, Any]:
    """Read the header of a file of Hugging Face's format: names, types, shapes and offsets as JSON."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > size - 8:
            raise FileFormatError("it is shorter than its header says")
        header = json.loads(file.read(length), object_pairs_hook=_no_name_twice)
    tensors: dict[str, Any] = {}
    for name, about in header.items():
        if name == "__metadata__":
            continue
        kind, shape = SAFETENSORS.get(about["dtype"], about["dtype"]), tuple(about["shape"])
        start, end = (8 + length + offset for offset in about["data_offsets"])
        dtype = np.dtype("uint16" if kind == "bfloat16" else kind if kind in SAFETENSORS.values() else "u1")
        known = kind in SAFETENSORS.values()
        if end > size or start < 8 + length or (known and math.prod(shape) * dtype.itemsize != end - start):
            raise FileFormatError(f"{name!r} of shape {shape} is more than the file holds")
        tensors[name] = Stored(shape, kind, partial(np.memmap, path, dtype, "r", start, shape))
    return tensors


def _no_name_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise FileFormatError("it holds two entries of one name")
    return dict(pairs)


def _hdf5(path: Path) -> dict[str, Any]:
    """Read the names of the datasets; a time-dependent element of H5MD has the name of its group."""
    import h5py

    def dataset(name: str) -> NDArray[Any]:
        with reading(path), h5py.File(path) as file:
            return np.asarray(file[name][()])

    def inside(group: Any, name: str, depth: int = 0) -> Any:
        tree: dict[str, Any] = {}
        for key in group:
            if not isinstance(group.get(key, getlink=True), h5py.HardLink):
                continue  # it may lead out of the file
            node, where = group[key], f"{name}{key}"
            if isinstance(node, h5py.Group):
                tree[key] = inside(node, f"{where}/", depth + 1) if depth < 8 else {}
            elif node.external or node.is_virtual or node.dtype.kind not in "biuf":
                continue
            elif node.nbytes > DEFLATE * max(node.id.get_storage_size(), 1) + 64:
                raise FileFormatError(f"{where} has the shape {node.shape}, which is more than it stores")
            elif node.shape == ():
                tree[key] = node[()].item()
            else:
                tree[key] = Stored(node.shape, node.dtype.name, partial(dataset, where))
        if isinstance(tree.get("value"), Stored) and "step" in tree:  # an element of H5MD
            element, clock = tree["value"], group["step"]
            fixed = int(clock.attrs.get("offset", 0)) + (
                int(clock[()]) * np.arange(element.shape[0]) if clock.shape == () else 0
            )
            element.steps = clock[()] if clock.shape else fixed
            return element
        return tree

    with h5py.File(path) as file:
        if "parameters" in file and "config" in file["parameters"].attrs:
            raise InputError(
                f"path must be of another program, but {path} is a trajectory: physics.load reads it"
            )
        return inside(file, "")


# -- what stands beside checkpoints --------------------------------------------------------------------------

SETTINGS_FILE = re.compile(r"(?i)(config|args|hparams|params|settings|metadata|hyperparameters)")


def settings_of(path: Path) -> dict[str, Any]:
    """Return the entries of a .json file, or the lines ``name: value`` of a .yaml file."""
    with reading(path):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".json":
            content = json.loads(text)
            return content if isinstance(content, dict) else {}
        entries = re.findall(r"(?m)^\s*([\w-]+):[ \t]*([^\s#{\[].*?)\s*$", text)
        return {name: _value(value) for name, value in entries}


def _value(text: str) -> Any:
    """Return the number that a text means, or the text."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text.strip("'\"")


Columns = dict[str, tuple[list[int], list[float]]]
"""Steps and values of a measurement, by its name."""


def table_of(path: Path, unit: str) -> tuple[str, Columns]:
    """Return the name of the column of steps of a table, and steps and values of the other columns.

    A .csv file of Lightning or W&B has one row for each step, a .jsonl file one object, a trainer_state.json
    of Hugging Face a log, and an event file of TensorBoard, which needs its package, a series for each name.
    The `unit` of the steps, "step" or "epoch", says which column they are, if there are both.
    """
    rows: list[Mapping[str, Any]] = []
    columns: Columns = {}
    with reading(path):
        if path.suffix == ".csv":
            with path.open(newline="", encoding="utf-8-sig") as file:
                rows = [
                    {key: _value(value) for key, value in row.items() if key and value}
                    for row in csv.DictReader(file)
                ]
        elif path.suffix == ".jsonl":
            rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
        elif path.suffix == ".json":
            rows = list(settings_of(path).get("log_history", []))
        else:
            return "step", _events(path)
        words = sorted(
            ("step", "_step", "global_step", "iteration", "epoch"), key=lambda word: unit not in word
        )
        names = {name.lower(): name for row in rows for name in row}
        clock = next((names[word] for word in words if word in names), "")
        for row in rows:
            step = row.get(clock)
            for name, value in row.items():
                steps, values = columns.get(name, ([], []))
                if name.lower() in words or not isinstance(step, int | float) or step != int(step):
                    continue
                if isinstance(value, int | float) and (not steps or step > steps[-1]):
                    steps.append(int(step))
                    values.append(float(value))
                    columns[name] = (steps, values)
    return clock, columns


def _events(path: Path) -> Columns:
    """Return the scalars in an event file."""
    try:
        reader = importlib.import_module("tensorboard.backend.event_processing.event_accumulator")
    except ImportError:
        raise InputError(f"{path} needs the package tensorboard: pip install tensorboard") from None
    events = reader.EventAccumulator(str(path), size_guidance={"scalars": 0})
    events.Reload()
    series = {name: {e.step: e.value for e in events.Scalars(name)} for name in events.Tags()["scalars"]}
    return {
        name: (sorted(values), [values[step] for step in sorted(values)]) for name, values in series.items()
    }


def module_state(module: Opaque) -> dict[str, Any]:
    """Return the parameters of a whole module that was pickled, as its state dict would name them."""
    parts = {**module.fields.get("_parameters", {}), **module.fields.get("_buffers", {})}
    state = {name: value for name, value in parts.items() if value is not None}
    for name, child in module.fields.get("_modules", {}).items():
        if isinstance(child, Opaque):
            state |= {f"{name}.{key}": value for key, value in module_state(child).items()}
    return state
