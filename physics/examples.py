"""Example trajectories of the package: in `data/` of a checkout, and in `physics/data/` of a wheel."""

from pathlib import Path

from physics.checks import choice
from physics.trajectory import Trajectory, load

EXAMPLES = {"ding": "ding_p59_d128_seed0.h5"}


def example(name: str) -> Trajectory:
    """Load an example trajectory that comes with the package, to try functions on real data without training.

    Parameters
    ----------
    name : {"ding"}
        "ding" is a network of Ding et al., an embedding MLP that learned addition modulo 59: one run with 80
        frames of the embedding (59 tokens in 128 dimensions) from step 0 to 4000. Its observables are losses,
        accuracies, and the Fourier signals of every step up to 1000. ``data/README.md`` says how it was made.

    Returns
    -------
    Trajectory
        The whole trajectory, in memory.

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
    """Return the path of the file of an example trajectory, which is in the package or in the checkout.

    Parameters
    ----------
    name : str
        Name of the example, one of the keys of `EXAMPLES`.

    Returns
    -------
    pathlib.Path
        Path of an HDF5 file; the file itself is not opened.

    Raises
    ------
    InputError
        If there is no example of that name.
    """
    file = EXAMPLES[choice("name", name, tuple(EXAMPLES))]
    here = Path(__file__).parent
    inside = here / "data" / file
    return inside if inside.exists() else here.parent / "data" / file
