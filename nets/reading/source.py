"""The files of one run of another program: what they hold, and how they become a trajectory."""

import glob
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from nets.reading.contents import Content, State, content_of, short_name
from nets.reading.files import ARRAYS, CHECKPOINTS, SETTINGS_FILE, reading, settings_of, table_of
from nets.reading.pickles import Stored
from nets.reading.steps import (
    KEYS,
    LABELS,
    LISTS,
    Numbers,
    candidates,
    listed_steps,
    numbers_in_name,
    numbers_in_text,
    steps_of,
)
from nets.reading.tokens import MODULUS, Axes, axes_of
from physics.errors import FileFormatError, InputError
from physics.trajectory import Trajectory
from physics.trajectory.header import chosen_tokens

METRIC = re.compile(r"(?i)loss|acc|err|norm|nll|perplexity|ppl|mse|(^|_)lr$|learning_rate")
"""Names of what programs measure while they train."""
NO_MODEL = re.compile(r"(?i)optim|sched|scaler|rng_state|training_args")
"""Names of files of the state of the training, not of the network."""
EMBEDDING = re.compile(r"(?i)emb|(?:^|\.)(?:W_E|wte)(?:\.|$)")
"""Names of embeddings of tokens."""
OTHER = re.compile(r"(?i)pos|unemb|(^|\.)wpe\.|norm|\.ln|hook")
"""Names of arrays that are none, in spite of such a name."""
INTO = re.compile(r"(?i)(W_in|fc1|linear1|lin1|W1)\b")
"""Names of the weights into a hidden layer."""
OUT_OF = {"w_in": "W_out", "fc1": "fc2", "linear1": "linear2", "lin1": "lin2", "w1": "W2"}
"""Names of the weights out of it."""
P_IN_NAME = re.compile(r"(?i)(?:^|[-_])(?:p|mod|prime)[-_=]?(\d+)(?![\d.])")
SHARD = re.compile(r"-\d{5}-of-\d{5}$")
LISTED = 12
"""Number of names that a message lists."""
MANY = 100
"""Number of files from which on only the wanted array of each is kept in mind."""
Progress = Callable[[Sequence[Path]], Iterable[Path]]


@dataclass
class Wanted:
    """What the user says about the files; `read_checkpoints` describes it."""

    array: str | None = None
    kind: str = "embedding"
    steps: str | Sequence[int] | None = None
    step_key: str | None = None
    step_name: str | None = None
    modulus: int | None = None
    transpose: bool | None = None
    tokens: Any = None
    dtype: str | None = None


@dataclass
class Frames:
    """What becomes the frames: an array in each of some states, or one stack of them."""

    name: str
    states: list[State]
    paths: list[Path]
    labels: list[str]
    """Names of the files or of their directories, which may tell the steps; "" in a series in a file."""

    @property
    def first(self) -> Stored:
        """Array of the first state."""
        return self.states[0].arrays[self.name]

    @property
    def stack(self) -> bool:
        """Whether the frames are an axis of a single array."""
        return len(self.states) == 1 and self.first.ndim > 2

    @property
    def runs(self) -> int:
        """Number of runs, which a stack of four axes has."""
        return self.first.shape[0] if self.first.ndim == 4 else 1


def files_of_runs(path: Path) -> list[list[Path]]:
    """Return the files of each run that a path, a directory or a pattern stands for."""
    matches = [path]
    if not path.exists():
        matches = sorted(map(Path, glob.glob(str(path), recursive=True)), key=_natural)  # noqa: PTH207
    if not matches:
        raise FileNotFoundError(f"there is no file {path}")
    folders = [match for match in matches if match.is_dir()]
    if not folders:
        return [matches]
    runs: list[list[Path]] = []
    for folder in folders:
        models = _models(folder)
        deeper = [(one, _models(one)) for one in sorted(folder.iterdir(), key=_natural) if one.is_dir()]
        steps = [files for one, files in deeper if numbers_in_name(one.name) and _is_one_state(files)]
        if steps and (not models or len(steps) > 1):  # checkpoint-100/model.safetensors
            runs.append([*models, *(file for files in steps for file in files)])
        else:
            runs += [models] if models else [files for _, files in deeper if files]
    if not runs:
        endings = ", ".join(CHECKPOINTS + ARRAYS)
        raise InputError(f"path must hold checkpoints ({endings}), got {path} with none")
    return runs


