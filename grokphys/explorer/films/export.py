"""Pictures and films as files, without a browser: the page's exports, and `grokphys animate`."""

import contextlib
import io
import itertools
import shutil
import subprocess
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from grokphys.output import printable
from physics.checks import number, whole_number
from physics.errors import OutputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from PIL.Image import Image

LONGEST = 150
"""Default of the largest number of pictures of a film."""
SAMPLE = 5
"""Largest number of pictures from which the colors of a GIF are chosen."""
AREAS = 176
"""Largest number of colors of areas that a GIF keeps exactly; the others of its 256 are for edges."""
NEAR = 8
"""Smallest distance of two colors of a GIF, in levels of 256, because Pillow searches in steps of 4."""
SLOWEST, FASTEST = 0.01, 50.0
"""Fewest and most pictures per second of a film: a GIF shows a picture for at most 655 seconds."""
LAST = 1.5
"""Seconds for which a GIF shows its last picture before it repeats."""
Move = Callable[[int], None]
"""Function that moves the animated artists to a frame."""
Limits = tuple[float | None, float | None, float | None, float | None]
"""Left, right, bottom and top of what axes show; None where their data decide."""
LETTERS = 15
"""Number of letters of a caption per inch of the picture."""
Progress = Callable[[int, int], None]
"""Function of the numbers of finished and of all pictures; an exception that it raises ends the work."""


@dataclass(frozen=True)
class Film:
    """A film that can be drawn frame by frame.

    Attributes
    ----------
    frames : int
        Number of frames, at least 1.
    begin : callable
        ``begin(figure)`` draws everything that does not move on an empty figure, and everything else as
        animated artists of its axes (``artist.set_animated(True)``). It returns ``move(frame)``, which moves
        the animated artists to a frame, 0 … frames-1. The film owns all of its arrays.
    size : tuple of float
        Width and height in inches.
    shown : int
        Frame that `png` draws by default, such as the one on screen; -1 is the last.
    limits : mapping of str to tuple of float
        Left, right, bottom and top of axes by their labels (``ax.set_label(name)``). Axes that are not named
        keep the limits that `begin` gives them.
    caption : str
        Words below the axes.
    """

    frames: int
    begin: "Callable[[Figure], Move]"
    size: tuple[float, float] = (7.0, 5.0)
    shown: int = -1
    limits: Mapping[str, Limits] = field(default_factory=dict)
    caption: str = ""


def png(film: Film, frame: int | None = None, *, dpi: float = 160) -> bytes:
    """Return one frame of a film as a PNG picture.

    Parameters
    ----------
    film : Film
        The film.
    frame : int, optional
        Number of the frame; negative numbers count from the end. By default it is `film.shown`.
    dpi : float, default 160
        Resolution in dots per inch.

    Returns
    -------
    bytes
        Content of the file.

    Raises
    ------
    IndexError
        If there is no such frame.
    """
    chosen = range(film.frames)[film.shown if frame is None else frame]
    out = io.BytesIO()
    next(_pictures(film, [chosen], dpi)).save(out, "PNG", dpi=(dpi, dpi))
    return out.getvalue()


def gif(
    film: Film,
    *,
    fps: float = 20.0,
    longest: int = LONGEST,
    dpi: float = 80,
    progress: Progress = lambda _done, _all: None,
) -> bytes:
    """Return a film as an animated GIF that repeats.

    A GIF has 256 colors. The most frequent colors of areas, up to 176 in a sample of five pictures, are kept
    exactly; everything else has the nearest color.

    Parameters
    ----------
    film : Film
        The film.
    fps : float, default 20
        Pictures per second, from 0.01 to 50, which is the limit of most viewers. A GIF counts hundredths of a
        second, so pictures differ in their time by one of them where `fps` does not divide 100.
    longest : int, default 150
        Largest number of pictures, which are evenly chosen from the frames; at least 1.
    dpi : float, default 80
        Resolution in dots per inch.
    progress : callable, optional
        Function that is called with the numbers of finished and of all pictures after each picture; an
        exception that it raises ends the work.

    Returns
    -------
    bytes
        Content of the file.

    Raises
    ------
    InputError
        If `fps` or `longest` is out of its range.
    """
    from PIL import Image

    chosen = _chosen(film, fps, longest)
    pictures = _pictures(film, [*evenly(film.frames, SAMPLE), *chosen], dpi)
    palette = _palette([next(pictures) for _ in evenly(film.frames, SAMPLE)])

    def reduced() -> Iterator[Image.Image]:
        for done, picture in enumerate(pictures, 1):
            yield picture.quantize(palette=palette, dither=Image.Dither.NONE)
            progress(done, len(chosen))

    made, out = reduced(), io.BytesIO()
    ends = [round(100 * k / fps) for k in range(len(chosen))]  # a GIF counts hundredths of a second
    durations = [10 * (end - start) for start, end in pairwise(ends)] + [round(1000 * LAST)]
    first = next(made)
    first.save(out, "GIF", save_all=True, append_images=made, duration=durations, loop=0, optimize=False)
    return out.getvalue()


