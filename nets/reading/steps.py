"""At which step a state was saved: by numbers in the files, then by labelled numbers in their names."""

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nets.reading.contents import State
from physics.errors import InputError

KEYS = ("global_step", "step", "iteration", "iter", "it", "update", "train_step", "training_step",
        "current_step", "steps", "key", "epoch", "epochs", "current_epoch")  # fmt: skip
"""Names of the step of a state in its file, in the order of preference; "key" is that of a mapping."""
LISTS = re.compile(r"(?i)(?:^|_)(?:steps?|epochs?|iterations?|iters?)$")
"""Names of lists of the steps of several states."""
WORDS = {"step": "step", "steps": "step", "iter": "step", "iters": "step", "iteration": "step",
         "it": "step", "update": "step", "epoch": "epoch", "epochs": "epoch", "ep": "epoch"}  # fmt: skip
"""Words that label a step in the name of a file."""
SETTINGS = {"seed", "run", "v", "rank", "trial", "fold", "layer", "block", "head", "rep", "loss", "acc", "p",
            "mod", "modulus", "prime", "d", "dim", "width", "wd", "lr", "frac", "size"}  # fmt: skip
"""Words before a number that is no step."""
NUMBER = re.compile(
    r"([A-Za-z]*)[-_=. ]*(?<!\d)(\d+(?:\.\d+)?)(e\d+|k)?"
    r"(?:[-_ ]?(steps?|epochs?|iters?)(?![A-Za-z]|[-_=. ]*\d)|(?![A-Za-z0-9]|\.\d))"
)
DATE = re.compile(r"(?<!\d)20\d\d[-_]?[01]\d[-_]?[0-3]\d(?!\d)")
LABELS = {"step in the name", "epoch in the name"}
Numbers = Sequence[int | None]


def numbers_in_name(name: str) -> dict[str, int]:
    """Return the whole numbers in the name of a file, by the word that labels them, and "1k" as 1000."""
    numbers: dict[str, int] = {}
    for before, digits, unit, after in NUMBER.findall("" if DATE.search(name) else name):
        word = (re.findall(r"[A-Z]?[a-z]+|[A-Z]+", before) or [""])[-1].lower()
        value = float(digits) * (1000 if unit == "k" else float(f"1{unit or 'e0'}"))
        label = WORDS.get(after.lower()) or WORDS.get(word, word)
        if label not in SETTINGS and (unit or "." not in digits) and value == int(value) < 1e15:
            while label in numbers:
                label += "'"
            numbers[label] = int(value)
    return numbers


def candidates(states: Sequence[State], names: Sequence[str]) -> dict[str, Numbers]:
    """Return the numbers that may be the steps of states, in the order of preference.

    They stand in the files, are labelled in the names of the files, or are the only ones that differ there.
    """
    inside: dict[str, Numbers] = {key: [_whole(state.numbers.get(key)) for state in states] for key in KEYS}
    named = [numbers_in_name(name) for name in names]
    by_label: dict[str, Numbers] = {
        label: [numbers.get(label) for numbers in named]
        for label in sorted({k for one in named for k in one})
    }
    labelled = {label: by_label.pop(label.split()[0], [None]) for label in sorted(LABELS, reverse=True)}
    evident: dict[str, Numbers] = {
        key: values for key, values in {**inside, **labelled}.items() if _tells(values)
    }
    plain = {f"{label or 'number'} in the name": v for label, v in by_label.items() if _tells(v)}
    return evident if any(key in labelled for key in evident) else {**evident, **plain}


def _tells(values: Numbers) -> bool:
    """Whether numbers tell states apart; of a single state each number does."""
    present = [value for value in values if value is not None]
    return len(set(present)) > 1 or len(present) == 1


