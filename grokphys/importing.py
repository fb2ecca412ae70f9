"""Trajectories of other programs: NumPy arrays, PyTorch checkpoints and H5MD. No code in them is run.

What a file does not say is asked for, never guessed: which axis is the tokens, and which number is the step.
"""

import contextlib
import glob
import math
import re
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grokphys.files import natural_order
from grokphys.options import sentence
from grokphys.progress import progress as bar
from physics.errors import FileFormatError, InputError
from physics.trajectory import Trajectory

ARRAYS = (".npy", ".npz")
CHECKPOINTS = (".pt", ".pth", ".ckpt", ".safetensors")
H5MD = (".h5", ".h5md", ".hdf5")
WRAPPERS = ("model_state_dict", "state_dict", "model")
"""Names under which training programs store the state dict of the model in larger checkpoints."""
CONFIGS = ("config", "args", "hparams", "hyper_parameters")
"""Names under which they store its settings, the modulus among them."""
BARE = "tensor"
"""Name of the content of a file that holds a tensor instead of a state dict."""
DEFLATE = 1032
"""Largest number of bytes that can come out of one compressed byte of an .npz file."""
LISTED = 12
"""Largest number of arrays that a message lists."""
FOREIGN_CLASS = re.compile(r"(?:GLOBAL|[Cc]lass) ([\w.]+\.[\w.]+)")
"""Pattern of the class in PyTorch's message that refuses to import it."""
AXES = {2: "(tokens, dim)", 3: "(steps, tokens, dim)", 4: "(runs, steps, tokens, dim)"}


def foreign_trajectory(
    source: Path,
    *,
    array: str | None = None,
    steps: str | None = None,
    modulus: int | None = None,
    transpose: bool | None = None,
    dtype: str | None = None,
    progress: bool = False,
) -> Trajectory:
    """Read a trajectory that another program has written.

    Parameters
    ----------
    source : Path
        A ``.npy`` or ``.npz`` file with an array (steps, tokens, dim) or (runs, steps, tokens, dim); a
        PyTorch checkpoint (``.pt``, ``.pth``, ``.ckpt``, ``.safetensors``); a directory of checkpoints, or a
        pattern that matches some; or an H5MD file. A checkpoint is a state dict, by itself or under
        ``model_state_dict``, ``state_dict`` or ``model``, or a tensor. Each checkpoint in a directory holds
        the embedding at its step as a matrix (tokens, dim). A single checkpoint may also hold an array of one
        of the two shapes above.
    array : str, optional
        Name of the array or parameter, by default the only array of floating-point numbers with 3 or 4 axes,
        or the only parameter of a suitable shape whose name contains "emb".
    steps : str, optional
        Name of the array of steps in the file, or "none" for 0, 1, 2, …; by default ``steps``, or the only
        array whose name speaks of steps or epochs. In a directory it is the number in each checkpoint that is
        its step, by default the number in its name, which must not contradict what the checkpoint says.
    modulus : int, optional
        Modulus of the tokens, which says which axis they are and is stored. Tokens beyond it are left out.
    transpose : bool, optional
        Whether the last two axes are (dim, tokens). It must be given if neither the name of an embedding, as
        PyTorch stores it, nor the modulus nor the shape says which axis is the tokens.
    dtype : {"float32", "float64"}, optional
        Number type of the positions, by default float64 for numbers of more than 32 bits, otherwise float32.
    progress : bool, default False
        Whether to show a bar over the checkpoints on stderr, if that is a terminal.

    Returns
    -------
    Trajectory
        Trajectory whose parameters name the source and the array, and hold notes on what was assumed.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    FileFormatError
        If the content is damaged, not finite or of another form, or reading it could run code.
    InputError
        If the source has another ending, the array, its axes or the steps are ambiguous, missing or not
        allowed, or numbers do not fit into `dtype`.
    """
    wanted = _Wanted(array, steps, modulus, transpose, dtype)
    if source.is_dir() or (glob.has_magic(str(source)) and not source.exists()):
        positions, clock, name, notes = _directory(source, wanted, progress)
    elif not source.exists():
        raise FileNotFoundError(f"there is no file {source}")
    elif not source.is_file() or source.suffix not in (*ARRAYS, *CHECKPOINTS, *H5MD):
        endings = ", ".join((*ARRAYS, *CHECKPOINTS, *H5MD))
        raise InputError(f"source must be a directory or a file {endings}; got {source}")
    else:
        positions, clock, name, notes = _file(source, wanted)
    parameters: dict[str, Any] = {"program": "grokphys import", "source": source.name, "array": name}
    if notes.modulus is not None:
        parameters["modulus"] = notes.modulus
    if notes.texts:
        parameters["notes"] = notes.texts
    return Trajectory(positions, clock, parameters=parameters)


