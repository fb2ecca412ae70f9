"""Every recipe of Liu et al. at its smoke test, and its rules on true and on shuffled tables."""

import dataclasses
import functools
import importlib
import pkgutil
from typing import get_args

import numpy as np
import pytest

from analysis.phases.classification import PHASES
from grokphys.papers import liu
from grokphys.papers.judge import decide, judge
from grokphys.papers.liu import figures_03_04b_05b as toy
from grokphys.papers.liu import figures_06_13_to_15 as diagrams
from grokphys.papers.liu import measures, planes
from grokphys.papers.recipe import RECIPES, Run, Word
from grokphys.papers.results import rounded

for module in pkgutil.iter_modules(liu.__path__):
    importlib.import_module(f"{liu.__name__}.{module.name}")
NAMES = [name for name, recipe in RECIPES.items() if recipe.paper == "Liu" and "papers.liu" in recipe.module]
FAST = ("liu-4a", "liu-5a", "liu-6a", "liu-9", "liu-11", "liu-12", "liu-table1")


def verdicts(rules, tables):
    return {rule.name: judge((rule,), tables)[0].verdict for rule in rules}


def false_share(rule, tables, tries=40):
    generator = np.random.default_rng(0)
    shuffles = [rule.chance(tables, generator) for _ in range(tries)]
    return np.mean([decide(rule, rule.measure(one, 0.95)).verdict == "holds" for one in shuffles])


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in FAST else [pytest.mark.slow]) for n in NAMES]
)
def test_a_smoke_test_makes_tables_figures_and_what_rules_measure(name):
    recipe = RECIPES[name]
    result = recipe.make(Run(recipe.settings["quick"], "quick"))
    tables = rounded(result.columns())
    assert next(iter(result.figures)) == name
    assert any(len(next(iter(table.values()))) for table in tables.values())
    assert set(verdicts(recipe.rules, tables).values()) <= set(get_args(Word))


def test_every_recipe_has_a_rule_and_a_paper_setting_of_its_own():
    assert len(NAMES) > 10
    for name in NAMES:
        recipe = RECIPES[name]
        assert recipe.rules, name
        assert set(recipe.settings) == {"quick", "paper"}


def test_every_figure_of_the_paper_has_a_recipe():
    items = " ".join(RECIPES[name].item for name in NAMES) + " "
    missing = [k for k in range(1, 23) if f"Figure {k} " not in items.replace(";", " ").replace(",", " ")]
    assert missing == []
    assert "Table 1" in items


# -- planes ------------------------------------------------------------------------------------------------


def plane_as_in_the_paper(each=3, cells=10, noise=0.03):
    """Comprehension, grokking, memorization from left to right above; confusion at the right below."""
    generator = np.random.default_rng(1)
    column, row, _ = (a.ravel() for a in np.indices((cells, cells, each)))
    phase = np.select([column < 4, column < 6, row < 6], PHASES[:3], PHASES[3])
    other = generator.random(len(phase)) < noise
    phase[other] = generator.choice(PHASES, other.sum())
    return {"networks": {"diagram": np.full(len(phase), "a"), "column": column, "row": row, "phase": phase}}


def test_a_plane_that_was_interrupted_goes_on(tmp_path, monkeypatch):
    setting = RECIPES["liu-6c"].settings["quick"]
    small = dataclasses.replace(setting, steps=40, delay=20)
    first = planes.train_plane(Run(small, "paper", tmp_path), small)
    rows = sorted(tmp_path.rglob("*.npz"))
    assert len(rows) == small.cells
    rows[1].unlink()
    trained = []
    train_cells = planes._train_cells

    @functools.wraps(train_cells)  # of the same module, on whose code the pieces depend
    def counted(*args):
        trained.append(args[2])
        return train_cells(*args)

    monkeypatch.setattr(planes, "_train_cells", counted)
    again = planes.train_plane(Run(small, "paper", tmp_path), small)
    assert trained == [1]
    for name, values in first.items():
        np.testing.assert_array_equal(again[name], values)
    cells = planes.train_plane(Run(small, "paper", tmp_path / "cells"), small, width=2)
    assert len(sorted((tmp_path / "cells").rglob("*.npz"))) == 2 * small.cells, "of two cells and of one"
    for name, values in first.items():
        np.testing.assert_array_equal(cells[name], values)


def test_rules_of_planes_hold_where_the_paper_is_right_and_not_by_chance():
    tables = plane_as_in_the_paper()
    assert set(verdicts(diagrams.CAPACITY, tables).values()) == {"holds"}
    for rule in diagrams.CAPACITY:
        if callable(rule.chance):
            assert false_share(rule, tables) <= 0.05
    assert measures.closer_to_memorization(tables, 0.95).low > 0.5


def test_a_plane_without_grokking_is_no_sandwich():
    tables = plane_as_in_the_paper(noise=0.0)
    rows = tables["networks"]
    turned = {"comprehension": "grokking", "grokking": "comprehension"}
    rows["phase"] = np.array([turned.get(phase, phase) for phase in rows["phase"]])
    assert verdicts([planes.SANDWICH], tables) == {"sandwiched": "does not hold"}


def test_half_a_plane_says_nothing_of_which_network_is_faster():
    """59.6 % of a plane may lie where the representation is faster: shares, not places, are compared."""
    rule = next(rule for rule in RECIPES["liu-6a"].rules if rule.name == "faster")
    generator = np.random.default_rng(2)
    rates = generator.uniform(-5, -2, (300, 2))
    tables = {
        "networks": {
            "learning_rate": 10 ** rates[:, 0],
            "embedding_learning_rate": 10 ** rates[:, 1],
            "phase": np.full(300, "comprehension"),
        }
    }
    assert decide(rule, rule.measure(tables, 0.95)).verdict == "does not hold"


def test_the_step_of_a_curve_is_where_it_passes():
    fraction = np.repeat(np.arange(1, 11) / 10, 4)
    assert toy.half_rise(fraction, fraction >= 0.4) == pytest.approx(0.35)
    assert np.isnan(toy.half_rise(fraction, fraction > 2))
    assert np.isnan(toy.half_rise(fraction, fraction > 0))
    # A single one of four networks passes, at the last of ten sizes: a quarter of half of the last 0.1.
    assert toy.half_rise(fraction, np.arange(40) == 39) == pytest.approx(1 - 0.1 / 8)
