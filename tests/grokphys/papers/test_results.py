"""What lies in docs/results: verdicts follow from tables, rules have not changed, pages are made of both."""

import functools
import re
import subprocess
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from pictures import SMALLEST, letters
from recipe_checks import DOCS, published

from analysis.stats.intervals import CONFIDENCE, Interval
from grokphys.papers.judge import decide, judge, measured
from grokphys.papers.pages import PAGES, filled
from grokphys.papers.recipe import Claim, Number, Recipe, Statement
from grokphys.papers.results import Stored, same_terms, setting_of
from grokphys.papers.run import recipes, said, stored_replicas

RECIPES = recipes()
RESULTS = published()
REPLICAS = stored_replicas(RECIPES, DOCS / "results")
EVERY = RESULTS | REPLICAS
FALSE = [(name, rule.name) for name in RESULTS for rule in RECIPES[name].rules if isinstance(rule, Statement)]
"""Statements, each of which has a model of data in which it is false."""
PASSED = {
    ("liu-10", "small sets"): "0.4, the bound of the rule, is itself a fraction: 22 of 55 samples",
}
"""Statements that hold of data in which they are false, and why. Delete an entry as soon as it is mended."""


@pytest.mark.parametrize(
    "page", [*PAGES, *(f"findings/{path.name}" for path in sorted((DOCS / "findings").glob("*.md")))]
)
def test_the_pages_are_functions_of_recipes_and_results(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    assert filled(text, RECIPES, RESULTS, REPLICAS) == text


def test_pages_state_what_was_judged():
    of = {"shows": "What it shows. More.", "settings": {}, "cost": "a day", "make": None}
    recipe = Recipe("r", "Musat", "an item", rules=(NUMBER,), withdrawn={"w": "a proof"}, **of)
    text = filled("a <!-- fill claims r -->old<!-- end --> b", {"r": recipe}, {}, {})
    assert text.startswith("a <!-- fill claims r -->")
    assert "What it shows. *Not run yet*; it takes a day on two cores." in text
    assert "Withdrawn: *w* (a proof)." in text
    assert "old" not in text
    assert text.endswith("<!-- end --> b")
    claim = {"name": "n", "estimate": 64.02, "low": -16.4, "high": 111.7, "count": 13, "digits": 1,
             "printed": "77.4", "independent": "network", "fitted": "", "verdict": "agrees"}  # fmt: skip
    result = Stored({"claims": [claim], "figures": []}, {})
    parts = "<!-- fill claims r --><!-- end --><!-- fill verdicts --><!-- end -->"
    text = filled(parts, {"r": recipe}, {"r": result}, {})
    here = "64 [0,\N{NO-BREAK SPACE}100]"  # what is possible
    assert f'class="agrees"><b class="agrees">●</b> agrees: {here}, n = 13 networks; paper 77.4<' in text
    assert "Setting: nearest: on digits." in text
    assert '| <b class="agrees">●</b> agrees | 0 | 1 | 0 |' in text
    rules = (replace(NUMBER, name="p = 23: n"), replace(NUMBER, name="p = 31: n"), replace(NUMBER, name="m"))
    text = filled(parts, {"r": replace(recipe, rules=rules)}, {"r": Stored({"claims": [claim] * 3}, {})}, {})
    assert text.count('<details class="claim"') == 2
    assert "<b>n, n = 13 networks</b>" in text
    assert '<span id="r.2" class="agrees">p = 31 <b' in text


NUMBER = Number("n", "77.4", None, 12.0, digits=1, possible=(0.0, 100.0), independent="network",
                fidelity="nearest: on digits")  # fmt: skip


def test_a_claim_is_told_with_what_is_possible():
    told = said(Claim(NUMBER, Interval(64.02, -16.4, 111.7, 13), "undecided"))
    assert told == "n: 77.4; here 64.0 [0.0, 100.0] of 13 (networks): undecided"


def test_every_result_has_a_recipe():
    folders = {path.parent.name for path in (DOCS / "results").glob("*/result.json")}
    assert folders == set(RESULTS)


@pytest.mark.parametrize("place", EVERY)
def test_a_stored_result_is_of_todays_setting_and_rules_and_its_verdicts_follow_from_its_tables(place):
    about, recipe = EVERY[place].about, RECIPES[place.rpartition("/")[2]]
    rules = recipe.rules
    assert about["budget"] == "paper"
    again = any("to be run again" in rule.fidelity for rule in rules)
    again |= place in REPLICAS and recipe.looks > 1  # of as many networks as the first look
    assert (about["setting"] == setting_of(recipe.settings["paper"])) != again
    assert same_terms(recipe, EVERY[place])
    for claim, stored in zip(judge(rules, EVERY[place].tables, recipe.looks), about["claims"], strict=True):
        assert claim.verdict == stored["verdict"]
        assert claim.found.count == stored["count"]
        equal = claim.found.low == claim.found.estimate == claim.found.high
        assert not equal or claim.found.count == 1, f"{claim.rule.name}: say which values are possible"
        for side in ("estimate", "low", "high"):
            if stored[side] is not None:
                assert np.isclose(getattr(claim.found, side), float(stored[side]), rtol=1e-6, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in RESULTS if RECIPES[name].draw])
