"""A run of particles that the user may change, and the Python calls that reproduce it bit for bit."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from grokphys.explorer.runs.common import History, Start, arguments, constructed, require_bounded
from physics.errors import InputError
from physics.particles.structures import circle_ratio, grid_imperfections
from physics.particles.system import ParticleSystem
from physics.seeds import run_seeds
from physics.trajectory import Trajectory
from physics.trajectory.provenance import fields

Array = NDArray[np.float64]
Move = tuple[int, int, list[float]]
"""Step, number and place (dim,) of a particle that was moved by hand."""
AT_REST, LOOK_BACK = 1e-4, 10
"""Motion per step, relative to the largest coordinate of all tokens, below which they have settled, and the
smallest number of steps over which it is measured: at rest they still tremble."""


@dataclass
class Segment:
    """Steps of a run under one law, after some particles may have been moved by hand.

    Attributes
    ----------
    system : ParticleSystem
        The law.
    step_size : float
        Time that passes in one step.
    moved : dict of int to ndarray of float64, shape (dim,)
        Places of the particles that were moved by hand before the first step, by their numbers.
    steps : int, default 0
        Number of steps.
    """

    system: ParticleSystem
    step_size: float
    moved: dict[int, Array] = field(default_factory=dict)
    steps: int = 0


class ParticleRun:
    """A run of particles, whose steps are those of `physics.simulate`, bit for bit.

    A change of the law, or of a particle's position, after a step begins a new segment, for which `python`
    writes a separate call.

    Parameters
    ----------
    system : ParticleSystem
        Law of the particles.
    step_size : float
        Time that passes in one step.
    start : Start
        Initial positions.

    Raises
    ------
    InputError
        If the given positions have not the system's numbers of tokens and dimensions.
    """

    def __init__(self, system: ParticleSystem, step_size: float, start: Start) -> None:
        self.first = start
        if start.positions is None:
            self._begin = system.start(np.random.default_rng(run_seeds(start.seed, 1)[0]))
        else:
            self._begin = start.positions
        if self._begin.shape != (system.tokens, system.dim):
            raise InputError(
                f"start must have the shape {(system.tokens, system.dim)}, got {self._begin.shape}"
            )
        self.history = History()
        self.segments = [Segment(system, step_size)]
        self.reset()

    @property
    def system(self) -> ParticleSystem:
        """Law under which the next step is taken."""
        return self.segments[-1].system

    @property
    def step_size(self) -> float:
        """Time that passes in the next step."""
        return self.segments[-1].step_size

    @property
    def step(self) -> int:
        """Total number of steps taken."""
        return sum(segment.steps for segment in self.segments)

    @property
    def moves(self) -> list[Move]:
        """Step, number and place (dim,) of each particle that was moved by hand, in order of steps."""
        moves, step = [], 0
        for segment in self.segments:
            moves += [(step, token, place.tolist()) for token, place in segment.moved.items()]
            step += segment.steps
        return moves

    def reset(self) -> None:
        """Return to the start, with the current law and without any move by hand."""
        self.segments = [Segment(self.system, self.step_size)]
        self.positions = self._begin.copy()
        self.history.clear()
        self._coming: list[Move] = []
        self._measure()

    def advance(self, steps: int) -> None:
        """Take steps, and on the way make the moves by hand that `repeat` has announced.

        Raises
        ------
        SimulationError
            If the run blows up; it stays as it was before these steps, or at the last announced move.
        """
        last = self.step + steps
        for until in [*(move[0] for move in self._coming if move[0] <= last), last]:
            if ahead := until - self.step:
                moved = self.positions[None].copy()
                self.system.advance(moved, self.step_size, ahead)
                require_bounded(moved, self._begin[None], until, self._advice)
                self.positions = moved[0]
                self.segments[-1].steps += ahead
                self._measure()
            self._move_next(until)

    def _advice(self) -> str:
        safe = self.system.largest_step_size(self.positions[None])
        return f"make the step smaller than {safe:.2g}, or the constants of the forces smaller"

    def velocity(self, positions: Array) -> Array:
        """Return the velocities (tokens, dim) that the present law gives at some positions (tokens, dim)."""
        return np.asarray(self.system.velocity(np.asarray(positions, np.float64)[None])[0])

    def change(self, system: ParticleSystem, step_size: float) -> None:
        """Change law and step size from now on; the numbers of tokens and dimensions must stay."""
        if (system.tokens, system.dim) != (self.system.tokens, self.system.dim):
            raise InputError(
                f"system must keep the same tokens and dimensions {(self.system.tokens, self.system.dim)} "
                f"during a run, got {(system.tokens, system.dim)}"
            )
        if (system, step_size) == (self.system, self.step_size):
            return
        self._open().system, self.segments[-1].step_size = system, step_size
        self._measure()

    def move(self, token: int, place: Array) -> None:
        """Move the particle with the number `token` by hand to a `place` (dim,)."""
        self._open().moved[token] = np.array(place, np.float64)
        self.positions = self.positions.copy()
        self.positions[token] = place
        self._measure()

    def repeat(self, moves: Sequence[Move]) -> None:
        """Announce moves by hand, in order of their steps; `advance` makes each at its step."""
        self._coming = list(moves)
        self._move_next(self.step)

    def _move_next(self, step: int) -> None:
        while self._coming and self._coming[0][0] == step:
            _, token, place = self._coming.pop(0)
            self.move(token, np.array(place))

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

    def law(self, step: int) -> ParticleSystem:
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
        imports = ["import numpy as np"] if self.first.lines else []
        name, modulus = self.first.name, self.system.modulus
        apart = "" if modulus is None else f", modulus={modulus}"
        shown = f"physics.circle_ratio({name}), physics.grid_imperfections({name}{apart})"
        said = f'print("circle ratio {{:.3f}}, imperfections {{}}".format({shown}))'
        return "\n".join([*imports, "import physics", "", *self.calls(), said]) + "\n"

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

    def trajectory(self) -> Trajectory:
        """Return the kept frames, with their observables and a program that reproduces the run."""
        history, last = self.history, self.segments[-1]
        return Trajectory(
            history["positions"][None],
            history.steps,
            history["time"],
            observables={
                "circle_ratio": history["circle_ratio"][None],
                "grid_imperfections": history["imperfections"][None].astype(np.float64),
            },
            parameters={
                "program": "grokphys explore",
                "system": {"type": "ParticleSystem", **fields(last.system)},
                "step_size": last.step_size,
                "seed": self.first.seed,
                "initial": "drawn" if self.first.positions is None else "given",
                "python": self.python(),
            },
        )

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
            circle_ratio=circle_ratio(E),
            imperfections=grid_imperfections(E, modulus=self.system.modulus),
        )


def _simulate(segment: Segment, begin: str) -> str:
    """Return a call of `physics.simulate` for a segment; `begin` is its argument for initial positions.

    A segment without steps gets one step, because only the initial positions are read from the result.
    """
    usual = segment.step_size == segment.system.default_step_size
    size = {} if usual else {"step_size": segment.step_size}
    options = arguments(steps=max(segment.steps, 1), **size)
    return f"physics.simulate({constructed('physics', segment.system)}, {options}, {begin})"
