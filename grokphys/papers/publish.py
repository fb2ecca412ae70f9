"""Publication: copies results at the papers' settings to the documentation, and writes its pages."""

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from grokphys.output import make_directory, write_text
from grokphys.papers.judge import judge
from grokphys.papers.pages import findings_page, gallery_page, rules_page, scoreboard_page
from grokphys.papers.recipe import Recipe
from grokphys.papers.results import Stored, read_result, rules_digest, write_claims
from physics.errors import InputError


def publish(recipes: Mapping[str, Recipe], made: Path, docs: Path) -> list[Path]:
    """Copy results at the papers' settings to the documentation, and write its pages again.

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
        Directory of the documentation, in which the folders ``results`` and ``gallery`` and the four pages
        are written.

    Returns
    -------
    list of Path
        The pages: rules.md, scoreboard.md, gallery.md and findings.md.

    Raises
    ------
    InputError
        If a result to copy was judged by other rules than the present ones.
    FileFormatError
        If a stored result cannot be read.
    """
    results, gallery = docs / "results", docs / "gallery"
    make_directory(results, gallery)
    shifts = [path.name for path in sorted(made.glob("seeds-*"))]
    places = [(name, name) for name in recipes]
    for place, name in [*places, *((f"{shift}/{name}", name) for shift in shifts for name in recipes)]:
        recipe, stored = recipes[name], read_result(made / place)
        if stored is None or stored.about["budget"] != "paper":
            continue
        if stored.about["rules"] != rules_digest(recipe.rules):
            raise InputError(f"the rules of {name} have changed since it ran; run it again, with other seeds")
        folder = results / place
        make_directory(folder)
        for old in folder.iterdir():
            old.unlink()
        for path in sorted((made / place).glob("*.json"), key=lambda path: path.name == "result.json"):
            shutil.copyfile(path, folder / path.name)
        if place == name:
            for figure in stored.about["figures"]:
                shutil.copyfile(made / name / f"{figure}.png", gallery / f"{figure}.png")
    every = {**stored_results(recipes, results), **stored_replicas(recipes, results)}
    for place, stored in every.items():
        write_claims(results / place, stored, judge(recipes[place.rpartition("/")[2]].rules, stored.tables))
    found, replicas = stored_results(recipes, results), stored_replicas(recipes, results)
    return [
        write_text(docs / "rules.md", rules_page(recipes)),
        write_text(docs / "scoreboard.md", scoreboard_page(recipes, found, replicas)),
        write_text(docs / "gallery.md", gallery_page(recipes, found)),
        write_text(docs / "findings.md", findings_page(recipes, found)),
    ]


def stored_results(recipes: Iterable[str], directory: Path) -> dict[str, Stored]:
    """Return the complete results of the named recipes in a directory, by name and in the order of `recipes`.

    The directory is one that `run_recipes` or `publish` has filled.

    Raises
    ------
    FileFormatError
        If a stored result cannot be read.
    """
    found = {name: read_result(directory / name) for name in recipes}
    return {name: stored for name, stored in found.items() if stored is not None}


def stored_replicas(recipes: Iterable[str], directory: Path) -> dict[str, Stored]:
    """Return the complete results with other random seeds in a directory, by "seeds-K/NAME".

    `grokphys reproduce --other-seeds K` makes them, in a folder "seeds-K" for each K.

    Raises
    ------
    FileFormatError
        If a stored result cannot be read.
    """
    names = list(recipes)
    shifts = [path.name for path in sorted(directory.glob("seeds-*"))]
    found = {f"{one}/{name}": read_result(directory / one / name) for one in shifts for name in names}
    return {place: stored for place, stored in found.items() if stored is not None}
