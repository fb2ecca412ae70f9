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
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import physics
from grokphys import models
from grokphys.cli.simulate import simulate
from grokphys.cli.train import train
from physics.checks import LARGEST, choice, flag, number, short_text, whole_number
from physics.errors import FileFormatError, InputError

Values = dict[str, Any]
SystemName = Literal["particles", "effective-theory"]
SYSTEMS = {"particles": "ParticleSystem", "effective-theory": "EffectiveTheory"}
"""Systems by their names in `physics`."""
KINDS = ("simulate", "train")
SECTIONS = ("kind", "pack", "fixed", "grid", "list")
EXECUTION = ("out", "overwrite", "resume")
"""Options of the command lines that concern the storage of a run, not its content."""
MOST_RUNS = 10**8  # of all cells together, and largest number of cells
LEAST = {"seed": 0, "first_run": 0, "learning_rate": 0, "weight_decay": 0, "steps": 1, "record_every": 1}
LEAST |= {"embedding_learning_rate": 0, "embedding_weight_decay": 0, "track": 1, "batch_size": 1}
"""Smallest values of numbers that a system or a model does not check when its cell is built."""
ABOVE_ZERO = ("layer_scale", "embedding_scale")
"""Numbers that must be greater than 0, for the same reason."""


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
        count = len(tables) * math.prod(map(len, self.grid.values()))
        if count > MOST_RUNS:
            raise InputError(f"grid must span at most {MOST_RUNS} cells, got {count}")
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
                first, runs = parameters.pop("first_run"), whole_number("runs", parameters.pop("runs"), 1)
                cells.append(Cell(coordinates, parameters, range(first, first + runs)))
        whole = sum(len(cell.numbers) for cell in cells)
        if whole > MOST_RUNS:
            raise InputError(f"runs must be at most {MOST_RUNS} in all cells together, got {whole}")
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
        If the file is not JSON or TOML, as its name says, is nested too deeply, holds no table, or one in
        which a name occurs twice.
    InputError
        If a section or a parameter is unknown, empty, of the wrong form, or declared in two sections.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    as_json = partial(json.loads, object_pairs_hook=_once)
    kind, read = ("JSON", as_json) if path.suffix == ".json" else ("TOML", tomllib.loads)
    try:
        content = read(path.read_text(encoding="utf-8"))
    except RecursionError:
        raise FileFormatError(f"{path} is nested too deeply for a configuration") from None
    except ValueError as error:
        why = "it is not text in UTF-8" if isinstance(error, UnicodeError) else error
        raise FileFormatError(f"{path} is not {kind}: {why}") from None
    if not isinstance(content, dict):
        raise FileFormatError(f"{path} must hold a table, got {type(content).__name__}")
    return declaration(content)


def declaration(content: Mapping[str, Any]) -> Declaration:
    """Return the declaration that the content of a configuration makes, as the module shows it.

    An `InputError` refuses a section that is unknown, empty or of the wrong form, and a parameter that is
    declared in two sections.
    """
    for name in content:
        if name not in SECTIONS:
            raise InputError(_unknown(name, "a section of a sweep", SECTIONS))
    kind = choice("kind", content.get("kind"), KINDS)
    fixed = _table("fixed", content.get("fixed", {}))
    grid = {name: _values(name, values) for name, values in _table("grid", content.get("grid", {})).items()}
    tables = content.get("list", [])
    if not isinstance(tables, list):
        raise InputError(f"list must hold tables, each under [[list]], got {type(tables).__name__}")
    tables = [_table("list", table) for table in tables]
    for section, empty in (("grid", not grid), ("list", not all([tables, *tables]))):
        if section in content and empty:
            raise InputError(f"{section} must name at least one parameter with its values, got none")
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
    return {
        name: coerced(name, given[name], annotation) if name in given else default
        for name, (annotation, default) in table.items()
    }


