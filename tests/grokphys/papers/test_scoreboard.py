"""Printed numbers, verdicts, and the rows that hold them."""

import csv

import numpy as np
import pytest

from analysis.stats.intervals import Interval, mean, proportion
from grokphys.output import write_csv
from grokphys.papers.board import ITEMS, PAPERS, judged
from grokphys.papers.claims import Claim, Item, Unreadable, Written
from grokphys.papers.registry import FIGURES
from grokphys.papers.verdicts import (
    UNEXPLAINED,
    Circumstances,
    Finding,
    Printed,
    between,
    exact,
    judge_number,
    judge_statement,
    percent,
    plus_minus,
    rare,
    scaled,
    slope,
    trend,
)
from grokphys.report.musat import TABLE_1, TABLE_2


def word(ours, paper, budget="default", about=None):
    return judge_number(ours, paper, budget, about or Circumstances()).word


# -- the rules ----------------------------------------------------------------------------------------------


def test_digits_tell_the_rounding():
    assert [Printed(text, "").rounding for text in ("8", "0.4", "83.8", "-0.92")] == [
        pytest.approx(value) for value in (0.5, 0.05, 0.05, 0.005)
    ]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.39, 0.42, "covered"),  # holds it
        (0.41, 0.42, "covered"),  # holds a number that is printed as 0.4
        (0.45, 0.47, "covered"),  # just so
        (0.451, 0.47, "not covered"),
        (0.3, 0.349, "not covered"),
        (0.3, 0.35, "covered"),
    ],
)
def test_a_number_is_covered_within_its_rounding(low, high, expected):
    assert word(Interval((low + high) / 2, low, high, 10), Printed("0.4", "Fig. 4")) == expected


def test_a_finite_sample_of_the_paper_widens_what_is_covered():
    ours = Interval(40.0, 38.0, 42.0, 1000)
    assert word(ours, Printed("36.3", "")) == "not covered"
    assert word(ours, plus_minus("36.3", "4.8", "", 83)) == "covered"
    assert word(ours, plus_minus("36.3", "1.0", "", 83)) == "not covered"
    # Intervals may touch and the difference still exclude zero: 4 > sqrt(2² + 2²).
    assert word(ours, plus_minus("36.00", "2.0", "", 83)) == "not covered"


def test_a_sample_of_known_size_takes_our_scatter():
    values = np.random.default_rng(0).normal(50, 10, 400)
    ours = mean(values)  # ± 1
    assert word(ours, Printed("53.0", "")) == "not covered"
    assert word(ours, Printed("53.0", "", runs=25)) == "covered"  # ± 4
    assert word(ours, Printed("59.0", "", runs=25)) == "not covered"


def test_what_cannot_be_judged_is_not():
    nothing, single = mean([]), mean([3.0])
    assert word(nothing, Printed("3", "")) == "undetermined"
    assert word(single, Printed("3", "")) == "undetermined"
    assert word(exact(7), Printed("8", "")) == "not covered"
    assert word(exact(7), Printed("7", "")) == "covered"
    about = Circumstances("a reason", {"quick": "p = 31"})
    verdict = judge_number(Interval(5, 4, 6, 9), Printed("8", ""), "quick", about)
    assert (verdict.word, verdict.why) == ("other setting", "p = 31")
    verdict = judge_number(Interval(5, 4, 6, 9), Printed("8", ""), "default", about)
    assert (verdict.word, verdict.why) == ("not covered", "a reason")
    assert judge_number(exact(7), Printed("8", ""), "quick", Circumstances()).why == UNEXPLAINED


def test_statements_hold_or_not_or_cannot_be_told():
    words = [judge_statement(Finding(h, "", 1), "quick", Circumstances()).word for h in (True, False, None)]
    assert words == ["holds", "does not hold", "undetermined"]


def test_the_rule_covers_what_it_should_as_often_as_it_says():
    """Two samples of one truth: 95 % of the pairs are covered, and hardly any where the truths differ."""
    generator = np.random.default_rng(1)
    covered = {
        truth: np.mean(
            [
                word(scaled(proportion(a, 100), 100), percent(int(b), 100, "")) == "covered"
                for a, b in zip(
                    generator.binomial(100, 0.17, 200), generator.binomial(100, truth, 200), strict=True
                )
            ]
        )
        for truth in (0.17, 0.5)
    }
    assert 0.9 < covered[0.17] < 1
    assert covered[0.5] < 0.02


