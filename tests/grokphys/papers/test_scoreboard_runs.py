"""Running all recipes: what is passed over, what fails, what a kill leaves, and the pages."""

import json
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

import physics
from grokphys.cli.main import main
from grokphys.output import save_figure, write_csv
from grokphys.papers import registry
from grokphys.papers import runner as running
from grokphys.papers.board import Record, add_record, assemble, read_board, records_of, tally
from grokphys.papers.claims import Claim, Item
from grokphys.papers.fingerprint import fingerprint
from grokphys.papers.pages import LARGEST, gallery_page, scoreboard_page, small_png, table
from grokphys.papers.runner import publish_board, run_recipes
from grokphys.papers.verdicts import UNEXPLAINED, Printed, exact
from physics import FileFormatError, OutputError
from physics.seeds import hear_seeds

DOCS = Path(__file__).parents[3] / "docs"


class Recipes(dict):
    """Recipes that count their calls; some fail as long as they are told to."""

    def __init__(self):
        self.calls = []
        self.broken = set()
        super().__init__({name: self.recipe(name) for name in ("one", "two", "three")})

    def recipe(self, name):
        def make(out, budget):
            self.calls.append(name)
            if name in self.broken:
                raise ZeroDivisionError("nothing | to divide")
            physics.simulate(physics.ParticleSystem(5), steps=1, seed=len(name))
            figure = Figure()
            figure.subplots().plot(np.arange(5))
            return [
                write_csv(out / f"{name}.csv", [{"x": len(name), "budget": budget}]),
                save_figure(figure, out / f"{name}.png"),
            ]

        make.__doc__ = f"Recipe {name}."
        return make


@pytest.fixture
def recipes():
    return Recipes()


ROWS = tuple(
    Item(
        "Liu",
        f"Table {k}",
        f"What {name} shows.",
        name,
        claims=(Claim("letters", Printed("3", f"Table {k}"), lambda w, n=name: exact(w.column(n, "x")[0])),),
    )
    for k, name in enumerate(("one", "two", "three", "four"))
)


def run(recipes, out, budget="quick", again=False):
    recipes.calls.clear()
    failed = run_recipes(tuple(recipes), recipes, out, budget, again=again)
    return failed, list(recipes.calls)


def test_complete_recipes_are_passed_over(recipes, tmp_path, capsys, monkeypatch):
    assert run(recipes, tmp_path) == ([], ["one", "two", "three"])
    assert run(recipes, tmp_path) == ([], [])
    assert "two: complete, passed over" in capsys.readouterr().out
    assert run(recipes, tmp_path, again=True)[1] == ["one", "two", "three"]
    assert run(recipes, tmp_path, "default")[1] == ["one", "two", "three"]  # another budget
    (tmp_path / "two.csv").unlink()
    assert run(recipes, tmp_path, "default")[1] == ["two"]  # its data are gone
    monkeypatch.setattr(running, "fingerprint", lambda module: f"another program of {module}")
    assert run(recipes, tmp_path, "default")[1] == ["one", "two", "three"]


def test_only_recipes_whose_sources_changed_run_again(recipes, tmp_path, monkeypatch):
    for name, recipe in recipes.items():
        recipe.__module__ = f"grokphys.{name}"
    sources = {f"grokphys.{name}": "old" for name in recipes}
    monkeypatch.setattr(running, "fingerprint", sources.__getitem__)
    assert run(recipes, tmp_path) == ([], ["one", "two", "three"])
    sources["grokphys.two"] = "new"
    assert run(recipes, tmp_path) == ([], ["two"])


def test_a_failure_is_listed_and_tried_again(recipes, tmp_path, capsys):
    recipes.broken = {"two"}
    assert run(recipes, tmp_path) == (["two"], ["one", "two", "three"])
    assert "grokphys: two failed: ZeroDivisionError: nothing | to divide (" in capsys.readouterr().err
    content = assemble(read_board(tmp_path / "scoreboard.json"), tmp_path, tuple(recipes), ROWS)
    assert [row["status"] for row in content["rows"]] == ["complete", "failed", "complete", "no recipe"]
    assert "nothing \\| to divide" in scoreboard_page(content)
    recipes.broken = set()
    assert run(recipes, tmp_path) == ([], ["two"])


