"""What a run stores and publishes, when it is complete, and verdicts at the very bounds of a rule."""

import json
import math
import os
import platform
import re
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure

from analysis.stats.intervals import Interval
from grokphys.papers import catalogue, publish, results, run
from grokphys.papers.judge import covered, decide
from grokphys.papers.recipe import Number, Printed, Result, Statement, recipe
from physics import FileFormatError, InputError

INF, NAN = math.inf, math.nan


def statement(least=-INF, most=INF):
    return Statement("s", "q", "p", "e", lambda tables, level: None, "none", least, most)


@pytest.mark.parametrize(
    ("least", "most", "low", "high", "word"),
    [
        (0.0, INF, 0.0, 1.0, "holds"), (0.0, INF, -1e-12, 1.0, "inconclusive"),
        (0.0, INF, -1.0, 0.0, "inconclusive"), (0.0, INF, -1.0, -1e-12, "does not hold"),
        (-INF, 1.0, 0.0, 1.0, "holds"), (-INF, 1.0, 0.0, 1.5, "inconclusive"),
        (-INF, 1.0, 1.0, 1.5, "inconclusive"), (-INF, 1.0, 1.01, INF, "does not hold"),
        (0.0, 1.0, 0.0, 1.0, "holds"), (0.0, 1.0, -INF, INF, "inconclusive"), (0.0, INF, 0.5, INF, "holds"),
    ],
)  # fmt: skip
def test_a_bound_of_a_rule_belongs_to_its_range(least, most, low, high, word):
    assert decide(statement(least, most), Interval(0.5, low, high, 9)).verdict == word
    for hidden in (Interval(NAN, low, high, 9), Interval(0.5, NAN, high, 9), Interval(0.5, low, NAN, 9)):
        assert decide(statement(least, most), hidden).verdict == "inconclusive"


def test_a_number_is_covered_up_to_its_margin_and_its_rounding():
    rule = Number("n", Printed("0.5", "p"), lambda tables, level: None, 0.25)
    assert covered(rule, Interval(0.5, 0.25, 0.75, 9))
    assert not covered(rule, Interval(0.5, 0.25, 0.7501, 9))
    assert not covered(rule, Interval(0.5, -INF, INF, 9))
    assert not covered(rule, Interval(NAN, NAN, NAN, 0))
    assert covered(rule, Interval(0.55, 0.55, 0.55, 1)), "half a unit of the last digit, to rounding"
    assert covered(rule, Interval(0.45, 0.45, 0.45, 1))
    assert decide(rule, Interval(0.551, 0.551, 0.551, 1)).verdict == "not covered"
    assert decide(rule, Interval(0.449, 0.449, 0.449, 1)).verdict == "not covered"
    for side in (Interval(0.9, 0.8, INF, 9), Interval(0.1, -INF, 0.2, 9)):
        assert decide(rule, side).verdict == "not covered"


# -- a run ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Setting:
    runs: tuple[int, ...] = (1, 2)
    kind: type = Figure


def catalog(*, fails=False, name="r", figures=("f",)):
    registry = {}
    kept = []
    rule = Number("n", Printed("0.5", "p"), lambda t, level: Interval(0.5, 0.4, 0.6, len(t["t"]["x"])), 0.2)

    @recipe(
        name, paper="beyond", item="i", shows="s.", quick=Setting((3,)), paper_setting=Setting(), cost="c",
        rules=(rule,), registry=registry,
    )  # fmt: skip
    def make(given):
        kept.append(given)
        if fails:
            raise ValueError("broken")
        return Result({"t": {"x": [1, 2, 3]}}, {name: Figure((4, 2)) for name in figures})

    return registry, kept


