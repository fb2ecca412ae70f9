"""What a file holds: states of a network, and the numbers, lists and settings beside them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nets.reading.files import REAL, Opaque, kind_of, numbers_of, reading, tree_of

WRAPPERS = {"model", "model_state_dict", "state_dict", "net", "network", "module", "_orig_mod", "params",
            "weights", "model_state"}  # fmt: skip
"""Names that say of a parameter only that it belongs to the network."""
CONFIG = re.compile(r"(?i)config|cfg|args|hparams|hyper_parameters|settings")
OPTIMIZER = re.compile(r"(?i)optim|sched|scaler|rng|callbacks|loops")
EXAMPLES = re.compile(r"(?i)train|test|val|pairs|data|split|inputs")
LABELLED = re.compile(r"(?i)(?:step|epoch|ep|iter|iteration|it|frame|checkpoint|ckpt|t)?[-_= ]?(\d+)")
"""Names of the states in a mapping of steps to them, such as epoch_100."""
DEEPEST = 8


@dataclass
class State:
    """Arrays of a network at one step, by short name, and what was stored with them."""

    name: str
    path: Path
    label: str = ""
    """Name of the file or of its directory, which may tell the step; "" in a series in a file."""
    place: tuple[Any, ...] = ()
    """Indices of the state on the first axes of the arrays."""
    arrays: dict[str, Any] = field(default_factory=dict)
    vectors: dict[str, Any] = field(default_factory=dict)
    """Arrays and lists of one axis, such as biases, losses and steps."""
    numbers: dict[str, float] = field(default_factory=dict)
    steps: dict[str, NDArray[Any]] = field(default_factory=dict)
    """Steps of the frames of arrays whose format states them."""


@dataclass
class Content:
    """What a file holds."""

    path: Path
    top: State
    """What belongs to no series."""
    series: dict[str, list[State]] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    examples: dict[str, int] = field(default_factory=dict)
    """One more than the largest number in lists of examples, by name."""


def content_of(path: Path) -> Content:
    """Read what a file holds; arrays stay where they are."""
    tree = tree_of(path)
    content = Content(path, State(path.name, path))
    name = re.sub(r"[-_.=]*\d.*$", "", path.stem) or "array"
    with reading(path):
        while _is_array(tree) and kind_of(tree) == "object" and tree.size == 1:  # a dict in a .npy file
            tree = tree.item()
        bare = not isinstance(tree, Mapping | Opaque) or _states(tree)
        _collect({name: tree} if bare else tree, (), content, content.top, set())
    return content


def short_name(name: str) -> str:
    """Return the name of a parameter without the names of what wraps it, such as module."""
    parts = name.split(".")
    while len(parts) > 1 and parts[0] in WRAPPERS:
        parts = parts[1:]
    return ".".join(parts)


def _is_array(value: Any) -> bool:
    return hasattr(value, "dtype") and hasattr(value, "shape")


def _entries(tree: Any) -> dict[Any, Any]:
    """Return the entries of a mapping, the fields of an object, or the parameters of a whole module."""
    if not isinstance(tree, Opaque):
        return dict(tree)
    if "_modules" not in tree.fields:
        return tree.fields
    entries = {**tree.fields["_parameters"], **tree.fields["_buffers"]}
    for name, child in tree.fields["_modules"].items():
        entries |= {f"{name}.{key}": value for key, value in _entries(child).items()} if child else {}
    return entries


def _collect(tree: Any, path: tuple[str, ...], content: Content, state: State, seen: set[int]) -> None:
    """Add what a mapping holds to the content of its file, and its arrays to one state."""
    entries = _entries(tree)
    if id(tree) in seen or len(path) > DEEPEST or "param_groups" in entries:
        return
    seen.add(id(tree))
    whole_module = isinstance(tree, Opaque) and "_modules" in tree.fields
    setting = (isinstance(tree, Opaque) and not whole_module) or bool(path and CONFIG.search(path[-1]))
    for key, value in entries.items():
        name, where = str(key), (*path, str(key))
        states = _states(value)
        if isinstance(value, Mapping | Opaque) and OPTIMIZER.search(name):
            continue
        if states:
            members = []
            for label, member in states:
                members.append(
                    State(f"{name}[{label}]", content.path, numbers={} if label is None else {"key": label})
                )
                inside = member if isinstance(member, Mapping | Opaque) else {name: member}
                _collect(inside, (), Content(content.path, state), members[-1], set())
            content.series[".".join(where)] = members
        elif isinstance(value, Mapping | Opaque):
            inside = _entries(value)
            if _is_array(inside.get("value")) and "step" in inside:  # an element of H5MD
                value = inside["value"]
                clock = np.asarray(inside["step"])
                if clock.ndim == 0:  # the distance of steps
                    offset = getattr(inside["step"], "attrs", {}).get("offset", 0)
                    clock = clock * np.arange(len(value)) + int(offset)
                state.steps[".".join(where)] = clock
                state.arrays[".".join(where)] = value
            else:
                _collect(value, where, content, state, seen)
        elif isinstance(value, str) and len(value) < 200:
            content.settings[name] = value
        elif (number := _number(value)) is not None:
            content.settings[name] = number
            state.numbers |= {} if setting else {name: number}
        elif setting or (not _is_array(value) and not isinstance(value, list | tuple)):
            continue
        elif _is_array(value) and (value.ndim > 1 or kind_of(value).endswith("tensor")):
            if EXAMPLES.search(name) and kind_of(value).startswith("int") and value.shape[1] in (2, 3):
                _examples(name, numbers_of(value), content)
            else:
                short = short_name(".".join(where))
                state.arrays[".".join(where) if short in state.arrays else short] = value
        else:
            _vector(name, where, value, content, state)


def _vector(name: str, where: tuple[str, ...], value: Any, content: Content, state: State) -> None:
    """Take in an array or list of numbers, or a list of examples."""
    if not _is_array(value):
        numbers = [_number(one) for one in value]
        pairs = all(isinstance(one, tuple | list) and len(one) > 1 for one in value)
        if value and None not in numbers:
            value = np.array(numbers)
        elif value and pairs and EXAMPLES.search(name):
            _examples(name, np.array([one[:2] for one in value]), content)
    if _is_array(value):
        state.vectors[short_name(".".join(where))] = value


def _examples(name: str, pairs: NDArray[Any], content: Content) -> None:
    """Take in the largest number in examples, if there are enough of them to hold each number."""
    if pairs.dtype.kind in "iu" and pairs.size and len(pairs) >= 4 * (pairs[:, :2].max() + 1):
        content.examples[name] = int(pairs[:, :2].max()) + 1


def _states(value: Any) -> list[tuple[int | None, Any]]:
    """Return the states in a list, or in a mapping of steps to states, with these steps; [] if it is none."""
    members: list[tuple[int | None, Any]] = []
    if isinstance(value, Mapping):
        labels = [LABELLED.fullmatch(str(key)) for key in value]
        members = [(int(label[1]), one) for label, one in zip(labels, value.values(), strict=True) if label]
        alone = len(value) == 1 and _is_array(next(iter(value.values())))  # vars/0 of Keras
        members = members if len(members) == len(value) and not alone else []
    elif isinstance(value, list | tuple) or (_is_array(value) and kind_of(value) == "object"):
        members = [(None, member) for member in value]
        if all(isinstance(one, list | tuple) and len(one) == 2 and isinstance(one[0], int) for one in value):
            members = [(label, member) for label, member in value]
    return members if all(_is_state(member) for _, member in members) else []


def _is_state(value: Any, depth: int = 0) -> bool:
    """Whether a value is a matrix of real numbers, or holds one."""
    if _is_array(value):
        return len(value.shape) > 1 and kind_of(value) in REAL
    if not isinstance(value, Mapping | Opaque) or depth > 3:
        return False
    entries = _entries(value)
    return "param_groups" not in entries and any(
        _is_state(part, depth + 1) for name, part in entries.items() if not OPTIMIZER.search(str(name))
    )


def _number(value: Any) -> float | int | None:
    """Return a real number, also that of a tensor or array without axes."""
    if _is_array(value) and value.shape == () and not kind_of(value).endswith("tensor"):
        value = value.item()
    return value if isinstance(value, int | float) else None
