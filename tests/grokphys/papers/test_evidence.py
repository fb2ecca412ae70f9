"""The measures of the rules, their models of chance, and the printed numbers, from their definitions."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import stats

from analysis.stats import intervals
from analysis.stats.intervals import Interval
from grokphys.papers import evidence, recipe, redraw, results
from grokphys.papers.judge import judge
from grokphys.papers.recipe import Number, Printed, Recipe, Result, Run, Statement
from physics import FileFormatError, InputError

RNG = np.random.default_rng(0)
X = RNG.normal(size=12)
Y = X + RNG.normal(size=12)
GROUPS = np.repeat(list("dacb"), 3)


def leave_out(statistic, x, y, groups, level):
    """Student's interval of the pseudo-values of a statistic."""
    names = list(dict.fromkeys(groups))
    whole, n = statistic(x, y), len(names)
    left = [statistic(x[groups != one], y[groups != one]) for one in names]
    pseudo = n * whole - (n - 1) * np.array(left)
    half = stats.t.ppf((1 + level) / 2, n - 1) * pseudo.std(ddof=1) / n**0.5
    return whole, whole - half, whole + half, n


@pytest.mark.parametrize("groups", [None, GROUPS])
@pytest.mark.parametrize("level", [0.9, 0.99])
def test_trends_leave_out_whole_groups(groups, level):
    own = np.arange(12) if groups is None else groups
    for measure, statistic in (
        (evidence.slope, lambda x, y: stats.linregress(x, y).slope),
        (evidence.rank_correlation, lambda x, y: stats.kendalltau(x, y).statistic),
    ):
        found = measure(X, Y, level, groups=groups)
        assert (found.estimate, found.low, found.high, found.count) == pytest.approx(
            leave_out(statistic, X, Y, own, level)
        )
    found = evidence.correlation(X, Y, level, groups=groups)
    whole, low, high, n = leave_out(lambda x, y: np.arctanh(np.corrcoef(x, y)[0, 1]), X, Y, own, level)
    assert (found.estimate, found.low, found.high) == pytest.approx(tuple(np.tanh([whole, low, high])))
    assert found.count == n


def test_trends_that_cannot_be_measured_have_no_interval():
    flat = np.ones(4)
    for measure in (evidence.slope, evidence.correlation):
        assert math.isnan(measure(flat, X[:4], 0.95).estimate)
    assert math.isnan(evidence.correlation(X[:4], flat, 0.95).estimate)
    assert math.isnan(evidence.slope([0.1] * 3, X[:3], 0.95).estimate), "their mean is not quite 0.1"
    assert evidence.slope(X[:4], flat, 0.95).estimate == 0
    assert math.isnan(evidence.correlation(X[:2], Y[:2], 0.95).estimate)
    two = evidence.slope(X[:2], Y[:2], 0.95)
    assert two.estimate == pytest.approx((Y[1] - Y[0]) / (X[1] - X[0]))
    assert math.isnan(two.low)
    assert evidence.slope([], [], 0.95).count == 0
    step = np.array([0.0, 0.0, 0.0, 1.0])  # without the last row it is flat
    assert math.isnan(evidence.slope(step, X[:4], 0.95).low)
    assert evidence.correlation(X, 2 * X, 0.95).estimate == pytest.approx(1.0)


def test_means_and_shares_are_those_of_groups():
    hits = X > 0
    by_group = [X[one == GROUPS].mean() for one in "abcd"]
    assert evidence.mean(X, 0.9, groups=GROUPS) == intervals.mean(by_group, 0.9)
    assert evidence.mean(X, 0.9) == intervals.mean(X, 0.9)
    assert evidence.mean([], 0.9, groups=[]).count == 0
    counts = [hits[one == GROUPS].sum() for one in "abcd"]
    expected = intervals.clustered_proportion(counts, [3] * 4, 0.9)
    assert evidence.share(hits, 0.9, groups=GROUPS) == replace(expected, count=4)
    assert evidence.share(hits, 0.9) == intervals.proportion(int(hits.sum()), 12, 0.9)
    assert evidence.exact(3) == Interval(3.0, 3.0, 3.0, 1)