def steps_of(
    states: Sequence[State], names: Sequence[str], key: str | None = None, pattern: str | None = None
) -> tuple[Numbers, str]:
    """Return the step of each state, None where it is unknown, and where it stands.

    Parameters
    ----------
    states : sequence of State
        States with the numbers that were stored with them.
    names : sequence of str
        Names of their files, without endings.
    key : str, optional
        Name of the number in each file that is the step.
    pattern : str, optional
        Regular expression with one group, the step in the names.

    Raises
    ------
    InputError
        If no number can be the step, several can that contradict each other, or `key` or `pattern` finds
        none.
    """
    if pattern is not None:
        matches = [re.search(pattern, name) for name in names]
        if not any(matches):
            raise InputError(f"step_name must match the name of a file, such as {names[0]}, got {pattern!r}")
        return [int(match[1]) if match else None for match in matches], f"{pattern!r} in the name"
    if key is not None:
        values = [_whole(state.numbers.get(key)) for state in states]
        if not any(value is not None for value in values):
            known = ", ".join(sorted({name for state in states for name in state.numbers})) or "none"
            raise InputError(f"step_key must name a whole number in the files, one of {known}, got {key!r}")
        return values, f"{key} in the file"
    found = candidates(states, names)
    inside = [where for where in found if where in KEYS]
    in_names = [where for where in found if where not in KEYS]
    if len(in_names) > 1 and not LABELS & set(in_names):
        in_names = []  # several numbers differ, and none is labelled
    if not inside and not in_names:
        raise InputError(_shown("the step of a checkpoint must be clear", states, names, found))

    def rank(where: str) -> tuple[int, bool, int]:
        agrees = any(_pairs(found[where], found[name], equal=True) for name in in_names)
        return len(set(found[where]) - {None}), agrees, -list(found).index(where)

    best = max([*inside, *in_names], key=rank)
    for where in (*inside, *in_names):
        if not _pairs(found[best], found[where]):
            why = f"{best} and {where} put the checkpoints into different orders"
            raise InputError(_shown(why, states, names, found))
    return found[best], best if best in in_names else f"{best} in the file"


def _pairs(values: Numbers, others: Numbers, equal: bool = False) -> bool:
    """Whether numbers put states into the same order, or are equal, where both are known."""
    pairs = sorted((a, b) for a, b in zip(values, others, strict=True) if a is not None and b is not None)
    if equal:
        return bool(pairs) and all(a == b for a, b in pairs)
    return all(b <= d for (_, b), (_, d) in itertools.pairwise(pairs))


def _shown(why: str, states: Sequence[State], names: Sequence[str], found: Mapping[str, Numbers]) -> str:
    """Return a message that shows the numbers that may be the step."""
    shown = ", ".join(
        f"{names[at] or states[at].name} ("
        + (", ".join(f"{where}: {values[at]}" for where, values in found.items()) or "no number")
        + ")"
        for at in range(min(3, len(states)))
    )
    return (
        f"{why}: {shown}; step_key='epoch' takes this number of each file, step_name="
        r"'model(\d+)_' one in the names, and steps=0,1:3001:30 states the steps"
    )


def listed_steps(
    lists: Mapping[str, Any], count: int, key: str | None
) -> tuple[NDArray[np.int64], str] | None:
    """Return the steps of `count` frames out of the lists beside them, and their name; None without any."""
    if key is None:
        named = [name for name in lists if LISTS.search(name)]
        if not named:
            named = [name for name, one in lists.items() if len(one) == count and _counts(one)]
            if named:
                raise InputError(
                    f"step_key must say whether {' or '.join(named)} holds the steps, or be 'none'"
                )
            return None
        if "steps" not in named and len({tuple(lists[name]) for name in named}) > 1:
            raise InputError(f"step_key must name the steps, one of {', '.join(named)}")
        key = "steps" if "steps" in named else named[0]
    if key not in lists:
        known = ", ".join(lists) or "none"
        raise InputError(f"step_key must name a list of steps in the file, one of {known}, got {key!r}")
    values = np.asarray(lists[key])
    if len(values) != count:
        raise InputError(f"step_key must name a list of {count} steps, got {key} of {len(values)}")
    if values.dtype.kind == "f" and not (np.isfinite(values).all() and (values == np.floor(values)).all()):
        raise InputError(f"step_key must name whole numbers, got {key}")
    return values.astype(np.int64), f"{key} in the file"


def _counts(values: Any) -> bool:
    """Whether numbers are whole and increase, as steps do."""
    numbers = np.asarray(values)
    whole = numbers.dtype.kind in "iu" or (
        np.isfinite(numbers).all() and (numbers == np.floor(numbers)).all()
    )
    return bool(whole and len(numbers) > 1 and (numbers[1:] > numbers[:-1]).all())


def _whole(value: float | None) -> int | None:
    return int(value) if value is not None and abs(value) < 2**62 and value == int(value) else None


def numbers_in_text(text: str) -> list[int]:
    """Return the steps that a text means: numbers, and ranges such as 1:3001:30 with both ends."""
    try:
        steps: list[int] = []
        for part in text.split(","):
            start, *more = map(int, part.split(":"))
            stop, by = (more + [start, 1][len(more) :])[:2] if more else (start, 1)
            steps.extend(range(start, stop + 1, by))
        return steps
    except ValueError:
        raise InputError(f"steps must be numbers and ranges such as 0,1:3001:30, got {text!r}") from None
