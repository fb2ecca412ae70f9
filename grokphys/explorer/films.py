"""What the figures of a view show, as panels of data, and pictures and films of them by matplotlib."""

import io
import math
import subprocess
import tempfile
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.colors import ListedColormap, to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter
from numpy.typing import NDArray
from PIL import Image

from analysis.plots import palette
from analysis.plots.style import framed, style
from grokphys.output import printable
from physics.checks import number, whole_number
from physics.errors import OutputError

Array = NDArray[np.float64]
SERIES = ("#0b6e99", "#c75b39", "#3c8a65", "#5b2a7a", "#917a28", "#1f1f1f")
"""Colors of curves: those of the library's figures, darker where they would be too light to see."""
DASHES = ("solid", "dashed", "dotted", "dashdot", "solid", "dashed")
INK, FAINT, EDGE, WARM = "#1d2733", "#8d887d", "#444444", "#c2502f"
"""Colors of exact lines, of curves in the background, of the edges of discs, and of marks."""
SHADE = 0.72
"""Brightness of thin lines and small texts in the color of a class, compared with its areas."""


def class_colors(count: int) -> list[str]:
    """Return one color (#rrggbb) for each of `count` classes or tokens, as in the library's figures."""
    return [to_hex(color) for color in palette.class_colors(count)]


def line_colors(count: int) -> list[str]:
    """Return `class_colors`, darkened for thin lines and for text on a light background."""
    return [to_hex(SHADE * color[:3]) for color in palette.class_colors(count)]


def text_colors(count: int) -> list[str]:
    """Return black or white for text on each of the `class_colors`; dark mode inverts both alike."""
    return [palette.ink_on(color) for color in palette.class_colors(count)]


# -- panels ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Panel:
    """What one figure shows; `hint` says what can be done with it, and `note` what is left out."""

    title: str = ""
    hint: str = ""
    note: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class Tokens(Panel):
    """Tokens in a plane around the origin, as numbered discs with trails of where they came from.

    Attributes
    ----------
    paths : ndarray of float64, shape (frames, tokens, 2)
        Places in all frames, whose extent the figure keeps. A single frame has no trail of its own: on the
        page, it continues those of the frames before.
    frame : int, default -1
        The frame that is shown.
    order : ndarray of int, shape (tokens,), optional
        Place of each token around the cycle of colors, by default its number.
    chain : ndarray of int, optional
        Tokens that a line joins.
    arrows : ndarray of float64, shape (tokens, 2), optional
        Arrows at the tokens, which are shortened alike where they are too long.
    chosen : int, optional
        Token with a ring around it.
    labels : sequence of str
        Labels of the axes in pictures.
    """

    paths: Array
    frame: int = -1
    order: Any = None
    chain: Any = None
    arrows: Array | None = None
    chosen: int | None = None
    labels: Sequence[str] = ("", "")


@dataclass(frozen=True, kw_only=True, eq=False)
class Parallelograms(Tokens):
    """Tokens with `outlines` (n, points, 2) of the parallelograms of a training set.

    They have the colors of their `classes` (n,), of `count`. In the plane, they are closed quadrilaterals. On
    a line, each trained pair whose class has another trained pair is a half circle, above the line for even
    classes and below it for odd ones; a parallelogram is satisfied if its two half circles have one center.
    """

    outlines: Array
    classes: Any
    count: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Sums(Panel):
    """Sums of pairs of tokens in a plane, with the color and the marker of their class.

    Attributes
    ----------
    points : ndarray of float64, shape (n, 2)
        Pair sums.
    pairs : array_like of int, shape (n, 2)
        Tokens of each pair.
    classes : array_like of int, shape (n,)
        Class of each pair sum, from 0.
    held_out : array_like of bool, shape (n,), optional
        Whether each pair is held out from training, and therefore hollow; by default none is.
    map : ndarray of uint8, shape (rows, columns), optional
        Classes that a network assigns to the points of the plane within `bounds`: left, right, bottom, top.
    extent : float, optional
        Largest coordinate of all frames of a film; by default that of the points.
    """

    points: Array
    pairs: Any
    classes: Any
    held_out: Any = None
    map: Any = None
    bounds: tuple[float, float, float, float] = (-1.0, 1.0, -1.0, 1.0)
    extent: float | None = None


