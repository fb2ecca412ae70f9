"""View 1: particles that cluster and align (Musat, Sections 5 and 6)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import physics
from grokphys.explorer.films import Array, Film, Panel
from grokphys.explorer.runs import particles
from grokphys.explorer.runs.common import KINDS, plane_axes, planes, shape, start
from grokphys.explorer.runs.particles import ParticleRun
from grokphys.explorer.view import LARGEST_SEED, WAYS, View, choice, modulus, number, slider, switch

LAW = ("alignment", "attraction", "repulsion", "softening")
FORCES = ("alignment fₐ", "attraction gₐ", "repulsion gᵣ", "softening ε")
AHEAD = 0.2
"""Time for which arrows show the motion of particles."""
HEIGHT, BOTH = 380, 270
"""Heights of the figures of one start, and of two, which are all in sight."""
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
        "step size η", 0.02, 0.001, 0.1, 0.001, role="live", format="0.000",
        heading=("Time and classes", ("step size η", "modulus")),
    )  # fmt: skip
    modulus: int = modulus("tokens N", role="live")
    tokens: int = slider("tokens N", 17, 3, 64, heading=("Start", ("tokens N", "dimensions D")))
    dim: int = slider("dimensions D", 2, 1, 8)
    kind: str = choice("start", KINDS)
    seed: int = number("seed", 0, 0, LARGEST_SEED)
    noise: float = slider("noise added to the start", 0.1, 0, 1, 0.01)
    twin: bool = switch("show a second start")
    twin_seed: int = number("seed of the second start", 7, 0, LARGEST_SEED)
    plane: str = choice(
        "plane", ["axes 1, 2"], role="look", heading=("Display", ("plane", "pair sum", "arrows"))
    )
    arrows: bool = switch("show motion as arrows", role="look")


class ParticlesView(View):
    """The view of particles with trails, of their pair sums by class, and of curves of two measures."""

    slug, name = "particles", "Particles"
    Parameters = Parameters
    rows = (dict.fromkeys(particles.ROWS[0], HEIGHT), dict.fromkeys(particles.ROWS[1], 170))

    _axes = np.eye(2)
    _held: Array | None = None
    _chosen: int | None = None
    _twin: ParticleRun | None = None

    def ready(self, name: str, plot: Any) -> None:
        """Let the pointer drag particles."""
        if name == "particles":
            plot.draggable(self.session, self._dragged, self._drop)

    # -- the run -------------------------------------------------------------------------------------------

    def made(self, state: Mapping[str, Any]) -> ParticleRun:
        """Return a run from the chosen start, and make a second one if the page shows it."""
        of, law = self.values, self._law()

        def begun(seed: int) -> ParticleRun:
            return ParticleRun(*law, start(of.kind, of.tokens, of.dim, seed, of.noise))

        self._held = self._chosen = None
        self._twin = begun(of.twin_seed) if of.twin else None
        return begun(of.seed)

    def _law(self) -> tuple[particles.Law, float]:
        """Return the law of the particles and the step size."""
        of = self.values
        modulus = of.modulus if of.modulus > 1 else None
        if of.forces == "measured":
            return particles.measured_forces(of.tokens, of.dim, modulus), of.step_size
        forces = {name: getattr(of, name) for name in LAW}
        return physics.ParticleSystem(of.tokens, of.dim, **forces, modulus=modulus), of.step_size

    @property
    def _runs(self) -> list[ParticleRun]:
        """The run and, if there is one, that from the second start."""
        return [self.run] if self._twin is None else [self.run, self._twin]

    def apply(self) -> None:
        """Let the runs continue by other forces and another step size."""
        for run in self._runs:
            run.change(*self._law())

    def offer(self) -> None:
        """Offer the planes of the space and, of the other controls, those that matter."""
        of = self.values
        self.offer_options("plane", planes(of.dim))
        matters = {"noise": of.kind != "normal", "twin_seed": of.twin} | dict.fromkeys(
            LAW, of.forces == "Musat"
        )
        for name, visible in matters.items():
            self.widgets[name].visible = visible

    def advance(self, steps: int) -> None:
        """Take `steps` steps of the simulation, also from the second start if there is one."""
        for run in self._runs:
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
        """Return the particles, their pair sums and, if `whole`, their measures."""
        plane, E = self.values.plane, self._positions
        self._axes = plane_axes(E, plane, None if self._fresh else self._axes)
        starts = {"particles": (E[None], self._axes)}
        if self._twin is not None:
            second = self._twin.positions
            starts["second start"] = second[None], plane_axes(second, plane)
        moving = AHEAD * self.run.velocity(E) @ self._axes.T if self.values.arrows else None
        shown = particles.particle_panels(starts, 0, self.run.operation, arrows=moving, chosen=self._chosen)
        if not whole:
            return shown
        runs = dict(zip(("first start", "second start"), self._runs, strict=False))
        return shown | particles.measure_panels(
            {
                name: {start: (run.history.steps, run.history[name]) for start, run in runs.items()}
                for name in particles.MEASURES
            }
        )

    def show(self, *, whole: bool = True) -> None:
        """Show the particles; two starts have lower figures."""
        super().show(whole=whole)
        for name in particles.ROWS[0]:
            if name in self.plots:
                self.plots[name].figure.height = HEIGHT if self._twin is None else BOTH

    def _imperfect(self) -> int:
        return int(physics.grid_imperfections(self._positions, modulus=self.run.system.modulus))

    def status(self) -> dict[str, str]:
        """Return step, time, circle ratio and imperfections, as texts by their names."""
        return {
            "step": str(self.run.step),
            "time": f"{self.run.history.last['time']:.2f}",
            "circle ratio": f"{physics.circle_ratio(self._positions):.3f}",
            "imperfections": str(self._imperfect()),
        }

    def verdict(self) -> str:
        """Return sentences on the shape of the particles and on whether they have settled, for each start."""
        moves = self.run.motion if self._held is None else ""
        words = f"{shape(self._positions, self._imperfect())} {moves}".strip()
        if self._twin is None:
            return words
        twin = self._twin
        other = shape(twin.positions, int(twin.history.last["grid_imperfections"]))
        return f"First start: {words} Second start: {other} {twin.motion}".strip()

    def film(self) -> Film:
        """Return a `Film` of particles, pair sums and curves, with arrows if the page shows them."""
        kept, run = self.run.trajectory(), self.run
        laws = [run.law(int(step)) for step in kept.steps]
        return particles.particle_film(
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
        elif (right or up) and self._chosen is not None:
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
        if plot.held:
            E = self.run.positions
            self._held = E + (plot.points() - E @ self._axes.T) @ self._axes
            self.show(whole=False)

    def _drop(self) -> None:
        """Move the particles to where the pointer left them."""
        if self._held is not None:
            for token in np.flatnonzero((self._held != self.run.positions).any(axis=1)):
                self._move(int(token), self._held[token])
            self._held = None
        self.show()
