"""Every recipe of Ding et al. at its smoke test: its tables, its figures, and what its rules measure."""

from importlib import import_module
from pkgutil import iter_modules

import numpy as np
import pytest
from scipy import stats

from grokphys.papers import ding
from grokphys.papers.judge import ALPHA, decide
from grokphys.papers.recipe import RECIPES, Run, Statement
from grokphys.papers.results import rounded

for module in iter_modules(ding.__path__):
    if module.name.startswith("figure_"):
        import_module(f"{ding.__name__}.{module.name}")
MADE = [name for name, recipe in RECIPES.items() if recipe.paper == "Ding"]
SHUFFLES = 40

pytestmark = pytest.mark.filterwarnings(
    "ignore:alpha = 0.01 leaves no coefficient", "ignore:Objective did not converge"
)


@pytest.mark.parametrize("name", MADE)
def test_a_recipe_makes_what_its_rules_measure(name, tmp_path):
    recipe = RECIPES[name]
    result = recipe.make(Run(recipe.settings["quick"], "quick"))
    assert next(iter(result.figures)) == name
    tables = rounded(result.columns())
    assert sum(len(next(iter(table.values()))) for table in tables.values()) > 0
    rng = np.random.default_rng(0)
    for rule in recipe.rules:
        found = rule.measure(tables, 0.95)
        if np.isfinite([found.estimate, found.low, found.high]).all():
            assert found.low <= found.estimate + 1e-9, rule.name
            assert found.estimate <= found.high + 1e-9, rule.name
        if isinstance(rule, Statement) and not isinstance(rule.chance, str):
            shuffles = (rule.chance(tables, rng) for _ in range(SHUFFLES))
            held = sum(decide(rule, rule.measure(some, 0.95)).verdict == "holds" for some in shuffles)
            assert stats.binomtest(held, SHUFFLES, ALPHA, alternative="greater").pvalue > 1e-3, rule.name


# -- rules on tables of which the truth is known ------------------------------------------------------------


def verdicts(name, tables, seed=None):
    """Return the verdict of every rule; with a seed, on tables shuffled as the rule says."""
    found = {}
    for rule in RECIPES[name].rules:
        if seed is None:
            found[rule.name] = decide(rule, rule.measure(tables, 0.95)).verdict
        elif not isinstance(rule.chance, str):
            shuffled = rule.chance(tables, np.random.default_rng(seed))
            found[rule.name] = decide(rule, rule.measure(shuffled, 0.95)).verdict
    return found


def seldom_hold(name, tables, shuffles=SHUFFLES):
    """Whether chance lets each statement hold in five per cent of the shuffles at most."""
    held = [verdicts(name, tables, seed) for seed in range(shuffles)]
    for rule in held[0]:
        count = sum(one[rule] == "holds" for one in held)
        assert stats.binomtest(count, shuffles, ALPHA, alternative="greater").pvalue > 1e-3, rule
    return True


def counted(moduli, dims, slope, networks=20, scatter=0.0):
    rng = np.random.default_rng(0)
    pairs = [(p, 128) for p in moduli] + [(59, d) for d in dims if d != 128]
    rows = []
    for p, d in pairs:
        prime = all(p % q for q in range(2, p))
        mean = (
            4 + slope * (p - 59) / 10 + slope * (d - 128) / 20 + (0 if prime else scatter * (-1) ** (p // 2))
        )
        rows += [(p, d, k, prime, round(mean + rng.normal(0, 0.7))) for k in range(networks)]
    names = ("p", "d", "network", "prime", "circles")
    return {
        "networks": {
            name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)
        }
    }


def test_counts_that_rise_are_told_from_counts_that_do_not():
    moduli, dims = (17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67), range(16, 129, 16)
    rising = counted(moduli, dims, 0.3)
    assert verdicts("ding-5", rising) | {"three or more": ""} == {
        "left": "holds", "right": "holds", "expected number": "holds", "three or more": ""
    }  # fmt: skip
    falling = verdicts("ding-5", counted(moduli, dims, -0.3))
    assert (falling["left"], falling["right"]) == ("does not hold", "does not hold")
    assert seldom_hold("ding-5", rising)
    every = counted(range(17, 68), (), 0.3, scatter=0.8)
    assert verdicts("ding-14", every) == {"trend": "holds", "variation": "holds"}
    assert verdicts("ding-14", counted(range(17, 68), (), 0.3))["variation"] != "holds"
    assert seldom_hold("ding-14", every)
