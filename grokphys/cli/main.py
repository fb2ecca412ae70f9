"""`grokphys`: the entry point of the command line.

The exit status is 0 on success, 1 if a file or a run failed, and 2 if an option or a value is not allowed. It
is 130 after an interrupt, 143 after a termination, and 141 if the reader of the output has closed it.
"""

import inspect
import os
import re
import signal
import sys
import warnings
from collections.abc import Sequence
from functools import wraps
from pathlib import Path
from typing import Any, get_type_hints

import tyro

from grokphys.bench.command import bench
from grokphys.cli.analyze import analyze
from grokphys.cli.animate import animate
from grokphys.cli.arena import arena
from grokphys.cli.compare import compare
from grokphys.cli.demo import demo
from grokphys.cli.fit_ode import fit_ode
from grokphys.cli.import_ import import_
from grokphys.cli.info import info
from grokphys.cli.phases import phases
from grokphys.cli.reproduce import reproduce
from grokphys.cli.simulate import simulate
from grokphys.cli.survival import survival
from grokphys.cli.train import train
from grokphys.explorer.server import explore
from grokphys.options import Command, sentence
from grokphys.output import printable
from grokphys.sweeps.command import sweep
from physics.errors import FileFormatError, InputError, SimulationError
from physics.trajectory.provenance import code_version

COMMANDS: dict[str, Command] = {
    command.__name__.strip("_").replace("_", "-"): command
    for command in (
        *(simulate, train, analyze, fit_ode, survival, compare, phases, animate, import_, info, sweep),
        *(arena, reproduce, bench, explore, demo),
    )
}
"""The commands by name. Each is a function whose signature is its options."""
DESCRIPTION = """\
Study how representations form during training: simulate particles, train networks, fit laws of motion to \
what they do, and compare the two.

`grokphys COMMAND --help` explains a command and its options, with an example.
`grokphys --version` prints the version."""
FIRST_STEPS = """\
GrokPhys studies how representations form while networks learn.
Four commands to try first:

  grokphys demo
      simulates, trains, fits and compares in one to two minutes, and writes
      the report results/demo/report.html
  grokphys explore example:ding
      shows in a browser how the embedding of a real network forms circles
  grokphys simulate --runs 100 --out particles.h5
      simulates the particles of Musat, and stores their trajectories
  grokphys reproduce --list
      lists the tables and figures of the papers that can be reproduced, and
      how long each of them takes

`grokphys --help` lists all commands. `grokphys COMMAND --help` explains one."""
"""Text that the command prints when it is called without arguments."""


class Terminated(KeyboardInterrupt):
    """An exception that SIGTERM raises, so that code which cleans up after Ctrl-C does so as well."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return its exit status; errors of the user are one sentence on stderr.

    Parameters
    ----------
    arguments : sequence of str, optional
        Words of the command line without the name of the program; by default those of this process.

    Returns
    -------
    int
        0 on success, 1 if a file or a run failed, 2 if an option or a value is not allowed; 130, 141 or 143
        after an interrupt, a closed output or a termination.

    Raises
    ------
    SystemExit
        After the help has been printed, if the words ask for it.
    """
    warnings.showwarning = _show_warning
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _run(words)
    except (InputError, OverflowError) as error:
        return _fail(in_options(sentence(error), words), 2)
    except BrokenPipeError:  # the reader has closed the output, as in `grokphys … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt as stop:
        number, word = (15, "terminated") if isinstance(stop, Terminated) else (2, "interrupted")
        notes = [in_options(note, words) for note in getattr(stop, "__notes__", [])]
        print("; ".join([f"grokphys: {word}", *notes]), file=sys.stderr)
        return 128 + number
    except (FileFormatError, SimulationError, OSError, MemoryError) as error:
        return _fail(in_options(sentence(error), words), 1)


def _terminate(*_: Any) -> None:
    raise Terminated


def _run(words: list[str]) -> int:
    """Run the command that the words call; the parser prints help and errors itself, and exits."""
    config = (tyro.conf.OmitArgPrefixes,)
    if not words:
        print(FIRST_STEPS)
        return 0
    if words == ["--version"]:
        print(f"grokphys {code_version()}")
        return 0
    try:
        if words[0] in COMMANDS:
            command = _documented(COMMANDS[words[0]])
            return tyro.cli(command, prog=f"grokphys {words[0]}", args=words[1:], config=config)
        commands = {name: _documented(command, short=True) for name, command in COMMANDS.items()}
        return tyro.extras.subcommand_cli_from_dict(
            commands, prog="grokphys", description=DESCRIPTION, args=words, config=config
        )
    except SystemExit as stop:
        if stop.code:
            return int(stop.code)
        raise


def _documented(command: Command, *, short: bool = False) -> Command:
    """Return a command with each argument of its docstring on one line, which the parser breaks itself."""

    @wraps(command)
    def call(*arguments: Any, **options: Any) -> int:
        return command(*arguments, **options)

    text = inspect.cleandoc(command.__doc__ or "")
    call.__doc__ = text.partition("\n\n")[0] if short else re.sub(r"\n {8,}", " ", text)
    del call.__wrapped__  # whose docstring the parser would use
    call.__annotations__ = get_type_hints(command, include_extras=True)
    call.__signature__ = inspect.signature(command)  # type: ignore[attr-defined]
    return call


def in_options(text: str, words: Sequence[str]) -> str:
    """Return a message of the library in terms of the options of a command, which users can type.

    The argument that the message begins with becomes an option, such as ``--step-size``, and so does one
    that it advises to set, such as ``overwrite=True`` or ``modulus=P``.

    Parameters
    ----------
    text : str
        The message.
    words : sequence of str
        The command line, which begins with the name of the command.

    Returns
    -------
    str
        The message.
    """
    command = COMMANDS.get(words[0]) if words else None
    if command is None:
        return text
    names = {
        each.name for each in inspect.signature(command).parameters.values() if each.kind == each.KEYWORD_ONLY
    }

    def option(match: re.Match[str]) -> str:
        name, *value = match.groups()
        if name not in names:
            return match[0]
        no, value = ("no-", []) if value == ["False"] else ("", [one for one in value if one != "True"])
        return " ".join([f"--{no}{name.strip('_').replace('_', '-')}", *value])

    text = re.sub(r"\b(\w+)=('[^']*'|[\w:,]*\w)", option, text)
    return re.sub(r"^(\w+)(?= (?:must|needs)\b)", option, text)


def _fail(text: str, status: int) -> int:
    print(f"grokphys: error: {printable(text)}", file=sys.stderr)
    return status


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    print(f"grokphys: warning: {printable(' '.join(str(message).splitlines()))}", file=sys.stderr)


def command() -> int:
    """Run the command line as a process, and return its exit status."""
    for stream in ("stdin", "stdout", "stderr"):  # each that is closed opens the null device in its place
        if getattr(sys, stream) is None:
            setattr(sys, stream, Path(os.devnull).open("r+"))  # noqa: SIM115 - until the process ends
    signal.signal(signal.SIGTERM, _terminate)
    os.environ["MPLBACKEND"] = "agg"  # a notebook passes on its own, which may not be installed here
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr] # file names need not be text
    return main()
