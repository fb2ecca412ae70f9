"""The errors that the package raises when a user can correct the cause; each message is one sentence."""


class InputError(ValueError):
    """An argument is invalid; the message names the argument, what was given, and what is allowed.

    Examples
    --------
    >>> import physics
    >>> physics.simulate(steps=0)
    Traceback (most recent call last):
    physics.errors.InputError: steps must be at least 1, got 0
    """


class FileFormatError(ValueError):
    """A file is not a readable trajectory; the message names the file and what is wrong with it.

    Functions that read a file, such as `physics.load` and `Trajectory.open`, raise it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import physics
    >>> path = pathlib.Path(tempfile.mkdtemp(), "run.h5")
    >>> _ = path.write_text("no trajectory")
    >>> try:
    ...     physics.load(path)
    ... except physics.FileFormatError as error:
    ...     print(str(error).replace(str(path), "run.h5"))
    run.h5 is not an HDF5 file
    """


class OutputError(OSError):
    """A result cannot be stored; the message names the file and the reason.

    The file may exist already, its folder may be missing, or the disk may be full. `simulate` and all
    functions that write a file raise it.

    Examples
    --------
    >>> import physics
    >>> try:
    ...     physics.simulate(steps=1, out="missing/run.h5")
    ... except physics.OutputError as error:
    ...     print(str(error).partition(": the directory")[0])
    cannot write missing/run.h5
    """


class InUseError(OutputError):
    """A file cannot be written because another process, or another run in this process, is writing it."""


class SimulationError(ArithmeticError):
    """A simulation cannot continue, for example because the state overflowed; recorded frames are kept.

    With a file they are in ``out.partial``. Without one, the attribute `recorded` of the error is a
    `Trajectory` of the frames. The message names the step at which the simulation ended.

    Examples
    --------
    >>> import physics
    >>> growth = physics.AffineFlow([[1.0]], [0.0])
    >>> try:
    ...     physics.simulate(growth, steps=3, step_size=400.0, initial=[[1.0]])
    ... except physics.SimulationError as error:
    ...     print(error.recorded.steps.tolist())
    [0, 1]
    """
