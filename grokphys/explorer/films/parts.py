"""Parts of films. Most draw what does not move, and return a function that moves the rest to a frame."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from grokphys.explorer.films.export import Move
from grokphys.explorer.runs.planes import shortened
from grokphys.explorer.runs.ticks import log_ticks

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

Array = NDArray[np.float64]
TRAIL = 12
"""Length of a token's trail in frames."""
NUMBERED = 31
"""Largest number of tokens that are drawn with their numbers."""
MARKERS = "os^Dv"
"""Markers of pair sums by class modulo 5, as on the page, so that classes can be told apart without color."""
EDGE = "#444444"
Moving = TypeVar("Moving", bound="Artist")


def moving(artist: Moving) -> Moving:
    """Return an artist of matplotlib after marking it as animated, so that films draw it in every frame."""
    artist.set_animated(True)
    return artist


def together(*moves: Move) -> Move:
    """Return a function of the number of a frame that calls all `moves` with it, in order."""

    def move(frame: int) -> None:
        for part in moves:
            part(frame)

    return move


def title(ax: "Axes", words: Callable[[int], str]) -> Move:
    """Draw the changing title of axes, and return the function that moves it to a frame.

    `words` is a function of the number of a frame that returns its title.
    """
    text = moving(ax.set_title(words(0)))
    return lambda frame: text.set_text(words(frame))


def now(ax: "Axes", places: Any) -> Move:
    """Draw a vertical line, and return the function that moves it to a frame.

    `places` (frames,) are the horizontal positions of the line, such as times.
    """
    line = moving(ax.axvline(places[0], color=EDGE, linewidth=1))
    return lambda frame: line.set_xdata([places[frame]] * 2)


def grown(ax: "Axes", x: Any, y: Any, color: Any, **look: Any) -> Move:
    """Draw a curve faintly, and over it, in full color, the part up to a frame.

    Parameters
    ----------
    ax : matplotlib Axes
        Axes to draw on.
    x, y : array_like, shape (frames,)
        Points of the curve, one for each frame.
    color : matplotlib color
        Color of the curve.
    **look
        Other options of `Axes.plot`. A `label` belongs to the part in full color.

    Returns
    -------
    callable
        Function of the number of a frame that extends the part in full color up to that frame.
    """
    label = look.pop("label", None)
    ax.plot(x, y, color=color, alpha=0.25, **look)
    (line,) = map(moving, ax.plot(x, y, color=color, label=label, **look))
    return lambda frame: line.set_data(x[: frame + 1], y[: frame + 1])


def plane(ax: "Axes", extent: float, names: tuple[str, str] = ("", ""), *, label: str = "") -> None:
    """Let axes show the square from -extent to extent, without ticks, in a thin frame.

    Parameters
    ----------
    ax : matplotlib Axes
        Axes to set up.
    extent : float
        Largest coordinate that is shown.
    names : pair of str, default ("", "")
        Labels of the horizontal and the vertical axis.
    label : str, default ""
        Name of the axes, by which `Film.limits` finds them.
    """
    from analysis.plots.style import framed

    framed(ax).set(xlim=(-extent, extent), ylim=(-extent, extent), xlabel=names[0], ylabel=names[1])
    ax.set_aspect("equal", adjustable="box")
    ax.set_label(label)


def tokens(ax: "Axes", paths: Array, *, order: Any = None, cycle: Any = None) -> Move:
    """Draw tokens as discs with trails, and with their numbers if there are at most `NUMBERED` tokens.

    Parameters
    ----------
    ax : matplotlib Axes
        Axes to draw on.
    paths : ndarray of float64, shape (frames, tokens, 2)
        Positions of the tokens.
    order : array_like of int, shape (tokens,), optional
        Place of each token in the cycle of colors; by default its number.
    cycle : array_like of int, optional
        Tokens that a line joins in the given order; by default there is no line.

    Returns
    -------
    callable
        Function of the number of a frame that moves tokens and trails to it.
    """
    from matplotlib.collections import LineCollection

    from analysis.plots.palette import class_colors

    count = paths.shape[1]
    colors = class_colors(count)[slice(None) if order is None else order]
    fading = np.repeat(np.arange(1, TRAIL + 1), count)[:, None] * [0, 0, 0, 0.3 / TRAIL]
    trail = moving(LineCollection([], colors=fading, linewidths=0.8, zorder=1))
    ax.add_collection(trail, autolim=False)
    ring = None if cycle is None else moving(ax.plot([], [], color="#cfc9bd", linewidth=0.8, zorder=0)[0])
    numbered = count <= NUMBERED
    look: Any = {"s": 110 if numbered else 34, "c": colors, "linewidths": 0.5, "edgecolors": EDGE}
    x, y = paths[0].T
    discs = moving(ax.scatter(x, y, zorder=2, **look))
    names = moving(ax.scatter(x, y, s=1, c=_inks(colors), linewidths=0, zorder=3)) if numbered else None
    if names is not None:  # paths are drawn several times faster than texts
        names.set_paths([_written(str(token)) for token in range(count)])

    def move(frame: int) -> None:
        points = paths[frame]
        discs.set_offsets(points)
        past = paths[np.maximum(np.arange(frame - TRAIL, frame + 1), 0)]
        trail.set_segments(np.stack([past[:-1], past[1:]], axis=2).reshape(-1, 2, 2))  # type: ignore[arg-type]
        if ring is not None:
            ring.set_data(*points[cycle].T)
        if names is not None:
            names.set_offsets(points)

    return move