@dataclass(frozen=True)
class _Wanted:
    """What the user says about the source."""

    array: str | None
    steps: str | None
    modulus: int | None
    transpose: bool | None
    dtype: str | None


@dataclass
class _Notes:
    """What the import has assumed or left out, and the modulus it has settled on."""

    texts: list[str] = field(default_factory=list)
    modulus: int | None = None


@dataclass(frozen=True)
class _Array:
    """An array of a file that has not been read yet."""

    shape: tuple[int, ...]
    kind: str
    read: Callable[[str], NDArray[Any]]
    embedding: bool = False
    """Whether its name says that its axes are (tokens, dim), as those of `torch.nn.Embedding`."""
    steps: NDArray[Any] | None = None

    @property
    def floating(self) -> bool:
        return self.kind.startswith(("float", "bfloat"))

    @property
    def plain(self) -> bool:
        return self.kind != "object" and not self.kind.endswith("tensors")


@dataclass(frozen=True)
class _Content:
    """The arrays of a file, its single numbers, and other content, by name."""

    path: Path
    arrays: Mapping[str, _Array]
    numbers: Mapping[str, int]

    def chosen(self, array: str | None, axes: Sequence[int]) -> str:
        """Return the name of the array to import, or refuse with the names that there are."""
        held = {name: one for name, one in self.arrays.items() if len(one.shape) > 1 or not one.plain}
        listed = ", ".join(f"{name} {one.shape} of {one.kind}" for name, one in list(held.items())[:LISTED])
        listed += f" and {len(held) - LISTED} others" if len(held) > LISTED else ""
        if array is not None:
            if array not in self.arrays:
                raise InputError(f"--array must be one of {listed or 'none'}, got {array!r} ({self.path})")
            return array
        fit = [name for name, one in held.items() if len(one.shape) in axes and one.floating]
        if self.path.suffix in CHECKPOINTS:
            fit = [name for name in fit if name == BARE or "emb" in name.lower()]
        if len(fit) > 1:
            several = ", ".join(f"{name} {self.arrays[name].shape}" for name in fit)
            raise InputError(f"--array must name one of several arrays, {several}, got none")
        if not fit:
            what = " or ".join(AXES[count] for count in axes)
            advice = f"; --array names one of {listed}" if listed else ""
            raise FileFormatError(
                f"{self.path} holds no array that is known to be the embedding {what}{advice}"
            )
        return fit[0]

    def array(self, name: str, axes: Sequence[int]) -> _Array:
        """Return an array of numbers that has so many axes."""
        one, where = self.arrays[name], f"{self.path}: {name!r}"
        if not one.floating and one.kind != "object":
            raise FileFormatError(f"{where} must hold floating-point numbers, got {one.kind}")
        if len(one.shape) not in axes:
            shapes = " or ".join(AXES[count] for count in axes)
            raise FileFormatError(f"{where} must have the shape {shapes}, got {one.shape}")
        return one


Imported = tuple[NDArray[Any], NDArray[np.int64], str, _Notes]
"""Positions (runs, frames, tokens, dim), steps, name of the array, and notes."""


def _file(source: Path, wanted: _Wanted) -> Imported:
    """Read a single file, which holds an array of frames or, if it is a checkpoint, one frame."""
    notes = _Notes()
    with contextlib.ExitStack() as opened:
        checkpoint = source.suffix in CHECKPOINTS
        read = _h5md if source.suffix in H5MD else _numpy
        content = _checkpoint(source) if checkpoint else read(source, opened)
        axes = (2, 3, 4) if checkpoint else (3, 4)
        name = content.chosen(wanted.array, axes)
        array = content.array(name, axes)
        place = _axes(content, name, array, wanted, notes)
        positions = place(_cast(f"{source}: {name!r}", array.read(f"{source}: {name!r}"), wanted.dtype))
        if len(array.shape) == 2:
            clock = _steps_of_files([content], wanted.steps, notes)
        else:
            clock = _steps_in_file(content, array, wanted.steps, notes)
    positions = positions.reshape((1,) * (4 - positions.ndim) + positions.shape)
    finite = np.isfinite(positions).all(axis=(2, 3))
    sound = positions.shape[1]
    if not finite.all():
        sound = int(np.argmin(finite[0])) if len(finite) == 1 else 0
        if not sound:
            raise _not_finite(f"{source}: {name!r}", positions)
        notes.texts.append(_cut(f"{source.name} at step {clock[sound]}", positions.shape[1] - sound))
    return positions[:, :sound], clock[:sound], name, notes


