"""`simulate`: validate, step, record."""

import contextlib
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from physics.checks import choice, finite_array, number, whole_number
from physics.errors import InputError, SimulationError
from physics.particles.system import ParticleSystem
from physics.seeds import Seed, describe_seed, parent_seed, run_seeds
from physics.trajectory import Trajectory
from physics.trajectory.layout import Layout, measured_types
from physics.trajectory.provenance import fields, plain
from physics.trajectory.recording import recorder, require_memory

Array = NDArray[np.float64]


class System(Protocol):
    """What `simulate` needs of a system: any object with these members.

    The trajectory says how it was made: it stores the fields of a dataclass, and of another object the public
    attributes that JSON can hold. A system may also have

    * a method ``observables(positions)``, which returns {name: values (runs, ...)} for positions (runs,
      tokens, dim); `simulate` records them with every frame;
    * a property ``measures``, {name: function of positions, with values (runs, ...)}, for what is recorded
      on request;
    * a method ``largest_step_size(positions)``, what to try where a step overflows.
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

    def start(self, generator: np.random.Generator) -> Array:
        """Draw a start (tokens, dim)."""

    def advance(self, positions: Array, step_size: float, steps: int) -> Array | None:
        """Move `positions` (runs, tokens, dim) by `steps` steps: in place, or return where they are then."""


def simulate(
    system: System | None = None,
    *,
    steps: int = 100,
    step_size: float | None = None,
    runs: int = 1,
    record_every: int = 1,
    observables: Sequence[str] = (),
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
    observables : sequence of str, default ()
        What to measure at every frame besides what the system always records: names in `system.measures`. Of
        particles, "circle_ratio", "grid_imperfections", "mean_force" and "potential".
    seed : int or numpy.random.SeedSequence, default 0
        Run k starts from the k-th child of the seed, whatever the number of runs.
    first_run : int, default 0
        The ensemble holds the runs `first_run … first_run + runs - 1` of the seed.
    initial : array_like, shape (tokens, dim) or (runs, tokens, dim), optional
        Start from here instead; recorded as it came.
    out : path, optional
        Stream to this file: to ``out.partial`` while the run goes on, which can be looked at
        (`Trajectory.open`, `Trajectory.refresh`). See `Trajectory.save` for what is refused.
    overwrite : bool, default False
        Replace `out`, and an unfinished ``out.partial``, if they exist.
    resume : bool, default False
        Go on from the last frame of an unfinished ``out.partial`` of the same configuration, to the same bits
        that the undisturbed run would have had. A run that is complete already is returned as it is.
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
        If an argument is not of that kind, or the system returns a start, or positions, of another shape or
        not of real numbers; nothing is written then, unless it moved as it should before.
    OutputError
        If `out` exists or cannot be written.
    SimulationError
        If the state overflows, or an adaptive integrator gives up; what was recorded stays. The message names
        the step, and a size to try.
    """
    system = ParticleSystem() if system is None else system
    tokens, dim = _size(system, initial)
    steps = whole_number("steps", steps, 1)
    runs = whole_number("runs", runs, 1)
    record_every = whole_number("record_every", record_every, 1)
    if step_size is None and not hasattr(system, "default_step_size"):
        raise InputError(f"step_size must be given for {_name(system)}, which has no default_step_size")
    step_size = number("step_size", system.default_step_size if step_size is None else step_size, above=0.0)
    measures = _measures(system, observables)
    parent_seed(seed)
    first_run = whole_number("first_run", first_run, 0)
    state = 8 * tokens * dim
    require_memory(f"{runs} runs", 4 * runs * state, "simulate them in shards, with first_run")
    positions = _starts(system, (tokens, dim), runs, seed, first_run, initial)

    frames = -(-steps // record_every) + 1
    parameters = {
        "program": "physics.simulate",
        "system": {"type": _name(system), **_described(system)},
        "steps": steps,
        "step_size": step_size,
        "runs": len(positions),
        "record_every": record_every,
        "observables": list(measures),
        "seed": describe_seed(seed),
        "first_run": first_run,
        "initial": "drawn" if initial is None else "given",
    }

    def measure(positions: Array) -> dict[str, NDArray[Any]]:
        always: dict[str, NDArray[Any]] = getattr(system, "observables", _nothing)(positions)
        return always | {name: function(positions) for name, function in measures.items()}

    measured = {name: np.asarray(values) for name, values in measure(positions).items()}
    for name, values in measured.items():
        if values.shape[:1] != (len(positions),):
            raise InputError(
                f"observable {name!r} of {_name(system)} must have the shape ({len(positions)}, ...), with a "
                f"row for each run, got {values.shape}"
            )
    layout = Layout(len(positions), tokens, dim, "float64", frames, measured_types(measured))
    with recorder(out, layout, parameters, overwrite=overwrite, resume=resume) as record:
        at = 0
        if record.frames:
            if not np.array_equal(record.frame(0), positions):
                raise InputError("initial is not the start of the unfinished run; it is not resumed")
            at = record.last_step
            positions = record.frame(-1)
        with tqdm(
            total=steps, initial=at, unit="step", desc="simulate", disable=None if progress else True
        ) as bar:
            while at < steps:
                step = min(at - at % record_every + record_every, steps)
                kept = f"The frames up to step {at} are kept{record.where}"
                before = positions.copy()
                try:
                    _advance(system, positions, step_size, step - at)
                except SimulationError as error:
                    raise SimulationError(f"between step {at} and step {step}, {error}. {kept}") from None
                finally:  # the start is kept whatever comes, but not of a system that cannot be recorded
                    if not record.frames and not isinstance(sys.exception(), InputError):
                        record.append(0, 0.0, before, **measure(before))
                if not np.isfinite(positions).all():
                    what = _overflow(system, before, step_size, at, step)
                    raise SimulationError(f"{what}. {kept}")
                bar.update(step - at)
                at = step
                record.append(at, at * step_size, positions, **measure(positions))
    return record.result()


def _size(system: Any, initial: Any) -> tuple[int, int]:
    """Tokens and dimensions of what `simulate` can move; anything else is refused."""
    if isinstance(system, type) or not hasattr(system, "advance"):
        got = f"the class {system.__name__}" if isinstance(system, type) else _name(system)
        raise InputError(f"system must be a system such as ParticleSystem(), got {got}")
    for name in ("tokens", "dim", *(("start",) if initial is None else ())):
        if not hasattr(system, name):
            raise InputError(f"system must have {name}, and {_name(system)} has not")
    return (
        whole_number(f"tokens of {_name(system)}", system.tokens, 1),
        whole_number(f"dim of {_name(system)}", system.dim, 1),
    )


def _described(system: Any) -> Mapping[str, Any]:
    """What a file says of a system."""
    if is_dataclass(system):
        return fields(system)
    described = {}
    for name, value in getattr(system, "__dict__", {}).items():
        with contextlib.suppress(TypeError, ValueError):
            if not name.startswith("_") and json.dumps(found := plain(value), allow_nan=False):
                described[name] = found
    return described


def _advance(system: System, positions: Array, step_size: float, steps: int) -> None:
    """Move `positions` (runs, tokens, dim) in place, also by a system that returns where they are then."""
    moved: Any = system.advance(positions, step_size, steps)  # of users' systems it may be anything
    if moved is None or moved is positions:
        return
    what = f"what {_name(system)}.advance returns must be None or real numbers of the shape {positions.shape}"
    try:
        array = np.asarray(moved)
    except ValueError:
        array = np.empty(0, object)
    if array.dtype.kind not in "biuf":
        raise InputError(f"{what}, got {type(moved).__name__} of {array.dtype}")
    if array.shape != positions.shape:
        raise InputError(f"{what}, got {array.shape}")
    positions[:] = array


def _starts(
    system: System, one: tuple[int, int], runs: int, seed: Seed, first_run: int, initial: Any
) -> Array:
    """Return the starts (runs, tokens, dim) of runs of the shape `one`, an array that the run may move."""
    if initial is None:
        what = f"what {_name(system)}.start returns"
        starts = np.empty((runs, *one))
        for run, child in enumerate(run_seeds(seed, runs, first_run)):
            start = finite_array(what, system.start(np.random.default_rng(child)))
            if start.shape != one:
                raise InputError(f"{what} must have the shape {one}, got {start.shape}")
            starts[run] = start
        return starts
    array = finite_array("initial", initial)
    if array.shape == one:
        return np.repeat(array[None], runs, axis=0)
    if array.ndim == 3 and array.shape[1:] == one and runs in (1, len(array)) and len(array):
        return array.copy()
    raise InputError(
        f"initial must have the shape {one} or (runs, {one[0]}, {one[1]}) with runs = {runs}, "
        f"got {array.shape}"
    )


def _measures(system: System, names: Any) -> dict[str, Callable[[Array], NDArray[Any]]]:
    """Return the functions that measure `names`."""
    offered = getattr(system, "measures", {})
    names = (names,) if isinstance(names, str) else tuple(names)
    if names and not offered:
        raise InputError(f"observables must be empty for {_name(system)}, got {', '.join(names)}")
    return {choice("observables", name, tuple(offered)): offered[name] for name in names}


def _overflow(system: System, positions: Array, step_size: float, at: int, end: int) -> str:
    """Say in which step after `at`, where all was well with `positions`, they overflow, and what to try."""
    while True:
        before = positions.copy()
        _advance(system, positions, step_size, 1)
        at += 1
        if at == end or not np.isfinite(positions).all():
            break
    largest = getattr(system, "largest_step_size", lambda _: 0.1 * step_size)(before)
    if not largest > sys.float_info.min:
        return f"the state overflowed in step {at}, and would for any step_size; make the constants smaller"
    return f"the state overflowed in step {at}; try a step_size below {min(largest, step_size):.2g}"


def _name(system: Any) -> str:
    return type(system).__name__


def _nothing(positions: Array) -> dict[str, Array]:
    return {}
