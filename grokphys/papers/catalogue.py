"""All recipes, which are registered when the modules of the papers are imported."""

import importlib
import pkgutil
from collections.abc import Mapping

from grokphys.papers import beyond, ding, he, liu, musat
from grokphys.papers.recipe import RECIPES, Recipe


def recipes() -> Mapping[str, Recipe]:
    """Return all recipes by name: those of Musat, Liu, Ding and He, then ours.

    Within a paper they are sorted by the letters of the name, then by its number. The first call imports the
    modules of the papers, because importing a module registers its recipes.
    """
    for folder in (musat, liu, ding, he, beyond):
        for module in pkgutil.iter_modules(folder.__path__, f"{folder.__name__}."):
            importlib.import_module(module.name)
    papers = ("Musat", "Liu", "Ding", "He", "beyond")
    order = sorted(RECIPES, key=lambda name: (papers.index(RECIPES[name].paper), _place(name)))
    return {name: RECIPES[name] for name in order}


def _place(name: str) -> tuple[str, int, str]:
    """Return the key by which the recipes of a paper are sorted: letters of the name, its number, the rest.

    A name without a number after its first hyphen comes after those with one.
    """
    stem, _, rest = name.partition("-")
    digits = "".join(character for character in rest if character.isdigit())
    return (stem, int(digits) if digits and rest[0].isdigit() else 1000, rest)