def mp4(
    film: Film,
    *,
    fps: float = 20.0,
    longest: int = LONGEST,
    dpi: float = 120,
    progress: Progress = lambda _done, _all: None,
) -> bytes:
    """Return a film as an MP4 (H.264), which the program ffmpeg makes.

    The arguments are those of `gif`, except that `dpi` is 120 by default.

    Returns
    -------
    bytes
        Content of the file.

    Raises
    ------
    InputError
        If `fps` or `longest` is out of its range.
    OutputError
        If there is no ffmpeg, or it fails.
    """
    chosen = _chosen(film, fps, longest)
    program = _ffmpeg()
    pictures = _pictures(film, chosen, dpi)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as said:
        out = Path(folder) / "film.mp4"
        first = next(pictures)
        raw = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{first.width}x{first.height}", "-r", f"{fps}"]
        even = "crop=trunc(iw/2)*2:trunc(ih/2)*2"  # players need an even number of pixels
        coded = ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf", "18", "-movflags", "+faststart"]
        command = [program, "-v", "error", "-y", *raw, "-i", "-", "-vf", even, *coded, str(out)]
        running = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=said)
        with contextlib.suppress(BrokenPipeError), running:  # the pipe breaks if ffmpeg has failed
            for done, picture in enumerate(itertools.chain([first], pictures), 1):
                running.stdin.write(picture.tobytes())  # type: ignore[union-attr]
                progress(done, len(chosen))
        if running.returncode:
            said.seek(0)
            words = said.read().decode(errors="replace").strip().splitlines()
            raise OutputError(f"ffmpeg failed: {words[-1] if words else running.returncode}")
        return out.read_bytes()


def _ffmpeg() -> str:
    """Return the path of ffmpeg: of the installed program, or else of that in the package imageio-ffmpeg.

    Raises
    ------
    OutputError
        If there is neither.
    """
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


def evenly(frames: int, longest: int) -> list[int]:
    """Return the numbers of evenly spaced frames, in increasing order, from the first to the last.

    Parameters
    ----------
    frames : int
        Number of all frames, at least 1.
    longest : int
        Largest number of frames to return, at least 1. If it is 1, the last frame is returned.
    """
    if frames <= longest:
        return list(range(frames))
    if longest == 1:
        return [frames - 1]
    return [round(k * (frames - 1) / (longest - 1)) for k in range(longest)]


def _chosen(film: Film, fps: float, longest: int) -> list[int]:
    number("fps", fps, SLOWEST, FASTEST)
    return evenly(film.frames, whole_number("longest", longest, 1))


def _pictures(film: Film, frames: list[int], dpi: float) -> Iterator["Image"]:
    """Yield an RGB image of each frame: the fixed parts are drawn once, and the moving parts over them."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from PIL import Image

    from analysis.plots.style import style

    with style():
        figure = Figure(figsize=film.size, dpi=dpi)
        canvas = FigureCanvasAgg(figure)
        move = film.begin(figure)
        for ax in figure.axes:
            if str(ax.get_label()) in film.limits:
                left, right, bottom, top = film.limits[str(ax.get_label())]
                ax.set(xlim=(left, right), ylim=(bottom, top))
        if film.caption:
            width = round(LETTERS * film.size[0])
            lines = [textwrap.fill(printable(line), width) for line in film.caption.splitlines()]
            # names of files in it are no formulas
            figure.supxlabel("\n".join(lines), fontsize=8, color="#5c6773", parse_math=False)
        move(frames[0])
        canvas.draw()  # without the animated artists
    still = canvas.copy_from_bbox(figure.bbox)
    moving = [
        (ax, sorted(ax.findobj(lambda artist: artist.get_animated()), key=lambda artist: artist.get_zorder()))
        for ax in figure.axes
    ]
    for frame in frames:
        canvas.restore_region(still)
        move(frame)
        for ax, artists in moving:
            for artist in artists:
                ax.draw_artist(artist)
        pixels = np.asarray(canvas.buffer_rgba())
        yield Image.frombytes("RGB", pixels.shape[1::-1], pixels, "raw", "RGBX")


def _palette(samples: "list[Image]") -> "Image":
    """Return a palette of at most 256 colors: first those of areas, then others for edges between them."""
    from PIL import Image

    sheet = np.concatenate([np.asarray(picture) for picture in samples])
    packed = np.pad(sheet, ((0, 0), (0, 0), (0, 1))).view(np.uint32)[..., 0]
    flat = np.zeros(packed.shape, bool)
    flat[:-1, :-1] = (packed[:-1, :-1] == packed[1:, :-1]) & (packed[:-1, :-1] == packed[:-1, 1:])
    colors, counts = np.unique(packed[flat], return_counts=True)
    chosen = colors[np.argsort(-counts, kind="stable")[:AREAS]]
    edges = Image.fromarray(sheet[~flat][None]).quantize(256 - AREAS, Image.Quantize.MEDIANCUT)
    others = np.array(edges.getpalette()).reshape(-1, 3)
    offered = np.concatenate([chosen.view(np.uint8).reshape(-1, 4)[:, :3], others])
    near = np.abs(offered[:, None].astype(int) - offered).max(axis=2) < NEAR
    palette = Image.new("P", (1, 1))
    palette.putpalette(offered[~np.tril(near, -1).any(axis=1)].astype(np.uint8).tobytes())
    return palette
