"""What every recipe must keep to, whatever it makes."""

from functools import cache

import numpy as np
from pictures import SMALLEST, letters

from analysis.stats.intervals import Interval
from grokphys.papers.judge import decide, measured
from grokphys.papers.recipe import RECIPES, Number, Result, Run
from grokphys.papers.results import rounded


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
