"""Networks of one cell of a phase diagram: agreement, neighbors and the rules about them, by hand."""

from itertools import combinations, product

import numpy as np
import pytest
from recipe_checks import held_by_chance

from analysis.phases import PHASES
from analysis.stats.intervals import mean
from grokphys.papers.beyond import theories as seeds
from grokphys.papers.judge import judge
from grokphys.papers.liu.phases import train_plane
from grokphys.papers.recipe import Run
from grokphys.papers.run import recipes

RECIPES = recipes()
RNG = np.random.default_rng(8)
RULES = {rule.name: rule for rule in RECIPES["liu-seeds"].rules}


def table(phases):
    """The rows of a plane with these phases (rows, columns, networks), in any order."""
    places = np.array(list(np.ndindex(phases.shape)))
    places = places[RNG.permutation(len(places))]
    return {
        "row": places[:, 0],
        "column": places[:, 1],
        "network": 3 * places[:, 1] + places[:, 2] + 100 * places[:, 0],
        "phase": np.array(PHASES)[phases[tuple(places.T)]],
    }


def test_networks_return_to_their_cells():
    phases = RNG.integers(0, 4, (3, 5, 4))
    np.testing.assert_array_equal(seeds.phase_map(table(phases)), phases)


def test_agreement_is_the_share_of_equal_pairs():
    phases = RNG.integers(0, 3, (2, 4, 5))
    found = seeds.agreement(phases)
    for cell in np.ndindex(2, 4):
        pairs = list(combinations(phases[cell], 2))
        assert found[cell] == pytest.approx(sum(a == b for a, b in pairs) / len(pairs))


def test_a_cell_is_inner_by_its_neighbors_alone():
    phases = RNG.integers(0, 2, (6, 7, 3))
    usual = np.array([[int(np.bincount(cell).argmax()) for cell in row] for row in phases])
    expected = np.zeros((6, 7), bool)
    for i, j in np.ndindex(6, 7):
        steps = ((i + a, j + b) for a, b in ((0, 1), (0, -1), (1, 0), (-1, 0)))
        expected[i, j] = len({usual[at] for at in steps if 0 <= at[0] < 6 and 0 <= at[1] < 7}) == 1
    np.testing.assert_array_equal(seeds.inner_cells(phases), expected)
    assert 0 < expected.sum() < expected.size
    phases[2, 3] = 1 - phases[2, 3]
    assert seeds.inner_cells(phases)[2, 3] == expected[2, 3]


def test_chance_is_the_share_of_equal_pairs_of_two_cells():
    phases = RNG.integers(0, 3, (3, 3, 2))
    cells = phases.reshape(9, 2)
    across = [
        a == b for (i, c), (j, d) in product(enumerate(cells), repeat=2) if i != j for a in c for b in d
    ]
    found = RULES["beyond chance"].measure({"networks": table(phases)}, 0.95)
    assert found.estimate == pytest.approx(np.mean(cells[:, 0] == cells[:, 1]) - np.mean(across))
    assert found.count == 9
    same = RULES["one phase"].measure({"networks": table(phases)}, 0.95)
    assert same == mean((cells[:, 0] == cells[:, 1]).astype(float), 0.95)


def test_rules_tell_a_sharp_diagram_from_one_with_wide_borders():
    sharp = np.zeros((10, 10, 3), int)
    sharp[:, 5:] = 2
    wide = sharp.copy()
    wide[:, 3:7] = RNG.integers(0, 2, (10, 4, 3)) * 2
    rules = RECIPES["liu-seeds"].rules
    told = {
        name: {one.rule.name: one.verdict for one in judge(rules, {"networks": table(phases)})}
        for name, phases in (("sharp", sharp), ("wide", wide))
    }
    assert told["sharp"]["one phase"] == told["sharp"]["beyond chance"] == "agrees"
    assert told["wide"]["one phase"] == "disagrees"
    assert told["wide"]["beyond chance"] == told["wide"]["borders"] == "agrees"
    assert told["sharp"]["borders"] != "agrees"
    rates = held_by_chance("liu-seeds", {"networks": table(wide)}, draws=60)
    assert all(rate <= 0.1 for rate in rates.values()), rates


def test_the_networks_are_those_of_figure_6(tmp_path):
    small = RECIPES["liu-6a"].settings["quick"]
    assert RECIPES["liu-seeds"].settings["paper"] == RECIPES["liu-6a"].settings["paper"]
    first = train_plane(Run(small, "quick", tmp_path, "liu-6a"), small)
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.npz")}
    again = train_plane(Run(small, "quick", tmp_path, "liu-seeds"), small, family="liu-6a")
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.npz")} == files
    np.testing.assert_equal(again, first)
