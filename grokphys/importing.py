"""Trajectories of other programs: NumPy arrays and PyTorch checkpoints. No code in them is run."""

import contextlib
import math
import re
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from grokphys.files import natural_order
from grokphys.options import sentence
from physics.errors import FileFormatError, InputError
from physics.trajectory import Trajectory

ARRAYS = (".npy", ".npz")
CHECKPOINTS = (".pt", ".pth", ".ckpt", ".safetensors")
WRAPPERS = ("model_state_dict", "state_dict", "model")
"""Names under which training programs store the state dict of the model in larger checkpoints."""
BARE = "tensor"
"""Name of the content of a file that holds a tensor instead of a state dict."""
DEFLATE = 1032
"""Largest number of bytes that can come out of one compressed byte of an .npz file."""
FOREIGN_CLASS = re.compile(r"(?:GLOBAL|[Cc]lass) ([\w.]+\.[\w.]+)")
"""Pattern of the class in PyTorch's message that refuses to import it."""


def foreign_trajectory(
    source: Path,
    *,
    array: str | None = None,
    steps: str | None = None,
    dtype: str | None = None,
    progress: bool = False,
) -> Trajectory:
    """Read a trajectory that another program has written.

    Parameters
    ----------
    source : Path
        A ``.npy`` or ``.npz`` file with an array (steps, tokens, dim) or (runs, steps, tokens, dim); a
        PyTorch checkpoint (``.pt``, ``.pth``, ``.ckpt``, ``.safetensors``); or a directory of checkpoints. A
        checkpoint is a state dict, by itself or under ``model_state_dict``, ``state_dict`` or ``model``, or a
        tensor. Each checkpoint in a directory holds the embedding at its step as a matrix (tokens, dim). A
        single checkpoint may also hold an array of one of the two shapes above.
    array : str, optional
        Name of the array or parameter, by default the only array of floating-point numbers with 3 or 4 axes,
        or the only parameter of a suitable shape whose name contains "emb".
    steps : str, optional
        Name of the array of steps in an ``.npz`` file, by default ``steps`` if that array has one axis,
        otherwise 0, 1, 2, …. The step of a checkpoint with one frame is the last number in its name.
    dtype : {"float32", "float64"}, optional
        Number type of the positions, by default float64 for numbers of more than 32 bits, otherwise float32.
    progress : bool, default False
        Whether to show a bar over the checkpoints on stderr, if that is a terminal.

    Returns
    -------
    Trajectory
        Trajectory whose parameters name the source and the array.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    FileFormatError
        If the content is damaged, not finite or of another form, or reading it could run code.
    InputError
        If the source has another ending, the array or the steps are ambiguous, missing or not allowed, or
        numbers do not fit into `dtype`.
    """
    if not source.exists():
        raise FileNotFoundError(f"there is no file {source}")
    checkpoints = source.is_dir() or source.suffix in CHECKPOINTS
    if checkpoints and steps is not None:
        raise InputError(
            f"steps_array must be left out for checkpoints, whose names hold their steps; got {steps!r}"
        )
    if source.is_dir():
        positions, clock, key = _directory(source, array, dtype, progress)
    elif not source.is_file() or source.suffix not in (*ARRAYS, *CHECKPOINTS):
        raise InputError(
            f"source must be a directory or a file {', '.join((*ARRAYS, *CHECKPOINTS))}; got {source}"
        )
    else:
        read = _checkpoint if checkpoints else _arrays
        positions, clock, key = read(source, array, steps, dtype)
    return Trajectory(
        positions,
        _whole_steps(clock),
        parameters={"program": "grokphys import", "source": source.name, "array": key},
    )


Found = tuple[NDArray[Any], Any, str]  # positions (runs, frames, tokens, dim), steps, name of the array


