"""The cells of the published pages, from claims and results that no stored result has."""

import math
from types import SimpleNamespace

import pytest

from grokphys.papers import pages
from grokphys.papers.catalogue import recipes
from grokphys.papers.evidence import Chance
from grokphys.papers.recipe import Number, Printed, Recipe, Statement

INF, NAN = math.inf, math.nan


def recipe(*rules, paper="Ding", name="r"):
    return Recipe(name, paper, "Figure 1", "It shows.", {}, "an hour", rules, lambda run: None)


def number(**options):
    return Number("n", Printed("0.50", "Table 1"), lambda tables, level: None, **({"margin": 0.1} | options))


def statement(**options):
    given = {"least": 0.0, "source": "Section 2", "effect": "a slope"} | options
    return Statement("s", "It | grows", measure=lambda tables, level: None, chance="none", **given)


def claim(estimate, low, high, *, count=9, digits=2, **others):
    numbers = {"estimate": estimate, "low": low, "high": high}
    stored = {name: None if isinstance(x, float) and math.isnan(x) else x for name, x in numbers.items()}
    about = {
        "name": "n",
        "independent": "network",
        "fitted": "",
        "verdict": "covered",
        "source": "p",
        "quote": "q",
    }
    return about | {"effect": "an effect", "count": count, "digits": digits} | stored | others


@pytest.mark.parametrize(
    ("numbers", "digits", "possible", "text"),
    [
        ((0.5, 0.4, 0.6), 2, (-INF, INF), "0.50 [0.40,\u00a00.60]"),
        ((0.5, -9.5, 10.5), 2, (-INF, INF), "0 [-10,\u00a010]"),
        ((0.5, -0.5, 1.5), 2, (-INF, INF), "0.5 [-0.5,\u00a01.5]"),  # no more than the width allows
        ((50.4, 30.0, 70.0), 2, (-INF, INF), "50 [30,\u00a070]"),
        ((50.4, 49.4, 51.4), 2, (-INF, INF), "50.4 [49.4,\u00a051.4]"),
        ((50.4, 49.4, 51.4), 0, (-INF, INF), "50 [49,\u00a051]"),
        ((0.97, 0.9, 1.04), 2, (0.0, 1.0), "0.97 [0.90,\u00a01.00]"),
        ((0.0, 0.0, 0.0), 1, (-INF, INF), "0.0 [0.0,\u00a00.0]"),
        ((0.001, -0.004, 0.0049), 2, (-INF, INF), "less than 0.01 in size"),
        ((0.001, -0.006, 0.004), 2, (-INF, INF), "0.00 [-0.01,\u00a00.00]"),
        ((2.0, 1.0, "inf"), 1, (-INF, INF), "2.0, at least 1.0"),
        (("inf", 1.0, "inf"), 1, (-INF, INF), "at least 1.0"),
        ((1.04, 1.0, "inf"), 1, (-INF, INF), "at least 1.0"),
        ((NAN, NAN, NAN), 2, (-INF, INF), "undefined"),
        ((0.126, NAN, NAN), 2, (-INF, INF), "0.13"),
    ],
)
def test_a_number_is_shown_with_as_many_digits_as_its_interval_has(numbers, digits, possible, text):
    whole = recipe(number(possible=possible))
    assert pages._ours(claim(*numbers, digits=digits), whole) == text
    assert pages._ours(claim(1.0, 1.0, 1.0, count=1, digits=0), whole) == "1, exact"
    other = claim(*numbers, digits=digits, name="gone")  # a rule that the recipe no longer has
    assert possible != (-INF, INF) or pages._ours(other, whole) == text


def test_the_range_of_a_rule_names_its_finite_bounds():
    assert pages._range(-INF, 0.5) == "at most 0.5"
    assert pages._range(0.25, INF) == "at least 0.25"
    assert pages._range(-1.0, 2.0) == "from -1 to 2"


def test_names_get_subscripts_and_minus_signs_outside_code_and_formulas():
    assert pages.typeset("f_a at -0.5 (2 -3), x-1") == "<i>f</i><sub>a</sub> at −0.5 (2 −3), x-1"
    assert pages.typeset("`f_a -1` $f_a$ ab_c f_ab") == "`f_a -1` $f_a$ ab_c f_ab"
    assert pages.typeset("1.-2 [0]-1") == "1.-2 [0]-1"
    assert pages.table(("a|b",), [("c",)]) == ["| a\\|b |", "| --- |", "| c |"]


