"""A run of particles that the user may change, and the Python calls that reproduce it bit for bit."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from grokphys.explorer.runs import verdicts
from grokphys.explorer.runs.history import History
from grokphys.explorer.runs.scripts import arguments, constructed
from grokphys.explorer.runs.starts import Start
from physics.errors import InputError, SimulationError
from physics.particles.structures import circle_ratio, grid_imperfections, is_circle
from physics.particles.system import ParticleSystem
from physics.seeds import run_seeds
from physics.trajectory import Trajectory
from physics.trajectory.provenance import fields

Array = NDArray[np.float64]
Move = tuple[int, int, list[float]]
"""Step, number and place (dim,) of a particle that was moved by hand."""


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
        self._history = History()
        self.segments = [Segment(system, step_size)]
        self.reset()

    @property
    def history(self) -> History:
        """Kept frames, of which the last is the present state."""
        self._measure()
        return self._history

    @property
    def motion(self) -> str:
        """A sentence on whether the particles have settled; see `verdicts.motion`."""
        self._measure()
        return self._motion

    @property
    def grid(self) -> bool:
        """Whether the particles are a grid, or have been one and are still nearly one."""
        self._measure()
        return self._grid is not None

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
    def since(self) -> int:
        """Step of the last change of the law or of a particle's position; 0 without a change."""
        return self.step - self.segments[-1].steps

    @property
    def moves(self) -> list[Move]:
        """Step, number and place (dim,) of each particle that was moved by hand, in order of steps."""
        found, step = [], 0
        for segment in self.segments:
            found += [(step, token, place.tolist()) for token, place in segment.moved.items()]
            step += segment.steps
        return found

    def reset(self) -> None:
        """Return to the start, with the current law and without any move by hand."""
        self.segments = [Segment(self.system, self.step_size)]
        self.positions = self._begin.copy()
        self._history.clear()
        self._measured = self._passing = False
        self._motion = ""
        self._grid: int | None = None
        self._coming: list[Move] = []

    def warm(self) -> None:
        """Load the kernels ahead of time, by a step of a copy; importing Numba takes a third of a second."""
        self.system.advance(self.positions[None].copy(), self.step_size, 1)
        grid_imperfections(self.positions, modulus=self.system.modulus)

    def advance(self, steps: int, *, keep: bool = True) -> None:
        """Take steps, and on the way make the moves by hand that `repeat` has announced.

        Parameters
        ----------
        steps : int
            Number of steps.
        keep : bool, default True
            Whether to measure and keep the state afterwards, which takes as long as a step if there are many
            pair sums.

        Raises
        ------
        SimulationError
            If the state overflows; the run stays as it was before these steps, or at the last announced move.
        """
        while self._coming and self._coming[0][0] <= self.step + steps:
            step = self._coming[0][0]
            if ahead := step - self.step:
                steps -= ahead
                self._advance(ahead, keep=keep)
            self._move_next(step)
        if steps:
            self._advance(steps, keep=keep)

    def _advance(self, steps: int, *, keep: bool) -> None:
        if not self._passing:
            self._measure()
        moved = self.positions[None].copy()
        self.system.advance(moved, self.step_size, steps)
        if not np.isfinite(moved).all():
            largest = self.system.largest_step_size(self.positions[None])
            raise SimulationError(
                f"the state overflows after step {self.step}; make the step smaller than {largest:.2g}, or "
                "make the constants of the forces smaller"
            )
        self.positions = moved[0]
        self.segments[-1].steps += steps
        self._measured, self._passing = False, not keep
        if keep:
            self._measure()

    def velocity(self, positions: Array) -> Array:
        """Return the velocities (tokens, dim) that the present law gives at some positions (tokens, dim)."""
        return np.asarray(self.system.velocity(np.asarray(positions, np.float64)[None])[0])

    def change(self, system: ParticleSystem, step_size: float) -> None:
        """Change the law from now on.

        Parameters
        ----------
        system : ParticleSystem
            The new law, with the same numbers of tokens and dimensions.
        step_size : float
            Time that passes in one step.

        Raises
        ------
        InputError
            If the numbers of tokens or dimensions differ.
        """
        if (system.tokens, system.dim) != (self.system.tokens, self.system.dim):
            was, now = ((one.tokens, one.dim) for one in (self.system, system))
            raise InputError(f"system must keep the same tokens and dimensions {was} during a run, got {now}")
        if (system, step_size) == (self.system, self.step_size):
            return
        self._open().system, self.segments[-1].step_size = system, step_size
        self._measured = False

    def move(self, token: int, place: Array) -> None:
        """Move the particle with the number `token` by hand to a `place` (dim,)."""
        self._open().moved[token] = np.array(place, np.float64)
        self.positions = self.positions.copy()
        self.positions[token] = place
        self._measured = self._passing = False

    def repeat(self, moves: Sequence[Move]) -> None:
        """Announce moves by hand, in order of their steps; `advance` makes each at its step."""
        self._coming = list(moves)
        self._move_next(self.step)

    def _move_next(self, step: int) -> None:
        while self._coming and self._coming[0][0] == step:
            _, token, place = self._coming.pop(0)
            self.move(token, np.array(place))

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
        history = self.history
        last = self.segments[-1]
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

    def law(self, step: int) -> ParticleSystem:
        """Return the law under which the step after `step` was taken, or else the present law."""
        taken = 0
        for segment in self.segments:
            taken += segment.steps
            if step < taken:
                return segment.system
        return self.system

    def _open(self) -> Segment:
        """Return the last segment, after adding one if it has steps, so that a change can be recorded."""
        last = self.segments[-1]
        if last.steps:
            self.segments.append(Segment(last.system, last.step_size))
        return self.segments[-1]

    def _measure(self) -> None:
        """Measure the present state and keep it in the history, unless this has been done."""
        if self._measured:
            return
        E, system = self.positions, self.system
        self._history.append(
            self.step,
            positions=E,
            time=sum(segment.steps * segment.step_size for segment in self.segments),
            circle_ratio=circle_ratio(E),
            imperfections=grid_imperfections(E, modulus=system.modulus),
        )
        self._grid = verdicts.gridded(
            self._grid,
            self.step,
            self._history.last["imperfections"],
            len(E),
            (verdicts.GRID, verdicts.NO_GRID),
        )
        self._motion = verdicts.motion(
            self._history,
            "positions",
            self._motion,
            since=self.since,
            stride=lambda: self.step_size * float(np.abs(self.velocity(E)).max()),
            number="circle_ratio" if is_circle(E) else "",
        )
        self._measured = True


def _simulate(segment: Segment, begin: str) -> str:
    """Return a call of `physics.simulate` for a segment; `begin` is its argument for initial positions.

    A segment without steps gets one step, because only the initial positions are read from the result.
    """
    usual = segment.step_size == segment.system.default_step_size
    size = {} if usual else {"step_size": segment.step_size}
    options = arguments(steps=max(segment.steps, 1), **size)
    return f"physics.simulate({constructed('physics', segment.system)}, {options}, {begin})"
