"""A run of particles that the user may change, and the Python calls that reproduce it bit for bit."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import physics
from grokphys.explorer.films import DASHES, SERIES, Array, Curve, Film, Lines, Panel, Scene, film
from grokphys.explorer.runs import common
from grokphys.explorer.runs.common import History, Run, Start, arguments
from physics.particles.tabulated import PairKernels
from physics.seeds import run_seeds
from physics.system import describe
from physics.theory.operations import class_rule

CIRCLE = 1.2
"""Circle ratio below which tokens form a circle (Musat, Algorithm 1), the default of `physics.is_circle`."""
AT_REST, LOOK_BACK = 1e-4, 10
"""Motion per step, relative to the largest coordinate of all tokens, below which they have settled, and the
smallest number of steps over which it is measured: at rest they still tremble."""


def measured_forces(tokens: int = 17, dim: int = 2, modulus: int | None = None) -> physics.PairForces:
    """Return the particles that move by forces measured on networks, in place of those of Musat.

    Their kernels are those of the finding *force*, fitted to 48 networks (constant attention, 17 tokens in
    the plane, weight decay 1, steps 100 and 300) whose layers had converged on each embedding;
    ``docs/live.py`` makes the file. Other numbers of tokens and dimensions have the same kernels with the
    weights of `ParticleSystem`. The unit of time, the "pace" of the file, is such that forces on normal
    starts are on average a quarter as large as Musat's at f_a = 2: in steps four times as long, particles
    alternate between places a fifth of their size apart, and at the default step they still tremble.
    """
    tables = json.loads(common.asset("measured_forces.json"))
    pace, fitted = tables.pop("pace"), np.array(physics.ParticleSystem().weights)
    weights = (physics.ParticleSystem(tokens, dim, modulus=modulus).weights / fitted)[::-1]  # same class last
    for name in ("distance", "angle", "jump"):
        tables[name] = (pace * weights * np.transpose(tables[name])).T
    tables["radius"] = pace * np.array(tables["radius"])
    kernels = PairKernels(**tables)
    return physics.PairForces(kernels, tokens, dim, on="pair sums", modulus=modulus, normalise=True)


Law = physics.ParticleSystem | physics.PairForces


@dataclass
class Segment:
    """Steps of a run under one law, after some particles may have been moved by hand.

    Attributes
    ----------
    system : ParticleSystem or PairForces
        The law.
    step_size : float
        Time that passes in one step.
    moved : dict of int to ndarray of float64, shape (dim,)
        Places of the particles that were moved by hand before the first step, by their numbers.
    steps : int, default 0
        Number of steps.
    """

    system: Law
    step_size: float
    moved: dict[int, Array] = field(default_factory=dict)
    steps: int = 0


class ParticleRun(Run):
    """A run of particles, whose steps are those of `physics.simulate`, bit for bit.

    A change of the law, or of a particle's position, after a step begins a new segment, for which `python`
    writes a separate call.

    Parameters
    ----------
    system : ParticleSystem or PairForces
        Law of the particles, those of `measured_forces` if they are pair forces.
    step_size : float
        Time that passes in one step.
    start : Start
        Initial positions.
    """

    positions_name = "positions"
    observables = ("circle_ratio", "grid_imperfections")

    def __init__(self, system: Law, step_size: float, start: Start) -> None:
        self.first = start
        if start.positions is None:
            self._begin = system.start(np.random.default_rng(run_seeds(start.seed, 1)[0]))
        else:
            self._begin = start.positions
        self.history = History()
        self.segments = [Segment(system, step_size)]
        self.reset()

    @property
    def system(self) -> Law:
        """Law under which the next step is taken."""
        return self.segments[-1].system

    @property
    def operation(self) -> physics.Operation:
        """Operation that gives each pair its class."""
        return class_rule(self.system.tokens, self.system.modulus)

    @property
    def step(self) -> int:
        """Total number of steps taken."""
        return sum(segment.steps for segment in self.segments)

    def reset(self) -> None:
        """Return to the start, with the current law and without any move by hand."""
        self.segments = [replace(self.segments[-1], moved={}, steps=0)]
        self.positions = self._begin.copy()
        self.history.clear()
        self._measure()

    def advance(self, steps: int) -> None:
        """Take steps.

        Raises
        ------
        SimulationError
            If the run blows up; it stays as it was before these steps.
        """
        moved = self.positions[None].copy()
        self.system.advance(moved, self.segments[-1].step_size, steps)
        self.require_bounded(moved, self.step + steps, self._advice)
        self.positions = moved[0]
        self.segments[-1].steps += steps
        self._measure()

    def _advice(self) -> str:
        safe = self.system.largest_step_size(self.positions[None])
        return f"make the step size smaller than {safe:.2g}, or the constants of the forces smaller"

    def velocity(self, positions: Array) -> Array:
        """Return the velocities (tokens, dim) that the present law gives at some positions (tokens, dim)."""
        return np.asarray(self.system.velocity(np.asarray(positions, np.float64)[None])[0])

    def change(self, system: Law, step_size: float) -> None:
        """Change law and step size from now on; the numbers of tokens and dimensions must stay."""
        if (system, step_size) == (self.system, self.segments[-1].step_size):
            return
        self._open().system, self.segments[-1].step_size = system, step_size
        self._measure()

    def move(self, token: int, place: Array) -> None:
        """Move the particle with the number `token` by hand to a `place` (dim,)."""
        self._open().moved[token] = np.array(place, np.float64)
        self.positions = self.positions.copy()
        self.positions[token] = place
        self._measure()

    @property
    def motion(self) -> str:
        """A sentence on whether the particles have settled, or "" within `LOOK_BACK` steps of a change."""
        steps, begun = self.history.steps, self.step - self.segments[-1].steps
        early = np.flatnonzero((steps >= begun) & (steps <= self.step - LOOK_BACK))
        if not len(early):
            return ""
        before = self.history.frame(early[-1])["positions"]
        drift = np.abs(self.positions - before).max() / (self.step - steps[early[-1]])
        return "Settled." if drift < AT_REST * np.abs(self.positions).max() else "Still moving."

    def law(self, step: int) -> Law:
        """Return the law under which the step after `step` was taken, or else the present law."""
        taken = 0
        for segment in self.segments:
            taken += segment.steps
            if step < taken:
                return segment.system
        return self.system

    def python(self) -> str:
        """Return a program that reproduces this run, with the present state in the start's variable.

        The variable is usually `E`. The program also prints circle ratio and grid imperfections.
        """
        first, modulus = self.first, self.system.modulus
        calls = "\n".join(self.calls())
        return common.program(
            "particles", given=bool(first.lines), calls=calls, name=first.name, modulus=modulus
        )

    def calls(self) -> list[str]:
        """Return the lines of Python after which the start's variable, usually `E`, is the present state."""
        name, lines = self.first.name, list(self.first.lines)
        drawn, known = f"seed={self.first.seed}", f"initial={name}"
        begin = known if lines else drawn
        for segment in self.segments:
            if segment.moved and begin == drawn:
                lines.append(f"{name} = {_simulate(segment, begin)}.initial[0].copy()")
                begin = known
            for token, place in segment.moved.items():
                lines.append(f"{name}[{token}] = {place.tolist()!r}")
            if segment.steps:
                lines.append(f"{name} = {_simulate(segment, begin)}.final[0].copy()")
                begin = known
        if begin == drawn:
            lines.append(f"{name} = {_simulate(self.segments[-1], begin)}.initial[0]")
        return lines

    def parameters(self) -> dict[str, Any]:
        """Return the last law, its step size and the start."""
        return {
            "system": describe(self.system),
            "step_size": self.segments[-1].step_size,
            "seed": self.first.seed,
            "initial": "drawn" if self.first.positions is None else "given",
        }

    def _open(self) -> Segment:
        """Return the last segment, after adding one if it has steps, so that a change can be recorded."""
        last = self.segments[-1]
        if last.steps:
            self.segments.append(Segment(last.system, last.step_size))
        return self.segments[-1]

    def _measure(self) -> None:
        """Keep the present state and its measures in the history."""
        E = self.positions
        self.history.append(
            self.step,
            positions=E,
            time=sum(segment.steps * segment.step_size for segment in self.segments),
            circle_ratio=physics.circle_ratio(E),
            grid_imperfections=physics.grid_imperfections(E, modulus=self.system.modulus),
        )


