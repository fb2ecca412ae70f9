"""Trajectories that come with the package: in `data/` of a checkout, in `physics/data/` of a wheel."""

from pathlib import Path

from physics.checks import choice
from physics.trajectory import Trajectory, load

EXAMPLES = {"ding": "ding_p59_d128_seed0.h5"}


def example(name: str) -> Trajectory:
    """Load an example trajectory that comes with the package.

    Parameters
    ----------
    name : {"ding"}
        "ding" is the embedding MLP of Ding et al. on addition mod 59: one run of 80 frames of embeddings
        (59, 128), and the Fourier signals of every step from 0 to 1000. ``data/README.md`` says how it was
        made.

    Returns
    -------
    Trajectory

    Raises
    ------
    InputError
        If there is no example of that name.

    Examples
    --------
    >>> import physics
    >>> physics.example("ding").positions.shape
    (1, 80, 59, 128)
    """
    return load(example_path(name))


def example_path(name: str) -> Path:
    """Return the path of a trajectory file that comes with the package; see `example`."""
    file = EXAMPLES[choice("name", name, tuple(EXAMPLES))]
    here = Path(__file__).parent
    inside = here / "data" / file
    return inside if inside.exists() else here.parent / "data" / file
