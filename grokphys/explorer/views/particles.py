"""View 1: particles that cluster and align (Musat, Sections 5 and 6)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from bokeh.models import Checkbox
from numpy.typing import NDArray

from grokphys.explorer import links, theme
from grokphys.explorer.files import FileChooser
from grokphys.explorer.films.export import Film
from grokphys.explorer.films.particles import particle_film
from grokphys.explorer.plots.measures import MeasureCurves
from grokphys.explorer.plots.plane import SumPlot, TokenPlot
from grokphys.explorer.runs import starts, verdicts
from grokphys.explorer.runs.particles import ParticleRun
from grokphys.explorer.runs.planes import plane_axes, planes
from grokphys.explorer.session import Session
from grokphys.explorer.views import presets
from grokphys.explorer.views.changes import Changes, Sweep
from grokphys.explorer.views.drag import Drag
from grokphys.explorer.views.view import WAYS, View
from physics.errors import InputError
from physics.particles.structures import circle_ratio, grid_imperfections
from physics.particles.system import ParticleSystem

Array = NDArray[np.float64]
FROM_FILE, TWIN = "file", "second start"
AHEAD = 0.2
"""Time for which arrows show the motion of particles."""
MANY = 600
"""Number of pair sums above which only every third frame of them is drawn and kept during play."""
NUDGE = 0.06
"""Distance by which a key moves a particle, relative to the largest coordinate shown."""


class ParticlesView(View):
    """The view of particles with trails, of their pair sums by class, and of curves of two measures."""

    slug, name = "particles", "Particles"
    terms = (
        *("tokens N", "dimensions D", "pair sum", "alignment fₐ", "attraction gₐ", "repulsion gᵣ"),
        *("softening ε", "step η", "modulus", "circle ratio", "imperfections", "arrows"),
    )
    presets = presets.PARTICLES

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._law = {
            "alignment": theme.slider("alignment fₐ", 0, 4, 2.0, 0.05),
            "attraction": theme.slider("attraction gₐ", 0, 4, 1.0, 0.05),
            "repulsion": theme.slider("repulsion gᵣ", 0, 4, 1.0, 0.05),
            "softening": theme.slider("softening ε", 0, 0.5, 0.1, 0.01, format="0.00"),
        }
        sweeps = {"nothing": "", **{widget.title: name for name, widget in self._law.items()}}
        self._sweep = theme.chooser("sweep during play", sweeps)
        self._sweeping, self._beat, self._turn = Sweep(), 0, 0
        self._step_size = theme.slider("step η", 0.001, 0.1, 0.02, 0.001, format="0.000")
        self._modulus = theme.modulus("modulus (0: tokens N)")
        self._tokens = theme.slider("tokens N", 3, 64, 17)
        self._dim = theme.slider("dimensions D", 1, 8, 2)
        kinds = {kind: kind for kind in starts.KINDS} | {"from a file": FROM_FILE}
        self._kind = theme.chooser("start", kinds)
        self._seed = theme.number("seed", 0, 0, theme.LARGEST_SEED)
        self._noise = theme.slider("noise added to the start", 0, 1, 0.1, 0.01, visible=False)
        self._file = FileChooser(self, self._renew)
        self._with_twin = theme.control(Checkbox, "show a second start", active=False)
        self._twin_seed = theme.number("seed of the second start", 7, 0, theme.LARGEST_SEED, visible=False)
        self._plane = theme.chooser("plane", planes(2))
        self._numbers = theme.chooser("show classes as", ["markers", "numbers"])
        self._with_arrows = theme.control(Checkbox, "show motion as arrows", active=False)

        self._particles = TokenPlot("Particles (drag to move)")
        self._sums = SumPlot("Pair sums, by class")
        self._beside: tuple[TokenPlot, SumPlot] | None = None
        self._curves = MeasureCurves()
        self.figures = {
            "tokens": self._particles.figure,
            "sums": self._sums.figure,
            "circle ratio": self._curves.ratio.figure,
            "grid imperfections": self._curves.imperfections.figure,
        }
        self._drag = Drag(session, self._particles, self._dragged, self._drop)
        self.changes = Changes(**self._law, step_size=self._step_size, modulus=self._modulus)
        self._axes: Array | None = None
        self._held: Array | None = None
        self._chosen: int | None = None
        self._shown_law: Any = None
        self._run = self._made(self._begin())
        self._twin: ParticleRun | None = None
        self._connect()
        self.hold(
            **self._law,
            sweep=self._sweep,
            step_size=self._step_size,
            modulus=self._modulus,
            tokens=self._tokens,
            dim=self._dim,
            kind=self._kind,
            seed=self._seed,
            noise=self._noise,
            twin=self._with_twin,
            twin_seed=self._twin_seed,
            plane=self._plane,
            numbers=self._numbers,
            arrows=self._with_arrows,
        )

    def panel(self) -> Any:
        """Return controls, particles and pair sums, and curves of circle ratio and imperfections."""
        forces = ("alignment fₐ", "attraction gₐ", "repulsion gᵣ", "softening ε")
        controls = [
            theme.heading("Forces", terms=forces),
            *self._law.values(),
            self._sweep,
            theme.heading("Time and classes", terms=("step η", "modulus")),
            self._step_size,
            self._modulus,
            theme.heading("Start", terms=("tokens N", "dimensions D")),
            *(self._tokens, self._dim, self._kind, self._file.panel, self._seed, self._noise),
            *(self._with_twin, self._twin_seed),
            theme.heading("Display", terms=("plane", "pair sum", "arrows")),
            *(self._plane, self._numbers, self._with_arrows),
        ]
        self._cards = [theme.card(self._particles.figure), theme.card(self._sums.figure)]
        self._top = theme.grid(*self._cards)
        return theme.stage(
            controls,
            self._top,
            theme.grid(theme.card(self._curves.ratio.figure), theme.card(self._curves.imperfections.figure)),
        )

    def advance(self, steps: int) -> None:
        """Take `steps` steps of the simulation, also from the second start if there is one."""
        self._turn = (self._turn + 1) % 3
        few = len(self._run.system.operation.samples) <= MANY
        self._run.advance(steps, keep=few or self._turn == 0)
        if self._twin is not None:
            self._twin.advance(steps, keep=few or self._turn == 0)

    def show(self, *, whole: bool = True) -> None:
        """Move particles, pair sums (if there are many, not in every frame) and arrows.

        Complete updates also show the curves and, during play, move the slider that is swept.
        """
        E = self._positions
        self._axes = plane_axes(E, self._plane.value, self._axes)
        points = E @ self._axes.T
        law = (self._run.system.tokens, self._run.system.modulus, self._plane.value)
        begins, self._shown_law = law != self._shown_law or self._run.step == 0, law
        self._beat = (self._beat + 1) % 3
        self._draw(points, (self._particles, self._sums), begins, whole)
        if self._twin is not None and self._beside is not None:
            other = self._twin.positions @ plane_axes(self._twin.positions, self._plane.value).T
            self._draw(other, self._beside, begins, whole)
        self._show_arrows(points)
        if self._chosen is not None:
            self._particles.ring(self._chosen)
        if whole:
            self._curves.show(self._run, self._twin)
            if self.session.playing and self._sweep.value:
                with self.filling():
                    self._sweeping.move(self._law[self._sweep.value])
                self._change()

    def _draw(self, points: Array, plots: tuple[TokenPlot, SumPlot], begins: bool, whole: bool) -> None:
        """Show particles at points (tokens, 2) and their pair sums, without trails if the run `begins`."""
        tokens, sums = plots
        operation = self._run.system.operation
        added = points[operation.samples].sum(axis=1)
        (tokens.begin if begins else tokens.move)(points)
        if begins:
            sums.begin(added, operation.samples, operation.label, int(operation.label.max()) + 1)
        elif whole or len(added) <= MANY or self._beat == 0:
            sums.move(added)

    def reset(self) -> None:
        """Return to the initial positions, with the present law and without moves by hand."""
        self.changes.clear()
        self._run.reset()
        if self._twin is not None:
            self._twin.reset()
        self.forget()

    def forget(self) -> None:
        """Remove the trails that lead from earlier frames to the present one."""
        self._shown_law = None

    def status(self) -> dict[str, str]:
        """Return step, time, circle ratio (not of a grid) and imperfections (not of a circle) as texts."""
        last, E, imperfections = self._run.history.last, self._positions, self._imperfect(self._run)
        found, _ = self._shape(self._run, E)
        ratio = {} if found == "grid" else {"circle ratio": f"{circle_ratio(E):.3f}"}
        count = {} if found == "circle" else {"imperfections": str(imperfections)}
        return {"step": str(self._run.step), "time": f"{last['time']:.2f}", **ratio, **count}

    def verdict(self) -> str:
        """Return sentences on the shape of the particles and on whether they have settled, for each start."""
        words = self._sentence(self._run, self._positions)
        if self._twin is None:
            return words
        return f"First start: {words} Second start: {self._sentence(self._twin, self._twin.positions)}"

    def _sentence(self, run: ParticleRun, E: Array) -> str:
        moves = run.motion if self._held is None else ""
        return f"{self._shape(run, E)[1]} {moves}".strip()

    def _shape(self, run: ParticleRun, E: Array) -> tuple[str, str]:
        return verdicts.shape(E, self._imperfect(run), grid=run.grid if self._held is None else None)

    def _imperfect(self, run: ParticleRun) -> int:
        """Return the imperfections of a run; during a drag, those with the particle where it is held."""
        if run is self._run and self._held is not None:
            return int(grid_imperfections(self._held, modulus=run.system.modulus))
        return int(run.history.last["imperfections"])

    def film(self) -> Film:
        """Return a `Film` of particles, pair sums and curves, with arrows if the page shows them."""
        kept, run = self._run.trajectory(), self._run
        laws = [run.law(int(step)) for step in kept.steps]
        return particle_film(
            kept,
            operation=run.system.operation,
            plane=self._plane.value,
            second=None if self._twin is None else self._twin.trajectory(),
            arrows=(lambda frame: AHEAD * laws[frame].velocity(kept.positions[:, frame])[0])
            if self._with_arrows.active
            else None,
        )

    def python(self) -> str:
        """Return Python source that repeats the run as `E`, after a second start (if shown) as `second`."""
        return ("" if self._twin is None else f"{self._twin.python()}second = E\n\n") + self._run.python()

    def state(self) -> dict[str, Any]:
        """Return the widgets' state, the number of steps, and moves by hand unless they are too many."""
        steps = {"step": self._run.step} if self._run.step else {}
        moves = {"moves": self._run.moves} if self._run.moves and self.lacks != links.LACKS else {}
        return {**super().state(), **steps, **moves}

    @property
    def lacks(self) -> str:
        """Sentence on moves by hand, or changes of the law, that are too many for a link; otherwise empty."""
        few = len(self._run.moves) * self._run.system.dim <= links.MOST_MOVED
        return super().lacks if few else links.LACKS

    def offer(self) -> None:
        """Offer the planes of the particles' space."""
        self.offer_planes(self._plane, self._dim.value)

    def renew(self, state: Mapping[str, Any]) -> None:
        """Start again with the values of the widgets, and announce changes and moves by hand of `state`."""
        self._renew()
        self.changes.read(state)
        self.apply(self.changes.first)
        self._run.repeat(links.moved(state, self._run.system.tokens, self._run.system.dim))
        self._write_classes()

    def takes_file(self) -> bool:
        """Choose "from a file" as the start, and return True."""
        with self.filling():
            self._kind.value = FROM_FILE
            self._file.panel.visible, self._noise.visible = True, False
        return True

    def key(self, name: str) -> None:
        """Choose a particle by an arrow key, or move the chosen one a little by Shift and an arrow key."""
        count = self._run.system.tokens
        right, up = WAYS.get(name.removeprefix("Shift+"), (0, 0))
        if name in WAYS:
            turn = right - up
            self._chosen = (turn - (turn > 0) if self._chosen is None else self._chosen + turn) % count
        elif (right or up) and self._chosen is not None and self._axes is not None:
            moved = NUDGE * self._particles.figure.y_range.end * np.array([right, up]) @ self._axes
            self._run.move(self._chosen, self._run.positions[self._chosen] + moved)
        self.show()

    @property
    def _positions(self) -> Array:
        """Positions (tokens, dim) of the particles, including one that is being dragged."""
        return self._run.positions if self._held is None else self._held

    def _show_arrows(self, points: Array) -> None:
        if self._with_arrows.active and self._axes is not None:
            self._particles.arrows(points, AHEAD * self._run.velocity(self._positions) @ self._axes.T)

    # -- interaction ------------------------------------------------------------------------------

    def _connect(self) -> None:
        self.connect(lambda _: self._change(), *self._law.values(), self._step_size, self._modulus)
        starting = (self._tokens, self._dim, self._kind, self._seed, self._noise, self._twin_seed)
        self.connect(lambda _: self._renew(), *starting)
        self.connect(lambda _: self._renew(), self._with_twin, attribute="active")
        self.connect(lambda _: self._point(), self._with_arrows, attribute="active")
        self.connect(lambda _: None, self._sweep)  # the next complete update reads it
        self.connect(lambda _: self.show(), self._plane)
        self.connect(lambda _: self._write_classes(), self._numbers)

    def _system(self, values: Mapping[str, Any]) -> ParticleSystem:
        law = {name: values[name] for name in self._law}
        return ParticleSystem(self._tokens.value, self._dim.value, **law, modulus=values["modulus"] or None)

    def _made(self, begin: starts.Start) -> ParticleRun:
        return ParticleRun(self._system(self.changes.values), self._step_size.value, begin)

    def _change(self) -> None:
        """Let the runs continue by the law of the widgets, and note the change."""
        self.apply(self.changes.values)
        self.changes.note(self._run.step)
        self.show(whole=False)

    def apply(self, values: Mapping[str, Any]) -> None:
        """Let the runs continue by the law and the step size of some values."""
        for run in filter(None, (self._run, self._twin)):
            run.change(self._system(values), values["step_size"])

    def _write_classes(self) -> None:
        """Show classes as markers, or as numbers."""
        for sums in (self._sums, *(self._beside or ())[1:]):
            sums.show_numbers(self._numbers.value == "numbers")

    def _point(self) -> None:
        """Show the motion as arrows, or remove the arrows."""
        self._particles.arrows(np.empty((0, 2)), np.empty((0, 2)))
        self.show()

    def _renew(self) -> None:
        """Start again from the initial positions that the widgets describe."""
        from_file = self._kind.value == FROM_FILE
        self._file.panel.visible = from_file
        self._noise.visible = self._kind.value in ("circle", "grid")
        self._seed.visible = not from_file
        self._tokens.disabled = self._dim.disabled = from_file
        if from_file and self._file.trajectory is None:
            self.session.say("Choose a trajectory file to start from.")
            return
        begin = self._begin()
        if from_file:
            self.session.say("")
        self.changes.clear()
        self._run = self._made(begin)
        self._twin = self._second() if self._with_twin.active else None
        self._twin_seed.visible = self._twin is not None
        if self._twin is not None and self._beside is None:  # the first page does without it
            self._beside = TokenPlot("The second start"), SumPlot("Its pair sums, by class")
            self._cards += [theme.card(plot.figure) for plot in self._beside]
            self._write_classes()
        self.figures = {name: shown for name, shown in self.figures.items() if not name.startswith(TWIN)}
        if self._twin is not None and self._beside is not None:
            self.figures |= {TWIN: self._beside[0].figure, f"{TWIN} sums": self._beside[1].figure}
        self._top.children = self._cards[: 2 if self._twin is None else 4]
        self._held = self._chosen = None
        self._particles.ring(None)
        self._particles.arrows(np.empty((0, 2)), np.empty((0, 2)))
        self.offer()
        self._shown_law = None
        self.show(whole=False)
        self.session.soon(self.show)  # curves can wait for particles, which follow the slider that is dragged

    def _begin(self) -> starts.Start:
        """Return the chosen start; a file also sets the numbers of tokens and dimensions."""
        if self._kind.value != FROM_FILE:
            tokens, dim = self._tokens.value, self._dim.value
            return starts.start(self._kind.value, tokens, dim, self._seed.value, self._noise.value)
        begin = self._file.start()
        tokens, dim = begin.shape or (0, 0)
        if tokens > self._tokens.end or dim > self._dim.end:
            raise InputError(
                f"start must have at most {self._tokens.end} tokens and at most {self._dim.end} dimensions, "
                f"got {tokens} tokens and {dim} dimensions"
            )
        with self.filling():
            self._tokens.value, self._dim.value = tokens, dim
        return begin

    def _second(self) -> ParticleRun:
        kind = "normal" if self._kind.value == FROM_FILE else self._kind.value
        size = self._tokens.value, self._dim.value
        return self._made(starts.start(kind, *size, self._twin_seed.value, self._noise.value))

    def _dragged(self) -> None:
        """Update everything that depends on the position of the held particle."""
        if not self._drag.on or self._axes is None:
            return
        shown, before = self._particles.points(), self._run.positions @ self._axes.T
        if len(shown) != len(before):
            return
        self._held = self._run.positions + (shown - before) @ self._axes
        self._sums.move(shown[self._run.system.operation.samples].sum(axis=1))
        self._show_arrows(shown)
        self._curves.end_at(self._run.step, float(circle_ratio(self._held)), self._imperfect(self._run))

    def _drop(self) -> None:
        """Move the particles to where the pointer left them."""
        if self._held is not None:
            for token in np.flatnonzero((self._held != self._run.positions).any(axis=1)):
                self._run.move(int(token), self._held[token])
            self._held = None
        self.show()
