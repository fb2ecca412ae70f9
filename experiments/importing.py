"""Foreign trajectories: NumPy arrays, and directories of PyTorch checkpoints."""

import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.files import natural_order
from physics.errors import FileFormatError, InputError
from physics.trajectory import Trajectory

CHECKPOINTS = (".pt", ".pth", ".ckpt")


def foreign_trajectory(
    source: Path, *, array: str | None = None, steps: str | None = None, dtype: str = "float32"
) -> Trajectory:
    """Read a foreign trajectory of one run.

    Parameters
    ----------
    source : Path
        A ``.npy`` or ``.npz`` file with an array (steps, tokens, dim), or a directory of PyTorch state dicts
        (``.pt``, ``.pth``, ``.ckpt``) that hold the embedding as a matrix (tokens, dim).
    array : str, optional
        Name of the array, or of the tensor in the state dict; needed where there are several.
    steps : str, optional
        Name of the array of steps in an ``.npz`` file; by default ``steps`` if there is one of the right
        length, else 0, 1, 2, …. Checkpoints take theirs from the last number in the file name.
    dtype : {"float32", "float64"}
        Number type to keep.

    Raises
    ------
    FileFormatError
        If the source cannot be read as such.
    InputError
        If there is no such array, or it is not clear which is meant.
    """
    if not source.exists():
        raise FileNotFoundError(f"there is no file {source}")
    if source.is_dir():
        positions, clock, key = _checkpoints(source, array)
    else:
        positions, clock, key = _arrays(source, array, steps)
    bad = int(positions.size - np.count_nonzero(np.isfinite(positions)))
    if bad:
        raise FileFormatError(f"{source}: {bad} of {positions.size} values of {key!r} are NaN or infinite")
    if positions.shape[1] < 3 or positions.shape[2] < 1:
        raise FileFormatError(
            f"{source}: {key!r} must have at least 3 tokens and 1 dimension, got the shape {positions.shape}"
        )
    return Trajectory(
        positions[None].astype(dtype),
        clock,
        parameters={"program": "grokphys import", "source": source.name, "array": key},
    )


def _arrays(source: Path, array: str | None, steps: str | None) -> tuple[NDArray[Any], NDArray[Any], str]:
    try:
        loaded = np.load(source, allow_pickle=False)
        named: Mapping[str, Any] = loaded if isinstance(loaded, Mapping) else {source.stem: loaded}
        # Reading the members is what finds a damaged archive.
        arrays = {name: np.asarray(named[name]) for name in named}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise FileFormatError(f"{source} is not a readable .npy or .npz file: {error}") from None
    movable = {
        name: shape.shape for name, shape in arrays.items() if shape.ndim == 3 and shape.dtype.kind == "f"
    }
    key = _only("array", array, movable, f"{source} holds no array (steps, tokens, dim) of real numbers")
    positions = arrays[key]
    if steps is None:
        steps = "steps" if "steps" in arrays and arrays["steps"].shape == positions.shape[:1] else None
    elif steps not in arrays:
        raise InputError(f"steps must name an array of {source}, one of {', '.join(arrays)}; got {steps!r}")
    return positions, np.arange(len(positions)) if steps is None else arrays[steps], key


def _checkpoints(source: Path, key: str | None) -> tuple[NDArray[Any], NDArray[Any], str]:
    import torch  # a second to import, and only checkpoints need it

    paths = sorted((p for p in source.iterdir() if p.suffix in CHECKPOINTS), key=natural_order)
    if not paths:
        raise InputError(f"{source} holds no checkpoint ({', '.join(CHECKPOINTS)})")
    frames, numbers = [], []
    for path in paths:
        found = re.findall(r"\d+", path.stem)
        if not found:
            raise InputError(f"{path}: the name of a checkpoint must hold its step, such as step_100.pt")
        numbers.append(int(found[-1]))
        try:
            state = torch.load(path, map_location="cpu", weights_only=True)
        except Exception as error:
            raise FileFormatError(
                f"{path} is not a readable checkpoint: {str(error).splitlines()[0]}"
            ) from None
        if isinstance(state, Mapping) and isinstance(state.get("state_dict"), Mapping):
            state = state["state_dict"]
        if not isinstance(state, Mapping):
            raise FileFormatError(f"{path} is not a state dict, but a {type(state).__name__}")
        matrices = {
            name: tuple(t.shape)
            for name, t in state.items()
            if isinstance(t, torch.Tensor) and t.ndim == 2 and (key is not None or "emb" in name.lower())
        }
        key = _only("array", key, matrices, f"{path} holds no embedding matrix (tokens, dim); name one")
        frames.append(state[key].detach().double().numpy())
        if frames[-1].shape != frames[0].shape:
            raise FileFormatError(
                f"{path}: {key!r} has the shape {frames[-1].shape}, before {frames[0].shape}"
            )
    order = np.argsort(numbers, kind="stable")
    clock = np.array(numbers)[order]
    if np.any(np.diff(clock) == 0):
        twice = clock[:-1][np.diff(clock) == 0][0]
        raise InputError(f"{source} holds two checkpoints of step {twice}")
    assert key is not None
    return np.stack(frames)[order], clock, key


def _only(option: str, wanted: str | None, shapes: Mapping[str, tuple[int, ...]], none: str) -> str:
    """Return the name wanted, or the only one there is."""
    listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
    if wanted is not None:
        if wanted not in shapes:
            raise InputError(f"{option} must be one of: {listed or 'none there'}; got {wanted!r}")
        return wanted
    if not shapes:
        raise FileFormatError(none)
    if len(shapes) > 1:
        raise InputError(f"{option} must say which is meant: {listed}")
    return next(iter(shapes))