def _simulate_parameters(given: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the type and the default of each parameter of `grokphys simulate` and of the system."""
    system = choice("system", given.get("system", "particles"), get_args(SystemName))
    particles = _parameters(physics.ParticleSystem)
    whole = {name: each for name, each in _parameters(simulate).items() if name not in particles}
    return whole | _parameters(getattr(physics, SYSTEMS[system])) | {"system": (SystemName, system)}


def _train_parameters(given: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return those of `grokphys train`, with one rate for each cell, and the CPU by default."""
    table = dict(_parameters(train))
    own = models.defaults(given.get("model", table["model"][1]), frozen=given.get("freeze_embedding", False))
    table |= {name: (type(value), value) for name, value in own.items()}
    return table | {"device": (str, "cpu")}


@cache
def _parameters(function: Any) -> dict[str, tuple[Any, Any]]:
    """Return type and default of the parameters of a command, or of the fields of a system, by name."""
    hints = get_type_hints(function.__init__ if inspect.isclass(function) else function)
    parameters = inspect.signature(function).parameters.items()
    return {name: (hints.get(name, Any), one.default) for name, one in parameters if name not in EXECUTION}


def coerced(name: str, value: Any, annotation: Any) -> Any:
    """Return a value of a configuration as the type that its parameter has on the command line.

    A list or a single value becomes a tuple where the type is a tuple, and a whole number becomes a float or
    text where that is the type. An `InputError` refuses a value of another type.
    """
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        if value is None and types.NoneType in inner:
            return None
        return coerced(name, value, str if str in inner and isinstance(value, str) else inner[0])
    if origin is Literal:
        return choice(name, value, inner)
    if origin is tuple:
        items = value if isinstance(value, list | tuple) else [value]
        return tuple(coerced(name, item, inner[0]) for item in items)
    if annotation in (str, int) and (
        isinstance(value, bool) or not isinstance(value, int if annotation is int else str | int)
    ):
        raise InputError(
            f"{name} must be {'text' if annotation is str else 'a whole number'}, got {short_text(value)}"
        )
    if annotation is float:
        above = 0.0 if name in ABOVE_ZERO else -math.inf
        return number(name, value, LEAST.get(name, -math.inf), above=above)
    if annotation is int:
        return whole_number(name, value, LEAST.get(name, -LARGEST))
    return flag(name, value) if annotation is bool else str(value) if annotation is str else value


def canonical(value: Any) -> str:
    """Return JSON text that is the same for equal content, whatever the order of its keys, on one line.

    A TypeError or ValueError refuses what JSON does not have, such as dates, NaN and infinity.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the entries of a JSON object; a ValueError refuses a name that occurs twice, as TOML does."""
    entries = dict(pairs)
    for name in entries if len(entries) < len(pairs) else ():
        if sum(name == other for other, _ in pairs) > 1:
            raise ValueError(f"{short_text(name)} is declared twice in one table")
    return entries


def _unknown(name: str, what: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, known := list(known), 1, 0.5)
    return f"{name} is not {what}; " + (
        f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
    )


def _table(name: str, value: Any) -> Values:
    if not isinstance(value, dict):
        raise InputError(f"{name} must be a table of parameters, got {type(value).__name__}")
    for parameter, item in value.items():
        try:
            canonical(item)
        except (TypeError, ValueError):  # such as a date of TOML, or NaN
            allowed = "finite numbers, text and truth values"
            raise InputError(f"{parameter} must hold {allowed}, got {short_text(item)}") from None
    return dict(value)


def _values(name: str, values: Any) -> list[Any]:
    """Return the values of a parameter in the grid, or refuse an empty list or repeated values."""
    if not isinstance(values, list) or not values:
        raise InputError(f"{name} of the grid must list at least one value, got {values!r}")
    texts = list(map(canonical, values))
    for text in texts:
        if texts.count(text) > 1:
            raise InputError(f"{name} of the grid must list each value once, got {text} more than once")
    return values