# -- NumPy --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Array:
    """An array of a file that has not been read yet.

    Attributes
    ----------
    open : callable
        Function that opens the file of the array at its beginning.
    shape, kind : tuple of int, numpy.dtype
        Shape and kind of numbers that its header states.
    room : int
        Largest number of bytes of the array that the file can hold, whatever its header states.
    """

    open: Callable[[], Any]
    shape: tuple[int, ...]
    kind: np.dtype[Any]
    room: int

    @classmethod
    def begin(cls, start: Callable[[], Any], size: int) -> "_Array":
        """Read the header of an array whose file `start` opens and which has at most `size` bytes."""
        with start() as file:
            first = np.lib.format.read_magic(file) == (1, 0)
            read = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
            shape, _, kind = read(file)
            return cls(start, shape, kind, size - file.tell())

    def read(self, where: str) -> NDArray[Any]:
        """Return the numbers of the array, or raise a `FileFormatError` that begins with the name `where`.

        It refuses Python objects, and a header that states more numbers than the file holds.
        """
        if self.kind.hasobject:
            raise FileFormatError(
                f"{where} holds Python objects, and reading these could run code; store it as numbers"
            )
        if min(self.shape, default=0) < 0 or math.prod(self.shape) * self.kind.itemsize > self.room:
            raise FileFormatError(f"{where} has the shape {self.shape}, which is more than the file holds")
        with self.open() as file:
            return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


def _arrays(source: Path, array: str | None, steps: str | None, dtype: str | None) -> Found:
    """Read the positions and the steps of a NumPy file; other arrays of an archive are not read."""
    with contextlib.ExitStack() as opened, _reading(source, ".npy or .npz file"):
        size = source.stat().st_size
        parts: dict[str, tuple[Callable[[], Any], int]] = {source.stem: (partial(source.open, "rb"), size)}
        if source.suffix == ".npz":
            archive = opened.enter_context(zipfile.ZipFile(source))
            parts = {
                info.filename.removesuffix(".npy"): (
                    partial(archive.open, info),
                    min(info.file_size, DEFLATE * min(info.compress_size, size)),
                )
                for info in archive.infolist()
                if info.filename.endswith(".npy")
            }
        arrays = {name: _Array.begin(*part) for name, part in parts.items()}
        shapes = {
            name: found.shape
            for name, found in arrays.items()
            if name == array or (len(found.shape) in (3, 4) and found.kind.kind == "f")
        }
        held = ", ".join(f"{name} {found.shape} of {found.kind}" for name, found in arrays.items())
        none = f"{source} holds no array (steps, tokens, dim) of floating-point numbers, but {held or 'none'}"
        key = _only("array", array, shapes, none)
        where = f"{source}: {key!r}"
        if arrays[key].kind.kind not in "fO":
            raise FileFormatError(f"{where} must hold floating-point numbers, got {arrays[key].kind}")
        _check_shape(where, arrays[key].shape, (3, 4))
        if steps is None:
            steps = "steps" if "steps" in arrays and len(arrays["steps"].shape) == 1 else None
        elif steps not in arrays:
            raise InputError(
                f"steps_array must name an array of {source}, one of {', '.join(arrays)}; got {steps!r}"
            )
        positions = arrays[key].read(where)
        clock = (
            np.arange(positions.shape[-3]) if steps is None else arrays[steps].read(f"{source}: {steps!r}")
        )
    positions = _cast(where, positions, dtype)
    return positions if positions.ndim == 4 else positions[None], clock, key


# -- PyTorch ------------------------------------------------------------------------------------------------


