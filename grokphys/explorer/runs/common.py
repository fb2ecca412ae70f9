"""What the runs behind the views share: a history, starts, planes, Python source, and the shape of tokens."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from importlib.resources import files as resources
from itertools import combinations
from math import ceil
from typing import Any, ClassVar

import numpy as np
from jinja2 import Environment
from numpy.typing import NDArray

import analysis
import physics
from analysis.circles.classes import blown_up
from analysis.circles.fourier import frequency_norms
from grokphys.explorer.films import Array, Lines, Panel, Sums, Tokens
from physics.trajectory import provenance
from physics.trajectory.provenance import plain

KINDS = ("normal", "circle", "grid")
MOST = 6
"""Number of leading axes, and of leading principal components, that are offered as planes."""
TRAINING = "training step"
"""Name of the number of optimizer steps."""
STRONGEST = "strongest circle"
"""Name of the plane of the frequency with the largest Fourier signal."""
GRID = 1 / 3
"""Largest fraction of imperfect pair sums of a grid; in a random cloud nearly all pair sums are imperfect."""
LINE = 0.05
"""Ratio of the second to the first width of a grid below which the grid has collapsed to a line."""


class History:
    """Frames of a run in order, of which every other one is dropped whenever there are `limit` of them.

    The first and the last frame are always kept.
    """

    def __init__(self, limit: int = 1200) -> None:
        self._limit = limit
        self.clear()

    def clear(self) -> None:
        """Remove all frames, and keep every further one until there are `limit` of them again."""
        self._rows: list[tuple[int, dict[str, Any]]] = []
        self._stride, self._count = 1, 0

    def append(self, step: int, **values: Any) -> None:
        """Add a copy of a frame as the last one.

        It replaces the frame before if that has the same step, or is one of those that a long run leaves out.
        """
        row = step, {name: np.array(value) for name, value in values.items()}
        again = bool(self._rows) and self._rows[-1][0] == step
        if again or (self._rows and (self._count - 1) % self._stride):
            self._rows[-1] = row
        else:
            self._rows.append(row)
        self._count += not again
        if len(self._rows) >= self._limit:
            last = len(self._rows) - 1
            self._rows = [*self._rows[:last:2], self._rows[last]]
            self._stride *= 2

    def __len__(self) -> int:
        return len(self._rows)

    def frame(self, number: int) -> dict[str, Any]:
        """Return the values of a frame by name; the values are not copied."""
        return self._rows[number][1]

    @property
    def last(self) -> dict[str, Any]:
        """Values of the last frame by name; an update of this dict changes the frame."""
        return self._rows[-1][1]

    @property
    def steps(self) -> NDArray[np.int64]:
        """Step of each frame, as an array of int64 (frames,)."""
        return np.array([step for step, _ in self._rows], np.int64)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return the value called `name` in all frames, as an array (frames, ...)."""
        return np.array([values[name] for _, values in self._rows])


class Run:
    """A run that is computed step by step, with a history of frames.

    A subclass has `step`, `advance` and `reset`, and says what a trajectory of it holds.

    Attributes
    ----------
    history : History
        Frames of the run.
    positions_name : str
        Value of a frame that holds positions (tokens, dim).
    observables : tuple of str
        Values of a frame that a trajectory holds as observables.
    """

    history: History
    positions_name: str
    observables: ClassVar[tuple[str, ...]]

    def parameters(self) -> dict[str, Any]:
        """Return how the run is made."""
        raise NotImplementedError

    def trajectory(self, python: str = "") -> physics.Trajectory:
        """Return the kept frames with their observables, and with a program that reproduces the run."""
        history = self.history
        measured = {name: history[name][None].astype(float) for name in self.observables}
        return physics.Trajectory(
            history[self.positions_name][None],
            history.steps,
            history["time"] if "time" in history.last else None,
            observables=measured,
            parameters={"program": "grokphys explore", **self.parameters(), "python": python},
        )

    def require_bounded(self, positions: Any, step: int, advice: Callable[[], str]) -> None:
        """Raise a `SimulationError` if positions (1, tokens, dim) at a step are those of a blown-up run."""
        largest = float(np.abs(positions).max())
        first = self.history.frame(0)[self.positions_name][None]
        if not np.isfinite(largest) or blown_up(np.asarray(positions), first).any():
            raise physics.SimulationError(
                f"the run has blown up by step {step}: its largest coordinate is {largest:.1e}; {advice()}"
            )


class TrainingRun(Run):
    """A network in training.

    Parameters
    ----------
    model : Model
        Network to train.
    seed : int
        Seed of the network, at least 0.
    **settings
        Further arguments of `nets.Training`.

    Attributes
    ----------
    training : nets.Training
        The training.
    """

    def __init__(self, model: Any, seed: int, **settings: Any) -> None:
        self.model, self.seed, self.settings = model, seed, settings
        self.history = History(self.limit)
        self.reset()

    limit = 1200
    """Largest number of frames that are kept."""

    @property
    def step(self) -> int:
        """Number of optimizer steps taken."""
        return int(self.training.step)

    def reset(self) -> None:
        """Start again from the same initial weights."""
        import nets

        self.training = nets.Training(self.model, seed=self.seed, **self.settings)
        self.history.clear()

    def train(self, steps: int) -> None:
        """Take steps of the optimizer; a `SimulationError` says that the embedding has blown up."""
        self.training.advance(steps)
        advice = "reset it, and choose a smaller learning rate"
        self.require_bounded(self.training.embeddings, self.step, lambda: advice)

    def parameters(self) -> dict[str, Any]:
        """Return the model and the settings of the training."""
        model = {"type": type(self.model).__name__, **provenance.fields(self.model)}
        return {"model": model, "seed": self.seed, **self.settings}


