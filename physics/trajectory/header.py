"""The header of a trajectory: sizes and types of its frames, its parameters, and its provenance."""

import dataclasses
import json
import math
import os
import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path as FilePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from physics.checks import finite_array, mapping, misfit, regular_array, short_text, whole_number
from physics.errors import InputError, NewerFormatError
from physics.values import Array, Integers

Path = str | os.PathLike[str]
"""Type of arguments that name a file."""
Clock = tuple[Integers, Array]
"""Steps and times at which something was measured, (n,) each."""

SCHEMA = "grokphys-trajectory"
SCHEMA_VERSION = 2
"""Version of the layout of the file; readers accept all versions up to it."""
DAMAGED = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What h5py, NumPy and JSON raise on damaged content; a signal handler raises another class."""


@dataclass(frozen=True)
class Layout:
    """Sizes and types of the frames of an ensemble.

    Attributes
    ----------
    runs, tokens, dim : int
        Shape of the positions in a frame, each at least 1.
    dtype : {"float32", "float64"}
        Type of the positions.
    frames : int, default 0
        Number of frames of the whole run, or 0 if it is unknown.
    observables : mapping of str to pair of str and tuple of int, optional
        Type, such as "<f8", and shape of each observable in one frame of one run. The shape of a number is
        ().
    """

    runs: int
    tokens: int
    dim: int
    dtype: str
    frames: int = 0
    observables: Mapping[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)

    @cached_property
    def columns(self) -> list[tuple[str, str, tuple[int, ...]]]:
        """Name, NumPy type and shape of what a frame holds: first the positions, then the observables."""
        return [
            ("positions", self.dtype, (self.runs, self.tokens, self.dim)),
            *((name, dtype, (self.runs, *shape)) for name, (dtype, shape) in self.observables.items()),
        ]

    def measured(self, observables: Mapping[str, Any]) -> list[NDArray[Any]]:
        """Return the observables of a frame in their order; they must be like those of the first frame.

        An `InputError` refuses other names, another shape, and a type that theirs cannot hold, such as
        fractions where the first frame had whole numbers.
        """
        if observables.keys() != self.observables.keys():
            first, got = listed(self.observables), listed(observables)
            raise InputError(f"observables must be those of the first frame, {first}, got {got}")
        values = [np.asarray(observables[name]) for name in self.observables]
        for value, (name, dtype, shape) in zip(values, self.columns[1:], strict=True):
            if value.shape != shape or not np.can_cast(value.dtype, dtype, "same_kind"):
                need = f"be {np.dtype(dtype)} of the shape {shape} in every frame, as in the first"
                raise misfit(f"observable {name!r}", value, need)
        return values


@dataclass(frozen=True)
class Header:
    """Everything that is known about a run before its first frame.

    Attributes
    ----------
    layout : Layout
        Sizes and types of the frames.
    parameters : mapping
        Values, which JSON can hold, that are needed to make the run again.
    made_with : mapping
        Versions of the code and its libraries.
    start : mapping of str to ndarray (runs, ...)
        Arrays with which the run begins, such as the training sets.
    identity : str
        Random identifier, which distinguishes runs of the same configuration. By default it is drawn.
    """

    layout: Layout
    parameters: Mapping[str, Any]
    made_with: Mapping[str, Any]
    start: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    identity: str = field(default_factory=lambda: uuid.uuid4().hex)

    def to_bytes(self) -> bytes:
        """Return the header as a line of JSON and the bytes of its arrays, which `from_bytes` reads.

        An `InputError` refuses a header that a file cannot hold: if a parameter has the wrong form or cannot
        be stored as JSON, or the positions or an observable are empty in a frame.
        """
        check_parameters(self.parameters, self.layout.runs)
        for name, _, shape in self.layout.columns:
            if 0 in shape:
                raise InputError(f"{name} must not be empty to be stored, got the shape {shape} of one frame")
        start = {name: (values.dtype.str, values.shape) for name, values in self.start.items()}
        layout = dataclasses.asdict(self.layout)
        stated = {"schema_version": SCHEMA_VERSION, **vars(self), "layout": layout, "start": start}
        try:
            text = json.dumps(stated, allow_nan=False).encode()
        except (TypeError, ValueError) as error:
            raise InputError(f"parameters must hold only values that JSON can store: {error}") from None
        return b"".join([text, b"\n", *(values.tobytes() for values in self.start.values())])

    @classmethod
    def from_bytes(cls, path: FilePath, content: bytes) -> "Header":
        """Return the header that `to_bytes` has written.

        A newer version is a `NewerFormatError`, which names `path`. Content of another form is one of the
        errors `DAMAGED`.
        """
        text, _, arrays = content.partition(b"\n")
        stated, at = json.loads(text), 0
        check_version(path, stated.pop("schema_version"))
        layout, start = Layout(**stated.pop("layout")), {}
        for name, (kind, shape) in stated.pop("start").items():
            start[name] = np.frombuffer(arrays, kind, math.prod(shape), at).reshape(shape).copy()
            at += start[name].nbytes
        check_parameters(stated["parameters"], layout.runs)
        return cls(layout, start=start, **stated)


def check_version(path: FilePath, version: Any) -> None:
    """Refuse a file of a later version of the schema, with a `NewerFormatError`."""
    if int(version) > SCHEMA_VERSION:
        got = f"{int(version)}; this version of GrokPhys reads up to {SCHEMA_VERSION}, please upgrade"
        raise NewerFormatError(f"{path} has schema version {got}")


# -- what a file can hold ----------------------------------------------------------------------------------


def listed(names: Iterable[str]) -> str:
    """Return names in a sentence, each in quotes, or "none"."""
    return ", ".join(map(repr, names)) or "none"


def check_parameters(parameters: Any, runs: int) -> dict[str, Any]:
    """Return a copy of the parameters of a trajectory, after checking the entries that the package reads.

    `runs` is the number of runs, which lists of one entry for each run must have. An entry of the wrong form
    is an `InputError`, and half of a surrogate pair a `UnicodeEncodeError`.
    """
    # This refuses unpaired surrogates, which cannot be shown or stored.
    json.dumps(parameters, ensure_ascii=False, default=str).encode()
    if not isinstance(parameters, dict):
        raise InputError(f"parameters must be a dict, got {short_text(parameters)}")

    for name in ("model", "system"):
        mapping(f"parameters[{name!r}]", parameters.get(name))
    whole_number("parameters['first_run']", parameters.get("first_run", 0), 0)
    if parameters.get("modulus") is not None:
        whole_number("parameters['modulus']", parameters["modulus"], 2)
    per_run, numbers = parameters.get("per_run", ()), parameters.get("run_numbers")
    named = isinstance(per_run, list | tuple) and all(isinstance(name, str) for name in per_run)
    if not named or {"runs", "first_run", "per_run"} & set(per_run):
        got = short_text(per_run)
        raise InputError(f"parameters['per_run'] must be names of parameters that differ by run, got {got}")
    for name in (*per_run, *(() if numbers is None else ("run_numbers",))):
        values = parameters.get(name)
        if not isinstance(values, list) or len(values) != runs:
            got = short_text(values)
            raise InputError(f"parameters[{name!r}] must be a list of {runs} items, one a run, got {got}")
    for number in numbers or ():
        whole_number("parameters['run_numbers']", number, 0)
    return dict(parameters)


def observable_name(name: Any) -> str:
    """Return a name of an observable or of an initial array, after checking that a file can hold it.

    An `InputError` refuses what is not a string, the strings "", "." and "..", and those with "/", a zero
    byte or half of a surrogate pair.
    """
    if not isinstance(name, str) or name in ("", ".", "..") or re.search(r"[/\x00\ud800-\udfff]", name):
        need = "text without '/' and zero bytes, and not '', '.' or '..'"
        raise InputError(f"names of observables and of initial arrays must be {need}, got {short_text(name)}")
    return name


def observable_type(name: str, dtype: np.dtype[Any], what: str = "observables") -> np.dtype[Any]:
    """Return the number type of an observable, after checking that a file can hold it.

    An `InputError` refuses all but bool, integers, and real or complex numbers with parts of at most 64 bits.
    """
    if dtype.kind not in "biufc" or dtype.itemsize > (16 if dtype.kind == "c" else 8):
        need = "numbers of at most 64 bits, or complex numbers of at most 128"
        raise InputError(f"{what}[{name!r}] must be {need}, got {dtype}")
    return dtype


def named_arrays(argument: str, values: Mapping[str, Any] | None) -> dict[str, NDArray[Any]]:
    """Return the values of a mapping as arrays, if a file can hold their names and types; None is empty."""
    arrays = {
        observable_name(name): regular_array(f"{argument}[{name!r}]", value)
        for name, value in mapping(argument, values).items()
    }
    for name, array in arrays.items():
        observable_type(name, array.dtype, argument)
    return arrays


def checked_observables(
    observables: Mapping[str, Any] | None, runs: int, frames: int, clocks: Mapping[str, Clock]
) -> dict[str, NDArray[Any]]:
    """Return measured quantities as arrays, (runs, n, ...) each, with n the number of frames or of own steps.

    `clocks` gives the steps and times of those that have their own. An `InputError` refuses a clock of
    anything else, and a name, a type or a shape that a file cannot hold.
    """
    arrays = named_arrays("observables", observables)
    for name in clocks.keys() - arrays.keys():
        raise InputError(f"clocks must belong to observables ({listed(arrays)}), got one of {name!r}")
    for name, values in arrays.items():
        expected = (runs, len(clocks[name][0]) if name in clocks else frames)
        if values.shape[:2] != expected:
            raise misfit(f"observables[{name!r}]", values, f"have the shape {expected} + ...")
    return arrays


def checked_start(start: Mapping[str, Any] | None, runs: int) -> dict[str, NDArray[Any]]:
    """Return the arrays with which runs begin, (runs, ...) each, such as the initial layers of networks.

    An `InputError` refuses a name, a type or a shape that a file cannot hold.
    """
    arrays = named_arrays("start", start)
    for name, values in arrays.items():
        if values.shape[:1] != (runs,) or not values.size or re.fullmatch(r"(run|axis_\d+)_\d+", name):
            need = f"have the shape ({runs}, ...) and not be empty, and no name such as run_2 or axis_0_3"
            raise misfit(f"start[{name!r}]", values, need)
    return arrays


def checked_clock(name: str, steps: Any, times: Any, length: int | None = None) -> Clock:
    """Return copies of steps and times, int64 and float64, and refuse those that a file cannot hold.

    Parameters
    ----------
    name : str
        Name of the steps, for messages.
    steps : array_like of int, shape (n,)
        Steps, increasing.
    times : array_like of float, shape (n,), or None
        Times; None stands for the steps.
    length : int, optional
        Number of frames that is required; any by default.

    Returns
    -------
    tuple of ndarray, shape (n,) each
        Steps and times.

    Raises
    ------
    InputError
        If a value or a shape is invalid, or steps do not increase.
    """
    step_array = regular_array(name, steps)
    if step_array.ndim != 1 or step_array.dtype.kind not in "iu":
        raise misfit(name, step_array, "be whole numbers of shape (frames,)")
    given = step_array if times is None else finite_array(f"times of {name}", times)
    time_array = np.array(given, np.float64)
    length = len(step_array) if length is None else length
    if step_array.shape != (length,) or time_array.shape != (length,):
        got = f"{step_array.size} and {time_array.size}"
        raise InputError(f"{name} and times of {name} must have {length} entries, got {got}")
    if length and step_array.max() > np.iinfo(np.int64).max:
        raise InputError(f"{name} must be at most 2^63 - 1, got {step_array.max()}")
    step_array = step_array.astype(np.int64)
    for at in np.flatnonzero(step_array[1:] <= step_array[:-1])[:1]:
        raise InputError(f"{name} must increase, got {step_array[at]} followed by {step_array[at + 1]}")
    return step_array, time_array


def checked_clocks(clocks: Mapping[str, Any] | None) -> dict[str, Clock]:
    """Return copies of the steps and times of some observables by name, each as from `checked_clock`."""
    checked = {}
    for name, clock in mapping("clocks", clocks).items():
        what = f"clocks[{name!r}]"
        try:
            steps, times = clock
        except (TypeError, ValueError):
            raise InputError(f"{what} must be a pair of steps and times, got {short_text(clock)}") from None
        checked[name] = checked_clock(what, steps, times)
    return checked


def checked_index(index: int, length: int, what: str) -> slice:
    """Return the slice that holds one of `length` items named `what`; negative indices count from the end.

    An `InputError` refuses an `index` of no item, or that is not a whole number.
    """
    if not length:
        raise InputError(f"{what} must be the number of a stored {what}, but the trajectory holds none yet")
    index = whole_number(what, index, -length, length - 1)
    return slice(index % length, index % length + 1)


def chosen_tokens(tokens: Any, count: int) -> Integers:
    """Return the numbers of the tokens, out of `count`, that a slice, a list of numbers or a mask chooses."""
    try:
        chosen = np.ascontiguousarray(np.atleast_1d(np.arange(count)[tokens]))
    except (IndexError, TypeError, ValueError):
        chosen = np.empty(0, np.int64)
    beyond = isinstance(tokens, slice) and max(tokens.start or 0, tokens.stop or 0) > count
    if chosen.ndim != 1 or not chosen.size or beyond or len(np.unique(chosen)) < len(chosen):
        need = f"choose some of the {count} tokens, each once, by a slice, a list or a mask"
        raise InputError(f"tokens must {need}, got {short_text(tokens)}")
    return chosen