def test_chance_shuffles_one_column_and_keeps_the_others():
    table = {"x": np.arange(12), "y": np.arange(12) + 100, "g": GROUPS}
    tables = {"t": table, "u": {"x": np.arange(3)}}
    whole = evidence.shuffled("t", "x")(tables, np.random.default_rng(3))
    assert whole["u"] is tables["u"]
    assert whole["t"]["y"] is table["y"]
    assert whole["t"]["x"].tolist() == np.random.default_rng(3).permutation(12).tolist()
    assert table["x"].tolist() == list(range(12)), "the table itself stays"
    pairs = evidence.exchanged("t", "x", "y")(tables, np.random.default_rng(3))["t"]
    swap = np.random.default_rng(3).random(12) < 0.5
    assert 0 < swap.sum() < 12
    assert pairs["x"].tolist() == np.where(swap, table["y"], table["x"]).tolist()
    assert pairs["y"].tolist() == np.where(swap, table["x"], table["y"]).tolist()
    assert pairs["g"] is table["g"]


def test_chance_may_leave_rows_out():
    table = {"x": np.arange(12.0), "g": GROUPS, "even": np.array([0, 0, 1] * 4)}
    mix = evidence.shuffled("t", "x", within="g", among={"even": 0})
    found = mix({"t": table}, np.random.default_rng(1))["t"]["x"]
    chosen = table["even"] == 0
    assert found[~chosen].tolist() == table["x"][~chosen].tolist()
    assert found.tolist() != table["x"].tolist()
    for group in np.unique(GROUPS):
        here = chosen & (np.asarray(GROUPS) == group)
        assert sorted(found[here]) == table["x"][here].tolist()


@pytest.mark.parametrize(
    ("chance", "words"),
    [
        (evidence.shuffled("t", "x"), "`x` shuffled among all rows of `t`"),
        (evidence.shuffled("t", "x", within="g"), "`x` shuffled among rows of `t` with the same `g`"),
        (
            evidence.shuffled("t", "x", within="g", among={"even": 0.0}),
            "`x` shuffled among rows of `t` with the same `g` and `even` = 0",
        ),
        (evidence.exchanged("t", "x", "y"), "`x` and `y` exchanged in half of the rows of `t`, at random"),
    ],
)
def test_chance_says_what_it_does(chance, words):
    assert chance.words == words


def test_chance_permutes_a_column_among_chosen_rows_of_two_tables():
    tables = {
        "t": {"kind": np.array(["a", "b", "a"]), "x": np.array([1.0, 2.0, 3.0])},
        "u": {"kind": np.array(["a", "a", "b", "a"]), "p": [3, 5, 3, 3], "x": [4.0, 5.0, 6.0, 7.0]},
    }
    mix = evidence.pooled("x", ("t", {"kind": "a"}), ("u", {"kind": "a", "p": 3}))
    found = mix(tables, np.random.default_rng(5))
    t, u = found["t"]["x"].tolist(), found["u"]["x"].tolist()
    assert (t[1], u[1:3]) == (2, [5, 6]), "the others stay"
    values = np.random.default_rng(5).permutation([1.0, 3.0, 4.0, 7.0]).tolist()
    assert [t[0], t[2], u[0], u[3]] == values != [1, 3, 4, 7]
    assert tables["t"]["x"].tolist() == [1, 2, 3], "the tables themselves stay"


def test_tables_are_joined_in_their_order_and_in_the_columns_of_the_first():
    tables = ({"x": np.arange(n), "name": [word] * n} for n, word in ((2, "a"), (0, "none"), (3, "longer")))
    found = evidence.joined(tables)
    assert list(found) == ["x", "name"]
    assert found["x"].tolist() == [0, 1, 0, 1, 2]
    assert found["name"].tolist() == ["a", "a", "longer", "longer", "longer"]


def test_rows_are_chosen_by_all_values():
    table = {"a": [1, 1, 2, 2], "b": ["x", "y", "x", "y"], "c": [0.1, 0.2, 0.3, 0.4]}
    assert {k: v.tolist() for k, v in evidence.where(table, a=2, b="x").items()} == {
        "a": [2], "b": ["x"], "c": [0.3]
    }  # fmt: skip
    assert evidence.where(table)["c"].tolist() == table["c"]
    assert evidence.where(table, a=3)["b"].tolist() == []