def _directory(source: Path, wanted: _Wanted, progress: bool) -> Imported:
    """Read one frame from each checkpoint of a directory or pattern, in the order of their steps."""
    paths = _paths(source)
    notes, name, place = _Notes(), wanted.array, None
    contents: list[_Content] = []
    frames: list[NDArray[Any]] = []
    for path in bar(paths, "import", "file") if progress else paths:
        try:
            content = _checkpoint(path)
            name = content.chosen(name, (2,))
            array, where = content.array(name, (2,)), f"{path}: {name!r}"
        except (FileFormatError, InputError) as error:
            raise type(error)(f"{error}; {_pattern(source)}" if len(paths) > 1 else str(error)) from None
        place = place or _axes(content, name, array, wanted, notes)
        frame = _cast(where, array.read(where), wanted.dtype)
        if contents and array.shape != contents[0].arrays[name].shape:
            shape = contents[0].arrays[name].shape
            raise FileFormatError(f"{where} must have the shape {shape} as before, got {array.shape}")
        frames.append(place(frame))
        contents.append(_Content(path, {name: array}, content.numbers))
    clock = _steps_of_files(contents, wanted.steps, notes)
    order = np.argsort(clock, kind="stable")
    chosen: list[int] = []
    for at in map(int, order):
        before = chosen[-1] if chosen else None
        if before is not None and clock[before] == clock[at]:
            names = f"{paths[before].name} and {paths[at].name}"
            if not np.array_equal(frames[before], frames[at]):
                raise InputError(
                    f"{source} holds two checkpoints of step {clock[at]}, {names}; {_pattern(source)}"
                )
            notes.texts.append(f"{names} are the same, so one of them is left out")
        elif np.isfinite(frames[at]).all():
            chosen.append(at)
        elif not chosen:
            raise _not_finite(f"{paths[at]}: {name!r}", frames[at])
        else:
            notes.texts.append(_cut(f"{paths[at].name}", len(paths) - int(np.flatnonzero(order == at)[0])))
            break
    assert name is not None
    return np.stack([frames[at] for at in chosen])[None], clock[chosen], name, notes


def _not_finite(where: str, values: NDArray[Any]) -> FileFormatError:
    bad = values.size - int(np.count_nonzero(np.isfinite(values)))
    return FileFormatError(
        f"{where} must hold finite numbers, but {bad} of {values.size} values are NaN or infinite"
    )


def _cut(where: str, count: int) -> str:
    more = f", and this and {count - 1} later frames are left out" if count > 1 else ""
    return f"{where} holds NaN or infinite values, so the trajectory ends before it{more}"


def _pattern(source: Path) -> str:
    """Return advice on how some of the files of a directory are left out."""
    folder = source if source.is_dir() else source.parent
    suffix = next((path.suffix for path in folder.glob("*[0-9].*") if path.suffix in CHECKPOINTS), ".pt")
    return f"a quoted pattern, such as '{folder}/*[0-9]{suffix}', leaves files out"


def _paths(source: Path) -> list[Path]:
    """Return the checkpoints that a directory holds, or a pattern matches."""
    if not source.is_dir():
        matches = [Path(one) for one in glob.glob(str(source), recursive=True)]  # noqa: PTH207
        paths = [path for path in matches if path.suffix in CHECKPOINTS and path.is_file()]
        if not paths:
            raise InputError(f"source must match a checkpoint ({', '.join(CHECKPOINTS)}), got {source}")
        return sorted(paths, key=natural_order)
    with _reading(source, "directory"):
        paths = [path for path in source.iterdir() if path.suffix in CHECKPOINTS and path.is_file()]
        deeper = [] if paths else sorted(p for p in source.glob("*/*") if p.suffix in CHECKPOINTS)
    if not paths:
        advice = ""
        if deeper:
            advice = f", but {deeper[0].relative_to(source)}: pass a pattern, '{source}/*/{deeper[0].name}'"
        raise InputError(
            f"source must hold a checkpoint ({', '.join(CHECKPOINTS)}), got {source} with none{advice}"
        )
    return sorted(paths, key=natural_order)


# -- steps --------------------------------------------------------------------------------------------------

STEP_WORDS = {"step": "step", "steps": "step", "globalstep": "step", "iter": "step", "iters": "step",
              "iteration": "step", "iterations": "step", "it": "step", "update": "step", "updates": "step",
              "epoch": "epoch", "epochs": "epoch", "ep": "epoch"}  # fmt: skip
"""Words that label a step in the name of a file, by the kind of step."""
STEP_KEYS = {"step": "step", "global_step": "step", "iteration": "step", "iter": "step", "it": "step",
             "update": "step", "train_step": "step", "training_step": "step", "current_step": "step",
             "epoch": "epoch", "current_epoch": "epoch"}  # fmt: skip
