"""`grokphys arena`: every theory against networks that are held out, in four tracks."""

import importlib.util
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from grokphys.options import Directory, Figures, given_otherwise
from grokphys.output import make_directory, refuse_unwritable, save_figure, write_csv
from physics.checks import InputError, choice, short_text

Some = Annotated[tuple[str, ...], given_otherwise("all", "NAME ...")]


def arena(
    *,
    tracks: Some = (),
    theories: Some = (),
    theory: Annotated[tuple[str, ...], given_otherwise("none", "FILE.py:CLASS ...")] = (),
    budget: Literal["quick", "paper"] = "quick",
    out: Directory = Path("results/arena"),
    figures: Figures = "png",
) -> int:
    """Score theories of ours and of yours by how well they predict networks that are held out.

    Ensembles are trained from their seeds and split by networks: theories are fitted to one half, and predict
    the other. The command prints a table for each track, and writes scores and a figure.

    Example: grokphys arena --tracks fate --theory mine.py:Mine

    Args:
        tracks: Tracks to run: fate (where an embedding ends), force (which force acts on its shape), signals
            (how the Fourier signals go on) and survivors (which circles survive).
        theories: Theories of ours to enter, by their names in the table.
        theory: Theories of yours: classes with name, fit and predict or force, in files of Python, which are
            run. A class is called without arguments.
        budget: How much to compute. quick takes two minutes at small ensembles, and paper an hour on two
            cores.
        out: Directory to write to. The folder of the budget holds the networks and the scores of each of
            them, TRACK.csv. What is there is not made again, as long as settings, this package and the files
            of theories are the same.
        figures: Format of the figure, OUT/BUDGET/arena.png.
    """
    from grokphys import arena
    from grokphys.arena.show import picture, table

    for name in tracks:
        choice("tracks", name, tuple(arena.TRACKS))
    chosen = [arena.TRACKS[name] for name in tracks or arena.TRACKS]
    entries = {track.name: list(track.entries()) for track in chosen}
    known = {entry.name for each in entries.values() for entry in each}
    for name in theories:
        choice("theories", name, tuple(sorted(known)))
    own = [_load(place) for place in theory]
    idle = [one for one in own if not any(track.admits(one) for track in chosen)]
    if idle:
        methods = " or ".join(sorted({track.method for track in chosen}))
        raise InputError(f"theory must have the method {methods}, got {type(idle[0]).__name__} without")
    folder = out.absolute() / budget
    refuse_unwritable(folder)
    make_directory(folder)
    rows: list[dict[str, Any]] = []
    for track in chosen:
        entered = [entry for entry in entries[track.name] if not theories or entry.name in theories]
        part = arena.summary(arena.run(track, [*entered, *own], budget, folder))
        print(table(track, part).text(), end="\n\n", flush=True)
        rows += part
    figure = save_figure(picture(chosen, rows), folder / f"arena.{figures}")
    print(f"wrote {write_csv(folder / 'summary.csv', rows)}\nwrote {figure}")
    return 0


def _load(place: str) -> Any:
    """Return an object of the class that FILE.py:CLASS names."""
    file, _, name = place.rpartition(":")
    path = Path(file)
    if path.suffix != ".py" or not path.is_file():
        raise InputError(f"theory must be FILE.py:CLASS with a file that exists, got {short_text(place)}")
    spec = importlib.util.spec_from_file_location(f"theory_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        return getattr(module, name)()
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        raise InputError(f"theory must be a class that can be made, got {place} ({text})") from error
