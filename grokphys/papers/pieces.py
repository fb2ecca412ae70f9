"""Pieces of slow computations on disk, from which an interrupted run continues."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from physics.seeds import hear, hear_seeds
from physics.trajectory.locks import replace_as_a_whole

SEEDS = "seeds that were used"


def kept(path: Path, make: Callable[[], Mapping[str, Any]]) -> dict[str, NDArray[Any]]:
    """Return the arrays in a file, which are computed and stored first if the file does not exist.

    Seeds that the computation used are stored with the arrays. `hear_seeds` hears them in either case, so
    that the result of a continued run names all of its seeds.

    Parameters
    ----------
    path : Path
        File to read or to write, whose directory is made.
    make : callable
        Function without arguments that returns the arrays by name.

    Returns
    -------
    dict of str to ndarray
        The arrays by name.
    """
    if not path.exists():
        with hear_seeds() as seeds:
            made = {name: np.asarray(value) for name, value in make().items()}
        made[SEEDS] = np.array([str(seed) for seed in sorted(seeds)], dtype=str)  # of any size
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_as_a_whole(path, lambda file: np.savez_compressed(file, allow_pickle=False, **made))
    with np.load(path, allow_pickle=False) as stored:
        found = dict(stored)
    hear(*(int(seed) for seed in found.pop(SEEDS)))
    return found
