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

    `physics.load` raises this error, and reading the positions of a damaged file does.

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


class NewerFormatError(FileFormatError):
    """A file was written by a newer version of GrokPhys. It is not damaged, and must not be replaced."""


class OutputError(OSError):
    """A result cannot be stored; the message names the file and the reason.

    For example, the file may exist already, its folder may be missing, or the disk may be full. `simulate`
    with `out` and the other functions that write files raise this error.

    Examples
    --------
    >>> import physics
    >>> try:
    ...     physics.simulate(steps=1, out="missing/run.h5")
    ... except physics.OutputError as error:
    ...     print("missing" + str(error).rpartition("missing")[2])
    missing does not exist
    """


class InUseError(OutputError):
    """A file cannot be written because another process, or another run in this process, is writing it."""


class SimulationError(ArithmeticError):
    """A simulation cannot continue, for example because the state overflowed.

    If `simulate` raises this error, the frames up to that point are kept: in ``out.partial`` if there is a
    file `out`, and otherwise as a `Trajectory` in the attribute `recorded` of the error. The message names
    the step that overflowed, or the two steps between which an adaptive integrator gave up. The method
    `advance` of a system also raises this error, and then nothing is recorded.

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
