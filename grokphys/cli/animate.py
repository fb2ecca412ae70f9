"""`grokphys animate`: pictures and films of a trajectory file, without a browser."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import Positional

from grokphys.files import named
from grokphys.options import OutFile, Overwrite, given_otherwise
from grokphys.output import refuse_existing, write_bytes
from grokphys.progress import progress
from physics.checks import number, whole_number
from physics.errors import InputError, OutputError

SMALLEST, LARGEST = 200, 4000
"""Smallest and largest width of a picture in pixels."""


def animate(
    file: Positional[Path],
    *,
    out: OutFile,
    view: Literal["auto", "particles", "circles"] = "auto",
    frequency: Annotated[int | None, given_otherwise("the strongest in the last frame", "INT")] = None,
    run: int = 0,
    frames: int = 60,
    fps: float = 12.0,
    size: int = 900,
    overwrite: Overwrite = False,
) -> int:
    """Film a trajectory file as a GIF or an MP4, or draw its last frame as a PNG.

    Example: grokphys animate example:ding --frequency 7 --out circle.gif

    Args:
        file: Trajectory file, or the name of an example such as example:ding.
        out: File to write. It is a film, NAME.gif or NAME.mp4 (which needs ffmpeg, a part
            of the extra explore), or a picture, NAME.png.
        view: What to show: particles draws the tokens and their pair sums, circles the circle of one
            frequency and all signals. With auto, embeddings of up to 3 dimensions are shown as particles
            unless --frequency is given, and others as circles. Particles in more than 2 dimensions are
            projected on their first two principal components.
        frequency: Number of the frequency whose circle is shown, from 1 to half the number of tokens. It
            chooses the view of circles.
        run: Number of the run in the file, from 0 to the number of runs minus 1.
        frames: Largest number of pictures of a film, at least 1. They are evenly distributed from the first
            frame to the last; a single picture shows the last frame.
        fps: Number of pictures per second of film, from 0.01 to 50.
        size: Width of the picture in pixels, from 200 to 4000.
        overwrite: Replace files that exist.
    """
    from grokphys.explorer import films
    from grokphys.explorer.runs.circles import open_run

    if out.suffix not in (".gif", ".mp4", ".png"):
        need = "the name of a film must end in .gif or .mp4, and that of a picture in .png"
        raise OutputError(f"cannot write {out}: {need}")
    refuse_existing(out, overwrite)
    number("fps", fps, films.SLOWEST, films.FASTEST)
    whole_number("frames", frames, 1)
    whole_number("size", size, SMALLEST, LARGEST)
    if frequency is not None and view == "particles":
        got = f"{frequency}; take --view circles"
        raise InputError(f"frequency must be left out for the view particles, got {got}")
    film = _film(open_run(named(str(file)), run), view, frequency)
    dpi = size / film.size[0]
    if out.suffix == ".png":
        write_bytes(out, films.png(film, dpi=dpi))
        print(f"last of {film.frames} frames in {out}")
        return 0
    count = min(frames, film.frames)
    make = films.gif if out.suffix == ".gif" else films.mp4
    watch = partial(progress, what="animate", unit="picture", total=count)
    write_bytes(out, make(film, fps=fps, longest=frames, dpi=dpi, watch=watch))
    print(f"{count} of {film.frames} frames in {out}")
    return 0


def _film(run: Any, view: str, frequency: int | None) -> Any:
    from analysis.circles.classes import recorded_operation
    from grokphys.explorer.runs.particles import particle_film

    trajectory = run.trajectory
    if view == "particles" or (view == "auto" and frequency is None and trajectory.dim <= 3):
        plane = "axes 1, 2" if trajectory.dim <= 2 else "components 1, 2"
        operation = recorded_operation(trajectory.parameters, trajectory.tokens)
        return particle_film(trajectory, operation=operation, plane=plane)
    strongest = run.planes()[0]
    return run.film(run.panels(strongest if frequency is None else f"frequency {frequency}"))