@dataclass(frozen=True)
class Curve:
    """A curve: values y (n,) against x (n,), and how it is drawn.

    With a `label` it is named in the legend. Later curves are drawn over earlier ones.
    """

    x: Any
    y: Any
    color: str
    dash: str = "solid"
    name: str = ""
    label: str = ""
    width: float = 1.7


@dataclass(frozen=True, kw_only=True, eq=False)
class Lines(Panel):
    """Curves, a horizontal line at a `level` such as a limit, and a vertical one at the present time `now`.

    The axes are logarithmic with `log`, a word of the axes such as "y" or "xy". The vertical range is
    `y_range`, where it is fixed. The curves end in dots with `dots`. On an axis of whole numbers there are
    about `whole` ticks.
    """

    curves: Sequence[Curve]
    now: float | None = None
    level: float | None = None
    xlabel: str = "step"
    ylabel: str = ""
    log: str = ""
    y_range: tuple[float, float] | None = None
    dots: bool = True
    whole: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Matrix(Panel):
    """A square matrix as colors, red if positive and blue if negative, whose axes count from `first`.

    On a logarithmic scale, entries below a hundredth of the largest are still pale.
    """

    values: Any
    rows: str
    columns: str
    first: int = 0
    log: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class PairGrid(Panel):
    """A cell for each pair (i, j) of symbols with i ≤ j.

    A pair of `samples` (n, 2) is filled if it is `trained` (n,), framed if its answer `follows` (n,) from the
    trained ones, and otherwise empty. A line joins each of `diagonals`, groups of pairs (k, 2).
    """

    samples: Any
    label: Any
    trained: Any
    follows: Any
    diagonals: Sequence[Any]


def series(x: Any, curves: Mapping[str, Any], *, label: bool = True) -> list[Curve]:
    """Return curves against x, by their names, in the colors and dashes of the design."""
    return [
        Curve(x, y, SERIES[k % len(SERIES)], DASHES[k % len(DASHES)], name, name if label else "")
        for k, (name, y) in enumerate(curves.items())
    ]


def cycle(x: Any, curves: Sequence[Any], dash: str = "solid", first: int = 0) -> list[Curve]:
    """Return curves in the colors of as many tokens or classes, with names that count from `first`."""
    colors = line_colors(len(curves)) if len(curves) else []
    return [
        Curve(x, y, color, dash, str(k))
        for k, (y, color) in enumerate(zip(curves, colors, strict=True), first)
    ]


def sum_colors(panel: Sums) -> tuple[NDArray[np.str_], NDArray[np.str_]]:
    """Return the color of the area and of the edge of each pair sum."""
    classes, count = np.asarray(panel.classes), int(np.max(panel.classes)) + 1
    hollow = np.zeros(len(classes), bool) if panel.held_out is None else np.asarray(panel.held_out)
    area, line = (np.array(colors(count))[classes] for colors in (class_colors, line_colors))
    return np.where(hollow, "#ffffff", area), np.where(hollow, line, EDGE)


def shortened(vectors: Array, edge: float) -> Array:
    """Return arrows (n, 2), all shortened by one factor if one is longer than a third of `edge`."""
    longest = float(np.hypot(*vectors.T).max(initial=0.0))
    return vectors * min(1.0, edge / 3 / longest) if longest > 0 else vectors


# -- pictures and films ------------------------------------------------------------------------------------

Scene = tuple[str, Mapping[str, Panel]]
"""What one frame shows: a title, and panels by their names."""
Bounds = tuple[float, float, float, float]
LONGEST = 150
"""Default of the largest number of pictures of a film."""
SLOWEST, FASTEST = 0.01, 50.0
"""Fewest and most pictures per second of a film: a GIF shows a picture for at most 655 seconds."""
LAST = 1.5
"""Seconds for which a GIF shows its last picture before it repeats."""
LETTERS = 15
"""Number of letters of a caption per inch of the picture."""
TRAIL = 12
"""Length of a token's trail in frames."""
NUMBERED = 31
"""Largest number of tokens that are drawn with their numbers."""
MARKERS = "os^Dv"
"""Markers of pair sums by class modulo 5, as on the page."""