def _directory(source: Path, key: str | None, dtype: str | None, progress: bool) -> Found:
    """Read one frame from each checkpoint of a directory, in the order of their steps."""
    with _reading(source, "directory"):
        paths = [path for path in source.iterdir() if path.suffix in CHECKPOINTS and path.is_file()]
    if not paths:
        raise InputError(f"source must hold a checkpoint ({', '.join(CHECKPOINTS)}), got {source} with none")
    steps: dict[int, Path] = {}
    for path in sorted(paths, key=natural_order):
        step = _step(path)
        if step is None:
            raise InputError(f"{path}: the name of a checkpoint must hold its step, such as step_100.pt")
        if step in steps:
            raise InputError(
                f"{source} holds two checkpoints of step {step}, {steps[step].name} and {path.name}"
            )
        steps[step] = path
    frames: list[NDArray[Any]] = []
    for _, path in tqdm(
        sorted(steps.items()), desc="import", unit="file", disable=None if progress else True
    ):
        key, frame = _parameter(path, key, (2,), dtype)
        if frames and frame.shape != frames[0].shape:
            raise FileFormatError(
                f"{path}: {key!r} must have the shape {frames[0].shape} as before, got {frame.shape}"
            )
        frames.append(frame)
    assert key is not None
    return np.stack(frames)[None], sorted(steps), key


def _checkpoint(source: Path, array: str | None, _: str | None, dtype: str | None) -> Found:
    """Read a single checkpoint, which holds one frame or an array of frames."""
    key, values = _parameter(source, array, (2, 3, 4), dtype)
    if values.ndim == 2:
        return values[None, None], [_step(source) or 0], key
    return values if values.ndim == 4 else values[None], np.arange(values.shape[-3]), key


def _step(path: Path) -> int | None:
    """Return the step of a checkpoint, which is the last number in its name, or None if it has none."""
    found = re.findall(r"\d+", path.stem)
    return int(found[-1]) if found else None


def _parameter(
    path: Path, key: str | None, axes: tuple[int, ...], dtype: str | None
) -> tuple[str, NDArray[Any]]:
    """Return the name and the values of the parameter `key` of a checkpoint, or of its only embedding."""
    import torch  # importing takes a second, and only checkpoints need it

    state = _safetensors(path) if path.suffix == ".safetensors" else _state_dict(path)
    shapes = {
        name: tuple(tensor.shape)
        for name, tensor in state.items()
        if isinstance(name, str)
        and isinstance(tensor, torch.Tensor)
        and (
            name == key
            or (tensor.ndim in axes and (key is not None or name == BARE or "emb" in name.lower()))
        )
    }
    key = _only("array", key, shapes, f"{path} holds no embedding matrix (tokens, dim); name one", path)
    tensor, where = state[key].detach(), f"{path}: {key!r}"
    if not tensor.is_floating_point():
        raise FileFormatError(
            f"{where} must hold floating-point numbers, got {str(tensor.dtype).removeprefix('torch.')}"
        )
    _check_shape(where, shapes[key], axes)
    if tensor.numel() * tensor.element_size() > path.stat().st_size:
        raise FileFormatError(f"{where} has the shape {shapes[key]}, which is more than the file holds")
    with _reading(path, "checkpoint"):
        values = (tensor if tensor.dtype == torch.float64 else tensor.float()).numpy()
    return key, _cast(where, values, dtype)


def _state_dict(path: Path) -> Mapping[Any, Any]:
    """Read a state dict that ``torch.save`` has written, alone or within a larger checkpoint."""
    import torch

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            state = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise FileFormatError(f"{path} is not a readable checkpoint: {sentence(error)}") from None
    except Exception as error:
        # PyTorch's own messages advise to allow the file to run code, so they are not passed on.
        foreign = FOREIGN_CLASS.search(str(error))
        if foreign is None:
            raise FileFormatError(
                f"{path} is not a readable checkpoint: it is damaged, or not a file of "
                "torch.save(state_dict, …)"
            ) from None
        raise FileFormatError(
            f"{path} holds Python objects ({foreign[1]}) in addition to tensors, and reading these could "
            "run code; save only the state dict"
        ) from None
    for _ in WRAPPERS:
        if isinstance(state, Mapping):
            inside = [state[name] for name in WRAPPERS if isinstance(state.get(name), Mapping)]
            state = inside[0] if inside else state
    if isinstance(state, torch.Tensor):
        return {BARE: state}
    if not isinstance(state, Mapping):
        raise FileFormatError(f"{path} is not a state dict, but a {type(state).__name__}")
    return state