def test_a_row_of_a_rule_says_whose_words_it_judges():
    assert pages._rule_row(number(fitted="step size", note="Mended.", independent="run")) == (
        "n (*fitted*: step size)", "0.50 (Table 1)", "this number (*Mended.*)", "margin 0.1", "", "run"
    )  # fmt: skip
    assert pages._rule_row(statement(note="Clearer.", most=1.0)) == (
        "s", "“It | grows” (Section 2)", "a slope (*Clearer.*)", "from 0 to 1", "none", "network"
    )  # fmt: skip
    gone = pages._rule_row(statement(withdrawn="Noise passes.", note="Clearer."))
    assert gone[2] == "a slope (*withdrawn: Noise passes.; Clearer.*)"
    own = Statement("s", "q", "this project", "e", max, Chance("in any order", max), most=2.0)
    assert pages._rule_row(own) == ("s", "q (this project)", "e", "at most 2", "in any order", "network")
    countered = statement(counter=Chance("all of one sign", max))
    assert pages._rule_row(countered)[4] == "none; false with all of one sign"


def test_rules_say_what_chance_does_to_the_tables():
    for one in recipes().values():
        for rule in one.rules:
            words = "" if isinstance(rule, Number) else rule.chance
            assert isinstance(words, str | Chance), f"{one.name}, {rule.name}"
            assert isinstance(getattr(rule, "counter", None), Chance | None), f"{one.name}, {rule.name}"


def test_a_row_of_a_result_repeats_neither_words_nor_notes():
    rules = [
        Statement(name, "q", "p", "e", max, "none", 0.0, note=note)
        for name, note in (("a", "Mended."), ("b", "Mended."), ("c", ""), ("d", "Mended."))
    ]
    base = {"least": 0.0, "most": "inf"}
    claims = [claim(0.5, 0.4, 0.6, name=rule.name, **base) for rule in rules]
    claims[2] |= {"quote": "other", "source": "beyond the papers", "count": 1, "fitted": "yes"}
    claims.append(claim(0.5, 0.4, 0.6, printed="0.50", count=1234))
    rules.append(number(note="Of norms."))
    rows = list(pages._rows(recipe(*rules), SimpleNamespace(about={"claims": claims})))
    assert [row[0] for row in rows] == ["Figure 1 `r`", "", "", "", ""]
    assert [row[1] for row in rows] == [
        "**a**: an effect (rule: at least 0; *Mended.*)", "**b**: an effect (rule: at least 0)",
        "**c**: an effect (rule: at least 0)", "**d**: an effect (rule: at least 0; *Mended.*)",
        "n (*Of norms.*)",
    ]  # fmt: skip
    assert [row[2] for row in rows] == ["“q”", "the same", "other", "“q”", "0.50"]
    assert [row[4] for row in rows] == [
        "9 networks",
        "9 networks",
        "1 network",
        "9 networks",
        "1,234 networks",
    ]
    assert [row[5] for row in rows[1:3]] == ["**covered**", "**covered**, *fitted*"]
    (none,) = pages._rows(recipe(), SimpleNamespace(about={"claims": []}))
    assert none == ("Figure 1 `r`", "It shows.", "", "", "", "no claim to judge")


def result(*claims, name="r", shift=0, seeds=(1,), **others):
    made = {"grokphys": "1.2.3", "processor": "chip"}
    about = {
        "recipe": name,
        "seed_shift": shift,
        "claims": list(claims),
        "seeds": list(seeds),
        "figures": ["f"],
    }
    return SimpleNamespace(
        about=about | {"seconds": 1234.4, "date": "2026-01-02T03:04:05Z", "made_with": made} | others
    )


def test_replicas_are_held_against_the_claims_that_the_first_run_has():
    exact = claim(0.5, 0.5, 0.5, name="m", verdict="inconclusive")
    both = claim(0.5, 0.4, 0.6), exact, claim(0.5, 0.4, 0.6, name="o")
    far = claim(0.9, 0.8, 1.0, name="o", verdict="inconclusive")
    again = claim(0.6, 0.5, 0.7, verdict="not covered"), exact, far, claim(0.5, 0.4, 0.6, name="new")
    replicas = {"seeds-2/r": result(*again, shift=2 * 10**9), "seeds-2/gone": result(*both, name="gone")}
    found = pages._replica_table({"r": recipe(number())}, {"r": result(*both)}, replicas)
    assert found == [
        "1 of 3 verdicts are the same. 1 are decided in one run only, and 1 are opposite. 1 of 2 pairs of "
        "estimates are further apart than their intervals allow.",
        "",
        "| recipe | claims | same verdict | undecided once | opposite verdicts |",
        "| --- | --- | --- | --- | --- |",
        "| `r` | 3 | 1 | 1 | 1 |",
        "",
        "| recipe | claim | seeds | first | again |",
        "| --- | --- | --- | --- | --- |",
        "| `r` | n | +2,000,000,000 | 0.50 [0.40,\u00a00.60]: covered | 0.60 [0.50,\u00a00.70]: not "
        "covered |",
        "| `r` | o | +2,000,000,000 | 0.50 [0.40,\u00a00.60]: covered | 0.90 [0.80,\u00a01.00]: "
        "inconclusive |",
    ]  # fmt: skip
    assert len(pages._replica_table({"r": recipe()}, {"r": result(both[1])}, {"a": result(both[1])})) == 5


