"""View 1: particles that cluster and align (Musat, Sections 5 and 6)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.circles.classes import recorded_operation
from grokphys.explorer import theme
from grokphys.explorer.curves import SERIES, Curve
from grokphys.explorer.films import Film, particle_film
from grokphys.explorer.plots import Curves, SumPlot, TokenPlot
from grokphys.explorer.runs.common import CIRCLE, KINDS, Start, given, plane_axes, planes, shape, start
from grokphys.explorer.runs.particles import ParticleRun
from grokphys.explorer.session import Session
from grokphys.explorer.view import MOST_CHANGES, WAYS, View, choice, modulus, number, replayed, slider, switch
from grokphys.explorer.views.files import FilePanel, labels, opened
from physics.errors import InputError
from physics.particles.structures import circle_ratio, grid_imperfections
from physics.particles.system import ParticleSystem

Array = NDArray[np.float64]
FILE = "from a file"
LAW = ("alignment", "attraction", "repulsion", "softening")
AHEAD = 0.2
"""Time for which arrows show the motion of particles."""
MANY = 600
"""Number of pair sums above which only every third frame of them is drawn during play."""
NUDGE = 0.06
"""Distance by which a key moves a particle, relative to the largest coordinate shown."""


@dataclass(frozen=True)
class Parameters:
    """What can be chosen about a run of particles."""

    alignment: float = slider("alignment fₐ", 2.0, 0, 4, 0.05, role="live")
    attraction: float = slider("attraction gₐ", 1.0, 0, 4, 0.05, role="live")
    repulsion: float = slider("repulsion gᵣ", 1.0, 0, 4, 0.05, role="live")
    softening: float = slider("softening ε", 0.1, 0, 0.5, 0.01, role="live", format="0.00")
    step_size: float = slider("step η", 0.02, 0.001, 0.1, 0.001, role="live", format="0.000")
    modulus: int = modulus("tokens N", role="live")
    tokens: int = slider("tokens N", 17, 3, 64)
    dim: int = slider("dimensions D", 2, 1, 8)
    kind: str = choice("start", [*KINDS, FILE])
    file: str = choice("file", {"": "choose …"})
    file_run: int = number("run", 0, 0, 10**6)
    file_frame: int = number("frame (-1: last)", -1, -1, 10**9)
    seed: int = number("seed", 0, 0, theme.LARGEST_SEED)
    noise: float = slider("noise added to the start", 0.1, 0, 1, 0.01)
    twin: bool = switch("show a second start")
    twin_seed: int = number("seed of the second start", 7, 0, theme.LARGEST_SEED)
    plane: str = choice("plane", ["axes 1, 2"], role="look")
    arrows: bool = switch("show motion as arrows", role="look")


class ParticlesView(View):
    """The view of particles with trails, of their pair sums by class, and of curves of two measures."""

    slug, name = "particles", "Particles"
    Parameters = Parameters
    terms = (
        *("tokens N", "dimensions D", "pair sum", "alignment fₐ", "attraction gₐ", "repulsion gᵣ"),
        *("softening ε", "step η", "modulus", "circle ratio", "imperfections", "arrows"),
    )

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._particles = TokenPlot("Particles (drag to move)")
        self._sums = SumPlot("Pair sums, by class")
        self._beside = TokenPlot("The second start"), SumPlot("Its pair sums, by class")
        title = f"Circle ratio (circle below {CIRCLE})"
        self._ratio = Curves(title, height=170, y_axis_type="log")
        self._ratio.mark(CIRCLE)
        self._imperfections = Curves("Grid imperfections", height=170, whole=6)
        plots = (self._particles, self._sums, *self._beside)
        self._cards = [theme.card(plot.figure) for plot in plots]
        self._files = FilePanel(self, "file", "file_run", "file_frame")
        self._particles.draggable(session, self._dragged, self._drop)
        self._axes: Array | None = None
        self._held: Array | None = None
        self._chosen: int | None = None
        self._twin: ParticleRun | None = None
        self._pointed = False
        self._fresh, self._beat, self._read = True, 0, ""
        self.restart()

    def panel(self) -> Any:
        """Return controls, particles and pair sums, and curves of circle ratio and imperfections."""
        of = self.widgets
        forces = ("alignment fₐ", "attraction gₐ", "repulsion gᵣ", "softening ε")
        controls = [
            theme.heading("Forces", terms=forces),
            *(of[name] for name in LAW),
            theme.heading("Time and classes", terms=("step η", "modulus")),
            *(of["step_size"], of["modulus"]),
            theme.heading("Start", terms=("tokens N", "dimensions D")),
            *(of["tokens"], of["dim"], of["kind"], self._files.panel, of["seed"], of["noise"]),
            *(of["twin"], of["twin_seed"]),
            theme.heading("Display", terms=("plane", "pair sum", "arrows")),
            *(of["plane"], of["arrows"]),
        ]
        curves = (theme.card(curves.figure) for curves in (self._ratio, self._imperfections))
        return theme.stage(controls, theme.grid(*self._cards), theme.grid(*curves))

    # -- the run -------------------------------------------------------------------------------------------

    def made(self, state: Mapping[str, Any]) -> ParticleRun:
        """Return a run from the chosen start, and make a second one if the page shows it."""
        values = self.values
        seed, kind = values.seed, values.kind
        begin = (
            self._from_file() if kind == FILE else start(kind, values.tokens, values.dim, seed, values.noise)
        )
        run = ParticleRun(self._system(), self.values.step_size, begin)
        run.repeat(self._moves(state))
        self._twin = None
        if values.twin:
            of = self.values.tokens, self.values.dim, values.twin_seed, values.noise
            other = start("normal" if kind == FILE else kind, *of)
            self._twin = ParticleRun(self._system(), values.step_size, other)
        return run

    def _from_file(self) -> Start:
        """Return the chosen frame as initial positions; they also set tokens, dimensions and the modulus."""
        values = self.values
        if not values.file:
            raise InputError("file must be a trajectory file to start from, got none; choose or upload one")
        name, trajectory = opened(self.session, values.file)
        E = trajectory.run(values.file_run).frame(values.file_frame)[0]
        tokens, dim = E.shape
        largest = self.widgets["tokens"].end, self.widgets["dim"].end
        if tokens > largest[0] or dim > largest[1]:
            raise InputError(
                f"{name} must have at most {largest[0]} tokens and {largest[1]} dimensions to start from, "
                f"got {tokens} tokens and {dim} dimensions"
            )
        call = f"physics.load({name!r}).run({values.file_run}).frame({values.file_frame})"
        begin = given(E, (f"E = {call}[0].astype(float)",))
        self.set(tokens=tokens, dim=dim)
        if values.file != self._read:  # a file states how its tokens are added, which may be changed then
            self._read = values.file
            operation = recorded_operation(trajectory.parameters, tokens)
            stated = tokens if operation is None else operation.modulus or 2 * tokens - 1
            self.set(modulus=0 if stated == tokens else stated)
        self.offer()
        return begin

    def _moves(self, state: Mapping[str, Any]) -> list[tuple[int, int, list[float]]]:
        """Return the moves of particles by hand in a state, its entry "moves": [step, token, [x, y, …]]."""
        rows, last, dim = state.get("moves", []), replayed(state), self.values.dim
        try:
            moves = [(int(step), int(token), [float(x) for x in place]) for step, token, place in rows]
            steps = [0, *(step for step, _, _ in moves), last]
            right = steps == sorted(steps) and len(moves) <= MOST_CHANGES
            for _, token, place in moves:
                right &= (
                    0 <= token < self.values.tokens and len(place) == dim and bool(np.isfinite(place).all())
                )
        except (TypeError, ValueError, OverflowError):
            right = False
        if not right:
            raise InputError(
                f"moves must be at most {MOST_CHANGES} of [step, token, [{dim} numbers]] with steps up to "
                f"{last} in order and tokens below {self.values.tokens}, got {rows!r:.80}"
            )
        return moves

    def _system(self, values: Mapping[str, Any] | None = None) -> ParticleSystem:
        chosen = values or vars(self.values)
        law = {name: chosen[name] for name in LAW}
        modulus = chosen["modulus"] if chosen["modulus"] > 1 else None
        return ParticleSystem(self.values.tokens, self.values.dim, **law, modulus=modulus)

    def apply(self, values: Mapping[str, Any]) -> None:
        """Let the runs continue by other forces and another step size."""
        for run in filter(None, (self.run, self._twin)):
            run.change(self._system(values), values["step_size"])

    def restart(self, state: Mapping[str, Any] | None = None) -> None:
        """Start again from the initial positions that the widgets describe."""
        of, kind = self.widgets, self.values.kind
        self._files.panel.visible = kind == FILE
        of["noise"].visible, of["seed"].visible = kind in ("circle", "grid"), kind != FILE
        of["tokens"].disabled = of["dim"].disabled = kind == FILE
        of["twin_seed"].visible = self.values.twin
        if kind == FILE and not self.values.file:
            self.session.say("Choose a trajectory file to start from.")
            return
        super().restart(state)
        self._held = self._chosen = None
        self._particles.ring(None)
        names = ("particles", "particles sums", "second start", "second start sums")
        figures = [plot.figure for plot in (self._particles, self._sums)]
        figures += [plot.figure for plot in self._beside] if self._twin else []
        self.figures = dict(zip(names, figures, strict=False))
        for card in self._cards[2:]:
            card.visible = self._twin is not None
        self._fresh = True
        self.show()

    def offer(self) -> None:
        """Offer the planes of the particles' space, and the files of the page."""
        self.offer_options("plane", planes(self.values.dim))
        self.offer_options("file", {"": "choose …"} | labels(self.session.files))

    def advance(self, steps: int) -> None:
        """Take `steps` steps of the simulation, also from the second start if there is one."""
        for run in filter(None, (self.run, self._twin)):
            run.advance(steps)

    def reset(self) -> None:
        """Return to the initial positions, with the present law and without moves by hand."""
        super().reset()
        if self._twin is not None:
            self._twin.reset()

    def forget(self) -> None:
        """Let the next frame be shown without trails."""
        self._fresh = True

    def take(self, path: str) -> bool:
        """Start from an uploaded file."""
        self.offer()
        self.set(kind=FILE, file=path)
        self.restart()
        return True

    # -- what is shown -------------------------------------------------------------------------------------

    @property
    def _positions(self) -> Array:
        """Positions (tokens, dim) of the particles, including one that is being dragged."""
        return np.asarray(self.run.positions if self._held is None else self._held)

    def show(self, *, whole: bool = True) -> None:
        """Move particles, pair sums (if there are many, not in every frame) and arrows."""
        plane, self._beat = self.values.plane, (self._beat + 1) % 3
        self._axes = plane_axes(self._positions, plane, None if self._fresh else self._axes)
        points = self._positions @ self._axes.T
        self._draw(points, self._particles, self._sums, whole)
        if self._twin is not None:
            self._draw(self._twin.positions @ plane_axes(self._twin.positions, plane).T, *self._beside, whole)
        self._fresh = False
        if self.values.arrows or self._pointed:
            self._show_arrows(points)
        if self._chosen is not None:
            self._particles.ring(self._chosen)
        if whole:
            runs = {"first start": self.run} | ({"second start": self._twin} if self._twin else {})
            for curves, measure in ((self._ratio, "circle_ratio"), (self._imperfections, "imperfections")):
                curves.show(
                    Curve(
                        run.history.steps, run.history[measure], SERIES[k], ("solid", "dashed")[k],
                        name if self._twin else "", name if self._twin else "",
                    )
                    for k, (name, run) in enumerate(runs.items())
                )  # fmt: skip

    def _draw(self, points: Array, tokens: TokenPlot, sums: SumPlot, whole: bool) -> None:
        """Show particles at points (tokens, 2) and their pair sums."""
        operation = self.run.system.operation
        added = points[operation.samples].sum(axis=1)
        if self._fresh:
            tokens.begin(points)
            sums.begin(added, operation.samples, operation.label)
            return
        tokens.move(points)
        if whole or len(added) <= MANY or self._beat == 0:
            sums.move(added)

    def _show_arrows(self, points: Array) -> None:
        assert self._axes is not None
        self._pointed = shown = self.values.arrows
        moving = self.run.velocity(self._positions) @ self._axes.T if shown else np.empty((0, 2))
        self._particles.arrows(points if shown else np.empty((0, 2)), AHEAD * moving)

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
        other = shape(twin.positions, int(twin.history.last["imperfections"]))[1]
        return f"First start: {words} Second start: {other} {twin.motion}".strip()

    def film(self) -> Film:
        """Return a `Film` of particles, pair sums and curves, with arrows if the page shows them."""
        kept, run = self.run.trajectory(), self.run
        laws = [run.law(int(step)) for step in kept.steps]
        return particle_film(
            kept,
            operation=run.system.operation,
            plane=self.values.plane,
            second=None if self._twin is None else self._twin.trajectory(),
            arrows=(lambda frame: AHEAD * laws[frame].velocity(kept.positions[:, frame])[0])
            if self.values.arrows
            else None,
        )

    def python(self) -> str:
        """Return Python source that repeats the run as `E`, after a second start (if shown) as `second`."""
        return ("" if self._twin is None else f"{self._twin.python()}second = E\n\n") + self.run.python()

    def state(self) -> dict[str, Any]:
        """Return the state, with moves by hand unless they are too many."""
        return super().state() | ({"moves": self.run.moves} if self.run.moves and not self.lacks else {})

    # -- moves by hand -------------------------------------------------------------------------------------

    def key(self, name: str) -> None:
        """Choose a particle by an arrow key, or move the chosen one a little by Shift and an arrow key."""
        right, up = WAYS.get(name.removeprefix("Shift+"), (0, 0))
        if name in WAYS:
            turn = right - up
            chosen = (-1 if turn > 0 else 0) if self._chosen is None else self._chosen
            self._chosen = (chosen + turn) % self.run.system.tokens
        elif (right or up) and self._chosen is not None and self._axes is not None:
            moved = NUDGE * self._particles.figure.y_range.end * np.array([right, up]) @ self._axes
            self.run.move(self._chosen, self.run.positions[self._chosen] + moved)
        self.show()

    def _dragged(self) -> None:
        """Update everything that depends on the position of the held particle."""
        if not self._particles.held or self._axes is None:
            return
        shown, before = self._particles.points(), self.run.positions @ self._axes.T
        if len(shown) != len(before):
            return
        self._held = self.run.positions + (shown - before) @ self._axes
        self._sums.move(shown[self.run.system.operation.samples].sum(axis=1))
        self._show_arrows(shown)
        self._ratio.end_at(self.run.step, float(circle_ratio(self._held)))
        self._imperfections.end_at(self.run.step, self._imperfect())

    def _drop(self) -> None:
        """Move the particles to where the pointer left them."""
        if self._held is not None:
            for token in np.flatnonzero((self._held != self.run.positions).any(axis=1)):
                self.run.move(int(token), self._held[token])
            self._held = None
        self.show()
