"""`simulate`: validate, step, record."""

import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from physics.checks import finite_array, number, whole_number
from physics.errors import InputError, SimulationError
from physics.recording import Layout, recorder, require_memory
from physics.seeds import Seed, describe_seed, parent_seed, run_seeds
from physics.systems.particles import ParticleSystem
from physics.trajectory import Trajectory


class System(Protocol):
    """What `simulate` needs of a system: a frozen dataclass with these members.

    A system may also have a method ``observables(positions)``, which returns {name: values (runs, ...)} for
    positions (runs, tokens, dim); `simulate` records them with every frame.
    """

    @property
    def tokens(self) -> int:
        """Number of points."""

    @property
    def dim(self) -> int:
        """Dimension of the space."""

    @property
    def default_step_size(self) -> float:
        """Step size where the caller gives none."""

    def start(self, generator: np.random.Generator) -> NDArray[np.float64]:
        """Draw a start (tokens, dim)."""

    def advance(self, positions: NDArray[np.float64], step_size: float, steps: int) -> None:
        """Move `positions` (runs, tokens, dim) in place by `steps` steps."""


def simulate(
    system: System | None = None,
    *,
    steps: int = 100,
    step_size: float | None = None,
    runs: int = 1,
    record_every: int = 1,
    seed: Seed = 0,
    first_run: int = 0,
    initial: Any = None,
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    resume: bool = False,
    progress: bool = False,
) -> Trajectory:
    """Simulate an ensemble and record how it moves.

    Without arguments this is one run of the paper's particle system (Musat §6): 17 particles in the
    plane, 100 steps.

    Parameters
    ----------
    system : System, optional
        What moves, such as `ParticleSystem()`, the default.
    steps : int, default 100
        Number of steps, at least 1.
    step_size : float, optional
        Length η of a step, greater than 0; the system's own by default (0.02 for particles).
    runs : int, default 1
        Number of runs R, at least 1. One start for all of them where `initial` is a single start.
    record_every : int, default 1
        Frames are kept at step 0, at every multiple of this, and at the last step.
    seed : int or numpy.random.SeedSequence, default 0
        Run k starts from the k-th child of the seed, whatever the number of runs.
    first_run : int, default 0
        The ensemble holds the runs `first_run … first_run + runs - 1` of the seed.
    initial : array_like, shape (tokens, dim) or (runs, tokens, dim), optional
        Start from here instead; recorded as it came.
    out : path, optional
        Stream to this file while running; see `Trajectory.save` for what is refused.
    overwrite : bool, default False
        Replace `out`, and an unfinished ``out.partial``, if they exist.
    resume : bool, default False
        Go on from the last frame of an unfinished ``out.partial`` of the same configuration, to the same bits
        that the undisturbed run would have had.
    progress : bool, default False
        Show a bar on stderr, if that is a terminal.

    Returns
    -------
    Trajectory
        `positions` (runs, frames, tokens, dim) of float64; `times` are ``steps * step_size``. With `out`,
        the trajectory is opened lazily from the file.

    Raises
    ------
    InputError
        If an argument is not of that kind; nothing is written then.
    OutputError
        If `out` exists or cannot be written.
    SimulationError
        If the state overflows; what was recorded stays.
    """
    system = ParticleSystem() if system is None else system
    if not hasattr(system, "advance"):
        raise InputError(f"system must be a system such as ParticleSystem(), got {type(system).__name__}")
    steps = whole_number("steps", steps, 1)
    runs = whole_number("runs", runs, 1)
    record_every = whole_number("record_every", record_every, 1)
    step_size = system.default_step_size if step_size is None else number("step_size", step_size, above=0.0)
    parent_seed(seed)
    first_run = whole_number("first_run", first_run, 0)
    state = 8 * system.tokens * system.dim
    require_memory(f"{runs} runs", 4 * runs * state, "simulate them in shards, with first_run")
    positions = _starts(system, runs, seed, first_run, initial)

    frames = -(-steps // record_every) + 1
    parameters = {
        "program": "physics.simulate",
        "system": {"type": type(system).__name__, **_fields(system)},
        "steps": steps,
        "step_size": step_size,
        "runs": len(positions),
        "record_every": record_every,
        "seed": describe_seed(seed),
        "first_run": first_run,
        "initial": "drawn" if initial is None else "given",
    }
    observables = getattr(system, "observables", _nothing)
    shapes = {name: values.shape[1:] for name, values in observables(positions).items()}
    layout = Layout(len(positions), system.tokens, system.dim, "float64", frames, shapes)
    with recorder(out, layout, parameters, overwrite=overwrite, resume=resume) as record:
        at = 0
        if record.frames:
            if not np.array_equal(record.first_positions(), positions):
                raise InputError("initial is not the start of the unfinished run; it is not resumed")
            at = record.last_step
            positions = record.last_positions()
        else:
            record.append(0, 0.0, positions, **observables(positions))
        with tqdm(
            total=steps, initial=at, unit="step", desc="simulate", disable=None if progress else True
        ) as bar:
            while at < steps:
                step = min(at - at % record_every + record_every, steps)
                system.advance(positions, step_size, step - at)
                if not np.isfinite(positions).all():
                    raise SimulationError(
                        f"the state overflowed between step {at} and step {step}; try a step_size below "
                        f"{step_size:g}. The frames up to step {at} are kept{record.where}"
                    )
                bar.update(step - at)
                at = step
                record.append(at, at * step_size, positions, **observables(positions))
    return record.result()


def _starts(system: System, runs: int, seed: Seed, first_run: int, initial: Any) -> NDArray[np.float64]:
    """Return the starts (runs, tokens, dim), a fresh array that the run may move."""
    if initial is None:
        children = run_seeds(seed, runs, first_run)
        return np.stack([system.start(np.random.default_rng(child)) for child in children])
    array = finite_array("initial", initial)
    one = (system.tokens, system.dim)
    if array.shape == one:
        return np.repeat(array[None], runs, axis=0)
    if array.ndim == 3 and array.shape[1:] == one and runs in (1, len(array)) and len(array):
        return array.copy()
    raise InputError(
        f"initial must have the shape {one} or (runs, {one[0]}, {one[1]}) with runs = {runs}, "
        f"got {array.shape}"
    )


def _nothing(positions: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    return {}


def _fields(system: Any) -> Mapping[str, Any]:
    return {name: _plain(value) for name, value in asdict(system).items()}


def _plain(value: Any) -> Any:
    """Return `value` as JSON holds it: arrays, also those of a dataclass within, become lists."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return value.tolist() if isinstance(value, np.ndarray) else value
