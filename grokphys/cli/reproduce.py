"""`grokphys reproduce`: the items of the papers, judged by rules, and the pages that show them."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import tyro
from tyro.conf import Positional

from grokphys.options import Directory, Figures, Names, Switch, given_otherwise
from grokphys.output import make_directory, refuse_unwritable
from physics.checks import InputError, choice, whole_number

SHIFT = 10**9
"""Number that --other-seeds 1 adds to every seed; the recipes' seeds are far smaller."""


def reproduce(
    names: Positional[Names] = (),
    *,
    all_: Annotated[bool, tyro.conf.arg(name="all", help_behavior_hint="(default: off)")] = False,
    list_: Annotated[bool, tyro.conf.arg(name="list", help_behavior_hint="(default: off)")] = False,
    directory: Directory = Path("results/reproduce"),
    budget: Literal["quick", "paper"] = "quick",
    again: Switch = False,
    other_seeds: int = 0,
    pieces: Annotated[Path | None, given_otherwise("DIRECTORY/.unfinished", "DIRECTORY")] = None,
    figures: Figures = "png",
    publish: Annotated[Path | None, given_otherwise("nowhere", "DOCS")] = None,
    redraw: Annotated[Path | None, given_otherwise("nowhere", "DOCS")] = None,
) -> int:
    """Reproduce tables and figures of the papers and, at the papers' settings, judge every claim.

    Example: grokphys reproduce liu-4a --budget quick

    Args:
        names: Recipes to run, such as liu-4a; a recipe is the program that makes one figure or table. Recipes
            that are named run even if they are complete.
        all_: Run all recipes that are not complete in DIRECTORY. A recipe is complete if it was run at this
            budget with the same code, libraries and rules.
        list_: Print the names of all recipes, what they show and how long they take, and run none.
        directory: Directory to write to. Each recipe writes to a directory of its name in it. An interrupted
            run continues from there, unless --pieces names another directory.
        budget: How much to compute. quick takes seconds at toy settings and gives no verdicts; paper takes
            the settings of the paper, and --list says how long that takes.
        again: Let --all run complete recipes again. Recipes that are named run again in any case.
        other_seeds: Number K, at least 0, that selects other random seeds, to see whether a verdict depends
            on chance. K times a billion is added to every seed, and the results go to DIRECTORY/seeds-K. 0
            keeps the seeds of the recipes.
        pieces: Directory in which recipes at the settings of the papers keep what they have computed, such as
            single networks. An interrupted run continues from there, also in another clone, as long as the
            setting, the code and the libraries are the same.
        publish: Directory of the documentation. Results at the settings of the papers are copied there from
            DIRECTORY, and the rules, the scoreboard, the gallery and the findings are written again. Recipes
            that are named, or all of them with --all, run first.
        redraw: Directory of the documentation. The pictures of the named recipes are drawn there again, and
            nothing else changes. They are drawn from the stored tables, and refused if they show more.
    """
    from grokphys.papers.pages import first_sentence
    from grokphys.papers.run import publish as write_pages
    from grokphys.papers.run import recipes, run_recipes
    from grokphys.papers.run import redraw as redraw_pictures

    known = recipes()
    for name in names:
        choice("names", name, tuple(known))
    whole_number("other_seeds", other_seeds, 0)
    if redraw is not None and not names:
        raise InputError("names must say which recipes to draw again with --redraw, got none")
    if names and all_:
        raise InputError(f"names must be left out with --all, got {' '.join(names)}")
    if not (names or all_ or list_ or publish is not None):
        raise InputError("names must say which recipes to run, or pass --all, --list or --publish, got none")
    if pieces is not None and budget == "quick":
        raise InputError(f"pieces must be left out with --budget quick, which keeps none, got {pieces}")
    if list_:
        width = max(map(len, known))
        for name in names or known:
            print(f"{name:{width}}  {first_sentence(known[name].shows)} ({known[name].cost})")
        return 0
    if redraw is not None:
        docs = redraw.absolute()
        refuse_unwritable(docs / "gallery", parents=False)
        for name in names:
            for path in redraw_pictures(known[name], docs):
                print(f"wrote {path}")
        return 0
    # Absolute, so that nothing is written elsewhere if the working directory changes meanwhile.
    directory = directory.absolute()
    if publish is not None:
        refuse_unwritable(publish := publish.absolute(), parents=False)
    refuse_unwritable(directory)
    if pieces is not None:
        refuse_unwritable(pieces := pieces.absolute())
    apart = f"seeds-{other_seeds}" if other_seeds else ""
    make_directory(directory / apart)
    chosen = names or (tuple(known) if all_ else ())
    failed = run_recipes(
        chosen,
        known,
        directory / apart,
        budget,
        again=again or bool(names),
        shift=other_seeds * SHIFT,
        figures=figures,
        pieces=None if pieces is None else pieces / apart,
    )
    if publish is not None:
        for path in write_pages(known, directory, publish):
            print(f"wrote {path}")
    if failed:
        print(f"grokphys: {len(failed)} failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0
