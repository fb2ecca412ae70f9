"""Pictures and films as files, without a browser: the page's exports, and `grokphys animate`."""

import contextlib
import io
import itertools
import shutil
import subprocess
import tempfile
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grokphys.explorer.curves import (
    EDGE,
    SERIES,
    WARM,
    Curve,
    class_colors,
    cycle,
    line_colors,
    series,
    text_colors,
)
from grokphys.explorer.runs.circles import CircleRun, Fitted, Projection
from grokphys.explorer.runs.common import CIRCLE, History, plane_axes, shortened
from grokphys.explorer.runs.training_set import TrainingSet
from grokphys.output import printable
from physics.checks import number, whole_number
from physics.errors import OutputError
from physics.theory.operations import Operation
from physics.trajectory import Trajectory

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from PIL.Image import Image

    from grokphys.explorer.runs.networks import NetworkRun
    from grokphys.explorer.runs.neurons import NeuronRun

Array = NDArray[np.float64]
Bounds = tuple[float, float, float, float]
LONGEST = 150
"""Default of the largest number of pictures of a film."""
SLOWEST, FASTEST = 0.01, 50.0
"""Fewest and most pictures per second of a film: a GIF shows a picture for at most 655 seconds."""
LAST = 1.5
"""Seconds for which a GIF shows its last picture before it repeats."""
WHITE = 244
"""Smallest red, green and blue of colors that are white in a GIF."""
SAMPLE = 5
"""Number of pictures from which the colors of a GIF are chosen."""
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
    """Return a film as an animated GIF that repeats, with the 256 colors that suit a sample of it best.

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
    samples = [np.asarray(picture) for picture in pictures(film, evenly(film.frames, SAMPLE), dpi)]
    palette = Image.fromarray(np.concatenate(samples)).quantize(256, Image.Quantize.MEDIANCUT, kmeans=1)
    colors = np.array(palette.getpalette()).reshape(-1, 3)
    colors[(colors > WHITE).all(axis=1)] = 255  # the paper stays white
    palette.putpalette(colors.ravel().tolist())
    shown = watch(pictures(film, frames, dpi))
    made = (picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in shown)
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
    frames, program = _chosen(film, fps, longest), _ffmpeg()
    shown = iter(watch(pictures(film, frames, dpi)))
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as said:
        out = Path(folder) / "film.mp4"
        first = next(shown)
        raw = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{first.width}x{first.height}", "-r", f"{fps}"]
        even = "crop=trunc(iw/2)*2:trunc(ih/2)*2"  # players need an even number of pixels
        coded = ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf", "18", "-movflags", "+faststart"]
        command = [program, "-v", "error", "-y", *raw, "-i", "-", "-vf", even, *coded, str(out)]
        running = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=said)
        with contextlib.suppress(BrokenPipeError), running:  # the pipe breaks if ffmpeg has failed
            for picture in itertools.chain([first], shown):
                running.stdin.write(picture.tobytes())  # type: ignore[union-attr]
        if running.returncode:
            said.seek(0)
            words = said.read().decode(errors="replace").strip().splitlines()
            raise OutputError(f"ffmpeg failed: {words[-1] if words else running.returncode}")
        return out.read_bytes()


def _ffmpeg() -> str:
    """Return the path of ffmpeg: of the installed program, or else of that in the package imageio-ffmpeg."""
    program = shutil.which("ffmpeg")
    if program is None:
        with contextlib.suppress(ImportError, RuntimeError):  # the package has no ffmpeg for some machines
            from imageio_ffmpeg import get_ffmpeg_exe

            program = get_ffmpeg_exe()
    if program is None:
        raise OutputError(
            "an MP4 needs the program ffmpeg: install it, or pip install 'grokphys[explore]'; "
            "a GIF needs nothing"
        )
    return program


def _chosen(film: Film, fps: float, longest: int) -> list[int]:
    number("fps", fps, SLOWEST, FASTEST)
    return evenly(film.frames, whole_number("longest", longest, 1))


# -- parts of pictures -------------------------------------------------------------------------------------


def _plane(ax: "Axes", extent: float, label: str, title: str = "") -> None:
    """Let axes show the square from -extent to extent, without ticks, in a thin frame."""
    from analysis.plots.style import framed

    framed(ax).set(xlim=(-extent, extent), ylim=(-extent, extent), title=title, label=label)
    ax.set_aspect("equal", adjustable="box")


def _extent(paths: Array) -> float:
    """Return the largest absolute coordinate of paths and 12 % more, or 1 if all coordinates are 0."""
    return 1.12 * float(np.abs(paths).max()) or 1.0


def _tokens(ax: "Axes", paths: Array, frame: int, *, order: Any = None, ring: Any = None) -> None:
    """Draw tokens (frames, tokens, 2) at a frame as numbered discs with trails.

    `order` is the place of each token in the cycle of colors; `ring` are tokens that a line joins.
    """
    count, points = paths.shape[1], paths[frame]
    order = range(count) if order is None else order
    colors, texts = class_colors(count), text_colors(count)
    past = paths[max(0, frame - TRAIL) : frame + 1]
    trails = np.concatenate([past, np.full_like(past[:1], np.nan)]).transpose(2, 1, 0).reshape(2, -1)
    ax.plot(*trails, color="#c4c4c4", linewidth=0.8, zorder=1)
    if ring is not None:
        ax.plot(*points[ring].T, color="#cfc9bd", linewidth=0.8, zorder=0)
    numbered = count <= NUMBERED
    look: Any = {"s": 110 if numbered else 34, "linewidths": 0.5, "edgecolors": EDGE, "zorder": 2}
    ax.scatter(points[:, 0], points[:, 1], c=[colors[place] for place in order], **look)
    middle: Any = {"ha": "center", "va": "center_baseline", "fontsize": 6.5, "zorder": 3, "in_layout": False}
    for token, place in enumerate(order if numbered else ()):
        ax.text(points[token, 0], points[token, 1], str(token), color=texts[place], **middle)


def _sums(ax: "Axes", points: Array, classes: Any, held_out: Any = None) -> None:
    """Draw pair sums (n, 2) in the color and with the marker of their class; held-out ones are hollow."""
    labels = np.asarray(classes)
    hollow = np.zeros(len(labels), bool) if held_out is None else np.asarray(held_out)
    fill, line = (np.array(colors(labels.max() + 1))[labels] for colors in (class_colors, line_colors))
    face, edge = np.where(hollow, "#ffffff", fill), np.where(hollow, line, EDGE)
    for k, marker in enumerate(MARKERS):
        of = labels % len(MARKERS) == k
        ax.scatter(
            points[of, 0], points[of, 1], s=17, marker=marker, c=face[of], edgecolors=edge[of], linewidths=0.5
        )


def _lines(ax: "Axes", curves: Iterable[Curve], until: float | None = None, **options: Any) -> None:
    """Draw curves, faint after `until`; `options` are properties of the axes."""
    for curve in curves:
        x, y = np.asarray(curve.x), np.asarray(curve.y)
        stroke = STROKES.get(curve.dash, curve.dash)
        look: Any = {"color": curve.color, "linestyle": stroke, "linewidth": 0.75 * curve.width}
        if until is None:
            ax.plot(x, y, label=curve.label or None, **look)
            continue
        ax.plot(x, y, alpha=0.25, **look)
        ax.plot(x[x <= until], y[x <= until], label=curve.label or None, **look)
    ax.set(**options)
    for name, axis in (("xscale", ax.xaxis), ("yscale", ax.yaxis)):
        if options.get(name) == "log":
            _plain(axis)
    if any(curve.label for curve in curves):
        place: Any = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.1}
        ax.legend(ncols=6, fontsize=7.5, columnspacing=1.2, handlelength=2.2, **place)


def _plain(axis: "Axis") -> None:
    """Write the ticks of a logarithmic axis as plain numbers."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=7))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_locator(NullLocator())