# -- starts ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Start:
    """Initial positions of particles: given ones, or those that `physics.simulate` draws from a seed.

    Attributes
    ----------
    seed : int
        Seed of the positions, or of their noise; 0 for positions that were read from a file or a network.
    positions : ndarray of float64, shape (tokens, dim), or None
        Given positions; None if `physics.simulate` draws them.
    lines : tuple of str
        Python source after which the variable `name` holds given positions; empty for drawn ones.
    name : str
        Name of the variable.
    """

    seed: int = 0
    positions: Array | None = None
    lines: tuple[str, ...] = ()
    name: str = "E"


def start(kind: str, tokens: int, dim: int, seed: int, noise: float = 0.1) -> Start:
    """Return initial positions of a kind.

    Parameters
    ----------
    kind : {"normal", "circle", "grid"}
        "normal" is what `physics.simulate` draws. "circle" puts the tokens, in order, on a circle of radius
        √2 around the origin in the first two axes, of which a single dimension has only the first. "grid"
        puts them, in order, on the sites of a lattice of spacing 1 around the origin. Both add normal noise.
    tokens, dim : int
        Numbers of tokens and dimensions.
    seed : int
        Seed of the positions or of the noise, at least 0.
    noise : float, default 0.1
        Standard deviation of the noise, at least 0; "normal" ignores it.
    """
    if kind == "normal":
        return Start(seed)
    if kind == "circle":
        lines = [
            f"angle = 2 * np.pi * np.arange({tokens}) / {tokens}",
            f"E = np.zeros({(tokens, dim)})",
            f"E[:, :2] = np.sqrt(2) * np.stack([np.cos(angle), np.sin(angle)], axis=1)[:, :{dim}]",
        ]
    else:
        side = ceil(round(tokens ** (1 / dim), 9))
        sites = f"np.stack([np.arange({tokens}) // {side}**k % {side} for k in range({dim})], axis=1)"
        lines = [f"E = {sites} - {(side - 1) / 2!r}"]
    lines.append(f"E += {noise!r} * np.random.default_rng({seed}).standard_normal({(tokens, dim)})")
    names: dict[str, Any] = {"np": np}
    exec("\n".join(lines), names)  # so that the page shows what its program gives
    return Start(seed, names["E"], tuple(lines))


# -- planes ------------------------------------------------------------------------------------------------


def planes(dim: int, *, cyclic: bool = False) -> list[str]:
    """Return the names of the planes on which points of some dimension can be shown.

    They are such as "axes 1, 2" and "components 1, 2", and "strongest circle" if `cyclic` is True, so that
    tokens can form circles of several frequencies. With up to 2 dimensions, "axes 1, 2" is the only one.
    """
    if dim <= 2:
        return ["axes 1, 2"]
    axes = [f"axes {a}, {b}" for a, b in combinations(range(1, min(dim, MOST) + 1), 2)]
    components = [f"components {k}, {k + 1}" for k in range(1, min(dim, MOST), 2)]
    return [*axes, *components, *([STRONGEST] if cyclic else [])]


def plane_axes(E: Any, name: str, before: Array | None = None) -> Array:
    """Return the axes of a plane.

    Parameters
    ----------
    E : array_like, shape (tokens, dim)
        Points, from which principal components and circles are computed.
    name : str
        Name of the plane, one of `planes`.
    before : ndarray of float64, shape (2, dim), optional
        Axes of an earlier frame. Those of components and of circles are turned or mirrored within their plane
        to be as near to these as possible, so that a film does not jump.

    Returns
    -------
    ndarray of float64, shape (2, dim)
        Orthonormal rows; the second is 0 for dim = 1.
    """
    points = np.asarray(E, np.float64)
    dim = points.shape[1]
    kind, numbers = name.split(" ", 1)
    if name == STRONGEST:
        rows = analysis.frequency_plane(points, 1 + int(np.argmax(frequency_norms(points)))).axes
    else:
        chosen = [int(part) - 1 for part in numbers.split(", ")]
        if kind == "axes":
            return np.eye(max(dim, 2))[chosen, :dim]
        rows = np.linalg.svd(points - points.mean(axis=0), full_matrices=True)[2][chosen]
    if before is None or before.shape != rows.shape:
        return rows
    left, _, right = np.linalg.svd(before @ rows.T)  # of the orthogonal map with the smallest change
    return np.asarray(left @ right @ rows)


