"""Seeds of runs that do not depend on the number of other runs."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from physics.checks import whole_number
from physics.errors import InputError

Seed = int | np.random.SeedSequence
DEFAULT_POOL = np.random.SeedSequence(0).pool_size
_heard: ContextVar[set[int] | None] = ContextVar("heard", default=None)
_shift: ContextVar[int] = ContextVar("shift", default=0)


@contextmanager
def hear_seeds() -> Iterator[set[int]]:
    """Collect, as numbers, the seeds of all draws inside the context, also those of parents of children."""
    heard: set[int] = set()
    token = _heard.set(heard)
    try:
        yield heard
    finally:
        _heard.reset(token)


@contextmanager
def other_seeds(shift: int) -> Iterator[None]:
    """Add `shift` to every seed that is given as a number inside the context, so that all draws are new."""
    token = _shift.set(shift)
    try:
        yield
    finally:
        _shift.reset(token)


def parent_seed(seed: Any) -> np.random.SeedSequence:
    """Return the seed sequence whose children are the runs; an int or a `SeedSequence` is allowed."""
    if isinstance(seed, np.random.SeedSequence):
        _hear(seed.entropy)
        return seed
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"seed must be a whole number of at least 0 or a numpy SeedSequence, got {seed!r}")
    entropy = int(seed) + _shift.get()
    _hear(entropy)
    return np.random.SeedSequence(entropy)


def generator(seed: Any) -> np.random.Generator:
    """Return NumPy's generator of a seed, an int or a `SeedSequence`."""
    return np.random.default_rng(parent_seed(seed))


def _hear(entropy: Any) -> None:
    heard = _heard.get()
    if heard is not None and isinstance(entropy, int):
        heard.add(entropy)


def run_seeds(seed: Any, runs: int, first_run: int = 0) -> list[np.random.SeedSequence]:
    """Return the children `first_run … first_run + runs - 1` of `seed`, one for each run.

    Child k is the one that `SeedSequence(seed).spawn(k + 1)[k]` gives; it is made directly, so that a
    part of a large ensemble costs no more than its runs.
    """
    first_run = whole_number("first_run", first_run, 0)
    return children(seed, range(first_run, first_run + runs))


def children(seed: Any, numbers: Iterable[int]) -> list[np.random.SeedSequence]:
    """Return the children of `seed` with these numbers."""
    parent = parent_seed(seed)
    return [
        np.random.SeedSequence(
            parent.entropy, spawn_key=(*parent.spawn_key, number), pool_size=parent.pool_size
        )
        for number in numbers
    ]


def numbers_of_runs(runs: int, first_run: Any, run_numbers: Sequence[int] | None) -> list[int]:
    """Return the number of each run: `run_numbers` if given, otherwise ``first_run, first_run + 1, …``.

    Raises
    ------
    InputError
        If a number is not a whole number of at least 0, their count is not `runs`, or `first_run` is given
        too.
    """
    first_run = whole_number("first_run", first_run, 0)
    if run_numbers is None:
        return list(range(first_run, first_run + runs))
    numbers = [whole_number("run_numbers", number, 0) for number in run_numbers]
    if len(numbers) != runs:
        raise InputError(f"run_numbers must hold one number for each of {runs} runs, got {len(numbers)}")
    if first_run:
        raise InputError(f"first_run must be 0 if run_numbers are given, got {first_run}")
    return numbers


def describe_seed(seed: Any) -> int | dict[str, Any]:
    """Return `seed` in a form for JSON: the number, or the entropy and the spawn key of a `SeedSequence`."""
    if isinstance(seed, np.random.SeedSequence):
        entropy = seed.entropy
        return {
            "entropy": entropy if isinstance(entropy, int) or entropy is None else [int(e) for e in entropy],
            "spawn_key": [int(k) for k in seed.spawn_key],
            **({} if seed.pool_size == DEFAULT_POOL else {"pool_size": seed.pool_size}),
        }
    return int(seed) + _shift.get()
