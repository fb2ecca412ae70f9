"""Pickles and files of PyTorch, read without running code: what they name is neither imported nor called.

Tensors and arrays become `Stored` arrays, of which nothing is read yet; containers and numbers stay what they
are; and an object of any other class becomes an `Opaque`, which holds its fields.
"""

import io
import math
import pickle
import struct
import zipfile
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from physics.errors import FileFormatError

LEGACY = 0x1950A86A20F9469CFC6C
"""First number in a file that PyTorch wrote before version 1.6."""
KINDS = {
    "Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64",
    "Int": "int32", "Short": "int16", "Char": "int8", "Byte": "uint8", "Bool": "bool",
    "ComplexFloat": "complex64", "ComplexDouble": "complex128", "Untyped": "uint8",
}  # fmt: skip
"""Number type of each class of storage, such as FloatStorage."""


class Stored:
    """An array of numbers in a file, of which nothing has been read.

    Parameters
    ----------
    shape : tuple of int
        Its shape.
    kind : str
        Its number type, or what it is instead of an array, such as "sparse tensor".
    whole : callable, optional
        Function that returns the whole array, which may be mapped into memory.
    steps : ndarray of int, optional
        Step of each frame, where the format itself says so.
    """

    def __init__(
        self,
        shape: tuple[int, ...] = (),
        kind: str = "object",
        whole: Callable[[], NDArray[Any]] | None = None,
        steps: NDArray[Any] | None = None,
    ) -> None:
        self.shape, self.kind, self.whole, self.steps = shape, kind, whole, steps
        self.objects: list[Any] | None = None  # of an array of objects

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def real(self) -> bool:
        """Whether it holds real floating-point numbers."""
        return self.kind in ("bfloat16", "float16", "float32", "float64", "float128")

    @property
    def plain(self) -> bool:
        """Whether it holds real numbers of any kind."""
        return self.real or self.kind.startswith(("int", "uint"))

    def read(self, frame: tuple[int, ...] = ()) -> NDArray[Any]:
        """Return a copy of the whole, or of the part with these indices on the first axes."""
        assert self.whole is not None
        values = np.array(self.whole()[frame])
        if self.kind == "bfloat16":  # the upper half of a float32
            return (values.astype(np.uint32) << 16).view(np.float32)
        return values.astype(values.dtype.newbyteorder("="), copy=False)


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
    """A number type of NumPy, whose order of bytes is set after it is made."""

    def __init__(self, code: str, *_: Any) -> None:
        self.code, self.order = str(code), "<"

    @property
    def dtype(self) -> np.dtype[Any]:
        kind = np.dtype(self.code)
        if kind.kind not in "biufcSU":
            raise pickle.UnpicklingError(f"{self.code} is no type of numbers")
        return kind.newbyteorder(">" if self.order == ">" else "<")


def _scalar(kind: _Kind, content: bytes = b"") -> Any:
    return np.frombuffer(content, kind.dtype)[0].item()


class _Storage:
    """The numbers of one or several tensors, as bytes of a file."""

    def __init__(self, kind: str, count: int, content: Callable[[], Any] | None = None) -> None:
        self.kind, self.count, self.content = kind, int(count), content

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype("uint16" if self.kind == "bfloat16" else self.kind)


def _tensor(storage: Any, offset: int, shape: Any, strides: Any, *_: Any, kind: str | None = None) -> Stored:
    """Return a tensor that begins at an `offset` of its storage."""
    if not isinstance(storage, _Storage):
        return Stored(kind="special tensor")
    shape, strides, name = tuple(map(int, shape)), tuple(map(int, strides)), kind or storage.kind
    try:
        dtype = np.dtype("uint16" if name == "bfloat16" else name)
    except TypeError:
        return Stored(shape, name)
    if min((*shape, *strides, offset), default=0) < 0 or len(shape) != len(strides):
        raise pickle.UnpicklingError("a tensor lies outside its storage")

    def whole() -> NDArray[Any]:
        assert storage.content is not None
        flat = np.frombuffer(storage.content(), dtype)
        last = offset + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
        if math.prod(shape) and (last >= len(flat) or math.prod(shape) > len(flat)):
            raise FileFormatError(f"a tensor of shape {shape} is more than the file holds")
        steps = tuple(stride * dtype.itemsize for stride in strides)
        return np.lib.stride_tricks.as_strided(flat[offset:], shape, steps, writeable=False)

    return Stored(shape, name, whole)