@dataclass(frozen=True)
class Film:
    """A film that can be drawn frame by frame.

    Attributes
    ----------
    frames : int
        Number of frames, at least 1.
    draw : callable
        ``draw(figure, frame)`` draws a frame, 0 … frames-1, on an empty figure of matplotlib. The film owns
        all of its arrays, because a worker draws it while the run goes on.
    size : tuple of float
        Width and height in inches.
    shown : int
        Frame of a single picture, such as the one on screen; -1 is the last.
    limits : mapping of str to tuple of float
        Left, right, bottom and top of axes by their labels (``ax.set_label(name)``).
    caption : str
        Words below the axes.
    """

    frames: int
    draw: Callable[[Figure, int], None]
    size: tuple[float, float] = (7.0, 5.0)
    shown: int = -1
    limits: Mapping[str, Bounds] = field(default_factory=dict)
    caption: str = ""


def pictures(film: Film, frames: Sequence[int], dpi: float) -> Iterator[Image.Image]:
    """Yield an RGB image of each of some frames, with axes at the same places."""
    with style():
        figure = Figure(figsize=film.size, dpi=dpi, layout="constrained")
    canvas, places = FigureCanvasAgg(figure), list[Any]()
    for frame in frames:
        with style():
            figure.clear()
            film.draw(figure, range(film.frames)[frame])
            for ax in figure.axes:
                if str(ax.get_label()) in film.limits:
                    left, right, bottom, top = film.limits[str(ax.get_label())]
                    ax.set(xlim=(left, right), ylim=(bottom, top))
            if film.caption:
                width = round(LETTERS * film.size[0])
                lines = [textwrap.fill(printable(line), width) for line in film.caption.splitlines()]
                # names of files in it are no formulas
                figure.supxlabel("\n".join(lines), fontsize=8, color="#5c6773", parse_math=False)
            for ax, place in zip(figure.axes, places, strict=bool(places)):
                ax.set_position(place)
            canvas.draw()
        if not places:  # the first picture decides where axes stand
            places = [ax.get_position(original=True) for ax in figure.axes]
            figure.set_layout_engine("none")
        pixels = np.asarray(canvas.buffer_rgba())
        yield Image.frombytes("RGB", pixels.shape[1::-1], pixels.tobytes(), "raw", "RGBX")


Watch = Callable[[Iterable[Any]], Iterable[Any]]
"""Function that passes on the pictures of a film, and may count them or end the work by an exception."""


def png(film: Film, *, dpi: float = 160) -> bytes:
    """Return the frame `shown` of a film as a PNG picture."""
    out = io.BytesIO()
    next(pictures(film, [film.shown], dpi)).save(out, "PNG", dpi=(dpi, dpi))
    return out.getvalue()


def gif(
    film: Film, *, fps: float = 20.0, longest: int = LONGEST, dpi: float = 80, watch: Watch = iter
) -> bytes:
    """Return a film as an animated GIF that repeats, with the 256 colors that suit each picture best.

    Parameters
    ----------
    film : Film
        The film.
    fps : float, default 20
        Pictures per second, from 0.01 to 50. A GIF counts hundredths of a second, so that some pictures of a
        film may be shown a hundredth longer than others.
    longest : int, default 150
        Largest number of pictures, evenly distributed over the frames.
    dpi : float, default 80
        Resolution in dots per inch.
    watch : callable, optional
        Function through which the pictures pass.

    Raises
    ------
    InputError
        If `fps` or `longest` is out of its range.
    """
    frames = _chosen(film, fps, longest)
    shown = watch(pictures(film, frames, dpi))
    made = (picture.quantize(256, dither=Image.Dither.NONE) for picture in shown)
    ends = [round(100 * k / fps) for k in range(len(frames))]
    durations = [*(10 * np.diff(ends)).tolist(), round(1000 * LAST)]
    out = io.BytesIO()
    look: Any = {"duration": durations, "loop": 0, "optimize": False}
    next(made).save(out, "GIF", save_all=True, append_images=made, **look)
    return out.getvalue()