"""Names of the number in a checkpoint that is its step, by the kind of step."""
ATTACHED = {"", "model", "net", "network", "state", "weights", "params", "ckpt", "checkpoint", "chkpt",
            "snapshot", "frame", "emb", "embed", "embedding", "embeddings", "save", "s", "e"}  # fmt: skip
"""Words that stand directly before a number that may be a step."""
SETTINGS = {"seed", "run", "v", "ver", "version", "p", "mod", "modulus", "prime", "loss", "acc",
            "accuracy", "err", "error", "lr", "wd", "decay", "train", "test", "val", "valid", "eval",
            "dim", "d", "layer", "layers", "head", "heads", "hidden", "width", "depth", "fold", "rank",
            "gpu", "part", "shard", "worker", "split", "frac", "fraction", "bs", "batch", "best", "top",
            "rep", "trial", "exp", "job", "copy", "rev", "k", "n", "tokens", "group", "block", "chunk",
            "member", "replica", "sample", "node", "task", "dataset", "class", "size", "alpha", "beta",
            "gamma", "lambda", "noise", "drop", "dropout", "ratio", "rate", "momentum", "eps"}  # fmt: skip
"""Words before a number that is no step, such as the loss or the seed."""
NUMBER = re.compile(r"([A-Za-z]*)([=_\-. ]*)(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)([A-Za-z0-9]*)", re.ASCII)
LISTS = re.compile(r"(?:^|_)(?:steps?|epochs?|iterations?|iters?|checkpoints?)$", re.IGNORECASE)
"""Names of arrays that hold the steps of the frames."""


def _numbers_in_name(path: Path) -> dict[str, list[int]]:
    """Return the numbers in the name of a file by kind: step, epoch, plain, or unclear, as that of a hash."""
    numbers: dict[str, list[int]] = {"step": [], "epoch": [], "plain": [], "unclear": []}
    stem = path.stem
    if not re.search(r"\d", stem) and re.fullmatch(r"(checkpoint|step|epoch)[-_=]?\d+", path.parent.name):
        stem = path.parent.name  # checkpoint-100/model.safetensors
    last = ""
    for match in NUMBER.finditer(stem):
        words, apart, text, tail = match.groups()
        word = re.findall(r"[A-Z]?[a-z]+|[A-Z]+", words)[-1].lower() if words else ""
        kind = STEP_WORDS.get(word) or STEP_WORDS.get(tail.lower(), "plain")
        if word in SETTINGS or (kind == "plain" and not text.isdecimal() and not tail):
            last = ""  # a loss, a seed: no step
            continue
        hash_or_unit = not text.isdecimal() or (tail and tail.lower() not in STEP_WORDS)
        date_or_name = len(text) > 7 or (not apart and word not in ATTACHED)
        thousands = last in ("step", "epoch") and not word  # step_1_000
        if hash_or_unit or (kind == "plain" and (date_or_name or thousands)):
            kind = "unclear"
        numbers[kind].append(int(re.match(r"\d+", text)[0]))  # type: ignore[index]
        last = kind
    return numbers