# -- the films of the views --------------------------------------------------------------------------------


def particle_film(
    trajectory: Trajectory,
    *,
    operation: Operation | None = None,
    plane: str = "axes 1, 2",
    second: Trajectory | None = None,
    arrows: Callable[[int], Array] | None = None,
) -> Film:
    """Return a film of the first run of particles: their positions, their pair sums, and two measures.

    Parameters
    ----------
    trajectory : Trajectory
        Trajectory to film. Its observables circle_ratio and grid_imperfections are drawn below the particles,
        if they are recorded.
    operation : Operation, optional
        Operation that gives each pair its class; by default addition modulo the number of tokens.
    plane : str, default "axes 1, 2"
        Name of the plane, one of `planes`; the last frame determines its axes.
    second : Trajectory, optional
        Trajectory from another start, which is drawn next to the first, at the same or the next recorded
        step. It must have the observables that `trajectory` has.
    arrows : callable, optional
        Function of the number of a frame that returns arrows (tokens, dim) of the first run.
    """
    steps = trajectory.steps
    operation = operation or Operation(trajectory.tokens, trajectory.tokens)
    axes = plane_axes(trajectory.positions[0, -1], plane)
    starts = {"particles": (trajectory, trajectory.positions[0].astype(np.float64) @ axes.T)}
    if second is not None:
        same = np.searchsorted(second.steps, steps).clip(max=len(second.steps) - 1)
        places = second.positions[0, same].astype(np.float64)
        starts["second start"] = second, places @ plane_axes(places[-1], plane).T
    names = [name for name in ("circle_ratio", "grid_imperfections") if name in trajectory.observables]

    def draw(figure: "Figure", frame: int) -> None:
        upper = [panel for name in starts for panel in (name, f"{name} sums")]
        rows: Any = [[panel for panel in row for _ in range(4 // len(row))] for row in (upper, names) if row]
        cells = figure.subplot_mosaic(rows, height_ratios=[3, 1][: len(rows)])
        for name, (_, paths) in starts.items():
            left, right = cells[name], cells[f"{name} sums"]
            _plane(left, _extent(paths), name, f"{name}, step {steps[frame]}")
            _plane(right, 2 * _extent(paths), f"{name} sums", "pair sums, by class")
            _tokens(left, paths, frame)
            _sums(right, paths[frame][operation.samples].sum(axis=1), operation.label)
            if arrows is not None and name == "particles":
                shown = shortened(arrows(frame) @ axes.T, left.get_ylim()[1])
                look: Any = {"angles": "xy", "scale_units": "xy", "scale": 1.0, "zorder": 4}
                left.quiver(*paths[frame].T, *shown.T, color=WARM, **look)
        for name in names:
            curves = [
                Curve(kept.steps, kept.observables[name][0], SERIES[k], ("solid", "dashed")[k], label=word)
                for k, (word, (kept, _)) in enumerate(starts.items())
            ]
            curves = curves if second else [replace(curves[0], label="")]
            scale = "log" if name == "circle_ratio" else "linear"
            title = name.replace("_", " ")
            _lines(cells[name], curves, steps[frame], title=title, xlabel="step", label=name, yscale=scale)
            if name == "circle_ratio":
                cells[name].axhline(CIRCLE, color=WARM, linestyle="--", linewidth=1)

    return Film(len(steps), draw, (8.0 if second is None else 14.0, 5.4 if names else 4.2))


def network_film(run: "NetworkRun", plane: str) -> Film:
    """Return a film of a network, and of its particles below, at the kept frames of the run.

    If the plane has kept its axes, the pair sums of the network lie over the map of its answers.
    """
    kept: History = run.history.copy()
    task, held_out, count = run.model.task, run.held_out, run.classes
    pairs, labels, steps = np.asarray(task.inputs), np.asarray(task.labels), kept.steps
    axes = {name: plane_axes(kept.last[name], plane) for name in ("embedding", "particles")}
    paths = {name: np.array([kept.frame(n)[name] @ axes[name].T for n in range(len(kept))]) for name in axes}

    def draw(figure: "Figure", frame: int) -> None:
        from matplotlib.colors import ListedColormap

        cells, values = figure.subplots(2, 3), kept.frame(frame)
        titles = f"network, step {steps[frame]}", f"particles, step {values['particle_step']}"
        for (name, path), (left, right, _), title in zip(paths.items(), cells, titles, strict=True):
            _plane(left, _extent(path), name, title)
            _plane(right, 2 * _extent(path), f"{name} sums", "pair sums, by class")
            _tokens(left, path, frame)
            mapped = name == "embedding" and "map" in values and np.allclose(values["axes"], axes[name])
            if mapped:
                shades: Any = {"cmap": ListedColormap(class_colors(count)), "vmin": -0.5, "vmax": count - 0.5}
                right.imshow(
                    values["map"], extent=tuple(values["bounds"]), origin="lower", alpha=0.55, **shades
                )
                _plane(
                    right,
                    min(values["bounds"][1], values["bounds"][3]),
                    f"{name} sums",
                    "pair sums, by class",
                )
            _sums(right, path[frame][pairs].sum(axis=1), labels, held_out)
        for what, ax in zip(("loss", "accuracy"), cells[:, 2], strict=True):
            curves = series(steps, {part: kept[f"{part}_{what}"] for part in ("train", "validation")})
            scale = "log" if what == "loss" else "linear"
            _lines(ax, curves, steps[frame], xlabel="step", ylabel=what, label=what, yscale=scale)

    return Film(len(kept), draw, (10.5, 6.4))


def neuron_film(run: "NeuronRun", neuron: int) -> Film:
    """Return a film of the phases of all neurons, the race of one, and the accuracy, at the kept frames."""
    kept: History = run.history.copy()
    steps, magnitude = kept.steps, kept["magnitude"]
    size, angle = magnitude.max(axis=2), np.nan_to_num(kept["misalignment"])
    reach = size / np.maximum(size.max(axis=1, keepdims=True), 1e-300)
    paths = reach[..., None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    order = kept["frequency"][-1] * paths.shape[1] // (magnitude.shape[2] + 1)
    exact = cycle(run.flow(neuron)[0], list(run.flow(neuron)[1].T), "dashed") if run.flows else []
    race = cycle(steps, list(magnitude[:, neuron].T))

    def draw(figure: "Figure", frame: int) -> None:
        left, middle, right = figure.subplots(1, 3)
        _plane(left, 1.12, "phases", f"phases of neurons, step {steps[frame]}")
        left.set_xlabel(r"$2\varphi - \psi$: aligned neurons lie to the right")
        _tokens(left, paths, frame, order=order)
        _lines(
            middle, exact, xlabel="step", label="race", title=f"race of neuron {neuron}; dashed: exact flow"
        )
        _lines(middle, race, steps[frame], ylim=(0, 1.15 * magnitude[:, neuron].max()))
        accuracy = series(steps, {"accuracy": kept["train_accuracy"]}, label=False)
        _lines(right, accuracy, steps[frame], title="accuracy", xlabel="step", label="accuracy")

    return Film(len(steps), draw, (12.0, 4.2))


def flow_film(chosen: TrainingSet) -> Film:
    """Return a film of the flow of the effective theory under a training set.

    It shows the training set, its parallelograms, and against time the embeddings (on their first axis), the
    representation quality (RQI), and the predicted accuracy.
    """
    found, paths, label = chosen.measures, chosen.planar, chosen.operation.label
    colors, edges = np.array(class_colors(chosen.classes)), np.array(line_colors(chosen.classes))

    def draw(figure: "Figure", frame: int) -> None:
        from matplotlib.collections import LineCollection, PolyCollection

        (grid, shape), (lines, quality) = figure.subplots(2, 2, height_ratios=(1.5, 1))
        (i, j), size = chosen.operation.samples.T, (190 / chosen.operation.tokens) ** 2 / 2
        grid.scatter(i, j, s=0.04 * size, c="#aaaaaa", linewidths=0)
        for line in chosen.diagonals:
            grid.plot(*line.T, color="#cccccc", zorder=0)
        trained, follows = chosen.mask, chosen.follows
        grid.scatter(
            i[trained], j[trained], s=0.5 * size, marker="s", c=colors[label[trained]], edgecolors=EDGE,
            linewidths=0.5, label="trained",
        )  # fmt: skip
        look: Any = {"facecolors": "none", "edgecolors": EDGE, "linewidths": 1.2, "label": "follows"}
        grid.scatter(i[follows], j[follows], s=0.35 * size, **look)
        grid.set(xlabel="i", ylabel="j", title=f"{found.pairs} of {found.samples} pairs", aspect="equal")
        grid.legend(loc="lower right", fontsize=7.5)  # below the diagonal there are no pairs

        words = f"time {chosen.times[frame]:.4g}: {found.parallelograms} parallelograms"
        _plane(shape, _extent(paths), "tokens", words)
        if chosen.dim == 1:
            middle, radius = chosen.arcs(frame)
            classes, angle = label[chosen.linked], np.linspace(0, np.pi, 25)
            x = middle[:, None] + radius[:, None] * np.cos(angle)
            y = np.where(classes % 2, -1, 1)[:, None] * radius[:, None] * np.sin(angle)
            sums: Any = LineCollection(np.stack([x, y], axis=2), colors=edges[classes], linewidths=0.9)  # type: ignore[arg-type]
        else:
            look = {"edgecolors": edges[chosen.parallelogram_classes], "linewidths": 0.5, "alpha": 0.6}
            sums = PolyCollection(chosen.quadrilaterals(frame), facecolors="none", **look)  # type: ignore[arg-type]
        shape.add_collection(sums, autolim=False)
        _tokens(shape, paths, frame)
        _lines(
            lines, cycle(chosen.times, list(chosen.embeddings[:, :, 0].T)), xlabel="time", label="embeddings"
        )
        lines.set_ylabel("E, axis 1" if chosen.dim > 1 else "E")
        both = {"RQI": chosen.quality, "accuracy": chosen.accuracy}
        _lines(quality, series(chosen.times, both), xlabel="time", ylim=(-0.03, 1.03), label="quality")
        for ax in (lines, quality):
            ax.axvline(chosen.times[frame], color=EDGE, linewidth=1)
        figure.suptitle(
            f"{chosen.operation.name}: n₀ = {found.ground_state_dimension}, "
            f"λ₃ = {found.grokking_rate:.4g}, ideal accuracy {100 * found.ideal_accuracy:.1f} %",
            fontsize=11,
        )

    return Film(len(chosen.times), draw, (9.2, 7.0))


def circles_film(
    run: CircleRun,
    projection: Projection,
    survivors: Sequence[int],
    limit: float,
    fitted: Fitted | None = None,
) -> Film:
    """Return a film of the tokens of a run on a plane, next to its signals.

    Parameters
    ----------
    run : CircleRun
        Run with its signals.
    projection : Projection
        Tokens of all frames on the plane.
    survivors : sequence of int
        Frequencies whose signals are in color, counted from 1.
    limit : float
        Signal above which a circle survives.
    fitted : Fitted, optional
        Law whose predictions are drawn over the signals.
    """
    curves = run.curves(survivors, fitted=fitted)
    positive = run.signals[1][run.signals[1] > 0]
    low, high = (max(positive.min(), 1e-4 * positive.max()), positive.max()) if len(positive) else (0.1, 1.0)
    last = run.signals[0][-1]

    def draw(figure: "Figure", frame: int) -> None:
        left, right = figure.subplots(1, 2, width_ratios=(1, 1.2))
        _plane(left, _extent(projection.points), "tokens", f"step {run.steps[frame]}")
        left.set(xlabel=projection.names[0], ylabel=projection.names[1])
        _tokens(left, projection.points, frame, order=projection.order, ring=projection.cycle)
        scale: Any = {"xscale": "log", "yscale": "log", "xlim": (1, max(last, 1) + 1)}
        scale |= {"ylim": (low / 1.5, 2.5 * high), "ylabel": r"Fourier signal $\Vert F_k\Vert$"}
        _lines(right, curves, xlabel="step + 1", label="signals", **scale)
        right.axhline(limit, color=WARM, linestyle=":", linewidth=1)
        right.axvline(run.steps[frame] + 1, color=EDGE, linewidth=1)

    return Film(len(projection.points), draw, (9.6, 4.6))
