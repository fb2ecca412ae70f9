"""At which step a state was saved: by numbers in the files, then by labelled numbers in their names."""

import itertools
import re
from collections.abc import Mapping, Sequence

from nets.reading.contents import State
from physics.errors import InputError

KEY = re.compile(
    r"(?:global_|current_|train_|training_)?(?:step|epoch|iter|iteration|it|update)(?:_num)?|key"
)
"""Names of the step of a state in its file; "key" is that of a mapping."""
LIST = re.compile(r"(?i)(?:.*_)?(?:step|epoch|iter|iteration|it|update)(?:s|_num)?")
"""Names of lists of the steps of several states, and of numbers that differ between them."""
WORDS = {"step": "step", "steps": "step", "iter": "step", "iters": "step", "iteration": "step",
         "it": "step", "update": "step", "epoch": "epoch", "epochs": "epoch", "ep": "epoch"}  # fmt: skip
"""Words that label a step in the name of a file."""
SETTINGS = {"seed", "run", "v", "rank", "trial", "fold", "layer", "block", "head", "rep", "loss", "acc", "p",
            "mod", "modulus", "prime", "d", "dim", "width", "wd", "lr", "frac", "size", "layers",
            "nlayers", "heads", "hidden"}  # fmt: skip
"""Words before a number that is no step."""
NUMBER = re.compile(
    r"([A-Za-z]*)[-_=. ]*(?<!\d)(\d+(?:\.\d+)?)(e\d+|k)?"
    r"(?:[-_ ]?(steps?|epochs?|iters?)(?![A-Za-z]|[-_=. ]*\d)|(?![A-Za-z0-9]|\.\d))"
)
DATE = re.compile(r"(?<!\d)20\d\d[-_]?[01]\d[-_]?[0-3]\d(?!\d)")
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
    pattern = KEY if len(states) == 1 else LIST
    keys = {key for state in states for key in state.numbers if KEY.fullmatch(key) or pattern.fullmatch(key)}
    order = sorted(keys, key=lambda key: ("epoch" in key, key != "global_step", key))
    found: dict[str, Numbers] = {key: [_whole(state.numbers.get(key)) for state in states] for key in order}
    named = [numbers_in_name(name) for name in names]
    labels = sorted({label for numbers in named for label in numbers})
    in_names: dict[str, Numbers] = {label: [one.get(label) for one in named] for label in labels}
    for label in ("step", "epoch"):
        found[f"{label} in the name"] = in_names.pop(label, [None])
    found = {where: values for where, values in found.items() if _tells(values)}
    plain = {label: values for label, values in in_names.items() if _tells(values)}
    if len(plain) == 1 and not any("name" in where for where in found):
        [(label, values)] = plain.items()
        found[f"number after {label!r} in the name" if label else "number in the name"] = values
    return found


def _tells(values: Numbers) -> bool:
    """Whether numbers tell states apart; of a single state each number does."""
    present = [value for value in values if value is not None]
    return len(set(present)) > 1 or len(present) == 1


def steps_of(
    states: Sequence[State], names: Sequence[str], key: str | None = None, pattern: str | None = None
) -> tuple[Numbers, str]:
    """Return the step of each state, None where it is unknown, and where it stands.

    `names` are those of the files, `key` that of a number of the states, and `pattern` a regular expression
    with one group, the step in the names. An `InputError` says that no number can be the step, or that
    several contradict each other.
    """
    if pattern is not None:
        try:
            numbers = [int(match[1]) if (match := re.search(pattern, name)) else None for name in names]
        except (re.error, IndexError, ValueError):
            numbers = []
        if not any(number is not None for number in numbers):
            example = f"the number in a name such as {names[0]}"
            raise InputError(f"step_name must be a pattern with one group, {example}, got {pattern!r}")
        return numbers, f"{pattern} in the name"
    if key is not None:
        chosen = [_whole(state.numbers.get(key)) for state in states]
        if chosen == [None] * len(states):
            known = ", ".join(sorted({name for state in states for name in state.numbers})) or "none"
            raise InputError(f"step_key must name whole numbers in the files, one of {known}, got {key!r}")
        return chosen, key
    found = candidates(states, names)
    if not found:
        raise InputError(_shown("the step of a checkpoint must be clear", states, names, found))
    best = max(found, key=lambda where: (len(set(found[where]) - {None}), -list(found).index(where)))
    for where, values in found.items():
        both = zip(found[best], values, strict=True)
        pairs = sorted((a, b) for a, b in both if a is not None and b is not None)
        if any(b > d for (_, b), (_, d) in itertools.pairwise(pairs)):
            why = f"{best} and {where} put the checkpoints into different orders"
            raise InputError(_shown(why, states, names, found))
    return found[best], best


def _shown(why: str, states: Sequence[State], names: Sequence[str], found: Mapping[str, Numbers]) -> str:
    """Return a message that shows the numbers that may be the step."""
    shown = []
    for at, name in enumerate(names[:3]):
        numbers = {where: values[at] for where, values in found.items()} or numbers_in_name(name)
        listed = ", ".join(f"{where} {number}" for where, number in numbers.items())
        shown.append(f"{name or states[at].name} ({listed or 'no number'})")
    return (
        f"{why}: {', '.join(shown)}; step_key='epoch' takes this number of each file, step_name="
        r"'model(\d+)_' one in the names, and steps=0,1:3001:30 states the steps"
    )


def _whole(value: float | None) -> int | None:
    return int(value) if value is not None and abs(value) < 2**62 and value == int(value) else None


def numbers_in_text(text: str) -> list[int]:
    """Return the steps that a text means: numbers, and ranges such as 1:3001:30 with both ends."""
    try:
        steps: list[int] = []
        for part in text.split(","):
            start, stop, by = ([*map(int, part.split(":")), 0, 0])[:3]
            steps += range(start, stop + 1, by or 1) if ":" in part else [start]
        return steps
    except (ValueError, MemoryError, OverflowError):
        raise InputError(f"steps must be numbers and ranges such as 0,1:3001:30, got {text!r}") from None
