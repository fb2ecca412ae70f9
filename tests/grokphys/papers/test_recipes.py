"""Recipes, their rules, how these are judged, and the results on disk."""

import json
import re
import signal
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from scipy import stats

from grokphys.cli.main import main
from grokphys.papers import evidence
from grokphys.papers import run as run_module
from grokphys.papers.catalogue import recipes
from grokphys.papers.judge import judge
from grokphys.papers.pages import NOT_MADE
from grokphys.papers.recipe import Number, Printed, Recipe, Result, Run, Statement, recipe
from grokphys.papers.results import read_result, rounded
from grokphys.papers.run import run_recipes
from physics import InputError, OutputError
from physics.seeds import generator


@given(st.integers(3, 8), st.integers(2, 30), st.integers(0, 10**6))
def test_the_jackknife_of_a_mean_is_students_interval(groups, size, seed):
    values = np.random.default_rng(seed).normal(size=groups)
    found = evidence.jackknife(
        np.mean, (np.repeat(values, size),), 0.9, groups=np.repeat(np.arange(groups), size)
    )
    expected = evidence.mean(values, 0.9)
    assert np.allclose(
        [found.estimate, found.low, found.high], [expected.estimate, expected.low, expected.high]
    )
    exact = stats.ttest_1samp(values, 0.0).confidence_interval(0.9)
    assert np.allclose([expected.low, expected.high], [exact.low, exact.high])


def test_a_share_has_wilsons_interval_and_that_of_groups_where_trials_share_them():
    hits = np.array([1, 1, 0, 1, 0, 1, 1, 1, 0, 1])
    found = evidence.share(hits, 0.95)
    exact = stats.binomtest(7, 10).proportion_ci(0.95, method="wilson")
    assert np.allclose([found.low, found.high], [exact.low, exact.high])
    clones = evidence.share(np.repeat(hits, 50), 0.95, groups=np.repeat(np.arange(10), 50))
    assert clones.count == 10
    assert clones.low < found.low < found.high < clones.high


@pytest.mark.parametrize("measure", [evidence.correlation, evidence.slope, evidence.rank_correlation])
def test_intervals_of_trends_hold_the_truth_and_mirror(measure):
    trials = 60
    rng = np.random.default_rng(3)
    covered, truth = 0, {"correlation": 0.0, "slope": 0.0, "rank_correlation": 0.0}[measure.__name__]
    for _ in range(trials):
        x, y = rng.normal(size=(2, 30))
        found, mirrored = measure(x, y, 0.95), measure(x, -y, 0.95)
        covered += found.low <= truth <= found.high
        assert np.allclose([found.low, found.high], [-mirrored.high, -mirrored.low])
    assert stats.binomtest(covered, trials, 0.95).pvalue > 1e-4


def test_shuffling_keeps_groups_and_values():
    table = {"x": np.arange(12), "group": np.repeat([0, 1, 2], 4)}
    chance = evidence.shuffled("t", "x", within="group")({"t": table}, np.random.default_rng(0))["t"]
    assert chance["x"].tolist() != table["x"].tolist()
    assert np.array_equal(np.sort(chance["x"].reshape(3, 4)), table["x"].reshape(3, 4))


# -- runs and results ---------------------------------------------------------------------------------------


def coin(registry, *, heads=0.5, least=0.4):
    rules = (
        Number(
            "heads", Printed("0.5", "folklore"), lambda t, v: evidence.share(t["throws"]["head"], v), 0.05
        ),
        Statement(
            "fair",
            "as many heads as tails",
            "folklore",
            "share of heads",
            lambda t, v: evidence.share(t["throws"]["head"], v),
            "a coin has no other chance",
            least,
            0.6,
        ),
    )

    @recipe(
        "coin",
        paper="beyond",
        item="a coin",
        shows="A fair coin shows heads in half of its throws.",
        quick=10,
        paper_setting=4000,
        cost="a second",
        rules=rules,
        registry=registry,
    )
    def throw(run: Run) -> Result:
        kept = run.keep("throws", lambda: {"head": generator(0).random(run.setting) < heads})
        return Result({"throws": kept | {"weight": np.full(run.setting, np.inf)}}, {"coin": Figure((4, 3))})

    return registry


def test_a_result_is_written_once_and_judged_again_from_the_disk_alone(tmp_path, capsys):
    registry = coin({})
    assert run_recipes(["coin"], registry, tmp_path, "paper", again=False) == []
    said = capsys.readouterr().out
    assert "covered" in said
    assert "holds" in said
    stored = read_result(tmp_path / "coin")
    assert [claim["verdict"] for claim in stored.about["claims"]] == ["covered", "holds"]
    assert stored.about["setting"] == 4000
    again = judge(registry["coin"].rules, stored.tables)
    for claim, kept in zip(again, stored.about["claims"], strict=True):
        assert claim.verdict == kept["verdict"]
        assert claim.found.estimate == kept["estimate"]
        assert np.isclose(claim.found.low, kept["low"], rtol=1e-7)
    assert np.isinf(stored.tables["throws"]["weight"]).all()
    assert run_recipes(["coin"], registry, tmp_path, "paper", again=False) == []
    assert "passed over" in capsys.readouterr().out


