"""One run of a trajectory file, read for its circles: signals, survivors, projections, laws (Ding et al.)."""

import warnings
from dataclasses import dataclass
from functools import cached_property
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grokphys.explorer.runs.planes import plane_axes, planes
from physics.checks import choice, point_sets, whole_number
from physics.errors import InputError
from physics.trajectory import Trajectory

if TYPE_CHECKING:
    from analysis.laws.honest import HonestScores

Array = NDArray[np.float64]
LARGEST_BYTES = 2**28
"""Largest size in bytes of the positions of a run in memory; of a longer run every n-th frame is read."""
LARGEST_FRAMES = 2000
"""Largest number of frames of a run in memory."""
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

        own = fourier_signals(self.embeddings)
        if OBSERVABLE not in self.trajectory.observables:
            return self.steps, own
        steps = self.trajectory.clock(OBSERVABLE)[0]
        recorded = point_sets(OBSERVABLE, self.trajectory.observables[OBSERVABLE][0], minimum_tokens=1)
        if recorded.shape[1] != self.frequencies:
            raise InputError(
                f"{self.name} must hold the signals of {self.frequencies} frequencies for its {self.tokens} "
                f"tokens, got {recorded.shape[1]}"
            )
        later = self.steps > steps[-1]
        return np.append(steps, self.steps[later]), np.concatenate([recorded, own[later]])

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

        return surviving_frequencies(self.embeddings[-1], factor=factor, threshold=threshold).tolist()

    @property
    def strongest(self) -> int:
        """Frequency, from 1, with the largest signal in the last frame."""
        return int(np.argmax(self.final_signals)) + 1

    def limit(self, *, factor: float = 2.0, threshold: float | None = None) -> float:
        """Return the signal above which a circle survives, for the arguments of `survivors`."""
        return factor * float(self.final_signals.mean()) if threshold is None else threshold

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
        one = {"components": "component", "axes": "axis"}[kind]
        names = f"{one} {first}", f"{one} {second}"
        return Projection(self._onto(axes), np.arange(self.tokens), names)

    def _onto(self, axes: Array) -> Array:
        return (self.embeddings - self.embeddings.mean(axis=1, keepdims=True)) @ axes.T

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

        from grokphys.report.circles import Signals, fit_and_score

        steps, values = self._window(first, last)
        kind = self.kind(first, last)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", ConvergenceWarning)
            scores = fit_and_score([Signals(steps, values, [])], kind=kind, **RECIPES[recipe])
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
        kind, numbers = plane.split(" ", 1)
        thinned = f", every={self.every}" if self.every > 1 else ""
        chosen = "[" + ", ".join(str(int(number) - 1) for number in numbers.split(", ")) + "]"
        axes = {
            "frequency": f"analysis.frequency_plane(positions[-1], {numbers}).axes",
            "components": f"np.linalg.svd(positions[-1] - positions[-1].mean(axis=0))[2][{chosen}]",
            "axes": f"np.eye({max(2, self.trajectory.dim)})[{chosen}, :{self.trajectory.dim}]",
        }
        lines = [
            "import numpy as np",
            "",
            "import analysis",
            "import physics",
            "",
            f"run = physics.Trajectory.open({self.name!r}).run({self.index}{thinned})",
            "positions = run.positions[0].astype(np.float64)",
            f"axes = {axes[kind]}",
            f"E = positions[{frame}]  # step {self.steps[frame]}",
            "points = (E - E.mean(axis=0)) @ axes.T",
        ]
        lines += self._python_of(fitted) if fitted else []
        by = "".join(f", {name}={value!r}" for name, value in rule.items())
        lines.append(f'print("survivors", analysis.surviving_frequencies(positions[-1]{by}))')
        lines += ['print(f"rollout R² {law.score(signals, times).rollout:.4f}")'] if fitted else []
        return "\n".join([*lines, ""])

    def _python_of(self, fitted: Fitted) -> list[str]:
        from analysis.circles.signals import OBSERVABLE

        signals, steps = "analysis.fourier_signals(positions)", "run.steps"
        lines = [f"steps, signals = {steps}, {signals}"]
        if OBSERVABLE in self.trajectory.observables:
            lines = [
                f'steps = run.clock("{OBSERVABLE}")[0]',
                f'signals = run.observables["{OBSERVABLE}"][0].astype(np.float64)',
                f"later = {steps} > steps[-1]",
                f"signals = np.concatenate([signals, {signals}[later]])",
                f"steps = np.append(steps, {steps}[later])",
            ]
        times = "np.arange(len(steps))" if fitted.kind == "increment" else "steps[inside] - steps[inside][0]"
        recipe = "".join(f", {name}={value!r}" for name, value in RECIPES[fitted.recipe].items())
        return [
            *lines,
            f"inside = (steps >= {fitted.steps[0]}) & (steps <= {fitted.steps[-1]})",
            "steps, signals = steps[inside], signals[inside]",
            f"law = analysis.fit_trajectories(signals, steps, kind={fitted.kind!r}{recipe})",
            f"times = {times}",
            "rollout = law.predict(signals[0], times)",
        ]


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
    from analysis.circles.classes import recorded_operation

    stored = Trajectory.open(path)
    if not stored.frames:
        raise InputError(f"{path} must hold at least 1 frame, got none yet")
    if stored.tokens < 3:
        raise InputError(f"{path} must hold at least 3 tokens to have circles, got {stored.tokens}")
    recorded_operation(stored.parameters, stored.tokens)  # refuses other tokens than those of its modulus
    frames = min(LARGEST_FRAMES, max(LARGEST_BYTES // (8 * stored.tokens * stored.dim), 1))
    every = -(-stored.frames // frames)
    found = CircleRun(name or str(path), whole_number("run", run, 0), every, stored.run(run, every=every))
    found.signals  # noqa: B018 - read at once, so that an error in them is raised here
    return found


def read_again(path: Path, index: int, name: str) -> CircleRun | Exception:
    """Return a run that has grown, read by `open_run`, or the exception that this raises."""
    try:
        return open_run(path, index, name=name)
    except Exception as error:
        return error
