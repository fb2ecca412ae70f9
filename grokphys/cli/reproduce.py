"""`grokphys reproduce`: published figures made anew, and the scoreboard of all of them."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import Positional

from grokphys.options import Directory, Names, check_names, given_otherwise
from grokphys.output import Budget, make_directory, refuse_existing, refuse_unwritable
from physics.errors import InputError


def reproduce(
    names: Positional[Names] = (),
    *,
    all_: Annotated[bool, tyro.conf.arg(name="all")] = False,
    list_: Annotated[bool, tyro.conf.arg(name="list")] = False,
    directory: Directory = Path("results/reproduce"),
    budget: Budget = "default",
    again: bool = False,
    scoreboard: Annotated[Path | None, given_otherwise("only in DIRECTORY", "FILE.md")] = None,
    gallery: Annotated[Path | None, given_otherwise("none", "DIRECTORY")] = None,
) -> int:
    """Reproduce published figures: the data as CSV, the figure as PNG, and a scoreboard of all of them.

    Args:
        names: figures, such as liu-4a; all of them if none is given. Those named run in any case.
        all_: all figures, but for those that are complete in DIRECTORY at this budget, made by the code and
            the libraries that there are now.
        list_: print the names of all figures and what they show, and make none.
        directory: directory to write to; files that an earlier reproduction made are replaced.
        budget: how much to compute: quick takes minutes in all, default is what this package reports, paper
            the sizes of the publications, which take days.
        again: run complete figures as well.
        scoreboard: write the scoreboard to this Markdown file too, and its data beside it as JSON.
        gallery: write small pictures to this directory, and a page that shows them beside it.
    """
    from grokphys.papers.registry import FIGURES
    from grokphys.papers.runner import publish_board, run_recipes

    names = tuple(name.replace("-fig", "-") for name in names)  # liu-fig4b is liu-4b
    check_names(names, FIGURES, budget)
    if names and all_:
        raise InputError(f"names must be left out with --all, got {' '.join(names)}")
    if list_:
        _list_figures(names or tuple(FIGURES))
        return 0
    pages = [] if scoreboard is None else [scoreboard, scoreboard.with_suffix(".json")]
    if scoreboard is not None and scoreboard.suffix != ".md":
        raise InputError(f"scoreboard must be a Markdown file, NAME.md, got {scoreboard}")
    if gallery is not None:
        refuse_unwritable(gallery)
        pages.append(gallery.with_name(gallery.name + ".md"))
    for page in pages:
        refuse_existing(page, overwrite=True, parents=True)
    refuse_unwritable(directory)
    make_directory(directory, *(page.parent for page in pages))
    failed = run_recipes(names or tuple(FIGURES), FIGURES, directory, budget, again=again or bool(names))
    for path in publish_board(FIGURES, directory, scoreboard, gallery):
        print(f"  wrote {path}")
    if failed:
        print(f"grokphys: {len(failed)} failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _list_figures(names: Sequence[str]) -> None:
    from grokphys.papers.registry import FIGURES

    width = max(map(len, names))
    for name in names:
        print(f"{name:{width}}  {(FIGURES[name].__doc__ or '').splitlines()[0]}")
