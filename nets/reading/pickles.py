"""Pickles and files of PyTorch, read without running code: what they name is neither imported nor called.

Tensors, arrays, containers and numbers stay what they are, and an object of any other class becomes an
`Opaque`, which holds its fields.
"""

import io
import math
import pickle
import types
import zipfile
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy._core import multiarray, numeric

from physics.errors import FileFormatError

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