def test_a_result_says_when_where_and_with_what_it_was_made(tmp_path, monkeypatch):
    registry, asked = catalog()
    clock = iter([10.0, 12.34])
    monkeypatch.setattr(run.time, "perf_counter", lambda: next(clock))
    (*_, last) = run.run_one(registry["r"], tmp_path, "paper", "src", "pdf", 5)
    assert last == tmp_path / "r" / "result.json"
    about = json.loads(last.read_text())
    assert (about["seconds"], about["seed_shift"], about["sources"], about["seeds"]) == (2.3, 5, "src", [])
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", about["date"])
    assert about["machine"] == {
        "processor": platform.processor() or platform.machine(), "cores": os.cpu_count()
    }  # fmt: skip
    assert about["setting"] == {"runs": [1, 2], "kind": str(Figure)}
    assert {"grokphys", "numpy"} <= set(about["made_with"])
    assert [claim["verdict"] for claim in about["claims"]] == ["covered"]
    assert {path.name for path in (tmp_path / "r").glob("f.*")} == {"f.png", "f.pdf"}
    (given,) = asked
    assert (given.setting, given.budget, given.name) == (Setting(), "paper", "r")
    assert (given.store, given.shift) == (tmp_path / ".unfinished", 5)
    assert results.setting_of(Figure) == str(Figure), "a class is no setting with fields"
    assert results.setting_of(Setting) == str(Setting)


def test_a_toy_run_keeps_no_parts_and_judges_nothing(tmp_path, monkeypatch):
    registry, asked = catalog()
    monkeypatch.setattr(run, "judge", lambda *_: pytest.fail("it was judged"))
    run.run_one(registry["r"], tmp_path, "quick", "src")
    assert (asked[0].store, asked[0].setting, asked[0].budget) == (None, Setting((3,)), "quick")
    assert {path.name for path in (tmp_path / "r").iterdir()} == {"f.png", "result.json", "t.json"}


def test_a_result_is_complete_for_one_budget_one_code_and_one_set_of_rules(tmp_path):
    registry, _ = catalog()
    one = registry["r"]
    assert not run.is_complete(tmp_path, one, "quick", "src")
    run.run_one(one, tmp_path, "quick", "src")
    assert run.is_complete(tmp_path, one, "quick", "src")
    assert not run.is_complete(tmp_path, one, "paper", "src")
    assert not run.is_complete(tmp_path, one, "quick", "other")
    (tmp_path / "r" / "t.json").rename(tmp_path / "t.json")
    assert results.read_result(tmp_path / "r") is None, "a table is missing"
    assert not run.is_complete(tmp_path, one, "quick", "src")
    (tmp_path / "r" / "t.json").mkdir()
    with pytest.raises(FileFormatError, match=r"cannot read the result in \S+: Is a directory; run its"):
        results.read_result(tmp_path / "r")


def test_a_recipe_that_fails_is_named_with_the_place_of_its_error(tmp_path, capsys):
    registry, _ = catalog(fails=True)
    registry |= catalog(name="good")[0]
    assert run.run_recipes(["r", "good"], registry, tmp_path, "quick", again=False) == ["r"]
    out, err = capsys.readouterr()
    assert re.fullmatch(r"grokphys: r failed: ValueError: broken \(test_runner\.py:\d+\)\n", err)
    assert out.splitlines()[:2] == ["r: s.", "good: s."]
    assert f"  wrote {tmp_path / 'good' / 'result.json'}" in out
    assert run.run_recipes(["good"], registry, tmp_path, "quick", again=False) == []
    assert capsys.readouterr().out == "good: complete, passed over\n"
    assert run.run_recipes(["good"], registry, tmp_path, "quick", again=True) == []
    assert "wrote" in capsys.readouterr().out


# -- publication ------------------------------------------------------------------------------------------


