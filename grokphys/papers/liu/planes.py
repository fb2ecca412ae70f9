"""Liu et al.: networks over a plane of two hyperparameters, rules for their phases, and figures of them.

Two networks of one cell that differ only in their seed can have different phases. Some recipes therefore
train several networks in each cell, and the figures show the share of each phase.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from analysis.phases.axes import Axis, Span
from analysis.phases.classification import DELAY, PHASES, classify_phases
from analysis.plots.palette import INK, WHITE
from analysis.plots.palette import PHASES as PHASE_COLORS
from analysis.plots.style import points, style
from analysis.stats.intervals import Interval
from grokphys.papers.counters.builders import rarest_absent
from grokphys.papers.evidence import difference, jackknife, joined, share, shuffled, where
from grokphys.papers.liu.measures import contrast, smallest
from grokphys.papers.recipe import Draw, Result, Run, Statement, Tables
from grokphys.phases import ACCURACIES, Training, axis

LOW: Span = (0.0, 1 / 3)
HIGH: Span = (2 / 3, 1.0)
ALL: Span = (0.0, 1.0)
"""Parts of an axis as fractions of its length; `LOW` and `HIGH` define the corners of the plane."""
GENERAL = ("comprehension", "grokking")
"""Phases of the networks that generalize."""
Columns = Mapping[str, NDArray[Any]]


# -- networks ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plane:
    """Setting of a phase diagram over the decoder's learning rate (x) and another hyperparameter (y).

    Attributes
    ----------
    models : mapping of str to Model
        Model that is trained for each diagram, by title.
    x, y : tuple of str, float and float
        Name of a hyperparameter, and the limits of its axis.
    cells : int
        Number of cells along each axis.
    each : int
        Number of networks in a cell.
    steps : int
        Largest number of steps of a training.
    options : mapping
        Other arguments of `nets.train`.
    seed : int
        Seed, to which the place of the diagram is added.
    delay : float, default DELAY
        Number of steps between fitting and generalizing from which a network counts as grokking.
    thresholds : mapping of str to float, default ACCURACIES
        Training and validation accuracies at which a network has fitted its training set, or has generalized.
    labels : pair of str, default ("", "")
        Labels of the axes in the figures; by default they follow from the names.
    """

    models: Mapping[str, Any]
    x: tuple[str, float, float]
    y: tuple[str, float, float]
    cells: int
    each: int
    steps: int
    options: Mapping[str, Any]
    seed: int
    delay: float = DELAY
    thresholds: Mapping[str, float] = field(default_factory=lambda: ACCURACIES)
    labels: tuple[str, str] = ("", "")

    def axes(self, model: Any) -> tuple[Axis, Axis]:
        """Return the horizontal and the vertical axis of the diagram of a model."""
        first, second = (
            axis(model, *side, self.cells, label=label)
            for side, label in zip((self.x, self.y), self.labels, strict=True)
        )
        return first, second

    def edges(self, model: Any) -> list[list[float]]:
        """Return the values between which the cells lie, on the horizontal and on the vertical axis."""
        return [[one.value(k / self.cells) for k in range(self.cells + 1)] for one in self.axes(model)]


def train_plane(run: Run, plane: Plane, *, family: str = "", width: int = 0) -> dict[str, NDArray[Any]]:
    """Train the networks of all cells of a plane, and return a table with a row for each of them.

    Its columns include the title of the diagram, the cell ("column" and "row"), the steps to both accuracies
    (infinite if never), and the phase. `Run.keep` stores each row of cells, for all recipes of the `family`,
    or each piece of a row that is `width` cells wide.
    """
    parts = []
    for title in plane.models:
        for row in range(plane.cells):
            for first in range(0, plane.cells, width or plane.cells):
                columns = range(first, min(first + (width or plane.cells), plane.cells))
                name = f"{title}-row-{row}" + (f"-column-{first}" if width else "")
                make = partial(_train_cells, plane, title, row, columns)
                parts.append(run.keep(name.replace(" ", "-").replace(",", ""), make, family=family))
    return joined(parts)


def _train_cells(plane: Plane, title: str, row: int, cells: range) -> dict[str, Any]:
    model = plane.models[title]
    x, y = plane.axes(model)
    columns = np.repeat(cells, plane.each)
    value = y.point(y.spans[row])
    points = [(float(x.point(x.spans[column])), value) for column in columns]
    training = Training(
        model,
        x,
        y,
        plane.steps,
        plane.delay,
        plane.thresholds,
        plane.seed + list(plane.models).index(title),
        plane.options,
    )
    found = training(points, (row * plane.cells + cells.start) * plane.each)
    steps = np.where(np.isfinite(found[:, 1:]), found[:, 1:], np.inf)
    return {
        "diagram": np.full(len(points), title),
        "column": columns,
        "row": np.full(len(points), row),
        plane.x[0]: np.array([point[0] for point in points]),
        plane.y[0]: np.array([point[1] for point in points]),
        "network": found[:, 0].astype(int),
        "train_steps": steps[:, 0],
        "validation_steps": steps[:, 1],
        "phase": classify_phases(found[:, 1], found[:, 2], delay=plane.delay),
    }


# -- rules -------------------------------------------------------------------------------------------------


def inside(rows: Columns, x: Span = ALL, y: Span = ALL) -> NDArray[np.bool_]:
    """Return which networks are in a part of the plane, bool (n,).

    A network is inside if the middle of its cell lies in the spans x and y, as fractions of the axes.
    """
    found = np.ones(len(rows["row"]), bool)
    for name, (low, high) in (("column", x), ("row", y)):
        place = (rows[name] + 0.5) / (np.max(rows[name]) + 1)
        found &= (low <= place) & (place <= high)
    return found


def excess(phase: str, x: Span, y: Span, title: str = "") -> Callable[[Tables, float], Interval]:
    """Return a `Measure` of the share of a phase in a part of the plane, minus its share elsewhere.

    x and y are spans of the axes as fractions. Without a title, the networks of all diagrams count.
    """

    def measure(tables: Tables, level: float) -> Interval:
        rows = _of(tables, title)
        return contrast(rows["phase"] == phase, inside(rows, x, y), level)

    return measure


def between(
    phase: str | Sequence[str], x: Span, here: Span, there: Span, *, title: str = ""
) -> Callable[[Tables, float], Interval]:
    """Return a `Measure` of the share of a phase in one part of the vertical axis, minus that in another.

    Only networks in the span x of the horizontal axis count. `phase` may name several phases. Spans and the
    title are as in `excess`.
    """

    def measure(tables: Tables, level: float) -> Interval:
        rows = _of(tables, title)
        found = np.isin(rows["phase"], phase)
        return difference(*(share(found[inside(rows, x, y)], level) for y in (here, there)))

    return measure


def corner(
    name: str, quote: str, source: str, phase: str, x: Span, y: Span, title: str = "", note: str = ""
) -> Statement:
    """Return the rule that a phase is far more frequent in a corner of the plane than elsewhere.

    x and y are spans of the axes as fractions. Without a title, the networks of all diagrams count. The other
    arguments are those of `Statement`, and `excess` measures the difference.
    """
    return Statement(
        name,
        quote,
        source,
        f"share of {phase} in that ninth of the plane minus its share elsewhere; by chance 0",
        excess(phase, x, y, title),
        chance=CHANCE,
        least=0.4,
        note=note,
    )


CHANCE = shuffled("networks", "phase")


def _of(tables: Tables, title: str) -> Columns:
    rows = tables["networks"]
    return where(rows, diagram=title) if title else rows


def rarest_phase(tables: Tables, level: float) -> Interval:
    """Return the share of networks in the rarest of the four phases.

    Its interval has the smallest lower and the smallest upper bound of the four shares.
    """
    return smallest([share(tables["networks"]["phase"] == phase, level) for phase in PHASES])


FOUR = Statement(
    "four phases",
    "they all include four phases",
    "Section 4.1",
    "share of the rarest phase among the networks of the plane",
    rarest_phase,
    chance="none: where phases stand in the plane changes no share",
    counter=rarest_absent("networks", "phase"),
    least=0.01,
    digits=3,
)


def _densities(column: Any, row: Any, phase: Any) -> NDArray[np.float64]:
    """Return the share of each of the `PHASES` in each cell, float64 (phases, rows, columns).

    The arguments (n,) are the column, the row and the phase of each network. The shares of a cell without
    networks are zero.
    """
    shape = (len(PHASES), int(np.max(row)) + 1, int(np.max(column)) + 1)
    counts = np.zeros(shape)
    np.add.at(counts, (np.searchsorted(sorted(PHASES), phase), row, column), 1)
    counts = counts[[sorted(PHASES).index(name) for name in PHASES]]
    return counts / np.maximum(counts.sum(axis=0), 1)


BORDERS = (
    ("grokking", "comprehension"),
    ("grokking", "memorization"),
    ("comprehension", "memorization"),
)


def _sandwiched(column: Any, row: Any, phase: Any) -> float:
    """Return how much more grokking borders on comprehension and memorization than these on each other.

    The arguments (n,) are as in `_densities`. Each of the three borders is a share of all borders, in excess
    of chance. The border of comprehension and memorization is subtracted from the lesser of the two borders
    of grokking. The result is NaN if one of the three phases is absent or no two of them touch.
    """
    density = dict(zip(PHASES, _densities(column, row, phase), strict=True))

    def contact(first: str, second: str) -> float:
        a, b = density[first], density[second]
        across = np.sum(a[:, 1:] * b[:, :-1] + a[:, :-1] * b[:, 1:])
        return float(across + np.sum(a[1:] * b[:-1] + a[:-1] * b[1:]))

    found = np.array([contact(*pair) for pair in BORDERS])
    expected = np.array([density[a].mean() * density[b].mean() for a, b in BORDERS])
    if not found.sum() or not expected.all():
        return float("nan")
    beyond = found / found.sum() - expected / expected.sum()
    return float(min(beyond[:2]) - beyond[2])


def sandwiched(tables: Tables, level: float) -> Interval:
    """Return what `_sandwiched` returns for all networks, with a jackknife interval over cells."""
    rows = tables["networks"]
    cells = rows["row"].astype(int) * 10_000 + rows["column"].astype(int)
    return jackknife(_sandwiched, (rows["column"], rows["row"], rows["phase"]), level, groups=cells)


SANDWICH = Statement(
    "sandwiched",
    "grokking is sandwiched between comprehension and memorization",
    "Section 4.1",
    "of all borders between these three phases, the share of those of grokking (with the one that it "
    "has less of) minus the share between the two others, each in excess of chance",
    sandwiched,
    chance=CHANCE,
    least=0.1,
    independent="cell",
)


# -- pictures ----------------------------------------------------------------------------------------------


def show_planes(rows: Columns, plane: Plane, *, downwards: bool = True) -> Figure:
    """Draw the most frequent phase of each cell, and if it has several networks the share of each phase.

    `rows` is the table that `train_plane` has made of the `plane`. Each diagram has a row of panels. A dot
    marks cells in which several phases are the most frequent; they have the color of the first of the
    `PHASES`. The vertical axis points downwards by default, as in most figures of the paper.
    """
    titles = list(plane.models)
    several = plane.each > 1
    networks = f"{plane.each} networks" if several else "one network"
    width, columns = (13.6, 5) if several else (5.0, 1)
    marks: list[Artist] = []
    with style(width):
        figure = Figure(figsize=(width, 1.4 + 3.2 * len(titles)))
        grid = figure.subplots(len(titles), columns, squeeze=False, sharey="row")
        for title, line in zip(titles, grid, strict=True):
            own = where(rows, diagram=title)
            density = _densities(own["column"], own["row"], own["phase"])
            axes = plane.axes(plane.models[title])
            x, y = axes
            edges = plane.edges(plane.models[title])
            show_phases(line[0], edges, density.argmax(axis=0))
            marks = _mark_ties(line[0], axes, density) or marks
            words = fill(title, 20 if several else 50).replace("S_3", "$S_3$")
            words += f"\nmost frequent of {plane.each}" if several else ""
            line[0].set(title=words, ylabel=y.label)
            for ax, name, part in zip(line[1:], PHASES, density, strict=several):
                colors = LinearSegmentedColormap.from_list(name, [WHITE, PHASE_COLORS[name]])
                ax.pcolormesh(*edges, part, cmap=colors, vmin=0, vmax=1)
                ax.set_title(f"share of\n{name}")
            for ax in line:
                ax.set(xscale=x.scale, yscale=y.scale)
            if downwards:
                line[0].invert_yaxis()
            line[columns // 2].set_xlabel(x.label)
        shades = "; shares: white for none, full color for all" if several else ""
        name_phases(figure, *marks, title=f"{networks} in each cell{shades}", columns=4 if several else 2)
    return figure


def _mark_ties(ax: Axes, axes: tuple[Axis, Axis], density: NDArray[np.float64]) -> list[Artist]:
    """Draw a dot in the cells in which several phases are the most frequent; return the dots, if any.

    `density` holds the share of each phase in each cell, as `_densities` returns it.
    """
    most = density.max(axis=0)
    row, column = np.nonzero((density == most).sum(axis=0) * (most > 0) > 1)
    if not len(row):
        return []
    x, y = (
        [axis.value((k + 0.5) / count) for k in places]
        for axis, places, count in zip(axes, (column, row), most.shape[::-1], strict=True)
    )
    look: Any = {"color": INK, "edgecolors": WHITE, "linewidths": 1}
    return [ax.scatter(x, y, s=points(5) ** 2, label="tie, in the color listed first", **look)]


def show_phases(ax: Axes, edges: Sequence[Sequence[float]], phases: NDArray[np.int64]) -> None:
    """Draw the phase of each cell in its color: places in `PHASES` (rows, columns), between `Plane.edges`."""
    palette = ListedColormap([PHASE_COLORS[name] for name in PHASES])
    ax.pcolormesh(*edges, phases, cmap=palette, vmin=-0.5, vmax=len(PHASES) - 0.5)


def name_phases(figure: Figure, *others: Artist, title: str = "", columns: int = 4) -> None:
    """Add a legend with the colors of the phases, in some columns, below the panels of a figure.

    The legend also has the labels of `others` in further columns, and a `title` above all entries.
    """
    handles = [*(Patch(color=PHASE_COLORS[name], label=name) for name in PHASES), *others]
    place: Any = {"loc": "outside lower center", "ncols": columns + len(others), "frameon": False}
    figure.legend(handles=handles, title=title, **place)


def drawing(name: str, *, downwards: bool = True) -> Draw:
    """Return a function `draw` for a recipe, which makes the figure of `show_planes` and calls it `name`."""

    def draw(setting: Plane, tables: Tables) -> dict[str, Figure]:
        return {name: show_planes(tables["networks"], setting, downwards=downwards)}

    return draw


def trained(run: Run, *, width: int = 0) -> Result:
    """Train the networks of the plane of a `run`; return a `Result` with the table "networks" alone.

    `width` is as in `train_plane`.
    """
    return Result({"networks": train_plane(run, run.setting, width=width)})


def diagram(run: Run, name: str, *, width: int = 0) -> Result:
    """Return what `trained` does, with a figure called `name`, for a recipe that has no function `draw`."""
    result = trained(run, width=width)
    return replace(result, figures=drawing(name)(run.setting, result.columns()))
