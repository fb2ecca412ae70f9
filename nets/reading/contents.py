"""What a file holds: states of a network, and the numbers, lists and settings beside them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nets.reading.files import module_state, reading, tree_of
from nets.reading.pickles import Opaque, Stored

WRAPPERS = {"model", "model_state_dict", "state_dict", "net", "network", "module", "_orig_mod", "params",
            "weights", "model_state"}  # fmt: skip
"""Names that say of a parameter only that it belongs to the network."""
CONFIG = re.compile(r"(?i)config|cfg|args|hparams|hyper_parameters|settings")
OPTIMIZER = re.compile(r"(?i)optim|sched|scaler|rng|callbacks|loops")
PAIRS = re.compile(r"(?i)train|test|val|pairs|data|split|inputs")
LABELLED = re.compile(r"(?i)(?:step|epoch|ep|iter|iteration|it|frame|checkpoint|ckpt|t)[-_= ]?(\d+)")
"""Names of the states in a mapping, such as epoch_100."""
DEEPEST = 8


@dataclass
class State:
    """Arrays of a network at one step, by short name, and the numbers that were stored with them."""

    name: str
    arrays: dict[str, Stored] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)
    vectors: set[str] = field(default_factory=set)
    """Names of arrays of one axis, such as biases."""


@dataclass
class Content:
    """What a file holds."""

    path: Path
    top: State
    """Arrays and numbers that belong to no series."""
    series: dict[str, list[State]] = field(default_factory=dict)
    """Lists of states, by name."""
    lists: dict[str, Any] = field(default_factory=dict)
    """Arrays of one axis, or `Stored` ones."""
    settings: dict[str, Any] = field(default_factory=dict)
    numbers_of_pairs: dict[str, int] = field(default_factory=dict)
    """One more than the largest number in the first two columns of lists of examples, by name."""


def content_of(path: Path) -> Content:
    """Read what a file holds; of its arrays only shapes and types."""
    tree = tree_of(path)
    content = Content(path, State(path.name))
    named: dict[tuple[str, ...], Stored] = {}
    name = re.sub(r"[-_.=]*\d.*$", "", path.stem) or "array"
    with reading(path):
        bare = not _is_mapping(tree) or bool(_states(tree))
        _collect({name: tree} if bare else tree, (), content, named, set())
    content.top.arrays = _short_names(named)
    return content


def short_name(name: str) -> str:
    """Return the name of a parameter without the names of what wraps it, such as module."""
    parts = name.split(".")
    while len(parts) > 1 and parts[0] in WRAPPERS:
        parts = parts[1:]
    return ".".join(parts)


def _short_names(named: Mapping[tuple[str, ...], Stored]) -> dict[str, Stored]:
    full = {".".join(parts): array for parts, array in named.items()}
    short = [short_name(name) for name in full]
    return {
        (name if short.count(name) == 1 else whole): array
        for name, (whole, array) in zip(short, full.items(), strict=True)
    }


def _is_mapping(tree: Any) -> bool:
    return isinstance(tree, Mapping | Opaque)


def _entries(tree: Any) -> dict[Any, Any]:
    """Return the entries of a mapping, the fields of an object, or the parameters of a whole module."""
    if isinstance(tree, Opaque):
        return module_state(tree) if "_modules" in tree.fields else tree.fields
    return dict(tree)


def _collect(
    tree: Any, path: tuple[str, ...], content: Content, named: dict[tuple[str, ...], Stored], seen: set[int]
) -> None:
    """Add what a mapping holds to the content of its file, and its matrices to those that are named."""
    entries = _entries(tree)
    if id(tree) in seen or len(path) > DEEPEST or "param_groups" in entries:
        return
    seen.add(id(tree))
    module = isinstance(tree, Opaque) and "_modules" in tree.fields
    setting = (isinstance(tree, Opaque) and not module) or bool(path and CONFIG.search(path[-1]))
    for key, value in entries.items():
        name, where = str(key), (*path, str(key))
        if isinstance(value, Stored) and value.objects is not None:
            value = value.objects[0] if len(value.objects) == 1 else value.objects
        if _is_mapping(value) and OPTIMIZER.search(name):
            continue
        states, number = _states(value), _number(value)
        if states:
            content.series[".".join(where)] = [
                _state(content, f"{name}[{label}]", name, label, member) for label, member in states
            ]
        elif _is_mapping(value):
            _collect(value, where, content, named, seen)
        elif number is not None:
            if not setting:
                content.top.numbers[name] = number
            content.settings[name] = value if isinstance(value, bool) else number
        elif isinstance(value, str) and len(value) < 200:
            content.settings[name] = value
        elif isinstance(value, Stored) and not setting:
            if PAIRS.search(name) and _is_pairs(value):
                _examples(name, value.read(), content)
            elif value.ndim == 1:
                content.lists[name] = value
                content.top.vectors.add(short_name(".".join(where)))
            else:
                named[where] = value
        elif isinstance(value, list | tuple) and value:
            _list(name, value, content)


def _list(name: str, values: Any, content: Content) -> None:
    """Take in a list of numbers, or of pairs of numbers."""
    numbers = [_number(value) for value in values]
    if None not in numbers:
        content.lists[name] = np.array(numbers)
    elif PAIRS.search(name) and all(
        isinstance(pair, list | tuple) and len(pair) in (2, 3) and all(isinstance(n, int) for n in pair)
        for pair in values
    ):
        _examples(name, np.array([pair[:2] for pair in values]), content)


def _is_pairs(value: Stored) -> bool:
    return value.ndim == 2 and value.shape[1] in (2, 3) and value.plain and not value.real


def _examples(name: str, pairs: NDArray[Any], content: Content) -> None:
    """Take in the largest number in examples, if there are enough of them to hold each number."""
    numbers = int(pairs[:, :2].max(initial=-1)) + 1
    if len(pairs) >= 4 * numbers:
        content.numbers_of_pairs[name] = numbers


def _state(content: Content, where: str, name: str, label: int | None, member: Any) -> State:
    """Return one state of a series."""
    inner = Content(content.path, State(where))
    named: dict[tuple[str, ...], Stored] = {}
    if isinstance(member, Stored):
        named[(name,)] = member
    else:
        _collect(member, (), inner, named, set())
    inner.top.arrays = _short_names(named)
    if label is not None:
        inner.top.numbers["key"] = label
    return inner.top


def _states(value: Any) -> list[tuple[int | None, Any]]:
    """Return the states in a list, or in a mapping of steps to states, with these steps; [] if it is none."""
    members: list[tuple[int | None, Any]] = []
    if isinstance(value, list | tuple):
        members = [(None, member) for member in value]
    elif isinstance(value, Mapping) and value:
        for key, member in value.items():
            label = LABELLED.fullmatch(str(key))
            if label is None and not str(key).isdecimal():
                return []
            members.append((int(label[1] if label else key), member))
    return members if all(_is_state(member) for _, member in members) else []


def _is_state(value: Any, depth: int = 0) -> bool:
    """Whether a value is a matrix of real numbers, or holds one."""
    if isinstance(value, Stored):
        return value.ndim >= 2 and value.real
    if not _is_mapping(value) or depth > 3:
        return False
    entries = _entries(value)
    return "param_groups" not in entries and any(
        _is_state(part, depth + 1) for name, part in entries.items() if not OPTIMIZER.search(str(name))
    )


def _number(value: Any) -> float | int | None:
    """Return a real number, also that of a tensor without axes."""
    if isinstance(value, Stored):
        value = value.read().item() if not value.shape and value.plain and value.whole is not None else None
    return value if isinstance(value, int | float) else None
