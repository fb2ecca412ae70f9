"""Declaration of a sweep: a kind of run, fixed parameters, and grids and lists of others.

A configuration is TOML or JSON::

    kind = "train"            # or "simulate"
    pack = 64                 # at most so many runs a file; by default as many as memory and time allow

    [fixed]                   # parameters as on the command line of that kind; runs and seed among them
    tokens = 17
    runs = 20

    [grid]                    # every combination of these values is a cell
    learning_rate = [0.001, 0.01]

    [[list]]                  # and of these tables
    hidden = [100]
"""

import difflib
import inspect
import itertools
import json
import math
import tomllib
import types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import physics
from grokphys import models
from grokphys.cli.simulate import simulate
from grokphys.cli.train import train
from physics.checks import choice, flag, mapping, number, short_text, whole_number
from physics.errors import FileFormatError, InputError

Values = dict[str, Any]
SYSTEMS = {"particles": "ParticleSystem", "effective-theory": "EffectiveTheory"}
"""Systems by their names in `physics`."""
SECTIONS = ("kind", "pack", "fixed", "grid", "list")
EXECUTION = ("out", "overwrite", "resume")
"""Options of the command lines that concern the storage of a run, not its content."""
MOST = 10**8
"""Largest number of cells, and of runs in a cell."""


@dataclass(frozen=True)
class Cell:
    """One combination of parameters, to be run with several seeds.

    Attributes
    ----------
    coordinates : dict of str to object
        Position of the cell: its value on each axis of the sweep.
    parameters : dict of str to object
        Every parameter of the kind except `runs` and `first_run`, with defaults filled in.
    numbers : range
        Numbers of its runs. Run k is drawn from the k-th child of the seed.
    """

    coordinates: Values
    parameters: Values
    numbers: range


@dataclass(frozen=True)
class Declaration:
    """A declared sweep; the module explains its sections.

    Attributes
    ----------
    kind : {"simulate", "train"}
        What each run is.
    fixed : dict
        Parameters that all cells share.
    grid : dict of str to list
        Values of the parameters of the grid.
    tables : list of dict
        Parameters of each table of the list.
    pack : int, optional
        Largest number of runs in a file; by default as many as memory and time allow.
    """

    kind: str
    fixed: Values
    grid: dict[str, list[Any]]
    tables: list[Values]
    pack: int | None = None

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the parameters that differ between cells; ``entry`` is the number of a listed table."""
        return (*(("entry",) if self.tables else ()), *self.grid)

    @cached_property
    def cells(self) -> list[Cell]:
        """All cells, in an order in which the last axis of the grid varies fastest.

        Raises
        ------
        InputError
            If a parameter is unknown, a value is not of its type, two cells are the same, or there are too
            many.
        """
        tables = self.tables or [{}]
        whole_number("the number of cells", len(tables) * math.prod(map(len, self.grid.values())), 1, MOST)
        cells, seen = [], set()
        for entry, table in enumerate(tables):
            for values in itertools.product(*self.grid.values()):
                place = dict(zip(self.grid, values, strict=True))
                parameters = resolved(self.kind, {**self.fixed, **table, **place})
                if (key := canonical(parameters)) in seen:
                    raise InputError(f"list and grid must name each cell once, got {table | place} again")
                seen.add(key)
                coordinates = {"entry": entry} if self.tables else {}
                coordinates |= {name: parameters[name] for name in (*table, *place)}
                first, runs = parameters.pop("first_run"), parameters.pop("runs")
                numbers = range(first, first + whole_number("runs", runs, 1, MOST))
                cells.append(Cell(coordinates, parameters, numbers))
        return cells

    @property
    def text(self) -> str:
        """The declaration as a configuration in JSON that does not depend on the order of its keys."""
        parts = {"fixed": self.fixed, "grid": self.grid, "list": self.tables, "pack": self.pack}
        return canonical({"kind": self.kind} | {name: part for name, part in parts.items() if part})


def read_declaration(path: Path) -> Declaration:
    """Read the configuration of a sweep from a file: JSON if its name ends in ``.json``, otherwise TOML.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    FileFormatError
        If the file is not JSON or TOML, as its name says.
    InputError
        If a section or a parameter is unknown, of the wrong form, or declared in two sections.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    kind, read = ("JSON", json.loads) if path.suffix == ".json" else ("TOML", tomllib.loads)
    try:
        return declaration(read(path.read_text(encoding="utf-8")))
    except (UnicodeError, json.JSONDecodeError, tomllib.TOMLDecodeError) as error:
        raise FileFormatError(f"{path} is not {kind}: {error}") from None


