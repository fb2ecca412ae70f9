"""Recipes beyond the papers: each runs, is what it says, and no statement of it holds by chance."""

import numpy as np
import pytest
from recipe_checks import held_by_chance, made_quickly

from grokphys.papers.beyond import pairings, scaling  # noqa: F401  (they register their recipes)
from grokphys.papers.recipe import RECIPES
from grokphys.papers.results import rounded
from physics import Operation, critical_sizes
from physics.theory.operations import random_orders

NAMES = [name for name, one in RECIPES.items() if one.module.startswith("grokphys.papers.beyond.")]


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_beyond_the_papers_runs_and_its_rules_can_be_measured(name):
    tables = rounded(made_quickly(name).columns())
    assert all(rate <= 0.2 for rate in held_by_chance(name, tables, draws=10).values())


def test_the_critical_fraction_falls_with_the_number_of_symbols():
    small, large = (scaling.critical_fraction(scaling.measure(Operation(p), 200), 0.95) for p in (7, 20))
    assert large.high < small.low


def test_the_interval_of_a_median_holds_it():
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(300):
        found = scaling.critical_fraction(
            {"fraction": rng.exponential(size=41), "orders": np.ones(41, int)}, 0.95
        )
        hits += found.low <= np.log(2) <= found.high
    assert 275 <= hits <= 297


def test_no_representation_is_complete_while_a_symbol_is_isolated():
    for operation in (Operation(8), Operation(8, modulus=8)):
        orders = random_orders(operation, sets=60)
        last = scaling.last_symbols(operation, orders)
        assert (last <= critical_sizes(operation, orders=orders)).all()
        for order, size in zip(orders, last, strict=True):
            isolated = []
            for count in (size - 1, size):
                samples = operation.samples[order[:count]].tolist()
                labels = operation.label[order[:count]].tolist()
                met = {
                    s
                    for (i, j), c in zip(samples, labels, strict=True)
                    if labels.count(c) > 1
                    for s in (i, j)
                }
                isolated.append(8 - len(met))
            assert isolated[0] > 0 == isolated[1]


@pytest.mark.slow
def test_the_critical_fraction_comes_down_to_the_coupon_collectors():
    for modular in (False, True):
        found = {
            p: scaling.measure(Operation(p, modulus=p if modular else None), 4000, p)
            for p in (5, 10, 20, 40, 60)
        }
        r_c = np.array([scaling.critical_fraction(rows, 0.95).estimate for rows in found.values()])
        excess = r_c * np.array(list(found)) / np.log(list(found))
        assert (np.diff(r_c) < 0).all()
        assert (np.diff(excess[1:]) < 0).all()  # towards ln(p)/p from above
        assert excess[-1] > 1
        last = [np.average(rows["last"], weights=rows["orders"]) for rows in found.values()]
        assert last[-1] > 0.8 > last[1]
