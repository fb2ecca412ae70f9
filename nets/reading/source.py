"""The files of one run of another program: what they hold, and how they become a trajectory."""

import contextlib
import glob
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nets.reading.contents import Content, State, content_of, short_name
from nets.reading.files import ARRAYS, CHECKPOINTS, REAL, kind_of, numbers_of, reading, settings_of, table_of
from nets.reading.steps import LIST, Numbers, candidates, numbers_in_name, numbers_in_text, steps_of
from nets.reading.tokens import MODULUS, axes_of
from physics.errors import FileFormatError, InputError
from physics.trajectory import Trajectory
from physics.trajectory.header import chosen_tokens
from physics.values import natural_order

METRIC = re.compile(r"(?i)loss|acc|err|norm|nll|perplexity|ppl|mse")
"""Names of what programs measure while they train."""
NO_MODEL = re.compile(r"(?i)optim|sched|scaler|rng_state|training_args|random_state|custom_checkpoint")
"""Names of files of the state of the training, not of the network."""
EMBEDDING = re.compile(r"(?i)emb|(?:^|\.)(?:W_E|wte)(?:\.|$)")
"""Names of embeddings of tokens."""
OTHER = re.compile(r"(?i)pos|unemb|(^|\.)wpe\.|norm|\.ln|hook")
"""Names of arrays that are none, in spite of such a name."""
INTO = re.compile(r"(?i)(W_in|fc1|linear1|lin1|W1)\b")
"""Names of the weights into a hidden layer."""
OUT_OF = {"w_in": "W_out", "fc1": "fc2", "linear1": "linear2", "lin1": "lin2", "w1": "W2"}
"""Names of the weights out of it."""
SETTINGS_FILE = re.compile(r"(?i)(?:config|args|hparams|params|settings|metadata).*\.(?:json|ya?ml)")
SHARD = re.compile(r"-\d{5}-of-\d{5}$")
LISTED = 12
"""Number of names that a message lists."""
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


def files_of_runs(path: Path) -> list[list[Path]]:
    """Return the files of each run that a path, a directory or a pattern stands for."""
    matches = [path]
    if not path.exists():
        matches = sorted(map(Path, glob.glob(str(path), recursive=True)), key=natural_order)  # noqa: PTH207
    if not matches:
        raise FileNotFoundError(f"there is no file {path}")
    folders = [match for match in matches if match.is_dir()]
    if not folders:
        return [matches]
    runs: list[list[Path]] = []
    for folder in folders:
        models = _models(folder)
        deeper = [(one, _models(one)) for one in sorted(folder.iterdir(), key=natural_order) if one.is_dir()]
        one_state = [
            (one, files) for one, files in deeper if len({SHARD.sub("", file.stem) for file in files}) == 1
        ]
        steps = [files for one, files in one_state if numbers_in_name(one.name)]
        if steps and (not models or len(steps) > 1):  # checkpoint-100/model.safetensors
            runs.append([*models, *(file for files in steps for file in files)])
        else:
            runs += [models] if models else [files for _, files in deeper if files]
    if not runs:
        endings = ", ".join(CHECKPOINTS + ARRAYS)
        raise InputError(f"path must hold checkpoints ({endings}), got {path} with none")
    return runs