def test_a_record_says_how_it_was_made(recipes, tmp_path, monkeypatch):
    clock = SimpleNamespace(perf_counter=iter([10.0, 12.34] * len(recipes)).__next__)
    monkeypatch.setattr(running, "time", clock)
    run(recipes, tmp_path)
    record = records_of(read_board(tmp_path / "scoreboard.json"))["three"]
    assert record.seeds == [5]
    assert record.files == ["three.csv", "three.png"]
    assert record.sources == fingerprint(__name__)
    assert record.seconds == 2.3
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", record.date)


def test_seeds_are_heard_only_inside():
    with hear_seeds() as outer:
        physics.random_training_sets(physics.EffectiveTheory(5), 3, seed=4)
        with hear_seeds() as inner:
            child = np.random.SeedSequence(11).spawn(2)[1]
            physics.random_training_sets(physics.EffectiveTheory(5), 3, seed=child)
    physics.random_training_sets(physics.EffectiveTheory(5), 3, seed=99)
    assert (outer, inner) == ({4}, {11})


def test_a_killed_run_goes_on_where_it_was(tmp_path, capsys):
    program = """
import os, signal, sys
from pathlib import Path
from grokphys.output import write_csv
def one(out, budget):
    "One."
    return [write_csv(out / "one.csv", [{"x": 3}])]
def two(out, budget):
    "Two."
    write_csv(out / "two.csv", [{"x": 1}])
    if "die" in sys.argv:
        os.kill(os.getpid(), signal.SIGKILL)
    return [write_csv(out / "two.csv", [{"x": 2}])]
"""
    dying = """
from grokphys.papers.runner import run_recipes
run_recipes(("one", "two"), {"one": one, "two": two}, Path(sys.argv[1]), "quick", again=False)
"""
    call = [sys.executable, "-c", program + dying, str(tmp_path), "die"]
    killed = subprocess.run(call, capture_output=True, text=True, timeout=120)
    assert killed.returncode == -signal.SIGKILL
    assert list(records_of(read_board(tmp_path / "scoreboard.json"))) == ["one"]
    made = {"__name__": "__main__"}
    exec(program, made)
    figures = {name: made[name] for name in ("one", "two")}
    assert run_recipes(tuple(figures), figures, tmp_path, "quick", again=False) == []
    assert "one: complete, passed over" in capsys.readouterr().out
    assert list(records_of(read_board(tmp_path / "scoreboard.json"))) == ["one", "two"]


def test_records_of_another_program_beside_are_kept(tmp_path):
    board = tmp_path / "scoreboard.json"
    records = [Record(f"recipe {k}", "quick", "", "", "", 1.0, [], []) for k in range(40)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(partial(add_record, board), records))
    assert records_of(read_board(board)) == {record.recipe: record for record in records}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": "grokphys-scoreboard", "schema_version": 99}'])
def test_a_board_that_is_none_is_refused(text, tmp_path):
    board = tmp_path / "scoreboard.json"
    board.write_text(text)
    with pytest.raises(FileFormatError, match="remove it to begin anew"):
        read_board(board)
    assert board.read_text() == text


def test_a_full_disk_ends_the_run(recipes, tmp_path, monkeypatch):
    def full(path, content):
        raise OutputError(f"cannot write {path}: No space left on device")

    monkeypatch.setattr("grokphys.papers.board.write_json", full)
    with pytest.raises(OutputError, match="No space left"):
        run(recipes, tmp_path)
    assert not (tmp_path / "scoreboard.json").exists()


# -- pages --------------------------------------------------------------------------------------------------


