"""Pictures and films as files, without a browser: the page's exports, and `grokphys animate`."""

import io
import math
import subprocess
import tempfile
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grokphys.explorer import panels
from grokphys.explorer.panels import EDGE, INK, WARM, Panel, class_colors, line_colors, text_colors
from grokphys.output import printable
from physics.checks import number, whole_number
from physics.errors import OutputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from PIL.Image import Image

Array = NDArray[np.float64]
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
STROKES: Mapping[str, Any] = {"dotdash": "-.", "dashdot": (0, (5, 1, 1, 1))}
"""Dashes of matplotlib for those of Bokeh that have other names there."""


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
    draw: "Callable[[Figure, int], None]"
    size: tuple[float, float] = (7.0, 5.0)
    shown: int = -1
    limits: Mapping[str, Bounds] = field(default_factory=dict)
    caption: str = ""


def evenly(frames: int, longest: int) -> list[int]:
    """Return the numbers of at most `longest` evenly spaced frames, from the first to the last.

    If `longest` is 1, the last frame is returned.
    """
    if longest == 1:
        return [frames - 1]
    return [round(k) for k in np.linspace(0, frames - 1, min(frames, longest))]


def pictures(film: Film, frames: Sequence[int], dpi: float) -> "Iterator[Image]":
    """Yield an RGB image of each of some frames, with axes at the same places."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from PIL import Image

    from analysis.plots.style import style

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
    from PIL import Image

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
    number("fps", fps, SLOWEST, FASTEST)
    return evenly(film.frames, whole_number("longest", longest, 1))


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

    def draw(figure: "Figure", frame: int) -> None:
        title, shown = scene(frame)
        there = [[name for name in row if name in shown] for row in rows]
        ends = [height for height, row in zip(ratios or [1] * len(rows), there, strict=True) if row]
        there = [row for row in there if row]
        columns = math.lcm(*map(len, there))
        mosaic: Any = [[name for name in row for _ in range(columns // len(row))] for row in there]
        figure.suptitle(title, fontsize=11)
        for name, ax in figure.subplot_mosaic(mosaic, height_ratios=ends).items():
            ax.set(title=shown[name].title, label=name)
            DRAW[type(shown[name])](ax, shown[name])

    return Film(frames, draw, size)


def _plane(ax: "Axes", extent: float) -> None:
    """Let axes show the square from -extent to extent, without ticks, in a thin frame."""
    from analysis.plots.style import framed

    extent = 1.12 * extent or 1.0
    framed(ax).set(xlim=(-extent, extent), ylim=(-extent, extent))
    ax.set_aspect("equal", adjustable="box")


def _tokens(ax: "Axes", panel: panels.Tokens) -> None:
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
        arrows = panels.shortened(panel.arrows, ax.get_ylim()[1])
        look = {"angles": "xy", "scale_units": "xy", "scale": 1.0, "zorder": 4}
        ax.quiver(*points.T, *arrows.T, color=WARM, **look)
    ax.set(xlabel=panel.labels[0], ylabel=panel.labels[1])


def _parallelograms(ax: "Axes", panel: panels.Parallelograms) -> None:
    """Draw tokens over half circles or quadrilaterals."""
    from matplotlib.collections import LineCollection, PolyCollection

    colors: Any = np.array(line_colors(panel.count))[panel.classes]
    shapes: Any
    if panel.corners is None:
        assert panel.center is not None
        assert panel.radius is not None
        angle = np.linspace(0, np.pi, 25)
        x = panel.center[:, None] + panel.radius[:, None] * np.cos(angle)
        y = np.where(panel.classes % 2, -1, 1)[:, None] * panel.radius[:, None] * np.sin(angle)
        shapes = LineCollection(list(np.stack([x, y], axis=2)), colors=colors, linewidths=0.9)
    else:
        look: Any = {"edgecolors": colors, "facecolors": "none", "linewidths": 0.5, "alpha": 0.6}
        shapes = PolyCollection(panel.corners, **look)  # type: ignore[arg-type]
    ax.add_collection(shapes, autolim=False)
    _tokens(ax, panel)


def _sums(ax: "Axes", panel: panels.Sums) -> None:
    """Draw pair sums, over a map of classes if there is one."""
    from matplotlib.colors import ListedColormap

    classes, count = np.asarray(panel.classes), int(np.max(panel.classes)) + 1
    _plane(ax, float(np.abs(panel.points).max()) if panel.extent is None else panel.extent)
    if panel.map is not None:
        shades: Any = {"cmap": ListedColormap(class_colors(count)), "vmin": -0.5, "vmax": count - 0.5}
        ax.imshow(panel.map, extent=panel.bounds, origin="lower", alpha=0.55, **shades)
        edge = min(panel.bounds[1], panel.bounds[3])
        ax.set(xlim=(-edge, edge), ylim=(-edge, edge))
    face, edges = panels.sum_colors(panel)
    for k, marker in enumerate(MARKERS):
        of = classes % len(MARKERS) == k
        look: Any = {"s": 17, "marker": marker, "linewidths": 0.5}
        ax.scatter(panel.points[of, 0], panel.points[of, 1], c=face[of], edgecolors=edges[of], **look)


def _lines(ax: "Axes", panel: panels.Lines) -> None:
    """Draw curves, and lines at a level and at the present time."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    for curve in panel.curves:
        stroke = STROKES.get(curve.dash, curve.dash)
        look: Any = {"color": curve.color, "linestyle": stroke, "linewidth": 0.75 * curve.width}
        ax.plot(curve.x, curve.y, label=curve.label or None, zorder=3 if curve.above else 2, **look)
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


def _grid(ax: "Axes", panel: panels.PairGrid) -> None:
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
    panels.Tokens: _tokens,
    panels.Parallelograms: _parallelograms,
    panels.Sums: _sums,
    panels.Lines: _lines,
    panels.PairGrid: _grid,
}
"""How each kind of panel is drawn; bars and matrices are in no film."""
