"""Pictures and films, without a browser: the page's exports, and `grokphys animate`."""

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from physics.checks import number, whole_number
from physics.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LONGEST = 150
"""Pictures of a film, unless it is asked for more."""


@dataclass(frozen=True)
class Film:
    """Something that can be drawn frame by frame, whoever moved it.

    Attributes
    ----------
    frames : int
        Number of frames, at least 1.
    draw : callable
        ``draw(figure, frame)`` draws one frame, 0 … frames-1, on an empty figure, from arrays of its own.
    size : tuple of float
        Width and height in inches.
    shown : int
        The frame on screen, which a picture shows; the last by default.
    """

    frames: int
    draw: "Callable[[Figure, int], None]"
    size: tuple[float, float] = (7.0, 5.0)
    shown: int = -1


def png(film: Film, frame: int | None = None, *, dpi: float = 160) -> bytes:
    """Return a frame as PNG, by default the one on screen; negative frames count from the end."""
    figure = _figure(film)
    _draw(film, figure, range(film.frames)[film.shown if frame is None else frame])
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=dpi, bbox_inches=None)
    return picture.getvalue()


def gif(
    film: Film,
    *,
    fps: float = 20.0,
    longest: int = LONGEST,
    dpi: float = 80,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> bytes:
    """Return the film as an animated GIF that repeats, of at most `longest` pictures, evenly chosen.

    Parameters
    ----------
    film : Film
    fps : float, default 20
        Pictures a second, above 0 and at most 50, which is what viewers honour.
    longest : int, default 150
    dpi : float, default 80
    progress : callable, optional
        Told (pictures done, pictures in all) after each.

    Raises
    ------
    InputError
        If `fps` or `longest` is out of its range.
    """
    from PIL import Image

    if number("fps", fps, above=0.0) > 50:
        raise InputError(f"fps must be at most 50, got {fps:g}")
    chosen = evenly(film.frames, whole_number("longest", longest, 1))
    figure = _figure(film)
    pictures = []
    for done, frame in enumerate(chosen, 1):
        figure.clear()
        pixels = _pixels(film, figure, frame, dpi)
        picture = Image.fromarray(pixels)
        pictures.append(picture.quantize(128, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE))
        progress(done, len(chosen))
    out = io.BytesIO()
    durations = [round(1000 / fps)] * (len(pictures) - 1) + [1500]  # the end stays for a moment
    pictures[0].save(out, "GIF", save_all=True, append_images=pictures[1:], duration=durations, loop=0)
    return out.getvalue()


def evenly(frames: int, longest: int) -> list[int]:
    """Return at most `longest` of `frames` frames, first and last among them, as evenly as can be."""
    if frames <= longest:
        return list(range(frames))
    if longest == 1:
        return [frames - 1]
    return [round(k * (frames - 1) / (longest - 1)) for k in range(longest)]


def _figure(film: Film) -> "Figure":
    from matplotlib.figure import Figure

    from analysis.plots.style import style

    with style():
        return Figure(figsize=film.size)


def _draw(film: Film, figure: "Figure", frame: int) -> None:
    from analysis.plots.style import style

    with style():
        film.draw(figure, frame)


def _pixels(film: Film, figure: "Figure", frame: int, dpi: float) -> Any:
    """Return one frame as an array (height, width, 3) of bytes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure.set_dpi(dpi)
    canvas = FigureCanvasAgg(figure)
    _draw(film, figure, frame)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()
