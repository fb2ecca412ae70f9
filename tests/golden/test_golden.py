"""What the package gives, against what it gave before. `make.py` makes the stored numbers anew."""

import json

import pytest
from golden.cases import CASES
from golden.store import (
    VERDICTS,
    column,
    differences,
    other_sample,
    run_recipes,
    stored,
    stored_recipes,
    verdicts,
)

RECIPES = stored_recipes()

# fmt: off
SLOW = {
    "compare-particles", "ding-10", "ding-11b", "ding-12", "ding-13", "ding-14", "ding-15", "ding-16",
    "ding-2", "ding-3", "ding-4", "ding-5", "ding-6", "ding-6b", "ding-6c", "ding-7", "ding-8", "ding-9",
    "ding-9a", "ding-forward", "ding-law", "force-law", "he-neurons", "liu-1", "liu-10", "liu-13",
    "liu-14", "liu-15", "liu-18", "liu-19", "liu-21", "liu-22", "liu-5b", "liu-6a", "liu-6b", "liu-6c",
    "liu-6d", "liu-7", "liu-7b", "liu-7c", "liu-groups", "liu-seeds", "musat-3", "musat-5", "musat-D",
    "musat-G", "musat-table2", "octaves", "predictability", "rounding", "selection",
}
# fmt: on
"""Recipes that take long, and those that measure and draw what a quicker recipe does too."""

# Numbers of trainings in float32: they differ by up to 1e-4 between processors with AVX2 and with AVX-512,
# which add sums of products in another order, and so does BLAS, which computes the products now.
# fmt: off
TRAINED = {
    "liu-12", "liu-17", "liu-19", "liu-4d",
    "ding-13", "ding-15", "ding-16", "ding-2", "ding-3", "ding-4", "ding-6", "ding-7", "ding-9",
    "ding-9a", "ding-law", "he-waves", "liu-1", "liu-2", "liu-21", "liu-7", "rounding",
}
# Trainings in float32 that amplify rounding until networks end in other places on other processors: columns
# agree as those of two samples of the same networks, by their means.
CHAOTIC = {
    "compare-particles", "ding-12", "ding-8", "ding-forward", "force-law", "he-grokking", "he-neurons",
    "liu-14", "liu-15", "musat-3", "musat-4", "musat-6", "musat-D", "musat-F", "musat-G", "musat-start",
    "musat-table1", "musat-table2", "octaves", "selection",
}
# fmt: on


@pytest.mark.parametrize("name", CASES)
def test_numbers(name):
    case = CASES[name]
    expected = stored(case.family, case.name)
    got = case.compute()
    assert sorted(got) == sorted(expected)
    apart = {key: differences(expected[key], got[key], case.tolerance) for key in expected}
    assert not {key: text for key, text in apart.items() if text}


def test_the_comparison_notices_a_number():
    expected = stored("systems", "affine_flow")["positions"]
    assert not differences(expected, expected * (1 + 1e-10), 1e-9)
    changed = expected.copy()
    changed.flat[7] += 1e-8 * abs(expected).max()
    assert differences(expected, changed, 1e-9)
    column_of_means = column(RECIPES["musat-table1"]["networks"]["imperfections"])
    assert other_sample(column_of_means, column_of_means + 4 * column_of_means.std())


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """Tables of the recipes that are not slow."""
    return run_recipes(sorted(set(RECIPES) - SLOW), tmp_path_factory.mktemp("quick"))


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """Tables of the slow ones."""
    return run_recipes(sorted(SLOW), tmp_path_factory.mktemp("slow"))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in sorted(RECIPES)]
)
def test_tables_of_recipes(name, request):
    got = request.getfixturevalue("slow" if name in SLOW else "quick")[name]
    assert sorted(got) == sorted(RECIPES[name])
    apart = {}
    for table, columns in RECIPES[name].items():
        assert sorted(got[table]) == sorted(columns)
        for key in columns:
            pair = column(columns[key]), column(got[table][key])
            # Tables are written with eight significant digits.
            text = (
                other_sample(*pair)
                if name in CHAOTIC
                else differences(*pair, 1e-3 if name in TRAINED else 2e-8)
            )
            if text:
                apart[f"{table}.{key}"] = text
    assert not apart


def test_verdicts_of_the_published_results():
    assert verdicts() == json.loads(VERDICTS.read_text())
