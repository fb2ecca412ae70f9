"""`grokphys`: one command line.

Exit status: 0 done; 1 a file or a run failed; 2 an option or a value is not allowed; 130 interrupted;
143 terminated; 141 nobody reads the output.
"""

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import tyro

from experiments import commands, interrupts, phases, reading, training
from experiments.animate import animate
from experiments.explore.server import explore
from experiments.options import ValueNotAllowed, sentence
from experiments.sweeps.command import sweep
from physics.errors import FileFormatError, InputError, OutputError, SimulationError

COMMANDS: dict[str, Callable[..., Any]] = {
    "simulate": commands.simulate,
    "train": training.train,
    "analyze": reading.analyze,
    "fit-ode": reading.fit_ode,
    "survival": reading.survival,
    "compare": reading.compare,
    "phases": phases.phases,
    "animate": animate,
    "import": commands.import_,
    "info": reading.info,
    "sweep": sweep,
    "reproduce": commands.reproduce,
    "bench": commands.bench,
    "explore": explore,
    "demo": commands.demo,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status; mistakes of the user end in one sentence on stderr."""
    warnings.showwarning = _show_warning
    try:
        with interrupts.kept(), interrupts.terminates():
            status = tyro.extras.subcommand_cli_from_dict(
                COMMANDS,
                prog="grokphys",
                description="How representations form during training: simulate, train, fit and compare.",
                args=sys.argv[1:] if arguments is None else arguments,
                config=(tyro.conf.OmitArgPrefixes,),
            )
        return int(status)
    except (InputError, ValueNotAllowed) as error:
        return _fail(error, 2)
    except (FileFormatError, OutputError, SimulationError, FileNotFoundError) as error:
        return _fail(error, 1)
    except BrokenPipeError:  # whoever read our output has had enough, as in `grokphys … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt as stop:
        number, word = (15, "terminated") if isinstance(stop, interrupts.Terminated) else (2, "interrupted")
        print("; ".join([f"grokphys: {word}", *getattr(stop, "__notes__", [])]), file=sys.stderr)
        return 128 + number


def _fail(error: Exception, status: int) -> int:
    print(f"grokphys: error: {sentence(error)}", file=sys.stderr)
    return status


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    print(f"grokphys: warning: {message}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