def test_trends_need_numbers():
    assert trend(range(4), range(4), 1, "").holds is None  # even a perfect order of four has p = 0.08
    assert trend(range(5), range(5), 1, "").holds
    assert trend(range(5), range(5), -1, "").holds is False
    assert trend(range(9), [3.0] * 9, 1, "").holds is None
    assert trend([1, 2, 3, 4, 5, 6], [9, 8, np.inf, 5, 4, 3], -1, "").statistic.startswith(": Kendall's τ")


def test_slopes_weigh_their_errors():
    sure, vague = ([Interval(y, y - e, y + e, 9) for y in (1, 2, 3)] for e in (0.1, 5.0))
    assert slope([1, 2, 3], sure, 1, "").holds
    assert slope([1, 2, 3], sure, -1, "").holds is False
    assert slope([1, 2, 3], vague, 1, "").holds is False
    assert slope([1, 2], [mean([]), mean([])], 1, "").holds is None
    # Constant estimates pretend to no scatter; a neighbour's is taken.
    assert slope([1, 2, 3], [exact(4.0), exact(4.0), Interval(5, 0, 10, 9)], 1, "").holds is False
    same = slope([1, 2, 3], sure, 1, "")
    assert "slope 1 [" in same.statistic


def test_rare_means_that_the_interval_is_below():
    assert rare(0, 100, 0.1, "").holds
    assert rare(30, 100, 0.1, "").holds is False
    assert rare(0, 10, 0.1, "").holds is None
    assert rare(0, 0, 0.1, "").holds is None


# -- reading ------------------------------------------------------------------------------------------------