def _steps_of_files(contents: Sequence[_Content], key: str | None, notes: _Notes) -> NDArray[np.int64]:
    """Return the step of each checkpoint by its name and the numbers in it, or refuse what contradicts."""
    paths = [content.path for content in contents]
    keys = [name for name in contents[0].numbers if all(name in one.numbers for one in contents)]
    inside = {name: [one.numbers[name] for one in contents] for name in keys}
    if key is not None:
        if key not in inside:
            known = ", ".join(keys) or "none"
            raise InputError(
                f"--steps-array must name a whole number in each checkpoint, one of {known}, got {key!r}"
            )
        return _whole_steps(inside[key])
    inside = {name: values for name, values in inside.items() if name in STEP_KEYS}
    named = [_numbers_in_name(path) for path in paths]
    kind = next((one for one in ("step", "epoch", "plain") if any(names[one] for names in named)), None)
    clear = kind is not None and all(
        len(set(names[kind])) <= 1 and not (names["unclear"] and (kind == "plain" or not names[kind]))
        for names in named
    )
    if kind in ("step", "epoch"):
        clear &= not any(names["unclear"] for names in named)
    whole = clear and all(names[kind] for names in named)  # type: ignore[index]
    steps: list[int] | None = [names[kind][0] for names in named] if kind and whole else None

    def agrees(values: list[int]) -> bool:
        """Whether numbers in the files are among those in the names, as far as these have some."""
        clear = [{*names["step"], *names["epoch"], *names["plain"]} for names in named]
        return all(not numbers or value in numbers for value, numbers in zip(values, clear, strict=True))

    def refuse(why: str) -> InputError:
        shown = ", ".join(
            f"{path.name} ({_candidates(names, content.numbers)})"
            for path, names, content in list(zip(paths, named, contents, strict=True))[:3]
        )
        advice = f"--steps-array names the number that is the step, one of {', '.join(inside)}; "
        return InputError(
            f"{why}: {shown}; {advice if inside else ''}a name such as step_100.pt holds a step, and "
            f"{_pattern(paths[0].parent)}"
        )

    if steps is None:
        fitting = [name for name, values in inside.items() if agrees(values)]
        if len({tuple(inside[name]) for name in fitting}) > 1:
            raise refuse("more than one number may be the step of a checkpoint")
        if fitting:
            steps = inside[fitting[0]]
        elif len(paths) == 1 and not inside and not any(named[0].values()):
            notes.texts.append("the step is 0, as none is given")
            return np.zeros(1, np.int64)
        elif len(paths) == 1 and not inside and kind is None:
            notes.texts.append(f"the step is 0, as {paths[0].name} gives none that is clear")
            return np.zeros(1, np.int64)
        else:
            gap = [path.name for path, names in zip(paths, named, strict=True) if not any(names.values())]
            if gap and len(gap) < len(paths):
                raise refuse(f"the name of a checkpoint must hold its step, and {gap[0]} holds none")
            raise refuse("the step of a checkpoint must be clear from its name or its content")
    same = {name: values for name, values in inside.items() if kind in ("plain", None, STEP_KEYS[name])}
    if same and not any(values == steps for values in same.values()):
        raise refuse("the names of the checkpoints contradict what these say of themselves")
    order = np.argsort(steps, kind="stable")
    other = [[names[one][0] for names in named] for one in ("step", "epoch") if all(n[one] for n in named)]
    if any((np.diff(np.asarray(values, object)[order]) < 0).any() for values in (*inside.values(), *other)):
        raise refuse("the numbers of the checkpoints put them into different orders")
    return _whole_steps(steps)


def _candidates(names: Mapping[str, list[int]], numbers: Mapping[str, int]) -> str:
    """Return words on the numbers that may be a step: those in a name, and those in the file."""
    inside = [f"{name} {value} inside" for name, value in numbers.items() if name in STEP_KEYS]
    return ", ".join([str(number) for part in names.values() for number in part] + inside) or "no number"


def _steps_in_file(content: _Content, array: _Array, wanted: str | None, notes: _Notes) -> NDArray[np.int64]:
    """Return the steps of the frames of an array, which the file holds beside it."""
    frames = array.shape[-3]
    if array.steps is not None and wanted is None:
        return _whole_steps(array.steps)
    lists = {
        name: one for name, one in content.arrays.items() if one is not array and one.plain and one.shape
    }
    flat = {name: one for name, one in lists.items() if len(one.shape) == 1 and one.shape[0] == frames}
    if wanted is None:
        named = [name for name in lists if LISTS.search(name)]
        wanted = "steps" if "steps" in named else named[0] if len(named) == 1 else None
        named = named or [name for name, one in flat.items() if _counts(one.read(name))]
        if wanted is None and named:
            raise InputError(
                f"--steps-array must name the steps of the frames, one of {', '.join(named)}, or none for 0, "
                "1, 2, …"
            )
    if wanted is None or (wanted == "none" and wanted not in lists):
        notes.texts.append(
            f"the steps are 0, 1, 2, … as none are given{' in a .npy file' * (content.path.suffix == '.npy')}"
        )
        return np.arange(frames)
    if wanted not in lists:
        known = ", ".join(name for name, one in lists.items() if len(one.shape) == 1) or "none"
        raise InputError(
            f"--steps-array must name an array of {content.path}, one of {known}, got {wanted!r}"
        )
    if lists[wanted].shape != (frames,):
        raise InputError(
            f"--steps-array must name an array of {frames} steps, got {wanted} of the shape "
            f"{lists[wanted].shape}; none stands for 0, 1, 2, …"
        )
    return _whole_steps(lists[wanted].read(f"{content.path}: {wanted!r}"), wanted)


def _counts(values: NDArray[Any]) -> bool:
    """Whether numbers are whole and increase, as steps do."""
    whole = values.dtype.kind in "iuf" and np.isfinite(values).all() and (values == np.floor(values)).all()
    return bool(whole and len(values) > 1 and (values[1:] > values[:-1]).all())