def test_what_is_published_replaces_all_that_was_there_and_is_judged_again(tmp_path):
    made, docs = tmp_path / "made", tmp_path / "docs"
    registry, _ = catalog(figures=("f", "g"))
    one = registry["r"]
    run.run_one(one, made, "paper", "src")
    run.run_one(one, made / "seeds-2", "paper", "src", shift=2)
    run.run_one(one, made / "seeds-3", "quick", "src", shift=3)
    folder = docs / "results" / "r"
    folder.mkdir(parents=True)
    (folder / "old.json").write_text("{}")
    pages = publish.publish(registry, made, docs)
    assert [path.name for path in pages] == ["rules.md", "scoreboard.md", "gallery.md", "findings.md"]
    assert sorted(path.name for path in folder.iterdir()) == ["result.json", "t.json"]
    assert sorted(path.name for path in (docs / "gallery").iterdir()) == ["f.png", "g.png"]
    assert [path.name for path in (docs / "results").glob("seeds-*")] == ["seeds-2"]
    assert list(publish.stored_replicas(registry, docs / "results")) == ["seeds-2/r"]
    assert list(publish.stored_results(registry, docs / "results")) == ["r"]
    for place in (folder, docs / "results" / "seeds-2" / "r"):  # verdicts of another version of the code
        about = json.loads((place / "result.json").read_text())
        about["claims"][0]["verdict"] = "not covered"
        (place / "result.json").write_text(json.dumps(about))
    for each in (made / "r", made / "seeds-2" / "r"):
        (each / "result.json").unlink()
    publish.publish(registry, made, docs)
    for place in (folder, docs / "results" / "seeds-2" / "r"):
        (again,) = json.loads((place / "result.json").read_text())["claims"]
        assert again["verdict"] == "covered"
    before = (folder / "result.json").stat().st_mtime_ns
    publish.publish(registry, made, docs)
    assert (folder / "result.json").stat().st_mtime_ns == before, "what is the same is not written"


def test_a_replica_that_was_judged_by_other_rules_is_not_published(tmp_path):
    registry, _ = catalog()
    run.run_one(registry["r"], tmp_path / "made" / "seeds-2", "paper", "src", shift=2)
    path = tmp_path / "made" / "seeds-2" / "r" / "result.json"
    path.write_text(path.read_text().replace('"rules": "', '"rules": "0'))
    with pytest.raises(
        InputError, match="the rules of r have changed since it ran; run it again, with other"
    ):
        publish.publish(registry, tmp_path / "made", tmp_path / "docs")


def test_the_description_of_a_result_is_copied_after_its_tables(tmp_path, monkeypatch):
    registry, _ = catalog(name="z")  # its tables come after "result.json" by name
    run.run_one(registry["z"], tmp_path / "made", "paper", "src")
    copied, copy = [], publish.shutil.copyfile
    monkeypatch.setattr(publish.shutil, "copyfile", lambda a, b: copied.append(b.name) or copy(a, b))
    publish.publish(registry, tmp_path / "made", tmp_path / "docs")
    assert copied == ["t.json", "result.json", "f.png"]


def test_recipes_are_in_the_order_of_papers_and_of_numbers(monkeypatch):
    names = {
        "liu-10": "Liu", "liu-2": "Liu", "compare-x": "Liu", "ding-9a": "Ding", "ding-9": "Ding",
        "own": "beyond", "ding-law": "Ding", "liu-scaling": "Liu", "a": "He", "ding-10": "Ding",
        "ding-x3": "Ding", "musat-D": "Musat",
    }  # fmt: skip
    monkeypatch.setattr(
        catalogue, "RECIPES", {name: SimpleNamespace(paper=paper) for name, paper in names.items()}
    )
    monkeypatch.setattr(catalogue.pkgutil, "iter_modules", lambda *_: ())
    assert list(catalogue.recipes()) == [
        "musat-D", "compare-x", "liu-2", "liu-10", "liu-scaling", "ding-9", "ding-9a", "ding-10", "ding-law",
        "ding-x3", "a", "own",
    ]  # fmt: skip


def test_columns_of_words_infinities_and_nothing_are_read_as_they_were():
    found = results.rounded({"t": {
        "gap": np.array([np.nan, 1.0]), "ends": np.array([-np.inf, np.inf]), "words": np.array(["inf", "x"]),
        "long": np.array([1 / 3, 123456789.123]), "none": np.array([]), "whole": np.array([2**53 + 1]),
    }})["t"]  # fmt: skip
    np.testing.assert_array_equal(found["gap"], [np.nan, 1.0])
    np.testing.assert_array_equal(found["ends"], [-np.inf, np.inf])
    assert found["words"].tolist() == ["inf", "x"]
    assert found["long"].tolist() == [0.33333333, 123456790.0]
    assert found["none"].size == 0
    assert found["whole"].tolist() == [2**53 + 1]