@pytest.fixture
def written(tmp_path):
    rows = [
        {"name": "a", "x": 1.5, "x_low": 1, "x_high": 2, "count": 3, "done": True},
        {"name": "b", "x": "never", "x_low": "", "x_high": "", "count": 1, "done": False},
    ]
    with (tmp_path / "t.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return Written(tmp_path, ["t.csv"])


def test_tables_are_read_as_numbers(written):
    np.testing.assert_array_equal(written.column("t", "x"), [1.5, np.inf])
    np.testing.assert_array_equal(written.column("t", "x_low"), [1, np.nan])
    np.testing.assert_array_equal(written.column("t", "done"), [1, 0])
    assert written.intervals("t", "x", name="a") == [Interval(1.5, 1, 2, 3)]
    assert [row["name"] for row in written.rows("t", done=False)] == ["b"]
    assert [row["name"] for row in written.rows("t", done=True, name="a")] == ["a"]
    with pytest.raises(Unreadable, match="t.csv has no row with done = False, name = a"):
        written.rows("t", done=False, name="a")
    with pytest.raises(Unreadable, match="u.csv was not written"):
        written.rows("u")
    with pytest.raises(Unreadable, match="t.csv has no row with done = maybe"):
        written.column("t", "x", done="maybe")


def test_a_claim_whose_data_are_missing_says_so(written):
    def claim(read):
        return Claim("x", Printed("2", "Table 9"), read)

    item = Item(
        "Liu",
        "Table 9",
        "-",
        "r",
        claims=(
            claim(lambda w: w.intervals("t", "x", name="a")[0]),
            claim(lambda w: w.intervals("t", "x", name="c")[0]),
            claim(lambda w: w.intervals("gone", "x")[0]),
        ),
    )
    found = item.results(written, "quick")
    assert (found[0]["verdict"], found[0]["ours"], found[0]["runs"]) == ("covered", "1.50 [1.00, 2.00]", 3)
    assert [result["verdict"] for result in found[1:]] == ["undetermined"] * 2
    assert found[1]["why"] == "no such number here: t.csv has no row with name = c"
    assert found[2]["why"] == "no such number here: gone.csv was not written"


@pytest.mark.parametrize(
    ("read", "error"),
    [
        (lambda w: w.intervals("t", "y")[0], KeyError),
        (lambda w: w.intervals("t", "x", nam="a")[0], KeyError),
        (lambda w: exact(w.column("t", "x")[2]), IndexError),
        (lambda w: exact(w.column("t", "name")[0]), ValueError),
        (lambda w: exact(min([])), ValueError),
    ],
)
def test_a_mistake_of_a_reader_is_raised_with_its_place(written, read, error):
    item = Item("Liu", "Table 9", "-", "r", claims=(Claim("numbers", Printed("2", "Table 9"), read),))
    with pytest.raises(error) as caught:
        item.results(written, "quick")
    assert caught.value.__notes__ == ["in the claim 'numbers' of Liu, Table 9 (r)"]
    assert caught.traceback[-1].path.name in ("claims.py", "test_scoreboard.py")


def test_a_table_that_cannot_be_read_says_so(written):
    (written.out / "t.csv").write_bytes(b"name,x\n\xff\xfe,1\n")
    with pytest.raises(Unreadable, match="t.csv cannot be read"):
        written.rows("t")
    (written.out / "t.csv").unlink()
    with pytest.raises(Unreadable, match="t.csv cannot be read"):
        written.rows("t")


def test_statements_that_a_recipe_judges_itself_are_taken_over(tmp_path):
    rows = [
        {"diagram": "left", "claim": "there are four phases (here 3: a, b (c))", "holds": False},
        {"diagram": "right", "claim": "grokking comes with less decay", "holds": True},
    ]
    write_csv(tmp_path / "r-claims.csv", rows)
    write_csv(tmp_path / "r-runs.csv", [{"x": 1}] * 7)
    about = Circumstances("few cells", {"quick": "a look"})
    item = Item("Liu", "Figure 6", "Phases.", "r", about=about)
    written = Written(tmp_path, ["r-claims.csv", "r-runs.csv"])
    first, second = item.results(written, "default")
    assert (first["paper"], first["ours"]) == ("there are four phases", "3: a, b (c)")
    assert (first["verdict"], first["why"], first["runs"]) == ("does not hold", "few cells", 7)
    assert (second["claim"], second["verdict"], second["why"]) == ("right", "holds", "")
    assert {result["verdict"] for result in item.results(written, "quick")} == {"other setting"}
    assert item.results(Written(tmp_path, ["r-runs.csv"]), "default") == []


# -- the rows -----------------------------------------------------------------------------------------------


def test_every_recipe_has_a_row_and_every_row_a_recipe():
    recipes = [item.recipe for item in ITEMS if item.recipe]
    assert len(recipes) == len(set(recipes))
    assert set(FIGURES) == set(recipes)


@pytest.mark.parametrize(("paper", "tables", "figures"), [("Musat", 2, 6), ("Liu", 1, 22)])
def test_every_table_and_figure_is_there(paper, tables, figures):
    text = " ".join(
        item.item.replace("Figures 1, 2", "Figure 1 Figure 2") for item in ITEMS if item.paper == paper
    )
    for number in range(1, tables + 1):
        assert f"Table {number}" in text
    for number in range(1, figures + 1):
        assert f"Figure {number}" in text


def test_rows_are_whole():
    for item in ITEMS:
        assert item.paper in PAPERS
        assert item.shows.endswith((".", ":"))
        assert bool(item.recipe) != bool(item.none), item.item
        assert item.recipe in item.picture or not item.picture
        names = [claim.name for claim in item.claims]
        assert len(names) == len(set(names)), item.item
        for claim in item.claims:
            if isinstance(claim.paper, Printed):
                assert np.isfinite(claim.paper.value)
                assert claim.paper.source


def test_musats_tables_are_quoted_in_full():
    printed = {(item.recipe, claim.name): claim.paper for item in ITEMS for claim in item.claims}
    for decay, row in TABLE_1.items():
        own = printed["musat-table1", f"decay {decay:g}: grid imperfections"]
        assert own.value == row.imperfections.estimate
        assert own.interval.high == pytest.approx(row.imperfections.high)
        related = printed["musat-table1", f"decay {decay:g}: correlation"]
        assert (
            related.interval
            == between(
                *(
                    f"{row.correlation.estimate:.2f}",
                    (f"{row.correlation.low:.2f}", f"{row.correlation.high:.2f}"),
                ),
                source="",
                runs=100 - row.circles,
            ).interval
        )
    assert sum(recipe == "musat-table2" for recipe, _ in printed) == 2 * len(TABLE_2)


def test_rows_without_data_say_why(tmp_path):
    by_recipe = {item.recipe: item for item in ITEMS}
    assert judged(by_recipe["liu-9"], None, tmp_path, tuple(FIGURES))["status"] == "not run"
    assert judged(by_recipe["liu-9"], None, tmp_path, ())["status"] == "no recipe"
    drawing = next(item for item in ITEMS if item.none)
    assert judged(drawing, None, tmp_path, tuple(FIGURES))["status"] == "not made"


QUICK = ("liu-4a", "liu-4c", "liu-9", "liu-11")


@pytest.mark.parametrize("name", QUICK)
def test_claims_are_read_from_what_recipes_write(name, tmp_path, capsys):
    files = [path.name for path in FIGURES[name](tmp_path, "quick")]
    (item,) = [item for item in ITEMS if item.recipe == name]
    for result in item.results(Written(tmp_path, files), "quick"):
        assert result["verdict"] in ("covered", "holds", "not covered")
        if result["verdict"] == "not covered":
            assert result["why"].startswith("D_7 repeats D_4")
