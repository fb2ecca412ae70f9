"""View 3: what a training set determines, and the flow of embeddings under it (Liu et al., Section 3)."""

from collections.abc import Mapping
from dataclasses import replace
from string import hexdigits
from typing import Any

import numpy as np
from bokeh.models import Button, TextInput

from grokphys.explorer import theme
from grokphys.explorer.films.export import Film
from grokphys.explorer.films.films import flow_film
from grokphys.explorer.plots.theory import FlowCurves, PairGrid, ParallelogramPlot
from grokphys.explorer.runs import verdicts
from grokphys.explorer.runs.training_set import FRAMES, LARGEST, TrainingSet
from grokphys.explorer.session import Session
from grokphys.explorer.views import presets
from grokphys.explorer.views.frames import FrameView
from grokphys.explorer.views.view import WAYS
from physics.errors import InputError
from physics.trajectory import Trajectory


class TheoryView(FrameView):
    """The view of a training set and of the flow of the effective theory under it.

    It shows pairs to click, the parallelograms that they form, and curves of the embeddings and of quality.
    """

    slug, name = "theory", "Effective theory"
    terms = (
        *("pairs", "modulus", "parallelograms", "ground states", "grokking rate", "ideal accuracy"),
        *("RQI", "accuracy", "time"),
    )
    presets = presets.THEORY

    @classmethod
    def prepare(cls) -> None:
        """Load the kernels of the theory by a first use."""
        for dim in (1, 2):
            chosen = TrainingSet.drawn(4, size=8, dim=dim)
            _ = chosen.measures, chosen.quality, chosen.accuracy, chosen.follows, chosen.diagonals

    def __init__(self, session: Session) -> None:
        super().__init__(session, theme.slider("frame", 0, FRAMES - 1, 0))
        self._tokens = theme.slider("symbols p", 3, LARGEST, 10)
        self._modulus = theme.modulus("modulus (0: plain addition)")
        self._dim = theme.chooser("embeddings", {"on a line": 1, "in the plane": 2})
        self._size = theme.slider("pairs drawn at random", 0, 55, 45)
        self._seed = theme.number("seed", 3, 0, theme.LARGEST_SEED)
        self._pair = theme.control(TextInput, "add or remove a pair", placeholder="i, j, then Enter")
        self._all, self._none = theme.control(Button, "All pairs"), theme.control(Button, "No pairs")
        react = session.reaction
        self._grid = PairGrid(react(self._click))
        self._shape = ParallelogramPlot()
        self._embedding = FlowCurves("Embeddings E against time, one curve per symbol")
        title = "Quality and predicted accuracy, δ = 0.01"
        self._quality = FlowCurves(title, ("RQI", "accuracy"), y_range=(-0.04, 1.04))
        self.figures = {
            "tokens": self._shape.figure,
            "embeddings": self._embedding.figure,
            "quality": self._quality.figure,
        }
        self._chosen, self._end = TrainingSet.drawn(10, size=45, seed=3), FRAMES - 1
        self._shown: TrainingSet | None = None
        self._picked, self._cursor = False, (0, 0)
        self.connect(lambda _: self._resize(), self._tokens, self._modulus)
        self.connect(lambda _: self._draw(self._size.value), self._size)
        self.connect(self._reseed, self._seed)
        self.connect(lambda dim: self._choose(replace(self._chosen, dim=dim)), self._dim)
        self.connect(self._type, self._pair)
        self._all.on_click(react(lambda _event: self._pick(self._chosen.filled(True))))
        self._none.on_click(react(lambda _event: self._pick(self._chosen.filled(False))))
        self.hold(
            tokens=self._tokens,
            modulus=self._modulus,
            dim=self._dim,
            size=self._size,
            seed=self._seed,
            time=self._time,
        )

    def panel(self) -> Any:
        """Return controls, pairs and parallelograms, and embeddings and quality against time."""
        controls = [
            theme.heading("Task", terms=("modulus",)),
            self._tokens,
            self._modulus,
            self._dim,
            theme.heading(
                "Training set",
                "Click pairs on the grid. Filled pairs are trained, framed pairs follow from them, and empty "
                "pairs do not. Your choice stays until you draw pairs at random.",
                terms=("pairs", "parallelograms", "ground states"),
            ),
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
        """Show the training set if it has changed, and the flow at the current time."""
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
        """Return time, measures of the training set, and progress of the flow, as texts by their names."""
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
        """Return Python source that solves the flow by `physics.EffectiveTheory`."""
        return self._chosen.python(self._frame)

    def trajectory(self) -> Trajectory:
        """Return the flow, as `physics.simulate` computes it."""
        return self._chosen.trajectory()

    def verdict(self) -> str:
        """Return one or two sentences on what the trained pairs permit, and on the progress of the flow."""
        found = self._chosen.measures
        reached = float(self._chosen.quality[self._frame]), float(self._chosen.accuracy[self._frame])
        free = found.ground_state_dimension
        return verdicts.flow(found.pairs, found.samples, free, found.ideal_accuracy, *reached)

    def state(self) -> dict[str, Any]:
        """Return the widgets' state, and the trained pairs if the user has chosen them.

        The entry "pairs" is a 1 and then a bit for each pair of the task, written in hexadecimal.
        """
        bits = "".join("01"[int(trained)] for trained in self._chosen.mask)
        return {**super().state(), **({"pairs": f"{int('1' + bits, 2):x}"} if self._picked else {})}

    def offer(self) -> None:
        """Let as many pairs be drawn as the task has."""
        tokens = self._tokens.value
        self._size.end = tokens * (tokens + 1) // 2

    def renew(self, state: Mapping[str, Any]) -> None:
        """Draw a training set at random, or take the entry "pairs" of `state` if there is one.

        Raises
        ------
        InputError
            If "pairs" is not a mask of the pairs of this task.
        """
        frame, bits = self._time.value, ""
        if "pairs" in state:
            text, count = str(state["pairs"]), int(self._size.end)
            known = text and all(digit in hexdigits for digit in text)
            bits = f"{int(text, 16):b}" if known else ""
            if len(bits) != count + 1:
                raise InputError(
                    f"pairs must be a 1 and then a bit for each of {count} pairs, in hexadecimal, got "
                    f"{text[:40]!r}"
                )
        self._draw(self._size.value)
        if bits:
            self._pick(replace(self._chosen, mask=np.array([bit == "1" for bit in bits[1:]])))
        self._frame = self._time.value = frame
        self.show()

    def key(self, name: str) -> None:
        """Move the cursor over the grid of pairs by an arrow key; Enter adds or removes its pair."""
        i, j = self._cursor
        if name == "Enter":
            self._click(i, j)
            return
        right, up = WAYS.get(name, (0, 0))
        last = self._chosen.operation.tokens - 1
        self._cursor = min(max(i + right, 0), last), min(max(j + up, 0), last)
        self._grid.point(*self._cursor)

    def film(self) -> Film:
        """Return a `Film` of the training set, its parallelograms and the curves."""
        return replace(flow_film(self._chosen), shown=self._frame)

    # -- interaction ------------------------------------------------------------------------------

    def _click(self, i: int, j: int) -> None:
        tokens = self._chosen.operation.tokens
        if 0 <= i < tokens and 0 <= j < tokens:
            self._pick(self._chosen.toggled(i, j))

    def _type(self, text: str) -> None:
        if not text:
            return
        parts = text.replace(",", " ").split()
        if len(parts) != 2 or not all(part.isdecimal() and len(part) < 10 for part in parts):
            raise InputError(f"pair must be two symbols such as 2, 5, got {text!r}")
        self._pick(self._chosen.toggled(int(parts[0]), int(parts[1])))
        self._pair.value = ""

    def _draw(self, size: int | None) -> None:
        """Draw another training set of `size` pairs at random; None for four fifths of all."""
        tokens, modulus = self._tokens.value, self._modulus.value or None
        drawn = TrainingSet.drawn(tokens, modulus, size=size, dim=self._dim.value, seed=self._seed.value)
        self._picked = False
        self._choose(drawn)

    def _resize(self) -> None:
        """Change the task; pairs that the user has chosen stay if the new task has their symbols."""
        if not self._picked:
            self._draw(None)
            return
        tokens, modulus = self._tokens.value, self._modulus.value or None
        kept = [pair for pair in self._chosen.pairs if max(pair) < tokens]
        empty = TrainingSet.drawn(tokens, modulus, size=0, dim=self._dim.value, seed=self._seed.value)
        self._choose(replace(empty, mask=empty.operation.mask(kept) if kept else empty.mask))

    def _reseed(self, seed: int) -> None:
        """Draw other initial embeddings, and other pairs unless the user has chosen them."""
        if self._picked:
            self._choose(replace(self._chosen, seed=seed))
        else:
            self._draw(self._size.value)

    def _pick(self, chosen: TrainingSet) -> None:
        self._picked = True
        self._choose(chosen)

    def _choose(self, chosen: TrainingSet) -> None:
        self.session.say("")
        self._chosen = chosen
        with self.filling():
            self._size.update(end=chosen.measures.samples, value=chosen.measures.pairs)
        self.show()
