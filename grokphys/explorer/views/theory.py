"""View 3: what a training set determines, and the flow of embeddings under it (Liu et al., Section 3)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from bokeh.events import Tap
from bokeh.models import Button

from grokphys.explorer import theme
from grokphys.explorer.films import Film
from grokphys.explorer.panels import Panel
from grokphys.explorer.runs.training_set import FRAMES, LARGEST, TrainingSet
from grokphys.explorer.session import Session
from grokphys.explorer.view import WAYS, FrameView, choice, modulus, number, slider
from physics.errors import InputError

CLICK = (
    "Click pairs on the grid. Filled pairs are trained, framed pairs follow from them, empty pairs do not."
)


@dataclass(frozen=True)
class Parameters:
    """What can be chosen about a training set; "time" is the number of the frame."""

    tokens: int = slider("symbols p", 10, 3, LARGEST, heading=("Task", ("modulus",)))
    modulus: int = modulus("plain addition")
    dim: int = choice("embeddings", {1: "on a line", 2: "in the plane"})
    size: int = slider(
        "pairs drawn at random", 45, 0, 55,
        heading=("Training set", ("pairs", "parallelograms", "ground states"), CLICK),
    )  # fmt: skip
    seed: int = number("seed", 3, 0, theme.LARGEST_SEED)
    time: int = slider("frame", 0, 0, FRAMES - 1, role="look")


class TheoryView(FrameView):
    """The view of a training set and of the flow of the effective theory under it.

    It shows pairs to click, the parallelograms that they form, and curves of the embeddings and of quality.
    """

    slug, name = "theory", "Effective theory"
    Parameters = Parameters
    run: TrainingSet
    rows = ({"pairs": 436, "tokens": 400}, {"embeddings": 210, "quality": 210})
    end = FRAMES - 1
    terms = (
        *("pairs", "modulus", "parallelograms", "ground states", "grokking rate", "ideal accuracy"),
        *("RQI", "accuracy", "time"),
    )

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._buttons = [theme.control(Button, "All pairs"), theme.control(Button, "No pairs")]
        self._task, self._picked, self._cursor = tuple[int, ...](), False, (0, 0)
        for button, trained in zip(self._buttons, (True, False), strict=True):
            fill = session.reaction(lambda _event, trained=trained: self._pick(self.run.filled(trained)))
            button.on_click(fill)
        self.restart({})

    def beside(self, name: str) -> list[Any]:
        """Return the buttons for all pairs and for none, below the seed."""
        return self._buttons if name == "seed" else []

    def ready(self, name: str, plot: Any) -> None:
        """Let a click add or remove a pair."""
        if name == "pairs":
            click = self.session.reaction(lambda event: self._click(round(event.x), round(event.y)))
            plot.figure.on_event(Tap, click)

    # -- the training set ----------------------------------------------------------------------------------

    def made(self, state: Mapping[str, Any]) -> TrainingSet:
        """Return the training set that the widgets describe, drawn at random or from the entry "pairs".

        Pairs that the user has chosen stay if only the dimension changes.
        """
        of = self.values
        modulus = of.modulus if of.modulus > 1 else None
        drawn = TrainingSet.drawn(of.tokens, modulus, size=of.size, dim=of.dim, seed=of.seed)
        if "pairs" in state:
            return replace(drawn, mask=self._mask(str(state["pairs"]), len(drawn.mask)))
        if self._picked and not state and self._task == self._present():
            return replace(drawn, mask=self.run.mask)
        return drawn

    def _mask(self, text: str, count: int) -> Any:
        """Return the mask that a text holds: a 1 and then a bit for each pair, in hexadecimal."""
        try:
            bits = f"{int(text, 16):b}"
        except ValueError:
            bits = ""
        if len(bits) != count + 1:
            raise InputError(
                f"pairs must be a 1 and a bit for each of {count} pairs, in hexadecimal, got {text!r:.40}"
            )
        return np.array([bit == "1" for bit in bits[1:]])

    def restart(self, state: Mapping[str, Any] | None = None) -> None:
        """Show the training set of the widgets; that of another task has four fifths of its pairs."""
        of = self.values
        if state is None and (of.tokens, of.modulus) != self._task[:2]:
            self.offer()
            self.set(size=round(0.8 * self.widgets["size"].end))
        super().restart(state)
        if state is not None:
            self.frame = of.time
            self.show()
        self._picked = "pairs" in (state or {}) or (self._picked and self._task == self._present())
        self._announce()

    def _present(self) -> tuple[int, ...]:
        of = self.values
        return of.tokens, of.modulus, of.size, of.seed

    def offer(self) -> None:
        """Let as many pairs be drawn as the task has."""
        tokens = self.values.tokens
        self.widgets["size"].end = tokens * (tokens + 1) // 2

    def _announce(self) -> None:
        """Let the slider show the number of trained pairs, and remember the task."""
        self.set(size=int(self.run.mask.sum()))
        self._task = self._present()
        self.session.say("")

    def _pick(self, chosen: TrainingSet) -> None:
        """Show a training set that the user has chosen by hand."""
        self._picked, self.run = True, chosen
        self.forget()
        self._announce()
        self.show()

    def _click(self, i: int, j: int) -> None:
        if min(i, j) >= 0 and max(i, j) < self.run.operation.tokens:
            self._pick(self.run.toggled(i, j))

    def key(self, name: str) -> None:
        """Move the cursor over the grid of pairs by an arrow key; Enter adds or removes its pair."""
        i, j = self._cursor
        if name == "Enter":
            self._click(i, j)
            return
        (right, up), last = WAYS.get(name, (0, 0)), self.run.operation.tokens - 1
        self._cursor = min(max(i + right, 0), last), min(max(j + up, 0), last)
        self.plots["pairs"].point(*self._cursor)

    def state(self) -> dict[str, Any]:
        """Return the state, with the trained pairs if the user has chosen them."""
        bits = "".join("01"[int(trained)] for trained in self.run.mask)
        return super().state() | ({"pairs": f"{int('1' + bits, 2):x}"} if self._picked else {})

    # -- what is shown -------------------------------------------------------------------------------------

    def panels(self, whole: bool) -> Mapping[str, Panel]:
        """Return the training set, and the flow at the current time."""
        return self.run.panels(self.frame)

    def status(self) -> dict[str, str]:
        """Return time, measures of the training set, and progress of the flow, as texts by their names."""
        return self.run.status(self.frame)

    def verdict(self) -> str:
        """Return one or two sentences on what the trained pairs permit, and on the progress of the flow."""
        return self.run.verdict(self.frame)

    def python(self) -> str:
        """Return Python source that solves the flow by `physics.EffectiveTheory`."""
        return self.run.python(self.frame)

    def film(self) -> Film:
        """Return a film of the training set, its parallelograms and the curves."""
        return replace(self.run.film(), shown=self.frame)
