"""Seeds of the runs of an ensemble: each run has a seed that does not depend on the number of other runs."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from physics.checks import InputError, sequence, short_text, whole_number

Seed = int | np.random.SeedSequence
DEFAULT_POOL = np.random.SeedSequence(0).pool_size


def parent_seed(seed: Any) -> np.random.SeedSequence:
    """Return the seed sequence of a `seed`, whose children are the seeds of the runs.

    `seed` is a whole number of at least 0, or a `numpy.random.SeedSequence`, which is returned unchanged.
    Anything else is an `InputError`.
    """
    if isinstance(seed, np.random.SeedSequence):
        return seed
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        got = short_text(seed)
        raise InputError(f"seed must be a whole number of at least 0 or a numpy SeedSequence, got {got}")
    return np.random.SeedSequence(int(seed))


def generator(seed: Any) -> np.random.Generator:
    """Return NumPy's default random generator for a `seed` as in `parent_seed`."""
    return np.random.default_rng(parent_seed(seed))


def run_seeds(seed: Any, runs: int, first_run: int = 0) -> list[np.random.SeedSequence]:
    """Return the children `first_run … first_run + runs - 1` of `seed`, one for each run.

    They are made directly, so a part of a large ensemble costs no more than its own runs. An `InputError`
    refuses an invalid `seed` or `first_run`.
    """
    first_run = whole_number("first_run", first_run, 0)
    return children(seed, range(first_run, first_run + runs))


def children(seed: Any, numbers: Iterable[int]) -> list[np.random.SeedSequence]:
    """Return the children of a `seed` (as in `parent_seed`) with the given `numbers`, which count from 0.

    Child k equals ``sequence.spawn(k + 1)[k]`` of a new sequence with the same entropy. It is the same
    whether or not other children have been made.
    """
    parent = parent_seed(seed)
    return [
        np.random.SeedSequence(
            parent.entropy, spawn_key=(*parent.spawn_key, number), pool_size=parent.pool_size
        )
        for number in numbers
    ]


def numbers_of_runs(runs: int, first_run: Any, run_numbers: Sequence[int] | None) -> list[int]:
    """Return the number of each of `runs` runs: `run_numbers`, or ``first_run, first_run + 1, …`` if None.

    An `InputError` refuses numbers that are not whole or below 0, `run_numbers` of another length than
    `runs`, and `run_numbers` together with a `first_run` other than 0.
    """
    first_run = whole_number("first_run", first_run, 0)
    if run_numbers is None:
        return list(range(first_run, first_run + runs))
    numbers = [whole_number("run_numbers", number, 0) for number in sequence("run_numbers", run_numbers)]
    if len(numbers) != runs:
        raise InputError(f"run_numbers must hold one number for each of {runs} runs, got {len(numbers)}")
    if first_run:
        raise InputError(f"first_run must be 0 if run_numbers are given, got {first_run}")
    return numbers


def describe_seed(seed: Any) -> int | dict[str, Any]:
    """Return a seed in a form that JSON can hold, for the parameters of a trajectory.

    It is the number, or for a `SeedSequence` a dict of its "entropy" and
    "spawn_key", and of its "pool_size" if that is not NumPy's default.
    """
    if isinstance(seed, np.random.SeedSequence):
        entropy = seed.entropy
        return {
            "entropy": entropy if isinstance(entropy, int) or entropy is None else [int(e) for e in entropy],
            "spawn_key": [int(k) for k in seed.spawn_key],
            **({} if seed.pool_size == DEFAULT_POOL else {"pool_size": seed.pool_size}),
        }
    return int(seed)