def _tensor_of_kind(
    storage: Any, offset: int, shape: Any, strides: Any, grad: Any, hooks: Any, kind: Any, *_: Any
) -> Stored:
    return _tensor(storage, offset, shape, strides, kind=str(getattr(kind, "kind", kind)))


def _array(content: Any, kind: _Kind, shape: Any, order: str = "C") -> Stored:
    """Return an array of NumPy whose numbers stand in the pickle."""
    shape = tuple(map(int, shape))
    if not isinstance(content, bytes | bytearray) or math.prod(shape) * kind.dtype.itemsize != len(content):
        return Stored(shape)
    values = np.frombuffer(bytes(content), kind.dtype).reshape(shape, order="F" if order == "F" else "C")
    return Stored(shape, kind.dtype.name, lambda: values)


NUMPY = [f"numpy.{core}.{part}" for core in ("core", "_core") for part in ("multiarray", "numeric")]
KNOWN: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): dict,
    ("collections", "defaultdict"): lambda factory=None, items=(): dict(items),
    ("torch._utils", "_rebuild_tensor"): _tensor,
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch._utils", "_rebuild_tensor_v3"): _tensor_of_kind,
    ("torch._utils", "_rebuild_parameter"): lambda tensor, *_: tensor,
    ("torch._utils", "_rebuild_parameter_with_state"): lambda tensor, *_: tensor,
    ("torch._tensor", "_rebuild_from_type_v2"): lambda function, kind, arguments, state: function(*arguments),
    ("torch._utils", "_rebuild_sparse_tensor"): lambda *_: Stored(kind="sparse tensor"),
    ("torch._utils", "_rebuild_qtensor"): lambda *_: Stored(kind="quantized tensor"),
    ("torch._utils", "_rebuild_nested_tensor"): lambda *_: Stored(kind="nested tensor"),
    ("torch.storage", "_load_from_bytes"): lambda content: unpickled(content),
    ("torch", "Size"): tuple,
    ("numpy", "dtype"): _Kind,
    ("numpy", "ndarray"): Stored,
    ("_codecs", "encode"): lambda text, code: text.encode("latin1"),
    ("copyreg", "_reconstructor"): lambda kind, *_: Opaque(),
    ("copy_reg", "_reconstructor"): lambda kind, *_: Opaque(),
    **{(module, "scalar"): _scalar for module in NUMPY},
    **{(module, "_reconstruct"): lambda *_: Stored() for module in NUMPY},
    **{(module, "_frombuffer"): _array for module in NUMPY},
    **{
        (module, kind.__name__): kind
        for module in ("builtins", "__builtin__")
        for kind in (dict, list, tuple, set, frozenset)
    },
}
"""What a pickle may name, and the harmless counterpart that stands for it."""


class _Unpickler(pickle._Unpickler):  # the one in Python, of which single instructions can be replaced
    """Builds what a pickle describes out of `KNOWN` parts."""

    dispatch: ClassVar = dict(pickle._Unpickler.dispatch)

    def __init__(self, file: Any, storage: Callable[..., _Storage]) -> None:
        super().__init__(file, encoding="latin1")
        self._storage = storage

    def find_class(self, module: str, name: str) -> Any:
        if module in ("torch", "torch.storage", "torch.cuda") and name.endswith("Storage"):
            return KINDS.get(name.removesuffix("Storage"), name)
        if module == "torch" and name in {*KINDS.values(), "float8_e4m3fn", "uint16", "uint32"}:
            return name
        known = KNOWN.get((module, name))
        return known or type(name, (Opaque,), {"__module__": module})

    def persistent_load(self, pid: Any) -> Any:
        return self._storage(*pid[1:5]) if isinstance(pid, tuple) and pid[0] == "storage" else Opaque()

    def load_build(self) -> None:
        """Give the object on the stack its fields, unless that could change anything but itself."""
        state, thing = self.stack.pop(), self.stack[-1]  # type: ignore[attr-defined]
        if isinstance(thing, Opaque):
            for part in state if isinstance(state, tuple) else [state]:
                for name, value in (part or {}).items() if isinstance(part, dict | None) else ():
                    thing[name] = value
        elif isinstance(thing, _Kind):
            thing.order = str(state[1])
        elif isinstance(thing, Stored) and thing.whole is None and len(state) == 5:
            _, shape, kind, fortran, content = state
            if isinstance(content, list):
                thing.shape, thing.objects = tuple(shape), content
            else:
                thing.__dict__ |= vars(_array(content, kind, shape, "F" if fortran else "C"))

    dispatch[pickle.BUILD[0]] = load_build  # type: ignore[assignment]