def declaration(content: Mapping[str, Any]) -> Declaration:
    """Return the declaration that the content of a configuration makes, as the module shows it.

    An `InputError` refuses a section that is unknown or of the wrong form, and a parameter that is
    declared in two sections.
    """
    content = mapping("a configuration", content)
    for name in content:
        if name not in SECTIONS:
            raise InputError(_unknown(name, "a section of a sweep", SECTIONS))
    kind = choice("kind", content.get("kind"), ("simulate", "train"))
    fixed, grid = mapping("fixed", content.get("fixed")), mapping("grid", content.get("grid"))
    for name, values in grid.items():
        if not isinstance(values, list) or not values:
            raise InputError(f"{name} of the grid must list at least one value, got {values!r}")
    tables = content.get("list", [])
    if not isinstance(tables, list):
        raise InputError(f"list must hold tables, each under [[list]], got {type(tables).__name__}")
    tables = [mapping("list", table) for table in tables]
    listed = set(itertools.chain(*tables))
    for name in [name for name in (*fixed, *grid) if (name in fixed) + (name in grid) + (name in listed) > 1]:
        raise InputError(f"{name} must be in only one of fixed, grid and list, got it in two of them")
    pack = content.get("pack")
    return Declaration(kind, fixed, grid, tables, None if pack is None else whole_number("pack", pack, 1))


def resolved(kind: str, given: Mapping[str, Any]) -> Values:
    """Return every parameter of a cell in its own type by its name, with defaults filled in.

    An `InputError` refuses a parameter that is unknown, and a value that is not of its type.
    """
    if "model" in given:
        given = {**given, "model": models.model_name(given["model"])}
    table = _simulate_parameters(given) if kind == "simulate" else _train_parameters(given)
    for name in given:
        if name not in table:
            raise InputError(_unknown(name, f"a parameter of {given.get('system', kind)}", table))
    return {  # null is allowed where it is the default, such as that of tokens
        name: default if given.get(name, default) is default else coerced(name, given[name], annotation)
        for name, (annotation, default) in table.items()
    }


def _simulate_parameters(given: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the type and the default of each parameter of `grokphys simulate`, but for its system."""
    system = choice("system", given.get("system", "particles"), tuple(SYSTEMS))
    particles = _parameters(physics.ParticleSystem)
    whole = {name: each for name, each in _parameters(simulate).items() if name not in particles}
    return whole | _parameters(getattr(physics, SYSTEMS[system])) | {"system": (str, system)}


def _train_parameters(given: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return those of `grokphys train`, with the settings of the model's paper, and the CPU by default."""
    table = _parameters(train)
    frozen = given.get("freeze_embedding", False)  # an embedding that is has no rates
    stated = {
        name: (type(value), value)
        for name, value in models.MODELS[given.get("model", table["model"][1])].settings.items()
        if not (frozen and name.startswith("embedding_"))
    }
    return table | stated | {"device": (str, "cpu")}


@cache
def _parameters(function: Any) -> dict[str, tuple[Any, Any]]:
    """Return type and default of the parameters of a command, or of the fields of a system, by name."""
    hints = get_type_hints(function.__init__ if inspect.isclass(function) else function)
    parameters = inspect.signature(function).parameters.items()
    return {name: (hints.get(name, Any), each.default) for name, each in parameters if name not in EXECUTION}


def coerced(name: str, value: Any, annotation: Any) -> Any:
    """Return a value of a configuration as the type that its parameter has on the command line.

    A list or a single value becomes a tuple where the type is a tuple, and a whole number a float where that
    is the type. An `InputError` refuses a value of another type.
    """
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        if value is None and types.NoneType in inner:
            return None
        return coerced(name, value, str if str in inner and isinstance(value, str) else inner[0])
    if origin is Literal:
        return choice(name, value, inner)
    if origin is tuple:
        return tuple(
            coerced(name, item, inner[0]) for item in (value if isinstance(value, list) else [value])
        )
    if annotation is str and not isinstance(value, str):
        raise InputError(f"{name} must be text, got {short_text(value)}")
    if annotation is int:
        return whole_number(name, value, 0)
    if annotation is float:
        return number(name, value)
    return flag(name, value) if annotation is bool else value


def canonical(value: Any) -> str:
    """Return JSON text that is the same for equal content, whatever the order of its keys, on one line.

    A TypeError or ValueError refuses what JSON does not have, such as dates, NaN and infinity.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _unknown(name: str, what: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, known := list(known), 1, 0.5)
    return f"{name} is not {what}; " + (
        f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
    )
