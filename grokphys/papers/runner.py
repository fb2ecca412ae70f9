"""Runs recipes one after the other, passes over those that are complete, and goes on where one fails."""

import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from grokphys.output import Budget, write_text
from grokphys.papers.board import (
    ITEMS,
    Record,
    add_record,
    assemble,
    read_board,
    records_of,
    tally,
    write_board,
)
from grokphys.papers.claims import Item
from grokphys.papers.fingerprint import fingerprint
from grokphys.papers.pages import scoreboard_page, write_gallery
from grokphys.progress import progress
from physics.seeds import hear_seeds
from physics.trajectory.locks import claim
from physics.trajectory.provenance import code_version

Recipe = Callable[[Path, Budget], list[Path]]
BOARD = "scoreboard.json"


def run_recipes(
    names: Sequence[str], figures: Mapping[str, Recipe], out: Path, budget: Budget, *, again: bool
) -> list[str]:
    """Run recipes and record each as it ends; return the names of those that failed.

    Parameters
    ----------
    names : sequence of str
    figures : mapping
        All recipes by name.
    out : Path
        Directory that exists; it holds the scoreboard's data, `scoreboard.json`.
    budget : str
    again : bool
        Whether to run those as well that are complete at this budget and by the same code and libraries.
    """
    board = out / BOARD
    done = records_of(read_board(board))
    failed = []
    for name in progress(names, "reproduce", "figure"):
        sources = fingerprint(figures[name].__module__)
        if not again and name in done and done[name].holds(budget, sources, out):
            print(f"{name}: complete, passed over")
            continue
        print(f"{name}: {(figures[name].__doc__ or '').splitlines()[0]}", flush=True)
        record = run_one(name, figures[name], out, budget, sources)
        add_record(board, record)
        if record.error:
            failed.append(name)
            print(f"grokphys: {name} failed: {record.error}", file=sys.stderr)
        for file in record.files:
            print(f"  wrote {out / file}")
    return failed


def run_one(name: str, recipe: Recipe, out: Path, budget: Budget, sources: str) -> Record:
    """Run a recipe; whatever it raises becomes a sentence of its record."""
    began, started = time.perf_counter(), datetime.now(UTC)
    files: list[str] = []
    error = ""
    with hear_seeds() as seeds:
        try:
            files = [path.name for path in recipe(out, budget)]
        except Exception as caught:  # every recipe gets its turn, so nothing may end the others
            place = traceback.extract_tb(caught.__traceback__)[-1]
            error = f"{type(caught).__name__}: {caught} ({Path(place.filename).name}:{place.lineno})"
    return Record(
        recipe=name,
        budget=budget,
        date=started.strftime("%Y-%m-%dT%H:%M:%SZ"),
        code_version=code_version(),
        sources=sources,
        seconds=round(time.perf_counter() - began, 1),
        seeds=sorted(seeds),
        files=files,
        error=error,
    )


def publish_board(
    figures: Mapping[str, Recipe],
    out: Path,
    scoreboard: Path | None = None,
    gallery: Path | None = None,
    items: Sequence[Item] = ITEMS,
) -> list[Path]:
    """Judge all rows; write data and page to `out` and to `scoreboard`, and the gallery."""
    written = []
    with claim(out / BOARD, wait=True):
        content = assemble(read_board(out / BOARD), out, tuple(figures), items)
        for page in {out / "scoreboard.md", scoreboard or out / "scoreboard.md"}:
            write_board(page.with_suffix(".json"), content)
            written.append(write_text(page, scoreboard_page(content)))
    if gallery is not None:
        written += write_gallery(gallery, content, out)
    print("scoreboard: " + ", ".join(f"{count} {word}" for word, count in tally(content["rows"]).items()))
    return written