def _models(folder: Path) -> list[Path]:
    """Return the files of a directory that may hold a network."""
    files = [one for one in folder.iterdir() if one.suffix in (*CHECKPOINTS, *ARRAYS) and one.is_file()]
    return sorted((one for one in files if not NO_MODEL.search(one.stem)), key=natural_order)


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
        self.settings = self._settings()

    def _add(self, path: Path) -> None:
        """Read what a file holds, or leave it out if it has no step and cannot be read."""
        with self._left_out(path, unless=len(self.files) == 1 or bool(numbers_in_name(path.stem))):
            content = content_of(path)
            last = self.contents[-1] if self.contents else content
            if (
                content is not last
                and SHARD.search(path.stem)
                and self._label(path) == self._label(last.path)
            ):
                last.top.arrays |= content.top.arrays
            else:
                self.contents.append(content)

    @contextlib.contextmanager
    def _left_out(self, path: Path, *, unless: bool = False) -> Iterator[None]:
        """Note that a file cannot be read, instead of ending."""
        try:
            yield
        except (FileFormatError, InputError) as error:
            if unless:
                raise
            self.notes.append(f"{path.name} is left out: {error}")

    def _label(self, path: Path) -> str:
        """Return what may tell the step of a file: its name, or with it that of its directory."""
        stem = SHARD.sub("", path.stem)
        return f"{path.parent.name} {stem}" if self._spread and not numbers_in_name(stem) else stem

    def _settings(self) -> dict[str, Any]:
        """Return the settings in the files and in a file of settings beside them."""
        settings: dict[str, Any] = {}
        for folder in self.folders:
            files = [one for one in folder.iterdir() if SETTINGS_FILE.fullmatch(one.name)]
            if len(self.files) == 1 and len(files) > 1:  # config_2k4ohj6bhd.json of model_2k4ohj6bhd.pt
                identity = self.files[0].stem.split("_")[-1]
                files = [one for one in files if one.stem.split("_")[-1] == identity]
            if len(files) == 1:
                with self._left_out(files[0]):
                    settings |= settings_of(files[0])
        for content in self.contents:
            settings |= content.settings
        return {
            name: value
            for name, value in settings.items()
            if isinstance(value, str | int | float | None) and value == value
            if not LIST.fullmatch(name) and not METRIC.search(name)
        }

    def moduli(self) -> dict[str, int]:
        """Return the numbers that may be the modulus, by where they stand."""
        moduli = {
            f"{name} in the settings": value
            for name, value in self.settings.items()
            if name in MODULUS and isinstance(value, int) and not isinstance(value, bool)
        }
        examples = {name: p for content in self.contents for name, p in content.examples.items()}
        if examples:
            moduli[f"largest number in {few(list(examples))}"] = max(examples.values())
        return moduli

    def lists(self) -> dict[str, NDArray[Any]]:
        """Return the lists of measurements and of steps in the files."""
        lists: dict[str, NDArray[Any]] = {}
        for content in self.contents:
            for full, values in content.top.vectors.items():
                name = full.rpartition(".")[2]
                if METRIC.search(name) or LIST.fullmatch(name) or name == self.wanted.step_key:
                    with reading(content.path):
                        lists[name] = numbers_of(values)
        return lists

    def tables(self) -> list[Path]:
        """Return the tables of losses beside the files; of Hugging Face's that of the last checkpoint."""
        if len(self.files) == 1:
            return []
        folders = {self.folders[0], self.folders[-1]}
        inside = [one for folder in folders for one in folder.iterdir()]
        tables = [one for one in inside if one.suffix in (".csv", ".jsonl") or "tfevents" in one.name]
        state = self.files[-1].with_name("trainer_state.json")
        return [*sorted(tables), *([state] if state.exists() else [])]

    def frames(self) -> tuple[str, list[State]]:
        """Return the name of the array to read, and a state for each frame."""
        pools = [(name, one, states) for one in self.contents for name, states in one.series.items()]
        pools.append(("", self.contents[-1], [one.top for one in self.contents if one.top.arrays]))
        every: dict[str, Any] = {}
        fit: list[tuple[str, str, Content, list[State]]] = []
        for series, content, states in pools:
            arrays = {name: array for state in reversed(states) for name, array in state.arrays.items()}
            every = {**arrays, **every}
            name = _named(arrays, self.wanted, series)
            if name is not None and (series or not fit):
                fit.append((name, series, content, states))
        if len(fit) > 1:
            names = few([f"{series}.{name}" for name, series, *_ in fit])
            raise InputError(f"array must name one of {names}")
        if not fit:
            where = self.files[0] if len(self.files) == 1 else self.folders[0]
            if not every:
                raise FileFormatError(f"{where} holds no array of two or more axes")
            raise InputError(f"array must name one of those in {where}, {few(table(every))}")
        [(name, series, content, states)] = fit
        holders = [state for state in states if name in state.arrays]
        without = [state.name for state in states if name not in state.arrays]
        self.notes += [f"left out, as they hold no {name}: {few(without)}"] if without else []
        if series and name in content.top.arrays:
            self.notes.append(f"the {name} beside {series} is left out")
        shape = tuple(holders[0].arrays[name].shape)
        if len(holders) == 1 and len(shape) > 2:
            if 0 in shape:
                raise FileFormatError(f"{name} must have at least 3 tokens and 1 dimension, got {shape}")
            [state] = holders
            places = [(at,) if len(shape) == 3 else (slice(None), at) for at in range(shape[-3])]
            holders = [replace(state, place=place, numbers={}) for place in places]
        elif not series:
            return name, [replace(state, label=self._label(state.path)) for state in holders]
        for key, values in self.lists().items():
            told = LIST.fullmatch(key) or key == self.wanted.step_key
            if len(values) == len(holders) and not (told and (values % 1).any()):
                for state, value in zip(holders, values.tolist(), strict=True):
                    state.numbers.setdefault(key, value)
            elif told:
                raise InputError(
                    f"step_key must name {len(holders)} steps in whole numbers, or be none, got {key}"
                )
        return name, holders

    def steps(self, name: str, states: Sequence[State]) -> tuple[Numbers, str]:
        """Return the step of each state, None if it is unknown, and where the steps stand."""
        wanted, key, labels = self.wanted.steps, self.wanted.step_key, [state.label for state in states]
        if wanted is not None:
            steps = numbers_in_text(wanted) if isinstance(wanted, str) else list(wanted)
            if len(steps) != len(states):
                raise InputError(f"steps must be as many as the {len(states)} frames, got {len(steps)}")
            return steps, "given"
        if name in states[0].steps and key is None:
            return states[0].steps[name].tolist(), "step of the element"
        unknown = not (self.wanted.step_name or key or candidates(states, labels))
        if key == "none" or (unknown and (len(states) == 1 or not any(labels))):
            self.notes.append("steps: 0, 1, 2, … as none are given; steps=0:3000:30 states them")
            return list(range(len(states))), "none"
        return steps_of(states, labels, key, self.wanted.step_name)

    def axes(self, name: str, states: Sequence[State], out: str = "") -> tuple[bool, int | None]:
        """Return whether the last axis of the array, or of `out` beside it, is the tokens, and p."""
        state, wanted = states[0], self.wanted
        shape, where = tuple(state.arrays[name].shape), f"{state.path}: {name}"
        if (kind := kind_of(state.arrays[name])) not in REAL:
            raise FileFormatError(f"{where} must hold real numbers with a point, got {kind}")
        if len(shape) - len(state.place) not in (2, 3):
            raise FileFormatError(f"{where} must have the axes (tokens, dim) at each step, got {shape}")
        for one in states:
            if tuple(one.arrays[name].shape) != shape:
                got = f"{tuple(one.arrays[name].shape)} in {one.name}"
                raise FileFormatError(f"{where} must have the shape {shape} as before, got {got}")
        upright = False if name in state.steps else None  # the axes of H5MD
        transpose = upright if wanted.transpose is None or out else wanted.transpose
        shape = tuple(state.arrays[out].shape) if out else shape
        notes = [] if out else self.notes
        moduli, chosen = self.moduli(), wanted.tokens is not None
        return axes_of(out or name, shape, state.vectors, moduli, wanted.modulus, transpose, chosen, notes)

    def trajectory(self, path: Any) -> Trajectory:
        """Read the frames, the losses and the settings."""
        name, states = self.frames()
        swap, modulus = self.axes(name, states)
        steps, where = self.steps(name, states)
        parts = {name: swap}
        parameters: dict[str, Any] = {"program": "nets.read_checkpoints", "path": str(path), "array": name}
        if self.wanted.kind == "neurons":
            out = INTO.sub(lambda match: OUT_OF[match[1].lower()], name)
            parts |= {out: self.axes(name, states, out)[0]} if out in states[0].arrays else {}
            parameters["neurons"] = list(parts)
        chosen: Any = slice(modulus)
        if self.wanted.tokens is not None:
            chosen = chosen_tokens(self.wanted.tokens, states[0].arrays[name].shape[-1 if swap else -2])
            if len(chosen) != modulus:  # else they are the numbers 0 to p - 1
                parameters["selected_tokens"] = chosen.tolist()
        kept, clock, positions = self._read(parts, states, steps, chosen)
        self.notes += [f"steps: {where}"] if where not in ("none", "given") else []
        measured: Any = ({}, {})  # of several runs in one array nobody says whose
        if len(positions) == 1:
            measured = self._observables(kept, clock, "epoch" if "epoch" in where else "step")
        parameters |= {"modulus": modulus} if modulus else {}
        parameters |= {"configuration": self.settings} if self.settings else {}
        parameters |= {"notes": self.notes}
        return Trajectory(
            positions, clock, observables=measured[0], clocks=measured[1], parameters=parameters
        )

    def _read(
        self, parts: Mapping[str, bool], states: Sequence[State], steps: Numbers, chosen: Any
    ) -> tuple[list[State], NDArray[np.int64], NDArray[Any]]:
        """Return the states that become frames in the order of their steps, the steps, and the positions."""
        known = [(step, at) for at, step in enumerate(steps) if step is not None]
        unknown = [states[at].name for at, step in enumerate(steps) if step is None]
        self.notes += [f"left out, as their step is unknown: {few(unknown)}"] if unknown else []
        if states[0].place and known != sorted(known):
            raise InputError("steps must increase from frame to frame of an array, got some that decrease")
        kept: list[State] = []
        clock: list[int] = []
        for step, at in sorted(known):
            state, blocks = states[at], []
            with reading(state.path):
                for name, swap in parts.items():
                    values = numbers_of(state.arrays[name], state.place)
                    values = values.reshape(-1, *values.shape[-2:])
                    blocks.append((values.swapaxes(1, 2) if swap else values)[:, chosen])
                frame = np.concatenate(blocks, axis=-1)
                frame = frame.astype("float64" if frame.itemsize > 4 else "float32", copy=False)
            if not kept:
                positions = np.empty((len(frame), len(known), *frame.shape[1:]), frame.dtype)
            if not np.isfinite(frame).all():
                if not kept or len(frame) > 1:
                    raise FileFormatError(f"{state.name} must be finite, but holds NaN or infinite values")
                self.notes.append(f"the series ends before step {step} of {state.name}, which is not finite")
                break
            if clock and clock[-1] == step:
                if not np.array_equal(frame, positions[:, len(kept) - 1]):
                    names = f"{kept[-1].name} and {state.name}"
                    raise InputError(
                        f"path must hold one checkpoint of step {step}, but {names} differ; a pattern such "
                        "as '*[0-9].pt' leaves files out"
                    )
                self.notes.append(f"{state.name} is left out: it is the same as the other of step {step}")
                continue
            positions[:, len(kept)] = frame
            kept.append(state)
            clock.append(step)
        return kept, np.array(clock), positions[:, : len(kept)]

    def _observables(
        self, states: Sequence[State], clock: NDArray[np.int64], unit: str
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what was measured at the frames or at steps of its own, and these steps."""
        observables: dict[str, NDArray[Any]] = {}
        clocks: dict[str, tuple[Any, Any]] = {}

        def add(name: str, values: Any, steps: Any = None) -> None:
            name = re.sub(r"[/\x00]", "_", name).strip(".") or "value"
            if name not in observables:
                observables[name] = np.array([values], np.float64)
                clocks.update({} if steps is None else {name: (np.array(steps, np.int64), None)})

        for name in dict.fromkeys(name for one in states for name in one.numbers if METRIC.search(name)):
            add(name, [one.numbers.get(name, np.nan) for one in states])
        gap = int(np.diff(clock).max(initial=1)) + 1
        for name, values in self.lists().items():
            if METRIC.search(name) and name not in observables:
                if clock[-1] <= len(values) <= clock[-1] + gap and len(clock) > 1:
                    add(name, values, range(len(values)))
                else:
                    self.notes.append(f"{name} of {len(values)} values is left out: their steps are unknown")
        for path in self.tables():
            with self._left_out(path):
                columns = table_of(path, unit)
                for name, column in columns.items():
                    add(name, [column[step] for step in sorted(column)], sorted(column))
                self.notes += [f"{few(list(columns))} from {path.name}"] if columns else []
        return observables, clocks


def _named(arrays: Mapping[str, Any], wanted: Wanted, series: str = "") -> str | None:
    """Return the array that the user names, or the only one that is what is wanted by its name or shape."""
    if wanted.array is not None:
        full = wanted.array.replace("/", ".")  # of the path in an HDF5 file
        full = full.removeprefix(f"{series}.") if series else full
        name = short_name(full)
        if name in arrays or full in arrays:
            return name if name in arrays else full
        fit = [one for one in arrays if one.endswith(f".{name}")]
    else:
        whole = ("int", "uint", "bool")
        fits = [name for name, array in arrays.items() if not kind_of(array).startswith(whole)]
        stacks = [name for name in fits if len(arrays[name].shape) in (3, 4) and len(arrays) < 4]
        word = INTO if wanted.kind == "neurons" else EMBEDDING
        fit = [name for name in fits if word.search(name) and not OTHER.search(name)]
        fit = fit or next((names for names in (stacks, fits) if len(names) == 1), [])
    if len(fit) > 1:
        several = few(table({name: arrays[name] for name in fit}))
        raise InputError(f"array must name one of several arrays, {several}")
    return fit[0] if fit else None


def table(arrays: Mapping[str, Any]) -> list[str]:
    """Return names, shapes and number types of arrays."""
    return [f"{name} {tuple(array.shape)} {kind_of(array)}" for name, array in arrays.items()]


def shortened(names: Sequence[str]) -> list[str]:
    """Return the first names, and how many others there are."""
    return [*names[:LISTED], *([f"{len(names) - LISTED} others"] if len(names) > LISTED else [])]


def few(names: Sequence[str]) -> str:
    """Return the first names in a sentence, and how many others there are."""
    return ", ".join(shortened(names))