def arrows(ax: "Axes", paths: Array, vectors: Callable[[int], Array]) -> Move:
    """Draw an arrow at each moving point, and return the function that moves the arrows to a frame.

    Parameters
    ----------
    ax : matplotlib Axes
        Axes to draw on.
    paths : ndarray of float64, shape (frames, n, 2)
        Points at which the arrows begin.
    vectors : callable
        Function of the number of a frame that returns its arrows, shape (n, 2); `planes.shortened` fits them
        into the axes.
    """
    drawn = moving(
        ax.quiver(
            *paths[0].T, *paths[0].T, color="#c2502f", angles="xy", scale_units="xy", scale=1.0, zorder=4
        )
    )

    def move(frame: int) -> None:
        shown = shortened(vectors(frame), ax.get_ylim()[1])
        drawn.set_offsets(paths[frame])
        drawn.set_UVC(*shown.T)

    return move


def sums(ax: "Axes", points: Callable[[int], Array], classes: Any, count: int, held_out: Any = None) -> Move:
    """Draw pair sums with the color and the marker of their class, and return the function that moves them.

    Parameters
    ----------
    ax : matplotlib Axes
        Axes to draw on.
    points : callable
        Function of the number of a frame that returns its pair sums, shape (n, 2).
    classes : array_like of int, shape (n,)
        Class of each pair sum.
    count : int
        Number of classes.
    held_out : array_like of bool, shape (n,), optional
        Whether each pair is held out from training, and therefore drawn as an open marker; by default none
        is.
    """
    from matplotlib.markers import MarkerStyle

    from analysis.plots.palette import class_colors

    labels = np.asarray(classes)
    colors = class_colors(count)[labels]
    fills = colors.copy()
    if held_out is not None:
        fills[held_out] = (1, 1, 1, 1)
    edges: Any = np.where((fills == colors).all(axis=1, keepdims=True), [0.27, 0.27, 0.27, 1], colors)
    shapes = [MarkerStyle(marker) for marker in MARKERS]
    paths = [shape.get_path().transformed(shape.get_transform()) for shape in shapes]
    x, y = points(0).T
    drawn = moving(ax.scatter(x, y, s=17, c=fills, edgecolors=edges, linewidths=0.5))
    drawn.set_paths([paths[label % len(paths)] for label in labels])
    return lambda frame: drawn.set_offsets(points(frame))


def _written(words: str) -> Any:
    """Return the outline of a text around the origin as a matplotlib Path, in points."""
    from matplotlib.textpath import TextPath
    from matplotlib.transforms import Affine2D

    path = TextPath((0, 0), words, size=6.5)
    box = path.get_extents()
    return path.transformed(Affine2D().translate(-(box.x0 + box.x1) / 2, -(box.y0 + box.y1) / 2))


def _inks(colors: Array) -> list[str]:
    """Return "black" for each light color and "white" for each dark one of colors (n, 3 or 4) from 0 to 1."""
    return ["black" if light else "white" for light in colors[:, :3] @ (0.30, 0.59, 0.11) > 0.6]


def extent(points: Array) -> float:
    """Return the extent of a plane that shows points (..., 2) with a margin.

    It is the largest absolute coordinate and 12 % more, or 1 if all coordinates are 0.
    """
    return 1.12 * float(np.abs(points).max()) or 1.0


def curves(ax: "Axes", x: Any, named: Sequence[tuple[str, Array]], label: str) -> Move:
    """Draw named curves with different dashes, and a line at the time that the returned function moves.

    Parameters
    ----------
    ax : matplotlib Axes
        Axes to draw on.
    x : array_like, shape (frames,)
        Times of the frames.
    named : sequence of pairs of str and ndarray, shape (frames,)
        Names for the legend, and values; only the first three curves are drawn.
    label : str
        Label of the horizontal axis.
    """
    for (name, values), dash in zip(named, ("-", "--", ":"), strict=False):
        ax.plot(x, values, dash, label=name)
    ax.set(xlabel=label, xlim=(x[0], x[-1] or 1.0))
    legend(ax)
    return now(ax, x)


def plain_ticks(*axes: "Axis") -> None:
    """Write round numbers along logarithmic axes, also within a decade, instead of powers of ten."""
    from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

    class Round(FixedLocator):
        def tick_values(self, vmin: float, vmax: float) -> list[float]:
            return log_ticks(min(vmin, vmax), max(vmin, vmax), 5)

        def __call__(self) -> list[float]:
            axis: Any = self.axis
            return self.tick_values(*axis.get_view_interval())

    for axis in axes:
        axis.set_major_locator(Round([]))
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.set_minor_locator(NullLocator())


def legend(ax: "Axes", columns: int = 2) -> None:
    """Draw the legend of axes above them, where it hides no curve, in up to `columns` columns."""
    place: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.1}
    ax.legend(ncols=columns, fontsize=7.5, columnspacing=1.2, handlelength=2.2, **place)
