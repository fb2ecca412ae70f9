"""The list of mutants is alive, and the suite kills them: see `tests/mutants.py`."""

import mutants
import pytest


def test_every_mutant_applies_and_its_tests_are_there():
    found = mutants.read_mutants()
    assert len(found) >= 100
    assert not mutants.missing(found)
    assert all(mutant.tests and mutant.why for mutant in found)


def test_every_path_of_the_list_is_used():
    content = mutants.tomllib.loads(mutants.LIST.read_text(encoding="utf-8"))
    used = {entry["file"] for entry in content["mutant"]}
    assert used == set(content["files"])
    assert {test.partition("::")[0] for entry in content["mutant"] for test in entry["tests"]} == set(
        content["tests"]
    )


TEXT = '''
def first(x):
    return x + 1


def second(
    x,
):
    """Something."""

    return x + 1
'''


def mutant(old, new, within=""):
    return mutants.Mutant("m", "m.py", old, new, within, ("tests/house/test_mutants.py",), "why")


def test_a_mutant_changes_one_place():
    changed = mutant("x + 1", "x - 1", "def second").applied(TEXT)
    assert changed == TEXT[::-1].replace("1 + x", "1 - x", 1)[::-1]
    assert mutant("x + 1", "x - 1", "def first").applied(TEXT) == TEXT.replace("x + 1", "x - 1", 1)


@pytest.mark.parametrize(
    ("one", "sentence"),
    [
        (mutant("x + 1", "x - 1"), "occurs 2 times"),
        (mutant("x + 2", "x - 1"), "occurs 0 times"),
        (mutant("x + 1", "x - 1", "def third"), "must begin one line, and begins 0"),
        (mutant("x + 1", "(x + 1)", "def first"), "is the same program"),
        (mutant("x + 1", "x +", "def first"), "is no Python"),
    ],
)
def test_what_is_no_mutant_is_refused(one, sentence):
    with pytest.raises(mutants.Unfit, match=sentence):
        one.applied(TEXT)


@pytest.mark.slow
def test_the_suite_kills_the_mutants():
    found = mutants.read_mutants()
    outcomes = mutants.run_mutants(found, jobs=2)
    assert "error" not in outcomes
    assert len(outcomes["killed"]) >= mutants.NEEDED * len(found), outcomes.get("survived")