def _whole_steps(clock: Any, name: str = "steps") -> NDArray[np.int64]:
    """Return steps as int64, because unsigned numbers would hide that they decrease."""
    steps = np.asarray(clock)
    whole = steps.dtype.kind in "iuO" or (
        steps.dtype.kind == "f" and np.isfinite(steps).all() and (steps == np.floor(steps)).all()
    )
    if steps.ndim != 1 or not whole:
        raise InputError(
            f"--steps-array must name a one-dimensional array of whole numbers, got {name} of {steps.dtype} "
            f"and the shape {steps.shape}"
        )
    if steps.dtype.kind != "i" and max(steps.tolist(), default=0) >= 2**63:
        raise InputError(f"steps must be below 2^63, got {max(steps.tolist())}")
    return steps.astype(np.int64)


# -- axes and numbers ---------------------------------------------------------------------------------------


def _axes(
    content: _Content, name: str, array: _Array, wanted: _Wanted, notes: _Notes
) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """Return the function that gives an array the axes (…, tokens, dim), or ask which axis is the tokens."""
    where, shape, modulus, swap = f"{content.path}: {name!r}", array.shape, wanted.modulus, wanted.transpose
    tokens, dim = shape[-2:]

    def fits(count: int, modulus: int) -> bool:
        return modulus <= count < min(2 * modulus, modulus + 10)

    if modulus is None:  # what the file says counts as far as it fits
        stated = {content.numbers.get(one) for one in ("modulus", "p", "prime", "mod")}
        modulus = next((p for p in stated if p and p > 2 and (fits(tokens, p) or fits(dim, p))), None)
    ask = "nothing says which of the last two axes is the tokens: pass --modulus P, or"
    if swap is None and modulus is not None:
        here, there = fits(tokens, modulus), fits(dim, modulus)
        if (there and not here) or (dim == modulus and tokens != modulus):
            raise InputError(
                f"{where} has the shape {shape}, with the modulus {modulus} on the last axis instead of that "
                "of the tokens before it: pass --transpose"
            )
        swap = False if not there or tokens == modulus != dim or array.embedding else None
        ask = "either of the last two axes may be the tokens: pass"
    elif swap is None and (array.embedding or min(tokens, dim) < 3):
        swap = False
    if swap is None:
        answer = "--transpose if it is the last, --no-transpose if it is the one before"
        raise InputError(f"{where} has the shape {shape}, and {ask} {answer}")
    count = dim if swap else tokens
    if wanted.modulus is None and modulus is not None and not fits(count, modulus):
        modulus = None
    if count < 3 or 0 in shape:
        raise FileFormatError(
            f"{where} must have at least 3 tokens and 1 dimension, and no axis may be empty; got {shape}"
            + ("" if swap or dim < 3 or 0 in shape else ": --transpose takes the last axis as the tokens")
        )
    if modulus is not None and not fits(count, modulus):
        raise InputError(f"--modulus must be the number of tokens, {count} in {where}, got {modulus}")
    if modulus is not None and count > modulus:
        left_out = f"those from {modulus} on are left out, as the modulus is {modulus}"
        if wanted.modulus is None:
            left_out = (
                f"more than the modulus {modulus} of the file: --modulus {modulus} keeps the first {modulus}"
            )
        notes.texts.append(f"of {count} tokens, {left_out}")
    notes.modulus = modulus

    def place(values: NDArray[Any]) -> NDArray[Any]:
        upright = values.swapaxes(-1, -2) if swap else values
        return np.ascontiguousarray(upright[..., : wanted.modulus, :])

    return place


def _cast(where: str, values: NDArray[Any], dtype: str | None) -> NDArray[Any]:
    """Return numbers as `dtype`, or refuse those that are finite and do not fit; `where` begins messages."""
    with np.errstate(over="ignore"):
        cast = values.astype(dtype or ("float64" if values.itemsize > 4 else "float32"))
    large = int(np.count_nonzero(np.isfinite(values) & ~np.isfinite(cast)))
    if large and dtype == "float32":
        raise InputError(f"--dtype must be float64 for {where}: {large} values are too large for float32")
    if large:
        raise FileFormatError(
            f"{where} must hold numbers of at most {np.finfo(np.float64).max:.2g} in size, the largest of "
            f"float64, but {large} of {values.size} values are larger"
        )
    return cast


# -- NumPy and H5MD -----------------------------------------------------------------------------------------


def _numpy(source: Path, opened: contextlib.ExitStack) -> _Content:
    """Read the headers of the arrays in a NumPy file, and the single numbers in it."""
    with _reading(source, ".npy or .npz file"):
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
        arrays = {name: _stored_array(source, *part) for name, part in parts.items()}
        read = {name: one.read(name) for name, one in arrays.items() if not one.shape and "int" in one.kind}
    numbers = {name: int(value) for name, value in read.items()}
    return _Content(source, arrays, numbers)


