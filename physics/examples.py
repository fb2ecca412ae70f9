"""Example trajectories of the package: in `data/` of a checkout, and in `physics/data/` of a wheel."""

from pathlib import Path

from physics.checks import choice
from physics.trajectory import Trajectory, load

EXAMPLES = {"ding": "ding_p59_d128_seed0.h5"}
"""File of each example, by the name of the example."""


def example(name: str) -> Trajectory:
    """Load an example trajectory that comes with the package, to try functions on real data without training.

    Parameters
    ----------
    name : {"ding"}
        "ding" is one run of an embedding MLP that learned addition modulo 59, trained with the setting of
        Ding et al. It holds 80 frames of the embedding (59 tokens in 128 dimensions) from step 0 to step
        4000. Its observables are losses and accuracies, and the Fourier signals of steps 0 to 1000, each at
        its own steps. ``data/README.md`` says how the file was made.

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
    trajectory = load(example_path(name))
    assert trajectory.positions.size  # now in memory
    return trajectory


def example_path(name: str) -> Path:
    """Return the path of the file of the example `name`, in the installed package or in the checkout.

    An `InputError` refuses a name that is not a key of `EXAMPLES`.
    """
    file = EXAMPLES[choice("name", name, tuple(EXAMPLES))]
    here = Path(__file__).parent
    inside = here / "data" / file
    return inside if inside.exists() else here.parent / "data" / file
