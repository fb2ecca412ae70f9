"""Runs of recipes: what is written, how a run that was killed goes on, and what is published."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from grokphys.cli.main import main
from grokphys.papers import counters, measures, pieces, run
from grokphys.papers.pages import PAGES
from grokphys.papers.pieces import in_parts, piece_digits
from grokphys.papers.recipe import Number, Result, Run, Setting, Statement, recipe
from grokphys.papers.results import read_result
from physics import FileFormatError, InputError, OutputError

DOCS = Path(__file__).parents[3] / "docs"


TAILS = counters.drawn("tails alone", "throws", head=False)


def coin(registry, name="coin", *, least=0.4, draw=None, make=None):
    """Register a recipe of throws of a coin, and return it."""
    rules = (
        Number("heads", "0.5", measures.share("throws", "head"), margin=0.05),
        Statement("many", "often", "share of heads", measures.share("throws", "head"), TAILS, least=least),
    )

    @recipe(
        name, item="a coin", quick=Setting(throws=10), paper_setting=Setting(throws=4000), cost="a second",
        rules=rules, source="folklore", independent="throw", registry=registry, draw=draw,
    )  # fmt: skip
    def throw(own):
        """Heads of a coin. They are counted.

        Notes
        -----
        This is not part of the caption.
        """
        if make:
            make(own)
        heads = own.keep("heads", lambda: _throw(own.setting.throws, own.seed(3)))
        return Result({"throws": heads}, {} if draw else {name: Figure((4, 2))})

    return registry[name]


def _throw(count, seed):
    return {"head": np.random.default_rng(seed).integers(0, 2, count).astype(bool)}


def about(path):
    return json.loads((path / "result.json").read_text())


# -- recipes and their rules --------------------------------------------------------------------------------


def test_a_recipe_completes_its_rules_and_has_the_caption_of_its_docstring():
    registry = {}
    one = coin(registry)
    assert (one.shows, one.paper, one.item) == ("Heads of a coin. They are counted.", "beyond", "a coin")
    number, statement = one.rules
    assert (number.source, number.independent) == ("folklore", "throw")
    assert (statement.source, statement.independent, statement.fitted) == ("folklore", "throw", "")
    with pytest.raises(InputError, match="different names, got coin"):
        coin(registry)
    with pytest.raises(InputError, match="one of them finite"):
        Statement("s", "q", "e", max, "none")
    with pytest.raises(InputError, match="must be equally long, got"):
        Result({"t": {"x": [1], "y": [1, 2]}}).columns()


def test_printed_numbers_keep_their_digits():
    assert Number("n", "0.50", None, 1.0, (0.4, 0.6)).quoted == "0.50 [0.40, 0.60]"
    assert Number("n", "12", None, 1.0, (3.0, 20.0)).quoted == "12 [3, 20]"
    number = Number("n", "-1.25", None, 1.0)
    assert (number.value, number.rounding) == (-1.25, pytest.approx(0.005))


def test_packages_name_the_papers():
    every = run.recipes()
    assert next(iter(every)).startswith("musat")
    assert {name: every[name].paper for name in ("musat-D", "liu-6b", "ding-7", "he-waves", "liu-seeds")} == {
        "musat-D": "Musat", "liu-6b": "Liu", "ding-7": "Ding", "he-waves": "He", "liu-seeds": "beyond",
    }  # fmt: skip
    assert every["musat-map"].paper == "beyond"
    assert list(every).index("liu-2") < list(every).index("liu-10") < list(every).index("ding-2")


# -- a run --------------------------------------------------------------------------------------------------


def test_a_run_writes_tables_verdicts_and_how_they_were_made(tmp_path, capsys):
    registry = {}
    coin(registry)
    assert run.run_recipes(["coin"], registry, tmp_path, "paper", again=False, figures="svg") == []
    folder = tmp_path / "coin"
    names = {path.name for path in folder.iterdir()}
    assert names == {"coin.png", "coin.svg", "result.json", "throws.json"}
    told = about(folder)
    assert (told["setting"], told["seeds"], told["seed_shift"]) == ({"throws": 4000}, [3], 0)
    assert [claim["verdict"] for claim in told["claims"]] == ["agrees", "agrees"]
    heads = np.random.default_rng(3).integers(0, 2, 4000)
    assert told["claims"][0]["estimate"] == pytest.approx(heads.mean(), rel=1e-7)
    assert read_result(folder).tables["throws"]["head"].tolist() == heads.astype(bool).tolist()
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", told["date"])
    told = capsys.readouterr().out
    assert re.search(r"heads: 0\.5; here 0\.\d\d \[.*\] of 4000 \(throws\): agrees", told)
    run.run_recipes(["coin"], registry, tmp_path, "paper", again=False)
    assert "coin: complete, passed over" in capsys.readouterr().out
    assert not run.is_complete(tmp_path, registry["coin"], "quick")


def test_a_toy_run_judges_and_keeps_nothing(tmp_path):
    registry = {}
    coin(registry)
    run.run_recipes(["coin"], registry, tmp_path, "quick", again=False)
    assert about(tmp_path / "coin")["claims"] == []
    assert not (tmp_path / ".unfinished").exists()


def test_other_seeds_draw_anew_and_are_named(tmp_path):
    registry = {}
    coin(registry)
    run.run_recipes(["coin"], registry, tmp_path, "paper", again=True, shift=10**9)
    told = about(tmp_path / "coin")
    assert (told["seeds"], told["seed_shift"]) == ([10**9 + 3], 10**9)
    tables = read_result(tmp_path / "coin").tables["throws"]["head"]
    assert tables.tolist() == _throw(4000, 10**9 + 3)["head"].tolist()


@pytest.mark.parametrize("name", ["liu-4a", "ding-11", "votes"])
def test_a_recipe_adds_the_shift_to_every_seed(name):
    one = run.recipes()[name]
    first, again = (Run(one.settings["quick"], "quick", shift=shift) for shift in (0, 10**9))
    tables = [one.make(each).columns() for each in (first, again)]
    assert first.seeds
    assert {seed + 10**9 for seed in first.seeds} == again.seeds
    assert any(
        not np.array_equal(values, tables[1][table][column])
        for table, columns in tables[0].items()
        for column, values in columns.items()
    )


def test_a_recipe_that_fails_is_named_and_the_others_run(tmp_path, capsys):
    registry = {}

    def broken(own):
        raise ValueError("broken")

    coin(registry, "a", make=broken)
    coin(registry, "b")
    assert run.run_recipes(["a", "b"], registry, tmp_path, "quick", again=False) == ["a"]
    assert re.search(r"grokphys: a failed: ValueError: broken \(test_runs.py:\d+\)", capsys.readouterr().err)
    assert (tmp_path / "b" / "result.json").exists()


def test_a_run_writes_where_it_was_asked_to_although_the_directory_changes(tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    coin(registry := {}, make=lambda own: os.chdir(elsewhere))
    monkeypatch.setattr(run, "recipes", lambda: registry)
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "coin", "--budget", "paper", "--directory", "made"]) == 0
    assert (tmp_path / "made" / "coin" / "result.json").exists()
    assert list((tmp_path / "made" / ".unfinished").rglob("*.npz"))
    assert not list(elsewhere.iterdir())


def test_a_result_that_cannot_be_written_ends_the_run(tmp_path, monkeypatch):
    coin(registry := {})

    def full(path, *rest, **options):
        raise OutputError(f"cannot write {path}: No space left on device")

    monkeypatch.setattr("grokphys.papers.results.write_text", full)
    with pytest.raises(OutputError, match="No space left"):
        run.run_recipes(["coin"], registry, tmp_path, "quick", again=False)
    assert read_result(tmp_path / "coin") is None


def test_damaged_results_are_named(tmp_path):
    registry = {}
    coin(registry)
    run.run_recipes(["coin"], registry, tmp_path, "quick", again=False)
    for text in ("{", '{"x": 3}', "[]"):
        (tmp_path / "coin" / "throws.json").write_text(text)
        with pytest.raises(FileFormatError, match="damaged or lacks entries; run its recipe again"):
            read_result(tmp_path / "coin")
    (tmp_path / "coin" / "result.json").write_text("{}")
    with pytest.raises(FileFormatError, match="holds no result of version 1"):
        read_result(tmp_path / "coin")


# -- pieces -------------------------------------------------------------------------------------------------


def never():
    pytest.fail("computed again")


def test_pieces_belong_to_a_recipe_or_a_family(tmp_path):
    first, second = (Run(1, "paper", tmp_path, name) for name in ("one", "two"))
    make = {name: (lambda value=value: {"a": [value]}) for name, value in (("x", 1), ("y", 2))}
    assert first.keep("x", make["x"])["a"].tolist() == [1]
    assert second.keep("x", make["y"])["a"].tolist() == [2]
    assert first.keep("x", make["y"], family="both")["a"].tolist() == [2]
    assert second.keep("x", make["x"], family="both")["a"].tolist() == [2]
    assert {path.parent.parent.name for path in tmp_path.rglob("*.npz")} == {"one", "two", "both"}


def test_pieces_of_another_setting_seed_text_or_library_are_not_used():
    def make(part):
        return {"a": [1]}

    def other(part):
        return {"a": [2]}

    digits = piece_digits(Setting(n=3), make)
    assert digits == piece_digits(Setting(n=3), partial(partial(make), 1))
    changed = [
        piece_digits(Setting(n=4), make), piece_digits(Setting(n=3), other),
        piece_digits(Setting(n=3), make, 10**9), piece_digits(Setting(n=3), make, versions="numpy 1"),
    ]  # fmt: skip
    assert len({digits, *changed}) == 5


def test_pieces_name_their_seeds_whether_computed_or_read(tmp_path):
    for _ in range(2):
        own = Run(1, "paper", tmp_path, "one", seeds={2**70})
        own.keep("x", lambda own=own: {"a": [own.seed(2**80) > 0]})
        assert own.seeds == {2**70, 2**80}


def test_damage_of_any_kind_is_named_and_the_file_stays(tmp_path):
    own = Run(1, "paper", tmp_path, "one")
    make = lambda: {"a": np.arange(1000)}  # noqa: E731
    own.keep("x", make)
    (path,) = tmp_path.rglob("x.npz")
    content = path.read_bytes()
    for damaged in (content[:300], b"", content[:200] + b"x" + content[201:], b"nothing of the kind"):
        path.write_bytes(damaged)
        with pytest.raises(FileFormatError, match="is damaged or of another origin; remove it"):
            own.keep("x", make)
        assert path.read_bytes() == damaged


def test_parts_of_either_size_are_used(tmp_path, monkeypatch):
    asked = []

    def make(part):
        asked.append((part.start, part.stop))
        return {"n": np.array(part)}

    def numbers():
        own = Run(1, "paper", tmp_path, "one")
        return np.concatenate([part["n"] for part in in_parts(own, 7, (2, 4), make)]).tolist()

    monkeypatch.setattr(pieces, "made_here", lambda: {"grokphys": "1", "processor": "any"})
    monkeypatch.setattr(pieces, "trains_on_gpu", lambda: False)
    assert numbers() == list(range(7))
    assert asked == [(0, 2), (2, 4), (4, 6), (6, 7)]
    shutil.rmtree(tmp_path / "one")
    asked.clear()
    monkeypatch.setattr(pieces, "trains_on_gpu", lambda: True)
    assert numbers() == list(range(7))
    monkeypatch.setattr(pieces, "trains_on_gpu", lambda: False)
    assert numbers() == list(range(7))
    assert asked == [(0, 4), (4, 7)], "those of the GPU are read on the CPU"


@pytest.mark.slow
def test_recipes_that_share_networks_ask_for_the_same_pieces(tmp_path, monkeypatch):
    asked = set()

    def first(path, make, seeds):
        asked.add(path)
        raise InterruptedError

    monkeypatch.setattr("grokphys.papers.recipe.kept", first)
    for names, family in (
        (("liu-6a", "liu-seeds"), "liu-6a"), (("liu-3", "liu-4b", "liu-5b", "liu-10"), "liu-3"),
        (("liu-1", "liu-21", "liu-22"), "liu-1"), (("ding-6", "ding-7"), "ding-trials"),
    ):  # fmt: skip
        asked.clear()
        for name in names:
            one = run.recipes()[name]
            with pytest.raises(InterruptedError):
                one.make(Run(one.settings["paper"], "paper", tmp_path, name))
        (path,) = asked
        assert path.parts[-3] == family


def test_a_run_that_was_killed_goes_on_to_the_same_tables(tmp_path):
    code = (
        "import sys; from pathlib import Path; from grokphys.papers import run\n"
        "from grokphys.papers.recipe import Run\n"
        "one = run.recipes()['musat-table1']; from dataclasses import replace\n"
        "own = Run(one.settings['quick'], 'paper', Path(sys.argv[1]), 'musat-table1')\n"
        "one.make(own)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)]) as process:
        end = time.monotonic() + 120
        while not list(tmp_path.rglob("*.npz")) and time.monotonic() < end and process.poll() is None:
            time.sleep(0.01)
        process.kill()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.npz")}
    assert before
    one = run.recipes()["musat-table1"]
    again = Run(one.settings["quick"], "paper", tmp_path, "musat-table1")
    tables, whole = one.make(again).columns(), one.make(Run(one.settings["quick"], "quick")).columns()
    np.testing.assert_equal(tables, whole)
    assert all(path.read_bytes() == content for path, content in before.items())
    assert again.seeds == {1700, 1703, 1706, 1710}


@pytest.mark.parametrize("name", ["ding-14", "liu-7"])
def test_stored_pieces_are_those_that_a_run_would_use(name, monkeypatch):
    """Pieces in docs/unfinished have the digits of the present setting and code, at their own libraries."""
    readme = (DOCS / "unfinished" / "README.md").read_text(encoding="utf-8")
    (row,) = (line for line in readme.splitlines() if line.startswith(f"| `{name}`"))
    libraries = {"numba": "Numba", "numpy": "NumPy", "scipy": "SciPy", "torch": "PyTorch"}
    stated = (f"{key} {re.search(f'{word} ([0-9a-z.+]+)', row)[1]}" for key, word in libraries.items())
    versions, one, asked = " ".join(stated), run.recipes()[name], []

    def digits(setting, make, shift=0):
        asked.append(piece_digits(setting, make, shift, versions))
        raise InterruptedError

    monkeypatch.setattr("grokphys.papers.recipe.piece_digits", digits)
    with pytest.raises(InterruptedError):
        one.make(Run(one.settings["paper"], "paper", DOCS / "unfinished", name))
    assert [path.name for path in (DOCS / "unfinished" / name).iterdir()] == asked


# -- publication --------------------------------------------------------------------------------------------


@pytest.fixture
def docs(tmp_path):
    """A directory of the documentation with its pages, but without results."""
    folder = tmp_path / "docs"
    folder.mkdir()
    for page in PAGES:
        shutil.copy(DOCS / page, folder)
    (folder / "notes.md").write_text("")
    (folder / "findings").mkdir()
    (folder / "findings" / "coin.md").write_text("<!-- fill claims coin --><!-- end -->")
    return folder


def drawn(setting, tables):
    return {"coin": Figure((4, 2))}


def test_results_are_published_judged_again_and_drawn_again(tmp_path, docs):
    registry = {}
    coin(registry, draw=drawn)
    made = tmp_path / "made"
    for folder, shift in ((made, 0), (made / "seeds-1", 10**9)):
        folder.mkdir()
        run.run_recipes(["coin"], registry, folder, "paper", again=True, shift=shift)
    run.publish(registry, made, docs)
    assert {path.name for path in (docs / "results" / "coin").iterdir()} == {"result.json", "throws.json"}
    assert (docs / "gallery" / "coin.png").exists()
    assert "2 of 2 verdicts of 1 recipes are the same" in (docs / "scoreboard.md").read_text()
    assert "**2 of 2 agree.**" in (docs / "findings" / "coin.md").read_text()
    told = about(docs / "results" / "coin")
    told["claims"][0]["verdict"] = "disagrees"
    (docs / "results" / "coin" / "result.json").write_text(json.dumps(told))
    run.publish(registry, tmp_path / "nothing", docs)
    assert about(docs / "results" / "coin")["claims"][0]["verdict"] == "agrees", "by the tables"
    picture = docs / "gallery" / "coin.png"
    picture.unlink()
    assert run.redraw(registry["coin"], docs) == [picture]
    other = replace(registry["coin"], settings={"paper": Setting(throws=5)})
    with pytest.raises(InputError, match="got coin: its setting has changed"):
        run.redraw(other, docs)
    with pytest.raises(InputError, match="got coin: its pictures show more than its tables"):
        run.redraw(replace(registry["coin"], draw=None), docs)
    with pytest.raises(InputError, match="names must name results at the paper's setting"):
        run.redraw(replace(registry["coin"], name="no"), docs)


def test_results_of_other_rules_and_places_without_pages_are_refused(tmp_path, docs):
    registry = {}
    coin(registry)
    made = tmp_path / "made"
    made.mkdir()
    run.run_recipes(["coin"], registry, made, "paper", again=True)
    other = {}
    coin(other, least=0.3)
    with pytest.raises(InputError, match="the rules of coin have changed since it ran"):
        run.publish(other, made, docs)
    fewer = replace(registry["coin"], rules=registry["coin"].rules[:1])
    with pytest.raises(InputError, match="the rules of coin have changed since it ran"):
        run.publish({"coin": fewer}, made, docs)
    run.publish({"coin": replace(fewer, withdrawn={"many": "no test"})}, made, docs)
    assert [claim["name"] for claim in about(docs / "results" / "coin")["claims"]] == ["heads"]
    with pytest.raises(InputError, match=r"publish must be a directory of the documentation with rules\.md"):
        run.publish(registry, made, tmp_path)