def mp4(
    film: Film, *, fps: float = 20.0, longest: int = LONGEST, dpi: float = 120, watch: Watch = iter
) -> bytes:
    """Return a film as an MP4 (H.264), which the program ffmpeg makes; see `gif`.

    Raises
    ------
    InputError
        If `fps` or `longest` is out of its range.
    OutputError
        If there is no ffmpeg, or it fails.
    """
    frames = _chosen(film, fps, longest)
    try:
        from imageio_ffmpeg import get_ffmpeg_exe

        program = get_ffmpeg_exe()
    except (ImportError, RuntimeError):  # the package has no ffmpeg for some machines
        raise OutputError(
            "an MP4 needs the program ffmpeg: pip install 'grokphys[explore]'; a GIF needs nothing"
        ) from None
    with tempfile.TemporaryDirectory() as folder:
        for k, picture in enumerate(watch(pictures(film, frames, dpi))):
            picture.save(f"{folder}/{k}.png", compress_level=1)
        shown = ["-framerate", f"{fps}", "-i", f"{folder}/%d.png"]
        even = "crop=trunc(iw/2)*2:trunc(ih/2)*2"  # players need an even number of pixels
        coded = ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf", "18", "-movflags", "+faststart"]
        command = [program, "-v", "error", *shown, "-vf", even, *coded, f"{folder}/film.mp4"]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if done.returncode:
            words = done.stderr.decode(errors="replace").strip().splitlines()
            raise OutputError(f"ffmpeg failed: {words[-1] if words else done.returncode}")
        return (Path(folder) / "film.mp4").read_bytes()


def _chosen(film: Film, fps: float, longest: int) -> list[int]:
    """Return the numbers of at most `longest` evenly spaced frames; a single one is the last."""
    number("fps", fps, SLOWEST, FASTEST)
    count = min(film.frames, whole_number("longest", longest, 1))
    return np.linspace(film.frames - 1, 0, count).round().astype(int).tolist()[::-1]


# -- panels as pictures ------------------------------------------------------------------------------------


def film(
    scene: Callable[[int], Scene],
    frames: int,
    rows: Sequence[Sequence[str]],
    size: tuple[float, float],
    ratios: Sequence[float] | None = None,
) -> Film:
    """Return a film of panels.

    Parameters
    ----------
    scene : callable
        Function of the number of a frame that returns what it shows.
    frames : int
        Number of frames.
    rows : sequence of sequences of str
        Names of the panels in each row; those that a scene does not have are left out.
    size : tuple of float
        Width and height in inches.
    ratios : sequence of float, optional
        Relative heights of the rows.
    """

    def draw(figure: Figure, frame: int) -> None:
        title, shown = scene(frame)
        there = [[name for name in row if name in shown] for row in rows]
        ends = [height for height, row in zip(ratios or [1] * len(rows), there, strict=True) if row]
        there = [row for row in there if row]
        columns = math.lcm(*map(len, there))
        mosaic: Any = [[name for name in row for _ in range(columns // len(row))] for row in there]
        figure.suptitle(title, fontsize=11)
        for name, ax in figure.subplot_mosaic(mosaic, height_ratios=ends).items():
            ax.set(title=f"{shown[name].title}\n{shown[name].note}".strip(), label=name)
            DRAW[type(shown[name])](ax, shown[name])

    return Film(frames, draw, size)


def _plane(ax: Axes, extent: float) -> None:
    """Let axes show the square from -extent to extent, without ticks, in a thin frame."""
    extent = 1.12 * extent or 1.0
    framed(ax).set(xlim=(-extent, extent), ylim=(-extent, extent))
    ax.set_aspect("equal", adjustable="box")


def _tokens(ax: Axes, panel: Tokens) -> None:
    """Draw tokens, with trails, a chain and arrows."""
    points, count = panel.paths[panel.frame], panel.paths.shape[1]
    frame = range(len(panel.paths))[panel.frame]
    _plane(ax, float(np.abs(panel.paths).max()))
    order = range(count) if panel.order is None else panel.order
    colors, texts = class_colors(count), text_colors(count)
    past = panel.paths[max(0, frame - TRAIL) : frame + 1]
    trails = np.concatenate([past, np.full_like(past[:1], np.nan)]).transpose(2, 1, 0).reshape(2, -1)
    ax.plot(*trails, color="#c4c4c4", linewidth=0.8, zorder=1)
    if panel.chain is not None:
        ax.plot(*points[panel.chain].T, color="#cfc9bd", linewidth=0.8, zorder=0)
    numbered = count <= NUMBERED
    look: Any = {"s": 110 if numbered else 34, "linewidths": 0.5, "edgecolors": EDGE, "zorder": 2}
    ax.scatter(points[:, 0], points[:, 1], c=[colors[place] for place in order], **look)
    middle: Any = {"ha": "center", "va": "center_baseline", "fontsize": 6.5, "zorder": 3, "in_layout": False}
    for token, place in enumerate(order if numbered else ()):
        ax.text(points[token, 0], points[token, 1], str(token), color=texts[place], **middle)
    if panel.arrows is not None:
        arrows = shortened(panel.arrows, ax.get_ylim()[1])
        look = {"angles": "xy", "scale_units": "xy", "scale": 1.0, "zorder": 4}
        ax.quiver(*points.T, *arrows.T, color=WARM, **look)
    ax.set(xlabel=panel.labels[0], ylabel=panel.labels[1])


def _parallelograms(ax: Axes, panel: Parallelograms) -> None:
    """Draw tokens over half circles or quadrilaterals."""
    colors: Any = np.array(line_colors(panel.count))[panel.classes]
    lines = LineCollection(list(panel.outlines), colors=colors, linewidths=0.8, alpha=0.7)
    ax.add_collection(lines, autolim=False)
    _tokens(ax, panel)


def _sums(ax: Axes, panel: Sums) -> None:
    """Draw pair sums, over a map of classes if there is one."""
    classes, count = np.asarray(panel.classes), int(np.max(panel.classes)) + 1
    _plane(ax, float(np.abs(panel.points).max()) if panel.extent is None else panel.extent)
    if panel.map is not None:
        shades: Any = {"cmap": ListedColormap(class_colors(count)), "vmin": -0.5, "vmax": count - 0.5}
        ax.imshow(panel.map, extent=panel.bounds, origin="lower", alpha=0.55, **shades)
        edge = min(panel.bounds[1], panel.bounds[3])
        ax.set(xlim=(-edge, edge), ylim=(-edge, edge))
    face, edges = sum_colors(panel)
    for k, marker in enumerate(MARKERS):
        of = classes % len(MARKERS) == k
        look: Any = {"s": 17, "marker": marker, "linewidths": 0.5}
        ax.scatter(panel.points[of, 0], panel.points[of, 1], c=face[of], edgecolors=edges[of], **look)


def _lines(ax: Axes, panel: Lines) -> None:
    """Draw curves, and lines at a level and at the present time."""
    for curve in panel.curves:
        look: Any = {"color": curve.color, "linestyle": curve.dash, "linewidth": 0.75 * curve.width}
        ax.plot(curve.x, curve.y, label=curve.label or None, **look)
    ax.set(xlabel=panel.xlabel, ylabel=panel.ylabel, ylim=panel.y_range)
    for name in panel.log:
        ax.set(**{f"{name}scale": "log"})
        axis: Any = getattr(ax, f"{name}axis")
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=7))
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.set_minor_locator(NullLocator())
    if panel.level is not None:
        ax.axhline(panel.level, color=WARM, linestyle="--", linewidth=1)
    if panel.now is not None:
        ax.axvline(panel.now, color=INK, linewidth=1)
    if any(curve.label for curve in panel.curves):
        place: Any = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.1}
        ax.legend(ncols=6, fontsize=7.5, columnspacing=1.2, handlelength=2.2, **place)


