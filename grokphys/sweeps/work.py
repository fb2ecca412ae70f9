"""The work on a pack: find its file, continue or create it, and report the final values of its runs.

A pack is an ensemble of runs of a sweep that one call computes and one trajectory file holds.
"""

import collections
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numba
import numpy as np
from numpy.typing import NDArray

from grokphys.options import sentence
from grokphys.output import put_aside
from grokphys.sweeps.pack import Pack, program, system_of
from physics.errors import (
    FileFormatError,
    InputError,
    InUseError,
    NewerFormatError,
    OutputError,
    SimulationError,
)
from physics.particles.structures import grid_imperfections, is_circle
from physics.trajectory import Trajectory, load

Finals = dict[str, NDArray[np.float64]]
MOST_THREADS = numba.get_num_threads()
"""Number of processor cores that this process may use, which a batch system may limit."""
LARGE = ("gradient", "layers")
"""Beginnings of the names of observables that are large arrays and are not read."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a pack.

    Attributes
    ----------
    status : {"found", "computed", "resumed", "busy", "failed"}
        "found" if the file was complete, "computed" or "resumed" if it has been completed now, "busy" if
        another process works on it, and "failed" after an error.
    finals : dict of str to ndarray of float64, shape (runs,)
        Values of each run that `finals` returns.
    notes : list of str
        Remarks for the user.
    error : str
        Reason of the failure, in a sentence.
    again : bool
        Whether another attempt may succeed.
    """

    status: Literal["found", "computed", "resumed", "busy", "failed"]
    finals: Finals = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    error: str = ""
    again: bool = True


def settle(pack: Pack, directory: Path, threads: int | None = None) -> Outcome:
    """Complete the file of a pack, and report errors of the pack instead of raising them.

    Parameters
    ----------
    pack : Pack
        Runs to compute.
    directory : Path
        Directory of the sweep.
    threads : int, optional
        Number of threads that this process may use; by default all.

    Returns
    -------
    Outcome
        What was done, and the final values of the runs.
    """
    if pack.program != program(pack.kind):
        return Outcome("failed", error="a worker has other code or other libraries than the sweep")
    if threads is not None:
        numba.set_num_threads(min(threads, MOST_THREADS))
    notes: list[str] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            outcome = _settled(pack, directory / pack.name, notes)
        notes += [f"{pack.name}: {warning.message}" for warning in caught]
    except InUseError:
        return Outcome("busy")
    except (InputError, SimulationError) as error:  # another attempt would fail in the same way
        return Outcome("failed", notes=notes, error=str(error), again=False)
    except Exception as error:
        known = isinstance(error, FileFormatError | OSError)
        return Outcome("failed", notes=notes, error=sentence(error) if known else repr(error))
    return outcome


def complete(pack: Pack, path: Path) -> Outcome | None:
    """Return the outcome of a pack from its file alone, or None if that does not exist or is not whole."""
    try:
        return Outcome("found", finals(_opened(path, pack), pack)) if path.exists() else None
    except (FileFormatError, OSError):
        return None


def _settled(pack: Pack, path: Path, notes: list[str]) -> Outcome:
    if path.exists():
        try:
            return Outcome("found", finals(_opened(path, pack, whole=True), pack), notes)
        except NewerFormatError:
            raise
        except FileFormatError as error:
            notes.append(f"{error}; it is now {put_aside(path).name} and is made again")
    parts = [path.with_name(f"{path.name}.{ending}") for ending in ("partial", "checkpoint")]
    resumed = parts[0].exists()
    try:
        return Outcome("resumed" if resumed else "computed", finals(pack.run(path), pack), notes)
    except (OutputError, SimulationError, MemoryError):
        raise
    except Exception as error:  # any error of a damaged file; other errors will occur again
        if not resumed:
            raise
        notes.append(f"{path.name} cannot be resumed ({error}); it starts again")
        for part in parts:
            if part.exists():
                put_aside(part)
    return Outcome("computed", finals(pack.run(path), pack), notes)


def _opened(path: Path, pack: Pack, *, whole: bool = False) -> Trajectory:
    """Open a file, all of it if `whole`; a FileFormatError says if it is damaged or of another pack."""
    trajectory = load(path)
    if not trajectory.complete:
        raise FileFormatError(f"{path} is not complete")
    if not pack.made(trajectory.parameters):
        raise FileFormatError(f"{path} must hold the {len(pack.numbers)} runs of its pack, got other runs")
    if whole:  # which verifies the checksums
        collections.deque(trajectory.blocks(), maxlen=0)
        for values in trajectory.observables.values():
            values[:]
    return trajectory


def finals(trajectory: Trajectory, pack: Pack) -> Finals:
    """Return the observables of each run in the last frame, as they are listed in the index.

    Parameters
    ----------
    trajectory : Trajectory
        Complete runs.
    pack : Pack
        The pack to which they belong.

    Returns
    -------
    dict of str to ndarray of float64, shape (runs,)
        Observables that are single numbers. Particles and networks with constant attention also have "circle"
        (1 or 0) and "grid_imperfections". For a run that has diverged all are NaN, except the status of a
        network and the steps at which it reached thresholds.
    """
    last = {
        name: np.asarray(trajectory.observables[name][:, -1], np.float64)
        for name in trajectory.observables
        if not name.startswith(LARGE) and trajectory.observables[name].ndim == 2
    }
    made = trajectory.parameters.get("model") or trajectory.parameters["system"]
    if made["type"] in ("ConstantAttention", "ParticleSystem"):
        system = system_of(pack.common) if pack.kind == "simulate" else None
        classes = {} if system is None else {"modulus": system.modulus, "group": system.group}
        points = trajectory.final
        sound = np.isfinite(points).all(axis=(1, 2))
        last |= {name: np.full(len(points), np.nan) for name in ("circle", "grid_imperfections")}
        if sound.any():
            last["circle"][sound] = is_circle(points[sound])
            last["grid_imperfections"][sound] = grid_imperfections(points[sound], **classes)
    return last
