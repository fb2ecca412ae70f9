"""Runs recipes one after the other, judges their results and writes them."""

import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from grokphys.output import FigureFormat
from grokphys.papers.fingerprint import fingerprint
from grokphys.papers.judge import judge
from grokphys.papers.pieces import DATE
from grokphys.papers.recipe import Budget, Claim, Number, Recipe, Run
from grokphys.papers.results import read_result, rounded, rules_digest, write_result
from grokphys.progress import progress
from physics.errors import OutputError
from physics.seeds import hear_seeds, other_seeds
from physics.trajectory.locks import claim as claimed
from physics.trajectory.provenance import made_with


def run_recipes(
    names: Sequence[str],
    recipes: Mapping[str, Recipe],
    directory: Path,
    budget: Budget,
    *,
    again: bool,
    shift: int = 0,
    figures: FigureFormat = "png",
    pieces: Path | None = None,
) -> list[str]:
    """Run recipes one after the other, judge results at the papers' settings, and write all results.

    A recipe that fails is named on stderr, and the others still run. One that another process makes at the
    same time is passed over.

    Parameters
    ----------
    names : sequence of str
        Names of the recipes to run.
    recipes : mapping of str to Recipe
        All recipes by name.
    directory : Path
        Existing directory, in which each recipe writes to a folder of its name.
    budget : {"quick", "paper"}
        Toy settings, which take seconds and are not judged, or the settings of the papers.
    again : bool
        Whether to run also recipes whose results are up to date (see `is_complete`).
    shift : int, default 0
        Number that is added to every seed of the recipes.
    figures : {"png", "svg", "pdf"}, default "png"
        Format of the figures. PNG is written in any case, because the gallery shows it.
    pieces : Path, optional
        Directory for the pieces from which an interrupted run at the paper's setting continues; by default
        the folder ".unfinished" in `directory`.

    Returns
    -------
    list of str
        Names of the recipes that failed.

    Raises
    ------
    OutputError
        If a result cannot be written. The remaining recipes then do not run, because their results could not
        be written either.
    FileFormatError
        If a stored result cannot be read.
    """
    failed = []
    for name in progress(names, "reproduce", "recipe"):
        recipe = recipes[name]
        sources = fingerprint(recipe.module)
        if not again and is_complete(directory, recipe, budget, sources):
            print(f"{name}: complete, passed over")
            continue
        print(f"{name}: {recipe.shows}", flush=True)
        try:
            with claimed(directory / name, wait=False) as mine:
                if not mine:
                    print(f"{name}: another process makes it, passed over")
                    continue
                written = run_one(recipe, directory, budget, sources, figures, shift, pieces)
        except OutputError:  # the next result could not be written either
            raise
        except Exception as error:  # the other recipes still run
            place = traceback.extract_tb(error.__traceback__)[-1]
            failed.append(name)
            where = f"({Path(place.filename).name}:{place.lineno})"
            print(f"grokphys: {name} failed: {type(error).__name__}: {error} {where}", file=sys.stderr)
            continue
        for path in written:
            print(f"  wrote {path}")
    return failed


def is_complete(directory: Path, recipe: Recipe, budget: Budget, sources: str) -> bool:
    """Return whether a directory has an up-to-date result of a recipe.

    It must have been made at this budget, by code and libraries with the fingerprint `sources` (see
    `fingerprint`), and with the present rules.

    Raises
    ------
    FileFormatError
        If the stored result cannot be read.
    """
    stored = read_result(directory / recipe.name)
    if stored is None:
        return False
    found = tuple(stored.about[key] for key in ("budget", "sources", "rules"))
    return found == (budget, sources, rules_digest(recipe.rules))


def run_one(
    recipe: Recipe,
    directory: Path,
    budget: Budget,
    sources: str,
    figures: FigureFormat = "png",
    shift: int = 0,
    pieces: Path | None = None,
) -> list[Path]:
    """Run a recipe, judge it at the paper's setting, and write its result.

    Parameters
    ----------
    recipe : Recipe
        The recipe.
    directory : Path
        Existing directory, in which a folder with the name of the recipe is made.
    budget : {"quick", "paper"}
        A toy setting, which is not judged, or the setting of the paper.
    sources : str
        Fingerprint of the code (see `fingerprint`), which is stored with the result.
    figures : {"png", "svg", "pdf"}, default "png"
        Format of the figures.
    shift : int, default 0
        Number that is added to every seed.
    pieces : Path, optional
        Directory for pieces, as in `run_recipes`.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    OutputError
        If a file cannot be written. Errors of the recipe are passed on.
    """
    began, started = time.perf_counter(), datetime.now(UTC)
    store = (pieces or directory / ".unfinished") if budget == "paper" else None
    run = Run(recipe.settings[budget], budget, store, recipe.name, shift)
    made_with("physics", "nets")  # now, as the checkout may change before the result is written
    with hear_seeds() as seeds, other_seeds(shift):
        result = recipe.make(run)
    if budget == "paper":
        result = replace(result, claims=judge(recipe.rules, rounded(result.columns())))
    for one in result.claims:
        print(f"  {said(one)}")
    return write_result(
        directory,
        recipe,
        result,
        budget=budget,
        figures=figures,
        sources=sources,
        seeds=sorted(seeds),
        shift=shift,
        seconds=time.perf_counter() - began,
        date=started.strftime(DATE),
        pieces=list(run.pieces.values()),
    )


def said(claim: Claim) -> str:
    """Return a claim as one line of text for the terminal.

    It holds the name, the words or the number of the paper, our number with the possible part of its interval
    and the size of the sample, and the verdict.
    """
    rule, ours = claim.rule, claim.found.within(*claim.rule.possible).format(claim.rule.digits)
    paper = str(rule.printed) if isinstance(rule, Number) else f"“{rule.quote}”"
    return f"{rule.name}: {paper}; here {ours} of {claim.found.count} ({rule.independent}s): {claim.verdict}"
