"""The work on a pack: find its file, continue or create it, and report the final values of its runs.

A pack is an ensemble of runs of a sweep that one call computes and one trajectory file holds.
"""

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import h5py
import numba
import numpy as np
from numpy.typing import NDArray

from grokphys.options import sentence
from grokphys.output import put_aside
from grokphys.sweeps.pack import Pack, program
from physics.errors import (
    FileFormatError,
    InputError,
    InUseError,
    NewerFormatError,
    OutputError,
    SimulationError,
)
from physics.particles.structures import grid_imperfections, is_circle
from physics.particles.system import ParticleSystem
from physics.trajectory import Trajectory, load
from physics.trajectory.locks import claim
from physics.trajectory.provenance import code_version

Finals = dict[str, NDArray[np.float64]]
MOST_THREADS = numba.get_num_threads()
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


def settle(pack: Pack, directory: Path, threads: int | None = None, version: str | None = None) -> Outcome:
    """Complete the file of a pack, and report errors of the pack instead of raising them.

    Parameters
    ----------
    pack : Pack
        Runs to compute.
    directory : Path
        Directory of the sweep.
    threads : int, optional
        Number of threads that this process may use; by default all.
    version : str, optional
        Version that this process must have; see `version_here`. A worker may join after others were checked.

    Returns
    -------
    Outcome
        What was done, and the final values of the runs.
    """
    if version not in (None, version_here()):
        return Outcome("failed", error=f"a worker has GrokPhys {version_here()}, and not {version}")
    if threads is not None:
        numba.set_num_threads(min(threads, MOST_THREADS))
    notes: list[str] = []
    try:
        with claim(directory / f"{pack.name}.pack") as ours, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            outcome = _settled(pack, directory / pack.name, notes) if ours else Outcome("busy")
        notes += [f"{pack.name}: {warning.message}" for warning in caught]
    except InUseError:
        return Outcome("busy")
    except (InputError, SimulationError) as error:  # another attempt would fail in the same way
        return Outcome("failed", notes=notes, error=str(error), again=False)
    except Exception as error:
        known = isinstance(error, FileFormatError | OSError)
        text = sentence(error) if known else f"{type(error).__name__}: {error}"
        return Outcome("failed", notes=notes, error=text)
    return outcome


def version_here() -> str:
    """Return the version of this package, and fingerprints of the code and the libraries that make runs."""
    return f"{code_version()} (code and libraries {program('simulate')}, {program('train')})"


def complete(pack: Pack, path: Path) -> Outcome | None:
    """Return the outcome of a pack from its file alone, or None if that does not exist or is not whole."""
    try:
        return Outcome("found", finals(_opened(path, pack), pack)) if path.exists() else None
    except (FileFormatError, OSError):
        return None


def _settled(pack: Pack, path: Path, notes: list[str]) -> Outcome:
    if path.exists():
        try:
            return Outcome("found", finals(_read_through(path, pack), pack), notes)
        except NewerFormatError:
            raise
        except FileFormatError as error:
            notes.append(f"{error}; it is now {put_aside(path).name} and is made again")
    partial = path.with_name(path.name + ".partial")
    resumed = partial.exists()
    if resumed:
        try:
            pack.run(path)
            return Outcome("resumed", finals(_read_through(path, pack), pack), notes)
        except (OutputError, SimulationError, MemoryError):
            raise
        except Exception as error:  # any error of a damaged file; other errors will occur again
            notes.append(f"{path.name} cannot be resumed ({error}); it starts again")
            for left in (path, partial, path.with_name(path.name + ".checkpoint")):
                if left.exists():
                    put_aside(left)
    return Outcome("computed", finals(pack.run(path), pack), notes)


def _opened(path: Path, pack: Pack) -> Trajectory:
    """Open a file that should be complete; a FileFormatError says if it is not, or is of another pack."""
    trajectory = load(path)
    if not trajectory.complete:
        raise FileFormatError(f"{path} is not complete")
    same = np.array_equal(trajectory.run_numbers, pack.numbers)
    if not (same and pack.made(trajectory.parameters)):
        raise FileFormatError(
            f"{path} must hold the {len(pack.numbers)} runs of its pack, "
            f"got {trajectory.runs} runs or other parameters"
        )
    return trajectory


def _read_through(path: Path, pack: Pack) -> Trajectory:
    """Open a file, and read all of it to verify its checksums; a FileFormatError says if it is damaged."""
    trajectory = _opened(path, pack)
    try:
        with h5py.File(path, "r", locking="best-effort") as file:
            file.visititems(_read_chunks)
    except (OSError, RuntimeError) as error:
        raise FileFormatError(f"{path} is damaged: {error}") from None
    return trajectory


def _read_chunks(_: str, item: Any) -> None:
    """Read all chunks of an item of a file if it is a dataset, which verifies their checksums."""
    if isinstance(item, h5py.Dataset):
        step = item.chunks[0] if item.chunks else max(1, len(item))
        for start in range(0, len(item), step):
            item[start : start + step]


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
    names = [name for name in trajectory.observables if not name.startswith(LARGE)]
    found = {name: trajectory.observables[name][:, -1] for name in names}
    found = {name: np.asarray(values, np.float64) for name, values in found.items() if values.ndim == 1}
    points = trajectory.final
    sound = np.isfinite(points).all(axis=(1, 2))
    rule = _class_rule(pack, trajectory)
    if rule is not None:
        found["circle"] = _where(sound, is_circle, points)
        found["grid_imperfections"] = _where(sound, lambda sets: grid_imperfections(sets, **rule), points)
    return found


def _class_rule(pack: Pack, trajectory: Trajectory) -> dict[str, Any] | None:
    """Return the options of `grid_imperfections` for a pack; None if grids have no meaning for its task."""
    if pack.kind == "train":
        shaped = trajectory.parameters["model"]["type"] == "ConstantAttention" and trajectory.tokens >= 3
        return {} if shaped else None
    system = pack.system
    return {"modulus": system.modulus, "group": system.group} if isinstance(system, ParticleSystem) else None


def _where(sound: NDArray[np.bool_], measure: Any, points: NDArray[Any]) -> NDArray[np.float64]:
    """Return a measure (runs,) of the point sets that are finite (`sound`), and NaN for the others."""
    values = np.full(len(points), np.nan)
    if sound.any():
        values[sound] = measure(points[sound])
    return values
