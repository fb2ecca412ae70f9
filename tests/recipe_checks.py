"""What every recipe must keep to, and the stored results with the words about them."""

from functools import cache
from pathlib import Path

import numpy as np

from grokphys.papers.judge import decide, measured
from grokphys.papers.recipe import RECIPES, Number
from grokphys.papers.results import Stored
from grokphys.papers.run import recipes, stored_results

DOCS = Path(__file__).parents[1] / "docs"


def held_by_chance(name: str, tables, *, draws: int = 100) -> dict[str, float]:
    """Part of the draws of chance by which each statement that has one holds, at the level of one alone."""
    found = {}
    generator = np.random.default_rng(7)
    for rule in RECIPES[name].rules:
        if isinstance(rule, Number):
            continue
        verdicts = [
            decide(rule, measured(rule, rule.chance(tables, generator), 0.95)).verdict for _ in range(draws)
        ]
        found[rule.name] = verdicts.count("agrees") / draws
    return found


# -- the stored results, and the words about them -----------------------------------------------------------


def text_of(page: str) -> str:
    """Return the text of a page of the documentation, with single spaces."""
    return " ".join((DOCS / f"{page}.md").read_text(encoding="utf-8").split())


@cache
def published() -> dict[str, Stored]:
    """Return the stored results at the papers' settings by name."""
    return stored_results(recipes(), DOCS / "results")


def table(name: str, part: str) -> dict[str, np.ndarray]:
    """Return a table of a stored result."""
    return {column: np.asarray(values) for column, values in published()[name].tables[part].items()}


def note(name: str, rule: str) -> str:
    """Return the note of a rule, or why it was withdrawn."""
    recipe = recipes()[name]
    return recipe.withdrawn.get(rule) or next(one.note for one in recipe.rules if one.name == rule)


def claims(name: str) -> dict[str, dict]:
    """Return the claims of a stored result by name."""
    return {claim["name"]: claim for claim in published()[name].about["claims"]}
