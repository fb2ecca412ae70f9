"""The errors that the package raises when a user can correct the cause; each message is one sentence."""


class InputError(ValueError):
    """An argument is invalid; the message names the argument, what was given, and what is allowed."""


class FileFormatError(ValueError):
    """A file is not a readable trajectory; the message names the file and what is wrong with it."""


class OutputError(OSError):
    """A result cannot be stored; the message names the file and the reason."""


class InUseError(OutputError):
    """A file cannot be written because another process, or another run in this process, is writing it."""


class SimulationError(ArithmeticError):
    """A simulation cannot continue, for example because the state overflowed; recorded frames are kept."""
