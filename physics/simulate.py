"""The function `simulate`, which moves an ensemble of runs of a system and records the motion."""

import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from physics.checks import number, require_memory, short_text, whole_number
from physics.errors import InputError, SimulationError
from physics.flows import AffineFlow
from physics.hooks import Callback, Progress, check_hooks, goes_on, shown
from physics.seeds import Seed, describe_seed, parent_seed
from physics.system import System, advance, describe, leaps, measured, measures_of, name_of, size_of, starts
from physics.trajectory import Trajectory
from physics.trajectory.header import Layout, named_arrays
from physics.trajectory.provenance import own_code, plain
from physics.trajectory.recording import recorder
from physics.trajectory.schedule import recording_steps
from physics.values import Array

GROWN = 1e9
"""Growth that counts as blowing up: a step moves points this many times the width of the start."""
JUMPY = 0.3
"""Movement in a step, relative to the size of the run, from which normalised points jump about: both as root
mean squares. Musat's particles move by at most 0.25 at the papers' steps, and by 0.5 to 2 from 0.2 on."""


def simulate(
    system: System | None = None,
    *,
    steps: int = 100,
    step_size: float | None = None,
    runs: int = 1,
    record: int | str | Sequence[int] = 1,
    observables: Sequence[str] = (),
    seed: Seed = 0,
    first_run: int = 0,
    initial: Any = None,
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    resume: bool = False,
    callback: Callback | None = None,
    progress: Progress = False,
) -> Trajectory:
    """Simulate an ensemble of runs of a system, and record how their points move.

    Without arguments, this is one run of the particles of Musat (§6): 17 particles in the plane, 100 steps.
    The glossary, ``docs/glossary.md``, explains terms such as token, ensemble and observable.

    Parameters
    ----------
    system : System, optional
        System to simulate, by default `ParticleSystem()`. It may be your own object with the members of
        `physics.System`.
    steps : int, default 100
        Number of steps, at least 1.
    step_size : float, optional
        Length of a step in units of time, greater than 0. By default it is the `default_step_size` of the
        system, which is 0.02 for a `ParticleSystem`.
    runs : int, default 1
        Number of runs R, at least 1. If `initial` holds the positions of several runs, it sets R, and `runs`
        may be left out.
    record : int, str or sequence of int, default 1
        When to record, as in `nets.train`: every k-th step, ``"log:n"`` for about n steps a decade,
        ``"1:100,50"`` for every step up to 100 and then every fiftieth, each with step 0 and the last step;
        or a list of steps, of which step 0 must be the first.
    observables : str or sequence of str, default ()
        What to measure at every frame in addition to what the system always records: names in
        ``system.measures``. A `ParticleSystem` offers "circle_ratio", "grid_imperfections", "mean_force" and
        "potential".
    seed : int or numpy.random.SeedSequence, default 0
        Seed of the initial positions. Run k takes the k-th child of the seed, so its start does not depend on
        the number of runs.
    first_run : int, default 0
        Number of the first run: the ensemble holds the runs ``first_run … first_run + runs - 1`` of the seed.
        A large ensemble can thus be simulated in parts.
    initial : array_like, shape (tokens, dim) or (runs, tokens, dim), optional
        Initial positions to use instead of random ones, the same for all runs or one set for each run. They
        are recorded unchanged.
    out : path, optional
        File to write the trajectory to; by default it is kept in memory. During the run the frames are in
        ``out.partial``, where `load` and `Trajectory.refresh` can read them.
    overwrite : bool, default False
        Whether to replace `out` and an unfinished ``out.partial`` if they exist.
    resume : bool, default False
        Whether to continue an unfinished ``out.partial`` of the same configuration from its last frame; the
        result then has the same bits as an uninterrupted run. If `out` already holds this run, it is
        returned unchanged. If neither file exists, the run starts as usual.
    callback : callable, optional
        Called as ``callback(step, time, positions, observables)`` after each frame that is recorded, with
        copies of its positions (runs, tokens, dim) and of its observables {name: (runs, ...)}. If it raises
        `StopIteration`, the run ends with this frame and counts as complete.
    progress : bool or callable, default False
        Whether to show a progress bar on stderr if that is a terminal. A function is called instead, as
        ``progress(done, total)`` with numbers of steps, after each recorded frame except that of step 0.

    Returns
    -------
    Trajectory
        `positions` (runs, frames, tokens, dim) of float64; `times` are ``steps * step_size``. With `out`, the
        trajectory is read from the file when it is needed.

    Warns
    -----
    UserWarning
        If a step moves points farther than their run is wide, or than 1e9 times its width at the start; of
        systems that normalise after each step, if it moves a run by more than half of its size. The message
        names the first such step, and a smaller `step_size`. Only systems that have `largest_step_size` are
        watched, and those that normalise in a few of the frames only, from step 4 on.

    Raises
    ------
    InputError
        If an argument is invalid, if the system returns positions of a wrong shape or that are not real
        numbers, if its own observables have other names, shapes or types than in the first frame, or if
        `step_size` is missing and the system has no default. If this is noticed before the first step, no
        file is left.
    OutputError
        If `out` or ``out.partial`` exists and neither `overwrite` nor `resume` is given, if another process
        writes the file, or if it cannot be written.
    SimulationError
        If the state overflows; the message names the step, and if possible a smaller step size to try. Also
        if an adaptive integrator cannot continue. Frames that were recorded are kept: in ``out.partial``, or
        as the trajectory ``error.recorded`` if there is no `out`.

    Examples
    --------
    >>> import physics
    >>> system = physics.ParticleSystem(tokens=7, alignment=2.0)
    >>> trajectory = physics.simulate(system, steps=50, runs=4, record=10, observables=["circle_ratio"])
    >>> trajectory.steps.tolist()
    [0, 10, 20, 30, 40, 50]
    >>> trajectory.final.shape, trajectory.observables["circle_ratio"].shape
    ((4, 7, 2), (4, 6))
    """
    if system is None:
        from physics.particles.system import ParticleSystem

        system = ParticleSystem()
    tokens, dim = size_of(system, initial)
    steps = whole_number("steps", steps, 1)
    runs = whole_number("runs", runs, 1)
    schedule = recording_steps(record, steps)
    if schedule[0] or len(schedule) < 2:
        raise InputError(f"record must hold step 0, the start, and a later step, got {short_text(record)}")
    if step_size is None and not hasattr(system, "default_step_size"):
        raise InputError(f"step_size must be given for {name_of(system)}, which has no default_step_size")
    given = getattr(system, "default_step_size", None) if step_size is None else step_size
    step_size = number("step_size", given, above=0.0)
    measures = measures_of(system, observables)
    check_hooks(callback, progress)
    parent_seed(seed)
    first_run = whole_number("first_run", first_run, 0)
    require_memory(f"{runs} runs", 32 * runs * tokens * dim, "simulate them in shards, with first_run")
    positions = starts(system, (tokens, dim), runs, seed, first_run, initial)

    parameters = {
        "program": "physics.simulate",
        "system": describe(system),
        "steps": steps,
        "step_size": step_size,
        "runs": len(positions),
        "record": plain(record),
        "observables": list(measures),
        "seed": describe_seed(seed),
        "first_run": first_run,
        "initial": "drawn" if initial is None else "given",
        **own_code(system),
    }

    found = measured(system, measures, positions)
    types = {name: (v.dtype.str, v.shape[1:]) for name, v in named_arrays("observables", found).items()}
    layout = Layout(len(positions), tokens, dim, "float64", len(schedule), types)
    with recorder(out, layout, parameters, overwrite=overwrite, resume=resume) as log:
        at, advice, width = 0, "", np.ptp(positions, axis=1).max(axis=1)
        far = np.where(width > 0.0, GROWN * width, np.inf)
        watched, normal = hasattr(system, "largest_step_size"), getattr(system, "normalise", False)
        seen = 1 if watched and normal and getattr(system, "integrator", "euler") == "euler" else np.inf
        watched = watched and not normal
        if log.resumed is not None and log.frames:
            if not np.array_equal(log.resumed.initial, positions):
                raise InputError("initial must equal the start of the unfinished run, got other positions")
            at = log.last_step
            positions = log.resumed.final
        with shown(progress, int(schedule[-1]), at, "simulate") as tell:
            for step in map(int, schedule[:0] if log.complete else schedule[schedule > at]):
                kept = f"the frames up to step {at} are kept{log.where}"
                before, first = positions.copy(), not log.frames
                try:
                    advance(system, positions, step_size, step - at)
                except SimulationError as error:
                    raise SimulationError(f"between step {at} and step {step}, {error}; {kept}") from None
                finally:  # frame 0 is kept even if the first steps fail, unless the system is unusable
                    if first and not isinstance(sys.exception(), InputError):
                        log.append(0, 0.0, before, found)
                if first and not goes_on(callback, 0, 0.0, before, found):
                    break
                overflowed = not np.isfinite(positions).all()
                if overflowed or (watched and not advice and leaps(before, positions, step - at, far).any()):
                    last, leap, cure = _replay(system, before, step_size, at, step, far)
                    if overflowed:
                        raise SimulationError(f"the state overflowed in step {last}{advice or cure}; {kept}")
                    if leap:
                        advice = cure  # what went wrong first has made the rest worse
                        warnings.warn(
                            f"step {leap[0]} of size {step_size:g} moved points of run {first_run + leap[1]} "
                            f"farther than {leap[2]}, so that it may blow up{cure}",
                            stacklevel=2,
                        )
                if step >= 4 * seen and not advice:
                    seen, after = step, positions.copy()
                    advance(system, after, step_size, 1)
                    moved = ((after - positions) ** 2).mean(axis=(1, 2))
                    jumpy = np.flatnonzero(moved > JUMPY**2 * positions.var(axis=1).mean(axis=1))
                    if len(jumpy):
                        advice = _cure(system, positions, step_size)
                        warnings.warn(
                            f"steps of size {step_size:g} move the points of {len(jumpy)} of {len(moved)} "
                            f"runs, such as run {first_run + jumpy[0]}, by more than {JUMPY} of their size "
                            f"(seen at step {step}), so that they jump about{advice}",
                            stacklevel=2,
                        )
                at, found = step, measured(system, measures, positions)
                log.append(at, at * step_size, positions, found)
                tell(at)
                if not goes_on(callback, at, at * step_size, positions, found):
                    break
    return log.result()


