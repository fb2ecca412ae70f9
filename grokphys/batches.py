"""Reading of many files in turn, and the columns of a table that say which run a row describes."""

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from grokphys.files import resolve
from grokphys.options import sentence
from grokphys.output import json_text, printable
from grokphys.progress import progress
from physics.trajectory import Trajectory, load

Row = dict[str, Any]
ELSEWHERE = ("program", "seed", "runs", "run_numbers", "per_run")
"""Parameters that other columns of a table state."""
Result = TypeVar("Result")


def read_each(
    patterns: Sequence[str], read: Callable[[Trajectory], Result], failed: list[Path]
) -> Iterator[tuple[Path, Trajectory, Result]]:
    """Open trajectory files one after the other, and read something from each.

    A file that cannot be read is named on stderr, so that one damaged file does not stop the others. Warnings
    of a file begin with its name.

    Parameters
    ----------
    patterns : sequence of str
        Names of files, examples and glob patterns; see `grokphys.files.resolve`.
    read : callable
        Function of a `Trajectory` that returns what the caller needs from it. If it raises a ValueError or an
        OSError, the file counts as one that cannot be read.
    failed : list of Path
        List to which the files that cannot be read are added.

    Yields
    ------
    tuple of Path, Trajectory and object
        The file, its trajectory, and what `read` returned.

    Raises
    ------
    InputError
        If a pattern matches no file, an example does not exist, or no pattern is given.
    FileNotFoundError
        If a file does not exist.
    """
    for path in progress(resolve(patterns), "read", "file"):
        try:
            trajectory = load(path)
            with warnings.catch_warnings(record=True) as warned:
                result = read(trajectory)
        except (ValueError, OSError) as error:
            failed.append(path)
            text = sentence(error)
            place = "" if str(path) in text else f"{path}: "
            advice = "; grokphys import converts it" * ("H5MD file of another program" in text)
            print(f"grokphys: {printable(place + text + advice)}", file=sys.stderr)
            continue
        for warning in warned:
            warnings.warn(f"{path}: {warning.message}", warning.category, stacklevel=2)
        yield path, trajectory, result


def run_columns(path: Path, trajectory: Trajectory, run: int) -> Row:
    """Return columns that name a run in a table, and say how it was made.

    Parameters
    ----------
    path : Path
        File of the run.
    trajectory : Trajectory
        Content of the file.
    run : int
        Place of the run in the file, counted from 0.

    Returns
    -------
    dict of str to object
        File, number of the run in its seed, program, seed as JSON, whether the trajectory is complete,
        numbers of tokens and dimensions, and each parameter except `runs`, `run_numbers` and `per_run` in a
        column such as ``parameter.system.tokens``. Parameters that `per_run` names have the value of the run.
    """
    parameters = trajectory.parameters
    parameters = parameters | {name: parameters[name][run] for name in parameters.get("per_run", ())}
    rest = {name: value for name, value in parameters.items() if name not in ELSEWHERE}
    return {
        "file": str(path),
        "run": int(trajectory.run_numbers[run]),
        "program": parameters.get("program", ""),
        "seed": json_text(parameters.get("seed"), indent=None),
        "complete": trajectory.complete,
        "tokens": trajectory.tokens,
        "dim": trajectory.dim,
        **_flat("parameter", rest),
    }


def _flat(prefix: str, value: Any) -> Row:
    """Return nested parameters as columns such as ``parameter.system.tokens``, and lists as JSON."""
    if isinstance(value, dict):
        return {k: v for name, item in value.items() for k, v in _flat(f"{prefix}.{name}", item).items()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return {prefix: value}
    return {prefix: json_text(value, indent=None)}