def _safetensors(path: Path) -> Mapping[Any, Any]:
    try:
        from safetensors.torch import load_file
    except ImportError:
        what = "the package safetensors: pip install 'grokphys[safetensors]'"
        raise InputError(f"{path} needs {what}") from None
    with _reading(path, ".safetensors file"):
        return load_file(path)


# -- both ---------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _reading(path: Path, what: str) -> Iterator[None]:
    """Raise any error of a library in this block as a `FileFormatError` that says `path` is not a `what`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except (FileFormatError, InputError):
        raise
    except Exception as error:
        why = (sentence(error) or type(error).__name__).splitlines()[0]
        why = "it does not begin as such a file does" if "magic string" in why else why
        raise FileFormatError(f"{path} is not a readable {what}: {why}") from error


AXES = {2: "(tokens, dim)", 3: "(steps, tokens, dim)", 4: "(runs, steps, tokens, dim)"}


def _check_shape(where: str, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    if len(shape) not in axes:
        allowed = " or ".join(AXES[count] for count in axes)
        raise FileFormatError(f"{where} must have the shape {allowed}, got {shape}")
    if shape[-2] < 3 or min(shape) < 1:
        raise FileFormatError(
            f"{where} must have at least 3 tokens and 1 dimension, and no axis may be empty; got {shape}"
        )


def _cast(where: str, values: NDArray[Any], dtype: str | None) -> NDArray[Any]:
    """Return numbers as `dtype`, by default as `foreign_trajectory` says, or refuse those that do not fit.

    The messages begin with `where`.
    """
    bad = values.size - int(np.count_nonzero(np.isfinite(values)))
    if bad:
        raise FileFormatError(
            f"{where} must hold finite numbers, but {bad} of {values.size} values are NaN or infinite"
        )
    with np.errstate(over="ignore"):
        cast = values.astype(dtype or ("float64" if values.itemsize > 4 else "float32"))
    large = cast.size - int(np.count_nonzero(np.isfinite(cast)))
    if large and dtype == "float32":
        what = f"{large} of its values are too large for float32"
        raise InputError(f"dtype must be float64 for {where}: {what}")
    if large:
        raise FileFormatError(
            f"{where} must hold numbers of at most {np.finfo(np.float64).max:.2g} in size, the largest of "
            f"float64, but {large} of {values.size} values are larger"
        )
    return cast


def _whole_steps(clock: Any) -> NDArray[np.int64]:
    """Return steps as int64, because unsigned numbers would hide that they decrease."""
    steps = np.asarray(clock)
    if steps.ndim != 1 or steps.dtype.kind not in "iuO":
        raise InputError(
            "steps_array must name a one-dimensional array of whole numbers, "
            f"got one of {steps.dtype} of the shape {steps.shape}"
        )
    if steps.dtype.kind != "i" and max(steps.tolist(), default=0) >= 2**63:
        raise InputError(f"steps must be below 2^63, got {max(steps.tolist())}")
    return steps.astype(np.int64)


def _only(
    option: str,
    wanted: str | None,
    shapes: Mapping[str, tuple[int, ...]],
    none: str,
    where: Path | None = None,
) -> str:
    """Return the name `wanted`, or the only one of `shapes` if none is wanted; refuse any other case."""
    listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
    if wanted is not None:
        if wanted not in shapes:
            place = "" if where is None else f" ({where})"
            raise InputError(f"{option} must be one of {listed or 'no arrays'}, got {wanted!r}{place}")
        return wanted
    if not shapes:
        raise FileFormatError(none)
    if len(shapes) > 1:
        raise InputError(f"{option} must name one of several arrays, {listed}, got none")
    return next(iter(shapes))
