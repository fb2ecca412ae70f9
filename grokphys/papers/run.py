"""Runs recipes, judges and writes their results, draws stored ones again, and publishes them."""

import importlib
import pkgutil
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from grokphys import papers
from grokphys.output import FigureFormat, make_directory, save_figure, write_bytes, write_text
from grokphys.papers.judge import counted, judge
from grokphys.papers.pages import PAGES, filled
from grokphys.papers.pieces import code_digest
from grokphys.papers.recipe import RECIPES, Budget, Claim, Number, Recipe, Run
from grokphys.papers.results import WIDTH, Stored, read_result, rounded, same_terms, setting_of
from grokphys.progress import progress
from physics.errors import InputError, OutputError
from physics.values import natural_order


def recipes() -> Mapping[str, Recipe]:
    """Return all recipes by name: those of Musat, Liu, Ding and He, then ours.

    Within a paper they are sorted by name, with numbers as numbers. The first call imports the modules of the
    papers, because importing a module registers its recipes.
    """
    for module in pkgutil.walk_packages(papers.__path__, f"{papers.__name__}."):
        importlib.import_module(module.name)
    order = ("Musat", "Liu", "Ding", "He", "beyond")
    names = sorted(RECIPES, key=lambda name: (order.index(RECIPES[name].paper), natural_order(name)))
    return {name: RECIPES[name] for name in names}


