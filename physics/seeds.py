"""Seeds of the runs of an ensemble: each run has a seed that does not depend on the number of other runs."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from physics.checks import short_text, whole_number
from physics.errors import InputError

Seed = int | np.random.SeedSequence
DEFAULT_POOL = np.random.SeedSequence(0).pool_size
_heard: ContextVar[set[int] | None] = ContextVar("heard", default=None)
_shift: ContextVar[int] = ContextVar("shift", default=0)


@contextmanager
def hear_seeds() -> Iterator[set[int]]:
    """Collect, while the context is open, the seeds of everything that is drawn.

    Yields
    ------
    set of int
        Numbers of the seeds so far. The child of a seed counts as the seed itself.
    """
    heard: set[int] = set()
    token = _heard.set(heard)
    try:
        yield heard
    finally:
        _heard.reset(token)


@contextmanager
def other_seeds(shift: int) -> Iterator[None]:
    """Add `shift` to every seed that is given as a number while the context is open.

    A whole computation can thus be repeated with independent random numbers. A `numpy.random.SeedSequence` is
    not shifted. The context yields nothing; contexts do not add up, and the innermost one counts.
    """
    token = _shift.set(shift)
    try:
        yield
    finally:
        _shift.reset(token)


def parent_seed(seed: Any) -> np.random.SeedSequence:
    """Return the seed sequence whose children are the seeds of the runs.

    Parameters
    ----------
    seed : int or numpy.random.SeedSequence
        A whole number of at least 0, to which the shift of `other_seeds` is added, or a sequence.

    Returns
    -------
    numpy.random.SeedSequence
        The sequence of that number, or the given sequence unchanged.

    Raises
    ------
    InputError
        If `seed` is anything else.
    """
    if isinstance(seed, np.random.SeedSequence):
        _hear(seed.entropy)
        return seed
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        got = short_text(seed)
        raise InputError(f"seed must be a whole number of at least 0 or a numpy SeedSequence, got {got}")
    if seed < 0:
        raise InputError(f"seed must be at least 0, got {short_text(seed)}")
    entropy = int(seed) + _shift.get()
    _hear(entropy)
    return np.random.SeedSequence(entropy)


def generator(seed: Any) -> np.random.Generator:
    """Return NumPy's default random generator for a seed.

    Parameters
    ----------
    seed : int or numpy.random.SeedSequence
        Seed; an int is shifted by `other_seeds`.

    Returns
    -------
    numpy.random.Generator
        A new generator; equal seeds give equal random numbers.

    Raises
    ------
    InputError
        If `seed` is neither a whole number of at least 0 nor a sequence.
    """
    return np.random.default_rng(parent_seed(seed))


def _hear(entropy: Any) -> None:
    heard = _heard.get()
    if heard is not None and isinstance(entropy, int):
        heard.add(entropy)


def run_seeds(seed: Any, runs: int, first_run: int = 0) -> list[np.random.SeedSequence]:
    """Return the seeds of some runs: the children `first_run … first_run + runs - 1` of `seed`.

    Child k equals ``SeedSequence(seed).spawn(k + 1)[k]``. It is made directly, so that a part of a large
    ensemble costs no more than its own runs.

    Parameters
    ----------
    seed : int or numpy.random.SeedSequence
        Seed of the ensemble.
    runs : int
        Number of runs.
    first_run : int, default 0
        Number of the first run, at least 0.

    Returns
    -------
    list of numpy.random.SeedSequence
        One seed for each run.

    Raises
    ------
    InputError
        If `seed` or `first_run` is invalid.
    """
    first_run = whole_number("first_run", first_run, 0)
    return children(seed, range(first_run, first_run + runs))


def children(seed: Any, numbers: Iterable[int]) -> list[np.random.SeedSequence]:
    """Return some of the children of a seed; each run of an ensemble draws from one child.

    Parameters
    ----------
    seed : int or numpy.random.SeedSequence
        Parent; an int is shifted by `other_seeds`.
    numbers : iterable of int
        Numbers of the children, from 0.

    Returns
    -------
    list of numpy.random.SeedSequence
        One child for each number, the same that ``SeedSequence.spawn`` would return at this place.

    Raises
    ------
    InputError
        If `seed` is neither a whole number of at least 0 nor a sequence.
    """
    parent = parent_seed(seed)
    return [
        np.random.SeedSequence(
            parent.entropy, spawn_key=(*parent.spawn_key, number), pool_size=parent.pool_size
        )
        for number in numbers
    ]


def numbers_of_runs(runs: int, first_run: Any, run_numbers: Sequence[int] | None) -> list[int]:
    """Return the number of each run: `run_numbers` if given, otherwise ``first_run, first_run + 1, …``.

    Parameters
    ----------
    runs : int
        Number of runs.
    first_run : int
        Number of the first run, at least 0; it must be 0 if `run_numbers` are given.
    run_numbers : sequence of int, optional
        Number of each run, at least 0, in any order.

    Returns
    -------
    list of int
        One number for each run.

    Raises
    ------
    InputError
        If a number is not a whole number of at least 0, `run_numbers` does not hold `runs` numbers, or both
        arguments are given.
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
    """Return `seed` in a form that JSON can hold, for the parameters of a trajectory.

    Parameters
    ----------
    seed : int or numpy.random.SeedSequence
        Seed, as `simulate` takes it; an int is shifted by `other_seeds`.

    Returns
    -------
    int or dict
        The number, or the "entropy" and "spawn_key" of a `SeedSequence`, and its "pool_size" if that is not
        NumPy's default.
    """
    if isinstance(seed, np.random.SeedSequence):
        entropy = seed.entropy
        return {
            "entropy": entropy if isinstance(entropy, int) or entropy is None else [int(e) for e in entropy],
            "spawn_key": [int(k) for k in seed.spawn_key],
            **({} if seed.pool_size == DEFAULT_POOL else {"pool_size": seed.pool_size}),
        }
    return int(seed) + _shift.get()
