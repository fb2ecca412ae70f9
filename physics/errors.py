"""What goes wrong in a way that a user can mend, each with one sentence that says how."""


class InputError(ValueError):
    """An argument is not what it must be; the message names it, what came and what is allowed."""


class FileFormatError(ValueError):
    """A file is not a readable trajectory; the message names the file and what was found."""


class OutputError(OSError):
    """A result cannot be stored; the message names the file and what to do."""


class InUseError(OutputError):
    """Another process, or another run in this one, writes the file."""


class SimulationError(ArithmeticError):
    """The state left the numbers (overflow or NaN); what was recorded before stays."""