# -- rules --------------------------------------------------------------------------------------------------


def test_printed_numbers_keep_their_digits():
    assert str(Printed("0.50", "p", (0.4, 0.6))) == "0.50 [0.40, 0.60]"
    assert str(Printed("12", "p", (3.0, 20.0))) == "12 [3, 20]"
    assert str(Printed("0.50", "p")) == "0.50"
    assert (Printed("-1.25", "p").value, Printed("-1.25", "p").rounding) == (-1.25, pytest.approx(0.005))


def rules(measure=lambda tables, level: evidence.exact(0.0)):
    number = Number("n", Printed("0.5", "here"), measure, 0.1, "network", "fitted to it", 3)
    statement = Statement("s", "q", "here", "e", measure, "none", 0.0, 1.0, "embedding", "", 1)
    return number, statement


def test_the_digest_of_rules_changes_with_everything_but_their_functions():
    number, statement = rules()
    digest = results.rules_digest((number, statement))
    assert results.rules_digest((number, replace(statement, measure=max))) == digest
    assert results.rules_digest((number, replace(statement, counter=max))) == digest
    for changed in (
        replace(number, name="m"), replace(number, printed=Printed("0.50", "here")),
        replace(number, printed=Printed("0.5", "there")), replace(number, margin=0.2),
        replace(number, independent="run"), replace(number, fitted=""),
        replace(number, printed=Printed("0.5", "here", (0.1, 0.9))),
    ):  # fmt: skip
        assert results.rules_digest((changed, statement)) != digest, changed
    for changed in (
        replace(statement, name="m"), replace(statement, quote="r"), replace(statement, source="there"),
        replace(statement, effect="f"), replace(statement, chance="other"), replace(statement, least=-1.0),
        replace(statement, most=math.inf), replace(statement, independent="run"),
        replace(statement, fitted="yes"), replace(statement, chance=max),
    ):  # fmt: skip
        assert results.rules_digest((number, changed)) != digest, changed
    assert results.rules_digest((statement, number)) != digest


def test_holm_measures_each_claim_at_the_level_at_which_it_is_decided():
    levels = {"sure": [], "open": []}

    def measured(name, decided_from):
        def measure(tables, level):
            levels[name].append(level)
            low = 0.5 if level <= decided_from else -0.5
            return Interval(1.0, low, 2.0, 9)

        return Statement(name, "q", "s", "e", measure, "none", least=0.0)

    sure, unsure = measured("sure", 0.99), measured("open", 0.5)
    claims = judge((sure, unsure), {})
    assert [claim.verdict for claim in claims] == ["holds", "inconclusive"]
    assert [claim.rule.name for claim in claims] == ["sure", "open"]
    assert levels["sure"] == [pytest.approx(0.975)]
    assert levels["open"] == pytest.approx([0.975, 0.95])
    assert claims[1].found.low == -0.5
    for one in levels.values():
        one.clear()
    judge((unsure, unsure), {})
    assert levels["open"] == pytest.approx([0.975, 0.975]), "undecided ones are shown where Holm stopped"


def test_recipes_are_registered_once_under_names_of_their_own():
    registry = {}

    def register(name, given=(), draw=None):
        return recipe.recipe(
            name, paper="beyond", item="i", shows="s.", quick=1, paper_setting=2, cost="c", rules=given,
            draw=draw, registry=registry,
        )  # fmt: skip

    figure = Figure()
    made = register("a", rules(), lambda setting, tables: {f"{setting} {tables['t']['x'][0]}": figure})
    one = made(lambda run: Result({"t": {"x": [run.setting]}}))
    assert one(Run(5, "quick")).figures == {"5 5": figure}
    assert registry["a"].settings == {"quick": 1, "paper": 2}
    assert (registry["a"].paper, registry["a"].item, registry["a"].cost) == ("beyond", "i", "c")
    assert [one.name for one in registry["a"].rules] == ["n", "s"]
    with pytest.raises(InputError, match="name must be new, got 'a'"):
        register("a")(lambda run: None)
    with pytest.raises(InputError, match="must have different names"):
        register("b", (rules()[0], rules()[0]))(lambda run: None)
    with pytest.raises(InputError, match="one of them finite"):
        Statement("s", "q", "p", "e", max, "none", -math.inf, math.inf)


