"""Opening a trajectory by its path; HDF5 is loaded only when the first file is read."""

from pathlib import Path as FilePath

from physics.trajectory.header import Path
from physics.trajectory.trajectory import Trajectory


def _open(path: Path) -> Trajectory:
    from physics.trajectory.stored import StoredTrajectory

    return StoredTrajectory(path)


def load(path: Path) -> Trajectory:
    """Read a whole trajectory file into memory.

    For a file that is larger than memory use `Trajectory.open`, which reads positions and observables only
    when they are used.

    Parameters
    ----------
    path : path
        A trajectory file, or the log ``NAME.partial`` of an unfinished run.

    Returns
    -------
    Trajectory
        The whole trajectory, with its positions and observables in memory.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    FileFormatError
        If it is not a readable trajectory, or larger than the memory.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import physics
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = pathlib.Path(directory, "particles.h5")
    ...     saved = physics.simulate(steps=5, out=path)
    ...     physics.load(path) == saved
    True
    """
    from physics.trajectory.stored import damage  # imported here because it loads HDF5

    lazy = Trajectory.open(path)
    with damage(FilePath(path)):
        return Trajectory(
            lazy.positions,
            lazy.steps,
            lazy.times,
            observables={name: lazy.observables[name] for name in lazy.observables},
            clocks=lazy._clocks,
            parameters=lazy.parameters,
            start=dict(lazy.start),
            made_with=lazy.made_with,
            complete=lazy.complete,
        )


Trajectory._opened = staticmethod(_open)