def _simulate(segment: Segment, begin: str) -> str:
    """Return a call of `physics.simulate` for a segment; `begin` is its argument for initial positions.

    A segment without steps gets one step, because only the initial positions are read from the result.
    """
    usual = segment.step_size == segment.system.default_step_size
    size = {} if usual else {"step_size": segment.step_size}
    options = arguments(steps=max(segment.steps, 1), **size)
    if isinstance(law := segment.system, physics.PairForces):
        made = f"measured_forces({arguments(tokens=law.tokens, dim=law.dim, modulus=law.modulus)})"
    else:
        made = common.constructed("physics", law)
    return f"physics.simulate({made}, {options}, {begin})"


# -- what is shown -----------------------------------------------------------------------------------------

STARTS = {
    "particles": ("Particles", "Pair sums, by class"),
    "second start": ("Second start", "Second start: pair sums, by class"),
}
"""Titles of the figures of each start."""
MEASURES: dict[str, dict[str, Any]] = {
    "circle_ratio": {"title": f"Circle ratio (circle below {CIRCLE})", "log": "y", "level": CIRCLE},
    "grid_imperfections": {"title": "Grid imperfections", "whole": 6},
}
"""Figures of the measures of a frame, by their names."""
ROWS = (*STARTS, *(f"{name} sums" for name in STARTS)), tuple(MEASURES)
"""Names of the figures, so that two starts stand side by side above their pair sums."""
Measures = Mapping[str, Mapping[str, tuple[Any, Any]]]
"""Steps and values of the circle ratio and of the imperfections, for each start."""


