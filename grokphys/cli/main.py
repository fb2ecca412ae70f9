"""`grokphys`: the entry point of the command line.

The exit status is 0 on success, 1 if a file or a run failed, and 2 if an option or a value is not allowed. It
is 130 after an interrupt, 143 after a termination, and 141 if the reader of the output has closed it.
"""

import gc
import io
import os
import re
import signal
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from grokphys import interrupts
from grokphys.options import ValueNotAllowed, sentence
from grokphys.output import printable
from grokphys.parsing import Commands, in_options, parsed
from physics.errors import FileFormatError, InputError, OutputError, SimulationError

COMMANDS = Commands(
    {
        "simulate": "grokphys.cli.simulate:simulate",
        "train": "grokphys.cli.train:train",
        "analyze": "grokphys.cli.analyze:analyze",
        "fit-ode": "grokphys.cli.fit_ode:fit_ode",
        "survival": "grokphys.cli.survival:survival",
        "compare": "grokphys.cli.compare:compare",
        "phases": "grokphys.cli.phases:phases",
        "animate": "grokphys.cli.animate:animate",
        "import": "grokphys.cli.import_:import_",
        "info": "grokphys.cli.info:info",
        "sweep": "grokphys.sweeps.command:sweep",
        "reproduce": "grokphys.cli.reproduce:reproduce",
        "bench": "grokphys.bench.command:bench",
        "warm": "grokphys.warm:warm",
        "explore": "grokphys.explorer.server:explore",
        "demo": "grokphys.cli.demo:demo",
    }
)
COLLECT = 10_000, 20, 20
"""Thresholds of the garbage collector; see `gc.set_threshold`."""
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
    _open_closed_streams()
    warnings.showwarning = _show_warning
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with interrupts.kept(), interrupts.terminates():
            if not words:
                print(FIRST_STEPS)
                return 0
            if words == ["--version"]:
                print(f"grokphys {_version()}")
                return 0
            return int(parsed(words, COMMANDS, description=DESCRIPTION, warn=_warn)())
    except (InputError, ValueNotAllowed) as error:
        return _fail(_spoken(sentence(error), words), 2)
    except (FileFormatError, OutputError, SimulationError) as error:
        return _fail(_spoken(sentence(error), words), 1)
    except BrokenPipeError:  # the reader has closed the output, as in `grokphys … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt as stop:
        number, word = (15, "terminated") if isinstance(stop, interrupts.Terminated) else (2, "interrupted")
        notes = [_spoken(note, words) for note in getattr(stop, "__notes__", [])]
        print("; ".join([f"grokphys: {word}", *notes]), file=sys.stderr)
        return 128 + number
    except OSError as error:
        gone = "" if _has_directory() else "the working directory no longer exists: "
        return _fail(gone + sentence(error), 1)
    except MemoryError as error:
        size = re.search(r"allocate (\S+ \w+)", str(error))
        array = f" for an array of {size[1]}" if size else ""
        return _fail(f"there is not enough memory{array}; use fewer or smaller runs", 1)
    except OverflowError as error:
        return _fail(f"a number is too large; {_first_line(error)}", 2)
    except RecursionError:
        return _fail("the input is nested too deeply", 1)


def _open_closed_streams() -> None:
    """Let what a closed stdout or stderr would show go to the null device, also what C libraries write.

    Otherwise the next file that is opened would take the number of the stream, and messages its content.
    """
    for number, name in ((0, ""), (1, "stdout"), (2, "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
        if name and getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - until the process ends


def _version() -> str:
    from physics.trajectory.provenance import code_version  # h5py takes a while to import

    return code_version()


def _has_directory() -> bool:
    try:
        Path.cwd()
    except OSError:
        return False
    return True


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "")


def _spoken(text: str, words: Sequence[str]) -> str:
    """Return a message with the options of the command in place of the arguments of the library."""
    return in_options(text, words[0], COMMANDS[words[0]]) if words and words[0] in COMMANDS else text


def _fail(text: str, status: int) -> int:
    print(f"grokphys: error: {printable(text)}", file=sys.stderr)
    return status


def _warn(text: str) -> None:
    print(f"grokphys: warning: {printable(' '.join(text.splitlines()))}", file=sys.stderr)


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    _warn(str(message))


def command() -> int:
    """Run the command line as a process, and return its exit status.

    A signal that comes after its work ends it without a traceback. Libraries make hundreds of thousands of
    objects, hardly any of which becomes garbage. Python therefore looks for garbage less often than it would
    by itself, and not at all at the end of the process: this takes up to half a second less.
    """
    gc.set_threshold(*COLLECT)
    os.environ["MPLBACKEND"] = "agg"  # a notebook passes on its own, which may not be installed here
    if isinstance(sys.stdout, io.TextIOWrapper):  # file names need not be text
        sys.stdout.reconfigure(errors="backslashreplace")
    status = main()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    gc.freeze()
    return status


if __name__ == "__main__":
    sys.exit(command())
