"""The header of a trajectory: sizes and types of its frames, its parameters, and its provenance."""

import json
import os
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path as FilePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from physics.errors import FileFormatError, InputError

Path = str | os.PathLike[str]
"""Type of arguments that name a file."""

SCHEMA = "grokphys-trajectory"
SCHEMA_VERSION = 2


@dataclass(frozen=True)
class Layout:
    """Sizes and types of the frames of an ensemble."""

    runs: int
    tokens: int
    dim: int
    dtype: str
    frames: int = 0
    """Number of frames of the whole run, or 0 if it is unknown."""
    observables: Mapping[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    """Type and shape of each observable for one frame of one run; the shape of a number is ()."""

    @cached_property
    def columns(self) -> list[tuple[str, str, tuple[int, ...]]]:
        """Name, type and shape of every column of a frame."""
        return [
            ("step", "<i8", ()),
            ("time", "<f8", ()),
            ("positions", self.dtype, (self.runs, self.tokens, self.dim)),
            *((name, dtype, (self.runs, *shape)) for name, (dtype, shape) in self.observables.items()),
        ]


@dataclass(frozen=True)
class Header:
    """Everything that is known about a run before its first frame."""

    layout: Layout
    parameters: Mapping[str, Any]
    made_with: Mapping[str, Any]
    start: tuple[str, ...] = ()
    """Names of the arrays that the run began with."""
    identity: str = field(default_factory=lambda: uuid.uuid4().hex)

    def check(self) -> None:
        """Raise an error for anything that a file cannot hold."""
        check_parameters(self.parameters, self.layout.runs)
        for name, _, shape in self.layout.columns[2:]:
            if min(shape) < 1:
                raise InputError(f"{name} must not be empty to be stored, got the shape {shape} of one frame")
        try:
            json.dumps(self.to_json(), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InputError(f"parameters must hold only values that JSON can store: {error}") from None

    def to_json(self) -> dict[str, Any]:
        """Return the header as values that JSON can hold."""
        layout = self.layout
        return {
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            "layout": [layout.runs, layout.tokens, layout.dim, layout.dtype, layout.frames],
            "observables": {
                name: [dtype, list(shape)] for name, (dtype, shape) in layout.observables.items()
            },
            "parameters": dict(self.parameters),
            "made_with": dict(self.made_with),
            "start": list(self.start),
            "identity": self.identity,
        }

    @classmethod
    def from_json(cls, path: FilePath, values: Any) -> "Header":
        """Return the header from `to_json`; other content raises a FileFormatError that names `path`."""
        check_version(path, values["schema"], values["schema_version"])
        observables = {
            observable_name(name): (observable_type(name, np.dtype(dtype)).str, tuple(map(_size, shape)))
            for name, (dtype, shape) in values["observables"].items()
        }
        runs, tokens, dim, dtype, frames = values["layout"]
        if dtype not in ("float32", "float64") or min(runs, tokens, dim) < 1:
            raise FileFormatError(f"{path} is damaged: its layout is {values['layout']!r}")
        layout = Layout(_size(runs), _size(tokens), _size(dim), dtype, _size(frames), observables)
        parameters = check_parameters(values["parameters"], layout.runs)
        start = tuple(map(observable_name, values["start"]))
        return cls(layout, parameters, dict(values["made_with"]), start, str(values["identity"]))


def measured_types(measured: Mapping[str, Any]) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Return the types and shapes of observables from their values (runs, ...) in one frame."""
    arrays = {observable_name(name): np.asarray(values) for name, values in measured.items()}
    return {name: (observable_type(name, v.dtype).str, v.shape[1:]) for name, v in arrays.items()}


def check_version(path: FilePath, schema: Any, version: Any) -> None:
    """Refuse files of another schema, or of a later version of ours."""
    if schema != SCHEMA:
        raise FileFormatError(f"{path} is not a GrokPhys trajectory (schema {SCHEMA!r}, found {schema!r})")
    if int(version) > SCHEMA_VERSION:
        raise FileFormatError(
            f"{path} has schema version {int(version)}; this version of GrokPhys reads up to "
            f"{SCHEMA_VERSION}, please upgrade"
        )


def check_parameters(parameters: Any, runs: int) -> dict[str, Any]:
    """Return the parameters of a trajectory, after checking those that the package itself reads."""
    whole = isinstance(parameters, dict) and all(
        isinstance(parameters.get(name, {}), dict) for name in ("model", "system")
    )
    if whole:
        first, numbers = parameters.get("first_run", 0), parameters.get("run_numbers")
        whole = isinstance(first, int) and (
            numbers is None
            or (
                isinstance(numbers, list)
                and len(numbers) == runs
                and all(isinstance(k, int) for k in numbers)
            )
        )
        per_run = parameters.get("per_run", ())
        whole &= isinstance(per_run, list | tuple) and all(
            isinstance(name, str) and isinstance(parameters.get(name), list) and len(parameters[name]) == runs
            for name in per_run
        )
    # this refuses half a character, which cannot be shown or stored
    json.dumps(parameters, ensure_ascii=False, default=str).encode()
    if not whole:
        raise InputError(
            "parameters must be mappings if named model or system, a whole number if named first_run, and a "
            f"list with an item for each of {runs} runs if named run_numbers or in per_run"
        )
    return dict(parameters)


def observable_name(name: Any) -> str:
    """Return a name if a file can hold it, or raise an error."""
    sound = (
        isinstance(name, str) and name not in ("", ".", "..") and not re.search(r"[/\x00\ud800-\udfff]", name)
    )
    if not sound:
        raise InputError(f"names of observables must not be empty or contain '/', got {name!r}")
    return str(name)


def checked_start(start: Mapping[str, Any] | None, runs: int) -> dict[str, NDArray[Any]]:
    """Return the arrays with which runs began, or raise an error if a file cannot hold them."""
    arrays = {observable_name(name): np.asarray(values) for name, values in (start or {}).items()}
    for name, values in arrays.items():
        observable_type(name, values.dtype)
        if values.shape[:1] != (runs,) or not values.size or re.fullmatch(r"(run|axis_\d+)_\d+", name):
            raise InputError(
                f"start[{name!r}] must have the shape (runs, ...) with {runs} runs and not be empty, got "
                f"{values.shape}; names such as run_2 and axis_0_3 are taken"
            )
    return arrays


def observable_type(name: str, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a type if a file can hold it, or raise an error."""
    if dtype.kind not in "biufc" or dtype.itemsize > (16 if dtype.kind == "c" else 8):
        raise InputError(f"observables[{name!r}] must be numbers of at most 64 bits each, got {dtype}")
    return dtype


def _size(value: Any) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"a size is {value!r}")
    return value