# -- stored results -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Setting:
    runs: int = 3


@pytest.fixture
def stored(tmp_path):
    """A result on disk, and the recipe that made it."""
    draw = lambda setting, tables: {"f": Figure((4, 2))}  # noqa: E731
    whole = Recipe(
        "r", "beyond", "i", "s.", {"quick": 1, "paper": Setting()}, "c", rules(), lambda run: None, draw
    )
    result = Result(
        {"t": {"x": np.array([1 / 3, np.nan])}, "u": {"y": np.array(["a"])}}, {"f": Figure((4, 2))}
    )
    claims = judge(whole.rules, result.columns())
    written = results.write_result(
        tmp_path / "results", whole, replace(result, claims=claims), budget="paper", figures="svg",
        sources="src", seeds=[5, 2], shift=7, seconds=1.26, date="2026-01-01T00:00:00Z",
    )  # fmt: skip
    return whole, tmp_path, written


def test_a_stored_result_says_how_it_was_made(stored):
    whole, place, written = stored
    folder = place / "results" / "r"
    assert sorted(path.name for path in folder.iterdir()) == [
        "f.png",
        "f.svg",
        "result.json",
        "t.json",
        "u.json",
    ]
    assert written[-1] == folder / "result.json", "its presence means that the rest is there"
    found = results.read_result(folder)
    about = found.about
    assert (about["recipe"], about["budget"], about["setting"]) == ("r", "paper", {"runs": 3})
    assert (about["seeds"], about["seed_shift"], about["seconds"]) == ([2, 5], 7, 1.3)
    assert (about["sources"], about["rules"]) == ("src", results.rules_digest(whole.rules))
    assert (about["tables"], about["figures"]) == (["t", "u"], ["f"])
    number, statement = about["claims"]
    assert (number["estimate"], number["verdict"], number["count"], number["digits"]) == (
        0,
        "not covered",
        1,
        3,
    )
    assert (statement["verdict"], statement["least"], statement["most"]) == ("holds", 0.0, 1.0)
    np.testing.assert_array_equal(found.tables["t"]["x"], [0.33333333, np.nan])
    assert results.read_result(place) is None
    why = "cannot read the result in .*: its JSON is damaged or lacks entries; run its recipe again"
    for text in ("{", '{"x": 3}', "[]"):
        (folder / "u.json").write_text(text)
        with pytest.raises(FileFormatError, match=why):
            results.read_result(folder)
    (folder / "result.json").write_text("{}")
    with pytest.raises(FileFormatError, match=r"^\S+ holds no result of version 1; run its recipe again$"):
        results.read_result(folder)


def test_pictures_are_drawn_again_only_of_the_same_setting_tables_and_names(stored):
    whole, place, _ = stored
    (place / "gallery").mkdir()
    (path,) = redraw.redraw(whole, place)
    assert path == place / "gallery" / "f.png"
    path.unlink()
    other = {**whole.settings, "paper": Setting(4)}
    twice = lambda setting, tables: {"g": Figure((4, 2))}  # noqa: E731
    for changed, what in (
        (replace(whole, settings=other), "the setting differs"),
        (replace(whole, draw=twice), "the list of pictures differs"),
    ):
        with pytest.raises(InputError, match=what):
            redraw.redraw(changed, place)
    with pytest.raises(InputError, match="names must name results at the paper's setting in .*, got no"):
        redraw.redraw(replace(whole, name="no"), place)
    assert not path.exists()
    tables = results.read_result(place / "results" / "r").tables
    for changed, what in (
        (tables, ""),
        ({"t": tables["t"]}, "the list of tables"),
        ({**tables, "u": {"z": tables["u"]["y"]}}, "the list of columns of the table 'u'"),
        ({**tables, "u": {"y": np.array(["b"])}}, "the column 'y' of the table 'u'"),
        ({**tables, "t": {"x": np.array([0.3, np.nan])}}, "the column 'x' of the table 't'"),
    ):
        assert redraw._difference(results.read_result(place / "results" / "r"), changed) == what