def test_another_rule_asks_for_another_run(tmp_path, capsys):
    run_recipes(["coin"], coin({}), tmp_path, "paper", again=False)
    run_recipes(["coin"], coin({}, least=0.45), tmp_path, "paper", again=False)
    assert "passed over" not in capsys.readouterr().out


def test_with_other_seeds_everything_is_drawn_anew_and_published_beside_the_first(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr("grokphys.papers.catalogue.recipes", lambda: coin({}))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    assert main(["reproduce", "coin", "--budget", "paper", "--directory", "made"]) == 0
    whole = ["reproduce", "coin", "--budget", "paper", "--other-seeds", "3", "--directory", "made"]
    assert main([*whole, "--publish", "docs"]) == 0
    first = read_result(tmp_path / "docs" / "results" / "coin")
    again = read_result(tmp_path / "docs" / "results" / "seeds-3" / "coin")
    assert (first.about["seeds"], again.about["seeds"]) == ([0], [3 * 10**9])
    expected = np.random.default_rng(3 * 10**9).random(4000) < 0.5
    np.testing.assert_array_equal(again.tables["throws"]["head"], expected)
    board = (tmp_path / "docs" / "scoreboard.md").read_text()
    assert "2 of 2 verdicts are the same" in board
    assert main(["reproduce", "coin", "--other-seeds", "-1"]) == 2
    assert "--other-seeds must be at least 0, got -1" in capsys.readouterr().err


def test_a_quick_run_has_no_verdict_and_a_badge(tmp_path, monkeypatch):
    badges = []
    monkeypatch.setattr(Figure, "text", lambda self, x, y, text, **look: badges.append(text))
    run_recipes(["coin"], coin({}), tmp_path, "quick", again=False)
    stored = read_result(tmp_path / "coin")
    assert stored.about["claims"] == []
    assert stored.about["budget"] == "quick"
    assert badges == ["toy setting"]


def test_a_recipe_that_fails_ends_no_other_and_leaves_no_result(tmp_path, capsys):
    registry = coin({})

    def broken(run):
        raise ZeroDivisionError("no throws")

    registry["broken"] = Recipe(
        "broken", "beyond", "x", "It breaks.", {"quick": 1, "paper": 1}, "", (), broken
    )
    assert run_recipes(["broken", "coin"], registry, tmp_path, "quick", again=False) == ["broken"]
    assert "broken failed: ZeroDivisionError: no throws" in capsys.readouterr().err
    assert read_result(tmp_path / "broken") is None
    assert read_result(tmp_path / "coin") is not None


def test_what_is_kept_is_not_computed_again(tmp_path):
    run = Run(None, "paper", tmp_path / "store", "coin")
    first = run.keep("a", lambda: {"x": np.arange(3)})
    second = run.keep("a", lambda: pytest.fail("computed again"))
    assert np.array_equal(first["x"], second["x"])
    assert np.array_equal(Run(None, "quick").keep("a", lambda: {"x": [1]})["x"], [1])


def test_tables_are_stored_as_they_are_read(tmp_path):
    table = {
        "number": np.array([1.0, np.nan, np.inf, -np.inf, 1 / 3]),
        "whole": np.arange(5),
        "true": np.array([True, False, True, True, False]),
        "text": np.array(["a", "b", "inf", "", "é"]),
    }
    once = rounded({"t": table})
    twice = rounded(once)
    for name, values in once["t"].items():
        assert values.dtype.kind == table[name].dtype.kind
        assert np.array_equal(values, twice["t"][name], equal_nan=values.dtype.kind == "f")
    assert np.allclose(once["t"]["number"], table["number"], rtol=1e-7, equal_nan=True)


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(InputError, match="'t' must be equally long"):
        Result({"t": {"a": [1, 2], "b": [1]}}).columns()


def test_a_result_that_is_none_is_said(tmp_path):
    (tmp_path / "coin").mkdir()
    assert read_result(tmp_path / "coin") is None
    (tmp_path / "coin" / "result.json").write_text(json.dumps({"schema": "other"}))
    with pytest.raises(Exception, match="holds no result of version 1"):
        read_result(tmp_path / "coin")


KILLED = """
import os, signal, sys
from pathlib import Path
from grokphys.papers.recipe import Result, recipe
from grokphys.papers.run import run_recipes
registry = {}

@recipe("long", paper="beyond", item="x", shows="It is long.", quick=1, paper_setting=3, cost="",
        registry=registry)
def long(run):
    parts = []
    for k in range(run.setting):
        if k == 2 and "die" in sys.argv:
            os.kill(os.getpid(), signal.SIGKILL)
        parts.append(run.keep(f"part-{k}", lambda: print("computed", k) or {"x": [k]})["x"])
    return Result({"t": {"x": np.concatenate(parts)}})

run_recipes(["long"], registry, Path(sys.argv[1]), "paper", again=False)
"""


def test_a_killed_run_goes_on_where_it_was(tmp_path, python):
    program = "import numpy as np" + KILLED
    killed = python(program, tmp_path, "die", check=False)
    assert killed.returncode == -signal.SIGKILL
    assert read_result(tmp_path / "long") is None
    assert "computed 2" in python(program, tmp_path).stdout
    assert read_result(tmp_path / "long").tables["t"]["x"].tolist() == [0, 1, 2]
    assert "computed" not in python(program, tmp_path).stdout


def test_a_full_disk_ends_the_run_with_a_sentence(tmp_path, monkeypatch):
    def full(path, text):
        raise OutputError(f"cannot write {path}: No space left on device")

    monkeypatch.setattr("grokphys.papers.results.write_text", full)
    with pytest.raises(OutputError, match="No space left"):
        run_recipes(["coin"], coin({}), tmp_path, "quick", again=False)
    assert read_result(tmp_path / "coin") is None


def test_a_run_that_breaks_off_leaves_no_verdict_beside_its_tables(tmp_path, monkeypatch):
    run_recipes(["coin"], coin({}), tmp_path, "paper", again=False)
    assert read_result(tmp_path / "coin").about["claims"]

    def full(figure, path, **options):
        raise OutputError(f"cannot write {path}: No space left on device")

    monkeypatch.setattr("grokphys.papers.results.save_figure", full)
    with pytest.raises(OutputError, match="No space left"):
        run_recipes(["coin"], coin({}), tmp_path, "paper", again=True)
    assert (tmp_path / "coin" / "throws.json").exists()
    assert read_result(tmp_path / "coin") is None


# -- the catalogue and the command --------------------------------------------------------------------------


@pytest.mark.parametrize(("paper", "tables", "figures"), [("Musat", 2, 6), ("Liu", 1, 22), ("Ding", 0, 16)])
def test_every_table_and_figure_has_a_recipe_or_a_reason(paper, tables, figures):
    items = [recipe.item for recipe in recipes().values() if recipe.paper == paper]
    text = " ".join([*items, *NOT_MADE.get(paper, ())])
    text = re.sub(r"Figures (\d+), (\d+)", r"Figure \1 Figure \2", text)
    found = {kind: {int(n) for n in re.findall(rf"{kind} (\d+)", text)} for kind in ("Table", "Figure")}
    assert found["Table"] >= set(range(1, tables + 1))
    assert found["Figure"] >= set(range(1, figures + 1))


def test_recipes_are_whole():
    for name, one in recipes().items():
        assert one.shows.endswith("."), name
        assert one.cost, name
        for rule in one.rules:
            source = rule.printed.source if isinstance(rule, Number) else rule.source
            assert source, (name, rule.name)


def test_the_command_runs_what_is_named_and_refuses_the_rest(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("grokphys.papers.catalogue.recipes", lambda: coin({}))
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce"]) == 2
    assert "names must say which recipes to run" in capsys.readouterr().err
    assert main(["reproduce", "coin", "--all"]) == 2
    assert "names must be left out with --all" in capsys.readouterr().err
    assert main(["reproduce", "coin", "--directory", "made", "--publish", "docs"]) == 1
    assert "the directory docs does not exist" in capsys.readouterr().err
    (tmp_path / "docs").mkdir()
    assert main(["reproduce", "coin", "--directory", "made", "--publish", "docs"]) == 0
    assert read_result(tmp_path / "made" / "coin").about["budget"] == "quick"
    assert not (tmp_path / "docs" / "results" / "coin").exists()  # a toy setting is not published
    assert "| a second |" in (tmp_path / "docs" / "scoreboard.md").read_text()
    assert main(["reproduce", "--all", "--budget", "paper", "--directory", "made", "--publish", "docs"]) == 0
    assert (tmp_path / "docs" / "gallery" / "coin.png").is_file()
    assert "**covered**" in (tmp_path / "docs" / "scoreboard.md").read_text()
    monkeypatch.setattr("grokphys.papers.catalogue.recipes", lambda: coin({}, least=0.45))
    assert main(["reproduce", "--directory", "made", "--publish", "docs"]) == 2
    assert "the rules of coin have changed since it ran" in capsys.readouterr().err


def test_a_recipe_that_another_process_makes_is_passed_over(tmp_path, monkeypatch, capsys):
    asked, made, registry = [], [], {}

    @contextmanager
    def held(path, *, wait):
        asked.append((path, wait))
        yield False

    about = {"paper": "beyond", "item": "a coin", "shows": "A coin.", "cost": "seconds", "registry": registry}
    recipe("coin", quick=1, paper_setting=1, **about)(lambda run: made.append(run))
    monkeypatch.setattr(run_module, "claimed", held)
    assert run_recipes(["coin"], registry, tmp_path, "quick", again=True) == []
    assert asked == [(tmp_path / "coin", False)], "it does not wait for the other"
    assert made == []
    assert "coin: another process makes it, passed over" in capsys.readouterr().out