def projection(points: Array, axes: Array) -> str:
    """Return a note on how much of points (n, dim) a plane shows; none is needed for a plane itself."""
    if points.shape[1] <= 2:
        return ""
    around = points - points.mean(axis=0)
    around /= np.abs(around).max() or 1.0
    share = np.square(around @ axes.T).sum() / (np.square(around).sum() or 1.0)
    return f"Projected from {points.shape[1]} dimensions: {100 * share:.0f} % of the variance"


def token_panels(
    name: str, titles: tuple[str, str], E: Array, axes: Array, frame: int, task: tuple[Any, Any], **marks: Any
) -> dict[str, Panel]:
    """Return the panel of tokens in a plane, and that of their pair sums.

    Parameters
    ----------
    name : str
        Name of the panel of tokens, and with " sums" that of the pair sums.
    titles : pair of str
        Their titles.
    E : ndarray of float64, shape (frames, tokens, dim)
        Positions in all frames.
    axes : ndarray of float64, shape (2, dim)
        Orthonormal axes of the plane.
    frame : int
        The frame that is shown.
    task : pair of ndarray
        Tokens (pairs, 2) and class (pairs,) of each pair.
    **marks
        Further fields of `Tokens`.
    """
    paths, (pairs, classes) = E @ axes.T, task
    sums = E[frame][pairs].sum(axis=1)
    return {
        name: Tokens(title=titles[0], note=projection(E[frame], axes), paths=paths, frame=frame, **marks),
        f"{name} sums": Sums(
            title=titles[1],
            note=projection(sums, axes),
            points=sums @ axes.T,
            pairs=pairs,
            classes=classes,
            extent=2 * float(np.abs(paths).max()),
        ),
    }


def timed(panels: Mapping[str, Panel], now: float) -> dict[str, Panel]:
    """Return panels of which those of curves have a line at the time `now`."""
    return {name: replace(p, now=now) if isinstance(p, Lines) else p for name, p in panels.items()}


# -- texts and Python source ------------------------------------------------------------------------------


def asset(name: str) -> str:
    """Return the text of a file in `assets`."""
    return resources("grokphys.explorer").joinpath("assets", name).read_text(encoding="utf-8")


def sections(name: str, begin: str) -> dict[str, str]:
    """Return the parts of a file in `assets` by their names, which lines like `begin` hold as a group."""
    parts = re.split(rf"^{begin}\n", asset(name), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def program(view: str, /, **values: Any) -> str:
    """Return the program of "Copy as Python" for a view, from its template in `assets`."""
    lines = Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    return lines.from_string(sections("programs.txt", r"=== (\w+)")[view]).render(**values)


def arguments(**options: Any) -> str:
    """Return Python source of keyword arguments, such as ``tokens=17, dim=2``; floats keep all bits."""
    return ", ".join(f"{name}={plain(value)!r}" for name, value in options.items())


def constructed(package: str, made: Any) -> str:
    """Return Python source that constructs a dataclass again, without arguments at their defaults."""
    usual = type(made)()
    changed = {
        entry.name: getattr(made, entry.name)
        for entry in fields(made)
        if plain(getattr(made, entry.name)) != plain(getattr(usual, entry.name))
    }
    return f"{package}.{type(made).__name__}({arguments(**changed)})"


# -- shapes ------------------------------------------------------------------------------------------------


def circle_spacing(E: Any) -> int | None:
    """Return the number k of a circle around the origin, on which the neighbors of token i are i ± k.

    It is at most half the number of tokens, modulo which i ± k is taken; None stands for tokens in
    no such order. In more than two dimensions, the circle is sought in the plane through the origin to
    which the tokens are closest.
    """
    points = np.asarray(E, np.float64)
    if points.shape[1] > 2:
        points = points @ np.linalg.svd(points, full_matrices=False)[2][:2].T
    x, y = points.T
    around = np.argsort(np.arctan2(y, x))
    steps = np.diff(around, append=around[:1]) % len(points)
    return int(min(steps[0], len(points) - steps[0])) if (steps == steps[0]).all() else None


def shape(E: Array, imperfections: int) -> str:
    """Return a sentence about the shape of tokens.

    Tokens (tokens, dim) are a grid if they are no circle and at most the fraction `GRID` of their pair sums
    is imperfect: has a nearest other pair sum of another class.
    """
    tokens = len(E)
    if E.shape[1] > 1 and physics.is_circle(E):
        spacing, ratio = circle_spacing(E), float(physics.circle_ratio(E))
        if spacing is None:
            return f"Circle, ratio {ratio:.2f}, in no regular order."
        order = ", ".join(str(spacing * k % tokens) for k in range(4))
        return f"Circle, neighbors {spacing} apart ({order}, …), ratio {ratio:.2f}."
    if imperfections > GRID * (tokens * (tokens + 1) // 2):
        return "Neither a circle nor a grid."
    widths = np.linalg.svd(E - E.mean(axis=0), compute_uv=False)
    place = " on a line" if len(widths) == 1 or widths[1] < LINE * widths[0] else ""
    if imperfections == 0:
        return f"Perfect grid{place}: pair sums that lie together are of one class."
    return f"Grid{place}, {imperfections} imperfection{'s' if imperfections > 1 else ''}."
