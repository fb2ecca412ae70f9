"""One run of a trajectory file, read for its circles: signals, survivors, projections, laws (Ding et al.)."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import analysis
import physics
from analysis.circles.classes import blown_up, require_cyclic
from analysis.circles.fourier import frequency_norms, trajectory_signals
from grokphys.explorer.films import FAINT, INK, Array, Curve, Film, Lines, Panel, Scene, Tokens, film, series
from grokphys.explorer.runs.common import plane_axes, planes, projection
from physics.checks import point_sets, whole_number

if TYPE_CHECKING:
    from analysis.laws.scores import HonestScores

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
class Fitted:
    """A linear law fitted to the signals x of K frequencies, and what it predicts from their first frame.

    Attributes
    ----------
    recipe : str
        Name of the fit, one of `RECIPES`.
    A : ndarray of float64, shape (K, K)
        Matrix of the law.
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
    stored : Trajectory
        The file, whose recording may go on.
    """

    name: str
    index: int
    every: int
    trajectory: physics.Trajectory
    stored: physics.Trajectory

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
        signals = trajectory_signals(self.trajectory)
        return signals.step.values, signals.values[0]

    @cached_property
    def final_signals(self) -> Array:
        """Fourier signals of the last embedding, float64 (frequencies,)."""
        return frequency_norms(self.embeddings[-1])

    def limit(self, factor: float = 2.0) -> float:
        """Return the signal above which a circle survives: `factor` times the mean of the last signals."""
        return factor * float(self.final_signals.mean())

    def survivors(self, factor: float = 2.0) -> list[int]:
        """Return the frequencies whose last signal exceeds the `limit`; none do in a run that blew up."""
        if self.blown_up:
            return []
        return analysis.surviving_frequencies(self.embeddings[-1], factor=factor).tolist()

    @property
    def blown_up(self) -> bool:
        """Whether the run has blown up by the last frame."""
        return bool(blown_up(self.embeddings[-1:], self.embeddings[:1])[0])

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
                curves.append(Curve(fitted.steps + 1.0, y, INK, "dashed", name, width=1.3))
        return curves

    # -- what is shown -----------------------------------------------------------------------------------

    def planes(self) -> list[str]:
        """Return the names of all planes: of frequencies (strongest first), then components, then axes."""
        order = 1 + np.argsort(-self.final_signals, kind="stable")
        others = sorted(planes(self.trajectory.dim), key=lambda name: name.startswith("axes"))
        return [f"frequency {k}" for k in order] + others

    def axes(self, plane: str) -> Array:
        """Return the orthonormal axes (2, dim) of a plane of the last frame, one of `planes`."""
        frequency, last = frequency_of(plane), self.embeddings[-1]
        return (
            plane_axes(last, plane) if frequency is None else analysis.frequency_plane(last, frequency).axes
        )

    def seen(self, plane: str) -> Tokens:
        """Project the tokens of all frames, around their means, on a plane of the last frame.

        On the plane of a frequency, neighbors on its circle have neighboring colors, and a line joins them if
        the frequency has no common divisor with the number of tokens.

        Parameters
        ----------
        plane : str
            Name of the plane, one of `planes`, such as "frequency 7" or "components 1, 2".

        Raises
        ------
        InputError
            If there is no such frequency.
        """
        order, chain, axes = np.arange(self.tokens), None, self.axes(plane)
        kind, *numbers = plane.replace(",", "").split()
        labels = [f"{'component' if kind == 'components' else 'axis'} {number}" for number in numbers]
        if (frequency := frequency_of(plane)) is not None:
            order = frequency * order % self.tokens
            labels = [f"plane of frequency {frequency} at the end, axis 1", "axis 2"]
            if gcd(frequency, self.tokens) == 1:
                chain = np.append(np.argsort(order), 0)
        paths = (self.embeddings - self.embeddings.mean(axis=1, keepdims=True)) @ axes.T
        title = "Tokens in the plane"
        return Tokens(title=title, paths=paths, order=order, chain=chain, labels=labels)

    def panels(
        self, plane: str, fitted: Fitted | None = None, factor: float = 2.0
    ) -> Callable[[int], dict[str, Panel]]:
        """Return a function of a frame, which gives the panels of the tokens on a plane and of the signals.

        A law that is `fitted` is drawn over the signals; the `limit` is that of a factor.
        """
        tokens, axes = self.seen(plane), self.axes(plane)
        signals = Lines(
            title="Signals of all circles (gray: lost; yellow: in the plane; dashed: limit)",
            curves=self.curves(self.survivors(factor), frequency_of(plane), fitted),
            level=self.limit(factor),
            log="xy",
            xlabel="step + 1",
            ylabel="Fourier signal ‖Fₖ‖",
            dots=False,
        )

        def panels(frame: int) -> dict[str, Panel]:
            now = float(self.steps[frame]) + 1
            note = projection(self.embeddings[frame], axes)
            return {
                "tokens": replace(tokens, frame=frame, note=note),
                "signals": replace(signals, now=now),
            }

        return panels

    def film(self, panels: Callable[[int], dict[str, Panel]]) -> Film:
        """Return a film of `panels`: the tokens on a plane, next to their signals."""

        def scene(frame: int) -> Scene:
            return f"step {self.steps[frame]}", panels(frame)

        return film(scene, len(self.steps), (("tokens", "signals"),), (9.6, 4.6))

    # -- the law -----------------------------------------------------------------------------------------

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

        from analysis.laws.ode import Recipe
        from analysis.laws.scores import honest_scores

        steps, values = self.signals
        inside = (steps >= first) & (steps <= last)
        if np.count_nonzero(inside) < 3:
            raise physics.InputError(
                f"steps {first} to {last} must hold at least 3 frames to fit a law to, got "
                f"{np.count_nonzero(inside)}; the run has signals from step {steps[0]} to step {steps[-1]}"
            )
        steps, values = steps[inside], values[inside]
        kind = "increment" if len(set(np.diff(steps).tolist())) == 1 else "generator"
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", ConvergenceWarning)
            scores = honest_scores(Recipe(kind=kind, **RECIPES[recipe]).fit, values, steps)
        law: Any = scores.law
        notes = list(dict.fromkeys(str(warning.message) for warning in caught))
        if not law.converged.all():
            notes.append(f"{np.count_nonzero(~law.converged)} of {len(law.b)} targets have not converged")
        times = np.arange(len(steps)) if kind == "increment" else steps - steps[0]
        return Fitted(recipe, law.A, kind, steps, law.predict(values[0], times), scores, tuple(notes))


def frequency_of(plane: str) -> int | None:
    """Return the frequency of a plane such as "frequency 7"; None for planes of components and axes."""
    kind, _, number = plane.partition(" ")
    return int(number) if kind == "frequency" else None


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
    stored = physics.load(path)
    if not stored.frames:
        raise physics.InputError(f"{path} must hold at least 1 frame, got none yet")
    if stored.tokens < 3:
        raise physics.InputError(f"{path} must hold at least 3 tokens to have circles, got {stored.tokens}")
    require_cyclic(stored)
    frames = min(LARGEST_FRAMES, max(LARGEST_BYTES // (8 * stored.tokens * stored.dim), 1))
    every = -(-stored.frames // frames)
    index = whole_number("run", run, 0)
    found = CircleRun(name or str(path), index, every, stored.run(run, every=every), stored)
    found.signals  # noqa: B018 - read at once, so that an error in them is raised here
    return found
