"""One run of a trajectory file, read for its circles: signals, survivors, projections, laws (Ding et al.)."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grokphys.explorer.films import Film, Scene, film
from grokphys.explorer.panels import FAINT, INK, Curve, Lines, Panel, Tokens, series
from grokphys.explorer.runs.common import arguments, plane_axes, planes, program
from physics.checks import choice, point_sets, whole_number
from physics.errors import InputError
from physics.trajectory import Trajectory, load

if TYPE_CHECKING:
    from analysis.laws.scores import HonestScores

Array = NDArray[np.float64]
LARGEST_BYTES = 2**28
"""Largest size in bytes of the positions of a run in memory; of a longer run every n-th frame is read."""
LARGEST_FRAMES = 2000
"""Largest number of frames of a run in memory."""
HALO = "#f1c232"
"""Color behind the signal of the chosen frequency."""
RECIPES: dict[str, dict[str, Any]] = {
    "Lasso, α = 0.01": {"penalty": "lasso", "alpha": 0.01},
    "least squares": {"penalty": None},
}


@dataclass(frozen=True)
class Projection:
    """Tokens of all frames on one plane, which the last frame determines.

    Attributes
    ----------
    points : ndarray of float64, shape (frames, tokens, 2)
        Coordinates of the tokens in each frame, around their mean.
    order : ndarray of int64, shape (tokens,)
        Place of each token around the circle, for its color; its number on a plane without a circle.
    names : pair of str
        Labels of the two axes.
    cycle : ndarray of int64, shape (tokens + 1,), optional
        Tokens in their order around the circle, back to the first. None unless the plane is that of a
        frequency without a common divisor with the number of tokens.
    """

    points: Array
    order: NDArray[np.int64]
    names: tuple[str, str]
    cycle: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class Fitted:
    """A linear law fitted to the signals x of K frequencies, and what it predicts from their first frame.

    Attributes
    ----------
    recipe : str
        Name of the fit, one of `RECIPES`.
    A, b : ndarray of float64, shapes (K, K) and (K,)
        Matrix and constant of the law.
    kind : {"increment", "generator"}
        Whether A x + b is the change from frame to frame, or the rate of change per step.
    steps : ndarray of int64, shape (n,)
        Steps to which the law was fitted.
    rollout : ndarray of float64, shape (n, K)
        Predicted signals at these steps, infinite from the first at which they have diverged.
    scores : HonestScores
        R² in sample, and forward in time if the run is long enough.
    notes : tuple of str
        Warnings of the fit, and the number of frequencies for which it has not converged.
    """

    recipe: str
    A: Array
    b: Array
    kind: str
    steps: NDArray[np.int64]
    rollout: Array
    scores: "HonestScores"
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class CircleRun:
    """One run of a trajectory file, in memory, as `open_run` reads it.

    Attributes
    ----------
    name : str
        Name of the file for the user.
    index : int
        Number of the run in the file, from 0.
    every : int
        Distance, in frames of the file, of two frames that are kept: 1, or more for a long run.
    trajectory : Trajectory
        The run.
    """

    name: str
    index: int
    every: int
    trajectory: Trajectory

    @property
    def tokens(self) -> int:
        """Number of tokens."""
        return self.trajectory.tokens

    @property
    def frequencies(self) -> int:
        """Number of frequencies, ⌊tokens/2⌋."""
        return self.tokens // 2

    @property
    def steps(self) -> NDArray[np.int64]:
        """Step of every frame, as an array of int64 (frames,)."""
        return self.trajectory.steps

    @cached_property
    def embeddings(self) -> Array:
        """Positions of the tokens in all frames, as an array of float64 (frames, tokens, dim)."""
        return point_sets("positions", self.trajectory.positions[0])

    # -- signals -----------------------------------------------------------------------------------------

    @cached_property
    def signals(self) -> tuple[NDArray[np.int64], Array]:
        """Steps (n,) and the Fourier signals of all frequencies at these steps, (n, frequencies).

        Recorded signals are preferred, because they are often at more steps than the embeddings; signals of
        later embeddings follow them. Without recorded signals, all are computed from the embeddings.

        Raises
        ------
        InputError
            If the embeddings or the recorded signals are not finite, or these are of another number of
            frequencies.
        """
        from analysis.circles.fourier import fourier_signals
        from analysis.circles.signals import OBSERVABLE

        computed = fourier_signals(self.embeddings)
        if OBSERVABLE not in self.trajectory.observables:
            return self.steps, computed
        steps = self.trajectory.clock(OBSERVABLE)[0]
        recorded = point_sets(OBSERVABLE, self.trajectory.observables[OBSERVABLE][0], minimum_tokens=1)
        if recorded.shape[1] != self.frequencies:
            raise InputError(
                f"{self.name} must hold the signals of {self.frequencies} frequencies for its {self.tokens} "
                f"tokens, got {recorded.shape[1]}"
            )
        later = self.steps > steps[-1]
        return np.append(steps, self.steps[later]), np.concatenate([recorded, computed[later]])

    @cached_property
    def final_signals(self) -> Array:
        """Fourier signals of the last embedding, float64 (frequencies,)."""
        from analysis.circles.fourier import fourier_signals

        return fourier_signals(self.embeddings[-1])

    def survivors(self, *, factor: float = 2.0, threshold: float | None = None) -> list[int]:
        """Return the frequencies whose circles survive, from 1, in increasing order.

        A circle survives if its signal in the last frame exceeds `threshold` or, by default, `factor` times
        the mean signal of that frame (`analysis.surviving_frequencies`).
        """
        from analysis.circles.survival import surviving_frequencies

        if self.blown_up is not None:
            return []
        return surviving_frequencies(self.embeddings[-1], factor=factor, threshold=threshold).tolist()

    @property
    def strongest(self) -> int:
        """Frequency, from 1, with the largest signal in the last frame."""
        return int(np.argmax(self.final_signals)) + 1

    def limit(self, *, factor: float = 2.0, threshold: float | None = None) -> float:
        """Return the signal above which a circle survives, for the arguments of `survivors`."""
        return factor * float(self.final_signals.mean()) if threshold is None else threshold

    def curves(
        self, survivors: Sequence[int], chosen: int | None = None, fitted: Fitted | None = None
    ) -> list[Curve]:
        """Return the signals as curves against the step plus 1, for logarithmic axes.

        Survivors are in color and named, the others gray; `chosen` is highlighted, and the rollout of a law
        is dashed.
        """
        steps, values = self.signals
        x, curves = steps + 1.0, []
        if chosen is not None:
            curves.append(Curve(x, values[:, chosen - 1], HALO, name=f"k = {chosen}", width=8.0))
        for k in range(1, self.frequencies + 1):
            if k not in survivors:
                color, width = (INK, 1.2) if k == chosen else (FAINT, 0.9)
                curves.append(Curve(x, values[:, k - 1], color, name=f"k = {k}", width=width))
        alive = {str(k): values[:, k - 1] for k in survivors}
        curves += [replace(curve, name=f"k = {curve.name}", width=2.0) for curve in series(x, alive)]
        if fitted is not None:
            for k, y in enumerate(np.where(np.isfinite(fitted.rollout), fitted.rollout, np.nan).T, 1):
                name = f"k = {k}, predicted"
                curves.append(Curve(fitted.steps + 1.0, y, INK, "dashed", name, width=1.3, above=True))
        return curves

    @property
    def blown_up(self) -> float | None:
        """Largest coordinate in the last frame, if the run has blown up; otherwise None."""
        from analysis.circles.classes import blown_up

        lost = blown_up(self.embeddings[-1:], self.embeddings[:1])[0]
        return float(np.abs(self.embeddings[-1]).max()) if lost else None

    def verdict(self, survivors: Sequence[int], limit: float, chosen: int | None) -> str:
        """Return sentences on which circles survive above a limit, and on the fate of the chosen one."""
        if (largest := self.blown_up) is not None:
            return (
                f"This run has blown up: its largest coordinate is {largest:.1e} in the last frame. "
                "Repeat it with a smaller step size or learning rate."
            )
        steps, values = self.signals
        words = f"{len(survivors)} of {self.frequencies} circles survive: {', '.join(map(str, survivors))}."
        if not survivors:
            words = f"No circle reaches the survival limit of {limit:.3g}."
        if chosen is None or chosen in survivors:
            return words
        octaves = [k for k in survivors if chosen in octave(k, self.tokens)]
        near = f"; its octave {octaves[0]} survives" if octaves else ""
        above = np.flatnonzero(values[:, chosen - 1] >= limit)
        if not len(above):
            return f"{words} Circle {chosen} never reaches the limit{near}."
        after = steps[above[-1] + 1 :]
        return f"{words} Circle {chosen} is lost{f' by step {after[0]}' if len(after) else ''}{near}."

    # -- projections -------------------------------------------------------------------------------------

    def plane(self, frequency: int) -> Projection:
        """Project the tokens of all frames on the plane of a frequency in the last frame.

        Neighbors on the circle of this frequency have neighboring colors.

        Raises
        ------
        InputError
            If `frequency` is not from 1 to the number of frequencies.
        """
        from analysis.circles.geometry import frequency_plane

        axes = frequency_plane(self.embeddings[-1], frequency).axes
        order = frequency * np.arange(self.tokens) % self.tokens
        names = f"plane of frequency {frequency} at the end, axis 1", "axis 2"
        cycle = np.append(np.argsort(order), 0) if gcd(frequency, self.tokens) == 1 else None
        return Projection(self._onto(axes), order, names, cycle)

    def planes(self) -> list[str]:
        """Return the names of all planes: of frequencies (strongest first), then components, then axes."""
        order = 1 + np.argsort(-self.final_signals, kind="stable")
        others = sorted(planes(self.trajectory.dim), key=lambda name: name.startswith("axes"))
        return [f"frequency {k}" for k in order] + others

    def seen(self, plane: str) -> Projection:
        """Project the tokens of all frames on a plane.

        Parameters
        ----------
        plane : str
            Name of the plane, one of `planes`, such as "frequency 7" or "components 1, 2".

        Raises
        ------
        InputError
            If there is no such plane.
        """
        choice("plane", plane, tuple(self.planes()))
        kind, numbers = plane.split(" ", 1)
        if kind == "frequency":
            return self.plane(int(numbers))
        first, second = numbers.split(", ")
        axes = plane_axes(self.embeddings[-1], plane)
        axis = {"components": "component", "axes": "axis"}[kind]
        names = f"{axis} {first}", f"{axis} {second}"
        return Projection(self._onto(axes), np.arange(self.tokens), names)

    def _onto(self, axes: Array) -> Array:
        return (self.embeddings - self.embeddings.mean(axis=1, keepdims=True)) @ axes.T

    def panels(
        self, projection: Projection, frame: int, curves: Sequence[Curve], limit: float
    ) -> dict[str, Panel]:
        """Return the panels of the tokens on a plane in a frame, and of the signals with the limit."""
        return {
            "tokens": Tokens(
                title="Tokens, projected on a plane",
                paths=projection.points,
                frame=frame,
                order=projection.order,
                chain=projection.cycle,
                labels=projection.names,
            ),
            "signals": Lines(
                title="Signals of all circles (gray: lost; yellow: in the plane; dashed: limit)",
                curves=curves,
                level=limit,
                now=float(self.steps[frame]) + 1,
                log="xy",
                xlabel="step + 1",
                ylabel="Fourier signal ‖Fₖ‖",
                dots=False,
                columns=6,
            ),
        }

    def film(
        self, projection: Projection, chosen: int | None = None, fitted: Fitted | None = None, **rule: float
    ) -> Film:
        """Return a film of the tokens on a plane, next to their signals.

        Parameters
        ----------
        projection : Projection
            Tokens of all frames on the plane.
        chosen : int, optional
            Frequency of the plane, which is highlighted.
        fitted : Fitted, optional
            Law whose predictions are drawn over the signals.
        **rule
            Arguments of `survivors`.
        """
        curves, limit = self.curves(self.survivors(**rule), chosen, fitted), self.limit(**rule)

        def scene(frame: int) -> Scene:
            return f"step {self.steps[frame]}", self.panels(projection, frame, curves, limit)

        return film(scene, len(self.steps), (("tokens", "signals"),), (9.6, 4.6))

    # -- the law -----------------------------------------------------------------------------------------

    def kind(self, first: int = 0, last: int = 1000) -> str:
        """Return "increment" if the steps from `first` to `last` are evenly spaced, else "generator".

        Raises
        ------
        InputError
            If there are fewer than 3 of them.
        """
        steps, _ = self._window(first, last)
        return "increment" if len(set(np.diff(steps).tolist())) == 1 else "generator"

    def fit(self, recipe: str = "Lasso, α = 0.01", *, first: int = 0, last: int = 1000) -> Fitted:
        """Fit one linear law to the signals between two steps, and score it in sample and forward in time.

        Parameters
        ----------
        recipe : str, default "Lasso, α = 0.01"
            One of `RECIPES`.
        first, last : int, default 0 and 1000
            First and last step of the fit, both included.

        Raises
        ------
        InputError
            If there are signals at fewer than 3 of these steps, or at too few for the recipe.
        """
        from sklearn.exceptions import ConvergenceWarning

        from analysis.circles.signals import Signals
        from analysis.laws.ode import Recipe, fit_batch

        steps, values = self._window(first, last)
        kind = self.kind(first, last)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", ConvergenceWarning)
            scores = fit_batch([Signals(steps, values, [])], Recipe(kind=kind, **RECIPES[recipe]))
        law: Any = scores.law
        notes = list(dict.fromkeys(str(warning.message) for warning in caught))
        if not law.converged.all():
            notes.append(f"{np.count_nonzero(~law.converged)} of {len(law.b)} targets have not converged")
        times = np.arange(len(steps)) if kind == "increment" else steps - steps[0]
        return Fitted(recipe, law.A, law.b, kind, steps, law.predict(values[0], times), scores, tuple(notes))

    def _window(self, first: int, last: int) -> tuple[NDArray[np.int64], Array]:
        steps, values = self.signals
        inside = (steps >= first) & (steps <= last)
        if np.count_nonzero(inside) < 3:
            raise InputError(
                f"steps {first} to {last} must hold at least 3 frames to fit a law to, got "
                f"{np.count_nonzero(inside)}; the run has signals from step {steps[0]} to step {steps[-1]}"
            )
        return steps[inside], values[inside]

    # -- export ---------------------------------------------------------------------------------------

    def python(self, plane: str, frame: int, fitted: Fitted | None = None, **rule: float) -> str:
        """Return Python source that reproduces the embedding `E` of a `frame`, and its `points` on a `plane`.

        The source gives the same bits. It also prints which circles survive by a `rule` (arguments of
        `survivors`), and the rollout R² of the law `fitted`, if there is one.
        """
        from analysis.circles.signals import OBSERVABLE

        kind, numbers = plane.split(" ", 1)
        return program(
            "circles",
            name=repr(self.name),
            index=self.index,
            every=self.every,
            dim=self.trajectory.dim,
            kind=kind,
            numbers=numbers,
            chosen=[int(number) - 1 for number in numbers.split(", ")],
            frame=frame,
            step=self.steps[frame],
            rule=arguments(**rule),
            fitted=fitted,
            recipe=arguments(**RECIPES[fitted.recipe]) if fitted else "",
            recorded=OBSERVABLE in self.trajectory.observables,
        )


def octave(frequency: int, tokens: int) -> set[int]:
    """Return the frequencies that are half or twice a frequency, modulo the tokens and up to sign."""

    def twice(k: int) -> int:
        return min(2 * k % tokens, -2 * k % tokens)

    return {k for k in range(1, tokens // 2 + 1) if twice(k) == frequency or k == twice(frequency)}


def open_run(path: str | Path, run: int = 0, *, name: str | None = None) -> CircleRun:
    """Read one run of a trajectory file, or every n-th frame of a long run.

    `name` is the name for the user, by default the path.

    Raises
    ------
    FileNotFoundError, FileFormatError
        If there is no such file, or it is not a readable trajectory.
    InputError
        If the file has no such run, no frame, fewer than 3 tokens, or signals that `CircleRun.signals`
        refuses.
    """
    from analysis.circles.classes import require_cyclic

    stored = load(path)
    if not stored.frames:
        raise InputError(f"{path} must hold at least 1 frame, got none yet")
    if stored.tokens < 3:
        raise InputError(f"{path} must hold at least 3 tokens to have circles, got {stored.tokens}")
    require_cyclic(stored)
    frames = min(LARGEST_FRAMES, max(LARGEST_BYTES // (8 * stored.tokens * stored.dim), 1))
    every = -(-stored.frames // frames)
    found = CircleRun(name or str(path), whole_number("run", run, 0), every, stored.run(run, every=every))
    found.signals  # noqa: B018 - read at once, so that an error in them is raised here
    return found
