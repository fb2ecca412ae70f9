"""Files as trees of containers, numbers and arrays, and tables of losses. No code in them is run.

What a pickle names is neither imported nor called.
"""

import contextlib
import csv
import importlib
import io
import json
import math
import pickle
import re
import types
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy._core import multiarray, numeric
from numpy.typing import NDArray

from physics.errors import FileFormatError, InputError

LEGACY = 0x1950A86A20F9469CFC6C
"""First number in a file that PyTorch wrote before version 1.6."""


class Opaque:
    """The place of an object whose class is not known here: its fields, and nothing that runs."""

    fields: dict[Any, Any]

    def __new__(cls, *arguments: Any, **fields: Any) -> "Opaque":
        """Make a place, also where a pickle leaves out the initialization."""
        place = object.__new__(cls)
        place.fields = {**dict(enumerate(arguments)), **fields}
        return place

    def __call__(self, *arguments: Any, **fields: Any) -> "Opaque":
        """Return another place, as the object would perhaps have returned something."""
        return Opaque(*arguments, **fields)

    def __setitem__(self, name: Any, value: Any) -> None:
        self.fields[name] = value

    def extend(self, values: Any) -> None:
        """Take in the elements of a list or set."""
        for value in values:
            self[len(self.fields)] = value

    def append(self, value: Any) -> None:
        """Take in one element."""
        self.extend([value])


class _Kind:
    """A number type of NumPy, whose order of bytes a pickle sets after it is made."""

    def __init__(self, code: str, *_: Any) -> None:
        self.dtype = np.dtype(str(code))

    def __setstate__(self, state: Any) -> None:
        if state[1] == ">":
            self.dtype = self.dtype.newbyteorder(">")


def _scalar(kind: _Kind, content: Any = None) -> Any:
    return np.frombuffer(content, kind.dtype)[0] if kind.dtype.kind in "biuf" else None


def _array(content: Any, kind: _Kind, shape: Any, order: Any) -> Any:
    return numeric._frombuffer(content, kind.dtype, shape, order)  # type: ignore[attr-defined]


def _special(kind: str, *_: Any) -> types.SimpleNamespace:
    return types.SimpleNamespace(dtype=kind, shape=(), ndim=0)


@cache
def _known() -> dict[tuple[str, str], Any]:
    """Return what a pickle may name, and the harmless counterpart that stands for it."""
    import torch

    names = ("tensor", "tensor_v2", "tensor_v3", "parameter")
    special = ("sparse_tensor", "qtensor", "nested_tensor")
    numpy = {"scalar": _scalar, "_reconstruct": multiarray._reconstruct, "_frombuffer": _array}
    plain = (dict, list, tuple, set, frozenset)
    return {
        ("collections", "OrderedDict"): dict,
        ("collections", "defaultdict"): lambda factory=None, items=(): dict(items),
        ("torch", "Size"): tuple,
        ("torch._utils", "_rebuild_parameter_with_state"): lambda tensor, *_: tensor,
        ("torch._tensor", "_rebuild_from_type_v2"): lambda function, kind, values, state: function(*values),
        ("torch.storage", "_load_from_bytes"): lambda content: unpickled(io.BytesIO(content)),
        ("numpy", "dtype"): _Kind,
        ("numpy", "ndarray"): np.ndarray,
        ("_codecs", "encode"): lambda text, code: text.encode("latin1"),
        **{("torch._utils", f"_rebuild_{name}"): getattr(torch._utils, f"_rebuild_{name}") for name in names},
        **{("torch._utils", f"_rebuild_{name}"): partial(_special, name) for name in special},
        **{("torch", str(kind)[6:]): kind for kind in vars(torch).values() if isinstance(kind, torch.dtype)},
        **{
            (f"numpy.{core}.{part}", name): value
            for core in ("core", "_core")
            for part in ("multiarray", "numeric")
            for name, value in numpy.items()
        },
        **{(module, kind.__name__): kind for module in ("builtins", "__builtin__") for kind in plain},
    }


class Unpickler(pickle._Unpickler):  # the one in Python, of which single instructions can be replaced
    """Builds what a pickle describes out of known parts."""

    dispatch: ClassVar[dict[int, Any]] = dict(pickle._Unpickler.dispatch)

    def find_class(self, module: str, name: str) -> Any:
        """Return the counterpart of a name; without one, a class of places."""
        return _known().get((module, name)) or type(name, (Opaque,), {"__module__": module})

    def load_build(self) -> None:
        """Give the object on the stack its fields, unless that could change anything but itself."""
        state, thing = self.stack.pop(), self.stack[-1]  # type: ignore[attr-defined]
        if isinstance(thing, Opaque):
            for part in state if isinstance(state, tuple) else (state,):
                thing.fields.update(part if isinstance(part, dict) else {})
        elif isinstance(thing, _Kind):
            thing.__setstate__(state)
        elif isinstance(thing, np.ndarray):
            if isinstance(state[4], list) and len(state[4]) != math.prod(state[1]):
                raise FileFormatError("an array of objects has another length than its list")
            thing.__setstate__((*state[:2], state[2].dtype, *state[3:]))

    dispatch[pickle.BUILD[0]] = load_build


def _load(file: Any, **options: Any) -> Any:
    return Unpickler(file, **options).load()


HARMLESS = types.SimpleNamespace(Unpickler=Unpickler, load=_load, __name__="harmless")
"""What PyTorch unpickles with, in place of Python's module."""


def unpickled(file: Path | io.BytesIO) -> Any:
    """Return what a file of ``torch.save`` or ``pickle.dump`` holds, without running any code that it names.

    Parameters
    ----------
    file : Path or BytesIO
        The file. Tensors are mapped into memory where their format allows it.

    Returns
    -------
    object
        Tensors, arrays, containers, numbers and texts as they are; `Opaque` for the rest.

    Raises
    ------
    FileFormatError
        If a record of a file of PyTorch is compressed, or the file holds a program.
    Exception
        Any other error of a damaged file.
    """
    import torch

    mapped = False
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            records = archive.infolist()
        if any(record.compress_type != zipfile.ZIP_STORED for record in records):
            raise FileFormatError("its records are compressed, as PyTorch never writes them")
        if any(Path(record.filename).name == "constants.pkl" for record in records):
            raise FileFormatError("it holds a program of TorchScript, not a state")
        mapped = isinstance(file, Path)
    else:
        with file.open("rb") if isinstance(file, Path) else io.BytesIO(file.getvalue()) as stream:
            first = _load(stream, encoding="latin1")
        if not isinstance(first, int) or first != LEGACY:
            return first
    if isinstance(file, io.BytesIO):
        file.seek(0)
    return torch.load(file, "cpu", HARMLESS, weights_only=False, mmap=mapped)


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
