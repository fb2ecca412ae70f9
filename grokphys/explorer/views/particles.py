"""View 1: particles that cluster and align (Musat, Sections 5 and 6)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grokphys.explorer import theme
from grokphys.explorer.films import Film
from grokphys.explorer.panels import Panel
from grokphys.explorer.runs.common import KINDS, plane_axes, planes, shape, start
from grokphys.explorer.runs.particles import (
    ROWS,
    Law,
    ParticleRun,
    measure_panels,
    measured_forces,
    particle_film,
    particle_panels,
)
from grokphys.explorer.session import Session
from grokphys.explorer.view import WAYS, View, choice, modulus, number, slider, switch
from physics.particles.structures import circle_ratio, grid_imperfections
from physics.particles.system import ParticleSystem

Array = NDArray[np.float64]
LAW = ("alignment", "attraction", "repulsion", "softening")
FORCES = ("alignment fₐ", "attraction gₐ", "repulsion gᵣ", "softening ε")
AHEAD = 0.2
"""Time for which arrows show the motion of particles."""
MANY = 600
"""Number of pair sums above which only every third frame of them is drawn during play."""
NUDGE = 0.06
"""Distance by which a key moves a particle, relative to the largest coordinate shown."""


@dataclass(frozen=True)
class Parameters:
    """What can be chosen about a run of particles."""

    forces: str = choice(
        "forces", {"Musat": "of Musat", "measured": "measured on networks"}, role="live",
        heading=("Forces", FORCES),
    )  # fmt: skip
    alignment: float = slider("alignment fₐ", 2.0, 0, 4, 0.05, role="live")
    attraction: float = slider("attraction gₐ", 1.0, 0, 4, 0.05, role="live")
    repulsion: float = slider("repulsion gᵣ", 1.0, 0, 4, 0.05, role="live")
    softening: float = slider("softening ε", 0.1, 0, 0.5, 0.01, role="live", format="0.00")
    step_size: float = slider(
        "step η", 0.02, 0.001, 0.1, 0.001, role="live", format="0.000",
        heading=("Time and classes", ("step η", "modulus")),
    )  # fmt: skip
    modulus: int = modulus("tokens N", role="live")
    tokens: int = slider("tokens N", 17, 3, 64, heading=("Start", ("tokens N", "dimensions D")))
    dim: int = slider("dimensions D", 2, 1, 8)
    kind: str = choice("start", KINDS)
    seed: int = number("seed", 0, 0, theme.LARGEST_SEED)
    noise: float = slider("noise added to the start", 0.1, 0, 1, 0.01)
    twin: bool = switch("show a second start")
    twin_seed: int = number("seed of the second start", 7, 0, theme.LARGEST_SEED)
    plane: str = choice(
        "plane", ["axes 1, 2"], role="look", heading=("Display", ("plane", "pair sum", "arrows"))
    )
    arrows: bool = switch("show motion as arrows", role="look")


class ParticlesView(View):
    """The view of particles with trails, of their pair sums by class, and of curves of two measures."""

    slug, name = "particles", "Particles"
    Parameters = Parameters
    rows = (dict.fromkeys(ROWS[0], 380), dict.fromkeys(ROWS[1], 170))
    terms = (
        *("tokens N", "dimensions D", "pair sum", *FORCES),
        *("step η", "modulus", "circle ratio", "imperfections", "arrows"),
    )

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._axes: Array | None = None
        self._held: Array | None = None
        self._chosen: int | None = None
        self._twin: ParticleRun | None = None
        self._beat = 0
        self.restart()

    def ready(self, name: str, plot: Any) -> None:
        """Let the pointer drag particles."""
        if name == "particles":
            plot.draggable(self.session, self._dragged, self._drop)

    # -- the run -------------------------------------------------------------------------------------------

    def made(self, state: Mapping[str, Any]) -> ParticleRun:
        """Return a run from the chosen start, and make a second one if the page shows it."""
        of = self.values

        def begun(seed: int) -> ParticleRun:
            place = start(of.kind, of.tokens, of.dim, seed, of.noise)
            return ParticleRun(self._system(), of.step_size, place)

        self._held = self._chosen = None
        self._twin = begun(of.twin_seed) if of.twin else None
        return begun(of.seed)

    def _system(self, law: Mapping[str, Any] | None = None) -> Law:
        of = law or vars(self.values)
        forces = {name: of[name] for name in LAW}
        modulus = of["modulus"] if of["modulus"] > 1 else None
        if of["forces"] == "measured":
            return measured_forces(self.values.tokens, self.values.dim, modulus)
        return ParticleSystem(self.values.tokens, self.values.dim, **forces, modulus=modulus)

    def apply(self, law: Mapping[str, Any]) -> None:
        """Let the runs continue by other forces and another step size."""
        self._show_constants()
        for run in filter(None, (self.run, self._twin)):
            run.change(self._system(law), law["step_size"])

    def restart(self, state: Mapping[str, Any] | None = None) -> None:
        """Start again from the initial positions that the widgets describe."""
        self.widgets["noise"].visible = self.values.kind != "normal"
        self.widgets["twin_seed"].visible = self.values.twin
        self._show_constants()
        super().restart(state)

    def _show_constants(self) -> None:
        """Show the constants of Musat's forces unless the forces are measured ones, which have none."""
        for name in LAW:
            self.widgets[name].visible = self.values.forces == "Musat"

    def offer(self) -> None:
        """Offer the planes of the particles' space."""
        self.offer_options("plane", planes(self.values.dim))

    def advance(self, steps: int) -> None:
        """Take `steps` steps of the simulation, also from the second start if there is one."""
        for run in filter(None, (self.run, self._twin)):
            run.advance(steps)

    def reset(self) -> None:
        """Return to the initial positions, with the present law and without moves by hand."""
        super().reset()
        if self._twin is not None:
            self._twin.reset()

    # -- what is shown -------------------------------------------------------------------------------------

    @property
    def _positions(self) -> Array:
        """Positions (tokens, dim) of the particles, including one that is being dragged."""
        return np.asarray(self.run.positions if self._held is None else self._held)

    def panels(self, whole: bool) -> Mapping[str, Panel]:
        """Return the particles and their pair sums (if there are many, not in every frame), and measures."""
        plane, operation, self._beat = self.values.plane, self.run.operation, (self._beat + 1) % 3
        self._axes = plane_axes(self._positions, plane, None if self._fresh else self._axes)
        paths = {"particles": (self._positions @ self._axes.T)[None]}
        runs = {"first start": self.run}
        if self._twin is not None:
            E = runs["second start"] = self._twin
            paths["second start"] = (E.positions @ plane_axes(E.positions, plane).T)[None]
        moving = AHEAD * self.run.velocity(self._positions) @ self._axes.T if self.values.arrows else None
        shown = particle_panels(paths, 0, operation, arrows=moving, chosen=self._chosen)
        if whole:
            return shown | measure_panels(
                {
                    name: {start: (run.history.steps, run.history[name]) for start, run in runs.items()}
                    for name in ROWS[1]
                }
            )
        rests = len(operation.label) > MANY and self._beat != 0 and not self._fresh
        return {name: panel for name, panel in shown.items() if not (rests and name.endswith("sums"))}

    def _imperfect(self) -> int:
        return int(grid_imperfections(self._positions, modulus=self.run.system.modulus))

    def status(self) -> dict[str, str]:
        """Return step, time, circle ratio (not of a grid) and imperfections (not of a circle) as texts."""
        E, imperfections = self._positions, self._imperfect()
        kind, _ = shape(E, imperfections)
        ratio = {} if kind == "grid" else {"circle ratio": f"{circle_ratio(E):.3f}"}
        count = {} if kind == "circle" else {"imperfections": str(imperfections)}
        return {"step": str(self.run.step), "time": f"{self.run.history.last['time']:.2f}", **ratio, **count}

    def verdict(self) -> str:
        """Return sentences on the shape of the particles and on whether they have settled, for each start."""
        moves = self.run.motion if self._held is None else ""
        words = f"{shape(self._positions, self._imperfect())[1]} {moves}".strip()
        if self._twin is None:
            return words
        twin = self._twin
        other = shape(twin.positions, int(twin.history.last["grid_imperfections"]))[1]
        return f"First start: {words} Second start: {other} {twin.motion}".strip()

    def film(self) -> Film:
        """Return a `Film` of particles, pair sums and curves, with arrows if the page shows them."""
        kept, run = self.run.trajectory(), self.run
        laws = [run.law(int(step)) for step in kept.steps]
        return particle_film(
            kept,
            operation=run.operation,
            plane=self.values.plane,
            second=None if self._twin is None else self._twin.trajectory(),
            arrows=(lambda frame: AHEAD * laws[frame].velocity(kept.positions[:, frame])[0])
            if self.values.arrows
            else None,
        )

    def python(self) -> str:
        """Return Python source that repeats the run as `E`, after a second start (if shown) as `second`."""
        return ("" if self._twin is None else f"{self._twin.python()}second = E\n\n") + self.run.python()

    # -- moves by hand -------------------------------------------------------------------------------------

    def key(self, name: str) -> None:
        """Choose a particle by an arrow key, or move the chosen one a little by Shift and an arrow key."""
        right, up = WAYS.get(name.removeprefix("Shift+"), (0, 0))
        if name in WAYS:
            turn = right - up
            chosen = (-1 if turn > 0 else 0) if self._chosen is None else self._chosen
            self._chosen = (chosen + turn) % self.run.system.tokens
        elif (right or up) and self._chosen is not None and self._axes is not None:
            figure = self.plots["particles"].figure
            moved = NUDGE * figure.y_range.end * np.array([right, up]) @ self._axes
            self._move(self._chosen, self.run.positions[self._chosen] + moved)
        self.show()

    def _move(self, token: int, E: Array) -> None:
        self.run.move(token, E)
        self.changed = True

    def _dragged(self) -> None:
        """Update everything that depends on the position of the held particle."""
        plot = self.plots["particles"]
        if not plot.held or self._axes is None:
            return
        shown, before = plot.points(), self.run.positions @ self._axes.T
        if len(shown) != len(before):
            return
        self._held = self.run.positions + (shown - before) @ self._axes
        self.show(whole=False)
        self.plots["circle_ratio"].end_at(self.run.step, float(circle_ratio(self._held)))
        self.plots["grid_imperfections"].end_at(self.run.step, self._imperfect())

    def _drop(self) -> None:
        """Move the particles to where the pointer left them."""
        if self._held is not None:
            for token in np.flatnonzero((self._held != self.run.positions).any(axis=1)):
                self._move(int(token), self._held[token])
            self._held = None
        self.show()
