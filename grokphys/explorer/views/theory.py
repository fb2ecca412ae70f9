"""View 3: what a training set determines, and the flow of embeddings under it (Liu et al., Section 3)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from bokeh.events import Tap
from numpy.typing import NDArray

import physics
from grokphys.explorer import films
from grokphys.explorer.films import Array, Film, Lines, Panel, Scene, film, series
from grokphys.explorer.runs.common import program, timed
from grokphys.explorer.session import Session
from grokphys.explorer.view import LARGEST_SEED, WAYS, FrameView, choice, modulus, number, slider
from physics.seeds import run_seeds

FRAMES = 121
"""Number of frames of a flow."""
LARGEST = 31
"""Largest number of symbols on a grid whose cells are large enough to be clicked."""
HORIZON = 16.0
"""Duration of a flow in decay times of its slowest mode; after 8 of them, RQI in a plane is not yet 1."""
CLICK = "Click pairs on the grid. Filled: trained. Framed: follows from the trained ones. Empty: open."


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """A training set of pairs of symbols, and the flow of the embeddings under it; it never changes.

    Parameters
    ----------
    operation : Operation
        Addition, plain or with a modulus, of 3 to 31 symbols.
    mask : ndarray of bool, shape (samples,)
        Which of the operation's samples (pairs with i ≤ j) are trained; there may be none.
    dim : int, default 1
        Dimension of the embeddings, 1 or 2.
    seed : int, default 0
        Seed of the initial embeddings, which are those of the first run of `physics.simulate`.
    """

    operation: physics.Operation
    mask: NDArray[np.bool_]
    dim: int = 1
    seed: int = 0

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Trained pairs (i, j) with i ≤ j."""
        return [(int(i), int(j)) for i, j in self.operation.samples[self.mask]]

    @cached_property
    def theory(self) -> physics.EffectiveTheory:
        """Effective theory of the training set; of an empty one that of a single pair, as nothing moves."""
        pairs = self.pairs or [(0, 0)]
        return physics.EffectiveTheory(self.operation.tokens, self.dim, pairs, self.operation.modulus)

    @cached_property
    def ideal_accuracy(self) -> float:
        """Accuracy that an ideal model reaches, from 0 to 1."""
        return physics.ideal_accuracy(self.theory) if self.pairs else 0.0

    @cached_property
    def measures(self) -> dict[str, str]:
        """Measures of the training set (Liu et al., Section 3), as texts by their names."""
        return {
            "pairs": f"{len(self.pairs)} of {len(self.mask)}",
            "parallelograms": str(self.theory.parallelogram_count),
            "ground states": str(self.theory.ground_state_dimension),
            "grokking rate": f"{self.theory.grokking_rate:.6g}",
            "ideal accuracy": f"{100 * self.ideal_accuracy:.2f} %",
        }

    @cached_property
    def follows(self) -> NDArray[np.bool_]:
        """Pairs that are not trained but follow from the trained ones, as a mask (samples,)."""
        return self.theory.closure.augmented[0] & ~self.mask & self.mask.any()

    # -- the flow ----------------------------------------------------------------------------------------

    @cached_property
    def step_size(self) -> float:
        """Time between frames, such that the slowest mode that decays has decayed by exp(-16).

        It is rounded to three digits. If no mode decays, the flow has the duration 1.
        """
        moving = self.theory.spectrum[self.theory.spectrum > 0]
        horizon = HORIZON / moving[0] if len(moving) else 1.0
        return float(f"{horizon / (FRAMES - 1):.3g}")

    @property
    def times(self) -> Array:
        """Time of every frame, (frames,)."""
        return self.step_size * np.arange(FRAMES, dtype=np.float64)

    @cached_property
    def embeddings(self) -> Array:
        """Embeddings (frames, symbols, dim) at all times, by the closed solution of the flow."""
        start = self.theory.start(np.random.default_rng(run_seeds(self.seed, 1)[0]))
        return self.theory.solve(start, self.times)

    @cached_property
    def quality(self) -> Array:
        """Representation quality (RQI) of every frame, (frames,), for the tolerance δ = 0.01."""
        return physics.representation_quality(self.embeddings, self.operation)

    @cached_property
    def accuracy(self) -> Array:
        """Predicted accuracy of every frame, (frames,), for the tolerance δ = 0.01."""
        return physics.predicted_accuracy(self.embeddings, self.theory) * self.mask.any()

    # -- what is shown -------------------------------------------------------------------------------------

    @cached_property
    def linked(self) -> NDArray[np.int64]:
        """Numbers, among all samples, of the trained pairs whose answer another trained pair has."""
        trained = np.flatnonzero(self.mask)
        label = self.operation.label[trained]
        return trained[np.bincount(label)[label] > 1]

    @cached_property
    def fixed(self) -> dict[str, Panel]:
        """The panels that are the same in all frames: the pairs, the embeddings, and the quality."""
        linked = self.operation.samples[self.linked]
        sums = linked.sum(axis=1)  # without the modulus
        against_time: dict[str, Any] = {"xlabel": "time", "dots": False}
        return {
            "pairs": films.PairGrid(
                title="Training set",
                hint="click to add or remove pairs",
                samples=self.operation.samples,
                label=self.operation.label,
                trained=self.mask,
                follows=self.follows,
                diagonals=[linked[sums == value] for value in np.unique(sums)],
            ),
            "embeddings": Lines(
                title="Embeddings E against time, one curve per symbol",
                curves=films.cycle(self.times, list(self.embeddings[:, :, 0].T)),
                **against_time,
            ),
            "quality": Lines(
                title="Quality and predicted accuracy, δ = 0.01",
                curves=series(self.times, {"RQI": self.quality, "accuracy": self.accuracy}),
                y_range=(-0.04, 1.04),
                **against_time,
            ),
        }

    def panels(self, frame: int) -> dict[str, Panel]:
        """Return the panels of a frame of the flow."""
        E = np.pad(self.embeddings, ((0, 0), (0, 0), (0, 2 - self.dim)))
        if self.dim == 1:
            classes = self.operation.label[self.linked]
            first, second = E[frame, self.operation.samples[self.linked].T]
            angle = np.linspace(0, np.pi, 25)[:, None] + np.pi * (classes % 2)
            around = np.stack([np.cos(angle), np.sin(angle)], axis=2) * np.abs(first - second)[:, :1] / 2
            outlines = ((first + second) / 2 + around).swapaxes(0, 1)
        else:
            i, j, m, n = self.theory.parallelograms.T
            classes = (i + j) % (self.operation.modulus or 2 * self.operation.tokens)
            outlines = E[frame, np.stack([i, m, j, n, i], axis=1)]
        tokens = films.Parallelograms(
            title="Parallelograms in the embedding",
            paths=E,
            frame=frame,
            outlines=outlines,
            classes=classes,
            count=int(self.operation.label.max()) + 1,
        )
        return timed(self.fixed | {"tokens": tokens}, float(self.times[frame]))


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
    seed: int = number("seed", 3, 0, LARGEST_SEED)
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

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._task, self._picked, self._cursor = tuple[int, ...](), False, (0, 0)
        self._buttons = [
            self.button("All pairs", lambda: self._pick(np.ones_like(self.run.mask))),
            self.button("No pairs", lambda: self._pick(np.zeros_like(self.run.mask))),
        ]

    def open(self) -> None:
        """Begin with as many pairs as the slider shows."""
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
        operation = physics.Operation(of.tokens, of.modulus if of.modulus > 1 else None)
        mask = np.zeros(len(operation.samples), bool)
        if "pairs" in state:
            mask = self._mask(str(state["pairs"]), len(mask))
        elif self._picked and not state and self._task == self._present():
            mask = self.run.mask
        elif of.size:
            mask = physics.random_training_sets(operation, of.size, seed=of.seed)[0]
        return TrainingSet(operation, mask, of.dim, of.seed)

    def _mask(self, text: str, count: int) -> Any:
        """Return the mask that a text holds: a 1 and then a bit for each pair, in hexadecimal."""
        try:
            bits = f"{int(text, 16):b}"
        except ValueError:
            bits = ""
        if len(bits) != count + 1:
            raise physics.InputError(
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

    def _pick(self, mask: NDArray[np.bool_]) -> None:
        """Show a training set that the user has chosen by hand."""
        self._picked, self.run = True, replace(self.run, mask=mask)
        self.forget()
        self._announce()
        self.show()

    def _click(self, i: int, j: int) -> None:
        """Add or remove a pair, if it is on the grid."""
        if min(i, j) >= 0 and max(i, j) < self.run.operation.tokens:
            self._pick(self.run.mask ^ self.run.operation.mask([(i, j)]))

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
        run, frame = self.run, self.frame
        return {
            "time": f"{run.times[frame]:.4g}",
            **run.measures,
            "RQI": f"{run.quality[frame]:.4f}",
            "accuracy": f"{100 * run.accuracy[frame]:.2f} %",
        }

    def verdict(self) -> str:
        """Return one or two sentences on what the trained pairs permit, and on the progress of the flow."""
        run = self.run
        if not run.pairs:
            return "No pair is trained: nothing moves."
        free = run.theory.ground_state_dimension
        if free > 2:
            open_, follow = np.count_nonzero(~run.mask), np.count_nonzero(run.follows)
            return (
                f"Memorizes only: of the {open_} pairs that are not trained, {follow} follow. "
                f"{free} degrees of freedom are left, instead of the 2 of a unique representation."
            )
        quality, accuracy = 100 * run.quality[self.frame], 100 * run.accuracy[self.frame]
        if quality > 99:
            ideal = f"{100 * run.ideal_accuracy:.0f} %"
            return f"It generalizes: the only representation is reached, and answers {ideal} of pairs."
        return (
            f"On the way to the only representation that these pairs allow: {quality:.0f} % of all "
            f"parallelograms are satisfied, and {accuracy:.0f} % of all pairs answered."
        )

    def python(self) -> str:
        """Return Python source that solves the flow by `physics.EffectiveTheory`, and prints its measures."""
        run, time = self._trained(), float(self.run.times[self.frame])
        task = {"tokens": run.operation.tokens, "dim": run.dim, "modulus": run.operation.modulus}
        return program("theory", pairs=run.pairs, seed=run.seed, time=time, **task)

    def trajectory(self) -> physics.Trajectory:
        """Return the flow as a trajectory, computed by `physics.simulate`."""
        run = self._trained()
        return physics.simulate(run.theory, steps=FRAMES - 1, step_size=run.step_size, seed=run.seed)

    def _trained(self) -> TrainingSet:
        if not self.run.pairs:
            raise physics.InputError(
                "pairs must hold at least 1 pair for an effective theory, got none; click a pair to add it"
            )
        return self.run

    def film(self) -> Film:
        """Return a film of the training set, its parallelograms and the curves."""
        run = self.run
        measures = ", ".join(f"{name} {text}" for name, text in run.measures.items())

        def scene(frame: int) -> Scene:
            words = f"{run.operation.name}, time {run.times[frame]:.4g}\n{measures}"
            return words, run.panels(frame)

        rows = ("pairs", "tokens"), ("embeddings", "quality")
        return film(scene, FRAMES, rows, (9.2, 7.0), (1.5, 1))