def test_stored_tables_are_all_that_a_picture_needs(name):
    setting = RECIPES[name].settings["paper"]
    if RESULTS[name].about["setting"] != setting_of(setting):
        pytest.skip("to be run again at another setting")
    figures = RECIPES[name].draw(setting, RESULTS[name].tables)
    assert list(figures) == RESULTS[name].about["figures"]
    assert all(min(letters(figure)) >= SMALLEST for figure in figures.values())


@pytest.mark.parametrize("place", REPLICAS)
def test_a_replica_shares_no_seed_with_the_first_run(place):
    first, again = RESULTS[place.rpartition("/")[2]].about, REPLICAS[place].about
    assert again["seed_shift"] > max(first["seeds"])
    assert not set(again["seeds"]) & set(first["seeds"])
    assert all(seed >= again["seed_shift"] for seed in again["seeds"])


SHARED = {"liu-4b", "liu-5b", "liu-10", "liu-seeds", "ding-7"}
"""Recipes that use networks of longer ones, so that their own time is short."""


def test_all_short_recipes_ran_again():
    short = {name for name, one in RESULTS.items() if one.about["seeds"] and one.about["seconds"] < 720}
    short -= {name for name in short if "NVIDIA" in str(RESULTS[name].about)}  # hours on a CPU
    assert short - SHARED <= {place.rpartition("/")[2] for place in REPLICAS}


def draws(name, rule, seed):
    """Whether a statement holds of each draw of data in which it is false; once if nothing is random."""
    (chosen,) = (one for one in RECIPES[name].rules if one.name == rule)
    rng, before = np.random.default_rng(seed), None
    while rng.bit_generator.state != before:
        before = rng.bit_generator.state
        tables = chosen.chance(RESULTS[name].tables, rng)
        yield decide(chosen, measured(chosen, tables, CONFIDENCE)).verdict == "agrees"


@pytest.mark.parametrize(("name", "rule"), FALSE)
def test_a_statement_does_not_hold_of_shuffled_data(name, rule):
    held = list(islice(draws(name, rule, 0), 2))
    assert sum(held) < len(held) or (name, rule) in PASSED


@pytest.mark.slow
@pytest.mark.parametrize(("name", "rule"), FALSE)
def test_a_statement_holds_of_one_shuffle_in_twenty_at_most(name, rule):
    """Of more shuffles than a twentieth by two standard errors; if many of sixty hold, 340 more decide."""
    more = draws(name, rule, 1)
    held = list(islice(more, 60))
    if sum(held) > 3:
        held += islice(more, 340)
    most = 0.05 + 2 * (0.05 * 0.95 / len(held)) ** 0.5
    assert (np.mean(held) > most) == ((name, rule) in PASSED)


def test_pieces_are_those_of_recipes_that_have_not_run():
    sharing = {"liu-1": ("liu-1", "liu-21", "liu-22")}
    for path in (DOCS / "unfinished").rglob("*.npz"):
        place, name = path.parts[-4], path.parts[-3]
        shift = f"{place}/" if place.startswith("seeds-") else ""
        names = sharing.get(name, (name,))
        assert set(names) <= RECIPES.keys(), path
        assert not {shift + one for one in names} <= EVERY.keys(), f"{path.parent} has served its purpose"


LATE = {("liu-21", "lottery ticket"), ("liu-22", "final axes"), ("liu-6d", "bottom right, a tenth")}
LATE |= {(f"liu-6{letter}", "order") for letter in "bcd"}
"""Rules that are younger than networks, or than a run of which they judge the next; their rows say so."""


def ranges(page):
    """Return the cells of every row of a page of rules, by the names of recipe and claim."""
    found, recipe = {}, ""
    american = {"−": "-", "centred": "centered", "generalises": "generalizes"}  # earlier pages had others
    for line in functools.reduce(lambda text, pair: text.replace(*pair), american.items(), page).splitlines():
        if line.startswith(("### ", "<details id=")):
            recipe = re.search('[`"](.+?)[`"]', line)[1]
        elif line.startswith("| "):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            claim = re.sub(r" \(\*.*|<[^>]*>|_", "", cells[0])
            found[recipe, claim] = cells
    return found


def test_rules_are_older_than_results():
    """The page of rules had every range of today at the commits that computed a result and its pieces."""

    @functools.cache
    def page(version):
        command = ["git", "show", f"{version.partition('+g')[2]}:docs/rules.md"]
        done = subprocess.run(command, cwd=DOCS.parent, capture_output=True, encoding="utf-8", check=False)
        return ranges(done.stdout) if done.returncode == 0 else None

    today, seen = ranges((DOCS / "rules.md").read_text(encoding="utf-8")), 0
    for name, one in RESULTS.items():
        about = one.about
        for version in {
            about["made_with"]["grokphys"],
            *(part["version"] for part in about.get("pieces", ())),
        }:
            if (before := page(version)) is None:
                continue  # a clone without history
            for (recipe, claim), cells in today.items():
                if recipe == name and (name, claim) not in LATE:
                    assert cells[3] in before[name, claim], (name, claim, version)
                    seen += 1
    assert seen == 0 or seen > len(RESULTS)
    notes = {(name, rule.name): rule.note for name, recipe in RECIPES.items() for rule in recipe.rules}
    assert all("when this rule was written" in notes[late] for late in LATE)