def test_pages_are_written_from_the_data(recipes, tmp_path, capsys):
    run(recipes, tmp_path)
    pages = tmp_path / "docs"
    pages.mkdir()
    written = publish_board(recipes, tmp_path, pages / "board.md", pages / "gallery", ROWS)
    assert {path.name for path in written} == {
        *("scoreboard.md", "board.md", "one.png", "two.png", "three.png", "gallery.md")
    }
    content = json.loads((pages / "board.json").read_text())
    assert (pages / "board.md").read_text() == scoreboard_page(content)
    assert "| Table 0 `one` | letters | 3 | 3.00, exact | 1 | **covered** |" in scoreboard_page(content)
    assert "**not covered**: no reason known" in scoreboard_page(content)  # three has five letters
    assert tally(content["rows"]) == {"covered": 2, "no recipe": 1, "not covered": 1}
    gallery = (pages / "gallery.md").read_text()
    assert "![Table 1](gallery/two.png)" in gallery
    assert "`grokphys reproduce two --budget quick`" in gallery
    assert capsys.readouterr().out.splitlines()[-1].startswith("scoreboard: 2 covered")


def test_bars_do_not_end_cells():
    assert table(("a",), [("|w|",)]) == ["| a |", "| --- |", "| \\|w\\| |"]


def test_pictures_become_small(tmp_path):
    noise = np.random.default_rng(0).integers(0, 255, (300, 400, 3), np.uint8)
    Image.fromarray(noise).save(tmp_path / "noise.png")
    assert len(small_png(tmp_path / "noise.png", 60_000)) <= 60_000
    Image.new("RGB", (300, 200), "white").save(tmp_path / "white.png")
    (tmp_path / "small.png").write_bytes(small_png(tmp_path / "white.png"))
    with Image.open(tmp_path / "small.png") as picture:
        assert picture.size == (300, 200)  # never enlarged


# -- the command --------------------------------------------------------------------------------------------


def test_the_command_runs_all_and_says_what_failed(recipes, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(registry, "FIGURES", recipes)
    recipes.broken = {"three"}
    arguments = ["reproduce", "--all", "--budget", "quick", "--directory", str(tmp_path)]
    assert main(arguments) == 1
    captured = capsys.readouterr()
    assert captured.err.splitlines()[-1] == "grokphys: 1 failed: three"
    recipes.broken = set()
    recipes.calls.clear()
    assert main(arguments) == 0
    assert recipes.calls == ["three"]
    assert main([*arguments, "--again"]) == 0
    assert recipes.calls == ["three", "one", "two", "three"]
    assert main(["reproduce", "two", "--budget", "quick", "--directory", str(tmp_path)]) == 0
    assert recipes.calls[-1] == "two"  # what is named runs in any case


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["ding-2", "--all"], "names must be left out with --all, got ding-2"),
        (
            ["ding-2", "--scoreboard", "board.txt"],
            "scoreboard must be a Markdown file, NAME.md, got board.txt",
        ),
    ],
)
def test_wrong_use(arguments, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *arguments]) == 2
    assert sentence in capsys.readouterr().err
    assert os.listdir() == []


# -- the committed pages ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def content():
    return read_board(DOCS / "scoreboard.json")


def test_the_committed_scoreboard_is_what_the_program_makes_of_its_data(content):
    assert (DOCS / "scoreboard.md").read_text(encoding="utf-8") == scoreboard_page(content)


def test_the_committed_gallery_is_what_the_program_makes_of_its_data(content):
    pictures = {path.name for path in (DOCS / "gallery").glob("*.png")}
    page = gallery_page(content, "gallery", sorted(pictures))
    assert (DOCS / "gallery.md").read_text(encoding="utf-8") == page
    assert {Path(name).name for name in re.findall(r"\]\((\S+)\)", page)} == pictures
    for name in pictures:
        assert (DOCS / "gallery" / name).stat().st_size <= LARGEST


def test_every_verdict_that_asks_for_a_reason_has_one(content):
    for row in content["rows"]:
        assert row["status"] != "failed"
        for result in row["results"]:
            assert UNEXPLAINED not in result["why"], (row["item"], result)
            assert "no such number here" not in result["why"], (row["item"], result)
            if result["verdict"] in ("not covered", "does not hold", "other setting", "undetermined"):
                assert result["why"], (row["item"], result)