def _natural(path: Path) -> list[str | int]:
    """Return a sort key by which numbers are compared as numbers."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", str(path))]


def _models(folder: Path) -> list[Path]:
    """Return the files of a directory that may hold a network."""
    files = [one for one in folder.iterdir() if one.suffix in (*CHECKPOINTS, *ARRAYS) and one.is_file()]
    return sorted((one for one in files if not NO_MODEL.search(one.stem)), key=_natural)


def _is_one_state(files: Sequence[Path]) -> bool:
    """Whether files are one state, which may be stored in several shards."""
    return len({SHARD.sub("", file.stem) for file in files}) == 1


class Source:
    """The files of one run; `progress` yields them while they are read."""

    def __init__(self, files: Sequence[Path], wanted: Wanted, progress: Progress = list) -> None:
        self.files, self.wanted = list(files), wanted
        self.notes: list[str] = []
        self.contents: list[Content] = []
        self.folders = list(dict.fromkeys(file.parent for file in self.files))
        self._spread = len(self.folders) > 1
        if self._spread or self.folders[0].name in ("checkpoints", "ckpts", "models", "weights"):
            self.folders.append(self.folders[0].parent)
        for path in progress(self.files):
            self._add(path)
        if not self.contents:
            raise FileFormatError(f"{files[0].parent} holds nothing that can be read: {few(self.notes)}")
        self.lists: dict[str, NDArray[Any]] = {}
        for content in self.contents:
            for name, values in content.lists.items():
                measured = METRIC.search(name) and "." not in name
                if len(self.contents) == 1 or measured or LISTS.search(name):
                    with reading(content.path):
                        self.lists[name] = values.read() if isinstance(values, Stored) else values
        self.settings = self._settings()

    def _add(self, path: Path) -> None:
        """Read what a file holds, or leave it out with a note if it has no step and cannot be read."""
        try:
            content = content_of(path)
        except (FileFormatError, InputError) as error:
            if len(self.files) == 1 or numbers_in_name(path.stem):
                raise
            self.notes.append(f"{path.name} is left out: {error}")
            return
        last = self.contents[-1] if self.contents else content
        if content is not last and SHARD.search(path.stem) and self._label(path) == self._label(last.path):
            last.top.arrays |= content.top.arrays
            return
        self.contents.append(content)
        state = path.with_name("trainer_state.json")
        if self._spread and state.exists():
            content.top.numbers.setdefault("global_step", settings_of(state)["global_step"])
        if len(self.files) > MANY and self.wanted.kind == "embedding":
            name = _named(self.contents[0].top.arrays, self.wanted)
            if name in content.top.arrays:
                content.top.arrays = {name: content.top.arrays[name]}

    def _label(self, path: Path) -> str:
        """Return what may tell the step of a file: its name, or with it that of its directory."""
        stem = SHARD.sub("", path.stem)
        return f"{path.parent.name} {stem}" if self._spread and not numbers_in_name(stem) else stem

    def _settings(self) -> dict[str, Any]:
        """Return the settings in the files and in a file of settings beside them."""
        settings: dict[str, Any] = {}
        for folder in self.folders:
            files = [one for one in folder.iterdir() if one.suffix in (".json", ".yaml", ".yml")]
            files = [one for one in files if SETTINGS_FILE.search(one.stem)]
            if len(self.files) == 1 and len(files) > 1:  # config_2k4ohj6bhd.json of model_2k4ohj6bhd.pt
                identity = self.files[0].stem.split("_")[-1]
                files = [one for one in files if one.stem.split("_")[-1] == identity]
            for one in files if len(files) == 1 else ():
                settings |= {
                    name: value
                    for name, value in settings_of(one).items()
                    if isinstance(value, str | int | float | None) and value == value
                }
        for content in self.contents:
            settings |= {
                name: value
                for name, value in content.settings.items()
                if name not in KEYS and not METRIC.search(name)
            }
        return settings

    def moduli(self) -> dict[str, int]:
        """Return the numbers that may be the modulus, by where they stand."""
        moduli = {
            f"{name} in the settings": value
            for name, value in self.settings.items()
            if name in MODULUS and isinstance(value, int) and not isinstance(value, bool)
        }
        examples = {name: p for content in self.contents for name, p in content.numbers_of_pairs.items()}
        if examples:
            moduli[f"largest number in {', '.join(examples)}"] = max(examples.values())
        for name in (self.files[0].stem, self.files[0].parent.name):
            if match := P_IN_NAME.search(name):
                moduli[f"the name {name}"] = int(match[1])
        return moduli

    def tables(self) -> list[Path]:
        """Return the tables of losses beside the files; of Hugging Face's that of the last checkpoint."""
        if len(self.files) == 1:
            return []
        folders = dict.fromkeys([self.folders[-1], self.folders[0]])
        tables = [
            one
            for folder in folders
            for one in sorted(folder.iterdir())
            if one.suffix in (".csv", ".jsonl") or one.name.startswith("events.out.tfevents")
        ]
        state = self.files[-1].with_name("trainer_state.json")
        return [*tables, *([state] if state.exists() else [])]

    def frames(self) -> Frames:
        """Return the array to read, by the user's name for it or by what it is called."""
        pools = [(name, one, states) for one in self.contents for name, states in one.series.items()]
        pools.append(("", self.contents[-1], [one.top for one in self.contents if one.top.arrays]))
        shown: dict[str, Stored] = {}
        fit: list[tuple[str, str, Content, list[State]]] = []
        for series, content, states in pools:
            arrays: dict[str, Stored] = {}
            for state in states:
                arrays = {**state.arrays, **arrays}
            shown = {**arrays, **shown}
            name = _named(arrays, self.wanted, series)
            if name is not None and (series or not fit):
                fit.append((name, series, content, states))
        if len(fit) > 1:
            names = ", ".join(f"{series}.{name}" for name, series, *_ in fit)
            raise InputError(f"array must name the array of one of several series, {names}")
        if not fit:
            self._refuse(shown)
        [(name, series, content, states)] = fit
        holders = [state for state in states if name in state.arrays]
        without = [state.name for state in states if name not in state.arrays]
        if without:
            self.notes.append(f"left out, as they hold no {name}: {few(without)}")
        if series and name in content.top.arrays:
            self.notes.append(f"the {name} beside {series} is left out")
        path_of = {id(one.top): one.path for one in self.contents}
        paths = [path_of.get(id(state), content.path) for state in holders]
        return Frames(name, holders, paths, ["" if series else self._label(path) for path in paths])

    def _refuse(self, arrays: Mapping[str, Stored]) -> NoReturn:
        """Say that no array is known to be the embedding, and which there are."""
        where = self.files[0] if len(self.files) == 1 else self.folders[0]
        if not arrays:
            raise FileFormatError(f"{where} holds no array of two or more axes")
        listed = few([f"{name} {array.shape} {array.kind}" for name, array in arrays.items()])
        raise InputError(f"array must name one of those in {where}, {listed}, got {self.wanted.array}")

    def steps(self, frames: Frames) -> tuple[Numbers, str]:
        """Return the step of each frame, None if it is unknown, and where the steps stand."""
        count = frames.first.shape[-3] if frames.stack else len(frames.states)
        wanted, key = self.wanted.steps, self.wanted.step_key
        if wanted is not None:
            steps = numbers_in_text(wanted) if isinstance(wanted, str) else [int(step) for step in wanted]
            if len(steps) != count:
                raise InputError(f"steps must be as many as the {count} frames, got {len(steps)}")
            return steps, "given"
        series = not frames.labels[0]
        if frames.first.steps is not None and key is None:
            return frames.first.steps.tolist(), "step of the element"
        in_states = series and any(set(state.numbers) & {*KEYS, key} for state in frames.states)
        if (frames.stack or series) and not in_states and key != "none":
            listed = listed_steps(self.lists, count, key)
            if listed is not None:
                return listed[0].tolist(), listed[1]
            key = "none"
        if key == "none":
            self.notes.append("the steps are 0, 1, 2, … as none are given; steps=0:3000:30 states them")
            return list(range(count)), "none"
        evidence = candidates(frames.states, frames.labels)
        clear = len(evidence) == 1 or {*KEYS, *LABELS} & set(evidence)
        if count == 1 and not (self.wanted.step_name or key or clear):
            self.notes.append("the step is 0, as none is given")
            return [0], "none"
        return steps_of(frames.states, frames.labels, key, self.wanted.step_name)

    def axes(self, frames: Frames) -> Axes:
        """Return which axis of the array is the tokens."""
        array, where = frames.first, f"{frames.paths[0]}: {frames.name}"
        if not array.real:
            raise FileFormatError(f"{where} must hold real floating-point numbers, got {array.kind}")
        if array.ndim not in ((2, 3, 4) if len(frames.states) == 1 else (2,)):
            raise FileFormatError(
                f"{where} must have the axes (steps, tokens, dim) or (runs, steps, tokens, dim), or (tokens, "
                f"dim) in each of several states, got {array.shape}"
            )
        for state in frames.states:
            shape = state.arrays[frames.name].shape
            if shape != array.shape:
                raise FileFormatError(
                    f"{state.name}: {frames.name} must have the shape {array.shape} as before, got {shape}"
                )
        return self._axes(frames, frames.name, self.wanted.modulus, self.wanted.transpose)

    def _axes(self, frames: Frames, name: str, modulus: int | None, transpose: bool | None) -> Axes:
        state = frames.states[0]
        return axes_of(name, state.arrays[name], state.vectors, self.moduli(), modulus, transpose)

    def trajectory(self, path: Any) -> Trajectory:
        """Read the frames, the losses and the settings."""
        frames = self.frames()
        axes = self.axes(frames)
        steps, where = self.steps(frames)
        parts = {frames.name: axes}
        if self.wanted.kind == "neurons":
            out = INTO.sub(lambda match: OUT_OF[match[1].lower()], frames.name)
            if out != frames.name and out in frames.states[0].arrays:
                parts[out] = self._axes(frames, out, axes.modulus, None)
        parameters: dict[str, Any] = {
            "program": "nets.read_checkpoints",
            "path": str(path),
            "array": frames.name,
        }
        chosen: Any = slice(axes.modulus)
        if self.wanted.tokens is not None:
            chosen = chosen_tokens(self.wanted.tokens, frames.first.shape[-1 if axes.swap else -2])
            parameters["selected_tokens"] = chosen.tolist()
        kept, positions = self._read(frames, parts, steps, chosen)
        if len(steps) > 1 and where not in ("none", "given"):
            self.notes.append(f"the steps are {where}")
        self.notes += axes.notes
        clock = np.array([steps[at] for at in kept], np.int64)
        observables, clocks = self._observables(frames, kept, clock, "epoch" if "epoch" in where else "step")
        parameters |= {"modulus": axes.modulus} if axes.modulus else {}
        parameters |= {"neurons": list(parts)} if self.wanted.kind == "neurons" else {}
        parameters |= {"configuration": self.settings} if self.settings else {}
        parameters |= {"notes": self.notes}
        return Trajectory(positions, clock, observables=observables, clocks=clocks, parameters=parameters)

    def _read(
        self, frames: Frames, parts: Mapping[str, Axes], steps: Numbers, chosen: Any
    ) -> tuple[list[int], NDArray[Any]]:
        """Return the indices of the frames, in the order of their steps, and their positions."""

        def values(at: int) -> NDArray[Any]:
            """Return the positions of one frame, (runs, tokens, dim)."""
            state = frames.states[0 if frames.stack else at]
            places: list[tuple[int, ...]] = [()]
            if frames.stack:
                places = [(run, at)[-(frames.first.ndim - 2) :] for run in range(frames.runs)]
            blocks = [
                [_upright(state.arrays[name].read(place), axes)[chosen] for place in places]
                for name, axes in parts.items()
            ]
            return _cast(np.concatenate(blocks, axis=-1), self.wanted.dtype)

        known = [(step, at) for at, step in enumerate(steps) if step is not None]
        unknown = [frames.states[at].name for at, step in enumerate(steps) if step is None]
        if unknown:
            self.notes.append(f"left out, as their step is unknown: {few(unknown)}")
        if frames.stack and known != sorted(known):
            raise InputError("steps must increase from frame to frame of an array, got some that decrease")
        kept: list[int] = []
        for step, at in sorted(known):
            name = frames.states[0 if frames.stack else at].name
            with reading(frames.paths[0 if frames.stack else at]):
                frame = values(at)
            if not kept:
                positions = np.empty((frames.runs, len(known), *frame.shape[1:]), frame.dtype)
            if not np.isfinite(frame).all():
                if not kept or frames.runs > 1:
                    raise FileFormatError(
                        f"{name}: {frames.name} holds NaN or infinite values at step {step}"
                    )
                self.notes.append(f"the series ends before step {step} of {name}, which is not finite")
                break
            if kept and steps[kept[-1]] == step:
                if not np.array_equal(frame, positions[:, len(kept) - 1]):
                    raise InputError(
                        f"path must hold one checkpoint of step {step}, but those of "
                        f"{frames.states[kept[-1]].name} and {name} differ; a pattern such as '*[0-9].pt' "
                        "leaves files out"
                    )
                self.notes.append(f"{name} is left out: it is the same as the other of step {step}")
                continue
            positions[:, len(kept)] = frame
            kept.append(at)
        return kept, positions[:, : len(kept)]

    def _observables(
        self, frames: Frames, kept: Sequence[int], clock: NDArray[np.int64], unit: str
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what was measured at the frames or at steps of its own, and these steps."""
        observables: dict[str, NDArray[Any]] = {}
        clocks: dict[str, tuple[Any, Any]] = {}
        if frames.runs > 1:
            return observables, clocks
        numbers = [] if frames.stack else [frames.states[at].numbers for at in kept]
        for name in dict.fromkeys(name for one in numbers for name in one if METRIC.search(name)):
            observables[_plain(name)] = np.array([[one.get(name, np.nan) for one in numbers]], np.float64)
        gap = int(np.diff(clock).max(initial=1)) + 1
        for name, listed in self.lists.items():
            if not METRIC.search(name) or "." in name or _plain(name) in observables:
                continue
            if len(listed) in (len(kept), frames.first.shape[0] if frames.stack else -1):
                observables[_plain(name)] = np.array([listed[: len(kept)]], np.float64)
            elif clock[-1] <= len(listed) <= clock[-1] + gap and len(clock) > 1:
                observables[_plain(name)] = np.array([listed], np.float64)
                clocks[_plain(name)] = (np.arange(len(listed)), None)
            else:
                self.notes.append(f"{name} of {len(listed)} values is left out: their steps are unknown")
        for table in self.tables():
            column, columns = table_of(table, unit)
            columns = {name: pair for name, pair in columns.items() if _plain(name) not in observables}
            for name, (steps, measured) in columns.items():
                observables[_plain(name)] = np.array([measured], np.float64)
                clocks[_plain(name)] = (np.array(steps, np.int64), None)
            if columns:
                self.notes.append(f"{few(list(columns))} of {table.name} at its {column}")
        return observables, clocks


def _named(arrays: Mapping[str, Stored], wanted: Wanted, series: str = "") -> str | None:
    """Return the array that the user names, or the only one that is what is wanted by its name or shape."""
    if wanted.array is not None:
        full = wanted.array.replace("/", ".")  # of the path in an HDF5 file
        full = full.removeprefix(f"{series}.") if series else full
        name = short_name(full)
        if name in arrays or full in arrays:
            return name if name in arrays else full
        fit = [one for one in arrays if one.endswith(f".{name}")]
    else:
        fits = [name for name, array in arrays.items() if array.real or not array.plain]
        stacks = [name for name in fits if arrays[name].ndim in (3, 4) and len(arrays) < 4]
        word = INTO if wanted.kind == "neurons" else EMBEDDING
        fit = [name for name in fits if word.search(name) and not OTHER.search(name)]
        fit = fit or next((names for names in (stacks, fits) if len(names) == 1), [])
    if len(fit) > 1:
        several = few([f"{name} {arrays[name].shape}" for name in fit])
        raise InputError(f"array must name one of several arrays, {several}")
    return fit[0] if fit else None


def _upright(values: NDArray[Any], axes: Axes) -> NDArray[Any]:
    return values.T if axes.swap else values


def _cast(values: NDArray[Any], dtype: str | None) -> NDArray[Any]:
    """Return numbers in their number type, or in the one that is wanted if all fit into it."""
    with np.errstate(over="ignore"):
        cast = values.astype(dtype or ("float64" if values.itemsize > 4 else "float32"), copy=False)
    if (np.isfinite(values) & ~np.isfinite(cast)).any():
        raise InputError(f"dtype must be float64, as some values are too large for {cast.dtype}")
    return cast


def _plain(name: str) -> str:
    """Return a name of a measurement that a file can hold."""
    return re.sub(r"[/\x00]", "_", name).strip(".") or "value"


def shortened(names: Sequence[str]) -> list[str]:
    """Return the first names, and how many others there are."""
    return [*names[:LISTED], *([f"{len(names) - LISTED} others"] if len(names) > LISTED else [])]


def few(names: Sequence[str]) -> str:
    """Return the first names in a sentence, and how many others there are."""
    return ", ".join(shortened(names))