def run_recipes(
    names: Sequence[str], recipes: Mapping[str, Recipe], directory: Path, budget: Budget, *, again: bool,
    shift: int = 0, figures: FigureFormat = "png", pieces: Path | None = None,
) -> list[str]:  # fmt: skip
    """Run recipes one after the other, judge results at the papers' settings, and write all results.

    A recipe that fails is named on stderr, and the others still run.

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
    store = pieces or directory / ".unfinished" if budget == "paper" else None
    for name in progress(names, "reproduce", "recipe"):
        if not again and is_complete(directory, recipes[name], budget):
            print(f"{name}: complete, passed over")
            continue
        print(f"{name}: {recipes[name].shows}", flush=True)
        try:
            run = Run(recipes[name].settings[budget], budget, store, name, shift)
            written = run_one(recipes[name], directory, run, figures)
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


def is_complete(directory: Path, recipe: Recipe, budget: Budget) -> bool:
    """Return whether a directory has a result of a recipe at this budget, of the present code.

    A `FileFormatError` says that the stored result cannot be read.
    """
    stored = read_result(directory / recipe.name)
    today = {"budget": budget, "sources": code_digest()}
    return stored is not None and today.items() <= stored.about.items()


def run_one(recipe: Recipe, directory: Path, run: Run, figures: FigureFormat = "png") -> list[Path]:
    """Make a `run` of a recipe, judge it at the paper's setting, and write its result; return the files.

    The result goes to a folder with the name of the recipe in an existing directory. An `OutputError` says
    that a file cannot be written; errors of the recipe are passed on.
    """
    began = datetime.now(UTC)
    code_digest()  # now, as the checkout may change before the result is written
    result = recipe.make(run)
    if recipe.draw:
        result = replace(result, figures=recipe.draw(run.setting, result.columns()))
    if run.budget == "paper":
        result = replace(result, claims=judge(recipe.rules, rounded(result.columns()), recipe.looks))
    for claim in result.claims:
        print(f"  {said(claim)}")
    if result.claims:
        print(f"  {counted(claim.verdict for claim in result.claims)}")
    return papers.results.write_result(directory, recipe, result, run, began, figures)


def said(claim: Claim) -> str:
    """Return a claim as one line of text for the terminal.

    It holds the name, the words or the number of the paper, our number with the possible part of its interval
    and the size of the sample, and the verdict.
    """
    rule, ours = claim.rule, claim.found.within(*claim.rule.possible).format(claim.rule.digits)
    paper = rule.quoted if isinstance(rule, Number) else f"“{rule.quote}”"
    return f"{rule.name}: {paper}; here {ours} of {claim.found.count} ({rule.independent}s): {claim.verdict}"


# -- pictures of stored results -----------------------------------------------------------------------------


def redraw(recipe: Recipe, docs: Path) -> list[Path]:
    """Replace the pictures of a stored result in the gallery by ones that are drawn from its tables.

    Parameters
    ----------
    recipe : Recipe
        Recipe with a function `draw` and a result at the paper's setting.
    docs : Path
        Directory of the documentation, with ``results/`` and ``gallery/``.

    Returns
    -------
    list of Path
        The pictures that were written.

    Raises
    ------
    InputError
        If there is no such result, if the recipe draws while it runs, or if its setting has changed.
    """
    results, setting = docs / "results", recipe.settings["paper"]
    stored = read_result(results / recipe.name)
    if stored is None or stored.about["budget"] != "paper":
        raise InputError(f"names must name results at the paper's setting in {results}, got {recipe.name}")
    if not recipe.draw or stored.about["setting"] != setting_of(setting):
        why = "its setting has changed" if recipe.draw else "its pictures show more than its tables"
        raise InputError(f"names must name recipes that can be drawn again, got {recipe.name}: {why}")
    return [
        save_figure(figure, docs / "gallery" / f"{name}.png", dpi=WIDTH / figure.get_figwidth())
        for name, figure in recipe.draw(setting, stored.tables).items()
    ]


# -- publication --------------------------------------------------------------------------------------------


def publish(recipes: Mapping[str, Recipe], made: Path, docs: Path) -> list[Path]:
    """Copy results at the papers' settings to the documentation, and fill its pages again.

    All results in the documentation are judged again from their tables, so that no verdict is older than the
    code that judges.

    Parameters
    ----------
    recipes : mapping of str to Recipe
        All recipes by name.
    made : Path
        Directory that `run_recipes` has filled. A result in the documentation stays as it is if `made` has no
        result of its recipe at the paper's setting. The folders "seeds-K" in `made` hold results with other
        random seeds, which are copied without their figures.
    docs : Path
        Directory of the documentation with its pages, in which the folders ``results`` and ``gallery`` are
        made. The parts of the pages that `pages.filled` names are written again.

    Returns
    -------
    list of Path
        The pages: rules.md, scoreboard.md, gallery.md, notes.md and those in the folder findings.

    Raises
    ------
    InputError
        If a page is missing, or a result was judged by other rules than the present ones.
    FileFormatError
        If a stored result cannot be read.
    """
    for page in PAGES:
        if not (docs / page).is_file():
            raise InputError(f"publish must be a directory of the documentation with {page}, got {docs}")
    results, gallery = docs / "results", docs / "gallery"
    make_directory(results, gallery)
    for place, stored in {**stored_results(recipes, made), **stored_replicas(recipes, made)}.items():
        recipe = recipes[place.rpartition("/")[2]]
        if stored.about["budget"] != "paper":
            continue
        _refuse_other_rules(recipe, stored)
        make_directory(results / place)
        for old in (results / place).iterdir():
            old.unlink()
        for path in sorted((made / place).glob("*.json"), key=lambda path: path.name == "result.json"):
            write_bytes(results / place / path.name, path.read_bytes())
        for figure in stored.about["figures"] if place == recipe.name else ():
            write_bytes(gallery / f"{figure}.png", (made / place / f"{figure}.png").read_bytes())
    current, replicas = stored_results(recipes, results), stored_replicas(recipes, results)
    for place, stored in {**current, **replicas}.items():
        recipe = recipes[place.rpartition("/")[2]]
        _refuse_other_rules(recipe, stored)
        papers.results.write_claims(results / place, stored, judge(recipe.rules, stored.tables, recipe.looks))
    every = [docs / page for page in PAGES] + sorted((docs / "findings").glob("*.md"))
    texts = {page: page.read_text(encoding="utf-8") for page in every}
    return [write_text(page, filled(text, recipes, current, replicas)) for page, text in texts.items()]


def _refuse_other_rules(recipe: Recipe, stored: Stored) -> None:
    """Raise an `InputError` if a result was judged by other rules than those of its recipe."""
    if not same_terms(recipe, stored):
        raise InputError(
            f"the rules of {recipe.name} have changed since it ran; run it again, with other seeds"
        )


def stored_results(recipes: Iterable[str], directory: Path) -> dict[str, Stored]:
    """Return the complete results of the named recipes in a directory, by name and in the order of `recipes`.

    The directory is one that `run_recipes` or `publish` has filled. A `FileFormatError` says that a result
    cannot be read.
    """
    every = {name: read_result(directory / name) for name in recipes}
    return {name: stored for name, stored in every.items() if stored is not None}


def stored_replicas(recipes: Iterable[str], directory: Path) -> dict[str, Stored]:
    """Return the complete results with other random seeds in a directory, by "seeds-K/NAME".

    `grokphys reproduce --other-seeds K` makes them, in a folder "seeds-K" for each K.
    """
    shifts = [path.name for path in sorted(directory.glob("seeds-*"))]
    return stored_results([f"{shift}/{name}" for shift in shifts for name in recipes], directory)
