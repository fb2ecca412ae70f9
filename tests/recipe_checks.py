"""What every recipe must keep to, and the stored results with the words about them."""

from functools import cache
from pathlib import Path

import numpy as np
from pictures import SMALLEST, letters

from analysis.stats.intervals import Interval
from grokphys.papers.catalogue import recipes
from grokphys.papers.judge import decide, measured
from grokphys.papers.publish import stored_results
from grokphys.papers.recipe import RECIPES, Number, Result, Run
from grokphys.papers.results import Stored, rounded

DOCS = Path(__file__).parents[1] / "docs"


@cache
def made_quickly(name: str) -> Result:
    """Run a recipe at its quick setting, once in a process.

    Tables, figures and rules must be as the runner needs them.
    """
    one = RECIPES[name]
    result = one.make(Run(one.settings["quick"], "quick"))
    tables = rounded(result.columns())
    assert next(iter(result.figures)) == name
    assert all(figure.axes for figure in result.figures.values())
    assert all(min(letters(figure)) >= SMALLEST for figure in result.figures.values())
    assert all(len(column) for table in tables.values() for column in table.values())
    for rule in one.rules:
        assert isinstance(rule.measure(tables, 0.95), Interval)
        if isinstance(rule, Number):
            assert np.isfinite(rule.printed.value)
        elif callable(rule.chance):
            rule.chance(tables, np.random.default_rng(0))
    return result


def held_by_chance(name: str, tables, *, draws: int = 100) -> dict[str, float]:
    """Part of the draws of chance by which each statement that has one holds, at the level of one alone."""
    found = {}
    generator = np.random.default_rng(7)
    for rule in RECIPES[name].rules:
        if isinstance(rule, Number) or isinstance(rule.chance, str):
            continue
        verdicts = [
            decide(rule, measured(rule, rule.chance(tables, generator), 0.95)).verdict for _ in range(draws)
        ]
        found[rule.name] = verdicts.count("holds") / draws
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
    found = next(one for one in recipes()[name].rules if one.name == rule)
    return getattr(found, "withdrawn", "") or found.note


def claims(name: str) -> dict[str, dict]:
    """Return the claims of a stored result by name."""
    return {claim["name"]: claim for claim in published()[name].about["claims"]}