def _grid(ax: Axes, panel: PairGrid) -> None:
    """Draw pairs of symbols: trained ones as squares, and frames around those that follow."""
    (i, j), size = panel.samples.T, (190 / (int(panel.samples.max()) + 1)) ** 2 / 2
    colors = np.array(class_colors(int(panel.label.max()) + 1))[panel.label]
    ax.scatter(i, j, s=0.04 * size, c="#aaaaaa", linewidths=0)
    for line in panel.diagonals:
        ax.plot(*line.T, color="#cccccc", zorder=0)
    trained, follows = panel.trained, panel.follows
    look: Any = {"marker": "s", "edgecolors": EDGE, "linewidths": 0.5, "label": "trained"}
    ax.scatter(i[trained], j[trained], s=0.5 * size, c=colors[trained], **look)
    look = {"facecolors": "none", "edgecolors": EDGE, "linewidths": 1.2, "label": "follows"}
    ax.scatter(i[follows], j[follows], s=0.35 * size, **look)
    ax.set(xlabel="i", ylabel="j", aspect="equal")
    ax.legend(loc="lower right", fontsize=7.5)  # below the diagonal there are no pairs


DRAW: dict[type[Panel], Callable[[Any, Any], None]] = {
    Tokens: _tokens,
    Parallelograms: _parallelograms,
    Sums: _sums,
    Lines: _lines,
    PairGrid: _grid,
}
"""How each kind of panel is drawn; bars and matrices are in no film."""
