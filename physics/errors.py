"""Errors that a user can correct. Each message is one sentence that says how."""


class InputError(ValueError):
    """An argument is invalid. The message names it, what was given, and what is allowed."""


class FileFormatError(ValueError):
    """A file is not a readable trajectory. The message names the file and what was found."""


class OutputError(OSError):
    """A result cannot be stored. The message names the file and what to do."""


class InUseError(OutputError):
    """Another process, or another run in this process, is writing the file."""


class SimulationError(ArithmeticError):
    """The state of a system overflowed or became NaN. Frames that were recorded before are kept."""