def _stored_array(path: Path, start: Callable[[], Any], size: int) -> _Array:
    """Read the header of an array whose file `start` opens and which has at most `size` bytes."""
    with start() as file:
        first = np.lib.format.read_magic(file) == (1, 0)
        header = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
        shape, _, kind = header(file)
        room = size - file.tell()

    def read(where: str) -> NDArray[Any]:
        if kind.hasobject:
            raise FileFormatError(
                f"{where} holds Python objects, and reading these could run code; store it as numbers"
            )
        if min(shape, default=0) < 0 or math.prod(shape) * kind.itemsize > room:
            raise FileFormatError(f"{where} has the shape {shape}, which is more than the file holds")
        with _reading(path, ".npy or .npz file"), start() as file:
            return np.asarray(np.lib.format.read_array(file, allow_pickle=False))

    return _Array(shape, "object" if kind.hasobject else str(kind), read)


def _h5md(source: Path, opened: contextlib.ExitStack) -> _Content:
    """Read the headers of the time-dependent elements of an H5MD file, which are named by their groups."""
    import h5py

    arrays: dict[str, _Array] = {}

    def element(name: str, group: Any) -> None:
        parts = {}
        for part in ("value", "step"):  # of which a link could lead out of the file
            link = group.get(part, getlink=True) if isinstance(group, h5py.Group) else None
            parts[part] = group[part] if isinstance(link, h5py.HardLink) else None
        value, clock = parts["value"], parts["step"]
        if not isinstance(value, h5py.Dataset) or value.external or value.is_virtual or value.ndim != 3:
            return

        def read(where: str) -> NDArray[Any]:
            if value.nbytes > DEFLATE * max(value.id.get_storage_size(), 1):
                raise FileFormatError(f"{where} has the shape {value.shape}, which is more than it stores")
            with _reading(source, "H5MD file"):
                return np.asarray(value[()])

        steps = None
        if isinstance(clock, h5py.Dataset) and clock.shape == value.shape[:1]:
            steps = clock[()]
        elif isinstance(clock, h5py.Dataset) and clock.shape == ():  # a fixed interval
            steps = int(clock.attrs.get("offset", 0)) + int(clock[()]) * np.arange(value.shape[0])
        arrays[name] = _Array(value.shape, str(value.dtype), read, True, steps)

    with _reading(source, "H5MD file"):
        file = opened.enter_context(h5py.File(source))
        if "h5md" not in file:
            raise FileFormatError(f"{source} is not an H5MD file, because it has no group h5md")
        if "parameters" in file and "config" in file["parameters"].attrs:
            raise InputError(f"source must be of another program, but {source} is a trajectory already")
        file.visititems(element)  # follows no links
    return _Content(source, arrays, {})


# -- PyTorch ------------------------------------------------------------------------------------------------


def _checkpoint(path: Path) -> _Content:
    """Read the tensors of a checkpoint, the numbers beside them, and lists of numbers."""
    import torch  # importing takes a second, and only checkpoints need it

    state = _safetensors(path) if path.suffix == ".safetensors" else _loaded(path)
    levels = [state]
    for _ in WRAPPERS:
        inner = [levels[-1][name] for name in WRAPPERS if isinstance(levels[-1].get(name), Mapping)]
        levels += inner[:1]
    for level in levels:
        for name, value in [("the file", level), *level.items()]:
            if count := _series(value):
                raise FileFormatError(
                    f"{path}: {name if isinstance(name, int) or name == 'the file' else repr(name)} holds a "
                    f"series of {count} states, not one; save each as a file of its own, such as step_0.pt, "
                    "and import their directory"
                )
    everything = {name: value for level in levels for name, value in level.items() if isinstance(name, str)}
    arrays, numbers = {}, {}
    for name, value in everything.items():
        if isinstance(value, torch.Tensor):
            linear = name.endswith(".weight") and name.removesuffix("weight") + "bias" in everything
            arrays[name] = _tensor(path, value, _is_embedding(name) and not linear)
        elif isinstance(value, (list, tuple, np.ndarray)) and np.ndim(_flat(value)) == 1:
            flat = _flat(value)
            arrays[name] = _Array(flat.shape, str(flat.dtype), partial(lambda flat, where: flat, flat))
    configs = [everything[name] for name in CONFIGS if isinstance(everything.get(name), Mapping)]
    for name, value in [*(item for config in configs for item in config.items()), *everything.items()]:
        number = _whole(value)
        if number is not None:
            numbers[name] = number
    return _Content(path, arrays, numbers)


