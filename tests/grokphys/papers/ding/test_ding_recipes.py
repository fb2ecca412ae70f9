"""Every recipe of Ding et al. at its smoke test: its tables, its figures, and what its rules measure."""

from dataclasses import replace
from importlib import import_module
from pkgutil import iter_modules

import numpy as np
import pytest
from scipy import stats

from grokphys.papers import ding
from grokphys.papers.beyond import law
from grokphys.papers.ding import figure_05
from grokphys.papers.ding.training import QUICK, Size
from grokphys.papers.judge import ALPHA, decide, judge
from grokphys.papers.recipe import RECIPES, Run, Statement
from grokphys.papers.results import rounded

for module in iter_modules(ding.__path__):
    if module.name.startswith("figure_"):
        import_module(f"{ding.__name__}.{module.name}")
MADE = [name for name, recipe in RECIPES.items() if recipe.paper == "Ding" or recipe.module == law.__name__]
SHUFFLES = 40

pytestmark = pytest.mark.filterwarnings(
    "ignore:alpha = 0.01 leaves no coefficient", "ignore:Objective did not converge"
)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Where recipes find the networks that they share with others."""
    return tmp_path_factory.mktemp("store")


FEWER = {"networks": 2, "embeddings": 2, "trials": 3, "pairs": 2}
SMALL = Size(23, 32, 450)
"""Counts and a size that are enough here; smoke tests of the command have more. After 450 steps some circles
survive and others do not."""
BOTH = {"ding-3", "ding-6", "ding-7"}
"""Figures that need circles that survive and circles that die; the few small networks do not offer both. The
last two share their networks."""


def shortened(name, setting):
    """A setting that takes half the time; laws are fitted to as many networks as in the smoke test."""
    small = replace(QUICK, steps=SMALL.steps) if name in BOTH else SMALL
    if setting == QUICK:
        return small
    laws = hasattr(setting, "laws")
    fewer = {name: n for name, n in FEWER.items() if n < getattr(setting, name, 0) <= 6 and not laws}
    size = getattr(setting, "size", None)
    if size is not None:  # a figure of gradients needs its more steps
        fewer["size"] = small if size == QUICK else replace(size, tokens=min(size.tokens, SMALL.tokens))
    return replace(setting, **fewer)


@pytest.mark.parametrize("name", MADE)
def test_a_recipe_makes_what_its_rules_measure(name, store):
    recipe = RECIPES[name]
    result = recipe.make(Run(shortened(name, recipe.settings["quick"]), "quick", store, name))
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
            found[rule.name] = judge((rule,), tables)[0].verdict
        elif not isinstance(rule.chance, str):
            shuffled = rule.chance(tables, np.random.default_rng(seed))
            found[rule.name] = judge((rule,), shuffled)[0].verdict
    return found


def seldom_hold(name, tables, shuffles=SHUFFLES):
    """Whether chance lets each statement hold in five percent of the shuffles at most."""
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


def test_counts_name_the_primes():
    setting = figure_05.Counts(Size(13, 8, 20), (12, 13), (), 1, 0)
    rows = figure_05.count_circles(Run(setting, "quick"))
    assert rows["p"].tolist() == [12, 13]
    assert rows["prime"].tolist() == [False, True]


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


def columns(rows):
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def losses_of_kept(loss):
    """Thirty networks of four circles, whose loss and accuracy hang on how many circles are kept."""
    rng, rows = np.random.default_rng(0), []
    for network in range(30):
        for kept, sets in ((0, 1), (1, 4), (2, 6), (3, 4)):
            for rank in range(sets):
                value = loss[kept] * np.exp(rng.normal(0, 0.1))
                rows.append({"network": network, "kept": kept, "rank": rank, "test_loss": value})
                rows[-1]["accuracy"] = float(np.exp(-value))
    return {"sets": columns(rows)}


def decays_of(circles, accuracy):
    rng = np.random.default_rng(0)
    return {
        "networks": columns(
            [
                {"weight_decay": decay, "network": k, "frequencies": 29, "circles": count, "accuracy": a}
                | ({"circles": count + rng.integers(0, 2)} if count < 29 else {})
                for decay, count, a in zip((0.0, 0.1, 0.2, 0.5, 1.0), circles, accuracy, strict=True)
                for k in range(120)  # shares of fewer networks that are all equal decide no rule
            ]
        )
    }


def gradients_of(peak, late):
    rng, steps = (
        np.random.default_rng(0),
        np.concatenate([np.arange(0, 1001, 5), np.arange(1200, 30001, 200)]),
    )
    return {
        "gradients": columns(
            [
                {"network": k, "step": step, "largest": value * np.exp(rng.normal(0, 0.05))}
                for k in range(20)
                for step, value in zip(steps, np.exp(-(((steps - peak) / 60) ** 2)) + late, strict=True)
            ]
        )
    }


def frozen_of(small, medium, large):
    rng = np.random.default_rng(0)
    return {
        "networks": columns(
            [
                {"p": 59, "d": d, "network": k, "step": step, "test_loss": loss * np.exp(rng.normal(0, 0.2))}
                for d in range(4, 132, 4)
                for loss in [small if d <= 20 else medium if d <= 59 else large]
                for k in range(10)
                for step in (100, 10_000)
            ]
        )
    }


def starts_of(circles, others, learnt):
    """Sixty networks of each start: circles and others at the end, and when they have learnt."""
    rng = np.random.default_rng(0)
    names = ("all", "the largest (A)", "the largest two (B)", "one random (C)", "two random (D)")
    return {
        "networks": columns(
            [
                {"start": name, "network": k, "circles": circles[n], "others": others[n], "kept": 2}
                | {"lowest": 10.0 ** -(3 + 4 * (others[n] == 0)), "learnt": learnt[n] * rng.uniform(0.8, 1.2)}
                for n, name in enumerate(names)
                for k in range(60)
            ]
        )
    }


def fits_of(linear, lasso, quadratic, coefficients, collaborate):
    """Thirty networks: errors of the laws, and what Lasso leaves of the coefficients."""
    rng, still = np.random.default_rng(0), {"error_of_rest": 0.6, "followed": 0.0}
    laws = {"least squares": linear, "Lasso": lasso, "Eq. 4 of Lasso": lasso, "Eq. 2": quadratic}
    return {
        "fits": columns(
            [
                {"d": 128, "network": k, "law": law, "error": error * rng.uniform(0.9, 1.1), **still}
                | {
                    "r2": 1 - 0.01 * (error < 1) - (law == "least squares" and linear > 1),
                    "missed": rng.uniform(1e-11, 1e-10) if quadratic > 1 else 1.0,
                }
                | {"coefficients": coefficients if "Lasso" in law else 1.0, "collaborate": collaborate}
                for k in range(30)
                for law, error in laws.items()
            ]
        )
    }


def agreements_of(gain):
    rng = np.random.default_rng(0)
    starts, networks = np.repeat(law.STARTS, 50), np.tile(np.arange(50), len(law.STARTS))
    other = rng.uniform(0.3, 0.6, len(starts))
    values = {
        "mean_field": other + gain + rng.normal(0, 0.05, len(starts)),
        "ranking": other,
        "linear": other,
    }
    return {"networks": {"start": starts, "network": networks} | values}


def circles_of(slope, separation):
    """Thirty networks of 29 circles, of which four survive; the rounder the likelier, by the slope."""
    rng, rows = np.random.default_rng(0), []
    for network in range(30):
        start = rng.normal(0.7, 0.05, 29)
        alive = np.argsort(-slope * start - rng.normal(0, 0.05, 29))[:4]
        for k in range(29):
            own = {
                "network": network,
                "circularity": start[k],
                "survived": k in alive,
                "first": rng.uniform(),
            }
            rows.append(own | {"last": (separation if k in alive else 1.0) * rng.uniform(0.9, 1.1)})
    return {"circles": columns(rows)}


def test_survival_that_hangs_on_roundness_is_told_from_survival_that_does_not():
    assert verdicts("ding-11b", circles_of(0, 1))["survival"] in ("holds", "inconclusive")
    assert verdicts("ding-11b", circles_of(3, 1)) == {"survival": "does not hold"}
    assert verdicts("ding-2", circles_of(0, 50))["left"] == "holds"
    assert verdicts("ding-2", circles_of(0, 2)) | {"not always": ""} == {
        "left": "does not hold", "right": "does not hold", "not always": ""
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "true", "false"),
    [
        ("ding-9", fits_of(1e-3, 0.05, 900.0, 0.05, 0.4), fits_of(0.3, 0.4, 0.5, 0.6, 1.0)),
        ("ding-9a", fits_of(1e-3, 0.05, 900.0, 0.05, 0.4), fits_of(3.0, 0.4, 0.5, 0.6, 1.0)),
        ("ding-15", fits_of(1e-3, 0.05, 900.0, 0.05, 0.4), fits_of(0.3, 0.4, 0.5, 0.6, 1.0)),
        ("ding-law", agreements_of(0.2), agreements_of(-0.1)),
        ("ding-8", losses_of_kept((0.001, 3.5, 1.8, 0.02)), losses_of_kept((0.001, 0.02, 0.02, 2.0))),
        ("ding-10", decays_of((29, 20, 12, 8, 4), (0, 1, 1, 1, 1)), decays_of((3, 3, 3, 3, 29), (1,) * 5)),
        ("ding-13", gradients_of(100, 0.001), gradients_of(600, 0.5)),
        ("ding-4", frozen_of(1.0, 5.0, 0.1), frozen_of(5.0, 1.0, 5.0)),
        (
            "ding-12",
            starts_of((4, 4, 2, 4, 4), (4, 3, 0, 3, 3), (300, 900, 100, 900, 900)),
            starts_of((4, 1, 1, 1, 1), (4, 0, 1, 0, 0), (900, 300, 1200, 300, 300)),
        ),
    ],
)  # fmt: skip
def test_statements_are_told_from_their_contraries(name, true, false):
    assert set(verdicts(name, true).values()) - {"withdrawn"} == {"holds"}
    assert "holds" not in verdicts(name, false).values()
    assert seldom_hold(name, true)