def particle_panels(
    starts: Mapping[str, tuple[Array, Array]], frame: int, operation: physics.Operation, **marks: Any
) -> dict[str, Panel]:
    """Return the panels of the particles and of their pair sums.

    Parameters
    ----------
    starts : mapping of str to pair of ndarray
        Positions (frames, tokens, dim) of the "particles" and perhaps of a "second start", and the axes
        (2, dim) of the plane on which they are shown.
    frame : int
        The frame that is shown.
    operation : Operation
        Operation that gives each pair its class.
    **marks
        Fields of `Tokens` for the first start.
    """
    task, shown = (operation.samples, operation.label), dict[str, Panel]()
    for name, (E, axes) in starts.items():
        more = {} if shown else {"hint": "drag to move", **marks}
        shown |= common.token_panels(name, STARTS[name], E, axes, frame, task, **more)
    return shown


def measure_panels(measures: Measures, now: float | None = None) -> dict[str, Panel]:
    """Return the panels of `measures` against steps, with a line at the step `now`."""
    shown: dict[str, Panel] = {}
    for name, starts in measures.items():
        curves = [
            Curve(*values, color, dash, start if len(starts) > 1 else "", start if len(starts) > 1 else "")
            for (start, values), color, dash in zip(starts.items(), SERIES, DASHES, strict=False)
        ]
        shown[name] = Lines(curves=curves, now=now, **MEASURES[name])
    return shown


def particle_film(
    trajectory: physics.Trajectory,
    *,
    operation: physics.Operation | None = None,
    plane: str = "axes 1, 2",
    second: physics.Trajectory | None = None,
    arrows: Callable[[int], Array] | None = None,
) -> Film:
    """Return a film of the first run of particles: their positions, their pair sums, and two measures.

    Parameters
    ----------
    trajectory : Trajectory
        Trajectory to film. Its observables circle_ratio and grid_imperfections are drawn below the particles,
        if they are recorded.
    operation : Operation, optional
        Operation that gives each pair its class; by default addition modulo the number of tokens.
    plane : str, default "axes 1, 2"
        Name of the plane, one of `planes`; the last frame determines its axes.
    second : Trajectory, optional
        Trajectory from another start, which is drawn next to the first, at the same or the next recorded
        step. It must have the observables that `trajectory` has.
    arrows : callable, optional
        Function of the number of a frame that returns arrows (tokens, dim) of the first run.
    """
    operation, steps = operation or physics.Operation(trajectory.tokens, trajectory.tokens), trajectory.steps
    runs = {"particles": trajectory} | ({} if second is None else {"second start": second})
    starts: dict[str, tuple[Array, Array]] = {}
    for name, run in runs.items():
        frames = np.searchsorted(run.steps, steps).clip(max=run.frames - 1)
        E = run.positions[0, frames].astype(np.float64)
        starts[name] = E, common.plane_axes(run.positions[0, -1], plane)
    measures = {
        measure: {name: (run.steps, run.observables[measure][0]) for name, run in runs.items()}
        for measure in MEASURES
        if measure in trajectory.observables
    }

    def scene(frame: int) -> Scene:
        pointed = None if arrows is None else arrows(frame) @ starts["particles"][1].T
        shown = particle_panels(starts, frame, operation, arrows=pointed)
        return f"step {steps[frame]}", shown | measure_panels(measures, steps[frame])

    size = (8.0 if second is None else 14.0, 5.4 if measures else 4.2)
    return film(scene, trajectory.frames, ROWS, size, (3, 1))