def _tensor(path: Path, tensor: Any, embedding: bool) -> _Array:
    """Return a tensor as an array, which refuses to be read unless its numbers lie in the file."""
    import torch

    kind = str(tensor.dtype).removeprefix("torch.")
    special = tensor.is_nested or tensor.layout != torch.strided or tensor.is_quantized or tensor.is_meta
    if special:
        kind = "nested" if tensor.is_nested else "quantized" if tensor.is_quantized else str(tensor.layout)
        return _Array((), f"{kind.removeprefix('torch.')} tensors", lambda _: np.empty(0))

    def read(where: str) -> NDArray[Any]:
        if tensor.numel() * tensor.element_size() > path.stat().st_size:
            raise FileFormatError(
                f"{where} has the shape {tuple(tensor.shape)}, which is more than the file holds"
            )
        with _reading(path, "checkpoint"):
            real = tensor.detach()
            narrow = real.is_floating_point() and real.dtype != torch.float64
            return np.asarray((real.float() if narrow else real).resolve_conj().resolve_neg().numpy())

    return _Array(tuple(tensor.shape), kind, read, embedding)


def _is_embedding(name: str) -> bool:
    """Whether a parameter has the name of the weights of `torch.nn.Embedding`, whose axes are known."""
    *above, last = name.lower().split(".")
    return last == "weight" and bool(above) and ("emb" in above[-1] or above[-1] in ("wte", "wpe"))


def _flat(value: Any) -> NDArray[Any]:
    """Return a list of numbers as an array; an empty one of two axes if it is none."""
    if not isinstance(value, np.ndarray):
        value = value if all(_whole(one) is not None or isinstance(one, float) for one in value) else ()
    return np.asarray(value) if np.size(value) else np.empty((0, 0))


def _whole(value: Any) -> int | None:
    """Return a whole number as an int, also that of a tensor of no axes; None if it is none."""
    import torch

    if isinstance(value, torch.Tensor):
        scalar = not value.is_nested and value.layout == torch.strided and value.ndim == 0
        value = value.item() if scalar and not value.is_meta and not value.is_complex() else None
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        return None
    return int(value) if math.isfinite(value) and value == int(value) else None


def _series(value: Any) -> int:
    """Return the number of states in a list of state dicts or matrices, or a mapping of steps to them."""
    import torch

    if isinstance(value, Mapping) and value and all(str(name).isdecimal() for name in value):
        value = list(value.values())

    def is_matrix(one: Any) -> bool:
        return isinstance(one, torch.Tensor) and (one.is_nested or one.ndim > 1)

    if not isinstance(value, (list, tuple)):
        return 0
    states = [
        one
        for one in value
        if is_matrix(one)
        or (
            isinstance(one, Mapping)
            and any(
                is_matrix(part) or (isinstance(part, Mapping) and name in WRAPPERS)
                for name, part in one.items()
            )
        )
    ]
    return len(states)


def _loaded(path: Path) -> Mapping[Any, Any]:
    """Read what ``torch.save`` has written, as far as that needs no code of the file."""
    import torch

    try:
        if zipfile.is_zipfile(path):  # of which PyTorch compresses nothing
            with zipfile.ZipFile(path) as archive:
                if sum(info.file_size for info in archive.infolist()) > path.stat().st_size:
                    raise FileFormatError(f"{path} states records of more bytes than the file holds")
        with warnings.catch_warnings(), torch.serialization.safe_globals(_harmless()):
            warnings.simplefilter("ignore")
            state = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise FileFormatError(f"{path} is not a readable checkpoint: {sentence(error)}") from None
    except FileFormatError:
        raise
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
    if isinstance(state, torch.Tensor):
        return {BARE: state}
    if not isinstance(state, Mapping):
        if count := _series(state):
            raise FileFormatError(
                f"{path} holds a list of {count} states; save each as a file of its own, such as step_0.pt, "
                "and import their directory"
            )
        raise FileFormatError(f"{path} is not a state dict, but a {type(state).__name__}")
    return state


def _harmless() -> list[Any]:
    """Return NumPy's numbers and arrays, which may stand beside tensors and run no code, by either name."""
    import numpy._core.multiarray as core

    makers = [
        (getattr(core, name), f"numpy.{part}.multiarray.{name}")
        for name in ("scalar", "_reconstruct")
        for part in ("core", "_core")
    ]
    return [*makers, np.ndarray, np.dtype, *(type(np.dtype(code)) for code in "?bhilqBHILQefdgFD")]


def _safetensors(path: Path) -> Mapping[Any, Any]:
    try:
        from safetensors.torch import load_file
    except ImportError:
        what = "the package safetensors: pip install 'grokphys[safetensors]'"
        raise InputError(f"{path} needs {what}") from None
    with _reading(path, ".safetensors file"):
        return load_file(path)


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
