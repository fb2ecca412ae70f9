"""Files as trees of containers, numbers and arrays, and tables of losses. No code in them is run."""

import contextlib
import csv
import importlib
import io
import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nets.reading.pickles import unpickled
from physics.errors import FileFormatError, InputError

CHECKPOINTS = (".pt", ".pth", ".ckpt", ".bin", ".pkl", ".pickle", ".tar", ".safetensors")
ARRAYS = (".npy", ".npz")
H5 = (".h5", ".h5md", ".hdf5")
REAL = ("bfloat16", "float16", "float32", "float64", "longdouble", "float128")
"""Types of the numbers that can become positions."""


def tree_of(path: Path) -> Any:
    """Return what a file holds: containers, numbers, texts, arrays and objects without code.

    Arrays are those of NumPy, PyTorch or h5py, as far as possible mapped into memory. A `FileFormatError`
    says why a file cannot be read, and an `InputError` that its ending is unknown.
    """
    readers: dict[str, Callable[[Path], Any]] = {
        ".npy": _npy, ".npz": _npz, ".safetensors": _safetensors,
        **dict.fromkeys(H5, _hdf5), **dict.fromkeys(CHECKPOINTS[:-1], unpickled),
    }  # fmt: skip
    if path.suffix not in readers:
        raise InputError(f"path must be a directory or a file {', '.join(readers)}, got {path}")
    with reading(path):
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
    except Exception as error:
        reason = "it is damaged, or of another program"
        if isinstance(error, FileFormatError | OSError):
            reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise FileFormatError(f"{path} is not a readable {path.suffix} file: {reason}") from None


def kind_of(array: Any) -> str:
    """Return the type of the numbers of an array, or what it is instead, such as a "sparse_tensor"."""
    return str(array.dtype).removeprefix("torch.")


def numbers_of(array: Any, place: tuple[Any, ...] = ()) -> NDArray[Any]:
    """Return a copy of an array, or of the part with these indices on its first axes."""
    if isinstance(array, np.memmap):
        array = np.load(str(array.filename), "r")  # whose pages leave the memory with it
    part = array[place]
    if hasattr(part, "detach"):
        part = part.detach().resolve_conj().resolve_neg()
        part = part.float() if kind_of(part) == "bfloat16" else part
        if part.numel() * part.element_size() > part.untyped_storage().nbytes():
            raise FileFormatError(f"a tensor of shape {tuple(part.shape)} is more than the file holds")
        part = part.numpy()
    return np.array(part, dtype=part.dtype.newbyteorder("="))


def _npy(path: Path) -> Any:
    try:
        return np.load(path, "r")
    except ValueError as error:
        if "Object arrays" not in str(error) and "Python objects" not in str(error):
            raise FileFormatError("its header states more than the file holds") from None
    with path.open("rb") as file:
        np.lib.format.read_magic(file)
        np.lib.format.read_array_header_1_0(file)
        return unpickled(io.BytesIO(file.read()))


def _npz(path: Path) -> dict[str, Any]:
    with path.open("rb") as file, np.load(file) as arrays:
        if len(set(arrays.files)) < len(arrays.files):
            raise FileFormatError("it holds two arrays of one name")
        return {name: arrays[name] for name in arrays.files}


def _safetensors(path: Path) -> dict[str, Any]:
    try:
        from safetensors.torch import load_file
    except ImportError:
        raise InputError(f"{path} needs a package: pip install 'grokphys[safetensors]'") from None
    return load_file(path)


def _hdf5(path: Path) -> dict[str, Any]:
    """Return the datasets in the tree of their groups."""
    import h5py

    def inside(group: Any, depth: int = 0) -> dict[str, Any]:
        tree: dict[str, Any] = {}
        for key in group:
            if not isinstance(group.get(key, getlink=True), h5py.HardLink):
                continue  # it may lead out of the file
            node = group[key]
            if isinstance(node, h5py.Group) and depth < 8:
                tree[key] = inside(node, depth + 1)
            elif isinstance(node, h5py.Dataset) and not (node.external or node.is_virtual):
                tree[key] = node if node.shape or key == "step" else node[()]
        return tree

    file = h5py.File(path)
    if "parameters" in file and "config" in file["parameters"].attrs:
        raise InputError(f"path must be of another program, but physics.load reads {path}")
    return inside(file)


# -- what stands beside checkpoints -------------------------------------------------------------------------


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


CLOCKS = ("step", "_step", "global_step", "iteration", "epoch")
"""Names of the column of steps in a table."""
Columns = dict[str, dict[int, float]]
"""Values of each measurement, by their steps."""


def table_of(path: Path, unit: str) -> Columns:
    """Return what the columns of a table measure.

    A .csv file of Lightning or W&B has one row for each step, a .jsonl file one object, a trainer_state.json
    of Hugging Face a log, and an event file of TensorBoard, which needs its package, a series for each name.
    The `unit` of the steps, "step" or "epoch", says which column they are, if there are both.
    """
    rows: list[Mapping[str, Any]] = []
    columns: Columns = {}
    with reading(path):
        if path.suffix == ".csv":
            with path.open(newline="", encoding="utf-8-sig") as file:
                table = list(csv.DictReader(file))
            rows = [{name: _value(value) for name, value in row.items() if name and value} for row in table]
        elif path.suffix == ".jsonl":
            rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
        elif path.suffix == ".json":
            rows = settings_of(path).get("log_history", [])
        else:
            return _events(path)
        words = sorted(CLOCKS, key=lambda word: unit not in word)
        names = {name.lower(): name for row in rows for name in row}
        clock = next((names[word] for word in words if word in names), "")
        for row in rows:
            numbers = {name: value for name, value in row.items() if isinstance(value, int | float)}
            for name in numbers if clock in numbers else ():
                if name.lower() not in words:
                    columns.setdefault(name, {})[int(numbers[clock])] = float(numbers[name])
    return columns


def _events(path: Path) -> Columns:
    """Return the scalars in an event file."""
    try:
        reader = importlib.import_module("tensorboard.backend.event_processing.event_accumulator")
    except ImportError:
        raise InputError(f"{path} needs a package: pip install tensorboard") from None
    events = reader.EventAccumulator(str(path), size_guidance={"scalars": 0})
    events.Reload()
    return {name: {one.step: one.value for one in events.Scalars(name)} for name in events.Tags()["scalars"]}
