"""View 1: particles that cluster and align (Musat §5-6)."""

from typing import Any

import numpy as np
from bokeh.events import PanEnd, PanStart
from bokeh.models import PointDrawTool
from numpy.typing import NDArray

from grokphys.explorer import theme
from grokphys.explorer.files import FileChooser
from grokphys.explorer.films.export import Film
from grokphys.explorer.films.particles import particle_film
from grokphys.explorer.plots.plane import Curves, SumPlot, TokenPlot
from grokphys.explorer.runs import starts
from grokphys.explorer.runs.particles import ParticleRun
from grokphys.explorer.runs.planes import plane_axes, planes
from grokphys.explorer.session import Session
from grokphys.explorer.views.view import View
from physics.errors import InputError
from physics.particles.system import ParticleSystem

Array = NDArray[np.float64]
FROM_FILE = "file"


class ParticlesView(View):
    """Particles with labels and trails, their pair sums by class, and what becomes of them."""

    slug, name = "particles", "Particles"

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._law = {
            "alignment": theme.slider("alignment f_a", 0, 4, 1.0, 0.05),
            "attraction": theme.slider("attraction g_a", 0, 4, 1.0, 0.05),
            "repulsion": theme.slider("repulsion g_r", 0, 4, 1.0, 0.05),
            "softening": theme.slider("softening ε", 0, 0.5, 0.1, 0.01, format="0.00"),
        }
        self._step_size = theme.slider("step η", 0.001, 0.1, 0.02, 0.001, format="0.000")
        self._modulus = theme.number("modulus (0: the tokens)", 0, 0, 200)
        self._tokens = theme.slider("tokens N", 3, 64, 17)
        self._dim = theme.slider("dimensions D", 1, 8, 2)
        kinds = {kind: kind for kind in starts.KINDS} | {"from a file": FROM_FILE}
        self._kind = theme.chooser("start", kinds)
        self._seed = theme.number("seed", 0, 0, 10**6)
        self._noise = theme.slider("noise of the start", 0, 1, 0.1, 0.01, visible=False)
        self._file = FileChooser(self, self._renew)
        self._plane = theme.chooser("plane", planes(2))
        self._numbers = theme.chooser("classes as", ["colours", "numbers"])

        self._particles = TokenPlot("Particles, drag them")
        self._sums = SumPlot("Pair sums, by class")
        self._ratio = Curves("Circle ratio (circle below 1.2)", ["ratio"], y_axis_type="log")
        self._ratio.mark(1.2)
        self._imperfections = Curves("Grid imperfections", ["imperfections"])
        self._let_drag()
        self._axes: Array | None = None
        self._dragging = False
        self._shown_law: tuple[int, int | None, str] | None = None
        self._run = ParticleRun(self._system(), self._step_size.value, self._begin())
        self._connect()

    def panel(self) -> Any:
        """Controls; particles and pair sums; circle ratio and imperfections."""
        controls = [
            theme.heading("Forces"),
            *self._law.values(),
            theme.heading("Time and classes"),
            self._step_size,
            self._modulus,
            theme.heading("Start"),
            self._tokens,
            self._dim,
            self._kind,
            self._file.panel,
            self._seed,
            self._noise,
            theme.heading("Look"),
            self._plane,
            self._numbers,
        ]
        return theme.stage(
            controls,
            theme.grid(theme.card(self._particles.figure), theme.card(self._sums.figure)),
            theme.grid(theme.card(self._ratio.figure), theme.card(self._imperfections.figure)),
        )

    def advance(self, steps: int) -> None:
        """Take steps of the simulation."""
        self._run.advance(steps)

    def show(self, *, whole: bool = True) -> None:
        """Move particles and pair sums; the curves with the whole updates."""
        E, operation = self._run.positions, self._run.system.operation
        self._axes = plane_axes(E, self._plane.value, self._axes)
        points = E @ self._axes.T
        sums = points[operation.samples].sum(axis=1)
        law = (self._run.system.tokens, self._run.system.modulus, self._plane.value)
        if law != self._shown_law or self._run.step == 0:
            self._shown_law = law
            self._particles.begin(points)
            self._sums.begin(sums, operation.samples, operation.label, int(operation.label.max()) + 1)
        else:
            self._particles.move(points)
            self._sums.move(sums)
        if whole:
            history = self._run.history
            self._ratio.show(history.steps, ratio=history["circle_ratio"])
            self._imperfections.show(history.steps, imperfections=history["imperfections"].astype(float))

    def reset(self) -> None:
        """Go back to the start."""
        self._run.reset()
        self._shown_law = None

    def status(self) -> dict[str, str]:
        """Step, time, circle ratio, imperfections."""
        last = self._run.history.last
        return {
            "step": str(self._run.step),
            "time": f"{last['time']:.2f}",
            "circle ratio": f"{last['circle_ratio']:.3f}",
            "imperfections": str(last["imperfections"]),
        }

    def film(self) -> Film:
        """Particles, pair sums and curves."""
        return particle_film(
            self._run.trajectory(), modulus=self._run.system.modulus, plane=self._plane.value
        )

    # -- what the hand does ------------------------------------------------------------------------------

    def _connect(self) -> None:
        self.connect(lambda _: self._change(), *self._law.values(), self._step_size, self._modulus)
        starting = (self._tokens, self._dim, self._kind, self._seed, self._noise)
        self.connect(lambda _: self._renew(), *starting)
        self.connect(lambda _: self.show(), self._plane)
        self.connect(lambda new: self._sums.show_numbers(new == "numbers"), self._numbers)

    def _system(self) -> ParticleSystem:
        law = {name: widget.value for name, widget in self._law.items()}
        return ParticleSystem(self._tokens.value, self._dim.value, **law, modulus=self._modulus.value or None)

    def _change(self) -> None:
        """Another law holds from here on."""
        self._run.change(self._system(), self._step_size.value)
        self.show()

    def _renew(self) -> None:
        """Begin again from another start."""
        from_file = self._kind.value == FROM_FILE
        self._file.panel.visible = from_file
        self._noise.visible = self._kind.value in ("circle", "grid")
        self._seed.visible = not from_file
        self._tokens.disabled = self._dim.disabled = from_file
        if from_file and self._file.trajectory is None:
            self.session.say("Choose a trajectory file to start from.")
            return
        begin = self._begin()
        self._run = ParticleRun(self._system(), self._step_size.value, begin)
        self.offer_planes(self._plane, self._dim.value)
        self._shown_law = None
        self.show()

    def _begin(self) -> starts.Start:
        """Return the start that is chosen; one from a file sets tokens and dimensions."""
        if self._kind.value != FROM_FILE:
            tokens, dim = self._tokens.value, self._dim.value
            return starts.start(self._kind.value, tokens, dim, self._seed.value, self._noise.value)
        begin = self._file.start()
        tokens, dim = begin.shape or (0, 0)
        if tokens > self._tokens.end or dim > self._dim.end:
            raise InputError(
                f"a start must have at most {self._tokens.end} tokens in {self._dim.end} dimensions, "
                f"got {tokens} in {dim}"
            )
        with self.filling():
            self._tokens.value, self._dim.value = tokens, dim
        return begin

    def _let_drag(self) -> None:
        """Let the pointer move particles; play waits while one is held."""
        plot, react = self._particles.figure, self.session.reaction
        tool = PointDrawTool(renderers=[self._particles.disc], add=False)
        plot.add_tools(tool)
        plot.toolbar.active_drag = tool
        plot.on_event(PanStart, react(lambda _event: self._drag(True)))
        plot.on_event(PanEnd, react(lambda _event: self._drop()))
        self._particles.tokens.on_change("data", lambda _name, _old, _new: self._dragged())

    def _drag(self, dragging: bool) -> None:
        self._dragging = dragging
        self.session.hold(dragging)

    def _dragged(self) -> None:
        """Let the pair sums follow."""
        if not self._dragging:
            return
        points = self._particles.points()
        if len(points) == self._run.system.tokens:
            self._sums.move(points[self._run.system.operation.samples].sum(axis=1))

    def _drop(self) -> None:
        """Put the particles where the pointer left them."""
        assert self._axes is not None
        points, before = self._particles.points(), self._run.positions @ self._axes.T
        if len(points) == len(before):
            for token in np.flatnonzero((points != before).any(axis=1)):
                self._run.move(int(token), self._run.positions[token] + (points - before)[token] @ self._axes)
        self.show()
        self._drag(False)