def _replay(
    system: System, positions: Array, step_size: float, at: int, end: int, far: Array
) -> tuple[int, tuple[int, int, str] | None, str]:
    """Repeat steps `at` + 1 to `end` one by one from `positions`, which are overwritten, or until overflow.

    The result is the last step; the step and the run in which points first leaped, and how far; and a cure.
    """
    leap, unless, cause = None, "", positions
    while at < end and np.isfinite(positions).all():
        before, at = positions.copy(), at + 1
        advance(system, positions, step_size, 1)
        if leap is None:
            cause, leaped = before, leaps(before, positions, 1, far)
            if leaped.any():
                run = int(leaped.argmax())
                grew = not leaps(before, positions, 1, np.inf)[run]
                leap = at, run, f"{GROWN:g} times its width at the start" if grew else "that run is wide"
                unless = ", unless its law itself grows" * grew
    if getattr(type(system), "advance", None) is AffineFlow.advance:
        return at, leap, ", because its law, which is solved exactly, grows without bound; take fewer steps"
    return at, leap, _cure(system, cause, step_size, unless)


def _cure(system: System, positions: Array, step_size: float, unless: str = "") -> str:
    """Return the end of a message on steps from `positions` that are too large: which ones are not."""
    careful = getattr(system, "largest_step_size", lambda _: 0.1 * step_size)(positions)
    if not careful > sys.float_info.min:
        return ", and would for every step_size; make the constants smaller"
    adaptive = ' or integrator="adaptive"' if getattr(system, "integrator", None) == "euler" else ""
    return f"; try a step_size below {min(careful, step_size):.2g}{adaptive}{unless}"
