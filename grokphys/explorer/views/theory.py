"""View 3: what a training set determines, and the flow that it drives (Liu §3)."""

from dataclasses import replace
from typing import Any

from bokeh.models import Button, TextInput

from grokphys.explorer import theme
from grokphys.explorer.films.export import Film
from grokphys.explorer.films.films import flow_film
from grokphys.explorer.plots.theory import FlowCurves, PairGrid, ParallelogramPlot
from grokphys.explorer.runs.training_set import FRAMES, LARGEST, TrainingSet
from grokphys.explorer.session import Session
from grokphys.explorer.views.view import FrameView
from physics.errors import InputError
from physics.trajectory import Trajectory


class TheoryView(FrameView):
    """Pairs to click, the parallelograms that they make, and embeddings that move towards them."""

    slug, name = "theory", "Effective theory"

    @classmethod
    def prepare(cls) -> None:
        """Load the kernels, which are compiled where they have never run."""
        for dim in (1, 2):
            chosen = TrainingSet.drawn(4, size=8, dim=dim)
            _ = chosen.measures, chosen.quality, chosen.accuracy, chosen.follows, chosen.diagonals

    def __init__(self, session: Session) -> None:
        super().__init__(session, theme.slider("time, as a frame", 0, FRAMES - 1, 0))
        self._tokens = theme.slider("symbols p", 3, LARGEST, 10)
        self._modulus = theme.number("modulus (0: plain addition)", 0, 0)
        self._dim = theme.chooser("embeddings", {"on a line": 1, "in the plane": 2})
        self._size = theme.slider("pairs drawn at random", 0, 55, 45)
        self._seed = theme.number("seed", 3, 0, 10**6)
        self._pair = theme.control(TextInput, "pair in or out", placeholder="i, j and Enter")
        self._all, self._none = theme.control(Button, "All pairs"), theme.control(Button, "No pair")
        react = session.reaction
        self._grid = PairGrid(react(self._click))
        self._shape = ParallelogramPlot()
        self._embedding = FlowCurves("Embeddings E against time")
        self._quality = FlowCurves("Quality and predicted accuracy, δ = 0.01", ("RQI", "accuracy"))
        self._chosen, self._end = TrainingSet.drawn(10, size=45, seed=3), FRAMES - 1
        self._shown: TrainingSet | None = None
        self.connect(lambda _: self._draw(None), self._tokens, self._modulus)
        self.connect(lambda _: self._draw(self._size.value), self._size, self._seed, self._dim)
        self.connect(self._type, self._pair)
        self._all.on_click(react(lambda _event: self._choose(self._chosen.filled(True))))
        self._none.on_click(react(lambda _event: self._choose(self._chosen.filled(False))))

    def panel(self) -> Any:
        """Controls; pairs and parallelograms with the time; embeddings and quality against time."""
        controls = [
            theme.heading("Task"),
            self._tokens,
            self._modulus,
            self._dim,
            theme.heading("Training set", "Click pairs on the grid. Framed ones follow from the filled."),
            self._size,
            self._seed,
            self._pair,
            self._all,
            self._none,
        ]
        return theme.stage(
            controls,
            theme.grid(theme.card(self._grid.figure), theme.card(self._shape.figure, self._time)),
            theme.grid(theme.card(self._embedding.figure), theme.card(self._quality.figure)),
        )

    def show(self, *, whole: bool = True) -> None:
        """Show the training set where it is another, and the flow at its time."""
        chosen = self._chosen
        if chosen is not self._shown:
            self._shown = chosen
            self._grid.show(chosen)
            self._shape.begin(chosen, self._frame)
            self._embedding.show(chosen.times, list(chosen.embeddings[:, :, 0].T))
            self._quality.show(chosen.times, [chosen.quality, chosen.accuracy])
        else:
            self._shape.move(chosen, self._frame)
        for curves in (self._embedding, self._quality):
            curves.point_at(chosen.times[self._frame])
        if whole:
            self._time.value = self._frame

    def status(self) -> dict[str, str]:
        """Time, what the training set says, and how far the flow is."""
        chosen, found = self._chosen, self._chosen.measures
        return {
            "time": f"{chosen.times[self._frame]:.4g}",
            "pairs": f"{found.pairs} of {found.samples}",
            "parallelograms": str(found.parallelograms),
            "ground states": str(found.ground_state_dimension),
            "grokking rate": f"{found.grokking_rate:.6g}",
            "ideal accuracy": f"{100 * found.ideal_accuracy:.2f} %",
            "RQI": f"{chosen.quality[self._frame]:.4f}",
            "accuracy": f"{100 * chosen.accuracy[self._frame]:.2f} %",
        }

    def python(self) -> str:
        """Calls of `physics.EffectiveTheory`."""
        return self._chosen.python(self._frame)

    def trajectory(self) -> Trajectory:
        """The flow, as `physics.simulate` makes it."""
        return self._chosen.trajectory()

    def film(self) -> Film:
        """Training set, parallelograms and curves."""
        return replace(flow_film(self._chosen), shown=self._frame)

    # -- what the hand does ------------------------------------------------------------------------------

    def _click(self, i: int, j: int) -> None:
        tokens = self._chosen.operation.tokens
        if 0 <= i < tokens and 0 <= j < tokens:
            self._choose(self._chosen.toggled(i, j))

    def _type(self, text: str) -> None:
        if not text:
            return
        parts = text.replace(",", " ").split()
        if len(parts) != 2 or not all(part.isdecimal() and len(part) < 10 for part in parts):
            raise InputError(f"pair must be two symbols such as 2, 5, got {text!r}")
        self._choose(self._chosen.toggled(int(parts[0]), int(parts[1])))
        self._pair.value = ""

    def _draw(self, size: int | None) -> None:
        """Draw another training set."""
        tokens, modulus = self._tokens.value, self._modulus.value or None
        self._choose(
            TrainingSet.drawn(tokens, modulus, size=size, dim=self._dim.value, seed=self._seed.value)
        )

    def _choose(self, chosen: TrainingSet) -> None:
        self.session.say("")
        self._chosen = chosen
        with self.filling():
            self._size.update(end=chosen.measures.samples, value=chosen.measures.pairs)
        self.show()