@pytest.mark.parametrize(
    ("first", "again", "apart"),
    [
        ((0.0, -3.0, 3.0), (4.9, 0.9, 5.0), False),
        ((0.0, -3.0, 3.0), (5.1, 1.1, 9.0), True),
        ((5.1, 1.1, 9.0), (0.0, -3.0, 3.0), True),
        ((0.0, -9.0, 0.1), (1.0, 0.9, 9.0), True),
        ((0.0, -0.1, 2.0), (1.0, -3.0, 1.1), False),
        ((2.0, 2.0, 2.0), (2.0, 2.0, 2.0), None),
        ((2.0, 1.0, 2.5), (2.0, 2.0, 2.0), False),
        ((2.0, 1.0, "inf"), (3.0, 2.0, 4.0), None),
        ((NAN, NAN, NAN), (3.0, 2.0, 4.0), None),
        ((3.0, 2.0, 4.0), (3.0, NAN, NAN), None),
    ],
)
def test_estimates_are_apart_if_both_intervals_together_do_not_reach(first, again, apart):
    assert pages._apart(claim(*first), claim(*again)) is apart


@pytest.mark.parametrize(
    ("seeds", "shown"),
    [([], "-"), ([3, 1], "3, 1"), ([1, 2, 3, 4], "1, 2, 3, 4"), ([1, 2, 3, 4, 5], "1, 2, 3, 4, … (5)")],
)
def test_a_row_of_a_run_shows_four_seeds(seeds, shown):
    row = pages._run_row(result(seeds=seeds).about)
    assert row == ("`r`", "1,234", shown, "2026-01-02", "1.2.3", "chip")


def test_the_pages_have_a_place_for_what_ran_and_what_waits():
    recipes = {"r": recipe(number()), "wait": recipe(name="wait"), "own": recipe(paper="beyond", name="own")}
    results = {"r": result(claim(0.5, 0.4, 0.6, printed="0.5")), "own": result(name="own", figures=[])}
    board = pages.scoreboard_page(recipes, results, {})
    assert "2 of 3 recipes have run at the setting of the paper, and their 1 claims are judged" in board
    assert "| **covered** | 1 |" in board
    assert "| **inconclusive** | 0 |" in board
    assert "| Figure 1 `wait` | It shows. | an hour |" in board
    assert "Figure 1 is not reproduced: it is a drawing." in board
    assert "Again with other seeds" not in board
    assert "## Musat" not in board
    assert [line for line in board.splitlines() if line.startswith("| item")] == [
        "| item | claim | the paper says | here | sample | verdict |",
        "| item | claim | statement or number | here | sample | verdict |",
    ]
    assert "What ran" not in pages.scoreboard_page(recipes, {}, {})
    gone = claim(1.0, 0.9, 1.1, printed="1", verdict="withdrawn")
    withdrawn = result(claim(0.5, 0.4, 0.6, printed="0.5"), gone)
    less = pages.scoreboard_page(recipes, {"r": withdrawn}, {})
    assert "and their 1 claims are judged" in less
    assert "| **withdrawn** | 1 |" in less
    replica = {"seeds-1/r": result(claim(0.5, 0.4, 0.6, printed="0.5"), shift=10**9, seeds=[10**9])}
    more = pages.scoreboard_page(recipes, results, replica)
    assert "Again with other seeds" in more
    assert more.count("| `r` | 1,234 |") == 2, "a replica ran, too"
    gallery = pages.gallery_page(recipes, results)
    assert "![Figure 1](gallery/f.png)" in gallery
    assert "**Figure 1.** It shows." in gallery
    assert "Beyond the papers" not in gallery, "it has no picture"
    rules = pages.rules_page(recipes)
    assert "### Figure 1 `r`" in rules
    assert "`wait`" not in rules, "it has no rule"