def unpickled(content: bytes | Path) -> Any:
    """Return what a file of ``torch.save`` or ``pickle.dump`` holds, without running any code that it names.

    Parameters
    ----------
    content : bytes or Path
        The file, or its content.

    Returns
    -------
    object
        Containers, numbers and texts as they are; `Stored` for tensors and arrays; `Opaque` for the rest.

    Raises
    ------
    FileFormatError
        If a record of a file of PyTorch is compressed, or says that it is larger than the file.
    Exception
        Any other error of a damaged pickle.
    """
    file: Any = content if isinstance(content, Path) else io.BytesIO(content)
    if zipfile.is_zipfile(file):
        return _archive(content, file)
    with content.open("rb") if isinstance(content, Path) else io.BytesIO(content) as stream:
        return _stream(content, stream)


def _part(content: bytes | Path, start: int, size: int) -> Any:
    """Return some bytes of a file or of bytes; those of a file are mapped into memory."""
    if isinstance(content, Path):
        if not size:
            return b""
        return np.memmap(content, np.uint8, "r", start, (size,))
    return content[start : start + size]


def _archive(content: bytes | Path, file: Any) -> Any:
    """Read the zip file of PyTorch from version 1.6: one pickle, and a record for each storage."""
    storages: dict[str, _Storage] = {}
    checked: set[str] = set()
    with zipfile.ZipFile(file) as archive:
        records = {info.filename: info for info in archive.infolist()}
        if any(info.compress_type != zipfile.ZIP_STORED for info in records.values()):
            raise FileFormatError("its records are compressed, as PyTorch never writes them")
        pickle_name = next((name for name in records if name.endswith("data.pkl")), None)
        if pickle_name is None:
            raise FileFormatError("it is a zip file, but none of PyTorch")
        text, folder = archive.read(pickle_name), pickle_name.removesuffix("data.pkl")
        if folder + "byteorder" in records and archive.read(folder + "byteorder") == b"big":
            raise FileFormatError("it was written by a computer with another order of bytes")

    def bytes_of(name: str) -> Any:
        info = records[name]
        names, extra = struct.unpack("<HH", bytes(_part(content, info.header_offset + 26, 4)))
        part = _part(content, info.header_offset + 30 + names + extra, info.file_size)
        if name not in checked and zlib.crc32(part) != info.CRC:
            raise FileFormatError("the checksum of a record fails")
        checked.add(name)
        return part

    def storage(kind: str, key: str, place: Any, count: int) -> _Storage:
        return storages.setdefault(key, _Storage(kind, count, partial(bytes_of, f"{folder}data/{key}")))

    return _Unpickler(io.BytesIO(text), storage).load()


def _stream(content: bytes | Path, stream: Any) -> Any:
    """Read a plain pickle, or PyTorch's older format: five pickles, and then the storages one by one."""
    storages: dict[str, _Storage] = {}

    def storage(kind: str, key: str, place: Any, count: int) -> _Storage:
        return storages.setdefault(key, _Storage(kind, count))

    first = _Unpickler(stream, storage).load()
    if first != LEGACY:
        return first
    _, _, tree, keys = (_Unpickler(stream, storage).load() for _ in range(4))
    start = stream.tell()
    for key in keys:
        count = int.from_bytes(bytes(_part(content, start, 8)), "little", signed=True)
        size = count * storages[key].dtype.itemsize
        if count < 0 or start + 8 + size > stream.seek(0, io.SEEK_END):
            raise FileFormatError("it is shorter than it says")
        storages[key].content = partial(_part, content, start + 8, size)
        start += 8 + size
    return tree
