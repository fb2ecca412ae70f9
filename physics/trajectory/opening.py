"""Opening a trajectory by its path. HDF5 is loaded when the first file is read."""

from pathlib import Path as FilePath

from physics.trajectory.header import Path
from physics.trajectory.trajectory import Trajectory


def _open(path: Path) -> Trajectory:
    from physics.trajectory.stored import StoredTrajectory

    return StoredTrajectory(path)


def load(path: Path) -> Trajectory:
    """Read a whole trajectory file into memory. `Trajectory.open` reads it only when needed.

    Parameters
    ----------
    path : path
        A trajectory, or the log ``NAME.partial`` of one that is not complete.

    Returns
    -------
    Trajectory

    Raises
    ------
    FileNotFoundError, FileFormatError
        If there is no such file, or it is not a readable trajectory.
    """
    from physics.trajectory.stored import damage  # HDF5 is loaded where a file is read

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
